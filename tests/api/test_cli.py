"""The command line client `kota`: against a stub that answers as told (also wrongly, slowly or not
at all), and against the real daemon.
"""
import array
import json
import math
import os
import re
import socket
import struct
import subprocess
import tempfile
import threading

from daemon import Daemon, clean_environment
from fields import put_locale
from kota_cli import KOTA, Stub, fails, heights, kota, on_terminal, reply
from mesh_oracle import put_mesh, rectangle
from tap import HANG_S, Skip, case, check, equal, near, near_all, rng, run, test

# ---- help and misuse -----------------------------------------------------------------------------

COMMANDS = ["ls", "info", "height", "ray", "los", "lit", "contact", "profile", "pick", "contains",
            "locate", "import", "export", "rm", "edit", "patch", "model", "watch", "check", "bench",
            "completion", "manual"]


@test("--help lists every command, and every command has a help of its own")
def help_everywhere():
    result = kota("--help")
    equal(result.status, 0, "status")
    for name in COMMANDS:
        check(re.search(rf"^  {name} ", result.out.decode(), re.M), f"--help lacks {name}")
        for args in ([name, "--help"], ["--help", name], [name, "-h", "x"]):
            own = kota(*args)
            equal((own.status, own.err), (0, ""), f"kota {' '.join(args)}")
        check(kota(name, "--help").out.startswith(f"usage: kota {name}".encode()),
              f"kota {name} --help has no usage line")


MISUSES = [
    (["fly"], "unknown command 'fly'"),
    (["--what", "ls"], "unknown option --what"),
    (["ls", "--eye", "1,2,3"], "unknown option --eye"),
    (["ls", "more", "still"], "one argument too many"),
    (["ls", "no/id"], "is no id"),
    (["ls", "--url"], "--url needs a value"),
    (["ls", "--json=yes"], "--json takes no value"),
    (["ls", "--url", "ftp://127.0.0.1"], "is not a URL"),
    (["ls", "--url", ""], "is not a URL"),
    (["ls", "--url", "http://127.0.0.1:7420/?x=1"], "query"),
    (["ls", "--timeout", "0"], "--timeout"),
    (["ls", "--timeout", "nan"], "--timeout"),
    (["ls", "--timeout", "5s"], "--timeout"),
    (["ls", "--timeout", "1e9"], "--timeout"),
    (["ls", "--token-file", "/nonexistent/token"], "/nonexistent/token"),
    (["info"], "an argument is missing"),
    (["info", "a/b"], "'a/b' is no id"),
    (["info", "a" * 65], "is no id"),
    (["info", ".."], "is no id"),
    (["height", "a", "nan,1"], "'nan,1'"),
    (["height", "a", "1,inf"], "'1,inf'"),
    (["height", "a", "1"], "exactly 2 numbers"),
    (["height", "a", "1,2,3"], "exactly 2 numbers"),
    (["height", "a", "1,2x"], "'1,2x'"),
    (["height", "a", "1e999,2"], "'1e999,2'"),
    (["ray", "a", "0,0,0"], "'0,0,0'"),
    (["ray", "a", "0,0,0", "0,0"], "exactly 3 numbers"),
    (["ray", "a", "0,0,0", "0,0,1", "--t-max", "inf"], "'inf'"),
    (["los", "a", "0,0,0", "1,1"], "exactly 3 numbers"),
    (["contact", "a", "1,2"], "exactly 3 numbers"),
    (["contact", "a", "1,2,3", "--exact"], "--exact needs --clearance"),
    (["contact", "a", "1,2,3", "--reach-up", "inf"], "--reach-up 'inf'"),
    (["contact", "a", "1,2,3", "--max-distance", "far"], "--max-distance 'far'"),
    (["profile", "a", "0,0", "1,1"], "exactly one of --samples and --step"),
    (["profile", "a", "0,0", "1,1", "--samples", "3", "--step", "1"], "exactly one"),
    (["profile", "a", "0,0", "--samples", "3"], "2 to"),
    (["profile", "a", "0,0", "1,1", "--samples", "2.5"], "'2.5'"),
    (["pick", "a", "--eye", "0,0,1"], "--target is missing"),
    (["pick", "a", "--eye", "0,0,1", "--target", "1,1,0", "--pixel", "1,1"],
     "--viewport is missing"),
    (["pick", "a", "--eye", "0,0,1", "--target", "1,1,0", "--pixel", "1,1", "--viewport", "640"],
     "'640'"),
    (["pick", "a", "--eye", "0,0", "--target", "1,1,0", "--pixel", "1,1", "--viewport", "6x4"],
     "--eye '0,0'"),
    (["put", "a", "ground"], "the file of layer 'ground' is missing"),
    (["put", "a", "ground", "/nonexistent.png", "--spacing", "1,1"], "/nonexistent.png"),
    (["put", "a", "ground", "/nonexistent.jpg", "--spacing", "1,1"], "/nonexistent.jpg"),
    (["put", "a", "ground", "x.png", "--spacing", "1"], "--spacing '1'"),
    (["put", "a", "--spacing", "1,1"], "LAYER FILE"),
    (["put", "a", "--rows", "3"], "LAYER FILE"),
    (["put", "a", "--manifest", "/nonexistent.json"], "/nonexistent.json"),
    (["put", "a", "--manifest", "/dev/null", "--title", "x"], "--manifest stands for"),
    (["import", "a", "ground"], "the file of layer 'ground' is missing"),
    (["export", "a", "ground"], "an argument is missing"),
    (["export", "a", "ground", "x.tif"], "x.tif"),
    (["export", "a", "no/id", "x.f32"], "no/id"),
    (["edit", "a"], "--rect"),
    (["edit", "a", "--op", "set", "--heights", "1"], "--rect"),
    (["edit", "a", "--rect", "0,0,2,2", "--brush", "raise"], "either"),
    (["edit", "a", "--rect", "0,0,2,2", "--op", "mul", "--heights", "1"], "mul"),
    (["edit", "a", "--rect", "0,0,2,2", "--op", "set"], "--heights"),
    (["edit", "a", "--rect", "0,0,2", "--op", "set", "--heights", "1"], "--rect"),
    (["edit", "a", "--rect", "0,0,2,0.5", "--op", "set", "--heights", "1"], "0.5"),
    (["edit", "a", "--rect", "0,0,99999,99999", "--op", "set", "--heights", "1"], "samples"),
    (["edit", "a", "--rect", "0,0,2,2", "--op", "set", "--heights", "/nonexistent"],
     "/nonexistent"),
    (["edit", "a", "--rect", "0,0,2,2", "--op", "set", "--heights", "1e99"], "float32"),
    (["edit", "a", "--brush", "raise", "--center", "1,2"], "--radius"),
    (["edit", "a", "--brush", "raise", "--radius", "2"], "--center"),
    (["edit", "a", "--brush", "raise", "--center", "1", "--radius", "2"], "--center"),
    (["edit", "a", "--brush", "raise", "--at", "1", "--radius", "2"], "--center"),
    (["import", "a", "ground", "/dev/null", "--format", "png"], "--spacing"),
    (["import", "a", "ground", "/dev/null", "--format", "f32", "--cols", "1", "--rows", "1"],
     "--spacing"),
    (["import", "a", "ground", "/dev/null", "--format", "hgt"], "N42E001.hgt"),
    (["watch", "a", "b"], "one argument too many"),
    (["watch", "no/id"], "no/id"),
]


