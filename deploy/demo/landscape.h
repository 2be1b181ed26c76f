/*
 * The demo world's three landscapes.
 */
#ifndef KOTA_DEMO_LANDSCAPE_H
#define KOTA_DEMO_LANDSCAPE_H

#include "terrain/field/heightfield.h"
#include "terrain/vec.h"
#include "deploy/demo/grid.h"

enum { LANDSCAPE_COUNT = 3, LANDSCAPE_SIZE_MIN = 128, LANDSCAPE_SIZE_MAX = 8192 };

/*
 * Makes a ground: `size` samples along x, LANDSCAPE_SIZE_MIN..LANDSCAPE_SIZE_MAX, over a fixed
 * extent in metres. out is created. ERR_NO_MEMORY. Same size and seed: same bits, whatever
 * `threads`.
 */
typedef enum err_code (*landscape_maker)(uint32_t size, uint32_t seed, uint32_t threads,
                                         struct grid *out, struct err *err);

/* alpine relief with river valleys, 4096 m square, 0..900 m */
enum err_code highlands_make(uint32_t size, uint32_t seed, uint32_t threads, struct grid *out,
                             struct err *err);

/* an archipelago, 3072 m square, sea floor down to about -60 m */
enum err_code islands_make(uint32_t size, uint32_t seed, uint32_t threads, struct grid *out,
                           struct err *err);

/* canyons, dunes and a quarry of NaN, 4096 × 3072 m */
enum err_code mesa_make(uint32_t size, uint32_t seed, uint32_t threads, struct grid *out,
                        struct err *err);

struct landscape {
    const char *id, *title;
    landscape_maker make;
    enum triangulation triangulation;
    struct vec3 translation; /* of its frame in the world, metres */
    const char *geo;         /* its frame's origin on the Earth, JSON; NULL: nowhere */
};

extern const struct landscape landscapes[LANDSCAPE_COUNT];

#endif
