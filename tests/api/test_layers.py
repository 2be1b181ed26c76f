"""Locales and layers: PUT, GET, DELETE, every upload format, revisions, statistics."""
import math
import re
import struct

from daemon import F32, Daemon, check, equal, problem
from fields import NAN, Terrain, put_layer, put_locale, put_terrain
from images import SIGNATURE, asc, chunk, hgt, png
from tap import case, near_all, rng, run, test

daemon = Daemon()
LOCALE = {"id", "title", "revision", "gravity", "placement", "bounds", "open_sky",
          "triangulation", "layers", "memory_bytes"}
LAYER = {"id", "kind", "role", "cols", "rows", "spacing", "origin", "bounds", "memory_bytes"}


def at(name):
    return f"/v1/locales/{name}"


def samples(name, cols, rows, spacing=(1, 1), origin=(0, 0), layer="ground"):
    """All samples of a layer as told by height, row by row from the smallest y; NaN for holes."""
    points = [[origin[0] + c * spacing[0], origin[1] + r * spacing[1]]
              for r in range(rows) for c in range(cols)]
    got = daemon.ok("POST", at(name) + "/height",
                    {"points": points, "interp": "nearest", "layer": layer})["results"]
    values = [NAN if item["status"] == "hole" else item["height"] for item in got]
    check(None not in values, f"samples outside: {[i for i, v in enumerate(values) if v is None]}")
    return [values[r * cols:(r + 1) * cols] for r in range(rows)]


def same(got, want, what):
    for r, (a, b) in enumerate(zip(got, want)):
        for c, (x, y) in enumerate(zip(a, b)):
            y = struct.unpack("<f", struct.pack("<f", y))[0]
            check(x == y or math.isnan(x) and math.isnan(y),
                  f"{what}: sample ({c},{r}) is {x!r}, expected {y!r}")
    equal((len(got), len(got[0])), (len(want), len(want[0])), f"{what}: size")


# ---- locales --------------------------------------------------------------------------------------


@test("an empty daemon lists no locale")
def _():
    equal(daemon.ok("GET", "/v1/locales"), {"locales": [], "next": None}, "list")


@test("PUT of a new locale is 201 with defaults, of an old one 200 and one revision more")
def _():
    locale = put_locale(daemon, "a")
    check(set(locale) >= LOCALE, f"members {sorted(locale)}")
    equal(locale["id"], "a", "id")
    equal(locale["revision"], 1, "revision")
    equal(locale["gravity"], [0, 0, -1], "gravity")
    equal(locale["placement"], {"translation": [0, 0, 0], "rotation": [0, 0, 0, 1]}, "placement")
    equal((locale["open_sky"], locale["triangulation"]), (True, "anti"), "defaults")
    equal((locale["bounds"], locale["layers"]), (None, []), "nothing in it")
    equal(daemon.ok("GET", at("a")), locale, "GET")
    equal(daemon.ok("GET", "/v1/locales?layers=true"), {"locales": [locale], "next": None}, "list")
    changed = put_locale(daemon, "a", status=200, title="Höhe über «Grund»", open_sky=False,
                         triangulation="alternating", gravity=[0, -0.6, -0.8],
                         placement={"translation": [1, -2, 3.5], "rotation": [0, 0, 0.6, 0.8]})
    equal(changed["revision"], 2, "revision")
    equal(changed["title"], "Höhe über «Grund»", "title")
    near_all(changed["gravity"], [0, -0.6, -0.8], "gravity")
    equal(changed["placement"]["translation"], [1, -2, 3.5], "translation")
    near_all(changed["placement"]["rotation"], [0, 0, 0.6, 0.8], "rotation")
    equal((changed["open_sky"], changed["triangulation"]), (False, "alternating"), "the rest")


@test("a gravity or rotation with few digits is taken and made a unit, one that is none is not")
def _():
    near_unit = put_locale(daemon, "tilt", gravity=[0, -0.7071, -0.7071],
                           placement={"translation": [0, 0, 0], "rotation": [0, 0, 0.7071, 0.7071]})
    half = math.sqrt(0.5)
    near_all(near_unit["gravity"], [0, -half, -half], "gravity", 1e-15)
    near_all(near_unit["placement"]["rotation"], [0, 0, half, half], "rotation", 1e-15)
    for manifest in ({"gravity": [0, 0, -1.002]}, {"gravity": [0, 0, -0.998]},
                     {"placement": {"rotation": [0, 0, 0.72, 0.72]}}):
        problem(daemon.put(at("tilt"), manifest), 422, *manifest)