@test("a wrong command line is one line on stderr and status 2, and no request is made")
def misuse():
    with Stub(lambda request: reply({})) as stub:
        for args, words in MISUSES:
            fails(kota(*args, url=stub.url), 2, words)
        equal(len(stub.requests), 0, "requests")


# ---- what it sends -------------------------------------------------------------------------------

@test("points of the command line go out in one request, without losing a bit")
def points_exact():
    points = [(0.1, -2.5), (1 / 3, 1e300), (-0.0, 5e-324), (123456789.123456789, 2**53 + 2)]
    with Stub(heights) as stub:
        result = kota("height", "a", *[f"{x!r},{y!r}" for x, y in points], "--interp", "bilinear",
                      "--layer", "g", url=stub.url)
        equal((result.status, result.err), (0, ""), "outcome")
        equal(len(stub.requests), 1, "requests")
        request = stub.requests[0]
    equal((request.method, request.target), ("POST", "/v1/locales/a/height"), "request")
    equal(request.headers["content-type"], "application/json", "Content-Type")
    check("authorization" not in request.headers, "a token was sent that nobody gave")
    equal(request.json["interp"], "bilinear", "interp")
    equal(request.json["layer"], "g", "layer")
    equal([struct.pack("dd", *p) for p in request.json["points"]],
          [struct.pack("dd", *p) for p in points], "bits of the points")
    equal([line["height"] for line in result.lines], [x + 2 * y for x, y in points], "heights")
    equal([line["revision"] for line in result.lines], [7] * 4, "revisions")


@test("a stream of 25,000 points goes out in chunks of 10,000 and comes back in order")
def chunks():
    random = rng("chunks")
    points = [(random.uniform(-1e6, 1e6), random.uniform(-1e6, 1e6)) for _ in range(25000)]
    text = "\n".join(f"{x!r},{y!r}" if i % 2 else f"[{x!r}, {y!r}]"
                     for i, (x, y) in enumerate(points))
    with Stub(heights) as stub:
        result = kota("height", "a", stdin=text.encode(), url=stub.url)
        equal((result.status, result.err), (0, ""), "outcome")
        equal([len(request.json["points"]) for request in stub.requests], [10000, 10000, 5000],
              "chunks")
    equal([line["height"] for line in result.lines], [x + 2 * y for x, y in points], "heights")


@test("rays, sight lines, paths and cameras become the bodies that the contract says")
def bodies():
    ray = {"status": "miss", "t": None}
    with Stub(lambda request: reply({"revision": 1, "results": [ray] * 2})) as stub:
        kota("ray", "a", "1,2,3", "0,0,-1", "4,5,6", "1,0,0", "--t-max", "9", "--any", "--layer",
             "g", url=stub.url)
        kota("ray", "a", stdin=b"1,2,3,0,0,-1\n4 5 6 1 0 0 2.5\n", url=stub.url)
        kota("los", "a", "1,2,3", "4,5,6", "7,8,9", "1,1,1", "--layer", "g", url=stub.url)
        kota("contact", "a", "1,2,3", "-4,5,6", "--clearance", "2", "--exact", "--layer", "g",
             "--reach-up", "0.25", "--max-distance", "1e2", url=stub.url)
        kota("lit", "a", "1,2,3", "--position", "4,5,6", "--layer", "g", url=stub.url)
        kota("lit", "a", "1,2,3", "-4,5,6", "--direction", "0,0,-1", url=stub.url)
        kota("profile", "a", "0,0", "-5,1e2", "--step", "0.5", "--layer", "g", url=stub.url)
        kota("pick", "a", "--eye", "1,2,3", "--target", "4,5,6", "--viewport", "640x480", "--pixel",
             "320.5,7", "--tile-side", "16", "--fov", "45", "--layer", "g", url=stub.url)
        bodies = [request.json for request in stub.requests]
        targets = [request.target for request in stub.requests]
    equal(targets, [f"/v1/locales/a/{name}" for name in ("ray", "ray", "los", "contact", "lit",
                                                "lit", "profile", "pick")],
          "targets")
    equal(bodies[0], {"mode": "any", "layer": "g", "rays": [
        {"origin": [1, 2, 3], "direction": [0, 0, -1], "t_max": 9},
        {"origin": [4, 5, 6], "direction": [1, 0, 0], "t_max": 9}]}, "rays")
    equal(bodies[1], {"rays": [{"origin": [1, 2, 3], "direction": [0, 0, -1]},
                               {"origin": [4, 5, 6], "direction": [1, 0, 0], "t_max": 2.5}]},
          "rays")
    equal(bodies[2], {"layer": "g", "segments": [{"from": [1, 2, 3], "to": [4, 5, 6]},
                                   {"from": [7, 8, 9], "to": [1, 1, 1]}]}, "segments")
    equal(bodies[3], {"clearance": 2, "clearance_mode": "exact", "layer": "g", "reach_up": 0.25,
                      "max_distance": 100,
                      "points": [[1, 2, 3], [-4, 5, 6]]}, "points")
    equal(bodies[4:6], [
        {"layer": "g", "light": {"position": [4, 5, 6]}, "points": [[1, 2, 3]]},
        {"light": {"direction": [0, 0, -1]}, "points": [[1, 2, 3], [-4, 5, 6]]}], "lights")
    equal(bodies[6], {"step": 0.5, "layer": "g", "path": [[0, 0], [-5, 100]]}, "path")
    equal(bodies[7], {"camera": {"eye": [1, 2, 3], "target": [4, 5, 6], "up": [0, 0, 1],
                                 "fov_y_deg": 45},
                      "viewport": [640, 480], "layer": "g", "pixel": [320.5, 7],
                      "tile_side": 16}, "camera")


