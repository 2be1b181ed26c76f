/**
 * The calls of a kotad from JavaScript: browsers and Node 18 or later, no dependencies.
 *
 *   import { Kota } from "./kota.js";
 *   const kota = new Kota("http://127.0.0.1:7420");
 *   const { results } = await kota.height("hills", [[10, 20], [11, 20]]);
 *   const floor = (await kota.contact("hills", [[10, 20, 99]])).results[0].floor;
 *   for await (const event of kota.localeEvents("hills")) console.log(event.name, event.data);
 *
 * A method has the name of its operation in /openapi.json, which says what it asks and answers. Only
 * pages (`index`, `docs`, `web`) have none; `elevation` asks all calls of that shape. Methods resolve
 * to the answer's JSON; `call`, `get` and `post` to an Answer, which also has its request
 * (`curl`) and what came back (`text`, `headers`). Every failure is a KotaError, of a class that
 * says what kind: NotFoundError, ConflictError, BusyError, TimeoutError, …
 *
 * Binary batches (`heightBatch`, `contactBatch`, `rayBatch`, `containsBatch`) take a Float32Array or
 * Float64Array and give one of the same kind.
 *
 * A call is sent up to `triesMax` times: again after 429 and 503 when the daemon says when
 * (Retry-After), and when a connection was lost. All its tries and pauses together may take
 * `timeoutMs`. Each write has an idempotency key of its own, so that a repeat changes nothing. A
 * `signal` ends a call at once, with the signal's reason.
 *
 * @module kota
 */

/**
 * @typedef {import("./kota_types.js").Asked} Asked
 * @typedef {import("./kota_types.js").CallOptions} CallOptions
 * @typedef {import("./kota_types.js").ReadOptions} ReadOptions
 * @typedef {import("./kota_types.js").Pin} Pin
 * @typedef {import("./kota_types.js").Past} Past
 * @typedef {import("./kota_types.js").Revert} Revert
 * @typedef {import("./kota_types.js").Reverted} Reverted
 * @typedef {import("./kota_types.js").GroundOptions} GroundOptions
 * @typedef {import("./kota_types.js").WriteOptions} WriteOptions
 * @typedef {import("./kota_types.js").LayerOptions} LayerOptions
 * @typedef {import("./kota_types.js").Floats} Floats
 * @typedef {import("./kota_types.js").Interp} Interp
 * @typedef {import("./kota_types.js").Shape} Shape
 * @typedef {import("./kota_types.js").TouchItem} TouchItem
 * @typedef {import("./kota_types.js").MoveQuestion} MoveQuestion
 * @typedef {import("./kota_types.js").MovedItem} MovedItem
 * @typedef {import("./kota_types.js").Reach} Reach
 * @typedef {import("./kota_types.js").InWorld} InWorld
 * @typedef {import("./kota_types.js").FeedEvent} FeedEvent
 * @typedef {import("./kota_types.js").FeedOptions} FeedOptions
 * @typedef {import("./kota_types.js").LocaleFeedOptions} LocaleFeedOptions
 * @typedef {import("./kota_types.js").Manifest} Manifest
 * @typedef {import("./kota_types.js").Locale} Locale
 * @typedef {import("./kota_types.js").ListedLocale} ListedLocale
 * @typedef {import("./kota_types.js").PolygonsChanged} PolygonsChanged
 * @typedef {import("./kota_types.js").HeightItem} HeightItem
 * @typedef {import("./kota_types.js").Contact} Contact
 * @typedef {import("./kota_types.js").ContactItem} ContactItem
 * @typedef {import("./kota_types.js").Hinted} Hinted
 * @typedef {import("./kota_types.js").Ray} Ray
 * @typedef {import("./kota_types.js").RayItem} RayItem
 */
/** @template T @typedef {import("./kota_types.js").Results<T>} Results */

import { Answer, BadInputError, BusyError, ConnectionError, KotaError, ServerError,
  TimeoutError, asRead, asWrite, failure, place, query } from "./kota_answer.js";
import { feed, followUntil, onAbort, pause } from "./kota_feed.js";
import { tileHeights, tilesOf } from "./kota_maps.js";
import { openReplica } from "./kota_replica.js";

export { Answer, BadInputError, BusyError, ConflictError, ConnectionError, KotaError,
  NotFoundError, RightsError, ServerError, TimeoutError, TooLargeError, curlLine } from
  "./kota_answer.js";

/** Numbers of a tile's side: 256 cells and the samples at their far edges. */
export const TILE_SAMPLES = 257;

const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

export class Kota {
  /** @param {string} base "" for the daemon that served this page
   * @param {{token?: string, timeoutMs?: number, triesMax?: number, silenceMs?: number,
   *          signal?: AbortSignal}} [options]
   *   signal: ends all calls and feeds with its reason, and every later one
   */
  constructor(base = "", options = {}) {
    this.base = base.replace(/\/$/, "");
    /** @type {string} bearer token, "" for none */ this.token = options.token ?? "";
    this.timeoutMs = options.timeoutMs ?? 10000;
    this.triesMax = options.triesMax ?? 4;
    /** @type {AbortSignal|null} */ this.signal = options.signal ?? null;
    /** A feed on which nothing has come for so long, not even a comment, is opened again. */
    this.silenceMs = options.silenceMs ?? 45000;
    /** For a log: called with every answer. @type {(what: Answer|KotaError) => void} */
    this.onCall = () => {};
  }

  /** @param {string} path @returns {string} absolute */
  url(path) {
    const here = typeof location === "undefined" ? "http://127.0.0.1:7420" : location.origin;
    return (this.base || here) + path;
  }

