/*
 * POST /v1/ray  {"rays":[{"origin","direction","t_max"}…],"mode":"closest|any"}
 *   ->  {"results":[{"status":"hit|miss|invalid","locale","revision","t","distance","point",
 *                    "normal","layer","cell","triangle","polygon",
 *                    "crossed":[{"locale","t_enter","t_leave"}…],"crossed_count"}…]}
 *
 * In world coordinates, over all locales (across.h). `crossed` lists the locales whose bounds the
 * ray meets on its way to the hit, or to t_max, by t_enter; of more than CROSSED_MAX the first are
 * listed, and crossed_count counts all.
 */
#include "api/calls.h"

#include "json/json_raw.h"
#include "api/options.h"
#include "api/encode.h"
#include "world/ask/across.h"

#include <string.h>

enum {
    CROSSED_BYTES = ENCODED_ID_BYTES + 128,
    RAY_BYTES = ENCODED_HIT_BYTES + ENCODED_ID_BYTES + API_CROSSED_MAX * CROSSED_BYTES + 256
};

static char *encode_crossed(char *at, const struct crossing *crossings, size_t count)
{
    at = JSON_RAW(at, ",\"crossed\":[");
    for (size_t i = 0; i < count && i < API_CROSSED_MAX; i++) {
        if (i > 0)
            *at++ = ',';
        at = JSON_RAW(at, "{\"locale\":");
        at = encode_id_raw(at, crossings[i].locale->id);
        at = JSON_RAW(at, ",\"t_enter\":");
        at = json_raw_number(at, crossings[i].t_enter);
        at = JSON_RAW(at, ",\"t_leave\":");
        at = json_raw_number(at, crossings[i].t_leave);
        *at++ = '}';
    }
    at = JSON_RAW(at, "],\"crossed_count\":");
    return json_raw_integer(at, count);
}

static char *encode(char *at, const struct ray *ray, const struct across_hit *hit,
                    const struct crossing *crossings)
{
    if (hit->locale) {
        at = JSON_RAW(at, "{\"status\":\"hit\",\"locale\":");
        at = encode_id_raw(at, hit->locale->id);
        at = JSON_RAW(at, ",\"revision\":");
        at = json_raw_integer(at, hit->locale->revision);
        at = encode_ray_hit_raw(at, ray, &hit->hit);
    } else {
        at = JSON_RAW(at, "{\"status\":\"miss\",\"locale\":null,\"revision\":null");
        at = encode_ray_hit_raw(at, ray, NULL);
    }
    return encode_crossed(at, crossings, hit->crossed);
}

static char *encode_invalid(char *at, const struct ray *ray)
{
    const char *why = ray_fault(ray);

    at = JSON_RAW(at, "{\"status\":\"invalid\",\"detail\":\"");
    at = json_raw_text(at, why, strlen(why));
    at = JSON_RAW(at, "\"");
    at = JSON_RAW(at, ",\"locale\":null,\"revision\":null");
    at = encode_ray_hit_raw(at, ray, NULL);
    return encode_crossed(at, NULL, 0);
}

static enum err_code answer_ray(struct call *call, const struct ray *ray, enum ray_mode mode,
                                struct crossing_room *crossings, bool is_first, struct err *err)
{
    struct across_hit hit;
    bool is_valid = ray_is_valid(ray);
    char *at;

    if (is_valid) {
        if (call_make_room(call, ray, crossings, err))
            return err->code;
        snapshot_ray(call->snapshot, ray, mode, crossings->at, &hit);
    }
    at = json_open_room(&call->out, RAY_BYTES);
    if (!at)
        return err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    if (!is_first)
        *at++ = ',';
    at = is_valid ? encode(at, ray, &hit, crossings->at) : encode_invalid(at, ray);
    *at++ = '}';
    json_close_room(&call->out, at);
    return ERR_OK;
}

enum err_code world_ray_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"rays", NULL};
    static const char *const names[] = {"mode", NULL};
    static const char *const modes[] = {"closest", "any", NULL};
    struct crossing_room crossings = {NULL, 0};
    struct json_batch batch;
    int mode = RAY_CLOSEST;

    if (options_open_batch(call, items, names, err) ||
        option_word(call, "mode", modes, &mode, err) ||
        option_batch(call, &json_shape_rays, &batch, err))
        return err->code;
    json_begin_object(&call->out);
    json_put_array(&call->out, "results");
    for (size_t i = 0; i < batch.count; i++) {
        const double *in = batch.numbers + i * json_shape_rays.stride;
        const struct ray ray = {{in[0], in[1], in[2]}, {in[3], in[4], in[5]}, in[6]};

        if (call_check_budget(call, i, err))
            return err->code;
        if (answer_ray(call, &ray, (enum ray_mode)mode, &crossings, i == 0, err))
            return ERR_NO_MEMORY;
    }
    json_end_array(&call->out);
    json_end_object(&call->out);
    return ERR_OK;
}
API_HANDLER(world_ray_post, 0, CALL_NEEDS_NOTHING)
