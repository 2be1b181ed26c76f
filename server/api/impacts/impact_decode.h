/*
 * The body of POST …/impacts, and where it meets the ground.
 */
#ifndef KOTA_API_IMPACT_DECODE_H
#define KOTA_API_IMPACT_DECODE_H

#include "api/call.h"
#include "sand/impact/crater.h"

/* Bounds of what is asked; in /v1/limits. */
#define IMPACT_RADIUS_MAX_M 100
#define IMPACT_MASS_MAX_KG 1000000000
#define IMPACT_SPEED_MAX 1000
/* Granules only where the observer is not further away, and where they rest within the time. */
#define IMPACT_OBSERVER_M 500
#define IMPACT_REST_MS 30000

struct impact {
    struct model *model;     /* a reference */
    double ball_m;           /* the radius that was given; 0: it is a model */
    struct crater_body body; /* as it meets the ground */
    double extent_m;         /* no point of the body is further from its centre of mass */
    struct vec3 direction;   /* unit, of its way */
    double observer_m;       /* from the point; 0 without an observer */
    bool is_waiting;         /* until: written */
    bool is_placed;          /* redirected by another daemon: it is answered here */
    char layer[WORLD_ID_MAX + 1];
    struct vec3 point;  /* of the ground that its centre's way meets */
    struct vec3 normal; /* there, unit, up */
    struct crater crater;
    struct change_author author; /* by impacts.c, for the history */
};

/*
 * On a worker. ERR_BAD_INPUT, ERR_UNPROCESSABLE with pointers: malformed; no ground on its way, or
 * another layer than a heightfield, or the ground from below. *out is to be freed after ERR_OK.
 */
enum err_code impact_decode(struct call *call, struct impact *out, struct err *err);
/* Only its `until`, of a body that was taken before. */
enum err_code impact_decode_until(struct call *call, bool *is_waiting, struct err *err);
void impact_free(struct impact *impact);

#endif
