"""Which locale a point of the world is in: placements, hints, shared borders, `changed`."""
import math

from daemon import Daemon, problem
from fields import Terrain, put_layer, put_locale
from mesh_oracle import (CEILING, MeshLayer, World, grid_rings, put_mesh, put_world, random_soup,
                         rectangle, soup_place)
from placements import quaternion, to_local, to_world
from tap import case, check, equal, near_all, rng, run, test

daemon = Daemon()


def locate(points, hints=None, **more):
    body = {"points": points, **more}
    if hints is not None:
        body["hints"] = hints
    answer = daemon.ok("POST", "/v1/locate", body)
    equal(len(answer["results"]), len(points), "number of results")
    for item in answer["results"]:
        equal(set(item) - {"hint"}, {"locale", "point", "changed", "revision"}, f"members: {item}")
        equal(item.get("hint", "unknown"), "unknown", f"hint: {item}")
        check(isinstance(item["changed"], bool), f"changed: {item}")
        equal(item["locale"] is None, item["point"] is None, f"point without a locale: {item}")
    return answer["results"]


def where(point, hint=None):
    item = locate([point], [hint])[0]
    return item["locale"], item["changed"]


# ---- by hand ------------------------------------------------------------------------------------


@test("with no locale at all a point is nowhere")
def _():
    equal(locate([[1, 2, 3]]), [{"locale": None, "point": None, "changed": False, "revision": None}],
          "nowhere")
    equal(where([1, 2, 3], "gone"), (None, True), "it has left a locale that is no more")


@test("two locales side by side: each point is in its own, with the point in its frame")
def _():
    put_locale(daemon, "west", placement={"translation": [100, 0, 10], "rotation": [0, 0, 0, 1]})
    put_mesh(daemon, "west", [rectangle(0, 0, 10, 10, 0)])
    # Half a turn about Z: east's (10, 10) lies on the shared border's far end.
    put_locale(daemon, "east", placement={"translation": [120, 10, 10], "rotation": [0, 0, 1, 0]})
    put_mesh(daemon, "east", [rectangle(0, 0, 10, 10, 0)])
    got = locate([[105, 3, 11], [117, 3, 11], [99, 3, 11], [105, 3, 9], [121, 3, 11]])
    equal([item["locale"] for item in got], ["west", "east", None, None, None], "locale")
    near_all(got[0]["point"], [5, 3, 1], "point in west")
    near_all(got[1]["point"], [3, 7, 1], "point in east, turned")
    equal([item["changed"] for item in got], [False] * 5, "without hints nothing has changed")
    at = daemon.ok("GET", "/v1/locales/west")["revision"]
    daemon.ok("PUT", "/v1/locales/west", {"title": "W", "placement": {
        "translation": [100, 0, 10], "rotation": [0, 0, 0, 1]}})
    east = daemon.ok("GET", "/v1/locales/east")["revision"]
    equal([item["revision"] for item in locate([[105, 3, 11], [117, 3, 11], [99, 3, 11]])],
          [at + 1, east, None], "the revision of the locale that holds it")


@test("changed says whether the answer differs from the hint")
def _():
    equal(where([105, 3, 11], "west"), ("west", False), "it stayed")
    equal(where([105, 3, 11], "east"), ("west", True), "it moved over")
    equal(where([105, 3, 11], None), ("west", False), "no hint")
    equal(where([99, 3, 11], "west"), (None, True), "it left")
    equal(where([99, 3, 11], None), (None, False), "it was nowhere")
    equal(where([105, 3, 11], "atlantis"), ("west", True), "a hint of no locale")


@test("on a shared border a point stays where it was; without a hint the smallest id has it")
def _():
    for y in (0.0, 2.5, 3.3, 10.0):
        border = [110, y, 10.5]
        equal(where(border, "west"), ("west", False), f"from the west, y {y}")
        equal(where(border, "east"), ("east", False), f"from the east, y {y}")
        equal(where(border), ("east", False), f"no hint, y {y}: east < west")


