/*
 * GET …/tiles/{level}/{column}/{row}?format=png16|terrarium|f32&kind=sampled|min|max&layer=
 *   ->  257×257 samples (block.h), rows from the smallest y; a strong ETag of the content
 *
 * Beyond the field and in holes there is nothing: NaN (f32), code 0 (png16), alpha 0 (terrarium).
 * The tag is a 128-bit hash of the samples, not of the encoded bytes, so that a 304 costs no
 * encoding; the format is part of the tag. A replaced layer keeps the tags of the tiles that are
 * the same, and so does a daemon that was started again. So is the content coding
 * (answer/coding.h), in which the bytes are kept, too.
 *
 * Encoded tiles are cached (tile_cache.h) under the serials of their sources. A hit is answered on
 * the loop, tag or bytes; a miss is read and encoded on a worker.
 */
#include "api/calls.h"

#include "api/answer/coding.h"
#include "api/answer/file.h"
#include "api/options.h"
#include "api/tile_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOP_TILES_MAX = 65536 }; /* of a block that is named on a loop: some 0.3 ms */

struct tile_request {
    const struct heightfield *field;
    struct block_place place;
    enum tile_format format;
    struct coding coding;
    struct span match; /* If-None-Match */
};

static const char *const format_words[] = {"png16", "terrarium", "f32", NULL};

/* ---- decode ---------------------------------------------------------------------------------- */

static bool decode_index(struct span text, uint32_t *out)
{
    uint64_t value;

    if (!span_index(text, &value) || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

static enum err_code check_place(const struct tile_request *tile, struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(tile->field);
    const struct block_place *place = &tile->place;
    uint32_t last = block_level_last(spec), columns, rows;

    if (place->level > last)
        return err_limit_at(err, ERR_TILE_UNKNOWN, "level", last, place->level,
                            "there is no level %u: at level %u one cell is the whole field",
                            place->level, last);
    block_count(spec, place->level, &columns, &rows);
    if (place->column < columns && place->row < rows)
        return ERR_OK;
    return err_set_at(err, ERR_TILE_UNKNOWN, place->column >= columns ? "column" : "row",
                      "level %u has %u × %u tiles, there is no column %u, row %u", place->level,
                      columns, rows, place->column, place->row);
}

static enum err_code decode(struct call *call, struct tile_request *out, struct err *err)
{
    static const char *const names[] = {"format", "kind", "layer", NULL};
    static const char *const kinds[] = {"sampled", "min", "max", NULL};
    uint32_t *places[] = {&out->place.level, &out->place.column, &out->place.row};
    int format = TILE_PNG16, kind = BLOCK_SAMPLED;
    const struct layer *layer;

    if (options_open_query(call, names, err) ||
        option_word(call, "format", format_words, &format, err) ||
        option_word(call, "kind", kinds, &kind, err) || option_choose_field(call, &layer, err))
        return err->code;
    for (size_t i = 0; i < 3; i++) {
        if (decode_index(call->params[1 + i], places[i]))
            continue;
        return err_set_at(
            err, ERR_TILE_UNKNOWN, (const char *const[]){"level", "column", "row"}[i],
            "a tile is /tiles/{level}/{column}/{row}, three whole numbers from 0 without an "
            "ending; its form is ?format=png16");
    }
    out->field = layer->field;
    out->format = (enum tile_format)format;
    out->place.kind = (enum block_kind)kind;
    out->match = call_request_header(call, "if-none-match");
    if (check_place(out, err))
        return err->code;
    return coding_choose(call, BLOCK_SAMPLES * sizeof(float), format != TILE_F32,
                         format == TILE_F32, &out->coding, err);
}

/* The format and the content coding are part of the tag. */
static void tag_of(const float *block, const struct tile_request *tile,
                   char out[static TILE_TAG_BYTES])
{
    char suffix[CODING_SUFFIX_MAX], form[CODING_SUFFIX_MAX + 16];

    coding_suffix(&tile->coding, suffix);
    snprintf(form, sizeof form, "%s%s", format_words[tile->format], suffix);
    tile_tag_of(block, BLOCK_SAMPLES, sizeof *block, form, out);
}

/* ---- ask, encode ----------------------------------------------------------------------------- */

static struct tile_key key_of(const struct tile_request *tile)
{
    struct tile_key key = {.level = tile->place.level,
                           .column = tile->place.column,
                           .row = tile->place.row,
                           .kind = (uint16_t)tile->place.kind,
                           .format = (uint16_t)((unsigned)tile->format |
                                                (unsigned)tile->coding.content << 4 |
                                                (unsigned)tile->coding.layout << 8)};

    block_source(tile->field, &tile->place, key.source);
    return key;
}

/* Reads the block; encodes it too unless its tag is among those that the client holds. */
static struct tile_entry *make(const struct tile_request *tile, const struct tile_key *key,
                               struct err *err)
{
    float *block = malloc(BLOCK_SAMPLES * sizeof *block);
    struct tile_image image = {.bytes = {NULL, 0}};
    struct tile_entry *entry = NULL;
    char tag[TILE_TAG_BYTES];

    if (!block) {
        err_set(err, ERR_NO_MEMORY, "no memory for a tile");
        return NULL;
    }
    block_read(tile->field, &tile->place, block);
    tag_of(block, tile, tag);
    if (tile_tag_matches(tile->match.at, tile->match.length, tag))
        entry = tile_entry_create(key, tag, NULL, err);
    else if (tile_image_encode(tile->format, BLOCK_SIDE, BLOCK_SIDE, block, &image, err) ==
                 ERR_OK &&
             coding_pack_in_place(&tile->coding, BLOCK_SIDE, BLOCK_SIDE, &image.bytes, err) ==
                 ERR_OK)
        entry = tile_entry_create(key, tag, &image, err);
    free(image.bytes.at);
    free(block);
    return entry;
}

static enum err_code send(struct call *call, const struct tile_request *tile,
                          const struct tile_entry *entry, struct err *err)
{
    if (answer_is_known(call, entry->tag, "no-cache"))
        return ERR_OK;
    coding_headers(call, &tile->coding);
    if (entry->codes.scale_m > 0) {
        call_header(call, "Kota-Offset", "%.17g", entry->codes.offset_m);
        call_header(call, "Kota-Scale", "%.17g", entry->codes.scale_m);
    }
    call_content_type(call, entry->media_type);
    return answer_append(call, entry->bytes, entry->length, err);
}

enum err_code tile_get_answer(struct call *call, struct err *err)
{
    struct tile_request tile = {.match = {NULL, 0}};
    struct tile_cache *cache = call->api->tiles;
    struct tile_entry *entry;
    struct tile_key key;

    if (decode(call, &tile, err) ||
        (block_tile_count(tile.field, &tile.place) > LOOP_TILES_MAX && call_offload(call, err)))
        return err->code;
    key = key_of(&tile);
    entry = tile_cache_find(cache, &key, tile.match.at, tile.match.length);
    if (!entry) {
        if (call_offload(call, err))
            return err->code;
        entry = make(&tile, &key, err);
        if (!entry)
            return err->code;
        tile_cache_put(cache, entry);
    }
    send(call, &tile, entry, err);
    tile_entry_unref(entry);
    return err->code;
}
API_HANDLER(tile_get, 4, CALL_NEEDS_VALUE)
