/*
 * Bytes to changes and locales. The format stands in record.h.
 *
 * Problem: what a log holds was written by another daemon, perhaps of another version, and may have
 * been damaged or forged; whatever is taken is published as ground. Approach: every number is
 * checked before it is used, every count against the bytes that are there, so that no more memory
 * is asked for than a small multiple of them; heights, meshes and models go through the same doors
 * as an upload's or a store's.
 *
 * A mesh's image that cannot be opened (of another version of the builder) is no damage: the mesh
 * is built of its polygons, which are the truth.
 *
 * Invariant: a manifest keeps its bits: it was normalised when it was first put.
 */
#include "world/record.h"

#include "base/check.h"
#include "world/record_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const uint8_t *at;
    size_t left;
    const struct record_source *source;
    struct err *err; /* of the first thing that was wrong */
};

static bool is_bad(const struct reader *r)
{
    return r->err->code != ERR_OK;
}

static void damaged(struct reader *r, const char *what)
{
    if (!is_bad(r))
        err_set(r->err, ERR_DAMAGED, "%s", what);
}

static void get(struct reader *r, void *out, size_t length)
{
    if (length > r->left || is_bad(r)) {
        damaged(r, "it ends too early");
        memset(out, 0, length);
        return;
    }
    if (length > 0)
        memcpy(out, r->at, length);
    r->at += length;
    r->left -= length;
}

static unsigned get_u8(struct reader *r)
{
    uint8_t value;

    get(r, &value, sizeof value);
    return value;
}

static uint32_t get_u32(struct reader *r)
{
    uint32_t value;

    get(r, &value, sizeof value);
    return value;
}

/* A number of which only 0 .. most have a meaning. */
static unsigned get_word(struct reader *r, unsigned most, const char *what)
{
    unsigned value = get_u8(r);

    if (value > most)
        damaged(r, what);
    return value <= most ? value : 0;
}

static struct vec3 get_vec3(struct reader *r)
{
    double v[3];

    get(r, v, sizeof v);
    return (struct vec3){v[0], v[1], v[2]};
}

static void get_id(struct reader *r, char out[static WORLD_ID_MAX + 1])
{
    unsigned length = get_u8(r);

    memset(out, 0, WORLD_ID_MAX + 1);
    if (length > WORLD_ID_MAX)
        damaged(r, "an id is too long");
    else
        get(r, out, length);
    if (!is_bad(r) && !world_id_is_valid(out, length))
        damaged(r, "an id is none");
}

static void get_end(struct reader *r)
{
    if (r->left > 0)
        damaged(r, "there is more than it should have");
}

/* A blob whose hash comes next; free. NULL when there is an error. */
static void *get_blob(struct reader *r, size_t *length)
{
    uint8_t hash[CLUSTER_HASH_BYTES];
    void *bytes = NULL;

    get(r, hash, sizeof hash);
    if (is_bad(r))
        return NULL;
    if (r->source->get(r->source->context, hash, &bytes, length, r->err) == ERR_NOT_FOUND)
        r->err->code = ERR_DAMAGED;
    return is_bad(r) ? NULL : bytes;
}

/* What another room said of these bytes: its error is damage, but for want of memory. */
static void refused(struct reader *r, const struct err *said)
{
    if (is_bad(r))
        return;
    *r->err = *said;
    if (said->code != ERR_NO_MEMORY && said->code != ERR_UNAVAILABLE)
        r->err->code = ERR_DAMAGED;
}

/* ---- manifests ----------------------------------------------------------------------------------
 */

static struct locale_manifest get_manifest(struct reader *r)
{
    struct locale_manifest m = locale_manifest_default, checked;
    struct err said = {.code = ERR_OK};
    uint16_t length;
    double geo[2];

