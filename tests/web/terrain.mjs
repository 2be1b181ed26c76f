/**
 * The 3D view: that it shows what the tiles hold, that its levels meet without cracks and look
 * like the whole field (on rough ground, too, from low and high), what a step fetches and uploads,
 * that memory stays within its bound over a locale of 8192 x 8192 cells, that picking agrees with
 * the daemon, that edits and holes are seen, that a patch of sand is drawn as it moves, that the
 * ground of each of many patches is left out, that both views keep one place, that meshes and
 * contours are drawn, and what is said where WebGL2 is missing. Frames a second are told, not
 * judged.
 */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { daemonArgs as sandArgs, putBeach } from "./live.mjs";
import { binaries, go, openPage, pictures, setShadows, startDaemon, until, visit } from
  "./support.mjs";

/** Calls window.kotaTerrain[name](argument). */
const ask = (page, name, argument) =>
  page.evaluate(([n, a]) => window.kotaTerrain[n](a), [name, argument]);

async function show(page, url, locale) {
  if (page.url().startsWith(`${url}/`)) await go(page, locale);
  else await visit(page, `${url}/#${locale}`);
  await setShadows(page, false); // shadows.mjs has them
  await page.click("#view-3d");
  await ask(page, "ready");
}

function keep(name, base64) {
  mkdirSync(pictures, { recursive: true });
  writeFileSync(join(pictures, `${name}.png`), Buffer.from(base64, "base64"));
}

// ---- picture ----------------------------------------------------------------------------------

async function likeTheWhole(page, check, name, grid, view, width = 480) {
  await ask(page, "setGrid", grid);
  await ask(page, "setCamera", view);
  const got = await ask(page, "compare", { width, height: 0.625 * width, samples: 2,
    pictures: check.isPictured });
  for (const [i, what] of check.isPictured ? ["clipmap", "whole", "apart"].entries() : [])
    keep(`terrain-${name}-${grid}-${what}`, got.pictures[i]);
  delete got.pictures;
  check.note(`${name}, grid ${grid}: ${JSON.stringify(got)}`);
  check(got.mean < 2, `${name}, grid ${grid}: mean difference to the whole field < 2`, got.mean);
  check(got.mean > 0, `${name}, grid ${grid}: it is not the same drawing`, got);
  check(got.levels >= 3 && got.triangles < got.wholeTriangles / 2,
    `${name}, grid ${grid}: levels save triangles`, got);
  check.equal(got.cracks, 0, `${name}, grid ${grid}: no crack pixel`);
}

/** The same from so high that the whole field is seen or nearly, straight down and obliquely. */
async function highViews(page, check, [x, y], extent) {
  for (const up of [0.1, 0.25, 0.6]) {
    for (const aside of [0.05, 1.2]) {
      const away = up * extent, d = aside * away;
      const eye = [x - d, y - d, 0.25 * extent + away];
      await ask(page, "setGrid", 255);
      await ask(page, "setCamera", { eye, target: [x, y, 0.1 * extent] });
      const got = await ask(page, "compare", { width: 640, height: 400, samples: 2 });
      const name = `${away.toFixed(0)} m up, ${d.toFixed(0)} m aside`;
      check.note(`${name}: ${JSON.stringify(got)}`);
      check(got.mean < 2 && got.mean > 0, `${name}: mean difference to the whole field < 2`, got);
      check(got.triangles < got.wholeTriangles, `${name}: levels save triangles`, got);
    }
  }
}

/** Ground with detail at all scales, row by row: octaves of smoothed noise, the same every time. */
function roughGround(side, rise) {
  const z = new Float32Array(side * side), hash = (x, y, k) => {
    let h = Math.imul(x, 374761393) ^ Math.imul(y, 668265263) ^ Math.imul(k, 1274126177);
    h = Math.imul(h ^ (h >>> 13), 1274126177);
    return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32;
  };
  for (let cells = 4, gain = 0.4 * rise; cells < side; cells *= 2, gain *= 0.6) {
    for (let y = 0, i = 0; y < side; y++) {
      const v = y * cells / side, r = Math.floor(v), t = v - r;
      for (let x = 0; x < side; x++, i++) {
        const u = x * cells / side, c = Math.floor(u), s = u - c;
        z[i] += gain * ((1 - t) * ((1 - s) * hash(c, r, cells) + s * hash(c + 1, r, cells)) +
          t * ((1 - s) * hash(c, r + 1, cells) + s * hash(c + 1, r + 1, cells)));
      }
    }
  }
  return z;
}

