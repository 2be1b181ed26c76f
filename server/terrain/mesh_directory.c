/*
 * The way into the quadtree, cut short.
 *
 * Seven levels down from the root are seven loads that each wait for the one before: most of the
 * time of a question whose answer is nothing. So each mesh has a directory beside its image: the
 * root's box in 4^k equal cells, about one for each leaf, and for each cell the deepest node that
 * holds all of it. A point looks up its cell and goes on from that node, mostly a leaf already.
 *
 * A point near a cut must be looked up on both sides, and only the nodes above a cell know the cuts
 * along its border. So points within 2 near of a cell's border begin at the root (one in 10^10),
 * and a cell may reach over a cut by near / 2, which is more than what rounding does to its border:
 * every other point is then further than near from all cuts above its node, on the side of its
 * cell.
 *
 * The directory follows from the nodes, so it is not part of the image: nothing in it needs to be
 * believed.
 */
#include "terrain/mesh_data.h"

#include <stdlib.h>

enum { SIDE_MAX = 4096 };

/* The deepest node that holds the cell. */
static uint32_t cell_node(const struct mesh *mesh, const struct box2 *cell)
{
    const struct mesh_node *n = mesh->nodes;
    double over = mesh->header->near / 2;

    while (n->count == MESH_NODE_INNER) {
        bool is_right = cell->x_min + over >= n->as.cut.x;
        bool is_high = cell->y_min + over >= n->as.cut.y;

        if ((!is_right && cell->x_max - over > n->as.cut.x) ||
            (!is_high && cell->y_max - over > n->as.cut.y))
            break;
        n = mesh->nodes + n->first + (is_right | is_high << 1);
    }
    return (uint32_t)(n - mesh->nodes);
}

enum err_code mesh_directory_make(struct mesh *mesh, struct err *err)
{
    const struct mesh_header *h = mesh->header;
    struct mesh_directory *d = &mesh->directory;
    uint64_t leaves = (3 * h->count[MESH_NODES] + 1) / 4;
    double width = h->root.x_max - h->root.x_min, height = h->root.y_max - h->root.y_min;

    for (d->side = 1; (uint64_t)d->side * d->side < leaves && d->side < SIDE_MAX;)
        d->side *= 2;
    d->nodes = malloc((size_t)d->side * d->side * sizeof *d->nodes);
    if (d->nodes == NULL)
        return err_set(err, ERR_NO_MEMORY, "no memory for a directory of %u x %u cells", d->side,
                       d->side);
    d->scale = (struct vec2){d->side / width, d->side / height};
    d->margin = (struct vec2){2 * h->near * d->scale.x, 2 * h->near * d->scale.y};
    for (uint32_t row = 0; row < d->side; row++)
        for (uint32_t col = 0; col < d->side; col++) {
            struct box2 cell = {h->root.x_min + col / d->scale.x, h->root.y_min + row / d->scale.y,
                                h->root.x_min + (col + 1) / d->scale.x,
                                h->root.y_min + (row + 1) / d->scale.y};

            d->nodes[(size_t)row * d->side + col] = cell_node(mesh, &cell);
        }
    return ERR_OK;
}
