/**
 * Shadows of the 3D view: that they are where the daemon's `lit` has them, that they stay where they
 * are while the eye moves, that cascades go over into each other unseen, that meshes and sand cast
 * them, and that the sun is where time and place, or the address, put it.
 */
import { blueAt, lensOf, pixelOf } from "./granules.mjs";
import { go, setShadows, until } from "./support.mjs";

/** Calls window.kotaTerrain[name](argument). */
const ask = (page, name, argument) =>
  page.evaluate(([n, a]) => window.kotaTerrain[n](a), [name, argument]);

const RAD = Math.PI / 180, BATCH = 10000;
const sunAt = (azimuth, height) => [Math.sin(azimuth * RAD) * Math.cos(height * RAD),
  Math.cos(azimuth * RAD) * Math.cos(height * RAD), Math.sin(height * RAD)];
const add = (a, b, s = 1) => a.map((v, i) => v + s * b[i]);
const unit = (a) => a.map((v) => v / Math.hypot(...a));

async function show(page, locale, [azimuth_deg, height_deg], camera) {
  await page.evaluate(async (sun) => {
    (await import("/web/state.js")).state.set("sun", sun);
  }, { azimuth_deg, height_deg, time: null });
  if (await page.inputValue("#locale") !== locale) await go(page, locale);
  await page.click("#view-3d");
  await until(async () => (await ask(page, "counters")).frames > 0, "a frame");
  if (camera) await ask(page, "setCamera", camera);
  await ask(page, "ready");
}

/** Results of a call on batches, in order. */
async function batches(items, call) {
  const all = [];
  for (let i = 0; i < items.length; i += BATCH)
    all.push(...(await call(items.slice(i, i + BATCH))).results);
  return all;
}

/** What pixels of the camera show: {point, normal, layer}, without those of the sky. */
async function hitsOf(kota, locale, camera, viewport, count) {
  const forward = unit(add(camera.target, camera.eye, -1));
  const right = unit([forward[1], -forward[0], 0]);
  const up = [right[1] * forward[2] - right[2] * forward[1],
    right[2] * forward[0] - right[0] * forward[2], right[0] * forward[1] - right[1] * forward[0]];
  const t = Math.tan(30 * RAD), across = Math.ceil(Math.sqrt(count * viewport[0] / viewport[1]));
  const down = Math.ceil(count / across);
  const rays = Array.from({ length: across * down }, (_, i) => {
    const x = 2 * ((i % across) + 0.5) / across - 1, y = 2 * (Math.floor(i / across) + 0.5) / down - 1;
    return { origin: camera.eye, direction: add(add(forward, right, x * t * viewport[0] / viewport[1]),
      up, y * t) };
  });
  return (await batches(rays, (some) => kota.ray(locale, some))).filter((r) => r.status === "hit");
}

/** Which of these are lit; a planet's by the layers that cast there. */
async function litOf(kota, locale, points, sun, layers) {
  const lights = await Promise.all(layers.map((layer) => batches(points, (some) =>
    kota.lit(locale, some, { direction: sun.map((v) => -v) }, layer ? { layer } : {}))));
  return points.map((_, i) => lights.every((results) => results[i].lit));
}

/**
 * Is a shadow's edge within two texels of a place, across the light and along it? A shadow's by
 * places beside it in the air, which ground does not shadow; light's by what is seen beside it.
 */
async function nearEdge(kota, locale, place, lit, texel, o) {
  const [a, b] = o.axes, beside = [];
  for (const r of [0.7, 1.4, 2])
    for (let k = 0; k < 12; k++) {
      const aside = add(a.map((v) => v * Math.cos(k * RAD * 30)), b, Math.sin(k * RAD * 30));
      for (const along of [-2, 0, 2])
        beside.push(add(add(place, aside, r * texel), o.sun, along * texel));
    }
  const rays = beside.map((p) => ({ origin: o.eye, direction: add(p, o.eye, -1) }));
  const hits = (await kota.ray(locale, rays)).results.filter((r) => r.status === "hit");
  const seen = await litOf(kota, locale, lit ? hits.map((hit) => hit.point) : beside, o.sun, o.layers);
  if (!lit || seen.includes(false)) return seen.includes(!lit);
  const light = { direction: o.sun.map((v) => -v) }; // or what casts on places beside it in the air
  return (await kota.lit(locale, beside, light)).results
    .some(({ occluder }) => occluder?.distance > 5 * texel);
}

