/**
 * The sun of the 3D view, in a box that opens: sliders for azimuth and height, or a time (UTC) where
 * the locale has a place on the Earth. What differs from the default is in the address (address.js).
 */
import { readAddress, writeAddress } from "/web/address.js";
import { defaultSun } from "/web/state.js";
import { sunOver } from "/web/sun.js";
import { labelled, make } from "/web/widgets.js";

const round = (degrees) => Math.round(10 * degrees) / 10;

/** A sun as the address has it, or null. @param {Record<string, string>} asked @param {any} geo */
function sunOf({ sun, time }, geo) {
  const ms = Date.parse(time ?? "");
  if (geo && Number.isFinite(ms)) return { ...sunOver(ms, geo), time: new Date(ms).toISOString() };
  const [azimuth, height] = (sun ?? "").split(",").map((word) => parseFloat(word));
  if (!Number.isFinite(azimuth) || !(Math.abs(height) <= 90)) return null;
  return { azimuth_deg: (azimuth % 360 + 360) % 360, height_deg: height, time: null };
}

/** @param {any} _ @param {typeof import("./state.js").state} state */
export function start(_, state) {
  const slider = (id, min, max, title) => make("input", { type: "range", id, min, max, step: 0.5,
    title, oninput: () => turn({ azimuth_deg: azimuth.valueAsNumber,
      height_deg: height.valueAsNumber, time: null }) });
  const azimuth = slider("sun-azimuth", 0, 360, "degrees clockwise from north");
  const height = slider("sun-height", -10, 90, "degrees over the horizon");
  const time = make("input", { type: "datetime-local", id: "sun-time", oninput: () => {
    const sun = sunOf({ time: `${time.value}Z` }, state.locale?.geo);
    if (sun) turn(sun);
  } });
  const said = make("span", { className: "quiet", id: "sun-said" });
  const timed = labelled("UTC ", time, "", "the sun over the locale's place at this time");
  const box = make("details", { id: "sun" }, make("summary", {}, "Sun ", said),
    labelled("azimuth ", azimuth), labelled("height ", height), timed);
  document.getElementById("layers-shown").after(box);

  function turn(sun) {
    const { azimuth_deg: a, height_deg: h } = defaultSun;
    const isDefault = !sun.time && sun.azimuth_deg === a && sun.height_deg === h;
    writeAddress(isDefault ? { sun: "", time: "" } : sun.time ? { sun: "", time: sun.time } :
      { sun: `${round(sun.azimuth_deg)},${round(sun.height_deg)}`, time: "" });
    state.set("sun", sun);
  }

  function show() {
    const { sun, locale } = state;
    box.hidden = state.view !== "3d";
    timed.hidden = !locale?.geo;
    azimuth.value = sun.azimuth_deg;
    height.value = sun.height_deg;
    if (document.activeElement !== time) time.value = sun.time?.slice(0, 16) ?? "";
    said.textContent = `${round(sun.azimuth_deg)}°, ${round(sun.height_deg)}° high`;
  }

  state.on("sun", show);
  state.on("view", show);
  state.on("locale", (locale) => {
    const sun = locale && sunOf(readAddress(), locale.geo);
    if (sun) state.set("sun", sun);
    else show();
  });
  show();
}
