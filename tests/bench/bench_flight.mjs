/**
 * A long flight of the page's 3D view over 8193 x 8193 samples, with edits and living patches on the
 * way: memory and traffic, which must be bounded.
 *
 *   node tests/bench/bench_flight.mjs [MINUTES]     10; a row for each half minute
 *
 * After `make` and `npm ci` in tests/web. Legs of 10 s at 100 m/s, 60 m above the ground, to places
 * that a fixed seed gives. Each leg has ten edits along its line and a patch with a stone at its end,
 * which is written back when it rests. Ends with 1 when a bound does not hold: blocks and textures of
 * the page, and in the flight's second half its traffic a kilometre and its heap beside the first's.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";

import { binaries, makeCheck, openBrowser, openPage, ownGl, startDaemon } from "../web/support.mjs";
import { hills } from "../web/terrain.mjs";
import { chromiumTakes } from "./processes.mjs";

const { chromium } = createRequire(new URL("../web/package.json", import.meta.url))("playwright-core");
const minutes = Number(process.argv[2] ?? 10);
if (!(minutes > 0)) throw new Error(`${process.argv[2]} is no number of minutes`);

const SIDE = 8192, LEG_S = 10, LEGS_A_ROW = 3, SPEED = 100, EDITS = 10, MB = 1e6;
const HEAP_ROOM = 32 * MB; // what the collector may not have taken yet
const STONE = "v -.4 -.4 -.4\nv .8 -.4 -.4\nv -.4 .8 -.4\nv -.4 -.4 .8\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";
const LOCALE = "/v1/locales/big";

/** Calls window.kotaTerrain[name](argument). */
const ask = (page, name, argument) =>
  page.evaluate(([n, a]) => window.kotaTerrain[n](a), [name, argument]);

let state = 1;
/** @returns {number} 0 to 1, of a fixed sequence (D. Lehmer) */
function random() {
  state = state * 48271 % 2147483647;
  return state / 2147483647;
}

/** A place a leg away that is on the ground. */
function nextPlace([x, y]) {
  for (;;) {
    const turn = 2 * Math.PI * random(), way = SPEED * LEG_S;
    const to = [x + way * Math.cos(turn), y + way * Math.sin(turn)];
    if (to.every((v) => v > 200 && v < SIDE - 200)) return to;
  }
}

/** Edits along a leg and a patch at its end; a pool that is full refuses the patch. */
async function change(kota, from, to, made) {
  for (let i = 1; i <= EDITS; i++) {
    const center = from.map((v, k) => v + (to[k] - v) * i / EDITS);
    await kota.post(`${LOCALE}/edits`, { brush: { shape: "raise", center, radius: 15,
      amount: i % 2 ? 3 : -3 } });
    made.edits++;
  }
  try {
    const [{ height }] = (await kota.height("big", [to])).results;
    await kota.post(`${LOCALE}/patches`, { center: to, size: [6, 6], scale: "coarse", bodies: [
      { model: "stone", position: [...to, height + 3], velocity: [0, 0, -5], density: 2500 }] });
    made.patches++;
  } catch (error) {
    if (error.status !== 503) throw error;
    made.refused++;
  }
}

async function flies(page, daemon, client) {
  const rows = [], made = { edits: 0, patches: 0, refused: 0 }, most = { blocks: 0, textures: 0 };
  let place = [SIDE / 2, SIDE / 2], wireBytes = 0;
  client.on("Network.dataReceived", ({ encodedDataLength }) => { wireBytes += encodedDataLength; });
  await client.send("Network.enable");
  await ask(page, "setCamera", { eye: [...place, 900], target: [place[0] + 100, place[1], 800] });
  await ask(page, "ready");
  const start = performance.now();
  while (performance.now() - start < 60000 * minutes) {
    const row = { wireBytes, frames: 0, km: 0, patches: 0 };
    for (let i = 0; i < LEGS_A_ROW; i++) {
      const to = nextPlace(place);
      const [got] = await Promise.all([ask(page, "fly", { to, seconds: LEG_S, height: 60 }),
        change(daemon.kota, place, to, made)]);
      row.frames += got.frames;
      row.km += SPEED * LEG_S / 1000;
      row.patches = Math.max(row.patches, (await ask(page, "sand")).patches.length);
      most.blocks = Math.max(most.blocks, got.most.blockBytes);
      most.textures = Math.max(most.textures, got.most.textureBytes);
      most.blocksBound = got.end.blockBytesMax;
      row.blocks = got.end.blockBytes;
      place = to;
    }
    await client.send("HeapProfiler.collectGarbage");
    row.heap = (await client.send("Runtime.getHeapUsage")).usedSize;
    row.wireBytes = wireBytes - row.wireBytes;
    row.chromium = chromiumTakes().bytes;
    const { text } = await daemon.kota.get("/metrics");
    row.daemon = Number(text.match(/^kota_resident_memory_bytes (\S+)/m)[1]);
    rows.push(row);
    const mb = (bytes) => (bytes / MB).toFixed(1);
    console.log(`| ${((performance.now() - start) / 60000).toFixed(1)} | ` +
      `${(row.frames / LEGS_A_ROW / LEG_S).toFixed(1)} | ${made.edits} | ${made.patches} | ` +
      `${row.patches} | ${mb(row.wireBytes / row.km)} | ${mb(row.blocks)} | ${mb(row.heap)} | ` +
      `${mb(row.chromium)} | ${mb(row.daemon)} |`);
  }
  return { rows, most, made };
}

