/*
 * Shells: mass and inertia by hand, the surface covered, nothing of a granule passes, thin parts
 * kept, what is no solid refused, and the kept form.
 */
#include "sand/body/shell.h"

#include "base/content_hash.h"
#include "support/long_form.h"
#include "support/solid_make.h"
#include "support/test_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/near.h"

static const double PI = 3.141592653589793;
static const double scales[] = {0.2, 0.1, 0.05};

static struct shell must_build(const struct polygon_set *set, double radius_m)
{
    struct shell shell;
    struct err err;

    if (shell_build(set, radius_m, 2, &shell, &err))
        fail_msg("at %g m: %s", radius_m, err.msg);
    return shell;
}

static struct vec3 sphere_at(const struct shell *shell, uint32_t i)
{
    const float *o = shell->offsets_m[i];

    return vec3_add(shell->centre, (struct vec3){(double)o[0], (double)o[1], (double)o[2]});
}

static double nearest_centre(const struct shell *shell, struct vec3 at)
{
    double best = INFINITY;

    for (uint32_t i = 0; i < shell->particles; i++)
        best = fmin(best, vec3_length(vec3_sub(sphere_at(shell, i), at)));
    return best;
}

/* ---- mass and inertia ------------------------------------------------------------------------ */

static void expect_tensor(const struct shell *shell, double xx, double yy, double zz, double slack)
{
    const double want[3][3] = {{xx, 0, 0}, {0, yy, 0}, {0, 0, zz}};

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            assert_near(shell->inertia_per_kg[i][j], want[i][j], slack);
}

static void a_box_has_its_inertia(void **state)
{
    struct polygon_set set = solid_box((struct vec3){10, 20, -5}, (struct vec3){12, 21, -4.5});
    struct shell shell = must_build(&set, 0.1);

    (void)state;
    assert_near(shell.volume_m3, 1, 1e-12);
    assert_near(shell.centre.x, 11, 1e-12);
    assert_near(shell.centre.y, 20.5, 1e-12);
    assert_near(shell.centre.z, -4.75, 1e-12);
    expect_tensor(&shell, (1 + 0.25) / 12, (4 + 0.25) / 12, 5.0 / 12, 1e-11);
    shell_free(&shell);
    polygon_set_free(&set);
}

/* Products of inertia, of a right-angled tetrahedron of side 1: -(1/120 - V/16) / V = 1/80. */
static void a_corner_has_its_products_of_inertia(void **state)
{
    const double profile[][2] = {{0, 0}, {1, 0}, {0, 1}};
    struct polygon_set set = solid_revolve(profile, 3, false, 3);
    struct shell shell;

    (void)state;
    set.vertices[0] = (struct vec3){0, 0, 0};
    set.vertices[1] = (struct vec3){1, 0, 0};
    set.vertices[2] = (struct vec3){0, 1, 0};
    /* pole 3 in the middle of the base's long side, pole 4 is the top */
    set.vertices[3] = (struct vec3){0.25, 0.25, 0};
    set.vertices[4] = (struct vec3){0, 0, 1};
    shell = must_build(&set, 0.05);
    assert_near(shell.volume_m3, 1.0 / 6, 1e-14);
    assert_near(shell.centre.x, 0.25, 1e-14);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            assert_near(shell.inertia_per_kg[i][j], i == j ? 0.075 : 0.0125, 1e-14);
    shell_free(&shell);
    polygon_set_free(&set);
}

static void round_solids_come_near_theirs(void **state)
{
    struct polygon_set ball = solid_sphere(1, 48), ring = solid_torus(1, 0.3, 48);
    struct shell shell = must_build(&ball, 0.2);

    (void)state;
    assert_near(shell.volume_m3, 4 * PI / 3, 0.01);
    expect_tensor(&shell, 0.4, 0.4, 0.4, 1e-3);
    assert_true(shell.protrusion_m == 0);
    assert_near(shell.extent_m, 1, 0.01);
    shell_free(&shell);
    shell = must_build(&ring, 0.1);
    assert_near(shell.volume_m3, 2 * PI * PI * 0.09, 0.01);
    expect_tensor(&shell, 0.5 + 0.09 * 5 / 8, 0.5 + 0.09 * 5 / 8, 1 + 0.09 * 3 / 4, 2e-3);
    shell_free(&shell);
    polygon_set_free(&ball);
    polygon_set_free(&ring);
}

