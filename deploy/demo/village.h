/*
 * The demo world's small locales made of polygons: `village` and `garden`, side by side, and
 * `planet` (planet.h).
 *
 * The first two are made in the village's frame, x 0..200 (village) and 200..320 (garden), y
 * 0..160, and written in their own. The garden's frame is turned by half a turn about Z: village
 * (200, y, z) is garden (120, 160 - y, z + 4). Where what is: docs/demo-world.md.
 */
#ifndef KOTA_DEMO_VILLAGE_H
#define KOTA_DEMO_VILLAGE_H

#include "deploy/demo/polygons.h"

enum { VILLAGE_LOCALE_COUNT = 3, VILLAGE_LAYERS_MAX = 4 };

struct village_layer {
    const char *id, *role;
    void (*make)(struct polygons *out); /* in the village's frame, or the planet's */
};

struct village_locale {
    const char *id, *title;
    struct vec3 translation; /* of its frame in the world, metres */
    bool turned;             /* by half a turn about Z: quaternion [0, 0, 1, 0] */
    const char *frame;       /* of its layers */
    bool open_sky;
    uint32_t layer_count;
    struct village_layer layers[VILLAGE_LAYERS_MAX];
};

extern const struct village_locale village_locales[VILLAGE_LOCALE_COUNT];

/*
 * One layer as an OBJ file in its locale's frame. text: out, malloc, length bytes. The same bytes
 * on any machine. ERR_NO_MEMORY.
 */
enum err_code village_layer_obj(const struct village_locale *locale,
                                const struct village_layer *layer, char **text, size_t *length,
                                struct err *err);

/* The manifest locale.json as kotad --world reads it, as snprintf. */
int village_manifest(char *text, size_t size, const struct village_locale *locale);

#endif
