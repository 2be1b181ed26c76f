/*
 * Each cell's list and blocks against the polygons: the cells are made again by the tests of
 * floor_grid_cells.c, and compared.
 */
#include "terrain/mesh/floor_grid_cells.h"

#include "terrain/mesh/floor_grid_lut.h"
#include "terrain/mesh/mesh_stack.h"

#include <stdlib.h>
#include <string.h>

/*
 * A cell whose list should be this: the blocks are those of the list, or each of its own cells has
 * those of the list that reach into it.
 */
static bool cell_is_right(const struct grid_maker *m, size_t at, struct grid_open_cell *want)
{
    const struct floor_grid *c = m->grid;
    const struct column_cell *cell = &c->cells[at];
    uint32_t side = cell->count & ~COLUMN_INNER;
    size_t blocks = stack_blocks(want->count);
    bool is_right;

    if (!(cell->count & COLUMN_INNER)) {
        struct column_block *scratch;

        if (want->count == 0)
            return cell->count == 0 && cell->first == 0;
        scratch = aligned_alloc(sizeof *scratch, blocks * sizeof *scratch);
        is_right = scratch && grid_list_sort(m->mesh, want->list, want->count) &&
                   cell->count == want->count && cell->first + blocks <= c->block_count;
        if (is_right) {
            grid_blocks_set(scratch, m, want->list, want->count, &want->box);
            is_right = memcmp(scratch, c->blocks + cell->first, blocks * sizeof *scratch) == 0;
        }
        free(scratch);
        return is_right;
    }
    uint32_t *list = malloc((want->count + 1) * sizeof *list);

    is_right = list && want->level <= GRID_LEVELS_MAX && want->count > 0;
    for (uint32_t i = 0; is_right && i < side * side; i++) {
        struct grid_open_cell child = {.box = grid_cell_box(&want->box, side, i % side, i / side),
                                       .list = list,
                                       .level = want->level + 1};

        for (uint32_t k = 0; k < want->count; k++) {
            struct outline outline;

            outline_set(&outline, m->mesh, want->list[k]);
            if (outline_reaches(&child.box, &outline, m->mesh->header->near))
                list[child.count++] = want->list[k];
        }
        is_right = cell->first + i < c->cell_count && cell_is_right(m, cell->first + i, &child);
    }
    free(list);
    return is_right;
}

/* The cells of the root, each with its list of all pairs. */
static bool cells_are_right(const struct grid_maker *m, struct grid_pairs *pairs, uint32_t *starts,
                            uint32_t *lists)
{
    const struct floor_grid *c = m->grid;
    const struct box2 box = {c->x_min, c->y_min, c->x_max, c->y_max};
    struct grid_net net = grid_net_of(&box, c->side, m->mesh->header->near);
    bool is_right = true;

    for (uint32_t i = 0; i < m->mesh->header->count[MESH_POLYGONS]; i++)
        if (grid_is_floor(m->mesh, i) && !grid_pairs_add(pairs, m->mesh, &net, i))
            return false;
    grid_lists_count(pairs, starts);
    grid_lists_sum(starts, (size_t)c->side * c->side);
    grid_lists_fill(pairs, starts, lists);
    for (uint32_t i = 0; is_right && i < c->side * c->side; i++) {
        struct grid_open_cell want = {.box = grid_cell_box(&box, c->side, i % c->side, i / c->side),
                                      .list = lists + starts[i],
                                      .count = starts[i + 1] - starts[i],
                                      .level = 1};

        is_right = cell_is_right(m, i, &want);
    }
    return is_right;
}

bool floor_grid_validate(const struct mesh *mesh, struct err *err)
{
    const struct floor_grid *c = &mesh->grid;
    struct grid_maker m = {.mesh = mesh, .grid = c};
    size_t cells = (size_t)c->side * c->side, most = c->refs + cells;
    struct grid_pairs pairs = {.most = most, .tests_most = UINT64_MAX};
    uint32_t *starts = calloc(cells + 1, sizeof *starts);
    uint32_t *lists = malloc((most + 1) * sizeof *lists);
    bool is_right =
        c->side == 0 || (starts && lists && cells_are_right(&m, &pairs, starts, lists) &&
                         floor_grid_lut_validate(mesh));

    free(pairs.at);
    free(starts);
    free(lists);
    if (!is_right)
        err_set(err, ERR_INTERNAL, "the floor grid is not that of the polygons");
    return is_right;
}
