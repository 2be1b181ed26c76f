/*
 * Questions that wait for another answer: items of a watch, by the bodies of the calls that ask
 * them once. An item is asked by that call itself, so its answer has the same bits.
 */
#ifndef KOTA_API_WATCH_SET_H
#define KOTA_API_WATCH_SET_H

#include "api/call.h"
#include "terrain/swept_box.h"

enum { WATCH_ID_CHARS_MAX = 64, WATCH_GROUPS_MAX = 256, WATCH_HITS_MAX = 128 };

/* The names of the calls, NULL-terminated: members of a body. */
extern const char *const watch_kinds[];

/* Items of one call with the same options. */
struct watch_group {
    int kind;           /* of watch_kinds */
    const char *member; /* of the body: static; that its items are in */
    char *options;      /* the other members, each after a comma */
    cJSON *tree;        /* the same */
    size_t weight;      /* of an item: that of mode all its hits_max, one of footprints 16 */
    size_t items;
};

struct watch_item {
    char *id;   /* as JSON; NULL: the place is free */
    char *text; /* of the question, as JSON; in the block of the id */
    uint32_t group;
    size_t length; /* of the answer */
    char *answer;  /* members of an object: "answer":… */
    uint64_t seq;  /* of its last change */
};

/* extents[count] and items[count] belong together. */
struct watch_set {
    struct watch_group *groups;
    size_t group_count;
    struct watch_item *items;
    struct swept_box *extents;
    size_t count, capacity, extent_capacity;
    size_t weight; /* of all items */
};

void watch_set_free(struct watch_set *set);

/*
 * The questions of an object of the body, `place` its pointer: {"height":{"points","ids",…},…}.
 * They have no answers and no extents yet. On error the set is to be freed, too.
 * ERR_BAD_INPUT, ERR_MISSING, ERR_TOO_MANY_ITEMS, ERR_NO_MEMORY
 */
enum err_code watch_set_decode(struct call *call, uint32_t object, const char *place,
                               size_t weight_max, struct watch_set *out, struct err *err);

/* The id at that token as JSON, into `out`; ERR_BAD_INPUT: it is none. */
enum { WATCH_ID_BYTES = WATCH_ID_CHARS_MAX + 3 };
enum err_code watch_id_decode(const struct json_tape *tape, uint32_t token,
                              char out[WATCH_ID_BYTES], struct err *err);

/* What one of count asked items has got: malloc. */
struct watch_answer {
    char *text;
    size_t length;
};

/*
 * Asks items, each by which[i], sorted here, at a locale of the snapshot: answers[count]. With
 * `err` the first error of a call ends it, its pointer in the body of `place`; with NULL it is the
 * answer of its items, and *is_passing says if it may be another one a moment later.
 * ERR_NO_MEMORY
 */
enum err_code watch_set_ask(struct api *api, const struct world_snapshot *snapshot,
                            const struct locale *locale, const struct watch_set *set,
                            uint32_t *which, size_t count, struct watch_answer *answers,
                            const char *place, struct err *err, bool *is_passing);

/* The extents of items that have been asked without an error. ERR_NO_MEMORY */
enum err_code watch_set_extents(struct watch_set *set, const struct locale *locale,
                                struct err *err);

/* Does an answer along gravity belong to the group? */
bool watch_group_falls(const struct watch_group *group);
/* Or along other lines than gravity and Z? */
bool watch_group_is_slanted(const struct watch_group *group);

#endif
