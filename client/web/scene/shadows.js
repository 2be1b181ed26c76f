/**
 * Shadows of the sun: cascaded shadow maps (C. Leach 2014, 3.4; M. Valient, "Stable rendering of
 * cascaded shadow maps", ShaderX6, 2008).
 *
 * A cascade is for what is less than its radius from the eye. Its map is a square across the sun's
 * light that holds this ball wherever the eye looks, so its texels have one size. Maps lie at whole
 * texels of one grid over the locale: a place in the world is always in the same part of a texel,
 * and nothing shimmers. Along the light a map reaches over all of the locale: casters behind the
 * eye are in it. The last map holds the whole locale and no more, unless its texels would be large.
 *
 * At rest maps have SIDE_FINE texels a side, in motion SIDE, in a corner of the same texture; where
 * the graphics driver has no such texture, or no memory for it, SIDE at rest, too.
 *
 * A map holds more than its ball, by MARGIN of the radius to each side. It is drawn again when the
 * eye has left that, or what casts has changed, and not with each frame.
 *
 * Ground casts from heights of the cascade's own, of one level over a window of so many cells a side,
 * beyond that from the next cascade's. The clipmap would not do: its vertices move with the eye, so
 * edges of shadows would. Where ground is shadowed its height is taken from the same heights
 * (shadow.glsl), since triangles other than those that cast would shadow themselves.
 */
import { HOLE, isAnti } from "/web/field.js";
import { makeProgram } from "/web/gl.js";

const SIDE = 2048, SIDE_FINE = 4096; // texels of a map's side in motion, and at rest at most
const COUNT = 4; // cascades, at most; shadow.glsl knows it
const BLOCK = 32; // cells of a block that is drawn or not
const NEAREST = 24; // cells of the field that the nearest cascade reaches, at least
const RATIO_MAX = 6; // of a cascade's radius to that of the one inside
const MARGIN = 1 / 8;
const PAD = 4; // texels beside a ball for the filter
const ABOVE_M = 50; // room over the locale's bounds for bodies that fall
const FAR_M = 1e20; // for a shader, as good as Infinity
const UNITS = { casters: 7, shadows: 8 }; // after those of groundpass.js
const SPLITS = ["main", "anti", "alternating"]; // as u_split in shadow.glsl

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0]];
const unit = (a) => a.map((v) => v / Math.hypot(...a));

/** The map's two axes and the way that light travels. @param {number[]} sun to it, of length 1 */
function lightAxes(sun) {
  const way = sun.map((v) => -v), aside = Math.abs(way[2]) < 0.99 ? [0, 0, 1] : [0, 1, 0];
  const u = unit(cross(aside, way));
  return [u, cross(way, u), way];
}

/**
 * Radii of the cascades, the nearest first; Infinity: a map of everything.
 * @param {number} cell metres @param {number} whole metres from corner to corner of all that casts
 */
function radiiOf(cell, whole) {
  const near = NEAREST * cell, most = near * RATIO_MAX ** (COUNT - 1);
  const alike = whole / (2 + 2 * MARGIN), last = Math.min(alike, most); // texels as large as its
  const ratio = Math.min(RATIO_MAX, Math.max(2, (last / near) ** (1 / (COUNT - 1))));
  return Array.from({ length: COUNT }, (_, k) => k === COUNT - 1 && alike <= most ? Infinity :
    last / ratio ** (COUNT - 1 - k));
}

function makeLayers(gl, format, side, count) {
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D_ARRAY, texture);
  gl.texStorage3D(gl.TEXTURE_2D_ARRAY, 1, format, side, side, count);
  for (const [name, value] of [[gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE],
    [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE], [gl.TEXTURE_MIN_FILTER, gl.NEAREST],
    [gl.TEXTURE_MAG_FILTER, gl.NEAREST]]) gl.texParameteri(gl.TEXTURE_2D_ARRAY, name, value);
  return texture;
}

