/**
 * The little of WebGL2 that the 3D view needs: a context, programs from shader files, textures.
 *
 * Failures are said in words: no WebGL2, a shader that does not compile (with its log), a context
 * that was lost. Nothing here knows of terrain.
 */

const FINER = 4; // texels of the noise's texture beside those that noise is made of

/** No 3D on this machine; the message says why. */
export class NoWebGL extends Error {}

/**
 * @param {HTMLCanvasElement} canvas
 * @returns {WebGL2RenderingContext}
 * @throws {NoWebGL}
 */
export function openContext(canvas) {
  const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, depth: true,
    stencil: false, powerPreference: "high-performance", preserveDrawingBuffer: false });
  if (!gl) throw new NoWebGL("This browser has no WebGL2, so there is no 3D view. The map works.");
  if (gl.getParameter(gl.MAX_VERTEX_TEXTURE_IMAGE_UNITS) < 1)
    throw new NoWebGL("This graphics driver reads no textures in vertex shaders, which the 3D " +
      "view needs. The map works.");
  return gl;
}

/** @param {WebGL2RenderingContext} gl @returns {boolean} is it drawn by the processor? */
export function isSoftware(gl) {
  const names = gl.getExtension("WEBGL_debug_renderer_info");
  const name = names ? gl.getParameter(names.UNMASKED_RENDERER_WEBGL) : "";
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

const sources = new Map(); // name → its text, also while it comes

async function fetchSource(name) {
  const response = await fetch(`/web/${name}.glsl`).catch((cause) => {
    throw new Error(`The shader ${name} did not come: ${cause.message}.`, { cause });
  });
  if (!response.ok) throw new Error(`The shader ${name} did not come: status ${response.status}.`);
  const parts = (await response.text()).split(/^#include "(\w+)"$/m); // odd ones are names
  return (await Promise.all(parts.map((part, i) => i % 2 ? sourceOf(part) : part))).join("");
}

/** A shader with what it includes; one that did not come is asked for again the next time. */
function sourceOf(name) {
  if (!sources.has(name)) sources.set(name, fetchSource(name).catch((error) => {
    sources.delete(name);
    throw error;
  }));
  return sources.get(name);
}

function compile(gl, kind, name, source) {
  const shader = gl.createShader(kind);
  gl.shaderSource(shader, source);
  gl.compileShader(shader);
  if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost())
    throw new Error(`The shader ${name} does not compile here: ${gl.getShaderInfoLog(shader)}`);
  return shader;
}

/**
 * A program of two shader files and its uniforms by name.
 * @param {WebGL2RenderingContext} gl @param {string} vertex @param {string} fragment file names
 * @param {string[]} [defines] what both are compiled with
 * @returns {Promise<{program: WebGLProgram, at: Record<string, WebGLUniformLocation>}>}
 */
export async function makeProgram(gl, vertex, fragment, defines = []) {
  return (await programMaker(gl, vertex, fragment))(defines);
}

/**
 * Makes programs of two shader files at once when asked, each only the first time.
 * @returns {Promise<(defines: string[]) => ReturnType<typeof link>>}
 */
export async function programMaker(gl, vertex, fragment) {
  const sources = await Promise.all([sourceOf(vertex), sourceOf(fragment)]), made = new Map();
  return (defines) => {
    const key = defines.join();
    if (!made.has(key)) made.set(key, link(gl, [vertex, fragment], sources, defines));
    return made.get(key);
  };
}

function link(gl, [vertex, fragment], sources, defines) {
  const [v, f] = sources.map((source) =>
    source.replace("\n", ["", ...defines.map((name) => `#define ${name}`), ""].join("\n")));
  const program = gl.createProgram();
  gl.attachShader(program, compile(gl, gl.VERTEX_SHADER, vertex, v));
  gl.attachShader(program, compile(gl, gl.FRAGMENT_SHADER, fragment, f));
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost())
    throw new Error(`${vertex} and ${fragment} do not link: ${gl.getProgramInfoLog(program)}`);
  const at = {};
  for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
    const { name } = gl.getActiveUniform(program, i);
    at[name.replace("[0]", "")] = gl.getUniformLocation(program, name);
  }
  return { program, at };
}

/**
 * An empty texture. Wrapped ones are addressed as a torus.
 * @param {WebGL2RenderingContext} gl @param {number} format sized internal format
 * @param {number} width @param {number} height
 * @param {{linear?: boolean, wrapped?: boolean, levels?: number}} [o]
 * @returns {WebGLTexture}
 */
export function makeTexture(gl, format, width, height, o = {}) {
  const texture = gl.createTexture();
  const wrap = o.wrapped ? gl.REPEAT : gl.CLAMP_TO_EDGE;
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texStorage2D(gl.TEXTURE_2D, o.levels ?? 1, format, width, height);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, wrap);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, wrap);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, o.linear ? gl.LINEAR : gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, o.levels > 1 ?
    gl.NEAREST_MIPMAP_NEAREST : o.linear ? gl.LINEAR : gl.NEAREST);
  return texture;
}

