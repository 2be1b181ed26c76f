/**
 * Patches of sand in the 3D view (C. Leach 2014, 5.2): while one lives, the ground is left out
 * inside of its rectangle but for a rim, and the patch is drawn there in its own material, faded in
 * over the rim.
 *
 * The daemon tells patches by GET …/patches, which is asked again every two seconds while the view
 * is shown. Its API has no surface of a patch while it moves; what is drawn are the heights that it
 * began with, and the granules are in the picture of the sand panel. When it is written back, the
 * change feed brings the new heights and the ground takes its place again.
 */
import { setPlainBlock } from "/web/block.js";
import { gradients, heightPairs, isAnti } from "/web/field.js";
import { makeTexture, uploadTorus } from "/web/gl.js";

const POLL_MS = 2000;
const SIDE_MAX = 512; // samples of a patch's side; larger ones stay ground
const ENDED = ["written", "discarded", "failed"];

export class Patches {
  constructor(gl, kota, state, onChange) {
    Object.assign(this, { gl, kota, state, onChange });
    this.live = [];
    this.meshes = new Map(); // id → what it is drawn with
    this.timer = 0;
  }

  start() {
    this.stop();
    this.#poll();
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  async #poll() {
    const { locale } = this.state, asked = {};
    this.round = asked;
    try {
      const answer = locale &&
        (await this.kota.get(`/v1/locales/${locale.id}/patches`, { quiet: true })).json;
      if (this.round !== asked) return;
      const live = (answer?.patches ?? []).filter((p) => !ENDED.includes(p.state) &&
        p.layer === this.state.layer?.id && Math.max(p.rect[2], p.rect[3]) <= SIDE_MAX);
      const before = this.live.map((p) => p.id).join();
      this.live = live;
      this.#forget();
      if (live.map((p) => p.id).join() !== before) this.onChange();
    } catch {
      // the feed's state is shown already; the patches that are known stay
    }
    if (this.round === asked && this.state.view === "3d")
      this.timer = setTimeout(() => this.#poll(), POLL_MS);
  }

  #forget() {
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
    return this.live.filter((p) => this.#meshOf(p, field)).map((p) => this.#rectOf(p, field));
  }

  #rectOf(patch, field) {
    const [c, r, w, h] = patch.rect;
    return [...field.place(0, c, r), ...field.place(0, c + w - 1, r + h - 1)];
  }

  #meshOf(patch, field) {
    const old = this.meshes.get(patch.id);
    if (old) return old;
    const missing = new Map(), [c, r, w, h] = patch.rect;
    field.missing(0, [c - 3, r - 3, w + 6, h + 6], missing);
    for (const place of missing.values())
      field.cache.load(place).then(this.onChange, () => {});
    if (missing.size) return null;
    const mesh = this.#makeMesh(patch.rect, field);
    this.meshes.set(patch.id, mesh);
    return mesh;
  }

  #makeMesh(rect, field) {
    const { gl } = this, [, , w, h] = rect, indices = [];
    const side = 2 ** Math.ceil(Math.log2(Math.max(w, h)));
    for (let j = 0; j + 1 < h; j++) {
      for (let i = 0; i + 1 < w; i++) {
        const v = j * w + i;
        if (isAnti(field.split, rect[0] + i + rect[1] + j))
          indices.push(v, v + 1, v + w, v + 1, v + w + 1, v + w);
        else indices.push(v, v + 1, v + w + 1, v, v + w + 1, v + w);
      }
    }
    const mesh = { side, count: indices.length, indices: gl.createBuffer(),
      heights: makeTexture(gl, gl.RG32F, side, side, { wrapped: true }) };
    uploadTorus(gl, side, ...rect, gl.RG, heightPairs(field, 0, rect), 2);
    mesh.slopes = makeTexture(gl, gl.RG16F, side, side, { wrapped: true, linear: true });
    uploadTorus(gl, side, ...rect, gl.RG, gradients(field, 0, rect), 2);
    gl.bindVertexArray(null);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.indices);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(indices), gl.STATIC_DRAW);
    return mesh;
  }

  /** Draws them over the ground, whose program is in use. */
  draw(at, field, eye) {
    const { gl } = this, some = this.live.filter((p) => this.meshes.has(p.id));
    if (!some.length) return;
    gl.uniform1i(at.u_sand, 1);
    gl.uniform1i(at.u_rect_count, 1);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(-1, -1);
    for (const patch of some) this.#drawOne(at, field, eye, patch);
    gl.disable(gl.POLYGON_OFFSET_FILL);
    gl.disable(gl.BLEND);
  }

  #drawOne(at, field, eye, patch) {
    const { gl } = this, mesh = this.meshes.get(patch.id), first = patch.rect.slice(0, 2);
    const rect = this.#rectOf(patch, field);
    gl.uniform4fv(at.u_rects, rect.map((v, i) => v - eye[i % 2]));
    setPlainBlock(gl, at, field, eye,
      { first, vertices: patch.rect[2], texels: mesh.side });
    for (const [unit, texture] of [mesh.heights, mesh.slopes, mesh.slopes].entries()) {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, texture);
    }
    gl.activeTexture(gl.TEXTURE0);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.indices);
    gl.drawElements(gl.TRIANGLES, mesh.count, gl.UNSIGNED_INT, 0);
  }
}
