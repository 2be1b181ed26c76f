/*
 * Meshes through assimp: a file that the daemon cannot read becomes OBJ here and is uploaded as
 * that.
 *
 * The daemon reads glTF, OBJ, PLY, STL, AC3D and COLLADA itself, from clients it does not trust;
 * the other formats of assimp (FBX, 3DS, OFF, Blender and so on) are read by the client, for files
 * of its user. assimp is opened at run time, so that this program starts quickly and needs it for
 * nothing else. It crashes on hostile files all the same, so it runs in the jail that the daemon
 * uses, too (base/jail.h): a forked child that can open nothing and sends back a text.
 *
 * Textures, bones and files that the file refers to are left out. Transforms of the tree are
 * applied; faces keep their corners, so that polygon i of the text is face i of the file.
 */
#include "client/convert.h"

#include "base/jail.h"

#include <assimp/scene.h>
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OBJ_BYTES_MAX ((uint64_t)1 << 30)
enum { MEMORY_MIB = 8192, CPU_S = 120, WALL_S = 240, DEPTH_MAX = 200, MESSAGE_BYTES = 160 };

/* From assimp/postprocess.h: indices are within their arrays, or the import fails. */
#define PROCESS_VALIDATE 0x400u

struct assimp {
    const struct aiScene *(*import)(const char *, unsigned, unsigned, const char *);
    const char *(*error)(void);
};

struct conversion {
    struct assimp assimp;
    const char *bytes;
    size_t count;
    const char *ending;
};

bool convert_knows(const char *ending)
{
    static const char *const endings[] = {"3ds",  "3mf", "amf", "ase", "b3d", "blend",
                                          "cob",  "dxf", "fbx", "lwo", "md2", "md3",
                                          "ms3d", "nff", "off", "x",   "x3d", "xgl"};

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcasecmp(ending, endings[i]) == 0)
            return true;
    return false;
}

/* ---- in the child ---------------------------------------------------------------------------- */

/* The text, and how large the numbers became on the way to it. */
struct writing {
    FILE *out;
    uint64_t vertices;
    double reach;
};

/* Where a node is; reach is a sum of absolute values, so that terms that cancel count. */
struct place {
    double at[16], reach[16];
};

static const struct place place_root = {{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1},
                                        {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}};

/* Everything is float64 from here on: assimp has rounded the file's numbers once, to float32. */
static struct place place_below(const struct place *above, const struct aiMatrix4x4 *b)
{
    const float *m = &b->a1;
    struct place out = {.at = {0}};

    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++)
            for (int k = 0; k < 4; k++) {
                out.at[4 * r + c] += above->at[4 * r + k] * (double)m[4 * k + c];
                out.reach[4 * r + c] += above->reach[4 * r + k] * fabs((double)m[4 * k + c]);
            }
    return out;
}

static void write_vertex(struct writing *writing, const struct aiVector3D *v,
                         const struct place *place)
{
    const double own[4] = {(double)v->x, (double)v->y, (double)v->z, 1};
    double at[3] = {0};

    for (int r = 0; r < 3; r++) {
        double reach = 0;

        for (int k = 0; k < 4; k++) {
            at[r] += place->at[4 * r + k] * own[k];
            reach += place->reach[4 * r + k] * fabs(own[k]);
        }
        writing->reach = fmax(writing->reach, reach);
    }
    fprintf(writing->out, "v %.17g %.17g %.17g\n", at[0], at[1], at[2]);
}

static void write_mesh(struct writing *writing, const struct aiMesh *mesh,
                       const struct place *place)
{
    FILE *out = writing->out;

    for (unsigned i = 0; i < mesh->mNumVertices; i++)
        write_vertex(writing, &mesh->mVertices[i], place);
    for (unsigned i = 0; i < mesh->mNumFaces; i++) {
        const struct aiFace *face = &mesh->mFaces[i];

        if (face->mNumIndices < 3)
            continue;
        fputc('f', out);
        for (unsigned k = 0; k < face->mNumIndices; k++)
            fprintf(out, " %llu", (unsigned long long)(writing->vertices + face->mIndices[k] + 1));
        fputc('\n', out);
    }
    writing->vertices += mesh->mNumVertices;
}

static void write_node(struct writing *writing, const struct aiScene *scene,
                       const struct aiNode *node, const struct place *above, unsigned depth)
{
    struct place place;

    if (!node || depth > DEPTH_MAX)
        return;
    place = place_below(above, &node->mTransformation);
    for (unsigned i = 0; i < node->mNumMeshes; i++)
        if (node->mMeshes[i] < scene->mNumMeshes && (uint64_t)ftello(writing->out) < OBJ_BYTES_MAX)
            write_mesh(writing, scene->mMeshes[node->mMeshes[i]], &place);
    for (unsigned i = 0; i < node->mNumChildren; i++)
        write_node(writing, scene, node->mChildren[i], &place, depth + 1);
}

