/*
 * The daemon's own view: pictures of locales, drawn by OpenGL on a thread of its own.
 *
 * The thread and its context begin with the first picture; the context is closed after some
 * seconds without one. What waits is a queue of few: no question about the ground waits for it.
 */
#ifndef KOTA_VIEW_VIEW_H
#define KOTA_VIEW_VIEW_H

#include "formats/raster/raster.h"
#include "sand/sand.h"
#include "terrain/pick.h"

enum {
    VIEW_QUEUE_MAX = 8,              /* pictures that wait or are drawn */
    VIEW_LONGEST_SIDE = 8192,        /* pixels */
    VIEW_PIXELS_MAX = 1 << 22,       /* 4,194,304 */
    VIEW_MEMORY_MAX_BYTES = 1 << 30, /* of one picture: textures, ground, meshes */
};

struct view_job {
    struct locale *locale; /* a reference */
    bool is_live;          /* with the granules of its patches */
    struct camera camera;
    uint32_t width, height;
    struct vec3 light; /* the way that the sun's light travels; unit */
    bool has_shadows;
    /* Once, on the view's thread; png is taken, NULL unless ERR_OK. */
    void (*done)(void *context, const struct err *err, struct raster_bytes *png);
    bool (*is_abandoned)(void *context); /* then it is not drawn */
    void *context;
};

struct daemon_view;

/*
 * gpu  a word of --gpu: the device of patches, or software where that is none of OpenGL; off: none
 * sand is borrowed; NULL: there are no granules. NULL: ERR_NO_MEMORY.
 */
struct daemon_view *daemon_view_create(const char *gpu, struct sand *sand, struct err *err);
/* No more pictures: those that wait are answered (ERR_BUSY). Does not wait. NULL is fine. */
void daemon_view_end(struct daemon_view *view);
/* Waits for the thread, some seconds; false: it is in a driver, and nothing may be freed. */
bool daemon_view_stop(struct daemon_view *view);
void daemon_view_destroy(struct daemon_view *view); /* after it was true; NULL is fine */

/*
 * Checks a camera and a size. ERR_BAD_INPUT: a camera that cannot be, err->pointer its member;
 * ERR_TOO_LARGE: a size.
 */
enum err_code daemon_view_check(const struct camera *camera, const double size[2], struct err *err);
/* Queues a picture; takes the reference on ERR_OK. ERR_BUSY: the queue is full, or the end. */
enum err_code daemon_view_submit(struct daemon_view *view, const struct view_job *job,
                                 struct err *err);

#endif
