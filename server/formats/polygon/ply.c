/*
 * PLY. A header of lines lists the elements and their properties; then the elements follow, in that
 * order:
 *
 *   ply
 *   format ascii 1.0 | binary_little_endian 1.0 | binary_big_endian 1.0
 *   comment …, obj_info …
 *   element vertex 8
 *   property double x                            a scalar
 *   element face 6
 *   property list uchar int vertex_indices       a count and so many numbers
 *   end_header
 *
 * Read are x, y and z of `vertex`, the list vertex_indices (or vertex_index) of `face`, and that of
 * `tristrips`, where -1 begins a new strip and every second triangle is turned. All other elements
 * and properties are passed over by their types. A scalar of any type becomes a float64, which
 * holds them all exactly; text goes to the nearest float64.
 *
 * Counts of the header are judged before anything is allocated: an element takes at least the bytes
 * of its scalars and of its lists' counts, in text at least two bytes (a digit and a separator) for
 * each property. An element without properties takes nothing and could be counted without end: it
 * is refused. Then one walk counts polygons and corners, and the same walk again fills them in.
 *
 * In text, line ends mean nothing; a number after the last element is refused, for then the header
 * counts fewer than there are. In binary files, bytes after the last element are ignored: some
 * writers end with a line end.
 *
 * Source: G. Turk, "The PLY polygon file format", 1994.
 */
#include "formats/polygon/ply.h"

#include "base/check.h"
#include "formats/token.h"

#include <string.h>

enum { HEADER_BYTES_MAX = 1 << 16, WORDS_MAX = 6, ELEMENTS_MAX = 32, PROPERTIES_MAX = 256 };

enum scalar { INT8, UINT8, INT16, UINT16, INT32, UINT32, FLOAT32, FLOAT64 };
enum encoding { TEXT, LITTLE, BIG };
enum element_kind { OTHER_ELEMENT, VERTEX, FACE, STRIPS };
enum use { OTHER_USE, USE_X, USE_Y, USE_Z, USE_CORNERS };

struct property {
    bool is_list;
    enum scalar count_type, type;
    enum use use;
};

struct element {
    enum element_kind kind;
    uint64_t count;
    uint64_t bytes; /* of one of them, at least */
    size_t first, properties;
};

struct word {
    const char *text;
    size_t length;
};

struct ply {
    struct token_reader in; /* the whole file; after the header it is at the elements */
    const char *header_end;
    struct word words[WORDS_MAX]; /* of the header's last line */
    size_t word_count;
    enum encoding encoding;
    bool has_format;
    struct element elements[ELEMENTS_MAX];
    size_t element_count;
    struct property properties[PROPERTIES_MAX];
    size_t property_count;
    uint64_t vertices; /* of the header */
};

static const uint8_t scalar_bytes[] = {1, 1, 2, 2, 4, 4, 4, 8};

/* ---- the header ------------------------------------------------------------------------------ */

/* Splits the next line into words; false where no LF or CR LF ends it. */
static bool line_next(struct ply *ply)
{
    const char *at = ply->in.at, *end = at;

    while (end < ply->header_end && *end != '\n' && *end != '\r')
        end++;
    if (end == ply->header_end)
        return false;
    for (ply->word_count = 0; at < end; at++) {
        struct word word = {.text = at};

        while (at < end && *at != ' ' && *at != '\t')
            at++;
        word.length = (size_t)(at - word.text);
        if (word.length > 0 && ply->word_count < WORDS_MAX)
            ply->words[ply->word_count++] = word;
    }
    if (*end == '\r' && (end + 1 == ply->header_end || end[1] != '\n'))
        return false; /* where would a binary body begin? */
    ply->in.at = end + (*end == '\r' ? 2 : 1);
    return true;
}

static bool word_is(const struct ply *ply, size_t index, const char *text)
{
    return index < ply->word_count && ply->words[index].length == strlen(text) &&
           memcmp(ply->words[index].text, text, strlen(text)) == 0;
}

