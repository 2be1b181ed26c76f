"""`kota import` of what the daemon does not read itself: rasters through GDAL, meshes through assimp.

GeoTIFFs are made with gdal_translate from a grid that is computed here; real ones are read when the
shared data is there. What GDAL alone can tell (heights at pixels) is compared with gdallocationinfo.
"""
import array
import glob
import json
import math
import os
import shutil
import struct
import subprocess
import tempfile

from daemon import PROBLEM, Daemon, data_path, problem
from houses import HOUSE, document, node
from images import hgt
from kota_cli import Stub, fails, kota, reply
from tap import Skip, check, equal, near, near_all, run, test

COLS, ROWS = 40, 30
_home = None


def home():
    global _home
    if _home is None:
        _home = Daemon()
    return _home


def height(c, r):
    """Whole numbers, r counted from the north, with a lake that has none."""
    return -9999 if 10 <= c < 14 and 5 <= r < 8 else 100 + 3 * c - 2 * r + (c * r) % 5


def needs_gdal():
    if not shutil.which("gdal_translate"):
        raise Skip("no gdal_translate (gdal-bin)")


def translate(folder, name, *options):
    """The grid as another file."""
    needs_gdal()
    asc = os.path.join(folder, "grid.asc")
    with open(asc, "w", encoding="ascii") as file:
        file.write(f"ncols {COLS}\nnrows {ROWS}\nxllcorner 0\nyllcorner 0\ncellsize 1\n"
                   "NODATA_value -9999\n")
        for r in range(ROWS):
            file.write(" ".join(str(height(c, r)) for c in range(COLS)) + "\n")
    path = os.path.join(folder, name)
    subprocess.run(["gdal_translate", "-q", *options, asc, path], check=True)
    return path


def imported(name, path, *options):
    result = kota("import", name, "ground", path, *options, url=home().url)
    check(result.status == 0, str(result))
    return result.lines[0], result.err


def samples(name):
    body = home().get(f"/v1/locales/{name}/layers/ground").body
    return array.array("f", body)


def same_grid(name, scale=1.0, offset=0.0, flip_x=False):
    got = samples(name)
    equal(len(got), COLS * ROWS, "samples")
    for r in range(ROWS):
        for c in range(COLS):
            want = height(COLS - 1 - c if flip_x else c, ROWS - 1 - r)
            value = got[r * COLS + c]
            if want == -9999:
                check(math.isnan(value), f"({c},{r}) is no hole: {value}")
            else:
                near(value, offset + scale * want, f"({c},{r})", rel=1e-6)


@test("an SRTM tile lies as its name says, and as the daemon lays it from its command line")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s46w066.SRTMGL3.hgt")
        with open(path, "wb") as file:
            file.write(hgt([[r * 11 + c for c in range(11)] for r in range(11)]))
        locale, said = imported("tile", path)
        check("SRTM tile" in said and "north first" in said, said)
        with Daemon(path) as other:
            want = other.ok("GET", "/v1/locales")["locales"][0]
            want = other.ok("GET", f"/v1/locales/{want['id']}")["layers"][0]
            heights = other.get(f"/v1/locales/{other.ok('GET', '/v1/locales')['locales'][0]['id']}"
                                "/layers/ground").body
        equal({**locale["layers"][0], "memory_bytes": 0}, {**want, "memory_bytes": 0}, "the layer")
        equal(samples("tile").tobytes(), heights, "heights")
        locale, said = imported("placed", path, "--spacing", "2,3")
        equal((locale["layers"][0]["spacing"], said), ([2, 3], ""), "a spacing that is given")
        equal(samples("placed")[0], 0, "the first row is the first one then")
        other = shutil.copy(path, os.path.join(folder, "tile.hgt"))
        fails(kota("import", "none", "ground", other, url=home().url), 2, "--spacing", "N42E001.hgt")
        for name in ("tile.png", "tile.f32"):
            other = shutil.copy(path, os.path.join(folder, name))
            fails(kota("import", "none", "ground", other, url=home().url), 2, "--spacing", name)
        problem(home().get("/v1/locales/none"), 404)


@test("a locale that was made for a layer goes with it when the layer is refused; no other does")
def _():
    home().ok("PUT", "/v1/locales/old", {}, status=201)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bad.png")
        with open(path, "wb") as file:
            file.write(b"no picture")
        for name, options in (("new", ()), ("new", ("--title", "t")), ("old", ())):
            fails(kota("import", name, "ground", path, "--spacing", "1,1", *options, url=home().url), 1,
                  "PNG")
        problem(home().get("/v1/locales/new"), 404)
        equal(home().ok("GET", "/v1/locales/old")["revision"], 1, "revision of the one that was there")


