/*
 * POST /v1/contact {"points":[[x,y,z]…],"hints":["id"|null…],"reach_up":0.5,"max_distance":d,
 *                   "clearance":c,"clearance_mode":"at_least|exact"}
 *   ->  {"results":[{"status","locale","revision","floor":Contact|null,"ceiling":Contact|null,
 *                    "placed","hint":"unknown"}…]}
 * POST /v1/contact {"footprints":[[[x,y,z]×3 or more]…],"hints","reach_up","max_distance"}
 *   ->  {"results":[{"status","plane","points","locale","revision","locales":["id"|null…],
 *                    "revisions":[n|null…],"hint":"unknown"}…]}
 *
 * Everything is in world coordinates; up is against the gravity of the locale that answers, turned
 * into the world. Each point belongs to one locale (world/ask/across.h); so does each point of a
 * footprint, so that a car may have its wheels in two: `locale` is then null, `locales` has both.
 * The plane's up is that of the first.
 */
#include "api/calls.h"

#include "api/calls/contact.h"
#include "api/last_locale.h"
#include "json/json_raw.h"
#include "api/options.h"
#include "api/encode.h"
#include "world/ask/across.h"

static const char *const names[] = {"reach_up", "max_distance", "clearance", "clearance_mode",
                                    NULL};

/* ---- points ---------------------------------------------------------------------------------- */

enum { POINT_BYTES = 2 * CONTACT_PIECE_BYTES + ENCODED_ID_BYTES + 320 };

static char *encode_side(char *at, const struct locale *locale, bool is_there,
                         const struct contact *contact)
{
    struct contact world;

    if (!is_there)
        return JSON_RAW(at, "null");
    world = contact_in_world(locale, contact);
    return contact_raw(at, &world);
}

static char *encode_standing_locale(char *at, const struct locale *locale)
{
    if (!locale)
        return JSON_RAW(at, "\",\"locale\":null,\"revision\":null");
    at = JSON_RAW(at, "\",\"locale\":");
    at = encode_id_raw(at, locale->id);
    at = JSON_RAW(at, ",\"revision\":");
    return json_raw_integer(at, locale->revision);
}

static char *encode_point(char *at, const struct contact_terms *terms, struct vec3 world,
                          const struct located *located, const struct contacts *contacts)
{
    const struct locale *locale = located->locale;
    const char *word = encode_contact_status(contacts->status);

    at = JSON_RAW(at, "{\"status\":\"");
    at = json_raw_text(at, word, strlen(word));
    at = encode_standing_locale(at, locale);
    at = JSON_RAW(at, ",\"floor\":");
    at = encode_side(at, locale, contacts->has_floor, &contacts->floor);
    at = JSON_RAW(at, ",\"ceiling\":");
    at = encode_side(at, locale, contacts->has_ceiling, &contacts->ceiling);
    if (terms->has_clearance) {
        at = JSON_RAW(at, ",\"placed\":");
        if (contacts->has_floor) {
            const struct placement *placement = &locale->manifest.placement;
            struct contact floor = contact_in_world(locale, &contacts->floor);
            struct vec3 gravity =
                placement_turn_to_world(placement, locale_gravity(locale, located->held));

            at = json_raw_vec3(at, contact_place(&floor, gravity, world, &terms->clearance));
        } else {
            at = JSON_RAW(at, "null");
        }
    }
    return at;
}

static enum err_code answer_points(struct call *call, const struct contact_terms *terms,
                                   struct err *err)
{
    struct json_batch batch;
    struct last_locales last;

    if (option_batch(call, &json_shape_points3, &batch, err) ||
        last_locales_open(call, batch.count, "points", &last, err))
        return err->code;
    json_begin_object(&call->out);
    json_put_array(&call->out, "results");
    for (size_t i = 0; i < batch.count; i++) {
        const double *p = batch.numbers + 3 * i;
        struct vec3 point = {p[0], p[1], p[2]};
        struct located located;
        struct contacts contacts;
        const char *last_locale;
        char *at;

        if (call_check_budget(call, i, err) || last_locales_next(&last, &last_locale, err))
            return err->code;
        snapshot_contact(call->snapshot, point, last_locale, terms->reach, &located, &contacts);
        at = call_open_item(call, i, POINT_BYTES);
        if (!at)
            break;
        at = encode_point(at, terms, point, &located, &contacts);
        if (last.is_unknown)
            at = JSON_RAW(at, ",\"hint\":\"unknown\"");
        *at++ = '}';
        json_close_room(&call->out, at);
    }
    json_end_array(&call->out);
    json_end_object(&call->out);
    return ERR_OK;
}

