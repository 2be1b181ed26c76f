"""A frozen store: a data folder of an older kotad beside questions and the answers that it gave.

A folder VERSION, named by the schema version of its database, or VERSION.N where a later build of that
version was frozen, too, holds `data.tar.xz` (the data folder
after `kill -9`) and `answers.json.xz`: a list of entries. An entry is a question as it was sent and
what came: status, chosen headers, and the JSON, or length and SHA-256 of other bodies; or the events
of a stream. docs/store.md has the rule when a folder is added; make.py adds it.
"""
import functools
import hashlib
import json
import lzma
import marshal
import os
import struct
import tarfile

from ground import Stream
from tap import Failure, check, equal

FOLDER = os.path.dirname(os.path.abspath(__file__))
SUMS = os.path.join(FOLDER, "SHA256SUMS")
HEADERS = ("etag", "kota-revision", "content-type", "location", "idempotency-replayed", "kota-cols",
           "kota-rows", "kota-spacing", "kota-origin", "kota-offset", "kota-scale")
# Rays over polygons do not depend on the tree any more; version 4 was frozen before that, and the
# distances that it names may differ in their last bits.
ROUNDED = {"4": ("/ray", "/los", "/lit", "/pick")}
# All were frozen when angles and lengths came from libm: what is computed by them may differ in its
# last digits (a place on the Earth by nanometres, and the height there with it).
OF_LIBM = (("/profile", 1e-12), ("/v1/compat/elevation", 1e-9))
SLOPE_LOOSE = 1e-12
# Version 4 was frozen before contact and contains reported a status of their own, and before contact
# reached a step up and the world's contact was the contact of the locale that holds the point.
WITHOUT_STATUS = {"4": ("/contact", "/contains")}
# Version 4 was frozen when los named its fraction `t`, and hits of lit and pick had a `t` beside
# their distance.
WITH_T = {"4": ("/los", "/lit", "/pick")}
# Version 4 was frozen when the list of locales had their layers without being asked.
WITH_LAYERS = {"4"}
# All were frozen when the content of a tile was hashed in one chain: a client fetches it once more.
OTHER_TAGS = "/tiles/"
# memory that a layer takes now, and its tree, which may become a better one
FREE = {"memory_bytes", "bytes", "nodes", "leaves", "depth", "average_tests", "depths",
        "bytes_by_structure"}


def versions():
    """Oldest first."""
    return sorted((name for name in os.listdir(FOLDER) if name[0].isdigit()),
                  key=lambda name: [int(part) for part in name.split(".")])


def path_of(version, name):
    return os.path.join(FOLDER, version, name)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def read_sums():
    """{path below this folder: SHA-256}"""
    with open(SUMS) as file:
        return dict(reversed(line.split()) for line in file)


def unpack(version, folder):
    with tarfile.open(path_of(version, "data.tar.xz")) as archive:
        archive.extractall(folder)


@functools.lru_cache(maxsize=1)
def read_entries(version):
    with lzma.open(path_of(version, "answers.json.xz"), "rt") as file:
        return json.load(file)


def events(port, entry):
    """Those that count: with an id, after one and up to another."""
    stream = Stream(port, entry["target"], entry["after"])
    got = stream.wait(lambda got: any(int(event[0] or 0) >= entry["until"] for event in got),
                      question(entry))
    stream.close()
    return [list(event) for event in got if event[0]]


def ask(daemon, entry):
    """What this daemon answers to the question of an entry, in the form of an entry's answer."""
    if "after" in entry:
        return {"events": events(daemon.port, entry)}
    body = entry.get("body")
    answer = daemon.ask(entry["method"], entry["target"], bytes.fromhex(body) if body else None,
                        headers=entry.get("headers"), media=entry.get("media"))
    if answer.status >= 400:
        return {"status": answer.status}  # its sentence may become a better one
    got = {"status": answer.status, "json" if "json" in answer.media_type else "content": None,
           "headers": {k: v for k, v in answer.headers.items() if k in HEADERS}}
    if "json" in got:
        got["json"] = answer.json
    else:
        got["content"] = [len(answer.body), hashlib.sha256(answer.body).hexdigest()]
    return got


