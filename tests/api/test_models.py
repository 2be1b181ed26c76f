"""Models: closed triangle meshes under names, also across restarts."""
import hashlib
import os
import shutil
import tempfile

from daemon import Daemon, problem
from fields import put_locale
from tap import case, check, equal, near, run, test

daemon = Daemon()
OBJ = "model/obj"
CORNERS = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
FACES = [(1, 3, 2), (1, 4, 3), (5, 6, 7), (5, 7, 8), (1, 2, 6), (1, 6, 5), (2, 3, 7), (2, 7, 6),
         (3, 4, 8), (3, 8, 7), (4, 1, 5), (4, 5, 8)]


def box(size=(1, 1, 1), at=(0, 0, 0), faces=FACES):
    lines = ["v " + " ".join(repr(a + s * c) for a, s, c in zip(at, size, corner))
             for corner in CORNERS]
    return "\n".join(lines + ["f " + " ".join(map(str, face)) for face in faces] + [""]).encode()


def put(name, body, status=201, to=daemon):
    return to.ask("PUT", f"/v1/models/{name}", body, media=OBJ) if status is None else \
        to.ok("PUT", f"/v1/models/{name}", body, status=status, media=OBJ)


def models(of=daemon):
    return of.ok("GET", "/v1/models")["models"]


@test("a model is measured, listed, replaced and deleted; the world's revisions do not move")
def _():
    put_locale(daemon, "land")
    equal(models(), [], "at first")
    body = box((2, 3, 0.5), (10, -4, 7))
    answer = put("crate", body, None)
    equal((answer.status, answer.headers["location"]), (201, "/v1/models/crate"), "answer")
    crate = answer.json
    near(crate.pop("volume_m3"), 3, "volume")
    equal(crate, {"id": "crate", "triangles": 12, "vertices": 8, "bytes": len(body),
                  "bounds": {"min": [10, -4, 7], "max": [12, -1, 7.5]},
                  "hash": hashlib.blake2b(body, digest_size=32).hexdigest()}, "model")
    put("anvil", box())
    put("zinc", box())
    equal([model["id"] for model in models()], ["anvil", "crate", "zinc"], "order")
    again = put("crate", box(), status=200)
    near(again["volume_m3"], 1, "volume of another")
    file = daemon.get("/v1/models/crate")
    equal((file.status, file.media_type, file.body), (200, OBJ, box()), "the file")
    equal(file.headers["etag"], f'"{again["hash"]}"', "its tag")
    known = daemon.get("/v1/models/crate", headers={"If-None-Match": file.headers["etag"]})
    equal((known.status, known.body), (304, b""), "known already")
    problem(daemon.get("/v1/models/nobody"), 404, "nobody")
    problem(daemon.get("/v1/models/crate?up=y"), 400, "up")
    equal(models()[1], again, "in the list")
    daemon.ok("DELETE", "/v1/models/anvil", status=204)
    equal([model["id"] for model in models()], ["crate", "zinc"], "after the deletion")
    problem(daemon.ask("DELETE", "/v1/models/anvil"), 404, "anvil")
    equal(daemon.ok("GET", "/v1/locales/land")["revision"], 1, "revision")


REFUSED = [
    ("an open mesh", box(faces=FACES[1:]), 422, "not closed"),
    ("a face turned around", box(faces=[(1, 2, 3)] + FACES[1:]), 422, "edge"),
    ("faces that look inwards", box(faces=[face[::-1] for face in FACES]), 422, "inwards"),
    ("no volume", box((1, 1, 0)), 422, "no volume"),
    ("quads", box(faces=[(1, 4, 3, 2)] + FACES[2:]), 422, "4 corners"),
    ("a corner that is no vertex", box(faces=FACES + [(1, 2, 99)]), 400, "99"),
    ("numbers that are not finite", box((1e999, 1, 1)), 400, "finite"),
    ("no polygons", b"v 0 0 0\n", 422, "no polygons"),
    ("nothing", b"", 422, "no polygons"),
    ("no text", bytes(range(256)), (400, 422), ""),
]


def refused(body, status, word):
    before = models()
    answer = put("bad", body, None)
    check(answer.status in (status if isinstance(status, tuple) else (status,)), str(answer))
    problem(answer, answer.status, word)
    equal(models(), before, "the list")


for what_, body_, status_, word_ in REFUSED:
    case(f"{what_}: refused with the reason", refused, body_, status_, word_)


@test("ids, media types and queries are checked")
def _():
    problem(daemon.ask("PUT", "/v1/models/a%20b", box(), media=OBJ), 400, "id")
    problem(daemon.ask("PUT", "/v1/models/" + "a" * 65, box(), media=OBJ), 400, "64")
    problem(daemon.ask("PUT", "/v1/models/a", box(), media="model/gltf-binary"), 415, "model/obj")
    problem(daemon.ask("PUT", "/v1/models/a?up=y", box(), media=OBJ), 400, "up")
    problem(daemon.ask("DELETE", "/v1/models/a%20b"), 404)


@test("with a data directory models are there after a restart, without one they are not")
def _():
    folder = tempfile.mkdtemp(prefix="kota-models-")
    data = os.path.join(folder, "data")
    try:
        with Daemon("--data", data) as first:
            put("crate", box((2, 2, 2)), to=first)
            put("gone", box(), to=first)
            put("crate", box((3, 2, 2)), status=200, to=first)
            first.ok("DELETE", "/v1/models/gone", status=204)
            want = models(first)
            equal([m["id"] for m in want], ["crate"], "before")
        with Daemon("--data", data) as second:
            equal(models(second), want, "after")
            second.ok("DELETE", "/v1/models/crate", status=204)
        with Daemon("--data", data) as third:
            equal(models(third), [], "after the deletion")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@test("models count in the world's bytes and have a limit of their own")
def _():
    limits = daemon.ok("GET", "/v1/limits")
    equal(limits["models_max"], 1000, "models_max")
    with Daemon("--max-world-bytes", str(1 << 20)) as little:
        body = box() + b"#" * 900000
        put("one", body, to=little)
        problem(put("two", body, None, little), 413, limit=1 << 20)
        equal(len(models(little)), 1, "models")


run(daemon.stop)
