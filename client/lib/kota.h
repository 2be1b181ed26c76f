/*
 * libkota: questions about ground, asked over HTTP from a C program.
 *
 *     struct kota_client *client = kota_open(NULL);
 *     double xy[2] = {1000, 1000};
 *     struct kota_height at;
 *     struct kota_answer *answer = kota_call(client, kota_height("demo", xy, 1, 0));
 *
 *     if (kota_read_height(answer, &at, 1))
 *         printf("%g m at revision %llu\n", at.height_m,
 *                (unsigned long long)kota_answer_revision(answer));
 *     else
 *         fprintf(stderr, "%s\n", kota_answer_error(answer)->message);
 *     kota_answer_free(answer);
 *     kota_close(client, NULL, NULL);
 *
 * Three steps, alike for every call: a function named after the operation in the OpenAPI document
 * makes a *request*; kota_call (blocking) or kota_start (libuv) sends it and gives an *answer*;
 * kota_read_* and kota_answer_* take the answer apart.
 *
 * Units are metres, seconds and degrees; vectors are arrays of double in the order x y z, arrays of
 * vectors lie flat: xy[2 * i], xyz[3 * i]. A number that does not exist is NaN.
 *
 * Errors. Nothing here ends the process, writes to a stream, or raises SIGPIPE. The reason of a
 * request that cannot be made (an id with a slash, a NaN, no memory) is in the answer, so that only
 * the answer needs to be checked. NULL is accepted for a request or an answer everywhere: an
 * allocation has failed then.
 *
 * Threads. There is no global state but what libcurl has. A client, with its requests under way,
 * belongs to one thread at a time: to the one that runs its loop, or to the one that makes its
 * blocking calls. A replica may be asked on any thread. A request or an answer that is not under
 * way belongs to its holder.
 *
 * Compatibility. Structs with a `size` are filled by their init function, and may grow; those
 * without never change. Structs that the library makes (kota_error, kota_event) may grow at their
 * end. Enumerations may grow.
 */
#ifndef KOTA_LIB_KOTA_H
#define KOTA_LIB_KOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KOTA_VERSION_MAJOR 0
#define KOTA_VERSION_MINOR 1
#define KOTA_VERSION_PATCH 0

/* The version of the library that runs, "0.1.0". */
const char *kota_version(void);

struct uv_loop_s; /* uv_loop_t of <uv.h> */
struct cJSON;     /* cJSON of <cjson/cJSON.h> */

struct kota_client;
struct kota_request;
struct kota_answer;

/* ---- errors ---------------------------------------------------------------------------------- */

enum kota_error_kind {
    KOTA_ERROR_NONE,
    KOTA_ERROR_USAGE,     /* an argument of the caller; nothing was sent */
    KOTA_ERROR_MEMORY,    /* none left; a call that changes something may have been made */
    KOTA_ERROR_ADDRESS,   /* the host's name has no address */
    KOTA_ERROR_CONNECT,   /* no server there; nothing was sent */
    KOTA_ERROR_LOST,      /* the connection broke before the answer was whole */
    KOTA_ERROR_TIMEOUT,   /* the time was over; the call may have been made or not */
    KOTA_ERROR_PROTOCOL,  /* the answer is not valid HTTP/1.1 */
    KOTA_ERROR_TOO_LONG,  /* an answer over answer_bytes_max, or a head over 64 KiB */
    KOTA_ERROR_CANCELLED, /* kota_cancel or kota_close */
    KOTA_ERROR_PROBLEM,   /* the daemon refused: status, title, detail and the rest are its own */
    KOTA_ERROR_CONTENT,   /* the answer has other content than the reader expects */
    KOTA_ERROR_TLS        /* the server's certificate is not trusted; nothing was sent */
};

struct kota_error {
    enum kota_error_kind kind;
    int status;           /* of HTTP; 0: no answer came */
    bool has_limit;       /* limit and got are known */
    double limit, got;    /* what would have been taken, and what came */
    double retry_after_s; /* of the daemon; negative: none */
    char code[40];        /* "layer_unknown": stable, for a program; "" without one */
    char title[64];       /* "Bad input"; "" without a problem document */
    char pointer[128];    /* JSON pointer or parameter of the error; "" when there is none */
    char detail[384];     /* the daemon's sentence; "" without one */
    char message[640];    /* one line for a log, of all kinds; never empty with an error */
};

/* "timeout", "problem" … */
const char *kota_error_name(enum kota_error_kind kind);

/* ---- clients --------------------------------------------------------------------------------- */

struct kota_options {
    size_t size;
    struct uv_loop_s *loop; /* borrowed until closed; NULL (default): a private one, blocking */
    const char *url;        /* "http://127.0.0.1:7420" (default), "https://…", where a path at the
                                 end is kept; or "unix:/run/kota/kota.sock" */
    const char *token;      /* bearer token; NULL (default): none */
    double timeout_s;       /* of one call with all its tries and pauses; 10 */
    double connect_timeout_s; /* of one attempt to connect; 3 */
    double idle_s;            /* a kept connection is not used again after so long; 8 */
    double silence_s;         /* a feed counts as lost when nothing came for so long; 45 */
    unsigned connections_max; /* at once, feeds apart; more calls wait; 1 to 1000; 16 */
    unsigned tries_max;       /* of a call that may be repeated; 1: never again; 4 */
    size_t answer_bytes_max;  /* a longer answer is an error; 256 MiB */
    const char *ca_file; /* PEM of the authorities to trust with https; NULL (default): those of
                                 SSL_CERT_FILE in the environment, else the system's */
};

/* Defaults. size is sizeof(struct kota_options), as the caller was compiled. */
void kota_options_init(struct kota_options *options, size_t size);

