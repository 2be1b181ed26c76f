"""PUT of image/tiff: what GDAL writes, in every variant, is what GDAL reads of it; kota's own comes
back; what is no grid of heights is refused."""
import contextlib
import json
import math
import os
import re
import shutil
import struct
import subprocess
import tempfile

from daemon import F32, Daemon, problem
from fields import NAN, Terrain, put_layer, put_locale
from oracle import f32
from tap import ALL, Skip, check, equal, rng, run, test
from tiffs import ASCII, DOUBLE, LONG, SHORT, keys, placed, tags_of, text, tiff

TIFF = "image/tiff"
daemon = Daemon()
folder = tempfile.TemporaryDirectory(prefix="kota-tiff-")
COLS, ROWS = 93, 71
random = rng("tiff")
made = iter(range(10000))


@contextlib.contextmanager
def case(what):
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from error


def path(name):
    return os.path.join(folder.name, name)


def gdal(*words):
    if not shutil.which(words[0]):
        raise Skip(f"no {words[0]} (gdal-bin)")
    ran = subprocess.run(words, capture_output=True, check=False)
    check(ran.returncode == 0, f"{' '.join(words)}: {ran.stderr.decode()[-600:]}")
    return ran.stdout


def source():
    """An ASC with holes, whole numbers from -3000 to 8000."""
    name = path("source.asc")
    if not os.path.exists(name):
        with open(name, "w", encoding="ascii") as file:
            file.write(f"ncols {COLS}\nnrows {ROWS}\nxllcorner 0\nyllcorner 0\ncellsize 1\n"
                       "NODATA_value -9999\n")
            for _ in range(ROWS):
                print(*(-9999 if random.random() < 0.05 else random.randrange(0, 240)
                        for _ in range(COLS)), file=file)
    return name


UTM = ("-a_srs", "EPSG:32632", "-a_ullr", "600000", "5200000", "600930", "5199290")


def translate(*options, name=None, of=None):
    name = name or path(f"{next(made)}.tif")
    gdal("gdal_translate", "-q", *options, of or source(), name)
    return name


def read_by_gdal(name):
    """GDAL's samples as float32, the north row first; NaN where its only band has no data."""
    raw = path(f"{next(made)}.raw")
    gdal("gdal_translate", "-q", "-of", "ENVI", "-ot", "Float32", name, raw)
    with open(raw, "rb") as file:
        data = file.read()
    with open(raw[:-4] + ".hdr", encoding="utf-8") as file:
        head = dict(re.findall(r"^(samples|lines|bands|data ignore value) *= *(\S+)$", file.read(), re.M))
    cols, rows = int(head["samples"]), int(head["lines"]) * int(head["bands"])
    values = struct.unpack(f"<{cols * rows}f", data)
    if "data ignore value" in head and head["bands"] == "1":
        none = f32(float(head["data ignore value"]))
        values = [NAN if value == none else value for value in values]
    return [list(values[r * cols:(r + 1) * cols]) for r in range(rows)]


def all_by_gdal(names):
    """The same of files of one size and place, each of one band, by three processes."""
    stack = path("stack.vrt")
    gdal("gdalbuildvrt", "-q", "-separate", stack, *names)
    rows = read_by_gdal(stack)
    bands = json.loads(gdal("gdalinfo", "-json", stack))["bands"]
    equal(len(bands), len(names), "bands")
    return [[[NAN if value == none else value for value in row] for row in rows[ROWS * i:ROWS * (i + 1)]]
            for i, none in enumerate(f32(band.get("noDataValue", math.inf)) for band in bands)]


def put(name, data, query="", status=201, manifest=None, layer="ground"):
    if manifest is not False:
        put_locale(daemon, name, **(manifest or {}))
    return daemon.ask("PUT", f"/v1/locales/{name}/layers/{layer}{query}", data, media=TIFF) \
        if status is None else daemon.ok("PUT", f"/v1/locales/{name}/layers/{layer}{query}", data,
                                         status=status, media=TIFF)


