"""Tiles: 257×257 blocks of the field at each level, as f32, png16 and terrarium."""
import math
import struct
import threading

from daemon import F32, Daemon, connection_to, problem
from fields import NAN, Terrain, put_layer, put_locale, put_terrain
from images import read_png
from oracle import f32
from tap import HANG_S, case, check, equal, fail, rng, run, test

daemon = Daemon()
SIDE = 257
COLS, ROWS = 600, 300


def make(seed, cols, rows):
    random = rng(seed)
    along, up = [100 * math.sin(c / 50) for c in range(cols)], [80 * math.cos(r / 31) for r in range(rows)]
    heights = [[x + y + n / 128 for x, n in zip(along, random.randbytes(cols))] for y in up]
    for _ in range(cols * rows // 200):
        heights[random.randrange(rows)][random.randrange(cols)] = NAN
    for c in range(40, 80):
        for r in range(70, 90):
            heights[r][c] = NAN
    return Terrain(cols, rows, heights, (2.0, 3.0), (10.0, 20.0))


field = make("tiles", COLS, ROWS)
put_terrain(daemon, "relief", field)


def tile(level, column, row, query="", name="relief", **named):
    return daemon.get(f"/v1/locales/{name}/tiles/{level}/{column}/{row}{query}", **named)


def wanted(level, column, row, kind="sampled"):
    """257 rows of 257 heights, NaN where there is none; row 0 at the smallest y."""
    step = 1 << level
    least = {"min": min, "max": max}.get(kind)
    block = []
    for r in range(row * 256 * step, min((row * 256 + SIDE) * step, ROWS), step):
        line = field.h[r]
        if least:  # of the columns of these rows first; a hole counts for neither
            line = [least((h for h in column if h == h), default=NAN) for column in zip(*field.h[r:r + step])]
            line = [least((h for h in line[c:c + step] if h == h), default=NAN) if c % step == 0 else NAN
                    for c in range(COLS)]
        line = line[column * 256 * step::step][:SIDE]
        block.append(line + [NAN] * (SIDE - len(line)))
    return block + [[NAN] * SIDE] * (SIDE - len(block))


def read_f32(answer, what):
    check(answer.status == 200, f"{what}: {answer}")
    equal(answer.media_type, F32, what)
    equal(len(answer.body), SIDE * SIDE * 4, f"bytes, {what}")
    values = struct.unpack(f"<{SIDE * SIDE}f", answer.body)
    return [values[r * SIDE:(r + 1) * SIDE] for r in range(SIDE)]


def same(got, want, what, tolerance=0.0):
    for j in range(SIDE):
        for i, (a, b) in enumerate(zip(got[j], want[j], strict=True)):
            if a != b and not abs(a - b) <= tolerance and (a == a or b == b):
                fail(f"{what}: sample ({i},{j}) is {a!r}, expected {b!r}")


PLACES = [(0, 0, 0), (0, 1, 0), (0, 2, 1), (1, 0, 0), (1, 1, 0), (2, 0, 0), (3, 0, 0), (9, 0, 0)]


def sampled(level, column, row):
    got = read_f32(tile(level, column, row, "?format=f32"), "f32")
    same(got, wanted(level, column, row), f"{level}/{column}/{row}")


for place in PLACES:
    case(f"tile {place[0]}/{place[1]}/{place[2]} as f32 keeps every 2^L-th sample, rows from the "
         "smallest y", sampled, *place)


@test("neighbours share their apron")
def _():
    left = read_f32(tile(0, 0, 0, "?format=f32"), "left")
    right = read_f32(tile(0, 1, 0, "?format=f32"), "right")
    for j in range(SIDE):
        a, b = left[j][256], right[j][0]
        check(a == b or math.isnan(a) and math.isnan(b), f"row {j}: {a} and {b}")


def bounds_hold(kind, level, column, row):
    got = read_f32(tile(level, column, row, f"?format=f32&kind={kind}"), kind)
    same(got, wanted(level, column, row, kind), f"{kind} {level}/{column}/{row}")


for kind_ in ("min", "max"):
    for place in ((1, 0, 0), (1, 1, 0), (2, 0, 0)):
        case(f"kind={kind_} of tile {place[0]}/{place[1]}/{place[2]} is over the 2^L x 2^L samples "
             "that begin at each", bounds_hold, kind_, *place)


@test("kind=min and kind=max at level 0 are the samples themselves")
def _():
    for kind in ("min", "max"):
        got = read_f32(tile(0, 1, 1, f"?format=f32&kind={kind}"), kind)
        same(got, wanted(0, 1, 1), kind)


@test("png16 carries offset and scale in headers, and code 0 where there is nothing")
def _():
    for level, column, row in ((0, 0, 0), (0, 2, 1), (1, 0, 0)):
        answer = tile(level, column, row, "?format=png16")
        check(answer.status == 200, str(answer))
        equal(answer.media_type, "image/png", "Content-Type")
        offset, scale = (float(answer.headers[n]) for n in ("kota-offset", "kota-scale"))
        width, height, channels, depth, rows = read_png(answer.body)
        equal((width, height, channels, depth), (SIDE, SIDE, 1, 16), "shape")
        decoded = [[NAN if code == 0 else offset + scale * code for code in line] for line in rows]
        want = wanted(level, column, row)
        same(decoded, want, f"png16 {level}/{column}/{row}", scale * 0.51 + 1e-4)
        values = [v for line in want for v in line if v == v]
        check(scale <= (max(values) - min(values)) / 30000 + 1e-9,
              f"scale {scale} wastes the 65535 codes")


@test("terrarium is transparent where there is nothing and near a 256th of a metre elsewhere")
def _():
    answer = tile(0, 0, 0, "?format=terrarium")
    check(answer.status == 200, str(answer))
    equal(answer.media_type, "image/png", "Content-Type")
    width, height, channels, depth, rows = read_png(answer.body)
    equal((width, height, channels, depth), (SIDE, SIDE, 4, 8), "shape")
    decoded = []
    for line in rows:
        pixels = [line[4 * i:4 * i + 4] for i in range(SIDE)]
        decoded.append([NAN if p[3] == 0 else p[0] * 256 + p[1] + p[2] / 256 - 32768
                        for p in pixels])
    same(decoded, wanted(0, 0, 0), "terrarium", 1 / 256 + 1e-6)


@test("the ETag is strong, is the content's, and If-None-Match gives 304")
def _():
    answer = tile(0, 0, 0, "?format=f32")
    tag = answer.headers["etag"]
    check(tag.startswith('"') and tag.endswith('"') and len(tag) > 6, f"ETag {tag}")
    equal(tile(0, 0, 0, "?format=f32").headers["etag"], tag, "asked again")
    for match in (tag, f'"x", {tag}', "*"):
        again = tile(0, 0, 0, "?format=f32", headers={"If-None-Match": match})
        equal((again.status, again.body), (304, b""), f"If-None-Match: {match}")
        equal(again.headers.get("etag"), tag, "ETag of the 304")
    other = tile(0, 0, 0, "?format=f32", headers={"If-None-Match": '"other"'})
    equal(other.status, 200, "another tag")
    tags = {tile(*place).headers["etag"] for place in
            ((0, 0, 0, "?format=f32"), (0, 0, 0, "?format=png16"), (0, 0, 0, "?format=terrarium"),
             (0, 1, 0, "?format=f32"), (1, 0, 0, "?format=f32"),
             (1, 0, 0, "?format=f32&kind=min"))}
    equal(len(tags), 6, "different representations have different tags")


@test("an unchanged tile keeps its ETag when the layer is replaced, a changed one does not")
def _():
    first = make("etag", 400, 300)
    put_terrain(daemon, "edited", first)
    before = [tile(0, c, 0, "?format=f32", "edited").headers["etag"] for c in (0, 1)]
    first.h[10][10] = f32(777.0)
    put_layer(daemon, "edited", first, status=200)
    after = [tile(0, c, 0, "?format=f32", "edited").headers["etag"] for c in (0, 1)]
    check(before[0] != after[0], "the changed tile kept its tag")
    equal(after[1], before[1], "the unchanged tile's tag")


@test("HEAD of a tile has its headers and no body")
def _():
    get = tile(0, 0, 0, "?format=f32")
    head = daemon.ask("HEAD", "/v1/locales/relief/tiles/0/0/0?format=f32")
    equal((head.status, head.body), (200, b""), "HEAD")
    equal(head.headers["content-length"], get.headers["content-length"], "Content-Length")
    equal(head.headers["etag"], get.headers["etag"], "ETag")


def formats_agree(level, column, row):
    """Each format of a place, cold and from the cache, against the samples."""
    want = wanted(level, column, row)
    values = [v for line in want for v in line if v == v]
    for _ in range(2):
        same(read_f32(tile(level, column, row, "?format=f32"), "f32"), want, "f32")
        answer = tile(level, column, row, "?format=png16")
        offset, scale = (float(answer.headers[n]) for n in ("kota-offset", "kota-scale"))
        rows = read_png(answer.body)[4]
        same([[NAN if code == 0 else offset + scale * code for code in line] for line in rows],
             want, "png16", scale * 0.500001 + 1e-9 * max(map(abs, values)))
        rows = read_png(tile(level, column, row, "?format=terrarium").body)[4]
        same([[NAN if line[4 * i + 3] == 0 else line[4 * i] * 256 + line[4 * i + 1]
               + line[4 * i + 2] / 256 - 32768 for i in range(SIDE)] for line in rows],
             want, "terrarium", 1 / 512 + 1e-6)


for place in ((0, 2, 1), (1, 0, 0), (3, 0, 0), (9, 0, 0)):
    case(f"every format of {place[0]}/{place[1]}/{place[2]} holds the samples, also from the cache",
         formats_agree, *place)


def places_of(cols, rows):
    """Every tile of every level."""
    level, found = 0, []
    while True:
        cells = [-(-(n - 1) // (1 << level)) for n in (cols, rows)]
        found += [(level, c, r) for c in range(-(-cells[0] // 256))
                  for r in range(-(-cells[1] // 256))]
        if max(cells) == 1:
            return found
        level += 1


def touched_places(cols, rows, cells):
    """Those whose block has one of these samples (kind=sampled)."""
    def holds(index, level, at):
        return at % (1 << level) == 0 and 0 <= (at >> level) - 256 * index <= 256
    return {(level, c, r) for level, c, r in places_of(cols, rows)
            if any(holds(c, level, x) and holds(r, level, y) for x, y in cells)}


touched = make("touch", 800, 600)


def touch(name, cells):
    """Changes samples; the tags of all tiles change or stay as they should."""
    put_terrain(daemon, name, touched)
    places = places_of(800, 600)
    query = "?format=f32"
    tags = {place: tile(*place, query, name).headers["etag"] for place in places}
    before = [touched.h[y][x] for x, y in cells]
    for x, y in cells:
        touched.h[y][x] = f32(4321.0 + x)
    put_layer(daemon, name, touched, status=200)
    for (x, y), height in zip(cells, before):
        touched.h[y][x] = height
    changed = set()
    for place in places:
        answer = tile(*place, query, name, headers={"If-None-Match": tags[place]})
        if answer.status == 200:
            changed.add(place)
            check(answer.headers["etag"] != tags[place], f"{place}: the same tag, and a body")
            again = tile(*place, query, name, headers={"If-None-Match": answer.headers["etag"]})
            equal(again.status, 304, f"{place} with its new tag")
        else:
            equal((answer.status, answer.headers["etag"]), (304, tags[place]), str(place))
    equal(changed, touched_places(800, 600, cells), "the tiles that changed")


for name_, cells_ in (("inner", [(300, 100)]), ("seam", [(256, 100)]), ("corner", [(512, 256)]),
                      ("last", [(799, 599)]), ("two", [(10, 10), (640, 512)])):
    case(f"a change of samples changes the tags of the tiles that have them ({name_})", touch,
         "touch-" + name_, cells_)


def cache_stats():
    return daemon.ok("GET", "/v1/stats")["tile_cache"]


@test("a tile is made once, then answered as it was kept, with the same bytes and headers")
def _():
    put_terrain(daemon, "kept", make("kept", 300, 300))
    before = cache_stats()
    first = tile(0, 0, 0, "", "kept")
    between = cache_stats()
    second = tile(0, 0, 0, "", "kept")
    after = cache_stats()
    equal((between["misses"] - before["misses"], between["hits"] - before["hits"]), (1, 0), "first")
    equal((after["misses"] - between["misses"], after["hits"] - between["hits"]), (0, 1), "second")
    equal(second.body, first.body, "body")
    for name in ("etag", "kota-offset", "kota-scale", "kota-revision", "content-type"):
        equal(second.headers[name], first.headers[name], name)
    head = daemon.ask("HEAD", "/v1/locales/kept/tiles/0/0/0")
    equal((head.status, head.body, head.headers["content-length"]),
          (200, b"", str(len(first.body))), "HEAD")
    metrics = daemon.get("/metrics").body.decode()
    for name in ("hits_total", "misses_total", "evicted_total", "tiles", "bytes"):
        check(f"\nkota_tile_cache_{name} " in metrics, f"no kota_tile_cache_{name}")


@test("a tag is right after a restart, and costs no encoding")
def _():
    tag = tile(1, 0, 0).headers["etag"]
    with Daemon() as other:
        put_terrain(other, "relief", field)
        for _ in range(2):
            answer = other.get("/v1/locales/relief/tiles/1/0/0", headers={"If-None-Match": tag})
            equal((answer.status, answer.headers["etag"]), (304, tag), "the same content")
        stats = other.ok("GET", "/v1/stats")["tile_cache"]
        equal((stats["misses"], stats["hits"]), (1, 1), "misses and hits")
        check(stats["bytes"] < 1024, f"bytes were kept: {stats}")
        equal(other.get("/v1/locales/relief/tiles/1/0/0").body, tile(1, 0, 0).body, "the bytes")


@test("the cache keeps its bound, and a daemon without one answers the same")
def _():
    limit = 600000  # two blocks of f32 and a bit
    with Daemon("--tile-cache", str(limit)) as little, Daemon("--tile-cache", "0") as none:
        equal(little.ok("GET", "/v1/limits")["tile_cache_bytes_max"], limit, "limit")
        for one in (little, none):
            put_terrain(one, "relief", field)
        for _ in range(2):
            for column in range(3):
                path = f"/v1/locales/relief/tiles/0/{column}/0?format=f32"
                want = tile(0, column, 0, "?format=f32").body
                equal(little.get(path).body, want, "little")
                equal(none.get(path).body, want, "none")
                check(little.ok("GET", "/v1/stats")["tile_cache"]["bytes"] <= limit, "bytes")
        stats = little.ok("GET", "/v1/stats")["tile_cache"]
        equal((stats["tiles"], stats["evicted"], stats["hits"]), (2, 4, 0), "round and round")
        stats = none.ok("GET", "/v1/stats")["tile_cache"]
        equal((stats["tiles"], stats["bytes"], stats["misses"]), (0, 0, 6), "without a cache")


@test("many ask for the same tiles at once while the layer changes, and each gets whole ones")
def _():
    low, high = (Terrain(300, 300, [[v] * 300 for _ in range(300)]) for v in (1.0, 2.0))
    put_terrain(daemon, "busy", low)
    wrong, is_over = [], threading.Event()

    def ask():
        connection = connection_to(daemon.port, timeout=HANG_S)
        while not is_over.is_set():
            for form in ("f32", "png16"):
                connection.request("GET", f"/v1/locales/busy/tiles/0/0/0?format={form}")
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 200:
                    wrong.append(f"{form}: {answer.status} {body[:200]!r}")
                elif form == "f32" and body[:4] * (SIDE * SIDE) != body:
                    wrong.append("a block of two revisions")
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for i in range(30):
        put_layer(daemon, "busy", high if i % 2 == 0 else low, status=200)
    is_over.set()
    for thread in threads:
        thread.join()
    equal(wrong[:3], [], "wrong answers")


@test("a small field fills one tile, the rest of it is NaN")
def _():
    put_terrain(daemon, "stamp", Terrain(2, 2, [[1, 2], [3, 4]]))
    got = read_f32(tile(0, 0, 0, "?format=f32", "stamp"), "stamp")
    equal((got[0][:2], got[1][:2]), ((1, 2), (3, 4)), "samples")
    check(all(math.isnan(v) for line in got[2:] for v in line), "rows beyond")
    check(all(math.isnan(v) for line in got[:2] for v in line[2:]), "columns beyond")


REFUSED = [
    ("0/0/0?format=jpeg", 400, "format"), ("0/0/0?kind=mean", 400, "kind"),
    ("0/0/0?form=f32", 400, "form"), ("x/0/0?format=f32", (400, 404), None),
    ("0/-1/0?format=f32", (400, 404), None), ("0/0/1.5?format=f32", (400, 404), None),
    ("99/0/0?format=f32", (400, 404, 422), None), ("00/0/0?format=f32", 404, "from 0"),
    ("0/0/01?format=f32", 404, "from 0"),
    ("0/99999999999999999999/0?format=f32", (400, 404, 422), None),
    ("0/3/0?format=f32", (404, 422), None), ("0/0/2?format=f32", (404, 422), None),
    ("0/0/0?layer=other", 422, "other"),
]


def refuse(path, statuses, word):
    answer = daemon.get("/v1/locales/relief/tiles/" + path)
    statuses = statuses if isinstance(statuses, tuple) else (statuses,)
    check(answer.status in statuses, f"expected {statuses}, got {answer}")
    problem(answer, answer.status, *([word] if word else []))


for row_ in REFUSED:
    case(f"tiles/{row_[0]} is refused", refuse, *row_)


@test("with several heightfields the tile's layer must be named")
def _():
    put_locale(daemon, "pair")
    put_layer(daemon, "pair", Terrain(2, 2, [[1, 1], [1, 1]]), "low")
    put_layer(daemon, "pair", Terrain(2, 2, [[7, 7], [7, 7]]), "high")
    problem(tile(0, 0, 0, "?format=f32", "pair"), 422, "layer")
    equal(read_f32(tile(0, 0, 0, "?format=f32&layer=high", "pair"), "high")[0][0], 7.0, "sample")


@test("all-hole fields have tiles of nothing")
def _():
    put_terrain(daemon, "void", Terrain(2, 2, [[NAN, NAN], [NAN, NAN]]))
    locale = daemon.ok("GET", "/v1/locales/void")
    check(all(math.isnan(v) for line in read_f32(tile(0, 0, 0, "?format=f32", "void"), "void")
              for v in line), "NaN everywhere")
    for form in ("png16", "terrarium"):
        equal(tile(0, 0, 0, "?format=" + form, "void").status, 200, form)
    item = daemon.ok("GET", "/v1/locales/void/height?x=0.5&y=0.5")
    equal(item["status"], "hole", "height")
    check("bounds" in locale, "bounds")


run(daemon.stop)
