"""Edits, brushes, revisions, preconditions, Idempotency-Key and diff, against an oracle of its own."""
import json
import math
import struct
import tempfile
import threading

from daemon import F32, F64, JSON, Answer, Daemon, check, connection_to, equal, problem
from fields import put_layer, put_locale, put_terrain
from ground import cut_off, stored
from oracle import NAN, Terrain, f32, random_terrain
from tap import HANG_S, case, near, rng, run, test

daemon = Daemon()
MAX = 3.4028234663852886e38  # the greatest float32


def at(name, what=""):
    return f"/v1/locales/{name}{what}"


def heights_of(own, terrain):
    """The rows of the layer of locale sand, on another daemon."""
    cols, rows = terrain.cols, terrain.rows
    values = struct.unpack(f"<{rows * cols}f", own.get(at("sand", "/layers/ground/samples")).body)
    return [list(values[r * cols:(r + 1) * cols]) for r in range(rows)]


def samples(name, terrain, layer="ground"):
    """All samples of a layer in rows, NaN for holes, as the daemon has them (float32 in float64)."""
    points = [coordinate for r in range(terrain.rows) for c in range(terrain.cols)
              for coordinate in terrain.at(c, r)[:2]]
    answer = daemon.post(at(name, f"/height?interp=nearest&layer={layer}"),
                         struct.pack(f"<{len(points)}d", *points), media=F64)
    equal(answer.status, 200, f"heights: {answer}")
    values = struct.unpack(f"<{terrain.cols * terrain.rows}d", answer.body)
    return [list(values[r * terrain.cols:(r + 1) * terrain.cols]) for r in range(terrain.rows)]


def same(name, terrain, what, layer="ground"):
    """Bit for bit what the oracle has."""
    got = samples(name, terrain, layer)
    for r in range(terrain.rows):
        for c in range(terrain.cols):
            x, y = got[r][c], terrain.h[r][c]
            check(x == y or math.isnan(x) and math.isnan(y),
                  f"{what}: sample ({c},{r}) is {x!r}, expected {y!r}")


def holes_as_null(values):
    return [None if math.isnan(v) else v for v in values]


def applied(terrain, rect, op, heights):
    """The oracle: sums in float64, rounded once; add leaves holes and makes them."""
    c0, r0, cols, rows = rect
    for j in range(rows):
        for i in range(cols):
            value, row = f32(heights[j * cols + i]), terrain.h[r0 + j]
            row[c0 + i] = value if op == "set" else f32(row[c0 + i] + value)
    terrain.triangles = None


def edit(name, body, status=200, **named):
    answer = daemon.post(at(name, "/edits"), body, **named)
    check(answer.status == status, f"edit {str(body)[:200]}: expected {status}, got {answer}")
    return answer


def revision(name):
    return daemon.ok("GET", at(name))["revision"]


def small(name, cols=8, rows=6, value=0.0, **manifest):
    """A flat field of its own for one test."""
    terrain = Terrain(cols, rows, [[value] * cols for _ in range(rows)])
    put_terrain(daemon, name, terrain, **manifest)
    return terrain


# ---- set and add --------------------------------------------------------------------------------


def random_edits(name, cols, rows, triangulation, binary):
    random = rng("edits " + name)
    terrain = random_terrain(random, cols, rows, (2.0, 0.5), (-3.0, 100.0), triangulation)
    put_terrain(daemon, name, terrain)
    for n in range(12):
        width, depth = random.randint(1, cols), random.randint(1, rows)
        rect = [random.randint(0, cols - width), random.randint(0, rows - depth), width, depth]
        heights = [NAN if random.random() < 0.1 else random.uniform(-50, 50)
                   for _ in range(width * depth)]
        op = random.choice(("set", "add"))
        if binary:
            query = f"/edits?rect={','.join(map(str, rect))}&op={op}"
            answer = daemon.post(at(name, query), struct.pack(f"<{width * depth}f", *heights),
                                 media=F32)
        else:
            answer = daemon.post(at(name, "/edits"),
                                 {"rect": rect, "op": op, "heights": holes_as_null(heights)})
        equal(answer.status, 200, f"{op} {rect}: {answer}")
        equal(answer.json, {"locale": name, "revision": 3 + n, "rect": rect}, "answer")
        equal((answer.headers["etag"], answer.headers["kota-revision"]),
              (f'"{3 + n}"', str(3 + n)), "ETag and Kota-Revision")
        applied(terrain, rect, op, heights)
        same(name, terrain, f"{op} {rect}")


for triangulation_ in ("anti", "main", "alternating"):
    for binary_ in (False, True):
        case(f"set and add do to {triangulation_} what the oracle says, "
             f"{'f32' if binary_ else 'JSON'}", random_edits,
             f"r-{triangulation_}-{'f32' if binary_ else 'json'}", 23, 17, triangulation_, binary_)


@test("heights of any spelling are the nearest float64, rounded to float32")
def _():
    terrain = small("spelled")
    texts = ("0.1", "-0", "1e-3", "1E+2", "16777217", "123456789012345678901234567890e-20",
             "3.4028234663852886e38", "1e-46", "-2.5e0", "0.30000000000000004", "5e-324",
             "9007199254740993")
    edit("spelled", '{"heights" : [ %s ] ,"rect":[1,1,6,2]}' % " ,\n".join(texts), media=JSON)
    applied(terrain, (1, 1, 6, 2), "set", [float(text) for text in texts])
    same("spelled", terrain, "spelled")


