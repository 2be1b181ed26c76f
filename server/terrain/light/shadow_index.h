/*
 * A mesh under one light that is far away: a mesh whose gravity is the light's direction. It
 * answers rays towards the light, bit for bit as mesh_ray does, several times as fast. How:
 * shadow_index.c.
 */
#ifndef KOTA_TERRAIN_SHADOW_INDEX_H
#define KOTA_TERRAIN_SHADOW_INDEX_H

#include "terrain/mesh/mesh.h"

struct shadow_index;

/*
 * The tree of a mesh for rays along `toward`, a unit vector: from the ground to the light. Keeps no
 * reference to the mesh: it goes with every mesh of the same content (mesh_content).
 *
 * ERR_UNPROCESSABLE  rays are to be used: along the mesh's own gravity, where they are as fast;
 *                    or some polygon is all but parallel to the light
 * ERR_NO_MEMORY, ERR_TOO_LARGE
 * About 2 µs a polygon, and about as much memory as the mesh itself: no loop's thread.
 */
struct shadow_index *shadow_index_create(const struct mesh *mesh, struct vec3 toward,
                                         struct err *err);

struct shadow_index *shadow_index_ref(struct shadow_index *light);
void shadow_index_unref(struct shadow_index *light); /* NULL is fine */

size_t shadow_index_bytes(const struct shadow_index *light);

/* Would a tree along `toward` be of no use: does it run along the mesh's own gravity, is that
 * radial, or is the mesh of instances? */
bool shadow_index_is_vertical(const struct mesh *mesh, struct vec3 toward);

/*
 * The first polygons along rays without end from origins[count] (finite) along the light's
 * `toward`: hits[count], each with the bits of mesh_ray; t is INFINITY and the rest untouched where
 * there is none. `mesh` is the one that the tree was made of, or has the same content. Any thread.
 */
void shadow_index_hits(const struct shadow_index *light, const struct mesh *mesh,
                       const struct vec3 *origins, size_t count, struct mesh_hit *hits);

/* Only whether there is one: is_hit[count], 1 or 0. Faster; best with 64 origins and more. */
void shadow_index_any(const struct shadow_index *light, const struct mesh *mesh,
                      const struct vec3 *origins, size_t count, uint8_t *is_hit);

#endif
