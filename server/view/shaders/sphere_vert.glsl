// A square around each sphere, across the way to it: from the eye, or along the sun's light.
layout(location = 0) in vec4 sphere; // centre relative to the eye, radius
layout(location = 1) in float shade;

uniform mat4 matrix;
uniform vec4 light; // xyz: the way that it travels; w 1: across it, else from the eye

flat out vec4 v_sphere;
flat out float v_shade;
out vec3 v_place;

void main()
{
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
    vec3 way = light.w > 0.0 ? light.xyz : sphere.xyz;
    float far = length(sphere.xyz), reach = sphere.w;
    vec3 middle = sphere.xyz;

    if (light.w == 0.0) { // its outline lies nearer than its middle
        float part = clamp(1.0 - sphere.w * sphere.w / (far * far), 1e-4, 1.0);

        middle *= part;
        reach *= sqrt(part);
    }
    way = normalize(way);
    vec3 right = normalize(cross(way, abs(way.z) < 0.9 ? vec3(0, 0, 1) : vec3(1, 0, 0)));
    vec3 up = cross(right, way);

    v_sphere = sphere;
    v_shade = shade;
    v_place = middle + (right * corner.x + up * corner.y) * reach * 1.01;
    gl_Position = matrix * vec4(v_place, 1.0);
}
