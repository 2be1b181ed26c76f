/**
 * Granules of living patches in the 3D view: splats, each a square that has the depth of a sphere
 * (splat_frag.glsl). A granule is four spheres of one radius, as GET …/granules describes it; its 36
 * bytes go to the graphics card as they come, and serve four instances.
 *
 * The first answer for a patch has all granules, later ones those that have moved since. One request
 * a patch is under way; at rest its tag is known, and nothing comes. The memory for granules is
 * bounded: patches beyond it are not held here, and patches3d.js draws their surface.
 */
import { isSoftware, makeProgram, makeTarget } from "/web/gl.js";

const NUMBERS = 9, RECORD_BYTES = 4 * NUMBERS; // position, orientation, radius, shade
const SPHERES = 4;
const MEMORY_BYTES = 32 * 2 ** 20; // each granule is here and on the card
const SOFTWARE_BYTES = 4 * 2 ** 20; // where the processor draws
const NOISE_UNIT = 3; // as groundpass.js has bound it
const ATTRIBUTES = [[3, 0], [4, 12], [2, 28]]; // numbers, byte

export class Granules {
  /** @param {WebGL2RenderingContext} gl @param {import("./kota.js").Kota} kota */
  static async make(gl, kota) {
    const [plain, shadowed, depth] = await Promise.all([[], ["SHADOWS"], ["DEPTH"]].map((defines) =>
      makeProgram(gl, "splat_vert", "splat_frag", defines)));
    return new Granules(gl, kota, { plain, shadowed, depth });
  }

  constructor(gl, kota, programs) {
    Object.assign(this, { gl, kota, programs });
    this.sets = new Map(); // patch's id → its granules
    this.countMax = Math.floor((isSoftware(gl) ? SOFTWARE_BYTES : MEMORY_BYTES) / 2 / RECORD_BYTES);
    /** Answers with granules; another one after each. */
    this.version = 0;
  }

  /** Granules that are held. */
  get count() {
    return [...this.sets.values()].reduce((sum, set) => sum + set.count, 0);
  }

  /** Asks for a patch's granules, or for those that have moved. @returns {Promise<boolean>} other ones? */
  async read(patch) {
    const known = this.sets.get(patch.id), headers = known?.tag ? { "If-None-Match": known.tag } : {};
    const answer = await this.kota.get(`/v1/locales/${patch.locale}/patches/${patch.id}/granules` +
      (known ? `?since=${known.step}` : ""), { quiet: true, headers });
    if (answer.status === 304 || this.sets.get(patch.id) !== known) return false;
    const count = Number(answer.headers.get("kota-granules"));
    if (!count) return false; // being filled; or it has ended, and what is drawn goes bit by bit
    if (known && known.count !== count) return this.drop(patch.id); // all of them, next
    if (!known && this.count + count > this.countMax) return false;
    const set = known ?? this.#open(patch.id, count);
    set.step = Number(answer.headers.get("kota-step"));
    set.tag = answer.headers.get("etag") ?? "";
    if (!answer.buffer.byteLength) return false;
    this.#take(set, new Float32Array(answer.buffer), Boolean(known));
    this.version++;
    return true;
  }

  #open(id, count) {
    const { gl } = this, set = { count, step: 0, tag: "", cover: 0, isWanted: true,
      numbers: new Float32Array(NUMBERS * count),
      buffer: gl.createBuffer(), array: gl.createVertexArray() };
    gl.bindVertexArray(set.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, set.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, RECORD_BYTES * count, gl.DYNAMIC_DRAW);
    for (const [location, [numbers, byte]] of ATTRIBUTES.entries()) {
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, numbers, gl.FLOAT, false, RECORD_BYTES, byte);
      gl.vertexAttribDivisor(location, SPHERES);
    }
    gl.bindVertexArray(null);
    this.sets.set(id, set);
    return set;
  }

  /** All granules, or some, each after its number. */
  #take(set, values, isPart) {
    const { gl } = this, ids = new Uint32Array(values.buffer);
    if (!isPart) set.numbers.set(values);
    else for (let i = 0; i < values.length; i += NUMBERS + 1)
      set.numbers.set(values.subarray(i + 1, i + 1 + NUMBERS), NUMBERS * ids[i]);
    gl.bindBuffer(gl.ARRAY_BUFFER, set.buffer);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, set.numbers);
  }

  /** Forgets a patch's granules. @returns {boolean} were there some? */
  drop(id) {
    const set = this.sets.get(id);
    if (!set) return false;
    this.gl.deleteBuffer(set.buffer);
    this.gl.deleteVertexArray(set.array);
    this.version++;
    return this.sets.delete(id);
  }

  /**
   * Draws those of patches over the ground.
   * @param {{view: Float32Array, light: object, shadows: object|null}} pass as the ground was drawn with
   * @param {number[]} eye
   * @param {{id: number, color: number[], rect: number[], rim: number, cover: number}[]} patches
   *   cover: 0 to 1, how far they have come; over the rim of the rectangle they go
   */
  draw(pass, eye, patches) {
    if (!patches.length) return;
    const { gl } = this, { light, shadows } = pass;
    const { program, at } = shadows ? this.programs.shadowed : this.programs.plain;
    gl.useProgram(program);
    shadows?.set(at, eye);
    gl.uniform1i(at.u_noise, NOISE_UNIT);
    gl.uniform3f(at.u_sun, ...light.sun);
    gl.uniform1f(at.u_haze, light.haze);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    this.#drawAll(at, pass.view, eye, [0, 0, 0, 0], patches);
    gl.disable(gl.BLEND);
  }

  /** Only depth, for a map of shadows. @param {number[]} way that light travels */
  cast(view, origin, way, patches) {
    const { program, at } = this.programs.depth;
    this.gl.useProgram(program);
    this.#drawAll(at, view, origin, [...way, 1], patches);
  }

  #drawAll(at, view, eye, way, patches) {
    const { gl } = this, near = eye.map(Math.fround);
    gl.uniformMatrix4fv(at.u_view, false, view);
    gl.uniform3fv(at.u_eye, [...near, ...eye.map((v, i) => v - near[i])]);
    gl.uniform4f(at.u_way, ...way);
    for (const { id, color, rect, rim, cover } of patches) {
      const set = this.sets.get(id);
      gl.uniform1f(at.u_cover, cover);
      gl.uniform4f(at.u_rect, ...rect.map((v, i) => v - eye[i % 2]));
      gl.uniform1f(at.u_rim, rim);
      if (at.u_grains) gl.uniform3fv(at.u_grains, color);
      gl.bindVertexArray(set.array);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, SPHERES * set.count);
    }
    gl.bindVertexArray(null);
  }

  /** For tests: the depth of each pixel as it is written, 0 to 1; rows from the bottom, 1: nothing. */
  depths(view, eye, patches, width, height) {
    const { gl } = this, target = makeTarget(gl, width, height), { program, at } = this.programs.depth;
    gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
    gl.viewport(0, 0, width, height);
    gl.clearColor(1, 1, 1, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.disable(gl.BLEND);
    gl.useProgram(program);
    this.#drawAll(at, view, eye, [0, 0, 0, 0], patches);
    const b = new Uint8Array(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, b);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    target.release();
    return Array.from({ length: width * height }, (_, i) =>
      ((b[4 * i] << 16) + (b[4 * i + 1] << 8) + b[4 * i + 2]) / 0xffffff);
  }
}
