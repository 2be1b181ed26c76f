/*
 * The connection to the shared log is cut at every byte of an append, and the engine crashes, is
 * frozen, and stays away: what was acknowledged is there once, and what was not is there at most
 * once.
 *
 * KOTA_LONG=1: ten times as many cuts and crashes; make test: a quarter.
 */
#include "replica/cluster_data.h"

#include "base/check.h"
#include "support/cluster_fixture.h"
#include "support/long_form.h"
#include "support/pause.h"
#include "support/random.h"
#include "support/tcp_proxy.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <cmocka.h>

static struct err err;

static unsigned times(unsigned count)
{
    return getenv("KOTA_LONG") ? 10 * count : long_form(count, (count + 3) / 4);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- cuts ------------------------------------------------------------------------------------ */

struct cut_case {
    struct tcp_proxy *proxy;
    struct cluster *cluster;
    uint64_t revision;
    unsigned number, in_doubt, refused;
};

static void begin(struct cut_case *c, uint32_t wait_ms)
{
    char conninfo[128];
    struct cluster_options options = {
        .conninfo = conninfo, .node = "cut", .wait_ms = wait_ms, .lease_ms = 3600000};

    memset(c, 0, sizeof *c);
    c->proxy = tcp_proxy_start(test_postgres.port);
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%u user=kota dbname=postgres",
             tcp_proxy_port(c->proxy));
    c->cluster = cluster_must_with(&options);
}

static void end(struct cut_case *c)
{
    cluster_destroy(c->cluster);
    tcp_proxy_stop(c->proxy);
}

/* An append that must come to be known: acknowledged, and there once. */
static void append_through(struct cut_case *c, size_t bytes)
{
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry;
    char op_id[32];
    bool in_doubt;
    size_t at;

    snprintf(op_id, sizeof op_id, "cut%u", c->number++);
    entry = cluster_test_entry("a", ++c->revision, op_id, bytes, data);
    cluster_ok(cluster_append(c->cluster, &entry, 1, &at, &in_doubt, &err), &err);
    assert_false(in_doubt);
}

static void check_log(struct cut_case *c)
{
    struct cluster *reader = cluster_must(NULL, "reader");
    char(*op_ids)[CLUSTER_OP_ID_MAX + 1];
    char should[32];

    assert_int_equal(cluster_must_read(reader, "a", 0, &op_ids), c->revision);
    for (uint64_t i = 0; i < c->revision; i++) {
        snprintf(should, sizeof should, "cut%u", (unsigned)i);
        assert_string_equal(op_ids[i], should);
    }
    free(op_ids);
    cluster_destroy(reader);
}

/* How many bytes an append is, each way. */
static void measure(struct cut_case *c, size_t bytes, size_t length[2])
{
    size_t before[2] = {tcp_proxy_passed(c->proxy, 0), tcp_proxy_passed(c->proxy, 1)};

    append_through(c, bytes);
    for (int way = 0; way < 2; way++)
        length[way] = tcp_proxy_passed(c->proxy, (enum tcp_proxy_way)way) - before[way];
}

static void an_append_cut_anywhere_is_there_once(void **state)
{
    struct cut_case c;
    struct random random = {2024};
    struct cluster_stats stats;
    unsigned wanted = times(100);
    size_t length[2];

    (void)state;
    begin(&c, 60000);
    cluster_wait(c.cluster, 50); /* the first sign of life is over */
    append_through(&c, 100);
    for (int way = 0; way < 2; way++) {
        for (unsigned i = 0; i < wanted; i++) {
            unsigned before;

            measure(&c, 100, length);
            before = tcp_proxy_cuts(c.proxy);
            /* each byte of the answer, which is short; places in the question */
            tcp_proxy_cut(c.proxy, (enum tcp_proxy_way)way,
                          way == TCP_PROXY_TO_CLIENT
                              ? i % length[way]
                              : random_below(&random, (uint32_t)length[way]));
            append_through(&c, 100);
            assert_int_equal(tcp_proxy_cuts(c.proxy), before + 1);
            while (cluster_is_away(c.cluster))
                cluster_wait(c.cluster, 10);
        }
    }
    cluster_stats(c.cluster, &stats);
    printf("# seed 2024: %u cuts, %llu in doubt, %llu sent again, %llu connections\n",
           tcp_proxy_cuts(c.proxy), (unsigned long long)stats.in_doubt,
           (unsigned long long)stats.retried, (unsigned long long)stats.connects);
    assert_int_equal(tcp_proxy_cuts(c.proxy), 2 * wanted);
    assert_int_equal(stats.in_doubt, 2 * wanted);
    assert_int_equal(stats.losses, 2 * wanted);
    check_log(&c);
    end(&c);
}