/** Rough ground from low, from high and from above it, with either grid that is used. */
async function roughViews(page, daemon, check) {
  const side = 1025, spacing = 4, extent = (side - 1) * spacing, rise = 900, middle = extent / 2;
  await daemon.kota.call("PUT", "/v1/locales/rough", { json: { title: "Rough" } });
  await daemon.kota.call("PUT", `/v1/locales/rough/layers/ground?cols=${side}&rows=${side}` +
    `&spacing=${spacing},${spacing}`, { body: roughGround(side, rise),
    type: "application/vnd.kota.f32" });
  await show(page, daemon.url, "rough");
  for (const grid of [127, 255]) {
    for (const [up, aside] of [[0.03, 0.05], [0.3, 0.02], [0.2, 0.25]]) {
      const target = [middle, middle, 0.5 * rise], d = aside * extent;
      await ask(page, "setGrid", grid);
      await ask(page, "setCamera",
        { eye: [middle - d, middle - d, 0.6 * rise + up * extent], target });
      const got = await ask(page, "compare", { width: 640, height: 400, samples: 2 });
      const name = `rough ground, grid ${grid}, ${(up * extent).toFixed(0)} m up, ` +
        `${(1.41 * d).toFixed(0)} m aside`;
      check.note(`${name}: ${JSON.stringify(got)}`);
      check(got.mean < 2 && got.mean > 0, `${name}: mean difference to the whole field < 2`, got);
      check.equal(got.cracks, 0, `${name}: no crack pixel`);
      check(got.triangles < got.wholeTriangles / 2, `${name}: levels save triangles`, got);
    }
  }
  const plain = await ask(page, "compare", { width: 640, height: 400, samples: 2, relief: false });
  check(plain.mean > 2, "and it is the relief that makes it so", plain);
}

/** What makes a picture at rest fine is there, and a step brings its border alone. */
async function restsFine(page, check) {
  await ask(page, "setGrid", 63); // its finest map covers a part of the field
  const look = (x) => ask(page, "setCamera", { eye: [x, 2000, 900], target: [x + 400, 2300, 400] });
  await look(1600);
  await ask(page, "ready");
  const shot = () => page.locator("#terrain").screenshot();
  await ask(page, "refined");
  const fine = await shot(), before = await ask(page, "counters");
  check(before.reliefTexels > 0, "a view at rest is drawn with finer heights", before);
  await look(1616);
  await ask(page, "refined");
  const after = await ask(page, "counters"), texels = after.reliefTexels - before.reliefTexels;
  check(texels < 0.1 * before.reliefTexels, "and a step brings strips of them, no areas",
    [texels, before.reliefTexels]);
  await look(1600);
  await ask(page, "refined");
  check((await shot()).equals(fine), "there and back it is the same picture");
}

async function cracksFromAbove(page, check, grid, at, up, width = 900) {
  await ask(page, "setGrid", grid);
  await ask(page, "setCamera", { eye: [at[0], at[1], up], target: [at[0], at[1], 0] });
  const how = { width, height: Math.round(width / 1.3), whole: false, allLevels: true };
  const got = await ask(page, "compare", how);
  check(got.levels >= 3, `grid ${grid} from above: several levels`, got);
  check.equal(got.background, 0, `grid ${grid} from above: nothing shines through`);
  // levels that did not meet would leave hundreds; what is left is the rounding of places
  const bare = await ask(page, "compare", { ...how, border: false });
  check(bare.background < 1e-4 * how.width * how.height,
    `grid ${grid} from above: levels meet even without the triangles that cover rounding`, bare);
}

