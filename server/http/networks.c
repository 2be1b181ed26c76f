/*
 * Networks of IPv4 and IPv6 as one kind: an IPv4 address is the mapped one of IPv6 (RFC 4291,
 * 2.5.5.2), and its network has 96 bits more.
 */
#include "http/networks.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum err_code read_network(const char *word, struct http_network *network, struct err *err)
{
    char text[INET6_ADDRSTRLEN];
    const char *slash = strchr(word, '/');
    size_t length = slash ? (size_t)(slash - word) : strlen(word);
    unsigned char *bytes = network->address;
    bool is_ipv4 = !memchr(word, ':', length);
    unsigned long bits_max = is_ipv4 ? 32 : 128, bits = bits_max;
    char *end = NULL;

    snprintf(text, sizeof text, "%.*s", (int)length, word);
    memset(bytes, 0, 10);
    memset(bytes + 10, 0xff, 2);
    if (length >= sizeof text ||
        inet_pton(is_ipv4 ? AF_INET : AF_INET6, text, is_ipv4 ? bytes + 12 : bytes) != 1)
        return err_set(err, ERR_BAD_INPUT, "\"%.64s\" is not an IP address or ADDRESS/BITS", word);
    if (slash && slash[1] >= '0' && slash[1] <= '9')
        bits = strtoul(slash + 1, &end, 10);
    if (slash && (!end || *end != '\0' || bits > bits_max))
        return err_set(err, ERR_BAD_INPUT, "\"%.64s\": the bits are not 0 to %lu", word, bits_max);
    network->bits = (unsigned)(bits + 128 - bits_max);
    return ERR_OK;
}

enum err_code http_networks_read(const char *text, struct http_networks *networks, struct err *err)
{
    networks->count = 0;
    if (strcmp(text, "none") == 0)
        return err->code = ERR_OK;
    for (const char *at = text;; at++) {
        char word[96];
        size_t length = strcspn(at, ",");

        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (networks->count == HTTP_NETWORKS_MAX)
            return err_set(err, ERR_BAD_INPUT, "more than %d networks", HTTP_NETWORKS_MAX);
        if (read_network(word, &networks->items[networks->count++], err))
            return err->code;
        at += length;
        if (*at == '\0')
            return err->code = ERR_OK;
    }
}

bool http_networks_have(const struct http_networks *networks, const unsigned char address[16])
{
    for (size_t i = 0; i < networks->count; i++) {
        const struct http_network *network = &networks->items[i];
        size_t whole = network->bits / 8;
        int shift = 8 - (int)(network->bits % 8);

        if (memcmp(network->address, address, whole) == 0 &&
            (shift == 8 || network->address[whole] >> shift == address[whole] >> shift))
            return true;
    }
    return false;
}
