"""Maps: TileJSON, XYZ tiles in every encoding, geodetic tiles, their caching, places with a crs.

Where a pixel is is worked out by tests/api/earth.py; heights are the daemon's own `height`.
"""
import http.client
import json
import math
import os
import struct
import subprocess
import tempfile
import threading

from daemon import F32, ROOT, Daemon, connection_to, problem
from earth import enu, pixel_centre, place_at, tile_of
from fields import NAN, Terrain, put_layer, put_locale
from images import read_png
from mesh_oracle import put_mesh, rectangle
from tap import ALL, HANG_S, Skip, case, check, equal, rest, rng, run, test

daemon = Daemon()


def near(got, want, what, within):
    check(abs(got - want) <= within, f"{what}: got {got!r}, expected {want!r}")


ORIGIN = (47.2692, 11.4041)
STEPS = {"terrarium": 1 / 256, "mapbox": 0.1}


def rough(name, cols, rows, spacing, origin, holes=0.0):
    random = rng(name)
    along, up, dice = ([900 + 300 * math.sin(c / 17) for c in range(cols)],
                       [200 * math.cos(r / 13) for r in range(rows)], random.random)
    heights = [[NAN if dice() < holes else x + y + (-40 + 80 * dice()) for x in along] for y in up]
    return Terrain(cols, rows, heights, spacing, origin)


def place(name, field, **manifest):
    put_locale(daemon, name, **manifest)
    put_layer(daemon, name, field)


place("alps", rough("alps", 300, 200, (8.0, 11.0), (-1200.0, -900.0)),
      geo={"lat": ORIGIN[0], "lng": ORIGIN[1]}, title="Alps")
place("holes", rough("holes", 120, 120, (10.0, 10.0), (-600.0, -600.0), holes=0.1),
      geo={"lat": 10, "lng": 20})
place("dateline", rough("dateline", 100, 100, (50.0, 50.0), (-2500.0, -2500.0)),
      geo={"lat": -17, "lng": 180})
place("north", rough("north", 100, 100, (20.0, 20.0), (-1000.0, -1000.0)),
      geo={"lat": 84.9, "lng": 33})
place("pole", rough("pole", 50, 50, (100.0, 100.0), (-2500.0, -2500.0)), geo={"lat": 90, "lng": 0})
put_locale(daemon, "nowhere")
put_layer(daemon, "nowhere", rough("nowhere", 5, 5, (1.0, 1.0), (0.0, 0.0)))


def tile(name, z, x, y, query="", status=200, **named):
    answer = daemon.get(f"/v1/locales/{name}/dem/{z}/{x}/{y}{query}", **named)
    check(answer.status == status, f"{name} {z}/{x}/{y}{query}: {answer}")
    return answer


def decode(answer, encoding="terrarium"):
    """Rows of heights; None where alpha is 0."""
    width, height, channels, depth, rows = read_png(answer.body)
    equal(depth, 8, "depth")
    equal(width, height, "a square")

    step, low = {"terrarium": (256, -32768), "mapbox": (10, -10000)}[encoding]
    return [[(r * 65536 + g * 256 + b) / step + low if a else None
             for r, g, b, a in zip(*(row[i::channels] for i in range(3)),
                                   row[3::4] if channels == 4 else [255] * width)] for row in rows]


def floats(answer, side=256):
    equal(answer.media_type, F32, "media type")
    equal(len(answer.body), 4 * side * side, "bytes")
    values = struct.unpack(f"<{side * side}f", answer.body)
    return [values[j * side:(j + 1) * side] for j in range(side)]


def heights(name, points):
    answer = daemon.ok("POST", f"/v1/locales/{name}/height", {"points": points})
    return [item["height"] for item in answer["results"]]


def middle_tile(name, z):
    lng, lat, _ = daemon.ok("GET", f"/v1/locales/{name}/dem.json")["center"]
    x, y = tile_of(lat, lng, z)
    return int(x), int(y)