/* While the connection is made again, too: several cuts during one append. */
static void cuts_while_it_connects_again(void **state)
{
    struct cut_case c;
    struct random random = {7};
    unsigned cuts = 0;

    (void)state;
    begin(&c, 60000);
    for (unsigned i = 0; i < times(20); i++) {
        unsigned before = tcp_proxy_cuts(c.proxy);

        /* the answers to an append and to a new session are about 4,000 bytes */
        tcp_proxy_cut(c.proxy, TCP_PROXY_TO_CLIENT, 0);
        tcp_proxy_cut(c.proxy, TCP_PROXY_TO_SERVER, 400 + random_below(&random, 8000));
        append_through(&c, 3000);
        cuts += tcp_proxy_cuts(c.proxy) - before;
        while (cluster_is_away(c.cluster))
            cluster_wait(c.cluster, 10);
    }
    printf("# seed 7: %u cuts\n", cuts);
    check_log(&c);
    end(&c);
}

static void sessions_ended_by_the_engine(void **state)
{
    struct cut_case c;
    struct cluster_stats stats;

    (void)state;
    begin(&c, 60000);
    for (unsigned i = 0; i < times(20); i++) {
        append_through(&c, 100);
        cluster_sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                    "WHERE application_name = 'kota cut'");
        append_through(&c, 100);
    }
    cluster_stats(c.cluster, &stats);
    assert_int_equal(stats.connects, 1 + times(20));
    check_log(&c);
    end(&c);
}

/* ---- warnings and errors at the commit ------------------------------------------------------- */

/* An error that comes only at the synchronisation, when all statements have succeeded. */
static void a_commit_that_fails_is_no_append(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry = cluster_test_entry("a", 1, "a1", 10, data);
    char ids[1][CLUSTER_ID_MAX + 1] = {"a"};
    bool in_doubt;
    size_t at;

    (void)state;
    cluster_sql("CREATE FUNCTION kota.refuse() RETURNS trigger LANGUAGE plpgsql AS "
                "$$BEGIN RAISE EXCEPTION 'not this one' USING ERRCODE = '53100'; END$$;"
                "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON kota.edit DEFERRABLE INITIALLY "
                "DEFERRED FOR EACH ROW EXECUTE FUNCTION kota.refuse()");
    for (int held = 0; held < 2; held++) {
        if (held)
            cluster_ok(cluster_hold(one, (const char(*)[CLUSTER_ID_MAX + 1]) ids, 1, &err), &err);
        assert_int_equal(cluster_append(one, &entry, 1, &at, &in_doubt, &err), ERR_UNAVAILABLE);
        assert_non_null(strstr(err.log_only, "not this one"));
        assert_false(in_doubt);
        assert_false(cluster_is_away(one));
        assert_int_equal(cluster_must_head(one, "a"), 0);
    }
    cluster_sql("DROP TRIGGER refuse ON kota.edit");
    cluster_must_append(one, "a", 1, "a1");
    cluster_destroy(one);
}

/* A commit with a warning may have missed the standby: it is asked again, and that is a commit,
 * too. */
static void a_commit_with_a_warning_is_in_doubt(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    struct cluster_stats stats;

    (void)state;
    cluster_sql("CREATE FUNCTION kota.warn() RETURNS trigger LANGUAGE plpgsql AS "
                "$$BEGIN RAISE WARNING 'canceling wait'; RETURN NULL; END$$;"
                "CREATE TRIGGER warn AFTER INSERT ON kota.edit FOR EACH ROW "
                "EXECUTE FUNCTION kota.warn()");
    cluster_must_append(one, "a", 1, "a1");
    cluster_stats(one, &stats);
    assert_int_equal(stats.in_doubt, 1);
    assert_int_equal(stats.retried, 1);
    assert_int_equal(cluster_must_read(one, "a", 0, NULL), 1);
    cluster_destroy(one);
}

