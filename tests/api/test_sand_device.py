"""Patches and their device: none, not yet, Mesa's software renderer; and how long they are kept."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import tempfile
import threading
import time

from daemon import SLOW, Daemon, Failure, connect, problem
from events import Stream
from fields import put_terrain
from images import read_png
from sand import (ENDED, QUICK, CPU, RESTING, body, box, changed, check_ledger, check_patch,
                  drop, heights, land, make, remove_body, revision, second, start, until, wanted)
from tap import HANG_S, Skip, case, check, equal, rest, run, test, wait_for

# ---- no device -----------------------------------------------------


def no_device(gpu, word, environment):
    folder = tempfile.mkdtemp(prefix="kota-test-")
    try:
        open(os.path.join(folder, "libEGL.so.1"), "w").close()  # no library
        environment = {name: value.format(folder=folder) for name, value in environment.items()}
        with start("--gpu", gpu, env=environment) as daemon:
            device = daemon.ok("GET", "/v1/stats")["patches"]["device"]
            while "opened" in (device["reason"] or ""):
                time.sleep(0.01)
                device = daemon.ok("GET", "/v1/stats")["patches"]["device"]
            equal(device["engine"], None, "engine")
            check(word in device["reason"], f"reason: {device['reason']}")
            answer = daemon.post("/v1/locales/land/patches", wanted(bodies=[body()]))
            equal(problem(answer, 503, word)["title"], "No device", "title")
            check("retry-after" not in answer.headers, "to try again in a second is no use")
            equal(daemon.ok("GET", "/v1/locales/land/patches")["patches"], [], "patches")
            for method, rest, sent in (("GET", "", None), ("DELETE", "", None),
                                       ("POST", "/bodies", body()), ("GET", "/events", None),
                                       ("PATCH", "/bodies/0", {"velocity": [0, 0, 1]})):
                problem(daemon.ask(method, f"/v1/locales/land/patches/1{rest}", sent), 404)
            equal(daemon.ok("GET", "/v1/locales/land/height?x=3&y=3")["status"], "ok", "height")
            daemon.ok("POST", "/v1/locales/land/edits",
                      {"rect": [3, 3, 1, 1], "op": "set", "heights": [2]})
            equal(daemon.get("/readyz").status, 200, "readyz")
            check("kota_patches_device 0" in daemon.get("/metrics").body.decode(), "metric")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


case("--gpu off: 503 with the reason, and everything else works", no_device, "off",
     "it is switched off (--gpu off)", {})
case("no OpenGL on the machine: the same with that reason", no_device, "software",
     "libEGL.so.1 cannot be loaded", {"LD_LIBRARY_PATH": "{folder}"})
case("no driver: the same", no_device, "software", "no OpenGL",
     {"__EGL_VENDOR_LIBRARY_DIRS": "{folder}"})
case("a GPU that is not there: the same", no_device, "63", "device 63", {})


@test("granules of a scale that the pool has none of: 503 that says so, no use in trying again")
def _():
    with start(*CPU, *RESTING, "--patches-fine", "0") as daemon:
        answer = daemon.post("/v1/locales/land/patches", wanted(scale="fine", size=[4.5, 4.5]))
        equal(problem(answer, 503, "fine", "--patches-fine")["title"], "No device", "title")
        check("retry-after" not in answer.headers, f"Retry-After: {answer.headers}")
        daemon.ok("DELETE", make(daemon, "land") + "?discard=true")


# ---- a device that is being opened -------------------------------------------------

MESA = "/usr/share/glvnd/egl_vendor.d/50_mesa.json"


class SlowDevice:
    """A folder for EGL's loader, which waits at a pipe until `release`, and then finds Mesa or nothing."""

    def __init__(self, has_mesa):
        self.folder = tempfile.mkdtemp(prefix="kota-test-")
        self.pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(self.pipe)
        os.symlink(self.pipe, os.path.join(self.folder, "10_slow.json"))  # it looks at files and links
        if has_mesa:
            if not os.path.exists(MESA):
                raise Skip(f"no {MESA}")
            shutil.copy(MESA, self.folder)
        self.environment = {"__EGL_VENDOR_LIBRARY_DIRS": self.folder}

    def release(self):
        """Waits until somebody reads the pipe, and lets it read its end."""
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                os.close(os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK))
                return
            except OSError as error:  # nobody reads yet
                check(time.monotonic() < deadline, f"the device is never opened: {error}")
                time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        shutil.rmtree(self.folder, ignore_errors=True)


