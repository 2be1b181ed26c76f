/**
 * Granules in the 3D view: sixteen living patches, each cut out of the ground and each drawn, and
 * splats whose pixels are where rays of the camera meet the granules' spheres, in double.
 */
import { parseObj, smoothNormals } from "../../client/web/scene/obj.js";
import { putBeach } from "./live.mjs";
import { hangMs, until, visit } from "./support.mjs";

const COUNT = 16, SIZE_M = 5, where = "/v1/locales/beach/patches";

export const daemonArgs = ["--gpu", "cpu", "--patches-fine", "0", "--patches-medium", "0",
  "--patches-coarse", String(COUNT), "--patch-granules", "512", "--patch-speed", "0",
  "--patch-pause-ms", "200", "--patch-linger-ms", "3600000"];

const stone = "v -.7 -.7 -.7\nv 1.4 -.7 -.7\nv -.7 1.4 -.7\nv -.7 -.7 1.4\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";
const small = { width: 900, height: 420 }; // where the processor draws, pixels are time

const ask = (page, name, argument) =>
  page.evaluate(([n, a]) => window.kotaTerrain[n](a), [name, argument]);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0]];
const minus = (a, b) => a.map((v, i) => v - b[i]);
const add = (a, b, s = 1) => a.map((v, i) => v + s * b[i]);
const unit = (a) => a.map((v) => v / Math.hypot(...a));

/** Axes of a camera, and half of the height that it sees a metre away. */
export function lensOf({ eye, target, up, fov_y_deg: fov }) {
  const forward = unit(minus(target, eye)), right = unit(cross(forward, up));
  return { eye, forward, right, up: cross(right, forward), t: Math.tan(fov * Math.PI / 360) };
}

/** The pixel in which a point is seen. */
export function pixelOf(lens, point, [width, height]) {
  const d = minus(point, lens.eye), away = dot(d, lens.forward) * lens.t;
  return [(dot(d, lens.right) / away * height / width + 1) * width / 2,
    (1 - dot(d, lens.up) / away) * height / 2];
}

/** What is on the screen: the mean blue, 0 to 255, of some pixels around a place. */
export async function blueAt(page, pixels, reach = 4) {
  const seen = await bare(page, () => page.locator("#terrain").screenshot());
  return page.evaluate(async ([base64, places, r]) => {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const context = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
    context.drawImage(picture, 0, 0);
    return places.map(([x, y]) => {
      const { data } = context.getImageData(Math.round(x) - r, Math.round(y) - r, 2 * r + 1,
        2 * r + 1);
      return data.filter((_, i) => i % 4 === 2).reduce((a, b) => a + b) / (2 * r + 1) ** 2;
    });
  }, [seen.toString("base64"), pixels, reach]);
}

/** Runs work while nothing lies over the picture. */
async function bare(page, work) {
  const show = (visibility) => page.evaluate((v) => {
    for (const id of ["layers-shown", "sun", "terrain-line"])
      document.getElementById(id).style.visibility = v;
  }, visibility);
  await show("hidden");
  const got = await work();
  await show("");
  return got;
}

const shot = (page, check, name) => bare(page, () => check.shot(page, name));

const glError = (page) =>
  page.evaluate(() => document.getElementById("terrain").getContext("webgl2").getError());

const centers = Array.from({ length: COUNT }, (_, i) => [i % 4, Math.floor(i / 4)]
  .map((n) => 10.25 + 14.5 * n));

