// What all shaders of the sand share. The host writes #version and one AT_NAME (binding) and
// IS_NAME (readonly, or nothing) for each block that a shader uses, then this file, then the
// shader. The records are those of granular.h and of gl_data.h.
//
// One dispatch works for all slots that run: gl_WorkGroupID.y counts the running ones. A slot reads
// and writes nothing of another, and no number of a dispatch depends on how many run; so the bits
// of a slot do not depend on its neighbours.
//
// Floats that are read back as other types travel as uint: a small integer in a float would be a
// denormal, which hardware may take for zero.

layout(std140, binding = 0) uniform pool_block {
    float radius_m, cell_m, dt_s, friction;
    float stiffness, damping, tangent_stiffness, tangent_damping;
    float drag_linear, drag_angular, speed_max, spin_max;
    float mass_kg, mass_inverse, inertia, inertia_inverse;
    float sleep_speed, sleep_spin, sleep_after_s, wake_fraction;
    uint spheres, substeps;
    float density, diameter_m;
    vec4 tetrahedron[4]; // offsets of a granule's spheres
    uint granules_max, particles_first, spheres_max, bodies_max;
    uint particles_max, cell_stride, block_stride, bed_max;
} pool;

uniform uint substep; // of this call of the host: 0 is the first

const uint NO_CELL = 0xffffffffu;
const uint CONTACTS_MAX = 16u;
const uint SCAN_BLOCK = 1024u;
const uint AWAKE = 0x80000000u; // in the table of cells, beside a number
const uint NUMBER = 0x7fffffffu;
const uint STIRRED = 0x100u; // of a running slot: something came from outside since the last step
const uint RECHECK = 0x200u; // it was added or taken away: sleepers look at their contacts

struct slot_record {
    vec4 gravity; // w: force that wakes a granule
    vec2 size;
    float z_low;
    float calm; // further drag of granules
    uvec4 cells; // w: all of them
    uint granules, bodies_end, particles_end, pad1;
    uint bed_cols, bed_rows, pad2, pad3;
    vec4 bed; // x0 y0 dx dy
    float friction, stiffness, damping, pad4; // of its material, as the rest
    float mass_kg, mass_inverse, inertia, inertia_inverse;
};

struct flag_record {
    uint failed;
    uint awake[2]; // by the parity of the slot's steps: of this one, of the next
    uint pad;
};

struct granule_record {
    vec4 x, q, v, w;
};

struct body_record {
    vec4 x, q, v, w; // x.w: 1 / mass, 0: the host moves it along a path
    vec4 inertia[3];
    vec4 inertia_inverse[3];
    uint particle_first, particle_count;
    float soft;
    uint summed; // substeps that are in the sums
    vec4 force, force_rest; // of granules: a sum, and what rounding took from it
    vec4 torque, torque_rest;
};

struct contact_record {
    vec3 spring;
    uint partner;
};

