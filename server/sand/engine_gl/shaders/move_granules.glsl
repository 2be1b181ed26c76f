// Granules move by what their spheres gathered.
layout(local_size_x = 128) in;

void main()
{
    uint n = gl_GlobalInvocationID.x;
    uint slot = run_slot();

    if (!run_active() || n >= slots[slot].granules)
        return;
    uint at = slot * pool.granules_max + n;
    granule_record granule = granules[at];
    vec4 gravity = slots[slot].gravity;
    vec3 f = vec3(0.0), t = vec3(0.0);

    for (uint j = 0u; j < pool.spheres; j++) {
        uint s = 2u * (slot * pool.spheres_max + 4u * n + j);

        f += uintBitsToFloat(force[s].xyz);
        t += uintBitsToFloat(force[s + 1u].xyz);
    }
    bool balance = balanced(f + gravity.xyz * slots[slot].mass_kg, t, gravity.w,
                            gravity.w * pool.radius_m);

    if (granule.v.w >= pool.sleep_after_s) {
        if (balance)
            return;
        granule.v.w = 0.0;
    }
    vec3 v = granule.v.xyz + (f * slots[slot].mass_inverse + gravity.xyz) * pool.dt_s;
    vec3 w = granule.w.xyz + t * (slots[slot].inertia_inverse * pool.dt_s);

    float calm = slots[slot].calm;

    v = cut_length(v * (1.0 - (pool.drag_linear + calm) * pool.dt_s), pool.speed_max);
    w = cut_length(w * (1.0 - (pool.drag_angular + calm) * pool.dt_s), pool.spin_max);
    granule.x.xyz += v * pool.dt_s;
    granule.q = turned(granule.q, w);
    granule.v.w = slow_time(granule.v.w,
                            dot(v, v) < pool.sleep_speed * pool.sleep_speed &&
                                dot(w, w) < pool.sleep_spin * pool.sleep_spin,
                            balance);
    if (granule.v.w >= pool.sleep_after_s)
        v = w = vec3(0.0);
    else
        stay_awake(slot);
    granule.v.xyz = v;
    granule.w.xyz = w;
    if (not_finite(granule.x) || not_finite(granule.q) || not_finite(granule.v) ||
        not_finite(granule.w))
        flags[slot].failed = 1u;
    else
        granules[at] = granule;
}
