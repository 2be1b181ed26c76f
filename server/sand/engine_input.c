/*
 * Input of an engine: pools, boxes and bodies are checked and prepared here, once for both
 * engines, so that both engines accept the same input, with the same bits.
 *
 * The inertia of a body is inverted by cofactors in float64: shells of thin models have moments
 * that differ a thousandfold, and float32 would lose the small one.
 */
#include "sand/engine_input.h"

#include <math.h>
#include <string.h>

#include "base/check.h"

enum err_code engine_config_check(const struct sand_engine_config *config, struct err *err)
{
    const struct {
        const char *name;
        uint32_t value, most;
    } fields[] = {
        {"slots", config->slots, SAND_SLOTS_MAX},
        {"granules_max", config->granules_max, 1u << 24},
        {"bodies_max", config->bodies_max, SAND_BODIES_MAX},
        {"particles_max", config->particles_max, 1u << 24},
        {"cells_max", config->cells_max, 1u << 28},
        {"bed_max", config->bed_max, 1u << 24},
        {"depth_max", config->depth_max, 1u << 28},
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].value < 1 || fields[i].value > fields[i].most)
            return err_limit(err, ERR_BAD_INPUT, fields[i].most, fields[i].value,
                             "%s of the pool is %u; it must be 1 to %u", fields[i].name,
                             fields[i].value, fields[i].most);
    return ERR_OK;
}

void engine_tetrahedron(const struct granular_params *params, float offsets_m[GRANULE_SPHERES][3])
{
    const float s = params->spheres == 1 ? 0 : (float)(params->radius_m / sqrt(2));

    for (int j = 0; j < GRANULE_SPHERES; j++)
        for (int i = 0; i < 3; i++)
            offsets_m[j][i] = GRANULE_CORNER[j][i] * s;
}

enum err_code engine_box_make(const struct sand_engine_config *config,
                              const struct sand_slot_begin *begin, struct granular_box *box,
                              struct err *err)
{
    const float cell = config->params.cell_m;
    const double nx = ceil(begin->size_m[0] / cell), ny = ceil(begin->size_m[1] / cell);
    double nz = ceil(begin->height_m / cell) + 1;
    const double samples = (double)begin->bed.cols * begin->bed.rows;

    CHECK(begin->bed.cols >= 2 && begin->bed.rows >= 2);
    CHECK(begin->bed.dx > 0 && begin->bed.dy > 0);
    if (samples > config->bed_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->bed_max, samples,
                         "a bed of %u by %u samples; the pool has room for %u", begin->bed.cols,
                         begin->bed.rows, config->bed_max);
    if (!(nx >= 1 && ny >= 1 && nx * ny <= config->cells_max))
        return err_limit(err, ERR_UNPROCESSABLE, config->cells_max, nx * ny,
                         "a patch of %g by %g m has %g cells in a layer; the pool has room for %u",
                         begin->size_m[0], begin->size_m[1], nx * ny, config->cells_max);
    nz = fmax(fmin(nz, floor(config->cells_max / (nx * ny))), 1);
    memcpy(box->size, begin->size_m, sizeof(box->size));
    memcpy(box->gravity, begin->gravity, sizeof(box->gravity));
    box->z_low = begin->heights_m[0];
    for (uint32_t i = 0; i < begin->bed.cols * begin->bed.rows; i++)
        box->z_low = fminf(box->z_low, begin->heights_m[i]);
    box->cells[0] = (uint32_t)nx;
    box->cells[1] = (uint32_t)ny;
    box->cells[2] = (uint32_t)nz;
    return ERR_OK;
}

const struct granular_params *engine_params_of(const struct sand_engine_config *config,
                                               const struct sand_slot_begin *begin)
{
    const struct granular_params *own = begin->params, *pool = &config->params;

    struct granular_params same;

    if (!own)
        return pool;
    same = *own; /* but for the material */
    same.friction = pool->friction;
    same.stiffness = pool->stiffness;
    same.damping = pool->damping;
    same.density = pool->density;
    same.mass_kg = pool->mass_kg;
    same.mass_inverse = pool->mass_inverse;
    same.inertia = pool->inertia;
    same.inertia_inverse = pool->inertia_inverse;
    CHECK(memcmp(&same, pool, sizeof(same)) == 0);
    return own;
}

