/*
 * What was acknowledged is there after the power was cut at any moment, after an fsync that failed,
 * a full disk, a short write; and nothing is there by half. Each round prints its seed when it
 * fails. kill -9 would prove nothing here, the page cache survives it; support/fault_vfs.h loses
 * what was not synced.
 */
#include "store/store.h"

#include "support/fault_vfs.h"
#include "support/long_form.h"
#include "support/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { LOCALES = 2, STEPS = 30 };

static unsigned rounds(void)
{
    return long_form(100, 10);
}

/* What the store should hold: locale i is "a" or "b" with a layer "ground", "b" with a mesh. */
struct state {
    uint64_t revision[LOCALES];
    struct model_layer *layer[LOCALES];
    int mesh; /* number of it, 0: none */
};

struct world {
    char folder[256];
    struct store *store;
    struct random random, chance;
    uint64_t seed, sequence;
    struct state acknowledged, next;
    bool is_importing; /* changes are layers more than edits */
    struct heightfield *fields[LOCALES];
    struct err err;
};

static const char *const ids[LOCALES] = {"a", "b"};

static void state_make(struct state *s, struct random *random)
{
    s->layer[0] = model_layer_make(ids[0], "ground", 300, 270, random);
    s->layer[1] = model_layer_make(ids[1], "ground", 258, 40, random);
    s->mesh = 0;
}

static void state_copy(struct state *to, const struct state *from)
{
    for (int i = 0; i < LOCALES; i++) {
        const struct heightfield_spec *spec = &from->layer[i]->spec;

        memcpy(to->layer[i]->heights_m, from->layer[i]->heights_m,
               (size_t)spec->cols * spec->rows * sizeof(float));
        to->revision[i] = from->revision[i];
    }
    to->mesh = from->mesh;
}

/* ---- changes: each ERR_OK or what the store said --------------------------------------------- */

static struct store_past past_of(const struct store_edit *edit)
{
    return (struct store_past){.revision = edit->revision,
                               .author = "alice",
                               .is_birth = edit->revision == 1,
                               .has_rect = edit->has_rect,
                               .rect = edit->rect};
}

static enum err_code log_change(struct world *w, int locale)
{
    struct store_edit edit = {.revision = ++w->next.revision[locale], .sequence = ++w->sequence};
    struct store_past past = past_of(&edit);

    edit.past = &past;
    snprintf(edit.locale, sizeof edit.locale, "%s", ids[locale]);
    return store_log(w->store, &edit, &w->err);
}

static enum err_code change_samples(struct world *w, int locale)
{
    struct model_layer *layer = w->next.layer[locale];
    struct store_edit edit =
        model_layer_edit(layer, 90, ++w->next.revision[locale], ++w->sequence, &w->random);
    const struct sample_rect *r = &edit.rect;
    float *before_m = malloc((size_t)r->cols * r->rows * sizeof *before_m);
    struct store_past past = past_of(&edit);
    enum err_code code;

    assert_non_null(before_m);
    for (uint32_t row = 0; row < r->rows; row++)
        memcpy(before_m + (size_t)row * r->cols,
               layer->heights_m + (size_t)(r->row + row) * layer->spec.cols + r->column,
               r->cols * sizeof *before_m);
    past.before_m = before_m;
    edit.past = &past;
    code = store_log(w->store, &edit, &w->err);
    free(before_m);
    model_layer_apply(layer, &edit.rect, edit.heights_m);
    free((void *)(uintptr_t)edit.heights_m);
    return code;
}

static enum err_code change_layer(struct world *w, int locale)
{
    struct model_layer *layer = w->next.layer[locale];
    struct heightfield *field;
    struct store_layer put;
    enum err_code code;

    for (size_t i = 0; i < (size_t)layer->spec.cols * layer->spec.rows; i++)
        layer->heights_m[i] = (float)random_in(&w->random, 0, 1);
    field = model_layer_field(layer);
    put = store_test_layer(layer, field);
    code = store_put_layer(w->store, &put, &w->err);
    heightfield_unref(field);
    return code ? code : log_change(w, locale);
}

static enum err_code change_mesh(struct world *w)
{
    struct polygon_set polygons;
    struct mesh *mesh = store_test_mesh(++w->next.mesh, &polygons);
    struct store_layer put = {.locale = "b",
                              .id = "deck",
                              .position = 1,
                              .kind = STORE_MESH,
                              .mesh = mesh,
                              .polygons = &polygons,
                              .gravity = {0, 0, -1}};
    enum err_code code = store_put_layer(w->store, &put, &w->err);

