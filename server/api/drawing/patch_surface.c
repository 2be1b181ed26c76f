/*
 * GET …/patches/{patch}/surface.f32?per_cell=  ->  application/vnd.kota.f32
 *
 * The current surface of a patch, for drawing: heights[rows][cols] in the locale's frame, row 0 at
 * the smallest y, like tiles. Its spheres are copied by the sand thread and measured here, on a
 * worker (sand/convert/surface.h); the patch runs meanwhile.
 *
 *   Kota-Rect    c0,r0,cols,rows  the samples of the field that it covers
 *   Kota-Grid    cols,rows        of the answer: (rect's - 1) · per_cell + 1
 *   Kota-State   the patch's; one that has no granules (it waits, or has ended) is ground, and so
 *                is one that settles for an impact, whose crater the granules have not yet
 *   ETag         while nothing moves; If-None-Match then is 304
 *
 * How many are measured at once is bounded, so that the pool is left to others.
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/calls/patches.h"
#include "api/tile_cache.h"
#include "sand/convert/surface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE_MAX = 4, SAMPLES_MAX = 1 << 20, TAG_BYTES = 64 };

/* Nothing moves in a patch at rest, and any wake-up makes a newer report. */
static bool is_still(const struct patch_report *report)
{
    return report->state == PATCH_RESTING;
}

static enum err_code measure(struct call *call, const struct patch_report *report,
                             const struct surface_grid *grid, float *heights_m, struct err *err)
{
    const struct layer *layer = call->locale ? locale_layer(call->locale, report->layer) : NULL;
    float(*spheres)[4] = NULL;
    uint32_t count = 0;

    if (!layer || !layer->field)
        return err_set(err, ERR_NOT_FOUND, "the ground of patch %llu is gone",
                       (unsigned long long)report->number);
    if (report->state != PATCH_FILLING && !patch_state_is_end(report->state) &&
        !(report->state == PATCH_SETTLING && report->has_dents) &&
        sand_patch_spheres(call->api->sand, report->number, &spheres, &count, err)) {
        if (err->code != ERR_CONFLICT)
            return err->code;
        err->code = ERR_OK; /* it has ended just now */
    }
    surface_measure(layer->field, &report->place, (const float(*)[4])spheres, count,
                    scale_radius_m(report->scale), grid, heights_m, err);
    free(spheres);
    return err->code;
}

static enum err_code answer(struct call *call, const struct patch_report *report,
                            const struct surface_grid *grid, struct err *err)
{
    const struct sample_rect *rect = &report->place.samples;
    const size_t bytes = (size_t)grid->cols * grid->rows * sizeof(float);
    float *heights_m = malloc(bytes);
    char *room = NULL;

    if (heights_m && measure(call, report, grid, heights_m, err) == ERR_OK)
        room = call->out.sink.reserve(call->out.sink.to, bytes);
    if (room) {
        memcpy(room, heights_m, bytes);
        call->out.sink.advance(call->out.sink.to, bytes);
    } else if (err->code == ERR_OK) {
        err_set(err, ERR_NO_MEMORY, "no memory for a surface of %zu bytes", bytes);
    }
    free(heights_m);
    if (err->code != ERR_OK)
        return err->code;
    call_content_type(call, "application/vnd.kota.f32");
    call_header(call, "Kota-Rect", "%u,%u,%u,%u", rect->column, rect->row, rect->cols, rect->rows);
    call_header(call, "Kota-Grid", "%u,%u", grid->cols, grid->rows);
    call_header(call, "Kota-State", "%s", patch_state_name(report->state));
    return ERR_OK;
}

static enum err_code answer_unless_known(struct call *call, const struct patch_report *report,
                                         uint32_t per_cell, struct err *err)
{
    const struct span match = http_request_header(call->request, "if-none-match");
    struct surface_grid grid;
    char tag[TAG_BYTES];

    if (surface_grid_make(&report->place, per_cell, SAMPLES_MAX, &grid, err))
        return err->code;
    snprintf(tag, sizeof tag, "\"%llu-%llu-%u\"", (unsigned long long)report->number,
             (unsigned long long)report->serial, per_cell);
    call_header(call, "Cache-Control", is_still(report) ? "no-cache" : "no-store");
    if (is_still(report)) {
        call_header(call, "ETag", "%s", tag);
        if (tile_tag_matches(match.at, match.length, tag)) {
            call_status(call, 304);
            return ERR_OK;
        }
    }
    if (atomic_fetch_add(&call->api->surfaces, 1) < AT_ONCE_MAX)
        answer(call, report, &grid, err);
    else
        err_limit(err, ERR_BUSY, AT_ONCE_MAX, AT_ONCE_MAX + 1, "%d surfaces are measured already",
                  AT_ONCE_MAX);
    atomic_fetch_sub(&call->api->surfaces, 1);
    return err->code;
}

enum err_code patch_surface_get_answer(struct call *call, struct err *err)
{
    static const char *const names[] = {"per_cell", NULL};
    struct patch_report *report;
    uint64_t per_cell = 1;

    if (options_open_query(call, names, err) ||
        option_integer(call, "per_cell", 1, SURFACE_PER_CELL_MAX, &per_cell, err))
        return err->code;
    report = patch_find(call, err);
    if (!report)
        return err->code;
    answer_unless_known(call, report, (uint32_t)per_cell, err);
    patch_report_unref(report);
    return err->code;
}
API_HANDLER(patch_surface_get, 2, CALL_NEEDS_NOTHING)
