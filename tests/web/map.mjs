/**
 * The map and the questions: what is drawn, what clicks ask, and how answers and troubles read.
 * Each answer on the page is compared with the daemon's, asked directly with the page's request.
 */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { binaries, go, makeWorld, openPage, root, startDaemon, until, visit } from "./support.mjs";

// ---- the page as tests need it ------------------------------------------------------------------

/** Until every block in sight is there and drawn. */
const still = (page) => page.waitForFunction(() => window.kotaMap?.idle);

const text = (page, selector) => page.locator(selector).innerText();

/** What asks and answers of this page have in common with no earlier one. */
async function answerAfter(page, act) {
  await page.evaluate(() => { document.getElementById("took").textContent = ""; });
  await act();
  await page.waitForFunction(() => document.getElementById("took").textContent !== "");
  return { curl: await text(page, "#curl"), json: JSON.parse(await text(page, "#answer")) };
}

/** Clicks on the map's canvas, in its CSS pixels. */
const clickMap = (page, x, y) => page.locator("#map").click({ position: { x, y } });

/** The request of a curl line, asked again by the test. */
async function askedAgain(daemon, curl) {
  const body = /-d '(.*)' (http\S+)$/s.exec(curl);
  if (!body) throw new Error(`no body in ${curl}`);
  const path = body[2].slice(daemon.url.length);
  return { path, body: JSON.parse(body[1]),
    json: (await daemon.kota.post(path, JSON.parse(body[1]))).json };
}

async function openLocale(page, id) {
  await page.selectOption("#locale", id);
  await page.waitForFunction((want) => location.hash === `#${want}`, id);
  await still(page);
}

const view = (page) => page.evaluate(() => {
  const { x, y, scale, width, height } = window.kotaMap.view;
  return { x, y, scale, width, height };
});

/** Colours of the canvas at CSS pixels: [r, g, b, a] each. */
const coloursAt = (page, pixels) => page.evaluate((list) => {
  const canvas = document.getElementById("map"), ratio = canvas.width / canvas.clientWidth;
  return list.map(([x, y]) => [...canvas.getContext("2d")
    .getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1).data]);
}, pixels);

// ---- cases --------------------------------------------------------------------------------------

/** The cache alone, with fetches that the test settles. */
async function cacheCases(check) {
  const code = readFileSync(join(root, "client/web/map/tilecache.js"));
  const { TileCache, touches } =
    await import(`data:text/javascript;base64,${code.toString("base64")}`);
  const calls = [], turn = () => new Promise((done) => setImmediate(done));
  const kota = { tileHeights: (locale, level, column, row, o) => new Promise((done, fail) => {
    calls.push({ column, tag: o.tag, done });
    o.signal.addEventListener("abort", () => fail(o.signal.reason));
  }) };
  const cache = new TileCache(kota, { bytesMax: 3000, parallel: 2 });
  const place = (column) => ({ locale: "a", layer: "g", level: 0, column, row: 0 });
  const block = (tag) => ({ heights: new Float32Array(250), tag, bytes: 1000 });
  const gone = new AbortController();
  const loads = [cache.load(place(0)), cache.load(place(0)), cache.load(place(1))];
  const left = cache.load(place(2), { signal: gone.signal }).catch(() => "left");
  check.equal(calls.map((call) => call.column), [0, 1], "a block is fetched once, two at a time");
  calls[0].done(block("x"));
  check(await loads[0] === await loads[1], "who waits for the same block gets the same");
  await turn();
  gone.abort();
  check.equal([await left, cache.jobs.size], ["left", 1], "what nobody waits for is given up");
  cache.changed("a", null, [300, 0, 1, 1]);
  calls[1].done(block("y"));
  await turn();
  check.equal(calls.at(-1).tag, "y",
    "a block edited while it is fetched is asked again by its tag");
  calls.at(-1).done({ heights: null, tag: "y", bytes: 0 });
  check.equal([(await loads[2]).stale, cache.counters.unchanged], [false, 1],
    "and may be the same");
  for (const column of [3, 4, 5]) {
    const coming = cache.load(place(column));
    await turn();
    calls.at(-1).done(block(""));
    await coming;
  }
  check.equal([cache.bytes, cache.peek(place(0)), cache.counters.evicted], [3000, undefined, 2],
    "it holds no more than it may, and lets the oldest go");
  const one = { level: 1, column: 0, row: 0 };
  const rects = [[512, 0, 1, 1], [511, 0, 1, 1], [513, 0, 9, 9], [510, 3, 1, 2]];
  check.equal(rects.map((rect) => touches(one, rect)), [true, false, false, true],
    "an edit touches a coarse block where it changes one of its samples");
}

