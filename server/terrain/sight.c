/*
 * Line of sight and profiles.
 *
 * A sight line is a ray of length one. What needs care is its ends: eyes and targets mostly stand
 * on the ground, with heights that came from an earlier answer and may have been rounded to float32
 * on the way, so "on the ground" is a hair above or below it. An end within SIGHT_END_TOLERANCE of
 * the surface is therefore taken to stand on top of it, lifted by that tolerance: a line that only
 * touches the ground at its ends is free, and one that leaves an end downwards, into the hill that
 * it stands on, is blocked there. Only when the other end is clearly inside the ground does the
 * line come to the surface from below; then the end is lowered instead. Ends clearly below stay
 * below: a line inside the ground that meets no surface is free, since surfaces have two sides.
 *
 * Tried and dropped: ignoring hits with t below an epsilon. It loses a line that goes straight into
 * the ground it starts from.
 */
#include "terrain/sight.h"

enum side { SIDE_ABOVE, SIDE_ON, SIDE_BELOW };

/* Where a point is beside the ground over or under it; above where there is none. */
static enum side side_of(const struct heightfield *field, struct vec3 point, double *height_m,
                         double *tolerance_m)
{
    struct ground_point ground;
    struct vec2 at = {point.x, point.y};

    heightfield_height(field, at, INTERPOLATION_TRIANGLE, &ground);
    if (ground.status != GROUND_OK)
        return SIDE_ABOVE;
    *height_m = ground.height_m;
    *tolerance_m = SIGHT_END_TOLERANCE * fmax(1, fabs(ground.height_m));
    if (fabs(point.z - ground.height_m) <= *tolerance_m)
        return SIDE_ON;
    return point.z > ground.height_m ? SIDE_ABOVE : SIDE_BELOW;
}

bool heightfield_line_of_sight(const struct heightfield *field, struct vec3 from, struct vec3 to,
                               struct ray_hit *blocker)
{
    double from_height_m = 0, from_tolerance_m = 0, to_height_m = 0, to_tolerance_m = 0;
    enum side from_side = side_of(field, from, &from_height_m, &from_tolerance_m);
    enum side to_side = side_of(field, to, &to_height_m, &to_tolerance_m);

    if (from_side == SIDE_ON)
        from.z = from_height_m + (to_side == SIDE_BELOW ? -from_tolerance_m : from_tolerance_m);
    if (to_side == SIDE_ON)
        to.z = to_height_m + (from_side == SIDE_BELOW ? -to_tolerance_m : to_tolerance_m);
    struct ray ray = {from, vec3_sub(to, from), 1};

    return !ray_is_valid(&ray) || !heightfield_ray(field, &ray, RAY_CLOSEST, blocker, NULL);
}

static double segment_length(const struct profile_path *path, size_t i)
{
    return hypot(path->points[i + 1].x - path->points[i].x,
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
