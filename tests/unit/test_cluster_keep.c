/*
 * Blobs, snapshots and trimming on a real PostgreSQL: what is named is there, what is damaged is
 * found, and no entry goes that a verified snapshot does not stand for.
 */
#include "replica/cluster_data.h"

#include "base/check.h"
#include "base/content_hash.h"
#include "support/cluster_fixture.h"
#include "support/random.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct err err;

/* Bytes that follow from a number, and their hash. */
struct made {
    uint8_t *bytes;
    size_t length;
    uint8_t hash[CLUSTER_HASH_BYTES];
};

static struct made make(uint64_t number, size_t length)
{
    struct made made = {.bytes = malloc(length > 0 ? length : 1), .length = length};
    struct random random = {number};

    CHECK(made.bytes);
    for (size_t i = 0; i < length; i++)
        made.bytes[i] = (uint8_t)random_bits(&random);
    content_hash(made.bytes, length, made.hash);
    return made;
}

static void put(struct cluster *cluster, const struct made *made)
{
    cluster_ok(cluster_put_blob(cluster, made->hash, made->bytes, made->length, &err), &err);
}

static void must_get(struct cluster *cluster, const struct made *made)
{
    void *bytes;
    size_t length;

    cluster_ok(cluster_get_blob(cluster, made->hash, &bytes, &length, &err), &err);
    assert_int_equal(length, made->length);
    if (length > 0)
        assert_memory_equal(bytes, made->bytes, length);
    free(bytes);
}

/* Entries first..last of a locale. */
static void append_some(struct cluster *cluster, const char *locale, unsigned first, unsigned last)
{
    char op_id[64];

    for (unsigned i = first; i <= last; i++) {
        snprintf(op_id, sizeof op_id, "%s-%u", locale, i);
        cluster_must_append(cluster, locale, i, op_id);
    }
}

static enum err_code snapshot(struct cluster *cluster, const char *locale, uint64_t revision,
                              const struct made *body, const struct made *blobs, size_t count,
                              uint64_t keep)
{
    uint8_t hashes[8][CLUSTER_HASH_BYTES];
    char op_id[64];

    CHECK(count <= 8);
    for (size_t i = 0; i < count; i++)
        memcpy(hashes[i], blobs[i].hash, CLUSTER_HASH_BYTES);
    snprintf(op_id, sizeof op_id, "%s-%llu", locale, (unsigned long long)revision);
    return cluster_put_snapshot(cluster, locale, revision, op_id, body->bytes, body->length,
                                (const uint8_t(*)[CLUSTER_HASH_BYTES])hashes, count, keep, &err);
}

static struct cluster_head head_of(struct cluster *cluster, const char *locale)
{
    struct cluster_head *heads, head = {{0}, 0, 0, 0};
    size_t count;

