// A block of a heightfield: 33 x 33 vertices and a hem that hangs from its edge. Places are relative
// to the eye; blocks compute the same float for a shared sample, so that nothing shows between.
const int SIDE = 33, STORED = 35; // with the samples around, for slopes

layout(std430, binding = 0) readonly buffer heights_block { float heights[]; };
layout(std430, binding = 1) readonly buffer blocks_block { ivec4 blocks[]; }; // column, row, step
layout(std430, binding = 2) readonly buffer drawn_block { uint drawn[]; };

uniform ivec2 last;   // sample, counted as the blocks' columns and rows: from the one at the eye
uniform vec2 spacing; // metres
uniform vec2 base;    // of sample 0, 0 as they are counted
uniform vec2 eye_z;   // in two parts
uniform mat4 matrix;

out vec3 v_place, v_normal;
out float v_hole; // above 0 inside of triangles that touch a sample without data

bool is_nan(float h)
{
    return (floatBitsToUint(h) & 0x7fffffffu) > 0x7f800000u;
}

float slope(float before, float here, float after, float step_m)
{
    float parts = 2.0;

    if (is_nan(before)) {
        before = here;
        parts -= 1.0;
    }
    if (is_nan(after)) {
        after = here;
        parts -= 1.0;
    }
    return parts > 0.0 ? (after - before) / (parts * step_m) : 0.0;
}

void main()
{
    int vertex = gl_VertexID, hem = 0;

    if (vertex >= SIDE * SIDE) {
        int along = (vertex - SIDE * SIDE) % SIDE, edge = (vertex - SIDE * SIDE) / SIDE;

        hem = 1;
        vertex = edge == 0 ? along : edge == 1 ? (SIDE - 1) * SIDE + along
               : edge == 2 ? along * SIDE : along * SIDE + SIDE - 1;
    }
    int i = vertex % SIDE, j = vertex / SIDE;
    uint block = drawn[gl_InstanceID];
    ivec4 at = blocks[block];
    uint stored = block * uint(STORED * STORED) + uint((j + 1) * STORED + i + 1);
    float h = heights[stored];
    vec2 step_m = spacing * float(at.z);

    v_hole = is_nan(h) ? 1.0 : 0.0;
    if (v_hole > 0.0)
        h = eye_z.x;
    v_normal = vec3(-slope(heights[stored - 1u], h, heights[stored + 1u], step_m.x),
                    -slope(heights[stored - uint(STORED)], h, heights[stored + uint(STORED)],
                           step_m.y), 1.0);
    v_place = vec3(vec2(min(at.xy + ivec2(i, j) * at.z, last)) * spacing + base,
                   h - eye_z.x - eye_z.y);
    v_place.z -= float(hem) * 2.0 * max(step_m.x, step_m.y);
    gl_Position = matrix * vec4(v_place, 1.0);
}
