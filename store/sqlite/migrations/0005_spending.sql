-- What model calls used, by day and model. The row of an agent and model with empty days is the sum of all its days.
CREATE TABLE spending (
	tenant    TEXT NOT NULL,
	agent     TEXT NOT NULL,
	day       TEXT NOT NULL, -- in the agent's zone
	model     TEXT NOT NULL,
	utc       TEXT NOT NULL, -- day in UTC
	input     INTEGER NOT NULL,
	cached    INTEGER NOT NULL,
	written   INTEGER NOT NULL,
	output    INTEGER NOT NULL,
	reasoning INTEGER NOT NULL,
	calls     INTEGER NOT NULL,
	priced    INTEGER NOT NULL, -- calls whose cost is in nano
	nano      INTEGER NOT NULL, -- nano-dollars
	PRIMARY KEY (tenant, agent, day, model, utc)
) WITHOUT ROWID;

CREATE INDEX spending_utc ON spending (tenant, utc);
