/**
 * Small things that panels are made of: elements, labelled fields, tables, and what a layer's
 * rectangles are in metres. No state of their own.
 */

/**
 * An element. Names beginning with "on" are listeners, "data" is its dataset, others properties.
 * @param {string} tag @param {object} [about] @param {...(Node|string)} children
 * @returns {HTMLElement}
 */
export function make(tag, about = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name.startsWith("aria-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** An element of SVG. @param {string} tag @param {object} [about] attributes */
export function makeSvg(tag, about = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(about)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A field with its words before it, its unit after, and a hover help. */
export function labelled(words, field, unit = "", title = "") {
  return make("label", { title }, words, field, unit);
}

/** @param {string} id @param {number} value @param {object} [about] min, max, step, … */
export function numberField(id, value, about = {}) {
  return make("input", { type: "number", id, step: "any", ...about, value: String(value) });
}

/** @param {string} id @param {(string|[string, string])[]} items values, or values and words */
export function choice(id, items, about = {}) {
  const pairs = items.map((item) => Array.isArray(item) ? item : [item, item]);
  return make("select", { id, ...about },
    ...pairs.map(([value, text]) => new Option(text, value)));
}

/**
 * What a number field holds; throws in words, and takes the reader there, where it is no number.
 * @param {HTMLInputElement} field @returns {number}
 */
export function numberOf(field) {
  const value = field.valueAsNumber;
  if (field.checkValidity() && Number.isFinite(value)) return value;
  field.focus();
  const words = field.closest("label")?.firstChild?.textContent?.trim() ?? field.id;
  throw new Error(`${words}: ${field.validationMessage || "a number is wanted"}`);
}

/** Rows of [words, value, explanation]. @param {HTMLElement} table @param {string[][]} rows */
export function fillTable(table, rows) {
  table.replaceChildren(...rows.map(([words, value, title = ""]) => make("tr", { title },
    make("th", { scope: "row" }, words), make("td", {}, String(value)))));
}

const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A number for people: four digits, or a whole one with thousands apart. */
export function shortNumber(value) {
  if (value === null || value === undefined) return "none";
  return Number.isInteger(value) || Math.abs(value) >= 10000 ? whole.format(value) :
    digits.format(value);
}

/** @param {number} bytes */
export function shortBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; bytes >= 1024 && i < units.length - 1; i++) bytes /= 1024;
  return `${digits.format(bytes)} ${units[i]}`;
}

/** @param {number} seconds */
export function shortTime(seconds) {
  if (seconds < 1e-3) return `${digits.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${digits.format(seconds * 1e3)} ms`;
  if (seconds < 120) return `${digits.format(seconds)} s`;
  if (seconds < 7200) return `${whole.format(seconds / 60)} min`;
  return `${digits.format(seconds / 3600)} h`;
}

/**
 * Where the surface changes when these samples do: a cell further on each side.
 * @param {object} layer a heightfield @param {number[]} rect [c0, r0, cols, rows]
 * @returns {number[][]} a ring in metres
 */
export function ringOfRect(layer, [c0, r0, cols, rows]) {
  const at = (c, r) => [
    layer.origin[0] + Math.min(Math.max(c, 0), layer.cols - 1) * layer.spacing[0],
    layer.origin[1] + Math.min(Math.max(r, 0), layer.rows - 1) * layer.spacing[1]];
  const [left, low, right, high] = [c0 - 1, r0 - 1, c0 + cols, r0 + rows];
  return [at(left, low), at(right, low), at(right, high), at(left, high)];
}

/** The middle of a heightfield, holes or not. @returns {number[]} x, y in metres */
export function middleOf(layer) {
  return [layer.cols, layer.rows].map((count, i) =>
    layer.origin[i] + layer.spacing[i] * (count - 1) / 2);
}

/** Puts a place that is out of sight into the middle of what is seen. @param {{x, y}} fields */
export function placeInSight(look, { x, y }) {
  if (!look) return;
  const far = Math.max(Math.abs(x.valueAsNumber - look.x), Math.abs(y.valueAsNumber - look.y));
  if (far <= look.width_m / 2) return;
  [x.value, y.value] = [look.x, look.y].map((value) => String(Number(value.toFixed(1))));
}

/** Calls fn(isVisible) when a panel of the page comes up or goes. */
export function onPanel(id, fn) {
  const panel = document.getElementById(id);
  let was = false;
  const look = () => {
    const is = !panel.hidden && !document.hidden;
    if (is !== was) fn(is);
    was = is;
  };
  new MutationObserver(look).observe(panel, { attributes: true, attributeFilter: ["hidden"] });
  document.addEventListener("visibilitychange", look);
  look();
}

const claimed = new Set();
let toolBefore = "pick";

/** Clicks on the ground belong to this tool while its panel is open, then to the tool before. */
export function claimClicks(state, panel, tool) {
  claimed.add(tool);
  onPanel(panel, (isOpen) => {
    if (isOpen) {
      if (!claimed.has(state.tool)) toolBefore = state.tool;
      state.set("tool", tool);
    } else if (state.tool === tool) {
      state.set("tool", toolBefore);
    }
  });
}

/** The daemon's counters that are not to be had here, in words; null: it is something else. */
export function hiddenWords(error) {
  const help = { 401: "The daemon's numbers are told to those with a token here: press Token.",
    403: "The daemon's numbers are not told to this page.",
    404: "The daemon's numbers are not to be seen from here." }[error?.status];
  return help ? `${help} (${error.message})` : null;
}

/** A refused write in words that say what to do. @param {Error} error @returns {Error} */
export function writeError(error) {
  const help = { 401: "Changing the ground needs a token of scope edit here: press Token.",
    403: "Changing the ground is not allowed with what this page has: press Token for one of " +
      "scope edit." }[error?.status];
  return help ? new Error(`${help} The daemon said: ${error.message}`) : error;
}