async function sixteen(page, daemon, check) {
  const camera = { eye: [32, 6, 62], target: [32, 30, 8] };
  await ask(page, "setCamera", camera);
  await ask(page, "refined");
  const { width, height } = await page.locator("#terrain").boundingBox();
  const lens = lensOf(await ask(page, "camera"));
  const heights = (await daemon.kota.height("beach", centers)).results.map((r) => r.height);
  const pixels = centers.map((c, i) => pixelOf(lens, [...c, heights[i]], [width, height]));
  const before = await blueAt(page, pixels);
  for (const center of centers)
    await daemon.kota.post(where, { center, size: [SIZE_M, SIZE_M], scale: "coarse", depth: 2,
      material: "snow" });
  await until(async () => (await daemon.kota.get(where)).json.patches
    .every((patch) => patch.state === "resting"), "patches at rest", hangMs);
  const drawn = () => ask(page, "sand");
  await until(async () => (await drawn()).patches.filter((p) => p.granules > 0).length === COUNT,
    "their granules");
  const { patches } = (await daemon.kota.get(where)).json, shown = (await drawn()).patches;
  check.equal(shown.map((p) => [p.id, p.granules]), patches.map((p) => [p.id, p.granules]),
    "the granules of sixteen living patches are drawn");
  const leftOut = async (rects) => (await ask(page, "compare",
    { width: 400, height: 300, whole: false, allLevels: true, rects })).background;
  const parts = [], rects = shown.map((p) => p.rect), none = await leftOut([]);
  for (const rect of rects) parts.push(await leftOut([rect]) - none);
  check(parts.every((count) => count > 20), "each is cut out of the ground", parts);
  check.equal(await leftOut(rects) - none, parts.reduce((a, b) => a + b), "all at once");
  await ask(page, "refined");
  const rise = (now) => now.map((v, i) => Math.round(v - before[i]));
  const granular = rise(await blueAt(page, pixels));
  check(granular.every((v) => v > 25), "the snow of each is seen in its middle", granular);
  await shot(page, check, "granules-16");
  await page.locator("#layers-shown label", { hasText: "granules" }).click();
  await ask(page, "refined");
  const sheets = rise(await blueAt(page, pixels));
  check((await drawn()).patches.every((p) => p.granules === 0) && sheets.every((v) => v > 60),
    "switched off in the panel, their surfaces are", sheets);
  await shot(page, check, "granules-16-off");
  await page.locator("#layers-shown label", { hasText: "granules" }).click();
  await until(async () => (await drawn()).patches.every((p) => p.granules > 0), "granules again");
  check.equal(await glError(page), 0, "without an error of GL");
}

