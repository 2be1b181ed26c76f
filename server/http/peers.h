/*
 * How many connections each address holds, over all loops. Of a Unix socket it is each user.
 */
#ifndef KOTA_HTTP_PEERS_H
#define KOTA_HTTP_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* IPv4 whole; IPv6 by its /64, the least that one customer gets; mapped IPv4 as IPv4. */
struct http_peer {
    uint64_t key;
    unsigned char address[16]; /* of IPv6; IPv4 is ::ffff:a.b.c.d; a Unix socket is ::1 */
    bool is_loopback;
    bool has_uid; /* of a Unix socket */
    uint32_t uid; /* of the process that connected, as this process's user namespace sees it */
};

struct http_peers;

struct http_peer http_peer_of(const struct sockaddr *address);
/* Of a connected Unix socket: the peer that the kernel names (SO_PEERCRED). */
struct http_peer http_peer_of_unix(int socket);

/* For at most connections_max connections at a time. NULL without memory. */
struct http_peers *http_peers_create(size_t connections_max, uint64_t seed);
void http_peers_destroy(struct http_peers *peers);

/* False when the address holds per_address_max already. O(1), any thread; pairs with leave. */
bool http_peers_enter(struct http_peers *peers, struct http_peer peer, size_t per_address_max);
void http_peers_leave(struct http_peers *peers, struct http_peer peer);

#endif
