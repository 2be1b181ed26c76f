/*
 * ESRI ASCII grids: a header of "key value" pairs in any order and either case, then ncols · nrows
 * numbers, the north row first.
 *
 *   ncols 76                         required
 *   nrows 55                         required
 *   xllcorner 0   | xllcenter 5      both axes or neither; corner of the lower left cell or its
 *   yllcorner 0   | yllcenter 5      centre (also spelt centre)
 *   cellsize 10   | dx 10 dy 20      required, greater than 0
 *   NODATA_value -9999               optional, also plain "nodata"; may be nan
 *
 * The header ends where a number is in the place of a key. Numbers are separated by white
 * space; line ends mean nothing, as in GDAL, for writers wrap rows as they like. A value is a
 * sample at the centre of its cell, so the origin is the corner plus half a cell. nan in any case
 * is no-data, with any header; so is a value that is NODATA_value as a float32 sample; inf and
 * numbers beyond float64 (1e999) are refused. A byte order mark is skipped. Too few and too many
 * values are both errors: a file cut short at the end of a line would otherwise pass for a smaller
 * world.
 *
 * Source: Esri, "ASCII raster format"; GDAL, "AAIGrid" (dx, dy, nan).
 */
#include "formats/raster/raster_decode.h"

#include "base/text/decimal.h"
#include "formats/token.h"

#include <string.h>

enum asc_key {
    ASC_NCOLS,
    ASC_NROWS,
    ASC_XLLCORNER,
    ASC_YLLCORNER,
    ASC_XLLCENTER,
    ASC_YLLCENTER,
    ASC_CELLSIZE,
    ASC_DX,
    ASC_DY,
    ASC_NODATA,
    ASC_KEY_COUNT
};

static const struct {
    const char *name;
    enum asc_key key;
} asc_keys[] = {
    {"ncols", ASC_NCOLS},
    {"nrows", ASC_NROWS},
    {"xllcorner", ASC_XLLCORNER},
    {"yllcorner", ASC_YLLCORNER},
    {"xllcenter", ASC_XLLCENTER},
    {"yllcenter", ASC_YLLCENTER},
    {"xllcentre", ASC_XLLCENTER},
    {"yllcentre", ASC_YLLCENTER},
    {"cellsize", ASC_CELLSIZE},
    {"dx", ASC_DX},
    {"dy", ASC_DY},
    {"nodata_value", ASC_NODATA},
    {"nodata", ASC_NODATA},
};

struct asc_header {
    bool has[ASC_KEY_COUNT];
    double value[ASC_KEY_COUNT]; /* NaN only for ASC_NODATA */
};

static enum decimal_status number_of(const struct token_reader *reader, double *out)
{
    return decimal_parse(reader->text, reader->length, out);
}

static bool token_key(const struct token_reader *reader, enum asc_key *out)
{
    for (size_t i = 0; i < sizeof asc_keys / sizeof asc_keys[0]; i++) {
        if (token_is(reader, asc_keys[i].name)) {
            *out = asc_keys[i].key;
            return true;
        }
    }
    return false;
}

/* The value of one key. Counts are whole; more digits than float64 holds are over every limit. */
static enum err_code header_value(struct token_reader *reader, enum asc_key key,
                                  struct asc_header *header, struct err *err)
{
    double value = 0;
    enum decimal_status status;

    if (header->has[key])
        return token_error(reader, "ASC", "is there twice", err);
    if (!token_next(reader))
        return err_set(err, ERR_BAD_INPUT, "ASC: the file ends within its header");
    status = number_of(reader, &value);
    if (status == DECIMAL_NAN && key == ASC_NODATA)
        value = NAN;
    else if (status != DECIMAL_OK)
        return token_error(reader, "ASC", "is not a finite number", err);
    if ((key == ASC_NCOLS || key == ASC_NROWS) && !(value >= 0 && value == floor(value)))
        return token_error(reader, "ASC", "is not a count", err);
    if ((key == ASC_CELLSIZE || key == ASC_DX || key == ASC_DY) && !(value > 0))
        return token_error(reader, "ASC", "is not a spacing: it must be greater than 0", err);
    header->has[key] = true;
    header->value[key] = value;
    return ERR_OK;
}

/* Reads keys until a token is a number, and leaves that token to be read again. */
static enum err_code header_read(struct token_reader *reader, struct asc_header *header,
                                 struct err *err)
{
    double ignored;
    enum asc_key key;

    while (token_next(reader)) {
        if (number_of(reader, &ignored) != DECIMAL_MALFORMED) {
            reader->at = reader->text;
            break;
        }
        if (!token_key(reader, &key))
            return token_error(reader, "ASC", "is neither a key of the header nor a number", err);
        if (header_value(reader, key, header, err))
            return err->code;
    }
    return ERR_OK;
}

/* Required keys, and keys that exclude each other. */
static enum err_code header_check(const struct asc_header *header, struct err *err)
{
    const bool *has = header->has;
    bool x = has[ASC_XLLCORNER] || has[ASC_XLLCENTER];
    bool y = has[ASC_YLLCORNER] || has[ASC_YLLCENTER];

