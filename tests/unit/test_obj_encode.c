/*
 * Surfaces as OBJ: read again they are the same vertices, bit for bit, and the same triangles.
 */
#include "formats/polygon/obj_encode.h"

#include "formats/polygon/obj.h"
#include "support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct text {
    char *at;
    size_t length, size, room; /* room: what is taken before the sink says no; 0: all */
};

static bool take(void *to, const char *bytes, size_t length)
{
    struct text *text = to;

    if (text->room && text->length + length > text->room)
        return false;
    if (text->length + length > text->size) {
        text->size = 2 * (text->length + length);
        text->at = realloc(text->at, text->size);
        assert_non_null(text->at);
    }
    memcpy(text->at + text->length, bytes, length);
    text->length += length;
    return true;
}

static const float NONE = __builtin_nanf("");

static struct heightfield *field_make(uint32_t cols, uint32_t rows, enum triangulation split,
                                      const float *samples)
{
    const struct heightfield_spec spec = {cols, rows, -0.1, 1e6 + 1. / 3, 0.7, 1e-3, split, 0};
    struct err err;
    struct heightfield *field = heightfield_create(&spec, samples, &err);

    assert_non_null(field);
    return field;
}

static struct polygon_set read_back(const struct text *text)
{
    struct polygon_set set = {0};
    struct err err = {.msg = ""};

    if (obj_decode((const uint8_t *)text->at, text->length, &polygon_limits_default, &set, &err))
        fail_msg("%s\n%.*s", err.msg, (int)(text->length < 500 ? text->length : 500), text->at);
    return set;
}

