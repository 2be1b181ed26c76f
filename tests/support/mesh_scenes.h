/*
 * Ground for benchmarks that nobody tuned for: triangles by a seed, 13,000 to 10,000,000 of them.
 */
#ifndef KOTA_TESTS_MESH_SCENES_H
#define KOTA_TESTS_MESH_SCENES_H

#include "support/soup.h"

enum mesh_scene {
    MESH_SCENE_HILLS, /* an irregular surface with holes */
    MESH_SCENE_TOWN,  /* stacked floors, ramps, upright walls */
    MESH_SCENE_TRACK, /* a closed ribbon, with banks and a bridge, and nothing beside it */
    MESH_SCENE_SOUP,  /* triangles that share no vertex, in no order */
    MESH_SCENES
};

extern const char *const mesh_scene_names[MESH_SCENES];

/* About `triangles` of them; the vertices are float32 numbers. */
void mesh_scene_make(enum mesh_scene scene, size_t triangles, uint64_t seed, struct soup *soup);

#endif
