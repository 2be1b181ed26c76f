/**
 * Frames a second of the page's 3D view in Chromium, by this machine's own OpenGL (a GPU, else Mesa's
 * llvmpipe): the demo's highlands of 2048 x 2048 samples, a level flight 60 m above the ground at the
 * size of rest, with and without shadows, by clipmaps of two grids; and without clipmaps, every
 * sample, its blocks uploaded one after the other, as no texture holds a field of any size.
 *
 *   node tests/bench/bench_page.mjs [SECONDS]     of each of three flights a row (6); prints a table
 *
 * After `make` and `npm ci` in tests/web. Frames are finished by reading a pixel of each. The rate of a
 * row is the middle one of its flights; Chromium shows 60 a second at most. Beside it the processor
 * time of all of Chromium for a frame, which other programs on the machine change much less.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";

import { makeCheck, makeWorld, openBrowser, openPage, ownGl, startDaemon } from
  "../web/support.mjs";
import { chromiumTakes } from "./processes.mjs";

const { chromium } = createRequire(new URL("../web/package.json", import.meta.url))("playwright-core");
const seconds = Number(process.argv[2] ?? 6);
if (!(seconds > 0)) throw new Error(`${process.argv[2]} is no number of seconds`);

/** Calls window.kotaTerrain[name](argument). */
const ask = (page, name, argument) =>
  page.evaluate(([n, a]) => window.kotaTerrain[n](a), [name, argument]);

const from = [800, 1000], to = [3300, 2600]; // metres, of 4096 a side

async function fliesAt(page, grid, isShadowed) {
  await page.locator("#layers-shown label", { hasText: "shadows" }).locator("input")
    .setChecked(isShadowed);
  await ask(page, "setGrid", grid);
  const rates = [];
  let end, taken = 0, frames = 0;
  for (let i = 0; i < 3; i++) {
    await ask(page, "setCamera", { eye: [...from, 900], target: [...to, 300] });
    await ask(page, "ready");
    const part = to.map((v, k) => from[k] + (v - from[k]) * Math.min(1, seconds / 20));
    const before = chromiumTakes().ms;
    const got = await ask(page, "fly", { to: part, seconds, height: 60, finish: true, full: true });
    taken += chromiumTakes().ms - before;
    frames += got.frames;
    rates.push(got.framesPerSecond);
    ({ end } = got);
  }
  if (end.shadowed !== isShadowed) throw new Error("shadows are not as asked");
  return [`clipmaps, grid ${grid}`, isShadowed ? "with" : "without", end.triangles,
    rates.sort((a, b) => a - b)[1], taken / frames];
}

/** The second picture, when its blocks are in memory. */
async function wholeAt(page, [width, height]) {
  await ask(page, "setCamera", { eye: [...from, 900], target: [...to, 300] });
  let got;
  for (let i = 0; i < 2; i++) got = await ask(page, "compare", { width, height });
  return ["every sample, no clipmaps", "without", got.wholeTriangles, 1000 / got.wholeMs, null];
}

const folder = await mkdtemp(join(tmpdir(), "kota-bench-page-"));
let daemon, browser;
try {
  await makeWorld(join(folder, "world"), 2048);
  daemon = await startDaemon(["--world", join(folder, "world")]);
  browser = await openBrowser(chromium, ownGl);
  const check = makeCheck(), page = await openPage(browser, `${daemon.url}/#highlands&sun=250,25`, check);
  await page.click("#view-3d");
  await page.waitForFunction(() => window.kotaTerrain.counters().frames > 0);
  const { size, device } = await page.evaluate(() => {
    const { clientWidth, clientHeight } = document.getElementById("terrain");
    const gl = document.createElement("canvas").getContext("webgl2");
    const about = gl.getExtension("WEBGL_debug_renderer_info");
    return { size: [clientWidth, clientHeight],
      device: gl.getParameter(about?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER) };
  });
  console.log(`${device}; ${availableParallelism()} processors (${cpus()[0].model}); Chromium ` +
    `${browser.version()}; ${size.join(" x ")} pixels; ${new Date().toISOString().slice(0, 10)}; ` +
    `load average ${loadavg()[0].toFixed(1)}\n`);
  console.log("| ground | shadows | triangles | frames/s | processor ms a frame |");
  console.log("|---|---|---|---|---|");
  const print = ([what, shadows, triangles, rate, ms]) => console.log(`| ${what} | ${shadows} | ` +
    `${triangles} | ${rate.toFixed(1)} | ${ms === null ? "" : ms.toFixed(0)} |`);
  for (const grid of [127, 255])
    for (const isShadowed of [false, true]) print(await fliesAt(page, grid, isShadowed));
  print(await wholeAt(page, size));
} finally {
  await browser?.close();
  await daemon?.stop();
  await rm(folder, { recursive: true, force: true });
}
