"""Bodies at rest become layers ("leave": "layer"), in one publication with the ground they made.

A ray through each place must meet a body where its triangles are, by an oracle of its own; the
layers and the ground must be the same after kill -9. By the C engine. In the long form more than 100 bodies.
"""
import math
import random
import shutil
import tempfile
import threading
import time

from daemon import Daemon, check, equal, problem
from events import Stream
from fields import put_terrain
from sand import (CPU, ENDED, RUN, body, box, fill, gap, heights, land, make, revision, second, until,
                  wanted)
from solids import hits, triangles
from tap import ALL, near, run, test

PATCHES, BODIES = (9, 12) if ALL else (2, 4)

def check_rays(daemon, bodies, count=40, name="land"):
    """Rays at each body, from all around, hit the nearest triangle of all of them or the ground."""
    rng = random.Random(7)
    all_of = {one["layer"]: triangles(one) for one in bodies}
    rays, expected = [], []
    for one in bodies:
        for _ in range(count):
            to = [c + rng.uniform(-0.3, 0.3) for c in one["position"]]
            along = [rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(-2, -0.2)]
            origin = [t - 6 * d for t, d in zip(to, along)]
            rays.append({"origin": origin, "direction": along})
            expected.append(hits(all_of, origin, along)[0])
    answers = daemon.ok("POST", f"/v1/locales/{name}/ray", {"rays": rays})["results"]
    seen = set()
    for ray, (t, name), hit in zip(rays, expected, answers):
        if hit["layer"] == "ground":
            check(hit["t"] < t, f"the ground is after {name} at {t}: {hit}, {ray}")
            continue
        equal(hit["layer"], name, f"layer of {ray}")
        near(hit["t"], t, f"t of {name}, {ray}", 1e-9)
        check("body" not in hit, "a layer is no body")
        seen.add(name)
    equal(seen, set(all_of), "bodies that rays have met")


def settled(daemon, place):
    patch = daemon.ok("GET", place)
    while patch["state"] not in ENDED:
        time.sleep(0.01)
        patch = daemon.ok("GET", place)
    equal((patch["state"], patch["reason"]), ("written", None), "the end")
    return patch