@test("a manifest replaces the one before: what it does not name is the default again")
def _():
    put_locale(daemon, "again", open_sky=False, triangulation="main", title="x")
    locale = put_locale(daemon, "again", status=200, title="y")
    equal((locale["open_sky"], locale["triangulation"], locale["title"]), (True, "anti", "y"),
          "after the second PUT")


@test("a layer adds its bounds, counts a revision, and is told with its shape")
def _():
    put_locale(daemon, "b")
    terrain = Terrain(4, 3, [[1, 2, 3, 4], [5, NAN, 7, 8], [9, 10, 11, -12]], (2.0, 5.0),
                      (100.0, -50.0))
    locale = put_layer(daemon, "b", terrain)
    equal(locale["revision"], 2, "revision")
    equal(locale["bounds"], {"min": [100, -50, -12], "max": [106, -40, 11]}, "bounds")
    check(isinstance(locale["memory_bytes"], int) and locale["memory_bytes"] >= 48, "memory_bytes")
    equal(len(locale["layers"]), 1, "layers")
    layer = locale["layers"][0]
    check(set(layer) >= LAYER, f"members {sorted(layer)}")
    equal((layer["id"], layer["kind"], layer["role"]), ("ground", "heightfield", "ground"), "layer")
    equal((layer["cols"], layer["rows"]), (4, 3), "size")
    equal((layer["spacing"], layer["origin"]), ([2, 5], [100, -50]), "frame")
    equal(layer["bounds"], locale["bounds"], "bounds")
    same(samples("b", 4, 3, (2, 5), (100, -50)), terrain.h, "f32")
    again = put_layer(daemon, "b", Terrain(2, 2, [[0, 0], [0, 0]]), status=200)
    equal(again["revision"], 3, "replacing a layer is a revision")
    equal((again["layers"][0]["cols"], len(again["layers"])), (2, 1), "replaced")
    more = put_layer(daemon, "b", Terrain(2, 2, [[50, 50], [50, 50]], (9.0, 9.0)), "second")
    equal([entry["id"] for entry in more["layers"]], ["ground", "second"], "layers")
    equal(more["bounds"], {"min": [0, 0, 0], "max": [9, 9, 50]}, "bounds of both")


@test("DELETE of a layer is 204 and a revision, of a locale 204 and its end")
def _():
    put_terrain(daemon, "gone", Terrain(2, 2, [[0, 0], [0, 0]]))
    before = daemon.ok("GET", at("gone"))["revision"]
    answer = daemon.ask("DELETE", at("gone") + "/layers/ground")
    equal((answer.status, answer.body), (204, b""), "DELETE of the layer")
    locale = daemon.ok("GET", at("gone"))
    equal((locale["layers"], locale["bounds"]), ([], None), "after it")
    equal(locale["revision"], before + 1, "revision")
    problem(daemon.ask("DELETE", at("gone") + "/layers/ground"), 404, "ground")
    problem(daemon.get(at("gone") + "/height?x=0&y=0"), 422, "heightfield")
    equal(daemon.ask("DELETE", at("gone")).status, 204, "DELETE of the locale")
    problem(daemon.get(at("gone")), 404, "gone")
    problem(daemon.ask("DELETE", at("gone")), 404, "gone")
    problem(daemon.get(at("gone") + "/height?x=0&y=0"), 404, "gone")


@test("a locale that is made again after DELETE starts anew")
def _():
    put_terrain(daemon, "phoenix", Terrain(2, 2, [[0, 0], [0, 0]]))
    daemon.ok("DELETE", at("phoenix"), status=204)
    locale = put_locale(daemon, "phoenix", status=201)
    equal(locale["layers"], [], "layers")


