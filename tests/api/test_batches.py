"""Binary batches: the same questions without JSON, and the very bits of the single answers."""
import math
import struct

from daemon import F32, F64, Daemon, problem
from fields import (CONTACT_STATUS, CONTAINS_BITS, put_locale, put_layer, put_shapes, put_terrain,
                    random_point, results, Terrain)
from oracle import f32
from tap import case, check, equal, fail, rng, run, test

daemon = Daemon()
shapes = put_shapes(daemon)
MEDIA = {"f": F32, "d": F64}


def at(name):
    return f"/v1/locales/{name}"


def ask(target, kind, values, floats_out=None):
    """POSTs numbers as little-endian arrays; returns the numbers of the answer (or its bytes)."""
    answer = daemon.post(target, struct.pack(f"<{len(values)}{kind}", *values), media=MEDIA[kind])
    check(answer.status == 200, f"{target}: {answer}")
    check("kota-revision" in answer.headers, f"no Kota-Revision: {answer.headers}")
    check(int(answer.headers["kota-revision"]) >= 1, "Kota-Revision")
    equal(int(answer.headers["content-length"]), len(answer.body), "Content-Length")
    equal(answer.media_type, MEDIA[kind], "the answer has the same number type")
    if floats_out is None:
        return answer.body
    equal(len(answer.body), floats_out * struct.calcsize(kind), "bytes")
    return struct.unpack(f"<{floats_out}{kind}", answer.body)


def bits(value, kind):
    """The bits of a number of a JSON answer (null: any NaN), stored as this type."""
    value = math.nan if value is None else value
    packed = struct.pack("<" + kind, value)
    return b"NaN" if math.isnan(value) else packed


def same_bits(got, want, kind, what):
    if bits(got, kind) != bits(want, kind):
        fail(f"{what}: binary {got!r}, JSON {want!r}")


def narrow(value, kind):
    return f32(value) if kind == "f" else value


def heights(name, kind, interp):
    random = rng(f"binary height {name} {kind} {interp}")
    points = [[narrow(v, kind) for v in random_point(random, shapes[name])] for _ in range(500)]
    got = ask(f"{at(name)}/height?interp={interp}", kind, [v for p in points for v in p], 500)
    items = results(daemon, at(name) + "/height", {"points": points, "interp": interp}, 500)
    for point, value, item in zip(points, got, items):
        same_bits(value, item["height"], kind, f"{interp} at {point}")
    pairs = ask(f"{at(name)}/height?interp={interp}&status=true", kind,
                [v for p in points for v in p], 1000)
    for i, (point, value, item) in enumerate(zip(points, got, items)):
        same_bits(pairs[2 * i], value, kind, f"{interp} at {point}, with its status")
        equal(pairs[2 * i + 1], CONTACT_STATUS.index(item["status"]), f"status at {point}")


def contacts(name, kind):
    random = rng(f"binary contact {name} {kind}")
    points = [[narrow(v, kind) for v in (*random_point(random, shapes[name]),
                                         random.uniform(-30, 30))] for _ in range(500)]
    for reach in (0, 12.5):
        got = ask(f"{at(name)}/contact?reach_up={reach}", kind, [v for p in points for v in p],
                  3000)
        items = results(daemon, at(name) + "/contact", {"points": points, "reach_up": reach}, 500)
        for i, (point, item) in enumerate(zip(points, items)):
            floor, ceiling = item["floor"], item["ceiling"]
            want = [floor["point"][2], *floor["normal"]] if floor else [None] * 4
            want.append(ceiling["point"][2] if ceiling else None)
            want.append(CONTACT_STATUS.index(item["status"]))
            for value, wanted in zip(got[6 * i:6 * i + 6], want):
                same_bits(value, wanted, kind, f"contact at {point}, reach_up {reach}: {item}")


