"""What an avatar of the demo world does beyond walking on the flat: a ferry and a small planet.

Both are asked of a daemon that holds the demo world, as a game would: contact for the floor, lit
for light and shadow, PUT …/transform for the ferry. Places are those of docs/demo-world.md.
test_ride.py holds the answers against what is right, ride_picture.py draws them.
"""
import math
import os
import subprocess

from daemon import BIN_DIR, clean_environment
from oracle import add, cross, dot, scale, sub, unit
from tap import HANG_S, Failure

WORLDGEN = os.path.join(BIN_DIR, "kota-worldgen")
PLANET, GARDEN = "/v1/locales/planet", "/v1/locales/garden"
PLANET_RADIUS_M, SKY_M = 60.0, 400.0

SUN = scale(unit((0.72, 0.26, 0.64)), 300.0)  # it stands within the planet's sky
TOWER = unit((7.0, 10.0, 1.5))
MERIDIAN = ((1, 0, 0), (0, 0, 1))  # from here, that way: over both poles, along ±180 degrees
EQUATOR = ((1, 0, 0), (0, 1, 0))   # across ±180 degrees
STEP_M, REACH_UP_M, DROP_M = 0.5, 1.0, 1.5

FERRY_HOME, FERRY_DECK_Z = (40.0, 80.0), 5.0  # the middle of its deck, as its file says
FERRY_LENGTH_M, FERRY_WIDTH_M = 8.0, 6.0
FERRY_EAST, FERRY_WEST = (68.0, 80.0), (40.0, 80.0)  # docked; the garden's x runs to the west


def make_world(folder):
    """The demo world with small heightfields; its polygons are always the same."""
    if not os.path.exists(WORLDGEN):
        raise Failure(f"{WORLDGEN} has not been built")
    made = subprocess.run([WORLDGEN, "demo", folder, "--size", "128", "--threads", "1"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_S,
                          env=clean_environment(), check=False)
    if made.returncode:
        raise Failure(f"kota-worldgen: {made.stderr}")


def contact(daemon, locale, point, **named):
    return daemon.ok("POST", locale + "/contact", {"points": [list(point)], **named})["results"][0]


def lit(daemon, locale, points, light):
    answer = daemon.ok("POST", locale + "/lit", {"points": [list(p) for p in points], "light": light})
    return answer["results"]


# ---- the planet ---------------------------------------------------------------------------------


class Walk:
    """Around the planet: floors[i] under the feet, shadows[i] what keeps the sun off or None."""

    def __init__(self, start, heading):
        self.start, self.heading = start, heading
        self.floors, self.shadows = [], []

    def points(self):
        return [tuple(floor["point"]) for floor in self.floors]


def stand(daemon, place):
    """The contact of feet at a place; a Failure where there is no floor within a step."""
    found = contact(daemon, PLANET, place, reach_up=REACH_UP_M)
    floor = found["floor"]
    if floor is None or math.dist(floor["point"], place) > DROP_M:
        raise Failure(f"nothing to stand on at {place}: {found}")
    return floor


def walk_around(daemon, start, heading, step_m=STEP_M):
    """Straight on from over `start` until all the way round; nothing but contacts tells the way."""
    walk = Walk(unit(start), unit(heading))
    floor = contact(daemon, PLANET, scale(walk.start, 2 * PLANET_RADIUS_M))["floor"]
    turned = 0.0
    while True:
        place = tuple(floor["point"])
        walk.floors.append(floor)
        walk.shadows.append(lit(daemon, PLANET, [place], {"position": list(SUN)})[0]["occluder"])
        left = 2 * math.pi - turned
        if left <= 0:
            return walk
        up = unit(place)
        walk.heading = unit(sub(walk.heading, scale(up, dot(walk.heading, up))))
        far = math.sqrt(dot(place, place))
        length = min(step_m, far * math.tan(left)) if left < 0.1 else step_m
        floor = stand(daemon, add(place, scale(walk.heading, length)))
        there = unit(tuple(floor["point"]))
        swept = cross(up, there)
        turned += math.atan2(math.sqrt(dot(swept, swept)), dot(up, there))
        if left < 0.1 and length < step_m:
            turned = 2 * math.pi


# ---- the ferry ----------------------------------------------------------------------------------


def ferry_pose(middle, yaw_deg):
    """The pose that brings the middle of the deck there: it is turned about its file's origin."""
    c, s = math.cos(math.radians(yaw_deg)), math.sin(math.radians(yaw_deg))
    x, y = FERRY_HOME
    return {"translation": [middle[0] - (c * x - s * y), middle[1] - (s * x + c * y), 0],
            "yaw_deg": yaw_deg}


def ferry_move(daemon, middle, yaw_deg=0.0):
    return daemon.ok("PUT", GARDEN + "/layers/ferry/transform", ferry_pose(middle, yaw_deg))


def crossing(share):
    """Where the ferry is on its way: out of the east, turning round in the middle, to the west."""
    x = FERRY_EAST[0] + (FERRY_WEST[0] - FERRY_EAST[0]) * share
    return (x, 80.0), 180.0 * share * share * (3 - 2 * share)


def on_ferry(seat, middle, yaw_deg):
    """A place of the deck, metres from its middle along its own axes, in the garden's frame."""
    c, s = math.cos(math.radians(yaw_deg)), math.sin(math.radians(yaw_deg))
    return (middle[0] + c * seat[0] - s * seat[1], middle[1] + s * seat[0] + c * seat[1],
            FERRY_DECK_Z)
