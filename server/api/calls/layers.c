/*
 * PUT    …/layers/{layer}?spacing=sx,sy&origin=x,y&height_scale=&height_offset=&flip_y=&nodata=
 *        image/png, image/tiff, application/vnd.kota.f32 (cols, rows), .hgt, .asc
 *        ->  201 or 200 Locale, of a GeoTIFF with import:{crs,geo,…}
 * PUT    …/layers/{layer}?role=ground|ceiling&up=z|y&scale=
 *        &frame=cartesian|spherical|cylindrical&gravity=in|out
 *        model/obj, model/gltf-binary, …  ->  201 or 200 Locale with import:{kept,split,dropped,…}
 * DELETE …/layers/{layer}        ->  204
 * GET    …/layers/{layer}/stats  ->  heightfield: {"tiles","samples","bytes","levels"};
 *        mesh: {"nodes","leaves","depth","polygons","bytes","average_tests","depths":[…],
 *              "bytes_by_structure":{…}}; with quadtree=true also its leaves, those over bounds=
 *
 * An upload is decoded, and a mesh built, on a worker; only the finished layer goes to the writer.
 * An f32 field goes into its tiles while it arrives (upload_stream.h). Headers and options are
 * checked before the body, and once more with it: the locale may have changed.
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/upload_stream.h"
#include "api/write.h"
#include "world/ask/layer_ask.h"
#include "world/builds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MEDIA_TYPE_BYTES_MAX = 64 };

/* application/octet-stream has no format: it is in the query. */
static enum err_code decode_format(struct call *call, struct upload_format *out, struct err *err)
{
    static const char *const words[] = {"png",  "f32", "hgt", "asc", "tif", "obj", "glb",
                                        "gltf", "ply", "stl", "ac",  "dae", NULL};
    char media_type[MEDIA_TYPE_BYTES_MAX] = "";
    struct upload_format format = {.kind = LAYER_HEIGHTFIELD};
    int word = -1;

    if (option_word(call, "format", words, &word, err))
        return err->code;
    if (word >= 0)
        upload_format_of_word(words[word], &format);
    if (call->media_type.length > 0)
        span_copy(call->media_type, media_type, sizeof media_type);
    if (strcmp(media_type, "application/octet-stream") == 0) {
        *out = format;
        if (word >= 0)
            return ERR_OK;
        return err_set_at(
            err, ERR_UNSUPPORTED_MEDIA_TYPE, "format",
            "application/octet-stream needs format=png, f32, hgt, asc, tif, obj, glb, gltf, ply, "
            "stl, ac or dae");
    }
    if (!upload_format_of_media_type(media_type, out))
        return options_wrong_media_type(
            call,
            "image/png, application/vnd.kota.f32, application/vnd.kota.hgt, "
            "application/vnd.kota.asc, image/tiff, model/obj, model/gltf-binary, model/gltf+json, "
            "model/ply, "
            "model/stl, application/x-ac3d or model/vnd.collada+xml",
            err);
    if (word >= 0 && (format.kind != out->kind || format.raster != out->raster ||
                      format.polygon != out->polygon))
        return err_set_at(err, ERR_BAD_INPUT, "format", "format=%s contradicts the media type %s",
                          words[word], media_type);
    return ERR_OK;
}

/* The options of this kind of layer, and `format`. */
static enum err_code open_query(struct call *call, enum layer_kind kind, struct err *err)
{
    const char *names[CALL_QUERY_MAX] = {"format"};
    const char *const *of_kind = upload_names(kind);

    for (size_t i = 0; of_kind[i]; i++)
        names[i + 1] = of_kind[i];
    return options_open_query(call, names, err);
}

static const struct write_kind put_write = {
    .change = WORLD_PUT_LAYER,
    .method = "PUT",
    .below = "",
    .may_create = true,
    .needs_locale = true,
    .encode = write_encode_locale,
};

