/*
 * glTF 2.0 in its usual form: buffers in the file itself (the BIN chunk of a GLB,
 * base64 in a data: URI), positions of float32, indices of 8, 16 or 32 bits, no compression.
 * Positions are float32 by the format, but the nodes place them by JSON numbers: the tree's
 * transforms are multiplied in float64 and nothing is rounded afterwards. assimp, which reads the
 * rest (sparse accessors, Draco, version 1, files that need other extensions), rounds each to
 * float32.
 *
 *   nodes -> matrix, or translation · rotation · scale; mesh; children;
 *     extensions.EXT_mesh_gpu_instancing.attributes -> TRANSLATION, ROTATION, SCALE
 *   meshes[] -> primitives[] -> POSITION, indices, mode
 *   accessors[] -> bufferViews[] -> buffers[]
 *
 *   mode 4 TRIANGLES (the default)        n / 3 polygons of n indices, or of n points
 *        5 TRIANGLE_STRIP                 n - 2: of i, i + 1, i + 2, each second one turned
 *        6 TRIANGLE_FAN                   n - 2: of i + 1, i + 2, 0
 *        points and lines                 none
 *
 * A mesh has the sum of its primitives, and the scene that of the meshes of its nodes, each as
 * often as a node uses it. Meshes that no node of the scene uses are not read. The nodes are walked
 * depth first by a stack of bounded depth and for a bounded number of items, so that shared
 * subtrees do not matter; a node below itself is refused. The walk counts first, against the
 * limits, and then the same walk fills in. A walk before both finds what is in several places
 * (gltf_uses.h). A mirror (negative determinant) reverses corners
 * (3.7.4). A node with EXT_mesh_gpu_instancing has its mesh in a place of its own for each element
 * of the attributes, in their order.
 *
 * assimp drops a triangle that has an index out of range and reads on. So its result is compared
 * with the sum of the JSON's counts. Malformed JSON counts as zero: assimp has to refuse it.
 *
 * cJSON's arrays are lists: those read by index get a table each.
 *
 * Source: Khronos, "glTF 2.0", 3.5 scenes, 3.6 buffers, 3.7 meshes, 4.4 binary glTF;
 * "EXT_mesh_gpu_instancing".
 */
#include "formats/polygon/gltf.h"

#include "base/text/base64.h"
#include "base/check.h"
#include "formats/polygon/gltf_uses.h"
#include "formats/little.h"
#include "formats/polygon/polygon_header.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

enum { NODE_DEPTH_MAX = 256, VISITS_MAX = 1 << 21, GLB_JSON_AT = 20 };
#define SUM_MAX (UINT64_C(1) << 53)
#define INSTANCING "EXT_mesh_gpu_instancing"

/* The items of an array of the document; none where there is no such array. */
struct gltf_table {
    const cJSON **items;
    size_t count;
};

/* The bytes of a buffer. */
struct gltf_bytes {
    const uint8_t *at;
    size_t length;
    uint8_t *own; /* to be freed */
};

struct gltf_document {
    const char *word; /* of the format */
    cJSON *json;
    struct gltf_table accessors, views, buffers, meshes, nodes, scenes;
    uint64_t *polygons;         /* that each mesh promises */
    struct gltf_bytes *content; /* of each buffer, once contents_read() is called */
    struct gltf_bytes bin;      /* of a GLB, borrowed */
};

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, name) : NULL;
}

/* A whole number from 0; otherwise, or where item is NULL, the fallback. */
static uint64_t number_or(const cJSON *item, uint64_t fallback)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0))
        return fallback;
    return item->valuedouble < (double)SUM_MAX ? (uint64_t)item->valuedouble : SUM_MAX;
}

/* The first of an array's items. */
static const cJSON *array_first(const cJSON *array)
{
    return cJSON_IsArray(array) ? array->child : NULL;
}

static bool table_fill(const cJSON *json, const char *name, struct gltf_table *out)
{
    const cJSON *first = array_first(member(json, name));
    size_t count = 0;

    for (const cJSON *item = first; item; item = item->next)
        count++;
    out->items = malloc((count ? count : 1) * sizeof *out->items);
    if (!out->items)
        return false;
    for (const cJSON *item = first; item; item = item->next)
        out->items[out->count++] = item;
    return true;
}

/* NULL where the index is none of the table's. */
static const cJSON *table_at(const struct gltf_table *table, const cJSON *index)
{
    uint64_t i = number_or(index, SUM_MAX);

    return i < table->count ? table->items[i] : NULL;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b < SUM_MAX ? a + b : SUM_MAX; /* both are SUM_MAX at most */
}

