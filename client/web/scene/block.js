/**
 * Uniforms of a rectangle of samples on its own: no level beside it to blend with. What
 * the comparison at full resolution and the ground under a patch of sand are drawn with.
 */

/**
 * @param {WebGL2RenderingContext} gl @param {object} at places of the uniforms
 * @param {object} field @param {number[]} eye
 * @param {{first: number[], vertices: number, texels: number, finer?: number}} block its first
 *   sample, its vertices along a row, the side of the textures that hold it, and how many of its
 *   own samples make one of the field's
 */
export function setPlainBlock(gl, at, field, eye, { first, vertices, texels, finer = 1 }) {
  const index = first.map((v) => v * finer);
  gl.uniform1i(at.u_side, vertices);
  gl.uniform1i(at.u_vertices, 2 ** 30);
  gl.uniform1i(at.u_mask, texels - 1);
  gl.uniform2i(at.u_first, ...index);
  gl.uniform2i(at.u_anchor, ...index);
  gl.uniform2f(at.u_offset, ...field.place(0, ...first).map((v, i) => v - eye[i]));
  gl.uniform1f(at.u_eye_z, eye[2]);
  gl.uniform2f(at.u_step, ...field.spacing.map((s) => s / finer));
  gl.uniform2f(at.u_end, ...field.last.map((cells) => cells * finer));
  gl.uniform2f(at.u_viewer, 0, 0);
  gl.uniform2f(at.u_blend, 0, 0);
  gl.uniform1f(at.u_fade, 0);
  if (at.u_relief) gl.uniform2f(at.u_relief, 0, 0);
  gl.uniform3f(at.u_gradient, 1 / texels, ...index.map((v) => (v % texels + 0.5) / texels));
  gl.uniform1f(at.u_coarse, 0);
}
