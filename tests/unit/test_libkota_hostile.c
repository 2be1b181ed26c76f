/*
 * The client library against servers that answer wrongly, slowly, or not at all.
 *
 * What is timed here has a margin of seconds above a time-out of a fraction of one, and what it is
 * held against would take a minute.
 */
#include "client/lib/kota.h"
#include "support/fake_http.h"
#include "support/pause.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const double timeout_s = 0.4, margin_s = 100;

static double clock_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct kota_client *open_at(uint16_t port, double seconds, unsigned tries_max)
{
    struct kota_options options;
    struct kota_client *client;
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/behind", port);
    kota_options_init(&options, sizeof(options));
    options.url = url;
    options.timeout_s = seconds;
    options.tries_max = tries_max;
    options.answer_bytes_max = 1 << 20;
    client = kota_open(&options);
    assert_null(kota_open_error(client));
    return client;
}

static void assert_kind(struct kota_answer *answer, enum kota_error_kind kind, const char *what)
{
    const struct kota_error *error = kota_answer_error(answer);
    enum kota_error_kind got = error ? error->kind : KOTA_ERROR_NONE;

    if (got != kind)
        fail_msg("%s: %s (%s), expected %s", what, kota_error_name(got),
                 error ? error->message : "", kota_error_name(kind));
    if (error && !*error->message)
        fail_msg("%s: an error without a message", what);
    kota_answer_free(answer);
}

