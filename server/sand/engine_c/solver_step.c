/*
 * One substep of granular ground, as the OpenGL engine does it, too.
 *
 * Soft spheres: granules (four spheres each) and free bodies (shells of spheres) are rigid; their
 * spheres overlap a little and push. Order of operations, all in float32, without fused
 * multiply-add; everything below is one slot, in its own frame:
 *
 * 1. Spheres. For each granule and body: arm = rotate(q, offset), position = x + arm. The cell is
 *    floor(position / cell) from the box's corner, cut to the grid.
 * 2. Grid. Counting sort of sphere ids by cell; within a cell ids ascend.
 * 3. Forces, gathered by each sphere (no sphere writes to another, so any number of threads gives
 *    the same bits). Partners in this order: bed; walls 0..3; then the 9 runs of three cells along
 *    x, with z-1..z+1 outside, y-1..y+1 inside. Force and torque are summed in this order.
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
 *    A sphere of a sleeper keeps its force and history as they are when nothing in the 27 cells
 *    around it is awake (and nothing was added or removed since the last step).
 * 4. Motion (semi-implicit Euler). F = sum over spheres in order, T too.
 *      v += dt (F / m + g), v *= 1 - 0.5 dt; w: by the angular momentum L = R I R^T w + dt T,
 *      L *= 1 - 2 dt; both cut to speed_max and spin_max; x += dt v; q += dt/2 (w, 0) q, to unit
 *      length; for bodies w = R' I^-1 R'^T L with the new orientation.
 *    Sleep: the time of being slow (|v| < sleep_speed, |w| < sleep_spin) is added up. At 0.25 s,
 *    if also the forces balance (|F + m g| <= 0.1 m |g|, |T| <= 0.1 m |g| r), v = w = 0 and the
 *    sleeper is not moved any more until its forces do not balance.
 *
 * The overlap with the bed is cut at r, so that a force is bounded wherever something is put.
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

enum { PIECE_GRANULES = 64, PIECE_PARTICLES = 256 };

struct step {
    struct solver *solver;
    struct slot *slot;
    const struct granular_params *params;
};

/* ---- spheres and grid ----------------------------------------------------------------------- */

static uint32_t cell_along(float x, float cell_m, uint32_t cells)
{
    float i = floorf(x / cell_m);

    if (!(i > 0)) /* not a number, too */
        return 0;
    return i < (float)(cells - 1) ? (uint32_t)i : cells - 1;
}

/* Into 0..period; as it is without a period. */
static float fold(float x, float period)
{
    return period > 0 ? x - period * floorf(x / period) : x;
}

/* The shortest of the differences that are a period apart. */
static float fold_difference(float d, float period)
{
    return period > 0 ? d - period * rintf(d / period) : d;
}

static void place_sphere(const struct step *step, uint32_t id, const float centre[3],
                         const float q[4], struct f3 offset)
{
    struct slot *slot = step->slot;
    const struct granular_box *box = &slot->box;
    struct f3 arm = f3_rotate(q, offset);
    struct f3 at = f3_add(f3_of(centre), arm);
    uint32_t ix, iy, iz;

    at.x = fold(at.x, slot->period[0]);
    at.y = fold(at.y, slot->period[1]);
    at.z = fold(at.z, slot->period[2]);
    ix = cell_along(at.x, slot->side[0], box->cells[0]);
    iy = cell_along(at.y, slot->side[1], box->cells[1]);
    iz = cell_along(at.z - (slot->period[2] > 0 ? 0 : box->z_low), slot->side[2], box->cells[2]);

    f3_put(slot->arm[id], arm);
    f3_put(slot->position[id], at);
    slot->cell[id] = (iz * box->cells[1] + iy) * box->cells[0] + ix;
}

static void place_granules(void *context, uint32_t first, uint32_t end)
{
    const struct step *step = context;

    for (uint32_t g = first; g < end; g++) {
        const struct granule *granule = &step->slot->granule[g];

        for (uint32_t j = 0; j < step->params->spheres; j++)
            place_sphere(step, GRANULE_SPHERES * g + j, granule->x, granule->q,
                         f3_of(step->solver->tetrahedron[j]));
    }
}

static void place_particles(void *context, uint32_t first, uint32_t end)
{
    const struct step *step = context;
    struct slot *slot = step->slot;

    for (uint32_t p = first; p < end; p++) {
        uint32_t id = particles_first(step->solver) + p;
        uint32_t body = slot->particle_body[p];

        if (body == GRANULAR_BODY_NONE)
            slot->cell[id] = NO_CELL;
        else
            place_sphere(step, id, slot->body[body].x, slot->body[body].q, f3_of(slot->offset[p]));
    }
}