# ---- the document ---------------------------------------------------------------------------------


@test("dem.json is TileJSON that says where the ground is and how its tiles are read")
def _():
    told = daemon.ok("GET", "/v1/locales/alps/dem.json")
    equal((told["tilejson"], told["scheme"], told["tileSize"], told["encoding"], told["name"]),
          ("3.0.0", "xyz", 256, "terrarium", "Alps"), "members")
    template = f"{daemon.url}/v1/locales/alps/dem/{{z}}/{{x}}/{{y}}.png?encoding="
    equal(told["tiles"], [template + "terrarium"], "template")
    zoom = math.ceil(math.log2(156543.03392804097 * math.cos(math.radians(ORIGIN[0])) / 8))
    equal((told["minzoom"], told["maxzoom"]), (0, zoom), "zooms")
    corners = [place_at(ORIGIN, x, y) for x in (-1200, 1192) for y in (-900, 1289)]
    for got, want in zip(told["bounds"], (min(c[1] for c in corners), min(c[0] for c in corners),
                                          max(c[1] for c in corners), max(c[0] for c in corners))):
        near(got, want, "bounds", within=1e-5)
    other = daemon.ok("GET", "/v1/locales/alps/dem.json?encoding=mapbox&v=2&void=zero")
    equal(other["tiles"], [template + "mapbox&void=zero&v=2"], "options are passed on")
    equal(other["encoding"], "mapbox", "encoding")
    around = daemon.ok("GET", "/v1/locales/dateline/dem.json")["bounds"]
    equal((around[0], around[2]), (-180, 180), "bounds over the antimeridian")
    relief = daemon.ok("GET", "/v1/locales/alps/dem.json?style=relief")
    check("encoding" not in relief and relief["tiles"][0].endswith("?style=relief"), str(relief))


@test("links name the address that was asked, the proxy's on this machine, or --public-url")
def _():
    def base(server, **headers):
        asked = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = server.get("/v1/locales/alps/dem.json", headers=asked)
        return answer.json["tiles"][0].partition("/v1/")[0]
    equal(base(daemon, Host="ground.example:99"), "http://ground.example:99", "Host")
    equal(base(daemon, X_Forwarded_Proto="https", X_Forwarded_Host="maps.example",
               X_Forwarded_Prefix="/kota/"), "https://maps.example/kota", "a proxy's")
    equal(base(daemon, X_Forwarded_Proto="javascript", X_Forwarded_Host='a"b<c',
               X_Forwarded_Prefix="/x y"), f"http://127.0.0.1:{daemon.port}", "bytes of no host")
    with Daemon("--trusted-proxies", "127.0.0.2,10.0.0.0/8") as picky:
        picky.ok("PUT", "/v1/locales/alps", {"geo": {"lat": 1, "lng": 2}}, status=201)
        put_layer(picky, "alps", rough("small", 4, 4, (1.0, 1.0), (0.0, 0.0)))
        for peer, name in (("127.0.0.1", f"127.0.0.1:{picky.port}"), ("127.0.0.2", "maps.example")):
            connection = http.client.HTTPConnection("127.0.0.1", picky.port, source_address=(peer, 0))
            connection.request("GET", "/v1/locales/alps/dem.json", headers={"X-Forwarded-Host": "maps.example"})
            told = json.loads(connection.getresponse().read())
            connection.close()
            equal(told["tiles"][0].split("/")[2], name, f"asked by {peer}")
    with Daemon("--public-url", "https://maps.example.net/kota/") as public:
        public.ok("PUT", "/v1/locales/alps", {"geo": {"lat": 1, "lng": 2}}, status=201)
        put_layer(public, "alps", rough("small", 4, 4, (1.0, 1.0), (0.0, 0.0)))
        equal(base(public, X_Forwarded_Host="other.example"), "https://maps.example.net/kota",
              "--public-url")


