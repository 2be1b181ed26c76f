"""POST /v1/ray and /v1/contact: the world's own coordinates, over all locales.

A random world of turned, overlapping locales is held against brute force in double precision over
every triangle of every locale; hand-made worlds show what happens at borders.
"""
import math

from daemon import Daemon, problem
from fields import Terrain, put_layer, put_locale
from mesh_oracle import (CEILING, MeshLayer, World, put_mesh, put_world, random_soup, rectangle,
                         soup_place)
from placements import quaternion, to_local, to_world, turn, turn_back
from tap import case, check, equal, near, near_all, rng, run, test

daemon = Daemon()
FAR = 10_000.0


def cast(rays, status=200, **more):
    answer = daemon.ok("POST", "/v1/ray", {"rays": rays, **more}, status=status)
    equal(set(answer), {"results"}, "members")
    equal(len(answer["results"]), len(rays), "number of results")
    for item in answer["results"]:
        check(set(item) >= {"status", "locale", "revision", "t", "point", "normal", "layer", "cell",
                            "triangle", "polygon", "crossed", "crossed_count"}, f"members: {item}")
        equal(item["locale"] is None, item["status"] != "hit", f"locale of {item}")
    return answer["results"]


def touch(points, **more):
    answer = daemon.ok("POST", "/v1/contact", {"points": points, **more})
    equal(len(answer["results"]), len(points), "number of results")
    return answer["results"]


# ---- nothing, and one ---------------------------------------------------------------------------


@test("an empty world: rays miss, points are outside, no locale is named")
def _():
    item = cast([{"origin": [0, 0, 9], "direction": [0, 0, -1]}])[0]
    equal((item["status"], item["locale"], item["crossed"], item["crossed_count"]),
          ("miss", None, [], 0), "ray")
    equal(touch([[1, 2, 3]], clearance=1), [{"status": "outside", "locale": None, "revision": None,
                                             "floor": None, "ceiling": None, "placed": None}],
          "contact")


@test("two floors side by side and a wall behind: the ray goes on, and says where it crossed")
def _():
    half_turn = [0, 0, 1, 0]
    put_locale(daemon, "west", placement={"translation": [100, 0, 10], "rotation": [0, 0, 0, 1]})
    put_mesh(daemon, "west", [rectangle(0, 0, 10, 10, 0)])
    put_locale(daemon, "east", placement={"translation": [120, 10, 10], "rotation": half_turn})
    put_mesh(daemon, "east", [rectangle(0, 0, 10, 10, 0),
                              [[1, 0, 0], [1, 10, 0], [1, 10, 8], [1, 0, 8]]])
    over = {"origin": [90, 5, 12], "direction": [2, 0, 0]}
    item = cast([over])[0]
    equal((item["status"], item["locale"], item["polygon"]), ("hit", "east", 1), "the wall")
    near(item["t"], 14.5, "t")
    near_all(item["point"], [119, 5, 12], "point")
    near_all(item["normal"], [-1, 0, 0], "normal, against the ray")
    equal([c["locale"] for c in item["crossed"]], ["east"], "west is flat and lower")
    near(item["crossed"][0]["t_enter"], 10, "t_enter")
    near(item["crossed"][0]["t_leave"], 14.5, "t_leave is the hit")
    slope = cast([{"origin": [90, 5, 15], "direction": [5, 0, -1]}])[0]
    equal(slope["locale"], "east", "through the air over west onto east")
    near_all(slope["point"], [115, 5, 10], "point of the slope")
    flat = cast([{"origin": [95, 5, 10], "direction": [1, 0, 0]}])[0]
    equal([c["locale"] for c in flat["crossed"]], ["west", "east"][:flat["crossed_count"]],
          "within the floors' plane")
    near(flat["crossed"][0]["t_enter"], 5, "enters west")
    miss = cast([{"origin": [90, 5, 12], "direction": [2, 0, 0], "t_max": 12}])[0]
    equal((miss["status"], miss["crossed_count"]), ("miss", 1), "ends before the wall")
    near(miss["crossed"][0]["t_leave"], 12, "t_leave is t_max")


