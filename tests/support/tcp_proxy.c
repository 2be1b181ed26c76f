/*
 * One thread, poll(2), a mutex for what the test changes; see tcp_proxy.h.
 */
#include "support/tcp_proxy.h"

#include "base/check.h"
#include "support/pause.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINKS_MAX = 64, BUFFER = 65536 };

struct side {
    int fd;
    uint8_t *data; /* on its way to this side */
    size_t length, sent;
};

struct link {
    struct side sides[2]; /* TCP_PROXY_TO_SERVER: the server's, TCP_PROXY_TO_CLIENT: the client's */
    bool is_used;
};

struct tcp_proxy {
    pthread_t thread;
    pthread_mutex_t mutex;
    int listener, wake[2];
    uint16_t port, to_port;
    struct link links[LINKS_MAX];
    /* under the mutex */
    enum tcp_proxy_mode mode;
    bool is_armed[2], is_over;
    size_t left[2], passed[2], slow;
    unsigned cuts;
};

static void link_close(struct link *link)
{
    struct linger at_once = {.l_onoff = 1};

    for (int i = 0; i < 2; i++) {
        setsockopt(link->sides[i].fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(link->sides[i].fd);
        free(link->sides[i].data);
    }
    memset(link, 0, sizeof *link);
}

static void link_open(struct tcp_proxy *proxy)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(proxy->to_port)};
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC), server, one = 1;
    struct link *link = proxy->links;

    if (client < 0)
        return;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(server >= 0);
    while (link < proxy->links + LINKS_MAX && link->is_used)
        link++;
    if (proxy->mode == TCP_PROXY_REFUSE || link == proxy->links + LINKS_MAX ||
        connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
        close(client);
        close(server);
        return;
    }
    link->is_used = true;
    link->sides[TCP_PROXY_TO_CLIENT].fd = client;
    link->sides[TCP_PROXY_TO_SERVER].fd = server;
    for (int i = 0; i < 2; i++) {
        fcntl(link->sides[i].fd, F_SETFL, O_NONBLOCK);
        setsockopt(link->sides[i].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        link->sides[i].data = malloc(BUFFER);
        CHECK(link->sides[i].data);
    }
}

/* Moves bytes one way; false: the link is over. */
static bool move(struct tcp_proxy *proxy, struct link *link, int way, short readable,
                 short writable)
{
    struct side *to = &link->sides[way], *from = &link->sides[!way];

    if (readable && to->length == 0) {
        ssize_t got = read(from->fd, to->data, proxy->slow ? proxy->slow : BUFFER);

        if (got == 0 || (got < 0 && errno != EAGAIN))
            return false;
        if (got < 0)
            return true;
        to->length = (size_t)got;
        to->sent = 0;
        if (proxy->is_armed[way] && proxy->left[way] < to->length) {
            ssize_t sent = send(to->fd, to->data, proxy->left[way], MSG_NOSIGNAL);

            (void)sent;
            proxy->is_armed[way] = false;
            proxy->cuts++;
            return false;
        }
        proxy->left[way] -= proxy->is_armed[way] ? to->length : 0;
        proxy->passed[way] += to->length;
        writable = 1;
    }
    if (writable && to->sent < to->length) {
        ssize_t sent = send(to->fd, to->data + to->sent, to->length - to->sent, MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN)
            return false;
        to->sent += sent > 0 ? (size_t)sent : 0;
        if (to->sent == to->length)
            to->length = to->sent = 0;
    }
    return true;
}

static size_t gather(struct tcp_proxy *proxy, struct pollfd *polls)
{
    size_t count = 0;

    polls[count++] = (struct pollfd){.fd = proxy->wake[0], .events = POLLIN};
    polls[count++] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
    for (int i = 0; i < LINKS_MAX; i++)
        for (int way = 0; way < 2; way++) {
            const struct link *link = &proxy->links[i];
            short events = 0;

            if (link->is_used && proxy->mode == TCP_PROXY_PASS)
                events = (short)((link->sides[!way].length == 0 ? POLLIN : 0) |
                                 (link->sides[way].length > 0 ? POLLOUT : 0));
            polls[count++] =
                (struct pollfd){.fd = link->is_used ? link->sides[way].fd : -1, .events = events};
        }
    return count;
}