static uint64_t primitive_polygons(const struct gltf_document *document, const cJSON *primitive)
{
    const cJSON *accessor = member(primitive, "indices");
    uint64_t count;

    if (!accessor)
        accessor = member(member(primitive, "attributes"), "POSITION");
    count = number_or(member(table_at(&document->accessors, accessor), "count"), 0);
    switch (number_or(member(primitive, "mode"), 4)) {
    case 4:
        return count / 3;
    case 5:
    case 6:
        return count > 2 ? count - 2 : 0;
    default:
        return 0;
    }
}

static uint64_t mesh_polygons(const struct gltf_document *document, const cJSON *mesh)
{
    uint64_t polygons = 0;

    for (const cJSON *primitive = array_first(member(mesh, "primitives")); primitive;
         primitive = primitive->next)
        polygons = sum(polygons, primitive_polygons(document, primitive));
    return polygons;
}

static void document_free(struct gltf_document *document)
{
    for (size_t i = 0; document->content && i < document->buffers.count; i++)
        free(document->content[i].own);
    free(document->content);
    free(document->polygons);
    free(document->views.items);
    free(document->buffers.items);
    free(document->scenes.items);
    free(document->nodes.items);
    free(document->meshes.items);
    free(document->accessors.items);
    cJSON_Delete(document->json);
}

/* Finds the JSON and the BIN chunk of a GLB whose header is well. */
static void glb_split(struct gltf_document *document, const uint8_t **bytes, size_t *length)
{
    const uint8_t *end = *bytes + *length;
    size_t json_length = little32(*bytes + GLB_JSON_AT - 8);
    const uint8_t *next = *bytes + GLB_JSON_AT + json_length;

    if (end - next >= 8 && memcmp(next + 4, "BIN", 4) == 0)
        document->bin = (struct gltf_bytes){.at = next + 8, .length = little32(next)};
    *bytes += GLB_JSON_AT;
    *length = json_length;
}

/* document_free() it in any case. */
static enum err_code document_read(struct gltf_document *document, enum polygon_format format,
                                   const uint8_t *bytes, size_t length, struct err *err)
{
    if (format == POLYGON_GLB)
        glb_split(document, &bytes, &length);
    document->json = cJSON_ParseWithLength((const char *)bytes, length);
    if (!document->json)
        return err_set(err, ERR_BAD_INPUT,
                       "%s: the JSON has too many values or levels, or is no JSON", document->word);
    if (!table_fill(document->json, "accessors", &document->accessors) ||
        !table_fill(document->json, "bufferViews", &document->views) ||
        !table_fill(document->json, "buffers", &document->buffers) ||
        !table_fill(document->json, "meshes", &document->meshes) ||
        !table_fill(document->json, "nodes", &document->nodes) ||
        !table_fill(document->json, "scenes", &document->scenes))
        return err_set(err, ERR_NO_MEMORY, "%s: no memory for its tables", document->word);
    document->polygons = calloc(document->meshes.count + 1, sizeof *document->polygons);
    if (!document->polygons)
        return err_set(err, ERR_NO_MEMORY, "%s: no memory for its tables", document->word);
    for (size_t i = 0; i < document->meshes.count; i++)
        document->polygons[i] = mesh_polygons(document, document->meshes.items[i]);
    return ERR_OK;
}

static const cJSON *scene_nodes(const struct gltf_document *document)
{
    uint64_t scene = number_or(member(document->json, "scene"), 0);

    if (scene >= document->scenes.count)
        return NULL;
    return array_first(member(document->scenes.items[scene], "nodes"));
}

static enum err_code scene_count(const struct gltf_document *document, uint64_t *polygons,
                                 struct err *err)
{
    const cJSON *stack[NODE_DEPTH_MAX] = {scene_nodes(document)}; /* the next item of each list */
    size_t depth = 1, visits = 0;

    *polygons = 0;
    while (depth > 0) {
        const cJSON *item = stack[depth - 1], *node, *children;
        uint64_t mesh;

        if (!item) {
            depth--;
            continue;
        }
        stack[depth - 1] = item->next;
        node = table_at(&document->nodes, item);
        mesh = number_or(member(node, "mesh"), SUM_MAX);
        if (mesh < document->meshes.count)
            *polygons = sum(*polygons, document->polygons[mesh]);
        children = array_first(member(node, "children"));
        if (++visits > VISITS_MAX || (children && depth == NODE_DEPTH_MAX))
            return err_set(err, ERR_BAD_INPUT, "%s: over %d nodes, or over %d deep", document->word,
                           VISITS_MAX, NODE_DEPTH_MAX);
        if (children)
            stack[depth++] = children;
    }
    return ERR_OK;
}

