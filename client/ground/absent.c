/*
 * Answers that would need ground which the copy does not hold.
 *
 * A copy with bounds holds a rectangle of a heightfield's samples; beyond it the tiles are without
 * data, which a question would take for holes. So each question is followed by one more: does its
 * answer depend on cells beyond the rectangle? Along gravity -Z it does when the point is over
 * them, along a ray when the stretch of the ray up to its hit is, seen from above. A question on
 * the rim of the rectangle may look at the cells next to its own, so the rim counts as beyond.
 *
 * A ray into the sky counts as over them, too: how high the ground is there is not known.
 */
#include "client/ground/ask.h"

/* Of a cell: more than the rounding of a coordinate. */
#define RIM 1e-6

/* The part of a layer in x and y: where it is held, and where there is a field. */
struct held_area {
    double low[2], high[2];             /* held, without the rim where the field goes on */
    double field_low[2], field_high[2]; /* of the whole field */
};

static const struct held_part *part_of(const struct kota_ground_locale *locale,
                                       const struct layer_choice *choice, size_t layer)
{
    const struct held_part *part;

    if (!locale->parts)
        return NULL;
    part = &locale->parts[(size_t)(choice->layers - locale->locale->layers) + layer];
    return part->is_part ? part : NULL;
}

static struct held_area area_of(const struct heightfield *field, const struct held_part *part)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    const double origin[2] = {spec->origin_x_m, spec->origin_y_m};
    const double spacing[2] = {spec->spacing_x_m, spec->spacing_y_m};
    const uint32_t first[2] = {part->rect.column, part->rect.row};
    const uint32_t count[2] = {part->rect.cols, part->rect.rows}, all[2] = {spec->cols, spec->rows};
    struct held_area area;

    for (int i = 0; i < 2; i++) {
        uint32_t last = first[i] + count[i] - 1;

        area.field_low[i] = origin[i];
        area.field_high[i] = origin[i] + spacing[i] * (all[i] - 1);
        area.low[i] = first[i] == 0 ? -INFINITY : origin[i] + spacing[i] * (first[i] + RIM);
        area.high[i] = last == all[i] - 1 ? INFINITY : origin[i] + spacing[i] * (last - RIM);
    }
    return area;
}

/* The stretch of 0..*leave of a ray over the field, seen from above; false: there is none. */
static bool clip_to_field(const struct held_area *area, const double from[2], const double along[2],
                          double *enter, double *leave)
{
    for (int i = 0; i < 2; i++) {
        double a = (area->field_low[i] - from[i]) / along[i];
        double b = (area->field_high[i] - from[i]) / along[i];

        if (along[i] == 0) {
            if (from[i] < area->field_low[i] || from[i] > area->field_high[i])
                return false;
            continue;
        }
        *enter = fmax(*enter, fmin(a, b));
        *leave = fmin(*leave, fmax(a, b));
    }
    return *enter <= *leave;
}

static bool is_beyond(const struct held_area *area, const double at[2])
{
    return !(at[0] >= area->low[0] && at[0] <= area->high[0] && at[1] >= area->low[1] &&
             at[1] <= area->high[1]);
}

static bool is_beyond_along(const struct held_area *area, struct vec3 origin, struct vec3 direction,
                            double enter, double leave)
{
    const double from[2] = {origin.x, origin.y}, along[2] = {direction.x, direction.y};
    double ends[2][2];

    if (!clip_to_field(area, from, along, &enter, &leave))
        return false;
    for (int i = 0; i < 2; i++) {
        ends[0][i] = along[i] == 0 ? from[i] : from[i] + enter * along[i];
        ends[1][i] = along[i] == 0 ? from[i] : from[i] + leave * along[i];
    }
    return is_beyond(area, ends[0]) || is_beyond(area, ends[1]);
}

bool is_absent_along_ray(const struct kota_ground_locale *locale, const struct layer_choice *choice,
                         const struct ray *ray, double end)
{
    for (size_t i = 0; locale->parts && i < choice->count; i++) {
        const struct held_part *part = part_of(locale, choice, i);
        struct held_area area;

        if (!part)
            continue;
        area = area_of(choice->layers[i]->field, part);
        if (is_beyond_along(&area, ray->origin, ray->direction, 0, end))
            return true;
    }
    return false;
}

bool is_absent_along_gravity(const struct kota_ground_locale *locale,
                             const struct layer_choice *choice, struct vec3 point)
{
    for (size_t i = 0; locale->parts && i < choice->count; i++) {
        const struct held_part *part = part_of(locale, choice, i);
        struct held_area area;

        if (!part)
            continue;
        area = area_of(choice->layers[i]->field, part);
        if (is_beyond_along(&area, point, locale->locale->manifest.gravity, -INFINITY, INFINITY))
            return true;
    }
    return false;
}

bool is_absent_around(const struct kota_ground_locale *locale, const struct layer_choice *choice,
                      struct vec3 a, struct vec3 b, double reach_m)
{
    for (size_t i = 0; locale->parts && i < choice->count; i++) {
        const struct held_part *part = part_of(locale, choice, i);
        double low[2] = {fmin(a.x, b.x) - reach_m, fmin(a.y, b.y) - reach_m};
        double high[2] = {fmax(a.x, b.x) + reach_m, fmax(a.y, b.y) + reach_m};
        bool is_over = true;
        struct held_area area;

        if (!part)
            continue;
        area = area_of(choice->layers[i]->field, part);
        for (int k = 0; k < 2; k++) {
            low[k] = fmax(low[k], area.field_low[k]);
            high[k] = fmin(high[k], area.field_high[k]);
            is_over &= low[k] <= high[k];
        }
        if (is_over && (is_beyond(&area, low) || is_beyond(&area, high)))
            return true;
    }
    return false;
}

bool is_absent_tile(const struct kota_ground_locale *locale, const struct layer *layer,
                    const struct logical_tile *tile)
{
    for (size_t i = 0; locale->parts && i < locale->locale->layer_count; i++) {
        const struct held_part *part = &locale->parts[i];
        const struct sample_rect *rect = &part->rect;
        const struct heightfield_spec *spec;
        uint64_t column = (uint64_t)tile->column * tile->side,
                 row = (uint64_t)tile->row * tile->side;

        if (locale->locale->layers[i] != layer || !part->is_part)
            continue;
        spec = heightfield_spec(layer->field);
        return column < rect->column || row < rect->row ||
               fmin((double)column + tile->side, spec->cols - 1) >
                   (double)rect->column + rect->cols - 1 ||
               fmin((double)row + tile->side, spec->rows - 1) > (double)rect->row + rect->rows - 1;
    }
    return false;
}