static void count_cell(struct slot *slot, uint32_t id, bool awake)
{
    uint32_t cell = slot->cell[id];

    slot->cell_first[cell + 1]++;
    slot->cell_awake[cell] |= awake;
}

static void scatter(struct slot *slot, uint32_t id)
{
    struct sorted *to = &slot->sorted[slot->cell_first[slot->cell[id]]++];

    memcpy(to->x, slot->position[id], sizeof(to->x));
    to->id = id;
}

/* Counting sort; scatter in the order of ids keeps them ascending within a cell. */
static void sort_spheres(const struct step *step)
{
    struct slot *slot = step->slot;
    const uint32_t cells = slot->box.cells[0] * slot->box.cells[1] * slot->box.cells[2];
    const uint32_t particles = particles_first(step->solver);

    memset(slot->cell_first, 0, (cells + 1) * sizeof(*slot->cell_first));
    memset(slot->cell_awake, 0, cells);
    for (uint32_t g = 0; g < slot->granules; g++) {
        bool awake = !granule_asleep(step->params, &slot->granule[g]);

        for (uint32_t j = 0; j < step->params->spheres; j++)
            count_cell(slot, GRANULE_SPHERES * g + j, awake);
    }
    for (uint32_t p = 0; p < slot->particles_end; p++)
        if (slot->cell[particles + p] != NO_CELL)
            count_cell(slot, particles + p,
                       !body_asleep(step->params, &slot->body[slot->particle_body[p]]));
    for (uint32_t c = 0; c < cells; c++)
        slot->cell_first[c + 1] += slot->cell_first[c];
    for (uint32_t g = 0; g < slot->granules; g++)
        for (uint32_t j = 0; j < step->params->spheres; j++)
            scatter(slot, GRANULE_SPHERES * g + j);
    for (uint32_t p = 0; p < slot->particles_end; p++)
        if (slot->cell[particles + p] != NO_CELL)
            scatter(slot, particles + p);
    /* each first became the first of the next cell */
    memmove(slot->cell_first + 1, slot->cell_first, cells * sizeof(*slot->cell_first));
    slot->cell_first[0] = 0;
}

/* ---- forces --------------------------------------------------------------------------------- */

/* One side of a contact: where its body is going, and whether it sleeps. */
struct side {
    struct f3 v, w;
    struct f3 arm; /* of the sphere's centre */
    float soft;
    bool asleep;
    uint32_t owner; /* granule; bodies follow the granules */
};

/* A sphere that gathers its contacts. */
struct gather {
    const struct step *step;
    uint32_t id;
    struct f3 at;
    struct side self;
    struct f3 force, torque;
    const struct contact *old;
    uint32_t old_count, count;
    struct contact next[GRANULAR_CONTACTS_MAX];
};

static void side_of(const struct step *step, uint32_t id, struct side *side)
{
    const struct slot *slot = step->slot;
    const uint32_t particles = particles_first(step->solver);

    side->arm = f3_of(slot->arm[id]);
    if (id < particles) {
        const struct granule *granule = &slot->granule[id / GRANULE_SPHERES];

        side->v = f3_of(granule->v);
        side->w = f3_of(granule->w);
        side->soft = 1;
        side->asleep = granule_asleep(step->params, granule);
        side->owner = id / GRANULE_SPHERES;
    } else {
        uint32_t index = slot->particle_body[id - particles];
        const struct granular_body *body = &slot->body[index];

        side->v = f3_of(body->v);
        side->w = f3_of(body->w);
        side->soft = body->soft;
        side->asleep = body_asleep(step->params, body);
        side->owner = step->solver->engine.config.granules_max + index;
    }
}

static struct f3 spring_of(const struct gather *gather, uint32_t partner)
{
    for (uint32_t i = 0; i < gather->old_count; i++)
        if (gather->old[i].partner == partner)
            return f3_of(gather->old[i].spring);
    return (struct f3){0, 0, 0};
}

