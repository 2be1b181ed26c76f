/**
 * The part of the sand's panel that throws: a body at the place that is clicked, as an impact. In
 * the 3D view it comes from the eye, on the map from above. The daemon makes its crater at once, for
 * everybody and however far away; where granules refine it their patch is followed by the panel, and
 * the fate of the impact is asked until it is written. Nothing is drawn in advance: the ground comes
 * by the feed, the body by the patch.
 */
import { setMarks } from "/web/marks.js";
import { tell } from "/web/state.js";
import { choice, labelled, make, numberField, numberOf, ringOfRect, shortNumber, writeError } from
  "/web/widgets.js";

const ball = ":ball";
const aboveM = 30; // of what is thrown from above, over the ground that the map shows
const fateMs = 500;

function makeForm() {
  return {
    click: choice("throw-click", [["middle", "chooses the middle of a square"],
      ["throw", "throws a body there"]]),
    what: choice("throw-what", [[ball, "a ball"]]),
    radius: numberField("throw-radius", 1, { min: 0.01, max: 100, required: true }),
    density: numberField("throw-density", 2500, { min: 0.1, required: true }),
    speed: make("input", { type: "range", id: "throw-speed", min: 1, max: 150, value: "20" }),
    now: make("output", { htmlFor: "throw-speed" }),
    again: make("button", { id: "throw-again", disabled: true,
      title: "the same body, from the same place, at the same one" }, "Throw again"),
    result: make("p", { id: "throw-result", role: "status" }),
  };
}

function lay(form) {
  const row = (...parts) => make("div", { className: "row" }, ...parts);
  form.radiusLabel = labelled("Radius", form.radius, "m", "of the ball");
  const speed = labelled("Speed", form.speed, "", "of the body when it is let go");
  speed.append(form.now);
  document.getElementById("sand-form").after(make("details", { open: true, id: "throw-form" },
    make("summary", {}, "Throw something"),
    row(labelled("A click", form.click, "", "on the ground, while this panel is open")),
    row(labelled("What flies", form.what, "", "a ball, or a model of the daemon"), form.radiusLabel),
    row(labelled("Density", form.density, "kg/m³", "of the body; sand has 2000"), speed),
    row(form.again)), form.result);
}

/** From where, and along what unit vector: from the eye, or along gravity where there is none. */
function wayOf({ point, camera }, gravity) {
  if (!camera) return { from: point.map((v, i) => v - aboveM * gravity[i]), along: gravity };
  const way = point.map((v, i) => v - camera.eye[i]), length = Math.hypot(...way);
  return { from: camera.eye, along: way.map((v) => v / length), eye: camera.eye };
}

/** An impact's question, for a click that has a point. */
function questionOf(form, models, clicked, locale) {
  const { from, along, eye } = wayOf(clicked, locale.gravity ?? [0, 0, -1]);
  const model = models.byId.get(form.what.value), radius = numberOf(form.radius);
  const volume = model ? model.volume_m3 : 4 / 3 * Math.PI * radius ** 3;
  return { ...(model ? { model: model.id } : { radius }), mass: volume * numberOf(form.density),
    position: from, velocity: along.map((v) => v * form.speed.valueAsNumber),
    ...(eye ? { observer: eye } : {}) };
}

/** What became of an impact, in a sentence. */
function fateWords(fate) {
  if (fate.state === "accepted")
    return `Impact ${fate.impact}: a crater, which the granules of patch ${fate.patch} refine.`;
  if (fate.how === "patch")
    return `Impact ${fate.impact}: written by granules as revision ${fate.revision}.`;
  return `Impact ${fate.impact}: a crater${fate.reason ? `. No granules: ${fate.reason}` : ""}.`;
}

/**
 * @param {import("/web/kota.js").Kota} kota
 * @param {typeof import("/web/state.js").state} state
 * @param {{byId: Map<string, object>}} models
 * @param {(patch: number) => Promise<void>} follow shows a patch
 * @returns {{isOn: boolean, readModels: () => void}} isOn: clicks throw
 */
export function startThrow(kota, state, models, follow) {
  const form = makeForm();
  let last = null, round = 0;
  lay(form);
  const drawSpeed = () => {
    form.now.textContent = ` ${shortNumber(form.speed.valueAsNumber)} m/s`;
  };
  form.speed.addEventListener("input", drawSpeed);
  drawSpeed();
  form.what.addEventListener("input", () => {
    form.radiusLabel.hidden = form.what.value !== ball;
  });

  function show(locale, fate) {
    const layer = locale.layers.find((one) => one.id === fate.layer);
    form.result.textContent = fateWords(fate);
    setMarks("throw", [...(layer && fate.rect ? [{ kind: "area", ring: ringOfRect(layer, fate.rect),
      color: fate.state === "written" ? "good" : "accent" }] : []),
    ...(fate.point ? [{ kind: "point", at: fate.point }] : [])]);
  }

  /** Until it is written, another body is thrown, or another locale is looked at. */
  async function watch(locale, fate, own) {
    while (fate.state !== "written" && own === round) {
      await new Promise((done) => setTimeout(done, fateMs));
      try {
        fate = await kota.impact(locale.id, fate.impact, { quiet: true });
      } catch (error) {
        if (error.status) throw error;
        continue; // nobody answered in time: the fate is asked again
      }
      if (own === round) show(locale, fate);
    }
  }

  async function hit(question) {
    const { locale } = state, own = ++round;
    form.again.disabled = true;
    try {
      const fate = await kota.postImpact(locale.id, question);
      state.set("message", null);
      if (own !== round) return;
      show(locale, fate);
      watch(locale, fate, own).catch(tell);
      if (fate.patch) follow(fate.patch).catch(tell);
    } catch (error) {
      form.result.textContent = "";
      tell(writeError(error));
    } finally {
      form.again.disabled = !last;
    }
  }

  const part = { get isOn() { return form.click.value === "throw"; },
    readModels() {
      const { value } = form.what;
      form.what.replaceChildren(new Option("a ball", ball),
        ...[...models.byId.keys()].map((id) => new Option(id, id)));
      form.what.value = models.byId.has(value) ? value : ball;
      form.radiusLabel.hidden = form.what.value !== ball;
    } };
  state.on("clicked", (clicked) => {
    if (state.tool !== "sand" || !part.isOn || !clicked) return;
    if (!clicked.point || clicked.point[2] === null)
      return tell(new Error("There is no ground under that click."));
    try {
      last = questionOf(form, models, clicked, state.locale);
      hit(last);
    } catch (error) {
      tell(error);
    }
  });
  form.again.addEventListener("click", () => hit(last));
  state.on("locale", () => {
    round++;
    last = null;
    form.again.disabled = true;
    form.result.textContent = "";
  });
  return part;
}