/* ---- garbage --------------------------------------------------------------------------------- */

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static const struct garbage {
    const char *what, *answer;
    enum kota_error_kind kind;
} garbage[] = {
    {"a plain answer", OK_HEAD "Content-Length: 2\r\n\r\n{}", KOTA_ERROR_NONE},
    {"chunks", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
     KOTA_ERROR_NONE},
    {"an early answer", "HTTP/1.1 100 Continue\r\n\r\n" OK_HEAD "Content-Length: 2\r\n\r\n{}",
     KOTA_ERROR_NONE},
    {"an early answer with a length",
     "HTTP/1.1 103 Early Hints\r\nContent-Length: 60\r\n\r\n" OK_HEAD "Content-Length: 2\r\n\r\n{}",
     KOTA_ERROR_NONE},
    {"no body by its status", "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
     KOTA_ERROR_NONE},
    {"an empty header", OK_HEAD "X:\r\nContent-Length: 0\r\n\r\n", KOTA_ERROR_NONE},
    {"more than its length", OK_HEAD "Content-Length: 2\r\n\r\n{}{}{}", KOTA_ERROR_NONE},
    {"nothing", "", KOTA_ERROR_LOST},
    {"noise", "\x16\x03\x01\x02 what?\r\n\r\n", KOTA_ERROR_PROTOCOL},
    {"a request", "GET / HTTP/1.1\r\n\r\n", KOTA_ERROR_PROTOCOL},
    {"another protocol", "SSH-2.0-OpenSSH_9.2\r\n", KOTA_ERROR_PROTOCOL},
    {"half a head", OK_HEAD "Content-Len", KOTA_ERROR_LOST},
    {"half a body", OK_HEAD "Content-Length: 10\r\n\r\n{}", KOTA_ERROR_LOST},
    {"half a chunk", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nab", KOTA_ERROR_LOST},
    {"chunks without an end", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
     KOTA_ERROR_LOST},
    {"a chunk of no size", OK_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
     KOTA_ERROR_PROTOCOL},
    {"a chunk of a huge size", OK_HEAD "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}",
     KOTA_ERROR_PROTOCOL},
    {"length and chunks",
     OK_HEAD "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
     KOTA_ERROR_PROTOCOL},
    {"two lengths", OK_HEAD "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
     KOTA_ERROR_PROTOCOL},
    {"a negative length", OK_HEAD "Content-Length: -2\r\n\r\n{}", KOTA_ERROR_PROTOCOL},
    {"an endless length", OK_HEAD "Content-Length: 99999999999999999999\r\n\r\n{}",
     KOTA_ERROR_PROTOCOL},
    {"a long length", OK_HEAD "Content-Length: 1000000000000\r\n\r\n{}", KOTA_ERROR_TOO_LONG},
    {"no length", OK_HEAD "\r\n{}", KOTA_ERROR_PROTOCOL},
    {"a coding", OK_HEAD "Transfer-Encoding: gzip\r\n\r\n{}", KOTA_ERROR_PROTOCOL},
    {"another protocol by 101",
     "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n{}", KOTA_ERROR_PROTOCOL},
    {"a redirect", "HTTP/1.1 301 Moved\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n",
     KOTA_ERROR_PROBLEM},
    {"a page", "HTTP/1.1 500 Oh\r\nContent-Length: 13\r\n\r\n<html>\r\n\x01\x02...",
     KOTA_ERROR_PROBLEM},
    {"a problem of wrong types",
     "HTTP/1.1 422 Oh\r\nContent-Length: 68\r\n\r\n"
     "{\"title\":7,\"detail\":[],\"errors\":{\"pointer\":1},\"limit\":\"a\",\"got\":null}",
     KOTA_ERROR_PROBLEM},
};

enum { GARBAGE_COUNT = sizeof(garbage) / sizeof(garbage[0]) };

static void serve_garbage(struct fake_http *server, int fd, unsigned number, void *context)
{
    char request[8192];

    (void)server;
    (void)context;
    if (fake_read_request(fd, request, sizeof(request)) && number < GARBAGE_COUNT)
        fake_send(fd, garbage[number].answer);
}

static void garbage_is_an_error_of_its_kind(void **state)
{
    struct fake_http *server = fake_http_start(serve_garbage, NULL);

    (void)state;
    for (size_t i = 0; i < GARBAGE_COUNT; i++) {
        /* a new client each, so that the number of the connection is that of the case */
        struct kota_client *client = open_at(fake_http_port(server), 60, 1);

        assert_kind(kota_call(client, kota_limits()), garbage[i].kind, garbage[i].what);
        kota_close(client, NULL, NULL);
    }
    fake_http_stop(server);
}

static void serve_endless(struct fake_http *server, int fd, unsigned number, void *context)
{
    static const char *const heads[] = {OK_HEAD "X: ", OK_HEAD,
                                        OK_HEAD "Transfer-Encoding: chunked\r\n\r\n", "",
                                        OK_HEAD "Content-Length: 1\r\nX-"};
    static const char *const pieces[] = {
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "A: b\r\n",
        "10\r\n0123456789abcdef\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "aaaaaaaaaaaaaaaaaaaaaaa"};
    char request[8192];

    (void)server;
    (void)context;
    if (!fake_read_request(fd, request, sizeof(request)) || !fake_send(fd, heads[number]))
        return;
    while (fake_send(fd, pieces[number]))
        continue;
}

static void endless_answers_are_cut(void **state)
{
    static const enum kota_error_kind kinds[] = {KOTA_ERROR_TOO_LONG, KOTA_ERROR_TOO_LONG,
                                                 KOTA_ERROR_TOO_LONG, KOTA_ERROR_PROTOCOL,
                                                 KOTA_ERROR_TOO_LONG};
    struct fake_http *server = fake_http_start(serve_endless, NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct kota_client *client = open_at(fake_http_port(server), 60, 1);

        assert_kind(kota_call(client, kota_limits()), kinds[i], "endless");
        kota_close(client, NULL, NULL);
    }
    fake_http_stop(server);
}

static const char *const wrong_contents[] = {"",
                                             "nonsense",
                                             "{}",
                                             "{\"results\":3}",
                                             "{\"results\":[]}",
                                             "{\"results\":[3]}",
                                             "[]",
                                             "null",
                                             "3",
                                             "{\"results\":[{\"status\":\"maybe\",\"height\":1}]}",
                                             "{\"a",
                                             "\"\\ud8\"",
                                             "{}x"};

static void serve_contents(struct fake_http *server, int fd, unsigned number, void *context)
{
    char request[8192], answer[512];

    (void)server;
    (void)context;
    (void)number;
    for (size_t i = 0; fake_read_request(fd, request, sizeof(request)); i++) {
        snprintf(answer, sizeof(answer),
                 OK_HEAD "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                 strlen(wrong_contents[i]), wrong_contents[i]);
        fake_send(fd, answer);
    }
}

static void wrong_contents_are_told_by_the_reader(void **state)
{
    struct fake_http *server = fake_http_start(serve_contents, NULL);
    struct kota_client *client = open_at(fake_http_port(server), 60, 1);

    (void)state;
    for (size_t i = 0; i < sizeof(wrong_contents) / sizeof(wrong_contents[0]); i++) {
        const double xy[2] = {1, 2};
        struct kota_answer *answer = kota_call(client, kota_height("a", xy, 1, 0));
        struct kota_height height;

        assert_null(kota_answer_error(answer));
        assert_int_equal(kota_answer_revision(answer), 0);
        if (kota_read_height(answer, &height, 1))
            fail_msg("%s was read", wrong_contents[i]);
        assert_kind(answer, KOTA_ERROR_CONTENT, wrong_contents[i]);
    }
    assert_int_equal(fake_http_connections(server), 1);
    kota_close(client, NULL, NULL);
    fake_http_stop(server);
}

/* ---- slow ------------------------------------------------------------------------------------ */

enum slowness { SILENT, DRIPS_HEAD, DRIPS_BODY, DEAF, PAUSES_BEFORE_END, SLOWNESS_COUNT };

static void serve_slowly(struct fake_http *server, int fd, unsigned number, void *context)
{
    enum slowness how = *(const enum slowness *)context;
    char request[8192];

    (void)number;
    if (how == DEAF) {
        fake_pause(server, 60000);
        return;
    }
    if (!fake_read_request(fd, request, sizeof(request)))
        return;
    if (how == DRIPS_BODY)
        fake_send(fd, OK_HEAD "Content-Length: 100000\r\n\r\n");
    if (how == DRIPS_HEAD)
        fake_send(fd, OK_HEAD "X: ");
    if (how == PAUSES_BEFORE_END)
        fake_send(fd, OK_HEAD "Content-Length: 3\r\n\r\n{}");
    for (int i = 0; i < 6000 && fake_pause(server, 10); i++)
        if ((how == DRIPS_HEAD || how == DRIPS_BODY) && !fake_send(fd, "a"))
            return;
}

static void no_call_outlasts_its_time(void **state)
{
    char *much = calloc(1, 32 << 20);

    (void)state;
    assert_non_null(much);
    for (enum slowness how = SILENT; how < SLOWNESS_COUNT; how++) {
        struct fake_http *server = fake_http_start(serve_slowly, &how);
        struct kota_client *client = open_at(fake_http_port(server), timeout_s, 4);
        struct kota_request *request = kota_request_new("POST", "/v1/anything");
        double start_s = clock_s();

        kota_request_body_borrowed(request, "application/octet-stream", much, 32 << 20);
        assert_kind(kota_call(client, request), KOTA_ERROR_TIMEOUT, "a slow server");
        assert_true(clock_s() - start_s >= timeout_s - 0.01);
        assert_true(clock_s() - start_s < timeout_s + margin_s);
        start_s = clock_s();
        request = kota_limits(); /* its own time goes before the client's */
        kota_request_timeout(request, 0.05);
        assert_kind(kota_call(client, request), KOTA_ERROR_TIMEOUT, "a slow server");
        kota_close(client, NULL, NULL);
        assert_true(clock_s() - start_s < 0.05 + margin_s);
        fake_http_stop(server);
    }
    free(much);
}

/* A listener that never accepts, and whose queue is full: connecting takes minutes. */
static void connecting_does_not_outlast_it_either(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fillers[8];
    struct kota_client *client;
    double start_s;

    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 0), 0);
    getsockname(listener, (struct sockaddr *)&address, &size);
    for (int i = 0; i < 8; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(fillers[i], (struct sockaddr *)&address, sizeof(address));
    }
    client = open_at(ntohs(address.sin_port), timeout_s, 4);
    start_s = clock_s();
    assert_kind(kota_call(client, kota_limits()), KOTA_ERROR_TIMEOUT, "a full queue");
    kota_close(client, NULL, NULL);
    assert_true(clock_s() - start_s < timeout_s + margin_s);
    for (int i = 0; i < 8; i++)
        close(fillers[i]);
    close(listener);
}

/* The resolver of this program: no name is ever asked of anybody. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **list)
{
    struct {
        struct addrinfo info;
        struct sockaddr_in address;
    } * made;

    if (strcmp(node, "slow.test") == 0 && !(hints->ai_flags & AI_NUMERICHOST)) {
        pause_ms(2000);
        return EAI_AGAIN;
    }
    made = calloc(1, sizeof(*made));
    if (!made || !inet_aton(strcmp(node, "good.test") == 0 && !(hints->ai_flags & AI_NUMERICHOST)
                                ? "127.0.0.1"
                                : node,
                            &made->address.sin_addr)) {
        free(made);
        return EAI_NONAME;
    }
    made->address.sin_family = AF_INET;
    made->address.sin_port = htons((uint16_t)atoi(service));
    made->info = (struct addrinfo){.ai_family = AF_INET,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_addr = (struct sockaddr *)&made->address,
                                   .ai_addrlen = sizeof(made->address)};
    *list = &made->info;
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    free(list);
}

static void names_do_not_outlast_it_either(void **state)
{
    struct fake_http *server = fake_http_start(serve_contents, NULL);
    struct kota_options options;
    struct kota_client *client;
    double start_s = clock_s();
    char url[64];

    (void)state;
    kota_options_init(&options, sizeof(options));
    options.url = "http://slow.test";
    options.timeout_s = 0.2;
    client = kota_open(&options);
    assert_kind(kota_call(client, kota_limits()), KOTA_ERROR_TIMEOUT, "a slow resolver");
    kota_close(client, NULL, NULL);
    if (clock_s() - start_s > 1.9)
        fail_msg("it took %g s to give up a name", clock_s() - start_s);

    options.url = "http://nobody.test";
    options.timeout_s = 600;
    client = kota_open(&options);
    assert_kind(kota_call(client, kota_limits()), KOTA_ERROR_ADDRESS, "no such name");
    kota_close(client, NULL, NULL);

    snprintf(url, sizeof(url), "http://good.test:%u", fake_http_port(server));
    options.url = url;
    client = kota_open(&options);
    assert_kind(kota_call(client, kota_limits()), KOTA_ERROR_NONE, "a name");
    kota_close(client, NULL, NULL);
    fake_http_stop(server);
    pause_ms(2000); /* the abandoned look-up frees itself */
}

