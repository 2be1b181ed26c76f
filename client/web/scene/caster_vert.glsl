#version 300 es
// Ground that casts a shadow: a block of a cascade's own heights, seen from the sun.
precision highp float;
precision highp int;
precision highp sampler2DArray;

uniform sampler2DArray u_casters;
uniform int u_layer;
uniform mat4 u_view;
uniform ivec2 u_first; // index of vertex 0 in the layer
uniform int u_side;    // vertices in a row
uniform vec2 u_step;   // metres from index to index
uniform vec3 u_offset; // the place of the layer's index 0, height 0
uniform vec4 u_ends;   // the field's first and last sample, as indices of the layer

out vec3 v_place;
out vec4 v_at; // w: > 0 beside a hole

const float HOLE = 1e30;

void main() {
  ivec2 index = u_first + ivec2(gl_VertexID % u_side, gl_VertexID / u_side);
  float z = texelFetch(u_casters, ivec3(index, u_layer), 0).r;
  bool hole = z >= HOLE;
  vec2 at = clamp(vec2(index), u_ends.xy, u_ends.zw);
  v_place = vec3(at * u_step + u_offset.xy, hole ? 0.0 : z + u_offset.z);
  v_at = vec4(0.0, 0.0, 0.0, hole ? 1.0 : 0.0);
  gl_Position = u_view * vec4(v_place, 1.0);
}
