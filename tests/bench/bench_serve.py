"""What a request costs kotad's processor, beside nginx and beside a bare epoll loop.

One loop of kotad, one worker of nginx that returns a constant, and peer_epoll.c, which does nothing
else, are pinned to one processor, `kota bench` to another. The answers of all three have the same
number of bytes, heads included. Figures are requests a second of the server's processor time, user
and system, so that they hold although the generator, or other work on this machine, is in the way.
Rounds are interleaved, and each ratio is the median of the rounds' ratios.

kotad runs as it is installed: all limits and time-outs, the log of slow and failed requests. nginx
logs no requests either. Heights are asked at 4096 points in turn, over a heightfield of 1024 x 1024
samples; before and after, answers are compared with those of a batch.

Where it is allowed (root, or RLIMIT_RTPRIO) servers and generator run before all other work
(SCHED_FIFO), all alike, because figures are else what the scheduler and the caches make of that
work.

The open loop asks 100000 times a second, and half as often as the slowest of the three answers in a
closed loop of the same run: near what the machine can do at all, a time is the shortage of
processors and not the server ("half load"). The generator polls without sleeping, and while a server
sleeps a loop of a lower priority keeps its processor awake and other work off it (Awake): to wake a
virtual processor, or one that is within the kernel for somebody else, takes longer than an answer.
Rounds are short, since what stops this machine for milliseconds then spoils few of them; each
ratio is the median of the rounds' ratios. The rows say whether the servers ran before other work,
and for what share of the time they were ready and had no processor. A rate that not all of them
answer without a backlog has no row.

Called by `make bench`; rows named on the command line (get pipelined open post loops) run alone.
Skipped where there is no nginx (deploy/install-deps.sh bench) or only one processor.
"""
import array
import contextlib
import http.client
import json
import math
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "api"))
from daemon import BIN_DIR, F32, Daemon  # noqa: E402
from rows import row, row_most  # noqa: E402

SECTION = "Serving"
SIDE, POINTS = 1024, 4096
RATE, SHARE, OPEN_ROUNDS, OPEN_SECONDS, OPEN_WARM_UP = 100000, 0.5, 61, 0.05, 0.05
CLOSED_SECONDS = 0.25  # of the rounds that tell what half load is
AWAKE, MEASURED = 1, 2  # priorities
REQUESTS_LEAST = 1000
ROUNDS, SECONDS, WARM_UP = 7, 0.6, 0.15
KOTA = os.path.join(BIN_DIR, "kota")
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
CORES = sorted(os.sched_getaffinity(0))
NGINX_CONF = """
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    {types}
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} reuseport;
        {content}
    }}
}}
"""


def tasks(pid):
    return [int(task) for task in os.listdir(f"/proc/{pid}/task")]


def pin(pid, cores):
    """Every thread of the process."""
    for task in tasks(pid):
        os.sched_setaffinity(task, cores)


def before_others():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(MEASURED))


