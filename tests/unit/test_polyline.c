/*
 * Lists of places: the rims of latitude and longitude, in pairs and in encoded polylines.
 */
#include "formats/polyline.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { UNITS_A_DEGREE = 100000, PLACES = 4 };

struct place_units {
    int64_t lat, lng; /* 1e-5 degrees */
};

/* As Google describes it, with nothing of the reader's. */
static void encode_number(int64_t by, char **to)
{
    uint64_t bits = by < 0 ? ~((uint64_t)by << 1) : (uint64_t)by << 1;

    for (; bits >= 32; bits >>= 5)
        *(*to)++ = (char)((32 | (bits & 31)) + 63);
    *(*to)++ = (char)(bits + 63);
}

static void encode(const struct place_units *places, size_t count, char text[128])
{
    struct place_units last = {0, 0};

    memcpy(text, "enc:", 4);
    text += 4;
    for (size_t i = 0; i < count; i++) {
        encode_number(places[i].lat - last.lat, &text);
        encode_number(places[i].lng - last.lng, &text);
        last = places[i];
    }
    *text = '\0';
}

static void write_pairs(const struct place_units *places, size_t count, char text[128])
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, 128 - used, "%s%.5f,%.5f", i ? "|" : "",
                                 (double)places[i].lat / UNITS_A_DEGREE,
                                 (double)places[i].lng / UNITS_A_DEGREE);
}

typedef void writer(const struct place_units *places, size_t count, char text[128]);
static writer *const writers[] = {encode, write_pairs};

static enum err_code read_places(const char *text, struct geo_place *places, size_t *count,
                                 struct err *err)
{
    assert_true(places_max(text, strlen(text)) <= PLACES);
    err->code = ERR_OK;
    return places_read(text, strlen(text), places, count, err);
}

static void the_rims_themselves_are_places(void **state)
{
    static const struct place_units rims[PLACES] = {
        {9000000, 18000000}, {-9000000, -18000000}, {9000000, -18000000}, {0, 18000000}};
    struct geo_place places[PLACES];
    char text[128];
    struct err err;
    size_t count;

    (void)state;
    for (size_t w = 0; w < 2; w++) {
        writers[w](rims, PLACES, text);
        if (read_places(text, places, &count, &err))
            fail_msg("%s: %s", text, err.msg);
        assert_int_equal(count, PLACES);
        for (size_t i = 0; i < PLACES; i++) {
            assert_true(places[i].lat == (double)rims[i].lat / UNITS_A_DEGREE);
            assert_true(places[i].lng == (double)rims[i].lng / UNITS_A_DEGREE);
        }
    }
}

/* A hundred-thousandth of a degree beyond, at each location of the list, also when the next one is
 * back on the Earth. */
static void beyond_a_rim_is_refused_where_it_is(void **state)
{
    static const struct {
        struct place_units place;
        double limit;
        const char *says;
    } cases[] = {
        {{9000001, 0}, 90, "the latitude 90.00001 is outside -90..90"},
        {{-9000001, 0}, 90, "the latitude -90.00001 is outside -90..90"},
        {{0, 18000001}, 180, "the longitude 180.00001 is outside -180..180"},
        {{0, -18000001}, 180, "the longitude -180.00001 is outside -180..180"},
    };
    struct geo_place places[PLACES];
    char text[128], number[32];
    struct err err;
    size_t count;

    (void)state;
    for (size_t w = 0; w < 2; w++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (size_t at = 0; at < PLACES; at++) {
                struct place_units list[PLACES] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};

                list[at] = cases[i].place;
                writers[w](list, PLACES, text);
                assert_int_equal(read_places(text, places, &count, &err), ERR_BAD_INPUT);
                snprintf(number, sizeof number, "location %zu:", at + 1);
                if (!strstr(err.msg, number) || !strstr(err.msg, cases[i].says))
                    fail_msg("%s: \"%s\", not \"%s %s\"", text, err.msg, number, cases[i].says);
                assert_true(err.has_limit && err.limit == cases[i].limit);
                assert_int_equal(count, at);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rims_themselves_are_places),
        cmocka_unit_test(beyond_a_rim_is_refused_where_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
