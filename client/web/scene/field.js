/**
 * A heightfield as the 3D view reads it: rectangles of samples of any level, out of the blocks that
 * the cache holds.
 *
 * Level l keeps every 2^l-th sample. Indices beyond the field repeat its border, so that a grid
 * that hangs over the edge is drawn to the edge; a coarse level ends before the field's edge where
 * 2^l does not divide it, and its last sample then stands for the rest. What reads a rectangle
 * makes sure first, by `missing`, that its blocks are here.
 */
import { keyOf } from "/web/tilecache.js";

const SIDE = 256;
/** A hole's height in textures; shaders know it, too. */
export const HOLE = 1e30;

export class Field {
  /**
   * @param {import("./tilecache.js").TileCache} cache
   * @param {object} locale @param {object} layer as the API gives them
   */
  constructor(cache, locale, layer) {
    this.cache = cache;
    this.locale = locale.id;
    this.layer = layer.id;
    this.split = locale.triangulation;
    this.last = [layer.cols - 1, layer.rows - 1];
    this.spacing = layer.spacing;
    this.origin = layer.origin;
    this.low = layer.bounds?.min[2] ?? 0;
    this.high = layer.bounds?.max[2] ?? 0;
    this.extent = this.last.map((cells, i) => cells * this.spacing[i]);
  }

  /** The place of an index of a level, in metres. */
  place(level, i, j) {
    return [this.origin[0] + i * this.spacing[0] * 2 ** level,
      this.origin[1] + j * this.spacing[1] * 2 ** level];
  }

  /** @returns {number[]} where x, y is, as indices of a level with their fractions */
  index(level, x, y) {
    return [(x - this.origin[0]) / this.spacing[0] / 2 ** level,
      (y - this.origin[1]) / this.spacing[1] / 2 ** level];
  }

  /** The last index of a level that is inside, along an axis. */
  lastOf(level, axis) {
    return Math.floor(this.last[axis] / 2 ** level);
  }

  /** First and last block that hold the indices from..to, which are clamped. */
  #blocks(level, axis, from, to) {
    const last = this.lastOf(level, axis);
    const most = Math.max(0, Math.ceil(this.last[axis] / (SIDE * 2 ** level)) - 1);
    const at = (i) => Math.min(Math.floor(Math.min(Math.max(i, 0), last) / SIDE), most);
    return [at(from), at(to)];
  }

  /**
   * The blocks of a rectangle.
   * @param {number} level @param {number[]} rect [x, y, width, height] in indices
   * @returns {import("./tilecache.js").Place[]}
   */
  places(level, [x, y, width, height]) {
    const [c0, c1] = this.#blocks(level, 0, x, x + width - 1);
    const [r0, r1] = this.#blocks(level, 1, y, y + height - 1);
    const places = [];
    for (let row = r0; row <= r1; row++)
      for (let column = c0; column <= c1; column++)
        places.push({ locale: this.locale, layer: this.layer, level, column, row });
    return places;
  }

  /** Adds to `into` (key → place) the blocks of a rectangle that are not here or stale. */
  missing(level, rect, into) {
    for (const place of this.places(level, rect)) {
      const block = this.cache.peek(place);
      if (!block || block.stale) into.set(keyOf(place), place);
    }
  }

  /**
   * Samples of a rectangle whose blocks are here, row by row; NaN in holes.
   * @param {number} level @param {number[]} rect [x, y, width, height]
   * @returns {Float32Array}
   */
  read(level, [x, y, width, height]) {
    const out = new Float32Array(width * height);
    const clamp = (v, axis) => Math.min(Math.max(v, 0), this.lastOf(level, axis));
    const x0 = clamp(x, 0), x1 = clamp(x + width - 1, 0);
    const y0 = clamp(y, 1), y1 = clamp(y + height - 1, 1);
    for (const place of this.places(level, [x0, y0, x1 - x0 + 1, y1 - y0 + 1])) {
      const heights = this.cache.peek(place)?.heights;
      const bx = place.column * SIDE, by = place.row * SIDE;
      const from = Math.max(x0, bx), to = Math.min(x1, bx + SIDE);
      for (let j = Math.max(y0, by); j <= Math.min(y1, by + SIDE); j++) {
        const at = inside(j - y, height - 1) * width + inside(from - x, width - 1);
        const source = (j - by) * (SIDE + 1);
        if (heights) out.set(heights.subarray(source + from - bx, source + to - bx + 1), at);
        else out.fill(NaN, at, at + to - from + 1);
      }
    }
    repeatBorder(out, width, height, x0 - x, x1 - x, y0 - y, y1 - y);
    return out;
  }
}

function inside(v, most) {
  return Math.min(Math.max(v, 0), most);
}

/** Fills what lies outside of columns u0..u1 and rows v0..v1 with the nearest that lies inside. */
function repeatBorder(out, width, height, u0, u1, v0, v1) {
  [u0, u1] = [inside(u0, width - 1), inside(u1, width - 1)];
  [v0, v1] = [inside(v0, height - 1), inside(v1, height - 1)];
  for (let v = v0; v <= v1; v++) {
    const row = v * width;
    if (u0 > 0) out.fill(out[row + u0], row, row + u0);
    if (u1 < width - 1) out.fill(out[row + u1], row + u1 + 1, row + width);
  }
  for (let v = 0; v < v0; v++) out.copyWithin(v * width, v0 * width, (v0 + 1) * width);
  for (let v = v1 + 1; v < height; v++) out.copyWithin(v * width, v1 * width, (v1 + 1) * width);
}

