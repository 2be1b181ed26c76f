/*
 * A heightfield that must be, whole. Include after cmocka.h.
 */
#ifndef KOTA_TESTS_FIELD_MAKE_H
#define KOTA_TESTS_FIELD_MAKE_H

#include "terrain/field/heightfield.h"

/* samples[rows][cols]; the caller's. Fails the test, with the reason. */
static inline struct heightfield *field_make(const struct heightfield_spec *spec,
                                             const float *samples)
{
    struct err err;
    struct heightfield *field = heightfield_create(spec, samples, &err);

    if (field == NULL)
        fail_msg("heightfield_create: %s", err.msg);
    if (!heightfield_validate(field, &err))
        fail_msg("heightfield_validate: %s", err.msg);
    return field;
}

#endif
