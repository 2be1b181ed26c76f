/*
 * A write: the change goes to the writer's queue, the request waits there without holding a thread,
 * and the writer's thread finishes the answer. Every write of a locale takes Idempotency-Key and
 * If-Match; one of a model (api/calls/models.c) takes neither.
 */
#ifndef KOTA_API_WRITE_H
#define KOTA_API_WRITE_H

#include "api/call.h"
#include "api/encode.h"

/* The differences between writes: a constant of the file of the call. */
struct write_kind {
    enum world_change_kind change;
    const char *method; /* hashed with the path for the key */
    const char *below;  /* of the path, after the locale's or the layer's id: "" or "/edits" */
    bool may_create;    /* a PUT that takes If-None-Match */
    bool ignores_key;   /* idempotent without a key */
    bool needs_locale;  /* to decode it: without it the shared log is followed first */

    /* The body of the answer; NULL: 204 without one. On the writer's thread. */
    void (*encode)(struct json_writer *w, const struct world_outcome *outcome,
                   const struct imported *import);

    /* Pointer or option in the request of an error that the writer found in its values; may be
     * NULL, and return NULL. */
    const char *(*place)(const struct call *call, const struct world_change *change);
};

/* encode: the Locale, with `import` where there is one. */
void write_encode_locale(struct json_writer *w, const struct world_outcome *outcome,
                         const struct imported *import);

/*
 * Begins a write; layer_id, where its path has one, is in the change: sets its kind, names and
 * finds its locale, reads its headers into op_id, request, if_revision and condition. For routes
 * that are CALL_NEEDS_NOTHING. With a key the locale may be gone, because the writer may know the
 * first answer; call->locale is NULL then.
 *
 * ERR_BAD_INPUT            a header or, on a PUT of it, the locale's id is malformed
 * ERR_NOT_FOUND            no locale, no key
 * ERR_PRECONDITION_FAILED  without a key: by the snapshot
 * ERR_DAMAGED              it could not be loaded
 */
enum err_code write_open(struct call *call, const struct write_kind *kind,
                         struct world_change *change, struct err *err);

/*
 * For a write that takes long to decode, after write_open: asks the writer whether the key is
 * known, and then sends the first answer. Waits for the writer, so only on a worker. If it is not,
 * the checks that write_open leaves to the writer because of the key are done here.
 */
enum err_code write_repeat(struct call *call, const struct write_kind *kind,
                           const struct world_change *change, bool *is_answered, struct err *err);

/*
 * Submits a change and waits for the writer, on whose thread `take` reads the outcome of one that
 * was made. Only on a worker. Else the error of the outcome, or of world_submit.
 */
enum err_code write_wait(struct call *call, struct world_change *change,
                         void (*take)(void *to, const struct world_outcome *outcome), void *to,
                         struct err *err);
/* Is the key of a change known? A change for write_wait: outcome->answer is then the first one. */
struct world_change write_question(const struct world_change *change);

/*
 * Submits a change; its outcome becomes the answer: 201 with Location when it made a locale or a
 * layer, 200, 204 without a body, or the error. `import`: the counts of imported polygons, NULL:
 * none. Takes the values of the change (world_drop), and the charge (upload.h), which is released
 * with the outcome. After ERR_OK the request belongs to the writer: touch nothing of it.
 */
enum err_code write_submit(struct call *call, const struct write_kind *kind,
                           struct world_change *change, const struct imported *import,
                           uint64_t charge, struct err *err);

/*
 * Writes the files of the meshes in `fresh` that are not in `now` (may be NULL) ahead of the change
 * that brings them, so that the writer need not. On a worker. ERR_DISK_FULL, ERR_READ_ONLY.
 */
enum err_code write_save_meshes(struct call *call, struct layer *const *fresh, size_t count,
                                const struct locale *now, struct err *err);

/* Whose write it is, and its note=, for the history. ERR_BAD_INPUT: the note is no such text. */
enum err_code write_author(const struct call *call, struct change_author *out, struct err *err);

/* The hash of a keyed request: of method and path, query, media type and body. */
void write_request_hash(const struct call *call, const char *method_and_path,
                        uint8_t hash[STORE_REQUEST_BYTES]);

#endif
