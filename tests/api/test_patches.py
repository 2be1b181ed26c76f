"""Patches: a body falls on sand, and what has settled is everybody's ground. By the C solver.

Of coarse granules in make test, of medium ones in make test-all.
"""
import json
import math
import re
import os
import shutil
import struct
import tempfile
import threading
import time

from daemon import F32, SLOW, Daemon, check, connection_to, equal, problem
from events import Stream
from models import BOX
from sand import box as cube, check_ledger
from tap import ALL, near, near_all, run, test

SIDE = 24
ENDS = ("written", "discarded", "failed")
WAIT_S = 600 * SLOW
# A drop of some 200 medium granules takes seconds, and minutes in a sanitizer's build; what is tried
# here is the course of a patch, and that of 40 coarse ones is the same. They are thrown higher.
SCALE, DEPTH, SPLASH = ("medium", 1, 1.2) if SLOW == 1 and ALL else ("coarse", 1.8, 2)

daemon = Daemon("--gpu", "cpu", "--patch-speed", "0", "--patch-pause-ms", "500",
                "--patch-linger-ms", "300", "--patch-granules", "2000", "--patches-coarse", "3",
                "--patches-fine", "0")


def make(name, on=daemon, holes=()):
    """A locale of SIDE × SIDE samples, spacing 0.5, gently sloping."""
    on.ok("PUT", f"/v1/locales/{name}", {"title": name}, status=201)
    heights = [0.02 * c + 0.01 * r for r in range(SIDE) for c in range(SIDE)]
    for c, r in holes:
        heights[r * SIDE + c] = float("nan")
    answer = on.put(f"/v1/locales/{name}/layers/ground?cols={SIDE}&rows={SIDE}&spacing=0.5,0.5",
                    struct.pack(f"<{SIDE * SIDE}f", *heights), media=F32)
    equal(answer.status, 201, f"layer: {answer}")


def metre_field(on, name, side):
    """side × side samples a metre apart."""
    on.ok("PUT", f"/v1/locales/{name}", {"title": name}, status=201)
    heights = [0.02 * c + 0.01 * r for r in range(side) for c in range(side)]
    answer = on.put(f"/v1/locales/{name}/layers/ground?cols={side}&rows={side}&spacing=1,1",
                    struct.pack(f"<{side * side}f", *heights), media=F32)
    equal(answer.status, 201, f"layer: {answer}")


def metre_heights(on, name, side):
    points = [float(v) for r in range(side) for c in range(side) for v in (c, r)]
    answer = on.post(f"/v1/locales/{name}/height?interp=nearest",
                     struct.pack(f"<{len(points)}f", *points), media=F32)
    equal(answer.status, 200, f"heights: {answer}")
    return struct.unpack(f"<{side * side}f", answer.body)


def samples(name, on=daemon):
    points = [0.5 * v for r in range(SIDE) for c in range(SIDE) for v in (c, r)]
    answer = on.post(f"/v1/locales/{name}/height?interp=nearest",
                     struct.pack(f"<{len(points)}f", *points), media=F32)
    equal(answer.status, 200, f"heights: {answer}")
    return struct.unpack(f"<{SIDE * SIDE}f", answer.body)


def question(**more):
    return {"center": [6, 6], "size": [4, 4], "scale": SCALE, "depth": DEPTH, **more}


def body(**more):
    return {"model": "box", "position": [6, 6, 2], "density": 3000, **more}


def post(name, status=201, on=daemon, **more):
    answer = on.post(f"/v1/locales/{name}/patches", question(**more))
    check(answer.status == status, f"expected {status}, got {answer}")
    return answer


