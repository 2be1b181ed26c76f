/*
 * Shared shapes: Locale, hit, cell. What does not exist is present and null.
 */
#include "api/shape.h"

const char *const shape_triangulations[] = {"anti", "main", "alternating", NULL};

const char *const shape_roles[] = {"ground", "ceiling", NULL};

const char *shape_ground_status(enum ground_status status)
{
    static const char *const words[] = {"ok", "hole", "outside"};

    return words[status];
}

const char *shape_ray_status(enum ray_status status)
{
    static const char *const words[] = {"hit", "miss", "invalid"};

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

void shape_locale(struct json_writer *w, const struct locale *locale,
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
    json_end_object(w);
}

void shape_cell_on(struct json_writer *w, const struct layer *layer, const uint32_t cell[2])
{
    json_key(w, "cell");
    if (layer->kind == LAYER_HEIGHTFIELD)
        shape_cell(w, cell);
    else
        json_null(w);
}

void shape_polygon_on(struct json_writer *w, const struct layer *layer, uint32_t polygon)
{
    json_key(w, "polygon");
    if (layer->kind == LAYER_MESH)
        json_integer(w, polygon);
    else
        json_null(w);
}

void shape_hit_members(struct json_writer *w, const struct locale_hit *hit)
{
    static const char *const names[] = {"t",    "point",    "normal", "layer",
                                        "cell", "triangle", "polygon"};

    if (!hit) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            json_key(w, names[i]);
            json_null(w);
        }
        return;
    }
    json_key(w, "t");
    json_number(w, hit->at.t);
    json_key(w, "point");
    json_vec3(w, hit->at.point);
    json_key(w, "normal");
    json_vec3(w, hit->at.normal);
    json_key(w, "layer");
    json_string(w, hit->layer->id);
    shape_cell_on(w, hit->layer, hit->at.cell);
    json_key(w, "triangle");
    if (hit->layer->kind == LAYER_HEIGHTFIELD)
        json_integer(w, (uint64_t)hit->at.triangle);
    else
        json_null(w);
    shape_polygon_on(w, hit->layer, hit->polygon);
}
