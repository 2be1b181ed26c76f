/*
 * Bytes to changes and locales. The format is in record.h.
 *
 * Problem: the entries of a log were written by another daemon, perhaps of another version, and may
 * be damaged or forged; they are published as ground. Approach: every number is checked before it
 * is used, and every count against the bytes that are left, so that no more memory is allocated
 * than a small multiple of them. Heights, meshes and models pass the same checks as those of an
 * upload or of a store.
 *
 * A mesh's image that cannot be opened (of another version of the builder) is no damage: the mesh
 * is built of its polygons, which are authoritative.
 *
 * The values of a snapshot share what they have in common: bytes of a layer that were read before,
 * and tiles of the same hash at the same place, are the layer and the tiles that were made then.
 *
 * Invariant: a manifest keeps its bits: it was normalised when it was first put.
 */
#include "world/follow/record.h"

#include "base/array_reserve.h"
#include "base/check.h"
#include "world/follow/record_data.h"
#include "world/write/kinds/kind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool record_is_bad(const struct record_reader *r)
{
    return r->err->code != ERR_OK;
}

void record_damaged(struct record_reader *r, const char *what)
{
    if (!record_is_bad(r))
        err_set(r->err, ERR_DAMAGED, "%s", what);
}

void record_get(struct record_reader *r, void *out, size_t length)
{
    if (length > r->left || record_is_bad(r)) {
        record_damaged(r, "it ends too early");
        memset(out, 0, length);
        return;
    }
    if (length > 0)
        memcpy(out, r->at, length);
    r->at += length;
    r->left -= length;
}

static unsigned get_u8(struct record_reader *r)
{
    uint8_t value;

    record_get(r, &value, sizeof value);
    return value;
}

static uint32_t get_u32(struct record_reader *r)
{
    uint32_t value;

    record_get(r, &value, sizeof value);
    return value;
}

/* A number of which only 0 .. most have a meaning. */
static unsigned get_word(struct record_reader *r, unsigned most, const char *what)
{
    unsigned value = get_u8(r);

    if (value > most)
        record_damaged(r, what);
    return value <= most ? value : 0;
}

static struct vec3 get_vec3(struct record_reader *r)
{
    double v[3];

    record_get(r, v, sizeof v);
    return (struct vec3){v[0], v[1], v[2]};
}

static uint64_t get_u64(struct record_reader *r)
{
    uint64_t value;

    record_get(r, &value, sizeof value);
    return value;
}

/* Text of at most `most` bytes, without a NUL. */
static void get_text(struct record_reader *r, char *out, size_t length, size_t most)
{
    memset(out, 0, most + 1);
    if (length > most)
        record_damaged(r, "a text is too long");
    else
        record_get(r, out, length);
    if (!record_is_bad(r) && memchr(out, '\0', length))
        record_damaged(r, "a text holds a NUL");
}

void record_get_id(struct record_reader *r, char out[static WORLD_ID_MAX + 1])
{
    unsigned length = get_u8(r);

    memset(out, 0, WORLD_ID_MAX + 1);
    if (length > WORLD_ID_MAX)
        record_damaged(r, "an id is too long");
    else
        record_get(r, out, length);
    if (!record_is_bad(r) && !world_id_is_valid(out, length))
        record_damaged(r, "an id is none");
}

static void get_end(struct record_reader *r)
{
    if (r->left > 0)
        record_damaged(r, "there is more than it should have");
}

/* The blob whose hash is next: malloc. NULL with an error. */
static void *get_blob(struct record_reader *r, size_t *length)
{
    uint8_t hash[CLUSTER_HASH_BYTES];
    void *bytes = NULL;

    record_get(r, hash, sizeof hash);
    if (record_is_bad(r))
        return NULL;
    if (r->source->get(r->source->context, hash, &bytes, length, r->err) == ERR_NOT_FOUND)
        r->err->code = ERR_DAMAGED;
    return record_is_bad(r) ? NULL : bytes;
}

/* An error of another room about these bytes is damage, except a lack of memory. */
void record_refused(struct record_reader *r, const struct err *reason)
{
    if (record_is_bad(r))
        return;
    *r->err = *reason;
    if (reason->code != ERR_NO_MEMORY && reason->code != ERR_UNAVAILABLE)
        r->err->code = ERR_DAMAGED;
}