@test("locales are listed by id, each as its own GET tells it")
def _():
    for name in ("zeta", "Alpha", "m_1", "m-1"):
        put_locale(daemon, name)
    listed = daemon.ok("GET", "/v1/locales?layers=true")["locales"]
    names = [locale["id"] for locale in listed]
    check({"zeta", "Alpha", "m_1", "m-1"} <= set(names), f"{names}")
    equal(len(names), len(set(names)), "each once")
    for locale in listed:
        equal(locale, daemon.ok("GET", at(locale["id"])), locale["id"])
    light = daemon.ok("GET", "/v1/locales")["locales"]
    for locale in listed:
        del locale["layers"]
    equal(light, listed, "without layers")
    equal(daemon.ok("GET", "/v1/locales?layers=false")["locales"], light, "layers=false")


def pages(query):
    target, got = f"/v1/locales?{query}", []
    while target:
        answer = daemon.ok("GET", target)
        got.append(answer["locales"])
        target = answer["next"]
        check(target is None or "layers=true" in target or "layers=true" not in query, f"{target}")
    return got


@test("pages of the list follow one another, and are the list")
def _():
    for layers in ("", "&layers=true"):
        listed = daemon.ok("GET", f"/v1/locales?limit=1000{layers}")
        equal(listed["next"], None, "next of the whole list")
        listed = listed["locales"]
        names = [locale["id"] for locale in listed]
        equal(names, sorted(names), "order")
        for limit in (1, 2, 3, len(listed) - 1, len(listed)):
            got = pages(f"limit={limit}{layers}")
            equal([locale for page in got for locale in page], listed, f"pages of {limit}")
            check(all(len(page) == limit for page in got[:-1]) and got[-1], f"sizes of {limit}")
        for i, name in enumerate(names):
            equal(daemon.ok("GET", f"/v1/locales?after={name}{layers}"),
                  {"locales": listed[i + 1:], "next": None}, f"after {name}")
    put_locale(daemon, "m_0")
    equal(daemon.ok("GET", "/v1/locales?limit=1&after=m_0")["locales"][0]["id"], "m_1", "after one")
    daemon.ok("DELETE", at("m_0"), status=204)
    answer = daemon.ok("GET", "/v1/locales?limit=1&after=m_0&layers=true")
    equal(answer["locales"][0]["id"], "m_1", "after one that is gone")
    equal(answer["next"], "/v1/locales?limit=1&after=m_1&layers=true", "next")
    equal(daemon.ok("GET", "/v1/locales?after=" + "z" * 64), {"locales": [], "next": None}, "the end")


@test("a wrong limit, place or flag of the list is 400 with its name")
def _():
    most = daemon.ok("GET", "/v1/limits")["locale_page_max"]
    equal(most, 1000, "locale_page_max")
    for value, limit in ((most + 1, most), (0, 1), (-1, 1)):
        answer = problem(daemon.get(f"/v1/locales?limit={value}"), 400, str(value), pointer="limit")
        equal((answer["limit"], answer["got"]), (limit, value), f"limit={value}")
    for query in ("limit=x", "limit=1.5", "limit=", "after=", "after=a%2Fb", "after=" + "z" * 65,
                  "layers=1", "layers="):
        name, _, value = query.partition("=")
        problem(daemon.get(f"/v1/locales?{query}"), 400, pointer=name)


@test("stats of a heightfield layer count tiles, samples, bytes and levels")
def _():
    put_terrain(daemon, "counted", Terrain(600, 300, [[0] * 600] * 300))
    stats = daemon.ok("GET", at("counted") + "/layers/ground/stats")
    equal((stats["tiles"], stats["samples"]), (6, 180000), "tiles and samples")
    check(stats["bytes"] >= 180000 * 4, f"bytes {stats['bytes']}")
    check(stats["levels"] >= 3, f"levels {stats['levels']}")
    problem(daemon.get(at("counted") + "/layers/nope/stats"), (404), "nope")


# ---- formats ----------------------------------------------------------------------------------------

CODES = [[0, 1, 2, 300], [65535, 40000, 7, 8], [9, 10, 11, 12]]  # first row first


def upload(name, query, body, media, status=201):
    if daemon.get(at(name)).status == 404:
        put_locale(daemon, name)
    return daemon.ok("PUT", f"{at(name)}/layers/ground?{query}", body, status=status, media=media)


