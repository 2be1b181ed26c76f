/*
 * Granules for an impact: in a living patch, or in one of its own.
 */
#ifndef KOTA_API_IMPACT_PATCH_H
#define KOTA_API_IMPACT_PATCH_H

#include "api/calls/patch_decode.h"
#include "api/impacts/impact_decode.h"

/*
 * The order that brings the body of an impact into granules, without its dent, which is of the
 * ground `after`. On a worker. After ERR_OK it is to be submitted or dropped; else the message is
 * the reason why there are none.
 */
enum err_code impact_order(struct call *call, const struct impact *impact,
                           const struct locale *after, const struct patch_dent *dent,
                           struct sand_order *order, struct err *err);
void impact_order_drop(struct call *call, struct sand_order *order);

/*
 * Where daemons share a log, and granules suit the body: ERR_ELSEWHERE, and call->location, when
 * another one simulates the ground, or has room for a patch and this one has none. On a worker.
 */
enum err_code impact_place(struct call *call, const struct impact *impact, struct err *err);

#endif
