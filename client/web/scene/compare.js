/**
 * The same view drawn by clipmaps and drawn with every sample of the field, and how they differ
 * (C. Leach 2014, appendix B); a measurement, nothing that a visitor of the page sees.
 *
 * The whole field is drawn block by block, each uploaded, drawn and forgotten, so that the memory
 * does not grow with the field. Grey is 0.299 R + 0.587 G + 0.114 B.
 *
 * A crack is a background pixel with ground above it in its column. Over a field of heights, seen
 * from above it and inside of it by a camera without roll, there is none: a vertical plane through
 * the eye meets the ground in one piece from the bottom of the picture to the skyline. Straight
 * down, over the middle of the field, every background pixel is one.
 */
import { gradients, heightPairs, isAnti } from "/web/field.js";
import { setPlainBlock } from "/web/block.js";
import { isOutside } from "/web/camera.js";
import { makeTarget, makeTexture, uploadTorus } from "/web/gl.js";

const SIDE = 256;
const TORUS = 512;

function pixelsOf(gl, target) {
  const bytes = new Uint8Array(4 * target.width * target.height);
  gl.readPixels(0, 0, target.width, target.height, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
  return bytes;
}

function blockIndices(gl, split) {
  const n = SIDE + 1, indices = new Uint32Array(6 * SIDE * SIDE);
  for (let r = 0, k = 0; r < SIDE; r++) {
    for (let c = 0; c < SIDE; c++, k += 6) {
      const v = r * n + c;
      indices.set(isAnti(split, c + r) ? [v, v + 1, v + n, v + 1, v + n + 1, v + n] :
        [v, v + 1, v + n + 1, v, v + n + 1, v + n], k);
    }
  }
  const buffer = gl.createBuffer();
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffer);
  gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);
  return { buffer, count: indices.length };
}

/** The blocks of level 0 that a view meets: [column, row]. */
function blocksInView(field, eye, planes) {
  const list = [], [w, h] = field.last.map((cells) => Math.ceil(cells / SIDE));
  for (let row = 0; row < h; row++) {
    for (let column = 0; column < w; column++) {
      const a = field.place(0, column * SIDE, row * SIDE);
      const b = field.place(0, (column + 1) * SIDE, (row + 1) * SIDE);
      if (!isOutside(planes, [a[0] - eye[0], a[1] - eye[1], field.low - eye[2]],
        [b[0] - eye[0], b[1] - eye[1], field.high - eye[2]])) list.push([column, row]);
    }
  }
  return list;
}

async function drawWhole(terrain, target, o) {
  const { gl, field, camera, ground, cache } = terrain, { eye } = camera;
  const heights = makeTexture(gl, gl.RG32F, TORUS, TORUS, { wrapped: true });
  const slopes = makeTexture(gl, gl.RG16F, TORUS, TORUS, { wrapped: true, linear: true });
  const indices = blockIndices(gl, field.split);
  let pass = null, triangles = 0;
  const view = { width: target.width, height: target.height, above: terrain.above, isBare: true, ...o };
  gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
  pass = ground.begin(field, camera, view);
  for (const block of blocksInView(field, eye, pass.planes)) {
    const rect = [block[0] * SIDE - 1, block[1] * SIDE - 1, SIDE + 3, SIDE + 3];
    const around = [rect[0] - 2, rect[1] - 2, rect[2] + 4, rect[3] + 4];
    await Promise.all(field.places(0, around).map((place) => cache.load(place)));
    gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
    ground.use(field, camera, view);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, slopes);
    uploadTorus(gl, TORUS, ...rect, gl.RG, gradients(field, 0, rect), 2);
    gl.bindTexture(gl.TEXTURE_2D, heights);
    uploadTorus(gl, TORUS, ...rect, gl.RG, heightPairs(field, 0, rect), 2);
    for (const [unit, texture] of [heights, slopes].entries()) {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, texture);
    }
    gl.bindVertexArray(null);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, indices.buffer);
    setPlainBlock(gl, pass.at, field, eye,
      { first: block.map((v) => v * SIDE), vertices: SIDE + 1, texels: TORUS });
    gl.drawElements(gl.TRIANGLES, indices.count, gl.UNSIGNED_INT, 0);
    triangles += indices.count / 3;
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }
  gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
  ground.drawSky(camera, target.width / target.height);
  const pixels = pixelsOf(gl, target);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  gl.deleteTexture(heights);
  gl.deleteTexture(slopes);
  gl.deleteBuffer(indices.buffer);
  return { pixels, triangles };
}

function drawClipmaps(terrain, target, plain, relief = true, rects = []) {
  const { gl, ground, clipmap, field, camera } = terrain;
  gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
  const pass = ground.begin(field, camera, { width: target.width, height: target.height,
    above: terrain.above, plain, relief, rects, isBare: true });
  clipmap.draw(pass.at, camera.eye, pass.planes);
  if (!plain) ground.drawSky(camera, target.width / target.height);
  const pixels = pixelsOf(gl, target);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  return pixels;
}