static void touch(struct gather *gather, uint32_t partner, const struct side *other, struct f3 n,
                  float xi)
{
    const struct granular_params *params = gather->step->params;
    const float lever = params->radius_m - 0.5f * xi;
    const struct f3 reach = f3_scale(n, lever);
    const struct f3 arm = f3_sub(gather->self.arm, reach);
    const struct f3 arm_other = f3_add(other->arm, reach);
    const struct f3 u = f3_sub(f3_add(gather->self.v, f3_cross(gather->self.w, arm)),
                               f3_add(other->v, f3_cross(other->w, arm_other)));
    const float soft = gather->self.soft < other->soft ? gather->self.soft : other->soft;
    const float root = sqrtf(xi);
    const float un = f3_dot(u, n);
    const struct f3 ut = f3_sub(u, f3_scale(n, un));
    const float kt = soft * params->tangent_stiffness * params->stiffness * root;
    const float gt = soft * params->tangent_damping * params->damping *
                     fminf(root, sqrtf(GRANULAR_DAMPED_OVERLAP * params->radius_m));
    float fn = soft * (params->stiffness * xi * root - params->damping * root * un);
    struct f3 spring = spring_of(gather, partner);
    struct f3 ft, f;
    float limit, length;

    if (!(fn > 0))
        fn = 0;
    if (!(gather->self.asleep && other->asleep))
        spring = f3_add(f3_sub(spring, f3_scale(n, f3_dot(spring, n))), f3_scale(ut, params->dt_s));
    ft = f3_scale(f3_add(f3_scale(spring, kt), f3_scale(ut, gt)), -1);
    limit = params->friction * fn;
    length = sqrtf(f3_dot(ft, ft));
    if (length > limit) {
        ft = f3_scale(ft, limit / length);
        spring = f3_scale(f3_add(ft, f3_scale(ut, gt)), -1 / kt);
    }
    f = f3_add(f3_scale(n, fn), ft);
    gather->force = f3_add(gather->force, f);
    gather->torque = f3_add(gather->torque, f3_cross(arm, f));
    if (gather->count < GRANULAR_CONTACTS_MAX) {
        f3_put(gather->next[gather->count].spring, spring);
        gather->next[gather->count++].partner = partner;
    }
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

/* The bed and the walls: the stiffness is that of the partner. */
static const struct side still = {.soft = FLT_MAX, .asleep = true};

static void touch_bed_and_walls(struct gather *gather)
{
    const struct slot *slot = gather->step->slot;
    const float r = gather->step->params->radius_m;
    const float side[4] = {gather->at.x, slot->box.size[0] - gather->at.x, gather->at.y,
                           slot->box.size[1] - gather->at.y};
    static const struct f3 inward[4] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}};
    struct f3 n;
    float bed = solver_bed(slot, gather->at.x, gather->at.y, &n);
    float xi = r - (gather->at.z - bed) * n.z;

    if (xi > 0 && !(slot->period[2] > 0))
        touch(gather, GRANULAR_PARTNER_BED, &still, n, fminf(xi, r));
    if (slot->period[0] > 0)
        return;
    for (uint32_t i = 0; i < 4; i++)
        if (r - side[i] > 0)
            touch(gather, GRANULAR_PARTNER_WALL + i, &still, inward[i], fminf(r - side[i], r));
}

static void touch_sphere(struct gather *gather, const struct sorted *other)
{
    const float reach = gather->step->params->cell_m;
    const float *period = gather->step->slot->period;
    struct f3 d = f3_sub(gather->at, f3_of(other->x));
    struct side side;
    float square, distance;

    d.x = fold_difference(d.x, period[0]);
    d.y = fold_difference(d.y, period[1]);
    d.z = fold_difference(d.z, period[2]);
    square = f3_dot(d, d);
    if (!(square < reach * reach) || other->id == gather->id)
        return;
    side_of(gather->step, other->id, &side);
    if (side.owner == gather->self.owner)
        return;
    distance = sqrtf(square);
    if (!(distance > 0)) /* one upon the other: no direction is right, so none is taken */
        return;
    touch(gather, other->id, &side, f3_scale(d, 1 / distance), reach - distance);
}

/* As runs_around where the box repeats: cells one by one, since a row may wrap around. */
static uint32_t runs_repeated(const struct slot *slot, const uint32_t at[3], uint32_t run[27][2])
{
    const uint32_t *cells = slot->box.cells;
    uint32_t count = 0;

    for (uint32_t i = 0; i < 27; i++) {
        const uint32_t step[3] = {i % 3, i / 3 % 3, i / 9};
        uint32_t cell[3];
        bool inside = true;

        for (int a = 0; a < 3; a++) {
            cell[a] = at[a] + step[a] + cells[a] - 1; /* a period more: never negative */
            inside =
                inside && (slot->period[a] > 0 || (cell[a] >= cells[a] && cell[a] < 2 * cells[a]));
            cell[a] %= cells[a];
        }
        if (!inside)
            continue;
        run[count][0] = (cell[2] * cells[1] + cell[1]) * cells[0] + cell[0];
        run[count][1] = run[count][0] + 1;
        count++;
    }
    return count;
}