def wait(where, *states, on=daemon):
    """The patch, once it is in one of the states."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        patch = on.ok("GET", where)
        if patch["state"] in states:
            return patch
        check(patch["state"] not in ENDS, f"ended: {patch}")
        time.sleep(0.02)
    raise AssertionError(f"{where} is not {states} after {WAIT_S} s: {patch}")


@test("the world of the patches is built")
def _():
    answer = daemon.put("/v1/models/box", BOX, media="model/obj")
    equal(answer.status, 201, "model")
    stats = daemon.ok("GET", "/v1/stats")["patches"]
    equal((stats["device"]["engine"], stats["device"]["reason"]),
          (None, "not opened yet: the first patch opens it"), "the device before the first patch")
    equal({scale["passes"] for scale in stats["scales"].values()}, {None}, "passes without OpenGL")


@test("a box falls, comes to rest, and one edit tells everybody what it did")
def _():
    make("drop")
    before = samples("drop")
    with Stream(daemon.port, "/v1/locales/drop/events") as stream:
        stream.block()
        where = post("drop", bodies=[body()], seed=3).headers["location"]
        patch = wait(where, "active", "resting")
        ground = samples("drop")
        check(ground == before or daemon.ok("GET", where)["state"] in ("resting", "written"),
              "the ground has changed while it is simulated")
        patch = wait(where, "written")
        told = stream.edit().data
    after = samples("drop")
    equal(patch["revision"], 3, "revision")
    equal(daemon.ok("GET", "/v1/locales/drop")["revision"], 3, "revision of the locale")
    equal((told["source"], told["revision"], told["rect"]),
          ("patch", 3, patch["edit_rect"]), "the event")
    c0, r0, cols, rows = patch["rect"]
    changed = [i for i in range(SIDE * SIDE) if before[i] != after[i]]
    check(changed, "nothing has changed")
    for i in changed:
        check(c0 < i % SIDE < c0 + cols - 1 and r0 < i // SIDE < r0 + rows - 1,
              f"sample {i % SIDE}, {i // SIDE} outside the patch or on its edge has changed")
    check(min(after[i] - before[i] for i in changed) < -0.05, "there is no pit")
    ledger = patch["mass_ledger"]
    near(ledger["lost_m3"], sum(before[i] - after[i] for i in changed) * 0.25, "lost", 1e-4)
    check(ledger["volume_before_m3"] > 5 and ledger["moved_m3"] > 0, f"the ledger: {ledger}")
    check(not patch["bodies"][0]["held"] and patch["bodies"][0]["position"][2] < 1.5,
          f"the box lies: {patch['bodies']}")
    check(patch["asleep"] >= 0.99 * patch["granules"], f"asleep: {patch}")


@test("a patch on which nothing falls changes no bit and makes no revision")
def _():
    make("idle")
    before = samples("idle")
    patch = wait(post("idle", seed=5).headers["location"], "written")
    equal(patch["edit_rect"], None, "edit")
    equal(patch["revision"], 2, "revision")
    equal(samples("idle"), before, "ground")
    equal(daemon.ok("GET", "/v1/locales/idle")["revision"], 2, "revision of the locale")


@test("an edit that is made meanwhile is kept, and holes stay")
def _():
    make("meanwhile")
    before = samples("meanwhile")
    where = post("meanwhile", bodies=[body()], seed=3).headers["location"]
    wait(where, "active", "resting")
    daemon.ok("POST", "/v1/locales/meanwhile/edits",
              {"rect": [12, 12, 2, 1], "op": "add", "heights": [100, None]})
    patch = wait(where, "written")
    equal(patch["revision"], 4, "revision")
    after = samples("meanwhile")
    drop = samples("drop")
    check(abs(after[12 * SIDE + 12] - drop[12 * SIDE + 12] - 100) < 1e-4,
          f"sum at (12, 12): {after[12 * SIDE + 12]}, {drop[12 * SIDE + 12]}")
    check(after[12 * SIDE + 13] != after[12 * SIDE + 13], "the hole was filled")
    same = [i for i in range(SIDE * SIDE) if i not in (12 * SIDE + 12, 12 * SIDE + 13)]
    equal([after[i] for i in same], [drop[i] for i in same],
          "the same seed on the same ground is the same crater")
    check(before != after, "changed")


@test("DELETE simulates to rest, writes at once, and answers with the patch; then it is as it was")
def _():
    make("closed")
    where = post("closed", bodies=[body()], seed=3).headers["location"]
    patch = daemon.ok("DELETE", where)
    equal(patch["state"], "written", "state")
    equal(patch["revision"], 3, "revision")
    equal(daemon.ok("DELETE", where)["state"], "written", "again")
    equal(samples("closed"), samples("drop"), "ground")
    problem(daemon.post(where + "/bodies", body()), 409, "written")


@test("DELETE with discard throws it away")
def _():
    make("thrown")
    before = samples("thrown")
    where = post("thrown", bodies=[body()]).headers["location"]
    patch = daemon.ok("DELETE", where + "?discard=true")
    equal((patch["state"], patch["revision"]), ("discarded", None), "state and revision")
    equal(samples("thrown"), before, "ground")
    problem(daemon.ask("DELETE", where + "?discard=perhaps"), 400, "discard")


@test("a patch of a locale or layer that is removed is discarded")
def _():
    for what in ("", "/layers/ground"):
        make("gone")
        where = post("gone", bodies=[body()]).headers["location"]
        wait(where, "settling", "active", "resting")
        equal(daemon.ask("DELETE", f"/v1/locales/gone{what}").status, 204, "delete")
        patch = wait(where, "discarded")
        check("deleted" in patch["reason"], f"reason: {patch['reason']}")
        daemon.ask("DELETE", "/v1/locales/gone")


@test("a body that comes later wakes a patch, and a push does")
def _():
    with Daemon("--gpu", "cpu", "--patch-speed", "0", "--patch-pause-ms", "300",
                "--patch-granules", "2000") as other:
        equal(other.put("/v1/models/box", BOX, media="model/obj").status, 201, "model")
        make("wake", other)
        where = post("wake", on=other).headers["location"]
        steps = wait(where, "resting", on=other)["steps"]
        answer = other.post(where + "/bodies", body(velocity=[0, 0, -2]))
        equal(answer.status, 201, str(answer))
        equal(answer.headers["location"], where + "/bodies/0", "Location")
        patch = wait(where, "active", on=other)
        patch = wait(where, "resting", on=other)
        check(patch["steps"] > steps, "no step was made")
        x = patch["bodies"][0]["position"][0]
        equal(other.ask("PATCH", where + "/bodies/0", {"velocity": [3, 0, 2]}).status, 200, "push")
        wait(where, "active", on=other)
        patch = wait(where, "resting", on=other)
        check(patch["bodies"][0]["position"][0] > x + 0.05, f"it was not moved: {patch['bodies']}")
        problem(other.ask("PATCH", where + "/bodies/0", {}), 400, "push")
        problem(other.ask("PATCH", where + "/bodies/0", {"velocity": [1000, 0, 0]}), 422, "1000")
        problem(other.ask("PATCH", where + "/bodies/7", {"velocity": [1, 0, 0]}), 404, "no body 7")
        answer = other.get(where + "/view.png?width=160&height=120")
        equal((answer.status, answer.media_type, answer.body[:4]), (200, "image/png", b"\x89PNG"),
              "picture")


def surface(where, query="", on=daemon, **headers):
    answer = on.get(where + "/surface.f32" + query, headers=headers)
    if answer.status != 200:
        return answer, None
    equal(answer.media_type, F32, "type of the surface")
    cols, rows = map(int, answer.headers["kota-grid"].split(","))
    equal(len(answer.body), 4 * cols * rows, "bytes of the surface")
    return answer, struct.unpack(f"<{cols * rows}f", answer.body)


def ground_of(before, patch):
    c0, r0, cols, rows = patch["rect"]
    return [before[r * SIDE + c] for r in range(r0, r0 + rows) for c in range(c0, c0 + cols)]


@test("the surface of a patch is told while it runs, and while it rests once")
def _():
    with Daemon("--gpu", "cpu", "--patch-speed", "0", "--patch-pause-ms", "200",
                "--patch-linger-ms", "3600000", "--patch-granules", "2000", "--patches-coarse", "0",
                "--patches-fine", "0", "--patches-medium", "0", f"--patches-{SCALE}", "1") as other:
        other.put("/v1/models/box", BOX, media="model/obj")
        make("seen", on=other)
        before = samples("seen", on=other)
        where = post("seen", on=other, bodies=[body(density=4000, velocity=[0, 0, -6])],
                     seed=3).headers["location"]
        patch = wait(where, "settling", "active", "resting", on=other)
        answer, heights = surface(where, on=other)
        equal(answer.headers["kota-rect"], ",".join(map(str, patch["rect"])), "rect")
        ground = ground_of(before, patch)
        cols, rows = patch["rect"][2:]
        for i in range(cols * rows):
            if i % cols in (0, cols - 1) or i // cols in (0, rows - 1):
                near(heights[i], ground[i], f"edge {i}", 1e-6)
            near(heights[i], ground[i], f"sample {i}", SPLASH)
        wait(where, "resting", on=other)
        answer, heights = surface(where, on=other)
        equal(answer.headers["kota-state"], "resting", "state")
        pit = min(h - g for h, g in zip(heights, ground))  # a coarse granule is as large as the box
        check(pit < -0.1, f"no pit: {pit}")
        # The step that was under way when it came to rest may still be told, but nothing after it.
        for _ in range(20):
            tag = answer.headers["etag"]
            again, _ = surface(where, on=other, **{"If-None-Match": tag})
            if again.status == 304:
                break
            answer, heights = surface(where, on=other)
            time.sleep(0.1)
        equal((again.status, again.headers["etag"], again.body), (304, tag, b""), "unchanged")
        finer, fine = surface(where, "?per_cell=3", on=other)
        equal(finer.headers["kota-grid"], f"{3 * (cols - 1) + 1},{3 * (rows - 1) + 1}", "grid")
        check(finer.headers["etag"] != tag, "one tag for two grids")
        mean = sum(fine) / len(fine)
        near(mean, sum(heights) / len(heights), "the means agree", 0.1)
        other.ask("PATCH", where + "/bodies/0", {"velocity": [3, 0, 2]})
        moving, _ = surface(where, on=other, **{"If-None-Match": tag})
        equal(moving.status, 200, "after a push")
        equal(other.get(where + "?discard=true").status, 400, "no such option of GET")
        equal(other.ask("DELETE", where + "?discard=true").status, 200, "discarded")
        ended, heights = surface(where, on=other)
        equal((ended.headers["kota-state"], list(heights)),
              ("discarded", ground_of(samples("seen", on=other), patch)), "the ground of all")
        check(list(heights) != ground, "the first rest was not written")
        for query in ("?per_cell=0", "?per_cell=17", "?per_cell=x", "?width=3"):
            problem(other.get(where + "/surface.f32" + query), 400)
        problem(other.get("/v1/locales/seen/patches/9/surface.f32"), 404)
        problem(other.get(where.replace("patches/", "patches/0")), 404, "no patch 0")


@test("states and poses are streamed, and the stream ends with the patch")
def _():
    make("stream")
    where = post("stream", bodies=[body()]).headers["location"]
    states, poses = [], 0
    with Stream(daemon.port, where + "/events") as stream:
        equal(stream.headers["content-type"], "text/event-stream", "Content-Type")
        while not states or states[-1] not in ENDS:
            block = dict(stream.block())
            if block.get("event") == "state":
                states.append(json.loads(block["data"])["state"])
            elif block.get("event") == "poses":
                poses += 1
                data = json.loads(block["data"])
                check(all(len(b["position"]) == 3 for b in data["bodies"]), f"{data}")
    order = ["filling", "settling", "active", "resting", "written"]
    equal(states, order[order.index(states[0]):], "states")
    check(poses >= 3, f"only {poses} poses")


@test("what cannot be is refused with a reason")
def _():
    make("bad", holes=[(20, 20)])
    cases = [
        (dict(center=[1, 6]), 422, "/size", "reaches"),
        (dict(center=[9, 9]), 422, "/center", "hole"),
        (dict(size=[1, 1]), 422, "/size", "8"),
        (dict(size=[1e300, 4]), 422, "/size", "reaches"),
        (dict(size=[0, 4]), 400, "/size", "above 0"),
        (dict(size=[4]), 400, "/size", "2"),
        (dict(center=None), 400, "/center", "center"),
        (dict(depth=0), 400, "/depth", "above 0"),
        (dict(depth=0.2), 422, "/depth", "granules"),
        (dict(depth=90), 413, "/size", "granules"),
        (dict(depth=1e6), 413, "/size", "granules"),
        (dict(depth=1e30), 413, "/size", "granules"),
        (dict(scale="huge"), 400, "/scale", "huge"),
        (dict(observer=[1, 2]), 400, "/observer", "3"),
        (dict(seed=-1), 400, "/seed", "-1"),
        (dict(nonsense=1), 400, "/nonsense", "nonsense"),
        (dict(material="water"), 400, "/material", "water"),
        (dict(material=3), 400, "/material", "string"),
        (dict(material={"friction": "rough"}), 400, "/material/friction", "number"),
        (dict(material={"cohesion": 1}), 400, "/material/cohesion", "cohesion"),
        (dict(layer="nope"), 422, None, "nope"),
        (dict(bodies=[{}]), 400, "/bodies/0/model", "string"),
        (dict(bodies=[body(model="ghost")]), 422, "/bodies/0/model", "ghost"),
        (dict(bodies=[body(position=[4.2, 6, 2])]), 422, "/bodies/0/position", "outside"),
        (dict(bodies=[body(position=[60, 6, 2])]), 422, "/bodies/0/position", "outside"),
        (dict(bodies=[body(position=[6, 6, -1])]), 422, "/bodies/0/position", "in the ground"),
        (dict(bodies=[body(position=[6, 6, 40])]), 422, "/bodies/0/position", "above"),
        (dict(bodies=[body(velocity=[0, 0, -1000])]), 422, "/bodies/0/velocity", "1000"),
        (dict(bodies=[body(angular_velocity=[0, 0, 1e4])]), 422, "/bodies/0/angular_velocity",
         "rad/s"),
        (dict(bodies=[body(orientation=[0, 0, 0, 2])]), 400, "/bodies/0/orientation", "unit"),
        (dict(bodies=[body(mass=1)]), 400, "/bodies/0/density", "both"),
        (dict(bodies=[body(density=0)]), 422, "/bodies/0/density", "above 0"),
        (dict(bodies=[body()] * 17), 422, "/bodies", "17"),
    ]
    for more, status, pointer, word in cases:
        problem(post("bad", status, **more), status, word, pointer=pointer)
    for name, least, most in (("friction", 0.1, 1.2), ("density", 100, 8000), ("damping", 0.25, 1),
                              ("stiffness", 0.5, 2)):
        for value, limit in ((0.9 * least, least), (1.1 * most, most), (0, least), (1e300, most)):
            refused = post("bad", 422, material={name: value})
            problem(refused, 422, name, pointer=f"/material/{name}")
            near(refused.json["limit"], limit, name, 1e-6)
            near(refused.json["got"], value, name)
    answer = daemon.post("/v1/locales/bad/patches", '{"center":[6,6],"size":[4,4],"bodies":[{'
                         '"model":"box","position":[6,6,2],"velocity":[NaN,0,0]}]}',
                         media="application/json")
    problem(answer, 400)
    equal(daemon.ok("GET", "/v1/locales/bad/patches")["patches"], [], "patches")
    problem(daemon.post("/v1/locales/nobody/patches", question()), 404, "nobody")
    for target in ("/v1/locales/bad/patches/999", "/v1/locales/bad/patches/x",
                   "/v1/locales/nobody/patches/1", "/v1/locales/bad/patches/1/events",
                   "/v1/locales/bad/patches/1/view.png",
                   "/v1/locales/bad/patches/1/surface.f32"):
        problem(daemon.get(target), 404)
    problem(daemon.ask("PUT", "/v1/locales/bad/patches/1", {}), 405)


@test("overlapping patches are refused, adjoining ones are not, and a pool has an end")
def _():
    def place(status=201, **more):
        return post("pool", status, **{"scale": "medium", "depth": 1, **more})

    make("pool")
    first = place(center=[3, 3]).headers["location"]
    problem(place(409, center=[4, 4]), 409, "shares ground", first.split("/")[-1])
    others = [place(center=c).headers["location"] for c in ([7, 3], [3, 7])]
    answer = place(503, center=[7, 7])
    problem(answer, 503, "all 3 patches of medium")
    check(int(answer.headers["retry-after"]) > 0, "Retry-After")
    problem(place(503, center=[7, 7], scale="fine"), 503, "fine")
    problem(place(503, center=[7, 7], observer=[7, 7, 3], scale="auto"), 503,
            "all 3 patches of medium")  # there are no fine ones here
    listed = daemon.ok("GET", "/v1/locales/pool/patches")["patches"]
    equal([p["id"] for p in listed], sorted(p["id"] for p in listed), "order")
    equal(len(listed), 3, "patches")
    stats = daemon.ok("GET", "/v1/stats")["patches"]["scales"]["medium"]
    equal((stats["slots"], stats["used"]), (3, 3), "slots")
    for where in [first, *others]:
        daemon.ok("DELETE", where + "?discard=true")
        place(center=[7, 7] if where == first else [3, 3] if where == others[0] else [7, 3])
    for patch in daemon.ok("GET", "/v1/locales/pool/patches")["patches"]:
        daemon.ok("DELETE", f"/v1/locales/pool/patches/{patch['id']}?discard=true")
    equal(daemon.ok("GET", "/v1/stats")["patches"]["scales"]["medium"]["used"], 0, "used")


@test("auto takes the finest granules that there is room for; too many are told with what would do")
def _():
    def ask(status=201, **more):
        answer = other.post("/v1/locales/wide/patches", {"center": [16, 16], **more})
        check(answer.status == status, f"expected {status}, got {answer} for {more}")
        if status != 201:
            return answer
        other.ok("DELETE", answer.headers["location"] + "?discard=true")
        return answer.json["scale"]

    with Daemon("--gpu", "cpu", "--patch-granules", "2000") as other:
        metre_field(other, "wide", 33)
        close, far = [16, 16, 3], [16, 16, 900]
        # 29.6 r³ each: 2 m under 4 m² are 2,162 fine ones, under 16 m² 1,081 medium, 135 coarse
        equal(ask(size=[3, 3], observer=close, depth=0.8), "fine", "all fit")
        equal(ask(size=[4, 4], observer=close), "medium", "8,648 fine ones do not")
        equal(ask(size=[4, 4], observer=far), "coarse", "no finer than suits the observer")
        equal(ask(size=[4, 4]), "medium", "without scale and observer")
        equal(ask(size=[8, 8]), "coarse", "4,324 medium ones do not fit")
        equal(ask(size=[8, 8], scale="auto", observer=close), "coarse", "nor do fine ones")
        said = ask(413, size=[8, 8], scale="medium")
        problem(said, 413, "4324 medium", "34594 fine", "540 coarse", "scale coarse", "depth 0.92 m",
                pointer="/size", limit=2000, got=4324)
        equal(ask(size=[8, 8], scale="medium", depth=0.92), "medium", "the depth that was told")
        said = ask(413, size=[8, 8], scale="fine")
        problem(said, 413, "scale coarse would do", limit=2000, got=34594)
        check("depth" not in said.json["detail"], f"no depth of fine ones would do: {said}")
        for scale in ("auto", "coarse", None):
            more = {"scale": scale} if scale else {}
            problem(ask(413, size=[20, 20], **more), 413, "3378 coarse", "only a smaller size",
                    pointer="/size", limit=2000, got=3378)
        said = ask(413, size=[8, 8], depth=1.2, observer=close)  # two coarse ones are 1.78 m
        problem(said, 413, "2594 medium", "depth 0.92 m", got=2594)
        problem(ask(413, size=[32, 32], scale="coarse", depth=1e300), 413, "would do", limit=2000)
        said = ask(413, size=[8, 8], scale="medium", fill="stacked", depth=3.2)
        problem(said, 413, "scale coarse", "depth", limit=2000)


@test("auto looks at the bodies: the smallest is five granules across where that fits")
def _():
    with Daemon("--gpu", "cpu", "--patch-granules", "9000") as other:
        metre_field(other, "wide", 33)
        for name, half in (("small", 0.3), ("middle", 0.58), ("large", 1.13)):
            other.ok("PUT", f"/v1/models/{name}", cube(half), status=201, media="model/obj")
        for names, more, scale in (
                (["middle"], {}, "fine"), (["large"], {}, "medium"), (["small"], {}, "fine"),
                (["large", "middle"], {}, "fine"), (["large"], {"observer": [16, 16, 3]}, "fine"),
                (["large"], {"observer": [16, 16, 900]}, "medium"),
                (["small"], {"scale": "medium"}, "medium"), ([], {}, "medium"),
                (["middle"], {"size": [8, 8]}, "medium")):
            bodies = [{"model": name, "position": [15.4 + 1.2 * i, 16, 4 + 3 * i]}
                      for i, name in enumerate(names)]
            answer = other.post("/v1/locales/wide/patches",
                                {"center": [16, 16], "size": [5, 5], "depth": 1, "bodies": bodies, **more})
            equal(answer.status, 201, f"{names} {more}: {answer}")
            other.ok("DELETE", answer.headers["location"] + "?discard=true")
            equal(answer.json["scale"], scale, f"{names} {more}")


@test("a patch says how long it will take, and a deadline refuses what would take longer")
def _():
    with Daemon("--gpu", "cpu", "--patch-granules", "16000", "--patch-linger-ms", "0") as other:
        metre_field(other, "wide", 33)
        other.put("/v1/models/box", BOX, media="model/obj")
        where = "/v1/locales/wide/patches"
        fall = {"model": "box", "position": [16, 16, 6], "density": 2000}
        asked = {"center": [16, 16], "size": [6, 6], "scale": "medium", "bodies": [fall]}
        said = other.post(where, {**asked, "deadline_ms": 1})  # measured before the answer
        problem(said, 413, "medium granules are at rest after", "nothing but a later deadline",
                pointer="/deadline_ms", limit=1)
        made = other.post(where, asked)
        equal(made.status, 201, str(made))
        told = made.json["estimated_ms"]
        check(0 < told["active"] < told["resting"], f"estimate: {told}")
        other.ok("DELETE", made.headers["location"] + "?discard=true")
        # What is left of a deadline after the fall is time for granules: a third of them fits.
        least = told["resting"] - told["active"]
        problem(other.post(where, {**asked, "size": [30, 30], "scale": "coarse",
                                   "deadline_ms": least + 1}), 413, pointer="/deadline_ms")
        auto = {name: value for name, value in asked.items() if name != "scale"}
        for _ in range(20):  # the rates are measured: other work on the machine may come between
            within = least + told["active"] / 2
            said = other.post(where, {**asked, "deadline_ms": within})
            answer = other.post(where, {**auto, "deadline_ms": within})
            if answer.status == 201 and said.status == 413 and "scale coarse" in said.json["detail"]:
                break
            for one in (said, answer):
                if one.status == 201:
                    other.ok("DELETE", one.headers["location"] + "?discard=true")
            made = other.post(where, asked)
            told = made.json["estimated_ms"]
            least = told["resting"] - told["active"]
            other.ok("DELETE", made.headers["location"] + "?discard=true")
        problem(said, 413, "scale coarse", "depth", pointer="/deadline_ms")
        depth = float(re.search(r"depth ([0-9.]+) m", said.json["detail"]).group(1))
        check(0.89 <= depth < 1.6, f"a depth that fits: {depth}")
        equal((answer.status, answer.json["scale"]), (201, "coarse"), "auto keeps the deadline")
        check(answer.json["estimated_ms"]["resting"] <= within, "it is kept")
        patch = wait(answer.headers["location"], "resting", "written", on=other)
        check(1e3 * patch["age_s"] < 4 * WAIT_S * 1e3 and patch["behind_ms"] >= 0, f"{patch}")
        for bad in (0, -5, "soon", [1]):
            problem(other.post(where, {**asked, "deadline_ms": bad}), 400, pointer="/deadline_ms")


@test("a patch that cannot follow the clock says by how much it is behind")
def _():
    for speed, is_behind in (("0", False), ("100000", True)):  # as fast as it goes; 1,000 times
        with Daemon("--gpu", "cpu", "--patch-granules", "4000", "--patch-speed", speed,
                    "--patch-pause-ms", "30000", "--patch-threads", "1") as other:
            metre_field(other, "wide", 33)
            other.put("/v1/models/box", BOX, media="model/obj")
            where = other.post("/v1/locales/wide/patches",
                               {"center": [16, 16], "size": [4, 4], "scale": "coarse",
                                "bodies": [{"model": "box", "position": [16, 16, 5]}]}).headers["location"]
            patch = wait(where, "active", "resting", on=other)
            deadline = time.monotonic() + WAIT_S
            while is_behind and patch["behind_ms"] < 1000 and time.monotonic() < deadline:
                patch = other.ok("GET", where)
                time.sleep(0.01)
            equal(patch["behind_ms"] >= 1000, is_behind, f"{speed}: {patch}")
            other.ok("DELETE", where + "?discard=true")


@test("two and four cells a side: nothing changes where nothing moves, and the ledger is what was written")
def _():
    with Daemon("--gpu", "cpu", "--patch-speed", "0", "--patch-pause-ms", "300",
                "--patch-linger-ms", "0") as other:
        other.put("/v1/models/box", BOX, media="model/obj")
        for side in (2, 4):
            name = f"small{side}"
            metre_field(other, name, 9)
            before = metre_heights(other, name, 9)
            where = f"/v1/locales/{name}/patches"
            scale, depth = (SCALE, DEPTH) if side == 4 else ("medium", 1)
            asked = {"center": [4, 4], "size": [side, side], "scale": scale, "depth": depth, "seed": 5}
            idle = wait(other.post(where, asked).headers["location"], "written", on=other)
            equal((idle["edit_rect"], metre_heights(other, name, 9)), (None, before), "idle ground")
            fallen = {"model": "box", "position": [4, 4, 3], "density": 4000, "velocity": [0, 0, -6]}
            patch = wait(other.post(where, {**asked, "bodies": [fallen]}).headers["location"],
                         "written", on=other)
            after = metre_heights(other, name, 9)
            changed = [i for i in range(81) if before[i] != after[i]]
            check(changed, f"{side}: nothing has changed: {patch}")
            inner = range(4 - side // 2 + 1, 4 + side // 2)
            check(all(i % 9 in inner and i // 9 in inner for i in changed),
                  f"{side}: changed on the edge or outside: {changed}")
            near(patch["mass_ledger"]["lost_m3"], sum(before[i] - after[i] for i in changed),
                 "what was lost", 1e-5)
        problem(other.post(where, {**asked, "size": [1, 4]}), 422, "two cells", "2 m are the least")
        problem(other.post(where, {**asked, "size": [3, 3], "scale": "coarse"}), 422)


@test("each patch has its own material, which it reports and its picture shows")
def _():
    own = {"friction": 0.9, "density": 1500, "damping": 0.5, "stiffness": 2}
    looks = {}
    for i, material in enumerate((None, "sand", "pebbles", "rubble", "snow", own, {})):
        make(f"of{i}")
        where = post(f"of{i}", **({} if material is None else {"material": material})).headers["location"]
        wait(where, "active", "resting")
        said = daemon.ok("GET", where)["material"]
        if isinstance(material, dict):
            for name, value in {"friction": 0.5, "density": 2000, "damping": 1, "stiffness": 1,
                                **material}.items():
                near(said[name], value, name, 1e-6)
        else:
            equal(said, material or "sand", "material")
        looks[str(material)] = daemon.get(where + "/view.png?width=160&height=120").body
        equal(daemon.ask("DELETE", where + "?discard=true").status, 200, "discarded")
    equal(len({looks[name] for name in ("sand", "pebbles", "rubble", "snow")}), 4, "pictures")
    equal(looks["None"], looks["sand"], "the daemon's own")


def poses_of(where, on=daemon):
    """All events of a patch, to its end."""
    with Stream(on.port, where + "/events") as stream:
        events = []
        while True:
            event = stream.event()
            if event is None:
                return events
            events.append(event)
            if event.name == "state" and event.data["state"] in ENDS:
                return events


@test("a shovel goes its way through the sand; its forces are reported, and the ledger closes")
def _():
    with Daemon("--gpu", "cpu", "--patch-speed", "100", "--patch-pause-ms", "300",
                "--patch-linger-ms", "0", "--patch-granules", "2000") as other:
        other.put("/v1/models/box", BOX, media="model/obj")
        make("dug", on=other)
        before = samples("dug", on=other)
        half = 0.5 ** 0.5
        path = [{"t": 0.2, "position": [5, 6, 1.2]},
                {"t": 0.9, "position": [5, 6, 0]},
                {"t": 2, "position": [6.8, 6, 0], "orientation": [0, 0, half, half]},
                {"t": 2.6, "position": [6.8, 6, 2], "orientation": [0, 0, half, half]}]
        where = post("dug", on=other, bodies=[{"model": "box", "mass": 0, "path": path}],
                     seed=3).headers["location"]
        events = poses_of(where, on=other)
        patch = other.ok("GET", where)
        equal((patch["state"], patch["bodies"][0]["mass"]), ("written", 0), "its end")
        poses = [event.data for event in events if event.name == "poses" and event.data["bodies"]]
        on_way = next(p for p in poses if 0.1 < p["bodies"][0]["position"][2] < 1.1)
        came_in = on_way["time_s"] - 0.2 - 0.7 * (1 - on_way["bodies"][0]["position"][2] / 1.2)
        seen = 0
        for pose in poses:
            body, told = pose["bodies"][0], pose["time_s"] - came_in
            i = next((i for i in range(1, 4) if told < path[i]["t"]), 3)
            a, b = path[i - 1], path[i]
            part = min(max((told - a["t"]) / (b["t"] - a["t"]), 0), 1)
            for k in range(3):
                near(body["position"][k], a["position"][k] + part * (b["position"][k] - a["position"][k]),
                     f"{told} s: position {k}", 1e-3)
            seen += math.hypot(*body["force"]) > 100
        check(seen >= 3, f"no force in {len(poses)} poses")
        near_all(patch["bodies"][0]["position"], path[-1]["position"], "the end of the path", 1e-5)
        near_all(patch["bodies"][0]["orientation"], path[-1]["orientation"], "and how", 1e-5)
        # it stirs the whole bed, by a centimetre where nothing is written
        ledger = check_ledger(patch["mass_ledger"], share=0.03)
        check(ledger["moved_m3"] > 0.02, f"nothing was moved: {ledger}")
        after = samples("dug", on=other)
        near(ledger["lost_m3"], 0.25 * (sum(before) - sum(after)), "what was lost", 1e-4)


@test("a patch waits for the end of a path, also in its pauses; such a body takes no push")
def _():
    with Daemon("--gpu", "cpu", "--patch-speed", "100", "--patch-pause-ms", "300",
                "--patch-linger-ms", "0", "--patch-granules", "2000") as other:
        other.put("/v1/models/box", BOX, media="model/obj")
        make("way", on=other)
        where = post("way", on=other, bodies=[{"model": "box", "mass": 0, "position": [6, 6, 5], "path": [
            {"t": 0, "position": [6, 6, 3]}, {"t": 30, "position": [6, 6.5, 3]}]}]).headers["location"]
        wait(where, "active", on=other)
        problem(other.ask("PATCH", where + "/bodies/0", {"impulse": [0, 0, -1]}), 422, "path")
        equal(other.ask("DELETE", where + "/bodies/0").status, 200, "removed")
        patch = wait(where, "written", on=other)
        check(patch["time_s"] < 20, f"it went on to the end of the path: {patch['time_s']}")
        make("stay", on=other)
        where = post("stay", on=other, bodies=[{"model": "box", "mass": 0, "path": [
            {"t": 0, "position": [6, 6, 3]}, {"t": 2, "position": [6, 6, 3]}]}]).headers["location"]
        patch = wait(where, "written", on=other)
        check(patch["time_s"] > 2.3, f"it rested in a pause of the path: {patch['time_s']}")


@test("paths that cannot be are refused with field, value and limit")
def _():
    make("paths")
    good = [{"t": 0, "position": [6, 6, 2]}, {"t": 1, "position": [6.5, 6, 1]}]

    def bad(pointer, status, word, path=good, limit=None, **more):
        body = {"model": "box", "mass": 0, "path": path, **more}
        said = post("paths", status, bodies=[{k: v for k, v in body.items() if v is not None}])
        problem(said, status, word, pointer="/bodies/0" + pointer, limit=limit)

    def second(**more):
        return [good[0], {**good[1], **more}]

    bad("/mass", 422, "needs a path", path=None, position=[6, 6, 2], limit=1e9)
    bad("/mass", 422, "mass 0", mass=3, limit=0)
    bad("/mass", 400, "mass 0", mass=None)
    bad("/density", 400, "both", density=3)
    bad("/path", 400, "array", path={})
    bad("/path", 422, "poses", path=[], limit=1)
    bad("/path", 422, "1001", path=[{"t": i / 2, "position": [6, 6, 2]} for i in range(1001)], limit=1000)
    bad("/path/1/t", 422, "ascend", path=second(t=0), limit=0)
    bad("/path/0/t", 422, "ascend", path=[{**good[0], "t": -1}], limit=0)
    bad("/path/1/t", 422, "600", path=second(t=601), limit=600)
    bad("/path/1/t", 400, "number", path=second(t="1"))
    bad("/path/1/position", 400, "position", path=[good[0], {"t": 1}])
    bad("/path/1/position", 400, "3", path=second(position=[1, 2]))
    bad("/path/1/orientation", 400, "unit", path=second(orientation=[0, 0, 0, 2]), limit=1)
    bad("/path/1/nonsense", 400, "nonsense", path=second(nonsense=1))
    bad("/path/1/position", 422, "outside", path=second(position=[4.1, 6, 2]))
    bad("/path/1/position", 422, "above", path=second(position=[6, 6, 40]), limit=20)
    bad("/path/1/position", 422, "in the ground", path=second(position=[6, 6, -5]))
    bad("/path/0/position", 422, "in the ground", path=[{"t": 0, "position": [6, 6, -1]}])
    bad("/path/1/position", 422, "m/s", path=second(t=0.001))
    bad("/path/1/orientation", 422, "rad/s",
        path=[good[0], {"t": 0.001, "position": [6, 6, 2], "orientation": [0, 0, 1, 0]}])
    bad("/velocity", 400, "path", velocity=[0, 0, 1])
    bad("/angular_velocity", 400, "path", angular_velocity=[0, 0, 1])


@test("a full scale spills into the next coarser one where asked, also at the last moment")
def _():
    with Daemon("--gpu", "cpu", "--patches-fine", "1", "--patches-medium", "1", "--patches-coarse", "2",
                "--patch-granules", "9000", "--patch-linger-ms", "3600000", "--workers", "4") as other:
        other.put("/v1/models/box", BOX, media="model/obj")
        metre_field(other, "wide", 65)
        where = "/v1/locales/wide/patches"

        def asked(x, y, **more):
            return {"center": [x, y], "size": [4, 4], "depth": 1.8, "scale": "medium", **more}

        first = other.post(where, asked(6, 6, overflow=True))
        equal((first.status, first.json["scale"]), (201, "medium"), "there is room")
        problem(other.post(where, asked(12, 6)), 503, "all 1 patches of medium")
        problem(other.post(where, asked(12, 6, overflow=False)), 503, "all 1 patches of medium")
        problem(other.post(where, asked(12, 6, overflow=1)), 400, "overflow", pointer="/overflow")
        small = other.post(where, asked(12, 6, overflow=True, size=[2, 2]))
        problem(small, 503, "all 1 patches of medium")  # coarse granules do not suit it
        check(int(small.headers["retry-after"]) >= 1, "Retry-After")
        body = {"model": "box", "position": [12, 6, 3], "density": 3000}
        second = other.post(where, asked(12, 6, overflow=True, bodies=[body]))
        equal((second.status, second.json["scale"], len(second.json["bodies"])), (201, "coarse", 1), "spilt")
        finer = other.post(where, asked(18, 6, overflow=True, scale="fine", size=[2, 2], depth=0.5))
        equal((finer.status, finer.json["scale"]), (201, "fine"), "there is room")
        third = other.post(where, asked(24, 6, overflow=True, scale="fine"))  # over a full one
        equal((third.status, third.json["scale"]), (201, "coarse"), "spilt twice")
        full = other.post(where, asked(30, 6, overflow=True, scale="fine"))
        problem(full, 503, "all 1 patches of fine")
        check(int(full.headers["retry-after"]) >= 1, "Retry-After")
        for made in (first, second, third):
            other.ok("DELETE", made.headers["location"] + "?discard=true")
        # at once: all of them see room, and all but one find none when their turn comes
        for turn in range(5 if ALL else 2):
            answers = []

            def post_one(k):
                connection = connection_to(other.port)
                connection.request("POST", where, json.dumps(asked(6 + 8 * k, 20, overflow=True)),
                                   {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answers.append((answer.status, json.loads(answer.read())))
                connection.close()

            threads = [threading.Thread(target=post_one, args=(k,)) for k in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            equal(sorted((status, said.get("scale")) for status, said in answers if status == 201),
                  [(201, "coarse"), (201, "coarse"), (201, "medium")], "scales")
            equal(sorted(status for status, said in answers), [201, 201, 201, 503], "statuses")
            for status, said in answers:
                if status == 201:
                    other.ok("DELETE", f"{where}/{said['id']}?discard=true")


@test("answers to writes name a revision, and DELETE looks at If-Match, too")
def _():
    make("told")
    made = post("told", bodies=[body()], material="sand")
    where = made.headers["location"]
    more = daemon.post(where + "/bodies", body(position=[6.9, 6, 2]))
    push = daemon.ask("PATCH", where + "/bodies/0", {"velocity": [0, 0, -1]})
    equal([(a.status, a.headers.get("kota-revision")) for a in (made, more, push)],
          [(201, "2"), (201, "2"), (200, "2")], "Kota-Revision")
    for tag in ('"1"', '"77"'):
        answer = daemon.ask("DELETE", where, headers={"If-Match": tag})
        problem(answer, 412, pointer="If-Match")
    check(daemon.ok("GET", where)["state"] not in ENDS, "it goes on")
    gone = daemon.ask("DELETE", where, headers={"If-Match": '"2"'})
    equal((gone.status, gone.json["state"], gone.json["revision"],
           gone.headers.get("kota-revision")), (200, "written", 3, "3"), "written")
    again = daemon.ask("DELETE", where)
    equal(again.headers.get("kota-revision"), "3", "as it ended")


@test("an Idempotency-Key makes one patch of two requests, another request under it is 422")
def _():
    make("key")
    ask = question()
    answers = [daemon.post("/v1/locales/key/patches", ask, headers={"Idempotency-Key": "k1"})
               for _ in range(2)]
    equal([a.status for a in answers], [201, 201], "status")
    equal(answers[0].headers["location"], answers[1].headers["location"], "Location")
    equal(answers[1].headers.get("idempotency-replayed"), "true", "Idempotency-Replayed")
    problem(daemon.post("/v1/locales/key/patches", {**ask, "seed": 9},
                        headers={"Idempotency-Key": "k1"}), 422, "Idempotency-Key")
    problem(daemon.post("/v1/locales/key/patches", question(center=[6, 6.5]),
                        headers={"If-Match": '"77"'}), 412)
    daemon.ok("DELETE", answers[0].headers["location"] + "?discard=true")


@test("a repeat under an Idempotency-Key has the first answer, whatever the patch is by now")
def _():
    def again(method, where, first, key, ask=None, **headers):
        repeat = daemon.ask(method, where, ask, headers={"Idempotency-Key": key, **headers})
        equal((repeat.status, repeat.json, repeat.headers.get("location"),
               repeat.headers.get("idempotency-replayed")),
              (first.status, first.json, first.headers.get("location"), "true"), where)

    def keyed(method, where, key, ask=None, **headers):
        return daemon.ask(method, where, ask, headers={"Idempotency-Key": key, **headers})

    make("again")
    patches, ask = "/v1/locales/again/patches", question(center=[3, 3])
    first = keyed("POST", patches, "a", ask, **{"If-Match": '"2"'})
    equal(first.status, 201, str(first))
    where = first.headers["location"]
    for center in ([7, 3], [3, 7]):
        post("again", center=center)
    post("again", 503, center=[7, 7])
    again("POST", patches, first, "a", ask)
    drop = body(position=[3, 3, 3])
    one = keyed("POST", where + "/bodies", "b", drop)
    equal(one.headers.get("location"), where + "/bodies/0", f"Location: {one}")
    equal(daemon.post(where + "/bodies", body(position=[3, 3, 5])).headers.get("location"),
          where + "/bodies/1", "Location")
    again("POST", where + "/bodies", one, "b", drop)
    gone = keyed("DELETE", where, "c")
    equal((gone.status, gone.json["state"]), (200, "written"), "end")
    again("DELETE", where, gone, "c")
    again("POST", where + "/bodies", one, "b", drop)
    again("POST", patches, first, "a", ask, **{"If-Match": '"2"'})
    problem(keyed("POST", where + "/bodies", "c", drop), 422, "Idempotency-Key")
    for patch in daemon.ok("GET", patches)["patches"]:
        daemon.ok("DELETE", f"{patches}/{patch['id']}?discard=true")


@test("SIGTERM writes back what rests, and answers who waits")
def _():
    with Daemon("--gpu", "cpu", "--patch-speed", "0", "--patch-pause-ms", "300",
                "--patch-granules", "2000", "--drain-ms", "600000", "--data", "data") as other:
        equal(other.put("/v1/models/box", BOX, media="model/obj").status, 201, "model")
        make("end", other)
        where = post("end", on=other, bodies=[body()], seed=3).headers["location"]
        wait(where, "settling", "active", on=other)
        before = other.ok("GET", "/v1/locales/end")["revision"]
        folder = other.folder
        other.connection.close()
        other.connection = None
        other.process.terminate()
        equal(other.process.wait(WAIT_S), 0, "exit status")
        log = other.log_text()
        check("is written" in log, f"log: {log[-500:]}")
        equal(before, 2, "revision before")
        check(folder, "folder")


@test("a shell is made once, also over a restart")
def _():
    folder = tempfile.mkdtemp(prefix="kota-shells-")
    try:
        for built, loaded in ((1, 0), (0, 1)):
            with Daemon("--gpu", "cpu", "--patch-granules", "2000", "--data",
                        os.path.join(folder, "data")) as other:
                if built:
                    equal(other.put("/v1/models/box", BOX, media="model/obj").status, 201, "model")
                    make("shell", other)
                for _ in range(2):
                    where = post("shell", on=other, bodies=[body(), body(position=[7, 7, 3])])
                    other.ok("DELETE", where.headers["location"] + "?discard=true")
                stats = other.ok("GET", "/v1/stats")["patches"]
                equal((stats["shells_built"], stats["shells_loaded"], stats["shell_hits"]),
                      (built, loaded, 5), "built, loaded, found; the first is decoded twice, "
                      "before and after the pool is made")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


run(daemon.stop)
