/*
 * Concave polygons into convex pieces: ears (Meisters 1975), then the diagonals that are not needed
 * are taken out again (Hertel and Mehlhorn 1983).
 *
 * Optimal decompositions exist (Keil 1985), but are cubic; the gain is one test in a leaf now and
 * then. Files hold concave polygons of four to some dozens of corners, but 4096 must not take long
 * either: the edges that a test may meet come from an index, and a corner is tested again only when
 * a neighbour has been cut off. Monotone pieces (Garey et al. 1978) would bound the time more
 * tightly, but need a sweep over edges that lie on one another.
 *
 * A hole reaches us as a bridge: two edges that lie on one another. Therefore touching edges are no
 * crossing, and a corner at the very place of an ear's own corner does not spoil the ear, unless
 * its edges run into the ear.
 *
 * Areas are not exact, but a point's distance from a line through two corners is, to a quarter of
 * the slack; nothing here depends on less. Where ears run out, corners within the slack of an ear's
 * border no longer spoil it: points that rounding has moved over an edge would else stop
 * everything.
 *
 * Work is bounded: ear tests are counted, and a polygon that uses them up is treated as not simple.
 */
#include "terrain/mesh/convex_split.h"

#include <math.h>
#include <string.h>

#define NO_HALF UINT32_MAX

enum { NEAR_POINTS = 64 }; /* in a block of all_are_inside */

