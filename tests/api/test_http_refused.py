"""A client that is refused while it still sends: it gets its answer, however much it sends, and can
not hold a connection for longer than its time by sending on.
"""
import http.client
import re
import socket
import subprocess
import threading
import time

from daemon import F32, JSON, SLOW, Daemon, ask_once, parse_answers, problem, receive
from tap import HANG_S, check, equal, run, test

MIB = 1 << 20
PIECE = bytes(MIB)
HEIGHT = "/v1/locales/land/height"
PLY = "model/ply"
LAYER = "/v1/locales/land/layers/ground?spacing=1,1&cols=2&rows=2"
TOKENS = "read reader-reader-reader-reader-1\nedit editor-editor-editor-editor-1\n"


def body(mib):
    for _ in range(mib):
        yield PIECE


def upload(daemon, method, path, mib, media=JSON, is_chunked=False):
    """By http.client, which looks for an answer when all is sent; its status and whole body."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.direct_port, timeout=HANG_S)
    headers = {"Content-Type": media}
    if not is_chunked:
        headers["Content-Length"] = str(mib * MIB)
    try:
        connection.request(method, path, body(mib), headers, encode_chunked=is_chunked)
        answer = connection.getresponse()
        text = answer.read()
        equal(len(text), int(answer.getheader("Content-Length")), "bytes of the answer")
        return answer.status
    finally:
        connection.close()


def refused_head(length):
    return (f"POST {HEIGHT} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
            f"Content-Length: {length}\r\n\r\n").encode()


def refused(daemon):
    """A connection whose request was answered by 413, and that may send on."""
    s = socket.create_connection(("127.0.0.1", daemon.direct_port), timeout=HANG_S)
    s.sendall(refused_head(1 << 50))
    problem(parse_answers(receive(s))[0], 413)  # until the end of what the daemon says
    return s


def sends_until_ended(s, piece, pause=0.0):
    """Seconds until the daemon ends a connection that sends on and on."""
    start = time.monotonic()
    while time.monotonic() < start + 60 * SLOW:
        try:
            s.sendall(piece)
        except ConnectionError:
            return time.monotonic() - start
        time.sleep(pause)
    raise AssertionError("nobody ended the connection")


def are_open(daemon, count, what):
    """So many connections, but for the one that asks; those that asked before take a moment to go."""
    deadline = time.monotonic() + HANG_S
    while True:
        text = ask_once(daemon.direct_port, "/metrics").body.decode()
        now = int(re.search(r"^kota_connections (\d+)$", text, re.M).group(1)) - 1
        if now == count:
            return
        check(time.monotonic() < deadline, f"{what}: {now} connections, expected {count}")
        time.sleep(0.05)


@test("a body beyond the limit is answered by 413, though its client sends all of it first")
def _():
    with Daemon() as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        for mib, is_chunked in ((70, False), (70, True), (300, True)):
            calls = [("POST", HEIGHT, JSON, 413)]
            if mib < 300:
                calls += [("PUT", LAYER.split("?")[0], PLY, 413),
                          ("PUT", LAYER, F32, 400)]  # of another length
            for method, path, media, status in calls:
                equal(upload(daemon, method, path, mib, media, is_chunked), status,
                      f"{method} of {mib} MiB{', chunked' if is_chunked else ''}")


@test("so are an unknown path, a method that is not offered and a client without a token")
def _():
    with Daemon() as daemon:
        for is_chunked in (False, True):
            equal(upload(daemon, "POST", "/v1/nothing", 100, is_chunked=is_chunked), 404, "unknown")
            equal(upload(daemon, "POST", "/livez", 100, is_chunked=is_chunked), 405, "method")
        with open(f"{daemon.folder}/tokens", "w", encoding="ascii") as file:
            file.write(TOKENS)
        with Daemon("--token-file", file.name) as guarded:
            for is_chunked in (False, True):
                equal(upload(guarded, "PUT", LAYER, 100, F32, is_chunked), 401, "no token")


@test("a client that reads while it sends has its answer at once, and one that broke framing too")
def _():
    with Daemon() as daemon:
        for head, status in ((refused_head(300 * MIB), 413), (b"POST  /x HTTP/1.1\r\n\r\n", 400)):
            with socket.create_connection(("127.0.0.1", daemon.direct_port), timeout=HANG_S) as s:
                s.sendall(head)
                equal(parse_answers(receive(s))[0].status, status, "before the body")
                for _ in range(300):
                    s.sendall(PIECE)
                s.shutdown(socket.SHUT_WR)
            with socket.create_connection(("127.0.0.1", daemon.direct_port), timeout=HANG_S) as s:
                s.sendall(head)
                for _ in range(300):
                    s.sendall(PIECE)
                equal(parse_answers(receive(s))[0].status, status, "behind the body")


@test("a client that sends on is counted as connected, and ended when its time is over")
def _():
    with Daemon() as daemon, refused(daemon), refused(daemon):
        are_open(daemon, 2, "while they may send")
    with Daemon("--body-ms", "400") as daemon:
        for piece, pause in ((PIECE, 0.0), (b"x", 0.02)):
            with refused(daemon) as s:
                sends_until_ended(s, piece, pause)
                are_open(daemon, 0, "behind its time")
        with refused(daemon):  # and one that neither sends nor goes
            are_open(daemon, 0, "behind its silence")


@test("one that sends next to nothing is ended long before one that sends")
def _():
    with Daemon() as daemon, refused(daemon) as fast, refused(daemon) as slow, \
            refused(daemon) as silent:
        done = threading.Event()

        def send_fast():
            while not done.wait(0.05):
                fast.sendall(bytes(8192))
        thread = threading.Thread(target=send_fast)
        thread.start()
        try:
            seconds = sends_until_ended(slow, b"x", 0.1)
            check(4 < seconds < 25, f"ended after {seconds:.1f} s")
            are_open(daemon, 1, "the one that sends")
            silent.close()
            fast.sendall(bytes(8192))
        finally:
            done.set()
            thread.join()


@test("the daemon goes though somebody sends on")
def _():
    with Daemon("--drain-ms", "3600000") as daemon, refused(daemon) as s:
        ended = []
        thread = threading.Thread(target=lambda: ended.append(sends_until_ended(s, PIECE)))
        thread.start()
        daemon.process.terminate()
        try:
            equal(daemon.process.wait(timeout=HANG_S), 0, "exit status")
        except subprocess.TimeoutExpired:
            raise AssertionError("the daemon waits for somebody who only sends") from None
        thread.join()
        equal(len(ended), 1, "connections that were ended")


run()