@test("what somebody else has made or changed meanwhile stays; that it stays by mistake is told")
def _():
    missing = reply({"title": "Not found", "detail": "no locale a"}, "404 Not Found", PROBLEM)
    changed = reply({"title": "Precondition failed", "detail": "at 8"}, "412 Precondition Failed",
                    PROBLEM)
    broken = reply({"title": "Bad input", "detail": "no PNG"}, "400 Bad Request", PROBLEM)
    busy = reply({"title": "Busy", "detail": "not now"}, "503 Service Unavailable", PROBLEM)
    made = reply({"id": "a", "revision": 7, "layers": []}, "201 Created")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.png")
        with open(path, "wb") as file:
            file.write(b"x")
        for manifest, deleted, wanted, said in (
                (made, reply(b"", "204 No Content"), 4, False), (made, changed, 4, False),
                (made, missing, 4, False), (made, busy, 4, True), (changed, busy, 3, False)):
            layers = [missing, broken]

            def answer(request):
                if request.method == "DELETE":
                    equal(request.headers.get("if-match"), '"7"', "If-Match")
                    return deleted
                if request.target == "/v1/locales/a":
                    equal(request.headers.get("if-none-match"), "*", "If-None-Match")
                    return manifest
                return layers.pop(0)
            with Stub(answer) as stub:
                result = kota("import", "a", "ground", path, "--spacing", "1,1", url=stub.url)
                equal(result.status, 1, str(result))
                equal("stays, without the layer" in result.err, said, result.err)
                check("no PNG" in result.err, result.err)
                equal(len(stub.requests), wanted, "requests")


@test("a projected GeoTIFF lies where its coordinates say, holes and all")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = translate(folder, "utm.tif", "-a_srs", "EPSG:32631", "-a_ullr", "400000", "4600600",
                         "401200", "4600000", "-ot", "Int16")
        locale, said = imported("utm", path)
    layer = locale["layers"][0]
    equal((layer["cols"], layer["rows"]), (COLS, ROWS), "size")
    near_all(layer["spacing"], [30, 20], "spacing")
    near_all(layer["origin"], [400015, 4600010], "origin")
    check("projected (WGS 84 / UTM zone 31N)" in said and said.count("\n") == 1, said)
    same_grid("utm")
    answer = home().ok("GET", "/v1/locales/utm/height?x=400045&y=4600590")
    near(answer["height"], height(1, 0), "the north edge is at the greatest y")


@test("a geographic one becomes a plane around its middle, and the locale knows its place")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = translate(folder, "deg.tif", "-a_srs", "EPSG:4326", "-a_ullr", "1", "42.3", "1.4",
                         "42")
        locale, said = imported("deg", path)
    layer = locale["layers"][0]
    near_all(layer["spacing"], [0.01 * 82600, 0.01 * 111075], "spacing", rel=1e-3)
    near_all(layer["origin"], [-layer["spacing"][0] * (COLS - 1) / 2,
                               -layer["spacing"][1] * (ROWS - 1) / 2], "origin", rel=1e-9)
    near(locale["geo"]["lat"], 42.15, "lat")
    near(locale["geo"]["lng"], 1.2, "lng")
    check("geographic (WGS 84)" in said and "gdalwarp" in said, said)
    same_grid("deg")


@test("a globe is told to be too large for a plane")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = translate(folder, "globe.tif", "-a_srs", "EPSG:4326", "-a_ullr", "-180", "90", "180",
                         "-90")
        _, said = imported("globe", path)
    check("the area is too large for a plane" in said and "wrong by 95 %" in said, said)
    check("e+" not in said, said)


@test("a grid in degrees without a coordinate system is refused; --spacing says the metres")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bijou.asc")
        with open(path, "w", encoding="ascii") as file:
            file.write("ncols 2\nnrows 3\nxllcorner -104.6\nyllcorner 39.5\ncellsize 0.000277\n"
                       "1 2\n3 4\n5 6\n")
        fails(kota("import", "bijou", "ground", path, url=home().url), 1, "degrees", "23.8")
        if not shutil.which("gdal_translate"):
            raise Skip("no GDAL (gdal-bin)")
        fails(kota("import", "bijou", "ground", path, "--format", "gdal", url=home().url), 2,
              "degrees", "--spacing 23.8", "--spacing 0.000277")
        locale, said = imported("bijou", path, "--format", "gdal", "--spacing", "23.8,30.7")
        check("only by the options" in said, said)
        near_all(locale["layers"][0]["spacing"], [23.8, 30.7], "spacing")
        equal(samples("bijou")[0], 5, "the south row is first")


