/*
 * Idempotency records of a world without a store: the answers to the last changes with an op_id.
 */
#ifndef KOTA_WORLD_OPS_H
#define KOTA_WORLD_OPS_H

#include "store/store.h"

enum { OPS_MAX = 10000 };

struct ops;

/* The record of one op. */
struct op {
    char id[STORE_OP_ID_MAX + 1];
    uint8_t request[STORE_REQUEST_BYTES];
    uint64_t revision;
    struct sample_rect rect;
    void *answer; /* malloc */
    size_t answer_bytes;
};

/* NULL and ERR_NO_MEMORY. One thread at a time. */
struct ops *ops_create(size_t ops_max, struct err *err);
void ops_destroy(struct ops *ops); /* NULL is fine */

/* The op of that id, borrowed until the next ops_put; NULL: unknown, or dropped. O(1). */
const struct op *ops_find(const struct ops *ops, const char *id);

/* Adds an op that is not known, a copy; drops the oldest when there are ops_max. O(1). Without
 * memory for the answer it is not added: a repeat is then made as a new change. */
void ops_put(struct ops *ops, const struct op *op);

#endif
