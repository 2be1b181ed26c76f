/**
 * The questions that the inspector can ask about ground: what each needs, the call that it becomes,
 * and how the answer reads in words and in marks. No element of the page is touched here.
 *
 * A question:
 *   label, hint        for people
 *   points             how many clicks it takes, [least, most]; it is asked from the least on;
 *                      a function of the values where they say so
 *   flat               true: points are [x, y]
 *   fields             options, see tools.js
 *   lifts              for each point the field that says how far it stands above its click
 *   request(points, values, clicked)  → {path, body}, path below /v1/locales/{locale}, or whole
 *                      (/v1/…) for a question to the world
 *   values             of the fields, and: locale, layer (chosen, or none), field (a heightfield),
 *                      size (metres that are well seen)
 *   read(answer, points, values)      → {rows: [[name, text]…], marks, items?} items: of a profile
 */

import { directionToWorld, hitToLocal, toLocal, toWorld, upAt } from "/web/frames.js";

const inWorld = { name: "world", label: "in all locales", type: "check", value: false,
  title: "asks the whole world instead of this locale alone" };

const lift = (label, value, title) => ({ name: "lift", label, type: "number", value, title });

const isThere = (value) => value !== null && value !== undefined;

/** A number of the answer, short but never wrong by more than half of its last digit. */
export function number(value) {
  return isThere(value) ? String(+value.toFixed(5)) : "none";
}

function vector(values) {
  return values ? values.map(number).join(", ") : "none";
}

/** Between a face and the level that gravity gives it there. */
function slope(normal, locale, point) {
  const along = upAt(locale, point).reduce((sum, v, i) => sum + v * normal[i], 0);
  return `${(Math.acos(Math.min(1, Math.abs(along))) * 180 / Math.PI).toFixed(1)}°`;
}

/** The members of a hit, a contact or a result of ray that are shown. */
function hitRows(hit, { locale }) {
  const rows = [["point", vector(hit.point)], ["normal", vector(hit.normal)]];
  if (hit.slope_deg !== undefined) rows.push(["slope", `${hit.slope_deg.toFixed(1)}°`]);
  else if (!hit.locale || hit.locale === locale.id)
    rows.push(["slope", slope(hit.normal, locale, hit.point)]);
  if (hit.distance !== undefined) rows.unshift(["distance", `${number(hit.distance)} m`]);
  rows.push(hit.body ? ["body", `${hit.body.number} of patch ${hit.body.patch}`] : ["layer", hit.layer]);
  if (hit.cell) {
    const half = isThere(hit.triangle) ? `, triangle ${hit.triangle}` : "";
    rows.push(["cell", `column ${hit.cell[0]}, row ${hit.cell[1]}${half}`]);
  }
  if (hit.velocity) rows.push(["velocity", `${vector(hit.velocity)} m/s`]);
  if (isThere(hit.polygon)) rows.push(["polygon", String(hit.polygon)]);
  return rows;
}

function tileRows(tile) {
  if (!tile) return [["logical tile", "none: a mesh has no cells"]];
  if (tile.shape === "hex")
    return [["hexagon", `q ${tile.q}, r ${tile.r}, side ${number(tile.side)} m`],
      ["its centre", vector(tile.center.slice(0, 2))]];
  return [["logical tile", `column ${tile.column}, row ${tile.row}, side ${tile.side}`],
    ["tile's centre", vector(tile.center)]];
}

/** A hit as marks: its point, and its normal as long as `size`. */
function hitMarks(hit, size, color) {
  const tip = hit.point.map((v, i) => v + hit.normal[i] * size);
  return [{ kind: "line", points: [hit.point, tip], color: "other" },
    { kind: "point", at: hit.point, color }];
}

/** The outline of a tile of the plan; a hexagon has its tops in y. */
function tileRing({ shape, center: [x, y], side }) {
  const corners = shape === "hex" ? 6 : 4, radius = shape === "hex" ? side : side / Math.SQRT2;
  return Array.from({ length: corners }, (_, i) => {
    const angle = Math.PI / 2 + (i + (corners === 4 ? 0.5 : 0)) * 2 * Math.PI / corners;
    return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
  });
}