class Awake:
    """A loop on the servers' processor that runs when they do not, before all other work."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                        preexec_fn=self.prepare)
        self.process.send_signal(signal.SIGSTOP)

    @staticmethod
    def prepare():
        os.sched_setaffinity(0, CORES[:1])
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(AWAKE))

    def __enter__(self):
        self.process.send_signal(signal.SIGCONT)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGSTOP)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Before:
    """The servers, and whom `prepare` starts, run before all other work; False: not allowed."""

    def __init__(self, servers):
        self.pids, self.prepare = [s.pid for s in servers], before_others

    def set(self, policy, priority):
        for pid in self.pids:
            for task in tasks(pid):
                os.sched_setscheduler(task, policy, os.sched_param(priority))

    def __enter__(self):
        try:
            self.set(os.SCHED_FIFO, MEASURED)
        except PermissionError:
            self.prepare = None
        return self.prepare

    def __exit__(self, *_):
        if self.prepare:
            self.set(os.SCHED_OTHER, 0)


def unserved_s(pid):
    """How long its threads were ready to run and had no processor."""
    return sum(int(open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii").read().split()[1])
               for task in tasks(pid)) / 1e9


class Bare:
    """peer_epoll.c with an answer of so many bytes."""
    name = "a bare epoll loop"

    def __init__(self, answer_bytes):
        self.process = subprocess.Popen([os.path.join(BIN_DIR, "bench", "peer_epoll"), "0",
                                         str(answer_bytes)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port, self.pid = int(self.process.stdout.readline()), self.process.pid
        pin(self.pid, CORES[:1])

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


class Nginx:
    """One worker that returns a constant of so many bytes, its own head included."""
    name = "nginx, one worker"
    types = "default_type application/json;"

    def __init__(self, answer_bytes, body):
        self.start(self.returning(body))
        more = answer_bytes - answer_of(self.port, "/")[0]
        if more > 0:
            self.stop()
            self.start(self.returning(body + " " * (more - (len(str(len(body) + more)) - len(str(len(body)))))))
        if answer_of(self.port, "/")[0] != answer_bytes:
            raise SystemExit("bench_serve: nginx's answer cannot be made as long as kotad's")

    @staticmethod
    def returning(body):
        return f"location / {{ return 200 '{body}'; }}"

    def start(self, content, files=None):
        self.folder = tempfile.mkdtemp(prefix="kota-bench-nginx-")
        os.chmod(self.folder, 0o755)
        os.mkdir(f"{self.folder}/files")
        for name, data in (files or {}).items():
            with open(f"{self.folder}/files/{name}", "wb") as file:
                file.write(data)
        self.port = free_port()
        with open(f"{self.folder}/conf", "w", encoding="utf-8") as file:
            file.write(NGINX_CONF.format(folder=self.folder, port=self.port, types=self.types,
                                         content=content.format(folder=self.folder) if files else content))
        self.process = subprocess.Popen([NGINX, "-c", f"{self.folder}/conf", "-e",
                                         f"{self.folder}/error.log"])
        self.pid = self.wait_for_worker()
        pin(self.pid, CORES[:1])

    def wait_for_worker(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        for _ in range(500):
            if self.process.poll() is not None:
                raise SystemExit("bench_serve: nginx ended: " + open(f"{self.folder}/error.log").read())
            children = open(path, encoding="ascii").read().split()
            if children:
                return int(children[0])
            time.sleep(0.01)
        raise SystemExit("bench_serve: nginx has no worker")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Kotad:
    """One daemon with `loops` loops over one heightfield of hills."""
    name = "kotad"

    def __init__(self, loops, cores):
        self.daemon = Daemon("--loops", str(loops), "--gpu", "off")
        self.port, self.pid = self.daemon.port, self.daemon.process.pid
        pin(self.pid, cores)
        samples = array.array("f", (100 + 40 * math.sin(c / 23) * math.cos(r / 31) + (c * r % 7) / 8
                                    for r in range(SIDE) for c in range(SIDE)))
        self.daemon.ok("PUT", "/v1/locales/a", {}, status=201)
        self.daemon.ok("PUT", f"/v1/locales/a/layers/ground?spacing=1,1&cols={SIDE}&rows={SIDE}",
                       samples.tobytes(), status=201, media=F32)

    def stop(self):
        self.daemon.stop()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def bench(server, files, *args, cpu=True, least_s=SECONDS, warm_up_s=WARM_UP, prepare=None):
    """One run of the generator; its document. Longer where others kept it from running."""
    where = ["--cpu", str(CORES[1])] if cpu else []
    for seconds in (least_s, 2 * least_s, 4 * least_s, 8 * least_s):
        done = subprocess.run([KOTA, "bench", "--url", f"http://127.0.0.1:{server.port}",
                               "--server", str(server.pid), "--seconds", str(seconds), "--warm-up",
                               str(warm_up_s), *where, *files, *args],
                              capture_output=True, text=True, preexec_fn=prepare)
        if done.returncode != 0:
            raise SystemExit(f"bench_serve: kota bench {' '.join(args)}: {done.stderr}")
        document = json.loads(done.stdout)
        if document["requests"] >= REQUESTS_LEAST:
            return document
    raise SystemExit("bench_serve: this machine is too busy to measure anything")


def interleave(servers, run, rounds=ROUNDS):
    """run(server) in turns: {server: [documents]}, the first turn dropped."""
    out = {server: [] for server in servers}
    for turn in range(rounds + 1):
        for server in servers:
            document = run(server)
            if turn:
                out[server].append(document)
    return out


def median_of(documents, pick):
    return statistics.median(pick(d) for d in documents)


def ratio(mine, theirs, pick):
    return statistics.median(pick(a) / pick(b) for a, b in zip(mine, theirs))


def cost(document):
    return document["requests_per_cpu_s"]


def p99(document):
    return document["latency_us"]["p99"]


def rates(results, pick, unit):
    return ", ".join(f"{server.name} {median_of(documents, pick) / unit:.3g}"
                     for server, documents in results.items())


class Work:
    """The points, as files that the generator reads."""

    def __init__(self, folder):
        pick = random.Random(20)
        self.points = [(round(pick.uniform(0, SIDE - 1), 3), round(pick.uniform(0, SIDE - 1), 3))
                       for _ in range(POINTS)]
        self.targets = [f"/v1/locales/a/height?x={x}&y={y}" for x, y in self.points]
        self.bodies = [json.dumps({"points": [p]}, separators=(",", ":")) for p in self.points]
        self.get = ["--targets", self.write(folder, "targets", self.targets)]
        self.post = ["/v1/locales/a/height", "--bodies", self.write(folder, "bodies", self.bodies)]

    @staticmethod
    def write(folder, name, lines):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        return path

    def check(self, kotad):
        """Single answers are those of a batch."""
        connection = http.client.HTTPConnection("127.0.0.1", kotad.port)
        batch = kotad.daemon.ok("POST", "/v1/locales/a/height", {"points": self.points})["results"]
        for i in range(0, POINTS, 37):
            connection.request("GET", self.targets[i])
            one = json.loads(connection.getresponse().read())
            if one["status"] != "ok" or one["height"] != batch[i]["height"]:
                raise SystemExit(f"bench_serve: {self.targets[i]}: {one} is not {batch[i]}")
        connection.close()


def answer_of(port, target):
    """(bytes of the whole answer, its body), on a connection that stays open"""
    text = b""
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.settimeout(10)
        s.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        while b"\r\n\r\n" not in text:
            text += s.recv(65536)
        head = text.split(b"\r\n\r\n", 1)[0].lower()
        whole = len(head) + 4 + int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        while len(text) < whole:
            text += s.recv(65536)
    return whole, text[len(head) + 4:].decode()


def closed(servers, run):
    """run(server, prepare) in turns, before other work."""
    with Before(servers) as prepare:
        return interleave(servers, lambda s: run(s, prepare))


def get(work, kotad, nginx, bare):
    results = closed((kotad, nginx, bare), lambda s, prepare: bench(s, work.get, prepare=prepare))
    note = "k/s of CPU: " + rates(results, cost, 1e3)
    row(SECTION, "GET height, 64 connections", nginx.name,
        ratio(results[kotad], results[nginx], cost), 1.05, note)
    row(SECTION, "GET height, 64 connections", bare.name,
        ratio(results[kotad], results[bare], cost), 0.85)


def pipelined(work, kotad, nginx, bare):
    results = closed((kotad, nginx, bare),
                     lambda s, prepare: bench(s, work.get, "--depth", "16", prepare=prepare))
    note = "k/s of CPU: " + rates(results, cost, 1e3)
    row(SECTION, "GET height, pipelined 16 deep", nginx.name,
        ratio(results[kotad], results[nginx], cost), 5, note)
    row(SECTION, "GET height, pipelined 16 deep", bare.name,
        ratio(results[kotad], results[bare], cost))


def post(work, kotad, nginx, bare):
    def run(server, prepare):
        return bench(server, work.post if server is kotad else work.get, prepare=prepare)
    results = closed((kotad, nginx), run)
    row(SECTION, "POST of one point", "nginx's constant GET",
        ratio(results[kotad], results[nginx], cost), 1.0, "k/s of CPU: " + rates(results, cost, 1e3))


def open_row(work, servers, rate, what, prepare, awake):
    """Two rows: p99 at one rate, beside each of the peers."""
    kotad, nginx, bare = servers
    waited = []

    def run(server):
        before, began = unserved_s(server.pid), time.monotonic()
        with awake or contextlib.nullcontext():
            document = bench(server, work.get, "--busy", "--rate", str(rate), least_s=OPEN_SECONDS,
                             warm_up_s=OPEN_WARM_UP, prepare=prepare)
        waited.append((unserved_s(server.pid) - before) / (time.monotonic() - began))
        return document

    if any(statistics.median(run(s)["latency_us"]["p50"] for _ in range(5)) > 1000 for s in servers):
        print(f"  p99 in an open loop, {what}: no row, {rate}/s are not answered without a backlog")
        return
    results = interleave(servers, run, OPEN_ROUNDS)
    note = (f"at {rate}/s, p99 in us: {rates(results, p99, 1)}; without a processor "
            f"{100 * statistics.mean(waited):.1f} % of the time"
            f"{'' if prepare else ', other work not put back'}")
    row_most(SECTION, f"p99 in an open loop, {what}", nginx.name,
             ratio(results[kotad], results[nginx], p99), 1.0, note)
    row_most(SECTION, f"p99 in an open loop, {what}", bare.name,
             ratio(results[kotad], results[bare], p99), 1.5)


def open_loop(work, kotad, nginx, bare):
    servers = (kotad, nginx, bare)
    with Before(servers) as prepare:
        full = interleave(servers, lambda s: bench(s, work.get, least_s=CLOSED_SECONDS,
                                                   prepare=prepare), 3)
        sustained = min(median_of(documents, lambda d: d["requests_per_s"])
                        for documents in full.values())
        half = int(sustained * SHARE) // 1000 * 1000
        awake = Awake() if prepare else None
        try:
            if half > 0:
                open_row(work, servers, half, "half load", prepare, awake)
            open_row(work, servers, RATE, "100,000/s", prepare, awake)
        finally:
            if awake:
                awake.stop()


def loops(work, *_):
    one, two = Kotad(1, CORES), Kotad(2, CORES)
    try:
        results = interleave((one, two),
                             lambda s: bench(s, work.get, "--depth", "16", cpu=False))
        row(SECTION, "two loops, requests per processor second x 2", "one loop",
            2 * ratio(results[two], results[one], cost), 1.8,
            "the generator shares the processors" if len(CORES) < 3 else "")
    finally:
        one.stop()
        two.stop()


CASES = {"get": get, "pipelined": pipelined, "open": open_loop, "post": post, "loops": loops}


def main():
    wanted = sys.argv[1:] or list(CASES)
    if not os.path.exists(NGINX):
        print("serving: skipped, there is no nginx (deploy/install-deps.sh bench)")
        return
    if len(CORES) < 2:
        print("serving: skipped, it takes two processors")
        return
    with tempfile.TemporaryDirectory(prefix="kota-bench-") as folder:
        work, kotad = Work(folder), Kotad(1, CORES[:1])
        whole, body = answer_of(kotad.port, work.targets[0])
        servers = [kotad, Nginx(whole, body), Bare(whole)]
        try:
            print(f"\nServing: answers of {whole} bytes, {len(body)} of them body; {ROUNDS} rounds "
                  f"of {SECONDS} s each")
            work.check(kotad)
            for name in wanted:
                CASES[name](work, *servers)
            work.check(kotad)
        finally:
            for server in servers:
                server.stop()


if __name__ == "__main__":
    main()
