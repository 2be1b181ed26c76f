/*
 * Several writers of one log at once: the order has no gap, each change is there once, and each
 * round of a race has one winner.
 *
 * KOTA_LONG=1: 1,000 rounds of leases instead of 100.
 */
#include "replica/cluster.h"

#include "base/check.h"
#include "support/cluster_fixture.h"
#include "support/random.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- appending ------------------------------------------------------------------------------- */

enum { WRITERS = 2, LOCALES = 3, EACH = 2500, BATCH_MAX = 4, ROUNDS_TO_HOLD = 3 };

struct writer {
    int number;
    uint64_t seed;
    uint64_t heads[LOCALES]; /* as it knows them */
    uint64_t conflicts, holds;
};

static void locale_name(char *out, size_t room, int locale)
{
    snprintf(out, room, "l%d", locale);
}

static void follow(struct cluster *cluster, struct writer *writer)
{
    struct cluster_head *heads;
    struct err err = {.code = ERR_OK};
    size_t count;
    char name[16];

    CHECK(cluster_heads(cluster, &heads, &count, &err) == ERR_OK);
    for (size_t i = 0; i < count; i++)
        for (int l = 0; l < LOCALES; l++) {
            locale_name(name, sizeof name, l);
            if (strcmp(heads[i].locale, name) == 0)
                writer->heads[l] = heads[i].revision;
        }
    free(heads);
}