def samples(name, layer="ground"):
    """The layer's samples, the north row first, and its headers."""
    answer = daemon.ask("GET", f"/v1/locales/{name}/layers/{layer}?format=f32", media=F32)
    equal(answer.status, 200, "export")
    cols, rows = int(answer.headers["kota-cols"]), int(answer.headers["kota-rows"])
    values = struct.unpack(f"<{cols * rows}f", answer.body)
    return [list(values[r * cols:(r + 1) * cols]) for r in range(rows)][::-1]


def same(got, want, what):
    equal((len(got), len(got[0])), (len(want), len(want[0])), f"{what}: size")
    if got == want:
        return
    for r, (a, b) in enumerate(zip(got, want)):
        for c, (x, y) in enumerate(zip(a, b)):
            check(x == y or (math.isnan(x) and math.isnan(y)),
                  f"{what}: column {c} of row {r} is {x!r}, GDAL reads {y!r}")


def read(name):
    with open(name, "rb") as file:
        return file.read()


VARIANTS = [("strips", ()), ("one strip", ("-co", f"BLOCKYSIZE={ROWS}")),
            ("tiles", ("-co", "TILED=YES", "-co", "BLOCKXSIZE=32", "-co", "BLOCKYSIZE=16")),
            ("BigTIFF", ("-co", "BIGTIFF=YES")), ("big-endian", ("-co", "ENDIANNESS=BIG")),
            ("big-endian tiles", ("-co", "ENDIANNESS=BIG", "-co", "TILED=YES", "-co", "COMPRESS=LZW")),
            ("sparse", ("-co", "SPARSE_OK=TRUE"))]
PACKINGS = ["DEFLATE", "LZW", "ZSTD", "LZMA", "PACKBITS", "LERC"]
TYPES = ["Byte", "Int16", "UInt16", "Int32", "UInt32", "Float32", "Float64"]


@test("strips, tiles, compressions, predictors and types are read as GDAL reads them")
def _():
    files = [(what, ("-ot", "Float32", *options)) for what, options in VARIANTS]
    files += [(f"{packing} {kind} {shape}",
               ("-ot", kind, "-co", f"COMPRESS={packing}", *(("-co", "TILED=YES") if shape else ())))
              for i, packing in enumerate(PACKINGS) for j, kind in enumerate(("Int16", "Float32"))
              for k, shape in enumerate(("", "tiled")) if ALL or (i + j + k) % 2 == 0]
    files += [(f"{kind} predictor {predictor}",
               ("-ot", kind, "-co", "COMPRESS=DEFLATE", "-co", f"PREDICTOR={predictor}"))
              for kind, predictor in (("Int16", 2), ("UInt16", 2), ("Float32", 3), ("Float64", 3))]
    files += [(kind, ("-ot", kind, "-a_nodata", "239" if kind[0] in "BU" else "-9999"))
              for kind in TYPES]
    names = [translate(*UTM, *options) for _, options in files]
    for i, ((what, _), name, want) in enumerate(zip(files, names, all_by_gdal(names))):
        with case(what):
            locale = put(f"v{i}", read(name))
            same(samples(f"v{i}"), want, what)
            layer = locale["layers"][0]
            equal((locale["crs"], layer["spacing"], layer["origin"]),
                  ("EPSG:32632", [10, 10], [600005, 5199295]), what)


@test("a cloud-optimised one is read at full resolution, its overviews are not")
def _():
    name = translate(*UTM, "-of", "COG", "-outsize", "700", "560", "-r", "bilinear")
    want, info = read_by_gdal(name), json.loads(gdal("gdalinfo", "-json", name))
    check(info["bands"][0].get("overviews"), "it has overviews")
    put("cog", read(name))
    same(samples("cog"), want, "COG")


