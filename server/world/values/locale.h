/*
 * A locale: one terrain with its own frame, at one revision. Immutable and counted; an
 * edit makes a new one that shares the layers it did not touch.
 */
#ifndef KOTA_WORLD_LOCALE_H
#define KOTA_WORLD_LOCALE_H

#include "world/values/layer.h"
#include "world/values/pins.h"

enum {
    LOCALE_TITLE_BYTES_MAX = 256,
    LOCALE_FROM_MAX = 2 * WORLD_ID_MAX + 1, /* characters of "locale@pin" */
    LOCALE_LAYERS_MAX = 256                 /* every ray tests each of them */
};

/* Locale to world: p_world = rotation · p + translation. */
struct placement {
    struct vec3 translation;
    double rotation[4]; /* unit quaternion x, y, z, w */
};

struct locale_manifest {
    char title[LOCALE_TITLE_BYTES_MAX + 1]; /* UTF-8, "" when there is none */
    struct vec3 gravity;                    /* unit vector */
    struct placement placement;
    bool open_sky; /* no ceiling is needed to be inside */
    enum triangulation triangulation;
    bool has_geo; /* where on the Earth the frame's origin is */
    double geo_lat_deg, geo_lng_deg;
    uint32_t crs; /* EPSG code of the projected system of x and y; 0: none; never with geo */
    char from[LOCALE_FROM_MAX + 1]; /* of a fork: what it was made of, as it was asked for; "": it
                                       is none. Stays with the locale */
    uint64_t from_revision;
};

enum { LOCALE_CRS_MIN = 1024, LOCALE_CRS_MAX = 32766 }; /* of EPSG, as GeoTIFF keeps them */

extern const struct locale_manifest locale_manifest_default;

struct locale {
    char id[WORLD_ID_MAX + 1];
    uint64_t revision;      /* 1 for a new one; each committed change adds one */
    uint64_t transform_seq; /* 0 for a new one; each move of a layer adds one */
    struct locale_manifest manifest;
    struct layer **layers; /* in the order of their first upload */
    size_t layer_count;
    bool has_bounds; /* some layer has data */
    struct box3 bounds;
    uint64_t memory_bytes;
    struct earlier_list *pins, *past; /* references (pins.h); NULL: none. Not of locale_next,
                                         locale_assemble and locale_create */
    uint32_t refs;                    /* atomic */
};

/*
 * ERR_BAD_INPUT or ERR_UNPROCESSABLE, with a pointer, when a manifest cannot be: a gravity or
 * rotation that is no unit vector (1e-3; within that it is normalised in place), a place off the
 * Earth, a crs beside it.
 */
enum err_code locale_manifest_check(struct locale_manifest *manifest, struct err *err);

/* The id of the locale that a fork was made of; "": it is none. */
void locale_manifest_base(const struct locale_manifest *manifest,
                          char out[static WORLD_ID_MAX + 1]);

/* Has it a place on the Earth, geo or crs? */
static inline bool locale_manifest_is_placed(const struct locale_manifest *manifest)
{
    return manifest->has_geo || manifest->crs != 0;
}

/* A locale without layers. NULL and ERR_NO_MEMORY. */
struct locale *locale_create(const char *id, const struct locale_manifest *manifest,
                             struct err *err);

/*
 * The next revision of a locale: with another manifest (NULL: the same), with `put` added or in the
 * place of the layer of that id, and without the layer `dropped` (each may be NULL). Fields are
 * wrapped again where the triangulation differs. Meshes that were built for another gravity are
 * taken from `prepared` (may be NULL: such a next revision, made before) or else built, which takes
 * long. Takes nothing; NULL and ERR_NO_MEMORY, the errors of mesh_create, ERR_TOO_LARGE over
 * LOCALE_LAYERS_MAX, or ERR_UNPROCESSABLE: `put` is of another space than the other layers.
 */
struct locale *locale_next(const struct locale *locale, const struct locale_manifest *manifest,
                           struct layer *put, const char *dropped, const struct locale *prepared,
                           struct err *err);

/*
 * The same revision with `moved` in the place of the layer of that id, which is there, and another
 * transform_seq. Takes nothing; NULL and ERR_NO_MEMORY. O(layers).
 */
struct locale *locale_with_moved(const struct locale *locale, struct layer *moved,
                                 uint64_t transform_seq, struct err *err);

/* The same state again, for a caller that changes its lists. NULL and ERR_NO_MEMORY. */
struct locale *locale_copy(const struct locale *locale, struct err *err);

/*
 * The same locale with bodies after its layers: for a live value only. Takes the references on the
 * bodies, also on error. NULL and ERR_NO_MEMORY. O(layers + bodies).
 */
struct locale *locale_with_bodies(const struct locale *locale, struct layer *const *bodies,
                                  size_t count, struct err *err);

/*
 * A locale at a revision, of layers that fit its manifest; takes the references on the
 * layers, also on error. NULL and ERR_NO_MEMORY.
 */
struct locale *locale_assemble(const char *id, uint64_t revision,
                               const struct locale_manifest *manifest, struct layer *const *layers,
                               size_t layer_count, struct err *err);

/* The space that all layers are in: a locale has one gravity. Cartesian without layers. */
struct mesh_space locale_space(const struct locale *locale);

/* Gravity at a point of the locale: unit; zero on the origin or axis of one that is not cartesian.
 */
struct vec3 locale_gravity(const struct locale *locale, struct vec3 point);

/* Does the line of gravity through a point meet a box? In a space that is not cartesian the line
 * ends at the origin or the axis. */
bool locale_gravity_meets(const struct locale *locale, struct vec3 point, const struct box3 *box);

/* Would another manifest make locale_next build a mesh? */
bool locale_needs_build(const struct locale *locale, const struct locale_manifest *manifest);

struct locale *locale_ref(struct locale *locale);
void locale_unref(struct locale *locale); /* NULL is fine */

/* NULL when there is none. */
const struct layer *locale_layer(const struct locale *locale, const char *id);

/*
 * The error of a layer that is not there, with a guess at a misspelt one: ERR_LAYER_UNKNOWN of a
 * path, ERR_LAYER_UNKNOWN_OPTION of a query or body.
 */
enum err_code locale_no_layer(const struct locale *locale, const char *id, enum err_code code,
                              struct err *err);

/* Recomputes the invariants: ids, bounds, bytes, triangulations, each surface. O(samples). */
bool locale_validate(const struct locale *locale, struct err *err);

#endif
