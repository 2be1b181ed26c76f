"""/v1/compat/elevation: Open Topo Data's and Google's shape, places on the Earth.

Where a place stands in a locale is worked out by another way (tests/api/earth.py);
heights come from tests/api/oracle.py.
"""
import json
import math
import urllib.parse

from daemon import JSON, Daemon, problem
from earth import enu, place_at
from fields import put_layer, put_locale
from mesh_oracle import put_mesh, rectangle
from oracle import Terrain
from tap import case, check, equal, near, rng, run, test

BASE = "/v1/compat/elevation"
FORM = "application/x-www-form-urlencoded"
daemon = Daemon()


def encode(places):
    """Google's encoded polyline."""
    def number(v):
        v = ~(v << 1) if v < 0 else v << 1
        out = ""
        while v >= 32:
            out += chr((32 | v & 31) + 63)
            v >>= 5
        return out + chr(v + 63)

    out, last = "", (0, 0)
    for place in places:
        now = tuple(round(v * 1e5) for v in place)
        out += "".join(number(b - a) for a, b in zip(last, now))
        last = now
    return out


def text(places):
    return "|".join(f"{lat!r},{lng!r}" for lat, lng in places)


def ask(target=BASE, status=200, **parameters):
    query = urllib.parse.urlencode(parameters)
    answer = daemon.get(f"{target}?{query}")
    equal(answer.status, status, f"{query[:200]}: {answer.json}")
    return answer.json


def results(target=BASE, **parameters):
    answer = ask(target, **parameters)
    equal(answer["status"], "OK", "status")
    for item in answer["results"]:
        equal(sorted(item), ["dataset", "elevation", "location", "resolution"], "members")
    return answer["results"]


def invalid(answer, *words):
    equal(answer.status, 400, f"status of {answer}")
    said = answer.json
    equal((said["status"], said["results"]), ("INVALID_REQUEST", []), "status")
    equal(said["error"], said["error_message"], "error")
    for word in words:
        check(word in said["error"], f"{word!r} is not named: {said['error']}")


# ---- geo in the manifest --------------------------------------------------------------------------


@test("geo is kept, told, and refused off the Earth")
def _():
    told = daemon.ok("PUT", "/v1/locales/geo", {"geo": {"lat": -90, "lng": 180}}, status=201)
    equal(told["geo"], {"lat": -90, "lng": 180}, "geo")
    for geo, pointer in (({"lat": 90.001, "lng": 0}, "/geo/lat"),
                         ({"lat": 0, "lng": -180.5}, "/geo/lng"), ({"lat": 0}, "/geo/lng"),
                         ({"lat": "0", "lng": 0}, "/geo/lat"),
                         ({"lat": 0, "lng": 0, "alt": 3}, "/geo/alt")):
        problem(daemon.put("/v1/locales/geo", {"geo": geo}), 400, pointer=pointer)
    problem(daemon.put("/v1/locales/geo", '{"geo":{"lat":NaN,"lng":0}}'), 400)
    daemon.ok("DELETE", "/v1/locales/geo", status=204)


@test("without a locale on the Earth every elevation is null")
def _():
    put_locale(daemon, "nowhere")
    put_layer(daemon, "nowhere", Terrain(2, 2, [[1, 1], [1, 1]]))
    equal(results(locations="0,0"), [{"elevation": None, "location": {"lat": 0, "lng": 0},
                                      "resolution": None, "dataset": None}], "null island")


# ---- where a place stands -------------------------------------------------------------------------

SIDE, STEP = 41, 25.0
ORIGINS = {"alps": (47.2692, 11.4041), "quito": (0.0, -78.5), "suva": (-18.14, 180.0),
           "date": (12.5, -179.999), "thule": (89.99, 45.0), "pole": (90.0, 0.0),
           "south": (-90.0, 33.0), "greenwich": (51.4779, 0.0)}


def sloping():
    """Heights that tell x and y apart: bilinear is exact on them."""
    return Terrain(SIDE, SIDE, [[0.25 * c + 0.5 * r for c in range(SIDE)] for r in range(SIDE)],
                   (STEP, STEP), (-500.0, -500.0))


