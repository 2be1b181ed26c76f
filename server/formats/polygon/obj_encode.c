/*
 * Surfaces as OBJ.
 *
 * A heightfield is written row by row: the vertices of the next row, then the triangles of the
 * cells between the two rows. So a face names only earlier vertices, as one-pass readers need, and
 * only two rows of numbers are kept. Samples that are holes have no vertex. Numbers are the
 * shortest text that reads back as the same float64 (base/text/json_number.h): a reader that
 * multiplies nothing gets the same bits.
 *
 * Text is gathered in a buffer of fixed size and handed on when it is nearly full; a statement is
 * put together piece by piece, and no piece is longer than OBJ_PIECE_MAX.
 *
 * Source: Wavefront Technologies, "Advanced Visualizer manual, appendix B1: object files".
 */
#include "formats/polygon/obj_encode.h"

#include "base/text/json_number.h"

#include <stdlib.h>
#include <string.h>

enum { OBJ_BUFFER_BYTES = 64 * 1024, OBJ_PIECE_MAX = 40 };
enum { VERTEX_LINE_BYTES = 3 + 3 * (JSON_NUMBER_TEXT_MAX + 1), NUMBER_DIGITS_MAX = 20 };

struct obj_writer {
    const struct obj_sink *sink;
    size_t used;
    bool is_over; /* the sink has had enough */
    char text[OBJ_BUFFER_BYTES];
};

static struct obj_writer *writer_create(const struct obj_sink *sink)
{
    struct obj_writer *w = malloc(sizeof *w);

    if (w) {
        w->sink = sink;
        w->used = 0;
        w->is_over = false;
    }
    return w;
}

static void flush(struct obj_writer *w)
{
    if (!w->is_over && w->used > 0)
        w->is_over = !w->sink->write(w->sink->to, w->text, w->used);
    w->used = 0;
}

/* Flushes, frees; true when all was taken. */
static bool writer_finish(struct obj_writer *w)
{
    bool is_whole;

    flush(w);
    is_whole = !w->is_over;
    free(w);
    return is_whole;
}

static char *room(struct obj_writer *w)
{
    if (w->used > OBJ_BUFFER_BYTES - OBJ_PIECE_MAX)
        flush(w);
    return w->text + w->used;
}

static void put_char(struct obj_writer *w, char c)
{
    *room(w) = c;
    w->used++;
}

static void put_number(struct obj_writer *w, double value)
{
    char *at = room(w);

    *at = ' ';
    w->used += 1 + json_number_text(value, at + 1);
}

static void put_index(struct obj_writer *w, uint64_t index)
{
    char digits[NUMBER_DIGITS_MAX];
    size_t n = sizeof digits;
    char *at = room(w);

    for (; index > 0 || n == sizeof digits; index /= 10)
        digits[--n] = (char)('0' + index % 10);
    *at = ' ';
    memcpy(at + 1, digits + n, sizeof digits - n);
    w->used += 1 + sizeof digits - n;
}

static void put_vertex(struct obj_writer *w, double x, double y, double z)
{
    put_char(w, 'v');
    put_number(w, x);
    put_number(w, y);
    put_number(w, z);
    put_char(w, '\n');
}

static void put_triangle(struct obj_writer *w, uint64_t a, uint64_t b, uint64_t c)
{
    if (a == 0 || b == 0 || c == 0)
        return;
    put_char(w, 'f');
    put_index(w, a);
    put_index(w, b);
    put_index(w, c);
    put_char(w, '\n');
}

/* ---- heightfields ---------------------------------------------------------------------------- */

/* The vertices of a row; index[column] is the vertex's number from 1, 0 for a hole. */
static void put_row(struct obj_writer *w, const struct heightfield *field, uint32_t row,
                    uint64_t *index, uint64_t *count)
{
    const struct heightfield_spec *spec = heightfield_spec(field);

    for (uint32_t column = 0; column < spec->cols; column++) {
        float h = heightfield_sample(field, column, row);

        index[column] = 0;
        if (h != h)
            continue;
        put_vertex(w, spec->origin_x_m + column * spec->spacing_x_m,
                   spec->origin_y_m + row * spec->spacing_y_m, (double)h);
        index[column] = ++*count;
    }
}

static void put_cells(struct obj_writer *w, const struct heightfield_spec *spec, uint32_t row,
                      const uint64_t *below, const uint64_t *above)
{
    for (uint32_t column = 0; column + 1 < spec->cols; column++) {
        uint64_t v00 = below[column], v10 = below[column + 1];
        uint64_t v01 = above[column], v11 = above[column + 1];
        bool is_main = spec->triangulation == TRIANGULATION_MAIN ||
                       (spec->triangulation == TRIANGULATION_ALTERNATING && (column + row) % 2);

        put_triangle(w, v00, v10, is_main ? v11 : v01);
        put_triangle(w, is_main ? v00 : v10, v11, v01);
    }
}

bool obj_encode_field(const struct heightfield *field, const struct obj_sink *sink)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    uint64_t *index = malloc(2 * (size_t)spec->cols * sizeof *index);
    uint64_t *rows[] = {index, index + spec->cols}, count = 0;
    struct obj_writer *w = index ? writer_create(sink) : NULL;

    if (!w) {
        free(index);
        return false;
    }
    put_row(w, field, 0, rows[0], &count);
    for (uint32_t row = 0; row + 1 < spec->rows && !w->is_over; row++) {
        const uint64_t *below = rows[row % 2];
        uint64_t *above = rows[(row + 1) % 2];

        put_row(w, field, row + 1, above, &count);
        put_cells(w, spec, row, below, above);
    }
    free(index);
    return writer_finish(w);
}

static uint64_t face_bytes_max(uint64_t corners, uint64_t vertices)
{
    uint64_t digits = 1;

    for (; vertices >= 10; vertices /= 10)
        digits++;
    return 2 + corners * (1 + digits);
}

uint64_t obj_field_bytes_max(const struct heightfield *field)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    uint64_t samples = (uint64_t)spec->cols * spec->rows;

    return samples * (VERTEX_LINE_BYTES + 2 * face_bytes_max(3, samples));
}

/* ---- polygons -------------------------------------------------------------------------------- */

bool obj_encode_polygons(const struct polygon_set *set, const struct obj_sink *sink)
{
    struct obj_writer *w = writer_create(sink);

    if (!w)
        return false;
    for (size_t i = 0; i < set->vertex_count && !w->is_over; i++)
        put_vertex(w, set->vertices[i].x, set->vertices[i].y, set->vertices[i].z);
    for (size_t i = 0; i < set->polygon_count && !w->is_over; i++) {
        put_char(w, set->starts[i] < set->starts[i + 1] ? 'f' : '#'); /* a gap keeps its line */
        for (uint32_t k = set->starts[i]; k < set->starts[i + 1]; k++)
            put_index(w, (uint64_t)set->corners[k] + 1);
        put_char(w, '\n');
    }
    return writer_finish(w);
}

uint64_t obj_polygons_bytes_max(const struct polygon_set *set)
{
    uint64_t corners = set->starts[set->polygon_count];

    return (uint64_t)set->vertex_count * VERTEX_LINE_BYTES + 2 * (uint64_t)set->polygon_count +
           face_bytes_max(corners, set->vertex_count);
}
