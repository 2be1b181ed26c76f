/*
 * Images of meshes: what is written is what is asked, anywhere in memory; damaged ones are refused.
 */
#include "terrain/mesh/mesh_data.h"

#include "support/mesh_oracle.h"
#include "base/content_hash.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

static struct mesh *random_mesh(uint64_t seed, double size)
{
    struct random random = {seed};
    struct soup soup = {0};
    struct vec3 up = oracle_direction(&random);
    struct mesh_options options = {.gravity = vec3_scale(up, -1), .max_polygons = 4};
    struct mesh_import import;
    struct err err;

    oracle_soup(&random, up, size, &soup);
    struct polygon_soup view = soup_view(&soup);
    struct mesh *mesh = mesh_create(&view, &options, &import, &err);

    if (mesh == NULL)
        fail_msg("mesh_create: %s", err.msg);
    soup_free(&soup);
    return mesh;
}

/* A small one: three polygons, one of them a wall. */
static struct mesh *small_mesh(void)
{
    struct soup soup = {0};
    struct mesh_options options = {.gravity = {0, 0, -1}, .max_polygons = 2};
    struct mesh_import import;
    struct err err;

    soup_add(&soup, (struct vec3[]){{0, 0, 0}, {4, 0, 1}, {0, 4, 0}}, 3);
    soup_add(&soup, (struct vec3[]){{4, 0, 1}, {4, 4, 1}, {0, 4, 0}}, 3);
    soup_add(&soup, (struct vec3[]){{0, 2, 0}, {4, 2, 0}, {4, 2, 3}}, 3);
    struct polygon_soup view = soup_view(&soup);
    struct mesh *mesh = mesh_create(&view, &options, &import, &err);

    if (mesh == NULL)
        fail_msg("mesh_create: %s", err.msg);
    soup_free(&soup);
    return mesh;
}

static void expect_same_answers(const struct mesh *a, const struct mesh *b, uint64_t seed)
{
    struct random random = {seed};
    struct box3 box = mesh_bounds(a);

    for (int i = 0; i < 2000; i++) {
        struct vec3 p = {random_in(&random, box.min.x, box.max.x),
                         random_in(&random, box.min.y, box.max.y),
                         random_in(&random, box.min.z, box.max.z)};
        struct ray ray = {p, oracle_direction(&random), INFINITY};
        struct mesh_contact floor[2];
        struct mesh_hit hit[2];
        bool has_floor = mesh_floor(a, p, 0, &floor[0]);
        bool is_hit = mesh_ray(a, &ray, RAY_CLOSEST, &hit[0]);

        if (mesh_floor(b, p, 0, &floor[1]) != has_floor ||
            (has_floor &&
             (floor[0].distance_m != floor[1].distance_m || floor[0].polygon != floor[1].polygon)))
            fail_msg("seed %llu: floors differ", (unsigned long long)seed);
        if (mesh_ray(b, &ray, RAY_CLOSEST, &hit[1]) != is_hit ||
            (is_hit && (hit[0].t != hit[1].t || hit[0].polygon != hit[1].polygon)))
            fail_msg("seed %llu: hits differ", (unsigned long long)seed);
    }
}

static void release_count(void *context)
{
    ++*(int *)context;
}

static void an_image_at_another_address_gives_the_same_bits(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct mesh *mesh = random_mesh(seed, 50);
        size_t length;
        const void *image = mesh_image(mesh, &length);
        uint8_t *unaligned = malloc(length + 1);
        void *aligned = aligned_alloc(MESH_ALIGNMENT, length);
        int released = 0;
        struct err err;

        assert_non_null(unaligned);
        assert_non_null(aligned);
        memcpy(unaligned + 1, image, length);
        memcpy(aligned, image, length);
        struct mesh *copied = mesh_open(unaligned + 1, length, NULL, NULL, &err);
        struct mesh *borrowed = mesh_open(aligned, length, release_count, &released, &err);

        if (copied == NULL || borrowed == NULL)
            fail_msg("mesh_open: %s", err.msg);
        free(unaligned);
        if (!mesh_validate(copied, &err) || !mesh_validate(borrowed, &err))
            fail_msg("mesh_validate: %s", err.msg);
        expect_same_answers(mesh, copied, seed);
        expect_same_answers(mesh, borrowed, seed);
        mesh_unref(mesh);
        mesh_unref(copied);
        assert_ptr_equal(mesh_ref(borrowed), borrowed);
        mesh_unref(borrowed);
        assert_int_equal(released, 0);
        mesh_unref(borrowed);
        assert_int_equal(released, 1);
        free(aligned);
    }
}

