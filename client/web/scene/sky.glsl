// smoothstep of constant ends, without its division.
float ease(float from, float to, float x) {
  float t = clamp((x - from) * (1.0 / (to - from)), 0.0, 1.0);
  return t * t * (3.0 - 2.0 * t);
}

// The colour of the sky in a direction, bright around the sun, and of haze, which is as the sky
// just over the horizon.
vec3 skyAt(vec3 way, vec3 sun, bool withDisc) {
  float day = ease(-0.12, 0.25, sun.z), up = max(way.z, 0.0), near = dot(way, sun);
  float low = day * (1.0 - ease(0.05, 0.45, sun.z));
  vec3 edge = mix(vec3(0.05, 0.06, 0.10), mix(vec3(0.74, 0.80, 0.87), vec3(0.93, 0.76, 0.58),
    low * (0.45 + 0.55 * ease(-0.6, 1.0, near))), day);
  vec3 high = mix(vec3(0.36, 0.55, 0.83), vec3(0.37, 0.48, 0.68), low);
  vec3 top = mix(vec3(0.01, 0.02, 0.05), high, day);
  vec3 sky = mix(edge, top, sqrt(up) * (0.9 + 0.1 * up)); // about the power of 0.55
  vec3 glow = mix(vec3(1.0, 0.96, 0.86), vec3(1.0, 0.72, 0.42), low) * day;
  // powers of 12 and 160, too, without pow(), which costs a processor much more
  float n = max(near, 0.0), n4 = n * n * n * n, n16 = n4 * n4 * n4 * n4, n32 = n16 * n16;
  sky += glow * (0.22 * n4 * n4 * n4 + 0.25 * n32 * n32 * n32 * n32 * n32);
  if (withDisc) sky = mix(sky, vec3(1.0, 0.98, 0.92), ease(0.99988, 0.99993, near));
  return min(sky, vec3(1.0));
}
