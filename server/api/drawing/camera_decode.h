/*
 * Cameras of calls: {"eye","target","up","fov_y_deg"} of a body, or the same names of a query.
 */
#ifndef KOTA_API_CAMERA_DECODE_H
#define KOTA_API_CAMERA_DECODE_H

#include "api/call.h"
#include "terrain/pick.h"

/* What is not given has its default; whether it can be is pick_camera_check's. */
enum err_code camera_of_json(const cJSON *json, struct camera *out, struct err *err);
enum err_code camera_of_query(struct call *call, struct camera *out, struct err *err);

#endif
