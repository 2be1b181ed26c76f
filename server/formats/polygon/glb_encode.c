/*
 * Writing binary glTF.
 *
 * A file is a header, a JSON chunk and a chunk of bytes: positions, normals, indices. Float32 of
 * coordinates in a projected system would be off by half a metre, so positions are relative to the
 * middle of the box, which is the node's translation. A polygon's corners are its own, because its
 * normal is; a concave one is cut into ears in the plane that its area is greatest in.
 *
 * Source: Khronos, "glTF 2.0 Specification", 2021, sections 3.6, 4.4.
 */
#include "formats/polygon/glb_encode.h"

#include "formats/polygon/polygon_triangles.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_BYTES_MAX = 1536, VERTEX_BYTES = 24, TRIANGLE_BYTES = 12 };

struct surface {
    float *positions, *normals; /* [3 vertex_count], in glTF's axes */
    uint32_t *indices;
    size_t vertex_count, index_count;
    struct vec3 middle;
};

static void surface_free(struct surface *surface)
{
    free(surface->positions);
    free(surface->normals);
    free(surface->indices);
}

static enum err_code surface_allocate(size_t vertices, size_t indices, struct surface *out,
                                      struct err *err)
{
    *out = (struct surface){.positions = malloc((vertices + 1) * 3 * sizeof(float)),
                            .normals = malloc((vertices + 1) * 3 * sizeof(float)),
                            .indices = malloc((indices + 1) * sizeof(uint32_t))};
    if (out->positions && out->normals && out->indices)
        return ERR_OK;
    surface_free(out);
    return err_set(err, ERR_NO_MEMORY, "no memory for %zu vertices of a model", vertices);
}

static void add_vertex(struct surface *surface, struct vec3 point, struct vec3 normal)
{
    float *p = surface->positions + 3 * surface->vertex_count;
    float *n = surface->normals + 3 * surface->vertex_count++;
    struct vec3 d = vec3_sub(point, surface->middle);

    p[0] = (float)d.x;
    p[1] = (float)d.z;
    p[2] = (float)-d.y;
    n[0] = (float)normal.x;
    n[1] = (float)normal.z;
    n[2] = (float)-normal.y;
}

static void add_triangle(struct surface *surface, size_t a, size_t b, size_t c)
{
    uint32_t *to = surface->indices + surface->index_count;

    to[0] = (uint32_t)a;
    to[1] = (uint32_t)b;
    to[2] = (uint32_t)c;
    surface->index_count += 3;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int write_json(const struct surface *surface, char out[JSON_BYTES_MAX])
{
    size_t bytes = surface->vertex_count * 12;
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};

    for (size_t i = 0; i < 3 * surface->vertex_count; i++) {
        low[i % 3] = fmin(low[i % 3], (double)surface->positions[i]);
        high[i % 3] = fmax(high[i % 3], (double)surface->positions[i]);
    }
    return snprintf(
        out, JSON_BYTES_MAX,
        "{\"asset\":{\"version\":\"2.0\",\"generator\":\"kota\"},\"scene\":0,"
        "\"scenes\":[{\"nodes\":[0]}],"
        "\"nodes\":[{\"mesh\":0,\"translation\":[%.17g,%.17g,%.17g]}],"
        "\"materials\":[{\"pbrMetallicRoughness\":{\"baseColorFactor\":[0.6,0.6,0.55,1],"
        "\"metallicFactor\":0,\"roughnessFactor\":1},\"doubleSided\":true}],"
        "\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":0,\"NORMAL\":1},"
        "\"indices\":2,\"material\":0}]}],"
        "\"accessors\":[{\"bufferView\":0,\"componentType\":5126,\"count\":%zu,\"type\":\"VEC3\","
        "\"min\":[%.9g,%.9g,%.9g],\"max\":[%.9g,%.9g,%.9g]},"
        "{\"bufferView\":1,\"componentType\":5126,\"count\":%zu,\"type\":\"VEC3\"},"
        "{\"bufferView\":2,\"componentType\":5125,\"count\":%zu,\"type\":\"SCALAR\"}],"
        "\"bufferViews\":[{\"buffer\":0,\"byteLength\":%zu,\"target\":34962},"
        "{\"buffer\":0,\"byteOffset\":%zu,\"byteLength\":%zu,\"target\":34962},"
        "{\"buffer\":0,\"byteOffset\":%zu,\"byteLength\":%zu,\"target\":34963}],"
        "\"buffers\":[{\"byteLength\":%zu}]}",
        surface->middle.x, surface->middle.z, -surface->middle.y, surface->vertex_count, low[0],
        low[1], low[2], high[0], high[1], high[2], surface->vertex_count, surface->index_count,
        bytes, bytes, bytes, 2 * bytes, surface->index_count * 4,
        2 * bytes + surface->index_count * 4);
}

