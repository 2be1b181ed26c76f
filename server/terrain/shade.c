/*
 * Shading that the pictures of worlds and those of patches share.
 *
 * Normals are interpolated from the slopes of the samples, because a facet two metres wide should
 * not be seen from one kilometre. The film is K. Narkowicz's fit of the ACES curve (2015), then
 * sRGB.
 */
#include "terrain/shade.h"

static double filmic(double x)
{
    return x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14);
}

uint8_t shade_developed(double light)
{
    double shown = filmic(0.44 * (light > 0 ? light : 0));

    shown = shown < 0 ? 0 : shown > 1 ? 1 : shown;
    shown = shown <= 0.0031308 ? 12.92 * shown : 1.055 * pow(shown, 1 / 2.4) - 0.055;
    return (uint8_t)(255 * shown + 0.5);
}

/* The slope of the samples around one, clamped at the edges; NaN beside a hole. */
static struct vec2 sample_slope(const struct heightfield *field, uint32_t column, uint32_t row)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    uint32_t c0 = column ? column - 1 : 0, c1 = column + 1 < spec->cols ? column + 1 : column;
    uint32_t r0 = row ? row - 1 : 0, r1 = row + 1 < spec->rows ? row + 1 : row;

    return (struct vec2){
        (heightfield_sample(field, c1, row) - heightfield_sample(field, c0, row)) /
            ((c1 - c0) * spec->spacing_x_m),
        (heightfield_sample(field, column, r1) - heightfield_sample(field, column, r0)) /
            ((r1 - r0) * spec->spacing_y_m)};
}

struct vec3 shade_smooth_normal(const struct heightfield *field, const struct ray_hit *hit)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    double u = (hit->point.x - spec->origin_x_m) / spec->spacing_x_m - hit->cell[0];
    double v = (hit->point.y - spec->origin_y_m) / spec->spacing_y_m - hit->cell[1];
    double x = 0, y = 0;

    for (uint32_t corner = 0; corner < 4; corner++) {
        double weight = (corner & 1 ? u : 1 - u) * (corner & 2 ? v : 1 - v);
        struct vec2 slope =
            sample_slope(field, hit->cell[0] + (corner & 1), hit->cell[1] + (corner >> 1));

        x += weight * slope.x;
        y += weight * slope.y;
    }
    if (!isfinite(x) || !isfinite(y))
        return hit->normal;
    return vec3_unit((struct vec3){-x, -y, 1});
}
