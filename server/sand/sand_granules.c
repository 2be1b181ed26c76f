/*
 * The granules of a patch, as a published value: what a page draws.
 *
 * A question takes the newest value if that is of the newest report or younger than KEEP_S; else it
 * waits in a list, without a thread, until the sand thread has made the next one. At rest only the
 * value of that report, or of a later one, will do: the answer has an ETag. A value is made of
 * the spheres that every engine gives: a granule's four are a tetrahedron, so their middle is its
 * place and their axes are its orientation. Without questions nothing is made.
 *
 * A value knows of each granule when it last moved, bit for bit, among the values before it: so
 * `since` of any of them is exact. Steps of values grow, and two that differ have two steps.
 */
#include "sand/sand_data.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_S 0.05  /* 20 values a second at most */
#define FORGET_S 10. /* after the last question */

struct granule_wait {
    uint64_t serial; /* of the report that the value must have at least; 0: any next one */
    granules_done done;
    void *context;
    struct granule_wait *next;
};

/* Of one patch. The sand thread removes it; others add, and add to waits, under sand->mutex. */
struct granule_keeper {
    uint64_t number;
    char locale[WORLD_ID_MAX + 1];
    struct granule_set *set; /* NULL: none yet */
    double asked_s, made_s;
    struct granule_wait *waits;
    bool is_wanted; /* without a wait: streams are woken */
    struct granule_keeper *next;
    /* the sand thread's */
    bool is_asking;
    struct sphere_wait spheres;
    struct patch_report *report; /* while is_asking, of before it */
};

struct granule_set *granule_set_ref(struct granule_set *set)
{
    __atomic_fetch_add(&set->refs, 1, __ATOMIC_RELAXED);
    return set;
}

void granule_set_unref(struct granule_set *set)
{
    if (set && __atomic_fetch_sub(&set->refs, 1, __ATOMIC_ACQ_REL) == 1)
        free(set);
}

/* ---- questions, any thread ------------------------------------------------------------------- */

/* The mutex is held. NULL without memory. */
static struct granule_keeper *keeper_of(struct sand *sand, const struct patch_report *report)
{
    struct granule_keeper *keeper = sand->granules;

    while (keeper && keeper->number != report->number)
        keeper = keeper->next;
    if (keeper)
        return keeper;
    keeper = calloc(1, sizeof *keeper);
    if (!keeper)
        return NULL;
    keeper->number = report->number;
    memcpy(keeper->locale, report->locale, sizeof keeper->locale);
    keeper->next = sand->granules;
    sand->granules = keeper;
    return keeper;
}

/* The mutex is held. The set, a reference; or NULL: it waits, or err is set. */
static struct granule_set *look(struct sand *sand, const struct patch_report *report,
                                granules_done done, void *context, struct err *err)
{
    const double now_s = monotonic_s();
    const bool is_still = report->state == PATCH_RESTING;
    struct granule_keeper *keeper;
    struct granule_wait *wait;

    err->code = ERR_OK;
    if (sand->is_stopping) {
        err_set(err, ERR_BUSY, "the daemon stops");
        return NULL;
    }
    keeper = keeper_of(sand, report);
    if (keeper)
        keeper->asked_s = now_s;
    if (keeper && keeper->set &&
        (keeper->set->serial >= report->serial || (!is_still && now_s - keeper->made_s < KEEP_S)))
        return granule_set_ref(keeper->set);
    wait = keeper ? malloc(sizeof *wait) : NULL;
    if (!wait) {
        err_set(err, ERR_NO_MEMORY, "no memory for the granules of patch %llu",
                (unsigned long long)report->number);
        return NULL;
    }
    *wait = (struct granule_wait){is_still ? report->serial : 0, done, context, keeper->waits};
    keeper->waits = wait;
    sand->has_granule_waits = true;
    pthread_cond_signal(&sand->is_wanted);
    return NULL;
}

void sand_granules_ask(struct sand *sand, const struct patch_report *report, granules_done done,
                       void *context)
{
    struct granule_set *set;
    struct err err;

    pthread_mutex_lock(&sand->mutex);
    set = look(sand, report, done, context, &err);
    pthread_mutex_unlock(&sand->mutex);
    if (set || err.code != ERR_OK)
        done(context, &err, set);
    granule_set_unref(set);
}

struct granule_set *sand_granules_now(struct sand *sand, const struct patch_report *report)
{
    struct granule_set *set = NULL;
    struct granule_keeper *keeper;

