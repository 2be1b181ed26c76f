export type Asked = {
    method: string;
    /**
     * absolute
     */
    url: string;
    /**
     * without the token
     */
    headers: Record<string, string>;
    /**
     * text, or null when it is binary or absent
     */
    body: string | null;
    /**
     * of the body
     */
    bytes: number;
};
export type CallOptions = {
    /**
     * body, as JSON
     */
    json?: any;
    /**
     * body, as it is
     */
    body?: string | ArrayBuffer | ArrayBufferView<ArrayBufferLike> | undefined;
    /**
     * its media type
     */
    type?: string | undefined;
    headers?: Record<string, string> | undefined;
    signal?: AbortSignal | undefined;
    /**
     * of the call with all its tries and pauses
     */
    timeoutMs?: number | undefined;
    /**
     * not reported to onCall
     */
    quiet?: boolean | undefined;
    /**
     * it may be sent again although it is no GET
     */
    repeatable?: boolean | undefined;
};
/**
 * What every read takes, beside what the call asks.
 */
export type ReadOptions = {
    signal?: AbortSignal | undefined;
    timeoutMs?: number | undefined;
    quiet?: boolean | undefined;
    /**
     * wait until the daemon has applied this revision of the locale
     */
    minRevision?: number | undefined;
};
/**
 * live: with the surface of its patches that live; "here": of those of this daemon
 * at: as it was, by the name of a pin or a revision that is held
 */
export type GroundOptions = ReadOptions & {
    live?: boolean | "here";
    at?: string | number;
};
/**
 * A value of a locale that is kept under a name.
 */
export type Pin = {
    locale?: string;
    name: string;
    revision: number;
    memory_bytes: number;
};
/**
 * A revision, in the history.
 */
export type Past = {
    revision: number;
    author: string | null;
    note: string | null;
    rect: number[] | null;
    time: string;
    layer: string | null;
    source: string;
};
/**
 * What a revert takes back: after a revision or a time, of one author or of all, in all of a layer or
 * in [c0, r0, cols, rows]. Where others edited later: "keep" (what is not said) or "overwrite".
 */
export type Revert = {
    since?: number | string;
    to_revision?: number;
    author?: string;
    rect?: number[];
    layer?: string;
    conflicts?: "keep" | "overwrite";
};
export type Reverted = {
    locale: string;
    revision: number;
    rect: number[] | null;
    conflicts: number[][];
    not_reverted: number[];
};
/**
 * What every write takes.
 */
export type WriteOptions = {
    signal?: AbortSignal | undefined;
    timeoutMs?: number | undefined;
    quiet?: boolean | undefined;
    /**
     * why, for the history
     */
    note?: string | undefined;
    /**
     * only if the locale is at this revision; "*": if it is there
     */
    ifMatch?: number | "*" | undefined;
    /**
     * only if it is not there yet
     */
    ifNew?: boolean | undefined;
    /**
     * a fresh key unless given; a repeat changes nothing and
     * has the first answer; false: none, and it is sent once
     */
    idempotencyKey?: string | false | undefined;
};
/**
 * What a file of polygons means.
 */
export type LayerOptions = {
    role?: "ground" | "ceiling" | undefined;
    /**
     * the file's own upward axis
     */
    up?: "z" | "y" | undefined;
    /**
     * metres a unit of the file
     */
    scale?: number | undefined;
    /**
     * what gravity runs along
     */
    frame?: "cartesian" | "spherical" | "cylindrical" | undefined;
    /**
     * which way; in on a planet, out in a drum unless said
     */
    gravity?: "in" | "out" | undefined;
};
export type Floats = Float32Array | Float64Array;
/**
 * A moved shape: a radius; a radius and the whole height along up; half extents and yaw in degrees.
 */
export type Shape = {
    sphere: number;
} | {
    capsule: number[];
} | {
    box: number[];
};
export type Interp = "triangle" | "bilinear" | "nearest";
export type Reach = {
    reach_up?: number;
    max_distance?: number;
    clearance?: number;
    clearance_mode?: "at_least" | "exact";
};
/**
 * the hint names no locale and was ignored
 */
