#!/usr/bin/env python3
"""Draws docs/images/functions.png: what kota's questions mean, on a bridge over a road.

    functions_picture.py OUT.png [WIDTH HEIGHT]

It starts a kotad with one locale, a heightfield with a road cut and the demo village's bridge, digs a
crater, and asks it everything: each pixel is a ray and each shadow `lit` (binary batches); the
avatars stand where `contact` puts them, with the numbers that it returned; the mouse's ray ends where
`ray` hits; a line of sight is green as far as `los` says that it is free, and red beyond. The same
arguments draw the same picture.
"""
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

from daemon import BIN_DIR, F32, F64, Daemon
from images import SIGNATURE, chunk, header
from oracle import add, cross, dot, scale, sub, unit

PLACE = "/v1/locales/place"
BATCH = 50000
SKY_LOW, SKY_HIGH = (0.80, 0.90, 1.05), (0.24, 0.44, 0.88)
NOON = unit((-0.55, 0.5, -0.62))  # the light travels along it
EYE, TARGET, FOV = (108.0, 43.0, 13.5), (99.5, 77.0, 1.4), 42
COLOURS = {"bridge": (0.44, 0.41, 0.37), "ground": (0.13, 0.27, 0.055)}
GREEN, RED, YELLOW, WHITE = (90, 235, 110), (255, 84, 70), (255, 214, 64), (255, 255, 255)
ORIGIN, SIDE, SPACING = (40.0, 20.0), 481, 0.25
CRATER = (115.6, 69.5)
FONT = {c: bytes.fromhex(h) for c, h in (word.split("=") for word in (
    "a=2054545478 b=7f48444438 c=3844444420 d=384444487f e=3854545418 f=087e090102 g=0c5252523e "
    "h=7f08040478 i=00447d4000 j=2040443d00 k=7f10284400 l=00417f4000 m=7c04180478 n=7c08040478 "
    "o=3844444438 p=7c14141408 q=081414187c r=7c08040408 s=4854545420 t=043f444020 u=3c4040207c "
    "v=1c2040201c w=3c4030403c x=4428102844 y=0c5050503c z=4464544c44 0=3e5149453e 1=00427f4000 "
    "2=4261514946 3=2141454b31 4=1814127f10 5=2745454539 6=3c4a494930 7=0171090503 8=3649494936 "
    "9=064949291e .=0060600000 -=0808080808 :=0036360000 ,=0050300000").split())}


# ---- the ground -------------------------------------------------------------------------------


def height(x, y):
    """A meadow, hills behind it, and the road that the village's bridge spans."""
    z = 2.5 + 0.35 * math.sin(x / 7) * math.cos(y / 6)
    z += 9 * (1 - math.exp(-max(0.0, y - 96) ** 2 / 900))
    near = math.hypot(max(88 - x, 0, x - 112) / 6, max(72 - y, 0, y - 88) / 6)
    z = 2.5 + (z - 2.5) * min(1.0, near)
    off = abs(x - 100)
    if abs(y - 80) < 4.6 and off < 12:
        return -2.5 if off < 4 else z  # the piers stand upright
    return min(z, -2.5 + 5 * max(0.0, off - 4) / 8 + 0.02 * math.sin(3 * y))


def make_ground(daemon, folder):
    daemon.ok("PUT", PLACE, {"title": "A bridge, a road, a crater"}, status=201)
    rows = [height(ORIGIN[0] + c * SPACING, ORIGIN[1] + r * SPACING)
            for r in range(SIDE) for c in range(SIDE)]
    query = f"spacing={SPACING},{SPACING}&cols={SIDE}&rows={SIDE}&origin={ORIGIN[0]},{ORIGIN[1]}"
    put(daemon, f"{PLACE}/layers/ground?{query}", struct.pack(f"<{len(rows)}f", *rows), F32)
    with open(os.path.join(folder, "world", "village", "bridge.obj"), "rb") as file:
        put(daemon, f"{PLACE}/layers/bridge", file.read(), "model/obj")
    daemon.ok("POST", f"{PLACE}/edits", {"brush": {"shape": "crater", "center": list(CRATER),
                                                   "radius": 6.5, "amount": 2.2}})


def put(daemon, path, body, media):
    answer = daemon.put(path, body, media=media)
    assert answer.status in (200, 201), answer


# ---- asking -----------------------------------------------------------------------------------