/** The page's shadows beside the daemon's, at pixels of a view. */
async function likeLit(page, daemon, check, view, count) {
  const { locale, sun, layers = [null], isGround } = view, { kota } = daemon;
  await show(page, locale, sun, view.camera);
  const camera = await ask(page, "camera"), way = sunAt(...sun);
  const box = await page.locator("#terrain").boundingBox();
  const hits = (await hitsOf(kota, locale, camera, [box.width, box.height], count))
    .filter((hit) => layers[0] === null || layers.includes(hit.layer));
  const points = hits.map((hit) => hit.point);
  const lit = await litOf(kota, locale, points, way, layers);
  // a face that is turned away is in its own shadow
  const isTurned = hits.map(({ normal, point }) => {
    const n = normal.reduce((s, v, i) => s + v * (camera.eye[i] - point[i]), 0) < 0 ? -1 : 1;
    return n * normal.reduce((s, v, i) => s + v * way[i], 0) <= 0;
  });
  const normals = hits.map(({ normal, point }) => normal.reduce((s, v, i) =>
    s + v * (camera.eye[i] - point[i]), 0) < 0 ? normal.map((v) => -v) : normal);
  const mine = await ask(page, "sunlit", { points, normals, isGround });
  const cascades = await ask(page, "cascades"), wrong = [];
  const side = Math.abs(way[2]) < 0.99 ? [0, 0, 1] : [0, 1, 0];
  const u = unit([side[1] * way[2] - side[2] * way[1], side[2] * way[0] - side[0] * way[2],
    side[0] * way[1] - side[1] * way[0]]);
  const v = [way[1] * u[2] - way[2] * u[1], way[2] * u[0] - way[0] * u[2],
    way[0] * u[1] - way[1] * u[0]];
  const o = { eye: camera.eye, sun: way, layers, axes: [u, v] };
  for (const [i, point] of points.entries()) {
    const is = lit[i] && !isTurned[i];
    if (is === mine[i] >= 0.5) continue;
    const away = Math.hypot(...add(point, camera.eye, -1));
    const texel = Math.max(...cascades.find((c) => away < 0.75 * c.radius).texel); // or the next
    wrong.push({ point, is, mine: mine[i], texel, away });
  }
  let far = 0;
  const sample = wrong.slice(0, 200);
  for (const one of sample) {
    one.isNear = await nearEdge(kota, locale, one.point, one.is, one.texel, o);
    if (!one.isNear) far++;
  }
  const shadow = lit.filter((one, i) => !one || isTurned[i]).length;
  check.note(`${view.name}: ${points.length} pixels, ${shadow} in shadow, ${wrong.length} unlike ` +
    `the daemon's (${(100 * wrong.length / points.length).toFixed(2)} %), ${far} of ` +
    `${sample.length} of these not within two texels of an edge`);
  check(points.length > 0.1 * count && shadow > 0.005 * points.length && shadow < points.length,
    `${view.name}: there is light and shadow`, [points.length, shadow]);
  check(wrong.length <= 0.01 * points.length, `${view.name}: they are as lit has them`,
    wrong.slice(0, 10));
  check(far <= points.length / 5000, // distant casters are coarser; as of the daemon's view
    `${view.name}: the others are within two texels of a shadow's edge`, far);
  if (far) check.note(JSON.stringify(sample.filter((one) => !one.isNear).slice(0, 8)));
  return [points.length, wrong.length];
}

const views = [
  { name: "high sun", locale: "highlands", sun: [237.5, 49.5], isGround: true,
    camera: { eye: [600, 600, 900], target: [2200, 2400, 300] } },
  { name: "low sun", locale: "highlands", sun: [250, 12], isGround: true,
    camera: { eye: [600, 600, 900], target: [2200, 2400, 300] } },
  { name: "cliffs", locale: "mesa", sun: [120, 25], isGround: true,
    camera: { eye: [700, 500, 520], target: [2000, 1700, 100] } },
  { name: "bridge", locale: "village", sun: [200, 30],
    camera: { eye: [70, 50, 30], target: [100, 80, 0] } },
  { name: "planet", locale: "planet", sun: [237.5, 49.5], layers: ["ground", "trees"],
    camera: { eye: [-75, -75, 70], target: [0, 0, 15] } },
];