def spread(daemon, k):
    """A patch with bodies on a grid, in its own ninth of the land; its address."""
    x, y = 5.5 + 10.5 * (k % 3), 5.5 + 10.5 * (k // 3)
    bodies = [body(position=[x + 2.2 * (i % 4 - 1.5), y + 2.2 * (i // 4 - 1), 1.6 + 0.3 * (i % 3)],
                   velocity=[0, 0, -3]) for i in range(BODIES)]
    answer = daemon.post("/v1/locales/land/patches",
                         wanted(x, y, bodies, size=[9, 9], leave="layer", seed=k))
    equal(answer.status, 201, f"status of {answer}")
    equal(answer.json["leave"], "layer", "leave")
    equal({one["layer"] for one in answer.json["bodies"]}, {None}, "layers of new bodies")
    return answer.headers["location"]


class Watcher(threading.Thread):
    """Reads the locale again and again: how many layers it has at each revision."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.other, self.layers, self.is_over = second(daemon), {}, False

    def run(self):
        while not self.is_over:
            locale = self.other.ok("GET", "/v1/locales/land")
            self.layers[locale["revision"]] = {layer["id"] for layer in locale["layers"]}
            time.sleep(0.002)

    def stop(self):
        self.is_over = True
        self.join()


@test(f"{PATCHES * BODIES} bodies at rest become layers, half of them go, and all is there after kill -9")
def _():
    folder = tempfile.mkdtemp(prefix="kota-test-leave-")
    flags = (*CPU, *RUN, "--patch-linger-ms", "3600000", "--patches-coarse", str(PATCHES), "--data", folder)
    daemon = Daemon(*flags)
    try:
        fill(daemon, "land")
        began = revision(daemon, "land")
        watcher = Watcher(daemon)
        with Stream(daemon.port, "/v1/locales/land/events") as feed:
            watcher.start()
            patches = [settled(daemon, place) for place in [spread(daemon, k) for k in range(PATCHES)]]
            events = [feed.edit() for _ in range(PATCHES * (BODIES + 1))]
        watcher.stop()
        equal([event.id for event in events],
              [began + 1 + i for i in range(len(events))], "revisions, one after another")
        for patch in patches:
            names = [one["layer"] for one in patch["bodies"]]
            equal(names, [f"patch-{patch['id']}-body-{i}" for i in range(BODIES)], "names")
            last = events[patch["revision"] - began - 1 - BODIES:patch["revision"] - began]
            equal([event.data["source"] for event in last], ["patch"] + BODIES * ["layer"], "sources")
            equal([event.data["layer"] for event in last[1:]], names, "layers of the events")
            equal(last[0].data["rect"], patch["edit_rect"], "rect of the ground")
            for at, layers in watcher.layers.items():
                check(not patch["revision"] - BODIES <= at < patch["revision"],
                      f"revision {at} was seen, between the ground and the last of its bodies")
                equal(set(names) <= layers, at >= patch["revision"], f"layers at {at}")
        bodies = [one for patch in patches for one in patch["bodies"]]
        worst = max(gap(daemon, "land", one) for one in bodies)
        check(worst <= 0.005, f"a body hovers {worst} m above the ground")
        check_rays(daemon, bodies)
        gone, left = bodies[::2], bodies[1::2]
        for one in gone:
            daemon.ok("DELETE", f"/v1/locales/land/layers/{one['layer']}", status=204)
        check_rays(daemon, left)
        before, at = heights(daemon, "land"), revision(daemon, "land")
        daemon.process.kill()
        daemon.process.wait()
        daemon = Daemon(*flags)
        equal((revision(daemon, "land"), heights(daemon, "land")), (at, before), "after kill -9")
        equal({layer["id"] for layer in daemon.ok("GET", "/v1/locales/land")["layers"]},
              {"ground", *(one["layer"] for one in left)}, "layers after kill -9")
        check_rays(daemon, left)
        check(max(gap(daemon, "land", one) for one in left) <= 0.005, "they hover after kill -9")
        again = settled(daemon, make(daemon, "land", 25, 25, bodies=[body(25, 25), body(24, 24, position=[
            23.6, 23.6, 6])], leave="layer"))
        taken = f"patch-{again['id']}-body-1"
        equal([one["layer"] for one in again["bodies"]],
              [f"patch-{again['id']}-body-0", taken + ("-2" if taken in {one["layer"] for one in left} else "")],
              "names of which one is taken")
    finally:
        daemon.kill()
        shutil.rmtree(folder, ignore_errors=True)


def layers_of(name):
    return {layer["id"] for layer in plain.ok("GET", f"/v1/locales/{name}")["layers"]} - {"ground"}


plain = Daemon(*CPU, *RUN, "--patch-linger-ms", "3600000", "--patches-coarse", "2")


@test("removed bodies are not left, nor those of a patch that is discarded; one without bodies lingers")
def _():
    fill(plain, "land")
    place = make(plain, "land", bodies=[body(), body(14.5, 17.5, position=[14.5, 17.5, 3])], leave="layer")
    plain.ok("DELETE", place + "/bodies/0")
    patch = settled(plain, place)
    equal([one["layer"] for one in patch["bodies"]], [f"patch-{patch['id']}-body-1"], "left")
    equal(layers_of("land"), {f"patch-{patch['id']}-body-1"}, "layers")
    place = make(plain, "land", bodies=[body()], leave="layer")
    patch = plain.ok("DELETE", place + "?discard=true")
    equal((patch["state"], patch["bodies"][0]["layer"]), ("discarded", None), "discarded")
    equal(len(layers_of("land")), 1, "layers after that")
    place = make(plain, "land", leave="layer")
    patch = until(plain, place, "resting")
    equal((patch["closing"], patch["leave"]), (False, "layer"), "without bodies")
    plain.post(place + "/bodies", body())
    patch = settled(plain, place)
    equal(layers_of("land") - {patch["bodies"][0]["layer"]}, layers_of("land") - {
        f"patch-{patch['id']}-body-0"}, "a body that came later")
    equal(len(layers_of("land")), 2, "layers with it")
    problem(plain.post(place + "/bodies", body()), 409)


@test("a body on a path is left at the last pose of it, and so is what lies on it; removed, it is not")
def _():
    put_terrain(plain, "table", land())
    turn = [0.0, 0.0, math.sin(0.2), math.cos(0.2)]
    table = {"model": "box", "mass": 0, "path": [
        {"t": 0, "position": [15, 15, 2.5]},
        {"t": 1, "position": [16.25, 16.5, 0.375], "orientation": turn}]}
    on_it = body(position=[16.25, 16.5, 4.5], velocity=[0, 0, -1], mass=500)
    patch = settled(plain, make(plain, "table", bodies=[table, on_it], leave="layer"))
    first, second = patch["bodies"]
    equal((first["layer"], second["layer"]),
          tuple(f"patch-{patch['id']}-body-{i}" for i in range(2)), "layers")
    for got, want in zip(first["position"] + first["orientation"], [16.25, 16.5, 0.375] + turn):
        near(got, want, "the end of the path", 1e-6)
    check(second["position"][2] > 1, f"it lies on the other: {second['position']}")
    check_rays(plain, [first, second], name="table")
    for name in (first["layer"], second["layer"]):
        plain.ok("DELETE", f"/v1/locales/table/layers/{name}", status=204)
    place = make(plain, "table", bodies=[table, on_it], leave="layer")
    plain.ok("DELETE", place + "/bodies/0")
    patch = settled(plain, place)
    equal([one["layer"] for one in patch["bodies"]], [f"patch-{patch['id']}-body-1"], "without the table")
    check(gap(plain, "table", patch["bodies"][0]) <= 0.005, "what would lie on it lies on the ground")


@test("with no room for its layers a patch is refused, or leaves its ground only, and says why")
def _():
    put_terrain(plain, "full", land())
    most = plain.ok("GET", "/v1/limits")["layers_max"]
    for i in range(most - 2):
        plain.ok("PUT", f"/v1/locales/full/layers/l{i}", box(0.1), status=201, media="model/obj")
    answer = plain.post("/v1/locales/full/patches", wanted(bodies=[body(), body(14, 14)], leave="layer"))
    problem(answer, 413, "layer", pointer="/leave", limit=most)
    place = make(plain, "full", bodies=[body()], leave="layer")
    plain.ok("PUT", "/v1/locales/full/layers/last", box(0.1), status=201, media="model/obj")
    patch = plain.ok("GET", place)
    while patch["state"] not in ENDED:
        time.sleep(0.01)
        patch = plain.ok("GET", place)
    equal((patch["state"], patch["bodies"][0]["layer"]), ("written", None), f"the end: {patch}")
    check("not left" in patch["reason"] and str(most) in patch["reason"], patch["reason"])
    check(patch["edit_rect"], "its ground is written")
    equal(revision(plain, "full"), patch["revision"], "revision")


@test("leave is layer or nothing")
def _():
    for wrong in ("mesh", 1, True, []):
        answer = plain.post("/v1/locales/land/patches", wanted(bodies=[body()], leave=wrong))
        problem(answer, 400, pointer="/leave")
    place = make(plain, "land", leave=None)
    equal(plain.ok("DELETE", place + "?discard=true")["leave"], None, "leave")


try:
    run()
finally:
    plain.kill()