/* The rows of cells around a cell: first and end of the spheres of each, in the order of step 3. */
static uint32_t runs_around(const struct slot *slot, uint32_t cell, uint32_t run[27][2])
{
    const uint32_t *cells = slot->box.cells;
    const uint32_t x = cell % cells[0], y = cell / cells[0] % cells[1];
    const uint32_t z = cell / cells[0] / cells[1];
    const uint32_t left = x > 0 ? x - 1 : 0, right = x + 1 < cells[0] ? x + 1 : x;
    uint32_t count = 0;

    if (slot->period[0] > 0)
        return runs_repeated(slot, (const uint32_t[3]){x, y, z}, run);

    for (uint32_t k = z > 0 ? z - 1 : 0; k <= z + 1 && k < cells[2]; k++) {
        for (uint32_t j = y > 0 ? y - 1 : 0; j <= y + 1 && j < cells[1]; j++) {
            uint32_t row = (k * cells[1] + j) * cells[0];

            run[count][0] = row + left;
            run[count++][1] = row + right + 1;
        }
    }
    return count;
}

static bool nothing_awake(const struct slot *slot, uint32_t run[27][2], uint32_t runs)
{
    for (uint32_t i = 0; i < runs; i++)
        for (uint32_t c = run[i][0]; c < run[i][1]; c++)
            if (slot->cell_awake[c])
                return false;
    return true;
}

static void sphere_force(const struct step *step, uint32_t id)
{
    struct slot *slot = step->slot;
    struct gather gather;
    uint32_t run[27][2], runs = runs_around(slot, slot->cell[id], run);

    gather.step = step;
    gather.id = id;
    side_of(step, id, &gather.self);
    if (gather.self.asleep && !slot->recheck && nothing_awake(slot, run, runs))
        return;
    gather.at = f3_of(slot->position[id]);
    gather.force = gather.torque = (struct f3){0, 0, 0};
    gather.old = slot->contact[id];
    gather.old_count = slot->contacts[id];
    gather.count = 0;
    touch_bed_and_walls(&gather);
    for (uint32_t i = 0; i < runs; i++) {
        uint32_t end = slot->cell_first[run[i][1]];

        for (uint32_t s = slot->cell_first[run[i][0]]; s < end; s++)
            touch_sphere(&gather, &slot->sorted[s]);
    }
    f3_put(slot->force[id], gather.force);
    f3_put(slot->torque[id], gather.torque);
    memcpy(slot->contact[id], gather.next, gather.count * sizeof(*gather.next));
    slot->contacts[id] = gather.count;
}

static void granule_forces(void *context, uint32_t first, uint32_t end)
{
    const struct step *step = context;

    for (uint32_t g = first; g < end; g++)
        for (uint32_t j = 0; j < step->params->spheres; j++)
            sphere_force(step, GRANULE_SPHERES * g + j);
}

