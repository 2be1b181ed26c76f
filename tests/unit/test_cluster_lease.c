/*
 * Leases, fences and nodes on a real PostgreSQL: a cell has one holder, a fence that is stale
 * commits nothing, and who shows no sign of life is gone.
 */
#include "replica/cluster.h"

#include "base/check.h"
#include "support/cluster_fixture.h"
#include "support/pause.h"
#include "support/tcp_proxy.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct err err;
static char holder[CLUSTER_ID_MAX + 1];

static struct cluster *node_with(const char *conninfo, const char *node, uint32_t lease_ms)
{
    struct cluster_options options = {.conninfo = conninfo ? conninfo : test_postgres.conninfo,
                                      .node = node,
                                      .url = "http://127.0.0.1:7420",
                                      .locales = "a*",
                                      .patch_slots = 3,
                                      .lease_ms = lease_ms};

    return cluster_must_with(&options);
}

static struct cluster_area area(const char *locale, int64_t x0, int64_t y0, int64_t x1, int64_t y1)
{
    struct cluster_area area = {.first_x = x0, .first_y = y0, .last_x = x1, .last_y = y1};

    snprintf(area.locale, sizeof area.locale, "%s", locale);
    return area;
}

static uint64_t must_lease(struct cluster *cluster, struct cluster_area area)
{
    uint64_t fence = 0;

    cluster_ok(cluster_lease(cluster, &area, &fence, holder, &err), &err);
    assert_true(fence > 0);
    return fence;
}

static void must_refuse(struct cluster *cluster, struct cluster_area area, const char *who)
{
    uint64_t fence = 0;

    assert_int_equal(cluster_lease(cluster, &area, &fence, holder, &err), ERR_CONFLICT);
    assert_string_equal(holder, who);
    assert_non_null(strstr(err.msg, who));
    assert_non_null(strstr(err.msg, " ms"));
}