@test("places around every origin stand where earth-centred coordinates put them")
def _():
    for name, (lat, lng) in ORIGINS.items():
        put_locale(daemon, name, geo={"lat": lat, "lng": lng})
        put_layer(daemon, name, sloping())
    random = rng("places")
    worst = 0.0
    for name, origin in ORIGINS.items():
        places = [place_at(origin, random.uniform(-499, 499), random.uniform(-499, 499))
                  for _ in range(150)] if abs(origin[0]) < 89 else [
                      (math.copysign(90 - random.uniform(0, 0.003), origin[0]),
                       random.uniform(-180, 180)) for _ in range(150)]
        for place, item in zip(places, results(f"{BASE}/{name}", locations=text(places))):
            x, y, _ = enu(origin, *place)
            want = 0.25 * (x + 500) / STEP + 0.5 * (y + 500) / STEP
            equal(item["location"], {"lat": place[0], "lng": place[1]}, "location")
            equal((item["dataset"], item["resolution"]), (name, STEP), "dataset, resolution")
            if max(abs(x), abs(y)) > 499.9:
                continue
            near(item["elevation"], want, f"{name} {place}", 1e-6)
            worst = max(worst, abs(item["elevation"] - want) * STEP / 0.25)
    check(worst < 2e-3, f"worst place off by {worst} m")  # float32 heights


@test("a far place is right to a micrometre: a steep field over 200 km shows it")
def _():
    origin = (46.0, 9.0)
    put_locale(daemon, "wide", geo={"lat": origin[0], "lng": origin[1]})
    # heights of 2 m over 200 km, and nearest to tell the sample: the cell's edge is found by halving
    put_layer(daemon, "wide", Terrain(3, 3, [[0, 1, 2], [3, 4, 5], [6, 7, 8]], (100e3, 100e3),
                                      (-100e3, -100e3)))
    low, high = 9.0, 9.0 + 1.3
    for _ in range(60):
        middle = (low + high) / 2
        item = results(f"{BASE}/wide", locations=f"46.2,{middle!r}", interpolation="nearest")[0]
        low, high = (middle, high) if item["elevation"] == 4 else (low, middle)
    x, _, _ = enu(origin, 46.2, low)
    check(abs(x - 50e3) < 1e-6, f"the edge at 50 km is found at {x!r}")


@test("the other side of the Earth is nowhere, and the antimeridian is no border")
def _():
    for name, (lat, lng) in ORIGINS.items():
        other = results(f"{BASE}/{name}", locations=f"{-lat!r},{lng - 180 if lng > 0 else lng + 180!r}")
        equal(other[0]["elevation"], None, f"antipode of {name}")
    west, east = results(f"{BASE}/suva", locations="-18.14,179.9999|-18.14,-179.9999")
    check(west["elevation"] is not None and east["elevation"] is not None, f"{west} {east}")
    near(east["elevation"] - west["elevation"], 0.25 * 2 * enu((-18.14, 180), -18.14, -179.9999)[0]
         / STEP, "across it", 1e-4)
    equal(results(f"{BASE}/suva", locations="-18.14,180")[0]["elevation"],
          results(f"{BASE}/suva", locations="-18.14,-180")[0]["elevation"], "180 is -180")


@test("an answer of one locale names its revision")
def _():
    put_locale(daemon, "only", geo={"lat": -20, "lng": 20})
    put_layer(daemon, "only", Terrain(2, 2, [[1, 1], [1, 1]]))
    put_locale(daemon, "other", geo={"lat": -21, "lng": 20})
    put_layer(daemon, "other", Terrain(2, 2, [[1, 1], [1, 1]]))
    at = daemon.ok("GET", "/v1/locales/only")["revision"]
    for path, want in (("/only", str(at)), ("/only,other", None), ("", None)):
        answer = daemon.get(f"/v1/compat/elevation{path}?locations=-20,20")
        equal((answer.status, answer.headers.get("kota-revision")), (200, want), path)
    daemon.ok("DELETE", "/v1/locales/only", status=204)
    daemon.ok("DELETE", "/v1/locales/other", status=204)


