"""What a hostile client may send: it gets an answer that says so, and nobody else notices.

Framing, JSON and uploads that are merely wrong are in test_http.py and test_errors.py; here are
those that are chosen to hold a thread, to hold memory, or to make two parsers differ.
"""
import array
import copy
import json
import re
import select
import signal
import socket
import struct
import threading
import time

from daemon import F32, JSON, SLOW, Daemon, parse_answers, problem
from tap import HANG_S, case, check, equal, rng, run, test

LAND = "/v1/locales/land"
INFINITY = float("inf")


def spikes(cols, rows=4):
    """A spike at every fourth sample of the first row: a ray beside them meets every box."""
    row = array.array("f", [float(c % 4 == 0) for c in range(cols)])
    return row.tobytes() + bytes(4 * cols * (rows - 1))


def start(*args, cols=60_000):
    daemon = Daemon("--loops", "1", *args)
    daemon.ok("PUT", LAND, {}, status=201)
    daemon.ok("PUT", f"{LAND}/layers/ground?cols={cols}&rows=4&spacing=1,1", spikes(cols),
              media=F32, status=201)
    return daemon


def head(call, length, media=JSON, more=""):
    return (f"POST {LAND}/{call} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\n"
            f"Content-Length: {length}\r\n{more}\r\n").encode()


# ---- questions that take long ----------------------------------------------------------------------

ALONG = {"origin": [0, 1, .5], "direction": [1, 0, 0]}
LONG = {
    "ray": {"rays": [ALONG] * 120},
    "los": {"segments": [{"from": [0, 1, .5], "to": [1e6, 1, .5]}] * 120},
    "lit": {"points": [[0, 1, .5]] * 150, "light": {"direction": [-1, 0, 0]}},
    "contact": {"points": [[0, 1, .5]] * 90},
    "contains": {"points": [[0, 1, .5]] * 80},
}


def does_not_hold_the_loop(call, cols):
    """A question that the loop could answer by its size, and that takes some tenths of a second.

    A loop that answered it by itself would never say that it is being answered.
    """
    daemon = start("--max-batch-ms", "3600000", cols=cols)
    if call in ("contact", "contains"):
        daemon.ok("PUT", LAND, {"gravity": [1, 0, 0]})
    body = json.dumps(LONG[call]).replace(" ", "").encode()
    check(len(body) <= 16 * 1024, f"{len(body)} bytes would go to a worker by themselves")
    is_free, tries = False, 10  # where this program is not given a processor in time, it asks again
    while not is_free and (tries := tries - 1):
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as s:
            s.sendall(head(call, len(body), more="Connection: close\r\n") + body)
            while not is_free and not select.select([s], [], [], 0)[0]:
                time.sleep(0.001)
                is_free = daemon.ok("GET", "/v1/stats")["http"]["workers_busy"] > 0
            received = b""
            while more := s.recv(1 << 16):
                received += more
        answers = parse_answers(received)
        equal([a.status for a in answers], [200], "statuses")
        equal(len(answers[0].json["results"]), len(next(iter(LONG[call].values()))), "results")
    check(is_free, "the loop answered the long question by itself")
    daemon.stop()


for call_ in LONG:
    case(f"{call_}: what takes long does not hold the loop", does_not_hold_the_loop, call_, 60_000)
case("ray: nor does it where a single ray takes long", does_not_hold_the_loop, "ray", 120_000)


@test("a batch that takes too long is 413 with the limit, as JSON and as bytes")
def _():
    daemon = start("--max-batch-ms", "20")
    equal(daemon.ok("GET", "/v1/limits")["batch_ms_max"], 20, "batch_ms_max")
    problem(daemon.post(LAND + "/ray", {"rays": [ALONG] * 2000}), 413, "20 ms", limit=20)
    ray = struct.pack("<7f", 0, 1, .5, 1, 0, 0, INFINITY)
    problem(daemon.post(LAND + "/ray", ray * 2000, media=F32), 413, "20 ms", limit=20)
    equal(len(daemon.ok("POST", LAND + "/ray", {"rays": [ALONG]})["results"]), 1, "a short one")
    daemon.stop()


@test("a batch that cannot end in time is 413 long before its time is over")
def _():
    most_ms = 16_000 * SLOW  # judged after a second, or a sixteenth of this
    ray, on_x = struct.pack("<7f", 0, 1, .5, 1, 0, 0, INFINITY), [0, 1, .5]
    daemon = start("--max-batch-ms", str(most_ms), cols=1 << 18)
    daemon.ok("PUT", "/v1/locales/aside", {"gravity": [1, 0, 0]}, status=201)
    daemon.ok("PUT", f"/v1/locales/aside/layers/ground?cols={1 << 18}&rows=4&spacing=1,1",
              spikes(1 << 18), media=F32, status=201)
    for path, body, more in (
            (LAND + "/ray", ray * 200_000, {"media": F32}),
            ("/v1/locales/aside/contact", {"footprints": [[on_x, [1, 1, .5], [0, 2, .5]]] * 5_000}, {})):
        answer = daemon.post(path, body, **more)
        problem(answer, 413, f"the most is {most_ms} ms", limit=most_ms)
        check(answer.json["got"] > most_ms, f"{path}: {answer.json}")
        took_ms = re.search(r" of \d+ items took (\d+) ms of processor", answer.json["detail"])
        check(took_ms and int(took_ms[1]) < most_ms / 2, f"{path}: {answer.json}")
    equal(len(daemon.ok("POST", LAND + "/ray", {"rays": [ALONG]})["results"]), 1, "a short one")
    daemon.stop()