/* A file named by its content, mapped read-only: what is on the disk is what is asked. */
static void an_image_in_a_file_is_mapped_and_asked_as_it_is(void **state)
{
    char folder[] = "/tmp/kota-mesh-XXXXXX", path[128];
    struct mesh *mesh = random_mesh(9, 100);
    int released = 0, fd;
    size_t length, at;
    const void *image = mesh_image(mesh, &length);
    struct err err;

    (void)state;
    assert_non_null(mkdtemp(folder));
    at = (size_t)snprintf(path, sizeof path, "%s/", folder);
    for (int i = 0; i < 32; i++)
        at += (size_t)snprintf(path + at, sizeof path - at, "%02x", mesh_content(mesh)[i]);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, image, length), length);
    void *mapped = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);

    assert_true(mapped != MAP_FAILED);
    struct mesh *opened = mesh_open(mapped, length, release_count, &released, &err);

    if (opened == NULL)
        fail_msg("mesh_open: %s", err.msg);
    assert_ptr_equal(mesh_image(opened, &length), mapped);
    assert_memory_equal(mesh_content(opened), mesh_content(mesh), 32);
    expect_same_answers(mesh, opened, 9);
    mesh_unref(opened);
    assert_int_equal(released, 1);
    munmap(mapped, length);
    close(fd);
    unlink(path);
    rmdir(folder);
    mesh_unref(mesh);
}

static void the_same_polygons_make_the_same_image(void **state)
{
    struct mesh *a = random_mesh(5, 50), *b = random_mesh(5, 50), *other = random_mesh(6, 50);
    size_t a_length, b_length;
    const void *a_image = mesh_image(a, &a_length), *b_image = mesh_image(b, &b_length);

    (void)state;
    assert_int_equal(a_length, b_length);
    assert_memory_equal(a_image, b_image, a_length);
    assert_memory_equal(mesh_content(a), mesh_content(b), 32);
    assert_memory_not_equal(mesh_content(a), mesh_content(other), 32);
    mesh_unref(a);
    mesh_unref(b);
    mesh_unref(other);
}

static void every_truncated_length_is_refused(void **state)
{
    struct mesh *mesh = small_mesh();
    size_t length;
    const void *image = mesh_image(mesh, &length);

    (void)state;
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *exact = malloc(cut > 0 ? cut : 1);
        struct err err = {0};

        assert_non_null(exact);
        memcpy(exact, image, cut);
        if (mesh_open(exact, cut, NULL, NULL, &err) != NULL)
            fail_msg("the first %zu of %zu bytes pass for a whole image", cut, length);
        if (err.code != ERR_BAD_INPUT || !err.msg[0])
            fail_msg("%zu bytes: code %d \"%s\"", cut, (int)err.code, err.msg);
        free(exact);
    }
    mesh_unref(mesh);
}

