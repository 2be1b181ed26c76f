/*
 * GET  …/contact?x=&y=&z=&reach_up=…  ->  the members of one result
 * POST …/contact {"points":[[x,y,z]…],"reach_up":0.5,"max_distance":d,"clearance":c,
 *                 "clearance_mode":"at_least|exact"}
 *   ->  results: {"status":"ok|below|hole|too_far|outside","floor":Contact|null,
 *                 "ceiling":Contact|null,"placed"}
 * POST …/contact  {"footprints":[[[x,y,z]×3 or more]…],"reach_up","max_distance"}
 *   ->  results: {"status","plane":{"normal","d"}|null,"points":[[x,y,z]|null…]}
 * POST …/contact  binary: x y z  ->  floor_z nx ny nz ceiling_z status (NaN: none; status: enum
 * contact_status); where gravity is radial floor and ceiling are distances from the origin or axis
 *
 * There is a floor exactly when the status is ok. `placed` is there when a clearance is asked: that
 * far above the floor along gravity, or null over no floor; reach_up is then unbounded unless
 * given, so that a camera below the ground is raised.
 * A footprint (text Q's car) rests on the plane through its contact points: normal · p + d = 0, in
 * Q's notation. It is ok when each of its points has a floor and they span a plane; else the status
 * is that of the first point without one, or hole when the points lie on a line.
 */
#include "api/calls/contact.h"

#include "api/batch.h"
#include "api/calls.h"
#include "json/json_raw.h"
#include "api/options.h"
#include "api/encode.h"

struct contact_options {
    struct layer_choice choice;
    struct contact_terms terms;
};

static enum err_code not_negative(double value, const char *name, struct err *err)
{
    if (value >= 0)
        return ERR_OK;
    err_limit(err, ERR_BAD_INPUT, 0, value, "%s must be at least 0 m, it is %.17g", name, value);
    return err_at(err, "/%s", name);
}

enum err_code contact_decode_terms(struct call *call, struct contact_terms *out, struct err *err)
{
    static const char *const modes[] = {"at_least", "exact", NULL};
    bool has_reach;
    int mode = -1; /* it is not given */

    *out = (struct contact_terms){.reach = {CONTACT_REACH_UP_M, INFINITY}};
    if (option_number(call, "reach_up", &out->reach.up_m, &has_reach, err) ||
        option_number(call, "max_distance", &out->reach.down_m, NULL, err) ||
        option_number(call, "clearance", &out->clearance.above_m, &out->has_clearance, err) ||
        option_word(call, "clearance_mode", modes, &mode, err) ||
        not_negative(out->reach.up_m, "reach_up", err) ||
        not_negative(out->reach.down_m, "max_distance", err) ||
        not_negative(out->clearance.above_m, "clearance", err))
        return err->code;
    if (mode >= 0 && !out->has_clearance)
        return err_set_at(err, ERR_BAD_INPUT, "/clearance_mode",
                          "clearance_mode says how clearance is kept, and there is none");
    out->clearance.is_exact = mode == 1;
    if (out->has_clearance && !has_reach)
        out->reach.up_m = INFINITY;
    return ERR_OK;
}

static enum err_code decode_options(struct call *call, struct contact_options *out, struct err *err)
{
    if (contact_decode_terms(call, &out->terms, err) || option_choose(call, &out->choice, err))
        return err->code;
    return ERR_OK;
}

enum { POINT_BYTES = 2 * CONTACT_PIECE_BYTES + 256 };

char *contact_raw(char *at, const struct contact *contact)
{
    at = JSON_RAW(at, "{\"point\":");
    at = json_raw_vec3(at, contact->point);
    at = JSON_RAW(at, ",\"distance\":");
    at = json_raw_number(at, contact->distance_m);
    at = JSON_RAW(at, ",\"normal\":");
    at = json_raw_vec3(at, contact->normal);
    at = JSON_RAW(at, ",\"slope_deg\":");
    at = json_raw_number(at, contact->slope_deg);
    at = encode_layer_raw(at, contact->layer);
    at = encode_cell_raw(at, contact->layer, contact->cell);
    at = encode_polygon_raw(at, contact->layer, contact->polygon);
    at = encode_velocity_raw(at, contact->layer, contact->velocity);
    *at++ = '}';
    return at;
}

static char *encode_status(char *at, enum contact_status status)
{
    const char *word = encode_contact_status(status);

    at = JSON_RAW(at, "{\"status\":\"");
    return json_raw_text(at, word, strlen(word));
}

static char *encode_point(char *at, const struct contact_options *options, struct vec3 point,
                          const struct contacts *contacts)
{
    at = encode_status(at, contacts->status);
    at = JSON_RAW(at, "\",\"floor\":");
    at = contacts->has_floor ? contact_raw(at, &contacts->floor) : JSON_RAW(at, "null");
    at = JSON_RAW(at, ",\"ceiling\":");
    at = contacts->has_ceiling ? contact_raw(at, &contacts->ceiling) : JSON_RAW(at, "null");
    if (options->terms.has_clearance) {
        struct vec3 gravity = locale_gravity(options->choice.locale, point);

        at = JSON_RAW(at, ",\"placed\":");
        at = contacts->has_floor ? json_raw_vec3(at, contact_place(&contacts->floor, gravity, point,
                                                                   &options->terms.clearance))
                                 : JSON_RAW(at, "null");
    }
    *at++ = '}';
    return at;
}

