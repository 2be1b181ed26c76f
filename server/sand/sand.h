/*
 * Sand: the thread that owns the device, the engines and the manager of patches.
 *
 * Orders go in by a queue, and each is answered once on the sand thread. The output is reports
 * (patch.h): the newest of each patch is in the report table, which is locked only for counting a
 * reference. Edits go to the world's writer like all others.
 */
#ifndef KOTA_SAND_SAND_H
#define KOTA_SAND_SAND_H

#include "sand/device.h"
#include "sand/patch/manager.h"
#include "sand/patch/repeats.h"
#include "world/values/snapshot.h"

struct sand_config {
    struct device_config device;
    struct manager_limits limits;
    size_t orders_max; /* that wait: ERR_BUSY */
    double idle_s;     /* without a patch, until a pool is given back, 60 */
    bool is_warm;      /* the device and all pools are made at the start, and stay */
};

/* Every number at its default. */
void sand_config_init(struct sand_config *config);

struct sand;

/*
 * A device that is named (device_is_explicit) is opened now and waited for; that it is missing is
 * no error. Else thread and device wait for the first patch. Borrows the world. NULL:
 * ERR_NO_MEMORY, ERR_INTERNAL.
 */
struct sand *sand_create(struct world *world, const struct sand_config *config, struct err *err);
/*
 * Takes no more orders and begins to end; does not wait. saves: every patch continues until it
 * rests and is written, for within_s at most, and those that are not written by then are discarded
 * and logged; else all are discarded now. What waits is answered (ERR_BUSY at the end). The world
 * must still run.
 */
void sand_end(struct sand *sand, bool saves, double within_s);
/*
 * Waits for that and joins the thread; reports can still be read. NULL is fine. False: the thread
 * is in a driver that is still being opened. It then touches nothing but the driver and this sand,
 * which is not destroyed, and only _exit ends the process safely.
 */
bool sand_stop(struct sand *sand);
void sand_destroy(struct sand *sand); /* after sand_stop was true; NULL is fine */

/*
 * Called after each new report of a patch while one is followed, after each change of a state or
 * of bodies, and when a live value is there that a reader waits for (sand_live); any time, sand
 * thread.
 */
void sand_set_wake(struct sand *sand, void (*wake)(void *context), void *context);
/* Somebody begins (1) or ends (-1) to follow patches. Any thread. */
void sand_follow(struct sand *sand, int change);

/* ---- orders, any thread ---------------------------------------------------------------------- */

/*
 * What came of an order, on the sand thread: the report is borrowed, NULL unless ERR_OK.
 */
typedef void (*sand_done)(void *context, enum err_code code, const struct err *err,
                          struct patch_report *report, bool is_repeat);

enum sand_order_kind { SAND_ADD, SAND_BODY, SAND_PUSH, SAND_UNBODY, SAND_CLOSE };

struct sand_order {
    enum sand_order_kind kind;
    uint64_t number;          /* all but SAND_ADD */
    struct patch_start start; /* SAND_ADD; taken */
    struct patch_body body;   /* SAND_BODY; taken */
    uint32_t body_index;      /* SAND_PUSH, SAND_UNBODY */
    struct patch_push push;   /* SAND_PUSH */
    bool discard;             /* SAND_CLOSE, which is done when the patch has ended */
    struct order_key key;
    sand_done done;
    void *context;
};

/* Frees the members of an order that is not submitted. */
void sand_order_drop(struct sand_order *order);

/*
 * An order under a key that is known (repeats.h) does nothing and gets the report that the first
 * one got (is_repeat); another request under it is ERR_UNPROCESSABLE. Called before an order is
 * decoded, because a repeat is answered even when no patch is free. Any thread.
 */
struct patch_report *sand_repeat(struct sand *sand, const struct order_key *key, struct err *err);

/*
 * Queues an order; takes its members, also on error, and then done is not called.
 * ERR_BUSY: too many wait, or the daemon stops. ERR_NO_MEMORY.
 */
enum err_code sand_submit(struct sand *sand, struct sand_order *order, struct err *err);

/*
 * The spheres of a patch as they are now: (*spheres)[*count][4] as sand_spheres_poll gives them,
 * malloc. Waits for the sand thread, at most some seconds: on a worker only.
 * ERR_CONFLICT  the patch has no granules, not yet or no more
 * ERR_BUSY
 */
enum err_code sand_patch_spheres(struct sand *sand, uint64_t number, float (**spheres)[4],
                                 uint32_t *count, struct err *err);

/* One granule as it is drawn. */
struct granule_shown {
    /* place in the locale's frame, orientation x y z w, radius of its spheres, and a lightness
     * 0..1 of its own that stays */
    float numbers[9];
    uint64_t moved_step; /* of the first value in which it was as it is */
};

