"""Rows of the table of `make torture`, and what its parts share.

A part is a program: it attacks a daemon of its own, calls row() for each thing that must hold, and
ends with finish(). Rows go to $KOTA_TORTURE_ROWS for the table at the end, and are said at once.
"""
import contextlib
import math
import os
import resource
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from tap import Failure, Skip  # noqa: E402

# In `make test`: no row that a slow machine could fail.
IS_SHORT = bool(os.environ.get("KOTA_TORTURE_SHORT"))
_failed = []


def setting(name, default):
    """The length of a part, from the environment."""
    return type(default)(os.environ.get(name, default))


def row(attack, amount, must, measured, is_held):
    """One line of the table. is_held None: it could not be tried, and measured says why."""
    word = {True: "held", False: "FAILED", None: "skipped"}[is_held]
    print(f"  {attack}: {amount}; {must}: {measured}  {word}", flush=True)
    if is_held is False:
        _failed.append(attack)
    path = os.environ.get("KOTA_TORTURE_ROWS")
    if path:
        cells = [str(cell).replace("\t", " ").replace("\n", " ").replace("|", "/")
                 for cell in (attack, amount, must, measured, word)]
        with open(path, "a", encoding="utf-8") as file:
            file.write("\t".join(cells) + "\n")


@contextlib.contextmanager
def attempt(attack, amount, must):
    """An attack of one row: what the block raises is its row, else the block calls what it is given,
    with what was measured and whether it held."""
    try:
        yield lambda measured, is_held: row(attack, amount, must, measured, is_held)
    except Skip as reason:
        row(attack, amount, must, str(reason), None)
    except Failure as failure:
        row(attack, amount, must, str(failure)[:400], False)


def finish():
    sys.exit(1 if _failed else 0)


def percentile(values, part):
    """The smallest value that `part` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def fds_of(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def go_first():
    """This thread and what it starts run before others; "" or what the rows say of it."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        return ""
    except PermissionError:
        return "; among other programs"


def go_like_others(threads=(0,)):
    """These threads, by default the calling one."""
    for thread in threads:
        try:
            os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
        except ProcessLookupError:
            pass  # it has ended


def raise_own_fds():
    """As many files as this process and what it starts may have."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most
