/*
 * GET …/layers/{layer}?format=f32|png16|obj|qota|polygons  ->  the whole layer as a file
 *
 *   f32    heightfields: little-endian float32, row by row from the smallest y, NaN holes
 *   png16  heightfields: 16-bit grey, first row the smallest y, code 0 is a hole, height =
 *          Kota-Offset + Kota-Scale · code
 *   obj    any layer: the triangles of a heightfield as the locale splits its cells; the polygons
 *          of a mesh as they came, polygon i the i-th line after the vertices: an f line, or a #
 *          in the place of one that was removed
 *   qota   meshes: the image (mesh.h), as it is built of the polygons at once
 *   polygons  meshes: the polygons that it is built of, as an edit that adds them to none
 *
 * Heightfields have headers Kota-Cols, Kota-Rows, Kota-Spacing and Kota-Origin, for a PUT of the
 * same bytes. Without a format a heightfield is f32 and a mesh obj. Everything runs on a worker.
 * The length of the answer is known, or counted, before its memory is allocated; png16 is estimated
 * by its codes, which it nearly never exceeds.
 *
 * Text and pictures have no ETag: it would cost as much as the answer. The binary forms of a mesh
 * have one of its content. A tree that edits have changed in place is built again for it, so that
 * the image does not depend on the order of edits, on restarts and on rebuilds in the background.
 */
#include "api/calls.h"

#include "api/answer/coding.h"
#include "api/answer/file.h"
#include "api/options.h"
#include "api/write.h"
#include "formats/polygon/obj_encode.h"
#include "formats/raster/tile_image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum export_format { EXPORT_F32, EXPORT_PNG16, EXPORT_OBJ, EXPORT_QOTA, EXPORT_POLYGONS };
enum { MESH_POLYGON_BYTES = 64 }; /* at least, of a mesh's binary forms */
enum { EXPORT_PNG_COMPRESSION = 4, EXPORT_PNG_SIDE_MAX = 1000000 };

static const char *const mesh_types[] = {"application/vnd.kota.qota",
                                         "application/vnd.kota.polygons"};
static const char *const format_words[] = {"f32", "png16", "obj", "qota", "polygons", NULL};

static void write_grid_headers(struct call *call, const struct heightfield_spec *spec)
{
    call_header(call, "Kota-Cols", "%u", spec->cols);
    call_header(call, "Kota-Rows", "%u", spec->rows);
    call_header(call, "Kota-Spacing", "%.17g,%.17g", spec->spacing_x_m, spec->spacing_y_m);
    call_header(call, "Kota-Origin", "%.17g,%.17g", spec->origin_x_m, spec->origin_y_m);
}

/* ---- rasters --------------------------------------------------------------------------------- */

static enum err_code export_f32(struct call *call, const struct heightfield *field, struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    uint64_t row_bytes = (uint64_t)spec->cols * sizeof(float);
    char *room;

    if (answer_check_length(call, row_bytes * spec->rows, "the layer as f32", err))
        return err->code;
    room = answer_reserve(call, row_bytes * spec->rows, err);
    if (!room)
        return err->code;
    for (uint32_t row = 0; row < spec->rows; row++) {
        if (answer_is_abandoned(call, err))
            return err->code;
        for (uint32_t column = 0; column < spec->cols; column++) {
            float h = heightfield_sample(field, column, row);

            memcpy(room + row * row_bytes + column * sizeof h, &h, sizeof h);
        }
    }
    call->out.sink.advance(call->out.sink.to, row_bytes * spec->rows);
    call_content_type(call, "application/vnd.kota.f32");
    return ERR_OK;
}

static uint16_t *codes_of(const struct heightfield *field, struct height_codes *scale)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    uint16_t *codes = malloc((size_t)spec->cols * spec->rows * sizeof *codes), *at = codes;
    struct box3 box;

    *scale = heightfield_bounds(field, &box) ? height_codes_over(box.min.z, box.max.z)
                                             : height_codes_over(0, 0);
    if (!codes)
        return NULL;
    for (uint32_t row = 0; row < spec->rows; row++)
        for (uint32_t column = 0; column < spec->cols; column++)
            *at++ = height_code(scale, heightfield_sample(field, column, row));
    return codes;
}

