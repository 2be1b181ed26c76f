"""Living bodies are hit where GET has them, with live=true only: rays, sight, picks, contact, contains.

By an oracle of their transformed triangles; what is below them is the live ground, which has tests
of its own (test_live.py). By the C engine.
"""
import random
import struct
import time

from daemon import F32, F64, check, equal, problem
from sand import CPU, RESTING, body, make, start, until
from solids import hits, triangles
from tap import HANG_S, near, run, test

daemon = start(*CPU, *RESTING, "--patches-coarse", "2")
LAND = "/v1/locales/land"
SEED = 11


def world():
    """Two patches at rest; {(patch, number): triangles} of their bodies, and the patches' places."""
    places = [make(daemon, "land", 10, 10, bodies=[body(10, 10, angular_velocity=[1, 2, 0])], seed=1),
              make(daemon, "land", 20, 20, seed=2, bodies=[
                  body(19, 19, position=[19.2, 19.2, 2]), body(21, 21, position=[21, 21, 3]),
                  body(position=[19.4, 19.5, 4.4])])]
    for place in places:
        until(daemon, place, "resting")
        while daemon.ok("GET", place)["revision"] is None:
            time.sleep(0.01)
    return bodies(places), places


def bodies(places):
    found = {}
    for place in places:
        patch = daemon.ok("GET", place)
        found.update({(patch["id"], one["body"]): triangles(one) for one in patch["bodies"]})
    return found


def aimed(rng, solids):
    """A ray at a body, from above."""
    to = [sum(c) / 3 + rng.uniform(-0.2, 0.2) for c in zip(*rng.choice(rng.choice(list(solids.values()))))]
    along = [rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(-2, -0.1)]
    return [t - 4 * d for t, d in zip(to, along)], along


def key_of(hit):
    check(("body" in hit) == (hit["layer"] is None), f"layer and body: {hit}")
    return (hit["body"]["patch"], hit["body"]["number"]) if hit.get("body") else hit["layer"]


@test("rays, sight and picks meet the triangles of living bodies, alone, in batches and in binary")
def _():
    solids, places = world()
    equal(len(solids), 4, "bodies")
    rng = random.Random(SEED)
    rays = [aimed(rng, solids) for _ in range(400)]
    items = [{"origin": o, "direction": d} for o, d in rays]
    live = daemon.ok("POST", LAND + "/ray?live=true", {"rays": items})
    ground = daemon.ok("POST", LAND + "/ray?live=true", {"rays": items, "layer": "ground"})
    settled = daemon.ok("POST", LAND + "/ray", {"rays": items})
    everything = daemon.ok("POST", LAND + "/ray?live=true", {"rays": items, "mode": "all"})
    binary = daemon.post(LAND + "/ray?live=true", struct.pack(
        f"<{7 * len(rays)}d", *(v for o, d in rays for v in (*o, *d, 1e9))), media=F64)
    sights = daemon.ok("POST", LAND + "/los?live=true", {"segments": [
        {"from": o, "to": [a + 8 * b for a, b in zip(o, d)]} for o, d in rays]})
    seen = set()
    for k, (o, d) in enumerate(rays):
        hit, below = live["results"][k], ground["results"][k]
        met = hits(solids, o, d)
        met = [(t, key) for t, key in met if below["t"] is None or t < below["t"]]
        want = met[0] if met else (below["t"], below["layer"])
        equal(key_of(hit), want[1], f"what ray {k} of seed {SEED} hits")
        if want[0] is not None:
            near(hit["t"], want[0], f"t of ray {k}", 1e-9)
            check(struct.unpack_from("<d", binary.body, 32 * k)[0] == hit["t"], f"binary ray {k}")
        seen.add(want[1])
        found = [(one["t"], key_of(one)) for one in everything["results"][k]["hits"]]
        for (t, key), (got, whose) in zip(met, found):
            equal(whose, key, f"one of all hits of ray {k}")
            near(got, t, f"one of all hits of ray {k}", 1e-9)
        equal(settled["results"][k]["layer"] in ("ground", None), True, "without live only ground")
        check("body" not in settled["results"][k], "a body without live")
        if met and 0.01 < met[0][0] < 7.99:
            check(not sights["results"][k]["visible"], f"sight {k}")
            near(sights["results"][k]["fraction"], met[0][0] / 8, f"sight {k}", 1e-9)
        if k % 20 == 0:
            single = daemon.ok("GET", f"{LAND}/ray?live=true&origin={','.join(map(repr, o))}"
                               f"&direction={','.join(map(repr, d))}")
            equal({name: single[name] for name in hit}, hit, "one of a batch")
    check(set(solids) <= seen, f"bodies that were hit: {seen}")
    equal(live["revision"], settled["revision"], "revision")
    for (patch, number), faces in solids.items():
        middle = [sum(p[i] for face in faces for p in face) / 36 for i in range(3)]
        camera = {"eye": [middle[0], middle[1] - 1, middle[2] + 9], "target": middle, "up": [0, 0, 1],
                  "fov_y_deg": 40}
        asked = {"camera": camera, "viewport": [101, 101], "pixel": [50.5, 50.5]}
        picked = daemon.ok("POST", LAND + "/pick?live=true", asked)["hit"]
        above = hits(solids, camera["eye"], [a - b for a, b in zip(middle, camera["eye"])])
        equal(key_of(picked), above[0][1], "picked")
        equal(daemon.ok("POST", LAND + "/pick", asked)["hit"]["layer"], "ground", "picked without live")
        region = daemon.ok("POST", LAND + "/pick?live=true", {
            "camera": camera, "viewport": [101, 101], "rectangle": [40, 40, 60, 60]})
        check({"patch": above[0][1][0], "number": above[0][1][1]} in
              [layer.get("body") for layer in region["layers"]], f"region: {region['layers']}")
    for place in places:
        daemon.ok("DELETE", place + "?discard=true")
    after = daemon.ok("POST", LAND + "/ray?live=true", {"rays": items})
    check(not any("body" in hit for hit in after["results"]), "a body of a patch that has ended")


