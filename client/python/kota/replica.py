"""A copy of a locale's ground in this process: libkota-ground by ctypes, HTTP by the client.

libkota-ground says what to GET and takes the bytes (client/ground/kota-ground.h); a thread asks for
them, a second one reads the feed. Questions never wait for either: each thread that asks has a
reader of its own.
"""
from __future__ import annotations

import ctypes
import http.client
import math
import os
import threading
import time
import weakref
from ctypes import (POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double, c_size_t,
                    c_uint32, c_uint64, c_void_p)
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional, Sequence

from . import arrays
from .transport import Error, Timeout, failure

if TYPE_CHECKING:
    from .client import Client

LIBRARY = "libkota-ground.so.0"
PAUSE_S, PAUSE_MAX_S = 0.5, 10.0  # after a failure; doubled while they go on
PIECE_BYTES = 1 << 16
NEED_FEED = 1
CURRENT, GONE, REFUSED = 1, 3, 4  # enum kota_ground_state
STATUS = ("ok", "below", "hole", "outside", "too_far", "absent")
SHAPES = {"sphere": 1, "capsule": 2, "box": 4}  # numbers of each; enum kota_ground_shape_kind
RAY_STATUS = ("hit", "miss", "invalid", "absent")
NAN = math.nan


class _Error(Structure):
    _fields_ = [("code", c_char * 40), ("pointer", c_char * 128), ("message", c_char * 344)]


class _Need(Structure):
    _fields_ = [("number", c_uint32), ("kind", c_uint32), ("is_samples", c_uint32),
                ("locale", c_char * 68), ("accept", c_char * 32), ("if_none_match", c_char * 256),
                ("path", c_char * 400)]


class _Answer(Structure):
    _fields_ = [("body", c_char_p), ("layout", c_char_p), ("etag", c_char_p),
                ("revision", c_uint64), ("length", c_size_t), ("status", c_uint32)]


class _Following(Structure):
    _fields_ = [("revision", c_uint64), ("transform_seq", c_uint64), ("heard", c_uint64),
                ("frames", c_uint64), ("state", c_uint32), ("is_fed", c_uint32), ("error", _Error)]


class _Ray(Structure):
    _fields_ = [("numbers", c_double * 7)]


class _Hit(Structure):
    _fields_ = [("t", c_double), ("distance_m", c_double), ("point", c_double * 3),
                ("normal", c_double * 3), ("velocity", c_double * 3), ("layer", c_char_p),
                ("locale", c_char_p), ("status", c_uint32), ("has_cell", c_uint32),
                ("cell", c_uint32 * 2), ("triangle", c_uint32), ("polygon", c_uint32)]


class _Reach(Structure):
    _fields_ = [("reach_up_m", c_double), ("max_distance_m", c_double), ("clearance_m", c_double),
                ("is_exact", c_uint32), ("reserved", c_uint32)]


class _Surface(Structure):
    _fields_ = [("point", c_double * 3), ("distance_m", c_double), ("normal", c_double * 3),
                ("slope_deg", c_double), ("velocity", c_double * 3), ("layer", c_char_p),
                ("has_cell", c_uint32), ("cell", c_uint32 * 2), ("polygon", c_uint32)]


class _Contact(Structure):
    _fields_ = [("floor", _Surface), ("ceiling", _Surface), ("placed", c_double * 3),
                ("locale", c_char_p), ("status", c_uint32), ("hint_is_unknown", c_uint32)]


class _Sight(Structure):
    _fields_ = [("fraction", c_double), ("point", c_double * 3), ("is_visible", c_uint32),
                ("is_absent", c_uint32)]


class _Sweep(Structure):
    _fields_ = [("sizes", c_double * 4), ("kind", c_uint32), ("reserved", c_uint32),
                ("start", c_double * 3), ("end", c_double * 3)]


class _Touch(Structure):
    _fields_ = [("hit", _Hit), ("starts_inside", c_uint32), ("reserved", c_uint32)]


