/*
 * Columns: where the floors over a point are found in a few cache lines and without a guess.
 *
 * Problem: Q's leaf with its list, eight polygons and their edge lines is a dozen cache lines, each
 * known only from the one before, and as many unpredictable branches: 170 to 1300 ns a point.
 * Approach: a quadtree with wide nodes. The root has as many cells at once as the terrain needs,
 * and crowded cells have 2 × 2 to 16 × 16 cells of their own: each stands for some levels of Q's
 * tree with equal quadrants. A leaf lists its floors in blocks of eight, and a block holds the
 * numbers that say which of the eight are above the point: for each edge that cuts the cell a line
 * of small integers, relative to the cell. Eight polygons are 24 multiplications and no branch. An
 * edge that does not cut the cell says nothing there and is left out; a polygon with more than
 * three that do is always tested by its lines.
 *
 * Exactness. The small lines only sort out. An edge's a and b are in units of its own, the smallest
 * of which both are whole to within 1/COLUMN_WHOLE: that much times half a cell, 512, is the most
 * that both directions are off by, for c is rounded at the cell's middle and moved to its
 * corner, which is a whole number. With half a unit of the place and of c, 127 and 128, and the
 * slack, which is less than 2^-18 of any cell, that is less than COLUMN_DOUBT, mostly a 4000th of
 * the cell. A place nearer to an edge is tested by the polygon's own lines in double precision, and
 * heights always come from its plane. So the grid changes no bit of an answer.
 *
 * Storeys. Lists run from the highest floor down. The bits over the index of a polygon are the
 * levels, of 16 in the mesh, of its lowest and its highest point: floors whose lowest point is
 * above the point, or whose highest is below the best so far, are left out by the same
 * vectors, where floors lie over one another in many places. Long lists: mesh_stack.c. Equal
 * floors: mesh_same.c.
 *
 * Borders. A cell lists floors within `near` of it, too: more than the slack by which a point may
 * be beside its floor, and the roundings by which it may be in the cell beside its own. So no look
 * is taken across a border. No cell is narrower than 2^18 near.
 *
 * Memory is bounded: cells of their own must pay by fewer floors in them, and all lists together
 * have at most REFS_PER_FLOOR for each floor and REFS_FREE more.
 *
 * Parallel: the floors of the root's cells are found by chunks of polygons, and the cells are made
 * by strips of rows. Neither depends on the number of threads.
 *
 * Tried and dropped: Q's quadtree with cuts through vertices beside the grid (a third of all memory
 * and build time, and used for points outside only); lines of 16 bits; lists of up to 8.
 */
#include "terrain/mesh/floor_grid.h"

#include "base/huge.h"
#include "terrain/mesh/floor_grid_cells.h"
#include "terrain/mesh/floor_grid_lut.h"
#include "terrain/crew.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIDE_MAX = 1 << 13, /* of the root */
    CHUNK = 1 << 14     /* polygons of a part of the work, and floors of a strip of rows */
};

/* Floors for each of the root's cells: with those that reach in over its borders a list of about
 * 13, and most lists fit into the two blocks that are tested together. */
#define ROOT_FLOORS 4.7
#define ROOT_SHARE 0.21
#define STACKED_LEAST 1.5 /* with more floors over a place than this the next one is expected */

/* Seen from above. */
static double floor_area(const struct mesh *mesh, uint32_t polygon)
{
    struct face face = mesh_face(mesh, polygon);
    double twice = 0;

    for (uint32_t i = 0; i < face.count; i++) {
        struct vec3 a = face_at(&face, i), b = face_after(&face, i);

        twice += a.x * b.y - b.x * a.y;
    }
    return fabs(twice) / 2;
}

/* Some polygons: their floors, and the root's cells that these reach into. */
struct chunk {
    uint64_t floors;
    double area;
    struct grid_pairs pairs;
};

