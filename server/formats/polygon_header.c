/*
 * A library that reads hostile bytes is best asked as little as possible. assimp chooses a reader
 * by the file's name, and where that reader declines, by trying the signatures of all the others,
 * of which there are forty: so what does not begin as its format does never reaches it. And counts
 * in a header are allocated before a single element is read: so they are held against the length of
 * the file here, in 64 bits.
 *
 *   GLB      "glTF", version 2, length; then chunks: length, type (JSON first), content
 *   glTF     text that begins with {
 *   PLY      "ply", lines of format, element NAME COUNT, property …, end_header
 *   STL      80 bytes, count, 50 bytes each; or text that begins with "solid" and has a "facet"
 *   AC3D     "AC3D" and a hexadecimal version
 *   COLLADA  XML with <COLLADA near the beginning
 *
 * A PLY element takes at least the bytes of its scalars and of its lists' counts, in text at least
 * two bytes (a digit and a separator) for each property. An element without properties takes
 * nothing and could be counted without end: it is refused.
 *
 * Sources: Khronos, "glTF 2.0", 4.4 binary glTF; G. Turk, "The PLY polygon file format", 1994;
 * 3D Systems, "StereoLithography interface specification", 1989; Inivis, "AC3D file format".
 */
#include "formats/polygon_header.h"

#include <string.h>

enum {
    PLY_HEADER_BYTES_MAX = 1 << 16,
    COLLADA_SEARCH_BYTES = 1 << 16,
    STL_HEAD_BYTES = 84,
    STL_FACET_BYTES = 50
};

const char *polygon_format_word(enum polygon_format format)
{
    static const char *const words[] = {
        [POLYGON_OBJ] = "OBJ",         [POLYGON_GLB] = "GLB", [POLYGON_GLTF] = "glTF",
        [POLYGON_PLY] = "PLY",         [POLYGON_STL] = "STL", [POLYGON_AC3D] = "AC3D",
        [POLYGON_COLLADA] = "COLLADA",
    };

    return words[format];
}

