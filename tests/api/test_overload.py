"""Overload: heavy work beyond the workers is 503 with Retry-After, probes and small questions go on."""
import http.client
import os
import resource
import socket
import struct
import tempfile
import time

from daemon import F32, Answer, Daemon, parse_answers, problem, receive
from tap import HANG_S, check, equal, run, test

HEIGHT = "/v1/locales/land/height"
RAY = "/v1/locales/land/ray"
PROBES = ("/livez", "/readyz", "/healthz", "/metrics", "/v1/stats")
SIDE = 64
RAYS = 200_000


def ask(port, target, method="GET", headers=None, body=None):
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_S)
    connection.request(method, target, body, headers or {})
    answer = connection.getresponse()
    got = Answer(answer.status, answer.getheaders(), answer.read())
    connection.close()
    return got


def ops_port(daemon, path):
    with open(path) as file:
        return int(file.read())


def put_land(daemon):
    daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    daemon.ok("PUT", f"/v1/locales/land/layers/g?spacing=1,1&rows={SIDE}&cols={SIDE}",
              bytes(4 * SIDE * SIDE), status=201, media=F32)


def metric(text, name):
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


def almost_sent(port, body):
    """A batch of which all but the last byte has been sent."""
    s = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
    s.sendall(f"POST {RAY} HTTP/1.1\r\nHost: x\r\nContent-Type: {F32}\r\nConnection: close\r\n"
              f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:-1])
    return s


@test("more heavy work than the workers can do is 503; both listeners answer, what is taken is right")
def _():
    with Daemon("--workers", "2", "--max-queued-requests", "1", "--loops", "2", "--ops-listen",
                "127.0.0.1:0", "--ops-port-file", "ops") as daemon:
        put_land(daemon)
        ops = ops_port(daemon, os.path.join(daemon.folder, "ops"))
        ray = struct.pack("<7f", 1.25, 1.5, 5, 1, 0.9, 0.01, 60)
        whole = daemon.post(RAY, ray, media=F32).body
        body = ray * RAYS
        # one runs and one waits, or only one waits where no worker wakes before all have come: the
        # last bytes come together, and a batch takes far longer than that
        batches = [almost_sent(daemon.port, body) for _ in range(12)]
        for s in batches:
            s.sendall(body[-1:])
        for port in (daemon.port, ops):
            for target in PROBES:
                equal(ask(port, target).status, 200, f"{target} under load")
        equal(ask(daemon.port, HEIGHT + "?x=3&y=2").status, 200, "a height under load")
        refused = 0
        for s in batches:
            answer = parse_answers(receive(s))[0]
            s.close()
            if answer.status == 200:
                check(answer.body == whole * RAYS, "a batch that was taken")
                continue
            problem(answer, 503, "wait for a worker", limit=1, got=2)
            check(int(answer.headers["retry-after"]) >= 1, f"Retry-After: {answer.headers}")
            refused += 1
        check(1 <= refused <= 11, f"{refused} of 12 batches were refused")
        equal(daemon.ok("GET", "/v1/stats")["http"]["shed"], refused, "shed")
        equal(metric(ask(ops, "/metrics").body.decode(), "kota_shed_total"), refused, "kota_shed_total")
        equal(daemon.post(RAY, ray, media=F32).body, whole, "a batch afterwards")


@test("the items of all batches together are bounded; one alone may always")
def _():
    with Daemon("--workers", "4", "--max-items-in-flight", str(RAYS)) as daemon:
        put_land(daemon)
        ray = struct.pack("<7f", 1.25, 1.5, 5, 1, 0.9, 0.01, 60)
        whole = daemon.post(RAY, ray, media=F32).body
        batches = [almost_sent(daemon.port, ray * RAYS) for _ in range(6)]  # three workers take them
        for s in batches:
            s.sendall(ray[-1:])
        statuses = []
        for s in batches:
            answer = parse_answers(receive(s))[0]
            s.close()
            statuses.append(answer.status)
            if answer.status == 200:
                check(answer.body == whole * RAYS, "a batch that was taken")
            else:
                problem(answer, 503, "in flight", limit=RAYS, got=2 * RAYS)
                check(int(answer.headers["retry-after"]) >= 1, f"Retry-After: {answer.headers}")
        check(200 in statuses and 503 in statuses, f"{statuses}")
        equal(daemon.ok("GET", "/v1/stats")["items_in_flight"], 0, "items in flight afterwards")
        two = daemon.post(RAY, ray * 2 * RAYS, media=F32)
        equal((two.status, two.body), (200, whole * 2 * RAYS), "a batch over the limit, alone")