@test("put sends a file as it is, with its media type and its options in the query")
def put_file():
    content = bytes(range(256)) * 8000  # above the size at which curl would ask first
    with tempfile.TemporaryDirectory() as folder, \
            Stub(lambda request: reply({"id": "a"}, status="201 Created")) as stub:
        path = os.path.join(folder, "Dem.F32")
        with open(path, "wb") as file:
            file.write(content)
        result = kota("put", "a", "ground", path, "--spacing", "10,2.5", "--origin", "-5,1e20",
                      "--cols", "800", "--rows", "640", "--height-scale", "0.1", "--flip-y",
                      "--nodata", "-9999", url=stub.url)
        manifest = kota("put", "a", "--title", 'A "hill"', url=stub.url)
        path = os.path.join(folder, "manifest.json")
        with open(path, "w") as file:
            file.write('{"open_sky": false}')
        whole = kota("put", "a", "--manifest", path, url=stub.url)
        requests = stub.requests
    equal((result.status, result.out), (0, b'{"id":"a"}\n'), "outcome")
    equal(requests[0].method, "PUT", "method")
    equal(requests[0].headers["content-type"], "application/vnd.kota.f32", "Content-Type")
    check("expect" not in requests[0].headers, "Expect was sent")
    check(requests[0].body == content, "the body is not the file")
    path, _, query = requests[0].target.partition("?")
    equal(path, "/v1/locales/a/layers/ground", "path")
    equal(dict(item.split("=") for item in query.split("&")),
          {"flip_y": "true", "spacing": "10,2.5", "origin": "-5,1e20", "cols": "800",
           "rows": "640", "height_scale": "0.1", "nodata": "-9999"}, "query")
    equal(manifest.status, 0, "status of the manifest")
    equal((requests[1].target, requests[1].json), ("/v1/locales/a", {"title": 'A "hill"'}),
          "manifest")
    equal((whole.status, requests[2].body), (0, b'{"open_sky": false}'), "manifest of a file")


@test("the token of a file is sent: that of an edit line before a read line before a bare one")
def tokens():
    cases = [("secret\n", "secret"), ("read r\nedit e\nread s\n", "e"), ("read r # who\n", "r"),
             ("# comment\n\n  edit   abc  \n", "abc")]
    with tempfile.TemporaryDirectory() as folder, \
            Stub(lambda request: reply({"locales": []})) as stub:
        path = os.path.join(folder, "tokens")
        for text, token in cases:
            with open(path, "w") as file:
                file.write(text)
            result = kota("ls", "--token-file", path, url=stub.url)
            equal((result.status, result.out), (0, b""), repr(text))
            equal(stub.requests[-1].headers.get("authorization"), f"Bearer {token}", repr(text))
        count = len(stub.requests)
        for text, words in (("", "has no token"), ("# only\n", "has no token"),
                            ("two words\n", "visible ASCII"), ("t\x01\n", "visible ASCII")):
            with open(path, "w") as file:
                file.write(text)
            fails(kota("ls", "--token-file", path, url=stub.url), 2, words)
        equal(len(stub.requests), count, "requests with a wrong token")


@test("--url counts before KOTA_URL, and a path in it is kept")
def urls():
    with Stub(lambda request: reply({"locales": []})) as stub:
        result = kota("--url", stub.url + "/behind/proxy/", "ls", url="http://127.0.0.1:1")
        equal((result.status, result.err), (0, ""), "outcome")
        equal(stub.requests[0].target, "/behind/proxy/v1/locales?layers=true",
              "target")


@test("a proxy of the environment does not stand between kota and a loopback address")
def proxies():
    with Stub(lambda request: reply({"locales": []})) as stub:
        env = {"http_proxy": "http://127.0.0.1:1", "all_proxy": "http://127.0.0.1:1"}
        for url in (stub.url, stub.url.replace("127.0.0.1", "localhost")):
            result = kota("ls", url=url, env=env)
            equal((result.status, result.err), (0, ""), url)


# ---- what it makes of answers --------------------------------------------------------------------

@test("import makes a locale that is not there, and sends the file again")
def import_makes():
    known = []

    def answer(request):
        if request.method == "PUT" and request.target == "/v1/locales/a":
            known.append(request.json)
            return reply({"id": "a"}, status="201 Created")
        if request.method == "GET":
            return reply({"id": "a", "triangulation": "main"}) if known else missing
        return reply({"id": "a", "layers": []}, status="201 Created") if known else missing

    missing = reply({"title": "Not found", "detail": "there is no locale a"}, "404 Not Found",
                    "application/problem+json")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.f32")
        with open(path, "wb") as file:
            file.write(bytes(16))
        args = ["import", "a", "ground", path, "--cols=2", "--rows=2", "--spacing=1,1"]
        with Stub(answer) as stub:
            first = kota(*args, url=stub.url)
            again = kota(*args, url=stub.url)
            same = kota(*args, "--triangulation", "main", url=stub.url)
            fails(kota(*args, "--triangulation", "anti", url=stub.url), 1, "is there already")
            fails(kota(*args, "--title", "x", url=stub.url), 1, "is there already")
            methods = [f"{r.method} {r.target.partition('?')[0]}" for r in stub.requests]
        layer = "PUT /v1/locales/a/layers/ground"
        equal(methods, [layer, "PUT /v1/locales/a", layer, layer, "GET /v1/locales/a", layer,
                        "GET /v1/locales/a", "GET /v1/locales/a"], "requests")
        for result in (first, again, same):
            equal((result.status, result.err), (0, ""), "outcome")
        equal(known, [{}], "manifest")
        known.clear()
        with Stub(answer) as stub:
            result = kota(*args, "--triangulation", "main", "--title", "x", url=stub.url)
            equal(result.status, 0, "status")
            equal(known, [{"title": "x", "triangulation": "main"}], "manifest of the new locale")


LOCALE = {"id": "a", "triangulation": "main", "layers": [
    {"id": "ground", "kind": "heightfield", "role": "ground"},
    {"id": "roof", "kind": "mesh", "role": "ceiling", "frame": "cartesian"},
    {"id": "moon", "kind": "mesh", "role": "ground", "frame": "spherical", "gravity": "in"}]}
