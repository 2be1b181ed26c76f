#!/usr/bin/env python3
"""Impacts where daemons share a log: each has its crater on all nodes, once, on whichever node it was asked for; granules
are where the ground is simulated, or where there is room. By the C solver; b simulates so slowly that
its patches last.
"""
import http.client
import json
import os
import struct
import sys
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "cluster"))
from daemon import F32, check, equal
from nodes import Node, wait_until
from postgres import Server
from tap import HANG_S, run, test

SIDE = 120  # samples, half a metre apart
BALL = {"radius": 1.8, "mass": 40000}  # 4 coarse granules across
SAND = ("--gpu", "cpu", "--gpu-warm", "--patch-pause-ms", "300", "--patch-linger-ms", "3000",
        "--patches-medium", "0", "--patches-fine", "0", "--patches-coarse", "1")
QUICK = (*SAND, "--patch-active-max-ms", "700", "--patch-speed", "0")
LONG = (*SAND, "--patch-active-max-ms", "3000", "--patch-speed", "1")

engine = Server().__enter__()
a = Node(engine.conninfo(), "a", *QUICK).start()
b = Node(engine.conninfo(), "b", *LONG).start()
c = Node(engine.conninfo(), "c", "--gpu", "off").start()
IMPACTS = "/v1/locales/land/impacts"
SQUARE = {"center": [20, 44], "size": [12, 12], "scale": "coarse", "depth": 1.8}
SMALL = {**SQUARE, "center": [30, 30], "size": [6, 6]}  # an impact's own would have 13 times as many granules


def url_of(node, path=IMPACTS):
    return f"http://127.0.0.1:{node.port}{path}"


def ask(url, method="GET", body=None, key=None):
    """Status, Location and JSON of an address; redirects are not followed."""
    to = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(to.hostname, to.port, timeout=HANG_S)
    headers = {"Content-Type": "application/json"} if body else {}
    connection.request(method, to.path + ("?" + to.query if to.query else ""),
                       body=json.dumps(body) if body else None,
                       headers={**headers, "Idempotency-Key": key} if key else headers)
    answer = connection.getresponse()
    got = answer.status, answer.headers.get("Location"), json.loads(answer.read())
    connection.close()
    return got


def hit(node, at, key=None, query="", **more):
    return ask(url_of(node) + query, "POST",
               {"radius": 1, "mass": 10000, "position": [*at, 12], "velocity": [0, 0, -3], **more}, key)


def lead(node, at, to, key=None, **more):
    """The answer of where a node leads to."""
    status, location, problem = hit(node, at, key, **more)
    equal((status, location), (307, url_of(to) + "?placed=true"), f"{node.name}: {problem}")
    return hit(to, at, key, "?placed=true", **more)


def make_patch():
    """Of b, which is then full."""
    status, location, made = ask(url_of(b, "/v1/locales/land/patches"), "POST", SQUARE)
    equal(status, 201, f"patch: {made}")
    wait_until(lambda: b.daemon.ok("GET", "/v1/stats")["patches"]["scales"]["coarse"]["used"] == 1, "b counts it")
    return location, made


def discard(patch):
    equal(ask(patch + "?discard=true", "DELETE")[0], 200, f"DELETE {patch}")


def revision(node):
    """None while the node takes the locale from the log."""
    return node.daemon.get("/v1/locales/land").json.get("revision")


def check_same(count):
    """All nodes are at this revision, with the same ground."""
    tiles = set()
    for node in (a, b, c):
        wait_until(lambda: revision(node) == count, f"{node.name} at revision {count}")
        tiles.add(node.daemon.get("/v1/locales/land/tiles/0/0/0?format=f32").headers["etag"])
    equal(len(tiles), 1, f"tiles: {tiles}")


def wait_written(url):
    found = {}

    def is_written():
        status, _, fate = ask(url)
        equal(status, 200, f"GET {url}: {fate}")
        found.update(fate)
        return fate["state"] == "written"
    wait_until(is_written, f"{url} is written")
    return found


def let_go():
    wait_until(lambda: a.stats()["leases_held"] == b.stats()["leases_held"] == 0, "leases are let go")


@test("the world of the impacts is on all nodes")
def _():
    a.daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    a.daemon.ok("PUT", f"/v1/locales/land/layers/ground?cols={SIDE}&rows={SIDE}&spacing=0.5,0.5",
                struct.pack(f"<{SIDE * SIDE}f", *(0.0,) * (SIDE * SIDE)), status=201, media=F32)
    check_same(2)
    wait_until(lambda: {n["id"]: n["patch_slots"] for n in c.stats()["nodes"]} ==
               {"a": 1, "b": 1, "c": 0}, "c knows who has room")
    for node in (a, b):
        wait_until(lambda: node.daemon.ok("GET", "/v1/stats")["patches"]["scales"]["coarse"]["pool"],
                   f"{node.name} has its pool")


@test("an impact too small for granules is a crater, made by the node that is asked, on all nodes")
def _():
    status, location, fate = hit(c, [8, 8], radius=0.2, mass=80)
    equal((status, fate["state"], fate["how"], location), (202, "written", "crater", url_of(c) + "/3"), "at c")
    check_same(3)
    for node in (a, b, c):
        got = ask(url_of(node) + "/3")[2]
        equal([got[name] for name in ("impact", "state", "how", "revision", "rect")],
              [3, "written", "crater", 3, fate["rect"]], f"its fate at {node.name}")
    equal(ask(url_of(c) + "/3?placed=perhaps")[0], 400, "placed is a boolean")


