/*
 * The shared log on a real PostgreSQL: what is appended comes back, in order, to everybody; what
 * does not fit is refused whole.
 */
#include "replica/cluster.h"

#include "base/check.h"
#include "replica/conninfo.h"
#include "support/cluster_fixture.h"
#include "support/random.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct err err;

/* ---- entries --------------------------------------------------------------------------------- */

static void an_entry_comes_back_as_it_was(void **state)
{
    struct cluster *one = cluster_must(NULL, "one"), *two = cluster_must(NULL, "two");
    char(*op_ids)[CLUSTER_OP_ID_MAX + 1];
    char op_id[CLUSTER_OP_ID_MAX + 1], long_id[CLUSTER_OP_ID_MAX + 1];
    char locale[CLUSTER_ID_MAX + 1];
    uint64_t revision;

    (void)state;
    memset(long_id, 'x', CLUSTER_OP_ID_MAX);
    long_id[CLUSTER_OP_ID_MAX] = '\0';
    cluster_must_append(one, "hill", 1, "a 'quoted\" \\ \xc3\xa4 id");
    cluster_must_append(two, "hill", 2, long_id);
    cluster_must_append(one, "hill", 3, "~3");
    cluster_must_append(one, "/models", 1, "~4");
    assert_int_equal(cluster_must_read(two, "hill", 0, &op_ids), 3);
    assert_string_equal(op_ids[0], "a 'quoted\" \\ \xc3\xa4 id");
    assert_string_equal(op_ids[1], long_id);
    free(op_ids);
    assert_int_equal(cluster_must_read(two, "hill", 2, NULL), 1);
    assert_int_equal(cluster_must_read(two, "hill", 3, NULL), 0);
    assert_int_equal(cluster_must_read(two, "hill", 9, NULL), 0);
    assert_int_equal(cluster_must_read(two, "nowhere", 0, NULL), 0);
    assert_int_equal(cluster_must_head(one, "hill"), 3);
    assert_int_equal(cluster_must_head(one, "/models"), 1);
    cluster_ok(cluster_op_at(one, "hill", 3, op_id, &err), &err);
    assert_string_equal(op_id, "~3");
    cluster_ok(cluster_op_at(one, "hill", 4, op_id, &err), &err);
    assert_string_equal(op_id, "");
    cluster_ok(cluster_find_op(one, "~3", locale, &revision, &err), &err);
    assert_string_equal(locale, "hill");
    assert_int_equal(revision, 3);
    assert_int_equal(cluster_find_op(one, "~9", locale, &revision, &err), ERR_NOT_FOUND);
    cluster_destroy(one);
    cluster_destroy(two);
}