@test("an edit over the seams of tiles is seen from both sides, as if uploaded anew")
def _():
    random = rng("seams")
    terrain = random_terrain(random, 530, 300, (1.0, 1.0), (0.0, 0.0), "anti", holes=0.01)
    put_terrain(daemon, "seams", terrain)
    for rect in ([250, 250, 12, 12], [256, 0, 1, 300], [0, 256, 530, 1], [512, 256, 1, 1],
                 [255, 255, 1, 1], [257, 257, 1, 1], [0, 0, 530, 300]):
        heights = [random.uniform(-9, 9) for _ in range(rect[2] * rect[3])]
        edit("seams", {"rect": rect, "op": "add", "heights": heights})
        applied(terrain, rect, "add", heights)
    same("seams", terrain, "seams")
    put_terrain(daemon, "anew", terrain)
    questions = [{"origin": [random.uniform(0, 529), random.uniform(0, 299), 60],
                  "direction": [random.uniform(-3, 3), random.uniform(-3, 3), -1]}
                 for _ in range(300)]
    questions += [{"origin": [c, r, 60], "direction": [0, 0, -1]}
                  for c in (255, 256, 257, 511.5, 512) for r in (255.5, 256, 256.5)]
    got = daemon.ok("POST", at("seams", "/ray"), {"rays": questions})["results"]
    want = daemon.ok("POST", at("anew", "/ray"), {"rays": questions})["results"]
    equal(got, want, "rays")
    equal(daemon.ok("GET", at("seams"))["bounds"], daemon.ok("GET", at("anew"))["bounds"], "bounds")


@test("a hole that is made and filled is seen by height, ray, contact and contains")
def _():
    small("holed", 8, 6, 5.0)

    def seen():
        point = {"points": [[3.0, 2.0, 9.0]]}
        ray = {"rays": [{"origin": [3, 2, 9], "direction": [0, 0, -1]}]}
        return (daemon.ok("GET", at("holed", "/height?x=3&y=2"))["status"],
                daemon.ok("POST", at("holed", "/ray"), ray)["results"][0]["status"],
                daemon.ok("POST", at("holed", "/contact"), point)["results"][0]["status"],
                daemon.ok("POST", at("holed", "/contains"), point)["results"][0]["floor"])

    equal(seen(), ("ok", "hit", "ok", True), "before")
    edit("holed", {"rect": [2, 1, 3, 3], "heights": [None] * 9})
    equal(seen(), ("hole", "miss", "hole", False), "with the hole")
    edit("holed", {"rect": [2, 1, 3, 3], "op": "add", "heights": [1] * 9})
    equal(seen(), ("hole", "miss", "hole", False), "add leaves it a hole")
    edit("holed", {"rect": [2, 1, 3, 3], "heights": [7] * 9})
    equal(seen(), ("ok", "hit", "ok", True), "filled")
    near(daemon.ok("GET", at("holed", "/height?x=3&y=2"))["height"], 7, "height")


@test("readers see all of an edit or nothing")
def _():
    terrain = small("whole", 40, 40)
    stop, seen = threading.Event(), []
    points = [c for r in range(40) for q in range(40) for c in terrain.at(q, r)[:2]]

    def read():
        connection = connection_to(daemon.port, timeout=HANG_S)
        while not stop.is_set():
            connection.request("POST", at("whole", "/height?interp=nearest"),
                               struct.pack(f"<{len(points)}d", *points), {"Content-Type": F64})
            answer = connection.getresponse()
            values = struct.unpack("<1600d", answer.read())
            seen.append((set(values), int(answer.headers["Kota-Revision"])))
        connection.close()

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for value in range(1, 121):
        body = struct.pack("<1600f", *[value] * 1600)
        equal(daemon.post(at("whole", "/edits?rect=0,0,40,40"), body, media=F32).status, 200,
              "edit")
    stop.set()
    for reader in readers:
        reader.join()
    check(len(seen) > 3, "readers read")
    for values, at_revision in seen:
        equal(values, {float(at_revision - 2)}, f"heights at revision {at_revision}")


# ---- brushes ------------------------------------------------------------------------------------


def weighed(terrain, brush):
    """(column, row, t, weight) of each sample that the brush may change."""
    (x0, y0), radius = brush["center"], brush["radius"]
    for r in range(terrain.rows):
        for c in range(terrain.cols):
            x, y, z = terrain.at(c, r)
            t = math.hypot(x - x0, y - y0) / radius
            if t < 1 and not math.isnan(z):
                yield c, r, t, 1 - 3 * t * t + 2 * t * t * t


def clamped(value, amount):
    return max(-amount, min(amount, value))


def neighbours_mean(h, c, r):
    around = [h[j][i] for j in range(max(0, r - 1), min(len(h), r + 2))
              for i in range(max(0, c - 1), min(len(h[0]), c + 2))
              if (i, j) != (c, r) and not math.isnan(h[j][i])]
    return sum(around) / len(around) if around else h[r][c]


