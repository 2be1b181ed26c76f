// Exclusive sum of the cells' counts within each block of SCAN_BLOCK cells; four cells a thread.
// The mark of cells with something awake moves from the count to the start.
layout(local_size_x = 256) in;

shared uint sums[256];

void main()
{
    uint slot = run_slot();

    if (run_active()) { // the same for the whole group
        uint total = slots[slot].cells.w + 1u; // with the end of the last
        uint base = slot * pool.cell_stride;
        uint t = gl_LocalInvocationID.x;
        uint first = gl_WorkGroupID.x * SCAN_BLOCK + 4u * t;
        uint value[4];
        uint sum = 0u;

        for (uint i = 0u; i < 4u; i++) {
            value[i] = first + i < total ? cell_count[base + first + i] : 0u;
            sum += value[i] & NUMBER;
        }
        sums[t] = sum;
        barrier();
        for (uint d = 1u; d < 256u; d <<= 1) {
            uint left = t >= d ? sums[t - d] : 0u;

            barrier();
            sums[t] += left;
            barrier();
        }
        uint before = sums[t] - sum;

        for (uint i = 0u; i < 4u; i++) {
            if (first + i < total) {
                cell_start[base + first + i] = before | (value[i] & AWAKE);
                cell_count[base + first + i] = value[i] & NUMBER;
            }
            before += value[i] & NUMBER;
        }
        if (t == 255u && gl_WorkGroupID.x * SCAN_BLOCK < total)
            block_start[slot * pool.block_stride + pool.block_stride / 2u + gl_WorkGroupID.x] =
                sums[t];
    }
}
