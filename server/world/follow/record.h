/*
 * Changes as bytes, for a log that several daemons follow (replica/cluster.h), and back; whole
 * locales as bytes, for its snapshots.
 *
 * The result of a change is recorded, not the request: new samples of a rectangle, the tiles of a
 * layer, polygons and the mesh that was built of them. Applying it gives the same bits on every
 * machine. Numbers are little-endian; large parts are blobs that the bytes name by
 * their hash (BLAKE2b-256).
 *
 *   data of an entry   u8 version, u8 kind, u16 0, u32 n, n bytes: the answer of its op_id (n 0:
 *                      none), of a change of a locale the words of its history: i64 ms since 1970,
 *                      u8 n, n bytes of the author, u16 n, n bytes of the note, u8 1: an uploaded
 *                      set, else 0; then by kind
 *     manifest         u16 n, n bytes of title, 3 f64 gravity, 3 f64 translation, 4 f64 rotation,
 *                      u8 open_sky, u8 triangulation, u8 place, 2 f64; place: 0 none,
 *                      1 latitude and longitude, 2 EPSG code and 0; + 4: of a fork, then u8 n, n
 *                      bytes of from, u64 from_revision
 *     layer            u8 0: heightfield: 3 u32 cols, rows, leaf_cells, u8 triangulation, 4 f64
 *                      origin and spacing, then of each tile, row by row, the hash of its samples
 *                      inside the field, float32
 *                      u8 1: mesh: u8 role, u8 frame, u8 is_outward, 3 f64 gravity, hash of the
 *                      polygons, hash of the mesh's image
 *                      before a layer that has given its locale a place: u8 2, the manifest
 *     edit             the samples of the entry's rectangle, float32
 *     model            hash of its file
 *     polygons edited  the added and removed polygons, as polygon_edit_encode writes them
 *     deletions        nothing
 *     pin              u8 n, n bytes of its name, poses
 *     pin deleted, restored  u8 n, n bytes of its name
 *     reverted         a bit for each sample of the entry's rectangle, 1: it is reverted; then
 *                      those samples, float32
 *     fork             manifest, u32 n, n layers as in a snapshot, poses
 *     poses            u64 transform_seq of the locale, u32 n, of each moved layer: u8 n, n bytes
 *                      of the id, 3 f64 translation, f64 yaw, 4 f64 rotation, u64 transform_seq
 *   polygons           3 u64 counts of vertices, polygons, corners; vertices (3 f64), starts and
 *                      corners (u32); of version 3 instances (polygon_set.h)
 *   a snapshot         u8 version, u8 RECORD_SNAPSHOT, u8 what: 0 locale, 1 deleted locale,
 *                      2 models, u8 0; from version 3 on: u64 revision (else it is the entry's
 *                      number); from version 4 on: u32 n, n hashes of the parts of its history
 *     locale           manifest, u32 n, n layers: u8 length and bytes of the id, layer as above; of
 *                      version 3 on: u32 n, n pins in the order of their revisions: u8 length and
 *                      bytes of the name, u64 revision, manifest, layers, poses
 *     history          rows of its last revisions without a gap, oldest first, 128 a part or less:
 *                      u64 revision, i64 ms since 1970, u8 kind as of an entry, u8 1: it made the
 *                      locale, + 2: it has a rectangle, u8 codec; layer, source, author, note: u16
 *                      n, n bytes; 4 u32 rectangle; u64 n, n bytes of samples as in the store
 *     models           u32 n, of each: u8 length and bytes of the id, hash of its file
 *
 * The version of an entry of a locale is 3, of others 1. That of a snapshot is 4 where it has a
 * history, 3 where it has pins or instances or is of a fork, 2 where a manifest has a crs, else 1,
 * so that older nodes read those.
 *
 * Bytes that are read back are not trusted: an error is ERR_DAMAGED with a reason.
 */
#ifndef KOTA_WORLD_RECORD_H
#define KOTA_WORLD_RECORD_H

#include "replica/cluster.h"
#include "world/world.h"

/* Is in the place of a locale's id where models are meant; no locale has it. */
#define RECORD_MODELS "/models"

