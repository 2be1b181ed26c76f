-- Version 2. What is made of a model for the sand, kept because making it takes long: a shell of
-- spheres of one radius. Rows may be missing: they are made anew. Each belongs to a model that is
-- there.
CREATE TABLE shell(
    number INTEGER PRIMARY KEY,
    model BLOB NOT NULL,            -- 32: the hash of a model
    version INTEGER NOT NULL,       -- of the making; only one of a model
    radius_um INTEGER NOT NULL,     -- of the spheres, in micrometres
    crc INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (model, version, radius_um)
);
