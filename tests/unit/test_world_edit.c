/*
 * Edits in the world: what each change sees of the ones before it, what repeats do, and that
 * readers see each revision whole. The oracle is an array of samples for each revision.
 */
#include "world/world.h"

#include "tests/support/change_make.h"
#include "tests/support/random.h"
#include "world/ask/query.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COLS = 300, ROWS = 40, SAMPLES = COLS * ROWS, EDITS = 1000, READERS = 2 };

static struct world_change edit_of(enum edit_kind kind, struct sample_rect rect, float height_m)
{
    struct world_change change = change_of(WORLD_EDIT, "a", "");
    size_t count = (size_t)rect.cols * rect.rows;
    float *heights_m = malloc(count * sizeof *heights_m);

    assert_non_null(heights_m);
    for (size_t i = 0; i < count; i++)
        heights_m[i] = height_m;
    change.edit = (struct edit){.kind = kind, .rect = rect, .heights_m = heights_m};
    return change;
}

/* A world with one locale and a flat heightfield of height 0: revision 2. */
static struct world *make_world(size_t readers)
{
    struct heightfield_spec spec = {COLS, ROWS, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    float *heights_m = calloc(SAMPLES, sizeof *heights_m);
    struct world_change changes[2] = {change_of(WORLD_PUT_LOCALE, "a", ""),
                                      change_of(WORLD_PUT_LAYER, "a", "ground")};
    struct err err = {.code = ERR_OK};
    struct world *world = world_create(readers, &world_limits_default, NULL, &err);

    assert_non_null(world);
    changes[1].layer =
        layer_create_heightfield("ground", heightfield_create(&spec, heights_m, &err), &err);
    assert_int_equal(world_apply_all(world, changes, 2, &err), ERR_OK);
    free(heights_m);
    return world;
}

static enum err_code apply(struct world *world, struct world_change change, struct err *err)
{
    err->code = ERR_OK;
    return world_apply(world, &change, err);
}

struct seen {
    uint64_t revision;
    float at_0_0;
};

static struct seen look(struct world *world)
{
    const struct world_snapshot *snapshot = world_pin(world, 0);
    const struct locale *locale = snapshot_locale(snapshot, "a");
    struct seen seen = {0, 0};
    struct err err;

