/*
 * One substep of granular ground, as the OpenGL engine does it, too.
 *
 * Soft spheres: granules (four spheres each) and free bodies (shells of spheres) are rigid; their
 * spheres overlap a little and push. Order of operations, all in float32, without fused
 * multiply-add; everything below is one slot, in its own frame:
 *
 * 1. Lists. What has moved far enough since its list gets a new one, and its partners
 *    (neighbours.c): pairs of spheres that may touch, bed and walls among them.
 * 2. Forces, gathered by each granule and each particle of a body from its list (solver_forces.c).
 *    No cluster writes to another, so any number of threads gives the same bits. What is asleep
 *    gathers only when something awake is in its list; else it keeps its force and history as they
 *    are. Force and torque are summed by lanes: pair i of the list to lane i modulo 8.
 *    A contact has the unit normal n from the partner to this sphere, overlap xi, and the velocity
 *    u = v_self + w_self x arm_self - (v_partner + w_partner x arm_partner) at the contact point
 *    arm_self = arm - n (r - xi/2), arm_partner = arm' + n (r - xi/2). Then
 *      fn = max(0, soft (k_n xi sqrt(xi) - gamma_n sqrt(xi) (u.n)))
 *      ut = u - (u.n) n
 *      s  = s - (s.n) n + dt ut        s: the spring of this contact, 0 when it is new;
 *                                      left as it is when both partners sleep
 *      ft = -k_t s - g_t ut            k_t = soft 1.2 k_n sqrt(xi),
 *                                      g_t = soft 0.8 gamma_n sqrt(min(xi, 0.02 r))
 *      if |ft| > mu fn: ft = ft mu fn / |ft|, s = -(ft + g_t ut) / k_t
 *      F += fn n + ft, T += arm_self x (fn n + ft)
 *    Everything is odd under exchange of the partners, so that both sides of a contact find
 *    exactly opposite forces without having to share one.
 *    soft is the smaller of the partners' (granular_soft); 1 between granules.
 * 3. Motion (semi-implicit Euler). F of a body = sum over its particles in order, T too. For each
 *    sphere of what moved: arm = rotate(q, offset), position = x + arm.
 *      v += dt (F / m + g), v *= 1 - 0.5 dt; w: by the angular momentum L = R I R^T w + dt T,
 *      L *= 1 - 2 dt; both cut to speed_max and spin_max; x += dt v; q += dt/2 (w, 0) q, to unit
 *      length; for bodies w = R' I^-1 R'^T L with the new orientation.
 *    Sleep: the time of being slow (|v| < sleep_speed, |w| < sleep_spin) is added up. At 0.25 s,
 *    if also the forces balance (|F + m g| <= 0.1 m |g|, |T| <= 0.1 m |g| r), v = w = 0 and the
 *    sleeper is not moved any more until its forces do not balance.
 *
 * The overlap with the bed is cut at r, so that a force is bounded wherever something is put.
 * Cost is that of what is awake and of what it touches: sets of clusters are bits, of which the
 * others cost a word in 32.
 * Invariant: a sleeper has v = w = 0 exactly and its pose does not change in a bit.
 *
 * Sources: P. A. Cundall, O. D. L. Strack, "A discrete numerical model for granular assemblies",
 * 1979; N. Bell, Y. Yu, P. J. Mucha 2005; C. Leach 2014, chapter 4. Tried and dropped: his
 * tangential force without history, with which a heap creeps for ever.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "sand/engine_input.h"
#include "sand/engine_c/solver_data.h"
#include "sand/engine_c/solver_lanes.h"

enum { PIECE_PARTICLES = 256 };

/* ---- spheres -------------------------------------------------------------------------------- */

/* Into 0..period; as it is without a period. */
static float fold(float x, float period)
{
    return period > 0 ? x - period * floorf(x / period) : x;
}

static void position_put(struct slot *slot, uint32_t sphere, uint32_t mover, struct f3 at)
{
    f3_put(slot->position[sphere], at);
    memcpy(&slot->position[sphere][3], &mover, sizeof(mover));
}

