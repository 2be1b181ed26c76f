/*
 * Where an impact gets its granules.
 *
 * Problem: granules are slow and few, and impacts come anywhere. Approach: a living patch around
 * the point takes the body if its granules suit it. Else a patch of its own is made, as small as
 * the crater allows, of the coarsest granules that still leave one, and only where the device does
 * not need too long for it. Everything else is refused, with the reason that the impact has.
 */
#include "api/impacts/impact_patch.h"

#include "api/calls/patches.h"
#include "api/node.h"
#include "sand/body/shell_cache.h"
#include "world/follow/lease.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POOL_WAIT_S 1.0
#define CLEARANCE_M 0.01
/* The least side and depth of a patch, in diameters of the body, radii of its pit, granules. */
#define SIDE_OF_BODY 4.0
#define SIDE_OF_PIT 3.6
#define SIDE_OF_GRANULE 5.0
#define DEPTH_OF_BODY 1.25
#define DEPTH_OF_GRANULE 2.5
/* Granules across the body: for a new patch as many as ACROSS_BEST, never fewer than ACROSS_LEAST;
 * for one that is there already, ACROSS_JOIN. */
#define ACROSS_BEST 5.0
#define ACROSS_LEAST 4.0
#define ACROSS_JOIN 3.0
/* How far from the observer which granules are taken, as of `auto` (patch_decode.c). */
#define FINE_WITHIN_M 50.0
#define MEDIUM_WITHIN_M 200.0

static double granules_across(const struct impact *impact, enum granular_scale scale)
{
    return 2 * impact->body.radius_m / ((2 + sqrt(6)) * (double)scale_radius_m(scale));
}

/* ---- the body -------------------------------------------------------------------------------- */

/* As it meets the ground: its centre is so far back on its way that it touches nothing. */
static enum err_code make_body(struct call *call, const struct impact *impact,
                               enum granular_scale scale, const struct heightfield *field,
                               const struct convert_place *place, struct patch_body *out,
                               struct err *err)
{
    const double across = fmax(-vec3_dot(impact->direction, impact->normal), 0.2);
    const double back_m = (impact->extent_m + CLEARANCE_M) / across;
    const struct vec3 center = vec3_sub(impact->point, vec3_scale(impact->direction, back_m));
    const struct vec3 velocity = vec3_scale(impact->direction, impact->body.speed_m_s);
    struct patch_body body = {.ball_m = impact->ball_m, .orientation = {0, 0, 0, 1}};
    struct sand_engine_config config;
    struct shell_ref *shell;

    if (sand_engine_config(call->api->sand, scale, &config, err))
        return err->code;
    shell = shell_cache_get(call->api->shells, impact->model, config.params.radius_m,
                            &call_limits(call)->polygon, err);
    if (!shell)
        return err->code;
    shell_ref_body(shell, impact->body.mass_kg, &body.shape); /* keeps the reference */
    if (impact->ball_m == 0)
        memcpy(body.model, impact->model->id, sizeof body.model);
    body.position[0] = center.x - (double)body.shape.center_m[0];
    body.position[1] = center.y - (double)body.shape.center_m[1];
    body.position[2] = center.z - (double)body.shape.center_m[2];
    body.velocity[0] = velocity.x;
    body.velocity[1] = velocity.y;
    body.velocity[2] = velocity.z;
    if (patch_body_check(&body, field, place, &config.params, err)) {
        patch_body_free(&body);
        return err->code;
    }
    *out = body;
    return ERR_OK;
}

/* ---- a patch that there is ------------------------------------------------------------------- */

/* Does the pit lie inside a living patch, whose granules are small enough for the body? */
static bool takes_impact(const struct patch_report *report, const struct impact *impact)
{
    const struct convert_place *place = &report->place;
    const double x = impact->point.x - place->low.x, y = impact->point.y - place->low.y;
    const double pit_m = impact->crater.radius_m;

    return !patch_state_is_end(report->state) && !report->is_closing &&
           report->mode == CONVERT_DIFFERENCE && strcmp(report->layer, impact->layer) == 0 &&
           granules_across(impact, report->scale) >= ACROSS_JOIN && x >= pit_m && y >= pit_m &&
           x + pit_m <= place->size_m[0] && y + pit_m <= place->size_m[1];
}

/* A living patch around it, a reference; NULL: there is none. */
static struct patch_report *find_patch(struct call *call, const struct impact *impact)
{
    struct patch_report **reports, *found = NULL;
    size_t count = 0;