GRID = ("Kota-Cols: 3\r\nKota-Rows: 2\r\nKota-Spacing: 0.5,2\r\nKota-Origin: -1,7\r\n"
        "Kota-Scale: 0.25\r\nKota-Offset: -3\r\n")


def layer_stub(answer):
    return Stub(lambda request: reply(LOCALE) if request.target == "/v1/locales/a" else answer)


@test("export writes what comes, and says how to import it again")
def export_writes():
    body = bytes(range(256)) * 30000
    with tempfile.TemporaryDirectory() as folder:
        for name, layer, media, line in (
                ("x.f32", "ground", "application/vnd.kota.f32",
                 "--cols=3 --rows=2 --spacing=0.5,2 --origin=-1,7 --triangulation=main"),
                ("it's.PNG", "ground", "image/png",
                 "--spacing=0.5,2 --origin=-1,7 --height-scale=0.25 --height-offset=-3 --nodata=0 "
                 "--triangulation=main"),
                ("roof.obj", "roof", "model/obj", "--role=ceiling"),
                ("moon.obj", "moon", "model/obj", "--frame=spherical --gravity=in")):
            path = os.path.join(folder, name)
            more = GRID if "png" in media else GRID[:GRID.index("Kota-Scale")]
            with layer_stub(reply(body, media=media, more=more)) as stub:
                result = kota("export", "a", layer, path, url=stub.url)
                equal((result.status, result.out), (0, b""), str(result))
                request = stub.requests[1]
            equal(request.target, f"/v1/locales/a/layers/{layer}?format="
                  + {"x.f32": "f32", "it's.PNG": "png16", "roof.obj": "obj", "moon.obj": "obj"}[name], "target")
            equal(request.headers["accept"], media, "Accept")
            with open(path, "rb") as file:
                check(file.read() == body, f"{name} is not what came")
            words = subprocess.run(["sh", "-c", f"printf '%s\\n' {result.err}"], check=True,
                                   capture_output=True, text=True).stdout.splitlines()
            equal(words, ["kota", "import", "a", layer, path, *line.split()], "the line")
        equal(sorted(os.listdir(folder)), ["it's.PNG", "moon.obj", "roof.obj", "x.f32"], "files")


@test("export leaves the file alone unless all has come")
def export_whole():
    def half(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    problem = reply({"title": "Too large", "detail": "x"}, "413 Too Large",
                    "application/problem+json")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.f32")
        for before in (None, b"old"):
            if before:
                with open(path, "wb") as file:
                    file.write(before)
            for answer, words in ((half, ["127.0.0.1"]), (problem, ["413 Too large: x"])):
                with layer_stub(answer) as stub:
                    fails(kota("export", "a", "ground", path, url=stub.url), 1, *words)
            with layer_stub(problem) as stub:
                fails(kota("export", "a", "nothing", path, url=stub.url), 1, "no layer nothing")
            equal(os.listdir(folder), ["x.f32"] if before else [], "files")
        with open(path, "rb") as file:
            equal(file.read(), b"old", "the file")
        with layer_stub(reply(b"x")) as stub:
            fails(kota("export", "a", "ground", folder + "/no/x.f32", url=stub.url), 1, "/no/x.f32")


@test("edit sends rectangles as float32 and brushes as JSON, each under a key of its own")
def edit_bodies():
    with tempfile.TemporaryDirectory() as folder, \
            Stub(lambda request: reply({"locale": "a", "revision": 4, "rect": [1, 2, 3, 2]})) as stub:
        path = os.path.join(folder, "h.f32")
        with open(path, "wb") as file:
            array.array("f", range(6)).tofile(file)
        base = ["edit", "a", "--rect", "1,2,3,2"]
        for args in (base + ["--op", "set", "--heights", path],
                     base + ["--op", "add", "--heights", "-1.5", "--layer", "g"],
                     base + ["--op", "set", "--heights", "hole"],
                     ["edit", "a", "--brush", "crater", "--center", "-1,2.5", "--radius", "9",
                      "--amount", "0.5"],
                     ["edit", "a", "--brush", "smooth", "--at=0,0", "--radius", "1", "--layer",
                      "g"],
                     ["edit", "a", "--brush", "relax", "--at=0,0", "--radius", "2", "--slope",
                      "30"]):
            result = kota(*args, url=stub.url)
            equal((result.status, result.err), (0, ""), str(args))
            equal(result.lines, [{"locale": "a", "revision": 4, "rect": [1, 2, 3, 2]}], "answer")
        fails(kota(*base[:2], "--rect", "0,0,2,2", "--op", "set", "--heights", path, url=stub.url),
              2, "16 bytes are wanted")
        requests = stub.requests
    equal([r.method + " " + r.target for r in requests], [
        "POST /v1/locales/a/edits?rect=1,2,3,2&op=set",
        "POST /v1/locales/a/edits?rect=1,2,3,2&op=add&layer=g",
        "POST /v1/locales/a/edits?rect=1,2,3,2&op=set",
        *["POST /v1/locales/a/edits"] * 3], "requests")
    equal(requests[0].body, struct.pack("<6f", *range(6)), "a file")
    equal(requests[1].body, struct.pack("<f", -1.5) * 6, "a value")
    check(all(math.isnan(v) for v in struct.unpack("<6f", requests[2].body)), "holes")
    equal(requests[3].json, {"brush": {"shape": "crater", "center": [-1, 2.5], "radius": 9,
                                       "amount": 0.5}}, "a brush")
    equal(requests[4].json, {"layer": "g", "brush": {"shape": "smooth", "center": [0, 0],
                                                     "radius": 1}}, "a brush without amount")
    equal(requests[5].json, {"brush": {"shape": "relax", "center": [0, 0], "radius": 2,
                                       "slope_deg": 30}}, "a brush with a slope")
    keys = {r.headers["idempotency-key"] for r in requests}
    equal(len(keys), 6, "keys")
    check(all(re.fullmatch("[0-9a-f]{32}", key) for key in keys), f"keys {keys}")


@test("an edit whose answer is lost is sent again under the same key; a refused one is not")
def edit_again():
    lost = []

    def answer(request):
        lost.append(request.headers["idempotency-key"])
        return None if len(lost) < 3 else reply({"revision": 2})

    args = ["edit", "a", "--rect", "0,0,1,1", "--op", "set", "--heights", "1"]
    with Stub(answer) as stub:
        equal(kota(*args, url=stub.url).lines, [{"revision": 2}], "answer")
    equal((len(lost), len(set(lost))), (3, 1), "times and keys")
    with Stub(lambda request: reply({"title": "Busy"}, "503 Busy", PROBLEM)) as stub:
        fails(kota(*args, url=stub.url), 1, "503 Busy")
        equal(len(stub.requests), 1, "requests")


@test("a call without an answer, or busy with Retry-After, is tried 4 times; each write has one key")
def tries():
    busy = reply({"title": "Busy"}, "503 Busy", PROBLEM,
                 more="Retry-After: 1\r\nConnection: close\r\n")  # on a kept one libcurl asks twice
    edit = ["edit", "a", "--rect", "0,0,1,1", "--op", "set", "--heights", "1"]
    for args in (["info", "a"], ["height", "a", "1,2"], edit, ["rm", "a"], ["import", "a"]):
        for answers in ([None] * 4, [busy, None, None, None]):
            with Stub(lambda request, left=list(answers): left.pop(0)) as stub:
                fails(kota(*args, url=stub.url), 1, stub.url)
                equal(len(stub.requests), 4, f"tries of {args}")
                keys = {request.headers.get("idempotency-key") for request in stub.requests}
                check(len(keys) == 1 and keys != {None} or args[0] in ("info", "height"), f"{keys}")


@test("--timeout holds for all tries and pauses of a call")
def timeout_of_all():
    busy = reply({"title": "Busy"}, "503 Busy", PROBLEM, more="Retry-After: 1\r\n")
    with Stub(lambda request: busy) as stub:  # a pause that would end after the time is not begun
        fails(kota("info", "a", "--timeout", "0.9", url=stub.url), 1, "503 Busy")
        equal(len(stub.requests), 1, "requests")
        fails(kota("info", "a", "--timeout", "60", url=stub.url), 1, "503 Busy")
        equal(len(stub.requests), 5, "requests")
    seen = []
    held = threading.Event()

    def slow(request):  # the second try hangs: the time of the first is gone for it
        seen.append(request)
        return busy if len(seen) == 1 else held.wait(HANG_S) and None

    with Stub(slow) as stub:
        fails(kota("info", "a", "--timeout", "5", url=stub.url), 1, "imed out")
        held.set()
    equal(len(seen), 2, "requests")


def stream(text, end=None):
    """An answer of server-sent events that ends with its connection."""
    def send(connection, is_over):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                           b"Connection: close\r\n\r\n" + text)
        if end:
            end(is_over)
    return send


