/*
 * Embree as a peer of contact, rays and shadows: one static scene of high quality, robust, and
 * rtcIntersect1, straight down for contact, or rtcOccluded1. Its documentation wants denormals off,
 * and gets it while it runs.
 */
#include "tests/bench/peers.h"

#if __has_include(<embree4/rtcore.h>)
#include <embree4/rtcore.h>
#else
#include <embree3/rtcore.h>
#endif

#include <math.h>
#include <stdlib.h>
#include <xmmintrin.h>

struct embree {
    RTCDevice device;
    RTCScene scene;
};

static const char *embree_name(void)
{
    return "Embree " RTC_VERSION_STRING;
}

static void embree_destroy(void *self)
{
    struct embree *e = self;

    if (e->scene != NULL)
        rtcReleaseScene(e->scene);
    rtcReleaseDevice(e->device);
    free(e);
}

static void *embree_create(const struct peer_triangles *t)
{
    struct embree *e = calloc(1, sizeof *e);

    if (e == NULL || (e->device = rtcNewDevice("threads=1")) == NULL) {
        free(e);
        return NULL;
    }
    RTCGeometry geometry = rtcNewGeometry(e->device, RTC_GEOMETRY_TYPE_TRIANGLE);
    /* new buffers, not shared ones: shared ones must be padded */
    float *vertices =
        rtcSetNewGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3,
                                3 * sizeof *vertices, t->vertex_count);
    uint32_t *corners =
        rtcSetNewGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3,
                                3 * sizeof *corners, t->triangle_count);

    if (vertices != NULL && corners != NULL) {
        for (size_t i = 0; i < 3 * t->vertex_count; i++)
            vertices[i] = t->vertices[i];
        for (size_t i = 0; i < 3 * t->triangle_count; i++)
            corners[i] = t->corners[i];
        e->scene = rtcNewScene(e->device);
        rtcSetSceneFlags(e->scene, RTC_SCENE_FLAG_ROBUST);
        rtcSetSceneBuildQuality(e->scene, RTC_BUILD_QUALITY_HIGH);
        rtcCommitGeometry(geometry);
        rtcAttachGeometry(e->scene, geometry);
        rtcCommitScene(e->scene);
    }
    rtcReleaseGeometry(geometry);
    if (rtcGetDeviceError(e->device) != RTC_ERROR_NONE || e->scene == NULL) {
        embree_destroy(e);
        return NULL;
    }
    return e;
}

static void embree_floors(const void *self, const float *points, size_t count, float *heights)
{
    RTCScene scene = ((const struct embree *)self)->scene;
    unsigned mode = _mm_getcsr();

    _mm_setcsr(mode | 0x8040); /* flush to zero, denormals are zero */
#if RTC_VERSION_MAJOR < 4
    struct RTCIntersectContext context;

    rtcInitIntersectContext(&context);
#endif
    for (size_t i = 0; i < count; i++) {
        const float *p = &points[3 * i];
        struct RTCRayHit query = {
            .ray = {.org_x = p[0],
                    .org_y = p[1],
                    .org_z = p[2],
                    .dir_z = -1,
                    .tfar = INFINITY,
                    .mask = UINT32_MAX},
            .hit = {.geomID = RTC_INVALID_GEOMETRY_ID, .instID = {RTC_INVALID_GEOMETRY_ID}},
        };

#if RTC_VERSION_MAJOR < 4
        rtcIntersect1(scene, &context, &query);
#else
        rtcIntersect1(scene, &query, NULL);
#endif
        heights[i] = query.hit.geomID != RTC_INVALID_GEOMETRY_ID ? p[2] - query.ray.tfar : NAN;
    }
    _mm_setcsr(mode);
}

static void embree_shadows(const void *self, const float *origins, size_t count,
                           const float *direction, uint8_t *is_hit)
{
    RTCScene scene = ((const struct embree *)self)->scene;
    unsigned mode = _mm_getcsr();

    _mm_setcsr(mode | 0x8040); /* flush to zero, denormals are zero */
#if RTC_VERSION_MAJOR < 4
    struct RTCIntersectContext context;

    rtcInitIntersectContext(&context);
#endif
    for (size_t i = 0; i < count; i++) {
        const float *p = &origins[3 * i];
        struct RTCRay ray = {.org_x = p[0],
                             .org_y = p[1],
                             .org_z = p[2],
                             .dir_x = direction[0],
                             .dir_y = direction[1],
                             .dir_z = direction[2],
                             .tfar = INFINITY,
                             .mask = UINT32_MAX};

#if RTC_VERSION_MAJOR < 4
        rtcOccluded1(scene, &context, &ray);
#else
        rtcOccluded1(scene, &ray, NULL);
#endif
        is_hit[i] = ray.tfar < 0;
    }
    _mm_setcsr(mode);
}

static void embree_rays(const void *self, const float *origins, const float *directions,
                        size_t count, float *ts)
{
    RTCScene scene = ((const struct embree *)self)->scene;
    unsigned mode = _mm_getcsr();

    _mm_setcsr(mode | 0x8040); /* flush to zero, denormals are zero */
#if RTC_VERSION_MAJOR < 4
    struct RTCIntersectContext context;

    rtcInitIntersectContext(&context);
#endif
    for (size_t i = 0; i < count; i++) {
        const float *p = &origins[3 * i], *d = &directions[3 * i];
        struct RTCRayHit query = {
            .ray = {.org_x = p[0],
                    .org_y = p[1],
                    .org_z = p[2],
                    .dir_x = d[0],
                    .dir_y = d[1],
                    .dir_z = d[2],
                    .tfar = INFINITY,
                    .mask = UINT32_MAX},
            .hit = {.geomID = RTC_INVALID_GEOMETRY_ID, .instID = {RTC_INVALID_GEOMETRY_ID}},
        };

#if RTC_VERSION_MAJOR < 4
        rtcIntersect1(scene, &context, &query);
#else
        rtcIntersect1(scene, &query, NULL);
#endif
        ts[i] = query.hit.geomID != RTC_INVALID_GEOMETRY_ID ? query.ray.tfar : INFINITY;
    }
    _mm_setcsr(mode);
}

const struct peer peer_embree = {embree_name,    embree_create, embree_floors,
                                 embree_shadows, embree_rays,   embree_destroy};
