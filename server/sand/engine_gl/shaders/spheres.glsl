// Centres of all spheres of one slot from their poses; w: -1 of a granule, else the body, and -2
// for a particle that was removed.
layout(local_size_x = 128) in;

uniform uint slot;

layout(std430, binding = AT_OUT) restrict IS_OUT buffer out_block {
    vec4 centres[];
};

void main()
{
    uint n = gl_GlobalInvocationID.x;

    if (n >= sphere_count(slot))
        return;
    uint id = sphere_id(slot, n);

    if (id < pool.particles_first) {
        uint g = slot * pool.granules_max + id / 4u;

        centres[n] = vec4(granules[g].x.xyz +
                              rotate(granules[g].q, pool.tetrahedron[id % 4u].xyz), -1.0);
    } else {
        uvec4 particle = particles[slot * pool.particles_max + id - pool.particles_first];
        uint b = slot * pool.bodies_max + particle.w;

        centres[n] = particle.w == NO_CELL
                         ? vec4(0.0, 0.0, 0.0, -2.0)
                         : vec4(bodies[b].x.xyz +
                                    rotate(bodies[b].q, uintBitsToFloat(particle.xyz)),
                                float(particle.w));
    }
}
