/*
 * A layer: one surface of a locale, under its name. Immutable and counted, as the surface is.
 */
#ifndef KOTA_WORLD_LAYER_H
#define KOTA_WORLD_LAYER_H

#include "base/err.h"
#include "formats/polygon/polygon_edit.h"
#include "terrain/field/heightfield.h"
#include "terrain/mesh/mesh.h"
#include "terrain/motion.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORLD_ID_MAX = 64 }; /* characters of [A-Za-z0-9_-] in the id of a locale or layer */

enum layer_kind { LAYER_HEIGHTFIELD, LAYER_MESH };
enum layer_role { LAYER_GROUND, LAYER_CEILING };

/* The polygons of a file, counted: several layers are built of them when gravity changes. */
struct layer_polygons;

/* The poses that a layer's velocity follows from; the clock is the writer's, in seconds. */
struct layer_pace {
    struct pose pose[2]; /* older first */
    double at_s[2];
    int count;
};

/* A body among granules, as a layer of a live value (locale_with_bodies). */
struct layer_body {
    uint64_t patch; /* its number; 0: the layer is no body, and has an id */
    uint32_t number;
    struct vec3 middle; /* of a ball around it, in the locale's frame; set by layer_create_body */
    double ball_m;
};

struct layer {
    char id[WORLD_ID_MAX + 1];
    enum layer_kind kind;
    enum layer_role role;            /* a heightfield is ground */
    struct heightfield *field;       /* LAYER_HEIGHTFIELD, else NULL */
    struct mesh *mesh;               /* LAYER_MESH, else NULL, as the next member */
    struct layer_polygons *polygons; /* the original ones, to rebuild the mesh */
    struct vec3 gravity;             /* that the mesh was built for, if space is cartesian */
    struct mesh_space space;         /* of the mesh; a heightfield is cartesian */
    uint64_t edited;                 /* polygons added or removed since the tree was built */
    bool is_adopted;        /* the mesh came as an image, which edits may have changed in place */
    bool is_moved;          /* LAYER_MESH: its pose was set since it was put */
    uint64_t transform_seq; /* then: the locale's, as of the last pose */
    struct layer_body body;
    uint64_t memory_bytes;
    uint32_t refs; /* atomic */

    /* LAYER_MESH only: a layer of a heightfield is allocated without what follows */
    struct mesh_stats mesh_stats;
    double built_tests;     /* average_tests when the tree was built as a whole */
    struct motion motion;   /* is_moved: own frame (the file's) to the locale's; axis: against
                               gravity */
    struct layer_pace pace; /* is_moved */
};

/* Is this an id: 1 to WORLD_ID_MAX characters of [A-Za-z0-9_-]? */
bool world_id_is_valid(const char *id, size_t length);

/* A ground layer over a heightfield; takes `field` even on error. NULL and ERR_NO_MEMORY. */
struct layer *layer_create_heightfield(const char *id, struct heightfield *field, struct err *err);

/*
 * A layer over polygons, built for a unit vector of gravity. Takes the arrays of `polygons` and
 * leaves it empty, also on error. NULL and the errors of mesh_create. Takes as long as that: never
 * on a loop's thread.
 *
 * import  out, may be NULL: counts of polygons that were kept, split, dropped, ...
 * pace    of layer_create_mesh_in and layer_edited: its time budget, and its progress by polygons;
 *         NULL: none
 */
struct layer *layer_create_mesh(const char *id, enum layer_role role, struct polygon_set *polygons,
                                struct vec3 gravity, struct mesh_import *import, struct err *err);

/* The same in a space that need not be cartesian: gravity does not matter to the others. */
struct layer *layer_create_mesh_in(const char *id, enum layer_role role,
                                   struct polygon_set *polygons, struct mesh_space space,
                                   struct vec3 gravity, struct pace *pace,
                                   struct mesh_import *import, struct err *err);

/*
 * The same over an existing mesh, from a store: both are taken, also on error, and
 * `polygons` is left empty. NULL and ERR_NO_MEMORY.
 */
struct layer *layer_adopt_mesh(const char *id, enum layer_role role, struct mesh *mesh,
                               struct polygon_set *polygons, struct vec3 gravity, struct err *err);

/*
 * A body of a patch as a layer of role ground, without an id, in a pose and at a velocity (motion).
 * It shares the mesh of `surface`, a mesh layer of its model. NULL and ERR_NO_MEMORY. O(1).
 */