/* ---- footprints ------------------------------------------------------------------------------ */

struct standing {
    enum contact_status status;
    struct plane plane;
    const struct locale *locales[FOOTPRINT_POINTS_MAX];
};

/* Footprint `i` of the batch. */
static enum err_code ask_footprint(struct call *call, struct contact_reach reach,
                                   const char *last_locale, size_t i, struct footprint *footprint,
                                   struct standing *out, struct err *err)
{
    struct vec3 up = {0, 0, 1};

    *out = (struct standing){.status = CONTACT_OK};
    for (size_t k = 0; k < footprint->count; k++) {
        struct located located;
        struct contacts contacts;

        if (call_check_budget(call, i * FOOTPRINT_POINTS_MAX + k, err))
            return err->code;
        snapshot_contact(call->snapshot, footprint->asked[k], last_locale, reach, &located,
                         &contacts);
        out->locales[k] = located.locale;
        footprint->has_floor[k] = contacts.has_floor;
        if (contacts.has_floor)
            footprint->floor[k] = contact_in_world(located.locale, &contacts.floor).point;
        else if (out->status == CONTACT_OK)
            out->status = contacts.status;
        if (k == 0 && located.locale)
            up = vec3_opposite(placement_turn_to_world(
                &located.locale->manifest.placement, locale_gravity(located.locale, located.held)));
    }
    if (out->status == CONTACT_OK &&
        !plane_through(footprint->floor, footprint->count, up, &out->plane))
        out->status = CONTACT_HOLE;
    return ERR_OK;
}

/* The locale of all points; NULL: of none, or of several. */
static const struct locale *only_locale(const struct standing *standing, size_t count)
{
    for (size_t k = 1; k < count; k++)
        if (standing->locales[k] != standing->locales[0])
            return NULL;
    return standing->locales[0];
}

static void encode_id(struct json_writer *w, const struct locale *locale)
{
    json_string_or_null(w, locale ? locale->id : NULL);
}

static void encode_revision(struct json_writer *w, const struct locale *locale)
{
    if (locale)
        json_integer(w, locale->revision);
    else
        json_null(w);
}

static void encode_footprint(struct json_writer *w, const struct footprint *footprint,
                             const struct standing *standing, bool hint_is_unknown)
{
    json_begin_object(w);
    footprint_members(w, standing->status, footprint, &standing->plane);
    encode_locale_members(w, only_locale(standing, footprint->count));
    json_put_array(w, "locales");
    for (size_t k = 0; k < footprint->count; k++)
        encode_id(w, standing->locales[k]);
    json_end_array(w);
    json_put_array(w, "revisions");
    for (size_t k = 0; k < footprint->count; k++)
        encode_revision(w, standing->locales[k]);
    json_end_array(w);
    if (hint_is_unknown)
        json_put_string(w, "hint", "unknown");
    json_end_object(w);
}

static enum err_code answer_footprints(struct call *call, const struct contact_terms *terms,
                                       struct err *err)
{
    const struct json_token *tokens = call->tape.tokens;
    uint32_t array, item;
    struct last_locales last;

    if (footprints_open(call, terms, &array, err) ||
        last_locales_open(call, tokens[array].count, "footprints", &last, err))
        return err->code;
    json_begin_object(&call->out);
    json_put_array(&call->out, "results");
    item = array + 1;
    for (size_t i = 0; i < tokens[array].count; i++, item = tokens[item].next) {
        struct footprint footprint;
        struct standing standing;
        const char *last_locale;

        if (last_locales_next(&last, &last_locale, err) ||
            footprint_decode(&call->tape, item, i, &footprint, err) ||
            ask_footprint(call, terms->reach, last_locale, i, &footprint, &standing, err))
            return err->code;
        encode_footprint(&call->out, &footprint, &standing, last.is_unknown);
    }
    json_end_array(&call->out);
    json_end_object(&call->out);
    return ERR_OK;
}

enum err_code world_contact_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"points", "footprints", "hints", NULL};
    struct contact_terms terms;
    bool has_footprints;

    if (options_open_batch(call, items, names, err) || contact_decode_terms(call, &terms, err) ||
        contact_has_footprints(call, &has_footprints, err))
        return err->code;
    return has_footprints ? answer_footprints(call, &terms, err) : answer_points(call, &terms, err);
}
API_HANDLER(world_contact_post, 0, CALL_NEEDS_NOTHING)