/* The entry was committed, and trimmed before it was asked for again. */
static void in_doubt_and_trimmed_meanwhile(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");

    (void)state;
    cluster_must_append(one, "a", 1, "a1");
    cluster_sql("CREATE FUNCTION kota.warn() RETURNS trigger LANGUAGE plpgsql AS "
                "$$BEGIN RAISE WARNING 'canceling wait'; "
                "INSERT INTO kota.past VALUES (NEW.op_id, NEW.locale, NEW.rev); "
                "DELETE FROM kota.edit WHERE op_id = NEW.op_id; RETURN NULL; END$$;"
                "CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON kota.edit DEFERRABLE INITIALLY "
                "DEFERRED FOR EACH ROW EXECUTE FUNCTION kota.warn()");
    cluster_must_append(one, "a", 2, "a2");
    assert_int_equal(cluster_must_head(one, "a"), 2);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.edit"), 1);
    cluster_destroy(one);
}

/* ---- the engine ------------------------------------------------------------------------------ */

struct appender {
    struct cut_case c;
    atomic_bool is_over;
};

static void *append_often(void *context)
{
    struct appender *appender = context;
    struct cut_case *c = &appender->c;
    struct err error = {.code = ERR_OK};

    while (!atomic_load(&appender->is_over)) {
        uint8_t data[CLUSTER_TEST_BYTES_MAX];
        struct cluster_entry entry;
        char op_id[32];
        bool in_doubt;
        size_t at;

        snprintf(op_id, sizeof op_id, "cut%u", c->number);
        entry = cluster_test_entry("a", c->revision + 1, op_id, 100, data);
        if (cluster_append(c->cluster, &entry, 1, &at, &in_doubt, &error) == ERR_OK) {
            c->number++;
            c->revision++;
        } else {
            CHECK(error.code == ERR_UNAVAILABLE && !in_doubt);
            cluster_wait(c->cluster, 10);
        }
    }
    return NULL;
}

/* The server is started by this thread: it ends with the one that did. */
static void crashes_of_the_engine_lose_nothing(void **state)
{
    struct appender appender;
    struct cluster_stats stats;
    pthread_t thread;

    (void)state;
    begin(&appender.c, 60000);
    atomic_init(&appender.is_over, false);
    CHECK(pthread_create(&thread, NULL, append_often, &appender) == 0);
    for (unsigned i = 0; i < times(5); i++) {
        do {
            pause_ms(100);
            cluster_stats(appender.c.cluster, &stats);
        } while (stats.is_away);
        postgres_crash(&test_postgres);
        postgres_run(&test_postgres);
    }
    do {
        pause_ms(100);
        cluster_stats(appender.c.cluster, &stats);
    } while (stats.is_away);
    atomic_store(&appender.is_over, true);
    pthread_join(thread, NULL);
    printf("# %u crashes, %llu appends, %llu in doubt\n", times(5),
           (unsigned long long)appender.c.revision, (unsigned long long)stats.in_doubt);
    assert_int_equal(stats.losses, times(5));
    check_log(&appender.c);
    end(&appender.c);
}

static void away_is_told_at_once_and_ends(void **state)
{
    struct cut_case c;
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry = cluster_test_entry("a", 1, "a1", 0, data);
    struct cluster_head *heads;
    struct cluster_stats stats;
    size_t at, count;
    bool in_doubt;
    double began;

    (void)state;
    begin(&c, 60000);
    assert_true(cluster_wait(c.cluster, 0));
    tcp_proxy_set(c.proxy, TCP_PROXY_REFUSE);
    while (!cluster_is_away(c.cluster))
        cluster_wait(c.cluster, 10);
    began = now_s();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(cluster_append(c.cluster, &entry, 1, &at, &in_doubt, &err),
                         ERR_UNAVAILABLE);
        assert_false(in_doubt);
        assert_int_equal(cluster_heads(c.cluster, &heads, &count, &err), ERR_UNAVAILABLE);
    }
    assert_true(now_s() - began < 30);
    assert_non_null(strstr(err.msg, "the shared log is away"));
    assert_false(cluster_wait(c.cluster, 300));
    tcp_proxy_set(c.proxy, TCP_PROXY_PASS);
    assert_true(cluster_wait(c.cluster, 60000)); /* back */
    assert_false(cluster_is_away(c.cluster));
    cluster_stats(c.cluster, &stats);
    assert_int_equal(stats.connects, 2);
    assert_int_equal(stats.losses, 1);
    append_through(&c, 10);
    end(&c);
}