export class Shadows {
  /**
   * @param {WebGL2RenderingContext} gl
   * @param {number} cells of a cascade's ground, along a side; whole blocks
   */
  static async make(gl, cells) {
    const [ground, sheet] = await Promise.all([makeProgram(gl, "caster_vert", "caster_frag"),
      makeProgram(gl, "ground_vert", "caster_frag")]);
    return new Shadows(gl, cells, { ground, sheet });
  }

  constructor(gl, cells, programs) {
    Object.assign(this, { gl, cells, programs, field: null, cascades: [], draws: 0 });
    this.#makeMaps(Math.min(SIDE_FINE, gl.getParameter(gl.MAX_TEXTURE_SIZE)));
    this.frames = Array.from({ length: COUNT }, (_, k) => {
      const frame = gl.createFramebuffer();
      gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
      gl.framebufferTextureLayer(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, this.maps, 0, k);
      gl.drawBuffers([gl.NONE]);
      return frame;
    });
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.heights = makeLayers(gl, gl.R32F, this.cells + 1, COUNT);
    this.axes = this.sun = null;
  }

  #makeMaps(side) {
    const { gl } = this;
    gl.getError(); // of others
    this.maps = makeLayers(gl, gl.DEPTH_COMPONENT24, side, COUNT);
    this.sideMost = side;
    if (gl.getError() !== gl.OUT_OF_MEMORY || side <= SIDE) return;
    gl.deleteTexture(this.maps);
    this.#makeMaps(SIDE);
  }

  /** Bytes of its textures. */
  get bytes() {
    return COUNT * 4 * (this.sideMost ** 2 + (this.cells + 1) ** 2);
  }

  /** Looks at another field, or one with other bounds. @param {object} box of all that casts */
  open(field, box) {
    this.sun = null; // the range of depths is another
    const max = [...box.max.slice(0, 2), box.max[2] + ABOVE_M];
    this.box = { min: [...box.min], max };
    this.field = field;
    const whole = Math.hypot(...max.map((v, i) => v - box.min[i]));
    this.cascades = radiiOf(Math.max(...field.spacing), whole).map((radius, k) => ({ k, radius,
      wide: [0, 0], side: 0, placed: null, drawn: "", window: null, level: this.#levelFor(radius),
      blocks: [] }));
    this.indices ??= this.#makeIndices();
  }

  /** The finest level of which a window holds the ball. */
  #levelFor(radius) {
    const { spacing, last } = this.field;
    let level = 0;
    while ([0, 1].some((i) => Math.min(last[i], 2 * radius * (1 + MARGIN) / spacing[i] + 4) >
      this.cells * 2 ** level)) level++;
    return level;
  }

  /** Cells of a block, split as the field's; blocks begin at even indices. */
  #makeIndices() {
    const { gl } = this, all = {};
    for (const split of SPLITS) {
      const list = [], n = BLOCK + 1;
      for (let r = 0; r < BLOCK; r++) {
        for (let c = 0; c < BLOCK; c++) {
          const v = r * n + c;
          if (isAnti(split, c + r)) list.push(v, v + 1, v + n, v + 1, v + n + 1, v + n);
          else list.push(v, v + 1, v + n + 1, v, v + n + 1, v + n);
        }
      }
      all[split] = gl.createBuffer();
      gl.bindVertexArray(null);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, all[split]);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint16Array(list), gl.STATIC_DRAW);
    }
    return all;
  }

  /** Ground has changed: [column, row, columns, rows] of samples, null for all of it. */
  changed(rect) {
    for (const cascade of this.cascades) {
      const w = cascade.window, step = 2 ** cascade.level;
      cascade.drawn = ""; // its map may have ground of a coarser cascade
      if (!rect || !w || [0, 1].every((i) => rect[i] + rect[2 + i] >= (w[i] - 1) * step &&
        rect[i] <= (w[i] + this.cells + 1) * step)) cascade.isOld = true;
    }
  }

  // ---- where the maps are ---------------------------------------------------------------------

  /** Where a window of a cascade belongs around a place. */
  #windowAt({ level }, place) {
    return this.field.index(level, place[0], place[1]).map((v, i) => {
      const most = Math.max(0, Math.ceil(this.field.last[i] / 2 ** level) - this.cells);
      return 2 * Math.floor(Math.min(Math.max(v - this.cells / 2, 0), most + 1) / 2);
    });
  }

  /** Reads the heights around a place, if the blocks are here. @returns {boolean} are they? */
  #readHeights(cascade, place, wanted) {
    const { gl, field } = this;
    if (!field.read) return true; // only meshes
    const to = this.#windowAt(cascade, place), rect = [...to, this.cells + 1, this.cells + 1];
    if (!cascade.isOld && `${to}` === `${cascade.window}`) return true;
    const missing = new Map();
    field.missing(cascade.level, rect, missing);
    for (const [key, block] of missing) wanted.set(key, block);
    if (missing.size) return false;
    const z = field.read(cascade.level, rect);
    cascade.blocks = blocksOf(z, this.cells);
    for (let i = 0; i < z.length; i++) if (z[i] !== z[i]) z[i] = HOLE;
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.heights);
    gl.texSubImage3D(gl.TEXTURE_2D_ARRAY, 0, 0, 0, cascade.k, ...rect.slice(2), 1, gl.RED, gl.FLOAT, z);
    // what had no coarser ground around it is drawn again
    if (!cascade.window) for (const finer of this.cascades.slice(0, cascade.k)) finer.drawn = "";
    cascade.window = to;
    cascade.isOld = false;
    return true;
  }

  /** How far the eye is from where a cascade was placed. */
  #strayed({ placed, radius }, eye) {
    if (!placed) return Infinity;
    return radius === Infinity ? 0 : Math.hypot(...placed.map((v, i) => v - eye[i]));
  }

  /**
   * Draws the maps that are not as they should be, as far as the ground's blocks are here.
   * @param {number[]} eye @param {number[]} sun to it, of length 1
   * @param {{key: string, cut: (at: object, origin: number[]) => void,
   *   sheets: (at: object, origin: number[]) => void,
   *   solids: (view: Float32Array, origin: number[]) => void}} casters key: another when what casts
   *   besides ground has changed
   * @param {number} most maps to draw now @param {boolean} isFine as at rest
   * @returns {{wanted: Map<string, object>, isWhole: boolean, isFine: boolean}} blocks to fetch;
   *   are all the maps as asked, are all as at rest?
   */
  update(eye, sun, casters, most, isFine) {
    const wanted = new Map(), key = `${casters.key} ${sun}`;
    if (`${sun}` !== `${this.sun}`) {
      [this.sun, this.axes] = [[...sun], lightAxes(sun)];
      this.#setSizes();
    }
    const strays = (cascade) => this.#strayed(cascade, eye) > MARGIN * cascade.radius;
    const side = isFine ? this.sideMost : SIDE;
    const isLate = (cascade) => cascade.drawn !== key || cascade.isOld || strays(cascade) ||
      cascade.side < side;
    const now = this.cascades.filter(isLate).slice(0, most);
    for (const cascade of now.reverse()) { // coarse ones cast into the maps of finer ones
      const { min, max } = this.box, place = cascade.radius === Infinity ?
        min.map((v, i) => (v + max[i]) / 2) : strays(cascade) ? [...eye] : cascade.placed;
      if (!this.#readHeights(cascade, place, wanted)) continue;
      Object.assign(cascade, { placed: place, side });
      this.#draw(cascade, casters, key);
    }
    if (now.length) this.gl.bindFramebuffer(this.gl.FRAMEBUFFER, null);
    return { wanted, isWhole: !this.cascades.some(isLate),
      isFine: this.cascades.every((cascade) => cascade.side === this.sideMost) };
  }

  /** Texels, and the range of depths, for the light as it comes now. */
  #setSizes() {
    const { min, max } = this.box;
    const [across, up, along] = this.axes.map((axis) => axis.map((v, i) => [v * min[i], v * max[i]]
      .sort((a, b) => a - b)).reduce((sum, ends) => sum.map((s, i) => s + ends[i]), [0, 0]));
    [this.near, this.far] = [along[0] - 1, along[1] + 1];
    for (const cascade of this.cascades) {
      const wide = 2 * cascade.radius * (1 + MARGIN);
      cascade.wide = [across, up].map(([a, b]) => Math.min(wide, b - a));
      cascade.placed = null; // what it has is of another light
    }
  }

  // ---- drawing ----------------------------------------------------------------------------------

  /** From places relative to `origin` to the map, column-major. */
  #viewOf(cascade, origin) {
    const [u, v, way] = this.axes, m = [];
    const half = cascade.texel.map((size) => size * cascade.side / 2);
    const depth = 2 / (this.far - this.near);
    for (let i = 0; i < 3; i++) m.push(u[i] / half[0], v[i] / half[1], way[i] * depth, 0);
    m.push(...[u, v].map((axis, i) => (dot(axis, origin) - cascade.middle[i]) / half[i]),
      (dot(way, origin) - this.near) * depth - 1, 1);
    return new Float32Array(m);
  }

  #draw(cascade, casters, key) {
    const { gl } = this, origin = cascade.placed, [u, v] = this.axes, { side } = cascade;
    cascade.texel = cascade.wide.map((metres) => metres / (side - 2 * PAD));
    cascade.middle = [u, v].map((axis, i) =>
      Math.round(dot(axis, origin) / cascade.texel[i]) * cascade.texel[i]);
    const view = this.#viewOf(cascade, origin);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.frames[cascade.k]);
    gl.viewport(0, 0, side, side);
    gl.enable(gl.SCISSOR_TEST); // as nothing else is cleared
    gl.scissor(0, 0, side, side);
    gl.enable(gl.DEPTH_TEST);
    gl.disable(gl.BLEND);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.disable(gl.SCISSOR_TEST);
    if (this.field.read) this.#drawGround(cascade, view, origin, casters);
    const { program, at } = this.programs.sheet;
    gl.useProgram(program);
    gl.uniformMatrix4fv(at.u_view, false, view);
    gl.uniform4f(at.u_inner, 1, 1, 0, 0);
    gl.uniform1i(at.u_heights, 0);
    gl.uniform1i(at.u_rects, 6);
    casters.sheets(at, origin);
    casters.solids(view, origin);
    cascade.drawn = key;
    this.draws++;
  }

  /** The cascade's own window, and around it those of coarser ones. */
  #drawGround(cascade, view, origin, casters) {
    const { gl, field } = this, { program, at } = this.programs.ground;
    gl.useProgram(program);
    gl.uniformMatrix4fv(at.u_view, false, view);
    gl.uniform1i(at.u_casters, UNITS.casters);
    gl.uniform1i(at.u_rects, 6);
    gl.uniform1i(at.u_side, BLOCK + 1);
    casters.cut(at, origin);
    gl.activeTexture(gl.TEXTURE0 + UNITS.casters);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.heights);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindVertexArray(null);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.indices[field.split] ?? this.indices.main);
    let inner = null; // of the finer window, in metres
    for (const from of this.cascades.slice(cascade.k)) {
      if (!from.window) continue;
      const low = field.place(from.level, ...from.window);
      const step = field.spacing.map((s) => s * 2 ** from.level);
      gl.uniform1i(at.u_layer, from.k);
      gl.uniform2f(at.u_step, ...step);
      gl.uniform3f(at.u_offset, low[0] - origin[0], low[1] - origin[1], -origin[2]);
      gl.uniform4f(at.u_ends, ...from.window.map((v) => -v),
        ...field.last.map((cells, i) => cells / 2 ** from.level - from.window[i]));
      // a cell of overlap, so that no light comes through between the two
      const rect = inner?.map((v, i) => v + (i < 2 ? 1 : -1) * step[i % 2]);
      gl.uniform4f(at.u_inner, ...(rect ? rect.map((v, i) => v - origin[i % 2]) : [1, 1, 0, 0]));
      for (const block of from.blocks)
        if (this.#isWanted(cascade, block, low, step, rect)) {
          gl.uniform2i(at.u_first, block.x, block.y);
          gl.drawElements(gl.TRIANGLES, 6 * BLOCK * BLOCK, gl.UNSIGNED_SHORT, 0);
        }
      inner = [...low, ...low.map((v, i) => v + this.cells * step[i])];
    }
  }

  /** Does a block fall into the map, and is it not in the finer window? */
  #isWanted(cascade, block, low, step, rect) {
    const [u, v] = this.axes;
    const a = [block.x, block.y].map((at, i) => low[i] + at * step[i]);
    const b = a.map((at, i) => at + BLOCK * step[i]);
    const { field } = this;
    if (a.some((at, i) => at >= field.origin[i] + field.extent[i])) return false;
    if (rect && [0, 1].every((i) => a[i] >= rect[i] && b[i] <= rect[2 + i])) return false;
    const middle = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2, (block.low + block.high) / 2];
    const reach = [(b[0] - a[0]) / 2, (b[1] - a[1]) / 2, (block.high - block.low) / 2];
    return [u, v].every((axis, i) => Math.abs(dot(axis, middle) - cascade.middle[i]) <=
      cascade.texel[i] * cascade.side / 2 + dot(reach, axis.map(Math.abs)));
  }

  // ---- what is drawn with them ------------------------------------------------------------------

  /** Uniforms and textures of a program that includes shadow.glsl. @param {number[]} eye */
  set(at, eye) {
    const { gl, field } = this, [u, v, way] = this.axes;
    const some = this.cascades.filter((cascade) => cascade.placed);
    // each but the coarsest goes over into the next one
    if (some.some((cascade, i) => cascade.k !== COUNT - some.length + i)) some.length = 0;
    const places = new Float32Array(4 * COUNT), grounds = new Float32Array(4 * COUNT);
    const radii = new Float32Array(COUNT);
    gl.uniform1i(at.u_casters, UNITS.casters);
    gl.uniform1i(at.u_shadows, UNITS.shadows);
    gl.activeTexture(gl.TEXTURE0 + UNITS.casters);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.heights);
    gl.activeTexture(gl.TEXTURE0 + UNITS.shadows);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.maps);
    gl.activeTexture(gl.TEXTURE0);
    for (const cascade of some) {
      const { k, middle, texel, side, radius, window, level } = cascade;
      const over = radius * (1 + MARGIN) - this.#strayed(cascade, eye);
      const left = Math.min(radius, Math.max(0, over), FAR_M);
      places.set([...[u, v].map((axis, i) => (dot(axis, eye) - middle[i]) / texel[i] +
        side / 2), ...texel], 4 * k);
      radii[k] = left;
      if (!field.read) continue;
      const index = field.index(level, eye[0], eye[1]);
      grounds.set([...field.spacing.map((s) => 1 / (s * 2 ** level)),
        ...index.map((v, i) => v - window[i])], 4 * k);
    }
    gl.uniform1i(at.u_cascade_count, some.length ? COUNT : 0);
    gl.uniformMatrix3fv(at.u_light, false, new Float32Array([...u, ...v, ...way]));
    gl.uniform2f(at.u_depth, dot(way, eye) - this.near, 1 / (this.far - this.near));
    gl.uniform4fv(at.u_cascades, places);
    gl.uniform4fv(at.u_radii, radii);
    gl.uniform4fv(at.u_caster_at, grounds);
    gl.uniform1i(at.u_split, Math.max(0, SPLITS.indexOf(field.split)));
    gl.uniform3f(at.u_caster_end, this.cells - 1, this.cells - 1, eye[2]);
  }
}

/** Blocks of a window's heights, each with its least and greatest; not those without ground. */
function blocksOf(z, cells) {
  const list = [], n = cells + 1;
  for (let y = 0; y < cells; y += BLOCK) {
    for (let x = 0; x < cells; x += BLOCK) {
      let low = Infinity, high = -Infinity;
      for (let r = y; r <= y + BLOCK; r++) {
        for (let i = r * n + x, end = i + BLOCK; i <= end; i++) {
          if (z[i] < low) low = z[i];
          if (z[i] > high) high = z[i];
        }
      }
      if (low <= high) list.push({ x, y, low, high });
    }
  }
  return list;
}