/* The work of the root, in parts. */
struct root_work {
    struct mesh *mesh;
    struct floor_grid *grid;
    struct box2 box;
    uint32_t side, strip_rows;
    struct z_range *ranges; /* of floors */
    struct chunk *chunks;
    size_t chunk_count, strips;
    uint32_t *starts, *lists;
    struct column_cell *root;
    struct grid_maker *makers; /* of each strip */
    uint64_t floors;
    double area; /* of all floors */
};

/* The polygons of a chunk: begin .. the returned number - 1. */
static uint32_t chunk_end(const struct root_work *w, size_t chunk)
{
    uint32_t polygons = (uint32_t)w->mesh->header->count[MESH_POLYGONS];
    uint32_t begin = (uint32_t)chunk * CHUNK;

    return polygons - begin < CHUNK ? polygons : begin + CHUNK;
}

static void area_work(void *context, size_t chunk)
{
    struct root_work *w = context;
    struct chunk *c = &w->chunks[chunk];

    for (uint32_t i = (uint32_t)chunk * CHUNK; i < chunk_end(w, chunk); i++)
        if (grid_is_floor(w->mesh, i)) {
            c->floors++;
            c->area += floor_area(w->mesh, i);
            w->ranges[i] = mesh_range(w->mesh, i);
        }
}

static void pairs_work(void *context, size_t chunk)
{
    struct root_work *w = context;
    struct grid_pairs *pairs = &w->chunks[chunk].pairs;
    struct grid_net net = grid_net_of(&w->box, w->side, w->mesh->header->near);
    bool is_good = true;

    pairs->count = 0;
    pairs->tests = 0;
    for (uint32_t i = (uint32_t)chunk * CHUNK; i < chunk_end(w, chunk) && is_good; i++)
        if (grid_is_floor(w->mesh, i))
            is_good = grid_pairs_add(pairs, w->mesh, &net, i);
}

static void strip_work(void *context, size_t strip)
{
    struct root_work *w = context;
    struct grid_maker *m = &w->makers[strip];
    uint32_t begin = (uint32_t)strip * w->strip_rows * w->side;
    uint32_t end = begin + w->strip_rows * w->side;

    end = end < w->side * w->side ? end : w->side * w->side;
    for (uint32_t i = begin; i < end && !m->is_short; i++) {
        struct grid_open_cell cell = {grid_cell_box(&w->box, w->side, i % w->side, i / w->side),
                                      w->lists + w->starts[i],
                                      w->starts[i + 1] - w->starts[i],
                                      1,
                                      floor_grid_root_bits(w->side),
                                      i};

        grid_cell_make(m, &cell);
    }
}

/* The floors of the root's cells. *pays: they are few enough. */
static enum err_code root_pairs(struct root_work *w, const struct mesh_making *making,
                                uint64_t most, bool *pays, struct err *err)
{
    uint64_t count = 0, tests = 0, tests_most = (uint64_t)GRID_TESTS_MOST * (w->floors + 1);

    for (size_t i = 0; i < w->chunk_count; i++) {
        w->chunks[i].pairs.most = SIZE_MAX;
        w->chunks[i].pairs.tests_most = tests_most;
    }
    if (crew_run(making->crew, making->pace, pairs_work, w, w->chunk_count, err))
        return err->code;
    for (size_t i = 0; i < w->chunk_count; i++) {
        if (w->chunks[i].pairs.is_short)
            return grid_no_memory(w->mesh, err);
        count += w->chunks[i].pairs.count;
        tests += w->chunks[i].pairs.tests;
    }
    *pays = count <= most && tests <= tests_most;
    return ERR_OK;
}

/* Cells from a strip's own numbers to the grid's. */
static void cells_move(struct column_cell *cells, size_t count, size_t first_cell,
                       size_t first_block)
{
    for (size_t i = 0; i < count; i++)
        if (cells[i].count > 0)
            cells[i].first += (uint32_t)(cells[i].count & COLUMN_INNER ? first_cell : first_block);
}

