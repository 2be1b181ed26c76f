/**
 * What is live in the inspector: edits of one's own and of others, sand from a square of granules
 * to what was written back, the page of numbers, tokens, and the way by keyboard. The sand is
 * simulated by the reference solver, as fast as it goes, so that it needs no driver and takes
 * seconds.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { openPage, pause, startDaemon, until } from "./support.mjs";

export const daemonArgs = ["--gpu", "cpu", "--patches-fine", "0", "--patches-medium", "1",
  "--patches-coarse", "1", "--patch-granules", "4096", "--patch-speed", "0",
  "--patch-pause-ms", "200", "--patch-linger-ms", "3600000"];

const side = 129, spacing = 0.5;

/** Dunes of a few metres, 64 m wide. */
export async function putBeach(kota) {
  const heights = Float32Array.from({ length: side * side }, (_, i) => {
    const x = spacing * (i % side), y = spacing * Math.floor(i / side);
    return 8 + 1.6 * Math.sin(0.13 * x + 0.06 * y) + 0.7 * Math.sin(0.23 * y - 0.09 * x + 1) +
      0.15 * Math.sin(0.7 * x + 0.4 * y);
  });
  await kota.call("PUT", "/v1/locales/beach", { json: { title: "Beach" } });
  await kota.call("PUT", `/v1/locales/beach/layers/ground?cols=${side}&rows=${side}` +
    `&spacing=${spacing},${spacing}`, { body: heights, type: "application/vnd.kota.f32" });
}

const heightAt = async (kota, x, y) =>
  (await kota.get(`/v1/locales/beach/height?x=${x}&y=${y}`)).json.height;

const newest = async (daemon) => (await daemon.kota.get("/v1/locales/beach")).json.revision;

const words = (page, id) => page.locator(`#${id}`).innerText();

const message = (page) => page.locator("#message:not([hidden])").innerText();

/** Bytes of the map's pixels, as one text. */
const pixels = (page) => page.locator("#map").evaluate((canvas) => canvas.toDataURL());

async function fill(page, values) {
  for (const [id, value] of Object.entries(values)) await page.fill(`#${id}`, String(value));
}

// ---- edits --------------------------------------------------------------------------------------

async function editByForm(page, daemon, check) {
  await page.click("#tab-edits");
  await page.selectOption("#edit-kind", "raise");
  await fill(page, { "edit-radius": 6, "edit-amount": 3, "edit-x": 20, "edit-y": 30 });
  const before = await heightAt(daemon.kota, 20, 30);
  await page.click("#edit-apply");
  await page.waitForSelector("#edit-events li.own");
  check.near(await heightAt(daemon.kota, 20, 30), before + 3, 1e-5,
    "a brush raises the ground by what the form says");
  await until(async () => await words(page, "revision") === "revision 3", "the newest revision");
  check(/^Revision 3: \d+ × \d+ samples/.test(await words(page, "edit-note")),
    "what changed is told in words", await words(page, "edit-note"));
  check((await words(page, "curl")).includes("/v1/locales/beach/edits"),
    "the request is shown as a line for a shell", await words(page, "curl"));
  await page.selectOption("#edit-kind", "hole");
  await fill(page, { "edit-cols": 3, "edit-rows": 3, "edit-x": 50, "edit-y": 50 });
  await page.click("#edit-apply");
  await until(async () => await page.locator("#edit-events li.own").count() === 2, "a second edit");
  check.equal(await heightAt(daemon.kota, 50, 50), null, "a rectangle cuts a hole");
  await page.selectOption("#edit-kind", "relax");
  check.equal([await page.isVisible("#edit-slope"), await page.isVisible("#edit-amount")],
    [true, false], "relax has a slope and no amount");
  await fill(page, { "edit-radius": 8, "edit-slope": 15, "edit-x": 20, "edit-y": 30 });
  const raised = await heightAt(daemon.kota, 20, 30);
  await page.click("#edit-apply");
  await until(async () => await page.locator("#edit-events li.own").count() === 3, "a third edit");
  const slid = await heightAt(daemon.kota, 20, 30);
  check(slid < raised - 0.1, "what was raised slides", `${raised}, then ${slid}`);
}

