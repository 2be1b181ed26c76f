/*
 * Live ground.
 *
 * Problem: queries must see ground that moves, several times a second, while settled answers keep
 * every bit and no reader waits for the sand. Approach: a live value is an ordinary immutable
 * locale, made as an edit makes one: the samples inside each living patch are those of its surface
 * (convert/surface.h), and all else is shared. So queries run on it unchanged. It has the revision
 * of the settled value that it was made of, and only readers who ask for it meet it.
 *
 * The maker is the sand thread, because the spheres are there. It makes a value each LIVE_EVERY_S
 * while something moves and a reader has asked within LIVE_ASKED_S, in at most a LIVE_PART-th of
 * its time. A value is dropped without readers. When a patch begins or ends it is outdated: a
 * request that begins then waits for the next one, a request that has begun takes it.
 *
 * A value stays right as long as the settled fields below it are the same: when other layers of the
 * locale change or move, a reader exchanges its layers in the newer settled value (O(layers)). When
 * such a field has changed, the reader hands over the newer value and has to wait until the sand
 * thread has made the live one of it (LIVE_LATER).
 *
 * Bodies are layers after those of the value (locale_with_bodies), at the poses of the newest
 * reports: those that GET …/patches/{p} shows. They cost no surface, so a reader adds them, and the
 * next readers share the result until a report is newer.
 *
 * Invariants: base and value are of one revision and differ in the fields of living patches only;
 * samples on a patch's edge and holes are those of base. is_asking: the wait is in the sand's list,
 * and the patch is not freed.
 */
#include "sand/sand_data.h"

#include "base/clock.h"
#include "sand/convert/surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIVE_EVERY_S 0.2
#define LIVE_ASKED_S 2.0
#define LIVE_PART 10

struct live_patch {
    struct live_patch *next;
    struct patch_report *report; /* the newest, a reference */
    struct sphere_wait wait;
    bool is_asking, is_gone;
};

struct live_ground {
    struct live_ground *next;
    char locale[WORLD_ID_MAX + 1];

    /* under the mutex */
    double asked_s;              /* when a reader last asked */
    struct locale *wanted;       /* a settled value that a reader waits for; NULL: none waits */
    uint64_t wanted_serial;      /* of its snapshot, as base_serial */
    struct locale *base, *value; /* NULL: none is made */
    struct locale *answer;       /* value with the bodies; NULL: not made yet */
    uint64_t answer_of;          /* the sum of the reports' serials */
    uint64_t base_serial;
    bool is_outdated; /* patches have come or gone since */
    bool has_begun;   /* there has been a value */

    /* the sand thread's own */
    struct live_patch *patches;
    double made_s, cost_s;
    uint64_t made_of;       /* the sum of the reports' serials */
    uint32_t changes;       /* patches that came or went */
    uint32_t begun_changes; /* as of the spheres */
    bool is_making;
};

void live_init(struct live *live)
{
    *live = (struct live){.grounds = NULL};
    pthread_mutex_init(&live->mutex, NULL);
}

/* The mutex is held, here and below, up to the line. */
static void drop_value(struct live_ground *ground)
{
    locale_unref(ground->base);
    locale_unref(ground->value);
    locale_unref(ground->answer);
    ground->base = ground->value = ground->answer = NULL;
}

static void ground_free(struct live_ground *ground)
{
    drop_value(ground);
    locale_unref(ground->wanted);
    while (ground->patches) {
        struct live_patch *patch = ground->patches;

        ground->patches = patch->next;
        patch_report_unref(patch->report);
        free(patch->wait.spheres);
        free(patch);
    }
    free(ground);
}

void live_finish(struct live *live)
{
    while (live->grounds) {
        struct live_ground *ground = live->grounds;

        live->grounds = ground->next;
        ground_free(ground);
    }
    pthread_mutex_destroy(&live->mutex);
}

static struct live_ground *find(const struct live *live, const char *locale)
{
    struct live_ground *ground = live->grounds;

    while (ground && strcmp(ground->locale, locale) != 0)
        ground = ground->next;
    return ground;
}

