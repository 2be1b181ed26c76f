/**
 * The binary feed (application/vnd.kota.feed, proto/feed.md): frames of a stream as the events that
 * the text has, with samples as numbers.
 *
 * @module kota_frames
 */

/** @typedef {import("./kota_types.js").FeedEvent} FeedEvent */

export const FRAMES = "application/vnd.kota.feed";
const VERSION = 2, FRAME_BYTES_MAX = 1 << 20, HEAD_BYTES = 16;
/** Bytes of the members of each kind, after the head: hello, edit, pose, resync, tick, range, patch. */
const MEMBER_BYTES = [16, 64, 112, 0, 0, 8, 56], RANGE = 5, PATCH = 6;
/** Of a patch. */
const STATES = ["filling", "settling", "active", "resting", "written", "discarded", "failed"];

/**
 * One frame without its length; null: of a kind that is not known.
 * @param {DataView} view @param {string} locale @returns {FeedEvent|null}
 */
function event(view, locale) {
  const kind = view.getUint8(0), flags = view.getUint8(1);
  const layerBytes = view.getUint8(2), sourceBytes = view.getUint8(3);
  const number = Number(view.getBigUint64(4, true));
  const members = HEAD_BYTES - 4, names = members + MEMBER_BYTES[kind];
  if (MEMBER_BYTES[kind] === undefined || kind === RANGE) return null;
  if (names + layerBytes + sourceBytes > view.byteLength) throw new Error("a frame is too short");
  const text = (/** @type {number} */ at, /** @type {number} */ bytes) =>
    new TextDecoder().decode(new Uint8Array(view.buffer, view.byteOffset + at, bytes));
  const layer = text(names, layerBytes) || null;
  const doubles = (/** @type {number} */ at, /** @type {number} */ count) =>
    Array.from({ length: count }, (_, i) => view.getFloat64(at + 8 * i, true));
  if (kind === 0) {
    const version = view.getUint32(members + 8, true);
    if (text(members, 8) !== "kotafeed" || version !== VERSION)
      throw new Error(`the feed has version ${version}, version ${VERSION} is known`);
    return { name: "hello", data: { locale, revision: number }, id: "" };
  }
  if (kind === 2) {
    const of = doubles(members, 14), rotation = of.slice(4, 8);
    return { name: "transform", id: "", data: { locale, layer, transform_seq: number,
      translation: of.slice(0, 3), ...rotation.some(Boolean) ? { rotation } : { yaw_deg: of[3] },
      velocity: of.slice(8, 11), spin: of.slice(11) } };
  }
  const end = names + layerBytes + sourceBytes, from = view.byteOffset + end + (-end & 3);
  if (kind === PATCH) {
    const box = doubles(members, 6);
    const count = view.getUint32(members + 52, true), at = from - view.byteOffset;
    return { name: "patch", id: "", data: { locale, patch: number, layer,
      change: text(names + layerBytes, sourceBytes), state: STATES[view.getUint32(members + 48, true)],
      bounds: { min: box.slice(0, 3), max: box.slice(3) },
      bodies: Array.from({ length: count }, (_, i) => view.getUint32(at + 4 * i, true)) } };
  }
  if (kind > 2)
    return { name: kind === 3 ? "resync" : "", data: { locale, revision: number }, id: String(number) };
  const rect = flags & 1 ? [0, 4, 8, 12].map((at) => view.getUint32(members + at, true)) : null;
  const box = doubles(members + 16, 6);
  const content = view.buffer.slice(from, view.byteOffset + view.byteLength);
  if (flags & 4 && content.byteLength !== 4 * (rect?.[2] ?? 0) * (rect?.[3] ?? 0))
    throw new Error("a frame has another number of samples than its rect");
  return { name: "edit", id: String(number), data: { locale, revision: number, rect,
    bounds: flags & 2 ? { min: box.slice(0, 3), max: box.slice(3) } : null,
    source: text(names + layerBytes, sourceBytes), layer,
    samples: flags & 4 ? new Float32Array(content) : null,
    polygons: flags & 8 ? content : null } };
}

/**
 * The events of a binary feed. Those without a name only say how far the reader is (`id`).
 * @param {ReadableStream<Uint8Array>} body @param {() => void} heard called for each piece
 * @param {string} locale @returns {AsyncGenerator<FeedEvent, void, void>}
 */
export async function* frames(body, heard, locale) {
  const reader = body.getReader();
  let rest = new Uint8Array(0);
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      const all = new Uint8Array(rest.length + value.length);
      all.set(rest);
      all.set(value, rest.length);
      const view = new DataView(all.buffer);
      let at = 0;
      while (all.length - at >= 4) {
        const length = view.getUint32(at, true);
        if (length < HEAD_BYTES - 4 || length > FRAME_BYTES_MAX || length % 4)
          throw new Error(`a frame of ${length} bytes`);
        if (all.length - at < 4 + length) break;
        const one = event(new DataView(all.buffer, at + 4, length), locale);
        if (one) yield one;
        at += 4 + length;
      }
      rest = all.subarray(at);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
