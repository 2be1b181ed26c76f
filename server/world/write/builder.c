/*
 * Rebuilds trees of meshes and writes files of meshes, after edits of their polygons.
 *
 * Problem: an edit splices polygons into a tree that was built for others (mesh_edit.c). After many
 * edits the tree is worse than a new one. To build one takes 2 µs a polygon, and to write its image
 * takes the disk's time for hundreds of megabytes; neither may hold up the writer. Approach: one
 * thread that runs one job at a time. The writer passes it a published layer, and takes the result
 * when the job is done.
 *
 * The new tree is put into the layer as it is then, with its pose and its revision: no answer
 * changes, so there is no event and no revision. Edits that came meanwhile are applied to the new
 * tree as the difference of the two sets of polygons (layer_with_tree): no edit is lost, and a
 * layer that is edited without end is rebalanced, too.
 *
 * Files are those of the layer at the start of the job. The transaction that names them removes the
 * edits that they hold from the log, and leaves later ones (store_put_mesh). They are written when
 * the log has a quarter of the mesh's bytes or FILES_EDITS edits, some time after a start that
 * found edits in the log, after a tree was rebuilt, and at the end. So the bytes written beyond the
 * edits are at most four times those of the edits, or one mesh in FILES_EDITS edits.
 *
 * Invariants: only the writer touches the entries; the mutex guards the job. The job holds a
 * reference to its layer, so a layer that is replaced meanwhile lives until the job is done, and
 * the result is dropped.
 */
#include "world/world_data.h"

#include "base/array_reserve.h"
#include "base/check.h"
#include "base/log.h"
#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_EDITS = 4096, FILES_SHARE = 4 };
#define FILES_BYTES_LEAST ((uint64_t)1 << 20)
#define SETTLE_S 1.0 /* after a change, before files are written */
#define RETRY_S 5.0

/* A layer that something is to be done for. */
struct entry {
    char locale[WORLD_ID_MAX + 1], layer[WORLD_ID_MAX + 1];
    bool wants_tree, wants_files, is_dirty; /* dirty: its files are to be written at the end */
    double due_s;
};

struct job {
    char locale[WORLD_ID_MAX + 1];
    struct layer *layer; /* a reference, as published at `revision` */
    uint64_t revision;
    bool wants_tree, wants_files;
    struct layer *built; /* a reference, when it was; NULL: err */
    bool is_saved;
    struct err err;
};

enum job_state { JOB_NONE, JOB_GIVEN, JOB_DONE };

struct builder {
    struct world *world;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards state and is_ending; state says which thread owns the job */
    pthread_cond_t changed;
    enum job_state state;
    bool is_ending;
    struct job job;

    struct entry *entries; /* the writer's */
    size_t count, room;
};

/* ---- the thread ------------------------------------------------------------------------------ */

static void job_run(struct builder *b)
{
    struct job *job = &b->job;
    struct store *store = b->world->store;

    struct build build;

    job->err.code = ERR_OK;
    if (job->wants_tree) {
        struct pace pace = build_pace(&build, (struct pace){.ask = NULL});

        build_begin(&b->world->builds, &build, BUILD_REBUILD, job->locale, job->layer->id);
        job->built = layer_rebuilt(job->layer, &pace, &job->err);
    } else {
        job->built = layer_ref(job->layer);
    }
    job->is_saved = job->built && job->wants_files && store &&
                    store_save_mesh(store, job->built->mesh, layer_polygon_set(job->built),
                                    &job->err) == ERR_OK;
    if (job->wants_tree)
        build_end(&b->world->builds, &build);
}

static void *builder_main(void *argument)
{
    struct builder *b = argument;
    struct world *world = b->world;

    pthread_setname_np(pthread_self(), "builder");
    pthread_mutex_lock(&b->mutex);
    while (!b->is_ending) {
        if (b->state != JOB_GIVEN) {
            pthread_cond_wait(&b->changed, &b->mutex);
            continue;
        }
        pthread_mutex_unlock(&b->mutex);
        job_run(b);
        pthread_mutex_lock(&b->mutex);
        b->state = JOB_DONE;
        pthread_cond_broadcast(&b->changed);
        pthread_mutex_unlock(&b->mutex);
        pthread_mutex_lock(&world->mutex); /* wakes the writer */
        world->is_poked = true;
        world_signal(world);
        pthread_mutex_unlock(&world->mutex);
        pthread_mutex_lock(&b->mutex);
    }
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

struct builder *builder_create(struct world *world, struct err *err)
{
    struct builder *b = calloc(1, sizeof *b);

    if (!b) {
        err_set(err, ERR_NO_MEMORY, "no memory for a builder");
        return NULL;
    }
    b->world = world;
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->changed, NULL);
    if (pthread_create(&b->thread, NULL, builder_main, b) != 0) {
        err_set(err, ERR_INTERNAL, "the builder's thread cannot be started");
        pthread_cond_destroy(&b->changed);
        pthread_mutex_destroy(&b->mutex);
        free(b);
        return NULL;
    }
    return b;
}

