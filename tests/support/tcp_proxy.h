/*
 * A TCP proxy on loopback that cuts connections where a test wants it.
 */
#ifndef KOTA_TESTS_TCP_PROXY_H
#define KOTA_TESTS_TCP_PROXY_H

#include <stddef.h>
#include <stdint.h>

struct tcp_proxy;

enum tcp_proxy_mode {
    TCP_PROXY_PASS,
    TCP_PROXY_REFUSE, /* all connections are closed, new ones at once */
    TCP_PROXY_HOLD    /* nothing is passed on; connections stay */
};

enum tcp_proxy_way { TCP_PROXY_TO_SERVER, TCP_PROXY_TO_CLIENT };

struct tcp_proxy *tcp_proxy_start(uint16_t to_port);
void tcp_proxy_stop(struct tcp_proxy *proxy);
uint16_t tcp_proxy_port(const struct tcp_proxy *proxy);
void tcp_proxy_set(struct tcp_proxy *proxy, enum tcp_proxy_mode mode);
/* At most that many bytes each way each 10 ms, and short buffers, from now on. 0: no bound. */
void tcp_proxy_slow(struct tcp_proxy *proxy, size_t bytes);
/* Once: after that many bytes more in this direction, of all connections together, the one that
 * carries the next byte is cut, without it. */
void tcp_proxy_cut(struct tcp_proxy *proxy, enum tcp_proxy_way way, size_t bytes);
/* Cuts made so; whether one is still to come; bytes passed on. */
unsigned tcp_proxy_cuts(struct tcp_proxy *proxy);
size_t tcp_proxy_passed(struct tcp_proxy *proxy, enum tcp_proxy_way way);

#endif
