/**
 * The 3D view: the ground by geometry clipmaps (clipmap.js) under a camera that flies, picking, and
 * what other parts mark.
 *
 * It draws when something has changed and rests otherwise. Where the processor draws (no graphics
 * card), the grid is smaller and the picture coarser while frames take long.
 *
 * window.kotaTerrain, for tests and people with a console:
 *
 *   counters()                     see `counters` below: frames, bytes, levels, memory
 *   camera() / setCamera({eye, target})
 *   setGrid(n)                     63, 127, 255 or 511 vertices a side
 *   sand()                         patches that are drawn with their rectangle, the height in their
 *                                  middle, how many granules are drawn, and how far both have come
 *                                  (cover, granulesCover: 0 to 1); surfaces and granules that
 *                                  came, bodies, mesh layers, where moved ones stand
 *   granuleDepths({width, height, cover})
 *                                  metres to the granules along the view's direction in each pixel,
 *                                  rows from the bottom; null: none. All are drawn as in the middle of
 *                                  a patch; cover: the share of their pixels, 1
 *   ready()                        resolves when nothing is missing and the picture is drawn
 *   refined()                      resolves when it is drawn as fine as a picture at rest gets
 *   fly({to: [x, y], seconds, height, finish})
 *                                  flies there in that time, at that height above the ground; tells
 *                                  frames, seconds, framesPerSecond, and counters' differences;
 *                                  finish: waits for the last pixel of each frame
 *   sunlit({points, normals, isGround})
 *                                  which share of the sun reaches them: see probe.js
 *   cascades()                     of the shadows: radius, metres of a texel
 *   compare({width, height, ...})  the same view by clipmaps and at full resolution: see compare.js
 */
import { BareField, BareGround, groundBounds } from "/web/bare.js";
import { Camera, FOV_Y_DEG } from "/web/camera.js";
import { Clipmap, Fetcher } from "/web/clipmap.js";
import { compare } from "/web/compare.js";
import { Field } from "/web/field.js";
import { Flight } from "/web/flight.js";
import { isSoftware, NoWebGL, openContext } from "/web/gl.js";
import { Granules } from "/web/granules3d.js";
import { Ground } from "/web/groundpass.js";
import { MarkDrawer } from "/web/marks3d.js";
import { Pace } from "/web/pace.js";
import { Patches } from "/web/patches3d.js";
import { niceStep } from "/web/shade.js";
import { sunlitAt } from "/web/probe.js";
import { Shadows } from "/web/shadows.js";
import { MeshLayers, SolidDrawer } from "/web/solids3d.js";
import { tell } from "/web/state.js";
import { sunAt } from "/web/sun.js";
import { tileCache } from "/web/tilecache.js";
import { Walk } from "/web/walk.js";

const LOOK_AHEAD_S = 0.8;
const LINE_MS = 250; // in motion, from one text of the line under the picture to the next: each is
// laid out and painted, which takes a tenth as long as an empty picture
const PITCH_TAKEN = -0.6; // at least so far down where the map's place is taken over
const REST_MS = 250; // without a change, until the picture is drawn as fine as it gets
const SLOW_MS = 90, QUICK_MS = 30; // a frame, for a coarser and a finer picture
const SCALES = [1, 0.75, 0.5];
const CONTOURS = 30; // lines of height over the whole field, about
const GROUND_GAP = 0.25; // the eye stays so many cells above the ground, at least

