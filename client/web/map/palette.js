/**
 * Tints of heights on the map, and the legend that shows them in metres and lets another be chosen.
 *
 * "relief" looks like land. The others rise steadily in lightness, so that high and low are distinct
 * with any colour vision and on a grey print; their stops are those of matplotlib's cividis and viridis
 * (J. Nuñez, C. Anderton, R. Renslow 2018; S. van der Walt, N. Smith 2015) and of batlow (F. Crameri
 * 2018), between which colours are interpolated. What differs from the default is in the address.
 */
import { readAddress, writeAddress } from "/web/address.js";
import { choice, labelled, make } from "/web/widgets.js";

const TINTS = 256;
const TICKS = 5;
const DARK = 0.18; // luminance below which lines are light: both then have about the same contrast

const stops = {
  // meadow, wood, earth, rock, snow: light, so that lines can be seen
  relief: ["749674", "96ac7a", "c4be8a", "bea07c", "a8948a", "d6d4d2", "f4f5f7"],
  grey: ["2b2b2b", "f5f5f5"],
  cividis: ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55",
    "fee838"],
  viridis: ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b",
    "fde725"],
  batlow: ["011959", "103f60", "1c5460", "3c6d56", "687b3e", "9d892b", "d29343", "f8a17b", "fdb7bc",
    "faccfa"],
};

/** Relative luminance of a colour of 8-bit sRGB, 0 to 1 (WCAG 2). @param {number[]} rgb */
export function luminance(rgb) {
  const [r, g, b] = rgb.map((code) => code / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function paletteOf([name, texts]) {
  const ramp = texts.map((text) => [0, 2, 4].map((i) => parseInt(text.slice(i, i + 2), 16)));
  const tints = Array.from({ length: TINTS }, (_, i) => {
    const at = (i / (TINTS - 1)) * (ramp.length - 1), k = Math.min(Math.floor(at), ramp.length - 2);
    return ramp[k].map((low, channel) => low + (at - k) * (ramp[k + 1][channel] - low));
  });
  const light = tints.findIndex((tint) => luminance(tint) >= DARK);
  return [name, { tints, darkShare: light ? light / (TINTS - 1) : -Infinity }];
}

/**
 * By name: `tints`, 256 colours from low to high, and `darkShare` of the range of heights, from the
 * lowest, whose tints are so dark that lines on them are drawn light.
 * @type {Record<string, {tints: number[][], darkShare: number}>}
 */
export const palettes = Object.fromEntries(Object.entries(stops).map(paletteOf));
const [DEFAULT] = Object.keys(palettes);

const css = (tint) => `rgb(${tint.map(Math.round).join(" ")})`;

/** @param {any} _ @param {typeof import("./state.js").state} state */
export function start(_, state) {
  const asked = readAddress().palette;
  const select = choice("palette", Object.keys(palettes), { onchange: () => {
    writeAddress({ palette: select.value === DEFAULT ? "" : select.value });
    state.set("palette", select.value);
  } });
  const bar = make("div", { id: "palette-bar" }), ticks = make("div", { id: "palette-ticks" });
  const box = make("fieldset", { id: "heights" }, make("legend", {}, "Height in metres"), bar, ticks,
    labelled("", select, "", "tints of heights; all but relief rise steadily in lightness"));
  select.setAttribute("aria-label", "palette of heights");
  document.getElementById("layers-shown").after(box);

  function show() {
    const { layer, view, palette } = state;
    box.hidden = view !== "map" || !layer?.bounds;
    if (box.hidden) return;
    select.value = palette;
    const { tints } = palettes[palette], low = layer.bounds.min[2], high = layer.bounds.max[2];
    bar.style.background = `linear-gradient(to right, ${tints.filter((tint, i) => i % 15 === 0)
      .map(css).join(", ")})`;
    const digits = Math.max(0, Math.ceil(1 - Math.log10(Math.max(high - low, 1e-3))));
    ticks.replaceChildren(...Array.from({ length: TICKS }, (none, i) => make("span", {},
      (low + (high - low) * i / (TICKS - 1)).toFixed(digits))));
  }

  for (const name of ["layer", "view", "palette"]) state.on(name, show);
  if (Object.hasOwn(palettes, asked ?? "")) state.set("palette", asked);
  else show();
}
