/*
 * GET …/3dtiles/tileset.json          ->  3D Tiles 1.1: the mesh layers at their place
 * GET …/3dtiles/{layer}.glb?step=&v=  ->  a layer as binary glTF: a mesh in its own frame, or
 *                                         each step-th sample of a heightfield
 *
 * The root's transform takes the locale's frame to earth-centred metres: for `geo` the axes east,
 * north and up of the origin, exactly; for a `crs` the map's derivative in the middle of the
 * meshes, since no one matrix is the map. A child is a mesh layer; one that was moved has its pose
 * as transform, so that a move changes this document and no model.
 */
#include "api/calls.h"

#include "api/answer/file.h"
#include "api/maps/map_ground.h"
#include "api/options.h"
#include "formats/polygon/glb_encode.h"
#include "terrain/motion.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD_SAMPLES_DEFAULT 1000000.0 /* of a heightfield, without step */

struct matrix {
    struct vec3 x, y, z, at; /* columns */
};

/* ---- the tileset ----------------------------------------------------------------------------- */

static struct vec3 ecef_of(const struct geo_map *map, struct vec2 at)
{
    double lat_deg = 0, lng_deg = 0;

    geo_map_from_frame(map, at, &lat_deg, &lng_deg);
    return geo_ecef(lat_deg, lng_deg, 0);
}

static struct matrix to_earth(const struct geo_map *map, struct vec2 middle)
{
    const double step = 1; /* metres */
    struct vec3 origin = {0, 0, 0}, x, y, up;
    double lat_deg = 0, lng_deg = 0, lat, lng;

    if (map->kind == GEO_MAP_PLANE)
        middle = (struct vec2){0, 0};
    geo_map_from_frame(map, middle, &lat_deg, &lng_deg);
    lat = lat_deg * M_PI / 180;
    lng = lng_deg * M_PI / 180;
    up = (struct vec3){cos(lat) * cos(lng), cos(lat) * sin(lng), sin(lat)};
    if (map->kind == GEO_MAP_PLANE) {
        lng = map->plane.lng_deg * M_PI / 180; /* at a pole the longitude says where east is */
        x = (struct vec3){-sin(lng), cos(lng), 0};
        up = (struct vec3){map->plane.cos_lat * cos(lng), map->plane.cos_lat * sin(lng),
                           map->plane.sin_lat};
        y = vec3_cross(up, x);
        origin = (struct vec3){map->plane.across_m * cos(lng), map->plane.across_m * sin(lng),
                               map->plane.along_m};
        return (struct matrix){x, y, up, origin};
    }
    origin = ecef_of(map, middle);
    x = vec3_scale(vec3_sub(ecef_of(map, (struct vec2){middle.x + step, middle.y}),
                            ecef_of(map, (struct vec2){middle.x - step, middle.y})),
                   1 / (2 * step));
    y = vec3_scale(vec3_sub(ecef_of(map, (struct vec2){middle.x, middle.y + step}),
                            ecef_of(map, (struct vec2){middle.x, middle.y - step})),
                   1 / (2 * step));
    origin = vec3_sub(origin, vec3_add(vec3_scale(x, middle.x), vec3_scale(y, middle.y)));
    return (struct matrix){x, y, up, origin};
}

static void write_transform(struct json_writer *w, const struct matrix *m)
{
    const double values[] = {m->x.x, m->x.y, m->x.z, 0, m->y.x,  m->y.y,  m->y.z,  0,
                             m->z.x, m->z.y, m->z.z, 0, m->at.x, m->at.y, m->at.z, 1};

    json_put_numbers(w, "transform", values, 16);
}

static void write_box(struct json_writer *w, const struct box3 *box)
{
    struct vec3 middle = vec3_scale(vec3_add(box->min, box->max), 0.5);
    struct vec3 half = vec3_scale(vec3_sub(box->max, box->min), 0.5);
    const double values[] = {middle.x, middle.y, middle.z, half.x, 0, 0,
                             0,        half.y,   0,        0,      0, half.z};

    json_put_object(w, "boundingVolume");
    json_put_numbers(w, "box", values, 12);
    json_end_object(w);
}

static void write_child(struct call *call, const struct layer *layer)
{
    struct json_writer *w = &call->out;
    struct box3 box = mesh_bounds(layer->mesh);
    char uri[WORLD_ID_MAX + 40 + CALL_AT_BYTES], earlier[CALL_AT_BYTES];

    call_write_at(call, earlier);
    json_begin_object(w);
    if (layer->is_moved) {
        struct matrix pose = {motion_turn_out(&layer->motion, (struct vec3){1, 0, 0}),
                              motion_turn_out(&layer->motion, (struct vec3){0, 1, 0}),
                              motion_turn_out(&layer->motion, (struct vec3){0, 0, 1}),
                              layer->motion.pose.translation};

        write_transform(w, &pose);
    }
    write_box(w, &box);
    json_put_number(w, "geometricError", 0);
    json_put_object(w, "content");
    snprintf(uri, sizeof uri, "%s.glb?v=%llu%s", layer->id,
             (unsigned long long)call->locale->revision, earlier);
    json_put_string(w, "uri", uri);
    json_end_object(w);
    json_end_object(w);
}