static void get_version(struct record_reader *r, unsigned newest)
{
    r->version = get_u8(r);
    if (!record_is_bad(r) && (r->version < RECORD_VERSION_FIRST || r->version > newest))
        record_damaged(r, "it has a version that this kotad does not know");
}

/* ---- manifests ------------------------------------------------------------------------------- */

struct locale_manifest record_get_manifest(struct record_reader *r)
{
    struct locale_manifest m = locale_manifest_default, checked;
    struct err reason = {.code = ERR_OK};
    uint16_t length;
    double geo[2] = {0};
    unsigned place;

    record_get(r, &length, sizeof length);
    get_text(r, m.title, length, LOCALE_TITLE_BYTES_MAX);
    m.gravity = get_vec3(r);
    m.placement.translation = get_vec3(r);
    record_get(r, m.placement.rotation, sizeof m.placement.rotation);
    m.open_sky = get_word(r, 1, "open_sky is neither 0 nor 1") == 1;
    m.triangulation =
        (enum triangulation)get_word(r, TRIANGULATION_ALTERNATING, "a triangulation is none");
    place = get_word(r, 2 + RECORD_FORK, "a place is none");
    record_get(r, geo, sizeof geo);
    m.has_geo = place % RECORD_FORK == 1;
    if (place % RECORD_FORK == 3)
        record_damaged(r, "a place is none");
    if (place % RECORD_FORK == 2) {
        m.crs = geo[0] >= LOCALE_CRS_MIN && geo[0] <= LOCALE_CRS_MAX ? (uint32_t)geo[0] : 0;
        if (m.crs == 0 || m.crs != geo[0])
            record_damaged(r, "a crs is none");
    } else {
        m.geo_lat_deg = geo[0];
        m.geo_lng_deg = geo[1];
    }
    if (place >= RECORD_FORK) {
        get_text(r, m.from, get_u8(r), LOCALE_FROM_MAX);
        m.from_revision = get_u64(r);
    }
    checked = m;
    if (!record_is_bad(r) && locale_manifest_check(&checked, &reason))
        record_refused(r, &reason);
    return m;
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* A field's bytes before its hashes. */
enum { FIELD_HEAD_BYTES = 1 + 3 * 4 + 1 + 4 * 8 };

/* A field of the same grid that was read before and has that tile; NULL: none. */
static const struct heightfield *known_tile(const struct record_reader *r, const uint8_t *layer)
{
    const size_t at = (size_t)(r->at - layer);

    for (size_t i = r->known_count; i-- > 0;) {
        const struct record_known *known = &r->known[i];

        if (known->layer->field && known->length >= at + CLUSTER_HASH_BYTES &&
            r->left >= CLUSTER_HASH_BYTES && memcmp(known->at, layer, FIELD_HEAD_BYTES) == 0 &&
            memcmp(known->at + at, r->at, CLUSTER_HASH_BYTES) == 0)
            return known->layer->field;
    }
    return NULL;
}

/* `layer` is where the bytes of its layer begin. */
static void get_tile(struct record_reader *r, const uint8_t *layer,
                     struct heightfield_builder *builder, const struct heightfield_spec *spec,
                     uint32_t tx, uint32_t ty)
{
    const struct heightfield *same = known_tile(r, layer);
    struct err reason = {.code = ERR_OK};
    uint32_t cols, rows;
    size_t length = 0;
    float *samples, *packed;

    if (same) {
        record_get(r, (uint8_t[CLUSTER_HASH_BYTES]){0}, CLUSTER_HASH_BYTES);
        heightfield_builder_share(builder, tx, ty, same);
        return;
    }
    packed = get_blob(r, &length);

    if (!packed)
        return;
    heightfield_tile_size(spec, tx, ty, &cols, &rows);
    if (length != (size_t)cols * rows * sizeof *packed) {
        free(packed);
        record_damaged(r, "a tile has another size");
        return;
    }
    samples = heightfield_builder_begin(builder, tx, ty, &reason);
    for (uint32_t row = 0; samples && row < rows; row++)
        memcpy(samples + row * heightfield_builder_stride(builder), packed + (size_t)row * cols,
               cols * sizeof *samples);
    if (!samples || heightfield_builder_seal(builder, tx, ty, &reason))
        record_refused(r, &reason);
    free(packed);
}

static bool is_side(uint32_t samples)
{
    return samples >= 2 && samples <= HEIGHTFIELD_SIDE_MAX;
}

static struct layer *get_field(struct record_reader *r, const char *id)
{
    struct heightfield_spec spec = {.cols = get_u32(r), .rows = 0};
    struct heightfield_tile_layout layout;
    struct heightfield_builder *builder;
    struct heightfield *field = NULL;
    struct err reason = {.code = ERR_OK};
    struct layer *layer = NULL;
    const uint8_t *first = r->at - 1 - sizeof spec.cols;
    double grid[4];