    get(r, &length, sizeof length);
    if (length > LOCALE_TITLE_BYTES_MAX)
        damaged(r, "a title is too long");
    else
        get(r, m.title, length);
    if (!is_bad(r) && memchr(m.title, '\0', length))
        damaged(r, "a title holds a NUL");
    m.gravity = get_vec3(r);
    m.placement.translation = get_vec3(r);
    get(r, m.placement.rotation, sizeof m.placement.rotation);
    m.open_sky = get_word(r, 1, "open_sky is neither 0 nor 1") == 1;
    m.triangulation =
        (enum triangulation)get_word(r, TRIANGULATION_ALTERNATING, "a triangulation is none");
    m.has_geo = get_word(r, 1, "has_geo is neither 0 nor 1") == 1;
    get(r, geo, sizeof geo);
    m.geo_lat_deg = geo[0];
    m.geo_lng_deg = geo[1];
    checked = m;
    if (!is_bad(r) && locale_manifest_check(&checked, &said))
        refused(r, &said);
    return m;
}

/* ---- layers -------------------------------------------------------------------------------------
 */

static void get_tile(struct reader *r, struct heightfield_builder *builder,
                     const struct heightfield_spec *spec, uint32_t tx, uint32_t ty)
{
    struct err said = {.code = ERR_OK};
    uint32_t cols, rows;
    size_t length = 0;
    float *samples, *packed = get_blob(r, &length);

    if (!packed)
        return;
    heightfield_tile_size(spec, tx, ty, &cols, &rows);
    if (length != (size_t)cols * rows * sizeof *packed) {
        free(packed);
        damaged(r, "a tile has another size");
        return;
    }
    samples = heightfield_builder_begin(builder, tx, ty, &said);
    for (uint32_t row = 0; samples && row < rows; row++)
        memcpy(samples + (size_t)row * RECORD_TILE_STRIDE, packed + (size_t)row * cols,
               cols * sizeof *samples);
    if (!samples || heightfield_builder_seal(builder, tx, ty, &said))
        refused(r, &said);
    free(packed);
}

static bool is_side(uint32_t samples)
{
    return samples >= 2 && samples <= HEIGHTFIELD_SIDE_MAX;
}

static struct layer *get_field(struct reader *r, const char *id)
{
    struct heightfield_spec spec = {.cols = get_u32(r), .rows = 0};
    struct heightfield_tile_layout layout;
    struct heightfield_builder *builder;
    struct heightfield *field = NULL;
    struct err said = {.code = ERR_OK};
    struct layer *layer = NULL;
    double grid[4];

    spec.rows = get_u32(r);
    spec.leaf_cells = get_u32(r);
    spec.triangulation =
        (enum triangulation)get_word(r, TRIANGULATION_ALTERNATING, "a triangulation is none");
    get(r, grid, sizeof grid);
    spec.origin_x_m = grid[0];
    spec.origin_y_m = grid[1];
    spec.spacing_x_m = grid[2];
    spec.spacing_y_m = grid[3];
    if (!is_bad(r) && !(is_side(spec.cols) && is_side(spec.rows)))
        damaged(r, "a heightfield has a size that none has");
    if (is_bad(r))
        return NULL;
    layout = heightfield_tile_layout(&spec);
    if ((uint64_t)layout.tile_cols * layout.tile_rows > r->left / CLUSTER_HASH_BYTES) {
        damaged(r, "a heightfield has less tiles than it should have");
        return NULL;
    }
    builder = heightfield_builder_create(&spec, &said);
    if (!builder) {
        refused(r, &said);
        return NULL;
    }
    for (uint32_t ty = 0; ty < layout.tile_rows; ty++)
        for (uint32_t tx = 0; tx < layout.tile_cols && !is_bad(r); tx++)
            get_tile(r, builder, &spec, tx, ty);
    if (is_bad(r))
        heightfield_builder_free(builder);
    else
        field = heightfield_builder_finish(builder, &said);
    if (field)
        layer = layer_create_heightfield(id, field, &said);
    if (!layer)
        refused(r, &said);
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

static void unpack_polygons(struct reader *r, const uint8_t *bytes, size_t length,
                            struct polygon_set *out)
{
    struct err said = {.code = ERR_OK};
    uint64_t counts[3];
    size_t parts[3];

