#include "tests/support/follow/follow_fixture.h"
#include "tests/support/pause.h"
#include "world/follow/record.h"
#include "world/world_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum err_code open_node(struct node *n, struct err *err)
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

void start(struct node *n)
{
    struct err err;

    if (open_node(n, &err))
        fail_msg("%s: %s", n->name, err.msg);
}

void stop(struct node *n)
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

int setup(void **state)
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

int teardown(void **state)
{
    struct nodes *all = *state;

    remove_folder(&all->a);
    remove_folder(&all->b);
    remove_folder(&all->c);
    free(all);
    return 0;
}

void copy_folder(const char *from, const char *to)
{
    char command[256];

    snprintf(command, sizeof command, "rm -rf %s && cp -r %s %s", to, from, to);
    assert_int_equal(system(command), 0);
}

/* ---- changes --------------------------------------------------------------------------------- */

void apply(struct node *n, struct world_change change)
{
    struct err err = {.code = ERR_OK};

    if (world_apply(n->world, &change, &err))
        fail_msg("%s: %s", n->name, err.msg);
}

void put_locale(struct node *n, const char *locale)
{
    struct world_change change = change_of(WORLD_PUT_LOCALE, locale, "");

    strcpy(change.manifest.title, "Höhe");
    apply(n, change);
}

void put_field(struct node *n, const char *locale, const char *layer, float height)
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

void put_mesh(struct node *n, const char *locale, const char *layer, double z,
              struct mesh_space space)
{
    static const uint32_t corners[6] = {0, 1, 2, 0, 2, 3}, starts[3] = {0, 3, 6};
    const struct vec3 square[4] = {{1, 1, z}, {10, 1, z}, {10, 10, z}, {1, 10, z}};

    apply(n, change_of_mesh(locale, layer, square, 4, corners, starts, space));
}

struct world_change edit_of(const char *locale, uint32_t column, uint32_t row, float height)
{
    struct world_change change = change_of(WORLD_EDIT, locale, "");
    float *heights = malloc(12 * sizeof *heights);

    for (int i = 0; i < 12; i++)
        heights[i] = height + (float)i / 3;
    change.edit =
        (struct edit){.kind = EDIT_SET, .rect = {column, row, 4, 3}, .heights_m = heights};
    return change;
}

void edit(struct node *n, const char *locale, uint32_t column, uint32_t row, float height)
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

struct waited submit(struct node *n, struct world_change change)
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

struct world_change with_key(struct world_change change, const char *key, uint8_t request)
{
    strcpy(change.op_id, key);
    memset(change.request, request, sizeof change.request);
    change.answer = answer_of;
    return change;
}

/* ---- what is there --------------------------------------------------------------------------- */

uint64_t revision_of(struct node *n, const char *locale)
{
    const struct world_snapshot *snapshot = world_pin(n->world, 0);
    const struct locale *at = snapshot_locale(snapshot, locale);
    uint64_t revision = at ? at->revision : 0;

    world_unpin(n->world, 0, snapshot);
    world_reader_quiet(n->world, 0);
    return revision;
}

void catch_up(struct node *n)
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
        pause_ms(1);
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

void expect_same(struct node *a, struct node *b)
{
    const struct world_snapshot *x = world_pin(a->world, 0), *y = world_pin(b->world, 0);
    struct record records[2];
    struct err err = {.code = ERR_OK};

    assert_int_equal(x->locale_count, y->locale_count);
    for (size_t i = 0; i < x->locale_count; i++) {
        assert_string_equal(snapshot_at(x, i)->id, snapshot_at(y, i)->id);
        assert_int_equal(snapshot_at(x, i)->revision, snapshot_at(y, i)->revision);
        assert_int_equal(record_locale(snapshot_at(x, i), 0, 0, NULL, &records[0], &err), ERR_OK);
        assert_int_equal(record_locale(snapshot_at(y, i), 0, 0, NULL, &records[1], &err), ERR_OK);
        expect_same_record(&records[0], &records[1], snapshot_at(x, i)->id);
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

void expect_all_same(struct node *a, struct node *b)
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

void start_two(struct nodes *all)
{
    start(&all->a);
    put_locale(&all->a, "land");
    put_field(&all->a, "land", "ground", 3);
    start(&all->b);
    catch_up(&all->b);
}

void put_model(struct node *n, const char *id, double side)
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

void fill_alone(struct node *n)
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
