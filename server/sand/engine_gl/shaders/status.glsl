// Kinetic energy and sleepers of 256 granules of one slot, into partial[]; by a tree.
layout(local_size_x = 256) in;

uniform uint slot;

layout(std430, binding = AT_PARTIAL) restrict IS_PARTIAL buffer partial_block {
    uvec2 partial[]; // energy, asleep
};

shared float energies[256];
shared uint sleepers[256];

void main()
{
    uint n = gl_GlobalInvocationID.x;
    uint t = gl_LocalInvocationID.x;

    energies[t] = 0.0;
    sleepers[t] = 0u;
    if (n < slots[slot].granules) {
        vec4 v = granules[slot * pool.granules_max + n].v;
        vec3 w = granules[slot * pool.granules_max + n].w.xyz;

        energies[t] = 0.5 * slots[slot].mass_kg * dot(v.xyz, v.xyz) + 0.5 * slots[slot].inertia * dot(w, w);
        sleepers[t] = v.w >= pool.sleep_after_s ? 1u : 0u;
    }
    barrier();
    for (uint d = 128u; d > 0u; d >>= 1) {
        if (t < d) {
            energies[t] += energies[t + d];
            sleepers[t] += sleepers[t + d];
        }
        barrier();
    }
    if (t == 0u)
        partial[gl_WorkGroupID.x] = uvec2(floatBitsToUint(energies[0]), sleepers[0]);
}