const steady = { eye: [1500, 1500, 700], target: [2500, 2600, 300] };

/** The eye moves by fractions of a texel; what is shadowed stays. */
async function isSteady(page, daemon, check, frames) {
  await show(page, "highlands", views[1].sun, steady);
  const heights = async (xy) =>
    (await daemon.kota.height("highlands", xy)).results.map((r) => r.height);
  const xy = Array.from({ length: 10000 }, (_, i) => {
    const r = 2 * Math.sqrt(i + 1) ** 1.5, a = i * 2.399963;
    return [1900 + r * Math.cos(a), 1900 + r * Math.sin(a)];
  }).map((p) => p.map((v) => Math.min(4080, Math.max(8, v))));
  const z = await heights(xy), points = xy.map((p, i) => [...p, z[i]]);
  const got = await page.evaluate(async ([all, n, { eye: begin, target }]) => {
    const { kotaTerrain } = window;
    await kotaTerrain.sunlit({ points: all, isGround: true });
    const [texel] = kotaTerrain.cascades()[0].texel;
    const jumps = [], drawn = kotaTerrain.counters().shadowMaps;
    let before = null, shadow = 0, eye = begin;
    for (let k = 0; k < n; k++) {
      eye = eye.map((v, i) => v + texel * [0.31, 0.23, 0.11][i]);
      kotaTerrain.setCamera({ eye, target });
      const now = await kotaTerrain.sunlit({ points: all, isGround: true });
      if (before) now.forEach((v, i) => {
        if (Math.abs(v - before[i]) >= 1 / 64) jumps.push([k, i, before[i], v]);
      });
      before = now;
      shadow = now.filter((v) => v < 0.5).length;
    }
    return { jumps: jumps.length, some: jumps.slice(0, 8), shadow,
      drawn: kotaTerrain.counters().shadowMaps - drawn };
  }, [points, frames, steady]);
  check.note(`${frames} frames: ${JSON.stringify(got)}`);
  check(got.shadow > 500 && got.shadow < 9500, "of 10,000 places some are in shadow", got.shadow);
  check.equal(got.jumps, 0, "the eye moves by fractions of a texel: no place changes by 1/64");
  return got;
}

/** The eye moves so that places come to lie in another cascade: what is seen of that. */
async function bordersAreUnseen(page, daemon, check) {
  const ground = (await daemon.kota.height("highlands", [[1500, 1500]])).results[0].height;
  const eye = [1500, 1500, ground + 30], target = [2500, 2600, 300];
  await show(page, "highlands", [250, 25], { eye, target });
  for (const { radius } of (await ask(page, "cascades")).filter((c) => c.radius < Infinity)) {
    const tried = Array.from({ length: 60000 }, (_, i) => {
      const r = radius * (0.6 + 0.4 * (i % 997) / 997), a = i * 2.399963;
      return [eye[0] + r * Math.cos(a), eye[1] + r * Math.sin(a)];
    }).filter((p) => p.every((v) => v > 8 && v < 4080));
    const z = await batches(tried, (some) => daemon.kota.height("highlands", some));
    const ring = tried.map((p, i) => [...p, z[i].height]).filter((p) => {
      const part = Math.hypot(...add(p, eye, -1)) / radius;
      return Math.abs(part - 0.75) < 0.004 || Math.abs(part - 1) < 0.004;
    });
    const steps = [];
    for (const way of [-0.001, 0]) {
      await ask(page, "setCamera", { eye: add(eye, [1, 1, 0], way * radius), target });
      await ask(page, "ready");
      steps.push(await ask(page, "sunlit", { points: ring, isGround: true }));
    }
    const most = Math.max(...steps[0].map((v, i) => 255 * Math.abs(v - steps[1][i])));
    const partly = steps[0].filter((v) => v > 0.02 && v < 0.98).length;
    check(most < 2 && ring.length > 300, `at the ends of the cascade of ${radius.toFixed(0)} m ` +
      `${ring.length} places differ by less than 2 grey levels`, [most, ring.length]);
    check.note(`cascade of ${radius.toFixed(0)} m: ${partly} of ${ring.length} places partly lit, ` +
      `most ${most.toFixed(2)} grey levels`);
  }
}

