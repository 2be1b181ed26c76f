"""Live answers: with live=true the ground of a locale has the surface of its living patches.

What a live answer must be is that of a twin: a locale without patches that was given the live
samples as its layer; and a live sample must be that of surface.f32?per_cell=1. By the C engine.
"""
import os
import random
import struct
import sys
import threading
import time

from daemon import F32, ROOT, check, equal, problem
from fields import put_terrain
from models import BOX
from oracle import Terrain
from sand import (CPU, GRANULE_M, RESTING, SIDE, SPACING, body, heights, land, make, second,
                  start, until)
from tap import HANG_S, near, run, test

sys.path.insert(0, os.path.join(ROOT, "client", "python"))
import kota  # noqa: E402

daemon = start(*CPU, *RESTING, "--patches-coarse", "3", names=("land", "twin"))
LIVE = "live=true"
GRID = [(c * SPACING, r * SPACING) for r in range(SIDE) for c in range(SIDE)]
BODY_OF_GRID = struct.pack(f"<{2 * len(GRID)}f", *(v for point in GRID for v in point))


def samples(name, query="", on=daemon):
    """Every sample, row by row, and the answer's headers."""
    answer = on.post(f"/v1/locales/{name}/height?interp=nearest{query}", BODY_OF_GRID, media=F32)
    equal(answer.status, 200, f"samples: {answer}")
    return struct.unpack(f"<{len(GRID)}f", answer.body), answer.headers


def surface(place, on=daemon):
    """(rect, heights) of a patch, as renderers get them."""
    answer = on.get(place + "/surface.f32?per_cell=1")
    equal(answer.status, 200, f"surface: {answer}")
    rect = [int(n) for n in answer.headers["kota-rect"].split(",")]
    return rect, struct.unpack(f"<{rect[2] * rect[3]}f", answer.body)


def with_surface(settled, place, on=daemon):
    """The samples with those inside the patch's edge from its surface; the mean difference there."""
    (c0, r0, cols, rows), top = surface(place, on)
    values = list(settled)
    for r in range(1, rows - 1):
        for c in range(1, cols - 1):
            values[(r0 + r) * SIDE + c0 + c] = top[r * cols + c]
    return values, [(r0 + r) * SIDE + c0 + c for r in range(1, rows - 1) for c in range(1, cols - 1)]


def questions(rng):
    """(method, path and query, body, media) of every call that takes live=, near the patch."""
    def at():
        return [rng.uniform(11, 21), rng.uniform(11, 21)]
    for k in range(12):
        x, y = at()
        eye, target = [x, y, 9.0], [*at(), 0.0]
        yield "GET", f"/height?x={x}&y={y}&fields=normal,cell", None, None
        yield "POST", "/height", {"points": [at() for _ in range(9)], "interp": "bilinear"}, None
        yield "POST", "/height?status=true", struct.pack("<8f", *(v for _ in range(4) for v in at())), F32
        yield "GET", f"/contact?x={x}&y={y}&z=2", None, None
        yield "POST", "/contact", {"points": [[*at(), 1.5] for _ in range(5)], "clearance": 1}, None
        yield "GET", f"/ray?origin={x},{y},5&direction=0.3,-0.2,-1", None, None
        yield "POST", "/ray", {"mode": "all", "rays": [
            {"origin": [*at(), 3], "direction": [rng.uniform(-1, 1), rng.uniform(-1, 1), -0.2]}
            for _ in range(5)]}, None
        yield "POST", "/ray", struct.pack("<7f", x, y, 5, 0.1, 0.2, -1, 100), F32
        yield "GET", f"/los?from={x},{y},0.4&to={target[0]},{target[1]},0.4", None, None
        yield "POST", "/los", {"segments": [{"from": [*at(), 0.3], "to": [*at(), 0.3]}
                                            for _ in range(5)]}, None
        camera = {"eye": eye, "target": target, "up": [0, 1, 0.1], "fov_y_deg": 60}
        yield "POST", "/pick", {"camera": camera, "viewport": [640, 480],
                                "pixels": [[rng.uniform(0, 640), rng.uniform(0, 480)]
                                           for _ in range(4)], "tile_side": 2}, None
        yield ("GET", f"/pick?eye={x},{y},9&target={target[0]},{target[1]},0&up=0,1,0.1&viewport=640,480"
               "&pixel=320,240", None, None)
        yield "POST", "/contains", {"points": [[*at(), rng.uniform(-0.5, 0.5)] for _ in range(9)]}, None
        yield "POST", "/contains", struct.pack("<3f", x, y, 0.05), F32
        yield "POST", "/profile", {"path": [at(), at(), at()], "samples": 40}, None


