"""PostgreSQL of a test's own: servers on loopback in a temporary folder, run by an unprivileged user.

A Server is one `postgres` process with its data; a Pair is a primary and a synchronous standby that
streams from it, in either of two places, so that one connection string with both ports always finds
the primary (target_session_attrs=read-write).

Who is root runs them as `postgres`, or else as `nobody`; postgres refuses root. A server ends with
the test: its stop() is registered with atexit, and the kernel ends it (PR_SET_PDEATHSIG) when the
test itself is killed. The kernel looks at the thread that started it, so servers are started by
whoever lives as long as they do: the main thread.

Data lies in memory (/dev/shm) where there is room: a kill of processes leaves the same behind there as
on a disk, and what a disk loses in a power cut is PostgreSQL's to prove. Who measures wants a disk
(on_disk), where fsync costs what it costs.

As a program it runs another one beside a server: `postgres.py COMMAND…`, with the connection string in
KOTA_TEST_CONNINFO; without PostgreSQL it prints a TAP line that skips.
"""
import atexit
import contextlib
import ctypes
import glob
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from daemon import SLOW  # noqa: E402
from tap import HANG_S, Failure, Skip, check  # noqa: E402

LEAST = 15
DATABASE = "kota"
PR_SET_PDEATHSIG, IPC_RMID = 1, 0
SETTINGS = {
    "listen_addresses": "'127.0.0.1'", "max_connections": "60", "shared_buffers": "'32MB'",
    "dynamic_shared_memory_type": "mmap",  # below the data, so that a kill leaves nothing in /dev/shm
    "wal_level": "replica", "max_wal_senders": "8", "max_replication_slots": "8",
    "wal_keep_size": "'256MB'", "max_wal_size": "'256MB'", "hot_standby": "on",
    "wal_receiver_status_interval": "1",
    "wal_retrieve_retry_interval": "'100ms'", "autovacuum_naptime": "'10s'", "wal_log_hints": "on",
    "log_line_prefix": "'%m [%p] %q%a '", "logging_collector": "off",
}
INITDB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support", "initdb.sh")
_libc = ctypes.CDLL(None, use_errno=True)
_servers = []


def stop_all():
    for server in list(_servers):
        with contextlib.suppress(OSError):
            server.remove()


atexit.register(stop_all)


def programs():
    """The folder of initdb and postgres: $KOTA_PG_BIN, or the newest; skips the test without one."""
    found = [(int(match.group(1)), path) for path in glob.glob("/usr/lib/postgresql/*/bin")
             if (match := re.search(r"/(\d+)/bin$", path))]
    path = os.environ.get("KOTA_PG_BIN") or (max(found)[1] if found else os.path.dirname(
        os.path.realpath(shutil.which("postgres") or "")))
    postgres = os.path.join(path, "postgres")
    said = os.path.exists(postgres) and os.path.exists(os.path.join(path, "initdb")) and \
        re.search(r"\) (\d+)", subprocess.run([postgres, "--version"], capture_output=True, text=True,
                                              check=True).stdout)
    if not said or int(said.group(1)) < LEAST:
        raise Skip(f"PostgreSQL {LEAST} or newer is not installed (sh deploy/install-deps.sh test)")
    return path


def account():
    """Whom servers run as: nobody else where that is this user, {} where it already is one."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise Skip("root may not run PostgreSQL, and there is no user postgres or nobody")


def end_with_parent():
    """In the child: an immediate stop when the thread that started it is gone."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)


