/*
 * Layers: a name, a role and a counted surface. Readers reach a layer only through a published
 * snapshot, which holds a reference; so only the writer, workers that prepare a change, and the
 * thread that frees touch the count.
 *
 * A mesh is built for one gravity: its quadtree is searched along it, and a wall under one gravity
 * is a floor under another. So the original polygons are stored beside the mesh, counted; another
 * gravity builds another mesh of them, and vertices and indices always stay those of the file. A
 * moved layer shares mesh and polygons with its former state: only the pose is new. Dropped:
 * turning the image's vertices back, which saves a sixth of the memory, but rounds each time, and
 * has lost the polygons that were split or dropped.
 */
#include "world/values/layer.h"

#include "base/clock.h"
#include "world/values/threads.h"

#include "base/check.h"
#include "terrain/mesh/mesh_edit.h"

#include <stdlib.h>
#include <string.h>

struct layer_polygons {
    struct polygon_set set;
    uint64_t upload; /* equal in all states of one upload */
    uint64_t bytes;
    uint64_t counted; /* in all_meshes_bytes: these, and the first mesh that was built of them */
    uint32_t refs;    /* atomic */
};

static uint64_t all_meshes_bytes; /* atomic */

uint64_t layer_all_meshes_bytes(void)
{
    return __atomic_load_n(&all_meshes_bytes, __ATOMIC_RELAXED);
}

