/*
 * Writing quantized-mesh.
 *
 * The mesh is a grid of 65 × 65 vertices. They are where the format's 15 bits can put them, so that
 * what a reader decodes is the place whose height was taken. The edges' places and heights do not
 * depend on the tile, so neighbours of one level agree but for the rounding of heights to each
 * tile's own range. Triangles number vertices in the order of their first use, as the coding of
 * indices wants it.
 *
 * Normals are those of the grid, by the vertices on both sides; the rim has them for the edges.
 *
 * Sources: Cesium, "quantized-mesh 1.0", 2020; the horizon occlusion point: K. Ring and P. Cozzi,
 * "Computing the horizon occlusion point", 2013; octahedral normals: Z. Cigolle et al., "A Survey
 * of Efficient Representations for Independent Unit Vectors", 2014.
 */
#include "formats/quantized_mesh.h"

#include "terrain/geo/geo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AXIS_A_M 6378137.0
#define AXIS_B_M 6356752.314245179
#define UNITS 32767.0

enum {
    SIDE = QUANTIZED_SIDE,
    VERTICES = SIDE * SIDE,
    TRIANGLES = 2 * (SIDE - 1) * (SIDE - 1),
    HEADER_BYTES = 88,
    BODY_BYTES = HEADER_BYTES + 4 + 6 * VERTICES + 4 + 6 * TRIANGLES + 4 * (4 + 2 * SIDE),
    NORMALS_BYTES = 5 + 2 * VERTICES,
    EXTENSION_NORMALS = 1,
    EXTENSION_METADATA = 4
};

double quantized_share(double index)
{
    return round(UNITS * index / (SIDE - 1)) / UNITS;
}

struct work {
    struct vec3 points[QUANTIZED_GRID][QUANTIZED_GRID]; /* earth-centred metres */
    uint16_t vertex_of[VERTICES], grid_of[VERTICES];    /* numbers, by first use, and back */
    uint16_t corners[3 * TRIANGLES];
    float low_m, high_m;
};

/* ---- the mesh -------------------------------------------------------------------------------- */

static double height_at(const struct quantized_mesh *mesh, uint32_t grid)
{
    return mesh->heights_m[(grid / SIDE + 1) * QUANTIZED_GRID + grid % SIDE + 1];
}

static struct vec3 point_at(const struct work *work, uint32_t grid)
{
    return work->points[grid / SIDE + 1][grid % SIDE + 1];
}

static void measure(const struct quantized_mesh *mesh, struct work *work)
{
    double low = INFINITY, high = -INFINITY;

    for (uint32_t j = 0; j < QUANTIZED_GRID; j++)
        for (uint32_t i = 0; i < QUANTIZED_GRID; i++)
            work->points[j][i] = geo_ecef(mesh->lat_deg[j], mesh->lng_deg[i],
                                          mesh->heights_m[j * QUANTIZED_GRID + i]);
    for (uint32_t grid = 0; grid < VERTICES; grid++) {
        low = fmin(low, height_at(mesh, grid));
        high = fmax(high, height_at(mesh, grid));
    }
    work->low_m = (float)low;
    work->high_m = (float)high;
    if ((double)work->low_m > low)
        work->low_m = nextafterf(work->low_m, -INFINITY);
    if ((double)work->high_m < high)
        work->high_m = nextafterf(work->high_m, INFINITY);
}

