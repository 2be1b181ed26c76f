/*
 * Shapes of sweeps and moves: of a JSON item, or of the query for all items.
 */
#ifndef KOTA_API_SHAPE_DECODE_H
#define KOTA_API_SHAPE_DECODE_H

#include "api/call.h"
#include "world/ask/sweep.h"

/*
 * {"sphere":r} or {"capsule":[r,h]} or {"box":[hx,hy,hz,yaw_deg]}; NULL is missing. `place` is the
 * pointer of the object.
 * ERR_MISSING, ERR_UNKNOWN_MEMBER, ERR_BAD_INPUT
 */
enum err_code shape_of_json(const cJSON *json, const char *place, struct shape *out,
                            struct err *err);

/* sphere=r, capsule=r,h or box=hx,hy,hz,yaw_deg of the query; *is_given: one of them is there. */
enum err_code shape_of_query(struct call *call, struct shape *out, bool *is_given, struct err *err);

/*
 * Decodes item i of a body, answers it and writes the answer at `at`. Returns the end of what it
 * has written, or NULL with an error.
 */
typedef char *shape_answer_fn(struct call *call, const cJSON *json, size_t i, void *options,
                              char *at, struct err *err);

/*
 * Answers each item of the body's "items" with `answer`, in order, as the results of the call. An
 * answer has at most item_bytes.
 * ERR_MISSING, ERR_BAD_INPUT, ERR_TOO_LARGE, ERR_NO_MEMORY and those of `answer`
 */
enum err_code shape_answer_items(struct call *call, shape_answer_fn *answer, void *options,
                                 size_t item_bytes, struct err *err);

/*
 * Before an item that meets about so many triangles: a call on a loop leaves it, ERR_BUSY, when
 * its items so far are many. *sum is theirs, 0 at first.
 */
enum err_code sweep_check_cost(struct call *call, double cost, double *sum, struct err *err);

#endif