/* The root's cells, and those of the strips one after another. False without memory. */
static bool strips_join(struct root_work *w)
{
    struct floor_grid *grid = w->grid;
    size_t root = (size_t)w->side * w->side, strip = (size_t)w->strip_rows * w->side;
    size_t cells = root, blocks = 0;

    for (size_t s = 0; s < w->strips; s++) {
        cells += w->makers[s].cell_count;
        blocks += w->makers[s].block_count;
    }
    grid->cells = huge_alloc(cells * sizeof *grid->cells);
    /* each block is two cache lines; and one more, which vectors may read */
    grid->blocks = huge_alloc((blocks + 1) * sizeof *grid->blocks);
    if (!grid->cells || !grid->blocks)
        return false;
    memset(&grid->blocks[blocks], 0, sizeof *grid->blocks);
    memcpy(grid->cells, w->root, root * sizeof *grid->cells);
    grid->cell_count = root;
    for (size_t s = 0; s < w->strips; s++) {
        const struct grid_maker *m = &w->makers[s];
        size_t first = grid->cell_count;

        if (m->cell_count > 0)
            memcpy(grid->cells + first, m->cells, m->cell_count * sizeof *m->cells);
        if (m->block_count > 0)
            memcpy(grid->blocks + grid->block_count, m->blocks, m->block_count * sizeof *m->blocks);
        cells_move(grid->cells + s * strip, root - s * strip < strip ? root - s * strip : strip,
                   first, grid->block_count);
        cells_move(grid->cells + first, m->cell_count, first, grid->block_count);
        grid->cell_count += m->cell_count;
        grid->block_count += m->block_count;
        grid->refs += m->refs;
    }
    return true;
}

static enum err_code strips_make(struct root_work *w, const struct mesh_making *making,
                                 struct err *err)
{
    size_t root = (size_t)w->side * w->side;
    uint64_t refs = 0;

    w->strip_rows = (uint32_t)((uint64_t)CHUNK * w->side / (w->floors + 1)) + 1;
    w->strips = (w->side + w->strip_rows - 1) / w->strip_rows;
    for (size_t i = 0; i < w->chunk_count; i++)
        refs += w->chunks[i].pairs.count;
    w->starts = calloc(root + 1, sizeof *w->starts);
    w->lists = huge_alloc((refs + 1) * sizeof *w->lists);
    w->root = malloc(root * sizeof *w->root);
    w->makers = calloc(w->strips, sizeof *w->makers);
    if (!w->starts || !w->lists || !w->root || !w->makers)
        return grid_no_memory(w->mesh, err);
    for (size_t i = 0; i < w->chunk_count; i++)
        grid_lists_count(&w->chunks[i].pairs, w->starts);
    grid_lists_sum(w->starts, root);
    for (size_t i = w->chunk_count; i-- > 0;) {
        grid_lists_fill(&w->chunks[i].pairs, w->starts, w->lists);
        free(w->chunks[i].pairs.at);
        w->chunks[i].pairs.at = NULL;
    }
    uint64_t refs_left = GRID_REFS_PER_FLOOR * w->floors + GRID_REFS_FREE - refs;

    for (size_t s = 0; s < w->strips; s++) {
        size_t begin = s * w->strip_rows * w->side, end = begin + (size_t)w->strip_rows * w->side;
        uint64_t own = w->starts[end < root ? end : root] - w->starts[begin];

        w->makers[s] = (struct grid_maker){
            .mesh = w->mesh,
            .grid = w->grid,
            .root = w->root,
            .leaf_refs = w->mesh->header->max_polygons,
            .pace = making->crew ? NULL : making->pace,
            .err = making->crew ? NULL : err,
            .refs_left = refs > 0 ? refs_left * own / refs : 0, /* dense ground needs more */
        };
    }
    pace_stage(making->pace, STAGE_CELLS);
    return crew_run(making->crew, making->pace, strip_work, w, w->strips, err);
}

static void root_work_free(struct root_work *w)
{
    for (size_t i = 0; w->chunks && i < w->chunk_count; i++)
        free(w->chunks[i].pairs.at);
    for (size_t s = 0; w->makers && s < w->strips; s++) {
        free(w->makers[s].cells);
        free(w->makers[s].blocks);
    }
    w->mesh->ranges = NULL;
    free(w->ranges);
    free(w->chunks);
    free(w->starts);
    free(w->lists);
    free(w->root);
    free(w->makers);
}

