/*
 * Shadows of a light at a place.
 *
 * Rays towards a lamp all run through one point, so they are told apart by their directions alone:
 * lines of gravity of a mesh around the lamp. Directions are those of a cube around it, straight
 * edges are straight on its faces (gnomonic projection), and each face is a grid. A cell lists the
 * polygons that may be seen through it, the nearest first, so the list ends for a point where the
 * polygons behind it begin; and where one polygon fills a cell it tells its depths, and points
 * behind are in its shadow without a look at a polygon.
 *
 * The answer shall be that of mesh_ray. Its test of a polygon forgives the rounding of a place, in
 * the plane across the ray. Where a polygon is seen nearly from its side, or has a sharp corner,
 * that lets rays through which pass the polygon by much more than rounding. So each piece is grown
 * by as far as the test may reach. A ray that is let through at a corner of angle θ passes it by at
 * most pad / sin(θ/2) in the plane across the ray; there the corner's sine is that in space times
 * the sine between the ray and the plane, or half of that, and the sheared axes add √3:
 *
 *     reach <= 32 pad / (sine of the sharpest corner · sine between plane and ray)
 *
 * Every ray comes from the lamp, so the second sine is at least the lamp's height over the plane by
 * the distance of the farthest corner, less what the growth itself takes (FLAT_SLACKS). Where the
 * lamp is so near to the plane that this tells nothing, the plane's normal is kept (`flat`): rays
 * that run along it to LAMP_FLAT_SINE go to mesh_ray, and for the others that is the sine. Pieces
 * with so sharp a corner that they reach farther than REACH_MOST are put to every ray.
 *
 * What is in no list is not hit. What a ray meets well inside of all edges, at no flat angle and
 * not at its own ends, mesh_ray hits, too. What is neither asks mesh_ray (mesh_ray_lamp, which
 * stands in mesh_ray.c beside the test).
 *
 * A grid has about two cells for each piece that is seen on its face, and spans what is to be seen.
 * When lists become long it is made coarser, so memory is ITEMS_MOST items a piece at the most.
 *
 * Tried and dropped: a tree of boxes in space, which knows nothing of the lamp (0.95 to 2.4 times
 * as fast as rays); a radial mesh around the lamp, whose answers differ in the last bits.
 * Source: J. Barrus and R. Waters, "QOTA", 1996 (text Q), "Future directions".
 */
#include "terrain/mesh_lamp.h"

#include "base/check.h"
#include "terrain/pieces.h"

#include <float.h>
#include <stdlib.h>

#define REACH_MOST 1e9    /* slacks: millimetres in a world of a kilometre */
#define REACH_LEAST 1000  /* slacks: the rounding of cells and of the ray's own way */
#define REACH_TIMES 64    /* slacks: 32 of mesh_ray's pads, which are 2 */
#define FLAT_SLACKS 256   /* by the sharpest corner: what the growth may take of a height */
#define FLAT_SAME 1e-6    /* sine between normals of one plane */
#define COVER_SLACKS 1000 /* so far inside of all edges */
#define COVER_SINE 4e-3   /* between ray and plane: four times what mesh_ray_lamp asks for */
#define COVER_UNEVEN 16   /* slacks */
#define REACH_ORIGIN 4    /* origins farther out than so many times the mesh are left to rays */
#define REACH_LAMP 64     /* and lamps */

enum { SIDE_MOST = 1024, ITEMS_MOST = 16, ITEMS_LEAST = 256 };

/* ---- how far a piece reaches ----------------------------------------------------------------- */

/* Of the sharpest corner, its sine; corners of 90 degrees and more are none. 0: not known. */
static double sharpest(const struct vec3 *vertices, const uint32_t *corners, uint32_t count)
{
    double least = 1;

    for (uint32_t i = 0; i < count; i++) {
        struct vec3 at = vertices[corners[i]];
        struct vec3 a = vec3_sub(vertices[corners[(i + 1) % count]], at);
        struct vec3 b = vec3_sub(vertices[corners[(i + count - 1) % count]], at);
        double lengths = vec3_length(a) * vec3_length(b);

        if (!(lengths > 0))
            return 0;
        if (vec3_dot(a, b) > 0)
            least = fmin(least, vec3_length(vec3_cross(a, b)) / lengths);
    }
    return least;
}

