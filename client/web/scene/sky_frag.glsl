#version 300 es
// The sky of the view: see sky.glsl.
precision highp float;

#include "sky"

in vec3 v_way;
flat in vec3 v_sun;
out vec4 color;

void main() {
  color = vec4(skyAt(normalize(v_way), v_sun, true), 1.0);
}
