/**
 * The panel that changes the ground and shows the log of edits.
 *
 * While the panel is open clicks belong to it (tool "edit"): a brush, or a rectangle of samples, is
 * used where the click hits the ground. The same can be typed and sent by keyboard. What is going
 * to change is drawn under the pointer. Nothing is drawn in advance: the views change when the
 * daemon's feed says so, in the same way for one's own edits and for others'.
 */
import { startHistory } from "/web/history.js";
import { setMarks } from "/web/marks.js";
import { tell } from "/web/state.js";
import { choice, claimClicks, labelled, make, middleOf, numberField, numberOf, onPanel,
  placeInSight, ringOfRect, writeError } from "/web/widgets.js";

const keptEvents = 50, flashMs = 1500;

const kinds = [["crater", "crater: dig, and heap on a rim"], ["raise", "raise, or lower"],
  ["flatten", "flatten to the middle's height"], ["smooth", "smooth"],
  ["relax", "relax: what is too steep slides"],
  ["set", "rectangle: set to a height"], ["add", "rectangle: add to heights"],
  ["hole", "rectangle: cut a hole"], ["look", "rectangle: show its history"]];
const isBrush = (kind) => ["crater", "raise", "flatten", "smooth", "relax"].includes(kind);

/** The form's elements by name. */
function makeForm() {
  const form = {
    kind: choice("edit-kind", kinds),
    radius: numberField("edit-radius", 10, { min: 0.001, required: true }),
    amount: numberField("edit-amount", 2),
    slope: numberField("edit-slope", 34, { min: 1, max: 89, required: true }),
    cols: numberField("edit-cols", 5, { min: 1, max: 4096, step: 1, required: true }),
    rows: numberField("edit-rows", 5, { min: 1, max: 4096, step: 1, required: true }),
    value: numberField("edit-value", 1, { required: true }),
    x: numberField("edit-x", 0, { required: true }),
    y: numberField("edit-y", 0, { required: true }),
    apply: make("button", { id: "edit-apply", className: "primary",
      title: "the same as a click on the ground at x, y" }, "Change the ground there"),
    note: make("p", { id: "edit-note", role: "status" }),
    list: make("ol", { id: "edit-events", className: "changes" }),
  };
  form.brushRow = make("div", { className: "row" },
    labelled("Radius", form.radius, "m", "of the brush, around the click"),
    form.amountLabel = labelled("Amount", form.amount, "m",
      "how deep a crater is dug, how high ground is raised"),
    form.slopeLabel = labelled("Slope", form.slope, "°", "that nothing is steeper than afterwards"));
  form.rectRow = make("div", { className: "row" },
    labelled("Columns", form.cols, "", "samples along x, around the click"),
    labelled("Rows", form.rows, "", "samples along y, around the click"),
    form.valueLabel = labelled("Height", form.value, "m", "that the samples get, or that is added"));
  return form;
}

/** The samples around a point. @returns {number[]} [c0, r0, cols, rows], cut at the field */
function rectAt(layer, point, cols, rows) {
  const clamp = (value, most) => Math.max(0, Math.min(value, most));
  const c0 = clamp(Math.round((point[0] - layer.origin[0]) / layer.spacing[0] - (cols - 1) / 2),
    layer.cols - 1);
  const r0 = clamp(Math.round((point[1] - layer.origin[1]) / layer.spacing[1] - (rows - 1) / 2),
    layer.rows - 1);
  return [c0, r0, Math.min(cols, layer.cols - c0), Math.min(rows, layer.rows - r0)];
}

/** What is sent to …/edits for a click at [x, y]. */
function editAt(form, layer, point) {
  const kind = form.kind.value;
  if (isBrush(kind)) {
    const brush = { shape: kind, center: point.slice(0, 2), radius: numberOf(form.radius) };
    if (kind === "relax")
      brush.slope_deg = numberOf(form.slope);
    else if (form.amount.value !== "" || kind === "crater" || kind === "raise")
      brush.amount = numberOf(form.amount);
    return { layer: layer.id, brush };
  }
  const rect = rectAt(layer, point, numberOf(form.cols), numberOf(form.rows));
  const value = kind === "hole" ? null : numberOf(form.value);
  return { layer: layer.id, rect, op: kind === "add" ? "add" : "set",
    heights: new Array(rect[2] * rect[3]).fill(value) };
}

/** What would change, for the views. */
function previewAt(form, layer, point) {
  if (isBrush(form.kind.value))
    return { kind: "circle", center: point.slice(0, 2), radius: form.radius.valueAsNumber || 0 };
  const rect = rectAt(layer, point, form.cols.valueAsNumber || 1, form.rows.valueAsNumber || 1);
  return { kind: "area", ring: ringOfRect(layer, rect) };
}

/** A change of the feed in a line, with the place that it can show again. */
function eventLine(change, isOwn, show) {
  const where = change.rect ?
    `${change.rect[2]} × ${change.rect[3]} samples at ${change.rect[0]}, ${change.rect[1]}` :
    "as a whole";
  const what = `${change.source ?? "change"} of ${change.layer ?? "the locale"}`;
  const line = make("li", { className: isOwn ? "own" : "other" },
    `${change.revision}: ${what}, ${where} `,
    make("span", { className: "quiet" }, isOwn ? "by you " : "by others "));
  if (change.rect)
    line.append(make("button", { onclick: show, title: "mark it on the ground" }, "Show"));
  return line;
}

