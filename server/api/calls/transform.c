/*
 * PUT …/layers/{layer}/transform {"translation":[x,y,z],"yaw_deg":0}  ->  Locale
 *     {"translation":[x,y,z],"rotation":[x,y,z,w]}
 *
 * The layer, a mesh, is turned by the yaw about gravity's line through its own origin (the file's),
 * right-handed about "up", or by any rotation about its origin, and then shifted. What is put is
 * the whole pose and no step: to put it twice is to put it once, so an Idempotency-Key has nothing
 * to do here. It counts no revision but transform_seq, and waits for no commit (write/move.c).
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/write.h"

static enum err_code check_range(double value, double most, const char *what, const char *unit,
                                 struct err *err)
{
    if (fabs(value) <= most)
        return ERR_OK;
    return err_limit(err, ERR_BAD_INPUT, most, value, "%s %.17g is outside -%.0f..%.0f %s", what,
                     value, most, most, unit);
}

static enum err_code decode_translation(const struct call *call, struct vec3 *out, struct err *err)
{
    double by[3];

    if (json_get_numbers(json_member(call->json, "translation"), 3, by, err))
        return err_at(err, "/translation");
    for (int i = 0; i < 3; i++)
        if (check_range(by[i], POSE_TRANSLATION_MAX_M, "translation", "m", err))
            return err_at(err, "/translation/%d", i);
    *out = (struct vec3){by[0], by[1], by[2]};
    return ERR_OK;
}

static enum err_code decode_rotation(const cJSON *rotation, double out[4], struct err *err)
{
    double length;

    if (json_get_numbers(rotation, 4, out, err))
        return err_at(err, "/rotation");
    if (!rotation_is_unit(out, &length))
        return err_limit_at(
            err, ERR_UNPROCESSABLE, "/rotation", 1, length,
            "rotation must be a unit quaternion x, y, z, w, within a thousandth: its length "
            "is %.17g",
            length);
    for (int i = 0; i < 4; i++)
        out[i] /= length;
    return ERR_OK;
}

static enum err_code decode_pose(const struct call *call, struct pose *out, struct err *err)
{
    const cJSON *yaw = json_given(call->json, "yaw_deg");
    const cJSON *rotation = json_given(call->json, "rotation");

    *out = (struct pose){.yaw_deg = 0};
    if (decode_translation(call, &out->translation, err))
        return err->code;
    if (yaw && rotation)
        return err_set_at(err, ERR_BAD_INPUT, "/rotation",
                          "a pose has yaw_deg or rotation, not both");
    if (rotation)
        return decode_rotation(rotation, out->rotation, err);
    if (yaw && (json_get_number(yaw, &out->yaw_deg, err) ||
                check_range(out->yaw_deg, POSE_YAW_MAX_DEG, "yaw_deg", "degrees", err)))
        return err_at(err, "/yaw_deg");
    return ERR_OK;
}

static const struct write_kind transform_write = {
    .change = WORLD_MOVE_LAYER,
    .method = "PUT",
    .below = "/transform",
    .ignores_key = true, /* a pose is the same however often */
    .encode = write_encode_locale,
};

enum err_code transform_put_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"translation", "yaw_deg", "rotation", NULL};
    static const char *const names[] = {NULL};
    struct world_change change = {.layer_id = ""};

    if (call_param_id(call, 1, "layer", ERR_LAYER_UNKNOWN, change.layer_id, err) ||
        write_open(call, &transform_write, &change, err) ||
        options_open_json(call, items, names, err) || decode_pose(call, &change.pose, err))
        return err->code;
    return write_submit(call, &transform_write, &change, NULL, 0, err);
}
API_HANDLER(transform_put, 2, CALL_NEEDS_NOTHING)