/* Notes that rays along this plane are mesh_ray's. False: there are too many. */
static bool flat_note(struct mesh_lamp *lamp, struct vec3 normal)
{
    for (uint32_t i = 0; i < lamp->flat_count; i++)
        if (vec3_length(vec3_cross(lamp->flat[i], normal)) <= FLAT_SAME)
            return true;
    if (lamp->flat_count == LAMP_FLAT_MAX)
        return false;
    lamp->flat[lamp->flat_count++] = normal;
    return true;
}

/*
 * How far beside a piece mesh_ray's test may still take it for hit; INFINITY: it is one of
 * `always`. False: the lamp is in too many planes.
 */
static bool reach_set(const struct mesh *mesh, uint32_t piece, struct mesh_lamp *lamp,
                      double *reach)
{
    const struct mesh_polygon *p = &mesh->polygons[piece];
    const uint32_t *corners = mesh->corners + p->first;
    struct vec3 normal = vec3_unit(piece_normal(mesh->vertices, corners, p->count));
    double sharp = sharpest(mesh->vertices, corners, p->count), slack = mesh->header->slack;
    double near = INFINITY, most = 0, far = 0, sine;

    for (uint32_t i = 0; i < p->count; i++) {
        struct vec3 way = vec3_sub(mesh->vertices[corners[i]], lamp->at);
        double height = fabs(vec3_dot(way, normal));

        near = fmin(near, height);
        most = fmax(most, height);
        far = fmax(far, vec3_length(way));
    }
    sine = (near - FLAT_SLACKS * slack / sharp) / far;
    if (!(sine >= LAMP_FLAT_SINE) && vec3_length(normal) > 0.5) {
        if (!flat_note(lamp, normal))
            return false;
        sine = LAMP_FLAT_SINE;
    }
    *reach = slack * (REACH_LEAST + REACH_TIMES / (sine * sharp)) + 4 * (most - near) / sine;
    if (*reach <= REACH_MOST * slack)
        return true;
    *reach = INFINITY;
    if (lamp->always_count == LAMP_ALWAYS_MAX)
        return false;
    lamp->always[lamp->always_count++] = piece;
    return true;
}

/* ---- a piece on a face ----------------------------------------------------------------------- */

struct edge {
    struct vec3 normal;   /* unit, of the plane through the lamp and the edge, to the inside */
    double outside;       /* a cell with a value below it has nothing of the piece */
    double lamp_distance; /* of the lamp from the edge's line */
};

/* Seen from the lamp; x, y across the face, z the depth. */
struct view {
    uint32_t piece, count;
    struct vec3 *corners;
    struct edge *edges;
    double reach, near;
    bool has_edges, has_cover;
    struct vec3 normal; /* away from the lamp */
    double height;      /* of the lamp below the plane */
};

struct window {
    double u0, u1, v0, v1;
};

struct emitted {
    uint32_t cell;
    struct lamp_item item;
};

struct making {
    const struct mesh *mesh;
    struct mesh_lamp *lamp;
    double *reach;    /* [pieces] */
    uint32_t *listed; /* pieces on the face */
    size_t listed_count;
    struct view view;
    struct emitted *emitted;
    size_t emitted_count, emitted_room, budget;
    size_t cells_room;
    bool is_out_of_memory;
};

static void corners_set(struct making *m, uint32_t piece, unsigned face)
{
    const struct mesh_polygon *p = &m->mesh->polygons[piece];
    struct view *view = &m->view;
    unsigned axis = face / 2;
    double sign = face % 2 ? 1 : -1;

    view->piece = piece;
    view->count = p->count;
    view->reach = m->reach[piece];
    view->near = INFINITY;
    for (uint32_t i = 0; i < p->count; i++) {
        struct vec3 way = vec3_sub(m->mesh->vertices[m->mesh->corners[p->first + i]], m->lamp->at);
        double v[3] = {way.x, way.y, way.z};

        view->corners[i] = (struct vec3){v[(axis + 1) % 3], v[(axis + 2) % 3], sign * v[axis]};
        view->near = fmin(view->near, view->corners[i].z);
    }
}

/* Of the edge from corner k on. Its inside is where the other corners are. */
static struct edge edge_of(const struct view *view, uint32_t k)
{
    struct vec3 a = view->corners[k], b = view->corners[(k + 1) % view->count];
    struct vec3 raw = vec3_cross(a, b), n = vec3_unit(raw);
    double sum = 0, lowest = 0;

