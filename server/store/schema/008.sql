-- Version 8. History: of each revision its author, and the samples that it replaced
-- (docs/internals/history.md). The rows of a locale are those of its last revisions, without a gap.
CREATE TABLE history(
    locale TEXT NOT NULL,
    rev INTEGER NOT NULL,
    time INTEGER NOT NULL,          -- milliseconds since 1970, of the writer's clock
    kind INTEGER NOT NULL,          -- as in edit, like the next two
    layer TEXT NOT NULL,
    source TEXT NOT NULL,
    author TEXT NOT NULL,           -- '': none is known
    note TEXT NOT NULL,
    is_birth INTEGER NOT NULL,      -- 1: the revision made the locale
    rect BLOB,                      -- 4 × uint32: column, row, cols, rows
    crc INTEGER NOT NULL,           -- of all before
    data_crc INTEGER NOT NULL,      -- of locale, rev, codec, data
    codec INTEGER,                  -- 1: zstd of the samples before, float32 in the layout delta;
                                    -- 2: and of a bit for each, lowest first: was it changed?
    data BLOB,
    PRIMARY KEY (locale, rev)
) WITHOUT ROWID;