@test("a hair over the border (1e-7 m) the hint still holds, a millimetre over it does not")
def _():
    for x, hint, want in ((110 + 1e-7, "west", "west"), (110 + 5e-7, "west", "west"),
                          (110.001, "west", "east"), (110 + 1e-5, "west", "east"),
                          (110 - 1e-7, "east", "east"), (110 - 5e-7, "east", "east"),
                          (109.999, "east", "west"), (110 - 1e-5, "east", "west")):
        equal(where([x, 3, 10.5], hint), (want, want != hint), f"x - 110 = {x - 110:g}, {hint}")
    equal(where([99.9999998, 3, 10.5], "west"), ("west", False), "the outer border as well")
    equal(where([99.9999998, 3, 10.5], None), (None, False), "not without a hint")


@test("a point that trembles about the border changes its locale once, not at every step")
def _():
    random = rng("tremble")
    hint, changes = "west", 0
    for step in range(400):
        x = 110 + random.uniform(-9e-7, 9e-7)
        item = locate([[x, 4.0, 10.25]], [hint])[0]
        check(item["locale"] is not None, f"lost at step {step}, x - 110 = {x - 110:g}")
        changes += item["changed"]
        hint = item["locale"]
    equal((hint, changes), ("west", 0), "after 400 steps")


@test("a batch with hints gives what its items asked one by one would give")
def _():
    random = rng("batch")
    points = [[random.choice((105, 110, 115, 130)), random.uniform(-1, 11), random.uniform(9, 12)]
              for _ in range(200)]
    hints = [random.choice(("west", "east", None, "atlantis")) for _ in points]
    for point, hint, item in zip(points, hints, locate(points, hints)):
        equal(locate([point], [hint])[0], item, f"{point} {hint}")


@test("one locale within another: the smallest id without a hint, the hinted one with it")
def _():
    put_locale(daemon, "big", placement={"translation": [0, 200, 0], "rotation": [0, 0, 0, 1]})
    put_mesh(daemon, "big", [rectangle(0, 0, 50, 50, 0)])
    put_locale(daemon, "a-house", placement={"translation": [20, 220, 0],
                                             "rotation": [0, 0, 0, 1]}, open_sky=False)
    put_mesh(daemon, "a-house", [rectangle(0, 0, 5, 5, 0)], "floor")
    put_mesh(daemon, "a-house", [rectangle(0, 0, 5, 5, 3)], "roof", query="role=ceiling")
    equal(where([22, 222, 1]), ("a-house", False), "inside")
    equal(where([22, 222, 1], "big"), ("big", False), "the hinted one still contains it")
    equal(where([22, 222, 4]), ("big", False), "above the roof: no ceiling")
    equal(where([22, 222, 4], "a-house"), ("big", True), "it has gone through the roof")
    equal(where([30, 230, 1], "a-house"), ("big", True), "it has left the house")


@test("a hole is in no locale; a point above it comes back at its rim")
def _():
    put_locale(daemon, "ring", placement={"translation": [0, 400, 0], "rotation": [0, 0, 0, 1]})
    put_mesh(daemon, "ring", [rectangle(0, 0, 9, 3, 0), rectangle(0, 6, 9, 9, 0),
                              rectangle(0, 3, 3, 6, 0), rectangle(6, 3, 9, 6, 0)])
    equal(where([4.5, 404.5, 1], "ring"), (None, True), "over the hole")
    equal(where([2.9, 404.5, 1]), ("ring", False), "beside it")
    equal(where([3.0, 404.5, 1], "ring"), ("ring", False), "on its rim")


@test("heightfields contain, too; a locale without layers contains nothing")
def _():
    put_locale(daemon, "hills", placement={"translation": [500, 0, 0], "rotation": [0, 0, 0, 1]})
    put_layer(daemon, "hills", Terrain(5, 5, [[c / 2 for c in range(5)]] * 5))
    put_locale(daemon, "aaa-empty")
    equal(where([502.2, 1.3, 5]), ("hills", False), "above the ground")
    equal(where([502.2, 1.3, 1]), (None, False), "below it")
    equal(where([504 + 5e-7, 1.3, 5], "hills"), ("hills", False), "on its border")
    equal(where([504.001, 1.3, 5], "hills"), (None, True), "beyond")