  /** One call. `json` or `body` is sent; `signal` aborts it with the signal's reason.
   * @param {string} method @param {string} path with its query
   * @param {CallOptions} [options]
   * @returns {Promise<Answer>} */
  async call(method, path, options = {}) {
    const body = options.body;
    /** @type {Asked} */
    const asked = { method, url: this.url(path), headers: { ...options.headers }, body: null,
      bytes: 0 };
    if (options.json !== undefined) {
      asked.body = JSON.stringify(options.json);
      asked.headers["Content-Type"] = "application/json";
    } else if (options.type) {
      asked.headers["Content-Type"] = options.type;
    }
    if (typeof body === "string") asked.body = body;
    else if (body) asked.bytes = body.byteLength;
    const mayRepeat = method === "GET" || method === "HEAD" || options.repeatable ||
      "Idempotency-Key" in asked.headers;
    const limitMs = options.timeoutMs ?? this.timeoutMs, end = performance.now() + limitMs;
    for (let tries = 1; ; tries++) {
      try {
        const answer = await this.#once(asked, options, limitMs, end - performance.now());
        if (!options.quiet) this.onCall(answer);
        return answer;
      } catch (error) {
        const wait = this.#waitAfter(error, tries);
        if (wait === null || tries >= this.triesMax || !mayRepeat ||
            performance.now() + wait >= end) {
          if (error instanceof KotaError && !options.quiet) this.onCall(error);
          throw error;
        }
        await pause(wait, this.#ends(options.signal));
      }
    }
  }

  /** What ends a call or feed, of its own and for all. @param {AbortSignal|undefined} own */
  #ends(own) {
    return [own, this.signal].filter((one) => one instanceof AbortSignal);
  }

