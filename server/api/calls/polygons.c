/*
 * POST …/layers/{layer}/polygons {"polygons":[[[x,y,z]…]…],"remove":[7,…],"strict":false}
 * POST …/layers/{layer}/polygons?up=z|y&scale=&remove=7,…&strict=   model/obj: new polygons
 *   ->  Locale with import:{kept,split,dropped,…}, layer, added:[8|null…], removed:[7,…], polygons
 *
 * Polygons of a mesh layer, some removed and some added in one revision; coordinates are the
 * layer's own, those of its file. Numbers are those of contact and ray. New polygons get numbers
 * above all earlier ones, in the order of the request (null where nothing is left of a polygon);
 * the number of a removed polygon is not used again.
 *
 * The next layer is made here, on a worker, of the layer as the request finds it; the writer takes
 * it where that is still the layer, else it makes the edit itself.
 */
#include "api/calls.h"

#include "api/encode.h"
#include "api/options.h"
#include "api/upload.h"
#include "api/write.h"
#include "world/builds.h"

#include <stdlib.h>
#include <string.h>

enum { MEDIA_TYPE_BYTES_MAX = 64 };

/* ---- numbers --------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Sorted; each may be there once. */
static enum err_code removed_sort(struct polygon_edit *edit, const char *place, struct err *err)
{
    if (edit->removed_count > 0)
        qsort(edit->removed, edit->removed_count, sizeof *edit->removed, by_number);
    for (size_t i = 1; i < edit->removed_count; i++)
        if (edit->removed[i] == edit->removed[i - 1])
            return err_set_at(err, ERR_BAD_INPUT, place, "polygon %u is listed twice",
                              edit->removed[i]);
    return ERR_OK;
}

static enum err_code removed_reserve(struct polygon_edit *edit, size_t count, struct err *err)
{
    edit->removed = malloc((count + 1) * sizeof *edit->removed);
    if (edit->removed)
        return ERR_OK;
    return err_set(err, ERR_NO_MEMORY, "no memory for %zu numbers", count);
}

static enum err_code items_check(size_t count, size_t most, const char *what, struct err *err)
{
    if (count <= most)
        return ERR_OK;
    err_limit(err, ERR_TOO_LARGE, (double)most, (double)count,
              "%s has %zu items, at most %zu; more polygons come as model/obj", what, count, most);
    return err_at(err, "/%s", what);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The token of an array of 0..items_max items, 0 when there is none at all. */
static enum err_code array_of(const struct call *call, const char *name, uint32_t *out,
                              struct err *err)
{
    const cJSON *value = json_given(call->json, name);

    *out = json_tape_array(&call->tape, 0, name);
    if (*out != 0)
        return items_check(call->tape.tokens[*out].count, call_limits(call)->items_max, name, err);
    if (!value)
        return ERR_OK;
    err_set(err, ERR_BAD_INPUT, "%s is %s, must be an array", name, json_kind(value));
    return err_at(err, "/%s", name);
}

static enum err_code decode_removed(const struct call *call, struct polygon_edit *edit,
                                    struct err *err)
{
    const struct json_token *tokens = call->tape.tokens;
    uint32_t list, item;
    size_t count;

    if (array_of(call, "remove", &list, err))
        return err->code;
    count = list != 0 ? tokens[list].count : 0;
    if (removed_reserve(edit, count, err))
        return err->code;
    item = list + 1;
    for (; edit->removed_count < count; item = tokens[item].next) {
        uint64_t number;

        if (json_tape_integer(&call->tape, item, 0, UINT32_MAX - 1, &number, err))
            return err_at(err, "/remove/%zu", edit->removed_count);
        edit->removed[edit->removed_count++] = (uint32_t)number;
    }
    return removed_sort(edit, "/remove", err);
}

static enum err_code decode_corner(const struct json_tape *tape, uint32_t value, struct vec3 *out,
                                   struct err *err)
{
    if (json_tape_vec3(tape, value, out, err))
        return err->code;
    if (fabs(out->x) <= MESH_COORDINATE_MAX_M && fabs(out->y) <= MESH_COORDINATE_MAX_M &&
        fabs(out->z) <= MESH_COORDINATE_MAX_M)
        return ERR_OK;
    return err_limit(err, ERR_BAD_INPUT, MESH_COORDINATE_MAX_M,
                     fmax(fabs(out->x), fmax(fabs(out->y), fabs(out->z))),
                     "a corner at [%g, %g, %g], must be within %g m", out->x, out->y, out->z,
                     MESH_COORDINATE_MAX_M);
}

/* Corners of all polygons; each is an array. */
static enum err_code count_corners(const struct call *call, uint32_t list, size_t *corners,
                                   struct err *err)
{
    const struct json_token *tokens = call->tape.tokens;
    size_t polygon = 0;

