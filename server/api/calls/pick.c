/*
 * POST …/pick  {"camera":{"eye","target","up":[0,0,1],"fov_y_deg":60},"viewport":[w,h],
 *               "pixel":[px,py] or "pixels":[[px,py]…],"tile_side":1,"layer"}
 *         or   {"inverse_view_projection":[16],"depth":"gl|webgpu|reversed",…}
 *         or   {…,"rectangle":[x0,y0,x1,y1] or "lasso":[[px,py]…],"step":1}
 *         or   {…,"tile":{"shape":"hex|square","side":m}} in the place of tile_side
 *   ->  {"locale","revision","status":"hit|miss","hit":Hit|null,"tile":Tile|null}
 *   ->  of pixels: results: {"status","hit","tile"}
 *   ->  of a region: {"pixels","layers":[{"layer","cells":[[c,r]…],"polygons":[…],
 *                                         "tiles":[[c,r]…]}]}
 * POST /v1/pick  the same across locales, without layer
 *   ->  {"status","locale","revision","hit","tile"}; a region's layers have "locale" and "revision"
 * GET  …/pick?eye=&target=&up=&fov_y_deg=&viewport=&pixel=&tile_side=&tile=hex,5&layer=
 *   ->  as of one pixel
 *
 * The tile is the logical one of the heightfield that was hit (text P), of tile_side cells, which
 * a mesh has not; or, with `tile`, that of the plan (terrain/plan_tile.h) in the frame of the
 * locale. A region gives everything that the centres of its pixels show, each cell once. A camera
 * without `up` that looks along the Z axis has +Y upwards in its picture, as a map has north.
 */
#include "api/calls.h"

#include "api/drawing/camera_decode.h"
#include "api/encode.h"
#include "api/options.h"
#include "terrain/field/heightfield_data.h"
#include "terrain/plan_tile.h"
#include "world/ask/across.h"
#include "world/values/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the rays come from: a camera, or a matrix. */
struct view {
    bool is_matrix;
    struct camera camera;
    double inverse[16];
    enum depth_range depth;
    struct viewport viewport; /* its pixel is that of the ray that is asked */
};

struct pick_options {
    struct layer_choice choice;
    struct view view;
    uint64_t tile_side;
    bool has_plan_tiles; /* of this shape and side, not of tile_side cells */
    int shape;
    double side_m;
    struct crossing_room *crossings; /* across locales */
};

static const char *const shape_names[] = {"hex", "square", NULL}; /* by enum plan_tile_shape */

/* What a ray has met. */
struct picked {
    const struct locale *locale; /* NULL: nothing */
    struct locale_hit hit;
    struct vec3 place; /* hit.at.point in the locale's frame */
};

/* Is the view given in exactly one of the two ways, and what is picked in one of the four? */
static enum err_code check_given(struct call *call, struct err *err)
{
    static const char *const picks[] = {"pixel", "pixels", "rectangle", "lasso"};
    const cJSON *view = json_given(call->json, "camera");
    const cJSON *inverse = json_given(call->json, "inverse_view_projection");
    const char *last = "pixel";
    int given = 0;

    if ((view != NULL) == (inverse != NULL))
        return err_set_at(err, ERR_BAD_INPUT, view ? "/inverse_view_projection" : "/camera",
                          "exactly one of camera and inverse_view_projection must be given, not %s",
                          view ? "both" : "neither");
    if (view && json_given(call->json, "depth"))
        return err_set_at(err, ERR_BAD_INPUT, "/depth",
                          "depth belongs to inverse_view_projection, not to camera");
    for (size_t i = 0; i < sizeof picks / sizeof *picks; i++)
        if (json_given(call->json, picks[i])) {
            last = picks[i];
            given++;
        }
    if (given != 1) {
        err_set(err, ERR_BAD_INPUT,
                "exactly one of pixel, pixels, rectangle and lasso must be given, not %s",
                given ? "several" : "none");
        return err_at(err, "/%s", last);
    }
    if (json_given(call->json, "step") && (*last == 'p'))
        return err_set_at(err, ERR_BAD_INPUT, "/step",
                          "step belongs to rectangle or lasso, not to %s", last);
    return ERR_OK;
}

