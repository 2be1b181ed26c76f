"""Reloads and restarts that nobody notices: two daemons behind HAProxy, 500 requests a second.

A client that never asks twice sends GET and POST over kept connections; each answer must be 200 and
the right one. Meanwhile the daemons get SIGHUP with changed token files, and are ended by SIGTERM and
started again, one after the other.
"""
import json
import os
import signal
import tempfile
import threading
import time

from background import free_port
from daemon import SLOW, Daemon, connection_to
from fields import Terrain
from metrics import scrape
from proxies import Front
from tap import ALL, HANG_S, check, equal, run, test

RELOADS, RESTARTS = 100 if ALL else 40, 4 if SLOW > 1 else 20 if ALL else 6
RATE, CLIENTS = 500, 10
SIDE = 64
FIELD = Terrain(SIDE, SIDE, [[float(c + SIDE * r) for c in range(SIDE)] for r in range(SIDE)])
READ = "read-tokens-change-this-one-stays-0123"


class Replica:
    """One of two daemons with the same ground; started again on the same port."""

    def __init__(self, folder, name):
        self.port, self.ground = free_port(), os.path.join(folder, f"land.f32?{FIELD.query()}")
        self.tokens = os.path.join(folder, name)
        self.write_tokens(0)
        self.start()

    def write_tokens(self, n):
        with open(self.tokens + ".new", "w") as file:
            file.write(f"read {READ}\nread changing-{n:016}\n")
        os.replace(file.name, self.tokens)

    def start(self):
        self.daemon = Daemon("--listen", f"127.0.0.1:{self.port}", "--token-file", self.tokens,
                             "--loops", "2", self.ground)

    def answered(self):
        """How many of the client's questions came here."""
        families = scrape(self.daemon, headers={"Authorization": f"Bearer {READ}"})
        return sum(families["kota_http_requests_total"].total(
            method=method, route="/v1/locales/{locale}/height") for method in ("GET", "POST"))

    def wait_for_questions(self):
        deadline = time.monotonic() + HANG_S
        first = self.answered()
        while self.answered() == first:
            check(time.monotonic() < deadline, "no question came for a minute")
            time.sleep(0.02)


class Client(threading.Thread):
    """Asks on a schedule, whatever the answers take, and keeps what was wrong."""

    def __init__(self, front, number, stop):
        super().__init__()
        self.front, self.number, self.is_over = front, number, stop
        self.asked, self.wrong = 0, []

    def ask(self, connection, n):
        c, r = n % SIDE, n // SIDE % SIDE
        headers = {"Authorization": f"Bearer {READ}"}
        if n % 2:
            connection.request("GET", f"/v1/locales/land/height?x={c}&y={r}", headers=headers)
        else:
            connection.request("POST", "/v1/locales/land/height",
                               json.dumps({"points": [[c, r]]}),
                               {**headers, "Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            return f"{answer.status} {body[:300]!r}"
        got = json.loads(body)
        height = got["height"] if n % 2 else got["results"][0]["height"]
        return None if height == c + SIDE * r else f"{c} {r}: {height}"

    def run(self):
        connection = connection_to(self.front.port, self.front.context)
        due = time.monotonic() + self.number / RATE
        while not self.is_over.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            due += CLIENTS / RATE
            try:
                wrong = self.ask(connection, self.number + CLIENTS * self.asked)
            except Exception as error:  # whatever it is, the request has failed
                wrong = repr(error)
                connection.close()
            self.asked += 1
            if wrong:
                self.wrong.append(wrong)
        connection.close()


def under_load(work):
    """work(replicas, go_on) while the clients ask; then every answer must have been right.

    go_on(n) waits until they have sent n more questions.
    """
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        with open(os.path.join(folder, "land.f32"), "wb") as file:
            file.write(FIELD.body())
        replicas = []
        try:
            replicas += [Replica(folder, "tokens1")]
            replicas += [Replica(folder, "tokens2")]
            with Front("haproxy", [replica.port for replica in replicas]) as front:
                asked, seconds, wrong = drive(front, replicas, work)
        finally:
            for replica in replicas:
                replica.daemon.kill()
    print(f"# {asked} requests, {asked / seconds:.0f} a second")
    equal(wrong[:5], [], f"{len(wrong)} failed requests of {asked}")
    check(asked >= 300, f"only {asked} requests")


def drive(front, replicas, work):
    is_over = threading.Event()
    clients = [Client(front, number, is_over) for number in range(CLIENTS)]
    start = time.monotonic()

    def go_on(questions):
        until = sum(client.asked for client in clients) + questions
        while sum(client.asked for client in clients) < until:
            time.sleep(0.01)

    for client in clients:
        client.start()
    try:
        for replica in replicas:
            replica.wait_for_questions()
        work(replicas, go_on)
    finally:
        is_over.set()
        for client in clients:
            client.join()
    return (sum(client.asked for client in clients), time.monotonic() - start,
            [wrong for client in clients for wrong in client.wrong])


@test(f"{RELOADS} reloads while a client asks: no request fails, and the new tokens are in force")
def reloads():
    def work(replicas, go_on):
        for n in range(1, RELOADS + 1):
            replica = replicas[n % 2]
            replica.write_tokens(n)
            replica.daemon.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + HANG_S
            while replica.daemon.get("/v1/limits", headers={
                    "Authorization": f"Bearer changing-{n:016}"}).status != 200:
                check(time.monotonic() < deadline, f"reload {n} was not made within a minute")
                time.sleep(0.005)
            go_on(10)
    under_load(work)


@test(f"{RESTARTS} restarts of one daemon while the other answers: no request fails")
def restarts():
    def work(replicas, go_on):
        for n in range(RESTARTS):
            replica = replicas[n % 2]
            replica.daemon.stop()
            go_on(50)
            replica.start()
            replica.wait_for_questions()
            go_on(100)
    under_load(work)


run()
