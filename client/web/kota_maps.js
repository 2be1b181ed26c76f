/**
 * Which tiles of a map (XYZ, web Mercator) a change of ground has touched: the frame of a locale to
 * degrees and to tiles, as server/terrain/geo/ does it. For Kota.tilesOf; and Kota.tileHeights.
 *
 * @module kota_maps
 */

import { NotFoundError } from "./kota_answer.js";

const A = 6378137, RADIAN = Math.PI / 180;
const LATITUDE_MAX = 85.0511287798066;
/** Places along an edge of the box that is projected. */
const PLACES = 16;

/** @param {number} inverse inverse flattening */
const squaredEccentricity = (inverse) => (2 - 1 / inverse) / inverse;
const E2 = squaredEccentricity(298.257223563);

/**
 * The tangent plane at a place: the point of the ellipsoid over or under (x, y).
 * @param {{lat: number, lng: number}} geo
 */
function planeInverse({ lat, lng }) {
  const sin = Math.sin(lat * RADIAN), cos = Math.cos(lat * RADIAN);
  const radius = A / Math.sqrt(1 - E2 * sin * sin), b = A * Math.sqrt(1 - E2);
  const across = radius * cos, along = radius * (1 - E2) * sin;
  return (/** @type {number} */ x, /** @type {number} */ y) => {
    const qx = across - y * sin, qz = along + y * cos, ux = cos / A, uz = sin / b;
    const uu = ux * ux + uz * uz, uq = ux * qx / A + uz * qz / b;
    const inside = uq * uq - uu * ((qx * qx + x * x) / (A * A) + qz * qz / (b * b) - 1);
    const t = (Math.sqrt(inside) - uq) / uu, px = qx + t * cos;
    return [lng + Math.atan2(x, px) / RADIAN,
      Math.atan2(qz + t * sin, (1 - E2) * Math.hypot(px, x)) / RADIAN];
  };
}

/**
 * UTM, by Krüger's series (server/terrain/geo/transverse.c).
 * @param {number} zone @param {boolean} isSouth @param {number} e2
 */
function transverseInverse(zone, isSouth, e2) {
  const f = 1 - Math.sqrt(1 - e2), n = f / (2 - f), n2 = n * n, n3 = n2 * n, n4 = n3 * n;
  const scale = 0.9996 * A / (1 + n) * (1 + n2 / 4 + n4 / 64), e = Math.sqrt(e2);
  const series = [n / 2 - 2 * n2 / 3 + 37 * n3 / 96 - n4 / 360, n2 / 48 + n3 / 15 - 437 * n4 / 1440,
    17 * n3 / 480 - 37 * n4 / 840, 4397 * n4 / 161280];
  const conformal = (/** @type {number} */ t) => {
    const root = Math.hypot(1, t), sigma = Math.sinh(e * Math.atanh(e * t / root));
    return t * Math.hypot(1, sigma) - sigma * root;
  };
  return (/** @type {number} */ east, /** @type {number} */ north) => {
    const eta = (east - 500000) / scale, xi = (north - (isSouth ? 1e7 : 0)) / scale;
    let x = eta, y = xi;
    series.forEach((c, i) => {
      const k = 2 * (i + 1);
      x -= c * Math.cos(k * xi) * Math.sinh(k * eta);
      y -= c * Math.sin(k * xi) * Math.cosh(k * eta);
    });
    const tau = Math.sin(y) / Math.hypot(Math.sinh(x), Math.cos(y));
    let t = tau;
    for (let i = 0; i < 5; i++) {
      const now = conformal(t);
      t += (tau - now) / Math.hypot(1, now) * (1 + (1 - e2) * t * t) / ((1 - e2) * Math.hypot(1, t));
    }
    return [6 * zone - 183 + Math.atan2(Math.sinh(x), Math.cos(y)) / RADIAN, Math.atan(t) / RADIAN];
  };
}

/**
 * From the frame to [longitude, latitude]; null where the locale is nowhere.
 * @param {{geo?: {lat: number, lng: number}, crs?: string}} locale
 * @returns {((x: number, y: number) => number[])|null}
 */
export function toDegrees(locale) {
  if (locale.geo) return planeInverse(locale.geo);
  const code = Number((locale.crs ?? "").replace("EPSG:", ""));
  const grs80 = squaredEccentricity(298.257222101);
  if (code === 3857)
    return (x, y) => [x / A / RADIAN, Math.atan(Math.sinh(y / A)) / RADIAN];
  if (code > 32600 && code <= 32660) return transverseInverse(code - 32600, false, E2);
  if (code > 32700 && code <= 32760) return transverseInverse(code - 32700, true, E2);
  if (code >= 25828 && code <= 25838) return transverseInverse(code - 25800, false, grs80);
  if (code > 26900 && code <= 26923) return transverseInverse(code - 26900, false, grs80);
  return null;
}