static const struct write_kind delete_write = {
    .change = WORLD_DELETE_LAYER,
    .method = "DELETE",
    .below = "",
};

/* All but the body. */
static enum err_code decode_put(struct call *call, const struct write_kind *kind,
                                struct world_change *change, struct upload *out, struct err *err)
{
    struct upload_format format;

    if (call_param_id(call, 1, "layer", ERR_BAD_INPUT, change->layer_id, err) ||
        write_open(call, kind, change, err) || decode_format(call, &format, err) ||
        open_query(call, format.kind, err))
        return err->code;
    return upload_decode(call, format, false, out, err);
}

static enum err_code layer_put_begin_answer(struct call *call, struct err *err)
{
    struct write_kind kind = put_write;
    struct world_change change = {.layer_id = ""};
    struct upload upload;

    kind.needs_locale = false; /* the loop does not wait for a shared log */
    if (decode_put(call, &kind, &change, &upload, err))
        return err->code;
    if (upload.format.kind != LAYER_HEIGHTFIELD || upload.format.raster != RASTER_F32)
        return ERR_OK;
    return upload_stream_begin(call, &upload, err);
}
API_HANDLER(layer_put_begin, 2, CALL_NEEDS_NOTHING)

/* The layer of a file in the body, durable if it is a mesh. *out is empty on error. */
static enum err_code layer_of_file(struct call *call, const struct world_change *change,
                                   const struct upload *upload, struct uploaded *out,
                                   struct err *err)
{
    struct build build;
    struct pace pace = build_pace(&build, call_import_pace(call));
    struct builds *builds = world_builds(call->api->world);
    bool is_mesh = upload->format.kind == LAYER_MESH;

    if (is_mesh)
        build_begin(builds, &build, BUILD_UPLOAD, change->locale_id, change->layer_id);
    else
        pace.progress = NULL;
    if (upload_layer(call->api, change->layer_id, call->body.at, call->body.length, upload,
                     &call->locale->manifest, &pace, out, err) == ERR_OK &&
        write_save_meshes(call, &out->layer, 1, NULL, err)) {
        upload_release(call->api, out->charge);
        layer_unref(out->layer);
    }
    if (is_mesh)
        build_end(builds, &build);
    return err->code;
}

static enum err_code put_layer(struct call *call, struct upload_stream *stream, struct err *err)
{
    struct world_change change = {.layer_id = ""};
    struct upload upload;
    struct uploaded uploaded;
    bool is_answered;

    call_import_pace(call); /* its time begins */
    if (decode_put(call, &put_write, &change, &upload, err) ||
        write_repeat(call, &put_write, &change, &is_answered, err) || is_answered)
        return err->code;
    if (stream ? upload_stream_layer(stream, change.layer_id, call->body,
                                     call->locale->manifest.triangulation, &uploaded, err)
               : layer_of_file(call, &change, &upload, &uploaded, err))
        return err->code;
    change.layer = uploaded.layer;
    upload_set_place(&uploaded, &change);
    return write_submit(call, &put_write, &change, uploaded.has_import ? &uploaded.import : NULL,
                        uploaded.charge, err);
}

enum err_code layer_put_answer(struct call *call, struct err *err)
{
    struct upload_stream *stream = upload_stream_take(call);
    enum err_code code = put_layer(call, stream, err);

    if (!call->is_deferred) /* else the writer has it all */
        upload_stream_free(stream);
    return code;
}
API_HANDLER(layer_put, 2, CALL_NEEDS_NOTHING)

enum err_code layer_delete_answer(struct call *call, struct err *err)
{
    struct world_change change = {.layer_id = ""};

    if (call_param_id(call, 1, "layer", ERR_LAYER_UNKNOWN, change.layer_id, err) ||
        write_open(call, &delete_write, &change, err) || options_open_query(call, NULL, err))
        return err->code;
    return write_submit(call, &delete_write, &change, NULL, 0, err);
}
API_HANDLER(layer_delete, 2, CALL_NEEDS_NOTHING)