    if (locale) {
        seen.revision = locale->revision;
        seen.at_0_0 = heightfield_sample(locale->layers[0]->field, 0, 0);
        if (!locale_validate(locale, &err))
            fail_msg("%s", err.msg);
    }
    world_unpin(world, 0, snapshot);
    world_reader_quiet(world, 0);
    return seen;
}

static const struct sample_rect corner = {0, 0, 1, 1};

static void each_edit_sees_the_one_before(void **state)
{
    struct world *world = make_world(1);
    struct err err;

    (void)state;
    world_readers_begin(world);
    assert_int_equal(apply(world, edit_of(EDIT_ADD, corner, 2), &err), ERR_OK);
    assert_int_equal(apply(world, edit_of(EDIT_ADD, corner, 3), &err), ERR_OK);
    assert_int_equal(look(world).revision, 4);
    assert_true(look(world).at_0_0 == 5);
    assert_int_equal(apply(world, edit_of(EDIT_SET, corner, 1), &err), ERR_OK);
    assert_true(look(world).at_0_0 == 1);
    assert_int_equal(apply(world, edit_of(EDIT_SET, (struct sample_rect){COLS, 0, 1, 1}, 1), &err),
                     ERR_UNPROCESSABLE);
    assert_int_equal(look(world).revision, 5);
    world_destroy(world);
}

static void a_condition_holds_for_one_of_two(void **state)
{
    struct world *world = make_world(1);
    struct world_change first = edit_of(EDIT_ADD, corner, 1);
    struct world_change second = edit_of(EDIT_ADD, corner, 1);
    struct world_change absent = change_of(WORLD_PUT_LOCALE, "a", "");
    struct err err;

    (void)state;
    world_readers_begin(world);
    first.if_revision = second.if_revision = 2;
    assert_int_equal(apply(world, first, &err), ERR_OK);
    assert_int_equal(apply(world, second, &err), ERR_PRECONDITION_FAILED);
    assert_string_equal(err.pointer, "If-Match");
    assert_true(look(world).at_0_0 == 1);
    absent.condition = WORLD_IF_ABSENT;
    assert_int_equal(apply(world, absent, &err), ERR_PRECONDITION_FAILED);
    strcpy(absent.locale_id, "b");
    assert_int_equal(apply(world, absent, &err), ERR_OK);
    absent.condition = WORLD_IF_PRESENT;
    assert_int_equal(apply(world, absent, &err), ERR_OK);
    strcpy(absent.locale_id, "c");
    assert_int_equal(apply(world, absent, &err), ERR_PRECONDITION_FAILED);
    world_destroy(world);
}

/* ---- repeats --------------------------------------------------------------------------------- */

struct answered {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int count;
    enum err_code code;
    uint64_t revision;
    char answer[32];
};

static void *tell(void *context, const struct world_outcome *outcome, size_t *bytes)
{
    char *text = malloc(32);

    (void)context;
    assert_non_null(text);
    *bytes = (size_t)snprintf(text, 32, "revision %llu", (unsigned long long)outcome->revision) + 1;
    return text;
}

static void on_done(void *context, const struct world_outcome *outcome)
{
    struct answered *answered = context;

    pthread_mutex_lock(&answered->mutex);
    answered->count++;
    answered->code = outcome->code;
    answered->revision = outcome->revision;
    answered->answer[0] = '\0';
    if (outcome->answer)
        memcpy(answered->answer, outcome->answer, outcome->answer_bytes);
    pthread_cond_signal(&answered->cond);
    pthread_mutex_unlock(&answered->mutex);
}

static void apply_op(struct world *world, const char *op_id, uint8_t request, float height_m,
                     struct answered *answered)
{
    struct world_change change = edit_of(EDIT_ADD, corner, height_m);
    struct err err;

    strcpy(change.op_id, op_id);
    change.request[0] = request;
    change.answer = tell;
    change.done = on_done;
    change.context = answered;
    answered->count = 0;
    assert_int_equal(world_submit(world, &change, &err), ERR_OK);
    pthread_mutex_lock(&answered->mutex);
    while (answered->count == 0)
        pthread_cond_wait(&answered->cond, &answered->mutex);
    pthread_mutex_unlock(&answered->mutex);
}

/* Asks whether an op was made. */
static void find_op(struct world *world, const char *op_id, uint8_t request,
                    struct answered *answered)
{
    struct world_change change = {.kind = WORLD_FIND_OP, .done = on_done, .context = answered};
    struct err err = {.code = ERR_OK};

    strcpy(change.op_id, op_id);
    change.request[0] = request;
    world_apply(world, &change, &err);
}

static void a_question_for_an_op_changes_and_counts_nothing(void **state)
{
    struct world *world = make_world(1);
    struct answered answered = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                .cond = PTHREAD_COND_INITIALIZER};
    struct world_stats before, after;
    uint64_t last = feed_last(world_feed(world));

    (void)state;
    world_readers_begin(world);
    world_stats(world, &before);
    find_op(world, "k", 1, &answered);
    assert_int_equal(answered.code, ERR_OK);
    assert_string_equal(answered.answer, "");
    world_stats(world, &after);
    assert_int_equal(after.changes, before.changes);
    assert_int_equal(after.refused, before.refused);
    assert_int_equal(after.publications, before.publications);
    assert_int_equal(feed_last(world_feed(world)), last);
    assert_int_equal(look(world).revision, 2);

    apply_op(world, "k", 1, 5, &answered);
    assert_int_equal(answered.revision, 3);
    find_op(world, "k", 1, &answered);
    assert_string_equal(answered.answer, "revision 3");
    find_op(world, "k", 2, &answered);
    assert_int_equal(answered.code, ERR_KEY_REUSED);
    world_stats(world, &after);
    assert_int_equal(after.repeats, before.repeats + 1);
    assert_int_equal(after.refused, before.refused + 1);
    assert_int_equal(look(world).revision, 3);
    world_destroy(world);
}

