/*
 * A list of networks, and whether a peer is in one: "127.0.0.0/8,::1".
 */
#ifndef KOTA_HTTP_NETWORKS_H
#define KOTA_HTTP_NETWORKS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_NETWORKS_MAX = 32 };

struct http_networks {
    size_t count;
    struct http_network {
        unsigned char address[16]; /* of IPv6; IPv4 is ::ffff:a.b.c.d */
        unsigned bits;             /* of the address, that count: 0 to 128 */
    } items[HTTP_NETWORKS_MAX];
};

/*
 * Reads ADDRESS or ADDRESS/BITS, with commas between; "none" is no network.
 *
 * ERR_BAD_INPUT  not an address, too many bits, more than HTTP_NETWORKS_MAX
 */
enum err_code http_networks_read(const char *text, struct http_networks *networks, struct err *err);

bool http_networks_have(const struct http_networks *networks, const unsigned char address[16]);

#endif
