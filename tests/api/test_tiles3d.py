"""3D Tiles and glb: the tileset's transforms, and models read by the specification."""
import json
import math
import struct

from daemon import Daemon, problem
from earth import axes, ecef
from fields import NAN, Terrain, put_layer, put_locale
from mesh_oracle import put_mesh, rectangle, wall
from tap import check, equal, rng, run, test

daemon = Daemon()
ORIGIN = (47.2692, 11.4041)
random = rng("tiles3d")
COLS, ROWS = 40, 30
field = Terrain(COLS, ROWS, [[random.uniform(0, 50) if random.random() > 0.05 else NAN
                              for _ in range(COLS)] for _ in range(ROWS)], (2.0, 3.0), (500000.25, 10.0))
put_locale(daemon, "town", geo={"lat": ORIGIN[0], "lng": ORIGIN[1]})
put_layer(daemon, "town", field)
# concave: an L, whose area a fan would get wrong
ELL = [(0, 0, 5), (6, 0, 5), (6, 2, 5), (2, 2, 5), (2, 6, 5), (0, 6, 5)]
put_mesh(daemon, "town", [ELL, rectangle(10, 10, 14, 13, 2), wall((20, 0), (25, 0), 0, 4)], layer="house")
put_mesh(daemon, "town", [rectangle(-3, -1, 3, 1, 0)], layer="ferry")


def near(got, want, what, within):
    check(abs(got - want) <= within, f"{what}: got {got!r}, expected {want!r}")


def model(path):
    """(points, normals, triangles) in the frame; the axes of glTF are turned back."""
    answer = daemon.get(path)
    check(answer.status == 200, str(answer))
    equal(answer.media_type, "model/gltf-binary", "media type")
    data = answer.body
    equal(struct.unpack("<4sII", data[:12]), (b"glTF", 2, len(data)), "header")
    length, kind = struct.unpack("<I4s", data[12:20])
    equal(kind, b"JSON", "the first chunk")
    told, rest = json.loads(data[20:20 + length]), data[20 + length:]
    size, kind = struct.unpack("<I4s", rest[:8])
    equal((kind, size), (b"BIN\0", len(rest) - 8), "the second chunk")
    equal(told["buffers"][0]["byteLength"], size, "the buffer")
    binary = rest[8:]

    def values(index, form):
        accessor = told["accessors"][index]
        view = told["bufferViews"][accessor["bufferView"]]
        count = accessor["count"] * (3 if accessor["type"] == "VEC3" else 1)
        equal(view["byteLength"], 4 * count, "the view")
        return struct.unpack_from(f"<{count}{form}", binary, view.get("byteOffset", 0))

    flat, normals, indices = values(0, "f"), values(1, "f"), values(2, "I")
    for axis in range(3):
        equal(told["accessors"][0]["min"][axis] <= min(flat[axis::3]) + 1e-3, True, "min")
        equal(told["accessors"][0]["max"][axis] >= max(flat[axis::3]) - 1e-3, True, "max")
    shift = told["nodes"][0]["translation"]

    def turned(values, shift):
        triples = [[v + s for v, s in zip(values[i:i + 3], shift)] for i in range(0, len(values), 3)]
        return [(x, -z, y) for x, y, z in triples]
    return (turned(flat, shift), turned(normals, (0, 0, 0)),
            [indices[i:i + 3] for i in range(0, len(indices), 3)])


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def area(points, triangle):
    a, b, c = (points[i] for i in triangle)
    return cross([y - x for x, y in zip(a, b)], [y - x for x, y in zip(a, c)])


@test("a mesh layer is its polygons: concave ones as triangles, normals on the side of the area")
def _():
    points, normals, triangles = model("/v1/locales/town/3dtiles/house.glb")
    whole = [math.hypot(*area(points, t)) / 2 for t in triangles]
    near(sum(whole), 20 + 12 + 20, "area", 1e-3)
    for t in triangles:
        for i in t:
            turn = sum(p * q for p, q in zip(normals[i], area(points, t)))
            check(turn > 0.99 * math.hypot(*area(points, t)), "a normal is not its triangle's")
    flat = sum(a for a, t in zip(whole, triangles) if all(points[i][2] == 5 for i in t))
    near(flat, 20, "the L", 1e-4)


