"""Patches of sand over HTTP: made, watched, pushed, written back, thrown away, refused.

The patches here are of coarse granules, a few metres wide, and are stepped by the C reference
solver as fast as it can, so that a whole drop takes about a second. What depends on the device is
in test_sand_device.py.
"""
import math
import os
import re
import shutil
import signal
import tempfile
import threading
import time

from daemon import Daemon, problem
from events import Stream
from fields import put_locale, put_terrain
from images import read_png
from oracle import Terrain
from sand import (ENDED, QUICK, CPU, RESTING, SIDE, body, box, changed, check_ledger,
                  check_patch, drop, follow, heights, land, make, remove_body, revision,
                  samples_inside, second,
                  start, until, wanted)
from tap import HANG_S, case, check, equal, near, run, test

quick = start(*CPU, *QUICK, names=("land", "other", "still", "gone", "twin-a", "twin-b",
                                         "fed"))
resting = start(*CPU, *RESTING, "--patches-coarse", "3", "--patches-medium", "1",
                "--patches-fine", "0", "--patch-active", "2", "--patch-granules", "2000",
                names=("land", "gone", "pushed", "closed", "swapped"))

# ---- a whole drop -----------------------------------------------------


@test("a body falls, the sand comes to rest, one edit changes everyone's ground")
def _():
    patch = drop(quick, "land")
    listed = quick.ok("GET", "/v1/locales/land/patches")["patches"]
    check(patch in listed, f"not in the list: {listed}")
    stats = quick.ok("GET", "/v1/stats")
    check("patches" in stats, f"no patches in {list(stats)}")


@test("a patch on which nothing falls leaves every bit, the revision and the feed alone")
def _():
    before, at = heights(quick, "still"), revision(quick, "still")
    for i in range(3):
        place = make(quick, "still", 10, 12, seed=i)
        with Stream(quick.port, place + "/events"):
            check_patch(until(quick, place, "settling", "active", "resting", "written"),
                        0)
        until(quick, place, "written")
    equal(changed(before, heights(quick, "still")), set(), "samples that changed")
    equal(revision(quick, "still"), at, "revision")


@test("an edit made while the patch runs is kept: what the sand moved is added to it")
def _():
    plain, edited = heights(quick, "twin-a"), heights(quick, "twin-b")
    equal(changed(plain, edited), set(), "twins")
    first = make(quick, "twin-a", bodies=[body()], seed=3)
    until(quick, first, "written")
    second = make(quick, "twin-b", bodies=[body()], seed=3)
    at = quick.ok("POST", "/v1/locales/twin-b/edits",
                  {"rect": [30, 30, 5, 4], "op": "set", "heights": [9.0] * 20})["revision"]
    check(quick.ok("GET", second)["state"] not in ENDED, "the edit came too late")
    until(quick, second, "written")
    equal(revision(quick, "twin-b"), at + 1, "revision")
    moved, both = heights(quick, "twin-a"), heights(quick, "twin-b")
    for r in range(SIDE):
        for c in range(SIDE):
            base = 9.0 if 30 <= c < 35 and 30 <= r < 34 else plain[r][c]
            near(both[r][c], base + moved[r][c] - plain[r][c], f"sample {c},{r}", 2e-6)


@test("a hole that an edit makes while the patch runs stays a hole")
def _():
    place = make(quick, "other", bodies=[body()])
    quick.ok("POST", "/v1/locales/other/edits", {"rect": [32, 32, 1, 1], "heights": [None]})
    check(quick.ok("GET", place)["state"] not in ENDED, "the edit came too late")
    until(quick, place, "written")
    got = heights(quick, "other")
    check(math.isnan(got[32][32]), f"the hole is {got[32][32]}")
    check(sum(math.isnan(v) for row in got for v in row) == 1, "more holes")


