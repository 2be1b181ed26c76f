/*
 * libkota-ground: the ground of a kotad inside your own process. The same tiles and meshes, the
 * same code, the same bits as the daemon's answers; no socket, no thread, no file.
 *
 *     struct kota_ground_reader *reader = kota_ground_reader_open(copy);
 *     const struct kota_ground_view *view = kota_ground_newest(reader);      once a tick
 *     const struct kota_ground_locale *hills = kota_ground_locale(view, "hills");
 *     double height_m = kota_ground_height(hills, 1000, 1000);               some 10 ns
 *
 * A *copy* holds locales and is changed by one thread at a time. What it publishes is a *view*: all
 * its locales at one moment, immutable. A *reader* belongs to one thread at a time and holds the
 * newest view that it asked for. Readers never wait, neither for a change nor for each other. No
 * question allocates memory.
 *
 * A copy is filled in one of two ways:
 *   - by values: kota_ground_put_field, kota_ground_put_mesh … of bytes that the caller has;
 *   - by following a daemon: kota_ground_follow says which locale, kota_ground_next says what to
 *     GET, kota_ground_give and kota_ground_feed take the bytes. The caller brings the HTTP.
 *     kota_replica of libkota does all of that on a thread of its own (kota.h).
 *
 * Units are metres, seconds and degrees. Points are arrays of double in the order x y z and lie
 * flat in batches: xy[2 * i], xyz[3 * i]. A number that does not exist is NaN. A batch gives, bit
 * for bit, what its items give one by one. `error` may be NULL everywhere.
 *
 * Compatibility. Structs never change, new ones come beside them; enumerations may grow. Members
 * lie at multiples of their size, without gaps but at the end.
 */
#ifndef KOTA_GROUND_KOTA_GROUND_H
#define KOTA_GROUND_KOTA_GROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The version of the library that runs, "0.1.0". */
const char *kota_ground_version(void);

struct kota_ground_copy;
struct kota_ground_reader;
struct kota_ground_view;
struct kota_ground_locale;

/* Of a function that returned false. */
struct kota_ground_error {
    char code[40];     /* that of the daemon's problem documents, "layer_unknown": stable */
    char pointer[128]; /* the parameter or member; "" when there is none */
    char message[344]; /* one line; never empty */
};

/* ---- copies, readers, views ------------------------------------------------------------------ */

/* Empty. NULL: no memory. */
struct kota_ground_copy *kota_ground_open(void);
/* After all readers. NULL is fine. */
void kota_ground_close(struct kota_ground_copy *copy);

/*
 * For one thread at a time; open and close on any thread. NULL: no memory. A reader that is not
 * used for a long time costs the memory of the view that it holds, and nobody waits for it.
 */
struct kota_ground_reader *kota_ground_reader_open(struct kota_ground_copy *copy);
void kota_ground_reader_close(struct kota_ground_reader *reader); /* NULL is fine */

/*
 * What was published last; never NULL. It may be asked on any thread until the next call of this
 * function with this reader. Lock-free, some nanoseconds.
 */
const struct kota_ground_view *kota_ground_newest(struct kota_ground_reader *reader);

/* Locales of a view, sorted by id; borrowed from it. */
size_t kota_ground_locale_count(const struct kota_ground_view *view);
const struct kota_ground_locale *kota_ground_locale_at(const struct kota_ground_view *view,
                                                       size_t index);
/* NULL: the view has none of that id, or not yet. O(log n). */
const struct kota_ground_locale *kota_ground_locale(const struct kota_ground_view *view,
                                                    const char *id);

const char *kota_ground_id(const struct kota_ground_locale *locale);
/* Of this state: what the daemon answers at these two is the same, bit for bit. */
uint64_t kota_ground_revision(const struct kota_ground_locale *locale);
uint64_t kota_ground_transform_seq(const struct kota_ground_locale *locale);

/* ---- questions ------------------------------------------------------------------------------- */

/* KOTA_GROUND_IS_ABSENT: it depends on ground beyond the bounds of this copy; ask the daemon. */
enum kota_ground_status {
    KOTA_GROUND_IS_OK,
    KOTA_GROUND_IS_BELOW, /* no floor, but ground above the point */
    KOTA_GROUND_IS_HOLE,
    KOTA_GROUND_IS_OUTSIDE,
    KOTA_GROUND_IS_TOO_FAR, /* the floor is farther down than max_distance_m */
    KOTA_GROUND_IS_ABSENT
};

