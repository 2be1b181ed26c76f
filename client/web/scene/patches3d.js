/**
 * Patches of sand in the 3D view (C. Leach 2014, 5.2): while one lives, the ground is left out
 * inside of its rectangle, and the patch is drawn there in its own material. Over a rim its heights
 * and its colour go over into the ground's, and over a second when it comes or goes.
 *
 * The list of patches is asked every two seconds, and as often as it is answered while something
 * moves; with it come the bodies' poses. Then each patch is asked for its surface, which is as fine
 * as half a granule where that is not too much. While it rests its tag is known, and nothing comes.
 * Near the eye its granules are drawn (granules3d.js), and the surface below them, where it closes
 * the gaps between them; over the rim it comes up through them into the ground. It sinks as they
 * come, and rises as they go. An older daemon has no surfaces: the patch is drawn as it began. When
 * it is written back, the change feed brings the new heights and the ground takes its place again.
 */
import { setPlainBlock } from "/web/block.js";
import { isOutside } from "/web/camera.js";
import { isAnti } from "/web/field.js";
import { makeTexture, uploadTorus } from "/web/gl.js";
import { ballObj } from "/web/sandshow.js";

const POLL_MS = 2000, MOVING_MS = 120;
const SIDE_MAX = 512; // samples of a patch's side; larger ones stay ground
const PER_CELL_MAX = 16;
const NEAR = 500; // diameters from the eye to which granules are drawn: a pixel or two there
const SUNK = 0.5; // diameters that the surface is below its granules
const BLEND_S = 1; // that patches and granules come and go in
const ENDED = ["written", "discarded", "failed"];
const MOVING = ["settling", "active"];
const grains = { sand: [0.78, 0.67, 0.44], pebbles: [0.60, 0.57, 0.53], rubble: [0.49, 0.46, 0.43],
  snow: [0.88, 0.90, 0.94] };

/** How much finer than the field a patch is asked for. */
function finenessOf(patch, field) {
  const cells = Math.max(patch.rect[2], patch.rect[3]) - 1;
  const wanted = Math.ceil(Math.max(...field.spacing) / (0.5 * patch.granule_diameter));
  return Math.max(1, Math.min(wanted, PER_CELL_MAX, Math.floor((SIDE_MAX - 1) / cells)));
}

/** 0 on the edge, 1 from a rim inwards. */
function ease(index, last, step, rim) {
  const t = Math.min(1, Math.min(index, last - index) * step / rim);
  return t * t * (3 - 2 * t);
}

/** The ground's heights on a grid `finer` than the field over a rectangle whose samples are z. */
function groundOn(z, rect, finer, split) {
  const [c0, r0, w, h] = rect, cols = (w - 1) * finer + 1, rows = (h - 1) * finer + 1;
  const out = new Float32Array(cols * rows);
  for (let j = 0, k = 0; j < rows; j++) {
    const r = Math.min(Math.floor(j / finer), h - 2), t = j / finer - r;
    for (let i = 0; i < cols; i++, k++) {
      const c = Math.min(Math.floor(i / finer), w - 2), s = i / finer - c, v = r * w + c;
      const [a, b, d, e] = [z[v], z[v + 1], z[v + w], z[v + w + 1]];
      if (isAnti(split, c0 + c + r0 + r))
        out[k] = s + t <= 1 ? a + s * (b - a) + t * (d - a) :
          e + (1 - s) * (d - e) + (1 - t) * (b - e);
      else out[k] = s >= t ? a + s * (b - a) + t * (e - b) : a + t * (d - a) + s * (e - d);
    }
  }
  return out;
}

/** What a body is drawn as: a model's id, or the radius of a ball. */
const shapeOf = (body) => body.model ?? body.radius;

export class Patches {
  /**
   * @param {import("./solids3d.js").SolidDrawer} drawer
   * @param {import("./granules3d.js").Granules} granules
   */
  constructor(gl, kota, state, drawer, granules, onChange) {
    Object.assign(this, { gl, kota, state, drawer, granules, onChange });
    this.seen = null; // {eye, planes, field} of the last frame
    this.live = [];
    this.meshes = new Map(); // id → what it is drawn with
    this.models = new Map(); // shape → a mesh, null: none
    this.timer = 0;
    /** For tests: surfaces that came. */
    this.surfaces = 0;
  }

  start() {
    this.stop();
    this.#poll();
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.round = null;
  }

