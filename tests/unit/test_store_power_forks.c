/*
 * Pins, forks, reverts and what is collected after them, while the power is cut at any moment: the
 * store opens, --check finds nothing, each locale and each pin has the samples and the mesh that
 * were acknowledged, and nothing is left that no locale and no pin names. As test_store_power.c,
 * whose machinery it uses; each store goes on after its cut, to the next one.
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
#include <cmocka.h>

enum { LOCALES = 4, PINS = 2, LIVES = 2, STEPS = 40 };

static const char *const ids[LOCALES] = {"a", "b", "c", "d"};
static const char *const pin_names[PINS] = {"p", "q"};

/* A locale's layers: a field "ground", which is immutable, and a mesh "deck". */
struct value {
    uint64_t revision;         /* without a field: of its deletion, 0: it never was */
    struct heightfield *field; /* a reference; NULL: there is no such value */
    int mesh;                  /* number of it, 0: none */
};

struct place {
    struct value now, past, pins[PINS]; /* past: some earlier value */
};

struct world {
    char folder[256];
    struct store *store;
    struct model_layer *shape; /* of all fields */
    struct random random, chance;
    uint64_t seed, sequence;
    int meshes;
    unsigned forks;
    struct place acknowledged[LOCALES], next[LOCALES];
    struct err err;
};

static unsigned rounds(void)
{
    return long_form(100, 12);
}

/* ---- values --------------------------------------------------------------------------------- */

static void value_put(struct value *to, struct value from)
{
    if (from.field)
        heightfield_ref(from.field);
    heightfield_unref(to->field);
    *to = from;
}

static void places_copy(struct place *to, const struct place *from)
{
    for (int i = 0; i < LOCALES; i++) {
        value_put(&to[i].now, from[i].now);
        value_put(&to[i].past, from[i].past);
        for (int k = 0; k < PINS; k++)
            value_put(&to[i].pins[k], from[i].pins[k]);
    }
}

static void places_free(struct place *places)
{
    places_copy(places, (struct place[LOCALES]){{.now = {.revision = 0}}});
}

/* Some locale that is there, or is not; -1: none. */
static int some_locale(struct world *w, bool is_there)
{
    uint32_t first = random_below(&w->random, LOCALES);

    for (uint32_t i = 0; i < LOCALES; i++) {
        int at = (int)((first + i) % LOCALES);

        if ((w->next[at].now.field != NULL) == is_there)
            return at;
    }
    return -1;
}

/* ---- changes: each ERR_OK or what the store said --------------------------------------------- */

/* The row of the next revision; samples NULL: it has none. */
static enum err_code log_change(struct world *w, int at, struct store_edit *edit)
{
    struct value *now = &w->next[at].now;
    struct store_past past = {.author = "alice"};
    float *before_m = NULL;
    enum err_code code;

    edit->revision = now->revision;
    edit->sequence = ++w->sequence;
    snprintf(edit->locale, sizeof edit->locale, "%s", ids[at]);
    past.revision = edit->revision;
    past.has_rect = edit->has_rect;
    past.rect = edit->rect;
    if (edit->heights_m) {
        before_m = malloc((size_t)edit->rect.cols * edit->rect.rows * sizeof *before_m);
        assert_non_null(before_m);
        heightfield_read_samples(now->field, &edit->rect, before_m);
        past.before_m = before_m;
    }
    edit->past = &past;
    code = store_log(w->store, edit, &w->err);
    free(before_m);
    return code;
}

static enum err_code log_plain(struct world *w, int at)
{
    struct store_edit edit = {.revision = 0};

    return log_change(w, at, &edit);
}

/* The value before a change becomes the past, sometimes. */
static void note_past(struct world *w, int at)
{
    if (random_below(&w->random, 4) == 0 || !w->next[at].past.field)
        value_put(&w->next[at].past, w->next[at].now);
    w->next[at].now.revision++;
}

static enum err_code put_row(struct world *w, int at, bool is_deleted, const char *origin,
                             uint64_t origin_revision)
{
    struct store_locale row = store_test_locale(ids[at], w->next[at].now.revision);

    row.is_deleted = is_deleted;
    snprintf(row.origin, sizeof row.origin, "%s", origin);
    row.origin_revision = origin_revision;
    return store_put_locale(w->store, &row, &w->err);
}