/** The coarser level's heights between its samples, for each way to split cells. */
async function diagonals(page, check) {
  const wrong = await page.evaluate(async () => {
    const { heightPairs } = await import("/web/field.js"), found = [];
    const z = (x, y) => Math.fround(Math.sin(7 * x + 3 * y) + 0.1 * x);
    for (const split of ["anti", "main", "alternating"]) {
      const read = (level, [x, y, w, h]) => Float32Array.from({ length: w * h },
        (_, i) => z(x + i % w, y + Math.floor(i / w)));
      const pairs = heightPairs({ split, read, lastOf: () => 1000 }, 0, [10, 21, 9, 7]);
      for (let v = 0, k = 0; v < 7; v++) {
        for (let u = 0; u < 9; u++, k += 2) {
          const x = 10 + u, y = 21 + v, ox = x & 1, oy = y & 1, c = (x - ox) / 2, r = (y - oy) / 2;
          const anti = split === "anti" || (split === "alternating" && (c + r) % 2 === 0);
          const want = ox && oy && anti ? (z(x + 1, y - 1) + z(x - 1, y + 1)) / 2 :
            (z(x - ox, y - oy) + z(x + ox, y + oy)) / 2;
          if (pairs[k] !== z(x, y) || Math.abs(pairs[k + 1] - want) > 1e-6)
            found.push([split, x, y]);
        }
      }
    }
    return found;
  });
  check.equal(wrong, [], "odd-odd positions lie on the diagonal of the coarser cell");
}

// ---- what is fetched, uploaded and kept -------------------------------------------------------

/** Samples that one step of the finest level uploads, for a grid of n. */
async function stepSamples(page, n, eye, spacing) {
  await ask(page, "setGrid", n);
  await ask(page, "setCamera", { eye, target: [eye[0] + 100, eye[1], eye[2] - 30] });
  await ask(page, "ready");
  const before = await ask(page, "counters");
  for (let i = 1; i <= 16; i++) {
    const x = eye[0] + 2 * spacing * i;
    await ask(page, "setCamera",
      { eye: [x, eye[1], eye[2]], target: [x + 100, eye[1], eye[2] - 30] });
    await ask(page, "ready");
  }
  const after = await ask(page, "counters");
  return { samples: after.uploadedSamples - before.uploadedSamples, levels: after.levels };
}

async function stepsGrowWithTheBorder(page, check, eye, spacing) {
  const got = {};
  for (const n of [63, 127, 255]) {
    got[n] = await stepSamples(page, n, eye, spacing);
    // 16 steps of two samples: the finest level uploads all of them, each coarser one half as many
    check(got[n].samples >= 16 * 2 * n && got[n].samples <= 2 * 16 * 2 * n + 2 * n * got[n].levels,
      `grid ${n}: 16 steps upload strips, no areas (${got[n].samples} of ${n * n})`, got[n]);
  }
  check(got[255].samples < 3 * got[127].samples && got[127].samples < 3 * got[63].samples,
    "twice the side uploads about twice as much, not four times", got);
}

/** What steps leave on the textures is what a clipmap that begins there has; slopes are finer. */
async function stepsLeaveNothing(page, check, eye, spacing) {
  const how = { width: 320, height: 200, relief: false };
  await stepSamples(page, 127, eye, spacing);
  const moved = await ask(page, "compare", how);
  await ask(page, "setGrid", 127);
  const fresh = await ask(page, "compare", how);
  check.near(moved.mean, fresh.mean, 1e-3, "after steps it is the picture of a clipmap made there");
}

/** Blocks that hold any sample of windows which pass from a to b, level by level: at most these. */
function blocksOnTheWay(a, b, spacing, n, levels, last) {
  let sum = 0;
  for (let level = 0; level < levels; level++) {
    const step = spacing * 2 ** level, most = Math.ceil(last / (256 * 2 ** level));
    const across = (from, to, reach) => Math.min(most, Math.floor((Math.max(from, to) / step +
      reach) / 256) - Math.floor((Math.min(from, to) / step - reach) / 256) + 1);
    // slopes have 1024 texels a side, half of them to either side; a second of flight ahead
    const reach = 520 + 8 + 500 / step;
    sum += across(a[0], b[0], reach) * across(a[1], b[1], reach);
  }
  return sum;
}

