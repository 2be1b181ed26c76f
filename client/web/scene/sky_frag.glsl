#version 300 es
// The sky of the view: see sky.glsl.
precision highp float;

uniform vec3 u_sun;
#include "sky"

in vec3 v_way;
out vec4 color;

void main() {
  color = vec4(skyAt(normalize(v_way), u_sun, true), 1.0);
}
