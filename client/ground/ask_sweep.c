/*
 * Sweeps and moves of shapes, as the daemon's calls answer them.
 */
#include "client/ground/ask.h"

#include "world/ask/sweep.h"

/* A touch, NULL: none. */
static struct kota_ground_hit hit_of(const struct kota_ground_locale *locale,
                                     const struct sweep_touch *touch)
{
    struct locale_hit hit;
    struct kota_ground_hit out;

    if (!touch)
        return ground_hit(KOTA_GROUND_RAY_MISS, NULL, NULL, NULL);
    hit = locale_hit_of_touch(touch);
    out = ground_hit(KOTA_GROUND_RAY_HIT, NULL, &hit, locale->locale->id);
    out.distance_m = NAN;
    return out;
}

static bool get_shape(const struct kota_ground_shape *in, struct shape *out, struct err *err)
{
    if (in->kind <= KOTA_GROUND_BOX)
        return shape_set((enum shape_kind)in->kind, in->sizes, out, err) == ERR_OK;
    err_set(err, ERR_BAD_INPUT, "there is no such kind of shape");
    return false;
}

/* False, and the error: of items[i] a member. */
static bool refuse(const char *items, size_t i, const char *member, struct err *err)
{
    err_at(err, "/%s/%zu/%s", items, i, member);
    return false;
}

static bool get_place(const double in[3], const char *items, size_t i, const char *member,
                      struct vec3 *out, struct err *err)
{
    *out = get_vec3(in);
    return sweep_check_place(*out, err) == ERR_OK || refuse(items, i, member, err);
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

static bool sweep_one(const struct kota_ground_locale *locale, const struct layer_choice *choice,
                      const struct kota_ground_sweep *asked, size_t i,
                      struct kota_ground_touch *out, struct err *err)
{
    struct vec3 from, to, end;
    struct shape shape;
    struct sweep s;
    bool has;

    if (!get_shape(&asked->shape, &shape, err))
        return refuse("sweeps", i, "shape", err);
    if (!get_place(asked->from, "sweeps", i, "from", &from, err) ||
        !get_place(asked->to, "sweeps", i, "to", &to, err))
        return false;
    sweep_begin(&s, &shape, locale_up(locale->locale, from), from, to);
    locale_sweep(choice, &s);
    has = s.best.fraction < INFINITY;
    end = has ? vec3_add(from, vec3_scale(s.along, s.best.fraction)) : to;
    *out = (struct kota_ground_touch){.hit = hit_of(locale, has ? &s.best : NULL),
                                      .starts_inside = has && s.best.starts_inside};
    if (!is_absent_around(locale, choice, from, end, fmax(s.reach.x, s.reach.y)))
        return true;
    *out = (struct kota_ground_touch){.hit = hit_of(locale, NULL)};
    out->hit.status = KOTA_GROUND_RAY_ABSENT;
    return true;
}

bool kota_ground_sweeps(const struct kota_ground_locale *locale, const char *layer,
                        const struct kota_ground_sweep *sweeps, size_t count,
                        struct kota_ground_touch *touches, struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct layer_choice choice;

    if (locale_choose(locale->locale, layer, &choice, &err))
        return ground_fail(error, &err);
    for (size_t i = 0; i < count; i++)
        if (!sweep_one(locale, &choice, &sweeps[i], i, &touches[i], &err))
            return ground_fail(error, &err);
    return true;
}

/* ---- moves ----------------------------------------------------------------------------------- */

static bool get_move(const struct kota_ground_locale *locale, const struct kota_ground_move *in,
                     size_t i, struct move *out, struct err *err)
{
    const double given[MOVE_NUMBERS] = {in->dt_s, in->slope_max_deg, in->step_up_m,
                                        in->snap_down_m};
    double number[MOVE_NUMBERS];

    if (!get_shape(&in->shape, &out->shape, err))
        return refuse("moves", i, "shape", err);
    for (int k = 0; k < MOVE_NUMBERS; k++) {
        number[k] = isnan(given[k]) ? move_numbers[k].missing : given[k];
        if (move_check_number((enum move_number)k, number[k], err))
            return refuse("moves", i, move_numbers[k].name, err);
    }
    out->velocity = get_vec3(in->velocity);
    if (!get_place(in->from, "moves", i, "from", &out->from, err))
        return false;
    if (move_check_velocity(out->velocity, err))
        return refuse("moves", i, "velocity", err);
    out->up = locale_up(locale->locale, out->from);
    out->dt_s = number[MOVE_DT];
    out->slope_max_deg = number[MOVE_SLOPE_MAX];
    out->step_up_m = number[MOVE_STEP_UP];
    out->snap_down_m = number[MOVE_SNAP_DOWN];
    return true;
}

static void put_moved(const struct kota_ground_locale *locale, const struct moved *moved,
                      struct kota_ground_moved *out)
{
    put_vec3(out->to, moved->to);
    out->starts_inside = moved->starts_inside;
    out->is_grounded = moved->is_grounded;
    out->hit_count = moved->hit_count;
    for (uint32_t i = 0; i < moved->hit_count; i++)
        out->hits[i] = hit_of(locale, &moved->hits[i]);
    if (!moved->is_grounded)
        return;
    out->slope_deg = moved->slope_deg;
    out->floor = hit_of(locale, &moved->floor);
    out->floor.t = NAN;
    put_vec3(out->floor.normal, moved->floor.face);
}

static bool move_one(const struct kota_ground_locale *locale, const struct layer_choice *choice,
                     const struct kota_ground_move *asked, size_t i, struct kota_ground_moved *out,
                     struct err *err)
{
    const struct move_ground ground = locale_move_ground(choice);
    bool is_claimed = !isnan(asked->claimed[0]);
    double reach_m = MOVE_ROOM_M + MOVE_SKIN_M;
    struct vec3 claimed;
    struct moved moved;
    struct move move;

    if (!get_move(locale, asked, i, &move, err) ||
        (is_claimed && !get_place(asked->claimed, "moves", i, "claimed", &claimed, err)))
        return false;
    *out = (struct kota_ground_moved){.slope_deg = NAN, .floor = hit_of(locale, NULL)};
    put_vec3(out->to, GROUND_NOWHERE);
    for (int k = 0; k < KOTA_GROUND_MOVE_HITS_MAX; k++)
        out->hits[k] = hit_of(locale, NULL);
    reach_m += shape_reach_m(&move.shape) + vec3_length(move.velocity) * move.dt_s +
               move.step_up_m + move.snap_down_m;
    out->is_absent = is_absent_around(locale, choice, move.from, move.from, reach_m);
    if (out->is_absent)
        return true;
    move_run(&ground, &move, &moved);
    put_moved(locale, &moved, out);
    out->is_reachable = is_claimed && move_is_reachable(&ground, &move, &moved, claimed);
    return true;
}

bool kota_ground_moves(const struct kota_ground_locale *locale, const char *layer,
                       const struct kota_ground_move *moves, size_t count,
                       struct kota_ground_moved *moved, struct kota_ground_error *error)
{
    struct err err = {.code = ERR_OK};
    struct layer_choice choice;

    if (locale_choose(locale->locale, layer, &choice, &err))
        return ground_fail(error, &err);
    for (size_t i = 0; i < count; i++)
        if (!move_one(locale, &choice, &moves[i], i, &moved[i], &err))
            return ground_fail(error, &err);
    return true;
}
