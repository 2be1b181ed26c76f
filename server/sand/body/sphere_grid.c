/*
 * A hash grid of points.
 *
 * Cells are as wide as the greatest distance of a query, so the 27 cells around a point hold all
 * neighbours. Cells of any place go by their hash into as many chains as there is room for points;
 * two cells in one chain cost only comparisons. The arrays double when they are full.
 */
#include "sand/body/sphere_grid.h"

#include <stdlib.h>
#include <string.h>

void sphere_grid_init(struct sphere_grid *grid, double cell_m)
{
    *grid = (struct sphere_grid){.cell_m = cell_m};
}

void sphere_grid_free(struct sphere_grid *grid)
{
    free(grid->centres);
    free(grid->next);
    free(grid->first);
    sphere_grid_init(grid, grid->cell_m);
}

static uint32_t bucket(const struct sphere_grid *grid, double x, double y, double z)
{
    uint64_t h = (uint64_t)(int64_t)x * 0x9e3779b97f4a7c15u;

    h = (h ^ (uint64_t)(int64_t)y) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 29) ^ (uint64_t)(int64_t)z) * 0x94d049bb133111ebu;
    return (uint32_t)(h >> 32) & (grid->buckets - 1);
}

static void chain(struct sphere_grid *grid, uint32_t i)
{
    const struct vec3 *c = &grid->centres[i];
    uint32_t b = bucket(grid, floor(c->x / grid->cell_m), floor(c->y / grid->cell_m),
                        floor(c->z / grid->cell_m));

    grid->next[i] = grid->first[b];
    grid->first[b] = i;
}

static bool grow(struct sphere_grid *grid)
{
    uint32_t room = grid->room ? 2 * grid->room : 1024;
    struct vec3 *centres = realloc(grid->centres, room * sizeof *centres);
    uint32_t *next, *first;

    if (!centres)
        return false;
    grid->centres = centres;
    next = malloc(room * sizeof *next);
    first = malloc(room * sizeof *first);
    if (!next || !first) {
        free(next);
        free(first);
        return false;
    }
    free(grid->next);
    free(grid->first);
    grid->next = next;
    grid->first = first;
    grid->room = grid->buckets = room;
    memset(first, 0xff, room * sizeof *first);
    for (uint32_t i = 0; i < grid->count; i++)
        chain(grid, i);
    return true;
}

bool sphere_grid_add(struct sphere_grid *grid, struct vec3 centre)
{
    if (grid->count == grid->room && !grow(grid))
        return false;
    grid->centres[grid->count] = centre;
    chain(grid, grid->count++);
    return true;
}

static double chain_nearest2(const struct sphere_grid *grid, uint32_t b, struct vec3 at,
                             double best2)
{
    for (uint32_t i = grid->first[b]; i != UINT32_MAX; i = grid->next[i]) {
        struct vec3 off = vec3_sub(grid->centres[i], at);

        best2 = fmin(best2, vec3_dot(off, off));
    }
    return best2;
}

double sphere_grid_nearest(const struct sphere_grid *grid, struct vec3 at, double within_m)
{
    double x = floor(at.x / grid->cell_m), y = floor(at.y / grid->cell_m);
    double z = floor(at.z / grid->cell_m), best2 = within_m * within_m;

    if (grid->count == 0)
        return within_m;
    for (int i = 0; i < 27; i++)
        best2 = chain_nearest2(grid, bucket(grid, x + i % 3 - 1, y + i / 3 % 3 - 1, z + i / 9 - 1),
                               at, best2);
    return best2 < within_m * within_m ? sqrt(best2) : within_m;
}
