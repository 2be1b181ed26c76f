/**
 * The history of a place in the inspector, and undoing: two people with tokens of their own, one of
 * whom takes back what the other did.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { putBeach } from "./live.mjs";
import { until } from "./support.mjs";

const tokens = { alice: "alice-0123456789abcdef0123456789abc",
  bob: "bob-0123456789abcdef0123456789abcde" };
const folder = mkdtempSync(join(tmpdir(), "kota-web-history-"));
const tokenFile = join(folder, "tokens");
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
writeFileSync(tokenFile, Object.entries(tokens).map(([name, token]) =>
  `edit ${token} name=${name}\n`).join(""), { mode: 0o600 });

export const daemonArgs = ["--token-file", tokenFile];

/** The height of a sample; they are half a metre apart. */
const sample = async (daemon, c, r) =>
  (await daemon.kota.get(`/v1/locales/beach/height?x=${c / 2}&y=${r / 2}`)).json.height;

const lines = (page) => page.locator("#history-rows li").allInnerTexts();

/** Until the list is of these revisions. */
const listed = (page, revisions) => until(async () =>
  JSON.stringify((await lines(page)).map((line) => parseInt(line, 10))) ===
  JSON.stringify(revisions), `the revisions ${revisions}`);

const areas = (page, color) => page.evaluate(async (wanted) =>
  (await import("/web/state.js")).state.marks.filter((mark) =>
    mark.kind === "area" && mark.color === wanted).map((mark) => mark.ring), color);

const ring = (c0, r0, cols, rows) => { // a cell further on each side, in metres
  const [left, low, right, high] = [c0 - 1, r0 - 1, c0 + cols, r0 + rows].map((at) => at / 2);
  return [[left, low], [right, low], [right, high], [left, high]];
};

async function ofPlace(page, daemon, check) {
  await page.click("#tab-edits");
  await listed(page, [5, 4, 3, 2, 1]);
  const first = (await lines(page))[2];
  check(/^3: edit of ground by alice, 4 × 4 samples at 10, 10 .*a tower.*Undo/s.test(first),
    "the history has author, place and note of each revision", first);
  await page.selectOption("#edit-kind", "look");
  for (const [id, value] of [["cols", 3], ["rows", 3], ["x", 5.5], ["y", 5.5]])
    await page.fill(`#edit-${id}`, String(value));
  await page.click("#edit-apply");
  await listed(page, [4, 3, 2]);
  check.equal(await page.locator("#history-place").innerText(), "Of 3 × 3 samples at 10, 10",
    "that of a place has what touched it");
  check.equal(await areas(page, "quiet"), [ring(10, 10, 3, 3)], "the place is marked");
  check.equal((await daemon.kota.get("/v1/locales/beach")).json.revision, 5, "nothing changes");
}

async function undoOfAuthor(page, daemon, check) {
  await page.fill("#history-author", "alice");
  await page.fill("#history-since", "2");
  await page.press("#history-since", "Tab");
  await listed(page, [3]);
  await page.click("#history-undo");
  await listed(page, [3]); // the revert is bob's
  await page.waitForFunction(() => document.getElementById("history-note").textContent !== "");
  check.equal(await page.locator("#history-note").innerText(),
    "Revision 6: undone within 2 × 3 samples at 10, 10. Others edited 1 place later, marked red.",
    "what an undo did is told in words");
  check.equal(await areas(page, "bad"), [ring(12, 10, 1, 3)], "the conflict is marked");
  check.equal([await sample(daemon, 10, 10), await sample(daemon, 11, 13),
    await sample(daemon, 12, 10), await sample(daemon, 60, 60)], [before[0], 20, 30, 5],
  "what alice did there is undone; what is outside, and what bob did later, stays");
  await page.waitForSelector("#edit-events li.own");
  check((await page.locator("#edit-events li.own").innerText()).startsWith("6: revert of ground"),
    "and it is a change of one's own");
  await check.shot(page, "history");
}

async function undoOfOne(page, daemon, check) {
  await page.fill("#history-author", "");
  await page.fill("#history-since", "");
  await page.click("#history-everywhere");
  await listed(page, [6, 5, 4, 3, 2, 1]);
  check.equal(await areas(page, "bad"), [], "another list has no conflicts");
  await page.locator("#history-rows li").nth(1).getByText("Undo").click();
  await listed(page, [7, 6, 5, 4, 3, 2, 1]);
  check.equal(await sample(daemon, 60, 60), before[2], "one entry is undone");
  await page.selectOption("#history-conflicts", "overwrite");
  await page.locator("#history-rows li").nth(4).getByText("Undo").click();
  await listed(page, [8, 7, 6, 5, 4, 3, 2, 1]);
  check.equal([await sample(daemon, 12, 10), await sample(daemon, 15, 13)], [before[1], 30],
    "with what others did on its samples, if that is chosen");
}

const places = [[10, 10], [12, 10], [60, 60]];
let before = []; // their heights

export async function begin(daemon) {
  const set = (name, rect, height, note) => {
    daemon.kota.token = tokens[name];
    return daemon.kota.edit("beach", { rect, heights: Array(rect[2] * rect[3]).fill(height) },
      { note });
  };
  daemon.kota.token = tokens.alice;
  await putBeach(daemon.kota);
  before = await Promise.all(places.map((place) => sample(daemon, ...place)));
  await set("alice", [10, 10, 4, 4], 20, "a tower");
  await set("bob", [12, 10, 4, 4], 30);
  await set("alice", [60, 60, 2, 2], 5);
  return "#beach";
}

/** @param {any} page @param {any} daemon @param {any} check */
export async function run(page, daemon, check) {
  await page.waitForFunction(() => document.getElementById("feed").textContent === "live");
  page.once("dialog", (dialog) => dialog.accept(tokens.bob));
  await page.click("#token");
  await ofPlace(page, daemon, check);
  await undoOfAuthor(page, daemon, check);
  await undoOfOne(page, daemon, check);
}