def binary(daemon, path, items, out):
    """Answers of so many numbers each, or of a byte each (0)."""
    found = []
    for first in range(0, len(items), BATCH):
        flat = [v for item in items[first:first + BATCH] for v in item]
        answer = daemon.post(PLACE + path, struct.pack(f"<{len(flat)}d", *flat), media=F64)
        assert answer.status == 200, answer
        found += struct.iter_unpack(f"<{out}d", answer.body) if out else map(bool, answer.body)
    return found


def contact(daemon, x, y, z):
    item = daemon.ok("POST", PLACE + "/contact", {"points": [[x, y, z]]})["results"][0]
    assert item["status"] == "ok", item
    return item


class Camera:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.ahead = unit(sub(TARGET, EYE))
        self.right = unit(cross(self.ahead, (0, 0, 1)))
        self.up = cross(self.right, self.ahead)
        self.reach = math.tan(math.radians(FOV) / 2)

    def way(self, px, py):
        u = (2 * px - self.width) / self.height * self.reach
        v = (1 - 2 * py / self.height) * self.reach
        return unit(add(self.ahead, add(scale(self.right, u), scale(self.up, v))))

    def pixel(self, point):
        """(x, y, pixels a metre there)"""
        way = sub(point, EYE)
        grain = self.height / (2 * self.reach * dot(way, self.ahead))
        return (self.width / 2 + dot(way, self.right) * grain,
                self.height / 2 - dot(way, self.up) * grain, grain)


# ---- colours ----------------------------------------------------------------------------------


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


def albedo(layer, point, normal):
    colour = COLOURS[layer]
    if layer == "bridge":
        course = math.floor(point[2] / 0.45)
        stone = hashed(course, math.floor(point[0] / 0.9 + 0.5 * (course % 2)), math.floor(point[1] / 2))
        return scale(colour, 0.86 + 0.24 * stone)
    if point[2] < -2.2 and abs(point[0] - 100) < 4.3:
        return scale((0.34, 0.30, 0.24), 0.93 + 0.14 * hashed(*(math.floor(v * 2) for v in point[:2])))
    colour = scale(colour, 0.88 + 0.24 * hashed(math.floor(point[0]), math.floor(point[1])))
    far = math.hypot(point[0] - CRATER[0], point[1] - CRATER[1])
    bare = max(step(0.93, 0.82, normal[2]), step(6.4, 5.2, far))
    return mixed(colour, (0.30, 0.20, 0.115), bare)


def colours(daemon, camera, pixels):
    ways = [camera.way(*pixel) for pixel in pixels]
    sent = [(*EYE, *way, math.inf) for way in ways]
    best = [(math.inf, None, None)] * len(sent)
    for layer in COLOURS:
        for i, (t, *normal) in enumerate(binary(daemon, f"/ray?layer={layer}", sent, 4)):
            if t < best[i][0]:
                best[i] = (t, normal, layer)
    points = [add(EYE, scale(way, t if t < math.inf else 0)) for way, (t, _, _) in zip(ways, best)]
    light = "direction=" + ",".join(map(repr, NOON))
    made = []
    for way, (t, normal, layer), point, is_lit in zip(ways, best, points,
                                                      binary(daemon, f"/lit?{light}", points, 0)):
        if layer is None:
            made.append(mixed(SKY_LOW, SKY_HIGH, step(0.0, 0.4, way[2])))
            continue
        normal = scale(normal, -1) if dot(way, normal) > 0 else normal
        sun = scale((2.9, 2.55, 2.05), max(0.0, -dot(normal, NOON)) * is_lit)
        sky = scale((0.42, 0.55, 0.78), 0.6 + 0.4 * normal[2])
        colour = tuple(a * b for a, b in zip(albedo(layer, point, normal), add(sun, sky)))
        made.append(mixed(colour, SKY_LOW, 0.7 * (1 - math.exp(-t / 400))))
    return made