def ask(name, question, live="", on=daemon):
    method, path, asked, media = question
    joined = path + ("?" if "?" not in path else "&") + live if live else path
    return on.ask(method, f"/v1/locales/{name}{joined}", asked, media=media)


def told(answer):
    """An answer without the name and the revision of its locale."""
    if answer.headers["content-type"] != "application/json":
        return answer.body
    return {key: value for key, value in answer.json.items() if key not in ("locale", "revision")}


def revision(name="land", on=daemon):
    return on.ok("GET", f"/v1/locales/{name}")["revision"]


def written(place):
    """Waits until a patch is at rest and its ground is everybody's, which is a moment later."""
    deadline = time.monotonic() + HANG_S
    while until(daemon, place, "resting")["revision"] is None:
        check(time.monotonic() < deadline, "its rest is not written")
        time.sleep(0.01)


def resting(name="land"):
    """A patch at rest whose surface differs from what it wrote. Its body is gone: a body is hit, too."""
    place = make(daemon, name, bodies=[body()], seed=3)
    written(place)
    daemon.ok("DELETE", place + "/bodies/0")
    until(daemon, place, "active")
    written(place)
    return place


def made(on=daemon):
    return on.ok("GET", "/v1/stats")["patches"]["live_made"]


def discard(place, on=daemon):
    on.ok("DELETE", place + "?discard=true")


@test("without a living patch a live answer is the settled one, and is not to be stored")
def _():
    rng = random.Random(1)
    for question in questions(rng):
        settled, live, here = (ask("land", question, how) for how in ("", LIVE, "live=here"))
        equal((live.status, live.body, here.body), (settled.status, settled.body, settled.body),
              f"{question}")
        equal(live.headers.get("cache-control"), "no-store", "Cache-Control")
        equal(settled.headers.get("cache-control"), None, "Cache-Control without live")
        equal(ask("land", question, "live=false").headers.get("cache-control"), None, "live=false")
    equal(made(), 0, "values made")


@test("live samples are those of the patch's surface, and every live answer is that of their field")
def _():
    before = [ask("land", question).status for question in questions(random.Random(2))]
    check(set(before) == {200}, f"statuses {before}")
    place = resting()
    settled, headers = samples("land")
    live, live_headers = samples("land", "&" + LIVE)
    expected, inside = with_surface(settled, place)
    equal(live, tuple(expected), "live samples")
    check(sum(live[i] != settled[i] for i in inside) > len(inside) / 2, "the surface is not seen")
    equal(live_headers["kota-revision"], headers["kota-revision"], "revision")
    equal(daemon.put("/v1/locales/twin/layers/ground?" + land().query(),
                     struct.pack(f"<{len(live)}f", *live), media=F32).status, 200, "the twin")
    different = 0
    for question in questions(random.Random(3)):
        answer, twin, plain = ask("land", question, LIVE), ask("twin", question), ask("land", question)
        equal((answer.status, twin.status, plain.status), (200, 200, 200), f"{question}: {answer}")
        equal(told(answer), told(twin), f"{question}")
        equal(answer.headers["kota-revision"], plain.headers["kota-revision"], "revision")
        equal(answer.headers["cache-control"], "no-store", "Cache-Control")
        different += told(plain) != told(answer)
    check(different > 60, f"only {different} answers differ from the settled ones")
    ground = Terrain(SIDE, SIDE, [live[r * SIDE:(r + 1) * SIDE] for r in range(SIDE)],
                     (SPACING, SPACING))
    rng = random.Random(4)
    points = [[rng.uniform(12, 20), rng.uniform(12, 20)] for _ in range(120)]
    answer = daemon.ok("POST", f"/v1/locales/land/height?{LIVE}", {"points": points})
    rays = daemon.ok("POST", f"/v1/locales/land/ray?{LIVE}", {"rays": [
        {"origin": [x, y, 4], "direction": [0.4, 0.3, -1]} for x, y in points]})
    for (x, y), got, ray in zip(points, answer["results"], rays["results"]):
        near(got["height"], ground.height(x, y)[1], f"height at {x}, {y}", 1e-9)
        near(ray["t"], ground.hits((x, y, 4), (0.4, 0.3, -1))[0].t, f"ray from {x}, {y}", 1e-6)
        single = daemon.ok("GET", f"/v1/locales/land/height?x={x!r}&y={y!r}&{LIVE}")
        equal(single["height"], got["height"], "one of a batch")
    with kota.Client(daemon.url, timeout_s=HANG_S) as client:
        at = [16.1, 16.2]
        asked = [client.get_height("land", *at, live=True)["height"],
                 client.height("land", [at], live=True)["results"][0]["height"],
                 client.height_batch("land", [at], live="here").array[0]]
        equal(asked, [ground.height(*at)[1]] * 3, "heights by the client for Python")
        check(client.height("land", [at], live=False)["results"][0]["height"] != asked[0], "live=False")
    discard(place)
    after, _ = samples("land", "&" + LIVE)
    equal(after, samples("land")[0], "live samples once the patch has ended")


