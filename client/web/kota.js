/**
 * The calls of a kotad from JavaScript: browsers and Node 18 or later, no dependencies.
 *
 *   import { Kota } from "./kota.js";
 *   const kota = new Kota("http://127.0.0.1:7420");
 *   const answer = await kota.post("/v1/locales/hills/height", { points: [[10, 20]] });
 *   answer.json.results[0].height
 *
 * A call resolves to an Answer, which also tells how it was asked (`curl`) and what came back
 * (`text`); every failure is a KotaError that says in words what went wrong. Nothing is retried but
 * 503 with Retry-After on reads, up to `retries` times.
 *
 * @module kota
 */

/** Numbers of a tile's side: 256 cells and the samples at their far edges. */
export const TILE_SAMPLES = 257;

/**
 * @typedef {object} Asked
 * @property {string} method
 * @property {string} url       absolute
 * @property {object} headers   without the token
 * @property {string|null} body text, or null when it is binary or absent
 * @property {number} bytes     of the body
 */

/** An answer with a status below 400. */
export class Answer {
  /**
   * @param {Asked} asked @param {Response} response
   * @param {ArrayBuffer} buffer @param {number} ms
   */
  constructor(asked, response, buffer, ms) {
    this.asked = asked;
    /** @type {number} */ this.status = response.status;
    /** @type {Headers} */ this.headers = response.headers;
    /** @type {ArrayBuffer} */ this.buffer = buffer;
    /** @type {number} milliseconds until the last byte */ this.ms = ms;
  }

  /** @returns {string} the body as text */
  get text() {
    return new TextDecoder().decode(this.buffer);
  }

  /** @returns {any} the body as JSON, null when there is none */
  get json() {
    return this.buffer.byteLength ? JSON.parse(this.text) : null;
  }

  /** @returns {string} the same request for a shell */
  get curl() {
    return curlLine(this.asked);
  }
}

/** What went wrong, in words. `status` is 0 when there was no answer at all. */
export class KotaError extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, problem?: any, asked?: Asked, text?: string, cause?: any}} about
   */
  constructor(message, about = {}) {
    super(message, { cause: about.cause });
    this.name = "KotaError";
    /** @type {number} */ this.status = about.status ?? 0;
    /** RFC 9457 members of the answer: title, detail, errors, limit, got */
    this.problem = about.problem ?? null;
    this.asked = about.asked ?? null;
    this.text = about.text ?? "";
  }

  get curl() {
    return this.asked ? curlLine(this.asked) : "";
  }
}

function quoted(word) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A line for a shell that asks the same. @param {Asked} asked @returns {string} */
export function curlLine(asked) {
  const words = ["curl"];
  if (asked.method !== "GET" && !(asked.method === "POST" && asked.body !== null))
    words.push("-X", asked.method);
  for (const [name, value] of Object.entries(asked.headers)) words.push("-H", `${name}: ${value}`);
  if (asked.body !== null) words.push("-d", asked.body);
  else if (asked.bytes) words.push("--data-binary", "@BODY");
  words.push(asked.url);
  return words.map(quoted).join(" ");
}

function messageOf(status, problem, text) {
  if (!problem) return `The daemon answered ${status}: ${text.slice(0, 200) || "nothing"}`;
  const places = (problem.errors ?? []).map((e) => `${e.pointer}: ${e.detail}`);
  const bound = problem.limit === undefined ? "" : ` (limit ${problem.limit}, got ${problem.got})`;
  return [problem.detail || problem.title || `status ${status}`, ...places].join("; ") + bound;
}

function pause(ms, signal) {
  return new Promise((done, fail) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      fail(signal.reason);
    }, { once: true });
  });
}

export class Kota {
  /**
   * @param {string} base "" for the daemon that served this page
   * @param {{token?: string, timeoutMs?: number, retries?: number, signal?: AbortSignal}} [options]
   *   signal: ends all calls and feeds with its reason, and every later one
   */
  constructor(base = "", options = {}) {
    this.base = base.replace(/\/$/, "");
    /** @type {string} bearer token, "" for none */ this.token = options.token ?? "";
    this.timeoutMs = options.timeoutMs ?? 30000;
    this.retries = options.retries ?? 2;
    this.signal = options.signal ?? null;
    /** For a log: called with every answer. @type {(what: Answer|KotaError) => void} */
    this.onCall = () => {};
  }

  /** @param {string} path @returns {string} absolute */
  url(path) {
    const here = typeof location === "undefined" ? "http://127.0.0.1:7420" : location.origin;
    return (this.base || here) + path;
  }

