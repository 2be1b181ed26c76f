"""docs/images/functions.png: what functions_picture.py draws, and that the daemon's answers are on it."""
import math
import os

from daemon import ROOT
from functions_picture import GREEN, RED, YELLOW, Place, picture, png_bytes
from images import read_png
from tap import check, equal, run, test

drawn = []  # a quarter of the picture's sides


@test("an avatar on the bridge and one beneath it, a hit, a sight that is free and one that is not")
def _():
    with Place() as daemon:
        rows, said = picture(daemon, 280, 140)
        small = [picture(daemon, 64, 32)[0] for _ in range(2)]
    drawn[:] = rows
    deck, road = said["deck"], said["road"]
    equal((deck["floor"]["layer"], deck["ceiling"]), ("bridge", None), "on the bridge")
    equal((road["floor"]["layer"], road["ceiling"]["layer"]), ("ground", "bridge"), "beneath it")
    check(road["ceiling"]["point"][2] < deck["floor"]["point"][2], "one is above the other")
    equal([sight["visible"] for sight in said["sights"]], [True, False], "sights")
    equal(said["hit"]["status"], "hit", "the mouse's ray")
    for colour in (GREEN, RED, YELLOW):
        close = sum(math.dist(pixel, colour) < 60 for row in rows for pixel in row)
        check(close > 20, f"{close} pixels of {colour}")
    for feet in (deck["floor"]["point"], road["floor"]["point"]):
        x, y, _ = said["camera"].pixel((feet[0], feet[1], feet[2] + 1))
        red, green, blue = rows[int(y)][int(x)]
        check(red > 1.6 * max(green, blue), f"no avatar at {x:.0f}, {y:.0f}: {rows[int(y)][int(x)]}")
    check(small[0] == small[1], "drawn again, it is another picture")
    equal(read_png(png_bytes(rows))[4], [tuple(v for pixel in row for v in pixel) for row in rows],
          "the PNG")


@test("docs/images/functions.png is what functions_picture.py draws; every picture is on a page")
def _():
    folder = os.path.join(ROOT, "docs", "images")
    with open(os.path.join(folder, "functions.png"), "rb") as file:
        data = file.read()
    check(len(data) < 700 * 1024, f"{len(data)} bytes")
    width, height, channels, depth, codes = read_png(data)
    equal((width, height, channels, depth), (1120, 560, 3, 8), "header")
    far = []  # letters are as large in a small picture: most pixels are compared, not all
    for y, row in enumerate(drawn):
        for x, pixel in enumerate(row):
            block = [sum(codes[4 * y + j][3 * (4 * x + i) + c] for j in range(4) for i in range(4)) / 16
                     for c in range(3)]
            far.append(max(abs(p - q) for p, q in zip(block, pixel)))
    far.sort()
    print(f"# codes apart: {far[len(far) // 2]:.1f} in the median, {far[len(far) * 3 // 4]:.1f} for 3 of 4")
    check(far[len(far) // 2] < 3 and far[len(far) * 3 // 4] < 16, "another picture")
    pages = ""
    for top in (ROOT, os.path.join(ROOT, "docs")):
        for name in os.listdir(top):
            if name.endswith(".md"):
                with open(os.path.join(top, name), encoding="utf-8") as file:
                    pages += file.read()
    for name in os.listdir(folder):
        check(f"images/{name}" in pages, f"no page shows {name}")


run()