@test("a locale that is moved or deleted is found, or not, at once")
def _():
    put_locale(daemon, "moving", placement={"translation": [0, 600, 0], "rotation": [0, 0, 0, 1]})
    put_mesh(daemon, "moving", [rectangle(0, 0, 4, 4, 0)])
    equal(where([1, 601, 1])[0], "moving", "before")
    put_locale(daemon, "moving", status=200, placement={"translation": [0, 700, 0],
                                                        "rotation": [0, 0, 0, 1]})
    equal((where([1, 601, 1], "moving"), where([1, 701, 1])), ((None, True), ("moving", False)),
          "moved")
    daemon.ok("DELETE", "/v1/locales/moving", status=204)
    equal(where([1, 701, 1], "moving"), (None, True), "deleted")


# ---- random -------------------------------------------------------------------------------------


@test("points of random locales, turned every way and under any gravity, agree with brute force")
def _():
    random = rng("random locales")
    made = {}
    for i in range(6):
        gravity = random.choice(((0, 0, -1), (0, 0, -1), (0.6, 0, -0.8), (0, 1, 0)))
        axis = [random.gauss(0, 1) for _ in range(3)]
        placement = {"translation": [10000 + random.uniform(-20, 20) for _ in range(3)],
                     "rotation": quaternion(axis, random.uniform(0, 360))}
        up = tuple(-v for v in gravity)
        layers = [MeshLayer(random_soup(random, 90, up=up), name="low"),
                  MeshLayer(random_soup(random, 50, up=up), CEILING, "roof")]
        world = World(layers, gravity=gravity, open_sky=bool(i % 2))
        name = f"random-{i}"
        put_world(daemon, name, world, placement=placement)
        told = daemon.ok("GET", f"/v1/locales/{name}")["placement"]
        near_all(told["rotation"], placement["rotation"], "rotation", 1e-9)
        made[name] = world, told
    points, hints = [], []
    for _ in range(300):
        world, placement = made[random.choice(sorted(made))]
        local = soup_place(random, up=tuple(-v for v in world.gravity))
        points.append(to_world(placement, local))
        hints.append(random.choice((*sorted(made), None, None)))
    judged = found = 0
    for point, hint, item in zip(points, hints, locate(points, hints)):
        containing, unsure = [], False
        for name, (world, placement) in sorted(made.items()):
            local = to_local(placement, point)
            column = world.column(local, 1e-5)
            if any(abs(m.inner) < 1e-5 or abs(m.t) < 1e-5 for m in column):
                unsure = True
                break
            floor, ceiling = world.floor_and_ceiling(column, 0)
            if floor and (world.open_sky or ceiling):
                containing.append((name, local))
        if unsure:
            continue
        judged += 1
        names = [name for name, _ in containing]
        want = hint if hint in names else names[0] if names else None
        equal(item["locale"], want, f"{point}, hint {hint}, containing {names}")
        equal(item["changed"], hint is not None and hint != want, f"changed, {point}, hint {hint}")
        if want:
            found += 1
            near_all(item["point"], dict(containing)[want], f"point in {want}", 1e-9, 1e4)
    check(judged > 200 and found > 15, f"{judged} judged, {found} found")


@test("locate and contains of the locale it names agree")
def _():
    random = rng("agree")
    points = [[10000 + random.uniform(-60, 60) for _ in range(3)] for _ in range(300)]
    found = 0
    for item in locate(points):
        if item["locale"]:
            got = daemon.ok("POST", f"/v1/locales/{item['locale']}/contains",
                            {"points": [item["point"]]})["results"][0]
            equal(got["status"], "inside", f"{item}")
            found += 1
    check(found > 0, f"{found} found")


