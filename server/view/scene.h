/*
 * A scene for OpenGL: the triangles of a locale, relative to an eye, as many as are needed.
 *
 * Pure: a locale and a camera in, arrays out. Places are float32 relative to the eye, which is
 * where precision is needed.
 */
#ifndef KOTA_VIEW_SCENE_H
#define KOTA_VIEW_SCENE_H

#include "terrain/pick.h"
#include "world/values/locale.h"

enum {
    SCENE_BLOCK = 32,               /* cells along a block's side */
    SCENE_SIDE = SCENE_BLOCK + 1,   /* vertices */
    SCENE_STORED = SCENE_BLOCK + 3, /* samples, with those around for slopes */
    SCENE_BLOCKS_MAX = 4096,        /* 8 million triangles */
    SCENE_BLOCKS_SOFTWARE = 2048,   /* where the processor draws them */
    SCENE_SPHERES_MAX = 1 << 20,
};

/* A camera's frame, and the size of a picture: x and y of a place by its depth. */
struct lens_frame {
    struct vec3 eye, right, up, forward; /* unit, right-handed */
    double tangent[2];                   /* of half the angle across, upwards */
    uint32_t width, height;              /* pixels */
};

/* ERR_BAD_INPUT: a camera that cannot be, err->pointer its member. */
enum err_code lens_frame_make(const struct camera *camera, uint32_t width, uint32_t height,
                              struct lens_frame *out, struct err *err);

struct scene_field {
    uint32_t first, count; /* of the blocks */
    enum triangulation triangulation;
    bool has_hems; /* blocks have several steps, so their edges differ */
    int32_t last[2];
    float spacing[2], base[2], eye_z[2];
};

struct scene_block {
    int32_t column, row, step, pad; /* counted from the field's sample at the eye */
};

struct scene_sphere {
    float at[3], radius_m;
    float shade; /* 0..1 */
};

/* Corners of triangles, three each: [first, first + count). */
struct scene_part {
    size_t first, count;
    struct box3 box;
    bool is_body;
    bool casts; /* shadows; the sky of a planet or of a drum would leave all of it in the dark */
};

struct scene {
    struct scene_field *fields;
    size_t field_count;
    struct scene_block *blocks;
    struct box3 *boxes; /* [block_count] */
    float *heights;     /* [block_count][SCENE_STORED][SCENE_STORED] */
    uint32_t block_count;
    struct scene_part *parts;
    size_t part_count;
    float (*corners)[3];
    float (*normals)[3]; /* of bodies; others have 0: those of their planes */
    size_t corner_count;
    const struct scene_sphere *spheres; /* borrowed */
    uint32_t sphere_count;
};

/*
 * Each cell of a heightfield that fits into blocks_max blocks (at most SCENE_BLOCKS_MAX); of larger
 * ones every second, fourth, … sample where cells are smaller than a pixel, or as many pixels as
 * are needed to fit. Meshes and bodies as they are.
 *
 * bytes_max  of all arrays: ERR_UNPROCESSABLE. ERR_NO_MEMORY. Empty (finish is fine) on an error.
 */
enum err_code scene_make(const struct locale *locale, const struct lens_frame *lens,
                         uint32_t blocks_max, uint64_t bytes_max, struct scene *out,
                         struct err *err);
void scene_finish(struct scene *scene);

/*
 * normals[count] of the corners of a body's triangles, three each: smooth, but for edges sharper
 * than 35 degrees; 0 of a triangle without area. scene_smooth.c, for scene.c. ERR_NO_MEMORY.
 */
enum err_code scene_smooth(const float (*corners)[3], uint32_t count, float (*normals)[3],
                           struct err *err);

/* Is any of a box (relative to the eye) within the camera's pyramid? */
bool lens_frame_sees(const struct lens_frame *lens, const struct box3 *box);

/* Adds the blocks of a heightfield: scene_field.c, for scene.c. */
enum err_code scene_add_fields(const struct locale *locale, const struct lens_frame *lens,
                               uint32_t blocks_max, struct scene *scene, struct err *err);

#endif
