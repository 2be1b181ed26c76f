/*
 * The watchdog: a thread that supervises the daemon. During the load it reports progress; while
 * serving it feeds the service manager's watchdog; it takes the signals that the main thread cannot
 * take because it loads or drains.
 */
#ifndef KOTA_DAEMON_WATCHDOG_H
#define KOTA_DAEMON_WATCHDOG_H

#include "api/api.h"

enum watchdog_phase {
    WATCHDOG_LOADING,  /* SIGTERM and SIGINT end the process at once: there is nothing to drain */
    WATCHDOG_SERVING,  /* signals are the main thread's */
    WATCHDOG_DRAINING, /* the second signal of a kind ends the process at once */
};

struct watchdog;

/* What is removed when the watchdog ends the process; "" is none. */
struct watchdog_config {
    const char *port_file, *ops_port_file;
};

/*
 * Starts the thread in WATCHDOG_LOADING. Borrows the api, whose world must outlive the watchdog,
 * and the texts. Signals are blocked by the caller. ERR_INTERNAL, ERR_NO_MEMORY; NULL then.
 */
struct watchdog *watchdog_create(struct api *api, const struct watchdog_config *config,
                                 struct err *err);

/*
 * Begins a phase. first_signal, with WATCHDOG_DRAINING: its reason. servers: their loops are
 * checked from now on (NULL: none); they live until the next call of this returns.
 */
void watchdog_set_phase(struct watchdog *watchdog, enum watchdog_phase phase, int first_signal,
                        struct http_server *server, struct http_server *ops);

void watchdog_destroy(struct watchdog *watchdog); /* NULL is fine */

#endif