/* Twice the signed area of a triangle; positive: counter-clockwise. */
static double area2(struct vec2 a, struct vec2 b, struct vec2 c)
{
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

static double distance(struct vec2 a, struct vec2 b)
{
    return fabs(a.x - b.x) + fabs(a.y - b.y);
}

static double length(struct vec2 a, struct vec2 b)
{
    return length_xy(b.x - a.x, b.y - a.y);
}

static bool same(struct vec2 a, struct vec2 b)
{
    return a.x == b.x && a.y == b.y;
}

/* ---- convex --------------------------------------------------------------------------------- */

/* Is the corner at b turned to the left by more than rounding (Shewchuk 1997)? */
static bool is_left(struct vec2 a, struct vec2 b, struct vec2 c)
{
    double one = (b.x - a.x) * (c.y - a.y), other = (b.y - a.y) * (c.x - a.x);

    return one - other > 4e-16 * (fabs(one) + fabs(other));
}

static bool is_upward(struct vec2 a, struct vec2 b)
{
    return b.y > a.y || (b.y == a.y && b.x > a.x);
}

/* Least area2(a, b, p) of p in a box. Each step of area2 keeps the order of its operands. */
static double least_area2(struct vec2 a, struct vec2 b, const struct plane_box *box)
{
    struct vec2 p = {b.y > a.y ? box->high[0] : box->low[0],
                     b.x > a.x ? box->low[1] : box->high[1]};

    return area2(a, b, p);
}

/* Each point against each edge; blocks of points that are far inside are passed by. */
static bool all_are_inside(const struct vec2 *points, uint32_t count, double slack)
{
    for (uint32_t begin = 0; begin < count; begin += NEAR_POINTS) {
        uint32_t end = count - begin < NEAR_POINTS ? count : begin + NEAR_POINTS;
        struct plane_box box = plane_box_of(points + begin, end - begin);

        for (uint32_t i = 0; i < count; i++) {
            struct vec2 a = points[i], b = points[i + 1 < count ? i + 1 : 0];
            double least = -slack * length(a, b);

            if (least_area2(a, b, &box) >= least)
                continue;
            for (uint32_t k = begin; k < end; k++)
                if (area2(a, b, points[k]) < least)
                    return false;
        }
    }
    return true;
}

bool ring_is_convex(const struct vec2 *points, uint32_t count, double slack)
{
    uint32_t rounds = 0;
    bool is_sharp = true;

    for (uint32_t i = 0; i < count; i++) {
        struct vec2 a = points[i], b = points[i + 1 < count ? i + 1 : 0];
        struct vec2 c = points[i + 2 < count ? i + 2 : i + 2 - count];

        if (is_left(a, b, c)) {
            rounds += !is_upward(a, b) && is_upward(b, c);
            continue;
        }
        if (area2(a, b, c) < -slack * length(a, b))
            return false;
        is_sharp = false;
    }
    return (is_sharp && rounds == 1) || all_are_inside(points, count, slack);
}

/* ---- crossings ------------------------------------------------------------------------------ */

static bool are_apart(double one, double other, double least)
{
    return (one > least && other < -least) || (one < -least && other > least);
}

/* Interiors of the segments cross in one point, each at least slack from the other's ends. */
static bool segments_cross(struct vec2 a, struct vec2 b, struct vec2 c, struct vec2 d, double slack)
{
    double c_side = area2(a, b, c), d_side = area2(a, b, d);
    double a_side = area2(c, d, a), b_side = area2(c, d, b);

    return are_apart(c_side, d_side, 0) && are_apart(a_side, b_side, 0) &&
           are_apart(c_side, d_side, slack * length(a, b)) &&
           are_apart(a_side, b_side, slack * length(c, d));
}

bool ring_crosses_itself(struct split *split, const struct vec2 *points, uint32_t count,
                         double slack)
{
    plane_index_edges(&split->index, points, count);
    for (uint32_t i = 0; i + 2 < count; i++) {
        struct plane_box box = plane_box_of(points + i, 2);
        struct plane_walk walk;
        uint32_t k;

        plane_index_set(&split->index, i, false);
        plane_walk_begin(&walk, &split->index, &box);
        while (plane_walk_next(&walk, &k)) {
            if (k == i + 1 || (i == 0 && k == count - 1))
                continue;
            if (segments_cross(points[i], points[i + 1], points[k],
                               points[k + 1 < count ? k + 1 : 0], slack))
                return true;
        }
    }
    return false;
}

/* ---- ears ----------------------------------------------------------------------------------- */

/* The rest of the ring is a list: links are split->next and prev by corner. */
struct ears {
    struct split *split;
    const struct vec2 *points;
    uint32_t left;
    double slack;
    bool is_close; /* corners within the slack of an ear's border do not spoil it */
    uint32_t queued, taken;
    uint64_t work, work_max;
};

enum corner_kind { CORNER_EAR, CORNER_FLAT, CORNER_OTHER };

/* An edge of a corner p of the ring that is in an ear, or within `near` of its border. */
enum edge_course { RUNS_OUT, RUNS_ALONG, RUNS_IN };

/* From p to q, where a and b, b and c are edges of the ring, and c and a is the diagonal. */
static enum edge_course edge_course(struct vec2 a, struct vec2 b, struct vec2 c, struct vec2 p,
                                    struct vec2 q, const double near[2])
{
    double one = fmax(area2(a, b, p), area2(a, b, q)), other = fmax(area2(b, c, p), area2(b, c, q));

    if (one > near[0] && other > near[1])
        return RUNS_IN;
    return area2(a, b, q) >= -near[0] && area2(b, c, q) >= -near[1] ? RUNS_ALONG : RUNS_OUT;
}

static bool is_spoiled_by(const struct ears *e, const uint32_t ear[3], uint32_t k)
{
    struct vec2 a = e->points[ear[0]], b = e->points[ear[1]], c = e->points[ear[2]];
    struct vec2 p = e->points[k], before = e->points[e->split->prev[k]],
                after = e->points[e->split->next[k]];
    double near[3] = {0, 0, 0};

    if (k == ear[0] || k == ear[1] || k == ear[2] || same(p, a) || same(p, c))
        return false;
    if (e->is_close) {
        near[0] = e->slack * length(a, b);
        near[1] = e->slack * length(b, c);
        near[2] = e->slack * length(c, a);
    }
    if (area2(a, b, p) < -near[0] || area2(b, c, p) < -near[1] || area2(c, a, p) < near[2])
        return false;
    if (!e->is_close && !same(p, b))
        return true;
    enum edge_course come = edge_course(a, b, c, p, before, near);
    enum edge_course go = edge_course(a, b, c, p, after, near);

    return come == RUNS_IN || go == RUNS_IN || (come == RUNS_ALONG && go == RUNS_ALONG);
}

static enum corner_kind corner_bend(const struct ears *e, uint32_t at)
{
    struct vec2 a = e->points[e->split->prev[at]], b = e->points[at];
    struct vec2 c = e->points[e->split->next[at]];
    double area = area2(a, b, c);
    double longest = fmax(distance(a, b), fmax(distance(b, c), distance(c, a)));

    if (fabs(area) <= e->slack * longest)
        return CORNER_FLAT;
    return area < 0 ? CORNER_OTHER : CORNER_EAR;
}

/* If any corner is in the triangle, so is one that is bent inward: only those are live. */
static enum corner_kind corner_kind(struct ears *e, uint32_t at)
{
    const uint32_t ear[3] = {e->split->prev[at], at, e->split->next[at]};
    const struct vec2 corners[3] = {e->points[ear[0]], e->points[at], e->points[ear[2]]};
    enum corner_kind kind = corner_bend(e, at);
    struct plane_box box;
    struct plane_walk walk;
    uint32_t k;

    if (kind != CORNER_EAR)
        return kind;
    box = plane_box_of(corners, 3);
    for (int i = 0; i < 4; i++) {
        box.low[i] -= 2 * e->slack;
        box.high[i] += 2 * e->slack;
    }
    plane_walk_begin(&walk, &e->split->index, &box);
    while (plane_walk_next(&walk, &k)) {
        e->work++;
        if (is_spoiled_by(e, ear, k))
            return CORNER_OTHER;
    }
    return CORNER_EAR;
}

static void queue_put(struct ears *e, uint32_t at)
{
    e->split->turn[at] = e->queued;
    e->split->queue[e->queued++] = at;
}

/* A corner whose neighbour is gone. */
static void corner_again(struct ears *e, uint32_t at)
{
    plane_index_set(&e->split->index, at, corner_bend(e, at) != CORNER_EAR);
    queue_put(e, at);
}

static void corner_cut(struct ears *e, uint32_t at, bool is_ear)
{
    struct split *s = e->split;
    uint32_t before = s->prev[at], after = s->next[at], outer = NO_HALF;

    if (is_ear) {
        const uint32_t halves[2] = {s->half[before], s->half[at]};
        uint32_t h = 3 * s->triangle_count++;

        s->corners[h] = before;
        s->corners[h + 1] = at;
        s->corners[h + 2] = after;
        s->twins[h + 2] = NO_HALF;
        for (uint32_t i = 0; i < 2; i++) {
            s->twins[h + i] = halves[i];
            if (halves[i] != NO_HALF)
                s->twins[halves[i]] = h + i;
        }
        outer = h + 2;
    }
    s->half[before] = outer;
    s->next[before] = after;
    s->prev[after] = before;
    s->turn[at] = UINT32_MAX;
    plane_index_set(&s->index, at, false);
    e->left--;
    corner_again(e, before);
    corner_again(e, after);
}

/* Each corner of the queue once, and again after a neighbour of it is gone; but not at once: fans
 * of needles around one corner would come of it. */
static bool ears_cut(struct ears *e)
{
    uint32_t before = e->left;

    while (e->left >= 3 && e->taken < e->queued && e->work <= e->work_max) {
        uint32_t at = e->split->queue[e->taken];

        if (e->split->turn[at] == e->taken++) {
            enum corner_kind kind = corner_kind(e, at);

            if (kind != CORNER_OTHER)
                corner_cut(e, at, kind == CORNER_EAR);
        }
    }
    return e->left < before;
}

static void ears_begin(struct ears *e)
{
    for (uint32_t i = 0; i < e->left; i++) {
        e->split->prev[i] = i > 0 ? i - 1 : e->left - 1;
        e->split->next[i] = i + 1 < e->left ? i + 1 : 0;
        e->split->half[i] = NO_HALF;
        e->split->turn[i] = 0; /* any but UINT32_MAX: it is in the ring */
    }
    plane_index_points(&e->split->index, e->points, e->left);
    for (uint32_t i = 0; i < e->left; i++)
        plane_index_set(&e->split->index, i, corner_bend(e, i) != CORNER_EAR);
}

uint32_t ring_triangulate(struct split *split, const struct vec2 *points, uint32_t count,
                          double slack)
{
    struct ears e = {.split = split, .points = points, .left = count, .slack = slack};

    e.work_max = 2 * (uint64_t)count * count + 1024;
    split->triangle_count = 0;
    ears_begin(&e);
    while (e.left >= 3) {
        e.queued = e.taken = 0;
        for (uint32_t i = 0; i < count; i++)
            if (split->turn[i] != UINT32_MAX)
                queue_put(&e, i);
        if (ears_cut(&e))
            e.is_close = false;
        else if (e.is_close || e.work > e.work_max)
            return 0;
        else
            e.is_close = true;
    }
    return split->triangle_count;
}

/* ---- joining -------------------------------------------------------------------------------- */

/* The corners of the piece on this side of a half-edge, from its end on, without that at its
 * beginning. Their number; SPLIT_PIECE_MAX + 1 when it has more than `room`. */
static uint32_t side_list(const struct split *s, uint32_t half, uint32_t room, uint32_t *out)
{
    uint32_t count = 0;

    for (uint32_t h = s->next[half]; h != half; h = s->next[h]) {
        if (count == room)
            return SPLIT_PIECE_MAX + 1;
        out[count++] = s->origins[h];
    }
    return count;
}

static bool halves_may_go(const struct split *s, uint32_t half, const struct convex_judge *judge)
{
    uint32_t united[SPLIT_PIECE_MAX], count, more;

    count = side_list(s, half, SPLIT_PIECE_MAX, united);
    if (count > SPLIT_PIECE_MAX)
        return false;
    more = side_list(s, s->twins[half], SPLIT_PIECE_MAX - count, united + count);
    return more <= SPLIT_PIECE_MAX && judge->is_fit(judge->context, united, count + more);
}

static void halves_unlink(struct split *s, uint32_t half)
{
    uint32_t twin = s->twins[half];

    s->next[s->prev[half]] = s->next[twin];
    s->prev[s->next[twin]] = s->prev[half];
    s->next[s->prev[twin]] = s->next[half];
    s->prev[s->next[half]] = s->prev[twin];
    s->next[half] = s->next[twin] = NO_HALF;
}

uint32_t pieces_join(struct split *s, const struct convex_judge *judge)
{
    uint32_t halves = 3 * s->triangle_count, pieces = 0, length = 0;

    memcpy(s->origins, s->corners, halves * sizeof *s->corners);
    for (uint32_t h = 0; h < halves; h++) {
        s->next[h] = h % 3 == 2 ? h - 2 : h + 1;
        s->prev[h] = h % 3 == 0 ? h + 2 : h - 1;
    }
    /* a diagonal that is needed once stays so: pieces only grow */
    for (uint32_t h = 0; h < halves; h++)
        if (s->twins[h] != NO_HALF && s->twins[h] > h && halves_may_go(s, h, judge))
            halves_unlink(s, h);
    for (uint32_t h = 0; h < halves; h++) {
        uint32_t count = 0;

        for (uint32_t k = h; s->next[k] != NO_HALF; count++) {
            uint32_t after = s->next[k];

            s->corners[length++] = s->origins[k];
            s->next[k] = NO_HALF;
            k = after;
        }
        if (count > 0)
            s->counts[pieces++] = count;
    }
    return pieces;
}
