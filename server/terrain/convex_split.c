/*
 * Concave polygons into convex pieces: ears (Meisters 1975), then the diagonals that are not needed
 * are taken out again (Hertel and Mehlhorn 1983).
 *
 * Optimal decompositions exist (Keil 1985), but are cubic; what is gained here is one test in a
 * leaf now and then. Files hold concave polygons of four to some dozens of corners.
 *
 * A hole reaches us as a bridge: two edges that lie on one another. Therefore touching edges are no
 * crossing, and a corner at the very place of an ear's own corner does not spoil the ear.
 *
 * Work is bounded: ear tests are counted, and a polygon that uses them up is treated as not simple.
 */
#include "terrain/convex_split.h"

#include <stddef.h>
#include <string.h>

/* Twice the signed area of a triangle; positive: counter-clockwise. */
static double area2(struct vec2 a, struct vec2 b, struct vec2 c)
{
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

static double distance(struct vec2 a, struct vec2 b)
{
    return fabs(a.x - b.x) + fabs(a.y - b.y);
}

static bool same(struct vec2 a, struct vec2 b)
{
    return a.x == b.x && a.y == b.y;
}

bool ring_is_convex(const struct vec2 *points, uint32_t count, double slack)
{
    for (uint32_t i = 0; i < count; i++) {
        struct vec2 a = points[i], b = points[i + 1 < count ? i + 1 : 0];
        double least = -slack * hypot(b.x - a.x, b.y - a.y);

        for (uint32_t k = 0; k < count; k++)
            if (area2(a, b, points[k]) < least)
                return false;
    }
    return true;
}

/* Interiors of the segments cross in one point. */
static bool segments_cross(struct vec2 a, struct vec2 b, struct vec2 c, struct vec2 d)
{
    if (fmax(a.x, b.x) < fmin(c.x, d.x) || fmax(c.x, d.x) < fmin(a.x, b.x) ||
        fmax(a.y, b.y) < fmin(c.y, d.y) || fmax(c.y, d.y) < fmin(a.y, b.y))
        return false;
    double c_side = area2(a, b, c), d_side = area2(a, b, d);
    double a_side = area2(c, d, a), b_side = area2(c, d, b);

    return ((c_side > 0 && d_side < 0) || (c_side < 0 && d_side > 0)) &&
           ((a_side > 0 && b_side < 0) || (a_side < 0 && b_side > 0));
}

bool ring_crosses_itself(const struct vec2 *points, uint32_t count)
{
    for (uint32_t i = 0; i + 2 < count; i++)
        for (uint32_t k = i + 2; k < count; k++) {
            if (i == 0 && k == count - 1)
                continue;
            if (segments_cross(points[i], points[i + 1], points[k],
                               points[k + 1 < count ? k + 1 : 0]))
                return true;
        }
    return false;
}

/* ---- ears ----------------------------------------------------------------------------------- */

struct ears {
    const struct vec2 *points;
    uint32_t *ring; /* what is left */
    uint32_t left;
    double slack;
    uint64_t work, work_max;
};

enum corner_kind { CORNER_EAR, CORNER_FLAT, CORNER_OTHER };

static enum corner_kind corner_kind(struct ears *e, uint32_t at)
{
    struct vec2 a = e->points[e->ring[at > 0 ? at - 1 : e->left - 1]];
    struct vec2 b = e->points[e->ring[at]];
    struct vec2 c = e->points[e->ring[at + 1 < e->left ? at + 1 : 0]];
    double area = area2(a, b, c);
    double longest = fmax(distance(a, b), fmax(distance(b, c), distance(c, a)));

    if (fabs(area) <= e->slack * longest)
        return CORNER_FLAT;
    if (area < 0)
        return CORNER_OTHER;
    for (uint32_t i = 0; i < e->left; i++) {
        struct vec2 p = e->points[e->ring[i]];

        e->work++;
        if (area2(a, b, p) >= 0 && area2(b, c, p) >= 0 && area2(c, a, p) >= 0 && !same(p, a) &&
            !same(p, b) && !same(p, c))
            return CORNER_OTHER;
    }
    return CORNER_EAR;
}

static void ring_remove(struct ears *e, uint32_t at)
{
    memmove(e->ring + at, e->ring + at + 1, (e->left - at - 1) * sizeof *e->ring);
    e->left--;
}

uint32_t ring_triangulate(const struct vec2 *points, uint32_t count, double slack,
                          uint32_t (*triangles)[3], uint32_t *scratch)
{
    struct ears e = {points, scratch, count, slack, 0, 16 * (uint64_t)count * count + 1024};
    uint32_t found = 0, at = 0, tried = 0;

    for (uint32_t i = 0; i < count; i++)
        scratch[i] = i;
    while (e.left >= 3) {
        enum corner_kind kind = corner_kind(&e, at);

        if (tried == e.left || e.work > e.work_max)
            return 0;
        if (kind == CORNER_OTHER) {
            at = at + 1 < e.left ? at + 1 : 0;
            tried++;
            continue;
        }
        if (kind == CORNER_EAR) {
            uint32_t *t = triangles[found++];

            t[0] = e.ring[at > 0 ? at - 1 : e.left - 1];
            t[1] = e.ring[at];
            t[2] = e.ring[at + 1 < e.left ? at + 1 : 0];
        }
        ring_remove(&e, at);
        /* not the next corner: fans of needles around one corner would come of it */
        at = at + 1 < e.left ? at + 1 : 0;
        tried = 0;
    }
    return found;
}

/* ---- joining -------------------------------------------------------------------------------- */

/* Where the edge from a to b begins in a piece; count when it has none. */
static uint32_t edge_find(const uint32_t *piece, uint32_t count, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < count; i++)
        if (piece[i] == a && piece[i + 1 < count ? i + 1 : 0] == b)
            return i;
    return count;
}

