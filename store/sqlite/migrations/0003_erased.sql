-- Counts what was erased of an owner's index, so that caches of it and merges under way are told.
ALTER TABLE owners ADD COLUMN erased INTEGER NOT NULL DEFAULT 0;

-- Holds a row while free pages and the log may still hold what was erased.
CREATE TABLE unclean (
	no INTEGER PRIMARY KEY
);

-- A doc without an id was erased. Who embedded it meanwhile brings its vector in vain.
CREATE TRIGGER vectors_erased BEFORE INSERT ON vectors
WHEN EXISTS (SELECT 1 FROM sets s JOIN docs d ON d.no = (s.owner << 32) + (new.no & 0xffffffff) WHERE s.no = (new.no >> 32) AND d.id = x'')
BEGIN
	SELECT RAISE(IGNORE);
END;
