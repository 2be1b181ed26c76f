/*
 * Normals of bodies, so that edges of round things do not show.
 *
 * The corners of a body's triangles are sorted by their places; a corner's normal is the sum of the
 * faces of all that lie at its place, but for those beyond a crease, weighted by their angles.
 * A corner of more triangles than FAN_MAX keeps the normal of its face: the sum takes all pairs.
 * Source: G. Thürmer, C. A. Wüthrich, Computing vertex normals from polygonal facets (1998).
 */
#include "view/scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CREASE_COS 0.819 /* of 35 degrees */

enum { FAN_MAX = 64 };

struct corner {
    float at[3];
    uint32_t number;
    struct vec3 face;
    double angle;
};

static int by_place(const void *a, const void *b)
{
    const struct corner *one = a, *other = b;

    for (int k = 0; k < 3; k++)
        if (one->at[k] != other->at[k])
            return one->at[k] < other->at[k] ? -1 : 1;
    return 0;
}

static struct vec3 place_of(const float at[3])
{
    return (struct vec3){(double)at[0], (double)at[1], (double)at[2]};
}

static void describe(const float (*corners)[3], uint32_t number, struct corner *out)
{
    const uint32_t first = number - number % 3;
    const struct vec3 here = place_of(corners[number]);
    const struct vec3 next = vec3_sub(place_of(corners[first + (number + 1) % 3]), here);
    const struct vec3 last = vec3_sub(place_of(corners[first + (number + 2) % 3]), here);

    memcpy(out->at, corners[number], sizeof out->at);
    out->number = number;
    out->face = vec3_unit(vec3_cross(next, last));
    out->angle = acos(fmin(fmax(vec3_dot(vec3_unit(next), vec3_unit(last)), -1), 1));
}

static void sum_fan(const struct corner *fan, uint32_t count, float (*normals)[3])
{
    for (uint32_t i = 0; i < count; i++) {
        struct vec3 sum = fan[i].face;
        float *out = normals[fan[i].number];

        if (count <= FAN_MAX)
            sum = (struct vec3){0, 0, 0};
        for (uint32_t j = 0; j < count && count <= FAN_MAX; j++)
            if (vec3_dot(fan[i].face, fan[j].face) > CREASE_COS)
                sum = vec3_add(sum, vec3_scale(fan[j].face, fan[j].angle));
        sum = vec3_unit(sum);
        out[0] = (float)sum.x;
        out[1] = (float)sum.y;
        out[2] = (float)sum.z;
    }
}

enum err_code scene_smooth(const float (*corners)[3], uint32_t count, float (*normals)[3],
                           struct err *err)
{
    struct corner *sorted = malloc(((size_t)count + 1) * sizeof *sorted);

    if (!sorted)
        return err_set(err, ERR_NO_MEMORY, "no memory for the normals of a body");
    for (uint32_t i = 0; i < count; i++)
        describe(corners, i, &sorted[i]);
    qsort(sorted, count, sizeof *sorted, by_place);
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && by_place(&sorted[i], &sorted[end]) == 0; end++)
            ;
        sum_fan(&sorted[i], end - i, normals);
    }
    free(sorted);
    return ERR_OK;
}
