"""Every case of http_corpus.py, whole and cut in two at a quarter of its bytes, in test-all at each:
the verdict is the same.

The first part of a request is sent on many connections, then the daemon, which has one loop, is
asked three times for something else: by then it has read each first part by itself. Then come the
rest and a request behind it, whose answer tells whether the connection went on.

KOTA_SPLITS=all cuts at every byte of every case. Otherwise test-all cuts cases longer than 300 bytes
at their ends and at some places between; sanitizer builds take fewer cuts.
"""
import functools
import os
import select
import socket
import struct
import time

from daemon import JSON, PROBLEM, SLOW, Daemon, parse_answers
from fields import Terrain, put_terrain
from http_corpus import BODY, HEIGHT, cases, follow
from tap import ALL, Failure, case, check, equal, rng, run, test

WAVE = 400
SECONDS = 20 * SLOW
EVERY = os.environ.get("KOTA_SPLITS") == "all"
FOLLOW_HEIGHT = 5  # of the request behind each case; no case asks for that place
daemon = Daemon("--loops", "1", "--max-body", str(1 << 20))
put_terrain(daemon, "l", Terrain(5, 4, [[c + r for c in range(5)] for r in range(4)]))


def places_to_cut(length, random):
    """0 is the whole case in one piece."""
    if EVERY:
        return range(length + 1)
    if SLOW > 1:
        return sorted({0, *random.sample(range(length + 1), min(length + 1, 12))})
    if not ALL:
        return sorted({0, 1, length - 1, length, *random.sample(range(length), min(length // 4, 60))})
    if length <= 300:
        return range(length + 1)
    ends = {*range(60), *range(length - 60, length + 1)}
    return sorted(ends | set(random.sample(range(length), 60)))


class Attempt:
    """One case over one connection, cut at one place."""

    def __init__(self, row, place):
        self.row, self.place, self.received, self.is_over = row, place, b"", False
        self.socket = socket.create_connection(("127.0.0.1", daemon.port), timeout=SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        try:
            if data:
                self.socket.sendall(data)
        except ConnectionError:
            pass  # it may have answered and closed

    def first(self):
        self.send(self.row.sent[:self.place])

    def second(self):
        rest = self.row.sent[self.place:]
        if self.row.kind != "cut":
            self.send(rest + follow)
            return
        self.send(rest)
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def read(self):
        try:
            more = self.socket.recv(1 << 16)
        except ConnectionError:
            more = b""
        self.received += more
        self.is_over = not more

    def close(self):
        """By a reset, so that no port waits."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def verdict(self):
        """(statuses of the case's own answers, was the request behind it answered)"""
        if not self.is_over:
            return "neither answered nor closed", self.received[:200]
        return verdict_on(self.received, self.row.sent.startswith(b"HEAD "))


@functools.lru_cache(maxsize=1000)  # most cuts of a case are answered with the same bytes
def verdict_on(received, is_head):
    answers = [a for a in parse_answers(received, ["HEAD"] if is_head else []) if a.status >= 200]
    goes_on = bool(answers) and answers[-1].media_type == JSON and \
        answers[-1].json.get("height") == FOLLOW_HEIGHT
    own = answers[:-1] if goes_on else answers
    for answer in own:
        check(answer.status < 400 or answer.media_type == PROBLEM, f"no problem: {answer}")
    return tuple(a.status for a in own), goes_on


def ask_for_something_else():
    for _ in range(3):
        equal(daemon.get("/livez").status, 200, "livez")


def wave(attempts):
    for attempt in attempts:
        attempt.first()
    ask_for_something_else()
    for attempt in attempts:
        attempt.second()
    poll, waiting = select.poll(), {}
    for attempt in attempts:
        waiting[attempt.socket.fileno()] = attempt
        poll.register(attempt.socket, select.POLLIN)
    deadline = time.monotonic() + SECONDS
    while waiting and time.monotonic() < deadline:
        for number, _ in poll.poll(1000):
            waiting[number].read()
            if waiting[number].is_over:
                poll.unregister(number)
                del waiting[number]
    for attempt in attempts:
        attempt.close()


def new_connection_works():
    answers = parse_answers(daemon.raw(follow))
    return [a.status for a in answers] == [200] and answers[0].json["height"] == FOLLOW_HEIGHT


verdicts = {row: {} for row in cases}  # row -> {place: verdict}
next_fails = []


@test("all cases are sent, cut at their places")
def _():
    start, count = time.monotonic(), 0
    todo = [(row, place) for row in cases
            for place in places_to_cut(len(row.sent), rng(f"cut {row.name}"))]
    while todo:
        some, todo = todo[:WAVE], todo[WAVE:]
        attempts = [Attempt(*entry) for entry in some]
        wave(attempts)
        count += len(attempts)
        for attempt in attempts:
            try:
                verdicts[attempt.row][attempt.place] = attempt.verdict()
            except Failure as failure:
                verdicts[attempt.row][attempt.place] = str(failure), None
        next_fails.extend(row.name for row in dict.fromkeys(row for row, _ in some)
                          if not new_connection_works())
    check(len(cases) >= 300, f"{len(cases)} cases")
    print(f"# {len(cases)} cases, {count} connections, {time.monotonic() - start:.1f} s")


def judged(row):
    check(verdicts[row], "has not been sent")
    goes_on = row.kind == "kept"
    wrong = {place: got for place, got in verdicts[row].items() if got != (row.statuses, goes_on)}
    check(not wrong, f"{row.sent[:200]!r}: expected {row.kind} {row.statuses}; of "
          f"{len(verdicts[row])} cuts {len(wrong)} differ, such as {list(wrong.items())[:3]}")


for row_ in cases:
    case(f"{row_.name}: {row_.kind} {', '.join(map(str, row_.statuses))}", judged, row_)


@test("after each case a request on a new connection is answered")
def _():
    equal(next_fails, [], "cases after which it is not")


@test("the request behind the cases is one that can be told")
def _():
    check(not any(follow in row.sent for row in cases), "a case holds it")
    answer = daemon.post(HEIGHT, BODY, media=JSON)
    check(all(item["height"] != FOLLOW_HEIGHT for item in answer.json["results"]), f"{answer}")


if __name__ == "__main__":
    run(daemon.stop)
