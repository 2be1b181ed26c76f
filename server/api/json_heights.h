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

/* Items of such an array, `[` and `]` included. O(length). */
size_t json_count_items(struct span array);

/*
 * Reads all its json_count_items() items as float32; null becomes NaN.
 * ERR_BAD_INPUT  an item that is no number or beyond float32, named below `place`
 * O(length); a number costs some 20 ns, a rare one with more than 19 digits strtod.
 */
enum err_code json_read_heights(struct span array, const char *place, float *out, struct err *err);

#endif
