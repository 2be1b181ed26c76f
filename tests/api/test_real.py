"""Real terrain: SRTM tiles against their GDAL oracle, PNG copies against originals, ASC grids."""
import csv
import json
import math
import struct

from daemon import Daemon, data_path
from images import read_png
from tap import Skip, case, check, equal, near, run, test

daemon = Daemon()
HGT = "application/vnd.kota.hgt"
PNG = "image/png"
ASC = "application/vnd.kota.asc"


def load(name, path, query, media, **manifest):
    with open(path, "rb") as file:
        body = file.read()
    daemon.ask("DELETE", f"/v1/locales/{name}")
    daemon.ok("PUT", f"/v1/locales/{name}", manifest, status=201)
    return daemon.ok("PUT", f"/v1/locales/{name}/layers/ground?{query}", body, status=201,
                     media=media)


def heights(name, points, interp="triangle"):
    got = []
    for i in range(0, len(points), 5000):
        got += daemon.ok("POST", f"/v1/locales/{name}/height",
                         {"points": points[i:i + 5000], "interp": interp})["results"]
    return got


def tiles(name, cols, rows, **_):
    """All samples as float32, through f32 tiles: rows from the smallest y."""
    field = [[math.nan] * cols for _ in range(rows)]
    for row in range((rows - 2) // 256 + 1):
        for column in range((cols - 2) // 256 + 1):
            answer = daemon.get(f"/v1/locales/{name}/tiles/0/{column}/{row}?format=f32")
            equal(answer.status, 200, f"tile {column}/{row}")
            values = struct.unpack("<66049f", answer.body)
            for j in range(min(257, rows - row * 256)):
                width = min(257, cols - column * 256)
                field[row * 256 + j][column * 256:column * 256 + width] = (
                    values[j * 257:j * 257 + width])
    return field


def same(a, b, what):
    differing = [(c, r) for r, (p, q) in enumerate(zip(a, b)) for c, (x, y) in enumerate(zip(p, q))
                 if x != y and not (math.isnan(x) and math.isnan(y))]
    check(not differing and len(a) == len(b),
          f"{what}: {len(differing)} samples differ, the first at {differing[:3]}")


# ---- SRTM and its oracle --------------------------------------------------------------------------


def oracle_rows():
    path = data_path("rasters", "srtm3_N42E001", "srtm3_N42E001.oracle.csv")
    with open(path) as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    check(len(rows) >= 200, f"{len(rows)} rows")
    return rows


# Rows of the oracle count from the north, ours from the south. North-west to south-east is then
# from (0,1) to (1,0): the diagonal of `anti`. North-east to south-west is `main`.
COLUMNS = (("triangle", "anti", "tri_diag_nw_se"), ("triangle", "main", "tri_diag_ne_sw"),
           ("bilinear", "anti", "bilinear"), ("nearest", "anti", "nearest_valonly"))


def srtm_agrees(interp, triangulation, column):
    rows = oracle_rows()
    with open(data_path("rasters", "srtm3_N42E001", "N42E001.hgt"), "rb") as file:
        name = f"srtm-{triangulation}"
        if daemon.get(f"/v1/locales/{name}").status == 404:
            daemon.ok("PUT", f"/v1/locales/{name}", {"triangulation": triangulation}, status=201)
            daemon.ok("PUT", f"/v1/locales/{name}/layers/ground?spacing=1,1&flip_y=true",
                      file.read(), status=201, media=HGT)
    points = [[float(row["col"]), 1200 - float(row["row"])] for row in rows]
    compared = 0
    for row, point, item in zip(rows, points, heights(name, points, interp)):
        what = f"{interp} at col {row['col']}, row {row['row']} ({row['kind']})"
        text = row[column]
        if interp == "nearest":
            # A tie is rounded up by the oracle in its rows, which is down in ours.
            if any(abs(float(row[k]) % 1 - 0.5) < 1e-9 for k in ("col", "row")):
                continue
            if float(text) == -32768:
                equal((item["status"], item["height"]), ("hole", None), what)
            else:
                equal((item["status"], item["height"]), ("ok", float(text)), what)
        elif not text:
            # The oracle leaves a cell empty when a corner of non-zero weight is void; one of our
            # two triangles may still stand there.
            if interp == "bilinear":
                equal((item["status"], item["height"]), ("hole", None), what)
            continue
        else:
            equal(item["status"], "ok", what)
            near(item["height"], float(text), what, 1e-6)
        compared += 1
    check(compared > 190, f"only {compared} rows compared")


for interp_, triangulation_, column_ in COLUMNS:
    case(f"SRTM N42E001, {interp_} with {triangulation_}, is the oracle's {column_}", srtm_agrees,
         interp_, triangulation_, column_)


@test("the PNG copy of an SRTM tile gives every sample of the original")
def _():
    load("hgt", data_path("rasters", "srtm3_N42E001", "N42E001.hgt"), "spacing=1,1&flip_y=true",
         HGT)
    locale = load("png", data_path("rasters", "srtm3_N42E001", "srtm3_N42E001.png"),
                  "spacing=1,1&flip_y=true&height_offset=348&nodata=0", PNG)
    equal((locale["layers"][0]["cols"], locale["layers"][0]["rows"]), (1201, 1201), "size")
    a, b = tiles("hgt", 1201, 1201), tiles("png", 1201, 1201)
    same(a, b, "hgt and png")
    with open(data_path("rasters", "srtm3_N42E001", "N42E001.hgt"), "rb") as file:
        raw = struct.unpack(">1442401h", file.read())
    for r in (0, 1, 256, 257, 600, 1200):
        for c in range(0, 1201, 7):
            value = raw[(1200 - r) * 1201 + c]
            got = a[r][c]
            check(math.isnan(got) if value == -32768 else got == value, f"({c},{r}): {got} {value}")


@test("two SRTM tiles meet: the south edge of N42E001 is the north edge of N41E001")
def _():
    load("north", data_path("rasters", "srtm3_N42E001", "N42E001.hgt"), "spacing=1,1&flip_y=true",
         HGT)
    load("south", data_path("rasters", "srtm3_N41E001", "N41E001.hgt"), "spacing=1,1&flip_y=true",
         HGT)
    a = heights("north", [[c, 0] for c in range(1201)], "nearest")
    b = heights("south", [[c, 1200] for c in range(1201)], "nearest")
    equal(a, b, "the shared line of latitude")
    stats = daemon.ok("GET", "/v1/locales/south")
    equal(stats["bounds"]["min"][2], -20, "lowest")
    equal(stats["bounds"]["max"][2], 1204, "highest")


@test("the vertical ray, the profile and the contact agree with height on SRTM")
def _():
    rows = oracle_rows()
    if daemon.get("/v1/locales/srtm-anti").status == 404:
        raise Skip("the tile is not loaded")
    points = [[float(row["col"]), 1200 - float(row["row"])] for row in rows]
    want = heights("srtm-anti", points)
    rays = daemon.ok("POST", "/v1/locales/srtm-anti/ray",
                     {"rays": [{"origin": [*p, 9000], "direction": [0, 0, -1]} for p in points]})
    contact = daemon.ok("POST", "/v1/locales/srtm-anti/contact",
                        {"points": [[*p, 9000] for p in points]})
    for p, h, ray, foot in zip(points, want, rays["results"], contact["results"]):
        if h["status"] != "ok":
            continue
        equal(ray["status"], "hit", f"ray at {p}")
        near(ray["point"][2], h["height"], f"ray at {p}", 1e-9, 1000)
        near(foot["floor"]["point"][2], h["height"], f"contact at {p}", 1e-9, 1000)


# ---- the other rasters -------------------------------------------------------------------------------


def read_asc(path):
    """(header, rows as they stand in the file)."""
    header, values = {}, []
    with open(path) as file:
        for line in file:
            words = line.split()
            if len(words) == 2 and words[0][0].isalpha():
                header[words[0].lower()] = float(words[1])
            else:
                values += [float(w) for w in words]
    cols = int(header["ncols"])
    return header, [values[i:i + cols] for i in range(0, len(values), cols)]


def grid(name):
    path = data_path("rasters", name, name + ".asc")
    header, rows = read_asc(path)
    locale = load(name, path, "flip_y=true", ASC)
    layer = locale["layers"][0]
    cols, count = int(header["ncols"]), int(header["nrows"])
    equal((layer["cols"], layer["rows"]), (cols, count), "size")
    equal(layer["spacing"], [header["cellsize"]] * 2, "spacing")
    void = header.get("nodata_value")
    want = [[math.nan if v == void else v for v in row] for row in rows[::-1]]
    same(tiles(name, cols, count), want, name)
    return locale, want


@test("volcano.asc: every sample, 94 to 195 m")
def _():
    locale, _ = grid("volcano")
    equal((locale["bounds"]["min"][2], locale["bounds"]["max"][2]), (94, 195), "heights")


@test("hugo_site.asc: every sample, 2028 of them void")
def _():
    locale, want = grid("hugo_site")
    equal(sum(math.isnan(v) for row in want for v in row), 2028, "voids")
    equal((locale["bounds"]["min"][2], locale["bounds"]["max"][2]), (1660, 1711), "heights")


@test("hugo_site.png with its meta.json is hugo_site.asc")
def _():
    grid("hugo_site")
    with open(data_path("rasters", "hugo_site", "meta.json")) as file:
        json.load(file)
    load("hugo-png", data_path("rasters", "hugo_site", "hugo_site.png"),
         "spacing=10,10&flip_y=true&height_offset=1659&nodata=0", PNG)
    same(tiles("hugo_site", 76, 55), tiles("hugo-png", 76, 55), "asc and png")


@test("lidar_1m: the 16-bit copy is within its stated error of the float32 copy")
def _():
    load("lidar", data_path("rasters", "lidar_1m", "lidar_1m.f32"),
         "cols=400&rows=400&spacing=1,1&flip_y=true", "application/vnd.kota.f32")
    load("lidar-png", data_path("rasters", "lidar_1m", "lidar_1m.png"),
         "spacing=1,1&flip_y=true&height_offset=379.658858&height_scale=0.00047456&nodata=0", PNG)
    worst = max(abs(x - y) for p, q in zip(tiles("lidar", 400, 400), tiles("lidar-png", 400, 400))
                for x, y in zip(p, q))
    check(worst < 0.000237 + 4e-5, f"largest difference {worst}")


@test("apollo15_lroc_8bit.png: an 8-bit image gives height_offset + height_scale · code")
def _():
    path = data_path("rasters", "apollo15_lroc_8bit", "apollo15_lroc_8bit.png")
    with open(path, "rb") as file:
        width, height, channels, depth, rows = read_png(file.read())
    equal((width, height, channels, depth), (257, 257, 1, 8), "the image")
    load("apollo", path, "spacing=2.0078,2.0078&flip_y=true&height_offset=-45"
         "&height_scale=0.192157", PNG)
    got = tiles("apollo", 257, 257)
    for r in range(0, 257, 16):
        for c in range(0, 257, 5):
            near(got[r][c], -45 + 0.192157 * rows[256 - r][c], f"({c},{r})", 1e-6)


@test("puget_1k.png: 1025 x 1025 samples of 0.1 m")
def _():
    path = data_path("rasters", "puget_1k", "puget_1k.png")
    locale = load("puget", path, "spacing=160,160&flip_y=true&height_scale=0.1", PNG)
    near(locale["bounds"]["max"][2], 4379.8, "highest", 1e-6)
    near(locale["bounds"]["min"][2], 0, "lowest")
    equal(locale["bounds"]["max"][:2], [163840, 163840], "extent")
    stats = daemon.ok("GET", "/v1/locales/puget/layers/ground/stats")
    equal((stats["tiles"], stats["samples"]), (16, 1025 * 1025), "tiles")


run(daemon.stop)