class Terrain {
  constructor(kota, state) {
    this.kota = kota;
    this.state = state;
    this.canvas = document.getElementById("terrain");
    this.note = document.getElementById("stage-note");
    this.line = document.createElement("div");
    this.line.id = "terrain-line";
    this.line.className = "quiet";
    this.note.after(this.line);
    this.cache = tileCache(kota, state);
    this.fetcher = new Fetcher(this.cache, () => this.#came());
    this.camera = new Camera();
    this.walk = new Walk(kota, state, this.camera, () => this.draw());
    this.flight = new Flight(this.canvas, this.camera, this.walk, { onMove: () => this.draw(),
      height: () => this.above, onClick: (pixel, event) => this.#click(pixel, event),
      onPoint: (pixel) => this.#point(pixel) });
    this.field = this.clipmap = this.asked = this.problem = null;
    this.whole = false;
    this.rest = { key: "", isOn: false, isWhole: false, timer: 0 };
    this.mustPaint = true;
    this.above = 100;
    this.scale = 0;
    this.frames = { count: 0, ms: 0, perSecond: 0, since: 0, inSecond: 0 };
    this.pace = new Pace();
    this.waiting = [];
    this.lineAt = 0;
  }

  // ---- begin and end ------------------------------------------------------------------------

  /** The context and the programs, on the first look. */
  async #open() {
    try {
      this.gl ??= openContext(this.canvas);
      this.isSoftware = this.pace.isSlow = isSoftware(this.gl);
      this.n ??= this.isSoftware ? 127 : 255;
      this.ground = await Ground.make(this.gl);
      this.shadows = await Shadows.make(this.gl, this.isSoftware ? 512 : 1024);
      this.marks = await MarkDrawer.make(this.gl);
      this.marks.set(this.state.marks, this);
      this.solids = await SolidDrawer.make(this.gl);
      this.patches = new Patches(this.gl, this.kota, this.state, this.solids,
        await Granules.make(this.gl, this.kota), () => this.draw());
      this.meshes = new MeshLayers(this.solids, this.kota, this.state, () => this.draw());
      this.problem = null;
    } catch (error) {
      this.problem = error;
      if (!(error instanceof NoWebGL)) tell(error);
    }
    this.#say();
  }

  /** Another view, locale or layer. */
  async show() {
    if (this.state.view !== "3d") {
      this.fetcher.stop();
      this.patches?.stop();
      this.marks?.hide();
      this.#say();
      return;
    }
    this.opening ??= this.#open(); // which may be under way for an earlier call
    await this.opening;
    if (!this.ground) return;
    if (this.state.view !== "3d") return;
    this.#setField();
    this.#say();
    this.#takeOver();
    this.patches.start();
    this.meshes.show();
    this.draw();
  }

  /** Looks at what the map shows, if that is chosen there; the heading stays. */
  #takeOver() {
    const { look } = this.state, { field, camera } = this;
    if (!field || look?.by !== "map" || look === this.lookTaken) return;
    this.lookTaken = look;
    if (look.width_m >= Math.max(...field.extent)) return this.#home(); // the whole of it
    const pitch = camera.pitch > PITCH_TAKEN ? PITCH_TAKEN : camera.pitch;
    const c = Math.cos(pitch), away = look.width_m / this.#spread;
    const d = [c * Math.cos(camera.heading), c * Math.sin(camera.heading), Math.sin(pitch)];
    this.taking = { place: [look.x, look.y], d, away };
    this.#stand();
  }

  /** Stands so that what was taken over is in the middle; its height is known as blocks come. */
  #stand() {
    const { place, d, away } = this.taking, { field, camera } = this;
    const ground = this.clipmap.heightAt(...place);
    const target = [...place, Number.isNaN(ground) ? (field.low + field.high) / 2 : ground];
    this.taking.ground = ground;
    camera.look(target.map((v, i) => v - away * d[i]), target);
    this.takenKey = this.#standing;
  }

