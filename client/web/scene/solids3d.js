/**
 * Meshes in the 3D view: polygon layers of the locale, and bodies on sand by their models.
 *
 * A mesh is uploaded once, relative to a corner of its own, so that large coordinates lose nothing;
 * where it lies and how it is turned are uniforms. Faces are flat, those of bodies smooth up to a
 * crease, and have two sides, but a ceiling's are seen only from below: it would hide a hall, or a
 * planet under its sky. Layers of too many polygons are left out, and a message says so.
 */
import { upField } from "/web/frames.js";
import { makeProgram } from "/web/gl.js";
import { parseObj, smoothNormals } from "/web/obj.js";
import { turned } from "/web/poses.js";
import { tell } from "/web/state.js";

const POLYGONS_MAX = 100000; // of a layer that is fetched whole; about 10 MB of OBJ
const COLORS = { ground: [0.62, 0.58, 0.54], ceiling: [0.50, 0.54, 0.62],
  body: [0.72, 0.40, 0.22] };
const STILL = [0, 0, 0, 1];
const NO_SIDE = { everywhere: [0, 0, 0], byPoint: [0, 0, 0] };

/** Polygons as triangles around their first corner: they are convex. */
function triangles(faces) {
  const out = new Uint32Array(3 * faces.reduce((sum, f) => sum + f.length - 2, 0));
  let k = 0;
  for (const face of faces)
    for (let i = 1; i + 1 < face.length; i++, k += 3) out.set([face[0], face[i], face[i + 1]], k);
  return out;
}

export class SolidDrawer {
  /** @param {WebGL2RenderingContext} gl @returns {Promise<SolidDrawer>} */
  static async make(gl) {
    const [plain, shadowed, depth] = await Promise.all([[], ["SHADOWS"]].map((defines) =>
      makeProgram(gl, "solid_vert", "solid_frag", defines)).concat(
      makeProgram(gl, "solid_vert", "depth_frag")));
    return new SolidDrawer(gl, { plain, shadowed, depth });
  }

  constructor(gl, programs) {
    Object.assign(this, { gl, programs });
  }

  /** @param {string} text an OBJ file @param {boolean} [isSmooth] its edges, up to a crease
   * @returns {object|null} null: it has no faces */
  upload(text, isSmooth = false) {
    const { gl } = this, { points, faces } = parseObj(text);
    if (!faces.length) return null;
    const base = points[faces[0][0]], corners = triangles(faces);
    const vertices = isSmooth ? Array.from(corners, (i) => points[i]) : points;
    const mesh = { base, count: corners.length, array: gl.createVertexArray(), buffers: [] };
    const fill = (target, values) => {
      mesh.buffers.push(gl.createBuffer());
      gl.bindBuffer(target, mesh.buffers.at(-1));
      gl.bufferData(target, values, gl.STATIC_DRAW);
    };
    const attribute = (location, values) => {
      fill(gl.ARRAY_BUFFER, values);
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, 3, gl.FLOAT, false, 0, 0);
    };
    gl.bindVertexArray(mesh.array);
    attribute(0, Float32Array.from(vertices.flatMap((p) => p.map((v, i) => v - base[i]))));
    if (isSmooth) attribute(1, smoothNormals(points, corners)); // else 0: the face's
    fill(gl.ELEMENT_ARRAY_BUFFER, isSmooth ? corners.map((_, i) => i) : corners);
    gl.bindVertexArray(null);
    return mesh;
  }

  release(mesh) {
    if (!mesh) return;
    this.gl.deleteVertexArray(mesh.array);
    for (const buffer of mesh.buffers) this.gl.deleteBuffer(buffer);
  }

  /**
   * @param {{view: Float32Array, light: object, shadows: object|null}} pass as the ground was drawn with
   * @param {number[]} eye
   * @param {{mesh: object, kind: string, up?: object, position?: number[],
   *   orientation?: number[]}[]} solids up: where gravity comes from, which hides what faces it
   */
  draw(pass, eye, solids) {
    if (!solids.length) return;
    const { gl } = this, { light, shadows } = pass;
    const { program, at } = shadows ? this.programs.shadowed : this.programs.plain;
    gl.useProgram(program);
    gl.uniformMatrix4fv(at.u_view, false, pass.view);
    shadows?.set(at, eye);
    gl.uniform3f(at.u_sun, ...light.sun);
    gl.uniform1f(at.u_haze, light.haze);
    gl.uniform3f(at.u_origin, ...eye.map((v) => -v));
    this.#drawAll(at, eye, solids);
  }

  /** Only depth, for a map of shadows. @param {Float32Array} view @param {number[]} origin of it */
  cast(view, origin, solids) {
    const { gl } = this, { program, at } = this.programs.depth;
    gl.useProgram(program);
    gl.uniformMatrix4fv(at.u_view, false, view);
    this.#drawAll(at, origin, solids);
  }

  #drawAll(at, eye, solids) {
    const { gl } = this;
    for (const { mesh, kind, up = NO_SIDE, position = [0, 0, 0], orientation = STILL } of solids) {
      const base = turned(orientation, mesh.base);
      gl.uniform3f(at.u_at, ...position.map((v, i) => v - eye[i] + base[i]));
      gl.uniform4f(at.u_turn, ...orientation);
      gl.uniform3f(at.u_color, ...COLORS[kind]);
      gl.uniform3fv(at.u_up, [...up.everywhere, ...up.byPoint]);
      gl.bindVertexArray(mesh.array);
      gl.drawElements(gl.TRIANGLES, mesh.count, gl.UNSIGNED_INT, 0);
    }
    gl.bindVertexArray(null);
  }
}