def rays(name, kind):
    random = rng(f"binary ray {name} {kind}")
    (x0, y0, z0), (x1, y1, z1) = shapes[name].bounds()
    asked = []
    for _ in range(500):
        origin = [random.uniform(x0 - 5, x1 + 5), random.uniform(y0 - 5, y1 + 5),
                  random.uniform(z0 - 5, z1 + 20)]
        target = [random.uniform(x0, x1), random.uniform(y0, y1), random.uniform(z0, z1 + 1)]
        t_max = random.choice((math.inf, math.inf, random.uniform(0, 2)))
        asked.append([narrow(v, kind) for v in (*origin, *(b - a for a, b in zip(origin, target)),
                                                t_max)])
    got = ask(f"{at(name)}/ray", kind, [v for ray in asked for v in ray], 2000)
    body = {"rays": [{"origin": r[:3], "direction": r[3:6],
                      "t_max": None if math.isinf(r[6]) else r[6]} for r in asked]}
    hits = 0
    for i, (ray, item) in enumerate(zip(asked, results(daemon, at(name) + "/ray", body, 500))):
        t, *normal = got[4 * i:4 * i + 4]
        if item["status"] == "miss":
            equal(t, math.inf, f"t of a miss, {ray}")
            check(all(math.isnan(v) for v in normal), f"normal of a miss: {normal}")
            continue
        hits += 1
        for value, wanted in zip((t, *normal), (item["t"], *item["normal"])):
            same_bits(value, wanted, kind, f"ray {ray}")
    check(hits > 50, f"{hits} hits")


def containment(name, kind):
    random = rng(f"binary contains {name} {kind}")
    points = [[narrow(v, kind) for v in (*random_point(random, shapes[name]),
                                         random.uniform(-30, 30))] for _ in range(500)]
    body = ask(f"{at(name)}/contains", kind, [v for p in points for v in p])
    equal(len(body), 500, "one byte an item")
    for point, byte, item in zip(points, body,
                                 results(daemon, at(name) + "/contains", {"points": points}, 500)):
        want = CONTAINS_BITS[item["status"]] | item["floor"] << 1 | item["ceiling"] << 2
        equal(byte, want, f"contains at {point}: {item}")


for shape in ("tiny", "small-anti", "wide-main", "wide-alternating"):
    for letter, word in (("f", "f32"), ("d", "f64")):
        for way in ("triangle", "bilinear", "nearest"):
            case(f"height {way} of {shape} as {word} has the bits of the JSON answer", heights,
                 shape, letter, way)
        case(f"contact of {shape} as {word} has the bits of the JSON answer", contacts, shape,
             letter)
        case(f"ray of {shape} as {word} has the bits of the JSON answer", rays, shape, letter)
        case(f"contains of {shape} as {word} has the bits of the JSON answer", containment, shape,
             letter)


@test("with base the coordinates are relative to it, far from the origin as well")
def _():
    far = Terrain(17, 17, [[10 + math.sin(c) + math.cos(r) for c in range(17)] for r in range(17)],
                  (0.5, 0.5), (4.0e6, -7.0e6))
    put_terrain(daemon, "far", far)
    random = rng("base")
    base = (4.0e6 + 3, -7.0e6 + 3, 8.0)
    local = [[f32(random.uniform(-2.5, 4.5)) for _ in range(2)] for _ in range(300)]
    world = [[base[0] + p[0], base[1] + p[1]] for p in local]
    where = "base=4000003,-6999997,8"
    got = ask(f"{at('far')}/height?{where}", "f", [v for p in local for v in p], 300)
    items = results(daemon, at("far") + "/height", {"points": world}, 300)
    for value, item in zip(got, items):
        same_bits(value, item["height"] - base[2], "f", "height relative to base")
    rays_ = [[*p, 9.0, 0.25, -0.5, -1.0, math.inf] for p in local]
    got = ask(f"{at('far')}/ray?{where}", "f", [v for r in rays_ for v in r], 1200)
    items = results(daemon, at("far") + "/ray",
                    {"rays": [{"origin": [base[0] + r[0], base[1] + r[1], base[2] + r[2]],
                               "direction": r[3:6]} for r in rays_]}, 300)
    for i, item in enumerate(items):
        want = math.inf if item["status"] == "miss" else item["t"]
        same_bits(got[4 * i], want, "f", "t")
    points = [[*p, random.choice((f32(7.3), -3.5))] for p in local]
    got = ask(f"{at('far')}/contact?{where}", "f", [v for p in points for v in p], 1800)
    items = results(daemon, at("far") + "/contact",
                    {"points": [[base[i] + p[i] for i in range(3)] for p in points]}, 300)
    for i, item in enumerate(items):
        for place, member in ((0, "floor"), (4, "ceiling")):
            want = item[member] and item[member]["point"][2] - base[2]
            same_bits(got[6 * i + place], want, "f", f"{member} relative to base")


