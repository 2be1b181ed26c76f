/**
 * Makes a picture small enough for a repository: PNG with a palette, chosen by median cut, without
 * dithering; each pixel gets the nearest of its colours. As many colours as the size allows, from
 * 256 down. Pixels come as RGBA, for instance from a canvas.
 */
import * as zlib from "node:zlib";

const triedColors = [256, 192, 128, 96, 64, 48, 32];

/** Splits the fullest box of colours at its median until there are enough; their means. */
function palette(counts, most) {
  const boxes = [[...counts].map(([color, count]) =>
    ({ rgb: [color >> 16, color >> 8 & 255, color & 255], count }))];
  const spread = (box) => [0, 1, 2].map((i) => {
    const values = box.map((one) => one.rgb[i]);
    return values.reduce((a, b) => Math.max(a, b)) - values.reduce((a, b) => Math.min(a, b));
  });
  const weight = (box) => box.length < 2 ? 0 :
    Math.max(...spread(box)) * Math.sqrt(box.reduce((sum, one) => sum + one.count, 0));
  const weights = [weight(boxes[0])];
  while (boxes.length < most) {
    const which = weights.indexOf(Math.max(...weights));
    if (weights[which] === 0) break;
    const box = boxes[which], sides = spread(box), axis = sides.indexOf(Math.max(...sides));
    box.sort((a, b) => a.rgb[axis] - b.rgb[axis]);
    const half = box.reduce((sum, one) => sum + one.count, 0) / 2;
    let at = 0;
    for (let sum = 0; at < box.length - 1 && sum < half; at++) sum += box[at].count;
    boxes.splice(which, 1, box.slice(0, Math.max(at, 1)), box.slice(Math.max(at, 1)));
    weights.splice(which, 1, weight(boxes[which]), weight(boxes[which + 1]));
  }
  return boxes.map((box) => {
    const all = box.reduce((sum, one) => sum + one.count, 0);
    return [0, 1, 2].map((axis) =>
      Math.round(box.reduce((sum, one) => sum + one.count * one.rgb[axis], 0) / all));
  });
}

/** For each colour the place of the nearest in the palette. */
function nearest(counts, colors) {
  const places = new Map();
  for (const color of counts.keys()) {
    const [r, g, b] = [color >> 16, color >> 8 & 255, color & 255];
    let best = 0, least = Infinity;
    for (let i = 0; i < colors.length; i++) {
      const [dr, dg, db] = [colors[i][0] - r, colors[i][1] - g, colors[i][2] - b];
      const far = dr * dr + dg * dg + db * db;
      if (far < least) [best, least] = [i, far];
    }
    places.set(color, best);
  }
  return places;
}

/** CRC-32 as PNG has it; node:zlib's own came with Node 22. */
function crc32(bytes) {
  if (zlib.crc32) return zlib.crc32(bytes);
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let k = 0; k < 8; k++) crc = crc & 1 ? crc >>> 1 ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

function chunk(type, bytes) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), bytes]);
  const head = Buffer.alloc(4), tail = Buffer.alloc(4);
  head.writeUInt32BE(bytes.length);
  tail.writeUInt32BE(crc32(body));
  return Buffer.concat([head, body, tail]);
}

/**
 * @param {number} width @param {number} height @param {Uint8Array} rgba row by row from the top
 * @param {number} limit in bytes; the smallest that was tried where none is below
 * @returns {Buffer} the file
 */
export function smallPng(width, height, rgba, limit) {
  const counts = new Map(), pixels = new Uint32Array(width * height);
  for (let i = 0; i < pixels.length; i++) {
    pixels[i] = rgba[4 * i] << 16 | rgba[4 * i + 1] << 8 | rgba[4 * i + 2];
    counts.set(pixels[i], (counts.get(pixels[i]) ?? 0) + 1);
  }
  const head = Buffer.alloc(13), rows = Buffer.alloc((width + 1) * height);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  let file;
  for (const most of triedColors) {
    const colors = palette(counts, most), places = nearest(counts, colors);
    for (let i = 0; i < pixels.length; i++)
      rows[Math.floor(i / width) * (width + 1) + 1 + i % width] = places.get(pixels[i]);
    file = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head),
      chunk("PLTE", Buffer.from(colors.flat())),
      chunk("IDAT", zlib.deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
    if (file.length <= limit) break;
  }
  return file;
}
