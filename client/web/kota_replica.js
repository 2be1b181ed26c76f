/**
 * A copy of a locale's ground in this process, which follows the daemon and answers at once: the code
 * of the daemon as WebAssembly (kota_ground.wasm, client/ground/wasm.c), which says what to fetch and
 * takes what comes. Here is the HTTP of it, and the answers as the API's items. See Kota.replica.
 *
 * @module kota_replica
 */

/**
 * @typedef {import("./kota.js").Kota} Kota
 * @typedef {import("./kota_types.js").ContactItem} ContactItem
 * @typedef {import("./kota_types.js").RayItem} RayItem
 * @typedef {import("./kota_types.js").Shape} Shape
 * @typedef {import("./kota_types.js").TouchItem} TouchItem
 * @typedef {import("./kota_types.js").MoveQuestion} MoveQuestion
 * @typedef {import("./kota_types.js").MovedItem} MovedItem
 * @typedef {import("./kota_types.js").ReplicaOptions} ReplicaOptions
 * @typedef {import("./kota_types.js").SightItem} SightItem
 */

import { KotaError, NotFoundError, failure } from "./kota_answer.js";
import { onAbort, pause } from "./kota_feed.js";

/** Answers under way at once, beside the feed. */
const TOGETHER = 4;
const BODY_BYTES_MAX = 1 << 28; // the module's memory has 32 bits
const PAUSE_MS = 500, PAUSE_MAX_MS = 10000;
const NEED_FEED = 1; // kota_ground_need_kind
/** kota_ground_state */
const CURRENT = 1, GONE = 3, REFUSED = 4;
/** Words of kota_ground_status and kota_ground_ray_status, by number. */
const STATUS = /** @type {const} */ (["ok", "below", "hole", "outside", "too_far", "absent"]);
const RAY_STATUS = /** @type {const} */ (["hit", "miss", "invalid", "absent"]);

/** kota_ground_shape_kind */
const SHAPES = ["sphere", "capsule", "box"];
const NOWHERE = { point: null, normal: null, layer: null, cell: null, triangle: null, polygon: null };

/** @typedef {Record<string, (...values: any[]) => any> & {memory: WebAssembly.Memory}} Exports */

/** The module of each address, compiled once. @type {Map<string, Promise<WebAssembly.Module>>} */
const modules = new Map();

/** The bytes beside this file where that is on disk: an npm package. @returns {Promise<Uint8Array|null>} */
async function besideMe() {
  const url = new URL("kota_ground.wasm", import.meta.url);
  if (url.protocol !== "file:") return null;
  const name = "node:fs/promises"; // not for bundlers
  return import(name).then((fs) => fs.readFile(url)).catch(() => null);
}

/** @param {Kota} kota @returns {Promise<WebAssembly.Module>} */
async function compiled(kota) {
  const bytes = await besideMe();
  if (bytes) return WebAssembly.compile(/** @type {BufferSource} */ (bytes));
  try {
    return await WebAssembly.compile((await kota.get("/web/kota_ground.wasm", { quiet: true })).buffer);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    throw new NotFoundError("A replica needs kota_ground.wasm, and this daemon was built without it " +
      "(sh deploy/install-deps.sh wasm): ask the daemon instead.",
    { status: error.status, problem: error.problem, asked: error.asked });
  }
}

/** @param {Kota} kota @returns {Promise<Exports>} */
async function instance(kota) {
  const address = kota.url("");
  const module = modules.get(address) ?? compiled(kota);
  modules.set(address, module);
  module.catch(() => modules.delete(address)); // asked again the next time
  // what the C library would ask of a system is refused (ENOSYS)
  const system = new Proxy({}, { get: () => () => 52, has: () => true });
  const made = await WebAssembly.instantiate(await module, { wasi_snapshot_preview1: system, env: system });
  const exports = /** @type {any} */ (made.exports);
  exports._initialize?.();
  return exports;
}

