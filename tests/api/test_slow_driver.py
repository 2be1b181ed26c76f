"""The end of a daemon whose driver of the patches is still being opened."""
import os
import signal
import sys
import tempfile
import threading
import time

from daemon import BIN_DIR, F32, ROOT, SLOW, Daemon, problem
from ground import Client, check_is_good
from tap import HANG_S, Skip, check, equal, run, test

sys.path.insert(0, os.path.join(ROOT, "tests", "faults"))
from faults import LIBRARY, Orders, late

folder = tempfile.TemporaryDirectory(prefix="kota-test-")


def ask_patch(port):
    with Client(port) as client:
        return client.ask("POST", "/v1/locales/land/patches",
                          {"center": [20, 20], "size": [5, 5], "scale": "coarse", "depth": 2})


@test("SIGTERM while the driver of the patches is being opened ends at once, with 0")
def _():
    library = os.path.join(BIN_DIR, "faults", "inject.so")
    if SLOW > 1 or not os.path.exists(library):
        raise Skip(f"no {library}, or a build that it does not go with")
    place, data = (os.path.join(folder.name, name) for name in ("place", "data"))
    os.mkdir(place)
    orders = Orders(os.path.join(place, "orders"))
    orders.give(late("a driver that opens slowly", LIBRARY, 300000), 1, 1000)
    daemon = Daemon("--gpu", "auto", "--drain-ms", "200000", "--data", data,
                    env={"LD_PRELOAD": library, "KOTA_FAULTS": orders.path})
    daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    ground = b"\0" * 4 * 41 * 41
    daemon.ok("PUT", "/v1/locales/land/layers/ground?cols=41&rows=41&spacing=1,1", ground,
              media=F32, status=201)
    answers = []

    def wait_for_a_patch():
        answers.append(problem(ask_patch(daemon.port), 503))
    waiting = threading.Thread(target=wait_for_a_patch)
    waiting.start()
    until = time.monotonic() + HANG_S
    while orders.get(6) == 0 and time.monotonic() < until:
        time.sleep(0.01)
    check(orders.get(6) > 0, "no library is opened")
    start = time.monotonic()
    daemon.process.send_signal(signal.SIGTERM)
    equal(daemon.process.wait(HANG_S), 0, "exit status")
    took = time.monotonic() - start
    waiting.join(HANG_S)
    log = daemon.log_text()
    daemon.kill()
    check(took < 100, f"the end took {took:.1f} s: {log[-2000:]}")
    equal(len(answers), 1, "answers to who waited for a patch")
    check("kotad has ended" in log, log[-2000:])
    check_is_good(data)
    with Daemon("--data", data) as again:
        equal(again.ok("GET", "/v1/locales/land")["revision"], 2, "revision after it")


run(folder.cleanup, "the folder is removed")
