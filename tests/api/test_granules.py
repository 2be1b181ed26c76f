"""Granules for renderers: all of a patch, and those that moved since a step; on both engines.

The truth beside them is surface.f32, which is measured of the spheres themselves: seen from above
the four spheres of each granule must have its heights.
"""
import math
import struct
import time

from daemon import check, equal, problem
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


def a_drop(on):
    place = make(on, "land", bodies=[body()], seed=5)
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
        gl = start("--gpu", "software", *RESTING)
    except Failure as failure:
        raise Skip(f"no daemon with --gpu software: {str(failure)[:200]}") from None
    with gl:
        a_drop(gl)


@test("while granules fall every step that was told is exact, and readers at once get one value")
def _():
    place = make(daemon, "land", size=[16, 16],
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
    until(daemon, place, "resting")
    step, moved, _ = granules(daemon, place, step)
    known.update(moved)
    equal(known, granules(other, place)[1], "at rest")
    check(any(0 < part < len(known) for part in parts), f"none told a part: {parts}")
    daemon.ok("DELETE", place + "?discard=true")


@test("refusals: an unknown patch, and a step that is none")
def _():
    problem(daemon.get("/v1/locales/land/patches/999/granules"), 404, "patch")
    place = make(daemon, "land", seed=7)
    for since in ("-1", "x", "1.5", ""):
        answer = daemon.get(place + f"/granules?since={since}")
        equal(answer.status, 400, f"since={since}: {answer}")
        check("since" in str(answer), f"the name of the parameter: {answer}")
    daemon.ok("DELETE", place + "?discard=true")


try:
    run()
finally:
    daemon.kill()
