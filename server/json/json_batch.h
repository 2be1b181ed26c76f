/*
 * Batches of numbers in a JSON body, `{"points":[[x,y]…],…}` or `{"rays":[{"origin":[…],…}…],…}`,
 * read from its tape.
 */
#ifndef KOTA_JSON_JSON_BATCH_H
#define KOTA_JSON_JSON_BATCH_H

#include "json/json_tape.h"

enum { JSON_PARTS_MAX = 3 };

/* A member of an item that is an object. */
struct json_part {
    const char *name;
    size_t numbers; /* 1: a number, which may be missing or null; else an array of so many */
    double missing; /* the value of a missing number */
};

/* The items of an array: objects of `parts` (part_count > 0), or arrays of `stride` numbers. */
struct json_shape {
    const char *member; /* of the object that is the whole text */
    const char *item;   /* "a ray": for messages, where items are objects */
    size_t stride;      /* numbers of an item */
    size_t part_count;
    struct json_part parts[JSON_PARTS_MAX];
    const char *const *members; /* all that such an object may have, up to NULL */
};

extern const struct json_shape json_shape_points2;  /* "points" of [x,y] */
extern const struct json_shape json_shape_pixels;   /* "pixels" of [x,y] */
extern const struct json_shape json_shape_points3;  /* "points" of [x,y,z] */
extern const struct json_shape json_shape_path;     /* "path" of [x,y] */
extern const struct json_shape json_shape_rays;     /* origin, direction, t_max: INFINITY */
extern const struct json_shape json_shape_segments; /* from, to */

struct json_batch {
    double *numbers; /* [count][stride] */
    size_t count;
    bool is_plain; /* the items have no members but those of the shape */
};

/*
 * Reads all items of the array into out->numbers, which has room for them.
 * ERR_BAD_INPUT  names the item, and its member, in the pointer
 * No allocation but for unusual items (a name with escapes, a null, a trace); some ns a number.
 */
enum err_code json_batch_read(const struct json_tape *tape, uint32_t array,
                              const struct json_shape *shape, struct json_batch *out,
                              struct err *err);

/*
 * Reads one item, the `i`th, from cJSON, with the reasons.
 * ERR_BAD_INPUT  names the item, and its member, in the pointer
 */
enum err_code json_batch_item(const cJSON *item, size_t i, const struct json_shape *shape,
                              double *numbers, struct err *err);

#endif
