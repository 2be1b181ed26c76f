"""Granules for renderers: all of a patch, and those that moved since a step; on both engines.

The truth beside them is surface.f32, which is measured of the spheres themselves: seen from above
the four spheres of each granule must have its heights.
"""
import base64
import math
import struct
import time

from daemon import check, equal, problem
from events import Stream
from sand import CPU, GRANULE_M, RESTING, SPACING, body, make, second, start, until
from tap import Failure, Skip, near, run, test

MEDIA = "application/vnd.kota.granules"
CORNERS = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
RADIUS_M = 0.2

daemon = start(*CPU, *RESTING)


def granules(on, place, since=None):
    """(step, {number: 36 bytes}, headers)"""
    answer = on.get(place + "/granules" + (f"?since={since}" if since is not None else ""))
    equal((answer.status, answer.headers["content-type"]), (200, MEDIA), f"granules: {answer}")
    each = 36 if since is None else 40
    equal(len(answer.body) % each, 0, "bytes")
    found = {}
    for i in range(len(answer.body) // each):
        record = answer.body[i * each:(i + 1) * each]
        number = i if since is None else struct.unpack("<I", record[:4])[0]
        check(number not in found, f"granule {number} twice")
        found[number] = record[-36:]
    if since is None:
        equal(len(found), int(answer.headers["kota-granules"]), "Kota-Granules")
    return int(answer.headers["kota-step"]), found, answer.headers


def turned(v, q):
    """v by the quaternion x y z w."""
    x, y, z, w = q
    t = (2 * (y * v[2] - z * v[1]), 2 * (z * v[0] - x * v[2]), 2 * (x * v[1] - y * v[0]))
    return (v[0] + w * t[0] + y * t[2] - z * t[1], v[1] + w * t[1] + z * t[0] - x * t[2],
            v[2] + w * t[2] + x * t[1] - y * t[0])


def spheres(found):
    for record in found.values():
        at, q, (radius, shade) = (struct.unpack("<9f", record)[i:j] for i, j in
                                  ((0, 3), (3, 7), (7, 9)))
        near(radius, RADIUS_M, "radius", 1e-6)
        near(math.hypot(*q), 1, "length of the orientation", 1e-5)
        check(0 <= shade <= 1, f"shade {shade}")
        for corner in CORNERS:
            off = turned([c * radius / math.sqrt(2) for c in corner], q)
            yield tuple(a + b for a, b in zip(at, off)), radius


def seen_from_above(found, points):
    """The highest sphere over each point."""
    heights = [-math.inf] * len(points)
    buckets = {}
    for i, (x, y) in enumerate(points):
        buckets.setdefault((math.floor(x), math.floor(y)), []).append(i)
    for (x, y, z), radius in spheres(found):
        for c in range(math.floor(x - radius), math.floor(x + radius) + 1):
            for r in range(math.floor(y - radius), math.floor(y + radius) + 1):
                for i in buckets.get((c, r), ()):
                    rest = radius ** 2 - (points[i][0] - x) ** 2 - (points[i][1] - y) ** 2
                    if rest >= 0:
                        heights[i] = max(heights[i], z + math.sqrt(rest))
    return heights


def compare_surface(on, place, found):
    answer = on.get(place + "/surface.f32")
    c0, r0, cols, rows = (int(n) for n in answer.headers["kota-rect"].split(","))
    told = struct.unpack(f"<{cols * rows}f", answer.body)
    compared = 0
    fine = [(i + 0.5) / 16 - 0.5 for i in range(16)]
    for c, r in ((cols // 2, rows // 2), (cols // 3, rows // 2), (2 * cols // 3, rows // 3)):
        points = [((c0 + c + x) * SPACING, (r0 + r + y) * SPACING) for x in fine for y in fine]
        heights = seen_from_above(found, points)
        if min(heights) == -math.inf:
            continue  # the bed is seen between
        near(sum(heights) / len(heights), told[r * cols + c], "the surface of the granules", 0.04)
        compared += 1
    check(compared >= 1, "no sample is covered by granules")


def a_drop(on, **patch):
    place = make(on, "land", bodies=[body()], seed=5, **patch)
    until(on, place, "active")
    step, before, _ = granules(on, place)
    count = on.ok("GET", place)["granules"]
    equal(len(before), count, "granules")
    until(on, place, "resting")
    last, after, headers = granules(on, place)
    since, moved, _ = granules(on, place, step)
    equal(since, last, "step at rest")
    check(last > step and 0 < len(moved) <= count, f"{len(moved)} moved, {step} to {last}")
    equal({**before, **moved}, after, "what was, and what moved")
    equal(granules(on, place, last)[1], {}, "since the last step")
    equal(granules(on, place, 0)[1], after, "since the beginning")
    for record in after.values():
        x, y = struct.unpack("<2f", record[:8])
        check(abs(x - 16) <= 2.6 + GRANULE_M and abs(y - 16) <= 2.6 + GRANULE_M, f"at {x}, {y}")
    equal(headers["kota-state"], "resting", "Kota-State")
    compare_surface(on, place, after)
    while on.ok("GET", place).get("revision") is None:  # what it writes makes one more report
        time.sleep(0.01)
    tag = granules(on, place)[2]["etag"]
    again = on.get(place + "/granules", headers={"If-None-Match": tag})
    equal((again.status, len(again.body)), (304, 0), "at rest")
    on.ok("DELETE", place + "?discard=true")
    equal(granules(on, place)[:2], (0, {}), "of a patch that has ended")
    check("etag" not in granules(on, place)[2], "an ETag of a patch that has ended")


@test("by the C engine: all granules, those that moved since a step, and their surface")
def _():
    a_drop(daemon)


@test("the same by OpenGL")
def _():
    try:
        gl = start("--gpu", "software", *RESTING, "--patch-active-max-ms", "800")
    except Failure as failure:
        raise Skip(f"no daemon with --gpu software: {str(failure)[:200]}") from None
    with gl:
        a_drop(gl, size=[4, 4], depth=1.8)


@test("while granules fall every step that was told is exact, and readers at once get one value")
def _():
    place = make(daemon, "land", size=[10, 10],
                 bodies=[body(velocity=[0, 0, 0], mass=300)], seed=6)
    until(daemon, place, "active")
    other = second(daemon)
    step, known, _ = granules(daemon, place)
    parts = []
    while daemon.ok("GET", place)["state"] != "resting":
        since, moved, _ = granules(daemon, place, step)
        check(since >= step and (bool(moved) == (since > step)), f"{step} to {since}")
        known.update(moved)
        parts.append(len(moved))
        now, all_of_them, _ = granules(other, place)
        if now == since:
            equal(known, all_of_them, f"at step {now}")
        step = since
        time.sleep(0.02)
    until(daemon, place, "resting")
    step, moved, _ = granules(daemon, place, step)
    known.update(moved)
    time.sleep(0.1)  # longer than a value is taken for the next one
    late, all_of_them, _ = granules(other, place)
    equal(late, step, "the step at rest")
    equal(known, all_of_them, "at rest")
    check(any(0 < part < len(known) for part in parts), f"none told a part: {parts}")
    daemon.ok("DELETE", place + "?discard=true")


def turn_of(bits):
    """x y z w of the smallest three."""
    largest = bits >> 30
    parts = [((bits >> shift & 1023) / 1023 * 2 - 1) / math.sqrt(2) for shift in (0, 10, 20)]
    parts.insert(largest, math.sqrt(max(0, 1 - sum(p * p for p in parts))))
    return parts


def take_frame(known, event):
    """The frame's granules into known, each (place, orientation, radius, shade, edge of the box)."""
    frame = base64.b64decode(event.data["granules"])
    version, count, records, radius, *box, step = struct.unpack_from("<III7fQ", frame)
    equal((version, len(frame)), (1, 48 + 16 * records), "the frame")
    check(0 < records <= 4096, f"{records} granules in a frame")
    for i in range(records):
        number, bits, x, y, z, shade, zero = struct.unpack_from("<IIHHHBB", frame, 48 + 16 * i)
        check(number < count and zero == 0, f"granule {number} of {count}")
        known[number] = ([low + q * unit for low, unit, q in zip(box[:3], box[3:], (x, y, z))],
                         turn_of(bits), radius, shade / 255, box[3:])
    return step, records


def compare_frames(known, exact):
    equal(set(known), set(exact), "the granules of frames")
    for number, record in exact.items():
        values, (place, turn, radius, shade, units) = struct.unpack("<9f", record), known[number]
        for a, b, unit in zip(values[:3], place, units):
            near(b, a, f"granule {number}", unit / 2 + 4e-6)
        half = min(1, abs(sum(a * b for a, b in zip(values[3:7], turn))))
        check(math.degrees(2 * math.acos(half)) < 0.3, f"granule {number} is turned by {half}")
        near(radius, values[7], "radius", 1e-6)
        near(shade, values[8], "shade", 1e-6)


@test("frames of the stream: what has moved, quantised; a reader that stops and one that comes late have all in the end")
def _():
    place = make(daemon, "land", size=[10, 10], bodies=[body(velocity=[0, 0, 0], mass=300)], seed=8)
    until(daemon, place, "active")
    parts, known, late, seen = [], {}, {}, 0
    with Stream(daemon.port, place + "/events?granules=20") as stream, \
            Stream(daemon.port, place + "/events?granules=1", receive_bytes=4096) as idle, \
            Stream(daemon.port, place + "/events") as plain:
        until(daemon, place, "resting")
        last, exact, _ = granules(daemon, place)
        while seen < last:
            event = stream.event()
            if event.name == "granules":
                step, records = take_frame(known, event)
                check(step >= seen, f"step {step} after {seen}")
                seen = step
                parts.append(records)
        compare_frames(known, exact)
        check(any(part < len(exact) for part in parts), f"none had a part: {parts}")
        step = 0
        while step < last:
            event = idle.event()
            if event.name == "granules":
                step, _records = take_frame(late, event)
        compare_frames(late, exact)
        with Stream(daemon.port, place + "/events?granules=3") as after:
            fresh, step = {}, 0
            while len(fresh) < len(exact):
                event = after.event()
                if event.name == "granules":
                    take_frame(fresh, event)
            compare_frames(fresh, exact)
        daemon.ok("DELETE", place + "?discard=true")
        names = {event.name for event in plain.rest()}
        equal(names, {"state", "poses"}, "without granules=")


@test("refusals: an unknown patch, and a step that is none")
def _():
    problem(daemon.get("/v1/locales/land/patches/999/granules"), 404, "patch")
    place = make(daemon, "land", seed=7)
    for since in ("-1", "x", "1.5", ""):
        answer = daemon.get(place + f"/granules?since={since}")
        equal(answer.status, 400, f"since={since}: {answer}")
        check("since" in str(answer), f"the name of the parameter: {answer}")
    for rate in ("0", "21", "x", ""):
        problem(daemon.get(place + f"/events?granules={rate}"), 400, "granules")
    daemon.ok("DELETE", place + "?discard=true")


try:
    run()
finally:
    daemon.kill()