  async #poll() {
    const { locale } = this.state, asked = {};
    this.round = asked;
    try {
      const answer = locale &&
        (await this.kota.get(`/v1/locales/${locale.id}/patches`, { quiet: true })).json;
      if (this.round !== asked) return;
      this.#take(answer?.patches ?? []);
      const near = this.#chooseNear();
      await Promise.allSettled(this.live.filter((p) => !p.isLeaving)
        .map((patch) => this.#read(patch, near.has(patch.id))));
      if (this.round !== asked) return;
      await this.#readModels();
    } catch {
      // the feed's state is shown already; the patches that are known stay
    }
    const isMoving = this.live.some((p) => MOVING.includes(p.state));
    if (this.round === asked && this.state.view === "3d")
      this.timer = setTimeout(() => this.#poll(), isMoving ? MOVING_MS : POLL_MS);
  }

  #take(patches) {
    const live = patches.filter((p) => !ENDED.includes(p.state) &&
      p.layer === this.state.layer?.id && Math.max(p.rect[2], p.rect[3]) <= SIDE_MAX);
    for (const p of this.live) {
      const { id, locale, layer } = p, mesh = this.meshes.get(id);
      if (!mesh || locale !== this.state.locale?.id || layer !== this.state.layer?.id ||
        live.some((other) => other.id === id)) continue;
      const isWritten = patches.find((other) => other.id === id)?.state === "written";
      if (!p.isLeaving && !isWritten) this.#setHeights(mesh, mesh.surface, mesh.ground);
      live.push({ ...p, bodies: [], state: "written", isLeaving: true });
    }
    const key = (list) => JSON.stringify(list.map((p) => [p.id, p.bodies, p.isLeaving]));
    const isOther = key(live) !== key(this.live);
    this.live = live;
    this.#forget();
    if (isOther) this.onChange();
  }

  /** What comes and goes. @returns {boolean} is there more of it to come? */
  advance(seconds) {
    const step = seconds / BLEND_S, { sets } = this.granules;
    let isBlending = false;
    const blend = (one, to) => {
      if (one.cover === to) return;
      one.cover = to ? Math.min(1, one.cover + step) : Math.max(0, one.cover - step);
      isBlending = true;
    };
    for (const { id, isLeaving } of this.live) {
      const mesh = this.meshes.get(id), set = sets.get(id);
      if (mesh) blend(mesh, isLeaving ? 0 : 1);
      if (!mesh || !set) continue;
      blend(set, set.isWanted && !isLeaving && this.state.layersShown.granules ? 1 : 0);
      if (!set.cover && !set.isWanted) this.granules.drop(id);
    }
    const isGone = ({ id, isLeaving }) => isLeaving && !this.meshes.get(id)?.cover;
    if (this.live.some(isGone)) {
      this.live = this.live.filter((p) => !isGone(p));
      this.#forget();
    }
    return isBlending;
  }

  /** Patches near the eye whose granules are held, the nearest first; others' go. */
  #chooseNear() {
    const { seen, granules } = this, near = new Set();
    if (seen && this.state.layersShown.granules) {
      const away = (patch) => {
        const [x0, y0, x1, y1] = this.rectOf(patch, seen.field), [x, y, z] = seen.eye;
        return Math.hypot(Math.max(x0 - x, x - x1, 0), Math.max(y0 - y, y - y1, 0),
          z - this.meshes.get(patch.id).ground[0]);
      };
      let left = granules.countMax;
      for (const [far, patch] of this.live.filter((p) => !p.isLeaving && this.meshes.has(p.id))
        .map((p) => [away(p), p]).sort((a, b) => a[0] - b[0])) {
        if (far > NEAR * patch.granule_diameter || patch.granules > left) continue;
        left -= patch.granules;
        near.add(patch.id);
      }
    }
    for (const [id, set] of granules.sets) {
      if (set.isWanted !== near.has(id)) this.onChange();
      set.isWanted = near.has(id);
    }
    return near;
  }

