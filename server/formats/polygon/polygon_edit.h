/*
 * Polygons that are added to a set, and removed from it.
 *
 * A polygon's number is its index in the set. Numbers are used once: new polygons get numbers above
 * all earlier ones, and a removed polygon leaves a gap, a number without corners, which is not used
 * again.
 */
#ifndef KOTA_FORMATS_POLYGON_EDIT_H
#define KOTA_FORMATS_POLYGON_EDIT_H

#include "formats/polygon/polygon_file.h"

/* Numbers that a set may have given, for each polygon that it may have at a time. */
enum { POLYGON_NUMBERS_TIMES = 8 };

struct polygon_edit {
    struct polygon_set add; /* polygon i of it gets the number count + i; some may be gaps */
    uint32_t *removed;      /* numbers, rising, each once; malloc */
    size_t removed_count;
};

/* Frees all and makes it empty. */
void polygon_edit_free(struct polygon_edit *edit);

/* Of memory. */
uint64_t polygon_edit_bytes(const struct polygon_edit *edit);

/*
 * May it be made? ERR_UNPROCESSABLE names the number that is not there; ERR_TOO_LARGE: what would
 * be there then is over a limit, or more numbers would be given than POLYGON_NUMBERS_TIMES as many
 * polygons as may be there.
 */
enum err_code polygon_edit_check(const struct polygon_set *set, const struct polygon_edit *edit,
                                 const struct polygon_limits *limits, struct err *err);

/* Polygons of a set that are no gaps. O(count). */
size_t polygon_set_count(const struct polygon_set *set);

/*
 * The set with an edit that was checked; vertices that no polygon has any more are left out. The
 * same set and edit give the same bytes. ERR_NO_MEMORY, and ERR_TOO_LARGE over 2^32: *out is empty
 * then. O(set).
 */
enum err_code polygon_set_edited(const struct polygon_set *set, const struct polygon_edit *edit,
                                 struct polygon_set *out, struct err *err);

/*
 * The same with several edits, each made where the ones before it have left the set; ERR_DAMAGED:
 * an edit removes a polygon that never existed. O(set + edits).
 */
enum err_code polygon_set_edited_all(const struct polygon_set *set,
                                     const struct polygon_edit *edits, size_t count,
                                     struct polygon_set *out, struct err *err);

/*
 * The edit that makes `after` of `before`, which became it by some edits. ERR_NO_MEMORY: *out is
 * empty then. O(polygons of both).
 */
enum err_code polygon_edit_between(const struct polygon_set *before,
                                   const struct polygon_set *after, struct polygon_edit *out,
                                   struct err *err);

/*
 * As bytes, little-endian: 4 × uint64 counts (vertices, polygons, corners, removed), then vertices
 * (3 × float64), starts, corners, removed (uint32). malloc; NULL: no memory.
 */
void *polygon_edit_encode(const struct polygon_edit *edit, size_t *length);

/*
 * And back. ERR_DAMAGED: no such bytes; every count and index is checked. ERR_NO_MEMORY. *out is
 * empty then.
 */
enum err_code polygon_edit_decode(const void *bytes, size_t length, struct polygon_edit *out,
                                  struct err *err);

#endif
