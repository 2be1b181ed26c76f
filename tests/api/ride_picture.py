#!/usr/bin/env python3
"""Draws docs/images/ride.png: the small planet with a walk around it, and the ferry on its way.

    ride_picture.py OUT.png [WIDTH HEIGHT]

It starts a kotad with the demo world and asks it everything: each pixel is a ray (binary batches),
light and shadow are `lit`, the way around the planet is contact, what hides it is `los`. On the
left a dot is yellow where `lit` says that the sun shines on the feet, blue where not. On the right
the ferry stands in four places, each put by PUT …/transform, the earlier ones paler; the avatar
on its deck is where contact and velocity carried it. The same arguments draw the same picture.
"""
import math
import os
import shutil
import struct
import sys
import tempfile
import zlib

import rides
from daemon import F64, Daemon
from images import SIGNATURE, chunk, header
from oracle import add, cross, dot, scale, sub, unit

BATCH = 50000
SPACE, SKY_LOW, SKY_HIGH = (0.0025, 0.003, 0.008), (0.80, 0.90, 1.05), (0.20, 0.40, 0.85)
POSES = (0.0, 0.35, 0.65, 1.0)  # of the way
NOON = unit((-0.45, 0.6, -0.66))   # the garden's light travels along it


# ---- asking -------------------------------------------------------------------------------------


def rays(daemon, locale, layer, sent):
    """[(t, normal) or None] of (origin, direction)s."""
    found = []
    for first in range(0, len(sent), BATCH):
        some = sent[first:first + BATCH]
        flat = []
        for origin, direction in some:
            flat += origin
            flat += direction
            flat.append(math.inf)
        answer = daemon.post(f"{locale}/ray?layer={layer}", struct.pack(f"<{len(flat)}d", *flat),
                             media=F64)
        assert answer.status == 200, answer
        for t, x, y, z in struct.iter_unpack("<4d", answer.body):
            found.append(None if math.isinf(t) else (t, (x, y, z)))
    return found


def lit(daemon, locale, light, points):
    """[bool] of points."""
    found = bytearray()
    for first in range(0, len(points), BATCH):
        some = points[first:first + BATCH]
        answer = daemon.post(f"{locale}/lit?{light}",
                             struct.pack(f"<{3 * len(some)}d", *(v for p in some for v in p)),
                             media=F64)
        assert answer.status == 200, answer
        found += answer.body
    return [bool(one) for one in found]


class Camera:
    def __init__(self, eye, target, up, fov_y_deg, width, height):
        self.eye, self.width, self.height = eye, width, height
        self.ahead = unit(sub(target, eye))
        self.right = unit(cross(self.ahead, up))
        self.up = cross(self.right, self.ahead)
        self.reach = math.tan(math.radians(fov_y_deg) / 2)

    def ray(self, px, py):
        u = (2 * px - self.width) / self.height * self.reach
        v = (1 - 2 * py / self.height) * self.reach
        a, r, w = self.ahead, self.right, self.up
        return self.eye, unit((a[0] + u * r[0] + v * w[0], a[1] + u * r[1] + v * w[1],
                               a[2] + u * r[2] + v * w[2]))

    def pixel(self, point):
        """(x, y, pixels a metre there)"""
        way = sub(point, self.eye)
        deep = dot(way, self.ahead)
        grain = self.height / (2 * self.reach * deep)
        return (self.width / 2 + dot(way, self.right) * grain,
                self.height / 2 - dot(way, self.up) * grain, grain)


# ---- colours ------------------------------------------------------------------------------------


def mixed(a, b, share):
    return tuple(p + (q - p) * share for p, q in zip(a, b))


def hashed(*numbers):
    """0 <= u < 1, the same everywhere."""
    return zlib.crc32(struct.pack(f"<{len(numbers)}i", *numbers)) / 2 ** 32


def step(low, high, value):
    t = min(max((value - low) / (high - low), 0.0), 1.0)
    return t * t * (3 - 2 * t)


def developed(colour):
    """Linear light to 8 bits."""
    return tuple(int(255 * (1 - math.exp(-1.15 * v)) ** (1 / 2.2) + 0.5) for v in colour)


def planet_albedo(layer, point, normal):
    far = math.sqrt(dot(point, point))
    up = scale(point, 1 / far)
    high, level = far - rides.PLANET_RADIUS_M, dot(up, normal)
    if layer == "trees":
        if dot(up, rides.TOWER) > math.cos(3 / rides.PLANET_RADIUS_M):
            return (0.62, 0.50, 0.42)
        return (0.030, 0.115, 0.045)
    if high < 0.12:
        return mixed((0.10, 0.27, 0.42), (0.42, 0.60, 0.68), step(-0.25, 0.12, high))
    ground = mixed((0.42, 0.36, 0.20), (0.105, 0.235, 0.045), step(0.25, 0.9, high))
    ground = mixed(ground, (0.22, 0.19, 0.155), max(step(2.8, 4.6, high), step(0.90, 0.78, level)))
    return mixed(ground, (0.86, 0.88, 0.92), step(5.0, 6.2, high) * step(0.55, 0.75, level))


