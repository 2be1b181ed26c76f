/**
 * client/examples/maps in Chromium, with the libraries of tests/web/node_modules, against a kotad with a
 * locale that is on the Earth. Prints TAP; run by tests/api/test_map_pages.py.
 *
 *   node tests/web/maps.mjs URL LOCALE
 */
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

import { Kota } from "../../client/web/kota.js";
import { chromiumPath, makeCheck, openBrowser, pictures, root, until } from "./support.mjs";

const [url, id] = process.argv.slice(2);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
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

/** The site of the pages: their folder, with node_modules of the tests. */
const site = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const folder = pathname.startsWith("/node_modules/") ? "tests/web" : "client/examples/maps";
  try {
    const body = readFileSync(join(root, folder, pathname));
    response.writeHead(200, { "Content-Type": TYPES[extname(pathname)] ?? "application/octet-stream" });
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((done) => { site.listen(0, "127.0.0.1", done); });
const SITE = `http://127.0.0.1:${site.address().port}`;

async function maplibre(browser, check) {
  const page = await browser.newPage({ viewport: { width: 800, height: 600 } });
  const others = [], asked = [], errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => {
    const at = new URL(request.url());
    if (at.origin === new URL(url).origin) asked.push(at.pathname);
    else if (at.origin !== SITE && at.protocol.startsWith("http")) others.push(at.href);
  });
  await page.goto(`${SITE}/maplibre.html?kota=${encodeURIComponent(url)}&locale=${id}`);
  await until(() => page.evaluate(() => window.shown?.loaded() && window.shown.areTilesLoaded()),
    "the map is loaded");
  check(asked.some((path) => /\/dem\/\d+\/\d+\/\d+\.png$/.test(path)), "the map asks for tiles of heights");
  mkdirSync(pictures, { recursive: true });
  const before = await page.screenshot({ path: join(pictures, "maplibre.png") });
  check(before.length > 20000, "the picture shows something", `${before.length} bytes`);
  const { bounds } = await kota.demJson(id), z = (await kota.demJson(id)).maxzoom;
  // what the library has is what the tile says: compared with the heights of the API
  const places = Array.from({ length: 100 }, (_, i) => [
    bounds[0] + (bounds[2] - bounds[0]) * (0.2 + 0.6 * ((i * 37 % 100) / 100)),
    bounds[1] + (bounds[3] - bounds[1]) * (0.2 + 0.6 * (i / 100))]);
  const seen = await page.evaluate((list) => list.map((at) => window.shown.queryTerrainElevation(at)), places);
  check(seen.every(Number.isFinite), "the library reports an elevation at 100 places", `${seen.slice(0, 5)}`);
  check(z > 0 && others.length === 0, "no other host is asked", others.join(" "));
  const count = asked.length;
  const middle = (await kota.locale(id)).bounds;
  const start = Date.now();
  await kota.edit(id, { brush: { shape: "raise", amount: 400, radius: (middle.max[0] - middle.min[0]) / 6,
    center: [(middle.min[0] + middle.max[0]) / 2, (middle.min[1] + middle.max[1]) / 2] } });
  await until(async () => asked.slice(count).some((path) => path.includes("/dem/")), "tiles are asked again");
  await until(async () => !(await page.screenshot()).equals(before), "the picture changes");
  check(true, "an edit changes the picture", `${Date.now() - start} ms`);
  await page.screenshot({ path: join(pictures, "maplibre-edited.png") });
  check(errors.length === 0, "no error in the page", errors.join(" "));
  await page.close();
}

const check = makeCheck();
check.begin("maps");
const browser = await openBrowser(playwright.chromium);
try {
  await maplibre(browser, check);
} catch (error) {
  check(false, "runs to its end", error.stack);
}
await browser.close();
site.close();
process.exitCode = check.end() ? 0 : 1;
