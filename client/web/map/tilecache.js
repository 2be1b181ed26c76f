/**
 * The ground as both views hold it: blocks of 257 x 257 float32 samples by place, at most so many
 * bytes of them.
 *
 * Approach: a Map in order of use is the LRU list. What is asked for twice is fetched once; a fetch
 * is no longer wanted is aborted. A few are under way at a time (browsers open six
 * connections to a host, and the change feeds hold some), the most urgent first. An edit makes
 * those blocks stale of which it touches a sample: they stay readable, and the next load asks with
 * their tag, so that an unchanged block costs a 304.
 *
 * Invariants: `bytes` is the sum over all blocks and at most `bytesMax` after each arrival; an edit
 * that is told while a fetch is under way leaves what that fetch brings stale.
 */

const SIDE = 256;
const PARALLEL = 4;
const BYTES_MAX = 96 * 1024 * 1024;
const ABSENT_BYTES = 256;
const ROUNDS_MAX = 3; // of a block that is edited while it is fetched; then it is given as stale

/**
 * A block's place; `kind` is "sampled" unless given.
 * @typedef {{locale: string, layer: string, level: number, column: number, row: number,
 *            kind?: "sampled"|"min"|"max"}} Place
 */

/** @param {Place} p @returns {string} one per place */
export function keyOf(p) {
  return `${p.locale}/${p.layer}/${p.kind ?? "sampled"}/${p.level}/${p.column}/${p.row}`;
}

/** Is a multiple of step in [first, last] and in [low, high]? */
function meets(first, last, low, high, step) {
  const from = Math.max(first, low), to = Math.min(last, high);
  return from <= to && Math.ceil(from / step) * step <= to;
}

/**
 * Does an edit change a sample of the block?
 * @param {Place} p @param {number[]|null} rect [column, row, columns, rows] of samples; null: all
 */
export function touches(p, rect) {
  if (!rect) return true;
  const step = 2 ** p.level, sampled = (p.kind ?? "sampled") === "sampled";
  const span = SIDE * step + (sampled ? 0 : step), each = sampled ? step : 1;
  const x = p.column * SIDE * step, y = p.row * SIDE * step;
  return meets(rect[0], rect[0] + rect[2] - 1, x, x + span, each) &&
    meets(rect[1], rect[1] + rect[3] - 1, y, y + span, each);
}

export class TileCache {
  /** @param {import("./kota.js").Kota} kota @param {{bytesMax?: number, parallel?: number}} [o] */
  constructor(kota, o = {}) {
    this.kota = kota;
    this.bytesMax = o.bytesMax ?? BYTES_MAX;
    this.parallel = o.parallel ?? PARALLEL;
    this.bytes = 0;
    /** Since the start, for people and tests. */
    this.counters = { requests: 0, bytesFetched: 0, unchanged: 0, aborted: 0, evicted: 0 };
    this.blocks = new Map(); // key → {place, heights, tag, stale, bytes}, oldest use first
    this.jobs = new Map(); // key → job, waiting or under way
    this.running = 0;
  }

  /**
   * What is here now, without asking. Counts as a use.
   * @param {Place} place
   * @returns {{heights: Float32Array|null, stale: boolean}|undefined} heights null: no such block
   */
  peek(place) {
    const key = keyOf(place), block = this.blocks.get(key);
    if (!block) return undefined;
    this.blocks.delete(key);
    this.blocks.set(key, block);
    return block;
  }

  /**
   * The block, fetched or asked again where it must be.
   * @param {Place} place
   * @param {{signal?: AbortSignal, urgency?: number}} [o] the greatest urgency goes first
   * @returns {Promise<{heights: Float32Array|null, stale: boolean}>} rejects with KotaError, or
   *   with the signal's reason
   */
  load(place, o = {}) {
    const block = this.peek(place);
    if (block && !block.stale) return Promise.resolve(block);
    if (o.signal?.aborted) return Promise.reject(o.signal.reason);
    const key = keyOf(place);
    let job = this.jobs.get(key);
    if (!job) {
      job = { key, place, urgency: 0, waiters: new Set(), control: new AbortController(),
        running: false };
      this.jobs.set(key, job);
    }
    job.urgency = Math.max(job.urgency, o.urgency ?? 0);
    const promise = this.#wait(job, o.signal);
    this.#next();
    return promise;
  }