enum kota_ground_interpolation { KOTA_GROUND_TRIANGLE, KOTA_GROUND_BILINEAR, KOTA_GROUND_NEAREST };

/* The height on the exact surface, of the locale's ground; NaN: none, or absent. */
double kota_ground_height(const struct kota_ground_locale *locale, double x, double y);

struct kota_ground_point {
    double height_m;
    double normal[3]; /* NaN where there is no triangle */
    uint32_t status;  /* enum kota_ground_status */
    uint32_t has_cell;
    uint32_t cell[2];
};

/*
 * xy[2 * count]. layer NULL: the locale's ground. False, and nothing is written: the layer is not
 * one that has heights; a coordinate is not finite.
 */
bool kota_ground_heights(const struct kota_ground_locale *locale, const char *layer,
                         enum kota_ground_interpolation interpolation, const double *xy,
                         size_t count, struct kota_ground_point *points,
                         struct kota_ground_error *error);
/* Only the heights, several times as fast. NaN: none, or absent. */
bool kota_ground_heights_only(const struct kota_ground_locale *locale, const char *layer,
                              enum kota_ground_interpolation interpolation, const double *xy,
                              size_t count, double *heights_m, struct kota_ground_error *error);

struct kota_ground_ray {
    double origin[3], direction[3];
    double t_max; /* in lengths of direction; INFINITY: unbounded */
};

enum kota_ground_ray_status {
    KOTA_GROUND_RAY_HIT,
    KOTA_GROUND_RAY_MISS,
    KOTA_GROUND_RAY_INVALID, /* no direction, t_max below 0, numbers beyond 1e307 */
    KOTA_GROUND_RAY_ABSENT
};

struct kota_ground_hit {
    double t;          /* in lengths of the direction */
    double distance_m; /* along the ray */
    double point[3], normal[3];
    double velocity[3]; /* of a layer that was moved, m/s; else NaN */
    const char *layer;  /* borrowed from the view; NULL: no hit */
    const char *locale; /* the same */
    uint32_t status;    /* enum kota_ground_ray_status */
    uint32_t has_cell;  /* a heightfield: cell and triangle; else polygon */
    uint32_t cell[2];
    uint32_t triangle;
    uint32_t polygon;
};

/* layer NULL: all layers. any: any hit will do. False: there is no such layer. */
bool kota_ground_rays(const struct kota_ground_locale *locale, const char *layer, bool any,
                      const struct kota_ground_ray *rays, size_t count,
                      struct kota_ground_hit *hits, struct kota_ground_error *error);

/* Why a ray is KOTA_GROUND_RAY_INVALID: a few words; NULL: it is valid. */
const char *kota_ground_ray_fault(const struct kota_ground_ray *ray);

struct kota_ground_segment {
    double from[3], to[3];
};

struct kota_ground_sight {
    double fraction; /* of the way to the blocking point, 0 to 1; NaN: none */
    double point[3];
    uint32_t is_visible;
    uint32_t is_absent; /* then all else is NaN and 0 */
};

/* False: there is no such layer; an end is beyond 5e306. */
bool kota_ground_sights(const struct kota_ground_locale *locale, const char *layer,
                        const struct kota_ground_segment *segments, size_t count,
                        struct kota_ground_sight *sights, struct kota_ground_error *error);

struct kota_ground_reach {
    double reach_up_m;     /* NaN: 0.5, or unbounded with a clearance */
    double max_distance_m; /* down to the floor; NaN: unbounded */
    double clearance_m;    /* NaN: none */
    uint32_t is_exact;     /* of the clearance: also lowers; else it only raises */
    uint32_t reserved;     /* 0 */
};

struct kota_ground_surface {
    double point[3];
    double distance_m;
    double normal[3];
    double slope_deg;
    double velocity[3]; /* of a layer that was moved, m/s; else NaN */
    const char *layer; /* borrowed from the view; NULL: there is no such surface, the rest is NaN */
    uint32_t has_cell; /* a heightfield; else polygon counts */
    uint32_t cell[2];
    uint32_t polygon;
};

struct kota_ground_contact {
    struct kota_ground_surface floor, ceiling;
    double placed[3];   /* with a clearance, over ground; else NaN */
    const char *locale; /* the one that answers, borrowed from the view; NULL: none */
    uint32_t status;    /* enum kota_ground_status; a floor exactly when it is ok */
    uint32_t
        hint_is_unknown; /* of kota_ground_world_contacts: the hint names no locale of the view */
};

/* xyz[3 * count]. layer NULL: all layers. reach NULL: the defaults. False: no such layer; a number
 * is not finite or below 0. */