/*
 * A client of one daemon. options NULL: the defaults. The strings are copied. Nothing is connected
 * yet. Proxies are those of the environment (https_proxy, no_proxy …), as of curl; a loopback
 * address and a Unix socket have none.
 *
 * Never NULL unless there is no memory. When options are wrong, kota_open_error has the reason, and
 * each call on the client returns that error.
 */
struct kota_client *kota_open(const struct kota_options *options);
const struct kota_error *kota_open_error(const struct kota_client *client); /* NULL: none */

/*
 * Ends all calls (their callbacks run first, with KOTA_ERROR_CANCELLED) and feeds (without another
 * callback), closes the connections and frees the client. closed may be NULL.
 *
 * With a private loop it returns when that is done, within milliseconds; called from a callback, it
 * is done before the kota_call or kota_wait that runs the callback returns. On a caller's loop it
 * returns at once, and closed(context) runs from the loop when nothing is left on it. With NULL
 * nothing happens.
 */
typedef void kota_closed_fn(void *context);
void kota_close(struct kota_client *client, kota_closed_fn *closed, void *context);

/* ---- sending --------------------------------------------------------------------------------- */

/*
 * Sends a request, waits, gives the answer. Takes the request. The answer is freed by
 * kota_answer_free. For clients with a private loop, outside of callbacks.
 *
 * It returns within the time-out (plus scheduling), in any state of the network.
 *
 * Tries: a call that may be repeated (kota_request_may_repeat) is sent again, up to tries_max times
 * in all and within the time-out, when the connection could not be made or broke, or when the
 * daemon answered 429 or 503 with Retry-After. Before that passes as long as Retry-After says, or
 * 0.1, 0.2, 0.4 … s. A pause that would not end within the time-out is not begun: the answer is
 * then that of the last try.
 */
struct kota_answer *kota_call(struct kota_client *client, struct kota_request *request);

/*
 * The same without waiting. done(answer, context) runs once, later, from the loop; it may take the
 * answer (true: it will call kota_answer_free itself) or leave it to the library (false). Callbacks
 * may start, cancel and close. Returns a number for kota_cancel that is never used again; 0: there
 * is no memory, or the client is being closed, and done will not run.
 *
 * On a client with a private loop the callbacks run within kota_wait and kota_call.
 */
typedef bool kota_done_fn(struct kota_answer *answer, void *context);
uint64_t kota_start(struct kota_client *client, struct kota_request *request, kota_done_fn *done,
                    void *context);

/* done runs soon with KOTA_ERROR_CANCELLED; false: there is no such call or feed any more. */
bool kota_cancel(struct kota_client *client, uint64_t number);

/*
 * Runs a private loop until a callback has run, at most timeout_s seconds; returns at once when
 * nothing is under way. How many callbacks ran.
 */
size_t kota_wait(struct kota_client *client, double timeout_s);

/* ---- feeds ----------------------------------------------------------------------------------- */

enum kota_event_kind {
    KOTA_EVENT_OPEN,   /* the feed is connected; changes from here on are delivered */
    KOTA_EVENT_EDIT,   /* a change */
    KOTA_EVENT_RESYNC, /* changes were missed that cannot be delivered: fetch everything again */
    KOTA_EVENT_OTHER,  /* another event of the stream, such as a patch's, in name and data */
    KOTA_EVENT_LOST,   /* the connection broke (reason in error); it is made again by itself */
    KOTA_EVENT_ENDED   /* the last one: the locale is gone, or the daemon refused (error) */
};

/* Borrowed until the callback returns. */
struct kota_event {
    enum kota_event_kind kind;
    const char *locale;             /* NULL: not said */
    const char *layer;              /* NULL: not said */
    const char *source;             /* "edit", "patch", "manifest" …; NULL: not said */
    uint64_t revision;              /* of the locale; 0: not said */
    bool has_rect, has_bounds;      /* without: the whole locale may have changed */
    uint32_t rect[4];               /* c0 r0 cols rows, in samples */
    double min[3], max[3];          /* metres, in the locale's frame */
    const char *name, *id, *data;   /* as the stream has them; NULL for OPEN, LOST, ENDED */
    const struct kota_error *error; /* of LOST, and of ENDED where there is one; else NULL */
    const float *samples; /* of rect, from the smallest y; NULL: not asked for, or too many */
    size_t sample_count;
    const void *polygons; /* of binary feeds: an edit as proto/feed.md has it; NULL: none */
    size_t polygons_bytes;
    const double *pose; /* of binary feeds, "transform": f64[14] as proto/feed.md has them */
    uint64_t transform_seq;
    uint64_t patch;    /* of binary feeds, "patch": its number; `source` is its change */
    const char *state; /* "filling" …; NULL: not known */
    const uint32_t *bodies;
    size_t body_count;
};

/*
 * Follows a feed: takes a request made by kota_events, kota_locale_events or
 * kota_patch_events, and calls back for each event until ENDED. When the connection breaks it
 * is made again, after the stream's retry time (2 s) and more with each failure (30 s at most), and
 * continues after the last delivered event (Last-Event-ID). When it cannot know that nothing was
 * missed it reports KOTA_EVENT_RESYNC.
 *
 * Returns a number for kota_cancel, which ends it without another callback. The feed has a
 * connection of its own and no time-out; it keeps the loop alive.
 */
typedef void kota_event_fn(const struct kota_event *event, void *context);
uint64_t kota_watch(struct kota_client *client, struct kota_request *request, kota_event_fn *event,
                    void *context);

/* ---- requests -------------------------------------------------------------------------------- */

