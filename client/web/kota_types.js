/**
 * The shapes that kota.js takes and gives, for editors and type checkers: nothing here runs, and
 * kota.js does not load it. The whole truth about them is in /openapi.json.
 *
 * @module kota_types
 */

/**
 * @typedef {object} Asked
 * @property {string} method
 * @property {string} url       absolute
 * @property {Record<string, string>} headers   without the token
 * @property {string|null} body text, or null when it is binary or absent
 * @property {number} bytes     of the body
 */

/**
 * @typedef {object} CallOptions
 * @property {any} [json]          body, as JSON
 * @property {ArrayBuffer|ArrayBufferView|string} [body]  body, as it is
 * @property {string} [type]       its media type
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 * @property {number} [timeoutMs]  of the call with all its tries and pauses
 * @property {boolean} [quiet]     not reported to onCall
 * @property {boolean} [repeatable] it may be sent again although it is no GET
 */

/**
 * What every read takes, beside what the call asks.
 * @typedef {object} ReadOptions
 * @property {AbortSignal} [signal]
 * @property {number} [timeoutMs]
 * @property {boolean} [quiet]
 * @property {number} [minRevision] wait until the daemon has applied this revision of the locale
 */

/**
 * What a question about the ground of a locale takes, too.
 * @typedef {ReadOptions & {live?: boolean|"here", at?: string|number}} GroundOptions
 *   live: with the surface of its patches that live; "here": of those of this daemon
 *   at: as it was, by the name of a pin or a revision that is held
 */

/**
 * A value of a locale that is kept under a name.
 * @typedef {{locale?: string, name: string, revision: number, memory_bytes: number}} Pin
 */

/**
 * A revision, in the history.
 * @typedef {{revision: number, author: string|null, note: string|null, rect: number[]|null, time: string,
 *   layer: string|null, source: string}} Past
 */

/**
 * What a revert takes back: after a revision or a time, of one author or of all, in all of a layer or
 * in [c0, r0, cols, rows]. Where others edited later: "keep" (what is not said) or "overwrite".
 * @typedef {{since?: number|string, to_revision?: number, author?: string, rect?: number[], layer?: string,
 *   conflicts?: "keep"|"overwrite"}} Revert
 */

/**
 * @typedef {{locale: string, revision: number, rect: number[]|null, conflicts: number[][],
 *   not_reverted: number[]}} Reverted
 */

/**
 * What every write takes.
 * @typedef {object} WriteOptions
 * @property {AbortSignal} [signal]
 * @property {number} [timeoutMs]
 * @property {boolean} [quiet]
 * @property {string} [note]             why, for the history
 * @property {number|"*"} [ifMatch]      only if the locale is at this revision; "*": if it is there
 * @property {boolean} [ifNew]           only if it is not there yet
 * @property {string|false} [idempotencyKey] a fresh key unless given; a repeat changes nothing and
 *                                       has the first answer; false: none, and it is sent once
 */

/**
 * What a file of polygons means.
 * @typedef {object} LayerOptions
 * @property {"ground"|"ceiling"} [role]
 * @property {"z"|"y"} [up]             the file's own upward axis
 * @property {number} [scale]           metres a unit of the file
 * @property {"cartesian"|"spherical"|"cylindrical"} [frame] what gravity runs along
 * @property {"in"|"out"} [gravity]     which way; in on a planet, out in a drum unless said
 */

/** @typedef {Float32Array|Float64Array} Floats */

/**
 * A moved shape: a radius; a radius and the whole height along up; half extents and yaw in degrees.
 * @typedef {{sphere: number}|{capsule: number[]}|{box: number[]}} Shape
 */

/**
 * @typedef {"triangle"|"bilinear"|"nearest"} Interp
 * @typedef {{reach_up?: number, max_distance?: number, clearance?: number,
 *   clearance_mode?: "at_least"|"exact"}} Reach
 * @typedef {{hint?: "unknown"}} Hinted the hint names no locale and was ignored
 * @typedef {{locale: string|null, revision: number|null}} InWorld
 * @typedef {{name: string, data: any, id: string}} FeedEvent
 * @typedef {{lastEventId?: string, signal?: AbortSignal,
 *   onState?: (state: "open"|"lost"|"closed", why: string) => void}} FeedOptions
 * @typedef {FeedOptions & {bounds?: [x0: number, y0: number, x1: number, y1: number], layer?: string,
 *   samples?: "f32", binary?: boolean}} LocaleFeedOptions
 */

/** @template T @typedef {{locale: string, revision: number, results: T[]}} Results */

