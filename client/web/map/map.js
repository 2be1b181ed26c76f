/**
 * The map: the ground from above in a 2D canvas, mesh outlines, what others mark over it, a scale
 * bar and what lies under the pointer. One frame is drawn whenever something has changed, never
 * more often than the screen shows them; nothing is drawn or fetched while the 3D view is up.
 */
import { Ground } from "/web/ground.js";
import { Here } from "/web/here.js";
import { listen } from "/web/mapinput.js";
import { MapView } from "/web/mapview.js";
import { boxOutline, outline, placed } from "/web/outline.js";
import { drawMarks } from "/web/overlay.js";
import { niceStep } from "/web/shade.js";
import { tileCache } from "/web/tilecache.js";

const BAR_PIXELS = 110;
const LOOK_PAUSE_MS = 150;

const at = (id) => document.getElementById(id);

/** A length in words: 250 m, 3.2 km. */
export function metres(value) {
  return Math.abs(value) >= 10000 ? `${+(value / 1000).toPrecision(5)} km` :
    `${+value.toPrecision(6)} m`;
}

/** What can be looked at: the locale's bounds and the field's edges, null when there is nothing. */
function reach(locale, layer) {
  const boxes = [locale?.bounds, layer?.bounds].filter(Boolean);
  if (layer) {
    const [ox, oy] = layer.origin, [sx, sy] = layer.spacing;
    const z = locale.bounds ?? { min: [0, 0, 0], max: [0, 0, 0] };
    boxes.push({ min: [ox, oy, z.min[2]],
      max: [ox + (layer.cols - 1) * sx, oy + (layer.rows - 1) * sy, z.max[2]] });
  }
  if (!boxes.length) return null;
  return { min: [0, 1, 2].map((i) => Math.min(...boxes.map((box) => box.min[i]))),
    max: [0, 1, 2].map((i) => Math.max(...boxes.map((box) => box.max[i]))) };
}

class MapPart {
  constructor(kota, state) {
    Object.assign(this, { kota, state, canvas: at("map"), view: new MapView(), outlines: [] });
    this.context = this.canvas.getContext("2d");
    this.asked = false;
    this.cache = tileCache(kota, state);
    this.ground = new Ground(this.cache, { again: () => this.again(),
      failed: (error) => this.failed(error), came: () => this.came() });
    this.here = new Here(kota, () => this.again());
    this.complaint = null;
    this.meshWork = new AbortController();
    listen(this.canvas, this.view, { moved: () => this.moved(),
      click: (pixel, event) => this.click(pixel, event), hover: (pixel) => this.hover(pixel) });
    new ResizeObserver(() => this.again()).observe(this.canvas);
    this.follow();
  }

  follow() {
    const { state } = this;
    state.on("locale", (locale) => {
      this.fresh = true;
      if (!locale) this.close();
    });
    state.on("layer", () => this.open());
    state.on("changed", (changed) => this.changed(changed));
    state.on("moved", (id) => this.moveOutline(id));
    for (const name of ["marks", "layersShown", "palette"]) state.on(name, () => this.again());
    state.on("feed", (feed) => { if (feed.state === "open") this.ground.retry(); });
    state.on("view", (view) => {
      if (view === "map") return this.again();
      if (this.lookTimer) this.tellLook(); // the 3D view takes it over
      this.ground.rest();
      at("where").textContent = "";
    });
    state.on("look", (look) => {
      if (look && look.by !== "map" && this.view.bounds) this.goTo(look);
    });
    for (const name of ["focus", "blur"]) this.canvas.addEventListener(name, () => this.again());
  }

  /** Another locale or layer, or the same with other edges. */
  open() {
    const { locale, layer } = this.state, bounds = reach(locale, layer);
    this.ground.open(locale, layer);
    this.view.limit(bounds, layer ? Math.min(...layer.spacing) : 0.5);
    this.measure();
    if (bounds && this.fresh) this.view.fit();
    this.fresh = false;
    at("stage-note").hidden = Boolean(bounds);
    at("stage-note").textContent = bounds || !locale ? "" :
      `${locale.id} has no ground yet. PUT …/locales/${locale.id}/layers/{layer} uploads some.`;
    this.loadOutlines();
    this.moved();
  }

