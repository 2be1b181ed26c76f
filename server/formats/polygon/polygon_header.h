/*
 * The signature of a polygon file, judged before assimp sees it.
 */
#ifndef KOTA_FORMATS_POLYGON_HEADER_H
#define KOTA_FORMATS_POLYGON_HEADER_H

#include "formats/polygon/polygon_set.h"

/* "GLB", "PLY"…, for messages. */
const char *polygon_format_word(enum polygon_format format);

/*
 * ERR_OK when bytes[length] begin as a file of this format does. OBJ, PLY and STL, which are not
 * read by assimp, are always well.
 *
 * ERR_BAD_INPUT  another format, a version we do not read, a length that the header contradicts
 * Cost O(length of the header); allocates nothing. Any thread.
 */
enum err_code polygon_header_check(enum polygon_format format, const uint8_t *bytes, size_t length,
                                   struct err *err);

#endif
