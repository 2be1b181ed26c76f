#!/usr/bin/env python3
"""Patches of sand where daemons share a log: one of them has the ground at a time, what it makes of it
is everybody's, and who has no room for a patch leads to one that has. By the C solver.
"""
import http.client
import json
import os
import struct
import sys
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "cluster"))
from daemon import F32, check, equal, problem
from models import BOX
from nodes import LEASE_MS, Node, wait_until
from postgres import Server
from tap import HANG_S, run, test

SIDE = 120  # samples, half a metre apart: seven cells of a lease and a half
ENDS = ("written", "discarded", "failed")
SAND = ("--patch-speed", "0", "--patch-pause-ms", "500", "--patch-linger-ms", "300", "--patch-granules",
        "2000", "--patches-coarse", "2", "--patches-medium", "0", "--patches-fine", "0")

engine = Server().__enter__()
a, b = (Node(engine.conninfo(), name, "--gpu", "cpu", *SAND).start() for name in "ab")
c = Node(engine.conninfo(), "c", "--gpu", "off").start()
PATCHES = "/v1/locales/land/patches"


def patch(center, **more):
    return {"center": center, "size": [4, 4], "scale": "coarse", "depth": 1.8, **more}


def post(node, center, status=201, key=None, **more):
    headers = {"Idempotency-Key": key} if key else None
    answer = node.daemon.post(PATCHES, patch(center, **more), headers=headers)
    check(answer.status == status, f"{node.name}: expected {status}, got {answer}")
    return answer


