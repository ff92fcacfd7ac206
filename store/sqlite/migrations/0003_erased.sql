-- Counts what was erased of an owner's index, so that caches of it and merges under way are told.
ALTER TABLE owners ADD COLUMN erased INTEGER NOT NULL DEFAULT 0;

-- Holds a row while free pages and the log may still hold what was erased.
CREATE TABLE unclean (
	no INTEGER PRIMARY KEY
);
