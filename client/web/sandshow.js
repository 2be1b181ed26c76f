/**
 * How the sand is shown: the picture of a patch's states, its bodies over the ground, its ledger in
 * words, and the barrel that the page can make by itself. No calls, no state.
 */
import { turned } from "/web/poses.js";
import { makeSvg, shortNumber, shortTime } from "/web/widgets.js";

export const ended = ["written", "discarded", "failed"];

// ---- the state machine --------------------------------------------------------------------------

const width = 78, height = 30;
const places = { filling: [1, 1], settling: [93, 1], active: [185, 1], resting: [277, 1],
  written: [277, 75], discarded: [185, 75], failed: [93, 75] };
// From the right edge of one to the left of the next, and so on; the arrow is at the end.
const arrows = ["M79 16H91", "M171 16H183", "M263 12H275", "M277 20H265", "M316 31V73"];

/** The states up to the end; a late subscriber missed the first ones, but they occurred. */
const order = ["filling", "settling", "active", "resting", "written"];

/**
 * Draws the states; the one that is now and those that were are marked by their class.
 * @param {SVGElement} svg of viewBox 0 0 356 106
 * @param {{state: string, at: number}[]} history states as they came, with seconds
 */
export function drawStates(svg, history) {
  const now = history.at(-1)?.state, been = new Map();
  for (const state of order.slice(0, order.indexOf(history[0]?.state) + 1)) been.set(state, "");
  for (const { state, at } of history) been.set(state, `at ${at.toFixed(1)} s`);
  const parts = arrows.map((d) => makeSvg("path", { d, "marker-end": "url(#sand-tip)" }));
  for (const [name, [x, y]] of Object.entries(places)) {
    const kind = name === now ? "now" : been.has(name) ? "been" : "";
    const group = makeSvg("g", { class: `${kind} ${name}`, "data-state": name });
    const words = makeSvg("text", { x: x + width / 2, y: y + 13 });
    const time = makeSvg("text", { x: x + width / 2, y: y + 25, class: "time" });
    words.textContent = name;
    time.textContent = been.get(name) ?? "";
    group.append(makeSvg("rect", { x, y, width, height, rx: 5 }), words, time);
    parts.push(group);
  }
  const tip = makeSvg("marker", { id: "sand-tip", viewBox: "0 0 6 6", refX: 5, refY: 3,
    markerWidth: 6, markerHeight: 6, orient: "auto" }, makeSvg("path", { d: "M0 0L6 3L0 6Z" }));
  const aside = makeSvg("text", { x: 1, y: 66, class: "time" });
  aside.textContent = "from any of them, on request or for a reason:";
  svg.replaceChildren(makeSvg("defs", {}, tip), ...parts, aside);
  svg.setAttribute("aria-label", now ? `The patch is ${now}` : "No patch");
}

// ---- bodies -------------------------------------------------------------------------------------

/** Three great circles of a ball. */
function ballMarks({ position, radius }) {
  const angles = Array.from({ length: 25 }, (_, i) => i * Math.PI / 12);
  return [0, 1, 2].map((axis) => ({ kind: "line", color: "accent", points: angles.map((angle) => {
    const at = [...position];
    at[(axis + 1) % 3] += radius * Math.cos(angle);
    at[(axis + 2) % 3] += radius * Math.sin(angle);
    return at;
  }) }));
}

/** The box around a model, as it lies, in lines; a point where the model is not known. */
export function bodyMarks(pose, model) {
  if (pose.radius) return ballMarks(pose);
  if (!model) return [{ kind: "point", at: pose.position, color: "accent" }];
  const { min, max } = model.bounds;
  const corner = (i) => turned(pose.orientation,
    [i & 1 ? max[0] : min[0], i & 2 ? max[1] : min[1], i & 4 ? max[2] : min[2]])
    .map((value, axis) => value + pose.position[axis]);
  const lines = [[0, 1, 3, 2, 0, 4, 5, 7, 6, 4], [1, 5], [2, 6], [3, 7]];
  return lines.map((line) => ({ kind: "line", points: line.map(corner), color: "accent" }));
}

/** The square of a patch. */
export function patchMark(patch) {
  const [x, y] = patch.center, [w, d] = patch.size.map((side) => side / 2);
  const color = { written: "good", failed: "bad", discarded: "quiet" }[patch.state] ?? "other";
  return { kind: "area", color, fill: !ended.includes(patch.state),
    ring: [[x - w, y - d], [x + w, y - d], [x + w, y + d], [x - w, y + d]] };
}

// ---- words --------------------------------------------------------------------------------------

