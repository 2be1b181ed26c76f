/*
 * The grid of a raster: its size against the limits, its memory. Apart from the decoders, so that a
 * program that only writes PNGs links none of their libraries.
 */
#include "formats/raster/raster_decode.h"

#include <stdlib.h>

enum err_code raster_check_size(const char *what, uint64_t cols, uint64_t rows,
                                const struct raster_limits *limits, struct err *err)
{
    uint64_t side = cols > rows ? cols : rows;

    if (cols < 2 || rows < 2)
        return err_set(err, ERR_UNPROCESSABLE,
                       "%s: a heightfield has at least 2 x 2 samples, this one %llu x %llu", what,
                       (unsigned long long)cols, (unsigned long long)rows);
    if (side > limits->side_max)
        return err_limit(err, ERR_TOO_LARGE, limits->side_max, (double)side,
                         "%s: %llu x %llu samples: a side has more than %u", what,
                         (unsigned long long)cols, (unsigned long long)rows, limits->side_max);
    if (cols * rows > limits->samples_max || cols * rows > SIZE_MAX / sizeof(float))
        return err_limit(err, ERR_TOO_LARGE, (double)limits->samples_max, (double)(cols * rows),
                         "%s: %llu x %llu samples are more than %llu", what,
                         (unsigned long long)cols, (unsigned long long)rows,
                         (unsigned long long)limits->samples_max);
    return ERR_OK;
}

enum err_code raster_allocate(uint32_t cols, uint32_t rows, struct raster *out, struct err *err)
{
    size_t bytes = (size_t)cols * rows * sizeof(float);

    out->heights_m = malloc(bytes);
    if (!out->heights_m)
        return err_set(err, ERR_NO_MEMORY, "no memory for %u x %u samples (%zu bytes)", cols, rows,
                       bytes);
    out->cols = cols;
    out->rows = rows;
    return ERR_OK;
}

enum err_code raster_infinite(const char *what, const struct raster *raster, size_t index,
                              double code, struct err *err)
{
    return err_set(err, ERR_BAD_INPUT,
                   "%s: the height at column %zu of row %zu (code %g) is infinite in float32", what,
                   index % raster->cols, index / raster->cols, code);
}

void raster_free(struct raster *raster)
{
    free(raster->heights_m);
    *raster = (struct raster){0};
}