    spec.rows = get_u32(r);
    spec.leaf_cells = get_u32(r);
    spec.triangulation =
        (enum triangulation)get_word(r, TRIANGULATION_ALTERNATING, "a triangulation is none");
    record_get(r, grid, sizeof grid);
    spec.origin_x_m = grid[0];
    spec.origin_y_m = grid[1];
    spec.spacing_x_m = grid[2];
    spec.spacing_y_m = grid[3];
    if (!record_is_bad(r) && !(is_side(spec.cols) && is_side(spec.rows)))
        record_damaged(r, "a heightfield has a size that none has");
    if (record_is_bad(r))
        return NULL;
    layout = heightfield_tile_layout(&spec);
    if ((uint64_t)layout.tile_cols * layout.tile_rows > r->left / CLUSTER_HASH_BYTES) {
        record_damaged(r, "a heightfield has less tiles than it should have");
        return NULL;
    }
    builder = heightfield_builder_create(&spec, &reason);
    if (!builder) {
        record_refused(r, &reason);
        return NULL;
    }
    for (uint32_t ty = 0; ty < layout.tile_rows; ty++)
        for (uint32_t tx = 0; tx < layout.tile_cols && !record_is_bad(r); tx++)
            get_tile(r, first, builder, &spec, tx, ty);
    if (record_is_bad(r))
        heightfield_builder_free(builder);
    else
        field = heightfield_builder_finish(builder, &reason);
    if (field)
        layer = layer_create_heightfield(id, field, &reason);
    if (!layer)
        record_refused(r, &reason);
    return layer;
}

/* Every index leads to a vertex, every polygon has corners or is a gap, every vertex is a place. */
static bool is_sound(const struct polygon_set *set)
{
    size_t corners = set->starts[set->polygon_count];

    if (set->starts[0] != 0)
        return false;
    for (size_t i = 0; i < set->polygon_count; i++)
        if (set->starts[i + 1] < set->starts[i] || set->starts[i + 1] > corners ||
            (set->starts[i + 1] != set->starts[i] && set->starts[i + 1] - set->starts[i] < 3))
            return false;
    for (size_t i = 0; i < corners; i++)
        if (set->corners[i] >= set->vertex_count)
            return false;
    for (size_t i = 0; i < set->vertex_count; i++)
        if (!vec3_is_finite(set->vertices[i]))
            return false;
    return true;
}

static void unpack_polygons(struct record_reader *r, const uint8_t *bytes, size_t length,
                            struct polygon_set *out)
{
    struct err reason = {.code = ERR_OK};
    uint64_t counts[3];
    size_t parts[3];

    if (length < sizeof counts) {
        record_damaged(r, "polygons end too early");
        return;
    }
    memcpy(counts, bytes, sizeof counts);
    if (counts[0] > UINT32_MAX || counts[1] == 0 || counts[1] >= UINT32_MAX ||
        counts[2] > UINT32_MAX) {
        record_damaged(r, "polygons have counts that cannot be");
        return;
    }
    parts[0] = counts[0] * sizeof *out->vertices;
    parts[1] = (counts[1] + 1) * sizeof *out->starts;
    parts[2] = counts[2] * sizeof *out->corners;
    size_t plain = sizeof counts + parts[0] + parts[1] + parts[2];