    cluster_ok(cluster_heads(cluster, &heads, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        if (strcmp(heads[i].locale, locale) == 0)
            head = heads[i];
    free(heads);
    return head;
}

/* ---- blobs ----------------------------------------------------------------------------------- */

static void blobs_of_all_sizes_come_back(void **state)
{
    static const size_t lengths[] = {0,      1, 32, 264196, (4 << 20) - 1, 4 << 20, (4 << 20) + 1,
                                     9 << 20};
    struct cluster *one = cluster_must(NULL, "one"), *two = cluster_must(NULL, "two");
    uint8_t hashes[9][CLUSTER_HASH_BYTES] = {{0}};
    struct made made[8], other = make(99, 10);
    bool have[9];
    void *bytes;
    size_t length;

    (void)state;
    for (int i = 0; i < 8; i++) {
        made[i] = make((uint64_t)i, lengths[i]);
        memcpy(hashes[i], made[i].hash, CLUSTER_HASH_BYTES);
        if (i % 2 == 0)
            put(one, &made[i]);
    }
    memcpy(hashes[8], hashes[2], CLUSTER_HASH_BYTES); /* twice in one question */
    cluster_ok(cluster_have_blobs(two, (const uint8_t(*)[CLUSTER_HASH_BYTES])hashes, 9, have, &err),
               &err);
    for (int i = 0; i < 9; i++)
        assert_int_equal(have[i], i % 2 == 0);
    for (int i = 0; i < 8; i++) {
        put(two, &made[i]); /* again, or for the first time */
        must_get(one, &made[i]);
        free(made[i].bytes);
    }
    assert_int_equal(cluster_get_blob(one, other.hash, &bytes, &length, &err), ERR_NOT_FOUND);
    free(other.bytes);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.blob"), 8);
    cluster_destroy(one);
    cluster_destroy(two);
}

enum { MANY = 100 };

struct many {
    struct made made[MANY];
    uint8_t hashes[MANY][CLUSTER_HASH_BYTES];
    unsigned asked[MANY];
    size_t fails; /* at this index; MANY: never */
    const struct cluster *cluster;
    size_t on_way; /* the most questions that were in the pipeline when bytes were asked for */
};

static const void *many_bytes(void *context, size_t index, size_t *length, void **made,
                              struct err *error)
{
    struct many *many = context;
    size_t on_way = 0;

    for (const struct ask *ask = many->cluster->first; ask; ask = ask->next)
        on_way++;
    many->on_way = on_way > many->on_way ? on_way : many->on_way;
    assert_null(*made);
    many->asked[index]++;
    *length = many->made[index].length;
    if (index == many->fails) {
        err_set(error, ERR_NO_MEMORY, "none for %zu", index);
        return NULL;
    }
    *made = malloc(*length + 1);
    CHECK(*made);
    memcpy(*made, many->made[index].bytes, *length);
    return *made;
}

static enum err_code put_many(struct cluster *cluster, struct many *many)
{
    memset(many->asked, 0, sizeof many->asked);
    many->cluster = cluster;
    return cluster_put_blobs(cluster, (const uint8_t(*)[CLUSTER_HASH_BYTES])many->hashes, MANY,
                             many_bytes, many, &err);
}

/* 100 blobs, some there, some twice, some of several parts. */
static void many_blobs_are_on_the_way_at_a_time(void **state)
{
    struct cluster *one = cluster_must(NULL, "one"), *two = cluster_must(NULL, "two");
    struct many many = {.fails = MANY};
    struct cluster_stats stats;

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        size_t length = i % 40 == 3 ? (4 << 20) * (i / 40 + 1) + i : i % 10 == 5 ? 0 : 60000 + i;

        many.made[i] = make(i % 10 == 9 ? i - 1 : i, i % 10 == 9 ? 60000 + i - 1 : length);
        memcpy(many.hashes[i], many.made[i].hash, CLUSTER_HASH_BYTES);
        if (i % 5 == 0)
            put(two, &many.made[i]);
    }
    /* what cannot be had ends it, and the pipeline stays whole */
    many.fails = 57;
    assert_int_equal(put_many(one, &many), ERR_NO_MEMORY);
    assert_string_equal(err.msg, "none for 57");
    many.fails = MANY;
    cluster_ok(put_many(one, &many), &err);
    /* 10 are there twice, and nothing ten times */
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.blob"), MANY - 10 - 9);
    assert_in_range(many.on_way, 16, 64);
    cluster_ok(put_many(one, &many), &err);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(many.asked[i], 0);
        must_get(two, &many.made[i]);
        free(many.made[i].bytes);
    }
    cluster_stats(one, &stats);
    assert_int_equal(stats.losses, 0);
    cluster_destroy(one);
    cluster_destroy(two);
}

struct putter {
    const char *node;
    struct many many;
};

static void *put_often(void *context)
{
    struct putter *putter = context;
    struct cluster_options options = {.conninfo = test_postgres.conninfo, .node = putter->node};
    struct err error = {.code = ERR_OK};
    struct cluster *cluster = cluster_create(&options, &error);

    CHECK(cluster && !cluster_is_away(cluster));
    putter->many.cluster = cluster;
    CHECK(cluster_put_blobs(cluster, (const uint8_t(*)[CLUSTER_HASH_BYTES])putter->many.hashes,
                            MANY, many_bytes, &putter->many, &error) == ERR_OK);
    cluster_destroy(cluster);
    return NULL;
}