@test("coordinates: areas and points, feet, degrees, a matrix, none")
def _():
    for i, (what, options, crs, spacing, origin) in enumerate([
            ("points", (*UTM, "-mo", "AREA_OR_POINT=Point"), "EPSG:32632", [10, 10], [600005, 5199295]),
            ("web Mercator", ("-a_srs", "EPSG:3857", *UTM[2:]), "EPSG:3857", [10, 10],
             [600005, 5199295]),
            ("US survey feet", ("-a_srs", "EPSG:2263", *UTM[2:]), None,
             [10 * 1200 / 3937] * 2, [600005 * 1200 / 3937, 5199295 * 1200 / 3937]),
            ("metres without a system", UTM[2:], None, [10, 10], [600005, 5199295])]):
        with case(what):
            locale = put(f"c{i}", read(translate(*options)))
            layer = locale["layers"][0]
            equal((locale.get("crs"), locale["import"]["crs"]), (crs, crs), "crs")
            for got, want in zip(layer["spacing"] + layer["origin"], spacing + origin):
                check(abs(got - want) <= 1e-9 * abs(want), f"{got!r} is not {want!r}")
    bare = read(translate("-co", "PROFILE=BASELINE"))
    locale = put("c-none", bare, "?spacing=2,3&flip_y=true&nodata=-9999")
    equal((locale["layers"][0]["spacing"], locale["layers"][0]["origin"], locale["import"]["geo"]),
          ([2, 3], [0, 0], None), "placed by options")
    same(samples("c-none"), read_by_gdal(source()), "flipped by option")
    problem(put("c-nothing", bare, status=None), 400, "spacing", pointer="spacing")


@test("degrees become a plane at the grid's middle, and the locale knows its place")
def _():
    name = translate("-a_srs", "EPSG:4326", "-a_ullr", "11", "47.5", "11.0465", "47.4645")
    locale = put("degrees", read(name))
    geo, layer = locale["geo"], locale["layers"][0]
    check(abs(geo["lat"] - 47.48225) < 1e-9 and abs(geo["lng"] - 11.02325) < 1e-9, f"geo {geo}")
    equal(locale["import"]["geo"], geo, "import")
    check(0 < locale["import"]["stretch"] < 1e-3, f"stretch {locale['import']['stretch']}")
    for axis, want in enumerate((75412.0 * 0.0005, 111185.0 * 0.0005)):  # metres a degree at 47.48
        check(abs(layer["spacing"][axis] / want - 1) < 1e-3, f"spacing {layer['spacing']}")
        count = (COLS, ROWS)[axis]
        equal(layer["origin"][axis], -layer["spacing"][axis] * (count - 1) / 2, "origin")
    again = daemon.ok("PUT", "/v1/locales/degrees/layers/ground", read(name), media=TIFF)
    equal(again["geo"], geo, "again")


@test("a locale with a place takes a file of the same place, and others only by an origin")
def _():
    data = read(translate(*UTM))
    locale = put("same", data, manifest={"crs": "EPSG:32632", "title": "kept"})
    equal((locale["crs"], locale["title"]), ("EPSG:32632", "kept"), "the same system")
    for manifest in ({"crs": "EPSG:25832"}, {"geo": {"lat": 47, "lng": 11}}):
        name = f"other{next(made)}"
        problem(put(name, data, status=None, manifest=manifest), 422, "EPSG:32632", "origin",
                pointer="origin")
        equal(daemon.ok("GET", f"/v1/locales/{name}")["layers"], [], "nothing changed")
        locale = put(name, data, "?origin=5,6", manifest=False)
        equal((locale["layers"][0]["origin"], locale["layers"][0]["spacing"], locale.get("crs")),
              ([5, 6], [10, 10], manifest.get("crs")), "placed by the option")
    put_layer(daemon, put_locale(daemon, "mixed")["id"], Terrain(2, 2, [[1, 2], [3, 4]]), layer="old")
    locale = put("mixed", data, manifest=False)
    equal((locale.get("crs"), locale["import"]["crs"]), (None, "EPSG:32632"),
          "other layers keep the locale's frame")


