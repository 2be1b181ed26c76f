/*
 * JSON of the daemon into values. Unknown members are ignored, those that are needed must be there.
 */
#include "client/ground/document.h"

#include "client/ground/put.h"

#include "json/json_value.h"

#include <stdlib.h>
#include <string.h>

/* ---- members --------------------------------------------------------------------------------- */

static bool get_numbers(const struct json_tape *tape, uint32_t object, const char *name,
                        size_t count, double *out)
{
    uint32_t value = json_tape_find(tape, object, name);

    return value != 0 && json_token_numbers(&tape->tokens[value], count, out);
}

/* A whole number from 0 to 2^53. */
static bool get_integer(const struct json_tape *tape, uint32_t object, const char *name,
                        uint64_t *out)
{
    uint32_t value = json_tape_find(tape, object, name);
    double number =
        value && tape->tokens[value].kind == JSON_NUMBER ? tape->tokens[value].number : -1;

    if (!(number >= 0 && number <= 0x1p53))
        return false;
    *out = (uint64_t)number;
    return true;
}

static bool get_side(const struct json_tape *tape, uint32_t object, const char *name, uint32_t *out)
{
    uint64_t wide;

    if (!get_integer(tape, object, name, &wide) || wide > HEIGHTFIELD_SIDE_MAX)
        return false;
    *out = (uint32_t)wide;
    return true;
}

/* The index of the member's word among `words`, NULL-terminated. */
static bool get_word(const struct json_tape *tape, uint32_t object, const char *name,
                     const char *const *words, int *out)
{
    uint32_t value = json_tape_find(tape, object, name);

    if (value == 0 || tape->tokens[value].kind != JSON_STRING)
        return false;
    for (*out = 0; words[*out]; ++*out)
        if (json_tape_is(tape, value, words[*out]))
            return true;
    return false;
}

static bool get_id(const struct json_tape *tape, uint32_t object, char id[WORLD_ID_MAX + 1])
{
    uint32_t value = json_tape_find(tape, object, "id");
    const struct json_token *token = &tape->tokens[value];

    if (value == 0 || token->kind != JSON_STRING || token->end - token->begin > WORLD_ID_MAX + 2)
        return false;
    json_tape_string(tape, value, id);
    return world_id_is_valid(id, strlen(id));
}

/* ---- a locale -------------------------------------------------------------------------------- */

static bool read_field(const struct json_tape *tape, uint32_t object, struct heightfield_spec *spec)
{
    double spacing[2], origin[2];

    if (!get_side(tape, object, "cols", &spec->cols) ||
        !get_side(tape, object, "rows", &spec->rows) || spec->cols < 2 || spec->rows < 2 ||
        !get_numbers(tape, object, "spacing", 2, spacing) ||
        !get_numbers(tape, object, "origin", 2, origin))
        return false;
    spec->spacing_x_m = spacing[0];
    spec->spacing_y_m = spacing[1];
    spec->origin_x_m = origin[0];
    spec->origin_y_m = origin[1];
    return true;
}

/* The least and greatest sample, of the layer's bounds; null: there is none. */
static bool read_range(const struct json_tape *tape, uint32_t object, float range[2])
{
    uint32_t bounds = json_tape_find(tape, object, "bounds");
    double low[3], high[3];

    range[0] = INFINITY;
    range[1] = -INFINITY;
    if (bounds == 0 || tape->tokens[bounds].kind == JSON_NULL)
        return bounds != 0;
    if (!get_numbers(tape, bounds, "min", 3, low) || !get_numbers(tape, bounds, "max", 3, high))
        return false;
    range[0] = (float)low[2];
    range[1] = (float)high[2];
    return true;
}

static bool read_layer(const struct json_tape *tape, uint32_t object, enum triangulation split,
                       struct followed_layer *out)
{
    static const char *const kinds[] = {
        [LAYER_HEIGHTFIELD] = "heightfield", [LAYER_MESH] = "mesh", NULL};
    static const char *const roles[] = {
        [LAYER_GROUND] = "ground", [LAYER_CEILING] = "ceiling", NULL};
    uint32_t transform = json_tape_find(tape, object, "transform");
    double yaw, length;
    int kind, role;

