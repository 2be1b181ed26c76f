"""quantized-mesh: layer.json and tiles, decoded here by the specification."""
import gzip
import json
import math
import struct

from daemon import Daemon, problem
from earth import ecef, enu
from fields import NAN, Terrain, put_layer, put_locale
from tap import case, check, equal, rng, run, test

daemon = Daemon()
MESH = "application/vnd.quantized-mesh"


def place(name, geo, spacing, holes=0.0, cols=180, rows=150):
    random = rng(name)
    heights = [[700 + 200 * math.sin(c / 9) + 150 * math.cos(r / 7) + random.uniform(-30, 30)
                if random.random() >= holes else NAN for c in range(cols)] for r in range(rows)]
    put_locale(daemon, name, geo={"lat": geo[0], "lng": geo[1]})
    put_layer(daemon, name, Terrain(cols, rows, heights, (spacing, spacing),
                                    (-cols * spacing / 2, -rows * spacing / 2)))
    return name, geo


ALPS = place("alps", (47.2692, 11.4041), 12.0)
HOLES = place("holes", (-33.0, 151.0), 15.0, holes=0.15)
DATELINE = place("dateline", (-17.0, 180.0), 20.0)
NORTH = place("north", (85.0, -60.0), 20.0)
POLE = place("pole", (90.0, 0.0), 30.0)


def near(got, want, what, within):
    check(abs(got - want) <= within, f"{what}: got {got!r}, expected {want!r}")


def layer(name):
    answer = daemon.get(f"/v1/locales/{name}/terrain/layer.json")
    check(answer.status == 200, str(answer))
    return answer.json


def tile(name, z, x, y, extensions="octvertexnormals-metadata"):
    answer = daemon.get(f"/v1/locales/{name}/terrain/{z}/{x}/{y}.terrain",
                        headers={"Accept": f"{MESH};extensions={extensions},*/*;q=0.1"})
    check(answer.status == 200, str(answer))
    equal(answer.media_type, MESH, "media type")
    return decode(answer.body, z, x, y)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        form = "<" + form
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values


def decode(data, z, x, y):
    """A dict of what the specification's reader gets."""
    r, out = Reader(data), {}
    out["center"], (out["low"], out["high"]) = r.take("3d"), r.take("2f")
    out["sphere"], out["occlusion"] = r.take("4d"), r.take("3d")
    count, = r.take("I")
    axes = []
    for _ in range(3):
        value, axis = 0, []
        for code in r.take(f"{count}H"):
            value += code >> 1 ^ -(code & 1)
            axis.append(value)
        axes.append(axis)
    out["u"], out["v"], out["h"] = axes
    triangles, = r.take("I")
    highest, indices = 0, []
    for code in r.take(f"{3 * triangles}H"):
        indices.append(highest - code)
        highest += code == 0
    out["triangles"] = [indices[i:i + 3] for i in range(0, len(indices), 3)]
    equal(highest, count, "vertices that are used")
    for edge in ("west", "south", "east", "north"):
        n, = r.take("I")
        out[edge] = r.take(f"{n}H")
    out["extensions"] = {}
    while r.at < len(data):
        kind, length = r.take("BI")
        out["extensions"][kind] = data[r.at:r.at + length]
        r.at += length
    equal(r.at, len(data), "the end")
    size = 180 / 2 ** z
    out["places"] = [(-90 + (y + v / 32767) * size, -180 + (x + u / 32767) * size, out["low"] +
                      h / 32767 * (out["high"] - out["low"])) for u, v, h in zip(*axes)]
    out["step"] = (out["high"] - out["low"]) / 32767
    return out


def lowest(name, down=0):
    """z, x, y of a tile in the middle of the ground, so many levels above the last."""
    told = layer(name)
    z = told["maxzoom"] - down
    ranges = told["available"][z][0]
    return z, (ranges["startX"] + ranges["endX"]) // 2, (ranges["startY"] + ranges["endY"]) // 2


