#!/usr/bin/env python3
"""Daemons that share one log in a real PostgreSQL: what is written on one is there on the others,
under the same revisions and with the same bits; what happens when the engine or a daemon goes away.
"""
import array
import os
import re
import shutil
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
from background import free_port
from daemon import F32, KOTAD, PROBLEM, Daemon
from events import Stream
from metrics import scrape
from postgres import Server
from tap import HANG_S, check, equal, run, test, wait_for

SIDE = 300  # four tiles
TETRAHEDRON = ("v 0 0 0\nv {0} 0 0\nv 0 {0} 0\nv 0 0 {0}\n"
               "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n")
ROOF = "v 1 1 9\nv 9 1 9\nv 9 9 8\nv 1 9 8\nf 1 2 3 4\n"
CRUST = "".join(f"v {x} {y} {z}\n" for x in (-50, 50) for y in (-50, 50) for z in (-50, 50)) + (
    "f 1 2 4 3\nf 5 7 8 6\nf 1 5 6 2\nf 3 4 8 7\nf 1 3 7 5\nf 2 6 8 4\n")

engine = Server().__enter__()


class Node:
    """A daemon of the fleet and its data."""

    def __init__(self, name, *args):
        self.name, self.args = name, args
        self.folder = tempfile.mkdtemp(prefix="kota-test-")
        self.data = os.path.join(self.folder, "data")
        self.daemon = None

    def start(self, *more, conninfo=None, wait=True):
        self.daemon = Daemon("--data", self.data, "--cluster", conninfo or engine.conninfo(),
                             "--node", self.name, "--lease-ms", "2000", *self.args, *more, wait=wait)
        return self

    def __getattr__(self, name):
        return getattr(self.daemon, name)

    def end(self):
        if self.daemon and self.daemon.is_alive():
            self.daemon.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.end()

    def cluster(self):
        return self.ok("GET", "/v1/stats")["cluster"]

    def locale(self, name="land", revision=None):
        """The locale, when it has come to that revision."""
        headers = {"Kota-Min-Revision": str(revision)} if revision else {}
        return self.ok("GET", f"/v1/locales/{name}", headers=headers)

    def edit(self, column, row, height, name="land", headers=None):
        return self.post(f"/v1/locales/{name}/edits",
                         {"rect": [column, row, 1, 1], "op": "set", "heights": [height]},
                         headers=headers)

    def tags(self, name="land", layer="ground"):
        """The content of each full tile."""
        tags = {}
        for row in range(2):
            for column in range(2):
                target = f"/v1/locales/{name}/tiles/0/{column}/{row}?format=f32&layer={layer}"
                answer = self.get(target)
                check(answer.status == 200, f"{target}: {answer}")
                tags[column, row] = answer.headers["etag"], answer.body
        return tags


def put_ground(node, name="land"):
    node.ok("PUT", f"/v1/locales/{name}", {}, status=201)
    heights = array.array("f", (i % 97 / 7 for i in range(SIDE * SIDE)))
    node.ok("PUT", f"/v1/locales/{name}/layers/ground?cols={SIDE}&rows={SIDE}&spacing=1,1",
            heights.tobytes(), status=201, media=F32)


def same(a, b, name="land", revision=None):
    revision = revision or a.locale(name)["revision"]
    mine, other = a.locale(name, revision), b.locale(name, revision)
    for locale in mine, other:
        del locale["staleness_s"]  # a node is in step a moment after it has applied a revision
    equal(other, mine, f"{name} at {revision}")
    equal(b.tags(name), a.tags(name), f"tiles of {name}")
    windows = [[node.get(f"/v1/locales/{name}/layers/ground/samples?{query}").headers.get("etag")
                for query in ("", "rect=1,2,270,3", "step=4&format=r16")] for node in (a, b)]
    equal(windows[1], windows[0], f"windows of {name}")


a, b = Node("a").start(), Node("b").start()
put_ground(a)


@test("a locale and its ground are on the other node, tile for tile")
def seen():
    same(a, b, revision=2)
    wait_for("b to be in step", lambda: b.locale()["staleness_s"] == 0 and
             "kota-staleness" not in b.get("/v1/locales/land").headers)


