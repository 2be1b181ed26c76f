/** A line for a shell that asks the same. @param {Asked} asked @returns {string} */
export function curlLine(asked: Asked): string;
/**
 * The error of an answer of 400 or more.
 * @param {Asked} asked @param {Response} response @param {ArrayBuffer} buffer
 */
export function failure(asked: Asked, response: Response, buffer: ArrayBuffer): KotaError;
/** "?a=1&b=2,3" of what is given. @param {Record<string, any>} values */
export function query(values: Record<string, any>): string;
/** @param {string} id */
export function place(id: string): string;
/** Splits options of a read from what belongs into its question. @param {any} options */
export function asRead(options: any): {
    call: import("./kota_types.js").CallOptions;
    question: any;
};
/** @param {import("./kota_types.js").WriteOptions & Record<string, any>} options */
export function asWrite(options: import("./kota_types.js").WriteOptions & Record<string, any>): {
    call: {
        signal: AbortSignal | undefined;
        timeoutMs: number | undefined;
        quiet: boolean | undefined;
        headers: Record<string, string>;
    };
    question: {
        [x: string]: any;
        /**
         * why, for the history
         */
        note?: string | undefined;
    };
};
/** A unique key; also where a page is not served over TLS. */
export function freshKey(): string;
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
    constructor(asked: Asked, response: Response, buffer: ArrayBuffer, ms: number);
    asked: import("./kota_types.js").Asked;
    /** @type {number} */ status: number;
    /** @type {Headers} */ headers: Headers;
    /** @type {ArrayBuffer} */ buffer: ArrayBuffer;
    /** @type {number} milliseconds until the last byte */ ms: number;
    /** @returns {number} milliseconds that the daemon took (Server-Timing); NaN without the header */
    get serverMs(): number;
    /** @returns {string} the body as text */
    get text(): string;
    /** @returns {any} the body as JSON, null when there is none */
    get json(): any;
    /** @returns {string} the same request for a shell */
    get curl(): string;
}
/** What went wrong, in words. `status` is 0 when there was no answer at all. */
export class KotaError extends Error {
    /**
     * @param {string} message
     * @param {{status?: number, problem?: any, asked?: Asked|null, text?: string, cause?: unknown,
     *          retryAfterMs?: number}} about
     */
    constructor(message: string, about?: {
        status?: number;
        problem?: any;
        asked?: Asked | null;
        text?: string;
        cause?: unknown;
        retryAfterMs?: number;
    });
    cause: unknown;
    /** @type {number} */ status: number;
    /** Stable, for a program: "layer_unknown"; "" without one @type {string} */
    code: string;
    /** RFC 9457 members of the answer: code, title, detail, errors, limit, got @type {any} */
    problem: any;
    /** @type {Asked|null} */ asked: Asked | null;
    text: string;
    /** when to ask again, as the daemon says @type {number|undefined} */
    retryAfterMs: number | undefined;
    get curl(): string;
}
/** No connection, or it was lost on the way: the daemon may have done what was asked. */
export class ConnectionError extends KotaError {
}
/** No answer within the time: the daemon may have done what was asked. */
export class TimeoutError extends KotaError {
}
/** What was sent is wrong: 400, 405, 411, 415, 417, 422. */
export class BadInputError extends KotaError {
}
/** No token, or one without the right: 401, 403. */
export class RightsError extends KotaError {
}
/** No such locale, layer, model, …: 404; no longer available: 410. */
export class NotFoundError extends KotaError {
}
/** It is not as If-Match or If-None-Match say, or in the way of something else: 409, 412. */
export class ConflictError extends KotaError {
}
/** Over a limit: 413, 414, 431; `problem.limit` and `problem.got`. */
export class TooLargeError extends KotaError {
}
/** Later, perhaps: 429, 503; `retryAfterMs`. */
export class BusyError extends KotaError {
}
/** All else: 500, 501, 507, and what is no answer of a kotad. */
export class ServerError extends KotaError {
}
export type Asked = import("./kota_types.js").Asked;
