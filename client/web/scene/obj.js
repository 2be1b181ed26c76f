/**
 * The part of OBJ that the daemon writes: v and f lines.
 */

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