    if (length < plain) {
        record_damaged(r, "polygons have another length than their counts say");
        return;
    }
    if (polygon_set_allocate(counts[0], counts[1], counts[2], out, &reason)) {
        record_refused(r, &reason);
        return;
    }
    bytes += sizeof counts;
    memcpy(out->vertices, bytes, parts[0]);
    memcpy(out->starts, bytes + parts[0], parts[1]);
    memcpy(out->corners, bytes + parts[0] + parts[1], parts[2]);
    if (out->starts[counts[1]] != counts[2] || !is_sound(out))
        record_damaged(r, "polygons have corners that are not there");
    else if (!polygon_instances_take(bytes + plain - sizeof counts, length - plain, out, &reason))
        record_damaged(r, "polygons have instances that cannot be");
}

static bool is_of_space(const struct mesh *mesh, struct mesh_space space)
{
    struct mesh_space is = mesh_space(mesh);

    return is.frame == space.frame && is.is_outward == space.is_outward;
}

static struct layer *get_mesh(struct record_reader *r, const char *id)
{
    enum layer_role role = (enum layer_role)get_word(r, LAYER_CEILING, "a role is none");
    struct mesh_space space = {
        .frame = (enum mesh_frame)get_word(r, MESH_CYLINDRICAL, "a frame is none"),
        .is_outward = get_word(r, 1, "is_outward is neither 0 nor 1") == 1};
    struct vec3 gravity = get_vec3(r);
    struct polygon_set polygons = {.polygon_count = 0};
    struct err reason = {.code = ERR_OK};
    struct layer *layer = NULL;
    struct mesh *mesh = NULL;
    size_t polygons_length = 0, image_length = 0;
    void *packed = get_blob(r, &polygons_length), *image = get_blob(r, &image_length);

    if (!record_is_bad(r) && !(fabs(vec3_length(gravity) - 1) < 1e-6))
        record_damaged(r, "a mesh's gravity is no unit vector");
    if (packed && !record_is_bad(r))
        unpack_polygons(r, packed, polygons_length, &polygons);
    free(packed);
    if (image && !record_is_bad(r)) {
        mesh = mesh_open(image, image_length, NULL, NULL, &reason);
        if (mesh && is_of_space(mesh, space))
            layer = layer_adopt_mesh(id, role, mesh, &polygons, gravity, &reason);
        else
            mesh_unref(mesh);
        if (!layer && polygons.polygon_count > 0)
            layer = layer_create_mesh_in(id, role, &polygons, space, gravity, NULL, NULL, &reason);
        if (!layer)
            record_refused(r, &reason);
    }
    free(image);
    polygon_set_free(&polygons);
    return layer;
}

struct layer *record_get_layer(struct record_reader *r, const char *id)
{
    unsigned kind = get_word(r, 1, "a layer is of no kind");

    if (record_is_bad(r))
        return NULL;
    return kind == 0 ? get_field(r, id) : get_mesh(r, id);
}

/* Keeps a layer for others to share; without memory they do not. Takes next->own. */
static void keep_known(struct record_reader *r, struct record_known *next)
{
    if (!array_reserve((void **)&r->known, &r->known_room, r->known_count + 1, sizeof *next)) {
        free(next->own);
        return;
    }
    layer_ref(next->layer);
    r->known[r->known_count++] = *next;
}

static void forget_known(struct record_reader *r)
{
    while (r->known_count > 0) {
        layer_unref(r->known[--r->known_count].layer);
        free(r->known[r->known_count].own);
    }
    free(r->known);
}

/* The layers of what a fork was made of, as it is here. */
static void know_base(struct record_reader *r, const struct locale_manifest *manifest)
{
    struct err reason = {.code = ERR_OK};
    const struct locale *base =
        r->source->base ? r->source->base(r->source->context, manifest, &reason) : NULL;
    const struct locale *then = base ? locale_at_revision(base, manifest->from_revision) : NULL;
    const struct locale *values[] = {then, base == then ? NULL : base};

    if (reason.code != ERR_OK && !record_is_bad(r))
        *r->err = reason;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; values[k] && i < values[k]->layer_count; i++) {
            struct record_known next = {.layer = values[k]->layers[i]};

            next.at = next.own = record_layer(next.layer, &next.length);
            if (next.own)
                keep_known(r, &next);
        }
}

/* The same, shared with layers that were read before, and kept for later ones. */
static struct layer *get_shared_layer(struct record_reader *r, const char *id)
{
    static const struct layer unmoved = {.is_moved = false};
    struct record_known next = {.at = r->at};

