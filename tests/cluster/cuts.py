"""Connections to the engine that are cut at random bytes, while two nodes take edits.

Each node reaches PostgreSQL through a relay, which cuts a connection after a random number of bytes of
one direction: a request half sent, or a commit whose answer never comes, so that the node cannot know
whether it came to be. The connection is reset on both sides; the next one is let through, and cut again.
Every edit must have one revision, and all nodes the ground of the replay.

KOTA_CLUSTER_CUTS  (300) connections
"""
import os
import random as random_module
import selectors
import socket
import struct
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "torture")]
from table import attempt, finish, setting  # noqa: E402
from nodes import (Node, Sender, catch_up, end_all, first_ground, same_order, settle,  # noqa: E402
                   wait_until)
from postgres import Server  # noqa: E402


from tap import equal, rng  # noqa: E402

CUTS = setting("KOTA_CLUSTER_CUTS", 300)
EARLY, LATE = 200, 30000  # bytes of a direction, counted from when the relay may cut


def reset(connection):
    """Closes with RST: what is on its way is lost."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Link:
    """One connection through the relay: both sockets, and how many bytes of one direction are left."""

    def __init__(self, near, far, random, late):
        self.near, self.far = near, far
        self.cuts_answers = random.random() < 0.7
        self.left = int(random.triangular(EARLY, late, EARLY))

    def other(self, connection):
        return self.far if connection is self.near else self.near

    def pass_on(self, connection, may_cut):
        """False: it is over, by its own end or cut."""
        try:
            data = connection.recv(1 << 16)
        except OSError:
            return False
        if not data:
            return False
        is_counted = (connection is self.far) == self.cuts_answers
        if may_cut and is_counted:
            part, self.left = data[:self.left], self.left - len(data)
        else:
            part = data
        try:
            self.other(connection).sendall(part)
        except OSError:
            return False
        return not (may_cut and is_counted and self.left <= 0)


class Relay(threading.Thread):
    """A port of its own that leads to another, and cuts while is_cutting is set."""

    def __init__(self, to_port, seed, late=LATE):
        super().__init__(daemon=True)
        self.late, self.to_port, self.random = late, to_port, random_module.Random(seed)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.is_cutting, self.is_over, self.cuts, self.error = threading.Event(), False, 0, None
        self.links, self.selector = {}, selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)

    def accept(self):
        near = self.listener.accept()[0]
        try:
            far = socket.create_connection(("127.0.0.1", self.to_port))
        except OSError:
            reset(near)
            return
        link = Link(near, far, self.random, self.late)
        for connection in (near, far):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.links[connection] = link
            self.selector.register(connection, selectors.EVENT_READ)

    def drop(self, link):
        for connection in (link.near, link.far):
            self.selector.unregister(connection)
            del self.links[connection]
            reset(connection)

    def run(self):
        try:
            while not self.is_over:
                for key, _ in self.selector.select(0.1):
                    if key.fileobj is self.listener:
                        self.accept()
                        continue
                    link = self.links.get(key.fileobj)
                    if link and not link.pass_on(key.fileobj, self.is_cutting.is_set()):
                        self.cuts += link.left <= 0
                        self.drop(link)
        except BaseException as error:
            self.error = error

    def stop(self):
        self.is_over = True
        self.join()
        for link in set(self.links.values()):
            self.drop(link)
        self.listener.close()
        if self.error:
            raise self.error


def session(server, nodes, relays, cuts):
    random = rng("cluster cuts")
    ground, known = first_ground(nodes[0], random)
    catch_up(nodes[1], known, "the first ground")
    senders = [Sender(node, ground.copy(), random.random(), f"cut-{node.name}{i}")
               for node in nodes for i in range(2)]
    for relay in relays:
        relay.is_cutting.set()
    for sender in senders:
        sender.start()
    wait_until(lambda: sum(relay.cuts for relay in relays) >= cuts or any(s.error for s in senders),
               f"{cuts} cuts")
    for relay in relays:
        relay.is_cutting.clear()
    end_all(senders)
    sent = [request for sender in senders for request in sender.sent]
    before, known = known, settle(nodes, ground, known, sent, "cuts", random)
    same_order(nodes, before, known, sent, "cuts")
    equal(server.value("SELECT count(*) - count(DISTINCT op_id) FROM kota.edit"), "0", "op_ids twice")
    return len(sent), sum(sender.refused for sender in senders)


def main():
    what, amount = "connections to the engine cut at random bytes", f"{CUTS} cuts"
    must = "no acknowledged edit lost, none twice"
    relays, nodes = [], []
    with attempt(what, amount, must) as tell:
        with Server() as server:
            try:
                for name in "ab":
                    relays.append(Relay(server.port, rng(f"relay {name}").random()))
                    relays[-1].start()
                    conninfo = server.conninfo().replace(f"port={server.port}", f"port={relays[-1].port}")
                    nodes.append(Node(conninfo, name).start())
                edits, refused = session(server, nodes, relays, CUTS)
                stats = [node.stats() for node in nodes]
                for node in nodes:
                    node.stop()
            finally:
                for node in nodes:
                    node.remove()
                for relay in relays:
                    relay.stop()
        in_doubt, retried = (sum(one[name] for one in stats) for name in ("in_doubt", "retried"))
        tell(f"{edits} edits, {refused} answers 503; {in_doubt} commits in doubt, "
             f"{retried} sent again; each edit once", in_doubt > 0)


if __name__ == "__main__":
    main()
    finish()