/** A tile of the plan, and the hexagons around one. */
function planTileMarks(tile) {
  const { shape, side, center: [x, y] } = tile, away = Math.sqrt(3) * side;
  const around = shape !== "hex" ? [] : Array.from({ length: 6 }, (_, i) => ({ ...tile,
    center: [x + away * Math.cos(i * Math.PI / 3), y + away * Math.sin(i * Math.PI / 3)] }));
  return [...around.map((one) => ({ kind: "area", ring: tileRing(one), color: "quiet" })),
    { kind: "area", ring: tileRing(tile), fill: true }];
}

function without(text) {
  return { rows: [["answer", text]], marks: [] };
}

const pick = {
  label: "Pick", points: [1, 1],
  hint: "The mouse sends a picking ray: what does this pixel show, and in which logical tile?",
  fields: [{ name: "tile", label: "tiles", type: "select", options: ["cells", "hex", "square"],
    title: "logical tiles: of the heightfield's cells, or hexagons or squares of the plan" },
  { name: "tile_side", label: "tile side", type: "number", value: 1, min: 1, step: 1,
    with: ["tile", "cells"], title: "cells along a side of a logical tile" },
  { name: "side", label: "side in metres", type: "number", value: 5, min: 0.001,
    with: ["tile", "hex", "square"], title: "of a square; a hexagon's is its radius, too" }],
  request(points, values, clicked) {
    const seen = clicked.camera ? { camera: clicked.camera } :
      { inverse_view_projection: clicked.inverse_view_projection, depth: clicked.depth };
    const { viewport, pixel } = clicked, { tile = "cells", side, tile_side } = values;
    return { path: "/pick", body: { ...seen, viewport, pixel,
      ...(tile === "cells" ? { tile_side } : { tile: { shape: tile, side } }) } };
  },
  read(answer, points, values) {
    if (answer.status !== "hit") return without("miss: there is no ground at this pixel");
    const { hit, tile } = answer, marks = [];
    if (tile?.shape) {
      marks.push(...planTileMarks(tile));
    } else if (tile) {
      const { column, row, side } = tile;
      marks.push({ kind: "cell", cell: [column * side, row * side], side });
      marks.push({ kind: "box", ...tile.bounds });
    }
    marks.push(...hitMarks(hit, values.size));
    return { rows: [...hitRows(hit, values), ...tileRows(tile)], marks };
  },
};

const height = {
  label: "Height", points: [1, 1], flat: true,
  hint: "How high is the ground here?",
  fields: [{ name: "interp", label: "between samples", type: "select",
    options: ["triangle", "bilinear", "nearest"] }],
  request(points, values) {
    return { path: "/height", body: { points, interp: values.interp,
      fields: ["height", "normal", "cell"], layer: values.field } };
  },
  read(answer, points, { locale }) {
    const [item] = answer.results, [x, y] = points[0];
    const words = { hole: "hole: there is no ground here", outside: "outside the field" };
    if (item.status !== "ok")
      return { rows: [["answer", words[item.status]]],
        marks: [{ kind: "point", at: [x, y, 0], color: "bad" }] };
    const rows = [["height", `${number(item.height)} m`], ["normal", vector(item.normal)]];
    if (item.normal) rows.push(["slope", slope(item.normal, locale, [x, y, item.height])]);
    if (item.cell) rows.push(["cell", `column ${item.cell[0]}, row ${item.cell[1]}`]);
    return { rows, marks: [...(item.cell ? [{ kind: "cell", cell: item.cell }] : []),
      { kind: "point", at: [x, y, item.height], label: `${item.height.toFixed(2)} m` }] };
  },
};

function unit(from, to) {
  const along = to.map((v, i) => v - from[i]), length = Math.hypot(...along);
  if (!(length > 0)) throw new Error("The two points are the same: a ray needs a direction.");
  return along.map((v) => v / length);
}

/** Which locale answered a question to the world. */
function worldRows(item, locale) {
  const rows = [];
  if (item.locale) rows.push(["locale", `${item.locale}, revision ${item.revision}`]);
  if (item.locale && item.locale !== locale.id)
    rows.push(["told", `in the frame of ${locale.id}`]);
  if (item.crossed) rows.push(["passed", item.crossed.map((one) => one.locale).join(", ") || "none"]);
  return rows;
}

function traceRows(trace) {
  const more = trace.truncated ? ", more were cut off" : "";
  const row = (name, boxes, rest) => [name,
    `${boxes.length} boxes (${boxes.filter((box) => box.entered).length} entered), ${rest}${more}`];
  return [row("visited", trace.boxes, `${trace.cells.length} cells`),
    ...trace.meshes.map(({ layer, boxes, polygons }) =>
      row(`visited in ${layer}`, boxes, `${polygons.length} polygons tested`))];
}