@test("mode any gives some hit; a locale behind the hit is not crossed")
def _():
    down = {"origin": [105, 5, 50], "direction": [0, 0, -1]}
    put_locale(daemon, "under", placement={"translation": [100, 0, 0], "rotation": [0, 0, 0, 1]})
    put_mesh(daemon, "under", [rectangle(0, 0, 10, 10, 0)])
    item = cast([down])[0]
    equal((item["locale"], item["t"]), ("west", 40), "the nearer floor")
    equal([c["locale"] for c in item["crossed"]], ["west"], "under lies behind it")
    equal(cast([down], mode="any")[0]["status"], "hit", "any")
    up = cast([{"origin": [105, 5, -5], "direction": [0, 0, 1]}])[0]
    equal((up["locale"], up["t"]), ("under", 5), "from below")
    daemon.ok("DELETE", "/v1/locales/under", status=204)


@test("of two floors at one place the smaller id has it")
def _():
    put_locale(daemon, "a-west", placement={"translation": [100, 0, 10], "rotation": [0, 0, 0, 1]})
    put_mesh(daemon, "a-west", [rectangle(0, 0, 10, 10, 0)])
    item = cast([{"origin": [105, 5, 50], "direction": [0, 0, -1]}])[0]
    equal((item["locale"], [c["locale"] for c in item["crossed"]]), ("a-west", ["a-west", "west"]),
          "both are crossed")
    daemon.ok("DELETE", "/v1/locales/a-west", status=204)


@test("contact: the locale that holds the point, or has a floor within reach above it, by hints")
def _():
    got = touch([[105, 3, 11], [117, 3, 11], [99, 3, 11], [105, 3, 9], [105, 3, 9.75]])
    equal([i["locale"] for i in got], ["west", "east", None, None, "west"], "locales")
    equal([i["status"] for i in got], ["ok", "ok", "outside", "outside", "ok"], "status")
    near_all(got[0]["floor"]["point"], [105, 3, 10], "floor")
    near_all(got[1]["floor"]["point"], [117, 3, 10], "floor of the turned one")
    equal((got[3]["floor"], got[3]["ceiling"], got[3]["revision"]), (None, None, None), "below")
    near_all(got[4]["floor"]["point"], [105, 3, 10], "a step up")
    near(got[4]["floor"]["distance"], 0.25, "a step up")
    far = touch([[105, 3, 30]], max_distance=19)[0]
    equal((far["status"], far["locale"], far["floor"]), ("too_far", "west", None), "too far")
    equal(touch([[105, 3, 30]], max_distance=21)[0]["status"], "ok", "not too far")
    lifted = touch([[105, 3, 9]], reach_up=2)[0]
    near_all(lifted["floor"]["point"], [105, 3, 10], "reached from below")
    for hint in ("west", "east"):
        item = touch([[110, 5, 11]], hints=[hint])[0]
        equal((item["locale"], item["status"]), (hint, "ok"), "a border belongs to both")
    for point in ([105, 3, 11], [110, 5, 11], [99, 3, 11]):
        equal(touch([point], hints=["atlantis"]), [{**touch([point])[0], "hint": "unknown"}],
              f"a hint of no locale, {point}")
    foot = [[105, 3, 11], [106, 3, 11], [105, 4, 11]]
    body = {"footprints": [foot, foot], "hints": ["atlantis", None]}
    first, second = daemon.ok("POST", "/v1/contact", body)["results"]
    equal(first, {**second, "hint": "unknown"}, "a footprint's hint of no locale")
    for hint in ("", "no id at all, ä", "x" * 65):
        problem(daemon.post("/v1/contact", {"points": [[105, 3, 11]], "hints": [hint]}), 400,
                pointer="/hints/0")
    item = touch([[110 + 5e-7, 5, 11]], hints=["west"])[0]
    equal((item["locale"], item["status"]), ("west", "ok"), "a hair over the border the hint holds")
    near_all(item["floor"]["point"], [110, 5, 10], "its floor", 3e-8, 100)
    placed = touch([[105, 3, 2], [105, 3, 30]], clearance=1.5)
    near_all(placed[0]["placed"], [105, 3, 11.5], "raised from below")
    equal(placed[1]["placed"], [105, 3, 30], "left where it is high enough")
    near_all(touch([[105, 3, 30]], clearance=1.5, clearance_mode="exact")[0]["placed"],
             [105, 3, 11.5], "exact")


