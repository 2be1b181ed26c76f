/*
 * Trigonometric and hyperbolic functions of our own.
 *
 * Sine and cosine: x less the nearest multiple of pi / 2, which is held in three parts, so that the
 * rest r + more has some 20 bits more than a double; then Taylor's series on |r| <= pi / 4, with
 * the large terms added last. Arc tangent: the smaller of the two numbers by the larger is near
 * k / 8, and atan(a) = atan(k / 8) + atan((a - k / 8) / (1 + a k / 8)), whose argument is at most
 * 1 / 16 (S. Gal and B. Bachelis, An accurate elementary mathematical library, 1991: a table and a
 * short series). Hyperbolic functions, which only maps of the Earth need: the series of exp, and
 * Newton's method for their inverses.
 *
 * Invariant: no function whose result may be rounded in two ways; rint, ldexp and remainder are
 * exact. Not compiled with contracted floating point.
 */
#include "terrain/trig.h"

#include <math.h>
#include <stdint.h>

/* pi / 2 in parts: a multiple of the first two below 2^20 is exact. */
#define QUARTER_1 0x1.921fb544p+0
#define QUARTER_2 0x1.0b4611a6p-34
#define QUARTER_3 0x1.3198a2e037073p-69
#define TURN 0x1.921fb54442d18p+2
#define QUARTERS_MAX 0x1p20

/* ---- sine and cosine ------------------------------------------------------------------------- */

/* x = quarters * pi / 2 + r + more, |r| <= pi / 4. */
struct reduced {
    double r, more;
    unsigned quarters; /* mod 4 */
};

static struct reduced reduce(double x)
{
    double n = rint(x * (2 / M_PI));

    if (fabs(n) > QUARTERS_MAX) {
        x = remainder(x, TURN);
        n = rint(x * (2 / M_PI));
    }
    double high = x - n * QUARTER_1, low = n * QUARTER_2, r = high - low;
    double more = (high - r) - low - n * QUARTER_3, sum = r + more;

    return (struct reduced){sum, (r - sum) + more, (unsigned)(int64_t)n & 3};
}

static double sine_of(double r, double more)
{
    double z = r * r;
    double series =
        1.0 / 120 -
        z * (1.0 / 5040 -
             z * (1.0 / 362880 - z * (1.0 / 39916800 -
                                      z * (1.0 / 6227020800 - z * (1.0 / 1307674368000 -
                                                                   z * (1.0 / 355687428096000))))));

    /* sin(r + more) = sin r + more cos r */
    return r + (z * r * (z * series - 1.0 / 6) + more * (1 - z / 2));
}

static double cosine_of(double r, double more)
{
    double z = r * r, half = z / 2, whole = 1 - half;
    double series =
        1.0 / 24 -
        z * (1.0 / 720 -
             z * (1.0 / 40320 -
                  z * (1.0 / 3628800 - z * (1.0 / 479001600 - z * (1.0 / 87178291200 -
                                                                   z * (1.0 / 20922789888000))))));

    return whole + ((1 - whole) - half + (z * z * series - r * more));
}

double trig_sin(double x)
{
    if (!isfinite(x))
        return NAN;
    struct reduced at = reduce(x);
    double size = at.quarters & 1 ? cosine_of(at.r, at.more) : sine_of(at.r, at.more);

    return x == 0 ? x : at.quarters & 2 ? -size : size;
}

double trig_cos(double x)
{
    if (!isfinite(x))
        return NAN;
    struct reduced at = reduce(x);
    double size = at.quarters & 1 ? sine_of(at.r, at.more) : cosine_of(at.r, at.more);

    return at.quarters == 1 || at.quarters == 2 ? -size : size;
}

double trig_tan(double x)
{
    return x == 0 ? x : trig_sin(x) / trig_cos(x);
}

/* ---- arc tangent ----------------------------------------------------------------------------- */

#define PI_HIGH 0x1.921fb54442d18p+1
#define PI_LOW 0x1.1a62633145c07p-53

