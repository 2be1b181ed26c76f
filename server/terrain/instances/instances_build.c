/*
 * Making and keeping instances.
 *
 * A range of polygons that several instances have, or one that is turned or shifted, becomes a mesh
 * of its own; all others together become one more, whose polygons keep their numbers (a map from
 * piece to number is in every image). So a town of a thousand kinds of houses and a million copies
 * of them has a thousand and one meshes.
 *
 * Copies are made instead where gravity does not fit, where there are more kinds than
 * INSTANCES_MESHES_MAX, and where a kind has no polygon that is kept: what is dropped is counted by
 * one rule then.
 */
#include "terrain/instances/instances.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "base/huge.h"
#include "terrain/mesh/convex_parts.h"

#include <stdlib.h>
#include <string.h>

/* ---- over an image --------------------------------------------------------------------------- */

static void box_grow(struct box3 *box, double by)
{
    const struct vec3 all = {by, by, by};

    box->min = vec3_sub(box->min, all);
    box->max = vec3_add(box->max, all);
}

/* The box of a place, larger by all that an answer in it may be off. */
static struct box3 box_of_place(const struct instances *instances, uint32_t i)
{
    const struct mesh *mesh = instances_mesh(instances, i);
    struct motion motion = instances_motion(instances, i);
    struct box3 own = mesh_bounds(mesh), box = motion_box_out(&motion, &own);
    struct vec3 far = {fmax(fabs(own.min.x), fabs(own.max.x)),
                       fmax(fabs(own.min.y), fabs(own.max.y)),
                       fmax(fabs(own.min.z), fabs(own.max.z))};

    box_grow(&box, 4 * mesh->header->slack + 4 * motion_rounding(&motion, far));
    return box;
}

/* As the triangle of its corners, one of them twice, for the tree. */
struct place_box {
    struct box3 box;
    struct vec3 again;
};

static struct place_box *boxes_make(const struct instances *instances, struct err *err)
{
    size_t count = instances->header->place_count;
    struct place_box *boxes = malloc(count * sizeof *boxes);

    if (!boxes) {
        err_set(err, ERR_NO_MEMORY, "no memory for %zu instances", count);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        boxes[i].box = box_of_place(instances, i);
        boxes[i].again = boxes[i].box.max;
    }
    return boxes;
}

static struct ray_tree_polygons tree_polygons(const struct place_box *boxes, size_t count,
                                              struct crew *crew)
{
    return (struct ray_tree_polygons){.points.wide = &boxes->box.min, .count = count, .crew = crew};
}

/* How far a box reaches to one of its six sides. */
static double side_at(const struct box3 *box, int side)
{
    const double reach[6] = {box->max.x,  box->max.y,  box->max.z,
                             -box->min.x, -box->min.y, -box->min.z};

    return reach[side];
}

/* Of a place's vertices. */
static struct box3 exact_box(const struct instances *instances, uint32_t i)
{
    const struct mesh *mesh = instances_mesh(instances, i);
    const struct mesh_header *h = mesh->header;
    struct motion motion = instances_motion(instances, i);
    struct box3 box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};

    for (uint64_t k = 0; k < h->count[MESH_VERTICES]; k++) {
        struct vec3 own = vec3_add(mesh_turn_back(h, point_at(&mesh->points, k)), h->centre);
        struct vec3 v = motion_point_out(&motion, own);

        box = box3_union(box, (struct box3){v, v});
    }
    return box;
}

static bool reaches_beyond(const struct box3 *box, const struct box3 *all)
{
    return box->min.x < all->min.x || box->min.y < all->min.y || box->min.z < all->min.z ||
           box->max.x > all->max.x || box->max.y > all->max.y || box->max.z > all->max.z;
}

/*
 * The box of all vertices. Boxes of turned boxes are too large, and the vertices of all places are
 * too many: those of the outermost places come first, and then few others have a box that reaches
 * beyond theirs. After VERTICES_MOST it is those boxes: larger than it has to be.
 */