def same(got, want, where, loose=0.0):
    """Numbers to the bit, or within `loose` · max(1, |number|). An answer may have new members; none
    that was frozen may be missing."""
    # Most answers are equal, and marshal writes every bit of a float; its version 2 has no references.
    if marshal.dumps(got, 2) == marshal.dumps(want, 2):
        return
    if isinstance(want, dict):
        check(isinstance(got, dict), f"{where}: got {got!r}, frozen {want!r}")
        for name, value in want.items():
            check(name in got, f"{where}: member {name} is missing, frozen {value!r}")
            if name not in FREE:
                same(got[name], value, f"{where}/{name}",
                     SLOPE_LOOSE if name == "slope_deg" else loose)
    elif isinstance(want, list):
        check(isinstance(got, list), f"{where}: got {got!r}, frozen {want!r}")
        equal(len(got), len(want), f"{where}: items")
        for i, (a, b) in enumerate(zip(got, want)):
            same(a, b, f"{where}/{i}", loose)
    elif isinstance(want, (int, float)) and not isinstance(want, bool):
        check(isinstance(got, (int, float)) and not isinstance(got, bool)
              and (struct.pack("<d", got) == struct.pack("<d", want)
                   or loose and abs(got - want) <= loose * max(1, abs(want))),
              f"{where}: got {got!r}, frozen {want!r}")
    else:
        equal(got, want, f"{where}: not as frozen")


def as_asked_now(entry):
    """A question for contact of version 4, in words that mean the same now."""
    body = json.loads(bytes.fromhex(entry["body"]))
    return {**entry, "body": json.dumps({"reach_up": 0, **body}).encode().hex()}


def without_status(answer):
    return {**answer, "json": {**answer["json"], "results": [
        {name: value for name, value in item.items() if name != "status"}
        for item in answer["json"]["results"]]}}


def without_t(value, is_los):
    if isinstance(value, list):
        return [without_t(item, is_los) for item in value]
    if not isinstance(value, dict):
        return value
    return {"fraction" if name == "t" else name: without_t(item, is_los)
            for name, item in value.items() if is_los or name != "t"}


def question(entry):
    return f"{entry.get('method', 'events of')} {entry['target']}"


def compare(daemon, entries, version=None):
    """Asks every question; fails with those that are answered otherwise. version: of the folder that
    the answers are from; None: they are of the present build."""
    wrong, rounded = [], ROUNDED.get(version, ())
    for number, entry in enumerate(entries):
        if entry["target"].endswith(WITHOUT_STATUS.get(version, ())):
            if entry["target"] == "/v1/contact":
                continue
            if entry["target"].endswith("/contact"):
                entry = as_asked_now(entry)
            entry = {**entry, "answer": without_status(entry["answer"])}
        if entry["target"].endswith(WITH_T.get(version, ())) and "json" in entry["answer"]:
            is_los = entry["target"].endswith("/los")
            entry = {**entry, "answer": without_t(entry["answer"], is_los)}
        if entry["target"] == "/v1/locales" and version in WITH_LAYERS:
            entry = {**entry, "target": "/v1/locales?layers=true"}
        if version and OTHER_TAGS in entry["target"] and "headers" in entry["answer"]:
            headers = {k: v for k, v in entry["answer"]["headers"].items() if k != "etag"}
            entry = {**entry, "answer": {**entry["answer"], "headers": headers}}
        try:
            loose = 1e-12 if entry["target"].endswith(tuple(rounded)) else 0.0
            for path, more in OF_LIBM:
                loose = max(loose, more if path in entry["target"] else 0.0)
            same(ask(daemon, entry), entry["answer"], f"entry {number}, {question(entry)}", loose)
        except Failure as error:
            wrong.append(str(error)[:600])
    check(not wrong, f"{len(wrong)} of {len(entries)} answers differ:\n" + "\n".join(wrong[:12]))