float engine_wake_force(const struct granular_params *params, const float gravity[3])
{
    const float square =
        gravity[0] * gravity[0] + gravity[1] * gravity[1] + gravity[2] * gravity[2];

    return params->wake_fraction * params->mass_kg * fmaxf(sqrtf(square), 0.1f);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static bool all_finite(const float *a, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite(a[i]))
            return false;
    return true;
}

/* The inverse by cofactors. False when the matrix is not positive definite. */
static bool inertia_set(struct granular_body *body, const float inertia[3][3])
{
    double m[3][3], cofactor[3][3], det = 0;

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            m[i][j] = 0.5 * ((double)inertia[i][j] + inertia[j][i]);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;

            cofactor[i][j] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
        }
    }
    for (int j = 0; j < 3; j++)
        det += m[0][j] * cofactor[0][j];
    if (!(m[0][0] > 0 && cofactor[2][2] > 0 && det > 0))
        return false;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            body->inertia[i][j] = (float)m[i][j];
            body->inertia_inverse[i][j] = (float)(cofactor[j][i] / det);
        }
    }
    return all_finite(body->inertia_inverse[0], 12);
}

static double length_of(const float v[3])
{
    return sqrt((double)v[0] * v[0] + (double)v[1] * v[1] + (double)v[2] * v[2]);
}

void engine_velocity_cut(float out[3], const float in[3], float most)
{
    const double length = length_of(in), scale = length > most ? most / length : 1;

    for (int i = 0; i < 3; i++)
        out[i] = (float)(in[i] * scale);
}

static enum err_code pose_check(const struct granular_params *params,
                                const struct sand_shape *shape, const struct sand_pose *pose,
                                double *q_length, struct err *err)
{
    const float soft = granular_soft(params, shape->mass_kg, shape->particles);
    double square = 0;

    if (!all_finite(pose->x, 3) || !all_finite(pose->q, 4) || !all_finite(pose->v, 3) ||
        !all_finite(pose->w, 3))
        return err_set(err, ERR_BAD_INPUT, "a pose or velocity of the body is not finite");
    for (int i = 0; i < 4; i++)
        square += (double)pose->q[i] * pose->q[i];
    if (!(square > 1e-12))
        return err_set(err, ERR_BAD_INPUT, "the orientation of the body has no length");
    if (!(shape->mass_kg > 0 && isfinite(shape->mass_kg) && isfinite(1 / shape->mass_kg) &&
          soft > 0 && isfinite(soft)))
        return err_set(err, ERR_BAD_INPUT, "the mass of the body is %g kg; it must be above 0",
                       shape->mass_kg);
    *q_length = sqrt(square);
    return ERR_OK;
}

enum err_code engine_body_make(const struct granular_params *params, const struct sand_shape *shape,
                               const struct sand_pose *pose, struct granular_body *body,
                               struct err *err)
{
    double reach = 0, q_length = 1;
    struct sand_pose first;

    CHECK(shape->particles >= 1);
    memset(body, 0, sizeof(*body));
    if (shape->path) {
        sand_path_at(shape->path, 0, (double)params->dt_s, &first);
        pose = &first;
    } else if (pose_check(params, shape, pose, &q_length, err)) {
        return err->code;
    } else if (!inertia_set(body, shape->inertia))
        return err_set(err, ERR_BAD_INPUT, "the inertia of the body is not positive definite");
    for (uint32_t p = 0; p < shape->particles; p++) {
        if (!all_finite(shape->offsets_m[p], 3))
            return err_set(err, ERR_BAD_INPUT, "particle %u of the body is not finite", p);
        reach = fmax(reach, length_of(shape->offsets_m[p]));
    }
    memcpy(body->x, pose->x, sizeof(pose->x));
    body->x[3] = shape->path ? 0 : 1 / shape->mass_kg;
    for (int i = 0; i < 4; i++)
        body->q[i] = (float)(pose->q[i] / q_length);
    body->w[3] = (float)reach + params->radius_m;
    body->particle_count = shape->particles;
    body->soft =
        shape->path ? GRANULAR_SOFT_PATH : granular_soft(params, shape->mass_kg, shape->particles);
    engine_velocity_cut(body->v, pose->v, params->speed_max);
    engine_velocity_cut(body->w, pose->w, params->speed_max / body->w[3]);
    return ERR_OK;
}

