"""GeoTIFFs made by hand: classic or big, one strip or tiles, any tags; with room for lies."""
import struct

SIZES = {1: "B", 2: "B", 3: "H", 4: "I", 12: "d", 16: "Q"}
SHORT, LONG, DOUBLE, ASCII = 3, 4, 12, 2


def tags_of(cols, rows, bits=32, kind=3, **more):
    """The tags of a grid in one strip, as {number: (type, values)}."""
    tags = {256: (LONG, [cols]), 257: (LONG, [rows]), 258: (SHORT, [bits]), 259: (SHORT, [1]),
            262: (SHORT, [1]), 277: (SHORT, [1]), 278: (LONG, [rows]), 339: (SHORT, [kind])}
    tags.update({int(name[1:]): value for name, value in more.items()})
    return {tag: value for tag, value in tags.items() if value is not None}


def tiff(tags, samples, big=False, order="<"):
    """A file of one directory, whose strip or tiles are `samples`: bytes, or a list of bytes."""
    blocks = [samples] if isinstance(samples, bytes) else samples
    offset_tag, count_tag = (324, 325) if 322 in tags else (273, 279)
    tags = dict(tags)
    tags.setdefault(offset_tag, (LONG, [0] * len(blocks)))
    tags.setdefault(count_tag, (LONG, [len(block) for block in blocks]))
    head, entry, room = (16, 20, 8) if big else (8, 12, 4)
    at = head + (8 if big else 2) + entry * len(tags) + (8 if big else 4)
    values = {}
    for tag, (kind, numbers) in sorted(tags.items()):
        packed = struct.pack(f"{order}{len(numbers)}{SIZES[kind]}", *numbers)
        if len(packed) > room:
            values[tag] = at
            at += len(packed) + len(packed) % 2
    if tags[offset_tag] == (LONG, [0] * len(blocks)):
        starts = [at + sum(len(block) for block in blocks[:i]) for i in range(len(blocks))]
        tags[offset_tag] = (LONG, starts)
    out = (b"II" if order == "<" else b"MM") + struct.pack(
        order + ("HHHQ" if big else "HI"), *((43, 8, 0, head) if big else (42, head)))
    out += struct.pack(order + ("Q" if big else "H"), len(tags))
    tail = b""
    for tag, (kind, numbers) in sorted(tags.items()):
        packed = struct.pack(f"{order}{len(numbers)}{SIZES[kind]}", *numbers)
        out += struct.pack(order + ("HHQ" if big else "HHI"), tag, kind, len(numbers))
        if tag in values:
            out += struct.pack(order + ("Q" if big else "I"), values[tag])
            tail += packed + b"\0" * (len(packed) % 2)
        else:
            out += packed.ljust(room, b"\0")
    return out + struct.pack(order + ("Q" if big else "I"), 0) + tail + b"".join(blocks)


def text(words):
    return ASCII, list(words.encode() + b"\0")


def keys(*pairs):
    """The directory of GeoKeys of (key, number) pairs."""
    return SHORT, [1, 1, 0, len(pairs)] + [n for key, value in pairs for n in (key, 0, 1, value)]


def placed(step=10, tie=(0, 0, 0, 1000, 2000, 0)):
    return {"t33550": (DOUBLE, [step, step, 0]), "t33922": (DOUBLE, list(tie))}
