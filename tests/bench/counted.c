/*
 * Fixed sets of queries whose instructions are counted by `make bench-check`
 * (tests/bench/instructions.py), since time means nothing on a busy machine.
 *
 *   counted SET     runs one set and prints a checksum of its answers
 *   counted         prints the names of the sets
 *
 * Only what counted_run does is counted, the second time that the set runs: valgrind collects while
 * that function is entered. Inputs are whole-number arithmetic on fixed seeds, so that they and the
 * counts are the same on every machine; what the counts do depend on is the compiler, which
 * instructions.py looks at.
 */
#include "base/check.h"
#include "terrain/field/edit.h"
#include "terrain/mesh/mesh.h"
#include "terrain/field_ray/ray.h"

#include "support/api_call.h"
#include "support/random.h"
#include "support/soup.h"

#include <math.h>

enum { SIDE = 513, QUERIES = 4000, POINTS = 1000, EDIT_SIDE = 128 };

struct input {
    struct heightfield *field;
    struct mesh *mesh;
    struct api_test api;
    struct vec3 *points; /* [QUERIES], 0..SIDE-1 across, above the ground */
    struct ray *rays;    /* [QUERIES] */
    float *patch;        /* [EDIT_SIDE][EDIT_SIDE] */
    char *json;          /* a body of POINTS points */
    float *binary;       /* the same */
};

/* ---- ground: value noise of whole numbers, no libm ------------------------------------------- */

static double lattice(uint32_t column, uint32_t row)
{
    struct random random = {(uint64_t)row << 32 | column};

    return random_in(&random, 0, 1);
}

static double noise(uint32_t column, uint32_t row, uint32_t step)
{
    uint32_t c = column / step, r = row / step;
    double u = (double)(column % step) / step, v = (double)(row % step) / step;
    double low = lattice(c, r) * (1 - u) + lattice(c + 1, r) * u;
    double high = lattice(c, r + 1) * (1 - u) + lattice(c + 1, r + 1) * u;

    return low * (1 - v) + high * v;
}

static float ground(uint32_t column, uint32_t row)
{
    double height = 0;

    for (uint32_t step = 128; step >= 2; step /= 2)
        height += (double)step * 0.4 * noise(column + step * 1000, row, step);
    return (float)height;
}

static struct heightfield *make_field(void)
{
    static float samples[SIDE * SIDE];
    const struct heightfield_spec spec = {SIDE, SIDE, 0, 0, 1, 1, TRIANGULATION_ANTI, 0};
    struct heightfield *field;
    struct err err;

    for (uint32_t r = 0; r < SIDE; r++)
        for (uint32_t c = 0; c < SIDE; c++)
            samples[r * SIDE + c] = ground(c, r);
    field = heightfield_create(&spec, samples, &err);
    CHECK(field != NULL);
    return field;
}

/* The same ground as triangles, a sample in eight. */
static struct mesh *make_mesh(void)
{
    struct soup soup = {0};
    struct mesh_options options = {.gravity = {0, 0, -1}};
    struct polygon_soup view;
    struct mesh_import import;
    struct mesh *mesh;
    struct err err;

    for (uint32_t r = 0; r + 8 < SIDE; r += 8) {
        for (uint32_t c = 0; c + 8 < SIDE; c += 8) {
            const struct vec3 a = {c, r, ground(c, r)}, b = {c + 8, r, ground(c + 8, r)};
            const struct vec3 d = {c, r + 8, ground(c, r + 8)};
            const struct vec3 e = {c + 8, r + 8, ground(c + 8, r + 8)};
            const struct vec3 low[] = {a, b, d}, high[] = {b, e, d};

            soup_add(&soup, low, 3);
            soup_add(&soup, high, 3);
        }
    }
    view = soup_view(&soup);
    mesh = mesh_create(&view, &options, &import, &err);
    CHECK(mesh != NULL);
    soup_free(&soup);
    return mesh;
}

/* ---- questions ------------------------------------------------------------------------------- */

static struct vec3 place(struct random *random)
{
    return (struct vec3){random_in(random, 1, SIDE - 2), random_in(random, 1, SIDE - 2), 200};
}