static void bounds_set(struct instances *instances, const struct place_box *boxes)
{
    enum { VERTICES_MOST = 1 << 25 };
    uint64_t count = instances->header->place_count, vertices = 0;
    uint32_t outermost[6] = {0};

    for (uint32_t i = 1; i < count; i++)
        for (int side = 0; side < 6; side++)
            if (side_at(&boxes[i].box, side) > side_at(&boxes[outermost[side]].box, side))
                outermost[side] = i;
    instances->bounds = exact_box(instances, outermost[0]);
    for (uint64_t i = 1; i < count + 6; i++) {
        uint32_t at = i < 6 ? outermost[i] : (uint32_t)(i - 6);
        struct box3 box = boxes[at].box;

        if (!reaches_beyond(&box, &instances->bounds))
            continue;
        vertices += instances_mesh(instances, at)->header->count[MESH_VERTICES];
        if (vertices <= VERTICES_MOST)
            box = exact_box(instances, at);
        instances->bounds = box3_union(instances->bounds, box);
    }
}

/* The box, and the tree; meshes and places are there. */
static enum err_code places_index(struct instances *instances, struct crew *crew, struct err *err)
{
    struct place_box *boxes = boxes_make(instances, err);
    struct vec3 axis = instances->header->axis;
    double most = 0;

    if (!boxes)
        return err->code;
    struct ray_tree_polygons polygons = tree_polygons(boxes, instances->header->place_count, crew);

    bounds_set(instances, boxes);
    for (uint32_t i = 0; i < instances->header->place_count; i++) {
        struct motion motion = instances_motion(instances, i);
        double rounding = motion_rounding(&motion, (struct vec3){0, 0, 0});

        instances->rounding = fmax(instances->rounding, rounding);
    }
    for (uint64_t i = 0; i < instances->header->mesh_count; i++)
        instances->slack = fmax(instances->slack, instances->meshes[i]->header->slack);
    most = fmax(vec3_length(instances->bounds.min), vec3_length(instances->bounds.max));
    instances->slack += 32 * DBL_EPSILON * most;
    instances->is_upright = axis.x == 0 && axis.y == 0 && axis.z == 1;
    if (!(most <= 2 * MESH_COORDINATE_MAX_M))
        err_set(err, ERR_BAD_INPUT, "an instance is more than %g m from the frame's origin",
                MESH_COORDINATE_MAX_M);
    else
        ray_tree_build(&polygons, 0, &instances->tree, err);
    free(boxes);
    return err->code;
}

/* A mesh over an image, without meshes and tree; NULL: no memory. */
static struct mesh *mesh_over_instances(const void *image, struct err *err)
{
    struct mesh *mesh = calloc(1, sizeof *mesh);
    struct instances *instances = calloc(1, sizeof *instances);

    if (!mesh || !instances) {
        free(mesh);
        free(instances);
        err_set(err, ERR_NO_MEMORY, "no memory for a mesh");
        return NULL;
    }
    instances->header = image;
    instances->places =
        (const struct instances_place *)((const uint8_t *)image + sizeof *instances->header);
    atomic_init(&mesh->refs, 1);
    mesh->instances = instances;
    return mesh;
}

void instances_free(struct instances *instances)
{
    if (!instances)
        return;
    for (size_t i = 0; i < INSTANCES_MESHES_MAX; i++)
        mesh_unref(instances->meshes[i]);
    ray_tree_free(&instances->tree);
    free(instances);
}

/* ---- the image ------------------------------------------------------------------------------- */

static const struct instances_part *parts_of(const struct instances_header *h)
{
    return (const struct instances_part *)((const uint8_t *)h + sizeof *h +
                                           h->place_count * sizeof(struct instances_place));
}

static uint64_t head_bytes(uint64_t places, uint64_t meshes)
{
    return sizeof(struct instances_header) + places * sizeof(struct instances_place) +
           meshes * sizeof(struct instances_part);
}

static uint64_t header_checksum(const struct instances_header *header)
{
    return fnv1a(FNV1A_EMPTY, header, offsetof(struct instances_header, checksum));
}

/* Of places and meshes, whose images move into it; NULL: no memory. */
static void *image_make(const struct instances_place *places, size_t place_count,
                        struct mesh **meshes, size_t mesh_count, struct vec3 axis, struct err *err)
{
    struct instances_header h = {.version = INSTANCES_VERSION,
                                 .header_bytes = sizeof h,
                                 .place_count = place_count,
                                 .mesh_count = mesh_count,
                                 .axis = axis};
    struct instances_part parts[INSTANCES_MESHES_MAX];
    size_t at = mesh_aligned(head_bytes(place_count, mesh_count));
    uint8_t *image;

