/*
 * Polygon soups: see soup.h.
 */
#include "tests/support/soup.h"

#include "tests/support/test_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void reserve(void **block, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return;
    *capacity = 2 * count + 64;
    *block = realloc(*block, *capacity * size);
    if (*block == NULL)
        abort();
}

uint32_t soup_vertex(struct soup *soup, struct vec3 vertex)
{
    reserve((void **)&soup->vertices, &soup->vertex_capacity, soup->vertex_count + 1,
            sizeof vertex);
    soup->vertices[soup->vertex_count] = vertex;
    return (uint32_t)soup->vertex_count++;
}

void soup_polygon(struct soup *soup, const uint32_t *corners, uint32_t count)
{
    reserve((void **)&soup->corners, &soup->corner_capacity, soup->corner_count + count + 1,
            sizeof *corners);
    reserve((void **)&soup->starts, &soup->start_capacity, soup->polygon_count + 2,
            sizeof *corners);
    if (count > 0)
        memcpy(soup->corners + soup->corner_count, corners, count * sizeof *corners);
    soup->starts[soup->polygon_count] = (uint32_t)soup->corner_count;
    soup->corner_count += count;
    soup->starts[++soup->polygon_count] = (uint32_t)soup->corner_count;
}

void soup_add(struct soup *soup, const struct vec3 *vertices, uint32_t count)
{
    uint32_t *corners = malloc((count + 1) * sizeof *corners);

    if (corners == NULL)
        abort();
    for (uint32_t i = 0; i < count; i++)
        corners[i] = soup_vertex(soup, vertices[i]);
    soup_polygon(soup, corners, count);
    free(corners);
}

void soup_square(struct soup *soup, double x, double y, double side, double z)
{
    const struct vec3 v[] = {
        {x, y, z}, {x + side, y, z}, {x + side, y + side, z}, {x, y + side, z}};

    soup_add(soup, v, 4);
}

void soup_free(struct soup *soup)
{
    free(soup->vertices);
    free(soup->corners);
    free(soup->starts);
    memset(soup, 0, sizeof *soup);
}

struct polygon_soup soup_view(const struct soup *soup)
{
    return (struct polygon_soup){soup->vertices, soup->vertex_count, soup->corners, soup->starts,
                                 soup->polygon_count};
}

struct mesh *soup_mesh(const struct soup *soup, const struct mesh_options *options,
                       struct mesh_import *import)
{
    struct polygon_soup view = soup_view(soup);
    struct mesh_import unused;
    struct err err;
    struct mesh *mesh = mesh_create(&view, options, import ? import : &unused, &err);

    if (mesh == NULL)
        fail_msg("mesh_create: %s", err.msg);
    if (!mesh_validate(mesh, &err))
        fail_msg("mesh_validate: %s", err.msg);
    return mesh;
}

static void face_read(struct soup *soup, const char *line)
{
    uint32_t corners[256], count = 0;
    char *end;

    for (long index = strtol(line, &end, 10); end != line && count < 256;
         index = strtol(line, &end, 10)) {
        long place = index < 0 ? (long)soup->vertex_count + index : index - 1;

        corners[count++] = (uint32_t)place;
        line = end + strcspn(end, " \t\r\n");
    }
    soup_polygon(soup, corners, count);
}

bool soup_read(struct soup *soup, const char *relative, bool up_y)
{
    const char *path = test_data_path(relative);
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    char line[4096];

    if (file == NULL)
        return false;
    while (fgets(line, sizeof line, file) != NULL) {
        struct vec3 v;

        if (strncmp(line, "f ", 2) == 0)
            face_read(soup, line + 2);
        else if (sscanf(line, "v %lf %lf %lf", &v.x, &v.y, &v.z) == 3)
            soup_vertex(soup, up_y ? (struct vec3){v.x, -v.z, v.y} : v);
    }
    fclose(file);
    return true;
}
