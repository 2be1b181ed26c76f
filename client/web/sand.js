/**
 * The panel of granular ground: a square of the heightfield becomes granules, something is dropped,
 * and what moved is written back as an edit.
 *
 * While the panel is open clicks choose the middle of the next patch (tool "sand"); it is drawn as
 * it would lie, and it is made by a button. Or clicks throw a body (throw.js). The patch that is chosen in the list is followed by its
 * stream: states as they come, poses as lines of each body's box over both views. Its numbers are
 * asked once a second, its picture at most twice, and less often where the daemon takes long.
 */
import { setMarks } from "/web/marks.js";
import { barrelObj, bodyMarks, drawStates, ended, granuleCount, ledgerRows, patchMark, patchRows,
  resultWords } from "/web/sandshow.js";
import { tell } from "/web/state.js";
import { startThrow } from "/web/throw.js";
import { choice, claimClicks, fillTable, hiddenWords, labelled, make, makeSvg, middleOf,
  numberField, numberOf, onPanel, placeInSight, shortNumber, writeError } from "/web/widgets.js";

const numbersMs = 1000, pictureMs = 500, listMs = 4000, restLimitMs = 3600000;
const diameters = { fine: 0.2225, medium: 0.445, coarse: 0.89 };
const builtIn = ":barrel";

// ---- elements -----------------------------------------------------------------------------------

function makeForm() {
  const positive = { min: 0.01, required: true };
  return {
    x: numberField("sand-x", 0, { required: true }),
    y: numberField("sand-y", 0, { required: true }),
    width: numberField("sand-width", 8, positive), length: numberField("sand-length", 8, positive),
    depth: numberField("sand-depth", 2, positive),
    scale: choice("sand-scale", [["coarse", "coarse, 0.89 m"], ["medium", "medium, 0.44 m"],
      ["fine", "fine, 0.22 m"], ["auto", "chosen by the daemon"]]),
    model: choice("sand-model", [[builtIn, "a barrel"], ["", "nothing"]]),
    file: make("input", { type: "file", id: "sand-file", accept: ".obj,model/obj" }),
    radius: numberField("sand-radius", 0.7, positive),
    density: numberField("sand-density", 2000, positive),
    above: numberField("sand-above", 2, { min: 0, max: 20, required: true }),
    speed: numberField("sand-speed", 6, { min: 0, max: 100, required: true }),
    material: choice("sand-material", [["", "the daemon's"], ...["sand", "pebbles", "rubble", "snow"]
      .map((name) => [name, name])]), count: make("span", { className: "quiet" }),
    create: make("button", { id: "sand-create", className: "primary",
      title: "the square becomes granules, and what falls is let go" }, "Make it granules"),
    device: make("p", { id: "sand-device", className: "quiet" }),
  };
}

function makeShow() {
  return {
    list: choice("sand-list", []),
    drop: make("button", { id: "sand-drop", title: "what is chosen above, into this patch" },
      "Drop one more"),
    push: make("button", { id: "sand-push", title: "up and aside, at 3 m/s" }, "Push the last"),
    write: make("button", { id: "sand-write",
      title: "it comes to rest, and its surface becomes the ground" }, "Write back"),
    discard: make("button", { id: "sand-discard",
      title: "the patch ends, and the ground stays as it was" }, "Throw away"),
    states: makeSvg("svg", { viewBox: "0 0 356 106", class: "states", id: "sand-states",
      role: "img" }),
    large: make("button", { id: "sand-large", title: "the picture in the place of the ground",
      "aria-pressed": "false" }, "Large picture"),
    picture: make("img", { id: "sand-view", alt: "The patch as it looks now", hidden: true }),
    result: make("p", { id: "sand-result", role: "status" }),
    numbers: make("table", { id: "sand-numbers" }), ledger: make("table", { id: "sand-ledger" }),
  };
}