static uint32_t little32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool begins(const uint8_t *bytes, size_t length, const char *text)
{
    return length >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

static const uint8_t *blanks_skip(const uint8_t *at, const uint8_t *end)
{
    if (begins(at, (size_t)(end - at), "\xef\xbb\xbf"))
        at += 3;
    while (at < end && (*at == ' ' || (*at >= '\t' && *at <= '\r')))
        at++;
    return at;
}

/* ---- GLB ------------------------------------------------------------------------------------ */

static enum err_code glb_check(const uint8_t *bytes, size_t length, struct err *err)
{
    size_t at = 12;

    if (!begins(bytes, length, "glTF"))
        return err_set(err, ERR_BAD_INPUT, "GLB: the file does not begin with \"glTF\"");
    if (length < 20)
        return err_set(err, ERR_BAD_INPUT, "GLB: the file ends within its header (%zu bytes)",
                       length);
    if (little32(bytes + 4) != 2)
        return err_set(err, ERR_BAD_INPUT, "GLB: version %u, only 2 is read", little32(bytes + 4));
    if (little32(bytes + 8) != length)
        return err_set(err, ERR_BAD_INPUT, "GLB: the header says %u bytes, the file has %zu",
                       little32(bytes + 8), length);
    if (little32(bytes + 16) != 0x4e4f534a)
        return err_set(err, ERR_BAD_INPUT, "GLB: the first chunk is not JSON");
    while (at < length) {
        if (length - at < 8 || little32(bytes + at) > length - at - 8)
            return err_set(err, ERR_BAD_INPUT, "GLB: the chunk at byte %zu goes beyond the file",
                           at);
        at += 8 + (size_t)little32(bytes + at);
    }
    return ERR_OK;
}

/* ---- PLY ------------------------------------------------------------------------------------ */

struct ply_word {
    const char *text;
    size_t length;
};

struct ply_header {
    const char *at, *end;
    struct ply_word words[6]; /* of the last line */
    size_t word_count;
    bool binary, has_format, has_element;
    uint64_t count;         /* of the element being described */
    uint64_t element_bytes; /* it takes at least, each */
    uint64_t bytes;         /* all elements before it take at least */
    uint64_t vertices, faces;
};

/* Splits the next line into words; false where no LF or CR LF ends it. */
static bool ply_line(struct ply_header *ply)
{
    const char *end = ply->at;

    while (end < ply->end && *end != '\n' && *end != '\r')
        end++;
    if (end == ply->end)
        return false;
    ply->word_count = 0;
    while (ply->at < end) {
        struct ply_word word = {.text = ply->at};

        while (ply->at < end && *ply->at != ' ' && *ply->at != '\t')
            ply->at++;
        word.length = (size_t)(ply->at - word.text);
        if (word.length > 0 && ply->word_count < sizeof ply->words / sizeof ply->words[0])
            ply->words[ply->word_count++] = word;
        if (ply->at < end)
            ply->at++;
    }
    if (*end == '\r' && (end + 1 == ply->end || end[1] != '\n'))
        return false; /* assimp would go on to read as it likes */
    ply->at = end + (*end == '\r' ? 2 : 1);
    return true;
}

static bool ply_word_is(const struct ply_header *ply, size_t index, const char *text)
{
    return index < ply->word_count && ply->words[index].length == strlen(text) &&
           memcmp(ply->words[index].text, text, strlen(text)) == 0;
}

/* The bytes of a scalar in a binary file; 0 for an unknown type. */
static unsigned ply_type_bytes(const struct ply_header *ply, size_t index)
{
    static const struct {
        const char *name;
        unsigned bytes;
    } types[] = {
        {"char", 1},  {"uchar", 1},   {"int8", 1},   {"uint8", 1},   {"short", 2}, {"ushort", 2},
        {"int16", 2}, {"uint16", 2},  {"int", 4},    {"uint", 4},    {"int32", 4}, {"uint32", 4},
        {"float", 4}, {"float32", 4}, {"double", 8}, {"float64", 8},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (ply_word_is(ply, index, types[i].name))
            return types[i].bytes;
    return 0;
}

static enum err_code ply_element_end(struct ply_header *ply, struct err *err)
{
    if (ply->has_element && ply->count > 0 && ply->element_bytes == 0)
        return err_set(err, ERR_BAD_INPUT, "PLY: an element has a count and no property");
    if (ply->count > 0 && ply->element_bytes > (UINT64_C(1) << 62) / ply->count)
        return err_set(err, ERR_BAD_INPUT, "PLY: the counts promise more than any file holds");
    ply->bytes += ply->count * ply->element_bytes;
    ply->count = ply->element_bytes = 0;
    return ERR_OK;
}

/* element NAME COUNT */
static enum err_code ply_element(struct ply_header *ply, struct err *err)
{
    const struct ply_word *word = &ply->words[2];
    uint64_t count = 0;

    if (ply_element_end(ply, err))
        return err->code;
    if (ply->word_count != 3 || word->length > 10)
        return err_set(err, ERR_BAD_INPUT,
                       "PLY: an element has no count, or one of over 10 digits");
    for (size_t i = 0; i < word->length; i++) {
        if (word->text[i] < '0' || word->text[i] > '9')
            return err_set(err, ERR_BAD_INPUT, "PLY: an element's count is not a whole number");
        count = count * 10 + (uint64_t)(word->text[i] - '0');
    }
    ply->has_element = true;
    ply->count = count;
    if (ply_word_is(ply, 1, "vertex"))
        ply->vertices += count;
    if (ply_word_is(ply, 1, "face"))
        ply->faces += count;
    return ERR_OK;
}

/* property TYPE NAME, or property list COUNT_TYPE TYPE NAME */
static enum err_code ply_property(struct ply_header *ply, struct err *err)
{
    bool list = ply_word_is(ply, 1, "list");
    unsigned bytes = ply_type_bytes(ply, list ? 2 : 1);

    if (!ply->has_element || bytes == 0 || (list && ply_type_bytes(ply, 3) == 0) ||
        ply->word_count < (list ? 5 : 3))
        return err_set(err, ERR_BAD_INPUT, "PLY: a property has no element or no known type");
    ply->element_bytes += ply->binary ? bytes : 2;
    return ERR_OK;
}

static enum err_code ply_statement(struct ply_header *ply, struct err *err)
{
    if (ply_word_is(ply, 0, "format")) {
        ply->has_format = true;
        ply->binary =
            ply_word_is(ply, 1, "binary_little_endian") || ply_word_is(ply, 1, "binary_big_endian");
        if ((!ply->binary && !ply_word_is(ply, 1, "ascii")) || !ply_word_is(ply, 2, "1.0"))
            return err_set(err, ERR_BAD_INPUT, "PLY: neither ascii nor binary of version 1.0");
        return ERR_OK;
    }
    if (ply_word_is(ply, 0, "comment") || ply_word_is(ply, 0, "obj_info"))
        return ERR_OK;
    if (!ply->has_format)
        return err_set(err, ERR_BAD_INPUT, "PLY: the format is not said first");
    if (ply_word_is(ply, 0, "element"))
        return ply_element(ply, err);
    if (ply_word_is(ply, 0, "property"))
        return ply_property(ply, err);
    if (ply_word_is(ply, 0, "end_header"))
        return ERR_OK;
    return err_set(err, ERR_BAD_INPUT, "PLY: a line of the header says nothing known");
}

static enum err_code ply_check(const uint8_t *bytes, size_t length,
                               const struct polygon_limits *limits, struct err *err)
{
    const char *text = (const char *)bytes;
    size_t header = length < PLY_HEADER_BYTES_MAX ? length : PLY_HEADER_BYTES_MAX;
    struct ply_header ply = {.at = text, .end = text + header};
    uint64_t held;

    if (!ply_line(&ply) || ply.word_count != 1 || !ply_word_is(&ply, 0, "ply"))
        return err_set(err, ERR_BAD_INPUT, "PLY: the first line is not \"ply\"");
    do {
        if (!ply_line(&ply))
            return err_set(err, ERR_BAD_INPUT,
                           "PLY: no end_header on a line of its own in the first %zu bytes",
                           header);
        if (ply_statement(&ply, err))
            return err->code;
    } while (!ply_word_is(&ply, 0, "end_header"));
    if (ply_element_end(&ply, err) ||
        polygon_check_counts("PLY", ply.vertices, ply.faces, 0, limits, err))
        return err->code;
    held = length - (uint64_t)(ply.at - text) + !ply.binary; /* the last line needs no end */
    if (ply.bytes > held)
        return err_set(err, ERR_BAD_INPUT,
                       "PLY: the elements take at least %llu bytes, the file has %llu",
                       (unsigned long long)ply.bytes, (unsigned long long)held);
    return ERR_OK;
}

/* ---- STL, AC3D, XML, JSON ------------------------------------------------------------------- */

static enum err_code stl_check(const uint8_t *bytes, size_t length,
                               const struct polygon_limits *limits, struct err *err)
{
    const uint8_t *at = blanks_skip(bytes, bytes + length);
    uint64_t count, held;

    if (length >= STL_HEAD_BYTES) {
        count = little32(bytes + STL_HEAD_BYTES - 4);
        held = STL_HEAD_BYTES + count * STL_FACET_BYTES;
        if (held == length)
            return polygon_check_counts("STL", count * 3, count, count * 3, limits, err);
    }
    if (begins(at, (size_t)(bytes + length - at), "solid"))
        return ERR_OK;
    return err_set(err, ERR_BAD_INPUT,
                   "STL: neither text (\"solid\") nor 84 + 50 n bytes with n in the header");
}

static enum err_code ac3d_check(const uint8_t *bytes, size_t length, struct err *err)
{
    if (!begins(bytes, length, "AC3D"))
        return err_set(err, ERR_BAD_INPUT, "AC3D: the file does not begin with \"AC3D\"");
    return ERR_OK;
}

static enum err_code collada_check(const uint8_t *bytes, size_t length, struct err *err)
{
    const uint8_t *at = blanks_skip(bytes, bytes + length);
    size_t near = length < COLLADA_SEARCH_BYTES ? length : COLLADA_SEARCH_BYTES;

    if (at == bytes + length || *at != '<' || !memmem(bytes, near, "<COLLADA", 8))
        return err_set(err, ERR_BAD_INPUT, "COLLADA: no <COLLADA> in the first %zu bytes", near);
    return ERR_OK;
}

static enum err_code gltf_check(const uint8_t *bytes, size_t length, struct err *err)
{
    const uint8_t *at = blanks_skip(bytes, bytes + length);

    if (at == bytes + length || *at != '{')
        return err_set(err, ERR_BAD_INPUT, "glTF: the file does not begin with {");
    return ERR_OK;
}

enum err_code polygon_header_check(enum polygon_format format, const uint8_t *bytes, size_t length,
                                   const struct polygon_limits *limits, struct err *err)
{
    switch (format) {
    case POLYGON_OBJ:
        return ERR_OK;
    case POLYGON_GLB:
        return glb_check(bytes, length, err);
    case POLYGON_GLTF:
        return gltf_check(bytes, length, err);
    case POLYGON_PLY:
        return ply_check(bytes, length, limits, err);
    case POLYGON_STL:
        return stl_check(bytes, length, limits, err);
    case POLYGON_AC3D:
        return ac3d_check(bytes, length, err);
    case POLYGON_COLLADA:
        return collada_check(bytes, length, err);
    }
    return err_set(err, ERR_INTERNAL, "polygon format %d does not exist", (int)format);
}
