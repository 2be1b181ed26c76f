/*
 * Forces of the contacts of one cluster, eight pairs of its list at a time. Compiled once per
 * instruction set (solver_lanes.h).
 *
 * All pairs of the list are computed, and those that do not touch are masked: about six in ten
 * touch, and sorting them out would cost what it saves. A pair reads its rows of four floats from
 * the partner's sphere and mover, which are turned into columns.
 *
 * Bed and walls are spheres of the ground, which rests and is as stiff as its partner: each time
 * one is put where it overlaps as the surface does, so that the contact law exists once.
 */
#include "sand/engine_c/solver_lanes.h"

#include "sand/engine_c/solver_data.h"
#include "terrain/kernels/lanes.h"

/* Rows of x, y, z and a fourth, as columns. */
struct rows8 {
    f32x8 x, y, z, last;
};

LANES_INLINE struct rows8 rows8(const float *const at[8])
{
    f32x4 low[4], high[4];

    f32x4_transpose(f32x4_load(at[0]), f32x4_load(at[1]), f32x4_load(at[2]), f32x4_load(at[3]),
                    low);
    f32x4_transpose(f32x4_load(at[4]), f32x4_load(at[5]), f32x4_load(at[6]), f32x4_load(at[7]),
                    high);
    return (struct rows8){f32x8_halves(low[0], high[0]), f32x8_halves(low[1], high[1]),
                          f32x8_halves(low[2], high[2]), f32x8_halves(low[3], high[3])};
}

struct v8 {
    f32x8 x, y, z;
};

LANES_INLINE struct v8 v8_all(const float a[3])
{
    return (struct v8){f32x8_all(a[0]), f32x8_all(a[1]), f32x8_all(a[2])};
}

LANES_INLINE struct v8 v8_of(struct rows8 a)
{
    return (struct v8){a.x, a.y, a.z};
}

LANES_INLINE struct v8 v8_add(struct v8 a, struct v8 b)
{
    return (struct v8){a.x + b.x, a.y + b.y, a.z + b.z};
}

LANES_INLINE struct v8 v8_sub(struct v8 a, struct v8 b)
{
    return (struct v8){a.x - b.x, a.y - b.y, a.z - b.z};
}

LANES_INLINE struct v8 v8_scale(struct v8 a, f32x8 s)
{
    return (struct v8){a.x * s, a.y * s, a.z * s};
}

