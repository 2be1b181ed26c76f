/**
 * A profile as an SVG plot: height over distance, gaps where there is no ground, axes with round
 * numbers, and a cursor that the pointer or the arrow keys move.
 */
import { niceStep } from "/web/shade.js";

const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 360, HEIGHT = 180, LEFT = 46, RIGHT = 8, TOP = 10, BOTTOM = 26;

function element(name, attributes, ...children) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Round numbers from low to high, about `count` of them. */
export function ticks(low, high, count) {
  const step = niceStep((high - low) / count), list = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++)
    list.push(Number((k * step).toPrecision(12)));
  return list;
}

/** Runs of items that have ground. */
function runs(items) {
  const list = [];
  items.forEach((item, i) => {
    if (item.status !== "ok") return;
    if (i === 0 || items[i - 1].status !== "ok") list.push([]);
    list.at(-1).push(item);
  });
  return list;
}

function scales(items) {
  const heights = items.filter((item) => item.status === "ok").map((item) => item.point[2]);
  let low = heights.reduce((a, b) => Math.min(a, b), Infinity);
  let high = heights.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!heights.length) [low, high] = [0, 1];
  const [least, most] = [low, high], pad = Math.max((high - low) * 0.08, 0.05);
  [low, high] = [low - pad, high + pad];
  const far = Math.max(items.at(-1).distance, 1e-9);
  return { low, high, least, most, far, x: (d) => LEFT + (d / far) * (WIDTH - LEFT - RIGHT),
    y: (z) => TOP + ((high - z) / (high - low)) * (HEIGHT - TOP - BOTTOM) };
}

function axes(scale) {
  const group = element("g", { class: "plot-axes" });
  const right = WIDTH - RIGHT, bottom = HEIGHT - BOTTOM;
  for (const z of ticks(scale.low, scale.high, 4)) {
    const y = scale.y(z);
    group.append(element("line", { x1: LEFT, x2: right, y1: y, y2: y }),
      element("text", { x: LEFT - 5, y: y + 4, "text-anchor": "end" }, String(z)));
  }
  for (const d of ticks(0, scale.far, 5)) {
    const x = scale.x(d);
    group.append(element("line", { x1: x, x2: x, y1: bottom, y2: bottom + 4 }),
      element("text", { x, y: bottom + 16, "text-anchor": "middle" }, String(d)));
  }
  group.append(element("text", { x: right, y: TOP + 2, "text-anchor": "end" },
    "height over distance, m"));
  return group;
}

function curves(items, scale) {
  const group = element("g", {}), bottom = HEIGHT - BOTTOM;
  for (const run of runs(items)) {
    const line = run.map(({ distance, point }) =>
      `${scale.x(distance).toFixed(2)},${scale.y(point[2]).toFixed(2)}`);
    const first = scale.x(run[0].distance), last = scale.x(run.at(-1).distance);
    group.append(element("polygon", { class: "plot-fill",
      points: `${first},${bottom} ${line.join(" ")} ${last},${bottom}` }));
    group.append(run.length > 1 ?
      element("polyline", { class: "plot-line", points: line.join(" ") }) :
      element("circle", { class: "plot-dot", cx: first, cy: scale.y(run[0].point[2]), r: 2 }));
  }
  return group;
}

/** How an item reads. */
function wordsOf(item) {
  const height = item.status === "ok" ? `height ${item.point[2].toFixed(2)} m` :
    `no ground (${item.status})`;
  return `${item.distance.toFixed(1)} m along: ${height}`;
}

function listen(svg, items, scale, show) {
  let chosen = -1;
  const choose = (index) => {
    chosen = Math.max(0, Math.min(items.length - 1, index));
    show(items[chosen]);
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const part = ((event.clientX - box.left) / box.width * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT);
    const distance = part * scale.far;
    let low = 0, high = items.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (items[middle].distance < distance) low = middle;
      else high = middle;
    }
    choose(distance - items[low].distance < items[high].distance - distance ? low : high);
  });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(chosen + step);
  });
}

/**
 * @param {{distance: number, point: (number|null)[], status: string}[]} items of POST …/profile
 * @param {(item: object) => void} [onChoose] called with the item under the cursor
 * @returns {HTMLElement} a figure
 */
export function profilePlot(items, onChoose = () => {}) {
  const scale = scales(items);
  const cursor = element("line", { class: "plot-cursor", y1: TOP, y2: HEIGHT - BOTTOM, x1: -9,
    x2: -9 });
  const dot = element("circle", { class: "plot-dot", r: 3.5, cx: -9, cy: -9 });
  const missing = items.filter((item) => item.status !== "ok").length;
  const heights = items.filter((item) => item.status === "ok").map((item) => item.point[2]);
  const [least, most, far] = [scale.least, scale.most, scale.far].map((v) => v.toFixed(1));
  const about = heights.length ? `Heights from ${least} to ${most} m over ${far} m, ${missing} ` +
    `of ${items.length} points without ground.` : "There is no ground anywhere along this path.";
  const svg = element("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: 0,
    role: "img", "aria-label": about }, axes(scale), curves(items, scale), cursor, dot);
  const caption = Object.assign(document.createElement("figcaption"), { className: "quiet",
    textContent: heights.length ? "Move over the plot, or use the arrow keys." : about });
  caption.setAttribute("aria-live", "polite");
  listen(svg, items, scale, (item) => {
    const x = scale.x(item.distance);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    dot.setAttribute("cx", item.status === "ok" ? x : -9);
    dot.setAttribute("cy", item.status === "ok" ? scale.y(item.point[2]) : -9);
    caption.textContent = wordsOf(item);
    onChoose(item);
  });
  const figure = document.createElement("figure");
  figure.append(svg, caption);
  return figure;
}
