/**
 * Geometry clipmaps (C. Leach 2014, chapter 3; Losasso and Hoppe 2004): the ground as nested grids
 * of side n = 2^k - 1 around the viewer, each twice as coarse as the one inside it.
 *
 * Approach. A level's window lies on even indices, so that it fits the coarser one's vertices and
 * sits in it off the middle by one cell, left or right, below or above; the L-shaped strip that
 * this leaves is drawn by the coarser level. A ring is 12 blocks of m x m vertices, four of m x 3
 * and the L, m = (n + 1) / 4; the finest level that is drawn has its middle, too. A vertex is its
 * number alone, so all levels and blocks share one index buffer and there is no vertex buffer.
 * Blocks outside of the field or, by the range of their own heights, of the view are not drawn.
 *
 * Heights lie in one texture a level, addressed as a torus: when the window moves, only the strip
 * that came in is read from the blocks, worked on and uploaded. With each height goes that of the
 * coarser level at the same place; towards a level's border its vertices move over to it, so that
 * levels meet without cracks. Triangles without area along the border cover what rounding leaves,
 * and a hem below them what the clipping of triangles leaves at the picture's edge.
 * Slopes for the light have textures of their own, SLOPES texels a side: so much finer than the
 * grid that one is about a pixel wide. Where that is finer than the field, levels share the one of
 * the coarsest of them, whose window holds theirs. A texel has the coarser level's slopes, too: a
 * pixel reads one texture where levels blend.
 *
 * A level is drawn when all of its samples are here and the coarser one is drawn. Levels whose
 * window is small beside the height of the eye fade into the coarser one and are left out: those
 * whose vertices would be some pixels apart straight below stay.
 *
 * Measured on 2048² samples of rough ground (the demo's highlands) that fill a picture of
 * 640 x 400, mean difference to the whole field in grey levels, straight down and obliquely from
 * 1000 m: 2.8 and 5.8 with grid 127, 2.0 and 4.2 with grid 255. Not the slopes: as fine as the
 * field's they made it 2.4 and 5.5. Not the choice of levels: twice as many changed nothing. It is
 * the places of the vertices, 4 to 16 pixels apart, between which the triangles lie beside the
 * ground. So a view at rest is drawn with relief (relief.js): 0.2 and 1.5, 0.2 and 1.1. In motion
 * it costs half of the frames where the processor draws.
 */
import { isOutside } from "/web/camera.js";
import { coarserRect, gradientPairs, gradients, heightPairs, HOLE, isAnti } from "/web/field.js";
import { makeTexture, uploadTorus } from "/web/gl.js";
import { Relief } from "/web/relief.js";

const HEIGHT_RATIO = 0.5; // of a level's extent to the eye's height, where the level is left out
const SLOPES = 1024; // texels along a side of a level's slopes
const FADE_MS = 150;

/** The rectangles of cells [c0, r0, c1, r1] that a ring is made of, and those inside of it. */
function blocksOf(n) {
  const m = (n + 1) / 4, [a, b, c, d, e, f] = [0, m - 1, 2 * m - 2, 2 * m, 3 * m - 1, 4 * m - 2];
  const cuts = [a, b, c, d, e, f], ring = [];
  for (let j = 0; j < 5; j++)
    for (let i = 0; i < 5; i++)
      if (i === 0 || i === 4 || j === 0 || j === 4)
        ring.push([cuts[i], cuts[j], cuts[i + 1], cuts[j + 1]]);
  const h = 2 * m - 1;
  const middle = [[b, b, h, h], [h, b, e, h], [b, h, h, e], [h, h, e, e]];
  const trims = [];
  for (let k = 0; k < 4; k++) {
    const dx = k & 1, dy = k >> 1, x = dx ? b : e - 1, y = dy ? b : e - 1;
    trims.push([[x, b, x + 1, e], [dx ? b + 1 : b, y, dx ? e : e - 1, y + 1]]);
  }
  return { ring, middle, trims };
}

function pushCells(indices, n, split, [c0, r0, c1, r1]) {
  for (let r = r0; r < r1; r++) {
    for (let c = c0; c < c1; c++) {
      const v = r * n + c;
      if (isAnti(split, c + r)) indices.push(v, v + 1, v + n, v + 1, v + n + 1, v + n);
      else indices.push(v, v + 1, v + n + 1, v, v + n + 1, v + n);
    }
  }
}

