/*
 * Wavefront OBJ: the v and f statements, nothing else.
 */
#ifndef KOTA_FORMATS_OBJ_H
#define KOTA_FORMATS_OBJ_H

#include "formats/polygon/polygon_set.h"

/*
 * Decodes bytes[length] in the file's own frame; polygon i is the i-th f statement. *out is empty
 * on entry and may be half filled after an error; polygon_set_free() it.
 *
 * ERR_BAD_INPUT, ERR_TOO_LARGE, ERR_UNPROCESSABLE, ERR_NO_MEMORY: as polygon_decode().
 * Cost O(length), two passes; allocates exactly *out's arrays. Any thread.
 */
enum err_code obj_decode(const uint8_t *bytes, size_t length, const struct polygon_limits *limits,
                         struct polygon_set *out, struct err *err);

#endif
