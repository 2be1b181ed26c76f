// What the three shaders of a depth map share: points, and heights as integers that compare alike.

uniform uint slot;
uniform vec4 points;  // first x, first y, step x, step y
uniform uvec4 extent; // points along x and y, points of a texel along one side, 0

layout(std430, binding = AT_MAP) restrict IS_MAP buffer map_block {
    uint map[]; // extent.y rows of extent.x
};

uint key_of(float height)
{
    uint bits = floatBitsToUint(height);

    return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

float height_of(uint key)
{
    return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key);
}
