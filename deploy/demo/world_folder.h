/*
 * A world directory on disk: DIR/<id>/locale.json and its layers, as kotad --world reads them.
 *
 * It is written into a temporary folder beside DIR and takes DIR's name when it is complete, so
 * that no reader finds half a world. A marker file tells our own folders from foreign ones.
 */
#ifndef KOTA_DEMO_WORLD_FOLDER_H
#define KOTA_DEMO_WORLD_FOLDER_H

#include "deploy/demo/grid.h"
#include "deploy/demo/landscape.h"
#include "deploy/demo/village.h"

#include <limits.h>

enum ground_format { GROUND_PNG, GROUND_F32 };

struct world_folder {
    char final[PATH_MAX - 64];
    char staging[PATH_MAX];
};

/*
 * Makes the temporary folder. ERR_CONFLICT: DIR is not a folder, or holds something and was not
 * written by kota-worldgen; nothing was changed. ERR_INTERNAL: the system's reason.
 */
enum err_code world_folder_open(struct world_folder *folder, const char *dir, struct err *err);

/*
 * Writes one landscape. PNG: 16-bit codes, first row at the greatest y (flip_y), height = offset +
 * scale·code with the smallest power of two that spans the heights as scale; code 0 is no-data
 * where the ground has holes. F32: the samples as they are. May be called on several threads for
 * different landscapes.
 */
enum err_code world_folder_add(const struct world_folder *folder, const struct landscape *landscape,
                               const struct grid *ground, enum ground_format format,
                               struct err *err);

/* Writes one locale made of polygons: its manifest and an OBJ file a layer. */
enum err_code world_folder_add_meshes(const struct world_folder *folder,
                                      const struct village_locale *locale, struct err *err);

/* Gives the folder its name; an older world of ours there is removed. */
enum err_code world_folder_commit(struct world_folder *folder, struct err *err);

/* Removes the temporary folder. */
void world_folder_abandon(struct world_folder *folder);

/* Heights as codes: the plan of a 16-bit file. Exact powers of two and whole metres. */
struct height_codes {
    double scale_m, offset_m;
    bool has_holes;
};

struct height_codes height_codes_plan(const struct grid *ground);

/* Nearest code; NaN is 0. */
uint16_t height_code(const struct height_codes *codes, float height_m);

/* Little-endian float32, every NaN as the same bits; bytes[4·count] may be the samples' own memory.
 */
void samples_to_bytes(const float *samples, size_t count, uint8_t *bytes);

/* Writes a whole file, or leaves none: into PATH.part, then renamed. ERR_INTERNAL. */
enum err_code file_write(const char *path, const void *bytes, size_t length, struct err *err);

#endif