    reports = sand_reports(call->api->sand, call->locale->id, &count);
    for (size_t i = 0; reports && i < count; i++) {
        if (!found && takes_impact(reports[i], impact))
            found = patch_report_ref(reports[i]);
        patch_report_unref(reports[i]);
    }
    free(reports);
    return found;
}

/* ---- a new patch ----------------------------------------------------------------------------- */

/* Two patches do not share ground: seen before the ground is cut. */
static enum err_code check_neighbours(struct call *call, const struct impact *impact, double size_m,
                                      struct err *err)
{
    struct patch_report **reports;
    size_t count = 0;

    err->code = ERR_OK;
    reports = sand_reports(call->api->sand, call->locale->id, &count);
    for (size_t i = 0; reports && i < count; i++) {
        const struct convert_place *place = &reports[i]->place;
        const double x = impact->point.x - place->low.x, y = impact->point.y - place->low.y;

        if (!patch_state_is_end(reports[i]->state) &&
            strcmp(reports[i]->layer, impact->layer) == 0 && x > -size_m / 2 && y > -size_m / 2 &&
            x < place->size_m[0] + size_m / 2 && y < place->size_m[1] + size_m / 2)
            err_set(err, ERR_CONFLICT, "patch %llu is beside it, and cannot take it",
                    (unsigned long long)reports[i]->number);
        patch_report_unref(reports[i]);
    }
    free(reports);
    return err->code;
}

/* The coarsest granules that suit the body; coarser ones where the observer is far. */
static int first_scale(const struct impact *impact)
{
    const int by_distance = impact->observer_m < FINE_WITHIN_M     ? SCALE_FINE
                            : impact->observer_m < MEDIUM_WITHIN_M ? SCALE_MEDIUM
                                                                   : SCALE_COARSE;
    int scale = SCALE_COARSE;

    while (scale > by_distance && granules_across(impact, (enum granular_scale)scale) < ACROSS_BEST)
        scale--;
    return scale;
}

/* Size and depth of a patch: the pit, and as much ground that only carries it. */
static void measure_patch(const struct impact *impact, enum granular_scale scale,
                          struct patch_impact *out)
{
    const double diameter_m = (2 + sqrt(6)) * (double)scale_radius_m(scale);
    const double body_m = 2 * impact->body.radius_m;

    out->scale = scale;
    out->size_m = fmax(fmax(SIDE_OF_BODY * body_m, SIDE_OF_PIT * impact->crater.radius_m),
                       SIDE_OF_GRANULE * diameter_m);
    out->depth_m = fmax(DEPTH_OF_BODY * body_m, DEPTH_OF_GRANULE * diameter_m);
}

/* Into a new patch, which is freed on error. */
static enum err_code add_body(struct call *call, const struct impact *impact,
                              enum granular_scale scale, struct patch_start *start, struct err *err)
{
    start->bodies = calloc(1, sizeof *start->bodies);
    if (!start->bodies)
        err_set(err, ERR_NO_MEMORY, "no memory for a body");
    else if (make_body(call, impact, scale, start->field, &start->place, start->bodies, err) ==
             ERR_OK)
        start->body_count = 1;
    if (err->code != ERR_OK) {
        world_unlease(call->api->world, start->fence);
        patch_start_free(start);
    }
    return err->code;
}

/* A new patch around it, of the first scale that can be had. */
static enum err_code make_patch(struct call *call, const struct impact *impact,
                                struct patch_impact *place, struct patch_start *out,
                                struct err *err)
{
    err->code = ERR_OK;
    for (int i = first_scale(impact); i < SCALE_COUNT; i++) {
        const enum granular_scale scale = (enum granular_scale)i;

        if (granules_across(impact, scale) < ACROSS_LEAST)
            break;
        measure_patch(impact, scale, place);
        if (check_neighbours(call, impact, place->size_m, err))
            return err->code;
        if (sand_wait(call->api->sand, scale, POOL_WAIT_S, err) == ERR_OK &&
            patch_impact_start(call, place, out, err) == ERR_OK)
            return add_body(call, impact, scale, out, err);
    }
    if (err->code != ERR_OK)
        return err->code;
    return err_set(err, ERR_UNPROCESSABLE,
                   "the body is less than %g granules wide, those for this distance are %s",
                   ACROSS_LEAST, scale_name((enum granular_scale)first_scale(impact)));
}