void solver_place_granule(const struct solver *solver, struct slot *slot, uint32_t g)
{
    struct granule *granule = &slot->mover[g];

    for (int a = 0; a < 3; a++)
        granule->x[a] = fold(granule->x[a], slot->period[a]);
    for (uint32_t j = 0; j < solver->engine.config.params.spheres; j++)
        position_put(
            slot, GRANULE_SPHERES * g + j, g,
            f3_add(f3_of(granule->x), f3_rotate(granule->q, f3_of(solver->tetrahedron[j]))));
}

void solver_place_particles(const struct solver *solver, struct slot *slot, uint32_t first,
                            uint32_t end)
{
    for (uint32_t p = first; p < end; p++) {
        const uint32_t b = slot->particle_body[p];
        const struct granular_body *body;

        if (b == GRANULAR_BODY_NONE)
            continue;
        body = &slot->body[b];
        if (!body_asleep(&slot->params, body))
            position_put(slot, particles_first(solver) + p, body_mover(solver, b),
                         f3_add(f3_of(body->x), f3_rotate(body->q, f3_of(slot->offset[p]))));
    }
}

static void place_particles(void *context, uint32_t first, uint32_t end)
{
    const struct step *step = context;

    solver_place_particles(step->solver, step->slot, first, end);
}

/* ---- forces --------------------------------------------------------------------------------- */

static void awake_forces(void *context, uint32_t first, uint32_t end)
{
    const struct step *step = context;

    for (uint32_t w = first; w < end; w++)
        for (uint32_t bits = step->slot->awake[w]; bits; bits &= bits - 1)
            step->solver->lanes->forces(step, w * WORD_BITS + (uint32_t)__builtin_ctz(bits));
}

static void border_forces(void *context, uint32_t first, uint32_t end)
{
    const struct step *step = context;

    for (uint32_t w = first; w < end; w++)
        for (uint32_t bits = step->slot->border[w] & ~step->slot->awake[w]; bits; bits &= bits - 1)
            step->solver->lanes->forces(step, w * WORD_BITS + (uint32_t)__builtin_ctz(bits));
}

float solver_bed(const struct slot *slot, float x, float y, struct f3 *normal)
{
    const struct granular_bed *bed = &slot->bed;
    const float fx = fminf(fmaxf((x - bed->x0) / bed->dx, 0), (float)(bed->cols - 1));
    const float fy = fminf(fmaxf((y - bed->y0) / bed->dy, 0), (float)(bed->rows - 1));
    const uint32_t c = fx < (float)(bed->cols - 2) ? (uint32_t)fx : bed->cols - 2;
    const uint32_t r = fy < (float)(bed->rows - 2) ? (uint32_t)fy : bed->rows - 2;
    const float *south = &slot->bed_m[r * bed->cols + c];
    const float *north = south + bed->cols;
    const float s = fx - (float)c, t = fy - (float)r;
    const float low = south[0] + s * (south[1] - south[0]);
    const float high = north[0] + s * (north[1] - north[0]);
    const float slope_x = ((1 - t) * (south[1] - south[0]) + t * (north[1] - north[0])) / bed->dx;
    const float slope_y = (high - low) / bed->dy;
    const float scale = 1 / sqrtf(1 + slope_x * slope_x + slope_y * slope_y);

    *normal = (struct f3){-slope_x * scale, -slope_y * scale, scale};
    return low + t * (high - low);
}

/* ---- motion --------------------------------------------------------------------------------- */

static struct f3 cut_length(struct f3 v, float most)
{
    float square = f3_dot(v, v);

    return square > most * most ? f3_scale(v, most / sqrtf(square)) : v;
}

static void turn(float q[4], struct f3 w, float dt)
{
    const float h = 0.5f * dt;
    const float x = q[0] + h * (w.x * q[3] + w.y * q[2] - w.z * q[1]);
    const float y = q[1] + h * (w.y * q[3] + w.z * q[0] - w.x * q[2]);
    const float z = q[2] + h * (w.z * q[3] + w.x * q[1] - w.y * q[0]);
    const float s = q[3] - h * (w.x * q[0] + w.y * q[1] + w.z * q[2]);
    const float scale = 1 / sqrtf(x * x + y * y + z * z + s * s);

    q[0] = x * scale;
    q[1] = y * scale;
    q[2] = z * scale;
    q[3] = s * scale;
}

