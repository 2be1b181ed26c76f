/*
 * Rays at the borders, edges and vertices of small fields with holes, against whole numbers: all
 * samples and rays lie on a lattice, so that the first t is a fraction that nothing rounds. On
 * every level, alone and in batches.
 */
#include "terrain/field_ray/ray.h"
#include "terrain/kernels/simd.h"

#include "support/random.h"
#include "support/whole.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/each_level.h"

enum { SIDE_MAX = 4, SAMPLES_MAX = SIDE_MAX * SIDE_MAX, HOLE = -100, BATCH = 80, T_NONE = -1 };

/* ---- the oracle ------------------------------------------------------------------------------ */

struct fraction {
    int64_t over, under; /* under > 0 */
};

static bool is_less(struct fraction a, struct fraction b)
{
    return a.over * b.under < b.over * a.under;
}

struct lattice_ray {
    struct whole o, d;
};

static struct fraction fraction(int64_t over, int64_t under)
{
    return under < 0 ? (struct fraction){-over, -under} : (struct fraction){over, under};
}

/* Cuts t by a·(t over the ground) >= 0; false when nothing is left. */
static bool clip(struct fraction *from, struct fraction *to, int64_t start, int64_t rate)
{
    if (rate == 0)
        return start >= 0;
    struct fraction t = fraction(-start, rate);

    if (rate > 0 && is_less(*from, t))
        *from = t;
    if (rate < 0 && is_less(t, *to))
        *to = t;
    return !is_less(*to, *from);
}

/* The first t at which a ray meets a triangle, its corners against the clock's hands from above. */
static bool meets(const struct lattice_ray *r, const struct whole p[3], struct fraction *t)
{
    struct whole n = whole_cross(whole_sub(p[1], p[0]), whole_sub(p[2], p[0]));
    int64_t start = whole_dot(n, whole_sub(p[0], r->o)), rate = whole_dot(n, r->d);
    struct fraction from = {0, 1}, to = {1 << 20, 1};

    if (rate == 0 && start != 0)
        return false;
    if (rate != 0) {
        from = to = fraction(start, rate);
        if (from.over < 0)
            return false;
    }
    for (int i = 0; i < 3; i++) {
        struct whole a = p[i], e = whole_sub(p[(i + 1) % 3], a);
        int64_t at = e.x * (r->o.y - a.y) - e.y * (r->o.x - a.x);

        if (rate == 0) {
            if (!clip(&from, &to, at, e.x * r->d.y - e.y * r->d.x))
                return false;
        } else if (at * from.under + (e.x * r->d.y - e.y * r->d.x) * from.over < 0) {
            return false;
        }
    }
    *t = from;
    return true;
}

struct lattice_field {
    uint32_t cols, rows;
    enum triangulation triangulation;
    int height[SAMPLES_MAX]; /* HOLE: none */
    int64_t origin;          /* of x and y */
};

static struct whole corner(const struct lattice_field *f, uint32_t column, uint32_t row)
{
    return (struct whole){f->origin + column, f->origin + row, f->height[row * f->cols + column]};
}

/* The first t at which the ray meets the field, under -1: a miss. */
static struct fraction first_t(const struct lattice_field *f, const struct lattice_ray *r)
{
    struct fraction least = {T_NONE, 1}, t;

    for (uint32_t row = 0; row + 1 < f->rows; row++)
        for (uint32_t column = 0; column + 1 < f->cols; column++) {
            bool is_main = f->triangulation == TRIANGULATION_MAIN ||
                           (f->triangulation == TRIANGULATION_ALTERNATING && (column + row) % 2);
            struct whole a = corner(f, column, row), b = corner(f, column + 1, row);
            struct whole c = corner(f, column, row + 1), d = corner(f, column + 1, row + 1);
            const struct whole triangles[2][3] = {{a, b, is_main ? d : c}, {is_main ? a : b, d, c}};

            for (int i = 0; i < 2; i++) {
                const struct whole *p = triangles[i];

                if (p[0].z != HOLE && p[1].z != HOLE && p[2].z != HOLE && meets(r, p, &t) &&
                    (least.over < 0 || is_less(t, least)))
                    least = t;
            }
        }
    return least;
}

/* ---- fields and rays ------------------------------------------------------------------------- */

static struct heightfield *create(const struct lattice_field *f)
{
    struct heightfield_spec spec = {f->cols, f->rows, (double)f->origin, (double)f->origin,
                                    1,       1,       f->triangulation,  0};
    float samples[SAMPLES_MAX];
    struct err err;

    for (uint32_t i = 0; i < f->cols * f->rows; i++)
        samples[i] = f->height[i] == HOLE ? NAN : (float)f->height[i];
    struct heightfield *field = heightfield_create(&spec, samples, &err);

    if (field == NULL)
        fail_msg("heightfield_create: %s", err.msg);
    return field;
}

static struct lattice_field random_field(struct random *random, unsigned number)
{
    struct lattice_field f = {2 + random_below(random, 3),
                              2 + random_below(random, 3),
                              (enum triangulation)(number % 3),
                              {0},
                              number % 4 == 3 ? 1000 : 0};
    uint32_t holes = random_below(random, 4);

    for (uint32_t i = 0; i < f.cols * f.rows; i++)
        f.height[i] = random_below(random, 6) < holes ? HOLE : (int)random_below(random, 4);
    return f;
}

static int64_t step(struct random *random)
{
    return (int64_t)random_below(random, 7) - 3;
}

/* From outside at a lattice point of the field, mostly on its border. */
static struct lattice_ray random_ray(struct random *random, const struct lattice_field *f)
{
    uint32_t column = random_below(random, f->cols), row = random_below(random, f->rows);
    uint32_t side = random_below(random, 6);
    struct lattice_ray r = {.d = {step(random), step(random), step(random)}};

