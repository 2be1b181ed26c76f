/*
 * Living bodies, as layers of a live value, against their triangles in double precision: models
 * that are shared, in any pose, over a heightfield. No answer may be off by over a nanometre.
 */
#include "world/ask/all_hits.h"
#include "world/ask/query.h"

#include "support/long_form.h"
#include "support/rotation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { MODELS = 2, BODIES = 7, FACES_MAX = 20, QUERIES = 100, RAYS = 50 };

#define GROUND_Z (-3.0)
#define GROUND_HALF 16.0

static struct err err;

struct model_of {
    struct vec3 at[FACES_MAX][3];
    uint32_t count;
    struct layer *surface;
};

static void add_quad(struct model_of *m, const struct vec3 q[4])
{
    memcpy(m->at[m->count++], (struct vec3[3]){q[0], q[1], q[2]}, sizeof m->at[0]);
    memcpy(m->at[m->count++], (struct vec3[3]){q[0], q[2], q[3]}, sizeof m->at[0]);
}

/* The sides of a prism over a polygon of the plane, and its two ends as quads of four corners. */
static void add_prism(struct model_of *m, const double (*plan)[2], int corners,
                      const int (*ends)[4], int end_count, double height)
{
    for (int i = 0; i < corners; i++) {
        const double *a = plan[i], *b = plan[(i + 1) % corners];

        add_quad(m,
                 (struct vec3[4]){
                     {a[0], a[1], 0}, {b[0], b[1], 0}, {b[0], b[1], height}, {a[0], a[1], height}});
    }
    for (int i = 0; i < 2 * end_count; i++) {
        struct vec3 q[4];

        for (int k = 0; k < 4; k++) {
            const double *p = plan[ends[i / 2][k]];

            q[k] = (struct vec3){p[0], p[1], i % 2 ? height : 0};
        }
        add_quad(m, q);
    }
}

static void make_surface(struct model_of *m)
{
    struct polygon_set set = {0};

    assert_int_equal(polygon_set_allocate(3 * m->count, m->count, 3 * m->count, &set, &err),
                     ERR_OK);
    for (uint32_t i = 0; i < 3 * m->count; i++) {
        set.vertices[i] = m->at[i / 3][i % 3];
        set.corners[i] = i;
    }
    for (uint32_t i = 0; i <= m->count; i++)
        set.starts[i] = 3 * i;
    m->surface = layer_create_mesh("body", LAYER_GROUND, &set, (struct vec3){0, 0, -1}, NULL, &err);
    assert_non_null(m->surface);
}

/* A brick, and a prism over an L. */
static void make_models(struct model_of models[MODELS])
{
    static const double brick[4][2] = {{-0.5, -0.4}, {0.5, -0.4}, {0.5, 0.4}, {-0.5, 0.4}};
    static const double hook[6][2] = {{0, 0}, {1.3, 0}, {1.3, 0.45}, {0.4, 0.45}, {0.4, 1}, {0, 1}};
    static const int whole[1][4] = {{0, 1, 2, 3}};
    static const int halves[2][4] = {{0, 1, 2, 3}, {0, 3, 4, 5}};

    memset(models, 0, MODELS * sizeof *models);
    add_prism(&models[0], brick, 4, whole, 1, 0.7);
    add_prism(&models[1], hook, 6, halves, 2, 0.6);
    for (int i = 0; i < MODELS; i++)
        make_surface(&models[i]);
}

static struct locale *make_ground(void)
{
    const struct heightfield_spec spec = {.cols = 5,
                                          .rows = 5,
                                          .spacing_x_m = GROUND_HALF / 2,
                                          .spacing_y_m = GROUND_HALF / 2,
                                          .origin_x_m = -GROUND_HALF,
                                          .origin_y_m = -GROUND_HALF};
    struct locale *empty = locale_create("l", &locale_manifest_default, &err), *out;
    struct layer *layer;
    float heights_m[25];

    for (int i = 0; i < 25; i++)
        heights_m[i] = (float)GROUND_Z;
    layer = layer_create_heightfield("ground", heightfield_create(&spec, heights_m, &err), &err);
    out = locale_next(empty, NULL, layer, NULL, NULL, &err);
    assert_non_null(out);
    layer_unref(layer);
    locale_unref(empty);
    return out;
}

struct scene {
    struct locale *live;
    struct layer_choice choice;
    struct vec3 at[BODIES][FACES_MAX][3]; /* where the triangles are */
    uint32_t count[BODIES];
};

static void put_bodies(struct random *random, const struct model_of *models, struct locale *ground,
                       struct scene *s)
{
    const struct vec3 down = {0, 0, -1};
    struct layer *bodies[BODIES];

