-- Version 7. Pins: values of locales that are kept under names (docs/internals/pins.md).

-- One row: what there is.
CREATE TABLE pinned(
    id INTEGER PRIMARY KEY CHECK (id = 1),
    pins INTEGER NOT NULL,          -- rows of pin
    crc INTEGER NOT NULL
);
INSERT INTO pinned VALUES (1, 0, row_crc(1, 0));

-- The manifest of the locale at that revision, as in locale.
CREATE TABLE pin(
    locale TEXT NOT NULL,
    name TEXT NOT NULL,
    rev INTEGER NOT NULL,
    layers INTEGER NOT NULL,        -- rows of pin_layer
    seq INTEGER NOT NULL,           -- transform_seq then
    title TEXT NOT NULL,
    gravity BLOB NOT NULL,
    translation BLOB NOT NULL,
    rotation BLOB NOT NULL,
    open_sky INTEGER NOT NULL,
    triangulation INTEGER NOT NULL,
    geo BLOB,
    crc INTEGER NOT NULL,
    PRIMARY KEY (locale, name)
);

-- Columns as in layer and in pose.
CREATE TABLE pin_layer(
    locale TEXT NOT NULL,
    pin TEXT NOT NULL,
    id TEXT NOT NULL,
    position INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    role INTEGER NOT NULL,
    cols INTEGER,
    rows INTEGER,
    leaf_cells INTEGER,
    grid BLOB,
    gravity BLOB,
    mesh BLOB,
    polygons BLOB,
    pose BLOB,                      -- 4 or 8: of a mesh that was moved
    seq INTEGER,                    -- then: transform_seq
    crc INTEGER NOT NULL,
    PRIMARY KEY (locale, pin, id)
);

-- Tiles that were in tile, and that pins still need. A pin at revision R has of each tile the row
-- with the greatest rev up to R, here or in tile, and the samples that the log has up to R.
CREATE TABLE kept_tile(
    number INTEGER PRIMARY KEY,
    locale TEXT NOT NULL,
    layer TEXT NOT NULL,
    ty INTEGER NOT NULL,
    tx INTEGER NOT NULL,
    rev INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (locale, layer, ty, tx, rev)
);