def start_slow(slow, *flags):
    return start("--gpu", "auto", "--no-sandbox", *QUICK, *flags, env=slow.environment)


def ask_later(daemon, answers, name, x, **named):
    """A thread that asks for a patch; begun, and most likely held, when this returns."""
    own = second(daemon)

    def ask():
        try:
            answers.append((name, own.post("/v1/locales/land/patches", wanted(x, 8), **named)))
        except Exception as error:  # pylint: disable=broad-except
            answers.append((name, error))

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.2 if SLOW == 1 else 0.6)  # all of them within the time that they may wait
    return thread


def discard_all(daemon):
    """The end waits for nothing then."""
    for patch in daemon.ok("GET", "/v1/locales/land/patches")["patches"]:
        daemon.ok("DELETE", f"/v1/locales/land/patches/{patch['id']}?discard=true")


def device_of(daemon):
    return daemon.ok("GET", "/v1/stats")["patches"]["device"]


def pools(daemon):
    scales = daemon.ok("GET", "/v1/stats")["patches"]["scales"]
    return [name for name in ("fine", "medium", "coarse") if scales[name]["pool"]]


def threads(daemon):
    names = []
    for task, name in daemon.threads("comm").items():
        with contextlib.suppress(ProcessLookupError):
            names.append((name.strip(), os.getpriority(os.PRIO_PROCESS, task)))
    return names


def resident_mb(daemon):
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024


@test("nothing of sand before the first patch: no device, no pool, no thread, 30 MB at most; pools by scale, and given back")
def _():
    with start("--gpu", "auto", "--patch-threads", "3", "--patch-idle-ms", "1000", *QUICK) as daemon:
        device = device_of(daemon)
        equal((device["state"], device["engine"], device["reason"]),
              ("closed", None, "not opened yet: the first patch opens it"), "device")
        check("sand" not in [name for name, _ in threads(daemon)], f"threads: {threads(daemon)}")
        check("kota_patches_device 1" in daemon.get("/metrics").body.decode(), "metric")
        equal(daemon.ok("GET", "/v1/limits")["patch_granules_max"], None, "granules, not known yet")
        if SLOW == 1:
            check(resident_mb(daemon) <= 30, f"{resident_mb(daemon)} MB")
        problem(daemon.post("/v1/locales/land/patches", wanted(size=[0.1, 0.1])), 422)
        equal(pools(daemon), [], "pools, after a refusal")
        equal(device_of(daemon)["engine"], None, "engine, after a refusal")
        place = make(daemon, "land")
        equal(pools(daemon), ["coarse"], "pools")
        engine = device_of(daemon)["engine"]
        check(engine in ("c", "gl"), f"engine {engine}")
        if engine == "c":
            equal(device_of(daemon)["name"], "C engine, 3 threads", "name")
            equal([level for name, level in threads(daemon) if name == "sand"],
                  [os.getpriority(os.PRIO_PROCESS, 0) + 3] * 3, "niceness of the threads of sand")
        wait_for("no second pool", lambda: daemon.post(
            "/v1/locales/land/patches", wanted(24, 24, scale="medium", size=[2.5, 2.5])).status == 201)
        equal(pools(daemon), ["medium", "coarse"], "pools")
        daemon.ok("DELETE", place + "?discard=true")
        wait_for("the pool of a scale without patches is kept", lambda: "coarse" not in pools(daemon))
        discard_all(daemon)
        wait_for("the pools are kept", lambda: not pools(daemon))
        if engine == "c":
            equal([name for name, _ in threads(daemon)].count("sand"), 1, "threads, without the helpers")
        patch = daemon.ok("DELETE", make(daemon, "land"))
        equal(patch["state"], "written", "a patch after that")


