"""Six clients send random calls to five locales: uploads, edits, pins, forks, restores, reverts, moves, deletions.

One daemon with a store, then two daemons of a shared log, then one daemon with living sand (sand_calls.py), whose token
file changes and which is killed. No call is answered by 500 or more (503 only of the log and of sand), nobody crashes,
`--check` finds nothing, the nodes are equal, and, but for sand, all is as it was after a start.

KOTA_STORM_SECONDS  (60) of each of the three
KOTA_STORM_SEED     (of the clock)
"""
import array
import collections
import hashlib
import os
import random as random_module
import signal
import socket
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cluster")]
from table import attempt, finish, setting  # noqa: E402
from nodes import Node, wait_until  # noqa: E402
from postgres import Server  # noqa: E402
from sand_calls import FLAGS, bearer, sand_call, set_up, write_tokens  # noqa: E402

from daemon import F32, Daemon, connect  # noqa: E402
from ground import Client, check_is_good  # noqa: E402
from mesh_oracle import obj, random_soup  # noqa: E402
from tap import check, equal  # noqa: E402

SECONDS = setting("KOTA_STORM_SECONDS", 60.0)
SEED = setting("KOTA_STORM_SEED", int(time.time()))
CLIENTS, LOCALES, PINS, SIDES = 6, "abcde", ("p0", "p1"), (33, 300)
OBJ = "model/obj"


def a_call(random, _):
    """Method, path below /v1, body, media type, headers."""
    side, name, other = random.choice(SIDES), random.choice(LOCALES), random.choice(LOCALES)
    pin, at = random.choice(PINS), random.choice((*PINS, str(random.randrange(30))))
    column, row = random.randrange(side - 4), random.randrange(side - 4)
    rect = [column, row, random.randrange(1, 4), random.randrange(1, 4)]
    heights = [random.choice((None, random.random())) for _ in range(rect[2] * rect[3])]
    corner = [random.random() for _ in range(3)]
    method, path, body, media = random.choice((
        ("PUT", name, {}, None),
        (random.choice(("DELETE", "GET")), name, None, None),
        ("PUT", f"{name}/layers/g?cols={side}&rows={side}&spacing=1,1&origin=0,0",
         array.array("f", [corner[0]]).tobytes() * side ** 2, F32),
        ("PUT", f"{name}/layers/m", obj(random_soup(random, 8)), OBJ),
        (random.choice(("DELETE", "GET", "GET")), f"{name}/layers/{random.choice('gm')}", None, None),
        ("PUT", f"{name}/layers/m/transform", {"translation": corner, "yaw_deg": 90 * corner[0]}, None),
        ("POST", f"{name}/edits", {"layer": "g", "rect": rect, "heights": heights}, None),
        ("POST", f"{name}/edits", {"layer": "g", "brush": {
            "shape": "crater", "center": [column, row], "radius": 6, "amount": corner[1]}}, None),
        ("PUT", f"{name}/pins/{pin}", None, None),
        ("POST", f"{name}/pins/{pin}/restore", None, None),
        ("DELETE", f"{name}/pins/{pin}", None, None),
        ("POST", "", {"id": other, "from": name + random.choice(("", *("@" + each for each in PINS)))}, None),
        ("POST", f"{name}/revert", {"since": random.randrange(20), "layer": "g",
                                    "conflicts": random.choice(("keep", "overwrite"))}, None),
        ("POST", f"{name}/layers/m/polygons",
         {"polygons": [[corner, [1, 0, 1], [0, 1, 1]]], "remove": [random.randrange(4)]}, None),
        ("GET", f"{name}/history", None, None),
        ("POST", f"{name}/contact?at={at}", {"points": [[1, 1, 9]]}, None),
    ))
    return method, f"locales/{path}".rstrip("/"), body, media, {}