function lay(form, show) {
  const row = (...parts) => make("div", { className: "row" }, ...parts);
  form.whole = make("details", { open: true, id: "sand-form" },
    make("summary", {}, "Make a square of granules"),
    row(labelled("x", form.x, "m", "its middle"), labelled("y", form.y, "m", "its middle")),
    row(labelled("Width", form.width, "m", "along x"),
      labelled("Length", form.length, "m", "along y")),
    row(labelled("Depth", form.depth, "m", "of the granules below the ground"),
      labelled("Granules", form.scale, "", "their diameter: coarse ones cost least")),
    row(form.count, labelled("Material", form.material, "", "of the granules")),
    row(labelled("What falls", form.model, "", "a model of the daemon")),
    row(labelled("or a file", form.file, "", "a closed mesh, OBJ, which becomes a model")),
    row(labelled("Radius", form.radius, "m", "of the barrel"),
      labelled("Density", form.density, "kg/m³", "of the body; sand has 2000")),
    row(labelled("Above ground", form.above, "m", "where it starts"),
      labelled("Speed", form.speed, "m/s", "downwards, at the start")),
    row(form.create));
  show.frame = make("div", { id: "sand-frame" }, show.picture);
  document.getElementById("panel-sand").append(form.device, form.whole,
    make("h2", {}, make("label", { title: "the patches of this locale" }, "Patch ", show.list)), show.states,
    row(show.drop, show.push, show.write, show.discard, show.large), show.result, show.frame,
    show.numbers, make("h2", {}, "Mass ledger"), show.ledger);
}

/** The picture in the place of the ground, until the button or Escape puts it back. */
function startLarge(show) {
  const set = (isLarge) => {
    show.large.setAttribute("aria-pressed", isLarge);
    show.picture.classList.toggle("large", isLarge);
    (isLarge ? document.getElementById("stage") : show.frame).append(show.picture);
  };
  show.large.addEventListener("click", () => set(!show.picture.classList.contains("large")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") set(false);
  });
  return set;
}

/** What size a picture is asked in. */
function pictureSize(show) {
  if (!show.picture.classList.contains("large")) return [480, 300];
  const stage = document.getElementById("stage");
  return [Math.min(1920, Math.max(16, stage.clientWidth)),
    Math.min(1080, Math.max(16, stage.clientHeight))];
}

// ---- models -------------------------------------------------------------------------------------

/** Models by id, as the daemon has them; the choice offers them. */
class Models {
  constructor(kota, form) {
    this.kota = kota;
    this.form = form;
    this.byId = new Map();
  }

  async read() {
    const { models } = (await this.kota.get("/v1/models", { quiet: true })).json;
    const chosen = this.form.model.value;
    this.byId = new Map(models.map((model) => [model.id, model]));
    this.form.model.replaceChildren(new Option("a barrel", builtIn), new Option("nothing", ""),
      ...models.map((model) => new Option(`${model.id}, ${model.triangles} triangles`, model.id)));
    this.form.model.value = chosen === "" || this.byId.has(chosen) ? chosen : builtIn;
  }

  async put(id, bytes) {
    await this.kota.call("PUT", `/v1/models/${id}`, { body: bytes, type: "model/obj" });
    await this.read();
    return this.byId.get(id);
  }

  /** The chosen model; the barrel is made where the daemon has none so thick. Null: nothing. */
  async chosen() {
    const id = this.form.model.value;
    if (id !== builtIn) return id ? this.byId.get(id) : null;
    const radius = numberOf(this.form.radius), name = `barrel-${Math.round(1000 * radius)}mm`;
    return this.byId.get(name) ??
      await this.put(name, new TextEncoder().encode(barrelObj(radius)));
  }

  async upload(file) {
    const id = file.name.replace(/\.obj$/i, "").replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 64);
    if (!id) throw new Error(`${file.name}: its name has no letter or digit to call the model by.`);
    await this.put(id, new Uint8Array(await file.arrayBuffer()));
    this.form.model.value = id;
  }
}

