/**
 * Bodies thrown with the mouse: a ball from above on the map, and from the eye in the 3D view, where it is
 * drawn while it lies in the sand; a crater where nobody looks. By the reference solver.
 */
import { begin, daemonArgs } from "./live.mjs";
import { hangMs, pause, until, visit } from "./support.mjs";

export { begin, daemonArgs };

const ask = (page, name, argument) =>
  page.evaluate(([n, a]) => window.kotaTerrain[n](a), [name, argument]);

const heightAt = async (kota, x, y, id = "beach") =>
  (await kota.get(`/v1/locales/${id}/height?x=${x}&y=${y}`)).json.height;

const result = (page) => page.locator("#throw-result").innerText();

const marks = (page) => page.evaluate(async () => (await import("/web/state.js")).state.marks);

/** A slope, a kilometre wide. */
async function putSlope(kota) {
  const side = 129, heights = Float32Array.from({ length: side * side }, (_, i) => 0.1 * (i % side));
  await kota.call("PUT", "/v1/locales/slope", { json: { title: "Slope" } });
  await kota.call("PUT", `/v1/locales/slope/layers/ground?cols=${side}&rows=${side}&spacing=8,8`,
    { body: heights, type: "application/vnd.kota.f32" });
}

async function ready(page) {
  await page.waitForFunction(() => document.getElementById("feed").textContent === "live");
  await page.click("#tab-sand");
  await page.waitForFunction(() => document.getElementById("throw-what").options.length > 0);
  await page.selectOption("#throw-click", "throw");
}

/** The newest impact as the page has told it, and as the daemon has it. */
async function fateOf(page, daemon, than, id = "beach") {
  await until(async () => Number(/Impact (\d+)/.exec(await result(page))?.[1] ?? 0) > than, "an impact");
  const number = Number(/Impact (\d+)/.exec(await result(page))[1]);
  return (await daemon.kota.get(`/v1/locales/${id}/impacts/${number}`)).json;
}

/** A small ball on the map: no granules would do, so it is a crater at once. */
async function onTheMap(page, daemon, check) {
  await page.waitForFunction(() => window.kotaMap.idle);
  await page.fill("#throw-radius", "0.3");
  await page.locator("#throw-speed").fill("80");
  check.equal(await page.locator("output[for=throw-speed]").innerText(), "80 m/s", "the slider's speed");
  const box = await page.locator("#map").boundingBox(), at = [box.width / 2 + 60, box.height / 2];
  const [x, y] = await page.evaluate((p) => window.kotaMap.view.toGround(...p), at);
  const before = await heightAt(daemon.kota, x, y);
  await page.mouse.click(box.x + at[0], box.y + at[1]);
  const fate = await fateOf(page, daemon, 0);
  check.equal([fate.state, fate.how], ["written", "crater"], "a click throws a ball, which leaves a crater");
  check(Math.hypot(fate.point[0] - x, fate.point[1] - y) < 0.2, "where it was clicked", [fate.point, x, y]);
  check(await heightAt(daemon.kota, x, y) < before - 0.1, "in everybody's ground", before);
  check(/a crater. No granules: the body is less than/.test(await result(page)), "with the reason",
    await result(page));
  check((await marks(page)).some((mark) => mark.kind === "area" && mark.color === "good"),
    "the crater is marked");
  await page.click("#throw-again");
  check.equal((await fateOf(page, daemon, fate.impact)).impact, fate.impact + 1, "a button throws it again");
  await page.waitForFunction(() => window.kotaMap.idle);
  await check.shot(page, "throw-map");
}

