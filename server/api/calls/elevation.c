/*
 * GET|POST /v1/compat/elevation            any locale that has a place on the Earth
 * GET|POST /v1/compat/elevation/{id[,id…]} these locales, in this order (Open Topo Data's datasets)
 * GET /v1/compat/maps/api/elevation/json   the path of Google's clients below another host
 *   ?locations=lat,lng|…  or  ?path=…&samples=n,  &interpolation=&nodata_value=&format=
 *   ->  {"results":[{"elevation","location":{"lat","lng"},"resolution","dataset"}…],"status":"OK"}
 *   ->  {"status":"INVALID_REQUEST","error","error_message","results":[]}, 400
 *
 * Two services in one shape: `dataset` and `error` are Open Topo Data's, `resolution` and
 * `error_message` Google's. A place is put on the map of each locale's `geo` or `crs`
 * (terrain/geo/geo_map.h); the first locale with ground there answers, by id unless they are
 * named, and its
 * elevation is its height: metres along its frame's Z. An error of any 4xx has their form and
 * status 400; 5xx keep their status.
 */
#include "api/calls/elevation.h"

#include "api/calls.h"
#include "json/json_raw.h"
#include "api/options.h"
#include "api/encode.h"
#include "base/text/json_text.h"
#include "api/maps/map_ground.h"

/* A locale that may answer. */
struct dataset {
    const struct locale *locale;
    struct geo_map map;
    struct layer_choice ground;
    double resolution_m; /* NAN: of a mesh */
};

struct elevation {
    const struct dataset *dataset; /* of the ground or hole there; NULL: none */
    double height_m;               /* NAN: no ground */
};

enum { DATASETS_MAX = 64, ITEM_BYTES = ENCODED_ID_BYTES + 320, MESSAGE_BYTES = 2048 };

/* ---- which locales --------------------------------------------------------------------------- */

static enum err_code open_dataset(const struct locale *locale, struct dataset *out, struct err *err)
{
    const struct layer *layer;

    *out = (struct dataset){.locale = locale, .resolution_m = NAN};
    if (map_of_locale(locale, &out->map, err) ||
        locale_choose_ground(locale, NULL, &out->ground, err))
        return err->code;
    layer = out->ground.layers[0];
    if (layer->kind == LAYER_HEIGHTFIELD) {
        const struct heightfield_spec *spec = heightfield_spec(layer->field);

        out->resolution_m = fmax(spec->spacing_x_m, spec->spacing_y_m);
    }
    return ERR_OK;
}

/* Every locale that can answer. */
static enum err_code open_all(struct call *call, struct dataset **out, size_t *count,
                              struct err *err)
{
    const struct world_snapshot *snapshot = call->snapshot;
    struct err ignored = {.code = ERR_OK};
    const struct locale *locale;

    *count = 0;
    *out = call_alloc(call, (snapshot->locale_count + 1) * sizeof **out);
    if (!*out)
        return err_set(err, ERR_NO_MEMORY, "no memory for the datasets");
    for (size_t at = 0; (locale = snapshot_step(snapshot, &at)) != NULL;)
        if (open_dataset(locale, &(*out)[*count], &ignored) == ERR_OK)
            ++*count;
    return ERR_OK;
}

static enum err_code open_named(struct call *call, struct span id, struct dataset *datasets,
                                size_t *count, struct err *err)
{
    char name[WORLD_ID_MAX + 1];
    const struct locale *locale = NULL;

    if (world_id_is_valid(id.at, id.length) && span_copy(id, name, sizeof name))
        locale = snapshot_locale(call->snapshot, name);
    if (!locale)
        return err_set(err, ERR_LOCALE_UNKNOWN, "there is no dataset %.*s",
                       (int)(id.length < 64 ? id.length : 64), id.at);
    for (size_t i = 0; i < *count; i++)
        if (datasets[i].locale == locale)
            return err_set(err, ERR_BAD_INPUT, "dataset %s is named twice", name);
    if (*count == DATASETS_MAX)
        return err_limit(err, ERR_TOO_LARGE, DATASETS_MAX, DATASETS_MAX + 1.0,
                         "at most %d datasets may be named", DATASETS_MAX);
    if (open_dataset(locale, &datasets[*count], err))
        return err->code;
    ++*count;
    return ERR_OK;
}