    for (size_t i = 0; i < r->known_count; i++) {
        const struct record_known *known = &r->known[i];

        if (strcmp(known->layer->id, id) != 0 || known->length > r->left ||
            memcmp(known->at, r->at, known->length) != 0)
            continue;
        r->at += known->length;
        r->left -= known->length;
        return known->layer->is_moved ? layer_carried(known->layer, &unmoved, r->err)
                                      : layer_ref(known->layer);
    }
    next.layer = record_get_layer(r, id);
    if (!next.layer)
        return NULL;
    next.length = (size_t)(r->at - next.at);
    keep_known(r, &next);
    return next.layer;
}

struct world_poses *record_get_poses(struct record_reader *r)
{
    uint64_t transform_seq = get_u64(r);
    uint32_t count = get_u32(r);
    struct world_poses *poses;

    if (count > LOCALE_LAYERS_MAX)
        record_damaged(r, "a locale has more poses than layers");
    if (record_is_bad(r))
        return NULL;
    poses = calloc(1, sizeof *poses + count * sizeof *poses->at);
    if (!poses) {
        err_set(r->err, ERR_NO_MEMORY, "no memory for poses");
        return NULL;
    }
    poses->transform_seq = transform_seq;
    poses->count = count;
    for (uint32_t i = 0; i < count && !record_is_bad(r); i++) {
        struct store_pose *pose = &poses->at[i].pose;
        double numbers[8];

        record_get_id(r, poses->at[i].layer);
        record_get(r, numbers, sizeof numbers);
        memcpy(pose->translation, numbers, sizeof pose->translation);
        pose->yaw_deg = numbers[3];
        memcpy(pose->rotation, numbers + 4, sizeof pose->rotation);
        pose->transform_seq = get_u64(r);
        for (int k = 0; k < 8; k++)
            if (!isfinite(numbers[k]))
                record_damaged(r, "a pose is none");
    }
    if (!record_is_bad(r))
        return poses;
    free(poses);
    return NULL;
}

/* The layers of a value, LOCALE_LAYERS_MAX at most; *count are made, also on an error. */
static void get_layers(struct record_reader *r, const struct locale_manifest *manifest,
                       struct layer **layers, size_t *count)
{
    uint32_t most = get_u32(r);

    if (most > LOCALE_LAYERS_MAX)
        record_damaged(r, "a locale has more layers than one takes");
    for (uint32_t i = 0; i < most && !record_is_bad(r); i++) {
        char id[WORLD_ID_MAX + 1];
        struct layer *layer = NULL;

        record_get_id(r, id);
        for (size_t k = 0; k < *count; k++)
            if (strcmp(layers[k]->id, id) == 0)
                record_damaged(r, "a locale has two layers of one name");
        if (!record_is_bad(r))
            layer = get_shared_layer(r, id);
        if (layer && !layer_fits(layer, manifest->triangulation, manifest->gravity))
            record_damaged(r, "a layer does not fit its locale");
        if (layer && *count > 0 &&
            (layer->space.frame != layers[0]->space.frame ||
             layer->space.is_outward != layers[0]->space.is_outward))
            record_damaged(r, "two layers are of different spaces");
        if (layer)
            layers[(*count)++] = layer;
    }
}

struct locale *record_get_value(struct record_reader *r, const char *id, uint64_t revision)
{
    struct locale_manifest manifest = record_get_manifest(r);
    struct layer *layers[LOCALE_LAYERS_MAX];
    struct err reason = {.code = ERR_OK};
    struct locale *value = NULL;
    size_t count = 0;

    if (!record_is_bad(r) && manifest.from[0] != '\0')
        know_base(r, &manifest);
    if (!record_is_bad(r))
        get_layers(r, &manifest, layers, &count);
    if (!record_is_bad(r)) {
        value = locale_assemble(id, revision, &manifest, layers, count, &reason);
        if (!value)
            record_refused(r, &reason);
        return value;
    }
    while (count > 0)
        layer_unref(layers[--count]);
    return NULL;
}

/* ---- models ---------------------------------------------------------------------------------- */

struct model *record_get_model(struct record_reader *r, const char *id)
{
    struct polygon_limits limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct err reason = {.code = ERR_OK};
    struct model *model = NULL;
    size_t length = 0;
    void *bytes = get_blob(r, &length);

