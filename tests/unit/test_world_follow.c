/*
 * Worlds that share a log: two or three of them in this process, each with a store of its own, at
 * an engine in memory (fake_cluster.h). Whatever happens, they end with the same bytes at the same
 * revisions, and so do their stores after a restart.
 */
#include "world/world.h"

#include "tests/support/fake_cluster.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/random.h"
#include "world/lease.h"
#include "world/record.h"
#include "world/world_data.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { COLS = 300, ROWS = 270, SAMPLES = COLS * ROWS, WAIT_MS = 20000 };

struct node {
    char directory[64], name[8];
    const char *pattern, *vfs;
    uint32_t poll_ms;
    uint64_t snapshot_every, keep;
    struct cluster *log;
    struct store *store;
    struct world *world;
};

struct nodes {
    struct node a, b, c;
};

static enum err_code open_node(struct node *n, struct err *err)
{
    struct store_options options = {.directory = n->directory, .vfs = n->vfs};
    struct cluster_options at = {.node = n->name};
    struct world_sharing sharing = {.node = n->name,
                                    .locales = n->pattern ? n->pattern : "",
                                    .snapshot_every = n->snapshot_every ? n->snapshot_every : 1000,
                                    .keep_entries = n->keep ? n->keep : 1000,
                                    .poll_ms = n->poll_ms};
    struct world_limits limits = world_limits_default;

    err->code = ERR_OK;
    n->store = store_open(&options, err);
    assert_non_null(n->store);
    n->log = sharing.log = cluster_create(&at, err);
    limits.queue_max = 30000;
    limits.retired_max = 100000; /* nobody passes a quiet moment while a test waits */
    n->world = world_create_shared(1, &limits, n->store, &sharing, err);
    assert_non_null(n->world);
    if (world_load(n->world, err) == ERR_OK)
        world_readers_begin(n->world);
    return err->code;
}

static void start(struct node *n)
{
    struct err err;

    if (open_node(n, &err))
        fail_msg("%s: %s", n->name, err.msg);
}

static void stop(struct node *n)
{
    if (!n->world)
        return;
    world_destroy(n->world);
    cluster_destroy(n->log);
    store_close(n->store);
    n->world = NULL;
}

static void make_folder(struct node *n, const char *name)
{
    strcpy(n->name, name);
    strcpy(n->directory, "/tmp/kota-follow-XXXXXX");
    assert_non_null(mkdtemp(n->directory));
}

static int setup(void **state)
{
    struct nodes *all = calloc(1, sizeof *all);

    fake_reset();
    make_folder(&all->a, "a");
    make_folder(&all->b, "b");
    make_folder(&all->c, "c");
    *state = all;
    return 0;
}

static void remove_folder(struct node *n)
{
    char command[256];

    stop(n);
    snprintf(command, sizeof command, "rm -rf %s %s.copy", n->directory, n->directory);
    assert_int_equal(system(command), 0);
}

static int teardown(void **state)
{
    struct nodes *all = *state;

    remove_folder(&all->a);
    remove_folder(&all->b);
    remove_folder(&all->c);
    free(all);
    return 0;
}

static void copy_folder(const char *from, const char *to)
{
    char command[256];

    snprintf(command, sizeof command, "rm -rf %s && cp -r %s %s", to, from, to);
    assert_int_equal(system(command), 0);
}

/* ---- changes ------------------------------------------------------------------------------------
 */

static struct world_change change_of(enum world_change_kind kind, const char *locale,
                                     const char *layer)
{
    struct world_change change = {.kind = kind, .manifest = locale_manifest_default};

    strcpy(change.locale_id, locale);
    strcpy(change.layer_id, layer);
    return change;
}

static void apply(struct node *n, struct world_change change)
{
    struct err err = {.code = ERR_OK};

    if (world_apply(n->world, &change, &err))
        fail_msg("%s: %s", n->name, err.msg);
}

static void put_locale(struct node *n, const char *locale)
{
    struct world_change change = change_of(WORLD_PUT_LOCALE, locale, "");

    strcpy(change.manifest.title, "Höhe");
    apply(n, change);
}

static void put_field(struct node *n, const char *locale, const char *layer, float height)
{
    struct heightfield_spec spec = {COLS, ROWS, 5, -7, 2, 3, TRIANGULATION_ANTI, 0};
    struct world_change change = change_of(WORLD_PUT_LAYER, locale, layer);
    float *heights = malloc(SAMPLES * sizeof *heights);
    struct err err;

    for (size_t i = 0; i < SAMPLES; i++)
        heights[i] = i % 1000 == 7 ? NAN : height + (float)(i % 13) / 7;
    change.layer = layer_create_heightfield(layer, heightfield_create(&spec, heights, &err), &err);
    assert_non_null(change.layer);
    free(heights);
    apply(n, change);
}

static void put_mesh(struct node *n, const char *locale, const char *layer, double z,
                     struct mesh_space space)
{
    static const uint32_t corners[6] = {0, 1, 2, 0, 2, 3}, starts[3] = {0, 3, 6};
    const struct vec3 square[4] = {{1, 1, z}, {10, 1, z}, {10, 10, z}, {1, 10, z}};
    struct world_change change = change_of(WORLD_PUT_LAYER, locale, layer);
    struct polygon_set set;
    struct err err = {.code = ERR_OK};