  /** Milliseconds until it may work again, or null. @param {unknown} error @param {number} tries */
  #waitAfter(error, tries) {
    if (error instanceof ConnectionError) return 100 * 2 ** (tries - 1);
    return error instanceof BusyError ? error.retryAfterMs ?? null : null;
  }

  /** @param {Asked} asked @param {CallOptions} options
   * @param {number} limitMs of the whole call @param {number} leftMs of it
   */
  async #once(asked, options, limitMs, leftMs) {
    const headers = { ...asked.headers };
    const limit = new AbortController(), stop = () => limit.abort();
    const start = performance.now();
    const timer = setTimeout(stop, leftMs);
    let response, buffer;
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const ends = this.#ends(options.signal), release = onAbort(ends, stop);
    try {
      response = await fetch(asked.url, { method: asked.method, headers, signal: limit.signal,
        body: /** @type {BodyInit|undefined} */ (asked.body ?? options.body), cache: "no-store" });
      buffer = await response.arrayBuffer();
    } catch (cause) {
      for (const end of ends) if (end.aborted) throw end.reason;
      const about = { asked, cause };
      if (limit.signal.aborted)
        throw new TimeoutError(`The daemon at ${this.url("")} did not answer within ` +
          `${limitMs / 1000} s.`, about);
      throw new ConnectionError(`The daemon at ${this.url("")} cannot be reached.`, about);
    } finally {
      clearTimeout(timer);
      release();
    }
    if (response.status >= 400) throw failure(asked, response, buffer);
    return new Answer(asked, response, buffer, performance.now() - start);
  }

  /** @param {string} path @param {CallOptions} [options] @returns {Promise<Answer>} */
  get(path, options) {
    return this.call("GET", path, options);
  }

  /** @param {string} path @param {any} json @param {CallOptions} [options] @returns {Promise<Answer>}
   */
  post(path, json, options) {
    return this.call("POST", path, { ...options, json });
  }

  /** @param {string} path @param {ReadOptions & Record<string, any>} options to the query */
  async #read(path, options) {
    const { call, question } = asRead(options);
    return (await this.get(path + query(question), call)).json;
  }

  /** An answer that is not JSON. @param {string} path
   * @param {ReadOptions & Record<string, any>} options @returns {Promise<Answer>} */
  #bytes(path, options) {
    const { call, question } = asRead(options);
    return this.get(path + query(question), call);
  }

  /** @param {string} path @param {ReadOptions & Record<string, any>} options to the body, live and at not */
  async #ask(path, options) {
    const { call, question: { live, at, ...question } } = asRead(options);
    return (await this.post(path + query({ live, at }), question, call)).json;
  }

  /** @param {string} method @param {string} path
   * @param {WriteOptions & Record<string, any>} options to the query
   * @param {CallOptions} [more] the body
   */
  async #write(method, path, options, more = {}) {
    const { call, question } = asWrite(options);
    return (await this.call(method, path + query(question), { ...call, ...more })).json;
  }

  // ---- the daemon ------------------------------------------------------------------------------

  /** @param {ReadOptions} [options] @returns {Promise<{status: "ok"}>} the process lives */
  livez(options = {}) {
    return this.#read("/livez", options);
  }

  /** @param {ReadOptions} [options] @returns {Promise<{status: "ok"}>} */
  healthz(options = {}) {
    return this.#read("/healthz", options);
  }

  /** @param {ReadOptions} [options] @returns {Promise<{status: "ok"}>} BusyError: not yet */
  readyz(options = {}) {
    return this.#read("/readyz", options);
  }

  /** @param {ReadOptions} [options] @returns {Promise<string>} Prometheus text */
  async metrics(options = {}) {
    return (await this.get("/metrics", asRead(options).call)).text;
  }

  /** The daemon's version and all its calls.
   * @param {ReadOptions} [options]
   * @returns {Promise<{version: string,
   *   calls: {name: string, method: string, path: string, summary: string}[]}>}
   */
  calls(options = {}) {
    return this.#read("/v1", options);
  }

  /** @param {ReadOptions} [options] @returns {Promise<Record<string, number>>} limits in force */
  limits(options = {}) {
    return this.#read("/v1/limits", options);
  }

  /** @param {ReadOptions & {after?: number, limit?: number}} [options]
   * @returns {Promise<any>} the last writes, in `entries`, and `next` */
  audit(options = {}) {
    return this.#read("/v1/audit", options);
  }

  /** @param {ReadOptions} [options] @returns {Promise<any>} counters, gauges, `builds` of meshes */
  stats(options = {}) {
    return this.#read("/v1/stats", options);
  }

  /** @param {ReadOptions} [options] @returns {Promise<any>} the contract, OpenAPI 3.1 */
  openapi(options = {}) {
    return this.#read("/openapi.json", options);
  }

  // ---- locales and layers ----------------------------------------------------------------------

  /** All locales by id, page by page; with `limit` one page, of those after the id `after`.
   * @param {ReadOptions & {layers?: boolean, limit?: number, after?: string}} [options]
   *   layers: each with its layers
   * @returns {Promise<ListedLocale[]>} */
  async locales(options = {}) {
    let page = await this.#read("/v1/locales", options);
    /** @type {ListedLocale[]} */
    const all = page.locales;
    while (page.next && options.limit === undefined) {
      page = (await this.get(page.next, asRead(options).call)).json;
      all.push(...page.locales);
    }
    return all;
  }

  /** @param {string} id @param {ReadOptions} [options] @returns {Promise<Locale>} */
  locale(id, options = {}) {
    return this.#read(place(id), options);
  }

  /** Makes a locale, or replaces its manifest.
   * @param {string} id @param {Manifest} manifest @param {WriteOptions} [options] @returns {Promise<Locale>} */
  putLocale(id, manifest, options = {}) {
    return this.#write("PUT", place(id), options, { json: manifest });
  }

  /** A fork of "arena", "arena@pin" or "arena@revision". @param {string} id @param {string} from
   * @param {import("./kota_types.js").ForkOptions} [options] @returns {Promise<Locale>} */
  postLocale(id, from, { title, placement, ...options } = {}) {
    return this.#write("POST", "/v1/locales", options, { json: { id, from, title, placement } });
  }

  /** @param {string} id @param {WriteOptions} [options] @returns {Promise<void>} */
  deleteLocale(id, options = {}) {
    return this.#write("DELETE", place(id), options);
  }

  /** The values of a locale that are kept under names. @param {string} id @param {ReadOptions} [options]
   * @returns {Promise<{locale: string, revision: number, pins: Pin[]}>} */
  pins(id, options = {}) {
    return this.#read(`${place(id)}/pins`, options);
  }

  /** @param {string} id @param {string} pin @param {ReadOptions} [options] @returns {Promise<Pin>} */
  pin(id, pin, options = {}) {
    return this.#read(`${place(id)}/pins/${encodeURIComponent(pin)}`, options);
  }

  /** Keeps the locale as it is under a name, for `at` of its reads.
   * @param {string} id @param {string} pin @param {WriteOptions} [options] @returns {Promise<Pin>} */
  putPin(id, pin, options = {}) {
    return this.#write("PUT", `${place(id)}/pins/${encodeURIComponent(pin)}`, options);
  }

  /** @param {string} id @param {string} pin @param {WriteOptions} [options] @returns {Promise<void>} */
  deletePin(id, pin, options = {}) {
    return this.#write("DELETE", `${place(id)}/pins/${encodeURIComponent(pin)}`, options);
  }

  /** Who made each revision. @param {string} id
   * @param {ReadOptions & {rect?: number[], layer?: string, author?: string, since?: number|string,
   *   before?: number, order?: "oldest"|"newest", limit?: number}} [options]
   * @returns {Promise<{locale: string, revision: number, history: Past[], next: string|null, held_since: number}>} */
  history(id, options = {}) {
    return this.#read(`${place(id)}/history`, options);
  }

  /** Takes earlier edits back. @param {string} id @param {Revert} revert @param {WriteOptions} [options]
   * @returns {Promise<Reverted>} */
  revert(id, revert, options = {}) {
    return this.#write("POST", `${place(id)}/revert`, options, { json: revert });
  }

  /** Brings the locale back to a pin, as its next revision.
   * @param {string} id @param {string} pin @param {WriteOptions} [options] @returns {Promise<Locale>} */
  restorePin(id, pin, options = {}) {
    return this.#write("POST", `${place(id)}/pins/${encodeURIComponent(pin)}/restore`, options);
  }

  /** A layer as a file.
   * @param {string} id @param {string} layer @param {ReadOptions & {format?: string}} [options]
   * @returns {Promise<Answer>} `buffer`, and its Content-Type */
  layer(id, layer, options = {}) {
    return this.#bytes(`${place(id)}/layers/${encodeURIComponent(layer)}`, options);
  }

  /** Uploads a layer. Options of the file (cols, rows, spacing, origin, role, up, …) are among the
   * others; arrays are written with commas. Of a mesh `frame` and `gravity` say where gravity runs:
   * a planet is { frame: "spherical" }.
   * @param {string} id @param {string} layer @param {ArrayBuffer|ArrayBufferView|string} body
   * @param {string} type image/png, application/vnd.kota.f32, model/obj, …
   * @param {WriteOptions & LayerOptions & Record<string, any>} [options]
   * @returns {Promise<Locale>} */
  putLayer(id, layer, body, type, options = {}) {
    return this.#write("PUT", `${place(id)}/layers/${encodeURIComponent(layer)}`, options,
      { body, type });
  }

  /** @param {string} id @param {string} layer @param {WriteOptions} [options] @returns {Promise<void>} */
  deleteLayer(id, layer, options = {}) {
    return this.#write("DELETE", `${place(id)}/layers/${encodeURIComponent(layer)}`, options);
  }

  /** Moves a mesh layer: the whole pose, translation in metres, and yaw about gravity in degrees or a
   * rotation, a unit quaternion x y z w.
   * @param {string} id @param {string} layer
   * @param {{translation: [number, number, number], yaw_deg?: number,
   *   rotation?: [number, number, number, number]}} pose
   * @param {WriteOptions} [options] @returns {Promise<any>}
   */
  putTransform(id, layer, pose, options = {}) {
    return this.#write("PUT", `${place(id)}/layers/${encodeURIComponent(layer)}/transform`, options,
      { json: pose });
  }

  /** Polygons of a mesh layer, some added and some removed in one revision. Numbers are those that
   * contacts and hits tell; a removed one is not given again.
   * @param {string} id @param {string} layer
   * @param {{polygons?: [number, number, number][][], remove?: number[]}} change
   * @param {WriteOptions} [options] @returns {Promise<PolygonsChanged>}
   */
  polygons(id, layer, change, options = {}) {
    return this.#write("POST", `${place(id)}/layers/${encodeURIComponent(layer)}/polygons`, options,
      { json: change });
  }

  /** @param {string} id @param {string} layer @param {ReadOptions} [options] @returns {Promise<any>} */
  layerStats(id, layer, options = {}) {
    return this.#read(`${place(id)}/layers/${encodeURIComponent(layer)}/stats`, options);
  }

  /** @param {string} id
   * @param {{rect: number[], op?: "set"|"add", heights: (number|null)[], layer?: string}|
   *         {brush: {shape: "crater"|"raise"|"flatten"|"smooth"|"relax", center: number[],
   *          radius: number, amount?: number, slope_deg?: number}, layer?: string}} edit
   * @param {WriteOptions} [options]
   * @returns {Promise<{locale: string, revision: number, rect: number[]|null}>} */
  edit(id, edit, options = {}) {
    return this.#write("POST", `${place(id)}/edits`, options, { json: edit });
  }

  /** The same with samples as bytes; NaN makes a hole.
   * @param {string} id @param {number[]} rect [c0, r0, cols, rows] @param {Float32Array} heights
   * @param {WriteOptions & {op?: "set"|"add", layer?: string}} [options]
   * @returns {Promise<{locale: string, revision: number, rect: number[]|null}>} */
  editSamples(id, rect, heights, options = {}) {
    return this.#write("POST", `${place(id)}/edits`, { ...options, rect },
      { body: heights, type: "application/vnd.kota.f32" });
  }

  /** What has changed since a revision; NotFoundError (410): too long ago.
   * @param {string} id @param {number} since @param {ReadOptions & {layer?: string}} [options]
   * @returns {Promise<{locale: string, revision: number, rects: number[][]}>} */
  diff(id, since, options = {}) {
    return this.#read(`${place(id)}/diff`, { ...options, since });
  }

  // ---- questions about ground ------------------------------------------------------------------

  /** @param {string} id @param {number} x @param {number} y
   * @param {GroundOptions & {interp?: Interp, fields?: string[], layer?: string}} [options]
   * @returns {Promise<{locale: string, revision: number} & HeightItem>} */
  getHeight(id, x, y, options = {}) {
    return this.#read(`${place(id)}/height`, { ...options, x, y });
  }

  /** @param {string} id @param {number[][]} points [x, y] each
   * @param {GroundOptions & {interp?: Interp, fields?: string[], layer?: string}} [options]
   * @returns {Promise<Results<HeightItem>>} */
  height(id, points, options = {}) {
    return this.#ask(`${place(id)}/height`, { ...options, points });
  }

  /** @param {string} id @param {number[][]} path corners
   * @param {GroundOptions & {samples?: number, step?: number, interp?: Interp, layer?: string}} options
   * @returns {Promise<Results<any>>} */
  profile(id, path, options) {
    return this.#ask(`${place(id)}/profile`, { ...options, path });
  }

  /** @param {string} id @param {number} x @param {number} y @param {number} z
   * @param {GroundOptions & Reach & {layer?: string}} [options]
   * @returns {Promise<{locale: string, revision: number} & ContactItem>} */
  getContact(id, x, y, z, options = {}) {
    return this.#read(`${place(id)}/contact`, { ...options, x, y, z });
  }

  /** Floors below and ceilings above.
   * @param {string} id @param {number[][]} points [x, y, z] each
   * @param {GroundOptions & Reach & {layer?: string}} [options]
   * @returns {Promise<Results<ContactItem>>} */
  contact(id, points, options = {}) {
    return this.#ask(`${place(id)}/contact`, { ...options, points });
  }

  /** Planes under footprints of three points and more.
   * @param {string} id @param {number[][][]} footprints
   * @param {GroundOptions & {reach_up?: number, max_distance?: number, layer?: string}} [options]
   * @returns {Promise<Results<any>>} */
  contactFootprints(id, footprints, options = {}) {
    return this.#ask(`${place(id)}/contact`, { ...options, footprints });
  }

  /** @param {string} id @param {number[]} origin @param {number[]} direction
   * @param {GroundOptions & {t_max?: number, mode?: "closest"|"any", layer?: string}} [options]
   * @returns {Promise<{locale: string, revision: number} & RayItem>} */
  getRay(id, origin, direction, options = {}) {
    return this.#read(`${place(id)}/ray`, { ...options, origin, direction });
  }

  /** With mode "all" each result has `hits`, all along the ray in order, up to hits_max of them.
   * @param {string} id @param {Ray[]} rays
   * @param {GroundOptions & {mode?: "closest"|"any"|"all", hits_max?: number, layer?: string,
   *   trace?: boolean}} [options]
   * @returns {Promise<Results<RayItem & {hits?: any[]}>>} */
  ray(id, rays, options = {}) {
    return this.#ask(`${place(id)}/ray`, { ...options, rays });
  }

  /** @param {string} id @param {number[]} from @param {number[]} to
   * @param {GroundOptions & {layer?: string}} [options]
   * @returns {Promise<any>} */
  getLos(id, from, to, options = {}) {
    return this.#read(`${place(id)}/los`, { ...options, from, to });
  }

  /** Lines of sight; with mode "all" each result has `hits`, all that is between.
   * @param {string} id @param {{from: number[], to: number[]}[]} segments
   * @param {GroundOptions & {mode?: "closest"|"all", hits_max?: number, layer?: string}} [options]
   * @returns {Promise<Results<any>>} */
  los(id, segments, options = {}) {
    return this.#ask(`${place(id)}/los`, { ...options, segments });
  }

  /** Does a light reach these points, and what is between?
   * @param {string} id @param {number[][]} points @param {{direction: number[]}|{position: number[]}}
   *   light @param {ReadOptions & {layer?: string}} [options]
   * @returns {Promise<Results<{lit: boolean, occluder: any}>>} */
  lit(id, points, light, options = {}) {
    return this.#ask(`${place(id)}/lit`, { ...options, points, light });
  }

  /** What moved shapes touch first; places are of their middles.
   * @param {string} id @param {{shape?: Shape, from: number[], to: number[]}[]} items
   * @param {ReadOptions & {layer?: string}} [options]
   * @returns {Promise<Results<TouchItem>>} */
  sweep(id, items, options = {}) {
    return this.#ask(`${place(id)}/sweep`, { ...options, items });
  }

  /** Where shapes that walk come to; with `claimed`, could they be there by now?
   * @param {string} id @param {MoveQuestion[]} items @param {ReadOptions & {layer?: string}} [options]
   * @returns {Promise<Results<MovedItem>>} */
  move(id, items, options = {}) {
    return this.#ask(`${place(id)}/move`, { ...options, items });
  }

  /** What a pixel shows; a camera of 60 degrees with z up unless `up` and `fov_y_deg` say otherwise.
   * @param {string} id @param {{eye: number[], target: number[], viewport: number[],
   *   pixel: number[], up?: number[], fov_y_deg?: number, tile_side?: number, tile?: string}} question
   * @param {GroundOptions & {layer?: string}} [options]
   * @returns {Promise<any>} */
  getPick(id, question, options = {}) {
    return this.#read(`${place(id)}/pick`, { ...options, ...question });
  }

  /** What a pixel shows, or several, or a rectangle or lasso of the screen.
   * @param {string} id @param {GroundOptions & {viewport: number[]} & Record<string, any>} question
   *   with camera, or inverse_view_projection and depth; with pixel, pixels, rectangle or lasso
   * @returns {Promise<any>} */
  pick(id, question) {
    return this.#ask(`${place(id)}/pick`, question);
  }

  /** @param {string} id @param {number[][]} points @param {GroundOptions & {layer?: string}} [options]
   * @returns {Promise<Results<{status: "inside"|"below"|"hole"|"outside", floor: boolean,
   *   ceiling: boolean}>>}
   */
  contains(id, points, options = {}) {
    return this.#ask(`${place(id)}/contains`, { ...options, points });
  }

  // ---- the whole world -------------------------------------------------------------------------

  /** Which locale holds each point of the world?
   * @param {number[][]} points @param {ReadOptions & {hints?: (string|null)[]}} [options]
   * @returns {Promise<{results: (Hinted & {locale: string|null, point: number[]|null, changed: boolean})[]}>}
   */
  locate(points, options = {}) {
    return this.#ask("/v1/locate", { ...options, points });
  }

  /** @param {number[][]} points of the world
   * @param {ReadOptions & Reach & {hints?: (string|null)[]}} [options]
   * @returns {Promise<{results: (ContactItem & InWorld & Hinted)[]}>} */
  worldContact(points, options = {}) {
    return this.#ask("/v1/contact", { ...options, points });
  }

  /** @param {number[][][]} footprints
   * @param {ReadOptions & {reach_up?: number, max_distance?: number, hints?: (string|null)[]}}
   *   [options]
   * @returns {Promise<{results: any[]}>} */
  worldContactFootprints(footprints, options = {}) {
    return this.#ask("/v1/contact", { ...options, footprints });
  }

  /** @param {Ray[]} rays @param {ReadOptions & {mode?: "closest"|"any"}} [options]
   * @returns {Promise<{results: (RayItem & InWorld & {crossed_count: number,
   *   crossed: {locale: string, t_enter: number, t_leave: number}[]})[]}>}
   */
  worldRay(rays, options = {}) {
    return this.#ask("/v1/ray", { ...options, rays });
  }

  /** pick over all locales. @param {Record<string, any>} question @returns {Promise<any>} */
  worldPick(question) {
    return this.#ask("/v1/pick", question);
  }

  /** Elevations of places on the Earth; `dataset` names locales. Asked by POST, which has room.
   * @param {ReadOptions & {locations?: string|number[][], path?: string|number[][],
   *         samples?: number, interpolation?: "nearest"|"bilinear"|"triangle",
   *         nodata_value?: number|null, format?: "json"|"geojson", dataset?: string}} question
   *         places are [lat, lng]
   * @returns {Promise<any>} */
  elevation(question) {
    const { dataset, ...rest } = question;
    const text = (/** @type {string|number[][]|undefined} */ places) =>
      Array.isArray(places) ? places.map((one) => one.join(",")).join("|") : places;
    return this.#ask("/v1/compat/elevation" + (dataset ? `/${encodeURIComponent(dataset)}` : ""),
      { ...rest, locations: text(rest.locations), path: text(rest.path) });
  }

  // ---- binary batches --------------------------------------------------------------------------

  /** @template {Floats} F
   * @param {string} path @param {F} numbers @param {number} each numbers of an item
   * @param {ReadOptions & Record<string, any>} options
   */
  async #batch(path, numbers, each, options) {
    const { call, question } = asRead(options);
    const type = numbers instanceof Float32Array ? "application/vnd.kota.f32" :
      "application/vnd.kota.f64";
    if (!IS_LITTLE_ENDIAN) throw new KotaError("Binary batches need a little-endian machine.");
    if (numbers.length === 0 || numbers.length % each !== 0)
      throw new BadInputError(`A batch of items of ${each} numbers cannot have ${numbers.length}.`);
    const answer = await this.call("POST", path + query(question), { ...call, body: numbers, type });
    return { answer, revision: Number(answer.headers.get("kota-revision")) };
  }

  /** @template {Floats} F
   * @param {string} path @param {F} numbers @param {number} each @param {number} out
   * @param {ReadOptions & Record<string, any>} options
   * @returns {Promise<{values: F, revision: number}>} */
  async #floatBatch(path, numbers, each, out, options) {
    const { answer, revision } = await this.#batch(path, numbers, each, options);
    const Kind = /** @type {any} */ (numbers.constructor);
    const wanted = numbers.length / each * out * numbers.BYTES_PER_ELEMENT;
    if (answer.buffer.byteLength !== wanted)
      throw new ServerError(`The answer to a batch has ${answer.buffer.byteLength} bytes, not ` +
        `${wanted}.`, { asked: answer.asked, status: answer.status });
    return { values: new Kind(answer.buffer), revision };
  }

  /** x y each -> height each (NaN: none); with status height and status each (0 ok, 2 hole,
   * 3 outside).
   * @template {Floats} F @param {string} id @param {F} points
   * @param {GroundOptions & {interp?: Interp, layer?: string, base?: number[], status?: boolean}}
   *   [options]
   */
  heightBatch(id, points, options = {}) {
    return this.#floatBatch(`${place(id)}/height`, points, 2, options.status ? 2 : 1, options);
  }

  /** x y z each -> floor_z nx ny nz ceiling_z (NaN: none) and status (0 ok, 1 below, 2 hole,
   * 3 outside, 4 too far) each.
   * @template {Floats} F @param {string} id @param {F} points
   * @param {GroundOptions & {reach_up?: number, max_distance?: number, layer?: string,
   *   base?: number[]}} [options]
   */
  contactBatch(id, points, options = {}) {
    return this.#floatBatch(`${place(id)}/contact`, points, 3, 6, options);
  }

  /** ox oy oz dx dy dz t_max each -> t nx ny nz each (t Infinity: a miss).
   * @template {Floats} F @param {string} id @param {F} rays
   * @param {GroundOptions & {mode?: "closest"|"any", layer?: string, base?: number[]}} [options]
   */
  rayBatch(id, rays, options = {}) {
    return this.#floatBatch(`${place(id)}/ray`, rays, 7, 4, options);
  }

  /** From and to (6 numbers) each -> fraction nx ny nz each (NaN: it touches nothing).
   * @template {Floats} F @param {string} id @param {F} ways @param {Shape} shape
   * @param {ReadOptions & {layer?: string, base?: number[]}} [options]
   */
  sweepBatch(id, ways, shape, options = {}) {
    return this.#floatBatch(`${place(id)}/sweep`, ways, 6, 4, { ...options, ...shape });
  }

  /** From and velocity (6 numbers) each -> to and grounded (0 or 1) each.
   * @template {Floats} F @param {string} id @param {F} moves @param {Shape} shape
   * @param {ReadOptions & {dt: number, slope_max_deg?: number, step_up?: number,
   *   snap_down?: number, layer?: string, base?: number[]}} options
   */
  moveBatch(id, moves, shape, options) {
    return this.#floatBatch(`${place(id)}/move`, moves, 6, 4, { ...options, ...shape });
  }

  /** x y z each -> a byte each: bit 0 inside, 1 floor, 2 ceiling, 3 hole, 4 outside.
   * @param {string} id @param {Floats} points
   * @param {GroundOptions & {layer?: string, base?: number[]}} [options]
   * @returns {Promise<{values: Uint8Array, revision: number}>} */
  async containsBatch(id, points, options = {}) {
    const { answer, revision } = await this.#batch(`${place(id)}/contains`, points, 3, options);
    return { values: new Uint8Array(answer.buffer), revision };
  }

  // ---- models and patches of sand --------------------------------------------------------------

  /** @param {ReadOptions} [options] @returns {Promise<any[]>} */
  async models(options = {}) {
    return (await this.#read("/v1/models", options)).models;
  }

  /** The file of a model, as it was put. @param {string} id @param {ReadOptions} [options]
   * @returns {Promise<Answer>} */
  model(id, options = {}) {
    return this.get(`/v1/models/${encodeURIComponent(id)}`, asRead(options).call);
  }

  /** @param {string} id @param {ArrayBuffer|ArrayBufferView|string} body a closed triangle mesh
   * @param {string} [type] @param {WriteOptions} [options] @returns {Promise<any>}
   */
  putModel(id, body, type = "model/obj", options = {}) {
    return this.#write("PUT", `/v1/models/${encodeURIComponent(id)}`, options, { body, type });
  }

  /** @param {string} id @param {WriteOptions} [options] @returns {Promise<void>} */
  deleteModel(id, options = {}) {
    return this.#write("DELETE", `/v1/models/${encodeURIComponent(id)}`, options);
  }

  /** @param {string} id @param {ReadOptions} [options] @returns {Promise<any[]>} */
  async patches(id, options = {}) {
    return (await this.#read(`${place(id)}/patches`, options)).patches;
  }

  /** @param {string} id @param {any} wanted @param {WriteOptions} [options] @returns {Promise<any>} */
  postPatch(id, wanted, options = {}) {
    return this.#write("POST", `${place(id)}/patches`, options, { json: wanted });
  }

  /** @param {string} id @param {number} n @param {ReadOptions} [options] @returns {Promise<any>} */
  patch(id, n, options = {}) {
    return this.#read(`${place(id)}/patches/${n}`, options);
  }

  /** Settles and writes a patch back, or throws it away. May take as long as the sand does.
   * @param {string} id @param {number} n @param {WriteOptions & {discard?: boolean}} [options]
   * @returns {Promise<any>} */
  deletePatch(id, n, options = {}) {
    return this.#write("DELETE", `${place(id)}/patches/${n}`, options);
  }

  /** @param {string} id @param {number} n @param {any} body @param {WriteOptions} [options]
   * @returns {Promise<any>} */
  postPatchBody(id, n, body, options = {}) {
    return this.#write("POST", `${place(id)}/patches/${n}/bodies`, options, { json: body });
  }

  /** @param {string} id @param {number} n @param {number} b @param {any} push velocity, impulse, …
   * @param {WriteOptions} [options] @returns {Promise<any>} */
  patchPatchBody(id, n, b, push, options = {}) {
    return this.#write("PATCH", `${place(id)}/patches/${n}/bodies/${b}`, options, { json: push });
  }

  /** @param {string} id @param {any} body that hits the ground @param {WriteOptions} [options] */
  postImpact(id, body, options = {}) {
    return this.#write("POST", `${place(id)}/impacts`, options, { json: body });
  }

  /** @param {string} id @param {number} n @param {CallOptions} [options] */
  impact(id, n, options = {}) {
    return this.#read(`${place(id)}/impacts/${n}`, options);
  }

  /** Removes a body for good; the others keep their numbers.
   * @param {string} id @param {number} n @param {number} b @param {WriteOptions} [options]
   * @returns {Promise<any>}
   */
  deletePatchBody(id, n, b, options = {}) {
    return this.#write("DELETE", `${place(id)}/patches/${n}/bodies/${b}`, options);
  }

  /** @param {string} id @param {number} n
   * @param {ReadOptions & {width?: number, height?: number}} [options]
   * @returns {Promise<ArrayBuffer>} a PNG */
  async patchView(id, n, options = {}) {
    return (await this.#bytes(`${place(id)}/patches/${n}/view.png`, options)).buffer;
  }

  /** What a camera sees, a PNG; waits for two minutes unless `timeoutMs` is given. @param {string} id
   * @param {ReadOptions & {camera: any, size?: [number, number], sun?: any, shadows?: boolean}} question
   * @returns {Promise<ArrayBuffer>} */
  async view(id, question) {
    const { call, question: { live, at, ...json } } = asRead(question);
    return (await this.post(`${place(id)}/view.png${query({ live, at })}`, json, { timeoutMs: 120000, ...call })).buffer;
  }

  /** The same as a link's question. @param {string} id @param {ReadOptions & {eye: any, target: any,
   * up?: any, fov_y_deg?: number, size?: any, sun?: any, shadows?: boolean}} options
   * @returns {Promise<ArrayBuffer>} */
  async getView(id, options) {
    return (await this.#bytes(`${place(id)}/view.png`, { timeoutMs: 120000, ...options })).buffer;
  }

  /** The surface of a patch as it is now, row by row from the smallest y, with its headers
   * (Kota-Rect, Kota-Grid, Kota-State). @param {string} id @param {number} n
   * @param {ReadOptions & {per_cell?: number}} [options] points a cell's side
   * @returns {Promise<Answer>} float32, little-endian */
  patchSurface(id, n, options = {}) {
    return this.#bytes(`${place(id)}/patches/${n}/surface.f32`, options);
  }

  /** The granules of a patch as they are now, 9 float32 each, with its headers (Kota-Step,
   * Kota-Granules, Kota-State). With `since`, a Kota-Step, only those that moved, each after its
   * number. @param {string} id @param {number} n @param {ReadOptions & {since?: number}} [options]
   * @returns {Promise<Answer>} */
  patchGranules(id, n, options = {}) {
    return this.#bytes(`${place(id)}/patches/${n}/granules`, options);
  }

  // ---- tiles -----------------------------------------------------------------------------------

  /** A block as a picture or as float32, with its headers (ETag, Kota-Scale, Kota-Offset).
   * @param {string} id @param {number} level @param {number} column @param {number} row
   * @param {ReadOptions & {format?: "png16"|"terrarium"|"f32", kind?: "sampled"|"min"|"max",
   *         layer?: string}} [options]
   * @returns {Promise<Answer>} */
  tile(id, level, column, row, options = {}) {
    return this.#bytes(`${place(id)}/tiles/${level}/${column}/${row}`, options);
  }

  /** A rectangle of a heightfield's samples, or every step-th of them, row by row from the smallest
   * y unless rows is north; with its headers (ETag, Kota-Rect, Kota-Scale, Kota-Offset).
   * @param {string} id @param {string} layer
   * @param {ReadOptions & {rect?: [c0: number, r0: number, cols: number, rows: number],
   *         step?: number, rows?: "south"|"north", format?: "f32"|"f64"|"r16"|"json"}} [options]
   * @returns {Promise<Answer>} float32, little-endian, unless format is another */
  samples(id, layer, options = {}) {
    return this.#bytes(`${place(id)}/layers/${encodeURIComponent(layer)}/samples`, options);
  }

  /** A heightfield as a cloud-optimised GeoTIFF.
   * @param {string} id @param {string} layer
   * @param {ReadOptions & {range?: [first: number, last: number], v?: number}} [options]
   *   range: of bytes, both inclusive; v: a revision, ConflictError once it is no longer current
   * @returns {Promise<Answer>} `buffer` */
  layerTif(id, layer, options = {}) {
    const { range, ...others } = options, { call, question } = asRead(others);
    if (range) call.headers = { ...call.headers, Range: `bytes=${range[0]}-${range[1]}` };
    return this.get(`${place(id)}/layers/${encodeURIComponent(layer)}.tif${query(question)}`, call);
  }

  /** TileJSON of the locale's ground, for maps.
   * @param {string} id
   * @param {ReadOptions & {encoding?: "terrarium"|"mapbox", style?: "dem"|"relief",
   *         void?: "edge"|"zero"|"alpha", sampling?: "point"|"mean", layer?: string, v?: number}}
   *   [options]
   * @returns {Promise<any>} */
  demJson(id, options = {}) {
    return this.#read(`${place(id)}/dem.json`, options);
  }

  /** A map's tile of heights (XYZ, the first row in the north).
   * @param {string} id @param {number} z @param {number} x
   * @param {string} y with its form: "5.png", "5@2x.png", "5.f32", "5.tif"
   * @param {ReadOptions & Record<string, any>} [options] as demJson
   * @returns {Promise<Answer>} */
  dem(id, z, x, y, options = {}) {
    return this.#bytes(`${place(id)}/dem/${z}/${x}/${y}`, options);
  }

  /** A globe's tile of heights: values on the tile's corners and between, the first row in the north.
   * @param {string} id @param {number} z @param {number} x
   * @param {string} y with its form: "5.f32"
   * @param {ReadOptions & {size?: number} & Record<string, any>} [options] as demJson
   * @returns {Promise<Answer>} */
  demGeodetic(id, z, x, y, options = {}) {
    return this.#bytes(`${place(id)}/dem/geodetic/${z}/${x}/${y}`, options);
  }

  /** 3D Tiles 1.1 of the mesh layers; viewers ask it by themselves.
   * @param {string} id @param {ReadOptions} [options] @returns {Promise<any>}
   */
  tileset(id, options = {}) {
    return this.#read(`${place(id)}/3dtiles/tileset.json`, options);
  }

  /** A layer as binary glTF: a mesh without its pose, or a heightfield.
   * @param {string} id @param {string} layer
   * @param {ReadOptions & {step?: number, v?: number}} [options]
   * @returns {Promise<Answer>} `buffer` */
  layerGlb(id, layer, options = {}) {
    return this.#bytes(`${place(id)}/3dtiles/${encodeURIComponent(layer)}.glb`, options);
  }

  /** What readers of quantized-mesh ask first; Cesium does by itself, of the folder's address.
   * @param {string} id @param {ReadOptions & {layer?: string}} [options]
   * @returns {Promise<any>} */
  terrainLayer(id, options = {}) {
    return this.#read(`${place(id)}/terrain/layer.json`, options);
  }

  /** A globe's tile as a quantized mesh, y from the south.
   * @param {string} id @param {number} z @param {number} x @param {number} y
   * @param {ReadOptions & {extensions?: string, layer?: string, v?: number}} [options]
   * @returns {Promise<Answer>} */
  terrain(id, z, x, y, options = {}) {
    return this.#bytes(`${place(id)}/terrain/${z}/${x}/${y}.terrain`, options);
  }

  /** The tiles of a map (XYZ) that a change has touched, for `map.refreshTiles` and the like.
   * @param {FeedEvent|{locale: string, bounds: {min: number[], max: number[]}|null}} event of
   *   localeEvents or events, or its data; a `resync` touches all, a `patch` none
   * @param {number} zMin @param {number} zMax
   * @returns {Promise<{z: number, x: number, y: number}[]>} */
  async tilesOf(event, zMin, zMax) {
    const data = "data" in event ? event.data : event;
    if ("patch" in data) return []; // of granules: the edit of what they leave comes by itself
    return tilesOf(await this.locale(data.locale), data.bounds ?? null, zMin, zMax);
  }

  /** One block of 257 x 257 samples as float32, row by row from the smallest y; NaN where there is
   * no ground. `tag` of an earlier tile asks only whether it has changed: `heights` is then null.
   * @param {string} locale @param {number} level @param {number} column @param {number} row
   * @param {{layer?: string, kind?: "sampled"|"min"|"max", tag?: string, signal?: AbortSignal}} [o]
   * @returns {Promise<{heights: Float32Array|null, tag: string, bytes: number}|null>} null beyond
   *   the field
   */
  tileHeights(locale, level, column, row, o = {}) {
    return tileHeights(this, `/v1/locales/${locale}/tiles/${level}/${column}/${row}`, o);
  }

  // ---- ground in this process --------------------------------------------------------------------

  /** A copy of a locale's ground that follows the daemon and answers without a round trip, with the
   * same bits: `ground.height(x, y)`. Resolves when it can be asked. Needs kota_ground.wasm, which a
   * daemon has that was built with clang; NotFoundError without.
   * @param {string} id
   * @param {import("./kota_types.js").ReplicaOptions} [options] bounds: only this rectangle of
   *   heightfields, and out to whole tiles
   * @returns {Promise<import("./kota_replica.js").Replica>} */
  replica(id, options = {}) {
    return openReplica(this, id, options);
  }

  // ---- feeds -----------------------------------------------------------------------------------

  /** Follows a change feed until it is closed, over lost connections: it comes back with the last
   * id, and the daemon sends what was missed or `resync`.
   * @param {string} path /v1/events, /v1/locales/{locale}/events, …/patches/{patch}/events
   * @param {{onEvent: (name: string, data: any, id: string) => void,
   *          onState?: (state: "open"|"lost"|"closed", why: string) => void,
   *          lastEventId?: string, signal?: AbortSignal}} calls
   * @returns {{close: () => void}} */
  follow(path, calls) {
    const control = new AbortController();
    const close = () => control.abort();
    const release = onAbort(this.#ends(calls.signal), close);
    followUntil(this, path, calls, control.signal).then(
      () => calls.onState?.("closed", ""),
      (error) => calls.onState?.("closed", control.signal.aborted ? "" : error.message))
      .finally(release);
    return { close };
  }

  /** The changes of all locales, one after the other, over lost connections, until the loop is left
   * or the signal aborts. Throws what the daemon refuses.
   * @param {FeedOptions & {samples?: "f32"}} [options]
   * @returns {AsyncGenerator<FeedEvent, void, void>} */
  events(options = {}) {
    const { samples, ...rest } = options;
    return feed(this, `/v1/events${query({ samples })}`, rest, this.#ends(options.signal));
  }

  /** The changes of one locale: those that meet `bounds`, of one `layer`; with samples "f32" or as
   * binary frames `data.samples` has the changed samples (Float32Array, null: ask `samples`).
   * Frames begin with `hello`, and have `data.polygons` as bytes (proto/feed.md).
   * @param {string} id @param {LocaleFeedOptions} [options]
   * @returns {AsyncGenerator<FeedEvent, void, void>} */
  localeEvents(id, options = {}) {
    const { bounds, layer, samples, binary, ...rest } = options;
    return feed(this, `${place(id)}/events${query({ bounds, layer, samples })}`,
      { ...rest, binary: binary ? id : undefined }, this.#ends(options.signal));
  }

  /** States of a patch and poses of its bodies; with `granules`, values a second, those that moved:
   * `data.granules` is {count, step, numbers, values}. @param {string} id @param {number} n
   * @param {FeedOptions & {granules?: number}} [options] @returns {AsyncGenerator<FeedEvent, void, void>} */
  patchEvents(id, n, options = {}) {
    const { granules, ...rest } = options;
    return feed(this, `${place(id)}/patches/${n}/events${query({ granules })}`, rest, this.#ends(options.signal));
  }
  /** Standing questions about a locale; `watchEvents` has their answers.
   * @param {string} id @param {any} questions bodies of calls, each with `ids`
   * @returns {Promise<any>} */
  postWatch(id, questions) {
    return this.#ask(`${place(id)}/watches`, questions);
  }

  /** @param {string} watch @param {any} change with add, remove @returns {Promise<any>} */
  patchWatch(watch, change) {
    return this.#write("PATCH", `/v1/watches/${watch}`, {}, { json: change });
  }

  /** @param {string} watch @returns {Promise<any>} */
  deleteWatch(watch) {
    return this.#write("DELETE", `/v1/watches/${watch}`, {});
  }

  /** All answers of a watch, then those that change. @param {string} watch
   * @param {FeedOptions} [options] @returns {AsyncGenerator<FeedEvent, void, void>} */
  watchEvents(watch, options = {}) {
    return feed(this, `/v1/watches/${watch}`, options, this.#ends(options.signal));
  }
}
