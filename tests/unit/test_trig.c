/*
 * Our own sine, cosine, tangent and arc tangent beside libm's of long double, and their bits.
 */
#include "terrain/trig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "support/random.h"

enum { PLACES = 200000 };

/* Units in the last place of `got` that it is away from the exact value. */
static double units_away(double got, long double exact)
{
    double near = (double)exact, unit = nextafter(fabs(near), INFINITY) - fabs(near);

    return (double)fabsl((long double)got - exact) / unit;
}

static void check(const char *name, double x, double got, long double exact, double units)
{
    if (!(units_away(got, exact) <= units))
        fail_msg("%s(%.17g) = %.17g, not %.17Lg: %.2f units", name, x, got, exact,
                 units_away(got, exact));
}

static void they_are_right_to_the_last_digit(void **state)
{
    static const double reach[] = {1e-300, 1e-8, 0.1, 1, 4, 100, 1.6e6};
    struct random random = {11};

    (void)state;
    for (int i = 0; i < PLACES; i++) {
        double most = reach[i % 7], x = random_in(&random, -most, most);

        check("sin", x, trig_sin(x), sinl(x), 0.8);
        check("cos", x, trig_cos(x), cosl(x), 0.8);
        check("tan", x, trig_tan(x), tanl(x), 2);
    }
    for (int quarters = -1000; quarters <= 1000; quarters++) {
        double x = quarters * (M_PI / 2);

        check("sin", x, trig_sin(x), sinl(x), 0.8);
        check("cos", x, trig_cos(x), cosl(x), 0.8);
    }
}

static void arcs_are_right_to_the_last_digit(void **state)
{
    static const double reach[] = {1e-308, 1e-8, 1, 1e6, 1e300};
    struct random random = {12};

    (void)state;
    for (int i = 0; i < PLACES; i++) {
        double y = random_in(&random, -1, 1) * reach[i % 5];
        double x = random_in(&random, -1, 1) * reach[i / 5 % 5];

        check("atan2", y, trig_atan2(y, x), atan2l(y, x), 1);
        check("atan2", x, trig_atan2(x, x), atan2l(x, x), 1);
    }
}

static void hyperbolic_functions_are_right(void **state)
{
    static const double reach[] = {1e-300, 1e-8, 0.5, 2, 36};
    struct random random = {14};

    (void)state;
    for (int i = 0; i < PLACES; i++) {
        double most = reach[i % 5], x = random_in(&random, -most, most);
        double share = random_in(&random, -1, 1) * (i % 2 ? 1 : 1e-9);

        check("sinh", x, trig_sinh(x), sinhl(x), 2);
        check("cosh", x, trig_cosh(x), coshl(x), 2);
        check("asinh", x, trig_asinh(x), asinhl(x), 2);
        check("asinh", x, trig_asinh(sinh(x)), asinhl(sinh(x)), 2);
        check("atanh", share, trig_atanh(share), atanhl(share), 3);
    }
    assert_true(trig_asinh(INFINITY) == INFINITY && signbit(trig_asinh(-0.0)));
    check("asinh", 1e300, trig_asinh(1e300), asinhl(1e300L), 2);
    assert_true(trig_sinh(-1000) == -INFINITY && trig_cosh(1000) == INFINITY);
}

static void zeros_and_infinities_are_those_of_c(void **state)
{
    static const double ends[] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, 5e-324, -1.7e308, NAN};
    size_t count = sizeof ends / sizeof *ends;

    (void)state;
    for (size_t i = 0; i < count * count; i++) {
        double y = ends[i / count], x = ends[i % count];
        double got = trig_atan2(y, x), wanted = atan2(y, x);

        if (isnan(wanted) ? !isnan(got) : got != wanted || signbit(got) != signbit(wanted))
            fail_msg("atan2(%g, %g) = %.17g, not %.17g", y, x, got, wanted);
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(isfinite(ends[i]) == isfinite(trig_sin(ends[i])));
        assert_true(isfinite(ends[i]) == isfinite(trig_cos(ends[i])));
    }
    assert_true(signbit(trig_sin(-0.0)) && signbit(trig_tan(-0.0)));
    assert_true(trig_atan2(1, 1) == M_PI_4 && trig_atan2(1, 0) == M_PI_2);
    assert_true(fabs(trig_sin(1e300)) <= 1);
}

/* Must not change: copies of the ground in other processes compute the same. */
static void their_bits_are_the_same_everywhere(void **state)
{
    struct random random = {13};
    uint64_t hash = 14695981039346656037u;

    (void)state;
    for (int i = 0; i < PLACES; i++) {
        double x = random_in(&random, -10, 10), y = random_in(&random, -10, 10);
        double values[] = {trig_sin(x), trig_cos(x), trig_tan(x), trig_atan2(y, x)};

        for (int k = 0; k < 4; k++) {
            uint64_t bits;

            memcpy(&bits, &values[k], sizeof bits);
            hash = (hash ^ bits) * 1099511628211u;
        }
    }
    if (hash != 0x92607964cb971427)
        fail_msg("the hash is %#llx", (unsigned long long)hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_right_to_the_last_digit),
        cmocka_unit_test(arcs_are_right_to_the_last_digit),
        cmocka_unit_test(hyperbolic_functions_are_right),
        cmocka_unit_test(zeros_and_infinities_are_those_of_c),
        cmocka_unit_test(their_bits_are_the_same_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