    column = side == 0 ? 0 : side == 1 ? f->cols - 1 : column;
    row = side == 2 ? 0 : side == 3 ? f->rows - 1 : row;
    struct whole aim = corner(f, column, row);
    int64_t times = random_below(random, 6);

    if (aim.z == HOLE || random_below(random, 8) == 0)
        aim.z = random_below(random, 4);
    if (r.d.x == 0 && r.d.y == 0 && r.d.z == 0)
        r.d.z = -1;
    if (random_below(random, 2)) { /* at the middle of an edge or beside it */
        aim.x *= 2, aim.y *= 2, aim.z *= 2;
        aim.x += (int64_t)random_below(random, 3) - 1;
        aim.y += (int64_t)random_below(random, 3) - 1;
        aim.z += (int64_t)random_below(random, 3) - 1;
        r.o = (struct whole){aim.x - times * r.d.x, aim.y - times * r.d.y, aim.z - times * r.d.z};
        r.o.x = (r.o.x - (r.o.x & 1)) / 2;
        r.o.y = (r.o.y - (r.o.y & 1)) / 2;
        r.o.z = (r.o.z - (r.o.z & 1)) / 2;
        return r;
    }
    r.o = (struct whole){aim.x - times * r.d.x, aim.y - times * r.d.y, aim.z - times * r.d.z};
    return r;
}

static struct ray as_ray(const struct lattice_ray *r)
{
    return (struct ray){{(double)r->o.x, (double)r->o.y, (double)r->o.z},
                        {(double)r->d.x, (double)r->d.y, (double)r->d.z},
                        INFINITY};
}

static void expect_first(const struct lattice_field *f, const struct lattice_ray *r, double got,
                         const char *how)
{
    struct fraction t = first_t(f, r);
    double want = t.over < 0 ? (double)INFINITY : (double)t.over / (double)t.under;
    char heights[SAMPLES_MAX * 6] = "";

    if (isinf(want) ? isinf(got) : fabs(got - want) <= 1e-12 * (1 + want))
        return;
    for (uint32_t i = 0; i < f->cols * f->rows; i++)
        snprintf(heights + strlen(heights), sizeof heights - strlen(heights), " %d", f->height[i]);
    fail_msg(
        "%s, %s: field %u×%u at %lld, triangulation %d, heights%s: from (%lld %lld %lld) along "
        "(%lld %lld %lld) t %.17g, expected %.17g",
        simd_level_name(simd_level()), how, f->cols, f->rows, (long long)f->origin,
        (int)f->triangulation, heights, (long long)r->o.x, (long long)r->o.y, (long long)r->o.z,
        (long long)r->d.x, (long long)r->d.y, (long long)r->d.z, got, want);
}

static void expect_all(const struct lattice_field *f, const struct lattice_ray *rays, size_t count)
{
    struct heightfield *field = create(f);
    struct ray asked[BATCH];
    struct ray_hit hits[BATCH];

    for (size_t i = 0; i < count; i++) {
        struct ray_hit hit = {.t = INFINITY};

        asked[i] = as_ray(&rays[i]);
        heightfield_ray(field, &asked[i], RAY_CLOSEST, &hit, NULL);
        expect_first(f, &rays[i], hit.t, "alone");
    }
    heightfield_rays(field, asked, count, hits);
    for (size_t i = 0; i < count; i++)
        expect_first(f, &rays[i], hits[i].t, "batch");
    heightfield_unref(field);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void rays_that_meet_the_border_first(void **state)
{
    static const struct {
        struct lattice_field field;
        struct lattice_ray ray;
    } cases[] = {
        {{2, 2, TRIANGULATION_ANTI, {0, 0, 0, 1}, 0}, {{3, 1, 3}, {-1, 0, -1}}},
        {{2, 2, TRIANGULATION_ANTI, {0, 0, 0, 1}, 0}, {{1, 3, 3}, {0, -1, -1}}},
        {{3, 3, TRIANGULATION_MAIN, {0, 2, 0, 0, 2, 0, 0, 2, 2}, 0}, {{5, 3, 1}, {-2, -1, 0}}},
        {{2, 2, TRIANGULATION_MAIN, {2, 0, HOLE, 2}, 0}, {{4, 2, 1}, {-2, -1, 0}}},
        /* a vertex whose only triangle lies beside the ground line */
        {{3, 3, TRIANGULATION_ANTI, {HOLE, 2, HOLE, 0, 0, HOLE, HOLE, HOLE, HOLE}, 0},
         {{0, -2, 3}, {1, 2, -1}}},
        {{3, 3, TRIANGULATION_ANTI, {HOLE, HOLE, 3, HOLE, 2, HOLE, 0, 0, HOLE}, 0},
         {{0, -1, 3}, {1, 2, -1}}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_all(&cases[i].field, &cases[i].ray, 1);
}

static void rays_at_borders_and_vertices_hit_where_whole_numbers_say(void **state)
{
    struct random random = {31};

    (void)state;
    for (unsigned n = 0; n < 4000; n++) {
        struct lattice_field f = random_field(&random, n);
        struct lattice_ray rays[BATCH];

        for (int i = 0; i < BATCH; i++)
            rays[i] = random_ray(&random, &f);
        expect_all(&f, rays, BATCH);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rays_that_meet_the_border_first),
        cmocka_unit_test(rays_at_borders_and_vertices_hit_where_whole_numbers_say),
    };

    return run_at_every_level("rays", tests, sizeof tests / sizeof *tests);
}
