/**
 * The pages of client/examples/maps in Chromium, with the real libraries of tests/web/node_modules and
 * tests/libraries/node_modules. Prints TAP; run by tests/api/test_map_pages.py, which makes the locales.
 *
 *   node tests/web/maps.mjs URL PAGE…   PAGE: maplibre cesium deck openlayers three
 *
 * Of each: no other host is asked, no error is in the page, a picture is kept, and the heights that the
 * library has at 100 places are those of the API, within the step of what it read.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

import { Kota } from "../../client/web/kota.js";
import { chromiumPath, makeCheck, openBrowser, pictures, root, until } from "./support.mjs";

const [url, ...names] = process.argv.slice(2);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json",
  ".wasm": "application/wasm", ".svg": "image/svg+xml", ".png": "image/png" };
const TERRARIUM_M = 1 / 256;
const EDITS = 5;
const kota = new Kota(url);

let playwright;
try {
  playwright = await import("playwright-core");
} catch {
  console.log("1..0 # SKIP no playwright-core: run `npm ci` in tests/web");
  process.exit(0);
}
if (!chromiumPath()) {
  console.log("1..0 # SKIP no chromium in PATH (KOTA_CHROMIUM)");
  process.exit(0);
}
if (names.some((name) => name !== "maplibre") && !existsSync(join(root, "tests/libraries/node_modules/.complete"))) {
  console.log("1..0 # SKIP no libraries: python3 tests/libraries/fetch.py");
  process.exit(0);
}

/** The site of the pages: their folder, with node_modules of the tests. */
const site = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const folders = pathname.startsWith("/node_modules/") ? ["tests/web", "tests/libraries"] : ["client/examples/maps"];
  const file = folders.map((folder) => join(root, folder, pathname)).find((path) => existsSync(path));
  if (!file) return response.writeHead(404).end();
  response.writeHead(200, { "Content-Type": TYPES[extname(pathname)] ?? "application/octet-stream" });
  return response.end(readFileSync(file));
});
await new Promise((done) => { site.listen(0, "127.0.0.1", done); });
const SITE = `http://127.0.0.1:${site.address().port}`;

// ---- what the pages share --------------------------------------------------------------------------

/** A page that is open: `answers` of kotad, [path, status, ETag, when it was asked]; `wrong`: other hosts, errors. */
async function open(browser, name, id, before = () => {}, viewport = { width: 800, height: 600 }) {
  const page = await browser.newPage({ viewport });
  page.setDefaultTimeout(0); // a busy machine takes as long as it takes; the caller ends a page that hangs
  await page.addInitScript(before);
  const answers = [], wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => {
    const at = new URL(request.url());
    if (at.protocol.startsWith("http") && ![SITE, new URL(url).origin].includes(at.origin)) wrong.push(at.href);
  });
  // what came over the wire: Chromium answers 304 with what it has kept, as 200; either event may be the first
  const wire = await page.context().newCDPSession(page), known = new Map();
  const hear = (requestId, part) => {
    const { at, asked, status, tag } = Object.assign(known.get(requestId) ?? {}, part);
    if (status && at?.origin === new URL(url).origin) answers.push([at.pathname, status, tag, asked]);
    else known.set(requestId, { at, asked, status, tag });
  };
  await wire.send("Network.enable");
  wire.on("Network.requestWillBeSent", ({ requestId, request, wallTime }) => (
    hear(requestId, { at: new URL(request.url), asked: 1000 * wallTime })));
  wire.on("Network.responseReceivedExtraInfo", ({ requestId, statusCode, headers }) => (
    hear(requestId, { status: statusCode, tag: headers.ETag })));
  await page.goto(`${SITE}/${name}.html?kota=${encodeURIComponent(url)}&locale=${id}`);
  return { page, answers, wrong };
}

async function shoot(page, name) {
  mkdirSync(pictures, { recursive: true });
  return page.screenshot({ path: join(pictures, `${name}.png`) });
}

async function close({ page, wrong }, check, name) {
  const picture = await shoot(page, name);
  check(picture.length > 5000, "the picture shows something", `${picture.length} bytes`);
  check(wrong.length === 0, "no other host is asked, no error is in the page", wrong.join(" "));
  await page.close();
}

/** Heights of the surface at [longitude, latitude], null where there is none. */
async function heightsAt(id, places) {
  const locations = places.map(([lng, lat]) => `${lat},${lng}`).join("|");
  const { results } = await kota.elevation({ dataset: id, locations, interpolation: "triangle" });
  return results.map((result) => result.elevation);
}