static void a_turned_body_has_the_turned_tensor(void **state)
{
    struct random random = {3};
    struct polygon_set set = solid_box((struct vec3){-1, -0.5, -0.25}, (struct vec3){1, 0.5, 0.25});
    struct shell shell;
    double trace = 0, square = 0;
    const double want[3] = {1.25 / 12, 4.25 / 12, 5.0 / 12};

    (void)state;
    solid_turn(&set, &random, (struct vec3){500, 600, 700});
    shell = must_build(&set, 0.2);
    for (int i = 0; i < 3; i++) {
        trace += shell.inertia_per_kg[i][i];
        for (int j = 0; j < 3; j++) {
            square += shell.inertia_per_kg[i][j] * shell.inertia_per_kg[i][j];
            assert_near(shell.inertia_per_kg[i][j], shell.inertia_per_kg[j][i], 1e-12);
        }
    }
    assert_near(trace, want[0] + want[1] + want[2], 1e-9);
    assert_near(square, want[0] * want[0] + want[1] * want[1] + want[2] * want[2], 1e-9);
    shell_free(&shell);
    polygon_set_free(&set);
}

/* ---- cover ----------------------------------------------------------------------------------- */

static void expect_covered(const struct polygon_set *set, const struct shell *shell, uint64_t seed)
{
    struct random random = {seed};
    double r = shell->radius_m;

    for (int i = 0; i < 3000; i++) {
        struct vec3 normal, at = solid_point(set, &random, &normal);
        double d = nearest_centre(shell, at);

        if (!(d <= SHELL_REACH * r))
            fail_msg("seed %llu: the surface at (%g, %g, %g) is %g radii from all spheres",
                     (unsigned long long)seed, at.x, at.y, at.z, d / r);
    }
}

/* Centres are inside, as deep as a radius or as the solid allows, and not on one another. */
static void expect_inside(const struct polygon_set *set, const struct shell *shell)
{
    double r = shell->radius_m;
    uint32_t stride = shell->particles / 30 + 1;

    for (uint32_t i = 0; i < shell->particles; i += stride) {
        struct vec3 at = sphere_at(shell, i);
        double depth = solid_distance(set, at);

        assert_near(solid_winding(set, at), 1, 1e-3);
        if (depth < r - shell->protrusion_m - 0.011 * r || depth > r * 1.001)
            fail_msg("sphere %u is %g radii deep, one stands out by %g", i, depth / r,
                     shell->protrusion_m / r);
        for (uint32_t j = 0; j < i; j++)
            assert_true(vec3_length(vec3_sub(sphere_at(shell, j), at)) > 0.01 * r);
    }
}

static double surface_m2(const struct polygon_set *set)
{
    double sum = 0;

    for (size_t i = 0; i < set->polygon_count; i++) {
        const struct vec3 a = set->vertices[set->corners[3 * i]];

        sum += vec3_length(vec3_cross(vec3_sub(set->vertices[set->corners[3 * i + 1]], a),
                                      vec3_sub(set->vertices[set->corners[3 * i + 2]], a)));
    }
    return sum / 2;
}

static void expect_shells(struct polygon_set set, double least_m, uint64_t seed)
{
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        struct shell shell;
        double faces;

        if (scales[i] < least_m)
            continue;
        shell = must_build(&set, scales[i]);
        faces = surface_m2(&set) / (scales[i] * scales[i]);
        print_message("# seed %llu, r %g m: %u spheres, %g on r² of surface, out by %g m\n",
                      (unsigned long long)seed, scales[i], shell.particles, shell.particles / faces,
                      shell.protrusion_m);
        expect_covered(&set, &shell, seed);
        expect_inside(&set, &shell);
        assert_true(shell.particles < 8 + 0.75 * faces);
        shell_free(&shell);
    }
    polygon_set_free(&set);
}