/* `settled` with the layers in which value differs from base; NULL: it is over other fields. */
static struct locale *exchange(const struct live_ground *ground, struct locale *settled)
{
    struct locale *next = locale_ref(settled);
    struct err err;

    for (size_t i = 0; next && i < ground->base->layer_count; i++) {
        const struct layer *below = ground->base->layers[i];
        struct layer *live = ground->value->layers[i];
        const struct layer *layer = live == below ? NULL : locale_layer(settled, below->id);
        struct locale *before = next;

        if (live == below)
            continue;
        next = layer && layer->field == below->field
                   ? locale_with_moved(before, live, settled->transform_seq, &err)
                   : NULL;
        locale_unref(before);
    }
    return next;
}

/* A patch has come or gone. */
static void outdate(struct live_ground *ground)
{
    ground->changes++;
    ground->is_outdated = true;
}

/* Is there a value for this settled one? It may be made here. */
static bool is_made_for(struct live_ground *ground, const struct world_snapshot *snapshot,
                        struct locale *settled)
{
    struct locale *next;

    if (!ground->value)
        return false;
    if (ground->base == settled || ground->base_serial > snapshot->serial)
        return true;
    next = exchange(ground, settled);
    if (!next)
        return false;
    drop_value(ground);
    ground->base = locale_ref(settled);
    ground->base_serial = snapshot->serial;
    ground->value = next;
    return true;
}

/* True when it is the first reader that waits. */
static bool want(struct live_ground *ground, const struct world_snapshot *snapshot,
                 struct locale *settled)
{
    const bool is_first = !ground->wanted;

    if (is_first || ground->wanted_serial < snapshot->serial) {
        locale_unref(ground->wanted);
        ground->wanted = locale_ref(settled);
        ground->wanted_serial = snapshot->serial;
    }
    return is_first;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static uint64_t serials_of(const struct live_ground *ground)
{
    uint64_t serials = 0;

    for (const struct live_patch *patch = ground->patches; patch; patch = patch->next)
        serials += patch->report->serial;
    return serials;
}

static size_t bodies_of(const struct live_ground *ground)
{
    size_t count = 0;

    for (const struct live_patch *patch = ground->patches; patch; patch = patch->next)
        count += patch->is_gone ? 0 : patch->report->body_count;
    return count;
}

static struct layer *body_of(const struct locale *locale, const struct patch_report *report,
                             uint32_t number, struct err *err)
{
    const struct patch_report_body *body = &report->bodies[number];
    const double *at = body->position, *q = body->orientation;
    const double *v = body->velocity, *w = body->angular_velocity;
    const float *c = body->center_m;
    const struct vec3 center = {(double)c[0], (double)c[1], (double)c[2]};
    const struct pose pose = {.translation = {at[0], at[1], at[2]},
                              .rotation = {q[0], q[1], q[2], q[3]}};
    struct motion motion = motion_at(&pose, vec3_opposite(locale->manifest.gravity));

    /* that of the centre of mass is reported, a motion has that of the origin */
    motion.spin = (struct vec3){w[0], w[1], w[2]};
    motion.velocity = vec3_sub((struct vec3){v[0], v[1], v[2]},
                               vec3_cross(motion.spin, motion_turn_out(&motion, center)));
    return layer_create_body((struct layer_body){.patch = report->number, .number = number},
                             body->surface, &motion, locale->manifest.gravity, err);
}

/* The value with all bodies of its patches; NULL without memory. */
static struct locale *with_bodies(const struct live_ground *ground, struct err *err)
{
    struct layer **bodies = malloc((bodies_of(ground) + 1) * sizeof(struct layer *));
    struct locale *answer = NULL;
    size_t count = 0;

