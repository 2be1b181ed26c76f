#version 300 es
// Flat faces, seen from both sides, or a ceiling's from below, lit by the ground's sun and veiled by its haze.
precision highp float;

uniform vec3 u_color;
uniform vec3 u_sun;
uniform vec3 u_sky;
uniform float u_haze;
uniform vec3 u_origin;  // of the locale's frame, relative to the eye
uniform vec3 u_up[2];   // of a ceiling, against gravity: everywhere, and by the place; else 0

in vec3 v_place;
out vec4 color;

void main() {
  vec3 normal = normalize(cross(dFdx(v_place), dFdy(v_place)));
  if (dot(normal, v_place) > 0.0) normal = -normal;
  vec3 up = u_up[0] + u_up[1] * (v_place - u_origin);
  if (dot(normal, up) > 0.02 * length(up)) discard;
  float light = max(dot(normal, u_sun), 0.0);
  vec3 lit = u_color * (vec3(0.38, 0.42, 0.48) * (0.75 + 0.25 * normal.z) + 0.9 * light);
  float veil = 1.0 - exp(-length(v_place) * u_haze);
  color = vec4(mix(min(lit, vec3(1.0)), u_sky, veil * veil), 1.0);
}
