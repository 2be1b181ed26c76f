"""Stores that older builds have written, as they were: tests/stores/, docs/store.md. make test opens
each twice, is killed between, and asks half of the questions each time; test-all asks every one,
of a store that is only opened and of one that is changed.
"""
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stores"))

import frozen
from daemon import KOTAD, ROOT, clean_environment
from ground import check_is_good, cut_off, stored
from sand import box
from tap import ALL, HANG_S, case, check, equal, run, test

folder = tempfile.TemporaryDirectory(prefix="kota-test-")


def copy(version, name):
    data = os.path.join(folder.name, f"{name}-{version}")
    frozen.unpack(version, data)
    return data


def newest():
    """The version that this build writes: of its scripts, the last one's number."""
    return len(os.listdir(os.path.join(ROOT, "server", "store", "schema")))


def change(daemon, locale):
    """Every kind of change that a locale takes; returns its last revision."""
    base, count = f"/v1/locales/{locale}", 0
    document = daemon.ok("GET", base)
    for layer in document["layers"]:
        name, low = layer["id"], layer["bounds"]["min"]
        if layer["kind"] == "heightfield":
            for body in ({"rect": [1, 1, 2, 2], "heights": [3, None, 4, 5]},
                         {"rect": [1, 1, 2, 2], "op": "add", "heights": [1, 1, 1, 0.5]},
                         {"brush": {"shape": "raise", "center": [low[0] + 3, low[1] + 3],
                                    "radius": 4 * max(layer["spacing"]), "amount": 1}}):
                daemon.ok("POST", f"{base}/edits", {"layer": name, **body})
                count += 1
            continue
        daemon.ok("POST", f"{base}/layers/{name}/polygons", {
            "polygons": [[low, [low[0] + 3, low[1], low[2]], [low[0], low[1] + 3, low[2] + 1]]],
            "remove": [1] if layer["polygons"] > 9 else []})
        count += 1
    daemon.ok("PUT", base, {"title": "changed", "gravity": document["gravity"],
                            "placement": document["placement"]})
    return document["revision"] + count + 1


def asked_of(entries, locales):
    """The questions, not the writes, about these locales."""
    return [entry for entry in entries if "headers" not in entry
            and entry["target"].startswith("/v1/locales/")
            and re.split("[/?]", entry["target"])[3] in locales]


def same_bits(version):
    entries = frozen.read_entries(version)
    data = copy(version, "opened")
    with stored(data) as daemon:
        frozen.compare(daemon, entries, version)
    check_is_good(data)
    daemon = stored(data)  # and again, when this build has written behind
    frozen.compare(daemon, entries, version)
    cut_off(daemon)
    check_is_good(data)


def goes_on(version):
    """Half of the locales are changed; the others stay as they were frozen."""
    entries = frozen.read_entries(version)
    data = copy(version, "changed")
    daemon = stored(data)
    if not ALL:
        # the next version's turn is the other one: each kind of question is asked in both starts
        turn = frozen.versions().index(version) % 2
        frozen.compare(daemon, entries[turn::2], version)
        entries = entries[1 - turn::2]
    names = [entry["id"] for entry in daemon.ok("GET", "/v1/locales")["locales"]]
    changed, kept = names[::2], names[1::2]
    revisions = {name: change(daemon, name) for name in changed}
    daemon.ok("PUT", "/v1/models/box", box(0.9).decode(), status=200, media="model/obj")
    expected = [dict(entry) for entry in asked_of(entries, changed)]
    check(len(expected) > 25, f"{len(expected)} questions about {changed}")
    for entry in expected:
        if "until" in entry:
            entry["until"] = revisions[entry["target"].split("/")[3]]
        entry["answer"] = frozen.ask(daemon, entry)
    for name, revision in revisions.items():
        equal(daemon.ok("GET", f"/v1/locales/{name}")["revision"], revision, name)
    model = daemon.get("/v1/models/box").body
    if ALL:
        daemon.stop()
        daemon = stored(data)
    cut_off(daemon)
    check_is_good(data)
    with stored(data) as daemon:
        frozen.compare(daemon, expected)
        frozen.compare(daemon, asked_of(entries, kept), version)
        equal(daemon.get("/v1/models/box").body, model, "the model")


@test("tests/stores is as it was frozen: SHA256SUMS, and a folder for the version of this build")
def _():
    sums = frozen.read_sums()
    files = {f"{version}/{name}" for version in frozen.versions()
             for name in os.listdir(os.path.join(frozen.FOLDER, version))}
    equal(files, set(sums), "files")
    for name, wanted in sums.items():
        equal(frozen.sha256(os.path.join(frozen.FOLDER, name)), wanted, name)
    check(str(newest()) in frozen.versions(),
          f"no store of version {newest()} is frozen: run tests/stores/make.py")


for number in frozen.versions():
    if ALL:
        case(f"a store of version {number} opens with the same bits, twice", same_bits, number)
    case(f"a store of version {number} takes changes, which last, and keeps the rest", goes_on, number)


@test("a downgrade is refused in a sentence that names both versions, and changes nothing")
def _():
    data = copy(frozen.versions()[-1], "newer")
    with stored(data):
        pass
    path = os.path.join(data, "kota.db")
    database = sqlite3.connect(path)
    version = database.execute("PRAGMA user_version").fetchone()[0]
    equal(version, newest(), "the version after a start")
    database.execute(f"PRAGMA user_version={version + 1}")
    database.close()
    with open(path, "rb") as file:
        before = file.read()
    for flags in ([], ["--check"]):
        done = subprocess.run([KOTAD, "--listen", "127.0.0.1:0", "--data", data, *flags],
                              capture_output=True, text=True, timeout=HANG_S,
                              env=clean_environment(), check=False)
        equal(done.returncode, 1, f"exit status: {done.stderr}")
        for words in (f"schema version {version + 1}", f"versions up to {version}", "newer kotad"):
            check(words in done.stderr, f"{words!r} is missing: {done.stderr}")
    with open(path, "rb") as file:
        check(file.read() == before, "the database has been changed")


run()