static void forces_get(const struct granular_body *body, struct sand_forces *out)
{
    for (int i = 0; i < 3; i++) {
        out->force_n[i] = (double)body->force.sum[i] - (double)body->force.rest[i];
        out->torque_nm[i] = (double)body->torque.sum[i] - (double)body->torque.rest[i];
    }
    out->substeps = body->summed;
}

void engine_status_body(const struct granular_body *body, uint32_t b, struct sand_status *status)
{
    struct sand_pose *pose = &status->pose[b];
    const float speed = (float)length_of(body->v);
    const float rim = (float)length_of(body->w) * body->w[3];

    status->bodies++;
    status->body_alive |= (uint64_t)1 << b;
    status->body_speed_max = fmaxf(status->body_speed_max, fmaxf(speed, rim));
    memcpy(pose->x, body->x, sizeof(pose->x));
    memcpy(pose->q, body->q, sizeof(pose->q));
    memcpy(pose->v, body->v, sizeof(pose->v));
    memcpy(pose->w, body->w, sizeof(pose->w));
    forces_get(body, &status->forces[b]);
}

/* particles_max when there is no such row. */
static uint32_t particles_find(const uint32_t *body, uint32_t particles_end, uint32_t particles_max,
                               uint32_t count)
{
    uint32_t run = 0;

    for (uint32_t p = 0; p < particles_end; p++) {
        run = body[p] == GRANULAR_BODY_NONE ? run + 1 : 0;
        if (run == count)
            return p + 1 - count;
    }
    return particles_max - particles_end + run >= count ? particles_end - run : particles_max;
}

enum err_code engine_body_room(const struct sand_engine_config *config,
                               const struct granular_body *body, uint32_t bodies_end,
                               const uint32_t *particle_body, uint32_t particles_end,
                               uint32_t particles, uint32_t *b, uint32_t *first, struct err *err)
{
    for (*b = 0; *b < bodies_end && body[*b].particle_count > 0; ++*b)
        continue;
    if (*b == config->bodies_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->bodies_max, config->bodies_max + 1,
                         "a patch has room for %u bodies", config->bodies_max);
    *first = particles_find(particle_body, particles_end, config->particles_max, particles);
    if (*first == config->particles_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->particles_max, particles,
                         "a shell of %u particles; a patch has room for %u of all its bodies",
                         particles, config->particles_max);
    return ERR_OK;
}

enum err_code engine_depth_check(const struct sand_engine_config *config,
                                 const struct sand_depth *depth, struct err *err)
{
    const double points = (double)depth->cols * depth->rows * depth->oversample * depth->oversample;

    CHECK(depth->cols >= 1 && depth->rows >= 1 && depth->oversample >= 1);
    CHECK(depth->dx > 0 && depth->dy > 0);
    if (points > config->depth_max)
        return err_limit(err, ERR_UNPROCESSABLE, config->depth_max, points,
                         "a depth of %g points; the pool has room for %u", points,
                         config->depth_max);
    return ERR_OK;
}

struct engine_points engine_points_along(float start, float d, uint32_t texels, uint32_t oversample)
{
    struct engine_points points;

    points.step = d / (float)oversample;
    points.first = start - 0.5f * d + 0.5f * points.step;
    points.count = texels * oversample;
    return points;
}
