/*
 * Polygons out of the files that assimp reads: GLB, glTF, PLY, STL, AC3D, COLLADA.
 */
#ifndef KOTA_FORMATS_ASSIMP_IMPORT_H
#define KOTA_FORMATS_ASSIMP_IMPORT_H

#include "formats/polygon_file.h"

/*
 * Decodes bytes[length] in the file's own frame: the header checked, then assimp in a jail. Order,
 * errors and cost are those of polygon_decode(). *out is empty on entry; polygon_set_free() it.
 * Any thread.
 */
enum err_code assimp_decode(enum polygon_format format, const uint8_t *bytes, size_t length,
                            const struct polygon_limits *limits, struct polygon_set *out,
                            struct err *err);

/*
 * The same in this very process, where a file may crash it: for the jail's child, and for fuzzing
 * assimp itself. Opens no file.
 */
enum err_code assimp_decode_here(enum polygon_format format, const uint8_t *bytes, size_t length,
                                 const struct polygon_limits *limits, struct polygon_set *out,
                                 struct err *err);

#endif
