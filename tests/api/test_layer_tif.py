"""GET …/layers/{layer}.tif: a GeoTIFF that is nowhere, by ranges and as GDAL reads it."""
import json
import math
import os
import re
import struct
import subprocess
import tempfile

from daemon import Daemon, problem
from earth import place_at
from fields import NAN, Terrain, put_layer, put_locale
from mesh_oracle import put_mesh, rectangle
from tap import HANG_S, Skip, case, check, equal, rest, rng, run, test

daemon = Daemon("--access-log")
COLS, ROWS = 700, 530
random = rng("layer_tif")
field = Terrain(COLS, ROWS, [[random.uniform(-50, 900) if random.random() > 0.01 else NAN
                              for _ in range(COLS)] for _ in range(ROWS)], (2.0, 3.0), (-700.0, 40.0))
ORIGIN = (47.2692, 11.4041)
put_locale(daemon, "alps", geo={"lat": ORIGIN[0], "lng": ORIGIN[1]})
put_layer(daemon, "alps", field)
put_locale(daemon, "utm", crs="EPSG:32633")
put_layer(daemon, "utm", field)
put_locale(daemon, "plain")
put_layer(daemon, "plain", field)
put_mesh(daemon, "plain", [rectangle(0, 0, 1, 1, 0)], layer="deck")
PATH = "/v1/locales/alps/layers/ground.tif"
ALONE = ("--config", "GDAL_DISABLE_READDIR_ON_OPEN", "EMPTY_DIR")  # look for no other files


def near(got, want, what, within):
    check(abs(got - want) <= within, f"{what}: got {got!r}, expected {want!r}")


def gdal(*words):
    try:
        ran = subprocess.run(words, capture_output=True, timeout=HANG_S, check=False)
    except FileNotFoundError:
        raise Skip(f"no {words[0]} (gdal-bin)") from None
    check(ran.returncode == 0, f"{' '.join(words)}: {ran.returncode} {ran.stderr.decode()[-800:]}")
    return ran.stdout


def remote(name="alps", query=""):
    return f"/vsicurl/{daemon.url}/v1/locales/{name}/layers/ground.tif{query}"


def tags(data, at):
    """{tag: values} of the directory there, and where the next is."""
    count, = struct.unpack("<H", data[at:at + 2])
    out = {}
    for i in range(count):
        tag, kind, n, value = struct.unpack("<HHI4s", data[at + 2 + 12 * i:at + 14 + 12 * i])
        form = {2: "B", 3: "H", 4: "I", 12: "d"}[kind]
        size = struct.calcsize(form) * n
        where, = struct.unpack("<I", value)
        out[tag] = struct.unpack(f"<{n}{form}", value[:size] if size <= 4 else data[where:where + size])
    return out, struct.unpack("<I", data[at + 2 + 12 * count:at + 6 + 12 * count])[0]


def bits(value):
    return struct.pack("<f", value) if not math.isnan(value) else b"nan"