    *corners = 0;
    for (uint32_t item = list + 1; polygon < tokens[list].count; item = tokens[item].next) {
        if (tokens[item].kind != JSON_ARRAY) {
            err_set(err, ERR_BAD_INPUT, "a polygon is %s, must be an array of corners",
                    json_tape_kind(&call->tape, item));
            return err_at(err, "/polygons/%zu", polygon);
        }
        *corners += tokens[item].count;
        polygon++;
    }
    if (polygon_check_counts("polygons", *corners, polygon, *corners, &call_limits(call)->polygon,
                             err))
        return err_at(err, "/polygons");
    return ERR_OK;
}

static enum err_code decode_added(const struct call *call, struct polygon_set *out, struct err *err)
{
    const struct json_token *tokens = call->tape.tokens;
    size_t count, corners = 0, at = 0;
    uint32_t list, value;

    if (array_of(call, "polygons", &list, err))
        return err->code;
    count = list != 0 ? tokens[list].count : 0;
    if (count == 0)
        return ERR_OK;
    if (count_corners(call, list, &corners, err) ||
        polygon_set_allocate(corners, count, corners, out, err))
        return err->code;
    value = list + 1; /* each polygon, and its corners after it */
    for (size_t polygon = 0; polygon < count; polygon++) {
        size_t corner_count = tokens[value++].count;

        for (size_t k = 0; k < corner_count; k++, at++, value = tokens[value].next) {
            if (decode_corner(&call->tape, value, &out->vertices[at], err))
                return err_at(err, "/polygons/%zu/%zu", polygon, k);
            out->corners[at] = (uint32_t)at;
        }
        out->starts[polygon + 1] = (uint32_t)at;
    }
    return ERR_OK;
}

static enum err_code decode_json(struct call *call, struct polygon_edit *edit, bool *is_strict,
                                 struct err *err)
{
    static const char *const items[] = {"polygons", "remove", NULL};
    static const char *const names[] = {"strict", NULL};

    err->code = ERR_OK;
    if (options_open_batch(call, items, names, err) || decode_added(call, &edit->add, err) ||
        decode_removed(call, edit, err) || option_boolean(call, "strict", is_strict, err))
        return err->code;
    if (edit->add.polygon_count > 0 || edit->removed_count > 0)
        return ERR_OK;
    return err_set_at(err, ERR_BAD_INPUT, "/polygons",
                      "nothing to do: polygons to add or numbers to remove are missing");
}

/* ---- OBJ ------------------------------------------------------------------------------------- */

static enum err_code decode_removed_query(const struct call *call, struct polygon_edit *edit,
                                          struct err *err)
{
    const struct http_query_item *query = call_query(call, "remove");
    struct span rest = query ? query->value : (struct span){NULL, 0};
    size_t commas = 0;

    for (size_t i = 0; i < rest.length; i++)
        commas += rest.at[i] == ',';
    if (removed_reserve(edit, commas + 1, err))
        return err->code;
    while (rest.at) {
        const char *comma = rest.length > 0 ? memchr(rest.at, ',', rest.length) : NULL;
        struct span item = {rest.at, comma ? (size_t)(comma - rest.at) : rest.length};
        uint64_t number;

        if (!span_count(item, &number) || number >= UINT32_MAX)
            return err_set_at(err, ERR_BAD_INPUT, "remove",
                              "remove=7,9,… lists numbers of polygons, \"%.*s\" is none",
                              (int)(item.length < 32 ? item.length : 32), item.at);
        edit->removed[edit->removed_count++] = (uint32_t)number;
        rest = comma ? (struct span){comma + 1, rest.length - item.length - 1}
                     : (struct span){NULL, 0};
    }
    return removed_sort(edit, "remove", err);
}

static enum err_code decode_obj(struct call *call, struct polygon_edit *edit, bool *is_strict,
                                struct err *err)
{
    static const char *const axes[] = {"z", "y", NULL};
    static const char *const names[] = {"up", "scale", "remove", "strict", NULL};
    struct polygon_options options = polygon_options_default;
    int axis = 0;

    if (options_open_query(call, names, err) || option_word(call, "up", axes, &axis, err) ||
        option_number(call, "scale", &options.scale, NULL, err) ||
        option_boolean(call, "strict", is_strict, err))
        return err->code;
    if (!(options.scale > 0))
        return err_set_at(err, ERR_BAD_INPUT, "scale", "scale %.17g: it must be above 0",
                          options.scale);
    options.up_y = axis == 1;
    if (decode_removed_query(call, edit, err))
        return err->code;
    return polygon_decode(POLYGON_OBJ, (const uint8_t *)call->body.at, call->body.length, &options,
                          &call_limits(call)->polygon, &edit->add, err);
}

static enum err_code decode(struct call *call, struct polygon_edit *edit, bool *is_strict,
                            struct err *err)
{
    char media_type[MEDIA_TYPE_BYTES_MAX] = "";
    enum polygon_format format;

    if (call->media_type.length > 0)
        span_copy(call->media_type, media_type, sizeof media_type);
    if (polygon_format_of_media_type(media_type, &format)) {
        if (format == POLYGON_OBJ)
            return decode_obj(call, edit, is_strict, err);
        return options_wrong_media_type(call, "application/json or model/obj", err);
    }
    return decode_json(call, edit, is_strict, err);
}

/* ---- ahead of the writer
 * --------------------------------------------------------------------------
 */

/* Where in the request an error of the edit has its cause. */
static enum err_code name_error(const struct call *call, const struct polygon_edit *edit,
                                struct err *err)
{
    bool is_of_removal = err->code == ERR_UNPROCESSABLE && edit->add.polygon_count == 0;

