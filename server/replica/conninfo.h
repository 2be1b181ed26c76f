/*
 * The connection string: its hosts, one attempt each, and messages about it. It may have a
 * password, which is never in a message.
 */
#ifndef KOTA_REPLICA_CONNINFO_H
#define KOTA_REPLICA_CONNINFO_H

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

/*
 * Files and directories that a connection may read (certificates, passwords, services, the socket's
 * directory), for a program that confines itself before it connects. They need not exist.
 * ERR_BAD_INPUT as conninfo_read. No connection is made.
 */
enum { CONNINFO_FILES_MAX = 16, CONNINFO_PATH_MAX = 512 };
enum err_code conninfo_files(const char *text, char paths[CONNINFO_FILES_MAX][CONNINFO_PATH_MAX],
                             size_t *count, struct err *err);

/* ERR_BAD_INPUT names the field, and never its value where that may be a secret. */
enum err_code conninfo_read(struct conninfo *info, const char *text, struct err *err);
void conninfo_free(struct conninfo *info);

/* Starts to connect to one host; NULL: no memory. */
PGconn *conninfo_start(const struct conninfo *info, size_t host, const char *node,
                       uint32_t timeout_ms);

/* "host:port", for messages. */
void conninfo_name(const struct conninfo *info, size_t host, char out[CONNINFO_NAME_MAX]);

/*
 * The first line of libpq's message about a connection, without its prefix and without the
 * password; sqlstate is "" when the message has none.
 */
void conninfo_reason(const struct conninfo *info, const char *reason, char *out, size_t room,
                     char sqlstate[6]);

#endif
