/**
 * Mesh layers as outlines for the map, from the layer's OBJ export: the sides of its polygons, each
 * once. A layer with too many polygons is shown as its box, and a message says so.
 */
import { parseObj } from "/web/obj.js";
import { turned } from "/web/poses.js";

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

/** The sides of a layer that was moved, seen from above. */
function turnedPath(sides, orientation) {
  const out = new Float64Array(sides.length);
  for (let i = 0; i < sides.length; i += 3)
    out.set(turned(orientation, sides.subarray(i, i + 3)), i);
  return pathOf(out, [0, 0]);
}

/** A layer that is shown as its box. */
export function boxOutline({ min, max }) {
  const path = new Path2D();
  path.rect(0, 0, max[0] - min[0], max[1] - min[1]);
  return { path, base: min };
}

/**
 * @param {import("./kota.js").Kota} kota @param {string} locale @param {object} layer of kind mesh
 * @param {AbortSignal} signal
 * @returns {Promise<{id: string, role: string, note: string, sides: Float64Array|null,
 *   path: Path2D, base: number[]}>} the path is in metres from base, of the layer as its file has
 *   it; without sides it is the layer's box; note is "" or says what is not shown
 */
export async function outline(kota, locale, layer, signal) {
  const made = { id: layer.id, role: layer.role, note: "", sides: null };
  if (layer.polygons > POLYGONS_MAX) {
    const note = `${layer.id} has ${layer.polygons} polygons: the map shows its box alone.`;
    return { ...made, note, ...boxOutline(layer.bounds) };
  }
  const path = `/v1/locales/${locale}/layers/${layer.id}?format=obj`;
  const { sides } = sidesOf((await kota.get(path, { signal, quiet: true })).text);
  const base = [...sides.subarray(0, 2)];
  return { ...made, sides, base, path: pathOf(sides, base) };
}

/**
 * How an outline is drawn at its layer's pose.
 * @param {object} made by outline @param {object|undefined} pose (poses.js)
 * @returns {{path: Path2D, base: number[], turn: number[]}} the path, turned by [cos, sin], begins
 *   at base
 */
export function placed(made, pose) {
  const { path, base, sides } = made;
  if (!pose || !sides) return { path, base, turn: [1, 0] };
  const { position, orientation } = pose, [qx, qy, qz, w] = orientation;
  if (qx === 0 && qy === 0) {
    const at = turned(orientation, [...base, 0]).map((v, i) => v + position[i]);
    return { path, base: at, turn: [w * w - qz * qz, 2 * w * qz] };
  }
  const key = orientation.join(); // gravity is not along z: what is seen from above changes
  if (made.turnedKey !== key) made.turnedPath = turnedPath(sides, orientation);
  made.turnedKey = key;
  return { path: made.turnedPath, base: position, turn: [1, 0] };
}
