/*
 * General collision detection that contact is measured against: bench_contact_peers.c. A peer is
 * linked only where its package is installed; its symbol is weak, so an absent one is at address
 * NULL. C and C++ include this.
 */
#ifndef KOTA_TESTS_PEERS_H
#define KOTA_TESTS_PEERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed, and kept as long as the scene. */
struct peer_triangles {
    float *vertices; /* [vertex_count][3] */
    size_t vertex_count;
    uint32_t *corners; /* [triangle_count][3] */
    size_t triangle_count;
    float z_min; /* of the vertices */
};

struct peer {
    const char *(*name)(void); /* with the version */
    /* NULL when it fails. */
    void *(*create)(const struct peer_triangles *triangles);
    /*
     * For each of points[count][3] the z of the first triangle straight below; NAN without one.
     * One call for all, so that a peer pays for nothing but its own query.
     */
    void (*floors)(const void *scene, const float *points, size_t count, float *heights);
    /*
     * For each of origins[count][3] whether any triangle is on the ray along direction[3], by one
     * any-hit ray each. NULL where the peer has none.
     */
    void (*shadows)(const void *scene, const float *origins, size_t count, const float *direction,
                    uint8_t *is_hit);
    /*
     * For each of origins[count][3] the t of the first triangle along directions[count][3];
     * INFINITY without one. NULL where the peer has none.
     */
    void (*rays)(const void *scene, const float *origins, const float *directions, size_t count,
                 float *ts);
    /* The same for any triangle before t_max[count]: 0, INFINITY without one. */
    void (*any)(const void *scene, const float *origins, const float *directions,
                const float *t_max, size_t count, float *ts);
    /*
     * For each of ways[count][6], from and to, the fraction at which a sphere of that radius first
     * touches a triangle; 1 without one. NULL where the peer has none.
     */
    void (*spheres)(const void *scene, const float *ways, float radius, size_t count,
                    float *fractions);
    void (*destroy)(void *scene);
};

extern const struct peer peer_bullet __attribute__((weak));
extern const struct peer peer_embree __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