@test("options go before what the file says; a file that says nothing needs them")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = translate(folder, "own.tif", "-a_srs", "EPSG:32631", "-a_ullr", "0", "600", "1200",
                         "0")
        locale, _ = imported("own", path, "--spacing", "2,3", "--origin", "-5,7",
                             "--height-scale", "0.5", "--height-offset", "10")
        near_all(locale["layers"][0]["spacing"], [2, 3], "spacing")
        near_all(locale["layers"][0]["origin"], [-5, 7], "origin")
        same_grid("own", 0.5, 10)
        fails(kota("import", "own", "ground", path, "--flip-y", url=home().url), 2, "--flip-y")
        fails(kota("import", "own", "ground", path, "--band", "2", url=home().url), 2, "band 2 of 1")
        bare = os.path.join(folder, "bare.png")
        subprocess.run(["gdal_translate", "-q", "-of", "PNG", "-ot", "UInt16", "-a_nodata", "none",
                        "-co", "WORLDFILE=NO", path, bare], check=True)
        for aux in glob.glob(os.path.join(folder, "*.aux.xml")):
            os.remove(aux)
        fails(kota("import", "bare", "ground", bare, "--format", "gdal", url=home().url), 2,
              "--spacing")
        locale, said = imported("bare", bare, "--format", "gdal", "--spacing", "4,4", "--flip-y")
        check("only by the options" in said, said)
        near_all(locale["layers"][0]["spacing"], [4, 4], "spacing")
        equal(samples("bare")[0], height(0, ROWS - 1), "the first sample")


@test("a VRT that runs from east to west, in feet, scaled, of its second band")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = translate(folder, "grid.tif", "-a_ullr", "0", "30", "40", "0")
        vrt = os.path.join(folder, "both.vrt")
        source = """<SimpleSource><SourceFilename relativeToVRT="1">grid.tif</SourceFilename>
          <SourceBand>1</SourceBand></SimpleSource>"""
        with open(vrt, "w", encoding="ascii") as file:
            file.write(f"""<VRTDataset rasterXSize="{COLS}" rasterYSize="{ROWS}">
              <GeoTransform>4000, -10, 0, 9000, 0, -10</GeoTransform>
              <VRTRasterBand dataType="Float32" band="1"/>
              <VRTRasterBand dataType="Float32" band="2"><NoDataValue>-9999</NoDataValue>
              <UnitType>ft</UnitType><Scale>2</Scale><Offset>5</Offset>{source}</VRTRasterBand>
              </VRTDataset>""")
        locale, said = imported("both", vrt, "--band", "2")
        os.remove(path)
    near_all(locale["layers"][0]["origin"], [3605, 8705], "origin")
    check("no coordinate system, taken as metres" in said, said)
    same_grid("both", 2 * 0.3048, 5 * 0.3048, flip_x=True)


