-- What agents said unasked, until it was seen and the hook was told.
CREATE TABLE sayings (
	no      INTEGER PRIMARY KEY,
	thread  INTEGER NOT NULL,
	agent   INTEGER NOT NULL, -- owners.no
	id      TEXT NOT NULL,
	entry   BLOB NOT NULL,
	unread  INTEGER NOT NULL,
	hook    TEXT NOT NULL,
	version INTEGER NOT NULL,
	data    TEXT NOT NULL
);
CREATE UNIQUE INDEX sayings_id ON sayings (agent, id);
CREATE INDEX sayings_thread ON sayings (thread);
CREATE INDEX sayings_unread ON sayings (agent, no) WHERE unread = 1;
CREATE INDEX sayings_due ON sayings (agent, no) WHERE hook = 'due';
