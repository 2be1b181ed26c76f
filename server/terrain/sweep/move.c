/*
 * A shape that walks over ground.
 *
 * Problem: game servers move capsules through villages and dungeons, and judge the claims of their
 * clients. At any speed nothing may be passed through; no end may be in a wall, no climb too
 * steep, no step too high.
 *
 * Approach: collide and slide (K. Fauerby, Improved Collision Detection and Response, 2003; the
 * planes of a corner as in Quake's SV_FlyMove). Every part of the way is a sweep of the shape grown
 * by a skin, up to its first touch; the place is only ever moved along such free ways. A surface
 * that is touched already stops nothing that does not lead into it (is_approaching), so a shape may
 * begin on the floor to the last bit, or a skin within it, and walk.
 *
 * A touch is a floor if its triangle is not too steep. Of the triangles at an edge the sweep takes
 * the most frontal one, which for a way down is the flattest: so a capsule that hangs over the rim
 * of a stair stands on the stair. Everything else is a wall: it pushes back level, too, so that
 * nothing is led up along it. A shape that runs into an edge steps on it, or stops there.
 *
 * A step is up, forward, down, from a floor to a floor. What counts as its height is the touched
 * point over the point of the floor before: the round bottom of a capsule gains nothing.
 *
 * Invariants: the distance to all that the shape did not begin in is no less than its radius; it is
 * the skin more, but for what it began nearer to.
 */
#include "terrain/sweep/move.h"

#include "terrain/trig.h"

#define OUTWARD 1e-6 /* of the way: so much it leads away from what it slides along */
#define FACE_SKINS 4 /* an edge that is passed within so many skins is no edge */
#define LEVEL 1e-9   /* cosines of slopes are rounded */

enum { PLANES_MAX = 2 * MOVE_TOUCHES };

struct mover {
    const struct move_ground *ground;
    const struct move *move;
    struct sweep s; /* of the grown shape */
    struct vec3 at;
    double skin, floor_cosine;
    struct vec3 planes[PLANES_MAX];
    uint32_t plane_count;
    struct moved *out;
};

static struct vec3 moved_by(struct vec3 at, struct vec3 d, double t)
{
    return vec3_add(at, vec3_scale(d, t));
}

/* The first touch of a way; fraction INFINITY: none. */
static const struct sweep_touch *touch(struct mover *m, struct vec3 from, struct vec3 along)
{
    sweep_again(&m->s, from, along);
    m->ground->sweep(m->ground->ground, &m->s);
    return &m->s.best;
}

static bool is_floor(const struct mover *m, const struct sweep_touch *t)
{
    return !t->is_ceiling && vec3_dot(t->face, m->move->up) >= m->floor_cosine;
}

/* Is the touch on a triangle, and not on its edge? */
static bool is_face(const struct mover *m, const struct sweep_touch *t)
{
    double size = m->s.radius > 0 ? m->s.radius : m->s.half[0] + m->s.half[1] + m->s.half[2];

    return (1 - vec3_dot(t->normal, t->face)) * size <= FACE_SKINS * m->skin;
}

static double height_of(const struct mover *m, struct vec3 p)
{
    return vec3_dot(p, m->move->up);
}

static struct vec3 level_part(const struct mover *m, struct vec3 v)
{
    return moved_by(v, m->move->up, -vec3_dot(v, m->move->up));
}

/* ---- the floor ------------------------------------------------------------------------------ */

/*
 * The floor within `down` below a place; *fall: how far the shape may sink to it. A wall beside the
 * shape may be touched before it, by no more than the skin.
 */
static bool find_floor(struct mover *m, struct vec3 at, double down, struct sweep_touch *floor,
                       double *fall)
{
    struct vec3 along = vec3_scale(m->move->up, -down);
    double first;

    *floor = *touch(m, at, along);
    first = floor->fraction * down;
    if (floor->fraction == INFINITY)
        return false;
    if (!is_floor(m, floor)) {
        m->s.floor_cosine = m->floor_cosine;
        *floor = *touch(m, at, along);
        m->s.floor_cosine = 0;
        if (!(floor->fraction * down <= first + 2 * m->skin) || !is_floor(m, floor))
            return false;
    }
    *fall = fmin(first, floor->fraction * down);
    return true;
}

/* How far below the shape its floor may be. */
static double floor_reach(const struct mover *m)
{
    const struct vec3 v = m->move->velocity;
    bool is_rising = vec3_dot(v, m->move->up) > OUTWARD * vec3_length(v); /* not by rounding */

    return is_rising ? 2 * m->skin : fmax(m->move->snap_down_m, 2 * m->skin);
}