    for (uint32_t b = 0; b < BODIES; b++) {
        const struct model_of *m = &models[b % MODELS];
        struct pose pose = {.translation = {random_in(random, -2, 2), random_in(random, -2, 2),
                                            random_in(random, -1, 2)}};
        struct motion motion;

        rotation_random(random, pose.rotation);
        motion = motion_at(&pose, vec3_opposite(down));
        motion.velocity = (struct vec3){1, 2, 3};
        s->count[b] = m->count;
        for (uint32_t i = 0; i < m->count; i++)
            for (int k = 0; k < 3; k++)
                s->at[b][i][k] =
                    vec3_add(rotation_turn(pose.rotation, m->at[i][k]), pose.translation);
        bodies[b] = layer_create_body((struct layer_body){.patch = 9, .number = b}, m->surface,
                                      &motion, down, &err);
        assert_non_null(bodies[b]);
    }
    s->live = locale_with_bodies(ground, bodies, BODIES, &err);
    assert_non_null(s->live);
    assert_int_equal(s->live->revision, ground->revision);
    assert_int_equal(locale_choose(s->live, NULL, &s->choice, &err), ERR_OK);
}

struct met {
    double t; /* of the first triangle of a body from t_min on; INFINITY: none */
    uint32_t body;
    struct vec3 normal;
    bool is_sure; /* no edge, sideways triangle or second one is so near that rounding decides */
};

/* By Cramer's rule. */
static struct met meet(const struct scene *s, const struct ray *ray, double t_min)
{
    struct met met = {.t = INFINITY, .is_sure = true};
    double second = INFINITY;

    for (uint32_t f = 0; f < BODIES * FACES_MAX; f++) {
        const struct vec3 *p = s->at[f / FACES_MAX][f % FACES_MAX];

        if (f % FACES_MAX >= s->count[f / FACES_MAX])
            continue;
        struct vec3 a = vec3_sub(p[1], p[0]), b = vec3_sub(p[2], p[0]), n = vec3_cross(a, b);
        struct vec3 from = vec3_sub(ray->origin, p[0]), q = vec3_cross(from, ray->direction);
        double along = -vec3_dot(n, ray->direction), t = vec3_dot(n, from) / along;
        double u = vec3_dot(b, q) / along, v = -vec3_dot(a, q) / along;
        double least = fmin(fmin(u, v), 1 - u - v);

        if (fabs(along) < 1e-2 * vec3_length(n) * vec3_length(ray->direction)) {
            met.is_sure &= least < -0.3 || !isfinite(least);
            continue;
        }
        if (least < -1e-7 || t < t_min - 1e-7)
            continue;
        met.is_sure &= least > 1e-7 && fabs(t - t_min) > 1e-7;
        if (t < met.t) {
            second = met.t;
            met.t = t;
            met.body = f / FACES_MAX;
            met.normal = vec3_unit(n);
        } else {
            second = fmin(second, t);
        }
    }
    met.is_sure &= !(second - met.t < 1e-7);
    return met;
}

/* The ground is level, and nothing but a way down meets it. */
static double ground_t(const struct ray *ray)
{
    double t = (GROUND_Z - ray->origin.z) / ray->direction.z;
    struct vec3 at = vec3_add(ray->origin, vec3_scale(ray->direction, t));

    return t >= 0 && fabs(at.x) <= GROUND_HALF && fabs(at.y) <= GROUND_HALF ? t : INFINITY;
}

static void check_hit(uint64_t seed, const struct ray *ray, const struct met *met,
                      const struct locale_hit *hit)
{
    double ground = ground_t(ray), want = fmin(met->t, ground);
    const struct layer_body *body;

    if (fabs(met->t - ground) < 1e-7)
        return;
    if (isfinite(want) != isfinite(hit->at.t) ||
        (isfinite(want) && !(fabs(hit->at.t - want) <= 1e-9)))
        fail_msg("seed %llu: t %.17g, the triangles %.17g", (unsigned long long)seed, hit->at.t,
                 want);
    if (!isfinite(want) || ground < met->t)
        return;
    body = &hit->layer->body;
    assert_true(body->patch == 9 && body->number == met->body && hit->layer->id[0] == '\0');
    assert_true(fabs(vec3_dot(hit->at.normal, met->normal)) > 1 - 1e-9);
    assert_true(hit->at.normal.z > -1e-9);
    assert_true(hit->velocity.x == 1 && hit->velocity.y == 2 && hit->velocity.z == 3);
}

static struct ray ray_at(struct random *random)
{
    struct ray ray = {.t_max = INFINITY};

    ray.origin = (struct vec3){random_in(random, -4, 4), random_in(random, -4, 4),
                               random_in(random, -2.5, 5)};
    ray.direction = vec3_sub(
        (struct vec3){random_in(random, -2, 2), random_in(random, -2, 2), random_in(random, -1, 2)},
        ray.origin);
    ray.direction = vec3_unit(ray.direction);
    return ray;
}

