"""A walk through the demo world, by the questions that a game would ask.

An avatar crosses a bridge over a road, is stopped by walls, goes through a doorway and up the
stairs of a hall, leaves the village over its border with the garden, and ends at a pond.
Each step asks locate, where body and toe would be, with the locale it is in as a hint, and contact
for the floor under its feet. The lines of the story are printed as they come, after "# | ". Places
are those of docs/demo-world.md.
"""
import math
import os
import shutil
import struct
import subprocess
import tempfile

from daemon import BIN_DIR, F64, Daemon, clean_environment, problem
from tap import HANG_S, Failure, check, equal, near, near_all, run, test

WORLDGEN = os.path.join(BIN_DIR, "kota-worldgen")
STEP_M, TOE_M, CHEST_M, REACH_UP_M, DROP_M = 0.25, 0.25, 1.0, 0.3, 0.6
VILLAGE_AT = (4192.0, 2048.0, 64.0)

world_folder = tempfile.mkdtemp(prefix="kota-walk-")
daemon = None


def say(text):
    print("# | " + text)


def plain(value):
    return f"{value:.4f}".rstrip("0").rstrip(".")


def short(values):
    return "(" + ", ".join(map(plain, values)) + ")"


def world_of_village(x, y, z=0.0):
    return [a + b for a, b in zip(VILLAGE_AT, (x, y, z))]


def locate(points, hints=None):
    return daemon.ok("POST", "/v1/locate", {"points": points, "hints": hints or
                                            [None] * len(points)})["results"]


def contact(locale, point, **named):
    return daemon.ok("POST", f"/v1/locales/{locale}/contact",
                     {"points": [point], **named})["results"][0]


class Avatar:
    """Feet on the ground, in the world; `locale` is where the last answer put it."""

    def __init__(self, feet):
        self.feet = list(feet)
        item = locate([self.body(feet)])[0]
        check(item["locale"], f"nobody's ground at {feet}")
        self.locale, self.local = item["locale"], None
        self.floor = self.ceiling = None
        self.stand(item)

    @staticmethod
    def body(feet):
        return [feet[0], feet[1], feet[2] + CHEST_M]

    def stand(self, item):
        """Contact at the body's place; True where there is a floor within a step."""
        feet = list(item["point"])
        feet[2] -= CHEST_M
        found = contact(item["locale"], feet, reach_up=REACH_UP_M)
        floor = found["floor"]
        if floor is None or feet[2] - floor["point"][2] > DROP_M:
            return False
        self.feet[2] += floor["point"][2] - feet[2]
        self.locale, self.local = item["locale"], floor["point"]
        self.floor, self.ceiling = floor, found["ceiling"]
        return True

    def step(self, to):
        """One step towards a place of the world; None, or why it stopped."""
        dx, dy = to[0] - self.feet[0], to[1] - self.feet[1]
        far = (dx * dx + dy * dy) ** 0.5
        share = min(1.0, STEP_M / far)
        feet = [self.feet[0] + dx * share, self.feet[1] + dy * share, self.feet[2]]
        toe = [feet[0] + dx / far * TOE_M, feet[1] + dy / far * TOE_M, feet[2]]
        item, ahead = locate([self.body(feet), self.body(toe)], [self.locale] * 2)
        for found, place in ((item, feet), (ahead, toe)):
            if found["locale"] is None:
                return self.why(place)
        before = self.locale, self.feet
        self.feet = feet
        if not self.stand(item):
            self.locale, self.feet = before
            return self.why(feet)
        equal(item["changed"], item["locale"] != before[0], "changed")
        if item["changed"]:
            say(f"{before[0]} ends here: locate says {item['locale']}, at {short(self.local)} "
                "in its frame")
        return None

    def why(self, place):
        """The contact that stopped it, in the frame of the locale it is in."""
        local = [a + b - c for a, b, c in zip(place, self.local, self.feet)]
        if self.locale == "garden":  # turned by half a turn
            local[:2] = [2 * a - b for a, b in zip(self.local, local)][:2]
        return local, contact(self.locale, local, reach_up=REACH_UP_M)

    def walk(self, *places):
        """Over places of the village's frame; None, or why it stopped."""
        for place in places:
            to = world_of_village(*place)
            for _ in range(10000):
                if abs(to[0] - self.feet[0]) + abs(to[1] - self.feet[1]) < 1e-9:
                    break
                stopped = self.step(to)
                if stopped:
                    return stopped
            else:
                raise Failure(f"never at {place}")
        return None

    def tell(self, text):
        ceiling = f", ceiling {plain(self.ceiling['point'][2])} ({self.ceiling['layer']})" if (
            self.ceiling) else ""
        say(f"{self.locale} {short(self.local)}: {text}; floor {plain(self.floor['point'][2])} "
            f"({self.floor['layer']}){ceiling}")


