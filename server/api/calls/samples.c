/*
 * GET …/layers/{layer}/samples?rect=c0,r0,cols,rows&step=&rows=south|north&format=f32|f64|r16|json
 *   ->  the samples c0 + i·step, r0 + j·step of a rectangle, row by row from the side of `rows`
 *
 *   f32, f64  little-endian, NaN where there is none
 *   r16       little-endian codes of 16 bits, height = Kota-Offset + Kota-Scale · code; 0 is a hole
 *   json      {"samples":[…]}, null where there is none
 *
 * The tag is a hash of the samples (window.h), so a window that an edit has not touched keeps its
 * tag, also when the daemon starts again and on every node. Bodies that were compressed are kept in
 * the cache of tiles under that hash. What is small and sent as it is is read on the loop.
 */
#include "api/calls.h"

#include "api/answer/coding.h"
#include "api/answer/file.h"
#include "api/options.h"
#include "json/json_buffer.h"
#include "json/json_raw.h"
#include "terrain/field/window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum samples_format { SAMPLES_F32, SAMPLES_F64, SAMPLES_R16, SAMPLES_JSON };

/* Of a window that is read on a loop: 0.1 ms; as JSON ten times that. */
enum { LOOP_SAMPLES_MAX = 16384, LOOP_JSON_SAMPLES_MAX = 4096 };

static const struct samples_form {
    const char *word, *media_type;
    size_t bytes; /* a sample; of JSON the most */
} forms[] = {
    [SAMPLES_F32] = {"f32", "application/vnd.kota.f32", sizeof(float)},
    [SAMPLES_F64] = {"f64", "application/vnd.kota.f64", sizeof(double)},
    [SAMPLES_R16] = {"r16", "application/vnd.kota.r16", sizeof(uint16_t)},
    [SAMPLES_JSON] = {"json", "application/json", 27},
};

struct samples_request {
    const struct heightfield *field;
    struct window window;
    enum samples_format format;
    bool is_from_north;
    struct coding coding;
    struct height_codes codes; /* SAMPLES_R16 */
    uint64_t hash[2];
    char tag[TILE_TAG_BYTES];
};

/* ---- decode ---------------------------------------------------------------------------------- */

static enum err_code decode_rect(struct call *call, const struct heightfield_spec *spec,
                                 struct sample_rect *out, struct err *err)
{
    static const char *const words[] = {"c0", "r0", "cols", "rows"};
    const uint32_t all[2] = {spec->cols, spec->rows};
    double given[4] = {0, 0, spec->cols, spec->rows};
    uint32_t *const to[4] = {&out->column, &out->row, &out->cols, &out->rows};

    if (option_numbers(call, "rect", 4, given, NULL, err))
        return err->code;
    for (int i = 0; i < 4; i++) {
        double least = i < 2 ? 0 : 1, most = i < 2 ? all[i] - 1 : all[i - 2] - given[i - 2];

        if (!(given[i] == floor(given[i])))
            return err_set_at(err, ERR_BAD_INPUT, "rect",
                              "%s of rect is %.17g, a whole number was expected", words[i],
                              given[i]);
        if (!(given[i] >= least && given[i] <= most))
            return err_limit_at(err, ERR_BAD_INPUT, "rect", given[i] < least ? least : most,
                                given[i],
                                "%s of rect is %.17g, %.17g to %.17g are in the field of %u × %u",
                                words[i], given[i], least, most, all[0], all[1]);
        *to[i] = (uint32_t)given[i];
    }
    return ERR_OK;
}

static enum err_code decode_step(struct call *call, uint32_t *out, struct err *err)
{
    uint64_t step = 1;

    if (option_integer(call, "step", 1, HEIGHTFIELD_SIDE_MAX, &step, err))
        return err->code;
    *out = (uint32_t)step;
    if ((step & (step - 1)) == 0)
        return ERR_OK;
    return err_set_at(err, ERR_BAD_INPUT, "step", "step is %llu, a power of two was expected",
                      (unsigned long long)step);
}

static enum err_code decode(struct call *call, struct samples_request *out, struct err *err)
{
    static const char *const names[] = {"rect", "step", "rows", "format", NULL};
    static const char *const sides[] = {"south", "north", NULL};
    static const char *const formats[] = {"f32", "f64", "r16", "json", NULL};
    int format = SAMPLES_F32, side = 0;
    char id[WORLD_ID_MAX + 1];
    const struct layer *layer;

