/*
 * The change feed: order, places of readers, what is held and what is gone; and the table of ops.
 */
#include "world/values/feed.h"

#include "tests/support/random.h"
#include "world/write/ops.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct feed *make_feed(size_t events_max)
{
    struct err err;
    struct feed *feed = feed_create(events_max, &err);

    assert_non_null(feed);
    return feed;
}

static void append(struct feed *feed, uint64_t sequence, const char *locale, uint64_t revision)
{
    struct feed_event event = {.sequence = sequence, .revision = revision};

    snprintf(event.locale, sizeof event.locale, "%s", locale);
    feed_begin(feed);
    feed_append(feed, &event);
    feed_end(feed);
}

static void events_come_in_order_and_once(void **state)
{
    struct feed *feed = make_feed(100);
    struct feed_event events[7];
    uint64_t after = 0, next = 1;
    bool held;

    (void)state;
    assert_int_equal(feed_read(feed, NULL, &after, events, 7, &held), 0);
    assert_true(held);
    for (uint64_t i = 1; i <= 30; i++)
        append(feed, i, i % 3 == 0 ? "a" : "b", i);
    for (size_t count; (count = feed_read(feed, NULL, &after, events, 7, &held)) > 0;)
        for (size_t i = 0; i < count; i++)
            assert_int_equal(events[i].sequence, next++);
    assert_int_equal(next, 31);
    assert_int_equal(after, 30);

    after = 4;
    next = 6;
    while (feed_read(feed, "a", &after, events, 2, &held) > 0)
        for (size_t i = 0; i < 2 && next <= 30; i++, next += 3)
            assert_int_equal(events[i].sequence, next);
    assert_int_equal(next, 33);
    assert_int_equal(after, 30);
    feed_destroy(feed);
}

static void who_is_too_slow_is_told_so(void **state)
{
    struct feed *feed = make_feed(10);
    struct feed_event events[20];
    uint64_t after = 0;
    bool held;

    (void)state;
    for (uint64_t i = 1; i <= 10; i++)
        append(feed, i, "a", i);
    assert_int_equal(feed_read(feed, NULL, &after, events, 20, &held), 10);
    after = 0;
    append(feed, 11, "a", 11);
    assert_int_equal(feed_read(feed, NULL, &after, events, 20, &held), 0);
    assert_false(held);
    assert_int_equal(after, 0);
    after = 1;
    assert_int_equal(feed_read(feed, "a", &after, events, 20, &held), 10);
    assert_true(held);
    assert_int_equal(events[0].sequence, 2);
    feed_destroy(feed);
}

static void a_gap_in_the_log_concerns_only_who_follows_all(void **state)
{
    struct feed *feed = make_feed(100);
    struct feed_event events[20];
    uint64_t after;
    bool held;

    (void)state;
    append(feed, 5, "a", 3); /* 1 to 4 were trimmed */
    append(feed, 6, "a", 4);
    append(feed, 9, "a", 5); /* 7 and 8 were another locale's */
    for (uint64_t known = 5; known < 8; known++) {
        after = known;
        assert_int_equal(feed_read(feed, NULL, &after, events, 20, &held), 0);
        assert_false(held);
    }
    after = 5;
    assert_int_equal(feed_read(feed, "a", &after, events, 20, &held), 2);
    assert_true(held);
    after = 8;
    assert_int_equal(feed_read(feed, NULL, &after, events, 20, &held), 1);
    assert_true(held);
    feed_destroy(feed);
}

static void a_revision_finds_its_place(void **state)
{
    struct feed *feed = make_feed(6);
    uint64_t after = 99;

    (void)state;
    assert_true(feed_find(feed, "a", 7, 7, &after)); /* nothing has happened since the start */
    assert_int_equal(after, 0);
    assert_false(feed_find(feed, "a", 6, 7, &after));
    for (uint64_t i = 1; i <= 8; i++)
        append(feed, i, i % 2 ? "a" : "b", 10 + i / 2); /* a: 10 11 12 13, b: 11 12 13 14 */
    assert_true(feed_find(feed, "a", 13, 13, &after));
    assert_int_equal(after, 8);
    assert_true(feed_find(feed, "a", 12, 13, &after));
    assert_int_equal(after, 6);
    assert_true(feed_find(feed, "a", 10, 13, &after)); /* 11 is the oldest that is held */
    assert_int_equal(after, 2);
    assert_false(feed_find(feed, "a", 9, 13, &after));
    assert_false(feed_find(feed, "a", 14, 13, &after));
    assert_true(feed_find(feed, "c", 1, 1, &after));
    assert_false(feed_find(feed, "c", 0, 1, &after));
    /* the reader's own snapshot may be older than the feed's end */
    assert_true(feed_find(feed, "b", 12, 12, &after));
    assert_int_equal(after, 5);
    feed_destroy(feed);
}

/* A locale that was taken anew has its revision, and no history before it. */
static void behind_a_resync_only_its_revision_is_known(void **state)
{
    struct feed *feed = make_feed(10);
    struct feed_event taken = {.sequence = 3, .locale = "a", .revision = 12, .is_resync = true};
    uint64_t after;

    (void)state;
    append(feed, 1, "a", 10);
    append(feed, 2, "a", 11);
    feed_begin(feed);
    feed_append(feed, &taken);
    feed_end(feed);
    append(feed, 4, "b", 1);
    assert_true(feed_find(feed, "a", 12, 12, &after));
    /* whose snapshot is older must hear of it, or it is never told */
    assert_false(feed_find(feed, "a", 11, 11, &after));
    append(feed, 5, "a", 13);
    assert_true(feed_find(feed, "a", 12, 13, &after));
    assert_int_equal(after, 4);
    assert_false(feed_find(feed, "a", 11, 13, &after));
    assert_false(feed_find(feed, "a", 10, 13, &after));
    feed_destroy(feed);
}

