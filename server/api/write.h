/*
 * A write: the change goes to the writer's queue, the request waits there without holding a thread,
 * and the writer's thread finishes the answer.
 */
#ifndef KOTA_API_WRITE_H
#define KOTA_API_WRITE_H

#include "api/call.h"

/*
 * Submits a change; its outcome becomes the answer (201 with Location when something new came to
 * be, 200 Locale, 204 after a deletion, or the error), with what became of imported polygons
 * (NULL: nothing to say). Takes change->layer and change->prepared, and the charge (upload.h),
 * which is released with the outcome. After ERR_OK the request belongs to the writer: touch nothing
 * of it.
 */
enum err_code write_submit(struct call *call, struct world_change *change,
                           const struct mesh_import *import, uint64_t charge, struct err *err);

/* The layer's id of …/layers/{layer}: ERR_BAD_INPUT on a PUT, else ERR_NOT_FOUND, when it is none.
 */
enum err_code write_layer_id(const struct call *call, enum err_code code, char *out,
                             struct err *err);

#endif
