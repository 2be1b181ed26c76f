/*
 * A list that grows, and how it is written.
 *
 * Corners are one when all three numbers are the same, so polygons that were given the same corners
 * share them in the file, and an edge of two of them is the same two numbers in both `f` lines. The
 * search for an equal corner is linear: the demo's meshes have some hundred,
 * the planet three thousand.
 *
 * Numbers are written with as few digits as read back as the same float64. The shapes of the
 * demo keep to binary fractions, whose decimals are short.
 */
#include "deploy/demo/polygons.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void polygons_add(struct polygons *list, const struct vec3 *corners, uint32_t count)
{
    struct polygon *polygon;

    CHECK(count >= 3 && count <= POLYGON_CORNERS_MAX);
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct polygon *at = realloc(list->at, room * sizeof *at);

        if (!at) {
            list->no_memory = true;
            return;
        }
        list->at = at;
        list->room = room;
    }
    polygon = &list->at[list->count++];
    *polygon = (struct polygon){.corners = count, .group = list->group};
    memcpy(polygon->at, corners, count * sizeof *corners);
}

void polygons_fan(struct polygons *list, struct vec3 apex, const struct vec3 *chain, uint32_t count)
{
    for (uint32_t i = 0; i + 1 < count; i++)
        polygons_add(list, (struct vec3[]){apex, chain[i], chain[i + 1]}, 3);
}

void polygons_destroy(struct polygons *list)
{
    free(list->at);
    *list = (struct polygons){0};
}

/* ---- OBJ ---------------------------------------------------------------------------------- */

static void print_number(FILE *file, double value)
{
    char text[32];

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value + 0.0); /* no -0 */
        if (strtod(text, NULL) == value)
            break;
    }
    fprintf(file, " %s", text);
}

static void print_corner(FILE *file, struct vec3 at)
{
    fputc('v', file);
    print_number(file, at.x);
    print_number(file, at.y);
    print_number(file, at.z);
    fputc('\n', file);
}

static size_t corner_index(struct vec3 *known, size_t *count, struct vec3 at)
{
    size_t i = 0;

    while (i < *count && !(known[i].x == at.x && known[i].y == at.y && known[i].z == at.z))
        i++;
    if (i == *count)
        known[(*count)++] = at;
    return i;
}

static void print_all(FILE *file, const struct polygons *list, const char *title, bool turned,
                      struct vec3 translate, struct vec3 *known, size_t *indices)
{
    const char *group = NULL;
    size_t count = 0, k = 0;

    for (size_t i = 0; i < list->count; i++)
        for (uint32_t c = 0; c < list->at[i].corners; c++) {
            struct vec3 at = list->at[i].at[c];

            if (turned)
                at = (struct vec3){-at.x, -at.y, at.z};
            indices[k++] = corner_index(known, &count, vec3_add(at, translate));
        }
    fprintf(file, "# %s: %zu corners, %zu convex polygons; metres, Z up\n", title, count,
            list->count);
    for (size_t i = 0; i < count; i++)
        print_corner(file, known[i]);
    k = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct polygon *polygon = &list->at[i];

        if (polygon->group && (!group || strcmp(group, polygon->group)))
            fprintf(file, "g %s\n", group = polygon->group);
        fputc('f', file);
        for (uint32_t c = 0; c < polygon->corners; c++)
            fprintf(file, " %zu", indices[k++] + 1);
        fputc('\n', file);
    }
}

enum err_code polygons_obj(const struct polygons *list, const char *title, bool turned,
                           struct vec3 translate, char **text, size_t *length, struct err *err)
{
    size_t room = list->count * POLYGON_CORNERS_MAX + 1;
    struct vec3 *known = malloc(room * sizeof *known);
    size_t *indices = malloc(room * sizeof *indices);
    FILE *file = NULL;
    bool written = false;

    *text = NULL;
    if (known && indices && !list->no_memory)
        file = open_memstream(text, length);
    if (file) {
        print_all(file, list, title, turned, translate, known, indices);
        written = !ferror(file);
        written = !fclose(file) && written;
    }
    free(known);
    free(indices);
    if (written)
        return err->code = ERR_OK;
    free(*text);
    *text = NULL;
    return err_set(err, ERR_NO_MEMORY, "no memory for the polygons of %s", title);
}
