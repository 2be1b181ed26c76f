"""Writes tests/fuzz/corpus/store: changes of single values, with and without a fresh checksum."""
import os
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "store")
COLUMNS = (2, 14, 12, 7, 14, 4, 4, 4)
SEALED = 8
VALUES = {"null": (0, b""), "zero": (1, bytes(8)), "minus": (1, b"\xff" * 8),
          "huge": (1, struct.pack("<q", 1 << 40)), "text": (2, b"nobody"), "nan": (3, b"\xff" * 32),
          "short": (3, b"\0\0\x80")}
POSES = {"far": (1e10, 0, 0, 0), "turned": (0, 0, 0, 1e7), "fine": (-5, 5, 0.5, -270)}


def change(table, sealed, row, column, kind, value):
    return bytes([table | (SEALED if sealed else 0), row, column, kind, len(value)]) + value


def main():
    os.makedirs(FOLDER, exist_ok=True)
    made = {"nothing": b"", "unsealed": change(1, False, 0, 7, 2, b"other title"),
            "deck-without-file": change(2, True, 1, 10, 3, bytes(32)),
            "two": change(1, True, 0, 7, 2, b"x") + change(4, True, 2, 8, 3, bytes(16))}
    for name, pose in POSES.items():
        made[f"pose-{name}"] = change(7, True, 0, 2, 3, struct.pack("<4d", *pose))
    for table, columns in enumerate(COLUMNS):
        made[f"deleted-{table}"] = change(table, True, 0, 255, 1, b"\1")
        # all changes of a column, in as few inputs as keep them apart: one value an input
        for name, (kind, value) in VALUES.items():
            made[f"all-{table}-{name}"] = b"".join(
                change(table, True, row, column, kind, value)
                for column in range(columns) for row in (0, 1))[:16 * (5 + len(value))]
            if name in ("huge", "nan", "text"):
                for column in range(columns):
                    made[f"one-{table}-{column}-{name}"] = change(table, True, 0, column, kind, value)
    for name, value in made.items():
        with open(os.path.join(FOLDER, name), "wb") as file:
            file.write(value)


main()
