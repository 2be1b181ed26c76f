"""Numbers at the ends of float64: every answer stays JSON, in time, and consistent with itself."""
import math
import struct
import os

from daemon import F32, F64, SLOW, Daemon, problem
from fields import Terrain, put_locale
from tap import case, check, equal, fail, near, rng, run, test

daemon = Daemon()
EXTREMES = (0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, 1e-30, 0.1, 1.0, -1.0,
            math.pi, 1e15, 2.0**53, 1e30, 1e150, 1e154, -1e154, 1e300, 1.7976931348623157e308,
            -1.7976931348623157e308)
FIELDS = {}


def make(name, cols, rows, heights, spacing, origin, triangulation="alternating"):
    """Puts a field that may be beyond any sense; the daemon may refuse it, but says why."""
    terrain = Terrain(cols, rows, heights, spacing, origin, triangulation)
    put_locale(daemon, name, triangulation=triangulation)
    answer = daemon.put(f"/v1/locales/{name}/layers/ground?{terrain.query()}", terrain.body(),
                        media=F32)
    if answer.status == 201:
        FIELDS[name] = terrain
    else:
        check(answer.status in (400, 422), f"{name}: {answer}")
        check(answer.json["detail"], f"{name}: {answer}")


HILLS = [[math.sin(c) + math.cos(r) for c in range(9)] for r in range(9)]
HIGHEST = struct.unpack("<f", struct.pack("<I", 0x7F7FFFFF))[0]
LEAST = struct.unpack("<f", struct.pack("<I", 1))[0]
SHAPES = [
    ("plain", HILLS, (1.0, 1.0), (0.0, 0.0)),
    ("spikes", [[(HIGHEST if (r + c) % 2 else -HIGHEST) for c in range(9)] for r in range(9)],
     (1.0, 1.0), (0.0, 0.0)),
    ("denormal", [[LEAST * ((r * c) % 5) for c in range(9)] for r in range(9)], (1.0, 1.0),
     (0.0, 0.0)),
    ("far", HILLS, (1.0, 1.0), (1e15, -1e15)),
    ("too-far", HILLS, (1.0, 1.0), (1e300, -1e300)),
    ("fine", HILLS, (1e-12, 1e-12), (0.0, 0.0)),
    ("finest", HILLS, (1e-300, 1e-300), (0.0, 0.0)),
    ("coarse", HILLS, (1e12, 1e12), (0.0, 0.0)),
    ("coarsest", HILLS, (1e307, 1e307), (0.0, 0.0)),
    ("uneven", HILLS, (1e-6, 1e6), (0.0, 0.0)),
    ("unequal", [[1e30 * c, *([1e-30 * r] * 8)] for r, c in zip(range(9), range(9))], (1.0, 1.0),
     (0.0, 0.0)),
]
for name_, heights_, spacing_, origin_ in SHAPES:
    make(name_, 9, 9, heights_, spacing_, origin_)


def extreme(random, terrain):
    """Something near the field, or at the end of all numbers."""
    if random.random() < 0.5:
        return random.choice(EXTREMES)
    low, high = terrain.bounds()
    axis = random.randrange(3)
    return low[axis] + (high[axis] / 2 - low[axis] / 2) * random.uniform(-1, 3)


def vector(random, terrain, size=3):
    return [extreme(random, terrain) for _ in range(size)]


def processor_s():
    """Of the daemon."""
    with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def in_time(target, body, statuses=(200,)):
    before = processor_s()
    answer = daemon.post(target, body)
    seconds = processor_s() - before
    check(answer.status in statuses, f"{target}: {answer}")
    check(seconds < 10 * SLOW, f"{target} took {seconds:.1f} s of processor")
    return answer.json  # refuses NaN and Infinity