static enum err_code answer_points(struct call *call, const struct contact_options *options,
                                   struct err *err)
{
    struct json_batch batch;

    if (option_batch(call, &json_shape_points3, &batch, err) ||
        call_check_budget_rays(call, &options->choice, err))
        return err->code;
    call_begin_results(call);
    for (size_t i = 0; i < batch.count; i++) {
        const double *p = batch.numbers + 3 * i;
        struct vec3 point = {p[0], p[1], p[2]};
        struct contacts contacts;
        char *at;

        if (call_check_budget(call, i, err))
            return err->code;
        locale_contact(&options->choice, point, options->terms.reach, &contacts);
        at = call_open_item(call, i, POINT_BYTES);
        if (!at)
            break;
        json_close_room(&call->out, encode_point(at, options, point, &contacts));
    }
    call_end_results(call);
    return ERR_OK;
}

/* ---- footprints ------------------------------------------------------------------------------ */

enum err_code footprints_open(struct call *call, const struct contact_terms *terms, uint32_t *array,
                              struct err *err)
{
    const struct json_token *tokens = call->tape.tokens;

    if (terms->has_clearance)
        return err_set_at(err, ERR_BAD_INPUT, "/clearance",
                          "clearance places points, not footprints");
    if (option_array(call, "footprints", array, err) ||
        call_take_items(call, tokens[*array].count, err))
        return err->code;
    call->items = tokens[*array].count * FOOTPRINT_POINTS_MAX;
    return ERR_OK;
}

enum err_code footprint_decode(const struct json_tape *tape, uint32_t item, size_t i,
                               struct footprint *out, struct err *err)
{
    const struct json_token *tokens = tape->tokens;
    size_t count = tokens[item].count;

    if (tokens[item].kind != JSON_ARRAY) {
        err_set(err, ERR_BAD_INPUT, "a footprint is an array of 3 to %d points, not %s",
                FOOTPRINT_POINTS_MAX, json_tape_kind(tape, item));
        return err_at(err, "/footprints/%zu", i);
    }
    item++;
    for (size_t k = 0; k < count && k < FOOTPRINT_POINTS_MAX; k++, item = tokens[item].next)
        if (json_tape_vec3(tape, item, &out->asked[k], err))
            return err_at(err, "/footprints/%zu/%zu", i, k);
    if (count < 3 || count > FOOTPRINT_POINTS_MAX) {
        err_limit(err, count < 3 ? ERR_BAD_INPUT : ERR_TOO_LARGE,
                  count < 3 ? 3 : FOOTPRINT_POINTS_MAX, (double)count,
                  "a footprint has 3 to %d points, this has %zu", FOOTPRINT_POINTS_MAX, count);
        return err_at(err, "/footprints/%zu", i);
    }
    out->count = count;
    return ERR_OK;
}

/* The direction against gravity at the centre of the points, in the locale's frame. */
static struct vec3 up_at(const struct locale *locale, const struct footprint *footprint)
{
    struct vec3 sum = {0, 0, 0};

    for (size_t k = 0; k < footprint->count; k++)
        sum = vec3_add(sum, vec3_scale(footprint->asked[k], 1 / (double)footprint->count));
    return vec3_opposite(locale_gravity(locale, sum));
}

/* Footprint `i` of the batch. */
static enum err_code ask_footprint(struct call *call, const struct contact_options *options,
                                   size_t i, struct footprint *footprint, struct plane *plane,
                                   enum contact_status *out, struct err *err)
{
    struct vec3 up = up_at(options->choice.locale, footprint);
    enum contact_status status = CONTACT_OK;

    for (size_t k = 0; k < footprint->count; k++) {
        struct contacts contacts;

        if (call_check_budget(call, i * FOOTPRINT_POINTS_MAX + k, err))
            return err->code;
        locale_contact(&options->choice, footprint->asked[k], options->terms.reach, &contacts);
        footprint->has_floor[k] = contacts.has_floor;
        footprint->floor[k] = contacts.floor.point;
        if (status == CONTACT_OK)
            status = contacts.status;
    }
    if (status == CONTACT_OK && !plane_through(footprint->floor, footprint->count, up, plane))
        status = CONTACT_HOLE;
    *out = status;
    return ERR_OK;
}

void footprint_members(struct json_writer *w, enum contact_status status,
                       const struct footprint *footprint, const struct plane *plane)
{
    json_put_string(w, "status", encode_contact_status(status));
    json_key(w, "plane");
    if (status == CONTACT_OK) {
        json_begin_object(w);
        json_put_vec3(w, "normal", plane->normal);
        json_put_number(w, "d", plane->d);
        json_end_object(w);
    } else {
        json_null(w);
    }
    json_put_array(w, "points");
    for (size_t k = 0; k < footprint->count; k++) {
        if (footprint->has_floor[k])
            json_vec3(w, footprint->floor[k]);
        else
            json_null(w);
    }
    json_end_array(w);
}

