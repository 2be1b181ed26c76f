#!/usr/bin/env python3
"""Poses of moved layers where daemons share a log: all nodes end with the last one, to the bit."""
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "cluster"))
from events import Stream
from mesh_oracle import put_mesh, rectangle
from nodes import Node, wait_until
from postgres import Server
from tap import check, equal, rng, run, test

engine = Server().__enter__()
a, b = (Node(engine.conninfo(), name, "--gpu", "off").start() for name in "ab")
random = rng("cluster poses")
FERRY = "/v1/locales/bay/layers/ferry"


def pose(node):
    layers = node.daemon.ok("GET", "/v1/locales/bay")["layers"]
    return {layer["id"]: layer for layer in layers}["ferry"].get("transform")


def move(node, x, **turn):
    told = node.daemon.ok("PUT", FERRY + "/transform", {"translation": [x, 2, 3], **turn})
    return told["layers"][0]["transform"]


def all_have(want, *nodes):
    for node in nodes:
        wait_until(lambda node=node: pose(node) == want, f"{node.name} has {want}")


@test("a move on one node is seen on the other, and in its feed; the rotation has its bits")
def _():
    a.daemon.ok("PUT", "/v1/locales/bay", {}, status=201)
    put_mesh(a.daemon, "bay", [rectangle(-4, -2, 4, 2, 0)], "ferry")
    wait_until(lambda: b.daemon.get("/v1/locales/bay").status == 200, "b has the locale")
    wait_until(lambda: b.daemon.ok("GET", "/v1/locales/bay")["layers"], "b has the layer")
    with Stream(b.daemon.port, "/v1/locales/bay/events") as events:
        told = move(a, 1, rotation=[0.1, 0.2, 0.3, 0.9273618495495703])
        all_have(told, b)
        event = events.event()
        equal((event.name, event.data["rotation"]), ("transform", told["rotation"]), "the event")
    all_have(move(b, 5, yaw_deg=30), a)
    found = a.daemon.ok("POST", "/v1/locales/bay/contact", {"points": [[5, 2, 9]], "max_distance": 20})
    equal(found["results"][0]["floor"]["point"][2], 3, "a floor where the other node put it")


@test("nodes that move one layer at the same time end with one pose")
def _():
    def push(node, first):
        for i in range(60):
            move(node, first + i, yaw_deg=i)
    threads = [threading.Thread(target=push, args=pair) for pair in ((a, 100), (b, 200))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: pose(a) == pose(b), "both have one")
    wait_until(lambda: engine.value("SELECT count(*) FROM kota.pose WHERE body <> ''") == "1", "one row")
    check(pose(a)["translation"][0] in (159, 259), f"the last of a node: {pose(a)}")
    equal(pose(a), pose(b), "it stays")


@test("a layer that is put again has no pose, and none of the old one comes late")
def _():
    revision = put_mesh(a.daemon, "bay", [rectangle(-4, -2, 4, 2, 1)], "ferry", status=200)["revision"]
    wait_until(lambda: b.revision("bay") >= revision, "b is there")
    all_have(None, a, b)
    engine.sql("SELECT kota.put_poses('x', ARRAY['bay'], ARRAY['ferry'], ARRAY[%d::int8], "
               "ARRAY['\\x00'::bytea])" % (revision - 1))
    equal(engine.value("SELECT count(*) FROM kota.pose WHERE body <> ''"), "0", "a pose of before is dropped")
    all_have(move(b, 7, yaw_deg=1), a, b)


@test("a node that was away, and a new one, have the last pose; so has one that was killed")
def _():
    b.kill()
    told = move(a, 8, rotation=[0.6, 0, 0, 0.8])
    b.start()
    all_have(told, b)
    with Node(engine.conninfo(), "c", "--gpu", "off").start() as c:
        all_have(told, c)
        all_have(move(c, 9), a, b)


@test("the engine away: a node moves its own, and the log has it when the engine is back")
def _():
    engine.stop()
    told = move(a, 11, yaw_deg=11)
    check(pose(b) != told, "b cannot know")
    engine.start()
    all_have(told, a, b)


@test("a locale that is deleted and made again has no old poses")
def _():
    a.daemon.ok("DELETE", "/v1/locales/bay", status=204)
    wait_until(lambda: b.daemon.get("/v1/locales/bay").status == 404, "it is gone at b")
    b.daemon.ok("PUT", "/v1/locales/bay", {}, status=201)
    put_mesh(b.daemon, "bay", [rectangle(-4, -2, 4, 2, 0)], "ferry")
    wait_until(lambda: a.daemon.get("/v1/locales/bay/layers/ferry/stats").status == 200, "it is at a")
    all_have(None, a, b)


@test("all stop")
def _():
    for node in (a, b):
        node.stop()
    engine.stop()


run()