static enum err_code export_png16(struct call *call, const struct heightfield *field,
                                  struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    struct raster_bytes png = {NULL, 0};
    struct height_codes scale;
    uint16_t *codes;

    if (spec->cols > EXPORT_PNG_SIDE_MAX || spec->rows > EXPORT_PNG_SIDE_MAX)
        return err_set(err, ERR_UNPROCESSABLE,
                       "a picture has at most %d samples a side, the layer has %u × %u; f32 has "
                       "no such limit",
                       EXPORT_PNG_SIDE_MAX, spec->cols, spec->rows);
    if (answer_check_length(call, (uint64_t)spec->cols * spec->rows * sizeof *codes,
                            "the layer as png16", err))
        return err->code;
    codes = codes_of(field, &scale);
    if (!codes)
        return err_set(err, ERR_NO_MEMORY, "no memory for a picture of %u × %u", spec->cols,
                       spec->rows);
    if (!answer_is_abandoned(call, err))
        png_encode(spec->cols, spec->rows, 1, codes, EXPORT_PNG_COMPRESSION, &png, err);
    free(codes);
    if (err->code == ERR_OK && answer_append(call, png.at, png.length, err) == ERR_OK) {
        call_header(call, "Kota-Offset", "%.17g", scale.offset_m);
        call_header(call, "Kota-Scale", "%.17g", scale.scale_m);
        call_content_type(call, "image/png");
    }
    free(png.at);
    return err->code;
}

/* ---- OBJ ------------------------------------------------------------------------------------- */

struct obj_text {
    const struct polygon_set *set; /* of a mesh layer */
    struct call *call;
    struct err *err;
    uint64_t bytes;
    bool is_counted_only;
};

static bool take(void *to, const char *bytes, size_t length)
{
    struct obj_text *text = to;

    if (answer_is_abandoned(text->call, text->err))
        return false;
    text->bytes += length;
    return text->is_counted_only || answer_append(text->call, bytes, length, text->err) == ERR_OK;
}

static enum err_code encode(const struct layer *layer, struct obj_text *text)
{
    const struct obj_sink sink = {text, take};
    bool is_whole = layer->kind == LAYER_MESH ? obj_encode_polygons(text->set, &sink)
                                              : obj_encode_field(layer->field, &sink);

    if (!is_whole && !text->err->code)
        err_set(text->err, ERR_NO_MEMORY, "no memory for the answer");
    return text->err->code;
}

/* Counted first only where it might be too long. */
static enum err_code export_set(struct call *call, const struct layer *layer,
                                const struct polygon_set *set, struct err *err)
{
    uint64_t most =
        layer->kind == LAYER_MESH ? obj_polygons_bytes_max(set) : obj_field_bytes_max(layer->field);
    struct obj_text text = {set, call, err, 0, true};
    struct err ignored = {.code = ERR_OK};

    if (answer_check_length(call, most, "the layer as obj", &ignored) != ERR_OK &&
        (encode(layer, &text) || answer_check_length(call, text.bytes, "the layer as obj", err)))
        return err->code;
    if (text.bytes > 0) { /* known exactly: one piece of memory */
        if (!answer_reserve(call, text.bytes, err))
            return err->code;
    }
    text.is_counted_only = false;
    if (encode(layer, &text) == ERR_OK)
        call_content_type(call, "model/obj");
    return err->code;
}

static enum err_code export_obj(struct call *call, const struct layer *layer, struct err *err)
{
    struct polygon_set made;
    const struct polygon_set *set;

    if (layer->kind == LAYER_HEIGHTFIELD)
        return export_set(call, layer, NULL, err);
    set = polygon_set_flat(layer_polygon_set(layer), &made, err);
    if (set)
        export_set(call, layer, set, err);
    polygon_set_free(&made);
    return err->code;
}

/* ---- meshes ---------------------------------------------------------------------------------- */

/* The bytes of a binary form: borrowed from the layer, or *made, malloc. NULL on an error. */
static const void *mesh_bytes(const struct layer *layer, enum export_format format, void **made,
                              size_t *length, struct err *err)
{
    const struct polygon_edit all = {.add = *layer_polygon_set(layer)};

    *made = NULL;
    if (format == EXPORT_QOTA)
        return mesh_image(layer->mesh, length);
    *made = polygon_edit_encode(&all, length);
    if (!*made)
        err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    return *made;
}