static void job_finish(struct builder *b)
{
    layer_unref(b->job.layer);
    layer_unref(b->job.built);
    b->job = (struct job){.layer = NULL};
}

void builder_destroy(struct builder *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->mutex);
    b->is_ending = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->mutex);
    pthread_join(b->thread, NULL);
    job_finish(b);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->mutex);
    free(b->entries);
    free(b);
}

/* ---- entries --------------------------------------------------------------------------------- */

static struct entry *entry_of(struct builder *b, const char *locale, const char *layer)
{
    for (size_t i = 0; i < b->count; i++)
        if (strcmp(b->entries[i].locale, locale) == 0 && strcmp(b->entries[i].layer, layer) == 0)
            return &b->entries[i];
    return NULL;
}

/* The layer's, or a new one; NULL without memory: then its edits stay in the log. */
static struct entry *entry_add(struct builder *b, const char *locale, const char *layer)
{
    struct entry *entry = entry_of(b, locale, layer);

    if (entry)
        return entry;
    if (!array_reserve((void **)&b->entries, &b->room, b->count + 1, sizeof *entry))
        return NULL;
    entry = &b->entries[b->count++];
    *entry = (struct entry){.due_s = 0};
    snprintf(entry->locale, sizeof entry->locale, "%s", locale);
    snprintf(entry->layer, sizeof entry->layer, "%s", layer);
    return entry;
}

static void entry_remove(struct builder *b, struct entry *entry)
{
    *entry = b->entries[--b->count];
}

static const struct layer *layer_now(const struct world *world, const char *locale_id,
                                     const char *layer_id, const struct locale **locale)
{
    struct world_snapshot *published = atomic_load(&((struct world *)(uintptr_t)world)->published);
    const struct layer *layer;

    *locale = snapshot_locale(published, locale_id);
    layer = *locale ? locale_layer(*locale, layer_id) : NULL;
    return layer && layer->kind == LAYER_MESH ? layer : NULL;
}

/* Has the log much of a mesh? */
static bool has_much(const struct world *world, const char *locale, const struct layer *layer)
{
    uint64_t bytes = layer->memory_bytes / FILES_SHARE;
    struct store_mesh_behind behind;

    store_mesh_behind(world->store, locale, layer->id, &behind);
    return behind.edits >= FILES_EDITS ||
           behind.bytes > (bytes > FILES_BYTES_LEAST ? bytes : FILES_BYTES_LEAST);
}

void builder_note(struct builder *b, const struct change_result *result)
{
    struct world *world = b->world;
    struct entry *entry;

    entry = entry_add(b, result->change->locale_id, result->change->layer_id);
    if (!entry)
        return;
    entry->wants_tree |= layer_is_unbalanced(result->layer);
    entry->is_dirty |= world->store != NULL;
    entry->wants_files |= world->store && has_much(world, entry->locale, result->layer);
    if (entry->wants_tree || entry->wants_files)
        entry->due_s = fmax(entry->due_s, monotonic_s());
}

void builder_note_behind(struct builder *b, const char *locale, const char *layer)
{
    struct entry *entry = entry_add(b, locale, layer);

    if (!entry)
        return;
    entry->is_dirty = entry->wants_files = true;
    entry->due_s = monotonic_s() + SETTLE_S;
}

/* ---- results of jobs ------------------------------------------------------------------------- */

static void publish_tree(struct world *world, const struct job *job)
{
    struct world_snapshot *published = atomic_load(&world->published), *after;
    const struct locale *locale;
    const struct layer *layer = layer_now(world, job->locale, job->layer->id, &locale);
    struct err err = {.code = ERR_OK};
    struct layer *next = layer ? layer_with_tree(layer, job->built, &err) : NULL;
    struct locale *with =
        next ? locale_with_moved(locale, next, locale->transform_seq, &err) : NULL;

    after = with ? snapshot_next(published, job->locale, with, &err) : NULL;
    layer_unref(next);
    locale_unref(with);
    if (!after) {
        if (layer && err.code != ERR_CONFLICT)
            log_warn("the tree of layer %s of %s is not built again: %s", job->layer->id,
                     job->locale, err_for_log(&err));
        return;
    }
    world_make_room(world);
    world_publish(world, after);
    world_wake(world);
    pthread_mutex_lock(&world->mutex);
    world->counted.rebuilds++;
    pthread_mutex_unlock(&world->mutex);
}

/* Not ERR_OK: the store cannot be written now (retried later) or ever again. */
static enum err_code write_files(struct world *world, const char *locale, const struct layer *layer,
                                 uint64_t revision)
{
    struct err err = {.code = ERR_OK};

    if (store_put_mesh(world->store, locale, layer->id, layer->mesh, layer_polygon_set(layer),
                       revision, &err) == ERR_OK)
        return ERR_OK;
    if (err.code == ERR_BUSY || err.code == ERR_NO_MEMORY) {
        log_warn("files of layer %s of %s are not written yet: %s", layer->id, locale,
                 err_for_log(&err));
    } else {
        world->is_store_broken = true;
        log_error("the store takes no more changes: %s", err_for_log(&err));
    }
    return err.code;
}

