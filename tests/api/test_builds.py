"""Builds of meshes that are under way: `builds` of /v1/stats, and their number in /metrics."""
import json
import math
import threading
import time

from daemon import Daemon, connection_to
from fields import put_locale
from mesh_oracle import put_mesh
from tap import HANG_S, check, equal, run, test

SIDE = 360
EDITED_SIDE = 240  # enough to be seen: here is no share that must have risen far
daemon = Daemon()


def hills(side):
    """OBJ of 2 side² triangles."""
    lines = [f"v {i % (side + 1)} {i // (side + 1)} {i * 7919 % 1000 / 1000}"
             for i in range((side + 1) ** 2)]
    for row in range(side):
        for a in range(row * (side + 1) + 1, row * (side + 1) + 1 + side):
            b = a + side + 1
            lines.append(f"f {a} {a + 1} {b}\nf {a + 1} {b + 1} {b}")
    return "\n".join(lines).encode()


LARGE = hills(SIDE)


def builds():
    return daemon.ok("GET", "/v1/stats")["builds"]


def metric(name):
    for line in daemon.get("/metrics").body.decode().splitlines():
        if line.startswith(name + " "):
            return int(line.split()[1])
    raise AssertionError(f"no {name}")


def until_none():
    deadline, left = time.monotonic() + HANG_S, None
    while left != ([], 0) and time.monotonic() < deadline:
        left = builds(), metric("kota_mesh_builds")
        time.sleep(0.005)
    equal(left, ([], 0), "builds that are left")


def start(path, query="", method="PUT", body=LARGE):
    """A request whose answer is not read yet."""
    connection = connection_to(daemon.port, timeout=HANG_S)
    connection.request(method, path + query, body=body, headers={"Content-Type": "model/obj"})
    return connection


def watch(answered):
    """All that is seen of one build until the answer is there."""
    seen = []
    while not answered.is_set():
        now = builds()
        seen += [(one, metric("kota_mesh_builds")) for one in now]
        time.sleep(0.001)
    return seen


def answer_of(connection, answered, out):
    response = connection.getresponse()
    out.append((response.status, response.read()))
    connection.close()
    answered.set()


def watched(connection):
    """The status of the answer, and what was seen until it came."""
    answered, out = threading.Event(), []
    thread = threading.Thread(target=answer_of, args=(connection, answered, out))
    thread.start()
    seen = watch(answered)
    thread.join()
    return out[0][0], seen


def rises(seen, kind, polygons, name):
    for (one, _), (later, _) in zip(seen, seen[1:]):
        check(one["done"] <= later["done"], f"done falls: {one}, {later}")
        check(one["elapsed_ms"] <= later["elapsed_ms"], f"time goes back: {one}, {later}")
    for one, _ in seen:
        equal((one["locale"], one["layer"], one["kind"]), (name, "mesh", kind), "the build")
        check(one["polygons"] in (None, polygons), f"{one['polygons']} polygons")
        check(one["polygons"] or one["done"] == 0, f"done while the file is decoded: {one}")
        check(0 <= one["done"] <= 1, f"done {one['done']}")
    check(len({one["done"] for one, _ in seen}) >= 4, f"steps: {[one['done'] for one, _ in seen]}")


@test("an upload is listed from its start to its end: polygons, a share that rises, its time")
def _():
    put_locale(daemon, "hills")
    equal(builds(), [], "before")
    whole = []
    for turn in range(20):  # a busy machine does not let this one look at each moment
        status, seen = watched(start("/v1/locales/hills/layers/mesh"))
        equal(status, 200 if turn else 201, "the upload")
        rises(seen, "upload", 2 * SIDE * SIDE, "hills")
        until_none()
        whole += seen
        if any(one["polygons"] is None for one, _ in whole) and \
                max(one["done"] for one, _ in whole) > 0.7:
            break
    check(any(one["polygons"] is None for one, _ in whole), "it is never decoded")
    check(max(one["done"] for one, _ in whole) > 0.7, f"the most: {whole[-1]}")
    check(any(number == 1 for _, number in whole), "kota_mesh_builds")


@test("on a planet, too")
def _():
    put_locale(daemon, "planet")
    path = "/v1/locales/planet/layers/mesh"
    status, seen = watched(start(path, "?frame=cylindrical"))
    equal(status, 201, "the upload")
    rises(seen, "upload", 2 * SIDE * SIDE, "planet")
    until_none()


