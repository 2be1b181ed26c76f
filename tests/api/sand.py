"""A small world of sand for tests over HTTP: ground, a box, one drop and what must hold of it."""
import array
import json
import math
import re
import struct
import sys
import threading
import time

from daemon import Daemon, problem
from events import Stream
from fields import put_terrain
from oracle import NAN, Terrain
from tap import HANG_S, Failure, check, equal, near

SIDE = 65
SPACING = 0.5
GRANULE_M = 0.89  # the diameter of a coarse one
RUN = ("--patch-speed", "0", "--patch-pause-ms", "100", "--patch-active-max-ms", "3000")
QUICK = (*RUN, "--patch-linger-ms", "0")
RESTING = (*RUN, "--patch-linger-ms", "3600000")
CPU = ("--gpu", "cpu")
ORDER = ["idle", "filling", "settling", "active", "resting", "written"]
ENDED = ("written", "discarded", "failed")
MEMBERS = {"state", "scale", "granules", "particles", "steps", "time_s", "kinetic_energy_j",
           "bodies", "timings", "mass_ledger"}
POSE = {"position": 3, "orientation": 4, "velocity": 3, "angular_velocity": 3}
FACES = [(1, 3, 2), (1, 4, 3), (5, 6, 7), (5, 7, 8), (1, 2, 6), (1, 6, 5), (2, 3, 7), (2, 7, 6),
         (3, 4, 8), (3, 8, 7), (4, 1, 5), (4, 5, 8)]


def box(half):
    corners = [(x, y, z) for z in (-half, half)
               for x, y in ((-half, -half), (half, -half), (half, half), (-half, half))]
    return ("".join("v %r %r %r\n" % corner for corner in corners)
            + "".join("f %d %d %d\n" % face for face in FACES)).encode()


def land(holes=()):
    """Small bumps: no two neighbours at one height, so that a lost bit shows."""
    heights = [[NAN if (c, r) in holes else 0.07 * math.sin(0.9 * c) * math.cos(1.3 * r) + 0.001 * c
                for c in range(SIDE)] for r in range(SIDE)]
    return Terrain(SIDE, SIDE, heights, (SPACING, SPACING), (0.0, 0.0))


def fill(daemon, *names):
    for name in names:
        put_terrain(daemon, name, land())
    daemon.ok("PUT", "/v1/models/box", box(0.7), status=201, media="model/obj")


def start(*flags, names=("land",), **named):
    daemon = Daemon(*flags, **named)
    try:
        fill(daemon, *names)
    except BaseException:
        daemon.kill()
        raise
    return daemon


def second(daemon):
    """Another connection to the same daemon, for another thread."""
    other = Daemon.__new__(Daemon)
    other.port, other.connection = daemon.port, None
    return other


def body(x=16, y=16, **more):
    return {"model": "box", "position": [x, y, 2.5], "velocity": [0, 0, -6], "mass": 6000, **more}


def wanted(x=16, y=16, bodies=(), **more):
    return {"center": [x, y], "size": [5, 5], "scale": "coarse", "depth": 2,
            "bodies": list(bodies), **more}


def make(daemon, locale, *args, **named):
    """A patch's address. On a busy machine a pool takes longer than the 10 s that a request waits for it."""
    deadline = time.monotonic() + HANG_S
    while True:
        answer = daemon.post(f"/v1/locales/{locale}/patches", wanted(*args, **named))
        if b"granules is being made" not in answer.body or time.monotonic() > deadline:
            break
    check(answer.status == 201, f"no patch: {answer}")
    place = answer.headers.get("location", "")
    check(re.fullmatch(rf"/v1/locales/{locale}/patches/\d+", place), f"Location {place!r}")
    return place


def until(daemon, place, *states):
    """The patch, once it is in one of these states."""
    deadline = time.monotonic() + HANG_S
    while True:
        patch = daemon.ok("GET", place)
        if patch["state"] in states:
            return patch
        check(patch["state"] not in ENDED, f"it ended otherwise: {patch}")
        check(time.monotonic() < deadline, f"still {patch['state']}, not {states}: {patch}")
        time.sleep(0.01)


def heights(daemon, locale):
    """Every sample's bits, row by row."""
    block = daemon.get(f"/v1/locales/{locale}/tiles/0/0/0?format=f32").body
    values = array.array("f", block)
    if sys.byteorder == "big":
        values.byteswap()
    equal(len(values), 257 * 257, "samples of a tile")
    return [list(values[r * 257:r * 257 + SIDE]) for r in range(SIDE)]


def revision(daemon, locale):
    return daemon.ok("GET", f"/v1/locales/{locale}")["revision"]