static void every_flipped_bit_is_refused(void **state)
{
    struct mesh *mesh = small_mesh();
    size_t length;
    const void *image = mesh_image(mesh, &length);
    uint8_t *exact = malloc(length);

    (void)state;
    assert_non_null(exact);
    memcpy(exact, image, length);
    for (size_t bit = 0; bit < 8 * length; bit++) {
        struct err err;

        exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (mesh_open(exact, length, NULL, NULL, &err) != NULL)
            fail_msg("bit %zu of byte %zu does not matter", bit % 8, bit / 8);
        exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(exact);
    mesh_unref(mesh);
}

/*
 * Whoever makes a file can make its hashes, too: flip bits, seal again. What is still taken must be
 * answered without leaving the image (AddressSanitizer looks on) and must end.
 */
static void images_sealed_over_damage_are_refused_or_harmless(void **state)
{
    struct mesh *mesh = small_mesh();
    struct random random = {17};
    size_t length;
    const void *image = mesh_image(mesh, &length);
    unsigned refused = 0, taken = 0;

    (void)state;
    for (size_t bit = 0; bit < 8 * length; bit++) {
        uint8_t *exact = malloc(length);
        struct err err;
        struct mesh *opened;

        assert_non_null(exact);
        memcpy(exact, image, length);
        exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
        struct mesh_header *header = (struct mesh_header *)(void *)exact;

        header->bytes = length; /* else the seal itself would leave the block */
        mesh_image_seal(exact);
        opened = mesh_open(exact, length, NULL, NULL, &err);
        free(exact);
        if (opened == NULL) {
            refused++;
            continue;
        }
        taken++;
        for (int i = 0; i < 4; i++) {
            struct vec3 p = {random_in(&random, -1, 5), random_in(&random, -1, 5),
                             random_in(&random, -1, 5)};
            struct ray ray = {p, oracle_direction(&random), INFINITY};
            struct mesh_contact c;
            struct mesh_hit hit;

            mesh_floor(opened, p, INFINITY, &c);
            mesh_ceiling(opened, p, -INFINITY, 0, &c);
            mesh_ray(opened, &ray, RAY_CLOSEST, &hit);
        }
        mesh_validate(opened, &err);
        mesh_unref(opened);
    }
    assert_true(refused > 0 && taken > 0);
    mesh_unref(mesh);
}

static void validate_notices_what_the_hash_does_not(void **state)
{
    struct mesh *mesh = small_mesh();
    size_t length;
    const struct mesh_header *h = mesh_image(mesh, &length);
    const size_t places[] = {
        h->offset[MESH_POLYGONS] + 3,
        h->offset[MESH_POLYGONS] + 14,
        h->offset[MESH_POLYGONS] + 39,
        h->offset[MESH_VERTICES] + 30,
    };
    struct err err;

    (void)state;
    assert_true(mesh_validate(mesh, &err));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint8_t *image = malloc(length);

        assert_non_null(image);
        memcpy(image, h, length);
        image[places[i]] ^= 1;
        mesh_image_seal(image);
        struct mesh *opened = mesh_open(image, length, NULL, NULL, &err);

        if (opened != NULL && mesh_validate(opened, &err))
            fail_msg("damage %zu at byte %zu is not noticed", i, places[i]);
        mesh_unref(opened);
        free(image);
    }
    mesh_unref(mesh);
}

/* Of tests/fuzz/corpus/mesh_image, in an aligned block; the caller frees it. */
static void *seed_read(const char *name, size_t *length)
{
    char path[128];
    void *image = aligned_alloc(MESH_ALIGNMENT, 1 << 16);

    snprintf(path, sizeof path, "tests/fuzz/corpus/mesh_image/%s", name);
    FILE *file = fopen(path, "rb");

    assert_non_null(image);
    assert_non_null(file);
    *length = fread(image, 1, 1 << 16, file);
    (void)fclose(file);
    return image;
}

static struct mesh *seed_open(const char *name)
{
    struct err err;
    size_t length;
    void *image = seed_read(name, &length);
    struct mesh *mesh = mesh_open(image, length, NULL, NULL, &err);

    if (mesh == NULL || !mesh_validate(mesh, &err))
        fail_msg("%s: %s", name, err.msg);
    free(image);
    return mesh;
}

