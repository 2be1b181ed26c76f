/*
 * GET …/dem.json?encoding=terrarium|mapbox&style=&void=&sampling=&layer=&v=  ->  TileJSON 3.0.0
 *
 * What MapLibre, Mapbox GL and others need to show the ground: the template of its tiles' address,
 * how they are encoded, and where it is. The options are passed on to the tiles. Without `v` the
 * tiles may change, and readers ask each time whether they did; with it they never ask.
 *
 * Bounds that cross the antimeridian go all around, as the specification wants west < east.
 */
#include "api/calls.h"
#include "api/maps/base_url.h"
#include "api/maps/map_ground.h"
#include "api/options.h"

#include <math.h>
#include <stdio.h>

#define MERCATOR_LAT_DEG 85.0511287798066

static const char *const names[] = {"encoding", "style", "void", "sampling", "layer", "v", NULL};
static const char *const encodings[] = {"terrarium", "mapbox", NULL};
static const char *const styles[] = {"dem", "relief", NULL};
static const char *const voids[] = {"edge", "zero", "alpha", NULL};
static const char *const samplings[] = {"point", "mean", NULL};

struct question {
    int encoding, style, fill, sampling;
    char layer[WORLD_ID_MAX + 1];
    uint64_t v;
};

/* The options that are not the defaults, after the one that always is there. */
static void template_of(const struct call *call, const struct question *asked,
                        char out[static BASE_URL_BYTES + 512])
{
    char base[BASE_URL_BYTES];
    size_t at;

    base_url(call, base);
    at = (size_t)sprintf(out, "%s/v1/locales/%s/dem/{z}/{x}/{y}.png?%s=%s", base, call->locale->id,
                         asked->style ? "style" : "encoding",
                         asked->style ? styles[asked->style] : encodings[asked->encoding]);
    if (asked->fill)
        at += (size_t)sprintf(out + at, "&void=%s", voids[asked->fill]);
    if (asked->sampling)
        at += (size_t)sprintf(out + at, "&sampling=%s", samplings[asked->sampling]);
    if (asked->layer[0] != '\0')
        at += (size_t)sprintf(out + at, "&layer=%s", asked->layer);
    if (asked->v)
        at += (size_t)sprintf(out + at, "&v=%llu", (unsigned long long)asked->v);
    call_write_at(call, out + at);
}

static void write(struct call *call, const struct question *asked, const struct map_ground *ground)
{
    const struct locale *locale = call->locale;
    const char *title = locale->manifest.title[0] != '\0' ? locale->manifest.title : locale->id;
    struct geo_box box = ground->box;
    double middle_lat = (box.south_deg + box.north_deg) / 2;
    double middle_lng = remainder((box.west_deg + box.east_deg) / 2, 360);
    uint32_t zoom = map_zoom_of(middle_lat, ground->spacing_m);
    bool is_around = box.west_deg < -180 || box.east_deg > 180;
    char address[BASE_URL_BYTES + 512];
    struct json_writer *w = &call->out;

    template_of(call, asked, address);
    json_begin_object(w);
    json_put_string(w, "tilejson", "3.0.0");
    json_put_string(w, "name", title);
    json_put_array(w, "tiles");
    json_string(w, address);
    json_end_array(w);
    json_put_integer(w, "minzoom", 0);
    json_put_integer(w, "maxzoom", zoom);
    json_put_numbers(
        w, "bounds",
        (double[]){is_around ? -180 : box.west_deg, fmax(box.south_deg, -MERCATOR_LAT_DEG),
                   is_around ? 180 : box.east_deg, fmin(box.north_deg, MERCATOR_LAT_DEG)},
        4);
    json_put_numbers(w, "center", (double[]){middle_lng, middle_lat, zoom > 2 ? zoom - 2 : 0}, 3);
    json_put_string(w, "scheme", "xyz");
    json_put_integer(w, "tileSize", 256);
    if (!asked->style)
        json_put_string(w, "encoding", encodings[asked->encoding]);
    json_put_string(w, "attribution", "");
    json_put_integer(w, "revision", locale->revision);
    json_end_object(w);
}

enum err_code dem_json_get_answer(struct call *call, struct err *err)
{
    struct question asked = {.layer = ""};
    struct map_ground ground;

    if (options_open_query(call, names, err) ||
        option_word(call, "encoding", encodings, &asked.encoding, err) ||
        option_word(call, "style", styles, &asked.style, err) ||
        option_word(call, "void", voids, &asked.fill, err) ||
        option_word(call, "sampling", samplings, &asked.sampling, err) ||
        option_integer(call, "v", 1, UINT64_MAX, &asked.v, err) ||
        option_layer(call, asked.layer, err) || map_ground_open(call, &ground, err))
        return err->code;
    if (ground.box.south_deg > MERCATOR_LAT_DEG || ground.box.north_deg < -MERCATOR_LAT_DEG)
        return err_set_at(err, ERR_NO_PLACE, "locale",
                          "locale %s is beyond latitude %.2f, where maps of web Mercator end",
                          call->locale->id, MERCATOR_LAT_DEG);
    call_header(call, "Cache-Control", "no-cache");
    write(call, &asked, &ground);
    return ERR_OK;
}
API_HANDLER(dem_json_get, 1, CALL_NEEDS_VALUE)