@test("watch prints a line an event, and goes on behind the last one when the connection breaks")
def watch_lines():
    answers = [stream(b"retry: 10\n\nid: 5\nevent: edit\ndata: {\"revision\":5}\n\n:\n\nid: 6\n"
                      b"event: edit\ndata: {\"rev"), None,
               reply({"title": "Busy"}, "503 Busy", PROBLEM),
               stream(b"id: 7\nevent: resync\ndata: plain\n\n"),
               reply({"title": "Not found", "detail": "gone"}, "404 Not Found", PROBLEM)]
    with Stub(lambda request: answers.pop(0)) as stub:
        result = kota("watch", "a", url=stub.url)
        requests = stub.requests
    equal(result.status, 1, "status")
    equal(result.lines, [{"event": "edit", "id": "5", "data": {"revision": 5}},
                         {"event": "resync", "id": "7", "data": "plain"}], "lines")
    check(result.err.splitlines()[-1] == "kota: 404 Not found: gone", result.err)
    equal([r.target for r in requests], ["/v1/locales/a/events"] * 5, "targets")
    equal([r.headers.get("last-event-id") for r in requests], [None, "5", "5", "5", "7"],
          "Last-Event-ID")
    equal(requests[0].headers["accept"], "text/event-stream", "Accept")


@test("watch --exec and --post forward each event once")
def watch_forwards():
    answers = [stream(b"retry: 10\n\nid: 5\nevent: edit\ndata: {\"revision\":5}\n\nid: 6\n"
                      b"event: edit\ndata: {\"revision\":6}\n\n"),
               reply({"title": "Not found", "detail": "gone"}, "404 Not Found", PROBLEM)]
    posted = []

    def hook(request):
        posted.append((request.method, request.target, json.loads(request.body)))
        return reply({}, "200 OK")
    wanted = [{"event": "edit", "id": str(n), "data": {"revision": n}} for n in (5, 6)]
    with Stub(lambda request: answers.pop(0)) as stub, Stub(hook) as other, \
            tempfile.NamedTemporaryFile("r") as file:
        result = kota("watch", "a", "--exec", f"cat >> {file.name}", "--post", other.url + "/hook",
                      url=stub.url)
        equal([json.loads(line) for line in file], wanted, "lines of the command")
    check(not result.out, f"standard output: {result.out}")
    equal([one[0] for one in posted], ["POST"] * 2, "methods")
    equal([one[1] for one in posted], ["/hook"] * 2, "targets")
    equal([one[2] for one in posted], wanted, "bodies")


@test("watch prints at once, and fails when its first connection does")
def watch_at_once():
    printed = threading.Event()

    def answer(request):
        return stream(b"event: edit\ndata: 1\n\n", lambda is_over: printed.wait(HANG_S))

    with Stub(answer) as stub:
        process = subprocess.Popen([KOTA, "watch", "--url", stub.url], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=clean_environment())
        equal(json.loads(process.stdout.readline()), {"event": "edit", "id": "", "data": 1}, "line")
        process.terminate()
        process.wait()
        process.stdout.close()
        printed.set()
        equal(stub.requests[0].target, "/v1/events", "target")
    for answer in (None, reply({"title": "Not found"}, "404 Not Found", PROBLEM)):
        with Stub(lambda request, answer=answer: answer) as stub:
            fails(kota("watch", url=stub.url), 1)


PROBLEM = "application/problem+json"


@test("a problem is one line with status, title, detail and pointer, and status 1")
def problems():
    document = {"type": "about:blank", "title": "Bad input", "status": 400,
                "detail": "x is 7\nbut\x1b[31m \u009b must not",
                "errors": [{"pointer": "/points/3", "detail": "x"}]}
    with Stub(lambda request: reply(document, "400 Bad Request", PROBLEM)) as stub:
        for args in (["ls"], ["info", "a"], ["height", "a", "1,2"],
                     ["ray", "a", "0,0,0", "0,0,1"], ["los", "a", "0,0,0", "1,1,1"],
                     ["profile", "a", "0,0", "1,1", "--samples", "3"], ["put", "a"],
                     ["pick", "a", "--eye", "1,1,1", "--target", "0,0,0", "--viewport", "6x4",
                      "--pixel", "1,1"]):
            fails(kota(*args, url=stub.url), 1, "400 Bad input: x is 7 but [31m", "(at /points/3)")


