/*
 * Embree as a peer of heightfields: the two triangles of every cell in one static, robust scene,
 * and rtcIntersect1. Of medium quality: a surface of equal cells leaves spatial splits nothing to
 * gain, and those of 33 million triangles take minutes. (Embree's own grids take a fifth of the
 * memory and are slower; its fastest is the peer.) Its documentation wants denormals off, and gets
 * it while it runs.
 */
#include "tests/bench/field_peers.h"

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
    float top_m;
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

static void fill(const struct field_map *map, float *vertices, uint32_t *corners)
{
    uint32_t side = map->side;

    for (uint32_t row = 0; row < side; row++)
        for (uint32_t column = 0; column < side; column++) {
            *vertices++ = (float)column * map->spacing_m;
            *vertices++ = (float)row * map->spacing_m;
            *vertices++ = map->heights_m[(size_t)row * side + column];
        }
    for (uint32_t row = 0; row + 1 < side; row++)
        for (uint32_t column = 0; column + 1 < side; column++) {
            uint32_t a = row * side + column, c = a + side;
            uint32_t both[6] = {a, a + 1, c, a + 1, c + 1, c};

            for (int i = 0; i < 6; i++)
                *corners++ = both[i];
        }
}

static void *embree_create(const struct field_map *map)
{
    size_t vertex_count = (size_t)map->side * map->side;
    size_t triangle_count = 2 * (size_t)(map->side - 1) * (map->side - 1);
    struct embree *e = calloc(1, sizeof *e);

    if (e == NULL || (e->device = rtcNewDevice("threads=1")) == NULL) {
        free(e);
        return NULL;
    }
    RTCGeometry geometry = rtcNewGeometry(e->device, RTC_GEOMETRY_TYPE_TRIANGLE);
    float *vertices = rtcSetNewGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0,
                                              RTC_FORMAT_FLOAT3, 3 * sizeof(float), vertex_count);
    uint32_t *corners = rtcSetNewGeometryBuffer(
        geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, 3 * sizeof(uint32_t), triangle_count);

    e->top_m = map->max_m + 1;
    if (vertices != NULL && corners != NULL) {
        fill(map, vertices, corners);
        e->scene = rtcNewScene(e->device);
        rtcSetSceneFlags(e->scene, RTC_SCENE_FLAG_ROBUST);
        rtcSetSceneBuildQuality(e->scene, RTC_BUILD_QUALITY_MEDIUM);
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

/* t of the first hit or INFINITY. */
static inline float intersect(RTCScene scene, const struct field_ray *ray, void *context)
{
    struct RTCRayHit query = {
        .ray = {.org_x = ray->origin[0],
                .org_y = ray->origin[1],
                .org_z = ray->origin[2],
                .dir_x = ray->direction[0],
                .dir_y = ray->direction[1],
                .dir_z = ray->direction[2],
                .tfar = ray->t_max,
                .mask = UINT32_MAX},
        .hit = {.geomID = RTC_INVALID_GEOMETRY_ID, .instID = {RTC_INVALID_GEOMETRY_ID}},
    };

#if RTC_VERSION_MAJOR < 4
    rtcIntersect1(scene, context, &query);
#else
    (void)context;
    rtcIntersect1(scene, &query, NULL);
#endif
    return query.hit.geomID != RTC_INVALID_GEOMETRY_ID ? query.ray.tfar : INFINITY;
}

#if RTC_VERSION_MAJOR < 4
#define CONTEXT_INIT                                                                               \
    struct RTCIntersectContext own;                                                                \
    void *context = &own;                                                                          \
    rtcInitIntersectContext(&own)
#else
#define CONTEXT_INIT void *context = NULL
#endif

static void embree_rays(const void *self, const struct field_ray *rays, size_t count, float *t)
{
    RTCScene scene = ((const struct embree *)self)->scene;
    unsigned mode = _mm_getcsr();
    CONTEXT_INIT;

    _mm_setcsr(mode | 0x8040); /* flush to zero, denormals are zero */
    for (size_t i = 0; i < count; i++)
        t[i] = intersect(scene, &rays[i], context);
    _mm_setcsr(mode);
}

static void embree_heights(const void *self, const float *points, size_t count, float *z)
{
    const struct embree *e = self;
    unsigned mode = _mm_getcsr();
    CONTEXT_INIT;

    _mm_setcsr(mode | 0x8040);
    for (size_t i = 0; i < count; i++) {
        struct field_ray down = {
            {points[2 * i], points[2 * i + 1], e->top_m}, {0, 0, -1}, INFINITY};
        float t = intersect(e->scene, &down, context);

        z[i] = t < INFINITY ? e->top_m - t : NAN;
    }
    _mm_setcsr(mode);
}

const struct field_peer field_peer_embree = {embree_name, embree_create, embree_rays,
                                             embree_heights, embree_destroy};
