/*
 * GET …/layers/{layer}.tif?v=  ->  the heightfield as a cloud-optimised GeoTIFF
 *
 * GDAL, QGIS and rasterio read parts of a remote file by ranges. There is no file: its head and its
 * tiles follow from the field's size (formats/raster/geotiff.h), and the bytes of a range are
 * written when they are asked for. Tiles are not compressed, so that an edit moves none.
 *
 * One request is one snapshot. A reader of many ranges may meet an edit between two; it sees
 * that by the ETag (If-Range), or asks with ?v= its revision and gets 412 when the locale has a
 * newer one.
 * Several ranges at once are answered as none are: whole (RFC 9110, section 14.2).
 *
 * Rows run from the north; the samples are points, and so is the tie (PixelIsPoint). Overviews have
 * every 2^L-th sample from the north-west.
 */
#include "api/calls.h"

#include "api/answer/file.h"
#include "api/maps/map_ground.h"
#include "api/options.h"
#include "formats/raster/geotiff.h"
#include "terrain/field/sample_hash.h"
#include "terrain/field/window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = GEOTIFF_TILE_SIDE, ROW_BYTES = SIDE * 4 };

struct tif {
    const struct heightfield *field;
    struct geotiff layout;
    uint8_t *head;
    char tag[TILE_TAG_BYTES];
    uint64_t v;           /* 0: none */
    uint64_t first, last; /* the bytes that are sent; first > last: none fit */
    bool is_part;
};

/* ---- decode ---------------------------------------------------------------------------------- */

static enum err_code check_revision(const struct call *call, uint64_t v, struct err *err)
{
    uint64_t now = call->locale->revision;

    if (v == 0 || v == now)
        return ERR_OK;
    if (v > now)
        err_limit(err, ERR_REVISION_AHEAD, (double)now, (double)v,
                  "locale %s is at revision %llu, not yet at %llu", call->locale->id,
                  (unsigned long long)now, (unsigned long long)v);
    else
        err_limit(err, ERR_PRECONDITION_FAILED, (double)now, (double)v,
                  "revision %llu is no longer current, locale %s is at %llu: open the file again",
                  (unsigned long long)v, call->locale->id, (unsigned long long)now);
    return err_at(err, "v");
}

static enum err_code decode(struct call *call, struct tif *out, struct err *err)
{
    static const char *const names[] = {"v", NULL};
    const struct layer *layer;
    char id[WORLD_ID_MAX + 1];

    if (call_param_id(call, 1, "layer", ERR_LAYER_UNKNOWN, id, err) ||
        options_open_query(call, names, err) ||
        option_integer(call, "v", 1, UINT64_MAX, &out->v, err))
        return err->code;
    layer = locale_layer(call->locale, id);
    if (!layer)
        return locale_no_layer(call->locale, id, ERR_LAYER_UNKNOWN, err);
    if (layer->kind != LAYER_HEIGHTFIELD)
        return err_set_at(err, ERR_LAYER_KIND, "layer",
                          "layer %s is a mesh, it has no samples for a GeoTIFF", id);
    out->field = layer->field;
    return check_revision(call, out->v, err);
}

/* A number of a range, up to 18 digits; false: there is none. */
static bool take_number(struct span *text, uint64_t *out)
{
    size_t digits = 0;

    *out = 0;
    for (; digits < text->length && text->at[digits] >= '0' && text->at[digits] <= '9'; digits++) {
        if (digits == 18)
            return false;
        *out = *out * 10 + (uint64_t)(text->at[digits] - '0');
    }
    text->at += digits;
    text->length -= digits;
    return digits > 0;
}