static unsigned ask_rays(struct random *random, const struct scene *s, uint64_t seed)
{
    struct locale_hit hits[RAYS], one, all[64];
    struct ray rays[RAYS];
    unsigned decided = 0;

    for (int i = 0; i < RAYS; i++)
        rays[i] = ray_at(random);
    locale_rays(&s->choice, rays, RAYS, RAY_CLOSEST, hits);
    for (int i = 0; i < RAYS; i++) {
        struct met met = meet(s, &rays[i], 0);
        bool is_hit = locale_ray(&s->choice, &rays[i], RAY_CLOSEST, &one, NULL);

        assert_true(is_hit == isfinite(hits[i].at.t));
        if (is_hit)
            assert_true(memcmp(&one.at.t, &hits[i].at.t, sizeof one.at.t) == 0 &&
                        one.layer == hits[i].layer && one.polygon == hits[i].polygon);
        if (!met.is_sure)
            continue;
        check_hit(seed, &rays[i], &met, &hits[i]);
        if (i % 10 == 0 && is_hit) {
            size_t count = locale_ray_all(&s->choice, &rays[i], 64, all);

            assert_true(count > 0 && all[0].layer == one.layer &&
                        fabs(all[0].at.t - one.at.t) <= 1e-9);
        }
        decided++;
    }
    return decided;
}

static unsigned ask_contact(struct random *random, const struct scene *s, uint64_t seed)
{
    const double reach = random_below(random, 2) ? 0 : random_in(random, 0, 2);
    const struct vec3 from = {random_in(random, -3, 3), random_in(random, -3, 3),
                              random_in(random, -2, 4)};
    const struct ray down = {from, {0, 0, -1}, INFINITY};
    struct met met = meet(s, &down, -reach);
    struct contacts got;
    double floor = fmax(from.z - met.t, GROUND_Z);

    if (!met.is_sure)
        return 0;
    locale_contact(&s->choice, from, (struct contact_reach){reach, INFINITY}, &got);
    assert_int_equal(got.status, CONTACT_OK);
    if (!(fabs(got.floor.point.z - floor) <= 1e-9))
        fail_msg("seed %llu: floor %.17g, the triangles %.17g", (unsigned long long)seed,
                 got.floor.point.z, floor);
    assert_true((got.floor.layer->body.patch == 9) == (floor > GROUND_Z));
    if (floor > GROUND_Z)
        assert_int_equal(got.floor.layer->body.number, met.body);
    return 1;
}

static void living_bodies_are_their_triangles_within_a_nanometre(void **state)
{
    const char *given = getenv("KOTA_TEST_SEED");
    const uint64_t first = given             ? strtoull(given, NULL, 10)
                           : long_form(1, 0) ? (uint64_t)time(NULL) * 100000
                                             : 1;
    const unsigned scenes = long_form(5010, 60);
    struct model_of models[MODELS];
    struct locale *ground = make_ground();
    unsigned decided = 0;

    (void)state;
    printf("# seed %llu (KOTA_TEST_SEED)\n", (unsigned long long)first);
    make_models(models);
    for (uint64_t seed = first; seed < first + scenes; seed++) {
        struct random random = {seed};
        struct scene s;

        put_bodies(&random, models, ground, &s);
        for (int i = 0; i < QUERIES; i += RAYS)
            decided += ask_rays(&random, &s, seed);
        for (int i = 0; i < QUERIES; i++)
            decided += ask_contact(&random, &s, seed);
        locale_unref(s.live);
    }
    if (decided < scenes * QUERIES)
        fail_msg("%u of %u questions decided anything", decided, 2 * scenes * QUERIES);
    printf("# %u rays and contacts\n", decided);
    for (int i = 0; i < MODELS; i++)
        layer_unref(models[i].surface);
    locale_unref(ground);
}

static void a_body_has_no_id_and_is_not_chosen_by_one(void **state)
{
    struct model_of models[MODELS];
    struct locale *ground = make_ground();
    struct random random = {1};
    struct layer_choice choice;
    struct scene s;

    (void)state;
    make_models(models);
    put_bodies(&random, models, ground, &s);
    assert_int_equal(s.choice.count, 1 + BODIES);
    assert_int_equal(locale_choose(s.live, "ground", &choice, &err), ERR_OK);
    assert_int_equal(choice.count, 1);
    locale_unref(s.live);
    for (int i = 0; i < MODELS; i++)
        layer_unref(models[i].surface);
    locale_unref(ground);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(living_bodies_are_their_triangles_within_a_nanometre),
        cmocka_unit_test(a_body_has_no_id_and_is_not_chosen_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
