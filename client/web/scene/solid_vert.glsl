#version 300 es
// A mesh where it lies: its own places, turned, moved and relative to the eye.
precision highp float;

uniform mat4 u_view;
uniform vec3 u_at;   // its origin relative to the eye
uniform vec4 u_turn; // unit quaternion x y z w

layout(location = 0) in vec3 a_place;
layout(location = 1) in vec3 a_normal; // 0: that of the face
out vec3 v_place, v_normal;

vec3 turned(vec3 v) {
  vec3 twice = 2.0 * cross(u_turn.xyz, v);
  return v + u_turn.w * twice + cross(u_turn.xyz, twice);
}

void main() {
  v_place = turned(a_place) + u_at;
  v_normal = turned(a_normal);
  gl_Position = u_view * vec4(v_place, 1.0);
}