/* Two nodes put the same ones at once. */
static void who_puts_the_same_blobs_does_not_fail(void **state)
{
    static struct putter putters[2] = {{.node = "one"}, {.node = "two"}};
    struct cluster *reader = cluster_must(NULL, "reader");
    pthread_t threads[2];

    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        for (unsigned k = 0; k < 2; k++) {
            unsigned at = k == 0 ? i : MANY - 1 - i;

            putters[k].many.made[at] = make(i, 50000);
            memcpy(putters[k].many.hashes[at], putters[k].many.made[at].hash, CLUSTER_HASH_BYTES);
            putters[k].many.fails = MANY;
        }
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, put_often, &putters[i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.blob"), MANY);
    for (unsigned i = 0; i < MANY; i++) {
        must_get(reader, &putters[0].many.made[i]);
        free(putters[0].many.made[i].bytes);
        free(putters[1].many.made[i].bytes);
    }
    cluster_destroy(reader);
}

/* One that is refused ends it, and a held transaction with it; what is on its way is waited for. */
static void a_blob_that_is_refused_ends_the_putting(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    char ids[1][CLUSTER_ID_MAX + 1] = {"a"};
    struct many many = {.fails = MANY};

    (void)state;
    cluster_sql("CREATE SEQUENCE kota.times; CREATE FUNCTION kota.refuse() RETURNS trigger "
                "LANGUAGE plpgsql AS $$BEGIN IF nextval('kota.times') IN (50, 52) THEN "
                "RAISE EXCEPTION 'not this one' USING ERRCODE = '53100'; END IF; RETURN NULL; "
                "END$$; CREATE TRIGGER refuse AFTER INSERT ON kota.blob FOR EACH ROW "
                "EXECUTE FUNCTION kota.refuse()");
    for (unsigned i = 0; i < MANY; i++) {
        many.made[i] = make(i, i == 50 ? 9 << 20 : 100000);
        memcpy(many.hashes[i], many.made[i].hash, CLUSTER_HASH_BYTES);
    }
    assert_int_equal(put_many(one, &many), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.log_only, "not this one"));
    cluster_ok(put_many(one, &many), &err);
    cluster_sql("SELECT setval('kota.times', 30); TRUNCATE kota.blob, kota.blob_part");
    cluster_ok(cluster_hold(one, (const char(*)[CLUSTER_ID_MAX + 1]) ids, 1, &err), &err);
    assert_int_equal(put_many(one, &many), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.log_only, "not this one"));
    cluster_must_append(one, "a", 1, "a-1");
    cluster_sql("SELECT setval('kota.times', 200)");
    cluster_ok(cluster_hold(one, (const char(*)[CLUSTER_ID_MAX + 1]) ids, 1, &err), &err);
    cluster_ok(put_many(one, &many), &err);
    cluster_must_append(one, "a", 2, "a-2");
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.blob"), MANY);
    for (unsigned i = 0; i < MANY; i++) {
        must_get(one, &many.made[i]);
        free(many.made[i].bytes);
    }
    cluster_destroy(one);
}

static void a_damaged_blob_is_found_and_put_again(void **state)
{
    static const char *const wrongs[] = {
        "UPDATE kota.blob_part SET data = set_byte(data, 5000, 1 # get_byte(data, 5000))",
        "UPDATE kota.blob_part SET data = substr(data, 1, 6999)",
        "UPDATE kota.blob SET length = 6999",
        "UPDATE kota.blob SET length = 7001",
        "UPDATE kota.blob SET length = -1",
        "UPDATE kota.blob_part SET data = ''",
    };
    struct cluster *one = cluster_must(NULL, "one");
    struct made made = make(1, 7000);
    bool have;
    void *bytes;
    size_t length;

    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        put(one, &made);
        must_get(one, &made);
        cluster_sql("%s", wrongs[i]);
        if (cluster_get_blob(one, made.hash, &bytes, &length, &err) != ERR_DAMAGED)
            fail_msg("%s: not found", wrongs[i]);
        cluster_ok(cluster_have_blobs(one, (const uint8_t(*)[CLUSTER_HASH_BYTES])made.hash, 1,
                                      &have, &err),
                   &err);
        assert_false(have);
    }
    put(one, &made);
    must_get(one, &made);
    free(made.bytes);
    cluster_destroy(one);
}

