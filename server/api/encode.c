/*
 * Shared shapes: Locale, hit, cell. What does not exist is present and null.
 */
#include "api/encode.h"

#include "json/json_raw.h"

#include <math.h>
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

void encode_locale_members(struct json_writer *w, const struct locale *locale)
{
    json_put_string_or_null(w, "locale", locale ? locale->id : NULL);
    json_put_integer_or_null(w, "revision", locale != NULL, locale ? locale->revision : 0);
}

void encode_cell(struct json_writer *w, const uint32_t cell[2])
{
    json_numbers(w, (double[]){cell[0], cell[1]}, 2);
}

void encode_rect(struct json_writer *w, const struct sample_rect *rect)
{
    if (rect->cols == 0) {
        json_null(w);
        return;
    }
    json_numbers(w, (double[]){rect->column, rect->row, rect->cols, rect->rows}, 4);
}

static void field_members(struct json_writer *w, const struct layer *layer)
{
    const struct heightfield_spec *spec = heightfield_spec(layer->field);

    json_put_integer(w, "cols", spec->cols);
    json_put_integer(w, "rows", spec->rows);
    json_put_numbers(w, "spacing", (double[]){spec->spacing_x_m, spec->spacing_y_m}, 2);
    json_put_numbers(w, "origin", (double[]){spec->origin_x_m, spec->origin_y_m}, 2);
}

void encode_pose_members(struct json_writer *w, const struct pose *pose)
{
    json_put_vec3(w, "translation", pose->translation);
    if (!pose_is_tilted(pose)) {
        json_put_number(w, "yaw_deg", pose->yaw_deg);
        return;
    }
    json_put_numbers(w, "rotation", pose->rotation, 4);
}

static void layer_object(struct json_writer *w, const struct layer *layer)
{
    bool is_mesh = layer->kind == LAYER_MESH;
    struct box3 box;

    json_begin_object(w);
    json_put_string(w, "id", layer->id);
    json_put_string(w, "kind", is_mesh ? "mesh" : "heightfield");
    json_put_string(w, "role", role_names[layer->role]);
    if (is_mesh) {
        json_put_integer(w, "polygons", layer->mesh_stats.polygons);
        json_put_string(w, "frame", frame_names[layer->space.frame]);
        if (layer->space.frame != MESH_CARTESIAN) {
            json_put_string(w, "gravity", pull_names[layer->space.is_outward]);
        }
        if (layer->is_moved) {
            json_put_object(w, "transform");
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
    json_put_integer(w, "memory_bytes", layer->memory_bytes);
    json_end_object(w);
}

void encode_axes(struct json_writer *w, const struct mesh_axes *axes)
{
    json_begin_object(w);
    json_put_vec3(w, "origin", axes->origin);
    json_put_array(w, "axes");
    for (int i = 0; i < 3; i++)
        json_vec3(w, axes->axis[i]);
    json_end_array(w);
    json_end_object(w);
}

static void placement_object(struct json_writer *w, const struct placement *placement)
{
    json_begin_object(w);
    json_put_vec3(w, "translation", placement->translation);
    json_put_numbers(w, "rotation", placement->rotation, 4);
    json_end_object(w);
}

static void geo_members(struct json_writer *w, double lat_deg, double lng_deg)
{
    json_begin_object(w);
    json_put_number(w, "lat", lat_deg);
    json_put_number(w, "lng", lng_deg);
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

    json_put_vec3(w, "gravity", manifest->gravity);
    json_key(w, "placement");
    placement_object(w, &manifest->placement);
    json_key(w, "bounds");
    if (locale->has_bounds)
        json_box3(w, locale->bounds);
    else
        json_null(w);
    json_put_boolean(w, "open_sky", manifest->open_sky);
    json_put_string(w, "triangulation", triangulation_names[manifest->triangulation]);
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
    json_put_object(w, "reasons");
    for (int i = 0; i < MESH_FATES; i++)
        if (import->by_fate[i] > 0) {
            json_put_integer(w, fate_words[i], import->by_fate[i]);
        }
    json_end_object(w);
    json_put_array(w, "dropped_polygons");
    for (uint32_t i = 0; i < import->told; i++) {
        json_begin_object(w);
        json_put_integer(w, "polygon", import->drops[i].polygon);
        json_put_string(w, "reason", fate_words[import->drops[i].fate]);
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
        json_put_number(w, "stretch", import->stretch);
    }
    json_put_number(w, "vertical_unit_m",
                    import->vertical_unit_m > 0 ? import->vertical_unit_m : NAN);
    json_put_number(w, "height_scale", import->height_scale);
    json_put_number(w, "height_offset", import->height_offset);
    json_end_object(w);
}

static void mesh_import_object(struct json_writer *w, const struct mesh_import *import)
{
    json_begin_object(w);
    json_put_integer(w, "kept", import->kept);
    json_put_integer(w, "split", import->split);
    json_put_integer(w, "dropped", import->dropped);
    if (import->dropped > 0)
        drops_members(w, import);
    json_key(w, "instances_shared");
    json_integer(w, import->instances_shared);
    json_key(w, "instances_copied");
    json_integer(w, import->instances_copied);
    if (import->precision_m > 0) {
        json_put_number(w, "precision_m", import->precision_m);
    }
    json_end_object(w);
}

void encode_locale_open(struct json_writer *w, const struct locale *locale, bool with_layers,
                        const struct imported *import)
{
    json_begin_object(w);
    json_put_string(w, "id", locale->id);
    json_put_string_or_null(w, "title", locale->manifest.title);
    json_put_integer(w, "revision", locale->revision);
    if (locale->manifest.from[0] != '\0') {
        json_put_string(w, "from", locale->manifest.from);
        json_put_integer(w, "from_revision", locale->manifest.from_revision);
    }
    if (locale->transform_seq > 0) {
        json_put_integer(w, "transform_seq", locale->transform_seq);
    }
    manifest_members(w, locale);
    if (with_layers) {
        json_put_array(w, "layers");
        for (size_t i = 0; i < locale->layer_count; i++)
            layer_object(w, locale->layers[i]);
        json_end_array(w);
    }
    json_put_integer(w, "memory_bytes", locale->memory_bytes);
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
