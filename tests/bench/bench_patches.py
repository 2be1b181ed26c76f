"""Patches of sand through kotad: what a user waits for and what is written, beside an older build.

    python3 tests/bench/bench_patches.py [--old FOLDER] [--only PART,…] [--most SECONDS]

FOLDER has the older build's kotad (its build/release); every row is a ratio to it, in one run. Without
it the numbers of this build are printed alone. Parts:

    waits   CPU seconds of the process while a patch settles and while its body falls and comes to rest
            (coarse 9 m, medium 5 m, medium 9 m, fine 5 m), of this build by default, and of the older
            one with its C engine and by default (llvmpipe where no GPU is). What takes the older one
            longer than SECONDS (300) is cut off there, and its ratio is at most the one printed
    rest    seconds from `resting` to the revision with the edit
    idle    memory of a daemon with an empty world, and the answer to the first patch
    ground  what a ball of 2 m and 10.5 t leaves on flat ground: depth of the crater, slopes of the
            written ground, how far from the middle it changed and granules moved, volume, and the gap
            between bodies and the ground they lie on
    craters how deep a ball sinks into a bed of three diameters, beside a published experiment

KOTA_BIN_DIR is this build's folder (build/release).
"""
import argparse
import array
import math
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import daemon as daemons  # noqa: E402
from rows import row_most  # noqa: E402

SECTION = "Sand"
SIDE, SPACING = 257, 0.25
NEW = daemons.KOTAD
SIZES = (("coarse", 9), ("medium", 5), ("medium", 9), ("fine", 5))
REPOSE = 37.0  # degrees, of a heap (docs/internals/sand.md)


class Kotad(daemons.Daemon):
    """One build's daemon with flat ground."""

    def __init__(self, program, *flags):
        daemons.KOTAD = program
        super().__init__("--no-sandbox", *flags, env={"KOTA_GPU": "auto"})

    def fill(self, models):
        self.ok("PUT", "/v1/locales/land", {}, status=201)
        self.ok("PUT", f"/v1/locales/land/layers/ground?cols={SIDE}&rows={SIDE}"
                       f"&spacing={SPACING},{SPACING}", bytes(4 * SIDE * SIDE), status=201,
                media="application/vnd.kota.f32")
        for name, (text, _points) in models.items():
            self.ok("PUT", f"/v1/models/{name}", text, status=201, media="model/obj")

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def samples(self):
        """[row * SIDE + column]: the field is one tile."""
        return array.array("f", self.get("/v1/locales/land/tiles/0/0/0?format=f32").body)


# ---- models ------------------------------------------------------------------------------------------


def obj(vertices, faces):
    """(bytes of an OBJ file, points of its surface a few millimetres to centimetres apart)"""
    text = "".join("v %.9g %.9g %.9g\n" % v for v in vertices)
    text += "".join("f %d %d %d\n" % tuple(i + 1 for i in f) for f in faces)
    points = list(vertices)
    for face in faces:
        a, b, c = (vertices[i] for i in face)
        n = max(1, int(max(math.dist(a, b), math.dist(b, c), math.dist(c, a)) / 0.03))
        for i in range(n + 1):
            for k in range(n + 1 - i):
                u, v = i / n, k / n
                points.append(tuple((1 - u - v) * p + u * q + v * s for p, q, s in zip(a, b, c)))
    return text.encode(), points


def ball(radius, rings=16, around=24):
    vertices = [(0, 0, -radius)]
    for r in range(1, rings):
        polar = math.pi * r / rings
        vertices += [(radius * math.sin(polar) * math.cos(2 * math.pi * k / around),
                      radius * math.sin(polar) * math.sin(2 * math.pi * k / around),
                      -radius * math.cos(polar)) for k in range(around)]
    vertices.append((0, 0, radius))
    faces = [(0, 1 + (k + 1) % around, 1 + k) for k in range(around)]
    for r in range(rings - 2):
        low, high = 1 + r * around, 1 + (r + 1) * around
        for k in range(around):
            n = (k + 1) % around
            faces += [(low + k, low + n, high + n), (low + k, high + n, high + k)]
    low = 1 + (rings - 2) * around
    faces += [(low + k, low + (k + 1) % around, len(vertices) - 1) for k in range(around)]
    return obj(vertices, faces)


