/*
 * Many readers of one stream: how long until the last one has an event.
 *
 *     event_readers PORT READERS PATH ROUNDS   readers of 127.0.0.1:PORT
 *     event_readers send READERS BYTES         the bound: two threads that send; prints its port
 *
 * The first connects READERS sockets, asks for PATH on each and waits until nothing comes any more.
 * Each round it sends an edit of 4 x 4 samples of layer ground of locale land on another connection
 * and takes what comes, by one epoll loop, until each reader has had something. A line a round:
 * milliseconds.
 *
 * The second sends BYTES to each of READERS connections whenever something comes on one more.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 512, SENDERS = 2, READERS_MAX = 65536, BYTES_MAX = 1024, QUIET_MS = 500 };

static int sockets[READERS_MAX], reader_count;
static char buffer[65536];
static size_t event_bytes;
static pthread_barrier_t begin, end;

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int connect_to(int port, int epoll, const char *request)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct epoll_event event = {EPOLLIN, {.fd = s}};

    if (s < 0 || connect(s, (struct sockaddr *)&at, sizeof at) != 0)
        err(1, "connect");
    if (send(s, request, strlen(request), 0) < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, s, &event) != 0)
        err(1, "send");
    return s;
}

/* Takes what comes until `count` readers have had something, or nothing comes for QUIET_MS. */
static int take(int epoll, int editor, int count)
{
    struct epoll_event events[EVENTS];
    int had = 0, n;

    while (had < count && (n = epoll_wait(epoll, events, EVENTS, QUIET_MS)) > 0)
        for (int i = 0; i < n; i++) {
            if (recv(events[i].data.fd, buffer, sizeof buffer, 0) <= 0)
                errx(1, "a connection was closed");
            had += events[i].data.fd != editor;
        }
    return had;
}

static int read_events(int port, const char *path, int rounds)
{
    int epoll = epoll_create1(0), editor;
    char request[512], body[128];

    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: kota\r\n\r\n", path);
    for (int i = 0; i < reader_count; i++)
        connect_to(port, epoll, request);
    editor = connect_to(port, epoll, "");
    for (int i = 0; i < rounds; i++) {
        double since;

        take(epoll, editor, INT32_MAX);
        snprintf(body, sizeof body,
                 "{\"layer\":\"ground\",\"rect\":[%d,5,4,4],\"heights\":[1,2,3,4,5,6,7,8,1,2,3,4,5,"
                 "6,7,%d]}",
                 i % 32, i);
        snprintf(request, sizeof request,
                 "POST /v1/locales/land/edits HTTP/1.1\r\nHost: kota\r\n"
                 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                 strlen(body), body);
        since = now_ms();
        if (send(editor, request, strlen(request), 0) < 0)
            err(1, "send");
        if (take(epoll, editor, reader_count) < reader_count)
            errx(1, "not every reader had an event");
        printf("%.1f\n", now_ms() - since);
    }
    return 0;
}

static void *send_part(void *part)
{
    size_t number = (size_t)part, count = (size_t)reader_count;

    for (;;) {
        pthread_barrier_wait(&begin);
        for (size_t i = number * count / SENDERS; i < (number + 1) * count / SENDERS; i++)
            send(sockets[i], buffer, event_bytes, MSG_NOSIGNAL);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

static int send_events(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), editor;
    char edit[BYTES_MAX];

    if (bind(listener, (struct sockaddr *)&at, length) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &length) != 0)
        err(1, "listen");
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (int i = 0; i < reader_count; i++) {
        sockets[i] = accept(listener, NULL, NULL);
        recv(sockets[i], edit, sizeof edit, 0); /* its request */
    }
    editor = accept(listener, NULL, NULL);
    pthread_barrier_init(&begin, NULL, SENDERS + 1);
    pthread_barrier_init(&end, NULL, SENDERS + 1);
    for (size_t i = 0; i < SENDERS; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, send_part, (void *)i) != 0)
            errx(1, "no thread");
    }
    while (recv(editor, edit, sizeof edit, 0) > 0) {
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
    }
    return 0;
}

int main(int argc, char **argv)
{
    bool is_sender = argc == 4 && strcmp(argv[1], "send") == 0;

    if (!is_sender && argc != 5)
        errx(2, "usage: event_readers PORT READERS PATH ROUNDS | send READERS BYTES");
    reader_count = atoi(argv[2]);
    if (reader_count < 1 || reader_count > READERS_MAX)
        errx(2, "READERS: 1 to %d", READERS_MAX);
    if (!is_sender)
        return read_events(atoi(argv[1]), argv[3], atoi(argv[4]));
    event_bytes = (size_t)atoi(argv[3]);
    if (event_bytes > BYTES_MAX)
        errx(2, "BYTES: at most %d", BYTES_MAX);
    return send_events();
}
