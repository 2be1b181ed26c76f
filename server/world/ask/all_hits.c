/*
 * All hits of a ray.
 *
 * The walks of heightfields and trees end at the first hit. For the next one the ray begins again a
 * little after it, so the code and the answers are those of one ray, and the cost is that of as
 * many rays. The little is well above the rounding of a hit, and below all that ground has. A ray
 * that runs along a surface leaves it slowly: if it meets the same triangle again, the little
 * doubles.
 */
#include "world/ask/all_hits.h"

#include "terrain/sight.h"

#define AFTER 1e-9 /* of the coordinates; 1 nm at least */

enum { DOUBLINGS_MAX = 64 };

static bool is_same_place(const struct locale_hit *a, const struct locale_hit *b)
{
    return a->layer == b->layer && a->at.cell[0] == b->at.cell[0] &&
           a->at.cell[1] == b->at.cell[1] && a->at.triangle == b->at.triangle &&
           a->polygon == b->polygon;
}

/* Into its place by t, behind its equals; of too many the last one goes. */
static size_t hit_insert(struct locale_hit *hits, size_t count, size_t most,
                         const struct locale_hit *hit)
{
    size_t at = count < most ? count : most - 1;

    if (count == most && !(hit->at.t < hits[most - 1].at.t))
        return count;
    for (; at > 0 && hits[at - 1].at.t > hit->at.t; at--)
        hits[at] = hits[at - 1];
    hits[at] = *hit;
    return count < most ? count + 1 : count;
}

static size_t layer_hits(const struct layer_choice *one, const struct ray *ray, size_t count,
                         size_t most, struct locale_hit *hits)
{
    double length = vec3_length(ray->direction), begin = 0, after = AFTER;
    struct locale_hit hit, last = {.layer = NULL};
    size_t found = 0;

    for (int doublings = 0; doublings < DOUBLINGS_MAX && found < most && begin <= ray->t_max;) {
        struct ray rest = {vec3_add(ray->origin, vec3_scale(ray->direction, begin)), ray->direction,
                           ray->t_max - begin};

        if (!locale_ray(one, &rest, RAY_CLOSEST, &hit, NULL))
            break;
        const struct vec3 p = hit.at.point;
        double size = fmax(1, fmax(fabs(p.x), fmax(fabs(p.y), fabs(p.z))));

        hit.at.t += begin;
        if (found > 0 && is_same_place(&hit, &last)) {
            after *= 2;
            doublings++;
        } else {
            after = AFTER;
            doublings = 0;
            count = hit_insert(hits, count, most, &hit);
            found++;
            last = hit;
        }
        begin = hit.at.t + after * size / length;
    }
    return count;
}

size_t locale_ray_all(const struct layer_choice *choice, const struct ray *ray, size_t most,
                      struct locale_hit *hits)
{
    size_t count = 0;

    for (size_t i = 0; i < choice->count; i++) {
        struct layer_choice one = {choice->locale, choice->layers + i, 1};

        count = layer_hits(&one, ray, count, most, hits);
    }
    return count;
}

size_t locale_sight_all(const struct layer_choice *choice, struct vec3 from, struct vec3 to,
                        size_t most, struct locale_hit *hits)
{
    struct ray ray = {from, vec3_sub(to, from), 1};
    struct vec3 up = vec3_opposite(locale_gravity(choice->locale, from));
    double near_from = sight_end_tolerance(vec3_dot(from, up));
    double near_to = sight_end_tolerance(vec3_dot(to, up));
    struct locale_hit blocker;
    size_t count, left = 0;

    if (!ray_is_valid(&ray) || locale_line_of_sight(choice, from, to, &blocker))
        return 0;
    count = locale_ray_all(choice, &ray, most, hits);
    for (size_t i = 0; i < count; i++)
        if (vec3_length(vec3_sub(hits[i].at.point, from)) > near_from &&
            vec3_length(vec3_sub(hits[i].at.point, to)) > near_to)
            hits[left++] = hits[i];
    return left;
}