    assert_int_equal(polygon_set_allocate(4, 2, 6, &set, &err), ERR_OK);
    memcpy(set.vertices, square, sizeof square);
    memcpy(set.corners, corners, sizeof corners);
    memcpy(set.starts, starts, sizeof starts);
    change.layer = layer_create_mesh_in(layer, LAYER_CEILING, &set, space, (struct vec3){0, 0, -1},
                                        NULL, &err);
    if (!change.layer)
        fail_msg("%s", err.msg);
    apply(n, change);
}

static struct world_change edit_of(const char *locale, uint32_t column, uint32_t row, float height)
{
    struct world_change change = change_of(WORLD_EDIT, locale, "");
    float *heights = malloc(12 * sizeof *heights);

    for (int i = 0; i < 12; i++)
        heights[i] = height + (float)i / 3;
    change.edit =
        (struct edit){.kind = EDIT_SET, .rect = {column, row, 4, 3}, .heights_m = heights};
    return change;
}

static void edit(struct node *n, const char *locale, uint32_t column, uint32_t row, float height)
{
    apply(n, edit_of(locale, column, row, height));
}

static void *answer_of(void *context, const struct world_outcome *outcome, size_t *bytes)
{
    char *text = malloc(64);

    (void)context;
    *bytes = (size_t)snprintf(text, 64, "made as %llu", (unsigned long long)outcome->revision);
    return text;
}

/* A submitted change, and what came of it. */
struct waited {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_done;
    enum err_code code;
    char answer[64], message[320];
    uint64_t revision;
};

static void on_done(void *context, const struct world_outcome *outcome)
{
    struct waited *w = context;

    pthread_mutex_lock(&w->mutex);
    w->is_done = true;
    w->code = outcome->code;
    w->revision = outcome->revision;
    snprintf(w->answer, sizeof w->answer, "%.*s", (int)outcome->answer_bytes,
             outcome->answer ? (const char *)outcome->answer : "");
    snprintf(w->message, sizeof w->message, "%s", outcome->code ? outcome->err->msg : "");
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->mutex);
}

static struct waited submit(struct node *n, struct world_change change)
{
    struct waited w = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    struct err err = {.code = ERR_OK};

    change.done = on_done;
    change.context = &w;
    assert_int_equal(world_submit(n->world, &change, &err), ERR_OK);
    pthread_mutex_lock(&w.mutex);
    while (!w.is_done)
        pthread_cond_wait(&w.cond, &w.mutex);
    pthread_mutex_unlock(&w.mutex);
    return w;
}

static struct world_change with_key(struct world_change change, const char *key, uint8_t request)
{
    strcpy(change.op_id, key);
    memset(change.request, request, sizeof change.request);
    change.answer = answer_of;
    return change;
}

/* ---- what is there ------------------------------------------------------------------------------
 */

static uint64_t revision_of(struct node *n, const char *locale)
{
    const struct world_snapshot *snapshot = world_pin(n->world, 0);
    const struct locale *at = snapshot_locale(snapshot, locale);
    uint64_t revision = at ? at->revision : 0;

    world_unpin(n->world, 0, snapshot);
    world_reader_quiet(n->world, 0);
    return revision;
}