/* What answers under the old address is another log: nothing is appended to it. */
static void another_log_in_its_place_is_not_used(void **state)
{
    struct cut_case c;
    struct cluster_head *heads;
    size_t count;

    (void)state;
    begin(&c, 2000);
    append_through(&c, 10);
    tcp_proxy_set(c.proxy, TCP_PROXY_REFUSE);
    while (!cluster_is_away(c.cluster))
        cluster_wait(c.cluster, 10);
    cluster_sql("UPDATE kota.meta SET identity = md5('other')");
    tcp_proxy_set(c.proxy, TCP_PROXY_PASS);
    do
        cluster_wait(c.cluster, 10);
    while (cluster_heads(c.cluster, &heads, &count, &err) != ERR_UNAVAILABLE ||
           !strstr(err.log_only, "another log"));
    assert_true(cluster_is_away(c.cluster));
    end(&c);
}

/* It takes the question and says nothing: that is in doubt after wait_ms. */
static void a_frozen_engine_is_given_up(void **state)
{
    struct cut_case c;
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry = cluster_test_entry("a", 1, "frozen", 0, data);
    bool in_doubt;
    size_t at;

    (void)state;
    begin(&c, 700);
    tcp_proxy_set(c.proxy, TCP_PROXY_HOLD);
    assert_int_equal(cluster_append(c.cluster, &entry, 1, &at, &in_doubt, &err), ERR_UNAVAILABLE);
    assert_true(in_doubt);
    assert_true(cluster_is_away(c.cluster));
    tcp_proxy_set(c.proxy, TCP_PROXY_PASS);
    while (cluster_is_away(c.cluster))
        cluster_wait(c.cluster, 100);
    end(&c);
}

