/**
 * Marks (see marks.js) in the 3D view: points, lines, boxes and cells as lines over the ground.
 *
 * What has no height of its own (areas, circles, cells) is laid over the ground that is drawn, a
 * little above it, and laid again when the view rests. Marks that the ground hides shine through
 * faintly: everything is drawn twice, once without the depth test. Labels are small elements over
 * the canvas, because WebGL has no text. Pictures ("image") are drawn only on the map.
 */
import { makeProgram } from "/web/gl.js";
import { colorOf } from "/web/marks.js";

const LABELS_MAX = 40;
const FLOATS = 7; // of a vertex: place, colour

/** A CSS colour as [r, g, b, a], 0..1. */
function rgba(css, cache) {
  if (!cache.has(css)) {
    const context = cache.context ??= new OffscreenCanvas(1, 1).getContext("2d",
      { willReadFrequently: true });
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = css;
    context.fillRect(0, 0, 1, 1);
    cache.set(css, [...context.getImageData(0, 0, 1, 1).data].map((v) => v / 255));
  }
  return cache.get(css);
}

const BOX_EDGES = [[0, 1], [2, 3], [4, 5], [6, 7], [0, 2], [1, 3], [4, 6], [5, 7], [0, 4], [1, 5],
  [2, 6], [3, 7]];

export class MarkDrawer {
  /** @param {WebGL2RenderingContext} gl @returns {Promise<MarkDrawer>} */
  static async make(gl) {
    return new MarkDrawer(gl, await makeProgram(gl, "mark_vert", "mark_frag"));
  }

  constructor(gl, program) {
    this.gl = gl;
    this.program = program;
    this.marks = [];
    this.colors = new Map();
    this.array = gl.createVertexArray();
    this.buffer = gl.createBuffer();
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.enableVertexAttribArray(0);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 4 * FLOATS, 0);
    gl.vertexAttribPointer(1, 4, gl.FLOAT, false, 4 * FLOATS, 12);
    gl.bindVertexArray(null);
    this.labels = document.createElement("div");
    this.labels.className = "labels3d";
    document.getElementById("stage").append(this.labels);
  }

  /** @param {object[]} marks @param {object} terrain whose ground they lie on */
  set(marks, terrain) {
    this.marks = marks;
    this.terrain = terrain;
  }

  /** A ring of [x, y] laid over the ground, its sides in pieces; closed. */
  #laid(ring, closed) {
    const { clipmap, field } = this.terrain, out = [], lift = 0.05 * Math.min(...field.spacing);
    const z = (x, y) => {
      const height = clipmap.heightAt(x, y);
      return (Number.isNaN(height) ? field.low : height) + lift;
    };
    for (let i = 0; i + (closed ? 0 : 1) < ring.length; i++) {
      const a = ring[i], b = ring[(i + 1) % ring.length];
      const pieces = Math.min(64, Math.max(1,
        Math.ceil(Math.hypot(b[0] - a[0], b[1] - a[1]) / Math.min(...field.spacing))));
      for (let k = 0; k <= pieces; k++) {
        const x = a[0] + (b[0] - a[0]) * k / pieces, y = a[1] + (b[1] - a[1]) * k / pieces;
        out.push([x, y, z(x, y)]);
      }
    }
    return out;
  }

  #ringOf(mark) {
    const { field } = this.terrain;
    if (mark.kind === "area") return mark.ring;
    if (mark.kind === "circle") return Array.from({ length: 48 }, (_, i) =>
      [mark.center[0] + mark.radius * Math.cos(i * Math.PI / 24),
        mark.center[1] + mark.radius * Math.sin(i * Math.PI / 24)]);
    const [c, r] = mark.cell, side = mark.side ?? 1;
    return [[c, r], [c + side, r], [c + side, r + side], [c, r + side]]
      .map(([i, j]) => field.place(0, i, j));
  }

  /** Pairs of points of a mark's lines. */
  #segments(mark) {
    if (mark.kind === "box") {
      const corner = (k) => [0, 1, 2].map((i) => (k >> i & 1 ? mark.max : mark.min)[i]);
      return BOX_EDGES.map(([a, b]) => [corner(a), corner(b)]);
    }
    const points = mark.kind === "line" ? mark.points :
      ["area", "circle", "cell"].includes(mark.kind) ? this.#laid(this.#ringOf(mark), true) : [];
    return points.slice(1).map((point, i) => [points[i], point]);
  }

  /** Draws over the ground. @param {Float32Array} view @param {number[]} eye */
  draw(view, eye) {
    this.#label(view, eye);
    if (!this.marks.length) return;
    const { gl } = this, { program, at } = this.program, lines = [], points = [];
    for (const mark of this.marks) {
      const color = rgba(colorOf(mark.color), this.colors).slice();
      if (mark.faint) color[3] *= 0.45;
      const put = (list, p) => list.push(p[0] - eye[0], p[1] - eye[1], p[2] - eye[2], ...color);
      if (mark.kind === "point") put(points, mark.at);
      for (const [a, b] of this.#segments(mark)) {
        put(lines, a);
        put(lines, b);
      }
    }
    gl.useProgram(program);
    gl.uniformMatrix4fv(at.u_view, false, view);
    gl.uniform1f(at.u_point, 9 * Math.min(devicePixelRatio, 2));
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([...lines, ...points]), gl.STREAM_DRAW);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    for (const [hidden, faint] of [[true, 0.3], [false, 1]]) {
      gl[hidden ? "disable" : "enable"](gl.DEPTH_TEST);
      gl.uniform1f(at.u_faint, faint);
      for (const [dx, dy] of [[1, 0], [0, 1], [0, 0]]) {
        gl.uniform2f(at.u_shift, 2 * dx / gl.drawingBufferWidth, 2 * dy / gl.drawingBufferHeight);
        gl.drawArrays(gl.LINES, 0, lines.length / FLOATS);
      }
      gl.drawArrays(gl.POINTS, lines.length / FLOATS, points.length / FLOATS);
    }
    gl.disable(gl.BLEND);
    gl.bindVertexArray(null);
  }

  #label(view, eye) {
    const named = this.marks.filter((m) => m.kind === "point" && m.label).slice(0, LABELS_MAX);
    if (!named.length && !this.labels.childElementCount) return;
    this.labels.replaceChildren(...named.map((mark) => {
      const p = [...mark.at.map((v, i) => v - eye[i]), 1];
      const [x, y, , w] = [0, 1, 2, 3].map((r) =>
        p.reduce((sum, v, c) => sum + view[4 * c + r] * v, 0));
      const label = document.createElement("span");
      label.textContent = mark.label;
      label.hidden = w <= 0;
      label.style.left = `${50 + 50 * x / w}%`;
      label.style.top = `${50 - 50 * y / w}%`;
      return label;
    }));
  }

  /** The 3D view is not shown. */
  hide() {
    this.labels.replaceChildren();
  }
}
