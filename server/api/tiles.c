/*
 * GET …/tiles/{level}/{column}/{row}?format=png16|terrarium|f32&kind=sampled|min|max&layer=
 *   ->  257×257 samples, rows from the smallest y; a strong ETag of the content
 *
 * Level L keeps every 2^L-th sample (nested grids), or the least or greatest of the 2^L × 2^L
 * samples that begin there. The last level is the one where a single cell spans the field. Tiles
 * share their last row and column with the next ones. Beyond the field and in holes there is
 * nothing: NaN (f32), code 0 (png16), alpha 0 (terrarium). The tag is a 128-bit hash of the
 * samples, not of the encoded bytes, so that a 304 costs no encoding; the format is part of the
 * tag. A replaced layer keeps the tags of the tiles that are the same.
 */
#include "api/calls.h"

#include "api/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_CELLS = 256, BLOCK_SIDE = 257, BLOCK_SAMPLES = BLOCK_SIDE * BLOCK_SIDE };
enum { PNG_COMPRESSION = 4 };

enum tile_format { FORMAT_PNG16, FORMAT_TERRARIUM, FORMAT_F32 };
enum tile_kind { KIND_SAMPLED, KIND_MIN, KIND_MAX };

struct tile_request {
    const struct heightfield *field;
    uint32_t level, column, row;
    enum tile_format format;
    enum tile_kind kind;
};

static const char *const format_words[] = {"png16", "terrarium", "f32", NULL};

/* ---- decode -----------------------------------------------------------------------------------
 */

static bool decode_index(struct span text, uint32_t *out)
{
    uint32_t value = 0;

    if (!text.at || text.length == 0 || text.length > 7)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(text.at[i] - '0');
    }
    *out = value;
    return true;
}

/* How many cells of a level lie along one axis. */
static uint32_t cells_along(uint32_t samples, uint32_t level)
{
    return (uint32_t)(((uint64_t)(samples - 1) + ((uint64_t)1 << level) - 1) >> level);
}

/* How many tiles of a level lie along one axis. */
static uint32_t tiles_along(uint32_t samples, uint32_t level)
{
    return (cells_along(samples, level) + BLOCK_CELLS - 1) / BLOCK_CELLS;
}

static enum err_code check_place(const struct tile_request *tile, struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(tile->field);
    uint32_t last = 0, columns, rows;

    while (cells_along(spec->cols, last) > 1 || cells_along(spec->rows, last) > 1)
        last++;
    if (tile->level > last)
        return err_limit(err, ERR_NOT_FOUND, last, tile->level,
                         "there is no level %u: at level %u one cell is the whole field",
                         tile->level, last);
    columns = tiles_along(spec->cols, tile->level);
    rows = tiles_along(spec->rows, tile->level);
    if (tile->column >= columns || tile->row >= rows)
        return err_set(err, ERR_NOT_FOUND, "level %u has %u × %u tiles, there is no %u/%u",
                       tile->level, columns, rows, tile->column, tile->row);
    return ERR_OK;
}

static enum err_code decode(struct call *call, struct tile_request *out, struct err *err)
{
    static const char *const names[] = {"format", "kind", "layer", NULL};
    static const char *const kinds[] = {"sampled", "min", "max", NULL};
    int format = FORMAT_PNG16, kind = KIND_SAMPLED;
    const struct layer *layer;

    if (options_open_query(call, names, err) ||
        option_word(call, "format", format_words, &format, err) ||
        option_word(call, "kind", kinds, &kind, err) || option_choose_field(call, &layer, err))
        return err->code;
    if (!decode_index(call->params[1], &out->level) ||
        !decode_index(call->params[2], &out->column) || !decode_index(call->params[3], &out->row))
        return err_set(err, ERR_NOT_FOUND,
                       "a tile is /tiles/LEVEL/COLUMN/ROW, three whole numbers from 0");
    out->field = layer->field;
    out->format = (enum tile_format)format;
    out->kind = (enum tile_kind)kind;
    return check_place(out, err);
}

/* ---- ask --------------------------------------------------------------------------------------
 */

/* The least or greatest sample of a square that begins at (c, r); NaN when it has none. */
static float extreme(const struct heightfield *field, enum tile_kind kind, uint32_t c, uint32_t r,
                     uint32_t step)
{
    float min, max;

    if (!heightfield_range(field, c, r, c + step - 1, r + step - 1, &min, &max))
        return NAN;
    return kind == KIND_MIN ? min : max;
}

static void read_block(const struct tile_request *tile, float *block)
{
    const struct heightfield_spec *spec = heightfield_spec(tile->field);
    uint32_t step = (uint32_t)1 << tile->level;

    for (uint64_t j = 0; j < BLOCK_SIDE; j++) {
        for (uint64_t i = 0; i < BLOCK_SIDE; i++) {
            uint64_t c = ((uint64_t)tile->column * BLOCK_CELLS + i) << tile->level;
            uint64_t r = ((uint64_t)tile->row * BLOCK_CELLS + j) << tile->level;
            float h = NAN;

            if (c < spec->cols && r < spec->rows)
                h = tile->kind == KIND_SAMPLED
                        ? heightfield_sample(tile->field, (uint32_t)c, (uint32_t)r)
                        : extreme(tile->field, tile->kind, (uint32_t)c, (uint32_t)r, step);
            block[j * BLOCK_SIDE + i] = h == h ? h : __builtin_nanf("");
        }
    }
}

/* ---- the tag ----------------------------------------------------------------------------------
 */

static uint64_t mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