  #wait(job, signal) {
    return new Promise((done, fail) => {
      const leave = () => {
        job.waiters.delete(waiter);
        fail(signal.reason);
        if (job.waiters.size === 0) this.#drop(job);
      };
      const end = (settle) => (value) => {
        signal?.removeEventListener("abort", leave);
        settle(value);
      };
      const waiter = { done: end(done), fail: end(fail) };
      job.waiters.add(waiter);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  /** Nobody waits for it any more. */
  #drop(job) {
    if (this.jobs.get(job.key) === job) this.jobs.delete(job.key);
    job.control.abort();
    this.counters.aborted++;
  }

  #next() {
    while (this.running < this.parallel) {
      let best = null;
      for (const job of this.jobs.values())
        if (!job.running && (!best || job.urgency > best.urgency)) best = job;
      if (!best) return;
      this.#run(best);
    }
  }

  async #run(job) {
    job.running = true;
    this.running++;
    try {
      let block = await this.#fetch(job);
      for (let i = 1; job.again && i < ROUNDS_MAX; i++) block = await this.#fetch(job);
      for (const waiter of job.waiters) waiter.done(block);
    } catch (error) {
      for (const waiter of job.waiters) waiter.fail(error);
    }
    this.running--;
    if (this.jobs.get(job.key) === job) this.jobs.delete(job.key);
    this.#next();
  }

  async #fetch(job) {
    const { locale, level, column, row, layer, kind } = job.place, held = this.blocks.get(job.key);
    job.again = false;
    this.counters.requests++;
    const came = await this.kota.tileHeights(locale, level, column, row,
      { layer, kind, tag: held?.tag || undefined, signal: job.control.signal });
    this.counters.bytesFetched += came?.bytes ?? 0;
    if (came && !came.heights) this.counters.unchanged++;
    const heights = came && !came.heights ? held.heights : came?.heights ?? null;
    return this.#keep(job, heights, came?.tag ?? "");
  }

  #keep(job, heights, tag) {
    const old = this.blocks.get(job.key);
    const block = { place: job.place, heights, tag, stale: Boolean(job.again),
      bytes: heights ? heights.byteLength : ABSENT_BYTES };
    this.blocks.delete(job.key);
    this.blocks.set(job.key, block);
    this.bytes += block.bytes - (old?.bytes ?? 0);
    for (const [key, oldest] of this.blocks) {
      if (this.bytes <= this.bytesMax || oldest === block) break;
      this.blocks.delete(key);
      this.bytes -= oldest.bytes;
      this.counters.evicted++;
    }
    return block;
  }

  /**
   * Tells of an edit. @param {string} locale @param {string|null} layer null: all of them
   * @param {number[]|null} rect of samples; null: everything
   */
  changed(locale, layer, rect) {
    const concerns = (p) => p.locale === locale && (!layer || p.layer === layer) &&
      touches(p, rect);
    for (const block of this.blocks.values()) if (concerns(block.place)) block.stale = true;
    for (const job of this.jobs.values()) if (job.running && concerns(job.place)) job.again = true;
  }

  /** Forgets a locale's blocks, or all. @param {string} [locale] */
  forget(locale) {
    for (const [key, block] of this.blocks) {
      if (locale !== undefined && block.place.locale !== locale) continue;
      this.blocks.delete(key);
      this.bytes -= block.bytes;
    }
  }
}

let shared = null;

/**
 * The page's one cache, which follows the change feed.
 * @param {import("./kota.js").Kota} kota @param {typeof import("./state.js").state} state
 * @returns {TileCache}
 */
export function tileCache(kota, state) {
  if (shared) return shared;
  shared = new TileCache(kota);
  state.on("changed", (changed) => {
    if (changed && state.locale)
      shared.changed(state.locale.id, changed.layer ?? null, changed.rect);
  });
  return shared;
}
