/*
 * Writers and readers of the parts of entries and snapshots, for record.c, record_read.c and the
 * kinds of change (world/write/kinds/). Private to world/; the format is in record.h.
 */
#ifndef KOTA_WORLD_RECORD_DATA_H
#define KOTA_WORLD_RECORD_DATA_H

#include "replica/cluster.h"
#include "world/world.h"

enum {
    RECORD_VERSION_HISTORY = 4, /* of snapshots only */
    RECORD_VERSION = 3,
    RECORD_VERSION_PLACE = 2,
    RECORD_VERSION_FIRST = 1
};

/* A snapshot's kind; those of changes are in WORLD_CHANGE_KINDS (world.h), all of them less. */
enum { RECORD_SNAPSHOT = 100 };

struct record;
struct record_source;

enum record_whole { RECORD_WHOLE_LOCALE, RECORD_DELETED_LOCALE, RECORD_ALL_MODELS };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "recorded numbers are little-endian");

/* ---- record.c: to bytes. Without memory has_no_memory is set; the rest is dropped. --------- */

struct record_sink {
    struct record *record;
    size_t room, blob_room;
    bool has_no_memory;
    struct err failed; /* then, unless the code is ERR_OK: for another reason */
};

void record_put(struct record_sink *sink, const void *bytes, size_t length);
void record_put_id(struct record_sink *sink, const char *id);
/* Manifest and layers. */
void record_put_value(struct record_sink *sink, const struct locale *value);
/* The poses of a value's layers that are moved. */
void record_put_poses(struct record_sink *sink, const struct locale *value);
void record_put_manifest(struct record_sink *sink, const struct locale_manifest *m);
/* Before a layer that has given its locale a place: the manifest with it. */
enum { RECORD_PLACE = 2 };
void record_put_place(struct record_sink *sink, const struct locale_manifest *m);
/* With the place of a manifest: it is a fork's. */
enum { RECORD_FORK = 4 };
void record_put_layer(struct record_sink *sink, const struct layer *layer);
void record_put_model(struct record_sink *sink, const struct model *model);

/* ---- record_read.c: from bytes. After the first error all values are 0 or NULL. ------------ */

struct record_reader {
    const uint8_t *at;
    size_t left;
    const struct record_source *source;
    struct err *err; /* the first error */
    unsigned version;
    struct record_known *known; /* layers that were read before, for others to share; malloc */
    size_t known_count, known_room;
};

/* A layer (a reference) and its bytes as record_put_layer writes them. */
struct record_known {
    struct layer *layer;
    const uint8_t *at;
    size_t length;
    uint8_t *own; /* `at`, malloc; NULL: it is in the reader's bytes */
};

bool record_is_bad(const struct record_reader *r);

/* ERR_DAMAGED, unless there is an error. */
void record_damaged(struct record_reader *r, const char *what);

/* An error of another module about these bytes: ERR_DAMAGED, except a lack of memory. */
void record_refused(struct record_reader *r, const struct err *reason);

void record_get(struct record_reader *r, void *out, size_t length);
void record_get_id(struct record_reader *r, char out[static WORLD_ID_MAX + 1]);
/* A value at a revision; NULL with an error. A fork shares with what it was made of. */
struct locale *record_get_value(struct record_reader *r, const char *id, uint64_t revision);
/* malloc; NULL with an error. */
struct world_poses *record_get_poses(struct record_reader *r);
struct locale_manifest record_get_manifest(struct record_reader *r);

/* A new layer or model of that id; NULL with an error. */
struct layer *record_get_layer(struct record_reader *r, const char *id);
struct model *record_get_model(struct record_reader *r, const char *id);

#endif