@test("what kota writes comes back, bit for bit: heights, holes and place")
def _():
    field = Terrain(300, 290, [[NAN if random.random() < 0.02 else random.uniform(-500, 4000)
                                for _ in range(300)] for _ in range(290)],
                    (2.5, 5.0), (-375.0, 1000.5))
    for name, manifest in (("out-geo", {"geo": {"lat": 47.2692, "lng": 11.4041}}),
                           ("out-crs", {"crs": "EPSG:32633"}), ("out-none", {})):
        with case(name):
            put_locale(daemon, name, **manifest)
            put_layer(daemon, name, field)
            data = daemon.get(f"/v1/locales/{name}/layers/ground.tif").body
            locale = put("back-" + name, data)
            equal({key: locale.get(key) for key in ("geo", "crs")},
                  {key: manifest.get(key) for key in ("geo", "crs")}, "place")
            equal((locale["layers"][0]["spacing"], locale["layers"][0]["origin"]),
                  ([2.5, 5.0], [-375.0, 1000.5]), "grid")
            for form in ("?format=f32", ".tif"):
                a, b = (daemon.get(f"/v1/locales/{n}/layers/ground{form}").body
                        for n in (name, "back-" + name))
                check(a == b, f"{form} differs")


@test("scale, offset and units of height count, unless the request has its own; no-data as GDAL's")
def _():
    scaled = translate(*UTM, "-ot", "Int16", "-a_scale", "0.5", "-a_offset", "-20")
    want = [[-20 + 0.5 * value for value in row] for row in read_by_gdal(scaled)]
    locale = put("scaled", read(scaled))
    same(samples("scaled"), want, "scaled")
    equal((locale["import"]["height_scale"], locale["import"]["height_offset"]), (0.5, -20), "import")
    put("rescaled", read(scaled), "?height_scale=2")
    same(samples("rescaled"), [[2 * value for value in row] for row in read_by_gdal(scaled)], "own")
    floats = b"".join(struct.pack("<f", value) for value in (1, 2, 3, -3.4028235e38))
    unit = keys((1024, 1), (1025, 1), (3072, 32632), (3076, 9001), (4099, 9002))
    tags = tags_of(2, 2, **placed(), t34735=unit, t42113=text("-3.4028234663852886e+38"))
    locale = put("feet", tiff(tags, floats))
    equal(locale["import"]["vertical_unit_m"], 0.3048, "vertical unit")
    same(samples("feet"), [[struct.unpack("<f", struct.pack("<f", 0.3048 * value))[0]
                            for value in row] for row in ((1, 2), (3, NAN))], "feet")
    tags = tags_of(2, 2, **placed(), t34735=keys((1024, 1), (3072, 32632), (4099, 9999)))
    problem(put("fathoms", tiff(tags, floats), status=None), 422, "9999", pointer="height_scale")
    put("metres-said", tiff(tags, floats), "?height_scale=1&nodata=3")
    check(math.isnan(samples("metres-said")[1][0]), "the request's no-data")


@test("half a pixel: a point is at its coordinates, an area's sample at the middle; ties elsewhere")
def _():
    floats = struct.pack("<4f", 1, 2, 3, 4)
    for name, kind, tie, origin in (("area", 1, (0, 0, 0, 1000, 2000, 0), [1005, 1985]),
                                    ("point", 2, (0, 0, 0, 1000, 2000, 0), [1000, 1990]),
                                    ("tied", 1, (2, 2, 0, 1000, 2000, 0), [985, 2005])):
        data = tiff(tags_of(2, 2, **placed(10, tie), t34735=keys((1024, 1), (1025, kind), (3072, 32632))),
                    floats)
        locale = put(name, data)
        equal(locale["layers"][0]["origin"], origin, name)
        same(samples(name), [[1, 2], [3, 4]], name)
        same(read_whole(data), [[1, 2], [3, 4]], name)
    south = [10, 0, 0, 1000, 0, 10, 0, 2000, 0, 0, 0, 0, 0, 0, 0, 1]
    locale = put("south-up", tiff(tags_of(2, 2, t34264=(DOUBLE, south), t34735=keys((1024, 1))), floats))
    equal(locale["layers"][0]["origin"], [1005, 2005], "rows from the south")
    same(samples("south-up"), [[3, 4], [1, 2]], "rows from the south")


