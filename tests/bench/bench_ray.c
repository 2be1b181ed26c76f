/*
 * `make bench-all`: text T's table 4.1 (Sjöstrand 2017) as a program, and what leaf size costs and
 * gives.
 *
 * T's scene: a height map of n×n cells, one spike a 32×32 leaf, and a ray along the diagonal that
 * passes through the box of every leaf on its way and hits nothing: the worst case. Three methods
 * on the same samples, in the same run, rounds interleaved, medians:
 *
 *   no pruning     every triangle of the map by Möller-Trumbore (1997), float32: T's reference
 *   quadtree only  T's pyramid with 32×32 leaves; every triangle of each leaf that is met
 *   kota           heightfield_ray
 *
 * All three must agree that nothing is hit. Each ray starts a little aside of the one before and
 * its answer is summed, so that no call can be lifted out of its loop. Ratios only: times of one
 * machine mean nothing on another.
 */
#include "support/bench_rows.h"
#include "support/bench_time.h"
#include "support/random.h"
#include "terrain/field/heightfield_data.h"
#include "terrain/field_ray/ray.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, T_LEAF = 32 };

struct scene {
    uint32_t side; /* cells */
    float *samples;
    struct heightfield *field;   /* default leaves */
    struct heightfield *field32; /* T's leaves */
};

static struct heightfield *create(uint32_t side, const float *samples, uint32_t leaf_cells)
{
    struct heightfield_spec spec = {side + 1,  side + 1, 0, 0, 1, 1, TRIANGULATION_ALTERNATING,
                                    leaf_cells};
    struct err err;
    struct heightfield *field = heightfield_create(&spec, samples, &err);

    if (field == NULL) {
        fprintf(stderr, "bench_ray: %s\n", err.msg);
        exit(1);
    }
    return field;
}

/* Flat at 0 with a spike of 1 every `every` samples, off the diagonal. */
static void scene_init(struct scene *scene, uint32_t side, uint32_t every)
{
    scene->side = side;
    scene->samples = calloc((size_t)(side + 1) * (side + 1), sizeof *scene->samples);
    if (scene->samples == NULL)
        exit(1);
    for (uint32_t r = 0; r < side; r += every)
        for (uint32_t c = 0; c < side; c += every)
            scene->samples[(size_t)(r + every / 4) * (side + 1) + c + every * 3 / 4] = 1;
    scene->field = create(side, scene->samples, 0);
    scene->field32 = create(side, scene->samples, T_LEAF);
}

static void scene_finish(struct scene *scene)
{
    heightfield_unref(scene->field);
    heightfield_unref(scene->field32);
    free(scene->samples);
}

/* The n-th ray: along the diagonal, half as high as the spikes, 0.1 to 0.2 cells aside. */
static struct ray diagonal_ray(const struct scene *scene, unsigned n)
{
    double aside = 0.1 + 0.001 * (n % 100);

    return (struct ray){{aside, 0, 0.75}, {1, 1, 0}, scene->side};
}

/* ---- the reference methods ----------------------------------------------------------------- */

struct vec3f {
    float x, y, z;
};