/* atan(k / 8) as a sum of two doubles */
static const double arcs[9][2] = {
    {0, 0},
    {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
    {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
    {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
    {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
    {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
    {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
    {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
    {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
};

/* atan(small / large) = *high + *low, of 0 <= small <= large, large > 0, both finite. */
static void arc_of(double small, double large, double *high, double *low)
{
    double u = small / large, knot = 0.125 * rint(8 * u);
    const double *arc = arcs[(int)(8 * knot)];

    if (knot > 0) { /* a float's products with the knot are exact */
        int exponent;
        float most;

        frexp(large, &exponent);
        small = ldexp(small, -exponent);
        large = ldexp(large, -exponent);
        most = (float)large;
        u = (small - knot * (double)most - knot * (large - (double)most)) / (large + knot * small);
    }
    double z = u * u;
    double series =
        1.0 / 3 - z * (1.0 / 5 - z * (1.0 / 7 - z * (1.0 / 9 - z * (1.0 / 11 - z * (1.0 / 13)))));

    *high = arc[0] + u; /* u is the smaller one, or the first is 0 */
    *low = (arc[0] - *high) + u + (arc[1] - z * u * series);
}

/* *high + *low = whole + rest less that, of a whole that is the larger one. */
static void less_from(double whole, double rest, double *high, double *low)
{
    double difference = whole - *high;

    *low = (whole - difference) - *high + (rest - *low);
    *high = difference;
}

double trig_atan2(double y, double x)
{
    double across = fabs(y), along = fabs(x), high = 0, low = 0;

    if (isnan(x) || isnan(y))
        return NAN;
    if (isinf(across) || isinf(along)) {
        across = isinf(across);
        along = isinf(along);
    }
    if (across > along) {
        arc_of(along, across, &high, &low);
        less_from(PI_HIGH / 2, PI_LOW / 2, &high, &low);
    } else if (across > 0) {
        arc_of(across, along, &high, &low);
    }
    if (signbit(x))
        less_from(PI_HIGH, PI_LOW, &high, &low);
    return copysign(high + low, y);
}

/* ---- hyperbolic ------------------------------------------------------------------------------ */

#define LN2_HIGH 0x1.62e42feep-1 /* 31 bits: a multiple below 2^20 is exact */
#define LN2_LOW 0x1.a39ef35793c76p-33

enum { EXP_TERMS = 14, SINH_TERMS = 9, NEWTON_STEPS = 5 };

/* 1 / k!; tables and not quotients, of which each is as long as three steps of a sum. */
static const double inverse_factorial[2 * SINH_TERMS + 2] = {
    1.0,
    1.0,
    1.0 / 2,
    1.0 / 6,
    1.0 / 24,
    1.0 / 120,
    1.0 / 720,
    1.0 / 5040,
    1.0 / 40320,
    1.0 / 362880,
    1.0 / 3628800,
    1.0 / 39916800,
    1.0 / 479001600,
    1.0 / 6227020800,
    1.0 / 87178291200,
    1.0 / 1307674368000,
    1.0 / 20922789888000,
    1.0 / 355687428096000,
    1.0 / 6402373705728000,
    1.0 / 121645100408832000,
};

static double exp_of(double x)
{
    double n = rint(x / M_LN2), r = (x - n * LN2_HIGH) - n * LN2_LOW, sum = 0;

    if (!(fabs(x) < 800))
        return isnan(x) ? x : x < 0 ? 0 : INFINITY;
    for (int k = EXP_TERMS; k > 0; k--)
        sum = (sum + inverse_factorial[k]) * r; /* exp(r) - 1 in the end */
    return ldexp(1 + sum, (int)n);
}

double trig_sinh(double x)
{
    double power, z = x * x, sum = 0;

    if (fabs(x) > 1) {
        power = exp_of(fabs(x));
        return copysign(power / 2 - 0.5 / power, x);
    }
    for (int k = SINH_TERMS; k > 0; k--)
        sum = (sum + inverse_factorial[2 * k + 1]) * z;
    return x + x * sum;
}

double trig_cosh(double x)
{
    double power = exp_of(fabs(x));

    return power / 2 + 0.5 / power;
}

double trig_asinh(double x)
{
    double size = fabs(x), y = size;
    int exponent;

    if (!(size > 0) || isinf(x))
        return x;
    if (size > 1) { /* about log(2 x), the logarithm of the mantissa by its chord */
        double mantissa = frexp(2 * size, &exponent);

        y = (exponent + 2 * mantissa - 2) * M_LN2;
    }
    for (int i = 0; i < NEWTON_STEPS; i++) {
        double sinh = trig_sinh(y);
        double cosh = sinh < 0x1p30 ? sqrt(1 + sinh * sinh) : sinh;

        y -= (sinh - size) / cosh;
    }
    return copysign(y, x);
}

double trig_atanh(double x)
{
    return trig_asinh(x / sqrt((1 - x) * (1 + x)));
}
