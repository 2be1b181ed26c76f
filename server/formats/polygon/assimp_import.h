/*
 * Polygons out of GLB, glTF, AC3D and COLLADA files: by gltf.c where it can, else by assimp.
 *
 * Known about assimp and hostile bytes: its readers crash, hang and allocate without bound on files
 * that fuzzing of 5.2.5 finds within a minute. Therefore assimp_decode() checks the signature and
 * the counts of a header by itself, and then runs assimp in a forked child (base/jail.h) that can
 * open no file and no socket and has bounds of processor time, wall time and memory. Its answer is
 * checked like a file. The remaining risk: a file that takes over assimp's code controls that child
 * for at most POLYGON_JAIL_WALL_S seconds, under the daemon's user and with a copy of its memory,
 * but with only a pipe to the outside.
 */
#ifndef KOTA_FORMATS_ASSIMP_IMPORT_H
#define KOTA_FORMATS_ASSIMP_IMPORT_H

#include "formats/polygon/polygon_set.h"

enum { POLYGON_JAIL_CPU_S = 20, POLYGON_JAIL_WALL_S = 60 }; /* for one file */
#define POLYGON_JAIL_MEMORY_BYTES (UINT64_C(2) << 30)       /* beside the daemon's own */

/*
 * Decodes bytes[length] in the file's own frame: the header checked, then assimp in a jail. Order,
 * errors and cost are those of polygon_decode(). *out is empty on entry, but that its
 * instances.axis says about which axis instances are turned, in the file's frame (zero: copies);
 * polygon_set_free() it. Any thread.
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