@test("a locale without a place has no map, and neither has one beyond Mercator's end")
def _():
    for path in ("dem.json", "dem/0/0/0.png", "dem/geodetic/0/0/0.f32"):
        answer = daemon.get(f"/v1/locales/nowhere/{path}")
        problem(answer, 422, "neither geo nor crs")
        equal(answer.json["code"], "no_place", "code")
    equal(daemon.get("/v1/locales/pole/dem.json").json["code"], "no_place", "at the pole")
    tile("pole", 3, 0, "0.png", status=404)


# ---- pixels ---------------------------------------------------------------------------------------


def pixels_are_heights(name, origin, zooms, count):
    random = rng("pixels " + name)
    worst = {}
    for z in zooms:
        x, y = middle_tile(name, z)
        forms = {"f32": floats(tile(name, z, x, f"{y}.f32", "?void=alpha"))}
        for encoding in STEPS:
            forms[encoding] = decode(tile(name, z, x, f"{y}.png", f"?encoding={encoding}&void=alpha"),
                                     encoding)
        places = [(random.randrange(256), random.randrange(256)) for _ in range(count)]
        points = [enu(origin, *pixel_centre(z, x, y, i, j))[:2] for i, j in places]
        for (i, j), want in zip(places, heights(name, points)):
            for form, rows in forms.items():
                got = rows[j][i]
                got = None if got is None or math.isnan(got) else got
                if (got is None) != (want is None):
                    check(z < 9, f"{name} {form} {z}/{x}/{y} {i},{j}: {got}, not {want}")
                    continue
                if want is not None:
                    step = STEPS.get(form, abs(want) * 2 ** -23)
                    worst[form] = max(worst.get(form, 0), abs(got - want) / step)
    for form, off in worst.items():
        # the points are worked out in float64 twice, which is some nanometres on steep ground
        check(off <= (0.501 if form in STEPS else 1.5), f"{name}: {form} is {off} steps off")
    equal(len(worst), 3, "forms")


case("pixels are the heights at their centres, at five zooms in three encodings",
     pixels_are_heights, "alps", ORIGIN, (9, 11, 13, 14, 17), 400)
case("the same beside holes", pixels_are_heights, "holes", (10, 20), (12, 14, 16), 400)
case("the same over the antimeridian", pixels_are_heights, "dateline", (-17, 180), (10, 13), 300)
case("the same at 85 degrees north", pixels_are_heights, "north", (84.9, 33), (9, 12, 15), 300)


@rest("100,000 pixels of tiles at five zooms and three encodings")
def _():
    for z in (9, 11, 13, 14, 17):
        pixels_are_heights("alps", ORIGIN, (z,), 7000)


@test("a PNG is RGB without alpha and without a chunk about colour; @2x has 512 pixels")
def _():
    x, y = middle_tile("alps", 14)
    for query in ("", "?encoding=mapbox", "?style=relief", "?void=zero"):
        body = tile("alps", 14, x, f"{y}.png", query).body
        equal(body[25], 2, "colour type")
        at, kinds = 8, set()
        while at < len(body):
            length, kind = struct.unpack(">I4s", body[at:at + 8])
            kinds.add(kind)
            at += 12 + length
        equal(kinds, {b"IHDR", b"IDAT", b"IEND"}, "chunks")
    equal(tile("alps", 14, x, f"{y}.png", "?void=alpha").body[25], 6, "colour type of alpha")
    double = decode(tile("alps", 14, x, f"{y}@2x.png"))
    equal(len(double), 512, "@2x")
    lat, lng = pixel_centre(14, x, y, 100, 300, 512)
    near(double[300][100], heights("alps", [enu(ORIGIN, lat, lng)[:2]])[0], "@2x", within=1 / 512)


