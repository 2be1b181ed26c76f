/*
 * Heights by vectors: batches by groups of eight points, and one point. For fields of any
 * triangulation, with voids and without; the operations are those of height.c, so the bits are the
 * same. Compiled for AVX2.
 *
 * A group's places are found and its lines prefetched; AHEAD groups later, when they are there,
 * they are read and the heights computed. So the memory always has some hundred lines to bring, and
 * none of the work waits until all places of a batch are known.
 *
 * x and y of a point stay side by side, so a vector holds two points, and all that is done with one
 * is done with two. No gathers: they are slower than the loads that they replace. A height is
 *
 *   start0 + f0 (end0 - start0) + f1 (end1 - start1)
 *
 * whichever way the cell is split and whichever triangle it is. Those choose the order of the
 * cell's samples, by one shuffle, and the factors:
 *
 *   split           triangle  end0 end1 start0 start1    f0      f1
 *   anti   fu + fv <= 1  0    h10  h01  h00    h00       fu      fv
 *                        1    h01  h10  h11    h11       1 - fu  1 - fv
 *   main      fu >= fv   0    h10  h11  h00    h10       fu      fv
 *                        1    h01  h11  h00    h01       fv      fu
 *
 * Only points at least a cell from the field's upper edges are for here: there being inside is one
 * comparison of the distance from the origin, d < inner_m. Others get the quotient NaN, which is a
 * cell that exists, for its whole number is 0, and the height NaN. A height that comes out as NaN
 * strictly inside of a triangle is a hole; on an edge, where a neighbour's triangle may hold the
 * point, and outside, height.c computes the answer.
 */
#include "terrain/field/heightfield_data.h"
#include "terrain/kernels/kernels.h"
#include "terrain/kernels/lanes.h"

#ifdef __AVX2__

#include <string.h>

#define ALWAYS_INLINE LANES_INLINE

/*
 * Points of a group, points of a vector, heights of a vector; groups between prefetching and
 * reading.
 */
enum { LANES = 8, PAIR = 2, FOUR = 4, AHEAD = 4, RING = 16 };

_Static_assert((int)AHEAD < (int)RING, "a group is kept until it is read");
_Static_assert(GROUND_OK == 0 && sizeof(struct ground_height) == 16, "vectors write them");

enum form { FORM_GROUND, FORM_PLAIN, FORM_F32 };

/* The points, and the place of the answers: of the form's types. */
struct job {
    const struct heightfield *field;
    const unsigned char *in; /* struct vec2, or two floats */
    unsigned char *out;      /* struct ground_height, double or float */
    const double *base;      /* FORM_F32 */
    size_t count;
    bool is_finite; /* FORM_F32: no point has been met that is not */
};

struct group {
    const float *at[LANES];      /* sample (0, 0) of each cell */
    size_t stride;               /* to the next row */
    f64x4 f[LANES / PAIR];       /* the places in them; NaN: not for here */
    i64x4 is_main[LANES / PAIR]; /* TRIANGULATION_ALTERNATING: by sign */
};

/* ---- points in their cells ------------------------------------------------------------------- */

/* h00, h10, h01, h11 are 0 to 3: the table above. */
#define ANTI_ORDER 1, 2, 0, 0
#define MAIN_ORDER 1, 3, 0, 1
#define MAIN_FLIP 3, 0, 0, 3 /* to the order of triangle 1; anti: all bits */

#define F64 f64x2
#define I64 i64x2
#define U64 u64x2
#define I32 i32x4
#define WIDE(name) f64x2_##name
#define POINT_LANES(...) __VA_ARGS__
#include "terrain/kernels/height_cell.inc"
#undef F64
#undef I64
#undef U64
#undef I32
#undef WIDE
#undef POINT_LANES

#define F64 f64x4
#define I64 i64x4
#define U64 u64x4
#define I32 i32x8
#define WIDE(name) f64x4_##name
#define POINT_LANES(...) __VA_ARGS__, __VA_ARGS__
#include "terrain/kernels/height_cell.inc"