/*
 * Any request. path begins with '/' and is sent unchanged, after the path of the client's URL. GET,
 * HEAD and OPTIONS may be repeated.
 */
struct kota_request *kota_request_new(const char *method, const char *path);
void kota_request_free(struct kota_request *request);

/* Copies the body. The second form borrows it until the answer is there. */
void kota_request_body(struct kota_request *request, const char *media_type, const void *bytes,
                       size_t length);
void kota_request_body_borrowed(struct kota_request *request, const char *media_type,
                                const void *bytes, size_t length);
/* Appends name=value to the query, escaped. "layer", "interp" … as the document has them. */
void kota_request_query(struct kota_request *request, const char *name, const char *value);
void kota_request_query_number(struct kota_request *request, const char *name, double value);
/* One more header; not one of the body's framing. */
void kota_request_header(struct kota_request *request, const char *name, const char *value);
/*
 * The body of an answer 2xx goes to take as it comes, of any length, and is not kept; head has
 * status and headers. False: no more (the call ends with KOTA_ERROR_CANCELLED). The time-out is of
 * silence then, not of the whole call, and the call is not repeated once bytes have come. take must
 * not call the client.
 */
typedef bool kota_take_fn(const struct kota_answer *head, const void *bytes, size_t length,
                          void *context);
void kota_request_take(struct kota_request *request, kota_take_fn *take, void *context);
/* Reports now and then how much of the body is sent. It must not call the client. */
typedef void kota_sent_fn(size_t sent, size_t all, void *context);
void kota_request_on_sent(struct kota_request *request, kota_sent_fn *sent, void *context);
/* Instead of the client's. > 0. */
void kota_request_timeout(struct kota_request *request, double timeout_s);
/* The read waits, bounded, until the daemon has applied this revision. */
void kota_request_min_revision(struct kota_request *request, uint64_t revision);
/* Only if the locale is at this revision, else 412. */
void kota_request_if_match(struct kota_request *request, uint64_t revision);
/* Only if what the client holds is old (an ETag with its quotes): else the status is 304. */
void kota_request_if_none_match(struct kota_request *request, const char *etag);
/* Of a feed: delivery begins after this revision (or sequence, of kota_events). */
void kota_request_since(struct kota_request *request, uint64_t id);
/*
 * The change happens once, however often it is sent; so it may be repeated. NULL: a random key,
 * which the typed writes have from the start.
 */
void kota_request_key(struct kota_request *request, const char *idempotency_key);
/* Whether it may be sent again after a failure. The typed requests know that. */
void kota_request_may_repeat(struct kota_request *request, bool may_repeat);

/* ---- answers --------------------------------------------------------------------------------- */

void kota_answer_free(struct kota_answer *answer);

/* Everything below is borrowed from the answer and freed with it. */

/* NULL: none; the answer is a 2xx, or 304, and was read as wanted. */
const struct kota_error *kota_answer_error(const struct kota_answer *answer);
int kota_answer_status(const struct kota_answer *answer); /* 0: none came */
/* Bytes, followed by a NUL. */
const void *kota_answer_body(const struct kota_answer *answer, size_t *length);
const char *kota_answer_header(const struct kota_answer *answer, const char *name); /* or NULL */
/* The revision it was computed at, by header or body; 0: it names none. */
uint64_t kota_answer_revision(struct kota_answer *answer);
/* The document, parsed at the first call; NULL (and an error): it is none. */
const struct cJSON *kota_answer_json(struct kota_answer *answer);
/* How often it was sent. */
unsigned kota_answer_tries(const struct kota_answer *answer);

/* One value by its JSON pointer (RFC 6901), "/bounds/min/0". False and an error: no such one. */
bool kota_read_number(struct kota_answer *answer, const char *pointer, double *value);
bool kota_read_text(struct kota_answer *answer, const char *pointer, const char **value);

/* ---- operation: probes, limits, statistics --------------------------------------------------- */

struct kota_request *kota_livez(void);
struct kota_request *kota_healthz(void);
struct kota_request *kota_readyz(void);
struct kota_request *kota_metrics(void); /* Prometheus text */
struct kota_request *kota_openapi(void);
struct kota_request *kota_calls(void);  /* names, methods and paths of all calls */
struct kota_request *kota_limits(void); /* kota_read_number(answer, "/items_max", &n) */
struct kota_request *kota_stats(void);
/* The last writes; kota_request_query: "after", "limit". The right `operating` is needed. */
struct kota_request *kota_audit(void);
struct kota_request *kota_index(void);           /* the inspector's page */
struct kota_request *kota_web(const char *file); /* what it loads */
struct kota_request *kota_docs(void);            /* the page that shows the OpenAPI document */
struct kota_request *kota_docs_errors(void);     /* the page of the codes of errors */

/* ---- world: locales and layers --------------------------------------------------------------- */

enum kota_triangulation { KOTA_ANTI, KOTA_MAIN, KOTA_ALTERNATING };

struct kota_locale {
    const char *id, *title; /* title NULL: none */
    uint64_t revision;
    double gravity[3];
    double translation[3], rotation[4]; /* locale to world; quaternion x y z w */
    bool has_bounds;                    /* false: there is nothing in it */
    double min[3], max[3];
    bool open_sky;
    enum kota_triangulation triangulation;
    double memory_bytes;
    size_t layer_count; /* 0 in a list without layers */
};

enum kota_layer_kind { KOTA_HEIGHTFIELD, KOTA_MESH };

/*
 * What gravity runs along in a mesh: the locale's direction, lines through the origin, or lines
 * that meet the Z axis at a right angle.
 */