VILLAGE_COLOURS = {"bridge": (0.42, 0.40, 0.37), "houses": (0.66, 0.57, 0.43),
                   "ferry": (0.40, 0.17, 0.06), "ground": (0.13, 0.27, 0.055)}


def garden_albedo(layer, point, normal):
    colour = VILLAGE_COLOURS[layer]
    if layer == "houses" and normal[2] > 0.5:
        return (0.36, 0.085, 0.045)
    if layer == "ferry" and point[2] > rides.FERRY_DECK_Z + 2.5:
        return (0.62, 0.055, 0.035)
    if layer == "ground":
        near = hashed(math.floor(point[0] / 2), math.floor(point[1] / 2))
        return scale(colour, 0.9 + 0.2 * near)
    return colour


# ---- the planet ---------------------------------------------------------------------------------


class PlanetView:
    """Colours of a list of pixels (px, py)."""

    def __init__(self, daemon, width, height):
        self.daemon = daemon
        self.camera = Camera((15.0, 168.0, 62.0), (0.0, 0.0, 0.0), (0, 0, 1), 46, width, height)

    def colours(self, pixels):
        sent = [self.camera.ray(*pixel) for pixel in pixels]
        best = [None] * len(sent)
        for layer in ("ground", "trees"):
            for i, hit in enumerate(rays(self.daemon, rides.PLANET, layer, sent)):
                if hit and (best[i] is None or hit[0] < best[i][0]):
                    best[i] = (*hit, layer)
        where = [i for i, hit in enumerate(best) if hit]
        points = [add(sent[i][0], scale(sent[i][1], best[i][0])) for i in where]
        light = "position=" + ",".join(map(repr, rides.SUN))
        made = [self.space(*pixel) for pixel in pixels]
        for i, point, is_lit in zip(where, points, lit(self.daemon, rides.PLANET, light, points)):
            made[i] = self.shaded(sent[i][1], point, best[i][1], best[i][2], is_lit)
        return made

    @staticmethod
    def shaded(way, point, normal, layer, is_lit):
        if dot(way, normal) > 0:
            normal = scale(normal, -1)
        facing = max(0.0, dot(normal, unit(sub(rides.SUN, point)))) * is_lit
        up = unit(point)
        day = 0.5 + 0.5 * dot(up, unit(rides.SUN))  # the air carries light over the edge of night
        air = 0.025 + 0.30 * step(0.30, 1.0, day)
        light = add(scale((2.9, 2.6, 2.15), facing), scale((0.50, 0.66, 1.0), air))
        haze = (1 + dot(way, up)) ** 5 * step(0.25, 0.7, day)  # thin air, seen along the ground
        colour = tuple(a * l for a, l in zip(planet_albedo(layer, point, normal), light))
        return mixed(colour, (0.40, 0.60, 0.95), 0.6 * haze)

    def space(self, px, py):
        x, y = math.floor(px / 3), math.floor(py / 3)
        if hashed(x, y, 7) > 0.0035:
            return SPACE
        far = math.dist((px / 3 - x, py / 3 - y), (0.5, 0.5))
        return add(SPACE, scale((0.9, 0.95, 1.0), (0.1 + hashed(x, y, 8)) * max(0.0, 1 - 2 * far)))

    def path(self, walk):
        """[(x, y, size, is_lit)] of the steps that the eye sees, every fourth one."""
        eye, made = self.camera.eye, []
        some = list(zip(walk.points(), walk.shadows))[::4]
        lifted = [scale(point, 1 + 0.25 / rides.PLANET_RADIUS_M) for point, _ in some]
        seen = self.daemon.ok("POST", rides.PLANET + "/los", {
            "segments": [{"from": list(eye), "to": list(point)} for point in lifted]})["results"]
        for point, (_, shadow), sight in zip(lifted, some, seen):
            if sight["visible"]:
                x, y, grain = self.camera.pixel(point)
                made.append((x, y, 0.62 * grain, shadow is None))
        return made


# ---- the garden ---------------------------------------------------------------------------------


