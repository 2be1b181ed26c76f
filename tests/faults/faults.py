"""Orders for tests/faults/inject.c, and what a fault may come to."""
import mmap
import os
import struct

MEMORY, READ, WRITE, ACCEPT, POLL, OPEN, SYNC, FILE, MAKE, LIBRARY = (1 << i for i in range(10))
ON_FILE, ON_SOCKET, ON_OTHER = 1, 2, 4
SHORT = -1


class Orders:
    """The page that the library reads; one thread writes it."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.write(bytes(4096))
        with open(path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 4096)

    def set(self, place, value):
        self.page[8 * place:8 * place + 8] = struct.pack("<q", value)

    def get(self, place):
        return struct.unpack("<q", self.page[8 * place:8 * place + 8])[0]

    def give(self, fault, first, count=1):
        """The calls first … first + count - 1 of the fault's kind fail; first 0: count only."""
        self.set(0, 0)
        for place, value in enumerate((fault.where, fault.fault, first, count, 0, 0), 1):
            self.set(place, value)
        self.set(0, fault.kind)

    def take_back(self):
        """(calls that were counted, calls that failed)."""
        self.set(0, 0)
        return self.get(5), self.get(6)


def late(name, kind, milliseconds, where=ON_FILE | ON_SOCKET | ON_OTHER):
    """Calls that come back late, and do what they should."""
    return Fault(name, kind, -milliseconds, where)


class Fault:
    def __init__(self, name, kind, fault, where=ON_FILE | ON_SOCKET | ON_OTHER):
        self.name, self.kind, self.fault, self.where = name, kind, fault, where

    def __str__(self):
        return self.name


def _named(call, kind, names, where=ON_FILE | ON_SOCKET | ON_OTHER):
    import errno
    return [Fault(f"{call} {name}", kind, SHORT if name == "short" else getattr(errno, name), where)
            for name in names]


MEMORY_FAULT = Fault("no memory", MEMORY, 12)
KERNEL_FAULTS = (
    _named("read", READ, ["EINTR"])
    + _named("read of a file:", READ, ["short", "EIO"], ON_FILE)
    + _named("read of a socket:", READ, ["short", "EAGAIN", "ECONNRESET"], ON_SOCKET)
    + _named("write", WRITE, ["EINTR"])
    + _named("write to a file:", WRITE, ["short", "ENOSPC", "EIO"], ON_FILE)
    + _named("write to a socket:", WRITE, ["short", "EAGAIN", "EPIPE"], ON_SOCKET)
    + _named("accept", ACCEPT, ["EMFILE", "ENFILE", "ENOMEM", "ECONNABORTED", "EINTR", "EAGAIN"])
    + _named("poll", POLL, ["EINTR"])
    + _named("open", OPEN, ["EMFILE", "ENOSPC", "EACCES"])
    + _named("sync", SYNC, ["EIO", "ENOSPC", "EINTR"])
    + _named("sizes and names of files:", FILE, ["ENOSPC", "EIO"])
    + _named("processes, threads and pipes:", MAKE, ["EAGAIN", "EMFILE"]))
