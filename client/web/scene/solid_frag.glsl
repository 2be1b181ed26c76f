#version 300 es
// Faces, seen from both sides, or a ceiling's from below, lit by the ground's sun and veiled by its haze.
precision highp float;

uniform vec3 u_color;
uniform vec3 u_sun;
uniform float u_haze;
uniform vec3 u_origin;  // of the locale's frame, relative to the eye
uniform vec3 u_up[2];   // of a ceiling, against gravity: everywhere, and by the place; else 0

#include "sky"
#ifdef SHADOWS
#include "shadow"
#endif

in vec3 v_place, v_normal;
out vec4 color;

void main() {
  vec3 normal = normalize(cross(dFdx(v_place), dFdy(v_place)));
  if (dot(normal, v_place) > 0.0) normal = -normal;
  vec3 up = u_up[0] + u_up[1] * (v_place - u_origin);
  if (dot(normal, up) > 0.02 * length(up)) discard;
  vec3 smooth_normal = dot(v_normal, v_normal) > 0.0 ? normalize(v_normal) : normal;
  if (dot(smooth_normal, normal) < 0.0) smooth_normal = -smooth_normal;
  float light = max(dot(smooth_normal, u_sun), 0.0);
#ifdef SHADOWS
  if (light > 0.0) light *= sunlit(v_place, normal, false);
#endif
  float day = smoothstep(-0.12, 0.25, u_sun.z);
  vec3 sunlight = mix(vec3(0.95, 0.70, 0.46), vec3(0.9), smoothstep(0.02, 0.4, u_sun.z));
  vec3 lit = u_color * (mix(vec3(0.12, 0.13, 0.17), vec3(0.38, 0.42, 0.48), day) *
    (0.75 + 0.25 * smooth_normal.z) + sunlight * smoothstep(-0.02, 0.04, u_sun.z) * light);
  float veil = 1.0 - exp(-length(v_place) * u_haze);
  vec3 haze = skyAt(normalize(vec3(v_place.xy, max(v_place.z, 0.0))), u_sun, false);
  color = vec4(mix(min(lit, vec3(1.0)), haze, veil * veil), 1.0);
}