def cut_stream(random, port, path, headers):
    """Reads a stream for up to a second, in pieces of a random size, and leaves. Its status."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with connect(port) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: kota\r\n{lines}\r\n".encode())
        received = s.recv(64)
        if not received:
            raise ConnectionError("no answer")
        s.settimeout(random.random())
        try:
            while s.recv(random.choice((10, 1000, 100000))) and random.random() > 0.05:
                pass
        except socket.timeout:
            pass
    return int(received[9:12])


def storm(ports, allowed, some_call=a_call, in_between=lambda random: None):
    """Answers by their status; the calls that were answered by 500 or more but not by one that is
    `allowed`, or cut off. `in_between` is called by one client, now and then."""
    answers, bad, end = collections.Counter(), [], time.monotonic() + SECONDS
    made = collections.deque(maxlen=40)

    def work(number):
        random = random_module.Random(f"{SEED} {number}")
        client = Client(ports[number % len(ports)])
        while time.monotonic() < end and not bad:
            if number == 0 and random.random() < 0.05:
                in_between(random)
            method, path, body, media, headers = some_call(random, list(made))
            try:
                if method == "STREAM":
                    status = cut_stream(random, ports[number % len(ports)], f"/v1/{path}", headers)
                else:
                    answer = client.ask(method, f"/v1/{path}", body, headers, media)
                    status, place = answer.status, answer.headers.get("location")
                    if place and status < 300:
                        made.append(place)
            except Exception as cut:  # whatever it is: the daemon has gone
                bad.append(f"{method} {path}: {cut!r}")
                return
            answers[status] += 1
            if status >= 500 and status not in allowed:
                bad.append(f"{method} {path}: {status if method == 'STREAM' else answer}")
        client.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers, bad


def locale_state(client, name):
    def get(path, body=None):
        return client.ask("POST" if body else "GET", f"/v1/locales/{name}{path}", body)

    def hashed(path):
        answer = get(path)
        return answer.status, answer.status == 200 and hashlib.sha256(answer.body).hexdigest()

    answer = get("")
    if answer.status != 200:
        return answer.status
    told, pins = answer.json, [(pin["name"], pin["revision"]) for pin in get("/pins").json["pins"]]
    contents = {at: [hashed(f"/layers/g/samples{at}"), hashed(f"/layers/m{at}")]
                for at in ("", *(f"?at={name}" for name, _ in pins))}
    layers = [(layer["id"], layer["kind"], {**(layer.get("transform") or {}), "transform_seq": 0})
              for layer in told["layers"]]
    return told["revision"], layers, pins, contents, [
        (row["revision"], row["author"], row["rect"]) for row in get("/history").json["history"]]


def state(port):
    with Client(port) as client:
        return {name: locale_state(client, name) for name in LOCALES}


def summary(answers):
    refused = sum(count for status, count in answers.items() if status >= 400)
    return f"{sum(answers.values())} calls, {refused} of them refused"


def one_node():
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        data = os.path.join(folder, "data")
        with Daemon("--data", data, "--loops", "2") as daemon:
            answers, bad = storm([daemon.port], ())
            check(not bad and daemon.is_alive(), f"seed {SEED}: {bad[:3]}")
            before = state(daemon.port)
        check_is_good(data)
        with Daemon("--data", data) as daemon:
            equal(state(daemon.port), before, f"seed {SEED}: after a start")
    return summary(answers)


def two_nodes():
    with Server() as engine:
        nodes = [Node(engine.conninfo(), name, "--gpu", "off").start() for name in "ab"]
        answers, bad = storm([node.port for node in nodes], (503,))
        check(not bad and all(node.is_there for node in nodes), f"seed {SEED}: {bad[:3]}")
        try:
            wait_until(lambda: state(nodes[0].port) == state(nodes[1].port), "equal")
        finally:
            one, other = (state(node.port) for node in nodes)
            equal(one, other, f"seed {SEED}: the nodes")
        for node in nodes:
            node.stop()  # which checks its data
        for node in nodes:
            node.start()
            wait_until(lambda node=node: state(node.port) == one, "as it was")
            node.stop()
    return summary(answers)


def sand():
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        tokens, data = os.path.join(folder, "tokens"), os.path.join(folder, "data")
        write_tokens(tokens, random_module.Random(SEED))
        flags = ("--data", data, "--loops", "2", "--token-file", tokens, "--audit", os.path.join(folder, "audit"), *FLAGS)
        daemon = Daemon(*flags)

        def change_tokens(random):
            write_tokens(tokens, random)
            daemon.process.send_signal(signal.SIGHUP)
            with Client(daemon.port) as client:
                set_up(client)

        try:
            change_tokens(random_module.Random(SEED))
            answers, bad = storm([daemon.port], (503,), sand_call, change_tokens)
            check(not bad and daemon.is_alive(), f"seed {SEED}: {bad[:3]}")
        finally:
            daemon.kill()
        check_is_good(data)
        with Daemon(*flags) as daemon:
            equal(daemon.get("/v1/locales", headers=bearer("root")).status, 200, "after a start")
    return summary(answers)


def main():
    for what, run, after in (
            ("locales, forks, pins, reverts: one daemon", one_node, "equal after a start"),
            ("locales, forks, pins, reverts: two daemons of a shared log", two_nodes, "equal after a start"),
            ("patches, bodies, impacts, watches, streams: one daemon", sand, "starts after kill -9")):
        with attempt(f"random calls of {CLIENTS} clients over {what}",
                     f"{SECONDS:g} s", f"no crash, no 5xx, --check is clean, {after}") as held:
            held(run(), True)


if __name__ == "__main__":
    main()
    finish()