static void put_u32(uint8_t **to, size_t value)
{
    memcpy(*to, &(uint32_t){(uint32_t)value}, 4);
    *to += 4;
}

static void put_bytes(uint8_t **to, const void *bytes, size_t length)
{
    memcpy(*to, bytes, length);
    *to += length;
}

static enum err_code write_file(const struct surface *surface, struct raster_bytes *out,
                                struct err *err)
{
    char json[JSON_BYTES_MAX + 4];
    size_t vertices = surface->vertex_count * 12, indices = surface->index_count * 4;
    size_t json_bytes, binary = 2 * vertices + indices;
    uint8_t *to;

    if (surface->index_count == 0)
        return err_set(err, ERR_UNPROCESSABLE, "there is no triangle to be shown");
    json_bytes = (size_t)write_json(surface, json);
    while (json_bytes % 4)
        json[json_bytes++] = ' ';
    out->length = 12 + 8 + json_bytes + 8 + binary;
    out->at = to = malloc(out->length);
    if (!to)
        return err_set(err, ERR_NO_MEMORY, "no memory for a model of %zu bytes", out->length);
    put_u32(&to, 0x46546c67);
    put_u32(&to, 2);
    put_u32(&to, out->length);
    put_u32(&to, json_bytes);
    put_u32(&to, 0x4e4f534a);
    put_bytes(&to, json, json_bytes);
    put_u32(&to, binary);
    put_u32(&to, 0x004e4942);
    put_bytes(&to, surface->positions, vertices);
    put_bytes(&to, surface->normals, vertices);
    put_bytes(&to, surface->indices, indices);
    return ERR_OK;
}

/* ---- polygons -------------------------------------------------------------------------------- */

uint64_t glb_polygons_bytes_max(const struct polygon_set *set)
{
    return JSON_BYTES_MAX +
           (uint64_t)set->starts[set->polygon_count] * (VERTEX_BYTES + TRIANGLE_BYTES);
}

static void add_polygon(struct surface *surface, const struct polygon_set *set, size_t polygon,
                        struct polygon_cutter *cutter)
{
    const uint32_t *corners = set->corners + set->starts[polygon], *cut;
    const uint32_t count = set->starts[polygon + 1] - set->starts[polygon];
    const size_t first = surface->vertex_count;
    struct vec3 area, normal;
    const uint32_t triangles = polygon_cut(cutter, set, polygon, &cut, &area);

    if (triangles == 0)
        return;
    normal = vec3_unit(area);
    for (uint32_t i = 0; i < count; i++)
        add_vertex(surface, set->vertices[corners[i]], normal);
    for (uint32_t t = 0; t < triangles; t++)
        add_triangle(surface, first + cut[3 * t], first + cut[3 * t + 1], first + cut[3 * t + 2]);
}

enum err_code glb_encode_polygons(const struct polygon_set *set, struct raster_bytes *out,
                                  struct err *err)
{
    size_t corners = set->starts[set->polygon_count];
    struct polygon_cutter *cutter = polygon_cutter_create();
    struct box3 box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    struct surface surface;

    if (!cutter)
        err_set(err, ERR_NO_MEMORY, "no memory for a model");
    else if (surface_allocate(corners, 3 * corners, &surface, err) == ERR_OK) {
        for (size_t i = 0; i < corners; i++)
            box = box3_union(
                box, (struct box3){set->vertices[set->corners[i]], set->vertices[set->corners[i]]});
        surface.middle =
            corners ? vec3_scale(vec3_add(box.min, box.max), 0.5) : (struct vec3){0, 0, 0};
        for (size_t i = 0; i < set->polygon_count; i++)
            add_polygon(&surface, set, i, cutter);
        write_file(&surface, out, err);
        surface_free(&surface);
    }
    polygon_cutter_destroy(cutter);
    return err->code;
}

