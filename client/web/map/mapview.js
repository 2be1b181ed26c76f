/**
 * Where the map looks: its middle in the locale's frame, and pixels a metre. x runs right and y up,
 * so north is up. The same view as a matrix is an orthographic camera straight above the ground,
 * which is what a click sends as a picking ray.
 */

const MARGIN = 1.15; // of the whole, seen at once
const CELL_PIXELS_MAX = 160;

export class MapView {
  constructor() {
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.width = 1;
    this.height = 1;
    this.bounds = null;
    this.spacing = 1;
  }

  /** What can be looked at: bounds {min, max} of it, metres between samples. */
  limit(bounds, spacing) {
    this.bounds = bounds;
    this.spacing = spacing;
  }

  /** Pixels a metre at which all is seen. */
  get whole() {
    const { min, max } = this.bounds;
    return Math.min(this.width / (MARGIN * Math.max(max[0] - min[0], 1e-3)),
      this.height / (MARGIN * Math.max(max[1] - min[1], 1e-3)));
  }

  fit() {
    const { min, max } = this.bounds;
    this.x = (min[0] + max[0]) / 2;
    this.y = (min[1] + max[1]) / 2;
    this.scale = this.whole;
  }

  /** Keeps the ground within reach. */
  clamp() {
    if (!this.bounds) return;
    const { min, max } = this.bounds, most = Math.max(CELL_PIXELS_MAX / this.spacing, this.whole);
    this.scale = Math.min(Math.max(this.scale, this.whole / 4), most);
    this.x = Math.min(Math.max(this.x, min[0]), max[0]);
    this.y = Math.min(Math.max(this.y, min[1]), max[1]);
  }

  /** @returns {number[]} CSS pixels from the upper left */
  toScreen(x, y) {
    return [this.width / 2 + (x - this.x) * this.scale,
      this.height / 2 - (y - this.y) * this.scale];
  }

  /** @returns {number[]} metres */
  toGround(px, py) {
    return [this.x + (px - this.width / 2) / this.scale,
      this.y - (py - this.height / 2) / this.scale];
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
    this.clamp();
  }

  /** Keeps the ground under the pixel where it is. */
  zoomAt(px, py, factor) {
    const before = this.toGround(px, py);
    this.scale *= factor;
    this.clamp();
    const after = this.toGround(px, py);
    this.x += before[0] - after[0];
    this.y += before[1] - after[1];
    this.clamp();
  }

  /** Metres from the left edge to the right. */
  get widthM() {
    return this.width / this.scale;
  }

  /**
   * What turns clip space (OpenGL's: depth from -1, high above, to 1, far below) into the frame.
   * @returns {number[]} column-major
   */
  inverseViewProjection() {
    const z = this.bounds, air = 1000 + (z.max[2] - z.min[2]);
    const top = z.max[2] + air, bottom = z.min[2] - air;
    return [this.width / 2 / this.scale, 0, 0, 0, 0, this.height / 2 / this.scale, 0, 0,
      0, 0, (bottom - top) / 2, 0, this.x, this.y, (bottom + top) / 2, 1];
  }
}