/* The box of all mesh layers in their poses; false: there is none. */
static bool box_of(const struct locale *locale, struct box3 *out)
{
    bool is_any = false;

    for (size_t i = 0; i < locale->layer_count; i++) {
        struct box3 box;

        if (locale->layers[i]->kind != LAYER_MESH || !layer_bounds(locale->layers[i], &box))
            continue;
        *out = is_any ? box3_union(*out, box) : box;
        is_any = true;
    }
    return is_any;
}

enum err_code tileset_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {NULL};
    const struct locale *locale = call->locale;
    struct json_writer *w = &call->out;
    struct geo_map map;
    struct matrix transform;
    struct box3 box;
    double size_m;

    if (options_open_query(call, names, err) || map_of_locale(locale, &map, err))
        return err->code;
    if (!box_of(locale, &box))
        return err_set_at(err, ERR_UNPROCESSABLE, "locale",
                          "locale %s has no mesh layer for a tileset", locale->id);
    size_m = vec3_length(vec3_sub(box.max, box.min));
    transform =
        to_earth(&map, (struct vec2){(box.min.x + box.max.x) / 2, (box.min.y + box.max.y) / 2});
    call_header(call, "Cache-Control", "no-cache");
    json_begin_object(w);
    json_put_object(w, "asset");
    json_put_string(w, "version", "1.1");
    json_end_object(w);
    json_put_number(w, "geometricError", size_m);
    json_put_object(w, "root");
    write_transform(w, &transform);
    write_box(w, &box);
    json_put_number(w, "geometricError", size_m);
    json_put_string(w, "refine", "ADD");
    json_put_array(w, "children");
    for (size_t i = 0; i < locale->layer_count; i++)
        if (locale->layers[i]->kind == LAYER_MESH)
            write_child(call, locale->layers[i]);
    json_end_array(w);
    json_end_object(w);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(tileset_get, 1, CALL_NEEDS_VALUE)

/* ---- a model --------------------------------------------------------------------------------- */

/* Without one, the least power of two that keeps a heightfield within FIELD_SAMPLES_DEFAULT. */
static uint32_t default_step(const struct layer *layer)
{
    const struct heightfield_spec *spec;
    uint32_t step = 1;

    if (layer->kind == LAYER_MESH)
        return 1;
    spec = heightfield_spec(layer->field);
    while ((double)spec->cols / step * ((double)spec->rows / step) > FIELD_SAMPLES_DEFAULT)
        step *= 2;
    return step;
}

static enum err_code encode_set(struct call *call, const struct layer *layer,
                                const struct polygon_set *set, uint32_t step,
                                struct raster_bytes *out, struct err *err)
{
    uint64_t most = layer->kind == LAYER_MESH
                        ? glb_polygons_bytes_max(set)
                        : glb_field_bytes_max(heightfield_spec(layer->field), step);

    if (answer_check_length(call, most, "the layer as glb", err))
        return err->code;
    if (layer->kind == LAYER_MESH)
        glb_encode_polygons(set, out, err);
    else
        glb_encode_field(layer->field, step, out, err);
    if (err->code == ERR_UNPROCESSABLE) /* no triangle */
        err_at(err, "%s", layer->kind == LAYER_MESH ? "layer" : "step");
    return err->code;
}

static enum err_code encode(struct call *call, const struct layer *layer, uint32_t step,
                            struct raster_bytes *out, struct err *err)
{
    struct polygon_set made = {.vertices = NULL};
    const struct polygon_set *set = NULL;

    if (layer->kind == LAYER_MESH)
        set = polygon_set_flat(layer_polygon_set(layer), &made, err);
    if (set || layer->kind == LAYER_HEIGHTFIELD)
        encode_set(call, layer, set, step, out, err);
    polygon_set_free(&made);
    return err->code;
}

enum err_code layer_glb_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"step", "v", NULL};
    struct tile_image image = {.media_type = "model/gltf-binary"};
    const struct tile_key key = {.level = 0}; /* not kept */
    struct tile_entry *entry = NULL;
    char id[WORLD_ID_MAX + 1], tag[TILE_TAG_BYTES];
    const struct layer *layer;
    uint64_t v = 0, step;

    if (call_param_id(call, 1, "layer", ERR_LAYER_UNKNOWN, id, err) ||
        options_open_query(call, names, err) || option_integer(call, "v", 1, UINT64_MAX, &v, err))
        return err->code;
    layer = locale_layer(call->locale, id);
    if (!layer)
        return locale_no_layer(call->locale, id, ERR_LAYER_UNKNOWN, err);
    step = default_step(layer);
    if (option_integer(call, "step", 1, HEIGHTFIELD_SIDE_MAX, &step, err) ||
        encode(call, layer, (uint32_t)step, &image.bytes, err))
        return err->code;
    tile_tag_of(image.bytes.at, image.bytes.length / 4, 4, "glb", tag);
    entry = tile_entry_create(&key, tag, &image, err);
    free(image.bytes.at);
    if (entry)
        map_send(call, entry, v, err);
    tile_entry_unref(entry);
    return err->code;
}
API_HANDLER(layer_glb_get, 2, CALL_NEEDS_VALUE)