/* Until the node has applied all that the engine has. */
static void catch_up(struct node *n)
{
    struct world_shared shared;

    for (int ms = 0; ms < WAIT_MS; ms++) {
        bool is_equal = true;

        pthread_mutex_lock(&fake.mutex);
        for (size_t i = 0; i < fake.locale_count; i++) {
            uint64_t applied = world_applied(n->world, fake.locales[i].id);

            is_equal &=
                applied == fake.locales[i].revision || !world_serves(n->world, fake.locales[i].id);
        }
        pthread_mutex_unlock(&fake.mutex);
        if (is_equal && world_staleness_s(n->world) == 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    world_shared(n->world, &shared);
    fail_msg("%s does not catch up: %llu behind, lag %llu, %s", n->name,
             (unsigned long long)shared.behind, (unsigned long long)shared.lag, shared.reason);
}

static void expect_same_record(const struct record *a, const struct record *b, const char *what)
{
    if (a->bytes != b->bytes || memcmp(a->data, b->data, a->bytes) != 0)
        fail_msg("%s differs", what);
}

/* The same locales, layers and models, bit for bit. */
static void expect_same(struct node *a, struct node *b)
{
    const struct world_snapshot *x = world_pin(a->world, 0), *y = world_pin(b->world, 0);
    struct record records[2];
    struct err err = {.code = ERR_OK};

    assert_int_equal(x->locale_count, y->locale_count);
    for (size_t i = 0; i < x->locale_count; i++) {
        assert_string_equal(x->locales[i]->id, y->locales[i]->id);
        assert_int_equal(x->locales[i]->revision, y->locales[i]->revision);
        assert_int_equal(record_locale(x->locales[i], &records[0], &err), ERR_OK);
        assert_int_equal(record_locale(y->locales[i], &records[1], &err), ERR_OK);
        expect_same_record(&records[0], &records[1], x->locales[i]->id);
        record_finish(&records[0]);
        record_finish(&records[1]);
    }
    assert_int_equal(record_models(x->models, &records[0], &err), ERR_OK);
    assert_int_equal(record_models(y->models, &records[1], &err), ERR_OK);
    expect_same_record(&records[0], &records[1], "the list of models");
    record_finish(&records[0]);
    record_finish(&records[1]);
    if (!snapshot_validate(y, &err))
        fail_msg("%s", err.msg);
    world_unpin(a->world, 0, x);
    world_unpin(b->world, 0, y);
    world_reader_quiet(a->world, 0);
    world_reader_quiet(b->world, 0);
}

static void say(void *context, const char *message)
{
    fprintf(stderr, "%s: %s\n", (const char *)context, message);
}

static void expect_sound(struct node *n)
{
    struct store_options options = {.directory = n->directory, .is_read_only = true};
    struct err err = {.code = ERR_OK};
    struct store *store = store_open(&options, &err);

    if (!store)
        fail_msg("%s", err.msg);
    assert_int_equal(store_check(store, say, n->name, &err), 0);
    store_close(store);
}

/* Both caught up, equal, and equal again after a restart, with nothing damaged. */
static void expect_all_same(struct node *a, struct node *b)
{
    catch_up(a);
    catch_up(b);
    expect_same(a, b);
    stop(a);
    stop(b);
    expect_sound(a);
    expect_sound(b);
    start(a);
    start(b);
    catch_up(a);
    catch_up(b);
    expect_same(a, b);
}

static void start_two(struct nodes *all)
{
    start(&all->a);
    put_locale(&all->a, "land");
    put_field(&all->a, "land", "ground", 3);
    start(&all->b);
    catch_up(&all->b);
}

/* ---- facts --------------------------------------------------------------------------------------
 */

static void put_model(struct node *n, const char *id, double side)
{
    static const char faces[] = "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";
    struct world_change change = {.kind = WORLD_PUT_MODEL};
    char text[256];
    struct err err = {.code = ERR_OK};

    snprintf(text, sizeof text, "v 0 0 0\nv %g 0 0\nv 0 %g 0\nv 0 0 %g\n%s", side, side, side,
             faces);
    strcpy(change.model_id, id);
    change.model = model_create(id, text, strlen(text), &polygon_limits_default, &err);
    if (!change.model)
        fail_msg("%s", err.msg);
    apply(n, change);
}

static void every_kind_of_change_is_seen_elsewhere(void **state)
{
    struct nodes *all = *state;
    struct world_change change;

    start_two(all);
    put_mesh(&all->a, "land", "roof", 9, (struct mesh_space){MESH_CARTESIAN, false});
    put_locale(&all->a, "planet");
    put_mesh(&all->a, "planet", "crust", 50, (struct mesh_space){MESH_SPHERICAL, false});
    edit(&all->a, "land", 100, 100, 44);
    change = change_of(WORLD_EDIT, "land", "ground");
    change.edit.kind = EDIT_BRUSH;
    change.edit.brush = (struct brush){BRUSH_CRATER, {100, 100}, 20, 3};
    apply(&all->a, change);
    put_model(&all->a, "rock", 1);
    put_model(&all->b, "cow", 2);
    expect_all_same(&all->a, &all->b);
    change = change_of(WORLD_PUT_LOCALE, "land", "");
    change.manifest.gravity = (struct vec3){0, 0.6, -0.8};
    change.manifest.triangulation = TRIANGULATION_MAIN;
    apply(&all->b, change);
    apply(&all->b, change_of(WORLD_DELETE_LAYER, "land", "ground"));
    strcpy(change.model_id, "rock");
    change = (struct world_change){.kind = WORLD_DELETE_MODEL, .model_id = "rock"};
    apply(&all->b, change);
    put_field(&all->b, "land", "ground", 8);
    apply(&all->b, change_of(WORLD_DELETE_LOCALE, "planet", ""));
    expect_all_same(&all->a, &all->b);
    put_locale(&all->b, "planet");
    catch_up(&all->a);
    assert_int_equal(revision_of(&all->a, "planet"), 4);
    expect_all_same(&all->a, &all->b);
}

struct hammer {
    struct node *node;
    uint64_t seed;
    int edits;
};

static void *hammer(void *argument)
{
    struct hammer *h = argument;
    struct random random = {h->seed};

    for (int i = 0; i < h->edits; i++)
        edit(h->node, i % 3 ? "land" : "sea", random_below(&random, COLS - 4),
             random_below(&random, ROWS - 3), (float)i);
    return NULL;
}

static void writes_on_both_come_to_one_order(void **state)
{
    struct nodes *all = *state;
    struct hammer hammers[2] = {{&all->a, 11, 200}, {&all->b, 12, 200}};
    pthread_t threads[2];

    start_two(all);
    put_locale(&all->b, "sea");
    put_field(&all->b, "sea", "bed", -9);
    catch_up(&all->a);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &hammers[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    catch_up(&all->a);
    assert_int_equal(revision_of(&all->a, "land") + revision_of(&all->a, "sea"), 4 + 400);
    expect_all_same(&all->a, &all->b);
}

/* Another node, whose every append comes just before. */
static struct node *rival;
static int rival_wins;

static void be_faster(struct cluster *node)
{
    if (rival && node != rival->log && rival_wins > 0) {
        rival_wins--;
        edit(rival, "land", 0, 0, (float)rival_wins);
    }
}

static void who_loses_each_race_holds_and_wins(void **state)
{
    struct nodes *all = *state;

    start_two(all);
    rival = &all->b;
    rival_wins = 3;
    fake.before_append = be_faster;
    edit(&all->a, "land", 50, 50, 1);
    fake.before_append = NULL;
    rival = NULL;
    assert_int_equal(fake.holds, 1);
    assert_int_equal(revision_of(&all->a, "land"), 2 + 3 + 1);
    expect_all_same(&all->a, &all->b);
}

static void a_condition_is_looked_at_again_after_a_lost_race(void **state)
{
    struct nodes *all = *state;
    struct world_change change = edit_of("land", 50, 50, 1);
    struct waited w;

    start_two(all);
    rival = &all->b;
    rival_wins = 1;
    fake.before_append = be_faster;
    change.if_revision = 2;
    w = submit(&all->a, change);
    fake.before_append = NULL;
    assert_int_equal(w.code, ERR_PRECONDITION_FAILED);
    assert_non_null(strstr(w.message, "is at revision 3, not at 2"));
    expect_all_same(&all->a, &all->b);
}

static void a_key_is_known_on_every_node(void **state)
{
    struct nodes *all = *state;
    struct waited w;

    start_two(all);
    w = submit(&all->a, with_key(edit_of("land", 1, 1, 5), "key-1", 7));
    assert_int_equal(w.code, ERR_OK);
    assert_int_equal(w.revision, 3);
    w = submit(&all->b, with_key(edit_of("land", 1, 1, 5), "key-1", 7));
    assert_int_equal(w.code, ERR_OK);
    assert_string_equal(w.answer, "made as 3");
    assert_int_equal(w.revision, 3);
    w = submit(&all->b, with_key(edit_of("land", 2, 1, 5), "key-1", 8));
    assert_int_equal(w.code, ERR_UNPROCESSABLE);
    expect_all_same(&all->a, &all->b);
    w = submit(&all->b, with_key(edit_of("land", 1, 1, 5), "key-1", 7));
    assert_string_equal(w.answer, "made as 3");
}

/* The first append takes a while: what is submitted meanwhile is one batch. */
static void be_slow(struct cluster *node)
{
    (void)node;
    fake.before_append = NULL;
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
}

struct asking {
    struct node *node;
    struct waited *got;
    int after_ms;
};

static void *ask(void *argument)
{
    struct asking *asking = argument;

    nanosleep(&(struct timespec){.tv_nsec = asking->after_ms * 1000000L}, NULL);
    *asking->got = submit(asking->node, with_key(edit_of("land", 1, 1, 5), "twice", 7));
    return NULL;
}

static void a_key_twice_in_what_waits_is_made_once(void **state)
{
    struct nodes *all = *state;
    struct waited got[2];
    struct asking asking[2] = {{&all->a, &got[0], 50}, {&all->a, &got[1], 100}};
    pthread_t threads[2];

    start_two(all);
    fake.before_append = be_slow;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &asking[i]), 0);
    edit(&all->a, "land", 2, 2, 2);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(got[i].code, ERR_OK);
        assert_int_equal(got[i].revision, 4);
    }
    assert_string_equal(got[0].answer, "");
    assert_string_equal(got[1].answer, "made as 4");
    expect_all_same(&all->a, &all->b);
}

