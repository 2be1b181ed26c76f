#!/usr/bin/env python3
"""A replica before two nodes of a cluster: its connections are cut at random bytes, and each new one leads to
either node. What it answers is the ground of the revision that it names, and it catches up.
"""
import array
import os
import random as random_module
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "cluster"))
from cuts import Relay
from daemon import F32, ROOT
from nodes import fleet
from postgres import Server
from tap import ALL, HANG_S, Skip, check, rng, run, test

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "client", "python"))
import kota  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("KOTA_BIN_DIR", "build/release"))
LIBRARY = os.path.join(BUILD, "lib", "libkota-ground.so.0")
SIDE, PLACES, CUTS = 64, 30, 400 if ALL else 20


@test("a replica that is cut off and led to the other node answers each revision as it was, and catches up")
def _():
    if any(word in BUILD for word in ("asan", "tsan")):
        raise Skip("a sanitizer's library cannot be loaded into this Python")
    random = rng("cluster replica")
    at = [random_module.Random(7).sample(range(SIDE), PLACES), random.sample(range(SIDE), PLACES)]
    points = [[float(c), float(r)] for c, r in zip(*at)]
    with Server() as engine, fleet(engine.conninfo()) as nodes:
        nodes[0].daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        made = nodes[0].daemon.ok(
            "PUT", f"/v1/locales/land/layers/ground?cols={SIDE}&rows={SIDE}&spacing=1,1",
            array.array("f", [0] * SIDE * SIDE).tobytes(), status=201, media=F32)
        ground = {made["revision"]: [0.0] * PLACES}
        relay = Relay(nodes[0].port, random.random(), late=6000)
        relay.start()
        replica = kota.Replica(kota.Client(f"http://127.0.0.1:{relay.port}"), "land", library=LIBRARY)
        seen = set()

        def look():
            before = replica.revision
            found = list(replica.heights(points))
            if before == replica.revision:
                check(before in ground and found == ground[before],
                      f"revision {before}: {found}, not {ground.get(before)}")
                seen.add(before)
            return before

        relay.is_cutting.set()
        newest, edits = made["revision"], 0
        while relay.cuts < CUTS:
            for link in list(relay.links.values()):
                link.cuts_answers = True  # a reader of a feed sends nothing that could be cut
            relay.to_port, place = random.choice(nodes).port, random.randrange(PLACES)
            heights, edits = list(ground[newest]), edits + 1
            heights[place] = float(edits)
            edit = {"rect": [at[0][place], at[1][place], 1, 1], "op": "set", "heights": [edits]}
            answer = random.choice(nodes).daemon.ok("POST", "/v1/locales/land/edits", edit)
            newest = answer["revision"]
            ground[newest] = heights
            look()
        relay.is_cutting.clear()
        replica.wait(newest, HANG_S)
        check(look() == newest and len(seen) > 1, f"revisions seen: {sorted(seen)}")
        replica.close()
        relay.stop()


run()