@test("a read with Kota-Min-Revision sees what was written on the other node a moment before")
def read_own_writes():
    for i in range(40):
        one, other = (a, b) if i % 2 else (b, a)
        revision = one.edit(i, i, 100 + i).json["revision"]
        equal(revision, 3 + i, "the revision")
        got = other.ok("GET", f"/v1/locales/land/height?x={i}&y={i}",
                       headers={"Kota-Min-Revision": str(revision)})
        equal(got["height"], 100 + i, "the height")
    same(a, b)


@test("a locale that was just made is waited for, one that was deleted is not")
def new_and_gone():
    for i in range(5):
        a.ok("PUT", "/v1/locales/brief", {}, status=201 if i == 0 else 201)
        answer = b.get("/v1/locales/brief", headers={"Kota-Min-Revision": str(2 * i + 1)})
        equal((answer.status, answer.json.get("revision")), (200, 2 * i + 1), "made")
        equal(b.ask("DELETE", "/v1/locales/brief").status, 204, "deleted")
        answer = a.get("/v1/locales/brief", headers={"Kota-Min-Revision": str(2 * i + 2)})
        equal(answer.status, 404, "gone")
    answer = a.get("/v1/locales/brief", headers={"Kota-Min-Revision": "1000"})
    equal((answer.status, answer.headers.get("retry-after")), (503, "1"), "never was")


@test("writes on both nodes at once come to one order, all of them once")
def both():
    before, failures = a.locale()["revision"], []
    revisions = {}

    def work(node, first):
        own = Daemon.__new__(Daemon)
        own.__dict__.update(node.daemon.__dict__, connection=None)
        for i in range(60):
            answer = own.post("/v1/locales/land/edits", {
                "rect": [first, i, 2, 1], "op": "set", "heights": [i, first]})
            if answer.status != 200:
                failures.append(answer)
            else:
                revisions[first, i] = answer.json["revision"]
        own.connection.close()
    threads = [threading.Thread(target=work, args=(node, 10 * k))
               for k, node in enumerate((a, b, a, b))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not failures, f"{len(failures)} failed, the first: {failures[:1]}")
    equal(sorted(revisions.values()), list(range(before + 1, before + 241)), "revisions")
    same(a, b, revision=before + 240)


@test("an upload of each kind, a deletion, models and manifests are on the other node")
def kinds():
    a.ok("PUT", "/v1/locales/land/layers/roof?role=ceiling", ROOF, status=201, media="model/obj")
    a.ok("PUT", "/v1/locales/planet", {"title": "Plänet"}, status=201)
    b.locale("planet", 1)
    b.ok("PUT", "/v1/locales/planet/layers/crust?frame=spherical", CRUST, status=201,
         media="model/obj")
    a.locale("planet", 2)
    a.ok("PUT", "/v1/models/rock", TETRAHEDRON.format(2), status=201, media="model/obj")
    wait_for("the model", lambda: b.get("/v1/models/rock").status == 200)
    equal(b.get("/v1/models/rock").body, a.get("/v1/models/rock").body, "the model's file")
    b.ok("PUT", "/v1/models/rock", TETRAHEDRON.format(3), status=200, media="model/obj")
    wait_for("the new model", lambda: a.ok("GET", "/v1/models") == b.ok("GET", "/v1/models"))
    same(a, b)
    for x, y in ((5, 5), (2.5, 7.25)):
        asked = {"points": [[x, y, 3]]}
        equal(b.ok("POST", "/v1/locales/land/contact", asked),
              a.ok("POST", "/v1/locales/land/contact", asked), "what is above and below")
    asked = {"rays": [{"origin": [200, 10, 5], "direction": [-1, 0, 0]}]}
    equal(b.ok("POST", "/v1/locales/planet/ray", asked),
          a.ok("POST", "/v1/locales/planet/ray", asked), "the planet's crust")
    revision = b.ok("POST", "/v1/locales/land/layers/roof/polygons", {
        "polygons": [[[20, 20, 7], [30, 20, 7], [30, 30, 6]]], "remove": [0]})["revision"]
    for x, y in ((5, 5), (28, 22)):
        asked = {"points": [[x, y, 3]]}
        got = [node.ok("POST", "/v1/locales/land/contact", asked,
                       headers={"Kota-Min-Revision": str(revision)}) for node in (a, b)]
        equal(got[0], got[1], "over what was edited")
    export = "/v1/locales/land/layers/roof"
    equal(b.get(export).body, a.get(export).body, "the roof's polygons")
    revision = a.locale()["revision"]
    b.ok("PUT", "/v1/locales/land", {"triangulation": "main", "gravity": [0, 0.6, -0.8]})
    b.ok("DELETE", "/v1/locales/land/layers/roof", status=204)
    same(b, a, revision=revision + 2)
    b.ok("PUT", "/v1/locales/land", {})
    a.ok("DELETE", "/v1/locales/planet", status=204)
    wait_for("the deletion", lambda: b.get("/v1/locales/planet").status == 404)
    b.ok("DELETE", "/v1/models/rock", status=204)
    wait_for("the model's deletion", lambda: a.get("/v1/models/rock").status == 404)
    same(b, a, revision=revision + 3)


