"""Layers as files: what comes out goes in again, and limits."""
import math
import struct

from daemon import F32, Daemon, problem
from fields import NAN, Terrain, put_layer, put_locale, put_terrain, random_point, shapes
from images import read_png
from mesh_oracle import NOT_SHARED, obj, put_mesh, rectangle, wall
from oracle import ALTERNATING, ANTI, MAIN, random_terrain
from tap import case, check, equal, near, rng, run, test

daemon = Daemon()
OBJ = "model/obj"
SHAPES = shapes()
for name_, terrain_ in SHAPES.items():
    put_terrain(daemon, name_, terrain_)


def export(name, layer="ground", form=None, **named):
    query = f"?format={form}" if form else ""
    return daemon.get(f"/v1/locales/{name}/layers/{layer}{query}", **named)


def exported(name, media, layer="ground", form=None):
    answer = export(name, layer, form)
    check(answer.status == 200, str(answer))
    equal(answer.media_type, media, "Content-Type")
    equal(answer.headers["kota-revision"],
          str(daemon.ok("GET", f"/v1/locales/{name}")["revision"]), "Kota-Revision")
    return answer


def query_of(answer):
    """What a PUT of the same samples needs, from the headers."""
    return "&".join(f"{key}={answer.headers['kota-' + key]}"
                    for key in ("cols", "rows", "spacing", "origin"))


def f32_returns(name, terrain):
    answer = exported(name, F32)
    check(answer.body == terrain.body(), "the samples are not the ones that were put")
    equal(exported(name, F32, form="f32").body, answer.body, "format=f32")
    put_locale(daemon, name + "-again", triangulation=terrain.triangulation)
    put = daemon.ok("PUT", f"/v1/locales/{name}-again/layers/ground?{query_of(answer)}",
                    answer.body, status=201, media=F32)
    mine = daemon.ok("GET", f"/v1/locales/{name}")["layers"][0]
    equal({k: v for k, v in put["layers"][0].items()}, mine, "the layer")
    equal(exported(name + "-again", F32).body, answer.body, "the copy's samples")


for name_, terrain_ in SHAPES.items():
    case(f"f32 of {name_} comes back bit for bit, by the query that the headers tell", f32_returns,
         name_, terrain_)