static void an_entry_names_only_blobs_that_are_there(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    struct made made = make(1, 100);
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry = cluster_test_entry("a", 1, "a-1", 10, data);
    bool in_doubt;
    size_t at;

    (void)state;
    entry.blobs = (const uint8_t(*)[CLUSTER_HASH_BYTES])made.hash;
    entry.blob_count = 1;
    assert_int_equal(cluster_append(one, &entry, 1, &at, &in_doubt, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.msg, "blob"));
    put(one, &made);
    cluster_ok(cluster_append(one, &entry, 1, &at, &in_doubt, &err), &err);
    assert_int_equal(cluster_must_read(one, "a", 0, NULL), 1);
    free(made.bytes);
    cluster_destroy(one);
}

/* A blob on its own is not waited for on the disk; an append is, whatever was put within its
 * transaction, and whatever else that did. */
static void a_held_append_is_durable_like_any_other(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    struct made made[3] = {make(1, 100), make(2, 5 << 20), make(3, 100)};
    char ids[1][CLUSTER_ID_MAX + 1] = {"a"};
    struct ask ask = {0};

    (void)state;
    cluster_sql("CREATE TABLE kota.seen (what text, value text);"
                "CREATE FUNCTION kota.see() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
                "INSERT INTO kota.seen VALUES (TG_TABLE_NAME, "
                "current_setting('synchronous_commit')); RETURN NULL; END$$;"
                "CREATE CONSTRAINT TRIGGER see AFTER INSERT ON kota.edit DEFERRABLE INITIALLY "
                "DEFERRED FOR EACH ROW EXECUTE FUNCTION kota.see();"
                "CREATE CONSTRAINT TRIGGER see AFTER INSERT ON kota.blob DEFERRABLE INITIALLY "
                "DEFERRED FOR EACH ROW EXECUTE FUNCTION kota.see()");
    put(one, &made[2]);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.seen WHERE value = 'off'"), 1);
    cluster_ok(cluster_hold(one, (const char(*)[CLUSTER_ID_MAX + 1]) ids, 1, &err), &err);
    put(one, &made[0]);
    put(one, &made[1]);
    put(one, &made[2]); /* is there */
    cluster_must_append(one, "a", 1, "a-1");
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.seen WHERE value = 'on'"), 3);
    cluster_ok(cluster_hold(one, (const char(*)[CLUSTER_ID_MAX + 1]) ids, 1, &err), &err);
    ask_sql(one, &ask, "SET LOCAL synchronous_commit = off");
    cluster_ok(ask_run(one, &ask, &err), &err);
    cluster_must_append(one, "a", 2, "a-2");
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.seen "
                                 "WHERE what = 'edit' AND value = 'on'"),
                     2);
    for (int i = 0; i < 3; i++)
        free(made[i].bytes);
    cluster_destroy(one);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static void a_snapshot_stands_for_what_is_trimmed(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    struct made body = make(1, 5 << 20), blobs[2] = {make(2, 1000), make(3, 264196)},
                second = make(4, 10);
    char op_id[CLUSTER_OP_ID_MAX + 1];
    struct cluster_head head;
    uint64_t revision;
    void *bytes;
    size_t length;

    (void)state;
    assert_int_equal(cluster_get_snapshot(one, "a", &revision, op_id, &bytes, &length, &err),
                     ERR_NOT_FOUND);
    append_some(one, "a", 1, 100);
    put(one, &blobs[0]);
    put(one, &blobs[1]);
    cluster_ok(snapshot(one, "a", 80, &body, blobs, 2, 30), &err);
    head = head_of(one, "a");
    assert_int_equal(head.revision, 100);
    assert_int_equal(head.first, 51);
    assert_int_equal(head.snapshot, 80);
    cluster_ok(cluster_get_snapshot(one, "a", &revision, op_id, &bytes, &length, &err), &err);
    assert_int_equal(revision, 80);
    assert_string_equal(op_id, "a-80");
    assert_int_equal(length, body.length);
    assert_memory_equal(bytes, body.bytes, length);
    free(bytes);
    /* who is behind it reads from it, and not from before */
    assert_int_equal(cluster_must_read(one, "a", 80, NULL), 20);
    assert_int_equal(cluster_must_read(one, "a", 50, NULL), 50);
    assert_int_equal(cluster_read(one, "a", 49, NULL, NULL, &length, &err), ERR_NOT_FOUND);
    assert_int_equal(cluster_read(one, "a", 0, NULL, NULL, &length, &err), ERR_NOT_FOUND);
    /* one of that revision, an older one, one of the future, one of another history */
    assert_int_equal(snapshot(one, "a", 80, &second, NULL, 0, 30), ERR_CONFLICT);
    assert_int_equal(snapshot(one, "a", 60, &second, NULL, 0, 30), ERR_CONFLICT);
    assert_int_equal(snapshot(one, "a", 101, &second, NULL, 0, 30), ERR_CONFLICT);
    assert_int_equal(
        cluster_put_snapshot(one, "a", 90, "another op", second.bytes, 10, NULL, 0, 0, &err),
        ERR_CONFLICT);
    assert_int_equal(head_of(one, "a").first, 51);
    /* the newest takes the place of the older; all entries may go */
    cluster_ok(snapshot(one, "a", 100, &second, NULL, 0, 0), &err);
    head = head_of(one, "a");
    assert_int_equal(head.first, 101);
    assert_int_equal(head.snapshot, 100);
    assert_int_equal(cluster_read(one, "a", 99, NULL, NULL, &length, &err), ERR_NOT_FOUND);
    assert_int_equal(cluster_must_read(one, "a", 100, NULL), 0);
    append_some(one, "a", 101, 103);
    assert_int_equal(cluster_must_read(one, "a", 100, NULL), 3);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.snapshot"), 1);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.past"), 100);
    free(body.bytes);
    free(second.bytes);
    free(blobs[0].bytes);
    free(blobs[1].bytes);
    cluster_destroy(one);
}

