/*
 * Where the shadow maps lie.
 *
 * The nearest and the farthest depth of what may be seen are those of the boxes of blocks, meshes
 * and spheres in the camera's pyramid; between them the maps' depths grow by one factor, so that
 * all of them have about as many texels a pixel. A map's sides lie around the boxes that are seen
 * in its part of the view, since ground is flat as seen from a low sun. Its depth goes over
 * everything that there is.
 */
#include "view/cascade.h"

#include <math.h>

#define DEPTH_RATIO_MAX 512.0 /* of the farthest and the nearest */
#define GROWTH_MAX 3.0        /* of two maps' depths */
#define OVERLAP 1.12          /* of a map's sides: room to blend */

struct extent {
    double near_m, far_m; /* along the camera's axis, of what may be seen */
    struct box3 all;
};

/* Part of the view, between two depths. */
struct slice {
    double near_m, far_m;
    bool is_first; /* with what is nearer */
};

static double reach(const struct box3 *box, struct vec3 along, bool most)
{
    return ((along.x > 0) == most ? box->max.x : box->min.x) * along.x +
           ((along.y > 0) == most ? box->max.y : box->min.y) * along.y +
           ((along.z > 0) == most ? box->max.z : box->min.z) * along.z;
}

static void grow(struct extent *extent, const struct lens_frame *lens, const struct box3 *box)
{
    extent->all = box3_union(extent->all, *box);
    if (!lens_frame_sees(lens, box))
        return;
    extent->near_m = fmin(extent->near_m, reach(box, lens->forward, false));
    extent->far_m = fmax(extent->far_m, reach(box, lens->forward, true));
}

/* The boxes of blocks, parts and spheres, one after the other; false: there are no more. */
static bool nth_box(const struct scene *scene, size_t i, struct box3 *box)
{
    if (i < scene->block_count) {
        *box = scene->boxes[i];
        return true;
    }
    i -= scene->block_count;
    if (i < scene->part_count) {
        *box = scene->parts[i].box;
        return true;
    }
    i -= scene->part_count;
    if (i >= scene->sphere_count)
        return false;
    const struct scene_sphere *s = &scene->spheres[i];
    const struct vec3 at = {(double)s->at[0], (double)s->at[1], (double)s->at[2]};
    const struct vec3 r = {(double)s->radius_m, (double)s->radius_m, (double)s->radius_m};

    *box = (struct box3){vec3_sub(at, r), vec3_add(at, r)};
    return true;
}

static struct extent extent_of(const struct scene *scene, const struct lens_frame *lens)
{
    struct extent extent = {
        INFINITY, 0, {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}}};
    struct box3 box;

    for (size_t i = 0; nth_box(scene, i, &box); i++)
        grow(&extent, lens, &box);
    extent.near_m = fmax(extent.near_m, extent.far_m / DEPTH_RATIO_MAX);
    return extent;
}

/* The ball around the part of the pyramid between two depths: its middle's depth, its radius. */
static double ball_around(const struct lens_frame *lens, double near_m, double far_m,
                          double *radius_m)
{
    const double slope2 = lens->tangent[0] * lens->tangent[0] + lens->tangent[1] * lens->tangent[1];
    const double middle = fmin((near_m + far_m) / 2 * (1 + slope2), far_m);

    *radius_m = fmax(hypot(far_m - middle, far_m * sqrt(slope2)),
                     hypot(middle - near_m, near_m * sqrt(slope2)));
    return middle;
}

/* Along an axis: what may be seen in the slice, and no more than the ball around it. */
static void fit(const struct scene *scene, const struct lens_frame *lens, struct slice slice,
                struct vec3 axis, double out[2])
{
    struct box3 box;
    double radius_m;
    const double depth = ball_around(lens, slice.near_m, slice.far_m, &radius_m);
    const double middle = vec3_dot(vec3_scale(lens->forward, depth), axis);

    out[0] = INFINITY;
    out[1] = -INFINITY;
    for (size_t i = 0; nth_box(scene, i, &box); i++) {
        if ((!slice.is_first && reach(&box, lens->forward, true) < slice.near_m) ||
            reach(&box, lens->forward, false) > slice.far_m || !lens_frame_sees(lens, &box))
            continue;
        out[0] = fmin(out[0], reach(&box, axis, false));
        out[1] = fmax(out[1], reach(&box, axis, true));
    }
    out[0] = fmax(out[0], middle - radius_m);
    out[1] = fmin(out[1], middle + radius_m);
    if (out[0] < out[1])
        return;
    out[0] = middle - radius_m; /* nothing is seen there */
    out[1] = middle + radius_m;
}

int cascades_make(const struct scene *scene, const struct lens_frame *lens, struct vec3 light,
                  struct cascade out[CASCADES_MAX])
{
    const struct extent extent = extent_of(scene, lens);
    const struct vec3 pole = fabs(light.z) < 0.9 ? (struct vec3){0, 0, 1} : (struct vec3){0, 1, 0};
    const double ratio = extent.far_m / extent.near_m;
    double near_m = extent.near_m, growth;
    int count;

    if (!(extent.far_m > 0))
        return 0;
    count = (int)fmin(fmax(ceil(log(ratio) / log(GROWTH_MAX)), 1), CASCADES_MAX);
    growth = pow(ratio, 1.0 / count);
    for (int k = 0; k < count; k++, near_m *= growth) {
        struct cascade *c = &out[k];

        c->along = light;
        c->across = vec3_unit(vec3_cross(pole, light));
        c->upwards = vec3_cross(light, c->across);
        for (int i = 0; i < 2; i++) {
            const struct slice slice = {near_m, near_m * growth, k == 0};
            double ends[2];

            fit(scene, lens, slice, i == 0 ? c->across : c->upwards, ends);
            c->middle[i] = (ends[0] + ends[1]) / 2;
            c->half_m[i] = OVERLAP * fmax(ends[1] - ends[0], near_m * 1e-3) / 2;
            c->texel_m[i] = 2 * c->half_m[i] / CASCADE_TEXELS;
        }
        c->depth[0] = reach(&extent.all, light, false) - c->texel_m[0];
        c->depth[1] = reach(&extent.all, light, true) + c->texel_m[0];
    }
    return count;
}

bool cascade_sees(const struct cascade *c, const struct box3 *box)
{
    return reach(box, c->across, true) >= c->middle[0] - c->half_m[0] &&
           reach(box, c->across, false) <= c->middle[0] + c->half_m[0] &&
           reach(box, c->upwards, true) >= c->middle[1] - c->half_m[1] &&
           reach(box, c->upwards, false) <= c->middle[1] + c->half_m[1];
}

void cascade_matrix(const struct cascade *c, bool to_map, float out[16])
{
    const double shift = to_map ? 0.5 : 0, part = to_map ? 0.5 : 1;
    const double scale[2] = {part / c->half_m[0], part / c->half_m[1]};
    const double deep = 1 / (c->depth[1] - c->depth[0]);
    const double rows[3][4] = {
        {c->across.x * scale[0], c->across.y * scale[0], c->across.z * scale[0],
         shift - c->middle[0] * scale[0]},
        {c->upwards.x * scale[1], c->upwards.y * scale[1], c->upwards.z * scale[1],
         shift - c->middle[1] * scale[1]},
        {c->along.x * deep, c->along.y * deep, c->along.z * deep, -c->depth[0] * deep}};

    for (int column = 0; column < 4; column++) {
        for (int row = 0; row < 3; row++)
            out[4 * column + row] = (float)rows[row][column];
        out[4 * column + 3] = column == 3;
    }
}