/** A ball from the eye, slow enough to be drawn on its way, in granules. */
async function inTheView(page, daemon, check) {
  await page.waitForFunction(() => window.kotaMap.idle);
  await page.click("#view-3d");
  await page.waitForFunction(() => window.kotaTerrain);
  await ask(page, "ready");
  await ask(page, "setCamera", { eye: [22, 30, 24], target: [32, 40, 8] });
  await ask(page, "ready");
  await page.fill("#throw-radius", "1.8");
  await page.locator("#throw-speed").fill("8");
  const box = await page.locator("#terrain").boundingBox();
  let first = { impact: 0 }, hit, before;
  const at = [box.width / 2, box.height / 2];
  await until(async () => { // a busy machine makes craters, until its pool is made and seems quick enough
    hit = await ask(page, "hitOf", at);
    before = await heightAt(daemon.kota, hit[0], hit[1]);
    await page.mouse.click(box.x + at[0], box.y + at[1]);
    first = await fateOf(page, daemon, first.impact);
    if (first.how === "patch") return true;
    at[0] = box.width / 2 + 100 * (first.impact % 5 - 2); // not into the crater
    await pause(2000);
    return false;
  }, "granules", hangMs);
  check(true, "in the 3D view a ball is thrown into granules");
  check(Math.hypot(...first.point.map((v, i) => v - hit[i])) < 0.5, "at the place under the mouse",
    [first.point, hit]);
  await until(async () => (await ask(page, "sand")).bodies === 1, "a ball");
  check(true, "the ball is drawn");
  await until(async () => (await ask(page, "sand")).surfaces > 1, "the granules' surface");
  await pause(300); // a frame
  await check.shot(page, "throw-ball");
  check.equal((await marks(page)).filter((mark) => mark.kind === "line").length, 3,
    "and its circles over both views");
  check.equal((await page.inputValue("#sand-list")), String(first.patch), "its patch is followed");
  return { first, hit, before };
}

/** Until the granules are at rest. */
async function written(page, daemon, check, { first, hit, before }) {
  await until(async () => /written by granules as revision/.test(await result(page)), "its fate", hangMs);
  const fate = (await daemon.kota.get(`/v1/locales/beach/impacts/${first.impact}`)).json;
  check.equal([fate.state, fate.how], ["written", "patch"], "its fate is told");
  check(await heightAt(daemon.kota, hit[0], hit[1]) < before - 0.1, "what the granules made is the ground");
  await pause(300);
  await check.shot(page, "throw-rest");
}

/** A model, far away from the eye: no patch, but its crater is drawn. */
async function farAway(page, daemon, check) {
  await daemon.kota.call("PUT", "/v1/models/stone", { body: new TextEncoder().encode(
    "v 0 0 0\nv 20 0 0\nv 0 20 0\nv 0 0 20\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"), type: "model/obj" });
  await page.click("#tab-edits");
  await page.click("#tab-sand");
  await page.waitForFunction(() => [...document.getElementById("throw-what").options]
    .some((option) => option.value === "stone"));
  await page.selectOption("#throw-what", "stone");
  check.equal(await page.isVisible("#throw-radius"), false, "a model has no radius to choose");
  await page.locator("#throw-speed").fill("100");
  await ask(page, "setCamera", { eye: [40, 40, 200], target: [700, 500, 10] });
  await ask(page, "ready");
  const samples = (await ask(page, "counters")).uploadedSamples;
  const box = await page.locator("#terrain").boundingBox();
  const [x, y] = await ask(page, "hitOf", [box.width / 2, box.height / 2]);
  const before = await heightAt(daemon.kota, x, y, "slope");
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  const fate = await fateOf(page, daemon, 0, "slope");
  check.equal([fate.state, fate.how], ["written", "crater"], "far from the eye it is a crater");
  check(/observer is \d+ m away/.test(await result(page)), "with the reason", await result(page));
  const now = await heightAt(daemon.kota, x, y, "slope");
  check(now < before - 0.2, "its crater is there", [before, now]);
  await until(async () => (await ask(page, "counters")).uploadedSamples > samples, "new heights");
  await ask(page, "setCamera", { eye: [x - 50, y - 50, before + 40], target: [x, y, before] });
  await ask(page, "ready");
  const middle = await ask(page, "hitOf", [box.width / 2, box.height / 2]);
  check(middle[2] < before - 0.2, "and is drawn", [middle, before]);
  await check.shot(page, "throw-far");
}

/** @param {any} page @param {any} daemon @param {any} check */
export async function run(page, daemon, check) {
  await ready(page);
  await onTheMap(page, daemon, check);
}

/** @param {any} page @param {any} daemon @param {any} check */
export async function rest(page, daemon, check) {
  await page.setViewportSize({ width: 800, height: 400 }); // where the processor draws, pixels are time
  await ready(page);
  await written(page, daemon, check, await inTheView(page, daemon, check));
  await putSlope(daemon.kota);
  await visit(page, `${daemon.url}/#slope`);
  await ready(page);
  await page.click("#view-3d");
  await page.waitForFunction(() => window.kotaTerrain);
  await ask(page, "ready");
  await farAway(page, daemon, check);
}
