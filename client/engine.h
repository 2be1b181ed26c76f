/*
 * Heightfields as game engines import them, and the numbers that their users type.
 */
#ifndef KOTA_CLIENT_ENGINE_H
#define KOTA_CLIENT_ENGINE_H

#include "base/err.h"
#include "terrain/field/heightfield.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

/* What one of them reads: a row of a table. */
struct engine;

/* The names, parted by blanks. */
#define ENGINE_NAMES "unreal unity terrain3d godot blender"

/*
 * The engine of a name, for a file whose name ends as that engine wants it. NULL on error.
 *
 * ERR_BAD_INPUT  another name, another ending
 */
const struct engine *engine_of(const char *name, const char *file, struct err *err);

/* Ground in units of its grid: sample (c, r) is at (c, r), as its spec says. */
struct engine_ground {
    struct heightfield *field;
    double spacing_m[2], origin_m[2];
};

/*
 * The ground as that engine's file: the exact surface at each of the engine's samples.
 *
 * size    samples of a side, of the longer one where the engine takes any; 0: the least that keeps
 *         each sample
 * bytes   out: the file, freed by free(), also on an error
 * told    out: what to type, freed by cJSON_Delete, also on an error
 *
 * ERR_BAD_INPUT    a size that the engine does not take
 * ERR_UNPROCESSABLE  no ground at all
 * ERR_NO_MEMORY
 */
struct engine_file {
    unsigned char *bytes;
    size_t length;
    cJSON *told;
};
enum err_code engine_encode(const struct engine *engine, const char *file,
                            const struct engine_ground *ground, uint32_t size,
                            struct engine_file *out, struct err *err);

#endif
