/**
 * The inspector's frame: finds the locales, keeps to the change feed, switches views and panels.
 * The parts (see state.js) are started here; one that cannot start says why and leaves the others.
 */
import { readAddress, writeAddress } from "/web/address.js";
import { copyAs, names } from "/web/copyas.js";
import { Answer, Kota } from "/web/kota.js";
import { standing, standingsOf } from "/web/poses.js";
import { state, tell } from "/web/state.js";

const at = (id) => document.getElementById(id);
const gone = new AbortController(); // the page is left: what is under way is no failure
addEventListener("pagehide", () => gone.abort(new DOMException("the page is left", "AbortError")));
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
export const kota = new Kota("", { token: sessionStorage.getItem("kota-token") ?? "",
  signal: gone.signal });
kota.onCall = (what) => state.set("call", what);

// ---- what was asked, what came --------------------------------------------------------------

/** The last request in the language of the panel. */
const copied = () => copyAs(state.call?.asked ?? null, at("copy-as").value);
options(at("copy-as"), names.map((name) => [name, name]),
  names.includes(localStorage.getItem("kota-copy-as")) ? localStorage.getItem("kota-copy-as") : names[0]);
at("copy-as").addEventListener("change", () => {
  localStorage.setItem("kota-copy-as", at("copy-as").value);
  if (state.call) at("curl").textContent = copied();
});

/** The daemon's time and the rest of the way apart. @param {Answer} answer */
function timeOf(answer) {
  const server = answer.serverMs, all = `${answer.status}, ${answer.ms.toFixed(1)} ms`;
  return server >= 0 ? `${all}: server ${server.toFixed(3)}, network and page ` +
    `${Math.max(0, answer.ms - server).toFixed(1)}` : all;
}

state.on("call", (what) => {
  const text = what instanceof Answer || what.text ? shown(what.text) : what.message;
  at("curl").textContent = copied();
  at("answer").textContent = text;
  at("answer").classList.toggle("bad", !(what instanceof Answer));
  at("took").textContent = what instanceof Answer ? timeOf(what) :
    `${what.status || "no answer"}`;
});

/** JSON a member a line, numbers of a vector in one; other text as it is, cut where it is long. */
function shown(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return text.length > 4000 ? `${text.slice(0, 4000)} …` : text;
  }
  const lines = JSON.stringify(value, null, 1)
    .replace(/\[\s+([^[\]{}]*?)\s+\]/g, (_, items) => `[${items.replace(/\s+/g, " ")}]`);
  return lines.length > 20000 ? `${lines.slice(0, 20000)} …` : lines;
}

function copyButton(button, source) {
  at(button).addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(state.call ? source() : "");
      at(button).textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(at(button === "copy-curl" ? "curl" : "answer"));
      at(button).textContent = "Selected";
    }
    setTimeout(() => { at(button).textContent = "Copy"; }, 1200);
  });
}
copyButton("copy-curl", copied);
copyButton("copy-answer", () => state.call.text);

// ---- words ------------------------------------------------------------------------------------

state.on("message", (message) => {
  at("message").hidden = !message;
  at("message").textContent = message?.text ?? "";
  at("message").classList.toggle("bad", Boolean(message?.isError));
});

state.on("feed", (feed) => {
  const words = { open: "live", lost: "reconnecting", closed: "not live" };
  at("feed").textContent = words[feed.state];
  at("feed").className = feed.state === "open" ? "good" : "bad";
  at("feed").title = feed.why;
});

state.on("revision", (revision) => {
  at("revision").textContent = state.locale ? `revision ${revision}` : "";
});

state.on("locale", (locale) => {
  at("maps").hidden = !locale?.geo && !locale?.crs;
  if (locale) at("maps").href = `/v1/locales/${encodeURIComponent(locale.id)}/dem.json`;
});

// ---- locales and layers -----------------------------------------------------------------------

function options(select, items, chosen) {
  select.replaceChildren(...items.map(([value, text]) => new Option(text, value)));
  select.disabled = items.length === 0;
  if (chosen !== undefined) select.value = chosen;
}

/** Offers the heightfields of a locale. @returns {object[]} them */
function showFields(locale, chosen) {
  const fields = locale.layers.filter((layer) => layer.kind === "heightfield");
  options(at("layer"), fields.map((layer) => [layer.id, layer.id]), chosen);
  return fields;
}

let feed = null;