enum err_code gltf_check_polygons(enum polygon_format format, const uint8_t *bytes, size_t length,
                                  uint64_t got, struct err *err)
{
    struct gltf_document document = {.word = polygon_format_word(format)};
    uint64_t promised = 0;
    enum err_code code = document_read(&document, format, bytes, length, err);

    if (!code)
        code = scene_count(&document, &promised, err);
    if (!code && promised > got)
        code = err_set(
            err, ERR_BAD_INPUT, "%s: %llu of %llu polygons are missing: an index is out of range",
            document.word, (unsigned long long)(promised - got), (unsigned long long)promised);
    document_free(&document);
    return code;
}

/* ---- is it read here, or by assimp? ---------------------------------------------------------- */

static bool text_is(const cJSON *item, const char *text)
{
    return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

static bool text_begins(const cJSON *item, const char *text)
{
    return cJSON_IsString(item) && strncmp(item->valuestring, text, strlen(text)) == 0;
}

/* Where the base64 of a data: URI begins; NULL when it is none. */
static const char *uri_base64(const cJSON *uri)
{
    const char *comma = text_begins(uri, "data:") ? strchr(uri->valuestring, ',') : NULL;

    if (!comma || comma - uri->valuestring < 7 || memcmp(comma - 7, ";base64", 7) != 0)
        return NULL;
    return comma + 1;
}

static bool extensions_are_known(const struct gltf_document *document)
{
    static const char *const harmless[] = {"KHR_materials_", "KHR_texture_", "KHR_lights_",
                                           "EXT_texture_", INSTANCING};

    for (const cJSON *name = array_first(member(document->json, "extensionsRequired")); name;
         name = name->next) {
        bool is_harmless = false;

        for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
            is_harmless = is_harmless || text_begins(name, harmless[i]);
        if (!is_harmless)
            return false;
    }
    return true;
}

static uint64_t component_bytes(const cJSON *accessor)
{
    switch (number_or(member(accessor, "componentType"), 0)) {
    case 5120:
    case 5121:
        return 1;
    case 5122:
    case 5123:
        return 2;
    case 5125:
    case 5126:
        return 4;
    default:
        return 0;
    }
}

/* What components are: bits. */
enum { FLOATS = 1, INDICES = 2, NORMALIZED = 4 /* signed */ };

static unsigned component_kind(const cJSON *accessor)
{
    switch (number_or(member(accessor, "componentType"), 0)) {
    case 5120:
    case 5122:
        return cJSON_IsTrue(member(accessor, "normalized")) ? NORMALIZED : 0;
    case 5121:
    case 5123:
    case 5125:
        return INDICES;
    case 5126:
        return FLOATS;
    default:
        return 0;
    }
}

static bool accessor_is_plain(const struct gltf_document *document, const cJSON *index,
                              const char *type, unsigned kinds)
{
    const cJSON *accessor = table_at(&document->accessors, index);

    return accessor && text_is(member(accessor, "type"), type) &&
           (component_kind(accessor) & kinds) && !member(accessor, "sparse") &&
           table_at(&document->views, member(accessor, "bufferView"));
}

static bool primitive_is_plain(const struct gltf_document *document, const cJSON *primitive)
{
    const cJSON *indices = member(primitive, "indices");

    return !member(member(primitive, "extensions"), "KHR_draco_mesh_compression") &&
           accessor_is_plain(document, member(member(primitive, "attributes"), "POSITION"), "VEC3",
                             FLOATS) &&
           (!indices || accessor_is_plain(document, indices, "SCALAR", INDICES));
}

static bool document_is_plain(const struct gltf_document *document)
{
    uint64_t scene = number_or(member(document->json, "scene"), 0);

    if (!text_begins(member(member(document->json, "asset"), "version"), "2.") ||
        scene >= document->scenes.count || !extensions_are_known(document))
        return false;
    for (size_t i = 0; i < document->buffers.count; i++) {
        const cJSON *uri = member(document->buffers.items[i], "uri");

        if (uri ? !uri_base64(uri) : i > 0 || !document->bin.at)
            return false;
    }
    for (size_t i = 0; i < document->meshes.count; i++)
        for (const cJSON *primitive = array_first(member(document->meshes.items[i], "primitives"));
             primitive; primitive = primitive->next)
            if (!primitive_is_plain(document, primitive))
                return false;
    return true;
}

/* assimp would ignore it. */
static bool document_has_instancing(const struct gltf_document *document)
{
    for (size_t i = 0; i < document->nodes.count; i++)
        if (member(member(document->nodes.items[i], "extensions"), INSTANCING))
            return true;
    return false;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Decodes with or without padding into out[size]; false when it is none. */
static bool base64_decode(const char *text, uint8_t *out, size_t size, size_t *length)
{
    const size_t digits = strcspn(text, "="), padding = strspn(text + digits, "=");
    const long bytes = base64_read(text, digits, BASE64_OTHERS, out, size);

    *length = bytes < 0 ? 0 : (size_t)bytes;
    return bytes >= 0 && padding <= 2 && text[digits + padding] == '\0';
}

static enum err_code contents_read(struct gltf_document *document, struct err *err)
{
    document->content = calloc(document->buffers.count + 1, sizeof *document->content);
    if (!document->content)
        return err_set(err, ERR_NO_MEMORY, "%s: no memory for its buffers", document->word);
    for (size_t i = 0; i < document->buffers.count; i++) {
        const cJSON *uri = member(document->buffers.items[i], "uri");
        struct gltf_bytes *content = &document->content[i];
        const char *text = uri ? uri_base64(uri) : NULL;
        size_t size;

        if (!text) {
            *content = document->bin;
            continue;
        }
        size = strlen(text) / 4 * 3 + 3;
        content->own = malloc(size);
        content->at = content->own;
        if (!content->own)
            return err_set(err, ERR_NO_MEMORY, "%s: no memory for buffer %zu", document->word, i);
        if (!base64_decode(text, content->own, size, &content->length))
            return err_set(err, ERR_BAD_INPUT, "%s: buffer %zu is not base64", document->word, i);
    }
    return ERR_OK;
}

/* An accessor in its buffer. */
struct gltf_array {
    const uint8_t *at;
    uint64_t count, stride, component; /* in bytes */
};

/* A whole number from 0 to SUM_MAX, or the fallback where there is no such member. */
static enum err_code whole_member(const struct gltf_document *document, const cJSON *object,
                                  const char *name, uint64_t fallback, uint64_t *out,
                                  struct err *err)
{
    const cJSON *item = member(object, name);

    *out = fallback;
    if (!item)
        return ERR_OK;
    *out = number_or(item, SUM_MAX);
    if (*out >= SUM_MAX || (double)*out != item->valuedouble)
        return err_set(err, ERR_BAD_INPUT, "%s: %s is not a whole number from 0", document->word,
                       name);
    return ERR_OK;
}

/* of a plain accessor: components a number of them. */
static enum err_code array_find(const struct gltf_document *document, const cJSON *index,
                                uint64_t components, struct gltf_array *out, struct err *err)
{
    const cJSON *accessor = table_at(&document->accessors, index);
    const cJSON *view = table_at(&document->views, member(accessor, "bufferView"));
    const struct gltf_bytes *content;
    uint64_t buffer, view_at, length, at, bytes;

    out->component = component_bytes(accessor);
    bytes = components * out->component;
    if (whole_member(document, view, "buffer", SUM_MAX, &buffer, err) ||
        whole_member(document, view, "byteOffset", 0, &view_at, err) ||
        whole_member(document, view, "byteLength", 0, &length, err) ||
        whole_member(document, view, "byteStride", bytes, &out->stride, err) ||
        whole_member(document, accessor, "byteOffset", 0, &at, err) ||
        whole_member(document, accessor, "count", 0, &out->count, err))
        return err->code;
    if (buffer >= document->buffers.count)
        return err_set(err, ERR_BAD_INPUT, "%s: a buffer view is of no buffer", document->word);
    content = &document->content[buffer];
    if (view_at > content->length || length > content->length - view_at)
        return err_set(err, ERR_BAD_INPUT,
                       "%s: a buffer view ends beyond the %zu bytes of its "
                       "buffer",
                       document->word, content->length);
    if (out->stride < bytes)
        return err_set(err, ERR_BAD_INPUT,
                       "%s: byteStride %llu is less than the %llu bytes of an "
                       "element",
                       document->word, (unsigned long long)out->stride, (unsigned long long)bytes);
    if (at > length || (out->count > 0 && (bytes > length - at ||
                                           out->count - 1 > (length - at - bytes) / out->stride)))
        return err_set(err, ERR_BAD_INPUT,
                       "%s: an accessor of %llu elements ends beyond the %llu bytes of its buffer "
                       "view",
                       document->word, (unsigned long long)out->count, (unsigned long long)length);
    out->at = content->at + view_at + at;
    return ERR_OK;
}

/* ---- primitives ------------------------------------------------------------------------------ */

struct gltf_walk {
    const struct gltf_document *document;
    const struct polygon_limits *limits;
    struct gltf_uses *uses;
    enum gltf_step { USES_FIND, SIZES_COUNT, SET_FILL } step;
    struct polygon_set *out; /* of SET_FILL */
    uint64_t vertices, polygons, corners;
    size_t visits, use; /* use: the next one's number */
};

/* The three numbers, of indices or else of points, that triangle i is of. */
static void triangle_corners(uint64_t mode, uint64_t i, uint64_t out[3])
{
    out[0] = mode == 4 ? 3 * i : mode == 5 ? i : i + 1;
    out[1] = mode == 4 ? 3 * i + 1 : mode == 5 ? i + 1 + i % 2 : i + 2;
    out[2] = mode == 4 ? 3 * i + 2 : mode == 5 ? i + 2 - i % 2 : 0;
}

static uint64_t index_load(const struct gltf_array *indices, uint64_t i)
{
    const uint8_t *at = indices->at + i * indices->stride;

    return indices->component == 1 ? *at : indices->component == 2 ? little16(at) : little32(at);
}

static void points_fill(struct gltf_walk *walk, const struct gltf_array *points,
                        const struct affine *place)
{
    for (uint64_t i = 0; i < points->count; i++) {
        const uint8_t *at = points->at + i * points->stride;
        struct vec3 point = {(double)little_float(at), (double)little_float(at + 4),
                             (double)little_float(at + 8)};

        walk->out->vertices[walk->vertices + i] = affine_apply(place, point);
    }
}

static enum err_code triangles_fill(struct gltf_walk *walk, uint64_t mode, uint64_t triangles,
                                    const struct gltf_array *points,
                                    const struct gltf_array *indices, bool mirrored,
                                    struct err *err)
{
    for (uint64_t t = 0; t < triangles; t++) {
        uint32_t *corners = walk->out->corners + walk->corners + 3 * t;
        uint64_t numbers[3];

        triangle_corners(mode, t, numbers);
        for (int c = 0; c < 3; c++) {
            uint64_t index = indices->at ? index_load(indices, numbers[c]) : numbers[c];

            if (index >= points->count)
                return err_set(err, ERR_BAD_INPUT,
                               "%s: an index is out of range: triangle %llu of a primitive has "
                               "point %llu of %llu",
                               walk->document->word, (unsigned long long)t,
                               (unsigned long long)index, (unsigned long long)points->count);
            corners[mirrored ? 2 - c : c] = (uint32_t)(walk->vertices + index);
        }
        walk->out->starts[walk->polygons + t + 1] = (uint32_t)(walk->corners + 3 * (t + 1));
    }
    return ERR_OK;
}

static enum err_code primitive_visit(struct gltf_walk *walk, const cJSON *primitive,
                                     const struct affine *place, struct err *err)
{
    const struct gltf_document *document = walk->document;
    const cJSON *own = member(primitive, "indices");
    uint64_t triangles = primitive_polygons(document, primitive), mode;
    struct gltf_array points, indices = {.at = NULL};

    if (triangles == 0)
        return ERR_OK;
    if (whole_member(document, primitive, "mode", 4, &mode, err) ||
        array_find(document, member(member(primitive, "attributes"), "POSITION"), 3, &points,
                   err) ||
        (own && array_find(document, own, 1, &indices, err)))
        return err->code;
    if (walk->step == SET_FILL) {
        points_fill(walk, &points, place);
        if (triangles_fill(walk, mode, triangles, &points, &indices, affine_mirrors(place), err))
            return err->code;
    }
    walk->vertices += points.count;
    walk->polygons += triangles;
    walk->corners += 3 * triangles;
    return polygon_check_counts(document->word, walk->vertices, walk->polygons, walk->corners,
                                walk->limits, err);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The numbers of an array of a node; *out stays where there is no such array. */
static enum err_code numbers_read(const struct gltf_document *document, const cJSON *node,
                                  const char *name, size_t count, double *out, struct err *err)
{
    const cJSON *array = member(node, name);
    const cJSON *item = array_first(array);

    if (!array)
        return ERR_OK;
    for (size_t i = 0; i < count && item; i++, item = item->next) {
        if (!cJSON_IsNumber(item))
            break;
        out[i] = item->valuedouble;
        if (i + 1 == count && !item->next)
            return ERR_OK;
    }
    return err_set(err, ERR_BAD_INPUT, "%s: %s of a node is no array of %zu numbers",
                   document->word, name, count);
}

/* Of a translation, a rotation, and a scale. */
static struct affine affine_of(const double t[3], const double q[4], const double s[3])
{
    double x = q[0], y = q[1], z = q[2], w = q[3];

    return (struct affine){{{(1 - 2 * (y * y + z * z)) * s[0], 2 * (x * y - z * w) * s[1],
                             2 * (x * z + y * w) * s[2], t[0]},
                            {2 * (x * y + z * w) * s[0], (1 - 2 * (x * x + z * z)) * s[1],
                             2 * (y * z - x * w) * s[2], t[1]},
                            {2 * (x * z - y * w) * s[0], 2 * (y * z + x * w) * s[1],
                             (1 - 2 * (x * x + y * y)) * s[2], t[2]}}};
}

static enum err_code node_place(const struct gltf_document *document, const cJSON *node,
                                struct affine *out, struct err *err)
{
    double t[3] = {0}, q[4] = {0, 0, 0, 1}, s[3] = {1, 1, 1}, m[16];

    if (member(node, "matrix")) {
        if (numbers_read(document, node, "matrix", 16, m, err))
            return err->code;
        for (int row = 0; row < 3; row++)
            for (int column = 0; column < 4; column++)
                out->m[row][column] = m[4 * column + row];
        return ERR_OK;
    }
    if (numbers_read(document, node, "translation", 3, t, err) ||
        numbers_read(document, node, "rotation", 4, q, err) ||
        numbers_read(document, node, "scale", 3, s, err))
        return err->code;
    *out = affine_of(t, q, s);
    return ERR_OK;
}

static enum err_code visits_check(struct gltf_walk *walk, struct err *err)
{
    if (++walk->visits <= VISITS_MAX)
        return ERR_OK;
    return err_limit(err, ERR_TOO_LARGE, VISITS_MAX, (double)walk->visits,
                     "%s: more than %d nodes and primitives of nodes", walk->document->word,
                     VISITS_MAX);
}

static enum err_code primitives_visit(struct gltf_walk *walk, const cJSON *mesh,
                                      const struct affine *place, struct err *err)
{
    for (const cJSON *primitive = array_first(member(mesh, "primitives")); primitive;
         primitive = primitive->next)
        if (visits_check(walk, err) ||
            (walk->step != USES_FIND && primitive_visit(walk, primitive, place, err)))
            return err->code;
    return ERR_OK;
}

/* A mesh in a place: the polygons of an owner where it is turned to, but at the origin. */
static enum err_code use_visit(struct gltf_walk *walk, const cJSON *mesh, struct err *err)
{
    const size_t number = walk->use++;
    struct gltf_use *use = &walk->uses->at[number], *owner = &walk->uses->at[use->owner];
    struct affine place = use->place;

    if (owner == use) {
        uint64_t first = walk->polygons;

        for (int row = 0; use->shared > 1 && row < 3; row++)
            place.m[row][3] = 0;
        if (primitives_visit(walk, mesh, &place, err))
            return err->code;
        use->first = (uint32_t)first;
        use->polygons = (uint32_t)(walk->polygons - first);
    }
    if (walk->step == SET_FILL && walk->uses->is_shared) {
        bool is_placed = owner->shared > 1;

        walk->out->instances.at[number] = (struct mesh_instance){
            .translation = {is_placed ? use->place.m[0][3] : 0, is_placed ? use->place.m[1][3] : 0,
                            is_placed ? use->place.m[2][3] : 0},
            .cos = use->cos,
            .sin = use->sin,
            .first = owner->first,
            .count = owner->polygons};
    }
    return ERR_OK;
}

/* ---- a node in many places ------------------------------------------------------------------- */

enum { TRANSLATION, ROTATION, SCALE, ATTRIBUTES };

static const struct {
    const char *name, *type;
    unsigned components, kinds;
} attribute_of[ATTRIBUTES] = {{"TRANSLATION", "VEC3", 3, FLOATS},
                              {"ROTATION", "VEC4", 4, FLOATS | NORMALIZED},
                              {"SCALE", "VEC3", 3, FLOATS}};

struct gltf_instancing {
    struct gltf_array array[ATTRIBUTES];
    bool has[ATTRIBUTES];
    uint64_t count;
};

static enum err_code instancing_find(const struct gltf_document *document, const cJSON *extension,
                                     struct gltf_instancing *out, struct err *err)
{
    const cJSON *attributes = member(extension, "attributes");
    int first = ATTRIBUTES;

    *out = (struct gltf_instancing){.count = 0};
    for (int i = 0; i < ATTRIBUTES; i++) {
        const char *name = attribute_of[i].name, *type = attribute_of[i].type;
        const cJSON *index = member(attributes, name);

        if (!index)
            continue;
        if (!accessor_is_plain(document, index, type, attribute_of[i].kinds))
            return err_set(err, ERR_BAD_INPUT,
                           "%s: %s of " INSTANCING " is no accessor of %s of float32%s that is "
                           "not sparse",
                           document->word, name, type,
                           i == ROTATION ? ", or of normalized int8 or int16," : "");
        if (array_find(document, index, attribute_of[i].components, &out->array[i], err))
            return err->code;
        first = first < i ? first : i;
        out->has[i] = true;
        out->count = out->array[first].count;
        if (out->array[i].count != out->count)
            return err_set(err, ERR_BAD_INPUT,
                           "%s: " INSTANCING " of a node has %llu of %s and %llu of %s",
                           document->word, (unsigned long long)out->count, attribute_of[first].name,
                           (unsigned long long)out->array[i].count, name);
    }
    if (first == ATTRIBUTES)
        return err_set(err, ERR_BAD_INPUT,
                       "%s: " INSTANCING " of a node has no TRANSLATION, ROTATION or SCALE",
                       document->word);
    return ERR_OK;
}

static void components_load(const struct gltf_array *array, uint64_t i, unsigned count, double *out)
{
    const uint8_t *at = array->at + i * array->stride;

    for (unsigned k = 0; k < count; k++, at += array->component)
        out[k] = array->component == 4   ? (double)little_float(at)
                 : array->component == 2 ? fmax((int16_t)little16(at) / 32767.0, -1)
                                         : fmax((int8_t)*at / 127.0, -1);
}

/* Rotations are made unit: those of few bits are far from it. */
static enum err_code instance_place(const struct gltf_document *document,
                                    const struct gltf_instancing *instancing, uint64_t i,
                                    struct affine *out, struct err *err)
{
    double v[ATTRIBUTES][4] = {{0, 0, 0}, {0, 0, 0, 1}, {1, 1, 1}}, *q = v[ROTATION];

    for (int k = 0; k < ATTRIBUTES; k++)
        if (instancing->has[k])
            components_load(&instancing->array[k], i, attribute_of[k].components, v[k]);
    double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);

    if (!(length > 0) || !isfinite(length))
        return err_set(err, ERR_BAD_INPUT, "%s: ROTATION %llu of " INSTANCING " is no quaternion",
                       document->word, (unsigned long long)i);
    for (int k = 0; k < 4; k++)
        q[k] /= length;
    *out = affine_of(v[TRANSLATION], q, v[SCALE]);
    return ERR_OK;
}

static enum err_code mesh_visit(struct gltf_walk *walk, uint64_t number, const struct affine *place,
                                struct err *err)
{
    const cJSON *mesh = walk->document->meshes.items[number];

    if (walk->step != USES_FIND)
        return use_visit(walk, mesh, err);
    if (primitives_visit(walk, mesh, place, err))
        return err->code;
    return gltf_uses_add(walk->uses, (uint32_t)number, place, err);
}

static enum err_code mesh_visit_each(struct gltf_walk *walk, uint64_t number,
                                     const struct affine *place, const cJSON *extension,
                                     struct err *err)
{
    struct gltf_instancing instancing;

    if (instancing_find(walk->document, extension, &instancing, err))
        return err->code;
    for (uint64_t i = 0; i < instancing.count; i++) {
        struct affine own;

        if (instance_place(walk->document, &instancing, i, &own, err))
            return err->code;
        own = affine_multiply(place, &own);
        if (mesh_visit(walk, number, &own, err))
            return err->code;
    }
    return ERR_OK;
}

/* ---- the scene ------------------------------------------------------------------------------- */

static enum err_code node_visit(struct gltf_walk *walk, const cJSON *node,
                                const struct affine *place, struct err *err)
{
    const cJSON *instancing = member(member(node, "extensions"), INSTANCING);
    const struct gltf_document *document = walk->document;
    const cJSON *index = member(node, "mesh");
    const cJSON *mesh = table_at(&document->meshes, index);
    uint64_t number = number_or(index, SUM_MAX);

    if (index && !mesh)
        return err_set(err, ERR_BAD_INPUT, "%s: a node has a mesh that is none of %zu",
                       document->word, document->meshes.count);
    if (mesh && document->polygons[number] > 0 &&
        (instancing ? mesh_visit_each(walk, number, place, instancing, err)
                    : mesh_visit(walk, number, place, err)))
        return err->code;
    return visits_check(walk, err);
}

/* A list of nodes that are all in one place. */
struct gltf_level {
    const cJSON *next;
    const cJSON *node; /* whose children they are */
    struct affine place;
};

/* The node that the next item of a level names, one that is not above it. */
static enum err_code node_take(const struct gltf_document *document, struct gltf_level *levels,
                               size_t depth, const cJSON **out, struct err *err)
{
    struct gltf_level *level = &levels[depth - 1];

    *out = table_at(&document->nodes, level->next);
    level->next = level->next->next;
    if (!*out)
        return err_set(err, ERR_BAD_INPUT, "%s: the scene or a node has a node that is none of %zu",
                       document->word, document->nodes.count);
    for (size_t i = 0; i < depth; i++)
        if (levels[i].node == *out)
            return err_set(err, ERR_BAD_INPUT, "%s: a node is below itself", document->word);
    return ERR_OK;
}

/* Depth first, a node before its children, children in order. */
static enum err_code scene_walk(struct gltf_walk *walk, struct err *err)
{
    const struct gltf_document *document = walk->document;
    struct gltf_level levels[NODE_DEPTH_MAX];
    size_t depth = 1;

    levels[0] = (struct gltf_level){.next = scene_nodes(document),
                                    .place = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}}};
    while (depth > 0) {
        struct affine own, place;
        const cJSON *node, *children;

        if (!levels[depth - 1].next) {
            depth--;
            continue;
        }
        if (node_take(document, levels, depth, &node, err) || node_place(document, node, &own, err))
            return err->code;
        place = affine_multiply(&levels[depth - 1].place, &own);
        if (node_visit(walk, node, &place, err))
            return err->code;
        children = array_first(member(node, "children"));
        if (children && depth == NODE_DEPTH_MAX)
            return err_limit(err, ERR_TOO_LARGE, NODE_DEPTH_MAX, NODE_DEPTH_MAX + 1,
                             "%s: nodes lie more than %d deep", document->word, NODE_DEPTH_MAX);
        if (children)
            levels[depth++] = (struct gltf_level){children, node, place};
    }
    return ERR_OK;
}