static void a_batch_is_appended_whole_or_not_at_all(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    uint8_t data[4][CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entries[4] = {cluster_test_entry("b", 1, "b1", 10, data[0]),
                                       cluster_test_entry("a", 1, "a1", 0, data[1]),
                                       cluster_test_entry("b", 2, "b2", 4096, data[2]),
                                       cluster_test_entry("a", 2, "a2", 1, data[3])};
    bool in_doubt;
    size_t at;

    (void)state;
    cluster_ok(cluster_append(one, entries, 4, &at, &in_doubt, &err), &err);
    assert_int_equal(cluster_must_read(one, "a", 0, NULL), 2);
    assert_int_equal(cluster_must_read(one, "b", 0, NULL), 2);
    /* one of them is not the next: nothing of it is there */
    entries[0] = cluster_test_entry("b", 3, "b3", 10, data[0]);
    entries[1] = cluster_test_entry("a", 4, "a4", 10, data[1]);
    assert_int_equal(cluster_append(one, entries, 2, &at, &in_doubt, &err), ERR_CONFLICT);
    assert_false(in_doubt);
    assert_non_null(strstr(err.msg, "locale a is at revision 2, and not at 3"));
    entries[1] = cluster_test_entry("c", 2, "c2", 10, data[1]);
    assert_int_equal(cluster_append(one, entries, 2, &at, &in_doubt, &err), ERR_CONFLICT);
    entries[1] = cluster_test_entry("a", 2, "a2 again", 10, data[1]);
    assert_int_equal(cluster_append(one, entries, 2, &at, &in_doubt, &err), ERR_CONFLICT);
    /* an op_id is one of a kind in the whole log */
    entries[1] = cluster_test_entry("c", 1, "a1", 10, data[1]);
    assert_int_equal(cluster_append(one, entries, 2, &at, &in_doubt, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.msg, "op_id"));
    assert_int_equal(cluster_must_head(one, "b"), 2);
    assert_int_equal(cluster_must_head(one, "c"), 0);
    /* and the connection is as before */
    cluster_must_append(one, "b", 3, "b3");
    cluster_destroy(one);
}

/* After a failover the log may have another edit under a number that a node has applied. */
static void an_append_stands_on_what_it_says(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    uint8_t data[3][CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entries[3];
    bool in_doubt;
    size_t at;

    (void)state;
    for (unsigned i = 1; i <= 5; i++) {
        char op_id[8];

        snprintf(op_id, sizeof op_id, "a%u", i);
        cluster_must_append(one, "a", i, op_id);
    }
    cluster_must_append(one, "b", 1, "b1");
    entries[0] = cluster_test_entry("b", 2, "b2", 10, data[0]);
    entries[1] = cluster_test_entry("a", 6, "a6", 10, data[1]);
    entries[2] = cluster_test_entry("a", 7, "a7", 10, data[2]);
    strcpy(entries[0].before, "b1");
    strcpy(entries[1].before, "a5 that was lost");
    strcpy(entries[2].before, "not looked at: it is the second");
    assert_int_equal(cluster_append(one, entries, 3, &at, &in_doubt, &err), ERR_CONFLICT);
    assert_false(in_doubt);
    assert_non_null(strstr(err.msg, "locale a has another edit at revision 5"));
    assert_int_equal(cluster_must_head(one, "a"), 5);
    assert_int_equal(cluster_must_head(one, "b"), 1);
    /* the order of the entries of different locales is free */
    strcpy(entries[1].before, "a5");
    cluster_ok(cluster_append(one, entries, 3, &at, &in_doubt, &err), &err);
    /* "": not compared; and there is nothing before the first */
    entries[0] = cluster_test_entry("a", 8, "a8", 10, data[0]);
    entries[1] = cluster_test_entry("c", 1, "c1", 10, data[1]);
    strcpy(entries[1].before, "nothing");
    cluster_ok(cluster_append(one, entries, 2, &at, &in_doubt, &err), &err);
    cluster_destroy(one);
}

/* The row of an edit is replaced between the try whose answer is lost and the next one. */
static void a_retry_stands_on_what_it_says(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry = cluster_test_entry("a", 3, "a3", 10, data);
    struct cluster_stats stats;
    bool in_doubt;
    size_t at;

    (void)state;
    cluster_must_append(one, "a", 1, "a1");
    cluster_must_append(one, "a", 2, "a2");
    strcpy(entry.before, "a2");
    /* the first try commits with a warning; then the log is one that never had it, nor a2 */
    cluster_sql("CREATE FUNCTION kota.lose() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
                "IF NEW.rev = 3 AND (SELECT op_id FROM kota.edit WHERE rev = 2) = 'a2' THEN "
                "RAISE WARNING 'canceling wait'; DELETE FROM kota.edit WHERE rev = 3; "
                "UPDATE kota.edit SET op_id = 'other' WHERE rev = 2; "
                "UPDATE kota.locale SET rev = 2; END IF; RETURN NULL; END$$;"
                "CREATE TRIGGER lose AFTER INSERT ON kota.edit FOR EACH ROW "
                "EXECUTE FUNCTION kota.lose()");
    assert_int_equal(cluster_append(one, &entry, 1, &at, &in_doubt, &err), ERR_CONFLICT);
    assert_false(in_doubt);
    cluster_stats(one, &stats);
    assert_int_equal(stats.in_doubt, 1);
    assert_int_equal(cluster_must_head(one, "a"), 2);
    cluster_destroy(one);
}

struct stopping {
    unsigned left, seen;
};

static bool see_some(void *context, const struct cluster_entry *entry, struct err *error)
{
    struct stopping *stopping = context;

    stopping->seen++;
    if (stopping->left-- > 0)
        return true;
    err_set(error, ERR_BUSY, "enough at %u", (unsigned)entry->revision);
    return false;
}

static void reading_goes_in_pages_and_stops_when_told(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    struct stopping stopping = {.left = 1000};
    char op_id[32];
    size_t count;

    (void)state;
    for (unsigned i = 1; i <= 300; i++) {
        snprintf(op_id, sizeof op_id, "op%u", i);
        cluster_must_append(one, "long", i, op_id);
    }
    cluster_ok(cluster_read(one, "long", 0, see_some, &stopping, &count, &err), &err);
    assert_int_equal(count, CLUSTER_READ_MAX);
    cluster_ok(cluster_read(one, "long", 256, see_some, &stopping, &count, &err), &err);
    assert_int_equal(count, 44);
    stopping = (struct stopping){.left = 5};
    assert_int_equal(cluster_read(one, "long", 10, see_some, &stopping, &count, &err), ERR_BUSY);
    assert_string_equal(err.msg, "enough at 16");
    assert_int_equal(count, 5);
    assert_int_equal(cluster_must_read(one, "long", 0, NULL), 300);
    cluster_destroy(one);
}

/* 40 entries of 1 MiB: a page holds 16 MiB and a bit. */
static void a_page_is_bounded_in_bytes(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    struct stopping stopping = {.left = 1000};
    uint8_t *data = calloc(1, 1 << 20), none[CLUSTER_TEST_BYTES_MAX];
    size_t count, at, whole = 0;
    bool in_doubt;

    (void)state;
    for (unsigned i = 1; i <= 40; i++) {
        struct cluster_entry entry = cluster_test_entry("wide", i, "", 0, none);

        snprintf(entry.op_id, sizeof entry.op_id, "w%u", i);
        entry.data = data;
        entry.bytes = 1 << 20;
        cluster_ok(cluster_append(one, &entry, 1, &at, &in_doubt, &err), &err);
    }
    cluster_ok(cluster_read(one, "wide", 0, see_some, &stopping, &count, &err), &err);
    assert_in_range(count, 16, 17);
    for (whole = count; count > 0; whole += count)
        cluster_ok(cluster_read(one, "wide", whole, see_some, &stopping, &count, &err), &err);
    assert_int_equal(whole, 40);
    free(data);
    cluster_destroy(one);
}

static void too_much_at_once_is_refused(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry = cluster_test_entry("a", 1, "a1", 0, data);
    bool in_doubt;
    size_t at;

    (void)state;
    entry.bytes = (256u << 20) + 1; /* it is not looked at */
    assert_int_equal(cluster_append(one, &entry, 1, &at, &in_doubt, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.msg, "268435456"));
    cluster_destroy(one);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void what_cannot_be_is_damage(void **state)
{
    static const char *const wrongs[] = {
        "UPDATE kota.edit SET data = 'other' WHERE rev = 2",
        "UPDATE kota.edit SET kind = 9 WHERE rev = 2",
        "UPDATE kota.edit SET source = repeat('s', 40) WHERE rev = 2",
        "UPDATE kota.edit SET blobs = 'x' WHERE rev = 2",
        "UPDATE kota.edit SET rect = '{1,2,3}' WHERE rev = 2",
        "UPDATE kota.edit SET rect = '{1,2,3,99999999999}' WHERE rev = 2",
        "UPDATE kota.edit SET request = 'short' WHERE rev = 2",
        "UPDATE kota.edit SET node = 'two' WHERE rev = 2",
        "DELETE FROM kota.edit WHERE rev = 2",
    };
    struct cluster *one = cluster_must(NULL, "one");
    struct stopping stopping = {.left = 1000};
    size_t count;

    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        cluster_sql("TRUNCATE kota.edit, kota.locale");
        cluster_must_append(one, "a", 1, "a1");
        cluster_must_append(one, "a", 2, "a2");
        cluster_must_append(one, "a", 3, "a3");
        cluster_sql("%s", wrongs[i]);
        if (cluster_read(one, "a", 0, see_some, &stopping, &count, &err) != ERR_DAMAGED)
            fail_msg("%s: %s", wrongs[i], err.msg);
        assert_int_equal(count, 1);
    }
    cluster_destroy(one);
}

/* ---- news ------------------------------------------------------------------------------------ */

static void *wake_it(void *context)
{
    cluster_wake(context);
    return NULL;
}

static void what_others_append_is_news_and_own_is_not(void **state)
{
    struct cluster *one = cluster_must(NULL, "one"), *two = cluster_must(NULL, "two");
    struct cluster_options slow = {
        .conninfo = test_postgres.conninfo, .node = "slow", .poll_ms = 3600000};
    struct cluster_stats stats;
    struct cluster *three;
    pthread_t thread;

    (void)state;
    cluster_destroy(one);
    one = cluster_must_with(&slow);
    assert_true(cluster_wait(one, 0)); /* connected */
    assert_false(cluster_wait(one, 0));
    cluster_must_append(one, "a", 1, "a1");
    assert_false(cluster_wait(one, 50));
    cluster_must_append(two, "a", 2, "a2");
    assert_true(cluster_wait(one, 60000));
    cluster_stats(one, &stats);
    assert_int_equal(stats.notifications, 1);
    assert_int_equal(stats.polls, 0);
    /* woken before, and while it waits */
    cluster_wake(one);
    assert_false(cluster_wait(one, -1));
    CHECK(pthread_create(&thread, NULL, wake_it, one) == 0);
    assert_false(cluster_wait(one, -1));
    pthread_join(thread, NULL);
    /* looks come without any notification */
    slow.poll_ms = 20;
    slow.node = "three";
    three = cluster_must_with(&slow);
    assert_true(cluster_wait(three, 0));
    assert_true(cluster_wait(three, 60000));
    assert_true(cluster_wait(three, 60000));
    cluster_stats(three, &stats);
    assert_true(stats.polls >= 1);
    cluster_destroy(one);
    cluster_destroy(two);
    cluster_destroy(three);
}

/* ---- holding --------------------------------------------------------------------------------- */

struct contender {
    struct cluster *cluster;
    enum err_code code;
};

static void *append_meanwhile(void *context)
{
    struct contender *contender = context;
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry = cluster_test_entry("a", 2, "theirs", 10, data);
    struct err error = {.code = ERR_OK};
    bool in_doubt;
    size_t at;

    contender->code = cluster_append(contender->cluster, &entry, 1, &at, &in_doubt, &error);
    return NULL;
}

static void who_holds_is_not_overtaken(void **state)
{
    struct cluster *one = cluster_must(NULL, "one"), *two = cluster_must(NULL, "two");
    struct contender contender = {.cluster = two};
    char ids[2][CLUSTER_ID_MAX + 1] = {"a", "not there yet"};
    pthread_t thread;

    (void)state;
    cluster_must_append(one, "a", 1, "a1");
    cluster_ok(cluster_hold(one, (const char(*)[CLUSTER_ID_MAX + 1]) ids, 2, &err), &err);
    CHECK(pthread_create(&thread, NULL, append_meanwhile, &contender) == 0);
    /* it waits for the row; between the two the holder follows */
    while (cluster_sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0)
        ;
    assert_int_equal(cluster_must_read(one, "a", 0, NULL), 1);
    assert_int_equal(cluster_must_head(one, "not there yet"), 0);
    cluster_must_append(one, "a", 2, "ours");
    pthread_join(thread, NULL);
    assert_int_equal(contender.code, ERR_CONFLICT);
    /* without an append */
    cluster_ok(cluster_hold(one, (const char(*)[CLUSTER_ID_MAX + 1]) ids, 2, &err), &err);
    cluster_release(one);
    cluster_must_append(two, "a", 3, "a3");
    /* an append that is refused ends it, too */
    cluster_ok(cluster_hold(one, (const char(*)[CLUSTER_ID_MAX + 1]) ids, 2, &err), &err);
    contender.cluster = one;
    append_meanwhile(&contender);
    assert_int_equal(contender.code, ERR_CONFLICT);
    cluster_must_append(two, "a", 4, "a4");
    cluster_destroy(one);
    cluster_destroy(two);
}

/* A holder that does nothing more does not hold for long: others wait, and then it has lost. */
static void who_holds_and_stops_is_ended(void **state)
{
    struct cluster_options options = {
        .conninfo = test_postgres.conninfo, .node = "one", .wait_ms = 1000};
    struct cluster *one = cluster_must_with(&options), *two = cluster_must(NULL, "two");
    char ids[1][CLUSTER_ID_MAX + 1] = {"a"};
    struct contender contender = {.cluster = one};

    (void)state;
    cluster_must_append(one, "a", 1, "a1");
    cluster_ok(cluster_hold(one, (const char(*)[CLUSTER_ID_MAX + 1]) ids, 1, &err), &err);
    cluster_must_append(two, "a", 2, "a2");
    append_meanwhile(&contender);
    assert_true(contender.code == ERR_CONFLICT || contender.code == ERR_UNAVAILABLE);
    assert_int_equal(cluster_must_read(two, "a", 0, NULL), 2);
    cluster_destroy(one);
    cluster_destroy(two);
}

/* Somebody of ours sits in a transaction, holds the row, and no timeout ends it. */
static void who_was_stopped_in_a_transaction_is_ended(void **state)
{
    struct cluster_options options = {
        .conninfo = test_postgres.conninfo, .node = "one", .wait_ms = 1000};
    struct cluster *one = cluster_must_with(&options);
    struct contender contender = {.cluster = one};
    char conninfo[200];
    PGconn *stopped;

    (void)state;
    cluster_must_append(one, "a", 1, "a1");
    snprintf(conninfo, sizeof conninfo, "%s application_name='kota stopped'",
             test_postgres.conninfo);
    stopped = PQconnectdb(conninfo);
    PQclear(PQexec(stopped, "BEGIN; UPDATE kota.locale SET rev = rev"));
    assert_int_equal(PQtransactionStatus(stopped), PQTRANS_INTRANS);
    do /* the first ones wait for a while, and say that it is busy */
        append_meanwhile(&contender);
    while (contender.code == ERR_UNAVAILABLE);
    assert_int_equal(contender.code, ERR_OK);
    PQclear(PQexec(stopped, "COMMIT"));
    assert_int_equal(PQstatus(stopped), CONNECTION_BAD);
    PQfinish(stopped);
    assert_int_equal(cluster_must_read(one, "a", 0, NULL), 2);
    cluster_destroy(one);
}

/* ---- starting -------------------------------------------------------------------------------- */

static void *create_one(void *context)
{
    char node[32];
    struct cluster_options options = {.conninfo = test_postgres.conninfo, .node = node};
    struct err error = {.code = ERR_OK};
    char *identity = context;
    struct cluster *cluster;

    snprintf(node, sizeof node, "%p", context);
    cluster = cluster_create(&options, &error);
    CHECK(cluster && !cluster_is_away(cluster));
    CHECK(cluster_identity(cluster, identity, &error) == ERR_OK);
    cluster_destroy(cluster);
    return NULL;
}

static void daemons_that_start_at_once_make_one_schema(void **state)
{
    char identities[6][33];
    pthread_t threads[6];

    (void)state;
    for (int i = 0; i < 6; i++)
        CHECK(pthread_create(&threads[i], NULL, create_one, identities[i]) == 0);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(strspn(identities[i], "0123456789abcdef"), 32);
        assert_string_equal(identities[i], identities[0]);
    }
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.meta"), 1);
}

static void must_refuse(const char *conninfo, const char *says)
{
    struct cluster_options options = {.conninfo = conninfo, .node = "one", .wait_ms = 3000};
    struct cluster *cluster;

    err.msg[0] = '\0';
    cluster = cluster_create(&options, &err);
    if (cluster || err.code != ERR_BAD_INPUT || !strstr(err.msg, says) || strstr(err.msg, "hush"))
        fail_msg("%s: %s, and not: %s", conninfo, err.msg, says);
}

static void a_string_that_cannot_be_read_is_told_without_its_password(void **state)
{
    static const char *const strings[][2] = {
        {"host=a password=hush hush", "missing \"=\""},
        {"password='hush", "unterminated quoted string"},
        {"pasword=hush", "invalid connection option"},
        {"host='a password=hush'", "host holds a \"=\""},
        {"host=127.0.0.1 dbname='x password=hush'", "dbname holds a \"=\""},
        {"postgresql://kota:hush@127.0.0.1:port:9/x", "conninfo"},
        {"postgresql://kota:hush@[::1/x", "cannot be read"},
        {"host=127.0.0.1 port=0 password=hush", "port is \"0\""},
        {"host=127.0.0.1 port=99999", "port is \"99999\""},
        {"host=127.0.0.1,b port=1,2,3", "port has 3 parts for 2 hosts"},
        {"host=127.0.0.1 connect_timeout=soon", "connect_timeout is \"soon\""},
        {"host=127.0.0.1 target_session_attrs=standby", "target_session_attrs is \"standby\""},
        {"host=127.0.0.1 sslmode=hushed password=x", "sslmode"},
        {"host=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "more than 16"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        if (strstr(strings[i][0], "sslmode")) /* it names the value, which is none of a secret */
            continue;
        must_refuse(strings[i][0], strings[i][1]);
    }
    must_refuse("host=127.0.0.1 sslmode=loud", "sslmode");
}

static void a_role_or_database_that_is_not_there_is_refused(void **state)
{
    char conninfo[256];

    (void)state;
    cluster_sql("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'hush'");
    snprintf(conninfo, sizeof conninfo,
             "host=127.0.0.1 port=%u user=kota dbname=nowhere password=hush", test_postgres.port);
    must_refuse(conninfo, "\"nowhere\" does not exist");
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%u user=nobody dbname=postgres",
             test_postgres.port);
    must_refuse(conninfo, "\"nobody\" does not exist");
    snprintf(conninfo, sizeof conninfo,
             "host=127.0.0.1 port=%u user=guest password=hush dbname=postgres", test_postgres.port);
    must_refuse(conninfo, "permission denied");
    cluster_sql("DROP ROLE guest");
}

static void a_newer_schema_is_refused(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");

    (void)state;
    cluster_destroy(one);
    cluster_sql("UPDATE kota.meta SET version = 99");
    must_refuse(test_postgres.conninfo, "version 99, made by a newer kotad");
}

static bool has_file(char paths[CONNINFO_FILES_MAX][CONNINFO_PATH_MAX], size_t count,
                     const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(paths[i], path) == 0)
            return true;
    return false;
}