    if (length < sizeof counts) {
        damaged(r, "polygons end too early");
        return;
    }
    memcpy(counts, bytes, sizeof counts);
    if (counts[0] > UINT32_MAX || counts[1] == 0 || counts[1] >= UINT32_MAX ||
        counts[2] > UINT32_MAX) {
        damaged(r, "polygons have counts that cannot be");
        return;
    }
    parts[0] = counts[0] * sizeof *out->vertices;
    parts[1] = (counts[1] + 1) * sizeof *out->starts;
    parts[2] = counts[2] * sizeof *out->corners;
    if (length != sizeof counts + parts[0] + parts[1] + parts[2]) {
        damaged(r, "polygons have another length than their counts say");
        return;
    }
    if (polygon_set_allocate(counts[0], counts[1], counts[2], out, &said)) {
        refused(r, &said);
        return;
    }
    bytes += sizeof counts;
    memcpy(out->vertices, bytes, parts[0]);
    memcpy(out->starts, bytes + parts[0], parts[1]);
    memcpy(out->corners, bytes + parts[0] + parts[1], parts[2]);
    if (out->starts[counts[1]] != counts[2] || !is_sound(out))
        damaged(r, "polygons have corners that are not there");
}

static bool is_of_space(const struct mesh *mesh, struct mesh_space space)
{
    struct mesh_space is = mesh_space(mesh);

    return is.frame == space.frame && is.is_outward == space.is_outward;
}

static struct layer *get_mesh(struct reader *r, const char *id)
{
    enum layer_role role = (enum layer_role)get_word(r, LAYER_CEILING, "a role is none");
    struct mesh_space space = {(enum mesh_frame)get_word(r, MESH_CYLINDRICAL, "a frame is none"),
                               get_word(r, 1, "is_outward is neither 0 nor 1") == 1};
    struct vec3 gravity = get_vec3(r);
    struct polygon_set polygons = {.polygon_count = 0};
    struct err said = {.code = ERR_OK};
    struct layer *layer = NULL;
    struct mesh *mesh = NULL;
    size_t polygons_length = 0, image_length = 0;
    void *packed = get_blob(r, &polygons_length), *image = get_blob(r, &image_length);

    if (!is_bad(r) && !(fabs(vec3_length(gravity) - 1) < 1e-6))
        damaged(r, "a mesh's gravity is no unit vector");
    if (packed && !is_bad(r))
        unpack_polygons(r, packed, polygons_length, &polygons);
    free(packed);
    if (image && !is_bad(r)) {
        mesh = mesh_open(image, image_length, NULL, NULL, &said);
        if (mesh && is_of_space(mesh, space))
            layer = layer_adopt_mesh(id, role, mesh, &polygons, gravity, &said);
        else
            mesh_unref(mesh);
        if (!layer && polygons.polygon_count > 0)
            layer = layer_create_mesh_in(id, role, &polygons, space, gravity, NULL, &said);
        if (!layer)
            refused(r, &said);
    }
    free(image);
    polygon_set_free(&polygons);
    return layer;
}

static struct layer *get_layer(struct reader *r, const char *id)
{
    unsigned kind = get_word(r, 1, "a layer is of no kind");

    if (is_bad(r))
        return NULL;
    return kind == 0 ? get_field(r, id) : get_mesh(r, id);
}

/* ---- models -------------------------------------------------------------------------------------
 */

static struct model *get_model(struct reader *r, const char *id)
{
    struct polygon_limits limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct err said = {.code = ERR_OK};
    struct model *model = NULL;
    size_t length = 0;
    void *bytes = get_blob(r, &length);

    if (bytes)
        model = model_create(id, bytes, length, &limits, &said);
    if (bytes && !model)
        refused(r, &said);
    free(bytes);
    return model;
}

/* ---- an entry -----------------------------------------------------------------------------------
 */

/* What an entry's change is answered with, to be kept. */
struct kept {
    size_t bytes;
    uint8_t at[];
};

static void *give_kept(void *context, const struct world_outcome *outcome, size_t *bytes)
{
    const struct kept *kept = context;
    void *copy = malloc(kept->bytes);

    (void)outcome;
    if (copy)
        memcpy(copy, kept->at, kept->bytes);
    *bytes = kept->bytes;
    return copy;
}

static void get_answer(struct reader *r, const struct cluster_entry *entry,
                       struct world_change *out)
{
    uint32_t length = get_u32(r);
    struct kept *kept;

