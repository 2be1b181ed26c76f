// Spheres from poses: arm, position and cell of each, and how many each cell has.
layout(local_size_x = 128) in;

uint cell_along(float x, uint cells)
{
    float i = floor(x / pool.cell_m);

    if (!(i > 0.0)) // not a number, too
        return 0u;
    return i < float(cells - 1u) ? uint(i) : cells - 1u;
}

void main()
{
    uint n = gl_GlobalInvocationID.x;
    uint slot = run_slot();

    if (!run_active() || n >= sphere_count(slot))
        return;
    uint id = sphere_id(slot, n);
    uint at = slot * pool.spheres_max + id;
    vec3 centre, offset;
    vec4 q;
    bool awake;

    if (id < pool.particles_first) {
        uint g = slot * pool.granules_max + id / 4u;

        centre = granules[g].x.xyz;
        q = granules[g].q;
        awake = granules[g].v.w < pool.sleep_after_s;
        offset = pool.tetrahedron[id % 4u].xyz;
    } else {
        uvec4 particle = particles[slot * pool.particles_max + id - pool.particles_first];

        if (particle.w == NO_CELL) {
            position[at] = uvec4(0u, 0u, 0u, NO_CELL);
            return;
        }
        uint b = slot * pool.bodies_max + particle.w;

        centre = bodies[b].x.xyz;
        q = bodies[b].q;
        awake = bodies[b].v.w < pool.sleep_after_s;
        offset = uintBitsToFloat(particle.xyz);
    }
    vec3 lever = rotate(q, offset);
    vec3 x = centre + lever;
    uvec3 cells = slots[slot].cells.xyz;
    uint ix = cell_along(x.x, cells.x);
    uint iy = cell_along(x.y, cells.y);
    uint iz = cell_along(x.z - slots[slot].z_low, cells.z);
    uint cell = (iz * cells.y + iy) * cells.x + ix;

    arm[at] = vec4(lever, 0.0);
    position[at] = uvec4(floatBitsToUint(x), cell);
    atomicAdd(cell_count[slot * pool.cell_stride + cell], 1u);
    if (awake)
        atomicOr(cell_count[slot * pool.cell_stride + cell], AWAKE);
}
