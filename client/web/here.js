/**
 * The exact ground around what is looked at on the map, held in the page: a replica that follows the
 * daemon, for the height under the pointer. Where the view is too wide for one, or the daemon has no
 * kota_ground.wasm, there is none, and the map says what its blocks have.
 */
import { NotFoundError } from "/web/kota.js";

/** Samples of a replica, some 4 MB; a wider view has several of them in a pixel. */
const SAMPLES_MAX = 1 << 20;
/** Widths of the view that a replica reaches to each side of its middle. */
const REACH = 0.75;

export class Here {
  /** @param {import("./kota.js").Kota} kota @param {() => void} changed */
  constructor(kota, changed) {
    Object.assign(this, { kota, changed, locale: null, isMissing: false,
      held: null, // {ground, bounds, samples}
      opening: null }); // {control, bounds, samples}
  }

  /** The height that the daemon gives; NaN: no ground; undefined: it is not known here. */
  heightAt(x, y) {
    const { ground, bounds } = this.held ?? {};
    const isHeld = ground?.revision && x >= bounds[0] && y >= bounds[1] && x <= bounds[2] && y <= bounds[3];
    return isHeld ? ground.height(x, y) : undefined;
  }

  /** The view is there. @param {any} locale @param {{x: number, y: number, width_m: number}} look */
  async look(locale, look) {
    const [field, more] = locale?.layers.filter((layer) => layer.kind === "heightfield") ?? [];
    if (!field || more || this.isMissing) return this.close();
    const half = REACH * look.width_m, [sx, sy] = field.spacing;
    const samples = Math.min(2 * half / sx, field.cols) * Math.min(2 * half / sy, field.rows);
    if (samples > SAMPLES_MAX) return this.close();
    if (this.locale !== locale.id) this.close();
    const seen = look.width_m / 2, has = this.opening ?? this.held;
    if (has && has.samples <= 8 * samples && look.x - seen >= has.bounds[0] &&
        look.x + seen <= has.bounds[2] && look.y - seen >= has.bounds[1] &&
        look.y + seen <= has.bounds[3]) return;
    this.opening?.control.abort();
    const bounds = [look.x - half, look.y - half, look.x + half, look.y + half];
    const opening = this.opening = { control: new AbortController(), bounds, samples };
    this.locale = locale.id;
    try {
      const ground = await this.kota.replica(locale.id, { bounds, signal: opening.control.signal });
      if (this.opening !== opening) return ground.close();
      this.held?.ground.close();
      this.held = { ground, bounds, samples };
      this.changed();
    } catch (error) {
      this.isMissing ||= error instanceof NotFoundError && /kota_ground/.test(error.message);
    } finally {
      if (this.opening === opening) this.opening = null;
    }
  }

  /** When the height is that of a revision. */
  async caughtUp(revision) {
    await this.held?.ground.wait(revision);
  }

  close() {
    this.opening?.control.abort();
    this.held?.ground.close();
    Object.assign(this, { held: null, opening: null, locale: null });
  }
}