    if (bytes)
        model = model_create(id, bytes, length, &limits, &reason);
    if (bytes && !model)
        record_refused(r, &reason);
    free(bytes);
    return model;
}

/* ---- an entry -------------------------------------------------------------------------------- */

/* The answer of an entry's op_id. */
struct recorded_answer {
    size_t bytes;
    uint8_t at[];
};

static void *copy_recorded_answer(void *context, const struct world_outcome *outcome, size_t *bytes)
{
    const struct recorded_answer *recorded = context;
    void *copy = malloc(recorded->bytes);

    (void)outcome;
    if (copy)
        memcpy(copy, recorded->at, recorded->bytes);
    *bytes = recorded->bytes;
    return copy;
}

static void get_answer(struct record_reader *r, const struct cluster_entry *entry,
                       struct world_change *out)
{
    uint32_t length = get_u32(r);
    struct recorded_answer *recorded;

    if (length > r->left)
        record_damaged(r, "it ends too early");
    if (record_is_bad(r) || length == 0)
        return;
    if (entry->op_id[0] == '~') {
        record_damaged(r, "there is an answer to nobody");
        return;
    }
    recorded = malloc(sizeof *recorded + length);
    if (!recorded) {
        err_set(r->err, ERR_NO_MEMORY, "no memory for an answer");
        return;
    }
    recorded->bytes = length;
    record_get(r, recorded->at, length);
    out->answer = copy_recorded_answer;
    out->context = recorded;
}

/* What the history has of the change. */
static void get_words(struct record_reader *r, struct world_change *out)
{
    struct change_author *author = &out->author;
    uint16_t length;

    record_get(r, &author->time_ms, sizeof author->time_ms);
    get_text(r, author->name, get_u8(r), STORE_AUTHOR_MAX);
    record_get(r, &length, sizeof length);
    get_text(r, author->note, length, STORE_NOTE_MAX);
    author->is_set = get_word(r, 1, "a set is neither 0 nor 1") == 1;
}

/* The kind of the entry and the ids that it wants. */
static void get_kind(struct record_reader *r, const struct cluster_entry *entry,
                     struct world_change *out)
{
    bool is_of_model = strcmp(entry->locale, RECORD_MODELS) == 0, wants_model, wants_layer;

    if (!change_kind_of_log(entry->kind, &out->kind)) {
        record_damaged(r, "it is of a kind that this kotad does not know; a newer one wrote it");
        return;
    }
    wants_model = change_kind(out->kind)->scope == CHANGE_OF_MODEL;
    wants_layer = change_kind(out->kind)->logs_layer;
    if (wants_model != is_of_model ||
        (!is_of_model && !world_id_is_valid(entry->locale, strlen(entry->locale))) ||
        ((wants_layer || wants_model) && !world_id_is_valid(entry->layer, strlen(entry->layer)))) {
        record_damaged(r, "its ids are not those of its kind");
        return;
    }
    memcpy(is_of_model ? out->model_id : out->layer_id, entry->layer, sizeof out->layer_id);
    if (!is_of_model)
        memcpy(out->locale_id, entry->locale, sizeof out->locale_id);
    memcpy(out->source, entry->source, sizeof out->source);
    if (entry->op_id[0] != '~' && !is_of_model) {
        memcpy(out->op_id, entry->op_id, sizeof out->op_id);
        memcpy(out->request, entry->request, sizeof out->request);
    }
}

static void change_drop(struct world_change *change)
{
    free(change->context);
    world_drop(change);
    *change = (struct world_change){.kind = WORLD_FIND_OP};
}

enum err_code record_change(const struct cluster_entry *entry, const struct record_source *source,
                            struct world_change *out, struct err *err)
{
    struct record_reader r = {
        .at = entry->data, .left = entry->bytes, .source = source, .err = err};
    struct err reason = {.code = ERR_OK};
    uint16_t spare;

