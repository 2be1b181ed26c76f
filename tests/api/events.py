"""A reader of server-sent events over a socket of its own."""
import json
import socket

from daemon import connect
from tap import HANG_S, Failure, check


def block_fields(text):
    """[(field, value)…] of one block; a comment's field is ""."""
    fields = []
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        check(colon, f"a line without a colon: {line!r}")
        fields.append((name, value[1:] if value.startswith(" ") else value))
    return fields


def blocks(text):
    """The fields of each block of a text that ends with an empty line."""
    check(text.endswith("\n\n"), f"a cut block: {text[-80:]!r}")
    return [block_fields(block) for block in text[:-2].split("\n\n")]


class Event:
    def __init__(self, fields):
        self.fields = fields
        named = dict(fields)
        self.name = named.get("event")
        self.id = int(named["id"]) if "id" in named else None
        self.data = json.loads(named["data"])

    def __str__(self):
        return f"{self.name} {self.id} {self.data}"


class Stream:
    """GET target; the head is read at once, blocks as they are asked for."""

    def __init__(self, port, target, headers=None, method="GET", receive_bytes=None):
        if receive_bytes:
            self.socket = socket.socket()
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            self.socket.settimeout(HANG_S)
            self.socket.connect(("127.0.0.1", port))
        else:
            self.socket = connect(port)
        lines = [f"{method} {target} HTTP/1.1", "Host: kota",
                 *(f"{name}: {value}" for name, value in (headers or {}).items())]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.received = self.raw = b""
        self.is_chunked = False
        head = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        self.status = int(head[0].split()[1])
        self.headers = {name.strip().lower(): value.strip() for name, value in
                        (line.split(":", 1) for line in head[1:])}
        if self.headers.get("transfer-encoding") == "chunked":  # a proxy's
            self.is_chunked = True
            self.raw, self.received = self.received, b""
            self.unchunk()

    def more(self):
        """False at the end of file."""
        try:
            got = self.socket.recv(1 << 16)
        except ConnectionResetError:
            got = b""
        except TimeoutError:
            raise Failure(f"nothing came; so far {self.received[-300:]!r}") from None
        if self.is_chunked:
            self.raw += got
            return not self.unchunk() and bool(got)
        self.received += got
        return bool(got)

    def unchunk(self):
        """Takes the whole chunks out of what came; true at the last one."""
        while b"\r\n" in self.raw:
            size, _, rest = self.raw.partition(b"\r\n")
            length = int(size, 16)
            if len(rest) < length + 2:
                return False
            check(rest[length:length + 2] == b"\r\n", f"not a chunk: {self.raw[:80]!r}")
            self.received += rest[:length]
            self.raw = rest[length + 2:]
            if length == 0:
                return True
        return False

    def until(self, end):
        while end not in self.received:
            check(self.more(), f"the stream ended in the middle: {self.received[-300:]!r}")
        text, _, self.received = self.received.partition(end)
        return text

    def block(self):
        return block_fields(self.until(b"\n\n").decode())

    def event(self):
        """The next block that is an event."""
        while True:
            fields = self.block()
            if any(name == "event" for name, _ in fields):
                return Event(fields)

    def edit(self):
        """The next event that is not of a patch."""
        while (event := self.event()).name == "patch":
            pass
        return event

    def events(self, count):
        return [self.event() for _ in range(count)]

    def rest(self):
        """Reads to the end of file; the events that came."""
        while self.more():
            pass
        text, self.received = self.received.decode(), b""
        cut = text.rfind("\n\n") + 2 if "\n\n" in text else 0
        return [Event(fields) for fields in (blocks(text[:cut]) if cut else [])
                if any(name == "event" for name, _ in fields)]

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
