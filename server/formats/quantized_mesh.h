/*
 * quantized-mesh 1.0: a tile of a globe as a regular mesh, as Cesium and engines with it read them.
 */
#ifndef KOTA_FORMATS_QUANTIZED_MESH_H
#define KOTA_FORMATS_QUANTIZED_MESH_H

#include "formats/raster/raster.h"

enum { QUANTIZED_SIDE = 65, QUANTIZED_RIM = 1, QUANTIZED_GRID = QUANTIZED_SIDE + 2 };

struct quantized_mesh {
    /* Of the columns and rows, one more on each side; row 0 in the north (MAP_QUANTIZED). */
    const double *lng_deg, *lat_deg; /* [QUANTIZED_GRID] */
    const double *heights_m;         /* [QUANTIZED_GRID][QUANTIZED_GRID], finite */
    bool has_normals;                /* the extension octvertexnormals */
    const char *metadata;            /* the extension metadata: its JSON; NULL for none */
};

/* Where a column or row is between the edges of a tile, as the format can say it: 0..1. */
double quantized_share(double index);

/* Encodes: malloc, in *out. ERR_NO_MEMORY. */
enum err_code quantized_mesh_encode(const struct quantized_mesh *mesh, struct raster_bytes *out,
                                    struct err *err);

#endif
