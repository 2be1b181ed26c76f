/**
 * Kota.replica in Node: a copy of ground beside its daemon, answers compared bit for bit, over
 * changes, cut feeds and restarts. Prints TAP; run by tests/api/test_replica_js.py.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Kota, NotFoundError } from "../../client/web/kota.js";
import { pause, startDaemon, until } from "./support.mjs";

const isLong = Boolean(process.env.KOTA_TEST_ALL);
const seed = Number(process.env.KOTA_TEST_SEED ?? 20171107);
let state = seed >>> 0;
/** Uniform in 0..1 (mulberry32). */
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let z = Math.imul(state ^ (state >>> 15), state | 1);
  z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
  return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
}
const between = (a, b) => a + (b - a) * random();
const whole = (below) => Math.floor(random() * below);

const tests = [];
const test = (name, run) => tests.push({ name, run });

// ---- the world ----------------------------------------------------------------------------------

const COLS = 300, ROWS = 260, SPACING = 2;
const wave = (x, y) => 20 * Math.sin(0.02 * x) * Math.cos(0.03 * y) + 3 * Math.sin(0.3 * x + 0.2 * y);

/** A square tilted a little, as a polygon. */
function plate(x, y, z, size) {
  const [a, b] = [between(-0.2, 0.2), between(-0.2, 0.2)];
  return [[0, 0], [1, 0], [1, 1], [0, 1]].map(([u, v]) =>
    [x + size * u, y + size * v, z + size * (a * u + b * v)]);
}

function obj(polygons) {
  const corners = polygons.flat(), lines = corners.map((corner) => `v ${corner.join(" ")}`);
  let at = 1;
  for (const polygon of polygons) lines.push(`f ${polygon.map(() => at++).join(" ")}`);
  return lines.join("\n") + "\n";
}

async function makeWorld(kota) {
  const heights = Float32Array.from({ length: COLS * ROWS }, (_, i) =>
    random() < 0.002 ? NaN : wave(SPACING * (i % COLS), SPACING * Math.floor(i / COLS)));
  await kota.putLocale("hills", { triangulation: "alternating", open_sky: true });
  await kota.putLayer("hills", "ground", heights, "application/vnd.kota.f32",
    { cols: COLS, rows: ROWS, spacing: [SPACING, SPACING], origin: [-100, -50] });
  for (const [id, gravity] of [["town", [0, 0, -1]], ["leaning", [0.6, 0, -0.8]]]) {
    await kota.putLocale(id, { gravity });
    const plates = Array.from({ length: 60 }, () =>
      plate(between(0, 90), between(0, 90), between(0, 10), between(2, 12)));
    await kota.putLayer(id, "ground", obj(plates), "model/obj");
    await kota.putLayer(id, "roof", obj([plate(10, 10, 15, 60)]), "model/obj", { role: "ceiling" });
    await kota.putLayer(id, "lift", obj([plate(0, 0, 5, 8)]), "model/obj");
  }
}

/** One random change; where it is one of samples. */
async function change(kota, id) {
  if (id === "hills") {
    const [cols, rows] = [1 + whole(40), 1 + whole(40)];
    const rect = [whole(COLS - cols), whole(ROWS - rows), cols, rows];
    const heights = Float32Array.from({ length: cols * rows }, () =>
      random() < 0.01 ? NaN : between(-30, 30));
    await kota.editSamples(id, rect, heights);
    return;
  }
  const kind = random();
  if (kind < 0.5) {
    const tilt = between(-0.5, 0.5);
    await kota.putTransform(id, "lift", { translation: [between(-5, 80), between(-5, 80), between(-3, 12)],
      ...random() < 0.3 ? { rotation: [Math.sin(tilt), 0, 0, Math.cos(tilt)] }
        : { yaw_deg: random() < 0.3 ? 90 * whole(4) : between(-720, 720) } });
  } else {
    const polygons = Array.from({ length: 1 + whole(3) }, () =>
      plate(between(0, 90), between(0, 90), between(0, 10), between(2, 12)));
    const { added } = await kota.polygons(id, "ground", { polygons });
    if (random() < 0.5) await kota.polygons(id, "ground", { remove: [added[0]] });
  }
}