/* Sends a length, the reach and so many bytes; or the length UINT64_MAX and a message. */
static void convert_in_jail(void *context, int pipe)
{
    const struct conversion *job = context;
    const struct aiScene *scene =
        job->assimp.import(job->bytes, (unsigned)job->count, PROCESS_VALIDATE, job->ending);
    struct writing writing = {.reach = 0};
    uint64_t length = UINT64_MAX;
    char message[MESSAGE_BYTES] = "", *text = NULL;
    size_t bytes = 0;

    if (!scene) {
        snprintf(message, sizeof(message), "%s", job->assimp.error());
        message[strcspn(message, "\r\n")] = '\0';
        jail_write(pipe, &length, sizeof(length));
        jail_write(pipe, message, sizeof(message));
        return;
    }
    writing.out = open_memstream(&text, &bytes);
    if (!writing.out)
        return;
    write_node(&writing, scene, scene->mRootNode, &place_root, 0);
    if (fclose(writing.out) != 0)
        return;
    length = bytes;
    jail_write(pipe, &length, sizeof(length));
    jail_write(pipe, &writing.reach, sizeof(writing.reach));
    jail_write(pipe, text, bytes);
}

/* ---- in the parent --------------------------------------------------------------------------- */

static enum err_code assimp_open(struct assimp *assimp, struct err *err)
{
    void *library = dlopen(KOTA_ASSIMP_SONAME, RTLD_NOW | RTLD_LOCAL);

    if (library) {
        *(void **)&assimp->import = dlsym(library, "aiImportFileFromMemory");
        *(void **)&assimp->error = dlsym(library, "aiGetErrorString");
    }
    if (!library || !assimp->import || !assimp->error)
        return err_set(err, ERR_NO_DEVICE,
                       "assimp is not installed: %s is missing (Debian: apt install libassimp5)",
                       KOTA_ASSIMP_SONAME);
    return ERR_OK;
}

/*
 * The output of the child; err stays ERR_OK when there is none, since its exit status then has the
 * reason.
 */
static void receive(struct jail *jail, char **obj, size_t *length, double *reach, struct err *err)
{
    char message[MESSAGE_BYTES];
    uint64_t bytes;

    if (!jail_read(jail, &bytes, sizeof(bytes)))
        return;
    if (bytes == UINT64_MAX) {
        if (!jail_read(jail, message, sizeof(message)))
            return;
        message[sizeof(message) - 1] = '\0';
        err_set(err, ERR_BAD_INPUT, "assimp says: %s", message);
    } else if (bytes > OBJ_BYTES_MAX) {
        err_limit(err, ERR_TOO_LARGE, (double)OBJ_BYTES_MAX, (double)bytes,
                  "it has more polygons than 1 GiB of OBJ can say");
    } else if (!(*obj = malloc((size_t)bytes + 1))) {
        err_set(err, ERR_NO_MEMORY, "out of memory");
    } else if (jail_read(jail, reach, sizeof(*reach)) && jail_read(jail, *obj, (size_t)bytes)) {
        *length = (size_t)bytes;
    } else {
        free(*obj);
        *obj = NULL;
    }
}

enum err_code convert_to_obj(const char *bytes, size_t count, const char *ending, char **obj,
                             size_t *length, double *step, struct err *err)
{
    static const struct jail_limits limits = {
        .memory_bytes = (uint64_t)MEMORY_MIB << 20, .cpu_s = CPU_S, .wall_s = WALL_S};
    struct conversion job = {.bytes = bytes, .count = count, .ending = ending};
    struct jail jail;
    enum jail_end end;
    double reach = 0;

    *obj = NULL;
    err->code = ERR_OK;
    if (assimp_open(&job.assimp, err) || jail_start(&jail, &limits, convert_in_jail, &job, err))
        return err->code;
    receive(&jail, obj, length, &reach, err);
    *step = isfinite(reach) ? ldexp(1, ilogb(fmax(reach, (double)FLT_MIN)) - FLT_MANT_DIG + 1)
                            : INFINITY;
    end = jail_end(&jail);
    if (err->code || *obj)
        return err->code;
    return err_set(err, ERR_BAD_INPUT, "assimp %s on it",
                   end == JAIL_TIMED_OUT ? "takes too long" : "crashes");
}
