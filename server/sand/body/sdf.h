/*
 * Signed distance fields of closed triangle meshes on a regular grid (text S, 5.5).
 */
#ifndef KOTA_SAND_SDF_H
#define KOTA_SAND_SDF_H

#include "sand/body/triangle_tree.h"

struct sdf_options {
    double spacing_m; /* > 0, of the samples along each axis */
    double band_m; /* > 0: farther from the surface, distances are ±band_m; INFINITY: none are */
    uint64_t cells_max; /* more samples than that are refused */
    uint32_t threads;   /* >= 1; the result does not depend on it */
};

/* Distances to the surface at the samples of a grid, negative inside. */
struct sdf {
    struct vec3 origin; /* of sample (0, 0, 0) */
    double spacing_m;
    uint32_t size[3];  /* samples along x, y, z */
    float *distance_m; /* [size[2]][size[1]][size[0]] */
};

enum { SDF_MARGIN = 2 }; /* samples beyond the mesh's box on each side */

/*
 * The field of a mesh that solid_measure has found closed; the tree is of it. Distances are exact
 * but for the rounding to float; their sign is right wherever they are greater than rounding.
 *
 * ERR_TOO_LARGE      more samples than cells_max, with limit and got
 * ERR_UNPROCESSABLE  somewhere the mesh is inside itself or inside out: it names the place
 * ERR_NO_MEMORY
 * *out is empty unless ERR_OK. Cost O(samples · log triangles), about a microsecond a sample
 * within the band.
 */
enum err_code sdf_build(const struct triangle_mesh *mesh, const struct triangle_tree *tree,
                        const struct sdf_options *options, struct sdf *out, struct err *err);
void sdf_free(struct sdf *sdf); /* an empty one is fine */

/* How many samples a field of that spacing has; INFINITY when there is no counting them. */
double sdf_cells(const struct box3 *bounds, double spacing_m);

#endif
