/*
 * GeoTIFFs: libtiff in a jail (base/jail.h), whose answer is checked like a file.
 *
 *   tiff_decode         starts a jail, receives its answer, places the grid
 *   (the jail's child)  tiff_read, which writes to the pipe
 *
 *   the answer          a word, then: HEAD struct tiff_head; BLOCK the heights of the next block
 *                       that are inside the raster, float32, row by row; ERROR struct err; DONE
 *
 * The order of blocks is known, so that they have no places. Memory here is the result and nothing
 * else; the child has one block.
 *
 * A grid that says where its samples lie is turned so that the first row is the one at the smallest
 * y. Coordinates of a projected system stay what they are; degrees become a plane that touches the
 * Earth in the grid's middle (georef.h), whose origin is there.
 */
#include "formats/raster/tiff_read.h"

#include "base/jail.h"

#include <stdlib.h>
#include <string.h>

enum { CPU_S = 20, WALL_S = 60 };
#define MEMORY_BYTES (UINT64_C(1) << 30)

enum word { WORD_HEAD = 1, WORD_BLOCK, WORD_ERROR, WORD_DONE };

/* ---- the child ------------------------------------------------------------------------------- */

struct child {
    const struct raster_source *source;
    struct tiff_head head;
    int pipe;
};

static void word_send(const struct child *child, enum word word)
{
    jail_write(child->pipe, &(uint32_t){word}, sizeof(uint32_t));
}

static enum err_code head_send(void *context, const struct tiff_head *head, struct err *err)
{
    struct child *child = context;

    (void)err;
    child->head = *head;
    word_send(child, WORD_HEAD);
    jail_write(child->pipe, head, sizeof *head);
    return ERR_OK;
}

/* Columns and rows of the block at a place that are inside the raster. */
static void block_size(const struct tiff_head *head, uint32_t col, uint32_t row, uint32_t *cols,
                       uint32_t *rows)
{
    size_t right = head->where.cols - col, below = head->where.rows - row;

    *cols = right < head->block_cols ? (uint32_t)right : head->block_cols;
    *rows = below < head->block_rows ? (uint32_t)below : head->block_rows;
}

static enum err_code block_send(void *context, uint32_t first_col, uint32_t first_row,
                                const float *heights_m, struct err *err)
{
    struct child *child = context;
    uint32_t cols, rows;

    (void)err;
    block_size(&child->head, first_col, first_row, &cols, &rows);
    word_send(child, WORD_BLOCK);
    for (uint32_t r = 0; r < rows; r++)
        jail_write(child->pipe, heights_m + (size_t)r * child->head.block_cols,
                   cols * sizeof *heights_m);
    return ERR_OK;
}

static void child_read(void *context, int pipe)
{
    struct child child = {.source = context, .pipe = pipe};
    struct tiff_sink sink = {&child, head_send, block_send};
    struct err err;

    memset(&err, 0, sizeof err);
    if (tiff_read(child.source, &sink, &err)) {
        word_send(&child, WORD_ERROR);
        jail_write(pipe, &err, sizeof err);
    } else {
        word_send(&child, WORD_DONE);
    }
}

/* ---- the parent ------------------------------------------------------------------------------ */

static enum err_code error_receive(struct jail *jail, bool *whole, struct err *err)
{
    struct err got;

    if (!jail_read(jail, &got, sizeof got))
        return ERR_OK;
    *whole = true;
    got.msg[sizeof got.msg - 1] = got.pointer[sizeof got.pointer - 1] = '\0';
    if (got.code != ERR_TOO_LARGE && got.code != ERR_UNPROCESSABLE && got.code != ERR_NO_MEMORY)
        got.code = ERR_BAD_INPUT;
    err_set(err, got.code, "%s", got.msg);
    if (got.has_limit)
        err_limit(err, got.code, got.limit, got.got, "%s", got.msg);
    if (got.pointer[0])
        err_at(err, "%s", got.pointer);
    return err->code;
}

/* The next word of the child; 0 when it has ended. */
static uint32_t word_receive(struct jail *jail)
{
    uint32_t word = 0;

    return jail_read(jail, &word, sizeof word) ? word : 0;
}

static enum err_code head_check(const struct tiff_head *head, const struct raster_limits *limits,
                                struct err *err)
{
    if (raster_check_size("TIFF", head->where.cols, head->where.rows, limits, err))
        return err->code;
    if (head->block_cols == 0 || head->block_rows == 0)
        return err_set(err, ERR_BAD_INPUT, "TIFF: its blocks have no samples");
    return ERR_OK;
}

