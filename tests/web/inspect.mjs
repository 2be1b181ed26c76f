/**
 * Runs the inspector in Chromium against a kotad and prints TAP.
 *
 *   node tests/web/inspect.mjs [NAME…]      all parts, or those of these groups or names; see
 *                                           $KOTA_BIN_DIR
 *
 * A part exports `run`, which belongs to make test, or `rest`, which belongs to make test-all
 * (KOTA_TEST_ALL=1), or both; a part that is named runs whole. Each run has a daemon and a context of
 * the browser of its own: no edit and no stored setting is seen by the next. Parts that export
 * `daemonArgs` get them, others run without patches. Nothing is timed.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromiumPath, makeCheck, makeWorld, openBrowser, openPage, startDaemon } from
  "./support.mjs";

/** The parts of test_web.py, and those of test_web_3d.py, which draw. */
const groups = {
  pages: ["map", "live", "history", "throw", "docs", "copyas"],
  "3d": ["terrain", "shadows", "moving", "granules"],
};

function skipAll(why) {
  console.log(`1..0 # SKIP ${why}`);
  process.exit(0);
}

let browser = null; // of all parts

async function runPart(name, part, cases, chromium, world, check) {
  let daemon;
  check.begin(name);
  try {
    daemon = await startDaemon(["--world", world, ...(part.daemonArgs ?? [])]);
    if (!browser?.isConnected()) browser = await openBrowser(chromium);
    const page = await openPage(browser, daemon.url, check);
    await cases(page, daemon, check);
    check.quiet();
  } catch (error) {
    check(false, "runs to its end", error.stack);
    check.quiet();
    if (browser) await lastPicture(browser, name, check);
  }
  for (const context of browser?.contexts() ?? []) await context.close().catch(() => {});
  if (daemon) check.equal(await daemon.stop(), 0, "the daemon stops cleanly afterwards");
}

/** What the page looked like when a part broke off. */
async function lastPicture(browser, name, check) {
  const page = browser.contexts().flatMap((context) => context.pages())[0];
  if (page) await check.shot(page, `failed-${name}`).catch(() => {});
}

let playwright;
try {
  playwright = await import("playwright-core");
} catch {
  skipAll("no playwright-core: run `npm ci` in tests/web");
}
if (!chromiumPath()) skipAll("no chromium in PATH (KOTA_CHROMIUM)");

const asked = process.argv.slice(2);
const folder = await mkdtemp(join(tmpdir(), "kota-web-world-"));
const check = makeCheck();
try {
  await makeWorld(join(folder, "world"));
  for (const name of asked.length ? asked.flatMap((one) => groups[one] ?? [one]) :
    Object.values(groups).flat()) {
    const part = await import(`./${name}.mjs`);
    const cases = asked.includes(name) ? [part.run, part.rest] :
      [process.env.KOTA_TEST_ALL === "1" ? part.rest : part.run];
    for (const each of cases.filter(Boolean))
      await runPart(name, part, each, playwright.chromium, join(folder, "world"), check);
  }
} finally {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
}
process.exitCode = check.end() ? 0 : 1;