static void the_surface_is_covered_at_every_scale(void **state)
{
    const double coarse_m = long_form(0, 1) * 0.1; /* of round ones in make test */
    struct random random = {8};
    struct polygon_set set;

    (void)state;
    expect_shells(solid_box((struct vec3){0, 0, 0}, (struct vec3){1, 0.7, 0.5}), 0, 1);
    expect_shells(solid_sphere(0.6, 12), coarse_m, 2);
    expect_shells(solid_torus(0.6, 0.2, 12), coarse_m, 3);
    expect_shells(solid_bowl(0.6, 0.01, 8), 0, 4);
    expect_shells(solid_box((struct vec3){0, 0, 0}, (struct vec3){2, 0.03, 0.02}), 0, 5);
    expect_shells(solid_box((struct vec3){0, 0, 0}, (struct vec3){0.01, 0.01, 0.01}), 0, 6);
    set = solid_box((struct vec3){0, 0, 0}, (struct vec3){1, 0.7, 0.5});
    solid_turn(&set, &random, (struct vec3){2000, 3000, 100});
    expect_shells(set, 0.1 + coarse_m, 7);
}

/* A wedge of 6 degrees and a needle: sharp edges are reached, too. */
static void sharp_edges_are_covered(void **state)
{
    const double needle[][2] = {{0, 0}, {0.1, 0.1}, {0, 2}};
    struct polygon_set wedge = solid_box((struct vec3){0, 0, 0}, (struct vec3){1, 1, 0.1});

    (void)state;
    wedge.vertices[5].z = wedge.vertices[6].z = 1e-4; /* x = 1 */
    expect_shells(wedge, 0, 11);
    expect_shells(solid_revolve(needle, 3, false, 9), 0, 12);
}

/* Places for a granule's sphere, r/3 apart, and which of them are joined to the first. */
struct flood {
    struct vec3 low;
    double step;
    uint32_t size[3];
    uint8_t *seen; /* 1: looked at, 2: free, too */
};

/* A place is free when a sphere there overlaps no shell by more than a twentieth. */
static void flood_fill(const struct polygon_set *set, const struct shell *shell, struct flood *f)
{
    double r = shell->radius_m;
    struct box3 box = {set->vertices[0], set->vertices[0]};
    size_t cells, head = 0, tail = 0;
    uint32_t *queue;

    for (size_t i = 1; i < set->vertex_count; i++)
        box = box3_union(box, (struct box3){set->vertices[i], set->vertices[i]});
    f->step = r / 3;
    f->low = vec3_sub(box.min, (struct vec3){3 * r, 3 * r, 3 * r});
    f->size[0] = (uint32_t)((box.max.x - f->low.x + 3 * r) / f->step) + 1;
    f->size[1] = (uint32_t)((box.max.y - f->low.y + 3 * r) / f->step) + 1;
    f->size[2] = (uint32_t)((box.max.z - f->low.z + 3 * r) / f->step) + 1;
    cells = (size_t)f->size[0] * f->size[1] * f->size[2];
    f->seen = calloc(cells, 1);
    queue = malloc(cells * sizeof *queue);
    queue[tail++] = 0;
    f->seen[0] = 1;
    while (head < tail) {
        uint32_t index = queue[head++];
        uint32_t at[3] = {index % f->size[0], index / f->size[0] % f->size[1],
                          index / f->size[0] / f->size[1]};
        const uint32_t strides[3] = {1, f->size[0], f->size[0] * f->size[1]};
        struct vec3 p = {at[0] * f->step, at[1] * f->step, at[2] * f->step};

        if (nearest_centre(shell, vec3_add(f->low, p)) < 1.9 * r)
            continue;
        f->seen[index] = 2;
        for (int i = 0; i < 6; i++) {
            uint32_t axis = (uint32_t)i / 2, limit = i % 2 ? f->size[axis] - 1 : 0;
            uint32_t next = i % 2 ? index + strides[axis] : index - strides[axis];

            if (at[axis] == limit || f->seen[next])
                continue;
            f->seen[next] = 1;
            queue[tail++] = next;
        }
    }
    free(queue);
}

