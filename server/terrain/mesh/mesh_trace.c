/*
 * The quadtree as text Q draws it: cells with cells of their own stand for several levels of equal
 * quadrants (floor_grid.c), so a leaf's depth is how often the root's side was halved.
 */
#include "terrain/mesh/mesh_trace.h"

#include "terrain/mesh/floor_grid_cells.h"
#include "terrain/mesh/mesh_contact.h"
#include "terrain/mesh/mesh_data.h"

struct mesh_axes mesh_axes(const struct mesh *mesh)
{
    const struct mesh_header *h = mesh->header;

    if (!h)
        return (struct mesh_axes){{0, 0, 0}, {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    return (struct mesh_axes){h->centre,
                              {mesh_turn_back(h, (struct vec3){1, 0, 0}),
                               mesh_turn_back(h, (struct vec3){0, 1, 0}),
                               mesh_turn_back(h, (struct vec3){0, 0, 1})}};
}

/* ---- leaves --------------------------------------------------------------------------------- */

/* A cell and where it lies; the root is one whose cells are the first. */
struct place {
    struct box2 box;
    uint32_t first, side, depth; /* of its cells, and their depth */
};

static struct place root_place(const struct floor_grid *grid)
{
    return (struct place){
        .box = {grid->x_min, grid->y_min, grid->x_max, grid->y_max},
        .side = grid->side,
        .depth = floor_grid_root_bits(grid->side),
    };
}

static struct place place_below(const struct place *above, const struct column_cell *cell,
                                uint32_t i)
{
    uint32_t side = cell->count & ~COLUMN_INNER;

    return (struct place){
        .box = grid_cell_box(&above->box, above->side, i % above->side, i / above->side),
        .first = cell->first,
        .side = side,
        .depth = above->depth + floor_grid_root_bits(side),
    };
}

static struct mesh_leaf leaf_of(const struct place *above, const struct column_cell *cell,
                                uint32_t i)
{
    struct box2 box = grid_cell_box(&above->box, above->side, i % above->side, i / above->side);

    return (struct mesh_leaf){box.x_min, box.y_min,    box.x_max,
                              box.y_max, above->depth, cell->count};
}

/* The leaves below a place, as many as there is room for, and one more. */
struct leaves {
    const struct floor_grid *grid;
    struct box2 wanted;
    struct mesh_leaf *out;
    size_t count, capacity;
};

static void leaves_add(struct leaves *leaves, const struct place *place)
{
    struct grid_net net = grid_net_of(&place->box, place->side, 0);
    struct cell_range in = grid_cells_of(&net, &leaves->wanted);

    for (uint32_t row = in.row0; row <= in.row1; row++)
        for (uint32_t column = in.column0; column <= in.column1; column++) {
            uint32_t i = row * place->side + column;
            const struct column_cell *cell = &leaves->grid->cells[place->first + i];

            if (leaves->count > leaves->capacity)
                return;
            if (cell->count & COLUMN_INNER) {
                struct place below = place_below(place, cell, i);

                leaves_add(leaves, &below);
            } else if (leaves->count++ < leaves->capacity) {
                leaves->out[leaves->count - 1] = leaf_of(place, cell, i);
            }
        }
}

size_t mesh_leaves(const struct mesh *mesh, const struct box3 *box, struct mesh_leaf *out,
                   size_t capacity)
{
    const struct floor_grid *grid = &mesh->grid;
    struct place root = root_place(grid);
    struct leaves leaves = {
        .grid = grid,
        .wanted = {box->min.x, box->min.y, box->max.x, box->max.y},
        .out = out,
        .capacity = capacity,
    };

    if (grid->side > 0 && box->min.x <= grid->x_max && box->max.x >= grid->x_min &&
        box->min.y <= grid->y_max && box->max.y >= grid->y_min)
        leaves_add(&leaves, &root);
    return leaves.count;
}

/* ---- a ray along gravity -------------------------------------------------------------------- */

static uint32_t part_of(double x, double min, double max, uint32_t side)
{
    double part = (x - min) / (max - min) * side;

    return part < side - 1 ? (uint32_t)part : side - 1;
}

bool mesh_column_trace(const struct mesh *mesh, double x, double y, struct ray_tree_trace *trace)
{
    const struct floor_grid *grid = &mesh->grid;
    struct place place = root_place(grid);

    if (grid->side == 0 ||
        !(x >= grid->x_min && x <= grid->x_max && y >= grid->y_min && y <= grid->y_max))
        return false;
    for (;;) {
        uint32_t column = part_of(x, place.box.x_min, place.box.x_max, place.side);
        uint32_t row = part_of(y, place.box.y_min, place.box.y_max, place.side);
        uint32_t i = row * place.side + column;
        const struct column_cell *cell = &grid->cells[place.first + i];
        struct mesh_leaf leaf = leaf_of(&place, cell, i);

        if (cell->count & COLUMN_INNER) {
            place = place_below(&place, cell, i);
            continue;
        }
        ray_tree_trace_box(trace, &(struct ray_tree_box){
                                      .level = leaf.depth,
                                      .bounds = {{leaf.x_min, leaf.y_min, mesh->header->z_min},
                                                 {leaf.x_max, leaf.y_max, mesh->header->z_max}},
                                      .is_entered = true,
                                  });
        for (uint32_t k = 0; k < cell->count; k++) {
            uint32_t id = *column_lane(&grid->blocks[cell->first], cell->count, k).polygon;

            if ((id & COLUMN_POLYGON) != COLUMN_NONE)
                ray_tree_trace_polygon(trace, id & COLUMN_POLYGON);
        }
        return true;
    }
}