/* All but the lookup table. */
static enum err_code root_make(struct root_work *w, const struct mesh_making *making,
                               struct err *err)
{
    double cell_area = 0;

    if (strips_make(w, making, err))
        return err->code;
    for (size_t s = 0; s < w->strips; s++) {
        if (w->makers[s].is_short)
            return err->code ? err->code : grid_no_memory(w->mesh, err);
        cell_area += w->makers[s].cell_area;
    }
    w->grid->is_stacked = w->area > STACKED_LEAST * cell_area;
    return strips_join(w) ? ERR_OK : grid_no_memory(w->mesh, err);
}

/* Floors for each of the root's cells, ROOT_FLOORS by default. For a smaller max_polygons at most
 * ROOT_SHARE of it: most cells stay one leaf. For a larger one in proportion: leaves get larger. */
static double root_floors(uint32_t max_polygons)
{
    if (max_polygons > MESH_MAX_POLYGONS)
        return ROOT_FLOORS * max_polygons / MESH_MAX_POLYGONS;
    return fmin(ROOT_FLOORS, ROOT_SHARE * max_polygons);
}

/* The root for root_floors, or coarser, down to one cell. Sparse ground gets no more cells: most
 * would be empty. */
static enum err_code side_choose(struct root_work *w, const struct mesh_making *making,
                                 struct err *err)
{
    const struct mesh_header *h = w->mesh->header;
    double narrow = fmin(w->box.x_max - w->box.x_min, w->box.y_max - w->box.y_min);
    double least = GRID_CELL_NEARS * h->near, floors = (double)w->floors;
    double fill = w->area / ((w->box.x_max - w->box.x_min) * (w->box.y_max - w->box.y_min));
    double side = rint(sqrt(floors / (root_floors(h->max_polygons) * fmax(fill, 1))));
    bool pays = false;

    w->side = (uint32_t)fmin(fmax(side, 1), fmin(ldexp(1, (int)h->max_depth), SIDE_MAX));
    for (; w->side > 0 && !pays; w->side /= 2) {
        if (!(narrow / w->side >= least) || !isfinite(narrow)) /* of images that lie, too */
            continue;
        if (root_pairs(w, making, GRID_REFS_PER_FLOOR * w->floors + GRID_REFS_FREE, &pays, err))
            return err->code;
        if (pays || w->side == 1)
            break;
    }
    return ERR_OK;
}

static void frame_set(struct floor_grid *out, const struct box2 *box)
{
    out->side_limit = (uint64_t)out->side << COLUMN_PLACE;
    out->x_min = box->x_min;
    out->y_min = box->y_min;
    out->x_max = box->x_max;
    out->y_max = box->y_max;
    out->scale_x = (double)out->side_limit / (box->x_max - box->x_min);
    out->scale_y = (double)out->side_limit / (box->y_max - box->y_min);
    out->place_0[0] = -out->x_min * out->scale_x;
    out->place_0[1] = -out->y_min * out->scale_y;
}

/* The grid's box: where a point may be over a floor. */
static struct box2 box_of_root(const struct mesh_header *h)
{
    double more = 2 * h->near;

    return (struct box2){h->root.x_min - more, h->root.y_min - more, h->root.x_max + more,
                         h->root.y_max + more};
}

static enum err_code grid_fill(struct root_work *w, const struct mesh_making *making,
                               struct err *err)
{
    struct floor_grid *out = w->grid;
    size_t polygons = w->mesh->header->count[MESH_POLYGONS];

    w->chunk_count = (polygons + CHUNK - 1) / CHUNK;
    w->chunks = calloc(w->chunk_count, sizeof *w->chunks);
    w->ranges = huge_alloc(polygons * sizeof *w->ranges);
    if (!w->chunks || !w->ranges)
        return grid_no_memory(w->mesh, err);
    pace_stage(making->pace, STAGE_FLOORS);
    if (crew_run(making->crew, making->pace, area_work, w, w->chunk_count, err))
        return err->code;
    w->mesh->ranges = w->ranges;
    for (size_t i = 0; i < w->chunk_count; i++) {
        w->floors += w->chunks[i].floors;
        w->area += w->chunks[i].area;
    }
    if (side_choose(w, making, err) || w->side == 0)
        return err->code;
    out->side = w->side;
    frame_set(out, &w->box);
    return root_make(w, making, err);
}