@test("layer.json has what Cesium needs, and a range for each level")
def _():
    told = layer("alps")
    equal((told["format"], told["scheme"], told["projection"]),
          ("quantized-mesh-1.0", "tms", "EPSG:4326"), "members")
    equal(told["tiles"], ["{z}/{x}/{y}.terrain?v=2"], "tiles")
    equal(len(told["available"]), told["maxzoom"] + 1, "levels")
    equal(told["metadataAvailability"], 6, "levels in the metadata of a tile")
    equal(told["available"][0], [{"startX": 0, "startY": 0, "endX": 1, "endY": 0}], "both roots")
    west, south, east, north = told["bounds"]
    for z, ranges in enumerate(told["available"][1:], 1):
        size = 180 / 2 ** z
        equal(ranges, [{"startX": int((west + 180) / size), "startY": int((south + 90) / size),
                        "endX": int((east + 180) / size), "endY": int((north + 90) / size)}], f"{z}")
    spacing = 180 / 2 ** told["maxzoom"] / 64 * 111319.49
    check(spacing <= 12 < 2 * spacing, f"vertices {spacing} m apart at the last zoom")
    equal(len(layer("dateline")["available"][9]), 2, "two ranges over the antimeridian")


def vertices_are_heights(where, down):
    name, geo = where
    z, x, y = lowest(name, down)
    got = tile(name, z, x, y)
    points = [enu(geo, lat, lng)[:2] for lat, lng, _ in got["places"]]
    answers = daemon.ok("POST", f"/v1/locales/{name}/height", {"points": points})["results"]
    known = 0
    for (_, _, height), answer in zip(got["places"], answers):
        if answer["status"] == "ok":
            known += 1
            near(height, answer["height"], "a vertex", got["step"] / 2 + 1e-3)
        elif answer["status"] == "outside":
            near(height, 0, "beyond the ground", got["step"] / 2 + 1e-3)
        else:
            check(280 < height < 1120, f"a hole is at {height}")
    check(known > 200 / 4 ** down, f"{known} vertices are on ground")
    centre = got["sphere"][:3]
    for lat, lng, height in got["places"][::7]:
        point = ecef(lat, lng, height)
        check(math.dist(point, centre) <= got["sphere"][3] + got["step"], "beyond the sphere")


for one in (ALPS, HOLES, DATELINE, NORTH, POLE):
    for down_ in (0, 2):
        case(f"vertices are heights: {one[0]}, {down_} above the last zoom", vertices_are_heights,
             one, down_)


def no_cracks(where):
    name, _ = where
    z, x, y = lowest(name)
    middle, east, north = tile(name, z, x, y), tile(name, z, x + 1, y), tile(name, z, x, y + 1)
    for a, b, mine, others in ((middle, east, "east", "west"), (middle, north, "north", "south")):
        one = sorted(a["places"][i] for i in a[mine])
        other = sorted(b["places"][i] for i in b[others])
        equal(len(one), len(other), "vertices of the edge")
        for p, q in zip(one, other):
            check(abs(p[0] - q[0]) < 1e-12 and abs(p[1] - q[1]) < 1e-12, f"{p} and {q}")
            near(p[2], q[2], f"the {mine} edge", (a["step"] + b["step"]) / 2 + 1e-9)


for one in (ALPS, HOLES, NORTH):
    case(f"neighbours of one level share their edge: {one[0]}", no_cracks, one)


@test("triangles are counter-clockwise from above and cover the tile; edges are its edges")
def _():
    got = tile("alps", *lowest("alps"))
    area = 0
    for a, b, c in got["triangles"]:
        (x0, y0), (x1, y1), (x2, y2) = ((got["u"][i], got["v"][i]) for i in (a, b, c))
        twice = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        check(twice > 0, "a triangle is clockwise")
        area += twice / 2
    equal(area, 32767 * 32767, "area")
    for edge, axis, value in (("west", "u", 0), ("south", "v", 0), ("east", "u", 32767),
                              ("north", "v", 32767)):
        equal({got[axis][i] for i in got[edge]}, {value}, edge)
        equal(len(set(got[edge])), 65, edge)
    equal((min(got["h"]), max(got["h"])), (0, 32767), "the range of heights is used")


def octahedral(a, b):
    x, y = a / 255 * 2 - 1, b / 255 * 2 - 1
    z = 1 - abs(x) - abs(y)
    if z < 0:
        x, y = (1 - abs(y)) * math.copysign(1, x), (1 - abs(x)) * math.copysign(1, y)
    n = math.hypot(x, y, z)
    return x / n, y / n, z / n


