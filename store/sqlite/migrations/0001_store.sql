-- What the columns called "no" hold: a number of a thread, or of an owner (which stands for a tenant and an id of an
-- agent, block or archive), times 2^32, plus a position. So every key begins with the owner, rows of one owner lie side
-- by side, and keys are one integer. Ids are packed (see pack.go); times are nanoseconds since 1970.

CREATE TABLE owners (
	no            INTEGER PRIMARY KEY,
	tenant        TEXT NOT NULL,
	id            TEXT NOT NULL,
	passages      INTEGER NOT NULL DEFAULT 0, -- live ones
	passage_bytes INTEGER NOT NULL DEFAULT 0,
	merged        INTEGER NOT NULL DEFAULT 0, -- docs up to this one are in postings
	merge_to      INTEGER NOT NULL DEFAULT 0, -- a merge up to this one is under way, if it is more than merged,
	merge_term    TEXT NOT NULL DEFAULT '',   -- and has been done for terms before this one
	blocks        INTEGER NOT NULL DEFAULT 0, -- rows in postings
	block_bytes   INTEGER NOT NULL DEFAULT 0,
	packed        INTEGER NOT NULL DEFAULT 0, -- docs up to this one are in metas
	UNIQUE (tenant, id)
);

CREATE TABLE agents (
	owner   INTEGER PRIMARY KEY,
	tenant  TEXT NOT NULL,
	name    TEXT NOT NULL,
	version INTEGER NOT NULL,
	data    TEXT NOT NULL,
	UNIQUE (tenant, name)
);

CREATE TABLE threads (
	no           INTEGER PRIMARY KEY,
	agent        INTEGER NOT NULL, -- owners.no
	tenant       TEXT NOT NULL,
	id           TEXT NOT NULL,
	name         TEXT NOT NULL,
	version      INTEGER NOT NULL,
	head         INTEGER NOT NULL,
	hidden       INTEGER NOT NULL DEFAULT 0, -- entries up to head,
	first        INTEGER,                    -- and their earliest
	last         INTEGER,                    -- and latest time
	messages     INTEGER NOT NULL DEFAULT 0,
	bytes        INTEGER NOT NULL DEFAULT 0, -- of the messages
	turn         BLOB,                       -- id of the newest turn
	summary      INTEGER NOT NULL DEFAULT 0, -- hash of the row in summaries, 0 when there is none
	lease        INTEGER NOT NULL DEFAULT 0,
	lease_until  INTEGER,                    -- NULL when it was released
	lease_holder TEXT,
	data         TEXT NOT NULL,
	UNIQUE (tenant, id),
	UNIQUE (agent, name)
);

CREATE TABLE summaries (
	thread INTEGER PRIMARY KEY,
	data   TEXT NOT NULL
);

CREATE TABLE entries (
	no      INTEGER PRIMARY KEY, -- thread, seq
	id      BLOB NOT NULL,
	turn    BLOB NOT NULL,
	step    INTEGER NOT NULL,
	time    INTEGER,
	key     TEXT,
	message TEXT NOT NULL
);

CREATE TABLE entry_keys (
	owner INTEGER NOT NULL,
	key   TEXT NOT NULL,
	entry INTEGER NOT NULL,
	PRIMARY KEY (owner, key)
) WITHOUT ROWID;

-- Where the entry, the passage and the doc with an id are.
CREATE TABLE ids (
	owner   INTEGER NOT NULL,
	id      BLOB NOT NULL,
	entry   INTEGER, -- entries.no
	passage INTEGER, -- passages.no
	doc     INTEGER, -- position in docs
	PRIMARY KEY (owner, id)
) WITHOUT ROWID;

CREATE TABLE passages (
	no    INTEGER PRIMARY KEY, -- owner, position
	owner INTEGER NOT NULL,
	key   TEXT NOT NULL,
	live  INTEGER NOT NULL,
	data  TEXT NOT NULL
);
CREATE UNIQUE INDEX passages_key ON passages (owner, key) WHERE live = 1 AND key <> '';

CREATE TABLE sources (
	owner    INTEGER NOT NULL,
	source   TEXT NOT NULL,
	passages INTEGER NOT NULL,
	PRIMARY KEY (owner, source)
) WITHOUT ROWID;

CREATE TABLE blocks (
	no      INTEGER PRIMARY KEY,
	tenant  TEXT NOT NULL,
	id      TEXT NOT NULL,
	version INTEGER NOT NULL,
	data    TEXT NOT NULL,
	UNIQUE (tenant, id)
);

CREATE TABLE block_edits (
	no   INTEGER PRIMARY KEY, -- block, position
	data TEXT NOT NULL
);

-- Events that were due when they came have no = thread, position; the others the negative of that.
CREATE TABLE events (
	no     INTEGER PRIMARY KEY,
	thread INTEGER NOT NULL,
	id     BLOB NOT NULL,
	ord    INTEGER NOT NULL,
	due    INTEGER NOT NULL,
	key    TEXT,
	data   TEXT NOT NULL
);
CREATE INDEX events_due ON events (due) WHERE no < 0;
CREATE UNIQUE INDEX events_key ON events (thread, key) WHERE key IS NOT NULL;

-- Keys of consumed events, oldest first.
CREATE TABLE consumed (
	no     INTEGER PRIMARY KEY,
	thread INTEGER NOT NULL,
	key    TEXT NOT NULL,
	id     BLOB NOT NULL,
	turn   BLOB NOT NULL,
	time   INTEGER NOT NULL,
	UNIQUE (thread, key)
);

-- The turns of a thread are a chain, from threads.turn back to the first: an index by thread would be one more page to
-- write at every turn.
CREATE TABLE turns (
	tenant TEXT NOT NULL,
	id     BLOB NOT NULL,
	thread INTEGER NOT NULL,
	prev   BLOB,
	data   TEXT NOT NULL,
	PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

-- Forward rows. The sums are over the owner's docs up to this one, so that no row of counters is written with them.
CREATE TABLE docs (
	no     INTEGER PRIMARY KEY, -- owner, number
	id     BLOB NOT NULL,
	kind   INTEGER NOT NULL,
	role   INTEGER NOT NULL,
	thread TEXT NOT NULL,
	time   INTEGER, -- seconds
	length INTEGER NOT NULL,
	dead   INTEGER NOT NULL DEFAULT 0,
	sum_length INTEGER NOT NULL,
	sum_bytes  INTEGER NOT NULL, -- of terms
	terms  BLOB NOT NULL
);

CREATE TABLE dead (
	no  INTEGER PRIMARY KEY, -- owner, position
	doc INTEGER NOT NULL,
	sum_length INTEGER NOT NULL -- of the dead up to this one
);

CREATE TABLE postings (
	owner INTEGER NOT NULL,
	term  TEXT NOT NULL,
	first INTEGER NOT NULL, -- number of the first doc,
	last  INTEGER NOT NULL, -- and of the last one
	total INTEGER NOT NULL, -- postings of the term up to the end of this block
	data  BLOB NOT NULL,
	PRIMARY KEY (owner, term, first)
) WITHOUT ROWID;

-- Meta columns of packed docs.
CREATE TABLE metas (
	no   INTEGER PRIMARY KEY, -- owner, position
	data BLOB NOT NULL
);

CREATE TABLE records (
	tenant  TEXT NOT NULL,
	kind    TEXT NOT NULL,
	id      TEXT NOT NULL,
	version INTEGER NOT NULL,
	data    TEXT NOT NULL,
	PRIMARY KEY (tenant, kind, id)
) WITHOUT ROWID;