/** @param {object} patch @returns {[string, string][]} rows of what it is and does */
export function patchRows(patch) {
  const speed = Math.max(0, ...patch.bodies.map((body) => Math.hypot(...body.velocity)));
  const material = patch.material.density ? "a material of its own" : patch.material;
  const t = patch.timings, stepMs = t.integrate_ms + t.grid_ms + t.force_ms + t.depth_ms;
  const rows = [["Granules", `${shortNumber(patch.granules)} of ${material}, ` +
      `${shortNumber(patch.granule_diameter)} m, ${patch.scale}`],
    ["Asleep", `${shortNumber(patch.asleep)} of ${shortNumber(patch.granules)}`],
    ["Square", `${shortNumber(patch.size[0])} × ${shortNumber(patch.size[1])} m, ` +
      `${shortNumber(patch.depth)} m deep`],
    ["Simulated", `${shortTime(patch.time_s)} in ${shortNumber(patch.steps)} steps`],
    ["A step takes", stepMs > 0 ? shortTime(stepMs / 1000) : "not measured"],
    ["Energy of motion", `${shortNumber(patch.kinetic_energy_j)} J`],
    ["Bodies", patch.bodies.length ?
      `${patch.bodies.length}, the fastest at ${shortNumber(speed)} m/s` : "none"]];
  if (patch.closing) rows.push(["Closing", "it is written as soon as it rests"]);
  if (patch.capped) rows.push(["Capped", "it was still moving when its time was over"]);
  if (patch.reason) rows.push(["Reason", patch.reason]);
  return rows;
}

/** @param {object|null} ledger @returns {[string, string, string][]} rows with an explanation */
export function ledgerRows(ledger) {
  if (!ledger) return [["Ledger", "comes when the patch is written"]];
  const volume = (name) => `${shortNumber(ledger[name])} m³`;
  return [["Before", volume("volume_before_m3"), "granules and pores, above the bed"],
    ["After", volume("volume_after_m3"), "the same when all was still"],
    ["Moved", volume("moved_m3"), "dug in one place and heaped in another"],
    ["Pressed together", volume("compacted_m3"), "dug less heaped, as measured"],
    ["Lost", volume("lost_m3"), "dug less heaped, as it is written"]];
}

/** What has been written, in a sentence. */
export function resultWords(patch) {
  if (patch.state === "failed") return `It failed: ${patch.reason}. The ground is as it was.`;
  if (patch.state === "discarded") return "It was thrown away. The ground is as it was.";
  if (patch.state !== "written") return "";
  if (!patch.edit_rect) return `Nothing had moved: revision ${patch.revision} is as before.`;
  const [c0, r0, cols, rows] = patch.edit_rect;
  return `Written back as revision ${patch.revision}: ${cols} × ${rows} samples at ${c0}, ${r0} ` +
    `of ${patch.layer} may have changed.`;
}

/** Granules that a patch needs, about: a dense packing holds 2.97 in a cube of their diameter. */
export function granuleCount(size, depth, diameter) {
  return Math.round(2.97 * size[0] * size[1] * depth / diameter ** 3);
}

// ---- the ball -----------------------------------------------------------------------------------

/** A ball of triangles around the origin. @param {number} radius @returns {string} OBJ */
export function ballObj(radius) {
  const rings = 12, sides = 24, lines = [];
  for (let i = 0; i <= rings; i++) {
    const [z, r] = [Math.cos(Math.PI * i / rings), Math.sin(Math.PI * i / rings)];
    for (let k = 0; k < sides; k++) {
      const angle = 2 * Math.PI * k / sides;
      lines.push(`v ${[r * Math.cos(angle), r * Math.sin(angle), z].map((v) => v * radius).join(" ")}`);
    }
  }
  for (let i = 0; i < rings; i++) {
    for (let k = 0; k < sides; k++) {
      const [a, b] = [k, (k + 1) % sides].map((side) => i * sides + side + 1);
      lines.push(`f ${a} ${a + sides} ${b + sides} ${b}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

// ---- the barrel ---------------------------------------------------------------------------------

/**
 * A closed barrel of triangles, standing, its middle at the origin: three rings and two lids.
 * @param {number} radius of its belly, metres; it is three times as high
 * @returns {string} OBJ
 */
export function barrelObj(radius) {
  const sides = 12, rings = [[-1.5, 0.8], [0, 1], [1.5, 0.8]], lines = [];
  const place = (ring, side) => ring * sides + side % sides + 1;
  const number = (value) => String(Number((value * radius).toFixed(4)));
  for (const [z, r] of rings) {
    for (let i = 0; i < sides; i++) {
      const angle = 2 * Math.PI * i / sides;
      lines.push(`v ${number(r * Math.cos(angle))} ${number(r * Math.sin(angle))} ${number(z)}`);
    }
  }
  lines.push(`v 0 0 ${number(-1.5)}`, `v 0 0 ${number(1.5)}`);
  for (let i = 0; i < sides; i++) {
    for (const ring of [0, 1]) {
      lines.push(`f ${place(ring, i)} ${place(ring, i + 1)} ${place(ring + 1, i + 1)}`,
        `f ${place(ring, i)} ${place(ring + 1, i + 1)} ${place(ring + 1, i)}`);
    }
    lines.push(`f ${place(0, i + 1)} ${place(0, i)} ${3 * sides + 1}`,
      `f ${place(2, i)} ${place(2, i + 1)} ${3 * sides + 2}`);
  }
  return `${lines.join("\n")}\n`;
}
