/**
 * What a call of kota.js brought: an answer, or an error of its kind with the daemon's own words;
 * and the same request as a line for a shell. kota.js hands all of it on. And what calls have in
 * common: queries, keys.
 *
 * @module kota_answer
 */

/** @typedef {import("./kota_types.js").Asked} Asked */

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

  /** @returns {number} milliseconds that the daemon took (Server-Timing); NaN without the header */
  get serverMs() {
    return Number(/total;dur=([0-9.]+)/.exec(this.headers.get("server-timing") ?? "")?.[1]);
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
   * @param {{status?: number, problem?: any, asked?: Asked|null, text?: string, cause?: unknown,
   *          retryAfterMs?: number}} about
   */
  constructor(message, about = {}) {
    super(message);
    if (about.cause !== undefined) this.cause = about.cause;
    this.name = new.target.name;
    /** @type {number} */ this.status = about.status ?? 0;
    /** Stable, for a program: "layer_unknown"; "" without one @type {string} */
    this.code = about.problem?.code ?? "";
    /** RFC 9457 members of the answer: code, title, detail, errors, limit, got @type {any} */
    this.problem = about.problem ?? null;
    /** @type {Asked|null} */ this.asked = about.asked ?? null;
    this.text = about.text ?? "";
    /** when to ask again, as the daemon says @type {number|undefined} */
    this.retryAfterMs = about.retryAfterMs;
  }

  get curl() {
    return this.asked ? curlLine(this.asked) : "";
  }
}

/** No connection, or it was lost on the way: the daemon may have done what was asked. */
export class ConnectionError extends KotaError {}
/** No answer within the time: the daemon may have done what was asked. */
export class TimeoutError extends KotaError {}
/** What was sent is wrong: 400, 405, 411, 415, 417, 422. */
export class BadInputError extends KotaError {}
/** No token, or one without the right: 401, 403. */
export class RightsError extends KotaError {}
/** No such locale, layer, model, …: 404; no longer available: 410. */
export class NotFoundError extends KotaError {}
/** It is not as If-Match or If-None-Match say, or in the way of something else: 409, 412. */
export class ConflictError extends KotaError {}
/** Over a limit: 413, 414, 431; `problem.limit` and `problem.got`. */
export class TooLargeError extends KotaError {}
/** Later, perhaps: 429, 503; `retryAfterMs`. */
export class BusyError extends KotaError {}
/** All else: 500, 501, 507, and what is no answer of a kotad. */
export class ServerError extends KotaError {}

/** @param {number} status @returns {typeof KotaError} */
function errorOf(status) {
  if (status === 401 || status === 403) return RightsError;
  if (status === 404 || status === 410) return NotFoundError;
  if (status === 409 || status === 412) return ConflictError;
  if (status === 413 || status === 414 || status === 431) return TooLargeError;
  if (status === 429 || status === 503) return BusyError;
  return status < 500 ? BadInputError : ServerError;
}

/** @param {string} word */
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

/** @param {number} status @param {any} problem @param {string} text */
function messageOf(status, problem, text) {
  if (typeof problem?.error === "string") return problem.error; // /v1/compat
  if (!problem) return `The daemon answered ${status}: ${text.slice(0, 200) || "nothing"}`;
  const places = (problem.errors ?? []).map((/** @type {any} */ e) => `${e.pointer}: ${e.detail}`);
  const bound = problem.limit === undefined ? "" : ` (limit ${problem.limit}, got ${problem.got})`;
  return [problem.detail || problem.title || `status ${status}`, ...places].join("; ") + bound;
}

/** @param {string|null} text Retry-After: seconds, or a date @returns {number|undefined} */
function retryMs(text) {
  if (!text) return undefined;
  const ms = /^\d+$/.test(text) ? 1000 * Number(text) : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(ms, 0) : undefined;
}

/**
 * The error of an answer of 400 or more.
 * @param {Asked} asked @param {Response} response @param {ArrayBuffer} buffer
 */
export function failure(asked, response, buffer) {
  const text = new TextDecoder().decode(buffer);
  let problem = null;
  try {
    problem = JSON.parse(text);
  } catch {
    // an intermediary's page, not the daemon's
  }
  return new (errorOf(response.status))(messageOf(response.status, problem, text),
    { status: response.status, problem, asked, text,
      retryAfterMs: retryMs(response.headers.get("retry-after")) });
}

// ---- what a request is made of ---------------------------------------------------------------

/** "?a=1&b=2,3" of what is given. @param {Record<string, any>} values */
export function query(values) {
  const items = Object.entries(values).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(items.map(([name, value]) => [name, String(value)])).toString();
  return text && `?${text}`;
}

/** @param {string} id */
export function place(id) {
  return `/v1/locales/${encodeURIComponent(id)}`;
}

/** Splits options of a read from what belongs into its question. @param {any} options */
export function asRead(options) {
  const { signal, timeoutMs, quiet, minRevision, ...question } = options;
  /** @type {import("./kota_types.js").CallOptions} */
  const call = { signal, timeoutMs, quiet, repeatable: true };
  if (minRevision !== undefined) call.headers = { "Kota-Min-Revision": String(minRevision) };
  return { call, question };
}

/** @param {import("./kota_types.js").WriteOptions & Record<string, any>} options */
export function asWrite(options) {
  const { signal, timeoutMs, quiet, ifMatch, ifNew, idempotencyKey, ...question } = options;
  /** @type {Record<string, string>} */
  const headers = {};
  if (ifMatch !== undefined) headers["If-Match"] = ifMatch === "*" ? "*" : `"${ifMatch}"`;
  if (ifNew) headers["If-None-Match"] = "*";
  if (idempotencyKey !== false) headers["Idempotency-Key"] = idempotencyKey ?? freshKey();
  return { call: { signal, timeoutMs, quiet, headers }, question };
}

/** A unique key; also where a page is not served over TLS. */
export function freshKey() {
  const bytes = globalThis.crypto ? crypto.getRandomValues(new Uint8Array(16)) :
    Uint8Array.from({ length: 16 }, () => Math.floor(256 * Math.random()));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