LANES_INLINE f32x8 v8_dot(struct v8 a, struct v8 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

LANES_INLINE struct v8 v8_cross(struct v8 a, struct v8 b)
{
    return (struct v8){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

LANES_INLINE struct v8 v8_select(i32x8 mask, struct v8 yes, struct v8 no)
{
    return (struct v8){f32x8_select(mask, yes.x, no.x), f32x8_select(mask, yes.y, no.y),
                       f32x8_select(mask, yes.z, no.z)};
}

/* The sums of all lanes. */
LANES_INLINE void v8_sum(struct v8 a, float out[4])
{
    const f32x4 x = f32x8_low(a.x) + f32x8_high(a.x), y = f32x8_low(a.y) + f32x8_high(a.y);
    const f32x4 z = f32x8_low(a.z) + f32x8_high(a.z);
    f32x4 column[4];

    f32x4_transpose(x, y, z, f32x4_all(0), column);
    f32x4_store(out, (column[0] + column[1]) + (column[2] + column[3]));
}

/* The shortest of the differences that are a period apart; both points are in or near the box. */
LANES_INLINE f32x8 fold_difference(f32x8 d, float period)
{
    const f32x8 half = f32x8_all(0.5f * period), none = f32x8_all(0);

    if (!(period > 0))
        return d;
    return d - f32x8_select((i32x8)(d > half), f32x8_all(period), none) +
           f32x8_select((i32x8)(d < -half), f32x8_all(period), none);
}

/* The sphere of the ground that `own` touches as it does the bed or a wall. */
static void ground_sphere(const struct step *step, uint32_t partner, const float own[4],
                          float out[4])
{
    static const struct f3 inward[4] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}};
    const struct slot *slot = step->slot;
    const uint32_t ground = ground_mover(step->solver);
    struct f3 n;
    float gap;

    if (partner == ENTRY_BED) {
        const float bed = solver_bed(slot, own[0], own[1], &n);

        gap = (own[2] - bed) * n.z;
    } else {
        const uint32_t wall = partner - ENTRY_WALL;
        const float at = own[wall / 2];

        n = inward[wall];
        gap = wall % 2 ? slot->box.size[wall / 2] - at : at;
    }
    /* a gap below 0 counts as 0: the overlap is cut at r */
    f3_put(out, f3_sub(f3_of(own), f3_scale(n, fmaxf(gap, 0) + step->params->radius_m)));
    memcpy(&out[3], &ground, sizeof(ground));
}

/* Numbers of a step that all lanes share. */
struct law {
    f32x8 radius, reach, stiffness, damping, friction, dt;
    f32x8 tangent_stiffness, tangent_damping, damped_root, sleep_after;
};

/* The cluster that gathers. */
struct self {
    struct v8 x, v, w;
    f32x8 soft;
    i32x8 asleep;
    struct v8 force, torque;
    struct v8 last_force, last_torque; /* of the last eight pairs */
};

LANES_INLINE void law_make(const struct granular_params *params, struct law *law)
{
    law->radius = f32x8_all(params->radius_m);
    law->reach = f32x8_all(2 * params->radius_m);
    law->stiffness = f32x8_all(params->stiffness);
    law->damping = f32x8_all(params->damping);
    law->friction = f32x8_all(params->friction);
    law->dt = f32x8_all(params->dt_s);
    law->tangent_stiffness = f32x8_all(params->tangent_stiffness * params->stiffness);
    law->tangent_damping = f32x8_all(params->tangent_damping * params->damping);
    law->damped_root = f32x8_all(sqrtf(GRANULAR_DAMPED_OVERLAP * params->radius_m));
    law->sleep_after = f32x8_all(params->sleep_after_s);
}

/* Step 2 of solver_step.c for eight pairs; the partners that sleep. */
LANES_INLINE i32x8 contacts8(const struct law *law, struct self *self, const float *const own_at[8],
                             const float *const other_at[8], const struct granule *const mover[8],
                             const float period[3], float *const spring_at[3])
{
    const float *x_at[8], *v_at[8], *w_at[8];
    const f32x8 zero = f32x8_all(0);
    const struct v8 none = {zero, zero, zero};

    for (int k = 0; k < 8; k++) {
        x_at[k] = mover[k]->x;
        v_at[k] = mover[k]->v;
        w_at[k] = mover[k]->w;
    }
    const struct v8 own = v8_of(rows8(own_at)), other = v8_of(rows8(other_at));
    const struct rows8 mx = rows8(x_at), mv = rows8(v_at);
    const i32x8 asleep = (i32x8)(mv.last >= law->sleep_after);
    struct v8 d = v8_sub(own, other);

    d.x = fold_difference(d.x, period[0]);
    d.y = fold_difference(d.y, period[1]);
    d.z = fold_difference(d.z, period[2]);
    const f32x8 square = v8_dot(d, d);
    /* one upon the other: no direction is right, so none is taken */
    const i32x8 touch = (i32x8)(square < law->reach * law->reach) & (i32x8)(square > zero);

    if (i32x8_signs(touch) == 0) {
        for (int a = 0; a < 3; a++)
            f32x8_store(spring_at[a], zero);
        self->last_force = self->last_torque = none;
        return asleep;
    }
    const struct v8 mw = v8_of(rows8(w_at));
    const f32x8 distance = f32x8_sqrt(square);
    const struct v8 n = v8_scale(d, f32x8_all(1) / distance);
    const f32x8 xi = law->reach - distance;
    const struct v8 lever = v8_scale(n, law->radius - f32x8_all(0.5f) * xi);
    const struct v8 arm = v8_sub(v8_sub(own, self->x), lever);
    const struct v8 arm_other = v8_add(v8_sub(other, v8_of(mx)), lever);
    const struct v8 u =
        v8_sub(v8_add(self->v, v8_cross(self->w, arm)), v8_add(v8_of(mv), v8_cross(mw, arm_other)));
    const f32x8 soft = f32x8_min(self->soft, mx.last), root = f32x8_sqrt(xi);
    const f32x8 un = v8_dot(u, n);
    const struct v8 ut = v8_sub(u, v8_scale(n, un));
    const f32x8 kt = soft * law->tangent_stiffness * root;
    const f32x8 gt = soft * law->tangent_damping * f32x8_min(root, law->damped_root);
    const f32x8 fn =
        f32x8_max(soft * (law->stiffness * xi * root - law->damping * root * un), zero);
    const struct v8 old = {f32x8_load(spring_at[0]), f32x8_load(spring_at[1]),
                           f32x8_load(spring_at[2])};
    struct v8 spring = v8_add(v8_sub(old, v8_scale(n, v8_dot(old, n))), v8_scale(ut, law->dt));

    spring = v8_select(self->asleep & asleep, old, spring);
    const struct v8 damp = v8_scale(ut, gt);
    const struct v8 ft = v8_scale(v8_add(v8_scale(spring, kt), damp), f32x8_all(-1));
    const f32x8 limit = law->friction * fn, length = f32x8_sqrt(v8_dot(ft, ft));
    const i32x8 slips = (i32x8)(length > limit);
    const struct v8 cut = v8_select(slips, v8_scale(ft, limit / length), ft);
    const struct v8 f = v8_select(touch, v8_add(v8_scale(n, fn), cut), none);

    spring = v8_select(slips, v8_scale(v8_add(cut, damp), f32x8_all(-1) / kt), spring);
    spring = v8_select(touch, spring, none);
    f32x8_store(spring_at[0], spring.x);
    f32x8_store(spring_at[1], spring.y);
    f32x8_store(spring_at[2], spring.z);
    self->last_force = f;
    self->last_torque = v8_select(touch, v8_cross(arm, f), none);
    self->force = v8_add(self->force, self->last_force);
    self->torque = v8_add(self->torque, self->last_torque);
    return asleep;
}

/* Which partners are granules. */
LANES_INLINE i32x8 granule_lanes(const struct solver *solver, const struct slot *slot,
                                 const struct granule *const mover[8])
{
    int32_t is_granule[8];
    i32x8 lanes;

    for (int k = 0; k < 8; k++)
        is_granule[k] = mover[k] < slot->mover + solver->engine.config.granules_max ? -1 : 0;
    memcpy(&lanes, is_granule, sizeof(lanes));
    return lanes;
}

void LANES_NAME(solver_forces)(const struct step *step, uint32_t cluster)
{
    const struct solver *solver = step->solver;
    struct slot *slot = step->slot;
    const uint32_t sphere = sphere_of_cluster(solver, cluster), count = slot->listed[cluster];
    const struct granule *mover = &slot->mover[mover_of_sphere(slot, sphere)];
    const struct list list = list_of(solver, slot, cluster);
    const bool is_awake = !mover_asleep(step->params, mover);
    const struct v8 none = v8_all((const float[3]){0, 0, 0});
    struct self self = {v8_all(mover->x),
                        v8_all(mover->v),
                        v8_all(mover->w),
                        f32x8_all(mover->x[3]),
                        {0},
                        none,
                        none,
                        none,
                        none};
    const bool is_particle = cluster >= solver->particle_clusters;
    struct v8 force = none, torque = none; /* on a particle, by granules */
    float ground[GRANULE_LIST][4];
    uint32_t grounds = 0;
    struct law law;

    law_make(step->params, &law);
    self.asleep = (i32x8)(f32x8_all(mover->v[3]) >= law.sleep_after);
    for (; grounds < count && (list.entry[grounds] & ENTRY_PARTNER) >= ENTRY_BED; grounds++)
        ground_sphere(step, list.entry[grounds] & ENTRY_PARTNER,
                      slot->position[sphere + (list.entry[grounds] >> ENTRY_OWN_SHIFT)],
                      ground[grounds]);
    for (uint32_t first = 0; first < count; first += 8) {
        const uint32_t *entry = &list.entry[first];
        float *const spring[3] = {list.spring[0] + first, list.spring[1] + first,
                                  list.spring[2] + first};
        const float *own[8], *other[8];
        const struct granule *movers[8];

        for (uint32_t k = 0; k < 8; k++) {
            uint32_t index;

            own[k] = slot->position[sphere + (entry[k] >> ENTRY_OWN_SHIFT)];
            other[k] =
                first + k < grounds ? ground[first + k] : slot->position[entry[k] & ENTRY_PARTNER];
            memcpy(&index, other[k] + 3, sizeof(index));
            movers[k] = &slot->mover[index];
        }
        unsigned sleepers =
            i32x8_signs(contacts8(&law, &self, own, other, movers, slot->period, spring));

        if (is_particle) {
            const i32x8 by_granule = granule_lanes(solver, slot, movers);

            force = v8_add(force, v8_select(by_granule, self.last_force, none));
            torque = v8_add(torque, v8_select(by_granule, self.last_torque, none));
        }
        for (sleepers = is_awake ? sleepers : 0; sleepers; sleepers &= sleepers - 1) {
            const uint32_t partner = entry[__builtin_ctz(sleepers)] & ENTRY_PARTNER;

            if (partner < solver->spheres_max)
                sphere_mark(solver, slot->border, partner);
        }
    }
    v8_sum(self.force, slot->load[cluster].force);
    v8_sum(self.torque, slot->load[cluster].torque);
    if (is_particle) {
        struct load *by_granules = &slot->by_granules[cluster - solver->particle_clusters];

        v8_sum(force, by_granules->force);
        v8_sum(torque, by_granules->torque);
    }
}
