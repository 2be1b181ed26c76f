/*
 * PNG in and out, through libpng.
 *
 * Taken: grey of 8 or 16 bits, plain or interlaced; a sample's code is its grey, never corrected by
 * gamma or sBIT. A tRNS chunk names one grey that is transparent: it is no-data (GDAL writes the
 * no-data value of a grey raster there). Refused as ERR_UNPROCESSABLE: colour, palette, alpha, and
 * grey of 1, 2 or 4 bits (the code of a 4-bit 3 would be ambiguous: 3 or 51).
 *
 * The bytes are hostile. The header is read here first, so that the size meets our limits, with
 * limit and got, before libpng sees a byte or anything is allocated; libpng then gets the same size
 * as its own limit. Deflate shrinks at most 1032 times (258 bytes from 2 bits), so a file that is
 * too short for the pixels it claims is refused before the allocation, too. Ancillary chunks are
 * never interpreted (no inflated profiles or texts), but a wrong CRC in any chunk, benign errors
 * and bytes after IEND are errors: a damaged file must not become ground.
 *
 * libpng reports errors by longjmp. Everything that lives across setjmp is in a struct of the
 * calling frame, the function that calls setjmp has no other locals, and the error callback copies
 * the message before it jumps.
 *
 * No second image: libpng writes the codes (b bytes each) into the last b/4 of the heights' own
 * memory, and they are widened in place from the first on. Sample i is written at bytes 4i..4i+3;
 * the first code not yet read is then at (4-b)·n + b·(i+1) >= 4i+4 as i < n.
 *
 * Source: W3C, "Portable Network Graphics (PNG) Specification", 2nd edition, sections 5, 11, 13.
 */
#include "formats/raster/raster_decode.h"

#include "base/array_reserve.h"
#include "base/check.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    PNG_HEADER_BYTES = 33,             /* signature, IHDR with its length, name and CRC */
    PNG_CHUNK_BYTES_MAX = 8 * 1 << 20, /* of a chunk that is not IDAT; none is kept */
    PNG_CHUNKS_KEPT_MAX = 16,
    DEFLATE_RATIO_MAX = 1032
};

struct png_header {
    uint32_t cols, rows;
    int bits, color;
};

/* What one call of libpng shares with its callbacks, for reading and for writing. */
struct png_job {
    png_structp png;
    png_infop info;
    bool no_memory;
    char message[128];   /* of libpng's error */
    const uint8_t *from; /* reading: the bytes that are left */
    size_t from_length;
    uint8_t *codes;         /* reading: where the rows go */
    struct raster_bytes to; /* writing: the bytes so far, */
    size_t to_capacity;     /* and how much would fit */
};

static void job_on_error(png_structp png, png_const_charp message)
{
    struct png_job *job = png_get_error_ptr(png);

    snprintf(job->message, sizeof job->message, "%s", message);
    png_longjmp(png, 1);
}

static void job_on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static png_voidp job_allocate(png_structp png, png_alloc_size_t size)
{
    struct png_job *job = png_get_mem_ptr(png);
    void *block = malloc(size);

    if (!block)
        job->no_memory = true;
    return block;
}

static void job_release(png_structp png, png_voidp block)
{
    (void)png;
    free(block);
}

/* The error of a job that jumped, or that libpng would not even start. */
static enum err_code job_error(const struct png_job *job, struct err *err)
{
    if (job->no_memory || !job->png || !job->info)
        return err_set(err, ERR_NO_MEMORY, "PNG: no memory");
    return err_set(err, ERR_BAD_INPUT, "PNG: %s", job->message);
}

/* ---- reading ------------------------------------------------------------------------------ */

static uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static enum err_code header_kind_check(const struct png_header *header, struct err *err)
{
    const char *kind = NULL;

    if (header->color & PNG_COLOR_MASK_PALETTE)
        kind = "a palette";
    else if (header->color & PNG_COLOR_MASK_COLOR)
        kind = "colour";
    else if (header->color & PNG_COLOR_MASK_ALPHA)
        kind = "alpha";
    if (kind)
        return err_set(err, ERR_UNPROCESSABLE,
                       "PNG: heights are grey of 8 or 16 bits, this image has %s (colour type %d)",
                       kind, header->color);
    if (header->bits != 8 && header->bits != 16)
        return err_set(err, ERR_UNPROCESSABLE,
                       "PNG: heights are grey of 8 or 16 bits, this image has %d", header->bits);
    return ERR_OK;
}