async function flight(page, check, n) {
  const last = 8192, spacing = 1, from = [1500, 4000], to = [6500, 4100], seconds = 10;
  await ask(page, "setGrid", n);
  await ask(page, "setCamera", { eye: [...from, 900], target: [...to, 300] });
  await ask(page, "ready");
  const got = await ask(page, "fly", { to, seconds, height: 60, finish: true });
  check.note(`flight over 8192 x 8192 cells, grid ${n}: ` +
    `${got.framesPerSecond.toFixed(1)} frames/s at scale ${got.end.scale}, ` +
    `${got.end.triangles} triangles, ` +
    `${got.fetchedBlocks} blocks, ${got.fetchedBytes} bytes, most in memory ` +
    JSON.stringify(got.most));
  check(got.most.blockBytes <= got.end.blockBytesMax, `grid ${n}: blocks stay within their bound`,
    got.most);
  check(got.most.textureBytes <= 112 * 2 ** 20, `grid ${n}: textures do not grow`, got.most);
  const most = blocksOnTheWay(from, to, spacing, n, got.end.levels, last);
  check(got.fetchedBlocks <= most, `grid ${n}: no more blocks than lie on the way (${most})`,
    got.fetchedBlocks);
  const all = Array.from({ length: got.end.levels }, (_, l) => Math.ceil(last / 256 / 2 ** l) ** 2)
    .reduce((a, b) => a + b);
  check(got.fetchedBlocks < all / 3, `grid ${n}: a strip of the field's ${all}, not its area`,
    got.fetchedBlocks);
  return got;
}

async function bigLocale(page, folder, check) {
  const file = join(binaries, "web-big.f32"), spacing = 1;
  const source = join(folder, "hills.asc");
  writeFileSync(source, hills(129));
  await promisify(execFile)(join(binaries, "kota-worldgen"),
    ["enlarge", source, file, "8193", "--threads", "2"]);
  const daemon = await startDaemon([`${file}?cols=8193&rows=8193&spacing=${spacing},${spacing}`]);
  try {
    await show(page, daemon.url, "web-big");
    const few = await flight(page, check, 63), more = await flight(page, check, 127);
    check(more.fetchedBytes < 3 * few.fetchedBytes,
      "bytes fetched on the same way grow with the grid's side, not with its area",
      [few.fetchedBytes, more.fetchedBytes]);
    await likeTheWhole(page, check, "big", 127,
      { eye: [4000, 4000, 420], target: [4600, 4700, 250] });
  } finally {
    await page.goto("about:blank");
    await daemon.stop();
  }
}

/** Rolling hills as an ESRI ASCII grid. */
export function hills(side) {
  const rows = Array.from({ length: side }, (_, r) => Array.from({ length: side }, (_, c) =>
    (150 + 90 * Math.sin(c / 9 + r / 23) * Math.cos(r / 13) + 40 * Math.sin(c / 4)).toFixed(2))
    .join(" "));
  const head = `ncols ${side}\nnrows ${side}\nxllcorner 0\nyllcorner 0\ncellsize 64\n`;
  return `${head}${rows.join("\n")}\n`;
}

// ---- picking, edits, holes --------------------------------------------------------------------

async function picks(page, daemon, check, locale) {
  const box = await page.locator("#terrain").boundingBox();
  let hits = 0;
  for (let i = 0; i < 10; i++) {
    const pixel = [box.width * (0.1 + 0.08 * i), box.height * (0.9 - 0.05 * i)].map(Math.round);
    const camera = await ask(page, "camera"), mine = await ask(page, "hitOf", pixel);
    const theirs = (await daemon.kota.post(`/v1/locales/${locale}/pick`,
      { camera, viewport: [box.width, box.height], pixel })).json;
    if (!mine || theirs.status !== "hit") {
      check(!mine && theirs.status === "miss", `pixel ${pixel}: both miss`, [mine, theirs]);
      continue;
    }
    hits++;
    const far = Math.hypot(...mine.map((v, k) => v - camera.eye[k]));
    const apart = Math.hypot(...mine.map((v, k) => v - theirs.hit.point[k]));
    check(apart < 0.05 * far, `pixel ${pixel}: the drawn ground is where pick finds it`,
      { apart, far });
  }
  check(hits >= 5, "most pixels meet the ground", hits);
}

