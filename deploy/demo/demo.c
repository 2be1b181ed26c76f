/*
 * Landscapes are made side by side: rivers have to be followed one cell after the other, so two
 * threads do more on two landscapes than on two halves of one. Threads beyond the number of
 * landscapes go to the rows inside them. How the work is spread changes no byte (landscape.h). The
 * locales of polygons (village.h) take a moment and come last.
 */
#include "deploy/demo/demo.h"

#include "deploy/demo/landscape.h"
#include "deploy/demo/parallel.h"
#include "deploy/demo/village.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct demo_job {
    const struct demo_options *options;
    struct world_folder folder;
    uint32_t row_threads;
    bool is_verbose;
    pthread_mutex_t lock; /* guards what follows */
    const char *doing[LANDSCAPE_COUNT];
    struct err first_error;
};

static void demo_report(struct demo_job *job, uint32_t landscape, const char *doing)
{
    pthread_mutex_lock(&job->lock);
    job->doing[landscape] = doing;
    if (job->is_verbose) {
        fprintf(stderr, "\r");
        for (uint32_t i = 0; i < LANDSCAPE_COUNT; i++)
            fprintf(stderr, "%s %s   ", landscapes[i].id, job->doing[i]);
        fflush(stderr);
    }
    pthread_mutex_unlock(&job->lock);
}

static void demo_landscapes(void *context, uint32_t first, uint32_t end)
{
    struct demo_job *job = context;

    for (uint32_t i = first; i < end; i++) {
        const struct landscape *landscape = &landscapes[i];
        struct grid ground = {0};
        struct err err = {.code = ERR_OK};

        demo_report(job, i, "growing");
        if (!landscape->make(job->options->size, job->options->seed, job->row_threads, &ground,
                             &err)) {
            demo_report(job, i, "writing");
            world_folder_add(&job->folder, landscape, &ground, job->options->format, &err);
        }
        grid_destroy(&ground);
        demo_report(job, i, err.code ? "failed " : "done   ");
        pthread_mutex_lock(&job->lock);
        if (err.code && !job->first_error.code)
            job->first_error = err;
        pthread_mutex_unlock(&job->lock);
    }
}

enum err_code demo_write(const struct demo_options *options, struct err *err)
{
    struct demo_job job = {.options = options, .is_verbose = isatty(STDERR_FILENO) == 1};
    uint32_t spread = options->threads < LANDSCAPE_COUNT ? options->threads : LANDSCAPE_COUNT;

    if (world_folder_open(&job.folder, options->dir, err))
        return err->code;
    pthread_mutex_init(&job.lock, NULL);
    job.row_threads = options->threads / spread;
    for (uint32_t i = 0; i < LANDSCAPE_COUNT; i++)
        job.doing[i] = "waiting";
    parallel_rows(spread, LANDSCAPE_COUNT, 1, demo_landscapes, &job);
    pthread_mutex_destroy(&job.lock);
    if (job.is_verbose)
        fprintf(stderr, "\n");
    for (uint32_t i = 0; i < VILLAGE_LOCALE_COUNT && !job.first_error.code; i++)
        world_folder_add_meshes(&job.folder, &village_locales[i], &job.first_error);
    if (!job.first_error.code)
        world_folder_commit(&job.folder, &job.first_error);
    if (job.first_error.code) {
        *err = job.first_error;
        world_folder_abandon(&job.folder);
    }
    return err->code = job.first_error.code;
}
