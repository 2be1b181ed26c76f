/*
 * assimp drops a triangle that has an index out of range and reads on. What a file promises stands
 * in its JSON, whatever its buffers hold and however they are packed, so it is enough to count: a
 * primitive's accessor of indices, or else of POSITION, has a count n, and its mode makes of it
 *
 *   4 TRIANGLES (the default)             n / 3 polygons
 *   5 TRIANGLE_STRIP, 6 TRIANGLE_FAN      n - 2
 *   points and lines                      none
 *
 * A mesh has the sum of its primitives, and the scene that of the meshes of its nodes, each as
 * often as a node uses it. Meshes that no node of the scene uses are not read, and not counted.
 *
 * The nodes are walked by a stack of bounded depth and for a bounded number of items, so that
 * cycles and shared subtrees do not matter; sums stop at SUM_MAX. cJSON's arrays are lists:
 * accessors, meshes and nodes get a table each. What is not as it should be promises nothing: it is
 * assimp that has to refuse it.
 *
 * Source: Khronos, "glTF 2.0", 3.5 scenes, 3.7.2 meshes, 4.4 binary glTF.
 */
#include "formats/gltf.h"

#include "formats/polygon_header.h"

#include <cjson/cJSON.h>

#include <stdlib.h>

enum { NODE_DEPTH_MAX = 256, VISITS_MAX = 1 << 21, GLB_JSON_AT = 20 };
#define SUM_MAX (UINT64_C(1) << 53)

/* The items of an array of the document; none where there is no such array. */
struct gltf_table {
    const cJSON **items;
    size_t count;
};

struct gltf_document {
    const char *word; /* of the format */
    cJSON *json;
    struct gltf_table accessors, meshes, nodes, scenes;
    uint64_t *polygons; /* of each mesh */
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
    free(document->polygons);
    free(document->scenes.items);
    free(document->nodes.items);
    free(document->meshes.items);
    free(document->accessors.items);
    cJSON_Delete(document->json);
}

/* document_free() it, whatever is returned. */
static enum err_code document_read(struct gltf_document *document, const char *text, size_t length,
                                   struct err *err)
{
    document->json = cJSON_ParseWithLength(text, length);
    if (!document->json)
        return err_set(err, ERR_BAD_INPUT,
                       "%s: the JSON has too many values or levels, or is no JSON", document->word);
    if (!table_fill(document->json, "accessors", &document->accessors) ||
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
    const char *text = (const char *)bytes;
    uint64_t promised = 0;
    enum err_code code;

    if (format == POLYGON_GLB) {
        length =
            bytes[12] | (size_t)bytes[13] << 8 | (size_t)bytes[14] << 16 | (size_t)bytes[15] << 24;
        text += GLB_JSON_AT;
    }
    code = document_read(&document, text, length, err);
    if (!code)
        code = scene_count(&document, &promised, err);
    if (!code && promised > got)
        code = err_set(
            err, ERR_BAD_INPUT, "%s: %llu of %llu polygons are missing: an index is out of range",
            document.word, (unsigned long long)(promised - got), (unsigned long long)promised);
    document_free(&document);
    return code;
}