    if (length > r->left)
        damaged(r, "it ends too early");
    if (is_bad(r) || length == 0)
        return;
    if (entry->op_id[0] == '~') {
        damaged(r, "there is an answer to nobody");
        return;
    }
    kept = malloc(sizeof *kept + length);
    if (!kept) {
        err_set(r->err, ERR_NO_MEMORY, "no memory for an answer");
        return;
    }
    kept->bytes = length;
    get(r, kept->at, length);
    out->answer = give_kept;
    out->context = kept;
}

static void get_edit(struct reader *r, const struct cluster_entry *entry, struct world_change *out)
{
    const uint32_t *rect = entry->rect;
    uint64_t samples = (uint64_t)rect[2] * rect[3];
    float *heights_m;

    if (is_bad(r))
        return;
    if (!entry->has_rect || samples == 0 || r->left / sizeof *heights_m != samples ||
        r->left % sizeof *heights_m != 0) {
        damaged(r, "an edit has another number of samples than its rectangle");
        return;
    }
    heights_m = malloc(r->left);
    if (!heights_m) {
        err_set(r->err, ERR_NO_MEMORY, "no memory for an edit");
        return;
    }
    get(r, heights_m, r->left);
    out->edit = (struct edit){
        .kind = EDIT_SET, .rect = {rect[0], rect[1], rect[2], rect[3]}, .heights_m = heights_m};
}

static void get_polygon_edit(struct reader *r, struct world_change *out)
{
    struct err said = {.code = ERR_OK};

    if (is_bad(r))
        return;
    if (polygon_edit_decode(r->at, r->left, &out->polygons, &said))
        refused(r, &said);
    r->left = 0;
}

static void get_body(struct reader *r, const struct cluster_entry *entry, struct world_change *out)
{
    switch (entry->kind) {
    case RECORD_MANIFEST:
        out->kind = WORLD_PUT_LOCALE;
        out->manifest = get_manifest(r);
        return;
    case RECORD_DELETE_LOCALE:
        out->kind = WORLD_DELETE_LOCALE;
        return;
    case RECORD_LAYER:
        out->kind = WORLD_PUT_LAYER;
        out->layer = get_layer(r, out->layer_id);
        return;
    case RECORD_DELETE_LAYER:
        out->kind = WORLD_DELETE_LAYER;
        return;
    case RECORD_EDIT:
        out->kind = WORLD_EDIT;
        get_edit(r, entry, out);
        return;
    case RECORD_EDIT_POLYGONS:
        out->kind = WORLD_EDIT_POLYGONS;
        get_polygon_edit(r, out);
        return;
    case RECORD_MODEL:
        out->kind = WORLD_PUT_MODEL;
        out->model = get_model(r, out->model_id);
        return;
    case RECORD_DELETE_MODEL:
        out->kind = WORLD_DELETE_MODEL;
        return;
    default:
        damaged(r, "it is of a kind that this kotad does not know; a newer one wrote it");
    }
}

/* Ids as the kind wants them. */
static void get_names(struct reader *r, const struct cluster_entry *entry, struct world_change *out)
{
    bool is_of_model = strcmp(entry->locale, RECORD_MODELS) == 0;
    bool wants_model = entry->kind == RECORD_MODEL || entry->kind == RECORD_DELETE_MODEL;
    bool wants_layer = entry->kind == RECORD_LAYER || entry->kind == RECORD_DELETE_LAYER ||
                       entry->kind == RECORD_EDIT || entry->kind == RECORD_EDIT_POLYGONS;

    if (wants_model != is_of_model ||
        (!is_of_model && !world_id_is_valid(entry->locale, strlen(entry->locale))) ||
        ((wants_layer || wants_model) && !world_id_is_valid(entry->layer, strlen(entry->layer)))) {
        damaged(r, "its ids are not those of its kind");
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
    struct reader r = {.at = entry->data, .left = entry->bytes, .source = source, .err = err};
    struct err said = {.code = ERR_OK};
    uint16_t spare;

    err->code = ERR_OK;
    *out = (struct world_change){.kind = WORLD_FIND_OP};
    if (get_u8(&r) != RECORD_VERSION)
        damaged(&r, "it has a version that this kotad does not know");
    if ((int)get_u8(&r) != entry->kind)
        damaged(&r, "its kind and its bytes disagree");
    get(&r, &spare, sizeof spare);
    if (spare != 0)
        damaged(&r, "it has a version that this kotad does not know");
    if (!is_bad(&r))
        get_names(&r, entry, out);
    get_answer(&r, entry, out);
    if (!is_bad(&r))
        get_body(&r, entry, out);
    get_end(&r);
    if (err->code == ERR_OK)
        return ERR_OK;
    change_drop(out);
    said = *err;
    return err_set(err, said.code, "the shared log's entry of %.64s, revision %llu: %.180s",
                   entry->locale, (unsigned long long)entry->revision, said.msg);
}

/* ---- snapshots ----------------------------------------------------------------------------------
 */

static struct reader open_snapshot(const void *bytes, size_t length,
                                   const struct record_source *source, enum record_whole *what,
                                   struct err *err)
{
    struct reader r = {.at = bytes, .left = length, .source = source, .err = err};

    err->code = ERR_OK;
    if (get_u8(&r) != RECORD_VERSION || get_u8(&r) != RECORD_SNAPSHOT)
        damaged(&r, "it has a version that this kotad does not know");
    *what = (enum record_whole)get_word(&r, RECORD_ALL_MODELS, "it is a snapshot of nothing");
    get_word(&r, 0, "it has a version that this kotad does not know");
    return r;
}

void recorded_locale_free(struct recorded_locale *locale)
{
    while (locale->layer_count > 0)
        layer_unref(locale->layers[--locale->layer_count]);
}

static void get_layers(struct reader *r, struct recorded_locale *out)
{
    uint32_t count = get_u32(r);

    if (count > LOCALE_LAYERS_MAX)
        damaged(r, "a locale has more layers than one takes");
    for (uint32_t i = 0; i < count && !is_bad(r); i++) {
        char id[WORLD_ID_MAX + 1];
        struct layer *layer = NULL;

        get_id(r, id);
        for (size_t k = 0; k < out->layer_count; k++)
            if (strcmp(out->layers[k]->id, id) == 0)
                damaged(r, "a locale has two layers of one name");
        if (!is_bad(r))
            layer = get_layer(r, id);
        if (layer && !layer_fits(layer, out->manifest.triangulation, out->manifest.gravity))
            damaged(r, "a layer does not fit its locale");
        if (layer && out->layer_count > 0 &&
            (layer->space.frame != out->layers[0]->space.frame ||
             layer->space.is_outward != out->layers[0]->space.is_outward))
            damaged(r, "two layers are of different spaces");
        if (layer)
            out->layers[out->layer_count++] = layer;
    }
}

enum err_code record_read_locale(const void *bytes, size_t length,
                                 const struct record_source *source, struct recorded_locale *out,
                                 struct err *err)
{
    enum record_whole what;
    struct reader r = open_snapshot(bytes, length, source, &what, err);

    *out = (struct recorded_locale){.is_deleted = what == RECORD_DELETED_LOCALE};
    if (what == RECORD_ALL_MODELS)
        damaged(&r, "it is of models");
    if (!is_bad(&r) && !out->is_deleted) {
        out->manifest = get_manifest(&r);
        if (!is_bad(&r))
            get_layers(&r, out);
    }
    get_end(&r);
    if (err->code != ERR_OK)
        recorded_locale_free(out);
    return err->code;
}

enum err_code record_read_models(const void *bytes, size_t length,
                                 const struct record_source *source, struct model_list **out,
                                 struct err *err)
{
    enum record_whole what;
    struct reader r = open_snapshot(bytes, length, source, &what, err);
    uint32_t count;

    *out = NULL;
    if (what != RECORD_ALL_MODELS)
        damaged(&r, "it is of a locale");
    count = get_u32(&r);
    for (uint32_t i = 0; i < count && !is_bad(&r); i++) {
        char id[WORLD_ID_MAX + 1];
        struct model_list *next = NULL;
        struct model *model = NULL;
        struct err said = {.code = ERR_OK};

        get_id(&r, id);
        if (!is_bad(&r) && model_list_find(*out, id))
            damaged(&r, "there are two models of one name");
        if (!is_bad(&r))
            model = get_model(&r, id);
        if (model && !(next = model_list_next(*out, model, NULL, &said)))
            refused(&r, &said);
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
