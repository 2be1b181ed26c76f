/*
 * Polygon soups for tests and benchmarks: grown polygon by polygon, or read from a simple OBJ file.
 */
#ifndef KOTA_TESTS_SOUP_H
#define KOTA_TESTS_SOUP_H

#include "terrain/mesh/mesh.h"

struct soup {
    struct vec3 *vertices;
    uint32_t *corners, *starts;
    size_t vertex_count, vertex_capacity;
    size_t corner_count, corner_capacity;
    size_t polygon_count, start_capacity;
};

/* All of these abort without memory. A soup of zeros is empty. */
uint32_t soup_vertex(struct soup *soup, struct vec3 vertex);
void soup_polygon(struct soup *soup, const uint32_t *corners, uint32_t count);
/* A polygon with vertices of its own. */
void soup_add(struct soup *soup, const struct vec3 *vertices, uint32_t count);
/* A level square from its corner of the smallest x and y. */
void soup_square(struct soup *soup, double x, double y, double side, double z);
void soup_free(struct soup *soup);

struct polygon_soup soup_view(const struct soup *soup);

/* A valid mesh of it; import may be NULL. A test fails where there is none. */
struct mesh *soup_mesh(const struct soup *soup, const struct mesh_options *options,
                       struct mesh_import *import);

/*
 * v and f lines of an OBJ file; with up_y (x, y, z) becomes (x, -z, y). False when the file is
 * absent from the shared data.
 */
bool soup_read(struct soup *soup, const char *relative, bool up_y);

#endif