bool kota_ground_contacts(const struct kota_ground_locale *locale, const char *layer,
                          const struct kota_ground_reach *reach, const double *xyz, size_t count,
                          struct kota_ground_contact *contacts, struct kota_ground_error *error);

/* None of INSIDE, OVER_HOLE, OUTSIDE and ABSENT: below the ground. */
enum {
    KOTA_GROUND_INSIDE = 1,
    KOTA_GROUND_HAS_FLOOR = 2,
    KOTA_GROUND_HAS_CEILING = 4,
    KOTA_GROUND_OVER_HOLE = 8,
    KOTA_GROUND_OUTSIDE_OF_ALL = 16,
    KOTA_GROUND_ABSENT = 32
};

bool kota_ground_contained(const struct kota_ground_locale *locale, const char *layer,
                           const double *xyz, size_t count, uint8_t *bits,
                           struct kota_ground_error *error);

/* A sphere: radius. A capsule: radius, whole height along up. A box: half extents, degrees. */
enum kota_ground_shape_kind { KOTA_GROUND_SPHERE, KOTA_GROUND_CAPSULE, KOTA_GROUND_BOX };

struct kota_ground_shape {
    double sizes[4];
    uint32_t kind;     /* enum kota_ground_shape_kind */
    uint32_t reserved; /* 0 */
};

struct kota_ground_sweep {
    struct kota_ground_shape shape;
    double from[3], to[3]; /* of the shape's middle */
};

struct kota_ground_touch {
    struct kota_ground_hit hit; /* t: the fraction of the way, 0 to 1; distance_m is NaN */
    uint32_t starts_inside;     /* it overlaps a surface at `from` */
    uint32_t reserved;          /* 0 */
};

/* What shapes touch first on their ways. layer NULL: all layers. False: no such layer; a shape or
 * place that cannot be. */
bool kota_ground_sweeps(const struct kota_ground_locale *locale, const char *layer,
                        const struct kota_ground_sweep *sweeps, size_t count,
                        struct kota_ground_touch *touches, struct kota_ground_error *error);

struct kota_ground_move {
    struct kota_ground_shape shape;
    double from[3], velocity[3]; /* metres, m/s */
    double dt_s;
    double slope_max_deg, step_up_m, snap_down_m; /* NaN: 50, 0.5 and 0.5 */
    double claimed[3];                            /* could it be here by now? NaN: not asked */
};

enum { KOTA_GROUND_MOVE_HITS_MAX = 5 };

struct kota_ground_moved {
    double to[3];
    double slope_deg;             /* of the floor */
    struct kota_ground_hit floor; /* KOTA_GROUND_RAY_MISS: it stands on none; t is NaN */
    struct kota_ground_hit hits[KOTA_GROUND_MOVE_HITS_MAX]; /* what it touched, in order */
    uint32_t hit_count;
    uint32_t is_grounded, starts_inside;
    uint32_t is_reachable; /* of a move with `claimed` */
    uint32_t is_absent;    /* then `to` is NaN, and all else as of a move that touches nothing */
    uint32_t reserved;     /* 0 */
};

/* Where shapes that walk come to. layer and false: as kota_ground_sweeps. */
bool kota_ground_moves(const struct kota_ground_locale *locale, const char *layer,
                       const struct kota_ground_move *moves, size_t count,
                       struct kota_ground_moved *moved, struct kota_ground_error *error);

/* Depth at the near plane and at the far one: -1 and 1; 0 and 1; 1 and 0. */
enum kota_ground_depth { KOTA_GROUND_GL, KOTA_GROUND_WEBGPU, KOTA_GROUND_REVERSED };

struct kota_ground_camera {
    double viewport[2];
    double eye[3], target[3];
    double up[3]; /* NaN: as of a call without `up` */
    double fov_y_deg;
    double inverse_view_projection[16]; /* column-major, where is_matrix is set */
    uint32_t is_matrix;                 /* else eye, target, up and fov_y_deg */
    uint32_t depth;                     /* enum kota_ground_depth, of the matrix */
    uint32_t tile_side;                 /* cells; 0: 1 */
    uint32_t reserved;                  /* 0 */
};

struct kota_ground_picked {
    struct kota_ground_hit hit;
    double tile_center[3], tile_min[3], tile_max[3];
    uint32_t has_tile; /* a heightfield was hit; else the rest is NaN and 0 */
    uint32_t tile_column, tile_row, tile_side;
};