/** Background pixels with ground above them in their column; rows are from the bottom. */
function cracksOf(plain, width, height) {
  let cracks = 0;
  for (let x = 0; x < width; x++) {
    let ground = false;
    for (let y = height - 1; y >= 0; y--) {
      const white = plain[4 * (y * width + x)] > 0;
      if (!white && ground) cracks++;
      ground ||= white;
    }
  }
  return cracks;
}

function countBlack(plain) {
  let black = 0;
  for (let i = 0; i < plain.length; i += 4) if (plain[i] === 0) black++;
  return black;
}

/** Squares of k x k pixels become one. */
function reduced(pixels, width, height, k) {
  if (k === 1) return pixels;
  const w = width / k, out = new Float32Array(4 * w * height / k);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      for (let c = 0, at = 4 * (Math.floor(y / k) * w + Math.floor(x / k)); c < 4; c++)
        out[at + c] += pixels[4 * (y * width + x) + c] / (k * k);
  return Uint8Array.from(out, Math.round);
}

function difference(a, b) {
  const grey = (p, i) => 0.299 * p[i] + 0.587 * p[i + 1] + 0.114 * p[i + 2];
  const counts = new Uint32Array(256);
  let sum = 0;
  for (let i = 0; i < a.length; i += 4) {
    const d = Math.abs(grey(a, i) - grey(b, i));
    sum += d;
    counts[Math.min(255, Math.round(d))]++;
  }
  let p99 = 0;
  for (let seen = 0; p99 < 255 && seen + counts[p99] < 0.99 * a.length / 4; p99++)
    seen += counts[p99];
  return { mean: sum / (a.length / 4), p99 };
}

/** A picture of where two differ, four times as strong. */
function apart(a, b) {
  return a.map((v, i) => i % 4 === 3 ? 255 : Math.min(255, 4 * Math.abs(v - b[i])));
}

/** A picture as PNG, base64, for people to look at. */
async function pictureOf(pixels, width, height) {
  const canvas = new OffscreenCanvas(width, height), context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let y = 0, row = 4 * width; y < height; y++)
    image.data.set(pixels.subarray(row * y, row * (y + 1)), row * (height - 1 - y));
  context.putImageData(image, 0, 0);
  const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192)
    text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

/**
 * @param {object} terrain the 3D view, its levels complete
 * @param {{width?: number, height?: number, samples?: number, whole?: boolean, pictures?: boolean,
 *          allLevels?: boolean, border?: boolean, relief?: boolean, rects?: number[][]}} o
 *   samples: squared, of a pixel; whole: false draws no full resolution (only cracks);
 *   allLevels: even those that the height of the eye would leave out; border: false leaves out the
 *   triangles that cover gaps of rounding; relief: false draws as in motion;
 *   rects: left out of the ground where background is counted, as those of sand patches
 * @returns {Promise<{mean?: number, p99?: number, cracks: number, background: number,
 *   triangles: number, levels: number, wholeTriangles?: number, wholeMs?: number,
 *   pictures?: string[]}>} of grey: the mean difference and what 99 of 100 pixels are below; pictures
 *   as PNG in base64
 */
export async function compare(terrain, o = {}) {
  const { gl, clipmap } = terrain, width = o.width ?? 640, height = o.height ?? 400;
  const k = o.samples ?? 1, target = makeTarget(gl, k * width, k * height);
  const small = (pixels) => reduced(pixels, k * width, k * height, k);
  try {
    clipmap.allLevels = Boolean(o.allLevels);
    clipmap.withBorder = o.border ?? true;
    terrain.whole = false;
    await terrain.ready();
    for (let fine = clipmap.refine(); !fine.isWhole; fine = clipmap.refine())
      await Promise.all([...fine.wanted.values()].map((place) => terrain.cache.load(place)));
    const near = small(drawClipmaps(terrain, target, false, o.relief));
    const plain = drawClipmaps(terrain, target, true, true, o.rects);
    const result = { cracks: cracksOf(plain, k * width, k * height), background: countBlack(plain),
      triangles: clipmap.counters.triangles, levels: clipmap.shown.length };
    if (o.whole === false) return result;
    const start = performance.now();
    const whole = await drawWhole(terrain, target, {}), wholeMs = performance.now() - start;
    const full = small(whole.pixels);
    Object.assign(result, difference(near, full), { wholeTriangles: whole.triangles, wholeMs });
    if (o.pictures) result.pictures = await Promise.all([near, full, apart(near, full)]
      .map((pixels) => pictureOf(pixels, width, height)));
    return result;
  } finally {
    clipmap.allLevels = false;
    clipmap.withBorder = true;
    target.release();
    terrain.draw();
  }
}