    err->code = ERR_OK;
    *out = (struct world_change){.kind = WORLD_FIND_OP};
    get_version(&r, RECORD_VERSION);
    if ((int)get_u8(&r) != entry->kind)
        record_damaged(&r, "its kind and its bytes disagree");
    record_get(&r, &spare, sizeof spare);
    if (spare != 0)
        record_damaged(&r, "it has a version that this kotad does not know");
    if (!record_is_bad(&r))
        get_kind(&r, entry, out);
    get_answer(&r, entry, out);
    if (r.version >= RECORD_VERSION && change_kind(out->kind)->scope != CHANGE_OF_MODEL)
        get_words(&r, out);
    if (!record_is_bad(&r))
        change_kind(out->kind)->decode(&r, entry, out);
    get_end(&r);
    forget_known(&r);
    if (err->code == ERR_OK)
        return ERR_OK;
    change_drop(out);
    reason = *err;
    return err_set(err, reason.code, "the shared log's entry of %.64s, revision %llu: %.180s",
                   entry->locale, (unsigned long long)entry->revision, reason.msg);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static struct record_reader open_snapshot(const void *bytes, size_t length,
                                          const struct record_source *source,
                                          enum record_whole *what, struct err *err)
{
    struct record_reader r = {.at = bytes, .left = length, .source = source, .err = err};

    err->code = ERR_OK;
    get_version(&r, RECORD_VERSION_HISTORY);
    if (get_u8(&r) != RECORD_SNAPSHOT)
        record_damaged(&r, "it has a version that this kotad does not know");
    *what = (enum record_whole)get_word(&r, RECORD_ALL_MODELS, "it is a snapshot of nothing");
    get_word(&r, 0, "it has a version that this kotad does not know");
    return r;
}

static void get_pin(struct record_reader *r, struct locale *locale, uint64_t *last)
{
    char name[WORLD_ID_MAX + 1];
    struct err reason = {.code = ERR_OK};
    struct world_poses *poses = NULL;
    struct locale *value, *posed = NULL;
    uint64_t revision;

    record_get_id(r, name);
    revision = get_u64(r);
    if (!record_is_bad(r) &&
        (revision < *last || revision > locale->revision || locale_pin(locale, name)))
        record_damaged(r, "a pin is out of order, or there twice");
    *last = revision;
    value = record_is_bad(r) ? NULL : record_get_value(r, locale->id, revision);
    if (value)
        poses = record_get_poses(r);
    if (poses)
        posed = persist_posed(value, poses, &reason);
    if (posed)
        locale_add_pin(locale, name, posed, &reason);
    if (reason.code != ERR_OK)
        record_refused(r, &reason);
    locale_unref(posed);
    locale_unref(value);
    free(poses);
}

static void get_pins(struct record_reader *r, struct locale *locale)
{
    uint32_t count = get_u32(r);
    uint64_t last = 1;

    for (uint32_t i = 0; i < count && !record_is_bad(r); i++)
        get_pin(r, locale, &last);
}

/* How many parts the history of a snapshot has; their hashes are next. */
static uint32_t count_history(struct record_reader *r)
{
    uint32_t count = r->version >= RECORD_VERSION_HISTORY ? get_u32(r) : 0;

    if (count > r->left / CLUSTER_HASH_BYTES)
        record_damaged(r, "it ends too early");
    return record_is_bad(r) ? 0 : count;
}

static void skip_history(struct record_reader *r)
{
    size_t length = (size_t)count_history(r) * CLUSTER_HASH_BYTES;

    r->at += length;
    r->left -= length;
}

static void get_counted_text(struct record_reader *r, char *out, size_t most)
{
    uint16_t length;

    record_get(r, &length, sizeof length);
    get_text(r, out, length, most);
}

static void get_past(struct record_reader *r, struct store_past *out,
                     struct store_packed_past *packed)
{
    enum world_change_kind kind = WORLD_FIND_OP;
    unsigned flags;
    uint64_t length;