/* bytes=a-b, bytes=a-, bytes=-n. Anything else is ignored, as a server may. */
static void decode_range(struct span text, uint64_t total, struct tif *out)
{
    uint64_t first = 0, last = 0;
    bool has_first, has_last;

    if (text.length < 7 || memcmp(text.at, "bytes=", 6) != 0)
        return;
    text = (struct span){text.at + 6, text.length - 6};
    has_first = take_number(&text, &first);
    if (text.length == 0 || *text.at != '-')
        return;
    text = (struct span){text.at + 1, text.length - 1};
    has_last = take_number(&text, &last);
    if (text.length > 0 || (!has_first && !has_last) || (has_first && has_last && last < first))
        return;
    out->is_part = true;
    out->first = has_first ? first : last < total ? total - last : 0;
    out->last = has_first && has_last && last < total ? last : total - 1;
    if (!has_first && last == 0)
        out->first = total; /* the last 0 bytes: none */
}

/* ---- the file -------------------------------------------------------------------------------- */

static struct geotiff_place place_of(const struct locale *locale, const struct heightfield *field)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    const struct locale_manifest *manifest = &locale->manifest;

    return (struct geotiff_place){
        .spacing_x = spec->spacing_x_m,
        .spacing_y = spec->spacing_y_m,
        .left = spec->origin_x_m,
        .top = spec->origin_y_m + spec->spacing_y_m * (double)(spec->rows - 1),
        .is_point = true,
        .frame = manifest->has_geo    ? GEOTIFF_ORTHOGRAPHIC
                 : manifest->crs != 0 ? GEOTIFF_EPSG
                                      : GEOTIFF_NO_FRAME,
        .epsg = (uint16_t)manifest->crs,
        .lat_deg = manifest->geo_lat_deg,
        .lng_deg = manifest->geo_lng_deg,
    };
}

/* Of the samples and of the head, which holds size and place. */
static enum err_code lay_out(struct call *call, struct tif *tif, struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(tif->field);
    const struct window all = {{0, 0, spec->cols, spec->rows}, 1};
    struct geotiff_place place = place_of(call->locale, tif->field);
    uint64_t hash[2];

    geotiff_lay_out(spec->cols, spec->rows, true, &tif->layout);
    tif->head = call_alloc(call, tif->layout.head_bytes);
    if (!tif->head)
        return err_set(err, ERR_NO_MEMORY, "no memory for the head of a GeoTIFF");
    geotiff_head(&tif->layout, &place, tif->head);
    window_hash(tif->field, &all, hash);
    for (uint64_t at = 0; at < tif->layout.head_bytes; at += sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, tif->head + at, sizeof word);
        hash_word(word, hash);
    }
    snprintf(tif->tag, sizeof tif->tag, "\"%016llx%016llx-tif\"",
             (unsigned long long)hash_finish(hash[0]), (unsigned long long)hash_finish(hash[1]));
    return ERR_OK;
}

/* Row `y` of a tile: SIDE samples, NaN beyond the level. */
static void tile_row(const struct tif *tif, uint32_t level, uint64_t tile, uint32_t y, float *out)
{
    const struct heightfield_spec *spec = heightfield_spec(tif->field);
    const struct geotiff_level *of = &tif->layout.levels[level];
    uint32_t column = (uint32_t)(tile % of->tile_cols) * SIDE;
    uint32_t row = (uint32_t)(tile / of->tile_cols) * SIDE + y, count = 0;

    if (row < of->rows) {
        struct window window = {
            {column << level, spec->rows - 1 - (row << level), spec->cols - (column << level), 1},
            (uint32_t)1 << level};

        count = of->cols - column < SIDE ? of->cols - column : SIDE;
        if (count < window_cols(&window)) /* one row of it is all that is read */
            window.rect.cols = ((count - 1) << level) + 1;
        window_row(tif->field, &window, 0, out);
    }
    for (uint32_t i = count; i < SIDE; i++)
        out[i] = NAN;
}