  /** What is seen from side to side, a metre from the eye. */
  get #spread() {
    const { clientWidth, clientHeight } = this.canvas;
    return 2 * Math.tan(FOV_Y_DEG * Math.PI / 360) * (clientWidth || 4) / (clientHeight || 3);
  }

  get #standing() {
    const { eye, heading, pitch } = this.camera;
    return JSON.stringify([eye, heading, pitch]);
  }

  #setField() {
    const { locale, layer } = this.state;
    const key = layer ? JSON.stringify([locale.id, layer.id, layer.cols, layer.rows, layer.spacing,
      layer.origin, locale.triangulation]) : this.#isBare ? JSON.stringify([locale.id, "", locale
      .bounds]) : "";
    if (key === this.fieldKey) {
      if (layer?.bounds) [this.field.low, this.field.high] =
        [layer.bounds.min[2], layer.bounds.max[2]];
      this.#openShadows();
      return;
    }
    const another = this.fieldKey?.split(",")[0] !== key.split(",")[0];
    this.fieldKey = key;
    this.fetcher.stop();
    this.clipmap?.release();
    this.clipmap = this.field = this.patches.seen = null;
    if (!key) return;
    this.field = layer ? new Field(this.cache, locale, layer) : new BareField(locale);
    this.clipmap = layer ? new Clipmap(this.gl, this.field, this.n) : new BareGround();
    this.#openShadows();
    if (another) this.#home();
  }

  /** The room that all that casts is in. */
  #openShadows() {
    const { field } = this, { bounds } = this.state.locale;
    if (!field) return;
    const min = [...field.origin, field.low];
    const max = [...field.origin.map((v, i) => v + field.extent[i]), field.high];
    const box = { min: min.map((v, i) => Math.min(v, bounds?.min[i] ?? v)),
      max: max.map((v, i) => Math.max(v, bounds?.max[i] ?? v)) };
    const key = JSON.stringify(box);
    if (field === this.shadows.field && key === this.shadowsKey) return;
    this.shadowsKey = key;
    this.shadows.open(field, box);
  }

  /** Only meshes. */
  get #isBare() {
    const { locale, layer } = this.state;
    return !layer && Boolean(locale?.bounds) && locale.layers.some((l) => l.kind === "mesh");
  }

  /** From the south-east over the middle: the default sun is in the south-west, so that shadows fall
   * to the side, not behind what casts them. */
  #home() {
    const { field } = this, [x, y] = field.origin, [w, h] = field.extent;
    if (this.#isBare) {
      const { min, max } = groundBounds(this.state.locale);
      const middle = min.map((v, i) => (v + max[i]) / 2);
      const away = 0.5 * Math.hypot(...max.map((v, i) => v - min[i])) /
        Math.sin(FOV_Y_DEG * Math.PI / 360);
      this.camera.look(middle.map((v, i) => v - away * [-0.55, 0.55, -0.63][i]), middle);
      return;
    }
    const rise = Math.max(field.high, field.low + 0.05 * Math.hypot(w, h));
    this.camera.look([x + 0.8 * w, y + 0.2 * h, rise + 0.03 * Math.hypot(w, h)],
      [x + 0.45 * w, y + 0.55 * h, field.low]);
  }

  #say() {
    const text = this.state.view !== "3d" ? "" : this.problem ? this.problem.message :
      !this.state.layer && !this.#isBare ?
        "This locale has no ground yet, so there is nothing to draw in 3D." :
        this.state.layer?.bounds === null ?
          `${this.state.layer.id} has no heights: all of it is a hole.` : "";
    this.line.hidden = this.state.view !== "3d" || Boolean(text);
    document.getElementById("where").hidden = this.state.view === "3d";
    if (text || this.note.dataset.by === "terrain") this.note.hidden = !text;
    if (text || this.note.dataset.by === "terrain") this.note.textContent = text;
    this.note.dataset.by = text ? "terrain" : "";
  }

  lost() {
    this.problem = new NoWebGL("The graphics driver has ended the 3D view. It comes back by " +
      "itself if the driver does; the map works.");
    this.ground = this.opening = this.clipmap = this.fieldKey = null;
    this.#say();
  }

  // ---- frames -------------------------------------------------------------------------------

  /** Something has changed: asks for a frame. */
  draw() {
    this.mustPaint = true;
    if (this.isSoftware) this.rest.isOn = this.rest.isWhole = false; // a fine frame takes it long
    this.#ask();
  }

  #ask() {
    if (this.asked || !this.clipmap || this.state.view !== "3d") return;
    this.asked = requestAnimationFrame((now) => this.#frame(now));
  }

  #frame(now) {
    this.asked = null;
    if (!this.clipmap || this.state.view !== "3d") return;
    const seconds = Math.min(0.2, (now - (this.before ?? now)) / 1000 || 0.016);
    const start = performance.now();
    this.before = now;
    if (this.flight.isMoving) this.flight.advance(seconds);
    this.path?.(now);
    if (this.taking && this.#standing !== this.takenKey) this.taking = null;
    if (this.taking) this.#stand();
    this.#keepAbove();
    if (this.taking) this.takenKey = this.#standing;
    const moving = this.flight.isMoving || Boolean(this.path);
    const velocity = this.path ? this.path.velocity : this.flight.isMoving ? this.flight.velocity :
      [0, 0];
    const { eye } = this.camera;
    const came = this.clipmap.update(eye, this.above,
      eye.slice(0, 2).map((v, i) => v + LOOK_AHEAD_S * velocity[i]), now);
    const inMotion = moving || (this.pace.isSlow && !this.rest.isOn); // a mouse turns, or sand moves
    const shade = this.#shade(inMotion, this.rest.isOn && !this.mustPaint);
    const isBlending = this.patches.advance(seconds);
    this.whole = came.whole && !came.fading && !isBlending && (inMotion || shade.isWhole);
    this.#settle(moving, came, shade);
    for (const [key, place] of shade.wanted) came.wanted.set(key, place);
    this.fetcher.want(came.wanted);
    if (this.rest.isOn && !this.rest.isWhole && !this.mustPaint) return; // more is to come
    this.mustPaint = false;
    this.#resize(moving && !this.path?.isFull ? SCALES[this.scale] : 1);
    this.paint({ width: this.canvas.width, height: this.canvas.height, relief: this.rest.isOn,
      shadows: this.isShadowed ? this.shadows : null });
    if (this.finish) this.gl.readPixels(0, 0, 1, 1, this.gl.RGBA, this.gl.UNSIGNED_BYTE,
      new Uint8Array(4));
    this.#count(now, performance.now() - start, moving);
    if (moving && this.wasMoving) this.pace.took(1000 * seconds, this.isShadowed);
    if (this.taking && !Object.is(this.clipmap.heightAt(...this.taking.place), this.taking.ground)) {
      this.whole = false;
      this.draw();
    }
    if (moving || came.fading || isBlending) this.draw();
    else if (this.wasMoving) this.draw(); // once more, sharp
    else {
      this.before = undefined;
      if (this.whole) this.waiting.splice(0).forEach((done) => done());
    }
    this.wasMoving = moving;
    this.#tellLook();
    if (moving && now - this.lineAt < LINE_MS) return;
    this.lineAt = now;
    this.#line();
  }

  /** Looks whether the view is at rest; then what makes its picture fine is asked for, too. */
  #settle(moving, came, shade) {
    const { rest } = this, key = this.#standing;
    if (moving || key !== rest.key || !this.whole) rest.isOn = rest.isWhole = false;
    rest.key = key;
    clearTimeout(rest.timer);
    if (moving || !this.whole) return;
    if (!rest.isOn || !shade.isFine) rest.timer = setTimeout(() => {
      rest.isOn = true;
      this.#ask();
    }, REST_MS);
    if (!rest.isOn) return;
    const fine = this.clipmap.refine();
    for (const [wanted, place] of fine.wanted) came.wanted.set(wanted, place);
    const isWhole = fine.isWhole && shade.isFine;
    if (isWhole && !rest.isWhole) this.mustPaint = true;
    rest.isWhole = isWhole;
  }

  /** A block came, or did not: that is said once, and taken back when the next comes. */
  #came() {
    const { failed } = this.fetcher;
    if (failed && !this.complained) tell(failed);
    else if (!failed && this.complained && this.state.message === this.complained)
      this.state.set("message", null);
    this.complained = failed ? this.complained ?? this.state.message : null;
    if (this.rest.isOn) this.#ask();
    else this.draw();
  }

  /** Where the eye is and what is drawn, in a line under the picture. */
  #line() {
    const { eye } = this.camera, f = this.frames, levels = this.clipmap.shown?.length ?? 0;
    const rate = f.perSecond && this.wasMoving ? ` · ${f.perSecond.toFixed(0)} frames/s` : "";
    const late = this.fetcher.under.size ? ` · ${this.fetcher.under.size} blocks coming` : "";
    const lines = this.contour ? ` · contours ${this.contour} m` : "";
    const above = this.above < 100 ? this.above.toPrecision(3) : this.above.toFixed(0);
    const ground = this.#isBare ? "" : ` · ${above} m above ground · ${levels} levels`;
    this.line.textContent =
      `eye ${eye.map((v) => v.toFixed(0)).join(", ")}${ground}${lines}${rate}${late}`;
  }

  /**
   * Draws into what is bound.
   * @param {{width: number, height: number, plain?: boolean, relief?: boolean,
   *   shadows?: Shadows|null}} o
   */
  paint(o) {
    const rects = this.patches.rects(this.field);
    const pass = this.ground.begin(this.field, this.camera,
      { above: this.above, rects, contour: this.contour, ...o });
    this.clipmap.draw(pass.at, this.camera.eye, pass.planes);
    if (o.plain) return;
    this.gl.enable(this.gl.POLYGON_OFFSET_FILL);
    this.gl.polygonOffset(-1, -1);
    this.patches.draw(pass.at, this.field, this.camera.eye);
    this.gl.disable(this.gl.POLYGON_OFFSET_FILL);
    this.ground.drawSky(this.camera, o.width / o.height);
    this.patches.drawGranules(pass, this.camera.eye, this.field);
    this.solids.draw(pass, this.camera.eye, this.#allSolids);
    this.marks.draw(pass.view, this.camera.eye);
  }

  get #allSolids() {
    return [...this.meshes.solids, ...this.patches.bodies];
  }

  /** What casts shadows besides ground, as Shadows.update takes it. */
  get #casters() {
    const { gl, field, ground, patches } = this, rects = patches.rects(field);
    // the sky of a planet or a drum would leave all of it in shadow
    const solids = this.#allSolids.filter((solid) => !(solid.kind === "ceiling" &&
      solid.up?.byPoint.some((v) => v)));
    const key = JSON.stringify([rects, patches.surfaces, patches.granules.version,
      patches.granular.map(({ id, cover }) => [id, Math.floor(4 * cover)]), // which sinks the surface
      solids.map(({ mesh, position, orientation }) => [mesh.count, position, orientation])]);
    const spacing = Math.max(...field.spacing);
    return { key, cut: (at, origin) => ground.setRects(at, rects, origin, spacing),
      sheets: (at, origin) => patches.draw(at, field, origin),
      solids: (view, origin) => {
        patches.granules.cast(view, origin, ground.sun.map((v) => -v), patches.granular);
        this.solids.cast(view, origin, solids);
      } };
  }

  /**
   * Brings the maps of shadows up to date, if there are to be any.
   * @param {boolean} moving is there another frame soon?
   * @param {boolean} isFine at rest, with nothing changed just now
   * @returns {ReturnType<Shadows["update"]>}
   */
  #shade(moving, isFine) {
    const { sun, layersShown } = this.state;
    this.ground.sun = sunAt(sun.azimuth_deg, sun.height_deg);
    this.isShadowed = layersShown.shadows && sun.height_deg > 0 &&
      !(moving && this.pace.isSlow && !this.path?.isFull);
    if (!this.isShadowed) return { wanted: new Map(), isWhole: true, isFine: true };
    return this.shadows.update(this.camera.eye, this.ground.sun, this.#casters, moving ? 1 : 4,
      isFine);
  }

  /** Metres between lines of height; 0: none are shown. */
  get contour() {
    const { low, high } = this.field;
    return this.state.layersShown.contours3d ? niceStep((high - low) / CONTOURS) || 0 : 0;
  }

  #keepAbove() {
    const { eye } = this.camera, least = GROUND_GAP * Math.max(...this.field.spacing);
    const ground = this.clipmap.heightAt(eye[0], eye[1]);
    const floor = Number.isNaN(ground) ? this.field.low : ground;
    if (!this.walk.isOn) eye[2] = Math.max(eye[2], floor + least);
    this.above = Math.max(least, eye[2] - floor);
  }

  #resize(scale) {
    const density = Math.min(devicePixelRatio, 2) * scale;
    const width = Math.max(1, Math.round(this.canvas.clientWidth * density));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * density));
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
  }

  /** Counts frames; while moving, slow ones make the picture coarser and quick ones finer. */
  #count(now, ms, moving) {
    const f = this.frames;
    f.count++;
    f.ms = f.ms ? 0.8 * f.ms + 0.2 * ms : ms;
    f.inSecond++;
    if (now - f.since < 1000) return;
    if (f.since && now - f.since < 2000 && moving) {
      f.perSecond = 1000 * f.inSecond / (now - f.since);
      const each = 1000 / f.perSecond;
      if (each > SLOW_MS && this.scale + 1 < SCALES.length) this.scale++;
      else if (each < QUICK_MS && this.scale > 0) this.scale--;
    }
    f.since = now;
    f.inSecond = 0;
  }

  /** Tells the map what is in the middle here, unless that came from there. */
  #tellLook() {
    const key = this.#standing;
    if (!this.whole || this.taking || key === this.lookKey || this.flight.isMoving || this.path)
      return;
    this.lookKey = key;
    const { eye, forward } = this.camera, down = forward[2] < -0.05;
    const middle = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
    const hit = this.hitOf(middle);
    const reach = down ? Math.min(this.above / -forward[2], 20 * this.above) : 4 * this.above;
    const [x, y] = hit ?? [eye[0] + reach * forward[0], eye[1] + reach * forward[1]];
    const away = hit ? Math.hypot(...hit.map((v, i) => v - eye[i])) : reach;
    this.state.set("look", { x, y, width_m: away * this.#spread, by: "3d" });
  }

  // ---- what is under a pixel ------------------------------------------------------------------

  /** Where the ray through a pixel meets the ground that is drawn; null: nowhere. */
  hitOf(pixel) {
    const viewport = [this.canvas.clientWidth, this.canvas.clientHeight];
    const d = this.camera.ray(pixel, viewport), { eye } = this.camera;
    const over = (t) => eye[2] + t * d[2] -
      this.clipmap.heightAt(eye[0] + t * d[0], eye[1] + t * d[1]);
    const far = 1.5 * Math.hypot(...this.field.extent, this.above);
    const least = 0.25 * Math.min(...this.field.spacing);
    for (let t = 0, step = least; t < far; t += step) {
      step = Math.max(least, 0.004 * t);
      if (!(over(t + step) <= 0) || !(over(t) > 0)) continue;
      let [a, b] = [t, t + step];
      for (let i = 0; i < 30; i++) {
        const middle = (a + b) / 2;
        if (over(middle) > 0) a = middle;
        else b = middle;
      }
      return eye.map((v, i) => v + b * d[i]);
    }
    return null;
  }

  #click(pixel, event) {
    if (!this.clipmap) return;
    const viewport = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.state.set("clicked", { point: this.hitOf(pixel), camera: this.camera.forPick(), viewport,
      pixel, event });
  }

  #point(pixel) {
    this.pointed = pixel;
    if (this.pointing) return;
    this.pointing = setTimeout(() => {
      this.pointing = 0;
      const hit = this.pointed && this.clipmap ? this.hitOf(this.pointed) : null;
      this.state.set("pointer", hit ? { x: hit[0], y: hit[1] } : null);
    }, 60);
  }

  // ---- for tests --------------------------------------------------------------------------------

  counters() {
    const { clipmap, cache, fetcher, frames } = this, c = clipmap?.counters;
    return { grid: this.n, software: this.isSoftware ?? null, frames: frames.count,
      framesPerSecond: frames.perSecond, frameMs: frames.ms, scale: SCALES[this.scale],
      fetchedBlocks: fetcher.counters.blocks, fetchedBytes: fetcher.counters.bytes,
      blocksInMemory: cache.blocks.size, blockBytes: cache.bytes, blockBytesMax: cache.bytesMax,
      textureBytes: clipmap?.bytes ?? 0, levels: clipmap?.levels.length ?? 0,
      levelsDrawn: clipmap?.shown?.map((level) => level.number) ?? [], whole: this.whole,
      uploadedBytes: c?.uploadedBytes ?? 0,
      reliefTexels: clipmap?.relief?.uploadedTexels ?? 0, uploadedSamples: c?.uploadedSamples ?? 0,
      steps: c?.steps ?? 0, blocksDrawn: c?.blocksDrawn ?? 0, blocksCulled: c?.blocksCulled ?? 0,
      triangles: c?.triangles ?? 0, shadowed: Boolean(this.isShadowed),
      shadowMaps: this.shadows?.draws ?? 0, shadowBytes: this.shadows?.bytes ?? 0 };
  }

  sand() {
    const { patches } = this;
    return { surfaces: patches.surfaces, granules: patches.granules.version, bodies: patches.bodies.length,
      granulesMax: patches.granules.countMax, solids: this.meshes.solids.length, standing: Object.fromEntries(this.state.poses),
      patches: patches.live.filter((p) => patches.meshes.has(p.id)).map((p) => {
        const { z, cols, rows, finer, cover } = patches.meshes.get(p.id);
        return { id: p.id, state: p.state, cols, rows, finer, cover, middle: z[(z.length - 1) / 2],
          rect: patches.rectOf(p, this.field),
          granulesCover: patches.granules.sets.get(p.id)?.cover ?? 0,
          granules: patches.isGranular(p.id) ? patches.granules.sets.get(p.id).count : 0 };
      }) };
  }

  granuleDepths({ width, height, cover = 1 }) {
    const [near, far] = [1, 1000], { camera, patches } = this;
    return patches.granules.depths(camera.matrix(width / height, near, far), camera.eye,
      patches.granular.map((p) => ({ ...p, cover, rect: [-1e9, -1e9, 1e9, 1e9] })), width, height)
      .map((depth) => depth === 1 ? null : far * near / (far - depth * (far - near)));
  }

  setCamera({ eye, target }) {
    this.taking = null;
    this.camera.look(eye, target);
    this.whole = false;
    this.draw();
  }

  /** Resolves when the picture at rest is as fine as it gets. */
  async refined() {
    await this.ready();
    while (!this.rest.isWhole) await new Promise((done) => { setTimeout(done, 50); });
  }

  /** Which share of the sun reaches places, as in a picture at rest. */
  async sunlit(o) {
    await this.ready();
    const shadeAll = () => this.#shade(false, true);
    for (let shade = shadeAll(); !shade.isWhole; shade = shadeAll())
      await Promise.all([...shade.wanted.values()].map((place) => this.cache.load(place)));
    return sunlitAt(this, o);
  }

  setGrid(n, o) {
    this.n = n;
    if (!this.field || this.#isBare) return;
    this.clipmap.release();
    this.clipmap = new Clipmap(this.gl, this.field, n, o);
    this.whole = false;
    this.draw();
  }

  async ready() {
    await this.showing;
    return new Promise((done, fail) => {
      if (this.problem) fail(this.problem);
      else if (!this.clipmap) fail(new Error("There is no ground to draw."));
      this.waiting.push(done);
      this.draw();
    });
  }

  /** Flies a line. `full`: as large as at rest, and with shadows where they are on, however slow. */
  fly({ to, seconds, height, finish = false, full = false }) {
    const from = [...this.camera.eye], begin = this.counters(), { camera } = this;
    const velocity = [0, 1].map((i) => (to[i] - from[i]) / seconds);
    const most = { blockBytes: 0, textureBytes: 0 };
    if (height !== undefined)
      camera.look(from, [...to, from[2] - 0.25 * Math.hypot(to[0] - from[0], to[1] - from[1])]);
    this.finish = finish;
    return new Promise((done) => {
      let start = null, frames = 0;
      this.path = (now) => {
        start ??= now;
        const t = Math.min(1, (now - start) / 1000 / seconds);
        for (const i of [0, 1]) camera.eye[i] = from[i] + t * (to[i] - from[i]);
        const ground = this.clipmap.heightAt(camera.eye[0], camera.eye[1]);
        if (height !== undefined && !Number.isNaN(ground)) camera.eye[2] = ground + height;
        most.blockBytes = Math.max(most.blockBytes, this.cache.bytes);
        most.textureBytes = Math.max(most.textureBytes, this.clipmap.bytes);
        frames++;
        if (t < 1) return;
        this.path = null;
        this.finish = false;
        const took = (now - start) / 1000, end = this.counters();
        const since = (name) => end[name] - begin[name];
        done({ frames, seconds: took, framesPerSecond: (frames - 1) / took, most,
          fetchedBytes: since("fetchedBytes"), fetchedBlocks: since("fetchedBlocks"),
          uploadedBytes: since("uploadedBytes"), uploadedSamples: since("uploadedSamples"),
          steps: since("steps"), end });
      };
      this.path.velocity = velocity;
      this.path.isFull = full;
      this.draw();
    });
  }

  /** @returns {object} what tests call */
  forTests() {
    return { counters: () => this.counters(), camera: () => this.camera.forPick(),
      setCamera: (c) => this.setCamera(c), setGrid: (n, o) => this.setGrid(n, o),
      sand: () => this.sand(), granuleDepths: (o) => this.granuleDepths(o), ready: () => this.ready(),
      refined: () => this.refined(), fly: (o) => this.fly(o),
      compare: (o) => compare(this, o), sunlit: (o) => this.sunlit(o),
      cascades: () => this.shadows.cascades.map(({ radius, texel, placed, level }) =>
        ({ radius, texel, placed, level })),
      hitOf: (pixel) => this.hitOf(pixel) };
  }
}

