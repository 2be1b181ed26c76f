/**
 * The panel "Ask": a tool for each question of questions.js. Clicks on either view give it points,
 * which can also be typed; when there are enough, the daemon is asked, and the answer is shown in
 * words here and in marks over the ground. A newer question ends the one under way.
 *
 * A click gives a pixel. Where a tool needs a place, that pixel is picked first (quietly: the call
 * that is shown is the tool's own), so a place is always on the surface that answers.
 */
import { upAt } from "/web/frames.js";
import { setMarks } from "/web/marks.js";
import { profilePlot } from "/web/plot.js";
import { questions } from "/web/questions.js";
import { canStand, Standing } from "/web/standing.js";
import { tell } from "/web/state.js";

const OWNER = "ask";
const SLOW_MS = 1000;
/** Questions that bodies and ground that moves may answer (`live`). */
const LIVE = ["/pick", "/height", "/ray", "/los", "/profile", "/contact", "/contains"];

const at = (id) => document.getElementById(id);

/** An element with properties and children. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** The form's control for a field: {name, label, type, value, options, min, step, title, with}. */
function control(field) {
  const { name, title = "" } = field;
  if (field.type === "select")
    return make("select", { name, title }, ...field.options.map((text) => new Option(text)));
  if (field.type === "check")
    return make("input", { name, title, type: "checkbox", checked: field.value });
  return make("input", { name, title, type: "number", value: field.value, min: field.min ?? "",
    step: field.step ?? "any" });
}

function valueOf(field, input) {
  if (field.type === "select") return input.value;
  if (field.type === "check") return input.checked;
  if (input.validity.badInput) throw new Error(`${field.label} is not a number.`);
  return input.value === "" ? undefined : Number(input.value);
}

/** A point a line, numbers with blanks or commas between. */
function pointsOf(text, flat) {
  const need = flat ? 2 : 3;
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line, i) => {
    const numbers = line.split(/[\s,;]+/).filter(Boolean).map(Number);
    if (numbers.length < need || numbers.some((n) => !Number.isFinite(n)))
      throw new Error(`Line ${i + 1} of the points, “${line}”, is not ${need} numbers.`);
    return numbers.slice(0, need);
  });
}

class ToolsPart {
  constructor(kota, state) {
    Object.assign(this, { kota, state, own: state.tool in questions ? state.tool : "pick" });
    this.clicked = null;
    this.work = new AbortController();
    this.build();
    state.on("tool", (tool) => this.show(tool));
    state.on("clicked", (clicked) => this.click(clicked));
    state.on("locale", () => this.reset());
    state.on("layer", () => this.layers());
    state.on("revision", () => this.age());
    at("tab-tools").addEventListener("click", () => state.set("tool", this.own));
    this.show(state.tool);
  }

