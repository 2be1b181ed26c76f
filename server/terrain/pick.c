/*
 * Picking: pixel → ray, hit → logical tile.
 *
 * Text P (Richards 2013) intersects the mouse ray with boxes down to the size of a tile and puts
 * the marker at the box's centre; here the ray meets the exact triangles, and the tile is the one
 * that holds the hit cell. P's south-west child takes `depth` for x, and its GetMinMaxY leaves out
 * the far row and column of samples that a tile's cells use: a tile's bounds here are those of all
 * its samples, from the heightfield's own pyramid.
 *
 * The pixel's corner (0,0) is the upper left one; pixel coordinates are continuous, so that a
 * pixel's centre is at +0.5. Normalised device coordinates have y up.
 */
#include "terrain/pick.h"

#include "terrain/field/heightfield_data.h"
#include "terrain/trig.h"

#include <float.h>

/* relative to its place, the depth of a view that is nothing but rounding */
#define DEGENERATE (16 * DBL_EPSILON)

struct vec3 pick_default_up(const struct camera *camera)
{
    struct vec3 forward = vec3_unit(vec3_sub(camera->target, camera->eye));
    bool is_along_z = !(length_xy(forward.x, forward.y) > PICK_PARALLEL);

    return is_along_z ? (struct vec3){0, 1, 0} : (struct vec3){0, 0, 1};
}

enum err_code pick_viewport_check(const struct viewport *viewport, struct err *err)
{
    if (!(viewport->width_px > 0 && viewport->height_px > 0 && isfinite(viewport->width_px) &&
          isfinite(viewport->height_px)))
        return err_set(err, ERR_UNPROCESSABLE, "viewport is %g×%g pixels, both must be above 0",
                       viewport->width_px, viewport->height_px);
    if (!isfinite(viewport->pixel_x) || !isfinite(viewport->pixel_y))
        return err_set(err, ERR_UNPROCESSABLE, "pixel is not finite");
    return ERR_OK;
}

enum err_code pick_pixel_check(const struct viewport *viewport, struct err *err)
{
    if (viewport->pixel_x >= 0 && viewport->pixel_x < viewport->width_px &&
        viewport->pixel_y >= 0 && viewport->pixel_y < viewport->height_px)
        return ERR_OK;
    return err_set(err, ERR_UNPROCESSABLE, "pixel (%g, %g) is outside the viewport of %g×%g",
                   viewport->pixel_x, viewport->pixel_y, viewport->width_px, viewport->height_px);
}

enum err_code pick_camera_check(const struct camera *camera, struct err *err)
{
    struct vec3 forward = vec3_unit(vec3_sub(camera->target, camera->eye));
    struct vec3 up = vec3_unit(camera->up);

    if (!(camera->fov_y_deg > 0 && camera->fov_y_deg < 180)) {
        err_limit(err, ERR_UNPROCESSABLE, camera->fov_y_deg > 0 ? 180 : 0, camera->fov_y_deg,
                  "fov_y_deg is %g, must lie between 0 and 180 (exclusive)", camera->fov_y_deg);
        return err_at(err, "fov_y_deg");
    }
    if (!(vec3_dot(forward, forward) > 0)) {
        err_set(err, ERR_UNPROCESSABLE, "eye and target are the same point");
        return err_at(err, "target");
    }
    if (!(vec3_dot(up, up) > 0)) {
        err_set(err, ERR_UNPROCESSABLE, "up is the zero vector");
        return err_at(err, "up");
    }
    if (vec3_length(vec3_cross(forward, up)) > PICK_PARALLEL)
        return ERR_OK;
    err_set(err, ERR_UNPROCESSABLE, "up points along the line of view");
    return err_at(err, "up");
}

static void device_coordinates(const struct viewport *viewport, double *x, double *y)
{
    *x = 2 * viewport->pixel_x / viewport->width_px - 1;
    *y = 1 - 2 * viewport->pixel_y / viewport->height_px;
}