  /**
   * One call. `json` or `body` (bytes) is sent; `signal` aborts it with the signal's reason.
   * @param {string} method @param {string} path with its query
   * @param {{json?: any, body?: ArrayBuffer|ArrayBufferView, type?: string, headers?: object,
   *          signal?: AbortSignal, quiet?: boolean, timeoutMs?: number}} [options] quiet: not told
   *          to onCall
   * @returns {Promise<Answer>}
   */
  async call(method, path, options = {}) {
    const asked = { method, url: this.url(path), headers: { ...options.headers }, body: null,
      bytes: options.body?.byteLength ?? 0 };
    if (options.json !== undefined) {
      asked.body = JSON.stringify(options.json);
      asked.headers["Content-Type"] = "application/json";
    } else if (options.type) {
      asked.headers["Content-Type"] = options.type;
    }
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await this.#once(asked, options);
        if (!options.quiet) this.onCall(answer);
        return answer;
      } catch (error) {
        const wait = error.retryAfterMs;
        if (wait === undefined || attempt >= this.retries || method !== "GET") {
          if (error instanceof KotaError && !options.quiet) this.onCall(error);
          throw error;
        }
        await pause(wait, options.signal);
      }
    }
  }

  async #once(asked, options) {
    const headers = { ...asked.headers };
    const limitMs = options.timeoutMs ?? this.timeoutMs;
    const limit = AbortSignal.timeout(limitMs);
    const ends = [options.signal, this.signal].filter(Boolean);
    const signal = anyOf(...ends, limit);
    const start = performance.now();
    let response, buffer;
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    try {
      response = await fetch(asked.url, { method: asked.method, headers, signal,
        body: asked.body ?? options.body, cache: "no-store" });
      buffer = await response.arrayBuffer();
    } catch (cause) {
      for (const end of ends) if (end.aborted) throw end.reason;
      const why = limit.aborted ? `did not answer within ${limitMs / 1000} s` :
        "cannot be reached";
      throw new KotaError(`The daemon at ${this.url("")} ${why}.`, { asked, cause });
    }
    if (response.status >= 400) throw failure(asked, response, buffer);
    return new Answer(asked, response, buffer, performance.now() - start);
  }

  /** @param {string} path @param {object} [options] @returns {Promise<Answer>} */
  get(path, options) {
    return this.call("GET", path, options);
  }

  /** @param {string} path @param {any} json @param {object} [options] @returns {Promise<Answer>} */
  post(path, json, options) {
    return this.call("POST", path, { ...options, json });
  }

  /**
   * One block of 257 x 257 samples as float32, row by row from the smallest y; NaN where there is
   * no ground. `tag` of an earlier tile asks only whether it has changed: `heights` is then null.
   * @param {string} locale @param {number} level @param {number} column @param {number} row
   * @param {{layer?: string, kind?: "sampled"|"min"|"max", tag?: string, signal?: AbortSignal}} [o]
   * @returns {Promise<{heights: Float32Array|null, tag: string, bytes: number}|null>} null beyond
   *   the field
   */
  async tile(locale, level, column, row, o = {}) {
    const query = new URLSearchParams({ format: "f32" });
    if (o.layer) query.set("layer", o.layer);
    if (o.kind) query.set("kind", o.kind);
    const path = `/v1/locales/${locale}/tiles/${level}/${column}/${row}?${query}`;
    try {
      const answer = await this.get(path, { signal: o.signal, quiet: true,
        headers: o.tag ? { "If-None-Match": o.tag } : {} });
      const tag = answer.headers.get("etag") ?? "";
      const bytes = answer.buffer.byteLength;
      if (answer.status === 304) return { heights: null, tag, bytes: 0 };
      return { heights: new Float32Array(answer.buffer), tag, bytes };
    } catch (error) {
      if (error.status === 404) return null;
      throw error;
    }
  }

  /**
   * Follows a change feed until it is closed, over lost connections: it comes back with the last
   * id, and the daemon sends what was missed or `resync`.
   * @param {string} path /v1/events, /v1/locales/{id}/events, …/patches/{n}/events
   * @param {{onEvent: (name: string, data: any, id: string) => void,
   *          onState?: (state: "open"|"lost"|"closed", why: string) => void,
   *          lastEventId?: string}} calls
   * @returns {{close: () => void}}
   */
  follow(path, calls) {
    const control = new AbortController();
    const signal = this.signal ? anyOf(control.signal, this.signal) : control.signal;
    this.#followUntil(path, calls, signal).then(
      () => calls.onState?.("closed", ""),
      (error) => calls.onState?.("closed", signal.aborted ? "" : error.message));
    return { close: () => control.abort() };
  }

  async #followUntil(path, calls, signal) {
    const headers = { Accept: "text/event-stream" };
    let last = calls.lastEventId ?? "", waitMs = 500;
    while (!signal.aborted) {
      let why = "the connection has ended";
      try {
        if (this.token) headers.Authorization = `Bearer ${this.token}`;
        if (last) headers["Last-Event-ID"] = last;
        const response = await fetch(this.url(path), { headers, signal, cache: "no-store" });
        if (!response.ok) {
          const buffer = await response.arrayBuffer();
          const asked = { method: "GET", url: this.url(path), headers, body: null, bytes: 0 };
          throw failure(asked, response, buffer);
        }
        calls.onState?.("open", "");
        waitMs = 500;
        for await (const event of events(response.body)) {
          if (event.id) last = event.id;
          calls.onEvent(event.name, event.data, event.id);
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error.status && error.status !== 503) throw error;
        why = error.message;
      }
      calls.onState?.("lost", why);
      await pause(waitMs, signal).catch(() => {});
      waitMs = Math.min(2 * waitMs, 10000);
    }
  }
}

function anyOf(...signals) {
  if (signals.length === 1) return signals[0];
  const control = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) control.abort(signal.reason);
    signal.addEventListener("abort", () => control.abort(signal.reason), { once: true });
  }
  return control.signal;
}

function failure(asked, response, buffer) {
  const text = new TextDecoder().decode(buffer);
  let problem = null;
  try {
    problem = JSON.parse(text);
  } catch {
    // an intermediary's page, not the daemon's
  }
  const error = new KotaError(messageOf(response.status, problem, text),
    { status: response.status, problem, asked, text });
  const after = Number(response.headers.get("retry-after"));
  if (response.status === 503 && after > 0) error.retryAfterMs = 1000 * Math.min(after, 10);
  return error;
}

/** Events of a text/event-stream body: {name, data (JSON where it is), id}. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", event = { name: "message", data: [], id: "" };
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (event.data.length) yield { ...event, data: parsed(event.data.join("\n")) };
          event = { name: "message", data: [], id: "" };
        } else if (line.startsWith("event:")) {
          event.name = line.slice(6).trim();
        } else if (line.startsWith("data:")) {
          event.data.push(line.slice(5).trim());
        } else if (line.startsWith("id:")) {
          event.id = line.slice(3).trim();
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
