/*
 * General collision detection that heights and rays over heightfields are measured against. A peer
 * is linked only where its package is installed; its symbol is weak, so an absent one is at address
 * NULL. C and C++ include this.
 */
#ifndef KOTA_TESTS_FIELD_PEERS_H
#define KOTA_TESTS_FIELD_PEERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Square, without holes, cells split `anti`; sample (0, 0) at x = y = 0. Kept as long as a scene.
 */
struct field_map {
    const float *heights_m; /* [side][side], row 0 at the smallest y */
    uint32_t side;          /* samples */
    float spacing_m;
    float min_m, max_m; /* of the heights */
};

struct field_ray {
    float origin[3], direction[3]; /* unit length */
    float t_max;                   /* finite */
};

struct field_peer {
    const char *(*name)(void); /* with the version */
    /* NULL when it fails. */
    void *(*create)(const struct field_map *map);
    /* t[count] of the first hits, INFINITY where there is none. One call for all. */
    void (*rays)(const void *scene, const struct field_ray *rays, size_t count, float *t);
    /* The z of the surface over each of points[count][2], NAN where there is none. */
    void (*heights)(const void *scene, const float *points, size_t count, float *z);
    void (*destroy)(void *scene);
};

extern const struct field_peer field_peer_bullet __attribute__((weak));
extern const struct field_peer field_peer_embree __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
