/*
 * Meshes under radial gravity: by hand, against brute force on soups over the whole sphere and
 * drum, through poles, seams, vertices and edges of closed surfaces, and as images. make
 * test asks 64,000 questions, make test-all 200,000, and KOTA_LONG=1 a million.
 */
#include "terrain/radial/radial.h"

#include "support/long_form.h"
#include "support/mesh_oracle.h"
#include "terrain/mesh/mesh_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

#define RADIUS 100.0
#define AGREEMENT 1e-6 /* metres */

static const struct mesh_space planet = {.frame = MESH_SPHERICAL, .is_outward = false},
                               hollow = {.frame = MESH_SPHERICAL, .is_outward = true};
static const struct mesh_space drum = {.frame = MESH_CYLINDRICAL, .is_outward = true},
                               mast = {.frame = MESH_CYLINDRICAL, .is_outward = false};

static struct mesh *make(const struct soup *soup, struct mesh_space space,
                         struct mesh_import *import)
{
    struct mesh_options options = {.space = space};
    struct polygon_soup view = soup_view(soup);
    struct err err = {.code = ERR_OK};
    struct mesh *mesh = mesh_create(&view, &options, import, &err);

    if (!mesh || !mesh_validate(mesh, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(mesh_space(mesh).frame, space.frame);
    assert_int_equal(mesh_space(mesh).is_outward, space.is_outward);
    return mesh;
}

/* ---- the oracle ----------------------------------------------------------------------------- */

struct crossing {
    double r, doubt; /* doubt: what rounding may do to r */
    bool is_border;  /* near an edge, or seen from its side: may be missed */
    uint32_t polygon;
};

struct gravity_line {
    struct vec3 o, d;
    double r; /* the point's */
};

static struct gravity_line line_through(struct mesh_space space, struct vec3 p)
{
    bool is_sphere = space.frame == MESH_SPHERICAL;
    struct vec3 o = {0, 0, is_sphere ? 0 : p.z}, out = vec3_sub(p, o);
    double r = sqrt(out.x * out.x + out.y * out.y + out.z * out.z);

    return (struct gravity_line){o, {out.x / r, out.y / r, out.z / r}, r};
}

/* Möller and Trumbore for the half line from o; false: no crossing. */
static bool cross(const struct gravity_line *line, struct vec3 a, struct vec3 b, struct vec3 c,
                  struct crossing *out)
{
    struct vec3 ab = vec3_sub(b, a), ac = vec3_sub(c, a), n = vec3_cross(ab, ac);
    struct vec3 h = vec3_cross(line->d, ac), s = vec3_sub(line->o, a), q = vec3_cross(s, ab);
    double det = vec3_dot(ab, h), area = vec3_length(n), size = vec3_length(ab) + vec3_length(ac);
    double u = vec3_dot(s, h) / det, v = vec3_dot(line->d, q) / det;
    double slack = 1e-13 * RADIUS * size / fabs(det) + 1e-10;

    if (!(fabs(det) > 1e-9 * area) || u < -slack || v < -slack || u + v > 1 + slack)
        return false;
    out->r = vec3_dot(ac, q) / det;
    out->doubt = 1e-12 * RADIUS * area / fabs(det) * (1 + size / RADIUS);
    out->is_border =
        u < slack || v < slack || u + v > 1 - slack || fabs(det) < 1e-6 * area || out->r < 1e-9;
    return out->r > -1e-9;
}

enum { CROSSINGS_MAX = 4096 };

static size_t all_crossings(const struct soup *soup, const struct gravity_line *line,
                            struct crossing *out)
{
    struct polygon_soup view = soup_view(soup);
    size_t count = 0;

    for (uint32_t i = 0; i < view.polygon_count; i++)
        for (uint32_t k = view.starts[i] + 2; k < view.starts[i + 1]; k++) {
            const struct vec3 *v = view.vertices;
            const uint32_t *c = view.corners;

            assert_true(count < CROSSINGS_MAX);
            if (cross(line, v[c[view.starts[i]]], v[c[k - 1]], v[c[k]], &out[count]))
                out[count++].polygon = i;
        }
    return count;
}

/*
 * The answer must be a crossing within low..high, none that cannot be missed may be better, and
 * without an answer there may be none.
 */
static void expect_best(const struct crossing *all, size_t count, double low, double high,
                        bool is_farthest, const double *got, struct vec3 p, const char *what)
{
    double nearest = INFINITY;

    for (size_t i = 0; i < count; i++) {
        double doubt = AGREEMENT + all[i].doubt, r = all[i].r;

        if (got)
            nearest = fmin(nearest, fabs(r - *got) - all[i].doubt);
        if (all[i].is_border || r < low + doubt || r > high - doubt)
            continue;
        if (!got || (is_farthest ? r > *got + doubt : r < *got - doubt))
            fail_msg("%s of (%.17g, %.17g, %.17g) is %.17g, but %.17g of polygon %u is better",
                     what, p.x, p.y, p.z, got ? *got : NAN, r, all[i].polygon);
    }
    if (got && (nearest > AGREEMENT || *got < low - AGREEMENT || *got > high + AGREEMENT))
        fail_msg("%s of (%.17g, %.17g, %.17g) is %.17g: %g beside all surfaces", what, p.x, p.y,
                 p.z, *got, nearest);
}

static double r_of(struct mesh_space space, struct vec3 p)
{
    return space.frame == MESH_SPHERICAL ? vec3_length(p) : hypot(p.x, p.y);
}

static void expect_contact(const struct mesh *mesh, const struct soup *soup, struct vec3 p,
                           double reach, bool is_closed)
{
    static struct crossing all[CROSSINGS_MAX];
    struct mesh_space space = mesh_space(mesh);
    struct gravity_line line = line_through(space, p);
    size_t count = all_crossings(soup, &line, all);
    struct mesh_contact floor, ceiling;
    double lifted = space.is_outward ? line.r - reach : line.r + reach, at, over;
    bool has_floor = mesh_floor(mesh, p, reach, &floor);
    struct vec3 g = mesh_space_gravity(space, p);

    if (has_floor) {
        at = r_of(space, floor.point);
        assert_near(floor.distance_m, space.is_outward ? at - line.r : line.r - at, 1e-9);
        assert_near(vec3_length(floor.normal), 1, 1e-12);
        assert_true(vec3_dot(floor.normal, g) <= 0);
    }
    expect_best(all, count, space.is_outward ? lifted : 0, space.is_outward ? INFINITY : lifted,
                !space.is_outward, has_floor ? &at : NULL, p, "floor");
    if (is_closed && isinf(reach) && !has_floor)
        fail_msg("(%.17g, %.17g, %.17g) has fallen through", p.x, p.y, p.z);

    double above = has_floor ? -floor.distance_m : -INFINITY;
    double least = fmax(above + 2 * AGREEMENT, reach); /* over the point */
    bool has_ceiling = mesh_ceiling(mesh, p, above, reach, &ceiling);

    if (has_ceiling)
        over = r_of(space, ceiling.point);
    if (!isinf(reach))
        expect_best(all, count, space.is_outward ? 0 : line.r + least - 2 * AGREEMENT,
                    space.is_outward ? line.r - least + 2 * AGREEMENT : INFINITY, space.is_outward,
                    has_ceiling ? &over : NULL, p, "ceiling");
}

static void expect_ray(const struct mesh *mesh, const struct soup *soup, const struct ray *ray)
{
    struct polygon_soup view = soup_view(soup);
    struct oracle_hit want = oracle_ray(&view, ray, 1e-9);
    struct mesh_hit hit = {.t = INFINITY};

    mesh_ray(mesh, ray, RAY_CLOSEST, &hit);
    if (!(hit.t >= want.t_loose - AGREEMENT && hit.t <= want.t_tight + AGREEMENT))
        fail_msg("a ray from (%.17g, %.17g, %.17g) hits at %.17g, expected %.17g..%.17g",
                 ray->origin.x, ray->origin.y, ray->origin.z, hit.t, want.t_loose, want.t_tight);
    assert_int_equal(mesh_ray(mesh, ray, RAY_ANY, &hit), !isinf(hit.t));
}

/* ---- soups ---------------------------------------------------------------------------------- */

static struct vec3 on_sphere(double theta, double phi, double r)
{
    return (struct vec3){r * cos(phi) * cos(theta), r * cos(phi) * sin(theta), r * sin(phi)};
}

/* A closed bumpy surface: rings of quads, or of triangles at the poles; a pole is one vertex. */
static void closed_sphere(struct random *random, struct soup *out)
{
    enum { AROUND = 13, RINGS = 8 };
    struct vec3 v[RINGS + 1][AROUND];

    for (int i = 0; i <= RINGS; i++)
        for (int k = 0; k < AROUND; k++) {
            bool is_pole = i == 0 || i == RINGS;

            v[i][k] = on_sphere(2 * M_PI * k / AROUND, M_PI * i / RINGS - M_PI / 2,
                                RADIUS * random_in(random, 0.9, 1.1));
            if (is_pole)
                v[i][k] = (struct vec3){0, 0, i ? RADIUS : -RADIUS};
        }
    for (int i = 0; i < RINGS; i++)
        for (int k = 0; k < AROUND; k++) {
            int n = (k + 1) % AROUND;

            if (i < RINGS - 1)
                soup_add(out, (struct vec3[]){v[i][k], v[i + 1][n], v[i + 1][k]}, 3);
            if (i > 0)
                soup_add(out, (struct vec3[]){v[i][k], v[i][n], v[i + 1][n]}, 3);
        }
}

/* A closed bumpy tube about the Z axis, z -RADIUS to RADIUS, and its caps. */
static void closed_drum(struct random *random, struct soup *out)
{
    enum { AROUND = 11, ALONG = 6 };
    struct vec3 v[ALONG + 1][AROUND];

    for (int i = 0; i <= ALONG; i++)
        for (int k = 0; k < AROUND; k++) {
            double r = RADIUS * random_in(random, 0.9, 1.1), a = 2 * M_PI * k / AROUND;

            v[i][k] = (struct vec3){r * cos(a), r * sin(a), RADIUS * (2.0 * i / ALONG - 1)};
        }
    for (int i = 0; i < ALONG; i++)
        for (int k = 0; k < AROUND; k++) {
            int n = (k + 1) % AROUND;

            soup_add(out, (struct vec3[]){v[i][k], v[i][n], v[i + 1][k]}, 3);
            soup_add(out, (struct vec3[]){v[i][n], v[i + 1][n], v[i + 1][k]}, 3);
        }
    for (int i = 0; i <= ALONG; i += ALONG)
        for (int k = 0; k < AROUND; k++)
            soup_add(out, (struct vec3[]){{0, 0, v[i][0].z}, v[i][k], v[i][(k + 1) % AROUND]}, 3);
}

/* Triangles and squares all over, from a metre to larger than the sphere; some across the poles. */
static void loose_soup(struct random *random, struct mesh_space space, struct soup *out)
{
    for (int i = 0; i < 160; i++) {
        double size = RADIUS * pow(10, random_in(random, -2, 0.3));
        struct vec3 u = oracle_direction(random), centre, e, n;
        double r = RADIUS * random_in(random, 0.3, 1.2);

        if (i % 8 == 0)
            u = (struct vec3){0, 0, i % 16 ? 1 : -1};
        if (i % 8 == 1)
            u = vec3_unit((struct vec3){-1, 0, random_in(random, -1, 1)});
        centre = vec3_scale(u, r);
        if (space.frame == MESH_CYLINDRICAL)
            centre = (struct vec3){u.x * r, u.y * r, RADIUS * random_in(random, -1, 1)};
        centre.x += 0.2 * size; /* the axis passes beside the middle, or not at all */
        u = oracle_direction(random);
        oracle_axes(u, &e, &n);
        e = vec3_scale(e, size);
        n = vec3_scale(n, size);
        soup_add(out,
                 (struct vec3[]){vec3_sub(centre, e), vec3_sub(centre, n), vec3_add(centre, e),
                                 vec3_add(centre, n)},
                 i % 2 ? 4 : 3);
    }
}

static struct vec3 some_point(struct random *random, const struct soup *soup)
{
    struct polygon_soup view = soup_view(soup);
    uint32_t i = random_below(random, (uint32_t)view.polygon_count);
    const uint32_t *c = view.corners + view.starts[i];
    struct vec3 a = view.vertices[c[0]], b = view.vertices[c[1]];
    double r = random_in(random, 0.01, 1.6);

    switch (random_below(random, 8)) {
    case 0: /* a vertex, and the line through it */
        return random_below(random, 2) ? a : vec3_scale(a, r);
    case 1: /* an edge */
        return vec3_scale(vec3_add(a, b), r / 2);
    case 2: /* the seam, exactly */
        return (struct vec3){-r * RADIUS, random_below(random, 2) ? 0.0 : -0.0,
                             RADIUS * random_in(random, -1, 1)};
    case 3: /* axes: poles, and the four sides */
        r *= RADIUS * (random_below(random, 2) ? 1 : -1);
        switch (random_below(random, 3)) {
        case 0:
            return (struct vec3){r, 0, 0};
        case 1:
            return (struct vec3){0, r, 0};
        }
        return (struct vec3){0, 0x1p-40, r};
    case 4: /* near a pole or the axis, near the seam */
        return (struct vec3){random_in(random, -1e-6, 1e-6), random_in(random, -1e-6, 1e-6),
                             r * RADIUS};
    default:
        return vec3_scale(oracle_direction(random), r * RADIUS);
    }
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void contacts_and_rays_are_those_of_brute_force(void **state)
{
    const struct mesh_space spaces[] = {planet, drum, hollow, mast};
    uint32_t rounds = getenv("KOTA_LONG") ? 250 : long_form(50, 16), asked = 0, dropped = 0;
    uint64_t seed = 20260117;
    struct random random = {seed};

    (void)state;
    print_message("# seed %llu\n", (unsigned long long)seed);
    for (uint32_t round = 0; round < rounds; round++) {
        struct mesh_space space = spaces[round % 4];
        bool is_closed = round / 4 % 2 == 1;
        struct soup soup = {0};
        struct mesh_import import;

        if (!is_closed)
            loose_soup(&random, space, &soup);
        else if (space.frame == MESH_SPHERICAL)
            closed_sphere(&random, &soup);
        else
            closed_drum(&random, &soup);
        struct mesh *mesh = make(&soup, space, &import);
        struct soup kept = {0};

        /* what was dropped is seen by a mesh of each polygon alone: the oracle leaves it out */
        for (size_t i = 0; i < soup_view(&soup).polygon_count; i++) {
            struct polygon_soup view = soup_view(&soup);
            struct vec3 corners[4];
            uint32_t count = view.starts[i + 1] - view.starts[i];
            struct gravity_line z = {{0, 0, -1e6}, {0, 0, 1}, 0};
            struct crossing at;
            bool is_on_axis = false;

            for (uint32_t k = 0; k < count; k++)
                corners[k] = view.vertices[view.corners[view.starts[i] + k]];
            for (uint32_t k = 2; k < count && space.frame == MESH_CYLINDRICAL && !is_closed; k++)
                is_on_axis |= cross(&z, corners[0], corners[k - 1], corners[k], &at);
            dropped += is_on_axis;
            if (!is_on_axis)
                soup_add(&kept, corners, count);
        }
        assert_int_equal(import.dropped + soup_view(&kept).polygon_count,
                         soup_view(&soup).polygon_count);
        for (int i = 0; i < 4000; i++, asked++) {
            struct vec3 p = some_point(&random, &soup);
            double reach = i % 4 == 0 ? INFINITY : i % 4 == 1 ? random_in(&random, 0, RADIUS) : 0;
            bool is_inside = space.frame == MESH_SPHERICAL || fabs(p.z) < 0.999 * RADIUS;
            struct ray ray = {p, oracle_direction(&random), INFINITY};

            if (r_of(space, p) > 0)
                expect_contact(mesh, &kept, p, reach, is_closed && is_inside);
            if (i % 4 == 3)
                expect_ray(mesh, &kept, &ray);
        }
        soup_free(&kept);
        soup_free(&soup);
        mesh_unref(mesh);
    }
    print_message("# %u questions, %u polygons across the axis\n", asked, dropped);
    assert_true(dropped > 0);
}

static void who_stands_stands_again(void **state)
{
    struct random random = {7};
    struct soup soup = {0};

    (void)state;
    closed_sphere(&random, &soup);
    struct mesh *mesh = make(&soup, planet, NULL);

    for (int i = 0; i < 100000; i++) {
        struct vec3 p = some_point(&random, &soup);
        struct mesh_contact first, again;

        assert_true(mesh_floor(mesh, p, INFINITY, &first));
        if (!mesh_floor(mesh, first.point, 0, &again))
            fail_msg("fell from (%.17g, %.17g, %.17g)", first.point.x, first.point.y,
                     first.point.z);
        assert_near(again.distance_m, 0, 1e-11);
        assert_false(mesh_ceiling(mesh, first.point, -again.distance_m, 0, &again));
    }
    mesh_unref(mesh);
    soup_free(&soup);
}

/* A cube of half side 10: floors seen by hand from all of its sides. */
static void cube(struct soup *out)
{
    static const int faces[6][4] = {{0, 1, 3, 2}, {4, 5, 7, 6}, {0, 1, 5, 4},
                                    {2, 3, 7, 6}, {0, 2, 6, 4}, {1, 3, 7, 5}};

    for (int f = 0; f < 6; f++) {
        struct vec3 v[4];

        for (int k = 0; k < 4; k++)
            v[k] = (struct vec3){faces[f][k] & 1 ? 10 : -10, faces[f][k] & 2 ? 10 : -10,
                                 faces[f][k] & 4 ? 10 : -10};
        soup_add(out, v, 4);
    }
}

static void a_cube_by_hand(void **state)
{
    struct soup soup = {0};
    struct mesh_contact c;
    struct mesh_hit hit;

    (void)state;
    cube(&soup);
    struct mesh *mesh = make(&soup, planet, NULL);

    /* over the pole, beside the seam, over a corner */
    assert_true(mesh_floor(mesh, (struct vec3){0, 0, 12}, 0, &c));
    assert_near(c.point.z, 10, 0);
    assert_near(c.distance_m, 2, 0);
    assert_near(c.normal.z, 1, 0);
    assert_int_equal(c.polygon, 1);
    assert_true(mesh_floor(mesh, (struct vec3){-20, 0, 0}, 0, &c));
    assert_near(c.distance_m, 10, 0);
    assert_near(c.normal.x, -1, 0);
    assert_true(mesh_floor(mesh, (struct vec3){-20, -20, -20}, 0, &c));
    assert_near(c.distance_m, 10 * sqrt(3), 1e-12);
    /* inside there is no floor, but a ceiling; lifted enough, there is one */
    assert_false(mesh_floor(mesh, (struct vec3){3, 0, 0}, 0, &c));
    assert_true(mesh_ceiling(mesh, (struct vec3){3, 0, 0}, -INFINITY, 0, &c));
    assert_near(c.point.x, 10, 0);
    assert_near(c.normal.x, 1, 0);
    assert_true(mesh_floor(mesh, (struct vec3){3, 0, 0}, 7, &c));
    assert_near(c.distance_m, -7, 0);
    /* at the centre nothing pulls */
    assert_false(mesh_floor(mesh, (struct vec3){0, 0, 0}, INFINITY, &c));
    assert_false(mesh_ceiling(mesh, (struct vec3){0, 0, 0}, -INFINITY, 0, &c));
    /* a ray from far away, and one from inside; normals are against gravity */
    assert_true(
        mesh_ray(mesh, &(struct ray){{1e9, 1, 2}, {-2, 0, 0}, INFINITY}, RAY_CLOSEST, &hit));
    assert_near(hit.t, (1e9 - 10) / 2, 1e-6);
    assert_near(hit.normal.x, 1, 0);
    assert_true(mesh_ray(mesh, &(struct ray){{0, 0, 0}, {0, 0, -4}, INFINITY}, RAY_CLOSEST, &hit));
    assert_near(hit.t, 2.5, 0);
    assert_near(hit.normal.z, -1, 0);
    assert_false(mesh_ray(mesh, &(struct ray){{0, 0, 0}, {0, 0, -4}, 2.4}, RAY_CLOSEST, &hit));
    /* along an edge, and in the plane of a side, from without and from within */
    assert_true(
        mesh_ray(mesh, &(struct ray){{-30, 10, 10}, {2, 0, 0}, INFINITY}, RAY_CLOSEST, &hit));
    assert_near(hit.t, 10, 0);
    assert_true(
        mesh_ray(mesh, &(struct ray){{-30, -35, 10}, {4, 5, 0}, INFINITY}, RAY_CLOSEST, &hit));
    assert_near(hit.t, 5, 1e-12);
    assert_true(mesh_ray(mesh, &(struct ray){{0, 3, 10}, {0, 1, 0}, INFINITY}, RAY_CLOSEST, &hit));
    assert_near(hit.t, 0, 0);
    assert_near(hit.normal.z, 1, 0);
    mesh_unref(mesh);

    /* the same as a drum: top and bottom are walls */
    mesh = make(&soup, drum, NULL);
    assert_true(mesh_floor(mesh, (struct vec3){0, -3, 9}, 0, &c));
    assert_near(c.point.y, -10, 0);
    assert_near(c.point.z, 9, 0);
    assert_near(c.normal.y, 1, 0);
    assert_near(c.distance_m, 7, 0);
    assert_false(mesh_ceiling(mesh, (struct vec3){0, -3, 9}, -7, 0, &c));
    assert_false(mesh_floor(mesh, (struct vec3){0, -3, 11}, 0, &c));
    assert_true(mesh_ray(mesh, &(struct ray){{0, 0, 0}, {0, 0, 1}, INFINITY}, RAY_CLOSEST, &hit));
    assert_near(hit.t, 10, 0);
    assert_near(hit.normal.z, -1, 0);
    mesh_unref(mesh);
    soup_free(&soup);
}

/* A plane that misses the centre by up to a millionth of the distance from it. */
static void a_plane_almost_through_the_centre_is_a_wall(void **state)
{
    static const struct {
        double miss_m;
        bool is_floor;
    } cases[] = {{0, false}, {1.5e-5, false}, {6e-5, true}, {0.5, true}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double y = cases[i].miss_m;
        struct soup soup = {0};
        struct mesh_contact c;
        struct mesh_hit hit;

        soup_add(&soup, (struct vec3[]){{-20, 0, 0}, {-20, 1, 0}, {-20, 0, 1}}, 3);
        soup_add(&soup, (struct vec3[]){{20, y, -5}, {30, y, -5}, {30, y, 5}, {20, y, 5}}, 4);
        struct mesh *mesh = make(&soup, planet, NULL);

        assert_int_equal(mesh_floor(mesh, (struct vec3){50, 2 * y, 2}, 0, &c), cases[i].is_floor);
        assert_true(mesh_ray(mesh, &(struct ray){{25, 9, 1}, {0, -1, 0}, 10}, RAY_CLOSEST, &hit));
        assert_near(hit.t, 9 - y, 1e-12);
        mesh_unref(mesh);
        soup_free(&soup);
    }
}

static void what_gravity_has_no_way_around_is_dropped_and_counted(void **state)
{
    static const struct {
        struct vec3 v[4];
        bool of_sphere, of_drum; /* dropped there? */
    } cases[] = {
        {{{-9, -9, 0}, {9, -9, 0}, {9, 9, 0}, {-9, 9, 0}}, true, false}, /* a cap, for the drum */
        {{{-9, -9, -9}, {9, -9, -9}, {9, 9, 9}, {-9, 9, 9}}, true, true},
        {{{-9, -9, 5}, {9, -9, 5}, {9, 9, 6}, {-9, 9, 6}}, false, true},
        {{{-9, 0, -9}, {9, 0, -9}, {9, 0, 9}, {-9, 0, 9}}, true, false}, /* a bulkhead */
        {{{0, 0, 0}, {9, 0, 0}, {9, 9, 0}, {0, 9, 0}}, false, false},    /* touches */
        {{{-9, 20, 0}, {9, 20, 0}, {9, 20, 9}, {-9, 20, 9}}, false, false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int is_drum = 0; is_drum < 2; is_drum++) {
            struct soup soup = {0};
            struct mesh_import import;
            bool want = is_drum ? cases[i].of_drum : cases[i].of_sphere;

            soup_add(&soup, (struct vec3[]){{20, 0, 0}, {20, 1, 0}, {20, 0, 1}}, 3);
            soup_add(&soup, cases[i].v, 4);
            struct mesh *mesh = make(&soup, is_drum ? drum : planet, &import);

            if (import.dropped != want || import.kept != 2u - want)
                fail_msg("case %zu, drum %d: dropped %d, kept %d", i, is_drum, (int)import.dropped,
                         (int)import.kept);
            mesh_unref(mesh);
            soup_free(&soup);
        }
}

static void nothing_left_is_an_error(void **state)
{
    struct soup soup = {0};
    struct mesh_options options = {.space = planet};
    struct err err = {.code = ERR_OK};

    (void)state;
    soup_add(&soup, (struct vec3[]){{-9, -9, 0}, {9, -9, 0}, {0, 9, 0}}, 3);
    struct polygon_soup view = soup_view(&soup);

    assert_null(mesh_create(&view, &options, NULL, &err));
    assert_int_equal(err.code, ERR_UNPROCESSABLE);
    assert_non_null(strstr(err.msg, "origin"));
    soup_free(&soup);
    soup_add(&soup, (struct vec3[]){{NAN, -9, 0}, {9, -9, 0}, {0, 9, 0}}, 3);
    view = soup_view(&soup);
    assert_null(mesh_create(&view, &options, NULL, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    soup_free(&soup);
    soup_add(&soup, (struct vec3[]){{1e13, -9, 0}, {9, -9, 0}, {0, 9, 0}}, 3);
    view = soup_view(&soup);
    assert_null(mesh_create(&view, &options, NULL, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    soup_free(&soup);
}

/* 20,000 polygons in one place: built, bounded in depth, and one of them is asked. */
static void coincident_polygons_are_bounded(void **state)
{
    struct soup soup = {0};
    struct mesh_stats stats;
    struct mesh_contact c;

    (void)state;
    for (int i = 0; i < 20000; i++)
        soup_add(&soup, (struct vec3[]){{20, -5, -5}, {20, 5, -5}, {20, 0, 5}}, 3);
    struct mesh *mesh = make(&soup, planet, NULL);

    mesh_stats(mesh, &stats);
    assert_int_equal(stats.polygons, 20000);
    assert_true(stats.depth <= RAY_TREE_DEPTH);
    assert_true(mesh_floor(mesh, (struct vec3){30, 0, 0}, 0, &c));
    assert_int_equal(c.polygon, 0); /* of equals the first in the file */
    assert_int_equal(mesh->radial->tree.triangle_count, 1);
    mesh_unref(mesh);
    soup_free(&soup);
}

/* ---- images --------------------------------------------------------------------------------- */

static void an_image_answers_like_the_mesh(void **state)
{
    struct random random = {11};
    struct soup soup = {0};
    struct err err = {.code = ERR_OK};
    size_t length;

    (void)state;
    closed_sphere(&random, &soup);
    loose_soup(&random, planet, &soup);
    struct mesh *mesh = make(&soup, hollow, NULL);
    const void *image = mesh_image(mesh, &length);
    struct mesh *opened = mesh_open(image, length, NULL, NULL, &err);

    if (!opened || !mesh_validate(opened, &err))
        fail_msg("%s", err.msg);
    assert_memory_equal(mesh_content(mesh), mesh_content(opened), 32);
    assert_true(mesh_space(opened).is_outward);
    for (int i = 0; i < 20000; i++) {
        struct vec3 p = some_point(&random, &soup);
        struct mesh_contact a = {.polygon = 1}, b = {.polygon = 1};

        assert_int_equal(mesh_floor(mesh, p, 0, &a), mesh_floor(opened, p, 0, &b));
        assert_memory_equal(&a, &b, offsetof(struct mesh_contact, polygon));
        assert_int_equal(a.polygon, b.polygon);
    }
    mesh_unref(opened);
    mesh_unref(mesh);
    soup_free(&soup);
}

static void damaged_images_are_refused(void **state)
{
    struct soup soup = {0};
    struct err err = {.code = ERR_OK};
    size_t length;

    (void)state;
    cube(&soup);
    struct mesh *mesh = make(&soup, planet, NULL);
    const uint8_t *image = mesh_image(mesh, &length);

    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *part = malloc(cut ? cut : 1);

        memcpy(part, image, cut);
        assert_null(mesh_open(part, cut, NULL, NULL, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
        free(part);
    }
    uint8_t *copy = malloc(length);

    for (size_t i = 0; i < length; i++) {
        memcpy(copy, image, length);
        copy[i] ^= 0x11;
        assert_null(mesh_open(copy, length, NULL, NULL, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
    }
    free(copy);
    mesh_unref(mesh);
    soup_free(&soup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cube_by_hand),
        cmocka_unit_test(a_plane_almost_through_the_centre_is_a_wall),
        cmocka_unit_test(what_gravity_has_no_way_around_is_dropped_and_counted),
        cmocka_unit_test(nothing_left_is_an_error),
        cmocka_unit_test(coincident_polygons_are_bounded),
        cmocka_unit_test(contacts_and_rays_are_those_of_brute_force),
        cmocka_unit_test(who_stands_stands_again),
        cmocka_unit_test(an_image_answers_like_the_mesh),
        cmocka_unit_test(damaged_images_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
