#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/record: one small good input of each kind (fuzz_record.c has the form)."""
import os
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "record")
IMAGE, POLYGONS, MODEL = 0xffff, 0xfffe, 0xfffd


def blob_hash(at, length=0):
    return struct.pack("<HH", at, length) + bytes(28)


def head(kind, answer=b""):
    return struct.pack("<BBHI", 1, kind, 0, len(answer)) + answer


def manifest(title=b"Land"):
    return struct.pack("<H", len(title)) + title + struct.pack(
        "<3d3d4dBBB2d", 0, 0, -1, 1, 2, 3, 0, 0, 0, 1, 1, 0, 1, 59.3, 18.1)


def field(cols=3, rows=2):
    return struct.pack("<BIIIB4d", 0, cols, rows, 8, 0, 0, 0, 1, 1) + blob_hash(0, cols * rows * 4)


def mesh():
    return struct.pack("<BBBB3d", 1, 0, 0, 0, 0, 0, -1) + blob_hash(POLYGONS) + blob_hash(IMAGE)


def name(text):
    return struct.pack("<B", len(text)) + text


def snapshot(what, body=b""):
    return struct.pack("<BBBB", 1, 100, what, 0) + body


POOL = struct.pack("<6f", 1, 2, 3, float("nan"), 5, 6)
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
    "locale": (8, snapshot(0, manifest() + struct.pack("<I", 2) + name(b"ground") + field() +
                           name(b"deck") + mesh())),
    "deleted": (8, snapshot(1)),
    "models": (16, snapshot(2, struct.pack("<I", 1) + name(b"rock") + blob_hash(MODEL))),
}

os.makedirs(FOLDER, exist_ok=True)
for stem, (which, data) in INPUTS.items():
    with open(os.path.join(FOLDER, stem), "wb") as file:
        file.write(struct.pack("<BH", which, len(data)) + data + POOL)
