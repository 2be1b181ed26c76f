"""A patch of sand whose daemon stands still for longer than its lease: another takes the ground, and the
first one, going on, writes nothing there.

Each round one node starts a patch on which a box falls, and is stopped (SIGSTOP) at a random moment. The
other asks for the same ground until it is given, which may not be before the lease has run out, and throws
its own patch away. Then the first one goes on: its patch must end as failed, and name the lease; no
revision may come of it. Where it was already written when the node was stopped, that is one revision.

KOTA_CLUSTER_ROUNDS  (30)
"""
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "torture")]
from table import attempt, finish, setting  # noqa: E402
from nodes import LEASE_MS, catch_up, fleet, wait_until  # noqa: E402
from postgres import Server  # noqa: E402

from daemon import F32  # noqa: E402
from ground import floats, to_bytes  # noqa: E402
from models import BOX  # noqa: E402
from tap import check, equal, rng  # noqa: E402

ROUNDS = setting("KOTA_CLUSTER_ROUNDS", 30)
SIDE = 97
LOCALE = "sand"
PATCHES = f"/v1/locales/{LOCALE}/patches"
ENDS = ("written", "discarded", "failed")
FLAGS = ("--gpu", "cpu", "--patch-speed", "1", "--patch-pause-ms", "500", "--patch-linger-ms", "300",
         "--patch-granules", "2000", "--patches-coarse", "2", "--patches-medium", "0", "--patches-fine", "0")


def prepare(node):
    ground = floats(0.07 * ((c * 7 + r * 3) % 11) for r in range(SIDE) for c in range(SIDE))
    with node.client() as client:
        for target, body, media in (
                (f"/v1/locales/{LOCALE}", b"{}", "application/json"),
                (f"/v1/locales/{LOCALE}/layers/ground?cols={SIDE}&rows={SIDE}&spacing=.5,.5",
                 to_bytes(ground), F32), ("/v1/models/box", BOX.encode(), "model/obj")):
            answer = client.ask("PUT", target, body, media=media)
            check(answer.status == 201, f"PUT {target}: {answer}")


def start_patch(node, at, seed):
    body = {"model": "box", "position": [*at, 4], "density": 3000}
    with node.client() as client:
        return client.ask("POST", PATCHES, {"center": at, "size": [4, 4], "scale": "coarse", "depth": 1.8,
                                            "bodies": [body], "seed": seed})


def path_of(answer):
    return "/v1/" + answer.headers["location"].partition("/v1/")[2]


def state_of(node, path):
    answer = node.get(path)
    check(answer.status == 200, f"{path}: {answer}")
    return answer.json


def revision(node):
    """Once it has taken the locale from the log: until then a question is 503."""
    wait_until(lambda: node.get(f"/v1/locales/{LOCALE}").status != 503, f"{node.name} has the locale")
    return node.revision(LOCALE)


def one_round(nodes, random, number):
    """True when the patch was cut; False: it had been written before the node was stopped."""
    first, second = nodes if number % 2 else reversed(nodes)
    at = [random.uniform(6, SIDE / 2 - 6) for _ in range(2)]
    before = revision(first)
    catch_up(second, before, f"round {number}", locale=LOCALE)
    answer = start_patch(first, at, number)
    check(answer.status == 201, f"a patch: {answer}")
    path = path_of(answer)
    time.sleep(random.uniform(0, 5))
    first.pause()
    stopped = time.monotonic()
    try:
        theirs = []

        def second_has_it():
            got = start_patch(second, at, number)
            check(got.status in (201, 409, 503), f"a patch beside another: {got}")
            theirs.extend([got] if got.status == 201 else [])
            return theirs
        wait_until(second_has_it, f"round {number}: {second.name} gets the ground")
        took = time.monotonic() - stopped
        head = revision(second)
        # renewed after a third of it: two thirds are left at the least
        check(head > before or took * 1000 > LEASE_MS / 3, f"round {number}: given after {took:.2f} s")
        with second.client() as client:
            ended = client.ask("DELETE", path_of(theirs[0]) + "?discard=true")
            check(ended.status == 200, f"the end of a patch: {ended}")
    finally:
        first.resume()
    wait_until(lambda: state_of(first, path)["state"] in ENDS, f"round {number}: the patch ends")
    end = state_of(first, path)
    time.sleep(0.3)
    revisions = [revision(node) for node in nodes]
    equal(revisions, [head] * 2, f"round {number}: revisions after {json.dumps(end)[:300]}")
    if end["state"] == "written":
        equal((head, end["revision"]), (before + 1, head), f"round {number}: what was written before")
        return False
    equal((end["state"], head), ("failed", before), f"round {number}: the patch that lost its ground")
    check("lease" in end["reason"], f"round {number}: its reason: {end}")
    return True


def main():
    what, amount = "SIGSTOP of a daemon beyond the lease of a patch", f"{ROUNDS} rounds"
    must = "another gets the ground; nothing is written under a lost lease"
    with attempt(what, amount, must) as tell:
        random = rng("cluster fence")
        with Server() as server, fleet(server.conninfo(), args=FLAGS) as nodes:
            prepare(nodes[0])
            catch_up(nodes[1], 2, "the sand", locale=LOCALE)
            wait_until(lambda: b'"box"' in nodes[1].get("/v1/models").body, "the model on the other node")
            cut = sum(one_round(nodes, random, number) for number in range(ROUNDS))
            stats = [node.stats() for node in nodes]
        lost, fenced = (sum(one[name] for one in stats) for name in ("leases_lost", "fenced"))
        tell(f"{cut} patches lost their ground and wrote nothing, {ROUNDS - cut} were written "
             f"before; {lost} leases lost, {fenced} appends refused by their fence", cut > 0)


if __name__ == "__main__":
    main()
    finish()
