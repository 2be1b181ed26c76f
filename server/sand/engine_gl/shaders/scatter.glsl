// Each sphere takes a place in its cell, whichever comes first; the counts go back to zero.
layout(local_size_x = 128) in;

void main()
{
    uint n = gl_GlobalInvocationID.x;
    uint slot = run_slot();

    if (!run_active() || n >= sphere_count(slot))
        return;
    uint id = sphere_id(slot, n);
    uint cell = position[slot * pool.spheres_max + id].w;

    if (cell == NO_CELL)
        return;
    uint left = atomicAdd(cell_count[slot * pool.cell_stride + cell], 0xffffffffu);

    order[slot * pool.spheres_max + first_of_cell(slot, cell) + left - 1u] = id;
}
