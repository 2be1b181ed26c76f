"""--data DIR: what was acknowledged is there after a restart, as it was, and can be backed up."""
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

from daemon import F32, KOTAD, Daemon, clean_environment, problem
from ground import (NAN, Client, Edit, Ground, Stream, check_is_good, cut_off, floats, hills,
                    one_line, put_ground, random_edit, read_ground, replay, run_check, stored)
from images import asc, png
from mesh_oracle import obj, rectangle, wall
from tap import HANG_S, Skip, check, equal, fail, rng, run, test

folder = tempfile.TemporaryDirectory(prefix="kota-test-")
NUMBERS = iter(range(1000))
MOVING = {"memory_bytes", "bytes"}  # what may differ between two runs


def fresh():
    return os.path.join(folder.name, f"data{next(NUMBERS)}")


def steady(value):
    """A document without the numbers that may differ between two runs."""
    if isinstance(value, dict):
        return {k: steady(v) for k, v in value.items() if k not in MOVING}
    return [steady(v) for v in value] if isinstance(value, list) else value


# ---- a world with everything in it -------------------------------------------------------------

HALF = 0.5 ** 0.5
LOCALES = ("full", "tilted", "seams", "bare", "grey")


def fill(daemon):
    """Locales with every manifest member and every kind of layer; the models of what is edited."""
    random = rng("durable fill")
    daemon.ok("PUT", "/v1/locales/full", {
        "title": "Fünf Ebenen \u2603 \"q\"", "gravity": [0, 0, -1], "open_sky": False,
        "triangulation": "alternating",
        "placement": {"translation": [1000.125, -2e6, 0.1], "rotation": [0, 0, HALF, HALF]}},
        status=201)
    codes = [[random.randint(0, 65535) for _ in range(40)] for _ in range(30)]
    codes[3][4] = codes[10][20] = 7
    daemon.ok("PUT", "/v1/locales/full/layers/relief?spacing=0.3,1.7&origin=-3.1,5.7&height_scale="
              "0.001&height_offset=-12.5&flip_y=true&nodata=7", png(codes), status=201,
              media="image/png")
    raw = hills(random, 64, 48, (0.5, 0.25), (-4.25, 3.5), holes=0.02)
    put_ground(daemon, raw, "full", "raw")
    daemon.ok("PUT", "/v1/locales/full/layers/roof?role=ceiling",
              obj([rectangle(-3, 4, 12, 9, 40), rectangle(0, 0, 3, 5, 61.5)]), status=201,
              media="model/obj")
    daemon.ok("PUT", "/v1/locales/full/layers/bridge?scale=0.5",
              obj([rectangle(0, 10, 8, 20, 50), wall((0, 12), (9, 17), 0, 30),
                   [(0, 0, 9), (9, 0, 9), (9, 9, 9), (3, 3, 9)]]), status=201, media="model/obj")
    daemon.ok("PUT", "/v1/locales/tilted", {"title": "tilted", "gravity": [0.6, 0, -0.8]},
              status=201)
    daemon.ok("PUT", "/v1/locales/tilted/layers/plates?up=y",
              obj([rectangle(i, i % 3, i + 3, i % 3 + 3, 0.1 * i) for i in range(60)]), status=201,
              media="model/obj")
    daemon.ok("PUT", "/v1/locales/seams", {"triangulation": "main"}, status=201)
    seams = hills(random, 600, 520, (2.0, 3.0), (7.0, -9.0), holes=0.001)
    put_ground(daemon, seams, "seams")
    daemon.ok("PUT", "/v1/locales/bare", {"title": ""}, status=201)
    daemon.ok("PUT", "/v1/locales/grey", {"geo": {"lat": 47.25, "lng": -11.5}}, status=201)
    daemon.ok("PUT", "/v1/locales/grey/layers/ground?spacing=1,1",
              png([[r * 3 + c for c in range(20)] for r in range(20)], depth=8), status=201,
              media="image/png")
    return {"full": ("raw", raw), "seams": (None, seams)}


