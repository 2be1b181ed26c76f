// Exclusive sum of the blocks; one group for each slot. It also forgets who was awake a step ago.
layout(local_size_x = 256) in;

shared uint sums[256];

void main()
{
    uint slot = run_slot();
    uint t = gl_LocalInvocationID.x;

    if (t == 0u)
        flags[slot].awake[run_parity() ^ 1u] = 0u;
    if (run_active()) {
        uint base = slot * pool.block_stride;
        uint blocks = slots[slot].cells.w / SCAN_BLOCK + 1u;
        uint carry = 0u;

        for (uint first = 0u; first < blocks; first += 256u) {
            uint value = first + t < blocks ? block_start[base + first + t] : 0u;

            barrier();
            sums[t] = value;
            barrier();
            for (uint d = 1u; d < 256u; d <<= 1) {
                uint left = t >= d ? sums[t - d] : 0u;

                barrier();
                sums[t] += left;
                barrier();
            }
            if (first + t < blocks)
                block_start[base + first + t] = carry + sums[t] - value;
            carry += sums[255];
        }
    }
}