@test("it is a cloud-optimised GeoTIFF: directories first, then tiles, the smallest overview first")
def _():
    answer = daemon.get(PATH)
    equal((answer.status, answer.media_type), (200, "image/tiff"), "answer")
    data, at, levels = answer.body, struct.unpack("<I", answer.body[4:8])[0], []
    while at:
        directory, at = tags(data, at)
        levels.append(directory)
    equal([(t[256][0], t[257][0]) for t in levels], [(700, 530), (350, 265), (175, 133)], "sizes")
    firsts = [t[324][0] for t in levels]
    check(firsts == sorted(firsts, reverse=True), f"the order of the tiles: {firsts}")
    equal(len(data), levels[0][324][-1] + 256 * 256 * 4, "bytes")
    for level, directory in enumerate(levels):
        across = -(-directory[256][0] // 256)
        equal(set(directory[325]), {262144}, "every tile has one size")
        for _ in range(300):
            c, r = random.randrange(directory[256][0]), random.randrange(directory[257][0])
            where = directory[324][r // 256 * across + c // 256] + 4 * (r % 256 * 256 + c % 256)
            got, = struct.unpack("<f", data[where:where + 4])
            want = field.h[ROWS - 1 - (r << level)][c << level]
            equal(bits(got), bits(want), f"level {level}, {c},{r}")


@test("ranges are parts of the whole, also across tiles, and at its ends")
def _():
    whole = daemon.get(PATH).body
    total = len(whole)
    for text, first, last in [("0-0", 0, 0), ("0-16383", 0, 16383), (f"{total - 1}-", total - 1, total - 1),
                              ("-10", total - 10, total - 1), (f"-{total * 2}", 0, total - 1),
                              (f"5-{total * 9}", 5, total - 1), ("0-", 0, total - 1)] + [
                                  (f"{a}-{min(a + n, total - 1)}", a, min(a + n, total - 1)) for a, n in
                                  ((random.randrange(total), random.randrange(700000)) for _ in range(30))]:
        answer = daemon.get(PATH, headers={"Range": f"bytes={text}"})
        equal(answer.status, 206, text)
        equal(answer.headers["content-range"], f"bytes {first}-{last}/{total}", text)
        check(answer.body == whole[first:last + 1], f"{text} has other bytes")
    for text in (f"{total}-", f"{total + 5}-{total + 9}", "-0"):
        answer = daemon.get(PATH, headers={"Range": f"bytes={text}"})
        equal((answer.status, answer.headers["content-range"]), (416, f"bytes */{total}"), text)
    for text in ("bytes=5-4", "bytes=a-", "bytes=0-1,5-9", "rows=0-1", "bytes=-", "bytes=1-2x",
                 "bytes=99999999999999999999-"):
        answer = daemon.get(PATH, headers={"Range": text})
        equal((answer.status, len(answer.body)), (200, total), f"{text} is ignored")
    head = daemon.ask("HEAD", PATH)
    equal((head.status, head.headers["content-length"], head.headers["accept-ranges"], head.body),
          (200, str(total), "bytes", b""), "HEAD")
    part = daemon.ask("HEAD", PATH, headers={"Range": "bytes=1-9"})
    equal((part.status, part.headers["content-length"]), (206, "9"), "HEAD of a range")


@test("an edit changes the tag and no offset; If-Range and ?v= never mix two revisions")
def _():
    revision = daemon.ok("GET", "/v1/locales/alps")["revision"]
    before = daemon.get(PATH)
    tag = before.headers["etag"]
    equal(before.headers["cache-control"], "no-cache", "without v")
    current = daemon.get(f"{PATH}?v={revision}", headers={"Range": "bytes=0-9"})
    equal((current.status, current.headers["cache-control"]),
          (206, "public, max-age=31536000, immutable"), "with v")
    equal(daemon.get(PATH, headers={"If-None-Match": tag}).status, 304, "If-None-Match")
    equal(daemon.get(PATH, headers={"If-Range": tag, "Range": "bytes=0-9"}).status, 206, "If-Range")
    daemon.ok("POST", "/v1/locales/alps/edits", {"rect": [300, 200, 2, 1], "heights": [1, 2]})
    after = daemon.get(PATH)
    check(after.headers["etag"] != tag, "the tag is the same")
    equal(len(after.body), len(before.body), "bytes")
    changed = [i for i in range(0, len(after.body), 4) if after.body[i:i + 4] != before.body[i:i + 4]]
    check(2 <= len(changed) <= 4, f"{len(changed)} words differ: the samples and their overviews")
    equal(daemon.get(PATH, headers={"If-Range": tag, "Range": "bytes=0-9"}).status, 200, "If-Range")
    problem(daemon.get(f"{PATH}?v={revision}", headers={"Range": "bytes=0-9"}), 412, pointer="v",
            limit=revision + 1, got=revision)
    problem(daemon.get(f"{PATH}?v={revision + 9}"), 422, pointer="v")
    daemon.ok("POST", "/v1/locales/alps/edits",
              {"rect": [300, 200, 2, 1], "heights": [field.h[200][300], field.h[200][301]]
               if not math.isnan(field.h[200][300] + field.h[200][301]) else [5, 6]})


@test("what is none is refused")
def _():
    problem(daemon.get("/v1/locales/plain/layers/deck.tif"), 422, pointer="layer")
    problem(daemon.get("/v1/locales/plain/layers/none.tif"), 404)
    problem(daemon.get("/v1/locales/none/layers/ground.tif"), 404)
    problem(daemon.get("/v1/locales/plain/layers/.tif"), 404)
    problem(daemon.get(f"{PATH}?v=0"), 400, pointer="v")
    problem(daemon.get(f"{PATH}?format=f32"), 400, pointer="format")


def asked(since):
    """Requests of the access log after that many bytes of it."""
    return re.findall(r"layers/ground\.tif", daemon.log_text()[since:])


@test("gdalinfo reads it in three requests and places it: an orthographic plane, UTM, or nowhere")
def _():
    since = len(daemon.log_text())
    told = json.loads(gdal("gdalinfo", *ALONE, "-json", remote()))
    check(len(asked(since)) <= 3, f"{len(asked(since))} requests")
    equal(told["size"], [COLS, ROWS], "size")
    equal([b["size"] for b in told["bands"][0]["overviews"]], [[350, 265], [175, 133]], "overviews")
    wkt = told["coordinateSystem"]["wkt"]
    check('"EPSG",9840' in wkt or "Orthographic" in wkt, wkt)
    wkt = json.loads(gdal("gdalinfo", *ALONE, "-json", remote("utm")))["coordinateSystem"]["wkt"]
    check('ID["EPSG",32633]' in wkt, wkt)
    told = json.loads(gdal("gdalinfo", *ALONE, "-json", remote("plain")))
    check("EPSG" not in json.dumps(told.get("coordinateSystem", {})), "a place of its own")
    near(told["geoTransform"][0], -700 - 1, "the corner of the first pixel", 1e-9)
    near(told["geoTransform"][3], 40 + 529 * 3 + 1.5, "its top", 1e-9)


@test("gdal_translate has the bits of an export")
def _():
    with tempfile.TemporaryDirectory(prefix="kota-tif-") as folder:
        out = os.path.join(folder, "out.raw")
        gdal("gdal_translate", "-q", "-of", "ENVI", remote(), out)
        with open(out, "rb") as file:
            got = file.read()
    export = daemon.get("/v1/locales/alps/layers/ground?format=f32").body
    rows = [export[i:i + 4 * COLS] for i in range(0, len(export), 4 * COLS)][::-1]
    equal(len(got), len(export), "bytes")
    check(got == b"".join(rows), "the samples differ")


RASTERIO = """
import sys, rasterio
from rasterio.windows import Window
with rasterio.open(sys.argv[1]) as ground:
    if len(sys.argv) == 2:
        print(ground.crs.to_string() if ground.crs else None, *ground.transform[:6], ground.nodata, flush=True)
        sys.stdout.buffer.write(ground.read(1).tobytes())
    else:  # two reads of ranges, a word between them
        for window in (Window(0, 0, 256, 256), Window(256, 256, 256, 256)):
            try:
                print(ground.read(1, window=window).tobytes().hex(), flush=True)
            except rasterio.errors.RasterioIOError:
                print("refused", flush=True)
            sys.stdin.readline()
"""


def rasterio(*words):
    """Of the distribution's Python, whatever `python3` is here."""
    command = ["/usr/bin/python3", "-c", RASTERIO, *words]
    try:
        known = subprocess.run([*command[:2], "import rasterio"], capture_output=True, check=False)
    except FileNotFoundError:
        raise Skip("no /usr/bin/python3") from None
    if known.returncode:
        raise Skip("no rasterio (python3-rasterio)")
    environment = {**os.environ, "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def north_first(data, cols):
    rows = [data[i:i + 4 * cols] for i in range(0, len(data), 4 * cols)]
    return rows[::-1]


@test("rasterio reads it over /vsicurl/: place and bits are those of an export")
def _():
    with rasterio(remote("utm")) as reader:
        line, _, got = reader.communicate()[0].partition(b"\n")
    equal(line.decode().split(), ["EPSG:32633", "2.0", "0.0", "-701.0", "0.0", "-3.0",
                                  str(40 + 529 * 3 + 1.5), "nan"], "place")
    export = daemon.get("/v1/locales/utm/layers/ground?format=f32").body
    check(got == b"".join(north_first(export, COLS)), "the samples differ")


@test("an edit between two reads of ranges: with v the second is refused, never of another revision")
def _():
    revision = daemon.ok("GET", "/v1/locales/utm")["revision"]
    export = north_first(daemon.get("/v1/locales/utm/layers/ground?format=f32").body, COLS)
    want = [b"".join(row[4 * at:4 * at + 1024] for row in export[at:at + 256]).hex().encode()
            for at in (0, 256)]
    with rasterio(remote("utm", f"?v={revision}"), "twice") as reader:
        check(reader.stdout.readline().strip() == want[0], "the first read")
        daemon.ok("POST", "/v1/locales/utm/edits",
                  {"rect": [0, 0, COLS, ROWS], "op": "add", "heights": [1.5] * (COLS * ROWS)})
        reader.stdin.write(b"\n")
        reader.stdin.flush()
        second = reader.stdout.readline().strip()
        reader.communicate(b"\n")
    check(second in (b"refused", want[1]), "the second read has another revision's heights")
    problem(daemon.get(f"/v1/locales/utm/layers/ground.tif?v={revision}"), 412, pointer="v")


@test("pixels are where the elevation endpoint has them, within a millimetre")
def _():
    places = [(random.randrange(COLS), random.randrange(ROWS)) for _ in range(200)]
    text = "\n".join(f"{c + 0.5} {r + 0.5}" for c, r in places) + "\n"
    try:
        ran = subprocess.run(["gdaltransform", "-t_srs", "EPSG:4326", "-output_xy", remote()],
                             input=text.encode(), capture_output=True, timeout=HANG_S, check=True)
    except FileNotFoundError:
        raise Skip("no gdaltransform (gdal-bin)") from None
    for (c, r), line in zip(places, ran.stdout.decode().splitlines()):
        a, b = (float(v) for v in line.split()[:2])
        lat, lng = (a, b) if abs(a - ORIGIN[0]) < 1 else (b, a)
        want = place_at(ORIGIN, -700 + c * 2, 40 + (ROWS - 1 - r) * 3)
        near(math.radians(lat - want[0]) * 6378137, 0, f"north of {c},{r}", 1e-3)
        near(math.radians(lng - want[1]) * 6378137 * math.cos(math.radians(lat)), 0, "east", 1e-3)


@rest("gdalinfo of 8192 × 8192 samples: three requests, 64 KiB")
def _():
    put_locale(daemon, "large", geo={"lat": 1, "lng": 2})
    daemon.ok("PUT", "/v1/locales/large/layers/ground?cols=8192&rows=8192&spacing=1,1",
              bytes(4 * 8192 * 8192), status=201, media="application/vnd.kota.f32")
    since = len(daemon.log_text())
    before = sum(loop["bytes_out"] for loop in daemon.ok("GET", "/v1/stats")["loops"])
    told = json.loads(gdal("gdalinfo", *ALONE, "-json", remote("large")))
    equal(told["size"], [8192, 8192], "size")
    check(len(asked(since)) <= 3, f"{len(asked(since))} requests")
    sent = sum(loop["bytes_out"] for loop in daemon.ok("GET", "/v1/stats")["loops"]) - before
    check(sent <= 64 * 1024 + 16384, f"{sent} bytes were sent, statistics among them")


@test("gdalwarp takes it to web Mercator")
def _():
    with tempfile.TemporaryDirectory(prefix="kota-tif-") as folder:
        out = os.path.join(folder, "warped.tif")
        gdal("gdalwarp", "-q", "-t_srs", "EPSG:3857", remote(), out)
        told = json.loads(gdal("gdalinfo", "-json", "-stats", out))
    low, high = told["bands"][0]["min"] if "min" in told["bands"][0] else None, None
    check(low is None or -51 <= low <= 901, f"heights from {low} {high}")


run(daemon.stop)