def ask(url, method="GET", body=None):
    """Status, Location and JSON from wherever an address leads."""
    to = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(to.hostname, to.port, timeout=HANG_S)
    connection.request(method, to.path + ("?" + to.query if to.query else ""),
                       body=json.dumps(body) if body else None,
                       headers={"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    got = answer.status, answer.headers.get("Location"), json.loads(answer.read())
    connection.close()
    return got


def wait(url, *states):
    found = {}

    def is_there():
        found.update(ask(url)[2])
        check(found["state"] in states or found["state"] not in ENDS, f"ended: {found}")
        return found["state"] in states
    wait_until(is_there, f"{url} {states}")
    return found


def discard(url):
    equal(ask(url + "?discard=true", "DELETE")[0], 200, f"DELETE {url}")


def revision(node):
    return node.daemon.ok("GET", "/v1/locales/land")["revision"]



@test("the world of the patches is on all nodes")
def _():
    a.daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    heights = [0.02 * col + 0.01 * row for row in range(SIDE) for col in range(SIDE)]
    a.daemon.ok("PUT", f"/v1/locales/land/layers/ground?cols={SIDE}&rows={SIDE}&spacing=0.5,0.5",
                struct.pack(f"<{SIDE * SIDE}f", *heights), status=201, media=F32)
    a.daemon.ok("PUT", "/v1/models/box", BOX, status=201, media="model/obj")
    for node in (b, c):
        wait_until(lambda: revision(node) == 2 and node.daemon.get("/v1/models/box").status == 200,
                   f"{node.name} has it")
    wait_until(lambda: {n["id"]: n["patch_slots"] for n in c.stats()["nodes"]} ==
               {"a": 2, "b": 2, "c": 0}, "c knows who has room", 20)


@test("a patch has its ground alone: another node is refused, and told by whom; a key is repeated")
def _():
    url = post(a, [20, 20], key="one").headers["location"]
    check(url.startswith(f"http://127.0.0.1:{a.port}{PATCHES}/"), f"Location: {url}")
    problem(post(b, [21, 21], status=409), 409, "a")
    problem(post(a, [21, 21], status=409), 409)
    again = post(a, [20, 20], key="one")
    equal(again.headers.get("idempotency-replayed"), "true", "the repeat")
    equal(again.headers["location"], url, "the repeat's patch")
    other = post(b, [50, 50]).headers["location"]
    check(f":{b.port}/" in other, f"Location: {other}")
    discard(url)
    wait_until(lambda: b.daemon.post(PATCHES, patch([20, 20])).status == 201, "b after a let go")
    for number in (1, 2):
        discard(f"http://127.0.0.1:{b.port}{PATCHES}/{number}")
    wait_until(lambda: a.stats()["leases_held"] == b.stats()["leases_held"] == 0, "all are let go")


@test("what a patch made is on all nodes, once")
def _():
    before = revision(a)
    url = post(a, [30, 30], bodies=[{"model": "box", "position": [30, 30, 4], "density": 3000}],
               seed=3).headers["location"]
    made = wait(url, "written")
    equal(made["revision"], before + 1, "revision")
    tiles = []
    for node in (a, b, c):
        wait_until(lambda: revision(node) == made["revision"], f"{node.name} follows")
        tiles.append(node.daemon.get("/v1/locales/land/tiles/0/0/0?format=f32").headers["etag"])
    equal(len(set(tiles)), 1, f"tiles: {tiles}")
    wait_until(lambda: a.stats()["leases_held"] == 0, "the lease is let go")


@test("bodies that become layers are on all nodes, with the ground they made")
def _():
    before = revision(a)
    url = post(a, [40, 20], leave="layer", bodies=[
        {"model": "box", "position": [39.4, 20, 3], "density": 3000},
        {"model": "box", "position": [40.8, 20, 3], "density": 3000}]).headers["location"]
    patch = wait(url, "written")
    names = {body["layer"] for body in patch["bodies"]}
    equal((len(names), patch["revision"]), (2, before + 3), "two layers after the ground")
    down = "/v1/locales/land/ray?origin={},{},9&direction=0,0,-1"
    rays = [down.format(*body["position"][:2]) for body in patch["bodies"]]
    hits = [a.daemon.ok("GET", ray) for ray in rays]
    equal({hit["layer"] for hit in hits}, names, "what rays hit")
    for node in (b, c):
        wait_until(lambda: revision(node) == before + 3, f"{node.name} has it")
        equal([node.daemon.ok("GET", ray) for ray in rays], hits, f"rays at {node.name}")
    for name in names:
        b.daemon.ok("DELETE", f"/v1/locales/land/layers/{name}", status=204)
    wait_until(lambda: revision(a) == before + 5, "a has what b removed")
    equal(len(a.daemon.ok("GET", "/v1/locales/land")["layers"]), 1, "layers that are left")


@test("a node without a device leads to one that has room, and so does one that is full")
def _():
    answer = post(c, [10, 10], status=307)
    target = answer.headers["location"]
    check(target in [f"http://127.0.0.1:{node.port}{PATCHES}?placed=true" for node in (a, b)],
          f"to {target}")
    _, own, problem_of_c = ask(f"http://127.0.0.1:{c.port}{PATCHES}?placed=true", "POST", patch([10, 10]))
    equal((own, problem_of_c["status"]), (None, 503), "who was led here is led nowhere else")
    status, first, _ = ask(target, "POST", patch([10, 10]))
    equal(status, 201, f"POST {target}")
    discard(first)
    urls = [post(a, center).headers["location"] for center in ([10, 50], [50, 10])]
    wait_until(lambda: post_elsewhere(a), "a knows that it is full and b is not")
    for url in urls:
        discard(url)


def post_elsewhere(node):
    answer = node.daemon.post(PATCHES, patch([30, 10]))
    if answer.status == 201:
        discard(answer.headers["location"])
    return (answer.status == 307 and
            answer.headers["location"] == f"http://127.0.0.1:{b.port}{PATCHES}?placed=true")


@test("live ground: the node that simulates answers, others lead to it, or have their own ground")
def _():
    height = "/v1/locales/land/height?x=20.2&y=50.3&live="
    made = []

    def leads(node):
        """A patch of b is quickly over: there is always one."""
        if not made or ask(made[-1])[2]["state"] in ENDS:
            made.append(post(b, [20, 50]).headers["location"])
        return node.daemon.get(height + "true").status == 307
    for node in (a, c):
        wait_until(lambda: node.daemon.get(height + "true").status == 200, f"{node.name} forgets patches")
    for node in (a, c):
        wait_until(lambda: leads(node), f"{node.name} leads to b")
        answer = node.daemon.get(height + "true")
        if answer.status == 307:  # not after the next sign of life says that it is over
            equal(answer.headers["location"], f"http://127.0.0.1:{b.port}{height}true", "Location")
            equal(ask(answer.headers["location"])[0], 200, "there")
        leads(node)
        equal((node.daemon.get(height + "here").status, b.daemon.get(height + "true").status), (200, 200),
              "own ground, and that of who simulates")
    if ask(made[-1])[2]["state"] not in ENDS:
        discard(made[-1])
    wait_until(lambda: a.daemon.get(height + "true").status == 200, "nobody simulates any more")


@test("of two nodes that want the same ground at once one has it")
def _():
    wait_until(lambda: a.stats()["leases_held"] == b.stats()["leases_held"] == 0, "all are let go")
    for number in range(8):
        answers = []
        threads = [threading.Thread(target=lambda node=node: answers.append(
            node.daemon.post(PATCHES, patch([40, 20 + number])))) for node in (a, b)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(sorted(answer.status for answer in answers), [201, 409], f"round {number}: {answers}")
        for answer in answers:
            if answer.status == 201:
                discard(answer.headers["location"])
        wait_until(lambda: a.stats()["leases_held"] == b.stats()["leases_held"] == 0, "let go")


@test("who was stopped for longer than its lease has lost its ground, and writes nothing on it")
def _():
    before = revision(b)
    url = post(a, [20, 40], bodies=[{"model": "box", "position": [20, 40, 4], "density": 3000}],
               seed=5).headers["location"]
    a.pause()
    try:
        taken = {}

        def b_has_it():
            answer = b.daemon.post(PATCHES, patch([20, 40]))
            taken["answer"] = answer
            return answer.status == 201
        took = wait_until(b_has_it, "b has the ground of a that is stopped")
        check(took * 1000 > LEASE_MS / 3, f"b had it after {took:.2f} s, while the lease held")
    finally:
        a.resume()
    lost = wait(url, "failed")
    check("lease" in lost["reason"], f"reason: {lost}")
    discard(taken["answer"].headers["location"])
    time.sleep(0.5)
    equal(revision(b), before, "nobody wrote")
    wait_until(lambda: a.stats()["leases_lost"] >= 1, "the loss is counted")


@test("the engine away: a patch goes on, and is written when it is back in time")
def _():
    before = revision(a)
    url = post(a, [20, 20], bodies=[{"model": "box", "position": [20, 20, 4], "density": 3000}],
               seed=7).headers["location"]
    engine.stop()
    equal(post(b, [50, 50], status=503).status, 503, "no lease while the engine is away")
    engine.start()
    made = wait(url, "written", "failed")
    if made["state"] == "failed":  # it took longer than the lease, which a slow machine may
        check("lease" in made["reason"], f"reason: {made}")
        equal(revision(a), before, "nothing was written")
    else:
        equal(made["revision"], before + 1, "revision")


@test("all stop")
def _():
    for node in (a, b, c):
        node.stop()
    engine.stop()


run()
