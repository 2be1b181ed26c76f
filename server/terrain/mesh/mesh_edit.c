/*
 * Polygons added in place.
 *
 * Problem: a mesh is one immutable block that readers are in while it changes, and building one
 * takes 1 µs a polygon, nearly all of it for cutting, sorting and measuring. Approach: the next
 * mesh is a copy of the block with the new parts spliced in. Of the polygons that were there
 * nothing is computed again.
 *
 * 1. Pieces (convex_parts.c) of only the added polygons, in the frame and with the slack of the
 *    mesh.
 * 2. Polygons, corners and vertices: copied without the pieces that are removed, the new
 *    ones after them. Order among those that stay is kept, so of two polygons at one place the same
 *    one is reported as by a mesh that is built again. Vertices of removed polygons stay, unused.
 * 3. Which polygons are equal: mesh_same.c. The floor grid (floor_grid_edit): the cells that were
 *    touched, divided where they overflow. Trees of boxes: mesh_rays.c.
 *
 * A polygon beyond the floor grid's box is found by the trees of boxes. One beyond the greatest
 * coordinate would need a greater slack, which is in every box and list: then the mesh is built
 * again.
 *
 * The content hash of a copy would take longer than the copy. So the mesh is named by its origin,
 * by what it was made of: hash(name of the old mesh, change); the image is sealed when a caller
 * wants it (mesh_seal).
 *
 * The grid gets worse with time: cells that have lost their polygons stay. The owner of a mesh
 * watches its average_tests and builds it again (world/values/layer.c).
 *
 * Tried on paper and dropped: sharing blocks of the image between versions (each access an
 * indirection more for ever, to save a memcpy of 1 ms each 10 MB); a second small mesh beside the
 * large one (each query needs both, and removed polygons have to be known to both).
 */
#include "terrain/mesh/mesh_edit.h"

#include "base/huge.h"
#include "base/array_reserve.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "terrain/mesh/mesh_contact.h"
#include "terrain/mesh/convex_parts.h"
#include "terrain/radial/radial.h"

#include <stdlib.h>
#include <string.h>

#define NO_POLYGON UINT32_MAX

/* Pieces of the old mesh that stay: begin .. end - 1. */
struct run {
    uint32_t begin, end;
};

struct editor {
    const struct mesh *old;
    const struct mesh_change *change;
    struct mesh_header header; /* of the next one */
    struct convex_parts more;  /* the added ones */
    uint32_t old_count;        /* pieces of the old mesh */
    uint32_t kept;             /* of them; those that are added follow */
    struct run *runs;
    size_t run_count;
    uint32_t *map;     /* [old_count] new index or NO_POLYGON; NULL: none is removed */
    struct box2 *gone; /* boxes of removed floors */
    size_t gone_count;
};

static enum err_code no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "no memory to edit a mesh");
}

/* ---- kept parts ------------------------------------------------------------------------------ */

