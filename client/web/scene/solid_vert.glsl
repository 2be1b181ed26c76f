#version 300 es
// A mesh where it lies: its own places, turned, moved and relative to the eye.
precision highp float;

uniform mat4 u_view;
uniform vec3 u_at;   // its origin relative to the eye
uniform vec4 u_turn; // unit quaternion x y z w

layout(location = 0) in vec3 a_place;
out vec3 v_place;

void main() {
  vec3 twice = 2.0 * cross(u_turn.xyz, a_place);
  v_place = a_place + u_turn.w * twice + cross(u_turn.xyz, twice) + u_at;
  gl_Position = u_view * vec4(v_place, 1.0);
}