@test("feet on the floor are in their locale, however it is turned and wherever it lies")
def _():
    random = rng("feet")
    rings = grid_rings(10, 10, 1.3, lambda x, y: math.sin(x) + y / 3)
    field = Terrain(14, 14, [[math.sin(c) + r / 3 for c in range(14)] for r in range(14)])
    for i, far in enumerate((0.0, 1e3, 1e5, 1e7)):
        placement = {"translation": [far, 5000 + 2 * far, -far],
                     "rotation": quaternion((1, 2, 3), 77)}
        for kind in ("mesh", "field"):
            name = f"feet-{kind}-{i}"
            placement["translation"][2] += 500
            put_locale(daemon, name, placement=placement)
            if kind == "mesh":
                put_mesh(daemon, name, rings)
            else:
                put_layer(daemon, name, field)
            placement = daemon.ok("GET", f"/v1/locales/{name}")["placement"]
            above = [[random.uniform(0.01, 12.9), random.uniform(0.01, 12.9), 99]
                     for _ in range(200)]
            floors = [item["floor"]["point"] for item in daemon.ok(
                "POST", f"/v1/locales/{name}/contact", {"points": above})["results"]]
            feet = [to_world(placement, p) for p in floors]
            for hints in ([name] * 200, None):
                for point, item in zip(feet, locate(feet, hints)):
                    equal(item["locale"], name, f"{point}, {hints and 'hinted'}")
            for point, item in zip(floors, daemon.ok(
                    "POST", f"/v1/locales/{name}/contains", {"points": floors})["results"]):
                equal(item["status"], "inside", f"{name}: {point}")


# ---- refusals -----------------------------------------------------------------------------------

REFUSED = [
    ("no points", {}, "points", "/points"),
    ("an empty batch", {"points": []}, "points", "/points"),
    ("a point of two numbers", {"points": [[1, 2, 3], [1, 2]]}, "", "/points/1"),
    ("a text among numbers", {"points": [[1, "2", 3]]}, "", "/points/0"),
    ("points that are no array", {"points": 7}, "points", "/points"),
    ("fewer hints than points", {"points": [[1, 2, 3]] * 2, "hints": ["west"]}, "hints", "/hints"),
    ("more hints than points", {"points": [[1, 2, 3]], "hints": ["west", None]}, "hints",
     "/hints"),
    ("hints that are no array", {"points": [[1, 2, 3]], "hints": "west"}, "hints", "/hints"),
    ("a hint that is a number", {"points": [[1, 2, 3]], "hints": [7]}, "", "/hints/0"),
    ("an unknown member", {"points": [[1, 2, 3]], "hint": ["west"]}, "hint", None),
]


def refused(body, word, pointer):
    before = daemon.get("/v1/locales?layers=true").body
    problem(daemon.post("/v1/locate", body), 400, word, pointer=pointer)
    equal(daemon.get("/v1/locales?layers=true").body, before, "locales")


for what_, body_, word_, pointer_ in REFUSED:
    case(f"{what_}: 400, and named", refused, body_, word_, pointer_)


@test("more than 10,000 points are 413 with limit and got; exactly so many are answered")
def _():
    problem(daemon.post("/v1/locate", {"points": [[1, 2, 3]] * 10001}), 413, limit=10000,
            got=10001)
    equal(len(locate([[105, 3, 11]] * 10000)), 10000, "ten thousand")


@test("locate answers POST alone, JSON alone, and no unknown query")
def _():
    answer = daemon.get("/v1/locate")
    problem(answer, 405)
    check("POST" in answer.headers.get("allow", ""), f"Allow: {answer.headers}")
    problem(daemon.post("/v1/locate", "<a/>", media="text/xml"), 415, "text/xml")
    problem(daemon.post("/v1/locate?colour=1", {"points": [[1, 2, 3]]}), 400, "colour")
    problem(daemon.post("/v1/locate", '{"points":[[1,2,3]'), 400, "byte")


run(daemon.stop)
