/*
 * The problem: mesh formats that are not worth a reader each, and a library that reads them
 * all but was not written for hostile files. The approach, from the outside in:
 *
 *   assimp_decode        checks the header, starts a jail, receives and checks its answer
 *   (the jail's child)   assimp_decode_here, then writes a head and three arrays to the pipe
 *   assimp_decode_here   asks assimp for a scene, counts it, allocates, fills; judges by itself
 *                        errors that assimp mends or ignores (ac3d.h, gltf.h)
 *
 * assimp gets an aiFileIO of ours in which exactly one file exists, the one in memory, under a name
 * with the format's ending. aiImportFileFromMemory would not do: it falls back to the real file
 * system for every other name, so that a glTF could name a file of this machine.
 *
 * Its flags keep polygons unchanged (no triangulation, no joining of vertices, which has rules of
 * its own for equal points), drop everything but shape, and validate indices. COLLADA's up axis is
 * not applied, its unit is; AC3D's subdivision, which multiplies polygons by powers of four, and
 * its splitting by backface culling, which reorders them, are off.
 *
 * The node tree is walked twice, to count and to fill, by a stack of bounded depth and for a
 * bounded number of nodes, so that neither cycles nor shared subtrees matter. Transforms are
 * multiplied in float64. But assimp holds vertices and transforms as float32, whatever the file
 * has; so the second walk also records the largest intermediate numbers (of absolute values, so
 * that cancelled ones count), and the step of float32 there is precision_m. A mirror (negative
 * determinant) would turn fronts to backs: it reverses corners instead (glTF 2.0, section 3.7.4).
 *
 * What comes out of the pipe is judged like a file: counts against the limits before any memory is
 * allocated, every start, index and coordinate after.
 */
#include "formats/polygon/assimp_import.h"

#include "base/check.h"
#include "base/jail.h"
#include "formats/polygon/ac3d.h"
#include "formats/polygon/affine.h"
#include "formats/polygon/gltf.h"
#include "formats/polygon/polygon_header.h"

#include <assimp/cfileio.h>
#include <assimp/cimport.h>
#include <assimp/config.h>
#include <assimp/postprocess.h>
#include <assimp/scene.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_DEPTH_MAX = 256, VISITS_MAX = 1 << 20 };

/* ---- the one file that assimp can open ------------------------------------------------------- */

struct memory_source {
    const char *name;
    const uint8_t *bytes;
    size_t length;
};

struct memory_file {
    struct aiFile file; /* first: assimp hands out its address */
    const struct memory_source *source;
    size_t at;
};

static size_t memory_read(struct aiFile *file, char *out, size_t size, size_t count)
{
    struct memory_file *memory = (struct memory_file *)file;
    size_t left = memory->source->length - memory->at;

    if (size == 0)
        return 0;
    if (count > left / size)
        count = left / size;
    if (count > 0)
        memcpy(out, memory->source->bytes + memory->at, size * count);
    memory->at += size * count;
    return count;
}

static size_t memory_write(struct aiFile *file, const char *bytes, size_t size, size_t count)
{
    (void)file, (void)bytes, (void)size, (void)count;
    return 0;
}

static size_t memory_tell(struct aiFile *file)
{
    return ((struct memory_file *)file)->at;
}

static size_t memory_size(struct aiFile *file)
{
    return ((struct memory_file *)file)->source->length;
}

static enum aiReturn memory_seek(struct aiFile *file, size_t offset, enum aiOrigin origin)
{
    struct memory_file *memory = (struct memory_file *)file;
    size_t base = 0;

    if (origin == aiOrigin_CUR)
        base = memory->at;
    else if (origin == aiOrigin_END)
        base = memory->source->length;
    base += offset; /* a negative offset wraps back */
    if (base > memory->source->length)
        return aiReturn_FAILURE;
    memory->at = base;
    return aiReturn_SUCCESS;
}

static void memory_flush(struct aiFile *file)
{
    (void)file;
}