@test("over a hole between the polygons of a locale a point is in none")
def _():
    put_locale(daemon, "ring", placement={"translation": [0, 400, 0], "rotation": [0, 0, 0, 1]})
    put_mesh(daemon, "ring", [rectangle(0, 0, 9, 3, 0), rectangle(0, 6, 9, 9, 0)])
    item = touch([[4.5, 404.5, 1]])[0]
    equal((item["status"], item["locale"], item["revision"]), ("outside", None, None), "hole")


@test("gravity is the locale's own, turned into the world")
def _():
    put_locale(daemon, "sideways", gravity=[0, 0, -1],
               placement={"translation": [0, 0, 500], "rotation": quaternion((0, 1, 0), 90)})
    put_mesh(daemon, "sideways", [rectangle(0, 0, 8, 8, 0)])
    # the floor's plane is x = 0 of the world now, its up is +X
    item = touch([[3, 4, 496]], clearance=1, clearance_mode="exact")[0]
    equal((item["locale"], item["status"]), ("sideways", "ok"), "found")
    near_all(item["floor"]["point"], [0, 4, 496], "along X")
    near_all(item["floor"]["normal"], [1, 0, 0], "normal")
    near(item["floor"]["distance"], 3, "distance")
    near(item["floor"]["slope_deg"], 0, "slope")
    near_all(item["placed"], [1, 4, 496], "placed along X")


@test("a car across a border stands on both locales")
def _():
    feet = [[108, 4, 11], [112, 4, 11], [112, 6, 11], [108, 6, 11]]
    answer = daemon.ok("POST", "/v1/contact", {"footprints": [feet, [[0, 0, 0]] * 3],
                                               "hints": ["west", None]})["results"]
    equal(answer[0]["status"], "ok", "status")
    equal(answer[0]["locales"], ["west", "east", "east", "west"], "locales")
    at = {name: daemon.ok("GET", f"/v1/locales/{name}")["revision"] for name in ("west", "east")}
    equal(answer[0]["revisions"], [at[name] for name in answer[0]["locales"]], "revisions")
    equal((answer[0]["locale"], answer[0]["revision"]), (None, None), "in several")
    both = daemon.ok("POST", "/v1/contact", {"footprints": [feet[1:3] + [[113, 5, 11]]]})
    item = both["results"][0]
    equal((item["locale"], item["revision"], item["locales"]), ("east", at["east"], ["east"] * 3),
          "in one")
    near_all(answer[0]["plane"]["normal"], [0, 0, 1], "normal")
    near(answer[0]["plane"]["d"], -10, "d")
    near_all(answer[0]["points"][1], [112, 4, 10], "a wheel")
    equal((answer[1]["status"], answer[1]["plane"], answer[1]["points"], answer[1]["locales"]),
          ("outside", None, [None] * 3, [None] * 3), "nowhere")


# ---- random -------------------------------------------------------------------------------------