/* The state that the files hold is the layer's own, or one of before its last edits. */
static void note_files(struct world *world, const struct job *job)
{
    const struct locale *locale;
    const struct layer *layer = layer_now(world, job->locale, job->layer->id, &locale);
    struct entry *entry = entry_of(world->builder, job->locale, job->layer->id);
    struct store_mesh_behind behind;

    if (!layer || !layer_is_of_upload(layer, job->layer) || world->is_store_broken)
        return;
    if (write_files(world, job->locale, job->built, job->revision) != ERR_OK) {
        entry = entry ? entry : entry_add(world->builder, job->locale, job->layer->id);
        if (entry) {
            entry->wants_files = entry->is_dirty = true;
            entry->due_s = monotonic_s() + RETRY_S;
        }
        return;
    }
    store_mesh_behind(world->store, job->locale, layer->id, &behind);
    if (entry)
        entry->is_dirty = behind.edits > 0;
}

static void job_take(struct world *world)
{
    struct builder *b = world->builder;
    struct job *job = &b->job;

    if (job->err.code != ERR_OK) {
        struct entry *entry = entry_add(b, job->locale, job->layer->id);

        log_warn("layer %s of %s: %s", job->layer->id, job->locale, err_for_log(&job->err));
        if (entry) {
            entry->wants_tree |= job->wants_tree && !job->built;
            entry->wants_files |= job->wants_files && !job->is_saved;
            entry->due_s = monotonic_s() + RETRY_S;
        }
    }
    if (job->built && job->wants_tree)
        publish_tree(world, job);
    if (job->is_saved)
        note_files(world, job);
    job_finish(b);
}

static enum job_state state_of(const struct builder *b)
{
    struct builder *own = (struct builder *)(uintptr_t)b; /* for the mutex */
    enum job_state state;

    pthread_mutex_lock(&own->mutex);
    state = own->state;
    pthread_mutex_unlock(&own->mutex);
    return state;
}

static void state_set(struct builder *b, enum job_state state)
{
    pthread_mutex_lock(&b->mutex);
    b->state = state;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->mutex);
}

/* ---- the next one ---------------------------------------------------------------------------- */

static void give_job(struct builder *b, struct entry *entry)
{
    const struct locale *locale;
    const struct layer *layer = layer_now(b->world, entry->locale, entry->layer, &locale);
    bool has_store = b->world->store && !b->world->is_store_broken;

    if (!layer) { /* gone, or a heightfield by now */
        entry_remove(b, entry);
        return;
    }
    b->job = (struct job){
        .layer = layer_ref((struct layer *)(uintptr_t)layer),
        .revision = locale->revision,
        .wants_tree = entry->wants_tree && layer_is_unbalanced(layer),
        .wants_files = has_store && (entry->wants_files || entry->wants_tree),
    };
    memcpy(b->job.locale, entry->locale, sizeof b->job.locale);
    entry->wants_tree = entry->wants_files = false;
    state_set(b, JOB_GIVEN);
}

static struct entry *entry_due(struct builder *b, double now_s)
{
    for (size_t i = 0; i < b->count; i++) {
        struct entry *entry = &b->entries[i];

        if ((entry->wants_tree || entry->wants_files) && entry->due_s <= now_s)
            return entry;
    }
    return NULL;
}

void builder_poll(struct world *world)
{
    struct builder *b = world->builder;
    struct entry *entry;

    if (state_of(b) == JOB_DONE) {
        job_take(world);
        state_set(b, JOB_NONE);
    }
    while (state_of(b) == JOB_NONE && (entry = entry_due(b, monotonic_s())) != NULL)
        give_job(b, entry);
}

double builder_wait_s(const struct world *world)
{
    const struct builder *b = world->builder;
    double due_s = INFINITY;

    if (state_of(b) != JOB_NONE) /* its end wakes the writer */
        return INFINITY;
    for (size_t i = 0; i < b->count; i++)
        if (b->entries[i].wants_tree || b->entries[i].wants_files)
            due_s = fmin(due_s, b->entries[i].due_s);
    return isinf(due_s) ? INFINITY : fmax(0, due_s - monotonic_s());
}

void builder_finish(struct world *world)
{
    struct builder *b = world->builder;

    pthread_mutex_lock(&b->mutex);
    while (b->state == JOB_GIVEN)
        pthread_cond_wait(&b->changed, &b->mutex);
    pthread_mutex_unlock(&b->mutex);
    if (state_of(b) == JOB_DONE) {
        job_take(world);
        state_set(b, JOB_NONE);
    }
    for (size_t i = 0; world->store && i < b->count; i++) {
        const struct locale *locale;
        const struct layer *layer =
            layer_now(world, b->entries[i].locale, b->entries[i].layer, &locale);

        if (layer && b->entries[i].is_dirty && !world->is_store_broken)
            write_files(world, locale->id, layer, locale->revision);
    }
}