@test("while a body falls, settled bits stay, and live heights follow the surface twice a second")
def _():
    start_samples, at = samples("land")[0], revision()
    tile = daemon.get("/v1/locales/land/tiles/0/0/0?format=f32")
    window = "/v1/locales/land/layers/ground/samples?rect=20,20,24,24"
    whole, settled = daemon.get(window), ask("land", ("GET", "/height?x=16.1&y=16.2", None, None))
    slow = start(*CPU, "--patch-pause-ms", "600000")
    try:
        equal(samples("land", on=slow)[0], tuple(v for row in land().h for v in row), "settled before")
        bits, tag = heights(slow, "land"), slow.get("/v1/locales/land/tiles/0/0/0").headers["etag"]
        place = make(slow, "land", bodies=[body()], seed=3)
        errors, moved = [], 0.0
        until(slow, place, "active")
        while len(errors) < 6:
            live, headers = samples("land", "&" + LIVE, slow)
            expected, inside = with_surface(live, place, slow)
            errors.append(sum(abs(live[i] - expected[i]) for i in inside) / len(inside))
            moved = max(moved, max(abs(live[i] - start_samples[i]) for i in inside))
            equal(headers["kota-revision"], str(revision("land", slow)), "revision")
            equal((heights(slow, "land"), slow.get("/v1/locales/land/tiles/0/0/0").headers["etag"]),
                  (bits, tag), "settled tile")
            time.sleep(0.5)
        print(f"# mean difference {sum(errors) / len(errors) / GRANULE_M:.4f} D, most {max(errors) / GRANULE_M:.4f} D")
        check(sum(errors) / len(errors) <= 0.1 * GRANULE_M, f"mean differences {errors} m")
        check(moved > 0.1, f"nothing moved: {moved}")
        discard(place, slow)
    finally:
        slow.kill()
    equal((daemon.get("/v1/locales/land/tiles/0/0/0?format=f32").body, daemon.get(window).body,
           ask("land", ("GET", "/height?x=16.1&y=16.2", None, None)).body, revision()),
          (tile.body, whole.body, settled.body, at), "the settled ground of the other daemon")


@test("an acknowledged edit is in the next live answer, inside the patch and beside it")
def _():
    place = resting()
    samples("land", "&" + LIVE)
    for k, (c, r) in enumerate([(2, 2), (30, 30), (40, 8), (33, 34)]):
        edit = daemon.ok("POST", "/v1/locales/land/edits",
                         {"op": "add", "rect": [c, r, 3, 3], "heights": [0.25 + k] * 9})
        live, headers = samples("land", "&" + LIVE)
        equal(int(headers["kota-revision"]), edit["revision"], "revision")
        equal(live, tuple(with_surface(samples("land")[0], place)[0]), f"samples after edit {k}")
        answer = daemon.ask("GET", f"/v1/locales/land/height?x=1&y=1&{LIVE}",
                            headers={"Kota-Min-Revision": str(edit["revision"])})
        equal((answer.status, answer.json["revision"]), (200, edit["revision"]), "Kota-Min-Revision")
    discard(place)


@test("layers that move beside a patch are where they are, in live answers too")
def _():
    daemon.ok("PUT", "/v1/locales/land/layers/lift", BOX, status=201, media="model/obj")
    place = resting()
    for z in (3.0, 5.0, 4.0):
        daemon.ok("PUT", "/v1/locales/land/layers/lift/transform",
                  {"translation": [16, 16, z], "yaw_deg": 0})
        answers = [daemon.ok("GET", f"/v1/locales/land/ray?origin=16.2,16.1,20&direction=0,0,-1{live}")
                   for live in ("", "&" + LIVE)]
        equal([answer["layer"] for answer in answers], ["lift"] * 2, "layer")
        equal(answers[1]["t"], answers[0]["t"], f"the lift at {z}")
        below = [daemon.ok("GET", f"/v1/locales/land/ray?origin=16.2,16.1,{z - 1.5}&direction=0,0,-1{live}")
                 for live in ("", "&" + LIVE)]
        check(below[0]["t"] != below[1]["t"], f"the ground below the lift is the settled one: {below}")
    discard(place)
    daemon.ok("DELETE", "/v1/locales/land/layers/lift", status=204)


@test("two patches are in one value; a filling one is settled ground")
def _():
    first, second_ = make(daemon, "land", 10, 10, seed=5), make(daemon, "land", 22, 22, seed=6)
    for place in (first, second_):
        written(place)
    settled = samples("land")[0]
    both = with_surface(with_surface(settled, first)[0], second_)[0]
    equal(samples("land", "&" + LIVE)[0], tuple(both), "two surfaces")
    discard(first)
    equal(samples("land", "&" + LIVE)[0], tuple(with_surface(samples("land")[0], second_)[0]), "one")
    discard(second_)