static struct op op_of(unsigned number)
{
    struct op op = {.revision = number, .answer = "answer", .answer_bytes = number % 7};

    snprintf(op.id, sizeof op.id, "op-%u", number);
    op.request[0] = (uint8_t)number;
    return op;
}

static void the_last_ops_are_known(void **state)
{
    struct err err;
    struct ops *ops = ops_create(100, &err);

    (void)state;
    assert_non_null(ops);
    for (unsigned n = 0; n < 1000; n++) {
        struct op op = op_of(n);

        assert_null(ops_find(ops, op.id));
        ops_put(ops, &op);
        for (unsigned back = 0; back < 150; back += 7) {
            struct op old = op_of(n - back);
            const struct op *found = n >= back ? ops_find(ops, old.id) : NULL;

            if (n < back || back >= 100) {
                assert_null(found);
                continue;
            }
            assert_non_null(found);
            assert_int_equal(found->revision, n - back);
            assert_int_equal(found->answer_bytes, (n - back) % 7);
            assert_memory_equal(found->request, old.request, sizeof old.request);
            if (found->answer_bytes)
                assert_memory_equal(found->answer, "answer", found->answer_bytes);
        }
    }
    ops_destroy(ops);
}

static void append_content(struct feed *feed, uint64_t sequence, size_t length, char fill)
{
    static char bytes[FEED_CONTENT_BYTES_MAX];
    struct feed_event event = {.sequence = sequence, .revision = sequence, .locale = "a"};

    memset(bytes, fill, length);
    event.content = feed_content_create(bytes, length, false);
    assert_non_null(event.content);
    feed_begin(feed);
    feed_append(feed, &event);
    feed_end(feed);
    feed_content_unref(event.content);
}

/* The newest have theirs, up to the bound; one that a reader holds outlives its event. */
static void contents_are_bounded(void **state)
{
    enum { CAPACITY = 2000, HELD = FEED_HELD_BYTES_MAX / FEED_CONTENT_BYTES_MAX };
    struct feed *feed = make_feed(CAPACITY);
    struct feed_content *first, *content;

    (void)state;
    append_content(feed, 1, 5, 'x');
    first = feed_content_of(feed, 1);
    assert_non_null(first);
    for (uint64_t i = 2; i <= 3000; i++)
        append_content(feed, i, FEED_CONTENT_BYTES_MAX, (char)(i % 100));
    for (uint64_t i = 1; i <= 3001; i++) {
        content = feed_content_of(feed, i);
        assert_int_equal(content != NULL, i > 3000 - HELD && i <= 3000);
        if (content) {
            assert_int_equal(content->length, FEED_CONTENT_BYTES_MAX);
            assert_int_equal(content->bytes[77], (char)(i % 100));
        }
        feed_content_unref(content);
    }
    assert_memory_equal(first->bytes, "xxxxx", 5);
    feed_content_unref(first);
    feed_destroy(feed);
    assert_null(feed_content_create("x", FEED_CONTENT_BYTES_MAX + 1, false));
}

/* Events that leave the ring free their contents. */
static void a_small_ring_frees_contents(void **state)
{
    struct feed *feed = make_feed(3);

    (void)state;
    for (uint64_t i = 1; i <= 50; i++)
        append_content(feed, i, i, 'y');
    for (uint64_t i = 1; i <= 50; i++) {
        struct feed_content *content = feed_content_of(feed, i);

        assert_int_equal(content != NULL, i > 47);
        feed_content_unref(content);
    }
    feed_destroy(feed);
}

struct reader {
    struct feed *feed;
    atomic_bool is_reading;
    size_t count;
};

static void *read_one(void *context)
{
    struct reader *reader = context;
    struct feed_event event;
    uint64_t after = 0;
    bool held;

    atomic_store(&reader->is_reading, true);
    reader->count = feed_read(reader->feed, "a", &after, &event, 1, &held);
    return NULL;
}

/* Once a snapshot is published its event is found, though it is appended a moment later. */
static void a_reader_waits_for_what_is_being_published(void **state)
{
    struct reader reader = {.feed = make_feed(4)};
    struct feed_event event = {.sequence = 1, .locale = "a", .revision = 1};
    pthread_t thread;

    (void)state;
    feed_begin(reader.feed);
    assert_int_equal(pthread_create(&thread, NULL, read_one, &reader), 0);
    while (!atomic_load(&reader.is_reading))
        sched_yield();
    usleep(20000); /* it is in feed_read */
    feed_append(reader.feed, &event);
    feed_end(reader.feed);
    pthread_join(thread, NULL);
    assert_int_equal(reader.count, 1);
    feed_destroy(reader.feed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_waits_for_what_is_being_published),
        cmocka_unit_test(contents_are_bounded),
        cmocka_unit_test(a_small_ring_frees_contents),
        cmocka_unit_test(events_come_in_order_and_once),
        cmocka_unit_test(who_is_too_slow_is_told_so),
        cmocka_unit_test(a_gap_in_the_log_concerns_only_who_follows_all),
        cmocka_unit_test(a_revision_finds_its_place),
        cmocka_unit_test(behind_a_resync_only_its_revision_is_known),
        cmocka_unit_test(the_last_ops_are_known),
    };

    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