/* Reads and judges the IHDR, without libpng. */
static enum err_code header_read(const struct raster_source *source, struct png_header *out,
                                 struct err *err)
{
    static const uint8_t start[16] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n',
                                      0,    0,   0,   13,  'I',  'H',  'D',  'R'};
    size_t compared = source->length < sizeof start ? source->length : sizeof start;
    const uint8_t *bytes = source->bytes;
    uint64_t pixel_bytes;

    if (compared < 8 || memcmp(bytes, start, compared) != 0)
        return err_set(err, ERR_BAD_INPUT, "PNG: not a PNG: it does not start as one");
    if (source->length < PNG_HEADER_BYTES)
        return err_set(err, ERR_BAD_INPUT, "PNG: truncated: %zu bytes are less than its header",
                       source->length);
    out->cols = read_u32(bytes + 16);
    out->rows = read_u32(bytes + 20);
    out->bits = bytes[24];
    out->color = bytes[25];
    if (header_kind_check(out, err) ||
        raster_check_size("PNG", out->cols, out->rows, source->limits, err))
        return err->code;
    pixel_bytes = (uint64_t)out->cols * out->rows * (uint64_t)(out->bits / 8);
    if (pixel_bytes / DEFLATE_RATIO_MAX > source->length)
        return err_set(err, ERR_BAD_INPUT,
                       "PNG: truncated: %zu bytes cannot hold %u x %u samples of %d bits",
                       source->length, out->cols, out->rows, out->bits);
    return ERR_OK;
}

static void job_on_read(png_structp png, png_bytep to, size_t length)
{
    struct png_job *job = png_get_io_ptr(png);

    if (length > job->from_length)
        png_error(png, "truncated: the file ends too early");
    memcpy(to, job->from, length);
    job->from += length;
    job->from_length -= length;
}

