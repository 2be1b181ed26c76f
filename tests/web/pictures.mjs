/**
 * Draws the pictures of README.md and docs/ again, and some of the inspector, by name only:
 *
 *   node tests/web/inspect.mjs pictures
 *
 * They go to $KOTA_BIN_DIR/web. functions.png is by tests/api/functions_picture.py, drop.png by kota-sand,
 * scales.png by a daemon's patches, inspector-*.png by the page. All but the first have a palette, so
 * that each is below 400 KB. docs/images/ has those that a page shows.
 */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { daemonArgs, putBeach } from "./live.mjs";
import { binaries, makeWorld, openPage, pictures, root, startDaemon, until } from "./support.mjs";
import { smallPng } from "./smallpng.mjs";

const limit = 395000;
const runProgram = promisify(execFile);

/**
 * PNGs on one sheet, as small as it gets, in the test's folder.
 * @param {any} page whose browser decodes them
 * @param {Buffer[][]} rows of PNGs of one size
 * @param {{rows?: string[], columns?: string[]}} [words] beside and above them
 * @returns {number} bytes
 */
async function drawSheet(page, name, rows, words = {}) {
  const texts = rows.map((row) => row.map((png) => png.toString("base64")));
  const { width, height, rgba } = await page.evaluate(async ([list, labels]) => {
    const images = await Promise.all(list.map((row) => Promise.all(row.map(async (text) => {
      const image = new Image();
      image.src = `data:image/png;base64,${text}`;
      await image.decode();
      return image;
    }))));
    const [{ width: w, height: h }] = images[0], gap = list.flat().length > 1 ? 4 : 0;
    const top = labels.columns ? 24 : 0, columns = images[0].length;
    const canvas = new OffscreenCanvas(columns * (w + gap) - gap,
      top + images.length * (h + gap) - gap);
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.font = "14px sans-serif";
    for (const [r, row] of images.entries())
      for (const [c, image] of row.entries()) pen.drawImage(image, c * (w + gap), top + r * (h + gap));
    pen.fillStyle = "#111";
    for (const [c, text] of (labels.columns ?? []).entries()) pen.fillText(text, c * (w + gap) + 4, 16);
    for (const [r, text] of (labels.rows ?? []).entries())
      pen.fillText(text, 6, top + r * (h + gap) + 18);
    const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
    let bytes = "";
    for (let i = 0; i < data.length; i += 8192)
      bytes += String.fromCharCode(...data.subarray(i, i + 8192));
    return { width: canvas.width, height: canvas.height, rgba: btoa(bytes) };
  }, [texts, words]);
  const file = smallPng(width, height, Buffer.from(rgba, "base64"), limit);
  mkdirSync(pictures, { recursive: true });
  writeFileSync(join(pictures, `${name}.png`), file);
  return file.length;
}

/** What the page shows. @returns {number} bytes */
const draw = async (page, name) => drawSheet(page, name, [[await page.screenshot({ timeout: 600000 })]]);

async function openLocale(page, id) {
  await page.selectOption("#locale", id);
  await page.waitForFunction((wanted) => document.getElementById("revision").textContent !== "" &&
    location.hash === `#${wanted}`, id);
  await page.waitForFunction(() => window.kotaMap?.idle);
}

/** A profile across the highlands. */
async function mapPicture(page) {
  await openLocale(page, "highlands");
  await page.click("#tab-tools");
  await page.click('#panel-tools button:text-is("Profile")');
  for (const [x, y] of [[200, 260], [420, 300], [640, 620]])
    await page.locator("#map").click({ position: { x, y } });
  await page.waitForSelector("#panel-tools svg.plot");
  await page.locator("#panel-tools svg.plot").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => window.kotaMap.idle);
  return draw(page, "inspector-map");
}

/** A pick in the 3D view, with what the ray visited. */
async function terrainPicture(page) {
  await page.click("#view-3d");
  await page.evaluate(() => window.kotaTerrain.ready());
  await page.click('#panel-tools button:text-is("Pick")');
  await page.locator("#terrain").click({ position: { x: 470, y: 330 } });
  await page.waitForFunction(() => document.getElementById("curl").textContent.includes("/pick"));
  await page.evaluate(() => window.kotaTerrain.refined());
  const bytes = await draw(page, "inspector-3d");
  await page.click("#view-map");
  return bytes;
}