    if (!has[ASC_NCOLS] || !has[ASC_NROWS])
        return err_set(err, ERR_BAD_INPUT, "ASC: the header lacks %s",
                       has[ASC_NCOLS] ? "nrows" : "ncols");
    if (!has[ASC_CELLSIZE] && !(has[ASC_DX] && has[ASC_DY]))
        return err_set(err, ERR_BAD_INPUT, "ASC: the header lacks cellsize (or dx and dy)");
    if (has[ASC_CELLSIZE] && (has[ASC_DX] || has[ASC_DY]))
        return err_set(err, ERR_BAD_INPUT, "ASC: the header has both cellsize and dx or dy");
    if ((has[ASC_XLLCORNER] && has[ASC_XLLCENTER]) || (has[ASC_YLLCORNER] && has[ASC_YLLCENTER]))
        return err_set(err, ERR_BAD_INPUT, "ASC: the header has both a corner and a centre");
    if (x != y)
        return err_set(err, ERR_BAD_INPUT, "ASC: the header lacks %s",
                       x ? "yllcorner" : "xllcorner");
    return ERR_OK;
}

/* Corner or centre to the lower left sample. */
static enum err_code header_place(const struct asc_header *header, struct raster *out,
                                  struct err *err)
{
    const double *value = header->value;
    bool square = header->has[ASC_CELLSIZE];

    out->has_spacing = true;
    out->spacing_x = value[square ? ASC_CELLSIZE : ASC_DX];
    out->spacing_y = value[square ? ASC_CELLSIZE : ASC_DY];
    out->has_origin = header->has[ASC_XLLCORNER] || header->has[ASC_XLLCENTER];
    if (!out->has_origin)
        return ERR_OK;
    out->origin_x = header->has[ASC_XLLCENTER] ? value[ASC_XLLCENTER]
                                               : value[ASC_XLLCORNER] + out->spacing_x / 2;
    out->origin_y = header->has[ASC_YLLCENTER] ? value[ASC_YLLCENTER]
                                               : value[ASC_YLLCORNER] + out->spacing_y / 2;
    if (!isfinite(out->origin_x) || !isfinite(out->origin_y))
        return err_set(err, ERR_BAD_INPUT, "ASC: the origin is not finite");
    return ERR_OK;
}

/* A count for the limits: numbers that float64 cannot hold exactly are far above every limit. */
static uint64_t header_count(const struct asc_header *header, enum asc_key key)
{
    return header->value[key] < 0x1p32 ? (uint64_t)header->value[key] : UINT64_C(1) << 32;
}

static enum err_code values_read(struct token_reader *reader, const struct asc_header *header,
                                 const struct raster_options *options, struct raster *out,
                                 struct err *err)
{
    size_t samples = (size_t)out->cols * out->rows;
    bool has_nodata = header->has[ASC_NODATA];
    double nodata = header->value[ASC_NODATA];

    for (size_t i = 0; i < samples; i++) {
        double code = 0;
        enum decimal_status status;

        if (!token_next(reader))
            return err_set(err, ERR_BAD_INPUT, "ASC: %u x %u samples are %zu values, got %zu",
                           out->cols, out->rows, samples, i);
        status = number_of(reader, &code);
        if (status == DECIMAL_NAN ||
            (status == DECIMAL_OK && has_nodata && raster_is_nodata(code, nodata)))
            out->heights_m[i] = NAN;
        else if (status == DECIMAL_INFINITE)
            return token_error(reader, "ASC", "is infinite", err);
        else if (status != DECIMAL_OK)
            return token_error(reader, "ASC", "is not a number", err);
        else if (!raster_height(options, code, &out->heights_m[i]))
            return raster_infinite("ASC", out, i, code, err);
    }
    if (token_next(reader))
        return token_error(reader, "ASC", "is one value too many: the header counts fewer", err);
    return ERR_OK;
}

enum err_code asc_decode(const struct raster_source *source, struct raster *out, struct err *err)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *text = (const char *)source->bytes;
    struct token_reader reader = {.start = text, .at = text, .end = text + source->length};
    struct asc_header header = {0};
    uint64_t cols, rows, held;

    if (source->length >= 3 && memcmp(text, mark, 3) == 0)
        reader.at += 3;
    if (header_read(&reader, &header, err) || header_check(&header, err) ||
        header_place(&header, out, err))
        return err->code;
    cols = header_count(&header, ASC_NCOLS);
    rows = header_count(&header, ASC_NROWS);
    if (raster_check_size("ASC", cols, rows, source->limits, err))
        return err->code;
    held = ((uint64_t)(reader.end - reader.at) + 1) / 2; /* a digit and a space for each value */
    if (cols * rows > held)
        return err_set(err, ERR_BAD_INPUT,
                       "ASC: %llu x %llu samples are %llu values, the file has at most %llu",
                       (unsigned long long)cols, (unsigned long long)rows,
                       (unsigned long long)(cols * rows), (unsigned long long)held);
    if (raster_allocate((uint32_t)cols, (uint32_t)rows, out, err))
        return err->code;
    return values_read(&reader, &header, source->options, out, err);
}
