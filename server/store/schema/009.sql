-- Version 9. Forks: locales that share the tiles of another one (docs/internals/forks.md).

-- Of a fork: what it was made of, as it was asked for ("arena@start"), and at which revision.
ALTER TABLE locale ADD COLUMN origin TEXT;
ALTER TABLE locale ADD COLUMN origin_rev INTEGER;

-- Of a heightfield: a tile without a row of its own is that of the layer of the same id in the pin
-- "/base_rev" of locale base. Such a pin is there as long as a row of layer or pin_layer names it.
-- Rows with a rev before `since` are of another layer, which had that id before.
ALTER TABLE layer ADD COLUMN base TEXT;
ALTER TABLE layer ADD COLUMN base_rev INTEGER;
ALTER TABLE layer ADD COLUMN since INTEGER;
ALTER TABLE pin_layer ADD COLUMN base TEXT;
ALTER TABLE pin_layer ADD COLUMN base_rev INTEGER;
ALTER TABLE pin_layer ADD COLUMN since INTEGER;

-- Checksums are of all columns; one that is wrong stays so.
UPDATE locale SET crc = row_crc(id, revision, applied_rev, log_first, log_last, layers, is_deleted,
    title, gravity, translation, rotation, open_sky, triangulation, geo, origin, origin_rev)
WHERE crc = row_crc(id, revision, applied_rev, log_first, log_last, layers, is_deleted, title,
    gravity, translation, rotation, open_sky, triangulation, geo);
UPDATE layer SET crc = row_crc(locale, id, position, kind, role, cols, rows, leaf_cells, grid,
    gravity, mesh, polygons, base, base_rev, since)
WHERE crc = row_crc(locale, id, position, kind, role, cols, rows, leaf_cells, grid, gravity, mesh,
    polygons);
UPDATE pin_layer SET crc = row_crc(locale, pin, id, position, kind, role, cols, rows, leaf_cells,
    grid, gravity, mesh, polygons, pose, seq, base, base_rev, since)
WHERE crc = row_crc(locale, pin, id, position, kind, role, cols, rows, leaf_cells, grid, gravity,
    mesh, polygons, pose, seq);