static bool word_scalar(const struct ply *ply, size_t index, enum scalar *out)
{
    static const struct {
        const char *name;
        enum scalar type;
    } types[] = {
        {"char", INT8},   {"uchar", UINT8},   {"short", INT16},     {"ushort", UINT16},
        {"int", INT32},   {"uint", UINT32},   {"float", FLOAT32},   {"double", FLOAT64},
        {"int8", INT8},   {"uint8", UINT8},   {"int16", INT16},     {"uint16", UINT16},
        {"int32", INT32}, {"uint32", UINT32}, {"float32", FLOAT32}, {"float64", FLOAT64},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (word_is(ply, index, types[i].name)) {
            *out = types[i].type;
            return true;
        }
    }
    return false;
}

/* element NAME COUNT */
static enum err_code element_read(struct ply *ply, struct err *err)
{
    static const struct {
        const char *name;
        enum element_kind kind;
    } kinds[] = {{"vertex", VERTEX}, {"face", FACE}, {"tristrips", STRIPS}};
    struct element *element = &ply->elements[ply->element_count];
    const struct word *word = &ply->words[2];

    if (ply->element_count == ELEMENTS_MAX)
        return err_set(err, ERR_BAD_INPUT, "PLY: over %d elements", ELEMENTS_MAX);
    if (ply->word_count != 3 || word->length > 10)
        return err_set(err, ERR_BAD_INPUT,
                       "PLY: an element has no count, or one of over 10 digits");
    *element = (struct element){.first = ply->property_count};
    for (size_t i = 0; i < word->length; i++) {
        if (word->text[i] < '0' || word->text[i] > '9')
            return err_set(err, ERR_BAD_INPUT, "PLY: an element's count is not a whole number");
        element->count = element->count * 10 + (uint64_t)(word->text[i] - '0');
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (word_is(ply, 1, kinds[i].name))
            element->kind = kinds[i].kind;
    for (size_t i = 0; element->kind && i < ply->element_count; i++)
        if (ply->elements[i].kind == element->kind)
            return err_set(err, ERR_BAD_INPUT, "PLY: element %.*s is there twice",
                           (int)ply->words[1].length, ply->words[1].text);
    if (element->kind == VERTEX)
        ply->vertices = element->count;
    ply->element_count++;
    return ERR_OK;
}

/* What a property is for; OTHER_USE where there was such a one before. */
static enum use property_use(const struct ply *ply, const struct element *element, bool is_list)
{
    static const char *const axes[] = {"x", "y", "z"};
    static const enum use uses[] = {USE_X, USE_Y, USE_Z};

    if (is_list && (element->kind == FACE || element->kind == STRIPS) &&
        (word_is(ply, 4, "vertex_indices") || word_is(ply, 4, "vertex_index")))
        return USE_CORNERS;
    for (int i = 0; i < 3; i++)
        if (!is_list && element->kind == VERTEX && word_is(ply, 2, axes[i]))
            return uses[i];
    return OTHER_USE;
}

/* property TYPE NAME, or property list COUNT_TYPE TYPE NAME */
static enum err_code property_read(struct ply *ply, struct err *err)
{
    struct property property = {.is_list = word_is(ply, 1, "list")};
    struct element *element = ply->elements + ply->element_count - 1;

    if (ply->element_count == 0 ||
        (property.is_list && !word_scalar(ply, 2, &property.count_type)) ||
        !word_scalar(ply, property.is_list ? 3 : 1, &property.type) ||
        ply->word_count < (property.is_list ? 5 : 3))
        return err_set(err, ERR_BAD_INPUT, "PLY: a property has no element or no known type");
    if (ply->property_count == PROPERTIES_MAX)
        return err_set(err, ERR_BAD_INPUT, "PLY: over %d properties", PROPERTIES_MAX);
    property.use = property_use(ply, element, property.is_list);
    for (size_t i = element->first; property.use && i < ply->property_count; i++)
        if (ply->properties[i].use == property.use)
            return err_set(err, ERR_BAD_INPUT, "PLY: an element has x, y, z or its list twice");
    element->bytes += ply->encoding == TEXT
                          ? 2
                          : scalar_bytes[property.is_list ? property.count_type : property.type];
    element->properties++;
    ply->properties[ply->property_count++] = property;
    return ERR_OK;
}

static enum err_code statement_read(struct ply *ply, struct err *err)
{
    static const char *const encodings[] = {"ascii", "binary_little_endian", "binary_big_endian"};