static enum err_code answer_footprints(struct call *call, const struct contact_options *options,
                                       struct err *err)
{
    const struct json_token *tokens = call->tape.tokens;
    uint32_t array, item;

    if (footprints_open(call, &options->terms, &array, err) ||
        call_check_budget_rays(call, &options->choice, err))
        return err->code;
    call_begin_results(call);
    item = array + 1;
    for (size_t i = 0; i < tokens[array].count; i++, item = tokens[item].next) {
        struct footprint footprint;
        struct plane plane;
        enum contact_status status = CONTACT_HOLE;

        if (footprint_decode(&call->tape, item, i, &footprint, err) ||
            ask_footprint(call, options, i, &footprint, &plane, &status, err))
            return err->code;
        json_begin_object(&call->out);
        footprint_members(&call->out, status, &footprint, &plane);
        json_end_object(&call->out);
    }
    call_end_results(call);
    return ERR_OK;
}

/* A height in the binary answer: z, or, where gravity is radial, the distance from origin or axis.
 */
static double binary_height(const struct contact_options *options, struct vec3 point, double base_z)
{
    enum mesh_frame frame = locale_space(options->choice.locale).frame;

    if (frame == MESH_CARTESIAN)
        return point.z - base_z;
    return frame == MESH_SPHERICAL ? vec3_length(point) : length_xy(point.x, point.y);
}

enum { BINARY_NUMBERS = 6 };

static enum err_code contact_binary(struct call *call, struct err *err)
{
    static const char *const names[] = {"reach_up", "max_distance", "layer", "base", NULL};
    struct contact_options options;
    struct batch batch;

    if (batch_open(call, 3, BINARY_NUMBERS, names, &batch, err) ||
        decode_options(call, &options, err) || call_check_budget_rays(call, &options.choice, err))
        return err->code;
    for (size_t i = 0; i < batch.count; i++) {
        double in[3], out[BINARY_NUMBERS] = {NAN, NAN, NAN, NAN, NAN};
        struct contacts contacts;

        if (call_check_budget(call, i, err) || batch_read(&batch, i, 3, false, in, err))
            return err->code;
        locale_contact(
            &options.choice,
            (struct vec3){in[0] + batch.base[0], in[1] + batch.base[1], in[2] + batch.base[2]},
            options.terms.reach, &contacts);
        if (contacts.has_floor) {
            out[0] = binary_height(&options, contacts.floor.point, batch.base[2]);
            out[1] = contacts.floor.normal.x;
            out[2] = contacts.floor.normal.y;
            out[3] = contacts.floor.normal.z;
        }
        if (contacts.has_ceiling)
            out[4] = binary_height(&options, contacts.ceiling.point, batch.base[2]);
        out[5] = contacts.status;
        batch_write(&batch, i, BINARY_NUMBERS, out);
    }
    batch_close(call, &batch, BINARY_NUMBERS);
    return ERR_OK;
}

enum err_code contact_has_footprints(struct call *call, bool *out, struct err *err)
{
    *out = json_member(call->json, "footprints") != NULL;
    if (!*out || !json_member(call->json, "points"))
        return err->code = ERR_OK;
    return err_set_at(err, ERR_BAD_INPUT, "/footprints",
                      "exactly one of points and footprints must be given, not both");
}

enum err_code contact_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"points", "footprints", NULL};
    static const char *const names[] = {"reach_up",       "max_distance", "clearance",
                                        "clearance_mode", "layer",        NULL};
    struct contact_options options;
    bool has_footprints;

    if (batch_is_binary(call))
        return contact_binary(call, err);
    if (options_open_batch(call, items, names, err) || decode_options(call, &options, err) ||
        contact_has_footprints(call, &has_footprints, err))
        return err->code;
    return has_footprints ? answer_footprints(call, &options, err)
                          : answer_points(call, &options, err);
}
API_HANDLER(contact_post, 1, CALL_NEEDS_GROUND)

enum err_code contact_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {
        "x", "y", "z", "reach_up", "max_distance", "clearance", "clearance_mode", "layer", NULL};
    struct contact_options options;
    struct contacts contacts;
    struct vec3 point;
    char *comma, *at;

    if (options_open_query(call, names, err) || option_needed(call, "x", 1, &point.x, err) ||
        option_needed(call, "y", 1, &point.y, err) || option_needed(call, "z", 1, &point.z, err) ||
        decode_options(call, &options, err) || call_check_budget_rays(call, &options.choice, err))
        return err->code;
    locale_contact(&options.choice, point, options.terms.reach, &contacts);
    comma = call_open_answer(call, POINT_BYTES);
    if (!comma)
        return ERR_OK; /* json_finish returns the error */
    at = encode_point(comma, &options, point, &contacts);
    *comma = ',';
    json_close_room(&call->out, at);
    return ERR_OK;
}
API_HANDLER(contact_get, 1, CALL_NEEDS_GROUND)