@test("the first locale by id that has ground there answers; named ones in their order")
def _():
    put_locale(daemon, "aa", geo={"lat": 20, "lng": 20})
    put_layer(daemon, "aa", Terrain(3, 3, [[1, 1, math.nan]] * 3, (10, 10)))
    put_locale(daemon, "bb", geo={"lat": 20, "lng": 20})
    put_layer(daemon, "bb", Terrain(5, 3, [[2] * 5] * 3, (10, 20)))
    places = text([place_at((20, 20), *p) for p in ((5, 5), (15, 5), (35, 5), (45, 5))])
    got = results(locations=places)
    equal([(i["dataset"], i["elevation"], i["resolution"]) for i in got],
          [("aa", 1, 10), ("bb", 2, 20), ("bb", 2, 20), (None, None, None)], "all")
    got = results(f"{BASE}/bb,aa", locations=places)
    equal([(i["dataset"], i["elevation"]) for i in got],
          [("bb", 2), ("bb", 2), ("bb", 2), (None, None)], "bb first")
    got = results(f"{BASE}/aa", locations=places)
    equal([(i["dataset"], i["elevation"]) for i in got],
          [("aa", 1), ("aa", None), ("aa", None), ("aa", None)], "aa alone")


@test("a locale of meshes answers with its ground; its resolution is null")
def _():
    put_locale(daemon, "plate", geo={"lat": 30, "lng": 30})
    put_mesh(daemon, "plate", [rectangle(0, 0, 10, 10, 3.5)])
    lat, lng = place_at((30, 30), 4, 4)
    equal(results(locations=f"{lat!r},{lng!r}")[0],
          {"elevation": 3.5, "location": {"lat": lat, "lng": lng}, "resolution": None,
           "dataset": "plate"}, "plate")


@test("nearest, bilinear and triangle are the oracle's; bilinear when nothing is said")
def _():
    random = rng("interpolation")
    origin = (35.5, 139.5)
    field = Terrain(9, 7, [[random.uniform(0, 50) for _ in range(9)] for _ in range(7)], (12, 17))
    put_locale(daemon, "rough", geo={"lat": origin[0], "lng": origin[1]})
    put_layer(daemon, "rough", field)
    places = [place_at(origin, random.uniform(1, 95), random.uniform(1, 101)) for _ in range(80)]
    for interp, asked in (("nearest", {"interpolation": "nearest"}), ("bilinear", {}),
                          ("bilinear", {"interpolation": ""}),
                          ("triangle", {"interpolation": "triangle"})):
        for place, item in zip(places, results(f"{BASE}/rough", locations=text(places), **asked)):
            x, y, _ = enu(origin, *place)
            near(item["elevation"], field.height(x, y, interp)[1], f"{interp} {place}", 1e-5)


# ---- forms of asking ------------------------------------------------------------------------------


@test("polylines, with and without enc:, are the places they encode")
def _():
    random = rng("polylines")
    equal(encode([(38.5, -120.2), (40.7, -120.95), (43.252, -126.453)]),
          "_p~iF~ps|U_ulLnnqC_mqNvxq`@", "Google's own example")
    for _ in range(20):
        places = [(round(random.uniform(-90, 90), 5), round(random.uniform(-180, 180), 5))
                  for _ in range(random.randint(1, 40))]
        line = encode(places)
        for sent in (line, "enc:" + line):
            got = [(i["location"]["lat"], i["location"]["lng"]) for i in results(locations=sent)]
            equal(len(got), len(places), "number of places")
            for a, b in zip(got, places):
                check(all(abs(u - v) < 1e-9 for u, v in zip(a, b)), f"{a} for {b}")


@test("GET, a form and JSON ask the same")
def _():
    places = text([(47.2692, 11.4041), (47.27, 11.405)])
    want = ask(locations=places, interpolation="nearest", nodata_value="-1")
    body = urllib.parse.urlencode({"locations": places, "interpolation": "nearest",
                                   "nodata_value": -1})
    got = daemon.post(BASE, body, media=FORM)
    equal((got.status, got.json), (200, want), "form")
    got = daemon.post(BASE, {"locations": places, "interpolation": "nearest", "nodata_value": -1})
    equal((got.status, got.json), (200, want), "JSON")
    got = daemon.post(BASE, {"locations": places, "interpolation": "nearest",
                             "nodata_value": "-1", "samples": None})
    equal((got.status, got.json), (200, want), "JSON of texts and null")
    got = daemon.post(f"{BASE}/alps", {"locations": places})
    equal((got.status, len(got.json["results"])), (200, 2), "a dataset")