def brushed(terrain, brush):
    """New heights in float64, as edit.h says."""
    amount = brush.get("amount", math.inf)
    inside = list(weighed(terrain, brush))
    new = [list(row) for row in terrain.h]
    total, outer = sum(w for _, _, _, w in inside), sum(w * t * t for _, _, t, w in inside)
    centre = terrain.height(*brush["center"])[1] if brush["shape"] == "flatten" else None
    for c, r, t, w in inside:
        h = terrain.h[r][c]
        if brush["shape"] == "raise":
            new[r][c] = h + amount * w
        elif brush["shape"] == "crater" and outer > 0:
            new[r][c] = h - amount * w * (1 - total / outer * t * t)
        elif brush["shape"] == "flatten":
            new[r][c] = h + w * clamped(centre - h, amount)
        elif brush["shape"] == "smooth":
            new[r][c] = h + w * clamped(neighbours_mean(terrain.h, c, r) - h, amount)
    return new


def paints(name, shape, triangulation):
    random = rng("brush " + name)
    terrain = random_terrain(random, 31, 24, (1.5, 2.0), (10.0, -20.0), triangulation, holes=0.03)
    put_terrain(daemon, name, terrain)
    done = 0
    while done < 12:
        brush = {"shape": shape, "radius": random.uniform(0.5, 20),
                 "center": [random.uniform(5, 60), random.uniform(-25, 30)]}
        if shape in ("raise", "crater") or random.random() < 0.5:
            brush["amount"] = random.uniform(-5 if shape == "raise" else 0, 5)
        if shape == "flatten" and terrain.height(*brush["center"])[0] != "ok":
            problem(edit(name, {"brush": brush}, 422), 422, pointer="/brush")
            continue
        inside = {(c, r): t for c, r, t, _ in weighed(terrain, brush)}
        touched = {at for at, t in inside.items() if t < 1 - 1e-9}
        if not touched:
            continue
        want, before = brushed(terrain, brush), terrain.h
        c0, r0, cols, rows = edit(name, {"brush": brush}).json["rect"]
        got = samples(name, terrain)
        for r in range(terrain.rows):
            for c in range(terrain.cols):
                what = f"{brush}: sample ({c},{r})"
                if (c, r) in touched:
                    near(got[r][c], want[r][c], what, 3e-7, abs(before[r][c]) + 1)
                    check(c0 <= c < c0 + cols and r0 <= r < r0 + rows, f"{what}: not in the rect")
                elif (c, r) not in inside:
                    check(got[r][c] == before[r][c] or math.isnan(got[r][c]), f"{what}: changed")
        if shape == "crater":
            moved = sum(got[r][c] - before[r][c] for c, r in touched)
            near(moved, 0, f"{brush}: volume", 1e-5, brush["amount"] * len(touched) + 1)
        terrain.h, terrain.triangles = got, None
        done += 1


for shape_ in ("raise", "crater", "flatten", "smooth"):
    for triangulation_ in ("anti", "alternating"):
        case(f"the brush {shape_} does what edit.h says ({triangulation_})", paints,
             f"brush-{shape_}-{triangulation_}", shape_, triangulation_)


def steepest(h, terrain, inside):
    """The steepest pair of neighbours inside, in degrees."""
    most = 0
    for c, r in inside:
        for i, j in ((1, 0), (0, 1), (1, 1), (-1, 1)):
            if (c + i, r + j) in inside:
                far = math.hypot(i * terrain.spacing[0], j * terrain.spacing[1])
                most = max(most, abs(h[r][c] - h[r + j][c + i]) / far)
    return math.degrees(math.atan(most))


@test("the brush relax: no slope above its angle, the volume, what is beyond; after kill -9, too")
def _():
    random = rng("brush relax")
    terrain = random_terrain(random, 31, 24, (1.5, 2.0), (10.0, -20.0), "anti", holes=0.03)
    with tempfile.TemporaryDirectory() as data:
        own = stored(data)
        put_terrain(own, "sand", terrain)
        start, steep = heights_of(own, terrain), []
        for slope in (None, 50, 20):
            brush = {"shape": "relax", "radius": 15.5, "center": [30, 2]}
            brush.update({} if slope is None else {"slope_deg": slope})
            before = heights_of(own, terrain)
            inside = {(c, r) for c, r, _, _ in weighed(terrain, brush)}
            rect = own.ok("POST", at("sand", "/edits"), {"brush": brush})["rect"]
            after = heights_of(own, terrain)
            steep.append((steepest(before, terrain, inside), steepest(after, terrain, inside)))
            check(steep[-1][1] <= (slope or 34) + 1e-9, f"{slope}: {steep[-1]} degrees")
            moved = 0
            for r, row in enumerate(after):
                for c, value in enumerate(row):
                    if (c, r) in inside:
                        moved += value - before[r][c]
                        check(rect[0] <= c < rect[0] + rect[2] and rect[1] <= r < rect[1] + rect[3],
                              f"{c}, {r} is not in {rect}")
                    else:
                        check(value == before[r][c] or math.isnan(value), f"{c}, {r} changed")
            most = max(abs(before[r][c]) for c, r in inside)
            check(abs(moved) <= most * 2 ** -24 + 1e-9, f"volume {moved}, heights up to {most}")
            if slope == 50:
                equal(repr(after), repr(before), "what is below 34 degrees is below 50, too")
        check(steep[0][0] > 40 and steep[2][0] > 30, f"it was steep before: {steep}")
        check(after != start, "nothing has moved")
        cut_off(own)
        with stored(data) as own:
            equal(repr(heights_of(own, terrain)), repr(after), "the heights after kill -9")


