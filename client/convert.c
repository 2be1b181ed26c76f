/*
 * Meshes through assimp: what the daemon does not read becomes OBJ here and is uploaded as that.
 *
 * The daemon reads glTF, OBJ, PLY, STL, AC3D and COLLADA itself, from clients it does not trust;
 * what else assimp reads (FBX, 3DS, OFF, Blender and so on) is nobody's business but that of the
 * one who has the file. assimp is opened at run time, so that this program starts quickly and needs
 * it for nothing else. It crashes on hostile files all the same, so it runs in the jail that the
 * daemon uses, too (base/jail.h): a forked child that can open nothing and sends back a text.
 *
 * Textures, bones and files that the file refers to are left out. Transforms of the tree are
 * applied; faces keep their corners, so that polygon i of the text is face i of the file.
 */
#include "client/convert.h"

#include "base/jail.h"

#include <assimp/scene.h>
#include <dlfcn.h>
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

/* ---- in the child -----------------------------------------------------------------------------
 */

/* out = a b */
static void multiply(const float a[16], const struct aiMatrix4x4 *b, float out[16])
{
    const float *m = &b->a1;

    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) {
            out[4 * r + c] = 0;
            for (int k = 0; k < 4; k++)
                out[4 * r + c] += a[4 * r + k] * m[4 * k + c];
        }
}

static void write_mesh(FILE *out, const struct aiMesh *mesh, const float m[16], uint64_t *vertices)
{
    for (unsigned i = 0; i < mesh->mNumVertices; i++) {
        const struct aiVector3D *v = &mesh->mVertices[i];
        double at[3];

        for (int r = 0; r < 3; r++)
            at[r] = (double)m[4 * r] * (double)v->x + (double)m[4 * r + 1] * (double)v->y +
                    (double)m[4 * r + 2] * (double)v->z + (double)m[4 * r + 3];
        fprintf(out, "v %.9g %.9g %.9g\n", at[0], at[1], at[2]);
    }
    for (unsigned i = 0; i < mesh->mNumFaces; i++) {
        const struct aiFace *face = &mesh->mFaces[i];

        if (face->mNumIndices < 3)
            continue;
        fputc('f', out);
        for (unsigned k = 0; k < face->mNumIndices; k++)
            fprintf(out, " %llu", (unsigned long long)(*vertices + face->mIndices[k] + 1));
        fputc('\n', out);
    }
    *vertices += mesh->mNumVertices;
}

static void write_node(FILE *out, const struct aiScene *scene, const struct aiNode *node,
                       const float above[16], unsigned depth, uint64_t *vertices)
{
    float m[16];

    if (!node || depth > DEPTH_MAX)
        return;
    multiply(above, &node->mTransformation, m);
    for (unsigned i = 0; i < node->mNumMeshes; i++)
        if (node->mMeshes[i] < scene->mNumMeshes && (uint64_t)ftello(out) < OBJ_BYTES_MAX)
            write_mesh(out, scene->mMeshes[node->mMeshes[i]], m, vertices);
    for (unsigned i = 0; i < node->mNumChildren; i++)
        write_node(out, scene, node->mChildren[i], m, depth + 1, vertices);
}

/* Sends a length and so many bytes; or the length UINT64_MAX and a message. */
static void convert_in_jail(void *context, int pipe)
{
    static const float unit[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const struct conversion *job = context;
    const struct aiScene *scene =
        job->assimp.import(job->bytes, (unsigned)job->count, PROCESS_VALIDATE, job->ending);
    uint64_t length = UINT64_MAX, vertices = 0;
    char message[MESSAGE_BYTES] = "", *text = NULL;
    size_t bytes = 0;
    FILE *out;

    if (!scene) {
        snprintf(message, sizeof(message), "%s", job->assimp.error());
        message[strcspn(message, "\r\n")] = '\0';
        jail_write(pipe, &length, sizeof(length));
        jail_write(pipe, message, sizeof(message));
        return;
    }
    out = open_memstream(&text, &bytes);
    if (!out)
        return;
    write_node(out, scene, scene->mRootNode, unit, 0, &vertices);
    if (fclose(out) != 0)
        return;
    length = bytes;
    jail_write(pipe, &length, sizeof(length));
    jail_write(pipe, text, bytes);
}

/* ---- in the parent ----------------------------------------------------------------------------
 */

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

/* What the child sent; err stays ERR_OK when nothing came, since how it ended then says why. */
static void receive(struct jail *jail, char **obj, size_t *length, struct err *err)
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
    } else if (jail_read(jail, *obj, (size_t)bytes)) {
        *length = (size_t)bytes;
    } else {
        free(*obj);
        *obj = NULL;
    }
}

enum err_code convert_to_obj(const char *bytes, size_t count, const char *ending, char **obj,
                             size_t *length, struct err *err)
{
    static const struct jail_limits limits = {
        .memory_bytes = (uint64_t)MEMORY_MIB << 20, .cpu_s = CPU_S, .wall_s = WALL_S};
    struct conversion job = {.bytes = bytes, .count = count, .ending = ending};
    struct jail jail;
    enum jail_end end;

    *obj = NULL;
    err->code = ERR_OK;
    if (assimp_open(&job.assimp, err) || jail_start(&jail, &limits, convert_in_jail, &job, err))
        return err->code;
    receive(&jail, obj, length, err);
    end = jail_end(&jail);
    if (err->code || *obj)
        return err->code;
    return err_set(err, ERR_BAD_INPUT, "assimp %s on it",
                   end == JAIL_TIMED_OUT ? "takes too long" : "crashes");
}