enum kota_frame { KOTA_CARTESIAN, KOTA_SPHERICAL, KOTA_CYLINDRICAL };
/* Which way; usual: in on a planet (spherical), out in a drum (cylindrical). */
enum kota_layer_gravity { KOTA_GRAVITY_USUAL, KOTA_GRAVITY_IN, KOTA_GRAVITY_OUT };

struct kota_layer {
    const char *id;
    enum kota_layer_kind kind;
    bool is_ceiling;
    bool has_bounds;
    double min[3], max[3];
    uint32_t cols, rows;          /* of a heightfield, else 0 */
    double spacing[2], origin[2]; /* of a heightfield, else NaN */
    uint32_t polygons;            /* of a mesh, else 0 */
    double memory_bytes;
    enum kota_frame frame;           /* of a mesh, else KOTA_CARTESIAN */
    enum kota_layer_gravity gravity; /* KOTA_GRAVITY_USUAL where the frame is cartesian */
};

/*
 * A page of the locales, by id and without their layers; kota_request_query: "layers" "true",
 * "limit", "after". The daemon's usual limit is a thousand.
 */
struct kota_request *kota_locales(void);
/* The page after that answer of kota_locales. NULL: it was the last one, or out of memory. */
struct kota_request *kota_locales_next(struct kota_answer *answer);
struct kota_request *kota_locale(const char *id);
/* manifest: a JSON object as text; NULL: "{}". */
struct kota_request *kota_put_locale(const char *id, const char *manifest);
/* A locale that shares the ground of another one: "arena", "arena@pin" or "arena@revision". */
struct kota_request *kota_post_locale(const char *id, const char *from);
struct kota_request *kota_delete_locale(const char *id);
/* format "f32", "png16", "obj"; NULL: as the layer is. The headers have cols, rows, spacing … */
struct kota_request *kota_layer(const char *locale, const char *layer, const char *format);
/* A file; the media type is its format, kota_request_query adds the rest ("spacing", "role" …). */
struct kota_request *kota_put_layer(const char *locale, const char *layer, const char *media_type,
                                    const void *bytes, size_t length);
/* The options of a file of polygons; all zero are the defaults. */
struct kota_mesh_options {
    bool is_ceiling;
    bool is_up_y; /* the file's own upward axis is y, not z */
    double scale; /* metres a unit of the file; 0: 1 */
    enum kota_frame frame;
    enum kota_layer_gravity gravity; /* not for KOTA_CARTESIAN */
};

/* kota_put_layer of a file of polygons. options NULL: all as usual. */
struct kota_request *kota_put_layer_mesh(const char *locale, const char *layer,
                                         const char *media_type, const void *bytes, size_t length,
                                         const struct kota_mesh_options *options);
/* heights_m[rows * cols] from the smallest y; NaN is a hole. */
struct kota_request *kota_put_layer_heights(const char *locale, const char *layer,
                                            const float *heights_m, uint32_t cols, uint32_t rows,
                                            double spacing_x_m, double spacing_y_m);
struct kota_request *kota_delete_layer(const char *locale, const char *layer);

/*
 * Values of a locale that are kept under names. kota_request_query(request, "at", name) on a read
 * asks about one, or about a revision that is held.
 */
struct kota_request *kota_pins(const char *locale);
struct kota_request *kota_pin(const char *locale, const char *pin);
struct kota_request *kota_put_pin(const char *locale, const char *pin);
struct kota_request *kota_delete_pin(const char *locale, const char *pin);
/* The locale's next revision has the pin's value. */
struct kota_request *kota_restore_pin(const char *locale, const char *pin);

/*
 * Who made each revision of a locale: rows with revision, author, note, rect, time.
 * kota_request_query(request, name, value): rect, layer, author, since, before, order, limit.
 * Every write takes kota_request_query(request, "note", why).
 */
struct kota_request *kota_history(const char *locale);
/*
 * Takes the edits after a revision back, of one author (NULL: of all). Samples that others edited
 * later stay, or are overwritten, too.
 */
enum kota_conflicts { KOTA_KEEP, KOTA_OVERWRITE };
struct kota_request *kota_revert(const char *locale, const char *author, uint64_t since,
                                 enum kota_conflicts conflicts);

/*
 * The new pose of a mesh layer: rotated by yaw_deg about gravity's line through its origin, then
 * moved; yaw_deg NAN: 0. It is not sent again when the connection breaks: a late repeat could undo
 * a newer move.
 */
struct kota_request *kota_put_transform(const char *locale, const char *layer,
                                        const double translation_m[3], double yaw_deg);
/* The same, turned by a unit quaternion x, y, z, w about its origin. */
struct kota_request *kota_put_rotation(const char *locale, const char *layer,
                                       const double translation_m[3], const double rotation[4]);
/*
 * Polygons of a mesh layer: those with the numbers removed[removed_count] go, and new ones come, in
 * one revision. Polygon i of the new ones has the next corner_counts[i] corners of xyz. The answer
 * is the locale; its text has the numbers of the new ones under "added".
 */
struct kota_request *kota_polygons(const char *locale, const char *layer, const double *xyz,
                                   const size_t *corner_counts, size_t polygon_count,
                                   const uint32_t *removed, size_t removed_count);
struct kota_request *kota_layer_stats(const char *locale, const char *layer);

/* Of kota_locales: how many; else 1 when the answer is a locale. False and an error: none. */
bool kota_read_locale_count(struct kota_answer *answer, size_t *count);
/* Locale `index` of the list, or 0 of an answer that is one. */
bool kota_read_locale(struct kota_answer *answer, size_t index, struct kota_locale *locale);
bool kota_read_layer(struct kota_answer *answer, size_t index, size_t layer_index,
                     struct kota_layer *layer);

/* ---- world: edits ---------------------------------------------------------------------------- */