static void stats_of_field(struct json_writer *w, const struct layer *layer)
{
    struct heightfield_stats stats;

    heightfield_stats(layer->field, &stats);
    json_put_integer(w, "tiles", stats.tiles);
    json_put_integer(w, "samples", stats.samples);
    json_put_integer(w, "bytes", stats.bytes);
    json_put_integer(w, "levels", stats.levels);
}

static void stats_of_mesh(struct json_writer *w, const struct layer *layer)
{
    const struct mesh_stats *stats = &layer->mesh_stats;

    json_put_integer(w, "nodes", stats->nodes);
    json_put_integer(w, "leaves", stats->leaves);
    json_put_integer(w, "depth", stats->depth);
    json_put_integer(w, "polygons", stats->polygons);
    json_put_integer(w, "bytes", stats->bytes);
    json_put_number(w, "average_tests", stats->average_tests);
    json_put_array(w, "depths");
    for (uint32_t i = 0; i <= stats->depth; i++)
        json_integer(w, stats->depths[i]);
    json_end_array(w);
    json_put_object(w, "bytes_by_structure");
    for (int i = 0; i < MESH_STRUCTURES; i++)
        json_put_integer(w, mesh_structure_name[i], stats->bytes_of[i]);
    json_end_object(w);
}

/* The quadtree's leaves over a part of the plan. */
static enum err_code quadtree_of_mesh(struct call *call, const struct layer *layer,
                                      const double area[4], struct err *err)
{
    struct json_writer *w = &call->out;
    size_t most = call_limits(call)->trace_max, count;
    struct mesh_leaf *leaves = malloc(most * sizeof *leaves);
    struct mesh_axes axes = layer_mesh_axes(layer);

    if (!leaves)
        return err_set(err, ERR_NO_MEMORY, "no memory for the leaves of layer %s", layer->id);
    count = layer_mesh_leaves(layer, area, leaves, most);
    json_put_object(w, "quadtree");
    json_key(w, "frame");
    encode_axes(w, &axes);
    json_put_array(w, "leaves");
    for (size_t i = 0; i < count && i < most; i++) {
        json_begin_object(w);
        json_put_integer(w, "depth", leaves[i].depth);
        json_put_integer(w, "polygons", leaves[i].polygons);
        json_put_numbers(
            w, "bounds",
            (double[]){leaves[i].x_min, leaves[i].y_min, leaves[i].x_max, leaves[i].y_max}, 4);
        json_end_object(w);
    }
    json_end_array(w);
    json_put_boolean(w, "truncated", count > most);
    json_end_object(w);
    free(leaves);
    return ERR_OK;
}

enum err_code layer_stats_get_answer(struct call *call, struct err *err)
{
    struct json_writer *w = &call->out;
    char id[WORLD_ID_MAX + 1];
    static const char *const names[] = {"quadtree", "bounds", NULL};
    double area[4] = {-INFINITY, -INFINITY, INFINITY, INFINITY};
    bool wants_leaves = false, has_area;
    const struct layer *layer;

    if (call_param_id(call, 1, "layer", ERR_LAYER_UNKNOWN, id, err) ||
        options_open_query(call, names, err) ||
        option_boolean(call, "quadtree", &wants_leaves, err) ||
        option_bounds(call, area, &has_area, err))
        return err->code;
    layer = locale_layer(call->locale, id);
    if (!layer)
        return locale_no_layer(call->locale, id, ERR_LAYER_UNKNOWN, err);
    call_begin_answer(call);
    json_put_string(w, "layer", layer->id);
    if (layer->kind == LAYER_MESH)
        stats_of_mesh(w, layer);
    else
        stats_of_field(w, layer);
    if (wants_leaves && layer->kind == LAYER_MESH && quadtree_of_mesh(call, layer, area, err))
        return err->code;
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(layer_stats_get, 2, CALL_NEEDS_VALUE)