    for (uint32_t i = 0; i < view->count; i++)
        sum += vec3_dot(n, view->corners[i]);
    n = sum < 0 ? vec3_opposite(n) : n;
    for (uint32_t i = 0; i < view->count; i++)
        lowest = fmin(lowest, vec3_dot(n, view->corners[i]));
    return (struct edge){
        .normal = n,
        /* √3: coordinates of a face are of vectors that long at the most */
        .outside = -1.75 * (view->reach - lowest) / (view->height - view->reach),
        .lamp_distance = vec3_length(raw) / vec3_length(vec3_sub(b, a)),
    };
}

static void edges_set(struct view *view, double slack)
{
    struct vec3 n = {0, 0, 0};
    double least = INFINITY, most = -INFINITY;

    for (uint32_t i = 2; i < view->count; i++)
        n = vec3_add(n, vec3_cross(vec3_sub(view->corners[i - 1], view->corners[0]),
                                   vec3_sub(view->corners[i], view->corners[0])));
    n = vec3_unit(n);
    n = vec3_dot(n, view->corners[0]) < 0 ? vec3_opposite(n) : n;
    for (uint32_t i = 0; i < view->count; i++) {
        double height = vec3_dot(n, view->corners[i]);

        least = fmin(least, height);
        most = fmax(most, height);
    }
    view->normal = n;
    view->height = least;
    view->has_edges = least > 2 * view->reach;
    view->has_cover = view->has_edges && most - least <= COVER_UNEVEN * slack;
    for (uint32_t i = 0; view->has_edges && i < view->count; i++)
        view->edges[i] = edge_of(view, i);
}

/* May anything of the grown piece be seen in the window? Planes around the window, then those
 * through the piece's edges. */
static bool may_be_in(const struct view *view, const struct window *w, bool by_edges)
{
    double grow = 1.5 * view->reach; /* √2: the planes' normals are that long at the most */
    bool is_left = true, is_right = true, is_below = true, is_above = true;

    for (uint32_t i = 0; i < view->count; i++) {
        struct vec3 c = view->corners[i];

        is_left &= c.x - w->u0 * c.z < -grow;
        is_right &= w->u1 * c.z - c.x < -grow;
        is_below &= c.y - w->v0 * c.z < -grow;
        is_above &= w->v1 * c.z - c.y < -grow;
    }
    if (is_left || is_right || is_below || is_above)
        return false;
    for (uint32_t i = 0; by_edges && view->has_edges && i < view->count; i++) {
        struct vec3 n = view->edges[i].normal;

        if (n.x * (n.x > 0 ? w->u1 : w->u0) + n.y * (n.y > 0 ? w->v1 : w->v0) + n.z <
            view->edges[i].outside)
            return false;
    }
    return true;
}

/* Least of a linear function over a window. */
static double least_of(struct vec3 n, const struct window *w)
{
    return n.x * (n.x > 0 ? w->u0 : w->u1) + n.y * (n.y > 0 ? w->v0 : w->v1) + n.z;
}

/* Does the piece certainly fill the cell? */
static bool is_cover(const struct view *view, const struct window *w, double slack)
{
    if (!view->has_cover || least_of(view->normal, w) < 1.75 * COVER_SINE)
        return false;
    for (uint32_t i = 0; i < view->count; i++)
        if (least_of(view->edges[i].normal, w) * view->edges[i].lamp_distance <
            1.75 * COVER_SLACKS * slack)
            return false;
    return true;
}

/* ---- a face ---------------------------------------------------------------------------------- */

static void emit(struct making *m, const struct window *w, uint32_t cell)
{
    const struct view *view = &m->view;

    if (m->emitted_count == m->emitted_room) {
        size_t room = m->emitted_room ? 2 * m->emitted_room : 4096;
        struct emitted *grown = realloc(m->emitted, room * sizeof *grown);

        if (!grown) {
            m->is_out_of_memory = true;
            return;
        }
        m->emitted = grown;
        m->emitted_room = room;
    }
    m->emitted[m->emitted_count++] = (struct emitted){cell, {view->piece, float_down(view->near)}};
    if (is_cover(view, w, m->mesh->header->slack)) {
        struct vec3 n = view->normal;
        float far = float_up(view->height / least_of(n, w));
        float near = float_down(view->height / -least_of(vec3_opposite(n), w));

        if (far < m->lamp->cells[cell].cover_far) {
            m->lamp->cells[cell].cover_far = far;
            m->lamp->cells[cell].cover_near = near;
        }
    }
}

