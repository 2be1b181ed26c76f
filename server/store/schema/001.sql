-- Version 1. Every row carries the CRC-32 of its values (row_crc, store_schema.c), keys included,
-- and rows are counted where they belong, so that one that is changed, moved or gone is found.
-- Vectors are blobs of little-endian float64: SQLite's own REAL forgets the sign of a zero.

-- One row: what there is.
CREATE TABLE store(
    id INTEGER PRIMARY KEY CHECK (id = 1),
    locales INTEGER NOT NULL,       -- rows of locale, deleted ones included
    models INTEGER NOT NULL,        -- rows of model
    crc INTEGER NOT NULL
);

CREATE TABLE locale(
    id TEXT PRIMARY KEY NOT NULL,
    revision INTEGER NOT NULL,      -- of the last committed change
    applied_rev INTEGER NOT NULL,   -- tiles hold all samples up to this one
    log_first INTEGER NOT NULL,     -- the log's rows are log_first .. log_last;
    log_last INTEGER NOT NULL,      -- none: log_first is log_last + 1
    layers INTEGER NOT NULL,        -- rows of layer
    is_deleted INTEGER NOT NULL,
    title TEXT NOT NULL,
    gravity BLOB NOT NULL,          -- 3
    translation BLOB NOT NULL,      -- 3
    rotation BLOB NOT NULL,         -- 4
    open_sky INTEGER NOT NULL,
    triangulation INTEGER NOT NULL,
    geo BLOB,                       -- 2: latitude, longitude in degrees
    crc INTEGER NOT NULL
);

CREATE TABLE layer(
    locale TEXT NOT NULL,
    id TEXT NOT NULL,
    position INTEGER NOT NULL,
    kind INTEGER NOT NULL,          -- 0 heightfield, 1 mesh
    role INTEGER NOT NULL,
    cols INTEGER,                   -- of a heightfield; it has all its tiles
    rows INTEGER,
    leaf_cells INTEGER,
    grid BLOB,                      -- 4: origin x, y, spacing x, y
    gravity BLOB,                   -- 3, of a mesh
    mesh BLOB,                      -- 32: names the file of its image
    polygons BLOB,                  -- 32: names the file of its polygons
    crc INTEGER NOT NULL,
    PRIMARY KEY (locale, id)
);

CREATE TABLE tile(
    number INTEGER PRIMARY KEY,
    locale TEXT NOT NULL,
    layer TEXT NOT NULL,
    ty INTEGER NOT NULL,
    tx INTEGER NOT NULL,
    rev INTEGER NOT NULL,           -- the locale's when it was written
    codec INTEGER NOT NULL,         -- 0: float32 little-endian, the samples inside the field
    crc INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (locale, layer, ty, tx)
);

-- The log. No index on (locale, rev): rows come in order and are read in order, and a page less is
-- written with each edit.
CREATE TABLE edit(
    sequence INTEGER PRIMARY KEY,
    locale TEXT NOT NULL,
    rev INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    layer TEXT NOT NULL,
    source TEXT NOT NULL,
    op_id TEXT,
    request BLOB,                   -- 32, with an op_id
    rect BLOB,                      -- 4 × uint32: column, row, cols, rows
    bounds BLOB,                    -- 6
    answer BLOB,
    has_samples INTEGER NOT NULL,
    crc INTEGER NOT NULL,           -- of all before
    data_crc INTEGER NOT NULL,      -- of sequence, codec, data
    codec INTEGER,                  -- 0: float32 little-endian; NULL: the samples are in the tiles
    data BLOB
);
CREATE UNIQUE INDEX edit_op_id ON edit(op_id) WHERE op_id IS NOT NULL;

CREATE TABLE model(
    id TEXT PRIMARY KEY NOT NULL,
    hash BLOB NOT NULL,             -- 32: BLAKE2b-256 of data
    media_type TEXT NOT NULL,
    crc INTEGER NOT NULL,
    data BLOB NOT NULL
);