/* ---- the order ------------------------------------------------------------------------------- */

/* Is it worth granules at all? */
static enum err_code check_worth(const struct call *call, const struct impact *impact,
                                 struct err *err)
{
    err->code = ERR_OK;
    if (!call->api->sand)
        err_set(err, ERR_NO_DEVICE, "patches cannot be simulated here");
    else if (impact->observer_m > IMPACT_OBSERVER_M)
        err_set(err, ERR_UNPROCESSABLE, "the observer is %.0f m away, granules end at %d m",
                impact->observer_m, IMPACT_OBSERVER_M);
    return err->code;
}

void impact_order_drop(struct call *call, struct sand_order *order)
{
    if (order->kind == SAND_ADD)
        world_unlease(call->api->world, order->start.fence);
    sand_order_drop(order);
}

static enum err_code join_patch(struct call *call, const struct impact *impact,
                                const struct patch_report *living, struct patch_body *out,
                                struct err *err)
{
    const struct layer *layer = locale_layer(call->locale, living->layer);

    if (!layer || !layer->field)
        return err_set(err, ERR_CONFLICT, "the layer %s of the patch is gone", living->layer);
    return make_body(call, impact, living->scale, layer->field, &living->place, out, err);
}

enum err_code impact_order(struct call *call, const struct impact *impact,
                           const struct locale *after, const struct patch_dent *dent,
                           struct sand_order *order, struct err *err)
{
    const struct locale *pinned = call->locale;
    struct patch_impact place = {.layer = impact->layer,
                                 .point = {impact->point.x, impact->point.y},
                                 .dent = dent,
                                 .deadline_s = IMPACT_REST_MS / 1e3};
    struct patch_report *living;

    if (check_worth(call, impact, err))
        return err->code;
    call->locale = after;
    living = find_patch(call, impact);
    if (living) {
        *order = (struct sand_order){.kind = SAND_BODY, .number = living->number};
        join_patch(call, impact, living, &order->body, err);
    } else {
        *order = (struct sand_order){.kind = SAND_ADD};
        make_patch(call, impact, &place, &order->start, err);
    }
    if (err->code == ERR_OK &&
        patch_check_place(call, living ? &living->place : &order->start.place, err))
        impact_order_drop(call, order);
    patch_report_unref(living);
    call->locale = pinned;
    return err->code;
}

/* ---- other daemons --------------------------------------------------------------------------- */

/* Could a patch be made here? ERR_NO_DEVICE, or ERR_BUSY with a limit: all are in use. */
static enum err_code check_room(struct call *call, const struct impact *impact, struct err *err)
{
    struct sand_engine_config config;
    struct sand *sand = call->api->sand;

    if (!sand)
        return err_set(err, ERR_NO_DEVICE, "patches cannot be simulated here");
    for (int i = first_scale(impact); i < SCALE_COUNT; i++) {
        const enum granular_scale scale = (enum granular_scale)i;

        if (granules_across(impact, scale) < ACROSS_LEAST)
            break;
        if (sand_engine_config(sand, scale, &config, err) == ERR_OK &&
            sand_ready(sand, scale, err) != ERR_NO_DEVICE &&
            sand_is_free(sand, scale, err) == ERR_OK)
            return ERR_OK;
    }
    return err->code;
}

enum err_code impact_place(struct call *call, const struct impact *impact, struct err *err)
{
    const double pit_m = impact->crater.radius_m;
    const struct vec2 low = {impact->point.x - pit_m, impact->point.y - pit_m};
    const struct vec2 high = {impact->point.x + pit_m, impact->point.y + pit_m};
    const char *locale = call->locale->id;
    struct patch_report *living;

    err->code = ERR_OK;
    if (!call->api->is_shared || impact->is_placed || impact->observer_m > IMPACT_OBSERVER_M ||
        granules_across(impact, (enum granular_scale)first_scale(impact)) < ACROSS_LEAST)
        return ERR_OK;
    living = call->api->sand ? find_patch(call, impact) : NULL;
    patch_report_unref(living);
    if (living || node_check_ground(call, locale, low, high, err))
        return err->code;
    if (check_room(call, impact, err) == ERR_OK)
        return ERR_OK;
    return node_place_patch(call, locale, err) == ERR_ELSEWHERE ? err->code : (err->code = ERR_OK);
}
