/*
 * assimp reads an index that is beyond an object's vertices, or that is no number, as 0: a surface
 * changes its shape without an error. It stops reading vertices at the first line that is none,
 * which moves further indices out of range. Both are refused here.
 *
 * The file is lines. Of an object these matter:
 *
 *   OBJECT type     begins an object; objects inside it come after its own lines, after "kids"
 *   numvert V       then V lines "x y z"
 *   refs N          of a surface (SURF); then N lines "index u v", 0 <= index < V
 *
 * so one walk over the lines with the V of the last OBJECT is enough, and needs no stack. Lines are
 * those of assimp: CR, LF or both end them, empty ones do not count, blanks before a word do not
 * matter. A similar line in a user's "data" counts as one of these, as in assimp.
 *
 * Source: Inivis, "AC3D file format".
 */
#include "formats/polygon/ac3d.h"

#include <stdbool.h>
#include <string.h>

enum { DIGITS_MAX = 18 };

struct ac3d_walk {
    const uint8_t *at, *end;   /* the rest */
    const uint8_t *text, *eol; /* the line, without blanks before it */
    size_t line;               /* its number, from 1 */
    bool has_vertices;         /* the object has had its numvert */
    int64_t vertices;
};

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* The next line that is not empty; false at the end. */
static bool line_next(struct ac3d_walk *walk)
{
    while (walk->at < walk->end) {
        walk->text = walk->at;
        while (walk->at < walk->end && *walk->at != '\n' && *walk->at != '\r')
            walk->at++;
        walk->eol = walk->at;
        if (walk->end - walk->at >= 2 && walk->at[0] == '\r' && walk->at[1] == '\n')
            walk->at++;
        if (walk->at < walk->end)
            walk->at++;
        walk->line++;
        if (walk->text == walk->eol)
            continue;
        while (walk->text < walk->eol && is_blank(*walk->text))
            walk->text++;
        return true;
    }
    return false;
}

/* The line begins with this word. */
static bool line_begins(const struct ac3d_walk *walk, const char *word)
{
    size_t left = (size_t)(walk->eol - walk->text), length = strlen(word);

    return left >= length && memcmp(walk->text, word, length) == 0 &&
           (left == length || is_blank(walk->text[length]));
}

/* A whole number with blanks before it, and a blank or the line's end after it. */
static bool number_read(const struct ac3d_walk *walk, const uint8_t *at, int64_t *out)
{
    bool negative;
    int digits = 0;

    while (at < walk->eol && is_blank(*at))
        at++;
    negative = at < walk->eol && *at == '-';
    at += negative;
    *out = 0;
    for (; at < walk->eol && *at >= '0' && *at <= '9' && digits < DIGITS_MAX; at++, digits++)
        *out = *out * 10 + (*at - '0');
    if (negative)
        *out = -*out;
    return digits > 0 && (at == walk->eol || is_blank(*at));
}

/* The number after the word that the line begins with. */
static enum err_code count_read(const struct ac3d_walk *walk, const char *word, int64_t *out,
                                struct err *err)
{
    if (!number_read(walk, walk->text + strlen(word), out) || *out < 0)
        return err_set(err, ERR_BAD_INPUT, "AC3D: line %zu: %s without a whole number", walk->line,
                       word);
    return ERR_OK;
}

static enum err_code vertices_check(struct ac3d_walk *walk, struct err *err)
{
    size_t line = walk->line;

    if (count_read(walk, "numvert", &walk->vertices, err))
        return err->code;
    walk->has_vertices = true;
    for (int64_t i = 0; i < walk->vertices; i++) {
        uint8_t first;

        if (!line_next(walk))
            return err_set(err, ERR_BAD_INPUT,
                           "AC3D: line %zu: numvert %lld, but the file ends after %lld vertices",
                           line, (long long)walk->vertices, (long long)i);
        first = walk->text < walk->eol ? *walk->text : ' ';
        if ((first < '0' || first > '9') && first != '-' && first != '+')
            return err_set(err, ERR_BAD_INPUT,
                           "AC3D: line %zu: no vertex, but numvert is %lld and this is %lld",
                           walk->line, (long long)walk->vertices, (long long)i);
    }
    return ERR_OK;
}

static enum err_code refs_check(struct ac3d_walk *walk, struct err *err)
{
    size_t line = walk->line;
    int64_t count, index;

    if (count_read(walk, "refs", &count, err))
        return err->code;
    if (!walk->has_vertices)
        return err_set(err, ERR_BAD_INPUT, "AC3D: line %zu: refs before the object's numvert",
                       line);
    for (int64_t i = 0; i < count; i++) {
        if (!line_next(walk))
            return err_set(err, ERR_BAD_INPUT,
                           "AC3D: line %zu: refs %lld, but the file ends after %lld", line,
                           (long long)count, (long long)i);
        if (!number_read(walk, walk->text, &index))
            return err_set(err, ERR_BAD_INPUT,
                           "AC3D: line %zu: no index, but refs is %lld and this is %lld",
                           walk->line, (long long)count, (long long)i);
        if (index < 0 || index >= walk->vertices)
            return err_set(err, ERR_BAD_INPUT,
                           "AC3D: line %zu: index %lld is out of range, the object has %lld "
                           "vertices",
                           walk->line, (long long)index, (long long)walk->vertices);
    }
    return ERR_OK;
}

enum err_code ac3d_check_indices(const uint8_t *bytes, size_t length, struct err *err)
{
    struct ac3d_walk walk = {.at = bytes, .end = bytes + length};

    while (line_next(&walk)) {
        if (line_begins(&walk, "OBJECT"))
            walk.has_vertices = false;
        else if (line_begins(&walk, "numvert") && vertices_check(&walk, err))
            return err->code;
        else if (line_begins(&walk, "refs") && refs_check(&walk, err))
            return err->code;
    }
    return ERR_OK;
}