static struct aiFile *memory_open(struct aiFileIO *io, const char *name, const char *mode)
{
    const struct memory_source *source = (const struct memory_source *)(void *)io->UserData;
    struct memory_file *memory;

    if (strcmp(name, source->name) != 0 || mode[0] != 'r')
        return NULL;
    memory = malloc(sizeof *memory);
    if (!memory)
        return NULL;
    *memory = (struct memory_file){
        .file = {.ReadProc = memory_read,
                 .WriteProc = memory_write,
                 .TellProc = memory_tell,
                 .FileSizeProc = memory_size,
                 .SeekProc = memory_seek,
                 .FlushProc = memory_flush},
        .source = source,
    };
    return &memory->file;
}

static void memory_close(struct aiFileIO *io, struct aiFile *file)
{
    (void)io;
    free(file);
}

/* ---- a scene --------------------------------------------------------------------------------- */

static const char *format_file_name(enum polygon_format format)
{
    static const char *const names[] = {
        [POLYGON_OBJ] = NULL,
        [POLYGON_GLB] = "upload.glb",
        [POLYGON_GLTF] = "upload.gltf",
        [POLYGON_AC3D] = "upload.ac",
        [POLYGON_COLLADA] = "upload.dae",
    };

    return names[format];
}

static struct aiPropertyStore *properties_make(void)
{
    struct aiPropertyStore *store = aiCreatePropertyStore();

    if (!store)
        return NULL;
    aiSetImportPropertyInteger(store, AI_CONFIG_PP_RVC_FLAGS,
                               aiComponent_NORMALS | aiComponent_TANGENTS_AND_BITANGENTS |
                                   aiComponent_COLORS | aiComponent_TEXCOORDS |
                                   aiComponent_BONEWEIGHTS | aiComponent_ANIMATIONS |
                                   aiComponent_TEXTURES | aiComponent_LIGHTS | aiComponent_CAMERAS |
                                   aiComponent_MATERIALS);
    aiSetImportPropertyInteger(store, AI_CONFIG_IMPORT_NO_SKELETON_MESHES, 1);
    aiSetImportPropertyInteger(store, AI_CONFIG_IMPORT_COLLADA_IGNORE_UP_DIRECTION, 1);
    aiSetImportPropertyInteger(store, AI_CONFIG_IMPORT_AC_EVAL_SUBDIVISION, 0);
    aiSetImportPropertyInteger(store, AI_CONFIG_IMPORT_AC_SEPARATE_BFCULL, 0);
    return store;
}

/* assimp's message, on one line of printable ASCII: it may quote the file. */
static enum err_code assimp_error(enum polygon_format format, struct err *err)
{
    const char *message = aiGetErrorString();
    char shown[200];
    size_t length = 0;

    for (; message && message[length] && length < sizeof shown - 1; length++)
        shown[length] = message[length] >= ' ' && message[length] < 0x7f ? message[length] : '?';
    shown[length] = '\0';
    return err_set(err, ERR_BAD_INPUT, "%s: not read: %s", polygon_format_word(format),
                   length ? shown : "assimp gives no reason");
}

