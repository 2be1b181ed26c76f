/**
 * client/web/kota.js in Node, against a kotad with the world of the OpenAPI document's examples
 * (KOTA_URL), and against a server that misbehaves. Prints TAP; run by tests/api/test_kota_js.py.
 */
import http from "node:http";
import assert from "node:assert/strict";
import { Kota, KotaError, BadInputError, NotFoundError, ConflictError, BusyError, TimeoutError,
  ConnectionError, TooLargeError, ServerError, Answer } from "../../client/web/kota.js";
import { frames } from "../../client/web/kota_frames.js";

const asked = new Set();
const plainFetch = globalThis.fetch;
globalThis.fetch = (url, options) => {
  asked.add(`${options.method ?? "GET"} ${new URL(url).pathname}`);
  return plainFetch(url, options);
};

const who = { token: process.env.KOTA_TOKEN ?? "" };
const kota = new Kota(process.env.KOTA_URL, who);
const tests = [];
const test = (name, run) => tests.push({ name, run });
const near = (got, want, what = "") =>
  assert.ok(Math.abs(got - want) <= 1e-9 * Math.max(1, Math.abs(want)), `${what} ${got}, not ${want}`);
const fails = (promise, kind, status) => assert.rejects(promise, (error) => {
  assert.ok(error instanceof kind, `${error?.name}: ${error?.message}`);
  assert.ok(error instanceof KotaError && error instanceof Error);
  assert.equal(error.name, kind.name);
  if (status !== undefined) assert.equal(error.status, status);
  return true;
});
const equalForms = ({ locale, revision, ...item }, many) =>
  assert.deepEqual({ locale, revision, results: [item] }, many);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

// ---- every call ---------------------------------------------------------------------------------

test("the daemon tells how it is", async () => {
  assert.equal((await kota.livez()).status, "ok");
  assert.equal((await kota.healthz()).status, "ok");
  assert.equal((await kota.readyz()).status, "ok");
  assert.ok((await kota.metrics()).includes("kota_"));
  assert.equal((await kota.limits()).items_max, 10000);
  assert.ok((await kota.calls()).calls.some((one) => one.name === "calls" && one.path === "/v1"));
  assert.ok((await kota.stats()).world);
  await assert.rejects(kota.audit({ limit: 1 }), NotFoundError); // the daemon keeps none
  assert.equal((await kota.openapi()).openapi.slice(0, 3), "3.1");
});

test("locales are listed page by page, with their layers only where asked for", async () => {
  const all = await kota.locales(), ids = all.map((one) => one.id);
  assert.ok(all.length >= 3 && all.every((one) => !("layers" in one)));
  assert.ok((await kota.locales({ layers: true })).every((one) => Array.isArray(one.layers)));
  assert.deepEqual(await kota.locales({ limit: 2 }), all.slice(0, 2));
  assert.deepEqual(await kota.locales({ limit: 1, after: ids[1] }), all.slice(2, 3));
  assert.deepEqual(await kota.locales({ after: ids[0] }), all.slice(1));
  const paged = new Kota(process.env.KOTA_URL, who), paths = []; // whose usual page has one locale
  paged.get = (path, options) => {
    paths.push(path);
    return kota.get(/limit/.test(path) ? path : `${path}${/\?/.test(path) ? "&" : "?"}limit=1`, options);
  };
  assert.deepEqual(await paged.locales(), all);
  assert.equal(paths.length, all.length);
  assert.deepEqual(await paged.locales({ layers: true }), await kota.locales({ layers: true }));
});