/* No free place that is joined to the outside lies in the box from..to; some lie outside of it. */
static void expect_tight(struct polygon_set set, struct vec3 from, struct vec3 to)
{
    struct shell shell = must_build(&set, 0.1);
    size_t inside = 0, outside = 0;
    struct flood f;

    flood_fill(&set, &shell, &f);
    for (uint32_t z = 0; z < f.size[2]; z++)
        for (uint32_t y = 0; y < f.size[1]; y++)
            for (uint32_t x = 0; x < f.size[0]; x++) {
                struct vec3 p = vec3_add(f.low, (struct vec3){x * f.step, y * f.step, z * f.step});
                bool is_free = f.seen[x + f.size[0] * ((size_t)y + (size_t)f.size[1] * z)] == 2;
                bool is_in = p.x > from.x && p.y > from.y && p.z > from.z && p.x < to.x &&
                             p.y < to.y && p.z < to.z;

                inside += is_in;
                outside += !is_in && is_free;
                if (is_in && is_free)
                    fail_msg("a granule gets to (%g, %g, %g)", p.x, p.y, p.z);
            }
    assert_true(inside > 100 && outside > 1000);
    free(f.seen);
    shell_free(&shell);
    polygon_set_free(&set);
}

/* Also through a wall that is a fifth of a sphere thick, around a hollow. */
static void no_granule_gets_through(void **state)
{
    (void)state;
    expect_tight(solid_box((struct vec3){0, 0, 0}, (struct vec3){0.9, 0.8, 0.7}),
                 (struct vec3){0, 0, 0}, (struct vec3){0.9, 0.8, 0.7});
    expect_tight(solid_join(solid_sphere(0.6, 8), solid_sphere(0.58, 8), true),
                 (struct vec3){-0.33, -0.33, -0.33}, (struct vec3){0.33, 0.33, 0.33});
}

/* The wall of the bowl is a tenth of a sphere thick; S's grid would have it by chance. */
static void a_thin_lip_is_not_lost(void **state)
{
    struct polygon_set bowl = solid_bowl(0.5, 0.005, 16);
    struct shell shell = must_build(&bowl, 0.05);
    int at_lip = 0;

    (void)state;
    for (int i = 0; i < 360; i++) { /* the rim is at z = 0 */
        struct vec3 at = {0.4975 * cos(i * PI / 180), 0.4975 * sin(i * PI / 180), 0};

        assert_true(nearest_centre(&shell, at) < SHELL_REACH * 0.05);
    }
    for (uint32_t i = 0; i < shell.particles; i++)
        at_lip += sphere_at(&shell, i).z > -0.06;
    assert_true(at_lip >= 2 * PI * 0.5 / (2 * SHELL_REACH * 0.05));
    assert_near(shell.protrusion_m, 0.0475, 0.0025);
    shell_free(&shell);
    polygon_set_free(&bowl);
}

static void the_objects_of_the_shared_set(void **state)
{
    static const struct {
        const char *path;
        double least_m;
    } objects[] = {{"objects/cube.obj", 0.1},
                   {"objects/sphere.obj", 0.1},
                   {"objects/RockA.obj", 0.2},
                   {"objects/spot_low_resolution.obj", 0.1}};
    unsigned found = 0;

    (void)state;
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        size_t length;
        uint8_t *bytes = test_data_read(objects[i].path, &length);
        struct polygon_set set = {0};
        struct err err;

        if (!bytes)
            continue;
        found++;
        print_message("# %s\n", objects[i].path);
        assert_int_equal(polygon_decode(POLYGON_OBJ, bytes, length, NULL, NULL, &set, &err),
                         ERR_OK);
        expect_shells(set, fmax(objects[i].least_m, long_form(0, 2) * 0.1), 20 + i);
        free(bytes);
    }
    if (found == 0)
        skip();
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void expect_refused(struct polygon_set set, double radius_m, enum err_code code,
                           const char *part)
{
    struct shell shell;
    struct err err;

    assert_int_equal(shell_build(&set, radius_m, 1, &shell, &err), code);
    if (!strstr(err.msg, part))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    assert_true(shell.particles == 0 && shell.offsets_m == NULL);
    polygon_set_free(&set);
}