/* One batch of changes to random locales, tried until it is there. */
static void append_batch(struct cluster *cluster, struct writer *writer, struct random *random,
                         unsigned *made)
{
    static _Thread_local uint8_t data[BATCH_MAX][CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entries[BATCH_MAX];
    int locales[BATCH_MAX];
    size_t count = 1 + random_below(random, BATCH_MAX), at;
    size_t bytes = random_below(random, 600);
    char names[LOCALES][CLUSTER_ID_MAX + 1] = {{0}}, op_id[64];
    struct err err = {.code = ERR_OK};
    bool in_doubt;

    count = *made + count > EACH ? EACH - *made : count;
    for (size_t i = 0; i < count; i++)
        locales[i] = (int)random_below(random, LOCALES);
    for (int l = 0; l < LOCALES; l++)
        locale_name(names[l], sizeof names[l], l);
    for (int tries = 1;; tries++) {
        uint64_t next[LOCALES];
        enum err_code code;

        if (tries > ROUNDS_TO_HOLD) {
            CHECK(cluster_hold(cluster, (const char(*)[CLUSTER_ID_MAX + 1]) names, LOCALES, &err) ==
                  ERR_OK);
            writer->holds++;
            follow(cluster, writer);
        }
        memcpy(next, writer->heads, sizeof next);
        for (size_t i = 0; i < count; i++) {
            snprintf(op_id, sizeof op_id, "w%d-%u", writer->number, *made + (unsigned)i);
            entries[i] =
                cluster_test_entry(names[locales[i]], ++next[locales[i]], op_id, bytes, data[i]);
        }
        code = cluster_append(cluster, entries, count, &at, &in_doubt, &err);
        CHECK(!in_doubt && (code == ERR_OK || code == ERR_CONFLICT));
        if (code == ERR_OK) {
            memcpy(writer->heads, next, sizeof next);
            break;
        }
        CHECK(tries <= ROUNDS_TO_HOLD); /* who holds does not lose */
        writer->conflicts++;
        follow(cluster, writer);
    }
    *made += (unsigned)count;
}

static void *write_all(void *context)
{
    struct writer *writer = context;
    struct random random = {writer->seed};
    struct cluster_options options = {.conninfo = test_postgres.conninfo};
    struct err err = {.code = ERR_OK};
    struct cluster *cluster;
    unsigned made = 0;
    char node[16];

    snprintf(node, sizeof node, "node%d", writer->number);
    options.node = node;
    cluster = cluster_create(&options, &err);
    CHECK(cluster && !cluster_is_away(cluster));
    while (made < EACH)
        append_batch(cluster, writer, &random, &made);
    cluster_destroy(cluster);
    return NULL;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void two_writers_make_one_order(void **state)
{
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    struct cluster *reader = cluster_must(NULL, "reader");
    char(*all)[CLUSTER_OP_ID_MAX + 1] = calloc(WRITERS * EACH, sizeof *all);
    size_t total = 0;
    char name[16];

    (void)state;
    CHECK(all);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.number = i, .seed = 1000u + (unsigned)i};
        CHECK(pthread_create(&threads[i], NULL, write_all, &writers[i]) == 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        printf("# seed %llu: %llu lost rounds, held %llu times\n",
               (unsigned long long)writers[i].seed, (unsigned long long)writers[i].conflicts,
               (unsigned long long)writers[i].holds);
    }
    for (int l = 0; l < LOCALES; l++) {
        char(*op_ids)[CLUSTER_OP_ID_MAX + 1];
        size_t count;

        locale_name(name, sizeof name, l);
        count = cluster_must_read(reader, name, 0, &op_ids);
        assert_int_equal(count, cluster_must_head(reader, name));
        assert_true(total + count <= WRITERS * EACH);
        memcpy(all + total, op_ids, count * sizeof *all);
        total += count;
        free(op_ids);
    }
    assert_int_equal(total, WRITERS * EACH);
    qsort(all, total, sizeof *all, compare_ids);
    for (size_t i = 1; i < total; i++)
        assert_string_not_equal(all[i - 1], all[i]);
    free(all);
    cluster_destroy(reader);
}

/* ---- leases ---------------------------------------------------------------------------------- */

enum { CONTENDERS = 8 };

struct race {
    pthread_barrier_t barrier;
    unsigned rounds;
    uint64_t won[CONTENDERS], fences[CONTENDERS];
};

struct contender {
    struct race *race;
    unsigned number;
};

/* Areas that differ and all have one cell in common. */
static struct cluster_area area_of(unsigned contender, struct random *random)
{
    struct cluster_area area = {.locale = "desert"};
    int64_t west = random_below(random, 3), south = random_below(random, 3);

    area.first_x = -west;
    area.last_x = contender % 3;
    area.first_y = -south;
    area.last_y = contender / 3;
    return area;
}

static void *contend(void *context)
{
    struct contender *me = context;
    struct race *race = me->race;
    struct random random = {77u + me->number};
    struct cluster_options options = {.conninfo = test_postgres.conninfo};
    struct err err = {.code = ERR_OK};
    struct cluster *cluster;
    char node[16], holder[CLUSTER_ID_MAX + 1];

    snprintf(node, sizeof node, "node%u", me->number);
    options.node = node;
    cluster = cluster_create(&options, &err);
    CHECK(cluster && !cluster_is_away(cluster));
    for (unsigned round = 0; round < race->rounds; round++) {
        struct cluster_area area = area_of(me->number, &random);
        uint64_t fence = 0;
        enum err_code code;

        pthread_barrier_wait(&race->barrier);
        code = cluster_lease(cluster, &area, &fence, holder, &err);
        CHECK(code == ERR_OK || code == ERR_CONFLICT);
        CHECK(code == ERR_OK || strncmp(holder, "node", 4) == 0);
        race->fences[me->number] = code == ERR_OK ? fence : 0;
        race->won[me->number] += code == ERR_OK;
        pthread_barrier_wait(&race->barrier); /* all have tried */
        pthread_barrier_wait(&race->barrier); /* all was looked at */
        if (code == ERR_OK)
            cluster_unlease(cluster, fence);
    }
    cluster_destroy(cluster);
    return NULL;
}

static void a_race_for_a_lease_has_one_winner(void **state)
{
    struct race race = {.rounds = getenv("KOTA_LONG") ? 1000 : 100};
    struct contender contenders[CONTENDERS];
    pthread_t threads[CONTENDERS];
    uint64_t last = 0;

    (void)state;
    cluster_destroy(cluster_must(NULL, "first"));
    CHECK(pthread_barrier_init(&race.barrier, NULL, CONTENDERS + 1) == 0);
    for (unsigned i = 0; i < CONTENDERS; i++) {
        contenders[i] = (struct contender){&race, i};
        CHECK(pthread_create(&threads[i], NULL, contend, &contenders[i]) == 0);
    }
    for (unsigned round = 0; round < race.rounds; round++) {
        uint64_t winner = 0;
        unsigned winners = 0;

        pthread_barrier_wait(&race.barrier);
        pthread_barrier_wait(&race.barrier);
        for (unsigned i = 0; i < CONTENDERS; i++)
            if (race.fences[i] != 0) {
                winner = race.fences[i];
                winners++;
            }
        CHECK(winners == 1);
        CHECK(winner > last);
        last = winner;
        pthread_barrier_wait(&race.barrier);
    }
    for (unsigned i = 0; i < CONTENDERS; i++) {
        pthread_join(threads[i], NULL);
        printf("# contender %u won %llu of %u\n", i, (unsigned long long)race.won[i], race.rounds);
    }
    assert_int_equal(cluster_sql("SELECT count(*) FROM kota.lease"), 0);
    pthread_barrier_destroy(&race.barrier);
}

#define TEST(name) cmocka_unit_test_setup(name, cluster_test_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_writers_make_one_order),
        TEST(a_race_for_a_lease_has_one_winner),
    };
    const char *why;

    if (!postgres_is_there(&why)) {
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    return cmocka_run_group_tests(tests, cluster_tests_begin, cluster_tests_end);
}