@test("PNG, 16 bits: codes are heights, the first row is the smallest y")
def _():
    upload("png16", "spacing=1,1", png(CODES), "image/png")
    same(samples("png16", 4, 3), CODES, "png")


@test("PNG, 16 bits: flip_y, height_scale, height_offset, nodata, origin and spacing")
def _():
    locale = upload("png16b", "spacing=2,3&origin=10,-20&height_scale=0.1&height_offset=-5"
                    "&flip_y=true&nodata=0", png(CODES), "image/png")
    want = [[NAN if code == 0 else -5 + 0.1 * code for code in row] for row in CODES[::-1]]
    same(samples("png16b", 4, 3, (2, 3), (10, -20)), want, "png")
    equal(locale["layers"][0]["spacing"], [2, 3], "spacing")


@test("PNG, 8 bits")
def _():
    codes = [[0, 128, 255], [1, 2, 3]]
    upload("png8", "spacing=1,1", png(codes, depth=8), "image/png")
    same(samples("png8", 3, 2), codes, "png")


@test("PNG with ancillary chunks and several IDAT chunks")
def _():
    import zlib
    raw = zlib.compress(b"".join(b"\0" + struct.pack(">4H", *row) for row in CODES))
    body = (SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 3, 16, 0, 0, 0, 0))
            + chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"tEXt", b"Comment\0made by hand")
            + b"".join(chunk(b"IDAT", raw[i:i + 5]) for i in range(0, len(raw), 5))
            + chunk(b"IEND", b""))
    upload("pngchunks", "spacing=1,1", body, "image/png")
    same(samples("pngchunks", 4, 3), CODES, "png")


def filtered(rows, kinds):
    """Rows of 16-bit codes as PNG with the filter kinds given."""
    import zlib
    stride, before, out = 2 * len(rows[0]), bytes(2 * len(rows[0])), b""
    for row, kind in zip(rows, kinds):
        line = struct.pack(f">{len(row)}H", *row)
        packed = bytearray(stride)
        for i in range(stride):
            a = line[i - 2] if i >= 2 else 0
            b, c = before[i], before[i - 2] if i >= 2 else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            packed[i] = (line[i] - (0, a, b, (a + b) // 2, paeth)[kind]) & 255
        out += bytes([kind]) + packed
        before = line
    return (SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 16, 0, 0,
                                                   0, 0))
            + chunk(b"IDAT", zlib.compress(out)) + chunk(b"IEND", b""))


@test("PNG with each of the five filters")
def _():
    random = rng("filters")
    rows = [[random.randrange(65536) for _ in range(9)] for _ in range(10)]
    upload("pngfilters", "spacing=1,1", filtered(rows, [0, 1, 2, 3, 4, 4, 3, 2, 1, 0]),
           "image/png")
    same(samples("pngfilters", 9, 10), rows, "png")


@test("PNG, interlaced")
def _():
    import zlib
    raw = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                           (1, 0, 2, 2), (0, 1, 1, 2)):
        for y in range(y0, 3, dy):
            codes = [CODES[y][x] for x in range(x0, 4, dx)]
            if codes:
                raw += b"\0" + struct.pack(f">{len(codes)}H", *codes)
    body = (SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 3, 16, 0, 0, 0, 1))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
    upload("pngadam", "spacing=1,1", body, "image/png")
    same(samples("pngadam", 4, 3), CODES, "png")


@test("PNG whose tRNS names a transparent grey: that code is a hole")
def _():
    body = png(CODES, extra=chunk(b"tRNS", struct.pack(">H", 300)))
    upload("pngtrns", "spacing=1,1", body, "image/png")
    same(samples("pngtrns", 4, 3), [[NAN if code == 300 else code for code in row]
                                    for row in CODES], "png")


@test("f32: rows from the smallest y, NaN is no-data, flip_y turns it")
def _():
    rows = [[1.5, NAN, -3.25], [4, 5, 6]]
    body = b"".join(struct.pack("<3f", *row) for row in rows)
    upload("f32", "cols=3&rows=2&spacing=1,1", body, F32)
    same(samples("f32", 3, 2), rows, "f32")
    upload("f32", "cols=3&rows=2&spacing=1,1&flip_y=true", body, F32, status=200)
    same(samples("f32", 3, 2), rows[::-1], "f32, flipped")
    upload("f32", "cols=3&rows=2&spacing=1,1&nodata=5&height_scale=2&height_offset=1", body, F32,
           status=200)
    same(samples("f32", 3, 2), [[4, NAN, -5.5], [9, NAN, 13]], "f32, scaled, code 5 is no-data")


