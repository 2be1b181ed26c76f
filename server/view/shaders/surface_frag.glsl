// What a pixel shows, before it is shaded: the normal of its triangle, the way to it along the
// pixel's ray, the normal for shading, and the kind of surface.
in vec3 v_place, v_normal;
in float v_hole;

#ifndef DEPTH_ONLY
uniform float kind;

layout(location = 0) out vec4 out_place;
layout(location = 1) out vec4 out_look;
#endif

void main()
{
#ifdef DEPTH_ONLY
    if (v_hole > 0.0)
        discard;
#else
    vec3 across = cross(dFdx(v_place), dFdy(v_place)), plane;

    if (v_hole > 0.0)
        discard;
    plane = dot(across, across) > 0.0 ? normalize(across) : normalize(-v_place);
    if (dot(plane, v_place) > 0.0)
        plane = -plane;
    vec3 normal = dot(v_normal, v_normal) > 0.0 ? normalize(v_normal) : plane;
    if (dot(normal, plane) < 0.0)
        normal = -normal;
    out_place = vec4(plane, length(v_place));
    out_look = vec4(normal, kind);
#endif
}