@test("kota-worldgen makes the demo world, kotad loads it with a village and a garden")
def _():
    global daemon
    if not os.path.exists(WORLDGEN):
        raise Failure(f"{WORLDGEN} has not been built")
    folder = os.path.join(world_folder, "world")
    made = subprocess.run([WORLDGEN, "demo", folder, "--size", "128", "--threads", "1"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_S,
                          env=clean_environment(), check=False)
    equal(made.returncode, 0, f"kota-worldgen: {made.stderr}")
    daemon = Daemon("--world", folder)
    listed = daemon.ok("GET", "/v1/locales?layers=true")["locales"]
    ids = {locale["id"]: locale for locale in listed}
    check({"village", "garden"} <= set(ids), f"{sorted(ids)}")
    roles = {layer["id"]: (layer["kind"], layer["role"]) for layer in ids["village"]["layers"]}
    equal(roles, {"ground": ("mesh", "ground"), "bridge": ("mesh", "ground"),
                  "houses": ("mesh", "ground"), "ceiling": ("mesh", "ceiling")}, "layers")
    for layer in roles:
        stats = daemon.ok("GET", f"/v1/locales/village/layers/{layer}/stats")
        check(stats["polygons"] > 0, f"{stats}")


walker = None


def start_at(x, y):
    """A walker of its own, so that each part of the story can be told alone."""
    height = daemon.ok("GET", f"/v1/locales/village/height?x={x}&y={y}")["height"]
    return Avatar(world_of_village(x, y, height))


@test("it starts on the village's ground")
def _():
    global walker
    walker = start_at(64, 80)
    equal(walker.locale, "village", "locale")
    near_all(walker.local, [64, 80, 2.5], "place")
    walker.tell("the walk begins")


@test("it crosses the bridge over the road: two floors at one place")
def _():
    equal(walker.walk((100, 80)), None, "stopped")
    near_all(walker.local, [100, 80, 4], "on the bridge")
    equal(walker.floor["layer"], "bridge", "layer")
    walker.tell("on the bridge")
    below = contact("village", [100, 80, -1])
    near_all(below["floor"]["point"], [100, 80, -2.5], "the road")
    near_all(below["ceiling"]["point"], [100, 80, 2.5], "the arch")
    equal((below["floor"]["layer"], below["ceiling"]["layer"]), ("ground", "bridge"), "layers")
    say(f"village (100, 80, -1), a cart below at the same x, y: floor "
        f"{plain(below['floor']['point'][2])} ({below['floor']['layer']}), ceiling "
        f"{plain(below['ceiling']['point'][2])} ({below['ceiling']['layer']})")
    equal(walker.walk((112, 80), (124, 80)), None, "stopped")
    near_all(walker.local, [124, 80, 2.5], "over the bridge")
    walker.tell("over the road")


@test("under the bridge the road leads through, with the arch above")
def _():
    cart = Avatar(world_of_village(100, 64, -2.5))
    equal(cart.walk((100, 80)), None, "stopped")
    near_all(cart.local, [100, 80, -2.5], "on the road")
    near(cart.ceiling["point"][2], 2.5, "the arch")
    equal(cart.walk((100, 96)), None, "stopped")
    equal(cart.ceiling, None, "open sky again")
    stopped = Avatar(world_of_village(100, 79, -2.5)).walk((108, 79))
    check(stopped, "it went through the pier")
    check(104 < stopped[0][0] <= 104.5, f"stopped at {stopped[0]}, the pier begins at x 104")


@test("the hall's wall stops it, the doorway lets it in under the lintel")
def _():
    equal(walker.walk((134, 90)), None, "stopped")
    stopped = walker.walk((134, 104))
    check(stopped, "it went through the wall")
    place, found = stopped
    near(walker.local[1], 98 - TOE_M, "y", 1e-9, 100)
    check(98 <= place[1] < 98.5, f"in the wall: {place}")
    equal(found["floor"], None, "no floor in a wall")
    inside = daemon.ok("POST", "/v1/locales/village/contains",
                       {"points": [[134, 98.25, 3.5]]})["results"][0]
    equal((inside["status"], inside["floor"]), ("below", False), "contains")
    say(f"village {short(place)}: in the hall's wall there is no floor: it stays at "
        f"{short(walker.local)}")
    equal(walker.walk((140, 96), (140, 98.25)), None, "stopped")
    near_all([walker.floor["point"][2], walker.ceiling["point"][2]], [2.5, 5], "doorway")
    equal(walker.ceiling["layer"], "ceiling", "layer of the lintel")
    walker.tell("in the doorway")
    equal(walker.walk((140, 100)), None, "stopped")
    near_all([walker.floor["point"][2], walker.ceiling["point"][2]], [2.5, 5.25], "inside")
    walker.tell("in the hall")


@test("it climbs the stairs to the upper floor and comes down again")
def _():
    equal(walker.walk((136, 104), (136, 108.5)), None, "stopped")
    heights = []
    for i in range(13):
        equal(walker.walk((139.75 + i * 0.5, 108.5)), None, "stopped")
        heights.append(walker.local[2])
    equal(heights, sorted(heights), "it rises")
    near(heights[-1], 5.5, "upper floor")
    near(walker.ceiling["point"][2], 8.25, "its ceiling")
    walker.tell("up the stairs")
    below = contact("village", [*walker.local[:2], 3.0])
    near_all([below["floor"]["point"][2], below["ceiling"]["point"][2]], [2.5, 5.25],
             "the storey below")
    equal(walker.walk((139, 108.5), (136, 108.5), (136, 104), (140, 100), (140, 96)), None,
          "stopped on the way down")
    near(walker.local[2], 2.5, "on the yard")
    walker.tell("down again and out")


@test("the gate house's wall stops it; it goes around")
def _():
    equal(walker.walk((150, 80)), None, "stopped")
    stopped = walker.walk((176, 80))
    check(stopped, "it went through the gate house")
    place, found = stopped
    check(171 < place[0] <= 171.5, f"stopped at {place}")
    equal(found["floor"], None, "floor behind the wall")
    near(found["ceiling"]["point"][2], 7.15625, "the roof above")
    chest = [*walker.local[:2], walker.local[2] + CHEST_M]
    ray = daemon.ok("POST", "/v1/locales/village/ray",
                    {"rays": [{"origin": chest, "direction": [1, 0, 0]}]})["results"][0]
    near(ray["point"][0], 171, "the wall")
    equal((ray["layer"], ray["normal"]), ("houses", [-1, 0, 0]), "what it is, and its normal")
    say(f"village {short(place)}: behind the gate house's wall, x {plain(ray['point'][0])}, there "
        f"is no floor, only its roof at {plain(found['ceiling']['point'][2])}: it stays at "
        f"{short(walker.local)}")
    equal(walker.walk((168, 80), (168, 70), (186, 70), (186, 80)), None, "stopped on the way round")
    walker.tell("around it")


@test("it leaves the village over the shared border, and locate says garden")
def _():
    equal(walker.walk((199, 80)), None, "stopped")
    equal(walker.locale, "village", "before the border")
    near_all(walker.local, [199, 80, 1.515625], "before the border")
    walker.tell("before the border")
    equal(walker.walk((200, 80)), None, "stopped")
    equal(walker.locale, "village", "on the border it stays where it was")
    near_all(walker.local, [200, 80, 1.5], "on the border")
    walker.tell("on the border itself")
    equal(walker.walk((201, 80)), None, "stopped")
    equal(walker.locale, "garden", "behind the border")
    near_all(walker.local, [119, 80, 5.5], "behind the border, in the garden's frame")
    near_all(walker.feet, [4393, 2128, 65.5], "in the world", 1e-12, 1)
    walker.tell("in the garden")
    equal(walker.walk((200, 80)), None, "stopped")
    equal(walker.locale, "garden", "back on the border it stays in the garden")
    equal(walker.walk((199, 80)), None, "stopped")
    equal(walker.locale, "village", "and is back in the village behind it")


@test("everywhere along the border there is a floor on both sides, at the same height")
def _():
    for i in range(0, 321):
        y = i * 0.5
        world = world_of_village(200, y, 10)
        for hint in ("village", "garden"):
            item = locate([world], [hint])[0]
            equal((item["locale"], item["changed"]), (hint, False), f"y {y}, from {hint}")
        a = contact("village", [200, y, 10])["floor"]["point"]
        b = contact("garden", [120, 160 - y, 10])["floor"]["point"]
        near(b[2], a[2] + 4, f"height at y {y}", 1e-12, 10)


@test("the pond stops it: a hole")
def _():
    stopped = walker.walk((260, 80))
    check(stopped, "it walks on water")
    equal(walker.locale, "garden", "locale")
    place, found = stopped
    equal((found["status"], found["floor"], found["ceiling"]), ("hole", None, None), "contact")
    near_all(walker.local, [72 + TOE_M, 80, 5], "at the bank", 1e-3)
    check(71 < place[0] <= 72, f"in the pond: {place}")
    inside = daemon.ok("POST", "/v1/locales/garden/contains",
                       {"points": [[54, 80, 6]]})["results"][0]
    equal((inside["status"], inside["floor"]), ("hole", False), "contains")
    say(f"garden {short(place)}: contact says hole, the pond: it stays at {short(walker.local)}")
    walker.tell("the walk ends")


@test("beyond the village and the garden there is nobody's ground")
def _():
    for x, y in ((-1, 80), (100, -1), (100, 161), (321, 80)):
        item = locate([world_of_village(x, y, 10)], ["village"])[0]
        equal((item["locale"], item["changed"]), (None, True), f"at {x}, {y}")
    problem(daemon.post("/v1/locales/village/ray", {"rays": [{"origin": [0, 0, 0]}]}), 400)


@test("over a hole contact and contains report hole, or below under a roof that is ground, in each form")
def _():
    for locale, place, word, number, bits in (
            ("village", (172, 80, 3), "below", 1, 4), ("village", (24, 24, 1), "below", 1, 4),
            ("village", (108, 80, -9), "below", 1, 4), ("garden", (54, 80, 6), "hole", 2, 8),
            ("garden", (-5, 80, 6), "outside", 3, 16)):
        what, body = f"{locale} {place}", struct.pack("<3d", *place)
        item = contact(locale, place)
        equal((item["status"], item["floor"]), (word, None), what)
        at = f"/v1/locales/{locale}/"
        got = struct.unpack("<6d", daemon.post(at + "contact", body, media=F64).body)
        equal((math.isnan(got[0]), got[5]), (True, number), f"{what}, binary")
        equal(daemon.ok("POST", at + "contains", {"points": [place]})["results"][0]["status"], word,
              f"contains, {what}")
        equal(daemon.post(at + "contains", body, media=F64).body, bytes([bits]),
              f"contains, binary, {what}")


@test("far under the village and far above the planet there is nobody's ground either")
def _():
    planet = daemon.ok("GET", "/v1/locales/planet")["placement"]["translation"]
    far = [world_of_village(100, 80, -564), *([planet[0] + r, planet[1], planet[2]]
                                              for r in (405, 1e4, 1e7))]
    hints = [["village", "planet"][i > 0] for i in range(len(far))]
    for hinted in (None, hints):
        more = {"hints": hinted} if hinted else {}
        equal([item["locale"] for item in locate(far, hinted)], [None] * len(far), "locate")
        for point, item in zip(far, daemon.ok("POST", "/v1/contact",
                                              {"points": far, **more})["results"]):
            equal(item, {"status": "outside", "locale": None, "revision": None, "floor": None,
                         "ceiling": None}, f"contact at {point}")
    near_by, placed = (daemon.ok("POST", "/v1/contact", body)["results"][0] for body in (
        {"points": [world_of_village(100, 80, -2.9)]}, {"points": far[:1], "clearance": 2}))
    equal((near_by["status"], near_by["locale"]), ("ok", "village"), "a step under the road")
    near(near_by["floor"]["point"][2], VILLAGE_AT[2] - 2.5, "the road")
    near_all(placed["placed"], world_of_village(100, 80, 6), "raised over the bridge")


def finish():
    try:
        if daemon:
            daemon.stop()
    finally:
        shutil.rmtree(world_folder, ignore_errors=True)


run(finish)
