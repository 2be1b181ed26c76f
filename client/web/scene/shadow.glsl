// How much of the sun reaches a place: cascaded shadow maps (shadows.js), 4 x 4 texels a place.
// Included by fragment shaders.
uniform highp sampler2DArray u_shadows; // a layer a cascade: depth along the light
uniform highp sampler2DArray u_casters; // a layer a cascade: the heights of ground that casts
uniform mat3 u_light;         // columns: the map's two axes, and the way that the light travels
uniform vec2 u_depth;         // of the eye along the light, and 1 / metres of the whole range
uniform int u_cascade_count;
uniform vec4 u_cascades[4];   // the eye's texel, metres of a texel
uniform vec4 u_radii;
uniform vec4 u_caster_at[4];  // indices a metre, the eye's index
uniform int u_split;          // of cells, as in shadows.js
uniform vec3 u_caster_end;    // last cell of a layer, the eye's height

const float STEEP = 20.0; // slopes of depth are taken for at most so steep

// The ground at p as a cascade has it, so that ground casts no shadow on itself for being drawn
// with other triangles than it casts with.
void toCaster(int k, inout vec3 p, inout vec3 normal) {
  vec2 index = p.xy * u_caster_at[k].xy + u_caster_at[k].zw;
  index = clamp(index, vec2(0.0), u_caster_end.xy + 0.9999);
  ivec2 cell = ivec2(index);
  vec2 f = index - vec2(cell);
  float a = texelFetch(u_casters, ivec3(cell, k), 0).r;
  float b = texelFetch(u_casters, ivec3(cell + ivec2(1, 0), k), 0).r;
  float c = texelFetch(u_casters, ivec3(cell + ivec2(0, 1), k), 0).r;
  float d = texelFetch(u_casters, ivec3(cell + ivec2(1, 1), k), 0).r;
  bool anti = u_split == 1 || (u_split == 2 && ((cell.x + cell.y) & 1) == 0);
  vec2 rise;
  float z;
  if (anti) {
    bool low = f.x + f.y <= 1.0;
    rise = low ? vec2(b - a, c - a) : vec2(d - c, d - b);
    z = low ? a + dot(f, rise) : d - dot(1.0 - f, rise);
  } else {
    rise = f.x >= f.y ? vec2(b - a, d - b) : vec2(d - c, c - a);
    z = a + dot(f, rise);
  }
  if (abs(z) > 1e20 || abs(rise.x) + abs(rise.y) > 1e20) return; // beside a hole
  p.z = z - u_caster_end.z;
  normal = normalize(vec3(-rise * u_caster_at[k].xy, 1.0));
}

float reaches(int k, vec3 p, vec3 normal, bool isGround) {
  if (isGround) toCaster(k, p, normal);
  vec4 cascade = u_cascades[k];
  vec3 at = p * u_light, facing = normal * u_light;
  if (facing.z >= 0.0) return 0.0;
  vec2 slope = clamp(facing.xy / -facing.z, -STEEP, STEEP) * cascade.zw;
  vec2 texel = at.xy / cascade.zw + cascade.xy, low = floor(texel - 0.5), f = texel - 0.5 - low;
  // The plane of the place as the map has it where it is lit; nearer to the sun, because ground
  // rises beside a valley's line.
  float size = 0.5 * (cascade.z + cascade.w), bias = size + 0.25 * (abs(slope.x) + abs(slope.y));
  float plane = at.z + u_depth.x - bias + dot(slope, low - 0.5 - texel);
  vec4 across = vec4(0.0, 1.0, 2.0, 3.0) * slope.x + plane, lit = vec4(0.0);
  float soft = 2.0 / size; // not at once, so that rounding is not seen
  vec4 weights = vec4(1.0 - f.y, 1.0, 1.0, f.y);
  ivec2 first = ivec2(low) - 1;
  for (int j = 0; j < 4; j++) {
    vec4 depths = vec4(texelFetch(u_shadows, ivec3(first + ivec2(0, j), k), 0).r,
      texelFetch(u_shadows, ivec3(first + ivec2(1, j), k), 0).r,
      texelFetch(u_shadows, ivec3(first + ivec2(2, j), k), 0).r,
      texelFetch(u_shadows, ivec3(first + ivec2(3, j), k), 0).r);
    vec4 behind = depths / u_depth.y - across - float(j) * slope.y;
    lit += weights[j] * clamp(soft * behind + 1.0, 0.0, 1.0);
  }
  return dot(lit, vec4(1.0 - f.x, 1.0, 1.0, f.x)) / 9.0;
}

// p relative to the eye; 1: all of it. The last quarter of a cascade goes over into the next.
float sunlit(vec3 p, vec3 normal, bool isGround) {
  float away = length(p);
  for (int k = 0; k < u_cascade_count; k++) {
    float radius = u_radii[k];
    if (away >= radius) continue;
    float lit = reaches(k, p, normal, isGround), over = clamp(4.0 * away / radius - 3.0, 0.0, 1.0);
    if (over <= 0.0) return lit;
    return mix(lit, k + 1 < u_cascade_count ? reaches(k + 1, p, normal, isGround) : 1.0, over);
  }
  return 1.0;
}
