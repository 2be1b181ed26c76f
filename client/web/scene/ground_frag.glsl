#version 300 es
// The ground's colour: by height and slope, with a noise that is projected from above (a point's
// place by the repetition, as text S algorithm 3), lit by a sun, veiled by haze. With DETAIL, grass,
// earth, rock and snow have textures with normals in the ground's tangent frame. Holes and the
// inside of sand patches are left out; over a patch's rim ground goes over into sand.
precision highp float;
precision highp sampler2D;

uniform sampler2D u_gradients; // dz/dx, dz/dy of this level, and of the coarser one
#ifdef RELIEF
uniform sampler2D u_fine;        // heights of the ground, much finer than the level (relief.js)
uniform sampler2D u_coarse_fine; // of the coarser one
uniform vec2 u_relief;      // metres around the triangle in which the ground is; the eye's height
uniform vec4 u_fine_at;     // index · xy + zw: where to read them
uniform vec4 u_coarse_fine_at;
uniform vec2 u_taps;        // indices to either side that their slopes are taken over
uniform vec2 u_step;        // metres from index to index
#endif
uniform sampler2D u_noise;
uniform vec3 u_range;       // least height, 1 / (greatest - least), the eye's
uniform vec3 u_sun;
#ifdef DETAIL
uniform highp sampler2DArray u_materials; // grass, earth, rock, snow: tone, slopes, height
#endif
#include "sky"
#ifdef SAND
#include "cut"
uniform vec4 u_rect;        // of the patch that is drawn
uniform int u_sand;         // 1: this is a patch, drawn over the ground
uniform vec3 u_grains;      // the colour of its granules
uniform float u_cover;      // how much of it is seen; else the ground's
#endif
#ifdef SHADOWS
#include "shadow"
#endif
uniform float u_contour;    // metres from one line of height to the next

in vec3 v_place;
in vec4 v_at, v_tone, v_haze;
#ifdef RELIEF
in vec3 v_index;
#endif
out vec4 color;

#ifdef DETAIL
// How much of grass, earth, rock and snow; ground that is hollow (> 0) is softer, crests are bare.
vec4 kinds(float height, float slope, float hollow, float noise) {
  float t = clamp(height + (noise - 0.5) * 0.12, 0.0, 1.0);
  float rock = ease(0.45, 0.95, slope + (noise - 0.5) * 0.3 - 0.6 * hollow);
  float snow = ease(0.72, 0.92, t) * v_tone.w;
  float earth = clamp(1.0 - ease(0.02, 0.12, t) + ease(0.22, 0.5, slope) * 0.6 -
    hollow, 0.0, 1.0);
  return vec4((1.0 - rock) * (1.0 - snow) * vec2(1.0 - earth, earth), rock, (1.0 - rock) * snow);
}

// Tone and slopes of the ground's textures, near and at four times their size, so that no
// repetition is seen; each fades where it is finer than a pixel, which its mipmaps do.
vec3 detail(vec2 at, vec4 share) {
  vec3 sum = vec3(0.0);
  for (int k = 0; k < 4; k++) {
    if (share[k] < 0.02) continue;
    vec3 fine = texture(u_materials, vec3(at * (1.0 / 8.0), float(k))).rgb;
    vec3 wide = texture(u_materials, vec3(at.yx * (1.0 / 32.0), float(k))).rgb;
    sum += share[k] * vec3(fine.r + wide.r - 1.0, fine.gb + 0.5 * wide.bg - 0.753);
  }
  return sum;
}
#endif

vec3 material(float height, float slope, float noise) {
  float t = clamp(height + (noise - 0.5) * 0.12, 0.0, 1.0);
  vec3 low = mix(vec3(0.60, 0.56, 0.40), vec3(0.40, 0.47, 0.27), ease(0.0, 0.10, t));
  float snow = ease(0.72, 0.92, t) * v_tone.w;
  vec3 high = mix(vec3(0.52, 0.50, 0.36), vec3(0.92, 0.93, 0.95), snow);
  vec3 soft = mix(low, high, ease(0.25, 0.75, t));
  vec3 rock = mix(vec3(0.42, 0.38, 0.34), vec3(0.50, 0.48, 0.46), t);
  return mix(soft, rock, ease(0.45, 0.95, slope + (noise - 0.5) * 0.3));
}

// How much of a line of height lies here, every fifth one stronger; as wide as a pixel or two.
float contour(float height) {
  float lines = height / u_contour, wide = max(fwidth(lines), 1e-6);
  float near = abs(lines - round(lines)) / wide;
  float strength = mod(round(lines), 5.0) == 0.0 ? 0.75 : 0.4;
  return strength * (1.0 - ease(0.5, 1.2, near)) * (1.0 - ease(0.25, 0.5, wide));
}

#ifdef RELIEF
float fine(vec2 index) {
  float z = texture(u_fine, index * u_fine_at.xy + u_fine_at.zw).r;
  if (v_index.z <= 0.0) return z;
  vec2 at = index * u_coarse_fine_at.xy + u_coarse_fine_at.zw;
  return mix(z, texture(u_coarse_fine, at).r, v_index.z);
}

