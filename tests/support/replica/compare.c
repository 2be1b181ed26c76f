/*
 * See compare.h. The daemon is asked by JSON, whose numbers read back as the same bits.
 */
#include "support/replica/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { TOGETHER = 1000 };

struct compare {
    struct kota_client *client;
    const struct kota_ground_view *view;
    const struct kota_ground_locale *locale;
    const struct replica_place *place;
    struct random *random;
    struct replica_count *counted;
};

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static bool same_many(const double *a, const double *b, int count)
{
    for (int i = 0; i < count; i++)
        if (!same(a[i], b[i]))
            return false;
    return true;
}

/* Is the answer one that the copy cannot give? Then it is no difference. */
static bool left_out(struct compare *c, bool is_absent)
{
    c->counted->absent += is_absent;
    return is_absent && c->place->may_be_absent;
}

static bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static void judge(struct compare *c, bool is_same, const char *what, const double *asked, int count)
{
    int at = 0;

    c->counted->compared++;
    if (is_same || c->counted->differ++ > 0)
        return;
    at = snprintf(c->counted->first, sizeof c->counted->first, "%s of %s at", what,
                  c->place->locale);
    for (int i = 0; i < count; i++)
        at += snprintf(c->counted->first + at, sizeof c->counted->first - (size_t)at, " %.17g",
                       asked[i]);
}

static bool failed(struct compare *c, const char *what, struct kota_answer *answer)
{
    snprintf(c->counted->first, sizeof c->counted->first, "%s: %.200s", what,
             kota_answer_error(answer) ? kota_answer_error(answer)->message : "no copy");
    kota_answer_free(answer);
    return false;
}

static void draw(struct compare *c, double *xyz)
{
    for (int i = 0; i < 3; i++) {
        double low = c->place->min[i], high = c->place->max[i], spare = 0.05 * (high - low);

        xyz[i] = random_in(c->random, low - spare, high + spare);
        if (random_below(c->random, 4) == 0) /* on samples, edges and seams */
            xyz[i] = round(xyz[i]);
    }
}

/* The velocity of results[i], or of its member; NaN: none. */
static void velocity_of(struct kota_answer *answer, size_t i, const char *member, double out[3])
{
    const cJSON *results = cJSON_GetObjectItem(kota_answer_json(answer), "results");
    const cJSON *item = cJSON_GetArrayItem(results, (int)i);

    if (member)
        item = cJSON_GetObjectItem(item, member);
    item = cJSON_GetObjectItem(item, "velocity");
    for (int k = 0; k < 3; k++)
        out[k] = item ? cJSON_GetArrayItem(item, k)->valuedouble : NAN;
}

static bool heights(struct compare *c, size_t count)
{
    double xy[2 * TOGETHER], only_m[TOGETHER], xyz[3];
    struct kota_height daemon[TOGETHER];
    struct kota_ground_point own[TOGETHER];
    struct kota_answer *answer;

    for (size_t i = 0; i < count; i++) {
        draw(c, xyz);
        memcpy(xy + 2 * i, xyz, 2 * sizeof *xy);
    }
    answer = kota_call(c->client,
                       kota_height(c->place->locale, xy, count, KOTA_WITH_NORMAL | KOTA_WITH_CELL));
    if (!kota_read_height(answer, daemon, count) ||
        !kota_ground_heights(c->locale, NULL, KOTA_GROUND_TRIANGLE, xy, count, own, NULL) ||
        !kota_ground_heights_only(c->locale, NULL, KOTA_GROUND_TRIANGLE, xy, count, only_m, NULL))
        return failed(c, "height", answer);
    for (size_t i = 0; i < count; i++)
        judge(c,
              left_out(c, own[i].status == KOTA_GROUND_IS_ABSENT) ||
                  (daemon[i].status == own[i].status && same(daemon[i].height_m, own[i].height_m) &&
                   same_many(daemon[i].normal, own[i].normal, 3) &&
                   daemon[i].has_cell == own[i].has_cell &&
                   memcmp(daemon[i].cell, own[i].cell, sizeof own[i].cell) == 0 &&
                   same(only_m[i], own[i].height_m) &&
                   same(kota_ground_height(c->locale, xy[2 * i], xy[2 * i + 1]), only_m[i])),
              "height", xy + 2 * i, 2);
    kota_answer_free(answer);
    return true;
}

