// The sum of partial[], and whether the slot has failed.
layout(local_size_x = 256) in;

uniform uint slot;

layout(std430, binding = AT_PARTIAL) restrict IS_PARTIAL buffer partial_block {
    uvec2 partial[];
};
layout(std430, binding = AT_OUT) restrict IS_OUT buffer out_block {
    uvec4 result; // energy, asleep, failed, 0
};

shared float energies[256];
shared uint sleepers[256];

void main()
{
    uint t = gl_LocalInvocationID.x;
    uint parts = (slots[slot].granules + 255u) / 256u;
    float energy = 0.0;
    uint asleep = 0u;

    for (uint i = t; i < parts; i += 256u) {
        energy += uintBitsToFloat(partial[i].x);
        asleep += partial[i].y;
    }
    energies[t] = energy;
    sleepers[t] = asleep;
    barrier();
    for (uint d = 128u; d > 0u; d >>= 1) {
        if (t < d) {
            energies[t] += energies[t + d];
            sleepers[t] += sleepers[t + d];
        }
        barrier();
    }
    if (t == 0u)
        result = uvec4(floatBitsToUint(energies[0]), sleepers[0], flags[slot].failed, 0u);
}