def stars(count, corners):
    """OBJ of one concave ring, as many times: each takes milliseconds to split."""
    lines = []
    for i in range(corners):
        turn, far = 2 * math.pi * i / corners, 50 if i % 2 else 100
        lines.append(f"v {far * math.cos(turn):.6f} {far * math.sin(turn):.6f} 0")
    face = "f " + " ".join(str(i) for i in range(1, corners + 1))
    return "\n".join(lines + [face] * count).encode()


@test("a build whose client is gone ends, and is not listed any more")
def _():
    put_locale(daemon, "left")
    connection = start("/v1/locales/left/layers/mesh", body=stars(400, 4095))
    deadline = time.monotonic() + HANG_S
    while not any(one["polygons"] for one in builds()) and time.monotonic() < deadline:
        time.sleep(0.001)
    equal([one["polygons"] for one in builds()], [400], "polygons")
    connection.close()
    until_none()
    equal(daemon.ok("GET", "/v1/locales/left")["layers"], [], "layers")


@test("what is refused is not listed any more: malformed, strict, no polygon left")
def _():
    put_locale(daemon, "refused")
    path = "/v1/locales/refused/layers/mesh"
    for body, query, status in ((b"v 1 2\n", "", 422), (b"v 0 0 0\nv 1 0 0\nf 1 2 1\n", "", 422),
                                (LARGE + b"\nf 1 1 1\n", "?strict=true", 422)):
        got, _ = watched(start(path, query, body=body))
        equal(got, status, f"status of {body[:20]}")
        until_none()


@test("two uploads are two, the oldest first; heights are none")
def _():
    for name in ("one", "two"):
        put_locale(daemon, name)
    connections = [start(f"/v1/locales/{name}/layers/mesh") for name in ("one", "two")]
    both, deadline = [], time.monotonic() + HANG_S
    while len(both) < 2 and time.monotonic() < deadline:
        both = builds()
    equal(sorted(one["locale"] for one in both), ["one", "two"], "builds")
    check(both[0]["elapsed_ms"] >= both[1]["elapsed_ms"], f"order: {both}")
    status = daemon.put("/v1/locales/one/layers/ground?cols=2&rows=2&spacing=1,1", bytes(16),
                        media="application/vnd.kota.f32").status
    equal((status, len([one for one in builds() if one["layer"] == "ground"])), (201, 0), "heights")
    for connection in connections:
        equal(connection.getresponse().status, 201, "upload")
        connection.close()
    until_none()


def third_removed(name, failed):
    """By edits of 9,000 polygons."""
    connection = connection_to(daemon.port, timeout=HANG_S)
    for i in range(0, 2 * EDITED_SIDE ** 2 // 3, 9000):
        connection.request("POST", f"/v1/locales/{name}/layers/mesh/polygons",
                           json.dumps({"remove": list(range(i, i + 9000))}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if b"revision" not in answer.read():
            failed.append(answer.status)
    connection.close()


@test("an edit that makes the whole tree again is listed, and a rebuild in the background")
def _():
    put_locale(daemon, "edited")
    put_mesh(daemon, "edited", hills(EDITED_SIDE))
    far = b"v 0 0 0\nv 90000 0 0\nv 0 90000 0\nf 1 2 3\n"
    status, seen = watched(start("/v1/locales/edited/layers/mesh/polygons", method="POST",
                                 body=far))
    equal(status, 200, "the edit")
    rises([pair for pair in seen if pair[0]["kind"] == "edit"], "edit",
          2 * EDITED_SIDE ** 2 + 1, "edited")
    until_none()
    before, seen, failed = metric("kota_mesh_rebuilds_total"), [], []
    thread = threading.Thread(target=third_removed, args=("edited", failed))
    thread.start()
    deadline = time.monotonic() + HANG_S
    while thread.is_alive() or builds() or metric("kota_mesh_rebuilds_total") == before:
        check(time.monotonic() < deadline, "no tree is rebuilt")
        seen += builds()
        time.sleep(0.001)
    thread.join()
    equal(failed, [], "edits that failed")
    check(any(one["kind"] == "rebuild" and one["done"] > 0 for one in seen),
          f"seen: {seen[-12:]}")
    until_none()


run()