/* Puts the piece into the cells of a square of the grid. False: over the budget, or no memory. */
static bool square_fill(struct making *m, const struct lamp_face *f, uint32_t x, uint32_t y,
                        uint32_t size)
{
    struct window w = {f->u + x / f->per_u, f->u + (x + size) / f->per_u, f->v + y / f->per_v,
                       f->v + (y + size) / f->per_v};
    uint32_t half = size / 2;

    if (!may_be_in(&m->view, &w, true))
        return true;
    if (size == 1) {
        emit(m, &w, f->first + y * f->side + x);
        return !m->is_out_of_memory && m->emitted_count <= m->budget;
    }
    return square_fill(m, f, x, y, half) && square_fill(m, f, x + half, y, half) &&
           square_fill(m, f, x, y + half, half) && square_fill(m, f, x + half, y + half, half);
}

static bool face_fill(struct making *m, const struct lamp_face *f)
{
    for (size_t i = 0; i < m->listed_count; i++) {
        corners_set(m, m->listed[i], (unsigned)(f - m->lamp->faces));
        edges_set(&m->view, m->mesh->header->slack);
        if (!square_fill(m, f, 0, 0, f->side))
            return false;
    }
    return true;
}

static bool cells_open(struct making *m, struct lamp_face *f)
{
    struct mesh_lamp *lamp = m->lamp;
    size_t count = f->first + (size_t)f->side * f->side;

    if (count + 1 > m->cells_room) {
        struct lamp_cell *grown = realloc(lamp->cells, (count + 1) * sizeof *grown);

        if (!grown)
            return false;
        lamp->cells = grown;
        m->cells_room = count + 1;
    }
    for (size_t i = f->first; i < count; i++)
        lamp->cells[i] = (struct lamp_cell){0, 0, INFINITY};
    lamp->cell_count = count;
    return true;
}

/* Lists the pieces on a face, and tells what part of it they may take. */
static struct window face_list(struct making *m, unsigned face)
{
    static const struct window all = {-1, 1, -1, 1};
    struct window w = {1, -1, 1, -1};
    bool is_bounded = true;

    m->listed_count = 0;
    for (uint32_t i = 0; i < m->mesh->header->count[MESH_POLYGONS]; i++) {
        const struct view *view = &m->view;

        if (!(m->reach[i] < INFINITY))
            continue;
        corners_set(m, i, face);
        if (!may_be_in(view, &all, false))
            continue;
        m->listed[m->listed_count++] = i;
        is_bounded &= view->near >= 2 * view->reach;
        for (uint32_t k = 0; is_bounded && k < view->count; k++) {
            double u = view->corners[k].x / view->corners[k].z;
            double v = view->corners[k].y / view->corners[k].z;
            double grow = 4 * view->reach / view->near;

            w.u0 = fmin(w.u0, u - grow * (1 + fabs(u)));
            w.u1 = fmax(w.u1, u + grow * (1 + fabs(u)));
            w.v0 = fmin(w.v0, v - grow * (1 + fabs(v)));
            w.v1 = fmax(w.v1, v + grow * (1 + fabs(v)));
        }
    }
    if (!is_bounded)
        return all;
    w.u0 = fmin(fmax(w.u0, -1), 0.999);
    w.v0 = fmin(fmax(w.v0, -1), 0.999);
    w.u1 = fmin(fmax(w.u1, w.u0 + 1e-6), 1);
    w.v1 = fmin(fmax(w.v1, w.v0 + 1e-6), 1);
    return w;
}