@test("a POST asks by its query, its body or both; what is in both is refused")
def _():
    places = text([(47.2692, 11.4041), (47.27, 11.405)])
    want = ask(locations=places, interpolation="nearest")
    asked = urllib.parse.urlencode({"locations": places, "interpolation": "nearest"})
    for media in (None, JSON, FORM, "text/plain"):  # of a body that is empty
        for body in (None, b""):
            got = daemon.post(f"{BASE}?{asked}", body, media=media)
            equal((got.status, got.json), (200, want), f"{media}")
    for half in ({"locations": places}, {"interpolation": "nearest"}):
        other = urllib.parse.urlencode({"locations": places, "interpolation": "nearest",
                                        **{name: "" for name in half}})
        for body, media in ((half, JSON), (urllib.parse.urlencode(half), FORM)):
            query = "&".join(pair for pair in other.split("&") if not pair.endswith("="))
            got = daemon.post(f"{BASE}?{query}", body, media=media)
            equal((got.status, got.json), (200, want), f"{query} and {body}")
            invalid(daemon.post(f"{BASE}?{asked}", body, media=media), next(iter(half)))
    equal(daemon.post(f"{BASE}/alps?locations={places}", None).status, 200, "a dataset")
    invalid(daemon.post(BASE, None), "no locations")
    invalid(daemon.post(f"{BASE}?points=1,1", None), "points")


@test("what Google's clients send along is read over; a bar at the end, blanks, raw bars too")
def _():
    one = results(locations="47.2692,11.4041")
    target = "/v1/compat/maps/api/elevation/json"
    got = daemon.get(f"{target}?locations=47.2692,11.4041&key=AIza-none&sensor=false&language=de")
    equal((got.status, got.json["results"]), (200, one), "Google's path")
    got = daemon.get(f"{BASE}?locations=|47.2692,11.4041|%20-47.5%20,%201.5%20|")
    equal(got.json["results"][0], one[0], "bars at the ends")
    equal(got.json["results"][1]["location"], {"lat": -47.5, "lng": 1.5}, "blanks")


@test("nodata_value stands for what is not there: null, nan (as Open Topo Data writes it), a number")
def _():
    there = "locations=0.5,0.5"
    for value, want in (("null", "null"), ("nan", "NaN"), ("NaN", "NaN"), ("-9999", "-9999"),
                        ("0", "0")):
        body = daemon.get(f"{BASE}?{there}&nodata_value={value}").body.decode()
        check(f'"elevation":{want},' in body, f"{value}: {body}")
    for value in ("-1.5", "none", "1e999", "12x"):
        invalid(daemon.get(f"{BASE}?{there}&nodata_value={value}"), "nodata_value", value)


@test("format=geojson gives features, without a third coordinate where there is no ground")
def _():
    answer = daemon.get(f"{BASE}/alps?locations=47.2692,11.4041|0,0&format=geojson")
    equal((answer.status, answer.media_type), (200, "application/geo+json"), "type")
    height = results(f"{BASE}/alps", locations="47.2692,11.4041")[0]["elevation"]
    equal(answer.json, {"type": "FeatureCollection", "features": [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [11.4041, 47.2692, height]},
         "properties": {"resolution": 25, "dataset": "alps"}},
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]},
         "properties": {"resolution": 25, "dataset": "alps"}}]}, "features")


# ---- paths ----------------------------------------------------------------------------------------


def unit(lat, lng):
    f, l = math.radians(lat), math.radians(lng)
    return (math.cos(f) * math.cos(l), math.cos(f) * math.sin(l), math.sin(f))


def angle(a, b):
    u, v = unit(*a), unit(*b)
    cross = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
    return math.atan2(math.sqrt(sum(c * c for c in cross)), sum(a * b for a, b in zip(u, v)))