/* The first piece whose number is not below; pieces are in the order of their numbers. */
static uint32_t piece_of(const struct mesh *mesh, uint32_t number)
{
    uint32_t low = 0, high = (uint32_t)mesh->header->count[MESH_POLYGONS];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (mesh_source(mesh, middle) < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool note_gone(struct editor *e, uint32_t begin, uint32_t end, size_t *capacity)
{
    const struct mesh *m = e->old;

    if (!array_reserve((void **)&e->gone, capacity, e->gone_count + (end - begin), sizeof *e->gone))
        return false;
    for (uint32_t i = begin; i < end; i++)
        if (!mesh_is_wall(&m->polygons[i])) {
            struct face face = mesh_face(m, i);

            e->gone[e->gone_count++] = convex_part_box(&face);
        }
    return true;
}

static bool runs_make(struct editor *e)
{
    const struct mesh_change *change = e->change;
    size_t capacity = 0;
    uint32_t at = 0;

    e->runs = malloc((change->removed_count + 1) * sizeof *e->runs);
    if (!e->runs)
        return false;
    for (size_t i = 0; i < change->removed_count; i++) {
        uint32_t number = change->removed[i];
        uint32_t begin = piece_of(e->old, number), end = begin;

        CHECK(i == 0 || number > change->removed[i - 1]);
        while (end < e->old_count && mesh_source(e->old, end) == number)
            end++;
        if (begin == end)
            continue;
        if (begin > at)
            e->runs[e->run_count++] = (struct run){at, begin};
        if (!note_gone(e, begin, end, &capacity))
            return false;
        at = end;
    }
    if (at < e->old_count)
        e->runs[e->run_count++] = (struct run){at, e->old_count};
    for (size_t i = 0; i < e->run_count; i++)
        e->kept += e->runs[i].end - e->runs[i].begin;
    return true;
}

static bool map_make(struct editor *e)
{
    uint32_t next = 0;

    if (e->kept == e->old_count)
        return true;
    e->map = malloc(e->old_count * sizeof *e->map);
    if (!e->map)
        return false;
    memset(e->map, 0xff, e->old_count * sizeof *e->map);
    for (size_t r = 0; r < e->run_count; r++)
        for (uint32_t i = e->runs[r].begin; i < e->runs[r].end; i++)
            e->map[i] = next++;
    return true;
}

/* ---- the image ------------------------------------------------------------------------------- */

static void box_widen(struct box2 *box, const struct box2 *by)
{
    box->x_min = fmin(box->x_min, by->x_min);
    box->y_min = fmin(box->y_min, by->y_min);
    box->x_max = fmax(box->x_max, by->x_max);
    box->y_max = fmax(box->y_max, by->y_max);
}

/* The box of the corners of all polygons that have pieces, in the locale's frame. */
static struct box3 bounds_of(const struct editor *e, const uint32_t *sources, size_t count)
{
    const struct polygon_soup *after = e->change->after;
    struct vec3 low = {INFINITY, INFINITY, INFINITY}, high = {-INFINITY, -INFINITY, -INFINITY};
    uint32_t last = NO_POLYGON;

    for (size_t i = 0; i < count; i++) {
        uint32_t number = sources ? sources[i] : (uint32_t)i;

        if (number == last)
            continue;
        last = number;
        CHECK(number < after->polygon_count);
        for (uint32_t k = after->starts[number]; k < after->starts[number + 1]; k++) {
            struct vec3 v = after->vertices[after->corners[k]];

            low = (struct vec3){fmin(low.x, v.x), fmin(low.y, v.y), fmin(low.z, v.z)};
            high = (struct vec3){fmax(high.x, v.x), fmax(high.y, v.y), fmax(high.z, v.z)};
        }
    }
    return (struct box3){low, high};
}

struct sections {
    struct mesh_polygon *polygons;
    uint32_t *corners, *firsts, *sources; /* firsts, sources: NULL where the image has none */
    struct vec3 *wide;
    float (*narrow)[3];
};

static struct sections sections_of(const struct mesh_header *h, uint8_t *image)
{
    void *at[MESH_SECTIONS];

    for (enum mesh_section s = 0; s < MESH_SECTIONS; s++)
        at[s] = h->count[s] > 0 ? image + h->offset[s] : NULL;
    return (struct sections){at[MESH_POLYGONS],
                             at[MESH_CORNERS],
                             at[MESH_FIRSTS],
                             at[MESH_SOURCES],
                             h->is_narrow ? NULL : at[MESH_VERTICES],
                             h->is_narrow ? at[MESH_VERTICES] : NULL};
}

static void vertex_put(const struct sections *to, size_t i, struct vec3 v)
{
    if (to->narrow)
        memcpy(to->narrow[i], (float[]){(float)v.x, (float)v.y, (float)v.z}, sizeof *to->narrow);
    else
        to->wide[i] = v;
}

/* Old pieces that stay. */
static void old_put(const struct editor *e, struct sections *to, uint32_t *corners)
{
    const struct mesh *m = e->old;
    size_t next = 0;

    for (size_t r = 0; r < e->run_count; r++) {
        const struct run *run = &e->runs[r];
        size_t first = mesh_first(m, run->begin), count = mesh_first(m, run->end) - first;

        memcpy(to->polygons + next, m->polygons + run->begin,
               (run->end - run->begin) * sizeof *to->polygons);
        for (size_t k = 0; k < count; k++)
            to->corners[*corners + k] = m->corners ? m->corners[first + k] : (uint32_t)(first + k);
        for (uint32_t i = run->begin; i < run->end; i++, next++) {
            if (to->firsts)
                to->firsts[next] = (uint32_t)(mesh_first(m, i) - first) + *corners;
            if (to->sources)
                to->sources[next] = mesh_source(m, i);
        }
        *corners += (uint32_t)count;
    }
    for (size_t i = 0; i < m->header->count[MESH_VERTICES]; i++)
        vertex_put(to, i, point_at(&m->points, i));
}

/* The added ones, and the end. */
static void more_put(const struct editor *e, struct sections *to, uint32_t corners)
{
    uint32_t vertices = (uint32_t)e->old->header->count[MESH_VERTICES];
    const struct convex_parts *more = &e->more;

    for (size_t i = 0; i < more->polygon_count; i++) {
        to->polygons[e->kept + i] = more->polygons[i];
        if (to->firsts)
            to->firsts[e->kept + i] = more->firsts[i] + corners;
        if (to->sources)
            to->sources[e->kept + i] = more->sources[i] + e->change->first_number;
    }
    if (to->firsts)
        to->firsts[e->kept + more->polygon_count] = corners + (uint32_t)more->corner_count;
    for (size_t k = 0; k < more->corner_count; k++)
        to->corners[corners + k] = more->corners[k] + vertices;
    for (size_t i = 0; i < more->vertex_count; i++)
        vertex_put(to, vertices + i, more->vertices[i]);
}

static size_t corners_kept(const struct editor *e)
{
    size_t corners = 0;

    for (size_t r = 0; r < e->run_count; r++)
        corners += mesh_first(e->old, e->runs[r].end) - mesh_first(e->old, e->runs[r].begin);
    return corners;
}

/* Are the numbers in the file those of the pieces? */
static bool is_counting(const struct editor *e)
{
    bool is = !e->old->sources && !e->map;

    for (size_t i = 0; is && i < e->more.polygon_count; i++)
        is = e->more.sources[i] + e->change->first_number == e->kept + i;
    return is;
}

static void counts_set(struct editor *e)
{
    struct mesh_header *h = &e->header;
    const struct convex_parts *more = &e->more;
    bool is_triangles = !e->old->firsts && more->corner_count == 3 * more->polygon_count;
    size_t polygons = e->kept + more->polygon_count;

    h->count[MESH_POLYGONS] = polygons;
    h->count[MESH_CORNERS] = corners_kept(e) + more->corner_count;
    h->count[MESH_VERTICES] = e->old->header->count[MESH_VERTICES] + more->vertex_count;
    h->count[MESH_FIRSTS] = is_triangles ? 0 : polygons + 1;
    h->count[MESH_SOURCES] = is_counting(e) ? 0 : polygons;
    h->is_narrow &= mesh_vertices_are_narrow(more->vertices, more->vertex_count);
}

static void image_fill(struct editor *e, uint8_t *image)
{
    struct mesh_header *h = &e->header;
    struct sections to = sections_of(h, image);
    uint32_t corners = 0;

    mesh_image_clear_gaps(image, h);
    old_put(e, &to, &corners);
    more_put(e, &to, corners);
    if (e->map)
        h->bounds = bounds_of(e, to.sources, h->count[MESH_POLYGONS]);
    else if (e->more.polygon_count > 0)
        h->bounds = box3_union(h->bounds, e->more.bounds);
    memcpy(image, h, sizeof *h);
}

/* The mesh's name: a hash of its origin. */
static void name_set(struct mesh *mesh, const struct editor *e)
{
    const struct mesh_change *c = e->change;
    const struct polygon_soup *added = c->added;
    uint8_t parts[6][32] = {{0}};

    memcpy(parts[0], mesh_content(e->old), sizeof parts[0]);
    memcpy(parts[1], &c->first_number, sizeof c->first_number);
    content_hash(c->removed, c->removed_count * sizeof *c->removed, parts[2]);
    if (added) {
        size_t corners = added->starts[added->polygon_count];

        content_hash(added->vertices, added->vertex_count * sizeof *added->vertices, parts[3]);
        content_hash(added->corners, corners * sizeof *added->corners, parts[4]);
        content_hash(added->starts, (added->polygon_count + 1) * sizeof *added->starts, parts[5]);
    }
    content_hash(parts, sizeof parts, mesh->content);
}

static struct mesh *mesh_of(struct editor *e, struct err *err)
{
    struct floor_grid_change change = {e->map, e->gone, e->gone_count, e->kept};
    struct mesh_making making = {.pace = e->change->pace};
    uint32_t *moved = NULL;
    uint8_t *image;
    struct mesh *mesh;

    counts_set(e);
    if (!mesh_header_lay_out(&e->header)) {
        err_set(err, ERR_TOO_LARGE, "the mesh would have more than 2^32 polygons or corners");
        return NULL;
    }
    image = huge_alloc(e->header.bytes);
    if (!image) {
        no_memory(err);
        return NULL;
    }
    image_fill(e, image);
    mesh = mesh_over(image, err);
    if (!mesh) {
        free(image);
        return NULL;
    }
    atomic_store(&mesh->seal, MESH_UNSEALED);
    name_set(mesh, e);
    if (mesh_same_edit(mesh, e->old, e->map, e->kept, &moved, err) == ERR_OK) {
        change.map = moved ? moved : e->map;
        if (floor_grid_edit(mesh, e->old, &change, &making, err) == ERR_OK)
            mesh_rays_edit(mesh, e->old, e->map, moved, &making, err);
    }
    free(moved);
    if (err->code != ERR_OK) {
        mesh_unref(mesh);
        return NULL;
    }
    return mesh;
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum err_code change_check(const struct mesh *mesh, const struct mesh_change *change,
                                  struct err *err)
{
    if (change->added && soup_check(change->added, err))
        return err->code;
    if (mesh->radial)
        return err_set(err, ERR_CONFLICT, "a mesh under radial gravity is built as a whole");
    if (mesh->instances)
        return err_set(err, ERR_CONFLICT, "polygons of instances are edited in their copies");
    CHECK(change->removed_count == 0 || change->removed);
    return ERR_OK;
}

bool mesh_edit_fits(const struct mesh *mesh, const struct polygon_soup *added)
{
    return mesh->header && (added->polygon_count == 0 ||
                            convex_parts_slack(added, mesh->header) <= mesh->header->slack);
}

static enum err_code pieces_add(struct editor *e, struct err *err)
{
    const struct polygon_soup *added = e->change->added;
    struct mesh_import import;
    enum err_code code;

    if (e->change->import)
        memset(e->change->import, 0, sizeof *e->change->import);
    if (!added || added->polygon_count == 0)
        return ERR_OK;
    if (!mesh_edit_fits(e->old, added))
        return err_set(err, ERR_CONFLICT, "a polygon is farther out than the mesh is exact");
    code = convex_parts_make_more(added, &e->header, e->change->pace, &e->more, &import, err);
    if (e->change->import)
        *e->change->import = import;
    if (code)
        return code;
    if (e->more.polygon_count > 0) {
        box_widen(&e->header.root, &e->more.root);
        e->header.z_min = fminf(e->header.z_min, e->more.z_min);
        e->header.z_max = fmaxf(e->header.z_max, e->more.z_max);
    }
    return ERR_OK;
}

static void editor_finish(struct editor *e)
{
    convex_parts_free(&e->more);
    free(e->runs);
    free(e->map);
    free(e->gone);
}

static struct mesh *edit(struct editor *e, struct err *err)
{
    if (pieces_add(e, err))
        return NULL;
    if (!runs_make(e) || !map_make(e)) {
        no_memory(err);
        return NULL;
    }
    if (e->kept + e->more.polygon_count == 0) {
        err_set(err, ERR_UNPROCESSABLE, "no polygon would be left");
        return NULL;
    }
    return mesh_of(e, err);
}

struct mesh *mesh_edit(const struct mesh *mesh, const struct mesh_change *change, struct err *err)
{
    struct editor e = {.old = mesh, .change = change};
    struct mesh *next;

    err->code = ERR_OK;
    if (change_check(mesh, change, err))
        return NULL;
    e.header = mesh_header_copy(mesh);
    e.old_count = (uint32_t)e.header.count[MESH_POLYGONS];
    next = edit(&e, err);
    editor_finish(&e);
    VALIDATE_THAT(next == NULL || mesh_validate(next, err));
    return next;
}

void mesh_count_pieces(const struct mesh *mesh, uint32_t first, size_t count, uint32_t *pieces)
{
    const struct radial *radial = mesh->radial;

    memset(pieces, 0, count * sizeof *pieces);
    if (radial) { /* in the order of the tree */
        for (uint64_t i = 0; i < radial->header->count[RADIAL_POLYGONS]; i++) {
            uint32_t number = radial->polygons[i].source;

            if (number >= first && number - first < count)
                pieces[number - first]++;
        }
        return;
    }
    for (uint64_t i = piece_of(mesh, first); i < mesh->header->count[MESH_POLYGONS]; i++)
        if (mesh_source(mesh, (uint32_t)i) - first < count)
            pieces[mesh_source(mesh, (uint32_t)i) - first]++;
}