@test("an Idempotency-Key is known on each node; one that begins with ~ is refused")
def keys():
    first = a.edit(7, 7, 7, headers={"Idempotency-Key": "seven"})
    again = b.edit(7, 7, 7, headers={"Idempotency-Key": "seven"})
    equal((again.status, again.json), (200, first.json), "the first answer")
    equal(again.headers.get("idempotency-replayed"), "true", "replayed")
    equal(b.edit(7, 7, 8, headers={"Idempotency-Key": "seven"}).status, 422, "another request")
    bad = b.edit(7, 7, 8, headers={"Idempotency-Key": "~seven"})
    equal((bad.status, bad.json["errors"][0]["pointer"]), (400, "Idempotency-Key"), "~")
    same(a, b)


@test("feeds on both nodes tell the same revisions")
def feeds():
    first = a.locale()["revision"]
    b.locale(revision=first)
    with Stream(a.port, "/v1/locales/land/events?samples=f32") as one, \
            Stream(b.port, "/v1/locales/land/events?samples=f32") as other:
        for i in range(10):
            (a if i % 3 else b).edit(i, 40, i)
        told = [[stream.event().data for _ in range(10)] for stream in (one, other)]
    equal(told[0], told[1], "the events")
    check(all(event["samples"] for event in told[0]), f"an event without samples: {told[0]}")
    equal([event["revision"] for event in told[0]], list(range(first + 1, first + 11)), "revisions")
    diffs = [node.ok("GET", f"/v1/locales/land/diff?since={first}&layer=ground") for node in (a, b)]
    equal(diffs[0], diffs[1], "diff")


@test("If-Match is looked at against what the other node has written")
def conditions():
    revision = a.edit(3, 3, 1).json["revision"]
    wrong = b.edit(3, 3, 2, headers={"If-Match": f'"{revision - 1}"'})
    equal(wrong.status, 412, "an old revision")
    b.locale(revision=revision)
    right = b.edit(3, 3, 2, headers={"If-Match": f'"{revision}"'})
    equal((right.status, right.json["revision"]), (200, revision + 1), "the right one")


@test("what a node has acknowledged another does not refuse, though it has not heard of it yet")
def fresh():
    heights = array.array("f", [1] * 16).tobytes()
    for i in range(20):
        a.ok("PUT", f"/v1/locales/new-{i}", {}, status=201)
        b.ok("PUT", f"/v1/locales/new-{i}/layers/g?cols=4&rows=4&spacing=1,1", heights, status=201,
             media=F32)
        revision = b.edit(1, 1, 3, f"new-{i}").json["revision"]
        made = a.edit(1, 1, 4, f"new-{i}", {"If-Match": f'"{revision}"'})
        equal((made.status, made.json["revision"]), (200, 4), f"new-{i} after {revision}")
        equal(a.ask("DELETE", f"/v1/locales/new-{i}").status, 204, f"DELETE new-{i}")
        b.ok("PUT", f"/v1/locales/new-{i}", {}, status=201, headers={"If-None-Match": "*"})
        equal(b.ask("DELETE", f"/v1/locales/new-{i}").status, 204, f"DELETE new-{i} again")
    equal(b.edit(1, 1, 3, "nowhere").status, 404, "one that nobody has")


@test("a daemon that ends and comes back has what was written meanwhile, before it serves")
def restart():
    b.stop()
    for i in range(30):
        last = a.edit(i, 60, i).json["revision"]
    b.start()
    equal(b.locale()["revision"], last, "the revision at once")
    same(a, b)