def random_world(random, count=12):
    """name -> (World, placement as the daemon tells it), turned every way and overlapping."""
    made = {}
    for i in range(count):
        gravity = random.choice(((0, 0, -1), (0, 0, -1), (0.6, 0, -0.8), (0, 1, 0)))
        up = tuple(-v for v in gravity)
        layers = [MeshLayer(random_soup(random, 60, up=up), name="low"),
                  MeshLayer(random_soup(random, 30, up=up), CEILING, "roof")]
        fields = []
        if i % 3 == 0:
            heights = [[random.uniform(-4, 4) if random.random() > 0.05 else math.nan
                        for _ in range(12)] for _ in range(9)]
            fields = [("ground", Terrain(12, 9, heights, (4.0, 5.0), (-20.0, -20.0),
                                         random.choice(("anti", "main", "alternating"))))]
            layers = layers[:1] if i % 2 else []
        world = World(layers, fields, gravity=gravity, open_sky=bool(i % 4))
        placement = {"translation": [FAR + random.uniform(-45, 45) for _ in range(3)],
                     "rotation": quaternion([random.gauss(0, 1) for _ in range(3)],
                                            random.uniform(0, 360))}
        name = f"random-{i:02}"
        put_world(daemon, name, world, placement=placement)
        if fields:
            triangulation = fields[0][1].triangulation
            manifest = {"placement": placement, "gravity": list(gravity),
                        "open_sky": world.open_sky, "triangulation": triangulation}
            daemon.ok("PUT", f"/v1/locales/{name}", manifest)
        made[name] = world, daemon.ok("GET", f"/v1/locales/{name}")
    return made


made = {}


@test("a random world of twelve turned locales is made")
def _():
    made.update(random_world(rng("random world")))
    equal(len(made), 12, "locales")


def place(locale):
    return locale["placement"]


def box_stretch(locale, ray):
    """(t_enter, t_leave) of a ray in a locale's bounds, or None; by corners of slabs in float64."""
    origin, direction = to_local(place(locale), ray["origin"]), turn_back(
        place(locale)["rotation"], ray["direction"])
    enter, leave = 0.0, ray.get("t_max", math.inf)
    for o, d, low, high in zip(origin, direction, locale["bounds"]["min"],
                               locale["bounds"]["max"]):
        if abs(d) < 1e-300:
            if not low <= o <= high:
                return None
            continue
        a, b = sorted(((low - o) / d, (high - o) / d))
        enter, leave = max(enter, a), min(leave, b)
    return (enter, leave) if enter <= leave else None


def expected_ray(ray):
    """(t, name, meeting) of the nearest meeting over all locales, or None; "unsure" at an edge."""
    best = None
    for name, (world, locale) in sorted(made.items()):
        origin = to_local(place(locale), ray["origin"])
        direction = turn_back(place(locale)["rotation"], ray["direction"])
        for meeting in world.meetings(tuple(origin), tuple(direction), 0.0,
                                      ray.get("t_max", math.inf), 1e-6):
            if best and meeting.t > best[0] + 1e-6:
                break
            if abs(meeting.inner) < 1e-5 or meeting.sine < 1e-4 or abs(meeting.t) < 1e-6:
                return "unsure"
            if best is None or meeting.t < best[0]:
                best = (meeting.t, name, meeting)
    return best


def random_rays(random, count):
    rays = []
    for _ in range(count):
        origin = [FAR + random.uniform(-120, 120) for _ in range(3)]
        if random.random() < 0.7:
            target = [FAR + random.uniform(-40, 40) for _ in range(3)]
            direction = [b - a for a, b in zip(origin, target)]
        else:
            direction = [random.gauss(0, 1) for _ in range(3)]
        size = random.choice((1.0, 1.0, 0.01, 100.0))
        ray = {"origin": origin, "direction": [v * size for v in direction]}
        if random.random() < 0.3:
            ray["t_max"] = random.uniform(0, 2) / size
        rays.append(ray)
    return rays


