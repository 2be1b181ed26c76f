/*
 * The thread of the view, and its queue.
 *
 * Problem: a picture takes from some ms to some seconds, needs a context that belongs to one
 * thread, and is of no hurry. Approach: one thread, made at the first picture, takes one job after
 * another; the context is opened for the first of them and closed when none has come for IDLE_S,
 * since its driver may hold a hundred megabytes. A full queue refuses.
 *
 * A context that could not be opened is tried again at the next picture, which costs some ms, and
 * none of the others waits for it.
 */
#include "view/view.h"

#include "base/background.h"
#include "base/check.h"
#include "base/log.h"
#include "base/timed_wait.h"
#include "view/draw.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_S 10.0
#define STOP_WAIT_S 20.0 /* for a picture that is drawn at the end */

struct daemon_view {
    char gpu[16];
    struct sand *sand;
    pthread_mutex_t mutex; /* what follows, up to the line */
    pthread_cond_t is_wanted, has_ended;
    struct view_job jobs[VIEW_QUEUE_MAX];
    uint32_t first, count; /* with the one that is drawn */
    bool has_thread, is_drawing, is_stopping, is_over;

    pthread_t thread;
    /* the thread's own */
    struct context *context;
    struct draw *draw;
};

/* ---- granules -------------------------------------------------------------------------------- */

struct granules {
    struct scene_sphere *spheres;
    uint32_t count;
};

static enum err_code add_patch(struct granules *granules, const struct patch_report *report,
                               const float (*spheres)[4], uint32_t count, struct vec3 eye,
                               struct err *err)
{
    const struct convert_place *place = &report->place;
    struct scene_sphere *grown;

    if (count > SCENE_SPHERES_MAX - granules->count)
        count = SCENE_SPHERES_MAX - granules->count;
    grown = realloc(granules->spheres, ((size_t)granules->count + count + 1) * sizeof *grown);
    if (!grown)
        return err_set(err, ERR_NO_MEMORY, "no memory for %u spheres", count);
    granules->spheres = grown;
    for (uint32_t i = 0; i < count && spheres[i][3] < 0; i++)
        grown[granules->count++] =
            (struct scene_sphere){{(float)(place->low.x + (double)spheres[i][0] - eye.x),
                                   (float)(place->low.y + (double)spheres[i][1] - eye.y),
                                   (float)(place->z_m + (double)spheres[i][2] - eye.z)},
                                  scale_radius_m(report->scale),
                                  (float)(granule_hash(i / GRANULE_SPHERES + 1) & 0xff) / 255};
    return ERR_OK;
}

/* Those of all patches of the locale that live, as they are now. */
static enum err_code granules_get(struct daemon_view *view, const struct view_job *job,
                                  struct granules *out, struct err *err)
{
    size_t count = 0;
    struct patch_report **reports =
        job->is_live && view->sand ? sand_reports(view->sand, job->locale->id, &count) : NULL;

    err->code = ERR_OK;
    for (size_t i = 0; i < count; i++) {
        float(*spheres)[4] = NULL;
        uint32_t sphere_count = 0;

        if (err->code == ERR_OK && reports[i]->state != PATCH_FILLING &&
            !patch_state_is_end(reports[i]->state) &&
            !(reports[i]->state == PATCH_SETTLING && reports[i]->has_dents)) {
            if (sand_patch_spheres(view->sand, reports[i]->number, &spheres, &sphere_count, err) ==
                ERR_OK)
                add_patch(out, reports[i], (const float(*)[4])spheres, sphere_count,
                          job->camera.eye, err);
            else if (err->code == ERR_CONFLICT)
                err->code = ERR_OK; /* it has ended just now */
        }
        free(spheres);
        patch_report_unref(reports[i]);
    }
    free(reports);
    return err->code;
}

/* ---- a picture ------------------------------------------------------------------------------- */

/*
 * llvmpipe allocates and frees some 36 MB of triangles again and again within a picture. While its
 * context is open the heap does not give them back to the system each time, which would be a third
 * of a picture's time; heap_prepare of daemon/main.c has the values of otherwise.
 */
static void heap_keep(bool is_kept)
{
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, is_kept ? 64 << 20 : 128 << 10);
    mallopt(M_MMAP_THRESHOLD, is_kept ? 32 << 20 : 128 << 10);
#endif
}

static enum err_code context_open(struct daemon_view *view, struct err *err)
{
    const bool is_auto = strcmp(view->gpu, "auto") == 0;