    for (size_t i = 0; i < mesh_count; i++) {
        parts[i] = (struct instances_part){at, meshes[i]->header->bytes};
        at += mesh_aligned(parts[i].bytes);
    }
    memcpy(h.magic, INSTANCES_MAGIC, sizeof h.magic);
    h.bytes = at;
    image = huge_alloc(at);
    if (!image) {
        err_set(err, ERR_NO_MEMORY, "no memory for a mesh of %zu instances", place_count);
        return NULL;
    }
    memset(image, 0, at);
    memcpy(image + sizeof h, places, place_count * sizeof *places);
    memcpy(image + sizeof h + place_count * sizeof *places, parts, mesh_count * sizeof *parts);
    for (size_t i = 0; i < mesh_count; i++) {
        size_t length;
        const void *own = mesh_image(meshes[i], &length);

        memcpy(image + parts[i].offset, own, length);
        mesh_image_move(meshes[i], image + parts[i].offset);
    }
    content_hash(image + sizeof h, at - sizeof h, h.content);
    h.checksum = header_checksum(&h);
    memcpy(image, &h, sizeof h);
    return image;
}

bool instances_is_image(const void *image, size_t length)
{
    return length >= sizeof(struct instances_header) &&
           memcmp(image, INSTANCES_MAGIC, sizeof INSTANCES_MAGIC - 1) == 0;
}

static enum err_code damaged(struct err *err, const char *what, uint64_t at)
{
    return err_set(err, ERR_BAD_INPUT, "the mesh image is damaged: %s %llu", what,
                   (unsigned long long)at);
}

static enum err_code header_check(const struct instances_header *h, size_t length, struct err *err)
{
    if (h->version != INSTANCES_VERSION)
        return err_set(err, ERR_BAD_INPUT,
                       "the mesh image of instances has version %u, this is version %d", h->version,
                       INSTANCES_VERSION);
    if (h->checksum != header_checksum(h) || h->header_bytes != sizeof *h)
        return damaged(err, "checksum of a header of bytes", sizeof *h);
    if (h->bytes != length)
        return err_set(err, ERR_BAD_INPUT, "the mesh image has %zu bytes, it says %llu", length,
                       (unsigned long long)h->bytes);
    if (h->place_count == 0 || h->place_count >= UINT32_MAX || h->mesh_count == 0 ||
        h->mesh_count > INSTANCES_MESHES_MAX || head_bytes(h->place_count, h->mesh_count) > length)
        return damaged(err, "counts do not fit, places", h->place_count);
    if (!(fabs(vec3_length(h->axis) - 1) < 1e-6))
        return damaged(err, "the axis is no unit vector, version", h->version);
    return ERR_OK;
}

static enum err_code parts_check(const struct instances_header *h, struct err *err)
{
    const struct instances_place *places = (const struct instances_place *)(h + 1);
    const struct instances_part *parts = parts_of(h);
    uint64_t at = mesh_aligned(head_bytes(h->place_count, h->mesh_count));
    uint8_t content[32];

    content_hash(h + 1, h->bytes - sizeof *h, content);
    if (memcmp(content, h->content, sizeof content) != 0)
        return damaged(err, "content hash of bytes", h->bytes);
    for (uint64_t i = 0; i < h->mesh_count; i++) {
        if (parts[i].offset != at || parts[i].bytes > h->bytes - at)
            return damaged(err, "the place of mesh", i);
        at += mesh_aligned(parts[i].bytes);
    }
    if (at != h->bytes)
        return damaged(err, "meshes end before bytes", h->bytes);
    for (uint64_t i = 0; i < h->place_count; i++) {
        const struct instances_place *p = &places[i];

        if (p->mesh >= h->mesh_count || !vec3_is_finite(p->translation) ||
            !(fabs(p->cos * p->cos + p->sin * p->sin - 1) < 1e-9))
            return damaged(err, "instance", i);
    }
    return ERR_OK;
}

static void keep(void *context) /* parts of an image go with the whole */
{
    (void)context;
}

static enum err_code meshes_open(struct instances *instances, struct crew *crew, struct err *err)
{
    const struct instances_header *h = instances->header;
    const struct instances_part *parts = parts_of(h);

    for (size_t i = 0; i < h->mesh_count; i++) {
        const uint8_t *image = (const uint8_t *)h + parts[i].offset;

        if (parts[i].bytes < sizeof(struct mesh_header) ||
            memcmp(image, MESH_MAGIC, sizeof instances->header->magic) != 0)
            return damaged(err, "no cartesian mesh is mesh", i);
        instances->meshes[i] = mesh_open_by(crew, image, parts[i].bytes, keep, NULL, err);
        if (!instances->meshes[i])
            return err->code;
    }
    return ERR_OK;
}