static bool same_place(const struct kota_hit *daemon, const struct kota_ground_hit *own)
{
    return daemon->status == own->status && same_many(daemon->point, own->point, 3) &&
           same_many(daemon->normal, own->normal, 3) && same_text(daemon->layer, own->layer) &&
           daemon->has_cell == own->has_cell && daemon->cell[0] == own->cell[0] &&
           daemon->cell[1] == own->cell[1] && daemon->triangle == own->triangle &&
           daemon->polygon == own->polygon;
}

static bool same_hit(const struct kota_hit *daemon, const struct kota_ground_hit *own)
{
    return same(daemon->t, own->t) && same(daemon->distance_m, own->distance_m) &&
           same_place(daemon, own);
}

static void draw_rays(struct compare *c, struct kota_ray *rays, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double to[3];

        draw(c, rays[i].origin);
        draw(c, to);
        for (int k = 0; k < 3; k++)
            rays[i].direction[k] = to[k] - rays[i].origin[k];
        rays[i].t_max = random_below(c->random, 3) ? INFINITY : random_in(c->random, 0, 2);
    }
}

static bool rays(struct compare *c, size_t count)
{
    struct kota_ray asked[TOGETHER];
    struct kota_hit daemon[TOGETHER];
    struct kota_ground_hit own[TOGETHER];
    struct kota_answer *answer;

    draw_rays(c, asked, count);
    answer = kota_call(c->client, kota_ray(c->place->locale, asked, count, false));
    if (!kota_read_ray(answer, daemon, count) ||
        !kota_ground_rays(c->locale, NULL, false, (const struct kota_ground_ray *)asked, count, own,
                          NULL))
        return failed(c, "ray", answer);
    for (size_t i = 0; i < count; i++) {
        double velocity[3];

        velocity_of(answer, i, NULL, velocity);
        judge(c,
              left_out(c, own[i].status == KOTA_GROUND_RAY_ABSENT) ||
                  (same_hit(&daemon[i], &own[i]) && same_many(velocity, own[i].velocity, 3)),
              same_hit(&daemon[i], &own[i]) ? "ray, its velocity," : "ray", asked[i].origin, 7);
    }
    kota_answer_free(answer);
    return true;
}

static bool world_rays(struct compare *c, size_t count)
{
    struct kota_ground_crossing crossings[64];
    struct kota_ray asked[TOGETHER];
    struct kota_hit daemon[TOGETHER];
    struct kota_answer *answer;

    draw_rays(c, asked, count);
    answer = kota_call(c->client, kota_world_ray(asked, count));
    if (!kota_read_ray(answer, daemon, count) || kota_ground_locale_count(c->view) > 64)
        return failed(c, "world ray", answer);
    for (size_t i = 0; i < count; i++) {
        struct kota_ground_hit own;
        size_t crossed;
        double listed;
        char pointer[64];

        kota_ground_world_ray(c->view, false, (const struct kota_ground_ray *)&asked[i], &own,
                              crossings, &crossed);
        snprintf(pointer, sizeof pointer, "/results/%zu/crossed_count", i);
        judge(c,
              left_out(c, own.status == KOTA_GROUND_RAY_ABSENT) ||
                  (same_hit(&daemon[i], &own) && same_text(daemon[i].locale, own.locale) &&
                   kota_read_number(answer, pointer, &listed) &&
                   (c->place->may_be_absent || listed == (double)crossed)),
              "world ray", asked[i].origin, 7);
    }
    kota_answer_free(answer);
    return true;
}

static bool same_surface(const struct kota_surface *daemon, const struct kota_ground_surface *own)
{
    return daemon->is_there == (own->layer != NULL) && same_many(daemon->point, own->point, 3) &&
           same(daemon->distance_m, own->distance_m) && same_many(daemon->normal, own->normal, 3) &&
           same(daemon->slope_deg, own->slope_deg) && same_text(daemon->layer, own->layer) &&
           daemon->has_cell == own->has_cell && daemon->cell[0] == own->cell[0] &&
           daemon->cell[1] == own->cell[1] && daemon->polygon == own->polygon;
}

static bool same_contact(const struct kota_contact *daemon, const struct kota_ground_contact *own)
{
    double placed[3] = {NAN, NAN, NAN};

    if (daemon->has_placed)
        memcpy(placed, daemon->placed, sizeof placed);
    return daemon->status == own->status && same_surface(&daemon->floor, &own->floor) &&
           same_surface(&daemon->ceiling, &own->ceiling) && same_many(placed, own->placed, 3);
}