def finite(value, where="answer"):
    if isinstance(value, dict):
        for name, part in value.items():
            finite(part, f"{where}.{name}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            finite(part, f"{where}[{i}]")
    elif isinstance(value, float):
        check(math.isfinite(value), f"{where} is {value}")


def check_patch(patch, count):
    check(MEMBERS <= set(patch), f"missing: {MEMBERS - set(patch)}")
    finite(patch)
    equal(len(patch["bodies"]), count, "bodies")
    for pose in patch["bodies"]:
        for name, length in POSE.items():
            equal(len(pose[name]), length, name)
        near(math.hypot(*pose["orientation"]), 1, "length of the quaternion", 1e-5)
    check(patch["particles"] >= 4 * patch["granules"] > 0, f"granules: {patch}")
    check(isinstance(patch["timings"], dict) and patch["timings"], f"timings: {patch['timings']}")


def check_ledger(ledger, share=0.005):
    """share: of the bed, the greatest volume of changes that are too small to be written"""
    before, after = ledger["volume_before_m3"], ledger["volume_after_m3"]
    check(before > 0 and after > 0, f"no volumes: {ledger}")
    compacted, lost = ledger["compacted_m3"], ledger["lost_m3"]
    check(abs(before - after - compacted) < share * before, f"does not add up: {ledger}")
    check(abs(lost) <= abs(compacted) + 1e-6, f"more is lost than was compacted: {ledger}")
    return ledger


def samples_inside(x=16, y=16, size=5.0):
    """(column, row) of the samples of a patch's square, its rim included."""
    return {(c, r) for c in range(SIDE) for r in range(SIDE)
            if abs(c * SPACING - x) <= size / 2 + SPACING + 1e-6
            and abs(r * SPACING - y) <= size / 2 + SPACING + 1e-6}


def changed(before, after):
    return {(c, r) for r in range(SIDE) for c in range(SIDE)
            if array.array("f", [before[r][c]]).tobytes() != array.array("f",
                                                                      [after[r][c]]).tobytes()}


def refuse_constant(name):
    raise Failure(f"{name} in an event")


def follow(daemon, place):
    """A patch's stream to its end: [(state, data)…] and the data of the poses."""
    states, poses, last_id = [], [], 0
    with Stream(daemon.port, place + "/events") as stream:
        equal(stream.status, 200, "status of the stream")
        equal(stream.headers["content-type"], "text/event-stream", "Content-Type")
        while not states or states[-1][0] not in ENDED:
            fields = dict(stream.block())
            if "event" not in fields:
                continue
            data = json.loads(fields["data"], parse_constant=refuse_constant)
            finite(data, fields["event"])
            if fields["event"] == "state":
                check(int(fields["id"]) > last_id, f"id {fields['id']} after {last_id}")
                last_id = int(fields["id"])
                states.append((data["state"], data))
            else:
                equal(fields["event"], "poses", "event")
                poses.append(data)
    order = [ORDER.index(state) if state in ORDER else len(ORDER) for state, _ in states]
    check(order == sorted(set(order)), f"states {order}")
    return states, poses


def remove_body(daemon, locale, is_stacked=True, **named):
    """A box is removed, another one stays; is_stacked: that lay on it, and falls."""
    place = make(daemon, locale, bodies=[
        body(velocity=[0, 0, 0]), body(position=[16, 16, 4.5], velocity=[0, 0, 0])], **named)
    before = until(daemon, place, "resting")
    low, high = (one["position"][2] for one in before["bodies"])
    check(not is_stacked or high > low + 0.5, f"one lies on the other: {before['bodies']}")
    equal([one["body"] for one in daemon.ok("DELETE", place + "/bodies/0")["bodies"]], [1], "left")
    until(daemon, place, "active")
    after = until(daemon, place, "resting")
    equal([one["body"] for one in after["bodies"]], [1], "bodies")
    check(after["steps"] > before["steps"], "no steps after the removal")
    check(not is_stacked or after["bodies"][0]["position"][2] < high - 0.3,
          f"it fell: {after['bodies']}, {high}")
    for method, sent in (("DELETE", None), ("PATCH", {"velocity": [0, 0, 1]})):
        problem(daemon.ask(method, place + "/bodies/0", sent), 404, "no body 0")
    answer = daemon.post(place + "/bodies", body())
    equal(answer.headers["location"], place + "/bodies/2", "a new number")
    held = daemon.ok("DELETE", place + "/bodies/2")["bodies"]
    equal([one["body"] for one in held], [1], "bodies without the new one")
    for number in ("3", "x", "-1"):
        problem(daemon.ask("DELETE", f"{place}/bodies/{number}"), 404)
    problem(daemon.ask("DELETE", place + "/bodies/1?now=true"), 400, pointer="now")
    daemon.ok("DELETE", place + "?discard=true")
    problem(daemon.ask("DELETE", place + "/bodies/1"), 409)


def drop(daemon, locale, close=False, speed_max=0.1, **more):
    """One body falls; what must hold of it on every engine. Returns the written Patch.
    speed_max: m/s of the body at the end, of a patch that may not come to rest."""
    before, at = heights(daemon, locale), revision(daemon, locale)
    with Stream(daemon.port, f"/v1/locales/{locale}/events") as feed:
        made = daemon.post(f"/v1/locales/{locale}/patches", wanted(bodies=[body()], seed=7, **more))
        equal(made.status, 201, f"status of {made}")
        check_patch(made.json, 1)
        equal(made.json["scale"], "coarse", "scale")
        check(made.json["state"] in ORDER[:4], f"state {made.json['state']}")
        place = made.headers["location"]
        answers = []
        closer = threading.Thread(target=lambda: answers.append(second(daemon).ask("DELETE", place)))
        if close:
            closer.start()
        states, poses = follow(daemon, place)
        patch = daemon.ok("GET", place)
        if close:
            closer.join()
            equal((answers[0].status, answers[0].json), (200, patch), "what DELETE answers")
        equal(states[-1][0], "written", f"the last state; {states[-1][1]}")
        check_patch(patch, 1)
        event = feed.edit()
    check_written(daemon, locale, before, at, patch, event, speed_max)
    told = states[-1][1]
    equal([told[name] for name in ("revision", "edit_rect", "mass_ledger")],
          [patch[name] for name in ("revision", "edit_rect", "mass_ledger")], "the last event")
    falls = [pose["bodies"][0]["position"][2] for pose in poses if pose["bodies"]]
    check(falls and -1 < min(falls) < 1.6, f"the poses never told of a fall: {falls}")
    rests = poses[-1]["bodies"][0]
    near(math.dist(rests["position"], patch["bodies"][0]["position"]), 0, "the last pose", 1e-6)
    return patch


def turned(q, p):
    x, y, z, w = q
    t = (2 * (y * p[2] - z * p[1]), 2 * (z * p[0] - x * p[2]), 2 * (x * p[1] - y * p[0]))
    return (p[0] + w * t[0] + y * t[2] - z * t[1], p[1] + w * t[1] + z * t[0] - x * t[2],
            p[2] + w * t[2] + x * t[1] - y * t[0])


def gap(daemon, locale, pose, half=0.7, parts=14):
    """How far the box is above the ground where it is nearest, in metres; below 0: in it."""
    steps = [half * (2 * i / parts - 1) for i in range(parts + 1)]
    faces = [(s * half, a, b) for s in (-1, 1) for a in steps for b in steps]
    points = [[u + v for u, v in zip(turned(pose["orientation"], p), pose["position"])]
              for a, b, c in faces for p in ((a, b, c), (b, a, c), (b, c, a))]
    answer = daemon.post(f"/v1/locales/{locale}/height",
                         struct.pack(f"<{2 * len(points)}f", *[v for p in points for v in p[:2]]),
                         media="application/vnd.kota.f32")
    equal(answer.status, 200, f"heights: {answer}")
    return min(p[2] - h for p, h in zip(points, struct.unpack(f"<{len(points)}f", answer.body)))


def check_written(daemon, locale, before, at, patch, event, speed_max):
    """What one edit has made of the ground, and that everybody is told."""
    after = heights(daemon, locale)
    equal(revision(daemon, locale), at + 1, "revision")
    equal(patch["revision"], at + 1, "revision of the patch")
    equal((event.name, event.id), ("edit", at + 1), "event")
    equal((event.data["locale"], event.data["revision"], event.data["source"]),
          (locale, at + 1, "patch"), "what the feed tells")
    moved = changed(before, after)
    check(moved, "nothing has changed where the body fell")
    check(moved <= samples_inside(), f"changed outside: {sorted(moved - samples_inside())[:9]}")
    c0, r0, cols, rows = event.data["rect"]
    equal(event.data["rect"], patch["edit_rect"], "rect")
    check(all(c0 <= c < c0 + cols and r0 <= r < r0 + rows for c, r in moved), "rect of the event")
    dug, c, r = min((after[r][c] - before[r][c], c, r) for c, r in moved)
    check(-2 < dug < -0.11 * GRANULE_M / 2, f"the crater is {dug} m deep")
    asked = daemon.ok("GET", f"/v1/locales/{locale}/height?x={c * SPACING}&y={r * SPACING}")
    equal((asked["height"], asked["revision"]), (after[r][c], at + 1), "the height in the crater")
    finite(after)
    check_ledger(patch["mass_ledger"])
    lost = sum(before[r][c] - after[r][c] for c, r in moved) * SPACING ** 2
    near(patch["mass_ledger"]["lost_m3"], lost, "lost", 1e-3)
    check(patch["steps"] > 100 and patch["time_s"] > 0.1, f"hardly stepped: {patch}")
    low, height = patch["bodies"][0]["position"][2], 0.7
    check(-1.5 < low - height < 1, f"the body lies at {low}")
    check(math.hypot(*patch["bodies"][0]["velocity"]) < speed_max, f"it still moves: {patch}")
    check(gap(daemon, locale, patch["bodies"][0]) < 0.005, "it hovers over the ground that was written")
    rects = daemon.ok("GET", f"/v1/locales/{locale}/diff?since={at}")
    equal(rects["rects"], [event.data["rect"]], "diff")
