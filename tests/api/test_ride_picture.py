"""docs/images/ride.png: what ride_picture.py draws, and what is to be seen on it."""
import math
import os
import shutil
import tempfile

import rides
from daemon import ROOT, Daemon
from images import read_png
from ride_picture import LIT_DOT, SHADOW_DOT, picture, png_bytes
from tap import check, equal, run, test

folder = tempfile.mkdtemp(prefix="kota-ride-")
daemon = None

drawn = []  # a quarter of the picture's sides


def mean(rows, spots):
    found = [rows[y][x] for x, y in spots]
    return sum(map(sum, found)) / (3 * len(found))


@test("the picture of the ride: day and night, the path in both colours, four ferries, the same again")
def _():
    global daemon
    rides.make_world(os.path.join(folder, "world"))
    daemon = Daemon("--world", os.path.join(folder, "world"))
    width, height = 280, 130
    drawn[:], dots = picture(daemon, width, height)
    rows = drawn
    equal((len(rows), {len(row) for row in rows}), (height, {width}), "size")
    lit_dots = [(x, y) for x, y, _, is_lit in dots if is_lit]
    dark_dots = [(x, y) for x, y, _, is_lit in dots if not is_lit]
    check(len(lit_dots) > 40 and len(dark_dots) > 20, f"{len(lit_dots)}, {len(dark_dots)} dots")
    for spots, colour in ((lit_dots, LIT_DOT), (dark_dots, SHADOW_DOT)):
        close = sum(math.dist(rows[int(y)][int(x)], colour) < 60 for x, y in spots)
        check(close > 0.6 * len(spots), f"{close} of {len(spots)} dots are {colour}")
    # the planet is bright where the sun stands over it, and dark beyond the terminator
    day = [(int(width * 0.13), int(height * 0.3)), (int(width * 0.18), int(height * 0.25))]
    night = [(int(width * 0.38), int(height * 0.75)), (int(width * 0.36), int(height * 0.8))]
    check(mean(rows, day) > 2 * mean(rows, night), f"{mean(rows, day)} and {mean(rows, night)}")
    reds = [(x, y) for y in range(height) for x in range(width // 2, width)
            if rows[y][x][0] > 150 and max(rows[y][x][1:]) < 0.62 * rows[y][x][0]]
    check(len(reds) > 60, f"{len(reds)} pixels of roofs and avatars")
    check(max(x for x, _ in reds) - min(x for x, _ in reds) > width / 6, "ferries in one place")
    small = [picture(daemon, 64, 30)[0] for _ in range(2)]
    check(small[0] == small[1], "drawn again, it is another picture")
    equal(read_png(png_bytes(rows))[4],
          [tuple(v for pixel in row for v in pixel) for row in rows], "the PNG")


@test("docs/images/ride.png is what ride_picture.py draws")
def _():
    with open(os.path.join(ROOT, "docs", "images", "ride.png"), "rb") as file:
        data = file.read()
    check(len(data) < 300 * 1024, f"{len(data)} bytes")
    width, height, channels, depth, codes = read_png(data)
    equal((width, height, channels, depth), (1120, 520, 3, 8), "header")
    far = 0
    for y, row in enumerate(drawn):
        for x, pixel in enumerate(row):
            for c in range(3):
                block = sum(codes[4 * y + j][3 * (4 * x + i) + c]
                            for j in range(4) for i in range(4)) / 16
                far += abs(block - pixel[c])
    far /= 3 * len(drawn) * len(drawn[0])
    print(f"# {far:.2f} codes apart in the mean")
    check(far < 6, f"{far} codes away from it in the mean")


def finish():
    try:
        if daemon:
            daemon.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


run(finish)
