#version 300 es
// Only depth. Holes, sand patches and what a finer layer has are left out of ground that casts.
precision highp float;
precision highp sampler2D;

uniform vec4 u_inner; // of the finer layer: x0, y0, x1, y1; none where x1 < x0
#include "cut"

in vec3 v_place;
in vec4 v_at;

void main() {
  if (v_at.w > 0.001 || inside(v_place.xy, u_inner) > 0.0 || isCut(v_place.xy)) discard;
}