struct mesh *instances_open(struct crew *crew, const void *image, size_t length,
                            void (*release)(void *context), void *context, struct err *err)
{
    struct instances_header header;
    void *own = NULL;
    struct mesh *mesh;

    CHECK(!release || (uintptr_t)image % MESH_ALIGNMENT == 0);
    memcpy(&header, image, sizeof header);
    if (header_check(&header, length, err))
        return NULL;
    if (!release) {
        own = huge_alloc(mesh_aligned(length));
        if (!own) {
            err_set(err, ERR_NO_MEMORY, "no memory for a mesh image of %zu bytes", length);
            return NULL;
        }
        memcpy(own, image, length);
    }
    mesh = parts_check(own ? own : image, err) ? NULL : mesh_over_instances(own ? own : image, err);
    if (!mesh) {
        free(own);
        return NULL;
    }
    mesh->own = own;
    err->code = ERR_OK;
    if (meshes_open(mesh->instances, crew, err) || places_index(mesh->instances, crew, err)) {
        mesh_unref(mesh); /* release is not set yet: the image stays the caller's */
        return NULL;
    }
    mesh->release = release;
    mesh->context = context;
    return mesh;
}

/* ---- making ---------------------------------------------------------------------------------- */

enum { NO_MESH = UINT32_MAX };

struct making {
    const struct polygon_soup *soup;
    const struct mesh_options *options;
    uint32_t *uses;    /* [polygons] instances that begin with this one */
    uint32_t *mesh_of; /* [polygons] the mesh of those, or NO_MESH */
    struct instances_place *places;
    struct mesh_instance *others; /* that are of one mesh together */
    uint32_t *numbers;            /* of its polygons */
    size_t place_count, other_count, number_count;
    struct mesh *meshes[INSTANCES_MESHES_MAX];
    struct mesh_import imports[INSTANCES_MESHES_MAX];
    uint32_t polygons[INSTANCES_MESHES_MAX]; /* that each is of */
    size_t mesh_count;
    uint64_t built, to_build; /* polygons; to_build: at most */
};

static void making_free(struct making *making)
{
    if (!making)
        return;
    for (size_t i = 0; i < making->mesh_count; i++)
        mesh_unref(making->meshes[i]);
    free(making->uses);
    free(making->mesh_of);
    free(making->places);
    free(making->others);
    free(making->numbers);
    free(making);
}

static bool is_shared(const struct making *m, const struct mesh_instance *at)
{
    const struct vec3 t = at->translation;

    return m->uses[at->first] > 1 || instance_is_turned(at) || t.x != 0 || t.y != 0 || t.z != 0;
}

/* Counts the uses; returns the polygons of all instances that are of one mesh together. */
static uint64_t others_count(struct making *m)
{
    const struct mesh_instances *from = m->options->instances;
    uint64_t count = 0;

    for (size_t i = 0; i < from->count; i++)
        m->uses[from->at[i].first]++;
    for (size_t i = 0; i < from->count; i++)
        count += is_shared(m, &from->at[i]) ? 0 : from->at[i].count;
    return count;
}

static struct making *making_new(const struct polygon_soup *soup,
                                 const struct mesh_options *options, struct err *err)
{
    const struct mesh_instances *from = options->instances;
    struct making *making = calloc(1, sizeof *making);

    if (!making) {
        err_set(err, ERR_NO_MEMORY, "no memory for %zu instances", from->count);
        return NULL;
    }
    making->soup = soup;
    making->options = options;
    making->uses = calloc(soup->polygon_count, sizeof *making->uses);
    making->mesh_of = malloc(soup->polygon_count * sizeof *making->mesh_of);
    making->places = calloc(from->count + 1, sizeof *making->places);
    making->others = malloc(from->count * sizeof *making->others);
    if (making->uses && making->mesh_of && making->places && making->others) {
        uint64_t others = others_count(making);

        making->to_build = soup->polygon_count + others;
        making->numbers = malloc((others + 1) * sizeof *making->numbers);
        if (making->numbers)
            return making;
    }
    making_free(making);
    err_set(err, ERR_NO_MEMORY, "no memory for %zu instances", from->count);
    return NULL;
}