/* pixels[2 * count]. False: a camera, matrix or pixel that cannot be; no such layer. */
bool kota_ground_picks(const struct kota_ground_locale *locale, const char *layer,
                       const struct kota_ground_camera *camera, const double *pixels, size_t count,
                       struct kota_ground_picked *picked, struct kota_ground_error *error);

/* ---- questions over all locales, in the world's frame ---------------------------------------- */

struct kota_ground_place {
    double point[3];     /* in the locale's frame; NaN: nowhere */
    uint64_t revision;   /* of the locale; 0: nowhere */
    const char *locale;  /* borrowed from the view; NULL: nowhere */
    uint32_t is_changed; /* it is not the locale of the hint */
    uint32_t hint_is_unknown;
    uint32_t is_absent; /* then it is nowhere */
    uint32_t reserved;  /* 0 */
};

/* xyz[3 * count]; hints[count]: where each was before, or NULL. False: a number is not finite. */
bool kota_ground_locates(const struct kota_ground_view *view, const double *xyz,
                         const char *const *hints, size_t count, struct kota_ground_place *places,
                         struct kota_ground_error *error);

bool kota_ground_world_contacts(const struct kota_ground_view *view,
                                const struct kota_ground_reach *reach, const double *xyz,
                                const char *const *hints, size_t count,
                                struct kota_ground_contact *contacts,
                                struct kota_ground_error *error);

struct kota_ground_crossing {
    double t_enter, t_leave;
    const char *locale; /* borrowed from the view */
};

/*
 * One ray. crossings[kota_ground_locale_count(view)]: *crossed of them are filled, sorted by
 * t_enter, up to the hit.
 */
void kota_ground_world_ray(const struct kota_ground_view *view, bool any,
                           const struct kota_ground_ray *ray, struct kota_ground_hit *hit,
                           struct kota_ground_crossing *crossings, size_t *crossed);

/* ---- changes by values ----------------------------------------------------------------------- */

/*
 * All of them change what is published next, by one thread at a time; `revision` is that of the
 * locale after the change. False: nothing is changed, error has the reason.
 */
bool kota_ground_publish(struct kota_ground_copy *copy, struct kota_ground_error *error);

enum kota_ground_triangulation { KOTA_GROUND_ANTI, KOTA_GROUND_MAIN, KOTA_GROUND_ALTERNATING };

struct kota_ground_manifest {
    double gravity[3];                  /* a unit vector */
    double translation[3], rotation[4]; /* locale to world; quaternion x y z w */
    uint32_t is_open_to_sky;
    uint32_t triangulation; /* enum kota_ground_triangulation */
};

/* Added, or another manifest for the one of that id. manifest NULL: as of a locale without one. */
bool kota_ground_put_locale(struct kota_ground_copy *copy, const char *locale,
                            const struct kota_ground_manifest *manifest, uint64_t revision,
                            struct kota_ground_error *error);

struct kota_ground_field {
    double origin[2], spacing[2]; /* of sample (0, 0); metres between samples */
    uint32_t cols, rows;
};

/* heights_m[rows][cols], row 0 at the smallest y; NaN: a hole. Copied. */
bool kota_ground_put_field(struct kota_ground_copy *copy, const char *locale, const char *layer,
                           const struct kota_ground_field *field, const float *heights_m,
                           uint64_t revision, struct kota_ground_error *error);
/* New samples heights_m[rect[3]][rect[2]] of the rectangle c0 r0 cols rows. */
bool kota_ground_put_samples(struct kota_ground_copy *copy, const char *locale, const char *layer,
                             const uint32_t rect[4], const float *heights_m, uint64_t revision,
                             struct kota_ground_error *error);

/*
 * image: that of `?format=qota`; polygons: those of `?format=polygons`, or NULL: the layer cannot
 * be edited. Both are copied. An image of a version that this library does not know is refused.
 */
bool kota_ground_put_mesh(struct kota_ground_copy *copy, const char *locale, const char *layer,
                          bool is_ceiling, const void *image, size_t image_bytes,
                          const void *polygons, size_t polygons_bytes, uint64_t revision,
                          struct kota_ground_error *error);
/* An edit of polygons (proto/feed.md). */
bool kota_ground_edit_polygons(struct kota_ground_copy *copy, const char *locale, const char *layer,
                               const void *edit, size_t edit_bytes, uint64_t revision,
                               struct kota_ground_error *error);

