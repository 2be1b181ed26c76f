/**
 * Directions and frames of a locale: which way is up at a place, and how its frame lies in the
 * world. Locales of an older daemon, which report no gravity or placement, are taken as plain ones.
 */
import { turned } from "/web/poses.js";

/** A vector of length 1; [0, 0, 1] where it has none. */
function unit(v) {
  const length = Math.hypot(...v);
  return length > 0 ? v.map((x) => x / length) : [0, 0, 1];
}

/**
 * Against gravity at a point p of the locale's frame is `everywhere + byPoint · p`, number by
 * number: of the locale's gravity, or away from (for `gravity=out` towards) the origin of a sphere
 * or the axis of a drum.
 * @param {object} locale
 * @returns {{everywhere: number[], byPoint: number[]}}
 */
export function upField(locale) {
  const radial = locale.layers.find((layer) => layer.frame && layer.frame !== "cartesian");
  if (!radial)
    return { everywhere: unit((locale.gravity ?? [0, 0, -1]).map((v) => -v)), byPoint: [0, 0, 0] };
  const out = radial.gravity === "out" ? -1 : 1;
  return { everywhere: [0, 0, 0], byPoint: [out, out, radial.frame === "cylindrical" ? 0 : out] };
}

/**
 * The unit vector against gravity.
 * @param {object} locale @param {number[]} point in its frame
 * @returns {number[]}
 */
export function upAt(locale, point) {
  const { everywhere, byPoint } = upField(locale);
  return unit(point.map((v, i) => everywhere[i] + byPoint[i] * v));
}

const still = { translation: [0, 0, 0], rotation: [0, 0, 0, 1] };

/** A direction of the locale's frame in the world's. */
export function directionToWorld({ placement = still }, v) {
  return turned(placement.rotation, v);
}

/** A point of the locale's frame in the world's. */
export function toWorld(locale, point) {
  const { translation } = locale.placement ?? still;
  return directionToWorld(locale, point).map((v, i) => v + translation[i]);
}

/** A direction of the world's frame in the locale's. */
export function directionToLocal({ placement = still }, v) {
  const [x, y, z, w] = placement.rotation;
  return turned([-x, -y, -z, w], v);
}

/** A point of the world's frame in the locale's. */
export function toLocal(locale, point) {
  const { translation } = locale.placement ?? still;
  return directionToLocal(locale, point.map((v, i) => v - translation[i]));
}

/** A hit or contact in the world's frame, in the locale's. */
export function hitToLocal(locale, hit) {
  const moved = { ...hit, point: toLocal(locale, hit.point),
    normal: directionToLocal(locale, hit.normal) };
  return hit.velocity ? { ...moved, velocity: directionToLocal(locale, hit.velocity) } : moved;
}
