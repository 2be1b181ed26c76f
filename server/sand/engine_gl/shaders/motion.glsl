// Parts that granules and bodies share; see solver_step.c, 4.

vec3 cut_length(vec3 v, float most)
{
    float square = dot(v, v);

    return square > most * most ? v * (most / sqrt(square)) : v;
}

vec4 turned(vec4 q, vec3 w)
{
    float h = 0.5 * pool.dt_s;
    vec4 to = vec4(q.x + h * (w.x * q.w + w.y * q.z - w.z * q.y),
                   q.y + h * (w.y * q.w + w.z * q.x - w.x * q.z),
                   q.z + h * (w.z * q.w + w.x * q.y - w.y * q.x),
                   q.w - h * (w.x * q.x + w.y * q.y + w.z * q.z));

    return to * (1.0 / sqrt(dot(to, to)));
}

bool balanced(vec3 f, vec3 t, float force_most, float torque_most)
{
    return dot(f, f) <= force_most * force_most && dot(t, t) <= torque_most * torque_most;
}

// The time of being slow after this step; the sleep begins when it reaches sleep_after_s.
float slow_time(float before, bool slow, bool balance)
{
    if (!slow)
        return 0.0;
    if (before + pool.dt_s < pool.sleep_after_s)
        return before + pool.dt_s;
    return balance ? pool.sleep_after_s : before;
}

void stay_awake(uint slot)
{
    uint next = run_parity() ^ 1u;

    if (flags[slot].awake[next] == 0u)
        atomicOr(flags[slot].awake[next], 1u);
}
