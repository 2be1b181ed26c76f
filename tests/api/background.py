"""Programs of others that a test starts: on a free port, in a folder of their own, ended by pid."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from tap import HANG_S, Failure, Skip


def program(name):
    """Its path, also below sbin; skips the test where it is not installed."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Skip(f"no {name} (sh deploy/install-deps.sh ops)")
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Background:
    """A program that runs until the end of `with`; its folder and its log go with it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="kota-test-")
        self.log_path = os.path.join(self.folder, "log")
        self.process = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def start(self, *command):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=self.folder)

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def wait(self, until, what):
        """Asks until() again and again; OSError counts as not yet."""
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Failure(f"it ended with {self.process.returncode}: {self.log()[-2000:]}")
            try:
                got = until()
            except OSError:
                got = None
            if got:
                return got
            time.sleep(0.05)
        raise Failure(f"{what}: not within {HANG_S} s: {self.log()[-2000:]}")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=HANG_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