enum kota_edit_op { KOTA_SET, KOTA_ADD };
enum kota_brush { KOTA_CRATER, KOTA_RAISE, KOTA_FLATTEN, KOTA_SMOOTH, KOTA_RELAX };

struct kota_edit {
    uint64_t revision;
    uint32_t rect[4]; /* c0 r0 cols rows, in samples */
};

/* Samples of a rectangle, heights_m[rect[3]][rect[2]] from the smallest y; NaN makes a hole. */
struct kota_request *kota_edit(const char *locale, const uint32_t rect[4], enum kota_edit_op op,
                               const float *heights_m);
/*
 * amount_m NaN: not given, as flatten and smooth allow. Of KOTA_RELAX it is the angle of repose in
 * degrees; NaN: the daemon's, 34.
 */
struct kota_request *kota_edit_brush(const char *locale, enum kota_brush shape, double x, double y,
                                     double radius_m, double amount_m);
bool kota_read_edit(struct kota_answer *answer, struct kota_edit *edit);

/* The samples that may have changed after a revision. 410: fetch everything again. */
struct kota_request *kota_diff(const char *locale, uint64_t since);
/* *count: how many there are; those that fit into rects[capacity] are written. */
bool kota_read_diff(struct kota_answer *answer, uint32_t (*rects)[4], size_t capacity,
                    size_t *count);

/*
 * ---- ground -----------------------------------------------------------------------------------
 *
 * kota_request_query(request, "live", "true") on height, profile, contact, ray, los, pick, contains
 * and their batches: the ground as it moves, with the surface of the patches of sand that live.
 */

/* Also the status in binary answers. Heights are ok, over a hole, or outside. */
enum kota_ground {
    KOTA_GROUND_OK,
    KOTA_GROUND_BELOW, /* no floor, but ground above the point */
    KOTA_GROUND_HOLE,
    KOTA_GROUND_OUTSIDE,
    KOTA_GROUND_TOO_FAR /* the floor is farther down than max_distance_m */
};

/* The fields beside the height. */
enum { KOTA_WITH_NORMAL = 1, KOTA_WITH_CELL = 2 };

struct kota_height {
    enum kota_ground status;
    double height_m;
    double normal[3]; /* NaN unless requested */
    bool has_cell;
    uint32_t cell[2];
};

/* One point, by GET. */
struct kota_request *kota_get_height(const char *locale, double x, double y, unsigned with);
/* xy[2 * count] */
struct kota_request *kota_height(const char *locale, const double *xy, size_t count, unsigned with);
/* As many as were asked for; false and an error: the call failed, or the count is another one. */
bool kota_read_height(struct kota_answer *answer, struct kota_height *heights, size_t count);

struct kota_profile_point {
    double distance_m; /* along the path */
    double point[3];   /* z NaN: no ground */
    enum kota_ground status;
};

/* Along xy[2 * count], either by a number of samples (step_m 0) or every step_m (samples 0). */
struct kota_request *kota_profile(const char *locale, const double *xy, size_t count,
                                  unsigned samples, double step_m);
/* *count: how many there are; those that fit are written. */
bool kota_read_profile(struct kota_answer *answer, struct kota_profile_point *points,
                       size_t capacity, size_t *count);

struct kota_contact_options {
    size_t size;
    double reach_up_m;     /* NaN (default): 0.5, or unbounded with a clearance */
    double clearance_m;    /* NaN (default): none */
    bool clearance_exact;  /* also lowers; default: only raises */
    double max_distance_m; /* down to the floor; NaN (default): unbounded */
};

void kota_contact_options_init(struct kota_contact_options *options, size_t size);

struct kota_surface {
    bool is_there; /* false: the rest is NaN, NULL or 0 */
    double point[3];
    double distance_m;
    double normal[3];
    double slope_deg;
    const char *layer; /* borrowed from the answer */
    bool has_cell;     /* a heightfield; else polygon counts */
    uint32_t cell[2];
    uint32_t polygon;
};

struct kota_contact {
    enum kota_ground status;
    const char *locale;                 /* of kota_world_contact; borrowed; NULL: none, or absent */
    bool hint_is_unknown;               /* its hint names no locale and was ignored */
    struct kota_surface floor, ceiling; /* a floor exactly when the status is ok */
    bool has_placed;                    /* with a clearance, over ground */
    double placed[3];
};

/* xyz[3 * count]. options NULL: the defaults. */
struct kota_request *kota_contact(const char *locale, const double *xyz, size_t count,
                                  const struct kota_contact_options *options);
bool kota_read_contact(struct kota_answer *answer, struct kota_contact *contacts, size_t count);
/* In the world's frame, over all locales. hints[count]: where each was before, or NULL. */
struct kota_request *kota_world_contact(const double *xyz, size_t count, const char *const *hints,
                                        const struct kota_contact_options *options);

struct kota_footprint {
    enum kota_ground status;
    bool has_plane;
    double normal[3], d; /* normal · p + d = 0 */
};

/* feet[i] points each, one after the other in xyz[3 * sum of feet]. */
struct kota_request *kota_contact_footprints(const char *locale, const double *xyz,
                                             const size_t *feet, size_t count,
                                             const struct kota_contact_options *options);
bool kota_read_contact_footprints(struct kota_answer *answer, struct kota_footprint *footprints,
                                  size_t count);

struct kota_ray {
    double origin[3], direction[3];
    double t_max; /* in lengths of direction; INFINITY: unbounded */
};

enum kota_ray_status { KOTA_RAY_HIT, KOTA_RAY_MISS, KOTA_RAY_INVALID };

