/**
 * Which share of the sun reaches places in the world, by the shader that shades ground and meshes; a
 * measurement, nothing that a visitor of the page sees.
 */
import { makeProgram, makeTarget } from "/web/gl.js";

const WIDTH = 512;

/**
 * @param {object} terrain the 3D view, its shadows drawn
 * @param {{points: number[][], normals?: number[][], isGround?: boolean}} o in the locale's frame;
 *   isGround: they are on the heightfield, which has its own normals
 * @returns {Promise<number[]>} 0 in shadow, 1 in the sun
 */
export async function sunlitAt(terrain, { points, normals, isGround = false }) {
  const { gl, shadows, camera } = terrain, height = Math.max(1, Math.ceil(points.length / WIDTH));
  const { program, at } = terrain.probe ??= await makeProgram(gl, "probe_vert", "probe_frag");
  const target = makeTarget(gl, WIDTH, height), buffers = [gl.createBuffer(), gl.createBuffer()];
  const values = [points.flatMap((p) => p.map((v, i) => v - camera.eye[i])),
    points.flatMap((_, i) => normals?.[i] ?? [0, 0, 1])];
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  for (const [location, buffer] of buffers.entries()) {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(values[location]), gl.STREAM_DRAW);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, 3, gl.FLOAT, false, 0, 0);
  }
  gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
  gl.viewport(0, 0, WIDTH, height);
  gl.disable(gl.DEPTH_TEST);
  gl.disable(gl.BLEND);
  gl.useProgram(program);
  shadows.set(at, camera.eye);
  gl.uniform1i(at.u_ground, isGround ? 1 : 0);
  gl.uniform1i(at.u_width, WIDTH);
  gl.uniform2f(at.u_size, WIDTH, height);
  gl.drawArrays(gl.POINTS, 0, points.length);
  const bytes = new Uint8Array(4 * WIDTH * height);
  gl.readPixels(0, 0, WIDTH, height, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  gl.bindVertexArray(null);
  for (const buffer of buffers) gl.deleteBuffer(buffer);
  gl.deleteVertexArray(array);
  target.release();
  return points.map((_, i) => (bytes[4 * i] + bytes[4 * i + 1] / 255) / 255);
}
