/*
 * A ball of triangles: RINGS circles of latitude with SIDES vertices each, and two poles.
 *
 * It goes the way of every model from there (shell.h), so a ball needs no solver of its own.
 */
#include "sand/body/ball.h"

#include "base/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { SIDES = 16, RINGS = 7 };

struct text {
    char *at;
    size_t length;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text->at + text->length, BALL_OBJ_BYTES - text->length, format, arguments);
    va_end(arguments);
    CHECK(length >= 0 && text->length + (size_t)length < BALL_OBJ_BYTES);
    text->length += (size_t)length;
}

/* The vertex of a ring, from 1; rings 0 and RINGS + 1 are the poles. */
static int vertex(int ring, int side)
{
    return ring == 0 ? 1 : ring > RINGS ? 2 + RINGS * SIDES : 2 + (ring - 1) * SIDES + side % SIDES;
}

size_t ball_obj(double radius_m, char out[BALL_OBJ_BYTES])
{
    struct text text = {out, 0};

    add(&text, "v 0 0 %.9g\n", -radius_m);
    for (int ring = 1; ring <= RINGS; ring++)
        for (int side = 0; side < SIDES; side++) {
            const double latitude = M_PI * (ring / (RINGS + 1.0) - 0.5);
            const double longitude = 2 * M_PI * side / SIDES;

            add(&text, "v %.9g %.9g %.9g\n", radius_m * cos(latitude) * cos(longitude),
                radius_m * cos(latitude) * sin(longitude), radius_m * sin(latitude));
        }
    add(&text, "v 0 0 %.9g\n", radius_m);
    for (int ring = 0; ring <= RINGS; ring++)
        for (int side = 0; side < SIDES; side++) {
            if (ring < RINGS)
                add(&text, "f %d %d %d\n", vertex(ring, side), vertex(ring + 1, side + 1),
                    vertex(ring + 1, side));
            if (ring > 0)
                add(&text, "f %d %d %d\n", vertex(ring, side), vertex(ring, side + 1),
                    vertex(ring + 1, side + 1));
        }
    return text.length;
}