struct kota_hit {
    enum kota_ray_status status;
    double t;          /* of a ray: in lengths of its direction; else NaN */
    double distance_m; /* along the ray */
    double point[3], normal[3];
    const char *layer;  /* borrowed from the answer; NULL: a miss, or a living body */
    const char *locale; /* of kota_world_ray; borrowed; NULL: a miss, or absent */
    bool has_cell;      /* a heightfield; else polygon counts */
    uint32_t cell[2];
    unsigned triangle;
    uint32_t polygon;
};

/* any: any hit will do, which is faster. */
struct kota_request *kota_ray(const char *locale, const struct kota_ray *rays, size_t count,
                              bool any);
/* In the world's frame, over all locales. */
struct kota_request *kota_world_ray(const struct kota_ray *rays, size_t count);
bool kota_read_ray(struct kota_answer *answer, struct kota_hit *hits, size_t count);

/* Everything along each ray, in order: up to hits_max of them, 1 to 256. */
struct kota_request *kota_ray_all(const char *locale, const struct kota_ray *rays, size_t count,
                                  unsigned hits_max);
/* hits[count][hits_max], as many of each row as found[count] says. */
bool kota_read_all(struct kota_answer *answer, struct kota_hit *hits, size_t *found, size_t count,
                   unsigned hits_max);

struct kota_segment {
    double from[3], to[3];
};

struct kota_los {
    bool visible;
    double fraction; /* of the way to the blocking point, 0 to 1; NaN: none */
    double point[3];
};

struct kota_request *kota_los(const char *locale, const struct kota_segment *segments,
                              size_t count);
bool kota_read_los(struct kota_answer *answer, struct kota_los *sights, size_t count);
/* All that is between the two, as kota_ray_all; t of a hit is the fraction of the way. */
struct kota_request *kota_los_all(const char *locale, const struct kota_segment *segments,
                                  size_t count, unsigned hits_max);

/* A light: at a position, or far away, travelling along a direction (as gravity does). */
struct kota_light {
    bool has_position;
    double vector[3];
};

struct kota_lit {
    bool lit;
    struct kota_hit occluder; /* KOTA_RAY_MISS: the point is lit */
};

struct kota_request *kota_lit(const char *locale, const double *xyz, size_t count,
                              const struct kota_light *light);
bool kota_read_lit(struct kota_answer *answer, struct kota_lit *lit, size_t count);

/* A sphere: radius. A capsule: radius, whole height along up. A box: half extents, degrees. */
enum kota_shape_kind { KOTA_SPHERE, KOTA_CAPSULE, KOTA_BOX };

struct kota_shape {
    enum kota_shape_kind kind;
    double sizes[4];
};

struct kota_sweep {
    struct kota_shape shape;
    double from[3], to[3]; /* of the shape's middle */
};

struct kota_touch {
    double fraction;     /* of the way, 0 to 1; NaN: none */
    bool starts_inside;  /* it overlaps a surface at `from` */
    struct kota_hit hit; /* KOTA_RAY_MISS: none; t and distance_m are NaN */
};

/* What shapes touch first on their ways. */
struct kota_request *kota_sweep(const char *locale, const struct kota_sweep *sweeps, size_t count);
bool kota_read_sweep(struct kota_answer *answer, struct kota_touch *touches, size_t count);

struct kota_move {
    struct kota_shape shape;
    double from[3], velocity[3]; /* metres, m/s */
    double dt_s;
    double slope_max_deg, step_up_m, snap_down_m; /* NaN: the daemon's defaults, 50, 0.5 and 0.5 */
    bool has_claimed;
    double claimed[3]; /* could it be here by now? */
};

enum { KOTA_MOVE_HITS_MAX = 5 };

struct kota_moved {
    double to[3];
    bool is_grounded, starts_inside;
    bool is_reachable;     /* of a move that has_claimed */
    struct kota_hit floor; /* KOTA_RAY_MISS: it stands on none */
    double slope_deg;      /* of the floor */
    size_t hit_count;      /* what it touched, in order */
    struct kota_hit hits[KOTA_MOVE_HITS_MAX];
};

/* Where shapes that walk come to. */
struct kota_request *kota_move(const char *locale, const struct kota_move *moves, size_t count);
bool kota_read_move(struct kota_answer *answer, struct kota_moved *moved, size_t count);

/* Depth at the near plane and at the far one: -1 and 1; 0 and 1; 1 and 0. */
enum kota_depth { KOTA_DEPTH_GL, KOTA_DEPTH_WEBGPU, KOTA_DEPTH_REVERSED };

struct kota_pick {
    size_t size;
    /* either a camera … */
    double eye[3], target[3], up[3];
    double fov_y_deg; /* NaN (default): the matrix is used */
    /* … or a column-major matrix */
    double inverse_view_projection[16];
    enum kota_depth depth;
    double viewport[2], pixel[2];
    uint32_t tile_side; /* cells; 1 */
    /* above 0: tiles of the plan instead, with a side of so many metres */
    double plan_side_m;
    enum kota_plan_shape { KOTA_PLAN_HEX, KOTA_PLAN_SQUARE } plan_shape;
};

void kota_pick_init(struct kota_pick *pick, size_t size);

struct kota_picked {
    struct kota_hit hit;
    bool has_tile;
    int64_t column, row;              /* of a hexagon q and r */
    uint32_t side;                    /* cells; 0: a tile of the plan */
    double center[3], min[3], max[3]; /* NaN: it has none, as a tile of the plan has no box */
};

struct kota_request *kota_pick(const char *locale, const struct kota_pick *pick);