    pthread_mutex_lock(&sand->mutex);
    keeper = sand->is_stopping ? NULL : keeper_of(sand, report);
    if (keeper) {
        keeper->asked_s = monotonic_s();
        if (!keeper->set ||
            keeper->set->serial < report->serial) { /* after the last one none comes */
            keeper->is_wanted = sand->has_granule_waits = true;
            pthread_cond_signal(&sand->is_wanted);
        }
        if (keeper->set)
            set = granule_set_ref(keeper->set);
    }
    pthread_mutex_unlock(&sand->mutex);
    return set;
}

/* ---- the sand thread ------------------------------------------------------------------------- */

static struct granule_keeper *first_of(struct sand *sand)
{
    struct granule_keeper *first;

    pthread_mutex_lock(&sand->mutex);
    first = sand->granules;
    sand->has_granule_waits = false;
    pthread_mutex_unlock(&sand->mutex);
    return first;
}

static bool is_asked(struct sand *sand, const struct granule_keeper *keeper)
{
    bool is_needed;

    pthread_mutex_lock(&sand->mutex);
    is_needed = keeper->waits || keeper->is_wanted;
    pthread_mutex_unlock(&sand->mutex);
    return is_needed;
}

/* The mutex is held. Those that a value of this serial answers. */
static struct granule_wait *take_waits(struct granule_keeper *keeper, uint64_t serial)
{
    struct granule_wait *taken = NULL, **at = &keeper->waits;

    while (*at) {
        struct granule_wait *wait = *at;

        if (wait->serial > serial) {
            at = &wait->next;
            continue;
        }
        *at = wait->next;
        wait->next = taken;
        taken = wait;
    }
    return taken;
}

static void answer_waits(struct granule_wait *waits, const struct err *err,
                         const struct granule_set *set)
{
    while (waits) {
        struct granule_wait *wait = waits;

        waits = wait->next;
        wait->done(wait->context, err, set);
        free(wait);
    }
}

void granules_begin(struct sand *sand)
{
    for (struct granule_keeper *keeper = first_of(sand); keeper; keeper = keeper->next) {
        if (keeper->is_asking || !is_asked(sand, keeper))
            continue;
        keeper->is_asking = true;
        keeper->report = report_table_find(&sand->reports, keeper->locale, keeper->number);
        keeper->spheres = (struct sphere_wait){.number = keeper->number};
        sand_spheres_ask(sand, &keeper->spheres);
    }
}

/* The unit quaternion x y z w of a rotation, its columns the turned axes (S. W. Shepperd 1978). */
static void quaternion_of(const double m[3][3], float q[4])
{
    const double trace = m[0][0] + m[1][1] + m[2][2];
    double v[4] = {0, 0, 0, 0}, length;
    int i = m[1][1] > m[0][0] ? 1 : 0;

    i = m[2][2] > m[i][i] ? 2 : i;
    if (trace > 0) {
        v[3] = 1 + trace;
        for (int k = 0; k < 3; k++)
            v[k] = m[(k + 1) % 3][(k + 2) % 3] - m[(k + 2) % 3][(k + 1) % 3];
    } else {
        const int j = (i + 1) % 3, k = (i + 2) % 3;

        v[i] = 1 + m[i][i] - m[j][j] - m[k][k];
        v[j] = m[i][j] + m[j][i];
        v[k] = m[i][k] + m[k][i];
        v[3] = m[j][k] - m[k][j];
    }
    length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3]);
    for (int k = 0; k < 4; k++)
        q[k] = (float)(length > 0 ? v[k] / length : k == 3);
}

/* Place and turn of a granule of its spheres; from the corner of its patch. */
static void granule_of(const float (*s)[4], const struct convert_place *place, float out[7])
{
    const double low[3] = {place->low.x, place->low.y, place->z_m};
    double axes[3][3] = {{0}};

    for (int k = 0; k < 3; k++) {
        double sum = 0;

        for (int j = 0; j < GRANULE_SPHERES; j++) {
            sum += (double)s[j][k];
            for (int a = 0; a < 3; a++)
                axes[a][k] += (double)GRANULE_CORNER[j][a] * (double)s[j][k];
        }
        out[k] = (float)(low[k] + sum / GRANULE_SPHERES);
    }
    for (int a = 0; a < 3; a++) {
        const double length =
            sqrt(axes[a][0] * axes[a][0] + axes[a][1] * axes[a][1] + axes[a][2] * axes[a][2]);

        for (int k = 0; k < 3; k++)
            axes[a][k] = length > 0 ? axes[a][k] / length : a == k;
    }
    quaternion_of(axes, out + 3);
}