/* All granules of a patch, by their numbers. Immutable, counted. */
struct granule_set {
    uint32_t refs;   /* atomic */
    uint64_t serial; /* of the report that it is at least as new as */
    uint64_t step;   /* grows with each value that differs from the one before */
    uint32_t count;
    struct granule_shown granules[];
};
struct granule_set *granule_set_ref(struct granule_set *set);
void granule_set_unref(struct granule_set *set); /* NULL is fine */

/*
 * The granules of a patch, not older than its newest report or 50 ms. done is called once: at once,
 * by this thread, where they are there; else by the sand thread, while the caller holds no thread.
 * The set is borrowed; NULL: ERR_CONFLICT (the patch has none), ERR_BUSY, ERR_NO_MEMORY.
 */
typedef void (*granules_done)(void *context, const struct err *err, const struct granule_set *set);
void sand_granules_ask(struct sand *sand, const struct patch_report *report, granules_done done,
                       void *context);

/*
 * The newest value that is there, a reference; NULL: none yet, or no memory. One that is older than
 * the report is made again then, and the wake of sand_set_wake is called. Any thread.
 */
struct granule_set *sand_granules_now(struct sand *sand, const struct patch_report *report);

/* ---- what can be known, any thread ----------------------------------------------------------- */

/* The newest report, a reference; NULL when the locale has no such patch. */
struct patch_report *sand_report(struct sand *sand, const char *locale, uint64_t number);

/* The number of the last change of a patch's state or bodies (report_table.h); no lock. */
uint64_t sand_last_change(const struct sand *sand);
/* The report with the least change above `after`, of a locale or with NULL of all: a reference.
 * NULL: there is none. */
struct patch_report *sand_next_change(struct sand *sand, const char *locale, uint64_t after);

/*
 * References on the reports of a locale's patches, by number: malloc, *count of them. NULL without
 * memory.
 */
struct patch_report **sand_reports(struct sand *sand, const char *locale, size_t *count);

/*
 * Can patches of this scale be simulated now? ERR_NO_DEVICE with the reason why not; ERR_BUSY: the
 * device or the pool of this scale is not made yet, or the daemon stops meanwhile.
 */
enum err_code sand_ready(struct sand *sand, enum granular_scale scale, struct err *err);

/*
 * Wants the pool of this scale, and waits for it. ERR_OK: it is there. ERR_NO_DEVICE: there is no
 * device. ERR_BUSY: it is not there after so many seconds, or the daemon stops. Else why it could
 * not be made: ERR_NO_MEMORY, ERR_UNPROCESSABLE, ERR_INTERNAL.
 */
enum err_code sand_wait(struct sand *sand, enum granular_scale scale, double seconds,
                        struct err *err);

/*
 * The limits of an engine of this scale, for making orders; while there is none, their maxima.
 * ERR_NO_DEVICE: this daemon has no patches of this scale.
 */
enum err_code sand_engine_config(struct sand *sand, enum granular_scale scale,
                                 struct sand_engine_config *out, struct err *err);

/*
 * The rate of this scale was too low for a request: it is measured again, soon, where it is some
 * seconds old and no patch is in the pool. A machine that was busy at the first measurement would
 * refuse for good otherwise.
 */
void sand_measure_again(struct sand *sand, enum granular_scale scale);

/* Is a slot of this scale free at the moment? Only a hint: ERR_BUSY as of manager_add. */
enum err_code sand_is_free(struct sand *sand, enum granular_scale scale, struct err *err);

/* ---- live ground (sand_live.c), any thread -------------------------------------------------- */

enum live_answer {
    LIVE_NONE, /* no patch of the locale lives: its settled value is the live one, too */
    LIVE_MADE,
    LIVE_LATER, /* being made: sand_set_wake's function is called when it is there */
};

/*
 * The live value of a locale of this snapshot, a reference in *out if LIVE_MADE: of the same
 * revision, or of a later one. has_waited: it was not LIVE_LATER for this snapshot, so a patch that
 * came or went since may be disregarded. Any thread.
 */
enum live_answer sand_live(struct sand *sand, const struct world_snapshot *snapshot,
                           struct locale *settled, bool has_waited, struct locale **out);

struct sand_stats {
    struct device_info device;
    bool is_possible; /* there is a device, or it is not known yet that there is none */
    bool has_pool[SCALE_COUNT];
    struct manager_stats patches; /* slots: those that there may be */
    uint64_t ticks, orders, live_made;
};
void sand_stats(struct sand *sand, struct sand_stats *out);

#endif
