"""Maps beside what people use today.

    python3 tests/bench/bench_maps.py      (make bench-all; KOTA_BIN_DIR=build/release)

A tile of 256 × 256 pixels that is in kotad's cache, beside nginx with the same file: requests a second
of the server's processor time, in turns, as in bench_serve.py. Then one question of 1,000 places in
degrees: kotad's elevation call, beside gdallocationinfo over the same ground as a GeoTIFF, both from
the start of the asking program to its last height. The heights of both are compared. Valhalla's
/height has a row where valhalla_service is installed; Debian 12 does not have it.
"""
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bench_serve import CORES, Kotad, Nginx, bench, closed, cost, rates, ratio
from rows import row

SECTION = "Maps"
PLACES, ROUNDS = 1000, 9
ORIGIN = (47.2692, 11.4041)


class Static(Nginx):
    """One worker over a folder of one file."""
    name = "nginx, the same file"
    types = "types { image/png png; } sendfile on; tcp_nopush on; open_file_cache max=10;"

    def __init__(self, data):
        self.data = data
        self.start("root {folder}/files;", {"tile.png": data})


def warm_tile(kotad, tile):
    nginx = Static(kotad.daemon.get(tile).body)
    try:
        results = closed((kotad, nginx),
                         lambda s, prepare: bench(s, [tile if s is kotad else "/tile.png"], prepare=prepare))
        row(SECTION, "a warm tile of 256², PNG", nginx.name, ratio(results[kotad], results[nginx], cost),
            0.6, f"{len(nginx.data)} bytes; k/s of CPU: " + rates(results, cost, 1e3))
    finally:
        nginx.stop()


def median_s(ask):
    times, answer = [], None
    for _ in range(ROUNDS):
        start = time.monotonic()
        answer = ask()
        times.append(time.monotonic() - start)
    return statistics.median(times), answer


def question(kotad, folder):
    """1,000 places over the whole ground, away from its edges."""
    pick = random.Random(3)
    places = [(ORIGIN[0] + pick.uniform(0.0005, 0.0085), ORIGIN[1] + pick.uniform(0.0005, 0.0125))
              for _ in range(PLACES)]
    ground = os.path.join(folder, "ground.tif")
    with open(ground, "wb") as file:
        file.write(kotad.daemon.get("/v1/locales/a/layers/ground.tif").body)
    body = json.dumps({"locations": "|".join(f"{lat},{lng}" for lat, lng in places),
                       "interpolation": "triangle"})
    with open(os.path.join(folder, "body"), "w", encoding="ascii") as file:
        file.write(body)
    text = "".join(f"{lng} {lat}\n" for lat, lng in places).encode()

    def ask_kota():
        done = subprocess.run(["curl", "-s", "-H", "Content-Type: application/json", "--data-binary",
                               f"@{folder}/body", f"{kotad.daemon.url}/v1/compat/elevation/a"],
                              capture_output=True, check=True)
        return [result["elevation"] for result in json.loads(done.stdout)["results"]]

    def ask_gdal():
        done = subprocess.run(["gdallocationinfo", "-wgs84", "-valonly", ground], input=text,
                              capture_output=True, check=True)
        return [float(line) for line in done.stdout.split()]

    ours, heights = median_s(ask_kota)
    theirs, samples = median_s(ask_gdal)
    off = [abs(a - b) for a, b in zip(heights, samples) if a is not None]
    if len(off) < 0.9 * PLACES or statistics.median(off) > 3:
        raise SystemExit(f"bench_maps: {len(off)} heights, off by {statistics.median(off)} m: another ground")
    row(SECTION, "1,000 places in degrees, one question", "gdallocationinfo", theirs / ours, 1.0,
        f"{ours * 1e3:.1f} and {theirs * 1e3:.1f} ms, each with its program's start (curl); GDAL's is the "
        "nearest sample")
    if not shutil.which("valhalla_service"):
        print("  no row for Valhalla's /height: valhalla_service is not installed")


def tile_over(center, zoom):
    lng, lat = math.radians(center[0]), math.radians(center[1])
    x = int((lng / math.pi + 1) / 2 * 2 ** zoom)
    y = int((1 - math.asinh(math.tan(lat)) / math.pi) / 2 * 2 ** zoom)
    return f"/v1/locales/a/dem/{zoom}/{x}/{y}.png"


def main():
    if not shutil.which("gdallocationinfo") or len(CORES) < 2:
        print("bench_maps: skipped, no gdallocationinfo (gdal-bin), or one processor")
        return
    kotad = Kotad(1, CORES[:1])
    kotad.daemon.ok("PUT", "/v1/locales/a", {"geo": {"lat": ORIGIN[0], "lng": ORIGIN[1]}})
    with tempfile.TemporaryDirectory(prefix="kota-bench-maps-") as folder:
        try:
            told = kotad.daemon.ok("GET", "/v1/locales/a/dem.json")
            warm_tile(kotad, tile_over(told["center"], 16))
            question(kotad, folder)
        finally:
            kotad.stop()


if __name__ == "__main__":
    sys.exit(main())
