"""Writes under hostile conditions: files that go away, other programs in the database, many at once."""
import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
import time

from daemon import F32, Daemon, check, equal, parse_answers, problem
from tap import case, run, test

EDITS = "/v1/locales/a/edits"


@contextlib.contextmanager
def grounds():
    """A data directory below a folder of its own, and a daemon with a field of 8×6 zeros."""
    folder = tempfile.mkdtemp(prefix="kota-hostile-")
    data = os.path.join(folder, "data")
    daemon = None
    try:
        daemon = Daemon("--data", data)
        daemon.ok("PUT", "/v1/locales/a", {}, status=201)
        daemon.ok("PUT", "/v1/locales/a/layers/g?cols=8&rows=6&spacing=1,1", bytes(4 * 48),
                  status=201, media=F32)
        yield data, daemon
        if daemon.is_alive():
            daemon.stop()
    finally:
        if daemon:
            daemon.kill()
        shutil.rmtree(folder, ignore_errors=True)


def edit(daemon, height, **named):
    return daemon.post(EDITS, {"rect": [0, 0, 1, 1], "heights": [height]}, **named)


def height(daemon):
    return daemon.ok("GET", "/v1/locales/a/height?x=0&y=0")["height"]


def database(data):
    return sqlite3.connect(os.path.join(data, "kota.db"), isolation_level=None, timeout=0)


# ---- files that go away -------------------------------------------------------------------------

def replaced(data):
    shutil.copytree(data, data + ".copy")
    os.rename(data, data + ".old")
    os.rename(data + ".copy", data)


GONE = (("the data directory is removed", shutil.rmtree, "kota.db"),
        ("the data directory is renamed", lambda data: os.rename(data, data + ".old"), "kota.db"),
        ("the data directory is replaced by a copy", replaced, "kota.db"),
        ("the WAL is removed", lambda data: os.unlink(os.path.join(data, "kota.db-wal")), "-wal"))


def takes_no_more(goes, word):
    with grounds() as (data, daemon):
        equal(edit(daemon, 1).status, 200, "an edit before")
        goes(data)
        for _ in range(2):
            answer = edit(daemon, 2)
            problem(answer, 503, word, "removed or replaced")
            check("retry-after" in answer.headers, "no Retry-After")
        problem(daemon.get("/readyz"), 503, word)
        equal(daemon.get("/livez").status, 200, "livez")
        equal(height(daemon), 1, "reads go on with what was acknowledged")


for what_, goes_, word_ in GONE:
    case(f"{what_}: nothing more is acknowledged, reads go on, readiness tells", takes_no_more,
         goes_, word_)


# ---- other programs in the database -------------------------------------------------------------

@test("another program's write lock: edits wait for it, then 503; nothing is lost or read-only")
def _():
    with grounds() as (data, daemon), contextlib.closing(database(data)) as other:
        other.execute("BEGIN IMMEDIATE")
        answers = []
        writer = threading.Thread(target=lambda: answers.append(edit(daemon, 1)))
        writer.start()
        time.sleep(0.2)  # it is certainly in the way; how long it waits is not looked at
        other.execute("ROLLBACK")
        writer.join()
        equal(answers[0].status, 200, "an edit that had to wait")
        other.execute("BEGIN IMMEDIATE")
        answer = edit(daemon, 2, headers={"Idempotency-Key": "locked"})
        problem(answer, 503, "another program writes")
        check("retry-after" in answer.headers, "no Retry-After")
        equal(height(daemon), 1, "what was refused is not there")
        equal(daemon.get("/readyz").status, 200, "readyz: a lock is no fault")
        other.execute("ROLLBACK")
        answer = edit(daemon, 2, headers={"Idempotency-Key": "locked"})
        equal((answer.status, answer.json["revision"]), (200, 4), "the same again")
        check("idempotency-replayed" not in answer.headers, "what was refused was kept")
        other.execute("BEGIN IMMEDIATE")
        daemon.stop()  # does not wait for the lock for ever
        other.execute("ROLLBACK")


@test("what an operator may run in the database does no harm, ANALYZE included")
def _():
    with grounds() as (data, daemon):
        for number, sql in enumerate(("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "ANALYZE",
                                      "PRAGMA optimize", "PRAGMA integrity_check")):
            with contextlib.closing(database(data)) as other:
                other.execute(sql).fetchall()
            equal(edit(daemon, number).status, 200, f"an edit after {sql}")
        daemon.stop()
        with Daemon("--data", data) as again:
            equal(height(again), 4, "height after a restart")


# ---- headers ------------------------------------------------------------------------------------

@test("two keys or conditions in one write are 400: nobody knows which was meant")
def _():
    with grounds() as (_, daemon):
        body = b'{"rect":[0,0,1,1],"heights":[7]}'
        for name, one, two in (("Idempotency-Key", "k1", "k2"), ("Idempotency-Key", "k1", "k1"),
                               ("If-Match", "*", '"1"'), ("If-None-Match", "*", "*")):
            head = (f"POST {EDITS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                    f"{name}: {one}\r\n{name.lower()}: {two}\r\n\r\n")
            problem(parse_answers(daemon.raw(head.encode() + body))[0], 400, name, "more than once",
                    pointer=name)
        equal(height(daemon), 0, "height")


run()