static enum err_code append_fenced(struct cluster *cluster, uint64_t revision, uint64_t fence,
                                   size_t *at)
{
    uint8_t data[2][CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entries[2];
    char op_id[32];
    bool in_doubt;

    for (unsigned i = 0; i < 2; i++) {
        snprintf(op_id, sizeof op_id, "f%u-%u", (unsigned)fence, (unsigned)revision + i);
        entries[i] = cluster_test_entry("a", revision + i, op_id, 10, data[i]);
    }
    entries[1].fence = fence;
    return cluster_append(cluster, entries, 2, at, &in_doubt, &err);
}

/* ---- holding --------------------------------------------------------------------------------- */

static void a_cell_has_one_holder(void **state)
{
    struct cluster *one = node_with(NULL, "one", 60000), *two = node_with(NULL, "two", 60000);
    struct cluster_stats stats;
    uint64_t first, second, third;

    (void)state;
    first = must_lease(one, area("a", 0, 0, 9, 9));
    must_refuse(two, area("a", 9, 9, 20, 20), "one");
    must_refuse(two, area("a", -5, 3, 0, 3), "one");
    must_refuse(one, area("a", 5, 5, 5, 5), "one"); /* a lease is not entered twice */
    second = must_lease(two, area("a", 10, 0, 19, 9));
    third = must_lease(two, area("b", 0, 0, 9, 9)); /* another ground */
    assert_true(first < second && second < third);
    cluster_ok(cluster_holder(two, &(struct cluster_area){"a", 9, 9, 30, 30}, holder, &err), &err);
    assert_string_equal(holder, "one");
    cluster_ok(cluster_holder(one, &(struct cluster_area){"a", 0, 0, 10, 9}, holder, &err), &err);
    assert_string_equal(holder, "two"); /* another's, not one's own */
    cluster_ok(cluster_holder(one, &(struct cluster_area){"a", 20, 0, 30, 9}, holder, &err), &err);
    assert_string_equal(holder, "");
    /* nothing of a refused one is left behind */
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.lease"), 300);
    cluster_unlease(one, first);
    assert_true(must_lease(two, area("a", 0, 0, 9, 9)) > third);
    assert_true(cluster_is_lost(one, first));
    assert_false(cluster_is_lost(two, second));
    cluster_stats(two, &stats);
    assert_int_equal(stats.leases_held, 3);
    assert_int_equal(stats.leases_taken, 3);
    assert_int_equal(stats.leases_refused, 2);
    /* who leaves lets go */
    cluster_destroy(two);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.lease"), 0);
    cluster_destroy(one);
}

static void areas_have_a_limit(void **state)
{
    struct cluster *one = node_with(NULL, "one", 60000);
    struct cluster_area areas[] = {
        area("a", 0, 0, 64, 63),
        area("a", INT64_MIN, 0, INT64_MAX, 0),
        area("a", INT64_MIN, INT64_MIN, INT64_MAX, INT64_MAX),
        area("a", -3000000000, 0, 3000000000, 0),
    };
    uint64_t fence;

    (void)state;
    for (size_t i = 0; i < sizeof areas / sizeof *areas; i++) {
        assert_int_equal(cluster_lease(one, &areas[i], &fence, holder, &err), ERR_TOO_LARGE);
        assert_non_null(strstr(err.msg, "4096"));
    }
    must_lease(one, area("a", 0, 0, 63, 63));
    must_lease(one, area("a", INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, INT64_MAX));
    cluster_destroy(one);
}

/* A row that is in the way, and that no lease of ours can have left: it is held all the same. */
static void a_cell_without_a_fence_is_held(void **state)
{
    struct cluster *one = node_with(NULL, "one", 60000);
    struct cluster_area ground = area("a", 0, 0, 1, 1);
    uint64_t fence;

    (void)state;
    cluster_sql("INSERT INTO kota.lease VALUES ('a', 1, 1, 'by hand', 0, 1, "
                "clock_timestamp() + interval '1 hour')");
    must_refuse(one, ground, "by hand");
    cluster_sql("UPDATE kota.lease SET holder = 'one'");
    assert_int_equal(cluster_lease(one, &ground, &fence, holder, &err), ERR_CONFLICT);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.lease"), 1);
    cluster_destroy(one);
}

/* ---- fences ---------------------------------------------------------------------------------- */

static void an_append_is_bound_to_its_fence(void **state)
{
    struct cluster *one = node_with(NULL, "one", 60000), *two = node_with(NULL, "two", 60000);
    struct cluster_stats stats;
    uint64_t fence, other;
    size_t at = 9;

    (void)state;
    fence = must_lease(one, area("a", 0, 0, 2, 2));
    other = must_lease(two, area("a", 3, 3, 4, 4));
    cluster_ok(append_fenced(one, 1, fence, &at), &err);
    /* another's, one that never was, one that was let go, one with a cell that was taken away */
    assert_int_equal(append_fenced(one, 3, other, &at), ERR_PRECONDITION_FAILED);
    assert_int_equal(at, 1);
    assert_int_equal(append_fenced(one, 3, 999, &at), ERR_PRECONDITION_FAILED);
    assert_non_null(strstr(err.msg, "fence 999 is stale"));
    cluster_unlease(two, other);
    assert_int_equal(append_fenced(two, 3, other, &at), ERR_PRECONDITION_FAILED);
    cluster_sql("UPDATE kota.lease SET fence = 777, holder = 'two' WHERE x = 1 AND y = 1");
    assert_int_equal(append_fenced(one, 3, fence, &at), ERR_PRECONDITION_FAILED);
    assert_int_equal(cluster_must_head(one, "a"), 2);
    cluster_stats(one, &stats);
    assert_int_equal(stats.fenced, 3);
    cluster_destroy(one);
    cluster_destroy(two);
}

/* Turns a loop until an SQL condition holds. */
static void turn_until(struct cluster *cluster, const char *condition)
{
    for (int i = 0; i < 6000; i++) {
        cluster_wait(cluster, 10);
        if (cluster_sql("SELECT (%s)::int", condition) == 1)
            return;
    }
    fail_msg("never: %s", condition);
}

static void a_lease_is_renewed_while_the_loop_turns(void **state)
{
    struct cluster *one = node_with(NULL, "one", 3000), *two = node_with(NULL, "two", 3000);
    uint64_t fence;
    size_t at;

    (void)state;
    fence = must_lease(one, area("a", 0, 0, 9, 9));
    cluster_sql("CREATE TABLE kota.was AS SELECT min(expires) AS first FROM kota.lease");
    turn_until(one, "(SELECT min(expires) > (SELECT first FROM kota.was) + interval '1 s' "
                    "FROM kota.lease)");
    assert_false(cluster_is_lost(one, fence));
    must_refuse(two, area("a", 0, 0, 0, 0), "one");
    cluster_ok(append_fenced(one, 1, fence, &at), &err);
    /* and lost when it does not */
    pause_ms(3100);
    assert_true(cluster_is_lost(one, fence));
    assert_int_equal(append_fenced(one, 3, fence, &at), ERR_PRECONDITION_FAILED);
    must_lease(two, area("a", 0, 0, 0, 0));
    cluster_destroy(one);
    cluster_destroy(two);
}

static void who_cannot_reach_the_engine_knows_that_it_has_lost(void **state)
{
    struct tcp_proxy *proxy = tcp_proxy_start(test_postgres.port);
    struct cluster_stats stats;
    struct cluster *one, *two;
    char conninfo[128];
    uint64_t fence;
    size_t at;

    (void)state;
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%u user=kota dbname=postgres",
             tcp_proxy_port(proxy));
    one = node_with(conninfo, "one", 1000);
    two = node_with(NULL, "two", 60000);
    fence = must_lease(one, area("a", 0, 0, 9, 9));
    tcp_proxy_set(proxy, TCP_PROXY_HOLD);
    while (!cluster_is_lost(one, fence))
        cluster_wait(one, 50);
    turn_until(one, "(SELECT max(expires) < clock_timestamp() FROM kota.lease)");
    must_lease(two, area("a", 3, 3, 3, 3));
    tcp_proxy_set(proxy, TCP_PROXY_PASS);
    /* nothing brings it back */
    turn_until(one, "EXISTS (SELECT FROM kota.node WHERE id = 'one' "
                    "AND expires > clock_timestamp())");
    assert_true(cluster_is_lost(one, fence));
    assert_int_equal(append_fenced(one, 1, fence, &at), ERR_PRECONDITION_FAILED);
    cluster_stats(one, &stats);
    assert_int_equal(stats.leases_lost, 1);
    assert_int_equal(stats.leases_held, 0);
    cluster_unlease(one, fence);
    cluster_destroy(one);
    cluster_destroy(two);
    tcp_proxy_stop(proxy);
}

