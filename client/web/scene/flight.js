/**
 * Keys, mouse, wheel and fingers of the 3D view become motion of its camera.
 *
 *   W A S D  level flight; Q E  sink and rise; arrows  turn; Shift  four times as fast
 *   G        walks where the eye is, and flies again (walk.js); then W A S D are steps
 *   drag     turns; wheel  ahead along the view; a click (no drag)  calls onClick
 *   fingers  one turns, two move ahead by their distance
 *
 * Speed goes with the height above the ground, so that a metre and a mountain take as long.
 */
import { tell } from "/web/state.js";

const KEYS = { KeyW: [1, 0, 0], KeyS: [-1, 0, 0], KeyD: [0, 1, 0], KeyA: [0, -1, 0],
  KeyE: [0, 0, 1], KeyQ: [0, 0, -1] };
const TURNS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const TURN_SPEED = 1.1; // radians a second
const DRAG_TURN = 0.0045; // radians a pixel
const CLICK_PX = 4;

export class Flight {
  /**
   * @param {HTMLCanvasElement} canvas @param {import("./camera.js").Camera} camera
   * @param {import("./walk.js").Walk} walk
   * @param {{onMove: () => void, onClick: (pixel: number[], event: Event) => void,
   *          onPoint: (pixel: number[]|null) => void, height: () => number}} calls
   */
  constructor(canvas, camera, walk, calls) {
    this.canvas = canvas;
    this.walk = walk;
    this.camera = camera;
    this.calls = calls;
    this.held = new Set();
    this.fast = false;
    this.pointers = new Map();
    this.velocity = [0, 0];
    for (const [name, fn] of Object.entries({ keydown: this.#keydown, keyup: this.#keyup,
      blur: this.#blur, pointerdown: this.#down, pointermove: this.#drag, pointerup: this.#up,
      pointercancel: this.#up, pointerleave: this.#leave }))
      canvas.addEventListener(name, fn.bind(this));
    canvas.addEventListener("wheel", this.#wheel.bind(this), { passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  get isMoving() {
    return this.held.size > 0 || this.walk.isBusy;
  }

  get speed() {
    return Math.max(4, 0.9 * this.calls.height()) * (this.fast ? 4 : 1);
  }

  /** Moves for the keys that are held. @param {number} seconds since the last time */
  advance(seconds) {
    const go = [0, 0, 0], turn = [0, 0], before = [...this.camera.eye];
    for (const code of this.held) {
      KEYS[code]?.forEach((v, i) => { go[i] += v; });
      TURNS[code]?.forEach((v, i) => { turn[i] += v; });
    }
    const far = this.speed * seconds;
    this.camera.turn(turn[0] * TURN_SPEED * seconds, turn[1] * TURN_SPEED * seconds);
    if (this.walk.isOn) this.walk.step(seconds, go, this.fast);
    else this.camera.move(...go.map((v) => v * far));
    this.velocity = [0, 1].map((i) => (this.camera.eye[i] - before[i]) / Math.max(seconds, 1e-3));
  }

  #keydown(event) {
    this.fast = event.shiftKey;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.code === "Enter") {
      const box = this.canvas.getBoundingClientRect();
      this.calls.onClick([box.width / 2, box.height / 2], event);
    } else if (event.code === "KeyG") {
      this.walk.toggle().catch(tell);
    } else if (event.code in KEYS || event.code in TURNS) {
      this.held.add(event.code);
      this.calls.onMove();
    } else return;
    event.preventDefault();
  }

  #keyup(event) {
    this.fast = event.shiftKey;
    this.held.delete(event.code);
  }

  #blur() {
    this.held.clear();
  }

  #pixel(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  #down(event) {
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { at: this.#pixel(event), way: 0 });
  }

  #spread() {
    const [a, b] = [...this.pointers.values()];
    return Math.hypot(a.at[0] - b.at[0], a.at[1] - b.at[1]);
  }

  #drag(event) {
    const pixel = this.#pixel(event), pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      this.calls.onPoint(pixel);
      return;
    }
    const dx = pixel[0] - pointer.at[0], dy = pixel[1] - pointer.at[1];
    const before = this.pointers.size === 2 ? this.#spread() : 0;
    pointer.at = pixel;
    pointer.way += Math.hypot(dx, dy);
    if (this.pointers.size === 2 && !this.walk.isOn) this.#ahead((this.#spread() - before) / 150);
    else if (pointer.way > CLICK_PX) this.camera.turn(dx * DRAG_TURN, dy * DRAG_TURN);
    this.calls.onMove();
  }

  #up(event) {
    const pointer = this.pointers.get(event.pointerId), alone = this.pointers.size === 1;
    this.pointers.delete(event.pointerId);
    if (event.type === "pointerup" && pointer && alone && pointer.way <= CLICK_PX)
      this.calls.onClick(this.#pixel(event), event);
  }

  #leave() {
    this.calls.onPoint(null);
  }

  #wheel(event) {
    event.preventDefault();
    if (this.walk.isOn) return;
    const lines = event.deltaMode === 1 ? 30 : 1;
    this.#ahead(-Math.sign(event.deltaY) * Math.min(1, Math.abs(event.deltaY) * lines / 200));
    this.calls.onMove();
  }

  #ahead(seconds) {
    const far = this.speed * seconds;
    this.camera.forward.forEach((v, i) => { this.camera.eye[i] += far * v; });
  }
}