static bool contacts(struct compare *c, size_t count, bool in_world)
{
    double xyz[3 * TOGETHER];
    struct kota_contact daemon[TOGETHER];
    struct kota_ground_contact own[TOGETHER];
    struct kota_contact_options options;
    struct kota_ground_reach reach = {NAN, NAN, NAN, 0, 0};
    struct kota_answer *answer;
    bool is_read;

    kota_contact_options_init(&options, sizeof options);
    if (random_below(c->random, 2)) {
        options.reach_up_m = reach.reach_up_m = random_in(c->random, 0, 5);
        options.max_distance_m = reach.max_distance_m = random_in(c->random, 0, 50);
    }
    if (random_below(c->random, 2)) {
        options.clearance_m = reach.clearance_m = 1.7;
        reach.is_exact = random_below(c->random, 2);
        options.clearance_exact = reach.is_exact;
    }
    for (size_t i = 0; i < count; i++)
        draw(c, xyz + 3 * i);
    answer = kota_call(c->client, in_world ? kota_world_contact(xyz, count, NULL, &options)
                                           : kota_contact(c->place->locale, xyz, count, &options));
    is_read = kota_read_contact(answer, daemon, count) &&
              (in_world ? kota_ground_world_contacts(c->view, &reach, xyz, NULL, count, own, NULL)
                        : kota_ground_contacts(c->locale, NULL, &reach, xyz, count, own, NULL));
    if (!is_read)
        return failed(c, "contact", answer);
    for (size_t i = 0; i < count; i++) {
        double velocity[3];

        velocity_of(answer, i, "floor", velocity);
        judge(c,
              left_out(c, own[i].status == KOTA_GROUND_IS_ABSENT) ||
                  (same_contact(&daemon[i], &own[i]) &&
                   same_many(velocity, own[i].floor.velocity, 3) &&
                   (!in_world || same_text(daemon[i].locale, own[i].locale))),
              same_contact(&daemon[i], &own[i]) ? "contact, its velocity or locale,"
              : in_world                        ? "world contact"
                                                : "contact",
              xyz + 3 * i, 3);
    }
    kota_answer_free(answer);
    return true;
}

static bool sights(struct compare *c, size_t count)
{
    struct kota_segment asked[TOGETHER];
    struct kota_los daemon[TOGETHER];
    struct kota_ground_sight own[TOGETHER];
    struct kota_answer *answer;

    for (size_t i = 0; i < count; i++) {
        draw(c, asked[i].from);
        draw(c, asked[i].to);
    }
    answer = kota_call(c->client, kota_los(c->place->locale, asked, count));
    if (!kota_read_los(answer, daemon, count) ||
        !kota_ground_sights(c->locale, NULL, (const struct kota_ground_segment *)asked, count, own,
                            NULL))
        return failed(c, "los", answer);
    for (size_t i = 0; i < count; i++)
        judge(c,
              left_out(c, own[i].is_absent) ||
                  (daemon[i].visible == own[i].is_visible && !own[i].is_absent &&
                   same(daemon[i].fraction, own[i].fraction) &&
                   (daemon[i].visible || same_many(daemon[i].point, own[i].point, 3))),
              "los", asked[i].from, 6);
    kota_answer_free(answer);
    return true;
}

static void draw_shape(struct compare *c, struct kota_shape *shape)
{
    double r = random_in(c->random, 0.1, 3);

    shape->kind = (enum kota_shape_kind)random_below(c->random, 3);
    shape->sizes[0] = r;
    shape->sizes[1] = shape->kind == KOTA_CAPSULE ? 3 * r : 0.7 * r;
    shape->sizes[2] = 1.5 * r;
    shape->sizes[3] = random_in(c->random, -180, 180);
}

static struct kota_ground_shape own_shape(const struct kota_shape *shape)
{
    struct kota_ground_shape own = {.kind = shape->kind};

    memcpy(own.sizes, shape->sizes, sizeof own.sizes);
    return own;
}