    if (view->context && context_lost(view->context)) {
        draw_destroy(view->draw);
        context_destroy(view->context);
        view->draw = NULL;
        view->context = NULL;
    }
    if (view->draw)
        return ERR_OK;
    view->context = context_create(strcmp(view->gpu, "cpu") == 0 ? "software" : view->gpu, 0, err);
    if (!view->context && is_auto)
        view->context = context_create("software", 0, err);
    if (!view->context) {
        err->code = err->code == ERR_BUSY ? ERR_NO_DEVICE : err->code;
        return err->code;
    }
    view->draw = draw_create(view->context, err);
    if (view->draw) {
        heap_keep(true);
        return err->code = ERR_OK;
    }
    context_destroy(view->context);
    view->context = NULL;
    return err->code;
}

static void context_close(struct daemon_view *view)
{
    heap_keep(false);
    draw_destroy(view->draw);
    context_destroy(view->context);
    view->draw = NULL;
    view->context = NULL;
}

static enum err_code draw_scene(struct daemon_view *view, const struct view_job *job,
                                const struct lens_frame *lens, const struct granules *granules,
                                uint8_t *rgb, struct err *err)
{
    const struct draw_light light = {job->light, job->has_shadows};
    const uint64_t most = VIEW_MEMORY_MAX_BYTES;
    struct scene scene;

    if (context_open(view, err) ||
        scene_make(job->locale, lens,
                   context_info(view->context)->software ? SCENE_BLOCKS_SOFTWARE : SCENE_BLOCKS_MAX,
                   most - draw_bytes(job->width, job->height), &scene, err))
        return err->code;
    scene.spheres = granules->spheres;
    scene.sphere_count = granules->count;
    draw_picture(view->draw, &scene, lens, &light, rgb, NULL, err);
    scene_finish(&scene);
    return err->code;
}

static enum err_code render(struct daemon_view *view, const struct view_job *job,
                            struct raster_bytes *png, struct err *err)
{
    uint8_t *rgb = malloc(3 * (size_t)job->width * job->height);
    struct granules granules = {NULL, 0};
    struct lens_frame lens;

    if (!rgb)
        err_set(err, ERR_NO_MEMORY, "no memory for a picture of %u × %u pixels", job->width,
                job->height);
    else if (lens_frame_make(&job->camera, job->width, job->height, &lens, err) == ERR_OK &&
             granules_get(view, job, &granules, err) == ERR_OK &&
             draw_scene(view, job, &lens, &granules, rgb, err) == ERR_OK)
        png_encode(job->width, job->height, 3, rgb, 1, png, err);
    free(granules.spheres);
    free(rgb);
    return err->code;
}

static void answer(struct daemon_view *view, struct view_job *job)
{
    struct raster_bytes png = {0};
    struct err err = {.code = ERR_OK};

    if (!job->is_abandoned(job->context))
        render(view, job, &png, &err);
    else
        err_set(&err, ERR_BUSY, "the client has gone");
    locale_unref(job->locale);
    job->done(job->context, &err, err.code == ERR_OK ? &png : NULL);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* The next job, which stays counted; false at the end. The mutex is held. */
static bool next_job(struct daemon_view *view, struct view_job *job)
{
    while (view->count == 0 && !view->is_stopping) {
        if (!view->context) {
            pthread_cond_wait(&view->is_wanted, &view->mutex);
        } else {
            const struct timespec until = timed_wait_until(IDLE_S);

            if (pthread_cond_timedwait(&view->is_wanted, &view->mutex, &until) == ETIMEDOUT &&
                view->count == 0)
                context_close(view);
        }
    }
    if (view->is_stopping)
        return false;
    *job = view->jobs[view->first];
    view->is_drawing = true;
    return true;
}

static void *run(void *context)
{
    struct daemon_view *view = context;
    struct view_job job;

    pthread_setname_np(pthread_self(), "view");
    background_enter();
    pthread_mutex_lock(&view->mutex);
    while (next_job(view, &job)) {
        pthread_mutex_unlock(&view->mutex);
        answer(view, &job);
        pthread_mutex_lock(&view->mutex);
        view->first = (view->first + 1) % VIEW_QUEUE_MAX;
        view->count--;
        view->is_drawing = false;
    }
    pthread_mutex_unlock(&view->mutex);
    context_close(view);
    pthread_mutex_lock(&view->mutex);
    view->is_over = true;
    pthread_cond_broadcast(&view->has_ended);
    pthread_mutex_unlock(&view->mutex);
    return NULL;
}

static enum err_code thread_start(struct daemon_view *view, struct err *err)
{
    sigset_t all, old;
    int failed;

    if (view->has_thread)
        return ERR_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    failed = pthread_create(&view->thread, NULL, run, view);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed)
        return err_set(err, ERR_INTERNAL, "no thread for pictures: %s", strerror(failed));
    view->has_thread = true;
    return ERR_OK;
}

