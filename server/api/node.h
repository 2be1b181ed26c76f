/*
 * A daemon as a node of a cluster: its staleness, and redirects to the nodes of locales that it
 * does not follow. Unused without a shared log.
 */
#ifndef KOTA_API_NODE_H
#define KOTA_API_NODE_H

#include "api/call_data.h"

/*
 * Is the locale one that this daemon follows? Else ERR_ELSEWHERE, and call->location is a daemon
 * that does; or ERR_MISDIRECTED: no live one does.
 */
enum err_code node_check(struct call *call, const char *locale_id, struct err *err);

/*
 * For a locale that is unknown here while the request names its revision (Kota-Min-Revision):
 * ERR_BUSY until that revision has been applied here. ERR_OK: it does not exist, or was deleted.
 */
enum err_code node_check_coming(const struct call *call, const char *locale_id, struct err *err);

/* The same before the handler runs: is it worth waiting? */
bool node_is_coming(struct api *api, const char *locale_id, uint64_t least);

/*
 * Another daemon may have made a later revision: call->locale becomes the newest of the shared log.
 * Without the log it stays. Waits: on a worker only.
 */
void node_catch_up(struct call *call, const char *locale_id);

/* The query's parameter of a redirected request, which is not redirected again. */
#define NODE_PLACED "placed"

/*
 * When no patch can be made here (*err is ERR_NO_DEVICE, or ERR_BUSY: all are in use): has another
 * daemon room for one? Then ERR_ELSEWHERE, and call->location is there; else *err stays.
 */
enum err_code node_place_patch(struct call *call, const char *locale_id, struct err *err);

/*
 * Does another daemon simulate patches of a locale that has none here? Then ERR_ELSEWHERE, and
 * call->location is there; as of its last heartbeat.
 */
enum err_code node_check_live(struct call *call, const char *locale_id, struct err *err);

/*
 * Does another daemon simulate ground within a box (lease.h)? Then ERR_ELSEWHERE, and
 * call->location is there; ERR_OK also where the log cannot be asked. Waits: on a worker only.
 */
enum err_code node_check_ground(struct call *call, const char *locale_id, struct vec2 low,
                                struct vec2 high, struct err *err);

/*
 * The address of this daemon, for a Location that is valid from any node: "" without a shared log,
 * or without an address. Any thread.
 */
void node_own_url(struct world *world, char out[static CLUSTER_URL_MAX + 1]);

/* Kota-Staleness, unless the log is fully applied here. */
void node_write_staleness(struct world *world, struct http_reply *reply);

/* The member staleness_s; nothing without a shared log. */
void node_staleness_member(struct json_writer *w, struct world *world);

/* ERR_UNAVAILABLE: staler than the limit, or something cannot be followed. */
enum err_code node_readiness(const struct api *api, struct err *err);

/* "staleness_s": seconds, or null when nothing has been seen of the log yet. */
void node_put_staleness(struct json_writer *w, double staleness_s);

#endif
