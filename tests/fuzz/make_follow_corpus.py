"""Writes the corpus of fuzz_follow: feeds and answers of a daemon with a field of 5 × 5 samples.

    python3 tests/fuzz/make_follow_corpus.py
"""
import json
import os
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "follow")
HELLO, EDIT, POSE, RESYNC, TICK, RANGE = range(6)
SIDE = 5


def frame(kind, revision, members=b"", layer=b"", source=b"", content=b"", flags=0):
    body = struct.pack("<4BQ", kind, flags, len(layer), len(source), revision) + members + layer + source
    body += bytes(-len(body) % 4) + content
    return struct.pack("<I", len(body)) + body


def feed(*frames):
    return piece(0, b"".join(frames))


def piece(what, data, revision=0):
    return struct.pack("<BH", what | revision << 2, len(data)) + data


def edit(revision, rect, *heights):
    members = struct.pack("<4I6d", *rect, 0, 0, -9, 9, 9, 99)
    content = struct.pack(f"<{len(heights)}f", *heights)
    return frame(EDIT, revision, members, b"ground", b"edit", content, 7 if heights else 3)


def document(revision=3, transform_seq=0, layers=None, **more):
    field = {"id": "ground", "kind": "heightfield", "role": "ground", "cols": SIDE, "rows": SIDE,
             "spacing": [1, 1], "origin": [0, 0], "bounds": {"min": [0, 0, -1], "max": [4, 4, 9]}}
    text = {"id": "land", "revision": revision, "transform_seq": transform_seq, "gravity": [0, 0, -1],
            "triangulation": "anti", "open_sky": True,
            "placement": {"translation": [0, 0, 0], "rotation": [0, 0, 0, 1]},
            "layers": layers if layers is not None else [field], **more}
    return piece(1, json.dumps(text).encode(), revision)


def samples(count, revision=3):
    return piece(1, struct.pack(f"<{count}f", *(i % 7 for i in range(count))), revision)


hello = feed(frame(HELLO, 3, struct.pack("<8s2I", b"kotafeed", 2, 0)))
whole = hello + document() + samples(SIDE * SIDE)
pose = frame(POSE, 4, struct.pack("<14d", 1, 2, 3, 45, *10 * (0,)), b"lift")
INPUTS = {
    "whole": whole,
    "edits": whole + feed(edit(4, (1, 1, 2, 1), 5.0, 6.0), frame(TICK, 4)),
    "range": whole + feed(frame(RANGE, 5, struct.pack("<2f", -5, 500), b"ground"), frame(TICK, 5)),
    "range-unknown": whole + feed(frame(RANGE, 5, struct.pack("<2f", float("nan"), 0))) + document(5),
    "large": whole + feed(edit(4, (0, 0, SIDE, SIDE)), edit(5, (0, 0, 1, 1), 3.0)) + samples(25, 4),
    "resync": whole + feed(frame(RESYNC, 9)) + document(9) + piece(1, b'{"rects":[[0,0,2,2]]}', 9) + samples(4, 9),
    "layer": whole + feed(frame(EDIT, 4, bytes(64), b"lift", b"layer"), pose) + document(4),
    "deleted": whole + feed(frame(EDIT, 4, bytes(64), b"", b"delete")),
    "cut": whole + feed(edit(4, (1, 1, 2, 1), 5.0, 6.0)[:50]) + hello + document() + samples(SIDE * SIDE),
    "gone": hello + piece(1, b"no", 63),
    "version": feed(frame(HELLO, 3, struct.pack("<8s2I", b"kotafeed", 99, 0))),
    "mesh": hello + document(layers=[{"id": "lift", "kind": "mesh", "role": "ground",
                                      "transform": {"translation": [1, 2, 3], "yaw_deg": 45}}])
    + piece(1, b"KOTAMESH" + bytes(80), 3) + piece(1, bytes(32), 3) + feed(pose),
}

os.makedirs(FOLDER, exist_ok=True)
for stem, data in INPUTS.items():
    for is_part in (False, True):
        with open(os.path.join(FOLDER, stem + ("-part" if is_part else "")), "wb") as file:
            file.write(data + (b"" if len(data) % 2 == is_part else b"\0"))
