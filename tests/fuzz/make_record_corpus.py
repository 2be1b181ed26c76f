#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/record: small inputs, good and refused (fuzz_record.c has the form)."""
import os
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "record")
IMAGE, POLYGONS, MODEL = 0xffff, 0xfffe, 0xfffd


def blob_hash(at, length=0):
    return struct.pack("<HH", at, length) + bytes(28)


def head(kind, answer=b"", version=1):
    return struct.pack("<BBHI", version, kind, 0, len(answer)) + answer


def words(kind, note=b"deeper", is_set=0):
    return (head(kind, version=3) + struct.pack("<q", 1790000000000) + name(b"ann") +
            struct.pack("<H", len(note)) + note + struct.pack("<B", is_set))


def poses(*ids):
    return struct.pack("<QI", 9, len(ids)) + b"".join(
        name(each) + struct.pack("<8dQ", 1, 2, 3, 0, 0, 0, 0, 1, 7) for each in ids)


def manifest(title=b"Land", down=-1, of=b""):
    return struct.pack("<H", len(title)) + title + struct.pack(
        "<3d3d4dBBB2d", 0, 0, down, 1, 2, 3, 0, 0, 0, 1, 1, 0, 5 if of else 1, 59.3, 18.1) + (
        name(of) + struct.pack("<Q", 7) if of else b"")


def field(cols=3, rows=2, spacing=1):
    numbers = struct.pack("<BIIIB4d", 0, cols, rows, 8, 0, 0, 0, spacing, spacing)
    return numbers + blob_hash(0, min(cols * rows * 4, 60000))


def mesh(down=-1, polygons=blob_hash(POLYGONS)):
    return struct.pack("<BBBB3d", 1, 0, 0, 0, 0, 0, down) + polygons + blob_hash(IMAGE)


def name(text):
    return struct.pack("<B", len(text)) + text


def snapshot(what, body=b"", version=1):
    return struct.pack("<BBBB", version, 100, what, 0) + body


def layers(*each):
    return snapshot(0, manifest() + struct.pack("<I", len(each)) + b"".join(each))


def past(revision, kind=1, flags=0, codec=0, texts=(b"", b"", b"ann", b"deeper"), rect=b"", data=b""):
    return (struct.pack("<QqBBB", revision, 1790000000000, kind, flags, codec) +
            b"".join(struct.pack("<H", len(text)) + text for text in texts) + rect +
            struct.pack("<Q", len(data)) + data)


def with_history(*rows):
    parts = b"".join(rows)
    return snapshot(0, struct.pack("<QI", 4, 1) + blob_hash(24, len(parts)) + VALUE +
                    struct.pack("<I", 0), version=4), parts


POOL = struct.pack("<6f", 1, 2, 3, float("nan"), 5, 6)
VALUE = (manifest() + struct.pack("<I", 2) + name(b"ground") + field() + name(b"deck") + mesh())
FORK = (manifest(of=b"arena@7") + struct.pack("<I", 2) + name(b"ground") + field() + name(b"deck") +
        mesh())
INPUTS = {
    "manifest": (1, head(1, b"kept") + manifest()),
    "delete-locale": (2, head(2)),
    "field": (3, head(3) + field()),
    "mesh": (3, head(3) + mesh()),
    "delete-layer": (4, head(4)),
    "edit": (5, head(5) + POOL),
    "model": (6, head(6) + blob_hash(MODEL)),
    "delete-model": (7, head(7)),
    "kind": (0, head(0)),
    "locale": (8, snapshot(0, VALUE)),
    "deleted": (8, snapshot(1)),
    "models": (16, snapshot(2, struct.pack("<I", 1) + name(b"rock") + blob_hash(MODEL))),
    "edit-with-words": (5, words(5, is_set=1) + POOL),
    "pin": (32 + 1, words(9) + name(b"start") + poses(b"deck")),
    "delete-pin": (32 + 2, words(10) + name(b"start")),
    "restore": (32 + 3, words(11) + name(b"start")),
    "revert": (32 + 4, words(12) + b"\x15" + POOL[:12]),
    "fork": (32 + 5, words(13) + FORK + poses(b"deck")),
    "pins": (8, snapshot(0, struct.pack("<Q", 4) + VALUE + struct.pack("<I", 2) +
                         name(b"start") + struct.pack("<Q", 2) + VALUE + poses() +
                         name(b"later") + struct.pack("<Q", 3) + VALUE + poses(b"deck"), version=3)),
    "history": (8, *with_history(past(3, flags=1), past(4, 5, 2, 1, (b"ground", b"", b"ann", b""),
                                                        struct.pack("<4I", 0, 0, 2, 1), b"\x28\xb5\x2f\xfd"))),
    # refused
    "history-with-a-gap": (8, *with_history(past(2), past(4))),
    "history-of-no-rect": (8, *with_history(past(4, 5, codec=1, data=b"1"))),
    "history-cut-off": (8, snapshot(0, struct.pack("<QI", 4, 1000), version=4)),
    "revert-of-few-samples": (32 + 4, words(12) + b"\x3f" + POOL[:12]),
    "fork-of-nothing": (32 + 5, words(13) + VALUE + poses()),
    "note-too-long": (5, words(5, note=b"n" * 300) + POOL),
    "pins-out-of-order": (8, snapshot(0, struct.pack("<Q", 4) + VALUE + struct.pack("<I", 2) +
                                      name(b"start") + struct.pack("<Q", 3) + VALUE + poses() +
                                      name(b"later") + struct.pack("<Q", 2) + VALUE + poses(),
                                      version=3)),
    "newer-entry": (1, head(1, version=9) + manifest()),
    "newer-snapshot": (8, snapshot(1, version=9)),
    "answer-cut-off": (2, head(2)[:4] + struct.pack("<I", 1000)),
    "title-with-nul": (1, head(1) + manifest(b"a\0b")),
    "title-too-long": (1, head(1) + struct.pack("<H", 60000)),
    "gravity-of-two": (1, head(1) + manifest(down=-2)),
    "field-of-none": (3, head(3) + field(0, 2)),
    "field-without-spacing": (3, head(3) + field(spacing=0)),
    "field-of-few-tiles": (3, head(3) + field(3000, 3000)),
    "mesh-gravity-of-two": (3, head(3) + mesh(down=-2)),
    "polygons-cut-off": (3, head(3) + mesh(polygons=blob_hash(0, 4))),
    "polygons-of-noise": (3, head(3) + mesh(polygons=blob_hash(0, 24))),
    "two-of-one-name": (8, layers(name(b"deck") + mesh(), name(b"deck") + mesh())),
    "name-of-none": (8, layers(name(b"") + field())),
    "name-too-long": (8, layers(name(b"a" * 200) + field())),
    "layers-too-many": (8, snapshot(0, manifest() + struct.pack("<I", 1000))),
    "models-as-locale": (8, snapshot(2)),
    "locale-as-models": (16, snapshot(0)),
    "two-models-of-one-name": (16, snapshot(2, struct.pack("<I", 2) +
                                            2 * (name(b"rock") + blob_hash(MODEL)))),
}

os.makedirs(FOLDER, exist_ok=True)
for stem, (which, data, *more) in INPUTS.items():
    with open(os.path.join(FOLDER, stem), "wb") as file:
        file.write(struct.pack("<BH", which, len(data)) + data + POOL + b"".join(more))