@test("a brush beyond the field meets no sample: 422; half over its edge it is cut there")
def _():
    small("edge")
    brush = {"shape": "raise", "center": [-50, 3], "radius": 10, "amount": 1}
    problem(edit("edge", {"brush": brush}, 422), 422, pointer="/brush")
    brush["center"] = [-1, 2]
    brush["radius"] = 2.5
    rect = edit("edge", {"brush": brush}).json["rect"]
    equal((rect[0], rect[0] + rect[2] <= 8), (0, True), "cut at the edge")


# ---- what is refused ----------------------------------------------------------------------------

REFUSED = (
    ("no rect", {"heights": [1]}, 400, "/rect"),
    ("three numbers in rect", {"rect": [0, 0, 1], "heights": [1]}, 400, "/rect"),
    ("half a column", {"rect": [0.5, 0, 1, 1], "heights": [1]}, 400, "/rect"),
    ("no rows", {"rect": [0, 0, 1, 0], "heights": []}, 400, "/rect"),
    ("too few heights", {"rect": [0, 0, 2, 2], "heights": [1, 2, 3]}, 400, "/heights"),
    ("too many heights", {"rect": [0, 0, 1, 1], "heights": [1, 2]}, 400, "/heights"),
    ("rows as arrays", {"rect": [0, 0, 2, 2], "heights": [[1, 2], [3, 4]]}, 400, "/heights"),
    ("no heights", {"rect": [0, 0, 1, 1]}, 400, "/heights"),
    ("a word", {"rect": [0, 0, 2, 1], "heights": [1, "2"]}, 400, "/heights/1"),
    ("beyond float32", {"rect": [0, 0, 2, 1], "heights": [1, 1e39]}, 400, "/heights/1"),
    ("another op", {"rect": [0, 0, 1, 1], "op": "dig", "heights": [1]}, 400, "/op"),
    ("a stranger", {"rect": [0, 0, 1, 1], "heights": [1], "by": "me"}, 400, "/by"),
    ("rect and brush", {"rect": [0, 0, 1, 1], "brush": {}}, 400, "/rect"),
    ("a crater without amount",
     {"brush": {"shape": "crater", "center": [1, 1], "radius": 2}}, 400, "/brush/amount"),
    ("relax with an amount",
     {"brush": {"shape": "relax", "center": [1, 1], "radius": 2, "amount": 1}}, 400,
     "/brush/amount"),
    ("a slope of smooth",
     {"brush": {"shape": "smooth", "center": [1, 1], "radius": 2, "slope_deg": 30}}, 400,
     "/brush/slope_deg"),
    ("a slope of 90 degrees",
     {"brush": {"shape": "relax", "center": [1, 1], "radius": 2, "slope_deg": 90}}, 400,
     "/brush/slope_deg"),
    ("a radius of 0",
     {"brush": {"shape": "smooth", "center": [1, 1], "radius": 0}}, 400, "/brush/radius"),
    ("another shape",
     {"brush": {"shape": "dig", "center": [1, 1], "radius": 1}}, 400, "/brush/shape"),
    ("a layer that is not there", {"layer": "x", "rect": [0, 0, 1, 1], "heights": [1]}, 422,
     "/layer"),
    ("left of the field", {"rect": [-1, 0, 1, 1], "heights": [1]}, 422, "/rect"),
    ("over the right edge", {"rect": [7, 0, 2, 1], "heights": [1, 1]}, 422, "/rect"),
    ("over the upper edge", {"rect": [0, 6, 1, 1], "heights": [1]}, 422, "/rect"),
    ("a sum beyond float32", {"rect": [7, 5, 1, 1], "op": "add", "heights": [MAX]}, 422, "/rect"),
    ("too many samples", {"rect": [0, 0, 4097, 4097], "heights": []}, 413, "/rect"),
)


@test("a field to try what is refused on")
def _():
    small("refuse")
    edit("refuse", {"rect": [7, 5, 1, 1], "heights": [MAX]})


def refuses(body, status, pointer):
    before = revision("refuse")
    problem(edit("refuse", body, status), status, pointer=pointer)
    equal(revision("refuse"), before, "revision")


for name_, body_, status_, pointer_ in REFUSED:
    case(f"an edit with {name_} is {status_} at {pointer_} and changes nothing", refuses, body_,
         status_, pointer_)


@test("binary edits: missing rect, wrong length, infinities, other media types")
def _():
    url, two = at("refuse", "/edits"), struct.pack("<2f", 1, 2)
    problem(daemon.post(url, two, media=F32), 400, pointer="rect")
    problem(daemon.post(url + "?rect=0,0,3,1", two, media=F32), 400, "8 bytes")
    problem(daemon.post(url + "?rect=0,0,2,1", struct.pack("<2f", 1, math.inf), media=F32), 400,
            pointer="/1")
    problem(daemon.post(url + "?rect=7,0,2,1", two, media=F32), 422, pointer="rect")
    problem(daemon.post(url + "?rect=0,0,2,1&x=1", two, media=F32), 400, pointer="x")
    problem(daemon.post(url + "?rect=0,0,2,1", two, media=F64), 415)
    problem(daemon.post(url + "?rect=0,0,2,1", two, media="image/png"), 415)
    problem(daemon.get(url), 405)
    problem(daemon.post(at("nobody", "/edits"), {"rect": [0, 0, 1, 1], "heights": [1]}), 404)


