"""Writes over a restart: keys, revisions and diffs go on where they stood; metrics of the store."""
import tempfile

from daemon import F32, Daemon, check, equal, problem
from fields import put_layer, put_locale, put_terrain
from mesh_oracle import obj, rectangle
from oracle import Terrain
from tap import run, test

folder = tempfile.TemporaryDirectory(prefix="kota-test-")
FLAT = Terrain(8, 6, [[0.0] * 8] * 6)
ONE = {"rect": [0, 0, 1, 1], "op": "add", "heights": [1], "layer": "ground"}


def data(name):
    return ("--data", f"{folder.name}/{name}")


def keyed(daemon, i, method, target, body, media):
    return daemon.ask(method, target, body, media=media, headers={"Idempotency-Key": f"key-{i}"})


@test("keys are kept over restarts, with the whole first answer, of all that was deleted, too")
def _():
    at, upload = "/v1/locales/a", "/v1/locales/a/layers/ground?cols=2&rows=2&spacing=1,1"
    mesh = obj([rectangle(0, 0, 4, 4, 3)])
    writes = (("PUT", at, {"title": "x"}, None), ("PUT", upload, b"\0" * 16, F32),
              ("PUT", at + "/layers/roof", mesh, "model/obj"), ("POST", at + "/edits", ONE, None),
              ("PUT", at, {"gravity": [0, 0.6, -0.8]}, None),
              ("DELETE", at + "/layers/roof", None, None), ("DELETE", at, None, None))
    with Daemon(*data("keys")) as daemon:
        first = [keyed(daemon, i, *write) for i, write in enumerate(writes)]
    equal([a.status for a in first], [201, 201, 201, 200, 200, 204, 204], "first answers")
    with Daemon(*data("keys")) as daemon:
        for i, write in enumerate(writes):
            again = keyed(daemon, i, *write)
            equal((again.status, again.body), (first[i].status, first[i].body), f"{write[:2]}")
            for name in ("location", "etag", "kota-revision"):
                equal(again.headers.get(name), first[i].headers.get(name), f"{write[:2]}: {name}")
            equal(again.headers.get("idempotency-replayed"), "true", "Idempotency-Replayed")
        problem(keyed(daemon, 0, "PUT", at, {"title": "y"}, None), 422, pointer="Idempotency-Key")
        equal(daemon.ok("GET", "/v1/locales"), {"locales": [], "next": None}, "nothing came back")


@test("an empty world goes on counting after a restart: revisions, and what follows is durable")
def _():
    with Daemon(*data("empty")) as daemon:
        put_terrain(daemon, "a", FLAT)
        equal(daemon.ask("DELETE", "/v1/locales/a").status, 204, "DELETE")
    with Daemon(*data("empty")) as daemon:
        equal(put_locale(daemon, "a")["revision"], 4, "revision")
        equal(put_layer(daemon, "a", FLAT)["revision"], 5, "revision")
    with Daemon(*data("empty")) as daemon:
        equal(daemon.ok("GET", "/v1/locales/a")["revision"], 5, "after another restart")


@test("If-Match and diff know revisions from before a restart")
def _():
    with Daemon(*data("diff")) as daemon:
        put_terrain(daemon, "a", FLAT)
        daemon.ok("POST", "/v1/locales/a/edits", {"rect": [1, 2, 3, 1], "heights": [1, None, 3]})
    with Daemon(*data("diff")) as daemon:
        daemon.ok("POST", "/v1/locales/a/edits", ONE, headers={"If-Match": '"3"'})
        stale = daemon.post("/v1/locales/a/edits", ONE, headers={"If-Match": '"3"'})
        problem(stale, 412, pointer="If-Match")
        equal(daemon.ok("GET", "/v1/locales/a/diff?since=2"),
              {"locale": "a", "revision": 4, "rects": [[0, 0, 1, 1], [1, 2, 3, 1]]}, "diff")


@test("a mesh that is built anew for another gravity is there after a restart")
def _():
    ray = {"rays": [{"origin": [2, 2, 9], "direction": [0, 0, -1]}]}
    with Daemon(*data("mesh")) as daemon:
        put_locale(daemon, "m")
        daemon.ok("PUT", "/v1/locales/m/layers/deck", obj([rectangle(0, 0, 4, 4, 3)]),
                  media="model/obj", status=201)
        daemon.ok("PUT", "/v1/locales/m", {"gravity": [0.6, 0, -0.8]})
        before = daemon.ok("POST", "/v1/locales/m/ray", ray)
    equal(before["results"][0]["status"], "hit", "hit")
    with Daemon(*data("mesh")) as daemon:
        equal(daemon.ok("POST", "/v1/locales/m/ray", ray), before, "after a restart")


@test("/v1/stats and /metrics tell of the store")
def _():
    with Daemon(*data("numbers")) as daemon:
        put_terrain(daemon, "a", FLAT)
        daemon.ok("POST", "/v1/locales/a/edits", ONE)
        store = daemon.ok("GET", "/v1/stats")["store"]
        equal((store["read_only"], store["reason"]), (False, None), "writable")
        check(store["commits"] >= 3 and store["wal_bytes"] > 0, f"commits and WAL: {store}")
        metrics = dict(line.rsplit(" ", 1) for line in
                       daemon.get("/metrics").body.decode().splitlines() if line[0] != "#")
        check(float(metrics["kota_store_commits_total"]) >= 3, "commits")
        equal(metrics["kota_store_commit_duration_seconds_count"],
              metrics["kota_store_commits_total"], "each commit is in the histogram")
        equal(metrics["kota_store_read_only"], "0", "read_only")
        for name in ("wal_bytes", "wal_bytes_max", "database_bytes", "checkpoints_total",
                     "checkpoints_blocked_total", "behind_tiles", "behind_bytes"):
            check(f"kota_store_{name}" in metrics, f"no kota_store_{name}")


run(folder.cleanup, "the folder is removed")