static void the_files_of_a_connection_are_told(void **state)
{
    char paths[CONNINFO_FILES_MAX][CONNINFO_PATH_MAX];
    size_t count;

    (void)state;
    cluster_ok(conninfo_files("host=/srv/pg,b sslrootcert=/srv/ca.pem sslkey=relative", paths,
                              &count, &err),
               &err);
    assert_true(has_file(paths, count, "/srv/pg"));
    assert_true(has_file(paths, count, "/srv/ca.pem"));
    assert_true(has_file(paths, count, "relative"));
    assert_false(has_file(paths, count, "b"));
    setenv("PGPASSFILE", "/srv/passwords", 1);
    cluster_ok(conninfo_files("postgresql://b/x", paths, &count, &err), &err);
    unsetenv("PGPASSFILE");
    assert_true(has_file(paths, count, "/srv/passwords"));
    assert_int_equal(conninfo_files("host", paths, &count, &err), ERR_BAD_INPUT);
}

static void options_have_limits(void **state)
{
    char node[CLUSTER_ID_MAX + 2];
    struct cluster_options options = {.conninfo = test_postgres.conninfo, .node = node};

    (void)state;
    memset(node, 'n', sizeof node - 1);
    node[sizeof node - 1] = '\0';
    assert_null(cluster_create(&options, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_string_equal(err.msg, "node has 65 bytes; the limit is 64");
    options.node = "one";
    options.schema = "kota\"; DROP";
    assert_null(cluster_create(&options, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    options.schema = "";
    options.node = "";
    assert_null(cluster_create(&options, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
}

/* Two logs in one database, and one behind a second host. */
static void schemas_and_hosts(void **state)
{
    char conninfo[256], first[33], second[33];
    struct cluster_options options = {.conninfo = conninfo, .node = "one", .schema = "other_log"};
    struct cluster *one, *two;

    (void)state;
    snprintf(conninfo, sizeof conninfo,
             "host=127.0.0.1,127.0.0.1 port=1,%u user=kota dbname=postgres", test_postgres.port);
    one = cluster_must_with(&options);
    two = cluster_must(conninfo, "one");
    cluster_must_append(one, "a", 1, "a1");
    assert_int_equal(cluster_must_head(two, "a"), 0);
    cluster_ok(cluster_identity(one, first, &err), &err);
    cluster_ok(cluster_identity(two, second, &err), &err);
    assert_string_not_equal(first, second);
    cluster_destroy(one);
    cluster_destroy(two);
    cluster_sql("DROP SCHEMA other_log CASCADE");
}

#define TEST(name) cmocka_unit_test_setup(name, cluster_test_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_entry_comes_back_as_it_was),
        TEST(a_batch_is_appended_whole_or_not_at_all),
        TEST(an_append_stands_on_what_it_says),
        TEST(a_retry_stands_on_what_it_says),
        TEST(reading_goes_in_pages_and_stops_when_told),
        TEST(a_page_is_bounded_in_bytes),
        TEST(too_much_at_once_is_refused),
        TEST(what_cannot_be_is_damage),
        TEST(what_others_append_is_news_and_own_is_not),
        TEST(who_holds_is_not_overtaken),
        TEST(who_holds_and_stops_is_ended),
        TEST(who_was_stopped_in_a_transaction_is_ended),
        TEST(daemons_that_start_at_once_make_one_schema),
        TEST(a_string_that_cannot_be_read_is_told_without_its_password),
        TEST(a_role_or_database_that_is_not_there_is_refused),
        TEST(a_newer_schema_is_refused),
        TEST(the_files_of_a_connection_are_told),
        TEST(options_have_limits),
        TEST(schemas_and_hosts),
    };
    const char *why;

    if (!postgres_is_there(&why)) {
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    return cmocka_run_group_tests(tests, cluster_tests_begin, cluster_tests_end);
}