async function othersEdit(page, daemon, check) {
  await page.evaluate(async () => { // a flash is short: it is looked for where it is made
    const { state } = await import("/web/state.js");
    window.flashed = [];
    state.on("marks", (marks) => window.flashed.push(...marks.filter(({ kind }) => kind === "area")));
  });
  await daemon.kota.post("/v1/locales/beach/edits",
    { brush: { shape: "crater", center: [40, 20], radius: 4, amount: 1 } });
  await page.waitForSelector("#edit-events li.other");
  const line = await page.locator("#edit-events li").first().innerText();
  check(/brush of ground, \d+ × \d+ samples at \d+, \d+.*by others/s.test(line),
    "another client's edit appears in the list, with its place", line);
  const near = ({ ring }) => ring.every(([x, y]) => Math.hypot(x - 40, y - 20) < 8);
  await until(async () => (await page.evaluate(() => window.flashed)).some(near), "a flash on the ground");
  check(true, "and flashes on the ground");
}

/** Until the ground is drawn and nothing over it, and that has been painted. */
async function noFlash(page) {
  await page.waitForFunction(() => window.kotaMap?.idle ?? true);
  await until(() => page.evaluate(async () =>
    (await import("/web/state.js")).state.marks.length === 0), "no mark");
  await page.evaluate(() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** Clicks in the middle of the map, with the brush, and looks at what is drawn there. */
async function editByClick(page, daemon, check) {
  if (!await page.evaluate(async () => (await import("/web/state.js")).state.look)) {
    check.skip("a click with the brush changes the map's pixels", "no map part in this build");
    return;
  }
  await page.selectOption("#edit-kind", "crater");
  await fill(page, { "edit-radius": 5, "edit-amount": 4 });
  const revision = await newest(daemon);
  const events = await page.locator("#edit-events li").count();
  const box = await page.locator("#map").boundingBox();
  await page.mouse.move(box.x + box.width / 2 - 30, box.y + box.height / 2);
  await until(() => page.evaluate(async () =>
    (await import("/web/state.js")).state.marks.some((mark) => mark.kind === "circle")),
  "a circle");
  check(true, "what the brush would change is drawn under the pointer");
  await page.mouse.move(2, 2);
  await noFlash(page);
  const before = await pixels(page);
  await pause(500);
  check(before === await pixels(page), "the map is still while nothing changes");
  await page.mouse.click(box.x + box.width / 2 - 30, box.y + box.height / 2);
  await until(async () => await newest(daemon) === revision + 1, "a revision by a click");
  await page.waitForFunction((count) => document.querySelectorAll("#edit-events li").length > count,
    events);
  await page.mouse.move(2, 2);
  await noFlash(page);
  await page.waitForFunction(() => window.kotaMap?.idle ?? true);
  check(before !== await pixels(page), "a click with the brush changes the map's pixels");
}

async function refusedInWords(page, check) {
  check.expect(/status of 422/);
  await page.selectOption("#edit-kind", "crater");
  await fill(page, { "edit-x": 1e6, "edit-y": 0 });
  await page.click("#edit-apply");
  await page.waitForSelector("#message.bad:not([hidden])");
  check((await message(page)).length > 10, "a refused edit is told in words", await message(page));
  await fill(page, { "edit-x": "" });
  await page.click("#edit-apply");
  check(/^x: /.test(await message(page)), "so is a field without a number", await message(page));
  await fill(page, { "edit-x": 10, "edit-y": 10 });
}

// ---- sand ---------------------------------------------------------------------------------------

const sandState = (page) => page.locator("#sand-states .now").getAttribute("data-state");

async function sand(page, daemon, check) {
  // two pictures at once: those of a patch that was left may still be drawn; the page asks again
  check.expect(/status of 503 .*view\.png/);
  await page.click("#tab-sand");
  await page.waitForFunction(() =>
    document.getElementById("sand-device").textContent.startsWith("Ready"));
  await page.selectOption("#sand-scale", "coarse");
  await fill(page, { "sand-x": 32, "sand-y": 40, "sand-width": 6, "sand-length": 6, "sand-depth": 2,
    "sand-radius": 0.7, "sand-density": 2500, "sand-above": 1, "sand-speed": 7 });
  const before = await heightAt(daemon.kota, 32, 40);
  await page.click("#sand-create");
  await page.waitForSelector("#sand-states .now");
  await until(async () => await sandState(page) === "resting", "a patch at rest");
  check.equal(await page.locator("#sand-states .been, #sand-states .now").count() >= 3, true,
    "the states that a patch went through are marked");
  const marks = await page.evaluate(async () => (await import("/web/state.js")).state.marks);
  check(marks.filter((mark) => mark.kind === "line").length === 4 &&
    marks.some((mark) => mark.kind === "area"), "the patch and its body are drawn over the ground");
  await page.waitForFunction(() =>
    document.getElementById("sand-device").textContent.startsWith("Simulated by"));
  await page.waitForSelector("#sand-view:not([hidden])");
  await until(async () => await words(page, "sand-list") === "1, resting", "the state in the list");
  const size = await page.locator("#sand-view").evaluate((img) =>
    [img.naturalWidth, img.naturalHeight]);
  check.equal(size, [480, 300], "the picture of the granules is there");
  await check.shot(page, "inspector-sand");
  await page.click("#sand-large");
  await page.waitForFunction(() => document.getElementById("sand-view").naturalWidth ===
    document.getElementById("stage").clientWidth);
  check(true, "a large picture takes the place of the ground, in its size");
  await check.shot(page, "live-granules");
  await page.keyboard.press("Escape");
  check.equal(await page.locator("#stage #sand-view").count(), 0, "until Escape");
  await bodyIsAsked(page, daemon, check);
  await page.click("#sand-drop");
  await page.waitForFunction(() => /^2,/m.test(document.getElementById("sand-numbers").innerText
    .split("Bodies")[1]?.trim() ?? ""));
  check(true, "one more body is dropped by a button");
  await until(async () => await sandState(page) === "resting", "rest again");
  await page.click("#sand-write");
  await until(async () => await sandState(page) === "written", "written back");
  await written(page, daemon, check, before);
}

/** A question of the tools meets the body where it is, and says which one it is. */
async function bodyIsAsked(page, daemon, check) {
  const [body] = (await daemon.kota.get("/v1/locales/beach/patches/1")).json.bodies;
  const [x, y, z] = body.position;
  await page.click("#tab-tools");
  await page.click("[data-tool=contact]");
  await page.fill("#panel-tools textarea", `${x} ${y} ${z + 3}`);
  await page.click("#panel-tools form .primary");
  await page.waitForFunction(() => document.getElementById("tool-answer").innerText.includes("0 of patch 1"));
  check(true, "contact on a living body is shown as such");
  await page.click("#tab-sand");
}

async function written(page, daemon, check, before) {
  const patch = (await daemon.kota.get("/v1/locales/beach/patches/1")).json;
  await page.waitForFunction((revision) => document.getElementById("sand-result").textContent
    .includes(`revision ${revision}`), patch.revision);
  check(true, "what was written is told with its revision");
  check.equal(patch.state, "written", "and the daemon says the same");
  const dug = before - await heightAt(daemon.kota, 32, 40);
  check(dug > 0.02, "there is a crater in everybody's ground", `${dug} m`);
  const ledger = await words(page, "sand-ledger");
  const moved = Number(/Moved\s+([\d.,]+)/.exec(ledger)?.[1].replace(",", ""));
  check.near(moved, patch.mass_ledger.moved_m3, 1e-3 * Math.max(1, moved),
    "the mass ledger's numbers are the daemon's");
  await page.click("#tab-edits");
  const line = await page.locator("#edit-events li").first().innerText();
  check(line.includes("patch of ground"), "the feed's list has the patch's edit", line);
}

async function discard(page, daemon, check) {
  await page.click("#tab-sand");
  await page.click("#sand-form summary");
  await page.selectOption("#sand-model", "");
  const revision = await newest(daemon);
  await page.click("#sand-create");
  await until(async () => (await words(page, "sand-list")).includes("2,"), "a second patch");
  await page.click("#sand-discard");
  await until(async () => await sandState(page) === "discarded", "discarded");
  check.equal(await newest(daemon), revision,
    "a patch that is thrown away changes nothing");
}

async function uploads(page, daemon, check) {
  const folder = await mkdtemp(join(tmpdir(), "kota-web-model-"));
  await writeFile(join(folder, "my stone.obj"), "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n" +
    "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n");
  await page.setInputFiles("#sand-file", join(folder, "my stone.obj"));
  await page.waitForFunction(() => document.getElementById("sand-model").value === "my-stone");
  const { models } = (await daemon.kota.get("/v1/models")).json;
  check(models.some((model) => model.id === "my-stone" && model.triangles === 4),
    "a file of a model is uploaded and chosen", models);
  await writeFile(join(folder, "open.obj"), "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
  check.expect(/status of 422/);
  await page.setInputFiles("#sand-file", join(folder, "open.obj"));
  await page.waitForSelector("#message.bad:not([hidden])");
  check((await message(page)).length > 10, "a mesh that is no body is refused in words",
    await message(page));
  await rm(folder, { recursive: true });
}

// ---- status, tokens, keyboard -------------------------------------------------------------------

async function status(page, daemon, check) {
  await page.click("#tab-status");
  await page.waitForSelector("#status-daemon tr");
  const stats = (await daemon.kota.get("/v1/stats")).json;
  const rows = async () => new Map(await page.locator("#panel-status tr").evaluateAll((list) =>
    list.map((row) => [...row.children].map((cell) => cell.textContent))));
  const { made, written, discarded, failed } = stats.patches;
  const patches = `${made} made, ${written} written, ${discarded} discarded, ${failed} failed`;
  // the table may be older than these numbers: it asks again after a while
  await until(async () => (await rows()).get("So far") === patches, `the patches: ${patches}`);
  const shown = await rows();
  check.equal(shown.get("Version"), stats.version, "the status page shows the version");
  check.equal(shown.get("Locales"), String(stats.world.locales), "the locales");
  check.equal(shown.get("So far"), patches, "the patches");
  check(shown.get("Edits").startsWith(`${stats.world.edits}, `), "the edits", shown.get("Edits"));
  check(/^(below|above) [\d.]+ (µs|ms|s)$/.test(shown.get("99 of 100 since the start")), "the latencies",
    shown.get("99 of 100 since the start"));
  check.equal(await page.locator("#status-each-loop tr").count(), stats.loops.length,
    "each loop has its line");
  const first = stats.http.requests;
  await until(async () => {
    const text = await page.locator("#status-loops tr").first().innerText();
    return Number(/[\d,]+/.exec(text)[0].replaceAll(",", "")) > first && /\/s/.test(text);
  }, "newer numbers, with a rate");
  check(true, "and it looks again by itself");
}

async function keyboard(page, check) {
  await page.click("#tab-tools");
  await page.keyboard.press("ArrowRight");
  check.equal(await page.evaluate(() => document.activeElement.id), "tab-edits",
    "an arrow goes to the next panel");
  check.equal(await page.locator("#panel-edits").isVisible(), true, "and opens it");
  const reached = [];
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    reached.push(await page.evaluate(() => document.activeElement.id));
    if (reached.at(-1) === "edit-apply") break;
  }
  check(reached.at(-1) === "edit-apply" && reached.includes("edit-kind"),
    "Tab reaches the brush and its button", reached);
  const before = await page.locator("#edit-events li.own").count();
  await page.keyboard.press("Enter");
  await until(async () => await page.locator("#edit-events li.own").count() > before, "an edit");
  check(true, "Enter changes the ground");
  const unnamed = await page.locator("#panel").evaluate((panel) =>
    [...panel.querySelectorAll("input, select")].filter((field) => !field.labels?.length &&
      !field.getAttribute("aria-label") && !field.closest("h2")).map((field) => field.id));
  check.equal(unnamed, [], "each field has a label");
}

async function smallAndDark(page, check) {
  await page.setViewportSize({ width: 390, height: 780 });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.click("#tab-sand");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check(wide <= 390, "nothing is wider than a small screen", `${wide} pixels`);
  await check.shot(page, "live-small-dark");
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: "light" });
}