    *out = (struct store_past){.revision = get_u64(r), .packed = packed};
    record_get(r, &out->time_ms, sizeof out->time_ms);
    if (!change_kind_of_log((int)get_u8(r), &kind) || change_kind(kind)->scope == CHANGE_OF_MODEL)
        record_damaged(r, "a row of its history is of a kind that this kotad does not know");
    out->kind = (int)kind;
    flags = get_word(r, 3, "a row of its history has flags that cannot be");
    out->is_birth = flags & 1;
    out->has_rect = flags & 2;
    packed->codec = (int)get_u8(r);
    get_counted_text(r, out->layer, STORE_ID_MAX);
    get_counted_text(r, out->source, STORE_SOURCE_MAX);
    get_counted_text(r, out->author, STORE_AUTHOR_MAX);
    get_counted_text(r, out->note, STORE_NOTE_MAX);
    if (out->has_rect)
        record_get(r, &out->rect, sizeof out->rect);
    length = get_u64(r);
    if (length > r->left || (packed->codec != 0) != (length > 0) || (length > 0 && !out->has_rect))
        record_damaged(r, "a row of its history has samples that cannot be");
    if (record_is_bad(r) || length == 0)
        return;
    packed->data = (void *)(uintptr_t)r->at;
    packed->length = (size_t)length;
    out->has_before = true;
    r->at += length;
    r->left -= length;
}

/* One part of a history, after the row of revision *last. */
static void get_history(struct record_reader *r, uint64_t *last, store_take_past take,
                        void *context)
{
    size_t length = 0;
    void *bytes = get_blob(r, &length);
    struct record_reader part = {.at = bytes, .left = length, .err = r->err};

    while (!record_is_bad(r) && part.left > 0) {
        struct store_packed_past packed = {.codec = 0};
        struct store_past past;

        get_past(&part, &past, &packed);
        if (past.revision == 0 || (*last > 0 && past.revision != *last + 1))
            record_damaged(r, "its history has a gap");
        *last = past.revision;
        if (!record_is_bad(r) && !take(context, &past, r->err))
            break;
    }
    free(bytes);
}

enum err_code record_read_history(const void *bytes, size_t length,
                                  const struct record_source *source, store_take_past take,
                                  void *context, struct err *err)
{
    enum record_whole what;
    struct record_reader r = open_snapshot(bytes, length, source, &what, err);
    uint64_t revision = r.version >= RECORD_VERSION ? get_u64(&r) : 0, last = 0;
    uint32_t count = count_history(&r);

    for (uint32_t i = 0; i < count && !record_is_bad(&r); i++)
        get_history(&r, &last, take, context);
    if (count > 0 && last != revision)
        record_damaged(&r, "its history does not end at its revision");
    return err->code;
}

enum err_code record_read_locale(const char *id, uint64_t number, const void *bytes, size_t length,
                                 const struct record_source *source, struct locale **out,
                                 uint64_t *revision, struct err *err)
{
    enum record_whole what;
    struct record_reader r = open_snapshot(bytes, length, source, &what, err);

    *out = NULL;
    if (what == RECORD_ALL_MODELS)
        record_damaged(&r, "it is of models");
    *revision = r.version >= RECORD_VERSION ? get_u64(&r) : number;
    if (!record_is_bad(&r) && (*revision == 0 || *revision > number))
        record_damaged(&r, "its revision cannot be");
    skip_history(&r);
    if (!record_is_bad(&r) && what == RECORD_WHOLE_LOCALE)
        *out = record_get_value(&r, id, *revision);
    if (*out && r.version >= RECORD_VERSION)
        get_pins(&r, *out);
    get_end(&r);
    forget_known(&r);
    if (err->code != ERR_OK) {
        locale_unref(*out);
        *out = NULL;
    }
    return err->code;
}

enum err_code record_read_models(const void *bytes, size_t length,
                                 const struct record_source *source, struct model_list **out,
                                 struct err *err)
{
    enum record_whole what;
    struct record_reader r = open_snapshot(bytes, length, source, &what, err);
    uint32_t count;

    *out = NULL;
    if (what != RECORD_ALL_MODELS)
        record_damaged(&r, "it is of a locale");
    count = get_u32(&r);
    for (uint32_t i = 0; i < count && !record_is_bad(&r); i++) {
        char id[WORLD_ID_MAX + 1];
        struct model_list *next = NULL;
        struct model *model = NULL;
        struct err reason = {.code = ERR_OK};

        record_get_id(&r, id);
        if (!record_is_bad(&r) && model_list_find(*out, id))
            record_damaged(&r, "there are two models of one name");
        if (!record_is_bad(&r))
            model = record_get_model(&r, id);
        if (model && !(next = model_list_next(*out, model, NULL, &reason)))
            record_refused(&r, &reason);
        model_unref(model);
        if (next) {
            model_list_unref(*out);
            *out = next;
        }
    }
    get_end(&r);
    if (err->code != ERR_OK) {
        model_list_unref(*out);
        *out = NULL;
    }
    return err->code;
}