@test("contact stands on living bodies and below them, under any of their poses")
def _():
    solids, places = world()
    rng = random.Random(SEED + 1)
    points = []
    for _ in range(400):
        corner = rng.choice(rng.choice(list(solids.values())))[0]
        points.append([corner[0] + rng.uniform(-0.7, 0.7), corner[1] + rng.uniform(-0.7, 0.7),
                       corner[2] + rng.uniform(-2, 3)])
    answers = daemon.ok("POST", LAND + "/contact?live=true", {"points": points})["results"]
    heights = daemon.ok("POST", LAND + "/height?live=true", {"points": [p[:2] for p in points]})["results"]
    binary = daemon.post(LAND + "/contact?live=true", struct.pack(
        f"<{3 * len(points)}d", *(v for p in points for v in p)), media=F64)
    settled = daemon.ok("POST", LAND + "/contact", {"points": points})["results"]
    inside = daemon.ok("POST", LAND + "/contains?live=true", {"points": points})["results"]
    on = under = 0
    for k, (point, answer) in enumerate(zip(points, answers)):
        lift = point[2] + 0.5
        levels = [(50 - t, key) for t, key in hits(solids, [*point[:2], 50], [0, 0, -1])]
        levels.append((heights[k]["height"], "ground"))
        floors = [level for level in levels if level[0] <= lift]
        ceilings = [level for level in levels if level[0] >= lift]
        equal(answer["status"], "ok" if floors else "below", f"status of {point}: {answer}")
        if floors:
            near(answer["floor"]["point"][2], max(floors)[0], f"floor of {point}", 1e-9)
            equal(key_of(answer["floor"]), max(floors, key=lambda level: level[0])[1], "whose floor")
            near(struct.unpack_from("<6d", binary.body, 48 * k)[0], max(floors)[0], "binary floor", 1e-9)
            on += answer["floor"]["layer"] is None
        if ceilings:
            near(answer["ceiling"]["point"][2], min(ceilings)[0], f"ceiling of {point}", 1e-9)
            under += answer["ceiling"]["layer"] is None
        above = [level for level in levels if level[0] <= point[2]]
        equal(inside[k]["status"], "inside" if above else "below", f"contains {point}")
        check(settled[k]["floor"] is None or settled[k]["floor"]["layer"] == "ground", "without live")
    check(on > 60 and under > 30, f"floors on bodies: {on}, ceilings: {under}")
    for place in places:
        daemon.ok("DELETE", place + "?discard=true")


@test("a body is hit where it is now: while it falls, when it is held, and not once it is removed")
def _():
    slow = start(*CPU, "--patch-pause-ms", "600000")
    try:
        place = make(slow, "land", bodies=[body(position=[16, 16, 12], velocity=[0, 0, 0],
                                                angular_velocity=[0.5, 1, 2])])
        down, compared, levels = "/v1/locales/land/ray?live=true&origin=16.1,16.1,40&direction=0,0,-1", 0, []
        deadline = time.monotonic() + HANG_S
        while (compared < 5 or min(levels) > 6) and time.monotonic() < deadline:
            before = slow.ok("GET", place)["bodies"][0]
            hit = slow.ok("GET", down)
            after = slow.ok("GET", place)["bodies"][0]
            if before != after:
                continue
            near(hit["t"], hits({1: triangles(before)}, [16.1, 16.1, 40], [0, 0, -1])[0][0],
                 f"t of {before}", 1e-9)
            equal(hit["body"], {"patch": 1, "number": 0}, "body")
            arm = [a - b for a, b in zip(hit["point"], before["position"])]
            w = before["angular_velocity"]
            turn = [w[1] * arm[2] - w[2] * arm[1], w[2] * arm[0] - w[0] * arm[2], w[0] * arm[1] - w[1] * arm[0]]
            for got, v, t in zip(hit["velocity"], before["velocity"], turn):
                near(got, v + t, "velocity there", 1e-5)
            levels.append(before["position"][2])
            compared += 1
        check(compared >= 5, f"only {compared} reports were compared")
        check(levels[0] > 11.9 and min(levels) < 6, f"it fell from {levels[0]} to {min(levels)}")
        equal(slow.ok("GET", down.replace("live=true", "live=true&layer=ground"))["layer"], "ground", "layer=")
        slow.ok("DELETE", place + "/bodies/0")
        equal(slow.ok("GET", down)["layer"], "ground", "once it is removed")
        problem(slow.get(down + "&layer="), 422, pointer="layer")
    finally:
        slow.kill()


try:
    run()
finally:
    daemon.kill()