    if (call_param_id(call, 1, "layer", ERR_LAYER_UNKNOWN, id, err) ||
        options_open_query(call, names, err))
        return err->code;
    layer = locale_layer(call->locale, id);
    if (!layer)
        return locale_no_layer(call->locale, id, ERR_LAYER_UNKNOWN, err);
    if (layer->kind != LAYER_HEIGHTFIELD)
        return err_set_at(err, ERR_LAYER_KIND, "layer", "layer %s is a mesh, it has no samples",
                          id);
    out->field = layer->field;
    if (decode_rect(call, heightfield_spec(layer->field), &out->window.rect, err) ||
        decode_step(call, &out->window.step, err) || option_word(call, "rows", sides, &side, err) ||
        option_word(call, "format", formats, &format, err))
        return err->code;
    out->is_from_north = side == 1;
    out->format = (enum samples_format)format;
    return ERR_OK;
}

/* ---- ask, encode ----------------------------------------------------------------------------- */

static uint64_t sample_count(const struct samples_request *r)
{
    return (uint64_t)window_cols(&r->window) * window_rows(&r->window);
}

/* Row j of the answer: samples[window_cols]. */
static void read_row(const struct samples_request *r, uint32_t j, float *samples)
{
    uint32_t rows = window_rows(&r->window);

    window_row(r->field, &r->window, r->is_from_north ? rows - 1 - j : j, samples);
}

/* Over the range of the window's own samples, which uses all codes. */
static struct height_codes window_codes(const struct samples_request *r, struct err *err)
{
    uint32_t cols = window_cols(&r->window), rows = window_rows(&r->window);
    float *row = malloc(cols * sizeof *row), low = INFINITY, high = -INFINITY;

    if (!row) {
        err_set(err, ERR_NO_MEMORY, "no memory for a row of samples");
        return (struct height_codes){0, 0};
    }
    for (uint32_t j = 0; j < rows; j++) {
        read_row(r, j, row);
        for (uint32_t i = 0; i < cols; i++) {
            low = row[i] < low ? row[i] : low;
            high = row[i] > high ? row[i] : high;
        }
    }
    free(row);
    return low <= high ? height_codes_over((double)low, (double)high) : height_codes_over(0, 0);
}

/* One row in the format, at most cols · forms[format].bytes; of JSON with a comma after each. */
static char *put_row(const struct samples_request *r, const float *row, uint32_t cols, char *at)
{
    for (uint32_t i = 0; i < cols; i++) {
        double wide = (double)row[i];
        uint16_t code;

        switch (r->format) {
        case SAMPLES_F32:
            memcpy(at, &row[i], sizeof row[i]);
            at += sizeof row[i];
            break;
        case SAMPLES_F64:
            memcpy(at, &wide, sizeof wide);
            at += sizeof wide;
            break;
        case SAMPLES_R16:
            code = height_code(&r->codes, row[i]);
            memcpy(at, &code, sizeof code);
            at += sizeof code;
            break;
        case SAMPLES_JSON:
            at = json_raw_number(at, wide);
            *at++ = ',';
            break;
        }
    }
    return at;
}

static bool is_given_up(struct call *call, uint32_t j, struct err *err)
{
    return j % 64 == 0 && answer_is_abandoned(call, err);
}

static enum err_code write_binary(struct call *call, const struct samples_request *r,
                                  struct json_sink sink, float *row, struct err *err)
{
    uint32_t cols = window_cols(&r->window), rows = window_rows(&r->window);
    size_t bytes = (size_t)sample_count(r) * forms[r->format].bytes;
    char *at = sink.reserve(sink.to, bytes);

    if (!at)
        return err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    for (uint32_t j = 0; j < rows; j++) {
        if (is_given_up(call, j, err))
            return err->code;
        read_row(r, j, row);
        at = put_row(r, row, cols, at);
    }
    sink.advance(sink.to, bytes);
    return ERR_OK;
}

static enum err_code write_json(struct call *call, const struct samples_request *r,
                                struct json_sink sink, float *row, struct err *err)
{
    uint32_t cols = window_cols(&r->window), rows = window_rows(&r->window);
    struct json_writer w;

    json_init(&w, sink);
    json_begin_object(&w);
    json_put_array(&w, "samples");
    for (uint32_t j = 0; j < rows; j++) {
        char *at = json_open_room(&w, (size_t)cols * forms[SAMPLES_JSON].bytes);

        if (!at || is_given_up(call, j, err))
            break;
        read_row(r, j, row);
        if (j > 0)
            *at++ = ',';
        json_close_room(&w, put_row(r, row, cols, at) - 1); /* without the last comma */
    }
    json_end_array(&w);
    json_end_object(&w);
    if (!json_finish(&w) && err->code == ERR_OK)
        err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    return err->code;
}

