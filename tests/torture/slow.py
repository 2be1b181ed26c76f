"""Slow headers, slow bodies and slow readers, a thousand at a time, by slowhttptest.

Another client asks for a height again and again over one connection. Its times are taken before
and after each attack and while it lasts; the quiet value is the p99 of both quiet times together.
The times are small: where other programs want the cores, their turns are the p99 of both. So the
daemon and the other client run before all others (SCHED_RR) where that is allowed, the attackers
like everybody; where it is not, the rows say so.

KOTA_SLOW_SECONDS      of each attack (60)
KOTA_SLOW_CONNECTIONS  (1000)
"""
import re
import shutil
import subprocess
import time

from table import (fds_of, finish, go_first, go_like_others, percentile, raise_own_fds, row,
                   setting)

from daemon import Daemon
from ground import Client, hills, put_ground
from tap import HANG_S, Failure, rng

SECONDS = setting("KOTA_SLOW_SECONDS", 60)
CONNECTIONS = setting("KOTA_SLOW_CONNECTIONS", 1000)
PAUSE_S = 0.004
BASE = "/v1/locales/land"
ATTACKS = {
    "slow headers": ("-H", "-i", "3", "-x", "24", "-t", "GET", BASE + "/height?x=1&y=1"),
    "slow body": ("-B", "-i", "5", "-s", "8192", "-x", "10", "-t", "POST",
                  "-f", "application/json", BASE + "/height"),
    "slow read": ("-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3",
                  BASE + "/tiles/0/0/0?format=f32"),
}


def ask(client, seconds, until=None):
    """Times of one request after another, in ms."""
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end and not (until and until()):
        start = time.perf_counter()
        answer = client.get(BASE + "/height?x=1.5&y=1.25")
        took.append((time.perf_counter() - start) * 1000)
        if answer.status != 200:
            raise Failure(f"the other client: {answer}")
        time.sleep(PAUSE_S)
    return took


def attack(daemon, client, flags, seconds):
    """Runs slowhttptest again whenever all its connections are closed, until the time is over."""
    took, said, most_fds, end = [], [], 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 1:
        command = ["slowhttptest", "-c", str(CONNECTIONS), "-r", str(max(50, CONNECTIONS // 3)),
                   "-l", str(round(left)), "-p", "3", *flags[:-1],
                   "-u", f"http://127.0.0.1:{daemon.port}{flags[-1]}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, stdin=subprocess.DEVNULL,
                                   preexec_fn=go_like_others)
        try:
            while process.poll() is None and time.monotonic() < end:
                took += ask(client, 1, lambda p=process: p.poll() is not None)
                most_fds = max(most_fds, fds_of(daemon))
        finally:
            process.terminate()
            said.append(re.sub(r"\x1b\[[0-9;]*m", "", process.communicate()[0]))
    return took, "".join(said), most_fds


def settled_fds(daemon, quiet):
    """The daemon's open files once the attackers' connections have had time to go."""
    deadline = time.monotonic() + HANG_S
    while (now := fds_of(daemon)) > quiet and time.monotonic() < deadline:
        time.sleep(0.2)
    return now


def main():
    if not shutil.which("slowhttptest"):
        for name in ATTACKS:
            row(name, f"{CONNECTIONS} connections", "another client's p99 at most 2 times quiet",
                "no slowhttptest: sh deploy/install-deps.sh torture", None)
        return
    raise_own_fds()
    among = go_first()
    with Daemon("--loops", "2") as daemon:
        daemon.ok("PUT", BASE, {}, status=201)
        put_ground(daemon, hills(rng("slow"), 300, 300))
        quiet_s = min(20, max(2, SECONDS / 3))
        with Client(daemon.port) as client:
            ask(client, 1)
            fds = fds_of(daemon)
            for name, flags in ATTACKS.items():
                before = ask(client, quiet_s)
                under, said, most = attack(daemon, client, flags, SECONDS)
                after_fds = settled_fds(daemon, fds)
                quiet = percentile(before + ask(client, quiet_s), 0.99)
                loud = percentile(under, 0.99)
                refused = said.count("service available:   NO")
                row(name, f"{CONNECTIONS} connections, {SECONDS} s",
                    "another client's p99 at most 2 times quiet",
                    f"{loud:.2f} ms against {quiet:.2f} ms ({loud / quiet:.2f}){among}",
                    loud <= 2 * quiet)
                row(name, f"at most {most} files open at once", "all closed, probes answered",
                    f"{after_fds - fds} left, unavailable {refused} times",
                    after_fds <= fds and refused == 0 and most > CONNECTIONS / 2)


if __name__ == "__main__":
    main()
    finish()