/** A body as the API takes it, over the ground at [x, y]; null where nothing shall fall. */
async function bodyAt(kota, state, form, models, [x, y]) {
  const model = await models.chosen();
  if (!model) return null;
  const query = new URLSearchParams({ x, y, layer: state.layer.id });
  const ground = (await kota.get(`/v1/locales/${state.locale.id}/height?${query}`,
    { quiet: true })).json;
  if (ground.height === null || ground.height === undefined)
    throw new Error(`There is no ground at ${x}, ${y} that something could fall on.`);
  const z = ground.height + numberOf(form.above) - model.bounds.min[2];
  return { model: model.id, position: [x, y, z], velocity: [0, 0, -numberOf(form.speed)],
    density: numberOf(form.density) };
}

// ---- one patch, followed ------------------------------------------------------------------------

const optionWords = (patch) => `${patch.id}, ${patch.state}`;

class Follower {
  constructor(kota, show, models, onEnd) {
    Object.assign(this, { kota, show, models, onEnd, patch: null, path: "", feed: null,
      control: null, history: [], pictureUrl: "", isShown: false });
  }

  /** Follows another patch, or none. */
  open(patch) {
    this.close();
    this.patch = patch;
    if (patch) {
      this.path = `/v1/locales/${patch.locale}/patches/${patch.id}`;
      this.control = new AbortController();
      this.history = [{ state: patch.state, at: patch.age_s }];
      this.feed = this.kota.follow(`${this.path}/events`, {
        onEvent: (name, data) => this.hear(name, data) });
      this.runNumbers(this.control.signal);
      this.runPicture(this.control.signal);
    }
    this.draw();
  }

  close() {
    this.feed?.close();
    this.control?.abort(new DOMException("another patch is looked at", "AbortError"));
    this.feed = this.control = this.patch = null;
    this.history = [];
    this.show.picture.hidden = true;
  }

  get isLive() {
    return this.patch !== null && !ended.includes(this.patch.state);
  }

  hear(name, data) {
    if (!this.patch || data.id !== this.patch.id) return;
    if (name === "poses") {
      this.patch.kinetic_energy_j = data.kinetic_energy_j;
      this.patch.time_s = data.time_s;
      const poses = new Map(data.bodies.map((pose) => [pose.body, pose]));
      this.patch.bodies = this.patch.bodies.filter((one) => one.held || poses.has(one.body))
        .map((one) => Object.assign(one, poses.get(one.body)));
    } else if (name === "state") {
      if (this.history.at(-1)?.state !== data.state)
        this.history.push({ state: data.state, at: data.at_s });
      else this.history.at(-1).at = data.at_s;
      this.patch.state = data.state;
      this.show.list.selectedOptions[0]?.replaceChildren(optionWords(this.patch));
      if (ended.includes(data.state)) this.finish();
    }
    this.draw();
  }

  /** The last numbers, then nothing more is asked. */
  async finish() {
    const own = this.patch, control = this.control;
    this.feed?.close();
    await this.readNumbers(undefined).catch(tell);
    await this.readPicture(control.signal).catch(() => {});
    control.abort(new DOMException("the patch has ended", "AbortError"));
    if (own === this.patch) this.onEnd(own);
  }

  async readNumbers(signal) {
    const own = this.patch;
    const fresh = (await this.kota.get(this.path, { quiet: true, signal })).json;
    if (own === this.patch && own) this.draw(Object.assign(own, fresh));
  }

  async runNumbers(signal) {
    while (!signal.aborted) {
      await new Promise((done) => setTimeout(done, numbersMs));
      if (signal.aborted || !this.isShown) continue;
      await this.readNumbers(signal).catch((error) => error.status === 404 ? this.open(null) :
        tell(error));
    }
  }

  async runPicture(signal) {
    while (!signal.aborted) {
      const began = performance.now();
      if (this.isShown && this.isLive) await this.readPicture(signal).catch(() => {});
      const took = performance.now() - began;
      await new Promise((done) => setTimeout(done, Math.max(pictureMs - took, 2 * took)));
    }
  }

