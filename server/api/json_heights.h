/*
 * Long arrays of numbers in a JSON text, read without a tree.
 */
#ifndef KOTA_API_JSON_HEIGHTS_H
#define KOTA_API_JSON_HEIGHTS_H

#include "http/http.h"

/*
 * Finds the array that is the member `name` of the object that is the whole text, which must have
 * passed json_check. at is NULL when there is none, or when the member is no array or is there
 * twice: whoever parses the text finds that.
 */
struct span json_find_array(struct span text, const char *name);

/*
 * Where the first member of that name has its value, by the grammar of what stands before it; NULL
 * when none is found. What is no JSON is not noticed, so the text has to be checked, before or
 * after. O(bytes before it).
 */
const char *json_find_value(struct span text, const char *name);

/* Items of such an array, `[` and `]` included. O(length). */
size_t json_count_items(struct span array);

/*
 * Reads all its json_count_items() items as float32; null becomes NaN.
 * ERR_BAD_INPUT  an item that is no number or beyond float32, named below `place`
 * O(length); some 10 ns a number.
 */
enum err_code json_read_heights(struct span array, const char *place, float *out, struct err *err);

#endif