// ---- comparing ----------------------------------------------------------------------------------

/** Are both the same to the bit? */
function same(a, b) {
  if (typeof a !== "object" || a === null || b === null) return Object.is(a, b);
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
}

/** The replica has what the daemon has now. */
async function current(kota, ground) {
  await until(async () => {
    const { revision, transform_seq: moves } = await kota.locale(ground.locale);
    return ground.revision === revision && ground.transformSeq === (moves ?? 0);
  }, `${ground.locale} at the daemon's revision`);
}

/** Differences of `count` questions of each kind, as texts. */
async function differences(kota, ground, count) {
  const { bounds: { min, max } } = await kota.locale(ground.locale), id = ground.locale;
  const spot = (low, high) => [0, 1, 2].map((i) => between(min[i] - low, max[i] + high));
  const found = [];
  const compare = (kind, asked, wanted, got) => {
    if (!same(got, wanted))
      found.push(`${kind} ${JSON.stringify(asked)}: ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`);
  };
  const points = Array.from({ length: count }, () => spot(3, 3)), flat = points.map(([x, y]) => [x, y]);
  if (id !== "leaning") {
    const { results } = await kota.height(id, flat);
    const many = ground.heights(new Float64Array(flat.flat()));
    flat.forEach(([x, y], i) => {
      compare("height", [x, y], results[i].height ?? NaN, ground.height(x, y));
      compare("heights", [x, y], results[i].height ?? NaN, many[i]);
    });
  }
  const rays = points.map((origin, i) => ({ origin, direction: spot(0, 0).map((v, k) => v - origin[k]),
    t_max: i % 5 ? between(-0.1, 3) : undefined }));
  const hits = (await kota.ray(id, rays)).results;
  rays.forEach((ray, i) => compare("ray", ray, hits[i], ground.ray(ray.origin, ray.direction, ray.t_max)));
  const options = [{}, { reach_up: 3 }, { max_distance: 2 }][whole(3)];
  const contacts = (await kota.contact(id, points, options)).results;
  points.forEach((point, i) => compare("contact", point, contacts[i], ground.contact(point, options)));
  const segments = points.map((from) => ({ from, to: spot(0, 5) }));
  const sights = (await kota.los(id, segments)).results;
  segments.forEach(({ from, to }, i) => compare("los", [from, to], sights[i], ground.los(from, to)));
  const shape = () => [{ sphere: between(0.1, 2) }, { capsule: [0.4, 1.8] }, { box: [0.5, 1, 1.5, between(-180, 180)] }][
    Math.floor(between(0, 3))];
  const ways = segments.map(({ from, to }) => ({ shape: shape(), from, to }));
  const touches = (await kota.sweep(id, ways)).results;
  ways.forEach((way, i) => compare("sweep", way, touches[i], ground.sweep(way.shape, way.from, way.to)));
  const moves = segments.map(({ from, to }, i) => ({ shape: shape(), from, dt: between(0, 1),
    velocity: to.map((end, k) => end - from[k]), ...(i % 2 && { claimed: to, step_up: 0.3 }) }));
  const moved = (await kota.move(id, moves)).results;
  moves.forEach((move, i) => compare("move", move, moved[i], ground.move(move)));
  return found;
}

/** A layer comes to rest without a new number of its pose: then its velocity is another. */
async function equal(kota, ground, count) {
  let found = [];
  for (let tries = 0; tries < 20; tries++) {
    await current(kota, ground);
    found = await differences(kota, ground, count);
    if (found.length === 0 || !found.every((one) => one.includes("velocity"))) break;
    await pause(200);
  }
  assert.deepEqual(found.slice(0, 3), []);
}

// ---- the tests ----------------------------------------------------------------------------------

const folder = await mkdtemp(join(tmpdir(), "kota-replica-"));
// a bounded replica hears by a comment of silence that a change was none of its own
const args = ["--data", join(folder, "data"), "--stream-silence-ms", "300"];
let daemon = await startDaemon(args);

