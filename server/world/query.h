/*
 * Questions to a locale: over one chosen layer, or over all of them. Pure reading; any thread that
 * holds a snapshot.
 */
#ifndef KOTA_WORLD_QUERY_H
#define KOTA_WORLD_QUERY_H

#include "terrain/pick.h"
#include "terrain/ray.h"
#include "terrain/sight.h"
#include "world/locale.h"

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
 * The one heightfield that a question about heights means: the layer of that id, or with NULL the
 * locale's only heightfield.
 * ERR_UNPROCESSABLE  no such layer; none chosen among several; a locale without a heightfield
 */
enum err_code locale_choose_field(const struct locale *locale, const char *layer_id,
                                  const struct layer **out, struct err *err);

struct locale_hit {
    struct ray_hit at;         /* normal against the locale's gravity */
    const struct layer *layer; /* borrowed */
};

/* The nearest hit over the layers (RAY_ANY: some hit). False: out is untouched. */
bool locale_ray(const struct layer_choice *choice, const struct ray *ray, enum ray_mode mode,
                struct locale_hit *out, struct ray_trace *trace);

/* True when no layer blocks the line; else the blocker nearest to `from`. */
bool locale_line_of_sight(const struct layer_choice *choice, struct vec3 from, struct vec3 to,
                          struct locale_hit *blocker);

/* A surface met along the gravity line through a point. */
struct contact {
    struct vec3 point;
    double distance_m;  /* >= 0, along the line from the asked point */
    struct vec3 normal; /* unit, against gravity */
    double slope_deg;   /* between the normal and "up" */
    uint32_t cell[2];
    const struct layer *layer; /* borrowed */
};

struct contacts {
    enum ground_status status; /* ok: a floor or a ceiling; hole: inside the layers' extents */
    bool has_floor, has_ceiling;
    struct contact floor, ceiling;
};

/*
 * What is below and above a point (text Q; design, "Contact"): the floor is the highest ground at
 * or below the point lifted by reach_up_m against gravity, the ceiling the lowest surface above
 * that floor and at or above the lifted point. reach_up_m >= 0, INFINITY looks from beyond
 * everything. Heightfields under gravity -Z are asked for their height, under any other gravity by
 * a ray along it. O(layers · log samples).
 */
void locale_contact(const struct layer_choice *choice, struct vec3 point, double reach_up_m,
                    struct contacts *out);

/* Q's containment: a floor below and, unless the locale is open to the sky, a ceiling above. */
bool locale_contains(const struct layer_choice *choice, struct vec3 point, bool *has_floor,
                     bool *has_ceiling);

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