  /** There is no locale, or it could not be read; a message says why. */
  close() {
    this.here.close();
    this.meshWork.abort();
    this.outlines = [];
    this.ground.open(null, null);
    this.view.limit(null, 1);
    at("stage-note").hidden = false;
    at("stage-note").textContent = "There is nothing to look at yet.";
    this.again();
  }

  async loadOutlines() {
    this.meshWork.abort();
    this.meshWork = new AbortController();
    this.outlines = [];
    const { locale } = this.state, { signal } = this.meshWork;
    for (const layer of locale?.layers.filter((l) => l.kind === "mesh") ?? []) {
      try {
        const made = await outline(this.kota, locale.id, layer, signal);
        if (signal.aborted) return;
        this.outlines.push(made);
        if (made.note) this.state.set("message", { text: made.note, isError: false });
        this.again();
      } catch (error) {
        if (signal.aborted) return;
        this.failed(error);
      }
    }
  }

  changed(changed) {
    if (!changed?.rect && changed?.layer && this.outlines.some((o) => o.id === changed.layer))
      this.loadOutlines();
    if (changed) this.here.caughtUp(changed.revision).then(() => this.again(), () => {});
    this.again();
  }

  /** A layer has moved, perhaps out of the bounds of the view. */
  moveOutline(id) {
    const { locale, layer } = this.state, bounds = reach(locale, layer);
    if (id === null && bounds) this.view.limit(bounds, this.view.spacing);
    for (const made of this.outlines.filter((one) => !one.sides && id === null)) {
      const box = locale.layers.find((one) => one.id === made.id)?.bounds;
      if (box) Object.assign(made, boxOutline(box));
    }
    this.again();
  }

  goTo(look) {
    Object.assign(this.view, { x: look.x, y: look.y });
    if (look.width_m > 0) this.view.scale = this.view.width / look.width_m;
    this.view.clamp();
    this.again();
  }

  failed(error) {
    const text = `${error.message} The map shows what it has, and asks again.`;
    this.complaint = { text, isError: true };
    if (this.state.message?.text !== text) this.state.set("message", this.complaint);
  }

  /** A block has come: what was said of the daemon's absence holds no longer. */
  came() {
    if (this.complaint && this.state.message === this.complaint) this.state.set("message", null);
    this.complaint = null;
  }

  again() {
    if (this.asked || this.state.view !== "map") return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  moved() {
    this.again();
    clearTimeout(this.lookTimer);
    this.lookTimer = setTimeout(() => { if (this.state.view === "map") this.tellLook(); },
      LOOK_PAUSE_MS);
  }

  tellLook() {
    clearTimeout(this.lookTimer);
    this.lookTimer = 0;
    if (!this.view.bounds) return;
    const { x, y, widthM } = this.view;
    this.here.look(this.state.locale, { x, y, width_m: widthM });
    this.state.set("look", { x, y, width_m: widthM, by: "map" });
  }

  hover(pixel) {
    const { state, view } = this;
    const ground = pixel && view.bounds ? view.toGround(pixel.x, pixel.y) : null;
    state.set("pointer", ground ? { x: ground[0], y: ground[1] } : null);
    this.again();
  }

  click(pixel, event) {
    const { state, view } = this;
    if (!view.bounds) return;
    const [x, y] = view.toGround(...pixel), z = this.ground.heightNear(x, y);
    state.set("clicked", { view: "map", point: [x, y, Number.isFinite(z) ? z : null], camera: null,
      inverse_view_projection: view.inverseViewProjection(), depth: "gl",
      viewport: [view.width, view.height], pixel, event });
  }

  /** Takes the canvas's size; true when it has one. */
  measure() {
    const box = this.canvas.getBoundingClientRect(), ratio = Math.min(2, devicePixelRatio || 1);
    if (!box.width || !box.height) return false;
    const [w, h] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h)
      Object.assign(this.canvas, { width: w, height: h });
    this.ratio = ratio;
    Object.assign(this.view, { width: box.width, height: box.height });
    return true;
  }