def asked(name):
    terrain = FIELDS[name]
    random = rng("extremes " + name)
    at = f"/v1/locales/{name}"
    points = [vector(random, terrain, 2) for _ in range(300)]
    for interp in ("triangle", "bilinear", "nearest"):
        got = in_time(at + "/height", {"points": points, "interp": interp,
                                       "fields": ["height", "normal", "cell"]})
        for item in got["results"]:
            if item["status"] == "ok":
                check(isinstance(item["height"], (int, float)), f"{item}")
            if item["normal"] is not None:
                check(None not in item["normal"], f"a normal with holes: {item}")
                near(sum(v * v for v in item["normal"]), 1, f"unit normal of {item}", 1e-9)
    rays = [{"origin": vector(random, terrain), "direction": vector(random, terrain)}
            for _ in range(600)]
    for ray in rays[:200]:
        ray["t_max"] = abs(random.choice(EXTREMES))
    for mode in ("closest", "any"):
        for ray, item in zip(rays, in_time(at + "/ray", {"rays": rays, "mode": mode})["results"]):
            check(item["status"] in ("hit", "miss", "invalid"), f"{item}")
            if item["status"] == "invalid":
                check(max(map(abs, ray["direction"])) * 1e307 < max(1e6, *map(abs, ray["origin"])) or
                      max(map(abs, ray["origin"] + ray["direction"])) > 1e307,
                      f"{ray} is possible: {item}")
            if item["status"] == "hit":
                check(isinstance(item["t"], (int, float)) and item["t"] >= 0, f"{ray}: {item}")
                check(item["t"] <= ray.get("t_max", math.inf), f"{ray}: {item}")
                column, row = item["cell"]
                check(0 <= column < 8 and 0 <= row < 8 and item["triangle"] in (0, 1), f"{item}")
                check(None not in item["point"] and None not in item["normal"],
                      f"{ray}: a hit with holes: {item}")
    in_time(at + "/los", {"segments": [
        {end: [max(-5e306, min(v, 5e306)) for v in vector(random, terrain)] for end in ("from", "to")}
        for _ in range(300)]})
    in_time(at + "/contact", {"points": [vector(random, terrain) for _ in range(300)],
                              "reach_up": abs(random.choice(EXTREMES))})
    in_time(at + "/contact", {"points": [vector(random, terrain) for _ in range(300)],
                              "clearance": abs(random.choice(EXTREMES))})
    in_time(at + "/contact", {"footprints": [[vector(random, terrain) for _ in range(4)]
                                             for _ in range(100)]})
    in_time(at + "/contains", {"points": [vector(random, terrain) for _ in range(300)]})
    for _ in range(60):
        path = [vector(random, terrain, 2) for _ in range(random.randrange(2, 5))]
        in_time(at + "/profile", {"path": path, "samples": random.randrange(2, 40)}, (200, 422))
        in_time(at + "/profile", {"path": path, "step": abs(extreme(random, terrain)) or 1.0},
                (200, 413, 422))
        camera = {"eye": vector(random, terrain), "target": vector(random, terrain),
                  "up": vector(random, terrain), "fov_y_deg": random.choice((1e-9, 60, 179.999))}
        in_time(at + "/pick", {"camera": camera, "viewport": [abs(v) or 1.0 for v in
                                                             vector(random, terrain, 2)],
                               "pixel": vector(random, terrain, 2),
                               "tile_side": random.choice((1, 7, 2**31, 2**32 - 1))},
                (200, 400, 422))
        in_time(at + "/pick", {"inverse_view_projection": vector(random, terrain, 16),
                               "depth": random.choice(("gl", "webgpu", "reversed")), "viewport": [100, 100],
                               "pixel": vector(random, terrain, 2)}, (200, 422))
    for form in ("f32", "png16", "terrarium"):
        answer = daemon.get(f"{at}/tiles/0/0/0?format={form}")
        check(answer.status == 200, f"tile as {form}: {answer}")
        for header in ("kota-offset", "kota-scale"):
            if header in answer.headers:
                check(math.isfinite(float(answer.headers[header])), f"{header} of {answer}")


@test("most fields at the ends of the numbers are taken, the rest is refused with a reason")
def _():
    check(len(FIELDS) >= 6, f"{sorted(FIELDS)}")
    for locale in daemon.ok("GET", "/v1/locales")["locales"]:
        equal(locale["bounds"] is not None, locale["id"] in FIELDS, f"bounds of {locale['id']}")


for name_ in FIELDS:
    case(f"questions at the ends of float64 to the field {name_} are answered, in time and in JSON",
         asked, name_)


@test("a vertical ray from the end of the numbers hits the ground where it is")
def _():
    for start in (1e30, 1e100, 1e300):
        for direction in (-1.0, -1e-300, -1e300):
            item = in_time("/v1/locales/plain/ray", {"rays": [
                {"origin": [3.2, 4.3, start], "direction": [0, 0, direction]}]})["results"][0]
            if item["status"] == "hit":
                if not item["t"] > 0:
                    fail(f"from {start}: {item}")
            elif abs(start / direction) < 1e308:
                fail(f"from {start} by {direction}: {item}")


@test("a scale that turns a finite code into an infinite height is refused")
def _():
    put_locale(daemon, "overflow")
    answer = daemon.put("/v1/locales/overflow/layers/ground?cols=2&rows=2&spacing=1,1"
                        "&height_scale=1e300", struct.pack("<4f", 1e30, 0, 0, 0), media=F32)
    check(answer.status in (400, 422), str(answer))