def read_whole(data):
    name = path(f"{next(made)}.tif")
    with open(name, "wb") as file:
        file.write(data)
    return read_by_gdal(name) if shutil.which("gdalinfo") else [[1, 2], [3, 4]]


FLOATS = struct.pack("<4f", 1, 2, 3, 4)
MATRIX = [10, 3, 0, 1000, 3, -10, 0, 2000, 0, 0, 0, 0, 0, 0, 0, 1]
WEST = [-10, 0, 0, 1000, 0, -10, 0, 2000, 0, 0, 0, 0, 0, 0, 0, 1]
REFUSED = [
    ("no bytes", b"", 400, ("TIFF",)),
    ("another file", b"hello world" * 9, 400, ("TIFF",)),
    ("a head alone", tiff(tags_of(2, 2), FLOATS)[:8], 400, ("TIFF",)),
    ("cut samples", tiff(tags_of(2, 2), FLOATS)[:-3], 400, ("column 0",)),
    ("no sizes", tiff(tags_of(2, 2, t256=None), FLOATS), 400, ("TIFF",)),
    ("one column", tiff(tags_of(1, 4), FLOATS), 422, ("2 x 2",)),
    ("a long side", tiff(tags_of(2 ** 20 + 1, 2), FLOATS), 413, ("1048576",)),
    ("too many samples", tiff(tags_of(2 ** 18, 2 ** 18), FLOATS), 413, ("134217728",)),
    ("three samples", tiff(tags_of(2, 2, t277=(SHORT, [3]), t258=(SHORT, [8] * 3), t339=None,
                                   t262=(SHORT, [2])), bytes(12)), 422, ("3 samples",)),
    ("colours of a palette", tiff(tags_of(2, 2, 8, 1, t262=(SHORT, [3]), t320=(SHORT, [0] * 768)),
                                  bytes(4)), 422, ("photometric",)),
    ("12 bits", tiff(tags_of(2, 2, 12, 1), bytes(6)), 422, ("12 bits",)),
    ("float16", tiff(tags_of(2, 2, 16, 3), bytes(8)), 422, ("16 bits",)),
    ("complex", tiff(tags_of(2, 2, 64, 6), bytes(32)), 422, ("format 6",)),
    ("an unknown compression", tiff(tags_of(2, 2, t259=(SHORT, [40000])), FLOATS), 422, ("40000",)),
    ("garbage as deflate", tiff(tags_of(2, 2, t259=(SHORT, [8])), FLOATS), 400, ("column 0",)),
    ("infinite", tiff(tags_of(2, 2), struct.pack("<4f", 1, 2, math.inf, 4)), 400,
     ("column 0 of row 1",)),
    ("a no-data value of words", tiff(tags_of(2, 2, t42113=text("none")), FLOATS), 400, ("'none'",)),
    ("turned", tiff(tags_of(2, 2, t34264=(DOUBLE, MATRIX)), FLOATS), 422, ("gdalwarp",)),
    ("from east to west", tiff(tags_of(2, 2, t34264=(DOUBLE, WEST)), FLOATS), 422, ("east to west",)),
    ("NaN in the transform", tiff(tags_of(2, 2, **placed(10, (0, 0, 0, math.nan, 0, 0))), FLOATS), 422,
     ("not finite",)),
    ("steps of 0", tiff(tags_of(2, 2, **placed(0)), FLOATS), 422, ("TIFF",)),
    ("tiny steps", tiff(tags_of(2, 2, **placed(1e-300), t34735=keys((1024, 1))), FLOATS), 400,
     ("spacing",)),
    ("a linear unit", tiff(tags_of(2, 2, **placed(), t34735=keys((1024, 1), (3076, 9999))), FLOATS), 422,
     ("9999", "spacing")),
    ("degrees without a system", tiff(tags_of(2, 2, **placed(0.001, (0, 0, 0, 11, 47, 0))), FLOATS), 422,
     ("degrees",)),
    ("at a pole", tiff(tags_of(2, 2, **placed(1, (0, 0, 0, 11, 91, 0)), t34735=keys((1024, 2))), FLOATS),
     422, ("latitude",)),
    ("a mask", tiff(tags_of(2, 2, t254=(LONG, [4])), FLOATS), 422, ("mask",)),
    ("tiles of a gigabyte", tiff(tags_of(2, 2, t278=None, t322=(LONG, [2 ** 14]), t323=(LONG, [2 ** 14])),
                                 FLOATS), 413, ("8388608",)),
    ("strips beyond the end", tiff(tags_of(2, 2, t273=(LONG, [10 ** 9]), t279=(LONG, [16])), FLOATS), 400,
     ("column 0",)),
]


