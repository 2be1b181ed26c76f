/*
 * Shells: a solid as spheres of one radius that lie under its surface, the form of a body in the
 * granular solver (text S, 5.5), with the solid's own mass and inertia.
 */
#ifndef KOTA_SAND_SHELL_H
#define KOTA_SAND_SHELL_H

#include "formats/polygon/polygon_file.h"
#include "formats/raster/raster.h"
#include "sand/engine.h"
#include "terrain/vec.h"

enum {
    SHELL_VERSION = 1,     /* of what shell_build makes; another one, other bytes */
    SHELL_HASH_BYTES = 32, /* of a model: BLAKE2b-256 of its file */
    SHELL_SPHERES_MAX = 65536
};

/*
 * Every point of the solid's surface lies within SHELL_REACH radii of the centre of a sphere: so
 * the centre of another sphere of that radius, which stays two radii away, never comes to the
 * surface, from outside or inside.
 */
#define SHELL_REACH 1.75

struct shell {
    double radius_m, volume_m3;
    struct vec3 centre;          /* of mass, in the model's frame */
    double inertia_per_kg[3][3]; /* m², about the centre */
    double extent_m;             /* from the centre to the far side of the farthest sphere */
    double protrusion_m; /* the greatest protrusion of a sphere from the surface: 0 unless a part is
                          * thinner or sharper than a sphere */
    uint32_t particles;
    float (*offsets_m)[3]; /* [particles], of the spheres from the centre; malloc */
};

/*
 * The shell of a mesh of triangles.
 *
 * ERR_UNPROCESSABLE  not a solid (what solid_measure says), or it intersects itself: names the
 *                    triangles, or the place; or a vertex beyond 1,000 km
 * ERR_TOO_LARGE      it would take more than SHELL_SPHERES_MAX spheres, or too long
 * ERR_NO_MEMORY
 * *out is empty unless ERR_OK. The same mesh gives the same shell, for any number of threads. Takes
 * long (a barrel at 5 cm: some 0.2 s of one core): no loop's thread, nor the sand thread.
 */
enum err_code shell_build(const struct polygon_set *mesh, double radius_m, uint32_t threads,
                          struct shell *out, struct err *err);
void shell_free(struct shell *shell); /* an empty one is fine */

/* The shell as a body of that mass (> 0) for an engine; the offsets are borrowed. */
struct sand_shape shell_shape(const struct shell *shell, double mass_kg);

/*
 * The origin of the model's frame in a pose of the body (its centre of mass, and a unit quaternion
 * x y z w).
 */
struct vec3 shell_origin_of(const struct shell *shell, struct vec3 centre, const double q[4]);

/*
 * The flat form that is kept: header, offsets, BLAKE2b-256 of all before; little-endian.
 * model_hash[SHELL_HASH_BYTES] names its model. ERR_NO_MEMORY.
 */
enum err_code shell_encode(const struct shell *shell, const uint8_t *model_hash,
                           struct raster_bytes *out, struct err *err);

/*
 * ERR_DAMAGED: the bytes are no shell of this model at this radius and version, or are not what
 * was written.
 */
enum err_code shell_decode(const void *bytes, size_t length, const uint8_t *model_hash,
                           double radius_m, struct shell *out, struct err *err);

#endif