static enum err_code put_ground(struct world *w, int at)
{
    struct store_layer put = store_test_layer(w->shape, w->next[at].now.field);

    snprintf(put.locale, sizeof put.locale, "%s", ids[at]);
    put.revision = w->next[at].now.revision;
    return store_put_layer(w->store, &put, &w->err);
}

static void make_ground(struct world *w, int at)
{
    struct heightfield *field;

    for (size_t i = 0; i < (size_t)w->shape->spec.cols * w->shape->spec.rows; i++)
        w->shape->heights_m[i] = (float)random_in(&w->random, 0, 9);
    field = model_layer_field(w->shape);
    heightfield_unref(w->next[at].now.field);
    w->next[at].now.field = field;
}

/* The mesh of that number in the place of another one; 0: without one. */
static enum err_code put_deck(struct world *w, int at, int number)
{
    struct value *now = &w->next[at].now;
    struct polygon_set polygons;
    struct store_layer put = {.id = "deck",
                              .position = 1,
                              .kind = STORE_MESH,
                              .polygons = &polygons,
                              .gravity = {0, 0, -1}};
    struct mesh *mesh;
    enum err_code code;
    int before = now->mesh;

    now->mesh = number;
    if (number == before)
        return ERR_OK;
    if (number == 0)
        return store_drop_layer(w->store, ids[at], "deck", &w->err);
    mesh = store_test_mesh(number, &polygons);
    put.mesh = mesh;
    put.revision = now->revision;
    snprintf(put.locale, sizeof put.locale, "%s", ids[at]);
    code = store_put_layer(w->store, &put, &w->err);
    mesh_unref(mesh);
    polygon_set_free(&polygons);
    return code;
}

static enum err_code make(struct world *w)
{
    int at = some_locale(w, false);

    if (at < 0)
        return ERR_OK;
    w->next[at].now.revision++;
    w->next[at].now.mesh = 0;
    make_ground(w, at);
    if (put_row(w, at, false, "", 0) || put_ground(w, at) ||
        (at % 2 && put_deck(w, at, ++w->meshes)))
        return w->err.code;
    return log_plain(w, at);
}

/* New samples of a rectangle; or, as a revert, those of the past. */
static enum err_code edit(struct world *w, int at, bool is_revert)
{
    static const uint32_t sides[] = {4, 30, 120};
    struct value *now = &w->next[at].now;
    struct store_edit row =
        model_layer_edit(w->shape, sides[random_below(&w->random, 3)], 0, 0, &w->random);
    float *heights_m = (float *)(uintptr_t)row.heights_m;
    struct heightfield *field;
    enum err_code code;

    if (is_revert && w->next[at].past.field)
        heightfield_read_samples(w->next[at].past.field, &row.rect, heights_m);
    note_past(w, at);
    code = log_change(w, at, &row);
    field = heightfield_with_samples(now->field, &row.rect, heights_m, &w->err);
    assert_non_null(field);
    heightfield_unref(now->field);
    now->field = field;
    free(heights_m);
    return code;
}

/* Puts a value of the same size into the rows that `was` describes. */
static enum err_code put_value(struct world *w, int at, const struct value *was,
                               const struct value *value)
{
    struct value *now = &w->next[at].now;

    if (store_put_field(w->store, ids[at], "ground", was->field, value->field, now->revision,
                        &w->err))
        return w->err.code;
    return put_deck(w, at, value->mesh);
}

static enum err_code restore(struct world *w, int at)
{
    struct value *now = &w->next[at].now;
    struct value was = {.field = NULL};
    const struct value *pin = &w->next[at].pins[random_below(&w->random, PINS)];
    enum err_code code;

    if (!pin->field)
        return ERR_OK;
    value_put(&was, *now);
    note_past(w, at);
    code = put_value(w, at, &was, pin);
    value_put(now, (struct value){now->revision, pin->field, now->mesh});
    heightfield_unref(was.field);
    return code ? code : log_plain(w, at);
}