/** Is the cell's diagonal from (1,0) to (0,1)? @param {string} split @param {number} sum c + r */
export function isAnti(split, sum) {
  return split === "anti" || (split === "alternating" && (sum & 1) === 0);
}

/**
 * Heights of a rectangle beside those of the next coarser level at the same places: an even index
 * is a sample of it, an odd one lies between two, and odd-odd in the middle of the diagonal of the
 * coarser cell, so that both levels are the same surface where they meet.
 * @param {Field} field @param {number} level @param {number[]} rect [x, y, width, height]
 * @returns {Float32Array} pairs; HOLE where there is no ground
 */
export function heightPairs(field, level, [x, y, width, height]) {
  const wide = width + 4, samples = field.read(level, [x - 2, y - 2, wide, height + 4]);
  const out = new Float32Array(2 * width * height);
  const [c0, c1] = ends(x, width, 2 * field.lastOf(level + 1, 0));
  const [r0, r1] = ends(y, height, 2 * field.lastOf(level + 1, 1));
  for (let v = 0, k = 0; v < height; v++) {
    const above = r0[v] * wide, below = r1[v] * wide, here = (v + 2) * wide + 2, odd = (y + v) & 1;
    for (let u = 0; u < width; u++) {
      const swap = odd && ((x + u) & 1) &&
        isAnti(field.split, ((x + u - 1) >> 1) + ((y + v - 1) >> 1));
      const coarse = 0.5 * (samples[above + (swap ? c1[u] : c0[u])] +
        samples[below + (swap ? c0[u] : c1[u])]);
      const fine = samples[here + u];
      out[k++] = fine === fine ? fine : HOLE;
      out[k++] = coarse === coarse ? coarse : HOLE;
    }
  }
  return out;
}

/** For each index of a run, the two even ones around it (padded by 2); beyond `last`, `last`. */
function ends(from, count, last) {
  const lower = new Int32Array(count), upper = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const even = (from + i) & ~1, next = (from + i + 1) & ~1, pad = 2 - from;
    lower[i] = Math.max(0, Math.min(even, last) + pad);
    upper[i] = Math.max(0, Math.min(next, last) + pad);
  }
  return [lower, upper];
}

/**
 * Slopes dz/dx and dz/dy of a rectangle, by central differences; one-sided at borders and holes.
 * @param {Field} field @param {number} level @param {number[]} rect [x, y, width, height]
 * @returns {Float32Array} pairs
 */
export function gradients(field, level, [x, y, width, height]) {
  const wide = width + 4, z = field.read(level, [x - 2, y - 2, wide, height + 4]);
  const out = new Float32Array(2 * width * height);
  const sx = field.spacing[0] * 2 ** level, sy = field.spacing[1] * 2 ** level;
  const lastX = field.lastOf(level, 0), lastY = field.lastOf(level, 1);
  for (let v = 0, k = 0; v < height; v++) {
    const j = Math.min(Math.max(y + v, 0), lastY), row = inPad(j - y + 2, height + 3) * wide;
    for (let u = 0; u < width; u++) {
      const i = Math.min(Math.max(x + u, 0), lastX), at = row + inPad(i - x + 2, wide - 1);
      out[k++] = slope(z, at, i > 0 ? 1 : 0, i < lastX ? 1 : 0, sx);
      out[k++] = slope(z, at, j > 0 ? wide : 0, j < lastY ? wide : 0, sy);
    }
  }
  return out;
}

/** The rectangle of the next coarser level whose samples lie in one and around it. */
export function coarserRect([x, y, width, height]) {
  const [c, r] = [x >> 1, y >> 1];
  return [c, r, ((x + width) >> 1) - c + 1, ((y + height) >> 1) - r + 1];
}

/**
 * Slopes of a rectangle beside those of the next coarser level, between whose samples they are
 * interpolated.
 * @param {Field} field @param {number} level @param {number[]} rect
 * @returns {Float32Array} fours: dz/dx, dz/dy, and the coarser level's
 */
export function gradientPairs(field, level, rect) {
  const [x, y, width, height] = rect, around = coarserRect(rect), [c, r, wide] = around;
  const fine = gradients(field, level, rect), coarse = gradients(field, level + 1, around);
  const out = new Float32Array(4 * width * height);
  for (let v = 0, k = 0; v < height; v++) {
    const low = ((y + v) >> 1) - r, high = ((y + v + 1) >> 1) - r;
    for (let u = 0; u < width; u++, k++) {
      const left = ((x + u) >> 1) - c, right = ((x + u + 1) >> 1) - c;
      const a = 2 * (low * wide + left), b = 2 * (low * wide + right);
      const d = 2 * (high * wide + left), e = 2 * (high * wide + right);
      out[4 * k] = fine[2 * k];
      out[4 * k + 1] = fine[2 * k + 1];
      out[4 * k + 2] = 0.25 * (coarse[a] + coarse[b] + coarse[d] + coarse[e]);
      out[4 * k + 3] = 0.25 * (coarse[a + 1] + coarse[b + 1] + coarse[d + 1] + coarse[e + 1]);
    }
  }
  return out;
}

/** Keeps one sample free on either side. */
function inPad(v, most) {
  return Math.min(Math.max(v, 1), most - 1);
}

function slope(z, at, back, ahead, step) {
  let low = z[at - back], high = z[at + ahead], steps = (back ? 1 : 0) + (ahead ? 1 : 0);
  if (low !== low) {
    low = z[at];
    steps--;
  }
  if (high !== high) {
    high = z[at];
    steps--;
  }
  const rise = high - low;
  return steps > 0 && rise === rise ? rise / (steps * step) : 0;
}