/* ---- sliding -------------------------------------------------------------------------------- */

static void plane_add(struct mover *m, struct vec3 normal)
{
    if (m->plane_count < PLANES_MAX)
        m->planes[m->plane_count++] = normal;
}

/* Does the way lead into none of the planes, but for rounding? */
static bool is_free(const struct mover *m, struct vec3 d)
{
    for (uint32_t i = 0; i < m->plane_count; i++)
        if (vec3_dot(d, m->planes[i]) < -LEVEL * vec3_length(d))
            return false;
    return true;
}

static struct vec3 without(struct vec3 d, struct vec3 normal)
{
    return moved_by(d, normal, -vec3_dot(d, normal));
}

/* The way along the planes: along one of them, or along the line where two meet; or zero. */
static struct vec3 slide_along(const struct mover *m, struct vec3 d)
{
    for (uint32_t i = 0; i < m->plane_count; i++) {
        struct vec3 along = without(d, m->planes[i]);

        if (vec3_dot(d, m->planes[i]) < 0 && is_free(m, along))
            return along;
    }
    if (is_free(m, d))
        return d;
    for (uint32_t i = 0; i < m->plane_count; i++)
        for (uint32_t k = i + 1; k < m->plane_count; k++) {
            struct vec3 line = vec3_unit(vec3_cross(m->planes[i], m->planes[k]));
            struct vec3 along = vec3_scale(line, vec3_dot(d, line));

            if (vec3_dot(line, line) > 0 && is_free(m, along))
                return along;
        }
    return (struct vec3){0, 0, 0};
}

/* A little away from all planes that it runs along. */
static struct vec3 lead_outward(const struct mover *m, struct vec3 d)
{
    double least = OUTWARD * vec3_length(d);
    struct vec3 out = d;

    for (uint32_t i = 0; i < m->plane_count; i++) {
        double away = vec3_dot(out, m->planes[i]);

        if (away < least)
            out = moved_by(out, m->planes[i], least - away);
    }
    return out;
}

/* What is left of a way after a touch. */
static struct vec3 way_after(struct mover *m, const struct sweep_touch *t, struct vec3 rest)
{
    struct vec3 up = m->move->up, wall = level_part(m, t->normal);
    double length = vec3_length(wall), rise;