def edit_all(daemon, models, count):
    random = rng(f"durable edits {count}")
    for i in range(count):
        for locale, (layer, ground) in models.items():
            edit = random_edit(random, ground, 24)
            target, body, media = edit.request(locale, layer, binary=bool(i % 2))
            answer = daemon.ok("POST", target, body, media=media)
            ground.apply(edit)
            check(answer["locale"] == locale and answer["revision"] > 0, f"{answer}")
            if edit.rect:
                equal(answer["rect"], list(edit.rect), "rect")


def covered(rects, cols=600, rows=520):
    made = bytearray(cols * rows)
    for c, r, w, h in rects:
        for y in range(r, r + h):
            made[y * cols + c:y * cols + c + w] = b"\1" * w
    return bytes(made)


def portrait(daemon):
    """Everything that may be asked, and what came."""
    random = rng("durable portrait")
    seen = {}

    def keep(what, answer):
        seen[what] = (answer.status, answer.headers.get("etag"), steady(answer.json)
                      if "json" in answer.media_type else answer.body)
    keep("all", daemon.get("/v1/locales?layers=true"))
    for locale in LOCALES:
        base = f"/v1/locales/{locale}"
        document = daemon.ok("GET", base)
        keep(base, daemon.get(base))
        box = document["bounds"] or {"min": (0, 0, 0), "max": (1, 1, 1)}
        (x0, y0, z0), (x1, y1, z1) = box["min"], box["max"]
        points = [[random.uniform(x0 - 1, x1 + 1), random.uniform(y0 - 1, y1 + 1),
                   random.uniform(z0 - 1, z1 + 5)] for _ in range(150)]
        rays = [{"origin": a, "direction": [q - p for p, q in zip(a, b)]}
                for a, b in zip(points, points[1:])]
        keep(base + " contact", daemon.post(base + "/contact", {"points": points, "reach_up": 3}))
        keep(base + " ray", daemon.post(base + "/ray", {"rays": rays}))
        keep(base + " contains", daemon.post(base + "/contains", {"points": points}))
        for layer in document["layers"]:
            name = layer["id"]
            keep(f"{base} stats {name}", daemon.get(f"{base}/layers/{name}/stats"))
            if layer["kind"] != "heightfield":
                continue
            for interp in ("triangle", "nearest"):
                keep(f"{base} height {name} {interp}", daemon.post(
                    base + "/height", {"points": [p[:2] for p in points], "interp": interp,
                                       "layer": name, "fields": ["height", "normal", "cell"]}))
            for place in ("0/0/0", "0/1/1", "1/0/0", "0/2/2"):
                for kind in ("sampled", "max"):
                    keep(f"{base} tile {name} {place} {kind}", daemon.get(
                        f"{base}/tiles/{place}?format=f32&layer={name}&kind={kind}"))
            for since in range(1, document["revision"] + 1):
                answer = daemon.ok("GET", f"{base}/diff?since={since}&layer={name}")
                equal(answer["revision"], document["revision"], "revision of a diff")
                seen[f"{base} diff {name} {since}"] = covered(answer["rects"])
        for after in sorted({1, document["revision"] // 2, document["revision"] - 1} - {0}):
            seen[f"{base} events {after}"] = replay(daemon.port, base + "/events", after,
                                                    document["revision"])
    return seen


def same_portrait(got, want):
    equal(sorted(got), sorted(want), "what could be asked")
    for what, answer in want.items():
        if got[what] != answer:
            fail(f"{what} differs after the restart: got {str(got[what])[:700]}, "
                 f"before {str(answer)[:700]}")


@test("a restart changes nothing: documents, heights, contact, rays, tiles, diffs, events")
def _():
    data = fresh()
    with stored(data) as daemon:
        models = fill(daemon)
        edit_all(daemon, models, 12)
        before = portrait(daemon)
        total = sum(daemon.ok("GET", f"/v1/locales/{name}")["revision"] for name in LOCALES)
        feed = replay(daemon.port, "/v1/events", 0, total)
    for _ in range(2):
        with stored(data) as daemon:
            same_portrait(portrait(daemon), before)
            equal(replay(daemon.port, "/v1/events", 0, total), feed, "the feed of all locales")
            for locale, (layer, ground) in models.items():
                ground.compare(read_ground(daemon, ground, locale, layer), locale)
    with stored(data) as daemon:
        edit_all(daemon, models, 3)
        before = portrait(daemon)
    with stored(data) as daemon:
        same_portrait(portrait(daemon), before)
        for locale, (layer, ground) in models.items():
            ground.compare(read_ground(daemon, ground, locale, layer), locale)


@test("kill -9 behind the last answer changes nothing either")
def _():
    data = fresh()
    daemon = stored(data)
    models = fill(daemon)
    edit_all(daemon, models, 5)
    before = portrait(daemon)
    cut_off(daemon)
    with stored(data) as daemon:
        same_portrait(portrait(daemon), before)


@test("the feed has no gap: revisions and sequences count each change once")
def _():
    with stored(fresh()) as daemon:
        models = fill(daemon)
        edit_all(daemon, models, 4)
        total = 0
        for name in LOCALES:
            revision = daemon.ok("GET", f"/v1/locales/{name}")["revision"]
            total += revision
            events = replay(daemon.port, f"/v1/locales/{name}/events", 1, revision)
            equal([int(e[0]) for e in events], list(range(2, revision + 1)), f"ids of {name}")
            equal([e[2]["revision"] for e in events], list(range(2, revision + 1)), name)
            equal({e[2]["locale"] for e in events} - {name}, set(), f"locales in {name}")
        events = replay(daemon.port, "/v1/events", 0, total)
        equal([int(e[0]) for e in events], list(range(1, total + 1)), "sequences")


@test("a follower resumes across a restart and gets what it missed, once")
def _():
    data = fresh()
    with stored(data) as daemon:
        models = fill(daemon)
        stream = Stream(daemon.port, "/v1/locales/full/events")
        edit_all(daemon, models, 3)
        revision = daemon.ok("GET", "/v1/locales/full")["revision"]
        first = stream.until(revision)
        stream.close()
        last = first[-2][0]
        edit_all(daemon, models, 2)
    with stored(data) as daemon:
        stream = Stream(daemon.port, "/v1/locales/full/events", last)
        edit_all(daemon, models, 2)
        revision += 4
        events = stream.until(revision)
        stream.close()
        equal(events[0], first[-1], "the event that came before the restart, too")
        equal([int(e[0]) for e in events], list(range(int(last) + 1, revision + 1)), "ids")
        equal({e[1] for e in events}, {"edit"}, "names")


@test("SIGTERM ends the streams, and the daemon exits 0")
def _():
    daemon = stored(fresh())
    streams = [Stream(daemon.port, "/v1/events") for _ in range(3)]
    equal([s.status for s in streams], [200] * 3, "status")
    equal(streams[0].answer.getheader("Content-Type").split(";")[0], "text/event-stream", "type")
    daemon.stop()
    for stream in streams:
        stream.thread.join(HANG_S)
        check(stream.is_over, "a stream outlives its daemon")
        equal([e for e in stream.events if e[1] == "edit"], [], "events")


@test("meshes of any size are there after a restart, small ones and ones of some MiB")
def _():
    data, seen = fresh(), {}
    with stored(data) as daemon:
        for count in (1, 300, 400, 3000, 20000):
            daemon.ok("PUT", f"/v1/locales/m{count}", {}, status=201)
            rings = [rectangle(i % 150, i // 150, i % 150 + 1, i // 150 + 1, i % 7 * 0.1)
                     for i in range(count)]
            daemon.ok("PUT", f"/v1/locales/m{count}/layers/mesh", obj(rings), status=201,
                      media="model/obj")
            points = [[i % 150 + 0.3, i // 150 + 0.6, 5] for i in range(0, count, count // 50 + 1)]
            answer = daemon.post(f"/v1/locales/m{count}/contact", {"points": points})
            equal([item["status"] for item in answer.json["results"]], ["ok"] * len(points),
                  f"contact on {count} polygons")
            seen[count] = points, answer.body
    for end in (cut_off, Daemon.stop):
        daemon = stored(data)
        for count, (points, body) in seen.items():
            answer = daemon.post(f"/v1/locales/m{count}/contact", {"points": points})
            equal(answer.body, body, f"contact on {count} polygons after a restart")
        end(daemon)
    check_is_good(data)


@test("more changes than the log keeps: heights stay right, diff and feed say what is gone")
def _():
    data, count, body = fresh(), 10400, b'{"rect":[1,0,1,1],"op":"add","heights":[1]}'
    request = (f"POST /v1/locales/land/edits HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}"
               "\r\nContent-Type: application/json\r\n\r\n").encode() + body

    daemon = stored(data)
    daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    put_ground(daemon, Ground(4, 4, [0] * 16))
    threads = [threading.Thread(target=daemon.pipeline, args=(request, count // 4))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = count + 2
    equal(daemon.ok("GET", "/v1/locales/land")["revision"], last, "revision")
    for end in (cut_off, Daemon.stop):
        end(daemon)
        check_is_good(data)
        daemon = stored(data)
        got = daemon.ok("GET", "/v1/locales/land/height?x=1&y=0&interp=nearest")
        equal((got["revision"], got["height"]), (last, count), "after a restart")
        for since in (1, last - 50):
            answer = daemon.get(f"/v1/locales/land/diff?since={since}")
            if answer.status == 200:
                rects = answer.json["rects"]
                check(rects == [[0, 0, 4, 4]] or [1, 0, 1, 1] in rects, f"{since}: {rects[:9]}")
            else:
                problem(answer, 410 if since == 1 else 200)
        events = replay(daemon.port, "/v1/locales/land/events", last - 50, last)
        equal([int(e[0]) for e in events], list(range(last - 49, last + 1)), "late events")
        stream = Stream(daemon.port, "/v1/locales/land/events", 1)
        first = stream.wait(lambda got: got, "the first event")[0]
        check(first[1] == "resync" or first[0] == "2", f"the first event after 1: {first}")
        stream.close()
    daemon.stop()


# ---- the same request again -----------------------------------------------------------------------


def replayed(answer, first, what):
    equal((answer.status, answer.body, answer.headers.get("location")),
          (first.status, first.body, first.headers.get("location")), what)
    equal(answer.headers.get("idempotency-replayed"), "true", f"Idempotency-Replayed, {what}")


@test("every kind of write under a known key is answered as at first, across restarts")
def _():
    random, data = rng("durable keys"), fresh()
    ground = hills(random, 20, 10)
    edit = Edit("add", (1, 1, 2, 2), floats([1, 2, 3, 4]))
    target, body, media = edit.request("land")
    brush = {"brush": {"shape": "raise", "center": [5, 5], "radius": 3, "amount": 2}}
    asked = [
        ("PUT", "/v1/locales/land", json.dumps({"title": "one"}).encode(), "application/json", 201),
        ("PUT", f"/v1/locales/land/layers/ground?{ground.query()}", ground.body(), F32, 201),
        ("POST", target, body, media, 200),
        ("POST", *edit.request("land", None, True), 200),
        ("POST", target, json.dumps(brush).encode(), "application/json", 200),
        ("PUT", f"/v1/locales/land/layers/second?{ground.query()}", ground.body(), F32, 201),
        ("PUT", "/v1/locales/land", json.dumps({"title": "two"}).encode(), "application/json", 200),
        ("DELETE", "/v1/locales/land/layers/second", None, None, 204),
        ("PUT", "/v1/locales/other", b"{}", "application/json", 201),
        ("DELETE", "/v1/locales/other", None, None, 204)]

    def ask(daemon, number, **named):
        method, where, sent, kind, _ = asked[number]
        return daemon.ask(method, where, sent, media=kind,
                          headers={"Idempotency-Key": f"key-{number}"}, **named)

    with stored(data) as daemon:
        first = []
        for number, request in enumerate(asked):
            first.append(ask(daemon, number))
            equal(first[-1].status, request[4], f"{request[:2]}: {first[-1]}")
            check("idempotency-replayed" not in first[-1].headers, f"{request[:2]} is no repeat")
        for number, request in enumerate(asked):
            replayed(ask(daemon, number), first[number], f"{request[:2]}")
        before = (daemon.get("/v1/locales/land").body, daemon.get("/v1/locales?layers=true").body)
    for end in ("stop", "kill"):
        daemon = stored(data)
        for number, request in enumerate(asked):
            replayed(ask(daemon, number), first[number], f"{request[:2]} after a restart")
            method, where, sent, kind, _ = request
            others = [(method, where, (sent or b"") + b" ", kind)] if sent and kind != F32 else []
            others.append((method, where + ("&" if "?" in where else "?") + "x=1", sent, kind))
            others.append(("PUT", "/v1/locales/new", b"{}", "application/json"))
            for method, where, sent, kind in others:
                answer = daemon.ask(method, where, sent, media=kind,
                                    headers={"Idempotency-Key": f"key-{number}"})
                check(answer.status in (422, 400) and (answer.status == 422 or "x=1" in where),
                      f"{method} {where} under the key of {request[:2]}: {answer}")
        equal(steady(json.loads(daemon.get("/v1/locales/land").body)),
              steady(json.loads(before[0])), "land")
        equal(daemon.get("/v1/locales/new").status, 404, "new")
        if end == "stop":
            daemon.stop()
        else:
            cut_off(daemon)


@test("what was refused takes no key: the same key works once the request is right")
def _():
    with stored(fresh()) as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        put_ground(daemon, hills(rng("refused"), 8, 8))
        key = {"Idempotency-Key": "again"}
        edit = Edit("set", (0, 0, 1, 1), floats([5]))
        target, body, media = edit.request("land")
        refused = daemon.ask("POST", target, body, media=media,
                             headers={**key, "If-Match": '"99"'})
        problem(refused, 412)
        answer = daemon.ask("POST", target, body, media=media, headers={**key, "If-Match": '"2"'})
        equal((answer.status, answer.json["revision"]), (200, 3), "the right revision")
        check("idempotency-replayed" not in answer.headers, "is no repeat")


@test("keys are 1 to 128 visible ASCII characters")
def _():
    with stored(fresh()) as daemon:
        for key in ("x" * 129, "", "a b", "a\tb", "\u00e9"):
            answer = daemon.ask("PUT", "/v1/locales/land", b"{}", media="application/json",
                                headers={"Idempotency-Key": key.encode().decode("latin-1")})
            problem(answer, 400)
        for key in ("x" * 128, "!", "~"):
            answer = daemon.ask("PUT", "/v1/locales/land", b"{}", media="application/json",
                                headers={"Idempotency-Key": key})
            check(answer.status in (200, 201), f"{key}: {answer}")


# ---- deletion -----------------------------------------------------------------------------------------


@test("what was deleted stays so, and a locale that is made again counts on")
def _():
    data, random = fresh(), rng("durable deletion")
    ground = hills(random, 16, 16)
    with stored(data) as daemon:
        for name in ("gone", "again", "kept"):
            equal(daemon.ok("PUT", f"/v1/locales/{name}", {}, status=201)["revision"], 1, name)
            put_ground(daemon, ground, name)
            put_ground(daemon, ground, name, "second")
        for name in ("gone", "again"):
            equal(daemon.ask("DELETE", f"/v1/locales/{name}").status, 204, name)
        equal(daemon.ask("DELETE", "/v1/locales/kept/layers/second").status, 204, "layer")
        equal(daemon.ok("PUT", "/v1/locales/again", {}, status=201)["revision"], 5, "counts on")
    with stored(data) as daemon:
        problem(daemon.get("/v1/locales/gone"), 404)
        equal(daemon.get("/v1/locales/gone/height?x=1&y=1").status, 404, "height")
        equal([layer["id"] for layer in daemon.ok("GET", "/v1/locales/kept")["layers"]], ["ground"],
              "layers")
        again = daemon.ok("GET", "/v1/locales/again")
        equal((again["revision"], again["layers"]), (5, []), "again")
        equal(daemon.ok("PUT", "/v1/locales/gone", {}, status=201)["revision"], 5, "gone counts on")
        equal(put_ground(daemon, ground, "gone")["revision"], 6, "and on")
        equal(daemon.ok("PUT", "/v1/locales/young", {}, status=201)["revision"], 1, "a fresh id")
        events = replay(daemon.port, "/v1/locales/gone/events", 1, 6)
        equal([int(e[0]) for e in events], [2, 3, 4, 5, 6], "events of both lives")
        equal([e[2]["source"] for e in events],
              ["layer", "layer", "delete", "manifest", "layer"], "sources")
    daemon = stored(data)
    equal(daemon.ask("DELETE", "/v1/locales/gone").status, 204, "gone")
    cut_off(daemon)
    with stored(data) as daemon:
        equal(daemon.get("/v1/locales/gone").status, 404, "gone")
        equal(daemon.ok("PUT", "/v1/locales/gone", {}, status=201)["revision"], 8, "counts on")
        equal(daemon.ok("GET", "/v1/locales/again")["revision"], 5, "again")


@test("a layer replaced after edits is the new one after a restart, old edits do not come back")
def _():
    data, random = fresh(), rng("durable replaced")
    for end in (Daemon.stop, cut_off):
        daemon = stored(data)
        daemon.ask("PUT", "/v1/locales/land", {})
        put_ground(daemon, hills(random, 300, 270), status=201 if end is Daemon.stop else 200)
        for _ in range(5):
            answer = Client(daemon.port).edit(Edit("set", (250, 250, 10, 10), floats([77] * 100)))
            equal(answer.status, 200, "edit")
        new = hills(random, 280, 290)
        put_ground(daemon, new, status=200)
        answer = Client(daemon.port).edit(Edit("set", (3, 3, 1, 1), floats([99])))
        new.apply(Edit("set", (3, 3, 1, 1), floats([99])))
        revision = answer.json["revision"]
        end(daemon)
        with stored(data) as daemon:
            new.compare(read_ground(daemon, new), "the new layer")
            equal(daemon.ok("GET", "/v1/locales/land")["revision"], revision, "revision")


# ---- directories and worlds ------------------------------------------------------------------------------


@test("--world and files beside --data: restarts keep the edits, the store wins")
def _():
    data, world = fresh(), fresh()
    os.makedirs(os.path.join(world, "hill"))
    with open(os.path.join(world, "hill", "locale.json"), "w") as file:
        json.dump({"title": "hill", "layers": [{"id": "ground", "file": "g.asc"}]}, file)
    path = os.path.join(world, "hill", "g.asc")
    extra = os.path.join(folder.name, "plain.asc")
    for where in (path, extra):
        with open(where, "wb") as file:
            file.write(asc([[1] * 6] * 5))
    edit = Edit("set", (0, 0, 2, 1), floats([50, NAN]))
    for life in range(3):
        daemon = stored(data, "--world", world, extra)
        for name in ("hill", "plain"):
            document = daemon.ok("GET", f"/v1/locales/{name}")
            if life == 0:
                target, body, media = edit.request(name)
                answer = daemon.ok("POST", target, body, media=media)
                equal(answer["revision"], document["revision"] + 1, "revision")
                document = daemon.ok("GET", f"/v1/locales/{name}")
                first = document["revision"]
            equal(document["revision"], first, f"revision of {name}")
            x, y = document["bounds"]["min"][:2]
            got = [daemon.ok("GET", f"/v1/locales/{name}/height?x={x + dx}&y={y}&interp=nearest")
                   ["height"] for dx in (0, 10, 20)]
            equal(got, [50, None, 1], f"{name}, life {life}")
        if life:
            daemon.stop()
        else:
            cut_off(daemon)
        for where in (path, extra):
            with open(where, "wb") as file:
                file.write(asc([[9] * 6] * 5))
    with stored(data) as daemon:
        equal({entry["id"] for entry in daemon.ok("GET", "/v1/locales")["locales"]},
              {"hill", "plain"}, "locales without --world")


@test("--data is created with its parents and holds kota.db")
def _():
    data = os.path.join(fresh(), "a", "b c", "d")
    with stored(data) as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    check(os.path.isfile(os.path.join(data, "kota.db")), f"{os.listdir(data)}")


@test("a second kotad on the same directory is refused, the first goes on")
def _():
    data = fresh()
    with stored(data) as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        second = stored(data, wait=False)
        try:
            status = second.process.wait(HANG_S)
            check(status > 0, f"exit status {status}")
            one_line(second.log_text(), data)
        finally:
            second.kill()
        daemon.ok("PUT", "/v1/locales/land", {"title": "still mine"})
    with stored(data) as daemon:
        equal(daemon.ok("GET", "/v1/locales/land")["title"], "still mine", "title")


@test("--read-only with --data serves what is there and changes nothing")
def _():
    data = fresh()
    with stored(data) as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        ground = hills(rng("read-only"), 30, 30)
        put_ground(daemon, ground)
    with stored(data, "--read-only") as daemon:
        ground.compare(read_ground(daemon, ground), "--read-only")
        for method, target, body in (("PUT", "/v1/locales/land", {}),
                                     ("DELETE", "/v1/locales/land", None),
                                     ("POST", "/v1/locales/land/edits",
                                      {"rect": [0, 0, 1, 1], "op": "set", "heights": [1]})):
            answer = daemon.ask(method, target, body)
            problem(answer, answer.status, "read-only")
    with stored(data) as daemon:
        ground.compare(read_ground(daemon, ground), "afterwards")
        equal(daemon.ok("GET", "/v1/locales/land")["revision"], 2, "revision")


@test("a directory left by kill -9 is not locked")
def _():
    data = fresh()
    cut_off(stored(data))
    with stored(data) as daemon:
        equal(daemon.ok("GET", "/v1/locales"), {"locales": [], "next": None}, "locales")


@test("without --data nothing is written, and edits, diff and repeats work in memory")
def _():
    with Daemon() as daemon:
        before = set(os.listdir(daemon.folder))
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        ground = hills(rng("memory"), 16, 16)
        put_ground(daemon, ground)
        edit = Edit("set", (1, 2, 3, 4), floats(range(12)))
        target, body, media = edit.request("land")
        first = daemon.ask("POST", target, body, media=media, headers={"Idempotency-Key": "k"})
        equal((first.status, first.json["revision"]), (200, 3), "edit")
        replayed(daemon.ask("POST", target, body, media=media, headers={"Idempotency-Key": "k"}),
                 first, "repeat")
        answer = daemon.ok("GET", "/v1/locales/land/diff?since=2")
        equal((answer["revision"], answer["rects"]), (3, [[1, 2, 3, 4]]), "diff")
        equal(set(os.listdir(daemon.folder)), before, "files")


# ---- backup and --check ------------------------------------------------------------------------------------


class Editing:
    """A stream of edits on a thread, with all that was acknowledged."""

    def __init__(self, daemon, ground, seed):
        self.port, self.base, self.random = daemon.port, ground, rng(seed)
        self.edits, self.stopped, self.error = [], False, None
        self.now = ground.copy()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        try:
            with Client(self.port) as client:
                while not self.stopped:
                    edit = random_edit(self.random, self.now, 16)
                    answer = client.edit(edit, binary=self.random.random() < 0.5)
                    check(answer.status == 200, str(answer))
                    self.now.apply(edit)
                    self.edits.append((answer.json["revision"], edit))
        except BaseException as error:
            self.error = error

    def revision(self):
        return self.edits[-1][0] if self.edits else 2

    def at_least(self, count):
        deadline = time.monotonic() + HANG_S
        while len(self.edits) < count and not self.error and time.monotonic() < deadline:
            time.sleep(0.005)

    def stop(self):
        self.stopped = True
        self.thread.join()
        if self.error:
            raise self.error

    def ground(self, revision):
        made = self.base.copy()
        for number, edit in self.edits:
            if number <= revision:
                made.apply(edit)
        return made


@test("sqlite3 .backup under a stream of edits: --check is content, and it serves what was durable")
def _():
    if not shutil.which("sqlite3"):
        raise Skip("no sqlite3")
    data, ground = fresh(), hills(rng("backup"), 300, 270)
    with stored(data) as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        put_ground(daemon, ground)
        daemon.ok("PUT", "/v1/locales/house", {}, status=201)
        daemon.ok("PUT", "/v1/locales/house/layers/floor", obj([rectangle(0, 0, 4, 4, 2)]),
                  status=201, media="model/obj")
        editing = Editing(daemon, ground, "backup edits")
        backups = []
        try:
            for number in range(3):
                editing.at_least(len(editing.edits) + 20)
                new = fresh()
                os.mkdir(new)
                low = editing.revision()
                done = subprocess.run(["sqlite3", os.path.join(data, "kota.db"),
                                       f".backup {os.path.join(new, 'kota.db')}"],
                                      capture_output=True, text=True, timeout=HANG_S,
                                      check=False)
                equal((done.returncode, done.stderr), (0, ""), "sqlite3 .backup")
                backups.append((new, low))
                if os.path.isdir(os.path.join(data, "meshes")):
                    shutil.copytree(os.path.join(data, "meshes"), os.path.join(new, "meshes"))
            editing.at_least(len(editing.edits) + 5)
        finally:
            editing.stop()
        last = editing.revision()
    for new, low in backups:
        check_is_good(new)
        with stored(new) as daemon:
            revision = daemon.ok("GET", "/v1/locales/land")["revision"]
            check(low <= revision <= last, f"revision {revision}, not {low}..{last}")
            editing.ground(revision).compare(read_ground(daemon, ground), f"backup at {revision}")
            got = daemon.post("/v1/locales/house/contact", {"points": [[1, 1, 9]]}).json["results"]
            equal(got[0]["floor"]["point"], [1, 1, 2], "the mesh")


@test("--check: 0 for a good directory, stopped or killed, and it changes nothing")
def _():
    data = fresh()
    daemon = stored(data)
    models = fill(daemon)
    edit_all(daemon, models, 3)
    cut_off(daemon)
    for _ in range(2):
        check_is_good(data)
    with stored(data) as daemon:
        for locale, (layer, ground) in models.items():
            ground.compare(read_ground(daemon, ground, locale, layer), locale)
        status, text = run_check(data)
        if status:
            one_line(text, data, what="--check of a directory in use")
        edit_all(daemon, models, 2)
    check_is_good(data)


@test("--check of a missing directory fails, says which, and makes none")
def _():
    for data in (fresh(), os.path.join(fresh(), "deep")):
        status, text = run_check(data)
        check(status != 0, f"exit status 0: {text}")
        one_line(text, data, what="--check")
        check(not os.path.exists(data), "it made the directory")
    empty = fresh()
    os.mkdir(empty)
    status, text = run_check(empty)
    check(status != 0, f"an empty directory is no store: {text}")
    one_line(text, empty, what="--check")
    equal(os.listdir(empty), [], "files in the empty directory")


@test("--check without --data is a usage error")
def _():
    done = subprocess.run([KOTAD, "--check"], capture_output=True, text=True, timeout=HANG_S,
                          env=clean_environment(), check=False)
    equal(done.returncode, 2, "exit status, as of all wrong command lines")
    one_line(done.stdout + done.stderr, "--data")



run(folder.cleanup, "the folder is removed")