test("locales are made, replaced, told and deleted; conditions and keys hold", async () => {
  const made = await kota.putLocale("js", { title: "From JavaScript" }, { ifNew: true });
  assert.equal(made.revision, 1);
  await fails(kota.putLocale("js", {}, { ifNew: true }), ConflictError, 412);
  await fails(kota.putLocale("js", {}, { ifMatch: 7 }), ConflictError, 412);
  assert.equal((await kota.locale("js")).title, "From JavaScript");
  assert.ok((await kota.locales()).some((one) => one.id === "js"));
  const heights = new Float32Array(30).map((_, i) => i % 6);
  const locale = await kota.putLayer("js", "ground", heights, "application/vnd.kota.f32",
    { cols: 6, rows: 5, spacing: [2, 2], ifMatch: 1 });
  assert.deepEqual(locale.layers[0].spacing, [2, 2]);
  assert.equal((await kota.layerStats("js", "ground")).samples, 30);
  const file = await kota.layer("js", "ground", { format: "f32" });
  assert.deepEqual(new Float32Array(file.buffer), heights);
  const key = { idempotencyKey: "js-1" };
  const edit = { rect: [1, 1, 1, 1], op: "add", heights: [5] };
  const first = await kota.edit("js", edit, key);
  assert.deepEqual(await kota.edit("js", edit, key), first, "a repeat has the first answer");
  near((await kota.getHeight("js", 2, 2)).height, 6, "dug once");
  await kota.edit("js", { brush: { shape: "raise", center: [6, 4], radius: 2, amount: 1 } },
    {});
  const rect = [4, 0, 2, 2];
  assert.deepEqual((await kota.editSamples("js", rect, new Float32Array([9, 9, 9, NaN]),
    { op: "set" })).rect, rect);
  near((await kota.getHeight("js", 8, 0)).height, 9);
  assert.equal((await kota.getHeight("js", 10, 2)).status, "hole");
  const diff = await kota.diff("js", first.revision);
  assert.equal(diff.revision, first.revision + 2);
  assert.ok(diff.rects.length > 0);
  await kota.putLayer("js", "spare", heights, "application/vnd.kota.f32", { cols: 6, rows: 5, spacing: [1, 1] });
  assert.equal(await kota.deleteLayer("js", "spare"), null);
  await kota.putLayer("js", "lift", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "model/obj", {});
  const moved = await kota.putTransform("js", "lift", { translation: [0, 0, 70], yaw_deg: 90 });
  assert.deepEqual(moved.layers.find((one) => one.id === "lift").bounds,
    { min: [-1, 0, 70], max: [0, 1, 70] });
  const grown = await kota.polygons("js", "lift",
    { polygons: [[[2, 0, 1], [3, 0, 1], [3, 1, 1]]] }, {});
  assert.deepEqual(grown.added, [1]);
  assert.deepEqual((await kota.polygons("js", "lift", { remove: [0] })).removed, [0]);
  await kota.deleteLayer("js", "lift");
  const pin = await kota.putPin("js", "start");
  assert.deepEqual([(await kota.pin("js", "start")).revision, (await kota.pins("js")).pins.length], [pin.revision, 1]);
  await kota.edit("js", { rect: [0, 0, 1, 1], heights: [99] });
  const [now] = (await kota.height("js", [[0, 0]])).results;
  const then = await kota.height("js", [[0, 0]], { at: "start" });
  assert.equal(now.height, 99);
  assert.equal(then.revision, pin.revision);
  assert.notEqual(then.results[0].height, 99);
  assert.equal((await kota.restorePin("js", "start")).revision, pin.revision + 2);
  assert.equal((await kota.getHeight("js", 0, 0)).height, then.results[0].height);
  const fork = await kota.postLocale("js-fork", "js@start", { title: "A fork" });
  assert.deepEqual([fork.from, fork.from_revision, fork.title], ["js@start", pin.revision, "A fork"]);
  assert.equal((await kota.getHeight("js-fork", 0, 0)).height, then.results[0].height);
  assert.equal(await kota.deleteLocale("js-fork"), null);
  const { revision } = await kota.edit("js", { rect: [0, 0, 1, 1], heights: [98] }, { note: "a pole" });
  const { history } = await kota.history("js", { since: revision - 1 });
  assert.deepEqual([history.length, history[0].note, history[0].rect], [1, "a pole", [0, 0, 1, 1]]);
  const { conflicts } = await kota.revert("js", { since: revision - 1 }, { note: "no pole" });
  assert.deepEqual(conflicts, []);
  assert.equal((await kota.getHeight("js", 0, 0)).height, then.results[0].height);
  assert.equal(await kota.deletePin("js", "start"), null);
  await kota.putLocale("js-moon", {});
  const triangle = "v 9 0 0\nv 0 9 0\nv 0 0 9\nf 1 2 3\n";
  for (const [options, frame, gravity] of [
    [{}, "cartesian", undefined], [{ frame: "spherical" }, "spherical", "in"],
    [{ frame: "cylindrical" }, "cylindrical", "out"],
    [{ frame: "cylindrical", gravity: "in" }, "cylindrical", "in"]]) {
    const moon = await kota.putLayer("js-moon", "ground", triangle, "model/obj", options);
    assert.deepEqual([moon.layers[0].frame, moon.layers[0].gravity], [frame, gravity]);
  }
  await fails(kota.putLayer("js-moon", "ground", triangle, "model/obj", { gravity: "in" }), BadInputError, 422);
  await kota.deleteLocale("js-moon");
  await kota.putLocale("gone", {});
  assert.equal(await kota.deleteLocale("gone"), null);
  await fails(kota.locale("gone"), NotFoundError, 404);
});