static void a_key_that_only_the_log_knows_is_refused(void **state)
{
    struct nodes *all = *state;
    struct waited w;

    all->b.pattern = "s*";
    start(&all->a);
    put_locale(&all->a, "land");
    put_locale(&all->a, "sea");
    put_field(&all->a, "land", "ground", 1);
    put_field(&all->a, "sea", "ground", 1);
    w = submit(&all->a, with_key(edit_of("land", 1, 1, 5), "key", 7));
    assert_int_equal(w.code, ERR_OK);
    start(&all->b);
    catch_up(&all->b);
    assert_int_equal(revision_of(&all->b, "land"), 0);
    assert_int_equal(revision_of(&all->b, "sea"), 2);
    w = submit(&all->b, with_key(edit_of("sea", 1, 1, 5), "key", 7));
    assert_int_equal(w.code, ERR_CONFLICT);
    assert_non_null(strstr(w.message, "was made: it is revision 3 of land"));
    assert_null(fake.holder);
    edit(&all->b, "sea", 1, 1, 5);
}

static void an_append_in_doubt_is_found_out(void **state)
{
    struct nodes *all = *state;
    struct waited w;

    start_two(all);
    fake.loses_answer = true;
    w = submit(&all->a, with_key(edit_of("land", 1, 1, 5), "lost", 7));
    assert_int_equal(w.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(w.message, "is open"));
    w = submit(&all->a, with_key(edit_of("land", 1, 1, 5), "lost", 7));
    assert_int_equal(w.code, ERR_OK);
    assert_string_equal(w.answer, "made as 3");
    fake.loses_request = true;
    w = submit(&all->b, with_key(edit_of("land", 1, 1, 6), "lost 2", 7));
    assert_int_equal(w.code, ERR_UNAVAILABLE);
    w = submit(&all->b, with_key(edit_of("land", 1, 1, 6), "lost 2", 7));
    assert_int_equal(w.code, ERR_OK);
    assert_string_equal(w.answer, "");
    assert_int_equal(w.revision, 4);
    expect_all_same(&all->a, &all->b);
}