/** The mesh layers of the locale that is looked at. */
export class MeshLayers {
  constructor(drawer, kota, state, onChange) {
    Object.assign(this, { drawer, kota, state, onChange, shown: new Map(), locale: null });
    this.work = new AbortController();
  }

  /** Another locale, or the view is shown: fetches what is not here. */
  async show() {
    const { locale } = this.state;
    if (this.locale !== locale?.id) this.#forget();
    this.locale = locale?.id ?? null;
    for (const layer of locale?.layers ?? [])
      if (layer.kind === "mesh" && !this.shown.has(layer.id)) await this.#load(layer);
  }

  /** A layer was replaced or deleted. */
  changed(id) {
    if (!this.shown.has(id)) return;
    this.drawer.release(this.shown.get(id)?.mesh);
    this.shown.delete(id);
    this.show();
  }

  async #load(layer) {
    const { signal } = this.work, entry = { kind: layer.role === "ceiling" ? "ceiling" : "ground" };
    this.shown.set(layer.id, entry);
    if (layer.polygons > POLYGONS_MAX) {
      this.state.set("message", { isError: false,
        text: `${layer.id} has ${layer.polygons} polygons: the 3D view leaves it out.` });
      return;
    }
    try {
      const path = `/v1/locales/${this.locale}/layers/${layer.id}?format=obj`;
      const { text } = await this.kota.get(path, { signal, quiet: true });
      if (signal.aborted || this.shown.get(layer.id) !== entry) return;
      entry.mesh = this.drawer.upload(text);
      this.onChange();
    } catch (error) {
      if (signal.aborted) return;
      this.shown.delete(layer.id);
      tell(error);
    }
  }

  #forget() {
    this.work.abort();
    this.work = new AbortController();
    for (const { mesh } of this.shown.values()) this.drawer.release(mesh);
    this.shown.clear();
  }

  /** @returns {object[]} as SolidDrawer.draw takes them */
  get solids() {
    const { layersShown, locale, poses } = this.state;
    if (!layersShown.meshes) return [];
    return [...this.shown].filter(([, entry]) => entry.mesh).map(([id, entry]) => ({ ...entry,
      up: entry.kind === "ceiling" ? upField(locale) : undefined, ...poses.get(id) }));
  }
}
