/*
 * Where the daemon is: its URL, and its host's addresses.
 */
#ifndef KOTA_LIB_ADDRESS_H
#define KOTA_LIB_ADDRESS_H

#include "client/lib/kota.h"
#include "client/lib/text.h"

#include <sys/socket.h>
#include <uv.h>

struct url {
    char host[256]; /* without brackets */
    char port[6];
    char authority[272]; /* as the Host header has it */
    struct text path;    /* in front of each call's, without a slash at its end */
};

/* False: error has the reason. */
bool url_parse(struct url *url, const char *text, struct kota_error *error);
void url_free(struct url *url);

enum { ADDRESSES_MAX = 8 };

struct addresses {
    struct sockaddr_storage at[ADDRESSES_MAX];
    socklen_t length[ADDRESSES_MAX];
    size_t count;
};

/* True: the host needed no look-up (a number, localhost), or cannot be looked up (error is set). */
bool addresses_known(const struct url *url, struct addresses *addresses, struct kota_error *error);

/*
 * Asks for a name's addresses on a thread of its own, then wakes `wakeup`. NULL: error is set.
 * The job ends by lookup_take or lookup_abandon, neither of which waits.
 */
struct lookup;
struct lookup *lookup_start(const struct url *url, uv_async_t *wakeup, struct kota_error *error);
/* True once it is done; the job is gone then. addresses are empty and error is set if it failed. */
bool lookup_take(struct lookup *lookup, struct addresses *addresses, struct kota_error *error);
void lookup_abandon(struct lookup *lookup);

#endif
