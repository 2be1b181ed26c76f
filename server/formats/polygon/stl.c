/*
 * STL, in its two forms:
 *
 *   binary   80 bytes, a count n, then n times 50 bytes: a normal and three vertices of
 * little-endian float32, and two bytes more text     solid NAME facet normal x y z outer loop
 *                  vertex x y z        three times
 *                endloop
 *              endfacet                any number of facets
 *            endsolid NAME             any number of solids
 *
 * A file is binary when its length is that of its count, and otherwise text when it begins with
 * "solid": binary files begin so, too. Normals are ignored; a facet's front is defined by the order
 * of its vertices. In text, words may be of either case, and line ends only matter after solid and
 * endsolid, whose names may be anything; a file that ends within a solid is refused, for one cut
 * short would otherwise pass for a smaller mesh.
 *
 * Source: 3D Systems, "StereoLithography interface specification", 1989.
 */
#include "formats/polygon/stl.h"

#include "base/check.h"
#include "formats/little.h"
#include "formats/token.h"

#include <string.h>

enum { HEAD_BYTES = 84, FACET_BYTES = 50, NORMAL_BYTES = 12 };

/* Arrays for so many triangles, each with vertices of its own; all but the vertices filled in. */
static enum err_code triangles_allocate(uint64_t count, const struct polygon_limits *limits,
                                        struct polygon_set *out, struct err *err)
{
    if (polygon_check_counts("STL", 3 * count, count, 3 * count, limits, err))
        return err->code;
    if (count == 0)
        return err_set(err, ERR_UNPROCESSABLE, "STL: the file has no polygons (facets)");
    if (polygon_set_allocate((size_t)count * 3, (size_t)count, (size_t)count * 3, out, err))
        return err->code;
    for (uint32_t i = 0; i < 3 * count; i++)
        out->corners[i] = i;
    for (uint32_t i = 0; i < count; i++)
        out->starts[i + 1] = 3 * (i + 1);
    return ERR_OK;
}

static enum err_code binary_decode(const uint8_t *bytes, const struct polygon_limits *limits,
                                   struct polygon_set *out, struct err *err)
{
    uint32_t count = little32(bytes + HEAD_BYTES - 4);

    if (triangles_allocate(count, limits, out, err))
        return err->code;
    for (size_t i = 0; i < (size_t)count * 3; i++) {
        const uint8_t *at =
            bytes + HEAD_BYTES + i / 3 * FACET_BYTES + NORMAL_BYTES + i % 3 * NORMAL_BYTES;

        out->vertices[i] = (struct vec3){(double)little_float(at), (double)little_float(at + 4),
                                         (double)little_float(at + 8)};
    }
    return ERR_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

struct stl_text {
    struct token_reader in;
    struct polygon_set *out; /* NULL while counting */
    size_t facets;           /* that have ended */
    size_t vertices;         /* of this facet */
    bool is_solid, is_facet; /* within one */
};

static enum err_code text_error(const struct stl_text *stl, const char *what, struct err *err)
{
    return token_error(&stl->in, "STL", what, err);
}

static enum err_code numbers_read(struct stl_text *stl, struct vec3 *out, struct err *err)
{
    double numbers[3] = {0};

    for (int i = 0; i < 3; i++) {
        if (!token_next(&stl->in))
            return err_set(err, ERR_BAD_INPUT, "STL: the file ends within a facet");
        if (out && token_number(&stl->in, "STL", &numbers[i], err))
            return err->code;
    }
    if (out)
        *out = (struct vec3){numbers[0], numbers[1], numbers[2]};
    return ERR_OK;
}

static enum err_code facet_begin(struct stl_text *stl, struct err *err)
{
    if (stl->is_facet)
        return text_error(stl, "is within a facet", err);
    stl->is_facet = true;
    stl->vertices = 0;
    if (!token_next(&stl->in) || !token_is(&stl->in, "normal"))
        return text_error(stl, "follows facet, where normal was expected", err);
    return numbers_read(stl, NULL, err);
}

static enum err_code vertex_read(struct stl_text *stl, struct err *err)
{
    size_t at = 3 * stl->facets + stl->vertices;

    if (!stl->is_facet || stl->vertices == 3)
        return text_error(stl, stl->is_facet ? "is a fourth one of its facet" : "is in no facet",
                          err);
    stl->vertices++;
    return numbers_read(stl, stl->out ? &stl->out->vertices[at] : NULL, err);
}

static enum err_code facet_end(struct stl_text *stl, struct err *err)
{
    if (!stl->is_facet || stl->vertices != 3)
        return text_error(stl, "ends no facet of three vertices", err);
    stl->is_facet = false;
    stl->facets++;
    return ERR_OK;
}

static enum err_code solid_toggle(struct stl_text *stl, bool is_begin, struct err *err)
{
    if (stl->is_facet || stl->is_solid == is_begin)
        return text_error(stl, is_begin ? "is within a solid" : "ends no solid", err);
    stl->is_solid = is_begin;
    token_skip_line(&stl->in);
    return ERR_OK;
}

static enum err_code word_read(struct stl_text *stl, struct err *err)
{
    const struct token_reader *in = &stl->in;

    if (token_is(in, "solid") || token_is(in, "endsolid"))
        return solid_toggle(stl, token_is(in, "solid"), err);
    if (!stl->is_solid)
        return text_error(stl, "is in no solid", err);
    if (token_is(in, "vertex"))
        return vertex_read(stl, err);
    if (token_is(in, "facet"))
        return facet_begin(stl, err);
    if (token_is(in, "endfacet"))
        return facet_end(stl, err);
    if (token_is(in, "outer") || token_is(in, "loop") || token_is(in, "endloop"))
        return ERR_OK;
    return text_error(stl, "is no word of STL", err);
}

/* Walks the whole text; counts, or fills *out where it is given. */
static enum err_code text_walk(struct stl_text *stl, struct err *err)
{
    while (token_next(&stl->in))
        if (word_read(stl, err))
            return err->code;
    if (stl->is_solid)
        return err_set(err, ERR_BAD_INPUT,
                       "STL: the file ends within a solid: endsolid is missing");
    return ERR_OK;
}

static enum err_code text_decode(const struct token_reader *in, const struct polygon_limits *limits,
                                 struct polygon_set *out, struct err *err)
{
    struct stl_text count = {.in = *in}, fill = {.in = *in, .out = out};

    if (text_walk(&count, err) || triangles_allocate(count.facets, limits, out, err) ||
        text_walk(&fill, err))
        return err->code;
    CHECK(fill.facets == count.facets);
    return ERR_OK;
}

enum err_code stl_decode(const uint8_t *bytes, size_t length, const struct polygon_limits *limits,
                         struct polygon_set *out, struct err *err)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *text = (const char *)bytes;
    struct token_reader in = {.start = text, .at = text, .end = text + length}, first;

    if (length >= HEAD_BYTES && (length - HEAD_BYTES) % FACET_BYTES == 0 &&
        (length - HEAD_BYTES) / FACET_BYTES == little32(bytes + HEAD_BYTES - 4))
        return binary_decode(bytes, limits, out, err);
    if (length >= 3 && memcmp(text, mark, 3) == 0)
        in.at += 3;
    first = in;
    if (token_next(&first) && token_is(&first, "solid"))
        return text_decode(&in, limits, out, err);
    return err_set(err, ERR_BAD_INPUT,
                   "STL: neither text (\"solid\") nor 84 + 50 n bytes with n in the header");
}