/* The pace of one of the meshes: its part of the progress is that of its polygons. */
static struct pace pace_of(struct making *m, size_t polygons)
{
    struct pace pace = m->options->pace ? *m->options->pace : (struct pace){.ask = NULL};
    double share = pace.share / (double)m->to_build;

    pace.first += share * (double)m->built;
    pace.share = share * (double)polygons;
    m->built += polygons;
    return pace;
}

/* A mesh of its own of the polygons of `count` instances, in their places. */
static enum err_code mesh_add(struct making *m, const struct mesh_instance *instances, size_t count,
                              const uint32_t *numbers, struct err *err)
{
    struct mesh_options options = *m->options;
    struct soup_copy copy;
    struct polygon_soup soup;

    if (instances_copy(m->soup, instances, count, m->options->instances->axis, &copy, err))
        return err->code;
    soup = soup_copy_view(&copy);
    struct pace pace = pace_of(m, soup.polygon_count);

    options.pace = &pace;
    options.instances = NULL;
    options.like = NULL;
    options.numbers = numbers;
    m->meshes[m->mesh_count] = mesh_create(&soup, &options, &m->imports[m->mesh_count], err);
    soup_copy_free(&copy);
    if (!m->meshes[m->mesh_count])
        return err->code;
    m->mesh_count++;
    return ERR_OK;
}

/* ERR_UNPROCESSABLE: copies are to be made of all. */
static enum err_code places_make(struct making *m, struct err *err)
{
    const struct mesh_instances *from = m->options->instances;
    uint32_t number = 0;

    for (size_t i = 0; i < m->soup->polygon_count; i++)
        m->mesh_of[i] = NO_MESH;
    for (size_t i = 0; i < from->count; number += from->at[i++].count) {
        const struct mesh_instance *at = &from->at[i];
        struct mesh_instance unplaced = {.cos = 1, .first = at->first, .count = at->count};

        if (!is_shared(m, at)) {
            m->others[m->other_count++] = *at;
            for (uint32_t k = 0; k < at->count; k++)
                m->numbers[m->number_count++] = number + k;
            continue;
        }
        if (m->mesh_of[at->first] == NO_MESH) {
            if (m->mesh_count + 1 == INSTANCES_MESHES_MAX)
                return err_set(err, ERR_UNPROCESSABLE, "there are too many kinds of instances");
            m->mesh_of[at->first] = (uint32_t)m->mesh_count;
            m->polygons[m->mesh_count] = at->count;
            if (mesh_add(m, &unplaced, 1, NULL, err))
                return err->code;
        }
        if (m->polygons[m->mesh_of[at->first]] != at->count)
            return err_set(err, ERR_BAD_INPUT, "instance %zu is of a part of another's polygons",
                           i);
        m->places[m->place_count++] = (struct instances_place){at->translation, at->cos, at->sin,
                                                               number, m->mesh_of[at->first]};
    }
    if (m->other_count == 0)
        return ERR_OK;
    m->places[m->place_count++] =
        (struct instances_place){.cos = 1, .mesh = (uint32_t)m->mesh_count};
    return mesh_add(m, m->others, m->other_count, m->numbers, err);
}

/* Counts are those of the copies; the drops that are listed have the least numbers of all. */
static void import_sum(const struct making *m, struct mesh_import *out)
{
    struct mesh_import told = {.told = 0};

    *out = (struct mesh_import){.kept = 0};
    for (size_t i = 0; i < m->place_count; i++) {
        const struct mesh_import *one = &m->imports[m->places[i].mesh];

        out->kept += one->kept;
        out->split += one->split;
        out->dropped += one->dropped;
        for (int k = 0; k < MESH_FATES; k++)
            out->by_fate[k] += one->by_fate[k];
        for (uint32_t k = 0; k < one->told; k++)
            import_drop(&told, m->places[i].first + one->drops[k].polygon, one->drops[k].fate);
    }
    out->told = told.told;
    memcpy(out->drops, told.drops, sizeof out->drops);
    out->instances_shared = instances_repeated(m->options->instances, m->soup->polygon_count);
}

static struct mesh *mesh_of(struct making *m, struct err *err)
{
    struct vec3 axis = m->options->instances->axis;
    void *image = image_make(m->places, m->place_count, m->meshes, m->mesh_count, axis, err);
    struct mesh *mesh = image ? mesh_over_instances(image, err) : NULL;

