"""kota export --for: the files of engines, read back as each engine reads them, with the printed numbers
only; and that engine's place of each sample, turned back, is the ground's height there."""
import array
import json
import math
import os
import struct
import sys
import tempfile

from daemon import Daemon
from fields import NAN, Terrain, put_terrain
from images import read_png
from kota_cli import fails, kota
from mesh_oracle import put_mesh, rectangle
from oracle import ALTERNATING, ANTI, MAIN
from tap import case, check, equal, near, rng, run, test

daemon = Daemon()
folder = tempfile.TemporaryDirectory()
FIELDS = {}


def place(name, cols, rows, spacing, origin, triangulation, holes=0.0):
    random = rng(name)
    heights = [[struct.unpack("<f", struct.pack("<f", random.uniform(-90, 400)))[0]
                if random.random() >= holes else NAN for _ in range(cols)] for _ in range(rows)]
    FIELDS[name] = Terrain(cols, rows, heights, spacing, origin, triangulation)
    put_terrain(daemon, name, FIELDS[name])


place("even", 65, 65, (2.0, 2.0), (-64.0, 500.0), ANTI)
place("odd", 50, 41, (3.0, 3.0), (1000.5, -2000.25), MAIN)
place("oblong", 40, 70, (1.5, 2.5), (7.0, -3.0), ALTERNATING)
place("holes", 33, 33, (1.0, 1.0), (0.0, 0.0), ANTI, holes=0.05)


def export(name, engine, ending, *options):
    path = os.path.join(folder.name, f"{name}{ending}")
    result = kota("export", name, "ground", path, "--for", engine, *options, url=daemon.url)
    equal(result.status, 0, str(result))
    with open(path, "rb") as file:
        return result.lines[0], file.read()