test("questions about ground are answered as the examples say", async () => {
  const one = await kota.getHeight("hills", 12, 4, { fields: ["normal", "cell"] });
  equalForms(await kota.getContact("hills", 12, 4, 50, { clearance: 1 }),
    await kota.contact("hills", [[12, 4, 50]], { clearance: 1 }));
  equalForms(await kota.getRay("hills", [12, 4, 50], [0, 0, -2], { t_max: 99 }),
    await kota.ray("hills", [{ origin: [12, 4, 50], direction: [0, 0, -2], t_max: 99 }]));
  equalForms(await kota.getLos("hills", [0, 14, 30], [30, 14, 30]),
    await kota.los("hills", [{ from: [0, 14, 30], to: [30, 14, 30] }]));
  const shown = { viewport: [8, 6], pixel: [4, 3], tile_side: 2 }, eye = [16, 18, 50], target = [16, 18.001, 0];
  assert.deepEqual(await kota.getPick("hills", { eye, target, ...shown }),
    await kota.pick("hills", { camera: { eye, target }, ...shown }));
  const noOpenGl = (error) => {
    if (error.status !== 503) throw error;
  };
  const drawn = await kota.view("hills", { camera: { eye, target }, size: [32, 24] }).catch(noOpenGl);
  const linked = await kota.getView("hills", { eye, target, size: [32, 24] }).catch(noOpenGl);
  assert.deepEqual(new Uint8Array(drawn ?? []), new Uint8Array(linked ?? []));
  const { results, locale, revision } = await kota.height("hills", [[12, 4], [38, 8], [-9, 0]],
    { fields: ["normal", "cell"] });
  assert.deepEqual({ locale, revision, ...results[0] }, one);
  assert.deepEqual(results.map((item) => item.status), ["ok", "hole", "outside"]);
  assert.equal((await kota.profile("hills", [[0, 0], [40, 30]], { samples: 5 })).results.length, 5);
  const contact = (await kota.contact("hills", [[10, 10, 20]], { clearance: 1 })).results[0];
  near(contact.floor.point[2], 2);
  assert.deepEqual(contact.placed, [10, 10, 20]);
  const car = await kota.contactFootprints("hills", [[[1, 1, 9], [5, 1, 9], [1, 5, 9]]]);
  assert.equal(car.results[0].status, "ok");
  const ray = { origin: [5, 5, 20], direction: [1, 1, -1] };
  near((await kota.ray("hills", [ray])).results[0].t, 13.235294117647058);
  assert.ok((await kota.ray("hills", [ray], { trace: true })).results[0].trace.cells.length > 0);
  const sight = await kota.los("hills", [{ from: [0, 14, 30], to: [30, 14, 30] }]);
  assert.equal(sight.results[0].visible, true);
  const pick = await kota.pick("hills", { viewport: [8, 6], pixel: [4, 3],
    camera: { eye: [12, 8, 50], target: [12, 8, 0], up: [0, 1, 0], fov_y_deg: 60 } });
  assert.equal(pick.status, "hit");
  const across = await kota.worldPick({ viewport: [8, 6], pixel: [4, 3],
    camera: { eye: [12, 8, 50], target: [12, 8, 0], up: [0, 1, 0], fov_y_deg: 60 } });
  assert.equal(across.status, "hit");
  assert.equal((await kota.lit("hills", [[1, 1, 99]], { direction: [0, 0, -1] })).results[0].lit,
    true);
  const ball = { sphere: 0.5 }, above = [12, 8, 90], below = [12, 8, -90];
  const touch = (await kota.sweep("hills", [{ shape: ball, from: above, to: below }])).results[0];
  assert.equal(touch.layer, "ground");
  const { values } = await kota.sweepBatch("hills", new Float64Array([...above, ...below]), ball);
  assert.deepEqual([...values], [touch.fraction, ...touch.normal]);
  const fall = { from: above, velocity: [0, 0, -180], dt: 1 };
  const moved = (await kota.move("hills", [{ shape: ball, ...fall }])).results[0];
  assert.equal(moved.hits[0].layer, "ground");
  const batch = await kota.moveBatch("hills", new Float64Array([...above, ...fall.velocity]), ball,
    { dt: 1 });
  assert.deepEqual([...batch.values], [...moved.to, Number(moved.grounded)]);
  assert.deepEqual((await kota.contains("hills", [[1, 1, 9]])).results[0],
    { status: "inside", floor: true, ceiling: false });
  const spots = [[12, 4, 5], [12, 4, 0], [38, 8, 9], [99, 0, 9], [12, 4, 99]];
  assert.deepEqual((await kota.contact("hills", spots, { max_distance: 50 })).results.map(
    (item) => [item.status, item.floor !== null]), [["ok", true], ["below", false],
    ["hole", false], ["outside", false], ["too_far", false]]);
  assert.deepEqual((await kota.contains("hills", spots)).results.map((item) => item.status),
    ["inside", "below", "hole", "outside", "inside"]);
});

test("the whole world is asked in its own coordinates, and places on the Earth", async () => {
  assert.equal((await kota.locate([[10, 10, 20]], { hints: [null] })).results[0].locale, "hills");
  const contact = await kota.worldContact([[45, 40, 2]], { reach_up: 1 });
  assert.equal(contact.results[0].locale, "crossing");
  assert.ok(!("hint" in contact.results[0]));
  const lost = await kota.worldContact([[10, 10, -50]], { hints: ["atlantis"] });
  assert.deepEqual([lost.results[0].status, lost.results[0].locale, lost.results[0].hint],
    ["outside", null, "unknown"]);
  const car = await kota.worldContactFootprints([[[39, 24, 20], [39, 26, 20], [41, 26, 20]]]);
  assert.deepEqual(car.results[0].locales, ["hills", "hills", "crossing"]);
  const ray = await kota.worldRay([{ origin: [25, 25, 12], direction: [1, 0.7, -0.35] }]);
  assert.deepEqual(ray.results[0].crossed.map((one) => one.locale), ["hills", "crossing"]);
  const places = [[47.2693, 11.4043], [0, 0]];
  const there = await kota.elevation({ locations: places });
  assert.deepEqual(there.results.map((one) => one.dataset), ["hills", null]);
  const named = await kota.elevation({ dataset: "hills", locations: "47.2693,11.4043" });
  near(named.results[0].elevation, there.results[0].elevation);
  assert.equal((await kota.elevation({ path: places.slice(0, 1).concat([[47.2694, 11.4045]]),
    samples: 7 })).results.length, 7);
  await assert.rejects(kota.elevation({ locations: "91,0" }), /latitude 91/);
});

