/**
 * The events of a binary feed. Those without a name only say how far the reader is (`id`).
 * @param {ReadableStream<Uint8Array>} body @param {() => void} heard called for each piece
 * @param {string} locale @returns {AsyncGenerator<FeedEvent, void, void>}
 */
export function frames(body: ReadableStream<Uint8Array>, heard: () => void, locale: string): AsyncGenerator<FeedEvent, void, void>;
/**
 * The binary feed (application/vnd.kota.feed, proto/feed.md): frames of a stream as the events that
 * the text has, with samples as numbers.
 *
 * @module kota_frames
 */
/** @typedef {import("./kota_types.js").FeedEvent} FeedEvent */
export const FRAMES: "application/vnd.kota.feed";
export type FeedEvent = import("./kota_types.js").FeedEvent;
