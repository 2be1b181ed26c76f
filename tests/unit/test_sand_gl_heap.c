/*
 * What granules do together, once more on the OpenGL engine, in short form: tests of
 * test_sand_packing.c compiled with another sand_make, and packing fractions between walls, which
 * the C engine finds between repeating ones. KOTA_TEST_GPU takes another device than Mesa's
 * software renderer; KOTA_LONG=1 pours all three frictions.
 */
#include "support/sand_gl.h"

#define sand_make gl_make
#define main packing_tests
int packing_tests(void);
#include "unit/test_sand_packing.c"
#undef main
#undef sand_make

/* The part of a box away from bed, walls and top that spheres fill, by points 0.25 r apart. */
static double fraction_inside(const struct granular_params *params, uint32_t count, float size_m,
                              double low_m, double high_m)
{
    const double r = (double)params->radius_m, step = r / 4, margin = 4 * r;
    double(*at)[3] = calloc((size_t)count * GRANULE_SPHERES, sizeof(*at));
    double inside = 0, points = 0;

    assert_non_null(at);
    for (uint32_t g = 0; g < count; g++) {
        const float *x = granules[g].x, *q = granules[g].q;
        float pose[1][8] = {{x[0] / 0.1f, x[1] / 0.1f, x[2] / 0.1f, 0, q[0], q[1], q[2], q[3]}};

        spheres_of((const float(*)[8])pose, 1, at + (size_t)g * GRANULE_SPHERES);
    }
    for (double z = low_m; z < high_m; z += step) {
        for (double y = margin; y < (double)size_m - margin; y += step) {
            for (double x = margin; x < (double)size_m - margin; x += step) {
                bool hit = false;

                for (uint32_t i = 0; i < count * GRANULE_SPHERES && !hit; i++)
                    hit = pow(at[i][0] * r - x, 2) + pow(at[i][1] * r - y, 2) +
                              pow(at[i][2] * r - z, 2) <
                          r * r;
                inside += hit;
                points++;
            }
        }
    }
    free(at);
    return inside / points;
}

static double poured_between_walls(struct sand_engine *engine, float size_m)
{
    const struct granular_params params = engine->config.params;
    double high;
    uint32_t count;

    sand_flat(engine, 0, size_m, 6, sand_earth);
    sand_put(engine, 0, granules, sand_lattice(granules, &params, size_m, 0, 250, 5));
    sand_frames(engine, 1, 200);
    high = top_mean(engine, size_m) - (double)params.diameter_m;
    count = sand_granules_read(engine, 0, granules);
    sand_engine_destroy(engine);
    return fraction_inside(&params, count, size_m, 0.5 * 0.445, high);
}

static void poured_granules_pack_by_their_friction_here_too(void **state)
{
    static const struct {
        float friction;
        double fraction;
    } cases[] = {{0.2f, 0.561}, {0.05f, 0.617}, {0.35f, 0.528}};

    (void)state;
    for (int i = 0; i < (long_run() ? 3 : 1); i++) {
        struct granular_params params;
        double found, of_c;

        granular_params_make(MATERIAL_SAND, 0.1f, &params);
        params.friction = cases[i].friction;
        found = poured_between_walls(gl_make(&params, 1), 2.5f);
        of_c = poured_between_walls(sand_make(&params, 1), 2.5f);
        print_message("# friction %g: %.4f, the C engine %.4f, published %.3f\n",
                      (double)cases[i].friction, found, of_c, cases[i].fraction);
        assert_near(found, cases[i].fraction, 0.02);
        assert_near(found, of_c, 0.02);
    }
}

/* In short form the C engine pours; all contacts are new then, and have to find their balance. */
static void a_heap_keeps_its_slope_here_too(void **state)
{
    struct granular_params params;
    struct sand_engine *engine, *of_c;

    (void)state;
    granular_params_make(MATERIAL_SAND, 0.1f, &params);
    engine = gl_make(&params, 1);
    if (long_run()) {
        heap_pour(engine, 24);
    } else {
        of_c = sand_make(&params, 1);
        heap_pour(of_c, 24);
        sand_flat(engine, 0, HEAP_SIZE_M, 5, sand_earth);
        sand_put(engine, 0, granules, sand_granules_read(of_c, 0, granules));
        sand_engine_destroy(of_c);
        sand_frames(engine, 1, 40);
    }
    heap_stays(engine);
    sand_engine_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poured_granules_pack_by_their_friction_here_too),
        cmocka_unit_test(a_heap_keeps_its_slope_here_too),
    };
    const char *gpu = getenv("KOTA_TEST_GPU");
    struct err err = {0};
    int failed;

    context_prepare();
    gl_context = context_create(gpu ? gpu : "software", CONTEXT_DEBUG, &err);
    if (!gl_context) {
        printf("1..0 # SKIP %s\n", err.msg);
        return 0;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (context_errors(gl_context) > 0)
        failed++;
    context_destroy(gl_context);
    return failed;
}
