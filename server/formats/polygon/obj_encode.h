/*
 * Surfaces as Wavefront OBJ: v and f statements, nothing else. Pure.
 */
#ifndef KOTA_FORMATS_OBJ_ENCODE_H
#define KOTA_FORMATS_OBJ_ENCODE_H

#include "formats/polygon/polygon_file.h"
#include "terrain/field/heightfield.h"

/* Where the text goes, some tens of KiB at a time. False ends the encoding. */
struct obj_sink {
    void *to;
    bool (*write)(void *to, const char *bytes, size_t length);
};

/*
 * The triangles of a field as its triangulation splits the cells, cell by cell, triangle 0 first,
 * counter-clockwise seen from above; those that touch a hole are left out. Coordinates read back as
 * the same float64. A field without triangles has no f lines. False when the sink failed.
 * O(samples), memory O(columns).
 */
bool obj_encode_field(const struct heightfield *field, const struct obj_sink *sink);

/* Polygon i becomes the i-th f line; vertices stay as they are and in their order. */
bool obj_encode_polygons(const struct polygon_set *set, const struct obj_sink *sink);

/* What the text takes at most. O(1). */
uint64_t obj_field_bytes_max(const struct heightfield *field);
uint64_t obj_polygons_bytes_max(const struct polygon_set *set);

#endif