static void a_repeat_digs_once_and_is_answered_as_at_first(void **state)
{
    struct world *world = make_world(1);
    struct answered answered = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                .cond = PTHREAD_COND_INITIALIZER};
    struct world_change gone = change_of(WORLD_DELETE_LOCALE, "a", "");
    struct world_stats stats;
    struct err err;

    (void)state;
    world_readers_begin(world);
    apply_op(world, "k", 1, 5, &answered);
    assert_int_equal(answered.code, ERR_OK);
    assert_int_equal(answered.revision, 3);
    assert_string_equal(answered.answer, ""); /* the first one makes its answer */
    for (int i = 0; i < 3; i++) {
        apply_op(world, "k", 1, 5, &answered);
        assert_int_equal(answered.code, ERR_OK);
        assert_int_equal(answered.revision, 3);
        assert_string_equal(answered.answer, "revision 3");
    }
    apply_op(world, "k", 2, 5, &answered);
    assert_int_equal(answered.code, ERR_KEY_REUSED);
    apply_op(world, "l", 1, 5, &answered);
    assert_int_equal(answered.revision, 4);
    assert_true(look(world).at_0_0 == 10);
    assert_int_equal(apply(world, gone, &err), ERR_OK);
    apply_op(world, "k", 1, 5, &answered); /* also when the locale is gone */
    assert_string_equal(answered.answer, "revision 3");
    apply_op(world, "m", 1, 5, &answered);
    assert_int_equal(answered.code, ERR_LOCALE_UNKNOWN);
    world_stats(world, &stats);
    assert_int_equal(stats.repeats, 4);
    assert_int_equal(stats.edits, 2);
    world_destroy(world);
}

/* ---- the feed -------------------------------------------------------------------------------- */

static void the_feed_tells_what_has_changed(void **state)
{
    struct world *world = make_world(1);
    struct world_change gone = change_of(WORLD_DELETE_LOCALE, "a", "");
    struct feed_event events[8];
    uint64_t after = 0;
    bool held;
    struct err err;

    (void)state;
    assert_int_equal(apply(world, edit_of(EDIT_ADD, (struct sample_rect){0, 3, 5, 2}, 7), &err),
                     ERR_OK);
    assert_int_equal(apply(world, gone, &err), ERR_OK);
    assert_int_equal(apply(world, change_of(WORLD_PUT_LOCALE, "a", ""), &err), ERR_OK);
    assert_int_equal(feed_read(world_feed(world), "a", &after, events, 8, &held), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(events[i].revision, i + 1);
        assert_int_equal(events[i].sequence, i + 1);
    }
    assert_string_equal(events[0].source, "manifest");
    assert_false(events[0].has_rect);
    assert_string_equal(events[1].source, "layer");
    assert_string_equal(events[1].layer, "ground");
    assert_int_equal(events[1].rect.cols, COLS);
    assert_string_equal(events[2].source, "edit");
    assert_int_equal(events[2].rect.row, 3);
    assert_int_equal(events[2].rect.cols, 5);
    assert_true(events[2].has_bounds);
    assert_true(events[2].bounds.min.x == 0 && events[2].bounds.max.x == 5);
    assert_true(events[2].bounds.min.y == 2 && events[2].bounds.max.y == 5);
    assert_true(events[2].bounds.min.z == 0 && events[2].bounds.max.z == 7);
    assert_string_equal(events[3].source, "delete");
    assert_string_equal(events[4].source, "manifest");
    world_destroy(world);
}

static struct feed_event last_event(struct world *world)
{
    struct feed_event event = {.sequence = 0};
    uint64_t after = feed_last(world_feed(world)) - 1;
    bool held;

    assert_int_equal(feed_read(world_feed(world), "a", &after, &event, 1, &held), 1);
    return event;
}

