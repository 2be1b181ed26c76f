/*
 * Following a stream of events across lost connections.
 */
#ifndef KOTA_CLIENT_WATCH_H
#define KOTA_CLIENT_WATCH_H

#include "client/kota.h"

struct kota_request;

/*
 * Prints the events of a feed, one a line; takes the request for it. It runs until the feed ends
 * for good, or a connection is refused, or the first one cannot be made. That of a patch ends with
 * the patch.
 */
enum kota_exit watch_feed(struct kota *kota, struct kota_request *feed);

#endif