/* The mesh in its coding, as an entry of the cache of tiles; NULL on an error. */
static struct tile_entry *make_mesh(struct call *call, const struct layer *layer,
                                    enum export_format format, const struct coding *coding,
                                    const struct tile_key *key, struct err *err)
{
    bool is_plain = !layer->edited && !layer->is_adopted;
    struct layer *built =
        is_plain ? layer_ref((struct layer *)layer) : layer_rebuilt(layer, NULL, err);
    struct tile_image image = {.media_type = mesh_types[format - EXPORT_QOTA]};
    struct raster_bytes packed = {NULL, 0};
    struct tile_entry *entry = NULL;
    char tag[TILE_TAG_BYTES], suffix[CODING_SUFFIX_MAX];
    const void *bytes;
    uint64_t name[2];
    void *made;
    size_t length;

    if (!built)
        return NULL;
    memcpy(name, mesh_content(built->mesh), sizeof name);
    coding_suffix(coding, suffix);
    snprintf(tag, sizeof tag, "\"%016llx%016llx-%s%s\"", (unsigned long long)name[0],
             (unsigned long long)name[1], format_words[format], suffix);
    bytes = mesh_bytes(built, format, &made, &length, err);
    image.bytes = (struct raster_bytes){(uint8_t *)(uintptr_t)bytes, length};
    if (bytes && answer_check_length(call, length, "the mesh", err) == ERR_OK &&
        (coding->content == CODING_IDENTITY ||
         coding_pack(coding, bytes, length, 0, 0, &packed, err) == ERR_OK)) {
        if (packed.at)
            image.bytes = packed;
        entry = tile_entry_create(key, tag, &image, err);
    }
    free(packed.at);
    free(made);
    layer_unref(built);
    return entry;
}

static enum err_code export_mesh(struct call *call, const struct layer *layer,
                                 enum export_format format, struct err *err)
{
    struct tile_key key = {.kind = ANSWER_CACHE_MESH, .format = (uint16_t)format};
    struct tile_entry *entry;
    struct coding coding;

    if (coding_choose(call, layer->mesh_stats.polygons * MESH_POLYGON_BYTES, false, false, &coding,
                      err))
        return err->code;
    memcpy(key.source, mesh_content(layer->mesh), sizeof key.source);
    key.level = coding.content;
    entry = tile_cache_find(call->api->tiles, &key, NULL, 0);
    if (!entry) {
        entry = make_mesh(call, layer, format, &coding, &key, err);
        if (!entry)
            return err->code;
        answer_keep(call, entry);
    }
    if (!answer_is_known(call, entry->tag, "no-cache") &&
        answer_append(call, entry->bytes, entry->length, err) == ERR_OK) {
        coding_headers(call, &coding);
        call_content_type(call, entry->media_type);
    }
    tile_entry_unref(entry);
    return err->code;
}

/* ---- the call -------------------------------------------------------------------------------- */

enum err_code layer_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"format", NULL};
    char id[WORLD_ID_MAX + 1];
    const struct layer *layer;
    int format;

    if (call_param_id(call, 1, "layer", ERR_LAYER_UNKNOWN, id, err) ||
        options_open_query(call, names, err))
        return err->code;
    layer = locale_layer(call->locale, id);
    if (!layer)
        return locale_no_layer(call->locale, id, ERR_LAYER_UNKNOWN, err);
    format = layer->kind == LAYER_MESH ? EXPORT_OBJ : EXPORT_F32;
    if (option_word(call, "format", format_words, &format, err))
        return err->code;
    if (layer->kind == LAYER_HEIGHTFIELD && format >= EXPORT_QOTA)
        return err_set_at(err, ERR_LAYER_KIND, "format",
                          "layer %s is a heightfield, it has no polygons for format=%s", id,
                          format_words[format]);
    if (layer->kind == LAYER_MESH && format < EXPORT_OBJ)
        return err_set_at(err, ERR_LAYER_KIND, "format",
                          "layer %s is a mesh, it has no samples for format=%s", id,
                          format_words[format]);
    if (layer->kind == LAYER_HEIGHTFIELD)
        write_grid_headers(call, heightfield_spec(layer->field));
    if (format >= EXPORT_QOTA)
        return export_mesh(call, layer, (enum export_format)format, err);
    if (format == EXPORT_OBJ)
        return export_obj(call, layer, err);
    return format == EXPORT_F32 ? export_f32(call, layer->field, err)
                                : export_png16(call, layer->field, err);
}
API_HANDLER(layer_get, 2, CALL_NEEDS_VALUE)