/** A barrel that fell on dunes. */
async function sandPicture(page) {
  await openLocale(page, "beach");
  await page.click("#tab-sand");
  await page.waitForFunction(() => !document.getElementById("sand-create").disabled);
  for (const [id, value] of Object.entries({ x: 27, y: 34, width: 9, length: 9, radius: 0.8 }))
    await page.fill(`#sand-${id}`, String(value));
  await page.click("#sand-create");
  await until(() => page.locator("#sand-states .now.resting").count(), "a patch at rest", 120000);
  await page.waitForSelector("#sand-view:not([hidden])");
  await page.waitForTimeout(2000); // the picture of the rest
  return draw(page, "inspector-sand");
}

/** What kota's questions mean; its bytes are those that test_functions_picture.py compares. */
async function functionsPicture() {
  const path = join(pictures, "functions.png");
  mkdirSync(pictures, { recursive: true });
  await runProgram("python3", [join(root, "tests/api/functions_picture.py"), path],
    { env: { ...process.env, KOTA_BIN_DIR: binaries } });
  return readFileSync(path).length;
}

/** A barrel that falls, in four pictures. */
async function dropPicture(page) {
  const path = join(pictures, "drop-whole.png");
  mkdirSync(pictures, { recursive: true });
  await runProgram(join(binaries, "kota-sand"), ["film", path]);
  return drawSheet(page, "drop", [[readFileSync(path)]]);
}

// ---- one drop at three scales ---------------------------------------------------------------------

const scales = ["coarse", "medium", "fine"];
const film = { side: 161, spacing: 0.25, size: 6, depth: 1.8, radius: 1.2, drop: 7, speed: 14,
  shape: [264, 198] };

/** An OBJ of a ball: an octahedron whose faces are split and pushed out. */
function ballObj(radius, splits = 3) {
  const points = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]];
  let faces = [[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]];
  for (let i = 0; i < splits; i++) {
    const middles = new Map();
    const middle = (a, b) => {
      const key = a < b ? `${a} ${b}` : `${b} ${a}`;
      if (!middles.has(key)) {
        const sum = points[a].map((v, k) => v + points[b][k]);
        middles.set(key, points.push(sum.map((v) => v / Math.hypot(...sum))) - 1);
      }
      return middles.get(key);
    };
    faces = faces.flatMap(([a, b, c]) => {
      const [d, e, f] = [middle(a, b), middle(b, c), middle(c, a)];
      return [[a, d, f], [d, b, e], [f, e, c], [d, e, f]];
    });
  }
  return [...points.map((p) => `v ${p.map((v) => v * radius).join(" ")}`),
    ...faces.map((face) => `f ${face.map((k) => k + 1).join(" ")}`)].join("\n");
}

/** A locale of low dunes, 40 m wide. */
async function putFilmGround(kota) {
  const { side, spacing } = film, heights = Float32Array.from({ length: side * side }, (_, i) => {
    const x = spacing * (i % side), y = spacing * Math.floor(i / side);
    return 4 + 0.5 * Math.sin(0.3 * x + 0.12 * y) + 0.06 * Math.sin(1.7 * x - 0.5 * y);
  });
  await kota.call("PUT", "/v1/locales/film", { json: { title: "Film" } });
  await kota.call("PUT", `/v1/locales/film/layers/ground?cols=${side}&rows=${side}` +
    `&spacing=${spacing},${spacing}`, { body: heights, type: "application/vnd.kota.f32" });
  await kota.call("PUT", "/v1/models/ball", { body: ballObj(film.radius), type: "model/obj" });
}