static bool face_make(struct making *m, unsigned face)
{
    struct lamp_face *f = &m->lamp->faces[face];
    struct window w = face_list(m, face);
    size_t before = m->emitted_count;
    uint32_t side = 1;

    *f = (struct lamp_face){w.u0, w.v0, 0, 0, 0, (uint32_t)m->lamp->cell_count};
    if (m->listed_count == 0)
        return true;
    while ((size_t)side * side < 2 * m->listed_count && side < SIDE_MOST)
        side *= 2;
    m->budget = before + ITEMS_MOST * m->listed_count + ITEMS_LEAST;
    for (;; side /= 2) {
        CHECK(side > 0);
        f->side = side;
        f->per_u = side / (w.u1 - w.u0);
        f->per_v = side / (w.v1 - w.v0);
        m->emitted_count = before;
        if (!cells_open(m, f))
            return false;
        if (face_fill(m, f))
            return true;
        if (m->is_out_of_memory)
            return false;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int nearer(const void *a, const void *b)
{
    const struct lamp_item *x = a, *y = b;

    return x->near != y->near ? (x->near < y->near ? -1 : 1)
                              : (x->piece > y->piece) - (x->piece < y->piece);
}

/* What was emitted, by cells. */
static bool items_sort(struct making *m)
{
    struct mesh_lamp *lamp = m->lamp;
    struct lamp_cell *cells = lamp->cells;
    uint32_t first = 0;

    lamp->item_count = m->emitted_count;
    lamp->items = malloc((m->emitted_count + 1) * sizeof *lamp->items);
    if (!lamp->items || m->emitted_count > UINT32_MAX)
        return false;
    for (size_t i = 0; i < m->emitted_count; i++)
        cells[m->emitted[i].cell].first++;
    for (size_t i = 0; i < lamp->cell_count; i++) {
        first += cells[i].first;
        cells[i].first = first;
    }
    cells[lamp->cell_count] = (struct lamp_cell){first, 0, INFINITY};
    for (size_t i = 0; i < m->emitted_count; i++)
        lamp->items[--cells[m->emitted[i].cell].first] = m->emitted[i].item;
    for (size_t i = 0; i < lamp->cell_count; i++)
        if (cells[i + 1].first - cells[i].first > 1)
            qsort(lamp->items + cells[i].first, cells[i + 1].first - cells[i].first,
                  sizeof *lamp->items, nearer);
    return true;
}

static bool making_open(struct making *m)
{
    size_t count = m->mesh->header->count[MESH_POLYGONS];
    uint32_t most = 0;

    for (size_t i = 0; i < count; i++)
        most = m->mesh->polygons[i].count > most ? m->mesh->polygons[i].count : most;
    m->reach = malloc((count + 1) * sizeof *m->reach);
    m->listed = malloc((count + 1) * sizeof *m->listed);
    m->view.corners = malloc((most + 1) * sizeof *m->view.corners);
    m->view.edges = malloc((most + 1) * sizeof *m->view.edges);
    return m->reach && m->listed && m->view.corners && m->view.edges;
}

static void making_close(struct making *m)
{
    free(m->reach);
    free(m->listed);
    free(m->view.corners);
    free(m->view.edges);
    free(m->emitted);
}

static enum err_code lamp_fill(struct making *m, struct err *err)
{
    const struct mesh_header *h = m->mesh->header;
    struct mesh_lamp *lamp = m->lamp;
    double largest = h->slack / (16 * DBL_EPSILON), far = REACH_LAMP * largest;
    bool is_made = making_open(m);

    lamp->reach_m = REACH_ORIGIN * largest;
    if (!(fabs(lamp->at.x) <= far && fabs(lamp->at.y) <= far && fabs(lamp->at.z) <= far))
        return err_set(err, ERR_UNPROCESSABLE, "the light is over %d times the mesh away",
                       REACH_LAMP);
    for (uint32_t i = 0; is_made && i < h->count[MESH_POLYGONS]; i++)
        if (!reach_set(m->mesh, i, lamp, &m->reach[i]))
            return err_set(err, ERR_UNPROCESSABLE, "the light is in the planes of over %d polygons",
                           LAMP_FLAT_MAX);
    for (unsigned face = 0; face < 6 && is_made; face++)
        is_made = face_make(m, face);
    if (!is_made || (lamp->cell_count > 0 && !items_sort(m)))
        return err_set(err, ERR_NO_MEMORY, "no memory for a light over %llu polygons",
                       (unsigned long long)h->count[MESH_POLYGONS]);
    return ERR_OK;
}

enum err_code mesh_lamp_make(const struct mesh *mesh, struct vec3 at, struct mesh_lamp *out,
                             struct err *err)
{
    struct making making = {.mesh = mesh, .lamp = out};

    CHECK(!mesh->radial);
    *out = (struct mesh_lamp){.at = mesh_to_frame(mesh->header, at)};
    err->code = ERR_OK;
    (void)lamp_fill(&making, err);
    making_close(&making);
    if (err->code)
        mesh_lamp_free(out);
    return err->code;
}

void mesh_lamp_free(struct mesh_lamp *lamp)
{
    free(lamp->cells);
    free(lamp->items);
    *lamp = (struct mesh_lamp){.cell_count = 0};
}

size_t mesh_lamp_bytes(const struct mesh_lamp *lamp)
{
    return lamp->cell_count == 0 ? 0
                                 : (lamp->cell_count + 1) * sizeof *lamp->cells +
                                       (lamp->item_count + 1) * sizeof *lamp->items;
}