static void particle_forces(void *context, uint32_t first, uint32_t end)
{
    const struct step *step = context;
    const uint32_t particles = particles_first(step->solver);

    for (uint32_t p = first; p < end; p++)
        if (step->slot->cell[particles + p] != NO_CELL)
            sphere_force(step, particles + p);
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

static void move_granule(const struct step *step, uint32_t g)
{
    const struct granular_params *params = step->params;
    struct slot *slot = step->slot;
    struct granule *granule = &slot->granule[g];
    const struct f3 gravity = f3_of(slot->box.gravity);
    struct f3 force = {0, 0, 0}, torque = {0, 0, 0}, v, w;
    bool balance;

    for (uint32_t j = 0; j < params->spheres; j++) {
        force = f3_add(force, f3_of(slot->force[GRANULE_SPHERES * g + j]));
        torque = f3_add(torque, f3_of(slot->torque[GRANULE_SPHERES * g + j]));
    }
    balance = balanced(f3_add(force, f3_scale(gravity, params->mass_kg)), torque, slot->wake_force,
                       slot->wake_force * params->radius_m);
    if (granule_asleep(params, granule)) {
        if (balance)
            return;
        granule->v[3] = 0;
    }
    v = f3_add(f3_of(granule->v),
               f3_scale(f3_add(f3_scale(force, params->mass_inverse), gravity), params->dt_s));
    v = cut_length(f3_scale(v, 1 - params->drag_linear * params->dt_s), params->speed_max);
    w = f3_add(f3_of(granule->w), f3_scale(torque, params->inertia_inverse * params->dt_s));
    w = cut_length(f3_scale(w, 1 - params->drag_angular * params->dt_s), params->spin_max);
    f3_put(granule->x, f3_add(f3_of(granule->x), f3_scale(v, params->dt_s)));
    turn(granule->q, w, params->dt_s);
    if (fall_asleep(params, &granule->v[3],
                    f3_dot(v, v) < params->sleep_speed * params->sleep_speed &&
                        f3_dot(w, w) < params->sleep_spin * params->sleep_spin,
                    balance))
        v = w = (struct f3){0, 0, 0};
    f3_put(granule->v, v);
    f3_put(granule->w, w);
}

static void move_granules(void *context, uint32_t first, uint32_t end)
{
    for (uint32_t g = first; g < end; g++)
        move_granule(context, g);
}

static void move_body(const struct step *step, struct granular_body *body)
{
    const struct granular_params *params = step->params;
    struct slot *slot = step->slot;
    const struct f3 gravity = f3_of(slot->box.gravity);
    const uint32_t id = particles_first(step->solver) + body->particle_first;
    const float reach = body->w[3];
    const float wake = slot->wake_force * params->mass_inverse / body->x[3];
    struct f3 force = {0, 0, 0}, torque = {0, 0, 0}, v, w, momentum;
    bool balance;

    for (uint32_t p = 0; p < body->particle_count; p++) {
        force = f3_add(force, f3_of(slot->force[id + p]));
        torque = f3_add(torque, f3_of(slot->torque[id + p]));
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
    f3_put(body->x, f3_add(f3_of(body->x), f3_scale(v, params->dt_s)));
    if (fall_asleep(params, &body->v[3],
                    f3_dot(v, v) < params->sleep_speed * params->sleep_speed &&
                        f3_dot(w, w) * reach * reach < params->sleep_speed * params->sleep_speed,
                    balance))
        v = w = (struct f3){0, 0, 0};
    f3_put(body->v, v);
    f3_put(body->w, w);
}

/* A sum is finite only when each number is; a finite state is far from overflow. */
static bool finite4(const float a[4])
{
    return isfinite(a[0] + a[1] + a[2] + a[3]);
}

static bool slot_finite(const struct slot *slot)
{
    for (uint32_t g = 0; g < slot->granules; g++) {
        const struct granule *granule = &slot->granule[g];

        if (!finite4(granule->x) || !finite4(granule->q) || !finite4(granule->v) ||
            !finite4(granule->w))
            return false;
    }
    for (uint32_t b = 0; b < slot->bodies_end; b++) {
        const struct granular_body *body = &slot->body[b];

        if (body->particle_count > 0 &&
            (!finite4(body->x) || !finite4(body->q) || !finite4(body->v) || !finite4(body->w)))
            return false;
    }
    return true;
}

/* ---- one substep ----------------------------------------------------------------------------- */

static bool slot_awake(const struct step *step)
{
    const struct slot *slot = step->slot;

    for (uint32_t g = 0; g < slot->granules; g++)
        if (!granule_asleep(step->params, &slot->granule[g]))
            return true;
    for (uint32_t b = 0; b < slot->bodies_end; b++)
        if (slot->body[b].particle_count > 0 && !body_asleep(step->params, &slot->body[b]))
            return true;
    return slot->recheck;
}

void solver_step_slot(struct solver *solver, struct slot *slot)
{
    struct step step = {solver, slot, &solver->engine.config.params};
    double start = 1e3 * monotonic_s(), placed, gridded, forced;

    slot->steps++;
    if (!slot_awake(&step))
        return;
    workers_run(solver->workers, slot->granules, 8 * PIECE_GRANULES, place_granules, &step);
    workers_run(solver->workers, slot->particles_end, 8 * PIECE_PARTICLES, place_particles, &step);
    placed = 1e3 * monotonic_s();
    sort_spheres(&step);
    gridded = 1e3 * monotonic_s();
    workers_run(solver->workers, slot->granules, PIECE_GRANULES, granule_forces, &step);
    workers_run(solver->workers, slot->particles_end, PIECE_PARTICLES, particle_forces, &step);
    slot->recheck = false;
    forced = 1e3 * monotonic_s();
    workers_run(solver->workers, slot->granules, 8 * PIECE_GRANULES, move_granules, &step);
    for (uint32_t b = 0; b < slot->bodies_end; b++)
        if (slot->body[b].particle_count > 0)
            move_body(&step, &slot->body[b]);
    slot->failed = !slot_finite(slot);
    solver->phase_ms[SAND_PHASE_INTEGRATE] +=
        (float)(placed - start + 1e3 * monotonic_s() - forced);
    solver->phase_ms[SAND_PHASE_GRID] += (float)(gridded - placed);
    solver->phase_ms[SAND_PHASE_FORCE] += (float)(forced - gridded);
}
