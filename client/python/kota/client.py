"""The calls of a kotad, a method each.

A method is named after the operation in /openapi.json: a read without its verb (getLocale and
postContact: `locale`, `contact`), a write with it (`put_layer`, `post_edit`).
"""
from __future__ import annotations

import json
import math
import secrets
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union
from urllib.parse import quote

from . import arrays
from .events import Feed
from .transport import Answer, Error, Transport, query_text

Vector = Sequence[float]
Numbers = Any  # a numpy array, an array.array, or sequences of numbers
TILE_SAMPLES = 257  # of a tile's side: 256 cells and the samples at their far edges
HEADERS = {"min_revision": "Kota-Min-Revision", "idempotency_key": "Idempotency-Key",
           "if_none_match": "If-None-Match"}


def _place(locale: str, *more: object) -> str:
    return "/".join(["/v1/locales", *(quote(str(part), safe="") for part in (locale, *more))])


def _as_square(answer: Answer) -> Answer:
    """The floats of a map's tile as rows."""
    if answer.body and answer.headers.get_content_type() == "application/vnd.kota.f32":
        side = math.isqrt(len(answer.body) // 4)
        answer.kind, answer.shape = "f", (side, side)
    return answer


def _split(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arguments of Transport.call, members of the question) of what is given."""
    question = {name: value for name, value in options.items() if value is not None}
    headers = {header: str(question.pop(name)) for name, header in HEADERS.items()
               if name in question}
    if "if_match" in question:
        revision = question.pop("if_match")
        headers["If-Match"] = "*" if revision == "*" else f'"{revision}"'
    if question.pop("if_new", False):
        headers["If-None-Match"] = "*"
    return {"headers": headers, "timeout_s": question.pop("timeout_s", None)}, question


def _plain(value: Any) -> Any:
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} cannot be sent")
    return value.tolist()


def _json(value: Any) -> dict[str, Any]:
    """The body of a request; numpy arrays are lists in it. Raises ValueError at a NaN."""
    text = json.dumps(value, allow_nan=False, default=_plain)
    return {"body": text.encode(), "media": "application/json"}


class Client:
    """A kotad, asked over HTTP. Threads may share a client; each has its own connection.

    url                http:// or https://, where a path after the host is kept; or unix:PATH
    token              bearer token
    timeout_s          of a call with all its tries and pauses
    connect_timeout_s  of one attempt to connect
    tries_max          of a call that may be repeated; 1: never again
    idle_s             a kept connection is not used again after so long
    silence_s          a feed counts as lost when nothing came for so long
    context            of TLS; None: the system's certificates

    Each method takes these options by name as well:

    timeout_s        instead of the client's
    min_revision     a read waits, bounded, until the daemon has applied this revision (else 503)
    if_none_match    an ETag with its quotes; the answer's status is 304 while it holds
    if_match         a write happens only at this revision of the locale ("*": at any), else 412
    if_new           a PUT happens only if there is nothing yet, else 412
    idempotency_key  of a write; without it each write has a random one

    and the options of the question that its description lists. They go to the daemon as they are,
    which refuses one that it does not know (400). None: not sent. `layer` is one layer instead of
    all, `base` (x y z) what the coordinates of a batch, those of its answer too, are relative to.
    `live=True` asks height, profile, contact, ray, los, pick and contains about the ground as it
    moves: with the surface of the patches that live; "here": of those of this daemon only. `at` is
    the name of a pin, or a revision that is held: reads answer about the locale as it was then. `note`
    of a write says why, for the history.

    A method returns an Answer, or raises Error, Timeout or Unreachable; ValueError or TypeError
    where an argument cannot be sent.
    """

    def __init__(self, url: str = "http://127.0.0.1:7420", *, token: Optional[str] = None,
                 timeout_s: float = 10, connect_timeout_s: float = 3, tries_max: int = 4,
                 idle_s: float = 8, silence_s: float = 45,
                 context: Optional[ssl.SSLContext] = None) -> None:
        self._transport = Transport(url, token, timeout_s, connect_timeout_s, tries_max, idle_s,
                                    context)
        self._silence_s = silence_s

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the kept connections."""
        self._transport.close()

    def call(self, method: str, path: str, /, *, json: Any = None, body: Any = None,
             media: str = "", repeatable: Optional[bool] = None, **options: Any) -> Answer:
        """Any call: json, or body of a media type, is sent; further options are the query.

        repeatable: may it be sent again? None: a GET or a call with an idempotency key may.
        """
        arguments, query = _split(options)
        if json is not None:
            arguments.update(_json(json))
        elif body is not None:
            arguments.update(body=arrays.file_bytes(body), media=media)
        return self._transport.call(method, path, query=query, repeatable=repeatable, **arguments)

    def _ask(self, target: str, options: Mapping[str, Any], /, **question: Any) -> Answer:
        arguments, more = _split({**question, **options})
        query = {name: more.pop(name) for name in ("live", "at") if name in more}
        return self._transport.call("POST", target, query=query, repeatable=True, **arguments,
                                    **_json(more))

    def _write(self, method: str, target: str, options: Mapping[str, Any], /,
               **more: Any) -> Answer:
        key = options.get("idempotency_key") or secrets.token_hex(16)
        return self.call(method, target, **{**options, **more, "idempotency_key": key})

    def _batch(self, target: str, items: Numbers, each: int, out: int, options: Mapping[str, Any],
               /) -> Answer:
        """each: numbers of an item; out: numbers of a result, 0 for one byte."""
        body, kind, shape = arrays.pack(items)
        rows, rest = divmod(math.prod(shape), each)
        if rows == 0 or rest or (len(shape) > 1 and shape[-1] != each):
            raise ValueError(f"numbers of shape {shape} are no items of {each}")
        answer = self.call("POST", target, body=body, media=arrays.MEDIA[kind], repeatable=True,
                           **options)
        answer.kind = kind if out else "B"
        width, rest = divmod(len(answer.body), rows * {"f": 4, "d": 8, "B": 1}[answer.kind])
        if rest or width < max(out, 1):  # more: an option that adds columns
            raise Error(f"{len(answer.body)} bytes are no answer to {rows} items", answer.status)
        answer.shape = (rows, width) if width > 1 else (rows,)
        return answer

    # ---- the daemon ------------------------------------------------------------------------------

    def livez(self, **options: Any) -> Answer:
        """Does the process live?"""
        return self.call("GET", "/livez", **options)

    def healthz(self, **options: Any) -> Answer:
        """The same as livez."""
        return self.call("GET", "/healthz", **options)

    def readyz(self, **options: Any) -> Answer:
        """May traffic come? Error 503, at once, while it may not."""
        return self.call("GET", "/readyz", repeatable=False, **options)

    def metrics(self, **options: Any) -> Answer:
        """Prometheus text, in `body`."""
        return self.call("GET", "/metrics", **options)

    def openapi(self, **options: Any) -> Answer:
        """The contract, OpenAPI 3.1."""
        return self.call("GET", "/openapi.json", **options)

    def calls(self, **options: Any) -> Answer:
        """The daemon's version, and name, method, path and summary of all calls, in `calls`."""
        return self.call("GET", "/v1", **options)

    def limits(self, **options: Any) -> Answer:
        """The limits in force, numbers named with their unit."""
        return self.call("GET", "/v1/limits", **options)

    def audit(self, **options: Any) -> Answer:
        """The last writes, and the names that made them, in `entries`. Options: after, limit."""
        return self.call("GET", "/v1/audit", **options)

    def stats(self, **options: Any) -> Answer:
        """Counters since the start and gauges of now."""
        return self.call("GET", "/v1/stats", **options)

    # ---- locales and layers ----------------------------------------------------------------------

    def locales(self, **options: Any) -> Answer:
        """All locales by id, page by page, in `locales`. Options: layers, limit, after.

        layers: each with its layers. limit: one page, of the locales after the id `after`; `next`
        is the path of the next one, or None.
        """
        answer = self.call("GET", "/v1/locales", **options)
        same = {name: options[name] for name in ("timeout_s", "min_revision") if name in options}
        while answer.get("next") and options.get("limit") is None:
            page = self.call("GET", answer["next"], **same)
            answer.json["locales"] += page["locales"]
            answer.json["next"] = page["next"]
        return answer

    def locale(self, locale: str, **options: Any) -> Answer:
        """One locale: manifest, bounds, layers. Error 404: there is none."""
        return self.call("GET", _place(locale), **options)

    def put_locale(self, locale: str, manifest: Optional[Mapping[str, Any]] = None,
                   **options: Any) -> Answer:
        """Makes a locale (201) or replaces its manifest (200); layers stay.

        manifest: title, gravity, placement, open_sky, triangulation, geo, crs; what is missing gets its
        default.
        """
        return self._write("PUT", _place(locale), options, json=manifest or {})

    def post_locale(self, locale: str, source: str, title: Optional[str] = None,
                    placement: Optional[Mapping[str, Any]] = None, **options: Any) -> Answer:
        """Makes a locale (its id) that shares the ground of another one, as it is or was. Title and
        placement are its own where they are given.

        source: `from` of the call: "arena", "arena@pin" or "arena@revision"
        """
        body: dict[str, Any] = {"id": locale, "from": source}
        if title is not None:
            body["title"] = title
        if placement is not None:
            body["placement"] = placement
        return self._write("POST", "/v1/locales", options, json=body)

    def delete_locale(self, locale: str, **options: Any) -> Answer:
        """Removes a locale and its layers."""
        return self._write("DELETE", _place(locale), options)

    def layer(self, locale: str, layer: str, **options: Any) -> Answer:
        """A layer as a file, in `body`. Option format: f32 (heightfields), png16, obj (meshes).

        f32 is in `array` [rows][cols] in metres: row 0 at the smallest y, a NaN is a hole.
        """
        answer = self.call("GET", _place(locale, "layers", layer), **options)
        if answer.headers.get_content_type() == arrays.MEDIA["f"]:
            rows, cols = int(answer.headers["Kota-Rows"]), int(answer.headers["Kota-Cols"])
            answer.kind, answer.shape = "f", (rows, cols)
        return answer

    def put_layer(self, locale: str, layer: str, body: Any, media: str = "", *,
                  spacing: Union[float, Vector, None] = None, **options: Any) -> Answer:
        """Uploads a layer; the answer is the locale.

        body: a file (bytes, text, or a file opened for reading bytes) of the type `media`, such as
        image/png or model/obj; or samples [rows][cols] in metres, numpy or sequences, row 0 at the
        smallest y, NaN or None a hole. Samples need spacing: metres, one number or (x, y).

        Options of rasters: origin, height_scale, height_offset, flip_y, nodata, cols, rows. Of
        meshes: role, up, scale, frame, gravity, precision_max_m, strict, max_polygons, max_depth. Of both:
        format.
        """
        if not arrays.is_file(body):
            body, options["rows"], options["cols"] = arrays.pack_rows(body)
            media = arrays.MEDIA["f"]
        if isinstance(spacing, (int, float)):
            spacing = (spacing, spacing)
        return self._write("PUT", _place(locale, "layers", layer), options, body=body, media=media,
                           spacing=spacing)

    def delete_layer(self, locale: str, layer: str, **options: Any) -> Answer:
        """Removes a layer."""
        return self._write("DELETE", _place(locale, "layers", layer), options)

    def pins(self, locale: str, **options: Any) -> Answer:
        """The values of a locale that are kept under names."""
        return self.call("GET", _place(locale, "pins"), **options)

    def pin(self, locale: str, pin: str, **options: Any) -> Answer:
        """One pin: its name and revision."""
        return self.call("GET", _place(locale, "pins", pin), **options)

    def put_pin(self, locale: str, pin: str, **options: Any) -> Answer:
        """Keeps the locale as it is under a name, for `at` of its reads."""
        return self._write("PUT", _place(locale, "pins", pin), options)

    def delete_pin(self, locale: str, pin: str, **options: Any) -> Answer:
        """Removes a pin."""
        return self._write("DELETE", _place(locale, "pins", pin), options)

    def history(self, locale: str, **options: Any) -> Answer:
        """`history`: who made each revision, with its note, time and rect; `next`: the next page.

        Options: rect, layer, author, since (a revision or a time), before, order (oldest, newest),
        limit.
        """
        return self.call("GET", _place(locale, "history"), **options)

    def revert(self, locale: str, since: Union[int, str], author: Optional[str] = None,
               rect: Optional[Sequence[int]] = None, layer: Optional[str] = None,
               conflicts: str = "keep", **options: Any) -> Answer:
        """Takes the edits after a revision or a time back, of one author or of all.

        since is a revision, which the API also calls to_revision, or a time as the history has it.
        Where others edited later: conflicts "keep" leaves that, "overwrite" does not.
        """
        asked = {"since": since, "author": author, "rect": rect and list(rect), "layer": layer,
                 "conflicts": conflicts}
        return self._write("POST", _place(locale, "revert"), options,
                           json={name: asked[name] for name in asked if asked[name] is not None})

    def restore_pin(self, locale: str, pin: str, **options: Any) -> Answer:
        """Brings the locale back to a pin, as its next revision."""
        return self._write("POST", _place(locale, "pins", pin, "restore"), options)

    def layer_stats(self, locale: str, layer: str, quadtree: bool | None = None,
                    bounds: Sequence[float] | None = None, **options: Any) -> Answer:
        """How a layer is held: tiles, tree, bytes; of a mesh also its quadtree's leaves over bounds."""
        return self.call("GET", _place(locale, "layers", layer, "stats"), quadtree=quadtree,
                         bounds=bounds, **options)

    def put_transform(self, locale: str, layer: str, translation: Vector, yaw_deg: float = 0,
                      rotation: Sequence[float] | None = None, **options: Any) -> Answer:
        """The pose of a mesh layer: turned by yaw_deg about gravity, or by a rotation (a unit
        quaternion x y z w) in its place, then moved by metres.

        It is not sent again after a lost connection: a late repeat could undo a newer pose.
        """
        return self.call("PUT", _place(locale, "layers", layer, "transform"),
                         json={"translation": translation,
                               **({"yaw_deg": yaw_deg} if rotation is None else
                                  {"rotation": list(rotation)})}, **options)

    def polygons(self, locale: str, layer: str, polygons: Any = (), remove: Sequence[int] = (),
                      strict: bool = False, **options: Any) -> Answer:
        """Adds polygons to a mesh layer and removes others by number; one revision.

        polygons: corners x y z each; or an OBJ file, with options up and scale. `added` has the
        numbers of the new ones, None for one that was dropped; strict: that is refused (422).
        """
        target = _place(locale, "layers", layer, "polygons")
        if arrays.is_file(polygons):
            return self._write("POST", target, options, body=polygons, media="model/obj",
                               remove=tuple(remove) or None, strict=strict)
        return self._write("POST", target, options, json={"polygons": polygons, "remove": remove,
                                                          "strict": strict})

    def edit(self, locale: str, rect: Sequence[int], heights: Numbers, op: str = "set",
                  **options: Any) -> Answer:
        """Changes the samples of rect (column, row, columns, rows). Option layer.

        heights: [rows][columns] in metres, row 0 at the smallest y. op "set": they become these,
        NaN or None makes a hole; "add": these are added.
        """
        return self._write("POST", _place(locale, "edits"), options, rect=tuple(rect), op=op,
                           body=arrays.pack(heights, "f")[0], media=arrays.MEDIA["f"])

    def edit_brush(self, locale: str, shape: str, center: Vector, radius: float,
                        amount: Optional[float] = None, slope_deg: Optional[float] = None,
                        **options: Any) -> Answer:
        """A round change of samples. Option layer.

        shape: crater, raise, flatten, smooth, relax. center: x y; radius and amount: metres.
        slope_deg: the angle of repose of relax, 34 if it is not given.
        """
        brush = {"shape": shape, "center": center, "radius": radius}
        brush.update({} if amount is None else {"amount": amount})
        brush.update({} if slope_deg is None else {"slope_deg": slope_deg})
        return self._write("POST", _place(locale, "edits"), options, json={"brush": brush})

    def diff(self, locale: str, since: int, **options: Any) -> Answer:
        """`rects` (column, row, columns, rows) changed after a revision; option layer.

        Error 410: too long ago, read everything again.
        """
        return self.call("GET", _place(locale, "diff"), since=since, **options)

    # ---- ground ----------------------------------------------------------------------------------

    def get_height(self, locale: str, x: float, y: float, **options: Any) -> Answer:
        """`status` and `height` (None: no ground) at one point.

        Options: interp (triangle, bilinear, nearest), fields (of height, normal, cell), layer, live.
        """
        return self.call("GET", _place(locale, "height"), x=x, y=y, **options)

    def height(self, locale: str, points: Numbers, **options: Any) -> Answer:
        """`results`: the height at each of the points [x, y]. Options: interp, fields, layer, live."""
        return self._ask(_place(locale, "height"), options, points=points)

    def profile(self, locale: str, path: Numbers, **options: Any) -> Answer:
        """`results` along corners [x, y]. Options: samples (how many) or step (metres);
        layer, live."""
        return self._ask(_place(locale, "profile"), options, path=path)

    def contact(self, locale: str, points: Numbers, **options: Any) -> Answer:
        """`results`: status, floor and ceiling of each of the points [x, y, z].

        status: ok (there is a floor), below (no floor, but ground above), hole, too_far, outside.
        Options: reach_up, metres that a floor may be above the point (0.5); max_distance, metres
        that it may be below; clearance, metres above the floor at which each result has `placed`;
        clearance_mode (at_least, exact); layer, live.
        """
        return self._ask(_place(locale, "contact"), options, points=points)

    def contact_footprints(self, locale: str, footprints: Numbers, **options: Any) -> Answer:
        """`results`: the plane under each footprint, three points [x, y, z] or more.

        Options: reach_up, max_distance, layer, live.
        """
        return self._ask(_place(locale, "contact"), options, footprints=footprints)

    def ray(self, locale: str, rays: Sequence[Mapping[str, Any]], **options: Any) -> Answer:
        """`results`: the first hit of each ray {"origin", "direction", "t_max"}.

        t counts in lengths of the direction, distance in metres. Options: mode (closest, any; all:
        each result has "hits"), hits_max of mode all, trace, layer, live.
        """
        return self._ask(_place(locale, "ray"), options, rays=rays)

    def los(self, locale: str, segments: Sequence[Mapping[str, Any]], **options: Any) -> Answer:
        """`results`: is each line of sight {"from", "to"} free?

        Options: mode (all: each result has "hits", all that is between), hits_max, layer, live.
        """
        return self._ask(_place(locale, "los"), options, segments=segments)

    def lit(self, locale: str, points: Numbers, light: Mapping[str, Any], **options: Any) -> Answer:
        """`results`: does the light reach each of the points [x, y, z]? Option layer.

        light: {"direction"} that it travels along, or {"position"}.
        """
        return self._ask(_place(locale, "lit"), options, points=points, light=light)

    def sweep(self, locale: str, items: Sequence[Mapping[str, Any]], **options: Any) -> Answer:
        """`results`: what each shape touches first between "from" and "to", places of its middle.

        An item has "shape", {"sphere": r}, {"capsule": [r, h]} or {"box": [hx, hy, hz, yaw_deg]}.
        Options: sphere, capsule or box of items without a shape, layer.
        """
        return self._ask(_place(locale, "sweep"), options, items=items)

    def move(self, locale: str, items: Sequence[Mapping[str, Any]], **options: Any) -> Answer:
        """`results`: where each shape that walks comes to.

        An item has "shape", "from", "velocity", "dt", and may have "slope_max_deg", "step_up",
        "snap_down", and "claimed": could it be there by now? Options: those but from, velocity and
        claimed, of items without (sphere, capsule or box for the shape), layer.
        """
        return self._ask(_place(locale, "move"), options, items=items)

    def pick(self, locale: str, viewport: Vector, pixel: Optional[Vector] = None,
             **options: Any) -> Answer:
        """The ground that a pixel [x, y] of a viewport [width, height] shows.

        Options: pixels, several in `results`, instead of pixel; or rectangle [x0, y0, x1, y1] or
        lasso, and step: all that a region shows, in `layers`; camera {"eye", "target"} with up
        (0 0 1) and fov_y_deg (60); or inverse_view_projection, 16 numbers by column, and its depth
        (gl, webgpu, reversed); tile_side in cells, or tile {"shape": "hex" or "square", "side"};
        layer; live.
        """
        return self._ask(_place(locale, "pick"), options, viewport=viewport, pixel=pixel)

    def view(self, locale: str, camera: Dict[str, Any], **options: Any) -> Answer:
        """A picture (PNG), in `body`, of what a camera {"eye", "target"} sees.

        Options: size [width, height] (640 480); sun {"direction"} or {"azimuth_deg", "height_deg"};
        shadows; live; at. It waits for two minutes unless timeout_s is given: other pictures may be
        drawn first.
        """
        return self._ask(_place(locale, "view.png"), {"timeout_s": 120, **options}, camera=camera)

    def contains(self, locale: str, points: Numbers, **options: Any) -> Answer:
        """`results`: each of the points [x, y, z] is inside, below, over a hole, or outside.

        Options: layer, live.
        """
        return self._ask(_place(locale, "contains"), options, points=points)

    # ---- the whole world -------------------------------------------------------------------------

    def locate(self, points: Numbers, **options: Any) -> Answer:
        """`results`: the locale of each of the world's points [x, y, z].

        Option hints: the locale of each point before, or None.
        """
        return self._ask("/v1/locate", options, points=points)

    def world_contact(self, points: Numbers = None, **options: Any) -> Answer:
        """contact in the world's frame.

        Options: footprints (instead of points), hints, reach_up, max_distance, clearance,
        clearance_mode.
        """
        return self._ask("/v1/contact", options, points=points)

    def world_ray(self, rays: Sequence[Mapping[str, Any]], **options: Any) -> Answer:
        """ray in the world's frame, over all locales. Option mode."""
        return self._ask("/v1/ray", options, rays=rays)

    def world_pick(self, viewport: Vector, pixel: Optional[Vector] = None,
                   **options: Any) -> Answer:
        """pick in the world's frame, over all locales, without layer.

        Options: pixels, rectangle or lasso with step; camera or inverse_view_projection with depth;
        tile_side, tile.
        """
        return self._ask("/v1/pick", options, viewport=viewport, pixel=pixel)

    def elevation(self, locations: Union[str, Sequence[Vector], None] = None, *,
                  path: Union[str, Sequence[Vector], None] = None, dataset: str = "",
                  **options: Any) -> Answer:
        """Elevations of places on the Earth, [lat, lng] each, in the shape of Open Topo Data.

        path, with option samples: of points along it. dataset: a locale, or several with commas.
        Options: interpolation (nearest, bilinear, triangle), nodata_value, format (json, geojson).
        """
        def text(places: Any) -> Any:
            if places is None or isinstance(places, str):
                return places
            return "|".join(",".join(str(float(one)) for one in place) for place in places)
        target = "/v1/compat/elevation" + (f"/{quote(dataset, safe=',')}" if dataset else "")
        return self._ask(target, options, locations=text(locations), path=text(path))

    # ---- binary batches --------------------------------------------------------------------------
    # Numbers in and out, flat or [item][number], at most a million items. float32 (numpy, or an
    # array.array of type "f") is sent and answered as float32, everything else as float64.

    def height_batch(self, locale: str, points: Numbers, **options: Any) -> Answer:
        """x y each; `array` [count]: the height, NaN: none.

        With status=True `array` is [count][2]: height and status (0 ok, 2 hole, 3 outside).
        Options: interp, layer, base, status, live.
        """
        numbers = 2 if options.get("status") else 1
        return self._batch(_place(locale, "height"), points, 2, numbers, options)

    def contact_batch(self, locale: str, points: Numbers, **options: Any) -> Answer:
        """x y z each; `array` [count][6]: floor_z nx ny nz ceiling_z (NaN: none) status.

        status: 0 ok, 1 below, 2 hole, 3 outside, 4 too far.
        Options: reach_up, max_distance, layer, base, live.
        """
        return self._batch(_place(locale, "contact"), points, 3, 6, options)

    def ray_batch(self, locale: str, rays: Numbers, **options: Any) -> Answer:
        """ox oy oz dx dy dz t_max each; `array` [count][4]: t nx ny nz, t infinite: a miss.

        Options: mode, layer, base, live.
        """
        return self._batch(_place(locale, "ray"), rays, 7, 4, options)

    def lit_batch(self, locale: str, points: Numbers, light: Mapping[str, Any],
                  **options: Any) -> Answer:
        """x y z each; `array` [count] of bytes: 1 lit, 0 in shadow. light: {"direction"} or
        {"position"}. Options: layer, base."""
        return self._batch(_place(locale, "lit"), points, 3, 0, {**light, **options})

    def sweep_batch(self, locale: str, ways: Numbers, **options: Any) -> Answer:
        """From and to (6 numbers) each; `array` [count][4]: fraction nx ny nz (NaN: no touch).

        Options: sphere, capsule or box, layer, base.
        """
        return self._batch(_place(locale, "sweep"), ways, 6, 4, options)

    def move_batch(self, locale: str, moves: Numbers, dt: float, **options: Any) -> Answer:
        """From and velocity (6 numbers) each; `array` [count][4]: to, grounded (0 or 1).

        Options: sphere, capsule or box, slope_max_deg, step_up, snap_down, layer, base.
        """
        return self._batch(_place(locale, "move"), moves, 6, 4, {"dt": dt, **options})

    def contains_batch(self, locale: str, points: Numbers, **options: Any) -> Answer:
        """x y z each; `array` [count] of bytes: bit 0 inside, 1 a floor, 2 a ceiling, 3 a hole,
        4 outside.

        Options: layer, base.
        """
        return self._batch(_place(locale, "contains"), points, 3, 0, options)

    # ---- tiles -----------------------------------------------------------------------------------

    def layer_tif(self, locale: str, layer: str, **options: Any) -> Answer:
        """A heightfield as a cloud-optimised GeoTIFF in `body`. GDAL and rasterio read its address
        by themselves. Option v: a revision; error 412 once it is no longer current."""
        return self.call("GET", _place(locale, "layers", layer + ".tif"), **options)

    def tileset(self, locale: str, **options: Any) -> Any:
        """3D Tiles 1.1 of the mesh layers."""
        return self.call("GET", _place(locale, "3dtiles", "tileset.json"), **options).json

    def layer_glb(self, locale: str, layer: str, **options: Any) -> Answer:
        """A layer as binary glTF in `body`: a mesh without its pose, or a heightfield. Options: step
        (of a heightfield), v."""
        return self.call("GET", _place(locale, "3dtiles", layer + ".glb"), **options)

    def terrain_layer(self, locale: str, **options: Any) -> Any:
        """What readers of quantized-mesh ask first. Option: layer."""
        return self.call("GET", _place(locale, "terrain", "layer.json"), **options).json

    def terrain(self, locale: str, z: int, x: int, y: int, **options: Any) -> Answer:
        """A globe's tile as a quantized mesh, y from the south. Options: extensions
        ("octvertexnormals-metadata"), layer, v. Error 404: no ground there."""
        return self.call("GET", _place(locale, "terrain", z, x, f"{y}.terrain"), **options)

    def dem_json(self, locale: str, **options: Any) -> Any:
        """TileJSON of the ground, for maps. Options: encoding (terrarium, mapbox), style (dem,
        relief), void (edge, zero, alpha), sampling (point, mean), layer, v."""
        return self.call("GET", _place(locale, "dem.json"), **options).json

    def dem(self, locale: str, z: int, x: int, y: str, **options: Any) -> Answer:
        """A map's tile of heights (XYZ), row 0 in the north: y is "5.png", "5@2x.png", "5.f32" or
        "5.tif". f32 is in `array`. Options: encoding, style, void, sampling, layer, v, as dem_json.
        Error 404: no ground there."""
        return _as_square(self.call("GET", _place(locale, "dem", z, x, y), **options))

    def dem_geodetic(self, locale: str, z: int, x: int, y: str, **options: Any) -> Answer:
        """A globe's tile of heights, on its corners and between, row 0 in the north: y is "5.f32".
        Options: size (65); encoding, style, void, sampling, layer, v, as dem_json."""
        return _as_square(self.call("GET", _place(locale, "dem", "geodetic", z, x, y), **options))

    def tile(self, locale: str, level: int, column: int, row: int, *, format: str = "f32",
             **options: Any) -> Answer:
        """A block of 257 x 257 samples; level 0 is full resolution. Error 404: beyond the field.

        f32 is in `array`, row 0 at the smallest y, NaN: no ground; png16 and terrarium in `body`.
        Options: kind (sampled, min, max), layer.
        """
        answer = self.call("GET", _place(locale, "tiles", level, column, row), format=format,
                           **options)
        if format == "f32" and answer.body:
            answer.kind, answer.shape = "f", (TILE_SAMPLES, TILE_SAMPLES)
        return answer

    def samples(self, locale: str, layer: str, rect: Optional[Sequence[int]] = None, step: int = 1,
                *, format: str = "f32", **options: Any) -> Answer:
        """A rectangle c0, r0, cols, rows of a heightfield's samples, or every step-th of them.

        f32 and f64 are in `array` [rows][columns] in metres, row 0 at the smallest y unless
        rows="north", a NaN is a hole; r16 is in `body`, json in `samples`. Without rect: all.
        """
        answer = self.call("GET", _place(locale, "layers", layer, "samples"), rect=rect, step=step,
                           format=format, **options)
        if format in ("f32", "f64") and answer.body:
            cols, rows = (int(one) for one in answer.headers["Kota-Rect"].split(",")[2:])
            answer.kind = {"f32": "f", "f64": "d"}[format]
            answer.shape = (rows - 1) // step + 1, (cols - 1) // step + 1
        return answer

    # ---- models and patches of sand --------------------------------------------------------------

    def models(self, **options: Any) -> Answer:
        """All models, in `models`."""
        return self.call("GET", "/v1/models", **options)

    def model(self, model: str, **options: Any) -> Answer:
        """The OBJ file of a model as it was put, in `body`."""
        return self.call("GET", f"/v1/models/{quote(model, safe='')}", **options)

    def put_model(self, model: str, body: Any, media: str = "model/obj", **options: Any) -> Answer:
        """Puts a closed mesh of triangles."""
        return self.call("PUT", f"/v1/models/{quote(model, safe='')}", body=body, media=media,
                         repeatable=True, **options)

    def delete_model(self, model: str, **options: Any) -> Answer:
        """Removes a model. It is not sent again after a lost connection."""
        return self.call("DELETE", f"/v1/models/{quote(model, safe='')}", **options)

    def patches(self, locale: str, **options: Any) -> Answer:
        """The patches of a locale, in `patches`."""
        return self.call("GET", _place(locale, "patches"), **options)

    def patch(self, locale: str, patch: int, **options: Any) -> Answer:
        """One patch: its state and bodies."""
        return self.call("GET", _place(locale, "patches", patch), **options)

    def post_patch(self, locale: str, question: Mapping[str, Any], placed: Optional[str] = None,
                   **options: Any) -> Answer:
        """Makes granules of a rectangle.

        question: {"center", "size"}, x y in metres; scale, observer, depth, bodies, seed, fill,
        mode, material, deadline_ms, leave, overflow, layer as in the contract.
        """
        return self._write("POST", _place(locale, "patches"), options, json=question,
                           placed=placed)

    def delete_patch(self, locale: str, patch: int, discard: bool = False,
                     **options: Any) -> Answer:
        """Settles a patch and writes it back, or discards it. Give it time (timeout_s)."""
        return self.call("DELETE", _place(locale, "patches", patch), discard=discard or None,
                         repeatable=True, **options)

    def post_patch_body(self, locale: str, patch: int, body: Mapping[str, Any],
                        **options: Any) -> Answer:
        """Adds a body: {"model", "position"}, or {"model", "mass": 0, "path": [{"t", "position",
        "orientation"}]} which nothing pushes; orientation (x y z w), velocity, angular_velocity,
        mass (kg) or density (kg/m3)."""
        return self._write("POST", _place(locale, "patches", patch, "bodies"), options, json=body)

    def patch_patch_body(self, locale: str, patch: int, body: int, push: Mapping[str, Any],
                         **options: Any) -> Answer:
        """Pushes a body: {"velocity", "angular_velocity", "impulse"}, one or more of them."""
        return self._write("PATCH", _place(locale, "patches", patch, "bodies", body), options,
                           json=push)

    def delete_patch_body(self, locale: str, patch: int, body: int, **options: Any) -> Answer:
        """Removes a body for good; the others keep their numbers."""
        return self._write("DELETE", _place(locale, "patches", patch, "bodies", body), options)

    def post_impact(self, locale: str, body: Mapping[str, Any], placed: Optional[str] = None,
                    **options: Any) -> Answer:
        """A body hits the ground: {"model" or "radius", "mass", "position", "velocity"}, and
        observer, until ("accepted", "written"). Its fate, with the number `impact`."""
        return self._write("POST", _place(locale, "impacts"), options, json=body, placed=placed)

    def impact(self, locale: str, impact: int, placed: Optional[str] = None,
               **options: Any) -> Answer:
        """The fate of an impact: `state`, `how`, `patch`, `revision`."""
        return self.call("GET", _place(locale, "impacts", impact), placed=placed, **options)

    def patch_view(self, locale: str, patch: int, **options: Any) -> Answer:
        """A picture (PNG) of a patch, in `body`. Options: width, height (pixels); a camera, by eye
        (x, y, z), target, up, fov_y_deg.
        """
        return self.call("GET", _place(locale, "patches", patch, "view.png"), **options)

    def patch_surface(self, locale: str, patch: int, **options: Any) -> Answer:
        """The surface as it is now: `array` [rows][columns] in metres, row 0 at the smallest y.

        Option per_cell: samples along a cell's side.
        """
        answer = self.call("GET", _place(locale, "patches", patch, "surface.f32"), **options)
        if answer.body:
            cols, rows = (int(one) for one in answer.headers["Kota-Grid"].split(","))
            answer.kind, answer.shape = "f", (rows, cols)
        return answer

    def patch_granules(self, locale: str, patch: int, since: Optional[int] = None,
                       **options: Any) -> Answer:
        """The granules as they are now, in `body`: 9 float32 each, little-endian.

        since: the Kota-Step of an earlier answer; only those that moved, each after its number.
        """
        if since is not None:
            options["since"] = since
        return self.call("GET", _place(locale, "patches", patch, "granules"), **options)

    # ---- events ----------------------------------------------------------------------------------

    def events(self, since: Optional[int] = None, **options: Any) -> Feed:
        """Changes of all locales. since: the sequence of the last event that was seen.

        Option samples="f32": as for `locale_events`.
        """
        return Feed(self._transport, "/v1/events" + query_text(options), since, self._silence_s)

    def locale_events(self, locale: str, since: Optional[int] = None, **options: Any) -> Feed:
        """Changes of one locale. since: the revision of it that the caller knows.

        Options: bounds=(x0, y0, x1, y1), only changes that meet it; layer; samples="f32", the data
        of an edit then has `samples`, [rows][columns] of its rect, None: ask `samples`.
        """
        return Feed(self._transport, _place(locale, "events") + query_text(options), since,
                    self._silence_s)

    def patch_events(self, locale: str, patch: int, since: Optional[int] = None,
                     granules: Optional[int] = None) -> Feed:
        """States of a patch and poses of its bodies.

        granules: so many values of the granules a second, too, those that have moved: `granules` of
        the data is a frame as proto/feed.md has it, bytes.
        """
        return Feed(self._transport, _place(locale, "patches", patch, "events") +
                    query_text({"granules": granules}), since, self._silence_s)

    # ---- standing questions ----------------------------------------------------------------------

    def post_watch(self, locale: str, **questions: Any) -> Answer:
        """A watch: bodies of calls, each with ids, e.g. contact={"points": [[1, 2, 9]], "ids": [7]}.

        Its `watch` is the name for `watch_events`. Options: height, contact, ray, los, lit,
        contains, sweep.
        """
        return self._ask(_place(locale, "watches"), questions)

    def patch_watch(self, watch: str, **change: Any) -> Answer:
        """Removes items and adds others. Options: add, as in `post_watch`, and remove, ids."""
        return self.call("PATCH", f"/v1/watches/{quote(watch)}", json=change)

    def delete_watch(self, watch: str) -> Answer:
        """Ends a watch."""
        return self.call("DELETE", f"/v1/watches/{quote(watch)}")

    def watch_events(self, watch: str) -> Feed:
        """All answers of a watch, then those that change: `answers`, each with id and answer."""
        return Feed(self._transport, f"/v1/watches/{quote(watch)}", None, self._silence_s)
