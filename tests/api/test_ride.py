"""A second walk through the demo world: over the pond by ferry, around the small planet, in and
out of the sun. Each step asks what a game would ask; `contact`, `transform` and `lit` alone tell
the avatar where it is. The lines of the story are printed as they come, after "# | ".
"""
import math
import os
import shutil
import tempfile
import time

import rides
from daemon import Daemon
from oracle import add, cross, dot, scale, sub, unit
from rides import GARDEN, PLANET, SUN, contact, ferry_move, lit, on_ferry
from tap import check, equal, near, near_all, run, test

TICK_S = 0.02
EXACT_M = 1e-6  # what "on it" means

world_folder = tempfile.mkdtemp(prefix="kota-ride-")
daemon = None


def say(text):
    print("# | " + text)


def plain(value):
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def short(values):
    return "(" + ", ".join(map(plain, values)) + ")"


@test("the demo world has a ferry on the garden's pond and a small planet with a sky")
def _():
    global daemon
    folder = os.path.join(world_folder, "world")
    rides.make_world(folder)
    daemon = Daemon("--world", folder)
    layers = {layer["id"]: layer for layer in daemon.ok("GET", PLANET)["layers"]}
    equal({name: (layer["frame"], layer["gravity"], layer["role"])
           for name, layer in layers.items()},
          {"ground": ("spherical", "in", "ground"), "trees": ("spherical", "in", "ground"),
           "sky": ("spherical", "in", "ceiling")}, "the planet's layers")
    garden = [layer["id"] for layer in daemon.ok("GET", GARDEN)["layers"]]
    equal(garden, ["ground", "ferry"], "the garden's layers")


# ---- the ferry ----------------------------------------------------------------------------------


def floor_of(place):
    return contact(daemon, GARDEN, place, reach_up=0.3)["floor"]


@test("the ferry lies at the far bank, and where the avatar waits is the pond")
def _():
    equal(floor_of((40, 80, 5))["layer"], "ferry", "its deck")
    equal(contact(daemon, GARDEN, (70, 80, 6))["status"], "hole", "the pond")
    ferry_move(daemon, rides.FERRY_EAST)
    floor = floor_of((70, 80, 5.2))
    equal((floor["layer"], floor["velocity"]), ("ferry", [0, 0, 0]), "it has come, and lies still")
    near_all(floor["point"], [70, 80, 5], "deck")
    equal(contact(daemon, GARDEN, (40, 80, 6))["status"], "hole", "where it was")
    for x, layer in ((72.5, "ground"), (71.5, "ferry")):
        floor = floor_of((x, 80, 5))
        equal(floor["layer"], layer, f"at x {x}")
        near(floor["point"][2], 5, "a step without a step", 1e-3, 10)
    say("garden (71.5, 80, 5): the ferry has come; from the bank onto its deck, floor 5 (ferry)")


def velocity_of_pose(place, middle, before, seconds):
    """What a point of the deck does between two poses, by the poses alone: the mean over them."""
    (x1, y1), yaw1 = middle
    (x0, y0), yaw0 = before
    spin = math.radians(yaw1 - yaw0) / seconds
    # the layer's own origin goes as its translation; the rest is turned about it
    t1 = rides.ferry_pose((x1, y1), yaw1)["translation"]
    t0 = rides.ferry_pose((x0, y0), yaw0)["translation"]
    return ((t1[0] - t0[0]) / seconds - spin * (place[1] - t1[1]),
            (t1[1] - t0[1]) / seconds + spin * (place[0] - t1[0]), 0.0)