/**
 * A box of degrees around a box of the frame, [west, south, east, north]; east may be over 180.
 * Where a pole may be inside or the frame leaves the Earth it goes all around.
 * @param {(x: number, y: number) => number[]} project
 * @param {{min: number[], max: number[]}} box
 */
function degreesOf(project, { min, max }) {
  const [middle] = project((min[0] + max[0]) / 2, (min[1] + max[1]) / 2);
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i <= PLACES; i++) {
    for (let j = 0; j <= PLACES; j++) {
      const [lng, lat] = project(min[0] + (max[0] - min[0]) * i / PLACES,
        min[1] + (max[1] - min[1]) * j / PLACES);
      if (!Number.isFinite(lng + lat)) return [-180, -90, 180, 90];
      const near = lng - 360 * Math.round((lng - middle) / 360);
      [west, east] = [Math.min(west, near), Math.max(east, near)];
      [south, north] = [Math.min(south, lat), Math.max(north, lat)];
    }
  }
  const pad = (north - south) / PLACES / PLACES + 1e-12;
  if (east - west > 90) return [-180, south - pad, 180, Math.abs(north) > Math.abs(south) ? 90 : north];
  return [west - pad, south - pad, east + pad, north + pad];
}

/** Columns and rows of the tiles that meet a box of degrees. @param {number[]} box @param {number} z */
function rangeOf([west, south, east, north], z) {
  const n = 2 ** z;
  const row = (/** @type {number} */ lat) => {
    const inside = Math.max(-LATITUDE_MAX, Math.min(LATITUDE_MAX, lat)) * RADIAN;
    return Math.floor((1 - Math.asinh(Math.tan(inside)) / Math.PI) / 2 * n);
  };
  const column = (/** @type {number} */ lng) => Math.floor((lng + 180) / 360 * n);
  return { x0: column(west), x1: Math.min(column(east), column(west) + n - 1),
    y0: Math.max(0, row(north)), y1: Math.min(n - 1, row(south)) };
}

/**
 * The tiles of zoom zMin to zMax that a change of `bounds` touches, without those that have no
 * ground of the locale. A change at the ground's rim also changes what lies beyond it (void=edge).
 * @param {any} locale as GET /v1/locales/{locale} has it
 * @param {{min: number[], max: number[]}|null} bounds null: all of it
 * @param {number} zMin @param {number} zMax
 * @returns {{z: number, x: number, y: number}[]}
 */
export function tilesOf(locale, bounds, zMin, zMax) {
  const project = toDegrees(locale), all = locale.bounds;
  if (!project || !all) return [];
  const touched = { min: [0, 0], max: [0, 0] };
  for (let i = 0; i < 2; i++) {
    const size = all.max[i] - all.min[i], low = bounds?.min[i] ?? all.min[i];
    const high = bounds?.max[i] ?? all.max[i];
    touched.min[i] = low <= all.min[i] ? low - size : low;
    touched.max[i] = high >= all.max[i] ? high + size : high;
  }
  const changed = degreesOf(project, touched), ground = degreesOf(project, all), tiles = [];
  for (let z = zMin; z <= zMax; z++) {
    const n = 2 ** z, a = rangeOf(changed, z), b = rangeOf(ground, z);
    for (let y = Math.max(a.y0, b.y0); y <= Math.min(a.y1, b.y1); y++) {
      const seen = new Set();
      for (const turn of [-n, 0, n])
        for (let x = Math.max(a.x0 + turn, b.x0); x <= Math.min(a.x1 + turn, b.x1); x++)
          seen.add(((x % n) + n) % n);
      for (const x of seen) tiles.push({ z, x, y });
    }
  }
  return tiles;
}

/**
 * For Kota.tileHeights.
 * @param {import("./kota.js").Kota} kota @param {string} path of the tile
 * @param {{layer?: string, kind?: "sampled"|"min"|"max", tag?: string, signal?: AbortSignal}} o
 * @returns {Promise<{heights: Float32Array|null, tag: string, bytes: number}|null>}
 */
export async function tileHeights(kota, path, o) {
  const query = new URLSearchParams({ format: "f32" });
  if (o.layer) query.set("layer", o.layer);
  if (o.kind) query.set("kind", o.kind);
  try {
    const answer = await kota.get(`${path}?${query}`, { signal: o.signal, quiet: true,
      headers: o.tag ? { "If-None-Match": o.tag } : {} });
    const tag = answer.headers.get("etag") ?? "";
    const bytes = answer.buffer.byteLength;
    if (answer.status === 304) return { heights: null, tag, bytes: 0 };
    return { heights: new Float32Array(answer.buffer), tag, bytes };
  } catch (error) {
    if (error instanceof NotFoundError) return null;
    throw error;
  }
}