/** Looks at a locale; what had been asked of another one is forgotten. */
export async function openLocale(id) {
  feed?.close();
  feed = null;
  const isChosen = () => at("locale").value === id; // no other one was, while this one's answer came
  let locale;
  try {
    locale = (await kota.get(`/v1/locales/${encodeURIComponent(id)}`, { quiet: true })).json;
  } catch (error) {
    if (!isChosen()) return;
    state.set("locale", null);
    tell(error);
    if (gone.signal.aborted) return;
    const again = () => !state.locale && isChosen() && openLocale(id);
    if (!error.status) setTimeout(again, 3000);
    return;
  }
  if (!isChosen()) return;
  const fields = showFields(locale);
  state.set("marks", []);
  state.poses = standingsOf(locale);
  state.set("locale", locale);
  state.set("layer", fields[0] ?? null);
  state.set("revision", locale.revision);
  state.set("message", fields.length ? null :
    { text: `${id} has no heightfield: only its polygon meshes can be asked.`, isError: false });
  writeAddress({ locale: id });
  follow(locale);
}

let moves = 0; // of the locale, as far as they are known

function follow(locale) {
  let timer = 0, again = 0;
  const reread = () => {
    clearTimeout(timer);
    timer = setTimeout(() => refresh(locale.id), 300);
  };
  moves = locale.transform_seq ?? 0;
  state.set("patches", new Set());
  feed = kota.follow(`/v1/locales/${locale.id}/events`, {
    lastEventId: String(locale.revision),
    onState: (name, why) => {
      if (name === "open") state.set("patches", new Set()); // those that live come first
      state.set("feed", { state: name, why });
    },
    onEvent: (name, data) => {
      if (name === "edit") {
        state.set("revision", Math.max(state.revision, data.revision));
        const rect = data.source === "layer" ? null : data.rect; // its size may be another
        state.set("changed", { rect, revision: data.revision, layer: data.layer,
          source: data.source });
        if (!rect) reread();
      } else if (name === "transform") {
        moves = Math.max(moves, data.transform_seq ?? 0);
        state.poses.set(data.layer, standing(state.locale.gravity, data));
        state.set("moved", data.layer);
        again ||= setTimeout(() => { // the bounds have changed, too
          again = 0;
          refresh(locale.id);
        }, 2000);
      } else if (name === "patch") {
        const others = [...state.patches].filter((patch) => patch !== data.patch);
        state.set("patches", new Set(data.change === "gone" ? others : [...others, data.patch]));
      } else if (name === "resync") {
        state.set("changed", { rect: null, revision: state.revision });
        reread();
      }
    },
  });
}

/** The manifest again, after a change that is none of samples. */
async function refresh(id) {
  if (state.locale?.id !== id) return;
  try {
    const locale = (await kota.get(`/v1/locales/${id}`, { quiet: true })).json;
    const layer = locale.layers.find((l) => l.id === state.layer?.id) ??
      locale.layers.find((l) => l.kind === "heightfield") ?? null;
    const kinds = ({ layers }) => JSON.stringify(layers.map(({ id: name, kind, role, polygons }) =>
      [name, kind, role, polygons]));
    const isOther = kinds(locale) !== kinds(state.locale);
    state.locale = locale;
    if (isOther) showFields(locale, layer?.id);
    if ((locale.transform_seq ?? 0) >= moves) {
      state.poses = standingsOf(locale);
      state.set("moved", null);
    }
    state.set("revision", locale.revision);
    if (isOther || JSON.stringify(layer) !== JSON.stringify(state.layer))
      state.set("layer", layer);
  } catch (error) {
    if (error.status === 404) state.set("message", { text: `${id} was deleted.`, isError: true });
    else tell(error);
  }
}

/** An empty world: what to type. */
function showEmpty(isEmpty) {
  const { origin } = location, pre = (text) => make("pre", text);
  at("empty").hidden = !isEmpty;
  at("empty").replaceChildren(...(isEmpty ? [
    make("h2", "This daemon has no locale yet"),
    make("p", "Import elevation, here an ESRI grid, with the command line:"),
    pre(`kota import hills ground dem.asc --url ${origin}`),
    make("p", "or with curl:"),
    pre(`curl -sf -X PUT -H 'Content-Type: application/json' -d '{}' ${origin}/v1/locales/plain`),
    pre(`curl -sf -T dem.asc -H 'Content-Type: application/vnd.kota.asc' ` +
      `${origin}/v1/locales/plain/layers/ground`),
    make("p", "or start the daemon on the demo world:"),
    pre("kotad --world /usr/share/kota/demo"),
    make("p", "PNG, HGT, f32 and meshes are read, too; GeoTIFF and others by kota. If the daemon has " +
      "tokens, add --token-file FILE, or -H 'Authorization: Bearer TOKEN'. This page shows the ground " +
      "as soon as there is any.")] : []));
}

function make(tag, text) {
  return Object.assign(document.createElement(tag), { textContent: text });
}