class _Move(Structure):
    _fields_ = [("sizes", c_double * 4), ("kind", c_uint32), ("reserved", c_uint32),
                ("start", c_double * 3), ("velocity", c_double * 3), ("dt_s", c_double),
                ("slope_max_deg", c_double), ("step_up_m", c_double), ("snap_down_m", c_double),
                ("claimed", c_double * 3)]


class _Moved(Structure):
    _fields_ = [("to", c_double * 3), ("slope_deg", c_double), ("floor", _Hit), ("hits", _Hit * 5),
                ("hit_count", c_uint32), ("is_grounded", c_uint32), ("starts_inside", c_uint32),
                ("is_reachable", c_uint32), ("is_absent", c_uint32), ("reserved", c_uint32)]


#: Functions without the prefix kota_ground_: result, arguments.
FUNCTIONS: dict[str, tuple[Any, Sequence[Any]]] = {
    "open": (c_void_p, ()),
    "close": (None, (c_void_p,)),
    "reader_open": (c_void_p, (c_void_p,)),
    "reader_close": (None, (c_void_p,)),
    "newest": (c_void_p, (c_void_p,)),
    "locale": (c_void_p, (c_void_p, c_char_p)),
    "revision": (c_uint64, (c_void_p,)),
    "transform_seq": (c_uint64, (c_void_p,)),
    "height": (c_double, (c_void_p, c_double, c_double)),
    "heights_only": (c_bool, (c_void_p, c_char_p, c_uint32, c_void_p, c_size_t, c_void_p,
                              POINTER(_Error))),
    "rays": (c_bool, (c_void_p, c_char_p, c_bool, c_void_p, c_size_t, c_void_p, POINTER(_Error))),
    "ray_fault": (c_char_p, (c_void_p,)),
    "contacts": (c_bool, (c_void_p, c_char_p, c_void_p, c_void_p, c_size_t, c_void_p,
                          POINTER(_Error))),
    "sights": (c_bool, (c_void_p, c_char_p, c_void_p, c_size_t, c_void_p, POINTER(_Error))),
    "sweeps": (c_bool, (c_void_p, c_char_p, c_void_p, c_size_t, c_void_p, POINTER(_Error))),
    "moves": (c_bool, (c_void_p, c_char_p, c_void_p, c_size_t, c_void_p, POINTER(_Error))),
    "publish": (c_bool, (c_void_p, POINTER(_Error))),
    "follow": (c_bool, (c_void_p, c_char_p, c_void_p, POINTER(_Error))),
    "unfollow": (None, (c_void_p, c_char_p)),
    "next": (c_bool, (c_void_p, POINTER(_Need))),
    "give": (c_bool, (c_void_p, c_uint32, POINTER(_Answer), POINTER(_Error))),
    "give_up": (None, (c_void_p, c_uint32)),
    "feed": (c_bool, (c_void_p, c_uint32, c_char_p, c_size_t, POINTER(_Error))),
    "following": (c_bool, (c_void_p, c_char_p, POINTER(_Following))),
}


class _Library:
    """The functions of libkota-ground, by their names without the prefix."""

    def __init__(self, path: str) -> None:
        try:
            library = ctypes.CDLL(path)
        except OSError as cause:
            raise OSError(f"a replica needs libkota-ground: {cause}. Install it, or name its file "
                          "by library= or in KOTA_GROUND_LIBRARY.") from cause
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, f"kota_ground_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class _Reader:
    """What one thread asks with; given back when that thread has ended."""

    def __init__(self, library: Any, copy: Any) -> None:
        self.library, self.copy = library, copy
        self.handle = library.reader_open(copy.handle)
        if not self.handle:
            raise MemoryError("no memory for a reader")
        copy.hold()

    def __del__(self) -> None:
        if self.handle:
            self.library.reader_close(self.handle)
            self.copy.drop()