    if (word_is(ply, 0, "format")) {
        for (size_t i = 0; i < 3; i++) {
            if (word_is(ply, 1, encodings[i]) && word_is(ply, 2, "1.0")) {
                ply->encoding = (enum encoding)i;
                ply->has_format = true;
                return ERR_OK;
            }
        }
        return err_set(err, ERR_BAD_INPUT, "PLY: neither ascii nor binary of version 1.0");
    }
    if (word_is(ply, 0, "comment") || word_is(ply, 0, "obj_info"))
        return ERR_OK;
    if (!ply->has_format)
        return err_set(err, ERR_BAD_INPUT, "PLY: the format is not given first");
    if (word_is(ply, 0, "element"))
        return element_read(ply, err);
    if (word_is(ply, 0, "property"))
        return property_read(ply, err);
    if (word_is(ply, 0, "end_header"))
        return ERR_OK;
    return err_set(err, ERR_BAD_INPUT, "PLY: a line of the header says nothing known");
}

/* Has every element its needed properties, and the file the least bytes of all elements? */
static enum err_code elements_check(const struct ply *ply, struct err *err)
{
    uint64_t bytes = 0, held = (uint64_t)(ply->in.end - ply->in.at);

    held += ply->encoding == TEXT; /* the last number needs no separator */
    for (size_t i = 0; i < ply->element_count; i++) {
        const struct element *element = &ply->elements[i];
        unsigned uses = 0;

        for (size_t k = 0; k < element->properties; k++)
            uses |= 1U << ply->properties[element->first + k].use;
        if (element->count > 0 && element->properties == 0)
            return err_set(err, ERR_BAD_INPUT, "PLY: an element has a count and no property");
        if (element->kind == VERTEX && (uses >> USE_X & 7) != 7)
            return err_set(err, ERR_BAD_INPUT, "PLY: the vertices lack x, y or z");
        if ((element->kind == FACE || element->kind == STRIPS) && !(uses >> USE_CORNERS))
            return err_set(err, ERR_BAD_INPUT, "PLY: the faces have no list vertex_indices");
        bytes += element->count * element->bytes; /* < 2^34 · 2^11, 32 times */
    }
    if (bytes > held)
        return err_set(err, ERR_BAD_INPUT,
                       "PLY: the elements take at least %llu bytes, the file has %llu",
                       (unsigned long long)bytes, (unsigned long long)held);
    return ERR_OK;
}

static enum err_code header_read(struct ply *ply, const struct polygon_limits *limits,
                                 struct err *err)
{
    if (!line_next(ply) || ply->word_count != 1 || !word_is(ply, 0, "ply"))
        return err_set(err, ERR_BAD_INPUT, "PLY: the first line is not \"ply\"");
    do {
        if (!line_next(ply))
            return err_set(err, ERR_BAD_INPUT,
                           "PLY: no end_header on a line of its own in the first %zu bytes",
                           (size_t)(ply->header_end - ply->in.start));
        if (statement_read(ply, err))
            return err->code;
    } while (!word_is(ply, 0, "end_header"));
    for (size_t i = 0; i < ply->element_count; i++)
        if (ply->elements[i].kind == FACE &&
            polygon_check_counts("PLY", 0, ply->elements[i].count, 0, limits, err))
            return err->code;
    if (polygon_check_counts("PLY", ply->vertices, 0, 0, limits, err))
        return err->code;
    return elements_check(ply, err);
}

/* ---- the elements ---------------------------------------------------------------------------- */

static double scalar_load(const uint8_t *at, enum scalar type, bool is_big)
{
    unsigned bytes = scalar_bytes[type];
    uint64_t bits = 0;
    uint32_t half;
    double whole;
    float single;

    for (unsigned i = 0; i < bytes; i++)
        bits |= (uint64_t)at[is_big ? bytes - 1 - i : i] << 8 * i;
    switch (type) {
    case INT8:
        return (int8_t)bits;
    case INT16:
        return (int16_t)bits;
    case INT32:
        return (int32_t)bits;
    case UINT8:
    case UINT16:
    case UINT32:
        return (double)bits;
    case FLOAT32:
        half = (uint32_t)bits;
        memcpy(&single, &half, sizeof single);
        return (double)single;
    case FLOAT64:
        break;
    }
    memcpy(&whole, &bits, sizeof whole);
    return whole;
}

static enum err_code cut_error(struct err *err)
{
    return err_set(err, ERR_BAD_INPUT, "PLY: the file ends within its elements");
}

static enum err_code scalar_read(struct ply *ply, enum scalar type, double *out, struct err *err)
{
    struct token_reader *in = &ply->in;