def barrel(radius, around=24):
    half = 1.5 * radius
    ring = [(radius * math.cos(2 * math.pi * k / around), radius * math.sin(2 * math.pi * k / around))
            for k in range(around)]
    vertices = [(x, y, -half) for x, y in ring] + [(x, y, half) for x, y in ring]
    vertices += [(0, 0, -half), (0, 0, half)]
    faces = []
    for k in range(around):
        n = (k + 1) % around
        faces += [(k, n, around + n), (k, around + n, around + k), (2 * around, n, k),
                  (2 * around + 1, around + k, around + n)]
    return obj(vertices, faces)


def box(half):
    vertices = [(x * half, y * half, z * half) for z in (-1, 1)
                for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return obj(vertices, [(0, 2, 1), (0, 3, 2), (4, 5, 6), (4, 6, 7), (0, 1, 5), (0, 5, 4), (1, 2, 6),
                          (1, 6, 5), (2, 3, 7), (2, 7, 6), (3, 0, 4), (3, 4, 7)])


# ---- a patch -----------------------------------------------------------------------------------------


class Fall:
    """One patch from POST to rest, with CPU seconds and the clock's at active and at rest."""

    def __init__(self, kotad, most_s, question):
        self.cut = None
        began, cpu = time.monotonic(), kotad.cpu_s()
        answer = kotad.post("/v1/locales/land/patches", question)
        if answer.status != 201:
            raise SystemExit(f"bench_patches: no patch: {answer}")
        self.post_s, self.where = time.monotonic() - began, answer.headers["location"]
        self.granules = answer.json["granules"]
        self.settle_cpu_s = self.fall_cpu_s = math.nan
        self.made = answer.json
        self.patch = self.wait(kotad, began + most_s, "active", "resting", "writing", "written")
        self.active_at, self.settle_cpu_s = time.monotonic(), kotad.cpu_s() - cpu
        self.settle_s = self.active_at - began - self.post_s
        self.settled_s = self.patch["time_s"]
        if self.cut is None:
            cpu = kotad.cpu_s()
            self.patch = self.wait(kotad, began + most_s, "resting", "writing", "written")
            self.rest_at, self.fall_cpu_s = time.monotonic(), kotad.cpu_s() - cpu
        self.active_s = time.monotonic() - self.active_at
        self.fall_s = self.patch["time_s"] - self.settled_s

    def wait(self, kotad, until, *states):
        while True:
            patch = kotad.ok("GET", self.where)
            if patch["state"] in states:
                return patch
            if patch["state"] in ("failed", "discarded"):
                raise SystemExit(f"bench_patches: {patch}")
            if time.monotonic() > until:
                self.cut = patch["state"]
                return patch
            time.sleep(0.02)

    def drop(self, kotad):
        kotad.ok("DELETE", self.where + "?discard=true")


def question(scale, size, model, **more):
    return {"center": [32, 32], "size": [size, size], "scale": scale, "depth": 2, "seed": 3,
            "bodies": [{"model": model, "position": [32, 32, 8], "density": 1500}], **more}


def waits(options):
    models = {f"barrel{size}": barrel(size / 14) for _scale, size in SIZES}
    old = ((("its C engine", ("--gpu", "reference")), ("its default", ())) if options.old else ())
    print("\n| patch | build | granules | POST | settling: CPU, clock, simulated | active to resting: CPU, "
          "clock, simulated |\n|---|---|---|---|---|---|")
    for scale, size in SIZES:
        falls = {}
        for name, flags in (("this", ()), *old):
            with Kotad(NEW if name == "this" else options.old, *flags) as kotad:
                kotad.fill(models)
                fall = falls[name] = Fall(kotad, options.most, question(scale, size, f"barrel{size}"))
                fall.drop(kotad)
            rest = (f"{fall.fall_cpu_s:.2f}, {fall.active_s:.2f}, {fall.fall_s:.2f} s"
                    if fall.cut is None else f"cut off while {fall.cut}")
            print(f"| {scale}, {size} m | {name} | {fall.granules} | {1e3 * fall.post_s:.0f} ms | "
                  f"{fall.settle_cpu_s:.2f}, {fall.settle_s:.2f}, {fall.settled_s:.2f} s | {rest} |", flush=True)
        new = falls["this"]
        cpu = new.settle_cpu_s + new.fall_cpu_s
        for name, asked in (("its C engine", 0.4), ("its default", 0.15)):
            if name in falls:
                fall = falls[name]
                spent = fall.settle_cpu_s + (0 if fall.cut in ("filling", "settling")
                                             else fall.fall_cpu_s)
                is_open = fall.cut and cpu / spent > asked  # the bound decides nothing
                row_most(SECTION, f"CPU seconds to rest, {scale} {size} m", f"older, {name}",
                         cpu / spent, 0 if is_open else asked,
                         f"at most: the older was cut off while {fall.cut}" if fall.cut else "")
        if (scale, size) in SIZES[:2] and new.cut is None:
            row_most(SECTION, f"active: clock by simulated, {scale} {size} m", "real time",
                     new.active_s / new.fall_s, 1.2)


def rest(options):
    for name, program in (("this", NEW), ("older", options.old)):
        if not program:
            continue
        with Kotad(program) as kotad:
            kotad.fill({"box": box(0.4)})
            at = kotad.ok("GET", "/v1/locales/land")["revision"]
            fall = Fall(kotad, options.most, question("coarse", 5, "box"))
            while kotad.ok("GET", "/v1/locales/land")["revision"] == at:
                if time.monotonic() > fall.rest_at + 60:
                    raise SystemExit("bench_patches: the rest was not written")
                time.sleep(0.005)
            seconds = time.monotonic() - fall.rest_at
            fall.drop(kotad) if name == "this" else None
        row_most(SECTION, f"rest to everybody's ground, {name} build", "a second", seconds,
                 1 if name == "this" else 0)


def idle(options):
    mib = {}
    for name, program in (("this", NEW), ("older", options.old)):
        if not program:
            continue
        with Kotad(program) as kotad:
            time.sleep(3)
            mib[name] = kotad.memory_kib() / 1024
        with Kotad(program) as kotad:
            kotad.fill({"box": box(0.4)})
            began = time.monotonic()
            answer = kotad.post("/v1/locales/land/patches", question("medium", 5, "box"))
            seconds = time.monotonic() - began
            if answer.status != 201:
                raise SystemExit(f"bench_patches: {answer}")
            kotad.ok("DELETE", answer.headers["location"] + "?discard=true")
        row_most(SECTION, f"first patch accepted and {answer.json['state']}, {name} build", "a second",
                 seconds, 1.5 if name == "this" else 0)
        row_most(SECTION, f"idle memory, empty world, {name} build", "MiB", mib[name],
                 30 if name == "this" else 0)


# ---- the ground --------------------------------------------------------------------------------------


def height(samples, x, y):
    """The exact triangle; hypotenuse from (1,0) to (0,1)."""
    u, v = x / SPACING, y / SPACING
    c, r = min(int(u), SIDE - 2), min(int(v), SIDE - 2)
    s, t = u - c, v - r
    h = [samples[(r + b) * SIDE + c + a] for b in (0, 1) for a in (0, 1)]
    if s + t <= 1:
        return h[0] + s * (h[1] - h[0]) + t * (h[2] - h[0])
    return h[3] + (1 - s) * (h[2] - h[3]) + (1 - t) * (h[1] - h[3])


def turned(q, p):
    x, y, z, w = q
    t = (2 * (y * p[2] - z * p[1]), 2 * (z * p[0] - x * p[2]), 2 * (x * p[1] - y * p[0]))
    return (p[0] + w * t[0] + y * t[2] - z * t[1], p[1] + w * t[1] + z * t[0] - x * t[2],
            p[2] + w * t[2] + x * t[1] - y * t[0])


def gap_m(samples, pose, points):
    """How far the body is above the ground where it is nearest; below 0: in it."""
    least = math.inf
    for point in points:
        x, y, z = (a + b for a, b in zip(turned(pose["orientation"], point), pose["position"]))
        least = min(least, z - height(samples, x, y))
    return least


def surface(kotad, where):
    answer = kotad.get(where + "/surface.f32?per_cell=1")
    return [int(n) for n in answer.headers["kota-rect"].split(",")], array.array("f", answer.body)


def steep(samples, moved):
    """The part of moved samples with a triangle at them beyond the angle of repose, both ways."""
    count = 0
    for i in moved:
        slopes = []
        for dc, dr in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
            gx = (samples[i + dc] - samples[i]) / SPACING
            gy = (samples[i + dr * SIDE] - samples[i]) / SPACING
            slopes.append(math.degrees(math.atan(math.hypot(gx, gy))))
        count += sum(slopes) / 4 > REPOSE
    return count / max(1, len(moved))


def far_m(indices):
    return max((math.hypot(i % SIDE * SPACING - 32, i // SIDE * SPACING - 32) for i in indices), default=0)


def ground_of(options, program, name, model, scale, size, density, above):
    models = {"ball": ball(1.0), "barrel": barrel(0.3), "box": box(0.5)}
    with Kotad(program, *(("--gpu", "reference") if name == "older" else ())) as kotad:
        kotad.fill(models)
        body = {"model": model, "position": [32, 32, above], "density": density,
                "orientation": [0.1, 0, 0, math.sqrt(0.99)]}
        fall = Fall(kotad, options.most, question(scale, size, model, bodies=[body]))
        rect, seen = surface(kotad, fall.where)
        patch = kotad.ok("DELETE", fall.where)
        after = kotad.samples()
    moved = [i for i, h in enumerate(after) if h != 0]
    granules = [(rect[1] + k // rect[2]) * SIDE + rect[0] + k % rect[2]
                for k, h in enumerate(seen) if abs(h) > 0.022 * patch["granule_diameter"]]
    return {"patch": patch, "moved": len(moved), "far_m": far_m(moved), "granules_far_m": far_m(granules),
            "depth_m": -min(after), "steep": steep(after, moved),
            "net_m3": sum(after) * SPACING ** 2,
            "gap_m": gap_m(after, patch["bodies"][0], models[model][1])}


def ground(options):
    print("\n| body | build | samples changed | deepest | beyond repose | changed, granules within | "
          "net volume | gap |\n|---|---|---|---|---|---|---|---|")
    drops = (("ball", "medium", 8, 2500, 9.5), ("ball", "medium", 8, 2500, 3.2),
             ("barrel", "medium", 5, 1500, 8), ("box", "medium", 5, 2000, 4), ("box", "coarse", 7, 2000, 4))
    for model, scale, size, density, above in drops:
        for name, program in (("this", NEW), ("older", options.old)):
            if not program:
                continue
            got = ground_of(options, program, name, model, scale, size, density, above)
            print(f"| {model}, {above} m, {scale} | {name} | {got['moved']} | {got['depth_m']:.3f} m | "
                  f"{100 * got['steep']:.1f} % | {got['far_m']:.2f}, {got['granules_far_m']:.2f} m | "
                  f"{got['net_m3']:+.4f} m3 | {1e3 * got['gap_m']:+.1f} mm |", flush=True)
            if name == "this":
                row_most(SECTION, f"beyond repose, {model} {above} m {scale}", "of what moved",
                         got["steep"], 0.03)
                row_most(SECTION, f"gap under the {model} {above} m {scale}", "millimetres",
                         1e3 * got["gap_m"], 5)


def craters(options):
    """Beside J. S. Uehara, M. A. Ambroso, R. P. Ojha, D. J. Durian, Low-Speed Impact Craters in Loose
    Granular Media, Phys. Rev. Lett. 90, 194301 (2003): a ball sinks by d = 0.14 / mu (rho_b /
    rho_g)^(1/2) D^(2/3) H^(1/3), H the way of its fall with d, rho_g the bed's density in bulk."""
    diameter, density, depth, size, bulk = 2.5, 2500, 7.5, 9, 1200
    mu = math.tan(math.radians(REPOSE))
    with Kotad(NEW, "--patch-granules", "40000", "--patch-speed", "0") as kotad:
        kotad.fill({"ball": ball(diameter / 2)})
        for above in (2, 8):
            body = {"model": "ball", "position": [32, 32, above + diameter / 2], "density": density}
            fall = Fall(kotad, 10 * options.most, question("medium", size, "ball", depth=depth,
                                                          bodies=[body]))
            sunk = diameter / 2 - fall.patch["bodies"][0]["position"][2]
            kotad.ok("DELETE", fall.where)
            kotad.ok("POST", "/v1/locales/land/edits",
                     {"rect": [0, 0, SIDE, SIDE], "op": "set", "heights": [0.0] * SIDE * SIDE})
            d = 0.5
            for _ in range(30):
                d = 0.14 / mu * math.sqrt(density / bulk) * diameter ** (2 / 3) * (above + d) ** (1 / 3)
            row_most(SECTION, f"a ball of {diameter} m, {above} m of fall, bed of 3 diameters",
                     "Uehara 2003", max(sunk / d, d / sunk), 1.5,
                     f"sinks by {sunk:.2f} m, {d:.2f} m; {fall.granules} granules")


PARTS = {"idle": idle, "rest": rest, "waits": waits, "ground": ground, "craters": craters}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--old", help="build folder of an older kotad")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--most", type=float, default=300)
    options = parser.parse_args()
    if options.old:
        options.old = os.path.join(os.path.abspath(options.old), "kotad")
    for part in options.only.split(","):
        PARTS[part](options)


main()
