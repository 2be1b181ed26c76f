// The map begins as the bed.
layout(local_size_x = 16, local_size_y = 8) in;

void main()
{
    uvec2 at = gl_GlobalInvocationID.xy;

    if (at.x >= extent.x || at.y >= extent.y)
        return;
    precise float x = points.x + float(at.x) * points.z;
    precise float y = points.y + float(at.y) * points.w;
    uint cols = slots[slot].bed_cols, rows = slots[slot].bed_rows;
    vec4 bed = slots[slot].bed;
    precise float fx = min(max((x - bed.x) / bed.z, 0.0), float(cols - 1u));
    precise float fy = min(max((y - bed.y) / bed.w, 0.0), float(rows - 1u));
    uint c = fx < float(cols - 2u) ? uint(fx) : cols - 2u;
    uint r = fy < float(rows - 2u) ? uint(fy) : rows - 2u;
    uint south = slot * pool.bed_max + r * cols + c;
    float h00 = bed_m[south], h10 = bed_m[south + 1u];
    float h01 = bed_m[south + cols], h11 = bed_m[south + cols + 1u];
    precise float s = fx - float(c);
    precise float t = fy - float(r);
    precise float low = h00 + s * (h10 - h00);
    precise float high = h01 + s * (h11 - h01);
    precise float height = low + t * (high - low);

    map[at.y * extent.x + at.x] = key_of(height);
}
