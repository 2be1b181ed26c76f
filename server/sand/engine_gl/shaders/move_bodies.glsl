// Bodies move by what the particles of their shells gathered: one group for each body. The sum is
// a tree of fixed shape, not atomic, so that its bits are always the same.
layout(local_size_x = 128) in;

shared vec3 forces[128];
shared vec3 torques[128];
shared vec3 by_granules[2][128]; // force and torque of granules only

vec3 apply_inertia(uint b, vec3 v)
{
    return vec3(dot(bodies[b].inertia[0].xyz, v), dot(bodies[b].inertia[1].xyz, v),
                dot(bodies[b].inertia[2].xyz, v));
}

vec3 apply_inverse(uint b, vec3 v)
{
    return vec3(dot(bodies[b].inertia_inverse[0].xyz, v), dot(bodies[b].inertia_inverse[1].xyz, v),
                dot(bodies[b].inertia_inverse[2].xyz, v));
}

void move(uint slot, uint b, vec3 f, vec3 t)
{
    vec4 gravity = slots[slot].gravity;
    vec4 x = bodies[b].x, q = bodies[b].q, v4 = bodies[b].v, w4 = bodies[b].w;
    float wake = gravity.w * slots[slot].mass_inverse / x.w;
    bool balance = balanced(f + gravity.xyz * (1.0 / x.w), t, wake, wake * 0.45 * w4.w);
    float spin_most = pool.speed_max / w4.w;

    if (v4.w >= pool.sleep_after_s) {
        if (balance)
            return;
        v4.w = 0.0;
    }
    vec3 v = v4.xyz + (f * x.w + gravity.xyz) * pool.dt_s;

    v = cut_length(v * (1.0 - pool.drag_linear * pool.dt_s), pool.speed_max);
    vec3 momentum = rotate(q, apply_inertia(b, rotate_back(q, w4.xyz)));

    momentum = (momentum + t * pool.dt_s) * (1.0 - pool.drag_angular * pool.dt_s);
    vec3 w = rotate(q, apply_inverse(b, rotate_back(q, momentum)));

    q = turned(q, cut_length(w, spin_most));
    w = cut_length(rotate(q, apply_inverse(b, rotate_back(q, momentum))), spin_most);
    x.xyz += v * pool.dt_s;
    v4.w = slow_time(v4.w,
                     dot(v, v) < pool.sleep_speed * pool.sleep_speed &&
                         dot(w, w) * w4.w * w4.w < pool.sleep_speed * pool.sleep_speed,
                     balance);
    if (v4.w >= pool.sleep_after_s)
        v = w = vec3(0.0);
    else
        stay_awake(slot);
    v4.xyz = v;
    w4.xyz = w;
    if (not_finite(x) || not_finite(q) || not_finite(v4) || not_finite(w4)) {
        flags[slot].failed = 1u;
    } else {
        bodies[b].x = x;
        bodies[b].q = q;
        bodies[b].v = v4;
        bodies[b].w = w4;
    }
}

void add_sum(inout vec4 sum, inout vec4 rest, vec3 more)
{
    precise vec3 y = more - rest.xyz;
    precise vec3 t = sum.xyz + y;
    precise vec3 taken = t - sum.xyz;
    precise vec3 lost = taken - y;

    rest.xyz = lost;
    sum.xyz = t;
}

void add_forces(uint b, vec3 f, vec3 t)
{
    vec4 sum = bodies[b].force, rest = bodies[b].force_rest;

    add_sum(sum, rest, f);
    bodies[b].force = sum;
    bodies[b].force_rest = rest;
    sum = bodies[b].torque;
    rest = bodies[b].torque_rest;
    add_sum(sum, rest, t);
    bodies[b].torque = sum;
    bodies[b].torque_rest = rest;
    bodies[b].summed++;
}

shared bool moves; // another group may say meanwhile that the slot has failed: ask once

void main()
{
    uint slot = run_slot();
    uint b = slot * pool.bodies_max + gl_WorkGroupID.x;
    uint t = gl_LocalInvocationID.x;

    if (t == 0u)
        moves = run_active() && gl_WorkGroupID.x < slots[slot].bodies_end &&
                bodies[b].particle_count > 0u;
    barrier();
    if (moves) { // the same for the whole group
        uint first = slot * pool.spheres_max + pool.particles_first + bodies[b].particle_first;
        uint count = bodies[b].particle_count;
        uint particle = 2u * (slot * pool.particles_max + bodies[b].particle_first);
        vec3 f = vec3(0.0), torque = vec3(0.0), of[2] = vec3[2](vec3(0.0), vec3(0.0));

        for (uint p = t; p < count; p += 128u) {
            f += uintBitsToFloat(force[2u * (first + p)].xyz);
            torque += uintBitsToFloat(force[2u * (first + p) + 1u].xyz);
            of[0] += granule_force[particle + 2u * p].xyz;
            of[1] += granule_force[particle + 2u * p + 1u].xyz;
        }
        forces[t] = f;
        torques[t] = torque;
        by_granules[0][t] = of[0];
        by_granules[1][t] = of[1];
        barrier();
        for (uint d = 64u; d > 0u; d >>= 1) {
            if (t < d) {
                forces[t] += forces[t + d];
                torques[t] += torques[t + d];
                by_granules[0][t] += by_granules[0][t + d];
                by_granules[1][t] += by_granules[1][t + d];
            }
            barrier();
        }
        if (t == 0u) {
            add_forces(b, by_granules[0][0], by_granules[1][0]);
            if (bodies[b].x.w > 0.0)
                move(slot, b, forces[0], torques[0]);
            else if (bodies[b].v.w < pool.sleep_after_s)
                stay_awake(slot);
        }
    }
}
