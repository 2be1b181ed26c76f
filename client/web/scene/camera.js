/**
 * The eye of the 3D view: its position, what it sees, and how keys, mouse and fingers move it.
 *
 * Approach: position in the locale's frame (metres, z up) as doubles, a heading (anticlockwise from
 * +x) and a pitch; never a roll, so that "up" on the picture is up. What goes to the graphics card
 * is relative to the eye, so that large coordinates lose nothing in float32. A pixel's ray is the
 * one that POST …/pick makes of {eye, target, up, fov_y_deg}, the viewport and the pixel.
 */

export const FOV_Y_DEG = 60;
const PITCH_MAX = Math.PI / 2 - 0.001;

export class Camera {
  constructor() {
    this.eye = [0, 0, 100];
    this.heading = Math.PI / 4;
    this.pitch = -0.4;
  }

  /** @returns {number[]} the unit vector that it looks along */
  get forward() {
    const c = Math.cos(this.pitch);
    return [c * Math.cos(this.heading), c * Math.sin(this.heading), Math.sin(this.pitch)];
  }

  /** @returns {number[]} the unit vector to the right of the picture, level */
  get right() {
    return [Math.sin(this.heading), -Math.cos(this.heading), 0];
  }

  /** @returns {number[]} the unit vector to the top of the picture */
  get up() {
    const [a, b] = [this.right, this.forward];
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  }

  /** @param {number[]} eye @param {number[]} target another point */
  look(eye, target) {
    const d = target.map((t, i) => t - eye[i]), level = Math.hypot(d[0], d[1]);
    this.eye = [...eye];
    if (level > 0) this.heading = Math.atan2(d[1], d[0]);
    this.pitch = Math.max(-PITCH_MAX, Math.min(PITCH_MAX, Math.atan2(d[2], level)));
  }

  turn(heading, pitch) {
    this.heading = (this.heading + heading) % (2 * Math.PI);
    this.pitch = Math.max(-PITCH_MAX, Math.min(PITCH_MAX, this.pitch + pitch));
  }

  /** Moves along its own axes: ahead (level), to the right, up; metres. */
  move(ahead, right, up) {
    const r = this.right;
    this.eye[0] += ahead * -r[1] + right * r[0];
    this.eye[1] += ahead * r[0] + right * r[1];
    this.eye[2] += up;
  }

  /** @returns {{eye: number[], target: number[], up: number[], fov_y_deg: number}} as pick wants */
  forPick() {
    const f = this.forward;
    return { eye: [...this.eye], target: this.eye.map((e, i) => e + 100 * f[i]),
      up: this.up, fov_y_deg: FOV_Y_DEG };
  }

  /** @returns {number[]} the direction through a pixel; [0, 0] is the upper left corner */
  ray(pixel, viewport) {
    const t = Math.tan(FOV_Y_DEG * Math.PI / 360);
    const x = (2 * pixel[0] / viewport[0] - 1) * t * viewport[0] / viewport[1];
    const y = (1 - 2 * pixel[1] / viewport[1]) * t;
    const [f, r, u] = [this.forward, this.right, this.up];
    const d = f.map((v, i) => v + x * r[i] + y * u[i]), length = Math.hypot(...d);
    return d.map((v) => v / length);
  }

  /**
   * View and projection for points relative to the eye, column-major.
   * @param {number} aspect width by height @param {number} near @param {number} far metres
   * @returns {Float32Array} of 16
   */
  matrix(aspect, near, far) {
    const s = 1 / Math.tan(FOV_Y_DEG * Math.PI / 360);
    const [f, r, u] = [this.forward, this.right, this.up];
    const a = (far + near) / (far - near), b = -2 * far * near / (far - near), m = [];
    for (let i = 0; i < 3; i++) m.push(s / aspect * r[i], s * u[i], a * f[i], f[i]);
    m.push(0, 0, b, 0);
    return new Float32Array(m);
  }

  /** From a point of the picture, (-1..1, -1..1, 1, 1), to the direction through it, column-major. */
  rays(aspect) {
    const t = Math.tan(FOV_Y_DEG * Math.PI / 360), [f, r, u] = [this.forward, this.right, this.up];
    return new Float32Array([...r.map((v) => v * t * aspect), 0, ...u.map((v) => v * t), 0, ...f, 0,
      0, 0, 0, 1]);
  }
}

/**
 * The six planes [a, b, c, d] of a view; a point is inside where a·x + b·y + c·z + d >= 0.
 * @param {Float32Array} m column-major @returns {number[][]}
 */
export function planesOf(m) {
  const row = (i) => [m[i], m[4 + i], m[8 + i], m[12 + i]], w = row(3), planes = [];
  for (let i = 0; i < 3; i++) {
    const r = row(i);
    planes.push(w.map((v, k) => v + r[k]), w.map((v, k) => v - r[k]));
  }
  return planes;
}

/**
 * Is a box outside of one of the planes? Then it is not seen.
 * @param {number[][]} planes @param {number[]} min @param {number[]} max
 */
export function isOutside(planes, min, max) {
  return planes.some(([a, b, c, d]) =>
    a * (a > 0 ? max[0] : min[0]) + b * (b > 0 ? max[1] : min[1]) +
    c * (c > 0 ? max[2] : min[2]) + d < 0);
}