vec2 slopes(sampler2D heights, vec4 to, vec2 index, float tap) {
  vec2 a = vec2(tap, 0.0) * to.xy, b = vec2(0.0, tap) * to.xy, at = index * to.xy + to.zw;
  return vec2(texture(heights, at + a).r - texture(heights, at - a).r,
    texture(heights, at + b).r - texture(heights, at - b).r) / (2.0 * tap * u_step);
}

// How far above the ground of the textures the sight line is, at `way` of its lengths beyond the
// triangle.
float above(float way) {
  return (1.0 + way) * v_place.z + u_relief.y - fine(v_index.xy + way * v_place.xy / u_step);
}

// Where the sight line meets the ground of the textures, as a part of its length beyond the
// triangle; 0 where that is not found near it.
float meeting() {
  const int steps = 12;
  float most = u_relief.x / length(v_place), each = 2.0 * most / float(steps);
  float way = -most, high = above(way);
  for (int i = 0; i < steps; i++) {
    float next = way + each, low = above(next);
    if (high >= 0.0 && low < 0.0) {
      for (int k = 0; k < 3; k++) {
        float middle = mix(way, next, clamp(high / (high - low), 0.1, 0.9)), z = above(middle);
        if (z >= 0.0) {
          way = middle;
          high = z;
        } else {
          next = middle;
          low = z;
        }
      }
      return mix(way, next, high / (high - low));
    }
    way = next;
    high = low;
  }
  return 0.0;
}
#endif

void main() {
  if (v_at.w > 0.001) discard; // without it a picture with shadows takes llvmpipe a quarter more
  bool isGround = true;
  float bare = 1.0; // how much of the ground is seen
#ifdef SAND
  isGround = u_sand == 0;
  if (!isGround) bare -= u_cover * smoothstep(0.2 * u_rim, u_rim, inside(v_place.xy, u_rect));
  if (isCut(v_place.xy)) discard;
#endif
#ifdef PLAIN // to see where ground is
  color = vec4(1.0);
  return;
#endif
  vec3 place = v_place;
  vec4 slopes_here = texture(u_gradients, v_at.xy);
  vec2 gradient = mix(slopes_here.xy, slopes_here.zw, v_at.z), at = 512.0 * v_tone.xy;
  float height = v_tone.z;
#ifdef RELIEF
  if (u_relief.x > 0.0) {
    place *= 1.0 + meeting();
    at += place.xy - v_place.xy;
    height += (place.z - v_place.z) * u_range.y;
    vec2 index = v_index.xy + (place.xy - v_place.xy) / u_step;
    gradient = slopes(u_fine, u_fine_at, index, u_taps.x);
    if (v_index.z > 0.0) gradient = mix(gradient,
      slopes(u_coarse_fine, u_coarse_fine_at, index, u_taps.y), v_index.z);
  }
#endif
  vec3 normal = normalize(vec3(-gradient, 1.0));
  float noise = texture(u_noise, at * (1.0 / 512.0)).r;
  vec3 ground = material(height, length(gradient), noise);
#ifdef SAND
  if (!isGround) {
    float grain = texture(u_noise, at * (1.0 / 4.0)).r;
    ground = mix(u_grains * (0.9 + 0.22 * grain), ground, bare);
  }
#endif
#ifdef DETAIL
  vec2 next = 2.0 / vec2(textureSize(u_gradients, 0));
  float hollow = clamp(texture(u_gradients, v_at.xy + vec2(next.x, 0.0)).x - gradient.x +
    texture(u_gradients, v_at.xy + vec2(0.0, next.y)).y - gradient.y, -0.5, 0.5);
  vec3 fine = detail(at, kinds(height, length(gradient), hollow, noise)) * bare;
  ground *= 1.0 + 0.55 * fine.x - 0.25 * hollow;
  normal = normalize(vec3(-gradient - 1.4 * fine.yz, 1.0));
#endif
  float light = max(dot(normal, u_sun), 0.0);
#ifdef SHADOWS
  if (light > 0.0) light *= sunlit(place, normalize(vec3(-gradient, 1.0)), isGround);
#endif
  float day = ease(-0.12, 0.25, u_sun.z);
  vec3 sunlight = mix(vec3(1.05, 0.78, 0.52), vec3(1.05, 1.0, 0.90), ease(0.02, 0.4, u_sun.z));
  vec3 lit = ground * (mix(vec3(0.10, 0.11, 0.15), vec3(0.34, 0.38, 0.45), day) *
    (0.6 + 0.4 * normal.z) + sunlight * ease(-0.02, 0.04, u_sun.z) * light) *
    (0.9 + 0.2 * noise);
#ifdef CONTOURS
  lit = mix(lit, vec3(0.22, 0.14, 0.08), contour(place.z + u_range.z));
#endif
  color = vec4(min(lit, vec3(1.0)) * v_haze.a + v_haze.rgb, 1.0);
}