@test("a heightfield is its samples and triangles, without those that touch a hole")
def _():
    points, normals, triangles = model("/v1/locales/town/3dtiles/ground.glb")
    wanted = {(500000.25 + 2 * c, 10.0 + 3 * r): field.h[r][c] for c in range(COLS)
              for r in range(ROWS) if not math.isnan(field.h[r][c])}
    equal(len(points), len(wanted), "vertices")
    for x, y, z in points:
        key = (round((x - 500000.25) / 2) * 2 + 500000.25, round((y - 10) / 3) * 3 + 10.0)
        near(math.hypot(x - key[0], y - key[1]), 0, "place", 1e-4)
        near(z, wanted[key], "height", 1e-4)
    whole = 0
    for c in range(COLS - 1):
        for r in range(ROWS - 1):
            a, b, d, e = (field.h[j][i] for i, j in ((c, r), (c + 1, r), (c, r + 1), (c + 1, r + 1)))
            whole += (not math.isnan(a + b + d)) + (not math.isnan(e + b + d))
    equal(len(triangles), whole, "triangles")
    for t in triangles:
        check(area(points, t)[2] > 0, "a triangle is seen from below")
    check(all(n[2] > 0 for n in normals), "a normal points down")
    coarse, _, _ = model("/v1/locales/town/3dtiles/ground.glb?step=4")
    check(set(coarse) and len(coarse) < len(points) / 8, f"{len(coarse)} vertices with step=4")


@test("the tileset places the frame on the ellipsoid and each mesh layer in its pose")
def _():
    told = daemon.ok("GET", "/v1/locales/town/3dtiles/tileset.json")
    equal(told["asset"]["version"], "1.1", "version")
    m = told["root"]["transform"]
    for column, axis in enumerate(axes(*ORIGIN)):
        for k in range(3):
            near(m[4 * column + k], axis[k], f"column {column}", 1e-12)
    for k, value in enumerate(ecef(*ORIGIN)):
        near(m[12 + k], value, "origin", 1e-6)
    equal([m[3], m[7], m[11], m[15]], [0, 0, 0, 1], "the last row")
    names = [child["content"]["uri"].partition(".")[0] for child in told["root"]["children"]]
    equal(names, ["house", "ferry"], "children")
    check(all("transform" not in child for child in told["root"]["children"]), "none was moved")
    daemon.ok("PUT", "/v1/locales/town/layers/ferry/transform",
              {"translation": [100, 200, 3], "yaw_deg": 90})
    told = daemon.ok("GET", "/v1/locales/town/3dtiles/tileset.json")
    m = told["root"]["children"][1]["transform"]
    for got, want in zip(m, [0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 100, 200, 3, 1]):
        near(got, want, "pose", 1e-12)
    box = told["root"]["boundingVolume"]["box"]
    check(box[0] + box[3] >= 101 and box[1] + box[7] >= 203, f"the box leaves the ferry out: {box}")
    uri = told["root"]["children"][1]["content"]["uri"]
    answer = daemon.get(f"/v1/locales/town/3dtiles/{uri}")
    equal(answer.status, 200, uri)
    check("immutable" in answer.headers["cache-control"], "its content may be cached for ever")
    equal(daemon.get(f"/v1/locales/town/3dtiles/{uri}",
                     headers={"If-None-Match": answer.headers["etag"]}).status, 304, "ETag")


@test("a tileset in UTM is where its meshes are")
def _():
    put_locale(daemon, "utm", crs="EPSG:25832")
    # by PROJ 9.1.1: 47.2692 north, 11.4041 east
    x, y = 681848.8821161, 5237883.2413811
    put_mesh(daemon, "utm", [rectangle(x - 5, y - 5, x + 5, y + 5, 0)], layer="roof")
    m = daemon.ok("GET", "/v1/locales/utm/3dtiles/tileset.json")["root"]["transform"]
    got = [m[k] * x + m[4 + k] * y + m[12 + k] for k in range(3)]
    near(math.dist(got, ecef(*ORIGIN)), 0, "the middle", 1e-3)
    near(math.hypot(*m[:3]), 1, "the scale of a zone's map", 2e-3)


@test("what is none is refused")
def _():
    put_locale(daemon, "empty", geo={"lat": 0, "lng": 0})
    put_locale(daemon, "nowhere")
    put_mesh(daemon, "nowhere", [rectangle(0, 0, 1, 1, 0)])
    problem(daemon.get("/v1/locales/empty/3dtiles/tileset.json"), 422, pointer="locale")
    problem(daemon.get("/v1/locales/nowhere/3dtiles/tileset.json"), 422, pointer="locale")
    equal(daemon.get("/v1/locales/nowhere/3dtiles/mesh.glb").status, 200, "a model needs no place")
    problem(daemon.get("/v1/locales/town/3dtiles/none.glb"), 404)
    problem(daemon.get("/v1/locales/town/3dtiles/house.gltf"), 404)
    problem(daemon.get("/v1/locales/town/3dtiles/ground.glb?step=0"), 400, pointer="step")
    put_layer(daemon, "empty", Terrain(2, 2, [[NAN] * 2] * 2, (1.0, 1.0), (0.0, 0.0)))
    problem(daemon.get("/v1/locales/empty/3dtiles/ground.glb"), 422)


run(daemon.stop)
