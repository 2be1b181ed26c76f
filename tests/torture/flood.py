"""Connections to the limit, half-closed and reset peers, and a server that runs out of files.

The peers are a process of their own, so that both sides have all the files they may have. They
come from ten addresses of 127.0.0.0/8, each below the limit of an address. Memory is compared
between floods: the first two warm what is kept for use again.

KOTA_FLOOD_CONNECTIONS  of a flood (10000; less where the limit of files is lower, and then said)
KOTA_FLOOD_ROUNDS       floods, three or more (4)
"""
import multiprocessing
import os
import socket
import struct
import tempfile
import time

from table import IS_SHORT, fds_of, finish, raise_own_fds, row, setting

from daemon import Daemon, parse_answers, receive
from ground import Client, Edit, floats, hills, put_ground
from tap import HANG_S, Failure, check, equal, rng

CONNECTIONS = setting("KOTA_FLOOD_CONNECTIONS", 10000)
ROUNDS = setting("KOTA_FLOOD_ROUNDS", 4)
SPARE_FDS = 300
LITTLE_FDS = 600
BASE = "/v1/locales/land"
GET = f"GET {BASE}/height?x=1&y=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode()
BODY = b'{"points":[[1,1]]}'
POST = (f"POST {BASE}/height HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(BODY)}\r\n\r\n").encode()
# What a peer has said when the flood stands: idle, answered, half a head, half a body.
SAID = (b"", GET, GET[:30], POST + BODY[:5])


def flood(port, count, orders):
    """The peers' process: connects them, tells how many, and ends them as it is told."""
    raise_own_fds()
    peers = []
    try:
        for i in range(count):
            s = socket.socket()
            s.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
            s.bind((f"127.0.0.{2 + i % 10}", 0))
            s.settimeout(60)
            s.connect(("127.0.0.1", port))
            s.sendall(SAID[i % len(SAID)])
            peers.append(s)
        orders.send(len(peers))
    except OSError as error:
        orders.send(f"{len(peers)} peers, then {error}")
    orders.recv()
    for i, s in enumerate(peers):  # a third each: half-closed, reset, closed
        try:
            if i % 3 == 0:
                s.shutdown(socket.SHUT_WR)
            elif i % 3 == 1:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
            else:
                s.close()
        except OSError:
            pass
    orders.send("ended")
    orders.recv()


class Flood:
    """The process of flood(), in `with`."""

    def __init__(self, port, count):
        fork = multiprocessing.get_context("fork")
        self.pipe, other = fork.Pipe()
        self.process = fork.Process(target=flood, args=(port, count, other))
        self.process.start()

    def told(self, seconds=120):
        check(self.pipe.poll(seconds), f"the peers say nothing for {seconds} s")
        return self.pipe.recv()

    def end_peers(self):
        self.pipe.send("end")
        equal(self.told(), "ended", "the peers")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.pipe.send("leave")
        except OSError:
            pass  # it has ended by itself
        self.process.join(20)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def wait_for(value, wanted, seconds=300):
    deadline = time.monotonic() + seconds
    while (now := value()) > wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    return now


def wait_for_all(daemon, files):
    """Until the daemon has accepted so many that it has this many files open."""
    deadline = time.monotonic() + HANG_S
    while fds_of(daemon) < files:
        check(time.monotonic() < deadline, f"{fds_of(daemon)} files are open and not {files}")
        time.sleep(0.05)


def is_answered(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            s.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            return [a.status for a in parse_answers(receive(s))] == [200]
    except (OSError, Failure):
        return False


def turned_away(port, address):
    """The status that one connection too many gets."""
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_S, source_address=(address, 0)) as s:
        answers = parse_answers(receive(s))
        check(len(answers) == 1 and "retry-after" in answers[0].headers, f"{answers}")
        return answers[0].status


def start(*args, **named):
    daemon = Daemon("--loops", "2", *args, **named)
    daemon.ok("PUT", BASE, {}, status=201)
    put_ground(daemon, hills(rng("flood"), 64, 64))
    return daemon