static void while_the_log_is_away_reads_go_on(void **state)
{
    struct nodes *all = *state;
    struct waited w;

    start_two(all);
    submit(&all->a, with_key(edit_of("land", 1, 1, 5), "before", 7));
    catch_up(&all->b);
    fake_set_away(true);
    w = submit(&all->b, edit_of("land", 5, 5, 5));
    assert_int_equal(w.code, ERR_UNAVAILABLE);
    w = submit(&all->b, with_key(edit_of("land", 1, 1, 5), "before", 7));
    assert_string_equal(w.answer, "made as 3");
    assert_int_equal(revision_of(&all->b, "land"), 3);
    while (world_staleness_s(all->b.world) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    stop(&all->b);
    start(&all->b); /* serves what it has */
    assert_int_equal(revision_of(&all->b, "land"), 3);
    assert_true(isinf(world_staleness_s(all->b.world)));
    fake_set_away(false);
    catch_up(&all->b);
    edit(&all->b, "land", 5, 5, 5);
    assert_true(world_staleness_s(all->b.world) == 0);
    expect_all_same(&all->a, &all->b);
}

/* What a kill -9 between the log's commit and the store's leaves. */
static void what_the_store_lost_is_followed(void **state)
{
    struct nodes *all = *state;
    char copy[80];

    start_two(all);
    catch_up(&all->a);
    snprintf(copy, sizeof copy, "%s.copy", all->a.directory);
    stop(&all->a);
    copy_folder(all->a.directory, copy);
    start(&all->a);
    submit(&all->a, with_key(edit_of("land", 9, 9, 9), "killed", 7));
    put_mesh(&all->a, "land", "roof", 9, (struct mesh_space){MESH_CARTESIAN, false});
    stop(&all->a);
    copy_folder(copy, all->a.directory);
    start(&all->a);
    assert_int_equal(revision_of(&all->a, "land"), 4);
    assert_string_equal(submit(&all->a, with_key(edit_of("land", 9, 9, 9), "killed", 7)).answer,
                        "made as 3");
    expect_all_same(&all->a, &all->b);
}

static void a_node_that_was_away_too_long_takes_a_snapshot(void **state)
{
    struct nodes *all = *state;
    struct world_shared shared;

    all->a.snapshot_every = 10;
    all->a.keep = 5;
    start_two(all);
    put_locale(&all->a, "gone");
    put_model(&all->a, "rock", 1);
    catch_up(&all->b);
    stop(&all->b);
    for (int i = 0; i < 57; i++)
        edit(&all->a, "land", (uint32_t)i, (uint32_t)i, (float)i);
    for (int i = 0; i < 11; i++) {
        apply(&all->a, change_of(WORLD_DELETE_LOCALE, "gone", ""));
        put_locale(&all->a, "gone");
        put_model(&all->a, "rock", 2 + i);
    }
    apply(&all->a, change_of(WORLD_DELETE_LOCALE, "gone", ""));
    catch_up(&all->a);
    for (int ms = 0; ms < WAIT_MS && fake_locale("land")->first <= 10; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    start(&all->b);
    world_shared(all->b.world, &shared);
    assert_true(shared.snapshots_taken >= 1);
    expect_all_same(&all->a, &all->b);
    start(&all->c); /* from nothing */
    catch_up(&all->c);
    expect_same(&all->a, &all->c);
    put_locale(&all->c, "gone");
    catch_up(&all->a);
    expect_same(&all->a, &all->c);
    assert_int_equal(revision_of(&all->a, "gone"), 1 + 22 + 2);
}

static void what_the_log_has_lost_goes_back(void **state)
{
    struct nodes *all = *state;
    struct world_shared shared;

    start_two(all);
    edit(&all->a, "land", 9, 9, 9);
    edit(&all->a, "land", 9, 9, 10);
    put_locale(&all->a, "young");
    catch_up(&all->b);
    stop(&all->b);
    fake_set_away(true);
    fake_trim("land", 1, 3); /* a standby that had less takes over */
    fake_locale("land")->revision = 3;
    fake_trim("young", 1, 0);
    fake.locale_count--;
    fake_set_away(false);
    catch_up(&all->a);
    assert_int_equal(revision_of(&all->a, "land"), 3);
    for (int ms = 0; ms < WAIT_MS && revision_of(&all->a, "young") != 0; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(revision_of(&all->a, "young"), 0);
    world_shared(all->a.world, &shared);
    assert_int_equal(shared.divergences, 2);
    edit(&all->a, "land", 20, 20, 1);
    edit(&all->a, "land", 20, 20, 2);
    start(&all->b); /* the same revision number, another entry */
    expect_all_same(&all->a, &all->b);
}

/* What a node has made without a log. */
static void fill_alone(struct node *n)
{
    struct store_options options = {.directory = n->directory};
    struct err err = {.code = ERR_OK};

    n->store = store_open(&options, &err);
    n->world = world_create(1, &world_limits_default, n->store, &err);
    assert_int_equal(world_load(n->world, &err), ERR_OK);
    world_readers_begin(n->world);
    put_locale(n, "land");
    put_field(n, "land", "ground", 3);
    submit(n, with_key(edit_of("land", 9, 9, 9), "alone", 7));
    put_locale(n, "gone");
    apply(n, change_of(WORLD_DELETE_LOCALE, "gone", ""));
    put_model(n, "rock", 1);
    world_destroy(n->world);
    store_close(n->store);
    n->world = NULL;
}

/* The store says already that it is of the log, and the log has nothing of it. */
static void an_adoption_that_was_cut_short_goes_on(void **state)
{
    struct nodes *all = *state;

    fill_alone(&all->a);
    fake.is_away_for_adoption = true;
    start(&all->a);
    assert_int_equal(submit(&all->a, edit_of("land", 1, 1, 1)).code, ERR_UNAVAILABLE);
    stop(&all->a);
    assert_int_equal(fake.adoptions, 0);
    fake.is_away_for_adoption = false;
    start(&all->a);
    assert_int_equal(fake.adoptions, 3);
    start(&all->b);
    edit(&all->b, "land", 1, 1, 1);
    expect_all_same(&all->a, &all->b);
}

static void a_store_of_its_own_comes_into_an_empty_log(void **state)
{
    struct nodes *all = *state;

    fill_alone(&all->a);
    start(&all->a);
    assert_int_equal(fake.adoptions, 3);
    start(&all->b);
    expect_all_same(&all->a, &all->b);
    put_locale(&all->b, "gone");
    assert_int_equal(revision_of(&all->b, "gone"), 3);
    assert_string_equal(submit(&all->a, with_key(edit_of("land", 9, 9, 9), "alone", 7)).answer,
                        "made as 3");
    /* the key is not known to the log, and must not stop anybody */
    assert_int_equal(submit(&all->b, with_key(edit_of("land", 8, 9, 9), "alone", 9)).code, ERR_OK);
    expect_all_same(&all->a, &all->b);
}

static void wait_trimmed(const char *locale, uint64_t first)
{
    for (int ms = 0; ms < WAIT_MS && fake_locale(locale)->first < first; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_true(fake_locale(locale)->first >= first);
}

/* Who adopted it, and who has it of the snapshot of that: both are away while the log is trimmed.
 */
static void an_adopted_locale_may_be_left_behind(void **state)
{
    struct nodes *all = *state;

    fill_alone(&all->a);
    start(&all->a);
    start(&all->c);
    catch_up(&all->c);
    stop(&all->a);
    stop(&all->c);
    all->b.snapshot_every = 10;
    all->b.keep = 5;
    start(&all->b);
    for (int i = 0; i < 30; i++)
        edit(&all->b, "land", (uint32_t)i, (uint32_t)i, (float)i);
    wait_trimmed("land", 6);
    start(&all->a);
    expect_all_same(&all->a, &all->b);
    start(&all->c);
    expect_all_same(&all->c, &all->b);
}

static void who_lost_an_adoption_is_told_what_is_where(void **state)
{
    struct nodes *all = *state;
    struct err err;

    fill_alone(&all->a);
    fake.rival = "land"; /* after "/models" and "gone" */
    assert_int_equal(open_node(&all->a, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.msg, "brought a land of its own"));
    assert_non_null(strstr(err.msg, "in the log from this data directory: /models, gone;"));
    assert_non_null(strstr(err.msg, "only here: land:"));
}

static void a_log_that_has_lost_everything_empties_nobody(void **state)
{
    struct nodes *all = *state;
    struct world_shared shared;

    start_two(all);
    stop(&all->b);
    fake_set_away(true);
    fake.locale_count = 0;
    fake_set_away(false);
    do {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        world_shared(all->a.world, &shared);
    } while (shared.reason[0] == '\0' && revision_of(&all->a, "land") != 0);
    assert_non_null(strstr(shared.reason, "has none of the 1 locales"));
    assert_int_equal(revision_of(&all->a, "land"), 2);
    assert_int_equal(submit(&all->a, edit_of("land", 1, 1, 1)).code, ERR_BUSY);
    stop(&all->a);
    start(&all->a);
    assert_int_equal(revision_of(&all->a, "land"), 2);
    fake_set_away(true);
    fake.locale_count = 1; /* the operator has found a better one */
    fake_set_away(false);
    start(&all->b);
    catch_up(&all->a);
    edit(&all->a, "land", 1, 1, 1);
    expect_all_same(&all->a, &all->b);
}

/* A standby that had less took over, others went on there, and this node has not heard of it. */
static void reconnect_once(struct cluster *node)
{
    (void)node;
    fake.before_append = NULL;
    fake.connects++;
}

static void an_append_stands_on_what_the_log_has(void **state)
{
    struct nodes *all = *state;
    struct world_shared shared;
    struct waited w;

    start_two(all);
    stop(&all->b);
    edit(&all->a, "land", 9, 9, 9);
    catch_up(&all->a);
    fake.deaf = all->a.log;
    fake_trim("land", 1, 2);
    fake_locale("land")->revision = 2;
    start(&all->b);
    edit(&all->b, "land", 9, 9, 10); /* another third revision */
    fake.before_append = reconnect_once;
    w = submit(&all->a, edit_of("land", 20, 20, 1));
    assert_int_equal(w.code, ERR_OK);
    assert_int_equal(w.revision, 4);
    world_shared(all->a.world, &shared);
    assert_int_equal(shared.divergences, 1);
    fake.deaf = NULL;
    expect_all_same(&all->a, &all->b);
}

static struct node *reading_node;
static int coming, not_coming;

static void see_what_comes(struct cluster *log, const char *locale)
{
    if (log != reading_node->log || world_applied(reading_node->world, locale) > 0)
        return;
    coming += world_is_coming(reading_node->world, locale);
    not_coming += !world_is_coming(reading_node->world, locale);
}

static void a_locale_that_is_taken_anew_is_on_its_way(void **state)
{
    struct nodes *all = *state;

    start_two(all);
    edit(&all->a, "land", 9, 9, 9);
    catch_up(&all->b);
    assert_false(world_is_coming(all->a.world, "land"));
    coming = not_coming = 0;
    reading_node = &all->a;
    fake_set_away(true);
    fake.before_read = see_what_comes;
    fake_trim("land", 1, 2);
    fake_locale("land")->revision = 2;
    fake_set_away(false);
    catch_up(&all->a);
    catch_up(&all->b);
    fake.before_read = NULL;
    assert_true(coming > 0);
    assert_int_equal(not_coming, 0);
    assert_false(world_is_coming(all->a.world, "land"));
    assert_false(world_is_coming(all->a.world, "nowhere"));
    expect_all_same(&all->a, &all->b);
}

static void an_engine_that_hangs_is_stale(void **state)
{
    struct nodes *all = *state;
    int ms = 0;

    all->a.poll_ms = 100;
    start(&all->a);
    catch_up(&all->a);
    fake.hangs = true;
    for (; ms < WAIT_MS && world_staleness_s(all->a.world) == 0; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    fake.hangs = false;
    assert_true(ms < WAIT_MS);
    catch_up(&all->a);
}

static void fill_disk(struct cluster *node)
{
    (void)node;
    fake.before_append = NULL;
    fault_vfs_arm(FAULT_FULL, 1);
}

static void a_store_that_fails_after_the_append_leaves_it_open(void **state)
{
    struct nodes *all = *state;
    struct random random = {3};
    struct waited w;

    fault_vfs_reset(&random);
    all->a.vfs = FAULT_VFS;
    start_two(all);
    fake.before_append = fill_disk;
    w = submit(&all->a, with_key(edit_of("land", 9, 9, 9), "full", 7));
    assert_true(fault_vfs_has_fired());
    assert_int_equal(w.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(w.message, "is in the shared log"));
    w = submit(&all->b, with_key(edit_of("land", 9, 9, 9), "full", 7));
    assert_string_equal(w.answer, "made as 3");
    stop(&all->a);
    all->a.vfs = NULL;
    start(&all->a);
    expect_all_same(&all->a, &all->b);
}

/* What another node has acknowledged is there, whoever has not heard of it. */
static void nothing_is_refused_by_old_ground(void **state)
{
    struct nodes *all = *state;
    struct world_change change = edit_of("land", 9, 9, 10);
    struct waited w;

    start_two(all);
    put_locale(&all->a, "old");
    catch_up(&all->b);
    fake.deaf = all->b.log;
    put_locale(&all->a, "sea");
    put_field(&all->a, "sea", "bed", 1);
    edit(&all->a, "land", 9, 9, 9);
    apply(&all->a, change_of(WORLD_DELETE_LOCALE, "old", ""));
    change.if_revision = 3;
    w = submit(&all->b, change);
    assert_int_equal(w.code, ERR_OK);
    assert_int_equal(w.revision, 4);
    edit(&all->a, "land", 9, 9, 9);
    put_locale(&all->a, "lake");
    put_field(&all->a, "lake", "bed", 1);
    assert_int_equal(submit(&all->b, edit_of("lake", 9, 9, 9)).code, ERR_OK);
    apply(&all->a, change_of(WORLD_DELETE_LOCALE, "lake", ""));
    change = change_of(WORLD_PUT_LOCALE, "lake", "");
    change.condition = WORLD_IF_ABSENT;
    assert_int_equal(submit(&all->b, change).code, ERR_OK);
    change = edit_of("land", 1, 1, 1);
    change.if_revision = 2;
    assert_int_equal(submit(&all->b, change).code, ERR_PRECONDITION_FAILED);
    assert_int_equal(submit(&all->b, edit_of("nowhere", 1, 1, 1)).code, ERR_NOT_FOUND);
    fake.deaf = NULL;
    expect_all_same(&all->a, &all->b);
}

static void ground_that_cannot_be_followed_is_not_leased(void **state)
{
    struct nodes *all = *state;
    struct world_lease lease;
    struct vec2 low = {0, 0}, high = {4, 4};
    struct err err = {.code = ERR_OK};
    bool is_own;

    start_two(all);
    assert_int_equal(world_lease(all->b.world, "land", low, high, &lease, &is_own, &err), ERR_OK);
    locale_unref(lease.locale);
    world_unlease(all->b.world, lease.fence);
    stop(&all->b);
    edit(&all->a, "land", 9, 9, 9);
    memset((void *)(uintptr_t)fake_entry_at("land", 3)->entry.data, 0xff, 1);
    start(&all->b);
    assert_int_equal(world_lease(all->b.world, "land", low, high, &lease, &is_own, &err),
                     ERR_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "not here as the shared log has it"));
    assert_null(lease.locale);
}

static void a_store_of_another_history_is_refused(void **state)
{
    struct nodes *all = *state;
    struct err err = {.code = ERR_OK};
    struct store_options options = {.directory = all->b.directory};

    start(&all->a);
    put_locale(&all->a, "land");
    all->b.store = store_open(&options, &err);
    all->b.world = world_create(1, &world_limits_default, all->b.store, &err);
    assert_int_equal(world_load(all->b.world, &err), ERR_OK);
    put_locale(&all->b, "land");
    world_destroy(all->b.world);
    store_close(all->b.store);
    assert_int_equal(open_node(&all->b, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.msg, "the data directory has land of its own"));
    stop(&all->b);
    stop(&all->a);
    fake_reset(); /* another engine */
    assert_int_equal(open_node(&all->a, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.msg, "belongs to the shared log"));
    assert_int_equal(fake.locale_count, 0);
}

static void a_damaged_locale_is_taken_from_the_log(void **state)
{
    struct nodes *all = *state;
    char command[256];

    start_two(all);
    edit(&all->b, "land", 9, 9, 9);
    catch_up(&all->b);
    stop(&all->b);
    snprintf(
        command, sizeof command,
        "sqlite3 %s/kota.db \"UPDATE tile SET data = zeroblob(length(data)) WHERE number = 1\"",
        all->b.directory);
    if (system(command) != 0)
        skip();
    start(&all->b);
    assert_null(world_damage(all->b.world, NULL));
    expect_all_same(&all->a, &all->b);
}

static void a_stale_fence_refuses_its_change_alone(void **state)
{
    struct nodes *all = *state;
    struct world_change change = edit_of("land", 9, 9, 9);
    struct waited w;

    start_two(all);
    fake.stale_fence = 17;
    change.fence = 17;
    w = submit(&all->a, change);
    assert_int_equal(w.code, ERR_PRECONDITION_FAILED);
    assert_non_null(strstr(w.message, "fence 17 is stale"));
    change = edit_of("land", 9, 9, 9);
    change.fence = 18;
    assert_int_equal(submit(&all->a, change).code, ERR_OK);
    expect_all_same(&all->a, &all->b);
}

static void patterns_are_lists_of_globs(void **state)
{
    (void)state;
    assert_true(world_pattern_takes("", "x"));
    assert_true(world_pattern_takes("a*,b", "abc"));
    assert_true(world_pattern_takes("a*,b", "b"));
    assert_false(world_pattern_takes("a*,b", "bc"));
    assert_true(world_pattern_takes("?[0-3]*", "x2y"));
    assert_false(world_pattern_takes(",", "x"));
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(every_kind_of_change_is_seen_elsewhere),
        FACT(writes_on_both_come_to_one_order),
        FACT(who_loses_each_race_holds_and_wins),
        FACT(a_condition_is_looked_at_again_after_a_lost_race),
        FACT(a_key_is_known_on_every_node),
        FACT(a_key_twice_in_what_waits_is_made_once),
        FACT(a_key_that_only_the_log_knows_is_refused),
        FACT(an_append_in_doubt_is_found_out),
        FACT(while_the_log_is_away_reads_go_on),
        FACT(what_the_store_lost_is_followed),
        FACT(a_node_that_was_away_too_long_takes_a_snapshot),
        FACT(what_the_log_has_lost_goes_back),
        FACT(an_adoption_that_was_cut_short_goes_on),
        FACT(a_store_of_its_own_comes_into_an_empty_log),
        FACT(an_adopted_locale_may_be_left_behind),
        FACT(who_lost_an_adoption_is_told_what_is_where),
        FACT(a_store_of_another_history_is_refused),
        FACT(a_log_that_has_lost_everything_empties_nobody),
        FACT(an_append_stands_on_what_the_log_has),
        FACT(a_locale_that_is_taken_anew_is_on_its_way),
        FACT(an_engine_that_hangs_is_stale),
        FACT(a_store_that_fails_after_the_append_leaves_it_open),
        FACT(nothing_is_refused_by_old_ground),
        FACT(ground_that_cannot_be_followed_is_not_leased),
        FACT(a_damaged_locale_is_taken_from_the_log),
        FACT(a_stale_fence_refuses_its_change_alone),
        cmocka_unit_test(patterns_are_lists_of_globs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
