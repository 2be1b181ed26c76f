/**
 * The part of OBJ that the daemon writes: v and f lines; and normals of what it describes.
 */
const CREASE = Math.cos(35 * Math.PI / 180); // faces that meet at a sharper edge stay apart
const FAN_MAX = 64; // triangles at one point that are looked at

/**
 * @param {string} text
 * @returns {{points: number[][], faces: number[][]}} faces as indices of points; those that name a
 *   point which is not there are left out
 */
export function parseObj(text) {
  const points = [], faces = [];
  for (const line of text.split("\n")) {
    const words = line.trim().split(/\s+/);
    if (words[0] === "v") points.push(words.slice(1, 4).map(Number));
    if (words[0] !== "f") continue;
    const corners = words.slice(1).map((word) => {
      const index = parseInt(word, 10);
      return index < 0 ? points.length + index : index - 1;
    });
    if (corners.length >= 3) faces.push(corners);
  }
  return { points, faces: faces.filter((corners) => corners.every((i) => points[i])) };
}

/**
 * A normal for each corner of triangles: that of the faces at its point that are not beyond a crease,
 * weighted by their angles there (G. Thürmer and C. A. Wüthrich 1998). Points within a micrometre are one.
 * @param {number[][]} points @param {Uint32Array} corners three a triangle @returns {Float32Array}
 */
export function smoothNormals(points, corners) {
  const less = (a, b) => a.map((v, i) => v - b[i]), dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const unit = (a) => a.map((v) => v / (Math.hypot(...a) || 1));
  const fans = new Map(), faces = [], out = new Float32Array(3 * corners.length);
  for (let i = 0; i < corners.length; i++) {
    const first = i - i % 3, [here, next, last] = [0, 1, 2].map((k) => points[corners[first + (i + k) % 3]]);
    if (i === first) faces.push(unit(cross(less(next, here), less(last, here))));
    const key = here.map((v) => Math.round(v * 1e6)).join(), fan = fans.get(key) ?? [];
    const cos = dot(unit(less(next, here)), unit(less(last, here)));
    fan.push({ corner: i, face: faces[first / 3], angle: Math.acos(Math.min(1, Math.max(-1, cos))) });
    fans.set(key, fan);
  }
  for (const fan of fans.values())
    for (const { corner, face } of fan) {
      const sum = [0, 0, 0];
      for (const other of fan.slice(0, FAN_MAX))
        if (dot(face, other.face) > CREASE) other.face.forEach((v, k) => { sum[k] += v * other.angle; });
      out.set(unit(dot(sum, sum) > 0 ? sum : face), 3 * corner);
    }
  return out;
}
