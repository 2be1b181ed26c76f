/*
 * Frames on the Earth.
 *
 * A picture of ground asks for 65,536 places at once. The tangent plane and Mercator separate: what
 * is dear depends on the row or on the column only, and a place is a few multiplications, exactly.
 * Transverse Mercator does not; there the map is evaluated on every STEP-th row and column, and
 * cubics through four of them give the places between. The cubic's error is at most the fourth
 * derivative times 1/24 of the fourth power of a step; derivatives of the projections along the
 * ground are those of tangents, bounded by powers of (1 + tan lat) / R. The bound is tested against
 * the exact places in tests/unit/test_geo_map.c.
 *
 * Dropped: bilinear lattices. At zoom 12 their error on the ground is 7 mm, on steep rock more than
 * a step of any encoding; cubics of the same lattice are off by less than a nanometre.
 */
#include "terrain/geo/geo_map.h"

#include "base/check.h"
#include "terrain/trig.h"

#include <math.h>

#define RADIUS_M 6378137.0
#define DEGREE (M_PI / 180)
#define NOWHERE ((struct vec2){GEO_MAP_NOWHERE, GEO_MAP_NOWHERE})

enum { STEP = 16, NODES_MAX = GEO_MAP_SIDE_MAX / STEP + 2 };

struct geo_map geo_map_plane(double lat_deg, double lng_deg)
{
    return (struct geo_map){.kind = GEO_MAP_PLANE, .plane = geo_frame_at(lat_deg, lng_deg)};
}

bool geo_map_of_epsg(uint32_t code, struct geo_map *out)
{
    static const struct {
        uint32_t first, last, zone;
        bool is_south;
        double inverse_flattening;
    } utm[] = {{32601, 32660, 1, false, TRANSVERSE_WGS84},
               {32701, 32760, 1, true, TRANSVERSE_WGS84},
               {25828, 25838, 28, false, TRANSVERSE_GRS80},
               {26901, 26923, 1, false, TRANSVERSE_GRS80}};

    if (code == 3857) {
        *out = (struct geo_map){.kind = GEO_MAP_WEB_MERCATOR};
        return true;
    }
    for (size_t i = 0; i < sizeof utm / sizeof *utm; i++) {
        if (code < utm[i].first || code > utm[i].last)
            continue;
        *out = (struct geo_map){.kind = GEO_MAP_TRANSVERSE,
                                .transverse =
                                    transverse_utm((int)(code - utm[i].first + utm[i].zone),
                                                   utm[i].is_south, utm[i].inverse_flattening)};
        return true;
    }
    return false;
}

static double mercator_x(double lng_deg)
{
    return RADIUS_M * lng_deg * DEGREE;
}

static double mercator_y(double lat_deg)
{
    return RADIUS_M * trig_asinh(trig_tan(lat_deg * DEGREE));
}

bool geo_map_to_frame(const struct geo_map *map, double lat_deg, double lng_deg, struct vec2 *out)
{
    switch (map->kind) {
    case GEO_MAP_PLANE:
        return geo_to_frame(&map->plane, lat_deg, lng_deg, out);
    case GEO_MAP_TRANSVERSE:
        return transverse_to_plane(&map->transverse, lat_deg, lng_deg, out);
    case GEO_MAP_WEB_MERCATOR:
        break;
    }
    *out = (struct vec2){mercator_x(lng_deg), mercator_y(lat_deg)};
    return fabs(lat_deg) < 90;
}

bool geo_map_from_frame(const struct geo_map *map, struct vec2 at, double *lat_deg, double *lng_deg)
{
    switch (map->kind) {
    case GEO_MAP_PLANE:
        return geo_from_frame(&map->plane, at, lat_deg, lng_deg);
    case GEO_MAP_TRANSVERSE:
        return transverse_from_plane(&map->transverse, at, lat_deg, lng_deg);
    case GEO_MAP_WEB_MERCATOR:
        break;
    }
    *lat_deg = trig_atan2(trig_sinh(at.y / RADIUS_M), 1) / DEGREE;
    *lng_deg = remainder(at.x / RADIUS_M / DEGREE, 360);
    return fabs(at.x) <= M_PI * RADIUS_M;
}

/* ---- grids ----------------------------------------------------------------------------------- */

