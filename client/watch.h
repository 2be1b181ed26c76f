/*
 * Following a stream of events across lost connections.
 */
#ifndef KOTA_CLIENT_WATCH_H
#define KOTA_CLIENT_WATCH_H

#include "client/kota.h"

/*
 * Prints the events of the feed at path, one a line, until it ends for good, or a connection is
 * refused, or the first one cannot be made. That of a patch ends with the patch.
 */
enum kota_exit watch_feed(struct kota *kota, const char *path);

#endif
