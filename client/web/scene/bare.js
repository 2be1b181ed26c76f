/**
 * Takes the place of field and clipmap where a locale has only meshes: nothing is fetched, nothing is
 * ground, and the camera still has a place to fly in.
 */

/** The space of a locale's bounds, as far as the 3D view asks a field. */
export class BareField {
  /** @param {object} locale with bounds */
  constructor(locale) {
    const { min, max } = locale.bounds;
    this.locale = locale.id;
    this.split = locale.triangulation;
    this.origin = [min[0], min[1]];
    this.extent = [0, 1].map((i) => Math.max(1, max[i] - min[i]));
    this.spacing = [1, 1];
    this.last = this.extent;
    [this.low, this.high] = [min[2], max[2]];
  }

  place(level, i, j) {
    return [this.origin[0] + i * 2 ** level, this.origin[1] + j * 2 ** level];
  }
}

/**
 * The box of what stands on the ground or is it; of a locale with only ceilings, of those.
 * @param {object} locale with bounds
 * @returns {{min: number[], max: number[]}}
 */
export function groundBounds(locale) {
  const boxes = locale.layers.filter((l) => l.role !== "ceiling" && l.bounds).map((l) => l.bounds);
  if (!boxes.length) return locale.bounds;
  return { min: [0, 1, 2].map((i) => Math.min(...boxes.map((box) => box.min[i]))),
    max: [0, 1, 2].map((i) => Math.max(...boxes.map((box) => box.max[i]))) };
}

/** No ground at all. */
export class BareGround {
  constructor() {
    this.levels = this.shown = this.drawn = [];
    this.bytes = 0;
    this.counters = { uploadedBytes: 0, uploadedSamples: 0, steps: 0, blocksDrawn: 0,
      blocksCulled: 0, triangles: 0 };
  }

  update() {
    return { wanted: new Map(), whole: true, fading: false };
  }

  refine() {
    return { wanted: new Map(), isWhole: true };
  }

  heightAt() {
    return NaN;
  }

  draw() {}

  changed() {}

  release() {}
}
