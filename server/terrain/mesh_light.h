/*
 * A mesh under one light: for rays that all run the same way, towards a light that is far away, a
 * quadtree whose gravity is the light's direction; for rays that all run to one place, the sphere
 * of directions around it. They tell what such a ray meets, bit for bit as mesh_ray does, several
 * times as fast. How: mesh_light.c, mesh_lamp.c.
 */
#ifndef KOTA_TERRAIN_MESH_LIGHT_H
#define KOTA_TERRAIN_MESH_LIGHT_H

#include "terrain/mesh.h"

struct mesh_light;

/*
 * The tree of a mesh for rays along `toward`, a unit vector: from the ground to the light. Keeps no
 * reference to the mesh: it goes with every mesh of the same content (mesh_content).
 *
 * ERR_UNPROCESSABLE  rays have to be asked: along the mesh's own gravity, where they are as fast;
 *                    or some polygon is all but parallel to the light
 * ERR_NO_MEMORY, ERR_TOO_LARGE
 * About 2 µs a polygon, and about as much memory as the mesh itself: no loop's thread.
 */
struct mesh_light *mesh_light_create(const struct mesh *mesh, struct vec3 toward, struct err *err);

/*
 * The same for a light at a place (finite, in the locale's frame): the polygons by their directions
 * from there. Only the questions whose names end with _to may be put to it, and no others.
 *
 * ERR_UNPROCESSABLE  rays have to be asked: a radial mesh, a light that is more than 64 times the
 *                    mesh away, or in the planes of many polygons
 * ERR_NO_MEMORY
 * About 1 to 3 µs and 100 to 200 bytes a polygon: no loop's thread.
 */
struct mesh_light *mesh_light_create_at(const struct mesh *mesh, struct vec3 place,
                                        struct err *err);
struct mesh_light *mesh_light_ref(struct mesh_light *light);
void mesh_light_unref(struct mesh_light *light); /* NULL is fine */

size_t mesh_light_bytes(const struct mesh_light *light);

/* Would a tree along `toward` be of no use: does it run along the mesh's own gravity, or is that
 * radial? */
bool mesh_light_is_vertical(const struct mesh *mesh, struct vec3 toward);

/*
 * The first polygons along rays without end from origins[count] (finite) along the light's
 * `toward`: hits[count], each with the bits of mesh_ray; t is INFINITY and the rest untouched where
 * there is none. `mesh` is the one that the tree was made of, or has the same content. Any thread.
 */
void mesh_light_hits(const struct mesh_light *light, const struct mesh *mesh,
                     const struct vec3 *origins, size_t count, struct mesh_hit *hits);

/* Only whether there is one: is_hit[count], 1 or 0. Faster; best with 64 origins and more. */
void mesh_light_any(const struct mesh_light *light, const struct mesh *mesh,
                    const struct vec3 *origins, size_t count, uint8_t *is_hit);

/*
 * Of a light at a place: rays[count] that all run to it (to some roundings) and end at it or before
 * it. The bits of mesh_ray, RAY_LIGHT_ANY; is_hit[count], 1 or 0. Any thread.
 */
void mesh_light_any_to(const struct mesh_light *light, const struct mesh *mesh,
                       const struct ray *rays, size_t count, uint8_t *is_hit);

/* What is first on them, as mesh_light_hits tells it. Saves the rays that reach the light. */
void mesh_light_hits_to(const struct mesh_light *light, const struct mesh *mesh,
                        const struct ray *rays, size_t count, struct mesh_hit *hits);

#endif
