/*
 * Connections per address: see peers.h.
 *
 * One open-addressed table with linear probing for the whole server, under a mutex that is taken
 * twice in a connection's life. It has at least twice as many slots as there can be connections,
 * so a probe always ends, and it never grows: memory is bounded from the start. A slot whose count
 * falls to zero is removed by shifting back its successors, so no tombstones pile up. The hash is
 * keyed by a random seed, because addresses are chosen by the other side.
 *
 * Invariant: count > 0 exactly for used slots; from a key's home slot to its own all are used.
 */
#include "http/peers.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    uint64_t key;
    size_t count;
};

struct http_peers {
    pthread_mutex_t mutex; /* guards slots */
    uint64_t seed;
    size_t mask;
    struct slot slots[];
};

struct http_peer http_peer_of(const struct sockaddr *address)
{
    struct http_peer peer = {.key = 0};
    unsigned char *bytes = peer.address;

    if (address->sa_family == AF_INET) {
        uint32_t host = ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);

        peer.key = 0xffff00000000u | host;
        peer.is_loopback = host >> 24 == 127;
        bytes[10] = bytes[11] = 0xff;
        for (int i = 0; i < 4; i++)
            bytes[12 + i] = (unsigned char)(host >> (24 - 8 * i));
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;

        memcpy(bytes, &v6->sin6_addr, sizeof peer.address);
        if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
            uint32_t host = (uint32_t)bytes[12] << 24 | (uint32_t)bytes[13] << 16 |
                            (uint32_t)bytes[14] << 8 | bytes[15];

            peer.key = 0xffff00000000u | host;
            peer.is_loopback = bytes[12] == 127;
        } else {
            for (size_t i = 0; i < 8; i++)
                peer.key = peer.key << 8 | bytes[i];
            peer.is_loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
        }
    }
    return peer;
}

/* The keys are no addresses: 0:fffe::/64 is not in use (RFC 4291). */
struct http_peer http_peer_of_unix(int socket)
{
    struct http_peer peer = {.key = 0xfffeffffffffu, .address = {[15] = 1}, .is_loopback = true};
    struct ucred user;
    socklen_t length = sizeof user;

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &user, &length) != 0)
        return peer;
    peer.key = 0xfffe00000000u | user.uid;
    peer.has_uid = user.uid != (uid_t)-1;
    peer.uid = user.uid;
    return peer;
}

struct http_peers *http_peers_create(size_t connections_max, uint64_t seed)
{
    size_t slots = 64;
    struct http_peers *peers;

    while (slots < 2 * connections_max)
        slots *= 2;
    peers = calloc(1, sizeof *peers + slots * sizeof peers->slots[0]);
    if (!peers)
        return NULL;
    pthread_mutex_init(&peers->mutex, NULL);
    peers->seed = seed;
    peers->mask = slots - 1;
    return peers;
}

void http_peers_destroy(struct http_peers *peers)
{
    if (!peers)
        return;
    pthread_mutex_destroy(&peers->mutex);
    free(peers);
}

static size_t home_of(const struct http_peers *peers, uint64_t key)
{
    uint64_t x = key ^ peers->seed;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (size_t)(x ^ x >> 31) & peers->mask;
}

/* The slot of key, or the free one where it would go. */
static size_t find(const struct http_peers *peers, uint64_t key)
{
    size_t at = home_of(peers, key);

    while (peers->slots[at].count && peers->slots[at].key != key)
        at = (at + 1) & peers->mask;
    return at;
}

bool http_peers_enter(struct http_peers *peers, struct http_peer peer, size_t per_address_max)
{
    struct slot *slot;
    bool is_welcome;

    pthread_mutex_lock(&peers->mutex);
    slot = &peers->slots[find(peers, peer.key)];
    is_welcome = slot->count < per_address_max;
    if (is_welcome) {
        slot->key = peer.key;
        slot->count++;
    }
    pthread_mutex_unlock(&peers->mutex);
    return is_welcome;
}

/* Frees a slot and moves back each follower that would no longer be found. */
static void remove_slot(struct http_peers *peers, size_t hole)
{
    size_t at = hole;

    for (;;) {
        size_t home;

        at = (at + 1) & peers->mask;
        if (!peers->slots[at].count)
            break;
        home = home_of(peers, peers->slots[at].key);
        if (((at - home) & peers->mask) < ((at - hole) & peers->mask))
            continue;
        peers->slots[hole] = peers->slots[at];
        hole = at;
    }
    peers->slots[hole].count = 0;
}

void http_peers_leave(struct http_peers *peers, struct http_peer peer)
{
    size_t at;

    pthread_mutex_lock(&peers->mutex);
    at = find(peers, peer.key);
    CHECK(peers->slots[at].count > 0);
    if (--peers->slots[at].count == 0)
        remove_slot(peers, at);
    pthread_mutex_unlock(&peers->mutex);
}