/* Two pieces without the edge at i of one, at k of the other, into out. */
static void pieces_unite(const uint32_t *one, uint32_t one_count, uint32_t i, const uint32_t *other,
                         uint32_t other_count, uint32_t k, uint32_t *out)
{
    uint32_t length = 0;

    for (uint32_t n = 1; n < one_count; n++)
        out[length++] = one[(i + n) % one_count];
    for (uint32_t n = 1; n < other_count; n++)
        out[length++] = other[(k + n) % other_count];
}

/* Tries to grow the piece at `at` by one that follows it; on success it has moved back to fill. */
static bool piece_grow(uint32_t *corners, uint32_t *counts, uint32_t pieces, uint32_t at,
                       uint32_t begin, const struct convex_judge *judge)
{
    uint32_t *one = corners + begin, *other = one + counts[at];
    uint32_t end = begin;
    uint32_t united[64];

    for (uint32_t p = at; p < pieces; p++)
        end += counts[p];
    for (uint32_t p = at + 1; p < pieces; other += counts[p], p++) {
        uint32_t sum = counts[at] + counts[p] - 2;

        if (sum > sizeof united / sizeof *united)
            continue;
        for (uint32_t i = 0; i < counts[at]; i++) {
            uint32_t next = one[i + 1 < counts[at] ? i + 1 : 0];
            uint32_t k = edge_find(other, counts[p], next, one[i]);

            if (k == counts[p])
                continue;
            pieces_unite(one, counts[at], i, other, counts[p], k, united);
            if (!judge->is_fit(judge->context, united, sum))
                continue;
            /* one' = united; what lay between moves up, what lay behind moves down */
            uint32_t *after = other + counts[p];
            size_t between = (size_t)(other - (one + counts[at]));

            memmove(one + sum, one + counts[at], between * sizeof *one);
            memcpy(one, united, sum * sizeof *one);
            memmove(one + sum + between, after, (size_t)(corners + end - after) * sizeof *one);
            counts[at] = sum;
            memmove(counts + p, counts + p + 1, (pieces - p - 1) * sizeof *counts);
            return true;
        }
    }
    return false;
}

uint32_t pieces_join(uint32_t *corners, uint32_t *counts, uint32_t triangle_count,
                     const struct convex_judge *judge)
{
    uint32_t pieces = triangle_count, begin = 0;

    for (uint32_t at = 0; at < pieces; at++) {
        while (piece_grow(corners, counts, pieces, at, begin, judge))
            pieces--;
        begin += counts[at];
    }
    return pieces;
}