    if (err->pointer[0] == '\0' && call->json &&
        (err->code == ERR_UNPROCESSABLE || err->code == ERR_TOO_LARGE))
        err_at(err, "%s", is_of_removal ? "/remove" : "/polygons");
    return err->code;
}

static enum err_code removed_error(const struct call *call, struct err *err)
{
    if (err->code == ERR_UNPROCESSABLE)
        return err_at(err, "%s", call->json ? "/remove" : "remove");
    return err->code == ERR_TOO_LARGE && call->json ? err_at(err, "/polygons") : err->code;
}

/* The layer as it will be; it takes long where its tree is built again. */
static struct layer *edited(struct call *call, const struct layer *now, struct world_change *change,
                            struct err *err)
{
    const struct polygon_edit *edit = &change->polygons;
    struct builds *builds = world_builds(call->api->world);
    struct build build;
    struct pace pace = build_pace(&build, call_import_pace(call));
    struct layer *next;

    build_begin(builds, &build, BUILD_EDIT, change->locale_id, now->id);
    pace_items(&pace, polygon_set_count(layer_polygon_set(now)) + edit->add.polygon_count -
                          edit->removed_count);
    next = layer_edited(now, edit, &pace, &change->import, err);
    build_end(builds, &build);
    return next;
}

/* The layer as it is and as it will be into change->base and layer. */
static enum err_code prepare(struct call *call, struct world_change *change, bool is_strict,
                             uint64_t *charge, struct err *err)
{
    const struct layer *now = locale_layer(call->locale, change->layer_id);

    if (!now)
        return locale_no_layer(call->locale, change->layer_id, ERR_LAYER_UNKNOWN, err);
    if (now->kind != LAYER_MESH)
        return err_set(err, ERR_LAYER_KIND,
                       "layer %s of locale %s is a heightfield: polygons belong to meshes", now->id,
                       change->locale_id);
    if (polygon_edit_check(layer_polygon_set(now), &change->polygons,
                           &call_limits(call)->world.polygon, err))
        return removed_error(call, err);
    *charge = now->memory_bytes + polygon_edit_bytes(&change->polygons);
    if (upload_charge(call->api, *charge, err))
        return err->code;
    change->layer = edited(call, now, change, err);
    if (change->layer) {
        change->base = layer_ref((struct layer *)(uintptr_t)now);
        if (!is_strict || upload_check_strict(&change->import, err) == ERR_OK)
            return ERR_OK;
        err_at(err, "%s", call->json ? "/strict" : "strict");
    }
    upload_release(call->api, *charge);
    return name_error(call, &change->polygons, err);
}

/* A Locale, and the numbers of the polygons. */
static void encode(struct json_writer *w, const struct world_outcome *outcome,
                   const struct imported *import)
{
    const struct polygon_set *set = layer_polygon_set(outcome->layer);
    const struct polygon_edit *edit = outcome->polygons;

    (void)import;
    encode_locale_open(w, outcome->locale, true, &(struct imported){.mesh = outcome->import});
    json_put_string(w, "layer", outcome->layer->id);
    json_put_array(w, "added");
    for (size_t i = outcome->first_polygon; i < set->polygon_count; i++) {
        if (set->starts[i] < set->starts[i + 1])
            json_integer(w, i);
        else
            json_null(w);
    }
    json_end_array(w);
    json_put_array(w, "removed");
    for (size_t i = 0; i < edit->removed_count; i++)
        json_integer(w, edit->removed[i]);
    json_end_array(w);
    json_put_integer(w, "polygons", polygon_set_count(set));
    json_end_object(w);
}

static const char *place(const struct call *call, const struct world_change *change)
{
    (void)change;
    return call->json ? "/polygons" : NULL;
}

static const struct write_kind polygons_write = {
    .change = WORLD_EDIT_POLYGONS,
    .method = "POST",
    .below = "/polygons",
    .needs_locale = true,
    .encode = encode,
    .place = place,
};

enum err_code polygons_post_answer(struct call *call, struct err *err)
{
    struct world_change change = {.layer_id = ""};
    uint64_t charge = 0;
    bool is_answered, is_strict = false;

    call_import_pace(call); /* its time begins */
    if (call_param_id(call, 1, "layer", ERR_LAYER_UNKNOWN, change.layer_id, err) ||
        write_open(call, &polygons_write, &change, err) ||
        write_repeat(call, &polygons_write, &change, &is_answered, err) || is_answered)
        return err->code;
    if (decode(call, &change.polygons, &is_strict, err) ||
        prepare(call, &change, is_strict, &charge, err)) {
        world_drop(&change);
        return err->code;
    }
    return write_submit(call, &polygons_write, &change, NULL, charge, err);
}
API_HANDLER(polygons_post, 2, CALL_NEEDS_NOTHING)
