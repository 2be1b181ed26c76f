/**
 * The leaves of mesh layers' quadtrees over what is seen, coloured by level, in both views: where
 * ground is crowded they are small (text Q's figures). Shown while "quadtree" is ticked.
 */
import { setMarks } from "/web/marks.js";
import { tell } from "/web/state.js";

const OWNER = "leaves", WAIT_MS = 250;

/** Deeper is redder. */
function colorOfDepth(depth, deepest) {
  return `hsl(${Math.round(220 - 220 * depth / Math.max(deepest, 1))} 80% 60%)`;
}

/** A leaf's corners, seen from above. */
function ringOf([x0, y0, x1, y1], { origin, axes }) {
  return [[x0, y0], [x1, y0], [x1, y1], [x0, y1]].map(([x, y]) =>
    [0, 1].map((i) => origin[i] + x * axes[0][i] + y * axes[1][i]));
}

/** @param {{depth: number, quadtree: object}} stats of a mesh layer @returns {object[]} marks */
export function marksOf({ depth, quadtree }) {
  return quadtree.leaves.map((leaf) => ({ kind: "area", ring: ringOf(leaf.bounds, quadtree.frame),
    color: colorOfDepth(leaf.depth, depth) }));
}

class LeavesPart {
  constructor(kota, state) {
    this.kota = kota;
    this.state = state;
    this.work = new AbortController();
    for (const name of ["layersShown", "locale", "revision", "look", "moved"])
      state.on(name, () => this.soon());
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.show().catch(tell), WAIT_MS);
  }

  async show() {
    const { locale, look, layersShown } = this.state;
    this.work.abort();
    if (!locale || !layersShown.quadtree) {
      setMarks(OWNER, []);
      return;
    }
    this.work = new AbortController();
    const { signal } = this.work, half = look ? look.width_m / 2 : 0;
    const bounds = look && [look.x - half, look.y - half, look.x + half, look.y + half].join();
    const meshes = locale.layers.filter((layer) => layer.kind === "mesh");
    const all = await Promise.all(meshes.map(async ({ id }) => (await this.kota.get(
      `/v1/locales/${locale.id}/layers/${id}/stats?quadtree=true${bounds ? `&bounds=${bounds}` : ""}`,
      { signal, quiet: true })).json));
    if (!signal.aborted) setMarks(OWNER, all.flatMap(marksOf));
  }
}

/** @param {import("./kota.js").Kota} kota @param {typeof import("./state.js").state} state */
export function start(kota, state) {
  new LeavesPart(kota, state);
}