/* Of a locale as it is, of a pin of it, or of a revision that has no rows. */
static enum err_code fork(struct world *w, int from)
{
    const struct place *source = &w->next[from];
    const struct value *value = &source->now;
    int at = some_locale(w, false), pin = (int)random_below(&w->random, 2 * PINS);
    bool is_pin = pin < PINS && source->pins[pin].field, is_past;
    struct value *now = &w->next[at < 0 ? 0 : at].now;
    struct value rows;
    char origin[STORE_ORIGIN_MAX + 1];

    if (at < 0)
        return ERR_OK;
    if (is_pin)
        value = &source->pins[pin];
    is_past = !is_pin && pin == PINS && source->past.field;
    rows = *value;
    if (is_past)
        value = &source->past;
    snprintf(origin, sizeof origin, "%s%s%s", ids[from], is_pin ? "@" : "",
             is_pin ? pin_names[pin] : "");
    value_put(now, (struct value){now->revision + 1, value->field, rows.mesh});
    w->forks++;
    if (put_row(w, at, false, origin, value->revision) ||
        store_put_fork(w->store, ids[at], ids[from], is_pin ? pin_names[pin] : NULL, &w->err) ||
        (is_past && put_value(w, at, &rows, value)))
        return w->err.code;
    return log_plain(w, at);
}

static enum err_code pin(struct world *w, int at)
{
    uint32_t i = random_below(&w->random, PINS);

    value_put(&w->next[at].pins[i], w->next[at].now);
    return store_put_pin(w->store, ids[at], pin_names[i], 0, NULL, 0, &w->err);
}

static enum err_code unpin(struct world *w, int at)
{
    uint32_t i = random_below(&w->random, PINS);

    if (!w->next[at].pins[i].field)
        return ERR_OK;
    value_put(&w->next[at].pins[i], (struct value){.revision = 0});
    return store_drop_pin(w->store, ids[at], pin_names[i], &w->err);
}

static enum err_code replace(struct world *w, int at)
{
    note_past(w, at);
    if (random_below(&w->random, 2)) {
        make_ground(w, at);
        return put_ground(w, at) ? w->err.code : log_plain(w, at);
    }
    return put_deck(w, at, random_below(&w->random, 3) ? ++w->meshes : 0) ? w->err.code
                                                                          : log_plain(w, at);
}

static enum err_code delete_locale(struct world *w, int at)
{
    struct place *place = &w->next[at];

    value_put(&place->now, (struct value){.revision = place->now.revision + 1});
    value_put(&place->past, (struct value){.revision = 0});
    for (int i = 0; i < PINS; i++)
        value_put(&place->pins[i], (struct value){.revision = 0});
    return put_row(w, at, true, "", 0) ? w->err.code : log_plain(w, at);
}

static enum err_code change(struct world *w)
{
    uint32_t what = random_below(&w->random, 24);
    int at = some_locale(w, true);

    if (at < 0 || what == 0)
        return make(w);
    if (what <= 9)
        return edit(w, at, what == 1);
    if (what <= 13)
        return fork(w, at);
    if (what <= 16)
        return pin(w, at);
    if (what <= 18)
        return unpin(w, at);
    if (what <= 20)
        return restore(w, at);
    return what <= 21 ? replace(w, at) : delete_locale(w, at);
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
    places_copy(w->acknowledged, w->next);
    return ERR_OK;
}

static const struct heightfield *field_of(void *context, const char *locale, const char *layer)
{
    struct world *w = context;

    assert_string_equal(layer, "ground");
    for (int i = 0; i < LOCALES; i++)
        if (strcmp(locale, ids[i]) == 0)
            return w->acknowledged[i].now.field;
    return NULL;
}

static enum err_code run_steps(struct world *w)
{
    for (int i = 0; i < STEPS; i++)
        if (step(w) ||
            (random_below(&w->random, 5) == 0 && store_materialise(w->store, field_of, w, &w->err)))
            return w->err.code;
    return ERR_OK;
}

/* ---- what is there -------------------------------------------------------------------------- */