static void *pass_in_a_while(void *proxy)
{
    pause_ms(700);
    tcp_proxy_set(proxy, TCP_PROXY_PASS);
    return NULL;
}

/* Waits until the node takes its lease for lost: the engine must still hold it for the node. */
static void expect_lost_before_its_end(struct cluster *node, uint64_t fence)
{
    while (!cluster_is_lost(node, fence))
        pause_ms(5);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.lease WHERE holder = 'one' "
                                 "AND expires > clock_timestamp()"),
                     1);
}

/* A renewal in the transaction of a hold would go with it; the node must not believe in it. */
static void no_lease_is_renewed_within_a_hold(void **state)
{
    static const char ids[1][CLUSTER_ID_MAX + 1] = {"a"};
    struct cluster *one = node_with(NULL, "one", 3000); /* a sign of life each second */
    uint64_t fence;

    (void)state;
    fence = must_lease(one, area("a", 0, 0, 0, 0));
    cluster_ok(cluster_hold(one, ids, 1, &err), &err);
    for (int i = 0; i < 130; i++)
        cluster_wait(one, 10);
    cluster_release(one);
    while (cluster_sql("SELECT count(*) FROM kota.lease WHERE expires > clock_timestamp()") > 0)
        pause_ms(5);
    assert_true(cluster_is_lost(one, fence));
    cluster_destroy(one);
}

/*
 * Words that are long on their way: the node's own clock counts from before it asked, so its lease
 * is over for itself before it is for others, by as long as the question was on its way.
 */
static void a_lease_ends_here_before_it_ends_there(void **state)
{
    struct tcp_proxy *proxy = tcp_proxy_start(test_postgres.port);
    struct cluster *one;
    char conninfo[128];
    pthread_t thread;
    uint64_t fence;

    (void)state;
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%u user=kota dbname=postgres",
             tcp_proxy_port(proxy));
    one = node_with(conninfo, "one", 3000);
    tcp_proxy_set(proxy, TCP_PROXY_HOLD);
    CHECK(pthread_create(&thread, NULL, pass_in_a_while, proxy) == 0);
    fence = must_lease(one, area("a", 0, 0, 0, 0));
    pthread_join(thread, NULL);
    expect_lost_before_its_end(one, fence);
    cluster_destroy(one);

    /* the same of a sign of life: one is sent each 1500 ms, the second of which is on its way long
     */
    one = node_with(conninfo, "one", 4500);
    turn_until(one, "NOT EXISTS (SELECT FROM kota.lease)");
    fence = must_lease(one, area("a", 0, 0, 0, 0));
    cluster_sql("CREATE TABLE kota.was AS SELECT expires AS first FROM kota.lease");
    tcp_proxy_set(proxy, TCP_PROXY_HOLD);
    for (int i = 0; i < 165; i++)
        cluster_wait(one, 10);
    pause_ms(500);
    tcp_proxy_set(proxy, TCP_PROXY_PASS);
    turn_until(one, "(SELECT expires > (SELECT first FROM kota.was) FROM kota.lease)");
    cluster_wait(one, 20);
    expect_lost_before_its_end(one, fence);
    cluster_destroy(one);
    tcp_proxy_stop(proxy);
}

