/*
 * A bounded table of ops: a ring in the order of arrival, and chains of ring indices by hash. The
 * oldest op leaves its chain when its place in the ring is taken.
 *
 * Hash: FNV-1a (Fowler, Noll, Vo), 64 bits, with a seed from the table's address, so that chosen
 * ids do not share a chain.
 */
#include "world/write/ops.h"

#include "base/check.h"
#include "base/content_hash.h"

#include <stdlib.h>
#include <string.h>

struct slot {
    struct op op;
    uint32_t next; /* of the chain: index + 1, 0: end */
    uint32_t bucket;
};

struct ops {
    size_t capacity;
    size_t count; /* put ever */
    uint64_t seed;
    uint32_t *buckets;  /* [capacity]: index + 1 */
    struct slot *slots; /* [capacity] */
};

struct ops *ops_create(size_t ops_max, struct err *err)
{
    struct ops *ops = calloc(1, sizeof *ops);

    CHECK(ops_max > 0 && ops_max < UINT32_MAX);
    if (ops) {
        ops->capacity = ops_max;
        ops->seed = (uint64_t)(uintptr_t)ops >> 4;
        ops->buckets = calloc(ops_max, sizeof *ops->buckets);
        ops->slots = calloc(ops_max, sizeof *ops->slots);
    }
    if (ops && ops->buckets && ops->slots)
        return ops;
    ops_destroy(ops);
    err_set(err, ERR_NO_MEMORY, "no memory for %zu ops", ops_max);
    return NULL;
}

void ops_destroy(struct ops *ops)
{
    if (!ops)
        return;
    for (size_t i = 0; ops->slots && i < ops->capacity; i++)
        free(ops->slots[i].op.answer);
    free(ops->slots);
    free(ops->buckets);
    free(ops);
}

static uint32_t bucket_of(const struct ops *ops, const char *id)
{
    uint64_t hash = fnv1a(FNV1A_EMPTY ^ ops->seed, id, strlen(id));

    return (uint32_t)((hash ^ hash >> 32) % ops->capacity);
}

const struct op *ops_find(const struct ops *ops, const char *id)
{
    for (uint32_t at = ops->buckets[bucket_of(ops, id)]; at; at = ops->slots[at - 1].next)
        if (strcmp(ops->slots[at - 1].op.id, id) == 0)
            return &ops->slots[at - 1].op;
    return NULL;
}

static void leave_chain(struct ops *ops, uint32_t index)
{
    uint32_t *link = &ops->buckets[ops->slots[index].bucket];

    while (*link != index + 1) {
        CHECK(*link != 0);
        link = &ops->slots[*link - 1].next;
    }
    *link = ops->slots[index].next;
}

void ops_put(struct ops *ops, const struct op *op)
{
    uint32_t index = (uint32_t)(ops->count % ops->capacity);
    struct slot *slot = &ops->slots[index];
    void *answer = op->answer_bytes ? malloc(op->answer_bytes) : NULL;

    if (op->answer_bytes && !answer)
        return;
    if (ops->count >= ops->capacity) {
        leave_chain(ops, index);
        free(slot->op.answer);
    }
    slot->op = *op;
    slot->op.answer = answer;
    if (answer)
        memcpy(answer, op->answer, op->answer_bytes);
    slot->bucket = bucket_of(ops, op->id);
    slot->next = ops->buckets[slot->bucket];
    ops->buckets[slot->bucket] = index + 1;
    ops->count++;
}
