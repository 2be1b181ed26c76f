"""Two daemons, random edits on both, random reads: one order, and the same ground at each revision.

Two senders and two readers a node. A reader takes a random tile and keeps its hash under the revision
that the answer names; one that was seen before, on either node, must be the same. Afterwards a replay
of all edits in the order of their revisions gives the tile of each of these revisions, to the bit, and
each node's feed must tell that order. A second locale gets brushes, whose samples nobody computes
ahead: there the two nodes are compared with each other.

KOTA_CLUSTER_EDITS  (5000) on both nodes together
"""
import hashlib
import os
import random as random_module
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "torture")]
from table import IS_SHORT, attempt, finish, setting  # noqa: E402
from nodes import (COLS, LOCALE, ROWS, Sender, catch_up, end_all, first_ground,  # noqa: E402
                   fleet, same_order, settle)
from postgres import Server  # noqa: E402

from ground import CUT, SIDE, Client, random_edit, read_ground, to_bytes  # noqa: E402
from tap import Failure, check, equal, rng  # noqa: E402

EDITS = setting("KOTA_CLUSTER_EDITS", 5000)
BRUSHES = max(20, EDITS // 20)
TILES = [(column, line) for column in range(2) for line in range(2)]
DUNES = "dunes"


def digest(body):
    return hashlib.blake2b(body, digest_size=16).digest()


class Seen:
    """Hashes by (revision, tile), of all nodes."""

    def __init__(self):
        self.lock, self.hashes, self.nodes, self.reads = threading.Lock(), {}, {}, 0

    def add(self, node, revision, tile, got):
        with self.lock:
            self.reads += 1
            former = self.hashes.setdefault((revision, tile), got)
            self.nodes.setdefault((revision, tile), set()).add(node)
        if former != got:
            raise Failure(f"tile {tile} at revision {revision} differs on {node}")

    def common(self):
        """Revisions of which both nodes gave the same tile."""
        return len({revision for (revision, _), nodes in self.nodes.items() if len(nodes) > 1})


class Reader(threading.Thread):
    """Random tiles of one node, until it is told to stop."""

    def __init__(self, node, seen, seed, pause_s=0.012 if IS_SHORT else 0.004):
        super().__init__(daemon=True)
        self.node, self.port, self.seen, self.pause_s = node.name, node.port, seen, pause_s
        self.random, self.is_over, self.error = random_module.Random(seed), threading.Event(), None

    def run(self):
        try:
            with Client(self.port) as client:
                last = 0
                while not self.is_over.wait(self.random.uniform(0, 2 * self.pause_s)):
                    tile = self.random.choice(TILES)
                    answer = client.get(f"/v1/locales/{LOCALE}/tiles/0/{tile[0]}/{tile[1]}?format=f32")
                    check(answer.status == 200, f"a tile of {self.node}: {answer}")
                    revision = int(answer.headers["kota-revision"])
                    check(revision >= last, f"{self.node} went back from {last} to {revision}")
                    last = revision
                    self.seen.add(self.node, revision, tile, digest(answer.body))
        except CUT as error:
            self.error = Failure(f"a reader of {self.node}: {error!r}")
        except BaseException as error:
            self.error = error


class Dunes(threading.Thread):
    """Brushes on both nodes in turn."""

    def __init__(self, nodes, ground, count, seed):
        super().__init__(daemon=True)
        self.nodes, self.ground, self.count = nodes, ground, count
        self.random, self.error, self.is_over = random_module.Random(seed), None, threading.Event()

    def run(self):
        try:
            clients = [node.client() for node in self.nodes]
            for _ in range(self.count):
                edit = random_edit(self.random, self.ground, 20, ("raise", "crater", "smooth"))
                answer = self.random.choice(clients).edit(edit, locale=DUNES)
                check(answer.status == 200, f"a brush: {answer}")
            for client in clients:
                client.close()
        except BaseException as error:
            self.error = error


class Image:
    """The tiles' bytes as an answer has them, kept up to date edit by edit."""

    def __init__(self, client, ground):
        self.ground, self.tiles = ground, {}
        for tile in TILES:  # what is beyond the field is taken as it comes
            answer = client.get(f"/v1/locales/{LOCALE}/tiles/0/{tile[0]}/{tile[1]}?format=f32")
            self.tiles[tile] = bytearray(answer.body)

    def apply(self, edit):
        self.ground.apply(edit)
        c0, r0, cols, rows = edit.rect
        for (column, line), image in self.tiles.items():
            left, right = max(c0, column * 256), min(c0 + cols, column * 256 + SIDE, self.ground.cols)
            if left >= right:
                continue
            for r in range(max(r0, line * 256), min(r0 + rows, line * 256 + SIDE)):
                at = r * self.ground.cols
                to = 4 * ((r - line * 256) * SIDE + left - column * 256)
                image[to:to + 4 * (right - left)] = to_bytes(self.ground.h[at + left:at + right])


def check_reads(seen, image, known, sent):
    """Each hash that a reader got is that of the replay at its revision."""
    wanted = {}
    for (revision, tile), got in seen.hashes.items():
        wanted.setdefault(revision, []).append((tile, got))
    for revision in range(known, known + len(sent) + 1):
        if revision > known:
            image.apply(sent[revision - known - 1].edit)
        for tile, got in wanted.pop(revision, ()):
            equal(got, digest(image.tiles[tile]), f"tile {tile} at revision {revision}")
    check(not wanted, f"revisions that nobody made were read: {sorted(wanted)[:5]}")


def session(nodes, edits):
    """(edits, reads, revisions seen on both, seconds)"""
    random = rng("cluster mix")
    ground, known = first_ground(nodes[0], random)
    dunes, dunes_known = first_ground(nodes[0], random, DUNES)
    for node in nodes:
        catch_up(node, known, "the first ground")
        catch_up(node, dunes_known, "the first ground", locale=DUNES)
    with nodes[0].client() as client:
        image = Image(client, ground.copy())
    seen, start = Seen(), time.monotonic()
    senders = [Sender(node, ground.copy(), random.random(), f"mix-{node.name}{i}", count=edits // 4)
               for node in nodes for i in range(2)]
    others = [Reader(node, seen, random.random()) for node in nodes for _ in range(2)]
    brushes = Dunes(nodes, dunes, BRUSHES, random.random())
    for thread in (*senders, *others, brushes):
        thread.start()
    for thread in (*senders, brushes):
        thread.join()
    took = time.monotonic() - start
    end_all([*senders, *others, brushes])
    sent = [request for sender in senders for request in sender.sent]
    check(all(request.revision for request in sent), "an edit got no answer")
    total = settle(nodes, ground, known, sent, "mix", random)
    same_order(nodes, known, total, sent, "mix")
    check_reads(seen, image, known, sent)
    compare_dunes(nodes, dunes, dunes_known + BRUSHES)
    return len(sent), seen.reads, seen.common(), took


def compare_dunes(nodes, dunes, last):
    grounds = []
    for node in nodes:
        catch_up(node, last, "brushes", locale=DUNES)
        equal(node.revision(DUNES), last, f"the revision of {DUNES} on {node.name}")
        with node.client() as client:
            grounds.append(read_ground(client, dunes, DUNES).tobytes())
    check(grounds[0] == grounds[1], "brushes left different ground on the two nodes")


def main():
    what, amount = "two daemons, random edits on both, random reads", f"{EDITS} edits"
    must = "identical tile hashes at each common revision; one order"
    with attempt(what, amount, must) as tell:
        with Server() as server, fleet(server.conninfo()) as nodes:
            edits, reads, common, took = session(nodes, EDITS)
            lost = sum(node.stats()["conflicts"] for node in nodes)
        tell(f"{edits} edits ({edits / took:.0f}/s) and {BRUSHES} brushes, {reads} tiles read, all as replayed; "
             f"{common} revisions read on both nodes; {lost} lost races made anew; {COLS}x{ROWS} samples",
             reads > EDITS // 100 if IS_SHORT else common > EDITS // 100)


if __name__ == "__main__":
    main()
    finish()
