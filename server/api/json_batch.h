/*
 * Batches of numbers in a JSON body, `{"points":[[x,y]…],…}` or `{"rays":[{"origin":[…],…}…],…}`,
 * read straight from the text.
 */
#ifndef KOTA_API_JSON_BATCH_H
#define KOTA_API_JSON_BATCH_H

#include "api/json_read.h"
#include "http/http.h"

enum { JSON_PARTS_MAX = 3, JSON_STRIDE_MAX = 7 };

/* A member of an item that is an object. */
struct json_part {
    const char *name;
    size_t numbers; /* 1: a number, which may be missing or null; else an array of so many */
    double missing; /* what a missing number is */
};

/* The items of an array: objects of `parts` (part_count > 0), or arrays of `stride` numbers. */
struct json_shape {
    const char *member; /* of the object that is the whole text */
    const char *item;   /* "a ray": for messages, where items are objects */
    size_t stride;      /* numbers of an item, at most JSON_STRIDE_MAX */
    size_t part_count;
    struct json_part parts[JSON_PARTS_MAX];
    const char *const *members; /* all that such an object may have, up to NULL */
};

extern const struct json_shape json_shape_points2;  /* "points" of [x,y] */
extern const struct json_shape json_shape_points3;  /* "points" of [x,y,z] */
extern const struct json_shape json_shape_path;     /* "path" of [x,y] */
extern const struct json_shape json_shape_rays;     /* origin, direction, t_max: INFINITY */
extern const struct json_shape json_shape_segments; /* from, to */

/* The array within a text: `[` to `]`; at is NULL when it was not read. */
struct json_batch {
    struct span array;
    double *numbers; /* [count][stride] */
    size_t count;
};

/*
 * Where the array of a shape begins in the text: at its `[`. NULL when there is none to be seen at
 * once. The text need not be JSON. O(bytes before it).
 */
const char *json_batch_find(struct span text, const struct json_shape *shape);

/* How many items the text from `array` on can hold at most. */
size_t json_batch_items_max(struct span text, const char *array, const struct json_shape *shape);

/*
 * Reads the array into numbers[capacity][stride]. False when it is not 1..capacity items of plain
 * members and finite numbers in strict JSON (RFC 8259): then somebody has to look who can say what
 * is wrong with it, or that it is only unusual (a trace, a null). What is read true is what
 * json_read_batch reads from the parsed text.
 * One pass, no allocation, some 10 ns a number. Reads nothing beyond the text.
 */
bool json_batch_read(struct span text, const char *array, const struct json_shape *shape,
                     size_t capacity, double *numbers, struct json_batch *out);

/*
 * The same from the parsed text, with the reasons: reads `count` items from the first one on.
 * ERR_BAD_INPUT  names the item, and its member, in the pointer
 */
enum err_code json_read_batch(const cJSON *first, const struct json_shape *shape, double *numbers,
                              struct err *err);

#endif