/* A key whose edit was trimmed is no new one, in no locale and under a hold neither. */
static void an_op_id_is_known_when_its_edit_was_trimmed(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    struct made body = make(1, 100);
    uint8_t data[2][CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entries[2] = {cluster_test_entry("b", 1, "b-1", 10, data[0]),
                                       cluster_test_entry("a", 21, "a-7", 10, data[1])};
    char ids[1][CLUSTER_ID_MAX + 1] = {"a"};
    char locale[CLUSTER_ID_MAX + 1];
    uint64_t revision;
    bool in_doubt;
    size_t at;

    (void)state;
    append_some(one, "a", 1, 20);
    cluster_ok(snapshot(one, "a", 20, &body, NULL, 0, 5), &err);
    assert_int_equal(head_of(one, "a").first, 16);
    assert_int_equal(cluster_append(one, entries, 2, &at, &in_doubt, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.msg, "op_id"));
    assert_false(in_doubt);
    entries[1] = cluster_test_entry("c", 1, "a-7", 10, data[1]);
    assert_int_equal(cluster_append(one, entries, 2, &at, &in_doubt, &err), ERR_CONFLICT);
    entries[1] = cluster_test_entry("a", 21, "a-20", 10, data[1]); /* is there yet */
    assert_int_equal(cluster_append(one, entries, 2, &at, &in_doubt, &err), ERR_CONFLICT);
    entries[1] = cluster_test_entry("a", 21, "a-1", 10, data[1]);
    cluster_ok(cluster_hold(one, (const char(*)[CLUSTER_ID_MAX + 1]) ids, 1, &err), &err);
    assert_int_equal(cluster_append(one, entries, 2, &at, &in_doubt, &err), ERR_CONFLICT);
    cluster_ok(cluster_find_op(one, "a-1", locale, &revision, &err), &err);
    assert_int_equal(revision, 1);
    assert_int_equal(cluster_must_head(one, "a"), 20);
    assert_int_equal(cluster_must_head(one, "b"), 0);
    cluster_must_append(one, "a", 21, "a-21");
    free(body.bytes);
    cluster_destroy(one);
}

static void nothing_is_trimmed_for_a_snapshot_that_is_not_whole(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    struct made body = make(1, 100), blobs[2] = {make(2, 1000), make(3, 1000)};

    (void)state;
    append_some(one, "a", 1, 20);
    put(one, &blobs[0]);
    /* a blob is missing; then it is there, and wrong */
    assert_int_equal(snapshot(one, "a", 20, &body, blobs, 2, 0), ERR_CONFLICT);
    put(one, &blobs[1]);
    cluster_sql(
        "UPDATE kota.blob_part SET data = set_byte(data, 0, 1 # get_byte(data, 0)) "
        "WHERE hash = (SELECT hash FROM kota.blob WHERE length = 1000 ORDER BY hash DESC LIMIT 1)");
    assert_int_equal(snapshot(one, "a", 20, &body, blobs, 2, 0), ERR_DAMAGED);
    assert_int_equal(head_of(one, "a").snapshot, 0);
    assert_int_equal(cluster_must_read(one, "a", 0, NULL), 20);
    /* even if somebody asks for it */
    assert_int_equal(cluster_sql("SET search_path = kota; SELECT trim_log('a', 0, 500)"), 0);
    put(one, &blobs[0]);
    put(one, &blobs[1]);
    cluster_ok(snapshot(one, "a", 20, &body, blobs, 2, 5), &err);
    assert_int_equal(head_of(one, "a").first, 16);
    free(body.bytes);
    free(blobs[0].bytes);
    free(blobs[1].bytes);
    cluster_destroy(one);
}

static void one_node_at_a_time_makes_a_snapshot(void **state)
{
    struct cluster *one = cluster_must(NULL, "one"), *two = cluster_must(NULL, "two");
    struct made body = make(1, 100);

    (void)state;
    append_some(one, "a", 1, 20);
    /* node one has begun, and is still at it */
    assert_int_equal(
        cluster_sql("SET search_path = kota; SELECT claim_snapshot('one', 'a', 10, 'a-10', "
                    "sha256('x'), '')"),
        0);
    assert_int_equal(snapshot(two, "a", 20, &body, NULL, 0, 0), ERR_CONFLICT);
    assert_non_null(strstr(err.msg, "another node"));
    /* it has died */
    cluster_sql("UPDATE kota.snapshot SET written = written - interval '2 min'");
    cluster_ok(snapshot(two, "a", 20, &body, NULL, 0, 0), &err);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.snapshot"), 1);
    free(body.bytes);
    cluster_destroy(one);
    cluster_destroy(two);
}

struct racer {
    const char *node;
    unsigned snapshots, conflicts;
    uint64_t seed;
};

/* Appends, makes snapshots with random tails, and reads all that should be there, all the while. */
static void *append_and_trim(void *context)
{
    struct racer *racer = context;
    struct cluster_options options = {.conninfo = test_postgres.conninfo, .node = racer->node};
    struct random random = {racer->seed};
    struct err error = {.code = ERR_OK};
    struct cluster *cluster = cluster_create(&options, &error);

    CHECK(cluster && !cluster_is_away(cluster));
    for (unsigned i = 0; i < 300; i++) {
        uint8_t data[CLUSTER_TEST_BYTES_MAX];
        struct cluster_head *heads;
        struct cluster_entry entry;
        char op_id[CLUSTER_OP_ID_MAX + 1];
        size_t count, at;
        bool in_doubt;

        CHECK(cluster_heads(cluster, &heads, &count, &error) == ERR_OK);
        CHECK(count <= 1);
        if (count == 1)
            CHECK(heads[0].first <= heads[0].snapshot + 1 &&
                  heads[0].snapshot <= heads[0].revision);
        snprintf(op_id, sizeof op_id, "%s-%u", racer->node, i);
        entry = cluster_test_entry("a", count ? heads[0].revision + 1 : 1, op_id, 300, data);
        CHECK(cluster_append(cluster, &entry, 1, &at, &in_doubt, &error) == ERR_OK ||
              error.code == ERR_CONFLICT);
        if (error.code == ERR_OK && random_below(&random, 10) == 0) {
            if (cluster_put_snapshot(cluster, "a", entry.revision, op_id, op_id, strlen(op_id),
                                     NULL, 0, random_below(&random, 20), &error) == ERR_OK)
                racer->snapshots++;
            else
                CHECK(error.code == ERR_CONFLICT && ++racer->conflicts);
        }
        free(heads);
    }
    cluster_destroy(cluster);
    return NULL;
}

/* The newest snapshot and the entries behind it always make the whole. */
static void trimming_races_with_appending(void **state)
{
    struct racer racers[2] = {{.node = "one", .seed = 1}, {.node = "two", .seed = 2}};
    struct cluster *reader = cluster_must(NULL, "reader");
    pthread_t threads[2];
    struct cluster_head head;

    (void)state;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, append_and_trim, &racers[i]) == 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        printf("# seed %llu: %u snapshots, %u conflicts\n", (unsigned long long)racers[i].seed,
               racers[i].snapshots, racers[i].conflicts);
    }
    head = head_of(reader, "a");
    assert_true(head.snapshot > 0 && head.first <= head.snapshot + 1);
    assert_int_equal(cluster_must_read(reader, "a", head.first - 1, NULL),
                     head.revision - head.first + 1);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.edit"), head.revision - head.first + 1);
    cluster_destroy(reader);
}