const tokens = { edit: "edit-0123456789abcdef0123456789abcdef",
  read: "read-0123456789abcdef0123456789abcdef" };

/** Gives the page a token by its button, as a person does. */
async function giveToken(page, token) {
  page.once("dialog", (dialog) => dialog.accept(token));
  await page.click("#token");
}

async function tokenWords(page, check) {
  const folder = await mkdtemp(join(tmpdir(), "kota-web-token-"));
  await writeFile(join(folder, "tokens"), `edit ${tokens.edit}\nread ${tokens.read}\n`,
    { mode: 0o600 });
  const daemon = await startDaemon(["--gpu", "off", "--token-file", join(folder, "tokens")]);
  check.expect(/status of 40[13]/);
  daemon.kota.token = tokens.edit;
  await putBeach(daemon.kota);
  const own = await openPage(page.context().browser(), daemon.url, check);
  check(/token.*press Token/.test(await message(own)), "reading without a token says what to do",
    await message(own));
  await giveToken(own, tokens.read);
  await own.waitForFunction(() => document.getElementById("locale").value === "beach");
  await own.click("#tab-edits");
  await own.click("#edit-apply");
  await own.waitForSelector("#message.bad:not([hidden])");
  check(/scope edit.*may read, not edit/s.test(await message(own)),
    "a token that may only read is refused in words", await message(own));
  await giveToken(own, tokens.edit);
  await own.waitForFunction(() => document.getElementById("message").hidden);
  await own.click("#edit-apply");
  await own.waitForSelector("#edit-events li.own");
  check(true, "and one of scope edit changes the ground");
  await own.click("#tab-sand");
  await own.waitForFunction(() =>
    /switched off/.test(document.getElementById("sand-device").textContent));
  check(await own.locator("#sand-create").isDisabled(), "without a device the sand says why");
  await own.context().close();
  check.equal(await daemon.stop(), 0, "that daemon stops cleanly");
  await rm(folder, { recursive: true });
}