static void make_points(struct input *in)
{
    struct random random = {1};
    size_t used = 0, room = (size_t)POINTS * 48 + 64;

    in->points = calloc(QUERIES, sizeof *in->points);
    in->patch = calloc((size_t)EDIT_SIDE * EDIT_SIDE, sizeof *in->patch);
    in->json = malloc(room);
    in->binary = calloc((size_t)POINTS * 2, sizeof *in->binary);
    CHECK(in->points && in->patch && in->json && in->binary);
    for (int i = 0; i < QUERIES; i++)
        in->points[i] = place(&random);
    for (int i = 0; i < EDIT_SIDE * EDIT_SIDE; i++)
        in->patch[i] = (float)random_in(&random, 0, 50);
    used += (size_t)snprintf(in->json, room, "{\"points\":[");
    for (int i = 0; i < POINTS; i++) {
        /* `hills` of api_call.h is 80 x 60 m */
        double x = random_in(&random, 0, 80), y = random_in(&random, 0, 60);

        used += (size_t)snprintf(in->json + used, room - used, "%s[%.3f,%.3f]", i ? "," : "", x, y);
        in->binary[2 * i] = (float)x;
        in->binary[2 * i + 1] = (float)y;
    }
    snprintf(in->json + used, room - used, "]}");
}

/* From above the ground to a place on it: what a mouse sends. */
static struct ray pick(struct random *random)
{
    struct vec3 eye = place(random), target = place(random);

    eye.z = random_in(random, 120, 300);
    target.z = 40;
    return (struct ray){eye, vec3_sub(target, eye), INFINITY};
}

/* Level, through the height of the ridges. */
static struct ray graze(struct random *random)
{
    struct vec3 from = place(random), to = place(random);

    from.z = to.z = random_in(random, 60, 100);
    return (struct ray){from, vec3_sub(to, from), INFINITY};
}

static void make_rays(struct input *in, struct ray (*make)(struct random *random))
{
    struct random random = {2};

    in->rays = calloc(QUERIES, sizeof *in->rays);
    CHECK(in->rays != NULL);
    for (int i = 0; i < QUERIES; i++)
        in->rays[i] = make(&random);
}

static void prepare_field(struct input *in)
{
    in->field = make_field();
    make_points(in);
}

static void prepare_picks(struct input *in)
{
    in->field = make_field();
    make_rays(in, pick);
}

static void prepare_grazing(struct input *in)
{
    in->field = make_field();
    make_rays(in, graze);
}

static void prepare_mesh(struct input *in)
{
    in->mesh = make_mesh();
    make_points(in);
}

static void prepare_mesh_picks(struct input *in)
{
    in->mesh = make_mesh();
    make_rays(in, pick);
}

static void prepare_api(struct input *in)
{
    api_test_open(&in->api);
    make_points(in);
}

/* ---- what is counted ------------------------------------------------------------------------- */

static double run_height(struct input *in)
{
    double sum = 0;

    for (int i = 0; i < QUERIES; i++) {
        struct ground_point at;

        heightfield_height(in->field, (struct vec2){in->points[i].x, in->points[i].y},
                           INTERPOLATION_TRIANGLE, &at);
        sum += at.height_m;
    }
    return sum;
}

static double run_rays(struct input *in)
{
    double sum = 0;

    for (int i = 0; i < QUERIES; i++) {
        struct ray_hit hit;

        if (heightfield_ray(in->field, &in->rays[i], RAY_CLOSEST, &hit, NULL))
            sum += hit.t;
    }
    return sum;
}

static double run_contact(struct input *in)
{
    double sum = 0;

    for (int i = 0; i < QUERIES; i++) {
        struct mesh_contact at;

        if (mesh_floor(in->mesh, in->points[i], 0, &at))
            sum += at.point.z;
    }
    return sum;
}

static double run_mesh_rays(struct input *in)
{
    double sum = 0;

    for (int i = 0; i < QUERIES; i++) {
        struct mesh_hit hit;

        if (mesh_ray(in->mesh, &in->rays[i], RAY_CLOSEST, &hit))
            sum += hit.t;
    }
    return sum;
}

static double run_height_batch(struct input *in)
{
    static struct vec2 points[QUERIES];
    static struct ground_height heights[QUERIES];
    double sum = 0;

    for (int i = 0; i < QUERIES; i++)
        points[i] = (struct vec2){in->points[i].x, in->points[i].y};
    heightfield_heights(in->field, points, QUERIES, INTERPOLATION_TRIANGLE, heights);
    for (int i = 0; i < QUERIES; i++)
        sum += heights[i].height_m;
    return sum;
}