/** The drop in granules of one scale: PNGs of the fall, the impact, the splash, the rest, the ground. */
async function dropFrames({ url, kota }, scale, check) {
  const middle = film.spacing * (film.side - 1) / 2, floor = (await kota.get(
    `/v1/locales/film/height?x=${middle}&y=${middle}`)).json.height;
  const eye = [middle - 9, middle - 9, floor + 9], target = [middle, middle, floor + 0.4];
  const picture = async (path) => Buffer.from(await (await fetch(`${url}${path}`)).arrayBuffer());
  const camera = `eye=${eye}&target=${target}&fov_y_deg=28`, [width, height] = film.shape;
  const made = (await kota.post("/v1/locales/film/patches", { center: [middle, middle], scale,
    size: [film.size, film.size], depth: film.depth, seed: 3, bodies: [{ model: "ball", density: 2500,
      position: [middle, middle, floor + film.drop], velocity: [0, 0, -film.speed] }] })).json;
  const place = `/v1/locales/film/patches/${made.id}`, kept = {};
  let since; // it met the ground, in simulated seconds
  check.note(`${scale}: ${made.granules} granules of ${made.granule_diameter.toFixed(2)} m, ` +
    `estimated ${JSON.stringify(made.estimated_ms)}`);
  const phaseNow = async () => {
    const { state, reason, time_s: now, bodies: [ball] } = (await kota.get(place)).json;
    if (state === "resting") return "rest";
    if (["filling", "settling"].includes(state) || ball.held) return "";
    if (state !== "active") throw new Error(`${state}: ${reason}`);
    const over = ball.position[2] - floor - film.radius;
    if (over < 0) since ??= now;
    const after = since === undefined ? -1 : now - since;
    return after < 0 ? over > 0.2 && over < 1.8 && "fall" : after < 0.12 ? "impact" :
      after > 0.2 && after < 0.6 && "splash";
  };
  await until(async () => { // a picture counts if the patch was in one phase before it and after it
    const phase = await phaseNow();
    if (!phase || kept[phase]) return false;
    const png = await picture(`${place}/view.png?${camera}&width=${width}&height=${height}`);
    if (await phaseNow() === phase) kept[phase] = png;
    return Boolean(kept.rest);
  }, `the rest of the ${scale} patch`, 900000);
  await kota.call("DELETE", place, {});
  kept.ground = await picture(`/v1/locales/film/view.png?${camera}&size=${film.shape}&shadows=true`);
  return ["fall", "impact", "splash", "rest", "ground"].map((name) => {
    if (!kept[name]) throw new Error(`${scale}: nothing was seen of the ${name}`);
    return kept[name];
  });
}

/** The same ball falls into granules of three sizes, on the processor, at a twentieth of real time. */
async function scalesPicture(page, check) {
  const rows = [];
  for (const scale of scales) { // a daemon each: the ground is as before
    const daemon = await startDaemon(["--gpu", "cpu", "--patch-speed", "5", "--patch-granules", "32768",
      "--patch-active-max-ms", "2000", "--patch-threads", "2",
      ...scales.flatMap((one) => [`--patches-${one}`, one === scale ? "1" : "0"])]);
    await putFilmGround(daemon.kota);
    rows.push(await dropFrames(daemon, scale, check));
    await daemon.stop();
  }
  return drawSheet(page, "scales", rows, { rows: scales,
    columns: ["fall", "impact", "0.2 to 0.6 s later", "1.5 s later", "the ground that is written"] });
}

/** @param {any} page of another daemon, for its browser @param {any} _ @param {any} check */
export async function run(page, _, check) {
  const folder = await mkdtemp(join(tmpdir(), "kota-web-pictures-")), world = join(folder, "world");
  await makeWorld(world, 1024);
  const daemon = await startDaemon(["--world", world, ...daemonArgs]);
  await putBeach(daemon.kota);
  const own = await openPage(page.context().browser(), daemon.url, check);
  for (const one of [functionsPicture, dropPicture, scalesPicture, mapPicture, terrainPicture,
    sandPicture]) {
    const bytes = await one(own, check);
    check(bytes <= limit, `${one.name} is below 400 KB`, `${bytes} bytes`);
  }
  await own.context().close();
  await daemon.stop();
  await rm(folder, { recursive: true });
}
