/**
 * Calls stop when one of them aborts, at once if one has. @param {AbortSignal[]} signals
 * @param {() => void} stop @returns {() => void} ends that
 */
export function onAbort(signals: AbortSignal[], stop: () => void): () => void;
/** @param {number} ms @param {AbortSignal[]} signals @returns {Promise<void>} */
export function pause(ms: number, signals: AbortSignal[]): Promise<void>;
/**
 * The events of a feed, one after the other, until the loop is left or one of `ends` aborts.
 * @param {import("./kota.js").Kota} kota @param {string} path
 * @param {FeedOptions & {binary?: string}} options @param {AbortSignal[]} ends
 * @returns {AsyncGenerator<FeedEvent, void, void>}
 */
export function feed(kota: import("./kota.js").Kota, path: string, options: FeedOptions & {
    binary?: string;
}, ends: AbortSignal[]): AsyncGenerator<FeedEvent, void, void>;
/**
 * Follows a feed over lost connections until the signal aborts. Throws what the daemon refuses.
 * @param {import("./kota.js").Kota} kota @param {string} path
 * @param {{onEvent: (name: string, data: any, id: string) => void,
 *          onState?: (state: "open"|"lost"|"closed", why: string) => void,
 *          lastEventId?: string, binary?: string}} calls binary: the locale of a feed of frames
 * @param {AbortSignal} signal
 */
export function followUntil(kota: import("./kota.js").Kota, path: string, calls: {
    onEvent: (name: string, data: any, id: string) => void;
    onState?: (state: "open" | "lost" | "closed", why: string) => void;
    lastEventId?: string;
    binary?: string;
}, signal: AbortSignal): Promise<void>;
export type FeedEvent = import("./kota_types.js").FeedEvent;
export type FeedOptions = import("./kota_types.js").FeedOptions;