static bool has_same_samples(const struct heightfield *a, const struct heightfield *b)
{
    const struct heightfield_spec *spec = heightfield_spec(a);

    if (memcmp(spec, heightfield_spec(b), sizeof *spec) != 0)
        return false;
    for (uint32_t row = 0; row < spec->rows; row++)
        for (uint32_t column = 0; column < spec->cols; column++) {
            float x = heightfield_sample(a, column, row), y = heightfield_sample(b, column, row);

            if (memcmp(&x, &y, sizeof x) != 0)
                return false;
        }
    return true;
}

/* Is the value there, whole, as that of pin `pin` - 1 of the list, 0: the locale's own? */
static bool has_value(const struct loaded *loaded, size_t pin, const char *id,
                      const struct value *value)
{
    const struct store_loaded_layer *ground = loaded_layer_of(loaded, pin, id, "ground");
    const struct store_loaded_layer *deck = loaded_layer_of(loaded, pin, id, "deck");
    struct err err;

    if (!ground || !has_same_samples(ground->field, value->field) ||
        !heightfield_validate(ground->field, &err) || (deck != NULL) != (value->mesh != 0))
        return false;
    if (deck && deck->is_current)
        deck = loaded_layer(loaded, id, "deck");
    if (deck && deck->shares)
        deck = loaded_layer(loaded, deck->shares, "deck");
    return value->mesh == 0 ||
           (deck && deck->mesh && mesh_bounds(deck->mesh).min.x == 10.0 * value->mesh);
}

/* The first value that is not there as it should be; NULL: all are. */
static const char *missing(const struct loaded *loaded, const struct place *places)
{
    static char what[80];
    size_t pins = 0;

    for (int i = 0; i < LOCALES; i++) {
        const struct place *place = &places[i];
        const struct store_locale *row = loaded_locale(loaded, ids[i]);

        snprintf(what, sizeof what, "%s at revision %llu", ids[i],
                 (unsigned long long)place->now.revision);
        if ((row ? row->revision : 0) != place->now.revision ||
            (row && !row->is_deleted) != (place->now.field != NULL) ||
            (place->now.field && !has_value(loaded, 0, ids[i], &place->now)))
            return what;
        for (int k = 0; k < PINS; k++) {
            size_t at = 0;

            snprintf(what, sizeof what, "pin %s of %s", pin_names[k], ids[i]);
            while (at < loaded->pin_count && (strcmp(loaded->pins[at].locale, ids[i]) != 0 ||
                                              strcmp(loaded->pins[at].name, pin_names[k]) != 0))
                at++;
            if ((at < loaded->pin_count) != (place->pins[k].field != NULL))
                return what;
            if (!place->pins[k].field)
                continue;
            pins++;
            if (loaded->pins[at].revision != place->pins[k].revision ||
                !has_value(loaded, at + 1, ids[i], &place->pins[k]))
                return what;
        }
    }
    snprintf(what, sizeof what, "%zu pins of %zu", pins, loaded->pin_count);
    return pins == loaded->pin_count ? NULL : what;
}

static void on_damage(void *context, const char *message)
{
    const struct world *w = context;

    fail_msg("seed %llu: --check: %s", (unsigned long long)w->seed, message);
}

static void expect_good(struct world *w)
{
    struct store_options options = {.directory = w->folder, .is_read_only = true};
    struct store *store = store_open(&options, &w->err);

    if (!store)
        fail_msg("seed %llu: %s", (unsigned long long)w->seed, w->err.msg);
    assert_int_equal(store_check(store, on_damage, w, &w->err), 0);
    store_close(store);
}

/* All that was acknowledged is there, and what was under way whole or not at all; so both states
 * are the one that is there. */
static void expect_durable(struct world *w)
{
    struct store *store = store_must_open(w->folder);
    struct loaded *loaded = loaded_make(store);
    char lacks[80];

    if (loaded->code || loaded->damage_count)
        fail_msg("seed %llu: %s", (unsigned long long)w->seed,
                 loaded->code ? loaded->err.msg : loaded->damage[0]);
    if (missing(loaded, w->acknowledged)) {
        snprintf(lacks, sizeof lacks, "%s", missing(loaded, w->acknowledged));
        if (missing(loaded, w->next))
            fail_msg("seed %llu: it is not there: %s, nor, after the commit, %s",
                     (unsigned long long)w->seed, lacks, missing(loaded, w->next));
        places_copy(w->acknowledged, w->next);
    } else {
        places_copy(w->next, w->acknowledged);
    }
    store_must(store_last_sequence(store, &w->sequence, &w->err), &w->err);
    loaded_free(loaded);
    store_close(store);
    expect_good(w);
}

