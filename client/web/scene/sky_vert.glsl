#version 300 es
// A triangle over the whole picture, behind everything.
precision highp float;

uniform mat4 u_back; // from the picture to directions
uniform vec3 u_sun;

out vec3 v_way;
flat out vec3 v_sun; // a uniform that a pixel reads costs it more on llvmpipe

void main() {
  vec2 at = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
  v_sun = u_sun;
  v_way = (u_back * vec4(at, 1.0, 1.0)).xyz;
  gl_Position = vec4(at, 1.0, 1.0);
}