struct kota_view {
    size_t size;
    double eye[3], target[3], up[3];
    double fov_y_deg;       /* 60 */
    uint32_t width, height; /* pixels; 640 × 480 */
    double light[3];        /* the way that the sun's light travels; NaN (default): the daemon's */
    bool has_no_shadows;
};
void kota_view_init(struct kota_view *view, size_t size);
/* What a camera sees, as a PNG. Its timeout is two minutes: other pictures may be drawn first. */
struct kota_request *kota_view(const char *locale, const struct kota_view *view);
/* In the world's frame, over all locales; hit.locale is that of the hit. */
struct kota_request *kota_world_pick(const struct kota_pick *pick);
bool kota_read_pick(struct kota_answer *answer, struct kota_picked *picked);

/* None of INSIDE, OVER_HOLE and OUTSIDE: below the ground. */
enum {
    KOTA_INSIDE = 1,
    KOTA_HAS_FLOOR = 2,
    KOTA_HAS_CEILING = 4,
    KOTA_OVER_HOLE = 8,
    KOTA_OUTSIDE = 16
};

struct kota_request *kota_contains(const char *locale, const double *xyz, size_t count);
/* Bits of KOTA_INSIDE … */
bool kota_read_contains(struct kota_answer *answer, uint8_t *bits, size_t count);

struct kota_place {
    const char *locale; /* borrowed from the answer; NULL: nowhere */
    double point[3];    /* in the locale's frame; NaN: nowhere */
    bool changed;
    bool hint_is_unknown; /* its hint names no locale and was ignored */
};

/* xyz[3 * count] in the world's frame. hints[count]: where each was before, or NULL. */
struct kota_request *kota_locate(const double *xyz, size_t count, const char *const *hints);
bool kota_read_locate(struct kota_answer *answer, struct kota_place *places, size_t count);

/* ---- binary batches -------------------------------------------------------------------------- */

/*
 *                      in, per item                 out, per item
 *   KOTA_HEIGHT    2   x y                      1   height (NaN: none)
 *                                               2   with "status": height, enum kota_ground
 *   KOTA_CONTACT   3   x y z                    6   floor_z nx ny nz ceiling_z (NaN: none), and
 *                                                   enum kota_ground
 *   KOTA_RAY       7   ox oy oz dx dy dz t_max  4   t nx ny nz (t = inf: miss)
 *   KOTA_CONTAINS  3   x y z                    one byte: KOTA_INSIDE | …
 */
enum kota_question { KOTA_HEIGHT, KOTA_CONTACT, KOTA_RAY, KOTA_CONTAINS };
enum { KOTA_CONTACT_NUMBERS = 6 };

/*
 * items: count items as the table has them. base[3]: what the coordinates are relative to, those of
 * the answer too; NULL: the frame's origin. The numbers are copied. kota_request_query sets options
 * ("reach_up", "max_distance", "interp", "mode", "layer", "status").
 */
struct kota_request *kota_batch_f32(enum kota_question question, const char *locale,
                                    const float *items, size_t count, const double *base);
struct kota_request *kota_batch_f64(enum kota_question question, const char *locale,
                                    const double *items, size_t count, const double *base);

/*
 * The numbers of the answer, aligned, when there are exactly count × per_item (the table's), else
 * NULL and an error.
 */
const float *kota_read_f32(struct kota_answer *answer, size_t count, size_t per_item);
const double *kota_read_f64(struct kota_answer *answer, size_t count, size_t per_item);
/* Of KOTA_CONTAINS. */
const uint8_t *kota_read_bytes(struct kota_answer *answer, size_t count);

/* ---- tiles ----------------------------------------------------------------------------------- */

enum kota_tile_format { KOTA_TILE_F32, KOTA_TILE_PNG16, KOTA_TILE_TERRARIUM };
enum kota_tile_kind { KOTA_TILE_SAMPLED, KOTA_TILE_MIN, KOTA_TILE_MAX };
enum { KOTA_TILE_SIDE = 257 };

struct kota_request *kota_tile(const char *locale, unsigned level, unsigned column, unsigned row,
                               enum kota_tile_format format, enum kota_tile_kind kind);
/*
 * The samples of a rectangle c0 r0 cols rows (NULL: the whole field), every step-th along both axes
 * (a power of two), as float32: kota_read_f32(answer, count, 1), rows from the smallest y, NaN:
 * none. The count along an axis is the rectangle's by the step, rounded up.
 */
struct kota_request *kota_samples(const char *locale, const char *layer, const uint32_t *rect,
                                  unsigned step);
/* heights_m[257 * 257] of KOTA_TILE_F32, rows from the smallest y; NULL: another answer, or 304. */
const float *kota_read_tile(struct kota_answer *answer);

/* ---- maps ------------------------------------------------------------------------------------ */

enum kota_dem_form { KOTA_DEM_PNG, KOTA_DEM_PNG_2X, KOTA_DEM_F32, KOTA_DEM_TIF };

/* A heightfield as a cloud-optimised GeoTIFF; option `v`, a revision: error 412 once it is old. */
struct kota_request *kota_layer_tif(const char *locale, const char *layer);
/* 3D Tiles of the mesh layers; a layer as binary glTF, option `step` of a heightfield. */
struct kota_request *kota_tileset(const char *locale);
struct kota_request *kota_layer_glb(const char *locale, const char *layer);
/* What readers of quantized-mesh ask first, and a tile, y from the south; option `extensions`. */
struct kota_request *kota_terrain_layer(const char *locale);
struct kota_request *kota_terrain(const char *locale, unsigned z, unsigned x, unsigned y);
/* TileJSON; options by kota_request_query: encoding, style, void, sampling, layer, v. */
struct kota_request *kota_dem_json(const char *locale);
/* A map's tile of heights (XYZ), row 0 in the north; options as above. 404: no ground there. */
struct kota_request *kota_dem(const char *locale, unsigned z, unsigned x, unsigned y,
                              enum kota_dem_form form);
