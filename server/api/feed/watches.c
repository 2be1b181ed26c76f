/*
 * The table of watches, their thread, and what a change of the ground makes of them.
 *
 * Problem: thousands of questions are to be asked again when their answers may be others, and only
 * then; their readers are slow or gone; answers must be those of the ground as it is now.
 *
 * Approach: a publication wakes the thread, which compares each watch's locale with the
 * published one. Events of the feed say which boxes edits have changed; layers that moved add
 * the boxes before and after; anything else that differs (a layer put, a manifest) concerns all
 * items. The boxes find the items (terrain/swept_box.h), which are asked together at the
 * published snapshot and compared with the answers that are kept. Those that differ get the next
 * number of the watch and are appended to its list of changes, in which an item's older entries
 * no longer count. A reader is a number: it is sent what has a greater one. So a slow reader
 * gets the newest answers, each once, and holds nothing up.
 *
 * Two locks a watch: `work` for asking and for changes of its items, held long and only by this
 * thread and by workers; `state` for what loops read, held for moments. Items, extents and index
 * change under both.
 */
#include "api/feed/watches.h"

#include "base/array_reserve.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/timed_wait.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { BOXES_MAX = 256, EVENTS_A_READ = 16, EVENT_BYTES = 15 * 1024 };
#define RETRY_S 0.2 /* after a passing error */

struct change {
    uint64_t seq;
    uint32_t item;
};

struct watch {
    char name[WATCH_NAME_CHARS + 1];
    char locale_id[WORLD_ID_MAX + 1];
    uint32_t refs; /* atomic */
    struct watch *next;
    int readers;       /* of the table's mutex, as the next two */
    double idle_since; /* without a reader */
    size_t counted;    /* in the table's weight */

    pthread_mutex_t work;
    struct locale *locale; /* as it was asked: a reference */
    uint64_t after;        /* the place in the feed */
    bool needs_all;        /* an answer was a passing error */
    struct swept_box_index index;
    uint32_t *dirty; /* room for all items */

    pthread_mutex_t state;
    struct watch_set set;
    size_t live; /* items that are not free */
    uint64_t revision, seq;
    struct change *changes; /* by seq; count and capacity next */
    size_t change_count, change_capacity;
    _Atomic bool is_over; /* set under both mutexes */
};

struct watches {
    struct api *api;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, is_woken, is_over;
    double retry_at; /* 0: no watch needs it */
    struct watch *first;
    _Atomic size_t count;
    size_t weight; /* of all items */
    _Atomic uint64_t asked, differed;
};

/* ---- one watch ------------------------------------------------------------------------------- */

