/*
 * Polygons seen from their side.
 *
 * Such a polygon is a stretch of a line that goes through the axis, and it has a length along the
 * axis, so it is convex in those two coordinates, too. Where it is over the axis is between the
 * places at which its edges cross it; an edge that lies on the axis, within pad, is there as a
 * whole.
 */
#include "terrain/bvh/woop.h"

static void take(double t, double *t0, double *t1)
{
    *t0 = t < *t0 ? t : *t0;
    *t1 = t > *t1 ? t : *t1;
}

bool woop_edge_on(const struct woop_ray *s, const struct face *face, double *t0, double *t1)
{
    double wide_x = 0, wide_y = 0;

    for (uint32_t i = 0; i < face->count; i++) {
        struct woop_point at = woop_point_of(s, face_at(face, i));

        wide_x = fmax(wide_x, fabs(at.x));
        wide_y = fmax(wide_y, fabs(at.y));
    }
    *t0 = INFINITY;
    *t1 = -INFINITY;
    struct woop_point before = woop_point_of(s, face_at(face, face->count - 1));
    double from = wide_x >= wide_y ? before.x : before.y;

    for (uint32_t i = 0; i < face->count; i++) {
        struct woop_point at = woop_point_of(s, face_at(face, i));
        double to = wide_x >= wide_y ? at.x : at.y;

        if (fabs(to) <= s->pad)
            take(at.t, t0, t1);
        else if (fabs(from) > s->pad && (from < 0) != (to < 0))
            take(before.t + (at.t - before.t) * (from / (from - to)), t0, t1);
        before = at;
        from = to;
    }
    return *t0 <= *t1;
}