def drawn(daemon, camera):
    """Rows of codes: one sample a pixel, four where neighbours differ."""
    width, tall = camera.width, camera.height
    codes = [developed(colour) for colour in
             colours(daemon, camera, [(x + 0.5, y + 0.5) for y in range(tall) for x in range(width)])]
    edges = []
    for i, code in enumerate(codes):
        x = i % width
        beside = [k for k, there in ((i + 1, x + 1 < width), (i + width, i + width < len(codes)),
                                     (i - 1, x > 0), (i - width, i >= width)) if there]
        if any(max(abs(p - q) for p, q in zip(code, codes[k])) > 18 for k in beside):
            edges.append(i)
    finer = colours(daemon, camera, [(i % width + (k % 2) / 2 + 0.25, i // width + (k // 2) / 2 + 0.25)
                                     for i in edges for k in range(4)])
    for n, i in enumerate(edges):
        four = [developed(colour) for colour in finer[4 * n:4 * n + 4]]
        codes[i] = tuple((sum(channel) + 2) // 4 for channel in zip(*four))
    return [[list(codes[y * width + x]) for x in range(width)] for y in range(tall)]


# ---- what is put on it ------------------------------------------------------------------------


class Pen:
    def __init__(self, rows, camera):
        self.rows, self.camera, self.unit = rows, camera, camera.height / 560

    def disc(self, x, y, radius, colour, strength=1.0):
        for py in range(max(0, int(y - radius - 1)), min(len(self.rows), int(y + radius + 2))):
            row = self.rows[py]
            for px in range(max(0, int(x - radius - 1)), min(len(row), int(x + radius + 2))):
                share = min(max(radius + 0.5 - math.dist((px + 0.5, py + 0.5), (x, y)), 0.0), 1.0)
                row[px] = [int(p + (q - p) * share * strength + 0.5) for p, q in zip(row[px], colour)]

    def stroke(self, a, b, colour, radius=1.5, is_dashed=False):
        """Between two places on the picture."""
        steps = max(1, int(math.dist(a, b) / (0.8 * self.unit)))
        for pass_radius, pass_colour in ((radius + 1.3, (20, 24, 30)), (radius, colour)):
            for i in range(steps + 1):
                if not is_dashed or i * 0.8 % 14 < 8:
                    self.disc(a[0] + (b[0] - a[0]) * i / steps, a[1] + (b[1] - a[1]) * i / steps,
                              pass_radius * self.unit, pass_colour)

    def line(self, a, b, colour, radius=1.5, is_dashed=False):
        """Between two places of the locale."""
        self.stroke(self.camera.pixel(a)[:2], self.camera.pixel(b)[:2], colour, radius, is_dashed)

    def ring(self, point, normal, radius, colour):
        side = unit(cross(normal, (0.3, 1, 0)))
        other = cross(normal, side)
        turn = [add(point, add(scale(side, radius * math.cos(a / 20 * math.pi)),
                               scale(other, radius * math.sin(a / 20 * math.pi)))) for a in range(41)]
        for a, b in zip(turn, turn[1:]):
            self.line(a, b, colour, 1.6)

    def avatar(self, feet, colour, tall=2.1):
        for part in range(15):
            up = tall * (0.08 + 0.042 * part)
            x, y, grain = self.camera.pixel(add(feet, (0, 0, up)))
            self.disc(x, y, grain * tall * (0.15 if part else 0.17), scale(colour, 0.7 + 0.02 * part))
        x, y, grain = self.camera.pixel(add(feet, (0, 0, tall * 0.88)))
        self.disc(x, y, grain * tall * 0.135, (255, 222, 178))

    def text(self, x, y, words, colour=WHITE):
        """Lines of 5 x 7 letters, twice as large, on a dark ground; x, y is the upper left."""
        size = max(1, round(2 * self.unit))
        lines = words.split("\n")
        wide = (max(map(len, lines)) * 6 + 5) * size
        tall = (len(lines) * 10 + 4) * size
        x, y = max(4, min(x, len(self.rows[0]) - wide - 4)), max(4, min(y, len(self.rows) - tall - 4))
        for py in range(int(y), min(len(self.rows), int(y) + tall)):
            for px in range(int(x), min(len(self.rows[0]), int(x) + wide)):
                self.rows[py][px] = [int(v * 0.22 + 8) for v in self.rows[py][px]]
        for n, line in enumerate(lines):
            for i, letter in enumerate(line):
                for column, bits in enumerate(FONT.get(letter, bytes(5))):
                    for bit in range(7):
                        if bits >> bit & 1:
                            self.block(int(x) + (3 + 6 * i + column) * size,
                                       int(y) + (3 + 10 * n + bit) * size, size, colour)

    def block(self, x, y, size, colour):
        for py in range(y, min(len(self.rows), y + size)):
            for px in range(x, min(len(self.rows[0]), x + size)):
                self.rows[py][px] = list(colour)

    def arrow(self, x, y):
        """A mouse pointer whose tip is there."""
        for down in range(int(17 * self.unit)):
            for right in range(int(min(down * 0.72, 12 * self.unit)) + 1):
                is_rim = right in (0, int(down * 0.72)) or down >= 15 * self.unit
                self.disc(x + right, y + down, 0.7, (10, 10, 10) if is_rim else WHITE)


def told(point):
    return f"{point[2]:.2f}".rstrip("0").rstrip(".")


def picture(daemon, width, tall):
    """(rows of [r, g, b], what the daemon said of it)"""
    camera = Camera(width, tall)
    pen = Pen(drawn(daemon, camera), camera)
    deck, road = contact(daemon, 100, 79.5, 4.2), contact(daemon, 100.6, 77.6, -2.3)
    guard = contact(daemon, 82, 79, 2.6)
    high, low, far = (item["floor"]["point"] for item in (deck, road, guard))
    eyes = [add(point, (0, 0, 1.7)) for point in (high, low, far)]
    sights = daemon.ok("POST", PLACE + "/los", {"segments": [
        {"from": eyes[2], "to": eyes[0]}, {"from": eyes[2], "to": eyes[1]}]})["results"]
    mouse = (92.5, 57.5, 6.6)  # where the pointer is, on a screen in the air
    viewer = (93.6, 51.0, 10.8)
    hit = daemon.ok("POST", PLACE + "/ray", {"rays": [
        {"origin": mouse, "direction": sub(mouse, viewer)}]})["results"][0]
    for sight, to in zip(sights, (eyes[0], eyes[1])):
        end = to if sight["visible"] else sight["point"]
        pen.line(eyes[2], end, GREEN)
        if not sight["visible"]:
            pen.line(end, to, RED, 1.2, True)
            x, y, _ = camera.pixel(end)
            for a, b in ((-1, -1), (-1, 1)):
                pen.stroke((x + 6 * a * pen.unit, y + 6 * b * pen.unit),
                           (x - 6 * a * pen.unit, y - 6 * b * pen.unit), RED, 1.8)
    pen.avatar(far, (70, 120, 235))
    pen.avatar(low, (226, 62, 44))
    pen.avatar(high, (226, 62, 44))
    pen.line(mouse, hit["point"], YELLOW)
    pen.ring(hit["point"], hit["normal"], 0.8, YELLOW)
    corners = [add(mouse, way) for way in ((-2, 0, -1.3), (2, 0, -1.3), (2, 0, 1.3), (-2, 0, 1.3))]
    for a, b in zip(corners, corners[1:] + corners[:1]):
        pen.line(a, b, WHITE, 1.3)
    pen.arrow(*camera.pixel(mouse)[:2])
    labels = ((high, 30, -100, f"contact: floor {told(high)}\non the bridge"),
              (low, 40, 40, f"contact: floor {told(low)}\nceiling {told(road['ceiling']['point'])}"),
              (mouse, 56, 74, f"ray: hit, {hit['distance']:.1f} m" if "distance" in hit else "ray: hit"),
              (add(far, (0, 0, 2.4)), -90, -60, "los: one free,\none blocked"),
              ((*CRATER, 1.5), -60, 48, "edit: crater"))
    for point, right, down, words in labels:
        x, y, _ = camera.pixel(point)
        pen.text(x + right * pen.unit, y + down * pen.unit, words)
    return pen.rows, {"deck": deck, "road": road, "sights": sights, "hit": hit, "camera": camera}


# ---- the file ---------------------------------------------------------------------------------


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


def png_bytes(rows):
    return (SIGNATURE + header(len(rows[0]), len(rows), 8, 2)
            + chunk(b"IDAT", zlib.compress(filtered(rows), 9)) + chunk(b"IEND", b""))


class Place:
    """A kotad with the picture's ground."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="kota-picture-")
        subprocess.run([os.path.join(BIN_DIR, "kota-worldgen"), "demo", os.path.join(self.folder, "world"),
                        "--size", "128"], check=True, stdout=subprocess.DEVNULL)
        self.daemon = Daemon()
        make_ground(self.daemon, self.folder)
        return self.daemon

    def __exit__(self, *_):
        self.daemon.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def main(out, width=1120, tall=560):
    with Place() as daemon:
        rows, _ = picture(daemon, int(width), int(tall))
    with open(out, "wb") as file:
        file.write(png_bytes(rows))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
