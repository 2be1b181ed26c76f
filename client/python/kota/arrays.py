"""Numbers to and from the bytes of a binary batch: little-endian, row by row, without a header.

numpy is used when it can be imported. Otherwise numbers come back as a flat array.array.
"""
from __future__ import annotations

import array
import itertools
import sys
from typing import Any, Optional

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

MEDIA = {"f": "application/vnd.kota.f32", "d": "application/vnd.kota.f64"}


def is_file(body: Any) -> bool:
    """Bytes, text, or an open file; everything else is numbers."""
    return isinstance(body, (bytes, bytearray, memoryview, str)) or hasattr(body, "read")


def file_bytes(body: Any) -> Any:
    """The bytes of a file, a text (UTF-8) or a buffer."""
    if hasattr(body, "read"):
        body = body.read()
    return body.encode() if isinstance(body, str) else memoryview(body).cast("B")


def _flat(items: Any) -> tuple[list[float], tuple[int, ...]]:
    """The numbers of sequences in sequences, and how many each level has. None becomes NaN."""
    rows = list(items)
    shape: tuple[int, ...] = (len(rows),)
    while rows and hasattr(rows[0], "__iter__") and not isinstance(rows[0], str):
        rows = [tuple(row) for row in rows]
        if any(len(row) != len(rows[0]) for row in rows):
            raise ValueError("rows of different lengths")
        shape += (len(rows[0]),)
        rows = list(itertools.chain.from_iterable(rows))
    return [float("nan") if number is None else float(number) for number in rows], shape


def _swapped(numbers: array.array[Any]) -> array.array[Any]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def pack(items: Any, kind: Optional[str] = None) -> tuple[bytes, str, tuple[int, ...]]:
    """(bytes, kind, shape). kind: "f" or "d"; None: "f" for float32, else "d"."""
    if numpy is not None:
        if not hasattr(items, "dtype") and not isinstance(items, array.array):
            items = items if hasattr(items, "__len__") else list(items)
            items = numpy.asarray(items, dtype="f8")  # a None becomes NaN
        values = numpy.asarray(items)
        kind = kind or ("f" if values.dtype == numpy.float32 else "d")
        values = numpy.ascontiguousarray(values, dtype="<f4" if kind == "f" else "<f8")
        return values.tobytes(), kind, values.shape
    if isinstance(items, array.array):
        kind = kind or ("f" if items.typecode == "f" else "d")
        numbers, shape = array.array(kind, items), (len(items),)
    else:
        kind = kind or "d"
        flat, shape = _flat(items)
        numbers = array.array(kind, flat)
    return _swapped(numbers).tobytes(), kind, shape


def pack_rows(rows: Any) -> tuple[bytes, int, int]:
    """(float32 bytes, how many rows, how many columns) of a rectangle of samples."""
    body, _, shape = pack(rows, "f")
    if len(shape) != 2:
        raise ValueError("samples are a sequence of rows")
    return body, shape[0], shape[1]


def unpack(body: bytes, kind: str, shape: tuple[int, ...]) -> Any:
    """A numpy array of that shape (read-only), or a flat array.array. kind: "f", "d", or "B"."""
    if numpy is not None:
        return numpy.frombuffer(body, {"f": "<f4", "d": "<f8", "B": "u1"}[kind]).reshape(shape)
    numbers = array.array(kind)
    numbers.frombytes(body)
    return numbers if kind == "B" else _swapped(numbers)
