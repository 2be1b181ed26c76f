/*
 * One node of a cluster of daemons that share a log.
 *
 * A call on a locale that is not followed here is redirected to a daemon whose pattern matches it:
 * 307 keeps method and body. Of several the locale's id selects one, so that all daemons redirect
 * to the same one and its caches are warm. The list of daemons is that of the last heartbeat, read
 * without a query to the engine.
 *
 * Staleness is a lower bound on the time for which answers may lack the writes of others: this
 * daemon polls the log every few seconds (docs/cluster.md).
 */
#include "api/node.h"

#include "base/content_hash.h"
#include "world/follow/lease.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- elsewhere ------------------------------------------------------------------------------- */

static uint64_t mix(const char *a, const char *b)
{
    uint64_t hash = fnv1a(fnv1a(FNV1A_EMPTY, a, strlen(a)), b, strlen(b));

    return hash ^ hash >> 29;
}

/* The daemon of the greatest mix of both names among those that follow the locale (Thaler, 1996).
 */
static const struct cluster_node *choose(const struct cluster_node *nodes, size_t count,
                                         const char *locale_id)
{
    const struct cluster_node *best = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct cluster_node *node = &nodes[i];

        if (node->url[0] == '\0' || !world_pattern_takes(node->locales, locale_id))
            continue;
        if (!best || mix(locale_id, node->id) > mix(locale_id, best->id))
            best = node;
    }
    return best;
}

static enum err_code redirect(struct call *call, const struct cluster_node *node,
                              const char *locale_id, const char *mark, struct err *err)
{
    struct span target = http_request_target(call->request);
    bool has_query = target.length > 0 && memchr(target.at, '?', target.length);
    size_t room = strlen(node->url) + target.length + strlen(mark) + 2;
    char *location = http_request_alloc(call->request, room);

    if (!location)
        return err_set(err, ERR_NO_MEMORY, "no memory for a location");
    snprintf(location, room, "%s%.*s%s%s", node->url, (int)target.length, target.at,
             mark[0] == '\0' ? ""
             : has_query     ? "&"
                             : "?",
             mark);
    call->location = location;
    return err_set(err, ERR_ELSEWHERE, "locale %s is served by node %s", locale_id, node->id);
}

enum err_code node_check(struct call *call, const char *locale_id, struct err *err)
{
    struct cluster_node *nodes = NULL;
    const struct cluster_node *node = NULL;
    size_t count = 0;

    if (world_serves(call->api->world, locale_id))
        return ERR_OK;
    if (call->request && cluster_nodes(world_log(call->api->world), &nodes, &count, err) == ERR_OK)
        node = choose(nodes, count, locale_id);
    if (node)
        redirect(call, node, locale_id, "", err);
    else
        err_set(err, ERR_MISDIRECTED,
                "locale %s is not among those of this node (--locales), and no other that is alive "
                "has it",
                locale_id);
    free(nodes);
    return err->code;
}

/* The daemon with most room for patches; of equals the one with the least of them in use. */
static const struct cluster_node *choose_device(const struct cluster_node *nodes, size_t count,
                                                const char *own_id, const char *locale_id)
{
    const struct cluster_node *best = NULL;
    uint32_t most = 0;

    for (size_t i = 0; i < count; i++) {
        const struct cluster_node *node = &nodes[i];
        uint32_t room = node->patch_slots > node->patches ? node->patch_slots - node->patches : 0;

        if (room == 0 || node->url[0] == '\0' || strcmp(node->id, own_id) == 0 ||
            !world_pattern_takes(node->locales, locale_id))
            continue;
        if (room > most || (room == most && node->patches < best->patches)) {
            best = node;
            most = room;
        }
    }
    return best;
}

enum err_code node_place_patch(struct call *call, const char *locale_id, struct err *err)
{
    struct cluster_node *nodes = NULL;
    const struct cluster_node *node = NULL;
    struct world_shared shared;
    struct err ignored;
    size_t count = 0;

    if (!call->request || !world_shared(call->api->world, &shared))
        return err->code;
    if (cluster_nodes(world_log(call->api->world), &nodes, &count, &ignored) == ERR_OK)
        node = choose_device(nodes, count, shared.node, locale_id);
    if (node && redirect(call, node, locale_id, NODE_PLACED "=true", err) == ERR_ELSEWHERE)
        err_set(err, ERR_ELSEWHERE, "node %s has room for a patch", node->id);
    free(nodes);
    return err->code;
}

/* Is the locale among those that a node has leases in? */
static bool has_lease(const struct cluster_node *node, const char *locale_id)
{
    const size_t length = strlen(locale_id);

    for (const char *at = node->leased, *end; (end = strchr(at, ' ')); at = end + 1)
        if ((size_t)(end - at) == length && memcmp(at, locale_id, length) == 0)
            return true;
    return false;
}

enum err_code node_check_live(struct call *call, const char *locale_id, struct err *err)
{
    struct cluster_node *nodes = NULL;
    const struct cluster_node *node = NULL;
    struct world_shared shared;
    size_t count = 0;