def words(data, kind):
    values = array.array(kind, data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def heights_match(name, told, samples, within):
    """samples: (x, y, height) in the frame. Some 3,000 are compared with the surface there; they reach from
    rim to rim."""
    terrain, known = FIELDS[name], 0
    ends = [terrain.origin[i] + (n - 1) * terrain.spacing[i]
            for i, n in enumerate((terrain.cols, terrain.rows))]
    compared = samples[::len(samples) // 3000 + 1]
    for x, y, height in compared:
        for i, value in enumerate((x, y)):
            check(terrain.origin[i] - 1e-6 <= value <= ends[i] + 1e-6, f"{x}, {y} is beyond the ground")
        want, status = None, None
        for dx, dy in ((0, 0), (-1e-9, 0), (0, -1e-9), (1e-9, 1e-9)):  # what rounding has put outside
            want = terrain.height(min(max(x + dx, terrain.origin[0]), ends[0]),
                                  min(max(y + dy, terrain.origin[1]), ends[1]), "triangle")[1]
            if want is not None and not math.isnan(want):
                break
        if want is None or math.isnan(want):
            continue
        known += 1
        check(abs(height - want) <= within + 1e-4, f"{x}, {y}: {height}, the ground is {want}")
    check(known > 0.7 * len(compared), f"{known} of {len(compared)} are on ground")
    for axis in range(2):
        near(min(s[axis] for s in samples), terrain.origin[axis], "the first rim", rel=1e-9)
    equal(told["cols"] * told["rows"], len(samples), "samples")


def unreal(name, ending, size):
    """Landscape: Y is south, centimetres, height = location + (code - 32768) / 128 · scale."""
    told, data = export(name, "unreal", ending, *(["--size", str(size)] if size else []))
    n = told["cols"]
    equal((told["rows"], told["first_row"]), (n, "north"), "rows")
    equal(told["components"] * 2 * told["section_size"] + 1, n, "components")
    if ending == ".png":
        width, height, channels, depth, rows = read_png(data)
        equal((width, height, channels, depth), (n, n, 1, 16), "the picture")
        codes = [code for row in rows for code in row]
    else:
        codes = words(data, "H")
    equal(len(codes), n * n, "codes")
    equal((min(codes), max(codes)), (0, 65535), "codes use their range")
    at, scale = told["location"], told["scale"]
    samples = [((at[0] + c * scale[0]) / 100, -(at[1] + r * scale[1]) / 100,
                (at[2] + (codes[r * n + c] - 32768) / 128 * scale[2]) / 100)
               for r in range(n) for c in range(n)]
    heights_match(name, told, samples, told["height_step"] / 2)


def unity(name, ending, size):
    """Terrain: X east, Y up, Z north; first row at z 0; height = position.y + code / 65535 · size.y."""
    told, data = export(name, "unity", ending, *(["--size", str(size)] if size else []))
    n = told["resolution"]
    equal((told["depth"], told["byte_order"], told["flip_vertically"]), ("Bit 16", "Windows", False), "words")
    check((n - 1) & (n - 2) == 0, f"{n} is no power of two and 1")
    codes, at, whole = words(data, "H"), told["position"], told["terrain_size"]
    equal(len(codes), n * n, "codes")
    samples = [(at[0] + c / (n - 1) * whole[0], at[2] + r / (n - 1) * whole[2],
                at[1] + codes[r * n + c] / 65535 * whole[1]) for r in range(n) for c in range(n)]
    heights_match(name, told, samples, told["height_step"] / 2)


def terrain3d(name, ending, size):
    """Z is south; r16: rows of 16 bits, little-endian, from r16_range[0] to r16_range[1]."""
    told, data = export(name, "terrain3d", ending, *(["--size", str(size)] if size else []))
    cols, rows = told["r16_size"]
    codes, (low, high), at = words(data, "H"), told["r16_range"], told["import_position"]
    step = told["vertex_spacing"]
    equal(len(codes), cols * rows, "codes")
    samples = [(at[0] + c * step, -(at[2] + r * step), codes[r * cols + c] / 65535 * (high - low) + low)
               for r in range(rows) for c in range(cols)]
    shifted(name, told, samples, told["height_step"] / 2)


def ground_at_samples(name):
    """[rows][cols] from the south; NaN also where no triangle at a sample is whole."""
    terrain = FIELDS[name]
    heights = [[terrain.height(terrain.origin[0] + c * terrain.spacing[0],
                               terrain.origin[1] + r * terrain.spacing[1], "triangle")[1]
                for c in range(terrain.cols)] for r in range(terrain.rows)]
    return [[NAN if h is None else h for h in row] for row in heights]


def godot(name, ending, size):
    """HeightMapShape3D: centred, one unit a cell, Z is south; the node's scale and position."""
    told, data = export(name, "godot", ending, *(["--size", str(size)] if size else []))
    cols, rows = told["map_width"], told["map_depth"]
    heights, at, scale = words(data, "f"), told["position"], told["scale"]
    equal(len(heights), cols * rows, "heights")
    samples = [(at[0] + (c - (cols - 1) / 2) * scale[0], -(at[2] + (r - (rows - 1) / 2) * scale[2]),
                heights[r * cols + c]) for r in range(rows) for c in range(cols)]
    equal(sum(map(math.isnan, heights)), told["holes"], "holes are NaN")
    shifted(name, told, [s for s in samples if not math.isnan(s[2])] if told["holes"] else samples, 0)
    if not size and name != "oblong":
        want = array.array("f", [h for row in ground_at_samples(name)[::-1] for h in row])
        check(want.tobytes() == heights.tobytes(), "samples of the layer are not the same bits")


def shifted(name, told, samples, within):
    """Of one spacing for both axes: may end before the rim in the north and east."""
    if told["holes"] == 0:
        heights_match(name, told, samples, within)
        return
    terrain = FIELDS[name]
    for x, y, height in samples:
        c, r = ((x - terrain.origin[0]) / terrain.spacing[0], (y - terrain.origin[1]) / terrain.spacing[1])
        want = terrain.h[round(r)][round(c)]
        if not math.isnan(want):
            near(height, want, f"sample {c}, {r}", rel=within / max(abs(want), 1) + 1e-6)


for engine_, ending_, sizes_ in ((unreal, ".r16", (None, 127)), (unreal, ".png", (None,)),
                                 (unity, ".raw", (None, 129, 33)), (unity, ".r16", (None,)),
                                 (terrain3d, ".r16", (None, 37)), (godot, ".f32", (None, 37))):
    for name_ in ("even", "odd", "oblong"):
        for size_ in sizes_:
            case(f"{engine_.__name__} reads {name_}{ending_}, --size {size_ or 'left out'}", engine_,
                 name_, ending_, size_)
case("godot: holes are NaN", godot, "holes", ".f32", None)


@test("holes of 16 bits are the lowest height, and counted")
def _():
    told, data = export("holes", "unity", ".raw")
    codes, ground = words(data, "H"), ground_at_samples("holes")
    holes = [(c, r) for r in range(33) for c in range(33) if math.isnan(ground[r][c])]
    equal(told["holes"], len(holes), "holes")
    check(all(codes[r * 33 + c] == 0 for c, r in holes), "a hole is not 0")
    equal(told["resolution"], 33, "each sample is kept")


@test("blender and godot get a glb, of a heightfield with steps and of a mesh")
def _():
    put_mesh(daemon, "even", [rectangle(0, 0, 4, 4, 2)], layer="roof")
    for engine in ("blender", "godot"):
        for layer, size, count in (("ground", None, 65 * 65), ("ground", "17", 17 * 17), ("roof", None, 4)):
            path = os.path.join(folder.name, "x.glb")
            result = kota("export", "even", layer, path, "--for", engine,
                          *(["--size", size] if size else []), url=daemon.url)
            equal(result.status, 0, str(result))
            equal(result.lines[0]["format"], "glb", "format")
            with open(path, "rb") as file:
                data = file.read()
            equal(struct.unpack("<4sII", data[:12]), (b"glTF", 2, len(data)), "header")
            length, = struct.unpack("<I", data[12:16])
            equal(json.loads(data[20:20 + length])["accessors"][0]["count"], count, f"vertices of {layer}")


@test("what an engine does not take is refused in one line, and no file is left")
def _():
    path = os.path.join(folder.name, "no")
    for options, words_, status in (
            (["x.r16", "--for", "quake"], ["quake", "unreal unity terrain3d godot blender"], 2),
            (["x.png", "--for", "unity"], [".raw or .r16"], 2),
            (["x.raw", "--for", "unity", "--size", "100"], ["100", "33 65 129 257"], 1),
            (["x.r16", "--for", "terrain3d", "--size", "1"], ["1"], 2),
            (["x.f32", "--size", "33"], ["--for"], 2)):
        fails(kota("export", "even", "ground", path + options[0], *options[1:], url=daemon.url), status, *words_)
        check(not os.path.exists(path + options[0]), "a file is left")
    fails(kota("export", "even", "roof", path + "x.r16", "--for", "unreal", url=daemon.url), 1, "mesh")
    put_terrain(daemon, "void", Terrain(3, 3, [[NAN] * 3] * 3, (1.0, 1.0), (0.0, 0.0)))
    fails(kota("export", "void", "ground", path + "x.r16", "--for", "unreal", url=daemon.url), 1, "no ground")


run(daemon.stop)
