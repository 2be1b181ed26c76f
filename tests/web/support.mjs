/**
 * What the tests of the inspector share: daemons of their own, pages in Chromium, and a check that
 * prints TAP. inspect.mjs runs them; a file of cases exports `async run(page, daemon, check)` for make
 * test, and a `rest` like it for make test-all.
 *
 *   page     a Playwright page that shows the daemon's inspector, ready
 *   daemon   {url, kota, folder, log(), stop()} of a kotad on the demo world; kota is a client
 *   check    check(ok, "a sentence", detail): one result; also equal, near, skip, shot, expect
 *
 * Programs come from $KOTA_BIN_DIR (build/release), pictures go to its folder web/. Chromium is
 * $KOTA_CHROMIUM or the first of the usual names in $PATH. KOTA_TEST_SLOW_PAGE=20 slows each page's
 * scripts by so much, as a busy machine does: it finds tests that depend on a quick page.
 */
import { execFile, spawn } from "node:child_process";
import { accessSync, constants, mkdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Kota } from "../../client/web/kota.js";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const binaries = resolve(root, process.env.KOTA_BIN_DIR ?? "build/release");
export const pictures = join(binaries, "web");
/** The limit for what takes a processor many seconds. */
export const hangMs = 900000;
// Long: on a machine that has little time for a browser what takes a second takes a minute.
const limitMs = 300000, startLimitMs = limitMs, stopLimitMs = limitMs;

/** Waits. @param {number} ms */
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/**
 * Asks until it is so.
 * @param {() => any} ask may be async; its first true answer is returned
 * @param {string} what said when it never was
 * @param {number} [limit] milliseconds
 */
export async function until(ask, what, limit = limitMs) {
  const end = Date.now() + limit;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`not within ${limit / 1000} s: ${what}`);
    await pause(50);
  }
}

// ---- programs -----------------------------------------------------------------------------------

/** The first of these programs in $PATH, or null. @param {string[]} names */
function find(names) {
  for (const name of names) {
    for (const folder of (process.env.PATH ?? "").split(delimiter)) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // the next one
      }
    }
  }
  return null;
}

/** Path of a Chromium, or null. */
export function chromiumPath() {
  return process.env.KOTA_CHROMIUM ||
    find(["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]);
}

/**
 * The demo world, small.
 * @param {string} folder to make
 * @param {number} [side] samples of a heightfield's side
 */
export async function makeWorld(folder, side = 256) {
  await promisify(execFile)(join(binaries, "kota-worldgen"),
    ["demo", folder, "--size", String(side), "--threads", "2"]);
}

/** No setting of whoever runs the tests reaches a daemon. */
function cleanEnvironment() {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("KOTA_"));
  return { ...Object.fromEntries(kept), KOTA_GPU: "off" };
}

/**
 * Starts a kotad on a free port of loopback, in a folder of its own.
 * @param {string[]} args beyond --listen and --port-file
 * @returns {Promise<{url: string, kota: any, folder: string, log: () => string, stop: () => any}>}
 */
export async function startDaemon(args) {
  const folder = await mkdtemp(join(tmpdir(), "kota-web-"));
  const portFile = join(folder, "port");
  let said = "";
  const child = spawn(join(binaries, "kotad"),
    ["--listen", "127.0.0.1:0", "--port-file", portFile, ...args],
    { cwd: folder, env: cleanEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => { said += text; });
  const ended = new Promise((done) => {
    child.on("error", (error) => done(error.message));
    child.on("exit", (code, signal) => done(code ?? signal));
  });
  let end = null;
  ended.then((how) => { end = how; });
  const port = await until(() => {
    if (end !== null) throw new Error(`kotad ended with ${end}: ${said.slice(-2000)}`);
    try {
      return Number(readFileSync(portFile, "utf8"));
    } catch {
      return 0;
    }
  }, "a port file", startLimitMs);
  const url = `http://127.0.0.1:${port}`;
  const kota = new Kota(url, { timeoutMs: limitMs });
  await until(() => kota.get("/readyz", { quiet: true }).catch(() => null), "ready", startLimitMs);

  /** SIGTERM; what it exited with, which should be 0. */
  const stop = async () => {
    if (end === null) child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), stopLimitMs);
    const how = await ended;
    clearTimeout(late);
    await rm(folder, { recursive: true, force: true });
    return how;
  };
  return { url, kota, folder, log: () => said, stop };
}

// ---- the browser --------------------------------------------------------------------------------

