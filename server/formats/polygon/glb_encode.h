/*
 * Surfaces as binary glTF 2.0, for renderers: 3D Tiles, three.js, Blender, game engines.
 *
 * One node with one mesh of triangles, positions and normals in float32, relative to the node's
 * translation. glTF has Y up: a point (x, y, z) of the frame is written as (x, z, -y).
 */
#ifndef KOTA_FORMATS_GLB_ENCODE_H
#define KOTA_FORMATS_GLB_ENCODE_H

#include "formats/polygon/polygon_set.h"
#include "formats/raster/raster.h"
#include "terrain/field/heightfield.h"

/* An upper bound of the file's bytes. */
uint64_t glb_polygons_bytes_max(const struct polygon_set *set);
uint64_t glb_field_bytes_max(const struct heightfield_spec *spec, uint32_t step);

/*
 * Polygons with flat normals, by their order of corners; concave ones as triangles. ERR_NO_MEMORY,
 * or ERR_UNPROCESSABLE: there is no triangle.
 */
enum err_code glb_encode_polygons(const struct polygon_set *set, struct raster_bytes *out,
                                  struct err *err);

/*
 * Every step-th sample along both axes, split as the field is, without triangles that touch a hole;
 * normals are those of the samples around. Errors as above.
 */
enum err_code glb_encode_field(const struct heightfield *field, uint32_t step,
                               struct raster_bytes *out, struct err *err);

#endif