async function clicks(page, check) {
  await page.evaluate(async () => {
    const { state } = await import("/web/state.js");
    window.clicksSeen = [];
    state.on("clicked", ({ point, camera, viewport, pixel }) =>
      window.clicksSeen.push({ point, camera, viewport, pixel }));
  });
  const box = await page.locator("#terrain").boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + 0.8 * box.height);
  const [seen] = await page.evaluate(() => window.clicksSeen);
  check(seen?.point && seen.camera.fov_y_deg > 0 && seen.viewport[0] === box.width,
    "a click tells its point, camera, viewport and pixel", seen);
  const before = (await ask(page, "camera")).eye;
  await page.keyboard.down("KeyW");
  await page.waitForFunction((eye) => {
    const now = window.kotaTerrain.camera().eye;
    return Math.hypot(now[0] - eye[0], now[1] - eye[1]) > 1;
  }, before);
  await page.keyboard.up("KeyW");
  check(true, "the key W flies");
  await ask(page, "ready");
}

async function edits(page, daemon, check, locale) {
  const top = [512, 512];
  await ask(page, "setCamera", { eye: [top[0], top[1], 1500], target: [top[0], top[1], 0] });
  await ask(page, "ready");
  const box = await page.locator("#terrain").boundingBox();
  const middle = [box.width / 2, box.height / 2];
  const before = await ask(page, "hitOf", middle);
  const steps = (await ask(page, "counters")).uploadedSamples;
  await daemon.kota.post(`/v1/locales/${locale}/edits`,
    { brush: { shape: "raise", center: top, radius: 60, amount: 40 } });
  await page.waitForFunction(([pixel, z]) => window.kotaTerrain.hitOf(pixel)?.[2] > z + 20,
    [middle, before[2]]);
  const after = await ask(page, "counters"), n = after.grid;
  check(after.uploadedSamples - steps < n * n * after.levels,
    "an edit is drawn, and only what it touches is uploaded anew", after.uploadedSamples - steps);
}

async function holes(page, daemon, check) {
  const side = 257, heights = new Float32Array(side * side).fill(10);
  for (let j = 100; j < 150; j++) heights.fill(NaN, j * side + 100, j * side + 150);
  await daemon.kota.call("PUT", "/v1/locales/holed", { json: { title: "Holed" } });
  await daemon.kota.call("PUT", `/v1/locales/holed/layers/ground?cols=${side}&rows=${side}` +
    "&spacing=1,1", { body: heights, type: "application/vnd.kota.f32" });
  await show(page, daemon.url, "holed");
  await ask(page, "setCamera", { eye: [125, 125, 90], target: [125, 125, 0] });
  await ask(page, "ready");
  const got = await ask(page, "compare", { width: 240, height: 240 });
  check(got.background > 7000 && got.mean < 2, "a hole is left out, as at full resolution", got);
  const box = await page.locator("#terrain").boundingBox();
  check.equal(await ask(page, "hitOf", [box.width / 2, box.height / 2]), null,
    "a ray into a hole meets no ground");
  await check.shot(page, "terrain-hole");
  await daemon.kota.call("PUT", "/v1/locales/holed/layers/ground?cols=64&rows=64&spacing=1,1",
    { body: new Float32Array(64 * 64).fill(NaN), type: "application/vnd.kota.f32" });
  await page.waitForSelector("#stage-note:not([hidden])");
  check(/no heights/.test(await page.locator("#stage-note").innerText()),
    "a field of nothing but holes is said to be that");
}