/* ---- again ----------------------------------------------------------------------------------- */

struct busy {
    const char *refusal; /* the answer to all but the last */
    unsigned refusals;
    pthread_mutex_t lock;
    unsigned count;
    double at_s[16];
    char keys[16][64];
};

static void serve_busy(struct fake_http *server, int fd, unsigned number, void *context)
{
    struct busy *busy = context;
    char request[8192];

    (void)server;
    (void)number;
    while (fake_read_request(fd, request, sizeof(request))) {
        const char *key = strstr(request, "Idempotency-Key: ");
        unsigned index;

        pthread_mutex_lock(&busy->lock);
        index = busy->count++;
        busy->at_s[index % 16] = clock_s();
        snprintf(busy->keys[index % 16], sizeof(busy->keys[0]), "%.40s", key ? key : "");
        pthread_mutex_unlock(&busy->lock);
        fake_send(fd,
                  index < busy->refusals ? busy->refusal : OK_HEAD "Content-Length: 2\r\n\r\n{}");
    }
}

static struct kota_request *keyed(void)
{
    return kota_edit_brush("a", KOTA_RAISE, 1, 1, 1, 1);
}

static struct kota_request *keyless(void)
{
    struct kota_request *request = kota_request_new("POST", "/v1/anything");

    kota_request_body(request, "application/json", "{}", 2);
    return request;
}