static void the_box_of_an_edit_holds_the_cells_that_touch_it(void **state)
{
    static const struct {
        struct sample_rect rect;
        double x0, y0, x1, y1;
    } cases[] = {
        {{0, 0, 1, 1}, 0, 0, 1, 1},
        {{2, 3, 5, 2}, 1, 2, 7, 5},
        {{COLS - 1, ROWS - 1, 1, 1}, COLS - 2, ROWS - 2, COLS - 1, ROWS - 1},
    };
    struct world *world = make_world(1);
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct feed_event event;

        assert_int_equal(apply(world, edit_of(EDIT_SET, cases[i].rect, 1), &err), ERR_OK);
        event = last_event(world);
        assert_true(event.has_bounds);
        if (event.bounds.min.x != cases[i].x0 || event.bounds.min.y != cases[i].y0 ||
            event.bounds.max.x != cases[i].x1 || event.bounds.max.y != cases[i].y1)
            fail_msg("case %zu: (%g, %g) to (%g, %g)", i, event.bounds.min.x, event.bounds.min.y,
                     event.bounds.max.x, event.bounds.max.y);
    }
    world_destroy(world);
}

/* Nobody has to ask for the ground again because of a title. */
static void a_manifest_has_a_box_where_it_changes_the_ground(void **state)
{
    struct world *world = make_world(1);
    struct world_change change = change_of(WORLD_PUT_LOCALE, "a", "");
    struct err err;

    (void)state;
    strcpy(change.manifest.title, "another title");
    assert_int_equal(apply(world, change, &err), ERR_OK);
    assert_false(last_event(world).has_bounds);
    change.manifest.open_sky = !change.manifest.open_sky;
    assert_int_equal(apply(world, change, &err), ERR_OK);
    assert_true(last_event(world).has_bounds);
    assert_true(last_event(world).bounds.max.x == COLS - 1);
    world_destroy(world);
}

static void changes_together_are_made_together_or_not_at_all(void **state)
{
    struct world *world = make_world(1);
    struct world_change changes[3] = {edit_of(EDIT_ADD, corner, 1), edit_of(EDIT_ADD, corner, 1),
                                      edit_of(EDIT_ADD, (struct sample_rect){0, ROWS, 1, 1}, 1)};
    struct world_stats before, after;
    struct err err = {.code = ERR_OK};

    (void)state;
    world_readers_begin(world);
    world_stats(world, &before);
    assert_int_equal(world_apply_all(world, changes, 3, &err), ERR_UNPROCESSABLE);
    assert_int_equal(look(world).revision, 2);
    assert_true(look(world).at_0_0 == 0);
    changes[0] = edit_of(EDIT_ADD, corner, 1);
    changes[1] = edit_of(EDIT_ADD, corner, 1);
    assert_int_equal(world_apply_all(world, changes, 2, &err), ERR_OK);
    assert_int_equal(look(world).revision, 4);
    assert_true(look(world).at_0_0 == 2);
    world_stats(world, &after);
    assert_int_equal(after.publications - before.publications, 1);
    world_destroy(world);
}

/* ---- readers while edits are made ------------------------------------------------------------ */

/* Revision r has the height r in the rect of edit r - 3 and whatever was there elsewhere. */
static struct sample_rect rect_of(uint64_t seed)
{
    struct random r = {seed};
    struct sample_rect rect;

    rect.cols = 1 + random_below(&r, 20);
    rect.rows = 1 + random_below(&r, 20);
    rect.column = random_below(&r, COLS - rect.cols + 1);
    rect.row = random_below(&r, ROWS - rect.rows + 1);
    return rect;
}

struct hall {
    struct world *world;
    size_t index;
    atomic_bool *is_over;
    float (*versions)[SAMPLES];
    uint64_t looks;
    uint64_t revisions;
};