test("binary batches have the bits of the single answers, in both kinds", async () => {
  for (const Kind of [Float32Array, Float64Array]) {
    const points = Kind.of(12, 4, 38, 8, -9, 0), { values, revision } =
      await kota.heightBatch("hills", points);
    assert.ok(values instanceof Kind && values.length === 3 && revision === 2);
    assert.equal(values[0], Kind.of((await kota.getHeight("hills", 12, 4)).height)[0]);
    assert.ok(Number.isNaN(values[1]) && Number.isNaN(values[2]));
    const contact = await kota.contactBatch("hills", Kind.of(10, 10, 20), { reach_up: 0 });
    assert.equal(contact.values.length, 6);
    near(contact.values[0], 2);
    assert.equal(contact.values[5], 0);
    const reached = await kota.contactBatch("hills", Kind.of(12, 4, 5, 12, 4, 0, 38, 8, 9, 99, 0, 9,
      12, 4, 99), { max_distance: 50 });
    assert.deepEqual([...reached.values].filter((_, i) => i % 6 === 5), [0, 1, 2, 3, 4]);
    const judged = await kota.heightBatch("hills", points, { status: true });
    assert.deepEqual([...judged.values].filter((_, i) => i % 2), [0, 2, 3]);
    assert.equal(judged.values[0], values[0]);
    const rays = await kota.rayBatch("hills", Kind.of(12, 4, 50, 0, 0, -1, Infinity,
      0, 0, 1, 0, 0, 1, 5));
    assert.equal(rays.values.length, 8);
    assert.equal(rays.values[4], Infinity);
    const inside = await kota.containsBatch("hills", Kind.of(1, 1, 9, 38, 8, 1));
    assert.deepEqual([...inside.values], [3, 8]);
  }
  const far = await kota.heightBatch("hills", Float32Array.of(2, 4), { base: [10, 0, 0] });
  assert.equal(far.values[0], Math.fround((await kota.getHeight("hills", 12, 4)).height));
  await fails(kota.heightBatch("hills", Float32Array.of(1)), BadInputError, 0);
  await fails(kota.heightBatch("hills", new Float64Array(0)), BadInputError, 0);
  await fails(kota.heightBatch("nobody", Float32Array.of(1, 1)), NotFoundError, 404);
});

test("tiles, as float32 with a tag and as files", async () => {
  const tile = await kota.tileHeights("hills", 0, 0, 0);
  assert.equal(tile.heights.length, 257 * 257);
  const again = await kota.tileHeights("hills", 0, 0, 0, { tag: tile.tag });
  assert.equal(again.heights, null);
  assert.equal(await kota.tileHeights("hills", 0, 99, 0), null);
  const tif = await kota.layerTif("hills", "ground", { range: [0, 7] });
  assert.equal(new TextDecoder().decode(tif.buffer.slice(0, 2)), "II");
  await fails(kota.tileset("hills"), BadInputError, 422);
  assert.equal(new TextDecoder().decode((await kota.layerGlb("hills", "ground")).buffer.slice(0, 4)), "glTF");
  assert.equal((await kota.terrainLayer("hills")).format, "quantized-mesh-1.0");
  assert.ok((await kota.terrain("hills", 0, 1, 0)).buffer.byteLength > 50000);
  const map = await kota.demJson("hills", { encoding: "mapbox" });
  assert.equal(map.encoding, "mapbox");
  const [mapTile] = await kota.tilesOf({ locale: "hills", bounds: null }, map.maxzoom, map.maxzoom);
  assert.equal((await kota.dem("hills", mapTile.z, mapTile.x, `${mapTile.y}.f32`)).buffer.byteLength,
    256 * 256 * 4);
  assert.equal((await kota.demGeodetic("hills", 0, 1, "0.f32", { size: 9 })).buffer.byteLength, 324);
  const picture = await kota.tile("hills", 0, 0, 0, { format: "png16" });
  assert.ok(picture instanceof Answer && picture.headers.get("kota-scale"));
  assert.equal(new Uint8Array(picture.buffer)[1], 0x50);
});

