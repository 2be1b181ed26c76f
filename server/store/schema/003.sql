-- Version 3. Where layers stand that were moved: written some time after they were (world/write/move.c). A
-- row with the layer '' is of the locale itself: its transform_seq goes on from there.
CREATE TABLE pose(
    locale TEXT NOT NULL,
    layer TEXT NOT NULL,            -- a mesh that is there, or ''
    pose BLOB NOT NULL,             -- 4: translation in metres, yaw in degrees; zeros with ''
    seq INTEGER NOT NULL,           -- transform_seq
    crc INTEGER NOT NULL,
    PRIMARY KEY (locale, layer)
);