@test("one of several heightfields must be chosen, a mesh cannot be")
def _():
    terrain = small("several")
    put_layer(daemon, "several", terrain, "upper")
    one = {"rect": [0, 0, 1, 1], "heights": [4]}
    problem(edit("several", one, 422), 422, pointer="/layer")
    edit("several", {**one, "layer": "upper"})
    same("several", terrain, "the other layer")
    applied(terrain, (0, 0, 1, 1), "set", [4])
    same("several", terrain, "the chosen layer", "upper")
    daemon.ok("PUT", at("several", "/layers/roof"), "v 0 0 3\nv 9 0 3\nv 9 4 3\nf 1 2 3\n",
              media="model/obj", status=201)
    problem(edit("several", {**one, "layer": "roof"}, 422), 422, pointer="/layer")
    put_locale(daemon, "none")
    problem(edit("none", one, 422), 422, "none", pointer="/layer")


@test("--max-edit-samples limits set, add and brushes: 413 with limit and got")
def _():
    with Daemon("--max-edit-samples", "20") as own:
        equal(own.ok("GET", "/v1/limits")["edit_samples_max"], 20, "limit")
        put_terrain(own, "a", Terrain(9, 9, [[0] * 9] * 9))
        url = at("a", "/edits")
        own.ok("POST", url, {"rect": [0, 0, 5, 4], "heights": [1] * 20})
        problem(own.post(url, {"rect": [0, 0, 7, 3], "heights": [1] * 21}), 413, limit=20, got=21)
        problem(own.post(url + "?rect=0,0,7,3", bytes(84), media=F32), 413, limit=20, got=21)
        brush = {"shape": "raise", "center": [4, 4], "radius": 2.5, "amount": 1}
        problem(own.post(url, {"brush": brush}), 413, limit=20, got=25)


# ---- revisions and preconditions ------------------------------------------------------------------


def ask(method, target, body=None, media=None, **headers):
    return daemon.ask(method, target, body, media=media,
                      headers={name.replace("_", "-"): value for name, value in headers.items()})


ONE = {"rect": [0, 0, 1, 1], "op": "add", "heights": [1]}


@test("GET of a locale has its revision as ETag; If-None-Match makes it 304")
def _():
    small("tagged")
    answer = daemon.get(at("tagged"))
    equal(answer.headers["etag"], '"2"', "ETag")
    for header, status in (('"2"', 304), ('W/"2"', 304), ("*", 304), ('"1", "2"', 304),
                           ('"1"', 200), ('"02"', 200), ("2", 200), ('"2', 200)):
        again = ask("GET", at("tagged"), If_None_Match=header)
        equal((again.status, again.headers["etag"]), (status, '"2"'), f"If-None-Match: {header}")
        equal(again.body == b"", status == 304, "body")
    edit("tagged", ONE)
    equal(ask("GET", at("tagged"), If_None_Match='"2"').status, 200, "after an edit")


@test("If-Match: tags, lists, weak ones, * and what is malformed")
def _():
    small("match")
    now = 2
    for header, status in (('"2"', 200), ('"2"', 412), ('"1", "3"', 200), ('W/"4"', 412),
                           ('W/"4", "4"', 200), ("*", 200), ('"six"', 412), ('"06"', 412),
                           ('"6"', 200), ("6", 400), ('"7', 400), ("", 400), ('"7" "8"', 400),
                           ('"99999999999999999999"', 412), ('"8"', 412)):
        answer = ask("POST", at("match", "/edits"), ONE, If_Match=header)
        check(answer.status == status, f"If-Match: {header}: expected {status}, got {answer}")
        now += status == 200
        if status != 200:
            problem(answer, status, pointer="If-Match")
        equal(revision("match"), now, f"revision after If-Match: {header}")


@test("If-Match guards every write, and does not make a 404 a 412")
def _():
    small("guard")
    body, layer = b"\0" * 16, at("guard", "/layers/ground?spacing=1,1&cols=2&rows=2")
    writes = (("PUT", at("guard"), {}, None), ("PUT", layer, body, F32),
              ("DELETE", at("guard", "/layers/ground"), None, None), ("POST", at("guard", "/edits"),
                                                                     ONE, None),
              ("DELETE", at("guard"), None, None))
    for method, target, content, media in writes:
        problem(ask(method, target, content, media, If_Match='"1"'), 412, pointer="If-Match")
    equal(revision("guard"), 2, "revision")
    for i, (method, target, content, media) in enumerate(writes):
        if "edits" in target:
            continue
        answer = ask(method, target, content, media, If_Match=f'"{2 + min(i, 3)}"')
        check(answer.status in (200, 204), f"{method} {target}: {answer}")
    problem(ask("POST", at("guard", "/edits"), ONE, If_Match="*"), 404)
    problem(ask("DELETE", at("guard"), If_Match='"1"'), 404)
    problem(ask("PUT", at("guard"), {}, If_Match='"1"'), 412)
    problem(ask("PUT", at("guard"), {}, If_Match="*"), 412)