static enum err_code write_samples(struct call *call, const struct samples_request *r,
                                   struct json_sink sink, struct err *err)
{
    float *row = malloc(window_cols(&r->window) * sizeof *row);

    if (!row)
        return err_set(err, ERR_NO_MEMORY, "no memory for a row of samples");
    if (r->format == SAMPLES_JSON)
        write_json(call, r, sink, row, err);
    else
        write_binary(call, r, sink, row, err);
    free(row);
    return err->code;
}

/* The window in its coding, as an entry of the cache; NULL on an error. */
static struct tile_entry *make_entry(struct call *call, const struct samples_request *r,
                                     const struct tile_key *key, struct err *err)
{
    struct json_buffer plain = {.size_max = HTTP_REPLY_BODY_BYTES_MAX};
    struct tile_image image = {.media_type = forms[r->format].media_type, .codes = r->codes};
    struct tile_entry *entry = NULL;

    if (write_samples(call, r, json_sink_of_buffer(&plain), err) == ERR_OK &&
        coding_pack(&r->coding, plain.at, plain.length, window_cols(&r->window),
                    window_rows(&r->window), &image.bytes, err) == ERR_OK)
        entry = tile_entry_create(key, r->tag, &image, err);
    free(plain.at);
    free(image.bytes.at);
    return entry;
}

static enum err_code send_coded(struct call *call, const struct samples_request *r, struct err *err)
{
    const struct tile_key key = {.source = {r->hash[0], r->hash[1]},
                                 .level = r->is_from_north,
                                 .column = r->coding.content,
                                 .row = r->coding.layout,
                                 .kind = ANSWER_CACHE_WINDOW,
                                 .format = (uint16_t)r->format};
    struct tile_entry *entry = tile_cache_find(call->api->tiles, &key, NULL, 0);

    if (!entry) {
        entry = make_entry(call, r, &key, err);
        if (!entry)
            return err->code;
        answer_keep(call, entry);
    }
    if (answer_append(call, entry->bytes, entry->length, err) == ERR_OK)
        coding_headers(call, &r->coding);
    tile_entry_unref(entry);
    return err->code;
}

/* ---- the call -------------------------------------------------------------------------------- */

static void make_tag(struct samples_request *r)
{
    char suffix[CODING_SUFFIX_MAX];

    window_hash(r->field, &r->window, r->hash);
    coding_suffix(&r->coding, suffix);
    snprintf(r->tag, sizeof r->tag, "\"%016llx%016llx-%s%s%s\"", (unsigned long long)r->hash[0],
             (unsigned long long)r->hash[1], forms[r->format].word, r->is_from_north ? "n" : "",
             suffix);
}

static enum err_code answer(struct call *call, struct samples_request *r, struct err *err)
{
    const struct sample_rect *rect = &r->window.rect;

    make_tag(r);
    if (answer_is_known(call, r->tag, "no-cache"))
        return ERR_OK;
    call_content_type(call, forms[r->format].media_type);
    call_header(call, "Kota-Rect", "%u,%u,%u,%u", rect->column, rect->row, rect->cols, rect->rows);
    if (r->format == SAMPLES_R16) {
        r->codes = window_codes(r, err);
        if (err->code)
            return err->code;
        call_header(call, "Kota-Offset", "%.17g", r->codes.offset_m);
        call_header(call, "Kota-Scale", "%.17g", r->codes.scale_m);
    }
    return r->coding.content == CODING_IDENTITY ? write_samples(call, r, call->out.sink, err)
                                                : send_coded(call, r, err);
}

enum err_code samples_get_answer(struct call *call, struct err *err)
{
    struct samples_request r = {.format = SAMPLES_F32};
    uint64_t count, bytes;

    if (decode(call, &r, err))
        return err->code;
    count = sample_count(&r);
    bytes = count * forms[r.format].bytes;
    if (answer_check_length(call, bytes, "the window", err) ||
        coding_choose(call, bytes, false, r.format == SAMPLES_F32, &r.coding, err))
        return err->code;
    if ((r.coding.content != CODING_IDENTITY ||
         count > (r.format == SAMPLES_JSON ? LOOP_JSON_SAMPLES_MAX : LOOP_SAMPLES_MAX)) &&
        call_offload(call, err))
        return err->code;
    return answer(call, &r, err);
}
API_HANDLER(samples_get, 2, CALL_NEEDS_VALUE)