@test("void=edge continues the ground, zero and alpha do not")
def _():
    x, y = middle_tile("alps", 11)
    edge, zero = decode(tile("alps", 11, x, f"{y}.png")), decode(tile("alps", 11, x, f"{y}.png",
                                                                      "?void=zero"))
    alpha = decode(tile("alps", 11, x, f"{y}.png", "?void=alpha"))
    beyond = []
    for j in range(0, 256, 3):
        for i in range(0, 256, 3):
            if alpha[j][i] is not None:
                equal((edge[j][i], zero[j][i]), (alpha[j][i],) * 2, "ground")
                continue
            equal(zero[j][i], 0, "zero")
            e, n, _ = enu(ORIGIN, *pixel_centre(11, x, y, i, j))
            beyond.append((edge[j][i], [min(max(e, -1200), 1192), min(max(n, -900), 1289)]))
    check(len(beyond) > 100, f"{len(beyond)} pixels beyond the ground were tried")
    for (got, _), want in zip(beyond, heights("alps", [at for _, at in beyond])):
        near(got, want, "edge", within=0.1)
    x, y = middle_tile("holes", 15)
    check(None not in sum(decode(tile("holes", 15, x, f"{y}.png")), []), "holes are filled")


@test("sampling=mean is the mean of 16 heights in the pixel")
def _():
    x, y = middle_tile("alps", 12)
    rows = floats(tile("alps", 12, x, f"{y}.f32", "?sampling=mean"))
    random = rng("mean")
    for _ in range(20):
        i, j = random.randrange(80, 170), random.randrange(80, 170)
        places = [pixel_centre(12, x, y, 4 * i + a, 4 * j + b, 1024)
                  for a in range(4) for b in range(4)]
        points = [enu(ORIGIN, *p)[:2] for p in places]
        if all(-1200 < e < 1192 and -900 < n < 1289 for e, n in points):
            near(rows[j][i], sum(heights("alps", points)) / 16, "mean", within=1e-3)


@test("geodetic tiles have their edges, share them with neighbours, and exist everywhere")
def _():
    def grid(z, x, y, query=""):
        answer = daemon.get(f"/v1/locales/alps/dem/geodetic/{z}/{x}/{y}.f32{query}")
        check(answer.status == 200, str(answer))
        return floats(answer, 65 if not query else int(query.partition("=")[2]))
    z, size = 12, 65
    degrees = 180 / 2 ** z
    x, y = int((ORIGIN[1] + 180) / degrees), int((90 - ORIGIN[0]) / degrees)
    rows = grid(z, x, y)
    tried = 0
    for j in range(0, size, 4):
        for i in range(0, size, 4):
            lat, lng = 90 - (y + j / 64) * degrees, -180 + (x + i / 64) * degrees
            want = heights("alps", [enu(ORIGIN, lat, lng)[:2]])[0]
            near(rows[j][i], want or 0, "value", within=1e-3)
            tried += want is not None
    check(tried > 20, f"{tried} places of ground")
    equal([row[64] for row in rows], [row[0] for row in grid(z, x + 1, y)], "the common edge")
    equal(rows[64], grid(z, x, y + 1)[0], "the common edge to the south")
    equal(set(sum((list(r) for r in grid(0, 0, 0, "?size=17")), [])), {0.0}, "the other half")
    problem(daemon.get("/v1/locales/alps/dem/geodetic/1/4/0.f32"), 404, pointer="x", limit=3)
    problem(daemon.get("/v1/locales/alps/dem/geodetic/1/0/0.f32?size=514"), 400, pointer="size")


@test("a tile as .tif is placed in web Mercator")
def _():
    x, y = middle_tile("alps", 13)
    body = tile("alps", 13, x, f"{y}.tif").body
    equal(body[:4], b"II*\0", "TIFF")
    with tempfile.NamedTemporaryFile(suffix=".tif") as file:
        file.write(body)
        file.flush()
        try:
            told = subprocess.run(["gdalinfo", "-json", file.name], capture_output=True, timeout=HANG_S,
                                  check=True)
        except FileNotFoundError:
            raise Skip("no gdalinfo (gdal-bin)") from None
    told = json.loads(told.stdout)
    world = 2 * math.pi * 6378137
    near(told["geoTransform"][0], x * world / 2 ** 13 - world / 2, "left", within=1e-6)
    near(told["geoTransform"][3], world / 2 - y * world / 2 ** 13, "top", within=1e-6)
    equal(told["size"], [256, 256], "size")
    check("3857" in json.dumps(told["stac"] if "stac" in told else told["coordinateSystem"]), "CRS")


