/*
 * What the C engine answers: status, top-down depth, spheres. It answers at the poll, from the
 * state at that time: only the caller steps between a request and its poll.
 *
 * Depth is a splat: each sphere raises the points that it covers to its cap, and the maximum of
 * numbers does not depend on their order. A point's height is computed only from the point and the
 * sphere, in float32, so that a shader with an atomic maximum finds the same bits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sand/engine_input.h"
#include "sand/engine_c/solver_data.h"

static struct slot *asked_slot(struct sand_engine *engine, uint32_t index)
{
    CHECK(index < engine->config.slots && solver_of(engine)->slot[index].used);
    return &solver_of(engine)->slot[index];
}

/* ---- status --------------------------------------------------------------------------------- */

void solver_status_request(struct sand_engine *engine, uint32_t slot)
{
    asked_slot(engine, slot)->status_asked = true;
}

static double square(const float v[3])
{
    return (double)v[0] * v[0] + (double)v[1] * v[1] + (double)v[2] * v[2];
}

static double body_energy(const struct granular_body *body)
{
    struct f3 w = f3_rotate_back(body->q, f3_of(body->w));

    return 0.5 * square(body->v) / body->x[3] + 0.5 * f3_dot(w, f3_apply(body->inertia, w));
}

static void status_bodies(const struct slot *slot, struct sand_status *status)
{
    for (uint32_t b = 0; b < slot->bodies_end; b++) {
        const struct granular_body *body = &slot->body[b];

        if (body->particle_count == 0)
            continue;
        if (body->x[3] > 0)
            status->kinetic_energy_j += body_energy(body);
        engine_status_body(body, b, status);
    }
}

bool solver_status_poll(struct sand_engine *engine, uint32_t index, struct sand_status *status)
{
    struct slot *slot = asked_slot(engine, index);
    const struct granular_params *params = &slot->params;

    if (!slot->status_asked)
        return false;
    slot->status_asked = false;
    memset(status, 0, sizeof(*status));
    status->steps = slot->steps;
    status->time_s = (double)slot->steps * params->dt_s;
    status->granules = slot->granules;
    status->failed = slot->failed;
    memcpy(status->phase_ms, solver_of(engine)->phase_ms, sizeof(status->phase_ms));
    status->asleep = slot->granules;
    for (uint32_t w = 0; w * WORD_BITS < slot->granules; w++)
        for (uint32_t bits = slot->awake[w]; bits; bits &= bits - 1) {
            const struct granule *granule =
                &slot->mover[w * WORD_BITS + (uint32_t)__builtin_ctz(bits)];

            status->asleep--;
            status->kinetic_energy_j += 0.5 * params->mass_kg * square(granule->v) +
                                        0.5 * params->inertia * square(granule->w);
        }
    status_bodies(slot, status);
    return true;
}

/* ---- depth ---------------------------------------------------------------------------------- */

enum err_code solver_depth_request(struct sand_engine *engine, uint32_t index,
                                   const struct sand_depth *depth, struct err *err)
{
    struct slot *slot = asked_slot(engine, index);

    if (engine_depth_check(&engine->config, depth, err))
        return err->code;
    slot->depth = *depth;
    slot->depth_asked = true;
    return ERR_OK;
}

/* Points within r of x; empty when none is. */
static void points_near(const struct engine_points *points, float x, float r, int *first, int *end)
{
    double low = ceil(((double)x - r - points->first) / points->step);
    double high = floor(((double)x + r - points->first) / points->step);

    *first = (int)fmin(fmax(low, 0), points->count);
    *end = (int)fmin(fmax(high + 1, 0), points->count);
}

static void splat(float *map, const struct engine_points along[2], const float x[3], float r)
{
    int c0, c1, r0, r1;

    points_near(&along[0], x[0], r, &c0, &c1);
    points_near(&along[1], x[1], r, &r0, &r1);
    for (int row = r0; row < r1; row++) {
        float dy = along[1].first + (float)row * along[1].step - x[1];
        float *line = map + (size_t)row * along[0].count;

        for (int col = c0; col < c1; col++) {
            float dx = along[0].first + (float)col * along[0].step - x[0];
            float rest = r * r - dx * dx - dy * dy;

            if (rest >= 0)
                line[col] = fmaxf(line[col], x[2] + sqrtf(rest));
        }
    }
}

