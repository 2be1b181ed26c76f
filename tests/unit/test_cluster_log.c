/*
 * The shared log on a real PostgreSQL: what is appended comes back, in order, to everybody.
 */
#include "cluster/cluster.h"

#include "support/postgres.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct postgres postgres;

static int start(void **state)
{
    const char *why;

    (void)state;
    if (postgres_is_there(&why))
        postgres_start(&postgres);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    postgres_remove(&postgres);
    return 0;
}

static void it_connects(void **state)
{
    struct cluster_options options = {.conninfo = postgres.conninfo, .node = "one", .url = ""};
    struct err err = {.code = ERR_OK};
    struct cluster *cluster = cluster_create(&options, &err);

    (void)state;
    if (!cluster)
        fail_msg("%s", err.msg);
    assert_false(cluster_is_away(cluster));
    cluster_destroy(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_connects)};

    return cmocka_run_group_tests(tests, start, stop);
}