  build() {
    this.buttons = Object.entries(questions).map(([id, question]) => {
      const button = make("button", { type: "button", textContent: question.label,
        title: question.hint });
      button.dataset.tool = id;
      button.setAttribute("aria-describedby", "tool-hint");
      button.addEventListener("click", () => this.state.set("tool", id));
      return button;
    });
    const row = make("div", { className: "row tools" }, ...this.buttons);
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", "Questions");
    this.hint = make("p", { id: "tool-hint", className: "quiet" });
    this.form = make("form", { noValidate: true });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask().catch((error) => this.fail(error));
    });
    this.form.addEventListener("change", () => this.sift());
    for (const part of [row, this.form]) {
      for (const name of ["focusin", "pointerover"])
        part.addEventListener(name, (event) => this.help(event.target.closest("[title]")?.title));
      for (const name of ["focusout", "pointerout"]) part.addEventListener(name, () => this.help());
    }
    this.result = make("div", { id: "tool-answer" });
    this.result.setAttribute("aria-live", "polite");
    const kept = make("ul", { id: "standing" });
    kept.setAttribute("aria-label", "Questions that stand");
    this.standing = new Standing(this.kota, this.state, kept);
    at("panel-tools").replaceChildren(row, this.hint, this.form, this.result, kept);
    this.memory = {};
  }

  /** Help of what has the mouse or the focus of the keyboard; without a text, of the chosen tool. */
  help(text) {
    this.hint.textContent = text || this.question.hint;
  }

  get question() {
    return questions[this.own];
  }

  /** How many points the question takes, with what is chosen now. */
  get counts() {
    const { points } = this.question;
    return typeof points === "function" ? points(Object.fromEntries(this.question.fields.map((f) =>
      [f.name, this.controls[f.name].value]))) : points;
  }

  show(tool) {
    for (const button of this.buttons)
      button.setAttribute("aria-pressed", button.dataset.tool === tool);
    if (!(tool in questions)) return;
    const another = tool !== this.own || !this.controls;
    this.own = tool;
    if (!another) return;
    this.help();
    this.fill();
    this.clear();
  }

  /** The form of the tool, with what had been chosen in it before. */
  fill() {
    const { question, own } = this;
    this.controls = this.memory[own] ??=
      Object.fromEntries(question.fields.map((f) => [f.name, control(f)]));
    const labels = question.fields.map((f) => make("label", { title: f.title ?? "" }, `${f.label} `,
      this.controls[f.name]));
    this.only = make("select", { name: "layer",
      title: "one layer alone, or what the call means without" });
    this.points = make("textarea", { rows: Math.min(4, this.counts[1]), spellcheck: false,
      placeholder: question.flat ? "x y" : "x y z" });
    const typed = make("label", { className: "points", hidden: own === "pick",
      title: "clicked, or typed in metres of the locale's frame" },
      typeof question.points === "function" || question.points[1] > 1 ? "points, one a line" :
        "point", this.points);
    const clear = make("button", { type: "button", textContent: "Clear",
      title: "forget the points and the answer" });
    clear.addEventListener("click", () => this.clear());
    this.form.replaceChildren(make("div", { className: "row" }, ...labels,
      make("label", {}, "layer ", this.only)), typed, make("div", { className: "row" },
      make("button", { textContent: "Ask", className: "primary",
        title: "send the request again" }), clear));
    this.labels = labels;
    this.sift();
    this.layers();
  }

  /** Hides what has no meaning with what is chosen: a field's `with` names another and its values. */
  sift() {
    this.question.fields.forEach((field, i) => {
      const [name, ...values] = field.with ?? [];
      this.labels[i].hidden = Boolean(name) && !values.includes(this.controls[name].value);
    });
  }

  /** The layers to choose from, where there is a choice. */
  layers() {
    const list = this.state.locale?.layers ?? [];
    if (!this.only) return;
    this.only.replaceChildren(new Option("any", ""), ...list.map((layer) => new Option(layer.id)));
    this.only.parentElement.hidden = list.length < 2;
  }

  clear() {
    this.work.abort();
    this.clicked = null;
    this.points.value = "";
    this.answered = null;
    this.result.replaceChildren();
    setMarks(OWNER, []);
  }

  reset() {
    this.clear();
    this.layers();
  }

  values() {
    const values = Object.fromEntries(this.question.fields.map((f) =>
      [f.name, valueOf(f, this.controls[f.name])]));
    const { state } = this;
    const fields = state.locale.layers.filter((layer) => layer.kind === "heightfield");
    values.locale = state.locale;
    values.layer = this.only.value || undefined;
    values.field = values.layer ?? (fields.length > 1 ? state.layer?.id : undefined);
    values.size = (state.look?.width_m ?? 100) / 25;
    return values;
  }

  async click(clicked) {
    if (!clicked || !(this.state.tool in questions) || !this.state.locale) return;
    this.work.abort();
    this.work = new AbortController();
    const { signal } = this.work;
    try {
      this.clicked = clicked;
      if (this.own !== "pick" && !(await this.takePoint(clicked, signal))) return;
      await this.ask();
    } catch (error) {
      if (!signal.aborted) this.fail(error);
    }
  }

  /** Adds the clicked place to the points; false when there are too few yet. */
  async takePoint(clicked, signal) {
    const { question } = this, [least, most] = this.counts;
    const place = await this.placeOf(clicked, signal);
    let lines = this.points.value.split("\n").filter((line) => line.trim());
    if (lines.length >= most) lines = [];
    const lift = this.values()[question.lifts?.[lines.length]] ?? 0;
    const up = upAt(this.state.locale, place);
    const point = question.flat ? place.slice(0, 2) : place.map((v, i) => v + lift * up[i]);
    lines.push(point.map((v) => +v.toFixed(3)).join(" "));
    this.points.value = lines.join("\n");
    this.points.rows = Math.max(1, Math.min(6, most, lines.length + 1));
    if (lines.length >= least) return true;
    this.say(`${least - lines.length} more to click.`);
    setMarks(OWNER, [{ kind: "point", at: point.length > 2 ? point : place }]);
    return false;
  }

  /** Where a question goes: while patches live, to the ground and the bodies as they move. */
  pathOf(path) {
    if (path.startsWith("/v1/")) return path;
    const isLive = this.state.patches.size > 0 && LIVE.includes(path);
    return `/v1/locales/${this.state.locale.id}${path}${isLive ? "?live=here" : ""}`;
  }

  /** Where a click meets the ground; on the map there is a place over holes, too. */
  async placeOf(clicked, signal) {
    const { path, body } = questions.pick.request([], {}, clicked), { locale } = this.state;
    const answer = (await this.kota.post(this.pathOf(path), body, { signal, quiet: true })).json;
    if (answer.status === "hit") return answer.hit.point;
    const top = locale.bounds?.max[2] ?? 0;
    if (clicked.view === "map") return [clicked.point[0], clicked.point[1], top];
    throw new Error("This click meets no ground.");
  }

  /** Asks with what the form holds. */
  async ask() {
    const { question, state } = this;
    if (!state.locale) throw new Error("There is no locale to ask.");
    const points = this.own === "pick" ? [] : pointsOf(this.points.value, question.flat);
    if (this.own === "pick" && !this.clicked) throw new Error("Click on the ground first.");
    const [least, most] = this.counts, words = least > 1 ? `${least} points` : "a point";
    if (this.own !== "pick" && points.length < least)
      throw new Error(`${question.label} needs ${words}: click on the ground, or type.`);
    points.splice(most);
    const values = this.values(), asked = question.request(points, values, this.clicked);
    this.work.abort();
    this.work = new AbortController();
    const { signal } = this.work, path = this.pathOf(asked.path);
    const slow = setTimeout(() => this.say("The daemon takes its time…"), SLOW_MS);
    try {
      const answer = (await this.kota.post(path, asked.body, { signal })).json;
      if (signal.aborted) return;
      this.answer(answer, question.read(answer, points, values), points);
      if (canStand(asked)) this.result.append(this.keeper(question, points, values, asked));
    } catch (error) {
      if (!signal.aborted) this.fail(error);
    } finally {
      clearTimeout(slow);
    }
  }

  answer(answer, { rows, marks, items }, points) {
    const table = make("table", {}, make("tbody", {}, ...rows.map(([name, text]) =>
      make("tr", {}, Object.assign(make("th", { textContent: name }), { scope: "row" }),
        make("td", { textContent: text })))));
    const { locale, revision } = answer.locale ? answer : answer.results?.[0] ?? {};
    this.answered = locale ? { locale, revision } : null;
    this.ageLine = make("p", { className: "quiet" });
    this.result.replaceChildren(...(items ? [this.plot(items, marks)] : []), table, this.ageLine);
    this.age();
    this.result.scrollIntoView({ block: "nearest" });
    const corners = points.length > 1 || !marks.length ? points.map((point) => ({ kind: "point",
      at: point.length > 2 ? point : [...point, 0], color: "quiet" })) : [];
    setMarks(OWNER, items ? marks : [...corners, ...marks]);
  }

  /** The button that makes a pin of what was asked. */
  keeper(question, points, values, asked) {
    const button = make("button", { type: "button", textContent: "Keep as a pin",
      title: "the answer stays on the ground, and changes as the ground does" });
    button.addEventListener("click", () => {
      button.disabled = true;
      this.standing.add(question, points, values, asked).catch(tell);
    });
    return button;
  }

  plot(items, marks) {
    return profilePlot(items, (item) => {
      const [x, y, z] = item.point, ok = item.status === "ok";
      setMarks(OWNER, [...marks, { kind: "point", at: [x, y, z ?? 0], color: ok ? "accent" : "bad",
        label: ok ? `${z.toFixed(2)} m` : item.status }]);
    });
  }

  /** Which revision answered, and whether there is a newer one. */
  age() {
    if (!this.answered || !this.ageLine) return;
    const { locale, revision } = this.answered, now = this.state.revision;
    const isOld = locale === this.state.locale?.id && now > revision;
    this.ageLine.textContent = `Answered at revision ${revision} of ${locale}` +
      `${isOld ? `; it is at ${now} now, ask again.` : "."}`;
  }

  say(text, isBad = false) {
    this.answered = null;
    this.result.replaceChildren(make("p", { className: isBad ? "bad" : "quiet",
      textContent: text }));
  }

  fail(error) {
    if (error?.name === "AbortError") return;
    setMarks(OWNER, []);
    this.say(error.message, true);
  }
}

/** @param {import("./kota.js").Kota} kota @param {typeof import("./state.js").state} state */
export function start(kota, state) {
  new ToolsPart(kota, state);
}