static void serve(struct tcp_proxy *proxy, const struct pollfd *polls)
{
    char byte;

    if (polls[0].revents) {
        ssize_t got = read(proxy->wake[0], &byte, 1);

        (void)got;
    }
    for (int i = 0; i < LINKS_MAX; i++) {
        struct link *link = &proxy->links[i];
        const struct pollfd *sides = polls + 2 + 2 * i;
        bool is_over = proxy->mode == TCP_PROXY_REFUSE;

        if (!link->is_used || sides[0].fd < 0)
            continue;
        for (int way = 0; way < 2 && proxy->mode == TCP_PROXY_PASS && !is_over; way++)
            is_over = !move(proxy, link, way, (short)(sides[!way].revents & ~POLLOUT),
                            (short)(sides[way].revents & POLLOUT));
        if (is_over)
            link_close(link);
    }
    if (polls[1].revents)
        link_open(proxy);
}

static void *run(void *context)
{
    struct tcp_proxy *proxy = context;
    struct pollfd polls[2 + 2 * LINKS_MAX];

    for (;;) {
        bool is_slow;
        size_t count;

        pthread_mutex_lock(&proxy->mutex);
        if (proxy->is_over)
            break;
        count = gather(proxy, polls);
        pthread_mutex_unlock(&proxy->mutex);
        poll(polls, count, -1);
        pthread_mutex_lock(&proxy->mutex);
        serve(proxy, polls);
        is_slow = proxy->slow > 0;
        pthread_mutex_unlock(&proxy->mutex);
        if (is_slow)
            pause_ms(10);
    }
    for (int i = 0; i < LINKS_MAX; i++)
        if (proxy->links[i].is_used)
            link_close(&proxy->links[i]);
    pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

static void wake(struct tcp_proxy *proxy)
{
    CHECK(write(proxy->wake[1], "w", 1) == 1);
}

struct tcp_proxy *tcp_proxy_start(uint16_t to_port)
{
    struct tcp_proxy *proxy = calloc(1, sizeof *proxy);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;

    CHECK(proxy);
    proxy->to_port = to_port;
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(proxy->listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(proxy->listener, 16) == 0);
    CHECK(getsockname(proxy->listener, (struct sockaddr *)&address, &length) == 0);
    proxy->port = ntohs(address.sin_port);
    CHECK(pipe2(proxy->wake, O_CLOEXEC) == 0);
    CHECK(pthread_mutex_init(&proxy->mutex, NULL) == 0);
    CHECK(pthread_create(&proxy->thread, NULL, run, proxy) == 0);
    return proxy;
}

void tcp_proxy_stop(struct tcp_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->is_over = true;
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
    pthread_join(proxy->thread, NULL);
    pthread_mutex_destroy(&proxy->mutex);
    close(proxy->listener);
    close(proxy->wake[0]);
    close(proxy->wake[1]);
    free(proxy);
}

uint16_t tcp_proxy_port(const struct tcp_proxy *proxy)
{
    return proxy->port;
}

void tcp_proxy_set(struct tcp_proxy *proxy, enum tcp_proxy_mode mode)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->mode = mode;
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
}

void tcp_proxy_slow(struct tcp_proxy *proxy, size_t bytes)
{
    int room = 16384;

    CHECK(bytes <= BUFFER);
    pthread_mutex_lock(&proxy->mutex);
    proxy->slow = bytes;
    for (int i = 0; i < LINKS_MAX && bytes > 0; i++)
        for (int way = 0; way < 2 && proxy->links[i].is_used; way++)
            setsockopt(proxy->links[i].sides[way].fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
}

void tcp_proxy_cut(struct tcp_proxy *proxy, enum tcp_proxy_way way, size_t bytes)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->is_armed[way] = true;
    proxy->left[way] = bytes;
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
}

unsigned tcp_proxy_cuts(struct tcp_proxy *proxy)
{
    unsigned cuts;

    pthread_mutex_lock(&proxy->mutex);
    cuts = proxy->cuts;
    pthread_mutex_unlock(&proxy->mutex);
    return cuts;
}

size_t tcp_proxy_passed(struct tcp_proxy *proxy, enum tcp_proxy_way way)
{
    size_t passed;

    pthread_mutex_lock(&proxy->mutex);
    passed = proxy->passed[way];
    pthread_mutex_unlock(&proxy->mutex);
    return passed;
}
