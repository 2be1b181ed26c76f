/*
 * What a daemon that shares its log with others says of it: how stale it is, where locales are that
 * it does not follow, its numbers. Without a shared log nothing of this is asked.
 */
#ifndef KOTA_API_FLEET_H
#define KOTA_API_FLEET_H

#include "api/call.h"
#include "api/numbers.h"

/*
 * Is the locale one that this daemon follows? Else ERR_ELSEWHERE, and call->location leads to a
 * daemon that does; or ERR_MISDIRECTED, none that lives does.
 */
enum err_code fleet_check(struct call *call, const char *locale_id, struct err *err);

/*
 * A locale that is not here and that the request knows to be (Kota-Min-Revision): ERR_BUSY while
 * its revision has not been applied here. ERR_OK: it is not here, or was deleted.
 */
enum err_code fleet_check_coming(const struct call *call, const char *locale_id, struct err *err);

/* The same before the handler runs: is it worth waiting? */
bool fleet_is_coming(struct api *api, const char *locale_id, uint64_t least);

/*
 * Another daemon may have made what is missed here: call->locale becomes what the shared log has of
 * it now. Where the log cannot be asked, or there is none, it stays. Waits: on a worker alone.
 */
void fleet_catch_up(struct call *call, const char *locale_id);

/* The query's parameter that says: another daemon led here, so lead nowhere else. */
#define FLEET_PLACED "placed"

/*
 * After *err said that no patch can be made here (ERR_NO_DEVICE, or ERR_BUSY: all are in use): is
 * there a daemon that has room for one? Then ERR_ELSEWHERE, and call->location leads there; else
 * *err stays.
 */
enum err_code fleet_place_patch(struct call *call, const char *locale_id, struct err *err);

/*
 * The address of this daemon, for a Location that has to lead here from wherever the request came:
 * "" without a shared log, or without an address. Any thread.
 */
void fleet_own_url(struct world *world, char out[static CLUSTER_URL_MAX + 1]);

/* Kota-Staleness, while it is not known that all is here. */
void fleet_tell_staleness(struct world *world, struct http_reply *reply);

/* The member staleness_s; nothing without a shared log. */
void fleet_staleness_member(struct json_writer *w, struct world *world);

/* ERR_UNAVAILABLE: staler than the limit, or something cannot be followed. */
enum err_code fleet_readiness(const struct api *api, struct err *err);

/* The member cluster of /v1/stats: an object, or null. */
void fleet_stats(struct json_writer *w, struct api *api, const struct numbers *numbers);

#endif
