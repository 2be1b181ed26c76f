-- Version 4. For a store whose changes also stand in a log that several daemons share
-- (server/cluster/): which log, and how far each locale has come in it. A row of applied is written
-- in the transaction of the change that it names, so a store is never ahead of its own rows nor
-- behind them.
CREATE TABLE shared_log(
    id INTEGER PRIMARY KEY CHECK (id = 1),
    identity TEXT NOT NULL,         -- of the log; '': of none yet
    node TEXT NOT NULL,             -- the name that this directory's daemon has given itself
    crc INTEGER NOT NULL
);

CREATE TABLE applied(
    locale TEXT PRIMARY KEY NOT NULL, -- or '/models', whose revisions count changes of models
    rev INTEGER NOT NULL,
    op_id TEXT NOT NULL,            -- of the log's entry at that revision
    crc INTEGER NOT NULL
);
