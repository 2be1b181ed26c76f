/**
 * Walking in the first person: the keys give a velocity, POST …/move says where that leads, and the
 * eye follows. One question is under way at a time; what passed until its answer is the next `dt`.
 */
import { upAt } from "/web/frames.js";
import { tell } from "/web/state.js";

const CAPSULE = [0.3, 1.8]; // radius and whole height, metres
const EYE_M = 0.7; // above the middle
const SPEED = 4, RUN = 2.5; // metres a second, and how many times as fast
const GRAVITY = 9.81;
const DT_MAX_S = 0.25;
const RULES = { slope_max_deg: 50, step_up: 0.5 };
const SNAP_DOWN_M = 0.5;

export class Walk {
  /**
   * @param {import("../kota.js").Kota} kota @param {typeof import("../state.js").state} state
   * @param {import("./camera.js").Camera} camera @param {() => void} again asks for a frame
   */
  constructor(kota, state, camera, again) {
    Object.assign(this, { kota, state, camera, again });
    this.feet = null; // null: it flies; else {middle, fall, grounded}
    this.passed = 0;
    this.asking = this.isStirred = false;
    this.button = Object.assign(document.createElement("button"), { id: "walk",
      textContent: "Walk", hidden: true, title: "in the first person, by W A S D (G)" });
    this.button.addEventListener("click", () => this.toggle().catch(tell));
    document.getElementById("layers-shown").append(this.button);
    for (const name of ["changed", "moved"]) state.on(name, () => this.#stir());
    for (const name of ["locale", "view"]) state.on(name, () => this.stop());
  }

  get isOn() {
    return this.feet !== null;
  }

  /** Would a step change anything: in the air, or on ground that has just changed? */
  get isBusy() {
    return this.isOn && (!this.feet.grounded || this.isStirred || this.asking);
  }

  #stir() {
    if (!this.isOn) return;
    this.isStirred = true;
    this.again();
  }

  /** Onto the floor below the eye, or into the air. */
  async toggle() {
    const { locale } = this.state, { eye } = this.camera;
    if (this.isOn || !locale) {
      this.stop();
      return;
    }
    if (upAt(locale, eye)[2] < 0.999)
      throw new Error("Walking needs gravity along -z; here it goes another way.");
    const { floor } = await this.kota.contact(locale.id, [[...eye]], { quiet: true })
      .then(({ results }) => results[0]);
    if (!floor) throw new Error("There is no floor below the eye to walk on.");
    const [x, y, z] = floor.point;
    this.feet = { middle: [x, y, z + CAPSULE[1] / 2 + 0.01], fall: 0, grounded: false };
    this.#say();
    this.#look();
    this.again();
    document.getElementById("terrain").focus();
  }

  stop() {
    this.feet = null;
    this.passed = 0;
    this.#say();
    this.again();
  }

  #say() {
    this.button.hidden = this.state.view !== "3d";
    this.button.setAttribute("aria-pressed", String(this.isOn));
  }

  #look() {
    const [x, y, z] = this.feet.middle;
    this.camera.eye = [x, y, z + EYE_M];
  }

  /**
   * @param {number} seconds since the last frame @param {number[]} go ahead and to the right, by keys
   * @param {boolean} fast
   */
  step(seconds, go, fast) {
    const speed = SPEED * (fast ? RUN : 1) / Math.max(1, Math.hypot(go[0], go[1]));
    const [rx, ry] = this.camera.right;
    this.wish = [go[0] * -ry + go[1] * rx, go[0] * rx + go[1] * ry].map((v) => v * speed);
    const isStill = this.wish[0] === 0 && this.wish[1] === 0 && this.feet.grounded;
    this.passed = isStill && !this.asking ? 0 : this.passed + seconds;
    if (this.asking || (isStill && !this.isStirred)) return;
    this.#ask().catch((error) => {
      this.stop();
      tell(error);
    });
  }

  async #ask() {
    const { feet } = this, dt = Math.min(DT_MAX_S, Math.max(this.passed, 0.005));
    this.passed = 0;
    this.isStirred = false;
    this.asking = true;
    try {
      const { results: [item] } = await this.kota.move(this.state.locale.id, [{
        shape: { capsule: CAPSULE }, from: feet.middle, velocity: [...this.wish, feet.fall], dt,
        ...RULES, snap_down: feet.grounded ? SNAP_DOWN_M : 0 }], { quiet: true });
      if (this.feet !== feet) return; // it flies by now
      const sunk = (item.to[2] - feet.middle[2]) / dt; // less than it fell: something is below
      feet.fall = item.grounded ? 0 : Math.max(feet.fall, Math.min(sunk, 0)) - GRAVITY * dt;
      feet.grounded = item.grounded;
      feet.middle = item.to;
      this.#look();
    } finally {
      this.asking = false;
    }
    this.again();
  }
}
