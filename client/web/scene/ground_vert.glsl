#version 300 es
// A level of the clipmap: vertices of a grid, placed by their number, raised by the height texture.
//
// Heights: (this level, the next coarser one at the same place); a hole has a height too, and is
// marked by u_hole. Places are relative to the eye. Indices beyond the field are drawn to its edge.
precision highp float;
precision highp int;
precision highp sampler2D;

uniform sampler2D u_heights;
uniform mat4 u_view;
uniform ivec2 u_first;  // index of vertex 0 at this level
uniform int u_side;     // vertices in a row
uniform int u_vertices; // those from here on are the same again, hanging below
uniform int u_mask;     // the height texture's side - 1
uniform ivec2 u_anchor; // an index near the eye
uniform vec2 u_offset;  // its place relative to the eye
uniform float u_eye_z;
uniform vec2 u_step;    // metres from index to index
uniform vec2 u_end;     // index of the field's last sample, with a fraction
uniform vec2 u_viewer;  // the eye as indices, relative to u_anchor
uniform vec2 u_blend;   // where blending begins and 1 / its width, in indices
uniform float u_fade;   // 1: the shape of the coarser level
uniform vec3 u_gradient; // indices of the gradient texture: x · anchor-relative + yz

out vec3 v_place;
out vec4 v_at; // xy: where to read the gradients; z: share of the coarser level; w: > 0 beside a hole
out vec2 v_index; // its index relative to u_anchor

const float HOLE = 1e30;

void main() {
  bool hangs = gl_VertexID >= u_vertices;
  int vertex = hangs ? gl_VertexID - u_vertices : gl_VertexID;
  ivec2 index = u_first + ivec2(vertex % u_side, vertex / u_side);
  vec2 heights = texelFetch(u_heights, index & u_mask, 0).xy;
  vec2 place = clamp(vec2(index), vec2(0.0), u_end) - vec2(u_anchor);
  vec2 away = (abs(vec2(index - u_anchor) - u_viewer) - u_blend.x) * u_blend.y;
  float blend = max(clamp(max(away.x, away.y), 0.0, 1.0), u_fade);
  bool hole = heights.x >= HOLE;
  float z = hole ? heights.y : heights.x;
  if (z >= HOLE) z = u_eye_z;
  if (!hole && heights.y < HOLE) z = mix(heights.x, heights.y, blend);
  if (hangs) z -= 0.5 * u_step.x;
  v_place = vec3(place * u_step + u_offset, z - u_eye_z);
  v_at = vec4(place * u_gradient.x + u_gradient.yz, blend, hole ? 1.0 : 0.0);
  v_index = place;
  gl_Position = u_view * vec4(v_place, 1.0);
}
