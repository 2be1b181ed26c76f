"""A failover to a standby that did not have everything: acknowledged edits are lost, and all nodes agree.

That is what happens to an operator who has no synchronous standby; docs/cluster.md says so. The standby
is off while both nodes take edits, then the primary is killed and the standby promoted. Both nodes
must find out, go back to what the log has, tell their readers to resync, agree to the bit, and go on.

KOTA_CLUSTER_LOST  (10) rounds
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "torture")]
from table import attempt, finish, setting  # noqa: E402
from nodes import LOCALE, Sender, catch_up, end_all, first_ground, fleet, settle, wait_until  # noqa: E402
from postgres import Pair  # noqa: E402

from ground import Stream, read_ground  # noqa: E402
from tap import check, equal, rng  # noqa: E402

ROUNDS = setting("KOTA_CLUSTER_LOST", 10)
EDITS = 40


def send(nodes, ground, random, label, count):
    senders = [Sender(node, ground.copy(), random.random(), f"{label}-{node.name}", count=count // 2)
               for node in nodes]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    end_all(senders)
    return [request for sender in senders for request in sender.sent]


def head_of(server):
    return int(server.value(f"SELECT rev FROM kota.locale WHERE id = '{LOCALE}'"))


def revision_of(node):
    """None while the node takes the ground of the log in the place of its own."""
    answer = node.get(f"/v1/locales/{LOCALE}")
    check(answer.status in (200, 404, 503), f"{node.name}: {answer}")
    return answer.json["revision"] if answer.status == 200 else None


def take_over(pair, name, known, last):
    """The primary is killed, the standby promoted; the revision that it has."""
    pair.primary.kill()
    pair.standby.start()
    pair.promote()
    kept = head_of(pair.primary)
    check(known <= kept < last, f"{name}: the new primary has {kept} of {known} and {last}")
    return kept


def one_round(pair, nodes, ground, known, random, number):
    """(the last revision, how many were lost)"""
    name = f"lost-{number}"
    if pair.standby is None:
        pair.add_standby()
    pair.primary.reload(synchronous_standby_names="''")
    wait_until(lambda: pair.primary.sql("SHOW synchronous_standby_names") in ([[""]], []),
               f"{name}: no standby is waited for")
    known = settle(nodes, ground, known, send(nodes, ground, random, name + "-kept", EDITS), name, random)
    wait_until(lambda: head_of(pair.standby) == known, f"{name}: the standby has it")
    pair.standby.stop()
    sent = send(nodes, ground, random, name + "-lost", EDITS)
    last = max(request.revision for request in sent)
    equal(last, known + len(sent), f"{name}: revisions before the failover")
    for node in nodes:
        catch_up(node, last, name)
    streams = [Stream(node.port, f"/v1/locales/{LOCALE}/events", last) for node in nodes]
    kept = take_over(pair, name, known, last)
    sent.sort(key=lambda request: request.revision)
    for request in sent[:kept - known]:
        ground.apply(request.edit)
    for node in nodes:
        wait_until(lambda node=node: revision_of(node) == kept, f"{name}: {node.name} back at {kept}")
        with node.client() as client:
            ground.compare(read_ground(client, ground), f"{name}: {node.name} at {kept}")
    for stream, node in zip(streams, nodes):
        stream.wait(lambda events: any(kind == "resync" for _, kind, _ in events),
                    f"{name}: resync at {node.name}")
        stream.close()
    known = settle(nodes, ground, kept, send(nodes, ground, random, name + "-after", EDITS), name, random)
    return known, last - kept


def main():
    what, amount = "failover to a standby that did not have everything", f"{ROUNDS} rounds"
    must = "all nodes agree with the log, tell resync, go on"
    with attempt(what, amount, must) as tell:
        random, lost = rng("cluster lost"), 0
        with Pair() as pair, fleet(pair.conninfo()) as nodes:
            ground, known = first_ground(nodes[0], random)
            catch_up(nodes[1], known, "the first ground")
            start = time.monotonic()
            for number in range(ROUNDS):
                known, count = one_round(pair, nodes, ground, known, random, number)
                lost += count
            took = time.monotonic() - start
        tell(f"{lost} acknowledged edits lost with the old primary, none served afterwards; "
             f"{took / ROUNDS:.0f} s a round", lost > 0)


if __name__ == "__main__":
    main()
    finish()
