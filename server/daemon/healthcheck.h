/*
 * `kotad --healthcheck`: does the daemon with this configuration answer 200 to /readyz?
 */
#ifndef KOTA_DAEMON_HEALTHCHECK_H
#define KOTA_DAEMON_HEALTHCHECK_H

#include "daemon/config.h"

/*
 * Asks the listener of the configuration: its TCP address, else its Unix socket; where that is
 * every address, on the loopback; where its port is 0, at the port that --port-file holds. Takes
 * HEALTHCHECK_MS at most. ERR_BUSY: the address and the actual answer, in one line.
 */
enum { HEALTHCHECK_MS = 5000 };
enum err_code healthcheck(const struct config *config, struct err *err);

#endif
