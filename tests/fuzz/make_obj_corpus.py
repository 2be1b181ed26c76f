#!/usr/bin/env python3
"""Writes the seed corpus of the OBJ fuzzer: tests/fuzz/corpus/obj/.

Small files of each kind that the reader tells apart, good and bad; the first byte of each is what
fuzz_obj.c says. Crashers found later stand beside them under names of their own and are left alone.
"""
import pathlib

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus" / "obj"
SQUARE = b"v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"

SEEDS = {
    "plain": b"\0" + SQUARE + b"f 1 2 3 4\nf 1 2 3\n",
    "forms_up_y": b"\1" + SQUARE + b"f 1/1 2//2 3/3/3 -1\nvt 0 0\nvn 0 0 1\nf -4 -3 -2\n",
    "scaled_infinite": b"\2v 1e9 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3",
    "over_limit": b"\4" + SQUARE + b"f 1 2 3 4\n" * 5,
    "continued": b"\0\xef\xbb\xbf# c \\\r\nv 0 \\\n0 \\\r\n0 1\rv 1 0 0 .5 .5 .5\nv 1 1 0\n"
                 b"f 1 \\\n2 3 # f",
    "statements": b"\0mtllib a\no b\ng c d\ns 1\n" + SQUARE + b"usemtl x\nl 1 2\np 1\nf 1 2 3\n",
    "forward": b"\0f 1 2 3\n" + SQUARE,
    "index_zero": b"\0" + SQUARE + b"f 0 1 2\n",
    "index_wild": b"\0" + SQUARE + b"f 1 2 4294967297\n",
    "index_back": b"\0" + SQUARE + b"f -1 -2 -5\n",
    "not_finite": b"\0v 1 nan 2\nf 1 1 1\n",
    "infinite": b"\0v 1 1e999 2\nf 1 1 1\n",
    "two_corners": b"\0" + SQUARE + b"f 1 2\n",
    "cut": b"\0" + SQUARE + b"f 1 2 3/",
    "no_polygons": b"\0" + SQUARE,
    "long_number": b"\0v 0.1234567890123456789012345678901234567890 1e-400 -0\nf 1 1 1",
    "zero_byte": b"\0" + SQUARE + b"f 1 2 3\0",
}


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, content in SEEDS.items():
        (CORPUS / f"seed_{name}").write_bytes(content)


if __name__ == "__main__":
    main()