WRONG_ANSWERS = [
    ("garbage instead of HTTP", b"\x00\xff\x17garbage\r\n\r\n", ["127.0.0.1"]),
    ("an empty body", reply(b""), ["not JSON"]),
    ("a body that is no JSON", reply(b"<html>"), ["not JSON"]),
    ("JSON with something behind it", reply(b'{"results":[]} x'), ["not JSON"]),
    ("half a JSON document", reply(b'{"results":[{"status"'), ["not JSON"]),
    ("a NUL in the document", reply(b'{"results":[]}\0'), ["not JSON"]),
    ("no results", reply({}), ["no array \"results\""]),
    ("results that are no array", reply({"results": {}}), ["no array \"results\""]),
    ("JSON that is no object", reply([1, 2]), ["no array \"results\""]),
    ("too few results", reply({"results": [{"status": "ok"}]}), ["1 results for 2 items"]),
    ("too many results", reply({"results": [{}] * 3}), ["3 results for 2 items"]),
    ("a result that is no object", reply({"results": [{}, 7]}), ["not an object"]),
    ("a redirect", reply(b"", "302 Found", more="Location: http://127.0.0.1:1/\r\n"), ["302"]),
    ("an error that is no problem document", reply(b"oops\x1b[2J", "502 Bad Gateway", "text/html"),
     ["502", "oops [2J"]),
    ("an error whose document has no members", reply({}, "503 Busy", PROBLEM), ["503"]),
    ("an error whose members have wrong types",
     reply({"title": 7, "detail": [], "errors": "x"}, "500 Error", PROBLEM), ["500"]),
]


def wrong_answer(answer, words):
    with Stub(lambda request: answer) as stub:
        fails(kota("height", "a", "1,2", "3,4", "--timeout", "20", url=stub.url), 1, *words)


for what, answer, words in WRONG_ANSWERS:
    case(f"{what} is status 1, one line, and nothing on stdout", wrong_answer, answer, words)


@test("other commands check their answers, too")
def wrong_shapes():
    with Stub(lambda request: reply([])) as stub:
        fails(kota("ls", url=stub.url), 1, "no array \"locales\"")
        fails(kota("info", "a", url=stub.url), 1, "not an object")
        fails(kota("pick", "a", "--eye", "1,1,1", "--target", "0,0,0", "--viewport", "6x4",
                   "--pixel", "1,1", url=stub.url), 1, "not an object")
        fails(kota("profile", "a", "0,0", "1,1", "--samples", "3", url=stub.url), 1, "results")


@test("a connection that is closed before or within the answer is status 1")
def closed():
    def half(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"results\":[")

    for answer in (None, half):
        with Stub(lambda request, answer=answer: answer) as stub:
            fails(kota("height", "a", "1,2", url=stub.url), 1, stub.url)


@test("nobody listening is status 1 and names the address")
def refused():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    fails(kota("ls", url=f"http://127.0.0.1:{port}"), 1, f"http://127.0.0.1:{port}")


@test("an answer that does not come in time is status 1")
def too_slow():
    def never(connection, is_over):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        is_over.wait()

    with Stub(lambda request: never) as stub:
        fails(kota("ls", "--timeout", "0.2", url=stub.url), 1, "timed out")


@test("an answer without end is given up")
def endless():
    def flood(connection, is_over):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")
        while not is_over.is_set():
            connection.sendall(b" " * (1 << 20))

    with Stub(lambda request: flood) as stub:
        fails(kota("ls", url=stub.url), 1, "longer than 268435456 bytes")


@test("a bad line of a stream is named, and what was answered before it is whole lines")
def bad_line():
    with Stub(heights) as stub:
        fails(kota("height", "a", stdin=b"3,nan\n1,2\n", url=stub.url), 2, "line 1", "'3,nan'")
        equal(len(stub.requests), 0, "requests")
        for before in (1, 9999, 10000, 10001):
            result = kota("height", "a", stdin=b"1,2\n" * before + b"3,nan\n5,6\n", url=stub.url)
            equal((result.status, len(result.lines)), (2, before), "status and lines")
            check(result.err.startswith(
                f"kota: after {before} answered item{'s' * (before > 1)}: standard input, line {before + 1}: '3,nan'"),
                result.err)


@test("a bad line after good ones of each command that reads lines")
def bad_line_of_each():
    good = {"height": "1,2", "contact": "1,2,3", "contains": "1,2,3", "ray": "1,2,3,0,0,-1",
            "los": "1,2,3,4,5,6", "locate": "1,2,3"}

    def answer(request):
        items = max(json.loads(request.body).values(), key=lambda value: len(str(value)))
        return reply({"revision": 1, "results": [{"status": "ok"}] * len(items)})

    with Stub(answer) as stub:
        for name, line in good.items():
            result = kota(name, *([] if name == "locate" else ["a"]),
                          stdin=f"{line}\n{line}\nx\n{line}\n".encode(), url=stub.url)
            equal((result.status, len(result.lines)), (2, 2), f"{name}: {result}")
            check("standard input, line 3: 'x'" in result.err, result.err)


@test("a wrong word of the command line is no request at all")
def bad_word():
    with Stub(heights) as stub:
        fails(kota("height", "a", "1,2", "3,nan", url=stub.url), 2, "'3,nan'")
        equal(len(stub.requests), 0, "requests")


@test("numbers that are separated by something else: the message says what separates them")
def separators():
    with Stub(heights) as stub:
        fails(kota("height", "a", stdin=b"1;2\n", url=stub.url), 2, "line 1: '1;2'",
              "separated by commas or blanks; by ';' only below a header line, such as 'x;y'")
        fails(kota("contact", "a", stdin=b"[1;2;3]\n", url=stub.url), 2, "such as 'x;y'")
        fails(kota("height", "a", "1;2", url=stub.url), 2,
              "separated by commas or blanks, not by ';'")
        fails(kota("height", "a", "1:2", url=stub.url), 2, "not by ':'")
        fails(kota("height", "a", "[1|2]", url=stub.url), 2, "separated by commas, not by '|'")
        fails(kota("height", "a", "[1,2", url=stub.url), 2, "the closing bracket is missing")
        equal(len(stub.requests), 0, "requests")
        result = kota("height", "a", stdin=b"x;y\n1;2\n", url=stub.url)
        equal((result.status, len(result.lines)), (0, 1), "below a header")


