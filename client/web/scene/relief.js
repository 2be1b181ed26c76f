/**
 * Heights as fine as the picture of a view at rest: beside each level of the clipmap a texture of
 * the ground, TEXELS a side, so that shading does not depend on where the level's few vertices lie.
 *
 * Problem: seen from high up or obliquely, vertices of the grid are 4 (grid 255) to 16 (grid 127)
 * pixels apart. On rough ground the triangles then lie metres beside it, what is drawn on them is
 * shifted by pixels, and slopes as fine as the grid's are too smooth.
 *
 * Approach: the fragment shader follows the sight line from a little before the triangle that is
 * drawn to a little after it, finds where it meets the ground of the texture (parallax occlusion),
 * and takes height, slope and colour from there. Only silhouettes keep the shape of the triangles.
 *
 * Only a view at rest is drawn so: the blocks that it needs are four times as many, and a processor
 * that only draws is not quick enough while it flies. A map is addressed as a torus, no larger
 * than the field; levels finer than the field share the map of the coarsest of them.
 */
import { uploadTorus } from "/web/gl.js";

const TEXELS = 2048;
const PAD = 2; // texels beyond the field, or the window

/** The parts of a rectangle that another one does not have. */
export function without([x, y, w, h], other) {
  if (!other) return [[x, y, w, h]];
  const x0 = Math.max(x, other[0]), x1 = Math.min(x + w, other[0] + other[2]);
  const y0 = Math.max(y, other[1]), y1 = Math.min(y + h, other[1] + other[3]);
  if (x1 <= x0 || y1 <= y0) return [[x, y, w, h]];
  return [[x, y, w, y0 - y], [x, y1, w, y + h - y1], [x, y0, x0 - x, y1 - y0],
    [x1, y0, x + w - x1, y1 - y0]].filter((part) => part[2] > 0 && part[3] > 0);
}

/** Puts the height beside it into each hole, so that filtering has numbers. */
function fillHoles(z, low) {
  let beside = low;
  for (let i = 0; i < z.length; i++) {
    if (z[i] === z[i]) beside = z[i];
    else z[i] = beside;
  }
}

export class Relief {
  /** @param {WebGL2RenderingContext} gl @param {import("./field.js").Field} field
   * @param {number} n the clipmap's side @param {number} count of its levels */
  constructor(gl, field, n, count) {
    Object.assign(this, { gl, field, n });
    this.finer = Math.max(0, Math.min(Math.log2(TEXELS / (n + 1)), count - 1));
    this.uploadedTexels = 0;
    this.maps = new Map(); // level number → {side, rect, texture}; rect: of texels that are in it
    this.isPossible = Boolean(gl.getExtension("OES_texture_float_linear"));
  }

  get bytes() {
    return [...this.maps.values()].reduce((sum, { side }) => sum + 4 * side[0] * side[1], 0);
  }

  release() {
    for (const { texture } of this.maps.values()) this.gl.deleteTexture(texture);
    this.maps.clear();
  }

  /** The number of the level whose map a level is drawn with. */
  #owner(number) {
    return Math.max(number, this.finer);
  }

  #mapOf(number) {
    let map = this.maps.get(number);
    if (map) return map;
    const { gl, field } = this, level = number - this.finer;
    const side = [0, 1].map((i) =>
      Math.min((this.n + 1) << this.finer, field.lastOf(level, i) + 1 + 2 * PAD));
    map = { side, rect: null, level, texture: gl.createTexture() };
    gl.bindTexture(gl.TEXTURE_2D, map.texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.R32F, ...side);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T])
      gl.texParameteri(gl.TEXTURE_2D, name, gl.REPEAT);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
      gl.texParameteri(gl.TEXTURE_2D, name, gl.LINEAR);
    this.maps.set(number, map);
    return map;
  }

  /** The texels of a level's window, as far as they belong to the field. */
  #rectOf(level, { window }) {
    const s = 2 ** this.finer, rect = [0, 0, 0, 0];
    for (const i of [0, 1]) {
      const low = Math.max(window[i] * s - 1, -PAD);
      const high = Math.min((window[i] + this.n - 1) * s + 1, this.field.lastOf(level, i) + PAD);
      rect[i] = low;
      rect[2 + i] = Math.max(0, high - low + 1);
    }
    return rect;
  }

  /**
   * Brings the maps of these levels to where their windows are, as far as the blocks are here.
   * @param {object[]} levels that are drawn @param {object[]} all levels of the clipmap, by number
   * @returns {{wanted: Map<string, object>, isWhole: boolean}} blocks to fetch
   */
  update(levels, all) {
    const wanted = new Map();
    let isWhole = true;
    for (const number of new Set(levels.map((level) => this.#owner(level.number)))) {
      const owner = all[number];
      if (!owner.window) continue;
      const map = this.#mapOf(number), rect = this.#rectOf(map.level, owner), missing = new Map();
      const parts = rect[2] && rect[3] ? without(rect, map.rect) : [];
      for (const part of parts) this.field.missing(map.level, part, missing);
      for (const [key, place] of missing) wanted.set(key, place);
      if (missing.size) {
        isWhole = false;
        continue;
      }
      for (const part of parts) this.#fill(map, part);
      map.rect = rect;
    }
    return { wanted, isWhole };
  }

  #fill(map, rect) {
    const z = this.field.read(map.level, rect);
    fillHoles(z, this.field.low);
    this.gl.bindTexture(this.gl.TEXTURE_2D, map.texture);
    uploadTorus(this.gl, map.side, ...rect, this.gl.RED, z, 1);
    this.uploadedTexels += z.length;
  }

  /** Heights have changed. */
  changed() {
    for (const map of this.maps.values()) map.rect = null;
  }

  /** Has what a level is drawn with come? */
  #isHere(level, all) {
    const number = this.#owner(level.number), rect = this.maps.get(number)?.rect;
    return Boolean(rect) && without(this.#rectOf(number - this.finer, all[number]), rect)
      .length === 0;
  }

  /**
   * Uniforms and textures of a level; its coarser one is itself at the coarsest.
   * @param {object} at @param {object} level @param {object} coarser @param {number[]} anchor
   * @param {number[]} eye @param {object[]} all levels
   */
  set(at, level, coarser, anchor, eye, all) {
    const { gl, field } = this, metres = Math.max(...field.spacing) * 2 ** level.number;
    const isOn = this.#isHere(level, all) && this.#isHere(coarser, all);
    gl.uniform2f(at.u_relief, isOn ? 2 * metres : 0, eye[2]);
    if (!isOn) return;
    const both = [[at.u_fine_at, level], [at.u_coarse_fine_at, coarser]];
    const taps = both.map(([uniform, of], unit) => {
      const number = this.#owner(of.number), map = this.maps.get(number);
      const scale = 2 ** (this.finer - number + level.number);
      gl.activeTexture(gl.TEXTURE4 + unit);
      gl.bindTexture(gl.TEXTURE_2D, map.texture);
      const base = anchor.map((v, i) => {
        const side = map.side[i];
        return (((v * scale) % side + side) % side + 0.5) / side;
      });
      gl.uniform4f(uniform, ...map.side.map((side) => scale / side), ...base);
      return (map.level ? 0.5 : 1) / scale;
    });
    gl.uniform2f(at.u_taps, ...taps);
  }
}
