/*
 * Wavefront OBJ. A text of statements, one a line:
 *
 *   v x y z [w | r g b | w r g b]    a vertex; words after z must be numbers and are dropped
 *   f c1 c2 c3 …                     a polygon of three or more corners, each v, v/vt, v//vn or
 *                                    v/vt/vn; v counts from 1, or backwards from -1, the last
 *                                    vertex before this line; forward references are accepted
 *   # …                              a comment, also after a statement
 *
 * Everything else (vt, vn, g, o, s, usemtl, l, p, curves) says nothing about polygons and is passed
 * over; vt and vn in a corner must be whole numbers but are not looked up. A line ends with LF, CR
 * LF or CR; a backslash before the end of the line joins the next, as a blank would, except in a
 * comment ("# C:\dir\" is one line).
 *
 * Two passes over the bytes. The first counts vertices, polygons and corners, so that limits are
 * judged with the true count and arrays are allocated once, exactly; the second parses. Nothing
 * holds a line: tokens are found in place by their ends, so a line's length costs nothing. Both
 * passes walk by the same three functions (statement_next, token_next, statement_end) and so count
 * the same.
 *
 * Source: Wavefront Technologies, "Advanced Visualizer manual, appendix B1: object files".
 */
#include "formats/polygon/obj.h"

#include "base/check.h"
#include "base/text/decimal.h"
#include "formats/word.h"

#include <string.h>

enum { VERTEX_NUMBERS_MAX = 7 }; /* x y z w r g b */

struct obj_token {
    const char *text;
    size_t length;
    size_t line;
};

struct obj_reader {
    const char *at, *end;
    size_t line;              /* of at, from 1 */
    struct obj_token token;   /* the last one read */
    struct obj_token keyword; /* the first one of this statement */
};

struct obj_counts {
    uint64_t vertices, polygons, corners;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

/* The length of the end of line at at: 0 where there is none. */
static size_t line_end(const struct obj_reader *reader, const char *at)
{
    if (at == reader->end || (*at != '\n' && *at != '\r'))
        return 0;
    return *at == '\r' && at + 1 < reader->end && at[1] == '\n' ? 2 : 1;
}

/* The length of a backslash with its end of line at at: 0 where there is none. */
static size_t continuation(const struct obj_reader *reader, const char *at)
{
    size_t end;

    if (at == reader->end || *at != '\\')
        return 0;
    end = line_end(reader, at + 1);
    return end ? end + 1 : 0;
}

static void blanks_skip(struct obj_reader *reader)
{
    for (size_t joined; reader->at < reader->end;) {
        if (is_blank(*reader->at)) {
            reader->at++;
        } else if ((joined = continuation(reader, reader->at))) {
            reader->at += joined;
            reader->line++;
        } else {
            return;
        }
    }
}

static void comment_skip(struct obj_reader *reader)
{
    while (reader->at < reader->end && !line_end(reader, reader->at))
        reader->at++;
}

/* Reads the next token of this statement; false at its end, where at stays. */
static bool token_next(struct obj_reader *reader)
{
    blanks_skip(reader);
    if (reader->at < reader->end && *reader->at == '#')
        comment_skip(reader);
    reader->token = (struct obj_token){.text = reader->at, .line = reader->line};
    while (reader->at < reader->end && !is_blank(*reader->at) && !line_end(reader, reader->at) &&
           !continuation(reader, reader->at))
        reader->at++;
    reader->token.length = (size_t)(reader->at - reader->token.text);
    return reader->token.length > 0;
}

/* Moves past the end of this statement. */
static void statement_end(struct obj_reader *reader)
{
    while (token_next(reader))
        ;
    reader->at += line_end(reader, reader->at);
    reader->line++;
}

/* Reads the first token of the next statement that has one; false at the end of the file. */
static bool statement_next(struct obj_reader *reader)
{
    while (reader->at < reader->end) {
        if (token_next(reader)) {
            reader->keyword = reader->token;
            return true;
        }
        statement_end(reader);
    }
    return false;
}

static bool statement_is(const struct obj_reader *reader, char letter)
{
    return reader->keyword.length == 1 && *reader->keyword.text == letter;
}

static struct obj_reader reader_of(const uint8_t *bytes, size_t length)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *text = (const char *)bytes;
    struct obj_reader reader = {.at = text, .end = text + length, .line = 1};

    if (length >= 3 && memcmp(text, mark, 3) == 0)
        reader.at += 3;
    return reader;
}

/* ERR_BAD_INPUT with the line and the text of the last token, cut and made printable. */
static enum err_code token_error(const struct obj_reader *reader, const char *what, struct err *err)
{
    char shown[WORD_SHOWN_MAX + 1];

    word_show(reader->token.text, reader->token.length, shown);
    return err_set(err, ERR_BAD_INPUT, "OBJ: line %zu: \"%s\" %s", reader->token.line, shown, what);
}

static struct obj_counts file_count(struct obj_reader reader)
{
    struct obj_counts counts = {0};

