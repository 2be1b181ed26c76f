/*
 * Worlds that share a log: two or three of them in this process, each with a store of its own, at
 * an engine in memory (fake_cluster.h). Whatever happens, they end with the same bytes at the same
 * revisions, and so do their stores after a restart.
 */
#include "tests/support/follow/follow_fixture.h"
#include "tests/support/pause.h"
#include "tests/support/random.h"
#include "world/world_data.h"

#include <stdio.h>
#include <stdlib.h>

static void every_kind_of_change_is_seen_elsewhere(void **state)
{
    struct nodes *all = *state;
    struct world_change change;

    start_two(all);
    put_mesh(&all->a, "land", "roof", 9, (struct mesh_space){.frame = MESH_CARTESIAN});
    put_locale(&all->a, "planet");
    put_mesh(&all->a, "planet", "crust", 50,
             (struct mesh_space){.frame = MESH_SPHERICAL, .is_outward = false});
    edit(&all->a, "land", 100, 100, 44);
    change = change_of(WORLD_EDIT, "land", "ground");
    change.edit.kind = EDIT_BRUSH;
    change.edit.brush = (struct brush){BRUSH_CRATER, {100, 100}, 20, 3, 0};
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
    assert_int_equal(w.code, ERR_KEY_REUSED);
    expect_all_same(&all->a, &all->b);
    w = submit(&all->b, with_key(edit_of("land", 1, 1, 5), "key-1", 7));
    assert_string_equal(w.answer, "made as 3");
}

/* The first append takes a while: what is submitted meanwhile is one batch. */
static void be_slow(struct cluster *node)
{
    (void)node;
    fake.before_append = NULL;
    pause_ms(200);
}

struct asking {
    struct node *node;
    struct waited *got;
    int after_ms;
};

static void *ask(void *argument)
{
    struct asking *asking = argument;

    pause_ms(asking->after_ms);
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
    assert_non_null(strstr(w.message, "was made: it is entry 3 of the log of land"));
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
        pause_ms(1);
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
    put_mesh(&all->a, "land", "roof", 9, (struct mesh_space){.frame = MESH_CARTESIAN});
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
    for (int ms = 0; ms < WAIT_MS && fake_first("land") <= 10; ms++)
        pause_ms(1);
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
    fake_fall_back("land", 3);
    fake_trim("young", 1, 0);
    fake.locale_count--;
    fake_set_away(false);
    catch_up(&all->a);
    assert_int_equal(revision_of(&all->a, "land"), 3);
    for (int ms = 0; ms < WAIT_MS && revision_of(&all->a, "young") != 0; ms++)
        pause_ms(1);
    assert_int_equal(revision_of(&all->a, "young"), 0);
    world_shared(all->a.world, &shared);
    assert_int_equal(shared.divergences, 2);
    edit(&all->a, "land", 20, 20, 1);
    edit(&all->a, "land", 20, 20, 2);
    start(&all->b); /* the same revision number, another entry */
    expect_all_same(&all->a, &all->b);
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
        FACT(a_store_of_another_history_is_refused),
        FACT(a_damaged_locale_is_taken_from_the_log),
        FACT(a_stale_fence_refuses_its_change_alone),
        cmocka_unit_test(patterns_are_lists_of_globs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
