"""The pages of client/examples/maps in Chromium, with the real libraries (tests/web/maps.mjs)."""
import math
import subprocess

from daemon import ROOT, Daemon
from fields import NAN, Terrain, put_layer, put_locale
from mesh_oracle import put_mesh, rectangle
from tap import Skip, case, check, rng, run

daemon = Daemon()
random = rng("map pages")


def place(name, lat, lng, side, spacing, height, holes=0.0):
    put_locale(daemon, name, geo={"lat": lat, "lng": lng})
    put_layer(daemon, name, Terrain(side, side, [
        [height(c, r) if random.random() >= holes else NAN for c in range(side)] for r in range(side)],
        (spacing, spacing), (-side * spacing / 2, -side * spacing / 2)))


def hills(c, r):
    return 600 + 250 * math.sin(c / 23) + 200 * math.cos(r / 19) + 20 * math.sin(c * r / 900)


def rough(c, r):
    return 700 + 200 * math.sin(c / 9) + 150 * math.cos(r / 7) + random.uniform(-30, 30)


place("hills", 47.2692, 11.4041, 300, 20.0, hills)
put_mesh(daemon, "hills", [rectangle(-400, -400, 400, 400, 1500)], layer="roof")
place("holes", -33.0, 151.0, 160, 15.0, rough, holes=0.1)
place("dateline", -17.0, 180.0, 160, 20.0, rough)
place("north", 85.0, -60.0, 160, 20.0, rough)


def pages(name):
    try:
        ran = subprocess.run(["node", "tests/web/maps.mjs", daemon.url, name], cwd=ROOT,
                             capture_output=True, text=True, timeout=1800, check=False)
    except FileNotFoundError:
        raise Skip("no node") from None
    print("".join(f"# {line}\n" for line in ran.stdout.splitlines()), end="")
    if "SKIP" in ran.stdout.partition("\n")[0]:
        raise Skip(ran.stdout.partition("\n")[0])
    check(ran.returncode == 0 and "not ok" not in ran.stdout, ran.stdout[-1500:] + ran.stderr[-1500:])


case("MapLibre shows the ground and follows edits", pages, "maplibre")
for name_, library in (("cesium", "Cesium"), ("deck", "deck.gl"), ("openlayers", "OpenLayers"), ("three", "three.js")):
    case(f"{library} shows the ground, and has its heights", pages, name_)

run(daemon.stop)