/* ---- rounds --------------------------------------------------------------------------------- */

/* Opens it under the VFS; a small WAL, a short log and history, so that rows go. */
static void begin_life(struct world *w)
{
    struct store_options options = {.directory = w->folder,
                                    .vfs = FAULT_VFS,
                                    .wal_bytes_max = 4 << 20,
                                    .log_rows_max = 12,
                                    .threads = 1};

    fault_vfs_reset(&w->chance);
    w->store = store_open(&options, &w->err);
    if (!w->store)
        fail_msg("seed %llu: %s", (unsigned long long)w->seed, w->err.msg);
    loaded_free(loaded_make(w->store));
    store_set_history_max(w->store, 50000);
}

static void world_make(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->random.state = seed;
    w->chance.state = seed + 1;
    w->shape = model_layer_make("a", "ground", 300, 130, &w->random);
    store_folder_make(w->folder);
    begin_life(w);
}

/* Without a locale, nothing is left that one has named. */
static void world_end(struct world *w)
{
    w->store = store_must_open(w->folder);
    loaded_free(loaded_make(w->store));
    store_must(store_begin(w->store, &w->err), &w->err);
    for (int i = 0; i < LOCALES; i++)
        if (w->next[i].now.field)
            store_must(delete_locale(w, i), &w->err);
    store_must(store_commit(w->store, &w->err), &w->err);
    assert_false(store_has_forks(w->store));
    store_close(w->store);
    expect_good(w);
    store_folder_remove(w->folder);
    places_free(w->acknowledged);
    places_free(w->next);
    model_layer_free(w->shape);
}

/* Calls of a whole life, to choose the moment from. */
static uint64_t calls_of_a_life(void)
{
    struct world w;
    uint64_t before, calls;

    world_make(&w, 1);
    before = fault_vfs_calls();
    store_must(run_steps(&w), &w.err);
    calls = fault_vfs_calls() - before;
    store_close(w.store);
    expect_durable(&w);
    world_end(&w);
    return calls;
}

/* Steps until the fault, and then, if it was none, the cut. */
static void run_to_fault(struct world *w, enum fault fault, uint32_t calls_max)
{
    fault_vfs_arm(fault, 1 + random_below(&w->chance, calls_max));
    run_steps(w);
    if (fault != FAULT_CUT || !fault_vfs_has_fired()) /* while it is idle, or read-only */
        fault_vfs_arm(FAULT_CUT, 1);
    store_close(w->store);
    fault_vfs_crash();
    expect_durable(w);
}

static void fault_rounds(enum fault fault, uint32_t calls_max, unsigned count)
{
    unsigned forks = 0;

    for (uint64_t round = 0; round < count; round++) {
        struct world w;

        world_make(&w, 1000 * (uint64_t)fault + round);
        run_to_fault(&w, fault, calls_max);
        for (int life = 1; life < LIVES; life++) {
            begin_life(&w);
            run_to_fault(&w, fault, calls_max);
        }
        forks += w.forks;
        world_end(&w);
    }
    assert_true(forks > count);
}

static void pins_forks_and_reverts_survive_power_cuts(void **state)
{
    (void)state;
    fault_rounds(FAULT_CUT, (uint32_t)calls_of_a_life(), rounds());
}

static void they_survive_a_failed_fsync_a_full_disk_a_short_write(void **state)
{
    (void)state;
    fault_rounds(FAULT_SYNC, 40, rounds() / 3);
    fault_rounds(FAULT_FULL, 300, rounds() / 3);
    fault_rounds(FAULT_SHORT, 300, rounds() / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pins_forks_and_reverts_survive_power_cuts),
        cmocka_unit_test(they_survive_a_failed_fsync_a_full_disk_a_short_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