# ---- meshes and coordinate systems ----------------------------------------------------------------


@test("a locale of meshes has a map of its topmost ground")
def _():
    put_locale(daemon, "deck", geo={"lat": 5, "lng": 6})
    put_mesh(daemon, "deck", [rectangle(-300, -300, 300, 300, 12.5)])
    x, y = middle_tile("deck", 16)
    equal({h for row in decode(tile("deck", 16, x, f"{y}.png")) for h in row}, {12.5}, "heights")


@test("crs is kept, told, and refused where it is none or comes with geo")
def _():
    told = daemon.ok("PUT", "/v1/locales/utm", {"crs": "EPSG:32633"}, status=201)
    equal(told["crs"], "EPSG:32633", "crs")
    equal(daemon.ok("PUT", "/v1/locales/utm", {"crs": 25832})["crs"], "EPSG:25832", "a number")
    check("crs" not in daemon.ok("PUT", "/v1/locales/utm", {}), "absent again")
    for wrong in ("32633", "EPSG:", "EPSG:x", "EPSG:1", "EPSG:99999", 1, 32767, 2000.5, True, []):
        problem(daemon.put("/v1/locales/utm", {"crs": wrong}), 400, pointer="/crs")
    problem(daemon.put("/v1/locales/utm", {"crs": "EPSG:32633", "geo": {"lat": 0, "lng": 0}}), 422,
            pointer="/crs")
    daemon.ok("DELETE", "/v1/locales/utm", status=204)


@test("ground in UTM and in web Mercator is where its coordinate system says")
def _():
    # by PROJ 9.1.1: 47.2692 north, 11.4041 east in EPSG:25832
    place("inn", rough("inn", 200, 200, (10.0, 10.0), (681848.8821161 - 1000, 5237883.2413811 - 1000)),
          crs="EPSG:25832")
    box = daemon.ok("GET", "/v1/locales/inn/dem.json")["bounds"]
    check(box[0] < ORIGIN[1] < box[2] and box[1] < ORIGIN[0] < box[3], str(box))
    want = heights("inn", [[681848.8821161, 5237883.2413811]])[0]
    got = daemon.ok("GET", f"/v1/compat/elevation/inn?locations={ORIGIN[0]},{ORIGIN[1]}"
                    "&interpolation=triangle")
    near(got["results"][0]["elevation"], want, "compat", within=1e-3)
    z = 14
    x, y = tile_of(*ORIGIN, z)
    i, j = int(x % 1 * 256), int(y % 1 * 256)
    x, y = int(x), int(y)
    lat, lng = pixel_centre(z, x, y, i, j)
    want = daemon.ok("GET", f"/v1/compat/elevation/inn?locations={lat!r},{lng!r}"
                     "&interpolation=triangle")
    near(decode(tile("inn", z, x, f"{y}.png"))[j][i], want["results"][0]["elevation"], "pixel",
         within=1 / 256)
    mercator = [math.radians(ORIGIN[1]) * 6378137,
                math.asinh(math.tan(math.radians(ORIGIN[0]))) * 6378137]
    place("web", rough("web", 50, 50, (10.0, 10.0), tuple(v - 200 for v in mercator)),
          crs="EPSG:3857")
    got = daemon.ok("GET", f"/v1/compat/elevation/web?locations={ORIGIN[0]},{ORIGIN[1]}"
                    "&interpolation=triangle")
    near(got["results"][0]["elevation"], heights("web", [mercator])[0], "3857", within=1e-3)
    place("lambert", rough("lambert", 5, 5, (10.0, 10.0), (0.0, 0.0)), crs="EPSG:2154")
    problem(daemon.get("/v1/locales/lambert/dem.json"), 422, "EPSG:2154")


