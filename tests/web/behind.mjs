/**
 * The inspector through a proxy that tells the daemon's counters to those with a token alone.
 *
 *   node tests/web/behind.mjs URL TOKEN       run by tests/api/test_proxies.py; prints TAP
 *
 * The daemon behind it has a locale named land and no device for sand.
 */
import { chromiumPath, makeCheck, openBrowser, openPage } from "./support.mjs";

const [url, token] = process.argv.slice(2);

/** Opens a tab, and waits until that element says something that matches. */
async function says(page, tab, id, pattern) {
  await page.click(`#${tab}`);
  return page.waitForFunction(([name, source]) =>
    new RegExp(source).test(document.getElementById(name).textContent), [id, pattern.source]);
}

async function withoutToken(browser, check) {
  check.expect(/401/);
  const page = await openPage(browser, url, check, { ignoreHTTPSErrors: true });
  await page.waitForFunction(() => document.getElementById("feed").textContent === "live");
  check(true, "the page, the ground and the stream of events come through");
  await says(page, "tab-status", "status-note", /told to those with a token here: press Token/);
  check(!(await page.locator("#status-note").innerText()).includes("What stands below"),
    "without a token the page of numbers says in words why it is empty");
  await says(page, "tab-sand", "sand-device", /told to those with a token here: press Token/);
  check(await page.locator("#sand-create").isEnabled(), "and a patch can be asked for all the same");
  await page.context().close();
}

async function withToken(browser, check) {
  const page = await openPage(browser, url, check, { ignoreHTTPSErrors: true,
    before: `sessionStorage.setItem("kota-token", ${JSON.stringify(token)})` });
  await says(page, "tab-status", "status-note", /^As of /);
  check(await page.locator("#status-daemon tr").count() > 3, "with a token it tells the numbers");
  await says(page, "tab-sand", "sand-device", /No patch can be made here: .*switched off/);
  check(await page.locator("#sand-create").isDisabled(), "and why there is no sand");
  await page.context().close();
}

let playwright;
try {
  playwright = await import("playwright-core");
} catch {
  console.log("1..0 # SKIP no playwright-core: run `npm ci` in tests/web");
  process.exit(0);
}
if (!chromiumPath()) {
  console.log("1..0 # SKIP no chromium in PATH (KOTA_CHROMIUM)");
  process.exit(0);
}
const check = makeCheck();
check.begin("inspector");
const browser = await openBrowser(playwright.chromium);
try {
  await withoutToken(browser, check);
  await withToken(browser, check);
  check.quiet();
} catch (error) {
  check(false, "runs to its end", error.stack);
  check.quiet();
}
await browser.close();
process.exitCode = check.end() ? 0 : 1;
