// Where the pixel's ray meets the sphere; its depth is written, so that spheres cut each other.
flat in vec4 v_sphere;
flat in float v_shade;
in vec3 v_place;

uniform mat4 matrix;
uniform vec4 light;

#ifndef DEPTH_ONLY
uniform float kind;

layout(location = 0) out vec4 out_place;
layout(location = 1) out vec4 out_look;
#endif

void main()
{
    vec3 way = light.w > 0.0 ? light.xyz : normalize(v_place);
    vec3 to = light.w > 0.0 ? v_sphere.xyz - v_place : v_sphere.xyz;
    float along = dot(to, way);
    vec3 beside = to - way * along;
    float under = v_sphere.w * v_sphere.w - dot(beside, beside);

    if (under < 0.0)
        discard;
    along -= sqrt(under);
    if (light.w == 0.0 && along < 0.0)
        discard;
    vec3 place = light.w > 0.0 ? v_place + way * along : way * along;
    vec4 clip = matrix * vec4(place, 1.0);

    gl_FragDepth = clip.z / clip.w;
#ifndef DEPTH_ONLY
    vec3 normal = normalize(place - v_sphere.xyz);

    out_place = vec4(normal, along);
    out_look = vec4(normal, kind + 0.5 * v_shade);
#endif
}
