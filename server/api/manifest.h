/*
 * A locale's manifest from JSON: the body of PUT /v1/locales/{locale}, and the head of a
 * locale.json.
 */
#ifndef KOTA_API_MANIFEST_H
#define KOTA_API_MANIFEST_H

#include "json/json_read.h"
#include "world/values/locale.h"

/* title, gravity, placement, open_sky, triangulation, geo, crs; NULL-terminated. */
extern const char *const manifest_members[];

/*
 * Reads the members; an absent or null one keeps its default. The result passes
 * locale_manifest_check. ERR_BAD_INPUT, ERR_UNPROCESSABLE, with a JSON pointer.
 */
enum err_code manifest_decode(const cJSON *json, struct locale_manifest *out, struct err *err);

#endif