/** A box of a mesh, seen from above. */
function meshBoxMark({ bounds: { min, max }, entered }, { origin, axes }) {
  const corners = [min, [max[0], min[1], min[2]], max, [min[0], max[1], max[2]]];
  return { kind: "area", color: entered ? "other" : "quiet", ring: corners.map((corner) =>
    [0, 1].map((i) => origin[i] + corner.reduce((sum, v, k) => sum + v * axes[k][i], 0))) };
}

function traceMarks(trace) {
  return [...trace.boxes.map(({ bounds, entered }) => ({ kind: "box", ...bounds,
    color: entered ? "other" : "quiet", faint: !entered })),
  ...trace.meshes.flatMap(({ boxes, frame }) => boxes.map((box) => meshBoxMark(box, frame))),
  ...trace.cells.map((cell) => ({ kind: "cell", cell }))];
}

const ray = {
  label: "Ray", points: [2, 2],
  hint: "Click where it starts and what it is aimed at: what does it meet first?",
  fields: [lift("start above ground", 20, "metres that a click's start stands above the ground"),
    { name: "t_max", label: "t max", type: "number", value: "", min: 0,
      title: "metres; empty: unbounded" },
    { name: "mode", label: "mode", type: "select", options: ["closest", "any"] },
    { name: "trace", label: "boxes, cells and polygons tested", type: "check", value: true }, inWorld],
  lifts: ["lift"],
  request(points, values) {
    const asked = { origin: points[0], direction: unit(points[0], points[1]), t_max: values.t_max };
    const { mode, layer, trace, locale } = values;
    if (values.world) return { path: "/v1/ray", body: { mode, rays: [{ ...asked,
      origin: toWorld(locale, asked.origin),
      direction: directionToWorld(locale, asked.direction) }] } };
    return { path: "/ray", body: { rays: [asked], mode, trace: trace || undefined, layer } };
  },
  read(answer, points, values) {
    const { locale, world } = values, marks = [], rows = [];
    let [item] = answer.results;
    if (item.trace) marks.push(...traceMarks(item.trace));
    if (item.trace) rows.push(...traceRows(item.trace));
    if (world) rows.push(...worldRows(item, locale));
    if (item.status !== "hit") {
      const text = item.status === "miss" ? "miss: it meets nothing" : `invalid: ${item.detail}`;
      return { rows: [["answer", text], ...rows],
        marks: [...marks, { kind: "line", points, color: "bad", dashed: true }] };
    }
    if (world) item = hitToLocal(locale, item);
    return { rows: [...hitRows(item, values), ...rows], marks: [...marks,
      { kind: "line", points: [points[0], item.point] }, ...hitMarks(item, values.size)] };
  },
};

const los = {
  label: "Sight", points: [2, 2],
  hint: "Click two places: does one see the other?",
  fields: [lift("eyes above ground", 1.7, "metres that both ends stand above the ground")],
  lifts: ["lift", "lift"],
  request(points, values) {
    const [from, to] = points;
    return { path: "/los", body: { segments: [{ from, to }], layer: values.layer } };
  },
  read(answer, points) {
    const [item] = answer.results;
    if (item.visible)
      return { rows: [["answer", "visible: nothing stands between"]],
        marks: [{ kind: "line", points, color: "good" }] };
    return { rows: [["answer", "hidden"], ["blocked at", vector(item.point)],
      ["blocked", `${number(item.fraction)} of the way`]],
    marks: [{ kind: "line", points: [points[0], item.point], color: "good" },
      { kind: "line", points: [item.point, points[1]], color: "bad", dashed: true },
      { kind: "point", at: item.point, color: "bad", label: "blocked" }] };
  },
};