    mesh_unref(mesh);
    polygon_set_free(&polygons);
    return code ? code : log_change(w, 1);
}

static enum err_code change(struct world *w)
{
    uint32_t what = random_below(&w->random, 10);
    int locale = (int)random_below(&w->random, LOCALES);

    if (what >= (w->is_importing ? 3 : 10))
        return what < 6 ? change_mesh(w) : change_layer(w, locale);
    if (what == 0) {
        struct store_locale row = store_test_locale(ids[locale], w->next.revision[locale] + 1);

        return store_put_locale(w->store, &row, &w->err) ? w->err.code : log_change(w, locale);
    }
    return change_samples(w, locale);
}

/* One commit of one to three changes. */
static enum err_code step(struct world *w)
{
    uint32_t changes = 1 + random_below(&w->random, 3);

    if (store_begin(w->store, &w->err))
        return w->err.code;
    for (uint32_t i = 0; i < changes; i++)
        if (change(w)) {
            store_rollback(w->store);
            return w->err.code;
        }
    if (store_commit(w->store, &w->err))
        return w->err.code;
    state_copy(&w->acknowledged, &w->next);
    return ERR_OK;
}

static const struct heightfield *field_of(void *context, const char *locale, const char *layer)
{
    struct world *w = context;
    int i = strcmp(locale, ids[1]) == 0;

    assert_string_equal(layer, "ground");
    if (!w->fields[i])
        w->fields[i] = model_layer_field(w->acknowledged.layer[i]);
    return w->fields[i];
}

static enum err_code materialise(struct world *w)
{
    enum err_code code = store_materialise(w->store, field_of, w, &w->err);

    for (int i = 0; i < LOCALES; i++) {
        heightfield_unref(w->fields[i]);
        w->fields[i] = NULL;
    }
    return code;
}

static enum err_code run_steps(struct world *w, int steps)
{
    for (int i = 0; i < steps; i++)
        if (step(w) || (random_below(&w->random, 6) == 0 && materialise(w)))
            return w->err.code;
    return ERR_OK;
}

/* ---- a round -------------------------------------------------------------------------------- */

static void set_up(struct world *w)
{
    struct heightfield *field;
    struct store_layer put;

    store_must(store_begin(w->store, &w->err), &w->err);
    for (int i = 0; i < LOCALES; i++) {
        struct store_locale row = store_test_locale(ids[i], 1);

        w->next.revision[i] = 0;
        store_must(store_put_locale(w->store, &row, &w->err), &w->err);
        field = model_layer_field(w->next.layer[i]);
        put = store_test_layer(w->next.layer[i], field);
        store_must(store_put_layer(w->store, &put, &w->err), &w->err);
        heightfield_unref(field);
        store_must(log_change(w, i), &w->err);
    }
    store_must(store_commit(w->store, &w->err), &w->err);
    state_copy(&w->acknowledged, &w->next);
}

/* A store of two locales under the VFS; a small WAL, so that checkpoints happen. */
static void world_make(struct world *w, uint64_t seed, enum store_sync sync, bool is_importing)
{
    struct store_options options = {
        .vfs = FAULT_VFS, .sync = sync, .wal_bytes_max = 4 << 20, .threads = 1};

    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->random.state = seed;
    w->chance.state = seed + 1;
    w->is_importing = is_importing;
    fault_vfs_reset(&w->chance);
    store_folder_make(w->folder);
    state_make(&w->acknowledged, &w->random);
    state_make(&w->next, &w->random);
    options.directory = w->folder;
    w->store = store_open(&options, &w->err);
    if (!w->store)
        fail_msg("seed %llu: %s", (unsigned long long)seed, w->err.msg);
    store_set_history_max(w->store, 100000); /* some rows go */
    set_up(w);
}

static void world_free(struct world *w)
{
    store_folder_remove(w->folder);
    for (int i = 0; i < LOCALES; i++) {
        model_layer_free(w->acknowledged.layer[i]);
        model_layer_free(w->next.layer[i]);
    }
}