@test("an f64 batch of one item gives the bits of the batch of many")
def _():
    random = rng("one of many")
    name = "wide-alternating"
    points = [random_point(random, shapes[name]) for _ in range(50)]
    many = ask(at(name) + "/height", "d", [v for p in points for v in p], 50)
    for point, value in zip(points, many):
        one = ask(at(name) + "/height", "d", point, 1)[0]
        same_bits(one, value, "d", f"{point}")


@test("a layer is chosen in the query")
def _():
    put_locale(daemon, "storeys")
    put_layer(daemon, "storeys", Terrain(3, 3, [[1] * 3] * 3), "low")
    put_layer(daemon, "storeys", Terrain(3, 3, [[7] * 3] * 3), "high")
    equal(ask(at("storeys") + "/height?layer=high", "f", [1, 1], 1), (7.0,), "height")
    equal(ask(at("storeys") + "/ray?layer=low", "f", [1.2, 1.3, 9, 0, 0, -1, math.inf], 4)[0], 8.0,
          "ray")
    equal(ask(at("storeys") + "/ray", "f", [1.2, 1.3, 9, 0, 0, -1, math.inf], 4)[0], 2.0, "all")
    problem(daemon.post(at("storeys") + "/height", struct.pack("<2f", 1, 1), media=F32), 422,
            "layer")


@test("a hundred thousand items in one batch are answered")
def _():
    name, count = "wide-main", 100_000
    random = rng("many")
    points = [f32(v) for _ in range(count) for v in random_point(random, shapes[name])]
    got = ask(at(name) + "/height", "f", points, count)
    for i in range(0, count, 997):
        x, y = points[2 * i:2 * i + 2]
        item = daemon.ok("GET", at(name) + f"/height?x={x!r}&y={y!r}")
        same_bits(got[i], item["height"], "f", f"item {i}")


@test("more than a million items are 413 with limit and got")
def _():
    count = 1_000_001
    document = problem(daemon.post(at("tiny") + "/height", bytes(8 * count), media=F32), 413,
                       limit=1_000_000, got=count)
    check("1000000" in document["detail"].replace(",", ""), document["detail"])


REFUSED = [
    ("height", "f", b"", "an empty batch"),
    ("height", "f", bytes(4), "half an item"),
    ("height", "f", bytes(9), "a byte too many"),
    ("height", "d", bytes(8), "half an item"),
    ("contact", "f", bytes(8), "two numbers of three"),
    ("ray", "f", bytes(24), "six numbers of seven"),
    ("contains", "d", bytes(12), "one number and a half"),
    ("height", "f", struct.pack("<2f", math.nan, 0), "NaN"),
    ("height", "d", struct.pack("<2d", 0, math.inf), "infinity"),
    ("contact", "f", struct.pack("<3f", 0, 0, -math.inf), "infinity"),
    ("ray", "f", struct.pack("<7f", 0, 0, math.nan, 0, 0, 1, 1), "NaN in an origin"),
    ("ray", "f", struct.pack("<7f", 0, 0, 0, math.inf, 0, 1, 1), "an infinite direction"),
    ("ray", "f", struct.pack("<7f", 0, 0, 0, 0, 0, 1, math.nan), "t_max NaN"),
    ("contains", "f", struct.pack("<3f", math.nan, 0, 0), "NaN"),
]


def refuse(call, letter, body, _):
    problem(daemon.post(at("tiny") + "/" + call, body, media=MEDIA[letter]), 400)


for row in REFUSED:
    case(f"a binary {row[0]} batch with {row[3]} is 400", refuse, *row)

for query, word in (("interp=cubic", "interp"), ("base=1,2", "base"), ("base=1,2,x", "base"),
                    ("base=1,2,inf", "base"), ("bace=1,2,3", "bace"), ("fields=normal", "fields")):
    case(f"a binary height batch with ?{query} is 400 and names it",
         lambda q=query, w=word: problem(
             daemon.post(at("tiny") + "/height?" + q, bytes(8), media=F32), 400, w))


@test("a ray that is well-formed but impossible is a miss among the others")
def _():
    down = [0.3, 0.4, 50, 0, 0, -1, math.inf]
    got = ask(at("tiny") + "/ray", "f", [*down, *down[:3], 0, 0, 0, 1, *down], 12)
    check(got[0] < 1000 and got[8] == got[0], "the good ones are answered")
    check(not math.isfinite(got[4]), f"the impossible one: {got[4:8]}")


run(daemon.stop)
