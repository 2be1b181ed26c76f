/*
 * The least that a server can do, as a bound for what kotad may cost: one epoll loop over plain
 * sockets that answers each request with a constant.
 *
 *     peer_epoll PORT BYTES
 *
 * Listens on 127.0.0.1 (port 0: a free one, printed as one line), answers with BYTES bytes in all,
 * head included. Ends with its standard input.
 *
 * It looks for the empty line that ends a head and for nothing else: no limits, no time-outs, no
 * routes, no body. Requests that came together are answered by one write. A head that is cut by a
 * read is carried over by its last three bytes. A socket that takes less than all is closed: nobody
 * who measures is so slow.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64
#define READ_BYTES 65536
#define TAIL 3
#define CONNECTIONS_MAX 65536

static char answers[READ_BYTES / 16 * 64];
static size_t answer_bytes, answers_held;
static unsigned char tails[CONNECTIONS_MAX]; /* how much of "\r\n\r\n" has come */

static void make_answers(size_t bytes)
{
    static const char format[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                 "Content-Length: %zu\r\n\r\n";
    char head[128];
    size_t head_bytes = (size_t)snprintf(head, sizeof head, format, bytes), body;

    body = bytes > head_bytes ? bytes - head_bytes : 0;
    head_bytes = (size_t)snprintf(head, sizeof head, format, body);
    answer_bytes = head_bytes + body;
    for (answers_held = 0; (answers_held + 1) * answer_bytes <= sizeof answers; answers_held++) {
        char *at = answers + answers_held * answer_bytes;

        memcpy(at, head, head_bytes);
        memset(at + head_bytes, ' ', body);
    }
}

/* How many heads end in at[0..length), `tail` bytes of an end having come before. */
static size_t count_heads(const char *at, size_t length, unsigned char *tail)
{
    size_t count = 0;
    const char *end = at + length;

    for (; at < end && *tail; at++) { /* an end that was cut */
        if (*at != "\r\n\r\n"[*tail]) {
            *tail = *at == '\r';
        } else if (++*tail == 4) {
            count++;
            *tail = 0;
        }
    }
    for (;;) {
        const char *found = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);

        if (!found)
            break;
        count++;
        at = found + 4;
    }
    for (size_t n = end - at < TAIL ? (size_t)(end - at) : TAIL; n > 0 && *tail == 0; n--)
        if (memcmp(end - n, "\r\n\r\n", n) == 0)
            *tail = (unsigned char)n;
    return count;
}

static void serve(int fd)
{
    static char buffer[READ_BYTES];
    ssize_t length = read(fd, buffer, sizeof buffer);
    size_t count;

    if (length < 0 && errno == EAGAIN)
        return;
    if (length <= 0) {
        close(fd);
        return;
    }
    count = count_heads(buffer, (size_t)length, &tails[fd]);
    while (count) {
        size_t now = count < answers_held ? count : answers_held;

        if (write(fd, answers, now * answer_bytes) != (ssize_t)(now * answer_bytes)) {
            close(fd);
            return;
        }
        count -= now;
    }
}

static void take(int epoll, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), yes = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (fd < 0)
        return;
    if (fd >= CONNECTIONS_MAX) {
        close(fd);
        return;
    }
    tails[fd] = 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int listen_on(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((unsigned short)port)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        perror("peer_epoll");
        exit(1);
    }
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS];
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0), listener;

    if (argc != 3 || atol(argv[2]) < 1 || atol(argv[2]) > READ_BYTES) {
        fprintf(stderr, "usage: peer_epoll PORT BYTES\n");
        return 2;
    }
    make_answers((size_t)atol(argv[2]));
    listener = listen_on((unsigned)atoi(argv[1]));
    event.data.fd = listener;
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    event.data.fd = STDIN_FILENO;
    epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);

        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;

            if (fd == STDIN_FILENO)
                return 0;
            if (fd == listener)
                take(epoll, listener);
            else
                serve(fd);
        }
    }
}
