/*
 * Hexagons and squares of the plan.
 *
 * A point belongs to the tile with the nearest centre. Rounding of axial coordinates finds that
 * tile or, near a border, a neighbour of it; comparisons with the six neighbours correct that,
 * exactly. With u = 2q + r the centre is side/2 · (√3 u, 3 r), and four times the difference of
 * two squared distances, over the side, is
 *
 *     a + b √3,  a = side·K - 12 dr·y,  b = -4 du·x,  K = 3 du (u0 + u1) + 9 dr (r0 + r1).
 *
 * b is one double, a is a sum of doubles. Where their rounded sum leaves the sign open, it is that
 * of a² - 3 b², by expansions (Shewchuk, Adaptive Precision Floating-Point Arithmetic, 1997). √3 is
 * irrational, so two centres are equally near only where a = b = 0: at x = 0.
 */
#include "terrain/plan_tile.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#define SQRT_3 1.7320508075688772

/* Doubles that sum up to a number, in order of growing magnitude, without overlap. */
enum { TERMS_MAX = 128 };
struct expansion {
    size_t count;
    double terms[TERMS_MAX];
};

static void add(struct expansion *sum, double value)
{
    for (size_t i = 0; i < sum->count; i++) {
        double term = sum->terms[i], total = value + term, part = total - value;

        sum->terms[i] = (value - (total - part)) + (term - part);
        value = total;
    }
    sum->terms[sum->count++] = value;
}

static void add_product(struct expansion *sum, double a, double b)
{
    double product = a * b;

    add(sum, fma(a, b, -product));
    add(sum, product);
}

static int sign_of(double value)
{
    return (value > 0) - (value < 0);
}

static int sign(const struct expansion *sum)
{
    for (size_t i = sum->count; i-- > 0;)
        if (sum->terms[i] != 0)
            return sign_of(sum->terms[i]);
    return 0;
}

/* Of side·k - 12 dr·y + b √3. */
static int exact_sign(double side, int64_t k, double dr, double y, double b)
{
    struct expansion a = {0}, difference = {0};
    double high = (double)(k / 4294967296) * 4294967296.0;
    int sign_a, sign_b = sign_of(b);

    add_product(&a, -12 * dr, y);
    add_product(&a, side, (double)(k % 4294967296));
    add_product(&a, side, high);
    sign_a = sign(&a);
    if (sign_a * sign_b >= 0)
        return sign_a ? sign_a : sign_b;
    for (size_t i = 0; i < a.count; i++)
        for (size_t j = 0; j < a.count; j++)
            add_product(&difference, a.terms[i], a.terms[j]);
    for (int i = 0; i < 3; i++)
        add_product(&difference, -b, b);
    return sign(&difference) * sign_a;
}

/* Is hexagon (q1, r1), a neighbour, the one of the two that holds the point? */
static bool holds(double side, double x, double y, const int64_t now[2], const int64_t next[2])
{
    int64_t u0 = 2 * now[0] + now[1], u1 = 2 * next[0] + next[1];
    int64_t du = u1 - u0, dr = next[1] - now[1];
    int64_t k = 3 * du * (u0 + u1) + 9 * dr * (now[1] + next[1]);
    double b = -4 * (double)du * x, a = side * (double)k - 12 * (double)dr * y;
    double about = a + b * SQRT_3;
    double error = 8 * DBL_EPSILON * (side * fabs((double)k) + 12 * fabs(y) + 2 * fabs(b));
    int nearer = fabs(about) > error ? sign_of(about) : exact_sign(side, k, (double)dr, y, b);

    return nearer < 0 || (nearer == 0 && (dr > 0 || (dr == 0 && next[0] > now[0])));
}

static void hexagon_at(double side, double x, double y, int64_t at[2])
{
    static const int steps[6][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1}};
    double r = y / (1.5 * side), q = x / (SQRT_3 * side) - r / 2, s = -q - r;
    double round_q = floor(q + 0.5), round_r = floor(r + 0.5), round_s = floor(s + 0.5);
    double off_q = fabs(round_q - q), off_r = fabs(round_r - r), off_s = fabs(round_s - s);

    if (off_q > off_r && off_q > off_s)
        round_q = -round_r - round_s;
    else if (off_r > off_s)
        round_r = -round_q - round_s;
    at[0] = (int64_t)round_q;
    at[1] = (int64_t)round_r;
    for (int i = 0; i < 6; i++) {
        int64_t next[2] = {at[0] + steps[i][0], at[1] + steps[i][1]};

        if (!holds(side, x, y, at, next))
            continue;
        at[0] = next[0];
        at[1] = next[1];
        i = -1;
    }
}

/* floor(v / side), exactly. */
static int64_t square_at(double side, double v)
{
    double index = floor(v / side);

    if (fma(index, side, -v) > 0)
        index -= 1;
    else if (fma(index + 1, side, -v) <= 0)
        index += 1;
    return (int64_t)index;
}

bool plan_tile_at(enum plan_tile_shape shape, double side_m, double x, double y,
                  struct plan_tile *out)
{
    if (!(fabs(x) < PLAN_TILE_INDEX_MAX * side_m && fabs(y) < PLAN_TILE_INDEX_MAX * side_m))
        return false;
    if (shape == PLAN_TILE_SQUARE) {
        out->index[0] = square_at(side_m, x);
        out->index[1] = square_at(side_m, y);
        out->center[0] = side_m * ((double)out->index[0] + 0.5);
        out->center[1] = side_m * ((double)out->index[1] + 0.5);
        return true;
    }
    hexagon_at(side_m, x, y, out->index);
    out->center[0] = side_m * (SQRT_3 / 2 * (double)(2 * out->index[0] + out->index[1]));
    out->center[1] = side_m * (1.5 * (double)out->index[1]);
    return true;
}