    if (is_floor(m, t) && is_face(m, t)) {
        rise = vec3_dot(rest, up);
        if (rise < 0) /* it lands: a floor to stand on is no slide */
            rest = moved_by(rest, up, -rise);
    } else if (vec3_dot(t->normal, up) > 0 && length > LEVEL) {
        plane_add(m, vec3_scale(wall, 1 / length));
    }
    plane_add(m, t->normal);
    return lead_outward(m, slide_along(m, rest));
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Steps on what stops a way, from a floor to a floor. True: `rest` is what is left of the way. */
static bool step_try(struct mover *m, const struct sweep_touch *wall, struct vec3 *rest)
{
    struct vec3 up = m->move->up, level = level_part(m, *rest), at;
    double most = m->move->step_up_m, length = vec3_length(level), lift, forward, fall;
    struct sweep_touch floor, next;

    if (!(most > 0) || vec3_dot(*rest, up) > LEVEL * vec3_length(*rest) ||
        !(vec3_dot(level, wall->normal) < -LEVEL * length) ||
        !find_floor(m, m->at, floor_reach(m), &floor, &fall))
        return false;
    lift = (most + m->skin) * fmin(touch(m, m->at, vec3_scale(up, most + m->skin))->fraction, 1);
    at = moved_by(m->at, up, lift);
    forward = fmin(touch(m, at, level)->fraction, 1);
    if (!(forward * length > m->skin))
        return false;
    at = moved_by(at, level, forward);
    next = *touch(m, at, vec3_scale(up, -lift));
    if (next.fraction < INFINITY &&
        (!is_floor(m, &next) ||
         height_of(m, next.point) - height_of(m, floor.point) > most + 2 * m->skin))
        return false;
    m->at = moved_by(at, up, -lift * fmin(next.fraction, 1));
    m->plane_count = 0;
    *rest = vec3_scale(level, 1 - forward);
    return true;
}

/* ---- the move ------------------------------------------------------------------------------- */

/* t: the first touch of the way. */
static void slide(struct mover *m, struct vec3 way, struct sweep_touch t)
{
    for (int i = 0; i <= MOVE_TOUCHES && vec3_length(way) > 0; i++) {
        if (i > 0)
            t = *touch(m, m->at, way);
        if (t.fraction == INFINITY) {
            m->at = vec3_add(m->at, way);
            return;
        }
        m->at = moved_by(m->at, way, t.fraction);
        m->out->hits[m->out->hit_count++] = t;
        way = vec3_scale(way, 1 - t.fraction);
        if ((is_floor(m, &t) && is_face(m, &t)) || !step_try(m, &t, &way))
            way = way_after(m, &t, way);
    }
}

/* The shape grown by the skin. */
static void mover_begin(struct mover *m, const struct move *move)
{
    struct shape grown = move->shape;
    double far = fmax(fmax(fabs(move->from.x), fabs(move->from.y)), fabs(move->from.z));

    m->skin = fmax(MOVE_SKIN_M, 1e-12 * far);
    m->floor_cosine = trig_cos(move->slope_max_deg * (M_PI / 180)) - LEVEL;
    if (m->floor_cosine < LEVEL)
        m->floor_cosine = LEVEL;
    grown.radius_m += m->skin;
    grown.height_m += 2 * m->skin;
    for (int i = 0; i < 3; i++)
        grown.half_m[i] += m->skin;
    sweep_begin(&m->s, &grown, move->up, move->from, move->from);
    m->s.is_approaching = true;
}

/* Is there room for the skin where the last way began? */
static bool has_room(const struct mover *m)
{
    return m->s.radius - m->s.start_m < m->skin / 8;
}

/*
 * Makes room for the skin where it begins: pushes it out of what it overlaps, by MOVE_ROOM_M each
 * time at most. False: its core is in a surface, or there is no room; m->s.best is a touch.
 */
static bool make_room(struct mover *m)
{
    for (int i = 0;; i++) {
        m->s.is_approaching = false;
        struct sweep_touch t = *touch(m, m->at, (struct vec3){0, 0, 0});
        double missing = m->s.radius - t.distance_m; /* of a box the distance is below 0 */
        bool is_crossed = m->s.radius > 0 && t.distance_m < m->skin;

        m->s.is_approaching = true;
        if (has_room(m))
            return true;
        if (i == MOVE_TOUCHES || is_crossed || missing > MOVE_ROOM_M) {
            m->s.best = t;
            return missing <= 2 * m->skin;
        }
        struct vec3 out = vec3_scale(t.normal, missing);

        m->at = moved_by(m->at, out, fmin(touch(m, m->at, out)->fraction, 1));
    }
}

void move_run(const struct move_ground *ground, const struct move *move, struct moved *out)
{
    struct mover m = {.ground = ground, .move = move, .at = move->from, .out = out};
    struct vec3 way = vec3_scale(move->velocity, move->dt_s);
    struct sweep_touch first;
    double fall;

    out->hit_count = 0;
    out->is_grounded = false;
    mover_begin(&m, move);
    first = *touch(&m, m.at, way);
    out->starts_inside = false;
    if (!has_room(&m)) {
        if (!make_room(&m)) {
            out->starts_inside = true;
            out->to = move->from;
            out->hits[out->hit_count++] = m.s.best;
            return;
        }
        first = *touch(&m, m.at, way);
    }
    slide(&m, way, first);
    out->is_grounded = find_floor(&m, m.at, floor_reach(&m), &out->floor, &fall);
    if (out->is_grounded) {
        m.at = moved_by(m.at, move->up, -fall);
        out->slope_deg = trig_atan2(vec3_length(vec3_cross(out->floor.face, move->up)),
                                    vec3_dot(out->floor.face, move->up)) *
                         (180 / M_PI);
    }
    out->to = m.at;
}

bool move_is_reachable(const struct move_ground *ground, const struct move *move,
                       const struct moved *moved, struct vec3 claimed)
{
    struct vec3 way = vec3_sub(claimed, move->from), up = move->up;
    double rise = vec3_dot(way, up), velocity_rise = vec3_dot(move->velocity, up) * move->dt_s;
    double level = vec3_length(moved_by(way, up, -rise));
    double most = vec3_length(move->velocity) * move->dt_s + MOVE_REACHED_M;
    struct move straight = *move;
    struct moved end;

    if (vec3_length(vec3_sub(claimed, moved->to)) <= MOVE_REACHED_M)
        return true;
    if (moved->starts_inside || level > most)
        return false;
    /* what is higher is reached by slopes and steps, what is lower by snapping */
    double kept = fmin(fmax(rise, fmin(velocity_rise, 0)), fmax(velocity_rise, 0));

    way = moved_by(way, up, kept - rise);
    straight.velocity = way;
    straight.dt_s = 1;
    move_run(ground, &straight, &end);
    return vec3_length(vec3_sub(claimed, end.to)) <= MOVE_REACHED_M;
}
