/*
 * Closed triangle meshes for tests, and what brute force says of them. Free with polygon_set_free.
 */
#ifndef KOTA_TESTS_SOLID_MAKE_H
#define KOTA_TESTS_SOLID_MAKE_H

#include "formats/polygon/polygon_file.h"
#include "support/random.h"

struct polygon_set solid_box(struct vec3 min, struct vec3 max);

/*
 * A profile (distance from the z axis, z) turned around the axis in `turns` steps. It goes from the
 * axis to the axis, anticlockwise seen with the axis on the left; or, with is_ring, it is a closed
 * line beside the axis, anticlockwise too.
 */
struct polygon_set solid_revolve(const double (*profile)[2], uint32_t count, bool is_ring,
                                 uint32_t turns);
struct polygon_set solid_sphere(double radius, uint32_t rings);
struct polygon_set solid_torus(double ring_radius, double tube_radius, uint32_t steps);

/* A bowl: half a sphere outside, a wall of that thickness. */
struct polygon_set solid_bowl(double radius, double wall, uint32_t rings);

/* Both in one mesh; takes both. With is_hole the second one is turned inside out. */
struct polygon_set solid_join(struct polygon_set a, struct polygon_set b, bool is_hole);

/* All vertices: turned by the rotation that the seed gives, then moved. */
void solid_turn(struct polygon_set *set, struct random *random, struct vec3 move);

/* Distance to the surface, triangle by triangle, and the winding number by solid angles. */
double solid_distance(const struct polygon_set *set, struct vec3 at);
double solid_winding(const struct polygon_set *set, struct vec3 at);

/* A point of the surface, even by area, and its triangle's outward normal (unit). */
struct vec3 solid_point(const struct polygon_set *set, struct random *random, struct vec3 *normal);

#endif
