/**
 * The page at /docs: every operation of the document is shown and can be opened, an example is tried
 * as JSON and in binary, refusals are told, a feed is heard; by mouse and by keys; light, dark, narrow.
 */
import { until } from "./support.mjs";

export async function run(page, daemon, check) {
  await page.click('a[href="/docs"]');
  await page.waitForSelector('html[data-ready="yes"] details.call', { state: "attached" });
  check.equal(new URL(page.url()).pathname, "/docs", "the inspector leads to the page");
  const answer = await page.request.get(`${daemon.url}/docs`);
  const policy = answer.headers()["content-security-policy"];
  check(policy.includes("default-src 'none'") &&
    !policy.replace("'wasm-unsafe-eval'", "").includes("unsafe"), "a strict policy", policy);

  const contract = await daemon.kota.openapi();
  const ids = Object.values(contract.paths).flatMap((item) => ["get", "post", "put", "patch", "delete"]
    .filter((method) => item[method]).map((method) => item[method].operationId));
  const shown = await page.$$eval("details.call", (all) => all.map((one) => one.id));
  check.equal([...shown].sort(), [...ids].sort(), "every operation is there, once");

  await page.$$eval("details.call", (all) => { for (const one of all) one.open = true; });
  await until(() => page.$$eval("details.call > .inside", (all) => all.length).then((n) =>
    n === ids.length), "all calls are drawn");
  const empty = await page.$$eval("details.call", (all) => all.filter((one) =>
    !one.querySelector("form.try") || !one.textContent.includes("Answers")).map((one) => one.id));
  check.equal(empty, [], "each has its answers and a form");
  const undefineds = await page.$eval("main", (main) =>
    (main.textContent.match(/undefined|\[object /g) ?? []).length);
  check.equal(undefineds, 0, "nothing is shown as undefined or [object …]");
  const names = await page.$eval("#worldRay", (one) => one.textContent);
  check(names.includes("crossed_count") || names.includes("WorldRayItem"), "shapes are named");
  await page.$eval("#height", (one) => {
    for (let i = 0; i < 6; i++) for (const inner of one.querySelectorAll("details")) inner.open = true;
  });

  // try it: the prefilled question, a refusal, float32
  const send = async (id, status) => {
    await page.click(`#${id} form button[type=submit]`);
    await until(() => page.$eval(`#${id} form [role=status]`, (p) => p.textContent)
      .then((text) => status.test(text)), `${id}: ${status}`);
    return page.$eval(`#${id} form pre:last-of-type`, (pre) => pre.textContent);
  };
  await page.goto("about:blank"); // nor is any call open in a page that begins
  await page.goto(`${daemon.url}/docs#height`);
  await page.waitForSelector("#height form");
  const locale = (await daemon.kota.locales())[0].id;
  check.equal(await page.inputValue('#height form input[aria-label="locale"]'), locale,
    "a locale that is there is filled in");
  const question = await page.inputValue("#height textarea");
  const said = JSON.parse(await send("height", /^200 /));
  const own = await daemon.kota.post(`/v1/locales/${locale}/height`, JSON.parse(question));
  check.equal(said, own.json, "the example is answered as the client says");
  const line = await page.$eval("#height pre.curl", (pre) => pre.textContent);
  check(line.startsWith("curl ") && line.includes(`/v1/locales/${locale}/height`), "a line for a shell",
    line);
  await check.shot(page, "docs-light");
  await page.fill("#height textarea", '{"points": [[0]]}');
  check.expect(/400/);
  const refusal = JSON.parse(await send("height", /^400/));
  check.equal(refusal.errors[0].pointer, "/points/0", "a refusal is shown with its place");
  const f32 = await page.$eval("#height select", (select) =>
    [...select.options].find((one) => one.textContent.includes("f32")).value);
  await page.selectOption("#height select", f32);
  await page.fill("#height textarea", "10 20, 1e9 1e9");
  const numbers = (await send("height", /^200 /)).split(" ");
  const height = (await daemon.kota.getHeight(locale, 10, 20)).height;
  check.equal([Number(numbers[0]), numbers[1]], [Math.fround(height), "NaN"], "float32 in and out");

  // a feed
  await page.goto(`${daemon.url}/docs#events`);
  await page.reload();
  await page.waitForSelector("#events form");
  await page.click("#events form button[type=submit]");
  await until(() => page.$eval("#events form [role=status]", (p) => p.textContent === "open"), "open");
  await daemon.kota.putLocale("told-by-docs", {});
  await until(() => page.$eval("#events form pre:last-of-type", (pre) => pre.textContent)
    .then((text) => text.includes("told-by-docs")), "the event is heard");
  check(true, "a feed is heard");
  await page.click("#events form button[type=submit]");
  await until(() => page.$eval("#events form [role=status]", (p) => p.textContent === "closed"),
    "closed");

  // keys
  await page.keyboard.press("Escape");
  await page.focus("#all");
  await page.keyboard.press("/");
  check.equal(await page.evaluate(() => document.activeElement.id), "find", "/ leads to the search");
  await page.keyboard.type("polyline elevation");
  await until(() => page.$eval("#found", (p) => /^[1-9] of/.test(p.textContent)), "found");
  const found = await page.$$eval("#list li:not([hidden]) a", (all) => all.map((a) => a.textContent));
  check(found.length > 0 && found.every((path) => path.includes("elevation")), "the search finds", found);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await until(() => page.evaluate(() => document.activeElement.tagName === "SUMMARY" &&
    document.activeElement.parentElement.open), "a call is opened by keys");
  check(true, "a call is found and opened by keys alone");

  // dark, and narrow
  await page.fill("#find", "");
  await page.emulateMedia({ colorScheme: "dark" });
  const back = await page.$eval("body", (body) => getComputedStyle(body).backgroundColor);
  check.equal(back, "rgb(23, 24, 26)", "dark where the system is dark");
  await check.shot(page, "docs-dark");
  await page.setViewportSize({ width: 420, height: 800 });
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(overflow <= 0, "nothing runs out of a narrow window", overflow);
  await check.shot(page, "docs-narrow");
}
