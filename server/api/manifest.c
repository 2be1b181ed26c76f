/*
 * Manifests: JSON to struct locale_manifest. A PUT replaces the whole manifest: absent members
 * return to their defaults.
 */
#include "api/manifest.h"

#include "api/encode.h"

#include <string.h>

const char *const manifest_members[] = {"title",         "gravity", "placement", "open_sky",
                                        "triangulation", "geo",     NULL};

static enum err_code decode_title(const cJSON *json, struct locale_manifest *out, struct err *err)
{
    const cJSON *title = json_given(json, "title");
    const char *text;

    if (!title)
        return ERR_OK;
    if (json_get_string(title, &text, err))
        return err_at(err, "/title");
    if (strlen(text) > LOCALE_TITLE_BYTES_MAX) {
        err_limit(err, ERR_BAD_INPUT, LOCALE_TITLE_BYTES_MAX, (double)strlen(text),
                  "a title has at most %d bytes, this has %zu", LOCALE_TITLE_BYTES_MAX,
                  strlen(text));
        return err_at(err, "/title");
    }
    memcpy(out->title, text, strlen(text) + 1);
    return ERR_OK;
}

static enum err_code decode_placement(const cJSON *json, struct locale_manifest *out,
                                      struct err *err)
{
    static const char *const members[] = {"translation", "rotation", NULL};
    const cJSON *placement = json_given(json, "placement"), *member;

    if (!placement)
        return ERR_OK;
    if (json_only_members(placement, members, "/placement", err))
        return err->code;
    member = json_given(placement, "translation");
    if (member && json_get_vec3(member, &out->placement.translation, err))
        return err_at(err, "/placement/translation");
    member = json_given(placement, "rotation");
    if (member && json_get_numbers(member, 4, out->placement.rotation, err))
        return err_at(err, "/placement/rotation");
    return ERR_OK;
}

static enum err_code decode_geo(const cJSON *json, struct locale_manifest *out, struct err *err)
{
    static const char *const members[] = {"lat", "lng", NULL};
    const cJSON *geo = json_given(json, "geo");

    if (!geo)
        return ERR_OK;
    if (json_only_members(geo, members, "/geo", err))
        return err->code;
    if (json_get_number(json_member(geo, "lat"), &out->geo_lat_deg, err))
        return err_at(err, "/geo/lat");
    if (json_get_number(json_member(geo, "lng"), &out->geo_lng_deg, err))
        return err_at(err, "/geo/lng");
    out->has_geo = true;
    return ERR_OK;
}

enum err_code manifest_decode(const cJSON *json, struct locale_manifest *out, struct err *err)
{
    const cJSON *member;
    int word = TRIANGULATION_ANTI;

    *out = locale_manifest_default;
    if (decode_title(json, out, err) || decode_placement(json, out, err) ||
        decode_geo(json, out, err))
        return err->code;
    member = json_given(json, "gravity");
    if (member && json_get_vec3(member, &out->gravity, err))
        return err_at(err, "/gravity");
    member = json_given(json, "open_sky");
    if (member && json_get_boolean(member, &out->open_sky, err))
        return err_at(err, "/open_sky");
    member = json_given(json, "triangulation");
    if (member && json_get_word(member, triangulation_names, &word, err))
        return err_at(err, "/triangulation");
    out->triangulation = (enum triangulation)word;
    return locale_manifest_check(out, err);
}
