/*
 * What a polygon file says of itself in its first bytes, judged before assimp sees it: the
 * signature and, where the format has them there, the counts.
 */
#ifndef KOTA_FORMATS_POLYGON_HEADER_H
#define KOTA_FORMATS_POLYGON_HEADER_H

#include "formats/polygon_file.h"

/* "GLB", "PLY"…, for messages. */
const char *polygon_format_word(enum polygon_format format);

/*
 * ERR_OK when bytes[length] begin as a file of this format does and no count in the header promises
 * more than the file holds or the limits allow. POLYGON_OBJ has no header and is always well.
 *
 * ERR_BAD_INPUT  another format, a version we do not read, counts that the length contradicts
 * ERR_TOO_LARGE  with limit and got
 * Cost O(length of the header); allocates nothing. Any thread.
 */
enum err_code polygon_header_check(enum polygon_format format, const uint8_t *bytes, size_t length,
                                   const struct polygon_limits *limits, struct err *err);

#endif