test("models and patches of sand", async () => {
  const solid = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";
  await kota.putModel("js-solid", solid);
  assert.ok((await kota.models()).some((one) => one.id === "js-solid"));
  assert.equal((await kota.model("js-solid")).text, solid);
  const patch = await kota.postPatch("beach", { center: [5, 2.5], size: [4, 4], scale: "coarse" });
  const n = patch.id ?? patch.patch ?? patch.n;
  assert.ok((await kota.patches("beach")).length > 0);
  const told = await kota.patch("beach", n);
  assert.ok(told.state);
  const more = await kota.postPatchBody("beach", n, { model: "js-solid", position: [5, 2.5, 5] });
  assert.equal(more.bodies.length, 1);
  const pushed = await kota.patchPatchBody("beach", n, 0, { velocity: [0, 0, 1] });
  assert.equal(pushed.bodies.length, 1);
  assert.equal((await kota.deletePatchBody("beach", n, 0)).bodies.length, 0);
  const thrown = await kota.postImpact("beach", { radius: 0.2, mass: 80, position: [9, 1.5, 4], velocity: [0, 0, -5],
    observer: [9, 1.5, 900] });
  assert.equal(thrown.how, "crater");
  assert.deepEqual(await kota.impact("beach", thrown.impact), thrown);
  const stop = new AbortController();
  for await (const event of kota.patchEvents("beach", n, { signal: stop.signal })) {
    assert.ok(event.name && event.data);
    break;
  }
  for (const live of [true, "here"]) {
    const answers = [await kota.getHeight("beach", 5, 2.5, { live }), ...(await kota.height("beach", [[5, 2.5]],
      { live })).results, { height: (await kota.heightBatch("beach", new Float64Array([5, 2.5]), { live })).values[0] }];
    for (const answer of answers) assert.ok(Math.abs(answer.height) < 20, JSON.stringify(answer));
  }
  await fails(kota.height("beach", [[5, 2.5]], { live: "maybe" }), BadInputError, 400);
  // a patch that has not begun has neither picture nor surface
  const unlessEarly = (error) => {
    if (!(error instanceof BusyError)) throw error;
  };
  await kota.patchView("beach", n, { width: 64, height: 48 }).catch(unlessEarly);
  const surface = await kota.patchSurface("beach", n, { per_cell: 2 }).catch(unlessEarly);
  if (surface) assert.ok(surface.headers.get("kota-rect"));
  const granules = await kota.patchGranules("beach", n, { since: 0 });
  assert.ok(granules.headers.get("kota-step"));
  for await (const { name, data } of kota.patchEvents("beach", n, { granules: 20 })) {
    if (name !== "granules") continue;
    const { count, step, numbers, values } = data.granules, all = await kota.patchGranules("beach", n);
    assert.ok(step > 0 && count === Number(all.headers.get("kota-granules")) && numbers.length <= count);
    const exact = new Float32Array(all.buffer), [i] = numbers;
    assert.ok(Math.hypot(...[0, 1, 2].map((k) => values[k] - exact[9 * i + k])) < 1, "a granule's place");
    assert.ok(Math.abs(Math.hypot(...values.subarray(3, 7)) - 1) < 1e-6, "its orientation");
    assert.deepEqual([...values.subarray(7, 9)], [...exact.subarray(9 * i + 7, 9 * i + 9)], "radius, shade");
    break;
  }
  const end = await kota.deletePatch("beach", n, { discard: true });
  assert.ok(end.state);
  await kota.deleteModel("js-solid");
});

// ---- feeds --------------------------------------------------------------------------------------

test("a feed tells each edit, in order, and comes back where it was", async () => {
  await kota.putLocale("feed", {});
  await kota.putLayer("feed", "ground", new Float32Array(4), "application/vnd.kota.f32",
    { cols: 2, rows: 2, spacing: [1, 1] });
  const edit = (h) => kota.edit("feed", { rect: [0, 0, 1, 1], heights: [h] });
  const seen = [];
  const start = String((await kota.locale("feed")).revision);
  await edit(1);
  for await (const event of kota.localeEvents("feed", { lastEventId: start })) {
    seen.push(event);
    if (seen.length === 1) await edit(2);
    if (seen.length === 2) break;
  }
  await edit(3);
  for await (const event of kota.localeEvents("feed", { lastEventId: seen[1].id })) {
    seen.push(event);
    break;
  }
  const revisions = seen.map((event) => event.data.revision);
  assert.deepEqual(revisions, [0, 1, 2].map((i) => Number(start) + 1 + i));
  assert.deepEqual(seen.map((event) => event.name), ["edit", "edit", "edit"]);
  await fails(kota.localeEvents("nobody").next(), NotFoundError, 404);
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 50);
  for await (const event of kota.localeEvents("feed", { signal: stop.signal })) assert.fail(event.name);
});