export type Hinted = {
    hint?: "unknown";
};
export type InWorld = {
    locale: string | null;
    revision: number | null;
};
export type FeedEvent = {
    name: string;
    data: any;
    id: string;
};
export type FeedOptions = {
    lastEventId?: string;
    signal?: AbortSignal;
    onState?: (state: "open" | "lost" | "closed", why: string) => void;
};
export type LocaleFeedOptions = FeedOptions & {
    bounds?: [x0: number, y0: number, x1: number, y1: number];
    layer?: string;
    samples?: "f32";
    binary?: boolean;
};
export type Results<T> = {
    locale: string;
    revision: number;
    results: T[];
};
export type Manifest = {
    title?: string | null | undefined;
    /**
     * unit vector
     */
    gravity?: number[] | undefined;
    placement?: {
        translation?: number[];
        rotation?: number[];
    } | undefined;
    open_sky?: boolean | undefined;
    triangulation?: "anti" | "main" | "alternating" | undefined;
    geo?: {
        lat: number;
        lng: number;
    } | undefined;
    /**
     * "EPSG:32633"
     */
    crs?: string | undefined;
};
export type Locale = {
    id: string;
    title: string | null;
    revision: number;
    /**
     * of a fork: "arena@start"
     */
    from?: string | undefined;
    from_revision?: number | undefined;
    gravity: number[];
    placement: {
        translation: number[];
        rotation: number[];
    };
    bounds: {
        min: number[];
        max: number[];
    } | null;
    open_sky: boolean;
    triangulation: "anti" | "main" | "alternating";
    geo?: {
        lat: number;
        lng: number;
    } | undefined;
    crs?: string | undefined;
    layers: any[];
    memory_bytes: number;
};
export type ForkOptions = WriteOptions & {
    title?: string;
    placement?: Manifest["placement"];
};
/**
 * As a list has it: layers only where they were asked for.
 */
export type ListedLocale = Omit<Locale, "layers"> & {
    layers?: any[];
};
/**
 * The locale, and the numbers that polygons have: null where nothing is left of an added one.
 */
export type PolygonsChanged = Locale & {
    import: {
        kept: number;
        split: number;
        dropped: number;
        instances_shared: number;
        instances_copied: number;
        reasons?: Record<string, number>;
        dropped_polygons?: {
            polygon: number;
            reason: string;
        }[];
    };
    layer: string;
    added: (number | null)[];
    removed: number[];
    polygons: number;
};
export type HeightItem = {
    status: "ok" | "hole" | "outside";
    height: number | null;
    normal?: number[] | null | undefined;
    cell?: number[] | null | undefined;
};
export type Contact = {
    point: number[];
    /**
     * along gravity
     */
    distance: number;
    normal: number[];
    slope_deg: number;
    /**
     * null: a living body
     */
    layer: string | null;
    /**
     * of a patch, with live: true
     */
    body?: {
        patch: number;
        number: number;
    } | undefined;
    cell: number[] | null;
    polygon: number | null;
    /**
     * of a layer that was moved, and of a body, m/s
     */
    velocity?: number[] | undefined;
};
export type ContactItem = {
    /**
     * absent: only of a replica with bounds
     */
    status: "ok" | "below" | "hole" | "too_far" | "outside" | "absent";
    /**
     * exactly when the status is ok
     */
    floor: Contact | null;
    ceiling: Contact | null;
    placed?: number[] | null | undefined;
};
export type Ray = {
    origin: number[];
    direction: number[];
    t_max?: number;
};
export type RayItem = {
    /**
     * absent: only of a replica with bounds
     */
    status: "hit" | "miss" | "invalid" | "absent";
    detail?: string | undefined;
    /**
     * in lengths of the direction
     */
    t: number | null;
    /**
     * in metres
     */
    distance: number | null;
    point: number[] | null;
    normal: number[] | null;
    /**
     * null: a miss, or a living body
     */
    layer: string | null;
    /**
     * of a patch, with live: true
     */
    body?: {
        patch: number;
        number: number;
    } | undefined;
    cell: number[] | null;
    triangle: number | null;
    polygon: number | null;
    /**
     * of a layer that was moved, m/s
     */
    velocity?: number[] | undefined;
    trace?: any;
};
/**
 * visible null: a replica that has not all of the ground between
 */
export type SightItem = {
    visible: boolean | null;
    fraction: number | null;
    point: number[] | null;
};
export type ReplicaOptions = {
    bounds?: [x0: number, y0: number, x1: number, y1: number];
    signal?: AbortSignal;
};
export type SurfaceItem = {
    point: number[] | null;
    normal: number[] | null;
    layer: string | null;
    cell: number[] | null;
    triangle: number | null;
    polygon: number | null;
    velocity?: number[];
};
export type TouchItem = SurfaceItem & {
    status?: "absent";
    fraction: number | null;
    starts_inside: boolean;
};
export type MoveQuestion = {
    shape: Shape;
    from: number[];
    velocity: number[];
    dt: number;
    slope_max_deg?: number;
    step_up?: number;
    snap_down?: number;
    claimed?: number[];
};
/**
 * status, to null: a replica that has not all of the ground around
 */
export type MovedItem = {
    status?: "absent";
    to: number[] | null;
    grounded: boolean;
    floor: (SurfaceItem & {
        slope_deg: number;
    }) | null;
    hits: SurfaceItem[];
    starts_inside: boolean;
    reachable?: boolean;
};
