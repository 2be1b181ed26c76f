/*
 * Line of sight and profiles.
 *
 * A sight line is a ray of length one. Its ends need care: eyes and targets are mostly
 * on the ground, with heights that came from an earlier answer and may have been rounded to float32
 * on the way, so "on the ground" is a hair above or below it. An end within sight_end_tolerance of
 * the surface is therefore moved on top of it, lifted by that tolerance: a line that only
 * touches the ground at its ends is free, and one that leaves an end downwards, into the hill that
 * it is on, is blocked there. When only one end is on the surface the line may as well come to
 * it from below, so the end is then tried on the under side, too. Between two ends on the surface
 * it may not: it would run inside the ground. Ends clearly below stay below: a line inside the
 * ground that meets no surface is free, since surfaces have two sides.
 *
 * Tried and dropped: ignoring hits with t below an epsilon (loses a line that goes straight into
 * the ground it starts from); telling the side by the other end's own column (wrong across holes)
 * or by the plane of the touched triangle (wrong on a ridge, which has two).
 */
#include "terrain/sight.h"

/* An end of the line: where it is, and how far it is moved when it is on the surface, else 0. */
struct end {
    struct vec3 point;
    double tolerance_m;
};

static struct end end_at(const struct heightfield *field, struct vec3 point)
{
    struct ground_point ground;
    struct vec2 at = {point.x, point.y};
    double tolerance_m;

    heightfield_height(field, at, INTERPOLATION_TRIANGLE, &ground);
    tolerance_m = sight_end_tolerance(ground.height_m);
    if (ground.status != GROUND_OK || fabs(point.z - ground.height_m) > tolerance_m)
        return (struct end){point, 0};
    point.z = ground.height_m;
    return (struct end){point, tolerance_m};
}

/* Is the line free with its ends on top (side 1) or on the under side (side -1)? */
static bool is_free(const struct heightfield *field, struct end from, struct end to, double side,
                    struct ray_hit *blocker)
{
    struct ray ray = {from.point, {0, 0, 0}, 1};

    ray.origin.z += side * from.tolerance_m;
    to.point.z += side * to.tolerance_m;
    ray.direction = vec3_sub(to.point, ray.origin);
    return !ray_is_valid(&ray) || !heightfield_ray(field, &ray, RAY_CLOSEST, blocker, NULL);
}

bool heightfield_line_of_sight(const struct heightfield *field, struct vec3 from, struct vec3 to,
                               struct ray_hit *blocker)
{
    struct end a = end_at(field, from), b = end_at(field, to);
    struct ray_hit below;

    if (is_free(field, a, b, 1, blocker))
        return true;
    return (a.tolerance_m > 0) != (b.tolerance_m > 0) && is_free(field, a, b, -1, &below);
}

static double segment_length(const struct profile_path *path, size_t i)
{
    return length_xy(path->points[i + 1].x - path->points[i].x,
                     path->points[i + 1].y - path->points[i].y);
}

void profile_path_init(struct profile_path *path, const struct vec2 *points, size_t count)
{
    *path = (struct profile_path){.points = points, .count = count};
    for (size_t i = 0; i + 1 < count; i++)
        path->length_m += segment_length(path, i);
}

struct vec2 profile_path_at(struct profile_path *path, double distance_m)
{
    if (!(distance_m > 0))
        return path->points[0];
    if (distance_m >= path->length_m)
        return path->points[path->count - 1];
    if (distance_m < path->segment_start_m) {
        path->segment = 0;
        path->segment_start_m = 0;
    }
    for (; path->segment + 1 < path->count; path->segment++) {
        double length = segment_length(path, path->segment);

        if (distance_m <= path->segment_start_m + length && length > 0) {
            struct vec2 a = path->points[path->segment], b = path->points[path->segment + 1];
            double s = fmin((distance_m - path->segment_start_m) / length, 1);

            return (struct vec2){a.x + s * (b.x - a.x), a.y + s * (b.y - a.y)};
        }
        path->segment_start_m += length;
    }
    return path->points[path->count - 1];
}

double profile_step_count(const struct profile_path *path, double step_m)
{
    double whole = floor(path->length_m / step_m);

    /* a last step that is all but whole is the end itself, not a sample a rounding before it */
    if (path->length_m - whole * step_m > 1e-9 * step_m)
        whole += 1;
    return whole + 1;
}