    if (!call->request || !call->api->is_shared || !world_shared(call->api->world, &shared))
        return ERR_OK;
    if (cluster_nodes(world_log(call->api->world), &nodes, &count, err))
        return ERR_OK; /* nothing is known of others: the settled ground */
    for (size_t i = 0; i < count && !node; i++)
        if (nodes[i].url[0] != '\0' && strcmp(nodes[i].id, shared.node) != 0 &&
            has_lease(&nodes[i], locale_id))
            node = &nodes[i];
    if (node && redirect(call, node, locale_id, "", err) == ERR_ELSEWHERE)
        err_set(err, ERR_ELSEWHERE, "node %s simulates patches of locale %s", node->id, locale_id);
    else
        err->code = ERR_OK;
    free(nodes);
    return err->code;
}

enum err_code node_check_ground(struct call *call, const char *locale_id, struct vec2 low,
                                struct vec2 high, struct err *err)
{
    struct cluster_node *nodes = NULL;
    char holder[CLUSTER_ID_MAX + 1];
    struct err ignored;
    size_t count = 0;

    err->code = ERR_OK;
    if (!call->request || !call->api->is_shared ||
        world_lease_holder(call->api->world, locale_id, low, high, holder, &ignored) ||
        holder[0] == '\0' || cluster_nodes(world_log(call->api->world), &nodes, &count, &ignored))
        return ERR_OK;
    for (size_t i = 0; i < count && err->code == ERR_OK; i++)
        if (nodes[i].url[0] != '\0' && strcmp(nodes[i].id, holder) == 0 &&
            redirect(call, &nodes[i], locale_id, NODE_PLACED "=true", err) == ERR_ELSEWHERE)
            err_set(err, ERR_ELSEWHERE, "node %s simulates that ground of locale %s", holder,
                    locale_id);
    free(nodes);
    return err->code;
}

void node_own_url(struct world *world, char out[static CLUSTER_URL_MAX + 1])
{
    struct cluster_node *nodes = NULL;
    struct world_shared shared;
    struct err ignored;
    size_t count = 0;

    out[0] = '\0';
    if (!world_shared(world, &shared) ||
        cluster_nodes(world_log(world), &nodes, &count, &ignored) != ERR_OK)
        return;
    for (size_t i = 0; i < count; i++)
        if (strcmp(nodes[i].id, shared.node) == 0)
            strcpy(out, nodes[i].url);
    free(nodes);
}

/* ---- not here yet ---------------------------------------------------------------------------- */

bool node_is_coming(struct api *api, const char *locale_id, uint64_t least)
{
    return api->is_shared && world_serves(api->world, locale_id) &&
           world_applied(api->world, locale_id) < least;
}

void node_catch_up(struct call *call, const char *locale_id)
{
    struct locale *newer = NULL;
    struct err err = {.code = ERR_OK};

    if (!call->api->is_shared || world_locale_now(call->api->world, locale_id, &newer, &err))
        return;
    locale_unref(call->newer);
    call->locale = call->newer = newer;
}

enum err_code node_check_coming(const struct call *call, const char *locale_id, struct err *err)
{
    struct span header = http_request_header(call->request, "kota-min-revision");
    uint64_t least;

    if (!header.at || !span_count(header, &least) || !node_is_coming(call->api, locale_id, least))
        return ERR_OK;
    return err_limit(err, ERR_REVISION_LATE, (double)world_applied(call->api->world, locale_id),
                     (double)least, "locale %s is not here yet, not at revision %llu", locale_id,
                     (unsigned long long)least);
}

/* ---- staleness ------------------------------------------------------------------------------- */

void node_write_staleness(struct world *world, struct http_reply *reply)
{
    double staleness_s = world_staleness_s(world);

    if (staleness_s <= 0)
        return;
    if (isinf(staleness_s))
        http_reply_header(reply, "Kota-Staleness", "unknown");
    else
        http_reply_header(reply, "Kota-Staleness", "%.3f", staleness_s);
}

void node_put_staleness(struct json_writer *w, double staleness_s)
{
    json_put_number(w, "staleness_s", staleness_s); /* null of INFINITY */
}

void node_staleness_member(struct json_writer *w, struct world *world)
{
    if (world_log(world))
        node_put_staleness(w, world_staleness_s(world));
}

enum err_code node_readiness(const struct api *api, struct err *err)
{
    struct world_shared shared;
    double staleness_s, most_s = (double)api->staleness_s_max;

    if (!world_shared(api->world, &shared))
        return ERR_OK;
    if (shared.reason[0] != '\0')
        return err_set(err, ERR_UNAVAILABLE, "%s", shared.reason);
    staleness_s = world_staleness_s(api->world);
    if (most_s == 0 || staleness_s <= most_s)
        return ERR_OK;
    if (isinf(staleness_s))
        return err_set(err, ERR_UNAVAILABLE, "the shared log has not been seen yet");
    return err_limit(err, ERR_UNAVAILABLE, most_s, staleness_s,
                     "for %.0f s it has not been known that all of the shared log is here; the "
                     "most is %.0f s",
                     staleness_s, most_s);
}
