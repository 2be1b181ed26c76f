/*
 * A batch of heights by groups of a few points, the same for each width of vectors: height_avx2.c
 * and height_avx512.c, which include this once each.
 *
 * A group's places are found by vectors and its lines asked for; AHEAD groups later, when they are
 * there, they are read and vectors do the rest. So the memory always has some hundred lines to
 * bring, and none of the work waits until all places of a batch are known. Points that are not for
 * vectors (height_levels.h) come out as NaN and are asked again one by one.
 *
 * Whoever includes this defines LANES, AHEAD and struct group before, and the two functions that
 * are only declared here behind.
 */
#ifndef KOTA_TERRAIN_HEIGHT_GROUPS_H
#define KOTA_TERRAIN_HEIGHT_GROUPS_H

#include "terrain/height_levels.h"

#ifdef __AVX2__ /* empty for a file that is not compiled for vectors */

#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { RING = 16 };

_Static_assert((int)AHEAD < (int)RING, "a group is kept until it is read");

enum form { FORM_GROUND, FORM_PLAIN, FORM_F32 };

/* What is asked, and where the answers go: of the form's types. */
struct job {
    const struct heightfield *field;
    const unsigned char *in; /* struct vec2, or two floats */
    unsigned char *out;      /* struct ground_height, double or float */
    const double *base;      /* FORM_F32 */
    size_t count;
    bool is_finite; /* FORM_F32: no point has been met that is not */
};

/* The points from `first` on, up to LANES of them. */
ALWAYS_INLINE void group_begin(const struct job *job, size_t first, struct group *group,
                               enum form form);

/* Writes the heights of the group's first `count` points; of bit i set, point i's is none. */
ALWAYS_INLINE unsigned group_answer(const struct job *job, size_t first, size_t count,
                                    const struct group *group, enum form form);

_Static_assert(GROUND_OK == 0 && sizeof(struct ground_height) == 16, "vectors write them");

/* One that is not for vectors. */
ALWAYS_INLINE void one_again(struct job *job, size_t i, enum form form)
{
    struct ground_height ground;
    struct vec2 at;

    if (form == FORM_F32) {
        float floats[2], height;

        memcpy(floats, job->in + i * sizeof floats, sizeof floats);
        job->is_finite &= isfinite(floats[0]) && isfinite(floats[1]);
        at = (struct vec2){(double)floats[0] + job->base[0], (double)floats[1] + job->base[1]};
        ground = heightfield_height_general(job->field, at.x, at.y);
        height = (float)(ground.height_m - job->base[2]);
        memcpy(job->out + i * sizeof height, &height, sizeof height);
        return;
    }
    at = ((const struct vec2 *)(const void *)job->in)[i];
    ground = heightfield_height_general(job->field, at.x, at.y);
    if (form == FORM_PLAIN)
        ((double *)(void *)job->out)[i] = ground.height_m;
    else
        ((struct ground_height *)(void *)job->out)[i] = ground;
}

ALWAYS_INLINE void group_end(struct job *job, size_t first, const struct group *group,
                             enum form form)
{
    size_t left = job->count - first, count = left < LANES ? left : LANES;
    unsigned again = group_answer(job, first, count, group, form);

    for (; again != 0; again &= again - 1)
        one_again(job, first + (unsigned)__builtin_ctz(again), form);
}

ALWAYS_INLINE void job_do(struct job *job, enum form form)
{
    struct group ring[RING];
    size_t groups = (job->count + LANES - 1) / LANES;

    for (size_t i = 0; i < groups + AHEAD; i++) {
        if (i < groups)
            group_begin(job, i * LANES, &ring[i % RING], form);
        if (i >= AHEAD && i - AHEAD < groups)
            group_end(job, (i - AHEAD) * LANES, &ring[(i - AHEAD) % RING], form);
    }
}

/* As heightfield_heights_avx2 and its like. */
ALWAYS_INLINE void heights_by_groups(const struct heightfield *field, const struct vec2 *points,
                                     size_t count, struct ground_height *out, double *heights_m)
{
    struct job job = {.field = field,
                      .in = (const unsigned char *)points,
                      .out = out != NULL ? (unsigned char *)out : (unsigned char *)heights_m,
                      .count = count};

    if (out != NULL)
        job_do(&job, FORM_GROUND);
    else
        job_do(&job, FORM_PLAIN);
}

/* As heightfield_heights_f32. */
ALWAYS_INLINE bool heights_f32_by_groups(const struct heightfield *field,
                                         const unsigned char *floats, size_t count,
                                         const double base[3], unsigned char *out)
{
    struct job job = {
        .field = field, .in = floats, .out = out, .base = base, .count = count, .is_finite = true};

    job_do(&job, FORM_F32);
    return job.is_finite;
}

#endif
#endif