    if (!mesh) { /* the meshes have their images in it */
        for (size_t i = 0; i < m->mesh_count; i++)
            mesh_unref(m->meshes[i]);
        m->mesh_count = 0;
        free(image);
        return NULL;
    }
    mesh->own = image;
    memcpy(mesh->instances->meshes, m->meshes, m->mesh_count * sizeof *m->meshes);
    m->mesh_count = 0;
    if (places_index(mesh->instances, m->options->crew, err) == ERR_OK)
        return mesh;
    mesh_unref(mesh);
    return NULL;
}

/* One mesh of the copies of all. */
static struct mesh *mesh_of_copies(const struct polygon_soup *soup,
                                   const struct mesh_options *options, struct mesh_import *import,
                                   struct err *err)
{
    const struct mesh_instances *from = options->instances;
    struct mesh_options plain = *options;
    struct soup_copy copy;
    struct mesh *mesh;

    if (instances_check_copies(from, err) ||
        instances_copy(soup, from->at, from->count, from->axis, &copy, err))
        return NULL;
    struct polygon_soup all = soup_copy_view(&copy);

    plain.instances = NULL;
    mesh = mesh_create(&all, &plain, import, err);
    soup_copy_free(&copy);
    return mesh;
}

/* Do the turns leave gravity as it is? */
static bool are_about_gravity(const struct mesh_options *options)
{
    const struct mesh_instances *from = options->instances;
    struct vec3 off = vec3_add(from->axis, options->gravity);

    return options->space.frame == MESH_CARTESIAN && vec3_length(off) == 0;
}

struct mesh *instances_create(const struct polygon_soup *soup, const struct mesh_options *options,
                              struct mesh_import *import, struct err *err)
{
    struct making *making;
    struct mesh *mesh = NULL;

    if (!instances_are_sound(options->instances, soup->polygon_count)) {
        err_set(err, ERR_BAD_INPUT, "an instance has numbers that cannot be");
        return NULL;
    }
    if (!are_about_gravity(options))
        return mesh_of_copies(soup, options, import, err);
    making = making_new(soup, options, err);
    if (!making)
        return NULL;
    if (places_make(making, err) == ERR_OK) {
        if (import)
            import_sum(making, import);
        mesh = mesh_of(making, err);
    }
    making_free(making);
    if (!mesh && err->code == ERR_UNPROCESSABLE) {
        mesh = mesh_of_copies(soup, options, import, err);
        if (mesh && import)
            import->instances_copied = instances_repeated(options->instances, soup->polygon_count);
        return mesh;
    }
    VALIDATE_THAT(mesh == NULL || mesh_validate(mesh, err));
    return mesh;
}

/* ---- numbers --------------------------------------------------------------------------------- */

bool instances_validate(const struct instances *instances, struct err *err)
{
    struct place_box *boxes;
    bool is_right = true;

    for (size_t i = 0; is_right && i < instances->header->mesh_count; i++)
        is_right = mesh_validate(instances->meshes[i], err);
    boxes = is_right ? boxes_make(instances, err) : NULL;
    if (!boxes)
        return false;
    struct ray_tree_polygons polygons = tree_polygons(boxes, instances->header->place_count, NULL);

    is_right = ray_tree_validate(&instances->tree, &polygons, 0, err);
    free(boxes);
    return is_right;
}

void instances_stats(const struct instances *instances, struct mesh_stats *out)
{
    const struct instances_header *h = instances->header;
    for (size_t i = 0; i < h->mesh_count; i++) {
        struct mesh_stats one;

        mesh_stats(instances->meshes[i], &one);
        out->nodes += one.nodes;
        out->leaves += one.leaves;
        out->depth = one.depth > out->depth ? one.depth : out->depth;
        out->average_tests += one.average_tests / (double)h->mesh_count;
        for (int k = 0; k < MESH_DEPTHS; k++)
            out->depths[k] += one.depths[k];
        for (int k = 0; k < MESH_STRUCTURES; k++)
            out->bytes_of[k] += one.bytes_of[k];
    }
    for (size_t i = 0; i < h->place_count; i++)
        out->polygons += instances_mesh(instances, (uint32_t)i)->header->count[MESH_POLYGONS];
    out->bytes_of[MESH_OF_OTHERS] += sizeof(struct mesh) + sizeof *instances +
                                     head_bytes(h->place_count, h->mesh_count) +
                                     ray_tree_bytes(&instances->tree);
    for (int k = 0; k < MESH_STRUCTURES; k++)
        out->bytes += out->bytes_of[k];
}