class _Copy:
    """Closed after its last reader and its replica, in whatever order these go."""

    def __init__(self, library: Any) -> None:
        self.library, self.handle = library, library.open()
        if not self.handle:
            raise MemoryError("no memory for a copy")
        self._users, self._lock = 1, threading.Lock()

    def hold(self) -> None:
        """One more user."""
        with self._lock:
            self._users += 1

    def drop(self) -> None:
        """One less."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self.library.close(self.handle)


class Hits(NamedTuple):
    """Of rays, an item a ray. status: 0 hit, 1 miss, 2 invalid, 3 absent; NaN where there is none."""

    status: Any
    t: Any
    point: Any
    normal: Any


class Contacts(NamedTuple):
    """Of points. status: 0 ok, 1 below, 2 hole, 3 outside, 4 too far, 5 absent; NaN: none."""

    status: Any
    floor: Any
    normal: Any
    ceiling: Any


def _columns(items: Any, kind: type[Structure], wanted: Sequence[tuple[str, int, int]]) -> list[Any]:
    """Members of an array of structs, each as an array. wanted: (type, offset, how many)."""
    count = len(items)
    if arrays.numpy is not None:
        rows = arrays.numpy.frombuffer(items, "u1").reshape(count, ctypes.sizeof(kind))
        found = []
        for code, at, many in wanted:
            size = 8 if code == "d" else 4
            part = rows[:, at:at + size * many].copy().view("<f8" if code == "d" else "<u4")
            found.append(part if many > 1 else part.reshape(count))
        return found
    whole = bytes(items)
    return [arrays.unpack(b"".join(
        whole[at + i * ctypes.sizeof(kind):at + i * ctypes.sizeof(kind) + (8 if code == "d" else 4) * many]
        for i in range(count)), "d" if code == "d" else "I", (count, many)) for code, at, many in wanted]


class Replica:
    """The ground of one locale in this process, which follows the daemon.

        with kota.Replica(client, "hills") as ground:
            print(ground.height(12, 4), ground.revision)

    client    its address, token, time-outs and TLS are used
    locale    its id
    bounds    x0 y0 x1 y1: only this rectangle of heightfields, out to whole tiles
    library   the file of libkota-ground
    timeout_s until it can be asked; None: as long as the client's calls

    It can be asked when it has been made, by any thread, also while the daemon is away: revision and
    staleness say of when the answers are. They are, bit for bit, the daemon's at that revision.
    An answer that depends on ground beyond the bounds is NaN, or has the status "absent". Raises
    Error, Timeout or Unreachable; OSError without the library.
    """

    def __init__(self, client: Client, locale: str, *,
                 bounds: Optional[Sequence[float]] = None, library: Optional[str] = None,
                 timeout_s: Optional[float] = None) -> None:
        self._transport, self._silence_s = client._transport, client._silence_s
        self.locale, self._id = locale, locale.encode()
        self._c: Any = _Library(library or os.environ.get("KOTA_GROUND_LIBRARY") or LIBRARY)
        self._copy = _Copy(self._c)
        weakref.finalize(self, self._copy.drop)
        self._own = threading.local()
        self._changed = threading.Condition()  # guards the copy's changes and the members below
        self._failed: Optional[Exception] = None
        self._heard_s = -math.inf
        self._streams: list[Any] = []
        self._pause_s = PAUSE_S
        error, box = _Error(), (c_double * 4)(*bounds) if bounds is not None else None
        if not self._c.follow(self._copy.handle, self._id, box, byref(error)):
            raise self._error(error)
        threading.Thread(target=self._fetch_all, name=f"kota {locale}", daemon=True).start()
        try:
            self.wait(1, self._transport.timeout_s if timeout_s is None else timeout_s)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Replica:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends following; nothing can be asked any more."""
        self._end(Error("the replica is closed"))

    # ---- its state ------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """Of the locale, of which answers are; 0: there are none any more."""
        view = self._view()
        return int(self._c.revision(view)) if view else 0

    @property
    def transform_seq(self) -> int:
        """Of the poses of moved layers."""
        view = self._view()
        return int(self._c.transform_seq(view)) if view else 0

    @property
    def staleness(self) -> float:
        """Seconds since the copy was known to be the daemon's ground."""
        return time.monotonic() - self._heard_s

    def wait(self, revision: int, timeout_s: float = 10) -> None:
        """Returns when answers are of this revision or a later one. Raises Timeout."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._failed or self.revision >= revision,
                                          timeout_s):
                raise Timeout(f"the replica of {self.locale} was not at revision {revision} in time")
            if self._failed:
                raise self._failed

    # ---- questions ------------------------------------------------------------------------------

    def _view(self) -> Any:
        """The locale of the newest view, for this thread; None: there is none."""
        reader = getattr(self._own, "reader", None)
        if reader is None:
            reader = self._own.reader = _Reader(self._c, self._copy)
        return self._c.locale(self._c.newest(reader.handle), self._id)

    def _ask(self, name: str, *arguments: Any) -> None:
        """kota_ground_NAME(locale, arguments, error)."""
        view, error = self._view(), _Error()
        if not view:
            raise self._failed or Error(f"the replica of {self.locale} has no ground yet")
        if not getattr(self._c, name)(view, *arguments, byref(error)):
            raise ValueError(error.message.decode())

    def height(self, x: float, y: float) -> float:
        """Metres, of the locale's ground; NaN: none."""
        view = self._view()
        return float(self._c.height(view, x, y)) if view else NAN

    def heights(self, points: Any) -> Any:
        """Of many points, x y each: an array; NaN: none."""
        body, count = self._packed(points, 2)
        out = ctypes.create_string_buffer(8 * count)
        self._ask("heights_only", None, 0, body, count, out)
        return arrays.unpack(out.raw, "d", (count,))

    def rays(self, rays: Any) -> Hits:
        """The first surfaces on rays of ox oy oz dx dy dz t_max each."""
        body, count = self._packed(rays, 7)
        hits = (_Hit * count)()
        self._ask("rays", None, False, body, count, hits)
        return Hits(*_columns(hits, _Hit, [("I", _Hit.status.offset, 1), ("d", 0, 1),
                                           ("d", _Hit.point.offset, 3), ("d", _Hit.normal.offset, 3)]))

    def contacts(self, points: Any, reach_up: float = NAN, max_distance: float = NAN) -> Contacts:
        """The surfaces below and above points, x y z each."""
        body, count = self._packed(points, 3)
        found = (_Contact * count)()
        self._ask("contacts", None, byref(_Reach(reach_up, max_distance, NAN, 0, 0)), body, count, found)
        return Contacts(*_columns(found, _Contact, [
            ("I", _Contact.status.offset, 1), ("d", _Surface.point.offset, 3),
            ("d", _Surface.normal.offset, 3), ("d", _Contact.ceiling.offset, 3)]))

    def ray(self, origin: Sequence[float], direction: Sequence[float],
            t_max: float = math.inf) -> dict[str, Any]:
        """The first surface on a ray, as an item of the call."""
        asked, hit = _Ray((c_double * 7)(*origin, *direction, t_max)), _Hit()
        self._ask("rays", None, False, byref(asked), 1, byref(hit))
        item: dict[str, Any] = {"status": RAY_STATUS[hit.status]}
        if item["status"] == "invalid":
            item["detail"] = self._c.ray_fault(byref(asked)).decode()
        if item["status"] != "hit":
            return {**item, "t": None, "distance": None, **_place(None)}
        return {**item, "t": hit.t, "distance": hit.distance_m, **_place(hit)}

    def contact(self, point: Sequence[float], reach_up: float = NAN,
                max_distance: float = NAN) -> dict[str, Any]:
        """The surfaces below and above a point, as an item of the call."""
        found = _Contact()
        self._ask("contacts", None, byref(_Reach(reach_up, max_distance, NAN, 0, 0)),
                  (c_double * 3)(*point), 1, byref(found))
        return {"status": STATUS[found.status], "floor": _surface(found.floor),
                "ceiling": _surface(found.ceiling)}

    def los(self, start: Sequence[float], end: Sequence[float]) -> dict[str, Any]:
        """A line of sight, as an item of the call; visible None: absent."""
        sight = _Sight()
        self._ask("sights", None, (c_double * 6)(*start, *end), 1, byref(sight))
        if sight.is_absent or sight.is_visible:
            return {"visible": None if sight.is_absent else True, "fraction": None, "point": None}
        return {"visible": False, "fraction": sight.fraction, "point": list(sight.point)}

    def sweep(self, shape: Mapping[str, Any], start: Sequence[float],
              end: Sequence[float]) -> dict[str, Any]:
        """What a moved shape touches first, as an item of the call; places are of its middle."""
        touch = _Touch()
        self._ask("sweeps", None, byref(_Sweep(*_shape(shape), tuple(start), tuple(end))), 1, byref(touch))
        status = RAY_STATUS[touch.hit.status]
        hit = touch.hit if status == "hit" else None
        return {**({"status": status} if status == "absent" else {}),
                "fraction": hit and hit.t, "starts_inside": bool(touch.starts_inside), **_place(hit)}

    def move(self, shape: Mapping[str, Any], start: Sequence[float], velocity: Sequence[float], dt: float, *,
             slope_max_deg: float = NAN, step_up: float = NAN, snap_down: float = NAN,
             claimed: Optional[Sequence[float]] = None) -> dict[str, Any]:
        """Where a shape that walks comes to, as an item of the call. claimed: could it be there by now?"""
        moved = _Moved()
        self._ask("moves", None, byref(_Move(
            *_shape(shape), tuple(start), tuple(velocity), dt, slope_max_deg, step_up, snap_down,
            tuple(claimed) if claimed is not None else (NAN, NAN, NAN))), 1, byref(moved))
        return {**({"status": "absent"} if moved.is_absent else {}),
                "to": None if moved.is_absent else list(moved.to), "grounded": bool(moved.is_grounded),
                "floor": {**_place(moved.floor), "slope_deg": moved.slope_deg} if moved.is_grounded else None,
                "hits": [_place(hit) for hit in moved.hits[:moved.hit_count]],
                "starts_inside": bool(moved.starts_inside),
                **({} if claimed is None else {"reachable": bool(moved.is_reachable)})}

    @staticmethod
    def _packed(items: Any, each: int) -> tuple[bytes, int]:
        body, _, shape = arrays.pack(items, "d")
        count, rest = divmod(math.prod(shape), each)
        if rest or (len(shape) > 1 and shape[-1] != each):
            raise ValueError(f"numbers of shape {shape} are no items of {each}")
        return body, count

    # ---- following ------------------------------------------------------------------------------

    def _error(self, error: _Error) -> Error:
        return Error(error.message.decode(), 0, {"code": error.code.decode()})

    def _end(self, why: Exception) -> None:
        with self._changed:
            if self._failed is None:
                self._failed = why
                self._c.unfollow(self._copy.handle, self._id)
                self._c.publish(self._copy.handle, None)
            for link in self._streams:
                try:
                    link.shutdown(2)  # wakes the thread that reads
                except OSError:
                    pass
            self._changed.notify_all()

    def _take(self, name: str, *arguments: Any, refusal: Optional[Error] = None) -> bool:
        """give or feed, then what they made whole is published. refusal: what the daemon said."""
        error, following = _Error(), _Following()
        with self._changed:
            if self._failed:
                return False
            is_taken = getattr(self._c, name)(self._copy.handle, *arguments, byref(error))
            self._c.publish(self._copy.handle, None)
            self._c.following(self._copy.handle, self._id, byref(following))
            if following.state == CURRENT and following.is_fed:
                self._heard_s = time.monotonic()
            self._pause_s = PAUSE_S
            self._changed.notify_all()
        if following.state == GONE:
            self._end(refusal or Error(f"the locale {self.locale} was deleted", 404))
        elif following.state == REFUSED:
            self._end(refusal or self._error(following.error))
        return bool(is_taken)

    def _refused(self, number: int, error: Error) -> bool:
        """Does the daemon refuse for good? Then that is given."""
        if not 400 <= error.status < 500 or error.status in (408, 425, 429):
            return False
        self._take("give", number, byref(_Answer(b"", None, None, 0, 0, error.status)), refusal=error)
        return True

    def _give_up(self, number: int) -> None:
        """Asked again after a pause."""
        with self._changed:
            self._changed.wait_for(lambda: self._failed, self._pause_s)
            self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
            if not self._failed:
                self._c.give_up(self._copy.handle, number)
                self._c.publish(self._copy.handle, None)
                self._changed.notify_all()

    def _fetch_all(self) -> None:
        while True:
            need = _Need()
            with self._changed:
                self._changed.wait_for(
                    lambda: self._failed or self._c.next(self._copy.handle, byref(need)))
                if self._failed:
                    return
            asked = [("Accept", need.accept), ("If-None-Match", need.if_none_match)]
            headers = {name: value.decode() for name, value in asked if value}
            if need.kind == NEED_FEED:
                threading.Thread(target=self._read_feed, name=f"kota feed {self.locale}", daemon=True,
                                 args=(need.number, need.path.decode(), headers)).start()
            else:
                self._fetch(need.number, need.path.decode(), headers)

    def _fetch(self, number: int, path: str, headers: dict[str, str]) -> None:
        try:
            answer = self._transport.call("GET", path, headers=headers)
            given = _Answer(answer.body, None, answer.headers["ETag"] and answer.headers["ETag"].encode(),
                            int(answer.headers["Kota-Revision"] or 0), len(answer.body), answer.status)
        except Error as error:
            if not self._refused(number, error):
                self._give_up(number)
            return
        self._take("give", number, byref(given))

    def _read_feed(self, number: int, path: str, headers: dict[str, str]) -> None:
        transport, connection, link = self._transport, None, None
        try:
            connection = transport.connect(transport.connect_timeout_s)
            link = connection.sock
            link.settimeout(self._silence_s)
            with self._changed:
                self._streams.append(link)
            connection.request("GET", transport.prefix + path, headers=transport.headers(headers))
            response = connection.getresponse()
            if response.status != 200:
                raise failure(response.status, response.msg, response.read())
            piece = b"-"
            while piece:
                piece = response.read1(PIECE_BYTES)
                if piece and not self._take("feed", number, piece, len(piece)):
                    break
        except Error as error:
            if self._refused(number, error):
                return
        except (OSError, ValueError, http.client.HTTPException):
            pass  # lost
        finally:
            with self._changed:
                if link in self._streams:
                    self._streams.remove(link)
            if connection is not None:
                connection.close()
        self._give_up(number)