/* ---- a process that is stopped --------------------------------------------------------------- */

enum { STOPPED_LEASE_MS = 500 };

/* A node of its own: leases, says so, waits until it is asked, appends, says what came of it. */
static void be_stopped(int ask, int answer)
{
    struct cluster_options options = {
        .conninfo = test_postgres.conninfo, .node = "stopped", .lease_ms = STOPPED_LEASE_MS};
    struct cluster *cluster;
    struct cluster_area ground = area("a", 0, 0, 9, 9);
    uint64_t fence = 0;
    enum err_code code;
    char byte;
    size_t at;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cluster = cluster_create(&options, &err);
    code = cluster ? cluster_lease(cluster, &ground, &fence, holder, &err) : ERR_INTERNAL;
    if (write(answer, &code, sizeof code) != sizeof code || read(ask, &byte, 1) != 1)
        _exit(1);
    code = append_fenced(cluster, 1, fence, &at);
    if (write(answer, &code, sizeof code) != sizeof code)
        _exit(1);
    _exit(0);
}

static void stopped_beyond_its_lease(bool is_taken)
{
    struct cluster *two = node_with(NULL, "two", 60000);
    int ask[2], answer[2];
    enum err_code code;
    uint64_t fence = 0;
    pid_t child;
    size_t at;

    CHECK(pipe(ask) == 0 && pipe(answer) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0)
        be_stopped(ask[0], answer[1]);
    assert_int_equal(read(answer[0], &code, sizeof code), sizeof code);
    assert_int_equal(code, ERR_OK);
    assert_int_equal(kill(child, SIGSTOP), 0);
    CHECK(write(ask[1], "a", 1) == 1);
    pause_ms(STOPPED_LEASE_MS + 300);
    if (is_taken) {
        fence = must_lease(two, area("a", 5, 5, 6, 6));
        cluster_ok(append_fenced(two, 1, fence, &at), &err);
    }
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(read(answer[0], &code, sizeof code), sizeof code);
    /* whichever is looked at first: the revision that is gone, or the fence */
    assert_true(code == ERR_PRECONDITION_FAILED || (is_taken && code == ERR_CONFLICT));
    waitpid(child, NULL, 0);
    assert_int_equal(cluster_must_head(two, "a"), is_taken ? 2 : 0);
    for (int i = 0; i < 2; i++) {
        close(ask[i]);
        close(answer[i]);
    }
    cluster_destroy(two);
}

static void a_node_that_was_stopped_commits_nothing(void **state)
{
    (void)state;
    stopped_beyond_its_lease(true);
}

