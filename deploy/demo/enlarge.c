/*
 * Enlarging: Catmull-Rom goes through the source's samples, and between them fractal detail is
 * added, half as high as the ground climbs between two samples times the usual gain of 0.5 an
 * octave, so that roughness goes on below the source's resolution as it was above it (a
 * self-affine surface with Hurst exponent near 1). Flat stays flat: lakes and voids get none.
 */
#include "deploy/demo/enlarge.h"

#include "formats/raster/raster.h"
#include "deploy/demo/locale_file.h"
#include "deploy/demo/noise.h"
#include "deploy/demo/parallel.h"
#include "deploy/demo/world_folder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BAND_ROWS = 256, FILE_BYTES_MAX = 1 << 30 };

static double climb(const struct grid *from, double u, double v)
{
    return fabs(grid_bilinear(from, u + 1, v) - grid_bilinear(from, u - 1, v)) / 2 +
           fabs(grid_bilinear(from, u, v + 1) - grid_bilinear(from, u, v - 1)) / 2;
}

void enlarge_rows(const struct grid *from, uint32_t side, uint32_t seed, uint32_t first,
                  uint32_t end, float *out)
{
    struct grid unit = *from; /* in source samples: the noise's waves are counted in them too */
    struct noise_sum rough = {.wavelength = 1, .octaves = 1, .gain = 0.5};
    double step_u = (from->cols - 1.0) / (side - 1.0), step_v = (from->rows - 1.0) / (side - 1.0);

    unit.origin_x_m = unit.origin_y_m = 0;
    unit.spacing_m = 1;
    /* Octaves down to two samples of the result; finer ones would only be noise between samples. */
    for (double wave = 1; rough.octaves < 12 && wave > 4 * step_u; wave /= 2)
        rough.octaves++;
    for (uint32_t row = first; row < end; row++) {
        for (uint32_t column = 0; column < side; column++) {
            double u = column * step_u, v = row * step_v;
            double h = grid_bicubic(&unit, u, v), relief = climb(&unit, u, v);

            if (relief > 0) /* false beside a hole as well */
                h += 0.25 * relief * noise_fbm(&rough, u, v, seed);
            out[(size_t)(row - first) * side + column] = (float)h;
        }
    }
}

/* ---- files -------------------------------------------------------------------------------- */

static enum err_code source_read(const char *path, struct grid *out, struct err *err)
{
    struct raster_options options = {.height_scale = 1};
    struct raster raster;
    enum raster_format format;
    enum err_code code;
    size_t length = 0;
    uint8_t *bytes;

    if (!raster_format_of_name(path, &format) || format == RASTER_F32 || format == RASTER_TIFF)
        return err_set(err, ERR_BAD_INPUT, "%s is not named .png, .hgt or .asc", path);
    bytes = file_read(path, FILE_BYTES_MAX, &length, err);
    if (!bytes)
        return err->code;
    options.flip_y = format != RASTER_PNG;
    code = raster_decode(format, bytes, length, &options, &raster_limits_default, &raster, err);
    free(bytes);
    if (!code)
        *out = (struct grid){
            .cols = raster.cols, .rows = raster.rows, .spacing_m = 1, .at = raster.heights_m};
    return code;
}

struct enlarge_job {
    const struct grid *from;
    uint32_t side, seed, band;
    float *out;
};

static void enlarge_band(void *context, uint32_t first, uint32_t end)
{
    const struct enlarge_job *job = context;

    enlarge_rows(job->from, job->side, job->seed, job->band + first, job->band + end,
                 job->out + (size_t)first * job->side);
}

static bool bands_write(FILE *file, struct enlarge_job *job, uint32_t threads)
{
    for (job->band = 0; job->band < job->side; job->band += BAND_ROWS) {
        uint32_t rows = job->side - job->band < BAND_ROWS ? job->side - job->band : BAND_ROWS;
        size_t count = (size_t)rows * job->side;

        parallel_rows(threads, rows, 8, enlarge_band, job);
        samples_to_bytes(job->out, count, (uint8_t *)job->out);
        if (fwrite(job->out, 4, count, file) != count)
            return false;
    }
    return true;
}

enum err_code enlarge_file(const char *in, const char *out, uint32_t side, uint32_t seed,
                           uint32_t threads, struct err *err)
{
    struct grid from = {0};
    struct enlarge_job job = {.from = &from, .side = side, .seed = seed};
    char part[PATH_MAX];
    FILE *file;
    bool written;

    if ((size_t)snprintf(part, sizeof part, "%s.part", out) >= sizeof part)
        return err_set(err, ERR_BAD_INPUT, "the path %s is too long", out);
    if (source_read(in, &from, err))
        return err->code;
    job.out = malloc((size_t)BAND_ROWS * side * sizeof *job.out);
    file = job.out ? fopen(part, "wb") : NULL;
    if (!job.out)
        err_set(err, ERR_NO_MEMORY, "no memory for %d rows of %u", BAND_ROWS, side);
    else if (!file)
        err_set(err, ERR_INTERNAL, "cannot create %s: %s", part, strerror(errno));
    written = file && bands_write(file, &job, threads);
    if (file) {
        written = !fclose(file) && written && !rename(part, out);
        if (!written) {
            err_set(err, ERR_INTERNAL, "cannot write %s: %s", out, strerror(errno));
            unlink(part);
        }
    }
    free(job.out);
    grid_destroy(&from);
    return written ? ERR_OK : err->code;
}