/* Forces, weight included, are as good as zero. */
static bool balanced(struct f3 force, struct f3 torque, float force_most, float torque_most)
{
    return f3_dot(force, force) <= force_most * force_most &&
           f3_dot(torque, torque) <= torque_most * torque_most;
}

/*
 * The time of being slow after this step, slow[0] before it. True when the sleep begins now.
 */
static bool fall_asleep(const struct granular_params *params, float *slow_s, bool slow,
                        bool balance)
{
    if (!slow) {
        *slow_s = 0;
        return false;
    }
    if (*slow_s + params->dt_s < params->sleep_after_s) {
        *slow_s += params->dt_s;
        return false;
    }
    if (!balance) /* in a moment of balance, then */
        return false;
    *slow_s = params->sleep_after_s;
    return true;
}

/* A sum is finite only when each number is; a finite state is far from overflow. */
static bool finite4(const float a[4])
{
    return isfinite(a[0] + a[1] + a[2] + a[3]);
}

/* Adds to the way of a mover since its list how far any of its spheres has moved at most. */
static void add_way(const struct step *step, struct granule *mover, struct f3 v, struct f3 w,
                    float reach)
{
    mover->w[3] += step->params->dt_s * (sqrtf(f3_dot(v, v)) + reach * sqrtf(f3_dot(w, w)));
}

static void move_granule(struct step *step, uint32_t g)
{
    const struct granular_params *params = step->params;
    struct slot *slot = step->slot;
    struct granule *granule = &slot->mover[g];
    const struct f3 gravity = f3_of(slot->box.gravity);
    const struct f3 force = f3_of(slot->load[g].force), torque = f3_of(slot->load[g].torque);
    const bool balance = balanced(f3_add(force, f3_scale(gravity, params->mass_kg)), torque,
                                  slot->wake_force, slot->wake_force * params->radius_m);
    struct f3 v, w;

    if (mover_asleep(params, granule)) {
        if (balance)
            return;
        granule->v[3] = 0;
    }
    v = f3_add(f3_of(granule->v),
               f3_scale(f3_add(f3_scale(force, params->mass_inverse), gravity), params->dt_s));
    v = cut_length(f3_scale(v, 1 - (params->drag_linear + slot->calm) * params->dt_s),
                   params->speed_max);
    w = f3_add(f3_of(granule->w), f3_scale(torque, params->inertia_inverse * params->dt_s));
    w = cut_length(f3_scale(w, 1 - (params->drag_angular + slot->calm) * params->dt_s),
                   params->spin_max);
    f3_put(granule->x, f3_add(f3_of(granule->x), f3_scale(v, params->dt_s)));
    turn(granule->q, w, params->dt_s);
    add_way(step, granule, v, w, step->solver->reach_m);
    solver_place_granule(step->solver, slot, g);
    if (fall_asleep(params, &granule->v[3],
                    f3_dot(v, v) < params->sleep_speed * params->sleep_speed &&
                        f3_dot(w, w) < params->sleep_spin * params->sleep_spin,
                    balance))
        v = w = (struct f3){0, 0, 0};
    f3_put(granule->v, v);
    f3_put(granule->w, w);
    if (!finite4(granule->x) || !finite4(granule->q) || !finite4(granule->v) ||
        !finite4(granule->w))
        atomic_store_explicit(&step->failed, true, memory_order_relaxed);
}

/* Words of granules. */
static void move_granules(void *context, uint32_t first, uint32_t end)
{
    struct step *step = context;
    struct slot *slot = step->slot;

    for (uint32_t w = first; w < end; w++)
        for (uint32_t bits = slot->awake[w] | slot->border[w]; bits; bits &= bits - 1) {
            const uint32_t g = w * WORD_BITS + (uint32_t)__builtin_ctz(bits);

            move_granule(step, g);
            bit_set(slot->awake, g, !mover_asleep(step->params, &slot->mover[g]));
            if (mover_hot(step->solver, &slot->mover[g]))
                bit_set(slot->hot, g, true);
        }
}