/* `a,b,c`, as Open Topo Data takes them. */
static enum err_code open_list(struct call *call, struct span list, struct dataset **out,
                               size_t *count, struct err *err)
{
    const char *at = list.at, *end = list.at + list.length;

    *count = 0;
    *out = call_alloc(call, DATASETS_MAX * sizeof **out);
    if (!*out)
        return err_set(err, ERR_NO_MEMORY, "no memory for the datasets");
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;

        if (stop > at && open_named(call, (struct span){at, (size_t)(stop - at)}, *out, count, err))
            return err->code;
        at = stop + 1;
    }
    return *count ? ERR_OK : err_set(err, ERR_BAD_INPUT, "no dataset is named");
}

/* ---- asking ---------------------------------------------------------------------------------- */

static struct elevation ask(const struct dataset *datasets, size_t count, bool are_named,
                            const struct geo_place *place, enum interpolation interpolation)
{
    struct elevation out = {are_named && count == 1 ? datasets : NULL, NAN};

    for (size_t i = 0; i < count; i++) {
        const struct dataset *dataset = &datasets[i];
        struct ground_point point;
        struct vec2 at;

        if (!geo_map_to_frame(&dataset->map, place->lat, place->lng, &at))
            continue;
        locale_height(&dataset->ground, at, interpolation, &point);
        if (point.status == GROUND_OK)
            return (struct elevation){dataset, point.height_m};
        if (point.status == GROUND_HOLE && !out.dataset)
            out.dataset = dataset;
    }
    return out;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static char *elevation_raw(char *at, const struct elevation_question *question, double height_m)
{
    if (!isnan(height_m))
        return json_raw_number(at, height_m);
    switch (question->nodata) {
    case NODATA_NULL:
        break;
    case NODATA_NAN:
        return JSON_RAW(at, "NaN"); /* no JSON, but the answer of Open Topo Data to this option */
    case NODATA_NUMBER:
        return json_raw_number(at, question->nodata_value);
    }
    return JSON_RAW(at, "null");
}

static char *dataset_raw(char *at, const struct elevation *elevation)
{
    at = JSON_RAW(at, "\"resolution\":");
    at = json_raw_number(at, elevation->dataset ? elevation->dataset->resolution_m : NAN);
    at = JSON_RAW(at, ",\"dataset\":");
    return elevation->dataset ? encode_id_raw(at, elevation->dataset->locale->id)
                              : JSON_RAW(at, "null");
}

static char *encode(char *at, const struct elevation_question *question,
                    const struct geo_place *place, const struct elevation *elevation)
{
    at = JSON_RAW(at, "{\"elevation\":");
    at = elevation_raw(at, question, elevation->height_m);
    at = JSON_RAW(at, ",\"location\":{\"lat\":");
    at = json_raw_number(at, place->lat);
    at = JSON_RAW(at, ",\"lng\":");
    at = json_raw_number(at, place->lng);
    at = JSON_RAW(at, "},");
    at = dataset_raw(at, elevation);
    *at++ = '}';
    return at;
}

/* A point without ground has no third coordinate, unless the request has a value for it. */
static char *encode_feature(char *at, const struct elevation_question *question,
                            const struct geo_place *place, const struct elevation *elevation)
{
    at = JSON_RAW(at, "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Point\",\"coordinates\":[");
    at = json_raw_number(at, place->lng);
    *at++ = ',';
    at = json_raw_number(at, place->lat);
    if (!isnan(elevation->height_m) || question->nodata != NODATA_NULL) {
        *at++ = ',';
        at = elevation_raw(at, question, elevation->height_m);
    }
    at = JSON_RAW(at, "]},\"properties\":{");
    at = dataset_raw(at, elevation);
    at = JSON_RAW(at, "}}");
    return at;
}

static void encode_all(struct call *call, const struct elevation_question *question,
                       const struct elevation *elevations)
{
    struct json_writer *w = &call->out;

    json_begin_object(w);
    if (question->is_geojson) {
        call_content_type(call, "application/geo+json");
        json_put_string(w, "type", "FeatureCollection");
    }
    json_put_array(w, question->is_geojson ? "features" : "results");
    for (size_t i = 0; i < question->count; i++) {
        char *at = json_open_room(w, ITEM_BYTES);

        if (!at)
            break;
        if (i > 0)
            *at++ = ',';
        at = question->is_geojson
                 ? encode_feature(at, question, &question->places[i], &elevations[i])
                 : encode(at, question, &question->places[i], &elevations[i]);
        json_close_room(w, at);
    }
    json_end_array(w);
    if (!question->is_geojson) {
        json_put_string(w, "status", "OK");
    }
    json_end_object(w);
}

/* What a message shows of a request may be no UTF-8. */
static void encode_message(struct json_writer *w, const char *key, const char *message)
{
    char *at;

    json_key(w, key);
    at = json_open_room(w, MESSAGE_BYTES + 2);
    if (!at)
        return;
    *at++ = '"';
    at += json_text_escape(at, MESSAGE_BYTES, message, strlen(message));
    *at++ = '"';
    json_close_room(w, at);
}

/* The error in the form of the two services; nothing has been written yet. */
static void encode_error(struct call *call, const struct err *err)
{
    struct json_writer *w = &call->out;
    int status = err_http_status(err->code);

    call_status(call, status < 500 ? 400 : status);
    if (status == 503)
        call_header(call, "Retry-After", "1");
    if (call->reply)
        http_reply_log_only(call->reply, err);
    json_begin_object(w);
    json_put_string(w, "status", status < 500 ? "INVALID_REQUEST" : "SERVER_ERROR");
    encode_message(w, "error", err->msg);
    encode_message(w, "error_message", err->msg);
    json_put_array(w, "results");
    json_end_array(w);
    json_end_object(w);
}

static enum err_code answer(struct call *call, bool is_post, struct span list, struct err *err)
{
    struct elevation_question question;
    struct elevation *elevations;
    struct dataset *datasets;
    size_t count;

    if (elevation_decode(call, is_post, &question, err) ||
        (list.at ? open_list(call, list, &datasets, &count, err)
                 : open_all(call, &datasets, &count, err)))
        return err->code;
    if (count == 1)
        call->locale = datasets[0].locale; /* whose revision the answer names */
    elevations = call_alloc(call, question.count * sizeof *elevations);
    if (!elevations)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu elevations", question.count);
    for (size_t i = 0; i < question.count; i++) {
        if (call_check_budget(call, i, err))
            return err->code;
        elevations[i] =
            ask(datasets, count, list.at != NULL, &question.places[i], question.interpolation);
    }
    encode_all(call, &question, elevations);
    return ERR_OK;
}

static enum err_code answer_or_report(struct call *call, bool is_post, struct span list,
                                      struct err *err)
{
    if (answer(call, is_post, list, err) == ERR_OK || call->is_offloaded)
        return err->code;
    encode_error(call, err);
    err->code = ERR_OK;
    return ERR_OK;
}

#define ELEVATION_CALL(name, is_post, params, list)                                                \
    enum err_code name##_answer(struct call *call, struct err *err)                                \
    {                                                                                              \
        return answer_or_report(call, is_post, list, err);                                         \
    }                                                                                              \
    API_HANDLER(name, params, CALL_NEEDS_NOTHING)

static const struct span no_list;

ELEVATION_CALL(elevation_get, false, 0, no_list)
ELEVATION_CALL(elevation_post, true, 0, no_list)
ELEVATION_CALL(dataset_get, false, 1, call->params[0])
ELEVATION_CALL(dataset_post, true, 1, call->params[0])