@test("--gpu-warm: the device and all pools at the start, and kept")
def _():
    with start("--gpu", "cpu", "--gpu-warm", "--patches-fine", "0", "--patch-idle-ms", "1000", *QUICK) as daemon:
        wait_for("no pools", lambda: pools(daemon) == ["medium", "coarse"])
        equal(device_of(daemon)["engine"], "c", "engine")
        daemon.ok("DELETE", make(daemon, "land") + "?discard=true")
        time.sleep(1.5)  # past patch-idle-ms: it would be given back in this time
        equal(pools(daemon), ["medium", "coarse"], "pools")


@test("a device by name is opened at the start, without a pool")
def _():
    with software(*QUICK) as daemon:
        equal(pools(daemon), [], "pools")
        daemon.ok("DELETE", make(daemon, "land") + "?discard=true")
        equal(pools(daemon), ["coarse"], "pools")


@test("auto where there is no OpenGL takes the C engine")
def _():
    folder = tempfile.mkdtemp(prefix="kota-test-")
    try:
        open(os.path.join(folder, "libEGL.so.1"), "w").close()  # no library
        with start("--gpu", "auto", env={"LD_LIBRARY_PATH": folder}) as daemon:
            daemon.ok("DELETE", make(daemon, "land") + "?discard=true")
            equal((device_of(daemon)["engine"], device_of(daemon)["reason"]), ("c", None), "device")
            check("libEGL.so.1 cannot be loaded" in daemon.log_text(), "why there is no GPU")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def asked_at_once(times):
    for _ in range(times):
        with Daemon("--gpu", "auto", *QUICK) as daemon:
            put_terrain(daemon, "land", land())
            equal(daemon.post("/v1/locales/land/patches", wanted()).status, 201, "asked once")


case("asked at once, three times: always 201", asked_at_once, 3)


@rest("asked at once, ten times: always 201")
def _():
    asked_at_once(10)


@test("while the device is being opened: the ground is served, the impossible is refused, the rest waits in line")
def _():
    with SlowDevice(True) as slow, start_slow(slow) as daemon:
        equal(daemon.ok("GET", "/v1/limits")["patch_granules_max"], None, "granules, not known yet")
        answers, threads = [], []
        for n, x in enumerate((4, 10, 16)):
            threads.append(ask_later(daemon, answers, n, x))
        # the last of them is for ground that the first has by then
        threads.append(ask_later(daemon, answers, 3, 5))
        for more, status, word in (({"size": [-4, 4]}, 400, "size x"), ({"size": "x"}, 400, "size"),
                                   ({"seed": "x"}, 400, "seed"), ({"bodies": "x"}, 400, "bodies"),
                                   ({"bodies": [body(model="none")]}, 422, "none"),
                                   ({"bodies": [body(zz=90)]}, 400, "zz"), ({"depth": 0.1}, 422, "depth"),
                                   ({"size": [30, 30], "scale": "fine", "depth": 9}, 413, "fine")):
            answer = daemon.post("/v1/locales/land/patches", {**wanted(), **more})
            problem(answer, status, word)
        problem(daemon.post("/v1/locales/none/patches", wanted()), 404, "none")
        equal(daemon.ok("GET", "/v1/locales/land/height?x=3&y=3")["status"], "ok", "height")
        with_key = {"idempotency-key": "early"}
        threads += [ask_later(daemon, answers, 4 + n, 4, headers=with_key) for n in range(2)]
        equal(answers, [], "answers before the device is known")
        slow.release()
        for thread in threads:
            thread.join(HANG_S)
        got = dict(answers)
        equal([got[n].status for n in range(3)], [201] * 3, f"{[str(a) for _, a in answers]}")
        equal([got[n].headers["location"].split("/")[-1] for n in range(3)], ["1", "2", "3"], "numbers")
        for n in (3, 4, 5):
            check(got[n].status in (409, 503), f"all three are in use, or its ground is: {got[n]}")
        check(daemon.ok("GET", "/v1/limits")["patch_granules_max"] >= 4096, "granules, known")
        discard_all(daemon)


