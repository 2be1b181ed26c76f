/*
 * Query, form or JSON to a question about elevations.
 *
 * Clients of two services use this call, so their input is read leniently: a number may be a
 * string, an empty string or null counts as absent, and parameters that only identify the client
 * (key, sensor, …) are ignored. Names unknown to both services are refused as everywhere. Open Topo
 * Data sends forms; they are read into the query, so that one reader sees both. A POST may have its
 * parameters in its query, its body or both; a name that is in both is refused, as everywhere.
 *
 * Samples of a path are spaced evenly along its great circles, both ends included. Where a sample
 * falls on a corner it is that corner to the bit. Two corners on opposite sides of the Earth have
 * no one great circle between them.
 * Source: Open Topo Data, API documentation; Google, Elevation API, "Elevation requests".
 */
#include "api/calls/elevation.h"

#include "api/options.h"
#include "http/target.h"
#include "terrain/geo/geo.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Nearer to opposite than this (0.6 mm on the ground) the rounding chooses the way. */
#define OPPOSITE 1e-10

static const char *const names[] = {
    "locations", "path",   "samples", "interpolation", "nodata_value", "format", "key",
    "language",  "sensor", "client",  "channel",       "signature",    NULL};

/* ---- texts ----------------------------------------------------------------------------------- */

/* Splits and decodes `a=b&c=d` into the call's query. */
static enum err_code open_form(struct call *call, struct err *err)
{
    const char *at = call->body.at, *end = at + call->body.length;
    char *copy;

    if (call->body.length > call_limits(call)->json_bytes_max)
        return err_limit(err, ERR_BODY_TOO_LARGE, (double)call_limits(call)->json_bytes_max,
                         (double)call->body.length, "a form has at most %zu bytes, this has %zu",
                         call_limits(call)->json_bytes_max, call->body.length);
    copy = call_alloc(call, call->body.length + 1);
    if (!copy)
        return err_set(err, ERR_NO_MEMORY, "no memory to read a form");
    while (at && at < end) {
        const char *next = memchr(at, '&', (size_t)(end - at)), *stop = next ? next : end;
        const char *is = memchr(at, '=', (size_t)(stop - at));
        struct http_query_item item;
        const char *value = is ? is + 1 : stop;

        if (call->query_count == CALL_QUERY_MAX)
            return err_limit(err, ERR_BAD_INPUT, CALL_QUERY_MAX, CALL_QUERY_MAX + 1.0,
                             "a form has at most %d parameters, with those of the query",
                             CALL_QUERY_MAX);
        item.name.at = copy;
        if (http_percent_decode(copy, &item.name.length, at, (size_t)((is ? is : stop) - at), true,
                                err))
            return err->code;
        copy += item.name.length;
        item.value.at = copy;
        if (http_percent_decode(copy, &item.value.length, value, (size_t)(stop - value), true, err))
            return err->code;
        copy += item.value.length;
        if (item.name.length > 0)
            call->query[call->query_count++] = item;
        at = next ? next + 1 : NULL;
    }
    return options_open_query(call, names, err);
}

static enum err_code open(struct call *call, bool is_post, struct err *err)
{
    if (!is_post || call->body.length == 0)
        return options_open_query(call, names, err);
    if (span_equals(call->media_type, "application/x-www-form-urlencoded"))
        return open_form(call, err);
    return options_open_json(call, NULL, names, err);
}

/* The text of a parameter; at is NULL when it is absent or empty. A JSON number is its text. */
static enum err_code text_of(struct call *call, const char *name, struct span *out, struct err *err)
{
    const cJSON *member = call->json ? json_given(call->json, name) : NULL;
    char *number;

    *out = (struct span){NULL, 0};
    if (cJSON_IsString(member)) {
        *out = (struct span){member->valuestring, strlen(member->valuestring)};
    } else if (cJSON_IsNumber(member)) {
        number = call_alloc(call, 32);
        if (!number)
            return err_set(err, ERR_NO_MEMORY, "no memory to read %s", name);
        out->length = (size_t)snprintf(number, 32, "%.17g", member->valuedouble);
        out->at = number;
    } else if (member) {
        return err_set(err, ERR_BAD_INPUT, "%s must be a text or a number, not %s", name,
                       json_kind(member));
    }
    for (size_t i = 0; i < call->query_count; i++) {
        if (!span_equals(call->query[i].name, name))
            continue;
        if (member)
            return err_set(err, ERR_BAD_INPUT, "%s is given in the query and in the body", name);
        *out = call->query[i].value;
    }
    if (out->length == 0)
        out->at = NULL;
    return ERR_OK;
}

/* For messages: the text, cut. */
#define SHOWN(s) (int)((s).length < 40 ? (s).length : 40), (s).at