/* Two triangles a cell, counter-clockwise from above; vertices get their numbers. */
static void number_vertices(struct work *work)
{
    uint16_t *to = work->corners, count = 0;

    memset(work->vertex_of, 0xff, sizeof work->vertex_of);
    for (uint32_t j = 0; j + 1 < SIDE; j++)
        for (uint32_t i = 0; i + 1 < SIDE; i++) {
            const uint32_t nw = j * SIDE + i, sw = nw + SIDE;
            const uint32_t corners[] = {sw, sw + 1, nw, sw + 1, nw + 1, nw};

            for (int k = 0; k < 6; k++) {
                uint16_t *number = &work->vertex_of[corners[k]];

                if (*number == UINT16_MAX) {
                    work->grid_of[count] = (uint16_t)corners[k];
                    *number = count++;
                }
                *to++ = *number;
            }
        }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void put(uint8_t **to, const void *value, size_t bytes)
{
    memcpy(*to, value, bytes);
    *to += bytes;
}

static void put_u16(uint8_t **to, uint32_t value)
{
    put(to, &(uint16_t){(uint16_t)value}, 2);
}

static void put_u32(uint8_t **to, uint32_t value)
{
    put(to, &value, 4);
}

static void put_vec3(uint8_t **to, struct vec3 v)
{
    put(to, &(double[]){v.x, v.y, v.z}, 24);
}

/*
 * The point on the line to the tile's middle that is hidden only when all vertices are, in units of
 * the ellipsoid's axes.
 */
static struct vec3 occlusion_point(const struct work *work, struct vec3 centre)
{
    struct vec3 scaled = {centre.x / AXIS_A_M, centre.y / AXIS_A_M, centre.z / AXIS_B_M};
    struct vec3 direction = vec3_unit(scaled);
    double most = 0;

    for (uint32_t grid = 0; grid < VERTICES; grid++) {
        struct vec3 p = point_at(work, grid);
        struct vec3 q = {p.x / AXIS_A_M, p.y / AXIS_A_M, p.z / AXIS_B_M};
        double length = vec3_length(q), magnitude = fmax(1, length);
        double cos_a = vec3_dot(q, direction) / length;
        double sin_a = vec3_length(vec3_cross(q, direction)) / length;
        double cos_b = 1 / magnitude, sin_b = sqrt(magnitude * magnitude - 1) * cos_b;
        double below = cos_a * cos_b - sin_a * sin_b;

        if (!(below > 0)) /* more than a quarter of the Earth: never hidden */
            return vec3_scale(direction, 1e6);
        most = fmax(most, 1 / (magnitude * below));
    }
    return vec3_scale(direction, most);
}

static void put_header(uint8_t **to, const struct quantized_mesh *mesh, const struct work *work)
{
    double lat = (mesh->lat_deg[1] + mesh->lat_deg[SIDE]) / 2;
    double lng = (mesh->lng_deg[1] + mesh->lng_deg[SIDE]) / 2;
    struct vec3 centre = geo_ecef(lat, lng, ((double)work->low_m + (double)work->high_m) / 2);
    double radius_m = 0;

    for (uint32_t grid = 0; grid < VERTICES; grid++)
        radius_m = fmax(radius_m, vec3_length(vec3_sub(point_at(work, grid), centre)));
    put_vec3(to, centre);
    put(to, &work->low_m, 4);
    put(to, &work->high_m, 4);
    put_vec3(to, centre);
    put(to, &radius_m, 8);
    put_vec3(to, occlusion_point(work, centre));
}

/* A difference with its sign in the last bit. */
static void put_difference(uint8_t **to, int32_t value, int32_t *last)
{
    int32_t d = value - *last;

    put_u16(to, (uint32_t)(d << 1 ^ d >> 31));
    *last = value;
}

static void put_vertices(uint8_t **to, const struct quantized_mesh *mesh, const struct work *work)
{
    double low = (double)work->low_m, range = (double)work->high_m - low;

    put_u32(to, VERTICES);
    for (int axis = 0; axis < 3; axis++) {
        int32_t last = 0;

        for (uint32_t n = 0; n < VERTICES; n++) {
            uint32_t grid = work->grid_of[n];
            double share = axis == 0   ? quantized_share(grid % SIDE)
                           : axis == 1 ? 1 - quantized_share(grid / SIDE)
                           : range > 0 ? (height_at(mesh, grid) - low) / range
                                       : 0;

            put_difference(to, (int32_t)lround(UNITS * share), &last);
        }
    }
}

static void put_triangles(uint8_t **to, const struct work *work)
{
    uint32_t highest = 0;

    put_u32(to, TRIANGLES);
    for (uint32_t k = 0; k < 3 * TRIANGLES; k++) {
        put_u16(to, highest - work->corners[k]);
        if (work->corners[k] == highest)
            highest++;
    }
    for (int edge = 0; edge < 4; edge++) { /* west, south, east, north */
        put_u32(to, SIDE);
        for (uint32_t k = 0; k < SIDE; k++) {
            uint32_t grid = edge == 0   ? k * SIDE
                            : edge == 1 ? (SIDE - 1) * SIDE + k
                            : edge == 2 ? k * SIDE + SIDE - 1
                                        : k;

            put_u16(to, work->vertex_of[grid]);
        }
    }
}

static uint8_t byte_of(double value)
{
    return (uint8_t)lround((fmin(fmax(value, -1), 1) + 1) / 2 * 255);
}

static void put_normal(uint8_t **to, struct vec3 n)
{
    double sum = fabs(n.x) + fabs(n.y) + fabs(n.z), x = n.x / sum, y = n.y / sum;

    if (n.z < 0) {
        double folded = (1 - fabs(y)) * (x < 0 ? -1 : 1);

        y = (1 - fabs(x)) * (y < 0 ? -1 : 1);
        x = folded;
    }
    put(to, &(uint8_t[]){byte_of(x), byte_of(y)}, 2);
}

static void put_normals(uint8_t **to, const struct work *work)
{
    put(to, &(uint8_t){EXTENSION_NORMALS}, 1);
    put_u32(to, 2 * VERTICES);
    for (uint32_t n = 0; n < VERTICES; n++) {
        uint32_t j = work->grid_of[n] / SIDE + 1u, i = work->grid_of[n] % SIDE + 1u;
        struct vec3 p = work->points[j][i];
        struct vec3 east = vec3_sub(work->points[j][i + 1], work->points[j][i - 1]);
        struct vec3 north = vec3_sub(work->points[j - 1][i], work->points[j + 1][i]);
        struct vec3 normal = vec3_cross(east, north);

        /* at a pole all of a row is one point */
        put_normal(to, vec3_dot(normal, p) > 0 ? vec3_unit(normal) : vec3_unit(p));
    }
}

enum err_code quantized_mesh_encode(const struct quantized_mesh *mesh, struct raster_bytes *out,
                                    struct err *err)
{
    size_t metadata = mesh->metadata ? strlen(mesh->metadata) : 0;
    size_t room = BODY_BYTES + NORMALS_BYTES + 9 + metadata;
    struct work *work = malloc(sizeof *work);
    uint8_t *bytes = malloc(room), *to = bytes;

    if (!work || !bytes) {
        free(work);
        free(bytes);
        return err_set(err, ERR_NO_MEMORY, "no memory for a mesh of %d vertices", VERTICES);
    }
    measure(mesh, work);
    number_vertices(work);
    put_header(&to, mesh, work);
    put_vertices(&to, mesh, work);
    put_triangles(&to, work);
    if (mesh->has_normals)
        put_normals(&to, work);
    if (mesh->metadata) {
        put(&to, &(uint8_t){EXTENSION_METADATA}, 1);
        put_u32(&to, (uint32_t)metadata + 4);
        put_u32(&to, (uint32_t)metadata);
        put(&to, mesh->metadata, metadata);
    }
    free(work);
    *out = (struct raster_bytes){bytes, (size_t)(to - bytes)};
    return ERR_OK;
}
