// Exclusive sum of the blocks, 256 of them a group. Each group adds up the blocks before its own
// itself, so that none waits for another. The first also forgets who was awake a step ago.
layout(local_size_x = 256) in;

shared uint sums[256];
shared uint earlier;

void main()
{
    uint slot = run_slot();
    uint t = gl_LocalInvocationID.x;
    uint first = 256u * gl_WorkGroupID.x;
    uint blocks = slots[slot].cells.w / SCAN_BLOCK + 1u;

    if (first + t == 0u)
        flags[slot].awake[run_parity() ^ 1u] = 0u;
    if (run_active() && first < blocks) { // the same for the whole group
        uint base = slot * pool.block_stride;
        uint counts = base + pool.block_stride / 2u;
        uint value = first + t < blocks ? block_start[counts + first + t] : 0u;
        uint before = 0u;

        for (uint i = t; i < first; i += 256u)
            before += block_start[counts + i];
        sums[t] = value;
        if (t == 0u)
            earlier = 0u;
        barrier();
        atomicAdd(earlier, before);
        for (uint d = 1u; d < 256u; d <<= 1) {
            uint left = t >= d ? sums[t - d] : 0u;

            barrier();
            sums[t] += left;
            barrier();
        }
        if (first + t < blocks)
            block_start[base + first + t] = earlier + sums[t] - value;
    }
}
