/*
 * Questions to a locale: over one chosen layer, or over all of them. Pure reading; any thread that
 * holds a snapshot.
 */
#ifndef KOTA_WORLD_QUERY_H
#define KOTA_WORLD_QUERY_H

#include "terrain/pick.h"
#include "terrain/field_ray/ray.h"
#include "terrain/sight.h"
#include "world/values/locale.h"

/* The layers that a question is put to; borrowed from the locale. */
struct layer_choice {
    const struct locale *locale;
    struct layer *const *layers;
    size_t count;
};

/*
 * The layer of that id, or with NULL every layer. A locale without layers gives an empty choice:
 * rays miss, points are outside.
 * ERR_UNPROCESSABLE  there is no such layer
 */
enum err_code locale_choose(const struct locale *locale, const char *layer_id,
                            struct layer_choice *out, struct err *err);

/*
 * The one heightfield that a question about samples means: the layer of that id, or with NULL the
 * locale's only heightfield.
 * ERR_UNPROCESSABLE  no such layer, or a mesh; none chosen among several; a locale without a
 *                    heightfield
 */
enum err_code locale_choose_field(const struct locale *locale, const char *layer_id,
                                  const struct layer **out, struct err *err);

/*
 * The ground of a height: the heightfield as above, or, in a locale without one, its
 * meshes; or the mesh of that id.
 * ERR_UNPROCESSABLE  as above; meshes under a gravity other than -Z, spherical or
 *                    cylindrical ones; a ceiling, chosen by its id
 */
enum err_code locale_choose_ground(const struct locale *locale, const char *layer_id,
                                   struct layer_choice *out, struct err *err);

/*
 * Height of the result of locale_choose_ground: of the heightfield, or of the topmost polygon of
 * role ground. Over meshes `interpolation` does not matter, cell is 0,0 and triangle 0 where there
 * is ground, -1 elsewhere; a hole is a gap inside their boxes. The normal is against gravity.
 */
void locale_height(const struct layer_choice *ground, struct vec2 at,
                   enum interpolation interpolation, struct ground_point *out);

/*
 * locale_height for many points, each answer with the bits of the single query; memory is
 * prefetched. Best with some 64 points at once.
 */
void locale_heights(const struct layer_choice *ground, const struct vec2 *points, size_t count,
                    enum interpolation interpolation, struct ground_point *out);

/* Prefetches the memory for a height at that place. */
void locale_height_prefetch(const struct layer_choice *ground, struct vec2 at);

/*
 * Only the heights, with the bits of locale_height, without normal, cell and triangle: several
 * times as fast. Best with 64 points and more at once.
 */
void locale_heights_only(const struct layer_choice *ground, const struct vec2 *points, size_t count,
                         enum interpolation interpolation, struct ground_height *out);

/* The same without status: heights_m[count], NaN where there is none. */
void locale_heights_plain(const struct layer_choice *ground, const struct vec2 *points,
                          size_t count, enum interpolation interpolation, double *heights_m);

struct locale_hit {
    struct ray_hit at;         /* normal against the locale's gravity, of a vertical polygon against
                                  the ray; on a mesh cell is 0,0 and triangle -1 */
    uint32_t polygon;          /* on a mesh: its index in the uploaded file */
    const struct layer *layer; /* borrowed */
    struct vec3 velocity;      /* of the layer there, m/s; set where layer->is_moved */
};

/*
 * The nearest hit over the layers (RAY_ANY: some hit). False: out is untouched. A trace lists
 * the visited nodes of heightfields; of meshes see layer_mesh_trace.
 */
bool locale_ray(const struct layer_choice *choice, const struct ray *ray, enum ray_mode mode,
                struct locale_hit *out, struct ray_trace *trace);

/* The hit of a layer's own mesh. */
struct locale_hit locale_hit_on_mesh(const struct layer *layer, const struct mesh_hit *hit);