static void even_if_nobody_has_taken_its_cells(void **state)
{
    (void)state;
    stopped_beyond_its_lease(false);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static size_t count_nodes(struct cluster *cluster, const char *id, struct cluster_node *out)
{
    struct cluster_node *nodes;
    size_t count, found = 0;

    cluster_ok(cluster_nodes(cluster, &nodes, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        if (strcmp(nodes[i].id, id) == 0) {
            *out = nodes[i];
            found++;
        }
    free(nodes);
    return found;
}

static void turn_until_nodes(struct cluster *one, struct cluster *two, const char *id, size_t count)
{
    struct cluster_node node;

    for (int i = 0; i < 6000 && count_nodes(one, id, &node) != count; i++) {
        cluster_wait(one, 10);
        if (two)
            cluster_wait(two, 0);
    }
    assert_int_equal(count_nodes(one, id, &node), count);
}

static void nodes_see_each_other_while_they_live(void **state)
{
    struct cluster *one = node_with(NULL, "one", 600), *two;
    struct cluster_node node;

    (void)state;
    two = node_with(NULL, "two", 600);
    turn_until_nodes(one, two, "one", 1);
    assert_int_equal(count_nodes(one, "one", &node), 1);
    assert_int_equal(node.patch_slots, 3);
    turn_until_nodes(one, two, "two", 1);
    cluster_set_patches(two, 2);
    cluster_set_patch_slots(two, 7);
    for (int i = 0; i < 6000 && (count_nodes(one, "two", &node) == 0 || node.patches != 2); i++) {
        cluster_wait(one, 10);
        cluster_wait(two, 0);
    }
    assert_string_equal(node.url, "http://127.0.0.1:7420");
    assert_string_equal(node.locales, "a*");
    assert_int_equal(node.patch_slots, 7);
    assert_int_equal(node.patches, 2);
    /* one that leaves is gone at once, one that is silent after its time */
    cluster_destroy(two);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.node WHERE id = 'two'"), 0);
    turn_until_nodes(one, NULL, "two", 0);
    two = node_with(NULL, "silent", 600);
    turn_until_nodes(one, two, "silent", 1);
    turn_until_nodes(one, NULL, "silent", 0);
    cluster_destroy(one);
    cluster_destroy(two);
}

/* After a crash the next process of that name starts with nothing held. */
static void what_a_dead_process_held_is_let_go(void **state)
{
    struct cluster *dead = node_with(NULL, "one", 3600000), *one;
    size_t at;
    uint64_t fence = must_lease(dead, area("a", 0, 0, 3, 3));

    (void)state;
    one = node_with(NULL, "one", 3600000);
    turn_until(one, "NOT EXISTS (SELECT FROM kota.lease)");
    must_lease(one, area("a", 0, 0, 3, 3));
    assert_int_equal(append_fenced(dead, 1, fence, &at), ERR_PRECONDITION_FAILED);
    cluster_destroy(one);
    cluster_destroy(dead);
}

/* An address goes into a header of an answer: what is no word of it is not there. */
static void an_address_that_cannot_be_is_none(void **state)
{
    static const char *const wrongs[] = {
        "http://a\\r\\nSet-Cookie: b=c",
        "http://a/\\n",
        "\\t",
        "http://a b",
        "http://\\x7f",
        "http://\\u00e4",
    };
    struct cluster *one = node_with(NULL, "one", 600);
    struct cluster_node node;

    (void)state;
    for (unsigned i = 0; i < sizeof wrongs / sizeof *wrongs; i++)
        cluster_sql("INSERT INTO kota.node VALUES ('wrong%u', E'%s', '', 1, 0, 'x', "
                    "clock_timestamp() + interval '1 hour')",
                    i, wrongs[i]);
    cluster_sql("INSERT INTO kota.node VALUES (E'bad\\nid', 'http://a', '', 1, 0, 'x', "
                "clock_timestamp() + interval '1 hour'), ('bad list', 'http://a', E'a\\r*', 1, 0, "
                "'x', clock_timestamp() + interval '1 hour'), ('right', "
                "'http://[::1]:7420/a?b=c&d=%%20', '', 1, 0, 'x', "
                "clock_timestamp() + interval '1 hour')");
    turn_until_nodes(one, NULL, "right", 1);
    assert_int_equal(count_nodes(one, "right", &node), 1);
    assert_string_equal(node.url, "http://[::1]:7420/a?b=c&d=%20");
    for (unsigned i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        char id[16];

        snprintf(id, sizeof id, "wrong%u", i);
        assert_int_equal(count_nodes(one, id, &node), 1);
        assert_string_equal(node.url, "");
    }
    assert_int_equal(count_nodes(one, "bad\nid", &node), 0);
    assert_int_equal(count_nodes(one, "bad list", &node), 0);
    cluster_destroy(one);
}

#define TEST(name) cmocka_unit_test_setup(name, cluster_test_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_cell_has_one_holder),
        TEST(no_lease_is_renewed_within_a_hold),
        TEST(areas_have_a_limit),
        TEST(a_cell_without_a_fence_is_held),
        TEST(an_append_is_bound_to_its_fence),
        TEST(a_lease_is_renewed_while_the_loop_turns),
        TEST(who_cannot_reach_the_engine_knows_that_it_has_lost),
        TEST(a_lease_ends_here_before_it_ends_there),
        TEST(a_node_that_was_stopped_commits_nothing),
        TEST(even_if_nobody_has_taken_its_cells),
        TEST(nodes_see_each_other_while_they_live),
        TEST(what_a_dead_process_held_is_let_go),
        TEST(an_address_that_cannot_be_is_none),
    };
    const char *why;

    if (!postgres_is_there(&why)) {
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    return cmocka_run_group_tests(tests, cluster_tests_begin, cluster_tests_end);
}
