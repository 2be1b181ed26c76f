/*
 * Decoding a camera, of a body or of a query.
 */
#include "api/drawing/camera_decode.h"

#include "api/options.h"
#include "json/json_read.h"

enum err_code camera_of_json(const cJSON *json, struct camera *out, struct err *err)
{
    static const char *const members[] = {"eye", "target", "up", "fov_y_deg", NULL};
    const cJSON *up = json_given(json, "up"), *fov = json_given(json, "fov_y_deg");

    out->fov_y_deg = PICK_FOV_Y_DEG;
    if (json_only_members(json, members, "/camera", err))
        return err->code;
    if (json_get_vec3(json_member(json, "eye"), &out->eye, err))
        return err_at(err, "/camera/eye");
    if (json_get_vec3(json_member(json, "target"), &out->target, err))
        return err_at(err, "/camera/target");
    out->up = pick_default_up(out);
    if (up && json_get_vec3(up, &out->up, err))
        return err_at(err, "/camera/up");
    if (fov && json_get_number(fov, &out->fov_y_deg, err))
        return err_at(err, "/camera/fov_y_deg");
    return ERR_OK;
}

enum err_code camera_of_query(struct call *call, struct camera *out, struct err *err)
{
    out->fov_y_deg = PICK_FOV_Y_DEG;
    if (option_needed(call, "eye", 3, &out->eye.x, err) ||
        option_needed(call, "target", 3, &out->target.x, err))
        return err->code;
    out->up = pick_default_up(out);
    if (option_numbers(call, "up", 3, &out->up.x, NULL, err))
        return err->code;
    return option_number(call, "fov_y_deg", &out->fov_y_deg, NULL, err);
}