void watch_unref(struct watch *watch)
{
    if (!watch || __atomic_fetch_sub(&watch->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    watch_set_free(&watch->set);
    swept_box_index_free(&watch->index);
    locale_unref(watch->locale);
    free(watch->dirty);
    free(watch->changes);
    pthread_mutex_destroy(&watch->work);
    pthread_mutex_destroy(&watch->state);
    free(watch);
}

const char *watch_name(const struct watch *watch)
{
    return watch->name;
}

void watch_encode(struct json_writer *w, struct watch *watch)
{
    pthread_mutex_lock(&watch->state);
    json_put_string(w, "watch", watch->name);
    json_put_string(w, "locale", watch->locale_id);
    json_put_integer(w, "revision", watch->revision);
    json_put_integer(w, "items", watch->live);
    pthread_mutex_unlock(&watch->state);
}

/* Room for changes of n items; afterwards note() cannot fail. Older entries of items go. */
static bool reserve_changes(struct watch *watch, size_t n)
{
    size_t kept = 0;

    if (watch->change_count + n > 2 * watch->set.count + 1024) {
        for (size_t i = 0; i < watch->change_count; i++) {
            struct change *change = &watch->changes[i];

            if (watch->set.items[change->item].seq == change->seq)
                watch->changes[kept++] = *change;
        }
        watch->change_count = kept;
    }
    return array_reserve((void **)&watch->changes, &watch->change_capacity, watch->change_count + n,
                         sizeof *watch->changes);
}

/* An item has this answer, which is taken. */
static void note(struct watch *watch, uint32_t item, struct watch_answer answer)
{
    struct watch_item *it = &watch->set.items[item];

    free(it->answer);
    it->answer = answer.text;
    it->length = answer.length;
    it->seq = ++watch->seq;
    watch->changes[watch->change_count++] = (struct change){it->seq, item};
}

/* ---- what has changed ------------------------------------------------------------------------ */

struct boxes {
    struct box3 at[BOXES_MAX];
    size_t count;
    struct box3 slanted[2 * LOCALE_LAYERS_MAX]; /* of what is not asked along Z */
    size_t slanted_count;
    bool is_all; /* they do not say it: everything may be another */
};

static void add_box(struct boxes *boxes, const struct box3 *box)
{
    if (boxes->count == BOXES_MAX)
        boxes->is_all = true;
    else
        boxes->at[boxes->count++] = *box;
}

static void add_event(struct boxes *boxes, const struct feed_event *event,
                      const struct locale *before, const struct locale *now)
{
    struct box3 box = event->bounds;
    const struct layer *old = locale_layer(before, event->layer);
    const struct layer *next = locale_layer(now, event->layer);
    bool is_edit = event->has_area && old && next;

    /* the layer may have been put in between: then it is not of the same upload, or another event
     * without an area says so */
    if (!is_edit)
        is_edit = old && next && old->kind == LAYER_MESH && next->kind == LAYER_MESH &&
                  layer_is_of_upload(old, next);
    if (!is_edit) {
        boxes->is_all = true;
    } else if (event->has_bounds) {
        add_box(boxes, &box);
    } else if (event->has_area) {
        box.min.z = -INFINITY;
        box.max.z = INFINITY;
        add_box(boxes, &box);
    }
}

static void add_events(struct watches *watches, struct watch *watch, const struct locale *now,
                       struct boxes *boxes)
{
    struct feed *feed = world_feed(watches->api->world);
    struct feed_event events[EVENTS_A_READ];
    bool is_held = true;
    size_t count;

    do {
        uint64_t after = watch->after;

        count = feed_read(feed, watch->locale_id, &after, events, EVENTS_A_READ, &is_held);
        if (!is_held) {
            boxes->is_all = true;
            watch->after = feed_last(feed);
            return;
        }
        for (size_t i = 0; i < count; i++) {
            if (events[i].is_resync)
                boxes->is_all = true;
            else if (events[i].revision > now->revision)
                return; /* of a later snapshot */
            else if (events[i].revision > watch->locale->revision)
                add_event(boxes, &events[i], watch->locale, now);
            watch->after = events[i].sequence;
        }
        watch->after = after;
    } while (count == EVENTS_A_READ);
}

/*
 * What one layer has become: its pose, its extent. A point is over a hole or outside by the extent
 * of the layers along its gravity; along Z that is the extent of the plan. A ray begins where it
 * enters the box of a layer, so its last bits depend on that.
 */
static void add_layer(struct boxes *boxes, const struct layer *old, const struct layer *next,
                      bool is_plan)
{
    struct box3 before = {{0, 0, 0}, {0, 0, 0}}, after = before;
    bool had = layer_bounds(old, &before), has = layer_bounds(next, &after);
    bool moved = old->is_moved != next->is_moved ||
                 (next->is_moved && !motion_is_equal(&old->motion, &next->motion));
    bool is_same_plan = before.min.x == after.min.x && before.min.y == after.min.y &&
                        before.max.x == after.max.x && before.max.y == after.max.y;

    if (!moved && had == has && memcmp(&before, &after, sizeof before) == 0)
        return;
    if (!had || !has) {
        boxes->is_all = true; /* one has no z */
        return;
    }
    boxes->slanted[boxes->slanted_count++] = before;
    boxes->slanted[boxes->slanted_count++] = after;
    if (is_plan && !moved && is_same_plan)
        return;
    add_box(boxes, &before);
    add_box(boxes, &after);
}

static void find_boxes(struct watches *watches, struct watch *watch, const struct locale *now,
                       struct boxes *boxes)
{
    const struct locale *before = watch->locale;
    const struct mesh_space a = locale_space(before), b = locale_space(now);
    const struct vec3 *gravity = &now->manifest.gravity;
    bool is_plan = b.frame == MESH_CARTESIAN && gravity->x == 0 && gravity->y == 0;

    boxes->count = boxes->slanted_count = 0;
    boxes->is_all = watch->needs_all || before->layer_count != now->layer_count;
    watch->needs_all = false;
    add_events(watches, watch, now, boxes);
    if (memcmp(&before->manifest.gravity, &now->manifest.gravity, sizeof(struct vec3)) != 0 ||
        a.frame != b.frame || a.is_outward != b.is_outward) {
        boxes->is_all = true; /* and the columns along gravity are others */
        for (size_t i = 0; i < watch->set.count; i++)
            if (watch_group_falls(&watch->set.groups[watch->set.items[i].group]))
                watch->set.extents[i].is_everywhere = true;
        watch->needs_all |=
            !swept_box_index_build(&watch->index, watch->set.extents, watch->set.count);
    }
    for (size_t i = 0; i < before->layer_count && !boxes->is_all; i++) {
        const struct layer *old = before->layers[i], *next = now->layers[i];

        if (old == next)
            continue;
        if (strcmp(old->id, next->id) != 0 || old->kind != next->kind || old->role != next->role)
            boxes->is_all = true;
        else
            add_layer(boxes, old, next, is_plan);
    }
}

/* Items to be asked again, in watch->dirty; returns how many. */
static size_t find_dirty(struct watch *watch, const struct boxes *boxes)
{
    size_t count = 0;

    if (boxes->is_all || (!watch->index.stamps && watch->set.count > 0)) {
        for (size_t i = 0; i < watch->set.count; i++)
            if (watch->set.items[i].id)
                watch->dirty[count++] = (uint32_t)i;
        return count;
    }
    swept_box_index_begin(&watch->index);
    for (size_t i = 0; i < boxes->count; i++)
        count += swept_box_index_find(&watch->index, watch->set.extents, &boxes->at[i],
                                      watch->dirty + count);
    for (size_t i = 0; i < boxes->slanted_count; i++) {
        uint32_t *found = watch->dirty + count;
        size_t n =
            swept_box_index_find(&watch->index, watch->set.extents, &boxes->slanted[i], found);

        for (size_t k = 0; k < n; k++)
            if (watch_group_is_slanted(&watch->set.groups[watch->set.items[found[k]].group]))
                watch->dirty[count++] = found[k];
    }
    return count;
}

/*
 * Brings the answers to the snapshot. With `work`. False: the locale is gone, or has ended before.
 * *has_news: readers are to be woken.
 */
static bool refresh(struct watches *watches, struct watch *watch,
                    const struct world_snapshot *snapshot, bool *has_news)
{
    struct locale *now = snapshot_locale(snapshot, watch->locale_id);
    struct watch_answer *answers = NULL;
    struct boxes boxes;
    bool is_passing = false;
    size_t count, kept = 0;

    if (!now || watch->is_over)
        return false;
    if (now == watch->locale && !watch->needs_all)
        return true;
    find_boxes(watches, watch, now, &boxes);
    count = find_dirty(watch, &boxes);
    if (count > 0) {
        answers = calloc(count, sizeof *answers);
        if (!answers || watch_set_ask(watches->api, snapshot, now, &watch->set, watch->dirty, count,
                                      answers, "", NULL, &is_passing))
            is_passing = true;
    }
    atomic_fetch_add_explicit(&watches->asked, count, memory_order_relaxed);
    watch->needs_all |= is_passing;
    pthread_mutex_lock(&watch->state);
    if (reserve_changes(watch, count)) {
        for (size_t i = 0; i < count && answers; i++) {
            const struct watch_item *item = &watch->set.items[watch->dirty[i]];

            if (!answers[i].text || (item->answer && item->length == answers[i].length &&
                                     memcmp(item->answer, answers[i].text, item->length) == 0))
                continue;
            note(watch, watch->dirty[i], answers[i]);
            answers[i].text = NULL;
            kept++;
        }
    } else {
        watch->needs_all = true;
    }
    watch->revision = now->revision;
    pthread_mutex_unlock(&watch->state);
    atomic_fetch_add_explicit(&watches->differed, kept, memory_order_relaxed);
    *has_news |= kept > 0;
    for (size_t i = 0; i < count && answers; i++)
        free(answers[i].text);
    free(answers);
    locale_unref(watch->locale);
    watch->locale = locale_ref(now);
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void wake_streams(struct watches *watches)
{
    struct http_server *server = atomic_load(&watches->api->server);

    if (server)
        http_server_wake(server);
}

/* Takes it out of the table, if it is there; the mutex is held. */
static void unlink_watch(struct watches *watches, struct watch *watch)
{
    struct watch **at = &watches->first;

    while (*at && *at != watch)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = watch->next;
    atomic_fetch_sub(&watches->count, 1);
    watches->weight -= watch->counted;
    pthread_mutex_lock(&watch->state);
    watch->is_over = true;
    pthread_mutex_unlock(&watch->state);
    watch_unref(watch);
}

void watches_end(struct watches *watches, struct watch *watch)
{
    pthread_mutex_lock(&watches->mutex);
    unlink_watch(watches, watch);
    pthread_mutex_unlock(&watches->mutex);
    wake_streams(watches);
}

/* All watches at what is published now; the mutex is held but for the work. */
static void refresh_all(struct watches *watches)
{
    size_t count = atomic_load(&watches->count), n = 0;
    struct watch **all = calloc(count + 1, sizeof *all);
    const struct world_snapshot *snapshot;
    bool has_news = false, is_passing = !all;

    for (struct watch *watch = watches->first; watch && all; watch = watch->next) {
        __atomic_fetch_add(&watch->refs, 1, __ATOMIC_RELAXED);
        all[n++] = watch;
    }
    pthread_mutex_unlock(&watches->mutex);
    snapshot = world_hold(watches->api->world);
    for (size_t i = 0; i < n; i++) {
        bool is_there;

        pthread_mutex_lock(&all[i]->work);
        is_there = refresh(watches, all[i], snapshot, &has_news);
        is_passing |= all[i]->needs_all;
        pthread_mutex_unlock(&all[i]->work);
        if (!is_there)
            watches_end(watches, all[i]);
        watch_unref(all[i]);
    }
    world_release(watches->api->world, snapshot);
    free(all);
    if (has_news)
        wake_streams(watches);
    pthread_mutex_lock(&watches->mutex);
    watches->retry_at = is_passing ? monotonic_s() + RETRY_S : 0;
}

/* Ends those that have had no reader for long; returns when the next one is due. */
static double end_idle(struct watches *watches)
{
    double linger = (double)api_limits(watches->api)->watch_linger_ms * 1e-3, next = INFINITY;
    double now = monotonic_s();

    for (struct watch *watch = watches->first, *after; watch; watch = after) {
        after = watch->next;
        if (watch->readers > 0)
            continue;
        if (watch->idle_since + linger <= now)
            unlink_watch(watches, watch);
        else
            next = fmin(next, watch->idle_since + linger);
    }
    return next;
}

static void *run(void *context)
{
    struct watches *watches = context;

    pthread_setname_np(pthread_self(), "watches");
    pthread_mutex_lock(&watches->mutex);
    while (!watches->is_over) {
        double next = end_idle(watches), now = monotonic_s();

        if (watches->retry_at > 0) {
            next = fmin(next, watches->retry_at);
            watches->is_woken |= watches->retry_at <= now;
        }
        if (watches->is_woken) {
            watches->is_woken = false;
            refresh_all(watches);
        } else if (next < INFINITY) {
            struct timespec until = timed_wait_until(fmin(fmax(next - now, 0), 1e6));

            pthread_cond_timedwait(&watches->changed, &watches->mutex, &until);
        } else {
            pthread_cond_wait(&watches->changed, &watches->mutex);
        }
    }
    pthread_mutex_unlock(&watches->mutex);
    return NULL;
}

struct watches *watches_create(struct api *api, struct err *err)
{
    struct watches *watches = calloc(1, sizeof *watches);

    if (!watches) {
        err_set(err, ERR_NO_MEMORY, "no memory for watches");
        return NULL;
    }
    watches->api = api;
    pthread_mutex_init(&watches->mutex, NULL);
    timed_wait_init(&watches->changed);
    return watches;
}

void watches_stop(struct watches *watches)
{
    pthread_mutex_lock(&watches->mutex);
    watches->is_over = true;
    pthread_cond_signal(&watches->changed);
    pthread_mutex_unlock(&watches->mutex);
    if (watches->has_thread)
        pthread_join(watches->thread, NULL);
    watches->has_thread = false;
}

void watches_destroy(struct watches *watches)
{
    if (!watches)
        return;
    watches_stop(watches);
    while (watches->first)
        unlink_watch(watches, watches->first);
    pthread_cond_destroy(&watches->changed);
    pthread_mutex_destroy(&watches->mutex);
    free(watches);
}

void watches_wake(struct watches *watches)
{
    if (atomic_load(&watches->count) == 0)
        return;
    pthread_mutex_lock(&watches->mutex);
    watches->is_woken = true;
    pthread_cond_signal(&watches->changed);
    pthread_mutex_unlock(&watches->mutex);
}

void watches_stats(struct watches *watches, struct watches_stats *out)
{
    *out = (struct watches_stats){.asked = atomic_load(&watches->asked),
                                  .changed = atomic_load(&watches->differed)};
    pthread_mutex_lock(&watches->mutex);
    for (struct watch *watch = watches->first; watch; watch = watch->next) {
        out->watches++;
        pthread_mutex_lock(&watch->state);
        out->items += watch->live;
        pthread_mutex_unlock(&watch->state);
    }
    pthread_mutex_unlock(&watches->mutex);
}

size_t watches_room(struct watches *watches)
{
    size_t most = api_limits(watches->api)->watch_items_max, weight;

    pthread_mutex_lock(&watches->mutex);
    weight = watches->weight;
    pthread_mutex_unlock(&watches->mutex);
    return weight < most ? most - weight : 0;
}

/* The mutex is held. */
static enum err_code need_thread(struct watches *watches, struct err *err)
{
    sigset_t all, old;
    int failed;

    if (watches->has_thread)
        return ERR_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    failed = pthread_create(&watches->thread, NULL, run, watches);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed)
        return err_set(err, ERR_INTERNAL, "no thread for watches: %s", strerror(failed));
    watches->has_thread = true;
    return ERR_OK;
}

struct watch *watches_find(struct watches *watches, const char *name, size_t length,
                           const struct claims *claims)
{
    struct watch *watch = NULL;

    pthread_mutex_lock(&watches->mutex);
    for (watch = length == WATCH_NAME_CHARS ? watches->first : NULL; watch; watch = watch->next)
        if (memcmp(watch->name, name, length) == 0)
            break;
    if (watch && claims && !claims_has_locale(claims, watch->locale_id, strlen(watch->locale_id)))
        watch = NULL;
    if (watch)
        __atomic_fetch_add(&watch->refs, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&watches->mutex);
    return watch;
}

void watch_follow(struct watches *watches, struct watch *watch, int readers)
{
    pthread_mutex_lock(&watches->mutex);
    watch->readers += readers;
    if (watch->readers == 0) {
        watch->idle_since = monotonic_s();
        pthread_cond_signal(&watches->changed);
    }
    pthread_mutex_unlock(&watches->mutex);
}

/* ---- items come and go ----------------------------------------------------------------------- */

/* Items by their ids: open addressing; the places hold an item's number and one. */
struct ids {
    uint32_t *at;
    size_t mask;
};

static uint32_t *id_place(const struct ids *ids, const struct watch_set *set, const char *id)
{
    uint64_t hash = 14695981039346656037u;
    size_t i;

    for (const char *c = id; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    for (i = (size_t)(hash ^ hash >> 32) & ids->mask; ids->at[i]; i = (i + 1) & ids->mask)
        if (set->items[ids->at[i] - 1].id && strcmp(set->items[ids->at[i] - 1].id, id) == 0)
            break;
    return &ids->at[i];
}

/* Over all items; of two with one id the first is in it, and *twice is the other one. */
static bool ids_make(struct ids *ids, const struct watch_set *set, uint32_t *twice)
{
    for (ids->mask = 63; ids->mask < 2 * set->count;)
        ids->mask = 2 * ids->mask + 1;
    ids->at = calloc(ids->mask + 1, sizeof *ids->at);
    *twice = UINT32_MAX;
    for (size_t i = 0; i < set->count && ids->at; i++) {
        uint32_t *place;

        if (!set->items[i].id)
            continue;
        place = id_place(ids, set, set->items[i].id);
        if (*place == 0)
            *place = (uint32_t)i + 1;
        else if (*twice == UINT32_MAX)
            *twice = (uint32_t)i;
    }
    return ids->at != NULL;
}

/* Takes an item out; the place is free. */
static void drop_item(struct watch *watch, uint32_t i)
{
    struct watch_item *item = &watch->set.items[i];

    watch->set.groups[item->group].items--;
    watch->set.weight -= watch->set.groups[item->group].weight;
    free(item->id);
    free(item->answer);
    *item = (struct watch_item){.group = item->group};
    watch->set.extents[i] = (struct swept_box){.is_none = true};
    watch->live--;
}

/* The group of the watch that is like this one, or a new one that takes its options. */
static uint32_t group_for(struct watch *watch, struct watch_group *group)
{
    struct watch_set *set = &watch->set;
    uint32_t free_one = (uint32_t)set->group_count, i;

    for (i = 0; i < set->group_count; i++) {
        const struct watch_group *known = &set->groups[i];

        if (known->kind == group->kind && known->member == group->member &&
            strcmp(known->options, group->options) == 0)
            return i;
        if (known->items == 0)
            free_one = i;
    }
    if (free_one == WATCH_GROUPS_MAX)
        return UINT32_MAX;
    if (free_one == set->group_count)
        set->group_count++;
    free(set->groups[free_one].options);
    cJSON_Delete(set->groups[free_one].tree);
    set->groups[free_one] = *group;
    set->groups[free_one].items = 0;
    group->options = NULL;
    group->tree = NULL;
    return free_one;
}

/* Moves an item of `set` with its answer into a place of the watch. */
static void take_item(struct watch *watch, struct watch_set *set, size_t i, uint32_t group,
                      uint32_t place, struct watch_answer answer)
{
    watch->set.items[place] = set->items[i];
    watch->set.items[place].group = group;
    watch->set.extents[place] = set->extents[i];
    watch->set.groups[group].items++;
    watch->set.weight += watch->set.groups[group].weight;
    watch->live++;
    set->items[i].id = set->items[i].answer = NULL;
    note(watch, place, answer);
}

/* The groups of the watch for those of `set`. Each is held by an item too many. */
static enum err_code map_groups(struct watch *watch, struct watch_set *set, uint32_t *groups,
                                size_t *mapped, struct err *err)
{
    for (*mapped = 0; *mapped < set->group_count; ++*mapped) {
        groups[*mapped] = group_for(watch, &set->groups[*mapped]);
        if (groups[*mapped] == UINT32_MAX)
            return err_limit(err, ERR_TOO_MANY_ITEMS, WATCH_GROUPS_MAX, WATCH_GROUPS_MAX + 1,
                             "a watch has at most %d different sets of options", WATCH_GROUPS_MAX);
        watch->set.groups[groups[*mapped]].items++;
    }
    return ERR_OK;
}

static bool reserve_items(struct watch *watch, size_t more)
{
    struct watch_set *own = &watch->set;
    size_t most = own->count + more;
    uint32_t *dirty = realloc(watch->dirty, (most + 1) * sizeof *dirty);

    if (dirty)
        watch->dirty = dirty;
    return dirty &&
           array_reserve((void **)&own->items, &own->capacity, most + 1, sizeof *own->items) &&
           array_reserve((void **)&own->extents, &own->extent_capacity, most + 1,
                         sizeof *own->extents) &&
           reserve_changes(watch, more);
}

/*
 * Items go and come, which were asked: answers[set->count], whose texts are taken. With `work`.
 * ERR_NO_MEMORY, ERR_TOO_MANY_ITEMS; nothing has changed then.
 */
static enum err_code replace_items(struct watch *watch, struct watch_set *set,
                                   struct watch_answer *answers, char (*removed)[WATCH_ID_BYTES],
                                   size_t removed_count, struct err *err)
{
    uint32_t groups[WATCH_GROUPS_MAX], twice, vacant = 0;
    struct watch_set *own = &watch->set;
    struct ids ids = {NULL, 0};
    size_t mapped = 0;

    err->code = ERR_OK;
    pthread_mutex_lock(&watch->state);
    if (!reserve_items(watch, set->count) || !ids_make(&ids, own, &twice))
        err_set(err, ERR_NO_MEMORY, "no memory for the items of a watch");
    else
        map_groups(watch, set, groups, &mapped, err);
    for (size_t i = 0; i < removed_count && !err->code; i++) {
        uint32_t *place = id_place(&ids, own, removed[i]);

        if (*place)
            drop_item(watch, *place - 1);
    }
    for (size_t i = 0; i < set->count && !err->code; i++) {
        uint32_t *known = id_place(&ids, own, set->items[i].id), place = *known - 1;

        if (*known) {
            drop_item(watch, place);
        } else {
            while (vacant < own->count && own->items[vacant].id)
                vacant++;
            place = vacant;
            own->count += vacant == own->count;
        }
        own->items[place] = (struct watch_item){0};
        take_item(watch, set, i, groups[set->items[i].group], place, answers[i]);
        answers[i].text = NULL;
    }
    while (mapped > 0)
        own->groups[groups[--mapped]].items--;
    swept_box_index_build(&watch->index, own->extents, own->count); /* or all are asked */
    pthread_mutex_unlock(&watch->state);
    free(ids.at);
    return err->code;
}

/* Asks the items of `set`, of a body at `place`, and puts them in. With `work`. */
static enum err_code ask_and_replace(struct watches *watches, struct watch *watch,
                                     const struct world_snapshot *snapshot, struct locale *locale,
                                     struct watch_set *set, const char *place,
                                     char (*removed)[WATCH_ID_BYTES], size_t removed_count,
                                     struct err *err)
{
    struct watch_answer *answers = calloc(set->count + 1, sizeof *answers);
    uint32_t *which = malloc((set->count + 1) * sizeof *which), twice = UINT32_MAX;
    struct ids ids = {NULL, 0};

    err->code = ERR_OK;
    if (!answers || !which || !ids_make(&ids, set, &twice))
        err_set(err, ERR_NO_MEMORY, "no memory for a watch");
    else if (twice != UINT32_MAX) {
        err_set(err, ERR_BAD_INPUT, "the id %s is given twice", set->items[twice].id);
        err_at(err, "%s/%s/ids", place, watch_kinds[set->groups[set->items[twice].group].kind]);
    }
    for (size_t i = 0; i < set->count && which; i++)
        which[i] = (uint32_t)i; /* by group as they come: which[i] stays i */
    if (!err->code &&
        !watch_set_ask(watches->api, snapshot, locale, set, which, set->count, answers, place, err,
                       NULL) &&
        !watch_set_extents(set, locale, err))
        replace_items(watch, set, answers, removed, removed_count, err);
    for (size_t i = 0; i < set->count && answers; i++)
        free(answers[i].text);
    free(answers);
    free(which);
    free(ids.at);
    return err->code;
}

/* Counts what the watch has now. */
static void count_weight(struct watches *watches, struct watch *watch)
{
    pthread_mutex_lock(&watches->mutex);
    if (!watch->is_over) {
        watches->weight += watch->set.weight - watch->counted;
        watch->counted = watch->set.weight;
    }
    pthread_mutex_unlock(&watches->mutex);
}

static struct watch *make_watch(struct call *call, struct err *err)
{
    struct feed *feed = world_feed(call->api->world);
    struct watch *watch = calloc(1, sizeof *watch);
    uint64_t revision = call->locale->revision;
    uint8_t random[WATCH_NAME_CHARS / 2];

    if (watch)
        watch->set.groups = calloc(WATCH_GROUPS_MAX, sizeof *watch->set.groups);
    if (!watch || !watch->set.groups) {
        free(watch);
        err_set(err, ERR_NO_MEMORY, "no memory for a watch");
        return NULL;
    }
    CHECK(getrandom(random, sizeof random, 0) == (ssize_t)sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(watch->name + 2 * i, 3, "%02x", random[i]);
    snprintf(watch->locale_id, sizeof watch->locale_id, "%s", call->locale->id);
    watch->refs = 1;
    watch->revision = revision;
    watch->locale = locale_ref((struct locale *)call->locale);
    watch->needs_all = !feed_find(feed, watch->locale_id, revision, revision, &watch->after);
    watch->idle_since = monotonic_s();
    pthread_mutex_init(&watch->work, NULL);
    pthread_mutex_init(&watch->state, NULL);
    return watch;
}

struct watch *watches_add(struct call *call, struct watch_set *set, struct err *err)
{
    struct watches *watches = call->api->watches;
    struct watch *watch = make_watch(call, err);
    size_t most = api_limits(call->api)->watches_max;

    if (watch && ask_and_replace(watches, watch, call->snapshot, watch->locale, set, "", NULL, 0,
                                 err) == ERR_OK) {
        pthread_mutex_lock(&watches->mutex);
        if (atomic_load(&watches->count) >= most)
            err_limit(err, ERR_BUSY, (double)most, (double)most + 1,
                      "there are %zu watches already", most);
        else if (need_thread(watches, err) == ERR_OK) {
            __atomic_fetch_add(&watch->refs, 1, __ATOMIC_RELAXED);
            watch->next = watches->first;
            watches->first = watch;
            watches->weight += watch->counted = watch->set.weight;
            atomic_fetch_add(&watches->count, 1);
            watches->is_woken = true; /* by what has been published meanwhile */
            pthread_cond_signal(&watches->changed);
        }
        pthread_mutex_unlock(&watches->mutex);
    }
    watch_set_free(set);
    if (watch && err->code) {
        watch_unref(watch);
        return NULL;
    }
    return watch;
}

enum err_code watch_change(struct watches *watches, struct watch *watch, struct watch_set *set,
                           char (*removed)[WATCH_ID_BYTES], size_t removed_count, struct err *err)
{
    const struct world_snapshot *snapshot;
    bool has_news = false;

    err->code = ERR_OK;
    pthread_mutex_lock(&watch->work);
    snapshot = world_hold(watches->api->world);
    if (!refresh(watches, watch, snapshot, &has_news))
        err_set(err, ERR_NOT_FOUND, "the watch has ended");
    else
        ask_and_replace(watches, watch, snapshot, watch->locale, set, "/add", removed,
                        removed_count, err);
    count_weight(watches, watch);
    pthread_mutex_unlock(&watch->work);
    world_release(watches->api->world, snapshot);
    watch_set_free(set);
    wake_streams(watches);
    return err->code;
}

/* ---- readers --------------------------------------------------------------------------------- */

static size_t first_after(const struct watch *watch, uint64_t seen)
{
    size_t low = 0, high = watch->change_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (watch->changes[middle].seq > seen)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The item of a change, unless it has changed again since. */
static const struct watch_item *item_of(const struct watch *watch, size_t change)
{
    const struct watch_item *item = &watch->set.items[watch->changes[change].item];

    return item->seq == watch->changes[change].seq ? item : NULL;
}

/* One event of the next answers; false: there are none, or there is no room. */
static bool send_answers(struct watch *watch, uint64_t *seen, struct http_stream *stream)
{
    size_t first = first_after(watch, *seen), end, count = 0, total = 128;
    const struct watch_item *item;
    char head[128];

    for (end = first; end < watch->change_count; end++) {
        size_t length;

        item = item_of(watch, end);
        if (!item)
            continue;
        length = strlen(item->id) + item->length + 16;
        if (count > 0 && total + length > EVENT_BYTES)
            break;
        total += length;
        count++;
    }
    if (count == 0 || !http_stream_has_room_for(stream, total))
        return false;
    snprintf(head, sizeof head, "event: answers\nid: %llu\ndata: {\"revision\":%llu,\"answers\":[",
             (unsigned long long)watch->revision, (unsigned long long)watch->revision);
    http_stream_write(stream, head, strlen(head));
    for (const char *comma = ""; first < end; first++) {
        *seen = watch->changes[first].seq;
        item = item_of(watch, first);
        if (!item)
            continue;
        http_stream_write(stream, comma, strlen(comma));
        http_stream_write(stream, "{\"id\":", 6);
        http_stream_write(stream, item->id, strlen(item->id));
        http_stream_write(stream, ",", 1);
        http_stream_write(stream, item->answer, item->length);
        http_stream_write(stream, "}", 1);
        comma = ",";
    }
    return http_stream_write(stream, "]}\n\n", 4);
}

void watch_pull(struct watch *watch, uint64_t *seen, struct http_stream *stream)
{
    if (watch->is_over) {
        http_stream_end(stream, HTTP_STREAM_OVER);
        return;
    }
    pthread_mutex_lock(&watch->state);
    while (*seen < watch->seq && http_stream_has_room(stream) &&
           send_answers(watch, seen, stream)) {
    }
    pthread_mutex_unlock(&watch->state);
}
