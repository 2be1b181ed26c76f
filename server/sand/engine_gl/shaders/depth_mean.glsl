// The mean of each texel's points, row by row.
layout(local_size_x = 16, local_size_y = 8) in;

layout(std430, binding = AT_OUT) restrict IS_OUT buffer out_block {
    float mean_m[];
};

void main()
{
    uvec2 at = gl_GlobalInvocationID.xy;
    uint side = extent.z;
    uvec2 texels = extent.xy / side;
    precise float sum = 0.0;

    if (at.x >= texels.x || at.y >= texels.y)
        return;
    for (uint j = 0u; j < side; j++)
        for (uint i = 0u; i < side; i++)
            sum += height_of(map[(at.y * side + j) * extent.x + at.x * side + i]);
    precise float mean = sum / float(side * side);

    mean_m[at.y * texels.x + at.x] = mean;
}