/* Is an append acknowledged that is 2 s on its way, where wait_ms is 1.5 s? Both times `slower`. */
static bool is_waited_for(unsigned slower)
{
    enum { BYTES = 1 << 20, WAIT_MS = 1500, BYTES_IN_10_MS = 5200 };
    struct cut_case c;
    uint8_t none[CLUSTER_TEST_BYTES_MAX], *data = calloc(1, BYTES);
    struct cluster_entry entry = cluster_test_entry("a", 1, "slow", 0, none);
    struct cluster_stats stats;
    bool in_doubt, is_lost;
    size_t at;
    int room = 16384;

    CHECK(data);
    begin(&c, WAIT_MS * slower);
    entry.data = data;
    entry.bytes = BYTES;
    /* what lies in the kernel's buffers is on its way, and cannot be seen to be */
    CHECK(setsockopt(PQsocket(c.cluster->conn), SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
    tcp_proxy_slow(c.proxy, BYTES_IN_10_MS / slower);
    is_lost = cluster_append(c.cluster, &entry, 1, &at, &in_doubt, &err) != ERR_OK;
    cluster_stats(c.cluster, &stats);
    is_lost = is_lost || stats.losses > 0 || stats.in_doubt > 0;
    tcp_proxy_slow(c.proxy, 0);
    if (!is_lost)
        assert_int_equal(cluster_must_head(c.cluster, "a"), 1);
    free(data);
    end(&c);
    return !is_lost;
}

/* An append that takes longer than wait_ms on its way is none that is not answered. Where the
 * server gets no processor for so long it is lost: then all takes four times as long. */
static void a_slow_line_is_waited_for(void **state)
{
    unsigned slower = 1;

    (void)state;
    while (!is_waited_for(slower)) {
        if (slower == 64)
            fail_msg("%s", err.msg);
        slower *= 4;
        cluster_test_begin(state);
    }
}

static bool see_it(void *context, const struct cluster_entry *entry, struct err *error)
{
    (void)entry, (void)error;
    ++*(unsigned *)context;
    return true;
}

/* Bytes that come one by one for a minute are no answer. */
static void a_trickle_is_given_up(void **state)
{
    enum { BYTES = 100000, START_MS = 5000, WAIT_MS = 400, BYTES_IN_10_MS = 16 };
    struct cut_case c;
    uint8_t none[CLUSTER_TEST_BYTES_MAX], *data = calloc(1, BYTES);
    struct cluster_entry entry = cluster_test_entry("a", 1, "wide", 0, none);
    unsigned seen = 0;
    bool in_doubt;
    size_t at, count;

    (void)state;
    CHECK(data);
    begin(&c, START_MS);
    entry.data = data;
    entry.bytes = BYTES;
    cluster_ok(cluster_append(c.cluster, &entry, 1, &at, &in_doubt, &err), &err);
    c.cluster->wait_ms = WAIT_MS;
    tcp_proxy_slow(c.proxy, BYTES_IN_10_MS);
    assert_int_equal(cluster_read(c.cluster, "a", 0, see_it, &seen, &count, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.log_only, "no answer within"));
    assert_int_equal(seen, 0);
    tcp_proxy_slow(c.proxy, 0);
    while (cluster_is_away(c.cluster))
        cluster_wait(c.cluster, 100);
    cluster_ok(cluster_read(c.cluster, "a", 0, see_it, &seen, &count, &err), &err);
    assert_int_equal(seen, 1);
    free(data);
    end(&c);
}

/* A daemon that starts while it is away finds it later, and a host that swallows packets costs
 * its own time only. */
static void a_start_without_the_engine(void **state)
{
    struct tcp_proxy *proxy = tcp_proxy_start(test_postgres.port);
    char conninfo[160];
    struct cluster_options options = {.conninfo = conninfo, .node = "early", .wait_ms = 2000};
    struct cluster_stats stats;
    struct cluster *cluster;

    (void)state;
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%u user=kota dbname=postgres",
             tcp_proxy_port(proxy));
    tcp_proxy_set(proxy, TCP_PROXY_REFUSE);
    cluster = cluster_create(&options, &err);
    assert_non_null(cluster);
    assert_true(cluster_is_away(cluster));
    cluster_stats(cluster, &stats);
    assert_true(stats.is_away && stats.contact_age_s > 1e30);
    tcp_proxy_set(proxy, TCP_PROXY_PASS);
    while (cluster_is_away(cluster))
        cluster_wait(cluster, 100);
    cluster_must_append(cluster, "a", 1, "a1");
    cluster_destroy(cluster);
    tcp_proxy_set(proxy, TCP_PROXY_HOLD);
    snprintf(conninfo, sizeof conninfo,
             "host=127.0.0.1,127.0.0.1 port=%u,%u user=kota dbname=postgres connect_timeout=1",
             tcp_proxy_port(proxy), test_postgres.port);
    cluster = cluster_create(&options, &err);
    while (cluster_is_away(cluster))
        cluster_wait(cluster, 100);
    cluster_must_append(cluster, "a", 2, "a2");
    cluster_destroy(cluster);
    tcp_proxy_stop(proxy);
}

#define TEST(name) cmocka_unit_test_setup(name, cluster_test_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_append_cut_anywhere_is_there_once),
        TEST(cuts_while_it_connects_again),
        TEST(sessions_ended_by_the_engine),
        TEST(a_commit_that_fails_is_no_append),
        TEST(a_commit_with_a_warning_is_in_doubt),
        TEST(in_doubt_and_trimmed_meanwhile),
        TEST(crashes_of_the_engine_lose_nothing),
        TEST(away_is_told_at_once_and_ends),
        TEST(another_log_in_its_place_is_not_used),
        TEST(a_frozen_engine_is_given_up),
        TEST(a_slow_line_is_waited_for),
        TEST(a_trickle_is_given_up),
        TEST(a_start_without_the_engine),
    };
    const char *why;

    if (!postgres_is_there(&why)) {
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    return cmocka_run_group_tests(tests, cluster_tests_begin, cluster_tests_end);
}
