/**
 * Draws the README's pictures of the inspector, by name only: `node tests/web/inspect.mjs pictures`
 * after `make build/demo.made`. They go to the test's folder with a palette, so that each is
 * below 300 KB; docs/images/ has what was drawn last.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { daemonArgs, putBeach } from "./live.mjs";
import { openPage, pictures, root, startDaemon, until } from "./support.mjs";
import { smallPng } from "./smallpng.mjs";

const limit = 295000;

/** What the page shows, as small as it gets. @returns {number} bytes */
async function draw(page, name) {
  const shot = (await page.screenshot({ timeout: 120000 })).toString("base64");
  const { width, height, rgba } = await page.evaluate(async (text) => {
    const image = new Image();
    image.src = `data:image/png;base64,${text}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    const { data } = pen.getImageData(0, 0, image.width, image.height);
    let bytes = "";
    for (let i = 0; i < data.length; i += 8192)
      bytes += String.fromCharCode(...data.subarray(i, i + 8192));
    return { width: image.width, height: image.height, rgba: btoa(bytes) };
  }, shot);
  const file = smallPng(width, height, Buffer.from(rgba, "base64"), limit);
  mkdirSync(pictures, { recursive: true });
  writeFileSync(join(pictures, `${name}.png`), file);
  return file.length;
}

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

/** @param {any} page of another daemon, for its browser @param {any} _ @param {any} check */
export async function run(page, _, check) {
  const world = join(root, "build/demo");
  if (!existsSync(world)) {
    check.skip("pictures of the inspector", "no demo world: make build/demo.made");
    return;
  }
  const daemon = await startDaemon(["--world", world, ...daemonArgs]);
  await putBeach(daemon.kota);
  const own = await openPage(page.context().browser(), daemon.url, check);
  for (const one of [mapPicture, terrainPicture, sandPicture]) {
    const bytes = await one(own);
    check(bytes <= limit, `${one.name} is below 300 KB`, `${bytes} bytes`);
  }
  await own.context().close();
  await daemon.stop();
}
