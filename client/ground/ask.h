/*
 * What questions to one locale and to all have in common: results as the header has them, and
 * whether they depend on ground that the copy does not hold.
 */
#ifndef KOTA_GROUND_ASK_H
#define KOTA_GROUND_ASK_H

#include "client/ground/copy.h"

#include "world/ask/across.h"

/* The terms of a contact, checked. */
struct ground_terms {
    struct contact_reach reach;
    bool has_clearance;
    struct clearance clearance;
};

/* reach NULL: the defaults. False, and the error: a number below 0. */
bool ground_terms(const struct kota_ground_reach *reach, struct ground_terms *out, struct err *err);

/* False, and the error: numbers[count] has one that is not finite, of item i of `per_item`. */
bool ground_finite(const double *numbers, size_t count, size_t per_item, struct err *err);

struct kota_ground_contact ground_contact(const struct contacts *contacts, const char *locale);
struct kota_ground_hit ground_hit(enum kota_ground_ray_status status, const struct ray *ray,
                                  const struct locale_hit *hit, const char *locale);
struct kota_ground_contact ground_contact_absent(void);

/* Does the line of gravity through a point of the locale meet ground that is not held? */
bool is_absent_along_gravity(const struct kota_ground_locale *locale,
                             const struct layer_choice *choice, struct vec3 point);
/* Does the ray, up to `end` of t, meet such ground? */
bool is_absent_along_ray(const struct kota_ground_locale *locale, const struct layer_choice *choice,
                         const struct ray *ray, double end);

/* Is such ground within reach_m of a box with these corners, seen from above? */
bool is_absent_around(const struct kota_ground_locale *locale, const struct layer_choice *choice,
                      struct vec3 a, struct vec3 b, double reach_m);

/* Has a logical tile of a layer of the choice samples that are not held? */
bool is_absent_tile(const struct kota_ground_locale *locale, const struct layer *layer,
                    const struct logical_tile *tile);

static inline void put_vec3(double out[3], struct vec3 v)
{
    out[0] = v.x;
    out[1] = v.y;
    out[2] = v.z;
}

static inline struct vec3 get_vec3(const double in[3])
{
    return (struct vec3){in[0], in[1], in[2]};
}

#define GROUND_NOWHERE ((struct vec3){NAN, NAN, NAN})

#endif