@test("rays over all locales agree with brute force over every triangle of the world")
def _():
    rays = random_rays(rng("world rays"), 500)
    hits = judged = beyond = 0
    for ray, item in zip(rays, cast(rays)):
        want = expected_ray(ray)
        if want == "unsure":
            continue
        judged += 1
        if want is None:
            equal((item["status"], item["locale"]), ("miss", None), f"{ray}")
        else:
            hits += 1
            t, name, meeting = want
            equal((item["status"], item["locale"], item["layer"]), ("hit", name, meeting.layer),
                  f"{ray}")
            locale = made[name][1]
            near(item["t"], t, f"t of {ray}", 1e-7)
            near_all(item["point"], [a + t * b for a, b in zip(ray["origin"], ray["direction"])],
                     f"point of {ray}", 1e-9, FAR)
            normal = turn(place(locale)["rotation"], meeting.normal)
            sign = 1 if sum(a * b for a, b in zip(normal, item["normal"])) > 0 else -1
            near_all(item["normal"], [sign * v for v in normal], f"normal of {ray}", 1e-6)
            equal(item["polygon"], meeting.polygon, f"polygon of {ray}")
            equal(item["cell"], meeting.cell, f"cell of {ray}")
            equal(item["revision"], locale["revision"], "revision")
            beyond += item["crossed_count"] > 1
    check(judged > 350 and hits > 100 and beyond > 30,
          f"{judged} judged, {hits} hits, {beyond} through several locales")


@test("crossed is the stretch of each ray in each locale's bounds, cut at the hit, in order")
def _():
    rays = random_rays(rng("crossed"), 300)
    several = 0
    for ray, item in zip(rays, cast(rays)):
        end = item["t"] if item["status"] == "hit" else ray.get("t_max", math.inf)
        want = []
        for name, (_, locale) in sorted(made.items()):
            stretch = box_stretch(locale, ray)
            if stretch and stretch[0] <= end:
                want.append((stretch[0], name, min(stretch[1], end)))
        want.sort()
        got = [(c["t_enter"], c["locale"], c["t_leave"]) for c in item["crossed"]]
        equal([name for _, name, _ in got], [name for _, name, _ in want], f"{ray}")
        equal(item["crossed_count"], len(want), "crossed_count")
        for (a, _, b), (c, _, d) in zip(got, want):
            near(a, c, f"t_enter of {ray}", 1e-8)
            near(b, d, f"t_leave of {ray}", 1e-8)
        if item["locale"]:
            check(item["locale"] in [name for _, name, _ in got], f"hit in no crossed one: {item}")
        several += len(got) > 2
    check(several > 30, f"{several} rays crossed more than two")


@test("a hit has the t that the locale itself answers for the turned ray")
def _():
    rays = random_rays(rng("own t"), 120)
    same = 0
    for ray, item in zip(rays, cast(rays)):
        if item["status"] != "hit":
            continue
        locale = made[item["locale"]][1]
        turned = {**ray, "origin": to_local(place(locale), ray["origin"]),
                  "direction": turn_back(place(locale)["rotation"], ray["direction"])}
        own = daemon.ok("POST", f"/v1/locales/{item['locale']}/ray", {"rays": [turned]})
        near(own["results"][0]["t"], item["t"], f"t of {ray}", 1e-9)
        same += 1
    check(same > 20, f"{same} hits")