@test("two patches at once on the same ground of two locales come to the same bits")
def _():
    places = [make(quick, name, 24, 8, bodies=[body(24, 8)], seed=5)
              for name in ("twin-a", "twin-b")]
    ledgers = [until(quick, place, "written")["mass_ledger"] for place in places]
    equal(ledgers[0], ledgers[1], "the same sand beside another patch")


# ---- the stream -----------------------------------------------------


@test("the patch's stream tells its states in order, poses at most 20 times a second")
def _():
    place = make(quick, "fed", bodies=[body()])
    began = time.monotonic()
    states, poses = follow(quick, place)
    seconds = time.monotonic() - began
    equal(states[-1][0], "written", "the last state")
    check(len(states) >= 4, f"states {states}")
    check(3 < len(poses) <= 20 * seconds + 3, f"{len(poses)} poses in {seconds:.2f} s")
    for pose in poses:
        for one in pose["bodies"]:
            near(math.hypot(*one["orientation"]), 1, "quaternion", 1e-5)


# ---- the picture -----------------------------------------------------


@test("view.png is a picture, before the fall and after it, and the two differ")
def _():
    place = make(resting, "land", bodies=[body()])
    try:
        pictures = []
        for state in (("filling", "settling", "active", "resting"), ("resting",)):
            until(resting, place, *state)
            answer = resting.get(place + "/view.png")
            equal((answer.status, answer.media_type), (200, "image/png"), "answer")
            width, height, channels, _depth, rows = read_png(answer.body)
            check(64 <= width <= 4096 and 64 <= height <= 4096, f"{width} × {height}")
            middle = rows[height // 2]
            colours = {middle[i:i + channels] for i in range(0, len(middle), channels)}
            check(len(colours) > 20, f"{len(colours)} colours in the middle row")
            pictures.append(rows)
        check(pictures[0] != pictures[1], "the picture did not change")
    finally:
        resting.ok("DELETE", place + "?discard=true")


# ---- refusals -----------------------------------------------------

HUGE = 10 ** 30
WRONG = [  # what, changes of the good request (None: left out), status(es)
    ("no center", {"center": None}, 400),
    ("a center of text", {"center": "16,16"}, 400),
    ("a center of three numbers", {"center": [1, 2, 3]}, 400),
    ("a center of true", {"center": [True, True]}, 400),
    ("no size", {"size": None}, 400),
    ("a size of one number", {"size": [5]}, 400),
    ("a size of zero", {"size": [0, 0]}, (400, 422)),
    ("a size below zero", {"size": [-5, 5]}, (400, 422)),
    ("a size of 1e30", {"size": [HUGE, HUGE]}, (400, 413, 422)),
    ("a size of 1e-30", {"size": [1e-30, 1e-30]}, (400, 422)),
    ("an unknown scale", {"scale": "huge"}, 400),
    ("a scale of 3", {"scale": 3}, 400),
    ("a depth of zero", {"depth": 0}, (400, 422)),
    ("a depth below zero", {"depth": -2}, (400, 422)),
    ("a depth of text", {"depth": "2"}, 400),
    ("an observer of text", {"observer": "me", "scale": "auto"}, 400),
    ("a seed of text", {"seed": "x"}, 400),
    ("a seed of 1.5", {"seed": 1.5}, 400),
    ("a seed below zero", {"seed": -1}, 400),
    ("an unknown member", {"sise": [5, 5]}, 400),
    ("bodies that are no array", {"bodies": {}}, 400),
    ("a body that is a number", {"bodies": [3]}, 400),
    ("a body without model", {"bodies": [{"position": [16, 16, 3]}]}, 400),
    ("a body without position", {"bodies": [{"model": "box"}]}, 400),
    ("a body at two numbers", {"bodies": [body(position=[16, 16])]}, 400),
    ("a body of an unknown member", {"bodies": [body(weight=3)]}, 400),
    ("a body's velocity of text", {"bodies": [body(velocity="down")]}, 400),
    ("a body's velocity of null inside", {"bodies": [body(velocity=[0, 0, None])]}, 400),
    ("an orientation of zeros", {"bodies": [body(orientation=[0, 0, 0, 0])]}, (400, 422)),
    ("an orientation of three", {"bodies": [body(orientation=[0, 0, 1])]}, 400),
    ("a mass of zero", {"bodies": [body(mass=0)]}, (400, 422)),
    ("a mass below zero", {"bodies": [body(mass=-1)]}, (400, 422)),
    ("a mass of text", {"bodies": [body(mass="heavy")]}, 400),
    ("an unknown model", {"bodies": [body(model="none")]}, 422),
    ("a second body of an unknown model", {"bodies": [body(), body(model="none")]}, 422),
    ("a body beside the patch", {"bodies": [body(20)]}, 422),
    ("a body beyond the locale", {"bodies": [body(1e6)]}, 422),
    ("a body 100 m above", {"bodies": [body(position=[16, 16, 100])]}, 422),
    ("1,000 bodies", {"bodies": [body()] * 1000}, (413, 422)),
    ("over the border", {"center": [1, 16]}, 422),
    ("outside", {"center": [1000, 16]}, 422),
    ("larger than the field", {"size": [200, 200]}, (413, 422)),
    ("fewer than 8 cells", {"size": [1, 1], "scale": "medium"}, 422),
    ("granules beyond the limit", {"size": [20, 20], "scale": "medium"}, (413, 422)),
    ("an unknown layer", {"layer": "none"}, 422),
    ("a layer of 3", {"layer": 3}, 400),
]


def request(changes):
    made = wanted(bodies=[body()])
    made.update(changes)
    return {name: value for name, value in made.items() if value is not None}


def refused(changes, statuses):
    statuses = statuses if isinstance(statuses, tuple) else (statuses,)
    answer = resting.post("/v1/locales/land/patches", request(changes))
    check(answer.status in statuses, f"expected {statuses}, got {answer}")
    problem(answer, answer.status)
    equal([p for p in resting.ok("GET", "/v1/locales/land/patches")["patches"]
           if p["state"] not in ENDED], [], "patches that were made")


for what_, changes_, statuses_ in WRONG:
    case(f"{what_}: refused", refused, changes_, statuses_)


@test("text that is no JSON, numbers that are none, another media type")
def _():
    for text in ("", "[]", "3", "null", "{", '{"center":[NaN,1],"size":[5,5]}',
                 '{"center":[1e999,1],"size":[5,5]}', '{"center":[16,16],"size":[Infinity,5]}',
                 '{"center":[16,16],"size":[5,5],"bodies":[{"model":"box",'
                 '"position":[16,16,3],"velocity":[0,0,-1e999]}]}'):
        problem(resting.post("/v1/locales/land/patches", text, media="application/json"), 400)
    problem(resting.post("/v1/locales/land/patches", "x", media="text/plain"), 415)


@test("patches, bodies and locales that there are not: 404; methods that there are not: 405")
def _():
    base = "/v1/locales/land/patches"
    problem(resting.post("/v1/locales/none/patches", wanted()), 404, "none")
    problem(resting.get("/v1/locales/none/patches"), 404, "none")
    for n in ("9999", "0", "-1", "abc", "99999999999999999999999", "1.5", "%00"):
        for method, rest, sent in (("GET", "", None), ("DELETE", "", None),
                                   ("GET", "/events", None), ("GET", "/view.png", None),
                                   ("POST", "/bodies", body()),
                                   ("PATCH", "/bodies/0", {"velocity": [0, 0, 1]})):
            answer = resting.ask(method, f"{base}/{n}{rest}", sent)
            check(answer.status in ((404,) if n == "9999" else (400, 404)), f"{n}{rest}: {answer}")
            problem(answer, answer.status)
    for method, rest in (("PUT", ""), ("DELETE", ""), ("PATCH", ""), ("PUT", "/1"), ("POST", "/1"),
                         ("POST", "/1/view.png"), ("POST", "/1/events"), ("PUT", "/1/bodies/0"),
                         ("DELETE", "/1/bodies")):
        answer = resting.ask(method, base + rest, {})
        problem(answer, 405)
        check(answer.headers.get("allow"), f"{method} {rest}: no Allow")


@test("a patch is of its locale: under another one it is 404")
def _():
    place = make(resting, "land")
    number = place.rsplit("/", 1)[1]
    for method, rest in (("GET", ""), ("DELETE", "?discard=true"), ("GET", "/view.png")):
        problem(resting.ask(method, f"/v1/locales/gone/patches/{number}{rest}"), 404)
    resting.ok("DELETE", place + "?discard=true")


@test("over a hole, over none and over one of several heightfields")
def _():
    put_terrain(resting, "holed", land(holes={(32, 32)}))
    problem(resting.post("/v1/locales/holed/patches", wanted()), 422, re.compile("hole|no data"))
    put_locale(resting, "bare")
    problem(resting.post("/v1/locales/bare/patches", wanted()), 422)
    field = land()
    resting.ok("PUT", f"/v1/locales/holed/layers/second?{field.query()}", field.body(), status=201,
               media="application/vnd.kota.f32")
    problem(resting.post("/v1/locales/holed/patches", wanted(x=24, y=24)), 422, "layer")
    place = make(resting, "holed", layer="second")
    equal(resting.ok("DELETE", place + "?discard=true")["state"], "discarded", "state")


@test("patches that overlap are 409; beside it, or after it has ended, one may be made")
def _():
    first = make(resting, "land")
    for x, y in ((16, 16), (18, 18), (20, 16), (16, 13)):
        problem(resting.post("/v1/locales/land/patches", wanted(x, y)), 409)
    second = make(resting, "land", 24, 24)
    other = make(resting, "gone")
    for place in (first, second, other):
        equal(resting.ok("DELETE", place + "?discard=true")["state"], "discarded", "state")
    resting.ok("DELETE", make(resting, "land") + "?discard=true")


@test("an exhausted pool answers 503 with Retry-After at once; then there is room again")
def _():
    places = [make(resting, name) for name in ("land", "gone", "pushed")]
    try:
        began = time.monotonic()
        answer = resting.post("/v1/locales/closed/patches", wanted())
        check(time.monotonic() - began < HANG_S / 10, "it waited for room")
        problem(answer, 503)
        check(int(answer.headers.get("retry-after", 0)) > 0, f"Retry-After: {answer.headers}")
        answer = resting.post("/v1/locales/closed/patches", wanted(scale="fine", size=[4.5, 4.5]))
        equal(answer.status, 503, "a scale of which there are no patches")
        problem(answer, answer.status)
        resting.ok("DELETE", places.pop() + "?discard=true")
        deadline = time.monotonic() + HANG_S
        while answer.status == 503 and time.monotonic() < deadline:
            time.sleep(0.02)
            answer = resting.post("/v1/locales/closed/patches", wanted())
        equal(answer.status, 201, str(answer))
        places.append(answer.headers["location"])
    finally:
        for place in places:
            resting.ok("DELETE", place + "?discard=true")


# ---- the end of a patch -----------------------------------------------------


@test("DELETE settles and writes back; the second one says the same; ?discard=true throws away")
def _():
    before, at = heights(resting, "closed"), revision(resting, "closed")
    place = make(resting, "closed", bodies=[body()])
    patch = resting.ok("DELETE", place)
    equal(patch["state"], "written", "state")
    check_patch(patch, 1)
    check_ledger(patch["mass_ledger"])
    equal(revision(resting, "closed"), at + 1, "revision")
    after = heights(resting, "closed")
    check(changed(before, after), "nothing was written")
    again = resting.ask("DELETE", place)
    check(again.status in (200, 404, 409), str(again))
    place = make(resting, "closed", 8, 8, bodies=[body(8, 8)])
    until(resting, place, "settling", "active")
    equal(resting.ok("DELETE", place + "?discard=true")["state"], "discarded", "state")
    equal(resting.ok("GET", place)["state"], "discarded", "state afterwards")
    equal(changed(after, heights(resting, "closed")), set(), "samples after a discarded patch")
    equal(revision(resting, "closed"), at + 1, "revision after a discarded patch")
    place = make(resting, "closed", 8, 8, bodies=[body(8, 8)])
    until(resting, place, "resting")
    equal(resting.ok("DELETE", place + "?discard=true")["state"], "discarded", "state")
    ended = resting.ok("GET", place)
    # what rested stays, or was not written yet and is not there
    equal(ended["revision"], revision(resting, "closed") if ended["edit_rect"] else None, "revision")
    equal(bool(changed(after, heights(resting, "closed"))), ended["edit_rect"] is not None, "samples")
    problem(resting.ask("DELETE", place + "?discard=maybe"), 400, "discard")


@test("a locale that is removed takes its patches with it, also those of its next life")
def _():
    place = make(resting, "gone", bodies=[body()])
    ended = []
    follower = threading.Thread(target=lambda: ended.extend(follow(resting, place)[0]))
    follower.start()
    resting.ok("DELETE", "/v1/locales/gone", status=204)
    follower.join()
    check(ended and ended[-1][0] == "discarded", f"it ended as {ended}")
    put_terrain(resting, "gone", land())
    before, at = heights(resting, "gone"), revision(resting, "gone")
    answer = resting.get(place)
    check(answer.status == 404 or answer.json["state"] in ENDED, str(answer))
    resting.ok("DELETE", make(resting, "gone") + "?discard=true")
    equal(changed(before, heights(resting, "gone")), set(), "samples of the next life")
    equal(revision(resting, "gone"), at, "revision of the next life")


@test("a layer that is replaced under a patch keeps its new heights")
def _():
    place = make(resting, "swapped", bodies=[body()])
    until(resting, place, "settling", "active", "resting")
    field = Terrain(9, 9, [[float(c + r) for c in range(9)] for r in range(9)], (1.0, 1.0), (0, 0))
    resting.ok("PUT", f"/v1/locales/swapped/layers/ground?{field.query()}", field.body(),
               media="application/vnd.kota.f32")
    answer = resting.ask("DELETE", place)
    check(answer.status in (200, 404, 409), str(answer))
    check(resting.ok("GET", place)["state"] in ("discarded", "failed"), "its state")
    got = resting.ok("GET", "/v1/locales/swapped/height?x=3&y=3&interp=nearest")
    near(got["height"], 6, "at 3,3")


# ---- bodies that come later, and pushes -----------------------------------------------------


@test("a body put in later, and a push, wake a patch that rests")
def _():
    place = make(resting, "pushed", bodies=[body()])
    first = until(resting, place, "resting")
    answer = resting.post(place + "/bodies", body(15.5, 16.5, position=[15.5, 16.5, 6]))
    equal(answer.status, 201, str(answer))
    woken = until(resting, place, "settling", "active")
    equal(len(woken["bodies"]), 2, "bodies")
    second = until(resting, place, "resting")
    check(second["steps"] > first["steps"], "no steps for the second body")
    pushed = resting.ok("PATCH", place + "/bodies/0", {"velocity": [0, 0, 5]})
    equal(len(pushed["bodies"]), 2, "bodies")
    third = until(resting, place, "resting")
    deadline = time.monotonic() + HANG_S
    while third["steps"] == second["steps"] and time.monotonic() < deadline:
        third = until(resting, place, "resting")
    check(third["steps"] > second["steps"], "no steps for the push")
    until(resting, place, "resting")
    resting.ok("PATCH", place + "/bodies/1", {"impulse": [100, 0, 30000]})
    for number, sent, statuses in (
            ("7", {"velocity": [0, 0, 1]}, (404,)), ("-1", {"velocity": [0, 0, 1]}, (400, 404)),
            ("x", {"velocity": [0, 0, 1]}, (400, 404)), ("0", {"velocity": [0, 0]}, (400,)),
            ("0", {"velocity": "up"}, (400,)), ("0", {"speed": 3}, (400,)), ("0", [], (400,)),
            ("0", {"impulse": [0, 0, None]}, (400,))):
        answer = resting.ask("PATCH", f"{place}/bodies/{number}", sent)
        check(answer.status in statuses, f"{number} {sent}: {answer}")
        problem(answer, answer.status)
    for sent, status in ((body(model="none"), 422), (body(40, 40), 422), ({}, 400), ([], 400),
                         (body(mass="x"), 400)):
        problem(resting.post(place + "/bodies", sent), status)
    equal(len(resting.ok("GET", place)["bodies"]), 2, "bodies after the refusals")
    equal(resting.ok("DELETE", place + "?discard=true")["state"], "discarded", "state")
    problem(resting.post(place + "/bodies", body()), 409)
    problem(resting.ask("PATCH", place + "/bodies/0", {"velocity": [0, 0, 1]}), 409)


@test("a body that is removed lets another one fall; the others keep their numbers")
def _():
    remove_body(resting, "pushed")


@test("a model replaced or deleted under a running patch does not matter to it")
def _():
    resting.ok("PUT", "/v1/models/short", box(0.6), status=201, media="model/obj")
    place = make(resting, "land", bodies=[body(model="short")])
    resting.ok("PUT", "/v1/models/short", box(0.9), media="model/obj")
    resting.ok("DELETE", "/v1/models/short", status=204)
    check_patch(until(resting, place, "resting"), 1)
    problem(resting.post(place + "/bodies", body(model="short")), 422, "short")
    equal(resting.get(place + "/view.png").status, 200, "view.png")
    resting.ok("DELETE", place + "?discard=true")


# ---- others -----------------------------------------------------


@test("questions are answered, at the old ground, all the while that a patch runs")
def _():
    before = revision(quick, "fed")
    stop, answers = threading.Event(), []
    asker = second(quick)

    def ask():
        while not stop.is_set():
            answer = asker.ask("GET", "/v1/locales/fed/height?x=16&y=16")
            answers.append((answer.status, answer.json["revision"]))
            time.sleep(0.002)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        until(quick, make(quick, "fed", 8, 24, bodies=[body(8, 24)]), "written")
        time.sleep(0.05)
    finally:
        stop.set()
        thread.join()
        asker.connection.close()
    equal({status for status, _ in answers}, {200}, "statuses")
    check(len(answers) > 20, f"{len(answers)} answers")
    revisions = [at for _, at in answers]
    equal(revisions, sorted(revisions), "revisions in order")
    check(set(revisions) <= {before, before + 1}, f"revisions {set(revisions)}")


@test("a farther observer never gets finer granules; auto says which scale it took")
def _():
    rank = {"fine": 0, "medium": 1, "coarse": 2}
    with start(*CPU, *RESTING, "--patch-granules", "20000") as daemon:
        scales = []
        for distance in (1, 30, 100, 300, 1000, 10000):
            answer = daemon.post("/v1/locales/land/patches", wanted(
                scale="auto", size=[4.5, 4.5], observer=[16, 16, distance]))
            equal(answer.status, 201, str(answer))
            scales.append(rank[answer.json["scale"]])
            daemon.ok("DELETE", answer.headers["location"] + "?discard=true")
        equal(scales, sorted(scales), "scales")
        check(len(set(scales)) > 1, f"always the same: {scales}")


@test("--read-only and the scopes of tokens: to make, to push, to end a patch is to edit")
def _():
    folder = tempfile.mkdtemp(prefix="kota-test-")
    try:
        tokens = os.path.join(folder, "tokens")
        with open(tokens, "w") as file:
            file.write("read glass-0123\nedit chisel-0123\n")
        os.chmod(tokens, 0o600)
        read, edit = ({"Authorization": f"Bearer {t}"} for t in ("glass-0123", "chisel-0123"))
        with Daemon("--token-file", tokens, *CPU, *RESTING) as daemon:
            daemon.ok("PUT", "/v1/locales/land", {}, status=201, headers=edit)
            field = land()
            daemon.ok("PUT", f"/v1/locales/land/layers/ground?{field.query()}", field.body(),
                      status=201, media="application/vnd.kota.f32", headers=edit)
            daemon.ok("PUT", "/v1/models/box", box(0.7), status=201, media="model/obj",
                      headers=edit)
            base = "/v1/locales/land/patches"
            made = daemon.post(base, wanted(bodies=[body()]), headers=edit)
            equal(made.status, 201, str(made))
            place = made.headers["location"]
            writes = (("POST", base, wanted(24, 24)), ("POST", place + "/bodies", body()),
                      ("PATCH", place + "/bodies/0", {"velocity": [0, 0, 1]}),
                      ("DELETE", place + "?discard=true", None))
            for method, target, sent in writes:
                equal(daemon.ask(method, target, sent).status, 401, f"{method} without a token")
                equal(daemon.ask(method, target, sent, headers=read).status, 403, f"{method} read")
            for target in (base, place, place + "/view.png"):
                equal(daemon.get(target).status, 401, target)
                equal(daemon.get(target, headers=read).status, 200, target)
            equal(daemon.ask("DELETE", place + "?discard=true", headers=edit).status, 200, "edit")
        world = os.path.join(folder, "land.asc")
        with open(world, "w") as file:
            file.write("ncols 40\nnrows 40\nxllcenter 0\nyllcenter 0\ncellsize 0.5\n"
                       + "0 0 1 1 " * 400)
        with Daemon("--read-only", *CPU, *QUICK, world) as daemon:
            answer = daemon.post("/v1/locales/land/patches", wanted(10, 10))
            check(answer.status in (403, 405, 503), str(answer))
            problem(answer, answer.status, "read-only")
            equal(daemon.ok("GET", "/v1/locales/land/patches")["patches"], [], "patches")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@test("after a restart what was written is there; patches that ran are gone, by TERM and by KILL")
def _():
    folder = tempfile.mkdtemp(prefix="kota-test-")
    data = ("--data", os.path.join(folder, "data"))
    try:
        with start(*CPU, *RESTING, *data) as first:
            raw = heights(first, "land")
            patch = first.ok("DELETE", make(first, "land", bodies=[body()]))
            equal(patch["state"], "written", "state")
            written, at = heights(first, "land"), revision(first, "land")
            check(changed(raw, written), "nothing was written")
            make(first, "land", 8, 8, bodies=[body(8, 8)])
            until(first, make(first, "land", 24, 24, bodies=[body(24, 24)]), "active", "resting")
        for how in (signal.SIGKILL, signal.SIGTERM):
            daemon = Daemon(*CPU, *RESTING, *data)
            try:
                got = heights(daemon, "land")
                late = changed(written, got)
                check(not late & samples_inside(), "the written crater has changed")
                if how == signal.SIGKILL:  # SIGTERM may have written back what ran
                    written, at = got, revision(daemon, "land")
                equal(late if how == signal.SIGTERM else set(), set(), "samples after a kill")
                equal(revision(daemon, "land"), at, "revision")
                running = [p for p in daemon.ok("GET", "/v1/locales/land/patches")["patches"]
                           if p["state"] not in ENDED]
                equal(running, [], "patches after a restart")
                models = daemon.ok("GET", "/v1/models")["models"]
                equal([model["id"] for model in models], ["box"], "models")
                make(daemon, "land", 8, 24, bodies=[body(8, 24)])
                if how == signal.SIGKILL:
                    daemon.kill()
                else:
                    daemon.stop()
            finally:
                daemon.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def finish():
    """Both stop while a patch runs."""
    try:
        make(quick, "still", bodies=[body()])
        make(resting, "land", bodies=[body()])
        quick.stop()
        resting.stop()
    finally:
        quick.kill()
        resting.kill()


run(finish, "the daemons stop cleanly while patches run")
