"""The pages of client/examples/maps in Chromium, with the real libraries (tests/web/maps.mjs)."""
import math
import os
import subprocess

from daemon import ROOT, Daemon
from fields import Terrain, put_layer, put_locale
from tap import Skip, check, run, test

daemon = Daemon()
SIDE = 300
put_locale(daemon, "hills", geo={"lat": 47.2692, "lng": 11.4041})
put_layer(daemon, "hills", Terrain(SIDE, SIDE, [
    [600 + 250 * math.sin(c / 23) + 200 * math.cos(r / 19) + 20 * math.sin(c * r / 50)
     for c in range(SIDE)] for r in range(SIDE)], (20.0, 20.0), (-3000.0, -3000.0)))


@test("MapLibre shows the ground and follows an edit")
def _():
    try:
        ran = subprocess.run(["node", "tests/web/maps.mjs", daemon.url, "hills"], cwd=ROOT,
                             capture_output=True, text=True, timeout=240, check=False)
    except FileNotFoundError:
        raise Skip("no node") from None
    print("".join(f"# {line}\n" for line in ran.stdout.splitlines()), end="")
    if "SKIP" in ran.stdout.splitlines()[0]:
        raise Skip(ran.stdout.splitlines()[0])
    check(ran.returncode == 0 and "not ok" not in ran.stdout, ran.stdout[-1500:] + ran.stderr[-1500:])


run(daemon.stop)
