/*
 * The connection string: its hosts, one attempt each, and what may be said about it. It can hold a
 * password, which no message of ours repeats.
 */
#ifndef KOTA_CLUSTER_CONNINFO_H
#define KOTA_CLUSTER_CONNINFO_H

#include "base/err.h"

#include <libpq-fe.h>
#include <stddef.h>
#include <stdint.h>

enum { CONNINFO_HOSTS_MAX = 16, CONNINFO_NAME_MAX = 128 };

struct conninfo {
    PQconninfoOption *options;
    struct {
        char *host, *hostaddr, *port; /* NULL: libpq's default */
    } hosts[CONNINFO_HOSTS_MAX];
    size_t count;        /* 1 at least */
    uint32_t connect_ms; /* for one host */
};

/* ERR_BAD_INPUT names the field, and never its value where that may be a secret. */
enum err_code conninfo_read(struct conninfo *info, const char *text, struct err *err);
void conninfo_free(struct conninfo *info);

/* Starts to connect to one host; NULL: no memory. */
PGconn *conninfo_start(const struct conninfo *info, size_t host, const char *node,
                       uint32_t timeout_ms);

/* "host:port", for people. */
void conninfo_name(const struct conninfo *info, size_t host, char out[CONNINFO_NAME_MAX]);

/*
 * The first line of what libpq says about a connection, without its prefix and without the
 * password; sqlstate is "" when the engine did not say it.
 */
void conninfo_reason(const struct conninfo *info, const char *said, char *out, size_t room,
                     char sqlstate[6]);

#endif