/* ---- heightfields ---------------------------------------------------------------------------- */

static uint32_t kept(uint32_t samples, uint32_t step)
{
    return (samples - 1) / step + 1;
}

uint64_t glb_field_bytes_max(const struct heightfield_spec *spec, uint32_t step)
{
    return JSON_BYTES_MAX + (uint64_t)kept(spec->cols, step) * kept(spec->rows, step) *
                                (VERTEX_BYTES + 2 * TRIANGLE_BYTES);
}

static float sample(const struct heightfield *field, uint32_t c, uint32_t r)
{
    return heightfield_sample(field, c, r);
}

/* Up, of the slopes to the samples on both sides, without those that are holes or not there. */
static struct vec3 normal_at(const struct heightfield *field, uint32_t c, uint32_t r)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    float here = sample(field, c, r);
    float west = c > 0 ? sample(field, c - 1, r) : NAN;
    float east = c + 1 < spec->cols ? sample(field, c + 1, r) : NAN;
    float south = r > 0 ? sample(field, c, r - 1) : NAN;
    float north = r + 1 < spec->rows ? sample(field, c, r + 1) : NAN;
    int across = 2 - isnan(west) - isnan(east), along = 2 - isnan(south) - isnan(north);
    double dx = (double)(isnan(east) ? here : east) - (double)(isnan(west) ? here : west);
    double dy = (double)(isnan(north) ? here : north) - (double)(isnan(south) ? here : south);

    return vec3_unit((struct vec3){across ? -dx / (across * spec->spacing_x_m) : 0,
                                   along ? -dy / (along * spec->spacing_y_m) : 0, 1});
}

/* Both triangles of a cell of vertices, numbers from 0, UINT32_MAX where there is none. */
static void add_cell(struct surface *surface, const uint32_t v[4], bool is_main)
{
    static const int order[2][6] = {{0, 1, 2, 1, 3, 2}, {0, 1, 3, 0, 3, 2}};

    for (int t = 0; t < 6; t += 3) {
        uint32_t a = v[order[is_main][t]], b = v[order[is_main][t + 1]];
        uint32_t c = v[order[is_main][t + 2]];

        if (a != UINT32_MAX && b != UINT32_MAX && c != UINT32_MAX)
            add_triangle(surface, a, b, c);
    }
}

static void add_field(struct surface *surface, const struct heightfield *field, uint32_t step,
                      uint32_t *below, uint32_t *here)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    uint32_t cols = kept(spec->cols, step), rows = kept(spec->rows, step);

    for (uint32_t j = 0; j < rows; j++) {
        uint32_t *swap = below;

        for (uint32_t i = 0; i < cols; i++) {
            float h = sample(field, i * step, j * step);

            here[i] = isnan(h) ? UINT32_MAX : (uint32_t)surface->vertex_count;
            if (!isnan(h))
                add_vertex(surface,
                           (struct vec3){spec->origin_x_m + i * step * spec->spacing_x_m,
                                         spec->origin_y_m + j * step * spec->spacing_y_m,
                                         (double)h},
                           normal_at(field, i * step, j * step));
        }
        for (uint32_t i = 0; j > 0 && i + 1 < cols; i++)
            add_cell(surface, (uint32_t[]){below[i], below[i + 1], here[i], here[i + 1]},
                     spec->triangulation == TRIANGULATION_MAIN ||
                         (spec->triangulation == TRIANGULATION_ALTERNATING && (i + j - 1) % 2));
        below = here;
        here = swap;
    }
}

enum err_code glb_encode_field(const struct heightfield *field, uint32_t step,
                               struct raster_bytes *out, struct err *err)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    size_t cols = kept(spec->cols, step), vertices = cols * kept(spec->rows, step);
    uint32_t *rows = malloc(2 * cols * sizeof *rows);
    struct surface surface;
    struct box3 box;

    if (!rows)
        return err_set(err, ERR_NO_MEMORY, "no memory for a model");
    if (surface_allocate(vertices, 6 * vertices, &surface, err) == ERR_OK) {
        heightfield_bounds(field, &box);
        surface.middle = vec3_scale(vec3_add(box.min, box.max), 0.5);
        add_field(&surface, field, step, rows, rows + cols);
        write_file(&surface, out, err);
        surface_free(&surface);
    }
    free(rows);
    return err->code;
}
