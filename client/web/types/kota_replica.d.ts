/**
 * @param {Kota} kota @param {string} locale @param {ReplicaOptions} options
 * @returns {Promise<Replica>} that can be asked
 */
export function openReplica(kota: Kota, locale: string, options: ReplicaOptions): Promise<Replica>;
/** Ground that is asked without a round trip. Made by Kota.replica. */
export class Replica {
    /**
     * @param {Kota} kota @param {string} locale @param {Exports} exports @param {ReplicaOptions} options
     */
    constructor(kota: Kota, locale: string, exports: Exports, options: ReplicaOptions);
    /** The id of the locale. */ locale: string;
    /** Metres, of the locale's ground; NaN: none, or beyond the bounds. @param {number} x @param {number} y @returns {number} */
    height(x: number, y: number): number;
    /** Of many points, x y each; NaN: none. @param {Float64Array} points @returns {Float64Array} */
    heights(points: Float64Array): Float64Array;
    /**
     * The first surface on a ray, as an item of the call. Status "absent": the answer depends on ground
     * beyond the bounds.
     * @param {number[]} origin @param {number[]} direction @param {number} [tMax] in lengths of it
     * @returns {RayItem}
     */
    ray([ox, oy, oz]: number[], [dx, dy, dz]: number[], tMax?: number): RayItem;
    /**
     * The surfaces below and above a point, as an item of the call. Status "absent": beyond the bounds.
     * @param {number[]} point
     * @param {{reach_up?: number, max_distance?: number}} [options]
     * @returns {ContactItem}
     */
    contact([x, y, z]: number[], { reach_up, max_distance }?: {
        reach_up?: number;
        max_distance?: number;
    }): ContactItem;
    /**
     * A line of sight, as an item of the call.
     * @param {number[]} from @param {number[]} to @returns {SightItem}
     */
    los([x0, y0, z0]: number[], [x1, y1, z1]: number[]): SightItem;
    /**
     * What a moved shape touches first, as an item of the call; places are of its middle.
     * @param {Shape} shape @param {number[]} from @param {number[]} to @returns {TouchItem}
     */
    sweep(shape: Shape, from: number[], to: number[]): TouchItem;
    /**
     * Where a shape that walks comes to, as an item of the call; with `claimed`, could it be there by now?
     * @param {MoveQuestion} question @returns {MovedItem}
     */
    move({ shape, from, velocity, dt, slope_max_deg, step_up, snap_down, claimed }: MoveQuestion): MovedItem;
    /** Revision of the locale that answers are of; 0: there are none any more. @returns {number} */
    get revision(): number;
    /** Of the poses of moved layers. @returns {number} */
    get transformSeq(): number;
    /** Seconds since the copy was known to be the daemon's ground. Grows while the feed is lost. */
    get staleness(): number;
    /**
     * Resolves when answers are of this revision or a later one.
     * @param {number} revision @param {{signal?: AbortSignal}} [options] @returns {Promise<void>}
     */
    wait(revision: number, options?: {
        signal?: AbortSignal;
    }): Promise<void>;
    /** Ends following; nothing can be asked any more. */
    close(): void;
    /** Resolves when it can be asked. @returns {Promise<Replica>} */
    whole(): Promise<Replica>;
    #private;
}
export type Kota = import("./kota.js").Kota;
export type ContactItem = import("./kota_types.js").ContactItem;
export type RayItem = import("./kota_types.js").RayItem;
export type Shape = import("./kota_types.js").Shape;
export type TouchItem = import("./kota_types.js").TouchItem;
export type MoveQuestion = import("./kota_types.js").MoveQuestion;
export type MovedItem = import("./kota_types.js").MovedItem;
export type ReplicaOptions = import("./kota_types.js").ReplicaOptions;
export type SightItem = import("./kota_types.js").SightItem;
export type Exports = Record<string, (...values: any[]) => any> & {
    memory: WebAssembly.Memory;
};