/* The error of a viewport or camera that cannot be: its member is in the pointer. */
static enum err_code check_view(const struct view *view, const char *camera, const char *slash,
                                struct err *err)
{
    char member[sizeof err->pointer];

    if (pick_viewport_check(&view->viewport, err))
        return err_at(err, "%sviewport", slash);
    if (view->is_matrix || !pick_camera_check(&view->camera, err))
        return err->code;
    snprintf(member, sizeof member, "%s", err->pointer);
    return err_at(err, "%s%s", camera, member);
}

static enum err_code decode_view(struct call *call, struct view *out, struct err *err)
{
    static const char *const depths[] = {"gl", "webgpu", "reversed", NULL};
    const cJSON *camera = json_given(call->json, "camera");
    int depth = DEPTH_GL;

    *out = (struct view){.is_matrix = !camera};
    if (json_get_numbers(json_member(call->json, "viewport"), 2, &out->viewport.width_px, err))
        return err_at(err, "/viewport");
    if (camera && camera_of_json(camera, &out->camera, err))
        return err->code;
    if (!camera &&
        json_get_numbers(json_member(call->json, "inverse_view_projection"), 16, out->inverse, err))
        return err_at(err, "/inverse_view_projection");
    if (option_word(call, "depth", depths, &depth, err))
        return err->code;
    out->depth = (enum depth_range)depth;
    return check_view(out, "/camera/", "/", err);
}

/* {"shape","side"} of a body. */
static enum err_code decode_tile_object(const cJSON *tile, struct pick_options *out,
                                        struct err *err)
{
    static const char *const members[] = {"shape", "side", NULL};

    if (!cJSON_IsObject(tile))
        return err_set_at(err, ERR_BAD_INPUT, "/tile",
                          "an object with shape and side was expected, not %s", json_kind(tile));
    if (json_only_members(tile, members, "/tile", err))
        return err->code;
    if (json_get_word(json_member(tile, "shape"), shape_names, &out->shape, err))
        return err_at(err, "/tile/shape");
    if (json_get_number(json_member(tile, "side"), &out->side_m, err))
        return err_at(err, "/tile/side");
    return ERR_OK;
}

/* shape,side of a query. */
static enum err_code decode_tile_words(struct span value, struct pick_options *out, struct err *err)
{
    for (out->shape = 0; shape_names[out->shape]; out->shape++) {
        size_t length = strlen(shape_names[out->shape]);
        struct span side;

        if (value.length <= length || memcmp(value.at, shape_names[out->shape], length) != 0 ||
            value.at[length] != ',')
            continue;
        side = (struct span){value.at + length + 1, value.length - length - 1};
        if (span_number(side, &out->side_m))
            return ERR_OK;
    }
    return err_set_at(err, ERR_BAD_INPUT, "tile", "tile=%.*s: expected hex,SIDE or square,SIDE",
                      value.length < 64 ? (int)value.length : 64, value.at ? value.at : "");
}

static enum err_code decode_tile(struct call *call, struct pick_options *out, struct err *err)
{
    const cJSON *tile = call->json ? json_given(call->json, "tile") : NULL;
    const char *slash = tile ? "/" : "";
    bool has_side = call->json && json_given(call->json, "tile_side");

    out->tile_side = 1;
    if (option_integer(call, "tile_side", 1, HEIGHTFIELD_SIDE_MAX, &out->tile_side, err))
        return err->code;
    if (tile && decode_tile_object(tile, out, err))
        return err->code;
    out->has_plan_tiles = tile != NULL;
    for (size_t i = 0; i < call->query_count; i++) {
        has_side |= span_equals(call->query[i].name, "tile_side");
        if (!span_equals(call->query[i].name, "tile"))
            continue;
        if (tile)
            return err_set_at(err, ERR_BAD_INPUT, "/tile",
                              "tile is given in the query and in the body");
        if (decode_tile_words(call->query[i].value, out, err))
            return err->code;
        out->has_plan_tiles = true;
    }
    if (out->has_plan_tiles && has_side) {
        err_set(err, ERR_BAD_INPUT, "tile is in metres and tile_side in cells; give one of them");
        return err_at(err, "%stile", slash);
    }
    if (out->has_plan_tiles &&
        !(out->side_m >= PLAN_TILE_SIDE_MIN_M && out->side_m <= PLAN_TILE_SIDE_MAX_M)) {
        double limit =
            out->side_m < PLAN_TILE_SIDE_MIN_M ? PLAN_TILE_SIDE_MIN_M : PLAN_TILE_SIDE_MAX_M;

        return err_limit_at(err, ERR_BAD_INPUT, tile ? "/tile/side" : "tile", limit, out->side_m,
                            "the side of a tile is %g m, must be %g to %g m", out->side_m,
                            PLAN_TILE_SIDE_MIN_M, PLAN_TILE_SIDE_MAX_M);
    }
    return ERR_OK;
}