def to_the_limit():
    most = raise_own_fds()
    count = min(CONNECTIONS, most - SPARE_FDS)
    # one connection is this program's own; half a request may stay half while the others come
    with start("--max-connections", str(count + 1), "--header-ms", "600000", "--body-ms", "600000",
               "--idle-ms", "600000") as daemon, Client(daemon.port, timeout=300) as client:
        check(client.get("/livez").status == 200, "livez")
        daemon.connection.close()
        daemon.connection = None
        fds = wait_for(lambda: fds_of(daemon), 0, 2)
        memory, away, refused, left = [], [], 0, 0
        for _ in range(ROUNDS):
            with Flood(daemon.port, count) as peers:
                made = peers.told()
                check(made == count, f"the flood: {made} of {count}")
                wait_for_all(daemon, fds + count)
                away.append(turned_away(daemon.port, "127.0.0.99"))
                check(client.get(BASE + "/height?x=1&y=1").status == 200, "who was there before")
                peers.end_peers()
                left = max(left, wait_for(lambda: fds_of(daemon), fds) - fds)
                refused += not is_answered(daemon.port)
            memory.append(daemon.memory_kib())
    amount = f"{ROUNDS} times {count} connections"
    row("flood to the limit", amount, "one more is 503 with Retry-After; others go on",
        f"statuses {sorted(set(away))}", set(away) == {503})
    row("half-closed, reset and closed peers", amount, "no file left open; accepts again",
        f"{left} left, {refused} refused afterwards", left == 0 and refused == 0)
    if IS_SHORT or ROUNDS < 3:
        return
    growth = (memory[-1] - memory[1]) / memory[1]
    row("memory between floods", amount, "grows less than 5 % after the second",
        f"{' '.join(f'{kib / 1024:.1f}' for kib in memory)} MiB ({growth:+.1%})",
        growth < 0.05)


def cpu_s(daemon):
    with open(f"/proc/{daemon.process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def without_files():
    """The daemon may open fewer files than there are peers."""
    count = min(CONNECTIONS, 4 * LITTLE_FDS)
    with tempfile.TemporaryDirectory(prefix="kota-torture-") as folder, \
            start("--data", os.path.join(folder, "data"), files=LITTLE_FDS) as daemon, \
            Client(daemon.port) as client:
        limit = daemon.ok("GET", "/v1/limits")["connections_max"]
        check(limit < LITTLE_FDS, f"{limit} connections with {LITTLE_FDS} files")
        equal(client.get("/livez").status, 200, "livez")
        fds, statuses, most, refused, spent, left = fds_of(daemon), [], 0, 0, 0.0, 0
        edit = Edit("set", (1, 1, 1, 1), floats([7]))
        for _ in range(ROUNDS):
            with Flood(daemon.port, count) as peers:
                peers.told()
                before = cpu_s(daemon)
                time.sleep(1)
                spent = max(spent, cpu_s(daemon) - before)
                most = max(most, fds_of(daemon))
                statuses.append(client.get(BASE + "/height?x=1&y=1").status)
                statuses.append(client.edit(edit).status)
                peers.end_peers()
                left = max(left, wait_for(lambda: fds_of(daemon), fds) - fds)
                refused += not is_answered(daemon.port)
        equal(client.get(BASE + "/height?x=1&y=1").json["height"], 7, "the edit")
    row("file descriptors exhausted", f"{ROUNDS} times {count} peers, {LITTLE_FDS} files",
        "who is connected reads and edits; accepts again",
        f"{limit} connections taken, {most} files open, statuses {sorted(set(statuses))}, "
        f"{left} left, {refused} refused afterwards",
        set(statuses) == {200} and left <= 0 and refused == 0 and most >= LITTLE_FDS / 2)
    if IS_SHORT:
        return
    row("file descriptors exhausted", "one second of it", "the loops do not spin",
        f"{spent:.2f} s of processor", spent < 0.5)


def main():
    to_the_limit()
    without_files()


if __name__ == "__main__":
    main()
    finish()