def steady_port():
    """A port that stays free while its server is stopped: below those that bind() to port 0 takes."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        low = int(file.read().split()[0])
    for _ in range(1000):
        port = random.SystemRandom().randrange(min(10000, low // 2), low)
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(("127.0.0.1", port))
            return port
    raise Failure(f"no free port below {low}")


def place(on_disk):
    """Where data lies: in memory if there is a gigabyte."""
    if not on_disk and os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 1 << 30:
        return "/dev/shm"
    return "/tmp"  # a socket's path has 107 characters at most


def children_of(pid):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", encoding="ascii",
                                                    errors="replace") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry))
    return found


class Server:
    """One PostgreSQL. Made empty, with the database `kota`; or a copy of another (`standby_of`)."""

    def __init__(self, name="one", standby_of=None, port=None, settings=None, on_disk=False):
        self.bin, self.account = programs(), account()
        self.name, self.process = name, None
        self.port = port or steady_port()
        self.folder = tempfile.mkdtemp(prefix="kota-pg-", dir=place(on_disk))
        os.chmod(self.folder, 0o755)  # its socket is for whoever runs the test
        self.data = os.path.join(self.folder, "data")
        self.log_path = os.path.join(self.folder, "log")
        if self.account:
            os.chown(self.folder, self.account["user"], self.account["group"])
        _servers.append(self)
        try:
            if standby_of:
                self.copy(standby_of)
            else:
                self.create()
            self.set(**SETTINGS, **(settings or {}), port=str(self.port), cluster_name=f"'{name}'",
                     unix_socket_directories=f"'{self.folder}'")
            self.start()
            if not standby_of:
                self.sql(f"CREATE DATABASE {DATABASE}", database="postgres")
        except BaseException:
            self.remove()
            raise

    # ---- processes ------------------------------------------------------------------------------

    def run(self, program, *args, timeout=HANG_S, stdin=subprocess.DEVNULL):
        done = subprocess.run([os.path.join(self.bin, program), *args], **self.account,
                              stdin=stdin, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, timeout=timeout * SLOW, check=False,
                              env=self.environment(), cwd=self.folder)
        check(done.returncode == 0, f"{program} {' '.join(args)}: {done.stdout[-3000:]}")
        return done.stdout

    def environment(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        return {**kept, "LC_ALL": "C.UTF-8", "HOME": self.folder, "PGCONNECT_TIMEOUT": "10"}

    def create(self):
        with open(INITDB, "rb") as script:
            self.run("/bin/sh", "-s", self.bin, self.data, stdin=script)
        with open(os.path.join(self.data, "pg_hba.conf"), "a", encoding="ascii") as file:
            file.write("host replication all 127.0.0.1/32 trust\n")

    def copy(self, source):
        self.run("pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast", "--no-sync",
                 "-d", f"host=127.0.0.1 port={source.port} user=kota application_name={self.name}")

    def set(self, **settings):
        """Lines of postgresql.conf; the last of a name counts. In force after a (re)start."""
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def start(self, wait=True):
        check(not self.is_alive(), f"PostgreSQL {self.name} runs already")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(self.bin, "postgres"), "-D", self.data], **self.account,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                env=self.environment(), preexec_fn=end_with_parent)
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self):
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:
            if not self.is_alive():
                raise Failure(f"PostgreSQL {self.name} ended: {self.log()[-3000:]}")
            asked = subprocess.run([os.path.join(self.bin, "pg_isready"), "-q", "-d",
                                    self.conninfo("postgres")], env=self.environment(), check=False)
            if asked.returncode == 0:
                return
            time.sleep(0.05)
        raise Failure(f"PostgreSQL {self.name} is not ready: {self.log()[-3000:]}")

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        if not os.path.exists(self.log_path):
            return ""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self, how="fast"):
        """fast: sessions are ended, a checkpoint is written; immediate: as a crash of postgres."""
        if self.is_alive():
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[how])
            try:
                self.process.wait(HANG_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self):
        """As the machine would go: the postmaster and each of its children by SIGKILL."""
        if not self.is_alive():
            return
        self.process.send_signal(signal.SIGSTOP)  # makes no more children
        family = children_of(self.process.pid)
        self.process.kill()
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        deadline = time.monotonic() + HANG_S
        while any(os.path.exists(f"/proc/{pid}") for pid in family) and time.monotonic() < deadline:
            time.sleep(0.005)
        self.free_interlock()

    def pause(self, number=signal.SIGSTOP):
        """The whole server stands still; SIGCONT lets it go on."""
        for pid in [self.process.pid, *children_of(self.process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def free_interlock(self):
        """A killed postmaster leaves 56 bytes of System V memory, which its next start would free."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            with open(os.path.join(self.data, "postmaster.pid"), encoding="ascii") as file:
                number = int(file.read().splitlines()[6].split()[1])
            _libc.shmctl(number, IPC_RMID, None)

    def remove(self):
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)
        if self in _servers:
            _servers.remove(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    # ---- questions ------------------------------------------------------------------------------

    def conninfo(self, database=DATABASE):
        return f"host=127.0.0.1 port={self.port} dbname={database} user=kota"

    def sql(self, text, database=DATABASE, timeout=HANG_S):
        """Runs it by psql; the rows as lists of text."""
        done = subprocess.run([os.path.join(self.bin, "psql"), "-X", "-q", "-A", "-t", "-F", "\t", "-v",
                               "ON_ERROR_STOP=1", "-d", self.conninfo(database), "-c", text],
                              capture_output=True, text=True, env=self.environment(), check=False,
                              timeout=timeout * SLOW)
        check(done.returncode == 0, f"{text}: {done.stderr[-2000:]}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def value(self, text, **named):
        return self.sql(text, **named)[0][0]

    def reload(self, **settings):
        self.set(**settings)
        self.process.send_signal(signal.SIGHUP)


class Pair:
    """A primary and its synchronous standby. After a promotion the former primary is made anew."""

    def __init__(self, on_disk=False):
        self.on_disk = on_disk
        self.primary = Server("east", on_disk=on_disk)
        self.ports = [self.primary.port, steady_port()]
        self.standby = None
        try:
            self.add_standby()
        except BaseException:
            self.remove()
            raise

    def conninfo(self):
        ports = ",".join(str(port) for port in self.ports)
        return (f"host=127.0.0.1,127.0.0.1 port={ports} dbname={DATABASE} user=kota "
                f"target_session_attrs=read-write connect_timeout=2")

    def add_standby(self):
        """Copied from the primary, which from then on acknowledges nothing that it has not, too."""
        port = next(port for port in self.ports if port != self.primary.port)
        name = "west" if self.primary.name == "east" else "east"
        self.standby = Server(name, standby_of=self.primary, port=port, on_disk=self.on_disk,
                              settings={"synchronous_standby_names": "''"})
        self.primary.reload(synchronous_standby_names=f"'{name}'")
        self.wait_for_sync()

    def wait_for_sync(self):
        deadline = time.monotonic() + HANG_S
        states = None
        while time.monotonic() < deadline:
            states = self.primary.sql("SELECT application_name, state, sync_state "
                                      "FROM pg_stat_replication", database="postgres")
            if [self.standby.name, "streaming", "sync"] in states:
                return
            time.sleep(0.05)
        raise Failure(f"no synchronous standby: {states}; {self.standby.log()[-2000:]}")

    def promote(self):
        """The standby becomes the primary, alone for now: it waits for nobody. Seconds it took."""
        check(not self.primary.is_alive(), "the old primary is alive: it must be fenced off first")
        start = time.monotonic()
        self.standby.sql("SELECT pg_promote(true, 60)", database="postgres")
        took = time.monotonic() - start
        self.primary.remove()
        self.primary, self.standby = self.standby, None
        return took

    def remove(self):
        for server in (self.standby, self.primary):
            if server:
                server.remove()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        with Server() as server:
            sys.exit(subprocess.run(sys.argv[1:], check=False, env={
                **os.environ, "KOTA_TEST_CONNINFO": server.conninfo()}).returncode)
    except Skip as reason:
        print(f"1..0 # SKIP {reason}")


if __name__ == "__main__":
    main()
