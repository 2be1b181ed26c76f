/*
 * The keeper: a thread that looks after the life of the daemon. While the world is loaded it tells
 * how far that is; while it is served it feeds the service manager's watchdog; it takes the signals
 * that the main thread cannot take because it loads or drains.
 */
#ifndef KOTA_API_KEEPER_H
#define KOTA_API_KEEPER_H

#include "api/api.h"

enum keeper_phase {
    KEEPER_LOADING,  /* SIGTERM and SIGINT end the process at once: there is nothing to drain */
    KEEPER_SERVING,  /* signals are the main thread's */
    KEEPER_DRAINING, /* the second signal of a kind ends the process at once */
};

struct keeper;

/* What is removed when the keeper ends the process; "" is none. */
struct keeper_config {
    const char *port_file, *ops_port_file;
};

/*
 * Starts the thread, in KEEPER_LOADING. Borrows the api, whose world must outlive the keeper, and
 * the texts. Signals are blocked by the caller. ERR_INTERNAL, ERR_NO_MEMORY; NULL then.
 */
struct keeper *keeper_create(struct api *api, const struct keeper_config *config, struct err *err);

/*
 * The phase that follows. first_signal, with KEEPER_DRAINING: the one that has begun it. servers:
 * whose loops are watched from now on (NULL: none); they live until the next call of this returns.
 */
void keeper_go_on(struct keeper *keeper, enum keeper_phase phase, int first_signal,
                  struct http_server *server, struct http_server *ops);

void keeper_destroy(struct keeper *keeper); /* NULL is fine */

#endif
