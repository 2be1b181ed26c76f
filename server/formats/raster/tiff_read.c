/*
 * GeoTIFFs by libtiff.
 *
 * The problem: a format of a hundred variants, and a library for it that hostile files have
 * crashed often. The approach: libtiff reads the structure and unpacks, here, within a jail (see
 * tiff.c); this code judges whether it is a grid of heights, and turns samples into heights.
 *
 * What is read: the first directory, one sample a pixel, of 8 to 64 bits, integer or float, in
 * strips or tiles, by any compression that this libtiff has. A tile of no bytes is as GDAL writes
 * them: no-data, or 0 where the file has no such value. A colour picture, a mask and complex
 * numbers are refused. The numbers of GDAL's own tags (42112: scale, offset and unit of height;
 * 42113: no-data) count as in GDAL.
 *
 * Tiles are unpacked one at a time, strips row by row: TIFFReadScanline keeps no more than that,
 * also where one strip is the whole file. All tags are taken by their number, as libtiff reads
 * those that it does not know; so nothing is registered, and threads share no state.
 *
 * Sources: TIFF 6.0, 1992; OGC 19-008r4; GDAL, "GTiff -- GeoTIFF File Format".
 */
#include "formats/raster/tiff_read.h"

#include "base/text/decimal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

enum { TAG_PIXEL_SCALE = 33550, TAG_TIEPOINTS = 33922, TAG_TRANSFORMATION = 34264 };
enum { TAG_GEO_KEYS = 34735, TAG_GEO_NUMBERS = 34736, TAG_GDAL_METADATA = 42112 };
enum { TAG_GDAL_NODATA = 42113, DIRECTORIES_MAX = 64 };

/* ---- the file in memory ---------------------------------------------------------------------- */

struct tiff_job {
    const struct raster_source *source;
    uint64_t at;
    char message[160]; /* the first error of libtiff, "" for none */
    TIFF *tif;
    uint32_t cols, rows;
    uint16_t bits, format; /* of a sample */
    bool has_nodata;
    double nodata;
    struct raster_options options; /* with the file's scale and offset, where they count */
};

static tmsize_t job_read(thandle_t handle, void *out, tmsize_t length)
{
    struct tiff_job *job = handle;
    uint64_t left = job->source->length - job->at;
    uint64_t bytes = (uint64_t)length < left ? (uint64_t)length : left;

    if (bytes > 0)
        memcpy(out, job->source->bytes + job->at, bytes);
    job->at += bytes;
    return (tmsize_t)bytes;
}

static tmsize_t job_write(thandle_t handle, void *bytes, tmsize_t length)
{
    (void)handle, (void)bytes, (void)length;
    return 0;
}

static toff_t job_seek(thandle_t handle, toff_t offset, int whence)
{
    struct tiff_job *job = handle;
    uint64_t base = whence == SEEK_CUR ? job->at : whence == SEEK_END ? job->source->length : 0;

    base += offset;
    job->at = base < job->source->length ? base : job->source->length;
    return job->at;
}