static void sum_add(struct granular_sum *sum, struct f3 more)
{
    const float term[3] = {more.x, more.y, more.z};

    for (int i = 0; i < 3; i++) {
        const float y = term[i] - sum->rest[i], t = sum->sum[i] + y;

        sum->rest[i] = (t - sum->sum[i]) - y;
        sum->sum[i] = t;
    }
}

/* Adds what granules do to the body in this substep. */
static void add_forces(const struct slot *slot, struct granular_body *body)
{
    const struct load *load = &slot->by_granules[body->particle_first];
    struct f3 force = {0, 0, 0}, torque = {0, 0, 0};

    for (uint32_t p = 0; p < body->particle_count; p++) {
        force = f3_add(force, f3_of(load[p].force));
        torque = f3_add(torque, f3_of(load[p].torque));
    }
    sum_add(&body->force, force);
    sum_add(&body->torque, torque);
    body->summed++;
}

/* A body on its path; it sleeps when it has been at the end for a step. */
static void follow_path(struct step *step, uint32_t b)
{
    struct slot *slot = step->slot;
    struct granular_body *body = &slot->body[b];
    const double dt_s = (double)step->params->dt_s;
    const double t_s = (double)(slot->steps - slot->came_in[b]) * dt_s;
    struct sand_pose pose;

    if (body_asleep(step->params, body))
        return;
    sand_path_at(slot->path[b], t_s, dt_s, &pose);
    memcpy(body->x, pose.x, sizeof(pose.x));
    memcpy(body->q, pose.q, sizeof(pose.q));
    memcpy(body->v, pose.v, sizeof(pose.v));
    memcpy(body->w, pose.w, sizeof(pose.w));
    if (t_s - dt_s >= sand_path_end_s(slot->path[b]))
        body->v[3] = step->params->sleep_after_s;
    add_way(step, &slot->mover[body_mover(step->solver, b)], f3_of(pose.v), f3_of(pose.w),
            body->w[3]);
}

static void move_body(struct step *step, uint32_t b)
{
    const struct granular_params *params = step->params;
    struct slot *slot = step->slot;
    struct granular_body *body = &slot->body[b];
    const struct f3 gravity = f3_of(slot->box.gravity);
    const struct load *load = &slot->load[step->solver->particle_clusters + body->particle_first];
    const float reach = body->w[3];
    const float wake = slot->wake_force * params->mass_inverse / body->x[3];
    struct f3 force = {0, 0, 0}, torque = {0, 0, 0}, v, w, momentum;
    bool balance;

    for (uint32_t p = 0; p < body->particle_count; p++) {
        force = f3_add(force, f3_of(load[p].force));
        torque = f3_add(torque, f3_of(load[p].torque));
    }
    balance = balanced(f3_add(force, f3_scale(gravity, 1 / body->x[3])), torque, wake,
                       wake * 0.45f * reach);
    if (body_asleep(params, body)) {
        if (balance)
            return;
        body->v[3] = 0;
    }
    v = f3_add(f3_of(body->v),
               f3_scale(f3_add(f3_scale(force, body->x[3]), gravity), params->dt_s));
    v = cut_length(f3_scale(v, 1 - params->drag_linear * params->dt_s), params->speed_max);
    momentum = f3_rotate(body->q, f3_apply(body->inertia, f3_rotate_back(body->q, f3_of(body->w))));
    momentum = f3_scale(f3_add(momentum, f3_scale(torque, params->dt_s)),
                        1 - params->drag_angular * params->dt_s);
    w = f3_rotate(body->q, f3_apply(body->inertia_inverse, f3_rotate_back(body->q, momentum)));
    turn(body->q, cut_length(w, params->speed_max / reach), params->dt_s);
    w = f3_rotate(body->q, f3_apply(body->inertia_inverse, f3_rotate_back(body->q, momentum)));
    w = cut_length(w, params->speed_max / reach);
    add_way(step, &slot->mover[body_mover(step->solver, b)], v, w, reach);
    f3_put(body->x, f3_add(f3_of(body->x), f3_scale(v, params->dt_s)));
    if (fall_asleep(params, &body->v[3],
                    f3_dot(v, v) < params->sleep_speed * params->sleep_speed &&
                        f3_dot(w, w) * reach * reach < params->sleep_speed * params->sleep_speed,
                    balance))
        v = w = (struct f3){0, 0, 0};
    f3_put(body->v, v);
    f3_put(body->w, w);
    if (!finite4(body->x) || !finite4(body->q) || !finite4(body->v) || !finite4(body->w))
        atomic_store_explicit(&step->failed, true, memory_order_relaxed);
}

