/*
 * Clusters for tests; see cluster_fixture.h.
 */
#include "support/cluster_fixture.h"

#include "base/check.h"
#include "base/content_hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

struct postgres test_postgres;

int cluster_tests_begin(void **state)
{
    const char *why;

    (void)state;
    setvbuf(stderr, NULL, _IOLBF, 0);
    if (postgres_is_there(&why))
        postgres_start(&test_postgres);
    else
        printf("# %s\n", why);
    return 0;
}

int cluster_tests_end(void **state)
{
    (void)state;
    postgres_remove(&test_postgres);
    return 0;
}

int cluster_test_begin(void **state)
{
    (void)state;
    if (test_postgres.pid > 0)
        cluster_sql("DROP SCHEMA IF EXISTS kota CASCADE");
    return 0;
}

struct cluster *cluster_must_with(const struct cluster_options *options)
{
    struct err err = {.code = ERR_OK};
    struct cluster *cluster = cluster_create(options, &err);

    if (!cluster || cluster_is_away(cluster))
        fail_msg("no cluster: %s", err.msg);
    return cluster;
}

struct cluster *cluster_must(const char *conninfo, const char *node)
{
    struct cluster_options options = {.conninfo = conninfo ? conninfo : test_postgres.conninfo,
                                      .node = node,
                                      .url = "http://127.0.0.1:1"};

    return cluster_must_with(&options);
}

void cluster_ok(enum err_code code, const struct err *err)
{
    if (code != ERR_OK)
        fail_msg("%s: %s", err_title(code), err->msg);
}

struct cluster_entry cluster_test_entry(const char *locale, uint64_t revision, const char *op_id,
                                        size_t bytes, uint8_t *data)
{
    struct cluster_entry entry = {.revision = revision, .kind = (int)(revision % 7)};
    uint64_t mix = revision * 0x9e3779b97f4a7c15u;

    CHECK(bytes <= CLUSTER_TEST_BYTES_MAX);
    snprintf(entry.locale, sizeof entry.locale, "%s", locale);
    snprintf(entry.op_id, sizeof entry.op_id, "%s", op_id);
    snprintf(entry.layer, sizeof entry.layer, "layer%u", (unsigned)(revision % 3));
    snprintf(entry.source, sizeof entry.source, "edits");
    mix = fnv1a(mix, op_id, strlen(op_id));
    for (size_t i = 0; i < sizeof entry.request; i++)
        entry.request[i] = (uint8_t)(mix >> i % 8);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(mix >> i % 56);
    entry.has_rect = revision % 2 == 0;
    for (unsigned i = 0; i < 4 && entry.has_rect; i++)
        entry.rect[i] = (uint32_t)(mix >> 8 * i);
    entry.data = data;
    entry.bytes = bytes;
    return entry;
}

void cluster_must_append(struct cluster *cluster, const char *locale, uint64_t revision,
                         const char *op_id)
{
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry entry = cluster_test_entry(locale, revision, op_id, revision % 500, data);
    struct err err = {.code = ERR_OK};
    size_t at;
    bool in_doubt;

    cluster_ok(cluster_append(cluster, &entry, 1, &at, &in_doubt, &err), &err);
    assert_false(in_doubt);
}

uint64_t cluster_must_head(struct cluster *cluster, const char *locale)
{
    struct cluster_head *heads;
    struct err err = {.code = ERR_OK};
    uint64_t revision = 0;
    size_t count;

    cluster_ok(cluster_heads(cluster, &heads, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        if (strcmp(heads[i].locale, locale) == 0)
            revision = heads[i].revision;
    free(heads);
    return revision;
}

struct seen {
    const char *locale;
    char (*op_ids)[CLUSTER_OP_ID_MAX + 1];
    size_t count, room;
    uint64_t revision;
};

static bool see(void *context, const struct cluster_entry *entry, struct err *err)
{
    struct seen *seen = context;
    uint8_t data[CLUSTER_TEST_BYTES_MAX];
    struct cluster_entry should =
        cluster_test_entry(seen->locale, entry->revision, entry->op_id, entry->bytes, data);

    (void)err;
    assert_int_equal(entry->revision, ++seen->revision);
    assert_string_equal(entry->locale, seen->locale);
    assert_string_equal(entry->layer, should.layer);
    assert_string_equal(entry->source, should.source);
    assert_int_equal(entry->kind, should.kind);
    assert_memory_equal(entry->request, should.request, sizeof should.request);
    assert_int_equal(entry->has_rect, should.has_rect);
    assert_memory_equal(entry->rect, should.rect, sizeof should.rect);
    if (entry->bytes > 0)
        assert_memory_equal(entry->data, data, entry->bytes);
    if (seen->count == seen->room) {
        seen->room = 2 * seen->room + 64;
        seen->op_ids = realloc(seen->op_ids, seen->room * sizeof *seen->op_ids);
        CHECK(seen->op_ids);
    }
    strcpy(seen->op_ids[seen->count++], entry->op_id);
    return true;
}

size_t cluster_must_read(struct cluster *cluster, const char *locale, uint64_t after,
                         char (**op_ids)[CLUSTER_OP_ID_MAX + 1])
{
    struct seen seen = {.locale = locale, .revision = after};
    struct err err = {.code = ERR_OK};
    size_t count;

    do {
        cluster_ok(cluster_read(cluster, locale, seen.revision, see, &seen, &count, &err), &err);
        assert_true(count <= CLUSTER_READ_MAX);
    } while (count > 0);
    if (op_ids)
        *op_ids = seen.op_ids;
    else
        free(seen.op_ids);
    return seen.count;
}

long long cluster_sql(const char *format, ...)
{
    char sql[1024], value[64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    postgres_sql(&test_postgres, sql, value, sizeof value);
    return strtoll(value, NULL, 10);
}