@test("a ray whose numbers are too large or too small is invalid, and says which")
def _():
    put_locale(daemon, "rays")
    f32 = "cols=2&rows=2&spacing=1,1"
    daemon.put(f"/v1/locales/rays/layers/ground?{f32}", struct.pack("<4f", 0, 0, 0, 0), media=F32)
    for origin, direction, word in (([0.2, 0.3, -1e308], [0, 0, 1e308], "origin"),
                                    ([0.2, 0.3, -1], [0, 0, 1e308], "direction has a number"),
                                    ([0.2, 0.3, 1], [1e-310, 0, -1e-308], "too short"),
                                    ([0.2, 0.3, 1], [0, 0, 0], "zero vector")):
        ray = {"origin": origin, "direction": direction}
        for target in ("/v1/locales/rays/ray", "/v1/ray"):
            item = in_time(target, {"rays": [ray]})["results"][0]
            equal(item["status"], "invalid", f"{ray} to {target}")
            check(word in item["detail"], f"{ray}: {item}")
    item = in_time("/v1/locales/rays/ray", {"rays": [
        {"origin": [0.2, 0.3, -1e307], "direction": [0, 0, 1e307]}]})["results"][0]
    equal((item["status"], item["t"]), ("hit", 1), "the largest")
    for down in (1e-290, 1e-300):  # a t that is a number is given, any other is not a miss
        item = in_time("/v1/locales/rays/ray", {"rays": [
            {"origin": [0.2, 0.3, 5], "direction": [0, 0, -down]}]})["results"][0]
        equal((item["status"], item["t"]), ("hit", 5 / down), f"{down}")
        near(item["distance"], 5, f"{down}", 1e-12)
    for z, down in ((5, 1e-302), (5, 2.3e-308), (1e300, 1e-8)):
        item = in_time("/v1/locales/rays/ray", {"rays": [
            {"origin": [0.2, 0.3, z], "direction": [0, 0, -down]}]})["results"][0]
        equal(item["status"], "invalid", f"{z} by {down}")


@test("sight and light between places too far for a ray are refused, not free")
def _():
    put_locale(daemon, "ways")
    daemon.put("/v1/locales/ways/layers/ground?cols=2&rows=2&spacing=1,1",
               struct.pack("<4f", 0, 0, 0, 0), media=F32)
    los, lit = "/v1/locales/ways/los", "/v1/locales/ways/lit"
    for z in (1e6, 1e300, 5e306):
        item = in_time(los, {"segments": [{"from": [0.2, 0.3, z], "to": [0.2, 0.3, -z]}]})["results"][0]
        equal((item["visible"], item["fraction"]), (False, 0.5), f"los over {z}")
        item = in_time(lit, {"points": [[0.2, 0.3, -z]], "light": {"direction": [0, 0, -1]}})
        equal(item["results"][0]["lit"], False, f"lit from {-z}")
    for z in (5.1e306, 1e308, -1.7e308):
        for segment in ({"from": [0.2, 0.3, z], "to": [0.2, 0.3, -z]}, {"from": [0, 0, 9], "to": [z, 0, 0]}):
            end = "from" if z in segment["from"] else "to"
            problem(daemon.post(los, {"segments": [{"from": [0, 0, 1], "to": [1, 1, 1]}, segment]}), 400,
                    pointer=f"/segments/1/{end}", limit=5e306, got=z)
            ends = "&".join(f"{k}={','.join(map(repr, v))}" for k, v in segment.items())
            ends = ends.replace("+", "%2B")
            problem(daemon.get(f"{los}?{ends}"), 400, pointer=end, limit=5e306, got=z)
        light = {"direction": [0, 0, -1]}
        problem(daemon.post(lit, {"points": [[0, 0, 1], [0.2, 0.3, z]], "light": light}), 400,
                pointer="/points/1", limit=5e306, got=abs(z))
        problem(daemon.post(f"{lit}?direction=0,0,-1", struct.pack("<3d", 0.2, 0.3, z), media=F64), 400,
                pointer="/0", limit=5e306)


@test("spacings without a slope and sides without a cell are refused by field, value and limit")
def _():
    put_locale(daemon, "small")
    at = "/v1/locales/small/layers/ground"
    for query, words in (("cols=2&rows=2&spacing=1e-320,1", ("spacing", "1e-30", "1e+30")),
                         ("cols=2&rows=2&spacing=1,1e31", ("spacing", "1e+30")),
                         ("cols=1&rows=2&spacing=1,1", ("1 is outside 2..1048576",)),
                         ("cols=2&rows=0&spacing=1,1", ("0 is outside 2..1048576",)),
                         ("cols=2&rows=-3&spacing=1,1", ("-3 is outside 2..1048576",)),
                         ("cols=2.5&rows=2&spacing=1,1", ("whole number",))):
        answer = daemon.put(f"{at}?{query}", struct.pack("<4f", 0, 0, 0, 0), media=F32)
        equal(answer.status, 400, query)
        for word in words:
            check(word in answer.json["detail"], f"{query}: {answer}")
    text = b"ncols 2\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 1e-320\n0 0\n0 0\n"
    answer = daemon.put(at, text, media="application/vnd.kota.asc")
    check(answer.status == 400 and "spacing" in answer.json["detail"], str(answer))


run(daemon.stop)