/* NULL with the error set; aiReleaseImport() it. */
static const struct aiScene *scene_read(enum polygon_format format, const uint8_t *bytes,
                                        size_t length, struct err *err)
{
    struct memory_source source = {format_file_name(format), bytes, length};
    struct aiFileIO io = {.OpenProc = memory_open,
                          .CloseProc = memory_close,
                          .UserData = (aiUserData)(void *)&source};
    struct aiPropertyStore *store = properties_make();
    const struct aiScene *scene;

    if (!store) {
        err_set(err, ERR_NO_MEMORY, "no memory for assimp");
        return NULL;
    }
    scene = aiImportFileExWithProperties(
        source.name, aiProcess_ValidateDataStructure | aiProcess_RemoveComponent, &io, store);
    aiReleasePropertyStore(store);
    if (!scene)
        assimp_error(format, err);
    return scene;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static struct affine affine_of(const struct aiMatrix4x4 *t)
{
    return (struct affine){
        {{t->a1, t->a2, t->a3, t->a4}, {t->b1, t->b2, t->b3, t->b4}, {t->c1, t->c2, t->c3, t->c4}}};
}

struct walk {
    enum polygon_format format;
    const struct aiScene *scene;
    struct polygon_set *out; /* NULL while counting */
    uint64_t vertices, polygons, corners;
    size_t visits;
    double reach; /* the greatest number that a coordinate has met on its way */
};

/* Where a node is, and how far the numbers can reach that led there. */
struct place {
    struct affine at, reach;
};

static struct place place_of(const struct aiMatrix4x4 *t)
{
    struct affine at = affine_of(t);

    return (struct place){at, affine_absolute(&at)};
}

static struct place place_below(const struct place *above, const struct aiMatrix4x4 *t)
{
    struct place own = place_of(t);

    return (struct place){affine_multiply(&above->at, &own.at),
                          affine_multiply(&above->reach, &own.reach)};
}

static struct vec3 place_vertex(struct walk *walk, const struct place *place,
                                const struct aiVector3D *v)
{
    struct vec3 own = {(double)v->x, (double)v->y, (double)v->z};
    struct vec3 reach =
        affine_apply(&place->reach, (struct vec3){fabs(own.x), fabs(own.y), fabs(own.z)});

    walk->reach = fmax(walk->reach, fmax(reach.x, fmax(reach.y, reach.z)));
    return affine_apply(&place->at, own);
}

/* Counts the polygons of a mesh into the walk; false when it has none. */
static bool mesh_count(struct walk *walk, const struct aiMesh *mesh)
{
    uint64_t before = walk->polygons;

    for (unsigned i = 0; i < mesh->mNumFaces; i++) {
        if (mesh->mFaces[i].mNumIndices < 3)
            continue;
        walk->polygons++;
        walk->corners += mesh->mFaces[i].mNumIndices;
    }
    if (walk->polygons == before)
        return false;
    walk->vertices += mesh->mNumVertices;
    return true;
}

static enum err_code face_fill(const struct walk *walk, const struct aiMesh *mesh,
                               const struct aiFace *face, bool mirrored, uint32_t *corners,
                               struct err *err)
{
    for (unsigned i = 0; i < face->mNumIndices; i++) {
        unsigned index = face->mIndices[mirrored ? face->mNumIndices - 1 - i : i];

        if (index >= mesh->mNumVertices)
            return err_set(err, ERR_BAD_INPUT, "%s: a polygon has vertex %u of %u",
                           polygon_format_word(walk->format), index, mesh->mNumVertices);
        corners[i] = (uint32_t)walk->vertices + index;
    }
    return ERR_OK;
}

static enum err_code mesh_fill(struct walk *walk, const struct aiMesh *mesh,
                               const struct place *place, struct err *err)
{
    bool mirrored = affine_mirrors(&place->at);
    struct walk before = *walk;

    if (!mesh_count(walk, mesh))
        return ERR_OK;
    for (unsigned i = 0; i < mesh->mNumVertices; i++)
        walk->out->vertices[before.vertices + i] = place_vertex(walk, place, &mesh->mVertices[i]);
    for (unsigned i = 0; i < mesh->mNumFaces; i++) {
        const struct aiFace *face = &mesh->mFaces[i];

        if (face->mNumIndices < 3)
            continue;
        if (face_fill(&before, mesh, face, mirrored, walk->out->corners + before.corners, err))
            return err->code;
        before.corners += face->mNumIndices;
        walk->out->starts[++before.polygons] = (uint32_t)before.corners;
    }
    return ERR_OK;
}

static enum err_code node_visit(struct walk *walk, const struct aiNode *node,
                                const struct place *place, struct err *err)
{
    const char *word = polygon_format_word(walk->format);

    walk->visits += (size_t)node->mNumMeshes + 1;
    if (walk->visits > VISITS_MAX)
        return err_limit(err, ERR_TOO_LARGE, VISITS_MAX, (double)walk->visits,
                         "%s: more than %d nodes and meshes of nodes", word, VISITS_MAX);
    for (unsigned i = 0; i < node->mNumMeshes; i++) {
        const struct aiMesh *mesh;

        if (node->mMeshes[i] >= walk->scene->mNumMeshes)
            return err_set(err, ERR_BAD_INPUT, "%s: a node has mesh %u of %u", word,
                           node->mMeshes[i], walk->scene->mNumMeshes);
        mesh = walk->scene->mMeshes[node->mMeshes[i]];
        if (!walk->out)
            mesh_count(walk, mesh);
        else if (mesh_fill(walk, mesh, place, err))
            return err->code;
    }
    return ERR_OK;
}

/* From a number of this size to the next one in float32, if there were no end to its exponents. */
static double float32_step(double number)
{
    if (!isfinite(number))
        return INFINITY;
    return ldexp(1, ilogb(fmax(number, (double)FLT_MIN)) - FLT_MANT_DIG + 1);
}

/* Depth first, a node before its children, children in order. */
static enum err_code nodes_walk(struct walk *walk, const struct polygon_limits *limits,
                                struct err *err)
{
    struct {
        const struct aiNode *node;
        unsigned next; /* child */
        struct place place;
    } stack[NODE_DEPTH_MAX];
    size_t depth = 1;

    stack[0].node = walk->scene->mRootNode;
    stack[0].next = 0;
    stack[0].place = place_of(&stack[0].node->mTransformation);
    if (node_visit(walk, stack[0].node, &stack[0].place, err))
        return err->code;
    while (depth > 0) {
        const struct aiNode *node = stack[depth - 1].node;

        if (polygon_check_counts(polygon_format_word(walk->format), walk->vertices, walk->polygons,
                                 walk->corners, limits, err))
            return err->code;
        if (stack[depth - 1].next == node->mNumChildren) {
            depth--;
            continue;
        }
        if (depth == NODE_DEPTH_MAX)
            return err_limit(err, ERR_TOO_LARGE, NODE_DEPTH_MAX, NODE_DEPTH_MAX + 1,
                             "%s: nodes lie more than %d deep", polygon_format_word(walk->format),
                             NODE_DEPTH_MAX);
        node = node->mChildren[stack[depth - 1].next++];
        stack[depth].place = place_below(&stack[depth - 1].place, &node->mTransformation);
        stack[depth].node = node;
        stack[depth].next = 0;
        if (node_visit(walk, node, &stack[depth++].place, err))
            return err->code;
    }
    return ERR_OK;
}

static enum err_code scene_convert(enum polygon_format format, const struct aiScene *scene,
                                   const struct polygon_limits *limits, struct polygon_set *out,
                                   struct err *err)
{
    struct walk count = {.format = format, .scene = scene};
    struct walk fill = {.format = format, .scene = scene, .out = out};

    if (scene->mRootNode && nodes_walk(&count, limits, err))
        return err->code;
    if (count.polygons == 0)
        return err_set(err, ERR_UNPROCESSABLE, "%s: the file has no polygons",
                       polygon_format_word(format));
    if (polygon_set_allocate((size_t)count.vertices, (size_t)count.polygons, (size_t)count.corners,
                             out, err) ||
        nodes_walk(&fill, limits, err))
        return err->code;
    out->precision_m = float32_step(fill.reach);
    return ERR_OK;
}

enum err_code assimp_decode_here(enum polygon_format format, const uint8_t *bytes, size_t length,
                                 const struct polygon_limits *limits, struct polygon_set *out,
                                 struct err *err)
{
    bool is_gltf = format == POLYGON_GLB || format == POLYGON_GLTF, is_read;
    const struct aiScene *scene;
    enum err_code code;

    if (polygon_header_check(format, bytes, length, err))
        return err->code;
    if (format == POLYGON_AC3D && ac3d_check_indices(bytes, length, err))
        return err->code;
    if (is_gltf) {
        code = gltf_decode(format, bytes, length, limits, &is_read, out, err);
        if (code || is_read)
            return code;
    }
    scene = scene_read(format, bytes, length, err);
    if (!scene)
        return err->code;
    code = scene_convert(format, scene, limits, out, err);
    aiReleaseImport(scene); /* before the next takes its memory */
    if (!code && is_gltf)
        code = gltf_check_polygons(format, bytes, length, out->polygon_count, err);
    return code;
}

/* ---- the jail -------------------------------------------------------------------------------- */

struct import_task {
    enum polygon_format format;
    const uint8_t *bytes;
    size_t length;
    const struct polygon_limits *limits;
    struct vec3 axis; /* of instances */
};

/* Then come vertices, corners, starts and instances, if err.code is ERR_OK. */
struct import_head {
    struct err err;
    uint64_t vertices, polygons, corners, instance_bytes, instances_copied;
    double precision_m;
};

static void child_import(void *context, int pipe)
{
    const struct import_task *task = context;
    struct import_head head;
    struct polygon_set set = {.instances.axis = task->axis};
    void *instances;

    memset(&head, 0, sizeof head);
    if (assimp_decode_here(task->format, task->bytes, task->length, task->limits, &set,
                           &head.err)) {
        jail_write(pipe, &head, sizeof head);
        return;
    }
    head.vertices = set.vertex_count;
    head.polygons = set.polygon_count;
    head.corners = set.starts[set.polygon_count];
    head.precision_m = set.precision_m;
    head.instance_bytes = polygon_instances_bytes(&set);
    head.instances_copied = set.instances_copied;
    instances = malloc(head.instance_bytes + 1);
    if (!instances)
        return; /* it ends as one without memory */
    polygon_instances_put(&set, instances);
    jail_write(pipe, &head, sizeof head);
    jail_write(pipe, set.vertices, set.vertex_count * sizeof *set.vertices);
    jail_write(pipe, set.corners, head.corners * sizeof *set.corners);
    jail_write(pipe, set.starts, (set.polygon_count + 1) * sizeof *set.starts);
    jail_write(pipe, instances, head.instance_bytes);
}

/* Of an error of the child only a known code and a text are used. */
static enum err_code error_receive(const char *word, struct import_head *head, struct err *err)
{
    head->err.msg[sizeof head->err.msg - 1] = '\0';
    switch ((int)head->err.code) {
    case ERR_TOO_LARGE:
        return err_limit(err, ERR_TOO_LARGE, head->err.limit, head->err.got, "%s", head->err.msg);
    case ERR_BAD_INPUT:
    case ERR_UNPROCESSABLE:
    case ERR_NO_MEMORY:
    case ERR_INTERNAL:
        return err_set(err, head->err.code, "%s", head->err.msg);
    default:
        return err_set(err, ERR_BAD_INPUT, "%s: the reader failed on this file", word);
    }
}

static enum err_code set_check(const char *word, const struct polygon_set *set, size_t corners,
                               struct err *err)
{
    bool good =
        set->starts[0] == 0 && set->starts[set->polygon_count] == corners && set->precision_m >= 0;

    for (size_t i = 0; good && i < set->polygon_count; i++)
        good = set->starts[i + 1] <= corners && set->starts[i + 1] >= set->starts[i] &&
               set->starts[i + 1] - set->starts[i] >= 3;
    for (size_t i = 0; good && i < corners; i++)
        good = set->corners[i] < set->vertex_count;
    if (!good)
        return err_set(err, ERR_BAD_INPUT, "%s: the reader failed on this file", word);
    for (size_t i = 0; i < set->vertex_count; i++)
        if (!vec3_is_finite(set->vertices[i]))
            return err_set(err, ERR_BAD_INPUT, "%s: vertex %zu is not finite", word, i);
    return ERR_OK;
}

/* The last part: sets *whole. */
static enum err_code instances_receive(struct jail *jail, const struct import_head *head,
                                       struct polygon_set *out, bool *whole, const char *word,
                                       struct err *err)
{
    void *bytes = NULL;

    if (head->instance_bytes <= GLTF_INSTANCES_BYTES_MAX)
        bytes = malloc(head->instance_bytes + 1);
    err->code = ERR_OK;
    if (!bytes)
        return err_set(err, ERR_NO_MEMORY, "%s: no memory for instances", word);
    *whole = jail_read(jail, bytes, head->instance_bytes);
    if (*whole && !polygon_instances_take(bytes, head->instance_bytes, out, err) && !err->code)
        err_set(err, ERR_BAD_INPUT, "%s: the reader failed on this file", word);
    free(bytes);
    return err->code;
}

/* ERR_OK with *whole false: the child stopped writing; its exit status has the reason. */
static enum err_code set_receive(const struct import_task *task, struct jail *jail,
                                 struct polygon_set *out, bool *whole, struct err *err)
{
    const char *word = polygon_format_word(task->format);
    struct import_head head;
    size_t corners;

    *whole = false;
    if (!jail_read(jail, &head, sizeof head))
        return ERR_OK;
    if (head.err.code)
        return error_receive(word, &head, err);
    if (polygon_check_counts(word, head.vertices, head.polygons, head.corners, task->limits, err))
        return err->code;
    corners = (size_t)head.corners;
    if (polygon_set_allocate((size_t)head.vertices, (size_t)head.polygons, corners, out, err))
        return err->code;
    if (!jail_read(jail, out->vertices, out->vertex_count * sizeof *out->vertices) ||
        !jail_read(jail, out->corners, corners * sizeof *out->corners) ||
        !jail_read(jail, out->starts, (out->polygon_count + 1) * sizeof *out->starts))
        return ERR_OK;
    out->precision_m = head.precision_m;
    out->instances_copied = head.instances_copied;
    if (set_check(word, out, corners, err))
        return err->code;
    return instances_receive(jail, &head, out, whole, word, err);
}

static enum err_code silence_error(const char *word, enum jail_end end, struct err *err)
{
    switch (end) {
    case JAIL_TIMED_OUT:
        return err_set(err, ERR_UNPROCESSABLE,
                       "%s: not read within %d s of processor time and %d s in all", word,
                       POLYGON_JAIL_CPU_S, POLYGON_JAIL_WALL_S);
    case JAIL_UNTIED:
        return err_set(err, ERR_INTERNAL, "%s: no limits could be set for the reader", word);
    case JAIL_DONE:
    case JAIL_CRASHED:
        break;
    }
    return err_set(err, ERR_BAD_INPUT, "%s: the reader crashed on this file", word);
}

enum err_code assimp_decode(enum polygon_format format, const uint8_t *bytes, size_t length,
                            const struct polygon_limits *limits, struct polygon_set *out,
                            struct err *err)
{
    static const struct jail_limits bounds = {.memory_bytes = POLYGON_JAIL_MEMORY_BYTES,
                                              .cpu_s = POLYGON_JAIL_CPU_S,
                                              .wall_s = POLYGON_JAIL_WALL_S};
    struct import_task task = {format, bytes, length, limits, out->instances.axis};
    const char *word = polygon_format_word(format);
    struct jail jail;
    enum jail_end end;
    enum err_code code;
    bool whole;

    if (polygon_header_check(format, bytes, length, err) ||
        jail_start(&jail, &bounds, child_import, &task, err))
        return err->code;
    code = set_receive(&task, &jail, out, &whole, err);
    end = jail_end(&jail);
    if (code || whole)
        return code;
    return silence_error(word, end, err);
}