#ifdef AT_TABLE
layout(std430, binding = AT_TABLE) restrict IS_TABLE buffer table_block {
    uint running[64]; // slot, parity << 16, STIRRED, RECHECK
    slot_record slots[];
};
#endif
#ifdef AT_FLAGS
layout(std430, binding = AT_FLAGS) restrict IS_FLAGS buffer flags_block {
    flag_record flags[];
};
#endif
#ifdef AT_GRANULES
layout(std430, binding = AT_GRANULES) restrict IS_GRANULES buffer granules_block {
    granule_record granules[];
};
#endif
#ifdef AT_BODIES
layout(std430, binding = AT_BODIES) restrict IS_BODIES buffer bodies_block {
    body_record bodies[];
};
#endif
#ifdef AT_PARTICLES
layout(std430, binding = AT_PARTICLES) restrict IS_PARTICLES buffer particles_block {
    uvec4 particles[]; // offset, body
};
#endif
#ifdef AT_BED
layout(std430, binding = AT_BED) restrict IS_BED buffer bed_block {
    float bed_m[];
};
#endif
#ifdef AT_POSITION
layout(std430, binding = AT_POSITION) restrict IS_POSITION buffer position_block {
    uvec4 position[]; // by id of sphere: x y z, cell
};
#endif
#ifdef AT_ARM
layout(std430, binding = AT_ARM) restrict IS_ARM buffer arm_block {
    vec4 arm[]; // by id: from the centre of the granule or body
};
#endif
#ifdef AT_FORCE
layout(std430, binding = AT_FORCE) restrict IS_FORCE buffer force_block {
    uvec4 force[]; // two by id: force and contacts | half << 8; torque
};
#endif
#ifdef AT_GRANULE_FORCE
layout(std430, binding = AT_GRANULE_FORCE) restrict IS_GRANULE_FORCE buffer granule_force_block {
    vec4 granule_force[]; // two by particle: force and torque on it, by granules only
};
#endif
#ifdef AT_CONTACT
layout(std430, binding = AT_CONTACT) restrict IS_CONTACT buffer contact_block {
    contact_record contacts[]; // by id: two halves of CONTACTS_MAX, one is in use
};
#endif
#ifdef AT_COUNTS
layout(std430, binding = AT_COUNTS) restrict IS_COUNTS buffer count_block {
    uint cell_count[]; // all zero between two substeps
};
#endif
#ifdef AT_START
layout(std430, binding = AT_START) restrict IS_START buffer start_block {
    uint cell_start[]; // first of the cell within its block, AWAKE
};
#endif
#ifdef AT_SUMS
layout(std430, binding = AT_SUMS) restrict IS_SUMS buffer sums_block {
    uint block_start[]; // of a slot: first of each block; in its second half, count of each
};
#endif
#ifdef AT_ORDER
layout(std430, binding = AT_ORDER) restrict IS_ORDER buffer order_block {
    uint order[]; // ids by cell, in any order within one
};
#endif
#ifdef AT_SORTED
layout(std430, binding = AT_SORTED) restrict IS_SORTED buffer sorted_block {
    uvec4 sorted[]; // by cell and id: x y z, id
};
#endif

#ifdef AT_TABLE
uint run_entry()
{
    return running[gl_WorkGroupID.y];
}

uint run_slot()
{
    return run_entry() & 0xffu;
}

#ifdef AT_FLAGS
// Whether the slot takes part in this substep, and the parity of this substep.
uint run_parity()
{
    return ((run_entry() >> 16) ^ substep) & 1u;
}

bool run_active()
{
    uint entry = run_entry();
    uint slot = entry & 0xffu;

    return flags[slot].failed == 0u &&
           (flags[slot].awake[run_parity()] != 0u || (substep == 0u && (entry & STIRRED) != 0u));
}
#endif

// How many spheres a slot may have, removed particles among them.
uint sphere_count(uint slot)
{
    return slots[slot].granules * pool.spheres + slots[slot].particles_end;
}

// Id of the n-th of them.
uint sphere_id(uint slot, uint n)
{
    uint of_granules = slots[slot].granules * pool.spheres;

    if (n < of_granules)
        return 4u * (n / pool.spheres) + n % pool.spheres;
    return pool.particles_first + (n - of_granules);
}
#endif

#if defined(AT_START) && defined(AT_SUMS)
uint first_of_cell(uint slot, uint cell)
{
    return (cell_start[slot * pool.cell_stride + cell] & NUMBER) +
           block_start[slot * pool.block_stride + cell / SCAN_BLOCK];
}
#endif

// v turned by the unit quaternion q.
vec3 rotate(vec4 q, vec3 v)
{
    vec3 t = cross(q.xyz, v) * 2.0;

    return v + t * q.w + cross(q.xyz, t);
}

vec3 rotate_back(vec4 q, vec3 v)
{
    return rotate(vec4(-q.xyz, q.w), v);
}

bool not_finite(vec4 a)
{
    uvec4 bits = floatBitsToUint(a) & 0x7f800000u;

    return any(equal(bits, uvec4(0x7f800000u)));
}