/* ---- adopting and garbage -------------------------------------------------------------------- */

static void a_locale_is_adopted_once(void **state)
{
    struct cluster *one = cluster_must(NULL, "one"), *two = cluster_must(NULL, "two");
    struct made body = make(1, 100), tile = make(2, 1000);
    char op_id[CLUSTER_OP_ID_MAX + 1];
    struct cluster_head head;
    uint64_t revision;
    void *bytes;
    size_t length;

    (void)state;
    assert_int_equal(cluster_adopt(one, "old", 41, "~41", body.bytes, 100,
                                   (const uint8_t(*)[CLUSTER_HASH_BYTES])tile.hash, 1, &err),
                     ERR_NOT_FOUND);
    put(one, &tile);
    cluster_ok(cluster_adopt(one, "old", 41, "~41", body.bytes, 100,
                             (const uint8_t(*)[CLUSTER_HASH_BYTES])tile.hash, 1, &err),
               &err);
    assert_int_equal(cluster_adopt(two, "old", 41, "~41", body.bytes, 100, NULL, 0, &err),
                     ERR_CONFLICT);
    head = head_of(two, "old");
    assert_int_equal(head.revision, 41);
    assert_int_equal(head.first, 42);
    assert_int_equal(head.snapshot, 41);
    cluster_ok(cluster_get_snapshot(two, "old", &revision, op_id, &bytes, &length, &err), &err);
    assert_int_equal(revision, 41);
    assert_string_equal(op_id, "~41");
    free(bytes);
    assert_int_equal(cluster_read(two, "old", 40, NULL, NULL, &length, &err), ERR_NOT_FOUND);
    append_some(two, "old", 42, 44);
    assert_int_equal(cluster_must_read(one, "old", 41, NULL), 3);
    free(body.bytes);
    free(tile.bytes);
    cluster_destroy(one);
    cluster_destroy(two);
}