test("answers are the daemon's after edits, edits of polygons and moves", async () => {
  const { kota } = daemon, rounds = isLong ? 40 : 4, changes = isLong ? 25 : 8;
  for (const id of ["hills", "town", "leaning"]) {
    const ground = await kota.replica(id);
    await equal(kota, ground, isLong ? 500 : 300);
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < changes; i++) await change(kota, id);
      await equal(kota, ground, isLong ? 2000 : 300);
    }
    assert.ok(ground.staleness < 600);
    ground.close();
  }
});

test("wait resolves at its revision, and ends with its signal", async () => {
  const { kota } = daemon, ground = await kota.replica("hills");
  const { revision } = await kota.edit("hills", { rect: [7, 7, 1, 1], heights: [77] });
  await ground.wait(revision);
  assert.ok(ground.revision >= revision);
  assert.equal(ground.height(-100 + 14, -50 + 14), 77);
  const control = new AbortController();
  const waiting = assert.rejects(ground.wait(revision + 1, control), /enough/);
  control.abort(new Error("enough"));
  await waiting;
  const late = assert.rejects(ground.wait(revision + 1), /closed/);
  ground.close();
  await late;
  assert.throws(() => ground.contact([0, 0, 0]), /closed/);
  assert.ok(Number.isNaN(ground.height(0, 0)) && ground.revision === 0);
});

test("within its bounds a replica is the daemon's ground; beyond it says absent", async () => {
  const { kota } = daemon, [x0, y0, x1, y1] = [100, 60, 260, 200];
  const ground = await kota.replica("hills", { bounds: [x0, y0, x1, y1] });
  for (let i = 0; i < 20; i++) await change(kota, "hills");
  await current(kota, ground);
  const points = Array.from({ length: 500 }, () => [between(x0, x1), between(y0, y1), between(-40, 60)]);
  const heights = (await kota.height("hills", points.map(([x, y]) => [x, y]))).results;
  const contacts = (await kota.contact("hills", points)).results;
  points.forEach(([x, y, z], i) => {
    assert.ok(same(ground.height(x, y), heights[i].height ?? NaN), `${x} ${y}`);
    assert.ok(same(ground.contact([x, y, z]), contacts[i]), `${x} ${y} ${z}`);
  });
  assert.equal(ground.contact([400, 400, 100]).status, "absent");
  assert.ok(Number.isNaN(ground.height(400, 400)));
  // the bits of a ray depend on the greatest sample, which is beyond the bounds
  for (const peak of [900, 0]) {
    await kota.edit("hills", { rect: [1, 1, 1, 1], heights: [peak] });
    await current(kota, ground);
    const rays = Array.from({ length: 500 }, () => ({ origin: [between(x0, x1), between(y0, y1), between(-15, 300)],
      direction: [between(-1, 1), between(-1, 1), between(-1, 0.2)] }));
    const hits = (await kota.ray("hills", rays)).results;
    const moves = rays.map(({ origin, direction }) => ({ shape: { sphere: 1 }, from: origin, velocity: direction, dt: 3 }));
    const moved = (await kota.move("hills", moves)).results;
    const ends = moves.map((move) => ground.move(move));
    ends.forEach((end, i) => assert.ok(end.status === "absent" || same(end, moved[i]), JSON.stringify([end, moved[i]])));
    assert.ok(ends.filter((end) => end.status).length < 250, "moves beyond");
    let absent = 0;
    rays.forEach((ray, i) => {
      const got = ground.ray(ray.origin, ray.direction);
      if (got.status === "absent") absent++;
      else assert.ok(same(got, hits[i]), JSON.stringify([ray, got, hits[i]]));
    });
    assert.ok(absent > 5 && absent < 500, `${absent} absent`);
  }
  ground.close();
});

