/*
 * The squares of the shadow maps.
 *
 * The nearest and the farthest depth of what may be seen are those of the boxes of blocks, meshes
 * and spheres in the camera's pyramid; between them the maps' depths grow by one factor, so that
 * all of them have about as many texels a pixel. A map's depth goes over everything that there is.
 */
#include "view/cascade.h"

#include <math.h>

#define DEPTH_RATIO_MAX 512.0 /* of the farthest and the nearest */
#define GROWTH_MAX 3.0        /* of two maps' depths */
#define OVERLAP 1.12          /* of the radius: room to blend */

struct extent {
    double near_m, far_m; /* along the camera's axis, of what may be seen */
    struct box3 all;
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

static struct extent extent_of(const struct scene *scene, const struct lens_frame *lens)
{
    struct extent extent = {
        INFINITY, 0, {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}}};

    for (uint32_t i = 0; i < scene->block_count; i++)
        grow(&extent, lens, &scene->boxes[i]);
    for (size_t i = 0; i < scene->part_count; i++)
        grow(&extent, lens, &scene->parts[i].box);
    for (uint32_t i = 0; i < scene->sphere_count; i++) {
        const struct scene_sphere *s = &scene->spheres[i];
        const struct vec3 at = {(double)s->at[0], (double)s->at[1], (double)s->at[2]};
        const struct vec3 r = {(double)s->radius_m, (double)s->radius_m, (double)s->radius_m};

        grow(&extent, lens, &(struct box3){vec3_sub(at, r), vec3_add(at, r)});
    }
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
        struct vec3 middle;

        c->along = light;
        c->across = vec3_unit(vec3_cross(pole, light));
        c->upwards = vec3_cross(light, c->across);
        middle =
            vec3_scale(lens->forward, ball_around(lens, near_m, near_m * growth, &c->radius_m));
        c->radius_m *= OVERLAP;
        c->texel_m = 2 * c->radius_m / CASCADE_TEXELS;
        for (int i = 0; i < 2; i++) { /* in texels of the locale */
            const struct vec3 axis = i == 0 ? c->across : c->upwards;
            const double eye = vec3_dot(lens->eye, axis), at = vec3_dot(middle, axis);

            c->middle[i] = floor((eye + at) / c->texel_m) * c->texel_m - eye;
        }
        c->depth[0] = reach(&extent.all, light, false) - c->texel_m;
        c->depth[1] = reach(&extent.all, light, true) + c->texel_m;
    }
    return count;
}

bool cascade_sees(const struct cascade *c, const struct box3 *box)
{
    return reach(box, c->across, true) >= c->middle[0] - c->radius_m &&
           reach(box, c->across, false) <= c->middle[0] + c->radius_m &&
           reach(box, c->upwards, true) >= c->middle[1] - c->radius_m &&
           reach(box, c->upwards, false) <= c->middle[1] + c->radius_m;
}

void cascade_matrix(const struct cascade *c, bool to_map, float out[16])
{
    const double scale = (to_map ? 0.5 : 1) / c->radius_m, shift = to_map ? 0.5 : 0;
    const double deep = 1 / (c->depth[1] - c->depth[0]);
    const double rows[3][4] = {
        {c->across.x * scale, c->across.y * scale, c->across.z * scale,
         shift - c->middle[0] * scale},
        {c->upwards.x * scale, c->upwards.y * scale, c->upwards.z * scale,
         shift - c->middle[1] * scale},
        {c->along.x * deep, c->along.y * deep, c->along.z * deep, -c->depth[0] * deep}};

    for (int column = 0; column < 4; column++) {
        for (int row = 0; row < 3; row++)
            out[4 * column + row] = (float)rows[row][column];
        out[4 * column + 3] = column == 3;
    }
}