class GardenView:
    """The same over the pond; `grounds` is what stands still, in the garden's frame."""

    LAYERS = (("village", "ground"), ("village", "bridge"), ("village", "houses"),
              ("garden", "ground"))

    def __init__(self, daemon, width, height):
        self.daemon = daemon
        self.camera = Camera((17.0, 56.0, 18.5), (70.0, 84.5, 1.5), (0, 0, 1), 42, width, height)

    @staticmethod
    def in_village(v, is_place):
        """A place or a way of the garden in the village's frame: half a turn."""
        return (320 - v[0], 160 - v[1], v[2] - 4) if is_place else (-v[0], -v[1], v[2])

    def still(self, sent):
        """(t, normal, layer) or None of what does not move."""
        best = [None] * len(sent)
        turned = [(self.in_village(o, True), self.in_village(d, False)) for o, d in sent]
        for locale, layer in self.LAYERS:
            asked = turned if locale == "village" else sent
            for i, hit in enumerate(rays(self.daemon, f"/v1/locales/{locale}", layer, asked)):
                if hit and (best[i] is None or hit[0] < best[i][0]):
                    normal = hit[1]
                    if locale == "village":
                        normal = self.in_village(normal, False)
                    best[i] = (hit[0], normal, layer)
        return best

    def colours(self, pixels):
        sent = [self.camera.ray(*pixel) for pixel in pixels]
        best, made = self.still(sent), []
        for share in POSES:
            rides.ferry_move(self.daemon, *rides.crossing(share))
            found = rays(self.daemon, rides.GARDEN, "ferry", sent)
            over = [hit if hit and (best[i] is None or hit[0] < best[i][0]) else None
                    for i, hit in enumerate(found)]
            if not made:
                made = self.ground(sent, best)
            self.add_ferry(sent, over, 0.5 + 0.5 * share, made)
        return made

    def ground(self, sent, best):
        """What stands still, in the shadow of the ferry where it is now; the pond is a hole."""
        points, water = [], []
        for (origin, way), hit in zip(sent, best):
            level = (4.35 - origin[2]) / way[2] if way[2] < -1e-9 else math.inf
            x, y = (origin[0] + way[0] * level, origin[1] + way[1] * level) if level < 1e4 else (0, 0)
            water.append(hit is None and 30 < x < 80 and 58 < y < 102)
            t = level if water[-1] else hit[0] if hit else 0
            points.append(add(origin, scale(way, t)))
        light = "direction=" + ",".join(map(repr, NOON))
        reached = lit(self.daemon, rides.GARDEN, light, points)
        village = lit(self.daemon, "/v1/locales/village",
                      "direction=" + ",".join(map(repr, self.in_village(NOON, False))),
                      [self.in_village(point, True) for point in points])
        made = []
        for (_, way), hit, is_water, point, a, b in zip(sent, best, water, points, reached, village):
            if is_water:
                graze = (1 + way[2]) ** 3
                deep = mixed((0.012, 0.085, 0.105), (0.02, 0.14, 0.15), hashed(
                    math.floor(point[0]), math.floor(point[1] * 3)) * 0.6)
                made.append(mixed(scale(deep, 1.3 if a and b else 0.42), (0.42, 0.62, 0.85), graze))
            elif hit is None:
                made.append(mixed(SKY_LOW, SKY_HIGH, step(0.0, 0.35, way[2])))
            else:
                made.append(self.shaded(way, point, hit[1], hit[2], a and b, hit[0]))
        return made

    def add_ferry(self, sent, over, strength, made):
        where = [i for i, hit in enumerate(over) if hit]
        points = [add(sent[i][0], scale(sent[i][1], over[i][0])) for i in where]
        light = "direction=" + ",".join(map(repr, NOON))
        for i, point, is_lit in zip(where, points, lit(self.daemon, rides.GARDEN, light, points)):
            colour = self.shaded(sent[i][1], point, over[i][1], "ferry", is_lit, over[i][0])
            made[i] = mixed(made[i], colour, strength)

    @staticmethod
    def shaded(way, point, normal, layer, is_lit, far):
        if dot(way, normal) > 0:
            normal = scale(normal, -1)
        facing = max(0.0, -dot(normal, NOON)) * is_lit
        light = add(scale((2.9, 2.55, 2.05), facing),
                    scale((0.42, 0.55, 0.78), 0.55 + 0.45 * normal[2]))
        colour = tuple(a * l for a, l in zip(garden_albedo(layer, point, normal), light))
        return mixed(colour, SKY_LOW, 0.6 * (1 - math.exp(-far / 500)))


# ---- pixels -------------------------------------------------------------------------------------