static void plane_grid(const struct geo_frame *plane, const double *lng_deg, uint32_t cols,
                       const double *lat_deg, uint32_t rows, struct vec2 *out)
{
    struct geo_column columns[GEO_MAP_SIDE_MAX];

    for (uint32_t i = 0; i < cols; i++)
        columns[i] = geo_column_at(plane, lng_deg[i]);
    for (uint32_t j = 0; j < rows; j++) {
        struct geo_row row = geo_row_at(lat_deg[j]);

        for (uint32_t i = 0; i < cols; i++, out++)
            if (!geo_join(plane, &row, &columns[i], out))
                *out = NOWHERE;
    }
}

static void mercator_grid(const double *lng_deg, uint32_t cols, const double *lat_deg,
                          uint32_t rows, struct vec2 *out)
{
    for (uint32_t j = 0; j < rows; j++) {
        double y = mercator_y(lat_deg[j]);

        for (uint32_t i = 0; i < cols; i++)
            *out++ = fabs(lat_deg[j]) < 90 ? (struct vec2){mercator_x(lng_deg[i]), y} : NOWHERE;
    }
}

static void exact_grid(const struct transverse *map, const double *lng_deg, uint32_t cols,
                       const double *lat_deg, uint32_t rows, struct vec2 *out)
{
    for (uint32_t j = 0; j < rows; j++)
        for (uint32_t i = 0; i < cols; i++, out++)
            if (!transverse_to_plane(map, lat_deg[j], lng_deg[i], out))
                *out = NOWHERE;
}

/* Where the cubics have their nodes along one side, and each row's or column's share in four. */
struct nodes {
    uint32_t count, at[NODES_MAX];
    uint8_t first[GEO_MAP_SIDE_MAX]; /* the first of the four */
    double weight[GEO_MAP_SIDE_MAX][4];
};

/* False: too few for a cubic. */
static bool nodes_place(uint32_t side, struct nodes *out)
{
    out->count = 0;
    for (uint32_t at = 0; at < side - 1; at += STEP)
        out->at[out->count++] = at;
    out->at[out->count++] = side - 1;
    for (uint32_t i = 0; out->count >= 4 && i < side; i++) {
        uint32_t first = i / STEP > 0 ? i / STEP - 1 : 0;

        first = first + 4 > out->count ? out->count - 4 : first;
        out->first[i] = (uint8_t)first;
        for (uint32_t k = 0; k < 4; k++) {
            double at = out->at[first + k], weight = 1;

            for (uint32_t l = 0; l < 4; l++)
                if (l != k)
                    weight *= ((double)i - out->at[first + l]) / (at - out->at[first + l]);
            out->weight[i][k] = weight;
        }
    }
    return out->count >= 4;
}

static double interpolation_error_m(const double *lng_deg, uint32_t cols, const double *lat_deg,
                                    uint32_t rows)
{
    double lat = fmax(fabs(lat_deg[0]), fabs(lat_deg[rows - 1])) * DEGREE;
    double width =
        fabs(lng_deg[cols - 1] - lng_deg[0]) * DEGREE / (cols - 1) * STEP * trig_cos(lat);
    double height = fabs(lat_deg[0] - lat_deg[1]) * DEGREE * STEP;
    double step;

    height = fmax(height, fabs(lat_deg[rows - 1] - lat_deg[rows - 2]) * DEGREE * STEP);
    step = fmax(width, height) * (1 + trig_tan(lat));
    return 24 * RADIUS_M / 24 * step * step * step * step;
}

/* False: an exact place that is needed is not on the map, or memory for two rows is too small. */
static bool cubic_grid(const struct transverse *map, const double *lng_deg, uint32_t cols,
                       const double *lat_deg, uint32_t rows, struct vec2 *out)
{
    struct nodes across, along;
    struct vec2 exact[4][NODES_MAX], row[NODES_MAX];
    uint32_t held = 0; /* node rows that were evaluated; the last four of them are in exact */

    if (!nodes_place(cols, &across) || !nodes_place(rows, &along))
        return false;
    for (uint32_t j = 0; j < rows; j++) {
        for (; held < along.first[j] + 4u; held++)
            for (uint32_t k = 0; k < across.count; k++)
                if (!transverse_to_plane(map, lat_deg[along.at[held]], lng_deg[across.at[k]],
                                         &exact[held % 4][k]))
                    return false;
        for (uint32_t k = 0; k < across.count; k++) {
            row[k] = (struct vec2){0, 0};
            for (uint32_t l = 0; l < 4; l++) {
                struct vec2 p = exact[(along.first[j] + l) % 4][k];

                row[k].x += along.weight[j][l] * p.x;
                row[k].y += along.weight[j][l] * p.y;
            }
        }
        for (uint32_t i = 0; i < cols; i++, out++) {
            const struct vec2 *p = row + across.first[i];
            const double *w = across.weight[i];

            out->x = w[0] * p[0].x + w[1] * p[1].x + w[2] * p[2].x + w[3] * p[3].x;
            out->y = w[0] * p[0].y + w[1] * p[1].y + w[2] * p[2].y + w[3] * p[3].y;
        }
    }
    return true;
}