@test("kill -9: what was acknowledged is there, also on the node that was killed")
def killed():
    for i in range(5):
        last = b.edit(i, 70, i).json["revision"]
        b.daemon.process.kill()
        b.daemon.process.wait()
        b.daemon.kill()
        check(a.locale(revision=last)["revision"] >= last, "lost")
        b.start()
        equal(b.locale()["revision"], last, "of the one that was killed")
    same(a, b)


@test("while the engine is away reads go on and say so, writes are 503, then all is equal again")
def away():
    revision = a.locale()["revision"]
    engine.stop("immediate")
    wait_for("writes to be refused", lambda: a.edit(1, 1, 1).status == 503)
    refused = a.edit(1, 1, 1)
    equal((refused.media_type, refused.headers.get("retry-after")), (PROBLEM, "1"), "the problem")
    check("shared log" in refused.json["detail"], refused.body)
    wait_for("staleness", lambda: a.locale().get("staleness_s"))
    answer = a.get("/v1/locales/land/height?x=1&y=1")
    equal((answer.status, answer.headers["kota-revision"]), (200, str(revision)), "a read")
    check(float(answer.headers["kota-staleness"]) > 0, answer.headers)
    equal(a.get("/readyz").status, 200, "ready for a while")
    with Node("c") as c:
        equal(c.get("/readyz").status, 503, "a new node has never seen it")
        equal(c.get("/livez").status, 200, "and lives")
    engine.start()
    wait_for("writes again", lambda: b.edit(1, 1, 5).status == 200)
    wait_for("to be in step", lambda: a.locale()["staleness_s"] == 0 and
             "kota-staleness" not in a.get("/v1/locales/land").headers)
    same(b, a)


@test("readiness ends when the log has been away for --max-staleness, 0: never")
def readiness():
    port = free_port()
    gone = f"host=127.0.0.1 port={port} dbname=kota user=kota connect_timeout=2"
    for most, status in (("1", 503), ("0", 200)):
        node = Node("d", "--max-staleness", most).start(conninfo=gone)
        equal(node.get("/readyz").status, status, f"--max-staleness {most}")
        equal(node.ok("GET", "/v1/stats")["cluster"]["staleness_s"], None, "never seen")
        equal(node.ask("PUT", "/v1/locales/x", {}).status, 503, "a write")
        node.end()


@test("a node that was away longer than the log reaches takes a snapshot, and tells its readers")
def trimmed():
    with Node("e", "--snapshot-every", "20", "--keep-entries", "5") as e:
        same(a, e)
        b.stop()
        for i in range(70):
            last = e.edit(i, 80, i).json["revision"]
        wait_for("the log to be trimmed", lambda: int(engine.value(
            "SELECT min(rev) FROM kota.edit WHERE locale = 'land'")) > last - 40)
        b.start()
        equal(b.locale()["revision"], last, "the revision at once")
        check(b.cluster()["snapshots_taken"] >= 1, b.cluster())
        same(e, b)
        equal(b.get(f"/v1/locales/land/diff?since={last - 60}&layer=ground").status, 410, "diff")
    same(a, b)


@test("a locale of its own comes into the log; one that the log has, too, is refused")
def adoption():
    lone = Node("f")
    with Daemon("--data", lone.data) as daemon:
        put_ground(Wrap(daemon), "island")
        daemon.ok("POST", "/v1/locales/island/edits", {
            "rect": [1, 1, 1, 1], "op": "set", "heights": [55]})
    lone.start()
    same(lone, a, "island", 3)
    lone.end()
    foreign = Node("g")
    with Daemon("--data", foreign.data) as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    foreign.start(wait=False)
    equal(foreign.daemon.process.wait(timeout=HANG_S), 1, "exit status")
    check("has land of its own" in foreign.daemon.log_text(), foreign.daemon.log_text())
    foreign.daemon.kill()
    with Daemon("--data", foreign.data) as daemon:  # as it was
        equal(daemon.ok("GET", "/v1/locales/land")["revision"], 1, "untouched")
    shutil.rmtree(foreign.folder)