static bool sweeps(struct compare *c, size_t count)
{
    struct kota_sweep asked[TOGETHER];
    struct kota_touch daemon[TOGETHER];
    struct kota_ground_sweep sweeps[TOGETHER];
    struct kota_ground_touch own[TOGETHER];
    struct kota_answer *answer;

    for (size_t i = 0; i < count; i++) {
        draw_shape(c, &asked[i].shape);
        draw(c, asked[i].from);
        draw(c, asked[i].to);
        sweeps[i].shape = own_shape(&asked[i].shape);
        memcpy(sweeps[i].from, asked[i].from, sizeof sweeps[i].from + sizeof sweeps[i].to);
    }
    answer = kota_call(c->client, kota_sweep(c->place->locale, asked, count));
    if (!kota_read_sweep(answer, daemon, count) ||
        !kota_ground_sweeps(c->locale, NULL, sweeps, count, own, NULL))
        return failed(c, "sweep", answer);
    for (size_t i = 0; i < count; i++) {
        own[i].hit.t = own[i].hit.status == KOTA_GROUND_RAY_HIT ? own[i].hit.t : NAN;
        judge(c,
              left_out(c, own[i].hit.status == KOTA_GROUND_RAY_ABSENT) ||
                  (same(daemon[i].fraction, own[i].hit.t) &&
                   daemon[i].starts_inside == own[i].starts_inside &&
                   same_place(&daemon[i].hit, &own[i].hit)),
              "sweep", asked[i].from, 6);
    }
    kota_answer_free(answer);
    return true;
}

static bool same_move(const struct kota_moved *daemon, const struct kota_ground_moved *own,
                      bool has_claimed)
{
    bool is_same = same_many(daemon->to, own->to, 3) && daemon->is_grounded == own->is_grounded &&
                   daemon->starts_inside == own->starts_inside &&
                   daemon->hit_count == own->hit_count &&
                   (!has_claimed || daemon->is_reachable == own->is_reachable) &&
                   same_place(&daemon->floor, &own->floor) &&
                   (!own->is_grounded || same(daemon->slope_deg, own->slope_deg));

    for (size_t i = 0; is_same && i < own->hit_count; i++)
        is_same = same_place(&daemon->hits[i], &own->hits[i]);
    return is_same;
}

static bool moves(struct compare *c, size_t count)
{
    struct kota_move asked[TOGETHER] = {0};
    struct kota_moved daemon[TOGETHER];
    struct kota_ground_moved own[TOGETHER];
    struct kota_answer *answer;

    for (size_t i = 0; i < count; i++) {
        struct kota_move *move = &asked[i];

        *move = (struct kota_move){.dt_s = random_in(c->random, 0, 2),
                                   .slope_max_deg = i % 3 ? NAN : 30,
                                   .step_up_m = NAN,
                                   .snap_down_m = NAN,
                                   .has_claimed = i % 2};
        draw_shape(c, &move->shape);
        draw(c, move->from);
        for (int k = 0; k < 3; k++) {
            move->velocity[k] = random_in(c->random, -9, k < 2 ? 9 : 3);
            move->claimed[k] = move->from[k] + 0.9 * move->dt_s * move->velocity[k];
        }
    }
    answer = kota_call(c->client, kota_move(c->place->locale, asked, count));
    if (!kota_read_move(answer, daemon, count))
        return failed(c, "move", answer);
    for (size_t i = 0; i < count; i++) {
        const struct kota_move *move = &asked[i];
        struct kota_ground_move one = {own_shape(&move->shape),
                                       {move->from[0], move->from[1], move->from[2]},
                                       {move->velocity[0], move->velocity[1], move->velocity[2]},
                                       move->dt_s,
                                       move->slope_max_deg,
                                       move->step_up_m,
                                       move->snap_down_m,
                                       {NAN, NAN, NAN}};

        if (move->has_claimed)
            memcpy(one.claimed, move->claimed, sizeof one.claimed);
        if (!kota_ground_moves(c->locale, NULL, &one, 1, &own[i], NULL))
            return failed(c, "move", answer);
        judge(c, left_out(c, own[i].is_absent) || same_move(&daemon[i], &own[i], move->has_claimed),
              "move", move->from, 6);
    }
    kota_answer_free(answer);
    return true;
}