static void cells_are_split_as_the_locale_says(void **state)
{
    /* 3×2 samples; the lower right one is a hole. Vertices count over the row below, then above. */
    const float samples[] = {0, 1, NONE, 3, 4, 5};
    static const struct {
        enum triangulation split;
        const char *faces;
    } cases[] = {
        {TRIANGULATION_ANTI, "f 1 2 3\nf 2 4 3\n"},
        {TRIANGULATION_MAIN, "f 1 2 4\nf 1 4 3\nf 2 5 4\n"},
        {TRIANGULATION_ALTERNATING, "f 1 2 3\nf 2 4 3\nf 2 5 4\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct heightfield *field = field_make(3, 2, cases[i].split, samples);
        struct text text = {0};
        const struct obj_sink sink = {&text, take};
        const char *faces;

        assert_true(obj_encode_field(field, &sink));
        take(&text, "", 1);
        faces = strstr(text.at, "f ");
        assert_non_null(faces);
        assert_string_equal(faces, cases[i].faces);
        assert_true(text.length <= obj_field_bytes_max(field) + 1);
        free(text.at);
        heightfield_unref(field);
    }
}

static void every_triangle_and_vertex_comes_back(void **state)
{
    enum { COLS = 300, ROWS = 41 };
    static float samples[COLS * ROWS];
    struct random random = {77};

    (void)state;
    for (int i = 0; i < COLS * ROWS; i++)
        samples[i] = random_below(&random, 9) == 0 ? NONE : (float)random_in(&random, -1e3, 1e3);
    for (int split = 0; split <= TRIANGULATION_ALTERNATING; split++) {
        struct heightfield *field = field_make(COLS, ROWS, (enum triangulation)split, samples);
        const struct heightfield_spec *spec = heightfield_spec(field);
        struct text text = {0};
        const struct obj_sink sink = {&text, take};
        struct polygon_set set;
        size_t n = 0;

        assert_true(obj_encode_field(field, &sink));
        set = read_back(&text);
        for (uint32_t r = 0; r < ROWS; r++)
            for (uint32_t c = 0; c < COLS; c++) {
                struct vec3 want = {spec->origin_x_m + c * spec->spacing_x_m,
                                    spec->origin_y_m + r * spec->spacing_y_m,
                                    (double)samples[r * COLS + c]};

                if (isnan(want.z))
                    continue;
                assert_true(n < set.vertex_count);
                assert_memory_equal(&set.vertices[n++], &want, sizeof want);
            }
        assert_int_equal(n, set.vertex_count);
        n = 0;
        for (uint32_t i = 0; i < (COLS - 1) * (ROWS - 1) * 2; i++) {
            uint32_t c = i / 2 % (COLS - 1), r = i / 2 / (COLS - 1);
            const float *at = &samples[r * COLS + c];
            bool is_main = split == TRIANGULATION_MAIN ||
                           (split == TRIANGULATION_ALTERNATING && (c + r) % 2 == 1);
            bool is_first = i % 2 == 0;
            /* the two ends of the hypotenuse, and the corner of this triangle */
            float a = is_main ? at[0] : at[1], b = is_main ? at[COLS + 1] : at[COLS];
            float k = is_main ? (is_first ? at[1] : at[COLS]) : (is_first ? at[0] : at[COLS + 1]);
            double sum = 0;

            if (isnan(a) || isnan(b) || isnan(k))
                continue;
            assert_true(n < set.polygon_count && set.starts[n + 1] - set.starts[n] == 3);
            for (int j = 0; j < 3; j++)
                sum += set.vertices[set.corners[set.starts[n] + (uint32_t)j]].z;
            assert_true(fabs(sum - ((double)a + (double)b + (double)k)) < 1e-9);
            n++;
        }
        assert_int_equal(n, set.polygon_count);
        polygon_set_free(&set);
        free(text.at);
        heightfield_unref(field);
    }
}

static void triangles_face_up(void **state)
{
    const float samples[] = {0, 5, -3, 2};

    (void)state;
    for (int split = 0; split <= TRIANGULATION_MAIN; split++) {
        struct heightfield *field = field_make(2, 2, (enum triangulation)split, samples);
        struct text text = {0};
        const struct obj_sink sink = {&text, take};
        struct polygon_set set;

        assert_true(obj_encode_field(field, &sink));
        set = read_back(&text);
        assert_int_equal(set.polygon_count, 2);
        for (size_t i = 0; i < 2; i++) {
            const struct vec3 *a = &set.vertices[set.corners[3 * i]];
            const struct vec3 *b = &set.vertices[set.corners[3 * i + 1]];
            const struct vec3 *c = &set.vertices[set.corners[3 * i + 2]];

            assert_true((b->x - a->x) * (c->y - a->y) - (b->y - a->y) * (c->x - a->x) > 0);
        }
        polygon_set_free(&set);
        free(text.at);
        heightfield_unref(field);
    }
}

static void polygons_keep_order_and_bits(void **state)
{
    const struct vec3 vertices[] = {
        {0.1, -0.0, 1e-300}, {1e300, 2. / 3, 3}, {4, 5, 6}, {7, 8, 9.000000000000002}, {1, 1, 1}};
    const uint32_t corners[] = {4, 2, 0, 0, 1, 2, 3, 3, 3, 3}, starts[] = {0, 3, 7, 10};
    struct polygon_set set = {.vertices = (struct vec3 *)vertices,
                              .vertex_count = 5,
                              .corners = (uint32_t *)corners,
                              .starts = (uint32_t *)starts,
                              .polygon_count = 3};
    struct text text = {0};
    const struct obj_sink sink = {&text, take};
    struct polygon_set got;

    (void)state;
    assert_true(obj_encode_polygons(&set, &sink));
    assert_true(text.length <= obj_polygons_bytes_max(&set));
    got = read_back(&text);
    assert_int_equal(got.polygon_count, 3);
    assert_memory_equal(got.vertices, vertices, sizeof vertices);
    assert_memory_equal(got.corners, corners, sizeof corners);
    assert_memory_equal(got.starts, starts, sizeof starts);
    polygon_set_free(&got);
    free(text.at);
}

static void a_sink_that_refuses_ends_it(void **state)
{
    static float samples[400 * 400];
    struct heightfield *field = field_make(400, 400, TRIANGULATION_ANTI, samples);
    struct text text = {.room = 200000};
    const struct obj_sink sink = {&text, take};

    (void)state;
    assert_false(obj_encode_field(field, &sink));
    assert_true(text.length <= 200000);
    free(text.at);
    heightfield_unref(field);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_split_as_the_locale_says),
        cmocka_unit_test(every_triangle_and_vertex_comes_back),
        cmocka_unit_test(triangles_face_up),
        cmocka_unit_test(polygons_keep_order_and_bits),
        cmocka_unit_test(a_sink_that_refuses_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
