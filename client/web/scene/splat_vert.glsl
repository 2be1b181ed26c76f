#version 300 es
// One of the four spheres of a granule: a square around it, across the way to it from the eye, or
// across the sun's light.
precision highp float;

uniform mat4 u_view;
uniform vec3 u_eye[2]; // as float32 has it, and the rest
uniform vec4 u_way;    // xyz: the way that light travels; w 0: the view is from the eye

layout(location = 0) in vec3 a_place;
layout(location = 1) in vec4 a_turn; // unit quaternion x y z w
layout(location = 2) in vec2 a_look; // radius, shade

flat out vec4 v_sphere; // relative to the eye, radius
flat out vec4 v_turn;
flat out float v_shade;
out vec3 v_place;

void main() {
  int k = gl_InstanceID & 3;
  vec2 side = vec2(k < 2 ? 1.0 : -1.0, (k & 1) == 0 ? 1.0 : -1.0);
  vec3 off = vec3(side, side.x * side.y) * (a_look.x * 0.70710678);
  vec3 twice = 2.0 * cross(a_turn.xyz, off);
  vec3 middle = a_place - u_eye[0] - u_eye[1] + off + a_turn.w * twice + cross(a_turn.xyz, twice);
  float reach = a_look.x;
  v_sphere = vec4(middle, reach);
  v_turn = a_turn;
  v_shade = a_look.y;
  if (u_way.w == 0.0) { // its outline is nearer than its middle
    float part = clamp(1.0 - reach * reach / dot(middle, middle), 1e-4, 1.0);
    middle *= part;
    reach *= sqrt(part);
  }
  vec3 way = normalize(u_way.w == 0.0 ? middle : u_way.xyz);
  vec3 right = normalize(cross(way, abs(way.z) < 0.9 ? vec3(0.0, 0.0, 1.0) : vec3(1.0, 0.0, 0.0)));
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
  v_place = middle + (right * corner.x + cross(right, way) * corner.y) * reach * 1.01;
  gl_Position = u_view * vec4(v_place, 1.0);
}
