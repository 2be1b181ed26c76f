/*
 * Binary batches.
 *
 * The bytes of the body are read in place (they may be unaligned, so by memcpy) and the answer is
 * written into one reserved run: its length is known before the first item. An item takes the same
 * path as a single question, in float64; a float32 answer is that number rounded once.
 */
#include "api/batch.h"

#include "api/options.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "batches are little-endian");

static const char media_f32[] = "application/vnd.kota.f32";
static const char media_f64[] = "application/vnd.kota.f64";

bool batch_is_binary(const struct call *call)
{
    return span_equals(call->media_type, media_f32) || span_equals(call->media_type, media_f64);
}

static size_t out_bytes(const struct batch *batch, size_t numbers_out)
{
    return batch->count * (numbers_out == 0 ? 1 : numbers_out * batch->number_bytes);
}

enum err_code batch_open(struct call *call, size_t numbers_in, size_t numbers_out,
                         const char *const *names, struct batch *out, struct err *err)
{
    size_t limit = call_limits(call)->binary_items_max, item;

    *out = (struct batch){.in = (const unsigned char *)call->body.at};
    out->number_bytes = span_equals(call->media_type, media_f64) ? 8 : 4;
    item = numbers_in * out->number_bytes;
    out->count = call->body.length / item;
    if (options_open_query(call, names, err) ||
        option_numbers(call, "base", 3, out->base, NULL, err))
        return err->code;
    if (call->body.length % item != 0)
        return err_set(err, ERR_BAD_INPUT,
                       "an item has %zu bytes (%zu numbers of %zu), and %zu bytes are no whole "
                       "number of items",
                       item, numbers_in, out->number_bytes, call->body.length);
    if (out->count == 0)
        return err_limit(err, ERR_BAD_INPUT, 1, 0, "the batch is empty; it takes 1 to %zu items",
                         limit);
    if (out->count > limit)
        return err_limit(err, ERR_TOO_MANY_ITEMS, (double)limit, (double)out->count,
                         "the batch has %zu items, the most is %zu", out->count, limit);
    if (call_take_items(call, out->count, err))
        return err->code;
    out->out =
        (unsigned char *)call->out.sink.reserve(call->out.sink.to, out_bytes(out, numbers_out));
    if (!out->out)
        return err_set(err, ERR_NO_MEMORY, "no memory for the answer to %zu items", out->count);
    return ERR_OK;
}

enum err_code batch_read(const struct batch *batch, size_t i, size_t count,
                         bool last_may_be_infinite, double *out, struct err *err)
{
    const unsigned char *at = batch->in + i * count * batch->number_bytes;

    for (size_t k = 0; k < count; k++, at += batch->number_bytes) {
        if (batch->number_bytes == 8) {
            memcpy(&out[k], at, 8);
        } else {
            float narrow;

            memcpy(&narrow, at, 4);
            out[k] = (double)narrow;
        }
        if (isfinite(out[k]) || (last_may_be_infinite && k + 1 == count && out[k] > 0))
            continue;
        err_set(err, ERR_BAD_INPUT, "number %zu of item %zu is not finite", k, i);
        return err_at(err, "/%zu/%zu", i, k);
    }
    return ERR_OK;
}

enum err_code batch_read_many(const struct batch *batch, size_t first, size_t items, size_t count,
                              double *out, struct err *err)
{
    const unsigned char *at = batch->in + first * count * batch->number_bytes;
    double rest = 0; /* 0 · x: NaN as soon as one is not finite */

    if (batch->number_bytes == 8)
        memcpy(out, at, items * count * 8);
    for (size_t k = 0; k < items * count; k++) {
        if (batch->number_bytes == 4) {
            float narrow;

            memcpy(&narrow, at + 4 * k, 4);
            out[k] = (double)narrow;
        }
        rest += 0 * out[k];
    }
    if (rest == 0)
        return ERR_OK;
    for (size_t i = 0; i < items; i++)
        if (batch_read(batch, first + i, count, false, out, err))
            break;
    return err->code;
}

void batch_write_many(const struct batch *batch, size_t first, size_t items, const double *numbers,
                      double base)
{
    unsigned char *at = batch->out + first * batch->number_bytes;

    for (size_t i = 0; i < items; i++) {
        double wide = numbers[i] - base;
        float narrow = (float)wide;

        if (batch->number_bytes == 8)
            memcpy(at + 8 * i, &wide, 8);
        else
            memcpy(at + 4 * i, &narrow, 4);
    }
}

void batch_write(const struct batch *batch, size_t i, size_t count, const double *numbers)
{
    unsigned char *at = batch->out + i * count * batch->number_bytes;

    for (size_t k = 0; k < count; k++, at += batch->number_bytes) {
        if (batch->number_bytes == 8) {
            memcpy(at, &numbers[k], 8);
        } else {
            float narrow = (float)numbers[k];

            memcpy(at, &narrow, 4);
        }
    }
}

void batch_close(struct call *call, const struct batch *batch, size_t numbers_out)
{
    call_content_type(call, batch->number_bytes == 8 ? media_f64 : media_f32);
    call->out.sink.advance(call->out.sink.to, out_bytes(batch, numbers_out));
}