def contacts_agree(reach):
    random = rng(f"world contacts {reach}")
    points, hints = [], []
    for _ in range(250):
        world, locale = made[random.choice(sorted(made))]
        local = soup_place(random, up=tuple(-v for v in world.gravity))
        points.append(to_world(place(locale), local))
        hints.append(random.choice((*sorted(made), None, None)))
    located = daemon.ok("POST", "/v1/locate", {"points": points, "hints": hints})["results"]
    judged = 0
    lifted = 0
    for point, hint, where, item in zip(points, hints, located,
                                        touch(points, hints=hints, reach_up=reach)):
        name = where["locale"]
        if name:
            equal(item["locale"], name, f"{point}: as locate says")
        candidates = [name] if name else ([hint] if hint else []) + sorted(made)
        want, unsure = (None, "outside", None, None), False
        for candidate in candidates:
            world, locale = made[candidate]
            local = to_local(place(locale), point)
            column = world.column(local, 1e-5)
            if any(abs(m.inner) < 1e-5 or abs(m.t) < 1e-5 or abs(m.t - reach) < 1e-5
                   for m in column):
                unsure = True
                break
            floor, ceiling = world.floor_and_ceiling(column, reach)
            roof = floor and any(m.t > floor.t for m in column)
            if floor and (name or floor.t > 0 and (world.open_sky or roof)):
                want = (candidate, "ok", floor, ceiling)
                break
        if unsure:
            continue
        judged += 1
        lifted += not name and want[0] is not None
        name, status, floor, ceiling = want
        equal((item["locale"], item["status"]), (name, status), f"{point}, hint {hint}")
        for side, meeting in (("floor", floor), ("ceiling", ceiling)):
            got = item[side]
            equal(got is None, meeting is None, f"{side} of {point}")
            if got:
                near_all(got["point"], to_world(place(made[name][1]), meeting.point),
                         f"{side} of {point}", 1e-9, FAR)
                near(got["distance"], abs(meeting.t), "distance", 1e-6)
                near_all(got["normal"], turn(place(made[name][1])["rotation"], meeting.normal),
                         "normal", 1e-6)
                near(got["slope_deg"], made[name][0].slope_deg(meeting.normal), "slope", 1e-4, 10)
                equal(got["layer"], meeting.layer, "layer")
    check(judged > 150 and lifted > reach / 4, f"{judged} judged, {lifted} of them by what is above")


for reach_ in (0.5, 12):
    case(f"contacts of random points with reach_up {reach_} agree with brute force, in the locale "
         "that locate names or that has a floor above", contacts_agree, reach_)


@test("a batch gives what its items asked one by one would give")
def _():
    random = rng("one by one")
    rays = random_rays(random, 60)
    for ray, item in zip(rays, cast(rays)):
        equal(cast([ray])[0], item, f"{ray}")
    points = [[FAR + random.uniform(-60, 60) for _ in range(3)] for _ in range(60)]
    hints = [random.choice((*sorted(made), None)) for _ in points]
    for point, hint, item in zip(points, hints, touch(points, hints=hints, reach_up=3)):
        equal(touch([point], hints=[hint], reach_up=3)[0], item, f"{point}")


# ---- bounds and refusals ------------------------------------------------------------------------


@test("more locales than are told are counted, the first of them by t_enter are told")
def _():
    limit = daemon.ok("GET", "/v1/limits")["crossed_locales_max"]
    for i in range(limit + 6):
        put_locale(daemon, f"row-{i:03}", placement={"translation": [10 * i, -5000, 0],
                                                     "rotation": [0, 0, 0, 1]})
        put_mesh(daemon, f"row-{i:03}", [rectangle(0, 0, 10, 10, 0), rectangle(0, 0, 5, 5, 4)])
    item = cast([{"origin": [-5, -4993, 2], "direction": [1, 0, 0]}])[0]
    equal((item["status"], item["crossed_count"], len(item["crossed"])), ("miss", limit + 6, limit),
          "counted")
    equal([c["locale"] for c in item["crossed"]], [f"row-{i:03}" for i in range(limit)], "in order")
    back = cast([{"origin": [-5, -4993, 2], "direction": [1, 0, 0], "t_max": 32}])[0]
    equal(back["crossed_count"], 3, "up to t_max")
    for i in range(limit + 6):
        daemon.ok("DELETE", f"/v1/locales/row-{i:03}", status=204)