/* The part of [at, at + length) that lies in [first, last], copied from `bytes`. */
static char *put_part(const struct tif *tif, uint64_t at, const void *bytes, uint64_t length,
                      char *to)
{
    uint64_t from = at > tif->first ? at : tif->first;
    uint64_t end = at + length - 1 < tif->last ? at + length - 1 : tif->last;

    if (from > end)
        return to;
    memcpy(to, (const char *)bytes + (from - at), end - from + 1);
    return to + (end - from + 1);
}

/* Levels in the order of the file, of each only the rows that the range meets. */
static enum err_code write_part(struct call *call, const struct tif *tif, char *to, struct err *err)
{
    float row[SIDE];

    to = put_part(tif, 0, tif->head, tif->layout.head_bytes, to);
    for (uint32_t level = tif->layout.level_count; level-- > 0;) {
        const struct geotiff_level *of = &tif->layout.levels[level];
        uint64_t rows = (uint64_t)of->tile_cols * of->tile_rows * SIDE;
        uint64_t n = tif->first > of->at ? (tif->first - of->at) / ROW_BYTES : 0;

        for (; n < rows && of->at + n * ROW_BYTES <= tif->last; n++) {
            if (n % SIDE == 0 && answer_is_abandoned(call, err))
                return err->code;
            tile_row(tif, level, n / SIDE, (uint32_t)(n % SIDE), row);
            to = put_part(tif, of->at + n * ROW_BYTES, row, ROW_BYTES, to);
        }
    }
    return ERR_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

/* ERR_RANGE: the range begins beyond the end. */
static enum err_code refuse_range(struct call *call, const struct tif *tif, struct err *err)
{
    uint64_t total = tif->layout.total_bytes;
    char *text = call_alloc(call, 40);

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for an error");
    snprintf(text, 40, "bytes */%llu", (unsigned long long)total);
    call->location = text;
    return err_limit_at(err, ERR_RANGE, "Range", (double)(total - 1), (double)tif->first,
                        "the file has %llu bytes, the range begins beyond them",
                        (unsigned long long)total);
}

/* Status and headers. *has_body false: 304. */
static enum err_code answer_by_headers(struct call *call, struct tif *tif, bool *has_body,
                                       struct err *err)
{
    struct span condition = call_request_header(call, "if-range");
    uint64_t total = tif->layout.total_bytes;

    *has_body = !answer_is_known(call, tif->tag, map_cache_control(call, tif->v));
    call_header(call, "Accept-Ranges", "bytes");
    if (!*has_body)
        return ERR_OK;
    if (!condition.at || span_equals(condition, tif->tag))
        decode_range(http_request_header(call->request, "range"), total, tif);
    if (!tif->is_part)
        return ERR_OK;
    if (tif->first > tif->last)
        return refuse_range(call, tif, err);
    call_status(call, 206);
    call_header(call, "Content-Range", "bytes %llu-%llu/%llu", (unsigned long long)tif->first,
                (unsigned long long)tif->last, (unsigned long long)total);
    return ERR_OK;
}

enum err_code layer_tif_get_answer(struct call *call, struct err *err)
{
    struct tif tif = {.is_part = false};
    bool has_body = true;
    uint64_t length;
    char *to;

    if (decode(call, &tif, err) || lay_out(call, &tif, err))
        return err->code;
    tif.last = tif.layout.total_bytes - 1;
    call_content_type(call, "image/tiff");
    if ((call->request && answer_by_headers(call, &tif, &has_body, err)) || !has_body)
        return err->code;
    length = tif.last - tif.first + 1;
    if (call->request && http_request_is_head(call->request)) {
        http_reply_length_only(call->reply, length);
        return ERR_OK;
    }
    if (answer_check_length(call, length, "the layer as one GeoTIFF, without Range,", err))
        return err->code;
    to = answer_reserve(call, length, err);
    if (!to || write_part(call, &tif, to, err))
        return err->code;
    call->out.sink.advance(call->out.sink.to, length);
    return ERR_OK;
}
API_HANDLER(layer_tif_get, 2, CALL_NEEDS_VALUE)
