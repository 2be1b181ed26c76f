/** What the Chromium of this process takes, for benches of the page. */
import { readFileSync, readdirSync } from "node:fs";

/** @returns {{ms: number, bytes: number}} processor time so far, resident memory with shared pages */
export function chromiumTakes() {
  const stats = new Map();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [, name, rest] = readFileSync(`/proc/${pid}/stat`, "latin1").match(/\((.*)\) (.*)/);
      const fields = rest.split(" ");
      stats.set(Number(pid), { name, parent: Number(fields[1]), bytes: 4096 * Number(fields[21]),
        ms: 10 * (Number(fields[11]) + Number(fields[12])) }); // ticks of 1/100 s
    } catch {
      // it has ended meanwhile
    }
  }
  const isOurs = (pid) => pid === process.pid || (stats.has(pid) && isOurs(stats.get(pid).parent));
  return [...stats].filter(([pid, { name }]) => name.startsWith("chrom") && isOurs(pid))
    .reduce((sum, [, { ms, bytes }]) => ({ ms: sum.ms + ms, bytes: sum.bytes + bytes }),
      { ms: 0, bytes: 0 });
}