/** Forwards to the daemon's port of the moment, and cuts its links on request. */
function proxy() {
  const links = new Set(), one = { port: 0, limit: () => Infinity, cut: () => links.forEach((l) => l.destroy()) };
  const server = net.createServer((from) => {
    const to = net.connect(one.port, "127.0.0.1");
    let left = one.limit();
    for (const [a, b] of [[from, to], [to, from]]) {
      links.add(a);
      a.on("error", () => {}).on("close", () => {
        links.delete(a);
        b.destroy();
      });
    }
    from.on("data", (bytes) => to.write(bytes));
    to.on("data", (bytes) => {
      from.write(bytes.subarray(0, Math.max(0, left)));
      left -= bytes.length;
      if (left <= 0) from.end();
    });
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(Object.assign(one,
    { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() }))));
}

test("a cut feed and a restarted daemon: each answer is of the revision that is named", async () => {
  const between_ = await proxy();
  between_.port = Number(new URL(daemon.url).port);
  const ground = await new Kota(between_.url).replica("hills");
  /** Heights at some places, by revision. */
  const known = new Map(), places = Array.from({ length: 40 }, () => [between(-100, 400), between(-50, 400)]);
  const note = async () => {
    const { revision, results } = await daemon.kota.height("hills", places);
    known.set(revision, results.map((item) => item.height ?? NaN));
  };
  const check = () => {
    const wanted = known.get(ground.revision);
    if (wanted) assert.ok(same(places.map(([x, y]) => ground.height(x, y)), wanted), `at ${ground.revision}`);
    return wanted !== undefined;
  };
  await note();
  let checked = 0;
  for (let round = 0; round < (isLong ? 60 : 8); round++) {
    between_.limit = () => 16 + whole(20000);
    between_.cut();
    for (let i = 0; i < 6; i++) {
      await change(daemon.kota, "hills");
      await note();
      await pause(whole(60));
      checked += check();
    }
    if (round % 8 === 3) {
      await daemon.stop();
      await pause(300);
      const before = ground.staleness;
      await pause(50);
      assert.ok(ground.staleness > before, "it grows while the daemon is away");
      assert.ok(check(), "it goes on answering");
      daemon = await startDaemon(args);
      between_.port = Number(new URL(daemon.url).port);
    }
    between_.limit = () => Infinity;
    const { revision } = await daemon.kota.locale("hills");
    await ground.wait(revision);
    await equal(daemon.kota, ground, 200);
  }
  assert.ok(checked > 10, `${checked} looks`);
  ground.close();
  between_.close();
});

test("a locale that is not there, or is no longer", async () => {
  const { kota } = daemon;
  await assert.rejects(kota.replica("atlantis"), NotFoundError);
  await kota.putLocale("gone", {});
  await kota.putLayer("gone", "ground", new Float32Array(4), "application/vnd.kota.f32",
    { cols: 2, rows: 2, spacing: [1, 1] });
  const ground = await kota.replica("gone");
  const waiting = assert.rejects(ground.wait(99), NotFoundError);
  await kota.deleteLocale("gone");
  await waiting;
  assert.ok(Number.isNaN(ground.height(0.5, 0.5)));
});

test("a daemon without the module: an error that says so", async () => {
  const isBeside = await readFile(new URL("../../client/web/kota_ground.wasm", import.meta.url))
    .then(() => true, () => false);
  if (isBeside) return;
  const server = http.createServer((request, response) => {
    response.writeHead(404, { "Content-Type": "application/problem+json" }).end("{}");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done()));
  await assert.rejects(new Kota(`http://127.0.0.1:${server.address().port}`).replica("hills"),
    (error) => error instanceof NotFoundError && /kota_ground\.wasm/.test(error.message));
  server.close();
});

await makeWorld(daemon.kota);
console.log(`# seed ${seed} (KOTA_TEST_SEED)`);
let failed = 0;
for (const [i, { name, run }] of tests.entries()) {
  const end = setTimeout(() => { throw new Error(`${name}: no end within 40 minutes`); }, 2400000);
  try {
    await run();
    console.log(`ok ${i + 1} - ${name}`);
  } catch (error) {
    failed++;
    console.log(`not ok ${i + 1} - ${name}\n${String(error.stack).replace(/^/gm, "# ")}`);
  }
  clearTimeout(end);
}
console.log(`1..${tests.length}`);
await daemon.stop();
await rm(folder, { recursive: true });
process.exit(failed ? 1 : 0);
