/*
 * As colliders.mjs: heights of a grid by the colliders of Bullet and ODE, where their headers are (-DBULLET, -DODE).
 *
 * Reads numbers: side, heights[side][side] from the south, then x and y of each point to the end. Prints a line for
 * each variant: its name, a tab, the heights.
 */
#include <cstdio>
#include <vector>

static int side;
static std::vector<float> from_north; /* [side][side] */
static std::vector<float> points;     /* x, y */
static const float HIGH = 100, DEEP = -100;

#ifdef BULLET
#include <btBulletCollisionCommon.h>
#include <BulletCollision/CollisionShapes/btHeightfieldTerrainShape.h>

/* Height of the triangle over one point: what bodies collide with. */
struct over : btTriangleCallback {
    float x, z, height = 1e9f;

    void processTriangle(btVector3 *t, int, int) override
    {
        btVector3 a = t[1] - t[0], b = t[2] - t[0];
        float area = a.x() * b.z() - a.z() * b.x();
        float u = ((x - t[0].x()) * b.z() - (z - t[0].z()) * b.x()) / area;
        float v = (a.x() * (z - t[0].z()) - a.z() * (x - t[0].x())) / area;

        if (u >= 0 && v >= 0 && u + v <= 1)
            height = t[0].y() + u * a.y() + v * b.y();
    }
};

/* Y up: kota's (x, y, z) is (x, z, -y). */
static void bullet(const char *name, bool flips, bool diamond, bool zigzag)
{
    float low = 1e9f, high = -1e9f;

    for (float h : from_north) {
        low = h < low ? h : low;
        high = h > high ? h : high;
    }
    btHeightfieldTerrainShape shape(side, side, from_north.data(), low, high, 1, flips);
    shape.setUseDiamondSubdivision(diamond);
    shape.setUseZigzagSubdivision(zigzag);
    btCollisionObject object;
    btTransform at(btQuaternion::getIdentity(),
                   btVector3((side - 1) / 2.0f, (low + high) / 2, -(side - 1) / 2.0f));
    object.setCollisionShape(&shape);
    object.setWorldTransform(at);
    std::printf("Bullet, %s, rays\t", name);
    for (size_t i = 0; i < points.size(); i += 2) {
        btVector3 from(points[i], HIGH, -points[i + 1]), to(points[i], DEEP, -points[i + 1]);
        btCollisionWorld::ClosestRayResultCallback hit(from, to);

        btCollisionWorld::rayTestSingle(btTransform(btQuaternion::getIdentity(), from),
                                        btTransform(btQuaternion::getIdentity(), to), &object, &shape, at, hit);
        std::printf(" %.9g", hit.hasHit() ? hit.m_hitPointWorld.y() : 1e9);
    }
    std::printf("\nBullet, %s, contacts\t", name);
    for (size_t i = 0; i < points.size(); i += 2) {
        over triangle;

        triangle.x = points[i] - at.getOrigin().x();
        triangle.z = -points[i + 1] - at.getOrigin().z();
        shape.processAllTriangles(&triangle, btVector3(-1e6f, -1e6f, -1e6f), btVector3(1e6f, 1e6f, 1e6f));
        std::printf(" %.9g", triangle.height + at.getOrigin().y());
    }
    std::printf("\n");
}
#endif

#ifdef ODE
#include <ode/ode.h>

/* Y up, as above; a heightfield is centred. */
static void ode()
{
    dInitODE();
    dHeightfieldDataID data = dGeomHeightfieldDataCreate();
    dGeomHeightfieldDataBuildSingle(data, from_north.data(), 1, side - 1, side - 1, side, side, 1, 0, 10, 0);
    dGeomID field = dCreateHeightfield(0, data, 1), ray = dCreateRay(0, HIGH - DEEP);
    dGeomSetPosition(field, (side - 1) / 2.0, 0, -(side - 1) / 2.0);
    dGeomRaySetClosestHit(ray, 1);
    std::printf("ODE, dHeightfield\t");
    for (size_t i = 0; i < points.size(); i += 2) {
        dContactGeom contacts[8];
        double best = 1e9;

        dGeomRaySet(ray, points[i], HIGH, -points[i + 1], 0, -1, 0);
        int count = dCollide(field, ray, 8, contacts, sizeof contacts[0]);
        for (int k = 0; k < count; k++)
            best = best == 1e9 || contacts[k].pos[1] > best ? contacts[k].pos[1] : best;
        std::printf(" %.9g", best);
    }
    std::printf("\n");
    dCloseODE();
}
#endif

int main()
{
    float value;

    if (std::scanf("%d", &side) != 1)
        return 1;
    from_north.resize((size_t)side * side);
    for (int r = side - 1; r >= 0; r--)
        for (int c = 0; c < side; c++)
            if (std::scanf("%f", &from_north[(size_t)r * side + c]) != 1)
                return 1;
    while (std::scanf("%f", &value) == 1)
        points.push_back(value);
#ifdef BULLET
    bullet("as made", false, false, false);
    bullet("flipQuadEdges", true, false, false);
    bullet("setUseDiamondSubdivision", false, true, false);
    bullet("setUseZigzagSubdivision", false, false, true);
#endif
#ifdef ODE
    ode();
#endif
    return 0;
}