bool world_id_is_valid(const char *id, size_t length)
{
    if (!id || length == 0 || length > WORLD_ID_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = id[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-'))
            return false;
    }
    return true;
}

/* A small field costs little beside its samples: its layer is without what only meshes have. */
static size_t layer_bytes(enum layer_kind kind)
{
    return kind == LAYER_MESH ? sizeof(struct layer) : offsetof(struct layer, mesh_stats);
}

static struct layer *layer_allocate(const char *id, enum layer_kind kind, enum layer_role role,
                                    struct err *err)
{
    struct layer *layer = calloc(1, layer_bytes(kind));

    CHECK(world_id_is_valid(id, strlen(id)));
    if (!layer) {
        err_set(err, ERR_NO_MEMORY, "no memory for layer %s", id);
        return NULL;
    }
    memcpy(layer->id, id, strlen(id) + 1);
    layer->kind = kind;
    layer->role = role;
    layer->refs = 1;
    return layer;
}

struct layer *layer_create_heightfield(const char *id, struct heightfield *field, struct err *err)
{
    struct layer *layer = layer_allocate(id, LAYER_HEIGHTFIELD, LAYER_GROUND, err);
    struct heightfield_stats stats;

    if (!layer) {
        heightfield_unref(field);
        return NULL;
    }
    layer->field = field;
    heightfield_stats(field, &stats);
    layer->memory_bytes = stats.bytes + layer_bytes(LAYER_HEIGHTFIELD);
    return layer;
}

/* ---- polygons -------------------------------------------------------------------------------- */

/* upload 0: a new one. */
static struct layer_polygons *polygons_create(struct polygon_set *set, uint64_t upload,
                                              struct err *err)
{
    static uint64_t uploads;
    struct layer_polygons *polygons = malloc(sizeof *polygons);

    if (!polygons) {
        polygon_set_free(set);
        err_set(err, ERR_NO_MEMORY, "no memory for %zu polygons", set->polygon_count);
        return NULL;
    }
    if (upload == 0)
        upload = __atomic_add_fetch(&uploads, 1, __ATOMIC_RELAXED);
    *polygons = (struct layer_polygons){.set = *set, .upload = upload, .refs = 1};
    polygons->bytes = sizeof *polygons + set->vertex_count * sizeof *set->vertices +
                      set->starts[set->polygon_count] * sizeof *set->corners +
                      (set->polygon_count + 1) * sizeof *set->starts +
                      set->instances.count * sizeof *set->instances.at;
    *set = (struct polygon_set){0};
    return polygons;
}

static struct layer_polygons *polygons_ref(struct layer_polygons *polygons)
{
    __atomic_fetch_add(&polygons->refs, 1, __ATOMIC_RELAXED);
    return polygons;
}

static void polygons_unref(struct layer_polygons *polygons)
{
    if (!polygons || __atomic_fetch_sub(&polygons->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    __atomic_fetch_sub(&all_meshes_bytes, polygons->counted, __ATOMIC_RELAXED);
    polygon_set_free(&polygons->set);
    free(polygons);
}

static void count_once(struct layer_polygons *polygons, uint64_t bytes)
{
    uint64_t none = 0;

    if (__atomic_compare_exchange_n(&polygons->counted, &none, bytes, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        __atomic_fetch_add(&all_meshes_bytes, bytes, __ATOMIC_RELAXED);
}

/* Takes the references on the polygons and the mesh. */
static struct layer *layer_over_mesh(const char *id, enum layer_role role,
                                     struct layer_polygons *polygons, struct mesh *mesh,
                                     struct vec3 gravity, struct err *err)
{
    struct layer *layer = layer_allocate(id, LAYER_MESH, role, err);

    if (!layer) {
        polygons_unref(polygons);
        mesh_unref(mesh);
        return NULL;
    }
    layer->polygons = polygons;
    layer->gravity = gravity;
    layer->mesh = mesh;
    layer->space = mesh_space(mesh);
    mesh_stats(mesh, &layer->mesh_stats);
    layer->built_tests = layer->mesh_stats.average_tests;
    layer->memory_bytes = layer->mesh_stats.bytes + polygons->bytes + sizeof *layer;
    count_once(polygons, layer->memory_bytes);
    return layer;
}

/* Takes the reference on the polygons. */
static struct layer *layer_over_polygons(const char *id, enum layer_role role,
                                         struct layer_polygons *polygons, struct mesh_space space,
                                         struct vec3 gravity, struct pace *pace,
                                         struct mesh_import *import, struct err *err)
{
    const struct polygon_set *set = &polygons->set;
    const struct polygon_soup soup = {set->vertices, set->vertex_count, set->corners, set->starts,
                                      set->polygon_count};
    struct threads threads = threads_of_machine();
    const struct mesh_options options = {.gravity = gravity,
                                         .space = space,
                                         .instances = &set->instances,
                                         .pace = pace,
                                         .crew = &threads.crew};
    double start_s = monotonic_s();

    pace_items(pace, polygon_set_count(set));
    struct mesh *mesh = mesh_create(&soup, &options, import, err);

    if (mesh)
        pace_finish(pace);
    if (mesh && import)
        import->build_ms = (monotonic_s() - start_s) * 1e3;
    if (!mesh) {
        polygons_unref(polygons);
        return NULL;
    }
    return layer_over_mesh(id, role, polygons, mesh, gravity, err);
}

struct layer *layer_create_mesh(const char *id, enum layer_role role, struct polygon_set *polygons,
                                struct vec3 gravity, struct mesh_import *import, struct err *err)
{
    const struct mesh_space cartesian = {.frame = MESH_CARTESIAN};

    return layer_create_mesh_in(id, role, polygons, cartesian, gravity, NULL, import, err);
}

struct layer *layer_create_mesh_in(const char *id, enum layer_role role,
                                   struct polygon_set *polygons, struct mesh_space space,
                                   struct vec3 gravity, struct pace *pace,
                                   struct mesh_import *import, struct err *err)
{
    struct layer_polygons *counted;

    if (polygons->polygon_count == 0) {
        polygon_set_free(polygons);
        err_set(err, ERR_UNPROCESSABLE, "there are no polygons");
        return NULL;
    }
    counted = polygons_create(polygons, 0, err);
    return counted ? layer_over_polygons(id, role, counted, space, gravity, pace, import, err)
                   : NULL;
}

struct layer *layer_adopt_mesh(const char *id, enum layer_role role, struct mesh *mesh,
                               struct polygon_set *polygons, struct vec3 gravity, struct err *err)
{
    struct layer_polygons *counted = polygons_create(polygons, 0, err);
    struct layer *layer;

    if (!counted) {
        mesh_unref(mesh);
        return NULL;
    }
    layer = layer_over_mesh(id, role, counted, mesh, gravity, err);
    if (layer)
        layer->is_adopted = true;
    return layer;
}

/* A ball around the box of a moved mesh, larger by more than all rounding. */
static void put_ball(struct layer *layer)
{
    const struct box3 box = mesh_bounds(layer->mesh);
    const struct vec3 half = vec3_scale(vec3_sub(box.max, box.min), 0.5);
    struct layer_body *body = &layer->body;

    body->middle = motion_point_out(&layer->motion, vec3_add(box.min, half));
    body->ball_m = vec3_length(half) + 1e-9 * (1 + vec3_length(half) + vec3_length(body->middle));
}

struct layer *layer_create_body(struct layer_body body, const struct layer *surface,
                                const struct motion *motion, struct vec3 gravity, struct err *err)
{
    struct layer *layer = calloc(1, sizeof *layer); /* its id is "" */

    if (!layer) {
        err_set(err, ERR_NO_MEMORY, "no memory for a body of patch %llu",
                (unsigned long long)body.patch);
        return NULL;
    }
    layer->refs = 1;
    layer->kind = LAYER_MESH;
    layer->role = LAYER_GROUND;
    layer->body = body;
    layer->mesh = mesh_ref(surface->mesh);
    layer->polygons = polygons_ref(surface->polygons);
    layer->gravity = gravity;
    layer->space = surface->space;
    layer->is_moved = true;
    layer->motion = *motion;
    put_ball(layer);
    layer->memory_bytes = sizeof *layer;
    return layer;
}

/* ---- moves ----------------------------------------------------------------------------------- */

/* A layer of the same surface, to be changed before anybody sees it. */
static struct layer *layer_again(const struct layer *layer, struct err *err)
{
    struct layer *again = layer_allocate(layer->id, LAYER_MESH, layer->role, err);

    CHECK(layer->kind == LAYER_MESH);
    if (!again)
        return NULL;
    again->mesh = mesh_ref(layer->mesh);
    again->polygons = polygons_ref(layer->polygons);
    again->gravity = layer->gravity;
    again->space = layer->space;
    again->mesh_stats = layer->mesh_stats;
    again->built_tests = layer->built_tests;
    again->edited = layer->edited;
    again->is_adopted = layer->is_adopted;
    again->is_moved = layer->is_moved;
    again->motion = layer->motion;
    again->transform_seq = layer->transform_seq;
    again->pace = layer->pace;
    again->memory_bytes = layer->memory_bytes;
    return again;
}

/* The time of a pose; of several in a bunch the first counts. */
static void pace_add(struct layer_pace *pace, const struct pose *pose, double now_s)
{
    if (pace->count > 0 && now_s - pace->at_s[1] < LAYER_PACE_LEAST_S)
        return;
    pace->pose[0] = pace->pose[1];
    pace->at_s[0] = pace->at_s[1];
    pace->pose[1] = *pose;
    pace->at_s[1] = now_s;
    pace->count = pace->count < 2 ? pace->count + 1 : 2;
}

struct layer *layer_moved(const struct layer *layer, const struct pose *pose, double now_s,
                          uint64_t transform_seq, struct err *err)
{
    struct layer *moved = layer_again(layer, err);

    if (!moved)
        return NULL;
    moved->is_moved = true;
    moved->transform_seq = transform_seq;
    moved->motion = motion_at(pose, vec3_opposite(layer->gravity));
    pace_add(&moved->pace, pose, now_s);
    if (moved->pace.count == 2)
        motion_came_from(&moved->motion, &moved->pace.pose[0], now_s - moved->pace.at_s[0]);
    return moved;
}

struct layer *layer_rested(const struct layer *layer, struct err *err)
{
    struct layer *rested = layer_again(layer, err);

    if (!rested)
        return NULL;
    rested->motion = motion_at(&layer->motion.pose, layer->motion.axis);
    rested->pace.pose[1] = layer->motion.pose; /* also where it was the last of a bunch */
    return rested;
}

struct layer *layer_carried(struct layer *layer, const struct layer *from, struct err *err)
{
    struct layer *carried;

    if (!layer->is_moved && !from->is_moved)
        return layer_ref(layer);
    carried = layer_again(layer, err);
    if (!carried)
        return NULL;
    carried->is_moved = from->is_moved;
    carried->transform_seq = from->transform_seq;
    carried->motion = motion_at(&from->motion.pose, vec3_opposite(layer->gravity));
    carried->pace = from->pace;
    return carried;
}

/* ---- edits ----------------------------------------------------------------------------------- */

/* A tree is rebuilt when so many polygons were added or removed, and this share of all (then some
 * of the image is unused, too); or when the expected number of polygons that a query tests has
 * grown by this factor and this number since it was built. */
enum { EDITED_LEAST = 64, EDITED_SHARE = 4 };
#define TESTS_TIMES 1.5
#define TESTS_MORE 2.0

static struct polygon_soup soup_of(const struct polygon_set *set)
{
    return (struct polygon_soup){set->vertices, set->vertex_count, set->corners, set->starts,
                                 set->polygon_count};
}

static uint32_t numbers_of(const struct layer *layer)
{
    return (uint32_t)polygon_set_numbers(&layer->polygons->set);
}

/* The mesh of `set`, in the frame of the layer's where that is exact enough. */
static struct mesh *mesh_built(const struct layer *layer, const struct polygon_set *set,
                               struct mesh_import *import, struct pace *pace, struct err *err)
{
    const struct polygon_soup soup = soup_of(set);
    const struct mesh_options options = {.gravity = layer->gravity,
                                         .space = layer->space,
                                         .slack_times = MESH_EDIT_SLACK,
                                         .like = layer->mesh,
                                         .pace = pace,
                                         .first_counted = numbers_of(layer)};

    return mesh_create(&soup, &options, import, err);
}

/* The mesh of `set`, which an edit made of the layer's; *is_whole: it was rebuilt. */
static struct mesh *mesh_after(const struct layer *layer, const struct polygon_set *set,
                               const struct polygon_edit *edit, struct pace *pace,
                               struct mesh_import *import, bool *is_whole, struct err *err)
{
    struct polygon_soup after = soup_of(set), added = soup_of(&edit->add);
    const struct mesh_change change = {
        .added = edit->add.polygon_count > 0 ? &added : NULL,
        .first_number = numbers_of(layer),
        .removed = edit->removed,
        .removed_count = edit->removed_count,
        .after = &after,
        .pace = pace,
        .import = import,
    };
    struct mesh *mesh = mesh_edit(layer->mesh, &change, err);

    *is_whole = !mesh && err->code == ERR_CONFLICT;
    return *is_whole ? mesh_built(layer, set, import, pace, err) : mesh;
}

/* Numbers from `first` on that have corners and no piece become gaps; *has_lost: there are some. */
static enum err_code drop_lost(struct polygon_set *set, const struct mesh *mesh, uint32_t first,
                               bool *has_lost, struct err *err)
{
    size_t count = set->polygon_count - first;
    uint32_t *pieces = malloc((count + 1) * sizeof *pieces);
    struct polygon_edit lost = {.removed = malloc((count + 1) * sizeof *lost.removed)};
    struct polygon_set without;

    if (!pieces || !lost.removed) {
        err_set(err, ERR_NO_MEMORY, "no memory for %zu polygons", count);
    } else {
        mesh_count_pieces(mesh, first, count, pieces);
        for (uint32_t i = 0; i < count; i++)
            if (pieces[i] == 0 && set->starts[first + i] < set->starts[first + i + 1])
                lost.removed[lost.removed_count++] = first + i;
        *has_lost = lost.removed_count > 0;
        if (*has_lost && polygon_set_edited(set, &lost, &without, err) == ERR_OK) {
            polygon_set_free(set);
            *set = without;
        }
    }
    free(pieces);
    free(lost.removed);
    return err->code;
}

/* Takes the references. Where and as the layer moves. */
static struct layer *layer_over(const struct layer *layer, struct layer_polygons *polygons,
                                struct mesh *mesh, struct err *err)
{
    struct layer *next =
        layer_over_mesh(layer->id, layer->role, polygons, mesh, layer->gravity, err);

    if (!next)
        return NULL;
    next->is_moved = layer->is_moved;
    next->motion = layer->motion;
    next->transform_seq = layer->transform_seq;
    next->pace = layer->pace;
    return next;
}

struct layer *layer_edited(const struct layer *layer, const struct polygon_edit *edit,
                           struct pace *pace, struct mesh_import *import, struct err *err)
{
    const struct polygon_set *before = &layer->polygons->set;
    struct layer_polygons *polygons;
    struct polygon_set set;
    struct mesh *mesh;
    struct layer *next;
    bool is_whole = false, has_lost = false;

    CHECK(layer->kind == LAYER_MESH);
    err->code = ERR_OK;
    if (polygon_set_edited(before, edit, &set, err))
        return NULL;
    mesh = mesh_after(layer, &set, edit, pace, import, &is_whole, err);
    if (mesh)
        err->code = ERR_OK;
    if (mesh && drop_lost(&set, mesh, numbers_of(layer), &has_lost, err) == ERR_OK && is_whole &&
        has_lost) {
        /* a frame that what is logged gives, too */
        mesh_unref(mesh);
        mesh = mesh_built(layer, &set, NULL, pace, err);
    }
    if (!mesh || err->code != ERR_OK) {
        polygon_set_free(&set);
        mesh_unref(mesh);
        return NULL;
    }
    if (import)
        import->instances_copied = instances_repeated(&before->instances, before->polygon_count);
    polygons = polygons_create(&set, layer->polygons->upload, err);
    if (!polygons) {
        mesh_unref(mesh);
        return NULL;
    }
    next = layer_over(layer, polygons, mesh, err);
    if (next && !is_whole) {
        next->built_tests = layer->built_tests;
        next->edited = layer->edited + edit->add.polygon_count + edit->removed_count;
    }
    return next;
}

static void box_take(const struct polygon_set *set, size_t number, struct box3 *box, bool *has_box)
{
    for (uint32_t k = set->starts[number]; k < set->starts[number + 1]; k++) {
        struct vec3 v = set->vertices[set->corners[k]];

        *box = *has_box ? box3_union(*box, (struct box3){v, v}) : (struct box3){v, v};
        *has_box = true;
    }
}

bool layer_changed_box(const struct layer *before, const struct layer *after, struct box3 *out)
{
    const struct polygon_set *a, *b = &after->polygons->set;
    struct polygon_set made;
    struct err err;
    bool has_box = false;

    if (before->polygons == after->polygons)
        return false;
    a = polygon_set_flat(&before->polygons->set, &made, &err);
    if (!a || b->instances.count > 0) /* no memory for copies: all of it, which is true, too */
        return polygon_set_free(&made), layer_bounds(after, out);
    for (size_t i = 0; i < a->polygon_count; i++)
        if (b->starts[i] == b->starts[i + 1])
            box_take(a, i, out, &has_box);
    for (size_t i = a->polygon_count; i < b->polygon_count; i++)
        box_take(b, i, out, &has_box);
    polygon_set_free(&made);
    if (has_box && after->is_moved)
        *out = motion_box_out(&after->motion, out);
    return has_box;
}

bool layer_is_unbalanced(const struct layer *layer)
{
    const struct mesh_stats *stats = &layer->mesh_stats;

    if (layer->kind != LAYER_MESH || layer->edited == 0)
        return false;
    return (layer->edited >= EDITED_LEAST && layer->edited >= stats->polygons / EDITED_SHARE) ||
           stats->average_tests > TESTS_TIMES * layer->built_tests + TESTS_MORE;
}

bool layer_is_of_upload(const struct layer *layer, const struct layer *other)
{
    return layer->polygons && other->polygons &&
           layer->polygons->upload == other->polygons->upload && layer->role == other->role &&
           strcmp(layer->id, other->id) == 0 &&
           layer_fits(other, TRIANGULATION_ANTI, layer->gravity);
}

struct layer *layer_moving_as(const struct layer *layer, const struct layer *from, struct err *err)
{
    struct layer *moving = layer_again(layer, err);

    if (!moving)
        return NULL;
    moving->is_moved = from->is_moved;
    moving->motion = from->motion;
    moving->transform_seq = from->transform_seq;
    moving->pace = from->pace;
    return moving;
}

struct layer *layer_with_tree(const struct layer *layer, const struct layer *built, struct err *err)
{
    struct polygon_edit since;
    struct layer *whole, *next;

    if (!layer_is_of_upload(layer, built)) {
        err_set(err, ERR_CONFLICT, "layer %s is another one by now", layer->id);
        return NULL;
    }
    whole = layer_over(layer, polygons_ref(built->polygons), mesh_ref(built->mesh), err);
    if (!whole || layer->polygons == built->polygons)
        return whole;
    next = NULL;
    if (polygon_edit_between(&built->polygons->set, &layer->polygons->set, &since, err) == ERR_OK) {
        next = layer_edited(whole, &since, NULL, NULL, err);
        polygon_edit_free(&since);
    }
    layer_unref(whole);
    return next;
}

struct layer *layer_rebuilt(const struct layer *layer, struct pace *pace, struct err *err)
{
    struct polygon_soup soup = soup_of(&layer->polygons->set);
    const struct mesh_options options = {.gravity = layer->gravity,
                                         .space = layer->space,
                                         .instances = &layer->polygons->set.instances,
                                         .pace = pace,
                                         .like = layer->mesh};

    pace_items(pace, polygon_set_count(&layer->polygons->set));
    struct mesh *mesh = mesh_create(&soup, &options, NULL, err);

    if (mesh)
        pace_finish(pace);
    return mesh ? layer_over(layer, polygons_ref(layer->polygons), mesh, err) : NULL;
}

const struct polygon_set *layer_polygon_set(const struct layer *layer)
{
    return layer->polygons ? &layer->polygons->set : NULL;
}

/* ---- any layer ------------------------------------------------------------------------------- */

bool layer_fits(const struct layer *layer, enum triangulation triangulation, struct vec3 gravity)
{
    const struct vec3 *own = &layer->gravity;

    if (layer->kind == LAYER_HEIGHTFIELD)
        return heightfield_spec(layer->field)->triangulation == triangulation;
    if (layer->space.frame != MESH_CARTESIAN)
        return true;
    return own->x == gravity.x && own->y == gravity.y && own->z == gravity.z;
}

struct layer *layer_fitted(struct layer *layer, enum triangulation triangulation,
                           struct vec3 gravity, struct err *err)
{
    struct heightfield *field;
    struct layer *built, *carried;

    if (layer_fits(layer, triangulation, gravity))
        return layer_ref(layer);
    if (layer->kind == LAYER_MESH) {
        built = layer_over_polygons(layer->id, layer->role, polygons_ref(layer->polygons),
                                    layer->space, gravity, NULL, NULL, err);
        carried = built ? layer_carried(built, layer, err) : NULL;
        layer_unref(built);
        return carried;
    }
    field = heightfield_with_triangulation(layer->field, triangulation, err);
    return field ? layer_create_heightfield(layer->id, field, err) : NULL;
}

bool layer_is_rebuilt(const struct layer *layer, const struct layer *other)
{
    return layer->polygons && layer->polygons == other->polygons && layer->role == other->role &&
           strcmp(layer->id, other->id) == 0;
}

bool layer_bounds(const struct layer *layer, struct box3 *out)
{
    if (layer->kind == LAYER_HEIGHTFIELD)
        return heightfield_bounds(layer->field, out);
    *out = mesh_bounds(layer->mesh);
    if (layer->is_moved)
        *out = motion_box_out(&layer->motion, out);
    return true;
}

bool layer_validate(const struct layer *layer, struct err *err)
{
    if ((layer->kind == LAYER_HEIGHTFIELD) != (layer->field != NULL) ||
        (layer->kind == LAYER_MESH) != (layer->mesh != NULL) ||
        (layer->mesh != NULL) != (layer->polygons != NULL)) {
        err_set(err, ERR_INTERNAL, "layer %s has the surface of another kind", layer->id);
        return false;
    }
    if (layer->is_moved && (!layer->mesh || !vec3_is_finite(layer->motion.velocity) ||
                            fabs(vec3_dot(layer->motion.axis, layer->gravity) + 1) > 1e-9)) {
        err_set(err, ERR_INTERNAL, "layer %s moves as it cannot", layer->id);
        return false;
    }
    return layer->field ? heightfield_validate(layer->field, err) : mesh_validate(layer->mesh, err);
}

struct layer *layer_ref(struct layer *layer)
{
    __atomic_fetch_add(&layer->refs, 1, __ATOMIC_RELAXED);
    return layer;
}

void layer_unref(struct layer *layer)
{
    if (!layer || __atomic_fetch_sub(&layer->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    heightfield_unref(layer->field);
    mesh_unref(layer->mesh);
    polygons_unref(layer->polygons);
    free(layer);
}
