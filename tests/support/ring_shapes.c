#include "ring_shapes.h"

#include <math.h>

#define TURN 6.283185307179586

const char *const ring_shape_names[RING_SHAPES] = {"star",   "spiral",  "comb",
                                                   "zigzag", "keyhole", "pinched"};

static struct vec2 polar(double radius, double angle)
{
    return (struct vec2){radius * cos(angle), radius * sin(angle)};
}

static struct vec2 turned(struct vec2 p, double angle)
{
    return (struct vec2){p.x * cos(angle) - p.y * sin(angle), p.x * sin(angle) + p.y * cos(angle)};
}

static void star(struct random *random, uint32_t count, struct vec2 *points)
{
    for (uint32_t i = 0; i < count; i++)
        points[i] = polar(random_in(random, 0.2, 1), TURN * i / count);
}

/* Outward on one side, back on the other. */
static void spiral(struct random *random, uint32_t count, struct vec2 *points)
{
    uint32_t half = count / 2;
    double turns = fmin(5, half / 16.0);

    for (uint32_t i = 0; i < half; i++) {
        double way = (double)i / (half - 1), angle = turns * TURN * way;
        double radius = 0.1 + 0.8 * way, width = random_in(random, 0.01, 0.05);

        points[count - 1 - i] = polar(radius - width, angle);
        points[i] = polar(radius + width, angle);
    }
}

static void comb(struct random *random, uint32_t count, struct vec2 *points)
{
    double angle = random_in(random, 0, TURN);

    for (uint32_t i = 0; i + 2 < count; i++) {
        double x = 0.7 - 1.4 * i / (count - 3);

        points[i + 2] = (struct vec2){x, i % 2 ? random_in(random, 0.3, 0.7) : -0.6};
    }
    points[0] = (struct vec2){-0.7, -0.7};
    points[1] = (struct vec2){0.7, -0.7};
    for (uint32_t i = 0; i < count; i++)
        points[i] = turned(points[i], angle);
}

static void zigzag(struct random *random, uint32_t count, struct vec2 *points)
{
    uint32_t half = count / 2;
    double angle = random_in(random, 0, TURN), width = 0.3 / half;

    for (uint32_t i = 0; i < half; i++) {
        double x = 1.2 * i / (half - 1) - 0.6, y = i % 2 ? 0.6 : -0.6;

        points[i] = turned((struct vec2){x, y - width}, angle);
        points[count - 1 - i] = turned((struct vec2){x, y + width}, angle);
    }
}

static void keyhole(struct random *random, uint32_t count, struct vec2 *points)
{
    uint32_t outer = count / 2 - 1, inner = count - 2 - outer;
    double angle = random_in(random, 0, TURN);

    for (uint32_t i = 0; i <= outer; i++)
        points[i] = polar(i % outer ? random_in(random, 0.7, 1) : 0.9, angle + TURN * i / outer);
    for (uint32_t i = 0; i <= inner; i++)
        points[outer + 1 + i] =
            polar(i % inner ? random_in(random, 0.2, 0.5) : 0.4, angle - TURN * i / inner);
    points[outer] = points[0];
    points[outer + 1 + inner] = points[outer + 1];
}

/* Wedges around the origin, where every fourth corner lies. */
static void pinched(struct random *random, uint32_t count, struct vec2 *points)
{
    double angle = random_in(random, 0, TURN);

    for (uint32_t i = 0; i < count; i++) {
        if (i % 4 == 0 && count - i > 3)
            points[i] = (struct vec2){0, 0};
        else
            points[i] = polar(random_in(random, 0.3, 1), angle + TURN * i / (count + 1));
    }
}

void ring_shape(enum ring_shape shape, struct random *random, uint32_t count, struct vec2 *points)
{
    static void (*const make[])(struct random *, uint32_t,
                                struct vec2 *) = {star, spiral, comb, zigzag, keyhole, pinched};

    make[shape](random, count, points);
}