@test("If-None-Match: * makes what is new and replaces nothing")
def _():
    target = at("fresh", "/layers/a?spacing=1,1&cols=2&rows=2")
    equal(ask("PUT", at("fresh"), {}, If_None_Match="*").status, 201, "locale")
    problem(ask("PUT", at("fresh"), {}, If_None_Match="*"), 412, pointer="If-None-Match")
    equal(ask("PUT", target, b"\0" * 16, F32, If_None_Match="*").status, 201, "layer")
    problem(ask("PUT", target, b"\0" * 16, F32, If_None_Match="*"), 412, pointer="If-None-Match")
    equal(ask("PUT", target, b"\0" * 16, F32, If_Match="*").status, 200, "layer that is there")
    problem(ask("PUT", target.replace("/a?", "/b?"), b"\0" * 16, F32, If_Match="*"), 412)
    problem(ask("PUT", at("fresh"), {}, If_None_Match='"1"'), 400, pointer="If-None-Match")
    problem(ask("POST", at("fresh", "/edits"), ONE, If_None_Match="*"), 400)
    problem(ask("PUT", at("fresh"), {}, If_None_Match="*", If_Match="*"), 400)
    equal(revision("fresh"), 3, "revision")


def together(count, job):
    """job(i, connection) on `count` threads at once; what they return, in order."""
    results, start = [None] * count, threading.Barrier(count)

    def work(i):
        connection = connection_to(daemon.port, timeout=HANG_S)
        start.wait()
        try:
            results[i] = job(i, connection)
        except Exception as error:  # told by the one who waits
            results[i] = error
        connection.close()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        check(not isinstance(result, Exception), f"a thread failed: {result!r}")
    return results


def send(connection, method, target, body, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, target, json.dumps(body), {"Content-Type": JSON, **headers})
    answer = connection.getresponse()
    return Answer(answer.status, answer.getheaders(), answer.read())


@test("of many editors that have read the same revision exactly one wins, round after round")
def _():
    terrain = small("race")
    for n in range(12):
        tag = f'"{2 + n}"'
        answers = together(16, lambda i, c, tag=tag, n=n: send(
            c, "POST", at("race", "/edits"),
            {"rect": [n % 8, 0, 1, 1], "heights": [100 * n + i]}, If_Match=tag))
        winners = [i for i, answer in enumerate(answers) if answer.status == 200]
        equal((len(winners), {a.status for a in answers}), (1, {200, 412}), "winners")
        applied(terrain, (n % 8, 0, 1, 1), "set", [100 * n + winners[0]])
        equal(revision("race"), 3 + n, "revision")
    same("race", terrain, "what the winners wrote")


# ---- Idempotency-Key ------------------------------------------------------------------------------


def same_answer(first, again, what):
    equal((again.status, again.body), (first.status, first.body), what)
    for name in ("location", "etag", "kota-revision", "content-type"):
        equal(again.headers.get(name), first.headers.get(name), f"{what}: {name}")
    check("idempotency-replayed" not in first.headers, f"{what}: the first one is no repeat")
    equal(again.headers.get("idempotency-replayed"), "true", f"{what}: Idempotency-Replayed")