# ---- caching and edits ----------------------------------------------------------------------------


@test("v of the current revision is cached for ever, everything else is asked again by its ETag")
def _():
    x, y = middle_tile("alps", 13)
    revision = daemon.ok("GET", "/v1/locales/alps")["revision"]
    now = tile("alps", 13, x, f"{y}.png", f"?v={revision}")
    equal(now.headers["cache-control"], "public, max-age=31536000, immutable", "current")
    private = tile("alps", 13, x, f"{y}.png", f"?v={revision}", headers={"Authorization": "Bearer t"})
    equal(private.headers["cache-control"], "private, max-age=31536000, immutable", "with a token")
    for query in ("", f"?v={revision + 1}", "?v=1"):
        answer = tile("alps", 13, x, f"{y}.png", query)
        equal(answer.headers["cache-control"], "no-cache", query)
        equal(answer.headers["etag"], now.headers["etag"], "tag")
    same = tile("alps", 13, x, f"{y}.png", status=304, headers={"If-None-Match": now.headers["etag"]})
    equal(same.body, b"", "body")
    exposed = now.headers["access-control-expose-headers"]
    check("ETag" in exposed and "Kota-Revision" in exposed, exposed)
    tags = {tile("alps", 13, x, f"{y}.{end}", query).headers["etag"] for end, query in
            (("png", ""), ("png", "?encoding=mapbox"), ("png", "?style=relief"), ("f32", ""),
             ("png", "?void=alpha"), ("tif", ""))}
    equal(len(tags), 6, "a tag for each form")


def tiles_of(name, event, z0, z1):
    """tilesOf of kota.js in Node."""
    script = ("import {Kota} from 'file://" + os.path.join(ROOT, "client/web/kota.js") + "';"
              f"const kota = new Kota('{daemon.url}');"
              f"console.log(JSON.stringify(await kota.tilesOf({json.dumps(event)}, {z0}, {z1})));")
    try:
        ran = subprocess.run(["node", "--input-type=module", "-e", script], capture_output=True,
                             text=True, timeout=HANG_S, check=False)
    except FileNotFoundError:
        raise Skip("no node") from None
    check(ran.returncode == 0, ran.stderr)
    return {(t["z"], t["x"], t["y"]) for t in json.loads(ran.stdout)}


def all_tags(name, z):
    box = daemon.ok("GET", f"/v1/locales/{name}/dem.json")["bounds"]
    x0, y1 = (int(v) for v in tile_of(box[1], box[0], z))
    x1, y0 = (int(v) for v in tile_of(box[3], box[2], z))
    return {(z, x, y): tile(name, z, x, f"{y}.png").headers["etag"]
            for x in range(x0, x1 + 1) for y in range(y0, y1 + 1)}


def edit_and_compare(name, rect, height, z, most):
    before = all_tags(name, z)
    told = daemon.ok("POST", f"/v1/locales/{name}/edits",
                     {"rect": rect, "op": "add", "heights": [height] * (rect[2] * rect[3])})
    spec = daemon.ok("GET", f"/v1/locales/{name}")["layers"][0]
    low = [spec["origin"][k] + (rect[k] - 1) * spec["spacing"][k] for k in range(2)]
    high = [spec["origin"][k] + (rect[k] + rect[k + 2]) * spec["spacing"][k] for k in range(2)]
    event = {"name": "edit", "data": {"locale": name, "revision": told["revision"],
                                      "bounds": {"min": low + [0], "max": high + [0]}}}
    after = all_tags(name, z)
    changed = {key for key in before if before[key] != after[key]}
    named = tiles_of(name, event, z, z)
    check(changed and changed <= named, f"changed {changed - named} were not named")
    check(named <= set(after), f"beside the ground: {named - set(after)}")
    check(len(named) <= most, f"{len(named)} tiles were named, {len(changed)} have changed")


