/*
 * Bullet as a peer of heightfields: btHeightfieldTerrainShape with its accelerator (min/max of
 * blocks of 16×16 cells), and performRaycast. The shape stands about its own centre, so rays are
 * moved there; and with Y up, as the accelerator of 3.24 loses rays with Z up (one of six picks).
 * C++, because Bullet has no C interface; built for the benchmark alone.
 */
#include "tests/bench/field_peers.h"

#include <BulletCollision/CollisionShapes/btHeightfieldTerrainShape.h>
#include <BulletCollision/NarrowPhaseCollision/btRaycastCallback.h>

#include <cmath>
#include <cstdio>

namespace
{

struct Scene {
    btHeightfieldTerrainShape shape;
    btVector3 centre;
    btScalar top, bottom;

    explicit Scene(const struct field_map *map)
        : shape(static_cast<int>(map->side), static_cast<int>(map->side), map->heights_m,
                map->min_m, map->max_m, 1, false),
          centre(map->spacing_m * btScalar(map->side - 1) / 2, (map->min_m + map->max_m) / 2,
                 map->spacing_m * btScalar(map->side - 1) / 2),
          top(map->max_m + 1), bottom(map->min_m - 1)
    {
        shape.setLocalScaling(btVector3(map->spacing_m, 1, map->spacing_m));
        shape.buildAccelerator();
    }
};

struct Nearest : btTriangleRaycastCallback {
    Nearest(const btVector3 &from, const btVector3 &to) : btTriangleRaycastCallback(from, to)
    {
    }

    btScalar reportHit(const btVector3 &, btScalar fraction, int, int) override
    {
        return m_hitFraction = fraction;
    }
};

const char *bullet_name()
{
    static char name[32];

    std::snprintf(name, sizeof name, "Bullet %d.%d", btGetVersion() / 100, btGetVersion() % 100);
    return name;
}

void *bullet_create(const struct field_map *map)
{
    return new Scene(map);
}

/* The part of the segment up to the first hit; 1: none. */
btScalar fraction_of(const Scene *scene, const btVector3 &from, const btVector3 &to)
{
    btVector3 a = from - scene->centre, b = to - scene->centre;
    Nearest nearest(a, b);

    scene->shape.performRaycast(&nearest, a, b);
    return nearest.m_hitFraction;
}

void bullet_rays(const void *self, const struct field_ray *rays, size_t count, float *t)
{
    const Scene *scene = static_cast<const Scene *>(self);

    for (size_t i = 0; i < count; i++) {
        const struct field_ray *r = &rays[i];
        btVector3 from(r->origin[0], r->origin[2], r->origin[1]);
        btVector3 way(r->direction[0], r->direction[2], r->direction[1]);
        btScalar fraction = fraction_of(scene, from, from + way * r->t_max);

        t[i] = fraction < 1 ? fraction * r->t_max : INFINITY;
    }
}

void bullet_heights(const void *self, const float *points, size_t count, float *z)
{
    const Scene *scene = static_cast<const Scene *>(self);

    for (size_t i = 0; i < count; i++) {
        const float *p = points + 2 * i;
        btVector3 from(p[0], scene->top, p[1]), to(p[0], scene->bottom, p[1]);
        btScalar fraction = fraction_of(scene, from, to);

        z[i] = fraction < 1 ? from.lerp(to, fraction).y() : NAN;
    }
}

void bullet_destroy(void *self)
{
    delete static_cast<Scene *>(self);
}

} // namespace

const struct field_peer field_peer_bullet = {bullet_name, bullet_create, bullet_rays,
                                             bullet_heights, bullet_destroy};