    err->code = ERR_OK;
    if (!bodies)
        err_set(err, ERR_NO_MEMORY, "no memory for the bodies of locale %s", ground->locale);
    for (const struct live_patch *patch = ground->patches; bodies && patch; patch = patch->next)
        for (uint32_t i = 0; !patch->is_gone && i < patch->report->body_count; i++) {
            if (!patch->report->bodies[i].surface)
                continue;
            bodies[count] = body_of(ground->value, patch->report, i, err);
            count += bodies[count] != NULL;
        }
    if (err->code == ERR_OK)
        answer = locale_with_bodies(ground->value, bodies, count, err);
    else
        while (count > 0)
            layer_unref(bodies[--count]);
    free(bodies);
    return answer;
}

/* What a reader gets, which is kept until a report is newer; NULL without memory. */
static struct locale *answer_of(struct live_ground *ground)
{
    const uint64_t serials = serials_of(ground);
    struct err err;

    if (!ground->answer || ground->answer_of != serials) {
        locale_unref(ground->answer);
        ground->answer = with_bodies(ground, &err);
        ground->answer_of = serials;
    }
    return ground->answer ? locale_ref(ground->answer) : NULL;
}

/* ---- readers --------------------------------------------------------------------------------- */

/* The mutex is held. */
static enum live_answer look(struct live_ground *ground, const struct world_snapshot *snapshot,
                             struct locale *settled, bool has_waited)
{
    ground->asked_s = monotonic_s();
    if (has_waited && !ground->has_begun)
        return LIVE_NONE; /* its first patch came since the reader waited */
    if (ground->is_outdated && !has_waited)
        return LIVE_LATER;
    return is_made_for(ground, snapshot, settled) ? LIVE_MADE : LIVE_LATER;
}

enum live_answer sand_live(struct sand *sand, const struct world_snapshot *snapshot,
                           struct locale *settled, bool has_waited, struct locale **out)
{
    struct live *live = &sand->live;
    enum live_answer answer = LIVE_NONE;
    struct live_ground *ground;
    bool wakes = false;

