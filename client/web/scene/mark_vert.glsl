#version 300 es
// Points and lines over the ground, relative to the eye.
precision highp float;
uniform mat4 u_view;
uniform float u_point;
uniform vec2 u_shift; // in the picture, for lines wider than a pixel
layout(location = 0) in vec3 a_place;
layout(location = 1) in vec4 a_color;
out vec4 v_color;

void main() {
  v_color = a_color;
  gl_Position = u_view * vec4(a_place, 1.0);
  gl_Position.xy += u_shift * gl_Position.w;
  gl_PointSize = u_point;
}
