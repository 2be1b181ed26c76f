/**
 * The change feeds of kota.js: a text/event-stream that is opened again with the last id after a lost
 * connection, after silence, and when the daemon is busy.
 *
 * @module kota_feed
 */

/**
 * @typedef {import("./kota_types.js").FeedEvent} FeedEvent
 * @typedef {import("./kota_types.js").FeedOptions} FeedOptions
 */

import { KotaError, failure } from "./kota_answer.js";
import { FRAMES, frames } from "./kota_frames.js";

/** A feed waits no longer than this before it asks again, whatever Retry-After says. */
const FEED_WAIT_MAX_MS = 10000;

/**
 * Calls stop when one of them aborts, at once if one has. @param {AbortSignal[]} signals
 * @param {() => void} stop @returns {() => void} ends that
 */
export function onAbort(signals, stop) {
  for (const signal of signals) {
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  }
  return () => signals.forEach((signal) => signal.removeEventListener("abort", stop));
}

/** @param {number} ms @param {AbortSignal[]} signals @returns {Promise<void>} */
export function pause(ms, signals) {
  return new Promise((done, fail) => {
    const timer = setTimeout(() => {
      release();
      done();
    }, ms);
    const release = onAbort(signals, () => {
      clearTimeout(timer);
      fail(signals.find((signal) => signal.aborted)?.reason);
    });
  });
}

/**
 * The events of a feed, one after the other, until the loop is left or one of `ends` aborts.
 * @param {import("./kota.js").Kota} kota @param {string} path
 * @param {FeedOptions & {binary?: string}} options @param {AbortSignal[]} ends
 * @returns {AsyncGenerator<FeedEvent, void, void>}
 */
export async function* feed(kota, path, options, ends) {
  /** @type {FeedEvent[]} */ const waiting = [];
  const control = new AbortController();
  let wake = () => {}, /** @type {unknown} */ error = null, isOver = false;
  const stop = () => control.abort();
  const release = onAbort(ends, stop);
  const end = (/** @type {unknown} */ why) => {
    error = why;
    isOver = true;
    wake();
  };
  followUntil(kota, path, { ...options, onEvent: (name, data, eventId) => {
    waiting.push({ name, data, id: eventId });
    wake();
  } }, control.signal).then(() => end(null), end);
  try {
    for (;;) {
      while (waiting.length) yield /** @type {FeedEvent} */ (waiting.shift());
      if (isOver) break;
      await new Promise((done) => {
        wake = () => done(null);
        if (waiting.length || isOver) wake();
      });
    }
    if (error && !control.signal.aborted) throw error;
  } finally {
    stop();
    release();
    options.onState?.("closed", "");
  }
}

/**
 * Follows a feed over lost connections until the signal aborts. Throws what the daemon refuses.
 * @param {import("./kota.js").Kota} kota @param {string} path
 * @param {{onEvent: (name: string, data: any, id: string) => void,
 *          onState?: (state: "open"|"lost"|"closed", why: string) => void,
 *          lastEventId?: string, binary?: string}} calls binary: the locale of a feed of frames
 * @param {AbortSignal} signal
 */
