/*
 * What the files of the sand thread share: sand.c has the queue and the thread, sand_pool.c the
 * device and its pools, sand_leave.c bodies that become layers, sand_spheres.c the waiting orders
 * for spheres, sand_live.c ground as it moves, sand_granules.c granules for who draws them.
 */
#ifndef KOTA_SAND_SAND_DATA_H
#define KOTA_SAND_SAND_DATA_H

#include "sand/patch/leases.h"
#include "sand/patch/report_table.h"
#include "sand/sand.h"

#include <pthread.h>
#include <stdatomic.h>

struct node;           /* of the queue, sand.c */
struct waiter;         /* for the end of a patch, sand.c */
struct live_ground;    /* sand_live.c */
struct granule_keeper; /* sand_granules.c */

/* An order for the spheres of a patch, sand_spheres.c. */
struct sphere_wait {
    uint64_t number;
    float (*spheres)[4]; /* malloc */
    uint32_t count, room;
    bool is_requested, is_done;
    double until_s;
    struct err err;
    struct sphere_wait *next;
};

/* A write under way, and what came of it. */
struct written {
    struct sand *sand;
    struct node *node; /* for the return: the writer must not need memory */
    uint64_t number;
    char layer[WORLD_ID_MAX + 1];
    struct change_origin origin;
    /* sand_leave.c: */
    struct world_change ground; /* the edit; edit.rect.cols 0: there is none */
    struct vec3 gravity;
    struct patch_left left[SAND_BODIES_MAX];
    uint32_t left_count;
    bool is_leaving; /* by a thread */
    pthread_t thread;
    /* from the writer's thread: */
    enum err_code code;
    uint64_t revision;
    struct heightfield *field; /* as it is then, a reference; NULL unless ERR_OK */
    char why[PATCH_REASON_BYTES];
};

/* Live values of locales with open patches. */
struct live {
    pthread_mutex_t mutex;
    struct live_ground *grounds; /* the sand thread adds and removes */
    _Atomic bool is_wanted;      /* a reader waits: the sand thread does not sleep */
    bool wakes;                  /* the sand thread's: readers that wait are to be woken */
    uint64_t made;               /* the sand thread's: values */
};

/* The pool of one scale. */
struct sand_pool {
    bool is_wanted; /* somebody waits for it */
    bool is_made;
    bool is_rate_wanted;  /* its rate was too low for somebody */
    double measured_at_s; /* the rate */
    double used_at_s;     /* when it was last in use, or asked for */
    struct err why;       /* why it could not be made, the last time */
};

struct sand {
    struct world *world;
    struct sand_config config;
    pthread_t thread;
    struct report_table reports;
    struct repeats *repeats;
    struct live live;
    _Atomic int followers;

    pthread_mutex_t mutex; /* what follows, up to the line */
    pthread_cond_t is_wanted, is_answered;
    struct node *first, **last;
    size_t queued;
    struct sphere_wait *spheres;
    struct granule_keeper *granules;
    bool has_granule_waits; /* the sand thread does not sleep */
    struct sand_pool pools[SCALE_COUNT];
    bool has_thread;
    bool is_in_driver, is_left; /* left in the driver at the end: it touches nothing any more */
    bool is_open, is_stopping, is_over;
    bool saves_at_end;  /* with is_stopping */
    double end_until_s; /* as this */
    struct sand_stats stats;
    void (*wake)(void *context);
    void *wake_context;

    /* the sand thread's own */
    struct manager *manager;
    struct device *device;
    struct waiter *waiters;
    struct patch_leases leases;
    size_t writes; /* that are with the writer */
    bool is_lost;
    double rebuild_at_s;
    uint64_t ticks, orders;
};

/* ---- sand.c ---------------------------------------------------------------------------------- */

/* Starts the thread, unless it runs. The mutex is held. ERR_INTERNAL; ERR_BUSY: the end. */
enum err_code sand_need_thread(struct sand *sand, struct err *err);

/* The end of a write: it goes back to the sand thread. Any thread. */
void sand_write_done(void *context, const struct world_outcome *outcome);

/* ---- sand_leave.c, on the sand thread -------------------------------------------------------- */

/*
 * Writes the ground (which is taken, also on error) together with the bodies of its patch, as
 * layers, by a thread of its own, which ends with sand_write_done.
 * ERR_PRECONDITION_FAILED  the locale is at another revision than the change's
 * ERR_UNPROCESSABLE        a sum beyond float32; ERR_NO_MEMORY, ERR_INTERNAL (no thread)
 */
enum err_code sand_leave(struct written *written, const struct world_change *ground,
                         struct err *err);

/* ---- sand_pool.c, on the sand thread --------------------------------------------------------- */

/* What others may know, as it is now. */
void sand_publish_stats(struct sand *sand);
/*
 * Opens the device and makes the pools that are wanted; makes the device again after a loss.
 * False: the end has come meanwhile, and nothing may be touched (sand_stop).
 */
bool sand_pools_make(struct sand *sand);
/* Gives idle pools back. Returns the seconds until the next is due, INFINITY for none. */
double sand_pools_release(struct sand *sand);
/* Is a pool, the device or a rate wanted? The mutex is held. */
bool sand_pools_wanted(const struct sand *sand);

/* ---- sand_spheres.c, on the sand thread ------------------------------------------------------ */

/* Borrows a wait with its number, the rest 0, until sand_spheres_serve has set is_done. */
void sand_spheres_ask(struct sand *sand, struct sphere_wait *wait);
/* True while a thread waits. */
bool sand_spheres_serve(struct sand *sand);

/* ---- sand_live.c, on the sand thread --------------------------------------------------------- */

void live_init(struct live *live);
void live_finish(struct live *live);
/* A newer report of a patch. */
void live_report(struct live *live, struct patch_report *report);
/* Orders the spheres of what is due: before sand_spheres_serve. */
void live_begin(struct sand *sand);
/* Makes the values whose spheres have come: after it. */
void live_make(struct sand *sand);

/* ---- sand_granules.c, on the sand thread ----------------------------------------------------- */

/* Orders the spheres of what is asked for: before sand_spheres_serve. */
void granules_begin(struct sand *sand);
/* Publishes what has come, and answers: after it. */
void granules_make(struct sand *sand);
/* Answers all that wait: the end has begun. */
void granules_refuse(struct sand *sand);
void granules_finish(struct sand *sand);

#endif
