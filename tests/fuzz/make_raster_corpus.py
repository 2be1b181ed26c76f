#!/usr/bin/env python3
"""Writes the seed corpora of the raster fuzzers: tests/fuzz/corpus/{png,hgt,asc,f32,tiff}/.

Small files of each kind that a decoder tells apart, good and bad, made from nothing; the same on
every run. The first byte of each (for f32 the first three) is what fuzz_raster.h says. Crashers
found later stand beside them under names of their own and are left alone.
"""
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))
from tiffs import ASCII, DOUBLE, LONG, SHORT, keys, placed, tags_of, text, tiff  # noqa: E402

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
         (0, 1, 1, 2)]


def chunk(name, content):
    body = name + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def header(cols, rows, bits, color=0, interlaced=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", cols, rows, bits, color, 0, 0, interlaced))


def pixels(cols, rows, bits, interlaced):
    out = b""
    for c0, r0, dc, dr in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        for row in range(r0, rows, dr):
            line = b"".join(struct.pack(">H" if bits == 16 else ">B",
                                        (column * 37 + row * 101) % (1 << bits))
                            for column in range(c0, cols, dc))
            out += b"\0" + line if line else b""
    return out


def png(cols, rows, bits, interlaced=0, extra=b"", tail=b"", level=9, split=0):
    data = zlib.compress(pixels(cols, rows, bits, interlaced), level)
    parts = [data[:split], data[split:]] if split else [data]
    return (SIGNATURE + header(cols, rows, bits, 0, interlaced) + extra
            + b"".join(chunk(b"IDAT", part) for part in parts) + chunk(b"IEND", b"") + tail)


def png_files():
    good = png(5, 4, 16)
    yield "grey16", b"\0" + good
    yield "grey8_flipped", b"\1" + png(6, 3, 8)
    yield "grey16_nodata_scaled", b"\6" + png(4, 4, 16)
    yield "interlaced8", b"\0" + png(9, 5, 8, 1)
    yield "interlaced16_stored", b"\0" + png(2, 3, 16, 1, level=0)
    yield "transparent_grey", b"\0" + png(4, 3, 16, extra=chunk(b"tRNS", b"\0\x25"))
    yield "split_idat", b"\0" + png(8, 8, 16, split=7)
    yield "over_limit", b"\x08" + png(9, 9, 8)
    yield "text_and_profile", b"\0" + png(3, 3, 8, extra=chunk(b"tEXt", b"a\0b")
                                          + chunk(b"iCCP", b"x\0\0" + zlib.compress(b"p" * 200))
                                          + chunk(b"gAMA", b"\0\0\xb1\x8f"))
    yield "truncated", b"\0" + good[:-20]
    yield "trailing", b"\0" + good + b"more"
    yield "too_much_data", b"\0" + (SIGNATURE + header(2, 2, 8)
                                    + chunk(b"IDAT", zlib.compress(b"\0" * 5000))
                                    + chunk(b"IEND", b""))
    yield "colour", b"\0" + SIGNATURE + header(4, 4, 8, 2)
    yield "huge", b"\0" + SIGNATURE + header(60000, 60000, 16)
    yield "bad_filter", b"\0" + (SIGNATURE + header(2, 2, 8)
                                 + chunk(b"IDAT", zlib.compress(b"\x07ab\x05cd"))
                                 + chunk(b"IEND", b""))


def hgt_files():
    yield "side2", b"\0" + struct.pack(">4h", 1, -2, 300, -32768)
    yield "side3_flipped_nodata", b"\3" + struct.pack(">9h", 0, 1, 2, 3, 4, 5, 32767, -32767, -1)
    yield "side3_scaled_infinite", b"\4" + struct.pack(">9h", *range(9000, 18000, 1000))
    yield "side9_over_limit", b"\x08" + bytes(162)
    yield "odd", b"\0" + bytes(19)
    yield "not_square", b"\0" + bytes(20)


def asc_files():
    corner = b"ncols 2\nnrows 2\nxllcorner 1\nyllcorner -2.5\ncellsize 10\n"
    yield "corner", b"\0" + corner + b"NODATA_value -9999\n1 -9999\n2.5 1e2\n"
    yield "center_dx_dy", (b"\1NCOLS 3\r\nNROWS 2\r\nXLLCENTER 0\r\nYLLCENTER 0\r\nDX 1\r\nDY 2\r\n"
                           b"1 2 3\r\n4 5 nan\r\n")
    yield "one_line", b"\2ncols 2 nrows 2 cellsize .5 nodata nan 1 -nan +3 4"
    yield "long_numbers", b"\0" + corner + b"0.1234567890123456789012345 1e-30 -9e30 123456789e-7"
    yield "infinite", b"\0" + corner + b"1 2 3 1e999"
    yield "too_few", b"\0" + corner + b"1 2 3"
    yield "too_many", b"\0" + corner + b"1 2 3 4 5"
    yield "comma", b"\0" + corner + b"1,5 2 3 4"
    yield "huge", b"\0ncols 60000 nrows 60000 cellsize 1 0"
    yield "twice", b"\0" + corner + b"ncols 2\n1 2 3 4"
    yield "mark", b"\0\xef\xbb\xbf" + corner + b"1 2 3 4"


def f32_files():
    nan, inf = float("nan"), float("inf")
    yield "plain", b"\0\2\2" + struct.pack("<4f", 1.5, -2, nan, 3e38)
    yield "flipped_nodata", b"\3\3\2" + struct.pack("<6f", 1, 2, 3, 1, 5, 6)
    yield "infinite", b"\0\2\2" + struct.pack("<4f", 1, 2, 3, inf)
    yield "scaled_infinite", b"\4\2\2" + struct.pack("<4f", 1, 2, 3, 1e10)
    yield "short", b"\0\2\3" + bytes(20)
    yield "over_limit", b"\x08\x09\x09" + bytes(324)
    yield "thin", b"\0\1\2" + bytes(8)


def numbers(form, count):
    return struct.pack(f"<{count}{form}", *((i * 37) % 100 for i in range(count)))


def tiff_files():
    utm = keys((1024, 1), (1025, 1), (3072, 32632), (3076, 9001), (4099, 9002))
    good = tiff(tags_of(5, 4, **placed(), t34735=utm, t42113=text("37")), numbers("f", 20))
    yield "float_utm", b"\0" + good
    yield "scaled", b"\x24" + good
    yield "placed", b"\x10" + good
    yield "flipped", b"\1" + good
    yield "truncated", b"\0" + good[:-9]
    yield "over_limit", b"\x08" + tiff(tags_of(9, 9), numbers("f", 81))
    for bits, kind, form in ((8, 1, "B"), (8, 2, "b"), (16, 1, "H"), (16, 2, "h"), (32, 1, "I"),
                             (32, 2, "i"), (64, 1, "Q"), (64, 2, "q"), (64, 3, "d")):
        yield f"kind{kind}_{bits}", b"\2" + tiff(tags_of(3, 4, bits, kind), numbers(form, 12))
    yield "bare", b"\0" + tiff(tags_of(3, 3), numbers("f", 9))
    yield "big", b"\0" + tiff(tags_of(3, 3), numbers("f", 9), big=True)
    yield "big_endian", b"\0" + tiff(tags_of(3, 3), numbers("f", 9), order=">")
    tiled = {"t278": None, "t322": (LONG, [16]), "t323": (LONG, [16])}
    yield "tiles", b"\0" + tiff(tags_of(20, 17, **tiled), [numbers("f", 256)] * 4)
    yield "tiles_deflate", b"\0" + tiff(tags_of(20, 17, 16, 2, **tiled, t259=(SHORT, [8]),
                                               t317=(SHORT, [2])), [zlib.compress(numbers("h", 256))] * 4)
    yield "sparse", b"\0" + tiff(tags_of(20, 17, **tiled, t324=(LONG, [0] * 4), t325=(LONG, [0] * 4),
                                        t42113=text("-1")), b"")
    yield "packbits", b"\0" + tiff(tags_of(4, 2, 8, 1, t259=(SHORT, [32773])), b"\x03abcd\xfd\x07")
    yield "metadata", b"\0" + tiff(tags_of(2, 2, t42112=text(
        '<GDALMetadata><Item name="SCALE" sample="0" role="scale">0.5</Item><Item name="OFFSET" '
        'sample="0" role="offset">-3</Item><Item role="unittype">ft</Item></GDALMetadata>')),
        numbers("f", 4))
    yield "metadata_bad", b"\0" + tiff(tags_of(2, 2, t42112=text('role="scale">x<')), numbers("f", 4))
    yield "unit_unknown", b"\0" + tiff(tags_of(2, 2, t42112=text('role="unittype">rods<')),
                                       numbers("f", 4))
    yield "degrees", b"\0" + tiff(tags_of(3, 3, **placed(0.01, (0, 0, 0, 11, 47, 0)),
                                         t34735=keys((1024, 2), (2048, 4326), (2054, 9102))),
                                 numbers("f", 9))
    yield "ellipsoid", b"\0" + tiff(tags_of(
        3, 3, **placed(0.01, (0, 0, 0, 11, 47, 0)), t34736=(DOUBLE, [6378137, 298.257]),
        t34735=(SHORT, [1, 1, 0, 3, 1024, 0, 1, 2, 2057, 34736, 1, 0, 2059, 34736, 1, 1])), numbers("f", 9))
    yield "orthographic", b"\0" + tiff(tags_of(
        3, 3, **placed(), t34736=(DOUBLE, [47.5, 11.25]),
        t34735=(SHORT, [1, 1, 0, 5, 1024, 0, 1, 1, 2048, 0, 1, 4326, 3072, 0, 1, 32767, 3075, 0, 1, 21,
                        3089, 34736, 1, 0])), numbers("f", 9))
    matrix = [10, 0, 0, 1000, 0, -10, 0, 2000] + [0] * 7 + [1]
    yield "matrix", b"\0" + tiff(tags_of(2, 2, t34264=(DOUBLE, matrix)), numbers("f", 4))
    matrix[1] = 4
    yield "turned", b"\0" + tiff(tags_of(2, 2, t34264=(DOUBLE, matrix)), numbers("f", 4))
    matrix[:2] = -10, 0
    yield "west", b"\0" + tiff(tags_of(2, 2, t34264=(DOUBLE, matrix)), numbers("f", 4))
    yield "unit", b"\0" + tiff(tags_of(2, 2, t34735=keys((1024, 1), (3076, 9999))), numbers("f", 4))
    yield "vertical", b"\0" + tiff(tags_of(2, 2, t34735=keys((1024, 1), (4099, 9102))), numbers("f", 4))
    yield "mask", b"\0" + tiff(tags_of(2, 2, t254=(LONG, [4])), numbers("f", 4))
    yield "colour", b"\0" + tiff(tags_of(2, 2, t262=(SHORT, [2])), numbers("f", 4))
    yield "three", b"\0" + tiff(tags_of(2, 2, t277=(SHORT, [3]), t258=(SHORT, [32] * 3),
                                       t339=(SHORT, [3] * 3)), numbers("f", 12))
    yield "bits12", b"\0" + tiff(tags_of(2, 2, 12, 1), bytes(6))
    yield "nodata_words", b"\0" + tiff(tags_of(2, 2, t42113=text("no")), numbers("f", 4))
    yield "nodata_nan", b"\0" + tiff(tags_of(2, 2, t42113=text("nan")), numbers("f", 4))
    yield "large_tile", b"\0" + tiff(tags_of(2, 2, t278=None, t322=(LONG, [1 << 14]),
                                            t323=(LONG, [1 << 14])), b"")
    yield "codec", b"\0" + tiff(tags_of(2, 2, t259=(SHORT, [40000])), numbers("f", 4))


def main():
    for name, files in (("png", png_files), ("hgt", hgt_files), ("asc", asc_files),
                        ("f32", f32_files), ("tiff", tiff_files)):
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for stem, content in files():
            (folder / f"seed_{stem}").write_bytes(content)


if __name__ == "__main__":
    main()