@test("a call that fails in the midst of a stream leaves whole lines and says how many")
def late_failure():
    def answer(request):
        if len(stub.requests) == 1:
            return heights(request)
        document = {"title": "Gone", "detail": "no more", "status": 404}
        return reply(document, "404 Not Found", PROBLEM)

    with Stub(answer) as stub:
        result = kota("height", "a", stdin=b"1,2\n" * 15000, url=stub.url)
    equal(result.status, 1, "status")
    equal(result.err, "kota: after 10000 answered items: 404 Gone: no more\n", "stderr")
    equal(len(result.lines), 10000, "lines")


@test("an empty stream is no request and no fault, and is told")
def empty_stream():
    with Stub(heights) as stub:
        for name, what in (("height", "points"), ("ray", "rays")):
            for text in (b"", b"# nothing\n\n") + ((b"x,y\n",) if name == "height" else ()):
                result = kota(name, "a", stdin=text, url=stub.url)
                equal((result.status, result.out, result.err),
                      (0, b"", f"kota: standard input has no {what}: nothing was asked\n"), "outcome")
        equal(len(stub.requests), 0, "requests")


@test("a full disk under stdout is status 1")
def full_disk():
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full here")
    with Stub(heights) as stub, open("/dev/full", "wb") as full:
        result = kota("height", "a", "1,2", url=stub.url, stdout=full)
    fails(result, 1, "standard output")


# ---- terminal ------------------------------------------------------------------------------------

@test("a terminal gets a table, and JSON lines with --json")
def terminal():
    with Stub(heights) as stub:
        status, text = on_terminal("height", "a", "1,2", "100.25,3", url=stub.url)
        equal((status, text), (0, "X       Y  STATUS  height\n"
                                  "1       2  ok      5\n"
                                  "100.25  3  ok      106.25\n"), "table")
        status, text = on_terminal("height", "a", "1,2", "--json", url=stub.url)
        equal((status, json.loads(text)), (0, {"status": "ok", "height": 5, "revision": 7}), "JSON")


@test("without points on a terminal kota says so instead of waiting")
def terminal_input():
    with Stub(heights) as stub:
        status, text = on_terminal("height", "a", url=stub.url)
        equal(status, 2, "status")
        check(text.startswith("kota: nothing to ask"), text)


@test("text of the daemon cannot move a terminal's cursor")
def terminal_escape():
    locale = {"id": "a", "title": "\x1b[2Jboo\u0007", "revision": 1, "bounds": None, "layers": []}
    with Stub(lambda request: reply({"locales": [locale]})) as stub:
        status, text = on_terminal("ls", url=stub.url)
    equal(status, 0, "status")
    check("?[2Jboo?" in text and "\x1b" not in text, repr(text))


# ---- the real daemon -----------------------------------------------------------------------------

_daemon = None
COLS, ROWS = 65, 33


def plane(x, y):
    return 10 + x / 4 - y / 8


def real():
    """A daemon with a tilted plane of 2 m spacing, uploaded by kota itself."""
    global _daemon
    if _daemon is None:
        _daemon = Daemon()
        samples = array.array("f", (plane(2 * c, 2 * r) for r in range(ROWS) for c in range(COLS)))
        path = os.path.join(_daemon.folder, "plane.f32")
        with open(path, "wb") as file:
            samples.tofile(file)
        for args in (["put", "plane", "--title", "A plane"],
                     ["put", "plane", "ground", path, "--spacing", "2,2", "--cols", str(COLS),
                      "--rows", str(ROWS)]):
            result = kota(*args, url=_daemon.url)
            check(result.status == 0, f"kota {' '.join(args)}: {result}")
            equal(result.lines[0]["id"], "plane", "id")
    return _daemon


def asked(*args, stdin=None):
    result = kota(*args, stdin=stdin, url=real().url)
    equal((result.status, result.err), (0, ""), f"kota {' '.join(args)}")
    return result.lines


@test("daemon: ls and info show what was put")
def real_ls():
    lines = asked("ls")
    equal([line["id"] for line in lines], ["plane"], "ids")
    info = asked("info", "plane")[0]
    equal(info, real().ok("GET", "/v1/locales/plane"), "info")
    equal(info["layers"][0]["cols"], COLS, "cols")


@test("daemon: export and import again, on this daemon and on a new one")
def real_round_trip():
    samples = array.array("f", (math.nan if (c * r) % 17 == 16 else math.sin(c) * 50 + r / 3
                                for r in range(20) for c in range(31)))
    home = real()
    with tempfile.TemporaryDirectory() as folder, Daemon() as away:
        path = os.path.join(folder, "first.f32")
        with open(path, "wb") as file:
            samples.tofile(file)
        asked("import", "trip", "ground", path, "--cols=31", "--rows=20", "--spacing=0.1,3",
              "--origin=-7,1e6", "--triangulation=alternating")
        for name in ("second.f32", "second.png", "second.obj"):
            path = os.path.join(folder, name)
            result = kota("export", "trip", "ground", path, url=home.url)
            equal(result.status, 0, str(result))
            line = result.err.split()
            equal(line[0], "kota", "the line")
            for place in (away, home):
                again = kota(*line[1:], url=place.url)
                check(again.status == 0, f"{line} at {place.url}: {again}")
            layer = away.ok("GET", "/v1/locales/trip")["layers"][0]
            equal(layer["kind"], "mesh" if name.endswith("obj") else "heightfield", "kind")
            if name.endswith("f32"):
                for place in (away, home):
                    body = place.get("/v1/locales/trip/layers/ground").body
                    check(body == samples.tobytes(), "the samples are not the same bits")
                equal(away.ok("GET", "/v1/locales/trip")["triangulation"], "alternating", "split")
            if name.endswith("png"):
                scale = float(home.get("/v1/locales/trip/layers/ground?format=png16")
                              .headers["kota-scale"])
                back = array.array("f", away.get("/v1/locales/trip/layers/ground").body)
                for got, want in zip(back, samples):
                    check(math.isnan(got) == math.isnan(want), "holes")
                    check(math.isnan(want) or abs(got - want) <= scale * 0.6, f"{got} {want}")
    home.ok("DELETE", "/v1/locales/trip", status=204)