test("a feed of bounds brings samples, as text and as frames, and windows are the same", async () => {
  await kota.putLocale("part", {});
  await kota.putLayer("part", "ground", new Float32Array(10000), "application/vnd.kota.f32",
    { cols: 100, rows: 100, spacing: [1, 1] });
  const edit = (c, heights) => kota.edit("part", { rect: [c, 5, heights.length, 1], heights });
  const start = String((await kota.locale("part")).revision);
  await edit(1, [1.5, null]);
  await edit(90, [3]);
  await edit(2, [4, 5, 6]);
  for (const form of [{ samples: "f32" }, { binary: true }]) {
    const seen = [];
    for await (const event of kota.localeEvents("part", { ...form, lastEventId: start,
      bounds: [0, 0, 50, 50], layer: "ground" })) {
      if (event.name === "edit") seen.push(event);
      else assert.equal(event.name, "hello");
      if (seen.length === 2) break;
    }
    assert.deepEqual(seen.map((event) => event.id), [1, 3].map((i) => String(Number(start) + i)));
    assert.deepEqual(seen.map((event) => [...event.data.samples]), [[1.5, NaN], [4, 5, 6]]);
    assert.deepEqual(seen[1].data.rect, [2, 5, 3, 1]);
    assert.deepEqual(seen[1].data.bounds.min, [1, 4, 0]);
    assert.equal(seen[0].data.layer, "ground");
  }
  const answer = await kota.samples("part", "ground", { rect: [1, 5, 4, 1] });
  assert.deepEqual([...new Float32Array(answer.buffer)], [1.5, 4, 5, 6]);
  const json = await kota.samples("part", "ground", { rect: [0, 5, 5, 1], step: 2, format: "json" });
  assert.deepEqual(json.json, { samples: [0, 4, 6] });
});

test("a reader that is spared changes comes back after them, and unknown frames are refused", async () => {
  const bytes = (kind, members, revision = 1n) => {
    const frame = new DataView(new ArrayBuffer(16 + members.length));
    frame.setUint32(0, 12 + members.length, true);
    frame.setUint8(4, kind);
    frame.setBigUint64(8, revision, true);
    new Uint8Array(frame.buffer).set(members, 16);
    return new Uint8Array(frame.buffer);
  };
  const hello = (version) => bytes(0, [...new TextEncoder().encode("kotafeed"), version, 0, 0, 0, 0, 0, 0, 0]);
  const read = async (...pieces) => {
    const all = pieces.flatMap((piece) => [...piece]), seen = [];
    const body = new ReadableStream({ start(control) {
      for (const byte of all) control.enqueue(Uint8Array.of(byte)); /* cut everywhere */
      control.close();
    } });
    for await (const event of frames(body, () => {}, "x")) seen.push(event);
    return seen;
  };
  const seen = await read(hello(2), bytes(9, [1, 2, 3, 4]), bytes(4, [], 77n), bytes(3, [], 80n));
  assert.deepEqual(seen.map((event) => [event.name, event.id]), [["hello", ""], ["", "77"], ["resync", "80"]]);
  const patch = bytes(6, [...new Uint8Array(new Float64Array([1, 2, 3, 4, 5, 6]).buffer),
    2, 0, 0, 0, 1, 0, 0, 0, ...new TextEncoder().encode("landborn"), 9, 0, 0, 0], 7n);
  patch.set([4, 4], 6);
  assert.deepEqual((await read(patch)).map((event) => [event.name, event.id, event.data]), [["patch", "",
    { locale: "x", patch: 7, layer: "land", change: "born", state: "active",
      bounds: { min: [1, 2, 3], max: [4, 5, 6] }, bodies: [9] }]]);
  await assert.rejects(read(hello(3)), /version 3/);
  await assert.rejects(read(Uint8Array.of(5, 0, 0, 0, 1)), /a frame of 5 bytes/);
  await assert.rejects(read(bytes(1, [1, 2, 3, 4])), /too short/);
});

test("follow tells its state, and closes", async () => {
  const states = [];
  const feed = kota.follow("/v1/locales/feed/events", { onEvent: () => {},
    onState: (state) => states.push(state) });
  while (!states.length) await wait(5);
  feed.close();
  while (states.length < 2) await wait(5);
  assert.deepEqual(states, ["open", "closed"]);
});

test("a read can wait for a revision", async () => {
  const { revision } = await kota.locale("feed");
  const later = kota.height("feed", [[0, 0]], { minRevision: revision + 1 });
  await wait(20);
  await kota.edit("feed", { rect: [0, 0, 1, 1], heights: [77] });
  assert.equal((await later).results[0].height, 77);
});

test("a watch has all answers first, then those that change; items come and go", async () => {
  const { watch } = await kota.postWatch("feed", { height: { points: [[0, 0], [1, 1]], ids: ["a", "b"] } });
  const seen = [];
  for await (const { name, data } of kota.watchEvents(watch)) {
    assert.equal(name, "answers");
    seen.push(data.answers.map(({ id, answer }) => [id, answer.height]));
    if (seen.length === 1) await kota.edit("feed", { rect: [0, 0, 1, 1], heights: [55] });
    if (seen.length === 2) await kota.patchWatch(watch, { add: { height: { points: [[0, 0]], ids: ["c"] } }, remove: ["b"] });
    if (seen.length === 3) break;
  }
  assert.deepEqual([seen[0].map(([id]) => id), seen[1], seen[2]], [["a", "b"], [["a", 55]], [["c", 55]]]);
  await kota.deleteWatch(watch);
});