#define REFUSED(head) "HTTP/1.1 " head "\r\nContent-Length: 0\r\n\r\n"

static void retry_after_is_respected(void **state)
{
    static const struct {
        const char *refusal;
        unsigned refusals, tries;
        struct kota_request *(*ask)(void);
        double timeout_s, least_s;
        enum kota_error_kind kind;
    } cases[] = {
        {REFUSED("503 Busy\r\nRetry-After: 1"), 1, 2, kota_limits, 60, 1, KOTA_ERROR_NONE},
        {REFUSED("429 Many\r\nRetry-After: 1"), 1, 2, keyed, 60, 1, KOTA_ERROR_NONE},
        {REFUSED("503 Busy\r\nRetry-After: 0"), 9, 4, kota_limits, 60, 0, KOTA_ERROR_PROBLEM},
        {REFUSED("503 Busy\r\nRetry-After: 0"), 9, 1, keyless, 60, 0, KOTA_ERROR_PROBLEM},
        {REFUSED("503 Busy\r\nRetry-After: 9"), 9, 1, keyed, 2, 0, KOTA_ERROR_PROBLEM},
        {REFUSED("503 Busy\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT"), 1, 2, keyed, 60, 0,
         KOTA_ERROR_NONE},
        {REFUSED("503 Busy\r\nRetry-After: Fri, 31 Dec 2999 23:59:59 GMT"), 1, 1, keyed, 60, 0,
         KOTA_ERROR_PROBLEM},
        {REFUSED("503 Busy\r\nRetry-After: soon"), 1, 1, keyed, 60, 0, KOTA_ERROR_PROBLEM},
        {REFUSED("503 Busy"), 1, 1, keyed, 60, 0, KOTA_ERROR_PROBLEM},
        {REFUSED("500 Broken\r\nRetry-After: 0"), 1, 1, keyed, 60, 0, KOTA_ERROR_PROBLEM},
        {"", 0, 1, keyed, 60, 0, KOTA_ERROR_NONE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct busy busy = {.refusal = cases[i].refusal,
                            .refusals = cases[i].refusals,
                            .lock = PTHREAD_MUTEX_INITIALIZER};
        struct fake_http *server = fake_http_start(serve_busy, &busy);
        struct kota_client *client = open_at(fake_http_port(server), cases[i].timeout_s, 4);
        struct kota_answer *answer = kota_call(client, cases[i].ask());

        if (busy.count != cases[i].tries || kota_answer_tries(answer) != cases[i].tries)
            fail_msg("%.60s: %u tries, expected %u", cases[i].refusal, busy.count, cases[i].tries);
        if (busy.count > 1 && busy.at_s[1] - busy.at_s[0] < cases[i].least_s)
            fail_msg("%.60s: after %g s", cases[i].refusal, busy.at_s[1] - busy.at_s[0]);
        assert_string_equal(busy.keys[0], busy.keys[busy.count - 1]);
        assert_int_equal(cases[i].ask == keyed, *busy.keys[0] != '\0');
        assert_kind(answer, cases[i].kind, cases[i].refusal);
        kota_close(client, NULL, NULL);
        fake_http_stop(server);
    }
}

static void what_is_asked_for_is_told(void **state)
{
    struct busy busy = {.refusal = REFUSED("503 Busy\r\nRetry-After: 77"),
                        .refusals = 9,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    struct fake_http *server = fake_http_start(serve_busy, &busy);
    struct kota_client *client = open_at(fake_http_port(server), 60, 4);
    struct kota_answer *answer = kota_call(client, kota_limits());

    (void)state;
    assert_true(kota_answer_error(answer)->retry_after_s == 77);
    assert_int_equal(kota_answer_error(answer)->status, 503);
    kota_answer_free(answer);
    kota_close(client, NULL, NULL);
    fake_http_stop(server);
}

/* Answers each connection's first request and closes at the second, as a server that restarts. */
static void serve_once(struct fake_http *server, int fd, unsigned number, void *context)
{
    char request[8192];

    (void)server;
    (void)number;
    (void)context;
    if (fake_read_request(fd, request, sizeof(request)) &&
        fake_send(fd, OK_HEAD "Content-Length: 2\r\n\r\n{}"))
        fake_read_request(fd, request, sizeof(request));
}

static void a_kept_connection_that_ended_costs_no_call(void **state)
{
    struct fake_http *server = fake_http_start(serve_once, NULL);
    struct kota_client *client = open_at(fake_http_port(server), 60, 1);

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_kind(kota_call(client, kota_limits()), KOTA_ERROR_NONE, "asked again");
    assert_int_equal(fake_http_connections(server), 10);
    assert_kind(kota_call(client, keyed()), KOTA_ERROR_NONE, "asked again under its key");
    /* nobody knows whether this one was made */
    assert_kind(kota_call(client, keyless()), KOTA_ERROR_LOST, "not asked again");
    kota_close(client, NULL, NULL);
    fake_http_stop(server);
}

static bool count_fine(struct kota_answer *answer, void *context)
{
    *(unsigned *)context += kota_answer_error(answer) == NULL;
    return false;
}

static void connections_are_bounded_and_kept(void **state)
{
    struct busy busy = {.refusal = "", .lock = PTHREAD_MUTEX_INITIALIZER};
    struct fake_http *server = fake_http_start(serve_busy, &busy);
    struct kota_options options;
    struct kota_client *client;
    unsigned fine = 0;
    char url[64];

    (void)state;
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", fake_http_port(server));
    kota_options_init(&options, sizeof(options));
    options.url = url;
    options.connections_max = 3;
    client = kota_open(&options);
    for (int i = 0; i < 300; i++)
        kota_start(client, kota_limits(), count_fine, &fine);
    while (fine < 300)
        assert_true(kota_wait(client, 60) > 0);
    assert_true(fake_http_connections(server) <= 3);
    kota_close(client, NULL, NULL);
    fake_http_stop(server);
}

/* Refuses without reading what follows, and resets: the refusal must be seen all the same. */
static void serve_early(struct fake_http *server, int fd, unsigned number, void *context)
{
    char head[1024];

    (void)server;
    (void)number;
    (void)context;
    if (recv(fd, head, sizeof(head), 0) <= 0)
        return;
    fake_send(fd, "HTTP/1.1 413 Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    shutdown(fd, SHUT_WR);
    fake_wait_closed(fd);
}

static void an_early_refusal_is_seen(void **state)
{
    struct fake_http *server = fake_http_start(serve_early, NULL);
    struct kota_client *client = open_at(fake_http_port(server), 60, 1);
    char *much = calloc(1, 32 << 20);
    struct kota_request *request = kota_request_new("POST", "/v1/anything");
    struct kota_answer *answer;

    (void)state;
    assert_non_null(much);
    kota_request_body_borrowed(request, "application/octet-stream", much, 32 << 20);
    answer = kota_call(client, request);
    assert_int_equal(kota_answer_status(answer), 413);
    kota_answer_free(answer);
    kota_close(client, NULL, NULL);
    fake_http_stop(server);
    free(much);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_is_an_error_of_its_kind),
        cmocka_unit_test(endless_answers_are_cut),
        cmocka_unit_test(wrong_contents_are_told_by_the_reader),
        cmocka_unit_test(no_call_outlasts_its_time),
        cmocka_unit_test(connecting_does_not_outlast_it_either),
        cmocka_unit_test(names_do_not_outlast_it_either),
        cmocka_unit_test(retry_after_is_respected),
        cmocka_unit_test(what_is_asked_for_is_told),
        cmocka_unit_test(a_kept_connection_that_ended_costs_no_call),
        cmocka_unit_test(connections_are_bounded_and_kept),
        cmocka_unit_test(an_early_refusal_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