static inline struct vec3f sub(struct vec3f a, struct vec3f b)
{
    return (struct vec3f){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline struct vec3f cross(struct vec3f a, struct vec3f b)
{
    return (struct vec3f){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static inline float dot(struct vec3f a, struct vec3f b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

struct rayf {
    struct vec3f o, d;
};

static inline float triangle(const struct rayf *ray, struct vec3f a, struct vec3f b, struct vec3f c,
                             float nearest)
{
    struct vec3f e1 = sub(b, a), e2 = sub(c, a), p = cross(ray->d, e2);
    float det = dot(e1, p);

    if (det > -1e-12f && det < 1e-12f)
        return nearest;
    float inv = 1 / det;
    struct vec3f s = sub(ray->o, a);
    float u = dot(s, p) * inv;

    if (u < 0 || u > 1)
        return nearest;
    struct vec3f q = cross(s, e1);
    float v = dot(ray->d, q) * inv;

    if (v < 0 || u + v > 1)
        return nearest;
    float t = dot(e2, q) * inv;

    return t >= 0 && t < nearest ? t : nearest;
}

/* Both triangles of every cell of a rectangle. */
static float scan_cells(const struct scene *scene, const struct rayf *ray, uint32_t c0, uint32_t r0,
                        uint32_t c1, uint32_t r1, float nearest)
{
    size_t pitch = scene->side + 1;

    for (uint32_t r = r0; r < r1; r++)
        for (uint32_t c = c0; c < c1; c++) {
            const float *h = scene->samples + r * pitch + c;
            float x = (float)c, y = (float)r;
            struct vec3f v00 = {x, y, h[0]}, v10 = {x + 1, y, h[1]};
            struct vec3f v01 = {x, y + 1, h[pitch]}, v11 = {x + 1, y + 1, h[pitch + 1]};

            if ((c + r) & 1) {
                nearest = triangle(ray, v00, v10, v11, nearest);
                nearest = triangle(ray, v00, v11, v01, nearest);
            } else {
                nearest = triangle(ray, v00, v10, v01, nearest);
                nearest = triangle(ray, v10, v11, v01, nearest);
            }
        }
    return nearest;
}

static bool box_met(const struct rayf *ray, struct vec3f low, struct vec3f high)
{
    const float o[3] = {ray->o.x, ray->o.y, ray->o.z}, d[3] = {ray->d.x, ray->d.y, ray->d.z};
    const float a[3] = {low.x, low.y, low.z}, b[3] = {high.x, high.y, high.z};
    float t0 = 0, t1 = INFINITY;

    for (int i = 0; i < 3; i++) {
        if (d[i] == 0) {
            if (o[i] < a[i] || o[i] > b[i])
                return false;
            continue;
        }
        float x = (a[i] - o[i]) / d[i], y = (b[i] - o[i]) / d[i];

        t0 = fmaxf(t0, fminf(x, y));
        t1 = fminf(t1, fmaxf(x, y));
    }
    return t0 <= t1;
}

static float quadtree_only(const struct scene *scene, const struct rayf *ray, uint32_t level,
                           uint32_t column, uint32_t row, float nearest)
{
    uint32_t side = 1u << level;
    struct bounds z = heightfield_node(scene->field32, level, column, row);

    if (!box_met(ray, (struct vec3f){(float)column, (float)row, z.min},
                 (struct vec3f){(float)(column + side), (float)(row + side), z.max}))
        return nearest;
    if (side == T_LEAF)
        return scan_cells(scene, ray, column, row, column + side, row + side, nearest);
    for (uint32_t i = 0; i < 4; i++)
        nearest = quadtree_only(scene, ray, level - 1, column + (i & 1) * (side / 2),
                                row + (i >> 1) * (side / 2), nearest);
    return nearest;
}

/* ---- measuring ----------------------------------------------------------------------------- */

enum method { NO_PRUNING, QUADTREE_ONLY, KOTA_32, KOTA, METHODS };

static bool ask(const struct scene *scene, enum method method, unsigned n)
{
    struct ray ray = diagonal_ray(scene, n);
    struct rayf f = {{(float)ray.origin.x, (float)ray.origin.y, (float)ray.origin.z},
                     {(float)ray.direction.x, (float)ray.direction.y, (float)ray.direction.z}};
    struct ray_hit hit;

    switch (method) {
    case NO_PRUNING:
        return scan_cells(scene, &f, 0, 0, scene->side, scene->side, INFINITY) < INFINITY;
    case QUADTREE_ONLY:
        return quadtree_only(scene, &f, scene->field32->level_max, 0, 0, INFINITY) < INFINITY;
    case KOTA_32:
        return heightfield_ray(scene->field32, &ray, RAY_CLOSEST, &hit, NULL);
    default:
        return heightfield_ray(scene->field, &ray, RAY_CLOSEST, &hit, NULL);
    }
}

/* Seconds per ray of each method. */
static void measure(const struct scene *scene, double per_ray_s[METHODS])
{
    static const unsigned rays[METHODS] = {1, 4, 400, 400};
    double times[METHODS][ROUNDS];
    unsigned hits = 0;

    for (int round = 0; round < ROUNDS; round++)
        for (int m = 0; m < METHODS; m++) {
            double start = bench_now_s();

            for (unsigned n = 0; n < rays[m]; n++)
                hits += ask(scene, (enum method)m, n + (unsigned)round);
            times[m][round] = (bench_now_s() - start) / rays[m];
        }
    if (hits != 0) {
        fprintf(stderr, "bench_ray: %u hits on a scene that has none\n", hits);
        exit(1);
    }
    for (int m = 0; m < METHODS; m++)
        per_ray_s[m] = bench_median(times[m], ROUNDS);
}

static bool print_table(uint32_t every, bool has_goal)
{
    static const uint32_t sides[] = {1024, 2048, 4096, 8192};
    static const double t_quadtree[] = {11.9, 21.8, 43.6, 83.0};
    static const double t_method[] = {743.2, 1317.9, 2298.5, 3966.0};
    bool is_good = true;

    printf("\nA ray along the diagonal, a spike every %u×%u samples; times faster than testing\n"
           "every triangle (T, table 4.1; T's own figures in brackets)\n\n",
           every, every);
    printf("  %-11s %10s %18s %18s %22s\n", "height map", "no pruning", "quadtree only",
           "kota, 32×32 leaves", "kota");
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        struct scene scene;
        double s[METHODS];
        char size[24], quadtree[32], kota[32], work[96];

        scene_init(&scene, sides[i], every);
        measure(&scene, s);
        scene_finish(&scene);
        double got = s[NO_PRUNING] / s[KOTA];

        snprintf(size, sizeof size, "%u²", sides[i]);
        if (has_goal) {
            snprintf(quadtree, sizeof quadtree, "%.1f [%.1f]", s[NO_PRUNING] / s[QUADTREE_ONLY],
                     t_quadtree[i]);
            snprintf(kota, sizeof kota, "%.0f [%.0f] %s", got, t_method[i],
                     got > t_method[i] ? "ok" : "BELOW");
            is_good = is_good && got > t_method[i];
        } else {
            snprintf(quadtree, sizeof quadtree, "%.1f", s[NO_PRUNING] / s[QUADTREE_ONLY]);
            snprintf(kota, sizeof kota, "%.0f", got);
        }
        printf("  %-12s %10.1f %18s %18.0f %22s\n", size, 1.0, quadtree, s[NO_PRUNING] / s[KOTA_32],
               kota);
        fflush(stdout);
        snprintf(work, sizeof work, "one ray along the diagonal, a spike every %u², %u²", every,
                 sides[i]);
        bench_row("rays", work, "testing every triangle", got, has_goal ? t_method[i] : 0, NULL);
    }
    return is_good;
}

/* ---- leaf size ----------------------------------------------------------------------------- */

/* Midpoint displacement: rough ground for the leaf table, no more. */
static float *fractal_samples(uint32_t side, struct random *random)
{
    size_t pitch = side + 1;
    float *h = calloc(pitch * pitch, sizeof *h);

    if (h == NULL)
        exit(1);
    for (uint32_t step = side; step > 1; step /= 2) {
        float rough = 0.12f * (float)step;
        uint32_t half = step / 2;

        for (uint32_t r = half; r < side; r += step)
            for (uint32_t c = half; c < side; c += step)
                h[r * pitch + c] =
                    (h[(r - half) * pitch + c - half] + h[(r - half) * pitch + c + half] +
                     h[(r + half) * pitch + c - half] + h[(r + half) * pitch + c + half]) /
                        4 +
                    rough * (float)random_in(random, -1, 1);
        for (uint32_t r = 0; r <= side; r += half)
            for (uint32_t c = (r / half) % 2 ? 0 : half; c <= side; c += step) {
                float sum = 0, count = 0;

                if (r >= half)
                    sum += h[(r - half) * pitch + c], count++;
                if (r + half <= side)
                    sum += h[(r + half) * pitch + c], count++;
                if (c >= half)
                    sum += h[r * pitch + c - half], count++;
                if (c + half <= side)
                    sum += h[r * pitch + c + half], count++;
                h[r * pitch + c] = sum / count + rough * (float)random_in(random, -1, 1);
            }
    }
    return h;
}

static struct ray table_ray(struct random *random, const struct box3 *box, bool is_pick)
{
    struct vec3 size = vec3_sub(box->max, box->min);
    struct vec3 from = {
        random_in(random, box->min.x, box->max.x), random_in(random, box->min.y, box->max.y),
        is_pick ? box->max.z + 0.2 * size.z : random_in(random, box->min.z, box->max.z)};
    struct vec3 to = {random_in(random, box->min.x, box->max.x),
                      random_in(random, box->min.y, box->max.y),
                      random_in(random, box->min.z, box->max.z)};

    return (struct ray){from, vec3_sub(to, from), INFINITY};
}

static double leaf_time(const struct heightfield *field, bool is_pick, double *t_sum)
{
    struct random random = {77};
    struct box3 box;
    double start;

    heightfield_bounds(field, &box);
    start = bench_now_s();
    for (int n = 0; n < 20000; n++) {
        struct ray ray = table_ray(&random, &box, is_pick);
        struct ray_hit hit;

        if (heightfield_ray(field, &ray, RAY_CLOSEST, &hit, NULL))
            *t_sum += hit.t;
    }
    return bench_now_s() - start;
}

static void print_leaf_table(void)
{
    enum { SIZES = 7, SIDE = 2048 };
    struct random random = {5};
    float *samples = fractal_samples(SIDE, &random);
    struct heightfield *field[SIZES];
    double times[SIZES][2][ROUNDS], sums[SIZES] = {0};

    for (int i = 0; i < SIZES; i++)
        field[i] = create(SIDE, samples, 1u << i);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < SIZES; i++)
            for (int pick = 0; pick < 2; pick++)
                times[i][pick][round] = leaf_time(field[i], pick, &sums[i]);
    printf("\nLeaf size on rough ground of %d²: rays a second against leaves of 8×8 cells, and "
           "memory\n\n  %-6s %14s %14s %18s\n",
           SIDE, "leaf", "random rays", "picks", "bytes per sample");
    double base[2] = {bench_median(times[3][0], ROUNDS), bench_median(times[3][1], ROUNDS)};

    for (int i = 0; i < SIZES; i++) {
        struct heightfield_stats stats;

        heightfield_stats(field[i], &stats);
        printf("  %-6d %14.2f %14.2f %18.3f\n", 1 << i, base[0] / bench_median(times[i][0], ROUNDS),
               base[1] / bench_median(times[i][1], ROUNDS),
               (double)stats.bytes / (double)stats.samples);
        if (sums[i] != sums[0]) {
            fprintf(stderr, "bench_ray: leaves of %d cells answer differently\n", 1 << i);
            exit(1);
        }
        heightfield_unref(field[i]);
    }
    free(samples);
}

int main(void)
{
    bool is_good = print_table(T_LEAF, true);

    print_table(4, false);
    print_leaf_table();
    printf("\n%s\n", is_good ? "every row of T's table is exceeded"
                             : "NOT every row of T's table is exceeded");
    return is_good ? 0 : 1;
}
