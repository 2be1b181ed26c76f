// Where ground is left out for sand patches. Included by fragment shaders.
uniform sampler2D u_rects; // a texel a sand patch: x0, y0, x1, y1 relative to the eye
uniform int u_rect_count;
uniform float u_rim;       // metres of a patch's rim that fade

float inside(vec2 place, vec4 rect) {
  vec2 d = min(place - rect.xy, rect.zw - place);
  return min(d.x, d.y);
}

bool isCut(vec2 place) {
  for (int i = 0; i < u_rect_count; i++) // where patches overlap they look the same
    if (inside(place, texelFetch(u_rects, ivec2(i, 0), 0)) > 0.2 * u_rim) return true;
  return false;
}
