/**
 * "Copy as": each kind of question that the page asks is copied in one of four languages, in test-all
 * in each, and each copy runs and has the page's answer. And what helps a newcomer: a word on each tool, an empty world.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { binaries, root, startDaemon, until, visit } from "./support.mjs";

const exec = promisify(execFile);
const text = (page, selector) => page.locator(selector).innerText();

/** Where a copied program finds the client of its language. */
async function places() {
  const folder = await mkdtemp(join(tmpdir(), "kota-copy-"));
  await mkdir(join(folder, "node_modules"));
  await symlink(join(root, "client/web"), join(folder, "node_modules/kota-client"));
  return folder;
}

/** Runs a copied program and returns the JSON that it prints. */
async function output(folder, language, program) {
  const env = { ...process.env, PYTHONPATH: join(root, "client/python"),
    PKG_CONFIG_PATH: join(binaries, "lib/pkgconfig"), LD_LIBRARY_PATH: join(binaries, "lib") };
  const sh = (line) => exec("sh", ["-c", line], { cwd: folder, env, maxBuffer: 1 << 26 });
  const name = { curl: "ask.sh", C: "ask.c", JavaScript: "ask.mjs", Python: "ask.py" }[language];
  await writeFile(join(folder, name), language === "curl" ? `${program} -s` : program);
  const line = { curl: "sh ask.sh", JavaScript: "node ask.mjs", Python: "python3 ask.py",
    C: "cc -Wall -Werror ask.c $(pkg-config --cflags --libs libkota) -o ask && ./ask" }[language];
  return JSON.parse((await sh(line)).stdout);
}

/** The language of the panel, and what it shows then. */
async function copied(page, language) {
  await page.selectOption("#copy-as", language);
  return page.evaluate(() => document.getElementById("curl").textContent);
}

/** Asks with a tool of the page, by two clicks on the map. */
async function ask(page, tool) {
  await page.click(`.tools button[data-tool="${tool}"]`);
  // an answer that the page shows whole
  if (tool === "profile") await page.fill('#panel-tools [name="samples"]', "20");
  await page.evaluate(() => { document.getElementById("took").textContent = ""; });
  const canvas = page.locator("#map");
  for (const position of [{ x: 300, y: 300 }, { x: 420, y: 360 }, { x: 360, y: 420 }]) {
    await page.evaluate(() => { document.getElementById("tool-answer").replaceChildren(); });
    await canvas.click({ position });
    const answered = await page.waitForFunction(() =>
      document.getElementById("took").textContent !== "" ||
      /more to click/.test(document.getElementById("tool-answer").textContent)).then(() =>
      page.evaluate(() => document.getElementById("took").textContent !== ""));
    if (answered) break;
  }
  await page.waitForFunction(() => document.getElementById("took").textContent !== "");
  return page.evaluate(() => document.getElementById("answer").textContent);
}