static bool has_revisions(const struct loaded *loaded, const struct state *s)
{
    for (int i = 0; i < LOCALES; i++) {
        const struct store_locale *locale = loaded_locale(loaded, ids[i]);

        if (!locale || locale->revision != s->revision[i])
            return false;
    }
    return true;
}

static void expect_state(const struct world *w, const struct loaded *loaded, const struct state *s)
{
    const struct store_loaded_layer *deck = loaded_layer(loaded, "b", "deck");
    struct err err;

    for (int i = 0; i < LOCALES; i++) {
        const struct store_loaded_layer *layer = loaded_layer(loaded, ids[i], "ground");

        if (!layer || !model_layer_equals(s->layer[i], layer->field))
            fail_msg("seed %llu: the heights of %s are not those of its revision %llu",
                     (unsigned long long)w->seed, ids[i], (unsigned long long)s->revision[i]);
        if (!heightfield_validate(layer->field, &err))
            fail_msg("seed %llu: %s", (unsigned long long)w->seed, err.msg);
    }
    if ((deck != NULL) != (s->mesh != 0) ||
        (deck && mesh_bounds(deck->mesh).min.x != 10.0 * s->mesh))
        fail_msg("seed %llu: the mesh is not the one of its revision", (unsigned long long)w->seed);
    if (loaded->edit_count != s->revision[0] + s->revision[1])
        fail_msg("seed %llu: the log has %zu rows", (unsigned long long)w->seed,
                 loaded->edit_count);
}

static void expect_no_damage(void *context, const char *message)
{
    const struct world *w = context;

    fail_msg("seed %llu: --check: %s", (unsigned long long)w->seed, message);
}

/* Each revision that is held has its row, up to the locale's; the samples before can be read. */
static void expect_history(struct world *w)
{
    struct store_options options = {.directory = w->folder, .is_read_only = true};
    struct store *store = store_open(&options, &w->err);

    if (!store)
        fail_msg("%s", w->err.msg);
    assert_int_equal(store_check(store, expect_no_damage, w, &w->err), 0);
    store_close(store);
}

/*
 * Opens it with the ordinary VFS. All that was acknowledged is there, and what was under way whole
 * or not at all. False, with may_lose, when acknowledged edits are lost.
 */
static bool expect_durable(struct world *w, bool may_lose)
{
    struct store *store = store_must_open(w->folder);
    struct loaded *loaded = loaded_make(store);
    bool is_there = true;

    if (loaded->code || loaded->damage_count)
        fail_msg("seed %llu: %s", (unsigned long long)w->seed,
                 loaded->code ? loaded->err.msg : loaded->damage[0]);
    if (has_revisions(loaded, &w->acknowledged))
        expect_state(w, loaded, &w->acknowledged);
    else if (has_revisions(loaded, &w->next))
        expect_state(w, loaded, &w->next);
    else if (may_lose)
        is_there = false;
    else
        fail_msg("seed %llu: acknowledged are revisions %llu and %llu, not what is there",
                 (unsigned long long)w->seed, (unsigned long long)w->acknowledged.revision[0],
                 (unsigned long long)w->acknowledged.revision[1]);
    loaded_free(loaded);
    store_close(store);
    expect_history(w);
    return is_there;
}

/* ---- power ---------------------------------------------------------------------------------- */

/* Calls of a whole run, to choose the moment from. */
static uint64_t calls_of_a_run(bool is_importing)
{
    struct world w;
    uint64_t before, calls;

    world_make(&w, 1, STORE_SYNC_FULL, is_importing);
    before = fault_vfs_calls();
    store_must(run_steps(&w, STEPS), &w.err);
    calls = fault_vfs_calls() - before;
    store_close(w.store);
    assert_true(expect_durable(&w, false));
    world_free(&w);
    return calls;
}

/* Rounds that lost something acknowledged. */
static unsigned cut_rounds(enum store_sync sync, bool is_importing)
{
    uint64_t calls = calls_of_a_run(is_importing);
    unsigned lost = 0;

    for (uint64_t round = 0; round < rounds(); round++) {
        struct world w;

        world_make(&w, 1000 + round, sync, is_importing);
        fault_vfs_arm(FAULT_CUT, 1 + random_below(&w.chance, (uint32_t)calls));
        run_steps(&w, STEPS);
        if (!fault_vfs_has_fired()) /* then while it is idle */
            fault_vfs_arm(FAULT_CUT, 1);
        store_close(w.store);
        fault_vfs_crash();
        lost += !expect_durable(&w, sync == STORE_SYNC_NORMAL);
        world_free(&w);
    }
    return lost;
}