/** Triangles over three vertices in a line, all around, and a hem that hangs below them. */
function pushBorder(indices, n) {
  const below = n * n;
  for (let i = 0; i + 2 < n; i += 2) {
    for (const [a, step] of [[i, 1], [(n - 1) * n + i, 1], [i * n, n], [i * n + n - 1, n]]) {
      const c = a + 2 * step;
      indices.push(a, a + step, c, a, c, below + a, c, below + c, below + a);
    }
  }
}

class Level {
  /**
   * @param {boolean} isLit has slopes of its own, 2^finer times as fine as its heights
   * @param {boolean} isTop is the coarsest; others have the next one's slopes, too
   */
  constructor(gl, number, side, finer, isLit, isTop) {
    this.number = number;
    this.side = side;
    this.finer = finer;
    this.gradientSide = isLit ? side << finer : 0;
    this.lit = this; // the level whose slopes it is lit by
    this.window = null; // [x, y] of vertex 0, null: nothing is here
    this.dirty = []; // rectangles to read again
    this.z = new Float32Array(side * side);
    this.ranges = new Map(); // the cells of a block → its least and greatest height
    this.heights = makeTexture(gl, gl.RG32F, side, side, { wrapped: true });
    this.slopes = isTop ? 2 : 4; // of a texel
    this.gradients = isLit ? makeTexture(gl, isTop ? gl.RG16F : gl.RGBA16F, this.gradientSide,
      this.gradientSide, { wrapped: true, linear: true }) : null;
    this.since = -1; // when it was drawn again first
  }
}

export class Clipmap {
  /**
   * @param {WebGL2RenderingContext} gl @param {import("./field.js").Field} field
   * @param {number} n 2^k - 1: 63, 127, 255 or 511
   * @param {{finer?: number, heightRatio?: number}} [o]
   */
  constructor(gl, field, n, o = {}) {
    this.heightRatio = o.heightRatio ?? HEIGHT_RATIO;
    this.gl = gl;
    this.field = field;
    this.n = n;
    this.m = (n + 1) / 4;
    this.center = null; // what the windows are around: [x, y]
    /** All levels are drawn, however high the eye is; for tests of the borders. */
    this.allLevels = false;
    this.hasHoles = false; // as far as it has been read
    /** The triangles without area are drawn; false in tests of what they would hide. */
    this.withBorder = true;
    this.counters = { uploadedBytes: 0, uploadedSamples: 0, steps: 0, blocksDrawn: 0,
      blocksCulled: 0, triangles: 0 };
    const cells = Math.max(...field.last);
    let count = 1;
    while ((2 * this.m - 4) * 2 ** (count - 1) < cells) count++;
    const finer = Math.min(o.finer ?? Math.log2(SLOPES / (n + 1)), count - 1);
    this.levels = Array.from({ length: count }, (_, i) =>
      new Level(gl, i, n + 1, finer, i >= finer, i === count - 1));
    for (const level of this.levels) level.lit = this.levels[Math.max(level.number, finer)];
    this.relief = new Relief(gl, field, n, count);
    this.drawn = []; // levels of the last update, coarsest first
    this.#makeIndices();
  }

