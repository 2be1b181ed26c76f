"""Windows: rectangles of samples in each format, their tags, codings and layouts, and each error."""
import gzip
import math
import struct
import subprocess
import tempfile

from daemon import F32, F64, Daemon, problem
from fields import NAN, Terrain, put_layer, put_locale, put_terrain
from tap import Skip, case, check, equal, rng, run, test

COLS, ROWS = 700, 530
MESH_VERSION = 3  # as proto/feed.md names it
daemon = Daemon()


def make(seed, cols=COLS, rows=ROWS):
    random_ = rng(seed)
    along, up = [100 * math.sin(c / 50) for c in range(cols)], [80 * math.cos(r / 31) for r in range(rows)]
    heights = [[x + y + n / 128 for x, n in zip(along, random_.randbytes(cols))] for y in up]
    for _ in range(cols * rows // 300):
        heights[random_.randrange(rows)][random_.randrange(cols)] = NAN
    return Terrain(cols, rows, heights, (2.0, 3.0), (10.0, 20.0))


field = make("windows")
put_terrain(daemon, "relief", field)


def ask(query="", name="relief", layer="ground", method="GET", on=None, **headers):
    path = f"/v1/locales/{name}/layers/{layer}/samples{'?' if query else ''}{query}"
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return (on or daemon).ask(method, path, headers=named)


def wanted(rect=None, step=1, north=False):
    c0, r0, cols, rows = rect or (0, 0, COLS, ROWS)
    lines = [field.h[r][c0:c0 + cols:step] for r in range(r0, r0 + rows, step)]
    return [h for line in (reversed(lines) if north else lines) for h in line]


def same(got, want, what, tolerance=0.0):
    equal(len(got), len(want), f"samples, {what}")
    if struct.pack(f"{len(got)}d", *got) == struct.pack(f"{len(got)}d", *want):
        return
    wrong = [i for i, (a, b) in enumerate(zip(got, want))
             if a != b and not abs(a - b) <= tolerance and (a == a or b == b)]
    check(not wrong, f"{what}: sample {wrong[:1]} is not the expected one: "
                     f"{[(got[i], want[i]) for i in wrong[:1]]}")


def read(answer, form):
    check(answer.status == 200, str(answer))
    media = {"f32": F32, "f64": F64, "r16": "application/vnd.kota.r16", "json": "application/json"}
    equal(answer.media_type, media[form], "Content-Type")
    if form == "json":
        equal(list(answer.json), ["samples"], "members")
        return [NAN if h is None else h for h in answer.json["samples"]]
    sign = {"f32": "f", "f64": "d", "r16": "H"}[form]
    codes = struct.unpack(f"<{len(answer.body) // struct.calcsize(sign)}{sign}", answer.body)
    if form != "r16":
        return codes
    offset, scale = (float(answer.headers[name]) for name in ("kota-offset", "kota-scale"))
    return [NAN if code == 0 else offset + scale * code for code in codes]


RECTS = [(0, 0, 1, 1), (COLS - 1, ROWS - 1, 1, 1), (0, 0, COLS, 1), (255, 255, 3, 3), (256, 0, 1, ROWS),
         (10, 20, 39, 39), (250, 250, 300, 270), (511, 511, 180, 10), None]


def windows_hold(form):
    for rect in RECTS:
        for step in (1, 2, 8, 1024):
            for north in (False, True):
                text = f"rect={','.join(map(str, rect))}&" if rect else ""
                if form == "json" and rect is None and step == 1:
                    continue
                answer = ask(f"{text}step={step}&rows={'north' if north else 'south'}&format={form}")
                want = wanted(rect, step, north)
                values = [h for h in want if h == h] if form == "r16" else []
                spread = max(values) - min(values) if values else 0
                same(read(answer, form), want, f"{form} {rect} step {step} {north}",
                     spread / 65534 * 0.5001 + 1e-9 if form == "r16" else 0.0)
                equal(answer.headers["kota-rect"], ",".join(map(str, rect or (0, 0, COLS, ROWS))), "Kota-Rect")
                equal(answer.headers["kota-revision"], "2", "Kota-Revision")


for one in ("f32", "f64", "r16", "json"):
    case(f"each window is the samples, south or north first, with steps: {one}", windows_hold, one)


@test("the whole field is the export of its layer, byte for byte")
def _():
    export = daemon.get("/v1/locales/relief/layers/ground?format=f32")
    equal(ask().body, export.body, "bytes")
    equal(ask("step=1&rows=south&format=f32").body, export.body, "bytes, with the defaults named")


@test("a tile's samples are a window's")
def _():
    tile = daemon.get("/v1/locales/relief/tiles/1/0/0?format=f32").body
    window = ask("rect=0,0,513,513&step=2").body
    equal(window, tile, "bytes")


@test("a window of holes only, as r16 and json")
def _():
    put_terrain(daemon, "void", Terrain(4, 4, [[NAN] * 4 for _ in range(4)], (1.0, 1.0), (0.0, 0.0)))
    equal(ask("format=r16", "void").body, bytes(32), "r16")
    equal(ask("format=json&rect=1,1,2,1", "void").json, {"samples": [None, None]}, "json")


@test("the tag changes with the window's samples only, and If-None-Match gives 304")
def _():
    first = make("tags", 600, 300)
    put_terrain(daemon, "tags", first)
    rects = {"edited": "rect=100,100,50,50", "beside": "rect=150,100,50,50", "all": "", "far": "rect=300,0,300,300"}
    tags = {name: ask(query, "tags").headers["etag"] for name, query in rects.items()}
    equal(len(set(tags.values())), 4, "different windows")
    for name, query in rects.items():
        again = ask(query, "tags", If_None_Match=tags[name])
        equal((again.status, again.body, again.headers["etag"]), (304, b"", tags[name]), name)
        check("kota-revision" in again.headers, "Kota-Revision of a 304")
    daemon.ok("POST", "/v1/locales/tags/edits", {"op": "set", "rect": [149, 149, 1, 1], "heights": [777.0]})
    changed = {name for name, query in rects.items()
               if ask(query, "tags", If_None_Match=tags[name]).status == 200}
    equal(changed, {"edited", "all"}, "the windows that changed")
    daemon.ok("POST", "/v1/locales/tags/edits", {"op": "set", "rect": [149, 149, 1, 1],
                                                 "heights": [first.h[149][149]]})
    equal({name: ask(query, "tags").headers["etag"] for name, query in rects.items()}, tags,
          "the old samples have the old tags")
    equal(len({ask(f"rect=0,0,9,9&{more}", "tags").headers["etag"] for more in
               ("", "format=f64", "format=r16", "format=json", "rows=north")}), 5, "forms")


@test("the tags are the same after a restart and on another daemon")
def _():
    queries = ("", "rect=1,2,300,200", "step=4&format=f64", "rect=9,9,9,9&format=json")
    tags = [ask(query).headers["etag"] for query in queries]
    with tempfile.TemporaryDirectory() as folder:
        with Daemon("--data", folder) as other:
            put_terrain(other, "relief", field)
            other.ok("POST", "/v1/locales/relief/edits",
                     {"op": "set", "rect": [5, 5, 1, 1], "heights": [1.0]})
            other.ok("POST", "/v1/locales/relief/edits",
                     {"op": "set", "rect": [5, 5, 1, 1], "heights": [field.h[5][5] if field.h[5][5] == field.h[5][5] else None]})
            equal([ask(query, on=other).headers["etag"] for query in queries], tags, "another daemon")
        with Daemon("--data", folder) as other:
            equal([ask(query, on=other).headers["etag"] for query in queries], tags, "after a restart")
            equal(ask(on=other, If_None_Match=tags[0]).status, 304, "304")


@test("HEAD has the headers of GET and no body")
def _():
    get, head = ask("rect=0,0,99,99"), ask("rect=0,0,99,99", method="HEAD")
    equal((head.status, head.body), (200, b""), "HEAD")
    for name in ("content-length", "etag", "kota-rect", "vary"):
        equal(head.headers[name], get.headers[name], name)


# ---- codings ------------------------------------------------------------------------------------

def unzstd(body):
    try:
        done = subprocess.run(["zstd", "-d", "-c"], input=body, capture_output=True, check=False)
    except FileNotFoundError:
        raise Skip("no zstd")
    check(done.returncode == 0, f"zstd: {done.stderr}")
    return done.stdout


def undo(body, cols, layout):
    """The samples of a layout, as proto/feed.md describes it."""
    count = len(body) // 4
    words = [body[i] | body[count + i] << 8 | body[2 * count + i] << 16 | body[3 * count + i] << 24
             for i in range(count)]
    if layout == "delta":
        for i, word in enumerate(words):
            left = words[i - 1] if i % cols else 0
            below = words[i - cols] if i >= cols else 0
            corner = words[i - cols - 1] if i % cols and i >= cols else 0
            words[i] = ((word >> 1 ^ -(word & 1)) + left + below - corner) & 0xffffffff
    return struct.pack(f"<{count}I", *words)


def coded(path, cols, coding, layout):
    plain = daemon.get(path)
    headers = {"Accept-Encoding": coding, **({"Kota-Layout": layout} if layout else {})}
    tags = set()
    for _ in range(2):  # made, and from the cache
        answer = daemon.get(path, headers=headers)
        equal((answer.status, answer.headers.get("content-encoding")), (200, coding), "coding")
        equal(answer.headers.get("kota-layout"), layout, "Kota-Layout")
        body = gzip.decompress(answer.body) if coding == "gzip" else unzstd(answer.body)
        equal(undo(body, cols, layout) if layout else body, plain.body, "samples")
        tags.add(answer.headers["etag"])
        check("accept-encoding" in answer.headers["vary"].lower(), "Vary")
    equal(len(tags), 1, "tags of one form")
    check(tags != {plain.headers["etag"]}, "a coding has a tag of its own")
    again = daemon.get(path, headers={**headers, "If-None-Match": tags.pop()})
    equal((again.status, again.body), (304, b""), "304")
    check("content-encoding" not in again.headers, "Content-Encoding of a 304")
    equal(daemon.get(path, headers={"If-None-Match": answer.headers["etag"]}).status, 200,
          "the tag of a coding is none of the plain form")


for coding_ in ("zstd", "gzip"):
    for layout_ in (None, "bytes", "delta"):
        for what_, path_, cols_ in (("window", "/v1/locales/relief/layers/ground/samples?rect=3,5,300,200", 300),
                                    ("tile", "/v1/locales/relief/tiles/0/1/0?format=f32", 257)):
            case(f"{what_} as {coding_}, layout {layout_}: the same samples", coded, path_, cols_, coding_, layout_)


@test("layouts pay")
def _():
    sizes = {layout: len(daemon.get("/v1/locales/relief/layers/ground/samples", headers={
        "Accept-Encoding": "zstd", "Kota-Layout": layout}).body) for layout in ("", "bytes", "delta")}
    check(sizes["delta"] < sizes["bytes"] < sizes[""], str(sizes))


@test("what is small, packed or not to be coded is sent as it is")
def _():
    for path in ("/layers/ground/samples?rect=0,0,9,9", "/tiles/0/0/0?format=png16"):
        answer = daemon.get("/v1/locales/relief" + path, headers={"Accept-Encoding": "zstd, gzip"})
        check("content-encoding" not in answer.headers, path)
        equal(answer.headers["vary"].split(",")[0], "Accept-Encoding", "Vary")
    answer = ask(Kota_Layout="delta")
    check("kota-layout" not in answer.headers and "content-encoding" not in answer.headers, str(answer.headers))


CHOICES = (("", None), ("identity", None), ("br", None), ("zstd", "zstd"), ("gzip", "gzip"), ("x-gzip", "gzip"),
           ("GZIP", "gzip"), ("gzip, zstd", "zstd"), ("zstd;q=0.5, gzip", "gzip"), ("gzip;q=0.2, zstd;q=0.2", "zstd"),
           ("zstd;q=0", None), ("*", "zstd"), ("*;q=0.1, zstd;q=0", "gzip"), ("gzip;q=0.3, identity;q=0.9", None),
           ("gzip;q=0.9 , identity;q=0.3", "gzip"), ("zstd;q=0,gzip;q=0", None), ("gzip;q=nan", None),
           ("gzip;q=7", None), ("br;q=1, gzip;q=0.001", "gzip"), (" , ,gzip", "gzip"))


def chosen(header, coding):
    answer = ask("rect=0,0,99,99", Accept_Encoding=header)
    equal((answer.status, answer.headers.get("content-encoding")), (200, coding), repr(header))


for header_, coding_ in CHOICES:
    case(f"Accept-Encoding: {header_!r} gets {coding_ or 'identity'}", chosen, header_, coding_)


@test("identity;q=0 is kept, for small and packed bodies too, or refused with 406")
def _():
    for path in ("/layers/ground/samples?rect=0,0,3,3", "/tiles/0/0/0?format=png16"):
        plain = daemon.get("/v1/locales/relief" + path)
        answer = daemon.get("/v1/locales/relief" + path, headers={"Accept-Encoding": "gzip, identity;q=0"})
        equal((answer.status, answer.headers["content-encoding"]), (200, "gzip"), path)
        equal(gzip.decompress(answer.body), plain.body, path)
        for refused in ("identity;q=0", "*;q=0", "br, *;q=0"):
            answer = problem(daemon.get("/v1/locales/relief" + path, headers={"Accept-Encoding": refused}),
                             406, pointer="Accept-Encoding")
            equal(answer["code"], "not_acceptable", refused)


@test("large JSON and layers as files are compressed, short and tagged answers are not")
def _():
    points = [[20.0 + i, 30.0] for i in range(1000)]
    for accept, coding in (("gzip", "gzip"), ("zstd", "zstd"), ("identity", None)):
        plain = daemon.ask("POST", "/v1/locales/relief/height", {"points": points})
        answer = daemon.ask("POST", "/v1/locales/relief/height", {"points": points},
                            headers={"Accept-Encoding": accept})
        equal((answer.status, answer.headers.get("content-encoding")), (200, coding), accept)
        body = {"gzip": gzip.decompress, "zstd": unzstd, None: bytes}[coding](answer.body)
        equal(body, plain.body, "JSON")
        equal(answer.headers["vary"], "Accept-Encoding", "Vary")
        answer = daemon.get("/v1/locales/relief/layers/ground?format=f32", headers={"Accept-Encoding": accept})
        equal(answer.headers.get("content-encoding"), coding, "a file")
        answer = daemon.get("/openapi.json", headers={"Accept-Encoding": accept})
        equal(answer.headers.get("content-encoding"), coding, "openapi.json")
        body = {"gzip": gzip.decompress, "zstd": unzstd, None: bytes}[coding](answer.body)
        equal(body, daemon.get("/openapi.json").body, "openapi.json")
    for path in ("/v1/locales/relief", "/v1/locales/relief/height?x=20&y=30"):
        answer = daemon.get(path, headers={"Accept-Encoding": "gzip"})
        check("content-encoding" not in answer.headers, path)


# ---- meshes -------------------------------------------------------------------------------------

OBJ = "".join(f"v {x} {y} {(x * 7 + y * 3) % 5}\n" for y in range(9) for x in range(9)) + "".join(
    f"f {y * 9 + x + 1} {y * 9 + x + 2} {y * 9 + x + 11}\nf {y * 9 + x + 1} {y * 9 + x + 11} {y * 9 + x + 10}\n"
    for y in range(8) for x in range(8))


def put_mesh(on, name="deck"):
    put_locale(on, name)
    on.ok("PUT", f"/v1/locales/{name}/layers/ground", OBJ.encode(), status=201, media="model/obj")


def images(on, **headers):
    return [on.get(f"/v1/locales/deck/layers/ground?format={form}", headers=headers)
            for form in ("qota", "polygons")]


def polygons_of(body):
    """(vertices, polygons as lists of indices, removed), as proto/feed.md has them."""
    vertices, polygons, corners, removed = struct.unpack_from("<4Q", body)
    at = 32 + 24 * vertices
    numbers = struct.unpack_from(f"<{polygons + 1 + corners + removed}I", body, at)
    equal(len(body), at + 4 * len(numbers), "bytes of polygons")
    starts, corner = numbers[:polygons + 1], numbers[polygons + 1:polygons + 1 + corners]
    return ([struct.unpack_from("<3d", body, 32 + 24 * i) for i in range(vertices)],
            [corner[a:b] for a, b in zip(starts, starts[1:])], numbers[polygons + 1 + corners:])


@test("a mesh's image and polygons: versioned, tagged, as the layer")
def _():
    put_mesh(daemon)
    image, polygons = images(daemon)
    equal((image.status, image.media_type), (200, "application/vnd.kota.qota"), "qota")
    equal((image.body[:8], struct.unpack_from("<I", image.body, 8)[0]), (b"KOTAMESH", MESH_VERSION), "magic, version")
    equal(polygons.media_type, "application/vnd.kota.polygons", "polygons")
    vertices, faces, removed = polygons_of(polygons.body)
    lines = [line.split() for line in OBJ.splitlines()]
    equal([list(map(float, line[1:])) for line in lines if line[0] == "v"], [list(v) for v in vertices], "vertices")
    equal([[int(one) - 1 for one in line[1:]] for line in lines if line[0] == "f"], [list(f) for f in faces], "polygons")
    equal(removed, (), "removed")
    equal(image.headers["etag"][:33], polygons.headers["etag"][:33], "both name one state")
    for answer, form in ((image, "qota"), (polygons, "polygons")):
        again = daemon.get(f"/v1/locales/deck/layers/ground?format={form}",
                           headers={"If-None-Match": answer.headers["etag"]})
        equal((again.status, again.body), (304, b""), form)
        for coding, unpack in (("gzip", gzip.decompress), ("zstd", unzstd)):
            packed = daemon.get(f"/v1/locales/deck/layers/ground?format={form}",
                                headers={"Accept-Encoding": coding})
            equal((packed.headers["content-encoding"], unpack(packed.body)), (coding, answer.body), coding)
            check(packed.headers["etag"] != answer.headers["etag"], "tag of a coding")


@test("an edited mesh has the same image and tags after a restart and on another daemon")
def _():
    def edit(on, **body):
        on.ok("POST", "/v1/locales/deck/layers/ground/polygons", body)

    with tempfile.TemporaryDirectory() as folder, Daemon() as second:
        with Daemon("--data", folder) as first:
            for on in (first, second):
                put_mesh(on)
                for k in range(12):
                    edit(on, polygons=[[[k, 20, 1], [k + 1, 20, 1], [k, 21, 2]]], remove=[k * 3])
            one, two = images(first), images(second)
        with Daemon("--data", folder) as again:
            three = images(again)
        for answers, what in ((two, "another daemon"), (three, "after a restart")):
            equal([a.headers["etag"] for a in answers], [a.headers["etag"] for a in one], f"tags, {what}")
            equal([a.body for a in answers], [a.body for a in one], f"bytes, {what}")


@test("a heightfield has no polygons, and a mesh's image is of no heightfield: 422")
def _():
    for form in ("qota", "polygons"):
        refusal(daemon.get(f"/v1/locales/relief/layers/ground?format={form}"), 422, "wrong_layer_kind", "format")


# ---- errors -------------------------------------------------------------------------------------

def refusal(answer, status, code, pointer=None):
    document = problem(answer, status, pointer=pointer)
    equal(document["code"], code, "code")
    return document


def refused(query, status, code, pointer, layer="ground"):
    refusal(ask(query, layer=layer), status, code, pointer)


put_locale(daemon, "meshes")
daemon.ok("PUT", "/v1/locales/meshes/layers/roof", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", status=201,
          media="model/obj")
for query_, status_, code_, pointer_, layer_ in (
        ("rect=0,0,0,1", 400, "bad_input", "rect", "ground"), ("rect=0,0,701,1", 400, "bad_input", "rect", "ground"),
        ("rect=700,0,1,1", 400, "bad_input", "rect", "ground"), ("rect=-1,0,1,1", 400, "bad_input", "rect", "ground"),
        ("rect=0.5,0,1,1", 400, "bad_input", "rect", "ground"), ("rect=1,2,3", 400, "bad_input", "rect", "ground"),
        ("rect=0,0,1,1e300", 400, "bad_input", "rect", "ground"), ("step=0", 400, "bad_input", "step", "ground"),
        ("step=3", 400, "bad_input", "step", "ground"), ("step=2097152", 400, "bad_input", "step", "ground"),
        ("rows=up", 400, "bad_input", "rows", "ground"), ("format=png", 400, "bad_input", "format", "ground"),
        ("level=1", 400, "unknown_parameter", "level", "ground"),
        ("", 404, "layer_unknown", "layer", "roof")):
    case(f"{query_ or layer_}: {status_} {code_}", refused, query_, status_, code_, pointer_, layer_)


@test("a mesh has no samples: 422")
def _():
    refusal(ask(name="meshes", layer="roof"), 422, "wrong_layer_kind", "layer")


@test("a window over answers_bytes_max is 413 before it is made")
def _():
    with Daemon("--max-answers", "1048576") as little:
        put_terrain(little, "relief", field)
        answer = refusal(ask(on=little), 413, "too_large")
        equal((answer["limit"], answer["got"]), (1048576, 4 * COLS * ROWS), "limit and got")
        equal(ask("step=2", on=little).status, 200, "every second sample")


run()