    for (; statement_next(&reader); statement_end(&reader)) {
        counts.vertices += statement_is(&reader, 'v');
        if (!statement_is(&reader, 'f'))
            continue;
        counts.polygons++;
        while (token_next(&reader))
            counts.corners++;
    }
    return counts;
}

static enum err_code vertex_read(struct obj_reader *reader, struct vec3 *out, struct err *err)
{
    double numbers[VERTEX_NUMBERS_MAX];
    size_t count = 0;

    for (; token_next(reader); count++) {
        if (count == VERTEX_NUMBERS_MAX)
            return token_error(reader, "is one number too many for a vertex", err);
        switch (decimal_parse(reader->token.text, reader->token.length, &numbers[count])) {
        case DECIMAL_OK:
            break;
        case DECIMAL_NAN:
        case DECIMAL_INFINITE:
            return token_error(reader, "is not finite", err);
        case DECIMAL_MALFORMED:
            return token_error(reader, "is not a number", err);
        }
    }
    if (count < 3)
        return err_set(err, ERR_BAD_INPUT,
                       "OBJ: line %zu: a vertex has 3 coordinates, this one %zu",
                       reader->keyword.line, count);
    *out = (struct vec3){numbers[0], numbers[1], numbers[2]};
    return ERR_OK;
}

/* Takes [+-]digits off the front of *at; beyond 2^40 any number is out of range. */
static bool whole_number(const char **at, const char *end, int64_t *out)
{
    const char *digits;
    bool negative = false;

    if (*at < end && (**at == '-' || **at == '+'))
        negative = *(*at)++ == '-';
    *out = 0;
    for (digits = *at; *at < end && **at >= '0' && **at <= '9'; (*at)++)
        if (*out < INT64_C(1) << 40)
            *out = *out * 10 + (**at - '0');
    *out = negative ? -*out : *out;
    return *at > digits;
}

/* The token as a corner: v, v/vt, v//vn or v/vt/vn; *out is v as written. */
static bool corner_split(const struct obj_token *token, int64_t *out)
{
    const char *at = token->text, *end = token->text + token->length;
    int64_t passed;

    if (!whole_number(&at, end, out))
        return false;
    if (at == end)
        return true;
    if (*at++ != '/')
        return false;
    if (at < end && *at != '/') {
        if (!whole_number(&at, end, &passed))
            return false;
        if (at == end)
            return true;
    }
    return at < end && *at++ == '/' && whole_number(&at, end, &passed) && at == end;
}

/* so_far: the vertices before this statement; total: those of the whole file. */
static enum err_code corner_read(const struct obj_reader *reader, size_t so_far, size_t total,
                                 uint32_t *out, struct err *err)
{
    int64_t index;

    if (!corner_split(&reader->token, &index))
        return token_error(reader, "is not a corner: v, v/vt, v//vn or v/vt/vn", err);
    if (index == 0)
        return token_error(reader, "is no vertex: they count from 1", err);
    if (index < 0)
        index += (int64_t)so_far + 1;
    if (index < 1 || index > (int64_t)total)
        return token_error(reader, "is no vertex of this file", err);
    *out = (uint32_t)(index - 1);
    return ERR_OK;
}

static enum err_code file_read(struct obj_reader reader, const struct obj_counts *counts,
                               struct polygon_set *out, struct err *err)
{
    size_t vertices = 0, polygons = 0;
    uint32_t corners = 0;

    for (; statement_next(&reader); statement_end(&reader)) {
        if (statement_is(&reader, 'v')) {
            if (vertex_read(&reader, &out->vertices[vertices++], err))
                return err->code;
        } else if (statement_is(&reader, 'f')) {
            while (token_next(&reader))
                if (corner_read(&reader, vertices, out->vertex_count, &out->corners[corners++],
                                err))
                    return err->code;
            if (corners - out->starts[polygons] < 3)
                return err_set(err, ERR_BAD_INPUT,
                               "OBJ: line %zu: a polygon has at least 3 corners, this one %u",
                               reader.keyword.line, corners - out->starts[polygons]);
            out->starts[++polygons] = corners;
        }
    }
    CHECK(vertices == counts->vertices && polygons == counts->polygons &&
          corners == counts->corners);
    return ERR_OK;
}

enum err_code obj_decode(const uint8_t *bytes, size_t length, const struct polygon_limits *limits,
                         struct polygon_set *out, struct err *err)
{
    struct obj_reader reader = reader_of(bytes, length);
    struct obj_counts counts = file_count(reader);

    if (polygon_check_counts("OBJ", counts.vertices, counts.polygons, counts.corners, limits, err))
        return err->code;
    if (counts.polygons == 0)
        return err_set(err, ERR_UNPROCESSABLE, "OBJ: the file has no polygons (f lines)");
    if (polygon_set_allocate((size_t)counts.vertices, (size_t)counts.polygons,
                             (size_t)counts.corners, out, err))
        return err->code;
    return file_read(reader, &counts, out, err);
}