@test("samples of a path stand evenly along its great circles, both ends among them")
def _():
    random = rng("paths")
    for corners in (2, 3, 7):
        for _ in range(10):
            path = [(random.uniform(-85, 85), random.uniform(-180, 180)) for _ in range(corners)]
            samples = random.choice((2, 3, 10, 64))
            got = [(i["location"]["lat"], i["location"]["lng"])
                   for i in results(path=text(path), samples=samples)]
            equal(len(got), samples, "number")
            equal((got[0], got[-1]), (path[0], path[-1]), "the ends, to the bit")
            legs = [angle(a, b) for a, b in zip(path, path[1:])]
            for i, place in enumerate(got):
                along = sum(legs) * i / (samples - 1)
                k = 0
                while k < len(legs) - 1 and along > legs[k]:
                    along -= legs[k]
                    k += 1
                near(angle(path[k], place), along, f"sample {i} of {path}: from its corner", 1e-9)
                near(angle(place, path[k + 1]), legs[k] - along, "to the next", 1e-9)


@test("a path over the pole, across the antimeridian, of no length, and by encoded polyline")
def _():
    got = results(path="80,0|80,180", samples=3)
    near(got[1]["location"]["lat"], 90, "over the pole", 1e-9)
    got = results(path="10,170|10,-170", samples=3)
    near(abs(got[1]["location"]["lng"]), 180, "across")
    got = results(path="10,10|10,10|10,10", samples=4)
    equal([i["location"] for i in got], [{"lat": 10, "lng": 10}] * 4, "no length")
    places = [(47.26, 11.4), (47.28, 11.41)]
    equal(results(path="enc:" + encode(places), samples=5), results(path=text(places), samples=5),
          "encoded")
    equal(results(locations=text(places), samples=5), results(path=text(places), samples=5),
          "Open Topo Data's samples of locations")


# ---- refusals -------------------------------------------------------------------------------------

REFUSED = [
    ("nothing asked", "", "no locations"),
    ("an empty text", "locations=", "no locations"),
    ("one number", "locations=1,2|3,", "location 2", "lat,lng"),
    ("a word", "locations=here,there", "location 1", "here"),
    ("not a number", "locations=nan,0", "location 1"),
    ("infinite", "locations=0,inf", "location 1"),
    ("beyond the pole", "locations=0,0|90.5,0", "location 2", "90.5", "-90..90"),
    ("beyond the antimeridian", "locations=0,180.5", "longitude 180.5"),
    ("an empty place between bars", "locations=1,2||3,4", "location 2"),
    ("a polyline that is cut", "locations=_p~iF~ps|U_", "ends within its location 2"),
    ("a polyline of one number", "locations=_p~iF", "ends within its location 1"),
    ("a polyline without end", "locations=" + "~" * 40, "more than 6"),
    ("a polyline that leaves the Earth", "locations=" + encode([(80, 0)]) + encode([(80, 0)]),
     "location 2", "160"),
    ("a byte that no polyline has", "locations=enc:_p~iF%20", "value 32"),
    ("a byte of value 255", "locations=_p~iF%FF", "value 255"),
    ("cubic, which is not offered", "locations=0,0&interpolation=cubic",
     "nearest, bilinear, triangle"),
    ("a format that is none", "locations=0,0&format=xml", "json, geojson"),
    ("both", "locations=0,0&path=0,0|1,1&samples=2", "both"),
    ("a path without samples", "path=0,0|1,1", "samples"),
    ("a path of one place", "path=0,0&samples=3", "2 locations"),
    ("one sample", "path=0,0|1,1&samples=1", "samples=1"),
    ("samples in words", "path=0,0|1,1&samples=two", "samples=two"),
    ("half a sample", "path=0,0|1,1&samples=2.5", "samples=2.5"),
    ("too many samples", "path=0,0|1,1&samples=10001", "10001", "10000"),
    ("samples beyond all numbers", "path=0,0|1,1&samples=99999999999999999999", "samples="),
    ("opposite sides of the Earth", "path=10,20|-10,-160&samples=3", "opposite"),
    ("an unknown parameter", "locations=0,0&colour=1", "colour"),
    ("a parameter twice", "locations=0,0&locations=1,1", "twice"),
]


def refused(query, *words):
    invalid(daemon.get(f"{BASE}?{query}"), *words)


for what_, query_, *words_ in REFUSED:
    case(f"{what_}: 400 INVALID_REQUEST, and named", refused, query_, *words_)


@test("what is said of bytes that are no UTF-8 is JSON all the same")
def _():
    invalid(daemon.get(f"{BASE}?locations=%FF%C0,1"), "location 1")
    invalid(daemon.get(f"{BASE}?locations=%22%5C%0A,1"), "location 1")


