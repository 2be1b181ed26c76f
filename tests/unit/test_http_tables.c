/*
 * The wheel of deadlines and the table of addresses, each against a plain model under a seed; and
 * what a body is charged while it grows.
 */
#include "http/peers.h"
#include "http/reply.h"
#include "http/wheel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define TIMERS 200
#define TICK_MS 10
#define SEED 20171

struct tracked {
    struct http_timer timer;
    uint64_t wanted_ms; /* 0: none */
};

static struct tracked tracked[TIMERS];
static uint64_t clock_ms;
static struct http_wheel wheel;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void on_expired(struct http_timer *timer)
{
    struct tracked *one = (struct tracked *)(void *)timer;

    if (one->wanted_ms == 0 || clock_ms < one->wanted_ms || clock_ms > one->wanted_ms + 2 * TICK_MS)
        fail_msg("expired at %llu, wanted at %llu", (unsigned long long)clock_ms,
                 (unsigned long long)one->wanted_ms);
    one->wanted_ms = 0;
}

static void timers_expire_in_time_whatever_is_changed(void **state)
{
    uint64_t random = SEED;

    (void)state;
    print_message("seed %d\n", SEED);
    clock_ms = 12345;
    http_wheel_init(&wheel, clock_ms, TICK_MS);
    for (int step = 0; step < 20000; step++) {
        struct tracked *one = &tracked[next_random(&random) % TIMERS];
        uint64_t choice = next_random(&random) % 8;

        if (choice == 0) {
            http_wheel_remove(&one->timer);
            one->wanted_ms = 0;
        } else if (choice == 1) {
            one->wanted_ms = 0;
            http_wheel_set(&wheel, &one->timer, 0);
        } else {
            /* up to twice the span of the wheel */
            one->wanted_ms = clock_ms + 1 + next_random(&random) % (choice < 5 ? 100 : 5120);
            http_wheel_set(&wheel, &one->timer, one->wanted_ms);
        }
        clock_ms += next_random(&random) % 3 == 0 ? TICK_MS : 0;
        http_wheel_advance(&wheel, clock_ms, on_expired);
        for (size_t i = 0; i < TIMERS; i++)
            if (tracked[i].wanted_ms && tracked[i].wanted_ms + 2 * TICK_MS < clock_ms)
                fail_msg("step %d: timer %zu is overdue", step, i);
    }
}

static size_t expired;

static void count_expired(struct http_timer *timer)
{
    (void)timer;
    expired++;
}

/* A process that was stopped, or whose loop was held: turns of the wheel have gone by unseen. */
static void after_a_long_pause_all_that_is_due_expires(void **state)
{
    static struct http_timer timers[HTTP_WHEEL_SLOTS];
    static struct http_wheel one;

    (void)state;
    for (uint64_t turns = 1; turns <= 3; turns++) {
        uint64_t span_ms = (uint64_t)HTTP_WHEEL_SLOTS * TICK_MS, now_ms = 12345;

        http_wheel_init(&one, now_ms, TICK_MS);
        for (size_t i = 0; i < HTTP_WHEEL_SLOTS; i++)
            http_wheel_set(&one, &timers[i], now_ms + 1 + i * TICK_MS);
        expired = 0;
        now_ms += turns * span_ms + 5 * TICK_MS;
        http_wheel_advance(&one, now_ms, count_expired);
        assert_int_equal(expired, HTTP_WHEEL_SLOTS);
        http_wheel_set(&one, &timers[0], now_ms + 1);
        http_wheel_advance(&one, now_ms + 2 * TICK_MS, count_expired);
        assert_int_equal(expired, HTTP_WHEEL_SLOTS + 1);
    }
}

static struct http_peer peer_of_text(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return http_peer_of((struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return http_peer_of((struct sockaddr *)&v6);
}

static void loopback_is_known_in_each_form(void **state)
{
    static const struct {
        const char *text;
        bool is_loopback;
    } cases[] = {
        {"127.0.0.1", true},  {"127.9.8.7", true},   {"::1", true},  {"::ffff:127.0.0.1", true},
        {"128.0.0.1", false}, {"10.127.0.1", false}, {"::2", false}, {"::ffff:10.0.0.1", false},
        {"fe80::1", false},   {"2001:db8::1", false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (peer_of_text(cases[i].text).is_loopback != cases[i].is_loopback)
            fail_msg("%s", cases[i].text);
    assert_true(peer_of_text("2001:db8:1:2::5").key == peer_of_text("2001:db8:1:2:ff::6").key);
    assert_true(peer_of_text("2001:db8:1:2::5").key != peer_of_text("2001:db8:1:3::5").key);
    assert_true(peer_of_text("10.0.0.1").key == peer_of_text("::ffff:10.0.0.1").key);
}

static void a_unix_peer_is_known_by_its_user(void **state)
{
    struct http_peer peer;
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    peer = http_peer_of_unix(pair[0]);
    assert_true(peer.has_uid && peer.is_loopback);
    assert_int_equal(peer.uid, getuid());
    assert_true(peer.key != peer_of_text("127.0.0.1").key);
    assert_false(peer_of_text("127.0.0.1").has_uid);
    close(pair[0]);
    close(pair[1]);
    assert_false(http_peer_of_unix(-1).has_uid);
}

static void the_table_counts_like_a_plain_array(void **state)
{
    enum { KEYS = 100, CONNECTIONS = 300, PER_ADDRESS = 5 };
    struct http_peers *peers = http_peers_create(CONNECTIONS, SEED);
    unsigned held[KEYS] = {0}, total = 0;
    uint64_t random = SEED;

    (void)state;
    for (int step = 0; step < 100000; step++) {
        size_t key = next_random(&random) % KEYS;
        struct http_peer peer = {.key = key << 20};

        if (next_random(&random) % 2 && total < CONNECTIONS) {
            bool is_in = http_peers_enter(peers, peer, PER_ADDRESS);

            if (is_in != (held[key] < PER_ADDRESS))
                fail_msg("step %d: address with %u connections, entered: %d", step, held[key],
                         is_in);
            held[key] += is_in;
            total += is_in;
        } else if (held[key]) {
            http_peers_leave(peers, peer);
            held[key]--;
            total--;
        }
    }
    http_peers_destroy(peers);
}

/* The budget holds what the body has, and nothing afterwards. */
static void a_growing_body_is_charged_once(void **state)
{
    struct http_budget budget = {.most = 100000};
    struct http_reply reply = {.budget = &budget};

    (void)state;
    for (int i = 0; i < 60; i++) {
        assert_non_null(http_reply_reserve(&reply, 1000));
        http_reply_advance(&reply, 1000);
        assert_int_equal(atomic_load(&budget.held),
                         reply.body_capacity > 16 * 1024 ? reply.body_capacity : 0);
    }
    assert_null(http_reply_reserve(&reply, 41000));
    http_reply_free(&reply);
    assert_int_equal(atomic_load(&budget.held), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_expire_in_time_whatever_is_changed),
        cmocka_unit_test(after_a_long_pause_all_that_is_due_expires),
        cmocka_unit_test(loopback_is_known_in_each_form),
        cmocka_unit_test(a_unix_peer_is_known_by_its_user),
        cmocka_unit_test(the_table_counts_like_a_plain_array),
        cmocka_unit_test(a_growing_body_is_charged_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