static bool rows_receive(struct jail *jail, struct raster *out, uint32_t col, uint32_t row,
                         uint32_t cols, uint32_t rows)
{
    for (uint32_t r = 0; r < rows; r++) {
        float *to = out->heights_m + (size_t)(row + r) * out->cols + col;

        if (!jail_read(jail, to, cols * sizeof *to))
            return false;
        for (uint32_t c = 0; c < cols; c++)
            if (isinf(to[c]))
                return false;
    }
    return true;
}

/* Receives all; *whole is false when the child has ended before. */
static enum err_code receive(struct jail *jail, const struct raster_limits *limits,
                             struct tiff_head *head, struct raster *out, bool *whole,
                             struct err *err)
{
    uint32_t word = word_receive(jail), cols = 0, rows = 0;

    *whole = false;
    if (word == WORD_ERROR)
        return error_receive(jail, whole, err);
    if (word != WORD_HEAD || !jail_read(jail, head, sizeof *head))
        return ERR_OK;
    if (head_check(head, limits, err) ||
        raster_allocate((uint32_t)head->where.cols, (uint32_t)head->where.rows, out, err))
        return err->code;
    for (uint32_t row = 0; row < out->rows; row += rows)
        for (uint32_t col = 0; col < out->cols; col += cols) {
            block_size(head, col, row, &cols, &rows);
            word = word_receive(jail);
            if (word == WORD_ERROR)
                return error_receive(jail, whole, err);
            if (word != WORD_BLOCK || !rows_receive(jail, out, col, row, cols, rows))
                return ERR_OK;
        }
    *whole = word_receive(jail) == WORD_DONE;
    return ERR_OK;
}

static enum err_code silence_error(enum jail_end end, struct err *err)
{
    if (end == JAIL_TIMED_OUT)
        return err_set(err, ERR_UNPROCESSABLE,
                       "TIFF: not read within %d s of processor time and %d s in all", CPU_S,
                       WALL_S);
    if (end == JAIL_UNTIED)
        return err_set(err, ERR_INTERNAL, "TIFF: no limits could be set for the reader");
    return err_set(err, ERR_BAD_INPUT, "TIFF: the reader crashed on this file");
}

/* ---- its place ------------------------------------------------------------------------------- */

enum err_code tiff_place(const struct tiff_head *head, const struct raster_options *options,
                         struct raster *out, struct err *err)
{
    struct georef place;

    out->has_import = true;
    out->import = head->import;
    if (!head->where.has_transform)
        return ERR_OK;
    if (options->flip_y) {
        err_set(err, ERR_BAD_INPUT,
                "TIFF: the file itself says which row is north, flip_y=true "
                "is for files that do not");
        return err_at(err, "flip_y");
    }
    if (georef_place(&head->where, &place, err)) {
        char message[sizeof err->msg];

        memcpy(message, err->msg, sizeof message);
        return err_set(err, ERR_UNPROCESSABLE, "TIFF: %.300s", message);
    }
    if (place.is_x_flipped)
        return err_set(err, ERR_UNPROCESSABLE,
                       "TIFF: its columns run from east to west: turn it first (gdalwarp)");
    out->is_north_first = place.is_y_flipped;
    out->has_spacing = out->has_origin = true;
    out->spacing_x = place.spacing_m[0];
    out->spacing_y = place.spacing_m[1];
    out->origin_x = place.origin_m[0];
    out->origin_y = place.origin_m[1];
    out->is_in_metres = head->is_local || head->where.is_projected || head->where.is_geographic;
    if (place.has_geo) {
        out->import.has_geo = true;
        out->import.lat_deg = place.lat_deg;
        out->import.lng_deg = place.lng_deg;
        out->import.stretch = place.stretch;
    }
    if (!isfinite(out->origin_x) || !isfinite(out->origin_y) || !(out->spacing_x > 0) ||
        !(out->spacing_y > 0) || !isfinite(out->spacing_x) || !isfinite(out->spacing_y))
        return err_set(err, ERR_BAD_INPUT, "TIFF: spacing %g x %g m, origin %g, %g: no grid",
                       out->spacing_x, out->spacing_y, out->origin_x, out->origin_y);
    return ERR_OK;
}

enum err_code tiff_decode(const struct raster_source *source, struct raster *out, struct err *err)
{
    static const struct jail_limits bounds = {
        .memory_bytes = MEMORY_BYTES, .cpu_s = CPU_S, .wall_s = WALL_S};
    struct raster_source copy = *source;
    struct tiff_head head;
    struct jail jail;
    enum jail_end end;
    enum err_code code;
    bool whole;

    if (jail_start(&jail, &bounds, child_read, &copy, err))
        return err->code;
    code = receive(&jail, source->limits, &head, out, &whole, err);
    end = jail_end(&jail);
    if (code == ERR_OK && !whole)
        return silence_error(end, err);
    return code ? code : tiff_place(&head, source->options, out, err);
}