static void splat_granules(const struct solver *solver, const struct slot *slot, float *map,
                           const struct engine_points along[2])
{
    const struct granular_params *params = &solver->engine.config.params;

    for (uint32_t g = 0; g < slot->granules; g++)
        for (uint32_t j = 0; j < params->spheres; j++)
            splat(map, along, slot->position[GRANULE_SPHERES * g + j], params->radius_m);
}

static void average(const struct sand_depth *depth, const float *map, float *heights_m)
{
    const uint32_t n = depth->oversample;
    const size_t width = (size_t)depth->cols * n;

    for (uint32_t r = 0; r < depth->rows; r++) {
        for (uint32_t c = 0; c < depth->cols; c++) {
            const float *corner = map + (size_t)r * n * width + (size_t)c * n;
            float sum = 0;

            for (uint32_t j = 0; j < n; j++)
                for (uint32_t i = 0; i < n; i++)
                    sum += corner[j * width + i];
            heights_m[(size_t)r * depth->cols + c] = sum / (float)(n * n);
        }
    }
}

bool solver_depth_poll(struct sand_engine *engine, uint32_t index, float *heights_m)
{
    struct slot *slot = asked_slot(engine, index);
    const struct sand_depth *depth = &slot->depth;
    struct engine_points along[2];
    float *map;

    if (!slot->depth_asked)
        return false;
    slot->depth_asked = false;
    along[0] = engine_points_along(depth->x0, depth->dx, depth->cols, depth->oversample);
    along[1] = engine_points_along(depth->y0, depth->dy, depth->rows, depth->oversample);
    map = malloc(along[0].count * (size_t)along[1].count * sizeof(*map));
    CHECK(map);
    for (uint32_t r = 0; r < along[1].count; r++) {
        for (uint32_t c = 0; c < along[0].count; c++) {
            struct f3 normal;

            map[(size_t)r * along[0].count + (size_t)c] =
                solver_bed(slot, along[0].first + (float)c * along[0].step,
                           along[1].first + (float)r * along[1].step, &normal);
        }
    }
    splat_granules(solver_of(engine), slot, map, along);
    average(depth, map, heights_m);
    free(map);
    return true;
}

/* ---- spheres and granules ------------------------------------------------------------------- */

void solver_spheres_request(struct sand_engine *engine, uint32_t slot)
{
    asked_slot(engine, slot)->spheres_asked = true;
}

bool solver_spheres_poll(struct sand_engine *engine, uint32_t index, float (*spheres)[4],
                         uint32_t *count)
{
    const struct solver *solver = solver_of(engine);
    struct slot *slot = asked_slot(engine, index);
    uint32_t n = 0;

    if (!slot->spheres_asked)
        return false;
    slot->spheres_asked = false;
    for (uint32_t g = 0; g < slot->granules; g++)
        for (uint32_t j = 0; j < engine->config.params.spheres; j++) {
            memcpy(spheres[n], slot->position[GRANULE_SPHERES * g + j], sizeof(float[3]));
            spheres[n++][3] = -1;
        }
    for (uint32_t p = 0; p < slot->particles_end; p++) {
        const uint32_t body = slot->particle_body[p];

        if (body == GRANULAR_BODY_NONE)
            continue;
        memcpy(spheres[n], slot->position[particles_first(solver) + p], sizeof(float[3]));
        spheres[n++][3] = (float)body;
    }
    *count = n;
    return true;
}

uint32_t solver_granules_read(struct sand_engine *engine, uint32_t index, struct granule *granules)
{
    const struct slot *slot = asked_slot(engine, index);

    memcpy(granules, slot->mover, slot->granules * sizeof(*granules));
    for (uint32_t g = 0; g < slot->granules; g++)
        granules[g].x[3] = granules[g].w[3] = 0;
    return slot->granules;
}
