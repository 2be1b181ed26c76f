/*
 * Checks of an AC3D file that assimp lacks, and errors that it repairs where it should refuse: done
 * before assimp reads the file.
 */
#ifndef KOTA_FORMATS_AC3D_H
#define KOTA_FORMATS_AC3D_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * ERR_OK when every object of bytes[length] has the vertices that its numvert promises and every
 * surface the indices that its refs promises, each of one of its object's vertices.
 *
 * ERR_BAD_INPUT  with the line, and the index and the object's vertices where it is about them Cost
 * O(length); allocates nothing. Any thread.
 */
enum err_code ac3d_check_indices(const uint8_t *bytes, size_t length, struct err *err);

#endif