/* ---- for other threads ----------------------------------------------------------------------- */

struct daemon_view *daemon_view_create(const char *gpu, struct sand *sand, struct err *err)
{
    struct daemon_view *view = calloc(1, sizeof *view);

    if (!view) {
        err_set(err, ERR_NO_MEMORY, "no memory for the view");
        return NULL;
    }
    snprintf(view->gpu, sizeof view->gpu, "%s", gpu);
    view->sand = sand;
    pthread_mutex_init(&view->mutex, NULL);
    timed_wait_init(&view->is_wanted);
    timed_wait_init(&view->has_ended);
    return view;
}

enum err_code daemon_view_check(const struct camera *camera, const double size[2], struct err *err)
{
    struct lens_frame lens;

    for (int i = 0; i < 2; i++) {
        if (!(size[i] >= 1) || size[i] != (double)(uint64_t)fmin(size[i], 1e15)) {
            err_set(err, ERR_BAD_INPUT, "size is %g × %g, must be two whole numbers from 1",
                    size[0], size[1]);
            return err_at(err, "size");
        }
        if (size[i] > VIEW_LONGEST_SIDE) {
            err_limit(err, ERR_TOO_LARGE, VIEW_LONGEST_SIDE, size[i],
                      "a picture has at most %d pixels along a side", VIEW_LONGEST_SIDE);
            return err_at(err, "size");
        }
    }
    if (size[0] * size[1] > VIEW_PIXELS_MAX) {
        err_limit(err, ERR_TOO_LARGE, VIEW_PIXELS_MAX, size[0] * size[1],
                  "a picture has at most %d pixels", VIEW_PIXELS_MAX);
        return err_at(err, "size");
    }
    return lens_frame_make(camera, (uint32_t)size[0], (uint32_t)size[1], &lens, err);
}

enum err_code daemon_view_submit(struct daemon_view *view, const struct view_job *job,
                                 struct err *err)
{
    if (strcmp(view->gpu, "off") == 0)
        return err_set(err, ERR_NO_DEVICE,
                       "there are no pictures: OpenGL is switched off "
                       "(--gpu off)");
    err->code = ERR_OK;
    pthread_mutex_lock(&view->mutex);
    if (view->is_stopping)
        err_set(err, ERR_BUSY, "the daemon stops");
    else if (view->count == VIEW_QUEUE_MAX)
        err_limit(err, ERR_BUSY, VIEW_QUEUE_MAX, VIEW_QUEUE_MAX + 1, "%d pictures wait already",
                  VIEW_QUEUE_MAX);
    else if (thread_start(view, err) == ERR_OK) {
        view->jobs[(view->first + view->count++) % VIEW_QUEUE_MAX] = *job;
        pthread_cond_signal(&view->is_wanted);
    }
    pthread_mutex_unlock(&view->mutex);
    return err->code;
}

void daemon_view_end(struct daemon_view *view)
{
    struct view_job waiting[VIEW_QUEUE_MAX];
    uint32_t count = 0;
    struct err err;

    if (!view)
        return;
    pthread_mutex_lock(&view->mutex);
    view->is_stopping = true;
    while (view->count > (view->is_drawing ? 1 : 0))
        waiting[count++] = view->jobs[(view->first + --view->count) % VIEW_QUEUE_MAX];
    pthread_cond_signal(&view->is_wanted);
    pthread_mutex_unlock(&view->mutex);
    err_set(&err, ERR_BUSY, "the daemon stops");
    for (uint32_t i = 0; i < count; i++) {
        locale_unref(waiting[i].locale);
        waiting[i].done(waiting[i].context, &err, NULL);
    }
}

bool daemon_view_stop(struct daemon_view *view)
{
    struct timespec until;
    int failed = 0;

    if (!view)
        return true;
    CHECK(view->is_stopping);
    until = timed_wait_until(STOP_WAIT_S);
    pthread_mutex_lock(&view->mutex);
    while (view->has_thread && !view->is_over && failed != ETIMEDOUT)
        failed = pthread_cond_timedwait(&view->has_ended, &view->mutex, &until);
    pthread_mutex_unlock(&view->mutex);
    if (failed == ETIMEDOUT)
        log_warn("a picture is still being drawn; the end does not wait for it");
    else if (view->has_thread)
        pthread_join(view->thread, NULL);
    return failed != ETIMEDOUT;
}

void daemon_view_destroy(struct daemon_view *view)
{
    if (!view)
        return;
    pthread_cond_destroy(&view->is_wanted);
    pthread_cond_destroy(&view->has_ended);
    pthread_mutex_destroy(&view->mutex);
    free(view);
}