/* The polygons of all uses have numbers: of 32 bits. */
static enum err_code numbers_check(const struct gltf_walk *walk, struct err *err)
{
    uint64_t polygons = 0;

    for (size_t i = 0; i < walk->uses->count; i++)
        polygons = sum(polygons, walk->uses->at[walk->uses->at[i].owner].polygons);
    if (polygons < UINT32_MAX)
        return ERR_OK;
    return err_limit(err, ERR_TOO_LARGE, UINT32_MAX - 1, (double)polygons,
                     "%s: %llu polygons in all instances, at most %u: their numbers have 32 bits",
                     walk->document->word, (unsigned long long)polygons, UINT32_MAX - 1);
}

static enum err_code instances_allocate(const struct gltf_uses *uses, struct vec3 axis,
                                        struct polygon_set *out, struct err *err)
{
    out->instances_copied = uses->copied;
    if (!uses->is_shared)
        return ERR_OK;
    out->instances.at = calloc(uses->count, sizeof *out->instances.at);
    if (!out->instances.at)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu instances", uses->count);
    out->instances.count = uses->count;
    out->instances.axis = axis;
    return ERR_OK;
}

static enum err_code uses_decode(struct gltf_document *document, struct gltf_uses *uses,
                                 const struct polygon_limits *limits, struct polygon_set *out,
                                 struct err *err)
{
    struct vec3 axis = out->instances.axis;
    struct gltf_walk find = {.document = document, .limits = limits, .uses = uses};
    struct gltf_walk count = find, fill = find;