HGT_ROWS = [[r * 100 + c - 500 for c in range(11)] for r in range(11)]
HGT_ROWS[3][4] = -32768


@test("HGT: big-endian, square, -32768 is void; the default does not flip")
def _():
    want = [[NAN if v == -32768 else v for v in row] for row in HGT_ROWS]
    for media in ("application/vnd.kota.hgt", "application/x-srtm-hgt"):
        name = "hgt-" + media[-8:].strip("./")
        name = "".join(ch for ch in name if ch.isalnum() or ch in "_-")
        upload(name, "spacing=90,90", hgt(HGT_ROWS), media)
        same(samples(name, 11, 11, (90, 90)), want, media)
    upload("hgt-flip", "spacing=90,90&flip_y=true", hgt(HGT_ROWS), "application/vnd.kota.hgt")
    same(samples("hgt-flip", 11, 11, (90, 90)), want[::-1], "flipped")


ASC_ROWS = [[1, 2.5, -9999], [4, 5e1, 6]]


def put(target, body):
    answer = daemon.ask("PUT", target, body, media="text/plain")
    check(answer.status in (200, 201), f"{target}: {answer}")
    return answer.json


@test("ASC: a grid in degrees is refused; spacing says the metres")
def _():
    grid = asc([[1, 2], [3, 4]], 0.000277, (-104.6, 39.5))
    at = "/v1/locales/degrees/layers/ground"
    put_locale(daemon, "degrees")
    answer = daemon.ask("PUT", at, grid, media="text/plain")
    problem(answer, 422, "degrees", "23.8", "30.7", "0.000277", pointer="spacing")
    layer = put(at + "?spacing=23.8,30.7", grid)["layers"][0]
    equal(layer["spacing"], [23.8, 30.7], "spacing")
    put(at + "?spacing=0.000277,0.000277", grid)
    put(at, asc([[1, 2], [3, 4]], 0.01))  # a scan at 0, 0
    daemon.ask("DELETE", "/v1/locales/degrees")


@test("ASC: NODATA is compared as the float32 sample")
def _():
    at = "/v1/locales/lowest/layers/ground"
    put_locale(daemon, "lowest")
    for code, cell in (("-3.4028235e+38", "-3.4028234663852886e+38"), ("-9999.9", "-9999.9004")):
        grid = f"ncols 2\nnrows 2\ncellsize 1\nNODATA_value {code}\n{cell} 1.5\n2 3\n".encode()
        put(at + "?flip_y=true", grid)
        got = struct.unpack("<4f", daemon.get(at).body)
        check(got[2] != got[2] and (got[0], got[1], got[3]) == (2, 3, 1.5), f"{code}: {got}")
    daemon.ask("DELETE", "/v1/locales/lowest")


@test("ASC: cellsize is the spacing, NODATA a hole; the origin is 0,0 unless the query says")
def _():
    want = [[1, 2.5, NAN], [4, 50, 6]]
    for i, media in enumerate(("application/vnd.kota.asc", "text/x-esri-ascii-grid",
                               "text/plain")):
        name = f"asc{i}"
        locale = upload(name, "", asc(ASC_ROWS, 10, (100, 200), -9999), media)
        equal(locale["layers"][0]["spacing"], [10, 10], "spacing")
        equal(locale["layers"][0]["origin"], [0, 0], "the file's own corner does not count")
        same(samples(name, 3, 2, (10, 10)), want, media)
    locale = upload("asc-centre", "flip_y=true", asc(ASC_ROWS, 10, (100, 200), -9999, centre=True),
                    "text/plain")
    same(samples("asc-centre", 3, 2, (10, 10)), want[::-1], "flipped")
    locale = upload("asc-query", "spacing=2,3&origin=7,8", asc(ASC_ROWS, 10, (100, 200), -9999),
                    "text/plain")
    equal((locale["layers"][0]["spacing"], locale["layers"][0]["origin"]), ([2, 3], [7, 8]),
          "the query goes before the file")


