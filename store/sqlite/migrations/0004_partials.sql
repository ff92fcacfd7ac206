-- Changes when vectors of docs that the set had passed are added or erased, so that copies of them in memory are made anew,
-- and a rest that was made of an older text is refused.
ALTER TABLE sets ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;

-- Docs that a set has passed and that don't have all of their vectors yet.
CREATE TABLE partials (
	no     INTEGER PRIMARY KEY, -- set, number of the doc
	pieces INTEGER NOT NULL,    -- that have their vectors,
	data   BLOB NOT NULL        -- packed as in a row of vectors
);