  async readPicture(signal) {
    const [width, height] = pictureSize(this.show);
    const answer = await this.kota.get(`${this.path}/view.png?width=${width}&height=${height}`,
      { quiet: true, signal });
    const old = this.pictureUrl;
    this.pictureUrl = URL.createObjectURL(new Blob([answer.buffer], { type: "image/png" }));
    this.show.picture.src = this.pictureUrl;
    await this.show.picture.decode().catch(() => {});
    this.show.picture.hidden = signal.aborted;
    if (old) URL.revokeObjectURL(old);
  }

  draw() {
    const { show, patch } = this;
    drawStates(show.states, this.history);
    fillTable(show.numbers, patch ? patchRows(patch) : []);
    fillTable(show.ledger, ledgerRows(patch?.mass_ledger));
    show.result.textContent = patch ? resultWords(patch) : "No patch is looked at.";
    for (const button of [show.drop, show.push, show.write, show.discard])
      button.disabled = !this.isLive;
    show.push.disabled ||= !patch.bodies.length;
    setMarks("sand", patch ? [patchMark(patch), ...(this.isLive ? patch.bodies : []).flatMap(
      (body) => bodyMarks(body, this.models.byId.get(body.model)))] : []);
  }
}

// ---- the panel ----------------------------------------------------------------------------------

/** The list of a locale's patches; what is chosen is followed. */
function startList(kota, state, show, follower) {
  async function read(wanted) {
    const locale = state.locale;
    if (!locale) return;
    const { patches } = (await kota.get(`/v1/locales/${locale.id}/patches`, { quiet: true })).json;
    if (state.locale?.id !== locale.id) return;
    const now = wanted ?? follower.patch?.id;
    const chosen = patches.find((patch) => patch.id === now) ??
      patches.findLast((patch) => !ended.includes(patch.state)) ?? patches.at(-1) ?? null;
    show.list.replaceChildren(...patches.map((patch) =>
      new Option(optionWords(patch), String(patch.id))));
    show.list.disabled = !patches.length;
    if (chosen) show.list.value = String(chosen.id);
    if (chosen?.id !== follower.patch?.id) follower.open(chosen);
  }
  show.list.addEventListener("change", () => read(Number(show.list.value)).catch(tell));
  state.on("locale", () => {
    follower.open(null);
    if (follower.isShown) read().catch(tell);
  });
  return read;
}

/** Runs a write by a button; it is off meanwhile, and a refusal is shown in words. */
function onPress(state, button, after, work) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    state.set("message", null);
    try {
      await work();
    } catch (error) {
      tell(writeError(error));
    } finally {
      button.disabled = false;
      after();
    }
  });
}

function startButtons(kota, state, form, show, models, follower, readList) {
  const draw = () => follower.draw();
  onPress(state, form.create, () => {}, async () => {
    if (!state.layer) throw new Error("This locale has no heightfield that could become granules.");
    const center = [numberOf(form.x), numberOf(form.y)];
    const body = await bodyAt(kota, state, form, models, center);
    const wanted = { layer: state.layer.id, center,
      size: [numberOf(form.width), numberOf(form.length)], depth: numberOf(form.depth),
      scale: form.scale.value, material: form.material.value || undefined,
      bodies: body ? [body] : [] };
    const made = (await kota.post(`/v1/locales/${state.locale.id}/patches`, wanted)).json;
    follower.open(made);
    form.whole.open = false;
    await readList(made.id);
  });
  onPress(state, show.drop, draw, async () => {
    const body = await bodyAt(kota, state, form, models, follower.patch.center);
    if (!body) throw new Error("Nothing is chosen to fall: choose a model above.");
    Object.assign(follower.patch, (await kota.post(`${follower.path}/bodies`, body)).json);
  });
  onPress(state, show.push, draw, async () => {
    await kota.call("PATCH", `${follower.path}/bodies/${follower.patch.bodies.at(-1).body}`,
      { json: { velocity: [2, 0, 2.2] } });
  });
  // it answers when all is still, which may take the processor long
  onPress(state, show.write, draw, () => kota.call("DELETE", follower.path,
    { timeoutMs: restLimitMs }));
  onPress(state, show.discard, draw, () => kota.call("DELETE", `${follower.path}?discard=true`));
  const upload = (files) => {
    if (files.length) models.upload(files[0]).catch((error) => tell(writeError(error)));
  };
  form.file.addEventListener("change", () => upload(form.file.files));
  const panel = document.getElementById("panel-sand");
  panel.addEventListener("dragover", (event) => event.preventDefault());
  panel.addEventListener("drop", (event) => {
    event.preventDefault();
    upload(event.dataTransfer.files);
  });
}