/* After the view. Without a locale the question is asked across all of them. */
static enum err_code decode_options(struct call *call, struct pick_options *out, struct err *err)
{
    if (decode_tile(call, out, err))
        return err->code;
    if (call->locale)
        return option_choose(call, &out->choice, err) ||
                       call_check_budget_rays(call, &out->choice, err)
                   ? err->code
                   : ERR_OK;
    out->crossings = call_alloc(call, sizeof *out->crossings);
    if (!out->crossings)
        return err_set(err, ERR_NO_MEMORY, "no memory to cross the locales");
    *out->crossings = (struct crossing_room){NULL, 0};
    return ERR_OK;
}

/* An error that has no pointer yet is the pixel's. */
static enum err_code ray_of(const struct view *view, const double pixel[2], struct ray *ray,
                            struct err *err)
{
    const struct viewport viewport = {view->viewport.width_px, view->viewport.height_px, pixel[0],
                                      pixel[1]};

    if (pick_pixel_check(&viewport, err))
        return err->code;
    if (!view->is_matrix)
        return pick_camera_ray(&view->camera, &viewport, ray, err);
    return pick_unproject_ray(view->inverse, view->depth, &viewport, ray, err)
               ? err_at(err, "/inverse_view_projection")
               : ERR_OK;
}

/* ---- what rays meet -------------------------------------------------------------------------- */

static enum err_code ask(struct call *call, const struct pick_options *options,
                         const struct ray *rays, size_t count, struct picked *picked,
                         struct err *err)
{
    struct locale_hit hits[CALL_RAYS_TOGETHER];

    if (call->locale)
        locale_rays(&options->choice, rays, count, RAY_CLOSEST, hits);
    for (size_t i = 0; i < count; i++) {
        struct across_hit across;

        if (call->locale) {
            picked[i].locale = hits[i].at.t != INFINITY ? call->locale : NULL;
            picked[i].hit = hits[i];
            picked[i].place = hits[i].at.point;
            continue;
        }
        if (call_make_room(call, &rays[i], options->crossings, err))
            return err->code;
        snapshot_ray(call->snapshot, &rays[i], RAY_CLOSEST, options->crossings->at, &across);
        picked[i].locale = across.locale;
        if (!across.locale)
            continue;
        picked[i].hit = across.hit;
        picked[i].place =
            placement_to_locale(&across.locale->manifest.placement, across.hit.at.point);
    }
    return ERR_OK;
}

/* The indices of the tile of a hit; false: it has none. */
static bool tile_index(const struct pick_options *options, const struct picked *picked,
                       struct plan_tile *out)
{
    const uint32_t *cell = picked->hit.at.cell;

    if (options->has_plan_tiles)
        return plan_tile_at((enum plan_tile_shape)options->shape, options->side_m, picked->place.x,
                            picked->place.y, out);
    if (picked->hit.layer->kind != LAYER_HEIGHTFIELD)
        return false;
    out->index[0] = (int64_t)(cell[0] / options->tile_side);
    out->index[1] = (int64_t)(cell[1] / options->tile_side);
    return true;
}