/** All spheres of all granules, as GET …/granules describes them. */
async function spheresOf(kota) {
  const list = [];
  for (const { id } of (await kota.get(where)).json.patches) {
    const n = new Float32Array((await kota.get(`${where}/${id}/granules`)).buffer);
    for (let i = 0; i < n.length; i += 9) {
      const at = [...n.subarray(i, i + 3)], q = [...n.subarray(i + 3, i + 6)];
      for (const corner of [[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) {
        const off = corner.map((c) => c * n[i + 7] / Math.SQRT2), twice = cross(q, off).map((v) => 2 * v);
        const far = cross(q, twice);
        list.push([at.map((v, k) => v + off[k] + n[i + 6] * twice[k] + far[k]), n[i + 7]]);
      }
    }
  }
  return list;
}

/** The way of the ray through a pixel. */
function wayOf(lens, x, y, [width, height]) {
  const [a, b] = [(2 * x / width - 1) * lens.t * width / height, (1 - 2 * y / height) * lens.t];
  return unit(lens.forward.map((v, i) => v + a * lens.right[i] + b * lens.up[i]));
}

/** Metres along the view to what the ray through a pixel meets first; null: nothing. */
function firstHit(lens, spheres, x, y, size) {
  const d = wayOf(lens, x, y, size);
  let first = Infinity;
  for (const { to, beyond } of spheres) {
    const along = dot(to, d), under = along * along - beyond;
    if (under >= 0 && along - Math.sqrt(under) > 0) first = Math.min(first, along - Math.sqrt(under));
  }
  return first === Infinity ? null : first * dot(d, lens.forward);
}

async function likeSpheres(page, daemon, check, sentence) {
  const [x, y] = centers[5], size = [192, 108];
  const { height } = (await daemon.kota.get(`/v1/locales/beach/height?x=${x}&y=${y}`)).json;
  await ask(page, "setCamera", { eye: [x - 4, y - 3, height + 3.5], target: [x, y, height - 0.5] });
  await ask(page, "refined");
  const got = await ask(page, "granuleDepths", { width: size[0], height: size[1] });
  const lens = lensOf(await ask(page, "camera")), all = await spheresOf(daemon.kota);
  const spheres = all.map(([at, radius]) => ({ to: minus(at, lens.eye), radius }))
    .map(({ to, radius }) => ({ to, radius, beyond: dot(to, to) - radius ** 2 }));
  const hit = (px, py, some = spheres) => firstHit(lens, some, px, py, size);
  const alike = (a, b) => a === b || (a !== null && b !== null && Math.abs(a - b) < 0.01);
  const fine = Array.from({ length: 33 }, (_, i) => (i - 16) / 32); // slits between spheres are thin
  let hits = 0;
  const edge = [], wrong = [];
  for (const [i, mine] of got.entries()) {
    const at = [i % size[0] + 0.5, size[1] - Math.floor(i / size[0]) - 0.5], is = hit(...at);
    if (is !== null) hits++;
    if (alike(mine, is)) continue;
    edge.push(i);
    const near = spheresNear(lens, spheres, ...at, size);
    const around = fine.flatMap((u) => fine.map((v) => hit(at[0] + u, at[1] + v, near)));
    const some = around.filter((one) => one !== null);
    if (mine === null ? some.length === around.length :
      !(mine > Math.min(...some) - 0.01 && mine < Math.max(...some) + 0.01))
      wrong.push([at, mine, is]);
  }
  check.note(`${sentence}: ${hits} of ${got.length} pixels on granules, ${edge.length} at an edge`);
  check(hits > 0.2 * got.length && edge.length < 0.03 * hits, `${sentence}: pixels have the depth of ` +
    "the spheres", [hits, edge.length]);
  check.equal(wrong, [], `${sentence}: the others are within half a pixel of it`);
}

/** Those of the spheres that rays within a pixel of this one may meet. */
function spheresNear(lens, spheres, x, y, size) {
  const d = wayOf(lens, x, y, size), pixel = 2 * lens.t / size[1];
  return spheres.filter(({ to, radius }) => {
    const along = dot(to, d), reach = radius + pixel * (Math.abs(along) + radius);
    return dot(to, to) - along * along <= reach * reach;
  });
}

/** Where a ray meets a triangle, metres, or Infinity (Möller and Trumbore 1997). */
function meetsTriangle(from, way, [a, b, c]) {
  const [u, v] = [minus(b, a), minus(c, a)], p = cross(way, v), det = dot(u, p), to = minus(from, a);
  const s = dot(to, p) / det, q = cross(to, u), t = dot(way, q) / det, far = dot(v, q) / det;
  return s >= 0 && t >= 0 && s + t <= 1 && far > 1e-4 ? far : Infinity;
}

/** Where a ray meets the sphere around `at`, metres, or Infinity. */
function meetsSphere(from, way, [at, radius]) {
  const to = minus(at, from), along = dot(to, way), under = along ** 2 - dot(to, to) + radius ** 2;
  const far = under > 0 ? along - Math.sqrt(under) : Infinity;
  return far > 1e-4 ? far : Infinity;
}

/** Triangles of the stone where it lies. */
async function stoneOf(kota, id) {
  const [{ position, orientation }] = (await kota.get(`${where}/${id}`)).json.bodies;
  const { points, faces } = parseObj(stone), turned = (v) => {
    const twice = cross(orientation, v).map((n) => 2 * n), far = cross(orientation, twice);
    return v.map((n, i) => n + orientation[3] * twice[i] + far[i] + position[i]);
  };
  return faces.map((face) => face.map((k) => turned(points[k])));
}

/** The surface as the page draws it below granules, half a diameter lower; its rim left out. */
async function sheetOf(kota, page, id) {
  const { granule_diameter: wide } = (await kota.get(`${where}/${id}`)).json;
  const { patches } = await ask(page, "sand"), { finer, rect } = patches.find((p) => p.id === id);
  const { buffer, headers } = await kota.get(`${where}/${id}/surface.f32?per_cell=${finer}`);
  const z = new Float32Array(buffer), [cols, rows] = headers.get("kota-grid").split(",").map(Number);
  const at = (k) => [rect[0] + (k % cols) * (rect[2] - rect[0]) / (cols - 1),
    rect[1] + Math.floor(k / cols) * (rect[3] - rect[1]) / (rows - 1), z[k] - wide / 2];
  return Array.from(z, (_, k) => k).filter((k) => k % cols < cols - 1 && k < cols * (rows - 1))
    .flatMap((k) => [[k, k + 1, k + cols], [k + 1, k + cols + 1, k + cols]])
    .map((corners) => corners.map(at));
}

/** The sun's share on granules and on a body beside rays to all spheres and triangles, in double. */
async function shadowsLikeRays(page, daemon, check) {
  const id = (await daemon.kota.get(where)).json.patches[5].id, size = [192, 108];
  const [triangles, [x, y]] = [await stoneOf(daemon.kota, id), centers[5]];
  const { position } = (await daemon.kota.get(`${where}/${id}`)).json.bodies[0];
  await page.evaluate(async () => (await import("/web/state.js")).state
    .set("sun", { azimuth_deg: 237.5, height_deg: 40, time: null }));
  await ask(page, "setCamera", { eye: add(position, [-3.5, 1, 3]), target: position });
  await ask(page, "refined");
  const lens = lensOf(await ask(page, "camera")), spheres = (await spheresOf(daemon.kota))
    .filter(([at]) => Math.hypot(at[0] - x, at[1] - y) < SIZE_M);
  const sun = [237.5, 40].map((v) => v * Math.PI / 180), up = [0, 0, 1];
  const toSun = [Math.sin(sun[0]) * Math.cos(sun[1]), Math.cos(sun[0]) * Math.cos(sun[1]), Math.sin(sun[1])];
  const axes = [unit(cross(up, toSun))];
  axes.push(cross(axes[0], toSun));
  const sheet = await sheetOf(daemon.kota, page, id);
  const isFree = (from, way, most = Infinity) => sheet.every((t) => meetsTriangle(from, way, t) >= most);
  const isLit = (from, but) => isFree(from, toSun) &&
    spheres.every((s, k) => k === but || meetsSphere(from, toSun, s) === Infinity) &&
    triangles.every((t) => meetsTriangle(from, toSun, t) === Infinity);
  const places = [];
  for (let i = 0; i < size[0] * size[1]; i++) {
    const way = wayOf(lens, i % size[0] + 0.5, Math.floor(i / size[0]) + 0.5, size);
    const first = { far: Infinity };
    for (const [but, one] of spheres.entries()) {
      const far = meetsSphere(lens.eye, way, one);
      if (far < first.far) Object.assign(first, { far, but, at: one[0] });
    }
    for (const t of triangles) {
      const far = meetsTriangle(lens.eye, way, t);
      if (far < first.far) Object.assign(first, { far, but: -1, face: t });
    }
    if (first.far === Infinity) continue;
    const point = add(lens.eye, way, first.far), { face } = first;
    const normal = unit(first.but < 0 ? cross(minus(face[1], face[0]), minus(face[2], face[0])) :
      minus(point, first.at));
    // neither at the rim, which is ground, too, nor in the shadow of granules there
    const inner = Math.hypot(point[0] - x + 0.7 * toSun[0], point[1] - y + 0.7 * toSun[1]) < 1;
    if (dot(normal, way) < 0 && dot(normal, toSun) > 0.1 && inner && isFree(lens.eye, way, first.far))
      places.push({ point, normal, but: first.but, is: isLit(point, first.but) });
  }
  const mine = await ask(page, "sunlit", { points: places.map((p) => p.point),
    normals: places.map((p) => p.normal) });
  const wrong = places.filter((p, i) => p.is !== mine[i] >= 0.5);
  const texel = Math.max(...(await ask(page, "cascades"))[0].texel);
  const far = wrong.filter((p) => ![0.5, 1, 1.5, 2].some((r) => Array.from({ length: 16 }, (_, k) =>
    add(add(p.point, axes[0], r * texel * Math.cos(k * Math.PI / 8)), axes[1],
      r * texel * Math.sin(k * Math.PI / 8))).some((beside) => isLit(beside, p.but) !== p.is)));
  const onStone = places.filter((p) => p.but < 0), dark = places.filter((p) => !p.is);
  check.note(`${places.length} pixels that face the sun, ${onStone.length} on the stone, ${dark.length} in ` +
    `shadow, ${wrong.length} unlike rays, ${far.length} of these not within two texels of ${texel.toFixed(3)} m`);
  check(onStone.length > 100 && dark.length > 0.05 * places.length, "there are bodies, light and shadow",
    [onStone.length, dark.length]);
  check(wrong.length <= 0.01 * places.length, "granules and bodies are as rays have them", wrong.slice(0, 5));
  check.equal(far.length, 0, "the others are within two texels of a shadow's edge");
}

/** A stone falls into a patch: what moved comes, and at rest nothing does. */
async function follows(page, daemon, check) {
  const [x, y] = centers[5], { kota } = daemon, answers = [];
  const patch = (await kota.get(where)).json.patches[5];
  const { height } = (await kota.get(`/v1/locales/beach/height?x=${x}&y=${y}`)).json;
  await kota.call("PUT", "/v1/models/stone", { body: new TextEncoder().encode(stone), type: "model/obj" });
  const listen = (response) => {
    if (response.url().includes(`/${patch.id}/granules`))
      answers.push([response.status(), response.url().includes("since=")]);
  };
  const first = (await ask(page, "sand")).granules;
  page.on("response", listen);
  await kota.post(`${where}/${patch.id}/bodies`,
    { model: "stone", position: [x, y, height + 2], velocity: [0, 0, -7], density: 2500 });
  await until(async () => (await ask(page, "sand")).granules > first, "granules that moved");
  await page.waitForTimeout(400); // a frame
  await shot(page, check, "granules-drop");
  await until(async () => (await kota.get(`${where}/${patch.id}`)).json.state === "resting", "rest",
    hangMs);
  await until(() => answers.slice(-2).every(([status]) => status === 304) && answers.length > 3,
    "two answers without granules", hangMs);
  page.off("response", listen);
  check(answers.every(([, since]) => since), "what moved is asked for, at rest nothing comes", answers);
  await likeSpheres(page, daemon, check, "after a drop");
  await shadowsLikeRays(page, daemon, check);
  await shot(page, check, "granules-near");
  check.equal(await glError(page), 0, "without an error of GL");
}

/** A patch and its granules come and go bit by bit, whatever a frame takes. */
async function comesAndGoes(page, daemon, check) {
  const { kota } = daemon, size = { width: 192, height: 108 };
  const shown = async (cover) => (await ask(page, "granuleDepths", { ...size, cover }));
  const [all, half] = [await shown(1), await shown(0.5)];
  const count = (depths) => depths.filter((depth) => depth !== null).length;
  check(Math.abs(count(half) / count(all) - 0.5) < 0.03, "half of the pixels are half of the way",
    [count(half), count(all)]);
  await page.evaluate(() => {
    window.covers = new Map();
    const look = () => {
      for (const { id, cover, granulesCover } of window.kotaTerrain.sand().patches)
        window.covers.set(id, [...window.covers.get(id) ?? [], [cover, granulesCover]]);
      window.looking = requestAnimationFrame(look);
    };
    look();
  });
  const goesBy = async (id, way, what) => {
    const covers = await page.evaluate((one) => window.covers.get(one), id);
    for (const [k, part] of ["surface", "granules"].entries()) {
      const between = covers.map((pair) => pair[k]).filter((cover) => cover > 0 && cover < 1);
      check(between.length >= 4 && between.every((c, i) => !i || way * (c - between[i - 1]) >= 0),
        `${what}: its ${part} over several frames`, between.slice(0, 20));
    }
  };
  const { id } = (await kota.get(where)).json.patches[5];
  await kota.call("DELETE", `${where}/${id}`);
  await until(async () => !(await ask(page, "sand")).patches.some((p) => p.id === id), "it has gone");
  await goesBy(id, -1, "a patch that is written goes");
  const made = (await kota.post(where, { center: centers[5], size: [SIZE_M, SIZE_M], scale: "coarse",
    depth: 2, material: "sand" })).json.id;
  await until(async () => (await ask(page, "sand")).patches
    .some((p) => p.id === made && p.cover === 1 && p.granulesCover === 1), "it has come", hangMs);
  await goesBy(made, 1, "a new one comes");
  await page.evaluate(() => cancelAnimationFrame(window.looking));
  await until(async () => (await kota.get(`${where}/${made}`)).json.state === "resting", "rest", hangMs);
  await ask(page, "refined");
  await shot(page, check, "granules-rim");
}

/** Normals of bodies: a ball's are its radii, whatever its triangles; a box keeps its faces. */
function smoothBodies(check) {
  const normals = (obj) => {
    const { points, faces } = parseObj(obj), corners = faces.flatMap(([a, ...f]) =>
      f.slice(1).flatMap((_, i) => [a, f[i], f[i + 1]])), out = smoothNormals(points, corners);
    return corners.map((c, i) => [points[c], [...out.subarray(3 * i, 3 * i + 3)]]);
  };
  const rings = 9, sides = 20, lines = [];
  for (let i = 0; i <= rings; i++)
    for (let k = 0; k < sides; k++) {
      const [polar, turn] = [Math.PI * i / rings, 2 * Math.PI * k / sides];
      lines.push(`v ${Math.sin(polar) * Math.cos(turn)} ${Math.sin(polar) * Math.sin(turn)} ${Math.cos(polar)}`);
      const [a, b] = [i * sides + k + 1, i * sides + (k + 1) % sides + 1];
      if (i < rings) lines.push(`f ${a} ${a + sides} ${b + sides}`, `f ${a} ${b + sides} ${b}`);
    }
  const off = normals(lines.join("\n")).filter(([, n]) => Math.hypot(...n) > 0).map(([p, n]) => dot(p, n));
  check(off.length > 900 && off.every((cos) => cos > Math.cos(3 * Math.PI / 180)),
    "a ball's normals are its radii", Math.min(...off));
  const box = normals("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\n" +
    "f 4 3 2 1\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n");
  check(box.every(([, n]) => n.filter((v) => Math.abs(v) < 1e-6).length === 2), "a box keeps its edges");
}

/** @param {any} page @param {any} daemon @param {any} check */
export async function rest(page, daemon, check) {
  smoothBodies(check);
  await page.setViewportSize(small);
  await putBeach(daemon.kota);
  await visit(page, `${daemon.url}/#beach`);
  await page.click("#view-3d");
  await until(async () => (await ask(page, "counters")).frames > 0, "a frame");
  await sixteen(page, daemon, check);
  await likeSpheres(page, daemon, check, "at rest");
  await follows(page, daemon, check);
  await comesAndGoes(page, daemon, check);
}