// ---- sand, meshes, places ---------------------------------------------------------------------

/** A barrel falls on sand: the surface that is drawn is the daemon's, and goes with it. */
async function sand(page, check) {
  const daemon = await startDaemon(sandArgs), where = "/v1/locales/beach/patches";
  try {
    await putBeach(daemon.kota);
    const { barrelObj } = await page.evaluate(async () =>
      ({ barrelObj: (await import("/web/sandshow.js")).barrelObj(0.7) }));
    await daemon.kota.call("PUT", "/v1/models/barrel",
      { body: new TextEncoder().encode(barrelObj), type: "model/obj" });
    await show(page, daemon.url, "beach");
    await ask(page, "setCamera", { eye: [24, 32, 16], target: [32, 40, 8] });
    await ask(page, "ready");
    const ground = (await daemon.kota.get("/v1/locales/beach/height?x=32&y=40")).json.height;
    await daemon.kota.post(where, { center: [32, 40], size: [6, 6], scale: "coarse", bodies: [
      { model: "barrel", position: [32, 40, ground + 2.1], velocity: [0, 0, -7], density: 2500 }] });
    const drawn = () => ask(page, "sand");
    const patchSurface = async (finer) =>
      daemon.kota.get(`${where}/1/surface.f32?per_cell=${finer}`);
    const told = async () => new Float32Array((await patchSurface(1)).buffer);
    let first = null; // as soon as there is one: the page may see its first after the barrel has come
    await until(async () => (first = await told().catch(() => null)) !== null, "granules");
    await until(async () => (await drawn()).surfaces > 0, "a surface");
    await until(async () => (await drawn()).bodies === 1, "a body");
    check(true, "a body is drawn by its model");
    await until(async () => (await daemon.kota.get(`${where}/1`)).json.state === "resting",
      "a patch at rest");
    const [patch] = (await drawn()).patches;
    const answer = await patchSurface(patch.finer);
    const heights = new Float32Array(answer.buffer), middle = heights[(heights.length - 1) / 2];
    check.equal(answer.headers.get("kota-grid"), `${patch.cols},${patch.rows}`,
      "the grid that is drawn is the daemon's");
    await until(async () => Math.abs((await drawn()).patches[0]?.middle - middle) < 1e-5,
      "the surface at rest");
    check(true, "what rests is drawn as the daemon tells it");
    const most = (await told()).reduce((a, z, i) => Math.max(a, Math.abs(z - first[i])), 0);
    check(most > 0.1, "and the barrel has left its trace in it", most);
    await until(async () => { // what was under way when it came to rest may still come
      const { surfaces } = await drawn();
      await page.waitForTimeout(4500); // two rounds of a view at rest
      return (await drawn()).surfaces === surfaces;
    }, "no surface in two rounds");
    check(true, "while it rests nothing is sent again");
    await check.shot(page, "terrain-sand");
    await daemon.kota.call("DELETE", `${where}/1`);
    await until(async () => (await drawn()).patches.length === 0, "the ground in its place");
    check(true, "when it is written back the ground takes its place");
  } finally {
    await page.goto("about:blank");
    await daemon.stop();
  }
}

/** Squares of as many patches as a daemon can have are left out of the ground, each of them. */
async function manyPatches(page, check, at, up, spacing) {
  await ask(page, "setGrid", 63);
  await ask(page, "setCamera", { eye: [at[0], at[1], up], target: [at[0], at[1], 0] });
  const square = (i) => [i % 16 - 8, Math.floor(i / 16) - 6].map((n, k) => at[k] + 6 * n * spacing);
  const rects = Array.from({ length: 192 }, (_, i) => square(i))
    .map(([x, y]) => [x, y, x + 4 * spacing, y + 4 * spacing]);
  const leftOut = async (some) => (await ask(page, "compare",
    { width: 400, height: 300, whole: false, allLevels: true, rects: some })).background;
  const parts = [];
  for (let i = 0; i < rects.length; i += 8) parts.push(await leftOut(rects.slice(i, i + 8)));
  check(parts.every((count) => count > 0), "eight patches at a time are left out", parts);
  check.equal(await leftOut([]), 0, "without patches nothing is");
  check.equal(await leftOut(rects), parts.reduce((a, b) => a + b), "all 192 at once are");
}