/* Of two heights: both starts, both products. */
ALWAYS_INLINE f64x4 pair_parts(const struct group *group, unsigned pair, enum triangulation split,
                               f64x4 *start)
{
    const float *const *at = &group->at[PAIR * pair];
    f64x4 f = group->f[pair];
    i32x8 order = f64x4_order(&f, group->is_main[pair], split);
    f32x4 a = f32x4_pairs(at[0], at[0] + group->stride);
    f32x4 b = f32x4_pairs(at[1], at[1] + group->stride);

    a = f32x4_pick(a, i32x8_low(order));
    b = f32x4_pick(b, i32x8_high(order));
    *start = f64x4_of_floats(f32x4_highs(a, b));
    return f * (f64x4_of_floats(f32x4_lows(a, b)) - *start);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* The points from `first` on, two a vector; where they end, zeros. */
ALWAYS_INLINE void points_load(const struct job *job, size_t first, f64x4 points[LANES / PAIR],
                               enum form form)
{
    size_t bytes = form == FORM_F32 ? 2 * sizeof(float) : sizeof(struct vec2);
    size_t left = job->count - first;
    const unsigned char *in = job->in + first * bytes;
    unsigned char padded[LANES * sizeof(struct vec2)];

    if (left < LANES) {
        memset(padded, 0, sizeof padded);
        in = memcpy(padded, in, left * bytes);
    }
#pragma GCC unroll 8
    for (unsigned i = 0; i < LANES / PAIR; i++)
        if (form == FORM_F32)
            points[i] = f64x4_of_floats(f32x4_load((const float *)(const void *)in + 4 * i)) +
                        f64x4_twice(job->base);
        else
            points[i] = f64x4_load((const double *)(const void *)in + 4 * i);
}

/* The points from `first` on, up to LANES of them. has_bases: the field's. */
ALWAYS_INLINE void group_begin(const struct job *job, size_t first, struct group *group,
                               enum form form, enum triangulation split, bool has_bases)
{
    i32x8 found[LANES / PAIR];
    f64x4 points[LANES / PAIR];

    group->stride = job->field->stride;
    points_load(job, first, points, form);
#pragma GCC unroll 8
    for (unsigned i = 0; i < LANES / PAIR; i++)
        found[i] = f64x4_find(job->field, points[i], split, &group->f[i], &group->is_main[i]);
#pragma GCC unroll 8
    for (unsigned i = 0; i < LANES; i++) {
        const uint32_t *one = (const uint32_t *)(const void *)found + 4 * i;

        const struct tile *tile = job->field->tiles[one[0]];

        group->at[i] = has_bases ? tile_at(tile, one[1]) : tile->samples + one[1];
        __builtin_prefetch(group->at[i]);
        __builtin_prefetch(group->at[i] + group->stride);
    }
}

/* Four heights from the first one on, in the order 0, 2, 1, 3. */
ALWAYS_INLINE f64x4 four_heights(const struct group *group, unsigned first,
                                 enum triangulation split)
{
    f64x4 start0, start1;
    f64x4 low = pair_parts(group, first / PAIR, split, &start0);
    f64x4 high = pair_parts(group, first / PAIR + 1, split, &start1);

    return f64x4_zip_low(start0, start1) + f64x4_zip_low(low, high) + f64x4_zip_high(low, high);
}

/* Of four places of such an order: strictly inside of a triangle, both ways that a cell is split.
 */
ALWAYS_INLINE i64x4 four_inside(const struct group *group, unsigned first)
{
    f64x4 low = group->f[first / PAIR], high = group->f[first / PAIR + 1];
    f64x4 fu = f64x4_zip_low(low, high), fv = f64x4_zip_high(low, high), zero = f64x4_all(0);

    return f64x4_gt(fu, zero) & f64x4_gt(fv, zero) & f64x4_ne(fu, fv) &
           f64x4_ne(fu + fv, f64x4_all(1));
}

/* Such heights in the order of their points, as the form has them. */
ALWAYS_INLINE void four_store(const struct job *job, f64x4 heights, i64x4 status,
                              unsigned char *out, enum form form)
{
    if (form == FORM_GROUND) {
        f64x4_store((double *)(void *)out, f64x4_zip_low(heights, (f64x4)status));
        f64x4_store((double *)(void *)out + 4, f64x4_zip_high(heights, (f64x4)status));
        return;
    }
    heights = f64x4_0213(heights);
    if (form == FORM_PLAIN)
        f64x4_store((double *)(void *)out, heights);
    else
        f32x4_store((float *)(void *)out, f64x4_floats(heights - f64x4_all(job->base[2])));
}

/* Writes the heights of the group's first `count` points; bit i: point i is not for here. */
ALWAYS_INLINE unsigned group_answer(const struct job *job, size_t first, size_t count,
                                    const struct group *group, enum form form,
                                    enum triangulation split, bool has_holes)
{
    static const size_t form_bytes[] = {
        [FORM_GROUND] = sizeof(struct ground_height),
        [FORM_PLAIN] = sizeof(double),
        [FORM_F32] = sizeof(float),
    };
    size_t bytes = form_bytes[form];
    unsigned char *out = job->out + first * bytes;
    unsigned char some[LANES * sizeof(struct ground_height)];
    unsigned char *to = count < LANES ? some : out;
    unsigned again = 0;

#pragma GCC unroll 8
    for (unsigned i = 0; i < LANES; i += FOUR) {
        f64x4 heights = four_heights(group, i, split);
        i64x4 none = f64x4_unordered(heights, heights), hole = i64x4_all(0);

        if (has_holes) {
            hole = none & four_inside(group, i);
            heights = f64x4_select(hole, f64x4_all(NAN), heights);
        }
        again |= i64x4_signs(none & ~hole) << i;
        i64x4 status = hole & i64x4_all(GROUND_HOLE);

        four_store(job, heights, status, to + i * bytes, form);
    }
    if (count < LANES)
        memcpy(out, some, count * bytes);
    if (again == 0)
        return 0;
    again = (again & 0x99) | (again & 0x22) << 1 | (again & 0x44) >> 1;
    return again & ((1u << count) - 1);
}

/* One that is not for here. */
ALWAYS_INLINE void one_again(struct job *job, size_t i, enum form form)
{
    struct ground_height ground;
    struct vec2 at;

    if (form == FORM_F32) {
        float floats[2], height;

        memcpy(floats, job->in + i * sizeof floats, sizeof floats);
        job->is_finite &= isfinite(floats[0]) && isfinite(floats[1]);
        at = (struct vec2){(double)floats[0] + job->base[0], (double)floats[1] + job->base[1]};
        ground = height_scalar(job->field, at.x, at.y);
        height = (float)(ground.height_m - job->base[2]);
        memcpy(job->out + i * sizeof height, &height, sizeof height);
        return;
    }
    at = ((const struct vec2 *)(const void *)job->in)[i];
    ground = height_scalar(job->field, at.x, at.y);
    if (form == FORM_PLAIN)
        ((double *)(void *)job->out)[i] = ground.height_m;
    else
        ((struct ground_height *)(void *)job->out)[i] = ground;
}

ALWAYS_INLINE void job_do(struct job *job, enum form form, enum triangulation split, bool has_bases)
{
    struct group ring[RING];
    size_t groups = (job->count + LANES - 1) / LANES;
    bool has_holes = false; /* one was met: more are likely, and a branch a group is not foreseen */

    for (size_t i = 0; i < groups + AHEAD; i++) {
        if (i < groups)
            group_begin(job, i * LANES, &ring[i % RING], form, split, has_bases);
        if (i < AHEAD || i - AHEAD >= groups)
            continue;
        size_t first = (i - AHEAD) * LANES, left = job->count - first;
        const struct group *group = &ring[(i - AHEAD) % RING];
        unsigned again;

        left = left < LANES ? left : LANES;
        if (has_holes) {
            again = group_answer(job, first, left, group, form, split, true);
        } else {
            again = group_answer(job, first, left, group, form, split, false);
            has_holes = again != 0;
        }
        for (; again != 0; again &= again - 1)
            one_again(job, first + (unsigned)__builtin_ctz(again), form);
    }
}

ALWAYS_INLINE void job_split(struct job *job, enum form form, bool has_bases)
{
    switch (job->field->spec.triangulation) {
    case TRIANGULATION_ANTI:
        job_do(job, form, TRIANGULATION_ANTI, has_bases);
        break;
    case TRIANGULATION_MAIN:
        job_do(job, form, TRIANGULATION_MAIN, has_bases);
        break;
    case TRIANGULATION_ALTERNATING:
        job_do(job, form, TRIANGULATION_ALTERNATING, has_bases);
        break;
    }
}

/* By form, triangulation and has_bases, so that none is tested per point. */
ALWAYS_INLINE void job_run(struct job *job, enum form form)
{
    if (job->field->has_bases)
        job_split(job, form, true);
    else
        job_split(job, form, false);
}

void heights_avx2(const struct heightfield *field, const struct vec2 *points, size_t count,
                  struct ground_height *out, double *heights_m)
{
    struct job job = {.field = field,
                      .in = (const unsigned char *)points,
                      .out = out != NULL ? (unsigned char *)out : (unsigned char *)heights_m,
                      .count = count};

    if (out != NULL)
        job_run(&job, FORM_GROUND);
    else
        job_run(&job, FORM_PLAIN);
}

bool heights_f32_avx2(const struct heightfield *field, const unsigned char *floats, size_t count,
                      const double base[3], unsigned char *out)
{
    struct job job = {
        .field = field, .in = floats, .out = out, .base = base, .count = count, .is_finite = true};

    job_run(&job, FORM_F32);
    return job.is_finite;
}

/* ---- one point ------------------------------------------------------------------------------- */

ALWAYS_INLINE struct ground_height one_height(const struct heightfield *field, double x, double y,
                                              enum triangulation split)
{
    i64x2 is_main;
    f64x2 f, place;
    uint64_t found = (uint64_t)((i64x2)f64x2_find(field, (f64x2){x, y}, split, &f, &is_main))[0];
    const float *at = heightfield_tile_at(field, field->tiles[(uint32_t)found], found >> 32);

    place = f;
    i32x4 order = f64x2_order(&place, is_main, split);
    f32x4 samples = f32x4_pick(f32x4_pairs(at, at + field->stride), order);
    f64x2 start = f64x2_of_floats(f32x4_highs(samples, samples));
    f64x2 parts = place * (f64x2_of_floats(samples) - start);
    f64x2 height = f64x2_all(start[0] + parts[0] + parts[1]), turned = f64x2_swap(f);
    i64x2 is_none = (i64x2)(height != height);
    /* strictly inside of a triangle, both ways that a cell is split; without a branch, for holes
       are not predictable */
    i64x2 is_inside =
        f64x2_gt(f, f64x2_all(0)) & (i64x2)(f != turned) & (i64x2)(f + turned != f64x2_all(1));
    unsigned none = i64x2_signs(is_none);

    if (__builtin_expect((none & ~i64x2_signs(is_inside)) != 0, 0))
        return height_scalar(field, x, y);
    return (struct ground_height){f64x2_select(is_none, f64x2_all(NAN), height)[0],
                                  (enum ground_status)(none & GROUND_HOLE)};
}

struct ground_height height_avx2(const struct heightfield *field, double x, double y)
{
    if (field->spec.triangulation == TRIANGULATION_ANTI)
        return one_height(field, x, y, TRIANGULATION_ANTI);
    if (field->spec.triangulation == TRIANGULATION_MAIN)
        return one_height(field, x, y, TRIANGULATION_MAIN);
    return one_height(field, x, y, TRIANGULATION_ALTERNATING);
}

#endif
