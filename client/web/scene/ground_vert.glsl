#version 300 es
// A level of the clipmap: vertices of a grid, placed by their number, raised by the height texture.
//
// Heights: (this level, the next coarser one at the same place); a hole has a height too, and is
// marked by v_at.w. Places are relative to the eye. Indices beyond the field are drawn to its edge.
// All that is smooth over a triangle is worked out here, not by pixel: on llvmpipe a uniform costs a
// pixel's program 30 instructions a component.
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
uniform float u_coarse; // 0: this level has the slopes of the coarser one
uniform vec2 u_noise_at; // the eye's place, reduced to the noise's period
uniform vec3 u_range;   // least height, 1 / (greatest - least), the eye's
uniform vec3 u_sun;
uniform float u_haze;   // 1 / metres
#include "sky"

out vec3 v_place;
out vec4 v_at;   // xy: where to read the gradients; z: share of the coarser ones; w: > 0 beside a hole
out vec4 v_tone; // xy: where to read the noise; z: height, 0 to 1; w: how much snow there may be
out vec4 v_haze; // rgb: to add to the ground's colour; a: what is left of that
#ifdef RELIEF
out vec3 v_index; // xy: relative to u_anchor; z: share of the coarser level
#endif

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
  v_at = vec4(place * u_gradient.x + u_gradient.yz, u_coarse * blend, hole ? 1.0 : 0.0);
  v_tone = vec4((v_place.xy + u_noise_at) * (1.0 / 512.0),
    (v_place.z + u_range.z - u_range.x) * u_range.y, ease(150.0, 600.0, 1.0 / u_range.y));
  float veil = 1.0 - exp(-length(v_place) * u_haze);
  veil *= veil;
  vec3 way = normalize(vec3(v_place.xy, max(v_place.z, 1e-3)));
  v_haze = vec4(veil * skyAt(way, u_sun, false), 1.0 - veil);
#ifdef RELIEF
  v_index = vec3(place, blend);
#endif
  gl_Position = u_view * vec4(v_place, 1.0);
}
