/**
 * Mesh layers as outlines for the map, from the layer's OBJ export: the sides of its polygons, each
 * once. A layer with too many polygons is shown as its box, and a message says so.
 */
import { parseObj } from "/web/obj.js";

/** Polygons of a layer that is fetched whole; about 10 MB of OBJ. */
const POLYGONS_MAX = 100000;

/**
 * The sides of an OBJ file's polygons.
 * @param {string} text v and f lines
 * @returns {{sides: Float64Array, count: number}} x0 y0 z0 x1 y1 z1 a side
 */
export function sidesOf(text) {
  const { points, faces } = parseObj(text), sides = [], seen = new Set();
  for (const corners of faces) {
    corners.forEach((from, i) => {
      const to = corners[(i + 1) % corners.length];
      const key = Math.min(from, to) * 2 ** 26 + Math.max(from, to);
      if (seen.has(key)) return;
      seen.add(key);
      sides.push(...points[from], ...points[to]);
    });
  }
  return { sides: Float64Array.from(sides), count: sides.length / 6 };
}

/** The sides as a path in metres from `base`, seen from above. */
function pathOf(sides, base) {
  const path = new Path2D();
  for (let i = 0; i < sides.length; i += 6) {
    path.moveTo(sides[i] - base[0], sides[i + 1] - base[1]);
    path.lineTo(sides[i + 3] - base[0], sides[i + 4] - base[1]);
  }
  return path;
}

/** A mesh layer's box, when that is all there is to show. */
function boxPath(layer) {
  const path = new Path2D(), { min, max } = layer.bounds;
  path.rect(0, 0, max[0] - min[0], max[1] - min[1]);
  return path;
}

/**
 * @param {import("./kota.js").Kota} kota @param {string} locale @param {object} layer of kind mesh
 * @param {AbortSignal} signal
 * @returns {Promise<{id: string, role: string, path: Path2D, base: number[], note: string}>} the
 *   path is in metres from base; note is "" or says what is not shown
 */
export async function outline(kota, locale, layer, signal) {
  const base = layer.bounds.min, made = { id: layer.id, role: layer.role, base, note: "" };
  if (layer.polygons > POLYGONS_MAX) {
    const note = `${layer.id} has ${layer.polygons} polygons: the map shows its box alone.`;
    return { ...made, path: boxPath(layer), note };
  }
  const path = `/v1/locales/${locale}/layers/${layer.id}?format=obj`;
  const { sides } = sidesOf((await kota.get(path, { signal, quiet: true })).text);
  return { ...made, path: pathOf(sides, base) };
}