static void tag_of(const float *block, enum tile_format format, char out[static 64])
{
    uint64_t a = 0x6b6f7461, b = 0x74696c65;

    for (size_t i = 0; i < BLOCK_SAMPLES; i++) {
        uint32_t bits;

        memcpy(&bits, &block[i], sizeof bits);
        a = mix(a + bits + 0x9e3779b97f4a7c15u);
        b = (b ^ bits) * 0x100000001b3u + (b >> 29);
    }
    snprintf(out, 64, "\"%016llx%016llx-%s\"", (unsigned long long)a, (unsigned long long)mix(b),
             format_words[format]);
}

/* If-None-Match: `*`, or a list of tags; W/ before a tag is ignored, as the header wants it. */
static bool tag_matches(struct span header, const char *tag)
{
    const char *at = header.at, *end = header.at ? header.at + header.length : NULL;
    size_t length = strlen(tag);

    while (at && at < end) {
        const char *quote = memchr(at, '"', (size_t)(end - at));

        if (*at == '*')
            return true;
        if (*at == ' ' || *at == '\t' || *at == ',') {
            at++;
            continue;
        }
        if (!quote)
            return false;
        if ((size_t)(end - quote) >= length && memcmp(quote, tag, length) == 0)
            return true;
        quote = memchr(quote + 1, '"', (size_t)(end - quote - 1));
        at = quote ? quote + 1 : NULL;
    }
    return false;
}

/* ---- encode -----------------------------------------------------------------------------------
 */

static enum err_code send(struct call *call, const char *media_type, const void *bytes,
                          size_t length, struct err *err)
{
    char *room = call->out.sink.reserve(call->out.sink.to, length);

    if (!room)
        return err_set(err, ERR_NO_MEMORY, "no memory for a tile");
    memcpy(room, bytes, length);
    call->out.sink.advance(call->out.sink.to, length);
    call_content_type(call, media_type);
    return ERR_OK;
}

static enum err_code send_png(struct call *call, int channels, const void *pixels, struct err *err)
{
    struct raster_bytes png = {NULL, 0};

    if (png_encode(BLOCK_SIDE, BLOCK_SIDE, channels, pixels, PNG_COMPRESSION, &png, err) == ERR_OK)
        send(call, "image/png", png.at, png.length, err);
    free(png.at);
    return err->code;
}

/* Codes 1..65535 from the least to the greatest height of the block. */
static enum err_code send_png16(struct call *call, const float *block, struct err *err)
{
    double low = INFINITY, high = -INFINITY, scale, offset;
    uint16_t *codes = malloc(BLOCK_SAMPLES * sizeof *codes);

    if (!codes)
        return err_set(err, ERR_NO_MEMORY, "no memory for a tile");
    for (size_t i = 0; i < BLOCK_SAMPLES; i++) {
        if (isnan(block[i]))
            continue;
        low = fmin(low, (double)block[i]);
        high = fmax(high, (double)block[i]);
    }
    if (!(low <= high))
        low = high = 0;
    scale = high > low ? (high - low) / 65534 : 1;
    offset = low - scale;
    for (size_t i = 0; i < BLOCK_SAMPLES; i++) {
        double code = isnan(block[i]) ? 0 : round(((double)block[i] - offset) / scale);

        codes[i] = (uint16_t)fmin(fmax(code, isnan(block[i]) ? 0 : 1), 65535);
    }
    call_header(call, "Kota-Offset", "%.17g", offset);
    call_header(call, "Kota-Scale", "%.17g", scale);
    send_png(call, 1, codes, err);
    free(codes);
    return err->code;
}

/* height = (red · 256 + green + blue / 256) - 32768 (Mapzen's terrarium tiles). */
static enum err_code send_terrarium(struct call *call, const float *block, struct err *err)
{
    uint8_t *pixels = calloc(BLOCK_SAMPLES, 4);

    if (!pixels)
        return err_set(err, ERR_NO_MEMORY, "no memory for a tile");
    for (size_t i = 0; i < BLOCK_SAMPLES; i++) {
        double value = round(((double)block[i] + 32768) * 256);
        uint32_t code;

        if (isnan(block[i]))
            continue;
        code = (uint32_t)fmin(fmax(value, 0), 0xffffff);
        pixels[4 * i] = (uint8_t)(code >> 16);
        pixels[4 * i + 1] = (uint8_t)(code >> 8);
        pixels[4 * i + 2] = (uint8_t)code;
        pixels[4 * i + 3] = 255;
    }
    send_png(call, 4, pixels, err);
    free(pixels);
    return err->code;
}

static enum err_code encode(struct call *call, enum tile_format format, const float *block,
                            struct err *err)
{
    switch (format) {
    case FORMAT_PNG16:
        return send_png16(call, block, err);
    case FORMAT_TERRARIUM:
        return send_terrarium(call, block, err);
    case FORMAT_F32:
        break;
    }
    return send(call, "application/vnd.kota.f32", block, BLOCK_SAMPLES * sizeof *block, err);
}

enum err_code tile_get_answer(struct call *call, struct err *err)
{
    struct tile_request tile = {.level = 0};
    struct span match = {NULL, 0};
    float *block;
    char tag[64];

    if (decode(call, &tile, err))
        return err->code;
    block = malloc(BLOCK_SAMPLES * sizeof *block);
    if (!block)
        return err_set(err, ERR_NO_MEMORY, "no memory for a tile");
    read_block(&tile, block);
    tag_of(block, tile.format, tag);
    call_header(call, "ETag", "%s", tag);
    call_header(call, "Cache-Control", "no-cache");
    if (call->request)
        match = http_request_header(call->request, "if-none-match");
    if (tag_matches(match, tag))
        call_status(call, 304);
    else
        encode(call, tile.format, block, err);
    free(block);
    return err->code;
}
API_HANDLER(tile_get, 4, CALL_NEEDS_LOCALE)
