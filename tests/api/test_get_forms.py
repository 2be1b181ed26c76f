"""Questions as links: the GET forms answer what POST answers for one item, flat, by the same rules."""
import json
from urllib.parse import urlencode

from daemon import Daemon, problem
from fields import Terrain, put_layer, put_locale
from tap import case, check, equal, rng, run, test

daemon = Daemon()


def at(name):
    return f"/v1/locales/{name}"


random = rng("get forms")
put_locale(daemon, "land")
put_layer(daemon, "land", Terrain(9, 9, [[random.uniform(0, 5) for _ in range(9)]
                                         for _ in range(9)]), "ground")
put_layer(daemon, "land", Terrain(5, 5, [[9.5] * 5] * 5), "roof")


def numbers(values):
    return ",".join(repr(v) for v in values)


def place(low, high):
    return [random.uniform(-1, 9), random.uniform(-1, 9), random.uniform(low, high)]


def agree(call, query, body, member="results"):
    got = daemon.get(f"{at('land')}/{call}?{urlencode(query)}")
    equal(got.status, 200, f"{query}: {got}")
    equal(got.headers.get("access-control-allow-origin"), "*", "CORS")
    want = daemon.ok("POST", f"{at('land')}/{call}", body)
    flat = {"locale": want["locale"], "revision": want["revision"],
            **(want[member][0] if member else want)}
    equal(got.json, flat, f"{query}")
    equal(list(got.json), list(flat), "the order of the members")
    head = daemon.ask("HEAD", f"{at('land')}/{call}?{urlencode(query)}")
    equal((head.status, head.body, head.headers["content-length"]),
          (200, b"", got.headers["content-length"]), "HEAD")
    equal(got.headers["kota-revision"], str(want["revision"]), "Kota-Revision")


@test("contact")
def _():
    for options in ({}, {"reach_up": 2.5}, {"max_distance": 1.5}, {"clearance": 1.75}, {"layer": "roof"},
                    {"clearance": 3, "clearance_mode": "exact"}, {"reach_up": 0, "clearance": 1}):
        for _ in range(20):
            point = place(-2, 12)
            agree("contact", {**dict(zip("xyz", point)), **options}, {"points": [point], **options})


@test("ray")
def _():
    for options in ({}, {"t_max": 3}, {"mode": "any"}, {"layer": "ground"}):
        for _ in range(20):
            ray = {"origin": place(4, 15), "direction": [random.gauss(0, 1) for _ in range(3)]}
            t_max = {"t_max": options["t_max"]} if "t_max" in options else {}
            rest = {name: value for name, value in options.items() if name != "t_max"}
            agree("ray", {"origin": numbers(ray["origin"]), "direction": numbers(ray["direction"]),
                          **options}, {"rays": [{**ray, **t_max}], **rest})
    agree("ray", {"origin": "0,0,1", "direction": "0,0,0"},
          {"rays": [{"origin": [0, 0, 1], "direction": [0, 0, 0]}]})


@test("los")
def _():
    for options in ({}, {"layer": "ground"}):
        for _ in range(20):
            segment = {"from": place(-1, 8), "to": place(-1, 8)}
            agree("los", {**{k: numbers(v) for k, v in segment.items()}, **options},
                  {"segments": [segment], **options})


@test("pick")
def _():
    for options in ({}, {"tile_side": 3}, {"layer": "ground"}):
        for camera in ({}, {"up": [0.1, 1, 0.2]}, {"fov_y_deg": 90}):
            for _ in range(8):
                view = {"eye": place(12, 20), "target": place(0, 5), **camera}
                frame = {"viewport": [640, 480],
                         "pixel": [random.uniform(0, 640), random.uniform(0, 480)]}
                query = {k: numbers(v) if isinstance(v, list) else v
                         for k, v in {**view, **frame, **options}.items()}
                agree("pick", query, {"camera": view, **frame, **options}, None)


def refused(call, query, status, pointer, *words):
    problem(daemon.get(f"{at('land')}/{call}?{query}"), status, *words, pointer=pointer)


PICK = "eye=0,0,9&target=1,1,0&viewport=8,6&pixel=4,3"
for call_, query_, status_, pointer_ in (
        ("contact", "x=1&y=2", 400, "z"), ("contact", "x=1&y=2&z=3&depth=1", 400, "depth"),
        ("contact", "x=1&y=2&z=a", 400, "z"), ("contact", "x=1&y=2&z=3&reach_up=-1", 400, None),
        ("contact", "x=1&y=2&z=3&layer=none", 422, "layer"),
        ("ray", "origin=1,2,3", 400, "direction"), ("ray", "origin=1,2&direction=0,0,1", 400, "origin"),
        ("ray", "origin=1,2,3&direction=0,0,inf", 400, "direction"),
        ("ray", "origin=1,2,3&direction=0,0,1&trace=true", 400, "trace"),
        ("los", "from=1,2,3", 400, "to"), ("los", "from=1,2,3,4&to=1,2,3", 400, "from"),
        ("pick", PICK + "&up=1,1,-9", 422, "up"), ("pick", PICK + "&fov_y_deg=180", 422, "fov_y_deg"),
        ("pick", "eye=0,0,9&target=0,0,9&viewport=8,6&pixel=4,3", 422, "target"),
        ("pick", "eye=0,0,9&target=1,1,0&viewport=8,6&pixel=8,3", 422, "pixel"),
        ("pick", "eye=0,0,9&target=1,1,0&viewport=0,6&pixel=0,3", 422, "viewport"),
        ("pick", "eye=0,0,9&target=1,1,0&viewport=8,6", 400, "pixel")):
    case(f"{call_}?{query_} is {status_} and points to {pointer_}", refused, call_, query_, status_,
         pointer_)


@test("an option in the query of a JSON question counts; in both it is refused")
def _():
    for call, body, name, values in (
            ("contact", {"points": [[1, 1, 12]]}, "layer", ("roof", "ground")),
            ("contact", {"points": [[1, 1, 2]]}, "reach_up", (0, 9)),
            ("ray", {"rays": [{"origin": [1, 1, 20], "direction": [0, 0, -1]}]}, "layer",
             ("roof", "ground")),
            ("height", {"points": [[1.3, 1.6]], "layer": "ground"}, "interp",
             ("nearest", "bilinear"))):
        answers = []
        for value in values:
            inside = daemon.ok("POST", f"{at('land')}/{call}", {**body, name: value})
            outside = daemon.ok("POST", f"{at('land')}/{call}?{name}={value}", body)
            equal(outside, inside, f"{call}?{name}={value}")
            answers.append(json.dumps(inside))
            problem(daemon.post(f"{at('land')}/{call}?{name}={value}", {**body, name: value}), 400,
                    name, pointer=name)
        check(answers[0] != answers[1], f"{call}: {name} changes nothing")


run(daemon.stop)