def stopped_in(daemon, s):
    """False: the batch that this connection waits for was over before its process stood still."""
    while daemon.ok("GET", "/v1/stats")["items_in_flight"] == 0:
        if select.select([s], [], [], 0.001)[0]:
            return False
    time.sleep(0.1)
    daemon.process.send_signal(signal.SIGSTOP)
    if not select.select([s], [], [], 0)[0]:
        return True
    daemon.process.send_signal(signal.SIGCONT)
    return False


@test("a batch is not judged by time in which its process did not run")
def _():
    daemon = start("--max-batch-ms", str(30_000 * SLOW), cols=1 << 17)
    body = struct.pack("<7f", 0, 1, .5, 1, 0, 0, INFINITY) * 300
    is_stopped, tries = False, 10
    while not is_stopped and (tries := tries - 1):
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as s:
            s.sendall(head("ray", len(body), F32, "Connection: close\r\n") + body)
            is_stopped = stopped_in(daemon, s)
            if is_stopped:
                time.sleep(4)  # more than a sixteenth of the limit, and much of the batch is left
                daemon.process.send_signal(signal.SIGCONT)
            received = b""
            while more := s.recv(1 << 16):
                received += more
        equal([a.status for a in parse_answers(received)], [200], "statuses")
    check(is_stopped, "each batch was over before it was stopped")
    daemon.stop()


@test("SIGTERM ends batches that would take hours")
def _():
    daemon = start("--drain-ms", "100", "--max-batch-ms", "3600000", cols=1 << 20)
    body = struct.pack("<7f", 0, 1, .5, 1, 0, 0, INFINITY) * 1_000_000
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as s:
        s.sendall(head("ray", len(body), F32) + body)
        deadline = time.monotonic() + HANG_S
        while daemon.ok("GET", "/v1/stats")["items_in_flight"] == 0:
            check(time.monotonic() < deadline, "the batch is not begun")
            time.sleep(0.01)
        daemon.process.send_signal(signal.SIGTERM)
        equal(daemon.process.wait(HANG_S), 0, "exit status")
    daemon.stop()


# ---- what is held ----------------------------------------------------------------------------------


@test("thin layers, large when built, wait for each other: 503, and memory stays bounded")
def _():
    daemon = Daemon("--max-uploads", "1")
    daemon.ok("PUT", LAND, {}, status=201)
    body, cols, statuses = bytes(4 * 2 * 131072), 131072, []

    def upload(height=body, rows=2):
        return daemon_of().put(f"{LAND}/layers/g?cols={cols}&rows={rows}&spacing=1,1", height,
                               media=F32).status

    def daemon_of():
        other = copy.copy(daemon)
        other.connection = None
        return other

    def put_some():
        for _ in range(4):
            statuses.append(upload())
    threads = [threading.Thread(target=put_some) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(set(statuses) <= {200, 201, 503} and {200, 201} & set(statuses), f"{set(statuses)}")
    if SLOW == 1:  # a sanitizer keeps what is freed
        peak = daemon.memory_kib("VmHWM") >> 10
        check(peak < 1000, f"{peak} MiB for layers of 137 MiB")
    for _ in range(3):  # what was charged has been given back, after refusals, too
        equal(upload(struct.pack("<f", INFINITY) + body[4:]), 400, "an infinite height")
        equal(upload(body[4:]), 400, "too short")
        equal(upload(), 200, "one alone")
    daemon.stop()


@test("answers that nobody reads are bounded together: 503 for the large ones, the others go on")
def _():
    daemon = start("--max-answers", str(16 << 20), cols=300)
    body = b'{"path":[[0.1,0.2],[298.3,2.7]],"samples":10000}'
    sockets = []
    for _ in range(60):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(HANG_S)
        s.connect(("127.0.0.1", daemon.port))
        s.sendall((head("profile", len(body)) + body) * 20)
        sockets.append(s)
    deadline, status = time.monotonic() + HANG_S, 200
    while status == 200 and time.monotonic() < deadline:
        equal(daemon.get("/livez").status, 200, "livez")
        status = daemon.post(LAND + "/profile", body, media=JSON).status
    equal(status, 503, "the answer to one more")
    equal(daemon.get(LAND + "/height?x=1&y=1").status, 200, "a small answer")
    for s in sockets:
        s.close()
    while status != 200 and time.monotonic() < deadline:
        status = daemon.post(LAND + "/profile", body, media=JSON).status
    equal(status, 200, "the answer once they are gone")
    daemon.stop()


run()