static void encode_plan_tile(struct json_writer *w, const struct pick_options *options,
                             const struct picked *picked, const struct plan_tile *tile)
{
    bool is_hex = options->shape == PLAN_TILE_HEX;
    const struct layer *layer = picked->hit.layer;
    struct vec3 center = {tile->center[0], tile->center[1], NAN};
    struct ground_triangle ground;
    double u, v;

    if (layer->kind == LAYER_HEIGHTFIELD &&
        heightfield_to_grid(layer->field, (struct vec2){center.x, center.y}, &u, &v)) {
        heightfield_triangle_at(layer->field, u, v, &ground);
        if (ground.triangle >= 0)
            center.z = ground.height_m;
    }
    json_begin_object(w);
    json_put_string(w, "shape", shape_names[options->shape]);
    json_put_number(w, is_hex ? "q" : "column", (double)tile->index[0]);
    json_put_number(w, is_hex ? "r" : "row", (double)tile->index[1]);
    json_put_number(w, "side", options->side_m);
    json_put_vec3(w, "center", center);
    json_end_object(w);
}

static void encode_cell_tile(struct json_writer *w, const struct logical_tile *tile)
{
    json_begin_object(w);
    json_put_integer(w, "column", tile->column);
    json_put_integer(w, "row", tile->row);
    json_put_integer(w, "side", tile->side);
    json_put_vec3(w, "center", tile->center);
    json_put_box3(w, "bounds", tile->bounds);
    json_end_object(w);
}

/* The answer of one ray as members of an open object. */
static void encode_picked(struct call *call, const struct pick_options *options,
                          const struct picked *picked)
{
    struct json_writer *w = &call->out;
    struct logical_tile logical;
    struct plan_tile tile;

    json_put_string(w, "status", picked->locale ? "hit" : "miss");
    if (!call->locale)
        encode_locale_members(w, picked->locale);
    json_key(w, "hit");
    if (picked->locale) {
        json_begin_object(w);
        encode_hit_members(w, &picked->hit);
        json_end_object(w);
    } else {
        json_null(w);
    }
    json_key(w, "tile");
    if (!picked->locale || !tile_index(options, picked, &tile)) {
        json_null(w);
    } else if (options->has_plan_tiles) {
        encode_plan_tile(w, options, picked, &tile);
    } else {
        pick_logical_tile(picked->hit.layer->field, picked->hit.at.cell,
                          (uint32_t)options->tile_side, &logical);
        encode_cell_tile(w, &logical);
    }
}

static enum err_code answer_one(struct call *call, const struct pick_options *options,
                                const double pixel[2], const char *slash, struct err *err)
{
    struct picked picked;
    struct ray ray;

    if (ray_of(&options->view, pixel, &ray, err))
        return err->pointer[0] ? err->code : err_at(err, "%spixel", slash);
    if (call->locale)
        call_begin_answer(call);
    else
        json_begin_object(&call->out);
    if (ask(call, options, &ray, 1, &picked, err))
        return err->code;
    encode_picked(call, options, &picked);
    json_end_object(&call->out);
    return ERR_OK;
}

static enum err_code answer_many(struct call *call, const struct pick_options *options,
                                 const struct json_batch *batch, struct err *err)
{
    if (call->locale) {
        call_begin_results(call);
    } else {
        json_begin_object(&call->out);
        json_put_array(&call->out, "results");
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct picked picked;
        struct ray ray;

        if (call_check_budget(call, i, err))
            return err->code;
        if (ray_of(&options->view, batch->numbers + 2 * i, &ray, err))
            return err->pointer[0] ? err->code : err_at(err, "/pixels/%zu", i);
        if (ask(call, options, &ray, 1, &picked, err))
            return err->code;
        json_begin_object(&call->out);
        encode_picked(call, options, &picked);
        json_end_object(&call->out);
    }
    call_end_results(call);
    return ERR_OK;
}

/* ---- regions of the screen ------------------------------------------------------------------- */

enum { LASSO_POINTS_MAX = 1000, STEP_MAX = 1000 };

/* The pixels whose centres are in a rectangle or a lasso, each step-th across and down. */
struct region {
    size_t corner_count; /* 0: the whole box */
    double (*corners)[2];
    double *cuts;                   /* room for the places where a row meets the outline */
    double first[2], columns, rows; /* the centre of the box's first pixel, and how many */
    uint64_t step;
};