/** @param {import("./kota.js").Kota} kota @param {typeof import("./state.js").state} state */
export function start(kota, state) {
  const terrain = new Terrain(kota, state);
  const show = () => { terrain.showing = terrain.show(); };
  for (const name of ["view", "locale", "layer"]) state.on(name, show);
  for (const name of ["layersShown", "sun"]) state.on(name, () => terrain.draw());
  state.on("moved", () => {
    if (terrain.field instanceof BareField) show(); // its space is that of the layers
    terrain.draw();
  });
  state.on("marks", (marks) => {
    terrain.marks?.set(marks, terrain);
    terrain.draw();
  });
  state.on("changed", (changed) => {
    const other = changed?.layer && changed.layer !== state.layer?.id;
    if (other && !changed.rect) terrain.meshes?.changed(changed.layer);
    if (!changed || other || !terrain.clipmap) return;
    terrain.clipmap.changed(changed.rect);
    terrain.shadows.changed(changed.rect);
    terrain.draw();
  });
  terrain.canvas.addEventListener("webglcontextlost", (event) => {
    event.preventDefault();
    terrain.lost();
  });
  terrain.canvas.addEventListener("webglcontextrestored", show);
  new ResizeObserver(() => terrain.draw()).observe(terrain.canvas);
  window.kotaTerrain = terrain.forTests();
}