void geo_map_grid(const struct geo_map *map, const double *lng_deg, uint32_t cols,
                  const double *lat_deg, uint32_t rows, double error_m, struct vec2 *out)
{
    CHECK(cols >= 1 && rows >= 1 && cols <= GEO_MAP_SIDE_MAX && rows <= GEO_MAP_SIDE_MAX);
    switch (map->kind) {
    case GEO_MAP_PLANE:
        plane_grid(&map->plane, lng_deg, cols, lat_deg, rows, out);
        return;
    case GEO_MAP_WEB_MERCATOR:
        mercator_grid(lng_deg, cols, lat_deg, rows, out);
        return;
    case GEO_MAP_TRANSVERSE:
        break;
    }
    if (cols < 2 || rows < 2 || interpolation_error_m(lng_deg, cols, lat_deg, rows) > error_m ||
        !cubic_grid(&map->transverse, lng_deg, cols, lat_deg, rows, out))
        exact_grid(&map->transverse, lng_deg, cols, lat_deg, rows, out);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

enum { EDGE_PLACES = 64 };

/* Widens the box by a place; longitudes are counted from the box's middle of the beginning. */
static void box_add(struct geo_box *box, double lat_deg, double lng_deg, double middle_deg)
{
    double lng = middle_deg + remainder(lng_deg - middle_deg, 360);

    box->west_deg = fmin(box->west_deg, lng);
    box->east_deg = fmax(box->east_deg, lng);
    box->south_deg = fmin(box->south_deg, lat_deg);
    box->north_deg = fmax(box->north_deg, lat_deg);
}

static bool is_inside(const struct geo_map *map, double lat_deg, struct vec2 low, struct vec2 high)
{
    struct vec2 at;

    return geo_map_to_frame(map, lat_deg, 0, &at) && at.x >= low.x && at.x <= high.x &&
           at.y >= low.y && at.y <= high.y;
}

/*
 * The extremes are on the rim, unless a pole is inside: then all longitudes are. Between the places
 * that are looked at the rim leaves the box by less than the EDGE_PLACES-th part of its size.
 */
struct geo_box geo_map_box(const struct geo_map *map, struct vec2 low, struct vec2 high)
{
    const struct geo_box whole = {-180, -90, 180, 90};
    struct geo_box box = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    double middle_deg = 0, lat_deg, lng_deg, pad_deg;

    if (!geo_map_from_frame(map, (struct vec2){low.x / 2 + high.x / 2, low.y / 2 + high.y / 2},
                            &lat_deg, &middle_deg))
        return whole;
    for (int edge = 0; edge < 4; edge++) {
        for (int i = 0; i <= EDGE_PLACES; i++) {
            double t = (double)i / EDGE_PLACES, x = low.x + t * (high.x - low.x);
            double y = low.y + t * (high.y - low.y);
            struct vec2 at = edge == 0   ? (struct vec2){x, low.y}
                             : edge == 1 ? (struct vec2){x, high.y}
                             : edge == 2 ? (struct vec2){low.x, y}
                                         : (struct vec2){high.x, y};

            if (!geo_map_from_frame(map, at, &lat_deg, &lng_deg))
                return whole;
            box_add(&box, lat_deg, lng_deg, middle_deg);
        }
    }
    pad_deg = (box.north_deg - box.south_deg) / EDGE_PLACES / EDGE_PLACES;
    box.south_deg = fmax(box.south_deg - pad_deg, -90);
    box.north_deg = fmin(box.north_deg + pad_deg, 90);
    for (int sign = -1; map->kind == GEO_MAP_PLANE && sign <= 1; sign += 2)
        if (is_inside(map, sign * 90, low, high)) {
            box.west_deg = -180;
            box.east_deg = 180;
            if (sign > 0)
                box.north_deg = 90;
            else
                box.south_deg = -90;
        }
    return box;
}

bool geo_box_meets(const struct geo_box *a, const struct geo_box *b)
{
    if (!(a->south_deg <= b->north_deg && b->south_deg <= a->north_deg))
        return false;
    for (int turn = -360; turn <= 360; turn += 360)
        if (a->west_deg + turn <= b->east_deg && b->west_deg <= a->east_deg + turn)
            return true;
    return false;
}