struct kota_ground_pose {
    double translation[3];
    double yaw_deg;
    double rotation[4]; /* unit x y z w, in place of the yaw; all 0: the yaw */
    double velocity[3]; /* m/s */
    double spin[3];     /* rad/s, about the locale's axes */
};

/* The pose of a mesh layer; it counts no revision. */
bool kota_ground_put_pose(struct kota_ground_copy *copy, const char *locale, const char *layer,
                          const struct kota_ground_pose *pose, uint64_t transform_seq,
                          struct kota_ground_error *error);
/* Without the layer, or with NULL the locale. */
bool kota_ground_drop(struct kota_ground_copy *copy, const char *locale, const char *layer,
                      uint64_t revision, struct kota_ground_error *error);

/* ---- following a daemon ---------------------------------------------------------------------- */

/*
 * Begins to follow a locale. bounds x0 y0 x1 y1: only heightfields' samples of this rectangle, out
 * to whole cells, are held; NULL: all. Meshes are always held whole.
 */
bool kota_ground_follow(struct kota_ground_copy *copy, const char *locale, const double bounds[4],
                        struct kota_ground_error *error);
/* Ends it; the locale leaves the next view. Its needs are gone. */
void kota_ground_unfollow(struct kota_ground_copy *copy, const char *locale);

enum kota_ground_need_kind {
    KOTA_GROUND_NEED_ANSWER, /* one answer, for kota_ground_give */
    KOTA_GROUND_NEED_FEED    /* a stream that goes on, for kota_ground_feed */
};

/* One GET. */
struct kota_ground_need {
    uint32_t number;     /* from 1; names it in the calls below */
    uint32_t kind;       /* enum kota_ground_need_kind */
    uint32_t is_samples; /* Kota-Layout: delta may be asked for with Accept-Encoding */
    char locale[68];
    char accept[32];         /* the header Accept; "": none */
    char if_none_match[256]; /* the header If-None-Match; "": none */
    char path[400]; /* with its query, "/v1/locales/hills/layers/ground/samples?rect=0,0,256,256" */
};

/*
 * The next need that is not under way, which is under way then: GET it, in any order, some at once.
 * False: there is none now.
 */
bool kota_ground_next(struct kota_ground_copy *copy, struct kota_ground_need *need);

struct kota_ground_answer {
    const void *body;   /* decoded: without Content-Encoding, still in its layout */
    const char *layout; /* the header Kota-Layout; NULL: none */
    const char *etag;   /* the header ETag; NULL: none */
    uint64_t revision;  /* the header Kota-Revision; 0: none */
    size_t length;      /* of the body */
    uint32_t status;    /* 2xx, 304, or a 4xx that will stay */
};

/*
 * Takes the answer to a need. False: it is not what was asked for (error); the locale's state says
 * what becomes of it. A number that is gone is ignored.
 */
bool kota_ground_give(struct kota_ground_copy *copy, uint32_t number,
                      const struct kota_ground_answer *answer, struct kota_ground_error *error);
/* No answer came, or the stream has ended: kota_ground_next lists it again. */
void kota_ground_give_up(struct kota_ground_copy *copy, uint32_t number);
/*
 * The next bytes of a feed, cut anywhere. False: the stream is to be closed and then given up
 * (kota_ground_give_up): it is malformed, of a version that this library does not know, or over.
 */
bool kota_ground_feed(struct kota_ground_copy *copy, uint32_t number, const void *bytes,
                      size_t length, struct kota_ground_error *error);

enum kota_ground_state {
    KOTA_GROUND_LOADING, /* it is not whole yet, and not in a view */
    KOTA_GROUND_CURRENT, /* the view has all that the feed has said */
    KOTA_GROUND_BEHIND,  /* the view has an earlier revision, or the feed is cut */
    KOTA_GROUND_GONE,    /* the locale was deleted; not in a view. Its feed is asked for again */
    KOTA_GROUND_REFUSED  /* a format of another version, or a refusal; not in a view (error) */
};

struct kota_ground_following {
    uint64_t revision;      /* of the next view; 0: none */
    uint64_t transform_seq; /* of the next view */
    uint64_t heard;         /* the greatest revision that the feed has named */
    uint64_t frames;        /* taken so far; a frame that is taken says that the daemon lives */
    uint32_t state;         /* enum kota_ground_state */
    uint32_t is_fed;        /* the feed is open and has begun */
    struct kota_ground_error error; /* of KOTA_GROUND_REFUSED */
};

/* False: the locale is not followed. */
bool kota_ground_following(const struct kota_ground_copy *copy, const char *locale,
                           struct kota_ground_following *following);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
