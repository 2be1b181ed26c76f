/*
 * Binary batches: little-endian float32 or float64 arrays without a header, options in the query
 * (design, "Binary batches"). With `base=x,y,z` every coordinate, in and out, is relative to it.
 */
#ifndef KOTA_API_BATCH_H
#define KOTA_API_BATCH_H

#include "api/call.h"

struct batch {
    const unsigned char *in;
    unsigned char *out;
    size_t count;
    size_t number_bytes; /* 4 or 8 */
    double base[3];
};

/* Is the body of this call a binary batch, by its media type? */
bool batch_is_binary(const struct call *call);

/*
 * Opens the body as items of `numbers_in` numbers each, and room for the answer: `numbers_out`
 * numbers for each item, or one byte when numbers_out is 0. Query parameters must be among `names`
 * (which has "base").
 * ERR_BAD_INPUT      empty, or no whole number of items
 * ERR_TOO_LARGE      more items than limits.binary_items_max
 * ERR_BUSY           all batches together have too many (call_take_items)
 */
enum err_code batch_open(struct call *call, size_t numbers_in, size_t numbers_out,
                         const char *const *names, struct batch *out, struct err *err);

/* Reads `count` numbers from the start of item i; NaN, or infinity where not last_may_be_infinite
 * and the last, is ERR_BAD_INPUT with the item in the pointer. */
enum err_code batch_read(const struct batch *batch, size_t i, size_t count,
                         bool last_may_be_infinite, double *out, struct err *err);

/* The same for `items` items from the first one on, into out[items][count]; none may be infinite.
 */
enum err_code batch_read_many(const struct batch *batch, size_t first, size_t items, size_t count,
                              double *out, struct err *err);

/* Writes one number for each of `items` items from the first one on, less `base`. */
void batch_write_many(const struct batch *batch, size_t first, size_t items, const double *numbers,
                      double base);

/* Writes the `count` numbers of item i. */
void batch_write(const struct batch *batch, size_t i, size_t count, const double *numbers);

/* Hands the answer over: `count` items of numbers_out numbers (0: a byte each). */
void batch_close(struct call *call, const struct batch *batch, size_t numbers_out);

#endif
