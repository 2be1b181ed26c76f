/*
 * A quad that is not flat has no inside to be seen along any direction, but two ways to be made of
 * two triangles, and both have its edges. The same holds of every ring: of all the surfaces of
 * triangles between its corners the one of least area is taken. It is the plain one where the ring
 * is nearly flat, does not depend on the axes, and is found by dynamic programming over chains of
 * corners.
 */
#include "terrain/mesh/space_split.h"

#include "base/check.h"

#include <math.h>

/* Is a place so far along an edge in its inside? */
static bool is_within(double along, double length, double within)
{
    return along * length > within && (1 - along) * length > within;
}

static bool edges_meet(struct vec3 a, struct vec3 b, struct vec3 c, struct vec3 d, double within)
{
    struct vec3 u = vec3_sub(b, a), v = vec3_sub(d, c), between = vec3_sub(c, a);
    struct vec3 normal = vec3_cross(u, v);
    double square = vec3_dot(normal, normal), lengths = vec3_length(u) * vec3_length(v);

    if (!(sqrt(square) > 1e-12 * lengths)) /* parallel: they touch at most */
        return false;
    if (!(fabs(vec3_dot(between, normal)) <= within * sqrt(square)))
        return false;
    return is_within(vec3_dot(vec3_cross(between, v), normal) / square, vec3_length(u), within) &&
           is_within(vec3_dot(vec3_cross(between, u), normal) / square, vec3_length(v), within);
}

bool space_ring_meets_itself(const struct vec3 *points, uint32_t count, double within)
{
    for (uint32_t i = 0; i + 2 < count; i++)
        for (uint32_t k = i + 2; k < count; k++) {
            if (i == 0 && k == count - 1)
                continue;
            if (edges_meet(points[i], points[i + 1], points[k], points[k + 1 < count ? k + 1 : 0],
                           within))
                return true;
        }
    return false;
}

static double area(struct vec3 a, struct vec3 b, struct vec3 c)
{
    return vec3_length(vec3_cross(vec3_sub(b, a), vec3_sub(c, a)));
}

void space_triangulate(const struct vec3 *points, uint32_t count, uint32_t *corners)
{
    double least[SPACE_CORNERS_MAX][SPACE_CORNERS_MAX]; /* of the chain from i to k */
    uint8_t tip[SPACE_CORNERS_MAX][SPACE_CORNERS_MAX]; /* of its triangle at the edge from k to i */
    uint32_t chains[SPACE_CORNERS_MAX][2], left = 1;

    CHECK(count >= 3 && count <= SPACE_CORNERS_MAX);
    for (uint32_t i = 0; i + 1 < count; i++)
        least[i][i + 1] = 0;
    for (uint32_t length = 2; length < count; length++)
        for (uint32_t i = 0, k = length; k < count; i++, k++) {
            least[i][k] = INFINITY;
            for (uint32_t m = i + 1; m < k; m++) {
                double sum = least[i][m] + least[m][k] + area(points[i], points[m], points[k]);

                if (sum < least[i][k]) {
                    least[i][k] = sum;
                    tip[i][k] = (uint8_t)m;
                }
            }
        }
    chains[0][0] = 0;
    chains[0][1] = count - 1;
    while (left > 0) {
        uint32_t i = chains[--left][0], k = chains[left][1], m;

        if (k - i < 2)
            continue;
        m = tip[i][k];
        *corners++ = i;
        *corners++ = m;
        *corners++ = k;
        chains[left][0] = i;
        chains[left++][1] = m;
        chains[left][0] = m;
        chains[left++][1] = k;
    }
}
