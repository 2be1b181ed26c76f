/*
 * The inner loops that exist once per instruction set (simd.h), and the table that says which of
 * them runs. Private to terrain/.
 *
 * Each kernel is one source. Those that gain from AVX2 are compiled for it, by a line in the
 * Makefile: the queries of meshes twice, the same source for both levels (KERNEL), those of
 * heightfields only for AVX2; there the scalar level is the reference for the bits.
 */
#ifndef KOTA_TERRAIN_KERNELS_H
#define KOTA_TERRAIN_KERNELS_H

#include "terrain/field_ray/ray.h"
#include "terrain/kernels/simd.h"

#include <stdatomic.h>

/* The name of a function in a source that is compiled once per level. */
#ifdef KOTA_KERNELS_AVX2
#define KERNEL(name) name##_avx2
#else
#define KERNEL(name) name##_scalar
#endif

struct begun_ray;
struct shadow_blocks;
struct mesh;
struct mesh_contact;
struct mesh_height;
struct mesh_hit;
struct ray_tree;
struct ray_tree_block;
struct ray_tree_line;
struct walk;

/*
 * Of a mesh's ray. RARE: nothing is done, the general way has the answer (rays along an axis or
 * gravity, numbers that are too large). BEGUN: it has begun, or it hits.
 */
enum walk_begin { WALK_RARE, WALK_MISS, WALK_BEGUN };

struct kernels {
    enum simd_level level;

    /* INTERPOLATION_TRIANGLE of any field and point. */
    struct ground_height (*height)(const struct heightfield *field, double x, double y);

    /* The same of many, into one of out and heights_m; the other is NULL. */
    void (*heights)(const struct heightfield *field, const struct vec2 *points, size_t count,
                    struct ground_height *out, double *heights_m);

    /* As heightfield_heights_f32. */
    bool (*heights_f32)(const struct heightfield *field, const unsigned char *floats, size_t count,
                        const double base[3], unsigned char *out);

    /* As heightfield_ray and heightfield_rays, of fields that are not far (heightfield_data.h). */
    bool (*ray)(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit);
    void (*rays)(const struct heightfield *field, const struct ray *rays, size_t count,
                 struct ray_hit *hits);

    /* As mesh_column, mesh_floor and mesh_floor_heights, of cartesian meshes. */
    bool (*mesh_column)(const struct mesh *mesh, double x, double y, bool is_up, double limit,
                        double *z, uint32_t *polygon);
    bool (*mesh_floor)(const struct mesh *mesh, struct vec3 point, double reach_up_m,
                       struct mesh_contact *out);
    void (*mesh_heights)(const struct mesh *mesh, const struct vec3 *points, size_t count,
                         double reach_up_m, struct mesh_height *out);

    /* As shadow_blocks_any. */
    void (*mesh_shadows)(const struct mesh *tree, const struct shadow_blocks *blocks,
                         const struct vec3 *origins, size_t count, struct vec3 centre,
                         double reach_m, uint8_t *answers);

    /* As ray_tree_ask, ray_tree_sweep and ray_tree_ask_all. */
    void (*tree_ray)(const struct ray_tree *tree, const struct ray_tree_line *line);
    void (*tree_sweep)(const struct ray_tree *tree, const struct ray_tree_line *line,
                       const double reach[3]);
    void (*tree_rays)(const struct ray_tree *tree, const struct ray_tree_line *lines, size_t count);

    /* The exact test of a lane, as struct ray_tree_line has it; asker: a struct walk. */
    bool (*mesh_lane_test)(void *asker, const struct ray_tree_block *block, unsigned lane,
                           double *end);

    /*
     * walk_set and walk_begin of mesh_ray.c in one, and mesh_ray over a mesh with one tree: the
     * same bits. NULL: there is none at this level.
     */
    enum walk_begin (*mesh_walk_begin)(struct walk *w, const struct mesh *mesh,
                                       const struct ray *ray, enum ray_mode mode,
                                       struct begun_ray *begun);
    enum walk_begin (*mesh_ray)(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
                                struct mesh_hit *hit);
};

/* NULL: none has been chosen yet. */
extern _Atomic(const struct kernels *) kernels_chosen;

/* Chooses the best level of this machine. */
const struct kernels *kernels_choose(void);

/* The kernels of the level in use. */
static inline const struct kernels *kernels(void)
{
    const struct kernels *chosen = atomic_load_explicit(&kernels_chosen, memory_order_relaxed);

    return __builtin_expect(chosen != NULL, 1) ? chosen : kernels_choose();
}

struct ground_height height_scalar(const struct heightfield *field, double x, double y);
void heights_scalar(const struct heightfield *field, const struct vec2 *points, size_t count,
                    struct ground_height *out, double *heights_m);
bool heights_f32_scalar(const struct heightfield *field, const unsigned char *floats, size_t count,
                        const double base[3], unsigned char *out);
bool ray_exact(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit);
void rays_exact(const struct heightfield *field, const struct ray *rays, size_t count,
                struct ray_hit *hits);

struct ground_height height_avx2(const struct heightfield *field, double x, double y);
void heights_avx2(const struct heightfield *field, const struct vec2 *points, size_t count,
                  struct ground_height *out, double *heights_m);
bool heights_f32_avx2(const struct heightfield *field, const unsigned char *floats, size_t count,
                      const double base[3], unsigned char *out);
bool ray_single_avx2(const struct heightfield *field, const struct ray *ray, struct ray_hit *hit);
void ray_stream_avx2(const struct heightfield *field, const struct ray *rays, size_t count,
                     struct ray_hit *hits);

#define KERNELS_OF_MESHES(level)                                                                   \
    bool mesh_column_##level(const struct mesh *mesh, double x, double y, bool is_up,              \
                             double limit, double *z, uint32_t *polygon);                          \
    bool mesh_floor_##level(const struct mesh *mesh, struct vec3 point, double reach_up_m,         \
                            struct mesh_contact *out);                                             \
    void mesh_heights_##level(const struct mesh *mesh, const struct vec3 *points, size_t count,    \
                              double reach_up_m, struct mesh_height *out);                         \
    void mesh_shadows_##level(const struct mesh *tree, const struct shadow_blocks *blocks,         \
                              const struct vec3 *origins, size_t count, struct vec3 centre,        \
                              double reach_m, uint8_t *answers);                                   \
    void tree_ray_##level(const struct ray_tree *tree, const struct ray_tree_line *line);          \
    void tree_sweep_##level(const struct ray_tree *tree, const struct ray_tree_line *line,         \
                            const double reach[3]);                                                \
    void tree_rays_##level(const struct ray_tree *tree, const struct ray_tree_line *lines,         \
                           size_t count);                                                          \
    bool mesh_lane_test_##level(void *asker, const struct ray_tree_block *block, unsigned lane,    \
                                double *end);

KERNELS_OF_MESHES(scalar)
KERNELS_OF_MESHES(avx2)

enum walk_begin mesh_walk_begin_avx2(struct walk *w, const struct mesh *mesh, const struct ray *ray,
                                     enum ray_mode mode, struct begun_ray *begun);
enum walk_begin mesh_ray_avx2(const struct mesh *mesh, const struct ray *ray, enum ray_mode mode,
                              struct mesh_hit *hit);

#endif