export async function openWorld() {
  try {
    state.set("locales", await kota.locales({ quiet: true, layers: true }));
  } catch (error) {
    tell(error.status === 401 ? new Error("Reading needs a token here: press Token.") : error);
    if (error.status !== 401 && !gone.signal.aborted) setTimeout(openWorld, 3000);
    return;
  }
  const ids = state.locales.map((l) => l.id), wanted = readAddress().locale;
  const hasField = (l) => l.layers.some((layer) => layer.kind === "heightfield");
  const id = ids.includes(wanted) ? wanted : (state.locales.find(hasField) ?? state.locales[0])?.id;
  options(at("locale"), state.locales.map((l) => [l.id, l.title || l.id]), id);
  showEmpty(id === undefined);
  if (id !== undefined) return openLocale(id);
  state.set("locale", null);
  state.set("message", null);
  setTimeout(() => !state.locale && !gone.signal.aborted && openWorld(), 3000);
}

at("locale").addEventListener("change", () => openLocale(at("locale").value));
at("layer").addEventListener("change", () => state.set("layer",
  state.locale.layers.find((layer) => layer.id === at("layer").value) ?? null));

// ---- views, panels, theme, token ----------------------------------------------------------------

export function showView(view) {
  state.set("view", view);
  at("map").hidden = view !== "map";
  at("terrain").hidden = view !== "3d";
  showLayers(view);
  at("view-map").setAttribute("aria-pressed", view === "map");
  at("view-3d").setAttribute("aria-pressed", view === "3d");
}
at("view-map").addEventListener("click", () => showView("map"));
at("view-3d").addEventListener("click", () => showView("3d"));

const tabs = [...document.querySelectorAll('[role="tab"]')];
function showTab(chosen) {
  for (const tab of tabs) {
    tab.setAttribute("aria-selected", tab === chosen);
    tab.tabIndex = tab === chosen ? 0 : -1;
    at(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
  }
}
for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => showTab(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(i + step + tabs.length) % tabs.length];
    showTab(next);
    next.focus();
  });
}
showTab(tabs[0]);

/** The 3D view has light of its own and shows holes as what they are; its contours are off. */
const layerHelp = { hillshade: "slopes in light and shadow", contours: "lines of equal height",
  holes: "ground without data", meshes: "outlines of polygons: bridges, houses",
  quadtree: "leaves of the meshes' quadtrees by level: blue ones are large, red ones deep",
  shadows: "shadows of the sun; in motion only where there is time for them",
  granules: "granules of sand near the eye, each by itself; else the surface of a patch" };
const layerBoxes = Object.entries(layerHelp).map(([name, title]) => {
  const box = Object.assign(document.createElement("input"), { type: "checkbox" });
  const line = Object.assign(document.createElement("label"), { title });
  const key = () => state.view === "3d" && name === "contours" ? "contours3d" : name;
  box.addEventListener("change", () => state.set("layersShown",
    { ...state.layersShown, [key()]: box.checked }));
  line.append(box, ` ${name}`);
  at("layers-shown").append(line);
  return { name, box, line, key };
});
function showLayers(view) {
  for (const { name, box, line, key } of layerBoxes) {
    line.hidden = (view === "3d" && (name === "hillshade" || name === "holes")) ||
      (name === "quadtree" ? !state.locale?.layers.some(({ kind }) => kind === "mesh")
        : name === "shadows" || name === "granules" ? view === "map"
          : name !== "meshes" && state.locale !== null && !state.layer);
    box.checked = state.layersShown[key()];
  }
}
showLayers(state.view);
state.on("layer", (layer) => {
  at("layer").parentElement.hidden = state.locale !== null && !layer;
  showLayers(state.view);
});

const themes = ["", "light", "dark"];
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  localStorage.setItem("kota-theme", theme);
  at("theme").textContent = theme || "Theme";
}
at("theme").addEventListener("click", () => {
  setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme ?? "") + 1) % 3]);
});
setTheme(localStorage.getItem("kota-theme") ?? "");

at("token").addEventListener("click", () => {
  const token = prompt("Token (empty: none). It is kept in this tab alone.", kota.token);
  if (token === null) return;
  kota.token = token.trim();
  sessionStorage.setItem("kota-token", kota.token);
  openWorld();
});

// ---- parts --------------------------------------------------------------------------------------

/** Each part exports start(kota, state). */
const parts = ["map", "palette", "tools", "terrain", "suncontrols", "edits", "sand", "leaves", "status"];
for (const name of parts) {
  try {
    (await import(`/web/${name}.js`)).start(kota, state);
  } catch (error) {
    if (gone.signal.aborted) break;
    state.set("message",
      { text: `The part ${name} did not start: ${error.message}`, isError: true });
  }
}
await openWorld();
document.documentElement.dataset.ready = "yes";
