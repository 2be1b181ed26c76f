/*
 * PUT    …/layers/{layer}?spacing=sx,sy&origin=x,y&height_scale=&height_offset=&flip_y=&nodata=
 *        image/png, application/vnd.kota.f32 (cols, rows), .hgt, .asc  ->  201 or 200 Locale
 * DELETE …/layers/{layer}        ->  204
 * GET    …/layers/{layer}/stats  ->  {"tiles","samples","bytes","levels"}
 *
 * An upload is decoded on a worker; only the finished heightfield goes to the writer.
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/upload.h"
#include "api/write.h"

#include <string.h>

enum { MEDIA_TYPE_BYTES_MAX = 64 };

static enum err_code decode_format(struct call *call, enum raster_format *out, struct err *err)
{
    static const char *const words[] = {"png", "f32", "hgt", "asc", NULL};
    static const enum raster_format formats[] = {RASTER_PNG, RASTER_F32, RASTER_HGT, RASTER_ASC};
    char media_type[MEDIA_TYPE_BYTES_MAX] = "";
    int word = -1;

    if (option_word(call, "format", words, &word, err))
        return err->code;
    if (call->media_type.length > 0)
        span_copy(call->media_type, media_type, sizeof media_type);
    if (strcmp(media_type, "application/octet-stream") == 0) {
        if (word >= 0) {
            *out = formats[word];
            return ERR_OK;
        }
        return err_set(err, ERR_UNSUPPORTED_MEDIA_TYPE,
                       "application/octet-stream needs format=png, f32, hgt or asc");
    }
    if (!raster_format_of_media_type(media_type, out))
        return err_set(err, ERR_UNSUPPORTED_MEDIA_TYPE,
                       "a layer is image/png, application/vnd.kota.f32, application/vnd.kota.hgt "
                       "or application/vnd.kota.asc, not \"%s\"",
                       media_type);
    if (word >= 0 && formats[word] != *out) {
        err_set(err, ERR_BAD_INPUT, "format=%s contradicts the media type %s", words[word],
                media_type);
        return err_at(err, "format");
    }
    return ERR_OK;
}

enum err_code layer_put_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"spacing", "origin", "height_scale", "height_offset",
                                        "flip_y",  "nodata", "cols",         "rows",
                                        "format",  NULL};
    struct world_change change = {.kind = WORLD_PUT_LAYER};
    enum raster_format format;
    struct upload upload;

    if (write_layer_id(call, ERR_BAD_INPUT, change.layer_id, err) ||
        options_open_query(call, names, err) || decode_format(call, &format, err) ||
        upload_decode(call, format, false, &upload, err))
        return err->code;
    change.field = upload_heightfield(call->api, format, call->body.at, call->body.length, &upload,
                                      call->locale->manifest.triangulation, err);
    if (!change.field)
        return err->code;
    memcpy(change.locale_id, call->locale->id, sizeof change.locale_id);
    return write_submit(call, &change, err);
}
API_HANDLER(layer_put, 2, CALL_NEEDS_LOCALE)

enum err_code layer_delete_answer(struct call *call, struct err *err)
{
    struct world_change change = {.kind = WORLD_DELETE_LAYER};

    if (write_layer_id(call, ERR_NOT_FOUND, change.layer_id, err) ||
        options_open_query(call, NULL, err))
        return err->code;
    memcpy(change.locale_id, call->locale->id, sizeof change.locale_id);
    return write_submit(call, &change, err);
}
API_HANDLER(layer_delete, 2, CALL_NEEDS_LOCALE)

enum err_code layer_stats_get_answer(struct call *call, struct err *err)
{
    struct json_writer *w = &call->out;
    struct heightfield_stats stats;
    char id[WORLD_ID_MAX + 1];
    const struct layer *layer;

    if (write_layer_id(call, ERR_NOT_FOUND, id, err) || options_open_query(call, NULL, err))
        return err->code;
    layer = locale_layer(call->locale, id);
    if (!layer)
        return err_set(err, ERR_NOT_FOUND, "there is no layer %s in locale %s", id,
                       call->locale->id);
    heightfield_stats(layer->field, &stats);
    call_begin_answer(call);
    json_key(w, "layer");
    json_string(w, layer->id);
    json_key(w, "tiles");
    json_integer(w, stats.tiles);
    json_key(w, "samples");
    json_integer(w, stats.samples);
    json_key(w, "bytes");
    json_integer(w, stats.bytes);
    json_key(w, "levels");
    json_integer(w, stats.levels);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(layer_stats_get, 2, CALL_NEEDS_LOCALE)