@test("impossible rays are items, and numbers at the end of what a double holds do no harm")
def _():
    got = cast([{"origin": [0, 0, 0], "direction": [0, 0, 0]},
                {"origin": [0, 0, 0], "direction": [0, 0, -1], "t_max": -1},
                {"origin": [1e308, -1e308, 1e308], "direction": [1e308, 1e308, 1e308]},
                {"origin": [105, 5, 1e300], "direction": [0, 0, -1e300]},
                {"origin": [105, 5, 50], "direction": [0, 0, -1e-300]},
                {"origin": [105, 5, 50], "direction": [0, 0, -5e-324]},
                {"origin": [105, 5, 50], "direction": [0, 0, -1], "t_max": 0}])
    equal([i["status"] for i in got[:2]], ["invalid", "invalid"], "invalid")
    check("zero" in got[0]["detail"] and "negative" in got[1]["detail"], f"{got[:2]}")
    equal([got[2]["status"], got[5]["status"]], ["invalid"] * 2, "numbers beyond 1e307, or denormal")
    equal((got[4]["status"], got[4]["locale"]), ("hit", "west"), "a direction of 1e-300 m")
    equal(got[6]["status"], "miss", "no way at all")
    far = touch([[1e308, 1e308, -1e308], [-1e308, 0, 0], [5e-324, 0, 0]], clearance=1)
    equal([i["status"] for i in far], ["outside"] * 3, "contacts of the end of the world")


REFUSED = [
    ("ray", "no rays", {}, 400, "/rays"),
    ("ray", "an empty batch", {"rays": []}, 400, "/rays"),
    ("ray", "an origin of two numbers", {"rays": [{"origin": [1, 2], "direction": [0, 0, 1]}]}, 400,
     "/rays/0/origin"),
    ("ray", "a mode that is none", {"rays": [{"origin": [1, 2, 3], "direction": [0, 0, 1]}],
                                    "mode": "far"}, 400, "/mode"),
    ("ray", "a layer, which belongs to a locale",
     {"rays": [{"origin": [1, 2, 3], "direction": [0, 0, 1]}], "layer": "mesh"}, 400, "/layer"),
    ("contact", "neither points nor footprints", {}, 400, "/points"),
    ("contact", "both", {"points": [[1, 2, 3]], "footprints": [[[1, 2, 3]] * 3]}, 400,
     "/footprints"),
    ("contact", "fewer hints than points", {"points": [[1, 2, 3]] * 2, "hints": ["west"]}, 400,
     "/hints"),
    ("contact", "a hint that is a number", {"points": [[1, 2, 3]], "hints": [7]}, 400, "/hints/0"),
    ("contact", "a mode of no clearance", {"points": [[1, 2, 3]], "clearance_mode": "exact"}, 400,
     "/clearance_mode"),
    ("contact", "a negative reach", {"points": [[1, 2, 3]], "reach_up": -1}, 400, "/reach_up"),
    ("contact", "a footprint of two", {"footprints": [[[1, 2, 3]] * 2]}, 400, "/footprints/0"),
    ("contact", "a footprint with a clearance",
     {"footprints": [[[1, 2, 3]] * 3], "clearance": 1}, 400, "/clearance"),
    ("contact", "10,001 points", {"points": [[1, 2, 3]] * 10001}, 413, "/points"),
    ("ray", "10,001 rays", {"rays": [{"origin": [1, 2, 3], "direction": [0, 0, 1]}] * 10001}, 413,
     "/rays"),
]


def refused(call, body, status, pointer):
    problem(daemon.post(f"/v1/{call}", body), status, pointer=pointer)


for call_, what_, body_, status_, pointer_ in REFUSED:
    case(f"{call_}: {what_}: {status_}, and named", refused, call_, body_, status_, pointer_)


@test("POST alone, JSON alone, no unknown query")
def _():
    for call in ("ray", "contact"):
        answer = daemon.get(f"/v1/{call}")
        problem(answer, 405)
        problem(daemon.post(f"/v1/{call}", b"\0" * 56, media="application/vnd.kota.f64"), 415)
        problem(daemon.post(f"/v1/{call}?colour=1", {"points": [[1, 2, 3]]}), 400, "colour")


run(daemon.stop)
