/**
 * Draws a heightfield on the map from the blocks of the tile cache, level by level.
 *
 * The level is the one whose cells are about a device pixel. What of it has not come is shown from
 * the nearest coarser level that has; the coarsest block is always asked for, so there is soon
 * something everywhere. Blocks that are no longer in sight are not waited for, which aborts their
 * fetches. Pictures are made of blocks within a budget per frame and kept, at most so many.
 *
 * Invariant: a picture belongs to the very array of heights that it was made of.
 */
import { palettes } from "/web/palette.js";
import { contours, niceStep, shade } from "/web/shade.js";
import { keyOf } from "/web/tilecache.js";

const CELLS = 256;
const PICTURES_MAX = 160; // 256 KiB each, and as much for contours
const BUDGET_MS = 12;
const VECTOR_PIXELS = 1.6; // cells larger than this have contours drawn as lines, not in pictures
const CRISP_PIXELS = 8;
const GRID_PIXELS = 14;
const RETRY_MS = 2000;
const LINES_ACROSS = 12;

export class Ground {
  /**
   * @param {import("./tilecache.js").TileCache} cache
   * @param {{again: () => void, failed: (error: Error) => void, came: () => void}} calls
   */
  constructor(cache, calls) {
    this.cache = cache;
    this.calls = calls;
    this.pictures = new Map();
    this.waiting = new Map(); // key → AbortController of what is asked for
    this.retryAt = 0;
    this.locale = null;
    this.layer = null;
    this.interval = 0;
    this.level = 0;
  }

  /** Looks at another field. @param {object|null} locale @param {object|null} layer */
  open(locale, layer) {
    this.rest();
    this.pictures.clear();
    this.retryAt = 0;
    this.locale = locale;
    this.layer = layer;
    if (!layer) return;
    const [low, high] = layer.bounds ? [layer.bounds.min[2], layer.bounds.max[2]] : [0, 1];
    Object.assign(this, { low, high });
    this.cells = [layer.cols - 1, layer.rows - 1];
    this.top = Math.max(0, Math.ceil(Math.log2(Math.max(...this.cells) / CELLS)));
  }

  /** Waits for nothing any more. */
  rest() {
    for (const control of this.waiting.values()) control.abort();
    this.waiting.clear();
  }

  /** Asks at once for what could not be had. */
  retry() {
    this.retryAt = 0;
    this.calls.again();
  }

  place(level, column, row) {
    return { locale: this.locale.id, layer: this.layer.id, level, column, row };
  }

  /** Height of the nearest sample that is here, undefined when none is. */
  heightNear(x, y) {
    if (!this.layer) return undefined;
    const [ox, oy] = this.layer.origin, [sx, sy] = this.layer.spacing;
    for (let level = this.level; level <= this.top; level++) {
      const step = 2 ** level, c = Math.round((x - ox) / sx / step);
      const r = Math.round((y - oy) / sy / step);
      if (c < 0 || r < 0 || c * step > this.cells[0] || r * step > this.cells[1]) return undefined;
      const column = Math.floor(c / CELLS), row = Math.floor(r / CELLS);
      const heights = this.cache.peek(this.place(level, column, row))?.heights;
      if (heights) return heights[(r - row * CELLS) * (CELLS + 1) + c - column * CELLS];
    }
    return undefined;
  }

  /** Blocks of a level that the view touches, the middle first. */
  seen(view, level) {
    const [ox, oy] = this.layer.origin, [sx, sy] = this.layer.spacing, step = 2 ** level;
    const [x0, y1] = view.toGround(0, 0), [x1, y0] = view.toGround(view.width, view.height);
    const range = (low, high, origin, spacing, cells) => [
      Math.max(0, Math.floor((low - origin) / spacing / step / CELLS)),
      Math.min(Math.ceil(cells / step / CELLS) - 1,
        Math.floor((high - origin) / spacing / step / CELLS))];
    const [c0, c1] = range(x0, x1, ox, sx, this.cells[0]);
    const [r0, r1] = range(y0, y1, oy, sy, this.cells[1]);
    const list = [];
    for (let row = r0; row <= r1; row++)
      for (let column = c0; column <= c1; column++) list.push([column, row]);
    const far = ([c, r]) => Math.hypot(c - (c0 + c1) / 2, r - (r0 + r1) / 2);
    return list.sort((a, b) => far(a) - far(b));
  }

