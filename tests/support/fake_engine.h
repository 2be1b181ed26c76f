/*
 * A sand engine that only pretends, for the manager: a slot reports what the test put there.
 */
#ifndef KOTA_TESTS_FAKE_ENGINE_H
#define KOTA_TESTS_FAKE_ENGINE_H

#include "sand/engine.h"

enum { FAKE_SLOTS = 3 };

struct fake_slot {
    bool is_begun, is_failed, has_status, wants_depth;
    uint32_t granules, asleep, bodies;
    uint64_t steps, removed; /* bodies that were: bits */
    float speed;             /* of the bodies */
    float calm;
    float dug_m; /* how much lower the middle is */
    float height_m;
    uint32_t first_chunk;
    uint64_t stale_steps; /* not 0: answers are of then, and know nothing of later bodies */
    struct sand_depth depth;
    struct sand_pose pose[SAND_BODIES_MAX];
};

struct fake {
    struct sand_engine engine;
    struct fake_slot slots[FAKE_SLOTS];
    bool is_lost, is_silent; /* silent: no answer comes */
    bool is_late;            /* answers are of before the last body came in */
    uint32_t active_most;    /* slots that were stepped in one call */
    uint32_t chunk_most;     /* substeps of one call */
    float substep_ms;
};

extern const struct sand_engine_calls fake_calls;

#endif