static int job_close(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t job_size(thandle_t handle)
{
    return ((struct tiff_job *)handle)->source->length;
}

static int job_on_error(TIFF *tif, void *context, const char *module, const char *format,
                        va_list arguments)
{
    struct tiff_job *job = context;

    (void)tif, (void)module;
    if (job->message[0] == '\0')
        vsnprintf(job->message, sizeof job->message, format, arguments);
    for (char *at = job->message; *at; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
            *at = '?';
    return 1; /* and no other handler */
}

static int job_on_warning(TIFF *tif, void *context, const char *module, const char *format,
                          va_list arguments)
{
    (void)tif, (void)context, (void)module, (void)format, (void)arguments;
    return 1;
}

static enum err_code job_error(const struct tiff_job *job, const char *what, struct err *err)
{
    return err_set(err, ERR_BAD_INPUT, "TIFF: %s%s%s", what, job->message[0] ? ": " : "",
                   job->message);
}

static enum err_code job_open(struct tiff_job *job, struct err *err)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();

    if (!options)
        return err_set(err, ERR_NO_MEMORY, "no memory for libtiff");
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)(4 * TIFF_BLOCK_BYTES_MAX));
    TIFFOpenOptionsSetErrorHandlerExtR(options, job_on_error, job);
    TIFFOpenOptionsSetWarningHandlerExtR(options, job_on_warning, job);
    job->tif = TIFFClientOpenExt("-", "rm", job, job_read, job_write, job_seek, job_close, job_size,
                                 NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return job->tif ? ERR_OK : job_error(job, "it cannot be read", err);
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* The values of a tag that libtiff does not know, by its type; NULL and 0 without it. */
static const void *tag_values(TIFF *tif, uint32_t tag, TIFFDataType type, size_t *count)
{
    const TIFFField *field = TIFFFindField(tif, tag, TIFF_ANY);
    const void *values = NULL;
    uint32_t many = 0;
    uint16_t few = 0;
    bool is_long = field && TIFFFieldReadCount(field) == TIFF_VARIABLE2;

    *count = 0;
    if (!field || TIFFFieldDataType(field) != type || !TIFFFieldPassCount(field) ||
        !(is_long ? TIFFGetField(tif, tag, &many, &values) : TIFFGetField(tif, tag, &few, &values)))
        return NULL;
    *count = values ? (is_long ? many : few) : 0;
    return *count > 0 ? values : NULL;
}

/* One text as a number, with blanks around it. */
static enum decimal_status number_of(const char *text, size_t length, double *out)
{
    while (length > 0 && (*text == ' ' || *text == '\n')) {
        text++;
        length--;
    }
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\0'))
        length--;
    return decimal_parse(text, length, out);
}

/* The value of GDAL's item of a role, in its XML of tag 42112: [length], not ended by 0. */
static size_t metadata_role(TIFF *tif, const char *role, const char **out)
{
    size_t count;
    const char *text = tag_values(tif, TAG_GDAL_METADATA, TIFF_ASCII, &count), *at, *end;
    char mark[32];

    snprintf(mark, sizeof mark, "role=\"%s\">", role);
    at = text ? memmem(text, count, mark, strlen(mark)) : NULL;
    if (!at)
        return 0;
    *out = at + strlen(mark);
    end = memchr(*out, '<', (size_t)(text + count - *out));
    return end ? (size_t)(end - *out) : 0;
}

static enum err_code metadata_number(struct tiff_job *job, const char *role, double *out,
                                     struct err *err)
{
    const char *text;
    size_t length = metadata_role(job->tif, role, &text);

    if (length > 0 && number_of(text, length, out) != DECIMAL_OK)
        return err_set(err, ERR_BAD_INPUT, "TIFF: its %s of heights, '%.*s', is no finite number",
                       role, length < 40 ? (int)length : 40, text);
    return ERR_OK;
}

/* GDAL's name of the unit of heights, where there is no GeoKey of it. */
static enum err_code metadata_unit(struct tiff_job *job, double *unit_m, struct err *err)
{
    const char *text;
    size_t length = metadata_role(job->tif, "unittype", &text);

    if (length == 0)
        return ERR_OK;
    *unit_m = georef_height_unit_m(text, length);
    if (*unit_m > 0)
        return ERR_OK;
    err_set(err, ERR_UNPROCESSABLE,
            "TIFF: its heights are in '%.*s', which is not known here; height_scale states the "
            "metres",
            length < 40 ? (int)length : 40, text);
    return err_at(err, "height_scale");
}

/* height = offset + scale · number, in metres, unless the request has its own. */
static enum err_code heights_scale(struct tiff_job *job, struct raster_import *import,
                                   struct err *err)
{
    double scale = 1, offset = 0, unit_m;

    if (job->options.is_scaled)
        return ERR_OK;
    if (metadata_number(job, "scale", &scale, err) ||
        metadata_number(job, "offset", &offset, err) ||
        (import->vertical_unit_m == 0 && metadata_unit(job, &import->vertical_unit_m, err)))
        return err->code;
    unit_m = import->vertical_unit_m > 0 ? import->vertical_unit_m : 1;
    job->options.height_scale = (scale != 0 ? scale : 1) * unit_m;
    job->options.height_offset = offset * unit_m;
    return ERR_OK;
}

static enum err_code nodata_read(struct tiff_job *job, struct err *err)
{
    size_t count;
    const char *text = tag_values(job->tif, TAG_GDAL_NODATA, TIFF_ASCII, &count);
    enum decimal_status status;

    if (!text)
        return ERR_OK;
    count = strnlen(text, count);
    status = number_of(text, count, &job->nodata);
    if (status == DECIMAL_NAN || status == DECIMAL_INFINITE)
        return ERR_OK; /* NaN is no-data anyhow, and infinite samples are refused */
    if (status != DECIMAL_OK)
        return err_set(err, ERR_BAD_INPUT, "TIFF: its no-data value, '%.*s', is no number",
                       count < 40 ? (int)count : 40, text);
    job->has_nodata = true;
    return ERR_OK;
}

/* The transform: one matrix, or a scale at one point. Points without a scale are none. */
static void transform_read(TIFF *tif, struct georef_source *where)
{
    size_t matrix_count, scale_count, tie_count;
    const double *matrix = tag_values(tif, TAG_TRANSFORMATION, TIFF_DOUBLE, &matrix_count);
    const double *scale = tag_values(tif, TAG_PIXEL_SCALE, TIFF_DOUBLE, &scale_count);
    const double *tie = tag_values(tif, TAG_TIEPOINTS, TIFF_DOUBLE, &tie_count);
    double *t = where->transform;

    where->has_transform = matrix_count >= 16 || (scale_count >= 2 && tie_count >= 6);
    if (matrix_count >= 16) {
        const double all[6] = {matrix[3], matrix[0], matrix[1], matrix[7], matrix[4], matrix[5]};

        memcpy(t, all, sizeof all);
    } else if (where->has_transform) {
        t[1] = scale[0];
        t[5] = -fabs(scale[1]);
        t[0] = tie[3] - tie[0] * t[1];
        t[3] = tie[4] - tie[1] * t[5];
    }
}

/* ---- what it is ------------------------------------------------------------------------------ */

static enum err_code sample_check(struct tiff_job *job, struct err *err)
{
    uint16_t samples = 1, photometric = PHOTOMETRIC_MINISBLACK, compression = COMPRESSION_NONE;
    bool is_float, is_integer;

    TIFFGetFieldDefaulted(job->tif, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(job->tif, TIFFTAG_BITSPERSAMPLE, &job->bits);
    TIFFGetFieldDefaulted(job->tif, TIFFTAG_SAMPLEFORMAT, &job->format);
    TIFFGetFieldDefaulted(job->tif, TIFFTAG_COMPRESSION, &compression);
    TIFFGetField(job->tif, TIFFTAG_PHOTOMETRIC, &photometric);
    if (samples != 1)
        return err_limit(err, ERR_UNPROCESSABLE, 1, samples,
                         "TIFF: %u samples a pixel, one is read: the height", samples);
    if (photometric > PHOTOMETRIC_MINISBLACK)
        return err_set(err, ERR_UNPROCESSABLE,
                       "TIFF: a picture in colours (photometric interpretation %u), not heights",
                       photometric);
    is_float = job->format == SAMPLEFORMAT_IEEEFP && (job->bits == 32 || job->bits == 64);
    is_integer = (job->format == SAMPLEFORMAT_UINT || job->format == SAMPLEFORMAT_INT ||
                  job->format == SAMPLEFORMAT_VOID) &&
                 (job->bits == 8 || job->bits == 16 || job->bits == 32 || job->bits == 64);
    if (!is_float && !is_integer)
        return err_set(err, ERR_UNPROCESSABLE,
                       "TIFF: samples of %u bits in format %u are not read: integers of 8 to 64 "
                       "bits and floats of 32 or 64 are",
                       job->bits, job->format);
    if (!TIFFIsCODECConfigured(compression))
        return err_set(err, ERR_UNPROCESSABLE,
                       "TIFF: compression %u is not read here; deflate, LZW and zstd are",
                       compression);
    return ERR_OK;
}

/* A mask beside the heights would make holes that are not in the samples. */
static enum err_code masks_refuse(struct tiff_job *job, struct err *err)
{
    uint32_t kind = 0;

    for (int i = 0; i < DIRECTORIES_MAX; i++) {
        kind = 0;
        TIFFGetField(job->tif, TIFFTAG_SUBFILETYPE, &kind);
        if (kind & FILETYPE_MASK)
            return err_set(err, ERR_UNPROCESSABLE,
                           "TIFF: it has a mask, which is not read: give its holes a no-data value "
                           "(gdal_translate -a_nodata)");
        if (!TIFFReadDirectory(job->tif))
            break;
    }
    if (!TIFFSetDirectory(job->tif, 0))
        return job_error(job, "it cannot be read", err);
    job->message[0] = '\0'; /* of what comes after the last directory */
    return ERR_OK;
}

static enum err_code block_check(struct tiff_job *job, struct tiff_head *head, struct err *err)
{
    uint64_t bytes;

    head->block_cols = job->cols;
    head->block_rows = 1;
    if (TIFFIsTiled(job->tif)) {
        TIFFGetField(job->tif, TIFFTAG_TILEWIDTH, &head->block_cols);
        TIFFGetField(job->tif, TIFFTAG_TILELENGTH, &head->block_rows);
    }
    bytes = (uint64_t)head->block_cols * head->block_rows;
    if (bytes == 0 || head->block_cols > TIFF_BLOCK_BYTES_MAX ||
        head->block_rows > TIFF_BLOCK_BYTES_MAX || bytes * 8 > TIFF_BLOCK_BYTES_MAX)
        return err_limit(err, ERR_TOO_LARGE, (double)TIFF_BLOCK_BYTES_MAX / 8, (double)bytes,
                         "TIFF: tiles of %u x %u samples, the most are %llu together",
                         head->block_cols, head->block_rows,
                         (unsigned long long)(TIFF_BLOCK_BYTES_MAX / 8));
    bytes =
        (uint64_t)(TIFFIsTiled(job->tif) ? TIFFTileSize64(job->tif) : TIFFScanlineSize64(job->tif));
    if (bytes != (uint64_t)head->block_cols * head->block_rows * (job->bits / 8))
        return job_error(job, "its blocks are not as large as their samples", err);
    return ERR_OK;
}

static enum err_code geo_read(struct tiff_job *job, struct tiff_head *head, struct err *err)
{
    size_t key_count, number_count;
    const uint16_t *keys = tag_values(job->tif, TAG_GEO_KEYS, TIFF_SHORT, &key_count);
    const double *numbers = tag_values(job->tif, TAG_GEO_NUMBERS, TIFF_DOUBLE, &number_count);

    transform_read(job->tif, &head->where);
    return tiff_geo_keys(keys, key_count, numbers, number_count, &job->options, head, err);
}

static enum err_code head_read(struct tiff_job *job, struct tiff_head *head, struct err *err)
{
    TIFFGetField(job->tif, TIFFTAG_IMAGEWIDTH, &job->cols);
    TIFFGetField(job->tif, TIFFTAG_IMAGELENGTH, &job->rows);
    if (raster_check_size("TIFF", job->cols, job->rows, job->source->limits, err))
        return err->code;
    head->where.cols = job->cols;
    head->where.rows = job->rows;
    if (sample_check(job, err) || block_check(job, head, err) || nodata_read(job, err) ||
        geo_read(job, head, err) || heights_scale(job, &head->import, err))
        return err->code;
    head->import.height_scale = job->options.height_scale;
    head->import.height_offset = job->options.height_offset;
    return ERR_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

static double code_at(const struct tiff_job *job, const void *samples, size_t i)
{
    if (job->format == SAMPLEFORMAT_IEEEFP)
        return job->bits == 32 ? (double)((const float *)samples)[i] : ((const double *)samples)[i];
    if (job->format == SAMPLEFORMAT_INT)
        return job->bits == 8    ? ((const int8_t *)samples)[i]
               : job->bits == 16 ? ((const int16_t *)samples)[i]
               : job->bits == 32 ? ((const int32_t *)samples)[i]
                                 : (double)((const int64_t *)samples)[i];
    return job->bits == 8    ? ((const uint8_t *)samples)[i]
           : job->bits == 16 ? ((const uint16_t *)samples)[i]
           : job->bits == 32 ? ((const uint32_t *)samples)[i]
                             : (double)((const uint64_t *)samples)[i];
}

/* One row of a block; first is its first sample's number in the raster. */
static enum err_code row_heights(const struct tiff_job *job, const void *samples, size_t from,
                                 uint32_t count, size_t first, float *out, struct err *err)
{
    const struct raster shape = {.cols = job->cols, .rows = job->rows};

    for (uint32_t i = 0; i < count; i++) {
        double code = code_at(job, samples, from + i);

        if (isnan(code) || (job->has_nodata && raster_is_nodata(code, job->nodata)))
            out[i] = NAN;
        else if (!raster_height(&job->options, code, &out[i]))
            return raster_infinite("TIFF", &shape, first + i, code, err);
    }
    return ERR_OK;
}

/* Unpacks the block at a place into samples; one of no bytes is all no-data, or 0. */
static enum err_code block_unpack(struct tiff_job *job, const struct tiff_head *head, uint32_t col,
                                  uint32_t row, void *samples, bool *is_empty, struct err *err)
{
    bool is_tiled = TIFFIsTiled(job->tif);
    uint32_t strile =
        is_tiled ? TIFFComputeTile(job->tif, col, row, 0, 0) : TIFFComputeStrip(job->tif, row, 0);
    size_t bytes = (size_t)head->block_cols * head->block_rows * (job->bits / 8);

    *is_empty = TIFFGetStrileByteCount(job->tif, strile) == 0;
    if (*is_empty) {
        memset(samples, 0, bytes);
        return ERR_OK;
    }
    if (is_tiled
            ? TIFFReadEncodedTile(job->tif, strile, samples, (tmsize_t)bytes) == (tmsize_t)bytes
            : TIFFReadScanline(job->tif, samples, row, 0) == 1)
        return ERR_OK;
    return err_set(err, ERR_BAD_INPUT, "TIFF: the samples from column %u, row %u on: %s", col, row,
                   job->message[0] ? job->message : "there are too few");
}

static enum err_code block_read(struct tiff_job *job, const struct tiff_head *head, uint32_t col,
                                uint32_t row, void *samples, float *heights, struct err *err)
{
    uint32_t cols = job->cols - col < head->block_cols ? job->cols - col : head->block_cols;
    uint32_t rows = job->rows - row < head->block_rows ? job->rows - row : head->block_rows;
    bool is_empty;

    if (block_unpack(job, head, col, row, samples, &is_empty, err))
        return err->code;
    for (uint32_t r = 0; r < rows; r++) {
        size_t at = (size_t)r * head->block_cols;

        if (row_heights(job, samples, at, cols, (size_t)(row + r) * job->cols + col, heights + at,
                        err))
            return err->code;
        for (uint32_t c = 0; is_empty && job->has_nodata && c < cols; c++)
            heights[at + c] = NAN;
    }
    return ERR_OK;
}

static enum err_code blocks_read(struct tiff_job *job, const struct tiff_head *head,
                                 const struct tiff_sink *sink, struct err *err)
{
    size_t count = (size_t)head->block_cols * head->block_rows;
    void *samples = malloc(count * (job->bits / 8));
    float *heights = calloc(count, sizeof *heights);

    if (!samples || !heights)
        err_set(err, ERR_NO_MEMORY, "no memory for a tile of %zu samples", count);
    for (uint32_t row = 0; !err->code && row < job->rows; row += head->block_rows)
        for (uint32_t col = 0; !err->code && col < job->cols; col += head->block_cols)
            if (!block_read(job, head, col, row, samples, heights, err))
                sink->block(sink->context, col, row, heights, err);
    free(samples);
    free(heights);
    return err->code;
}

enum err_code tiff_read(const struct raster_source *source, const struct tiff_sink *sink,
                        struct err *err)
{
    struct tiff_job job = {.source = source, .options = *source->options};
    struct tiff_head head;

    memset(&head, 0, sizeof head); /* its padding goes through a pipe, too */
    err->code = ERR_OK;
    if (job_open(&job, err))
        return err->code;
    if (!masks_refuse(&job, err) && !head_read(&job, &head, err) &&
        !sink->head(sink->context, &head, err))
        blocks_read(&job, &head, sink, err);
    TIFFClose(job.tif);
    return err->code;
}
