"""Requests over kept connections, one a thread, sent again where that is safe.

A call has one deadline for all its tries and pauses. It is sent again when the connection could not
be made, when the connection broke and the call is repeatable (a read, or a write with an
idempotency key), and when a repeatable call is refused with 429 or 503 and Retry-After.
"""
from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Optional
from urllib.parse import urlencode, urlsplit

from . import __version__, arrays

RETRY_S = 0.1  # doubled with each try, where the daemon does not say
READ_BYTES = 1 << 20


class Error(Exception):
    """A call that failed.

    status   of HTTP; 0: no answer came
    code     stable, for a program: "layer_unknown"; "" without one
    title, detail   the daemon's sentences; detail is never empty
    errors   [{"pointer", "detail"}, ...]: the members or parameters at fault
    problem  the whole problem document (limit, got, ...), {} without one
    retry_after_s   the pause that the daemon asks for, or None
    """

    def __init__(self, message: str, status: int = 0, problem: Optional[dict[str, Any]] = None,
                 retry_after_s: Optional[float] = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem = problem or {}
        self.code: str = self.problem.get("code", "")
        self.title: str = self.problem.get("title", "")
        self.detail: str = self.problem.get("detail") or self.problem.get("error") or message
        self.errors: list[dict[str, str]] = self.problem.get("errors", [])
        self.retry_after_s = retry_after_s


class Unreachable(Error):
    """No connection (was_sent False), or it broke before the answer was whole (was_sent True).

    A write that was sent may have been made.
    """

    def __init__(self, message: str, was_sent: bool = False) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class Timeout(Error):
    """The time was over. A write may have been made."""


class Answer(Mapping[str, Any]):
    """What a call brought. A JSON answer is read like a dict: answer["results"].

    revision  of the locale at which it was computed, or None where the answer names none
    status    200, 201, 204, or 304 when if_none_match holds
    headers   case-insensitive: answer.headers["ETag"]
    body      the bytes: a file, a picture
    json      the document, None without a body
    array     numbers of a binary answer, in shape `shape`: a numpy array, which is read-only;
              without numpy a flat array.array, row by row
    """

    def __init__(self, status: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body
        self.kind = ""  # of numbers: "f", "d", "B"
        self.shape: tuple[int, ...] = ()
        self._json: Any = None

    @property
    def json(self) -> Any:
        if self._json is None and self.body:
            self._json = json.loads(self.body)
        return self._json

    @property
    def revision(self) -> Optional[int]:
        text = self.headers.get("Kota-Revision")
        if text is None and self.headers.get_content_type() == "application/json":
            text = (self.json or {}).get("revision")
        return None if text is None else int(text)

    @property
    def array(self) -> Any:
        if not self.kind:
            raise TypeError("this answer has no numbers: use its members, or body")
        return arrays.unpack(self.body, self.kind, self.shape)

    def __getitem__(self, name: str) -> Any:
        return self.json[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.json or {})

    def __len__(self) -> int:
        return len(self.json or {})

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Answer {self.status} {self.headers.get('Content-Type', '')} {self.body[:60]!r}>"


def query_text(values: Mapping[str, Any]) -> str:
    """"?a=1&b=2,3" of the values that are not None."""
    def text(value: Any) -> str:
        value = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (list, tuple)):
            return ",".join(text(one) for one in value)
        return str(value)
    given = {name: text(value) for name, value in values.items() if value is not None}
    return "?" + urlencode(given) if given else ""


def failure(status: int, headers: http.client.HTTPMessage, body: bytes) -> Error:
    """The Error of an answer that is no success."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):  # a proxy's page
        problem = {"detail": f"status {status}: {body[:200].decode('utf-8', 'replace')}"}
    places = [f"{one.get('pointer')}: {one.get('detail')}" for one in problem.get("errors", [])]
    sentence = str(problem.get("detail") or problem.get("error") or f"status {status}")
    message = "; ".join([sentence, *(place for place in places if place not in sentence)])
    after = headers.get("Retry-After", "")
    return Error(message, status, problem, float(after) if after.isdigit() else None)


class UnixConnection(http.client.HTTPConnection):
    """A connection to the daemon's Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connects to the path."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Transport:
    """The connections of a client. Threads may share it; each has a connection of its own."""

    def __init__(self, url: str, token: Optional[str], timeout_s: float, connect_timeout_s: float,
                 tries_max: int, idle_s: float, context: Optional[ssl.SSLContext]) -> None:
        self._unix = url[len("unix:"):] if url.startswith("unix:") else ""
        parts = urlsplit("http://localhost" if self._unix else url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"no URL of a daemon: {url!r}")
        self.url, self.token = url.rstrip("/"), token
        self.timeout_s, self.connect_timeout_s = timeout_s, connect_timeout_s
        self.tries_max, self.idle_s = tries_max, idle_s
        self._host, self._port = parts.hostname, parts.port
        self.prefix = parts.path.rstrip("/")
        self._context = context
        if parts.scheme == "https" and context is None:
            self._context = ssl.create_default_context()
        self._is_tls = parts.scheme == "https"
        self._own = threading.local()
        self._lock = threading.Lock()
        self._all: weakref.WeakSet[http.client.HTTPConnection] = weakref.WeakSet()

    def close(self) -> None:
        """Closes all connections. A later call opens one again."""
        with self._lock:
            for connection in list(self._all):
                connection.close()

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        """A new connection."""
        connection: http.client.HTTPConnection
        if self._unix:
            connection = UnixConnection(self._unix, timeout_s)
        elif self._is_tls:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout_s, context=self._context)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        try:
            connection.connect()
        except OSError as cause:
            raise Unreachable(f"no connection to {self.url}: {cause}") from cause
        return connection

    def _kept(self) -> Optional[http.client.HTTPConnection]:
        """This thread's connection where it can be used again, else None."""
        connection: Optional[http.client.HTTPConnection] = getattr(self._own, "connection", None)
        if connection is None or connection.sock is None:
            return None
        is_open = time.monotonic() - self._own.used < self.idle_s
        if is_open and not self._is_tls:
            try:
                connection.sock.settimeout(0)
                connection.sock.recv(1, socket.MSG_PEEK)
                is_open = False  # the end of the file, or bytes that no request asked for
            except BlockingIOError:
                pass
            except OSError:
                is_open = False
        if is_open:
            return connection
        connection.close()
        return None

    def headers(self, more: Mapping[str, str]) -> dict[str, str]:
        """Those of each request, and more."""
        own = {"User-Agent": f"kota-python/{__version__}", **more}
        if self.token:
            own["Authorization"] = f"Bearer {self.token}"
        return own

    def call(self, method: str, path: str, *, query: Optional[Mapping[str, Any]] = None,
             body: Any = None, media: str = "", headers: Optional[Mapping[str, str]] = None,
             timeout_s: Optional[float] = None, repeatable: Optional[bool] = None) -> Answer:
        """One call, sent up to tries_max times. body: bytes-like. Raises Error."""
        sent = self.headers({**(headers or {}), **({"Content-Type": media} if media else {})})
        target = self.prefix + path + query_text(query or {})
        deadline = time.monotonic() + (timeout_s or self.timeout_s)
        if repeatable is None:
            repeatable = method in ("GET", "HEAD", "OPTIONS") or "Idempotency-Key" in sent
        tries = 0
        while True:
            tries += 1
            kept = self._kept()
            failed: Error
            try:
                return self._once(kept, method, target, body, sent, deadline)
            except Timeout:
                raise
            except Unreachable as error:
                failed, wait_s = error, RETRY_S * 2 ** (tries - 1)
                may_repeat = repeatable or not error.was_sent
                if kept and may_repeat:  # the daemon closed it just now: that is no try
                    tries, wait_s = tries - 1, 0
            except Error as error:
                if error.status not in (429, 503) or error.retry_after_s is None:
                    raise
                failed, wait_s, may_repeat = error, error.retry_after_s, repeatable
            if not may_repeat or tries >= self.tries_max or time.monotonic() + wait_s >= deadline:
                raise failed
            time.sleep(wait_s)

    def _once(self, connection: Optional[http.client.HTTPConnection], method: str, target: str,
              body: Any, headers: Mapping[str, str], deadline: float) -> Answer:
        def left() -> float:
            return max(deadline - time.monotonic(), 1e-3)

        try:
            if connection is None:
                connection = self.connect(min(self.connect_timeout_s, left()))
                self._own.connection = connection
                with self._lock:
                    self._all.add(connection)
            link = connection.sock
            link.settimeout(left())
            try:
                connection.request(method, target, body=body, headers=dict(headers))
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may have refused before it read the whole body
            response = connection.getresponse()
            pieces = [b"-"]
            while pieces[-1] and response.length != 0 and not response.isclosed():
                if time.monotonic() >= deadline:
                    raise socket.timeout("timed out")
                link.settimeout(left())
                pieces.append(response.read1(READ_BYTES))
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            response.close()  # the connection is kept unless the daemon said otherwise
            self._own.used = time.monotonic()
        except BaseException as cause:
            if connection is not None:
                connection.close()
            if isinstance(cause, http.client.InvalidURL):
                raise ValueError(str(cause)) from cause
            if isinstance(cause, socket.timeout):
                raise Timeout(f"no answer from {self.url} within the time") from cause
            if isinstance(cause, (OSError, http.client.HTTPException)):
                raise Unreachable(f"the connection to {self.url} broke: {cause!r}", True) from cause
            raise
        whole = b"".join(pieces[1:])
        if 200 <= response.status < 300 or response.status == 304:
            return Answer(response.status, response.msg, whole)
        raise failure(response.status, response.msg, whole)