const profile = {
  label: "Profile", points: [2, 50], flat: true,
  hint: "Click two or more places: the ground along the way.",
  fields: [{ name: "samples", label: "samples", type: "number", value: 200, min: 2, step: 1,
    title: "points along the path, both ends included" },
  { name: "step", label: "or every", type: "number", value: "", min: 0,
    title: "metres; empty: samples" }],
  request(points, values) {
    const every = values.step === undefined ? { samples: values.samples } : { step: values.step };
    return { path: "/profile", body: { path: points, ...every, layer: values.field } };
  },
  read(answer) {
    const items = answer.results, line = items.filter((item) => item.status === "ok");
    let climb = 0, fall = 0;
    items.forEach((item, i) => {
      if (!i || item.status !== "ok" || items[i - 1].status !== "ok") return;
      const rise = item.point[2] - items[i - 1].point[2];
      if (rise > 0) climb += rise;
      else fall -= rise;
    });
    const rows = [["length", `${number(items.at(-1).distance)} m`],
      ["points", String(items.length)], ["without ground", String(items.length - line.length)],
      ["climb", `${climb.toFixed(2)} m`], ["fall", `${fall.toFixed(2)} m`]];
    return { rows, items, marks: runsOf(items) };
  },
};

/** The parts of a profile that have ground, as lines. */
function runsOf(items) {
  const marks = [];
  items.forEach((item, i) => {
    if (item.status !== "ok") return;
    if (!i || items[i - 1].status !== "ok") marks.push({ kind: "line", points: [] });
    marks.at(-1).points.push(item.point);
  });
  return marks;
}

function contactRows(name, contact, values) {
  if (!contact) return [[name, "none"]];
  return hitRows(contact, values).map(([key, text]) => [`${name}: ${key}`, text]);
}

const contact = {
  label: "Contact", points: [1, 1],
  hint: "Which floor lies below this point, and which ceiling above?",
  fields: [lift("above ground", 5, "metres that a click's point stands above what it meets"),
    { name: "reach_up", label: "reach up", type: "number", value: "", min: 0,
      title: "metres that the floor may be above the point; empty: 0.5, without an end with a clearance" },
    { name: "max_distance", label: "max distance", type: "number", value: "", min: 0,
      title: "metres that the floor may be below the point; empty: any" },
    { name: "clearance", label: "clearance", type: "number", value: "",
      title: "metres at which it is placed above the floor; empty: it is not placed" },
    { name: "clearance_mode", label: "placed", type: "select", options: ["at_least", "exact"],
      title: "lift what is too low, or set all to the clearance" }, inWorld],
  lifts: ["lift"],
  request(points, values) {
    const { reach_up, max_distance, clearance, locale } = values;
    const mode = clearance === undefined ? undefined : values.clearance_mode;
    if (values.world) return { path: "/v1/contact", body: { reach_up, max_distance, clearance,
      clearance_mode: mode, points: points.map((point) => toWorld(locale, point)) } };
    return { path: "/contact", body: { points, reach_up, max_distance, clearance,
      clearance_mode: mode, layer: values.layer } };
  },
  read(answer, points, values) {
    const item = { ...answer.results[0] }, marks = [], { locale, world } = values;
    for (const key of ["floor", "ceiling"])
      if (world && item[key]) item[key] = hitToLocal(locale, item[key]);
    if (world && item.placed) item.placed = toLocal(locale, item.placed);
    const rows = [["answer", item.status], ...(world ? worldRows(item, locale) : []),
      ...contactRows("floor", item.floor, values), ...contactRows("ceiling", item.ceiling, values)];
    for (const [key, color] of [["floor", "good"], ["ceiling", "other"]]) {
      if (!item[key]) continue;
      marks.push({ kind: "line", points: [points[0], item[key].point], color, dashed: true },
        { kind: "point", at: item[key].point, color, label: key });
    }
    if (item.placed) {
      rows.push(["placed", vector(item.placed)]);
      marks.push({ kind: "point", at: item.placed, label: "placed" });
    }
    return { rows, marks };
  },
};

const contains = {
  label: "Contains", points: [1, 1],
  hint: "Is this point inside (a floor below and, unless the sky is open, a ceiling above), below the ground, over a hole, or outside?",
  fields: [lift("above ground", 2, "metres that a click's point stands above what it meets")],
  lifts: ["lift"],
  request(points, values) {
    return { path: "/contains", body: { points, layer: values.layer } };
  },
  read(answer, points) {
    const [item] = answer.results, inside = item.status === "inside";
    return { rows: [["answer", item.status], ["floor below", item.floor ? "yes" : "no"],
      ["ceiling above", item.ceiling ? "yes" : "no"]],
    marks: [{ kind: "point", at: points[0], color: inside ? "good" : "bad", label: item.status }] };
  },
};