static void acknowledged_edits_survive_a_power_cut(void **state)
{
    (void)state;
    assert_int_equal(cut_rounds(STORE_SYNC_FULL, false), 0);
}

static void imports_survive_a_power_cut(void **state)
{
    (void)state;
    assert_int_equal(cut_rounds(STORE_SYNC_FULL, true), 0);
}

static void synchronous_normal_loses_acknowledged_edits(void **state)
{
    unsigned lost = cut_rounds(STORE_SYNC_NORMAL, false);

    (void)state;
    print_message("# %u of %u rounds lost acknowledged edits\n", lost, rounds());
    assert_true(lost > 0);
}

static void a_cut_while_the_database_is_made_leaves_none_or_a_whole_one(void **state)
{
    struct random chance = {5};
    char folder[256];

    (void)state;
    for (uint64_t round = 0; round < 60; round += long_form(1, 4)) {
        struct store_options options = {.directory = folder, .vfs = FAULT_VFS};
        struct store *store;
        struct loaded *loaded;
        struct err err;

        fault_vfs_reset(&chance);
        store_folder_make(folder);
        fault_vfs_arm(FAULT_CUT, 1 + round);
        store = store_open(&options, &err);
        if (!fault_vfs_has_fired())
            fault_vfs_arm(FAULT_CUT, 1);
        store_close(store);
        fault_vfs_crash();
        store = store_must_open(folder);
        loaded = loaded_make(store);
        loaded_expect_whole(loaded);
        assert_int_equal(loaded->locale_count, 0);
        loaded_free(loaded);
        store_close(store);
        store_folder_remove(folder);
    }
}

/* ---- errors --------------------------------------------------------------------------------- */

/* Steps until the fault; then nothing is taken, for the same reason, until it is opened again. */
static void expect_read_only(struct world *w, enum err_code code)
{
    struct store_stats stats;
    enum err_code got = run_steps(w, 10 * STEPS);

    if (got != code)
        fail_msg("seed %llu: %s: %s", (unsigned long long)w->seed, err_title(got), w->err.msg);
    store_stats(w->store, &stats);
    assert_true(stats.is_read_only);
    assert_int_equal(stats.cause, code);
    assert_true(strlen(stats.reason) > 0);
    assert_int_equal(store_begin(w->store, &w->err), code);
    assert_string_equal(w->err.msg, stats.reason);
    assert_int_equal(materialise(w), code);
}

static void fault_rounds(enum fault fault, enum err_code code, uint32_t calls_max)
{
    for (uint64_t round = 0; round < rounds(); round++) {
        struct world w;

        world_make(&w, 5000 + round, STORE_SYNC_FULL, round % 2);
        fault_vfs_arm(fault, 1 + random_below(&w.chance, calls_max));
        expect_read_only(&w, code);
        fault_vfs_arm(round % 3 ? FAULT_NONE : FAULT_CUT, 1); /* some die so */
        store_close(w.store);
        if (round % 3 == 0)
            fault_vfs_crash();
        fault_vfs_reset(&w.chance);
        expect_durable(&w, false);
        world_free(&w);
    }
}

static void a_failed_fsync_acknowledges_nothing(void **state)
{
    (void)state;
    fault_rounds(FAULT_SYNC, ERR_READ_ONLY, 40);
}

static void a_full_disk_acknowledges_nothing(void **state)
{
    (void)state;
    fault_rounds(FAULT_FULL, ERR_DISK_FULL, 300);
}

static void a_short_write_acknowledges_nothing(void **state)
{
    (void)state;
    fault_rounds(FAULT_SHORT, ERR_READ_ONLY, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledged_edits_survive_a_power_cut),
        cmocka_unit_test(imports_survive_a_power_cut),
        cmocka_unit_test(synchronous_normal_loses_acknowledged_edits),
        cmocka_unit_test(a_cut_while_the_database_is_made_leaves_none_or_a_whole_one),
        cmocka_unit_test(a_failed_fsync_acknowledges_nothing),
        cmocka_unit_test(a_full_disk_acknowledges_nothing),
        cmocka_unit_test(a_short_write_acknowledges_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
