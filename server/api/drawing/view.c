/*
 * POST …/view.png  {"camera":{"eye","target","up","fov_y_deg"},"size":[w,h],
 *                   "sun":{"direction":[x,y,z]} or {"azimuth_deg","height_deg"},"shadows":true}
 * GET  …/view.png?eye=&target=&up=&fov_y_deg=&size=w,h&sun=x,y,z&shadows=
 *   ->  image/png
 *
 * What a camera sees: ground, meshes, moved layers, and what moves in patches unless live=false or
 * at= say otherwise. The pixel (x, y) shows what `pick` finds there. direction is the way that the
 * sun's light travels, as in `lit`; azimuth is clockwise from +Y, height is above the plane of X
 * and Y. A thread of its own draws (view/view.h); the request waits without one.
 */
#include "api/calls.h"

#include "api/drawing/camera_decode.h"
#include "api/options.h"
#include "json/json_read.h"
#include "view/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUN_AZIMUTH_DEG 240.0
#define SUN_HEIGHT_DEG 38.0

/* Memory of the request. */
struct picture {
    struct http_request *request;
    struct http_reply *reply;
    uint64_t revision;
};

/* ---- the sun --------------------------------------------------------------------------------- */

static enum err_code sun_from_angles(const double deg[2], struct vec3 *out, struct err *err)
{
    const double azimuth = deg[0] * (M_PI / 180), height = deg[1] * (M_PI / 180);

    if (!(fabs(deg[1]) <= 90))
        return err_limit_at(err, ERR_BAD_INPUT, "/sun/height_deg", 90, deg[1],
                            "height_deg is %g, must be -90 to 90", deg[1]);
    if (!(fabs(deg[0]) <= 360))
        return err_limit_at(err, ERR_BAD_INPUT, "/sun/azimuth_deg", 360, deg[0],
                            "azimuth_deg is %g, must be -360 to 360", deg[0]);
    *out = (struct vec3){-sin(azimuth) * cos(height), -cos(azimuth) * cos(height), -sin(height)};
    return ERR_OK;
}

static enum err_code sun_from_direction(struct vec3 direction, const char *place, struct vec3 *out,
                                        struct err *err)
{
    *out = vec3_unit(direction);
    if (vec3_dot(*out, *out) > 0)
        return ERR_OK;
    return err_set_at(err, ERR_BAD_INPUT, place,
                      "the direction is the zero vector, a light must travel");
}

static enum err_code sun_of_json(const cJSON *sun, struct vec3 *out, struct err *err)
{
    static const char *const names[] = {"direction", "azimuth_deg", "height_deg", NULL};
    const cJSON *direction, *angles[2];
    struct vec3 v;
    double deg[2];

    if (json_only_members(sun, names, "/sun", err))
        return err->code;
    direction = json_given(sun, "direction");
    for (int i = 0; i < 2; i++)
        angles[i] = json_given(sun, names[1 + i]);
    if ((direction != NULL) == (angles[0] || angles[1]))
        return err_set_at(err, ERR_BAD_INPUT, "/sun",
                          "either direction, or azimuth_deg and height_deg must be given, not %s",
                          direction ? "both" : "neither");
    if (direction)
        return json_get_vec3(direction, &v, err)
                   ? err_at(err, "/sun/direction")
                   : sun_from_direction(v, "/sun/direction", out, err);
    for (int i = 0; i < 2; i++)
        if (json_get_number(json_member(sun, names[1 + i]), &deg[i], err))
            return err_at(err, "/sun/%s", names[1 + i]);
    return sun_from_angles(deg, out, err);
}

/* ---- the picture ----------------------------------------------------------------------------- */

/* On the view's thread. */
static void picture_done(void *context, const struct err *err, struct raster_bytes *png)
{
    struct picture *picture = context;

    if (png) {
        http_reply_content_type(picture->reply, "image/png");
        http_reply_header_number(picture->reply, "Kota-Revision", picture->revision);
        http_reply_append(picture->reply, png->at, png->length);
        free(png->at);
    } else {
        http_reply_problem(picture->reply, err);
    }
    http_request_finish(picture->request);
}

