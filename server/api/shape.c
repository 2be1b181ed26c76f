/*
 * Shared shapes: Locale, hit, cell. What does not exist is present and null.
 */
#include "api/shape.h"

#include "api/json_pieces.h"

const char *const shape_triangulations[] = {"anti", "main", "alternating", NULL};

const char *const shape_roles[] = {"ground", "ceiling", NULL};
const char *const shape_frames[] = {"cartesian", "spherical", "cylindrical", NULL};
const char *const shape_pulls[] = {"in", "out", NULL};

const char *shape_ground_status(enum ground_status status)
{
    static const char *const words[] = {"ok", "hole", "outside"};

    return words[status];
}

void shape_cell(struct json_writer *w, const uint32_t cell[2])
{
    json_begin_array(w);
    json_integer(w, cell[0]);
    json_integer(w, cell[1]);
    json_end_array(w);
}

void shape_rect(struct json_writer *w, const struct sample_rect *rect)
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

void shape_pose_members(struct json_writer *w, const struct pose *pose)
{
    json_key(w, "translation");
    json_vec3(w, pose->translation);
    json_key(w, "yaw_deg");
    json_number(w, pose->yaw_deg);
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
    json_string(w, shape_roles[layer->role]);
    if (is_mesh) {
        json_key(w, "polygons");
        json_integer(w, layer->mesh_stats.polygons);
        json_key(w, "frame");
        json_string(w, shape_frames[layer->space.frame]);
        if (layer->space.frame != MESH_CARTESIAN) {
            json_key(w, "gravity");
            json_string(w, shape_pulls[layer->space.is_outward]);
        }
        if (layer->is_moved) {
            json_key(w, "transform");
            json_begin_object(w);
            shape_pose_members(w, &layer->motion.pose);
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

static void placement_object(struct json_writer *w, const struct placement *placement)
{
    json_begin_object(w);
    json_key(w, "translation");
    json_vec3(w, placement->translation);
    json_key(w, "rotation");
    json_begin_array(w);
    for (int i = 0; i < 4; i++)
        json_number(w, placement->rotation[i]);
    json_end_array(w);
    json_end_object(w);
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
    json_string(w, shape_triangulations[manifest->triangulation]);
    if (manifest->has_geo) {
        json_key(w, "geo");
        json_begin_object(w);
        json_key(w, "lat");
        json_number(w, manifest->geo_lat_deg);
        json_key(w, "lng");
        json_number(w, manifest->geo_lng_deg);
        json_end_object(w);
    }
}

static void import_object(struct json_writer *w, const struct mesh_import *import)
{
    json_begin_object(w);
    json_key(w, "kept");
    json_integer(w, import->kept);
    json_key(w, "split");
    json_integer(w, import->split);
    json_key(w, "dropped");
    json_integer(w, import->dropped);
    json_end_object(w);
}

void shape_locale_open(struct json_writer *w, const struct locale *locale,
                       const struct mesh_import *import)
{
    json_begin_object(w);
    json_key(w, "id");
    json_string(w, locale->id);
    json_key(w, "title");
    if (locale->manifest.title[0] != '\0')
        json_string(w, locale->manifest.title);
    else
        json_null(w);
    json_key(w, "revision");
    json_integer(w, locale->revision);
    if (locale->transform_seq > 0) {
        json_key(w, "transform_seq");
        json_integer(w, locale->transform_seq);
    }
    manifest_members(w, locale);
    json_key(w, "layers");
    json_begin_array(w);
    for (size_t i = 0; i < locale->layer_count; i++)
        layer_object(w, locale->layers[i]);
    json_end_array(w);
    json_key(w, "memory_bytes");
    json_integer(w, locale->memory_bytes);
    if (import) {
        json_key(w, "import");
        import_object(w, import);
    }
}

void shape_locale(struct json_writer *w, const struct locale *locale,
                  const struct mesh_import *import)
{
    shape_locale_open(w, locale, import);
    json_end_object(w);
}

void shape_hit_members(struct json_writer *w, const struct locale_hit *hit)
{
    char *at = json_open_room(w, SHAPE_HIT_BYTES), *behind;

    if (!at)
        return;
    behind = shape_hit_pieces(at, hit);
    memmove(at, at + 1, (size_t)(behind - at) - 1); /* no comma before the first one */
    json_close_room(w, behind - 1);
}

char *shape_id_piece(char *at, const char *id)
{
    *at++ = '"'; /* an id needs no escapes */
    at = piece_text(at, id, strlen(id));
    *at++ = '"';
    return at;
}

char *shape_cell_piece(char *at, const struct layer *layer, const uint32_t cell[2])
{
    at = PIECE(at, ",\"cell\":");
    return layer->kind == LAYER_HEIGHTFIELD ? piece_cell(at, cell) : PIECE(at, "null");
}

char *shape_polygon_piece(char *at, const struct layer *layer, uint32_t polygon)
{
    at = PIECE(at, ",\"polygon\":");
    return layer->kind == LAYER_MESH ? piece_integer(at, polygon) : PIECE(at, "null");
}

char *shape_velocity_piece(char *at, const struct layer *layer, struct vec3 velocity)
{
    if (!layer->is_moved)
        return at;
    at = PIECE(at, ",\"velocity\":");
    return piece_vec3(at, velocity);
}

char *shape_hit_pieces(char *at, const struct locale_hit *hit)
{
    if (!hit)
        return PIECE(at, ",\"t\":null,\"point\":null,\"normal\":null,\"layer\":null,"
                         "\"cell\":null,\"triangle\":null,\"polygon\":null");
    at = PIECE(at, ",\"t\":");
    at = piece_number(at, hit->at.t);
    at = PIECE(at, ",\"point\":");
    at = piece_vec3(at, hit->at.point);
    at = PIECE(at, ",\"normal\":");
    at = piece_vec3(at, hit->at.normal);
    at = PIECE(at, ",\"layer\":");
    at = shape_id_piece(at, hit->layer->id);
    at = shape_cell_piece(at, hit->layer, hit->at.cell);
    at = PIECE(at, ",\"triangle\":");
    at = hit->layer->kind == LAYER_HEIGHTFIELD ? piece_integer(at, (uint64_t)hit->at.triangle)
                                               : PIECE(at, "null");
    at = shape_polygon_piece(at, hit->layer, hit->polygon);
    return shape_velocity_piece(at, hit->layer, hit->velocity);
}
