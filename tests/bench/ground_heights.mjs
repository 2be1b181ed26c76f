/**
 * Nanoseconds of a height of Kota.replica, one by one, at 4096 random places of the locale "land":
 * the least of 200 rounds. Run by bench_replica_js.py with the daemon's address.
 */
import { Kota } from "../../client/web/kota.js";

const ground = await new Kota(process.argv[2]).replica("land");
const places = 4096, rounds = 200;
const xy = Float64Array.from({ length: 2 * places }, () => 1023 * Math.random());
let least = Infinity, sum = 0;
const ask = () => {
  for (let i = 0; i < places; i++) sum += ground.height(xy[2 * i], xy[2 * i + 1]);
};
for (let round = 0; round < rounds; round++) {
  const start = performance.now();
  ask();
  least = Math.min(least, performance.now() - start);
}
console.log((least * 1e6 / places).toFixed(3));
ground.close();
if (Number.isNaN(sum)) throw new Error("a place has no ground");