static bool places(struct compare *c, size_t count)
{
    double xyz[3 * TOGETHER];
    const char *hints[TOGETHER];
    struct kota_place daemon[TOGETHER];
    struct kota_ground_place own[TOGETHER];
    uint8_t daemon_bits[TOGETHER], own_bits[TOGETHER];
    struct kota_answer *answer;

    for (size_t i = 0; i < count; i++) {
        draw(c, xyz + 3 * i);
        hints[i] = random_below(c->random, 3) ? NULL : i % 2 ? c->place->locale : "nowhere";
    }
    answer = kota_call(c->client, kota_contains(c->place->locale, xyz, count));
    if (!kota_read_contains(answer, daemon_bits, count) ||
        !kota_ground_contained(c->locale, NULL, xyz, count, own_bits, NULL))
        return failed(c, "contains", answer);
    kota_answer_free(answer);
    answer = kota_call(c->client, kota_locate(xyz, count, hints));
    if (!kota_read_locate(answer, daemon, count) ||
        !kota_ground_locates(c->view, xyz, hints, count, own, NULL))
        return failed(c, "locate", answer);
    for (size_t i = 0; i < count; i++) {
        judge(c, left_out(c, own_bits[i] == KOTA_GROUND_ABSENT) || daemon_bits[i] == own_bits[i],
              "contains", xyz + 3 * i, 3);
        judge(c,
              left_out(c, own[i].is_absent) ||
                  (same_text(daemon[i].locale, own[i].locale) &&
                   same_many(daemon[i].point, own[i].point, 3) &&
                   daemon[i].changed == own[i].is_changed &&
                   daemon[i].hint_is_unknown == own[i].hint_is_unknown),
              "locate", xyz + 3 * i, 3);
    }
    kota_answer_free(answer);
    return true;
}

/* By JSON: kota_read_pick gives the same numbers. */
static bool picks(struct compare *c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct kota_ground_camera camera = {.viewport = {640, 480}, .fov_y_deg = 60};
        struct kota_pick pick;
        struct kota_picked daemon;
        struct kota_ground_picked own;
        struct kota_answer *answer;
        double pixel[2] = {random_in(c->random, 0, 640), random_in(c->random, 0, 480)};

        kota_pick_init(&pick, sizeof pick);
        draw(c, pick.eye);
        draw(c, pick.target);
        pick.fov_y_deg = 60;
        pick.viewport[0] = 640;
        pick.viewport[1] = 480;
        memcpy(pick.pixel, pixel, sizeof pixel);
        pick.tile_side = camera.tile_side = 16;
        memcpy(camera.eye, pick.eye, sizeof camera.eye);
        memcpy(camera.target, pick.target, sizeof camera.target);
        memcpy(camera.up, pick.up, sizeof camera.up);
        answer = kota_call(c->client, kota_pick(c->place->locale, &pick));
        if (!kota_read_pick(answer, &daemon) ||
            !kota_ground_picks(c->locale, NULL, &camera, pixel, 1, &own, NULL))
            return failed(c, "pick", answer);
        daemon.hit.t = own.hit.t; /* JSON has the distance only */
        judge(c,
              left_out(c, own.hit.status == KOTA_GROUND_RAY_ABSENT) ||
                  (same_hit(&daemon.hit, &own.hit) && daemon.has_tile == own.has_tile &&
                   (!daemon.has_tile ||
                    (same_many(daemon.center, own.tile_center, 3) &&
                     same_many(daemon.min, own.tile_min, 3) &&
                     same_many(daemon.max, own.tile_max, 3) && daemon.column == own.tile_column &&
                     daemon.row == own.tile_row && daemon.side == own.tile_side))),
              "pick", pick.eye, 3);
        kota_answer_free(answer);
    }
    return true;
}

bool replica_compare(struct kota_client *client, const struct kota_ground_view *view,
                     const struct replica_place *place, struct random *random, size_t count,
                     struct replica_count *counted)
{
    struct compare c = {client, view,   kota_ground_locale(view, place->locale),
                        place,  random, counted};

    if (!c.locale)
        return failed(&c, "the view has no such locale", NULL);
    for (size_t i = 0; i < count; i += TOGETHER) {
        size_t some = count - i < TOGETHER ? count - i : TOGETHER;

        if ((place->has_heights && !heights(&c, some)) || !rays(&c, some) ||
            !world_rays(&c, some) || !contacts(&c, some, false) || !contacts(&c, some, true) ||
            !sights(&c, some) || !sweeps(&c, some) || !moves(&c, some) || !places(&c, some) ||
            !picks(&c, some / 50 + 1))
            return false;
    }
    return true;
}