/** A box over flat ground, and a body's mesh: both have a shadow where the sun has put it. */
async function meshesCast(page, daemon, check) {
  const side = 65, put = (path, body, type) => daemon.kota.call("PUT", `/v1/locales/cast${path}`,
    { ...(type ? { body, type } : { json: body }) });
  await put("", { title: "Cast" });
  await put(`/layers/ground?cols=${side}&rows=${side}&spacing=1,1`, new Float32Array(side * side),
    "application/vnd.kota.f32");
  const corner = (k) => `v ${30 + 4 * (k & 1)} ${30 + 4 * (k >> 1 & 1)} ${6 + 2 * (k >> 2)}`;
  const faces = ["1 3 4 2", "5 6 8 7", "1 2 6 5", "3 7 8 4", "1 5 7 3", "2 4 8 6"];
  await put("/layers/box", new TextEncoder().encode([...Array(8).keys()].map(corner)
    .concat(faces.map((f) => `f ${f}`)).join("\n")), "model/obj");
  await show(page, "cast", [90, 45], { eye: [20, 10, 25], target: [30, 34, 2] });
  await until(async () => (await ask(page, "sand")).solids === 1, "the box");
  await ask(page, "ready");
  const at = async (points) => (await ask(page, "sunlit", { points, isGround: true }))
    .map((v) => Math.round(100 * v) / 100);
  // the sun is in the east at 45 degrees: 6 to 8 m high falls 6 to 8 m to the west
  check.equal(await at([[25, 32, 0], [32, 32, 0], [25, 36, 0], [20, 32, 0]]), [0, 1, 1, 1],
    "a box in the air has its shadow where the sun puts it");
  await daemon.kota.call("PUT", "/v1/locales/cast/layers/box/transform",
    { json: { translation: [0, 10, 0] } });
  await until(async () => (await ask(page, "sand")).standing.box?.position[1] === 10, "the box has moved");
  check.equal(await at([[25, 42, 0], [25, 32, 0]]), [0, 1], "and when it moves, the shadow goes with it");
  const samples = async () => (await ask(page, "counters")).uploadedSamples, before = await samples();
  await daemon.kota.post("/v1/locales/cast/edits",
    { brush: { shape: "raise", center: [50, 20], radius: 4, amount: 12 } });
  await until(async () => await samples() > before, "the hill");
  await until(async () => (await at([[42, 20, 0]]))[0] < 0.5, "the hill's shadow");
  check(true, "ground that was raised has a shadow");
  await check.shot(page, "shadows-cast");
}

/** What a visitor sees first of the houses, who touches nothing. */
async function homeHasShadows(page, daemon, check) {
  await show(page, "village", [237.5, 49.5]); // the default
  await setShadows(page, true);
  await until(async () => (await ask(page, "sand")).solids >= 4, "the meshes");
  await ask(page, "refined");
  const camera = await ask(page, "camera"), { kota } = daemon;
  const box = await page.locator("#terrain").boundingBox(), size = [box.width, box.height];
  const ground = (await hitsOf(kota, "village", camera, size, 30000))
    .filter(({ normal }) => Math.abs(normal[2]) > 0.9).map((hit) => hit.point);
  const lit = await litOf(kota, "village", ground, sunAt(237.5, 49.5), [null]);
  const blue = await blueAt(page, ground.map((point) => pixelOf(lensOf(camera), point, size)), 0);
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const [light, dark] = [true, false].map((is) => blue.filter((_, i) => lit[i] === is));
  check(dark.length > 0.008 * blue.length, "from where a visitor begins shadows are seen on the ground",
    [dark.length, blue.length]);
  check(mean(dark) < 0.75 * mean(light), "and are dark in the picture", [mean(dark), mean(light)]);
  check.note(`${dark.length} of ${blue.length} ground pixels in shadow: ` +
    `${mean(dark).toFixed(0)} against ${mean(light).toFixed(0)}`);
  await check.shot(page, "shadows-home");
}