@test("the listener for operators has the probes and counters, and nothing else")
def _():
    with Daemon("--ops-listen", "127.0.0.1:0", "--ops-port-file", "ops") as daemon:
        put_land(daemon)
        ops = ops_port(daemon, os.path.join(daemon.folder, "ops"))
        for target in PROBES:
            equal(ask(ops, target).status, 200, target)
            equal(ask(ops, target, "HEAD").body, b"", f"HEAD {target}")
            equal(ask(ops, target, "POST").status, 405, f"POST {target}")
        equal(ask(ops, "/v1/stats").json["world"]["locales"], 1, "locales")
        for target in ("/", "/v1/locales", "/v1/locales/land", HEIGHT + "?x=1&y=1", "/v1/limits",
                       "/openapi.json", "/nope", "/v1/events"):
            problem(ask(ops, target), 404)
        problem(ask(ops, "/v1/locales/new", "PUT", body="{}"), 404)
        problem(ask(ops, "/v1/locales/land", "DELETE"), 404)
        daemon.ok("GET", "/v1/locales/land")


@test("the listener for operators asks for the same token as the other, and probes for none")
def _():
    with tempfile.NamedTemporaryFile("w") as tokens:
        tokens.write("read reader-0123456789abcdef\n")
        tokens.flush()
        with Daemon("--ops-listen", "127.0.0.1:0", "--ops-port-file", "ops", "--token-file",
                    tokens.name) as daemon:
            ops = ops_port(daemon, os.path.join(daemon.folder, "ops"))
            for target in PROBES:
                is_open = not target.endswith(("metrics", "stats"))
                equal(ask(ops, target).status, 200 if is_open else 401, target)
                equal(ask(ops, target, headers={"Authorization": "Bearer reader-0123456789abcdef"}).status,
                      200, f"{target} with the token")


@test("probes are answered while the world is loaded: alive and not ready")
def _():
    with tempfile.TemporaryDirectory() as folder:
        ground, port_file = os.path.join(folder, "slow.asc"), os.path.join(folder, "ops")
        os.mkfifo(ground)  # the start waits until somebody writes into it
        daemon = Daemon("--ops-listen", "127.0.0.1:0", "--ops-port-file", port_file, ground, wait=False)
        try:
            while not os.path.exists(port_file):
                check(daemon.is_alive(), daemon.log_text())
                time.sleep(0.01)
            ops = ops_port(daemon, port_file)
            for target in PROBES:
                equal(ask(ops, target).status, 503 if target == "/readyz" else 200, target)
            problem(ask(ops, "/readyz"), 503, "loading")
            with open(ground, "w"):
                pass  # a pipe is no file that could be loaded: the start ends, and ends this listener, too
            equal(daemon.process.wait(HANG_S), 2, "exit status")
            check(not os.path.exists(port_file), "the port file stays")
            check("this is not a file" in daemon.log_text(), daemon.log_text())
        finally:
            daemon.kill()


@test("when all connections are taken probes are answered on a few more, and nothing else is")
def _():
    with Daemon("--max-connections", "5", "--loops", "1") as daemon:
        put_land(daemon)
        held = []
        while len(held) < 4:  # and the one that made the land
            s = socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S)
            s.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            s.recv(1 << 16)
            held.append(s)
        for target in PROBES * 2:
            answer = ask(daemon.port, target)
            equal(answer.status, 200, target)
            equal(answer.headers["connection"], "close", "Connection")
        for target in (HEIGHT + "?x=1&y=1", "/v1/limits", "/", "/nope"):
            problem(ask(daemon.port, target), 503, "connections", limit=5, got=6)
        problem(ask(daemon.port, HEIGHT, "POST", body="x" * 100_000), 503, "connections")
        for s in held:
            s.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            check(s.recv(1 << 16).startswith(b"HTTP/1.1 200"), "a connection that was held")
            s.close()
        answer = ask(daemon.port, HEIGHT + "?x=1&y=1")
        while answer.status == 503:  # until the daemon has seen that they are closed
            answer = ask(daemon.port, HEIGHT + "?x=1&y=1")
        equal(answer.status, 200, "a height afterwards")


@test("where one address holds too many connections its own machine's probes are answered")
def _():
    with Daemon("--max-connections-per-address", "1", "--loops", "1") as daemon:
        put_land(daemon)
        equal(ask(daemon.port, "/readyz").status, 200, "/readyz")
        problem(ask(daemon.port, "/v1/limits"), 429, limit=1, got=2)


@test("without a free file those who are connected are answered, and who waits is served later")
def _():
    with Daemon("--loops", "2") as daemon:
        put_land(daemon)
        pid = daemon.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = max(int(name) for name in os.listdir(f"/proc/{pid}/fd")) + 1
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 4, hard))
        peers = [socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S)
                 for _ in range(40)]
        for i in range(20):
            equal(daemon.get(f"{HEIGHT}?x={i}&y=2").status, 200, "a height of who is connected")
        for s in peers[:2]:  # where they go others come in, though the limit is as it was
            s.close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        for s in peers[2:]:
            s.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        for s in peers[2:]:
            equal(s.recv(12), b"HTTP/1.1 200", "the answer to one who waited")
            s.close()
        for _ in range(20):
            equal(ask(daemon.port, "/livez").status, 200, "a new connection")


if __name__ == "__main__":
    run()
