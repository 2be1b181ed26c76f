/**
 * Layers that are moved (PUT …/transform): both views draw them where they stand, from the start and
 * while they move, also where gravity runs another way; what a moved floor answers. A planet, where
 * gravity runs to the middle: it is seen whole, and slopes are told against its own level.
 */
import { until, visit } from "./support.mjs";

const ask = (page, name, argument) =>
  page.evaluate(([n, a]) => window.kotaTerrain[n](a), [name, argument]);

/** A deck of 20 x 8 m, 1 m above its origin, which is its corner. */
const deck = "v 0 0 1\nv 20 0 1\nv 20 8 1\nv 0 8 1\nf 1 2 3 4\n";
const quay = "v 0 0 0\nv 200 0 0\nv 200 100 0\nv 0 100 0\nf 1 2 3 4\n";

async function putHarbour(kota, id, gravity) {
  const put = (path, options) => kota.call("PUT", `/v1/locales/${id}${path}`, options);
  await put("", { json: { gravity } });
  for (const [layer, obj] of [["quay", quay], ["ferry", deck]])
    await put(`/layers/${layer}`, { body: new TextEncoder().encode(obj), type: "model/obj" });
}

const move = (kota, id, translation, yaw) =>
  kota.call("PUT", `/v1/locales/${id}/layers/ferry/transform`,
    { json: { translation, yaw_deg: yaw } });

/** Is a line of the outline drawn at each of these places? */
async function drawnAt(page, places) {
  await page.waitForFunction(() => window.kotaMap.idle);
  return page.evaluate((asked) => {
    const canvas = document.getElementById("map"), ratio = canvas.width / canvas.clientWidth;
    const color = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
    const want = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
    return asked.map(([x, y]) => {
      const [u, v] = window.kotaMap.view.toScreen(x, y).map((p) => Math.round(p * ratio) - 2);
      const { data } = canvas.getContext("2d").getImageData(u, v, 5, 5);
      for (let i = 0; i < data.length; i += 4)
        if (data[i + 3] > 80 && want.every((c, k) => Math.abs(c - data[i + k]) < 60)) return true;
      return false;
    });
  }, places);
}

/** Middles of the deck's sides that lie within the quay, for a pose about -Z. */
function sides([x, y], yaw) {
  const a = yaw * Math.PI / 180;
  return [[10, 0], [20, 4], [10, 8], [0, 4]].map(([u, v]) =>
    [x + u * Math.cos(a) - v * Math.sin(a), y + u * Math.sin(a) + v * Math.cos(a)]);
}

const all = (list, value) => list.every((one) => one === value);

async function onTheMap(page, daemon, check) {
  await putHarbour(daemon.kota, "harbour", [0, 0, -1]);
  await move(daemon.kota, "harbour", [100, 20, 2], 90);
  await visit(page, `${daemon.url}/#harbour`);
  const begun = sides([100, 20], 90), then = sides([60, 50], 30);
  await until(async () => all(await drawnAt(page, begun), true), "the ferry where it stands");
  check(true, "the map draws a layer where it stands from the start");
  check(all(await drawnAt(page, sides([0.5, 0.5], 0).slice(1, 3)), false),
    "and not where its file has it");
  await move(daemon.kota, "harbour", [60, 50, 2], 30);
  await until(async () => all(await drawnAt(page, then), true), "the ferry elsewhere");
  check(all(await drawnAt(page, begun.slice(0, 2)), false), "the map follows while it moves");
  await check.shot(page, "moving-map");
}

async function inThreeD(page, daemon, check) {
  await page.setViewportSize({ width: 760, height: 420 }); // where the processor draws, pixels are time
  await page.click('#panel-tools button:text-is("Contact")');
  await page.fill("#panel-tools textarea", "10 50 20");
  await page.click('#panel-tools button:text-is("Ask")');
  await page.click("#view-3d");
  await ask(page, "ready");
  await page.locator(".labels3d span", { hasText: "floor" }).first().waitFor();
  check(true, "what was asked on the map is marked in 3D, too");
  await until(async () => (await ask(page, "sand")).solids === 2, "mesh layers");
  await ask(page, "setCamera", { eye: [100, -60, 90], target: [100, 50, 0] });
  await ask(page, "refined");
  const shot = () => page.locator("#terrain").screenshot();
  const before = await shot();
  const where = async () => (await ask(page, "sand")).standing.ferry?.position;
  check.equal(await where(), [60, 50, 2], "3D begins with the pose that the map has");
  for (let i = 1; i <= 5; i++) await move(daemon.kota, "harbour", [60 + 10 * i, 50, 2], 30);
  await until(async () => (await where())[0] === 110, "the last of several poses");
  await ask(page, "refined");
  check(!before.equals(await shot()), "a layer is seen moving in 3D");
  await check.shot(page, "moving-3d");
  await page.click('#panel-tools button:text-is("Contact")');
  await page.fill("#panel-tools textarea", "112 54 20");
  await page.click('#panel-tools button:text-is("Ask")');
  await page.waitForSelector('#tool-answer:has-text("floor: velocity")');
  check(/m\/s/.test(await page.locator("#tool-answer").innerText()),
    "a contact with a moved floor tells its velocity");
}