static void read_once(struct hall *hall, uint64_t *last)
{
    const struct world_snapshot *snapshot = world_pin(hall->world, hall->index);
    const struct locale *locale = snapshot_locale(snapshot, "a");
    const float *want = hall->versions[locale->revision - 2];
    struct random r = {hall->looks};

    assert_true(locale->revision >= *last);
    hall->revisions += locale->revision != *last;
    *last = locale->revision;
    for (int i = 0; i < 200; i++) {
        uint32_t c = random_below(&r, COLS), row = random_below(&r, ROWS);
        struct ground_point at;

        heightfield_height(locale->layers[0]->field, (struct vec2){c, row}, INTERPOLATION_TRIANGLE,
                           &at);
        if (at.height_m != (double)want[row * COLS + c])
            fail_msg("(%u, %u) at revision %llu: %g, not %g", c, row,
                     (unsigned long long)locale->revision, at.height_m,
                     (double)want[row * COLS + c]);
    }
    hall->looks++;
    world_unpin(hall->world, hall->index, snapshot);
    world_reader_quiet(hall->world, hall->index);
}

static void *read_all(void *argument)
{
    struct hall *hall = argument;
    uint64_t last = 0;

    while (!atomic_load(hall->is_over) || last < EDITS + 2)
        read_once(hall, &last);
    world_reader_gone(hall->world, hall->index);
    return NULL;
}

static void readers_see_each_revision_whole(void **state)
{
    static float versions[EDITS + 1][SAMPLES];
    struct world *world = make_world(READERS);
    atomic_bool is_over = false;
    struct hall halls[READERS];
    pthread_t threads[READERS];
    struct err err;

    (void)state;
    for (uint64_t i = 1; i <= EDITS; i++) {
        struct sample_rect rect = rect_of(i);

        memcpy(versions[i], versions[i - 1], sizeof versions[i]);
        for (uint32_t row = rect.row; row < rect.row + rect.rows; row++)
            for (uint32_t c = rect.column; c < rect.column + rect.cols; c++)
                versions[i][row * COLS + c] = (float)i;
    }
    world_readers_begin(world);
    for (size_t i = 0; i < READERS; i++) {
        halls[i] = (struct hall){world, i, &is_over, versions, 0, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &halls[i]), 0);
    }
    for (uint64_t i = 1; i <= EDITS; i++)
        assert_int_equal(apply(world, edit_of(EDIT_SET, rect_of(i), (float)i), &err), ERR_OK);
    atomic_store(&is_over, true);
    for (size_t i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(halls[i].revisions > 1);
    }
    world_destroy(world);
}

/* ---- deletions ------------------------------------------------------------------------------- */

static void no_revision_comes_twice_however_many_locales_were_deleted(void **state)
{
    struct world *world = make_world(1);
    struct world_change gone = change_of(WORLD_DELETE_LOCALE, "a", "");
    struct err err;

    (void)state;
    assert_int_equal(apply(world, gone, &err), ERR_OK); /* a, at revision 3 */
    for (int i = 0; i < 10000; i++) {
        struct world_change put = change_of(WORLD_PUT_LOCALE, "a", ""), drop = gone;

        snprintf(put.locale_id, sizeof put.locale_id, "b%d", i);
        strcpy(drop.locale_id, put.locale_id);
        assert_int_equal(apply(world, put, &err), ERR_OK);
        assert_int_equal(apply(world, drop, &err), ERR_OK);
    }
    assert_int_equal(apply(world, change_of(WORLD_PUT_LOCALE, "a", ""), &err), ERR_OK);
    assert_int_equal(
        world_apply(
            world,
            &(struct world_change){.kind = WORLD_DELETE_LOCALE, .locale_id = "a", .if_revision = 4},
            &err),
        ERR_OK);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_edit_sees_the_one_before),
        cmocka_unit_test(a_condition_holds_for_one_of_two),
        cmocka_unit_test(a_question_for_an_op_changes_and_counts_nothing),
        cmocka_unit_test(a_repeat_digs_once_and_is_answered_as_at_first),
        cmocka_unit_test(the_feed_tells_what_has_changed),
        cmocka_unit_test(the_box_of_an_edit_holds_the_cells_that_touch_it),
        cmocka_unit_test(a_manifest_has_a_box_where_it_changes_the_ground),
        cmocka_unit_test(changes_together_are_made_together_or_not_at_all),
        cmocka_unit_test(no_revision_comes_twice_however_many_locales_were_deleted),
        cmocka_unit_test(readers_see_each_revision_whole),
    };

    return cmocka_run_group_tests_name("world_edit", tests, NULL, NULL);
}
