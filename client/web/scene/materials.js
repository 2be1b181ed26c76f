/**
 * Textures of the ground, made at start and the same every time: grass, earth, rock and snow, in an
 * array of layers that tile. A texel has a tone (r, 128 is none), slopes (g, b, 128 is flat) and a
 * height (a). What they look like is only in `kinds`: how much of each size of grain.
 */
import { addNoise } from "/web/gl.js";

const SIDE = 256;

// gains of noise of 4, 8, 16, … cells a side; how strong tones and slopes are; ridges: sharp crests
const kinds = [
  { gains: [0.2, 0.3, 0.5, 0.8, 1, 0.9], tone: 1.1, slope: 9, ridges: false }, // grass: tufts
  { gains: [0.6, 0.6, 0.5, 0.4, 0.3, 0.3], tone: 0.7, slope: 6, ridges: false }, // earth
  { gains: [0.8, 1, 0.8, 0.6, 0.4, 0.2], tone: 1, slope: 16, ridges: true }, // rock: cracks
  { gains: [1, 0.7, 0.3, 0.1, 0.05, 0.02], tone: 0.25, slope: 4, ridges: false }, // snow: drifts
];

/** Heights of a layer, 0..1. */
function heightsOf({ gains, ridges }, seed) {
  const z = new Float32Array(SIDE * SIDE);
  gains.forEach((gain, i) => {
    const part = new Float32Array(SIDE * SIDE);
    addNoise(part, SIDE, 4 << i, 1, seed);
    for (let k = 0; k < z.length; k++)
      z[k] += gain * (ridges ? 1 - Math.abs(2 * part[k] - 1) : part[k]);
  });
  const low = z.reduce((a, b) => Math.min(a, b)), high = z.reduce((a, b) => Math.max(a, b));
  return z.map((v) => (v - low) / (high - low));
}

/** @param {WebGL2RenderingContext} gl @returns {WebGLTexture} RGBA8, a layer a kind */
export function makeMaterials(gl) {
  const texture = gl.createTexture(), bytes = new Uint8Array(4 * SIDE * SIDE);
  gl.bindTexture(gl.TEXTURE_2D_ARRAY, texture);
  gl.texStorage3D(gl.TEXTURE_2D_ARRAY, Math.log2(SIDE) + 1, gl.RGBA8, SIDE, SIDE, kinds.length);
  kinds.forEach((kind, layer) => {
    const z = heightsOf(kind, 17 * layer), mean = z.reduce((a, b) => a + b) / z.length;
    for (let y = 0, k = 0; y < SIDE; y++) {
      for (let x = 0; x < SIDE; x++, k++) {
        const right = z[y * SIDE + (x + 1) % SIDE], above = z[(y + 1) % SIDE * SIDE + x];
        bytes.set([128 + 255 * kind.tone * (z[k] - mean) * 0.5, 128 + 127 * kind.slope * (right - z[k]),
          128 + 127 * kind.slope * (above - z[k]), 255 * z[k]].map((v) =>
          Math.min(255, Math.max(0, v))), 4 * k);
      }
    }
    gl.texSubImage3D(gl.TEXTURE_2D_ARRAY, 0, 0, 0, layer, SIDE, SIDE, 1, gl.RGBA, gl.UNSIGNED_BYTE,
      bytes);
  });
  gl.generateMipmap(gl.TEXTURE_2D_ARRAY);
  gl.texParameteri(gl.TEXTURE_2D_ARRAY, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
  return texture;
}