/** Layers that come, and one of another size in the place of an old one, while the page is open. */
async function others(page, daemon, check) {
  const put = (side, value) => daemon.kota.call("PUT",
    `/v1/locales/harbour/layers/sea?cols=${side}&rows=${side}&spacing=1,1&origin=0,-40`,
    { body: new Float32Array(side * side).fill(value), type: "application/vnd.kota.f32" });
  const layer = () => page.evaluate(async () => (await import("/web/state.js")).state.layer);
  await put(33, -5);
  await until(async () => (await layer())?.cols === 33, "a new layer");
  check.equal(await page.locator("#layer").inputValue(), "sea", "a new layer is offered");
  await put(20, -5);
  await until(async () => (await layer())?.cols === 20, "the layer of another size");
  check(true, "a layer of another size takes the place of the old one");
  await daemon.kota.call("PUT", "/v1/locales/harbour/layers/buoy",
    { body: new TextEncoder().encode(deck), type: "model/obj" });
  await until(async () => (await ask(page, "sand")).solids === 3, "one more mesh");
  check(true, "a mesh that comes is drawn");
}

/** Gravity along -Y: what is seen from above is another side of the layer when it has turned. */
async function aside(page, daemon, check) {
  await putHarbour(daemon.kota, "wall", [0, -1, 0]);
  await move(daemon.kota, "wall", [100, 20, 0], 90);
  await page.click("#view-map");
  await visit(page, `${daemon.url}/#wall`);
  // turned about +Y by 90°: x runs to -z and z to x, so the deck is seen edge on, at x + 1
  await until(async () => all(await drawnAt(page, [[101, 22], [101, 26]]), true), "the deck");
  check(all(await drawnAt(page, [[110, 20], [120, 24]]), false),
    "where gravity is not along Z a layer turns about it");
}

/** A cube around the origin, of half a side in metres. */
const cube = (half) => [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1],
  [1, -1, 1], [1, 1, 1], [-1, 1, 1]].map((v) => `v ${v.map((x) => half * x).join(" ")}`).join("\n") +
  "\nf 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n";

async function planet(page, daemon, check) {
  const put = (layer, half) => daemon.kota.call("PUT", `/v1/locales/cube/layers/${layer}`,
    { body: new TextEncoder().encode(cube(half)), type: "model/obj" });
  await daemon.kota.call("PUT", "/v1/locales/cube", { json: {} });
  await put("ground?frame=spherical", 100);
  await visit(page, `${daemon.url}/#cube`);
  await page.click("#view-3d");
  await ask(page, "ready");
  await until(async () => (await ask(page, "sand")).solids === 1, "the planet");
  const { eye } = await ask(page, "camera");
  check(Math.hypot(...eye) > 300, "a planet is looked at from outside, as a whole", eye);
  const box = await page.locator("#terrain").boundingBox();
  await page.click('#panel-tools button:text-is("Pick")');
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await page.waitForSelector('#tool-answer:has-text("slope")');
  const said = await page.locator("#tool-answer").innerText();
  const numbers = (name) => said.match(new RegExp(`${name}\\s+(.*)`))[1].split(", ").map(parseFloat);
  const point = numbers("point"), normal = numbers("normal"), [slope] = numbers("slope");
  const cosine = point.reduce((sum, v, i) => sum + v * normal[i], 0) / Math.hypot(...point);
  check.near(slope, Math.acos(Math.abs(cosine)) * 180 / Math.PI, 0.06,
    "its slopes are told against its own level");
  await page.click('#panel-tools button:text-is("Contact")');
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await page.waitForSelector('#tool-answer:has-text("floor: distance")');
  check(/floor: distance\s+(5|5\.0\d*|4\.99\d*) m/.test(
    await page.locator("#tool-answer").innerText()), "a point is lifted along its own line of gravity");
  await check.shot(page, "moving-planet");

  await throughTheSky(page, { box, put }, check);
}

/** A ceiling would hide a whole planet: from above it is not drawn, from below it is. */
async function throughTheSky(page, { box, put }, check) {
  const { eye, target } = await ask(page, "camera");
  const clip = { x: box.x + box.width / 2 - 20, y: box.y + box.height / 2 + 15, width: 20, height: 20 };
  const seen = async (camera) => {
    await ask(page, "setCamera", camera);
    await ask(page, "refined");
    return page.screenshot({ clip });
  };
  const outside = { eye, target }, below = { eye: [0, 0, 110], target: [30, 0, 140] };
  const bare = [await seen(outside), await seen(below)];
  await put("sky?frame=spherical&role=ceiling", 140);
  await until(async () => (await ask(page, "sand")).solids === 2, "the sky");
  check((await seen(outside)).equals(bare[0]), "a planet is seen through its sky from outside");
  check(!(await seen(below)).equals(bare[1]), "its sky is seen from below");
  await visit(page, page.url());
  await page.click("#view-3d");
  await ask(page, "ready");
  check.equal((await ask(page, "camera")).eye.map(Math.round), eye.map(Math.round),
    "and it is the planet that is looked at, not its sky");
}

export async function rest(page, daemon, check) {
  await onTheMap(page, daemon, check);
  await inThreeD(page, daemon, check);
  await others(page, daemon, check);
  await aside(page, daemon, check);
  await planet(page, daemon, check);
}
