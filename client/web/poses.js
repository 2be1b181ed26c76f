/**
 * Where mesh layers stand that were moved (PUT …/transform): a pose turns a layer about the line of
 * gravity through its own origin, right-handed about "up", or by a rotation, and shifts it then. Layers of planets and
 * drums, and those of a daemon that knows no poses, stand still.
 */

/**
 * @param {number[]} gravity of the locale @param {{translation: number[], yaw_deg?: number, rotation?: number[]}} pose
 * @returns {{position: number[], orientation: number[]}} shift, and unit quaternion [x, y, z, w]
 */
export function standing(gravity, { translation, yaw_deg: yaw = 0, rotation }) {
  const up = (gravity ?? [0, 0, -1]).map((v) => -v), half = (yaw % 360) * Math.PI / 360;
  return { position: [...translation], orientation: rotation ?? [...up.map((v) => v * Math.sin(half)), Math.cos(half)] };
}

/** @param {object} locale @returns {Map<string, object>} layer → its pose; only moved layers */
export function standingsOf(locale) {
  return new Map(locale.layers.filter((layer) => layer.transform)
    .map((layer) => [layer.id, standing(locale.gravity, layer.transform)]));
}

/** A vector turned by a unit quaternion [x, y, z, w]. */
export function turned([x, y, z, w], [a, b, c]) {
  const t = [2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)];
  return [a + w * t[0] + y * t[2] - z * t[1], b + w * t[1] + z * t[0] - x * t[2],
    c + w * t[2] + x * t[1] - y * t[0]];
}
