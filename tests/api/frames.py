"""A reader of application/vnd.kota.feed, as proto/feed.md describes it."""
import struct

from events import Stream
from tap import check, equal

FEED = "application/vnd.kota.feed"
HELLO, EDIT, POSE, RESYNC, TICK, RANGE, PATCH = range(7)


class Frame:
    def __init__(self, body):
        """body: all after the length."""
        self.kind, self.flags, layer, source, self.revision = struct.unpack_from("<4BQ", body)
        at = {HELLO: 28, EDIT: 76, POSE: 124, RANGE: 20, PATCH: 68}.get(self.kind, 12)
        self.members = body[12:at]
        self.layer = body[at:at + layer].decode()
        self.source = body[at + layer:at + layer + source].decode()
        at += layer + source
        zeros = -at % 4
        equal(body[at:at + zeros], bytes(zeros), "zeros after the names")
        self.content = body[at + zeros:]
        self.samples = self.polygons = None
        if self.kind == EDIT:
            self.rect = struct.unpack_from("<4I", self.members) if self.flags & 1 else None
            self.bounds = struct.unpack_from("<6d", self.members, 16) if self.flags & 2 else None
            if self.flags & 4:
                self.samples = struct.unpack(f"<{self.rect[2] * self.rect[3]}f", self.content)
            elif self.flags & 8:
                self.polygons = self.content
            else:
                equal(self.content, b"", "content without a flag")
        elif self.kind == POSE:
            self.numbers = struct.unpack("<14d", self.members)
        elif self.kind == RANGE:
            self.numbers = struct.unpack("<2f", self.members)
        elif self.kind == PATCH:
            self.bounds = struct.unpack_from("<6d", self.members)
            self.state, count = struct.unpack_from("<2I", self.members, 48)
            self.bodies = struct.unpack(f"<{count}I", self.content)

    def __str__(self):
        return f"kind {self.kind} revision {self.revision} {self.layer} {self.source} flags {self.flags}"


def split(received):
    """(frames, the rest) of bytes of a stream."""
    frames, at = [], 0
    while len(received) - at >= 4:
        length = struct.unpack_from("<I", received, at)[0]
        check(length % 4 == 0 and 12 <= length <= 1 << 20, f"a frame of {length} bytes")
        if len(received) - at < 4 + length:
            break
        frames.append(Frame(received[at + 4:at + 4 + length]))
        at += 4 + length
    return frames, received[at:]


class FrameStream(Stream):
    """GET target for frames; hello is read and checked."""

    def __init__(self, port, target, headers=None, **named):
        super().__init__(port, target, {"Accept": FEED, **(headers or {})}, **named)
        self.waiting = []
        if self.status == 200:
            equal(self.headers["content-type"], FEED, "Content-Type")
            self.hello = self.frame()
            equal((self.hello.kind, self.hello.members[:8], struct.unpack_from("<2I", self.hello.members, 8)),
                  (HELLO, b"kotafeed", (2, 0)), "hello")

    def frame(self):
        while not self.waiting:
            self.waiting, self.received = split(self.received)
            if not self.waiting:
                check(self.more(), "the stream has ended")
        return self.waiting.pop(0)

    def edit(self):
        """The next frame that is no tick."""
        while (frame := self.frame()).kind == TICK:
            pass
        return frame