async function meshes(page, daemon, check) {
  await show(page, daemon.url, "village");
  await until(async () => (await ask(page, "sand")).solids >= 4, "mesh layers");
  check(true, "a locale of meshes alone is drawn");
  await ask(page, "refined");
  await check.shot(page, "terrain-meshes");
  const before = await page.locator("#terrain").screenshot();
  await page.locator("#layers-shown label", { hasText: "meshes" }).click();
  await ask(page, "refined");
  check(!before.equals(await page.locator("#terrain").screenshot()), "meshes are left out if asked");
  await page.locator("#layers-shown label", { hasText: "meshes" }).click();
}

/** What one view looks at is where the other one begins. */
async function places(page, daemon, check) {
  const look = () => page.evaluate(async () => (await import("/web/state.js")).state.look);
  await visit(page, `${daemon.url}/#highlands`);
  const box = await page.locator("#map").boundingBox();
  await page.mouse.move(box.x + 0.6 * box.width, box.y + 0.4 * box.height);
  for (let i = 0; i < 4; i++) await page.mouse.wheel(0, -240);
  await page.waitForFunction(() => window.kotaMap.idle);
  await page.click("#view-3d");
  await ask(page, "ready");
  const map = await page.evaluate(() =>
    ({ x: window.kotaMap.view.x, y: window.kotaMap.view.y, width: window.kotaMap.view.widthM }));
  const canvas = await page.locator("#terrain").boundingBox();
  const hit = await ask(page, "hitOf", [canvas.width / 2, canvas.height / 2]);
  const aside = Math.hypot(hit[0] - map.x, hit[1] - map.y);
  check(aside < 0.3 * map.width, "the 3D view looks at the map's middle, or at what hides it",
    { map, hit });
  await page.locator("#layers-shown label", { hasText: "contours" }).click();
  await ask(page, "ready");
  check(/contours \d/.test(await page.locator("#terrain-line").innerText()), "contours are drawn");
  await check.shot(page, "terrain-place");
  await ask(page, "setCamera", { eye: [1000, 1000, 1500], target: [1500, 1600, 0] });
  await ask(page, "ready");
  await until(async () => (await look()).by === "3d", "the 3D view's place");
  const far = await look();
  await page.click("#view-map");
  await page.waitForFunction(({ x, y }) => Math.abs(window.kotaMap.view.x - x) < 1e-6 &&
    Math.abs(window.kotaMap.view.y - y) < 1e-6, far);
  check(true, "and the map at what the 3D view looked at");
  const was = await ask(page, "camera");
  await page.click("#view-3d");
  await ask(page, "ready");
  check.equal(await ask(page, "camera"), was, "there and back the camera stays where it was");
}

// ---- walking ----------------------------------------------------------------------------------

const EYE = 1.6; // above the floor, metres

/** Holds W until the eye is beyond `far` metres, or is led no farther by ten answers. */
async function ahead(page, from, far) {
  const gone = async () => {
    const { eye } = await ask(page, "camera");
    return Math.hypot(eye[0] - from[0], eye[1] - from[1]);
  };
  let answers = 0, before = -1;
  const count = (response) => { answers += response.url().endsWith("/move"); };
  page.on("response", count);
  await page.keyboard.down("w");
  await until(async () => {
    const now = await gone();
    if (now > before + 0.01) answers = 0;
    before = Math.max(before, now);
    return now > far || answers > 10;
  }, "steps");
  await page.keyboard.up("w");
  page.off("response", count);
  return gone();
}

