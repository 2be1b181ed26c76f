/**
 * From a block of heights to what a map shows: a shaded, tinted picture of its cells, and contours.
 *
 * A pixel is a cell, lit from the north-west by the normal of its four samples and tinted by its
 * height. A cell without ground is transparent, a cell of which one triangle is missing half so.
 * Contours are walked triangle by triangle, as the locale splits its cells, so they lie on the
 * surface that answers; a sample belongs to the lines at or below its height, hence each line that
 * enters a triangle leaves it.
 */
import { TILE_SAMPLES } from "/web/kota.js";

const CELLS = TILE_SAMPLES - 1;
const STEPS_PER_TRIANGLE_MAX = 64;

const LIGHT = [-0.5, 0.5, Math.SQRT1_2];

/** 1 on flat ground, less where it turns from the light, 1.2 at most. */
function brightness(slopeX, slopeY) {
  const along = LIGHT[2] - slopeX * LIGHT[0] - slopeY * LIGHT[1];
  const cosine = along / Math.hypot(slopeX, slopeY, 1);
  return Math.min(1.2, 0.42 + 0.58 * Math.max(0, cosine) / LIGHT[2]);
}

/**
 * Does the cell's diagonal run from (1,0) to (0,1)?
 * @param {"anti"|"main"|"alternating"} triangulation
 */
export function isAnti(triangulation, column, row) {
  if (triangulation === "alternating") return (column + row) % 2 === 0;
  return triangulation !== "main";
}

/** Mean of what a cell has, and how many of its two triangles exist. */
function remains(z00, z10, z01, z11, anti) {
  const [first, second] = anti ? [z00, z11] : [z10, z01];
  const shared = anti ? z10 + z01 : z00 + z11;
  const one = shared + first, two = shared + second;
  if (one === one) return two === two ? [(one + second) / 4, 2] : [one / 3, 1];
  return two === two ? [two / 3, 1] : [NaN, 0];
}

/**
 * The picture of a block, north up.
 * @param {Float32Array} heights 257 x 257, from the smallest y
 * @param {{spacing: number[], low: number, high: number, hillshade: boolean,
 *          triangulation: string, palette: {tints: number[][]}}} style spacing of the block's samples
 *   in metres; see palette.js
 * @returns {ImageData} 256 x 256
 */
export function shade(heights, style) {
  const picture = new ImageData(CELLS, CELLS), out = picture.data, { tints } = style.palette;
  const perStep = 255 / Math.max(style.high - style.low, 1e-6);
  const overX = 0.5 / style.spacing[0], overY = 0.5 / style.spacing[1];
  for (let r = 0; r < CELLS; r++) {
    let p = 4 * CELLS * (CELLS - 1 - r);
    for (let c = 0; c < CELLS; c++, p += 4) {
      const i = r * TILE_SAMPLES + c;
      const z00 = heights[i], z10 = heights[i + 1];
      const z01 = heights[i + TILE_SAMPLES], z11 = heights[i + TILE_SAMPLES + 1];
      let mean = (z00 + z10 + z01 + z11) / 4, light = 1, alpha = 255;
      if (mean !== mean) {
        const [rest, count] = remains(z00, z10, z01, z11, isAnti(style.triangulation, c, r));
        if (!count) continue;
        mean = rest;
        alpha = 128;
      } else if (style.hillshade) {
        light = brightness((z10 + z11 - z00 - z01) * overX, (z01 + z11 - z00 - z10) * overY);
      }
      const tint = tints[Math.max(0, Math.min(255, Math.round((mean - style.low) * perStep)))];
      out[p] = tint[0] * light;
      out[p + 1] = tint[1] * light;
      out[p + 2] = tint[2] * light;
      out[p + 3] = alpha;
    }
  }
  return picture;
}

/** Where the line of height z crosses the sides of a triangle of (x, y, z) corners; two of them. */
function crossing(ax, ay, az, bx, by, bz, z, out, n) {
  if (az >= z === bz >= z) return n;
  const t = (z - az) / (bz - az);
  out[n] = ax + t * (bx - ax);
  out[n + 1] = ay + t * (by - ay);
  return n + 2;
}

const ends = new Float64Array(6);

function walk(ax, ay, az, bx, by, bz, cx, cy, cz, interval, line) {
  const low = Math.min(az, bz, cz), high = Math.max(az, bz, cz);
  const first = Math.floor(low / interval) + 1, last = Math.floor(high / interval);
  if (!(last - first < STEPS_PER_TRIANGLE_MAX)) return; // a wall, or no ground
  for (let k = first; k <= last; k++) {
    const z = k * interval;
    let n = crossing(ax, ay, az, bx, by, bz, z, ends, 0);
    n = crossing(bx, by, bz, cx, cy, cz, z, ends, n);
    n = crossing(cx, cy, cz, ax, ay, az, z, ends, n);
    if (n === 4) line(ends[0], ends[1], ends[2], ends[3], k);
  }
}

/**
 * The contours of a block, in its cells.
 * @param {Float32Array} heights 257 x 257
 * @param {number} interval metres between lines
 * @param {string} triangulation
 * @param {(x0: number, y0: number, x1: number, y1: number, k: number) => void} line called for each
 *   piece; k is the height over the interval
 */
export function contours(heights, interval, triangulation, line) {
  for (let r = 0; r < CELLS; r++) {
    for (let c = 0; c < CELLS; c++) {
      const i = r * TILE_SAMPLES + c;
      const z00 = heights[i], z10 = heights[i + 1];
      const z01 = heights[i + TILE_SAMPLES], z11 = heights[i + TILE_SAMPLES + 1];
      const low = Math.floor(Math.min(z00, z10, z01, z11) / interval);
      if (low === Math.floor(Math.max(z00, z10, z01, z11) / interval)) continue;
      const x = c + 1, y = r + 1;
      if (isAnti(triangulation, c, r)) {
        walk(c, r, z00, x, r, z10, c, y, z01, interval, line);
        walk(x, y, z11, c, y, z01, x, r, z10, interval, line);
      } else {
        walk(c, r, z00, x, r, z10, x, y, z11, interval, line);
        walk(c, r, z00, x, y, z11, c, y, z01, interval, line);
      }
    }
  }
}

/** The least of 1, 2, 5, 10, … (and their fractions) that is not below. @param {number} value */
export function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const digit of [1, 2, 5]) if (digit * power >= value * 0.999999) return digit * power;
  return 10 * power;
}