@test("gzip where Accept-Encoding asks for it: the same tile, shorter, under another tag")
def _():
    z, x, y = lowest("alps", 3)
    path = f"/v1/locales/alps/terrain/{z}/{x}/{y}.terrain"
    plain = daemon.get(path, headers={"Accept-Encoding": "identity"})
    packed = daemon.get(path, headers={"Accept-Encoding": "gzip"})
    equal((plain.headers.get("content-encoding"), packed.headers["content-encoding"]), (None, "gzip"),
          "coding")
    check(gzip.decompress(packed.body) == plain.body, "another tile")
    check(len(packed.body) < 0.8 * len(plain.body), f"{len(plain.body)} are {len(packed.body)} bytes")
    check(packed.headers["etag"] != plain.headers["etag"], "one tag for two bodies")
    again = daemon.get(path, headers={"Accept-Encoding": "gzip", "If-None-Match": packed.headers["etag"]})
    equal((again.status, again.headers.get("content-encoding")), (304, None), "If-None-Match")
    equal(daemon.get(path, headers={"Accept-Encoding": "gzip", "If-None-Match": plain.headers["etag"]}).status,
          200, "the tag of the other coding")
    print(f"# {len(plain.body)} bytes are {len(packed.body)}")


@test("normals are of the four vertices around")
def _():
    got = tile("alps", *lowest("alps"))
    at = {(u, v): ecef(*place) for u, v, place in zip(got["u"], got["v"], got["places"])}
    across = {axis: sorted(set(got[axis])) for axis in "uv"}
    beside = {axis: {b: (a, c) for a, b, c in zip(all_, all_[1:], all_[2:])} for axis, all_ in across.items()}
    inner = [i for i, (u, v) in enumerate(zip(got["u"], got["v"])) if u in beside["u"] and v in beside["v"]]
    for i in inner[::11]:
        (west, east), (south, north) = beside["u"][got["u"][i]], beside["v"][got["v"][i]]
        a, b = ([p - q for p, q in zip(at[one], at[other])] for one, other in (
            ((east, got["v"][i]), (west, got["v"][i])), ((got["u"][i], north), (got["u"][i], south))))
        want = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
        normal = octahedral(*got["extensions"][1][2 * i:2 * i + 2])
        near(sum(p * q for p, q in zip(normal, want)) / math.hypot(*want), 1, "cosine of the angle between", 1e-3)
    check(len(inner) > 3000, f"{len(inner)} vertices inside")


@test("extensions come where they are asked for: normals and what is below")
def _():
    z, x, y = lowest("alps", 3)
    plain = daemon.get(f"/v1/locales/alps/terrain/{z}/{x}/{y}.terrain")
    equal(decode(plain.body, z, x, y)["extensions"], {}, "none")
    equal(plain.headers["vary"], "Accept, Accept-Encoding", "Vary")
    asked = daemon.get(f"/v1/locales/alps/terrain/{z}/{x}/{y}.terrain?extensions=octvertexnormals")
    equal(set(decode(asked.body, z, x, y)["extensions"]), {1}, "by the query")
    got = tile("alps", z, x, y)
    equal(set(got["extensions"]), {1, 4}, "both")
    length, = struct.unpack("<I", got["extensions"][4][:4])
    told = json.loads(got["extensions"][4][4:4 + length])["available"]
    all_levels = layer("alps")["available"]
    for up, ranges in enumerate(told, 1):
        for r in ranges:
            whole = all_levels[z + up][0]
            check(x << up <= r["startX"] <= r["endX"] < (x + 1) << up and
                  whole["startX"] <= r["startX"] and r["endX"] <= whole["endX"], f"level {up}: {r}")
    flat = tile("alps", 0, 0, 0)
    equal((flat["low"], flat["high"]), (0, 0), "the other half of the Earth is flat")


@test("tiles have ETags, v is cached for ever, and what is none is refused")
def _():
    z, x, y = lowest("alps")
    path = f"/v1/locales/alps/terrain/{z}/{x}/{y}.terrain"
    first = daemon.get(path)
    equal(daemon.get(path, headers={"If-None-Match": first.headers["etag"]}).status, 304, "ETag")
    equal(first.headers["cache-control"], "no-cache", "without v")
    check("immutable" in daemon.get(path + "?v=2").headers["cache-control"], "with v")
    for wrong, pointer in ((f"{z}/{x}/{y}.png", "y"), (f"{z}/{x}/{2 ** z}.terrain", "y"),
                           (f"{z}/{2 ** (z + 1)}/{y}.terrain", "x"), ("60/0/0.terrain", "z"),
                           ("-1/0/0.terrain", "z"), (f"{z}/NaN/{y}.terrain", "x"),
                           (f"{z}/0/0.terrain", "x")):
        problem(daemon.get(f"/v1/locales/alps/terrain/{wrong}"), 404, pointer=pointer)
    put_locale(daemon, "nowhere")
    problem(daemon.get("/v1/locales/nowhere/terrain/layer.json"), 422)


run(daemon.stop)
