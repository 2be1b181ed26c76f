/*
 * Edits of a heightfield: the change of samples, and the new heightfield.
 *
 * An edit is given as an intent (add these, dig a crater here) and recorded as its outcome: the new
 * samples of a rectangle. Applying an outcome twice is applying it once, on every machine, in every
 * version; so the outcome is logged, replayed and sent to others.
 */
#ifndef KOTA_TERRAIN_EDIT_H
#define KOTA_TERRAIN_EDIT_H

#include "terrain/field/heightfield.h"

/* Samples column .. column + cols - 1, row .. row + rows - 1. */
struct sample_rect {
    uint32_t column, row, cols, rows;
};

static inline bool sample_rect_is_inside(const struct sample_rect *inner,
                                         const struct sample_rect *outer)
{
    return inner->column >= outer->column && inner->row >= outer->row &&
           inner->column + inner->cols <= outer->column + outer->cols &&
           inner->row + inner->rows <= outer->row + outer->rows;
}

static inline bool sample_rect_fits(const struct sample_rect *rect,
                                    const struct heightfield_spec *spec)
{
    return (uint64_t)rect->column + rect->cols <= spec->cols &&
           (uint64_t)rect->row + rect->rows <= spec->rows;
}

enum edit_kind {
    EDIT_SET, /* the samples become these; NaN makes a hole, a number fills one */
    EDIT_ADD, /* the samples grow by these; a hole stays one, NaN makes one */
    EDIT_BRUSH
};

enum brush_shape {
    BRUSH_CRATER,  /* digs amount_m at the centre and throws the same volume on a rim */
    BRUSH_RAISE,   /* adds amount_m at the centre; a negative amount digs */
    BRUSH_FLATTEN, /* towards the surface's height at the centre */
    BRUSH_SMOOTH,  /* towards the mean of the samples around */
    BRUSH_RELAX    /* slides to an angle of repose */
};

/* Angles of repose; that of dry sand is BRUSH_SLOPE_DEG. */
#define BRUSH_SLOPE_MIN_DEG 1.0
#define BRUSH_SLOPE_DEG 34.0
#define BRUSH_SLOPE_MAX_DEG 89.0

/*
 * The weight w(d) of a sample at distance d from the centre is 1 at the centre and falls to 0 at
 * the radius by the smooth step, 1 - 3t² + 2t³ with t = d / radius; nothing at or beyond the radius
 * changes, nor does a hole.
 *   raise    h + amount · w
 *   crater   h - amount · w · (1 - βt²), with β such that the changes of the samples add up to 0:
 *            a pit of about half the radius, a rim inside the radius; with no sample inside but the
 *            one at the centre there is no such β, and nothing changes
 *   flatten  h + w · clamp(centre's height - h, ±amount)
 *   smooth   h + w · clamp(mean of the up to 8 neighbours that are no holes - h, ±amount); of the
 *            samples as they were before. Without such a neighbour a sample stays
 *   relax    no weight: of two neighbours (8 a sample) inside none is higher than slope_deg
 *            allows; holes and the radius are walls, and the sum of the samples stays (relax.h)
 */
struct brush {
    enum brush_shape shape;
    struct vec2 center; /* metres, in the locale's frame */
    double radius_m;    /* > 0 */
    double amount_m;    /* crater, flatten, smooth: >= 0, INFINITY: no clamp (not of a crater) */
    double slope_deg;   /* relax: BRUSH_SLOPE_MIN_DEG .. BRUSH_SLOPE_MAX_DEG; crater: the same, to
                           which it is relaxed, or 0: as dug */
};

struct edit {
    enum edit_kind kind;
    struct sample_rect rect; /* set, add */
    const float *heights_m;  /* set, add: [rect.rows][rect.cols], row 0 at the smallest y */
    struct brush brush;
};

/* The outcome of an edit over a rectangle. */
struct edit_outcome {
    struct sample_rect rect;
    float *heights_m; /* [rect.rows][rect.cols], malloc */
};

/*
 * The rectangle that an edit may change, cut at the field's edges. O(1).
 *
 * ERR_BAD_INPUT      no samples; a brush whose numbers are not finite or out of range
 * ERR_UNPROCESSABLE  a rect that is not inside the field; a brush that meets no sample
 * ERR_TOO_LARGE      more than samples_max samples, relax: RELAX_SAMPLES_MAX; with limit and got
 */
enum err_code edit_rect(const struct heightfield *field, const struct edit *edit,
                        uint64_t samples_max, struct sample_rect *out, struct err *err);

/*
 * The outcome of an edit on a field. Beside edit_rect's errors:
 * ERR_BAD_INPUT      an infinite height
 * ERR_UNPROCESSABLE  a sum beyond float32, named by its sample; flatten with its centre over a hole
 *                    or outside
 * ERR_NO_MEMORY
 * O(samples of the rect), relax up to a second. Sums and brushes in float64, rounded once to
 * float32. A value that does
 * not change keeps its bits. `out` is untouched after an error.
 */
enum err_code edit_evaluate(const struct heightfield *field, const struct edit *edit,
                            uint64_t samples_max, struct edit_outcome *out, struct err *err);
void edit_outcome_free(struct edit_outcome *outcome); /* an empty one is fine */

/*
 * The field with these samples in the rectangle, which is inside it: heights_m[rows][cols], no
 * infinity. Remakes the tiles that hold one of the samples (aprons included), in them the leaves
 * that changed and their ancestors, and the pyramid above the tiles along the same paths; shares
 * every other tile, and those of these whose samples are the same already, bit for bit. NULL and
 * ERR_NO_MEMORY. O(samples of the rect + bytes of its tiles + tiles of the field).
 */
struct heightfield *heightfield_with_samples(const struct heightfield *field,
                                             const struct sample_rect *rect, const float *heights_m,
                                             struct err *err);

/*
 * Of a field that has just been made of another one by samples in a rectangle: its new tiles keep
 * only the chunks of samples that differ from those of the other one (tile_over). For a field whose
 * tiles other fields hold as long: a fork's. O(bytes of the rect's tiles).
 */
void heightfield_share(struct heightfield *field, const struct heightfield *other,
                       const struct sample_rect *rect);

/* Copies a rectangle that is inside the field to out_m[rows][cols]. */
void heightfield_read_samples(const struct heightfield *field, const struct sample_rect *rect,
                              float *out_m);

#endif
