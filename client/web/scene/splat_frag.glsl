#version 300 es
// Where the pixel's ray meets a sphere of a granule. Its depth is written, so that spheres cut each
// other and all else. Grain and bumps are fixed to the granule and turn with it; light and haze are
// the ground's. At a patch's rim, and while granules come and go, the surface below is seen through
// them. DEPTH: only depth, also as a colour of 24 bits for tests; there some pixels are left out.
precision highp float;

uniform mat4 u_view;
uniform vec4 u_way; // as in splat_vert.glsl
uniform float u_cover; // 1: nothing is seen through them
uniform vec4 u_rect;   // of the patch, relative to the eye
uniform float u_rim;   // metres of it over which they go
#ifndef DEPTH
uniform sampler2D u_noise;
uniform vec3 u_grains; // the colour of the material
uniform vec3 u_sun;
uniform float u_haze;

#include "sky"
#ifdef SHADOWS
#include "shadow"
#endif
#endif

flat in vec4 v_sphere;
flat in vec4 v_turn;
flat in float v_shade;
in vec3 v_place;
out vec4 color;

vec3 turned(vec4 q, vec3 v) {
  vec3 twice = 2.0 * cross(q.xyz, v);
  return v + q.w * twice + cross(q.xyz, twice);
}

#ifdef DEPTH
// Even over few pixels (J. Jimenez, "Next generation post processing", 2014).
float threshold(vec2 pixel) {
  return fract(52.9829189 * fract(dot(pixel, vec2(0.06711056, 0.00583715))));
}
#endif

void main() {
  vec3 from = u_way.w == 0.0 ? vec3(0.0) : v_place;
  vec3 way = u_way.w == 0.0 ? normalize(v_place) : u_way.xyz, to = v_sphere.xyz - from;
  float along = dot(to, way);
  vec3 beside = to - way * along;
  float under = v_sphere.w * v_sphere.w - dot(beside, beside);
  along -= sqrt(max(under, 0.0));
  if (under < 0.0 || (u_way.w == 0.0 && along < 0.0)) discard;
  vec3 place = from + way * along;
  vec2 side = min(place.xy - u_rect.xy, u_rect.zw - place.xy);
  float cover = u_cover * smoothstep(0.0, u_rim, min(side.x, side.y));
#ifdef DEPTH
  if (threshold(gl_FragCoord.xy) >= cover) discard;
#else
  if (cover < 0.02) discard;
#endif
  vec4 clip = u_view * vec4(place, 1.0);
  float depth = clamp(0.5 * clip.z / clip.w + 0.5, 0.0, 1.0);
  gl_FragDepth = depth;
#ifdef DEPTH
  uint bits = uint(depth * 16777215.0);
  color = vec4(uvec4(bits >> 16, bits >> 8, bits, 255u) & 255u) / 255.0;
#else
  vec3 normal = (place - v_sphere.xyz) / v_sphere.w;
  vec3 own = turned(vec4(-v_turn.xyz, v_turn.w), normal), at = 0.11 * own + v_shade;
  vec3 bump = vec3(texture(u_noise, at.yz).r, texture(u_noise, at.zx).r, texture(u_noise, at.xy).r);
  float grain = texture(u_noise, 0.4 * own.xy + at.zz).r;
  vec3 rough = normalize(normal + turned(v_turn, 0.9 * (bump - 0.5)));
  float light = max(dot(rough, u_sun), 0.0);
#ifdef SHADOWS
  if (light > 0.0) light *= sunlit(place, normal, false);
#endif
  float day = smoothstep(-0.12, 0.25, u_sun.z);
  vec3 sunlight = mix(vec3(1.05, 0.78, 0.52), vec3(1.05, 1.0, 0.90), smoothstep(0.02, 0.4, u_sun.z));
  vec3 lit = u_grains * (0.75 + 0.35 * v_shade + 0.3 * (grain - 0.5)) *
    (mix(vec3(0.10, 0.11, 0.15), vec3(0.34, 0.38, 0.45), day) * (0.6 + 0.4 * rough.z) +
    sunlight * smoothstep(-0.02, 0.04, u_sun.z) * light);
  float veil = 1.0 - exp(-length(place) * u_haze);
  vec3 haze = skyAt(normalize(vec3(place.xy, max(place.z, 0.0))), u_sun, false);
  color = vec4(mix(min(lit, vec3(1.0)), haze, veil * veil), cover);
#endif
}