test("every operation of the document has been asked", async () => {
  const { paths } = await kota.openapi();
  const pages = new Set(["/", "/docs", "/docs/errors", "/web/{file}", "/v1/compat/maps/api/elevation/json"]);
  const missing = [];
  for await (const event of kota.events({ lastEventId: "0" })) {
    assert.ok(event.name);
    break;
  }
  for (const [path, item] of Object.entries(paths)) {
    const shape = new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`);
    for (const method of ["get", "put", "post", "patch", "delete"]) {
      const isAsked = [...asked].some((one) => one.startsWith(`${method.toUpperCase()} `) &&
        shape.test(one.split(" ")[1]));
      const isPost = path.startsWith("/v1/compat/") && method === "get";
      if (item[method] && !isAsked && !pages.has(path) && !isPost) missing.push(`${method} ${path}`);
    }
  }
  assert.deepEqual(missing, []);
});

// ---- what goes wrong ----------------------------------------------------------------------------

test("refusals are errors of their kind, with place, limit and a line for a shell", async () => {
  await assert.rejects(kota.height("hills", [[0]]), (error) => {
    assert.ok(error instanceof BadInputError && error.status === 400);
    assert.equal(error.problem.errors[0].pointer, "/points/0");
    assert.ok(error.message.includes("/points/0") && error.curl.startsWith("curl "));
    return true;
  });
  await assert.rejects(kota.height("hills", Array(10001).fill([0, 0])), (error) => {
    assert.ok(error instanceof TooLargeError && error.problem.limit === 10000);
    return true;
  });
  await fails(kota.layerStats("hills", "cellar"), NotFoundError, 404);
  await fails(new Kota("http://127.0.0.1:1", { triesMax: 2 }).livez(), ConnectionError, 0);
  const stop = new AbortController();
  stop.abort(new Error("no more"));
  await assert.rejects(kota.livez({ signal: stop.signal }), /no more/);
  const left = new Kota(process.env.KOTA_URL, { ...who, signal: stop.signal });
  await assert.rejects(left.livez(), /no more/);
  for await (const event of left.localeEvents("hills")) assert.fail(event.name);
});

/** A server that answers from a list of functions, one a request; it counts them. */
async function misbehaving(...answers) {
  const server = http.createServer((request, response) => {
    const headers = request.headers, chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      seen.push({ method: request.method, url: request.url, headers,
        body: Buffer.concat(chunks).toString(), at: performance.now() });
      (answers[seen.length - 1] ?? answers.at(-1))(response, request);
    });
  });
  const seen = [];
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { seen, url: `http://127.0.0.1:${server.address().port}`, close: () => {
    server.closeAllConnections();
    server.close();
  } };
}
const say = (status, headers = {}, body = '{"status":"ok"}') => (response) => {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(body);
};

async function against(answers, run, options = {}) {
  const server = await misbehaving(...answers);
  try {
    await run(new Kota(server.url, { waitMaxMs: 2000, ...options }), server.seen);
  } finally {
    server.close();
  }
}

test("busy is waited for as long as Retry-After says, by reads, and by writes with a key", async () => {
  const busy = say(503, { "Retry-After": "1" }, '{"title":"Busy","status":503,"detail":"busy"}');
  await against([busy, say(200)], async (slow, seen) => {
    assert.equal((await slow.livez()).status, "ok");
    assert.equal(seen.length, 2);
    assert.ok(seen[1].at - seen[0].at >= 990, `${seen[1].at - seen[0].at} ms`);
  });
  await against([say(429, { "Retry-After": "0" }), say(200)], async (slow, seen) => {
    await slow.height("x", [[1, 2]]);
    assert.equal(seen.length, 2);
    assert.equal(seen[1].body, seen[0].body, "the same body again");
  });
  await against([say(503, { "Retry-After": "0" }), say(200)], async (slow, seen) => {
    await slow.edit("x", {}, {});
    assert.equal(seen.length, 2);
    assert.match(seen[0].headers["idempotency-key"], /^[0-9a-f]{32}$/);
    assert.equal(seen[1].headers["idempotency-key"], seen[0].headers["idempotency-key"]);
  });
  await against([say(503, { "Retry-After": "0" })], async (slow, seen) => {
    await fails(slow.edit("x", {}, { idempotencyKey: false }), BusyError, 503);
    assert.equal(seen.length, 1, "a write without a key is sent once");
    await fails(slow.livez(), BusyError, 503);
    assert.equal(seen.length, 5, "a read four times");
  });
});

test("nobody waits longer than the call may take, nor without a Retry-After", async () => {
  await against([say(503, { "Retry-After": "3600" })], async (slow, seen) => {
    await assert.rejects(slow.livez(), (error) => error.retryAfterMs === 3600000);
    assert.equal(seen.length, 1);
  });
  await against([say(503)], async (slow, seen) => {
    await fails(slow.livez(), BusyError, 503);
    assert.equal(seen.length, 1);
  });
  const date = new Date(Date.now() + 3600e3).toUTCString();
  await against([say(503, { "Retry-After": date })], async (slow) => {
    await assert.rejects(slow.livez(), (error) => error.retryAfterMs > 3500e3);
  });
});

