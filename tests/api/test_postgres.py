"""What tests/cluster/postgres.py promises to the tests of the cluster: real servers, real faults."""
import os
import signal
import subprocess
import sys
import tempfile
import time

from daemon import ROOT, SLOW
from tap import HANG_S, Failure, check, equal, run, test

sys.path.insert(0, os.path.join(ROOT, "tests", "cluster"))
import postgres  # noqa: E402
from postgres import Pair, Server, children_of  # noqa: E402

OTHER = """
import sys
sys.path[:0] = [{0!r}, {1!r}]
from postgres import Server
server = Server()
print(server.process.pid, server.port, server.folder, flush=True)
sys.stdin.read()
"""


def is_there(pid):
    return os.path.exists(f"/proc/{pid}")


def await_end(pid, what):
    deadline = time.monotonic() + HANG_S
    while is_there(pid):
        check(time.monotonic() < deadline, f"{what}: {pid} is still there")
        time.sleep(0.02)


@test("a server runs as an unprivileged user, on loopback only, and leaves nothing behind")
def _():
    with Server() as server:
        check(int(server.value("SHOW server_version_num")) >= 150000, "an old server")
        equal(server.value("SHOW fsync"), "on", "fsync")
        equal(server.value("SHOW listen_addresses"), "127.0.0.1", "where it listens")
        uid = os.stat(f"/proc/{server.process.pid}").st_uid
        check(uid != 0, "it runs as root")
        pid, folder = server.process.pid, server.folder
    check(not is_there(pid) and not os.path.exists(folder), "it is still there")


@test("what was committed is there after SIGKILL of all of its processes, and after an immediate stop")
def _():
    with Server() as server:
        server.sql("CREATE TABLE t(n int)")
        for n, end in enumerate((server.kill, lambda: server.stop("immediate"), server.stop)):
            server.sql(f"INSERT INTO t VALUES ({n})")
            family = children_of(server.process.pid)
            check(len(family) >= 3, f"children of postgres: {family}")
            end()
            for pid in family:
                await_end(pid, "a child")
            check(not server.is_alive(), "it is alive")
            server.start()
            equal(server.value("SELECT count(*) FROM t"), str(n + 1), "rows")


@test("a server that stands still answers nothing, and goes on")
def _():
    with Server() as server:
        server.pause()
        try:
            server.sql("SELECT 1", timeout=2 / SLOW)  # before libpq gives up
            raise Failure("it answered")
        except subprocess.TimeoutExpired:
            pass
        finally:
            server.pause(signal.SIGCONT)
        equal(server.value("SELECT 1"), "1", "after SIGCONT")


@test("a commit is on the synchronous standby; killed and promoted, in turn, nothing is lost")
def _():
    with Pair() as pair:
        pair.primary.sql("CREATE TABLE t(n int)")
        for n in range(2):
            pair.primary.sql(f"INSERT INTO t VALUES ({n})")
            former = pair.primary.port
            pair.primary.kill()
            pair.promote()
            check(pair.primary.port != former, "the same server")
            equal(pair.primary.value("SELECT count(*) FROM t"), str(n + 1), "rows")
            equal(pair.primary.value("SELECT pg_is_in_recovery()"), "f", "in recovery")
            pair.add_standby()
            equal(sorted(pair.ports), sorted((pair.primary.port, pair.standby.port)), "ports")
        said = subprocess.run([os.path.join(pair.primary.bin, "psql"), "-XAtc", "SHOW port",
                               pair.conninfo()], capture_output=True, text=True, check=True)
        equal(said.stdout.strip(), str(pair.primary.port), "whom the connection string finds")


@test("without its standby the primary acknowledges nothing")
def _():
    with Pair() as pair:
        pair.primary.sql("CREATE TABLE t(n int)")
        pair.standby.pause()
        try:
            pair.primary.sql("INSERT INTO t VALUES (1)", timeout=2)
            raise Failure("it was acknowledged")
        except subprocess.TimeoutExpired:
            pass
        finally:
            pair.standby.pause(signal.SIGCONT)
        pair.primary.sql("INSERT INTO t VALUES (2)")


@test("a test that is killed takes its server along")
def _():
    text = OTHER.format(os.path.dirname(postgres.__file__), os.path.join(ROOT, "tests", "api"))
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        other = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True, cwd=folder)
        words = other.stdout.readline().split()
        pid = int(words[0])
        check(is_there(pid), "it is not there")
        other.kill()
        other.wait()
        await_end(pid, "PostgreSQL of a killed test")
        other.stdin.close()
        other.stdout.close()
        subprocess.run(["rm", "-rf", words[2]], check=True)


run(postgres.stop_all, "nothing is left running")
