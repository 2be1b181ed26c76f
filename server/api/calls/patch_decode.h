/*
 * Decoding of patches and bodies; the ground and the shells of a patch are made here, on a worker.
 */
#ifndef KOTA_API_PATCH_DECODE_H
#define KOTA_API_PATCH_DECODE_H

#include "api/call.h"
#include "sand/sand.h"

/*
 * The body of POST …/patches, on a call whose locale exists.
 * ERR_BAD_INPUT, ERR_UNPROCESSABLE, ERR_TOO_LARGE, ERR_UNSUPPORTED_MEDIA_TYPE with pointers;
 * Where daemons share a log the ground is leased first (lease.h), and taken as it is then:
 * ERR_CONFLICT: it is leased by another. A patch without one is refused by the sand thread, unless
 * it repeats an earlier order under its key.
 * ERR_NO_DEVICE; ERR_BUSY: no patch of that scale is free, or its pool is not made yet
 * (*awaited: that scale, else SCALE_COUNT). Both come after all errors that need no
 * device; of the size of the pool only its maximum is known then. is_held: it has waited for a
 * pool, so requests that still wait do not delay it. *out is to be given away or freed after
 * ERR_OK.
 */
enum err_code patch_decode(struct call *call, bool is_held, struct patch_start *out, int *awaited,
                           struct err *err);

/* The body of POST …/patches/{patch}/bodies, for the patch of that report. The same errors. */
enum err_code patch_body_decode(struct call *call, const struct patch_report *report,
                                struct patch_body *out, struct err *err);

/* The patch that an impact gets. */
struct patch_impact {
    const char *layer;             /* a heightfield of call->locale */
    struct vec2 point;             /* where the body meets it */
    const struct patch_dent *dent; /* of call->locale: the ground is cut without it */
    double size_m, depth_m, deadline_s;
    enum granular_scale scale;
};

/* A patch around an impact, without a body. As patch_decode, and the pool must be there. */
enum err_code patch_impact_start(struct call *call, const struct patch_impact *impact,
                                 struct patch_start *out, struct err *err);

/* The body of PATCH …/bodies/{body}. */
enum err_code patch_push_decode(struct call *call, struct patch_push *out, struct err *err);

#endif
