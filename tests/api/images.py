"""PNG, HGT and ASC made and read by hand: the tests' own codecs, with room for lies."""
import struct
import zlib
from itertools import accumulate

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, data, crc=None):
    crc = zlib.crc32(kind + data) if crc is None else crc
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)


def header(width, height, depth=16, colour=0, interlace=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace))


def png(rows, depth=16, colour=0, channels=1, extra=b""):
    """A PNG of rows of codes (of channels codes each pixel), unfiltered."""
    pack = ">%dH" if depth == 16 else ">%dB"
    raw = b"".join(b"\0" + struct.pack(pack % len(row), *row) for row in rows)
    width = len(rows[0]) // channels
    return (SIGNATURE + header(width, len(rows), depth, colour) + extra
            + chunk(b"IDAT", zlib.compress(raw, 6)) + chunk(b"IEND", b""))


def read_png(data):
    """(width, height, channels, depth, rows of codes); all five filters, not interlaced."""
    assert data.startswith(SIGNATURE), data[:16]
    at, idat, info = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:][:4])[0], kind
        if kind == b"IHDR":
            info = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            idat += body
        at += 12 + length
    width, height, depth, colour, _, _, interlace = info
    assert interlace == 0 and depth in (8, 16)
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    step = channels * depth // 8
    stride = width * step
    raw, rows, before = zlib.decompress(idat), [], bytes(stride)
    low = int.from_bytes(b"\x7f" * stride, "big")
    assert len(raw) == height * (stride + 1)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:][:stride])
        if kind == 1:
            for first in range(step):
                line[first::step] = bytes(v & 255 for v in accumulate(line[first::step]))
        elif kind == 2:
            a, b = int.from_bytes(line, "big"), int.from_bytes(before, "big")
            line = ((a & low) + (b & low) ^ (a ^ b) & ~low).to_bytes(stride, "big")  # no carry between bytes
        elif kind == 3:
            for i in range(stride):
                left = line[i - step] if i >= step else 0
                line[i] = (line[i] + (left + before[i]) // 2) & 255
        elif kind == 4:
            for first in range(step):
                a = c = 0
                for i in range(first, stride, step):
                    b = before[i]
                    pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - c - c)
                    line[i] = a = (line[i] + (a if pa <= pb and pa <= pc else b if pb <= pc else c)) & 255
                    c = b
        before = bytes(line)
        rows.append(struct.unpack(f">{width * channels}{'H' if depth == 16 else 'B'}", before))
    return width, height, channels, depth, rows


def hgt(rows):
    """Big-endian int16, the first row first."""
    return b"".join(struct.pack(f">{len(row)}h", *row) for row in rows)


def asc(rows, cellsize=10, corner=(0, 0), nodata=None, centre=False):
    name = "center" if centre else "corner"
    lines = [f"ncols {len(rows[0])}", f"nrows {len(rows)}", f"xll{name} {corner[0]}",
             f"yll{name} {corner[1]}", f"cellsize {cellsize}"]
    if nodata is not None:
        lines.append(f"NODATA_value {nodata}")
    lines += [" ".join(str(v) for v in row) for row in rows]
    return "\n".join(lines).encode() + b"\n"
