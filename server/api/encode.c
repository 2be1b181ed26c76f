/*
 * Shared shapes: Locale, hit, cell. What does not exist is present and null.
 */
#include "api/encode.h"

#include "json/json_raw.h"

#include <stdio.h>

const char *const triangulation_names[] = {"anti", "main", "alternating", NULL};

const char *const role_names[] = {"ground", "ceiling", NULL};
const char *const frame_names[] = {"cartesian", "spherical", "cylindrical", NULL};
const char *const pull_names[] = {"in", "out", NULL};

static const char *const fate_words[MESH_FATES] = {
    [MESH_KEPT] = "kept",
    [MESH_FEW_CORNERS] = "few_corners",
    [MESH_MANY_CORNERS] = "many_corners",
    [MESH_NO_AREA] = "no_area",
    [MESH_CROSSES_ITSELF] = "crosses_itself",
    [MESH_AROUND_CENTRE] = "around_centre",
};

const char *encode_contact_status(enum contact_status status)
{
    static const char *const words[] = {"ok", "below", "hole", "outside", "too_far"};

    return words[status];
}

void encode_cell(struct json_writer *w, const uint32_t cell[2])
{
    json_begin_array(w);
    json_integer(w, cell[0]);
    json_integer(w, cell[1]);
    json_end_array(w);
}

void encode_rect(struct json_writer *w, const struct sample_rect *rect)
{
    if (rect->cols == 0) {
        json_null(w);
        return;
    }
    json_begin_array(w);
    json_integer(w, rect->column);
    json_integer(w, rect->row);
    json_integer(w, rect->cols);
    json_integer(w, rect->rows);
    json_end_array(w);
}

static void number_pair(struct json_writer *w, const char *key, double x, double y)
{
    json_key(w, key);
    json_begin_array(w);
    json_number(w, x);
    json_number(w, y);
    json_end_array(w);
}

static void field_members(struct json_writer *w, const struct layer *layer)
{
    const struct heightfield_spec *spec = heightfield_spec(layer->field);

    json_key(w, "cols");
    json_integer(w, spec->cols);
    json_key(w, "rows");
    json_integer(w, spec->rows);
    number_pair(w, "spacing", spec->spacing_x_m, spec->spacing_y_m);
    number_pair(w, "origin", spec->origin_x_m, spec->origin_y_m);
}

static void quaternion(struct json_writer *w, const double q[4])
{
    json_begin_array(w);
    for (int i = 0; i < 4; i++)
        json_number(w, q[i]);
    json_end_array(w);
}

void encode_pose_members(struct json_writer *w, const struct pose *pose)
{
    json_key(w, "translation");
    json_vec3(w, pose->translation);
    if (!pose_is_tilted(pose)) {
        json_key(w, "yaw_deg");
        json_number(w, pose->yaw_deg);
        return;
    }
    json_key(w, "rotation");
    quaternion(w, pose->rotation);
}

static void layer_object(struct json_writer *w, const struct layer *layer)
{
    bool is_mesh = layer->kind == LAYER_MESH;
    struct box3 box;

    json_begin_object(w);
    json_key(w, "id");
    json_string(w, layer->id);
    json_key(w, "kind");
    json_string(w, is_mesh ? "mesh" : "heightfield");
    json_key(w, "role");
    json_string(w, role_names[layer->role]);
    if (is_mesh) {
        json_key(w, "polygons");
        json_integer(w, layer->mesh_stats.polygons);
        json_key(w, "frame");
        json_string(w, frame_names[layer->space.frame]);
        if (layer->space.frame != MESH_CARTESIAN) {
            json_key(w, "gravity");
            json_string(w, pull_names[layer->space.is_outward]);
        }
        if (layer->is_moved) {
            json_key(w, "transform");
            json_begin_object(w);
            encode_pose_members(w, &layer->motion.pose);
            json_end_object(w);
        }
    } else {
        field_members(w, layer);
    }
    json_key(w, "bounds");
    if (layer_bounds(layer, &box))
        json_box3(w, box);
    else
        json_null(w);
    json_key(w, "memory_bytes");
    json_integer(w, layer->memory_bytes);
    json_end_object(w);
}

void encode_axes(struct json_writer *w, const struct mesh_axes *axes)
{
    json_begin_object(w);
    json_key(w, "origin");
    json_vec3(w, axes->origin);
    json_key(w, "axes");
    json_begin_array(w);
    for (int i = 0; i < 3; i++)
        json_vec3(w, axes->axis[i]);
    json_end_array(w);
    json_end_object(w);
}

