/*
 * PLY: vertices and faces, as text and as binary of either byte order.
 */
#ifndef KOTA_FORMATS_PLY_H
#define KOTA_FORMATS_PLY_H

#include "formats/polygon/polygon_set.h"

/*
 * Decodes bytes[length] in the file's own frame; polygon i is the i-th face of three corners or
 * more. *out is empty on entry and may be half filled after an error; polygon_set_free() it.
 *
 * ERR_BAD_INPUT, ERR_TOO_LARGE, ERR_UNPROCESSABLE, ERR_NO_MEMORY: as polygon_decode(), but that
 * vertices of a binary file may be infinite or NaN.
 * Cost O(length), two passes; allocates exactly *out's arrays. Any thread.
 */
enum err_code ply_decode(const uint8_t *bytes, size_t length, const struct polygon_limits *limits,
                         struct polygon_set *out, struct err *err);

#endif