/* The same polygons, as builds of those versions wrote them. */
static void images_of_older_versions_give_the_same_bits(void **state)
{
    static const char *const names[] = {"mixed", "apart", "shared", "turned"};
    static const char *const first[] = {"seed_wall", "seed_overlap", "seed_tilted",
                                        "seed_triangle"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char old[64], now[64];

        snprintf(old, sizeof old, "seed_%s_2", names[i]);
        snprintf(now, sizeof now, "seed_%s_3", names[i]);
        struct mesh *a = seed_open(old), *b = seed_open(now);
        size_t a_length, b_length;
        const void *a_image = mesh_image(a, &a_length), *b_image = mesh_image(b, &b_length);

        assert_int_equal(a_length, b_length);
        assert_memory_equal(a_image, b_image, a_length);
        expect_same_answers(a, b, i);
        mesh_unref(a);
        mesh_unref(b);
    }
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        mesh_unref(seed_open(first[i]));
}

static void every_flipped_bit_of_an_older_one_is_refused(void **state)
{
    static const char *const names[] = {"seed_wall", "seed_mixed_2"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length;
        uint8_t *image = seed_read(names[i], &length);
        struct err err;

        for (size_t bit = 0; bit < 8 * length; bit++) {
            image[bit / 8] ^= (uint8_t)(1u << bit % 8);
            struct mesh *mesh = mesh_open(image, length, NULL, NULL, &err);

            if (mesh != NULL)
                fail_msg("%s: bit %zu of byte %zu is not noticed", names[i], bit % 8, bit / 8);
            image[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(image);
    }
}

/* Vertices are float32 where all are; indices only where they say more than the order. */
static void an_image_has_no_more_than_it_needs(void **state)
{
    static const struct {
        const char *name;
        bool is_narrow, has_corners, has_firsts, has_sources;
    } cases[] = {
        {"seed_mixed_3", false, true, true, true},
        {"seed_apart_3", true, false, false, false},
        {"seed_shared_3", true, true, false, false},
        {"seed_turned_3", false, true, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mesh *mesh = seed_open(cases[i].name);

        assert_int_equal(mesh->points.narrow != NULL, cases[i].is_narrow);
        assert_int_equal(mesh->corners != NULL, cases[i].has_corners);
        assert_int_equal(mesh->firsts != NULL, cases[i].has_firsts);
        assert_int_equal(mesh->sources != NULL, cases[i].has_sources);
        mesh_unref(mesh);
    }
}

static void the_content_hash_is_blake2b_256(void **state)
{
    static const struct {
        size_t length;
        uint8_t fill;
        const char *hex;
    } cases[] = {
        {0, 0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
        {1, 97, "8928aae63c84d87ea098564d1e03ad813f107add474e56aedd286349c0c03ea4"},
        {127, 7, "49149511630effba193dcce8e3b84cc473bfdab33692ce9e61500e7b24e4415d"},
        {128, 7, "332f1f712b03a6a6f6c28db7d96c62f170744119ab0f831b9e0d80f800e3aad7"},
        {129, 7, "a04de7247309966b2b2afc367838071ea523f897e6a405286f2b5627032a8dea"},
        {256, 255, "60fbef4f6e56bfe286fc89ead86213e80a02272d255491e6b7cea4ee94fc1e69"},
        {400, 1, "4e931eb59894074764d0edfed6ae3cb0d736b4f4091de093392a0c4e4886840f"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[400], hash[32];
        char hex[65];

        memset(bytes, cases[i].fill, sizeof bytes);
        content_hash(bytes, cases[i].length, hash);
        for (int k = 0; k < 32; k++)
            snprintf(hex + 2 * k, 3, "%02x", hash[k]);
        assert_string_equal(hex, cases[i].hex);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_at_another_address_gives_the_same_bits),
        cmocka_unit_test(an_image_in_a_file_is_mapped_and_asked_as_it_is),
        cmocka_unit_test(the_same_polygons_make_the_same_image),
        cmocka_unit_test(every_truncated_length_is_refused),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(images_sealed_over_damage_are_refused_or_harmless),
        cmocka_unit_test(validate_notices_what_the_hash_does_not),
        cmocka_unit_test(images_of_older_versions_give_the_same_bits),
        cmocka_unit_test(every_flipped_bit_of_an_older_one_is_refused),
        cmocka_unit_test(an_image_has_no_more_than_it_needs),
        cmocka_unit_test(the_content_hash_is_blake2b_256),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
