/** What is live in the inspector: edits of one's own and of others, sand, the status page. */

export async function run(page, daemon, check) {
  check.equal(await page.title(), "kota", "the page is there");
  await check.shot(page, "live-start");
}