/* One thing that is shown, once: a cell, a polygon, a tile. */
struct shown {
    const struct locale *locale;
    const struct layer *layer;
    enum { SHOWN_CELL, SHOWN_POLYGON, SHOWN_TILE } kind;
    int64_t at[2]; /* row or r first, then column or q; of a polygon 0 and its number */
};

static int by_what(const void *left, const void *right)
{
    const struct shown *a = left, *b = right;
    int order = a->locale == b->locale ? 0 : strcmp(a->locale->id, b->locale->id);

    if (!order && a->layer != b->layer)
        order = strcmp(a->layer->id, b->layer->id);
    if (!order)
        order = (a->layer->body.patch > b->layer->body.patch) -
                (a->layer->body.patch < b->layer->body.patch);
    if (!order)
        order = (a->layer->body.number > b->layer->body.number) -
                (a->layer->body.number < b->layer->body.number);
    if (!order)
        order = (a->kind > b->kind) - (a->kind < b->kind);
    for (int i = 0; i < 2 && !order; i++)
        order = (a->at[i] > b->at[i]) - (a->at[i] < b->at[i]);
    return order;
}

static enum err_code decode_lasso(struct call *call, const cJSON *lasso, struct region *out,
                                  double box[4], struct err *err)
{
    int count = cJSON_IsArray(lasso) ? cJSON_GetArraySize(lasso) : 0;
    const cJSON *point = NULL;

    if (count < 3 || count > LASSO_POINTS_MAX)
        return err_limit_at(err, count < 3 ? ERR_BAD_INPUT : ERR_TOO_MANY_ITEMS, "/lasso",
                            count < 3 ? 3 : LASSO_POINTS_MAX, count,
                            "a lasso has 3 to %d corners, this has %d", LASSO_POINTS_MAX, count);
    out->corners = call_alloc(call, (size_t)count * sizeof *out->corners);
    out->cuts = call_alloc(call, (size_t)count * sizeof *out->cuts);
    if (!out->corners || !out->cuts)
        return err_set(err, ERR_NO_MEMORY, "no memory for a lasso");
    box[0] = box[1] = INFINITY;
    box[2] = box[3] = -INFINITY;
    cJSON_ArrayForEach(point, lasso)
    {
        double *corner = out->corners[out->corner_count];

        if (json_get_numbers(point, 2, corner, err))
            return err_at(err, "/lasso/%zu", out->corner_count);
        for (int axis = 0; axis < 2; axis++) {
            box[axis] = fmin(box[axis], corner[axis]);
            box[2 + axis] = fmax(box[2 + axis], corner[axis]);
        }
        out->corner_count++;
    }
    return ERR_OK;
}

static enum err_code decode_region(struct call *call, const struct view *view, struct region *out,
                                   struct err *err)
{
    const cJSON *rectangle = json_given(call->json, "rectangle");
    const double sides[2] = {view->viewport.width_px, view->viewport.height_px};
    double box[4], counts[2];

    *out = (struct region){.step = 1};
    if (rectangle && json_get_numbers(rectangle, 4, box, err))
        return err_at(err, "/rectangle");
    if (!rectangle && decode_lasso(call, json_given(call->json, "lasso"), out, box, err))
        return err->code;
    if (option_integer(call, "step", 1, STEP_MAX, &out->step, err))
        return err->code;
    for (int axis = 0; axis < 2; axis++) {
        double low = fmax(fmin(box[axis], box[axis + 2]), 0);
        double high = fmin(fmax(box[axis], box[axis + 2]), sides[axis]);

        out->first[axis] = ceil(low - 0.5) + 0.5;
        counts[axis] =
            fmax(0, floor((ceil(high - 0.5) - 0.5 - out->first[axis]) / (double)out->step) + 1);
    }
    out->columns = counts[0];
    out->rows = counts[1];
    if (counts[0] * counts[1] <= API_REGION_PIXELS_MAX)
        return ERR_OK;
    return err_limit_at(err, ERR_TOO_MANY_ITEMS, rectangle ? "/rectangle" : "/lasso",
                        API_REGION_PIXELS_MAX, counts[0] * counts[1],
                        "the region's box has %.0f pixels at a step of %d, the most is %d",
                        counts[0] * counts[1], (int)out->step, API_REGION_PIXELS_MAX);
}