    count.step = SIZES_COUNT;
    fill.step = SET_FILL;
    fill.out = out;
    if (contents_read(document, err) || scene_walk(&find, err) ||
        gltf_uses_match(uses, document->meshes.count, axis, err) || scene_walk(&count, err))
        return err->code;
    if (count.polygons == 0)
        return err_set(err, ERR_UNPROCESSABLE, "%s: the file has no polygons", document->word);
    if (numbers_check(&count, err) ||
        polygon_set_allocate((size_t)count.vertices, (size_t)count.polygons, (size_t)count.corners,
                             out, err) ||
        instances_allocate(uses, axis, out, err) || scene_walk(&fill, err))
        return err->code;
    CHECK(fill.vertices == count.vertices && fill.corners == count.corners);
    return ERR_OK;
}

static enum err_code document_decode(struct gltf_document *document,
                                     const struct polygon_limits *limits, struct polygon_set *out,
                                     struct err *err)
{
    struct gltf_uses uses = {.at = NULL};
    enum err_code code = uses_decode(document, &uses, limits, out, err);

    gltf_uses_free(&uses);
    return code;
}

enum err_code gltf_decode(enum polygon_format format, const uint8_t *bytes, size_t length,
                          const struct polygon_limits *limits, bool *is_read,
                          struct polygon_set *out, struct err *err)
{
    struct gltf_document document = {.word = polygon_format_word(format)};
    enum err_code code = document_read(&document, format, bytes, length, err);

    bool is_plain = !code && document_is_plain(&document);

    *is_read = code || is_plain || document_has_instancing(&document);
    if (is_plain)
        code = document_decode(&document, limits, out, err);
    else if (!code && *is_read)
        code = err_set(err, ERR_BAD_INPUT,
                       "%s: " INSTANCING " is not read together with sparse or compressed "
                       "accessors, external buffers, or another extension that is required",
                       document.word);
    document_free(&document);
    return code;
}