/** Controls, address and time. */
async function theSun(page, daemon, check) {
  const got = await page.evaluate(async () => {
    const { sunOver } = await import("/web/sun.js");
    return [sunOver(Date.UTC(2026, 5, 21, 12), { lat: 51.4779, lng: 0 }),
      sunOver(Date.UTC(2026, 11, 21, 6, 30), { lat: -33.8688, lng: 151.2093 })];
  });
  // The Astronomical Almanac's sun without refraction: noon at Greenwich, the evening at Sydney
  check.near(got[0].height_deg, 61.96, 0.05, "the sun at noon in June over Greenwich: height");
  check.near(got[0].azimuth_deg, 179.1, 0.3, "and azimuth");
  check(got[1].azimuth_deg > 240 && got[1].azimuth_deg < 270 && got[1].height_deg > 15 &&
    got[1].height_deg < 40, "an afternoon in December over Sydney: in the west", got[1]);
  const sun = () => page.evaluate(async () => (await import("/web/state.js")).state.sun);
  check.equal(await sun(), { azimuth_deg: 90, height_deg: 12.5, time: null },
    "the address puts the sun");
  await setShadows(page, false);
  await page.click("#view-3d");
  const { geo } = (await daemon.kota.get("/v1/locales/highlands")).json;
  const noon = new Date(Date.UTC(2026, 5, 21, 12, 2) - geo.lng * 240000).toISOString().slice(0, 16);
  await page.click("#sun summary");
  await page.fill("#sun-time", noon);
  const timed = await sun();
  check(Math.abs(timed.azimuth_deg - 180) < 1 &&
    Math.abs(timed.height_deg - (90 - geo.lat + 23.44)) < 0.1,
    "and a time where the locale has a place on the Earth: its noon", [timed, geo]);
  check.equal(new URL(page.url()).hash, `#highlands&time=${noon}:00.000Z`,
    "which the address has then");
  await page.locator("#sun-height").fill("30");
  check.equal((await sun()).height_deg, 30, "the slider moves it");
  await page.selectOption("#locale", "mesa");
  await page.waitForFunction(() => location.hash.startsWith("#mesa&sun="));
  check(true, "another locale keeps the address's sun");
}

/** Slow frames in motion are drawn without shadows, a picture at rest with them. */
async function pace(page, daemon, check) {
  const got = await page.evaluate(async () => {
    const { Pace } = await import("/web/pace.js"), slow = new Pace(), said = [];
    const run = (ms, isShadowed, count = 8) => {
      for (let i = 0; i < count; i++) slow.took(ms, isShadowed);
      said.push(slow.isSlow);
    };
    run(30, true);   // 33 a second: stays on
    run(70, true);   // 14 a second: off
    run(35, false);  // they would take 70 ms again
    run(16, false);  // they would take 32 ms
    return said;
  });
  check.equal(got, [false, true, true, false],
    "shadows go while frames would fall below 20 a second, and come back");
  await show(page, "cast", views[1].sun);
  await ask(page, "refined");
  check((await ask(page, "counters")).shadowed, "a view at rest has shadows");
  await page.locator("#layers-shown label", { hasText: "shadows" }).click();
  await ask(page, "refined");
  check(!(await ask(page, "counters")).shadowed, "and none where they are switched off");
  await page.locator("#layers-shown label", { hasText: "shadows" }).click();
  await show(page, "cast", [250, -5]);
  check(!(await ask(page, "counters")).shadowed, "nor when the sun has set");
}

export const viewport = { width: 480, height: 360 }; // where the processor draws, pixels are time

export const begin = () => "#highlands&sun=90,12.5";

export async function run(page, daemon, check) {
  await theSun(page, daemon, check);
  await homeHasShadows(page, daemon, check);
  await likeLit(page, daemon, check, views[3], 2000);
  await meshesCast(page, daemon, check);
  await pace(page, daemon, check);
}

export async function rest(page, daemon, check) {
  const sums = [0, 0];
  for (const view of views)
    (await likeLit(page, daemon, check, view, 44000)).forEach((v, i) => { sums[i] += v; });
  check(sums[0] >= 100000, "they are 100,000 pixels", sums);
  check.note(`${sums[1]} of ${sums[0]} pixels unlike the daemon's`);
  await bordersAreUnseen(page, daemon, check);
  await isSteady(page, daemon, check, 200);
}