    if (ply->encoding == TEXT)
        return token_next(in) ? token_number(in, "PLY", out, err) : cut_error(err);
    if ((size_t)(in->end - in->at) < scalar_bytes[type])
        return cut_error(err);
    in->text = in->at;
    *out = scalar_load((const uint8_t *)in->at, type, ply->encoding == BIG);
    in->at += scalar_bytes[type];
    return ERR_OK;
}

static enum err_code scalars_skip(struct ply *ply, enum scalar type, uint64_t count,
                                  struct err *err)
{
    struct token_reader *in = &ply->in;

    if (ply->encoding != TEXT) {
        if ((uint64_t)(in->end - in->at) < count * scalar_bytes[type])
            return cut_error(err);
        in->at += count * scalar_bytes[type];
        return ERR_OK;
    }
    for (uint64_t i = 0; i < count; i++)
        if (!token_next(in))
            return cut_error(err);
    return ERR_OK;
}

/*
 * ERR_BAD_INPUT about the last number; the message has the line of a text, the element of a binary
 * file.
 */
static enum err_code number_error(const struct ply *ply, double number, const char *what,
                                  struct err *err)
{
    if (ply->encoding == TEXT)
        return token_error(&ply->in, "PLY", what, err);
    return err_set(err, ERR_BAD_INPUT, "PLY: %.17g at byte %zu %s", number,
                   (size_t)(ply->in.text - ply->in.start), what);
}

static enum err_code count_read(struct ply *ply, enum scalar type, uint64_t *out, struct err *err)
{
    double number = 0;

    if (scalar_read(ply, type, &number, err))
        return err->code;
    if (!(number >= 0 && number <= UINT32_MAX && number == floor(number)))
        return number_error(ply, number, "is no count of a list", err);
    *out = (uint64_t)number;
    return ERR_OK;
}

/* Where the walk is; arrays are only there when it fills. */
struct ply_walk {
    struct polygon_set *out; /* NULL while counting */
    uint64_t vertices, polygons, corners;
};

static void polygon_end(struct ply_walk *walk)
{
    walk->polygons++;
    if (walk->out)
        walk->out->starts[walk->polygons] = (uint32_t)walk->corners;
}

static void corner_add(struct ply_walk *walk, double index)
{
    if (walk->out)
        walk->out->corners[walk->corners] = (uint32_t)index;
    walk->corners++;
}

static enum err_code index_check(const struct ply *ply, double index, struct err *err)
{
    if (!(index >= 0 && index < (double)ply->vertices && index == floor(index)))
        return number_error(ply, index, "is no vertex of this file", err);
    return ERR_OK;
}

/* A list of one polygon; of fewer than three corners there is none. */
static enum err_code face_read(struct ply *ply, struct ply_walk *walk, enum scalar type,
                               uint64_t count, struct err *err)
{
    if (count < 3 || !walk->out) {
        if (scalars_skip(ply, type, count, err))
            return err->code;
        if (count < 3)
            return ERR_OK;
        walk->corners += count;
    }
    for (uint64_t i = 0; walk->out && i < count; i++) {
        double index = 0;

        if (scalar_read(ply, type, &index, err) || index_check(ply, index, err))
            return err->code;
        corner_add(walk, index);
    }
    polygon_end(walk);
    return ERR_OK;
}

static enum err_code strips_read(struct ply *ply, struct ply_walk *walk, enum scalar type,
                                 uint64_t count, struct err *err)
{
    double last[2] = {0};
    uint64_t run = 0; /* indices since the last -1 */

    for (uint64_t i = 0; i < count; i++) {
        double index = 0;

        if (scalar_read(ply, type, &index, err))
            return err->code;
        if (index == -1) {
            run = 0;
            continue;
        }
        if (index_check(ply, index, err))
            return err->code;
        if (++run > 2) {
            corner_add(walk, last[run % 2 == 0]);
            corner_add(walk, last[run % 2 != 0]);
            corner_add(walk, index);
            polygon_end(walk);
        }
        last[0] = last[1];
        last[1] = index;
    }
    return ERR_OK;
}

static double *coordinate_at(struct vec3 *vertex, enum use use)
{
    return use == USE_X ? &vertex->x : use == USE_Y ? &vertex->y : &vertex->z;
}

static enum err_code property_walk(struct ply *ply, struct ply_walk *walk,
                                   const struct element *element, const struct property *property,
                                   struct err *err)
{
    uint64_t count = 1;
    double number = 0;