/* Where the entry was trimmed, or never was, the snapshot says what the log stands on. */
static void an_append_on_a_snapshot_that_is_another_is_refused(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    struct made body = make(1, 100);
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry = cluster_test_entry("a", 21, "mine", 10, data);
    bool in_doubt;
    size_t at;

    (void)state;
    append_some(one, "a", 1, 20);
    cluster_ok(snapshot(one, "a", 20, &body, NULL, 0, 0), &err);
    assert_int_equal(head_of(one, "a").first, 21);
    strcpy(entry.before, "lost-20");
    assert_int_equal(cluster_append(one, &entry, 1, &at, &in_doubt, &err), ERR_CONFLICT);
    strcpy(entry.before, "a-20");
    cluster_ok(cluster_append(one, &entry, 1, &at, &in_doubt, &err), &err);
    cluster_ok(cluster_adopt(one, "old", 41, "~41", body.bytes, 100, NULL, 0, &err), &err);
    entry = cluster_test_entry("old", 42, "o-42", 10, data);
    strcpy(entry.before, "~other-41");
    assert_int_equal(cluster_append(one, &entry, 1, &at, &in_doubt, &err), ERR_CONFLICT);
    strcpy(entry.before, "~41");
    cluster_ok(cluster_append(one, &entry, 1, &at, &in_doubt, &err), &err);
    free(body.bytes);
    cluster_destroy(one);
}

