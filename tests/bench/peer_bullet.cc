/*
 * Bullet as a peer of contact: a btBvhTriangleMeshShape with the quantized tree that its manual
 * recommends, and performRaycast along a vertical segment. The only C++ of the tree, because Bullet
 * has no C interface; built for the benchmark alone.
 */
#include "tests/bench/peers.h"

#include <BulletCollision/CollisionShapes/btBvhTriangleMeshShape.h>
#include <BulletCollision/CollisionShapes/btTriangleIndexVertexArray.h>
#include <BulletCollision/CollisionShapes/btSphereShape.h>
#include <BulletCollision/NarrowPhaseCollision/btRaycastCallback.h>

#include <cmath>
#include <cstdio>

namespace
{

struct Scene {
    btTriangleIndexVertexArray triangles;
    btBvhTriangleMeshShape shape;
    btScalar z_end;

    explicit Scene(const struct peer_triangles *t)
        : triangles(static_cast<int>(t->triangle_count), reinterpret_cast<int *>(t->corners),
                    3 * sizeof *t->corners, static_cast<int>(t->vertex_count), t->vertices,
                    3 * sizeof *t->vertices),
          shape(&triangles, true), z_end(t->z_min - 1)
    {
    }
};

struct Nearest : btTriangleRaycastCallback {
    bool is_hit = false;
    btVector3 normal;
    int triangle = -1;

    Nearest(const btVector3 &from, const btVector3 &to) : btTriangleRaycastCallback(from, to)
    {
    }

    btScalar reportHit(const btVector3 &n, btScalar fraction, int, int index) override
    {
        is_hit = true;
        normal = n;
        triangle = index;
        return m_hitFraction = fraction;
    }
};

const char *bullet_name()
{
    static char name[32];

    std::snprintf(name, sizeof name, "Bullet %d.%d", btGetVersion() / 100, btGetVersion() % 100);
    return name;
}

void *bullet_create(const struct peer_triangles *triangles)
{
    return new Scene(triangles);
}

void bullet_floors(const void *self, const float *points, size_t count, float *heights)
{
    /* performRaycast is not const, yet changes nothing */
    Scene *scene = const_cast<Scene *>(static_cast<const Scene *>(self));

    for (size_t i = 0; i < count; i++) {
        const float *p = points + 3 * i;
        btVector3 from(p[0], p[1], p[2]), to(p[0], p[1], scene->z_end);
        Nearest nearest(from, to);

        scene->shape.performRaycast(&nearest, from, to);
        heights[i] = nearest.is_hit ? from.lerp(to, nearest.m_hitFraction).z() : NAN;
    }
}

struct NearestCast : btTriangleConvexcastCallback {
    NearestCast(const btConvexShape *shape, const btTransform &from, const btTransform &to)
        : btTriangleConvexcastCallback(shape, from, to, btTransform::getIdentity(), 0)
    {
    }

    btScalar reportHit(const btVector3 &, const btVector3 &, btScalar fraction, int, int) override
    {
        return m_hitFraction = std::fmin(m_hitFraction, fraction);
    }
};

void bullet_spheres(const void *self, const float *ways, float radius, size_t count,
                    float *fractions)
{
    Scene *scene = const_cast<Scene *>(static_cast<const Scene *>(self));
    btSphereShape sphere(radius);
    const btVector3 reach(radius, radius, radius);

    for (size_t i = 0; i < count; i++) {
        const float *w = ways + 6 * i;
        btVector3 a(w[0], w[1], w[2]), b(w[3], w[4], w[5]);
        btTransform from(btQuaternion::getIdentity(), a), to(btQuaternion::getIdentity(), b);
        NearestCast nearest(&sphere, from, to);

        scene->shape.performConvexcast(&nearest, a, b, -reach, reach);
        fractions[i] = nearest.m_hitFraction;
    }
}

void bullet_destroy(void *self)
{
    delete static_cast<Scene *>(self);
}

} // namespace

const struct peer peer_bullet = {bullet_name, bullet_create, bullet_floors,  nullptr,
                                 nullptr,     nullptr,       bullet_spheres, bullet_destroy};