static double run_ray_batch(struct input *in)
{
    static struct ray_hit hits[QUERIES];
    double sum = 0;

    heightfield_rays(in->field, in->rays, QUERIES, hits);
    for (int i = 0; i < QUERIES; i++)
        sum += hits[i].t < INFINITY ? hits[i].t : 0;
    return sum;
}

static double run_contact_batch(struct input *in)
{
    static struct mesh_height floors[QUERIES];
    double sum = 0;

    mesh_floor_heights(in->mesh, in->points, QUERIES, 0, floors);
    for (int i = 0; i < QUERIES; i++)
        sum += floors[i].polygon != MESH_NO_POLYGON ? floors[i].height_m : 0;
    return sum;
}

static double run_edit(struct input *in)
{
    const struct sample_rect rect = {192, 64, EDIT_SIDE, EDIT_SIDE};
    struct err err;
    struct heightfield *edited = heightfield_with_samples(in->field, &rect, in->patch, &err);
    double sum;

    CHECK(edited != NULL);
    sum = (double)heightfield_sample(edited, 200, 70);
    heightfield_unref(edited);
    return sum;
}

static double ask(struct input *in, const char *media_type, const void *body, size_t length)
{
    double sum = 0;

    if (api_test_ask(&in->api, height_post_answer, "hills", "", "", media_type, body, length)) {
        fprintf(stderr, "counted: %s\n", in->api.err.msg);
        exit(1);
    }
    for (size_t i = 0; i < in->api.out_used; i += 97)
        sum += (unsigned char)in->api.out[i];
    return sum;
}

static double run_json(struct input *in)
{
    return ask(in, "application/json", in->json, strlen(in->json));
}

static double run_json_one(struct input *in)
{
    static const char body[] = "{\"points\":[[12.345,43.21]]}";
    double sum = 0;

    for (int i = 0; i < 100; i++)
        sum += ask(in, "application/json", body, sizeof body - 1);
    return sum;
}

static double run_binary(struct input *in)
{
    return ask(in, "application/vnd.kota.f32", in->binary, (size_t)POINTS * 2 * sizeof(float));
}

static const struct set {
    const char *name;
    void (*prepare)(struct input *in);
    double (*run)(struct input *in);
} sets[] = {
    {"height", prepare_field, run_height},
    {"ray-picks", prepare_picks, run_rays},
    {"ray-grazing", prepare_grazing, run_rays},
    {"mesh-floor", prepare_mesh, run_contact},
    {"mesh-ray-picks", prepare_mesh_picks, run_mesh_rays},
    {"edit-128", prepare_field, run_edit},
    {"json-1000-heights", prepare_api, run_json},
    {"json-1-height", prepare_api, run_json_one},
    {"f32-1000-heights", prepare_api, run_binary},
    {"height-batch", prepare_field, run_height_batch},
    {"ray-picks-batch", prepare_picks, run_ray_batch},
    {"ray-grazing-batch", prepare_grazing, run_ray_batch},
    {"mesh-floor-batch", prepare_mesh, run_contact_batch},
};

/* By this name valgrind knows when to count. */
__attribute__((noinline)) double counted_run(const struct set *set, struct input *in);

double counted_run(const struct set *set, struct input *in)
{
    return set->run(in);
}

static void finish(struct input *in)
{
    heightfield_unref(in->field);
    mesh_unref(in->mesh);
    if (in->api.world)
        api_test_close(&in->api);
    free(in->points);
    free(in->rays);
    free(in->patch);
    free(in->json);
    free(in->binary);
}

int main(int count, char **words)
{
    struct input in = {0};

    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (count < 2) {
            printf("%s\n", sets[i].name);
        } else if (strcmp(sets[i].name, words[1]) == 0) {
            sets[i].prepare(&in);
            sets[i].run(&in); /* tables that are made once are there now */
            printf("%s %.17g\n", sets[i].name, counted_run(&sets[i], &in));
            finish(&in);
            return 0;
        }
    }
    if (count < 2)
        return 0;
    fprintf(stderr, "counted: no set `%s`; without arguments it lists them\n", words[1]);
    return 2;
}