/* Of a grid without blocks: the one after the last, to which queries of no entry point. */
static bool blocks_end(struct floor_grid *grid)
{
    if (grid->blocks)
        return true;
    grid->blocks = huge_alloc(sizeof *grid->blocks);
    if (grid->blocks)
        memset(grid->blocks, 0, sizeof *grid->blocks);
    return grid->blocks != NULL;
}

enum err_code floor_grid_make(struct mesh *mesh, const struct mesh_making *making, struct err *err)
{
    struct floor_grid *out = &mesh->grid;
    const struct mesh_header *h = mesh->header;
    struct root_work work = {.mesh = mesh, .grid = out, .box = box_of_root(h)};
    double height = (double)h->z_max - (double)h->z_min;

    memset(out, 0, sizeof *out);
    out->z_min = (double)h->z_min;
    out->scale_z = height > 0 && height < INFINITY ? COLUMN_LEVELS / height : 0;
    err->code = ERR_OK;
    if (h->count[MESH_POLYGONS] < GRID_POLYGONS_MAX)
        grid_fill(&work, making, err);
    if (err->code == ERR_OK && !(blocks_end(out) && floor_grid_lut_make(mesh, out, making->crew)))
        grid_no_memory(mesh, err);
    if (err->code != ERR_OK)
        floor_grid_free(out);
    root_work_free(&work);
    return err->code;
}

void floor_grid_free(struct floor_grid *grid)
{
    free(grid->cells);
    free(grid->blocks);
    free(grid->lut);
    free(grid->lows);
    memset(grid, 0, sizeof *grid);
}

bool floor_grid_holds(const struct mesh *mesh)
{
    const struct floor_grid *grid = &mesh->grid;
    struct box2 box = box_of_root(mesh->header);

    return grid->side > 0 && box.x_min >= grid->x_min && box.y_min >= grid->y_min &&
           box.x_max <= grid->x_max && box.y_max <= grid->y_max;
}

size_t floor_grid_bytes(const struct floor_grid *grid)
{
    return grid->cell_count * sizeof *grid->cells + grid->block_count * sizeof *grid->blocks +
           floor_grid_lut_bytes(grid);
}

/* The nodes of the levels of Q's tree between a node and its side × side cells, its own among them;
 * where that is no power of two, about so many. */
static uint64_t levels_nodes(uint32_t side)
{
    return ((uint64_t)side * side - 1) / 3;
}

/* A cell below the root, `depth` levels of Q's tree deep, that is this share of the ground. */
static void cell_stats(const struct floor_grid *grid, size_t at, uint32_t depth, double share,
                       struct mesh_stats *out)
{
    const struct column_cell *cell = &grid->cells[at];
    uint32_t side = cell->count & ~COLUMN_INNER;

    if (!(cell->count & COLUMN_INNER)) {
        out->nodes++;
        out->leaves++;
        out->depths[depth]++;
        out->depth = depth > out->depth ? depth : out->depth;
        out->average_tests += share * cell->count;
        return;
    }
    out->nodes += levels_nodes(side);
    for (size_t i = 0; i < (size_t)side * side; i++)
        cell_stats(grid, cell->first + i, depth + floor_grid_root_bits(side), share / side / side,
                   out);
}

void floor_grid_stats(const struct floor_grid *grid, struct mesh_stats *out)
{
    size_t cells = (size_t)grid->side * grid->side;

    for (size_t i = 0; i < cells; i++)
        cell_stats(grid, i, floor_grid_root_bits(grid->side), 1.0 / (double)cells, out);
    if (grid->side > 0)
        out->nodes += levels_nodes(grid->side);
    else /* the tree of boxes answers: as one leaf of all */
        out->nodes = out->leaves = out->depths[0] = 1;
}
