"""Feeds of changes (server-sent events) that are kept up over lost connections."""
from __future__ import annotations

import base64
import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from . import arrays
from .transport import Error, Transport, Unreachable, failure

PAUSE_S, PAUSE_MAX_S = 2.0, 30.0  # until the next try; the first where the stream names none
LINE_BYTES_MAX = 1 << 20
PATCH_ENDS = ("written", "discarded", "failed")


class Event(NamedTuple):
    """name: "edit", "transform", "patch", "resync"; of a patch's own stream "state" and "poses". data: its JSON.

    id: the locale's revision, or of the feed of all locales the sequence; "" where it has none.
    """

    name: str
    data: Any
    id: str


def _samples(data: Any) -> Any:
    """The data of an event, with its samples as numbers [rows][columns], a frame as bytes."""
    if isinstance(data, dict) and isinstance(data.get("samples"), str):
        _, _, cols, rows = data["rect"]
        data["samples"] = arrays.unpack(base64.b64decode(data["samples"]), "f", (rows, cols))
    if isinstance(data, dict) and isinstance(data.get("granules"), str):
        data["granules"] = base64.b64decode(data["granules"])
    return data


class Feed:
    """The events of a stream, in their order: an iterator.

    It is connected when it has been made: changes from then on are delivered. When the connection
    breaks, or nothing came for silence_s, it is made again after a pause and goes on after the last
    event (Last-Event-ID). An event "resync" means that changes were missed: read everything again.

    It ends after the deletion of its locale or the end of its patch, or by close(), which another
    thread may call. What the daemon refuses is raised as Error.
    """

    def __init__(self, transport: Transport, path: str, since: Optional[int],
                 silence_s: float) -> None:
        self._transport, self._path, self._silence_s = transport, path, silence_s
        self._last = "" if since is None else str(since)
        self._pause_s = PAUSE_S
        self._stop = threading.Event()
        self._connection: Optional[http.client.HTTPConnection] = None
        self._response = self._open()
        self._events = self._run()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the feed; an iteration that waits for an event ends, too."""
        self._stop.set()
        connection = self._connection
        if connection is not None and self._link is not None:
            try:
                self._link.shutdown(2)  # wakes a thread that reads
            except OSError:
                pass

    def _open(self) -> http.client.HTTPResponse:
        transport = self._transport
        headers = transport.headers({"Accept": "text/event-stream"})
        if self._last:
            headers["Last-Event-ID"] = self._last
        connection = self._connection = transport.connect(transport.connect_timeout_s)
        self._link = connection.sock
        try:
            self._link.settimeout(self._silence_s)
            connection.request("GET", transport.prefix + self._path, headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                raise failure(response.status, response.msg, response.read())
        except (OSError, http.client.HTTPException) as cause:
            connection.close()
            raise Unreachable(f"the connection to {transport.url} broke: {cause!r}") from cause
        except Error:
            connection.close()
            raise
        if not self._last:  # later tries go on from here; the feed of all locales names no place
            self._last = response.msg.get("Kota-Revision", "")
        return response

    def _is_last(self, event: Event) -> bool:
        if self._path.partition("?")[0] == "/v1/events" or not isinstance(event.data, dict):
            return False
        return (event.name == "edit" and event.data.get("source") == "delete" or
                event.name == "state" and event.data.get("state") in PATCH_ENDS)

    def _run(self) -> Iterator[Event]:
        failures = 0
        while not self._stop.is_set():
            try:
                for event in self._read():
                    yield event
                    if self._is_last(event):
                        return
            except (OSError, http.client.HTTPException, ValueError):
                pass  # lost; ValueError: closed by close()
            finally:
                self._response.close()
                if self._connection is not None:
                    self._connection.close()
            has_gap = not self._last
            asked_s = 0.0
            while True:
                pause_s = min(self._pause_s * 2 ** min(failures, 5), PAUSE_MAX_S)
                failures += 1
                if self._stop.wait(max(pause_s, asked_s)):
                    return
                try:
                    self._response = self._open()
                    failures = 0
                    break
                except Error as error:
                    if 300 <= error.status < 500 and error.status != 429:
                        raise
                    asked_s = min(error.retry_after_s or 0.0, 3600.0)
            if has_gap:
                yield Event("resync", {}, "")

    def _read(self) -> Iterator[Event]:
        name, number, data = "message", "", []
        while not self._stop.is_set():
            line = self._response.readline(LINE_BYTES_MAX)
            if not line.endswith(b"\n"):
                return
            field, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "event":
                name = value
            elif field == "id":
                number = value
            elif field == "data":
                data.append(value)
            elif field == "retry" and value.isdigit():
                self._pause_s = int(value) / 1000
            elif line.strip() == b"":
                self._last = number or self._last
                if data:
                    yield Event(name, _samples(json.loads("\n".join(data))), number)
                name, number, data = "message", "", []
