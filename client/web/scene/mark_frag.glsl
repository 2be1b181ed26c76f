#version 300 es
// A mark's colour; what the ground hides shines through faintly.
precision mediump float;
uniform float u_faint;
in vec4 v_color;
out vec4 color;

void main() {
  color = vec4(v_color.rgb, v_color.a * u_faint);
}