static void what_is_no_solid_is_refused(void **state)
{
    const struct vec3 zero = {0, 0, 0}, one = {1, 1, 1};
    struct polygon_set open = solid_box(zero, one), inwards = solid_box(zero, one);

    (void)state;
    open.polygon_count--;
    expect_refused(open, 0.1, ERR_UNPROCESSABLE, "not closed");
    for (size_t i = 0; i < 12; i++) {
        uint32_t swap = inwards.corners[3 * i];

        inwards.corners[3 * i] = inwards.corners[3 * i + 1];
        inwards.corners[3 * i + 1] = swap;
    }
    expect_refused(inwards, 0.1, ERR_UNPROCESSABLE, "inwards");
    expect_refused(solid_join(solid_box(zero, one),
                              solid_box((struct vec3){0.5, 0.3, 0.4}, (struct vec3){2, 2, 2}),
                              false),
                   0.1, ERR_UNPROCESSABLE, "intersects itself: triangles");
    expect_refused(solid_join(solid_box(zero, one),
                              solid_box((struct vec3){0.3, 0.3, 0.4}, (struct vec3){0.7, 0.7, 0.8}),
                              false),
                   0.1, ERR_UNPROCESSABLE, "intersects itself: around");
    expect_refused(solid_box(zero, (struct vec3){100, 100, 100}), 0.05, ERR_TOO_LARGE, "spheres");
    expect_refused(solid_box(zero, (struct vec3){1e150, 1e150, 1e-50}), 0.05, ERR_UNPROCESSABLE,
                   "from its origin");
    expect_refused(solid_box((struct vec3){2e6, 0, 0}, (struct vec3){2e6 + 1, 1, 1}), 0.05,
                   ERR_UNPROCESSABLE, "2e+06 m from its origin");
    expect_refused(solid_box(zero, (struct vec3){1e6, 1e-4, 1e-4}), 0.05, ERR_TOO_LARGE, "samples");
}

/*
 * A thread of a kilometre, in make test of 200 m, has a small surface and a vast box; it is bounded
 * all the same.
 */
static void a_long_thread_is_bounded(void **state)
{
    struct random random = {4};
    const double length_m = long_form(1000, 200);
    struct polygon_set set = solid_box((struct vec3){0, 0, 0}, (struct vec3){length_m, 0.01, 0.01});
    struct shell shell;

    (void)state;
    solid_turn(&set, &random, (struct vec3){0, 0, 0});
    shell = must_build(&set, 0.2);
    assert_true(shell.particles > length_m / (2 * SHELL_REACH * 0.2) &&
                shell.particles < 5 * length_m);
    expect_covered(&set, &shell, 4);
    shell_free(&shell);
    polygon_set_free(&set);
}

static void threads_change_no_bit(void **state)
{
    struct polygon_set set = solid_torus(0.5, 0.2, 10);
    struct shell one, many;
    struct err err;

    (void)state;
    assert_int_equal(shell_build(&set, 0.08, 1, &one, &err), ERR_OK);
    assert_int_equal(shell_build(&set, 0.08, 4, &many, &err), ERR_OK);
    assert_int_equal(one.particles, many.particles);
    assert_memory_equal(one.offsets_m, many.offsets_m, one.particles * sizeof *one.offsets_m);
    shell_free(&one);
    shell_free(&many);
    polygon_set_free(&set);
}

/* Also where samples are equally far: what another release or another server made is the same. */
static void shells_have_the_golden_bits(void **state)
{
    struct polygon_set set = solid_box((struct vec3){0, 0, 0}, (struct vec3){1, 0.7, 0.5});
    struct shell shell = must_build(&set, 0.1);

    (void)state;
    assert_int_equal(fnv1a(FNV1A_EMPTY, shell.offsets_m, shell.particles * sizeof *shell.offsets_m),
                     0x1ff92850a353d4e3);
    shell_free(&shell);
    polygon_set_free(&set);
}

