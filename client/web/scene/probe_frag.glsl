#version 300 es
// The share of the sun that reaches a place, in two bytes.
precision highp float;

uniform int u_ground; // 1: places of the ground, 0: of meshes
#include "shadow"

in vec3 v_place;
in vec3 v_normal;
out vec4 color;

void main() {
  float part = sunlit(v_place, normalize(v_normal), u_ground == 1) * 255.0;
  color = vec4(floor(part) / 255.0, fract(part), 0.0, 1.0);
}
