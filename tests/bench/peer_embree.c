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
#include <stdbool.h>
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

/* What asking needs, and the state that Embree recommends for it: flush to zero, denormals are
 * zero. */
struct asking {
    RTCScene scene;
    unsigned mode; /* to be set back */
#if RTC_VERSION_MAJOR < 4
    struct RTCIntersectContext context;
#endif
};

static inline void asking_begin(struct asking *asking, const void *self)
{
    asking->scene = ((const struct embree *)self)->scene;
    asking->mode = _mm_getcsr();
    _mm_setcsr(asking->mode | 0x8040);
#if RTC_VERSION_MAJOR < 4
    rtcInitIntersectContext(&asking->context);
#endif
}

static inline void asking_end(const struct asking *asking)
{
    _mm_setcsr(asking->mode);
}

static inline struct RTCRay ray_of(const float *p, const float *d)
{
    return (struct RTCRay){.org_x = p[0],
                           .org_y = p[1],
                           .org_z = p[2],
                           .dir_x = d[0],
                           .dir_y = d[1],
                           .dir_z = d[2],
                           .tfar = INFINITY,
                           .mask = UINT32_MAX};
}

/* How far the nearest hit is; INFINITY: there is none. */
static inline float nearest(struct asking *asking, const float *p, const float *d)
{
    struct RTCRayHit query = {
        .ray = ray_of(p, d),
        .hit = {.geomID = RTC_INVALID_GEOMETRY_ID, .instID = {RTC_INVALID_GEOMETRY_ID}},
    };

#if RTC_VERSION_MAJOR < 4
    rtcIntersect1(asking->scene, &asking->context, &query);
#else
    rtcIntersect1(asking->scene, &query, NULL);
#endif
    return query.hit.geomID != RTC_INVALID_GEOMETRY_ID ? query.ray.tfar : INFINITY;
}

static inline bool is_blocked(struct asking *asking, const float *p, const float *d)
{
    struct RTCRay ray = ray_of(p, d);

#if RTC_VERSION_MAJOR < 4
    rtcOccluded1(asking->scene, &asking->context, &ray);
#else
    rtcOccluded1(asking->scene, &ray, NULL);
#endif
    return ray.tfar < 0;
}

static void embree_floors(const void *self, const float *points, size_t count, float *heights)
{
    static const float down[3] = {0, 0, -1};
    struct asking asking;

    asking_begin(&asking, self);
    for (size_t i = 0; i < count; i++) {
        float t = nearest(&asking, &points[3 * i], down);

        heights[i] = t < INFINITY ? points[3 * i + 2] - t : NAN;
    }
    asking_end(&asking);
}

static void embree_shadows(const void *self, const float *origins, size_t count,
                           const float *direction, uint8_t *is_hit)
{
    struct asking asking;

    asking_begin(&asking, self);
    for (size_t i = 0; i < count; i++)
        is_hit[i] = is_blocked(&asking, &origins[3 * i], direction);
    asking_end(&asking);
}

static void embree_rays(const void *self, const float *origins, const float *directions,
                        size_t count, float *ts)
{
    struct asking asking;

    asking_begin(&asking, self);
    for (size_t i = 0; i < count; i++)
        ts[i] = nearest(&asking, &origins[3 * i], &directions[3 * i]);
    asking_end(&asking);
}

static void embree_any(const void *self, const float *origins, const float *directions,
                       const float *t_max, size_t count, float *ts)
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
        struct RTCRay ray = {.org_x = p[0],
                             .org_y = p[1],
                             .org_z = p[2],
                             .dir_x = d[0],
                             .dir_y = d[1],
                             .dir_z = d[2],
                             .tfar = t_max[i],
                             .mask = UINT32_MAX};

#if RTC_VERSION_MAJOR < 4
        rtcOccluded1(scene, &context, &ray);
#else
        rtcOccluded1(scene, &ray, NULL);
#endif
        ts[i] = ray.tfar < 0 ? 0 : INFINITY;
    }
    _mm_setcsr(mode);
}

const struct peer peer_embree = {embree_name, embree_create, embree_floors, embree_shadows,
                                 embree_rays, embree_any,    NULL,          embree_destroy};