case("tilesOf names the tiles that an edit changed, and few others", edit_and_compare, "alps",
     [150, 100, 5, 5], 30, 16, 6)
case("the same at the rim, whose height goes on beyond it", edit_and_compare, "alps",
     [0, 90, 2, 2], 30, 15, 40)
case("the same in UTM", edit_and_compare, "inn", [60, 60, 8, 8], 25, 16, 8)
case("the same over the antimeridian", edit_and_compare, "holes", [20, 20, 30, 30], 25, 14, 9)


@test("an edit changes the ETag of the tiles that it touched and of no others")
def _():
    place("wide", rough("wide", 600, 600, (8.0, 8.0), (0.0, 0.0)), geo={"lat": 0, "lng": 0})
    before = all_tags("wide", 16)
    daemon.ok("POST", "/v1/locales/wide/edits", {"rect": [500, 500, 2, 2], "op": "add",
                                                 "heights": [50] * 4})
    after = all_tags("wide", 16)
    changed = {key for key in before if before[key] != after[key]}
    check(1 <= len(changed) <= 4, f"{len(changed)} of {len(before)} tiles have changed")


# ---- hostile --------------------------------------------------------------------------------------


@test("tiles that are none are refused, each with its place")
def _():
    for path, pointer in (("60/0/0.png", "z"), ("25/0/0.png", "z"), ("-1/0/0.png", "z"),
                          ("NaN/0/0.png", "z"), ("1e1/0/0.png", "z"), ("3/8/0.png", "x"),
                          ("3/-1/0.png", "x"), ("3/0/8.png", "y"), ("3/0/NaN.png", "y"),
                          ("3/0/.png", "y"), ("3/0/1.jpg", "y"), ("3/0/1", "y"),
                          ("3/0/1@3x.png", "y"), ("3/0/99999999999999999999.png", "y"),
                          ("14/0/0.png", "x")):
        problem(daemon.get(f"/v1/locales/alps/dem/{path}"), 404, pointer=pointer)
    x, y = middle_tile("alps", 12)
    for query, pointer in (("encoding=rgb", "encoding"), ("style=x", "style"), ("void=1", "void"),
                           ("sampling=max", "sampling"), ("v=0", "v"), ("v=-1", "v"),
                           ("v=NaN", "v"), ("size=9", "size"), ("zoom=1", "zoom")):
        problem(daemon.get(f"/v1/locales/alps/dem/12/{x}/{y}.png?{query}"), 400, pointer=pointer)
    problem(daemon.get(f"/v1/locales/alps/dem/12/{x}/{y}.png?layer=none"), 422, pointer="layer")


@test("many cold tiles at once are answered or refused, within bounded memory")
def _():
    place("flood", rough("flood", 400, 400, (30.0, 30.0), (0.0, 0.0)), geo={"lat": 3, "lng": 3})
    before, answers = daemon.memory_kib(), {}
    z, lock = 17, threading.Lock()
    x0, y0 = (int(v) for v in tile_of(3.1, 3.0, z))

    def ask(first):
        connection = connection_to(daemon.port)
        for k in range(first, 10000 if ALL else 320, 16):
            connection.request("GET", f"/v1/locales/flood/dem/{z}/{x0 + k % 35}/{y0 + k // 35 % 35}.png"
                               f"?v={k + 1}")
            answer = connection.getresponse()
            answer.read()
            with lock:
                answers[answer.status] = answers.get(answer.status, 0) + 1
        connection.close()
    threads = [threading.Thread(target=ask, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(set(answers) <= {200, 404, 503} and answers.get(200, 0) > 100, str(answers))
    grown = daemon.memory_kib() - before
    check(grown < 160 * 1024, f"memory grew by {grown} KiB")


run(daemon.stop)
