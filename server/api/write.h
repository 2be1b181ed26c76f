/*
 * A write: the change goes to the writer's queue, the request waits there without holding a thread,
 * and the writer's thread finishes the answer. Every write of a locale takes Idempotency-Key and
 * If-Match; one of a model (api/models.c) takes neither.
 */
#ifndef KOTA_API_WRITE_H
#define KOTA_API_WRITE_H

#include "api/call.h"

/*
 * Begins a write whose kind (and layer_id, where its path has one) stand in the change: names and
 * finds its locale, reads its headers into op_id, request, if_revision and condition. For routes
 * that are CALL_NEEDS_NOTHING. With a key the locale may be gone, because the writer may know the
 * first answer; call->locale is NULL then.
 *
 * ERR_BAD_INPUT            a header or, on a PUT of it, the locale's id is malformed
 * ERR_NOT_FOUND            no locale, no key
 * ERR_PRECONDITION_FAILED  without a key: by what the snapshot says
 * ERR_DAMAGED              it could not be loaded
 */
enum err_code write_open(struct call *call, struct world_change *change, struct err *err);

/*
 * For a write that takes long to decode, after write_open: asks the writer whether the key is
 * known, and then sends the first answer. Waits for the writer: on a worker alone. If it is not,
 * what write_open leaves to the writer because of the key is done here.
 */
enum err_code write_repeat(struct call *call, const struct world_change *change, bool *is_answered,
                           struct err *err);

/*
 * Submits a change; its outcome becomes the answer (201 with Location when something new came to
 * be, 200 Locale, 204 after a deletion, 200 with the rect after an edit, or the error), with what
 * became of imported polygons (NULL: nothing to say). Takes what the change brings (world_drop),
 * and the charge (upload.h), which is released with the outcome. After
 * ERR_OK the request belongs to the writer: touch nothing of it.
 */
enum err_code write_submit(struct call *call, struct world_change *change,
                           const struct mesh_import *import, uint64_t charge, struct err *err);

/*
 * Writes the files of the meshes in `fresh` that are not in `now` (may be NULL) ahead of the change
 * that brings them, so that the writer need not. On a worker. ERR_DISK_FULL, ERR_READ_ONLY.
 */
enum err_code write_save_meshes(struct call *call, struct layer *const *fresh, size_t count,
                                const struct locale *now, struct err *err);

/* The layer's id of …/layers/{layer}: ERR_BAD_INPUT on a PUT, else ERR_NOT_FOUND, when it is none.
 */
enum err_code write_layer_id(const struct call *call, enum err_code code, char *out,
                             struct err *err);

/* What a key stands for: the hash of method and path, query, media type and body. */
void write_request_hash(const struct call *call, const char *method_and_path,
                        uint8_t hash[STORE_REQUEST_BYTES]);

#endif
