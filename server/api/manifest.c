/*
 * Manifests: JSON to struct locale_manifest. A PUT replaces the whole manifest: absent members
 * return to their defaults.
 */
#include "api/manifest.h"

#include "api/encode.h"
#include "base/span.h"

#include <string.h>
#include <strings.h>

const char *const manifest_members[] = {"title",         "gravity", "placement", "open_sky",
                                        "triangulation", "geo",     "crs",       NULL};

static enum err_code decode_title(const cJSON *json, struct locale_manifest *out, struct err *err)
{
    const cJSON *title = json_given(json, "title");
    const char *text;

    if (!title)
        return ERR_OK;
    if (json_get_string(title, &text, err))
        return err_at(err, "/title");
    if (strlen(text) > LOCALE_TITLE_BYTES_MAX)
        return err_limit_at(err, ERR_BAD_INPUT, "/title", LOCALE_TITLE_BYTES_MAX,
                            (double)strlen(text), "a title has at most %d bytes, this has %zu",
                            LOCALE_TITLE_BYTES_MAX, strlen(text));
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

/* "EPSG:32633", or the number. */
static enum err_code decode_crs(const cJSON *json, struct locale_manifest *out, struct err *err)
{
    const cJSON *crs = json_given(json, "crs");
    struct span code = {NULL, 0};
    uint64_t number = 0;

    if (!crs)
        return ERR_OK;
    if (cJSON_IsString(crs) && strncasecmp(crs->valuestring, "EPSG:", 5) == 0)
        code = (struct span){crs->valuestring + 5, strlen(crs->valuestring) - 5};
    if (code.at ? span_index(code, &number) && number <= UINT32_MAX
                : cJSON_IsNumber(crs) && crs->valuedouble >= 1 && crs->valuedouble <= UINT32_MAX) {
        out->crs = code.at ? (uint32_t)number : (uint32_t)crs->valuedouble;
        if (code.at || out->crs == crs->valuedouble)
            return ERR_OK;
    }
    return err_set_at(err, ERR_BAD_INPUT, "/crs", "crs is an EPSG code: \"EPSG:32633\"");
}

enum err_code manifest_decode(const cJSON *json, struct locale_manifest *out, struct err *err)
{
    const cJSON *member;
    int word = TRIANGULATION_ANTI;

    *out = locale_manifest_default;
    if (decode_title(json, out, err) || decode_placement(json, out, err) ||
        decode_geo(json, out, err) || decode_crs(json, out, err))
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
