/*
 * URLs and addresses.
 *
 * getaddrinfo cannot be interrupted, and may take longer than any time-out of a call. libuv runs it
 * on a pool that the caller's other work needs, and cannot close a loop before it has returned. So
 * it runs on a detached thread here, which shares nothing with the client but a counted job: a
 * caller out of time abandons it, and the thread frees it when the resolver is done. Numbers and
 * localhost need no thread (RFC 6761, section 6.3: localhost is always this machine).
 *
 * Invariant: the thread touches `wakeup` under the job's lock only, and only while the job is not
 * abandoned; so the handle may be closed right after lookup_abandon.
 */
#include "client/lib/address.h"

#include "client/lib/error.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- URLs ------------------------------------------------------------------------------------ */

static bool host_is_fine(const char *host, size_t length, bool is_number)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";

    if (length == 0 || length >= 254)
        return false;
    for (size_t i = 0; i < length; i++)
        if (host[i] == '\0' || !strchr(is_number ? "0123456789abcdefABCDEF:.%" : letters, host[i]))
            return false;
    return true;
}

bool url_parse(struct url *url, const char *text, struct kota_error *error)
{
    bool is_bracketed;
    const char *host, *host_end, *at;
    size_t length, digits;

    if (strncasecmp(text, "https://", 8) == 0)
        return error_set(error, KOTA_ERROR_USAGE,
                         "'%.200s': the library speaks no TLS; let a proxy on this machine do",
                         text);
    if (strncasecmp(text, "http://", 7) != 0)
        goto wrong;
    is_bracketed = text[7] == '[';
    host = text + 7 + is_bracketed;
    host_end = host + strcspn(host, is_bracketed ? "]/?#" : ":/?#");
    length = (size_t)(host_end - host);
    if (!host_is_fine(host, length, is_bracketed) || (is_bracketed && *host_end != ']'))
        goto wrong;
    memcpy(url->host, host, length);
    url->host[length] = '\0';
    at = host_end + is_bracketed;
    strcpy(url->port, "80");
    if (*at == ':') {
        digits = strspn(at + 1, "0123456789");
        if (digits == 0 || digits > 5 || atol(at + 1) < 1 || atol(at + 1) > 65535)
            goto wrong;
        memcpy(url->port, at + 1, digits);
        url->port[digits] = '\0';
        at += 1 + digits;
    }
    snprintf(url->authority, sizeof(url->authority), is_bracketed ? "[%s]:%s" : "%s:%s", url->host,
             url->port);
    for (length = strlen(at); length > 0 && at[length - 1] == '/'; length--)
        continue;
    if (length > 0 && *at != '/')
        goto wrong;
    for (size_t i = 0; i < length; i++)
        if (at[i] <= ' ' || at[i] >= 127 || at[i] == '?' || at[i] == '#')
            goto wrong;
    if (!text_add(&url->path, at, length))
        return error_set(error, KOTA_ERROR_MEMORY, "no memory for the URL");
    return true;
wrong:
    return error_set(error, KOTA_ERROR_USAGE, "'%.200s' is no URL such as http://127.0.0.1:7420",
                     text);
}

void url_free(struct url *url)
{
    text_free(&url->path);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void addresses_take(struct addresses *addresses, const struct addrinfo *list)
{
    addresses->count = 0;
    for (; list && addresses->count < ADDRESSES_MAX; list = list->ai_next) {
        if (list->ai_addrlen > sizeof(addresses->at[0]))
            continue;
        memcpy(&addresses->at[addresses->count], list->ai_addr, list->ai_addrlen);
        addresses->length[addresses->count++] = list->ai_addrlen;
    }
}

static int ask(const char *host, const char *port, int flags, struct addresses *addresses)
{
    struct addrinfo hints = {
        .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC, .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int code = getaddrinfo(host, port, &hints, &list);

    if (code == 0) {
        addresses_take(addresses, list);
        freeaddrinfo(list);
    }
    return code;
}

bool addresses_known(const struct url *url, struct addresses *addresses, struct kota_error *error)
{
    struct addresses second = {0};

    if (strcasecmp(url->host, "localhost") != 0)
        return ask(url->host, url->port, AI_NUMERICHOST, addresses) == 0;
    ask("127.0.0.1", url->port, AI_NUMERICHOST, addresses);
    ask("::1", url->port, AI_NUMERICHOST, &second);
    for (size_t i = 0; i < second.count && addresses->count < ADDRESSES_MAX; i++) {
        addresses->at[addresses->count] = second.at[i];
        addresses->length[addresses->count++] = second.length[i];
    }
    if (addresses->count == 0)
        error_set(error, KOTA_ERROR_ADDRESS, "localhost has no address");
    return true;
}

struct lookup {
    pthread_mutex_t lock;
    uv_async_t *wakeup; /* NULL once abandoned */
    bool is_done;
    int code; /* of getaddrinfo */
    char host[256], port[6];
    struct addresses addresses;
};

static void lookup_free(struct lookup *lookup)
{
    pthread_mutex_destroy(&lookup->lock);
    free(lookup);
}

static void *lookup_run(void *context)
{
    struct lookup *lookup = context;
    struct addresses found = {0};
    int code = ask(lookup->host, lookup->port, AI_ADDRCONFIG, &found);
    bool is_abandoned;

    pthread_mutex_lock(&lookup->lock);
    lookup->is_done = true;
    lookup->code = code;
    lookup->addresses = found;
    is_abandoned = lookup->wakeup == NULL;
    if (!is_abandoned)
        uv_async_send(lookup->wakeup);
    pthread_mutex_unlock(&lookup->lock);
    if (is_abandoned)
        lookup_free(lookup);
    return NULL;
}

struct lookup *lookup_start(const struct url *url, uv_async_t *wakeup, struct kota_error *error)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    int code;

    if (!lookup) {
        error_set(error, KOTA_ERROR_MEMORY, "no memory to look up %s", url->host);
        return NULL;
    }
    pthread_mutex_init(&lookup->lock, NULL);
    lookup->wakeup = wakeup;
    memcpy(lookup->host, url->host, sizeof(lookup->host));
    memcpy(lookup->port, url->port, sizeof(lookup->port));
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all); /* the caller's signals are the caller's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&thread, &attributes, lookup_run, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (code == 0)
        return lookup;
    lookup_free(lookup);
    error_set(error, KOTA_ERROR_ADDRESS, "no thread to look up %s: %s", url->host, strerror(code));
    return NULL;
}

bool lookup_take(struct lookup *lookup, struct addresses *addresses, struct kota_error *error)
{
    bool is_done;

    pthread_mutex_lock(&lookup->lock);
    is_done = lookup->is_done;
    pthread_mutex_unlock(&lookup->lock);
    if (!is_done)
        return false;
    *addresses = lookup->addresses;
    if (lookup->code || addresses->count == 0) {
        addresses->count = 0;
        error_set(error, KOTA_ERROR_ADDRESS, "%s has no address: %s", lookup->host,
                  lookup->code ? gai_strerror(lookup->code) : "none was found");
    }
    lookup_free(lookup);
    return true;
}

void lookup_abandon(struct lookup *lookup)
{
    bool is_done;

    pthread_mutex_lock(&lookup->lock);
    is_done = lookup->is_done;
    lookup->wakeup = NULL;
    pthread_mutex_unlock(&lookup->lock);
    if (is_done)
        lookup_free(lookup);
}