@test("daemon: height answers what the plane says, and outside beyond it")
def real_height():
    lines = asked("height", "plane", "1,1", "17.3,20.9", "-1,0", "--fields", "height,normal,cell")
    near(lines[0]["height"], plane(1, 1), "height", rel=1e-6)
    near(lines[1]["height"], plane(17.3, 20.9), "height", rel=1e-6)
    equal(lines[1]["cell"], [8, 10], "cell")
    equal(lines[2]["status"], "outside", "status")


@test("daemon: 10,001 points of a stream are answered as one by one")
def real_stream():
    random = rng("stream")
    points = [(random.uniform(-5, 135), random.uniform(-5, 70)) for _ in range(10001)]
    text = "".join(f"{x!r} {y!r}\n" for x, y in points)
    lines = asked("height", "plane", stdin=text.encode())
    equal(len(lines), len(points), "lines")
    for i in random.sample(range(len(points)), 20):
        x, y = points[i]
        single = real().ok("GET", f"/v1/locales/plane/height?x={x!r}&y={y!r}")
        equal((lines[i]["status"], lines[i]["height"]), (single["status"], single["height"]),
              f"point {i}: {x!r} {y!r}")


@test("daemon: ray hits the plane where it should, and --trace tells of the way")
def real_ray():
    lines = asked("ray", "plane", "20,30,100", "0,0,-2", "20,30,100", "0,0,1")
    equal([line["status"] for line in lines], ["hit", "miss"], "status")
    near(lines[0]["t"], (100 - plane(20, 30)) / 2, "t", rel=1e-6)
    near_all(lines[0]["point"], [20, 30, plane(20, 30)], "point", rel=1e-6)
    traced = asked("ray", "plane", "1,1,60", "1,0.3,-0.9", "--trace")[0]
    check(traced["trace"]["boxes"], f"no boxes: {traced}")
    status, text = on_terminal("ray", "plane", "1,1,60", "1,0.3,-0.9", "--trace", url=real().url)
    equal(status, 0, "status")
    check("BOX LEVEL" in text and "cells walked:" in text, text)
    put_locale(real(), "plates")
    put_mesh(real(), "plates", [rectangle(0, 0, 4, 4, 1), rectangle(5, 0, 9, 4, 1)])
    status, text = on_terminal("ray", "plates", "1,1,60", "0.01,0.01,-1", "--trace", url=real().url)
    equal(status, 0, "status")
    check("MESH" in text and "polygons of mesh tested: 0" in text, text)


@test("daemon: pick finds the tile in the middle of the picture")
def real_pick():
    x, y = 61.0, 33.0
    answer = asked("pick", "plane", "--eye", f"{x},{y - 20},80", "--target",
                   f"{x},{y},{plane(x, y)!r}", "--viewport", "640x480", "--pixel", "320,240",
                   "--tile-side", "8")[0]
    equal(answer["status"], "hit", "status")
    near_all(answer["hit"]["point"], [x, y, plane(x, y)], "point", rel=1e-6)
    equal([answer["tile"][k] for k in ("column", "row", "side")], [3, 2, 8], "tile")


@test("daemon: contact finds the floor below a point, and stands a camera on it")
def real_contact():
    line = asked("contact", "plane", "20,30,90", "--clearance", "2", "--exact")[0]
    equal(line["status"], "ok", "status")
    near_all(line["floor"]["point"], [20, 30, plane(20, 30)], "floor", rel=1e-6)
    near_all(line["placed"], [20, 30, plane(20, 30) + 2], "placed", rel=1e-6)
    equal(line["ceiling"], None, "ceiling")
    equal([one["status"] for one in asked("contact", "plane", "20,30,90", "20,30,-90", "-9,0,0",
                                          "--max-distance", "9")],
          ["too_far", "below", "outside"], "status")
    equal([one["status"] for one in asked("contains", "plane", "20,30,90", "20,30,-90", "-9,0,0")],
          ["inside", "below", "outside"], "contains")


@test("daemon: los and profile agree with the plane")
def real_sight():
    lines = asked("los", "plane", "10,10,50", "100,50,50", "10,10,50", "100,50,5")
    equal([line["visible"] for line in lines], [True, False], "visible")
    lines = asked("profile", "plane", "0,0", "100,50", "--samples", "11")
    equal(len(lines), 11, "samples")
    near(lines[-1]["distance"], math.hypot(100, 50), "distance")
    near_all(lines[5]["point"], [50, 25, plane(50, 25)], "point", rel=1e-6)


@test("daemon: lit agrees with the plane")
def real_lit():
    lines = asked("lit", "plane", "20,30,90", "20,30,-90", "--direction", "0,0,-1")
    equal([line["lit"] for line in lines], [True, False], "lit")
    near(lines[1]["occluder"]["distance"], plane(20, 30) + 90, "distance", rel=1e-6)
    equal(asked("lit", "plane", "20,30,90", "--position", "20,30,-90")[0]["lit"], False, "a lamp below")


@test("daemon: its problems come through with detail and pointer")
def real_problems():
    url = real().url
    fails(kota("height", "nowhere", "1,2", url=url), 1, "404", "nowhere")
    fails(kota("height", "plane", "1,2", "--layer", "sky", url=url), 1, "422", "sky")
    fails(kota("height", "plane", "1,2", "--fields", "slope", url=url), 1, "400", "slope")
    fails(kota("pick", "plane", "--eye", "1,1,1", "--target", "1,1,1", "--viewport", "6x4",
               "--pixel", "1,1", url=url), 1, "422")


@test("daemon: every table prints on a terminal")
def real_tables():
    camera = ["--eye", "60,0,90", "--target", "60,30,10", "--viewport", "64x48", "--pixel", "32,24"]
    for args in (["ls"], ["info", "plane"], ["height", "plane", "1,1", "--fields", "height,normal"],
                 ["ray", "plane", "9,9,99", "0,0,-1"], ["los", "plane", "1,1,50", "9,9,50"],
                 ["contact", "plane", "9,9,99"], ["lit", "plane", "9,9,-9", "--direction", "0,0,-1"],
                 ["profile", "plane", "0,0", "9,9", "--step", "2"], ["pick", "plane", *camera]):
        status, text = on_terminal(*args, url=real().url)
        check(status == 0 and len(text.splitlines()) >= 2 and not text.startswith("{"),
              f"kota {' '.join(args)}: status {status}\n{text}")


def finish():
    if _daemon:
        _daemon.stop()


run(finish)