/** @returns {string[]} what does not hold */
function unbounded({ rows, most }) {
  const half = Math.ceil(rows.length / 2), max = (list, name) => Math.max(...list.map(name));
  const [first, second] = [rows.slice(0, half), rows.slice(half)], wrong = [];
  const hold = (ok, text) => { if (!ok) wrong.push(text); };
  hold(most.blocks <= most.blocksBound, `blocks took ${most.blocks} bytes`);
  hold(most.textures <= 112 * 2 ** 20, `textures took ${most.textures} bytes`);
  if (!second.length) return wrong;
  const heaps = [first, second].map((list) => max(list, (row) => row.heap));
  hold(heaps[1] <= 1.25 * heaps[0] + HEAP_ROOM, `the heap grew: ${heaps}`);
  const traffic = [first, second].map((list) => max(list, (row) => row.wireBytes / row.km));
  hold(traffic[1] <= 1.5 * traffic[0], `the traffic grew: ${traffic} bytes a kilometre`);
  return wrong;
}

const folder = await mkdtemp(join(tmpdir(), "kota-bench-flight-"));
let daemon, browser;
try {
  const file = join(folder, "big.f32");
  await writeFile(join(folder, "hills.asc"), hills(129));
  execFileSync(join(binaries, "kota-worldgen"), ["enlarge", join(folder, "hills.asc"), file,
    String(SIDE + 1), "--threads", "2"]);
  daemon = await startDaemon([`${file}?cols=${SIDE + 1}&rows=${SIDE + 1}&spacing=1,1`, "--gpu", "cpu",
    "--patches-fine", "0", "--patches-medium", "0", "--patches-coarse", "4", "--patch-granules", "4096",
    "--patch-speed", "0", "--patch-linger-ms", "5000"]);
  browser = await openBrowser(chromium, ownGl);
  await daemon.kota.call("PUT", "/v1/models/stone", { body: new TextEncoder().encode(STONE),
    type: "model/obj" });
  const page = await openPage(browser, `${daemon.url}/#big`, makeCheck());
  await page.click("#view-3d");
  await page.waitForFunction(() => window.kotaTerrain.counters().frames > 0);
  console.log(`${cpus()[0].model}, Chromium ${browser.version()}, ${new Date().toISOString()
    .slice(0, 10)}, load average ${loadavg()[0].toFixed(1)}\n`);
  console.log("| minute | frames/s | edits | patches | alive at once | MB a km | blocks, MB | " +
    "heap, MB | Chromium, MB | daemon, MB |\n|---|---|---|---|---|---|---|---|---|---|");
  const got = await flies(page, daemon, await page.context().newCDPSession(page));
  console.log(`\nat most ${(got.most.blocks / MB).toFixed(1)} MB of blocks (the bound is ` +
    `${(got.most.blocksBound / MB).toFixed(1)}) and ${(got.most.textures / MB).toFixed(1)} MB of ` +
    `textures; ${got.made.refused} patches refused by a full pool`);
  const wrong = unbounded(got);
  for (const text of wrong) console.log(`not bounded: ${text}`);
  process.exitCode = wrong.length ? 1 : 0;
} finally {
  await browser?.close();
  await daemon?.stop();
  await rm(folder, { recursive: true, force: true });
}