/** Each tool in all languages, or in one of them in turns. */
async function copyCases(page, daemon, check, isWhole) {
  const folder = await places(), languages = await page.evaluate(() =>
    [...document.getElementById("copy-as").options].map((option) => option.value));
  check.equal(languages, ["curl", "C", "JavaScript", "Python"], "languages to copy");
  try {
    const tools = await page.evaluate(() =>
      [...document.querySelectorAll(".tools button")].map((button) => button.dataset.tool));
    for (const [i, tool] of tools.entries()) {
      const shown = await ask(page, tool);
      for (const language of isWhole ? languages : [languages[i % languages.length]]) {
        const program = await copied(page, language);
        let got;
        try {
          got = JSON.stringify(await output(folder, language, program));
        } catch (error) {
          got = `${error.stack}\n${program}`;
        }
        check(got === JSON.stringify(JSON.parse(shown)), `${tool}, copied as ${language}, has the page's answer`,
          `${got}\n${shown}`);
      }
    }
    const url = new URL("/v1/limits", daemon.url).href;
    const asked = { method: "GET", url, headers: {}, body: null, bytes: 0 };
    for (const language of languages) {
      const program = await page.evaluate(async ([what, how]) =>
        (await import("/web/copyas.js")).copyAs(what, how), [asked, language]);
      check("items_max" in await output(folder, language, program), `a GET, copied as ${language}, runs`);
    }
    await page.selectOption("#copy-as", "JavaScript");
    await page.reload();
    await page.waitForSelector('html[data-ready="yes"]', { state: "attached" });
    check.equal(await page.inputValue("#copy-as"), "JavaScript", "the language is remembered");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function helpCases(page, check) {
  await page.click('.tools button[data-tool="pick"]');
  const before = await text(page, "#tool-hint");
  for (const tool of ["ray", "contact", "los"]) {
    const button = page.locator(`.tools button[data-tool="${tool}"]`);
    const title = await button.getAttribute("title");
    check(title && title.length > 15, `${tool} has a word of help`, title);
    await button.focus();
    check.equal(await text(page, "#tool-hint"), title, `${tool}: the focus of the keyboard shows it`);
    check.equal(await button.getAttribute("aria-describedby"), "tool-hint", `${tool}: readers hear it`);
    await page.locator("#locale").focus();
    check.equal(await text(page, "#tool-hint"), before, `${tool}: it goes with the focus`);
    await button.hover();
    check.equal(await text(page, "#tool-hint"), title, `${tool}: so does the mouse`);
    await page.mouse.move(5, 5);
  }
  await page.click('.tools button[data-tool="contact"]');
  const field = page.locator('#panel-tools [name="reach_up"]');
  await field.focus();
  check.equal(await text(page, "#tool-hint"), await field.getAttribute("title"),
    "a field with the focus shows its help");
  const silent = await page.evaluate(() => [...document.querySelectorAll("header button, header a, .tools button")]
    .filter((element) => !element.title && !element.closest('[role="group"][aria-label="View"]'))
    .map((element) => element.textContent));
  check.equal(silent, [], "every tool has hover help");
  for (const name of ["tools", "edits", "sand"]) {
    const panel = `#panel-${name}`;
    await page.click(`#tab-${name}`);
    const bare = await page.locator(panel).evaluate((element) =>
      [...element.querySelectorAll("button, input, select, textarea"),
        ...document.querySelectorAll("#layers-shown input")]
        .filter((part) => !part.closest("[title]")?.title).map((part) => part.id || part.name || part.textContent));
    check.equal(bare, [], `what can be chosen in ${panel} has hover help`);
  }
  await page.click("#tab-tools");
  await check.shot(page, "copyas");
}

async function emptyCase(page, check) {
  const daemon = await startDaemon([]);
  await visit(page, daemon.url);
  check(/no locale/.test(await text(page, "#empty")), "an empty world says so");
  await check.shot(page, "empty");
  const commands = await page.locator("#empty pre").allInnerTexts();
  check(commands.length >= 3, "it has commands", commands);
  check(commands.every((line) => line.includes(daemon.url) || line.startsWith("kotad ")),
    "the commands name this daemon", commands);
  const folder = await mkdtemp(join(tmpdir(), "kota-empty-"));
  await writeFile(join(folder, "dem.asc"), "ncols 2\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 10\n1 2\n3 4\n");
  try {
    for (const line of commands.filter((one) => !one.startsWith("kotad ")))
      await exec("sh", ["-c", line], { cwd: folder, env: { ...process.env, PATH: `${binaries}:${process.env.PATH}` } });
    await until(() => page.evaluate(() => document.getElementById("locale").value), "the page finds the locale");
    check.equal(await page.locator("#empty").isVisible(), false, "the page goes on by itself");
    const { results } = await daemon.kota.height((await daemon.kota.get("/v1/locales")).json.locales[0].id,
      [[0, 0]]);
    check.equal(results[0].status, "ok", "its commands make ground");
  } finally {
    await rm(folder, { recursive: true, force: true });
    await page.goto("about:blank");
    await daemon.stop();
  }
}

export async function run(page, daemon, check) {
  await helpCases(page, check);
  await copyCases(page, daemon, check, false);
  await emptyCase(page, check);
}

export async function rest(page, daemon, check) {
  await copyCases(page, daemon, check, true);
}
