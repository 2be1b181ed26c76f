/*
 * Shared by …/contact and /v1/contact: reach and clearance, the JSON of a contact and of a
 * footprint.
 */
#ifndef KOTA_API_CONTACT_H
#define KOTA_API_CONTACT_H

#include "api/call.h"

/* The options reach_up, max_distance, clearance, clearance_mode. */
struct contact_terms {
    struct contact_reach reach; /* up: a step, or without an end when only a clearance is given */
    bool has_clearance;
    struct clearance clearance;
};

/* ERR_BAD_INPUT  no number, or negative */
enum err_code contact_decode_terms(struct call *call, struct contact_terms *out, struct err *err);

/* Has a batch footprints, or points? ERR_BAD_INPUT: both. */
enum err_code contact_has_footprints(struct call *call, bool *out, struct err *err);

/* A Contact object as raw JSON (json_raw.h). */
enum { CONTACT_PIECE_BYTES = 640 };
char *contact_raw(char *at, const struct contact *contact);

struct footprint {
    struct vec3 asked[FOOTPRINT_POINTS_MAX];
    struct vec3 floor[FOOTPRINT_POINTS_MAX];
    bool has_floor[FOOTPRINT_POINTS_MAX];
    size_t count;
};

/*
 * The array "footprints" of a batch: its token; its points count as items of the call.
 * ERR_BAD_INPUT  none, or with a clearance
 * ERR_BUSY       call_take_items
 */
enum err_code footprints_open(struct call *call, const struct contact_terms *terms, uint32_t *array,
                              struct err *err);

/* Item i of "footprints". ERR_BAD_INPUT, ERR_TOO_LARGE with the place. */
enum err_code footprint_decode(const struct json_tape *tape, uint32_t item, size_t i,
                               struct footprint *out, struct err *err);

/* The members status, plane (null unless the status is ok) and points of a footprint's result. */
void footprint_members(struct json_writer *w, enum contact_status status,
                       const struct footprint *footprint, const struct plane *plane);

#endif