/** The daemon goes away while the page is open. */
async function away(page, check) {
  const daemon = await startDaemon(["--gpu", "off"]);
  await putBeach(daemon.kota);
  const own = await openPage(page.context().browser(), daemon.url, check);
  await own.waitForFunction(() => document.getElementById("feed").textContent === "live");
  check.expect(/ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED|CONNECTION_RESET|EMPTY_RESPONSE)/);
  await daemon.stop();
  await own.waitForFunction(() => document.getElementById("feed").textContent === "reconnecting");
  await own.click("#tab-edits");
  await own.click("#edit-apply");
  await own.waitForSelector("#message.bad:not([hidden])");
  check(/cannot be reached/.test(await message(own)), "a daemon that went away is told in words",
    await message(own));
  await own.click("#tab-status");
  await own.waitForSelector("#status-note.bad");
  check(true, "on the status page, too");
  await own.context().close();
}

export async function begin({ kota }) {
  await putBeach(kota);
  return "#beach";
}

async function isLive(page) {
  await page.waitForFunction(() => document.getElementById("locale").value === "beach");
  await page.waitForFunction(() => document.getElementById("feed").textContent === "live");
}

/** @param {any} page @param {any} daemon @param {any} check */
export async function run(page, daemon, check) {
  await isLive(page);
  await editByForm(page, daemon, check);
  await othersEdit(page, daemon, check);
  await editByClick(page, daemon, check);
  await refusedInWords(page, check);
  await status(page, daemon, check);
  await check.shot(page, "live-status");
  await keyboard(page, check);
}

/** @param {any} page @param {any} daemon @param {any} check */
export async function rest(page, daemon, check) {
  await isLive(page);
  await sand(page, daemon, check);
  await discard(page, daemon, check);
  await status(page, daemon, check);
  await page.click("#tab-sand");
  await uploads(page, daemon, check);
  await smallAndDark(page, check);
  await tokenWords(page, check);
  await away(page, check);
}