static void placement_object(struct json_writer *w, const struct placement *placement)
{
    json_begin_object(w);
    json_key(w, "translation");
    json_vec3(w, placement->translation);
    json_key(w, "rotation");
    quaternion(w, placement->rotation);
    json_end_object(w);
}

static void geo_members(struct json_writer *w, double lat_deg, double lng_deg)
{
    json_begin_object(w);
    json_key(w, "lat");
    json_number(w, lat_deg);
    json_key(w, "lng");
    json_number(w, lng_deg);
    json_end_object(w);
}

static void crs_text(struct json_writer *w, uint32_t crs)
{
    char code[16];

    snprintf(code, sizeof code, "EPSG:%u", crs);
    json_string(w, code);
}

static void manifest_members(struct json_writer *w, const struct locale *locale)
{
    const struct locale_manifest *manifest = &locale->manifest;

    json_key(w, "gravity");
    json_vec3(w, manifest->gravity);
    json_key(w, "placement");
    placement_object(w, &manifest->placement);
    json_key(w, "bounds");
    if (locale->has_bounds)
        json_box3(w, locale->bounds);
    else
        json_null(w);
    json_key(w, "open_sky");
    json_boolean(w, manifest->open_sky);
    json_key(w, "triangulation");
    json_string(w, triangulation_names[manifest->triangulation]);
    if (manifest->has_geo) {
        json_key(w, "geo");
        geo_members(w, manifest->geo_lat_deg, manifest->geo_lng_deg);
    }
    if (manifest->crs != 0) {
        json_key(w, "crs");
        crs_text(w, manifest->crs);
    }
}

/* Why polygons were dropped: how many for each reason, and the first of them. */
static void drops_members(struct json_writer *w, const struct mesh_import *import)
{
    json_key(w, "reasons");
    json_begin_object(w);
    for (int i = 0; i < MESH_FATES; i++)
        if (import->by_fate[i] > 0) {
            json_key(w, fate_words[i]);
            json_integer(w, import->by_fate[i]);
        }
    json_end_object(w);
    json_key(w, "dropped_polygons");
    json_begin_array(w);
    for (uint32_t i = 0; i < import->told; i++) {
        json_begin_object(w);
        json_key(w, "polygon");
        json_integer(w, import->drops[i].polygon);
        json_key(w, "reason");
        json_string(w, fate_words[import->drops[i].fate]);
        json_end_object(w);
    }
    json_end_array(w);
}

static void raster_import_object(struct json_writer *w, const struct raster_import *import)
{
    json_begin_object(w);
    json_key(w, "crs");
    if (import->crs != 0)
        crs_text(w, import->crs);
    else
        json_null(w);
    json_key(w, "geo");
    if (import->has_geo)
        geo_members(w, import->lat_deg, import->lng_deg);
    else
        json_null(w);
    if (import->stretch > 0) {
        json_key(w, "stretch");
        json_number(w, import->stretch);
    }
    json_key(w, "vertical_unit_m");
    if (import->vertical_unit_m > 0)
        json_number(w, import->vertical_unit_m);
    else
        json_null(w);
    json_key(w, "height_scale");
    json_number(w, import->height_scale);
    json_key(w, "height_offset");
    json_number(w, import->height_offset);
    json_end_object(w);
}

static void mesh_import_object(struct json_writer *w, const struct mesh_import *import)
{
    json_begin_object(w);
    json_key(w, "kept");
    json_integer(w, import->kept);
    json_key(w, "split");
    json_integer(w, import->split);
    json_key(w, "dropped");
    json_integer(w, import->dropped);
    if (import->dropped > 0)
        drops_members(w, import);
    if (import->precision_m > 0) {
        json_key(w, "precision_m");
        json_number(w, import->precision_m);
    }
    json_end_object(w);
}