/** Compares [longitude, latitude, height] with the API; at least `least` of them are on ground. */
async function compare(check, id, seen, within, sentence, least = 100) {
  const wanted = await heightsAt(id, seen);
  const known = seen.filter((_, i) => wanted[i] !== null).length;
  const worst = Math.max(...seen.map(([, , height], i) => (wanted[i] === null ? 0 : Math.abs(height - wanted[i]))));
  check(known >= least && worst <= within, `${sentence}: ${known} heights, the worst is off by ${worst.toPrecision(3)} m`,
    `asked: ${least} heights, ${within} m`);
}

/** Of a list, n spread over it. */
const some = (list, n) => (list.length <= n ? list : Array.from({ length: n }, (_, i) => list[Math.floor(i * list.length / n)]));

/** [longitude, latitude] of a place in web Mercator's square, 0 to 1 from the north-west. */
const degrees = (x, y) => [x * 360 - 180, Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180 / Math.PI];

// ---- MapLibre --------------------------------------------------------------------------------------

/** Before the page's own script: keeps when the first ground was drawn. */
function watchStart() {
  const look = () => {
    const map = window.shown;
    if (!map) return requestAnimationFrame(look);
    return map.on("render", () => {
      if (map.terrain && map.isSourceLoaded("ground")) window.shownAt ??= performance.now();
    });
  };
  requestAnimationFrame(look);
}