/** @param {ReadableStream<Uint8Array>} body @returns {AsyncGenerator<Uint8Array, void, void>} */
async function* pieces(body) {
  const reader = body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Ground that is asked without a round trip. Made by Kota.replica. */
export class Replica {
  #kota;
  #exports;
  #control = new AbortController();
  #release;
  #under = 0; // answers under way
  #waitMs = PAUSE_MS;
  #heardMs = -Infinity; // when the daemon last said something and this copy had all of it
  /** Called after each change. @type {Set<() => void>} */ #watchers = new Set();
  /** Texts by their place in memory, until the next change. @type {Map<number, string>} */
  #texts = new Map();
  #buffer = new ArrayBuffer(0);
  #view = new DataView(this.#buffer);
  /** What ended it. @type {Error|null} */ #failed = null;
  /** The last refusal, in the daemon's words. @type {KotaError|null} */ #refusal = null;

  /**
   * @param {Kota} kota @param {string} locale @param {Exports} exports @param {ReplicaOptions} options
   */
  constructor(kota, locale, exports, options) {
    this.#kota = kota;
    this.#exports = exports;
    /** The id of the locale. */ this.locale = locale;
    const ends = [options.signal, kota.signal].filter((one) => one instanceof AbortSignal);
    this.#release = onAbort(ends, () => this.#end(ends.find((one) => one.aborted)?.reason));
    const id = this.#put(new TextEncoder().encode(locale + "\0"));
    const bounds = options.bounds ? this.#put(new Uint8Array(new Float64Array(options.bounds).buffer)) : 0;
    if (!exports.module_follow(id, bounds)) this.#failed = this.#error();
    for (const place of [id, bounds]) exports.module_free(place);
    this.#work();
  }

  // ---- questions -------------------------------------------------------------------------------

  /** Metres, of the locale's ground; NaN: none, or beyond the bounds. @param {number} x @param {number} y @returns {number} */
  height(x, y) {
    return this.#exports.module_height(x, y);
  }

  /** Of many points, x y each; NaN: none. @param {Float64Array} points @returns {Float64Array} */
  heights(points) {
    const count = points.length >> 1, place = this.#put(new Uint8Array(points.buffer,
      points.byteOffset, 16 * count)), out = this.#exports.module_alloc(8 * count || 1);
    const isAnswered = out && this.#exports.module_heights(place, count, out);
    const heights = isAnswered ? new Float64Array(this.#bytes(), out, count).slice() : null;
    this.#exports.module_free(place);
    this.#exports.module_free(out);
    if (!heights) throw this.#error();
    return heights;
  }

  /**
   * The first surface on a ray, as an item of the call. Status "absent": the answer depends on ground
   * beyond the bounds.
   * @param {number[]} origin @param {number[]} direction @param {number} [tMax] in lengths of it
   * @returns {RayItem}
   */
  ray([ox, oy, oz], [dx, dy, dz], tMax = Infinity) {
    const at = this.#answered(this.#exports.module_ray(ox, oy, oz, dx, dy, dz, tMax));
    const number = (/** @type {number} */ i) => this.#view.getFloat64(at + 8 * i, true);
    const status = RAY_STATUS[this.#whole(at + 96)];
    if (status !== "hit")
      return { status, ...(status === "invalid" ? { detail: this.#text(this.#exports.module_ray_fault()) } : {}),
        t: null, distance: null, ...NOWHERE };
    return { status, t: number(0), distance: number(1), ...this.#place(at) };
  }

  /**
   * The surfaces below and above a point, as an item of the call. Status "absent": beyond the bounds.
   * @param {number[]} point
   * @param {{reach_up?: number, max_distance?: number}} [options]
   * @returns {ContactItem}
   */
  contact([x, y, z], { reach_up = NaN, max_distance = NaN } = {}) {
    const at = this.#answered(this.#exports.module_contact(x, y, z, reach_up, max_distance));
    return { status: STATUS[this.#whole(at + 252)], floor: this.#surface(at),
      ceiling: this.#surface(at + 112) };
  }

  /**
   * A line of sight, as an item of the call.
   * @param {number[]} from @param {number[]} to @returns {SightItem}
   */
  los([x0, y0, z0], [x1, y1, z1]) {
    const at = this.#answered(this.#exports.module_sight(x0, y0, z0, x1, y1, z1));
    if (this.#whole(at + 36)) return { visible: null, fraction: null, point: null };
    if (this.#whole(at + 32)) return { visible: true, fraction: null, point: null };
    return { visible: false, fraction: this.#view.getFloat64(at, true), point: this.#vector(at + 8) };
  }

  /**
   * What a moved shape touches first, as an item of the call; places are of its middle.
   * @param {Shape} shape @param {number[]} from @param {number[]} to @returns {TouchItem}
   */
  sweep(shape, from, to) {
    const at = this.#asked("module_sweep", shape, [...from, ...to]);
    const status = RAY_STATUS[this.#whole(at + 96)], isHit = status === "hit";
    return { ...(status === "absent" ? { status } : {}), fraction: isHit ? this.#view.getFloat64(at, true) : null,
      starts_inside: this.#whole(at + 120) === 1, ...(isHit ? this.#place(at) : NOWHERE) };
  }

  /**
   * Where a shape that walks comes to, as an item of the call; with `claimed`, could it be there by now?
   * @param {MoveQuestion} question @returns {MovedItem}
   */
  move({ shape, from, velocity, dt, slope_max_deg = NaN, step_up = NaN, snap_down = NaN, claimed }) {
    const at = this.#asked("module_move", shape, [...from, ...velocity, dt, slope_max_deg, step_up, snap_down,
      ...(claimed ?? [NaN, NaN, NaN])]);
    const [hits, isGrounded, startsInside, isReachable, isAbsent] =
      [752, 756, 760, 764, 768].map((i) => this.#whole(at + i));
    return { ...(isAbsent ? { status: "absent" } : {}), to: isAbsent ? null : this.#vector(at), grounded: isGrounded === 1,
      floor: isGrounded ? { ...this.#place(at + 32), slope_deg: this.#view.getFloat64(at + 24, true) } : null,
      hits: Array.from({ length: hits }, (_, i) => this.#place(at + 152 + 120 * i)),
      starts_inside: startsInside === 1, ...(claimed ? { reachable: isReachable === 1 } : {}) };
  }

  // ---- its state -------------------------------------------------------------------------------

  /** Revision of the locale that answers are of; 0: there are none any more. @returns {number} */
  get revision() {
    return this.#exports.module_revision();
  }

  /** Of the poses of moved layers. @returns {number} */
  get transformSeq() {
    return this.#exports.module_transform_seq();
  }

  /** Seconds since the copy was known to be the daemon's ground. Grows while the feed is lost. */
  get staleness() {
    return (performance.now() - this.#heardMs) / 1000;
  }

  /**
   * Resolves when answers are of this revision or a later one.
   * @param {number} revision @param {{signal?: AbortSignal}} [options] @returns {Promise<void>}
   */
  async wait(revision, options = {}) {
    await this.#until(() => this.revision >= revision, options.signal);
  }

  /** Ends following; nothing can be asked any more. */
  close() {
    this.#end(new KotaError("The replica is closed."));
  }

  /** Resolves when it can be asked. @returns {Promise<Replica>} */
  async whole() {
    await this.#until(() => this.revision > 0, undefined);
    return this;
  }

  // ---- following -------------------------------------------------------------------------------

  /** @param {() => boolean} isDone @param {AbortSignal|undefined} signal @returns {Promise<void>} */
  #until(isDone, signal) {
    return new Promise((done, fail) => {
      let release = () => {};
      const look = () => {
        const reason = this.#failed ?? (signal?.aborted ? signal.reason : null);
        if (!reason && !isDone()) return;
        this.#watchers.delete(look);
        release();
        if (reason) fail(reason);
        else done();
      };
      this.#watchers.add(look);
      release = onAbort(signal ? [signal] : [], look);
      look();
    });
  }

  /** @param {Error} reason */
  #end(reason) {
    if (this.#failed) return;
    this.#failed = reason;
    this.#exports.module_close();
    this.#control.abort(reason);
    this.#release();
    this.#tell();
  }

  #tell() {
    for (const look of [...this.#watchers]) look();
  }

  /** After bytes were taken: what is known now, and what to fetch next. */
  #work() {
    if (this.#failed) return this.#tell();
    this.#texts.clear();
    const at = this.#exports.module_following();
    this.#bytes();
    const state = this.#whole(at + 32), isFed = this.#whole(at + 36);
    if (state === CURRENT && isFed) this.#heardMs = performance.now();
    if (state === GONE)
      return this.#end(this.#refusal ?? new NotFoundError(`The locale ${this.locale} was deleted.`,
        { status: 404 }));
    if (state === REFUSED) return this.#end(this.#refusal ?? this.#error(at + 40));
    while (this.#under < TOGETHER) {
      const need = this.#exports.module_next();
      if (!need) break;
      this.#bytes();
      const number = this.#whole(need), path = this.#string(need + 368);
      const isSamples = this.#whole(need + 8), accept = this.#string(need + 80);
      const tags = this.#string(need + 112);
      const headers = { ...(accept && { Accept: accept }), ...(tags && { "If-None-Match": tags }),
        ...(isSamples && { "Kota-Layout": "delta" }) };
      if (this.#whole(need + 4) === NEED_FEED) this.#follow(number, path, headers);
      else this.#fetch(number, path, headers);
    }
    this.#tell();
  }

  /**
   * One answer, or word that none came.
   * @param {number} number @param {string} path @param {Record<string, string>} headers
   */
  async #fetch(number, path, headers) {
    this.#under++;
    try {
      this.#give(number, await this.#kota.call("GET", path, { quiet: true, headers,
        signal: this.#control.signal }));
    } catch (error) {
      await this.#giveUp(number, error);
    } finally {
      this.#under--;
      this.#work();
    }
  }

  /**
   * @param {number} number
   * @param {{buffer: ArrayBuffer, headers: Headers, status: number}} answer
   */
  #give(number, { buffer, headers, status }) {
    if (this.#failed) return;
    if (buffer.byteLength > BODY_BYTES_MAX)
      throw new KotaError(`An answer of ${buffer.byteLength} bytes is too large for a replica, which ` +
        `takes ${BODY_BYTES_MAX}: give it smaller bounds.`, { status: 413 });
    const exports = this.#exports, body = this.#put(new Uint8Array(buffer));
    const [layout, etag] = ["kota-layout", "etag"].map((name) => headers.has(name) ?
      this.#put(new TextEncoder().encode(headers.get(name) + "\0")) : 0);
    exports.module_give(number, body, buffer.byteLength, layout, etag,
      Number(headers.get("kota-revision") ?? 0), status);
    for (const place of [body, layout, etag]) exports.module_free(place);
    this.#waitMs = PAUSE_MS;
  }

  /**
   * No answer came, or the feed has ended: it is asked again later. What the daemon refuses for good
   * is given as that, and may end the replica.
   * @param {number} number @param {unknown} error
   */
  async #giveUp(number, error) {
    const known = error instanceof KotaError ? error : null, status = known?.status ?? 0;
    if (this.#failed) return;
    if (known && status >= 400 && status < 500 && ![408, 425, 429].includes(status)) {
      this.#refusal = known;
      if (status === 413) this.#end(known);
      else this.#give(number, { buffer: new ArrayBuffer(0), headers: new Headers(), status });
      return;
    }
    await pause(Math.max(this.#waitMs, known?.retryAfterMs ?? 0), [this.#control.signal]).catch(() => {});
    this.#waitMs = Math.min(2 * this.#waitMs, PAUSE_MAX_MS);
    if (!this.#failed) this.#exports.module_give_up(number);
  }

  /**
   * The feed, until it ends.
   * @param {number} number @param {string} path @param {Record<string, string>} headers
   */
  async #follow(number, path, headers) {
    const kota = this.#kota, silence = new AbortController();
    const release = onAbort([this.#control.signal], () => silence.abort());
    /** @type {ReturnType<typeof setTimeout>|undefined} */ let timer;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), kota.silenceMs);
    };
    /** @type {unknown} */ let why = null;
    if (kota.token) headers.Authorization = `Bearer ${kota.token}`;
    heard();
    try {
      const response = await fetch(kota.url(path), { headers, signal: silence.signal, cache: "no-store" });
      if (!response.ok || !response.body) {
        const asked = { method: "GET", url: kota.url(path), headers, body: null, bytes: 0 };
        throw failure(asked, response, await response.arrayBuffer());
      }
      for await (const bytes of pieces(response.body)) {
        if (this.#failed) break;
        heard();
        this.#waitMs = PAUSE_MS;
        const place = this.#put(bytes);
        const isTaken = this.#exports.module_feed(number, place, bytes.length);
        this.#exports.module_free(place);
        if (!isTaken) break;
        this.#work();
      }
    } catch (error) {
      why = error;
    } finally {
      clearTimeout(timer);
      release();
      silence.abort();
    }
    await this.#giveUp(number, why);
    this.#work();
  }

  // ---- memory of the module --------------------------------------------------------------------

  /** The memory, which moves when it grows. @returns {ArrayBuffer} */
  #bytes() {
    const { buffer } = this.#exports.memory;
    if (buffer !== this.#buffer) {
      this.#buffer = buffer;
      this.#view = new DataView(buffer);
    }
    return buffer;
  }

  /** A copy of bytes, to be freed. @param {Uint8Array} bytes @returns {number} its place */
  #put(bytes) {
    const place = this.#exports.module_alloc(bytes.length || 1);
    if (!place) throw new KotaError(`There is no memory for ${bytes.length} bytes of a replica.`);
    new Uint8Array(this.#bytes(), place).set(bytes);
    return place;
  }

  /** @param {number} at */
  #whole(at) {
    return this.#view.getUint32(at, true);
  }

  /** @param {number} at @returns {[number, number, number]} */
  #vector(at) {
    const view = this.#view;
    return [view.getFloat64(at, true), view.getFloat64(at + 8, true), view.getFloat64(at + 16, true)];
  }

  /** The text that ends with a zero. @param {number} at */
  #string(at) {
    const bytes = new Uint8Array(this.#bytes(), at);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }

  /** The same, of a place that stays until the next change. @param {number} at @returns {string} */
  #text(at) {
    let text = this.#texts.get(at);
    if (text === undefined) this.#texts.set(at, text = this.#string(at));
    return text;
  }

  /** @param {number} at of a kota_ground_error; the last one without */
  #error(at = this.#exports.module_error()) {
    const code = this.#string(at);
    return this.#failed ?? new KotaError(this.#string(at + 168) || "The replica has no ground yet.",
      { problem: code ? { code } : null });
  }

  /** @param {number} at an answer's place, 0: none @returns {number} it */
  #answered(at) {
    if (!at || this.#failed) throw this.#error();
    return at;
  }

  /**
   * @param {string} name of the question @param {Shape} shape @param {number[]} numbers after it
   * @returns {number} where the answer is
   */
  #asked(name, shape, numbers) {
    const kind = SHAPES.findIndex((one) => one in shape);
    const sizes = [/** @type {any} */ (shape)[SHAPES[kind]]].flat();
    const asked = new Float64Array([...sizes, ...Array(4 - sizes.length).fill(0), 0, ...numbers]);
    new Uint32Array(asked.buffer)[8] = kind;
    const place = this.#put(new Uint8Array(asked.buffer)), at = this.#exports[name](place);
    this.#exports.module_free(place);
    return this.#answered(at);
  }

  /** @param {number} at of a kota_ground_hit */
  #place(at) {
    const isField = this.#whole(at + 100) === 1;
    return { point: this.#vector(at + 16), normal: this.#vector(at + 40), layer: this.#text(this.#whole(at + 88)),
      cell: isField ? [this.#whole(at + 104), this.#whole(at + 108)] : null,
      triangle: isField ? this.#whole(at + 112) : null,
      polygon: isField ? null : this.#whole(at + 116), ...this.#velocity(at + 64) };
  }

  /** @param {number} at of a kota_ground_surface */
  #surface(at) {
    const layer = this.#whole(at + 88), view = this.#view;
    if (!layer) return null;
    const isField = this.#whole(at + 92) === 1;
    return { point: this.#vector(at), distance: view.getFloat64(at + 24, true),
      normal: this.#vector(at + 32), slope_deg: view.getFloat64(at + 56, true),
      layer: this.#text(layer), cell: isField ? [this.#whole(at + 96), this.#whole(at + 100)] : null,
      polygon: isField ? null : this.#whole(at + 104), ...this.#velocity(at + 64) };
  }

  /** @param {number} at @returns {{velocity?: number[]}} of a layer that was moved */
  #velocity(at) {
    const velocity = this.#vector(at);
    return Number.isNaN(velocity[0]) ? {} : { velocity };
  }
}

/**
 * @param {Kota} kota @param {string} locale @param {ReplicaOptions} options
 * @returns {Promise<Replica>} that can be asked
 */
export async function openReplica(kota, locale, options) {
  return new Replica(kota, locale, await instance(kota), options).whole();
}
