/**
 * Draws the ground of a view: sky, light, materials and what the clipmap or the whole field at full
 * resolution is drawn with. Both use one program, so that a comparison sees only the geometry.
 */
import { planesOf } from "/web/camera.js";
import { isSoftware, makeNoise, makeProgram, makeTexture, programMaker } from "/web/gl.js";
import { makeMaterials } from "/web/materials.js";
import { defaultSun } from "/web/state.js";
import { sunAt } from "/web/sun.js";

const NOISE_SIDE = 256;
const NOISE_PERIOD = 512; // metres, of the slowest; the shader knows it

const UNITS = { u_heights: 0, u_gradients: 1, u_noise: 3, u_fine: 4, u_coarse_fine: 5, u_rects: 6 };
const MATERIALS_UNIT = 9; // after those of shadows.js
const SUN = sunAt(defaultSun.azimuth_deg, defaultSun.height_deg);

export class Ground {
  /** @param {WebGL2RenderingContext} gl @returns {Promise<Ground>} */
  static async make(gl) {
    const [sky, maker] = await Promise.all([makeProgram(gl, "sky_vert", "sky_frag"),
      programMaker(gl, "ground_vert", "ground_frag")]);
    const ground = new Ground(gl, sky, maker);
    // those that soon are needed; others when they are
    for (const relief of [false, true])
      for (const shadows of [false, true]) ground.#programFor({ relief, shadows });
    return ground;
  }

  constructor(gl, sky, maker) {
    this.gl = gl;
    this.sky = sky;
    this.maker = maker;
    this.isSoftware = isSoftware(gl);
    this.noise = makeNoise(gl, NOISE_SIDE);
    this.rects = null; // a texel a rectangle
    this.rectsMax = 0; // texels of it
    this.materials = makeMaterials(gl);
    this.sun = SUN; // the unit vector to it
  }

  /** One of many of the same: where processors draw, branches that are not taken cost, too. */
  #programFor({ relief, shadows, isBare, plain, contour, rects }) {
    // where the processor draws, only pictures at rest have textures
    const has = { RELIEF: relief, DETAIL: !isBare && (relief || !this.isSoftware),
      SHADOWS: shadows, SAND: rects?.length, CONTOURS: contour, PLAIN: plain };
    return this.maker(Object.keys(has).filter((name) => has[name]));
  }

  /** Distances of the view: near, far. */
  #depths(field, eye, height) {
    const corner = [0, 1].map((i) => Math.max(Math.abs(eye[i] - field.origin[i]),
      Math.abs(eye[i] - field.origin[i] - field.extent[i])));
    const far = Math.hypot(...corner, Math.max(eye[2] - field.low, field.high - eye[2]));
    return [Math.min(50, Math.max(0.1, 0.05 * height)), 1.05 * far + 10];
  }

  /**
   * Prepares the program and clears; drawSky is for when the ground is drawn.
   * @param {import("./field.js").Field} field @param {import("./camera.js").Camera} camera
   * @param {{width: number, height: number, above: number, rects?: number[][], plain?: boolean,
   *   contour?: number, relief?: boolean, isBare?: boolean, shadows?: import("./shadows.js").Shadows|null}} o
   *   above: the eye's height above the ground; rects: of sand patches [x0, y0, x1, y1];
   *   contour: metres between lines of height, 0: none; relief: as fine as relief.js has it;
   *   isBare: without textures
   * @returns {{at: object, view: Float32Array, planes: number[][], light: object}}
   */
  begin(field, camera, o) {
    const { gl } = this;
    gl.viewport(0, 0, o.width, o.height);
    gl.clearColor(0, 0, 0, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    return this.use(field, camera, o);
  }

  /** The sky, where nothing is drawn yet: last, as most of it may be hidden. */
  drawSky(camera, aspect) {
    const { gl } = this, { program, at } = this.sky;
    gl.useProgram(program);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL); // its depth is that of an empty picture
    gl.disable(gl.BLEND);
    gl.uniformMatrix4fv(at.u_back, false, camera.rays(aspect));
    gl.uniform3f(at.u_sun, ...this.sun);
    gl.bindVertexArray(null);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.depthFunc(gl.LESS);
  }

  /** The same over what is drawn already. */
  use(field, camera, o) {
    const { gl } = this, eye = camera.eye;
    const { at, program } = this.#programFor(o);
    const view = camera.matrix(o.width / o.height, ...this.#depths(field, eye, o.above));
    gl.viewport(0, 0, o.width, o.height);
    gl.enable(gl.DEPTH_TEST);
    gl.disable(gl.BLEND);
    gl.useProgram(program);
    const rise = Math.max(1e-3, field.high - field.low);
    for (const [name, unit] of Object.entries(UNITS)) if (at[name]) gl.uniform1i(at[name], unit);
    if (at.u_materials) {
      gl.uniform1i(at.u_materials, MATERIALS_UNIT);
      gl.activeTexture(gl.TEXTURE0 + MATERIALS_UNIT);
      gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.materials);
    }
    gl.activeTexture(gl.TEXTURE3);
    gl.bindTexture(gl.TEXTURE_2D, this.noise);
    gl.activeTexture(gl.TEXTURE0);
    gl.uniformMatrix4fv(at.u_view, false, view);
    gl.uniform2f(at.u_noise_at, eye[0] % NOISE_PERIOD, eye[1] % NOISE_PERIOD);
    gl.uniform3f(at.u_range, field.low, 1 / rise, eye[2]);
    const light = { sun: this.sun,
      haze: 0.9 / Math.max(...field.extent, 20 * rise) };
    gl.uniform3f(at.u_sun, ...light.sun);
    gl.uniform1f(at.u_haze, light.haze);
    gl.uniform1f(at.u_contour, o.contour ?? 0);
    gl.uniform1i(at.u_sand, 0);
    this.setRects(at, o.rects ?? [], eye, Math.max(...field.spacing));
    o.shadows?.set(at, eye);
    return { at, view, shadows: o.shadows ?? null, planes: planesOf(view), light };
  }

  /** What is left out, of a program that includes cut.glsl; places are relative to `eye`. */
  setRects(at, rects, eye, spacing) {
    const { gl } = this;
    if (!this.rects || rects.length > this.rectsMax) {
      gl.deleteTexture(this.rects);
      this.rectsMax = 2 ** Math.ceil(Math.log2(Math.max(8, rects.length)));
      this.rects = makeTexture(gl, gl.RGBA32F, this.rectsMax, 1);
    }
    gl.activeTexture(gl.TEXTURE6);
    gl.bindTexture(gl.TEXTURE_2D, this.rects);
    if (rects.length) gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, rects.length, 1, gl.RGBA, gl.FLOAT,
      Float32Array.from(rects.flat(), (v, i) => v - eye[i % 2]));
    gl.activeTexture(gl.TEXTURE0);
    gl.uniform1i(at.u_rect_count, rects.length);
    gl.uniform1f(at.u_rim, 0.75 * spacing);
  }
}
