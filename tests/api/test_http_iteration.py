"""Many connections in one iteration of a loop: it reads from all of them, then answers, then sends.
The daemon stands still (SIGSTOP) while they send, so that all of it is there at once; each must be
answered as it is alone, whatever the others sent.
"""
import array
import os
import re
import signal
import socket
import struct
import time

from daemon import F32, JSON, Daemon, receive
from tap import HANG_S, check, equal, rng, run, test

CONNECTIONS = 160  # more than an iteration reads before it answers
LOCALE = "/v1/locales/a"
SIDE = 16


def stand_still(daemon):
    os.kill(daemon.process.pid, signal.SIGSTOP)
    while True:
        with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as file:
            if file.read().rsplit(")", 1)[1].split()[0] == "T":
                return
        time.sleep(0.001)


def go_on(daemon):
    os.kill(daemon.process.pid, signal.SIGCONT)


def with_daemon(body):
    with Daemon("--loops", "1") as daemon:
        daemon.ok("PUT", LOCALE, {}, status=201)
        samples = array.array("f", range(SIDE * SIDE)).tobytes()
        daemon.ok("PUT", f"{LOCALE}/layers/ground?spacing=1,1&cols={SIDE}&rows={SIDE}", samples,
                  status=201, media=F32)
        body(daemon)


def post(points):
    body = '{"points":[' + ",".join(f"[{x},{y}]" for x, y in points) + "]}"
    return (f"POST {LOCALE}/height HTTP/1.1\r\nHost: a\r\nContent-Type: {JSON}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}")


def get(i, more=""):
    return f"GET {LOCALE}/height?x={i % 15}.25&y={i % 13}.5 HTTP/1.1\r\nHost: a\r\n{more}\r\n"


def requests_of(i, random):
    """What the i-th connection sends, and where its bytes are cut; all is sent for None."""
    kind = i % 10
    if kind == 0:
        text = "GET  /livez HTTP/1.1\r\nHost: a\r\n\r\n"  # malformed
    elif kind == 1:
        text = "".join(get(i + k) for k in range(5))
    elif kind == 2:
        text = post([(k % 15, i % 15) for k in range(20)])
    elif kind == 3:
        text = post([(k % 15, 0.125) for k in range(6000)])  # more than an iteration keeps
    elif kind == 4:
        text = get(i, "Connection: close\r\n") + get(i)
    elif kind == 5:
        text = f"GET /nothing/{i} HTTP/1.1\r\nHost: a\r\n\r\n" + post([(1, i)]) + get(i)
    else:
        text = get(i)
    cut = random.randrange(1, len(text)) if i % 3 == 0 else None
    return text.encode(), cut


def tidy(text):
    """Answers without what differs from one to the next."""
    return re.sub(rb"(Date|X-Request-Id|Server-Timing): [^\r]*\r\n", b"", text)


def alone(daemon, text):
    with socket.create_connection(("127.0.0.1", daemon.port)) as s:
        s.sendall(text)
        s.shutdown(socket.SHUT_WR)
        return tidy(receive(s))


def open_all(daemon, count):
    out = []
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", daemon.port))
        s.settimeout(HANG_S)
        out.append(s)
    daemon.ok("GET", "/livez")  # they are accepted: the listener's queue is taken in order
    return out


@test("what many connections send at once is answered as it would be alone")
def _():
    def body(daemon):
        random = rng("turn")
        plans = [requests_of(i, random) for i in range(CONNECTIONS)]
        want = [alone(daemon, text) for text, _ in plans]
        check(all(want), "every one of them has an answer")
        for _ in range(3):
            order = list(range(CONNECTIONS))
            random.shuffle(order)
            sockets = open_all(daemon, CONNECTIONS)
            stand_still(daemon)
            for i in order:
                text, cut = plans[i]
                sockets[i].sendall(text[:cut])
                if cut is None:
                    sockets[i].shutdown(socket.SHUT_WR)
            go_on(daemon)
            for i in order:
                text, cut = plans[i]
                if cut is not None:
                    try:
                        sockets[i].sendall(text[cut:])
                        sockets[i].shutdown(socket.SHUT_WR)
                    except OSError:
                        check(i % 10 == 0, f"connection {i} was closed")  # refused before its end
            for i in order:
                equal(tidy(receive(sockets[i])), want[i], f"answers of connection {i}")
                sockets[i].close()
    with_daemon(body)


@test("connections that break in an iteration take nothing from the others")
def _():
    def body(daemon):
        text = get(7).encode()
        want = alone(daemon, text)
        for _ in range(3):
            sockets = open_all(daemon, CONNECTIONS)
            stand_still(daemon)
            for i, s in enumerate(sockets):
                s.sendall(text[:-1] if i % 4 == 1 else text)
                if i % 4 == 2:  # a reset behind a whole request
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    s.close()
                elif i % 4 == 3:
                    s.close()
                elif i % 4 == 0:
                    s.shutdown(socket.SHUT_WR)
            go_on(daemon)
            for i, s in enumerate(sockets):
                if i % 4 == 0:
                    equal(tidy(receive(s)), want, f"the answer of connection {i}")
                elif i % 4 == 1:
                    s.sendall(text[-1:])
                    s.shutdown(socket.SHUT_WR)
                    equal(tidy(receive(s)), want, f"the answer of connection {i}")
                s.close()
    with_daemon(body)


@test("what has arrived before the daemon is told to go is answered")
def _():
    for _ in range(3):
        def body(daemon):
            text = get(3).encode()
            one = {min(os.sched_getaffinity(0))}
            for task in os.listdir(f"/proc/{daemon.process.pid}/task"):
                os.sched_setaffinity(int(task), one)  # so that the loop often learns of both at once
            sockets = open_all(daemon, CONNECTIONS)
            for s in sockets:  # so that each of them is idle, and knows that it may be closed
                s.sendall(text)
                check(b" 200 OK" in receive(s, lambda got: got.endswith(b"}")), "the first answer")
            stand_still(daemon)
            for s in sockets:
                s.sendall(text)
            daemon.process.send_signal(signal.SIGTERM)
            go_on(daemon)
            for i, s in enumerate(sockets):
                got = receive(s)
                check(got.startswith(b"HTTP/1.1 200 OK") and got.endswith(b"}"),
                      f"connection {i}: {got!r}")
                s.close()
            daemon.process.wait(HANG_S)
        with_daemon(body)


run()