static bool picture_is_abandoned(void *context)
{
    return http_request_is_abandoned(((struct picture *)context)->request);
}

/* Where `json`, the members of the error's pointer are in a body. */
static enum err_code submit(struct call *call, struct view_job *job, const double size[2],
                            bool is_json, struct err *err)
{
    char member[sizeof err->pointer];
    struct picture *picture;
    struct err refused;

    if (daemon_view_check(&job->camera, size, err)) {
        snprintf(member, sizeof member, "%s", err->pointer);
        return err_at(err, "%s%s",
                      !is_json                      ? ""
                      : strcmp(member, "size") == 0 ? "/"
                                                    : "/camera/",
                      member);
    }
    if (!call->api->view)
        return err_set(err, ERR_NO_DEVICE, "this daemon draws no pictures");
    picture = http_request_alloc(call->request, sizeof *picture);
    if (!picture)
        return err_set(err, ERR_NO_MEMORY, "no memory for a picture");
    *picture = (struct picture){call->request, call->reply, call->locale->revision};
    job->width = (uint32_t)size[0];
    job->height = (uint32_t)size[1];
    job->locale = locale_ref((struct locale *)call->locale);
    job->is_live = call->is_live;
    job->done = picture_done;
    job->is_abandoned = picture_is_abandoned;
    job->context = picture;
    http_request_defer(call->request); /* the view may be faster than this thread */
    call->is_deferred = true;
    if (daemon_view_submit(call->api->view, job, &refused)) {
        locale_unref(job->locale);
        picture_done(picture, &refused, NULL);
    }
    return ERR_OK;
}

static void defaults(struct view_job *job, double size[2])
{
    struct err err;

    *job = (struct view_job){.has_shadows = true};
    size[0] = 640;
    size[1] = 480;
    sun_from_angles((const double[2]){SUN_AZIMUTH_DEG, SUN_HEIGHT_DEG}, &job->light, &err);
}

enum err_code view_post_answer(struct call *call, struct err *err)
{
    static const char *const items[] = {"camera", "size", "sun", NULL};
    static const char *const names[] = {"shadows", NULL};
    const cJSON *given, *sun;
    struct view_job job;
    double size[2];

    defaults(&job, size);
    if (options_open_json(call, items, names, err))
        return err->code;
    if (!json_given(call->json, "camera"))
        return err_set_at(err, ERR_MISSING, "/camera", "is missing: an object with eye and target");
    given = json_given(call->json, "size");
    sun = json_given(call->json, "sun");
    if (camera_of_json(json_given(call->json, "camera"), &job.camera, err) ||
        option_boolean(call, "shadows", &job.has_shadows, err) ||
        (sun && sun_of_json(sun, &job.light, err)))
        return err->code;
    if (given && json_get_numbers(given, 2, size, err))
        return err_at(err, "/size");
    return submit(call, &job, size, true, err);
}
API_HANDLER(view_post, 1, CALL_NEEDS_GROUND)

enum err_code view_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"eye",  "target", "up",      "fov_y_deg",
                                        "size", "sun",    "shadows", NULL};
    struct view_job job;
    struct vec3 sun;
    bool has_sun = false;
    double size[2];

    defaults(&job, size);
    if (options_open_query(call, names, err) || camera_of_query(call, &job.camera, err) ||
        option_numbers(call, "size", 2, size, NULL, err) ||
        option_numbers(call, "sun", 3, &sun.x, &has_sun, err) ||
        option_boolean(call, "shadows", &job.has_shadows, err) ||
        (has_sun && sun_from_direction(sun, "sun", &job.light, err)))
        return err->code;
    return submit(call, &job, size, false, err);
}
API_HANDLER(view_get, 1, CALL_NEEDS_GROUND)
