/*
 * What the owner of a token may do: rights, locales, bounds, rates, and until when. A line of the
 * token file gives them as words, a signed token as JSON (signed_token.h); both use the setters.
 */
#ifndef KOTA_API_CLAIMS_H
#define KOTA_API_CLAIMS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RIGHT_LIST(X)                                                                              \
    X(READING, reading)                                                                            \
    X(EDITS, edits) /* samples, brushes, polygons */                                               \
    X(LAYERS, layers)                                                                              \
    X(LOCALES, locales)                                                                            \
    X(PATCHES, patches)                                                                            \
    X(BODIES, bodies)                                                                              \
    X(IMPACTS, impacts)                                                                            \
    X(MODELS, models)                                                                              \
    X(MOVES, moves)                                                                                \
    X(PINS, pins)                                                                                  \
    X(OPERATING, operating)

enum right {
#define RIGHT_ENUM(name, word) RIGHT_##name,
    RIGHT_LIST(RIGHT_ENUM)
#undef RIGHT_ENUM
        RIGHT_COUNT,
    RIGHT_NONE = RIGHT_COUNT /* of a route that anyone may ask */
};

enum { CLAIMS_NAME_MAX = 64, CLAIMS_LOCALES_BYTES = 512 };

struct claims {
    char name[CLAIMS_NAME_MAX + 1];     /* in the audit and in metrics */
    uint32_t may;                       /* bit r: enum right r */
    bool has_may;                       /* it was given */
    bool has_locales;                   /* else all */
    bool has_bounds;                    /* else everywhere */
    char locales[CLAIMS_LOCALES_BYTES]; /* patterns with commas between; `*` is any text */
    double bounds_m[4];                 /* x0 y0 x1 y1 in the frame of the locale, x0 <= x1 */
    double rate, items;                 /* requests, items a second; 0: no bound */
    double begin_s, end_s;              /* valid from, and before: seconds since 1970 */
};

/* No bounds of any kind. may_edit: all rights but operating; else reading only. */
void claims_init(struct claims *claims, bool may_edit);

/* Each setter: ERR_BAD_INPUT with the value and the form that was expected. */
enum err_code claims_set_name(struct claims *claims, const char *name, struct err *err);
/* The first one replaces the rights of claims_init. */
enum err_code claims_add_right(struct claims *claims, const char *word, struct err *err);
enum err_code claims_add_locale(struct claims *claims, const char *pattern, struct err *err);
enum err_code claims_set_bounds(struct claims *claims, const double bounds_m[4], struct err *err);
/* key is `rate` or `items`; above 0, at most 1e12 a second. */
enum err_code claims_set_rate(struct claims *claims, const char *key, double a_second,
                              struct err *err);

/*
 * One word of a line: name=alice, may=edits,patches, locales=arena-*,lobby, bounds=x0,y0,x1,y1,
 * rate=50/s, items=1e6/s, until=2026-12-31 (to its end, UTC) or an RFC 3339 time. Each at most
 * once; *seen, 0 before the first word, remembers them. The word is cut up.
 */
enum err_code claims_set_word(struct claims *claims, char *word, uint32_t *seen, struct err *err);

static inline bool claims_may(const struct claims *claims, enum right right)
{
    return claims->may >> right & 1;
}

/* Is this locale among those of the claims, whether it exists or not? */
bool claims_has_locale(const struct claims *claims, const char *id, size_t length);

/* Does a call that needs it write? */
static inline bool right_is_of_writes(enum right right)
{
    return right != RIGHT_READING && right != RIGHT_OPERATING && right != RIGHT_NONE;
}

/* "edits": the word of a right. */
const char *right_word(enum right right);

#endif