    pthread_mutex_lock(&live->mutex);
    ground = find(live, settled->id);
    if (ground)
        answer = look(ground, snapshot, settled, has_waited);
    if (answer == LIVE_MADE) {
        *out = answer_of(ground);
        answer = *out ? LIVE_MADE : LIVE_LATER; /* without memory: the reader may ask again */
    } else if (answer == LIVE_LATER) {
        wakes = want(ground, snapshot, settled);
    }
    pthread_mutex_unlock(&live->mutex);
    if (wakes) {
        atomic_store(&live->is_wanted, true);
        pthread_mutex_lock(&sand->mutex);
        pthread_cond_signal(&sand->is_wanted);
        pthread_mutex_unlock(&sand->mutex);
    }
    return answer;
}

/* ---- patches begin and end, on the sand thread ----------------------------------------------- */

/* The mutex is held. */
static void add(struct live *live, struct live_ground *ground, struct patch_report *report)
{
    struct live_patch *patch = calloc(1, sizeof *patch);
    struct live_ground *made = ground || !patch ? NULL : calloc(1, sizeof *made);

    if (made) {
        memcpy(made->locale, report->locale, sizeof made->locale);
        made->asked_s = -INFINITY;
        made->next = live->grounds;
        live->grounds = ground = made;
    }
    if (!patch || !ground) {
        free(patch); /* the next report tries again */
        return;
    }
    patch->report = patch_report_ref(report);
    patch->next = ground->patches;
    ground->patches = patch;
    outdate(ground);
}

/* Frees patches that have ended, and a ground without any. The mutex is held. */
static void sweep_up(struct live *live)
{
    for (struct live_ground **at = &live->grounds; *at;) {
        struct live_ground *ground = *at;

        for (struct live_patch **of = &ground->patches; *of;) {
            struct live_patch *patch = *of;

            if (!patch->is_gone || patch->is_asking) {
                of = &patch->next;
                continue;
            }
            *of = patch->next;
            patch_report_unref(patch->report);
            free(patch->wait.spheres);
            free(patch);
        }
        if (!ground->patches) {
            *at = ground->next;
            live->wakes |= ground->wanted != NULL;
            ground_free(ground);
        } else {
            at = &ground->next;
        }
    }
}

void live_report(struct live *live, struct patch_report *report)
{
    struct live_ground *ground;
    struct live_patch *patch;

    pthread_mutex_lock(&live->mutex);
    ground = find(live, report->locale);
    patch = ground ? ground->patches : NULL;
    while (patch && patch->report->number != report->number)
        patch = patch->next;
    if (patch) {
        patch_report_unref(patch->report);
        patch->report = patch_report_ref(report);
        patch->is_gone = patch_state_is_end(report->state);
    } else if (!patch_state_is_end(report->state)) {
        add(live, ground, report);
    }
    if (patch && patch->is_gone) {
        outdate(ground);
        sweep_up(live);
    }
    pthread_mutex_unlock(&live->mutex);
}

/* ---- making, on the sand thread -------------------------------------------------------------- */

static bool is_due(struct live_ground *ground, double now_s)
{
    const double every_s = fmax(LIVE_EVERY_S, LIVE_PART * ground->cost_s);
    uint64_t serials;

    if (ground->is_making)
        return false;
    if (ground->wanted)
        return true;
    if (now_s - ground->asked_s > LIVE_ASKED_S) {
        drop_value(ground);
        return false;
    }
    serials = serials_of(ground);
    return ground->value && serials != ground->made_of && now_s - ground->made_s >= every_s;
}

void live_begin(struct sand *sand)
{
    struct live *live = &sand->live;
    const double now_s = monotonic_s();

    atomic_store(&live->is_wanted, false);
    pthread_mutex_lock(&live->mutex);
    for (struct live_ground *ground = live->grounds; ground; ground = ground->next) {
        if (!is_due(ground, now_s))
            continue;
        ground->is_making = true;
        ground->begun_changes = ground->changes;
        ground->made_of = 0;
        for (struct live_patch *patch = ground->patches; patch; patch = patch->next) {
            ground->made_of += patch->report->serial;
            patch->wait = (struct sphere_wait){.number = patch->report->number};
            /* The crater of an impact is shown until its body is in the granules. */
            patch->is_asking =
                patch->report->state != PATCH_FILLING &&
                !(patch->report->state == PATCH_SETTLING && patch->report->has_dents);
            if (patch->is_asking)
                sand_spheres_ask(sand, &patch->wait);
        }
    }
    pthread_mutex_unlock(&live->mutex);
}

/* Is the field still the one that the patch was cut from, but for its heights? */
static bool is_ground_of(const struct layer *layer, const struct convert_place *place)
{
    const struct heightfield_spec *spec =
        layer && layer->field ? heightfield_spec(layer->field) : NULL;
    const struct sample_rect *rect = &place->samples;

    return spec && rect->column + rect->cols <= spec->cols &&
           rect->row + rect->rows <= spec->rows && spec->spacing_x_m == place->spacing_m[0] &&
           spec->spacing_y_m == place->spacing_m[1];
}

/* The layer with the patch's surface: inside its edge, where there is ground. */
static struct layer *layer_with(const struct layer *layer, const struct live_patch *patch,
                                struct err *err)
{
    const struct patch_report *report = patch->report;
    const struct sample_rect *rect = &report->place.samples;
    const size_t count = (size_t)rect->cols * rect->rows;
    float *heights_m = malloc(count * sizeof *heights_m);
    float *settled_m = malloc(count * sizeof *settled_m);
    struct heightfield *field = NULL;
    struct surface_grid grid;

    if (!heights_m || !settled_m)
        err_set(err, ERR_NO_MEMORY, "no memory for a surface of %zu samples", count);
    else if (surface_grid_make(&report->place, 1, UINT64_MAX, &grid, err) == ERR_OK &&
             surface_measure(layer->field, &report->place, (const float(*)[4])patch->wait.spheres,
                             patch->wait.count, scale_radius_m(report->scale), &grid, heights_m,
                             err) == ERR_OK) {
        heightfield_read_samples(layer->field, rect, settled_m);
        for (uint32_t r = 1; r + 1 < rect->rows; r++)
            for (uint32_t c = 1; c + 1 < rect->cols; c++) {
                const size_t i = (size_t)r * rect->cols + c;

                if (!isnan(settled_m[i]))
                    settled_m[i] = heights_m[i];
            }
        field = heightfield_with_samples(layer->field, rect, settled_m, err);
    }
    free(heights_m);
    free(settled_m);
    return field ? layer_create_heightfield(layer->id, field, err) : NULL;
}

/*
 * The base with all surfaces; NULL without memory, or when the device does not answer. A patch
 * without all of its granules, not yet or no more, is left out.
 */
static struct locale *value_of(struct locale *base, const struct live_patch *patches,
                               struct err *err)
{
    struct locale *value = locale_ref(base);