def drawn(view, width, height):
    """Rows of linear colours: one sample a pixel, four where neighbours differ."""
    pixels = [(x + 0.5, y + 0.5) for y in range(height) for x in range(width)]
    made = view.colours(pixels)
    codes = [developed(colour) for colour in made]
    edges = []
    for i, code in enumerate(codes):
        x = i % width
        beside = [k for k, there in ((i - 1, x > 0), (i + 1, x + 1 < width), (i - width, i >= width),
                                     (i + width, i + width < len(codes))) if there]
        if any(max(abs(p - q) for p, q in zip(code, codes[k])) > 14 for k in beside):
            edges.append(i)
    finer = view.colours([(i % width + (k % 2) / 2 + 0.25, i // width + (k // 2) / 2 + 0.25)
                          for i in edges for k in range(4)])
    for n, i in enumerate(edges):
        four = [developed(colour) for colour in finer[4 * n:4 * n + 4]]
        codes[i] = tuple((sum(channel) + 2) // 4 for channel in zip(*four))
    return [[list(codes[y * width + x]) for x in range(width)] for y in range(height)]


def add_disc(rows, x, y, radius, colour, strength=1.0):
    for py in range(max(0, int(y - radius - 1)), min(len(rows), int(y + radius + 2))):
        for px in range(max(0, int(x - radius - 1)), min(len(rows[0]), int(x + radius + 2))):
            share = min(max(radius + 0.5 - math.dist((px + 0.5, py + 0.5), (x, y)), 0.0), 1.0)
            if share > 0:
                rows[py][px] = [int(p + (q - p) * share * strength + 0.5)
                                for p, q in zip(rows[py][px], colour)]


def add_figure(rows, camera, feet, up, tall_m, strength=1.0):
    """The avatar: a body and a head, as tall as that."""
    for part in range(13):
        x, y, grain = camera.pixel(add(feet, scale(up, tall_m * (0.1 + 0.045 * part))))
        add_disc(rows, x, y, grain * tall_m * 0.13, (226, 62, 44), strength)
    x, y, grain = camera.pixel(add(feet, scale(up, tall_m * 0.86)))
    add_disc(rows, x, y, grain * tall_m * 0.14, (255, 222, 178), strength)


LIT_DOT, SHADOW_DOT = (255, 226, 92), (96, 138, 255)


def planet_panel(daemon, width, height):
    view = PlanetView(daemon, width, height)
    rows = drawn(view, width, height)
    walks = [rides.walk_around(daemon, *rides.MERIDIAN), rides.walk_around(daemon, *rides.EQUATOR)]
    dots = [dot_ for walk in walks for dot_ in view.path(walk)]
    for x, y, size, is_lit in dots:
        add_disc(rows, x, y, max(size, 0.8), LIT_DOT if is_lit else SHADOW_DOT)
    for feet in (walks[0].points()[168], walks[1].points()[117]):
        add_figure(rows, view.camera, feet, unit(feet), 5.0)
    return rows, dots


def garden_panel(daemon, width, height):
    view = GardenView(daemon, width, height)
    rows = drawn(view, width, height)
    for share in POSES:
        feet = rides.on_ferry((-2.6, 0.0), *rides.crossing(share))
        add_figure(rows, view.camera, feet, (0, 0, 1), 1.9, 0.45 + 0.55 * share)
    return rows


def filtered(rows):
    """PNG's filter 4 (Paeth) on every row: smooth pictures become small."""
    raw, before = bytearray(), None
    for row in rows:
        line = [v for pixel in row for v in pixel]
        above = before or [0] * len(line)
        raw.append(4)
        for i, v in enumerate(line):
            a, c = (line[i - 3], above[i - 3]) if i >= 3 else (0, 0)
            b = above[i]
            pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
            raw.append((v - (a if pa <= pb and pa <= pc else b if pb <= pc else c)) & 255)
        before = line
    return bytes(raw)


def picture(daemon, width, height):
    """(rows of [r, g, b], dots of the planet's paths); the planet has the left half."""
    left, dots = planet_panel(daemon, width // 2, height)
    right = garden_panel(daemon, width - width // 2, height)
    return [a + b for a, b in zip(left, right)], dots


def png_bytes(rows):
    return (SIGNATURE + header(len(rows[0]), len(rows), 8, 2)
            + chunk(b"IDAT", zlib.compress(filtered(rows), 9)) + chunk(b"IEND", b""))


def main(out, width=1120, height=520):
    folder = tempfile.mkdtemp(prefix="kota-ride-")
    daemon = None
    try:
        rides.make_world(os.path.join(folder, "world"))
        daemon = Daemon("--world", os.path.join(folder, "world"))
        rows, _ = picture(daemon, int(width), int(height))
        with open(out, "wb") as file:
            file.write(png_bytes(rows))
    finally:
        if daemon:
            daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