  #makeIndices() {
    const { gl, n } = this, indices = [], { ring, middle, trims } = blocksOf(n);
    const block = (cells) => {
      const first = indices.length;
      pushCells(indices, n, this.field.split, cells);
      return { cells, first, count: indices.length - first };
    };
    this.blocks = { ring: ring.map(block), middle: middle.map(block),
      trims: trims.map((pair) => pair.map(block)) };
    const first = indices.length;
    pushBorder(indices, n);
    this.border = { first, count: indices.length - first };
    this.indices = gl.createBuffer();
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.indices);
    const isLarge = 2 * n * n > 65535, Indices = isLarge ? Uint32Array : Uint16Array;
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Indices(indices), gl.STATIC_DRAW);
    this.indexType = isLarge ? gl.UNSIGNED_INT : gl.UNSIGNED_SHORT;
    this.indexBytes = Indices.BYTES_PER_ELEMENT;
  }

  /** Bytes of its textures and of its copies of heights. */
  get bytes() {
    return this.levels.reduce((sum, level) => sum + 12 * level.side ** 2 +
      2 * level.slopes * level.gradientSide ** 2, this.relief.bytes);
  }

  release() {
    for (const level of this.levels) {
      this.gl.deleteTexture(level.heights);
      this.gl.deleteTexture(level.gradients);
    }
    this.gl.deleteBuffer(this.indices);
    this.relief.release();
  }

  /** Where a level's window belongs for a viewer at x, y. */
  #windowAt(number, x, y) {
    return this.field.index(number, x, y).map((v) => 2 * Math.floor(v / 2) - 2 * this.m + 2);
  }

  /** How much a level has faded into the coarser one for the height of the eye: 1 is all. */
  #fadeOf(number, height) {
    if (this.allLevels || number === this.levels.length - 1) return 0;
    const extent = (this.n - 1) * Math.max(...this.field.spacing) * 2 ** number;
    return Math.min(1, Math.max(0, (this.heightRatio * height / extent - 0.8) / 0.2));
  }

  /** The rectangles of a level that a move to `to` brings in. */
  #strips(level, to) {
    const n = this.n, from = level.window;
    if (!from || Math.abs(to[0] - from[0]) >= n || Math.abs(to[1] - from[1]) >= n)
      return [[to[0], to[1], n, n]];
    const dx = to[0] - from[0], dy = to[1] - from[1], strips = [];
    if (dx) strips.push([dx > 0 ? from[0] + n : to[0], to[1], Math.abs(dx), n]);
    if (dy) strips.push([Math.max(from[0], to[0]), dy > 0 ? from[1] + n : to[1],
      n - Math.abs(dx), Math.abs(dy)]);
    return strips;
  }

  /** The slopes' indices of a rectangle, and of what lies between it and its neighbours. */
  #finerRect(level, [x, y, w, h]) {
    const s = 2 ** level.finer;
    return [(x - 1) * s + 1, (y - 1) * s + 1, (w + 1) * s - 1, (h + 1) * s - 1];
  }

  #missing(level, rect, into) {
    const grown = ([x, y, w, h]) => [x - 2, y - 2, w + 4, h + 4];
    this.field.missing(level.number, grown(rect), into);
    if (level.lit !== level) return;
    const fine = this.#finerRect(level, rect), number = level.number - level.finer;
    this.field.missing(number, grown(fine), into);
    if (level.slopes === 4) this.field.missing(number + 1, grown(coarserRect(fine)), into);
  }

  /** Reads a rectangle from the blocks, which are here, and uploads it. */
  #fill(level, rect) {
    const { gl, field } = this, mask = level.side - 1;
    level.ranges.clear();
    const pairs = heightPairs(field, level.number, rect);
    for (let v = 0, k = 0; v < rect[3]; v++) {
      const row = ((rect[1] + v) & mask) * level.side;
      for (let u = 0; u < rect[2]; u++, k += 2) {
        level.z[row + ((rect[0] + u) & mask)] = pairs[k];
        this.hasHoles ||= pairs[k] >= HOLE;
      }
    }
    gl.bindTexture(gl.TEXTURE_2D, level.heights);
    uploadTorus(gl, level.side, ...rect, gl.RG, pairs, 2);
    this.counters.uploadedBytes += pairs.byteLength;
    this.counters.uploadedSamples += rect[2] * rect[3];
    if (level.lit !== level) return;
    const fine = this.#finerRect(level, rect);
    const isPair = level.slopes === 4;
    const slopes = (isPair ? gradientPairs : gradients)(field, level.number - level.finer, fine);
    gl.bindTexture(gl.TEXTURE_2D, level.gradients);
    uploadTorus(gl, level.gradientSide, ...fine, isPair ? gl.RGBA : gl.RG, slopes,
      level.slopes);
    this.counters.uploadedBytes += slopes.byteLength;
  }

  /**
   * What a viewer at x, y needs: a move for each level from the coarsest on, and blocks not here.
   * @param {number} finest level
   */
  #plan(x, y, finest) {
    const moves = [];
    for (let number = this.levels.length - 1; number >= finest; number--) {
      const level = this.levels[number], to = this.#windowAt(number, x, y), missing = new Map();
      const strips = this.#strips(level, to);
      for (const rect of strips) this.#missing(level, rect, missing);
      moves.push({ level, to, strips, missing });
    }
    return moves;
  }

  #apply(move) {
    for (const rect of move.strips) this.#fill(move.level, rect);
    if (move.strips.length) this.counters.steps++;
    move.level.window = move.to;
  }

  /** Reads again what an edit has changed, as soon as the blocks are here. */
  #refill(wanted) {
    let open = false;
    for (const level of this.levels) {
      level.dirty = level.dirty.filter((rect) => {
        const n = this.n, w = level.window;
        if (!w) return false;
        const x0 = Math.max(rect[0], w[0]), y0 = Math.max(rect[1], w[1]);
        const x1 = Math.min(rect[0] + rect[2], w[0] + n);
        const y1 = Math.min(rect[1] + rect[3], w[1] + n);
        if (x1 <= x0 || y1 <= y0) return false;
        const missing = new Map(), part = [x0, y0, x1 - x0, y1 - y0];
        this.#missing(level, part, missing);
        for (const [key, place] of missing) wanted.set(key, place);
        if (missing.size === 0) this.#fill(level, part);
        else open = true;
        return missing.size > 0;
      });
    }
    return open;
  }

  /** An edit: [column, row, columns, rows] of samples, null for everything. */
  changed(rect) {
    this.relief.changed();
    const [c, r, w, h] = rect ?? [0, 0, this.field.last[0] + 1, this.field.last[1] + 1];
    for (const level of this.levels) {
      const s = 2 ** level.number, x = Math.floor(c / s) - 3, y = Math.floor(r / s) - 3;
      level.dirty.push([x, y, Math.ceil((c + w) / s) + 3 - x, Math.ceil((r + h) / s) + 3 - y]);
    }
  }

  /**
   * Moves the windows after the viewer as far as the blocks are here.
   * @param {number[]} eye @param {number} height of the eye above the ground
   * @param {number[]} ahead where the viewer will be soon, [x, y]
   * @param {number} now in ms
   * @returns {{wanted: Map<string, object>, whole: boolean, fading: boolean}} blocks to fetch, the
   *   most urgent first; whole: nothing that should be drawn is missing
   */
  update(eye, height, ahead, now) {
    const wanted = new Map(), open = this.#refill(wanted);
    let finest = 0;
    while (this.#fadeOf(finest, height) >= 1) finest++;
    const moves = this.#plan(eye[0], eye[1], finest);
    const late = moves.findIndex((move) => move.missing.size > 0);
    for (const move of moves) for (const [key, place] of move.missing) wanted.set(key, place);
    for (const move of this.#plan(ahead[0], ahead[1], finest))
      for (const [key, place] of move.missing) if (!wanted.has(key)) wanted.set(key, place);
    if (late < 0 || !this.#canStay(eye, finest)) {
      const ready = late < 0 ? moves : moves.slice(0, late);
      for (const move of ready) this.#apply(move);
      this.center = [eye[0], eye[1]];
      this.drawn = ready.map((move) => move.level);
    }
    const fading = this.#fades(height, now);
    return { wanted, whole: late < 0 && !open, fading };
  }

  /**
   * Makes the next pictures of a view at rest as fine as they get, as far as the blocks are here.
   * @returns {{wanted: Map<string, object>, isWhole: boolean}} blocks to fetch
   */
  refine() {
    if (!this.relief.isPossible) return { wanted: new Map(), isWhole: true };
    return this.relief.update(this.drawn, this.levels);
  }

  /** While blocks are late the windows stay, if the viewer is still well inside of the finest. */
  #canStay(eye, finest) {
    if (!this.center || this.drawn.at(-1)?.number !== finest) return false;
    const reach = this.m * 2 ** finest;
    return [0, 1].every((i) => Math.abs(eye[i] - this.center[i]) < reach * this.field.spacing[i]);
  }

  /** Levels that came in just now fade in, one after the other. */
  #fades(height, now) {
    let fading = false, shown = 0;
    for (const level of this.levels) if (!this.drawn.includes(level)) level.since = -1;
    for (const level of this.drawn) {
      if (level.since < 0) level.since = shown === 0 ? now - FADE_MS : now;
      const age = Math.min(1, (now - level.since) / FADE_MS);
      level.fade = Math.max(1 - age, this.#fadeOf(level.number, height));
      shown++;
      if (age < 1) {
        fading = true;
        break;
      }
    }
    this.drawn.slice(shown).forEach((level) => { level.since = -1; });
    this.shown = this.drawn.slice(0, shown);
    return fading;
  }

  /**
   * Draws, the finest level first; the program is in use and has what all levels share.
   * @param {object} at uniforms @param {number[]} eye @param {number[][]} planes of the view
   */
  draw(at, eye, planes) {
    const { gl, counters } = this;
    counters.blocksDrawn = counters.blocksCulled = counters.triangles = 0;
    gl.bindVertexArray(null);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.indices);
    gl.uniform1i(at.u_side, this.n);
    gl.uniform1i(at.u_vertices, this.n ** 2);
    gl.uniform1i(at.u_mask, this.n);
    const levels = [...(this.shown ?? [])].reverse();
    // ground without holes is seen from below only from below it, or from beside it
    const isAbove = !this.hasHoles && this.heightAt(eye[0], eye[1]) < eye[2];
    for (const [i, level] of levels.entries()) {
      this.#setLevel(at, level, levels[i + 1] ?? level, eye);
      const { ring, middle, trims } = this.blocks, finer = levels[i - 1];
      const inner = finer ? trims[this.#trim(level, finer)] : middle;
      if (isAbove) gl.enable(gl.CULL_FACE);
      let run = null;
      for (const block of [...ring, ...inner]) {
        if (!this.#isSeen(level, block, eye, planes)) {
          counters.blocksCulled++;
          continue;
        }
        counters.blocksDrawn++;
        counters.triangles += block.count / 3;
        if (run && run.first + run.count === block.first) run.count += block.count;
        else {
          if (run) this.#elements(run);
          run = { ...block };
        }
      }
      if (run) this.#elements(run);
      gl.disable(gl.CULL_FACE);
      if (i + 1 < levels.length && this.withBorder) this.#elements(this.border);
    }
  }

  #elements(run) {
    this.gl.drawElements(this.gl.TRIANGLES, run.count, this.indexType,
      this.indexBytes * run.first);
  }

  /** Which of the four Ls the finer level leaves. */
  #trim(level, finer) {
    const [dx, dy] = [0, 1].map((i) => finer.window[i] / 2 - level.window[i] - (this.m - 1));
    if ((dx !== 0 && dx !== 1) || (dy !== 0 && dy !== 1))
      throw new Error(`level ${finer.number} lies ${dx}, ${dy} in the next`);
    return dx + 2 * dy;
  }

  /** Is part of a block in the field and in the view? */
  #isSeen(level, { cells: [c0, r0, c1, r1] }, eye, planes) {
    const { field } = this, { number } = level, [x, y] = level.window;
    if ([x + c1, y + r1].some((v) => v <= 0) ||
      [x + c0, y + r0].some((v, i) => v >= field.last[i] / 2 ** number)) return false;
    const [low, high] = this.#rangeOf(level, [c0, r0, c1, r1]);
    const a = field.place(number, x + c0, y + r0), b = field.place(number, x + c1, y + r1);
    return !isOutside(planes, [a[0] - eye[0], a[1] - eye[1], low - eye[2]],
      [b[0] - eye[0], b[1] - eye[1], high - eye[2]]);
  }

  /** The least and the greatest height of a block, in the coarser level's shape, too: its heights are
   * means of samples of the block or next to it. */
  #rangeOf(level, cells) {
    const known = level.ranges.get(cells);
    if (known) return known;
    const [c0, r0, c1, r1] = cells, { side, z, window: [x, y] } = level, mask = side - 1;
    const range = [Infinity, -Infinity], last = this.n - 1;
    for (let r = Math.max(0, r0 - 1); r <= Math.min(last, r1 + 1); r++) {
      const row = ((y + r) & mask) * side;
      for (let c = Math.max(0, c0 - 1); c <= Math.min(last, c1 + 1); c++) {
        const height = z[row + ((x + c) & mask)];
        if (height >= HOLE) continue;
        if (height < range[0]) range[0] = height;
        if (height > range[1]) range[1] = height;
      }
    }
    level.ranges.set(cells, range);
    return range;
  }

  #setLevel(at, level, coarser, eye) {
    const { gl, field, n } = this, number = level.number;
    const anchor = [0, 1].map((i) => level.window[i] + 2 * this.m - 2);
    const offset = field.place(number, ...anchor).map((v, i) => v - eye[i]);
    const viewer = field.index(number, ...this.center).map((v, i) => v - anchor[i]);
    const width = Math.max(2, Math.floor(n / 8));
    gl.uniform2i(at.u_first, ...level.window);
    gl.uniform2i(at.u_anchor, ...anchor);
    gl.uniform2f(at.u_offset, ...offset);
    gl.uniform1f(at.u_eye_z, eye[2]);
    gl.uniform2f(at.u_step, ...field.spacing.map((s) => s * 2 ** number));
    gl.uniform2f(at.u_end, ...field.last.map((cells) => cells / 2 ** number));
    gl.uniform2f(at.u_viewer, ...viewer);
    gl.uniform2f(at.u_blend, (n - 1) / 2 - 1 - width, coarser === level ? 0 : 1 / width);
    gl.uniform1f(at.u_fade, coarser === level ? 0 : level.fade);
    if (at.u_relief) this.relief.set(at, level, coarser, anchor, eye, this.levels);
    this.#setGradients(at.u_gradient, level, anchor, number);
    gl.uniform1f(at.u_coarse, level.lit === coarser.lit ? 0 : 1);
    for (const [unit, texture] of [level.heights, level.lit.gradients].entries()) {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, texture);
    }
    gl.activeTexture(gl.TEXTURE0);
  }

  /** Where an index (of level `number`) relative to the anchor lies in a level's slopes. */
  #setGradients(uniform, { lit }, anchor, number) {
    const side = lit.gradientSide, scale = 2 ** (lit.finer - lit.number + number);
    const base = anchor.map((v) => ((v * scale % side + side) % side + 0.5) / side);
    this.gl.uniform3f(uniform, scale / side, ...base);
  }

  /**
   * The height of the finest level that is here, between its samples.
   * @param {number} x @param {number} y metres @returns {number} NaN where none is known
   */
  heightAt(x, y) {
    for (let k = this.drawn.length - 1; k >= 0; k--) {
      const level = this.drawn[k], [u, v] = this.field.index(level.number, x, y);
      const i = Math.floor(u), j = Math.floor(v), w = level.window;
      if (i < w[0] || j < w[1] || i + 1 >= w[0] + this.n || j + 1 >= w[1] + this.n) continue;
      const end = this.field.last.map((cells) => cells / 2 ** level.number);
      if (u < 0 || v < 0 || u > end[0] || v > end[1]) return NaN;
      const mask = level.side - 1, s = u - i, t = v - j;
      const z = (c, r) => level.z[((j + r) & mask) * level.side + ((i + c) & mask)];
      const corners = [z(0, 0), z(1, 0), z(0, 1), z(1, 1)];
      if (corners.some((height) => height >= HOLE)) return NaN;
      return (corners[0] * (1 - s) + corners[1] * s) * (1 - t) +
        (corners[2] * (1 - s) + corners[3] * s) * t;
    }
    return NaN;
  }
}

