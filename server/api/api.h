/*
 * The API for the daemon: its life, a reload of its limits, and its hooks and routes for a server.
 */
#ifndef KOTA_API_API_H
#define KOTA_API_API_H

#include "api/api_data.h"

/* Every limit at its default. */
void api_limits_init(struct api_limits *limits);

/* Borrows world and auth. ERR_NO_MEMORY. */
enum err_code api_init(struct api *api, struct world *world, struct auth *auth,
                       const struct api_limits *limits, struct err *err);
/* Ends its threads: before the world is destroyed, after the server. */
void api_stop(struct api *api);
void api_finish(struct api *api);

/*
 * Other limits for the calls that begin from now on, here and in the world. Those of the store, the
 * caches and the patches stay as they were at the start. ERR_NO_MEMORY. One thread at a time.
 */
enum err_code api_set_limits(struct api *api, const struct api_limits *limits, struct err *err);

/* Lines for all writes from now on; borrows it. Before a server is started. */
void api_set_audit(struct api *api, struct audit *audit);

/* The hooks and routes to start a server with; borrows the api. */
struct http_app api_http_app(struct api *api);
/* The same for a listener of probes only, which may run before the world is loaded. */
struct http_app api_ops_app(struct api *api);

#endif