def _velocity(surface: Any) -> dict[str, Any]:
    """Of a layer that was moved."""
    velocity = list(surface.velocity)
    return {} if math.isnan(velocity[0]) else {"velocity": velocity}


def _place(hit: Optional[_Hit]) -> dict[str, Any]:
    """Where a surface was hit; None: nowhere."""
    if hit is None:
        return dict.fromkeys(("point", "normal", "layer", "cell", "triangle", "polygon"))
    is_field = bool(hit.has_cell)
    return {"point": list(hit.point), "normal": list(hit.normal), "layer": hit.layer.decode(),
            "cell": list(hit.cell) if is_field else None,
            "triangle": hit.triangle if is_field else None,
            "polygon": None if is_field else hit.polygon, **_velocity(hit)}


def _shape(shape: Mapping[str, Any]) -> tuple[Any, int, int]:
    """Sizes, kind, 0."""
    if len(shape) != 1 or not set(shape) <= set(SHAPES):
        raise ValueError(f"a shape is one of {', '.join(SHAPES)}, not {dict(shape)}")
    (kind, given), = shape.items()
    sizes = [given] if kind == "sphere" else list(given)
    if len(sizes) != SHAPES[kind]:
        raise ValueError(f"{kind} has {SHAPES[kind]} numbers, not {len(sizes)}")
    return (c_double * 4)(*sizes), list(SHAPES).index(kind), 0


def _surface(surface: _Surface) -> Optional[dict[str, Any]]:
    if surface.layer is None:
        return None
    is_field = bool(surface.has_cell)
    return {"point": list(surface.point), "distance": surface.distance_m,
            "normal": list(surface.normal), "slope_deg": surface.slope_deg,
            "layer": surface.layer.decode(), "cell": list(surface.cell) if is_field else None,
            "polygon": None if is_field else surface.polygon, **_velocity(surface)}