/* The source of the bytes of a blob; record_blob_bytes makes them. */
struct record_blob {
    uint8_t hash[CLUSTER_HASH_BYTES];
    enum record_part {
        RECORD_TILE,
        RECORD_POLYGONS,
        RECORD_IMAGE,
        RECORD_FILE,
        RECORD_HISTORY
    } part;
    const struct layer *layer; /* all but the next two */
    uint32_t tile_column, tile_row;
    const struct model *model; /* RECORD_FILE */
    struct store *store;       /* RECORD_HISTORY: rows of revisions after < r <= upto */
    const char *locale;
    uint64_t after, upto, serial; /* as of a tile; 0: none */
};

/* Bytes and the blobs that they name, each once; it borrows layers, models and a locale. */
struct record {
    uint8_t *data; /* malloc */
    size_t bytes;
    struct record_blob *blobs;
    uint8_t (*hashes)[CLUSTER_HASH_BYTES]; /* of the blobs, in the same order */
    size_t blob_count;
};

struct change_result;

/* Is it recorded at all? Moves, shells and questions are not. */
bool record_takes(const struct change_result *result);

/*
 * Records a result in *out, and makes an entry over it that lacks only number, node and fence. The
 * entry of a model has the locale RECORD_MODELS. op_id: that of the change, or else a unique one
 * that begins with '~'.
 * ERR_NO_MEMORY. O(bytes that were recorded).
 */
enum err_code record_result(const struct change_result *result, struct record *out,
                            struct cluster_entry *entry, struct err *err);

/* Where a locale's history is. The key is another one when rows were replaced by others. */
struct record_history {
    struct store *store;
    uint64_t key; /* of record_history_key */
};
uint64_t record_history_key(void);

/* Records a whole locale (NULL: one that was deleted at a revision), as of the entry of a number,
 * with its history (NULL: none; the store's writer); or all models (NULL: none). */
enum err_code record_locale(const struct locale *locale, uint64_t deleted, uint64_t number,
                            const struct record_history *history, struct record *out,
                            struct err *err);
enum err_code record_models(const struct model_list *models, struct record *out, struct err *err);

/* The bytes of a layer: malloc, NULL without memory. */
uint8_t *record_layer(const struct layer *layer, size_t *length);

/* One blob's bytes; *made is to be freed. NULL and ERR_NO_MEMORY, or an error of the store. */
const void *record_blob_bytes(const struct record_blob *blob, size_t *length, void **made,
                              struct err *err);
void record_finish(struct record *record);

/* ---- and back -------------------------------------------------------------------------------- */

/*
 * get   returns a blob: malloc
 * base  a locale here that shares much with a fork of that manifest, borrowed; NULL: none is known,
 *       or with an error. The member may be NULL
 */
struct record_source {
    enum err_code (*get)(void *context, const uint8_t hash[CLUSTER_HASH_BYTES], void **bytes,
                         size_t *length, struct err *err);
    void *context;
    const struct locale *(*base)(void *context, const struct locale_manifest *manifest,
                                 struct err *err);
};

/*
 * The change of an entry, to be made as any other. A generated op_id ('~') is left out. The answer
 * of an op_id is at change->context, which the caller frees. ERR_DAMAGED, ERR_NO_MEMORY, or the
 * error of get.
 */
enum err_code record_change(const struct cluster_entry *entry, const struct record_source *source,
                            struct world_change *out, struct err *err);

/* A locale out of a snapshot as of the entry of a number; *out NULL: it was deleted. */
enum err_code record_read_locale(const char *id, uint64_t number, const void *bytes, size_t length,
                                 const struct record_source *source, struct locale **out,
                                 uint64_t *revision, struct err *err);

/* The rows of the history of such a snapshot, with `packed`, to `take`, as store_history. */
enum err_code record_read_history(const void *bytes, size_t length,
                                  const struct record_source *source, store_take_past take,
                                  void *context, struct err *err);

/* A new list, NULL: no models. */
enum err_code record_read_models(const void *bytes, size_t length,
                                 const struct record_source *source, struct model_list **out,
                                 struct err *err);

#endif