enum err_code pick_camera_ray(const struct camera *camera, const struct viewport *viewport,
                              struct ray *ray, struct err *err)
{
    struct vec3 forward = vec3_unit(vec3_sub(camera->target, camera->eye));
    struct vec3 up = vec3_unit(camera->up);
    struct vec3 right = vec3_cross(forward, up);
    double x, y, tangent;

    if (pick_viewport_check(viewport, err) || pick_camera_check(camera, err))
        return err->code;
    right = vec3_unit(right);
    up = vec3_cross(right, forward);
    device_coordinates(viewport, &x, &y);
    tangent = trig_tan(camera->fov_y_deg * (M_PI / 360));
    struct vec3 across =
        vec3_scale(right, x * tangent * (viewport->width_px / viewport->height_px));

    ray->origin = camera->eye;
    ray->direction = vec3_unit(vec3_add(forward, vec3_add(across, vec3_scale(up, y * tangent))));
    ray->t_max = INFINITY;
    if (!ray_is_valid(ray))
        return err_set(err, ERR_UNPROCESSABLE, "the pixel's ray is not finite");
    return ERR_OK;
}

/* m · (x, y, z, 1): a homogeneous point. */
static void transform(const double m[16], double x, double y, double z, double p[4])
{
    for (int i = 0; i < 4; i++)
        p[i] = m[i] * x + m[4 + i] * y + m[8 + i] * z + m[12 + i];
}

static const double depth_ends[][2] = {{-1, 1}, {0, 1}, {1, 0}};

enum err_code pick_unproject_ray(const double m[16], enum depth_range depth,
                                 const struct viewport *viewport, struct ray *ray, struct err *err)
{
    double x, y, near[4], far[4];
    struct vec3 along;

    if (pick_viewport_check(viewport, err))
        return err->code;
    device_coordinates(viewport, &x, &y);
    transform(m, x, y, depth_ends[depth][0], near);
    transform(m, x, y, depth_ends[depth][1], far);
    ray->origin = (struct vec3){near[0] / near[3], near[1] / near[3], near[2] / near[3]};
    along = (struct vec3){far[0], far[1], far[2]};
    ray->t_max = INFINITY;
    if (far[3] != 0) { /* else the projection has its far plane at infinity, in that direction */
        along = vec3_sub(vec3_scale(along, 1 / far[3]), ray->origin);
        ray->t_max = vec3_length(along);
        if (!(ray->t_max > DEGENERATE * vec3_length(ray->origin)))
            ray->t_max = 0; /* near and far are one point, up to its rounding */
    }
    ray->direction = vec3_unit(along);
    if (near[3] == 0 || !ray_is_valid(ray) || !(ray->t_max > 0))
        return err_set(err, ERR_UNPROCESSABLE,
                       "inverse_view_projection is singular, or the pixel maps to infinity");
    return ERR_OK;
}

void pick_logical_tile(const struct heightfield *field, const uint32_t cell[2], uint32_t side,
                       struct logical_tile *out)
{
    const struct heightfield_spec *s = &field->spec;
    struct ground_triangle ground;
    uint32_t column = cell[0] / side, row = cell[1] / side;
    double c0 = (double)column * side, r0 = (double)row * side;
    double c1 = fmin(c0 + side, field->cell_cols), r1 = fmin(r0 + side, field->cell_rows);
    double u = (c0 + c1) / 2, v = (r0 + r1) / 2;
    struct bounds z =
        heightfield_rect_bounds(field, (uint32_t)c0, (uint32_t)r0, (uint32_t)c1, (uint32_t)r1);

    heightfield_triangle_at(field, u, v, &ground);
    out->column = column;
    out->row = row;
    out->side = side;
    out->center = (struct vec3){s->origin_x_m + u * s->spacing_x_m,
                                s->origin_y_m + v * s->spacing_y_m, ground.height_m};
    out->center_on_surface = ground.triangle >= 0;
    out->bounds = (struct box3){
        {s->origin_x_m + c0 * s->spacing_x_m, s->origin_y_m + r0 * s->spacing_y_m, (double)z.min},
        {s->origin_x_m + c1 * s->spacing_x_m, s->origin_y_m + r1 * s->spacing_y_m, (double)z.max}};
}
