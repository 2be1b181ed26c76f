/**
 * Whether there is time for shadows while the eye moves. At rest there always is.
 *
 * They are left out when frames with them take over 50 ms, and come back when frames without them
 * are so quick that, by what was measured of both, they would not.
 */
const SLOW_MS = 50, QUICK_MS = 40; // apart, so that it does not go back and forth
const RUN = 4; // frames of one kind in a row before they are judged

export class Pace {
  constructor() {
    this.isSlow = false;
    this.ms = { with: 0, without: 0 };
    this.run = { kind: "", count: 0 };
    this.ratio = 1.5; // of a frame's time with shadows to one without, as far as it is known
  }

  /** A frame in motion took so long. @param {number} ms @param {boolean} isShadowed */
  took(ms, isShadowed) {
    const kind = isShadowed ? "with" : "without", { run } = this;
    this.run = { kind, count: kind === run.kind ? run.count + 1 : 1 };
    if (this.run.count === 1) { // it has what the change cost
      this.ms[kind] = 0;
      return;
    }
    this.ms[kind] = this.ms[kind] ? 0.7 * this.ms[kind] + 0.3 * ms : ms;
    if (this.run.count < RUN) return;
    if (isShadowed && this.ms.with > SLOW_MS) this.isSlow = true;
    if (!isShadowed && this.ms.with && this.run.count === RUN) // of one place, as nearly as it gets
      this.ratio = Math.max(1.2, this.ms.with / this.ms.without);
    if (!isShadowed && this.ms.without * this.ratio < QUICK_MS) this.isSlow = false;
  }
}
