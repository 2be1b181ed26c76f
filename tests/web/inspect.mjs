/**
 * Runs the inspector in Chromium against a kotad and prints TAP.
 *
 *   node tests/web/inspect.mjs [NAME…]      all parts, or those of these groups or names; see
 *                                           $KOTA_BIN_DIR
 *
 * A part exports `run`, which belongs to make test, or `rest`, which belongs to make test-all
 * (KOTA_TEST_ALL=1), or both; a part that is named runs whole. Each run has a daemon of its own, whose
 * port is another origin: no edit and no stored setting is seen by the next. All have one page, because a
 * context of the browser costs as much as four loads. A part may export
 *
 *   daemonArgs       others run without patches
 *   viewport         of the page, {width, height}
 *   begin(daemon)    before the page is loaded; resolves to what its address has behind the daemon's
 *
 * Nothing is timed. Only test-all and parts that are named keep pictures.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromiumPath, desktop, makeCheck, makeWorld, openBrowser, openPage, startDaemon, visit } from
  "./support.mjs";

/** The second draws in three dimensions: in test-all a program of its own. */
const groups = {
  pages: ["map", "live", "history", "throw", "docs", "copyas"],
  "3d": ["terrain", "shadows", "moving", "granules"],
};

function skipAll(why) {
  console.log(`1..0 # SKIP ${why}`);
  process.exit(0);
}

let browser = null, page = null; // of all parts

/** The page of all parts at an address, as a new one would be. */
async function pageAt(url, viewport, chromium, check) {
  if (!browser?.isConnected()) browser = await openBrowser(chromium);
  if (!page) {
    page = await openPage(browser, url, check, { viewport });
    return;
  }
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme: "light" });
  await visit(page, url);
}

async function runPart(name, part, cases, chromium, world, check) {
  let daemon;
  check.begin(name);
  try {
    daemon = await startDaemon(["--world", world, ...(part.daemonArgs ?? [])]);
    const path = await part.begin?.(daemon) ?? "";
    await pageAt(`${daemon.url}/${path}`, part.viewport ?? desktop, chromium, check);
    await cases(page, daemon, check);
    check.quiet();
    await page.goto("about:blank"); // a daemon that is gone would be told
  } catch (error) {
    check(false, "runs to its end", error.stack);
    check.quiet();
    if (browser) await lastPicture(browser, name, check);
    for (const context of browser?.contexts() ?? []) await context.close().catch(() => {});
    page = null;
  }
  if (daemon) check.equal(await daemon.stop(), 0, "the daemon stops cleanly afterwards");
}

/** What the page looked like when a part broke off. */
async function lastPicture(browser, name, check) {
  const [last] = browser.contexts().flatMap((context) => context.pages());
  check.isPictured = true;
  if (last) await check.shot(last, `failed-${name}`).catch(() => {});
}

let playwright;
try {
  playwright = await import("playwright-core");
} catch {
  skipAll("no playwright-core: run `npm ci` in tests/web");
}
if (!chromiumPath()) skipAll("no chromium in PATH (KOTA_CHROMIUM)");

const asked = process.argv.slice(2), isAll = process.env.KOTA_TEST_ALL === "1";
const isShort = !isAll && asked.every((name) => name in groups);
const folder = await mkdtemp(join(tmpdir(), "kota-web-world-"));
const check = makeCheck();
check.isPictured = !isShort;
try {
  await makeWorld(join(folder, "world"), isShort ? 256 : 512);
  for (const name of asked.length ? asked.flatMap((one) => groups[one] ?? [one]) :
    Object.values(groups).flat()) {
    const part = await import(`./${name}.mjs`);
    const cases = asked.includes(name) ? [part.run, part.rest] :
      [isAll ? part.rest : part.run];
    for (const each of cases.filter(Boolean))
      await runPart(name, part, each, playwright.chromium, join(folder, "world"), check);
  }
} finally {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
}
process.exitCode = check.end() ? 0 : 1;
