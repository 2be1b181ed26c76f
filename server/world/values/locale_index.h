/*
 * The locales of a snapshot by their place in the world: a tree of boxes that finds those which a
 * ray or a line along gravity may meet. Immutable and counted: a change makes the nodes above one
 * locale again, and shares all others.
 *
 * The tree only rules out. Its boxes are larger than the locales' bounds by more than all roundings
 * of a placement (BOUNDING_SPHERE_SLACK), so what it leaves out cannot answer.
 */
#ifndef KOTA_WORLD_LOCALE_INDEX_H
#define KOTA_WORLD_LOCALE_INDEX_H

#include "terrain/field_ray/ray.h"
#include "world/values/locale.h"

struct locale_index; /* NULL: of no locale with bounds */

struct locale_index *locale_index_ref(struct locale_index *index);
void locale_index_unref(struct locale_index *index);

/*
 * *out is the index with `after` (NULL: without one) in the place of `before` (NULL: there was
 * none), which are of one id; a new reference. Locales are borrowed: they live at least as long as
 * every index that has them. The same locales make the same tree, in whatever order they came.
 * ERR_NO_MEMORY. O(depth), some microseconds.
 */
enum err_code locale_index_next(struct locale_index *index, const struct locale *before,
                                const struct locale *after, struct locale_index **out,
                                struct err *err);

/* Takes each locale that may be met, in no order that matters. */
typedef void (*locale_index_take)(void *context, const struct locale *locale);

/* The locales whose bounds a ray of the world may meet. */
void locale_index_ray(const struct locale_index *index, const struct ray *world,
                      locale_index_take take, void *context);

/* The locales whose bounds the line of their own gravity through a point of the world may meet. */
void locale_index_gravity(const struct locale_index *index, struct vec3 world,
                          locale_index_take take, void *context);

/* Is each node what its children make, and each locale where its place says? Counts locales. */
bool locale_index_validate(const struct locale_index *index, size_t *count, struct err *err);

#endif