static enum err_code word_of(struct call *call, const char *name, const char *const *words,
                             int *out, struct err *err)
{
    struct span text;
    char list[64] = "";

    if (text_of(call, name, &text, err) || !text.at)
        return err->code;
    for (int i = 0; words[i]; i++) {
        if (span_equals(text, words[i])) {
            *out = i;
            return ERR_OK;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", words[i]);
    }
    return err_set(err, ERR_BAD_INPUT, "%s=%.*s is not offered here; one of %s was expected", name,
                   SHOWN(text), list);
}

static enum err_code decode_nodata(struct call *call, struct elevation_question *out,
                                   struct err *err)
{
    struct span text;

    if (text_of(call, "nodata_value", &text, err))
        return err->code;
    if (!text.at || span_equals(text, "null"))
        return ERR_OK;
    if (text.length == 3 && strncasecmp(text.at, "nan", 3) == 0) {
        out->nodata = NODATA_NAN;
        return ERR_OK;
    }
    out->nodata = NODATA_NUMBER;
    if (span_number(text, &out->nodata_value) && out->nodata_value == floor(out->nodata_value))
        return ERR_OK;
    return err_set(err, ERR_BAD_INPUT,
                   "nodata_value=%.*s: null, nan or a whole number was expected", SHOWN(text));
}

/* ---- places ---------------------------------------------------------------------------------- */

static enum err_code too_many(const char *what, size_t most, size_t got, struct err *err)
{
    return err_limit(err, ERR_TOO_MANY_ITEMS, (double)most, (double)got,
                     "too many %s (%zu), the most is %zu", what, got, most);
}

static enum err_code read_places(struct call *call, struct span text, const char *what,
                                 struct elevation_question *out, struct err *err)
{
    size_t limit = call_limits(call)->items_max, most = places_max(text.at, text.length);

    if (most > limit)
        return too_many(what, limit, most, err);
    out->places = call_alloc(call, most * sizeof *out->places);
    if (!out->places)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu %s", most, what);
    return places_read(text.at, text.length, out->places, &out->count, err);
}

/* The path's corners as directions, and the distance of each along the path. */
static enum err_code measure_path(const struct geo_place *corners, size_t count,
                                  struct vec3 *directions, double *along, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        double angle;

        directions[i] = geo_direction(corners[i].lat, corners[i].lng);
        angle = i ? geo_angle(directions[i - 1], directions[i]) : 0;
        if (angle > M_PI - OPPOSITE)
            return err_set(err, ERR_BAD_INPUT,
                           "locations %zu and %zu of the path are on opposite sides of the Earth: "
                           "no one great circle joins them",
                           i, i + 1);
        along[i] = i ? along[i - 1] + angle : 0;
    }
    return ERR_OK;
}

static enum err_code sample_path(struct call *call, size_t samples, struct elevation_question *out,
                                 struct err *err)
{
    const struct geo_place *corners = out->places;
    size_t count = out->count, k = 1;
    struct geo_place *places = call_alloc(call, samples * sizeof *places);
    struct vec3 *directions = call_alloc(call, count * sizeof *directions);
    double *along = call_alloc(call, count * sizeof *along);

    if (!places || !directions || !along)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu samples", samples);
    if (measure_path(corners, count, directions, along, err))
        return err->code;
    for (size_t i = 0; i < samples; i++) {
        double at = along[count - 1] * ((double)i / (double)(samples - 1)), angle, share;

        while (k < count - 1 && along[k] < at)
            k++;
        angle = along[k] - along[k - 1];
        share = angle > 0 ? (at - along[k - 1]) / angle : 0;
        if (share <= 0 || share >= 1)
            places[i] = corners[share <= 0 ? k - 1 : k];
        else
            geo_between(directions[k - 1], directions[k], angle, share, &places[i].lat,
                        &places[i].lng);
    }
    out->places = places;
    out->count = samples;
    return ERR_OK;
}

static enum err_code decode_samples(struct call *call, uint64_t *out, struct err *err)
{
    struct span text;

    *out = 0;
    if (text_of(call, "samples", &text, err) || !text.at)
        return err->code;
    if (!span_count(text, out) || *out < 2)
        return err_set(err, ERR_BAD_INPUT,
                       "samples=%.*s: a whole number of at least 2 was expected, the ends of the "
                       "path among them",
                       SHOWN(text));
    return *out > call_limits(call)->items_max
               ? too_many("samples", call_limits(call)->items_max, (size_t)*out, err)
               : ERR_OK;
}

static enum err_code decode_places(struct call *call, struct elevation_question *out,
                                   struct err *err)
{
    struct span locations, path;
    uint64_t samples;

    if (text_of(call, "locations", &locations, err) || text_of(call, "path", &path, err) ||
        decode_samples(call, &samples, err))
        return err->code;
    if (locations.at && path.at)
        return err_set(err, ERR_BAD_INPUT, "locations and path are both given, one is expected");
    if (!locations.at && !path.at)
        return err_set(err, ERR_BAD_INPUT,
                       "no locations: ask with locations=lat,lng|lat,lng or path=…&samples=n");
    if (path.at && !samples)
        return err_set(err, ERR_BAD_INPUT, "a path needs samples, 2 or more");
    if (read_places(call, path.at ? path : locations, path.at ? "corners" : "locations", out, err))
        return err->code;
    if (path.at && out->count < 2)
        return err_set(err, ERR_BAD_INPUT, "a path has 2 locations at least, this has %zu",
                       out->count);
    if (samples && out->count > 1 && sample_path(call, (size_t)samples, out, err))
        return err->code;
    return call_take_items(call, out->count, err);
}

enum err_code elevation_decode(struct call *call, bool is_post, struct elevation_question *out,
                               struct err *err)
{
    static const char *const interpolations[] = {"nearest", "bilinear", "triangle", NULL};
    static const enum interpolation meant[] = {INTERPOLATION_NEAREST, INTERPOLATION_BILINEAR,
                                               INTERPOLATION_TRIANGLE};
    static const char *const formats[] = {"json", "geojson", NULL};
    int interpolation = 1, format = 0;

    *out = (struct elevation_question){.nodata = NODATA_NULL};
    if (open(call, is_post, err) ||
        word_of(call, "interpolation", interpolations, &interpolation, err) ||
        word_of(call, "format", formats, &format, err) || decode_nodata(call, out, err) ||
        decode_places(call, out, err))
        return err->code;
    out->interpolation = meant[interpolation];
    out->is_geojson = format == 1;
    return ERR_OK;
}