const flags = ["--no-sandbox", "--disable-quic", "--no-first-run", "--use-gl=angle",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const swiftshader = ["--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"];
/** WebGL by the machine's own OpenGL: a GPU, else Mesa's llvmpipe. */
export const ownGl = ["--use-angle=gl-egl", "--ignore-gpu-blocklist"];

/** The viewport of a page that asks for no other. */
export const desktop = { width: 1280, height: 800 };

/** Chromium with software WebGL, or another. @param {any} chromium Playwright's */
export function openBrowser(chromium, gl = swiftshader) {
  return chromium.launch({ executablePath: chromiumPath(), headless: true, args: [...flags, ...gl],
    timeout: limitMs });
}

/**
 * A page of its own context that shows the inspector, once that is ready.
 * @param {any} browser @param {string} url @param {Check} check hears what the console says
 * @param {object} [options] of Playwright's newContext; `ready: false` does not wait, `before` runs
 *   in the page ahead of its own scripts
 */
export async function openPage(browser, url, check, { ready = true, before, ...options } = {}) {
  const context = await browser.newContext({ viewport: desktop, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(limitMs);
  if (process.env.KOTA_TEST_SLOW_PAGE)
    await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate",
      { rate: Number(process.env.KOTA_TEST_SLOW_PAGE) });
  page.on("console", (said) => {
    // the browser fetches a page's icon when it likes: on a busy machine after the daemon has ended, or
    // after the page has gone to about:blank
    if (said.location().url.endsWith("/icon.svg") && said.text().includes("net::ERR_")) return;
    if (said.text().includes("/icon.svg' from origin 'null'")) return;
    if (said.type() === "error") check.heard(`${said.text()} (${said.location().url})`);
  });
  page.on("pageerror", (error) => check.heard(`uncaught: ${error.stack ?? error.message}`));
  if (before) await page.addInitScript(before);
  await page.goto(url);
  if (ready) await isReady(page);
  return page;
}

/** Waits for the inspector; a page that draws for many seconds may read an answer as late as that. */
async function isReady(page) {
  await page.waitForSelector('html[data-ready="yes"]', { state: "attached" });
  await page.evaluate(async (ms) => { (await import("/web/main.js")).kota.timeoutMs = ms; }, limitMs);
}

/** Goes to an address anew, also where only what follows # differs; ends when the page is ready. */
export async function visit(page, url) {
  await page.goto("about:blank");
  await page.goto(url);
  await isReady(page);
}

/** Another locale in the page as it is: shaders are not compiled again. It may be new. */
export function go(page, locale) {
  return page.evaluate(async (id) => {
    location.hash = id;
    await (await import("/web/main.js")).openWorld();
  }, locale);
}

/** For cases that are not about shadows: where the processor draws, these take most of a frame. */
export function setShadows(page, isOn) {
  return page.evaluate(async (shadows) => {
    const { state } = await import("/web/state.js");
    state.set("layersShown", { ...state.layersShown, shadows });
  }, isOn);
}

// ---- results ------------------------------------------------------------------------------------

/** Makes the function that counts results and prints them as TAP. */
export function makeCheck() {
  let count = 0, failed = 0, part = "", heard = [], allowed = [];

  function told(ok, sentence, detail) {
    count++;
    if (!ok) failed++;
    console.log(`${ok ? "ok" : "not ok"} ${count} - ${part}: ${sentence}`);
    if (ok || detail === undefined) return;
    const text = typeof detail === "string" ? detail : JSON.stringify(detail);
    for (const line of text.split("\n").slice(0, 40)) console.log(`# ${line.slice(0, 2000)}`);
  }

  /** One result. @param {any} ok @param {string} sentence @param {any} [detail] */
  const check = (ok, sentence, detail) => told(Boolean(ok), sentence, detail);
  check.equal = (got, want, sentence) => told(
    JSON.stringify(got) === JSON.stringify(want), sentence,
    `got ${JSON.stringify(got)}, expected ${JSON.stringify(want)}`);
  check.near = (got, want, tolerance, sentence) => told(Math.abs(got - want) <= tolerance, sentence,
    `got ${got}, expected ${want} within ${tolerance}`);
  check.skip = (sentence, why) =>
    console.log(`ok ${++count} - ${part}: ${sentence} # SKIP ${why}`);
  check.note = (text) => console.log(`# ${text}`);
  check.isPictured = true; // are pictures kept?
  /** A picture of the page, or of what options name, as an artefact: {pictures}/NAME.png. */
  check.shot = async (page, name, options = {}) => {
    if (!check.isPictured) return;
    mkdirSync(pictures, { recursive: true });
    await page.screenshot({ path: join(pictures, `${name}.png`), ...options });
  };
  /** The console may say this from now on: what a case provokes. @param {RegExp} pattern */
  check.expect = (pattern) => allowed.push(pattern);
  check.heard = (text) => {
    if (!allowed.some((pattern) => pattern.test(text))) heard.push(text);
  };
  check.begin = (name) => {
    part = name;
    heard = [];
    allowed = [];
  };
  check.quiet = () => told(heard.length === 0, "no error in the console", heard.join("\n"));
  /** Prints the plan; true if nothing failed. */
  check.end = () => {
    console.log(`1..${count}`);
    return failed === 0;
  };
  return check;
}
