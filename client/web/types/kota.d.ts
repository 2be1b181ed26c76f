/** Numbers of a tile's side: 256 cells and the samples at their far edges. */
export const TILE_SAMPLES: 257;
export class Kota {
    /** @param {string} base "" for the daemon that served this page
     * @param {{token?: string, timeoutMs?: number, triesMax?: number, silenceMs?: number,
     *          signal?: AbortSignal}} [options]
     *   signal: ends all calls and feeds with its reason, and every later one
     */
    constructor(base?: string, options?: {
        token?: string;
        timeoutMs?: number;
        triesMax?: number;
        silenceMs?: number;
        signal?: AbortSignal;
    });
    base: string;
    /** @type {string} bearer token, "" for none */ token: string;
    timeoutMs: number;
    triesMax: number;
    /** @type {AbortSignal|null} */ signal: AbortSignal | null;
    /** A feed on which nothing has come for so long, not even a comment, is opened again. */
    silenceMs: number;
    /** For a log: called with every answer. @type {(what: Answer|KotaError) => void} */
    onCall: (what: Answer | KotaError) => void;
    /** @param {string} path @returns {string} absolute */
    url(path: string): string;
    /** One call. `json` or `body` is sent; `signal` aborts it with the signal's reason.
     * @param {string} method @param {string} path with its query
     * @param {CallOptions} [options]
     * @returns {Promise<Answer>} */
    call(method: string, path: string, options?: CallOptions): Promise<Answer>;
    /** @param {string} path @param {CallOptions} [options] @returns {Promise<Answer>} */
    get(path: string, options?: CallOptions): Promise<Answer>;
    /** @param {string} path @param {any} json @param {CallOptions} [options] @returns {Promise<Answer>}
     */
    post(path: string, json: any, options?: CallOptions): Promise<Answer>;
    /** @param {ReadOptions} [options] @returns {Promise<{status: "ok"}>} the process lives */
    livez(options?: ReadOptions): Promise<{
        status: "ok";
    }>;
    /** @param {ReadOptions} [options] @returns {Promise<{status: "ok"}>} */
    healthz(options?: ReadOptions): Promise<{
        status: "ok";
    }>;
    /** @param {ReadOptions} [options] @returns {Promise<{status: "ok"}>} BusyError: not yet */
    readyz(options?: ReadOptions): Promise<{
        status: "ok";
    }>;
    /** @param {ReadOptions} [options] @returns {Promise<string>} Prometheus text */
    metrics(options?: ReadOptions): Promise<string>;
    /** The daemon's version and all its calls.
     * @param {ReadOptions} [options]
     * @returns {Promise<{version: string,
     *   calls: {name: string, method: string, path: string, summary: string}[]}>}
     */
    calls(options?: ReadOptions): Promise<{
        version: string;
        calls: {
            name: string;
            method: string;
            path: string;
            summary: string;
        }[];
    }>;
    /** @param {ReadOptions} [options] @returns {Promise<Record<string, number>>} limits in force */
    limits(options?: ReadOptions): Promise<Record<string, number>>;
    /** @param {ReadOptions & {after?: number, limit?: number}} [options]
     * @returns {Promise<any>} the last writes, in `entries`, and `next` */
    audit(options?: ReadOptions & {
        after?: number;
        limit?: number;
    }): Promise<any>;
    /** @param {ReadOptions} [options] @returns {Promise<any>} counters, gauges, `builds` of meshes */
    stats(options?: ReadOptions): Promise<any>;
    /** @param {ReadOptions} [options] @returns {Promise<any>} the contract, OpenAPI 3.1 */
    openapi(options?: ReadOptions): Promise<any>;
    /** All locales by id, page by page; with `limit` one page, of those after the id `after`.
     * @param {ReadOptions & {layers?: boolean, limit?: number, after?: string}} [options]
     *   layers: each with its layers
     * @returns {Promise<ListedLocale[]>} */
    locales(options?: ReadOptions & {
        layers?: boolean;
        limit?: number;
        after?: string;
    }): Promise<ListedLocale[]>;
    /** @param {string} id @param {ReadOptions} [options] @returns {Promise<Locale>} */
    locale(id: string, options?: ReadOptions): Promise<Locale>;
    /** Makes a locale, or replaces its manifest.
     * @param {string} id @param {Manifest} manifest @param {WriteOptions} [options] @returns {Promise<Locale>} */
    putLocale(id: string, manifest: Manifest, options?: WriteOptions): Promise<Locale>;
    /** A fork of "arena", "arena@pin" or "arena@revision". @param {string} id @param {string} from
     * @param {import("./kota_types.js").ForkOptions} [options] @returns {Promise<Locale>} */
    postLocale(id: string, from: string, { title, placement, ...options }?: import("./kota_types.js").ForkOptions): Promise<Locale>;
    /** @param {string} id @param {WriteOptions} [options] @returns {Promise<void>} */
    deleteLocale(id: string, options?: WriteOptions): Promise<void>;
    /** The values of a locale that are kept under names. @param {string} id @param {ReadOptions} [options]
     * @returns {Promise<{locale: string, revision: number, pins: Pin[]}>} */
    pins(id: string, options?: ReadOptions): Promise<{
        locale: string;
        revision: number;
        pins: Pin[];
    }>;
    /** @param {string} id @param {string} pin @param {ReadOptions} [options] @returns {Promise<Pin>} */
    pin(id: string, pin: string, options?: ReadOptions): Promise<Pin>;
    /** Keeps the locale as it is under a name, for `at` of its reads.
     * @param {string} id @param {string} pin @param {WriteOptions} [options] @returns {Promise<Pin>} */
    putPin(id: string, pin: string, options?: WriteOptions): Promise<Pin>;
    /** @param {string} id @param {string} pin @param {WriteOptions} [options] @returns {Promise<void>} */
    deletePin(id: string, pin: string, options?: WriteOptions): Promise<void>;
    /** Who made each revision. @param {string} id
     * @param {ReadOptions & {rect?: number[], layer?: string, author?: string, since?: number|string,
     *   before?: number, order?: "oldest"|"newest", limit?: number}} [options]
     * @returns {Promise<{locale: string, revision: number, history: Past[], next: string|null, held_since: number}>} */
    history(id: string, options?: ReadOptions & {
        rect?: number[];
        layer?: string;
        author?: string;
        since?: number | string;
        before?: number;
        order?: "oldest" | "newest";
        limit?: number;
    }): Promise<{
        locale: string;
        revision: number;
        history: Past[];
        next: string | null;
        held_since: number;
    }>;
    /** Takes earlier edits back. @param {string} id @param {Revert} revert @param {WriteOptions} [options]
     * @returns {Promise<Reverted>} */
    revert(id: string, revert: Revert, options?: WriteOptions): Promise<Reverted>;
    /** Brings the locale back to a pin, as its next revision.
     * @param {string} id @param {string} pin @param {WriteOptions} [options] @returns {Promise<Locale>} */
    restorePin(id: string, pin: string, options?: WriteOptions): Promise<Locale>;
    /** A layer as a file.
     * @param {string} id @param {string} layer @param {ReadOptions & {format?: string}} [options]
     * @returns {Promise<Answer>} `buffer`, and its Content-Type */
    layer(id: string, layer: string, options?: ReadOptions & {
        format?: string;
    }): Promise<Answer>;
    /** Uploads a layer. Options of the file (cols, rows, spacing, origin, role, up, …) are among the
     * others; arrays are written with commas. Of a mesh `frame` and `gravity` say where gravity runs:
     * a planet is { frame: "spherical" }.
     * @param {string} id @param {string} layer @param {ArrayBuffer|ArrayBufferView|string} body
     * @param {string} type image/png, application/vnd.kota.f32, model/obj, …
     * @param {WriteOptions & LayerOptions & Record<string, any>} [options]
     * @returns {Promise<Locale>} */
    putLayer(id: string, layer: string, body: ArrayBuffer | ArrayBufferView | string, type: string, options?: WriteOptions & LayerOptions & Record<string, any>): Promise<Locale>;
    /** @param {string} id @param {string} layer @param {WriteOptions} [options] @returns {Promise<void>} */
    deleteLayer(id: string, layer: string, options?: WriteOptions): Promise<void>;
    /** Moves a mesh layer: the whole pose, translation in metres, and yaw about gravity in degrees or a
     * rotation, a unit quaternion x y z w.
     * @param {string} id @param {string} layer
     * @param {{translation: [number, number, number], yaw_deg?: number,
     *   rotation?: [number, number, number, number]}} pose
     * @param {WriteOptions} [options] @returns {Promise<any>}
     */
    putTransform(id: string, layer: string, pose: {
        translation: [number, number, number];
        yaw_deg?: number;
        rotation?: [number, number, number, number];
    }, options?: WriteOptions): Promise<any>;
    /** Polygons of a mesh layer, some added and some removed in one revision. Numbers are those that
     * contacts and hits tell; a removed one is not given again.
     * @param {string} id @param {string} layer
     * @param {{polygons?: [number, number, number][][], remove?: number[]}} change
     * @param {WriteOptions} [options] @returns {Promise<PolygonsChanged>}
     */
    polygons(id: string, layer: string, change: {
        polygons?: [number, number, number][][];
        remove?: number[];
    }, options?: WriteOptions): Promise<PolygonsChanged>;
    /** @param {string} id @param {string} layer @param {ReadOptions} [options] @returns {Promise<any>} */
    layerStats(id: string, layer: string, options?: ReadOptions): Promise<any>;
    /** @param {string} id
     * @param {{rect: number[], op?: "set"|"add", heights: (number|null)[], layer?: string}|
     *         {brush: {shape: "crater"|"raise"|"flatten"|"smooth"|"relax", center: number[],
     *          radius: number, amount?: number, slope_deg?: number}, layer?: string}} edit
     * @param {WriteOptions} [options]
     * @returns {Promise<{locale: string, revision: number, rect: number[]|null}>} */
    edit(id: string, edit: {
        rect: number[];
        op?: "set" | "add";
        heights: (number | null)[];
        layer?: string;
    } | {
        brush: {
            shape: "crater" | "raise" | "flatten" | "smooth" | "relax";
            center: number[];
            radius: number;
            amount?: number;
            slope_deg?: number;
        };
        layer?: string;
    }, options?: WriteOptions): Promise<{
        locale: string;
        revision: number;
        rect: number[] | null;
    }>;
    /** The same with samples as bytes; NaN makes a hole.
     * @param {string} id @param {number[]} rect [c0, r0, cols, rows] @param {Float32Array} heights
     * @param {WriteOptions & {op?: "set"|"add", layer?: string}} [options]
     * @returns {Promise<{locale: string, revision: number, rect: number[]|null}>} */
    editSamples(id: string, rect: number[], heights: Float32Array, options?: WriteOptions & {
        op?: "set" | "add";
        layer?: string;
    }): Promise<{
        locale: string;
        revision: number;
        rect: number[] | null;
    }>;
    /** What has changed since a revision; NotFoundError (410): too long ago.
     * @param {string} id @param {number} since @param {ReadOptions & {layer?: string}} [options]
     * @returns {Promise<{locale: string, revision: number, rects: number[][]}>} */
    diff(id: string, since: number, options?: ReadOptions & {
        layer?: string;
    }): Promise<{
        locale: string;
        revision: number;
        rects: number[][];
    }>;
    /** @param {string} id @param {number} x @param {number} y
     * @param {GroundOptions & {interp?: Interp, fields?: string[], layer?: string}} [options]
     * @returns {Promise<{locale: string, revision: number} & HeightItem>} */
    getHeight(id: string, x: number, y: number, options?: GroundOptions & {
        interp?: Interp;
        fields?: string[];
        layer?: string;
    }): Promise<{
        locale: string;
        revision: number;
    } & HeightItem>;
    /** @param {string} id @param {number[][]} points [x, y] each
     * @param {GroundOptions & {interp?: Interp, fields?: string[], layer?: string}} [options]
     * @returns {Promise<Results<HeightItem>>} */
    height(id: string, points: number[][], options?: GroundOptions & {
        interp?: Interp;
        fields?: string[];
        layer?: string;
    }): Promise<Results<HeightItem>>;
    /** @param {string} id @param {number[][]} path corners
     * @param {GroundOptions & {samples?: number, step?: number, interp?: Interp, layer?: string}} options
     * @returns {Promise<Results<any>>} */
    profile(id: string, path: number[][], options: GroundOptions & {
        samples?: number;
        step?: number;
        interp?: Interp;
        layer?: string;
    }): Promise<Results<any>>;
    /** @param {string} id @param {number} x @param {number} y @param {number} z
     * @param {GroundOptions & Reach & {layer?: string}} [options]
     * @returns {Promise<{locale: string, revision: number} & ContactItem>} */
    getContact(id: string, x: number, y: number, z: number, options?: GroundOptions & Reach & {
        layer?: string;
    }): Promise<{
        locale: string;
        revision: number;
    } & ContactItem>;
    /** Floors below and ceilings above.
     * @param {string} id @param {number[][]} points [x, y, z] each
     * @param {GroundOptions & Reach & {layer?: string}} [options]
     * @returns {Promise<Results<ContactItem>>} */
    contact(id: string, points: number[][], options?: GroundOptions & Reach & {
        layer?: string;
    }): Promise<Results<ContactItem>>;
    /** Planes under footprints of three points and more.
     * @param {string} id @param {number[][][]} footprints
     * @param {GroundOptions & {reach_up?: number, max_distance?: number, layer?: string}} [options]
     * @returns {Promise<Results<any>>} */
    contactFootprints(id: string, footprints: number[][][], options?: GroundOptions & {
        reach_up?: number;
        max_distance?: number;
        layer?: string;
    }): Promise<Results<any>>;
    /** @param {string} id @param {number[]} origin @param {number[]} direction
     * @param {GroundOptions & {t_max?: number, mode?: "closest"|"any", layer?: string}} [options]
     * @returns {Promise<{locale: string, revision: number} & RayItem>} */
    getRay(id: string, origin: number[], direction: number[], options?: GroundOptions & {
        t_max?: number;
        mode?: "closest" | "any";
        layer?: string;
    }): Promise<{
        locale: string;
        revision: number;
    } & RayItem>;
    /** With mode "all" each result has `hits`, all along the ray in order, up to hits_max of them.
     * @param {string} id @param {Ray[]} rays
     * @param {GroundOptions & {mode?: "closest"|"any"|"all", hits_max?: number, layer?: string,
     *   trace?: boolean}} [options]
     * @returns {Promise<Results<RayItem & {hits?: any[]}>>} */
    ray(id: string, rays: Ray[], options?: GroundOptions & {
        mode?: "closest" | "any" | "all";
        hits_max?: number;
        layer?: string;
        trace?: boolean;
    }): Promise<Results<RayItem & {
        hits?: any[];
    }>>;
    /** @param {string} id @param {number[]} from @param {number[]} to
     * @param {GroundOptions & {layer?: string}} [options]
     * @returns {Promise<any>} */
    getLos(id: string, from: number[], to: number[], options?: GroundOptions & {
        layer?: string;
    }): Promise<any>;
    /** Lines of sight; with mode "all" each result has `hits`, all that is between.
     * @param {string} id @param {{from: number[], to: number[]}[]} segments
     * @param {GroundOptions & {mode?: "closest"|"all", hits_max?: number, layer?: string}} [options]
     * @returns {Promise<Results<any>>} */
    los(id: string, segments: {
        from: number[];
        to: number[];
    }[], options?: GroundOptions & {
        mode?: "closest" | "all";
        hits_max?: number;
        layer?: string;
    }): Promise<Results<any>>;
    /** Does a light reach these points, and what is between?
     * @param {string} id @param {number[][]} points @param {{direction: number[]}|{position: number[]}}
     *   light @param {ReadOptions & {layer?: string}} [options]
     * @returns {Promise<Results<{lit: boolean, occluder: any}>>} */
    lit(id: string, points: number[][], light: {
        direction: number[];
    } | {
        position: number[];
    }, options?: ReadOptions & {
        layer?: string;
    }): Promise<Results<{
        lit: boolean;
        occluder: any;
    }>>;
    /** What moved shapes touch first; places are of their middles.
     * @param {string} id @param {{shape?: Shape, from: number[], to: number[]}[]} items
     * @param {ReadOptions & {layer?: string}} [options]
     * @returns {Promise<Results<TouchItem>>} */
    sweep(id: string, items: {
        shape?: Shape;
        from: number[];
        to: number[];
    }[], options?: ReadOptions & {
        layer?: string;
    }): Promise<Results<TouchItem>>;
    /** Where shapes that walk come to; with `claimed`, could they be there by now?
     * @param {string} id @param {MoveQuestion[]} items @param {ReadOptions & {layer?: string}} [options]
     * @returns {Promise<Results<MovedItem>>} */
    move(id: string, items: MoveQuestion[], options?: ReadOptions & {
        layer?: string;
    }): Promise<Results<MovedItem>>;
    /** What a pixel shows; a camera of 60 degrees with z up unless `up` and `fov_y_deg` say otherwise.
     * @param {string} id @param {{eye: number[], target: number[], viewport: number[],
     *   pixel: number[], up?: number[], fov_y_deg?: number, tile_side?: number, tile?: string}} question
     * @param {GroundOptions & {layer?: string}} [options]
     * @returns {Promise<any>} */
    getPick(id: string, question: {
        eye: number[];
        target: number[];
        viewport: number[];
        pixel: number[];
        up?: number[];
        fov_y_deg?: number;
        tile_side?: number;
        tile?: string;
    }, options?: GroundOptions & {
        layer?: string;
    }): Promise<any>;
    /** What a pixel shows, or several, or a rectangle or lasso of the screen.
     * @param {string} id @param {GroundOptions & {viewport: number[]} & Record<string, any>} question
     *   with camera, or inverse_view_projection and depth; with pixel, pixels, rectangle or lasso
     * @returns {Promise<any>} */
    pick(id: string, question: GroundOptions & {
        viewport: number[];
    } & Record<string, any>): Promise<any>;
    /** @param {string} id @param {number[][]} points @param {GroundOptions & {layer?: string}} [options]
     * @returns {Promise<Results<{status: "inside"|"below"|"hole"|"outside", floor: boolean,
     *   ceiling: boolean}>>}
     */
    contains(id: string, points: number[][], options?: GroundOptions & {
        layer?: string;
    }): Promise<Results<{
        status: "inside" | "below" | "hole" | "outside";
        floor: boolean;
        ceiling: boolean;
    }>>;
    /** Which locale holds each point of the world?
     * @param {number[][]} points @param {ReadOptions & {hints?: (string|null)[]}} [options]
     * @returns {Promise<{results: (Hinted & {locale: string|null, point: number[]|null, changed: boolean})[]}>}
     */
    locate(points: number[][], options?: ReadOptions & {
        hints?: (string | null)[];
    }): Promise<{
        results: (Hinted & {
            locale: string | null;
            point: number[] | null;
            changed: boolean;
        })[];
    }>;
    /** @param {number[][]} points of the world
     * @param {ReadOptions & Reach & {hints?: (string|null)[]}} [options]
     * @returns {Promise<{results: (ContactItem & InWorld & Hinted)[]}>} */
    worldContact(points: number[][], options?: ReadOptions & Reach & {
        hints?: (string | null)[];
    }): Promise<{
        results: (ContactItem & InWorld & Hinted)[];
    }>;
    /** @param {number[][][]} footprints
     * @param {ReadOptions & {reach_up?: number, max_distance?: number, hints?: (string|null)[]}}
     *   [options]
     * @returns {Promise<{results: any[]}>} */
    worldContactFootprints(footprints: number[][][], options?: ReadOptions & {
        reach_up?: number;
        max_distance?: number;
        hints?: (string | null)[];
    }): Promise<{
        results: any[];
    }>;
    /** @param {Ray[]} rays @param {ReadOptions & {mode?: "closest"|"any"}} [options]
     * @returns {Promise<{results: (RayItem & InWorld & {crossed_count: number,
     *   crossed: {locale: string, t_enter: number, t_leave: number}[]})[]}>}
     */
    worldRay(rays: Ray[], options?: ReadOptions & {
        mode?: "closest" | "any";
    }): Promise<{
        results: (RayItem & InWorld & {
            crossed_count: number;
            crossed: {
                locale: string;
                t_enter: number;
                t_leave: number;
            }[];
        })[];
    }>;
    /** pick over all locales. @param {Record<string, any>} question @returns {Promise<any>} */
    worldPick(question: Record<string, any>): Promise<any>;
    /** Elevations of places on the Earth; `dataset` names locales. Asked by POST, which has room.
     * @param {ReadOptions & {locations?: string|number[][], path?: string|number[][],
     *         samples?: number, interpolation?: "nearest"|"bilinear"|"triangle",
     *         nodata_value?: number|null, format?: "json"|"geojson", dataset?: string}} question
     *         places are [lat, lng]
     * @returns {Promise<any>} */
    elevation(question: ReadOptions & {
        locations?: string | number[][];
        path?: string | number[][];
        samples?: number;
        interpolation?: "nearest" | "bilinear" | "triangle";
        nodata_value?: number | null;
        format?: "json" | "geojson";
        dataset?: string;
    }): Promise<any>;
    /** x y each -> height each (NaN: none); with status height and status each (0 ok, 2 hole,
     * 3 outside).
     * @template {Floats} F @param {string} id @param {F} points
     * @param {GroundOptions & {interp?: Interp, layer?: string, base?: number[], status?: boolean}}
     *   [options]
     */
    heightBatch<F extends Floats>(id: string, points: F, options?: GroundOptions & {
        interp?: Interp;
        layer?: string;
        base?: number[];
        status?: boolean;
    }): Promise<{
        values: F;
        revision: number;
    }>;
    /** x y z each -> floor_z nx ny nz ceiling_z (NaN: none) and status (0 ok, 1 below, 2 hole,
     * 3 outside, 4 too far) each.
     * @template {Floats} F @param {string} id @param {F} points
     * @param {GroundOptions & {reach_up?: number, max_distance?: number, layer?: string,
     *   base?: number[]}} [options]
     */
    contactBatch<F extends Floats>(id: string, points: F, options?: GroundOptions & {
        reach_up?: number;
        max_distance?: number;
        layer?: string;
        base?: number[];
    }): Promise<{
        values: F;
        revision: number;
    }>;
    /** ox oy oz dx dy dz t_max each -> t nx ny nz each (t Infinity: a miss).
     * @template {Floats} F @param {string} id @param {F} rays
     * @param {GroundOptions & {mode?: "closest"|"any", layer?: string, base?: number[]}} [options]
     */
    rayBatch<F extends Floats>(id: string, rays: F, options?: GroundOptions & {
        mode?: "closest" | "any";
        layer?: string;
        base?: number[];
    }): Promise<{
        values: F;
        revision: number;
    }>;
    /** From and to (6 numbers) each -> fraction nx ny nz each (NaN: it touches nothing).
     * @template {Floats} F @param {string} id @param {F} ways @param {Shape} shape
     * @param {ReadOptions & {layer?: string, base?: number[]}} [options]
     */
    sweepBatch<F extends Floats>(id: string, ways: F, shape: Shape, options?: ReadOptions & {
        layer?: string;
        base?: number[];
    }): Promise<{
        values: F;
        revision: number;
    }>;
    /** From and velocity (6 numbers) each -> to and grounded (0 or 1) each.
     * @template {Floats} F @param {string} id @param {F} moves @param {Shape} shape
     * @param {ReadOptions & {dt: number, slope_max_deg?: number, step_up?: number,
     *   snap_down?: number, layer?: string, base?: number[]}} options
     */
    moveBatch<F extends Floats>(id: string, moves: F, shape: Shape, options: ReadOptions & {
        dt: number;
        slope_max_deg?: number;
        step_up?: number;
        snap_down?: number;
        layer?: string;
        base?: number[];
    }): Promise<{
        values: F;
        revision: number;
    }>;
    /** x y z each -> a byte each: bit 0 inside, 1 floor, 2 ceiling, 3 hole, 4 outside.
     * @param {string} id @param {Floats} points
     * @param {GroundOptions & {layer?: string, base?: number[]}} [options]
     * @returns {Promise<{values: Uint8Array, revision: number}>} */
    containsBatch(id: string, points: Floats, options?: GroundOptions & {
        layer?: string;
        base?: number[];
    }): Promise<{
        values: Uint8Array;
        revision: number;
    }>;
    /** @param {ReadOptions} [options] @returns {Promise<any[]>} */
    models(options?: ReadOptions): Promise<any[]>;
    /** The file of a model, as it was put. @param {string} id @param {ReadOptions} [options]
     * @returns {Promise<Answer>} */
    model(id: string, options?: ReadOptions): Promise<Answer>;
    /** @param {string} id @param {ArrayBuffer|ArrayBufferView|string} body a closed triangle mesh
     * @param {string} [type] @param {WriteOptions} [options] @returns {Promise<any>}
     */
    putModel(id: string, body: ArrayBuffer | ArrayBufferView | string, type?: string, options?: WriteOptions): Promise<any>;
    /** @param {string} id @param {WriteOptions} [options] @returns {Promise<void>} */
    deleteModel(id: string, options?: WriteOptions): Promise<void>;
    /** @param {string} id @param {ReadOptions} [options] @returns {Promise<any[]>} */
    patches(id: string, options?: ReadOptions): Promise<any[]>;
    /** @param {string} id @param {any} wanted @param {WriteOptions} [options] @returns {Promise<any>} */
    postPatch(id: string, wanted: any, options?: WriteOptions): Promise<any>;
    /** @param {string} id @param {number} n @param {ReadOptions} [options] @returns {Promise<any>} */
    patch(id: string, n: number, options?: ReadOptions): Promise<any>;
    /** Settles and writes a patch back, or throws it away. May take as long as the sand does.
     * @param {string} id @param {number} n @param {WriteOptions & {discard?: boolean}} [options]
     * @returns {Promise<any>} */
    deletePatch(id: string, n: number, options?: WriteOptions & {
        discard?: boolean;
    }): Promise<any>;
    /** @param {string} id @param {number} n @param {any} body @param {WriteOptions} [options]
     * @returns {Promise<any>} */
    postPatchBody(id: string, n: number, body: any, options?: WriteOptions): Promise<any>;
    /** @param {string} id @param {number} n @param {number} b @param {any} push velocity, impulse, …
     * @param {WriteOptions} [options] @returns {Promise<any>} */
    patchPatchBody(id: string, n: number, b: number, push: any, options?: WriteOptions): Promise<any>;
    /** @param {string} id @param {any} body that hits the ground @param {WriteOptions} [options] */
    postImpact(id: string, body: any, options?: WriteOptions): Promise<any>;
    /** @param {string} id @param {number} n @param {CallOptions} [options] */
    impact(id: string, n: number, options?: CallOptions): Promise<any>;
    /** Removes a body for good; the others keep their numbers.
     * @param {string} id @param {number} n @param {number} b @param {WriteOptions} [options]
     * @returns {Promise<any>}
     */
    deletePatchBody(id: string, n: number, b: number, options?: WriteOptions): Promise<any>;
    /** @param {string} id @param {number} n
     * @param {ReadOptions & {width?: number, height?: number}} [options]
     * @returns {Promise<ArrayBuffer>} a PNG */
    patchView(id: string, n: number, options?: ReadOptions & {
        width?: number;
        height?: number;
    }): Promise<ArrayBuffer>;
    /** What a camera sees, a PNG; waits for two minutes unless `timeoutMs` is given. @param {string} id
     * @param {ReadOptions & {camera: any, size?: [number, number], sun?: any, shadows?: boolean}} question
     * @returns {Promise<ArrayBuffer>} */
    view(id: string, question: ReadOptions & {
        camera: any;
        size?: [number, number];
        sun?: any;
        shadows?: boolean;
    }): Promise<ArrayBuffer>;
    /** The same as a link's question. @param {string} id @param {ReadOptions & {eye: any, target: any,
     * up?: any, fov_y_deg?: number, size?: any, sun?: any, shadows?: boolean}} options
     * @returns {Promise<ArrayBuffer>} */
    getView(id: string, options: ReadOptions & {
        eye: any;
        target: any;
        up?: any;
        fov_y_deg?: number;
        size?: any;
        sun?: any;
        shadows?: boolean;
    }): Promise<ArrayBuffer>;
    /** The surface of a patch as it is now, row by row from the smallest y, with its headers
     * (Kota-Rect, Kota-Grid, Kota-State). @param {string} id @param {number} n
     * @param {ReadOptions & {per_cell?: number}} [options] points a cell's side
     * @returns {Promise<Answer>} float32, little-endian */
    patchSurface(id: string, n: number, options?: ReadOptions & {
        per_cell?: number;
    }): Promise<Answer>;
    /** The granules of a patch as they are now, 9 float32 each, with its headers (Kota-Step,
     * Kota-Granules, Kota-State). With `since`, a Kota-Step, only those that moved, each after its
     * number. @param {string} id @param {number} n @param {ReadOptions & {since?: number}} [options]
     * @returns {Promise<Answer>} */
    patchGranules(id: string, n: number, options?: ReadOptions & {
        since?: number;
    }): Promise<Answer>;
    /** A block as a picture or as float32, with its headers (ETag, Kota-Scale, Kota-Offset).
     * @param {string} id @param {number} level @param {number} column @param {number} row
     * @param {ReadOptions & {format?: "png16"|"terrarium"|"f32", kind?: "sampled"|"min"|"max",
     *         layer?: string}} [options]
     * @returns {Promise<Answer>} */
    tile(id: string, level: number, column: number, row: number, options?: ReadOptions & {
        format?: "png16" | "terrarium" | "f32";
        kind?: "sampled" | "min" | "max";
        layer?: string;
    }): Promise<Answer>;
    /** A rectangle of a heightfield's samples, or every step-th of them, row by row from the smallest
     * y unless rows is north; with its headers (ETag, Kota-Rect, Kota-Scale, Kota-Offset).
     * @param {string} id @param {string} layer
     * @param {ReadOptions & {rect?: [c0: number, r0: number, cols: number, rows: number],
     *         step?: number, rows?: "south"|"north", format?: "f32"|"f64"|"r16"|"json"}} [options]
     * @returns {Promise<Answer>} float32, little-endian, unless format is another */
    samples(id: string, layer: string, options?: ReadOptions & {
        rect?: [c0: number, r0: number, cols: number, rows: number];
        step?: number;
        rows?: "south" | "north";
        format?: "f32" | "f64" | "r16" | "json";
    }): Promise<Answer>;
    /** A heightfield as a cloud-optimised GeoTIFF.
     * @param {string} id @param {string} layer
     * @param {ReadOptions & {range?: [first: number, last: number], v?: number}} [options]
     *   range: of bytes, both inclusive; v: a revision, ConflictError once it is no longer current
     * @returns {Promise<Answer>} `buffer` */
    layerTif(id: string, layer: string, options?: ReadOptions & {
        range?: [first: number, last: number];
        v?: number;
    }): Promise<Answer>;
    /** TileJSON of the locale's ground, for maps.
     * @param {string} id
     * @param {ReadOptions & {encoding?: "terrarium"|"mapbox", style?: "dem"|"relief",
     *         void?: "edge"|"zero"|"alpha", sampling?: "point"|"mean", layer?: string, v?: number}}
     *   [options]
     * @returns {Promise<any>} */
    demJson(id: string, options?: ReadOptions & {
        encoding?: "terrarium" | "mapbox";
        style?: "dem" | "relief";
        void?: "edge" | "zero" | "alpha";
        sampling?: "point" | "mean";
        layer?: string;
        v?: number;
    }): Promise<any>;
    /** A map's tile of heights (XYZ, the first row in the north).
     * @param {string} id @param {number} z @param {number} x
     * @param {string} y with its form: "5.png", "5@2x.png", "5.f32", "5.tif"
     * @param {ReadOptions & Record<string, any>} [options] as demJson
     * @returns {Promise<Answer>} */
    dem(id: string, z: number, x: number, y: string, options?: ReadOptions & Record<string, any>): Promise<Answer>;
    /** A globe's tile of heights: values on the tile's corners and between, the first row in the north.
     * @param {string} id @param {number} z @param {number} x
     * @param {string} y with its form: "5.f32"
     * @param {ReadOptions & {size?: number} & Record<string, any>} [options] as demJson
     * @returns {Promise<Answer>} */
    demGeodetic(id: string, z: number, x: number, y: string, options?: ReadOptions & {
        size?: number;
    } & Record<string, any>): Promise<Answer>;
    /** 3D Tiles 1.1 of the mesh layers; viewers ask it by themselves.
     * @param {string} id @param {ReadOptions} [options] @returns {Promise<any>}
     */
    tileset(id: string, options?: ReadOptions): Promise<any>;
    /** A layer as binary glTF: a mesh without its pose, or a heightfield.
     * @param {string} id @param {string} layer
     * @param {ReadOptions & {step?: number, v?: number}} [options]
     * @returns {Promise<Answer>} `buffer` */
    layerGlb(id: string, layer: string, options?: ReadOptions & {
        step?: number;
        v?: number;
    }): Promise<Answer>;
    /** What readers of quantized-mesh ask first; Cesium does by itself, of the folder's address.
     * @param {string} id @param {ReadOptions & {layer?: string}} [options]
     * @returns {Promise<any>} */
    terrainLayer(id: string, options?: ReadOptions & {
        layer?: string;
    }): Promise<any>;
    /** A globe's tile as a quantized mesh, y from the south.
     * @param {string} id @param {number} z @param {number} x @param {number} y
     * @param {ReadOptions & {extensions?: string, layer?: string, v?: number}} [options]
     * @returns {Promise<Answer>} */
    terrain(id: string, z: number, x: number, y: number, options?: ReadOptions & {
        extensions?: string;
        layer?: string;
        v?: number;
    }): Promise<Answer>;
    /** The tiles of a map (XYZ) that a change has touched, for `map.refreshTiles` and the like.
     * @param {FeedEvent|{locale: string, bounds: {min: number[], max: number[]}|null}} event of
     *   localeEvents or events, or its data; a `resync` touches all, a `patch` none
     * @param {number} zMin @param {number} zMax
     * @returns {Promise<{z: number, x: number, y: number}[]>} */
    tilesOf(event: FeedEvent | {
        locale: string;
        bounds: {
            min: number[];
            max: number[];
        } | null;
    }, zMin: number, zMax: number): Promise<{
        z: number;
        x: number;
        y: number;
    }[]>;
    /** One block of 257 x 257 samples as float32, row by row from the smallest y; NaN where there is
     * no ground. `tag` of an earlier tile asks only whether it has changed: `heights` is then null.
     * @param {string} locale @param {number} level @param {number} column @param {number} row
     * @param {{layer?: string, kind?: "sampled"|"min"|"max", tag?: string, signal?: AbortSignal}} [o]
     * @returns {Promise<{heights: Float32Array|null, tag: string, bytes: number}|null>} null beyond
     *   the field
     */
    tileHeights(locale: string, level: number, column: number, row: number, o?: {
        layer?: string;
        kind?: "sampled" | "min" | "max";
        tag?: string;
        signal?: AbortSignal;
    }): Promise<{
        heights: Float32Array | null;
        tag: string;
        bytes: number;
    } | null>;
    /** A copy of a locale's ground that follows the daemon and answers without a round trip, with the
     * same bits: `ground.height(x, y)`. Resolves when it can be asked. Needs kota_ground.wasm, which a
     * daemon has that was built with clang; NotFoundError without.
     * @param {string} id
     * @param {import("./kota_types.js").ReplicaOptions} [options] bounds: only this rectangle of
     *   heightfields, and out to whole tiles
     * @returns {Promise<import("./kota_replica.js").Replica>} */
    replica(id: string, options?: import("./kota_types.js").ReplicaOptions): Promise<import("./kota_replica.js").Replica>;
    /** Follows a change feed until it is closed, over lost connections: it comes back with the last
     * id, and the daemon sends what was missed or `resync`.
     * @param {string} path /v1/events, /v1/locales/{locale}/events, …/patches/{patch}/events
     * @param {{onEvent: (name: string, data: any, id: string) => void,
     *          onState?: (state: "open"|"lost"|"closed", why: string) => void,
     *          lastEventId?: string, signal?: AbortSignal}} calls
     * @returns {{close: () => void}} */
    follow(path: string, calls: {
        onEvent: (name: string, data: any, id: string) => void;
        onState?: (state: "open" | "lost" | "closed", why: string) => void;
        lastEventId?: string;
        signal?: AbortSignal;
    }): {
        close: () => void;
    };
    /** The changes of all locales, one after the other, over lost connections, until the loop is left
     * or the signal aborts. Throws what the daemon refuses.
     * @param {FeedOptions & {samples?: "f32"}} [options]
     * @returns {AsyncGenerator<FeedEvent, void, void>} */
    events(options?: FeedOptions & {
        samples?: "f32";
    }): AsyncGenerator<FeedEvent, void, void>;
    /** The changes of one locale: those that meet `bounds`, of one `layer`; with samples "f32" or as
     * binary frames `data.samples` has the changed samples (Float32Array, null: ask `samples`).
     * Frames begin with `hello`, and have `data.polygons` as bytes (proto/feed.md).
     * @param {string} id @param {LocaleFeedOptions} [options]
     * @returns {AsyncGenerator<FeedEvent, void, void>} */
    localeEvents(id: string, options?: LocaleFeedOptions): AsyncGenerator<FeedEvent, void, void>;
    /** States of a patch and poses of its bodies; with `granules`, values a second, those that moved:
     * `data.granules` is {count, step, numbers, values}. @param {string} id @param {number} n
     * @param {FeedOptions & {granules?: number}} [options] @returns {AsyncGenerator<FeedEvent, void, void>} */
    patchEvents(id: string, n: number, options?: FeedOptions & {
        granules?: number;
    }): AsyncGenerator<FeedEvent, void, void>;
    /** Standing questions about a locale; `watchEvents` has their answers.
     * @param {string} id @param {any} questions bodies of calls, each with `ids`
     * @returns {Promise<any>} */
    postWatch(id: string, questions: any): Promise<any>;
    /** @param {string} watch @param {any} change with add, remove @returns {Promise<any>} */
    patchWatch(watch: string, change: any): Promise<any>;
    /** @param {string} watch @returns {Promise<any>} */
    deleteWatch(watch: string): Promise<any>;
    /** All answers of a watch, then those that change. @param {string} watch
     * @param {FeedOptions} [options] @returns {AsyncGenerator<FeedEvent, void, void>} */
    watchEvents(watch: string, options?: FeedOptions): AsyncGenerator<FeedEvent, void, void>;
    #private;
}
export type Asked = import("./kota_types.js").Asked;
export type CallOptions = import("./kota_types.js").CallOptions;
export type ReadOptions = import("./kota_types.js").ReadOptions;
export type Pin = import("./kota_types.js").Pin;
export type Past = import("./kota_types.js").Past;
export type Revert = import("./kota_types.js").Revert;
export type Reverted = import("./kota_types.js").Reverted;
export type GroundOptions = import("./kota_types.js").GroundOptions;
export type WriteOptions = import("./kota_types.js").WriteOptions;
export type LayerOptions = import("./kota_types.js").LayerOptions;
export type Floats = import("./kota_types.js").Floats;
export type Interp = import("./kota_types.js").Interp;
export type Shape = import("./kota_types.js").Shape;
export type TouchItem = import("./kota_types.js").TouchItem;
export type MoveQuestion = import("./kota_types.js").MoveQuestion;
export type MovedItem = import("./kota_types.js").MovedItem;
export type Reach = import("./kota_types.js").Reach;
export type InWorld = import("./kota_types.js").InWorld;
export type FeedEvent = import("./kota_types.js").FeedEvent;
export type FeedOptions = import("./kota_types.js").FeedOptions;
export type LocaleFeedOptions = import("./kota_types.js").LocaleFeedOptions;
export type Manifest = import("./kota_types.js").Manifest;
export type Locale = import("./kota_types.js").Locale;
export type ListedLocale = import("./kota_types.js").ListedLocale;
export type PolygonsChanged = import("./kota_types.js").PolygonsChanged;
export type HeightItem = import("./kota_types.js").HeightItem;
export type Contact = import("./kota_types.js").Contact;
export type ContactItem = import("./kota_types.js").ContactItem;
export type Hinted = import("./kota_types.js").Hinted;
export type Ray = import("./kota_types.js").Ray;
export type RayItem = import("./kota_types.js").RayItem;
export type Results<T> = import("./kota_types.js").Results<T>;
import { Answer } from "./kota_answer.js";
import { KotaError } from "./kota_answer.js";
export { Answer, BadInputError, BusyError, ConflictError, ConnectionError, KotaError, NotFoundError, RightsError, ServerError, TimeoutError, TooLargeError, curlLine } from "./kota_answer.js";
