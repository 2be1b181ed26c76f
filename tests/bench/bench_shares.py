"""Fair shares: what one name of a token waits while another one floods.

The name `calm` asks for single heights and for JSON batches of 1,000, at even times. In every other
round the name `flood` keeps eight connections busy with binary batches of 200,000 rays and with
uploads of 1024 x 1024 samples, once as fast as the daemon takes them and once over a network of a
gigabit a second. The medians of the rounds' 99th percentiles are compared. Flood and measuring are
processes of the same machine, where the flood would be elsewhere. So the one that measures and the daemon's loops
are scheduled before it (SCHED_RR; without that right a wait for the kernel's tick, 4 ms, is in each figure), and the
flood sends and receives 32 KiB a system call: the kernel preempts none, and one that copies 4 MB over loopback
lasts milliseconds. Processors are kept awake in all rounds by loops of the idle priority (SCHED_IDLE): one that
sleeps takes up to milliseconds to wake, which the quiet rounds alone would have. How long the one that measures has itself waited for a core is printed, too: that is no time of
the daemon's.

    python3 tests/bench/bench_shares.py
"""
import multiprocessing
import os
import random
import socket
import statistics
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from daemon import Daemon  # noqa: E402
from rows import row_most  # noqa: E402

ROUND_SECONDS, ROUNDS, RATE, FLOODERS, SIDE = 3.0, 5, 400, 8, 1024
NETWORKS = {"": None, " over 1 Gbit/s": 125e6}  # bytes a second
ASKED = 2.0
CALL_BYTES = 32 * 1024  # of the system calls of the flood
SECTION = "Fair shares"


def request(name, method, path, media, body):
    return (f"{method} {path} HTTP/1.1\r\nHost: kota\r\nAuthorization: Bearer {name}\r\n"
            f"Content-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def read_answer(connection):
    """The status of one answer, read whole."""
    head = b""
    while b"\r\n\r\n" not in head:
        part = connection.recv(CALL_BYTES)
        if not part:
            return 0
        head += part
    head, _, body = head.partition(b"\r\n\r\n")
    length = int(next(line.split(b":")[1] for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length:")))
    while length > len(body):
        length -= len(connection.recv(min(CALL_BYTES, length - len(body))))
    return int(head.split()[1])


def go_first(daemon):
    """This process and the daemon's loops, not its workers."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        for thread, name in daemon.threads("comm").items():
            if name.startswith("loop"):
                os.sched_setscheduler(thread, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        print("bench_shares: no right to real-time scheduling; waits for a core are in the figures")


def keep_awake():
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass


def flood(port, number, stop, rate, sent):
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.nice(19)  # elsewhere it would be other machines' cores
    rays = struct.pack("<7f", 5, 5, 90, 0.7, 0.7, -0.05, 1e9) * 200000
    batch = request("flood", "POST", "/v1/locales/land/ray", "application/vnd.kota.f32", rays)
    upload = request("flood", "PUT", f"/v1/locales/other{number}/layers/g?cols={SIDE}&rows={SIDE}&spacing=1,1",
                     "application/vnd.kota.f32", b"\0" * (4 * SIDE * SIDE))
    due = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while not stop.is_set():
            ask = upload if random.random() < 0.2 else batch
            for at in range(0, len(ask), CALL_BYTES):
                connection.sendall(memoryview(ask)[at:at + CALL_BYTES])
            status = read_answer(connection)
            if status not in (200, 201, 503):
                raise SystemExit(f"bench_shares: the flood is answered by {status}")
            with sent.get_lock():
                sent.value += len(ask)
            if rate:
                due = max(due, time.perf_counter() - 0.1) + len(ask) * FLOODERS / rate
                time.sleep(max(0.0, due - time.perf_counter()))


def waited_s():
    """How long this process has waited for a core."""
    with open("/proc/self/schedstat", encoding="ascii") as file:
        return int(file.read().split()[1]) / 1e9


def measure(port, ask):
    """The 99th percentile of the times of the answers, and of the waits for a core in it, seconds."""
    times, waits, due = [], [], time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(int(ROUND_SECONDS * RATE)):
            due += 1 / RATE
            time.sleep(max(0.0, due - time.perf_counter()))
            waited, before = waited_s(), time.perf_counter()
            connection.sendall(ask)
            status = read_answer(connection)
            times.append(time.perf_counter() - before)
            waits.append(waited_s() - waited)
            if status != 200:
                raise SystemExit(f"bench_shares: status {status}")
    return tuple(sorted(values)[len(values) * 99 // 100] for values in (times, waits))


def main():
    points = ('{"points":[' + ",".join("[%d,%d]" % (i % 900, i // 2) for i in range(1000)) + "]}").encode()
    asks = {"a height": request("calm", "GET", "/v1/locales/land/height?x=7.5&y=9.5", "text/plain", b""),
            "a batch of 1,000": request("calm", "POST", "/v1/locales/land/height", "application/json",
                                        points)}
    with tempfile.TemporaryDirectory() as folder:
        tokens = os.path.join(folder, "tokens")
        with open(tokens, "w", encoding="ascii") as file:
            file.write("edit calm name=calm\nedit flood name=flood\nread reader\n")
        with Daemon("--token-file", tokens) as daemon:
            key = {"Authorization": "Bearer calm"}
            for name in ("land", *(f"other{number}" for number in range(FLOODERS))):
                daemon.put(f"/v1/locales/{name}", {}, headers=key)
            daemon.put(f"/v1/locales/land/layers/g?cols={SIDE}&rows={SIDE}&spacing=1,1",
                       struct.pack(f"<{SIDE * SIDE}f", *(random.random() for _ in range(SIDE * SIDE))),
                       media="application/vnd.kota.f32", headers=key)
            awake = [multiprocessing.Process(target=keep_awake, daemon=True) for _ in range(os.cpu_count())]
            for process in awake:
                process.start()
            go_first(daemon)
            rates = {network: [] for network in NETWORKS}
            quiet, flooded = ({(name, network): [] for name in asks for network in NETWORKS}
                              for _ in range(2))
            for network, rate in [*NETWORKS.items()] * ROUNDS:
                for name, ask in asks.items():
                    quiet[name, network].append(measure(daemon.port, ask))
                stop, sent, since = multiprocessing.Event(), multiprocessing.Value("q"), time.perf_counter()
                flooders = [multiprocessing.Process(target=flood, args=(daemon.port, number, stop, rate, sent))
                            for number in range(FLOODERS)]
                for flooder in flooders:
                    flooder.start()
                time.sleep(1)
                for name, ask in asks.items():
                    flooded[name, network].append(measure(daemon.port, ask))
                stop.set()
                for flooder in flooders:
                    flooder.join()
                rates[network].append(sent.value / 1e6 / (time.perf_counter() - since))
            for name, network in quiet:
                base, beside = (statistics.median(p99 for p99, _ in rounds[name, network])
                                for rounds in (quiet, flooded))
                waits = statistics.median(wait for _, wait in flooded[name, network])
                row_most(SECTION, f"p99 of {name} beside a flood of another name{network}", "without it",
                         beside / base, ASKED, f"{base * 1e6:.0f} us, {beside * 1e6:.0f} us; the client's own "
                         f"waits for a core {waits * 1e6:.0f} us; "
                         f"{statistics.median(rates[network]):.0f} MB/s of flood")


if __name__ == "__main__":
    main()