test("a slow server is given up in time: no answer, half an answer, one byte a while", async () => {
  const half = (response) => {
    response.writeHead(200, { "Content-Length": "1000" });
    response.write("half");
  };
  const drip = (response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write("x"), 10);
    response.on("close", () => clearInterval(timer));
  };
  for (const answer of [() => {}, half, drip]) {
    await against([answer], async (slow) => {
      const start = performance.now();
      await fails(slow.livez(), TimeoutError, 0);
      assert.ok(performance.now() - start < 5000);
    }, { timeoutMs: 150 });
  }
  await against([() => {}], async (slow) => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(new Error("enough")), 30);
    await assert.rejects(slow.livez({ signal: stop.signal }), /enough/);
  });
});

test("lost connections: reads come back, writes by their key", async () => {
  const lose = (response) => response.socket.destroy();
  const cut = (response) => {
    response.writeHead(200, { "Content-Length": "1000" });
    response.write("half");
    setTimeout(() => response.socket.destroy(), 5);
  };
  for (const lost of [lose, cut]) {
    await against([lost, say(200)], async (slow, seen) => {
      assert.equal((await slow.livez()).status, "ok");
      assert.equal(seen.length, 2);
    });
  }
  await against([lose], async (slow, seen) => {
    await fails(slow.putLocale("x", {}), ConnectionError, 0);
    assert.equal(new Set(seen.map((one) => one.headers["idempotency-key"])).size, 1, "one key");
    assert.equal(seen.length, 4, "four tries");
    await fails(slow.putLocale("x", {}, { idempotencyKey: false }), ConnectionError, 0);
    assert.equal(seen.length, 5, "without a key it is sent once");
  });
});

test("garbage is an error, not an answer", async () => {
  await against([say(502, { "Content-Type": "text/html" }, "<h1>Bad gateway</h1>")],
    (slow) => fails(slow.livez(), ServerError, 502));
  await against([say(200, {}, "<html>")], (slow) => assert.rejects(slow.livez(), SyntaxError));
  await against([say(200, {}, "abc")],
    (slow) => fails(slow.heightBatch("x", Float32Array.of(1, 2)), ServerError));
});

test("a feed that is cut, busy or silent is taken up with the last id; a refusal ends it", async () => {
  const event = (id) => `id: ${id}\nevent: edit\ndata: {"revision":${id}}\n\n`;
  const stream = (text, ends) => (response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(text);
    if (ends) setTimeout(() => response.socket.destroy(), 5);
  };
  const answers = [
    stream(`: hello\r\n\r\n${event(1)}id: 2\neve`, true),   // cut within an event
    say(503, { "Retry-After": "0" }),
    stream(event(2), false),                             // then nothing any more
    stream(`${event(3)}data: a\ndata: b\n\n`, false),
  ];
  await against(answers, async (slow, seen) => {
    const got = [], states = [];
    for await (const one of slow.localeEvents("x", { onState: (state) => states.push(state) })) {
      got.push(one);
      if (got.length === 4) break;
    }
    assert.deepEqual(got.map((one) => one.id), ["1", "2", "3", ""]);
    assert.deepEqual(got[3].data, "a\nb");
    assert.deepEqual(got.slice(0, 3).map((one) => one.data.revision), [1, 2, 3]);
    assert.deepEqual(seen.map((one) => one.headers["last-event-id"]), [undefined, "1", "1", "2"]);
    assert.deepEqual(states, ["open", "lost", "lost", "open", "lost", "open", "closed"]);
  }, { silenceMs: 300 });
  await against([say(404, {}, '{"title":"Not found","status":404,"detail":"no"}')],
    (slow) => fails(slow.localeEvents("x").next(), NotFoundError, 404));
});

test("every call is told to onCall but the quiet ones, with a line for a shell", async () => {
  const told = [];
  const loud = new Kota(process.env.KOTA_URL, who);
  loud.onCall = (what) => told.push(what);
  await loud.height("hills", [[1, 2]]);
  await loud.height("hills", [[1, 2]], { quiet: true });
  await assert.rejects(loud.locale("nobody"));
  assert.equal(told.length, 2);
  assert.ok(told[0] instanceof Answer && told[0].curl.includes('{"points":[[1,2]]}'));
  assert.ok(told[1] instanceof NotFoundError);
});

let failed = 0;
console.log(`1..${tests.length}`);
for (const [i, { name, run }] of tests.entries()) {
  try {
    await run();
    console.log(`ok ${i + 1} - ${name}`);
  } catch (error) {
    failed++;
    console.log(`not ok ${i + 1} - ${name}`);
    console.log(String(error?.stack ?? error).replaceAll(/^/gm, "# "));
  }
}
process.exit(failed ? 1 : 0);