async function loadCases(page, check) {
  await still(page);
  const first = await page.evaluate(() => location.hash);
  check(first === "#highlands", "opens the first locale that has a heightfield", first);
  const tiles = await page.locator("#maps:visible").getAttribute("href");
  check(await page.evaluate(async (path) => (await (await fetch(path)).json()).tilejson, tiles) === "3.0.0",
    "links the TileJSON of a locale on the Earth", tiles);
  const ground = (await coloursAt(page, [[300, 300], [400, 350], [200, 500]])).map((c) => c[3]);
  check.equal(ground, [255, 255, 255], "draws the ground");
  const bare = { ...await view(page) };
  for (const name of ["contours", "hillshade"]) await page.getByLabel(name).uncheck();
  await still(page);
  const [plain] = await coloursAt(page, [[300, 300]]);
  check((await text(page, "#where")).includes("contours") === false, "layers are switched off");
  for (const name of ["contours", "hillshade"]) await page.getByLabel(name).check();
  await still(page);
  check.equal((await coloursAt(page, [[300, 300]]))[0].length, plain.length, "and on");
  check.equal(await view(page), bare, "which leaves the view where it is");
  await check.shot(page, "map");
}

const linear = (rgb) => rgb.slice(0, 3).map((code) => code / 255)
  .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
const rises = (values) => values.every((v, i) => i === 0 || v > values[i - 1]);
// of linear light; G. Machado, M. Oliveira, L. Fernandes 2009, severity 1
const visions = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039]] };

/** Places of the map from low to high, at least a fiftieth of the range apart, as pixels. */
async function placesByHeight(page, daemon, { min, max }) {
  const v = await view(page), all = Array.from({ length: 400 }, (_, i) =>
    [Math.cos(2.4 * i), Math.sin(2.4 * i)].map((side, k) => Math.floor(
      (k ? v.height : v.width) / 2 + v.height * 0.45 * side * Math.sqrt(i / 400))));
  const { results } = await daemon.kota.height("highlands", all.map(([px, py]) =>
    [v.x + (px + 0.5 - v.width / 2) / v.scale, v.y - (py + 0.5 - v.height / 2) / v.scale]));
  const found = results.map(({ height }, i) => ({ height, pixel: all[i] }))
    .filter(({ height }) => height !== null).sort((a, b) => a.height - b.height);
  let last = -Infinity;
  return found.filter(({ height }) => {
    if (height - last < (max[2] - min[2]) / 50) return false;
    last = height;
    return true;
  }).map(({ pixel }) => pixel);
}