@test("ASC in other clothes: capitals, CRLF, tabs, values over several lines, no NODATA line")
def _():
    body = (b"NCOLS 3\r\nNROWS\t2\r\nXLLCENTER -5\r\nYLLCENTER 5.5\r\nCELLSIZE 2\r\n"
            b"1 2\r\n3 4\t5\r\n   6\r\n")
    upload("asc-odd", "", body, "text/plain")
    same(samples("asc-odd", 3, 2, (2, 2)), [[1, 2, 3], [4, 5, 6]], "asc")


@test("application/octet-stream takes format=png|f32|hgt|asc")
def _():
    for form, query, body in (("png", "spacing=1,1", png(CODES)),
                              ("f32", "spacing=1,1&cols=2&rows=2", struct.pack("<4f", 1, 2, 3, 4)),
                              ("hgt", "spacing=1,1", hgt(HGT_ROWS)),
                              ("asc", "", asc(ASC_ROWS))):
        upload("stream-" + form, f"{query}&format={form}", body, "application/octet-stream")


@test("Content-Type parameters and capitals are fine")
def _():
    upload("parameters", "", asc(ASC_ROWS), "Text/Plain; charset=utf-8")
    put = daemon.put(at("parameters"), '{"title":"x"}', media="application/json; charset=UTF-8")
    equal(put.status, 200, "manifest")


@test("PUT of a layer into an unknown locale is 404")
def _():
    problem(daemon.put(at("nowhere") + "/layers/ground?spacing=1,1", png(CODES),
                       media="image/png"), 404, "nowhere")
    problem(daemon.get(at("nowhere")), 404, "nowhere")


def accepted(name):
    locale = put_locale(daemon, name)
    equal(locale["id"], name, "id")
    put_layer(daemon, name, Terrain(2, 2, [[0, 0], [0, 0]]), name)
    daemon.ok("DELETE", at(name), status=204)


for good in ("x", "A" * 64, "-", "_", "0-9_aZ"):
    case(f"{good[:20]!r} ({len(good)}) is an id", accepted, good)


@test("an id may be percent-encoded where that changes nothing")
def _():
    put_locale(daemon, "plain-id")
    equal(daemon.ok("GET", "/v1/locales/plain%2Did")["id"], "plain-id", "id")


@test("memory follows what is held: deleting gives it back in the locale's account")
def _():
    put_locale(daemon, "big")
    empty = daemon.ok("GET", at("big"))["memory_bytes"]
    big = daemon.ok("PUT", at("big") + "/layers/ground?cols=1000&rows=1000&spacing=1,1",
                    bytes(4_000_000), status=201, media=F32)["memory_bytes"]
    check(big >= empty + 4_000_000, f"{empty} -> {big}")
    daemon.ok("DELETE", at("big") + "/layers/ground", status=204)
    check(daemon.ok("GET", at("big"))["memory_bytes"] < 100_000, "after DELETE")


@test("a heightfield takes the memory that the documents say: a small one, and the bytes of a sample")
def _():
    put_locale(daemon, "sized")
    held = {}
    for side in (33, 2049):
        held[side] = daemon.ok("PUT", at("sized") + f"/layers/g?cols={side}&rows={side}&spacing=1,1",
                               bytes(4 * side ** 2), media=F32,
                               status=201 if side == 33 else 200)["layers"][0]["memory_bytes"]
    told = {}
    for page in ("operating", "import", "production"):
        with open(f"docs/{page}.md", encoding="utf-8") as file:
            told[page] = file.read()
    small = re.search(r"of 33 × 33 samples \| ([\d,]+) bytes", told["operating"])
    equal(held[33], int(small[1].replace(",", "")), "bytes of a small field")
    sample = [re.search(pattern, told[page])[1] for page, pattern in (
        ("operating", r"sample of a heightfield, in memory \| ([\d.]+) bytes"),
        ("import", r"([\d.]+) bytes of memory a sample"),
        ("production", r"([\d.]+) bytes of memory a sample"))]
    equal(sample, [f"{held[2049] / 2049 ** 2:.1f}"] * 3, "bytes of a sample")


run(daemon.stop)