  /** Was it in the last frame's view? */
  #isSeen(patch) {
    const { eye, planes, field } = this.seen, [x0, y0, x1, y1] = this.rectOf(patch, field);
    const room = Math.max(x1 - x0, y1 - y0); // sand flies
    return !isOutside(planes, [x0 - eye[0], y0 - eye[1], field.low - room - eye[2]],
      [x1 - eye[0], y1 - eye[1], field.high + room - eye[2]]);
  }

  async #read(patch, isNear) {
    await this.#readSurface(patch);
    if (isNear && this.#isSeen(patch) && await this.granules.read(patch)) this.onChange();
  }

  /** The surface as it is now, unless it is known. */
  async #readSurface(patch) {
    const mesh = this.meshes.get(patch.id);
    if (!mesh || mesh.isOld || patch.state === "filling") return;
    const { finer } = mesh, headers = mesh.tag ? { "If-None-Match": mesh.tag } : {};
    const path = `/v1/locales/${patch.locale}/patches/${patch.id}/surface.f32?per_cell=${finer}`;
    try {
      const answer = await this.kota.get(path, { quiet: true, headers });
      if (answer.status === 304 || this.meshes.get(patch.id) !== mesh) return;
      if (answer.buffer.byteLength !== 4 * mesh.cols * mesh.rows) return;
      this.#setHeights(mesh, new Float32Array(answer.buffer));
      mesh.tag = answer.headers.get("etag") ?? "";
      this.surfaces++;
      this.onChange();
    } catch (error) {
      if (error.status === 404) mesh.isOld = true;
      else throw error;
    }
  }

  /** Models of bodies that are not here yet. */
  async #readModels() {
    const wanted = new Set(this.live.flatMap((p) => p.bodies.map(shapeOf)));
    for (const id of wanted) {
      if (this.models.has(id)) continue;
      this.models.set(id, typeof id === "number" ? this.drawer.upload(ballObj(id), true) : null);
      if (typeof id === "number") continue;
      const file = await this.kota.get(`/v1/models/${id}`, { quiet: true }).catch((error) => {
        if (error.status !== 404) this.models.delete(id);
        return null;
      });
      if (file) this.models.set(id, this.drawer.upload(file.text, true));
      this.onChange();
    }
  }

  #forget() {
    for (const id of this.granules.sets.keys())
      if (!this.live.some((p) => p.id === id)) this.granules.drop(id);
    for (const [id, mesh] of this.meshes) {
      if (this.live.some((p) => p.id === id)) continue;
      this.gl.deleteTexture(mesh.heights);
      this.gl.deleteTexture(mesh.slopes);
      this.gl.deleteBuffer(mesh.indices);
      this.meshes.delete(id);
    }
  }

  /** @returns {number[][]} [x0, y0, x1, y1] of patches that are drawn */
  rects(field) {
    return this.live.filter((p) => this.#meshOf(p, field)).map((p) => this.rectOf(p, field));
  }

  rectOf(patch, field) {
    const [c, r, w, h] = patch.rect;
    return [...field.place(0, c, r), ...field.place(0, c + w - 1, r + h - 1)];
  }

  #meshOf(patch, field) {
    const old = this.meshes.get(patch.id);
    if (old) return old;
    const missing = new Map();
    field.missing(0, patch.rect, missing);
    for (const place of missing.values())
      field.cache.load(place).then(this.onChange, () => {});
    if (missing.size) return null;
    const mesh = this.#makeMesh(patch, field);
    this.meshes.set(patch.id, mesh);
    return mesh;
  }

  #makeMesh(patch, field) {
    const { gl } = this, { rect } = patch, [c0, r0, w, h] = rect, finer = finenessOf(patch, field);
    const cols = (w - 1) * finer + 1, rows = (h - 1) * finer + 1, indices = [];
    const side = 2 ** Math.ceil(Math.log2(Math.max(cols, rows)));
    for (let j = 0; j + 1 < rows; j++) {
      for (let i = 0; i + 1 < cols; i++) {
        const v = j * cols + i, cell = c0 + Math.floor(i / finer) + r0 + Math.floor(j / finer);
        if (isAnti(field.split, cell))
          indices.push(v, v + 1, v + cols, v + 1, v + cols + 1, v + cols);
        else indices.push(v, v + 1, v + cols + 1, v, v + cols + 1, v + cols);
      }
    }
    const mesh = { finer, cols, rows, side, first: [c0 * finer, r0 * finer], tag: "", isOld: false,
      step: field.spacing.map((s) => s / finer), count: indices.length,
      indices: gl.createBuffer(), ground: groundOn(field.read(0, rect), rect, finer, field.split),
      rim: Math.min(Math.max(...field.spacing, 2 * patch.granule_diameter),
        Math.min((w - 1) * field.spacing[0], (h - 1) * field.spacing[1]) / 4),
      surface: null, sink: SUNK * patch.granule_diameter, rect: this.rectOf(patch, field), cover: 0,
      heights: makeTexture(gl, gl.RG32F, side, side, { wrapped: true }),
      slopes: makeTexture(gl, gl.RG16F, side, side, { wrapped: true, linear: true }) };
    this.#setHeights(mesh, mesh.ground);
    gl.bindVertexArray(null);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.indices);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(indices), gl.STATIC_DRAW);
    return mesh;
  }

  /**
   * Uploads a surface, which goes over into the ground at the rim, and its slopes. It is lower where
   * granules are drawn over it; without them it is `bare`.
   */
  #setHeights(mesh, surface, bare = surface) {
    const { gl } = this, { cols, rows, ground, step, rim, sink } = mesh;
    const z = new Float32Array(cols * rows);
    const across = Float32Array.from({ length: cols }, (_, i) => ease(i, cols - 1, step[0], rim));
    const pairs = new Float32Array(2 * cols * rows), slopes = new Float32Array(2 * cols * rows);
    for (let j = 0, k = 0; j < rows; j++) {
      const along = ease(j, rows - 1, step[1], rim);
      for (let i = 0; i < cols; i++, k++) {
        z[k] = ground[k] + across[i] * along * (surface[k] - ground[k]);
        pairs[2 * k] = z[k] - across[i] * along * sink;
        pairs[2 * k + 1] = bare === surface ? z[k] : bare[k];
      }
    }
    for (let j = 0, k = 0; j < rows; j++) {
      const up = j > 0 ? cols : 0, down = j + 1 < rows ? cols : 0;
      for (let i = 0; i < cols; i++, k++) {
        const left = i > 0 ? 1 : 0, right = i + 1 < cols ? 1 : 0;
        slopes[2 * k] = (z[k + right] - z[k - left]) / ((left + right) * step[0]);
        slopes[2 * k + 1] = (z[k + down] - z[k - up]) / ((up + down) / cols * step[1]);
      }
    }
    mesh.z = z;
    mesh.surface = surface;
    gl.bindTexture(gl.TEXTURE_2D, mesh.heights);
    uploadTorus(gl, mesh.side, ...mesh.first, cols, rows, gl.RG, pairs, 2);
    gl.bindTexture(gl.TEXTURE_2D, mesh.slopes);
    uploadTorus(gl, mesh.side, ...mesh.first, cols, rows, gl.RG, slopes, 2);
  }

  /** Draws them over the ground, whose program is in use. */
  draw(at, field, eye) {
    const { gl } = this, some = this.live.filter((p) => this.meshes.has(p.id));
    if (!some.length) return;
    gl.uniform1i(at.u_sand, 1);
    gl.uniform1i(at.u_rect_count, 0); // nothing is left out of them
    for (const patch of some) this.#drawOne(at, field, eye, patch);
  }

  /** Are a patch's granules drawn? */
  isGranular(id) {
    return this.granules.sets.get(id)?.cover > 0 && this.meshes.has(id);
  }

  /** Patches of which granules are drawn, as Granules takes them. */
  get granular() {
    return this.live.filter(({ id }) => this.isGranular(id))
      .map(({ id, material }) => ({ id, color: grains[material] ?? grains.sand,
        rect: this.meshes.get(id).rect, rim: this.meshes.get(id).rim,
        cover: this.granules.sets.get(id).cover }));
  }

  /** Draws granules over ground and surfaces. */
  drawGranules(pass, eye, field) {
    this.seen = { eye: [...eye], planes: pass.planes, field };
    this.granules.draw(pass, eye, this.granular);
  }

  /** Bodies where they are, as SolidDrawer.draw takes them. */
  get bodies() {
    return this.live.flatMap((p) => p.bodies).filter((body) => this.models.get(shapeOf(body)))
      .map((body) => ({ mesh: this.models.get(shapeOf(body)), kind: "body",
        position: body.position, orientation: body.orientation }));
  }

  #drawOne(at, field, eye, patch) {
    const { gl } = this, mesh = this.meshes.get(patch.id), rect = this.rectOf(patch, field);
    gl.uniform3fv(at.u_grains, grains[patch.material] ?? grains.sand);
    gl.uniform4fv(at.u_rect, rect.map((v, i) => v - eye[i % 2]));
    setPlainBlock(gl, at, field, eye, { first: patch.rect.slice(0, 2), vertices: mesh.cols,
      texels: mesh.side, finer: mesh.finer });
    gl.uniform1f(at.u_cover, mesh.cover);
    gl.uniform1f(at.u_fade, 1 - (this.granules.sets.get(patch.id)?.cover ?? 0));
    for (const [unit, texture] of [mesh.heights, mesh.slopes].entries()) {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, texture);
    }
    gl.activeTexture(gl.TEXTURE0);
    gl.bindVertexArray(null);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.indices);
    gl.drawElements(gl.TRIANGLES, mesh.count, gl.UNSIGNED_INT, 0);
  }
}