    if (property->is_list && count_read(ply, property->count_type, &count, err))
        return err->code;
    if (property->use == USE_CORNERS)
        return element->kind == FACE ? face_read(ply, walk, property->type, count, err)
                                     : strips_read(ply, walk, property->type, count, err);
    if (property->use == OTHER_USE || !walk->out)
        return scalars_skip(ply, property->type, count, err);
    if (scalar_read(ply, property->type, &number, err))
        return err->code;
    *coordinate_at(&walk->out->vertices[walk->vertices], property->use) = number;
    return ERR_OK;
}

static enum err_code elements_walk(struct ply *ply, struct ply_walk *walk,
                                   const struct polygon_limits *limits, struct err *err)
{
    for (size_t e = 0; e < ply->element_count; e++) {
        const struct element *element = &ply->elements[e];

        for (uint64_t i = 0; i < element->count; i++) {
            for (size_t k = 0; k < element->properties; k++)
                if (property_walk(ply, walk, element, &ply->properties[element->first + k], err))
                    return err->code;
            walk->vertices += element->kind == VERTEX;
        }
        if (polygon_check_counts("PLY", walk->vertices, walk->polygons, walk->corners, limits, err))
            return err->code;
    }
    if (ply->encoding == TEXT && token_next(&ply->in))
        return token_error(&ply->in, "PLY", "is one number too many: the header counts fewer", err);
    return ERR_OK;
}

enum err_code ply_decode(const uint8_t *bytes, size_t length, const struct polygon_limits *limits,
                         struct polygon_set *out, struct err *err)
{
    const char *text = (const char *)bytes;
    struct ply ply = {.in = {.start = text, .at = text, .end = text + length}};
    struct ply_walk count = {.out = NULL}, fill = {.out = out};
    const char *elements;

    ply.header_end = text + (length < HEADER_BYTES_MAX ? length : HEADER_BYTES_MAX);
    if (header_read(&ply, limits, err))
        return err->code;
    elements = ply.in.at;
    if (elements_walk(&ply, &count, limits, err))
        return err->code;
    if (count.polygons == 0)
        return err_set(err, ERR_UNPROCESSABLE, "PLY: the file has no polygons");
    if (polygon_set_allocate((size_t)count.vertices, (size_t)count.polygons, (size_t)count.corners,
                             out, err))
        return err->code;
    ply.in.at = elements;
    if (elements_walk(&ply, &fill, limits, err))
        return err->code;
    CHECK(fill.vertices == count.vertices && fill.polygons == count.polygons &&
          fill.corners == count.corners);
    return ERR_OK;
}