/** The last changes, newest first, and the flash where each was. */
function startEvents(state, form) {
  let changes = [], timer = 0;
  const own = new Set();

  function flash(change) {
    const layer = state.locale?.layers.find((one) => one.id === change.layer) ?? state.layer;
    if (!layer?.spacing || !change.rect) return;
    const color = own.has(change.revision) ? "good" : "other";
    clearTimeout(timer);
    setMarks("flash", [{ kind: "area", ring: ringOfRect(layer, change.rect), color, fill: true }]);
    timer = setTimeout(() => setMarks("flash", []), flashMs);
  }

  function draw() {
    form.list.replaceChildren(...(changes.length ?
      changes.map((change) => eventLine(change, own.has(change.revision), () => flash(change))) :
      [make("li", { className: "quiet" }, "Nothing has changed since you look.")]));
  }

  state.on("changed", (change) => {
    if (!change) return;
    changes = [change, ...changes.filter((one) => one.revision !== change.revision)]
      .slice(0, keptEvents);
    draw();
    flash(change);
  });
  state.on("locale", () => {
    changes = [];
    own.clear();
    draw();
  });
  draw();
  return (revision) => {
    own.add(revision);
    draw();
  };
}

function startForm(kota, state, form, isOwn, showHistory) {
  async function change(point) {
    const locale = state.locale, layer = state.layer;
    if (!layer) return tell(new Error("This locale has no heightfield that could be changed."));
    form.apply.disabled = true;
    try {
      if (form.kind.value === "look") // nothing changes
        return showHistory(rectAt(layer, point, numberOf(form.cols), numberOf(form.rows)));
      const answer = (await kota.post(`/v1/locales/${locale.id}/edits`,
        editAt(form, layer, point))).json;
      isOwn(answer.revision);
      const [, , cols, rows] = answer.rect;
      form.note.textContent =
        `Revision ${answer.revision}: ${cols} × ${rows} samples may have changed.`;
      state.set("message", null);
    } catch (error) {
      form.note.textContent = "";
      tell(writeError(error));
    } finally {
      form.apply.disabled = false;
    }
  }

  form.apply.addEventListener("click", () => {
    try {
      change([numberOf(form.x), numberOf(form.y)]);
    } catch (error) {
      tell(error);
    }
  });
  state.on("clicked", (clicked) => {
    if (state.tool !== "edit" || !clicked) return;
    if (!clicked.point) return tell(new Error("There is no ground under that click."));
    for (const [i, field] of [form.x, form.y].entries())
      field.value = String(Number(clicked.point[i].toFixed(3)));
    change(clicked.point);
  });
}

/** Draws what the next click would change; at most once a frame. */
function startPreview(state, form) {
  let asked = 0;
  const draw = () => {
    asked = 0;
    const isOn = state.tool === "edit" && state.pointer && state.layer;
    setMarks("edits", isOn ?
      [previewAt(form, state.layer, [state.pointer.x, state.pointer.y])] : []);
  };
  const ask = () => {
    asked ||= requestAnimationFrame(draw);
  };
  state.on("pointer", () => {
    if (state.tool === "edit") ask();
  });
  state.on("tool", ask);
  for (const field of [form.kind, form.radius, form.cols, form.rows])
    field.addEventListener("input", ask);
}

/** @param {import("/web/kota.js").Kota} kota @param {typeof import("/web/state.js").state} state */
export function start(kota, state) {
  const form = makeForm();
  const setKind = () => {
    const kind = form.kind.value;
    form.brushRow.hidden = !isBrush(kind);
    form.rectRow.hidden = isBrush(kind);
    form.valueLabel.hidden = kind === "hole" || kind === "look";
    form.apply.textContent = kind === "look" ? "Show its history" : "Change the ground there";
    form.amountLabel.hidden = kind === "relax";
    form.slopeLabel.hidden = kind !== "relax";
  };
  const panel = document.getElementById("panel-edits");
  panel.append(
    make("p", {}, "A click on the ground changes it for everybody. Without a token only a page " +
      "from this machine may."),
    make("div", { className: "row" }, labelled("What", form.kind, "", "a brush, or samples")),
    form.brushRow, form.rectRow, make("div", { className: "row" },
      labelled("x", form.x, "m", "its middle"), labelled("y", form.y, "m", "its middle"),
      form.apply),
    form.note, make("h2", {}, "Changes, newest first"), form.list);
  form.kind.addEventListener("input", setKind);
  setKind();
  const isOwn = startEvents(state, form);
  startForm(kota, state, form, isOwn, startHistory(kota, state, panel, isOwn));
  startPreview(state, form);

  state.on("layer", (layer) => {
    form.apply.disabled = !layer;
    if (!layer) return;
    const middle = middleOf(layer);
    [form.x.value, form.y.value] = middle.map((value) => String(Math.round(value)));
    form.radius.value = String(Number((4 * Math.max(...layer.spacing)).toPrecision(2)));
  });
  claimClicks(state, "panel-edits", "edit");
  onPanel("panel-edits", (isOpen) => {
    if (isOpen) placeInSight(state.look, form);
  });
}