/** Each time the map has drawn: keeps when the middle of the picture last changed. */
function watchPicture() {
  const map = window.shown, gl = map.painter.context.gl, side = 100, bytes = new Uint8Array(4 * side * side);
  let last;
  map.on("render", () => {
    gl.readPixels((gl.drawingBufferWidth - side) / 2, (gl.drawingBufferHeight - side) / 2, side, side,
      gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    let sum = 0;
    for (let i = 0; i < bytes.length; i++) sum = (sum * 31 + bytes[i]) | 0;
    if (last !== undefined && sum !== last) window.changedAt = Date.now();
    last = sum;
  });
  map.triggerRepaint();
}

async function maplibre(browser, check) {
  const id = "hills";
  const opened = await open(browser, "maplibre", id, watchStart, { width: 200, height: 150 }), { page, answers } = opened;
  await until(() => page.evaluate(() => window.shown?.loaded() && window.shown.areTilesLoaded()), "the map is loaded");
  const [all, ours] = await page.evaluate((base) => [window.shownAt, window.shownAt - performance.getEntriesByType("resource")
    .find(({ name }) => name.startsWith(`${base}/v1`)).startTime], url);
  check.note(`the first ground after ${Math.round(ours)} ms, ${Math.round(all)} ms with the page and its library`);
  await until(() => answers.some(([path]) => /\/dem\/\d+\/\d+\/\d+\.png$/.test(path)), "a tile of heights was asked for");
  // its tiles are of 512 pixels: of zoom z it has the heights of z - 1; a pixel is at its north-western corner
  const { bounds, maxzoom } = await kota.demJson(id), n = 256 * 2 ** (maxzoom - 1);
  const [west, south, east, north] = bounds, lat = (south + north) / 2 * Math.PI / 180;
  const [x0, y0] = [((west + east) / 2 + 180) / 360, (1 - Math.asinh(Math.tan(lat)) / Math.PI) / 2].map((v) => Math.floor(n * v));
  const pixels = Array.from({ length: 100 }, (_, i) => [x0 + i * 37 % 80 - 40, y0 + i % 60 - 30]); // all in the picture
  await page.evaluate(([zoom, center]) => window.shown.jumpTo({ zoom, center, pitch: 0 }),
    [maxzoom, degrees(x0 / n, y0 / n)]);
  await until(() => page.evaluate(() => window.shown.loaded() && window.shown.areTilesLoaded()), "the last zoom is loaded");
  const seen = await page.evaluate(([list, zoom]) => list.map(([lng, lat]) =>
    window.shown.terrain.getElevationForLngLatZoom(new window.maplibregl.LngLat(lng, lat), zoom)),
  [pixels.map(([x, y]) => degrees(x / n, y / n)), maxzoom]);
  await compare(check, id, pixels.map(([x, y], i) => [...degrees((x + 0.5) / n, (y + 0.5) / n), seen[i]]), TERRARIUM_M,
    "elevations of the map");
  await page.evaluate(([box]) => window.shown.fitBounds(box, { animate: false, pitch: 50 }), [bounds]);
  await until(() => page.evaluate(() => window.shown.loaded() && window.shown.areTilesLoaded()), "all is loaded again");
  await shoot(page, "maplibre-before");
  await edits(opened, id, check);
  await close(opened, check, "maplibre");
}

/** Milliseconds that the page takes for a frame, now. */
const frameMs = () => new Promise((done) => {
  const map = window.shown, start = performance.now();
  let left = 3;
  map.on("render", function again() {
    if (--left > 0) return map.triggerRepaint();
    map.off("render", again);
    return done((performance.now() - start) / 3);
  });
  map.triggerRepaint();
});

async function edits({ page, answers }, id, check) {
  const { bounds: { min, max } } = await kota.locale(id), times = [], wrong = [];
  const isTile = ([path]) => path.includes("/dem/");
  let fetched = 0, kept = 0;
  const frame = await page.evaluate(frameMs);
  await page.evaluate(watchPicture);
  for (let i = 0; i < EDITS; i++) {
    const before = new Map(answers.filter(isTile).map(([path, , tag]) => [path, tag]));
    await page.evaluate(() => { window.changedAt = 0; });
    const start = Date.now();
    const { rect: [c, r, cols, rows] } = await kota.edit(id, { brush: { shape: "raise", amount: 200,
      radius: (max[0] - min[0]) / 12, center: [(min[0] + max[0]) / 2, (min[1] + max[1]) / 2] } });
    times.push(await until(() => page.evaluate(() => window.changedAt), "the picture changes") - start);
    await until(() => page.evaluate(() => window.shown.loaded() && window.shown.areTilesLoaded()), "tiles are loaded");
    const { spacing: [dx, dy], origin: [x0, y0] } = (await kota.locale(id)).layers[0];
    const bounds = { min: [x0 + (c - 1) * dx, y0 + (r - 1) * dy], max: [x0 + (c + cols) * dx, y0 + (r + rows) * dy] };
    const touched = new Set((await kota.tilesOf({ locale: id, bounds }, 0, 22))
      .map(({ z, x, y }) => `/v1/locales/${id}/dem/${z}/${x}/${y}.png`));
    // an answer may be reported long after its picture, and raised ground shows tiles that were hidden
    for (const [path, status, tag, asked] of answers.filter(isTile)) {
      if (asked < start || !before.has(path)) continue;
      if (!touched.has(path) || (status === 200 && before.get(path) === tag)) wrong.push(`${path} ${status}`);
      fetched += status === 200;
      kept += status === 304;
    }
  }
  // no limit: the software renderer of a busy machine takes seconds for a frame
  console.log(`# an edit changes the picture after ${times.join(", ")} ms; a frame takes ${Math.round(frame)} ms`);
  check(wrong.length === 0 && fetched > 0, `only changed tiles are fetched: ${fetched} in ${EDITS} edits, ${kept} were the same`,
    wrong.join(" "));
}

// ---- Cesium ----------------------------------------------------------------------------------------

/** [longitude, latitude, height, step] at vertices in the middle of the ground at the last level; the worst gap between tiles. */
async function ofProvider([id, base]) {
  const { Cesium } = window;
  const provider = await Cesium.CesiumTerrainProvider.fromUrl(`${base}/v1/locales/${id}/terrain`);
  const { bounds, maxzoom: level } = await (await fetch(`${base}/v1/locales/${id}/terrain/layer.json`)).json();
  const isAround = bounds[2] - bounds[0] > 90; // over the antimeridian
  const middle = Cesium.Cartographic.fromDegrees(isAround ? 179.999 : (bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2);
  const scheme = provider.tilingScheme, at = scheme.positionToTileXY(middle, level), around = 2 ** (level + 1);
  const tiles = [], vertices = [];
  for (let dy = -1; dy <= 1; dy++)
    for (let dx = -1; dx <= 1; dx++) {
      const x = (at.x + dx + around) % around, y = at.y + dy;
      const data = await provider.requestTileGeometry(x, y, level), list = data._quantizedVertices, count = list.length / 3;
      const box = scheme.tileXYToRectangle(x, y, level), step = (data._maximumHeight - data._minimumHeight) / 32767;
      const all = Array.from({ length: count }, (_, i) => (
        { u: list[i], v: list[count + i], height: data._minimumHeight + list[2 * count + i] * step }));
      tiles.push({ dx, dy, all, step });
      for (const { u, v } of all)
        if (u > 0 && v > 0 && u < 32767 && v < 32767)
          vertices.push([Cesium.Math.lerp(box.west, box.east, u / 32767), Cesium.Math.lerp(box.south, box.north, v / 32767), step]);
    }
  let gap = 0;
  const edge = (tile, along, across, value) => tile.all.filter((p) => p[across] === value).sort((a, b) => a[along] - b[along]);
  for (const a of tiles)
    for (const b of tiles) {
      const isEast = b.dx === a.dx + 1 && b.dy === a.dy, isSouth = b.dy === a.dy + 1 && b.dx === a.dx;
      if (!isEast && !isSouth) continue;
      const one = isEast ? edge(a, "v", "u", 32767) : edge(a, "u", "v", 0);
      const other = isEast ? edge(b, "v", "u", 0) : edge(b, "u", "v", 32767);
      if (one.length !== other.length || one.length < 2) gap = Infinity;
      one.forEach((p, i) => { gap = Math.max(gap, Math.abs(p.height - other[i].height) / ((a.step + b.step) / 2 + 1e-6)); });
    }
  const places = vertices.map(([lng, lat]) => new Cesium.Cartographic(lng, lat));
  await Cesium.sampleTerrainMostDetailed(provider, places);
  return { gap, seen: places.map((p, i) =>
    [Cesium.Math.toDegrees(p.longitude), Cesium.Math.toDegrees(p.latitude), p.height, vertices[i][2]]) };
}

async function cesium(browser, check) {
  const opened = await open(browser, "cesium", "hills", () => {}, { width: 480, height: 360 }), { page } = opened;
  await until(() => page.evaluate(() => window.shown?.scene.globe.tilesLoaded && window.shown.scene.frameState.frameNumber > 30),
    "the globe is loaded");
  await page.evaluate(() => {
    const { Cesium } = window, { longitude, latitude } = Cesium.Rectangle.center(window.shown.camera.computeViewRectangle());
    window.shown.camera.lookAt(Cesium.Cartesian3.fromRadians(longitude, latitude, 800), new Cesium.HeadingPitchRange(0.5, -0.5, 9000));
  });
  await until(() => page.evaluate(() => window.shown.scene.globe.tilesLoaded), "the near ground is loaded");
  await page.evaluate(() => { window.shown.useDefaultRenderLoop = false; }); // a software renderer takes all processors
  for (const id of ["hills", "holes", "dateline", "north"]) {
    const { gap, seen } = await page.evaluate(ofProvider, [id, url]);
    check(gap <= 1, `${id}: tiles of one level have no cracks`, `${gap} of the steps allowed`);
    const list = some(seen, 400);
    await compare(check, id, list, Math.max(...list.map((p) => p[3])) / 2 + 1e-3, `${id}: sampleTerrainMostDetailed at vertices`);
  }
  await page.evaluate(() => { window.shown.useDefaultRenderLoop = true; });
  const roof = await page.evaluate(async () => {
    const { scene } = window.shown, { Cesium } = window;
    const tiles = scene.primitives.get(scene.primitives.length - 1);
    const [at] = await scene.sampleHeightMostDetailed([Cesium.Cartographic.fromDegrees(11.4041, 47.2692)], [], 1);
    return { isTileset: tiles instanceof Cesium.Cesium3DTileset, height: at.height };
  });
  check(roof.isTileset, "the meshes are a Cesium3DTileset");
  check(Math.abs(roof.height - 1500) < 0.1, "a roof is where its mesh is", `${roof.height} m`);
  await close(opened, check, "cesium");
}

// ---- deck.gl ---------------------------------------------------------------------------------------

async function deck(browser, check) {
  const id = "hills", opened = await open(browser, "deck", id), { page } = opened;
  await until(() => page.evaluate(() => {
    const layers = window.shown?.layerManager?.getLayers() ?? [];
    return layers.some((layer) => layer.props.mesh) && layers.every((layer) => layer.isLoaded);
  }), "the terrain is loaded");
  const meshes = await page.evaluate(() => window.shown.layerManager.getLayers().filter((layer) => layer.props.mesh)
    .map(({ id: name, props: { mesh } }) => [name, mesh.header.boundingBox, [...mesh.attributes.POSITION.value]]));
  const seen = [];
  for (const [name, [[left, bottom], [right, top]], at] of meshes) {
    const [x, y, z] = name.split("-").slice(-3).map(Number), n = 256 * 2 ** z;
    for (let i = 0; i < at.length; i += 3) {
      // deck.gl spreads 256 pixels and one of the neighbour over the box; a vertex is a pixel; the rim has skirts
      const px = Math.round((at[i] - left) / (right - left) * 256), py = Math.round((top - at[i + 1]) / (top - bottom) * 256);
      if (px > 0 && px < 256 && py > 0 && py < 256)
        seen.push([...degrees((256 * x + px + 0.5) / n, (256 * y + py + 0.5) / n), at[i + 2]]);
    }
  }
  // most are beside the ground, where the tile has the nearest height
  await compare(check, id, some(seen, 5000), TERRARIUM_M, "vertices of the terrain");
  await close(opened, check, "deck");
}

// ---- OpenLayers and three.js -----------------------------------------------------------------------

async function openlayers(browser, check) {
  const id = "hills", opened = await open(browser, "openlayers", id), { page } = opened;
  await page.waitForFunction(() => window.shown);
  await page.evaluate(() => new Promise((done) => { window.shown.once("rendercomplete", done); window.shown.render(); }));
  const seen = await page.evaluate(() => {
    const map = window.shown, { ol } = window, grid = map.getLayers().item(1).getSource().getTileGrid(), out = [];
    const z = grid.getZForResolution(map.getView().getResolution(), 0);
    const size = grid.getResolution(z), [left, top] = grid.getOrigin(z);
    for (let i = 0; i < 140; i++) {
      const pixel = [150 + 5 * (i * 37 % 100), 100 + 4 * (i % 100)], height = window.heightAt(pixel);
      const [x, y] = map.getCoordinateFromPixel(pixel);
      const centre = [left + (Math.floor((x - left) / size) + 0.5) * size, top - (Math.floor((top - y) / size) + 0.5) * size];
      if (Number.isFinite(height)) out.push([...ol.proj.toLonLat(centre), height]);
    }
    return out;
  });
  await compare(check, id, seen, TERRARIUM_M, "heights of pixels");
  await close(opened, check, "openlayers");
}

async function three(browser, check) {
  const id = "hills", opened = await open(browser, "three", id), { page } = opened;
  await page.waitForFunction(() => window.shown);
  const { bounds: { min, max } } = await kota.locale(id);
  const points = Array.from({ length: 100 }, (_, i) => [0, 1].map((k) =>
    min[k] + (max[k] - min[k]) * (0.05 + 0.9 * ((i * (k ? 37 : 1)) % 100) / 100)));
  const heights = await page.evaluate(async (list) => {
    const { Raycaster, Vector3 } = await import("three"), ray = new Raycaster();
    return list.map(([x, y]) => {
      ray.set(new Vector3(x, 1e4, -y), new Vector3(0, -1, 0));
      return ray.intersectObject(window.shown)[0]?.point.y ?? null;
    });
  }, points);
  const { results } = await kota.height(id, points);
  const off = heights.map((h, i) => (h === null ? Infinity : Math.abs(h - results[i].height)));
  check(Math.max(...off) < TERRARIUM_M, `heights of the mesh at 100 places, the worst is off by ${Math.max(...off)} m`);
  const picked = await page.evaluate(() => { const { x, y, z } = window.pick(400, 300); return [x, y, z]; });
  const [ground] = (await kota.height(id, [[picked[0], -picked[2]]])).results;
  check(Math.abs(ground.height - picked[1]) < TERRARIUM_M, "what is picked in the middle is on kota's ground", `${picked}`);
  await page.mouse.move(400, 300);
  check(/^-?\d+\.\d\d$/.test(await page.textContent("#place")), "the page says the height under the pointer");
  await close(opened, check, "three");
}

// ---- the run ---------------------------------------------------------------------------------------

const check = makeCheck();
const browser = await openBrowser(playwright.chromium);
for (const name of names) {
  check.begin(name);
  const lines = readFileSync(join(root, "client/examples/maps", `${name}.html`), "utf8").split('<script type="module">\n')[1]
    .split("</script>")[0].split("\n").filter((line) => line.trim() && !line.startsWith("import "));
  check(lines.length <= 10, "has at most ten lines of its own", `${lines.length}`);
  try {
    await { maplibre, cesium, deck, openlayers, three }[name](browser, check);
  } catch (error) {
    check(false, "runs to its end", error.stack);
  }
}
await browser.close();
site.close();
process.exitCode = check.end() ? 0 : 1;