/*
 * locale_ray, without a trace, for many valid rays: out[count], each bit by bit the single answer;
 * t is INFINITY and the rest untouched where there is none. Best with 64 rays and more at once.
 */
void locale_rays(const struct layer_choice *choice, const struct ray *rays, size_t count,
                 enum ray_mode mode, struct locale_hit *out);

/*
 * True when no layer blocks the line; else the blocker nearest to `from`. Ends within
 * sight_end_tolerance of a surface are on top of it, or touch it from below when the line comes
 * from there.
 */
bool locale_line_of_sight(const struct layer_choice *choice, struct vec3 from, struct vec3 to,
                          struct locale_hit *blocker);

/* A surface met along the gravity line through a point. */
struct contact {
    struct vec3 point;
    double distance_m;         /* >= 0, along the line from the point of the query */
    struct vec3 normal;        /* unit, against gravity */
    double slope_deg;          /* between the normal and "up" */
    uint32_t cell[2];          /* on a heightfield */
    uint32_t polygon;          /* on a mesh: its index in the uploaded file */
    const struct layer *layer; /* borrowed */
    struct vec3 velocity;      /* of the layer there, m/s; set where layer->is_moved */
};

/* The values are those of the binary answer. */
enum contact_status {
    CONTACT_OK,      /* there is a floor */
    CONTACT_BELOW,   /* no floor, but ground above the lifted point */
    CONTACT_HOLE,    /* no ground on the gravity line, within the bounds of the layers */
    CONTACT_OUTSIDE, /* beyond the bounds */
    CONTACT_TOO_FAR  /* the floor is farther down than down_m */
};

/* Both >= 0, measured from the point along gravity; INFINITY: without an end. */
struct contact_reach {
    double up_m, down_m;
};

struct contacts {
    enum contact_status status;
    bool has_floor; /* the status is CONTACT_OK */
    bool has_ceiling;
    struct contact floor, ceiling;
};

/*
 * The surfaces below and above a point (text Q; design, "Contact"): the floor is the highest
 * surface of role ground at or below the point lifted by reach.up_m against gravity, the ceiling
 * the lowest surface of any role above that floor and at or above the lifted point. Heightfields
 * under gravity -Z are sampled, under any other gravity a ray along it is cast; meshes are searched
 * along their own. O(layers · log samples).
 */
void locale_contact(const struct layer_choice *choice, struct vec3 point,
                    struct contact_reach reach, struct contacts *out);

/* The reach of who names none, a step: rounding, an uphill stride, a small edit. */
#define CONTACT_REACH_UP_M 0.5

struct clearance {
    double above_m; /* of the floor, along gravity */
    bool is_exact;  /* else a point that is higher stays */
};

/* The point with its clearance above the floor. */
struct vec3 contact_place(const struct contact *floor, struct vec3 gravity, struct vec3 point,
                          const struct clearance *clearance);

/*
 * Q's containment: a floor at or below the point and, unless the locale is open to the sky, a
 * ceiling above. CONTAINED_OUTSIDE also where that ceiling is missing.
 */
enum contained { CONTAINED_INSIDE, CONTAINED_BELOW, CONTAINED_HOLE, CONTAINED_OUTSIDE };

enum contained locale_contains(const struct layer_choice *choice, struct vec3 point,
                               bool *has_floor, bool *has_ceiling);

/* Is there a floor above the point, at most up_m, and does the locale contain the place on it? */
bool locale_contains_above(const struct layer_choice *choice, struct vec3 point, double up_m);

enum { FOOTPRINT_POINTS_MAX = 64 };

/* normal · p + d = 0, as text Q writes it; the normal is a unit vector against gravity. */
struct plane {
    struct vec3 normal;
    double d;
};

/*
 * The plane through points: exactly through three, for more the one with the least squares of the
 * distances along `up`. False when they all lie on a line (or above each other).
 */
bool plane_through(const struct vec3 *points, size_t count, struct vec3 up, struct plane *out);

#endif