static int by_place(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The outline's meetings with a row of pixels, in order; inside is from an even one to the next. */
static size_t cut_row(const struct region *region, double y)
{
    size_t count = 0;

    for (size_t i = 0; i < region->corner_count; i++) {
        const double *a = region->corners[i];
        const double *b = region->corners[(i + 1) % region->corner_count];

        if ((a[1] <= y) != (b[1] <= y))
            region->cuts[count++] = a[0] + (b[0] - a[0]) * ((y - a[1]) / (b[1] - a[1]));
    }
    qsort(region->cuts, count, sizeof *region->cuts, by_place);
    return count;
}

/* Appends what a ray has met: a cell or polygon, and its tile. */
static size_t note(const struct pick_options *options, const struct picked *picked,
                   struct shown *shown, size_t count)
{
    const struct layer *layer = picked->hit.layer;
    const uint32_t *cell = picked->hit.at.cell;
    struct plan_tile tile;

    if (!picked->locale)
        return count;
    if (layer->kind == LAYER_HEIGHTFIELD)
        shown[count++] = (struct shown){picked->locale, layer, SHOWN_CELL, {cell[1], cell[0]}};
    else
        shown[count++] =
            (struct shown){picked->locale, layer, SHOWN_POLYGON, {0, picked->hit.polygon}};
    if (tile_index(options, picked, &tile))
        shown[count++] =
            (struct shown){picked->locale, layer, SHOWN_TILE, {tile.index[1], tile.index[0]}};
    return count;
}

static size_t unique(struct shown *shown, size_t count)
{
    size_t kept = 0;

    if (count > 1)
        qsort(shown, count, sizeof *shown, by_what);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || by_what(&shown[kept - 1], &shown[i]) != 0)
            shown[kept++] = shown[i];
    return kept;
}

/* Those of one layer and kind, from shown[i] on; returns the first one after them. */
static size_t encode_kind(struct json_writer *w, const char *name, int kind,
                          const struct shown *shown, size_t count, size_t i)
{
    const struct layer *layer = i < count ? shown[i].layer : NULL;

    json_put_array(w, name);
    for (; i < count && shown[i].layer == layer && (int)shown[i].kind == kind; i++) {
        if (kind == SHOWN_POLYGON) {
            json_integer(w, (uint64_t)shown[i].at[1]);
            continue;
        }
        json_numbers(w, (double[]){(double)shown[i].at[1], (double)shown[i].at[0]}, 2);
    }
    json_end_array(w);
    return i;
}

static void encode_shown_layer(struct json_writer *w, const struct layer *layer)
{
    json_key(w, "layer");
    if (layer->body.patch == 0) {
        json_string(w, layer->id);
        return;
    }
    json_null(w);
    json_put_object(w, "body");
    json_put_integer(w, "patch", layer->body.patch);
    json_put_integer(w, "number", layer->body.number);
    json_end_object(w);
}