/** G sets the eye on the floor; the keys walk it, through nothing, and G lets it fly again. */
async function walks(page, daemon, check) {
  await show(page, daemon.url, "village");
  const floorAt = async ([x, y, z]) => (await daemon.kota.get(
    `/v1/locales/village/contact?x=${x}&y=${y}&z=${z}`)).json.floor;
  for (const [from, to, far, what] of [[[20, 72, 30], [21, 72, 30], 3, "over open ground"],
    [[190, 126, 30], [190, 127, 30], 12, "against a house"]]) {
    await ask(page, "setCamera", { eye: from, target: to });
    await page.focus("#terrain");
    await page.keyboard.press("g");
    await page.waitForSelector('#walk[aria-pressed="true"]');
    const gone = await ahead(page, from, far);
    const { eye } = await ask(page, "camera"), floor = await floorAt(eye);
    check.note(`${what}: ${gone.toFixed(2)} m, eye ${eye}, floor ${floor?.point}`);
    check(floor && Math.abs(eye[2] - floor.point[2] - EYE) < 0.6, `${what}: the feet are on it`);
    check(what === "against a house" ? gone > 4 && gone < 4.7 : gone > far - 0.1, `${what}: as far as it goes`);
    await check.shot(page, `walk-${far}`);
    await page.keyboard.press("g");
    await page.waitForSelector('#walk[aria-pressed="false"]');
  }
  await page.keyboard.down("e");
  await until(async () => (await ask(page, "camera")).eye[2] > 8, "it flies");
  await page.keyboard.up("e");
}

async function withoutWebGL(page, daemon, check) {
  const other = await openPage(page.context().browser(), daemon.url, check, { before: () => {
    const original = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function getContext(kind, ...rest) {
      return kind === "webgl2" ? null : original.call(this, kind, ...rest);
    };
  } });
  await other.click("#view-3d");
  await other.waitForSelector("#stage-note:not([hidden])");
  const said = await other.locator("#stage-note").innerText();
  check(/WebGL2/.test(said) && /map/i.test(said), "a browser without WebGL2 is told so", said);
  await other.click("#view-map");
  const note = await other.locator("#stage-note").isVisible();
  check(await other.locator("#map").isVisible() && !note, "and the map is still there");
  await other.context().close();
}

/** The spacing of the highlands, their middle, and a place from which to look along them. */
async function highlands(page, daemon) {
  await show(page, daemon.url, "highlands");
  const { spacing, at } = await page.evaluate(async () => {
    const { layer } = (await import("/web/state.js")).state;
    return { spacing: layer.spacing[0], at: layer.bounds.max.map((v) => v / 2) };
  });
  return { spacing, at, up: 2 * at[2] + 60 * spacing,
    low: [at[0] - 40 * spacing, at[1], 0], // the view lifts it onto the ground
    ahead: [at[0], at[1] + 200 * spacing, 0] };
}

export const viewport = { width: 480, height: 360 }; // where the processor draws, pixels are time

export const begin = () => "#highlands";

export async function run(page, daemon, check) {
  const { at, up, low, ahead } = await highlands(page, daemon);
  await check.shot(page, "terrain");
  await picks(page, daemon, check, "highlands");
  await diagonals(page, check);
  await cracksFromAbove(page, check, 63, at, up, 450);
  await likeTheWhole(page, check, "highlands", 127, { eye: low, target: ahead }, 320);
  await clicks(page, check);
  await edits(page, daemon, check, "highlands");
  await holes(page, daemon, check);
  await walks(page, daemon, check);
}

export async function rest(page, daemon, check) {
  const { spacing, at, up, low, ahead } = await highlands(page, daemon);
  for (const grid of [127, 255]) await cracksFromAbove(page, check, grid, at, up);
  await manyPatches(page, check, at, up, spacing);
  await stepsGrowWithTheBorder(page, check, low, spacing);
  await stepsLeaveNothing(page, check, low, spacing);
  await highViews(page, check, at, 2 * at[0]);
  await likeTheWhole(page, check, "highlands", 255, { eye: low, target: ahead });
  await roughViews(page, daemon, check);
  await restsFine(page, check);
  await places(page, daemon, check);
  await meshes(page, daemon, check);
  await sand(page, check);
  await withoutWebGL(page, daemon, check);
  await bigLocale(page, daemon.folder, check);
}