void encode_locale_open(struct json_writer *w, const struct locale *locale, bool with_layers,
                        const struct imported *import)
{
    json_begin_object(w);
    json_key(w, "id");
    json_string(w, locale->id);
    json_key(w, "title");
    json_string_or_null(w, locale->manifest.title);
    json_key(w, "revision");
    json_integer(w, locale->revision);
    if (locale->manifest.from[0] != '\0') {
        json_key(w, "from");
        json_string(w, locale->manifest.from);
        json_key(w, "from_revision");
        json_integer(w, locale->manifest.from_revision);
    }
    if (locale->transform_seq > 0) {
        json_key(w, "transform_seq");
        json_integer(w, locale->transform_seq);
    }
    manifest_members(w, locale);
    if (with_layers) {
        json_key(w, "layers");
        json_begin_array(w);
        for (size_t i = 0; i < locale->layer_count; i++)
            layer_object(w, locale->layers[i]);
        json_end_array(w);
    }
    json_key(w, "memory_bytes");
    json_integer(w, locale->memory_bytes);
    if (import) {
        json_key(w, "import");
        if (import->is_raster)
            raster_import_object(w, &import->raster);
        else
            mesh_import_object(w, &import->mesh);
    }
}

void encode_locale(struct json_writer *w, const struct locale *locale,
                   const struct imported *import)
{
    encode_locale_open(w, locale, true, import);
    json_end_object(w);
}

void encode_hit_members(struct json_writer *w, const struct locale_hit *hit)
{
    char *at = json_open_room(w, ENCODED_HIT_BYTES), *end;

    if (!at)
        return;
    end = encode_hit_raw(at, hit);
    memmove(at, at + 1, (size_t)(end - at) - 1); /* no comma before the first one */
    json_close_room(w, end - 1);
}

char *encode_id_raw(char *at, const char *id)
{
    *at++ = '"'; /* an id needs no escapes */
    at = json_raw_text(at, id, strlen(id));
    *at++ = '"';
    return at;
}

char *encode_layer_raw(char *at, const struct layer *layer)
{
    at = JSON_RAW(at, ",\"layer\":");
    if (layer->body.patch == 0)
        return encode_id_raw(at, layer->id);
    at = json_raw_integer(JSON_RAW(at, "null,\"body\":{\"patch\":"), layer->body.patch);
    at = json_raw_integer(JSON_RAW(at, ",\"number\":"), layer->body.number);
    return JSON_RAW(at, "}");
}

char *encode_cell_raw(char *at, const struct layer *layer, const uint32_t cell[2])
{
    at = JSON_RAW(at, ",\"cell\":");
    return layer->kind == LAYER_HEIGHTFIELD ? json_raw_cell(at, cell) : JSON_RAW(at, "null");
}

char *encode_polygon_raw(char *at, const struct layer *layer, uint32_t polygon)
{
    at = JSON_RAW(at, ",\"polygon\":");
    return layer->kind == LAYER_MESH ? json_raw_integer(at, polygon) : JSON_RAW(at, "null");
}

char *encode_velocity_raw(char *at, const struct layer *layer, struct vec3 velocity)
{
    if (!layer->is_moved)
        return at;
    at = JSON_RAW(at, ",\"velocity\":");
    return json_raw_vec3(at, velocity);
}

char *encode_hit_place_raw(char *at, const struct locale_hit *hit)
{
    if (!hit)
        return JSON_RAW(at, ",\"point\":null,\"normal\":null,\"layer\":null,\"cell\":null,"
                            "\"triangle\":null,\"polygon\":null");
    at = JSON_RAW(at, ",\"point\":");
    at = json_raw_vec3(at, hit->at.point);
    at = JSON_RAW(at, ",\"normal\":");
    at = json_raw_vec3(at, hit->at.normal);
    at = encode_layer_raw(at, hit->layer);
    at = encode_cell_raw(at, hit->layer, hit->at.cell);
    at = JSON_RAW(at, ",\"triangle\":");
    at = hit->layer->kind == LAYER_HEIGHTFIELD ? json_raw_integer(at, (uint64_t)hit->at.triangle)
                                               : JSON_RAW(at, "null");
    at = encode_polygon_raw(at, hit->layer, hit->polygon);
    return encode_velocity_raw(at, hit->layer, hit->velocity);
}

char *encode_hit_raw(char *at, const struct locale_hit *hit)
{
    at = JSON_RAW(at, ",\"distance\":");
    at = json_raw_number(at, hit->at.t);
    return encode_hit_place_raw(at, hit);
}

char *encode_ray_hit_raw(char *at, const struct ray *ray, const struct locale_hit *hit)
{
    if (!hit)
        return encode_hit_place_raw(JSON_RAW(at, ",\"t\":null,\"distance\":null"), NULL);
    at = JSON_RAW(at, ",\"t\":");
    at = json_raw_number(at, hit->at.t);
    at = JSON_RAW(at, ",\"distance\":");
    at = json_raw_number(at, ray_distance_m(ray, hit->at.t));
    return encode_hit_place_raw(at, hit);
}
