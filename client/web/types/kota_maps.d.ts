/**
 * From the frame to [longitude, latitude]; null where the locale is nowhere.
 * @param {{geo?: {lat: number, lng: number}, crs?: string}} locale
 * @returns {((x: number, y: number) => number[])|null}
 */
export function toDegrees(locale: {
    geo?: {
        lat: number;
        lng: number;
    };
    crs?: string;
}): ((x: number, y: number) => number[]) | null;
/**
 * The tiles of zoom zMin to zMax that a change of `bounds` touches, without those that have no
 * ground of the locale. A change at the ground's rim also changes what lies beyond it (void=edge).
 * @param {any} locale as GET /v1/locales/{locale} has it
 * @param {{min: number[], max: number[]}|null} bounds null: all of it
 * @param {number} zMin @param {number} zMax
 * @returns {{z: number, x: number, y: number}[]}
 */
export function tilesOf(locale: any, bounds: {
    min: number[];
    max: number[];
} | null, zMin: number, zMax: number): {
    z: number;
    x: number;
    y: number;
}[];
/**
 * For Kota.tileHeights.
 * @param {import("./kota.js").Kota} kota @param {string} path of the tile
 * @param {{layer?: string, kind?: "sampled"|"min"|"max", tag?: string, signal?: AbortSignal}} o
 * @returns {Promise<{heights: Float32Array|null, tag: string, bytes: number}|null>}
 */
export function tileHeights(kota: import("./kota.js").Kota, path: string, o: {
    layer?: string;
    kind?: "sampled" | "min" | "max";
    tag?: string;
    signal?: AbortSignal;
}): Promise<{
    heights: Float32Array | null;
    tag: string;
    bytes: number;
} | null>;