  /** Asks for what is missing or stale, and stops waiting for what is not wanted. */
  ask(places) {
    const wanted = new Set(places.map((wish) => wish.key));
    for (const [key, control] of this.waiting) {
      if (wanted.has(key)) continue;
      control.abort();
      this.waiting.delete(key);
    }
    if (performance.now() < this.retryAt) return;
    for (const { key, place, urgency } of places) {
      const held = this.cache.peek(place);
      if ((held && !held.stale) || this.waiting.has(key)) continue;
      const control = new AbortController();
      this.waiting.set(key, control);
      this.cache.load(place, { signal: control.signal, urgency }).then(
        () => this.#came(key, control),
        (error) => this.#failed(key, control, error));
    }
  }

  #came(key, control) {
    if (this.waiting.get(key) === control) this.waiting.delete(key);
    this.calls.came();
    this.calls.again();
  }

  #failed(key, control, error) {
    if (this.waiting.get(key) === control) this.waiting.delete(key);
    if (control.signal.aborted) return;
    if (performance.now() >= this.retryAt) setTimeout(() => this.calls.again(), RETRY_MS + 10);
    this.retryAt = performance.now() + RETRY_MS;
    this.calls.failed(error);
  }

  /** Device pixels of a cell of the level, along the shorter side. */
  cellPixels(view, level) {
    return Math.min(...this.layer.spacing) * 2 ** level * view.scale;
  }

  levelOf(view, ratio) {
    const ideal = Math.round(Math.log2(1 / (this.cellPixels(view, 0) * ratio)));
    return Math.min(this.top, Math.max(0, ideal));
  }

  /** Metres between contours: fewer where more is seen. */
  intervalOf(view) {
    const whole = Math.max(...this.cells.map((count, i) => count * this.layer.spacing[i]));
    const part = Math.min(1, view.widthM / whole);
    return niceStep(Math.max(1e-3, (this.high - this.low) / LINES_ACROSS * part ** 0.8));
  }

  /** The picture of a block that is here: made now if there is time, else an older one or null. */
  picture(place, heights, style, deadline) {
    const key = keyOf(place), had = this.pictures.get(key);
    if (had) {
      this.pictures.delete(key);
      this.pictures.set(key, had);
      if (had.heights === heights && had.style === style.name) return had;
    }
    if (performance.now() > deadline) {
      this.unfinished = true;
      return had ?? null;
    }
    const canvas = this.#paint(place, heights, style);
    const made = { heights, style: style.name, canvas, lines: null };
    this.pictures.delete(key);
    this.pictures.set(key, made);
    if (this.pictures.size > PICTURES_MAX) this.pictures.delete(this.pictures.keys().next().value);
    return made;
  }

  #paint(place, heights, style) {
    const canvas = new OffscreenCanvas(CELLS, CELLS), context = canvas.getContext("2d");
    const step = 2 ** place.level;
    context.putImageData(shade(heights, { ...style, low: this.low, high: this.high,
      spacing: this.layer.spacing.map((s) => s * step) }), 0, 0);
    if (style.interval) {
      const lines = this.#lines(heights, style, (x, y) => [x, CELLS - y]);
      strokeLines(context, lines, { minor: [0.8, 0.45], major: [1.1, 0.8] });
    }
    return canvas;
  }

  /** Contours as paths, every fifth line in `major`, those over dark tints in `light`. */
  #lines(heights, style, to) {
    const made = () => ({ minor: new Path2D(), major: new Path2D() });
    const lines = { dark: made(), light: made() };
    const lightBelow = this.low + style.palette.darkShare * (this.high - this.low);
    contours(heights, style.interval, style.triangulation, (x0, y0, x1, y1, k) => {
      const path = (k * style.interval < lightBelow ? lines.light : lines.dark)[
        k % 5 ? "minor" : "major"];
      path.moveTo(...to(x0, y0));
      path.lineTo(...to(x1, y1));
    });
    return lines;
  }

  /**
   * Draws what is here and asks for the rest.
   * @param {CanvasRenderingContext2D} context in CSS pixels
   * @param {import("./mapview.js").MapView} view
   * @param {{hillshade: boolean, contours: boolean, holes: boolean}} shown @param {number} ratio
   *   device pixels a CSS pixel
   * @param {string} palette
   */
  draw(context, view, shown, ratio, palette) {
    this.level = this.levelOf(view, ratio);
    this.interval = shown.contours ? this.intervalOf(view) : 0;
    this.unfinished = false;
    const pixels = this.cellPixels(view, this.level), vector = pixels > VECTOR_PIXELS;
    const painted = vector ? 0 : this.interval;
    const style = { hillshade: shown.hillshade, triangulation: this.locale.triangulation,
      interval: painted, palette: palettes[palette],
      name: `${shown.hillshade} ${painted} ${palette}` };
    const seen = this.seen(view, this.level), deadline = performance.now() + BUDGET_MS;
    this.ask(this.#wishes(seen));
    context.imageSmoothingEnabled = pixels < CRISP_PIXELS;
    if (shown.holes) this.hatch ??= hatching(context);
    for (const [column, row] of seen)
      this.#drawBlock(context, view, { column, row, style, deadline, holes: shown.holes, ratio });
    if (vector && shown.contours)
      this.#drawLines(context, view, { seen, deadline, palette: style.palette });
    if (this.level === 0 && pixels > GRID_PIXELS) this.#drawGrid(context, view);
    if (this.unfinished) this.calls.again();
  }

  /** The level's blocks, and coarser ones that are soon there. */
  #wishes(seen) {
    const wishes = new Map();
    const wish = (level, column, row, urgency) => {
      const place = this.place(level, column, row), key = keyOf(place);
      if (!wishes.has(key)) wishes.set(key, { key, place, urgency });
    };
    wish(this.top, 0, 0, 3);
    seen.forEach(([column, row], i) => wish(this.level, column, row, 2 - i / (seen.length + 1)));
    return [...wishes.values()];
  }

  /** The block, or that part of the nearest coarser one which covers it. */
  #drawBlock(context, view, what) {
    for (let up = 0; this.level + up <= this.top; up++) {
      const column = what.column >> up, row = what.row >> up;
      const place = this.place(this.level + up, column, row), block = this.cache.peek(place);
      if (!block?.heights) continue;
      const picture = this.picture(place, block.heights, what.style, what.deadline);
      if (!picture) continue;
      const part = CELLS / 2 ** up, [x, y, w, h] = this.#rect(view, what);
      if (what.holes) this.#drawHatch(context, view, x, y, w, h);
      context.drawImage(picture.canvas, (what.column - (column << up)) * part,
        CELLS - ((what.row - (row << up)) + 1) * part, part, part, x, y, w, h);
      return;
    }
  }

  /** A block of this.level on the canvas, on whole device pixels, so that there are no seams. */
  #rect(view, { column, row, ratio }) {
    const [ox, oy] = this.layer.origin, [sx, sy] = this.layer.spacing;
    const side = CELLS * 2 ** this.level, snap = (value) => Math.round(value * ratio) / ratio;
    const corner = (c, r) => view.toScreen(ox + c * side * sx, oy + r * side * sy).map(snap);
    const [x0, y1] = corner(column, row), [x1, y0] = corner(column + 1, row + 1);
    return [x0, y0, x1 - x0, y1 - y0];
  }

  /** Hatching under a block, within the level's cells: it is seen through the holes. */
  #drawHatch(context, view, x, y, w, h) {
    const [ox, oy] = this.layer.origin, [sx, sy] = this.layer.spacing;
    const step = 2 ** this.level, [w0, h0] = this.cells.map((n) => Math.floor(n / step) * step);
    const [left, bottom] = view.toScreen(ox, oy);
    const [right, top] = view.toScreen(ox + w0 * sx, oy + h0 * sy);
    const x0 = Math.max(x, left, 0), y0 = Math.max(y, top, 0);
    const x1 = Math.min(x + w, right, view.width), y1 = Math.min(y + h, bottom, view.height);
    if (x1 <= x0 || y1 <= y0) return;
    context.fillStyle = this.hatch;
    context.fillRect(x0, y0, x1 - x0, y1 - y0);
  }

  /** Contours of the finest level as lines, for blocks that are drawn larger than they are. */
  #drawLines(context, view, { seen, deadline, palette }) {
    for (const [column, row] of seen) {
      const place = this.place(this.level, column, row);
      const heights = this.cache.peek(place)?.heights, picture = this.pictures.get(keyOf(place));
      if (!heights || picture?.heights !== heights) continue;
      if (picture.lines?.interval !== this.interval || picture.lines.palette !== palette) {
        if (performance.now() > deadline) {
          this.unfinished = true;
          continue;
        }
        const { interval, locale: { triangulation }, layer: { spacing: [sx, sy] } } = this;
        picture.lines = { interval, palette, ...this.#lines(heights,
          { interval, triangulation, palette }, (x, y) => [x * sx, y * sy]) };
      }
      this.#strokeLines(context, view, column, row, picture.lines);
    }
  }

  #strokeLines(context, view, column, row, lines) {
    const [ox, oy] = this.layer.origin, [sx, sy] = this.layer.spacing;
    const [x, y] = view.toScreen(ox + column * CELLS * sx, oy + row * CELLS * sy);
    context.save();
    context.transform(view.scale, 0, 0, -view.scale, x, y);
    strokeLines(context, lines, { minor: [1 / view.scale, 0.5], major: [1.6 / view.scale, 0.85] });
    context.restore();
  }

  /** The cells' borders, where they can be distinguished. */
  #drawGrid(context, view) {
    const [ox, oy] = this.layer.origin, [sx, sy] = this.layer.spacing;
    const [x0, y1] = view.toGround(0, 0), [x1, y0] = view.toGround(view.width, view.height);
    const inside = (round, metres, i) => Math.min(Math.max(
      round((metres - this.layer.origin[i]) / this.layer.spacing[i]), 0), this.cells[i]);
    const c0 = inside(Math.ceil, x0, 0), c1 = inside(Math.floor, x1, 0);
    const r0 = inside(Math.ceil, y0, 1), r1 = inside(Math.floor, y1, 1);
    const [left, top] = view.toScreen(Math.max(x0, ox), Math.min(y1, oy + this.cells[1] * sy));
    const [right, bottom] = view.toScreen(Math.min(x1, ox + this.cells[0] * sx), Math.max(y0, oy));
    context.beginPath();
    for (let c = c0; c <= c1; c++) {
      const [x] = view.toScreen(ox + c * sx, 0);
      context.moveTo(x, top);
      context.lineTo(x, bottom);
    }
    for (let r = r0; r <= r1; r++) {
      const [, y] = view.toScreen(0, oy + r * sy);
      context.moveTo(left, y);
      context.lineTo(right, y);
    }
    context.strokeStyle = "rgba(0, 0, 0, 0.18)";
    context.lineWidth = 1;
    context.stroke();
  }
}

/** Draws paths of contours. @param {Record<string, number[]>} pens kind → width, opacity */
function strokeLines(context, lines, pens) {
  for (const [tone, colour] of [["dark", "60, 40, 20"], ["light", "255, 255, 255"]]) {
    for (const [kind, [width, opacity]] of Object.entries(pens)) {
      context.strokeStyle = `rgba(${colour}, ${opacity})`;
      context.lineWidth = width;
      context.stroke(lines[tone][kind]);
    }
  }
}

/** A pattern for where there is no ground. */
function hatching(context) {
  const canvas = new OffscreenCanvas(8, 8), pen = canvas.getContext("2d");
  pen.fillStyle = "rgba(120, 40, 90, 0.25)";
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = "rgba(190, 60, 130, 0.8)";
  pen.lineWidth = 1.5;
  for (const shift of [-8, 0, 8]) {
    pen.moveTo(shift - 1, 9);
    pen.lineTo(shift + 9, -1);
  }
  pen.stroke();
  return context.createPattern(canvas, "repeat");
}
