/*
 * The entry to the polygon readers: names and media types, limits, options, the rotation to Z up.
 *
 * The readers (obj.c, ply.c, stl.c, gltf.c, and assimp_import.c for all else) deliver the file's
 * own frame; here its vertices become metres with Z up, and only here is checked that they stay
 * finite under the scale. A rotation of the frame and a scale above 0 keep every polygon's
 * orientation.
 */
#include "formats/polygon/polygon_file.h"

#include "formats/polygon/assimp_import.h"
#include "formats/polygon/obj.h"
#include "formats/polygon/ply.h"
#include "formats/polygon/stl.h"
#include "formats/word.h"

#include <string.h>
#include <strings.h>

const struct polygon_options polygon_options_default = {.scale = 1};

static const struct {
    const char *ending;
    enum polygon_format format;
} format_endings[] = {
    {"obj", POLYGON_OBJ},  {"glb", POLYGON_GLB},   {"gltf", POLYGON_GLTF},
    {"ply", POLYGON_PLY},  {"stl", POLYGON_STL},   {"ac", POLYGON_AC3D},
    {"acc", POLYGON_AC3D}, {"ac3d", POLYGON_AC3D}, {"dae", POLYGON_COLLADA},
};

static const struct {
    const char *type;
    enum polygon_format format;
} format_media_types[] = {
    {"model/obj", POLYGON_OBJ},           {"model/gltf-binary", POLYGON_GLB},
    {"model/gltf+json", POLYGON_GLTF},    {"model/ply", POLYGON_PLY},
    {"application/ply", POLYGON_PLY},     {"model/stl", POLYGON_STL},
    {"application/x-ac3d", POLYGON_AC3D}, {"model/vnd.collada+xml", POLYGON_COLLADA},
};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

bool polygon_format_of_name(const char *name, enum polygon_format *out)
{
    const char *slash = strrchr(name, '/');
    const char *dot = strrchr(slash ? slash : name, '.');

    if (!dot)
        return false;
    for (size_t i = 0; i < COUNT_OF(format_endings); i++) {
        if (strcasecmp(dot + 1, format_endings[i].ending) == 0) {
            *out = format_endings[i].format;
            return true;
        }
    }
    return false;
}

bool polygon_format_of_media_type(const char *media_type, enum polygon_format *out)
{
    for (size_t i = 0; i < COUNT_OF(format_media_types); i++) {
        if (media_type_is(media_type, format_media_types[i].type)) {
            *out = format_media_types[i].format;
            return true;
        }
    }
    return false;
}

static enum err_code options_check(const struct polygon_options *options, struct err *err)
{
    if (!(options->scale > 0) || !isfinite(options->scale))
        return err_set(err, ERR_BAD_INPUT, "scale %g is not a finite number above 0",
                       options->scale);
    return ERR_OK;
}

/* The file's frame to metres with Z up. */
static enum err_code vertices_place(const struct polygon_options *options, struct polygon_set *set,
                                    struct err *err)
{
    for (size_t i = 0; i < set->vertex_count; i++) {
        struct vec3 v = set->vertices[i];

        if (options->up_y)
            v = (struct vec3){v.x, 0 - v.z, v.y}; /* of 0 no -0, which would be visible in answers
                                                   * */
        v = vec3_scale(v, options->scale);
        if (!vec3_is_finite(v))
            return err_set(err, ERR_BAD_INPUT, "vertex %zu is not finite at scale %g", i,
                           options->scale);
        set->vertices[i] = v;
    }
    set->precision_m *= options->scale;
    set->instances.axis = options->axis;
    for (size_t i = 0; i < set->instances.count; i++) {
        struct vec3 *t = &set->instances.at[i].translation;

        *t = vec3_scale(options->up_y ? (struct vec3){t->x, 0 - t->z, t->y} : *t, options->scale);
        if (!vec3_is_finite(*t))
            return err_set(err, ERR_BAD_INPUT, "the place of instance %zu is not finite", i);
    }
    return ERR_OK;
}

/* The options' axis in the file's frame. */
static struct vec3 file_axis(const struct polygon_options *options)
{
    struct vec3 axis = options->axis;

    return options->up_y ? (struct vec3){axis.x, axis.z, 0 - axis.y} : axis;
}

enum err_code polygon_decode(enum polygon_format format, const uint8_t *bytes, size_t length,
                             const struct polygon_options *options,
                             const struct polygon_limits *limits, struct polygon_set *out,
                             struct err *err)
{
    enum err_code code;

    options = options ? options : &polygon_options_default;
    limits = limits ? limits : &polygon_limits_default;
    bytes = length ? bytes : (const uint8_t *)"";
    *out = (struct polygon_set){0};
    if (options_check(options, err))
        return err->code;
    if (length > POLYGON_FILE_BYTES_MAX)
        return err_limit(err, ERR_TOO_LARGE, POLYGON_FILE_BYTES_MAX, (double)length,
                         "the file has %zu bytes, at most %d", length, POLYGON_FILE_BYTES_MAX);
    switch (format) {
    case POLYGON_OBJ:
        code = obj_decode(bytes, length, limits, out, err);
        break;
    case POLYGON_PLY:
        code = ply_decode(bytes, length, limits, out, err);
        break;
    case POLYGON_STL:
        code = stl_decode(bytes, length, limits, out, err);
        break;
    default:
        out->instances.axis = file_axis(options);
        code = assimp_decode(format, bytes, length, limits, out, err);
    }
    if (!code)
        code = vertices_place(options, out, err);
    if (code)
        polygon_set_free(out);
    return code;
}