/** How many granules it would be, and where it would lie. */
function startPreview(state, form, device, thrower) {
  const draw = () => {
    const size = [form.width.valueAsNumber, form.length.valueAsNumber];
    const diameter = diameters[form.scale.value] ?? diameters.medium;
    const count = granuleCount(size, form.depth.valueAsNumber, diameter);
    const most = device.granules_max;
    form.count.textContent = Number.isFinite(count) ? `about ${shortNumber(count)}` +
      (most ? ` of at most ${shortNumber(most)}` : "") : "";
    form.count.classList.toggle("bad", most > 0 && count > most);
    const center = [form.x.valueAsNumber, form.y.valueAsNumber];
    const isWhole = [...center, ...size].every(Number.isFinite);
    setMarks("sand-next", state.tool === "sand" && !thrower.isOn && state.layer && isWhole ?
      [{ ...patchMark({ center, size, state: "" }), color: "accent", fill: false }] : []);
  };
  for (const field of [form.x, form.y, form.width, form.length, form.depth, form.scale])
    field.addEventListener("input", draw);
  state.on("clicked", (clicked) => {
    if (state.tool !== "sand" || thrower.isOn || !clicked?.point) return;
    [form.x.value, form.y.value] = clicked.point.map((value) => String(Number(value.toFixed(2))));
    draw();
  });
  state.on("tool", draw);
  state.on("layer", (layer) => {
    if (!layer) return draw();
    [form.x.value, form.y.value] = middleOf(layer).map((value) => String(Math.round(value)));
    [form.width.value, form.length.value] = layer.spacing.map(
      (spacing) => String(Math.max(8, 9 * spacing)));
    draw();
  });
  return draw;
}

/** @param {import("/web/kota.js").Kota} kota @param {typeof import("/web/state.js").state} state */
export function start(kota, state) {
  const form = makeForm(), show = makeShow(), models = new Models(kota, form), device = {};
  const follower = new Follower(kota, show, models, (patch) => {
    state.set("message", { text: resultWords(patch), isError: patch.state === "failed" });
    readList().catch(tell);
  });
  lay(form, show);
  const setLarge = startLarge(show);
  const readList = startList(kota, state, show, follower);
  startButtons(kota, state, form, show, models, follower, readList);
  const thrower = startThrow(kota, state, models, readList);
  const preview = startPreview(state, form, device, thrower);
  document.getElementById("throw-click").addEventListener("input", preview);
  follower.draw();

  function deviceWords() {
    if (device.state === "closed") return "Ready: the first patch opens the device.";
    if (device.state === "none") return `No patch can be made here: ${device.reason}.`;
    return `Simulated by ${device.name}${device.software ? ", on the processor" : ""}.`;
  }

  async function look() {
    let hidden = null;
    try {
      Object.assign(device, (await kota.get("/v1/stats", { quiet: true })).json.patches.device);
    } catch (error) { // a proxy may keep the numbers to itself; a patch can be asked for all the same
      hidden = hiddenWords(error);
      if (!hidden) throw error;
    }
    form.device.textContent = hidden ?? deviceWords();
    form.material.options[0].text = `the daemon's${device.engine ? `, ${device.material}` : ""}`;
    form.create.disabled = !hidden && device.state === "none";
    preview();
    await readList();
  }
  claimClicks(state, "panel-sand", "sand");
  let timer = 0;
  onPanel("panel-sand", (isOpen) => {
    clearInterval(timer);
    follower.isShown = isOpen;
    if (!isOpen) return setLarge(false);
    placeInSight(state.look, form);
    models.read().then(thrower.readModels).then(look).catch(tell);
    timer = setInterval(() => look().catch(tell), listMs);
  });
}
