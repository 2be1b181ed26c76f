/*
 * Making the cells of a floor grid: shared by what makes the whole (floor_grid.c), edits it
 * (floor_grid_edit.c) and checks it (floor_grid_validate.c). Private to terrain/mesh/.
 */
#ifndef KOTA_TERRAIN_FLOOR_GRID_CELLS_H
#define KOTA_TERRAIN_FLOOR_GRID_CELLS_H

#include "terrain/mesh/floor_grid.h"
#include "terrain/mesh/mesh_data.h"

enum {
    GRID_POLYGONS_MAX = 1 << 24, /* with more there is no grid */
    GRID_LEVELS_MAX = 6,
    GRID_REFS_PER_FLOOR = 4,
    GRID_REFS_FREE = 1 << 16,
    GRID_TESTS_MOST = 64, /* a floor, to find the cells that it reaches into */
    OUTLINE_GROUPS = 2    /* of four edges each */
};

#define GRID_CELL_NEARS 262144.0 /* no cell is narrower */

/* As an index, for there are fewer polygons. */
#define COLUMN_NONE COLUMN_POLYGON

struct grid_maker {
    const struct mesh *mesh;
    const struct floor_grid *grid; /* its levels are set */
    struct column_cell *root;      /* NULL: they are the first of cells */
    struct column_cell *cells;
    struct column_block *blocks;
    size_t cell_count, cell_capacity, block_count, block_capacity;
    uint32_t leaf_refs; /* with more a cell is divided */
    uint64_t refs, refs_left;
    double cell_area;     /* of the cells that hold any floors */
    size_t unused_blocks; /* of cells that were made again */
    bool is_short;        /* of memory; or the pace has ended it, then err has why */
    struct pace *pace;    /* of a maker on the caller's thread */
    struct err *err;
};

/* A cell that is not made yet. */
struct grid_open_cell {
    struct box2 box;
    uint32_t *list;              /* rising */
    uint32_t count, level, bits; /* bits: how often the root's side was halved */
    size_t place;                /* in the root, or in cells */
};

/* Polygon `polygon` reaches into cell `cell` of a grid. */
struct grid_pair {
    uint32_t cell, polygon;
};

/* Four edges by pairs, each from (x, y) on, counter-clockwise. */
struct outline_edges {
    f64x2 x[2], y[2], dx[2], dy[2];
};

/* A polygon's box and edges. */
struct outline {
    f64x2 low, high;
    struct face face;
    struct outline_edges edges[OUTLINE_GROUPS]; /* the first */
};

/* A grid of a mesh, seen by its polygons. */
struct grid_net {
    f64x2 low, width, scale; /* of its box; of a cell; cells a metre */
    uint32_t side;
    double near;
};

/* The cells of a grid that a box may reach into. */
struct cell_range {
    uint32_t column0, column1, row0, row1;
};

/* Which polygon reaches into which cell of a grid. */
struct grid_pairs {
    struct grid_pair *at;
    size_t count, capacity, most;
    uint64_t tests, tests_most;
    bool is_short; /* of memory */
};

/* Is it in the grid? */
static inline bool grid_is_floor(const struct mesh *mesh, uint32_t polygon)
{
    return !mesh_is_wall(&mesh->polygons[polygon]) && mesh_is_first(mesh, polygon);
}

static inline enum err_code grid_no_memory(const struct mesh *mesh, struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "no memory for the floor grid of %llu polygons",
                   (unsigned long long)mesh->header->count[MESH_POLYGONS]);
}

struct box2 grid_cell_box(const struct box2 *box, uint32_t side, uint32_t column, uint32_t row);
struct grid_net grid_net_of(const struct box2 *box, uint32_t side, double near);
struct cell_range grid_cells_of(const struct grid_net *net, const struct box2 *own);

void outline_set(struct outline *o, const struct mesh *mesh, uint32_t polygon);

/*
 * Does a floor reach into a box grown by `near`, or by 1.5 times that beside a slanted edge?
 * Separating axes: exact for convex polygons. By the slack a point may be over it from the next
 * cell, and be in that by rounding.
 */
bool outline_reaches(const struct box2 *box, const struct outline *o, double near);

/* Descending by the highest point; where that is the same, by index. False without memory. */
bool grid_list_sort(const struct mesh *mesh, uint32_t *list, uint32_t count);

/* The blocks of a sorted list: stack_blocks(count) of them. */
void grid_blocks_set(struct column_block *block, const struct grid_maker *m, const uint32_t *list,
                     uint32_t count, const struct box2 *box);

/* False: more than `most`, or too many tests (slivers in large boxes), or no memory. */
bool grid_pairs_add(struct grid_pairs *pairs, const struct mesh *mesh, const struct grid_net *net,
                    uint32_t polygon);

/*
 * The lists of cells from pairs, by a counting sort: starts[cells + 1], zero at first. Count all
 * pairs, sum up, and fill all from the last one on: lists keep their order.
 */
void grid_lists_count(const struct grid_pairs *pairs, uint32_t *starts);
void grid_lists_sum(uint32_t *starts, size_t cells);
void grid_lists_fill(const struct grid_pairs *pairs, uint32_t *starts, uint32_t *lists);

/* Makes a cell, and those that it is divided into. */
void grid_cell_make(struct grid_maker *m, const struct grid_open_cell *open);

#endif
