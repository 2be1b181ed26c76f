/*
 * Changes as bytes, for a log that several daemons follow (cluster/cluster.h), and back; whole
 * locales as bytes, for its snapshots.
 *
 * What is recorded is what came of a change, not what was asked for: new samples of a rectangle,
 * the tiles of a layer, polygons and the mesh that was built of them. Applying it gives the same
 * bits on every machine. Numbers are little-endian; large parts are blobs that the bytes name by
 * their hash (BLAKE2b-256).
 *
 *   data of an entry   u8 version 1, u8 kind, u16 0, u32 n, n bytes: the answer to be kept (n 0:
 *                      none), then by kind
 *     manifest         u16 n, n bytes of title, 3 f64 gravity, 3 f64 translation, 4 f64 rotation,
 *                      u8 open_sky, u8 triangulation, u8 has_geo, 2 f64 latitude, longitude
 *     layer            u8 0: heightfield: 3 u32 cols, rows, leaf_cells, u8 triangulation, 4 f64
 *                      origin and spacing, then of each tile, row by row, the hash of its samples
 *                      inside the field, float32
 *                      u8 1: mesh: u8 role, u8 frame, u8 is_outward, 3 f64 gravity, hash of the
 *                      polygons, hash of the mesh's image
 *     edit             the samples of the entry's rectangle, float32
 *     model            hash of its file
 *     polygons edited  what has come and gone, as polygon_edit_encode writes it
 *     deletions        nothing
 *   polygons           3 u64 counts of vertices, polygons, corners; vertices (3 f64), starts and
 *                      corners (u32)
 *   a snapshot         u8 version 1, u8 RECORD_SNAPSHOT, u8 what: 0 locale, 1 deleted locale,
 *                      2 models, u8 0
 *     locale           manifest, u32 n, n layers: u8 length and bytes of the id, layer as above
 *     models           u32 n, of each: u8 length and bytes of the id, hash of its file
 *
 * Bytes that come back are not trusted: whatever is wrong is ERR_DAMAGED, and what it says.
 */
#ifndef KOTA_WORLD_RECORD_H
#define KOTA_WORLD_RECORD_H

#include "cluster/cluster.h"
#include "world/world.h"

/* Never renumbered. Kinds of changes that are not recorded have none. */
enum record_kind {
    RECORD_MANIFEST = 1,
    RECORD_DELETE_LOCALE = 2,
    RECORD_LAYER = 3,
    RECORD_DELETE_LAYER = 4,
    RECORD_EDIT = 5,
    RECORD_MODEL = 6,
    RECORD_DELETE_MODEL = 7,
    RECORD_EDIT_POLYGONS = 8,
    RECORD_SNAPSHOT = 100
};

/* Stands for a locale's id where models are meant; it is none. */
#define RECORD_MODELS "/models"

/* Where the bytes of a blob are; they are made when they are asked for. */
struct record_blob {
    uint8_t hash[CLUSTER_HASH_BYTES];
    enum record_part { RECORD_TILE, RECORD_POLYGONS, RECORD_IMAGE, RECORD_FILE } part;
    const struct layer *layer; /* all but RECORD_FILE */
    uint32_t tile_column, tile_row;
    const struct model *model; /* RECORD_FILE */
};

/* Bytes and the blobs that they name, each once; it borrows layers and models. */
struct record {
    uint8_t *data; /* malloc */
    size_t bytes;
    struct record_blob *blobs;
    uint8_t (*hashes)[CLUSTER_HASH_BYTES]; /* of the blobs, in the same order */
    size_t blob_count;
};

struct step;

/* Is it recorded at all? Moves, shells and questions are not. */
bool record_takes(const struct step *step);

/*
 * Of a step that was made: *out, and an entry over it that lacks only node and fence; its locale is
 * RECORD_MODELS where it is of a model, with that revision. op_id: that of the change, or else one
 * that begins with '~' and was never there before.
 * ERR_NO_MEMORY. O(bytes of what was put).
 */
enum err_code record_step(const struct step *step, uint64_t models_revision, struct record *out,
                          struct cluster_entry *entry, struct err *err);

/* Of a whole locale (NULL: one that is deleted), or of all models (NULL: none). */
enum err_code record_locale(const struct locale *locale, struct record *out, struct err *err);
enum err_code record_models(const struct model_list *models, struct record *out, struct err *err);

/* One blob's bytes; *made is to be freed. NULL and ERR_NO_MEMORY. */
const void *record_blob_bytes(const struct record_blob *blob, size_t *length, void **made,
                              struct err *err);
void record_finish(struct record *record);

/* ---- and back -----------------------------------------------------------------------------------
 */

/* Gives a blob: malloc. */
struct record_source {
    enum err_code (*get)(void *context, const uint8_t hash[CLUSTER_HASH_BYTES], void **bytes,
                         size_t *length, struct err *err);
    void *context;
};

/*
 * The change that an entry tells: to be made as any other. An op_id of a node's own ('~') is left
 * out. An answer that is to be kept hangs at change->context, which is the caller's to free.
 * ERR_DAMAGED, ERR_NO_MEMORY, or what get said.
 */
enum err_code record_change(const struct cluster_entry *entry, const struct record_source *source,
                            struct world_change *out, struct err *err);

/* A locale out of a snapshot: locale_assemble takes the layers. */
struct recorded_locale {
    bool is_deleted;
    struct locale_manifest manifest;
    struct layer *layers[LOCALE_LAYERS_MAX];
    size_t layer_count;
};
enum err_code record_read_locale(const void *bytes, size_t length,
                                 const struct record_source *source, struct recorded_locale *out,
                                 struct err *err);
void recorded_locale_free(struct recorded_locale *locale); /* the layers that were not taken */

/* A new list, NULL for none. */
enum err_code record_read_models(const void *bytes, size_t length,
                                 const struct record_source *source, struct model_list **out,
                                 struct err *err);

#endif