@test("a node without a device leads to one that has room, and granules refine the crater")
def _():
    answer = hit(c, [30, 30], "one", **BALL)
    check(answer[0] == 307 and answer[1] in (url_of(a) + "?placed=true", url_of(b) + "?placed=true"),
          f"c: {answer}")
    _, patch, _ = ask(url_of(a, "/v1/locales/land/patches"), "POST", SMALL)
    status, location, fate = hit(a, [30, 30], "one", "?placed=true", **BALL)
    equal((status, location, fate["how"], fate["impact"]), (202, url_of(a) + "/4", "patch", 4), f"by-a: {fate}")
    made = wait_written(location)
    equal((made["how"], made["revision"]), ("patch", 5), "its fate")
    equal(ask(patch, "DELETE")[0], 200, "it does not linger")
    check_same(5)
    let_go()
    for node in (b, c):
        wait_until(lambda: ask(url_of(node) + "/4")[0] == 200, f"{node.name} knows that nobody simulates")
        got = ask(url_of(node) + "/4")[2]
        equal([got[name] for name in ("state", "how", "revision")], ["written", "patch", 5], node.name)
        status, _, again = hit(node, [30, 30], "one", **BALL)
        equal((status, again["impact"], again["how"]), (202, 4, "patch"), f"the key at {node.name}")
    check_same(5)


@test("where another node simulates the ground it takes the impact, and is asked for its fate")
def _():
    patch, made = make_patch()
    for node, at in ((a, SQUARE["center"]), (c, [21, 44])):
        status, location, fate = lead(node, at, b, key=f"by-{node.name}", **BALL)
        equal((status, fate["how"], fate["patch"]), (202, "patch", made["id"]), f"by {node.name}: {fate}")
    check_same(7)
    place = url_of(b) + "/7?placed=true"
    for node in (a, c):
        equal(ask(url_of(node) + "/7")[:2], (307, place), f"its fate at {node.name}")
        status, there, _ = hit(node, SQUARE["center"], "by-a", **BALL)
        equal((status, there), (307, url_of(b) + "?placed=true"), f"the key of a at {node.name}")
    equal(ask(place)[2]["state"], "accepted", "its fate at b")
    equal(hit(b, SQUARE["center"], "by-a", "?placed=true", **BALL)[2]["impact"], 6, "the key of a at b")
    far = hit(a, [45, 12], **BALL)
    equal((far[0], far[2]["how"], far[2]["impact"]), (202, "patch", 8), f"elsewhere a has its own: {far}")
    discard(url_of(a, f"/v1/locales/land/patches/{far[2]['patch']}"))
    discard(patch)
    equal([ask(place)[2][name] for name in ("state", "how", "revision")], ["written", "crater", 7], "at last")
    let_go()
    wait_until(lambda: ask(url_of(c) + "/7")[0] == 200, "c knows that nobody simulates")
    equal(ask(url_of(c) + "/7")[2]["how"], "crater", "its fate at c")
    check_same(8)


@test("everybody full: a crater, with the reason")
def _():
    patch = make_patch()[0]
    for node in (b, c):
        wait_until(lambda: [n["patches"] for n in node.stats()["nodes"]] == [0, 1, 0], f"{node.name} knows it")
    busy = [(node, hit(node, [10, 25], **BALL)) for node in (b, c)]
    for node, (status, location, fate) in busy:
        equal((status, location), (307, url_of(a) + "?placed=true"), f"{node.name}: {fate}")
    status, _, fate = hit(b, [10, 25], query="?placed=true", **BALL)
    equal((status, fate["how"], fate["state"], fate["impact"]), (202, "crater", "written", 9), "led to b")
    check(fate["reason"], f"a reason: {fate}")
    discard(patch)
    check_same(9)


@test("where a node says that it holds no lease the other one takes the ground at once")
def _():
    let_go()
    for taker, other in [(a, b), (b, a)] * 15:
        status, location, made = ask(url_of(taker, "/v1/locales/land/patches"), "POST", SQUARE)
        equal(status, 201, f"{taker.name} after {other.name}: {made}")
        discard(location)
        while taker.stats()["leases_held"] > 0:
            pass
    check_same(9)


@test("a node that is killed leaves the crater, once, and others know its fate")
def _():
    let_go()
    make_patch()
    status, _, fate = lead(c, SQUARE["center"], b, key="killed", **BALL)
    equal((status, fate["how"], fate["impact"]), (202, "patch", 10), f"granules of b: {fate}")
    b.kill()
    for node in (a, c):
        wait_until(lambda: revision(node) == 10, f"{node.name} has the crater")
        wait_until(lambda: ask(url_of(node) + "/10")[0] == 200, "the lease of the dead is over")
        equal(ask(url_of(node) + "/10")[2]["how"], "crater", f"its fate at {node.name}")
    status, _, again = hit(a, SQUARE["center"], "killed", **BALL)
    equal((status, again["impact"], again["how"]), (202, 10, "crater"), "the key is repeated")
    b.start()
    equal([ask(url_of(b) + "/10")[2][name] for name in ("impact", "how")], [10, "crater"], "at b again")
    check_same(10)


@test("all stop")
def _():
    for node in (a, b, c):
        node.stop()
    engine.stop()


run()