/** A picture to draw into, with depth. @param {WebGL2RenderingContext} gl */
export function makeTarget(gl, width, height) {
  const frame = gl.createFramebuffer(), color = makeTexture(gl, gl.RGBA8, width, height);
  const depth = gl.createRenderbuffer();
  gl.bindRenderbuffer(gl.RENDERBUFFER, depth);
  gl.renderbufferStorage(gl.RENDERBUFFER, gl.DEPTH_COMPONENT24, width, height);
  gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, color, 0);
  gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.RENDERBUFFER, depth);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  return { frame, width, height,
    release() {
      gl.deleteFramebuffer(frame);
      gl.deleteTexture(color);
      gl.deleteRenderbuffer(depth);
    } };
}

/**
 * Uploads a rectangle of a torus: it is cut where it runs over the texture's border.
 * @param {WebGL2RenderingContext} gl the texture is bound
 * @param {number|number[]} side of the texture, or its width and height @param {number} x @param {number} y absolute indices
 * @param {number} width @param {number} height at most side
 * @param {number} format @param {Float32Array} values @param {number} channels
 */
export function uploadTorus(gl, side, x, y, width, height, format, values, channels) {
  const [across, along] = typeof side === "number" ? [side, side] : side;
  const wrapped = (index, count) => (index % count + count) % count;
  gl.pixelStorei(gl.UNPACK_ROW_LENGTH, width);
  for (let v = 0; v < height;) {
    const ty = wrapped(y + v, along), rows = Math.min(height - v, along - ty);
    for (let u = 0; u < width;) {
      const tx = wrapped(x + u, across), columns = Math.min(width - u, across - tx);
      gl.texSubImage2D(gl.TEXTURE_2D, 0, tx, ty, columns, rows, format, gl.FLOAT, values,
        channels * (v * width + u));
      u += columns;
    }
    v += rows;
  }
  gl.pixelStorei(gl.UNPACK_ROW_LENGTH, 0);
}

/**
 * A texture of smooth noise that tiles, with mipmaps; the same every time. It is interpolated once,
 * here, and read without a filter, which on llvmpipe costs more than half of a read.
 * @param {WebGL2RenderingContext} gl @param {number} side a power of two; the texture's is FINER times
 *   as long
 * @returns {WebGLTexture} R8
 */
export function makeNoise(gl, side) {
  const sum = new Float32Array(side * side);
  for (let cells = 4, gain = 1; cells <= side / 2; cells *= 2, gain *= 0.62)
    addNoise(sum, side, cells, gain);
  const low = sum.reduce((a, b) => Math.min(a, b)), high = sum.reduce((a, b) => Math.max(a, b));
  const wide = FINER * side, fine = new Uint8Array(wide * wide), at = (i) => (i + 0.5) / FINER - 0.5;
  for (let y = 0, k = 0; y < wide; y++) {
    const v = Math.floor(at(y)), t = at(y) - v, row = (v + side) % side * side;
    const next = (v + 1) % side * side;
    for (let x = 0; x < wide; x++, k++) {
      const u = Math.floor(at(x)), s = at(x) - u, c = (u + side) % side, c1 = (u + 1) % side;
      const a = sum[row + c] + s * (sum[row + c1] - sum[row + c]);
      const b = sum[next + c] + s * (sum[next + c1] - sum[next + c]);
      fine[k] = 255 * (a + t * (b - a) - low) / (high - low);
    }
  }
  const texture = makeTexture(gl, gl.R8, wide, wide, { wrapped: true, levels: Math.log2(wide) + 1 });
  gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, wide, wide, gl.RED, gl.UNSIGNED_BYTE, fine);
  gl.generateMipmap(gl.TEXTURE_2D);
  return texture;
}

function hash(x, y, seed) {
  let h = Math.imul(x, 374761393) ^ Math.imul(y, 668265263) ^ Math.imul(seed, 2147483647);
  h = Math.imul(h ^ (h >>> 13), 1274126177);
  return ((h ^ (h >>> 16)) >>> 0) / 4294967296;
}

/** Adds smooth noise that tiles, of so many cells a side, to a square. */
export function addNoise(sum, side, cells, gain, seed = 0) {
  const ease = (t) => t * t * (3 - 2 * t), mix = (a, b, t) => a + (b - a) * t;
  const key = cells + 4096 * seed;
  for (let y = 0; y < side; y++) {
    const v = y * cells / side, r = Math.floor(v), t = ease(v - r), r1 = (r + 1) % cells;
    for (let x = 0; x < side; x++) {
      const u = x * cells / side, c = Math.floor(u), s = ease(u - c), c1 = (c + 1) % cells;
      sum[y * side + x] += gain * mix(mix(hash(c, r, key), hash(c1, r, key), s),
        mix(hash(c, r1, key), hash(c1, r1, key), s), t);
    }
  }
}