/* NULL without memory. Granules come first in the spheres, four each. */
static struct granule_set *set_of(const struct granule_keeper *keeper)
{
    const struct patch_report *report = keeper->report;
    const struct granule_set *before = keeper->set;
    const float(*spheres)[4] = (const float(*)[4])keeper->spheres.spheres;
    uint32_t count = 0;
    struct granule_set *set;
    bool has_moved = !before;

    while (count < keeper->spheres.count && spheres[count][3] < 0)
        count++;
    count /= GRANULE_SPHERES;
    set = calloc(1, sizeof *set + count * sizeof set->granules[0]);
    if (!set)
        return NULL;
    *set = (struct granule_set){.refs = 1, .serial = report->serial, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        struct granule_shown *shown = &set->granules[i];

        granule_of(spheres + GRANULE_SPHERES * (size_t)i, &report->place, shown->numbers);
        shown->numbers[7] = scale_radius_m(report->scale);
        shown->numbers[8] = (float)(granule_hash(i + 1) & 0xff) / 255;
        if (before && i < before->count &&
            memcmp(shown->numbers, before->granules[i].numbers, sizeof shown->numbers) == 0)
            shown->moved_step = before->granules[i].moved_step;
        else
            has_moved = true;
    }
    set->step = before ? before->step + has_moved : 1;
    if (set->step < report->steps && has_moved)
        set->step = report->steps;
    for (uint32_t i = 0; i < count; i++)
        if (set->granules[i].moved_step == 0)
            set->granules[i].moved_step = set->step;
    return set;
}

static void finish(struct sand *sand, struct granule_keeper *keeper)
{
    struct granule_set *set = NULL, *before;
    struct granule_wait *waits;
    struct err err = keeper->spheres.err;

    if (err.code == ERR_OK && keeper->report) {
        set = set_of(keeper);
        if (!set)
            err_set(&err, ERR_NO_MEMORY, "no memory for %u spheres", keeper->spheres.count);
    } else if (err.code == ERR_OK) {
        err_set(&err, ERR_CONFLICT, "the patch is gone");
    }
    pthread_mutex_lock(&sand->mutex);
    before = keeper->set;
    keeper->set = set ? set : before;
    keeper->made_s = monotonic_s();
    waits = take_waits(keeper, set ? set->serial : UINT64_MAX);
    if (set && keeper->is_wanted && sand->wake)
        sand->wake(sand->wake_context);
    keeper->is_wanted = false;
    pthread_mutex_unlock(&sand->mutex);
    answer_waits(waits, &err, set);
    if (set)
        granule_set_unref(before);
    free(keeper->spheres.spheres);
    patch_report_unref(keeper->report);
    keeper->report = NULL;
    keeper->is_asking = false;
}

static void keeper_free(struct granule_keeper *keeper)
{
    granule_set_unref(keeper->set);
    free(keeper);
}

void granules_make(struct sand *sand)
{
    const double now_s = monotonic_s();

    for (struct granule_keeper *keeper = first_of(sand); keeper; keeper = keeper->next)
        if (keeper->is_asking && keeper->spheres.is_done)
            finish(sand, keeper);
    pthread_mutex_lock(&sand->mutex);
    for (struct granule_keeper **at = &sand->granules; *at;) {
        struct granule_keeper *keeper = *at;

        sand->has_granule_waits |= (keeper->waits || keeper->is_wanted) && !keeper->is_asking;
        if (keeper->is_asking || keeper->waits || now_s - keeper->asked_s < FORGET_S) {
            at = &keeper->next;
        } else {
            *at = keeper->next;
            keeper_free(keeper);
        }
    }
    pthread_mutex_unlock(&sand->mutex);
}

void granules_refuse(struct sand *sand)
{
    struct err err;

    err_set(&err, ERR_BUSY, "the daemon stops");
    for (struct granule_keeper *keeper = first_of(sand); keeper; keeper = keeper->next) {
        struct granule_wait *waits;

        pthread_mutex_lock(&sand->mutex);
        waits = take_waits(keeper, UINT64_MAX);
        pthread_mutex_unlock(&sand->mutex);
        answer_waits(waits, &err, NULL);
    }
}

void granules_finish(struct sand *sand)
{
    while (sand->granules) {
        struct granule_keeper *keeper = sand->granules;

        sand->granules = keeper->next;
        if (keeper->is_asking) {
            free(keeper->spheres.spheres);
            patch_report_unref(keeper->report);
        }
        keeper_free(keeper);
    }
}
