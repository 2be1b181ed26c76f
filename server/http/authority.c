/*
 * Authorities: see authority.h.
 *
 * Problem: the name of the server is in Host and, in a proxy's request, in the target. Nothing is
 * chosen by it here, but a malformed authority must be refused: two programs that disagree about
 * `a@b`, `[::1` or `x:80:80` disagree about the destination of the request. Approach: a name is
 * read byte by byte by RFC 3986; brackets must hold an IPv6 address, checked by inet_pton(). Two
 * things of the grammar are refused: a comma in a name (joined Host values look like that), and
 * IPvFuture.
 *
 * Source: RFC 3986 (2005) sections 3.2.2, 3.2.3; RFC 9112 (2022) section 3.2.
 */
#include "http/authority.h"

#include "base/text/hex.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define PORT_MAX 65535

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~!$&'()*+;=", c) != NULL);
}

/* The length of the name at the start of text; a '%' that begins no two digits ends it. */
static size_t name_length(struct span text)
{
    size_t i = 0;

    while (i < text.length) {
        if (is_name_byte(text.at[i]))
            i++;
        else if (text.at[i] == '%' && text.length - i > 2 && hex_value(text.at[i + 1]) >= 0 &&
                 hex_value(text.at[i + 2]) >= 0)
            i += 3;
        else
            break;
    }
    return i;
}

/* The length of "[" IPv6 "]" at the start of text; 0: there is none. */
static size_t literal_length(struct span text)
{
    const char *end = memchr(text.at, ']', text.length);
    char address[INET6_ADDRSTRLEN];
    size_t length = end ? (size_t)(end - text.at) - 1 : 0;
    struct in6_addr ignored;

    if (length == 0 || length >= sizeof address)
        return 0;
    memcpy(address, text.at + 1, length);
    address[length] = '\0';
    return strlen(address) == length && inet_pton(AF_INET6, address, &ignored) == 1 ? length + 2
                                                                                    : 0;
}

static bool is_port(struct span text)
{
    unsigned port = 0;

    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text.at[i] - '0');
        if (port > PORT_MAX)
            return false;
    }
    return true;
}

enum err_code http_authority_check(struct span text, const char *where, struct err *err)
{
    int shown = text.length < 64 ? (int)text.length : 64;
    size_t length;

    if (text.length == 0)
        return ERR_OK;
    length = text.at[0] == '[' ? literal_length(text) : name_length(text);
    if (length == 0 || (length < text.length && text.at[length] != ':'))
        return err_set(err, ERR_BAD_REQUEST, "%s '%.*s' is no host name or address", where, shown,
                       text.at);
    if (length < text.length &&
        !is_port((struct span){text.at + length + 1, text.length - length - 1}))
        return err_set(err, ERR_BAD_REQUEST, "%s '%.*s' has no port of 0 to %d", where, shown,
                       text.at, PORT_MAX);
    return ERR_OK;
}
