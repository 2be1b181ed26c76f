/*
 * Earlier values of a locale: pins, which have names and stay, and the last revisions, which do
 * not. Both are lists that belong to a state of the locale, immutable and counted as it is, so a
 * request finds them in its snapshot.
 *
 * The values share their tiles and meshes with the locale and have no lists of their own; layers
 * are at rest in them.
 */
#ifndef KOTA_WORLD_PINS_H
#define KOTA_WORLD_PINS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct locale;

enum { LOCALE_PAST_MAX = 64 }; /* revisions before the present one */

struct earlier {
    char name[65]; /* of a pin */
    struct locale *value;
    uint64_t bytes; /* that the value does not share with the next one; of a pin: with the next
                       newer pin, or the locale as it was when the list was made */
};

/* Pins by name, or revisions in order. */
struct earlier_list {
    uint32_t refs; /* atomic */
    size_t count;
    uint64_t bytes;
    struct earlier at[];
};

struct earlier_list *earlier_list_ref(struct earlier_list *list); /* NULL is fine, as below */
void earlier_list_unref(struct earlier_list *list);

/*
 * The lists of `next`, a new state of a locale that is not shared yet, become those of the state
 * before it, which joins the past when its revision is another one. The past has LOCALE_PAST_MAX
 * values at most, and fewer where they would hold more than bytes_max. ERR_NO_MEMORY.
 */
enum err_code locale_succeed(struct locale *next, const struct locale *before, uint64_t bytes_max,
                             struct err *err);

/*
 * The same state of the locale with a value of it (NULL: as it is) under a name, or without that
 * pin. NULL and ERR_NO_MEMORY; one reference. O(layers + pins).
 */
struct locale *locale_with_pin(const struct locale *locale, const char *name, struct locale *value,
                               struct err *err);
struct locale *locale_without_pin(const struct locale *locale, const char *name, struct err *err);

/* The state with that value among its pins, too: for a load. Takes nothing. ERR_NO_MEMORY. */
enum err_code locale_add_pin(struct locale *locale, const char *name, struct locale *value,
                             struct err *err);

/* The value under a name, or at a revision: the present one, one of the past, or a pin's. NULL:
 * there is none. */
struct locale *locale_pin(const struct locale *locale, const char *name);
const struct locale *locale_at_revision(const struct locale *locale, uint64_t revision);

#endif
