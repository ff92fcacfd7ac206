ALTER TABLE docs ADD COLUMN author  TEXT NOT NULL DEFAULT '';
ALTER TABLE docs ADD COLUMN session TEXT NOT NULL DEFAULT '';

-- Packed meta columns have these two from now on. They are packed anew in the background, into a table of another name, so
-- that an older program which has the file open can't write its form among them.
DROP TABLE metas;
CREATE TABLE packs (
	no   INTEGER PRIMARY KEY, -- owner, position
	data BLOB NOT NULL
);
UPDATE owners SET packed = 0;

CREATE TABLE models (
	no INTEGER PRIMARY KEY,
	id TEXT NOT NULL UNIQUE
);

-- A set is an owner's vectors of one model. Its number is never given again: the vectors of one that was dropped are
-- erased later.
CREATE TABLE sets (
	no      INTEGER PRIMARY KEY AUTOINCREMENT,
	owner   INTEGER NOT NULL,
	model   INTEGER NOT NULL,
	through INTEGER NOT NULL, -- docs up to this one have their vectors
	UNIQUE (owner, model)
);

-- Rows of vectors of one or several docs, see commit_vectors.go. Those of a set lie side by side.
CREATE TABLE vectors (
	no   INTEGER PRIMARY KEY, -- set, number of the last doc in the row
	data BLOB NOT NULL
);

-- Sets whose vectors are to be erased.
CREATE TABLE dropped (
	no INTEGER PRIMARY KEY
);
