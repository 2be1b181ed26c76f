/*
 * Which address a link gets.
 *
 * A header is the client's own text, and a document may be cached for others: so only a peer of
 * --trusted-proxies may say where it was asked, and only characters that are in a host or path are
 * taken.
 */
#include "api/maps/base_url.h"

#include <stdio.h>
#include <string.h>

enum { PART_BYTES = 256 };

/* The header's first value, if it is made of nothing but these characters. */
static bool take(const struct call *call, const char *name, const char *marks,
                 char out[static PART_BYTES])
{
    struct span value = http_request_header(call->request, name);
    size_t length = 0;

    while (value.at && length < value.length && value.at[length] != ',')
        length++;
    if (length == 0 || length >= PART_BYTES)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = value.at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!is_letter && !strchr(marks, c))
            return false;
    }
    memcpy(out, value.at, length);
    out[length] = '\0';
    return true;
}

void base_url(const struct call *call, char out[static BASE_URL_BYTES])
{
    const char *own = call->api->public_url;
    char proto[PART_BYTES] = "http", host[PART_BYTES], prefix[PART_BYTES] = "";
    bool is_trusted;
    size_t length;

    out[0] = '\0';
    if (own && own[0] != '\0') {
        length = strlen(own) - (own[strlen(own) - 1] == '/');
        snprintf(out, BASE_URL_BYTES, "%.*s", (int)length, own);
        return;
    }
    if (!call->request)
        return;
    is_trusted = http_request_peer_is_in(call->request, &call->api->proxies);
    if (!(is_trusted && take(call, "x-forwarded-host", "-._:[]", host)) &&
        !take(call, "host", "-._:[]", host))
        return;
    if (is_trusted) {
        take(call, "x-forwarded-proto", "", proto);
        take(call, "x-forwarded-prefix", "-._~/", prefix);
    }
    if (strcmp(proto, "http") != 0 && strcmp(proto, "https") != 0)
        strcpy(proto, "http");
    length = strlen(prefix);
    while (length > 0 && prefix[length - 1] == '/')
        length--;
    snprintf(out, BASE_URL_BYTES, "%s://%s%s%.*s", proto, host,
             length > 0 && prefix[0] != '/' ? "/" : "", (int)length, prefix);
}
