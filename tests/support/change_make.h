/*
 * Changes of a world, as tests ask for them.
 */
#ifndef KOTA_TESTS_CHANGE_MAKE_H
#define KOTA_TESTS_CHANGE_MAKE_H

#include "world/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static inline struct world_change change_of(enum world_change_kind kind, const char *locale,
                                            const char *layer)
{
    struct world_change change = {.kind = kind, .manifest = locale_manifest_default};

    strcpy(change.locale_id, locale);
    strcpy(change.layer_id, layer);
    return change;
}

/* Two polygons under a ceiling's role: corners of both, starts[3] as in struct polygon_set. */
static inline struct world_change change_of_mesh(const char *locale, const char *layer,
                                                 const struct vec3 *vertices, size_t vertex_count,
                                                 const uint32_t *corners, const uint32_t starts[3],
                                                 struct mesh_space space)
{
    struct world_change change = change_of(WORLD_PUT_LAYER, locale, layer);
    struct polygon_set set;
    struct err err = {.code = ERR_OK};

    assert_int_equal(polygon_set_allocate(vertex_count, 2, starts[2], &set, &err), ERR_OK);
    memcpy(set.vertices, vertices, vertex_count * sizeof *vertices);
    memcpy(set.corners, corners, starts[2] * sizeof *corners);
    memcpy(set.starts, starts, 3 * sizeof *starts);
    change.layer = layer_create_mesh_in(layer, LAYER_CEILING, &set, space, (struct vec3){0, 0, -1},
                                        NULL, NULL, &err);
    if (!change.layer)
        fail_msg("%s", err.msg);
    return change;
}

#endif