/** Tints whose lightness rises with the height, whatever one sees; the choice is in the address. */
async function paletteCases(page, daemon, check) {
  const palettes = await page.evaluate(async () => (await import("/web/palette.js")).palettes);
  const [relief, ...safe] = Object.keys(palettes);
  check.equal([relief, ...safe], ["relief", "grey", "cividis", "viridis", "batlow"], "palettes");
  for (const name of safe)
    for (const [vision, rows] of Object.entries(visions)) {
      const seen = palettes[name].tints.map(linear).map((rgb) => luminance(rows.map((row) =>
        row.reduce((sum, share, i) => sum + share * rgb[i], 0))));
      check(seen.length === 256 && rises(seen), `${name} rises in lightness: ${vision}`, seen);
    }
  const { bounds } = (await daemon.kota.locale("highlands")).layers
    .find(({ kind }) => kind === "heightfield");
  const ends = (await text(page, "#palette-ticks")).split("\n").map(Number);
  check(ends.length === 5 && rises(ends), "the legend has five heights", ends);
  for (const [i, z] of [[0, bounds.min[2]], [4, bounds.max[2]]])
    check.near(ends[i], z, (bounds.max[2] - bounds.min[2]) / 20, "the lowest and the highest");
  for (const name of ["contours", "hillshade"]) await page.getByLabel(name).uncheck();
  await still(page);
  const places = await placesByHeight(page, daemon, bounds);
  let before = await coloursAt(page, places);
  check(places.length > 12, "places of many heights", places.length);
  for (const name of safe) {
    await page.selectOption("#palette", name);
    await still(page);
    const now = await coloursAt(page, places);
    check(now.every((colour, i) => colour.join() !== before[i].join()), `${name}: other colours`);
    const light = now.map(linear).map(luminance);
    check(rises(light), `${name}: what is higher is lighter on the map`, light);
    before = now;
  }
  for (const name of ["contours", "hillshade"]) await page.getByLabel(name).check();
  await still(page);
  await check.shot(page, "map-palette");
  const chosen = await coloursAt(page, places), address = page.url();
  check(/#highlands&palette=batlow$/.test(address), "the address has the palette", address);
  await visit(page, address);
  await still(page);
  check.equal([await page.locator("#palette").inputValue(), await coloursAt(page, places)],
    ["batlow", chosen], "and the address brings it back");
  await page.selectOption("#palette", relief);
  check(/#highlands$/.test(page.url()), "the default is not in the address", page.url());
  await still(page);
}

async function unknownPalette(page, check) {
  await visit(page, `${page.url()}&palette=mauve`);
  check.equal(await page.locator("#palette").inputValue(), "relief", "an unknown palette is the default");
  for (const name of ["grey", "relief"]) await page.selectOption("#palette", name);
}

/** Blocks come slowly: what has been scrolled away is not waited for. */
async function abortCase(page, check) {
  const counters = () => page.evaluate(() => ({ ...window.kotaMap.counters }));
  let goOn; // no block comes until the test has seen what is asked for
  const held = new Promise((done) => { goOn = done; });
  await page.route("**/tiles/0/**", async (route) => {
    await held;
    await route.continue().catch(() => {});
  });
  await visit(page, page.url());
  await page.waitForFunction(() => window.kotaMap.level === 0 && window.kotaMap.waiting > 1);
  const before = await counters(), box = await page.locator("#map").boundingBox();
  await page.mouse.move(box.x + 200, box.y + 200);
  for (let i = 0; i < 5; i++) await page.mouse.wheel(0, -240);
  await until(async () => (await counters()).aborted > before.aborted, "fetches given up");
  check(true, "blocks that have been scrolled away are not waited for");
  goOn();
  await page.unroute("**/tiles/0/**");
  await page.locator("#map").focus();
  await page.keyboard.press("Home");
  await still(page);
}

/** Two fingers drawn apart. */
async function pinch(page, box) {
  const session = await page.context().newCDPSession(page);
  const touch = (type, apart) => session.send("Input.dispatchTouchEvent", { type,
    touchPoints: type === "touchEnd" ? [] : [{ id: 1, x: box.x + 180 - apart, y: box.y + 180 },
      { id: 2, x: box.x + 180 + apart, y: box.y + 180 }] });
  await touch("touchStart", 30);
  for (let apart = 35; apart <= 90; apart += 5) await touch("touchMove", apart);
  await touch("touchEnd");
}

async function moveCases(page, check) {
  const before = await view(page), box = await page.locator("#map").boundingBox();
  const at = { x: Math.round(box.x) + 300, y: Math.round(box.y) + 300 };
  await page.mouse.move(at.x, at.y);
  for (let i = 0; i < 4; i++) await page.mouse.wheel(0, -200);
  await still(page);
  const near = await view(page);
  check(near.scale > 4 * before.scale, "the wheel zooms in", near);
  const under = (v) => [v.x + (at.x - box.x - v.width / 2) / v.scale,
    v.y - (at.y - box.y - v.height / 2) / v.scale];
  check(under(near).every((m, i) => Math.abs(m - under(before)[i]) < 1e-6),
    "about what is under the pointer", [under(near), under(before)]);
  await page.mouse.down();
  await page.mouse.move(at.x - 100, at.y + 60, { steps: 5 });
  await page.mouse.up();
  await still(page);
  const moved = await view(page);
  check.near(moved.x - near.x, 100 / near.scale, 1e-6, "a drag to the left shows what is east");
  check.near(moved.y - near.y, 60 / near.scale, 1e-6, "a drag down shows what is north");
  await page.locator("#map").focus();
  await page.keyboard.press("ArrowUp");
  check((await view(page)).y > moved.y, "the arrow up shows what is north");
  await page.keyboard.press("Home");
  await still(page);
  check.equal(await view(page), before, "Home shows the whole");
  check.equal(await page.evaluate(() => window.kotaMap.waiting), 0, "nothing is waited for then");
}

/** Straight down at a pixel: what pick must find, by numbers of the view alone. */
async function asked(daemon, v, pixel, locale) {
  const x = v.x + (pixel[0] - v.width / 2) / v.scale, y = v.y - (pixel[1] - v.height / 2) / v.scale;
  const camera = { eye: [x, y, 20000], target: [x, y, 0], up: [0, 1, 0], fov_y_deg: 60 };
  const answer = (await daemon.kota.post(`/v1/locales/${locale}/pick`,
    { camera, viewport: [100, 100], pixel: [50, 50], tile_side: 2 })).json;
  return { x, y, answer };
}

/** The kinds of what is marked over the ground. */
const markKinds = (page) => page.evaluate(async () =>
  (await import("/web/state.js")).state.marks.map((mark) => mark.kind));

const apart = (a, b) => Math.hypot(...a.map((v, i) => v - b[i]));

async function pickCases(page, daemon, check) {
  await page.click("[data-tool=pick]");
  await page.getByLabel("tile side").fill("2");
  const v = await view(page);
  let worst = 0, aside = 0, same = 0, cells = 0, tiles = 0;
  for (let i = 0; i < 10; i++) {
    const pixel = [Math.round(v.width / 2 + 230 * Math.cos(2.4 * i) * Math.sqrt(i / 9)),
      Math.round(v.height / 2 + 230 * Math.sin(2.4 * i) * Math.sqrt(i / 9))];
    const shown = await answerAfter(page, () => clickMap(page, ...pixel));
    const again = await askedAgain(daemon, shown.curl), sent = again.body.pixel;
    const want = await asked(daemon, v, sent, "highlands");
    aside = Math.max(aside, apart(sent, pixel));
    same += JSON.stringify(again.json) === JSON.stringify(shown.json);
    worst = Math.max(worst, apart(shown.json.hit.point, want.answer.hit.point),
      apart(shown.json.hit.normal, want.answer.hit.normal));
    cells += JSON.stringify(shown.json.hit.cell) === JSON.stringify(want.answer.hit.cell);
    tiles += JSON.stringify(shown.json.tile) === JSON.stringify(want.answer.tile);
  }
  check(aside < 1, "the pixel that is sent is the one that was clicked", aside);
  check.equal(same, 10, "ten pixels: the page shows what POST pick answers to its request");
  check.equal([cells, tiles], [10, 10], "the cells and logical tiles that a camera above picks");
  check(worst < 1e-6, "and the points and normals", worst);
  const words = await text(page, "#tool-answer");
  for (const word of ["point", "normal", "cell", "logical tile", "revision 2 of highlands"])
    check(words.toLowerCase().includes(word), `the answer in words names the ${word}`, words);
  check.equal(await markKinds(page), ["cell", "box", "line", "point"],
    "tile, box, normal and hit are marked");
  await page.locator("#map").focus();
  const middle = await answerAfter(page, () => page.keyboard.press("Enter"));
  check(apart(middle.json.hit.point.slice(0, 2), [v.x, v.y]) < 1e-6, "Enter asks at the middle");
}

/** A tool: clicks, the answer against the daemon's, and words that it must show. */
async function toolCase(page, daemon, check, { tool, clicks, words, prepare }) {
  await page.click(`[data-tool=${tool}]`);
  await prepare?.(page);
  for (const [x, y] of clicks.slice(0, -1)) {
    const points = page.locator(".points textarea"), before = await points.inputValue();
    await clickMap(page, x, y);
    await until(async () => (await points.inputValue()) !== before, `a point of ${tool}`);
  }
  const shown = await answerAfter(page, () => clickMap(page, ...clicks.at(-1)));
  const again = await askedAgain(daemon, shown.curl);
  check.equal(shown.json, again.json, `${tool}: the page shows the daemon's answer`);
  const said = await text(page, "#tool-answer");
  for (const word of words) check(word.test(said), `${tool}: says ${word}`, said);
  return { ...again, said };
}

async function toolCases(page, daemon, check) {
  const ask = (about) => toolCase(page, daemon, check, about);
  const height = await ask({ tool: "height", clicks: [[330, 330]],
    words: [/height\s+[\d.]+ m/, /revision/] });
  const [x, y] = height.body.points[0];
  const direct = (await daemon.kota.get(`/v1/locales/highlands/height?x=${x}&y=${y}`)).json;
  check.equal(height.json.results[0].height, direct.height, "height: as GET height says");
  const ray = await ask({ tool: "ray", clicks: [[300, 300], [500, 480]],
    words: [/visited\s+\d+ boxes/] });
  const { boxes, cells } = ray.json.results[0].trace, kinds = await markKinds(page);
  check(boxes.length > 0 && cells.length > 0, "ray: boxes and cells that it visited are told");
  check.equal(["box", "cell"].map((kind) => kinds.filter((k) => k === kind).length),
    [boxes.length, cells.length], "ray: and drawn");
  await check.shot(page, "map-ray");
  await ask({ tool: "los", clicks: [[250, 250], [550, 550]], words: [/visible|hidden/] });
  await ask({ tool: "contact", clicks: [[350, 420]],
    words: [/answer\s+ok/, /floor: point/, /floor: distance\s+(5|5\.000\d*|4\.999\d*) m/] });
  const car = await ask({ tool: "footprint", clicks: [[350, 420]], words: [/wheel 4/, /slope/] });
  check.equal(car.body.footprints[0].length, 4, "footprint: of four wheels");
  await ask({ tool: "contains", clicks: [[350, 420]], words: [/inside/, /floor below\s+yes/] });
  await lightCases(page, daemon, check, ask);
  await hexagonCase(page, daemon, check);
  await page.click("[data-tool=contact]");
  await page.locator(".points textarea").fill("1 2");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  check(/is not 3 numbers/.test(await text(page, "#tool-answer")), "what is typed wrong is told");
}

/** Logical tiles of the plan: the hexagon that was hit, and those around it. */
async function hexagonCase(page, daemon, check) {
  const { json } = await toolCase(page, daemon, check, { tool: "pick", clicks: [[350, 420]],
    words: [/hexagon\s+q -?\d+, r -?\d+, side 40 m/], prepare: async () => {
      await page.selectOption("select[name=tile]", "hex");
      await page.getByLabel("side in metres").fill("40");
    } });
  const { tile, hit } = json, kinds = await markKinds(page);
  check.equal(kinds.filter((kind) => kind === "area").length, 7, "hexagons: drawn with those around");
  const rings = await page.evaluate(async () => (await import("/web/state.js")).state.marks
    .filter(({ kind }) => kind === "area").map(({ ring }) => ring));
  const from = ([x, y], point) => Math.hypot(x - point[0], y - point[1]);
  check(rings.at(-1).every((corner) => Math.abs(from(corner, tile.center) - 40) < 1e-6) &&
    from(tile.center, hit.point) <= 40, "hexagons: around what was hit");
  await check.shot(page, "map-hexagons");
  await page.selectOption("select[name=tile]", "cells");
}

async function putStanding({ kota }) {
  await kota.call("PUT", "/v1/locales/standing", { json: { title: "Standing" } });
  await kota.call("PUT", "/v1/locales/standing/layers/ground?cols=9&rows=9&spacing=1,1",
    { body: new Float32Array(81).fill(3), type: "application/vnd.kota.f32" });
}

async function dropStanding(page, { kota }) {
  await openLocale(page, "highlands"); // tiles of what is deleted would be 404 in the console
  await kota.call("DELETE", "/v1/locales/standing", {});
}

/** The answer about the locale before comes after that about the one that is chosen. */
async function lateLocale(page, daemon, check) {
  await putStanding(daemon);
  let release;
  const isChosen = new Promise((done) => { release = done; });
  const others = /\/v1\/locales\/(?!standing)[^/?]+$/; // also what the page asks ahead of its reload
  await page.route(others, async (route) => {
    await isChosen;
    await route.continue().catch(() => {});
  });
  await page.reload();
  const late = page.waitForResponse(others);
  await openLocale(page, "standing");
  release();
  await late;
  await page.unroute(others);
  await still(page);
  check.equal(new URL(page.url()).hash, "#standing", "locale: the one that was chosen last stays");
  await dropStanding(page, daemon);
}

/** A kept question is a pin, whose answer changes with the ground; it ends when it is removed. */
async function pinCase(page, daemon, check) {
  await putStanding(daemon);
  await go(page, "standing");
  await still(page);
  await page.click("[data-tool=height]");
  await page.locator(".points textarea").fill("4 4");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByRole("button", { name: "Keep as a pin" }).click();
  const said = (words) => until(async () => words.test(await text(page, "#standing")), `${words}`);
  await said(/Height: height 3 m/);
  await daemon.kota.post("/v1/locales/standing/edits",
    { rect: [3, 3, 3, 3], op: "set", heights: new Array(9).fill(7) });
  await said(/Height: height 7 m/);
  check.equal((await daemon.kota.get("/v1/stats")).json.watches.items, 1, "pins: one item of a watch");
  await check.shot(page, "map-pins");
  await page.locator("#standing").getByRole("button", { name: "Remove" }).click();
  await until(async () => (await daemon.kota.get("/v1/stats")).json.watches.watches === 0,
    "the watch ends with its last pin");
  check(true, "pins: an answer that is kept changes as the ground does");
  await dropStanding(page, daemon);
}

async function lightCases(page, daemon, check, ask) {
  const seen = [];
  for (const altitude of ["89", "-70"]) {
    const { json, body, said } = await ask({ tool: "light", clicks: [[350, 420]],
      words: [/lit|in shadow/], prepare: () => page.getByLabel("height °").fill(altitude) });
    seen.push(json.results[0].lit);
    check(body.light.direction.every((v, i) => i < 2 || Math.sign(v) === -Math.sign(+altitude)),
      `light: the sun at ${altitude}° shines along its direction`, said);
  }
  check.equal(seen, [true, false], "light: by the sun high up, not by one below the ground");
  const lamp = await ask({ tool: "light", clicks: [[350, 420], [300, 400]], words: [/lit|in shadow/],
    prepare: async () => {
      await page.selectOption("select[name=light]", "lamp");
      await page.getByRole("button", { name: "Clear" }).click();
    } });
  const [place, source] = (await page.locator(".points textarea").inputValue()).split("\n")
    .map((line) => line.split(" ").map(Number));
  check.equal([lamp.body.points, lamp.body.light.position], [[place], source],
    "light: of a lamp that stands at the second click");
  check(await page.getByLabel("sun's azimuth").isHidden(), "light: a lamp has no azimuth");
}

/** Questions to the whole world, asked from one locale: the answer in its frame. */
async function worldCases(page, daemon, check) {
  await openLocale(page, "garden"); // its frame is turned and moved
  check(await page.locator("#maps").isHidden(), "no map tiles of a locale without a place");
  const typed = async (tool, points) => {
    await page.click(`[data-tool=${tool}]`);
    await page.getByLabel("in all locales").check();
    await page.locator(".points textarea").fill(points);
    const shown = await answerAfter(page,
      () => page.getByRole("button", { name: "Ask", exact: true }).click());
    check.equal(shown.json, (await askedAgain(daemon, shown.curl)).json,
      `${tool} in the world: the page shows the daemon's answer`);
    return text(page, "#tool-answer");
  };
  const ray = await typed("ray", "100 80 20\n130 80 -4");
  check(/locale\s+(village|garden)/.test(ray) && /passed\s+/.test(ray), "it names the locale", ray);
  const here = await typed("contact", "60 40 20");
  await page.getByLabel("in all locales").uncheck();
  const plain = await answerAfter(page,
    () => page.getByRole("button", { name: "Ask", exact: true }).click());
  const numbers = (words) => words.match(/floor: point\s+(.*)/)[1].split(", ").map(Number);
  check(apart(numbers(here), plain.json.results[0].floor.point) < 1e-4,
    "and its points lie where the locale's own answer has them", here);
}

async function profileCases(page, daemon, check) {
  await page.click("[data-tool=profile]");
  await page.getByLabel("samples").fill("60");
  const { json, said } = await toolCase(page, daemon, check, { tool: "profile",
    clicks: [[220, 300], [520, 450]], words: [/climb/] });
  const heights = json.results.map((item) => item.point[2]);
  const drawn = await page.locator("svg.plot .plot-line").evaluate((line) =>
    [...line.points].map((p) => [p.x, p.y]));
  check.equal(drawn.length, heights.length, "profile: the plot has a point for each result");
  const top = drawn.map((p) => p[1]).indexOf(Math.min(...drawn.map((p) => p[1])));
  check.equal(top, heights.indexOf(Math.max(...heights)), "profile: its top is the highest", said);
  const range = Math.max(...heights) - Math.min(...heights);
  const span = Math.max(...drawn.map((p) => p[1])) - Math.min(...drawn.map((p) => p[1]));
  const off = heights.map((z, i) =>
    Math.abs((heights[top] - z) / range * span - (drawn[i][1] - drawn[top][1])));
  check(Math.max(...off) < 0.05, "profile: heights are drawn to scale", off);
  await page.locator("svg.plot").hover({ position: { x: 150, y: 60 } });
  check(/m along: height/.test(await text(page, "figcaption")),
    "profile: the cursor tells the height");
  await check.shot(page, "map-profile");
}

/** The curl line does what it says, in a shell. */
async function curlCase(page, check) {
  const line = await text(page, "#curl"), shown = JSON.parse(await text(page, "#answer"));
  try {
    const { stdout } = await promisify(execFile)("sh", ["-c", `${line} -s`],
      { maxBuffer: 1 << 24 });
    check.equal(JSON.parse(stdout), shown, "the curl line has the same answer in a shell");
  } catch (error) {
    if (!/not found/.test(error.stderr)) throw error;
    check.skip("the curl line has the same answer in a shell", "no curl");
  }
}

async function editCase(page, daemon, check) {
  await page.click("[data-tool=pick]");
  const v = await view(page), pixel = [Math.round(v.width / 2), Math.round(v.height / 2)];
  await page.getByRole("button", { name: "Clear" }).click();
  await still(page);
  const [before] = await coloursAt(page, [pixel]);
  await daemon.kota.post("/v1/locales/highlands/edits",
    { brush: { shape: "raise", center: [v.x, v.y], radius: 60 / v.scale, amount: 400 } });
  const changed = await until(async () => {
    const [now] = await coloursAt(page, [pixel]);
    return now.join() !== before.join();
  }, "other pixels after an edit").catch(() => false);
  check(changed, "an edit that somebody makes is drawn");
  check(/revision 3/.test(await text(page, "#revision")), "and its revision shown");
}

/** Ground that is not: all NaN, some NaN, none at all, meshes alone. */
/** The height under the pointer is the daemon's, of the copy of the ground that the page holds. */
async function hereCase(page, daemon, check) {
  if (!existsSync(join(binaries, "kota_ground.wasm")))
    return check.skip("the height under the pointer", "built without kota_ground.wasm");
  await page.locator("#map").focus();
  await page.keyboard.press("Home");
  const box = await page.locator("#map").boundingBox();
  await page.mouse.move(Math.round(box.x) + 300, Math.round(box.y) + 300);
  for (let i = 0; i < 6; i++) await page.mouse.wheel(0, -200);
  await still(page);
  const shown = async () => /z (-?\d+\.\d{3}) m/.exec(await text(page, "#where"))?.[1];
  const { x, y } = await page.evaluate(async () => (await import("/web/state.js")).state.pointer);
  const height = async () => (await daemon.kota.getHeight("highlands", x, y)).height.toFixed(3);
  await until(shown, "an exact height under the pointer");
  check.equal(await shown(), await height(), "the height under the pointer is the daemon's");
  const before = await shown();
  await daemon.kota.edit("highlands",
    { brush: { shape: "raise", center: [x, y], radius: 60, amount: 7 } });
  const after = await height();
  check(after !== before, "an edit changes it", [before, after]);
  await until(async () => await shown() === after, `${after} under the pointer`);
  check(true, "and what the page shows, without the pointer's moving");
  check.equal(await page.evaluate(() => window.kotaMap.here.held.ground.staleness < 60), true,
    "the copy knows that it is current");
}

async function oddLocales(page, daemon, check) {
  const { kota } = daemon, side = 40;
  const put = async (id, layer, heights) => {
    await kota.call("PUT", `/v1/locales/${id}`, { json: { title: id } });
    if (heights)
      await kota.call("PUT",
        `/v1/locales/${id}/layers/${layer}?cols=${side}&rows=${side}&spacing=2,2`,
        { body: heights, type: "application/vnd.kota.f32" });
  };
  const hole = Float32Array.from({ length: side * side }, (_, i) => {
    const c = i % side, r = Math.floor(i / side);
    return c > 12 && c < 27 && r > 12 && r < 27 ? NaN : c + r;
  });
  await put("abyss", "ground", new Float32Array(side * side).fill(NaN));
  await put("holed", "ground", hole);
  await put("nothing", "", null);
  await visit(page, page.url());
  await openLocale(page, "holed");
  const v = await view(page);
  const px = (x, y) => [v.width / 2 + (x - v.x) * v.scale, v.height / 2 - (y - v.y) * v.scale];
  const miss = await answerAfter(page, () => clickMap(page, ...px(40, 40)));
  check.equal(miss.json.status, "miss", "a pick in a hole meets nothing");
  check(/miss: there is no ground/.test(await text(page, "#tool-answer")), "and says so");
  await page.getByLabel("holes").uncheck();
  await still(page);
  const [open] = await coloursAt(page, [px(41, 41)]);
  await page.getByLabel("holes").check();
  await still(page);
  const [hatched] = await coloursAt(page, [px(41, 41)]);
  check(open[3] === 0 && hatched[3] > 0, "holes are hatched, where asked for", [open, hatched]);
  await check.shot(page, "map-holes");
  await openLocale(page, "abyss");
  const none = await answerAfter(page, () => clickMap(page, 400, 350));
  check.equal(none.json.status, "miss", "a field of nothing but holes can be looked at and asked");
  await openLocale(page, "nothing");
  check(/has no ground yet/.test(await text(page, "#stage-note")),
    "a locale without layers says so");
  await openLocale(page, "holed");
  check(await page.locator("#stage-note").isHidden(), "which is gone with the next one");
}

async function meshCases(page, daemon, check) {
  await openLocale(page, "village");
  check(/no heightfield/.test(await text(page, "#message")), "a locale of meshes alone says so");
  const lines = () => page.evaluate(() => {
    const canvas = document.getElementById("map");
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let count = 0;
    for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
    return count;
  });
  await until(async () => await lines() > 5000, "outlines of the meshes");
  const shown = await lines();
  await page.getByLabel("meshes").uncheck();
  await until(async () => await lines() < shown / 2, "no outlines");
  check(true, "its meshes are drawn as outlines, and can be hidden");
  await page.getByLabel("meshes").check();
  check(await page.getByLabel("quadtree").isVisible(), "the leaves of quadtrees can be shown");
  await page.getByLabel("quadtree").check();
  await until(async () => await page.evaluate(async () =>
    (await import("/web/state.js")).state.marks.filter(({ kind }) => kind === "area").length) > 3,
  "leaves over the village");
  await check.shot(page, "map-quadtree");
  await page.getByLabel("quadtree").uncheck();
  await until(async () => await page.evaluate(async () =>
    (await import("/web/state.js")).state.marks.length) === 0, "no leaves");
  await toolCase(page, daemon, check, { tool: "contact", clicks: [[400, 330]],
    words: [/floor: polygon/] });
  const ray = await toolCase(page, daemon, check, { tool: "ray", clicks: [[300, 300], [420, 400]],
    words: [/hit|miss|polygon/] });
  check.equal(ray.json.results.length, 1, "and can be asked by ray and contact");
  await check.shot(page, "map-meshes");
}

/** Until the panel's answer has these words. */
const says = (page, words) => page.waitForFunction((part) =>
  document.getElementById("tool-answer").textContent.includes(part), words);

/** A daemon that is slow, older, away and back. */
async function troubleCases(page, check) {
  const folder = await mkdtemp(join(tmpdir(), "kota-web-map-"));
  const world = join(folder, "world");
  await makeWorld(world, 128);
  let daemon = await startDaemon(["--world", world]);
  check.expect(/Failed to load resource|ERR_/);
  const other = await openPage(page.context().browser(), daemon.url, check);
  try {
    await still(other);
    let goOn;
    const held = new Promise((done) => { goOn = done; });
    await other.route("**/pick", async (route) => {
      await held;
      await route.continue();
    });
    await clickMap(other, 400, 350);
    await says(other, "takes its time");
    goOn();
    await says(other, "logical tile");
    check(true, "a slow daemon is waited for, in words");
    await other.unroute("**/pick");
    await other.route("**/pick", (route) => route.fulfill({ status: 404,
      contentType: "application/problem+json", body: JSON.stringify({
        title: "Not found", status: 404, detail: "no such call" }) }));
    await answerAfter(other, () => clickMap(other, 420, 350));
    check(/no such call/.test(await text(other, "#tool-answer")),
      "an older one's refusal is told in words");
    await other.unroute("**/pick");
    const port = new URL(daemon.url).port;
    await daemon.stop();
    await clickMap(other, 400, 360);
    await says(other, "cannot be reached");
    check((await coloursAt(other, [[400, 350]]))[0][3] === 255,
      "away: the map stays, and it says so");
    await other.waitForFunction(() => document.getElementById("feed").textContent !== "live");
    check.equal(await text(other, "#feed"), "reconnecting", "away: the feed says so, too");
    await check.shot(other, "map-away");
    await other.selectOption("#locale", "islands");
    await other.locator("#stage-note").waitFor();
    check(/cannot be reached/.test(await text(other, "#message")),
      "away: a locale that cannot be read is no blank page");
    daemon = await startDaemon(["--world", world, "--listen", `127.0.0.1:${port}`]);
    await other.waitForFunction(() => location.hash === "#islands" &&
      document.getElementById("feed").textContent === "live");
    await still(other);
    await answerAfter(other, () => clickMap(other, 400, 350));
    check(/logical tile/.test(await text(other, "#tool-answer")), "back: it goes on by itself");
  } finally {
    await other.context().close();
    await daemon.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function emptyWorld(page, check) {
  const daemon = await startDaemon([]);
  const other = await openPage(page.context().browser(), daemon.url, check);
  check(/has no locale yet/.test(await text(other, "#empty")),
    "a daemon without a locale is no blank page");
  await other.context().close();
  await daemon.stop();
}

async function smallScreen(page, check) {
  const other = await openPage(page.context().browser(), page.url(), check,
    { viewport: { width: 390, height: 780 }, hasTouch: true, colorScheme: "dark" });
  await openLocale(other, "highlands");
  const sizes = await other.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check(sizes[0] <= sizes[1], "a small screen needs no scrolling sideways", sizes);
  const box = await other.locator("#map").boundingBox();
  await answerAfter(other, () => other.touchscreen.tap(box.x + 180, box.y + 200));
  check(/logical tile/.test(await text(other, "#tool-answer")), "a tap picks");
  await check.shot(other, "map-small");
  const before = await view(other);
  await pinch(other, box);
  const after = await view(other);
  check.near(after.scale / before.scale, 3, 0.05, "two fingers zoom by as much as they part");
  await other.context().close();
}

export async function run(page, daemon, check) {
  await cacheCases(check);
  await loadCases(page, check);
  await paletteCases(page, daemon, check);
  await moveCases(page, check);
  await pickCases(page, daemon, check);
  await toolCases(page, daemon, check);
  await profileCases(page, daemon, check);
  await curlCase(page, check);
  await editCase(page, daemon, check);
  await hereCase(page, daemon, check);
  await pinCase(page, daemon, check);
}

export async function rest(page, daemon, check) {
  await unknownPalette(page, check);
  await lateLocale(page, daemon, check);
  await abortCase(page, check);
  await page.click("[data-tool=pick]");
  await oddLocales(page, daemon, check);
  await meshCases(page, daemon, check);
  await worldCases(page, daemon, check);
  await smallScreen(page, check);
  await emptyWorld(page, check);
  await troubleCases(page, check);
}