  draw() {
    if (this.state.view !== "map" || !this.measure()) return;
    const { context, view, state } = this, shown = state.layersShown;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, view.width, view.height);
    if (!view.bounds) return this.words();
    view.clamp();
    if (this.ground.layer) this.ground.draw(context, view, shown, this.ratio, state.palette);
    if (shown.meshes) for (const made of this.outlines) this.drawOutline(made);
    drawMarks(context, state.marks, { toScreen: (x, y) => view.toScreen(x, y), scale: view.scale,
      layer: state.layer, again: () => this.again() });
    if (document.activeElement === this.canvas && this.canvas.matches(":focus-visible"))
      this.drawMiddle();
    this.drawBar();
    this.words();
  }

  drawOutline(made) {
    const { path, base, turn: [c, s] } = placed(made, this.state.poses.get(made.id));
    const { context, view } = this, [x, y] = view.toScreen(base[0], base[1]);
    context.save();
    context.transform(view.scale * c, -view.scale * s, -view.scale * s, -view.scale * c, x, y);
    context.lineWidth = 1.2 / view.scale;
    if (made.role === "ceiling") context.setLineDash([5 / view.scale, 4 / view.scale]);
    context.strokeStyle = this.style("--accent");
    context.stroke(path);
    context.restore();
  }

  style(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  /** Where Enter asks. */
  drawMiddle() {
    const { context, view } = this, x = view.width / 2, y = view.height / 2;
    context.beginPath();
    for (const [dx, dy] of [[1, 0], [0, 1], [-1, 0], [0, -1]]) {
      context.moveTo(x + 4 * dx, y + 4 * dy);
      context.lineTo(x + 14 * dx, y + 14 * dy);
    }
    context.lineWidth = 3;
    context.strokeStyle = "rgba(0, 0, 0, 0.6)";
    context.stroke();
    context.lineWidth = 1.5;
    context.strokeStyle = "#fff";
    context.stroke();
  }

  drawBar() {
    const { context, view } = this;
    let length = niceStep(BAR_PIXELS / view.scale / 2.5);
    while (length * view.scale * 2 < BAR_PIXELS) length *= 2;
    const right = view.width - 16, left = right - length * view.scale, y = view.height - 16;
    const front = this.style("--front");
    context.fillStyle = this.style("--panel");
    context.globalAlpha = 0.8;
    context.fillRect(left - 8, y - 22, right - left + 16, 30);
    context.globalAlpha = 1;
    context.beginPath();
    context.moveTo(left, y - 5);
    context.lineTo(left, y);
    context.lineTo(right, y);
    context.lineTo(right, y - 5);
    context.lineWidth = 1.5;
    context.strokeStyle = front;
    context.stroke();
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = front;
    context.textAlign = "center";
    context.fillText(metres(length), (left + right) / 2, y - 8);
    context.textAlign = "start";
  }

  /** The line below: the place under the pointer and what the map is made of. */
  words() {
    const { state, view, ground } = this, parts = [];
    if (state.view !== "map") return;
    if (view.bounds && state.pointer) {
      const { x, y } = state.pointer, exact = this.here.heightAt(x, y);
      const near = ground.heightNear(x, y);
      parts.push(`x ${x.toFixed(1)}, y ${y.toFixed(1)}`);
      if (Number.isFinite(exact)) parts.push(`z ${exact.toFixed(3)} m`);
      else if (exact === undefined && Number.isFinite(near)) parts.push(`z ≈ ${near.toFixed(1)} m`);
      else if (near !== undefined) parts.push("hole");
    }
    if (ground.layer && view.bounds) {
      if (ground.interval) parts.push(`contours ${metres(ground.interval)}`);
      parts.push(`level ${ground.level}`);
      if (ground.waiting.size) parts.push(`${ground.waiting.size} coming`);
    }
    at("where").textContent = parts.join(" · ");
  }
}

/** @param {import("./kota.js").Kota} kota @param {typeof import("./state.js").state} state */
export function start(kota, state) {
  const part = new MapPart(kota, state);
  /** For tests: what is held and asked, and where pixels lie. */
  window.kotaMap = {
    get view() { return part.view; }, get counters() { return part.cache.counters; },
    get bytes() { return part.cache.bytes; }, get waiting() { return part.ground.waiting.size; },
    get level() { return part.ground.level; }, get here() { return part.here; },
    get idle() { return !part.asked && !part.ground.waiting.size && !part.ground.unfinished; },
  };
}
