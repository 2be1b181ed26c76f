/*
 * From the flags to a shared log: names, addresses, files that must stay readable. Main thread, at
 * the start.
 */
#ifndef KOTA_DAEMON_SHARING_H
#define KOTA_DAEMON_SHARING_H

#include "daemon/config.h"
#include "replica/conninfo.h"
#include "world/world.h"

struct sharing {
    char *conninfo; /* malloc: of the flag or its file; NULL: there is no shared log */
    char node[CLUSTER_ID_MAX + 1];
    char url[CLUSTER_URL_MAX + 1];                     /* "": not known, or nowhere */
    char files[CONNINFO_FILES_MAX][CONNINFO_PATH_MAX]; /* that a connection reads */
    size_t file_count;
    struct cluster *log; /* NULL until sharing_open */
};

/* Before the process is confined: checks the flags, reads the file. ERR_BAD_INPUT. */
enum err_code sharing_read(struct sharing *sharing, const struct config *config, struct err *err);

/*
 * Opens the log for a store, or finds that there is none to share; before the world is made.
 * ERR_CONFLICT: the store is of a log and no --cluster is given; or the error of cluster_create.
 */
enum err_code sharing_open(struct sharing *sharing, const struct config *config,
                           struct store *store, struct err *err);

/* The port of this node is known: its address is published to the others, once. */
void sharing_listens(struct sharing *sharing, const struct config *config, uint16_t port);

/* After the world has ended. */
void sharing_close(struct sharing *sharing);

#endif