/**
 * @typedef {object} Manifest
 * @property {string|null} [title]
 * @property {number[]} [gravity]  unit vector
 * @property {{translation?: number[], rotation?: number[]}} [placement]
 * @property {boolean} [open_sky]
 * @property {"anti"|"main"|"alternating"} [triangulation]
 * @property {{lat: number, lng: number}} [geo]
 * @property {string} [crs]  "EPSG:32633"
 */

/**
 * @typedef {object} Locale
 * @property {string} id
 * @property {string|null} title
 * @property {number} revision
 * @property {string} [from]  of a fork: "arena@start"
 * @property {number} [from_revision]
 * @property {number[]} gravity
 * @property {{translation: number[], rotation: number[]}} placement
 * @property {{min: number[], max: number[]}|null} bounds
 * @property {boolean} open_sky
 * @property {"anti"|"main"|"alternating"} triangulation
 * @property {{lat: number, lng: number}} [geo]
 * @property {string} [crs]
 * @property {any[]} layers
 * @property {number} memory_bytes
 */

/** @typedef {WriteOptions & {title?: string, placement?: Manifest["placement"]}} ForkOptions */

/**
 * As a list has it: layers only where they were asked for.
 * @typedef {Omit<Locale, "layers"> & {layers?: any[]}} ListedLocale
 */

/**
 * The locale, and the numbers that polygons have: null where nothing is left of an added one.
 * @typedef {Locale & {import: {kept: number, split: number, dropped: number,
 *   instances_shared: number, instances_copied: number,
 *   reasons?: Record<string, number>, dropped_polygons?: {polygon: number, reason: string}[]},
 *   layer: string,
 *   added: (number|null)[], removed: number[], polygons: number}} PolygonsChanged
 */

/**
 * @typedef {object} HeightItem
 * @property {"ok"|"hole"|"outside"} status
 * @property {number|null} height
 * @property {number[]|null} [normal]
 * @property {number[]|null} [cell]
 */

/**
 * @typedef {object} Contact
 * @property {number[]} point
 * @property {number} distance  along gravity
 * @property {number[]} normal
 * @property {number} slope_deg
 * @property {string|null} layer  null: a living body
 * @property {{patch: number, number: number}} [body]  of a patch, with live: true
 * @property {number[]|null} cell
 * @property {number|null} polygon
 * @property {number[]} [velocity]  of a layer that was moved, and of a body, m/s
 */

/**
 * @typedef {object} ContactItem
 * @property {"ok"|"below"|"hole"|"too_far"|"outside"|"absent"} status  absent: only of a replica with bounds
 * @property {Contact|null} floor  exactly when the status is ok
 * @property {Contact|null} ceiling
 * @property {number[]|null} [placed]
 */

/** @typedef {{origin: number[], direction: number[], t_max?: number}} Ray */

/**
 * @typedef {object} RayItem
 * @property {"hit"|"miss"|"invalid"|"absent"} status  absent: only of a replica with bounds
 * @property {string} [detail]
 * @property {number|null} t in lengths of the direction
 * @property {number|null} distance in metres
 * @property {number[]|null} point
 * @property {number[]|null} normal
 * @property {string|null} layer  null: a miss, or a living body
 * @property {{patch: number, number: number}} [body]  of a patch, with live: true
 * @property {number[]|null} cell
 * @property {number|null} triangle
 * @property {number|null} polygon
 * @property {number[]} [velocity]  of a layer that was moved, m/s
 * @property {any} [trace]
 */

/**
 * @typedef {{visible: boolean|null, fraction: number|null, point: number[]|null}} SightItem
 *   visible null: a replica that has not all of the ground between
 * @typedef {{bounds?: [x0: number, y0: number, x1: number, y1: number], signal?: AbortSignal}} ReplicaOptions
 *
 * @typedef {{point: number[]|null, normal: number[]|null, layer: string|null, cell: number[]|null,
 *   triangle: number|null, polygon: number|null, velocity?: number[]}} SurfaceItem
 * @typedef {SurfaceItem & {status?: "absent", fraction: number|null, starts_inside: boolean}} TouchItem
 * @typedef {{shape: Shape, from: number[], velocity: number[], dt: number, slope_max_deg?: number,
 *   step_up?: number, snap_down?: number, claimed?: number[]}} MoveQuestion
 * @typedef {{status?: "absent", to: number[]|null, grounded: boolean,
 *   floor: (SurfaceItem & {slope_deg: number})|null, hits: SurfaceItem[], starts_inside: boolean,
 *   reachable?: boolean}} MovedItem  status, to null: a replica that has not all of the ground around
 */

export {};
