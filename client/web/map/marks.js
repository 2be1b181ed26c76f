/**
 * What is drawn over the ground, one list made of several: each part keeps its own marks under its
 * name, and state.marks is the union that both views draw. Another locale forgets them all.
 *
 * Marks, with coordinates in the locale's frame (metres):
 *
 *   {kind: "point", at: [x, y, z], label?, color?}
 *   {kind: "line", points: [[x, y, z]…], color?, dashed?}
 *   {kind: "box", min: [x, y, z], max: [x, y, z], color?, faint?}
 *   {kind: "area", ring: [[x, y]…], color?, fill?}
 *   {kind: "circle", center: [x, y], radius, color?}
 *   {kind: "cell", cell: [column, row], side?, color?}      side in cells, 1 unless given
 *   {kind: "image", url, rect: [x0, y0, x1, y1]}
 *
 * A colour is a name of `colors` or anything CSS knows; "accent" unless given.
 */
import { state } from "/web/state.js";

/** Colours with a meaning, the same in both views and in both themes. */
export const colors = {
  accent: "#ffd23f", good: "#5fd38d", bad: "#ff6b5e", quiet: "#c8ccd0", other: "#6ec6ff",
};

/** @param {string|undefined} name @returns {string} a CSS colour */
export function colorOf(name) {
  return colors[name ?? "accent"] ?? name;
}

const owners = new Map();

function publish() {
  state.set("marks", [...owners.values()].flat());
}

/**
 * Replaces the marks of one owner.
 * @param {string} owner the part's name; later owners are drawn over earlier ones
 * @param {object[]} marks none: an empty list
 */
export function setMarks(owner, marks) {
  if (!marks.length && !owners.has(owner)) return;
  if (marks.length) owners.set(owner, marks);
  else owners.delete(owner);
  publish();
}

state.on("locale", () => {
  owners.clear();
  publish();
});