@test("what is turned, empty, torn or no raster is refused with one line, and nothing is made")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = translate(folder, "grid.tif", "-a_ullr", "0", "30", "40", "0")
        whole = open(path, "rb").read()
        turned = os.path.join(folder, "turned.vrt")
        with open(turned, "w", encoding="ascii") as file:
            file.write(f"""<VRTDataset rasterXSize="{COLS}" rasterYSize="{ROWS}">
              <GeoTransform>0, 1, 0.5, 0, 0.5, -1</GeoTransform>
              <VRTRasterBand dataType="Float32" band="1"/></VRTDataset>""")
        huge = os.path.join(folder, "huge.vrt")
        with open(huge, "w", encoding="ascii") as file:
            file.write("""<VRTDataset rasterXSize="2000000000" rasterYSize="2000000000">
              <GeoTransform>0, 1, 0, 0, 0, -1</GeoTransform>
              <VRTRasterBand dataType="Float32" band="1"/></VRTDataset>""")
        cases = [(turned, "turned against its axes"), (huge, "2000000000 x 2000000000")]
        for name, content in (("empty.tif", b""), ("text.tif", b"hello" * 100),
                              ("torn.tif", whole[:len(whole) // 2]), ("name.xyz", b"\n")):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
            cases.append((os.path.join(folder, name), name))
        with Stub(lambda request: reply({})) as stub:
            for file, words in cases:
                fails(kota("import", "a", "ground", file, url=stub.url), 2, words)
            equal(len(stub.requests), 0, "requests")


@test("without GDAL the message says which package it is in")
def _():
    with tempfile.TemporaryDirectory() as folder, Stub(lambda request: reply({})) as stub:
        path = os.path.join(folder, "x.vrt")
        open(path, "wb").close()
        for library in ("/nonexistent.so", "libc.so.6"):
            words = "apt install gdal-bin" if library[0] == "/" else "3.0 is needed"
            for options in ([], ["--format", "gdal"]):
                fails(kota("import", "a", "ground", path, *options, url=stub.url,
                           env={"KOTA_GDAL": library}), 2, words)
        equal(len(stub.requests), 0, "requests")


def gdal_at(path, points):
    text = "".join(f"{c} {r}\n" for c, r in points)
    done = subprocess.run(["gdallocationinfo", "-valonly", path], input=text.encode(), check=True,
                          stdout=subprocess.PIPE)
    return [float(line) for line in done.stdout.split()]


def real(name, *path):
    """A real raster: size, holes and heights are what GDAL's own tool says."""
    needs_gdal()
    path = data_path("rasters", *path)
    with open(os.path.join(os.path.dirname(path), "meta.json"), encoding="utf-8") as file:
        json.load(file)
    locale, said = imported(name, path)
    layer = locale["layers"][0]
    got = samples(name)
    points = [(c, r) for c in range(0, layer["cols"], layer["cols"] // 9)
              for r in range(0, layer["rows"], layer["rows"] // 7)]
    info = json.loads(subprocess.run(["gdalinfo", "-json", path], check=True,
                                     stdout=subprocess.PIPE).stdout)
    void = info["bands"][0].get("noDataValue")
    equal(info["size"], [layer["cols"], layer["rows"]], "size")
    for (c, r), want in zip(points, gdal_at(path, points)):
        value = got[(layer["rows"] - 1 - r) * layer["cols"] + c]
        if want == void:
            check(math.isnan(value), f"({c},{r}): {value} for a void")
        else:
            near(value, want, f"({c},{r})", rel=1e-6)
    return locale, said


@test("real: Mount Fuji, a GeoTIFF in degrees with voids")
def _():
    locale, _ = real("fuji", "fuji_srtm3", "mt_fuji_90m.tif")
    near_all(locale["layers"][0]["spacing"], [75.5224, 92.4552], "spacing", rel=3e-3)
    near(locale["geo"]["lat"], 35.5, "lat", rel=1e-3)


@test("real: LiDAR in UTM, float32")
def _():
    locale, said = real("lidar", "lidar_1m", "lidar_1m.tif")
    near_all(locale["layers"][0]["spacing"], [1, 1], "spacing", rel=1e-6)
    check("projected" in said, said)


@test("real: Mount St Helens, a USGS DEM")
def _():
    locale, said = real("helens", "sthelens_usgs", "SainteHelens.dem")
    near_all(locale["layers"][0]["spacing"], [30, 30], "spacing", rel=1e-6)
    check("projected" in said, said)


@test("real: Mars, a VRT over raw integers")
def _():
    real("mars", "mars_mola_4ppd", "megt90n000cb.vrt")


# ---- meshes --------------------------------------------------------------------------------------

def ground_at(name, x, y):
    return home().ok("GET", f"/v1/locales/{name}/height?x={x}&y={y}")["height"]


@test("an OFF file is converted through assimp, and its polygons are ground")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "roof.off")
        with open(path, "w", encoding="ascii") as file:
            file.write("OFF\n6 2 0\n0 0 1\n10 0 1\n10 5 3\n0 5 3\n0 10 1\n10 10 1\n"
                       "4 0 1 2 3\n4 3 2 5 4\n")
        result = kota("import", "roof", "mesh", path, "--scale", "2", url=home().url)
        if result.status and "assimp is not installed" in result.err:
            raise Skip("no assimp")
        check(result.status == 0, str(result))
        equal(result.lines[0]["layers"][0]["polygons"], 2, "polygons")
        near(ground_at("roof", 10, 5), 4, "the slope")
        near(ground_at("roof", 10, 10), 6, "the ridge")
        with open(path, "w", encoding="ascii") as file:
            file.write("OFF\n6 2 0\n0 0 1\n")
        with Stub(lambda request: reply({})) as stub:
            fails(kota("import", "a", "mesh", path, url=stub.url), 2, "roof.off")
            fails(kota("import", "a", "mesh", path, "--format", "assimp", url=stub.url), 2, "roof.off")
            equal(len(stub.requests), 0, "requests")


@test("what assimp rounds to float32 is told, and refused beyond --precision-max-m")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "far.off")
        with open(path, "w", encoding="ascii") as file:
            file.write("OFF\n3 1 0\n400000.1 5600000.2 1\n400010 5600000.2 1\n400000.1 5600010 1\n"
                       "3 0 1 2\n")
        result = kota("import", "far", "mesh", path, url=home().url)
        if result.status and "assimp is not installed" in result.err:
            raise Skip("no assimp")
        fails(result, 2, "steps of 0.5 m", "--precision-max-m 0.01")
        result = kota("import", "far", "mesh", path, "--precision-max-m", "0.5", url=home().url)
        check(result.status == 0 and "in steps of 0.5 m" in result.err, str(result))
        result = kota("import", "far", "mesh", path, "--scale", "0.01", url=home().url)
        check(result.status == 0 and "in steps of 0.005 m" in result.err, str(result))


@test("an X file with a turned and moved part stands where its tree puts it")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "part.x")
        with open(path, "w", encoding="ascii") as file:
            file.write("""xof 0303txt 0032
Frame part {
 FrameTransformMatrix {
  0.0,1.0,0.0,0.0,
  -1.0,0.0,0.0,0.0,
  0.0,0.0,1.0,0.0,
  100.0,50.0,7.0,1.0;;
 }
 Mesh {
  4;
  0.0;0.0;0.0;,
  4.0;0.0;0.0;,
  4.0;2.0;0.0;,
  0.0;2.0;0.0;;
  1;
  4;0,1,2,3;;
 }
}
""")
        result = kota("import", "part", "mesh", path, url=home().url)
        if result.status and "assimp is not installed" in result.err:
            raise Skip("no assimp")
        check(result.status == 0, str(result))
        bounds = result.lines[0]["bounds"]
        # assimp makes X's left-handed frame right-handed by turning z; the part lies in x and y
        near(bounds["max"][0] - bounds["min"][0], 2, "width")
        near(bounds["max"][1] - bounds["min"][1], 4, "depth")
        near(bounds["max"][0], 100, "east edge")
        near(bounds["min"][1], 50, "south edge")


@test("what the daemon reads goes up as it is")
def _():
    with tempfile.TemporaryDirectory() as folder, \
            Stub(lambda request: reply({"id": "a"}, status="201 Created")) as stub:
        for ending, media in (("hgt", "application/vnd.kota.hgt"), ("asc", "application/vnd.kota.asc"),
                              ("png", "image/png"), ("tif", "image/tiff"), ("TIFF", "image/tiff"), ("glb", "model/gltf-binary"),
                              ("stl", "model/stl"), ("ply", "model/ply"), ("ac", "application/x-ac3d"),
                              ("dae", "model/vnd.collada+xml"), ("OBJ", "model/obj")):
            content = struct.pack("<8s", ending.encode())
            path = os.path.join(folder, "x." + ending)
            with open(path, "wb") as file:
                file.write(content)
            options = ["--spacing", "1,1"] if ending in ("hgt", "png") else []
            result = kota("import", "a", "b", path, *options, url=stub.url,
                          env={"KOTA_GDAL": "/nonexistent"})
            equal((result.status, result.err), (0, ""), ending)
            equal(stub.requests[-1].headers["content-type"], media, ending)
            check(stub.requests[-1].body == content, ending)


@test("standard error has how many instances of a glTF share their polygons")
def _():
    nodes = [node(0, 9.0 * i) for i in range(3)] + [node(0, 40, tilt=0.5)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "town.glb")
        for count, told in ((4, "3 instances share their polygons, 1 are copied"), (1, "")):
            with open(path, "wb") as file:
                file.write(document(nodes[:count], [HOUSE]))
            result = kota("import", "town", "houses", path, "--up", "y", url=home().url)
            equal(result.status, 0, str(result))
            equal(result.err.strip(), told and f"kota: {path}: {told}", "on standard error")


def finish():
    if _home:
        _home.stop()


run(finish)
