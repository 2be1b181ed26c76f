/*
 * A library that reads hostile bytes should get as few files as possible. assimp selects a reader
 * by the file's name, and where that reader declines, by the signatures of all forty others: so a
 * file without the signature of its format never reaches it.
 *
 *   GLB      "glTF", version 2, length; then chunks: length, type (JSON first), content
 *   glTF     text that begins with {
 *   AC3D     "AC3D" and a hexadecimal version
 *   COLLADA  XML with <COLLADA near the beginning
 *
 * Sources: Khronos, "glTF 2.0", 4.4 binary glTF; Inivis, "AC3D file format".
 */
#include "formats/polygon/polygon_header.h"

#include "formats/little.h"

#include <string.h>

enum { COLLADA_SEARCH_BYTES = 1 << 16 };

const char *polygon_format_word(enum polygon_format format)
{
    static const char *const words[] = {
        [POLYGON_OBJ] = "OBJ",         [POLYGON_GLB] = "GLB", [POLYGON_GLTF] = "glTF",
        [POLYGON_PLY] = "PLY",         [POLYGON_STL] = "STL", [POLYGON_AC3D] = "AC3D",
        [POLYGON_COLLADA] = "COLLADA",
    };

    return words[format];
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

/* ---- AC3D, XML, JSON ------------------------------------------------------------------------ */

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
                                   struct err *err)
{
    switch (format) {
    case POLYGON_OBJ:
    case POLYGON_PLY:
    case POLYGON_STL:
        return ERR_OK;
    case POLYGON_GLB:
        return glb_check(bytes, length, err);
    case POLYGON_GLTF:
        return gltf_check(bytes, length, err);
    case POLYGON_AC3D:
        return ac3d_check(bytes, length, err);
    case POLYGON_COLLADA:
        return collada_check(bytes, length, err);
    }
    return err_set(err, ERR_INTERNAL, "polygon format %d does not exist", (int)format);
}