def png16_is_near(name, terrain):
    answer = exported(name, "image/png", form="png16")
    offset, scale = float(answer.headers["kota-offset"]), float(answer.headers["kota-scale"])
    width, height, channels, depth, rows = read_png(answer.body)
    equal((width, height, channels, depth), (terrain.cols, terrain.rows, 1, 16), "shape")
    for r, line in enumerate(rows):
        for c, code in enumerate(line):
            if math.isnan(terrain.h[r][c]):
                equal(code, 0, f"code of the hole ({c},{r})")
            else:
                check(code > 0, f"({c},{r}) is a hole")
                check(abs(offset + scale * code - terrain.h[r][c]) <= scale * 0.500001,
                      f"({c},{r}): {offset + scale * code} for {terrain.h[r][c]}")
    query = f"spacing={answer.headers['kota-spacing']}&origin={answer.headers['kota-origin']}"
    put_locale(daemon, name + "-png", triangulation=terrain.triangulation)
    daemon.ok("PUT", f"/v1/locales/{name}-png/layers/ground?{query}&height_scale={scale!r}"
              f"&height_offset={offset!r}&nodata=0", answer.body, status=201, media="image/png")
    back = struct.unpack(f"<{terrain.cols * terrain.rows}f", exported(name + "-png", F32).body)
    for i, got in enumerate(back):
        want = terrain.h[i // terrain.cols][i % terrain.cols]
        if math.isnan(want):
            check(math.isnan(got), f"sample {i} is no hole")
        else:
            check(abs(got - want) <= scale * 0.500001 + abs(want) * 1e-7, f"{i}: {got} for {want}")


for name_ in ("tiny", "small-alternating", "wide-main", "thin"):
    case(f"png16 of {name_} is within half a step, and so is what it is put back as",
         png16_is_near, name_, SHAPES[name_])


def obj_answers_the_same(name, terrain):
    text = exported(name, OBJ, form="obj")
    put_locale(daemon, name + "-obj")
    put = daemon.ok("PUT", f"/v1/locales/{name}-obj/layers/mesh", text.body, status=201, media=OBJ)
    triangles = sum(terrain.exists(c, r, k) for r in range(terrain.rows - 1)
                    for c in range(terrain.cols - 1) for k in (0, 1))
    equal(put["import"], {"kept": triangles, "split": 0, "dropped": 0, **NOT_SHARED}, "import")
    random = rng("obj " + name)
    points = [random_point(random, terrain, 0) for _ in range(400)]
    ask = {"points": points}
    field = daemon.ok("POST", f"/v1/locales/{name}/height", ask)["results"]
    mesh = daemon.ok("POST", f"/v1/locales/{name}-obj/height", ask)["results"]
    differ = 0
    for point, a, b in zip(points, field, mesh):
        if a["status"] != b["status"]:
            differ += 1  # a rounding at the rim decides
        elif a["status"] == "ok":
            near(b["height"], a["height"], f"height at {point}", rel=1e-6)
    check(differ <= 30, f"{differ} of 400 have another status")
    check(sum(item["status"] == "ok" for item in field) > 100, "hardly any ground was asked")


for name_ in ("tiny", "small-anti", "small-main", "small-alternating", "wide-anti",
              "wide-alternating"):
    case(f"obj of {name_}, put as a mesh, answers the same heights", obj_answers_the_same, name_,
         SHAPES[name_])


@test("obj of a mesh: the polygons as they were uploaded, the same contacts when they come back")
def _():
    rings = [rectangle(0, 0, 4, 2, 1), wall((0, 0), (4, 0), 1, 3), rectangle(1, 0, 3, 2, 5),
             [(0, 0, 2), (4, 0, 2), (4, 2, 2), (2, 0.5, 2), (0, 2, 2)],  # not convex: split
             [(0, 0, 0), (1, 0, 0), (2, 0, 0)]]                          # no area: dropped
    put_locale(daemon, "mesh")
    put_mesh(daemon, "mesh", rings)
    layer = daemon.ok("GET", "/v1/locales/mesh")["layers"][0]["id"]
    text = exported("mesh", OBJ, layer).body
    faces = [line for line in text.decode().splitlines() if line.startswith("f ")]
    vertices = [tuple(map(float, line.split()[1:])) for line in text.decode().splitlines()
                if line.startswith("v ")]
    equal([[tuple(vertices[int(i) - 1]) for i in line.split()[1:]] for line in faces],
          [[tuple(map(float, p)) for p in ring] for ring in rings], "the polygons in order")
    put_locale(daemon, "mesh-again")
    daemon.ok("PUT", f"/v1/locales/mesh-again/layers/{layer}", text, status=201, media=OBJ)
    random = rng("mesh")
    points = [[random.uniform(-0.5, 4.5), random.uniform(-0.5, 2.5), random.uniform(-1, 7)]
              for _ in range(500)]
    one, other = (daemon.ok("POST", f"/v1/locales/{name}/contact", {"points": points})["results"]
                  for name in ("mesh", "mesh-again"))
    equal(other, one, "contacts")
    check(any(item["floor"] for item in one), "no contact at all")


@test("the image of a mesh is made once where it is a small part of the cache")
def _():
    for flags, hits in ((), 1), (("--tile-cache", "1000"), 0):
        with Daemon(*flags) as one:
            put_locale(one, "mesh")
            put_mesh(one, "mesh", [rectangle(0, 0, 4, 2, 1)] * 8, layer="walls")
            first, second = (one.get("/v1/locales/mesh/layers/walls?format=qota").body for _ in range(2))
            equal(second, first, "body")
            equal(one.ok("GET", "/v1/stats")["tile_cache"]["hits"], hits, f"hits with {flags}")


@test("obj of a mesh in a file with Y up and a scale is in metres with Z up")
def _():
    put_locale(daemon, "turned")
    put_mesh(daemon, "turned", [[(0, 1, 0), (2, 1, 0), (2, 1, -2), (0, 1, -2)]],
             query="up=y&scale=0.5")
    layer = daemon.ok("GET", "/v1/locales/turned")["layers"][0]["id"]
    text = exported("turned", OBJ, layer).body.decode()
    got = {tuple(map(float, line.split()[1:])) for line in text.splitlines() if line[:2] == "v "}
    equal(got, {(0, 0, 0.5), (1, 0, 0.5), (1, 1, 0.5), (0, 1, 0.5)}, "vertices")


@test("numbers of an obj read back as the same bits")
def _():
    terrain = Terrain(3, 2, [[0.1, 1e-7, -2.5e-30], [1 / 3, 12345.678, 2]], (0.1, 1 / 3),
                      (1e7 + 1 / 7, -1e-3))
    put_terrain(daemon, "digits", terrain)
    text = exported("digits", OBJ, form="obj").body.decode()
    vertices = [tuple(map(float, line.split()[1:])) for line in text.splitlines()
                if line[:2] == "v "]
    want = [terrain.at(c, r) for r in range(2) for c in range(3)]
    equal([tuple(map(float.hex, v)) for v in vertices], [tuple(map(float.hex, v)) for v in want],
          "vertices")


@test("HEAD has the headers and no body")
def _():
    get = export("wide-anti")
    head = daemon.ask("HEAD", "/v1/locales/wide-anti/layers/ground")
    equal((head.status, head.body), (200, b""), "HEAD")
    for name in ("content-length", "kota-cols", "kota-origin"):
        equal(head.headers[name], get.headers[name], name)


@test("a field of holes alone is exported")
def _():
    put_terrain(daemon, "void", Terrain(2, 2, [[NAN, NAN], [NAN, NAN]]))
    equal(exported("void", F32).body, struct.pack("<4f", NAN, NAN, NAN, NAN), "f32")
    rows = read_png(exported("void", "image/png", form="png16").body)[4]
    equal([list(line) for line in rows], [[0, 0], [0, 0]], "png16")
    equal(exported("void", OBJ, form="obj").body, b"", "obj")


@test("what is not there, or of another kind, is refused")
def _():
    put_locale(daemon, "bare")
    problem(export("nowhere"), 404, "nowhere")
    problem(export("bare", "nothing"), 404, "nothing")
    problem(export("tiny", form="jpeg"), 400, "format", pointer="format")
    problem(daemon.get("/v1/locales/tiny/layers/ground?kind=max"), 400, "kind")
    put_locale(daemon, "deck")
    put_mesh(daemon, "deck", [rectangle(0, 0, 4, 2, 1)])
    layer = daemon.ok("GET", "/v1/locales/deck")["layers"][0]["id"]
    for form in ("f32", "png16"):
        problem(export("deck", layer, form), 422, "mesh", pointer="format")


@test("what is too long for an answer is told before it is made")
def _():
    limit = 1 << 20
    terrain = random_terrain(rng("long"), 600, 500, (1.0, 1.0), (0.0, 0.0), ANTI, 0.0)
    small = random_terrain(rng("short"), 120, 100, (1.0, 1.0), (0.0, 0.0), MAIN, 0.0)
    with Daemon("--max-answers", str(limit)) as little:
        put_terrain(little, "long", terrain)
        put_terrain(little, "short", small)
        answer = little.get("/v1/locales/long/layers/ground")
        problem(answer, 413, limit=limit, got=600 * 500 * 4)
        equal(little.get("/v1/locales/long/layers/ground?format=png16").status, 200, "png16")
        told = problem(little.get("/v1/locales/long/layers/ground?format=obj"), 413, limit=limit)
        put_terrain(daemon, "long", terrain)
        equal(told["got"], len(export("long", form="obj").body), "the length that was told")
        fits = little.get("/v1/locales/short/layers/ground?format=obj")
        equal(fits.status, 200, "one whose bound is above the limit and whose text is not")
        check(len(fits.body) < limit, "its length")


@test("obj is split as the locale is now")
def _():
    terrain = SHAPES["small-alternating"]
    put_locale(daemon, "turning", triangulation=ALTERNATING)
    put_layer(daemon, "turning", terrain)
    first = exported("turning", OBJ, form="obj").body
    put_locale(daemon, "turning", status=200, triangulation=MAIN)
    check(exported("turning", OBJ, form="obj").body != first, "the same triangles")
    equal(exported("turning", F32).body, terrain.body(), "the samples")


run(daemon.stop)