@test("what is no grid of heights is refused, with the reason, and nothing changes")
def _():
    put_locale(daemon, "bad")
    before = daemon.memory_kib()
    for what, data, status, words in REFUSED:
        with case(what):
            problem(put("bad", data, status=None, manifest=False), status, *words)
    for what, data, query, status, words in (
            ("flip_y", tiff(tags_of(2, 2, **placed()), FLOATS), "flip_y=true", 400, ("flip_y",)),
            ("cols", tiff(tags_of(2, 2, **placed()), FLOATS), "cols=2", 400, ("cols",)),
            ("format", FLOATS, "format=png", 400, ("contradicts",))):
        with case(what):
            problem(put("bad", data, "?" + query, status=None, manifest=False), status, *words)
    equal(daemon.ok("GET", "/v1/locales/bad")["revision"], 1, "revision")
    check(daemon.memory_kib() - before < 64 << 10, f"{before} KiB have become {daemon.memory_kib()}")


@test("every truncation of a good file is refused or reads whole")
def _():
    put_locale(daemon, "cut")
    data = tiff(tags_of(5, 4, 16, 2, **placed(), t34735=keys((1024, 1), (3072, 32632))), bytes(40))
    for length in range(0, len(data), 7):
        answer = put("cut", data[:length], status=None, manifest=False)
        check(400 <= answer.status < 500, f"{length} bytes of {len(data)}: {answer}")


@test("octet-stream with format=tif; world files and kotad FILE.tif have its place, too")
def _():
    data = read(translate(*UTM))
    put_locale(daemon, "octets")
    locale = daemon.ok("PUT", "/v1/locales/octets/layers/ground?format=tif", data, status=201,
                       media="application/octet-stream")
    equal(locale["crs"], "EPSG:32632", "crs")
    os.makedirs(path("world/hill"))
    shutil.copy(translate("-a_srs", "EPSG:4326", "-a_ullr", "11", "47.5", "11.0465", "47.4645"),
                path("world/hill/ground.tif"))
    with open(path("world/hill/locale.json"), "w", encoding="ascii") as file:
        json.dump({"title": "Hill", "layers": [{"id": "ground", "file": "ground.tif"}]}, file)
    shutil.copy(translate(*UTM), path("alone.tif"))
    with Daemon("--world", path("world"), path("alone.tif")) as other:
        equal(other.ok("GET", "/v1/locales/alone")["crs"], "EPSG:32632", "kotad FILE")
        check(abs(other.ok("GET", "/v1/locales/hill")["geo"]["lat"] - 47.48225) < 1e-9, "a world's")


@test("a place that a file gave is there after a restart")
def _():
    data, store = read(translate(*UTM)), path("store")
    with Daemon("--data", store) as first:
        put_locale(first, "kept")
        first.ok("PUT", "/v1/locales/kept/layers/ground", data, status=201, media=TIFF)
    with Daemon("--data", store) as second:
        locale = second.ok("GET", "/v1/locales/kept")
        equal((locale["crs"], locale["revision"]), ("EPSG:32632", 2), "after a restart")


run(daemon.stop)