@test("a store that follows a log starts without --cluster only with --cluster none, and leaves it")
def leaving():
    node = Node("h").start()
    last = node.locale()["revision"]
    node.stop()
    daemon = Daemon("--data", node.data, wait=False)
    equal(daemon.process.wait(timeout=HANG_S), 1, "exit status")
    check("follows the shared log" in daemon.log_text(), daemon.log_text())
    daemon.kill()
    with Daemon("--data", node.data, "--cluster", "none") as alone:
        equal(alone.ok("GET", "/v1/locales/land")["revision"], last, "the revision")
        equal(alone.ok("GET", "/v1/stats")["cluster"], None, "cluster")
    with Daemon("--data", node.data) as alone:
        equal(alone.ok("GET", "/v1/locales/land")["revision"], last, "the revision")
    shutil.rmtree(node.folder)


@test("a locale that a node does not serve is led to one that does: 307, or 421 where none lives")
def elsewhere():
    port = free_port()
    north = Node("north", "--locales", "n*,land", "--node-url", f"http://127.0.0.1:{port}/")
    south = Node("south", "--locales", "s*")
    with north, south:
        a.ok("PUT", "/v1/locales/ness", {"title": "Ness"}, status=201)
        north.locale("ness", 1)
        equal([locale["id"] for locale in south.ok("GET", "/v1/locales")["locales"]], [], "south's")
        urls = {}

        def led():
            for method, target, body in (("GET", "/v1/locales/ness?", None),
                                         ("DELETE", "/v1/locales/ness/layers/x", None),
                                         ("POST", "/v1/locales/ness/height?mode=nearest&x=%20", {}),
                                         ("PUT", "/v1/locales/ness", {})):
                answer = south.ask(method, target, body)
                if answer.status != 307:
                    return False
                urls[target] = answer.headers["location"]
                equal(answer.media_type, PROBLEM, "media type")
            return True
        wait_for("north to be known", led)
        for target, url in urls.items():
            check(url.endswith(target) and url.startswith("http://127.0.0.1:"), url)
        south.ok("PUT", "/v1/locales/sound", {}, status=201)
        equal(north.get("/v1/locales/sound").status in (307, 421), True, "north has no sound")
        equal(a.locale("sound", 1)["revision"], 1, "who serves all has it")


@test("/v1/stats and /metrics tell of the log")
def numbers():
    told = a.cluster()
    equal((told["node"], told["away"], told["lag"], told["behind"], told["reason"]),
          ("a", False, 0, 0, None), "a")
    check(told["appends"] > 100 and told["entries_applied"] > 50, told)
    check(re.fullmatch("[0-9a-f]{32}", told["identity"] or ""), told)
    equal(told["identity"], b.cluster()["identity"], "one log")
    check({"a", "b"} <= {node["id"] for node in told["nodes"]}, told["nodes"])
    families = scrape(a.daemon)
    equal(families["kota_cluster_appends_total"].value(), a.cluster()["appends"], "appends")
    equal(families["kota_cluster_away"].value(), 0, "away")
    count = families["kota_cluster_append_duration_seconds"].value("_count")
    check(count >= families["kota_cluster_appends_total"].value(), "appends timed")


@test("flags that cannot be are refused, and a password is never told")
def flags():
    secret = "host=127.0.0.1 port=1 dbname=kota password=sesame-open"
    data = tempfile.mkdtemp(prefix="kota-test-")
    for args, said in (((), "--cluster needs --data"),
                       (("--data", data, "--node", "a b"), "--node"),
                       (("--data", data, "--locales", "a/b"), "--locales"),
                       (("--data", data, "--node-url", "ftp://x"), "--node-url")):
        daemon = Daemon("--cluster", secret, *args, wait=False)
        equal(daemon.process.wait(timeout=HANG_S), 2, f"{args}")
        check(said in daemon.log_text(), daemon.log_text())
        check("sesame" not in daemon.log_text(), "the password was told")
        daemon.kill()
    path = os.path.join(data, "conninfo")
    with open(path, "w") as file:
        file.write(engine.conninfo() + "\n")
    node = Node("i").start(conninfo=f"@{path}")
    same(a, node)
    node.end()
    shutil.rmtree(data)


class Wrap:
    """A daemon without a log, asked as a node."""

    def __init__(self, daemon):
        self.daemon = daemon

    def ok(self, *args, **named):
        return self.daemon.ok(*args, **named)


@test("both nodes end well, and their stores are sound")
def ends():
    same(a, b)
    for node in (a, b):
        data = node.data
        node.stop()
        status = os.spawnv(os.P_WAIT, KOTAD, [KOTAD, "--check", "--data", data])
        equal(status, 0, "kotad --check")
        node.end()
    engine.remove()


run()
