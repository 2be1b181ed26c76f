// Puts the spheres of a cell in the order of their ids, so that the order in which they came does
// not matter. Cells hold one or two; the outermost may hold more.
layout(local_size_x = 128) in;

void main()
{
    uint n = gl_GlobalInvocationID.x;
    uint slot = run_slot();

    if (!run_active() || n >= first_of_cell(slot, slots[slot].cells.w))
        return;
    uint base = slot * pool.spheres_max;
    uint id = order[base + n];
    uvec4 at = position[base + id];
    uint first = first_of_cell(slot, at.w), end = first_of_cell(slot, at.w + 1u);
    uint rank = 0u;

    for (uint k = first; k < end; k++)
        rank += order[base + k] < id ? 1u : 0u;
    sorted[base + first + rank] = uvec4(at.xyz, id);
}