@test("contact tells the ferry and its velocity on the way, and who is carried by them stays on deck")
def _():
    seat = (2.0, 1.25)
    before = rides.crossing(0.0)
    feet = on_ferry(seat, *before)
    ferry_move(daemon, *before)
    time.sleep(0.3)  # it has lain still: the first velocity is of the first move alone
    ratios, told, ticks = [], 0, 60
    for tick in range(1, ticks + 1):
        started = time.monotonic()
        now = rides.crossing(tick / ticks)
        ferry_move(daemon, *now)
        # the pose is published: the game puts whoever stands on the layer where the layer went
        floor = floor_of(feet)
        if floor and floor["layer"] == "ferry" and any(floor["velocity"]):
            told += 1
            want = velocity_of_pose(floor["point"], now, before, 1.0)
            got = floor["velocity"]
            # the daemon's clock says how long the move took; the way is the poses'
            speed = math.hypot(*want)
            ratios.append(math.hypot(*got) / speed)
            off = math.dist(scale(got, 1 / math.hypot(*got)), scale(want, 1 / speed))
            check(off < 1e-9, f"at {tick} the deck goes {got}, not along {want}")
        feet = on_ferry(seat, *now)
        floor = floor_of(feet)
        equal(floor["layer"], "ferry", f"under the feet at {tick}")
        check(math.dist(floor["point"], feet) < EXACT_M, f"{floor['point']} is not {feet}")
        before = now
        # poses that come within 2 ms count as one
        time.sleep(max(0.005, TICK_S - (time.monotonic() - started)))
        if tick % 20 == 0:
            say(f"garden {short(feet)}: on the ferry, turned by {plain(now[1])} degrees")
    check(told > ticks / 2, f"{told} of {ticks} contacts told a velocity")
    slow = sorted(1 / r for r in ratios)[len(ratios) // 2]
    check(TICK_S / 2 < slow < 1, f"a move took {slow} s by the velocities")


@test("velocity times the time between two moves is the way of the deck")
def _():
    ferry_move(daemon, rides.FERRY_EAST)
    time.sleep(0.3)
    place, feet = rides.FERRY_EAST[0], [70.0, 81.0, 5.0]
    travelled = 0.0
    for _ in range(40):
        time.sleep(TICK_S)
        place -= 0.25
        ferry_move(daemon, (place, 80.0))
        floor = floor_of((feet[0] - 0.25, feet[1], feet[2]))
        speed = floor["velocity"][0]
        equal(floor["velocity"][1:], [0, 0], "straight on")
        if speed:
            # 0.25 m in the time that the daemon saw between the poses
            travelled += 1
            check(-0.25 / 0.002 <= speed < 0, f"speed {speed}")
            seconds = 0.25 / -speed
            feet[0] += speed * seconds
        else:
            feet[0] -= 0.25  # longer than 250 ms: it lay still in between
        floor = floor_of(feet)
        equal(floor["layer"], "ferry", "on deck")
        near(feet[0], place + 2, "beside the middle of the deck", EXACT_M)
        check(math.dist(floor["point"], feet) < EXACT_M, f"{floor['point']} is not {feet}")
    check(travelled > 10, f"{travelled} velocities")


@test("under the ferry's roof there is shadow, and it travels with the ferry")
def _():
    light = {"direction": [0.1, 0.2, -1]}
    for share in (0.0, 0.5, 1.0):
        middle, yaw = rides.crossing(share)
        ferry_move(daemon, middle, yaw)
        under, aside = on_ferry((0, 0), middle, yaw), on_ferry((3.5, 0), middle, yaw)
        first, second = lit(daemon, GARDEN, [under, aside], light)
        equal((first["lit"], second["lit"]), (False, True), f"at {middle}")
        equal(first["occluder"]["layer"], "ferry", "what stands between")
        near(first["occluder"]["point"][2], rides.FERRY_DECK_Z + 2.75, "the roof", 1e-9, 10)
        ceiling = contact(daemon, GARDEN, under)["ceiling"]
        equal(ceiling["layer"], "ferry", "the ceiling over it")
        near(ceiling["distance"], 2.75, "the roof over it")
    say("garden (40, 80, 5): under the ferry's roof lit says no, its occluder is the ferry")


@test("it lands on the other bank")
def _():
    ferry_move(daemon, *rides.crossing(1.0))
    for x, layer in ((36.5, "ferry"), (35.5, "ground")):
        floor = floor_of((x, 80, 5))
        equal(floor["layer"], layer, f"at x {x}")
        near(floor["point"][2], 5, "a step without a step", 1e-3, 10)
    equal(contact(daemon, GARDEN, (70, 80, 6))["status"], "hole", "the pond behind it")
    say("garden (35.5, 80, 5): ashore on the other side, floor 5 (ground)")


# ---- the planet ---------------------------------------------------------------------------------


def judge_walk(walk, what):
    points = walk.points()
    check(len(points) > 600, f"{what}: {len(points)} steps")
    check(math.dist(points[-1], points[0]) < EXACT_M, f"{what}: ends at {points[-1]}")
    normal = unit(cross(walk.start, walk.heading))
    swept = 0.0
    for a, b, floor in zip(points, points[1:], walk.floors[1:]):
        check(math.dist(a, b) < 1.5, f"{what}: from {a} to {b}")
        check(abs(dot(b, normal)) < EXACT_M, f"{what}: {b} is beside the way")
        up = unit(b)
        check(dot(floor["normal"], up) > 0.5, f"{what}: the floor at {b} is too steep")
        equal(floor["layer"], "ground", f"{what}: floor at {b}")
        swept += math.acos(min(1.0, dot(unit(a), up)))
    near(swept, 2 * math.pi, f"{what}: the angle that was walked", 1e-6)
    latitudes = [math.degrees(math.asin(p[2] / math.dist(p, (0, 0, 0)))) for p in points]
    longitudes = [math.degrees(math.atan2(p[1], p[0])) for p in points]
    return latitudes, longitudes


def judge_light(walk, what):
    """Each answer of lit on the way is that of a ray to the sun."""
    asked = []
    for point in walk.points():
        way = unit(sub(SUN, point))
        near_m = 1e-6 * max(1.0, *map(abs, point))
        far = math.dist(SUN, point) - near_m - 1e-6 * max(1.0, *map(abs, SUN))
        asked.append({"origin": list(add(point, scale(way, near_m))), "direction": list(way),
                      "t_max": far})
    hits = daemon.ok("POST", PLANET + "/ray", {"rays": asked})["results"]
    for point, shadow, hit in zip(walk.points(), walk.shadows, hits):
        equal(shadow is None, hit["status"] == "miss", f"{what}: lit at {point}")
        if shadow:
            equal((shadow["layer"], shadow["polygon"]), (hit["layer"], hit["polygon"]),
                  f"{what}: what shadows {point}")
            near_all(shadow["point"], hit["point"], f"{what}: where it does", 1e-9, 100)


def tell_light(walk):
    before = "nothing yet"
    for floor, shadow in zip(walk.floors, walk.shadows):
        layer = shadow["layer"] if shadow else None
        if layer != before:
            before = layer
            say(f"planet {short(floor['point'])}: "
                + (f"in shadow, {layer} is before the sun" if layer else "in the sun"))


walks = {}


@test("it walks around the planet over both poles, along ±180 degrees, and comes back")
def _():
    say("planet: over both poles, by contact alone")
    walk = walks["poles"] = rides.walk_around(daemon, *rides.MERIDIAN)
    latitudes, longitudes = judge_walk(walk, "poles")
    check(max(latitudes) > 89.5 and min(latitudes) < -89.5, "it was at both poles")
    check(sum(abs(abs(l) - 180) < 1e-6 for l in longitudes) > 300, "along the seam")
    judge_light(walk, "poles")
    tell_light(walk)


@test("it walks around the planet along the equator, across ±180 degrees, and comes back")
def _():
    say("planet: along the equator")
    walk = walks["equator"] = rides.walk_around(daemon, *rides.EQUATOR)
    latitudes, longitudes = judge_walk(walk, "equator")
    check(max(map(abs, latitudes)) < 1e-6, "on the equator")
    equal(sum(abs(a - b) > 300 for a, b in zip(longitudes, longitudes[1:])), 1, "seams crossed")
    judge_light(walk, "equator")
    tell_light(walk)


@test("on the way lit tells day, night and the shadow of the tower")
def _():
    for what, walk in walks.items():
        layers = {shadow["layer"] if shadow else None for shadow in walk.shadows}
        check({None, "ground"} <= layers, f"{what}: no day or no night: {layers}")
        check("sky" not in layers, "the sun stands within the sky")
        for point, shadow in zip(walk.points(), walk.shadows):
            if dot(unit(point), unit(sub(SUN, point))) < -0.15:
                check(shadow, f"{what}: sun at {point}, where it is below the horizon")
    walk = walks["equator"]
    of_tower = [i for i, shadow in enumerate(walk.shadows) if shadow and shadow["layer"] == "trees"
                and math.dist(unit(tuple(shadow["point"])), rides.TOWER) < 0.05]
    check(len(of_tower) > 5, f"{len(of_tower)} steps in the shadow of the tower")
    equal(of_tower, list(range(of_tower[0], of_tower[-1] + 1)), "one strip")
    check(walk.shadows[of_tower[0] - 1] is None, "sun before it")


@test("from the sky's inside the ceiling is the sky; far from the planet is nobody's ground")
def _():
    item = contact(daemon, PLANET, (0, 0, 100))
    equal((item["floor"]["layer"], item["ceiling"]["layer"]), ("ground", "sky"), "layers")
    placed = (6600.0, -1400.0, 600.0)
    asked = [list(add(placed, (0, 0, z))) for z in (100, -100, 385, 401, 2000)]
    found = daemon.ok("POST", "/v1/locate", {"points": asked, "hints": [None] * 5})["results"]
    equal([item["locale"] for item in found], ["planet", "planet", "planet", None, None], "locate")


def finish():
    try:
        if daemon:
            daemon.stop()
    finally:
        shutil.rmtree(world_folder, ignore_errors=True)


run(finish)
