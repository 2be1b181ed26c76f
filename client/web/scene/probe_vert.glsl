#version 300 es
// A place that is asked for its share of the sun (probe.js), as a pixel of its own.
precision highp float;

uniform int u_width;
uniform vec2 u_size; // of the picture

layout(location = 0) in vec3 a_place;
layout(location = 1) in vec3 a_normal;
out vec3 v_place;
out vec3 v_normal;

void main() {
  v_place = a_place;
  v_normal = a_normal;
  vec2 pixel = vec2(gl_VertexID % u_width, gl_VertexID / u_width) + 0.5;
  gl_Position = vec4(2.0 * pixel / u_size - 1.0, 0.0, 1.0);
  gl_PointSize = 1.0;
}