    if (!get_id(tape, object, out->id) || !get_word(tape, object, "kind", kinds, &kind) ||
        !get_word(tape, object, "role", roles, &role))
        return false;
    out->kind = (enum layer_kind)kind;
    out->role = (enum layer_role)role;
    out->spec.triangulation = split;
    if (kind == LAYER_HEIGHTFIELD)
        return read_field(tape, object, &out->spec) && read_range(tape, object, out->range);
    if (transform == 0)
        return true;
    out->is_posed = true;
    if (!get_numbers(tape, transform, "translation", 3, &out->posed.translation.x))
        return false;
    if (json_tape_find(tape, transform, "rotation") != 0)
        return get_numbers(tape, transform, "rotation", 4, out->posed.rotation) &&
               rotation_is_unit(out->posed.rotation, &length);
    transform = json_tape_find(tape, transform, "yaw_deg");
    yaw = transform && tape->tokens[transform].kind == JSON_NUMBER ? tape->tokens[transform].number
                                                                   : NAN;
    out->posed.yaw_deg = yaw;
    return !isnan(yaw);
}

static bool read_manifest(const struct json_tape *tape, struct locale_manifest *out)
{
    static const char *const splits[] = {"anti", "main", "alternating", NULL};
    uint32_t placement = json_tape_find(tape, 0, "placement");
    uint32_t sky = json_tape_find(tape, 0, "open_sky");
    int split;

    *out = locale_manifest_default;
    if (placement == 0 || sky == 0 || !get_numbers(tape, 0, "gravity", 3, &out->gravity.x) ||
        !get_numbers(tape, placement, "translation", 3, &out->placement.translation.x) ||
        !get_numbers(tape, placement, "rotation", 4, out->placement.rotation) ||
        !get_word(tape, 0, "triangulation", splits, &split))
        return false;
    out->open_sky = tape->tokens[sky].kind == JSON_TRUE;
    out->triangulation = (enum triangulation)split;
    return true;
}

static bool read_layers(const struct json_tape *tape, struct document *out)
{
    uint32_t array = json_tape_array(tape, 0, "layers"), at = array + 1;

    if (array == 0 || tape->tokens[array].count > LOCALE_LAYERS_MAX)
        return false;
    for (; out->layer_count < tape->tokens[array].count; out->layer_count++) {
        if (!read_layer(tape, at, out->manifest.triangulation, &out->layers[out->layer_count]))
            return false;
        at = tape->tokens[at].next;
    }
    return true;
}

bool document_read(const void *text, size_t length, struct document *out, struct err *err)
{
    struct json_tape tape = {.text = NULL};
    bool is_read;

    *out = (struct document){.layers = calloc(LOCALE_LAYERS_MAX, sizeof *out->layers)};
    if (!out->layers) {
        err_set(err, ERR_NO_MEMORY, "no memory for the layers of a locale");
        return false;
    }
    is_read = json_scan(text, length, &json_limits_default, &tape, err) == ERR_OK;
    if (is_read && (!get_integer(&tape, 0, "revision", &out->revision) ||
                    !read_manifest(&tape, &out->manifest) || !read_layers(&tape, out))) {
        err_set(err, ERR_DAMAGED, "the answer is no locale that this version knows");
        is_read = false;
    }
    if (is_read)
        get_integer(&tape, 0, "transform_seq", &out->transform_seq); /* there once it is over 0 */
    free(tape.tokens);
    is_read = is_read && manifest_check(&out->manifest, err);
    if (!is_read)
        free(out->layers);
    return is_read;
}

/* ---- a difference ---------------------------------------------------------------------------- */

bool diff_read(const void *text, size_t length, struct sample_rect **rects, size_t *count,
               struct err *err)
{
    struct json_tape tape = {.text = NULL};
    uint32_t array, at;
    bool is_read;

    *rects = NULL;
    if (json_scan(text, length, &json_limits_default, &tape, err)) {
        free(tape.tokens);
        return false;
    }
    array = json_tape_array(&tape, 0, "rects");
    *count = array ? tape.tokens[array].count : 0;
    *rects = calloc(*count + 1, sizeof **rects);
    is_read = array != 0 && *rects;
    at = array + 1;
    for (size_t i = 0; i < *count && is_read; i++, at = tape.tokens[at].next) {
        double r[4];

        is_read = json_token_numbers(&tape.tokens[at], 4, r) && r[0] >= 0 && r[1] >= 0 &&
                  r[2] >= 1 && r[3] >= 1 && r[0] + r[2] <= HEIGHTFIELD_SIDE_MAX &&
                  r[1] + r[3] <= HEIGHTFIELD_SIDE_MAX;
        if (is_read)
            (*rects)[i] = (struct sample_rect){(uint32_t)r[0], (uint32_t)r[1], (uint32_t)r[2],
                                               (uint32_t)r[3]};
    }
    free(tape.tokens);
    if (!is_read) {
        free(*rects);
        err_set(err, ERR_DAMAGED, "the answer is no list of changes that this version knows");
    }
    return is_read;
}