/* ---- use and keeping ------------------------------------------------------------------------- */

static void a_shape_has_the_mass_and_a_pose_its_centre(void **state)
{
    struct polygon_set set = solid_box((struct vec3){0, 0, 0}, (struct vec3){2, 1, 0.5});
    struct shell shell = must_build(&set, 0.1);
    struct sand_shape shape = shell_shape(&shell, 12);
    const double quarter[4] = {0, 0, sqrt(0.5), sqrt(0.5)}; /* x to y */
    struct vec3 origin;

    (void)state;
    assert_int_equal(shape.particles, shell.particles);
    assert_ptr_equal(shape.offsets_m, shell.offsets_m);
    assert_near((double)shape.mass_kg, 12, 0);
    assert_near((double)shape.inertia[0][0], 1.25, 1e-6);
    assert_near((double)shape.inertia[1][1], 4.25, 1e-6);
    assert_near((double)shape.inertia[2][2], 5, 1e-6);
    origin = shell_origin_of(&shell, (struct vec3){9.5, 21, 30.25}, quarter);
    assert_near(origin.x, 10, 1e-12);
    assert_near(origin.y, 20, 1e-12);
    assert_near(origin.z, 30, 1e-12);
    shell_free(&shell);
    polygon_set_free(&set);
}

static void the_kept_form_comes_back(void **state)
{
    struct polygon_set set = solid_bowl(0.4, 0.05, 4);
    struct shell shell = must_build(&set, 0.1), back;
    uint8_t hash[SHELL_HASH_BYTES] = {1, 2, 3};
    struct raster_bytes bytes;
    struct err err;

    (void)state;
    assert_int_equal(shell_encode(&shell, hash, &bytes, &err), ERR_OK);
    assert_int_equal(shell_decode(bytes.at, bytes.length, hash, 0.1, &back, &err), ERR_OK);
    assert_memory_equal(back.offsets_m, shell.offsets_m, shell.particles * sizeof *back.offsets_m);
    free(back.offsets_m);
    back.offsets_m = shell.offsets_m;
    assert_memory_equal(&back.radius_m, &shell.radius_m, offsetof(struct shell, particles));
    assert_int_equal(back.particles, shell.particles);

    assert_int_equal(shell_decode(bytes.at, bytes.length, hash, 0.2, &back, &err), ERR_DAMAGED);
    hash[0]++;
    assert_int_equal(shell_decode(bytes.at, bytes.length, hash, 0.1, &back, &err), ERR_DAMAGED);
    hash[0]--;
    for (size_t i = 0; i < bytes.length; i++) {
        uint8_t *cut = malloc(i ? i : 1);

        memcpy(cut, bytes.at, i);
        assert_int_equal(shell_decode(cut, i, hash, 0.1, &back, &err), ERR_DAMAGED);
        free(cut);
        bytes.at[i] ^= (uint8_t)(1 << i % 8);
        if (shell_decode(bytes.at, bytes.length, hash, 0.1, &back, &err) != ERR_DAMAGED)
            fail_msg("a flip at byte %zu is not found", i);
        assert_null(back.offsets_m);
        bytes.at[i] ^= (uint8_t)(1 << i % 8);
    }
    free(bytes.at);
    shell_free(&shell);
    polygon_set_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_has_its_inertia),
        cmocka_unit_test(a_corner_has_its_products_of_inertia),
        cmocka_unit_test(round_solids_come_near_theirs),
        cmocka_unit_test(a_turned_body_has_the_turned_tensor),
        cmocka_unit_test(the_surface_is_covered_at_every_scale),
        cmocka_unit_test(sharp_edges_are_covered),
        cmocka_unit_test(no_granule_gets_through),
        cmocka_unit_test(a_thin_lip_is_not_lost),
        cmocka_unit_test(the_objects_of_the_shared_set),
        cmocka_unit_test(what_is_no_solid_is_refused),
        cmocka_unit_test(a_long_thread_is_bounded),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(shells_have_the_golden_bits),
        cmocka_unit_test(a_shape_has_the_mass_and_a_pose_its_centre),
        cmocka_unit_test(the_kept_form_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
