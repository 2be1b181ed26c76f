/*
 * Worlds that share a log, where the log, the engine or a store is not what they thought: nothing
 * is refused, lost, appended or leased by what one of them only believes.
 */
#include "tests/support/fault_vfs.h"
#include "tests/support/follow/follow_fixture.h"
#include "tests/support/pause.h"
#include "tests/support/random.h"
#include "world/follow/lease.h"

static void wait_trimmed(const char *locale, uint64_t first)
{
    for (int ms = 0; ms < WAIT_MS && fake_first(locale) < first; ms++)
        pause_ms(1);
    assert_true(fake_first(locale) >= first);
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
        pause_ms(1);
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
    pthread_mutex_lock(&fake.mutex);
    fake.connects++;
    pthread_mutex_unlock(&fake.mutex);
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
    fake_fall_back("land", 2);
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
    fake_fall_back("land", 2);
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
        pause_ms(1);
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
    assert_int_equal(submit(&all->b, edit_of("nowhere", 1, 1, 1)).code, ERR_LOCALE_UNKNOWN);
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
    assert_int_equal(fake.leases, 1);
    world_unlease(all->b.world, lease.fence);
    stop(&all->b);
    assert_int_equal(fake.leases, 0);
    edit(&all->a, "land", 9, 9, 9);
    memset((void *)(uintptr_t)fake_entry_at("land", 3)->entry.data, 0xff, 1);
    start(&all->b);
    assert_int_equal(world_lease(all->b.world, "land", low, high, &lease, &is_own, &err),
                     ERR_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "not here as the shared log has it"));
    assert_null(lease.locale);
    assert_int_equal(fake.leases, 0); /* what was taken before the look is let go */
}

static void whose_ground_is_held_says_whether_by_this_node(void **state)
{
    struct nodes *all = *state;
    struct vec2 low = {0, 0}, high = {4, 4};

    start_two(all);
    for (int own = 0; own < 2; own++) {
        struct world_lease lease;
        struct err err = {.code = ERR_OK};
        bool is_own;

        pthread_mutex_lock(&fake.mutex);
        fake.lease_holder = own ? "b" : "a";
        pthread_mutex_unlock(&fake.mutex);
        assert_int_equal(world_lease(all->b.world, "land", low, high, &lease, &is_own, &err),
                         ERR_CONFLICT);
        assert_int_equal(is_own, own);
        assert_null(lease.locale);
    }
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FACT(an_adopted_locale_may_be_left_behind),
        FACT(who_lost_an_adoption_is_told_what_is_where),
        FACT(a_log_that_has_lost_everything_empties_nobody),
        FACT(an_append_stands_on_what_the_log_has),
        FACT(a_locale_that_is_taken_anew_is_on_its_way),
        FACT(an_engine_that_hangs_is_stale),
        FACT(a_store_that_fails_after_the_append_leaves_it_open),
        FACT(nothing_is_refused_by_old_ground),
        FACT(ground_that_cannot_be_followed_is_not_leased),
        FACT(whose_ground_is_held_says_whether_by_this_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