static void reader_set_up(struct png_job *job, const struct png_header *header)
{
    png_set_user_limits(job->png, header->cols, header->rows);
    png_set_chunk_malloc_max(job->png, PNG_CHUNK_BYTES_MAX);
    png_set_chunk_cache_max(job->png, PNG_CHUNKS_KEPT_MAX);
    png_set_keep_unknown_chunks(job->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_crc_action(job->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_benign_errors(job->png, 0);
    png_set_read_fn(job->png, job, job_on_read);
}

/* Everything that may jump. False after an error; job->message says which. */
static bool reader_run(struct png_job *job, const struct png_header *header)
{
    if (setjmp(png_jmpbuf(job->png)))
        return false;
    reader_set_up(job, header);
    png_read_info(job->png, job->info);
    for (int pass = png_set_interlace_handling(job->png); pass > 0; pass--)
        for (uint32_t row = 0; row < header->rows; row++)
            png_read_row(job->png,
                         job->codes + (size_t)row * header->cols * (size_t)(header->bits / 8),
                         NULL);
    png_read_end(job->png, NULL);
    return true;
}

/* Runs libpng over the bytes; has_hole and hole are of a tRNS chunk. */
static enum err_code codes_read(const struct raster_source *source, const struct png_header *header,
                                uint8_t *codes, bool *has_hole, int *hole, struct err *err)
{
    struct png_job job = {.from = source->bytes, .from_length = source->length, .codes = codes};
    png_color_16p gray = NULL;
    enum err_code code = ERR_OK;

    job.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &job, job_on_error, job_on_warning,
                                       &job, job_allocate, job_release);
    if (job.png)
        job.info = png_create_info_struct(job.png);
    if (!job.info || !reader_run(&job, header))
        code = job_error(&job, err);
    else if (job.from_length > 0)
        code = err_set(err, ERR_BAD_INPUT, "PNG: %zu bytes follow its end", job.from_length);
    else if (png_get_tRNS(job.png, job.info, NULL, NULL, &gray) && gray) {
        *has_hole = true;
        *hole = gray->gray & ((1 << header->bits) - 1);
    }
    png_destroy_read_struct(&job.png, &job.info, NULL);
    return code;
}

enum err_code png_decode(const struct raster_source *source, struct raster *out, struct err *err)
{
    struct png_header header;
    size_t samples, code_bytes;
    uint8_t *codes;
    bool has_hole = false;
    int hole = 0;

    if (header_read(source, &header, err) || raster_allocate(header.cols, header.rows, out, err))
        return err->code;
    samples = (size_t)header.cols * header.rows;
    code_bytes = (size_t)header.bits / 8;
    codes = (uint8_t *)out->heights_m + (sizeof(float) - code_bytes) * samples;
    if (codes_read(source, &header, codes, &has_hole, &hole, err))
        return err->code;
    for (size_t i = 0; i < samples; i++) {
        const uint8_t *at = codes + code_bytes * i;
        int code = code_bytes == 2 ? at[0] << 8 | at[1] : at[0];

        if (has_hole && code == hole)
            out->heights_m[i] = NAN;
        else if (!raster_height(source->options, code, &out->heights_m[i]))
            return raster_infinite("PNG", out, i, code, err);
    }
    return ERR_OK;
}

/* ---- writing ------------------------------------------------------------------------------ */

static void job_on_write(png_structp png, png_bytep from, size_t length)
{
    struct png_job *job = png_get_io_ptr(png);
    size_t needed = job->to.length + length;

    if (!array_reserve((void **)&job->to.at, &job->to_capacity, needed, 1)) {
        job->no_memory = true;
        png_error(png, "no memory");
    }
    memcpy(job->to.at + job->to.length, from, length);
    job->to.length = needed;
}

static void job_on_flush(png_structp png)
{
    (void)png;
}

struct png_image {
    uint32_t cols, rows;
    int channels, compression;
    const uint8_t *pixels;
    size_t row_bytes;
};

/* Everything that may jump. False after an error; job->message says which. */
static bool writer_run(struct png_job *job, const struct png_image *image)
{
    if (setjmp(png_jmpbuf(job->png)))
        return false;
    png_set_write_fn(job->png, job, job_on_write, job_on_flush);
    if (image->compression == PNG_FAST) {
        png_set_filter(job->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
        png_set_compression_strategy(job->png, Z_RLE);
    }
    png_set_compression_level(job->png, image->compression == PNG_FAST ? 1 : image->compression);
    png_set_IHDR(job->png, job->info, image->cols, image->rows, image->channels == 1 ? 16 : 8,
                 image->channels == 1   ? PNG_COLOR_TYPE_GRAY
                 : image->channels == 3 ? PNG_COLOR_TYPE_RGB
                                        : PNG_COLOR_TYPE_RGB_ALPHA,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(job->png, job->info);
    if (image->channels == 1 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        png_set_swap(job->png);
    for (uint32_t row = 0; row < image->rows; row++)
        png_write_row(job->png, image->pixels + row * image->row_bytes);
    png_write_end(job->png, job->info);
    return true;
}

enum err_code png_encode(uint32_t cols, uint32_t rows, int channels, const void *pixels,
                         int compression, struct raster_bytes *out, struct err *err)
{
    struct png_image image = {
        .cols = cols,
        .rows = rows,
        .channels = channels,
        .compression = compression,
        .pixels = pixels,
        .row_bytes = cols * (channels == 1 ? sizeof(uint16_t) : (size_t)channels),
    };
    struct png_job job = {0};
    enum err_code code = ERR_OK;

    CHECK(channels == 1 || channels == 3 || channels == 4);
    CHECK(compression >= 0 && compression <= PNG_FAST);
    job.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &job, job_on_error, job_on_warning,
                                        &job, job_allocate, job_release);
    if (job.png)
        job.info = png_create_info_struct(job.png);
    if (!job.info || !writer_run(&job, &image)) {
        code = job_error(&job, err);
        free(job.to.at);
    } else {
        *out = job.to;
    }
    png_destroy_write_struct(&job.png, &job.info);
    return code;
}