/* ---- one substep ----------------------------------------------------------------------------- */

/* Bodies as movers; their particles are awake as they are. */
static void bodies_copy(const struct solver *solver, struct slot *slot)
{
    for (uint32_t b = 0; b < slot->bodies_end; b++) {
        const struct granular_body *body = &slot->body[b];
        const bool is_awake = !body_asleep(&slot->params, body);
        struct granule *mover = &slot->mover[body_mover(solver, b)];

        if (body->particle_count == 0)
            continue;
        memcpy(mover->x, body->x, sizeof(float[3]));
        memcpy(mover->q, body->q, sizeof(mover->q));
        memcpy(mover->v, body->v, sizeof(mover->v));
        memcpy(mover->w, body->w, sizeof(float[3]));
        if (bit_of(slot->awake, solver->particle_clusters + body->particle_first) == is_awake)
            continue;
        for (uint32_t p = 0; p < body->particle_count; p++)
            bit_set(slot->awake, solver->particle_clusters + body->particle_first + p, is_awake);
    }
}

/* Something awake is beside one of its particles, or it is awake itself. */
static bool body_concerned(const struct solver *solver, const struct slot *slot,
                           const struct granular_body *body)
{
    const uint32_t first = solver->particle_clusters + body->particle_first;

    if (!body_asleep(&slot->params, body))
        return true;
    for (uint32_t p = 0; p < body->particle_count; p++)
        if (slot->border[(first + p) / WORD_BITS] >> (first + p) % WORD_BITS & 1)
            return true;
    return false;
}

static bool any_bit(const uint32_t *bits, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        if (bits[w])
            return true;
    return false;
}

static void step_moves(struct step *step)
{
    struct solver *solver = step->solver;
    struct slot *slot = step->slot;

    workers_run(solver->workers, solver->particle_clusters / WORD_BITS, 1, move_granules, step);
    for (uint32_t b = 0; b < slot->bodies_end; b++) {
        struct granular_body *body = &slot->body[b];
        const uint32_t first = solver->particle_clusters + body->particle_first;

        if (body->particle_count == 0 || !body_concerned(solver, slot, body))
            continue;
        add_forces(slot, body);
        if (slot->path[b])
            follow_path(step, b);
        else
            move_body(step, b);
        for (uint32_t p = 0;
             mover_hot(solver, &slot->mover[body_mover(solver, b)]) && p < body->particle_count;
             p++)
            bit_set(slot->hot, first + p, true);
    }
    workers_run(solver->workers, slot->particles_end, PIECE_PARTICLES, place_particles, step);
}

void solver_step_slot(struct solver *solver, struct slot *slot)
{
    struct step step = {.solver = solver, .slot = slot, .params = &slot->params};
    const uint32_t words = words_of(solver, slot);
    double start = 1e3 * monotonic_s(), listed, forced;

    slot->steps++;
    bodies_copy(solver, slot);
    if (!slot->recheck && !any_bit(slot->awake, words))
        return;
    memset(slot->border, 0, words * sizeof(*slot->border));
    if (slot->recheck || any_bit(slot->hot, words))
        solver_lists_make(&step);
    slot->recheck = false;
    listed = 1e3 * monotonic_s();
    workers_run(solver->workers, words, 1, awake_forces, &step);
    workers_run(solver->workers, words, 1, border_forces, &step);
    forced = 1e3 * monotonic_s();
    step_moves(&step);
    slot->failed = atomic_load(&step.failed);
    solver->phase_ms[SAND_PHASE_INTEGRATE] += (float)(1e3 * monotonic_s() - forced);
    solver->phase_ms[SAND_PHASE_GRID] += (float)(listed - start);
    solver->phase_ms[SAND_PHASE_FORCE] += (float)(forced - listed);
}