/**
 * Fetches what is wanted and ends what is not any more.
 */
export class Fetcher {
  /** @param {import("./tilecache.js").TileCache} cache @param {() => void} onCame */
  constructor(cache, onCame) {
    this.cache = cache;
    this.onCame = onCame;
    this.under = new Map(); // key → AbortController
    this.counters = { blocks: 0, bytes: 0 };
    this.failed = null;
  }

  /** @param {Map<string, object>} wanted the most urgent first */
  want(wanted) {
    for (const [key, control] of this.under) if (!wanted.has(key)) control.abort();
    let urgency = 1000;
    for (const [key, place] of wanted) {
      urgency--;
      if (!this.under.has(key)) this.#start(key, place, urgency);
    }
  }

  async #start(key, place, urgency) {
    const control = new AbortController();
    this.under.set(key, control);
    try {
      const block = await this.cache.load(place, { signal: control.signal, urgency });
      this.counters.blocks++;
      this.counters.bytes += block.heights?.byteLength ?? 0;
      this.failed = null;
    } catch (error) {
      if (!control.signal.aborted) this.failed = error;
      if (this.failed) await new Promise((done) => { setTimeout(done, 1000); });
    }
    if (this.under.get(key) === control) this.under.delete(key);
    this.onCame();
  }

  stop() {
    for (const control of this.under.values()) control.abort();
    this.under.clear();
  }
}
