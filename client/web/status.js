/**
 * The panel of the daemon's state: every two seconds while it is open, from /v1/stats, and
 * the times that requests took from the histogram of /metrics. A counter is also shown as a
 * rate since the last look, and so are the latencies: what happened an hour ago hides nothing.
 */
import { fillTable, hiddenWords, make, onPanel, shortBytes, shortNumber, shortTime } from
  "/web/widgets.js";

const everyMs = 2000, routesShown = 8;

/**
 * Samples of a text in the Prometheus format.
 * @param {string} text @returns {Map<string, number>} by name and labels as they stand
 */
export function readMetrics(text) {
  const values = new Map();
  for (const line of text.split("\n")) {
    const at = line.lastIndexOf(" ");
    if (at > 0 && line[0] !== "#") values.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return values;
}

const bucket = /^kota_http_request_duration_seconds_bucket\{le="([^"]+)"\}$/;

/**
 * A bound that this share of the requests between two looks stayed below.
 * @param {Map<string, number>} now @param {Map<string, number>|null} before @param {number} share
 * @returns {number|null} seconds, null when there was none
 */
export function latency(now, before, share) {
  const counts = [];
  for (const [name, value] of now) {
    const match = bucket.exec(name);
    if (match) counts.push([match[1] === "+Inf" ? Infinity : Number(match[1]),
      value - (before?.get(name) ?? 0)]);
  }
  counts.sort((a, b) => a[0] - b[0]);
  const all = counts.at(-1)?.[1] ?? 0;
  return all > 0 ? counts.find(([, count]) => count >= share * all)[0] : null;
}

function belowWords(seconds) {
  if (seconds === null) return "none asked";
  return seconds === Infinity ? "above 2 s" : `below ${shortTime(seconds)}`;
}

/** Requests of each route, most first. */
function routes(metrics) {
  const counts = new Map();
  const line = /^kota_http_requests_total\{method="([^"]+)",route="([^"]+)",class="([^"]+)"\}$/;
  for (const [name, value] of metrics) {
    const match = line.exec(name);
    if (!match || value === 0) continue;
    const route = `${match[1]} ${match[2]}`, entry = counts.get(route) ?? { all: 0, bad: 0 };
    entry.all += value;
    if (match[3][0] >= "4") entry.bad += value;
    counts.set(route, entry);
  }
  return [...counts].sort((a, b) => b[1].all - a[1].all);
}

// ---- tables -------------------------------------------------------------------------------------

function daemonRows({ stats, limits }) {
  const world = stats.world;
  return [["Version", stats.version], ["State", stats.state],
    ["Up for", shortTime(stats.uptime_s)], ["Memory", shortBytes(stats.resident_bytes)],
    ["Locales", shortNumber(world.locales)],
    ["Layers", `${shortNumber(world.layers)}, of which ${world.mesh_layers} are meshes`],
    ["Memory of the ground", `${shortBytes(world.memory_bytes)} of at most ` +
      shortBytes(limits.world_bytes_max)],
    ["Damaged locales", shortNumber(world.locales_damaged)],
    ...(stats.builds ?? []).map(buildRow)];
}

/** @param {any} build of `builds` @returns {string[]} a row */
export function buildRow({ locale, layer, kind, polygons, done, elapsed_ms: elapsed }) {
  const how = polygons === null ? "its file is decoded" :
    `${Math.floor(done * 100)} % of ${shortNumber(polygons)} polygons`;
  return [`Building ${layer} of ${locale}`, `${how}, ${kind}, for ${shortTime(elapsed / 1000)}`];
}

function revisionRows({ stats, state }) {
  const world = stats.world, name = state.locale?.title || state.locale?.id;
  return [[name ? `Revision of ${name}` : "Revision", state.locale ? state.revision : "no locale"],
    ["Published", shortNumber(world.publications)],
    ["Edits", `${shortNumber(world.edits)}, ${shortNumber(world.edit_samples)} samples`],
    ["Changes refused", shortNumber(world.changes_refused)],
    ["Changes that wait", shortNumber(world.changes_queued)],
    ["Snapshots kept for readers", shortNumber(world.snapshots_retired)],
    ["Writes answered again", shortNumber(world.idempotent_repeats)]];
}

function loopRows({ stats, before, metrics, metricsBefore }) {
  const http = stats.http, ended = http.streams_ended;
  const seconds = before ? stats.uptime_s - before.uptime_s : 0;
  const rate = (name, words) => seconds > 0 ?
    `, ${words(Math.max(0, (http[name] - before.http[name]) / seconds))}/s` : "";
  const since = (share) => belowWords(latency(metrics, metricsBefore, share));
  return [["Requests", `${shortNumber(http.requests)}${rate("requests", shortNumber)}`],
    ["Half of them took", since(0.5)], ["99 of 100 took", since(0.99)],
    ["99 of 100 since the start", belowWords(latency(metrics, null, 0.99))],
    ["Bytes in", `${shortBytes(http.bytes_in)}${rate("bytes_in", shortBytes)}`],
    ["Bytes out", `${shortBytes(http.bytes_out)}${rate("bytes_out", shortBytes)}`],
    ["Connections", `${shortNumber(http.connections_open)} open, ` +
      `${shortNumber(http.connections_accepted)} accepted, ${http.connections_rejected} refused`],
    ["Streams of events", `${shortNumber(http.streams_open)} open, ` +
      `${shortNumber(http.streams_opened)} so far`],
    ["Streams that fell behind", shortNumber(ended.behind + ended.stalled)],
    ["Time-outs", shortNumber(http.timeouts)], ["Not HTTP", shortNumber(http.parse_errors)],
    ["Tiles from memory", `${shortNumber(stats.tile_cache.hits)} of ` +
      `${shortNumber(stats.tile_cache.hits + stats.tile_cache.misses)}`],
    ["Tiles kept",
      `${shortNumber(stats.tile_cache.tiles)}, ${shortBytes(stats.tile_cache.bytes)}`]];
}

