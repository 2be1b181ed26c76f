/*
 * Following a stream of events across lost connections.
 */
#ifndef KOTA_CLIENT_WATCH_H
#define KOTA_CLIENT_WATCH_H

#include "client/events.h"
#include "client/kota.h"

#include <stdbool.h>

/*
 * Prints the events of GET path, one a line, until is_last (NULL: never) is true for one, or a
 * connection is refused, or the first one cannot be made.
 */
enum kota_exit kota_watch(struct kota *kota, const char *path,
                          bool (*is_last)(const struct event *event));

#endif