@test("a key that two held requests bring makes one patch; one who has left makes none")
def _():
    with SlowDevice(True) as slow, start_slow(slow) as daemon:
        answers = []
        threads = [ask_later(daemon, answers, n, 4, headers={"idempotency-key": "early"})
                   for n in range(2)]
        text = json.dumps(wanted(16, 16)).encode()
        with connect(daemon.port) as left:
            left.sendall(b"POST /v1/locales/land/patches HTTP/1.1\r\nHost: x\r\n"
                         + daemon.token_line.encode() + b"Content-Type: application/json\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(text) + text)
            time.sleep(0.2 if SLOW == 1 else 0.6)
            left.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        daemon.process.send_signal(signal.SIGHUP)
        threads.append(ask_later(daemon, answers, 2, 10))
        slow.release()
        for thread in threads:
            thread.join(HANG_S)
        got = dict(answers)
        equal([got[n].status for n in range(3)], [201] * 3, f"{[str(a) for _, a in answers]}")
        equal(got[0].json["id"], got[1].json["id"], "the patch of both")
        equal([a.headers.get("idempotency-replayed") for a in (got[0], got[1])], [None, "true"],
              "who repeats")
        equal([p["center"] for p in daemon.ok("GET", "/v1/locales/land/patches")["patches"]],
              [[4, 8], [10, 8]], "patches")
        discard_all(daemon)


@test("no GPU after a long search: who waited gets the C engine")
def _():
    with SlowDevice(False) as slow, start_slow(slow) as daemon:
        answers = []
        threads_ = [ask_later(daemon, answers, n, 4 + 6 * n) for n in range(3)]
        equal(answers, [], "answers before the device is known")
        slow.release()
        for thread in threads_:
            thread.join(HANG_S)
        equal([answer.status for _, answer in answers], [201] * 3, f"{[str(a) for _, a in answers]}")
        equal(device_of(daemon)["engine"], "c", "engine")
        discard_all(daemon)


@test("a device that takes too long: 503 with Retry-After; SIGTERM answers who waits, and ends")
def _():
    with SlowDevice(True) as slow, start_slow(slow) as daemon:
        answer = daemon.post("/v1/locales/land/patches", wanted())
        equal(problem(answer, 503, "being opened")["title"], "Busy", "title")
        check(int(answer.headers["retry-after"]) > 0, "Retry-After")
        answers = []
        threads = [ask_later(daemon, answers, n, 4 + 6 * n) for n in range(2)]
        equal(answers, [], "answers before the end")
        daemon.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(HANG_S)
        for _, answer in answers:
            problem(answer, 503, "stops")
        equal(len(answers), 2, "answers")
        slow.release()  # the thread that opens comes back, and looks no further
        daemon.process.wait(timeout=HANG_S)
        log = daemon.log_text()
        check("patches are simulated by" not in log, f"everything was compiled: {log[-2000:]}")


# ---- Mesa's software renderer -----------------------------------------------------


def software(*flags):
    """A daemon on llvmpipe; Skip where there is none."""
    try:
        daemon = start("--gpu", "software", *flags)
    except Failure as failure:
        raise Skip(f"no daemon with --gpu software: {str(failure)[:200]}") from None
    device = daemon.ok("GET", "/v1/stats")["patches"]["device"]
    if device["engine"] is None:
        daemon.stop()
        raise Skip(device["reason"])
    equal((device["engine"], device["software"], device["reason"]), ("gl", True, None), "device")
    check("OpenGL" in device["name"], f"device: {device['name']}")
    return daemon


SMALL = {"size": [4, 4], "depth": 1.8}


def whole_drop(are_together):
    """And a patch that is drawn and thrown away: at its rest, after the drop beside it, or before."""
    with software(*RESTING, "--patch-active-max-ms", "2000" if are_together else "800") as daemon:
        put_terrain(daemon, "other", land())
        before, at = heights(daemon, "other"), revision(daemon, "other")
        thrown = make(daemon, "other", 8, 8, bodies=[body(8, 8)], **SMALL)
        first, pictures = until(daemon, thrown, "settling", "active"), [picture(daemon, thrown)]
        if are_together:
            patch = drop(daemon, "land", close=True, **SMALL)
            last = until(daemon, thrown, "resting")
        else:
            last = first
            while last["steps"] < first["steps"] + 100:
                last = daemon.ok("GET", thrown)
        pictures.append(picture(daemon, thrown))
        check(pictures[0] != pictures[1], "the picture did not change")
        check(last["steps"] > first["steps"] and last["time_s"] > first["time_s"],
              f"the numbers stand still: {first}, {last}")
        ended = daemon.ok("DELETE", thrown + "?discard=true")
        equal(ended["state"], "discarded", "its end")
        after = bool(changed(before, heights(daemon, "other")))
        if are_together:
            equal(ended["revision"], revision(daemon, "other"), "revision of its end")
            equal((after, ended["revision"] > at), 2 * (ended["edit_rect"] is not None,),
                  "what was written at its rest stays")
        else:
            equal((after, ended["revision"], ended["edit_rect"]), (False, None, None), "what it left")
            patch = drop(daemon, "land", close=True, speed_max=0.5, **SMALL)
        check_numbers(daemon, patch)


case("a whole drop on Mesa's software renderer, and a patch that is drawn and thrown away", whole_drop, False)


@rest("a whole drop on Mesa's software renderer, beside a patch that is drawn and thrown away at its rest")
def _():
    whole_drop(True)


@rest("a body is removed on Mesa's software renderer, too")
def _():
    with software(*RESTING) as daemon:
        remove_body(daemon, "land", is_stacked=False, **SMALL)


PASSES = {"place_ms", "scan_blocks_ms", "scan_sums_ms", "scatter_ms", "reorder_ms", "force_ms",
          "move_granules_ms", "move_bodies_ms"}


def check_numbers(daemon, patch):
    """Of one written and one discarded patch."""
    for phase in ("integrate_ms", "grid_ms", "force_ms", "depth_ms"):
        check(0 < patch["timings"][phase] < 1000 * SLOW, f"{phase}: {patch['timings']}")
    stats = daemon.ok("GET", "/v1/stats")["patches"]
    equal([stats[name] for name in ("made", "written", "discarded", "failed")], [2, 1, 1, 0],
          "patches")
    coarse = stats["scales"]["coarse"]
    equal(coarse["used"], 0, "used")
    check(coarse["steps"] >= patch["steps"], f"steps: {coarse}")
    check(coarse["particle_steps"] >= patch["steps"] * 4 * patch["granules"], f"{coarse}")
    passes = coarse["passes"]
    equal(set(passes), PASSES, "passes")
    check(all(0 < passes[name] < 1000 * SLOW for name in PASSES), f"passes: {passes}")
    grid = sum(passes[name] for name in PASSES if "sc" in name or "reorder" in name)
    check(abs(grid - coarse["grid_ms"]) < 1e-5 * grid, f"the passes of the grid: {coarse}")


def picture(daemon, place):
    answer = daemon.get(place + "/view.png?width=320&height=240")
    equal((answer.status, answer.media_type), (200, "image/png"), "answer")
    width, height, channels, _depth, rows = read_png(answer.body)
    equal((width, height), (320, 240), "size")
    middle = rows[height * 2 // 3]
    colours = {middle[i:i + channels] for i in range(0, len(middle), channels)}
    check(len(colours) > 40, f"{len(colours)} colours in a row across the sand")
    return rows


# ---- what is kept -----------------------------------------------------


@test("a patch that has ended keeps revision, poses and ledger for --patch-keep-ms, then it is gone")
def _():
    with start(*CPU, *QUICK, "--patch-keep-ms", "1500") as daemon:
        at = revision(daemon, "land")
        place = make(daemon, "land", bodies=[body()])
        patch = until(daemon, place, "written")
        began = time.monotonic()
        check_patch(patch, 1)
        check_ledger(patch["mass_ledger"])
        equal(patch["revision"], at + 1, "revision")
        again = daemon.get(place)
        while again.status == 200:
            equal(again.json, patch, "it as it is kept")
            check(time.monotonic() - began < HANG_S, "it is never forgotten")
            time.sleep(0.02)
            again = daemon.get(place)
        check(time.monotonic() - began > 1, "it was forgotten early")
        problem(again, 404)
        equal(daemon.ok("GET", "/v1/locales/land/patches")["patches"], [], "patches")
        problem(daemon.get(place + "/events"), 404)
        problem(daemon.get(place + "/view.png"), 404)
        equal(revision(daemon, "land"), at + 1, "its edit stays")


@test("hundreds of pushes a second make no more than 20 poses a second; a closing patch takes none")
def _():
    with start(*CPU, *RESTING) as daemon:
        place = make(daemon, "land", bodies=[body()])
        times = []
        with Stream(daemon.port, place + "/events") as stream:
            def read():
                fields = {}
                while fields.get("event") != "state" or '"discarded"' not in fields["data"]:
                    fields = dict(stream.block())
                    if fields.get("event") == "poses":
                        times.append(time.monotonic())
            reader = threading.Thread(target=read)
            reader.start()
            until(daemon, place, "active", "resting")
            began = time.monotonic()
            for _ in range(300):
                daemon.ok("PATCH", place + "/bodies/0", {"velocity": [0, 0, 0.5]})
            seconds = time.monotonic() - began
            daemon.ok("DELETE", place + "?discard=true")
            reader.join()
        poses = sum(at > began for at in times)
        check(0 < poses <= 20 * seconds + 10, f"{poses} poses in {seconds:.2f} s of 300 pushes")
        place = make(daemon, "land", bodies=[body()])
        closer = threading.Thread(target=Daemon.ask, args=(second(daemon), "DELETE", place))
        closer.start()
        while not daemon.ok("GET", place)["closing"]:
            time.sleep(0.002)
        problem(daemon.ask("PATCH", place + "/bodies/0", {"velocity": [0, 0, 1]}), 409)
        problem(daemon.post(place + "/bodies", body()), 409)
        closer.join()
        equal(daemon.ok("GET", place)["state"], "written", "state")


# ---- bodies that ask too much -----------------------------------------------------


@test("the lightest body at the highest speed: bounded, everything finite, nothing left outside")
def _():
    with start(*CPU, *QUICK) as daemon:
        before = heights(daemon, "land")
        light = body(mass=1, velocity=[0, 0, -1000])
        problem(daemon.post("/v1/locales/land/patches", wanted(bodies=[light])), 422, "1000",
                pointer="/bodies/0/velocity")
        fast = float(re.search(r"can follow is ([\d.]+)", daemon.post(
            "/v1/locales/land/patches", wanted(bodies=[light])).json["detail"])[1])
        light["velocity"] = [0, 0, -0.99 * fast]
        patch = until(daemon, make(daemon, "land", bodies=[light]), *ENDED)
        equal(patch["state"], "written", f"how it ended: {patch['reason']}")
        check_patch(patch, 1)
        check(all(abs(v) < 1e4 for v in patch["bodies"][0]["position"]), f"{patch['bodies']}")
        after = heights(daemon, "land")
        check(max(abs(a - b) for one, two in zip(before, after) for a, b in zip(one, two)) < 2,
              "1 kg dug deeper than the patch")


@test("a mesh that passes through itself, bent anyhow, is refused when a body is made of it")
def _():
    two = [box(0.7).decode(), box(0.5).decode()]
    shifted = re.sub(r"v (\S+)", lambda m: f"v {float(m[1]) + 0.6!r}", two[1])
    shifted = re.sub(r"f (\d+) (\d+) (\d+)",
                     lambda m: "f " + " ".join(str(int(i) + 8) for i in m.groups()), shifted)
    vertices = [line for text in (two[0], shifted) for line in text.split("\n") if line[:1] == "v"]
    faces = [line for text in (two[0], shifted) for line in text.split("\n") if line[:1] == "f"]
    with start(*CPU, *RESTING) as daemon:
        answer = daemon.put("/v1/models/crossed", "\n".join(vertices + faces) + "\n",
                            media="model/obj")
        check(answer.status in (201, 422), str(answer))
        answer = daemon.post("/v1/locales/land/patches", wanted(bodies=[body(model="crossed")]))
        problem(answer, 422, "intersects itself", pointer="/bodies/0/model")
        equal(daemon.ok("GET", "/v1/locales/land/patches")["patches"], [], "patches")


run()