@test("values are made only while somebody asks")
def _():
    place = make(daemon, "land", seed=3)
    until(daemon, place, "settling", "active", "resting")
    time.sleep(0.5)
    count = made()
    time.sleep(1)
    equal(made(), count, "values made without a reader")
    samples("land", "&" + LIVE)
    deadline = time.monotonic() + HANG_S
    while made() == count:
        check(time.monotonic() < deadline, "a reader had none made")
        time.sleep(0.01)
    until(daemon, place, "resting")
    while made() != count:  # reports of the rest may still come
        check(time.monotonic() < deadline, "values are made while nothing moves")
        count = made()
        for _ in range(20):
            samples("land", "&" + LIVE)
            time.sleep(0.02)
    discard(place)


@test("live= is checked, and is a parameter of the calls about ground only")
def _():
    at = "/v1/locales/land"
    problem(daemon.get(f"{at}/height?x=1&y=1&live=maybe"), 400, "live=maybe", "true, false or here",
            pointer="live")
    problem(daemon.get(f"{at}/height?x=1&y=1&live=true&live=true"), 400, "twice", pointer="live")
    problem(daemon.get(f"{at}/height?x=1&y=1&life=true"), 400, "life", "live", pointer="life")
    problem(daemon.post(f"{at}/height", {"points": [[1, 1]], "live": True}), 400, "live", pointer="/live")
    for path, asked in (("sweep", {"shapes": []}), ("move", {}), ("lit", {})):
        problem(daemon.post(f"{at}/{path}?live=true", asked), 400, "no query parameter", pointer="live")
    for path in ("/tiles/0/0/0?live=true", "?live=true", "/layers/ground/samples?live=true",
                 "/diff?since=1&live=true"):
        problem(daemon.get(at + path), 400, "no query parameter", pointer="live")
    problem(daemon.post("/v1/ray?live=true", {"rays": []}), 400, "no query parameter", pointer="live")
    problem(daemon.get("/v1/locales/none/height?x=1&y=1&live=true"), 404)


@test("readers of live and settled ground beside edits, poses and patches that come and go")
def _():
    daemon.ok("PUT", "/v1/locales/land/layers/lift", BOX, status=201, media="model/obj")
    over, wrong = threading.Event(), []

    def reads(live):
        on, seen = second(daemon), 0
        while not over.is_set():
            answer = on.ask("GET", f"/v1/locales/land/height?x=16.1&y=16.2&layer=ground{live}")
            if answer.status != 200 or answer.json["revision"] < seen:
                wrong.append(str(answer))
                return
            seen = answer.json["revision"]
            batch = on.ask("POST", f"/v1/locales/land/profile?layer=ground{live}",
                           {"path": [[10, 10], [20, 20]], "samples": 9})
            if batch.status != 200:
                wrong.append(str(batch))
                return

    threads = [threading.Thread(target=reads, args=(live,)) for live in ("", "&" + LIVE, "&" + LIVE)]
    for thread in threads:
        thread.start()
    try:
        for k in range(3):
            place = make(daemon, "land", seed=k)
            until(daemon, place, "active", "resting")
            for i in range(10):
                daemon.ok("POST", "/v1/locales/land/edits", {"op": "add", "layer": "ground",
                          "rect": [28 + i, 30, 2, 2], "heights": [0.01] * 4})
                daemon.ok("PUT", "/v1/locales/land/layers/lift/transform",
                          {"translation": [16, 16, 5 + i], "yaw_deg": 0})
            discard(place)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    equal(wrong, [], "answers")
    equal(samples("land", "&layer=ground&" + LIVE)[0], samples("land", "&layer=ground")[0], "at the end")


@test("a locale that is deleted and made again has no ground of the old one's patches")
def _():
    place = make(daemon, "twin", seed=3)
    until(daemon, place, "resting", "active")
    samples("twin", "&" + LIVE)
    daemon.ok("DELETE", "/v1/locales/twin", status=204)
    put_terrain(daemon, "twin", Terrain(SIDE, SIDE, [[7.0] * SIDE] * SIDE, (SPACING, SPACING)))
    deadline = time.monotonic() + HANG_S
    while daemon.ok("GET", "/v1/locales/twin/patches")["patches"][0]["state"] != "discarded":
        check(time.monotonic() < deadline, "the patch outlives its locale")
        samples("twin", "&" + LIVE)
    equal(set(samples("twin", "&" + LIVE)[0]), {7.0}, "live samples of the new locale")


try:
    run()
finally:
    daemon.kill()