@test("200 adds at once, each sent three times under its key, dig exactly once each")
def _():
    small("dig", 20, 10)

    def dig(i, connection):
        for k in range(10):
            n = 10 * i + k
            body = {"rect": [n % 20, n // 20, 1, 1], "op": "add", "heights": [-1]}
            answers = [send(connection, "POST", at("dig", "/edits"), body,
                            Idempotency_Key=f"dig-{n}") for _ in range(3)]
            for answer in answers:
                equal((answer.status, answer.body), (200, answers[0].body), "repeat")
            equal(answers[2].headers.get("idempotency-replayed"), "true", "replayed")

    together(20, dig)
    same("dig", Terrain(20, 10, [[-1.0] * 20] * 10), "each once")
    equal(revision("dig"), 202, "revision")


@test("the same key at the same time from many connections is made once")
def _():
    small("once")
    for n in range(8):
        answers = together(12, lambda i, c, n=n: send(c, "POST", at("once", "/edits"), ONE,
                                                      Idempotency_Key=f"once-{n}"))
        equal({(a.status, a.body) for a in answers}, {(200, answers[0].body)}, "answers")
        equal(sum("idempotency-replayed" not in a.headers for a in answers), 1, "made")
    same("once", Terrain(8, 6, [[8.0] + [0.0] * 7] + [[0.0] * 8] * 5), "eight adds")


@test("every write can be repeated under its key and has its first answer, whatever came later")
def _():
    upload = at("again", "/layers/ground?spacing=1,1&cols=2&rows=2")
    mesh = "v 0 0 3\nv 9 0 3\nv 9 4 3\nf 1 2 3\nf 1 2 1\n"
    writes = (("PUT", at("again"), {"title": "x"}, None, 201), ("PUT", upload, b"\0" * 16, F32, 201),
              ("PUT", upload, b"\1" * 16, F32, 200),
              ("PUT", at("again", "/layers/roof"), mesh, "model/obj", 201),
              ("POST", at("again", "/edits"), {**ONE, "layer": "ground"}, None, 200),
              ("PUT", at("again"), {"gravity": [0, 0.6, -0.8]}, None, 200),
              ("DELETE", at("again", "/layers/roof"), None, None, 204),
              ("DELETE", at("again"), None, None, 204))
    first = []
    for i, (method, target, body, media, status) in enumerate(writes):
        first.append(ask(method, target, body, media, Idempotency_Key=f"again-{i}"))
        equal(first[i].status, status, f"{method} {target}: {first[i]}")
        same_answer(first[i], ask(method, target, body, media, Idempotency_Key=f"again-{i}"),
                    f"{method} {target} at once")
    problem(daemon.get(at("again")), 404)
    for i, (method, target, body, media, _) in enumerate(writes):
        same_answer(first[i], ask(method, target, body, media, Idempotency_Key=f"again-{i}"),
                    f"{method} {target} after the end")
    problem(daemon.get(at("again")), 404)
    equal(first[0].headers["location"], at("again"), "Location")


@test("If-Match does not stand in the way of a repeat, and the query's order is no other request")
def _():
    small("retry")
    target = at("retry", "/edits?rect=0,0,1,1&op=add")
    first = ask("POST", target, {"heights": [1]}, If_Match='"2"', Idempotency_Key="retry-1")
    equal(first.status, 200, "first")
    same_answer(first, ask("POST", target, {"heights": [1]}, If_Match='"2"',
                           Idempotency_Key="retry-1"), "with a stale If-Match")
    same_answer(first, ask("POST", at("retry", "/edits?op=add&rect=0,0,1,1"), {"heights": [1]},
                           Idempotency_Key="retry-1"), "with another order")
    problem(ask("POST", target, {"heights": [1]}, If_Match='"2"', Idempotency_Key="retry-2"), 412,
            pointer="If-Match")
    problem(ask("POST", target, {"heights": [1]}, If_Match='"x"', Idempotency_Key="retry-3"), 412,
            pointer="If-Match")
    equal(revision("retry"), 3, "revision")


@test("a key with another request is 422: another body, query, path or method")
def _():
    small("reuse")
    upload = at("reuse", "/layers/l?spacing=1,1&cols=2&rows=2")
    equal(ask("POST", at("reuse", "/edits"), ONE, Idempotency_Key="reuse").status, 200, "first")
    for method, target, body, media in (
            ("POST", at("reuse", "/edits"), {**ONE, "heights": [2]}, None),
            ("POST", at("reuse", "/edits?layer=ground"), ONE, None),
            ("POST", at("tagged", "/edits"), ONE, None), ("PUT", at("reuse"), {}, None),
            ("PUT", upload, b"\0" * 16, F32), ("DELETE", at("reuse"), None, None),
            ("DELETE", at("nobody"), None, None)):
        problem(ask(method, target, body, media, Idempotency_Key="reuse"), 422,
                pointer="Idempotency-Key")
    equal(revision("reuse"), 3, "revision")


@test("a refused write is not kept: it may be tried again under its key")
def _():
    outside = {"rect": [8, 0, 1, 1], "heights": [3]}
    small("later")
    problem(ask("POST", at("later", "/edits"), outside, Idempotency_Key="later"), 422)
    problem(ask("POST", at("nowhere", "/edits"), outside, Idempotency_Key="nowhere"), 404)
    problem(ask("DELETE", at("nowhere"), Idempotency_Key="nowhere-2"), 404)
    problem(ask("PUT", at("nowhere", "/layers/x?spacing=1,1&cols=2&rows=2"), b"\0" * 16, F32,
                Idempotency_Key="nowhere-3"), 404)
    put_layer(daemon, "later", Terrain(9, 6, [[0.0] * 9] * 6), status=200)
    answer = ask("POST", at("later", "/edits"), outside, Idempotency_Key="later")
    equal((answer.status, "idempotency-replayed" in answer.headers), (200, False), "now it fits")


@test("a key is 1 to 128 visible ASCII characters")
def _():
    small("keys")
    for key, status in (("x", 200), ("!~" * 64, 200), ("", 400), ("x" * 129, 400), ("a b", 400),
                        ("ü".encode().decode("latin-1"), 400)):
        answer = ask("POST", at("keys", "/edits"), ONE, Idempotency_Key=key)
        check(answer.status == status, f"key {key!r}: expected {status}, got {answer}")
        if status == 400:
            problem(answer, 400, pointer="Idempotency-Key")


# ---- diff -----------------------------------------------------------------------------------------


def diff(name, since, **named):
    query = "".join(f"&{k}={v}" for k, v in named.items())
    answer = daemon.ok("GET", at(name, f"/diff?since={since}{query}"))
    equal((answer["locale"], set(answer)), (name, {"locale", "revision", "rects"}), "members")
    return answer["revision"], answer["rects"]


@test("a diff is the edits since a revision, those inside others left out")
def _():
    small("diff", 50, 40)
    for rect in ([1, 1, 2, 2], [10, 10, 5, 5], [11, 11, 1, 2], [10, 10, 5, 5], [30, 0, 20, 40]):
        edit("diff", {"rect": rect, "heights": [1] * (rect[2] * rect[3])})
    equal(diff("diff", 7), (7, []), "nothing since now")
    equal(diff("diff", 6), (7, [[30, 0, 20, 40]]), "the last")
    equal(diff("diff", 4), (7, [[30, 0, 20, 40], [10, 10, 5, 5]]), "contained in a later one")
    equal(diff("diff", 2), (7, [[30, 0, 20, 40], [1, 1, 2, 2], [10, 10, 5, 5]]), "all edits")
    equal(diff("diff", 1), (7, [[0, 0, 50, 40]]), "the layer itself")
    equal(diff("diff", 0), (7, [[0, 0, 50, 40]]), "everything")


@test("a replaced layer and another triangulation are the whole field, a new title is nothing")
def _():
    terrain = small("remade")
    daemon.ok("PUT", at("remade"), {"title": "t"})
    equal(diff("remade", 2), (3, []), "a title")
    daemon.ok("PUT", at("remade"), {"title": "t", "triangulation": "main"})
    equal(diff("remade", 3), (4, [[0, 0, 8, 6]]), "triangulation")
    put_layer(daemon, "remade", terrain, status=200)
    equal(diff("remade", 4), (5, [[0, 0, 8, 6]]), "layer")
    edit("remade", {"rect": [5, 5, 3, 1], "heights": [1, 1, 1]})
    put_layer(daemon, "remade", Terrain(4, 3, [[0.0] * 4] * 3), status=200)
    equal(diff("remade", 5), (7, [[0, 0, 4, 3]]), "cut at the field as it is now")


@test("a diff is of one heightfield")
def _():
    terrain = small("two")
    put_layer(daemon, "two", terrain, "upper")
    edit("two", {"layer": "upper", "rect": [1, 2, 3, 4], "heights": [5] * 12})
    edit("two", {"layer": "ground", "rect": [0, 0, 1, 1], "heights": [5]})
    equal(diff("two", 3, layer="upper"), (5, [[1, 2, 3, 4]]), "upper")
    equal(diff("two", 3, layer="ground"), (5, [[0, 0, 1, 1]]), "ground")
    problem(daemon.get(at("two", "/diff?since=3")), 422)
    problem(daemon.get(at("two", "/diff?since=3&layer=x")), 422)


@test("since: missing or malformed 400, not yet 422, unknown locale 404")
def _():
    small("since")
    for query in ("", "?since=", "?since=x", "?since=-1", "?since=1.5", "?since=1e1",
                  "?since=" + "9" * 19):
        problem(daemon.get(at("since", "/diff" + query)), 400, pointer="since")
    problem(daemon.get(at("since", "/diff?since=3")), 422, pointer="since", limit=2, got=3)
    problem(daemon.get(at("since", "/diff?since=1&until=2")), 400, pointer="until")
    problem(daemon.get(at("nobody", "/diff?since=1")), 404)


@test("a locale made again goes on counting, and a diff over its end is the whole field")
def _():
    terrain = small("reborn")
    edit("reborn", ONE)
    equal(daemon.ask("DELETE", at("reborn")).headers.get("kota-revision"), "4", "its end counts")
    equal(put_locale(daemon, "reborn")["revision"], 5, "made again")
    put_layer(daemon, "reborn", terrain)
    equal(diff("reborn", 2), (6, [[0, 0, 8, 6]]), "since before its end")


@test("many rects are united to at most 1,000 that hold them all; what is too old is 410")
def _():
    small("many", 128, 128)
    random = rng("many")
    cells = random.sample(range(128 * 128), 2500)

    def scatter(i, connection):
        for cell in cells[i::10]:
            body = {"rect": [cell % 128, cell // 128, 1, 1], "heights": [1]}
            equal(send(connection, "POST", at("many", "/edits"), body).status, 200, "edit")

    together(10, scatter)
    now, rects = diff("many", 2)
    equal(now, 2502, "revision")
    check(100 < len(rects) <= 1000, f"{len(rects)} rects")
    covered = {(x, y) for c, r, w, h in rects for x in range(c, c + w) for y in range(r, r + h)}
    equal({(cell % 128, cell // 128) for cell in cells} - covered, set(), "not covered")
    check(len(covered) < 128 * 128, "less than everything")
    equal(rects, sorted(rects, key=lambda rect: (rect[1], rect[0])), "by row and column")


@test("diffs asked while edits are made tell every revision up to their own")
def _():
    small("busy", 128, 64)
    stop, seen = threading.Event(), []

    def follow():
        connection = connection_to(daemon.port, timeout=HANG_S)
        known = 2
        while not stop.is_set() or known < 302:
            connection.request("GET", at("busy", f"/diff?since={known}"))
            answer = connection.getresponse()
            body = json.loads(answer.read())
            if answer.status != 200:
                seen.append(body)
                break
            seen.extend((known, body["revision"], *rect) for rect in body["rects"])
            known = body["revision"]
        connection.close()

    follower = threading.Thread(target=follow)
    follower.start()
    for n in range(300):
        edit("busy", {"rect": [n % 128, n // 128, 1, 1], "heights": [1]})
    stop.set()
    follower.join()
    check(all(isinstance(entry, tuple) for entry in seen), f"refused: {seen[-1]}")
    for since, now, column, row, cols, rows in seen:
        n = row * 128 + column
        check((cols, rows) == (1, 1) and since < n + 3 <= now, f"{n + 3} in a diff {since}..{now}")
    equal(len(seen), 300, "each edit in exactly one diff")


# ---- numbers --------------------------------------------------------------------------------------


@test("statistics and metrics count edits, samples and repeats")
def _():
    with Daemon() as own:
        put_terrain(own, "a", Terrain(4, 4, [[0] * 4] * 4))
        for key in ("k1", "k1", "k2"):
            own.ok("POST", at("a", "/edits"), {"rect": [0, 0, 3, 2], "heights": [1] * 6},
                   headers={"Idempotency-Key": key})
        stats = own.ok("GET", "/v1/stats")
        world = stats["world"]
        equal((world["edits"], world["edit_samples"], world["idempotent_repeats"]), (2, 12, 1),
              "stats")
        equal(stats["store"], None, "no store")
        text = own.get("/metrics").body.decode()
        for line in ("kota_edits_total 2", "kota_edit_samples_total 12",
                     "kota_idempotent_repeats_total 1", "kota_locales_damaged 0"):
            check(f"\n{line}\n" in text, f"no {line}")
        check("kota_store_" not in text, "metrics of a store that is not there")


run(daemon.stop)