/* A globe's tile, values on its corners and between; option `size`, too. Not KOTA_DEM_PNG_2X. */
struct kota_request *kota_dem_geodetic(const char *locale, unsigned z, unsigned x, unsigned y,
                                       enum kota_dem_form form);

/* ---- elevation, in the shape of Open Topo Data and Google ------------------------------------ */

/*
 * locations: "lat,lng|lat,lng" or "enc:" and an encoded polyline. Options by kota_request_query;
 * kota_read_number(answer, "/results/0/elevation", &m). dataset: a locale, or several with commas.
 */
struct kota_request *kota_get_elevation(const char *locations);
struct kota_request *kota_elevation(const char *locations);
struct kota_request *kota_google_elevation(const char *locations);
struct kota_request *kota_get_dataset_elevation(const char *dataset, const char *locations);
struct kota_request *kota_dataset_elevation(const char *dataset, const char *locations);

/* ---- events, for kota_watch ------------------------------------------------------------------ */

struct kota_request *kota_events(void); /* all locales */
/*
 * kota_request_query sets "bounds" ("x0,y0,x1,y1"), "layer" and "samples" ("f32"). With
 * kota_request_header "Accept", "application/vnd.kota.feed" the feed is binary: each event has its
 * samples, edits of polygons have them, too, and others are "hello", "transform" and "tick".
 */
struct kota_request *kota_locale_events(const char *locale);
struct kota_request *kota_patch_events(const char *locale, uint32_t patch);

/*
 * Standing questions. `questions` and `change` are JSON as the document has it: bodies of calls,
 * each with "ids"; and {"add":{…},"remove":[…]}. The answer names the watch; kota_watch_events is
 * for kota_watch: all answers, then those that change.
 */
struct kota_request *kota_post_watch(const char *locale, const char *questions);
struct kota_request *kota_patch_watch(const char *watch, const char *change);
struct kota_request *kota_delete_watch(const char *watch);
struct kota_request *kota_watch_events(const char *watch);

/* ---- replicas: the same ground in this process ----------------------------------------------- */

/*
 * A replica holds locales of a daemon in this process and follows their feeds, by a thread of its
 * own. Questions to its copy (libkota-ground, <kota-ground.h>) are answered here, in nanoseconds,
 * with the bits of the daemon at the same revision and transform_seq:
 *
 *     struct kota_ground_reader *reader = kota_ground_reader_open(kota_replica_copy(replica));
 *     const struct kota_ground_view *view = kota_ground_newest(reader);
 *     double height_m = kota_ground_height(kota_ground_locale(view, "demo"), x, y);
 *
 * When the daemon is lost the copy goes on answering at the last revision, which each answer names;
 * staleness_s and is_lost say so. A daemon that speaks another version of the formats is refused,
 * and then the locale is in no view.
 */
struct kota_replica;
struct kota_ground_copy;

struct kota_replica_locale {
    const char *id;
    bool has_bounds; /* only the heights of this rectangle, x0 y0 x1 y1; meshes are held whole */
    double bounds[4];
};

struct kota_replica_options {
    size_t size;
    const struct kota_options *client; /* of the daemon; its loop is not used; NULL: the defaults */
    const struct kota_replica_locale *locales; /* [locale_count] */
    size_t locale_count;
    int compression; /* 1: zstd; 0: none; -1 (default): unless the daemon is on this machine */
};

void kota_replica_options_init(struct kota_replica_options *options, size_t size);

/*
 * Begins to follow; the strings are copied. It returns at once, kota_replica_wait waits. NULL: no
 * memory. What is wrong with the options is in the status of any locale.
 */
struct kota_replica *kota_replica_open(const struct kota_replica_options *options);
/* After all readers of its copy. Returns within milliseconds. */
void kota_replica_close(struct kota_replica *replica);

/* For kota_ground_reader_open. Borrowed from the replica; only the replica changes it. */
struct kota_ground_copy *kota_replica_copy(const struct kota_replica *replica);

/* Those of enum kota_ground_state. */
enum kota_replica_state {
    KOTA_REPLICA_LOADING,
    KOTA_REPLICA_CURRENT, /* the copy has all that the feed has said */
    KOTA_REPLICA_BEHIND,  /* it has an earlier revision */
    KOTA_REPLICA_GONE,    /* the daemon has no such locale */
    KOTA_REPLICA_REFUSED  /* for good: refusal has the reason */
};

struct kota_replica_status {
    uint64_t revision;       /* that the copy answers at; 0: it does not */
    uint64_t transform_seq;  /* the same of poses */
    uint64_t heard;          /* the greatest revision that the feed has named */
    double staleness_s;      /* since the copy was last known to be current; INFINITY: never */
    uint64_t received_bytes; /* of all locales, bodies only */
    enum kota_replica_state state;
    bool is_lost;            /* no feed is open now */
    char refusal[344];       /* "" unless it was refused */
    struct kota_error error; /* the last failure of the replica */
};

/* Any thread. size is sizeof(struct kota_replica_status). False: the locale is not followed. */
bool kota_replica_status(struct kota_replica *replica, const char *locale,
                         struct kota_replica_status *status, size_t size);
uint64_t kota_replica_revision(struct kota_replica *replica, const char *locale);
double kota_replica_staleness(struct kota_replica *replica, const char *locale);
/* Until the copy has that revision or a later one; 0: any. False: the time is over, or refused. */
bool kota_replica_wait(struct kota_replica *replica, const char *locale, uint64_t revision,
                       double timeout_s);

#ifdef __cplusplus
}
#endif

#include "kota-sand.h"

#endif
