/*
 * Convex polygons in the making, and their OBJ file.
 */
#ifndef KOTA_DEMO_POLYGONS_H
#define KOTA_DEMO_POLYGONS_H

#include "base/err.h"
#include "terrain/vec.h"

#include <stddef.h>
#include <stdint.h>

enum { POLYGON_CORNERS_MAX = 16 };

struct polygon {
    uint32_t corners;
    struct vec3 at[POLYGON_CORNERS_MAX]; /* counter-clockwise, seen from its front */
    const char *group;                   /* borrowed; what it is part of */
};

/* Growing list; all zero is empty. */
struct polygons {
    struct polygon *at;
    size_t count, room;
    const char *group; /* given to what is added from now on; borrowed, must outlive the list */
    bool no_memory;    /* something could not be added; polygons_obj says so */
};

/* Adds one polygon of 3..POLYGON_CORNERS_MAX corners. Failure is kept in no_memory. */
void polygons_add(struct polygons *list, const struct vec3 *corners, uint32_t count);

/* Triangles from apex over each edge of a chain of `count` corners. */
void polygons_fan(struct polygons *list, struct vec3 apex, const struct vec3 *chain,
                  uint32_t count);

void polygons_destroy(struct polygons *list);

/*
 * The list as an OBJ file: Z up, metres, each corner that several polygons share written once,
 * shortest decimals that give the same float64 again, one `f` line a polygon, a `g` line where the
 * group changes.
 *
 * title      goes into the first line, a comment
 * translate  added to each corner, after the turn
 * turned     true: half a turn about Z first (x and y change sign, exactly)
 * text       out: malloc, length bytes without a final 0
 *
 * ERR_NO_MEMORY. Cost O(n²) in corners: for lists of some thousand.
 */
enum err_code polygons_obj(const struct polygons *list, const char *title, bool turned,
                           struct vec3 translate, char **text, size_t *length, struct err *err);

#endif