@test("datasets that are not there, not on the Earth, twice, too many, none")
def _():
    there = "locations=0,0"
    invalid(daemon.get(f"{BASE}/atlantis?{there}"), "atlantis")
    invalid(daemon.get(f"{BASE}/nowhere?{there}"), "nowhere", "geo")
    invalid(daemon.get(f"{BASE}/aa,aa?{there}"), "aa", "twice")
    invalid(daemon.get(f"{BASE}/aa,?{there}&samples=1"), "samples")
    invalid(daemon.get(f"{BASE}/,?{there}"), "no dataset")
    invalid(daemon.get(f"{BASE}/a%2Fb?{there}"), "a/b")
    put_locale(daemon, "double", geo={"lat": 1, "lng": 1})
    for layer in ("one", "two"):
        put_layer(daemon, "double", Terrain(2, 2, [[1, 1], [1, 1]]), layer)
    invalid(daemon.get(f"{BASE}/double?{there}"), "double", "2 heightfields")
    equal(results(locations="1,1")[0]["elevation"], None, "it is left out of the others")


@test("bodies that are no form and no JSON, and members of other kinds")
def _():
    invalid(daemon.post(BASE, "<a/>", media="text/xml"), "text/xml")
    invalid(daemon.post(BASE, '{"locations":"0,0"'), "byte")
    invalid(daemon.post(BASE, {"locations": [[0, 0]]}), "locations", "array")
    invalid(daemon.post(BASE, {"locations": "0,0", "interp": "nearest"}), "interp")
    invalid(daemon.post(BASE, "locations=%ZZ", media=FORM), "%")
    invalid(daemon.post(BASE, "&".join(f"a{i}=1" for i in range(40)), media=FORM), "32")
    invalid(daemon.post(BASE, "", media=FORM), "no locations")
    got = daemon.post(BASE, "&&locations=0,0&&key&=&", media=FORM)
    equal((got.status, len(got.json["results"])), (200, 1), "empty pieces of a form")


@test("ten thousand places are answered, one more is refused, in every form; so is a million")
def _():
    limit = daemon.ok("GET", "/v1/limits")["elevation_locations_max"]
    equal(limit, 10000, "the limit")
    pairs, line = "1,2|" * limit, encode([(1, 2)]) + "??" * (limit - 1)
    for sent in (pairs, line, "enc:" + line):
        got = daemon.post(BASE, {"locations": sent})
        equal((got.status, len(got.json["results"])), (200, limit), sent[:9])
    for sent in (pairs + "1,2", line + "??", "1,2|" * 1_000_000, "?" * 2_000_000):
        got = daemon.post(BASE, urllib.parse.urlencode({"locations": sent}), media=FORM)
        invalid(got, "10000", "locations")
    invalid(daemon.post(BASE, urllib.parse.urlencode({"path": "1,2|" * 10001, "samples": 2}),
                        media=FORM), "10001", "10000")
    big = "x" * (8 * 1024 * 1024 + 1)
    invalid(daemon.post(BASE, big, media=FORM), "8388608")
    check(daemon.is_alive(), "alive")


@test("HEAD and OPTIONS, and methods that are not served")
def _():
    equal(daemon.ask("HEAD", f"{BASE}?locations=0,0").status, 200, "HEAD")
    equal(daemon.ask("OPTIONS", BASE).headers.get("allow"), "GET, HEAD, POST, OPTIONS", "Allow")
    problem(daemon.ask("PUT", BASE, {}), 405)


@test("a batch gives what its places asked one by one would give")
def _():
    random = rng("one by one")
    places = []
    for name in ("alps", "suva", "aa", "rough", "wide"):
        geo = daemon.ok("GET", f"/v1/locales/{name}")["geo"]
        places += [place_at((geo["lat"], geo["lng"]), random.uniform(-200, 200),
                            random.uniform(-200, 200)) for _ in range(10)]
    whole = results(locations=text(places))
    for place, item in zip(places, whole):
        equal(results(locations=text([place]))[0], item, f"{place}")
    check(sum(i["elevation"] is not None for i in whole) > 25, "most are over ground")
    json.dumps(whole, allow_nan=False)


run(daemon.stop)