static void encode_region(struct call *call, size_t asked, const struct shown *shown, size_t count)
{
    struct json_writer *w = &call->out;

    if (call->locale)
        call_begin_answer(call);
    else
        json_begin_object(w);
    json_put_integer(w, "pixels", asked);
    json_put_array(w, "layers");
    for (size_t i = 0; i < count;) {
        const struct layer *layer = shown[i].layer;
        size_t end = i;

        json_begin_object(w);
        if (!call->locale)
            encode_locale_members(w, shown[i].locale);
        encode_shown_layer(w, layer);
        while (end < count && shown[end].layer == layer)
            end++;
        i = encode_kind(w, "cells", SHOWN_CELL, shown, end, i);
        i = encode_kind(w, "polygons", SHOWN_POLYGON, shown, end, i);
        i = encode_kind(w, "tiles", SHOWN_TILE, shown, end, i);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

/* The rays of a region, a row of pixels at a time. */
static enum err_code answer_region(struct call *call, const struct pick_options *options,
                                   const struct region *region, struct err *err)
{
    size_t most = (size_t)(region->columns * region->rows), asked = 0, count = 0, waiting = 0;
    struct shown *shown;
    struct picked picked[CALL_RAYS_TOGETHER];
    struct ray rays[CALL_RAYS_TOGETHER];

    if (call_take_items(call, most, err) || (most > 4096 && call_offload(call, err)))
        return err->code;
    shown = call_alloc(call, (2 * most + 1) * sizeof *shown);
    if (!shown)
        return err_set(err, ERR_NO_MEMORY, "no memory for %zu pixels", most);
    for (double row = 0; row < region->rows; row++) {
        double pixel[2] = {0, region->first[1] + row * (double)region->step};
        size_t cuts = cut_row(region, pixel[1]), passed = 0;

        for (double column = 0; column < region->columns; column++) {
            pixel[0] = region->first[0] + column * (double)region->step;
            while (passed < cuts && region->cuts[passed] <= pixel[0])
                passed++;
            if (region->corner_count > 0 && passed % 2 == 0)
                continue;
            if (call_check_budget(call, asked, err) ||
                ray_of(&options->view, pixel, &rays[waiting], err))
                return err->code;
            asked++;
            if (++waiting < CALL_RAYS_TOGETHER)
                continue;
            if (ask(call, options, rays, waiting, picked, err))
                return err->code;
            for (size_t i = 0; i < waiting; i++)
                count = note(options, &picked[i], shown, count);
            waiting = 0;
        }
    }
    if (ask(call, options, rays, waiting, picked, err))
        return err->code;
    for (size_t i = 0; i < waiting; i++)
        count = note(options, &picked[i], shown, count);
    encode_region(call, asked, shown, unique(shown, count));
    return ERR_OK;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static enum err_code answer_post(struct call *call, struct err *err)
{
    struct pick_options options = {.tile_side = 1};
    struct region region;
    struct json_batch batch;
    double pixel[2];

    if (check_given(call, err) || decode_view(call, &options.view, err))
        return err->code;
    if (json_given(call->json, "rectangle") || json_given(call->json, "lasso"))
        return decode_region(call, &options.view, &region, err) ||
                       decode_options(call, &options, err)
                   ? err->code
                   : answer_region(call, &options, &region, err);
    if (json_given(call->json, "pixels"))
        return option_batch(call, &json_shape_pixels, &batch, err) ||
                       decode_options(call, &options, err)
                   ? err->code
                   : answer_many(call, &options, &batch, err);
    if (json_get_numbers(json_member(call->json, "pixel"), 2, pixel, err))
        return err_at(err, "/pixel");
    return decode_options(call, &options, err) ? err->code
                                               : answer_one(call, &options, pixel, "/", err);
}

static const char *const batches[] = {"pixels", NULL};
static const char *const items[] = {"camera",    "inverse_view_projection",
                                    "depth",     "viewport",
                                    "pixel",     "pixels",
                                    "rectangle", "lasso",
                                    NULL};

enum err_code pick_post_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"tile_side", "tile", "step", "layer", NULL};

    return options_open_mixed(call, batches, items, names, err) ? err->code
                                                                : answer_post(call, err);
}
API_HANDLER(pick_post, 1, CALL_NEEDS_GROUND)

enum err_code world_pick_post_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"tile_side", "tile", "step", NULL};

    return options_open_mixed(call, batches, items, names, err) ? err->code
                                                                : answer_post(call, err);
}
API_HANDLER(world_pick_post, 0, CALL_NEEDS_NOTHING)

enum err_code pick_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"eye",   "target",    "up",   "fov_y_deg", "viewport",
                                        "pixel", "tile_side", "tile", "layer",     NULL};
    struct pick_options options = {.view.is_matrix = false};
    double pixel[2];

    if (options_open_query(call, names, err) || camera_of_query(call, &options.view.camera, err) ||
        option_needed(call, "viewport", 2, &options.view.viewport.width_px, err) ||
        option_needed(call, "pixel", 2, pixel, err) || check_view(&options.view, "", "", err) ||
        decode_options(call, &options, err))
        return err->code;
    return answer_one(call, &options, pixel, "", err);
}
API_HANDLER(pick_get, 1, CALL_NEEDS_GROUND)