static void garbage_is_what_nothing_names(void **state)
{
    struct cluster *one = cluster_must(NULL, "one");
    struct made body = make(1, 100), in_snapshot = make(2, 9 << 20), in_entry = make(3, 1000),
                stray = make(4, 9 << 20);
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry = cluster_test_entry("b", 1, "b-1", 10, data);
    uint64_t went;
    bool in_doubt;
    size_t at, length;
    void *bytes;

    (void)state;
    append_some(one, "a", 1, 5);
    put(one, &in_snapshot);
    put(one, &in_entry);
    put(one, &stray);
    entry.blobs = (const uint8_t(*)[CLUSTER_HASH_BYTES])in_entry.hash;
    entry.blob_count = 1;
    cluster_ok(cluster_append(one, &entry, 1, &at, &in_doubt, &err), &err);
    cluster_ok(snapshot(one, "a", 5, &body, &in_snapshot, 1, 0), &err);
    /* young, then old */
    cluster_ok(cluster_collect(one, 3600000, 0, &went, &err), &err);
    assert_int_equal(went, 0);
    cluster_sql("UPDATE kota.blob SET written = written - interval '2 hours';"
                "UPDATE kota.blob_part SET written = written - interval '2 hours'");
    cluster_ok(cluster_collect(one, 3600000, 3600000, &went, &err), &err);
    assert_int_equal(went, 0); /* somebody has just looked */
    cluster_ok(cluster_collect(one, 3600000, 0, &went, &err), &err);
    assert_int_equal(went, 1);
    must_get(one, &in_snapshot);
    must_get(one, &in_entry);
    assert_int_equal(cluster_get_blob(one, stray.hash, &bytes, &length, &err), ERR_NOT_FOUND);
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.blob_part"), 1 + 3 + 1);
    /* one that is asked for is young again */
    put(one, &stray);
    cluster_sql("UPDATE kota.blob SET written = written - interval '2 hours'");
    cluster_ok(cluster_have_blobs(one, (const uint8_t(*)[CLUSTER_HASH_BYTES])stray.hash, 1,
                                  &in_doubt, &err),
               &err);
    assert_true(in_doubt);
    cluster_ok(cluster_collect(one, 3600000, 0, &went, &err), &err);
    assert_int_equal(went, 0);
    must_get(one, &stray);
    free(body.bytes);
    free(in_snapshot.bytes);
    free(in_entry.bytes);
    free(stray.bytes);
    cluster_destroy(one);
}

#define TEST(name) cmocka_unit_test_setup(name, cluster_test_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(blobs_of_all_sizes_come_back),
        TEST(many_blobs_are_on_the_way_at_a_time),
        TEST(who_puts_the_same_blobs_does_not_fail),
        TEST(a_blob_that_is_refused_ends_the_putting),
        TEST(a_damaged_blob_is_found_and_put_again),
        TEST(an_entry_names_only_blobs_that_are_there),
        TEST(a_held_append_is_durable_like_any_other),
        TEST(a_snapshot_stands_for_what_is_trimmed),
        TEST(an_op_id_is_known_when_its_edit_was_trimmed),
        TEST(an_append_on_a_snapshot_that_is_another_is_refused),
        TEST(nothing_is_trimmed_for_a_snapshot_that_is_not_whole),
        TEST(one_node_at_a_time_makes_a_snapshot),
        TEST(trimming_races_with_appending),
        TEST(a_locale_is_adopted_once),
        TEST(garbage_is_what_nothing_names),
    };
    const char *why;

    if (!postgres_is_there(&why)) {
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    return cmocka_run_group_tests(tests, cluster_tests_begin, cluster_tests_end);
}