export async function followUntil(kota, path, calls, signal) {
  /** @type {Record<string, string>} */
  const headers = { Accept: calls.binary ? FRAMES : "text/event-stream" };
  let last = calls.lastEventId ?? "", waitMs = 500;
  while (!signal.aborted) {
    const silence = new AbortController(), stop = () => silence.abort();
    /** @type {ReturnType<typeof setTimeout>|undefined} */ let timer;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(stop, kota.silenceMs);
    };
    let why = "the connection has ended";
    signal.addEventListener("abort", stop, { once: true });
    heard();
    try {
      if (kota.token) headers.Authorization = `Bearer ${kota.token}`;
      if (last) headers["Last-Event-ID"] = last;
      const response = await fetch(kota.url(path),
        { headers, signal: silence.signal, cache: "no-store" });
      if (!response.ok || !response.body) {
        const buffer = await response.arrayBuffer();
        const asked = { method: "GET", url: kota.url(path), headers, body: null, bytes: 0 };
        throw failure(asked, response, buffer);
      }
      calls.onState?.("open", "");
      for await (const event of calls.binary ? frames(response.body, heard, calls.binary) :
        events(response.body, heard)) {
        if (event.id) last = event.id;
        waitMs = 500;
        if (!event.name) continue;
        calls.onEvent(event.name, event.data, event.id);
      }
    } catch (error) {
      if (signal.aborted) return;
      const known = error instanceof KotaError ? error : null;
      if (known?.status && known.status !== 503 && known.status !== 429) throw error;
      why = silence.signal.aborted ? `nothing was heard for ${kota.silenceMs / 1000} s` :
        String(/** @type {any} */ (error)?.message ?? error);
      waitMs = Math.max(waitMs, Math.min(known?.retryAfterMs ?? 0, FEED_WAIT_MAX_MS));
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      stop();
    }
    calls.onState?.("lost", why);
    await pause(waitMs, [signal]).catch(() => {});
    waitMs = Math.min(2 * waitMs, 10000);
  }
}

/**
 * Events of a text/event-stream body: {name, data (JSON where it is), id}. Those without a name only
 * say how far the reader is.
 * @param {ReadableStream<Uint8Array>} body @param {() => void} heard called for each piece
 * @returns {AsyncGenerator<FeedEvent, void, void>}
 */
async function* events(body, heard) {
  const reader = body.getReader(), decoder = new TextDecoder();
  let rest = "", name = "message", id = "", /** @type {string[]} */ data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const whole of lines) {
        const line = whole.endsWith("\r") ? whole.slice(0, -1) : whole;
        if (line === "") {
          if (data.length) yield { name, id, data: parsed(data.join("\n")) };
          else if (id) yield { name: "", id, data: null };
          name = "message";
          id = "";
          data = [];
        } else if (line.startsWith("event:")) {
          name = line.slice(6).trim();
        } else if (line.startsWith("data:")) {
          data.push(line.slice(5).trim());
        } else if (line.startsWith("id:")) {
          id = line.slice(3).trim();
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @param {string} text @returns {any} */
function parsed(text) {
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    return text;
  }
  if (typeof data?.samples === "string") data.samples = new Float32Array(bytesOf(data.samples));
  if (typeof data?.granules === "string") data.granules = granulesOf(new DataView(bytesOf(data.granules)));
  return data;
}

/** @param {string} base64 */
const bytesOf = (base64) => Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0)).buffer;

/** A frame of granules (proto/feed.md). @param {DataView} frame */
function granulesOf(frame) {
  const u32 = (/** @type {number} */ at) => frame.getUint32(at, true);
  if (u32(0) !== 1) throw new Error(`frames of granules of version ${u32(0)} are unknown`);
  const records = u32(8), numbers = new Uint32Array(records), values = new Float32Array(9 * records);
  const radius = frame.getFloat32(12, true);
  for (let i = 0; i < records; i++) {
    const at = 48 + 16 * i, turn = u32(at + 4), largest = turn >>> 30;
    let left = 1;
    numbers[i] = u32(at);
    for (let k = 0, bits = turn; k < 3; k++, bits >>>= 10) {
      const part = ((bits & 1023) / 1023 * 2 - 1) / Math.SQRT2;
      values[9 * i + k] = frame.getFloat32(16 + 4 * k, true) +
        frame.getUint16(at + 8 + 2 * k, true) * frame.getFloat32(28 + 4 * k, true);
      values[9 * i + 3 + (k < largest ? k : k + 1)] = part;
      left -= part * part;
    }
    values[9 * i + 3 + largest] = Math.sqrt(Math.max(0, left));
    values[9 * i + 7] = radius;
    values[9 * i + 8] = frame.getUint8(at + 14) / 255;
  }
  return { count: u32(4), step: Number(frame.getBigUint64(40, true)), numbers, values };
}