struct layer *layer_create_body(struct layer_body body, const struct layer *surface,
                                const struct motion *motion, struct vec3 gravity, struct err *err);

/* The polygons of a mesh layer by their numbers; NULL for a heightfield. Borrowed. */
const struct polygon_set *layer_polygon_set(const struct layer *layer);

/*
 * Does the surface fit a locale that splits cells and pulls in this way? A mesh with gravity of its
 * own, spherical or cylindrical, fits any.
 */
bool layer_fits(const struct layer *layer, enum triangulation triangulation, struct vec3 gravity);

/*
 * The layer itself when it fits, else one over the same samples or polygons that does; a new
 * reference. Indices of polygons and the pose stay. NULL and ERR_NO_MEMORY, or the errors of
 * mesh_create; a mesh is rebuilt here, a heightfield shares its tiles.
 */
struct layer *layer_fitted(struct layer *layer, enum triangulation triangulation,
                           struct vec3 gravity, struct err *err);

/*
 * `layer` in the pose of `from`, at rest: for one that was built of the same polygons; a new
 * reference. NULL and ERR_NO_MEMORY.
 */
struct layer *layer_carried(struct layer *layer, const struct layer *from, struct err *err);

/* Are both over the same polygons of one upload, under the same name and role? */
bool layer_is_rebuilt(const struct layer *layer, const struct layer *other);

/*
 * The mesh layer with polygons added and removed by an edit that was checked (polygon_edit_check),
 * with the same pose and velocity; a new reference. Added polygons that were dropped are gaps in
 * its set. In place where mesh_edit can, else rebuilt. NULL and the errors of mesh_edit or
 * mesh_create.
 *
 * import  out, may be NULL: counts of the added ones, numbered from 0
 */
struct layer *layer_edited(const struct layer *layer, const struct polygon_edit *edit,
                           struct pace *pace, struct mesh_import *import, struct err *err);

/* The box of the polygons that differ between the two, in their poses; false: none differ. */
bool layer_changed_box(const struct layer *before, const struct layer *after, struct box3 *out);

/* Has a mesh been edited so much that its tree should be rebuilt? */
bool layer_is_unbalanced(const struct layer *layer);

/*
 * The layer with the tree of `built`, an older state of it (or the same) whose tree is new; later
 * edits are applied to that, too. NULL and ERR_CONFLICT: they are not of one upload; or the errors
 * of layer_edited. A new reference.
 */
struct layer *layer_with_tree(const struct layer *layer, const struct layer *built,
                              struct err *err);

/* Are they states of one upload, under one name, role and gravity? */
bool layer_is_of_upload(const struct layer *layer, const struct layer *other);

/* The mesh layer where and as `from` moves; a new reference. NULL and ERR_NO_MEMORY. */
struct layer *layer_moving_as(const struct layer *layer, const struct layer *from, struct err *err);

/* The mesh layer with its tree rebuilt; a new reference. NULL and the errors of mesh_create. */
struct layer *layer_rebuilt(const struct layer *layer, struct pace *pace, struct err *err);

/*
 * The mesh layer in another pose, as of a transform_seq; a new reference, all but the pose is
 * shared. Its velocity is the mean since the pose before: since the one before that when they are
 * less than LAYER_PACE_LEAST_S apart (late poses in a bunch are no jump); none for the first. NULL
 * and ERR_NO_MEMORY.
 *
 * now_s  of a clock that only grows
 */
#define LAYER_PACE_LEAST_S 0.002
struct layer *layer_moved(const struct layer *layer, const struct pose *pose, double now_s,
                          uint64_t transform_seq, struct err *err);

/* The same layer at rest where it is; a new reference. NULL and ERR_NO_MEMORY. */
struct layer *layer_rested(const struct layer *layer, struct err *err);

/* The box of the surface in its pose, of a turned mesh the box of its turned box; false when
 * there is no data, x and y are then still the extent. */
bool layer_bounds(const struct layer *layer, struct box3 *out);

/* Recomputes the invariants of the surface and of the layer's numbers. O(samples). */
bool layer_validate(const struct layer *layer, struct err *err);

/* Memory of all meshes of the process and their polygons, each once, however many layers share it.
 * Any thread. */
uint64_t layer_all_meshes_bytes(void);

struct layer *layer_ref(struct layer *layer);
void layer_unref(struct layer *layer); /* NULL is fine */

#endif