/** What each loop did since the last look: a connection stays with the loop that took it. */
function eachLoopRows({ stats, before }) {
  const seconds = before ? stats.uptime_s - before.uptime_s : 0;
  return (stats.loops ?? []).map((loop, i) => {
    const old = before?.loops?.[i], asked = loop.requests - (old?.requests ?? 0);
    const mean = (loop.latency_us_sum - (old?.latency_us_sum ?? 0)) / asked / 1e6;
    const rate = old && seconds > 0 ? `, ${shortNumber(Math.max(0, asked / seconds))}/s` : "";
    const took = asked > 0 ? `, ${shortTime(Math.max(0, mean))} each` : "";
    return [`Loop ${i + 1}`, `${shortNumber(loop.requests)} requests${rate}${took}`,
      `${loop.connections_open} connections, ${loop.streams_open} streams, ` +
      `${shortBytes(loop.bytes_out)} out, ${loop.timeouts} time-outs, ${loop.shed} refused`];
  });
}

function patchRows({ stats }) {
  const patches = stats.patches, device = patches.device;
  const rows = [["Device", device.name ?? "none"]];
  if (device.reason) rows.push(["Why", device.reason]);
  if (device.engine) {
    rows.push(["Granules",
      `${device.material}, at most ${shortNumber(device.granules_max)} a patch`],
      ["Lost and made again", shortNumber(device.rebuilds)]);
    for (const [scale, of] of Object.entries(patches.scales)) {
      if (of.slots === 0) continue;
      const stepMs = of.integrate_ms + of.grid_ms + of.force_ms + of.depth_ms;
      rows.push([`Of ${scale} granules`, `${of.used} of ${of.slots} in use, ` +
        `${shortNumber(of.steps)} steps, the last in ${shortTime(stepMs / 1000)}`]);
    }
  }
  const now = Object.entries(patches.states).filter(([, count]) => count > 0);
  rows.push(["Now", now.map(([name, count]) => `${count} ${name}`).join(", ") || "no patch"],
    ["So far", `${patches.made} made, ${patches.written} written, ` +
      `${patches.discarded} discarded, ${patches.failed} failed`]);
  return rows;
}

function storeRows({ stats: { store } }) {
  if (!store) return [["Store", "no data directory: changes last until the daemon ends"]];
  const rows = [["Takes writes", store.read_only ? `no: ${store.reason}` : "yes"],
    ["Database", shortBytes(store.database_bytes)],
    ["Log", `${shortBytes(store.wal_bytes)} of at most ${shortBytes(store.wal_bytes_max)}`],
    ["Commits", shortNumber(store.commits)], ["Checkpoints", shortNumber(store.checkpoints)],
    ["Checkpoints held up", shortNumber(store.checkpoints_blocked)],
    ["In the log alone",
      `${shortNumber(store.behind_tiles)} tiles, ${shortBytes(store.behind_bytes)}`]];
  return rows;
}

const sections = [["daemon", "Daemon", daemonRows], ["loops", "Loops and latencies", loopRows],
  ["each-loop", "Each loop", eachLoopRows],
  ["revisions", "Revisions", revisionRows], ["patches", "Sand", patchRows],
  ["store", "Store", storeRows]];

function drawRoutes(table, metrics) {
  const list = routes(metrics);
  const rows = list.slice(0, routesShown).map(([route, { all, bad }]) =>
    [route, bad ? `${shortNumber(all)}, ${shortNumber(bad)} refused` : shortNumber(all)]);
  fillTable(table, rows);
}

/** @param {import("/web/kota.js").Kota} kota @param {typeof import("/web/state.js").state} state */
export function start(kota, state) {
  const note = make("p", { id: "status-note", role: "status" }, "Not asked yet.");
  const tables = new Map(), panel = document.getElementById("panel-status");
  panel.append(note);
  for (const [id, words] of [...sections, ["routes", "What is asked most"]]) {
    tables.set(id, make("table", { id: `status-${id}` }));
    panel.append(make("h2", {}, words), tables.get(id));
  }
  let timer = 0, control = null, limits = null, before = null, metricsBefore = null;

  async function look(signal) {
    const options = { quiet: true, signal };
    limits ??= (await kota.get("/v1/limits", options)).json;
    const stats = (await kota.get("/v1/stats", options)).json;
    const metrics = readMetrics((await kota.get("/metrics", options)).text);
    const seen = { stats, limits, state, before, metrics, metricsBefore };
    for (const [id, , rows] of sections) fillTable(tables.get(id), rows(seen));
    drawRoutes(tables.get("routes"), metrics);
    before = stats;
    metricsBefore = metrics;
    note.className = "quiet";
    note.textContent = `As of ${new Date().toLocaleTimeString()}, again every ${everyMs / 1000} s.`;
  }

  async function turn(own) {
    try {
      await look(own.signal);
    } catch (error) {
      if (own.signal.aborted) return;
      note.className = "bad";
      const why = error instanceof TypeError ?
        `This daemon tells other numbers than this page knows (${error.message}).` : error.message;
      note.textContent = hiddenWords(error) ?? why;
      if (before) note.textContent += " What stands below is old.";
    }
    if (!own.signal.aborted) timer = setTimeout(() => turn(own), everyMs);
  }

  onPanel("panel-status", (isOpen) => {
    clearTimeout(timer);
    control?.abort(new DOMException("the panel is closed", "AbortError"));
    control = isOpen ? new AbortController() : null;
    if (control) turn(control);
  });
}