/** The feet of a car: four corners of a rectangle around a point, turned. */
function feet([x, y, z], { length, width, heading }) {
  const turn = heading * Math.PI / 180, c = Math.cos(turn), s = Math.sin(turn);
  return [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([a, b]) => {
    const along = a * length / 2, aside = b * width / 2;
    return [x + along * c - aside * s, y + along * s + aside * c, z];
  });
}

const footprint = {
  label: "Footprint", points: [1, 1],
  hint: "A car stands here: where do its four wheels touch, and in which plane does it lie?",
  fields: [lift("above ground", 5, "metres from which the wheels come down"),
    { name: "length", label: "length", type: "number", value: 4, min: 0.001 },
    { name: "width", label: "width", type: "number", value: 2, min: 0.001 },
    { name: "heading", label: "heading °", type: "number", value: 0,
      title: "0 is along x, 90 along y" }],
  lifts: ["lift"],
  request(points, values) {
    const footprints = [feet(points[0], values)];
    return { path: "/contact", body: { footprints, layer: values.layer } };
  },
  read(answer, points, values) {
    const [item] = answer.results, asked = feet(points[0], values);
    const rows = [["answer", item.status]];
    if (item.plane) {
      const { normal, d } = item.plane;
      rows.push(["normal", vector(normal)], ["slope", slope(normal, values.locale, points[0])],
        ["d", number(d)]);
    }
    item.points.forEach((point, i) =>
      rows.push([`wheel ${i + 1}`, point ? vector(point) : "no floor"]));
    const ring = asked.map(([x, y]) => [x, y]);
    return { rows, marks: [{ kind: "area", ring, color: item.plane ? "good" : "bad", fill: true },
      ...item.points.map((point, i) => ({ kind: "point", at: point ?? asked[i],
        color: point ? "good" : "bad" }))] };
  },
};

/** The way that the sun's light goes; its height and azimuth (0: it stands where x grows) in °. */
function sunlight({ azimuth, altitude }) {
  const a = azimuth * Math.PI / 180, h = altitude * Math.PI / 180;
  return [Math.cos(h) * Math.cos(a), Math.cos(h) * Math.sin(a), Math.sin(h)].map((v) => -v);
}

const light = {
  label: "Light", points: ({ light: from }) => from === "lamp" ? [2, 2] : [1, 1],
  hint: "Is this place lit by the sun, or by a lamp that stands where you click next? What is in " +
    "the way?",
  fields: [{ name: "light", label: "light", type: "select", options: ["sun", "lamp"] },
    { name: "azimuth", label: "sun's azimuth °", type: "number", value: 210,
      with: ["light", "sun"], title: "where it stands: 0 where x grows, 90 where y grows" },
    { name: "altitude", label: "height °", type: "number", value: 35, min: -90, max: 90,
      with: ["light", "sun"], title: "above the plane of x and y" },
    lift("above ground", 0.05, "metres that a click's point stands above the ground"),
    { name: "stand", label: "lamp above ground", type: "number", value: 10,
      with: ["light", "lamp"], title: "metres that the lamp stands above what it was clicked on" }],
  lifts: ["lift", "stand"],
  request([point, lamp], values) {
    const from = values.light === "lamp" ? { position: lamp } : { direction: sunlight(values) };
    return { path: "/lit", body: { points: [point], light: from, layer: values.layer } };
  },
  read(answer, [point, lamp], values) {
    const [{ lit, occluder }] = answer.results, isLamp = values.light === "lamp";
    const far = 6 * values.size, way = isLamp ? null : sunlight(values);
    const source = isLamp ? lamp : point.map((v, i) => v - far * way[i]);
    const marks = [{ kind: "point", at: point, color: lit ? "good" : "bad",
      label: lit ? "lit" : "in shadow" }];
    if (isLamp) marks.push({ kind: "point", at: lamp, label: "lamp" });
    if (lit) return { rows: [["answer", "lit: the light reaches it"]],
      marks: [{ kind: "line", points: [point, source] }, ...marks] };
    return { rows: [["answer", "in shadow"], ...(occluder ? hitRows(occluder, values) : [])
      .map(([name, text]) => [`in the way: ${name}`, text])],
    marks: [...(occluder ? [{ kind: "line", points: [point, occluder.point], color: "bad",
      dashed: true }, { kind: "line", points: [occluder.point, source] },
    { kind: "point", at: occluder.point, color: "other" }] : []), ...marks] };
  },
};

/** By id, in the order in which they are shown. */
export const questions = { pick, height, ray, los, light, profile, contact, contains, footprint };