    for (const struct live_patch *patch = patches; value && patch; patch = patch->next) {
        const struct layer *layer = locale_layer(value, patch->report->layer);
        const enum err_code code = patch->wait.err.code;
        struct locale *before = value;
        struct layer *made;

        if (patch->is_gone || code == ERR_CONFLICT || (code == ERR_OK && patch->wait.count == 0) ||
            !is_ground_of(layer, &patch->report->place))
            continue;
        made = code == ERR_OK ? layer_with(layer, patch, err) : NULL;
        value = made ? locale_with_moved(before, made, base->transform_seq, err) : NULL;
        layer_unref(made);
        locale_unref(before);
    }
    return value;
}

/* Have all spheres come that were ordered? */
static bool has_come(const struct live_ground *ground)
{
    for (const struct live_patch *patch = ground->patches; patch; patch = patch->next)
        if (patch->is_asking && !patch->wait.is_done)
            return false;
    return ground->is_making;
}

/* Takes the newest settled value: the one that a reader waits for, or that of the last value. */
static struct locale *take_base(struct live *live, struct live_ground *ground, uint64_t *serial,
                                bool *has_reader)
{
    struct locale *base;

    pthread_mutex_lock(&live->mutex);
    *has_reader = ground->wanted != NULL;
    base = ground->wanted ? ground->wanted : ground->base ? locale_ref(ground->base) : NULL;
    *serial = ground->wanted ? ground->wanted_serial : ground->base_serial;
    ground->wanted = NULL;
    pthread_mutex_unlock(&live->mutex);
    return base;
}

/* The mutex is held. Takes base and value, which may be NULL. */
static void put_value(struct live_ground *ground, struct locale *base, uint64_t serial,
                      struct locale *value)
{
    if (value && (!ground->base || ground->base_serial <= serial)) {
        drop_value(ground);
        ground->base = base;
        ground->base_serial = serial;
        ground->value = value;
        ground->is_outdated = false;
        ground->has_begun = true;
    } else {
        locale_unref(base);
        locale_unref(value);
    }
}

static void make(struct live *live, struct live_ground *ground)
{
    const double began_s = monotonic_s();
    struct err err = {.code = ERR_OK};
    struct locale *base, *value = NULL;
    uint64_t serial;
    bool has_reader;

    base = take_base(live, ground, &serial, &has_reader);
    /* Else patches came or went meanwhile: the readers that wait ask again. */
    if (base && ground->begun_changes == ground->changes)
        value = value_of(base, ground->patches, &err);
    live->made += value != NULL;
    pthread_mutex_lock(&live->mutex);
    put_value(ground, base, serial, value);
    ground->is_making = false;
    ground->made_s = monotonic_s();
    ground->cost_s = ground->made_s - began_s;
    for (struct live_patch *patch = ground->patches; patch; patch = patch->next) {
        patch->is_asking = false;
        free(patch->wait.spheres);
        patch->wait.spheres = NULL;
    }
    pthread_mutex_unlock(&live->mutex);
    live->wakes |= has_reader;
}

void live_make(struct sand *sand)
{
    struct live *live = &sand->live;

    for (struct live_ground *ground = live->grounds; ground; ground = ground->next)
        if (has_come(ground))
            make(live, ground);
    pthread_mutex_lock(&live->mutex);
    sweep_up(live);
    pthread_mutex_unlock(&live->mutex);
    if (!live->wakes)
        return;
    live->wakes = false;
    pthread_mutex_lock(&sand->mutex);
    if (sand->wake)
        sand->wake(sand->wake_context);
    pthread_mutex_unlock(&sand->mutex);
}
