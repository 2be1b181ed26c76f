"""Start and stop: flags, worlds from folders and files, refusals, logs, the drain on SIGTERM."""
import json
import math
import os
import signal
import socket
import struct
import subprocess
import time

from daemon import KOTAD, SLOW, Daemon, clean_environment, parse_answers, problem
from folders import folder, fresh
from images import asc, hgt, png
from metrics import bodies_bytes
from tap import HANG_S, case, check, equal, fail, near, run, test



def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def world(locales):
    """{id: (manifest, {file: bytes})} as a folder."""
    base = fresh()
    for name, (manifest, files) in locales.items():
        os.mkdir(os.path.join(base, name))
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        write(os.path.join(base, name, "locale.json"), text)
        for file, data in files.items():
            write(os.path.join(base, name, file), data)
    return base


# ---- good starts ----------------------------------------------------------------------------------


@test("without a world the daemon starts empty and is ready")
def _():
    with Daemon() as daemon:
        equal(daemon.ok("GET", "/readyz"), {"status": "ok"}, "readyz")
        equal(daemon.ok("GET", "/v1/locales"), {"locales": [], "next": None}, "locales")


@test("--world DIR loads every locale of the folder, in each format, as its manifest says")
def _():
    base = world({
        "grey": ({"title": "Grey & flipped", "layers": [
            {"id": "ground", "file": "g.png", "spacing": [2, 3], "origin": [10, 20],
             "height_scale": 0.5, "height_offset": -1, "flip_y": True, "nodata": 9}]},
            {"g.png": png([[1, 2, 9], [4, 5, 6]])}),
        "raw": ({"title": "raw", "gravity": [0, 0, -1], "open_sky": False,
                 "triangulation": "alternating",
                 "placement": {"translation": [1, 2, 3], "rotation": [0, 0, 0, 1]},
                 "geo": {"lat": 47.5, "lng": 11.25},
                 "layers": [{"id": "low", "file": "a.f32", "cols": 2, "rows": 2,
                             "spacing": [1, 1]},
                            {"id": "high", "file": "b.asc"},
                            {"id": "dem", "file": "c.hgt", "spacing": [5, 5]}]},
                {"a.f32": struct.pack("<4f", 1, 2, 3, 4), "b.asc": asc([[70, 70], [70, 70]], 4),
                 "c.hgt": hgt([[1, 2, 3], [4, 5, 6], [7, 8, 9]])}),
        "empty": ({"title": "nothing here", "layers": []}, {}),
    })
    write(os.path.join(base, "README"), "a file beside the locales is no locale")
    with Daemon("--world", base, "--loops", "2") as daemon:
        locales = {entry["id"]: entry for entry in
                   daemon.ok("GET", "/v1/locales?layers=true")["locales"]}
        equal(set(locales), {"grey", "raw", "empty"}, "ids")
        equal(locales["grey"]["title"], "Grey & flipped", "title")
        equal(locales["grey"]["bounds"], {"min": [10, 20, -0.5], "max": [14, 23, 2]}, "bounds")
        equal((locales["raw"]["open_sky"], locales["raw"]["triangulation"]),
              (False, "alternating"), "manifest")
        equal(locales["raw"]["placement"]["translation"], [1, 2, 3], "placement")
        equal([layer["id"] for layer in locales["raw"]["layers"]], ["low", "high", "dem"], "layers")
        for x, y, want in ((10, 23, -0.5), (14, 20, 2), (10, 20, 1), (14, 23, None)):
            got = daemon.ok("GET", f"/v1/locales/grey/height?x={x}&y={y}&interp=nearest")
            near(got["height"], want, f"grey at {x},{y}")
        for layer, x, y, want in (("low", 0, 1, 3), ("high", 2, 2, 70)):
            got = daemon.ok("GET", f"/v1/locales/raw/height?x={x}&y={y}&layer={layer}")
            equal(got["height"], want, f"raw, {layer}")


@test("a file on the command line becomes a locale of its name with the layer `ground`")
def _():
    base = fresh()
    field = write(os.path.join(base, "field one.asc"), asc([[1, 2], [3, 4]], 10, (0, 0),
                                                            centre=True))
    grey = write(os.path.join(base, "grey.png"), png([[1, 2], [3, 5]]))
    with Daemon(field, grey + "?spacing=10,20&flip_y=true&height_scale=2") as daemon:
        locales = {entry["id"]: entry for entry in
                   daemon.ok("GET", "/v1/locales?layers=true")["locales"]}
        equal(len(locales), 2, f"locales: {sorted(locales)}")
        check("grey" in locales, f"{sorted(locales)}")
        name = next(n for n in locales if n != "grey")
        check(name.startswith("field") and name.replace("-", "").replace("_", "").isalnum(),
              f"the cleaned base name: {name!r}")
        equal([layer["id"] for layer in locales[name]["layers"]], ["ground"], "layer")
        got = daemon.ok("GET", f"/v1/locales/{name}/height?x=0&y=0")
        equal(got["height"], 3, ".asc: its first row is the north edge unless said")
        got = daemon.ok("GET", "/v1/locales/grey/height?x=10&y=20")
        equal(got["height"], 4, "the query's grammar is that of PUT")
        got = daemon.ok("GET", "/v1/locales/grey/height?x=10&y=0")
        equal(got["height"], 10, "the last row is at the smallest y")


@test("an .hgt named by its corner gets its spacing from its latitude")
def _():
    path = write(os.path.join(fresh(), "N42E001.hgt"),
                 hgt([[r * 11 + c for c in range(11)] for r in range(11)]))
    with Daemon(path) as daemon:
        locale = daemon.ok("GET", "/v1/locales/N42E001")
        sx, sy = locale["layers"][0]["spacing"]
        lat = math.radians(42.5)
        a, e2 = 6378137.0, 0.00669437999014
        w = 1 - e2 * math.sin(lat) ** 2
        near(sx, math.radians(0.1) * a / math.sqrt(w) * math.cos(lat), "spacing x", 2e-3)
        near(sy, math.radians(0.1) * a * (1 - e2) / w ** 1.5, "spacing y", 2e-3)
        got = daemon.ok("GET", "/v1/locales/N42E001/height?x=0&y=0")
        equal(got["height"], 110, "north edge first, so the south-west corner is the last row's")


@test("a file that is not there is named once")
def _():
    done = subprocess.run([KOTAD, "--listen", "127.0.0.1:0", "nofile.png"], capture_output=True,
                          text=True, timeout=HANG_S, env=clean_environment(), check=False)
    equal(done.returncode, 2, "exit status")
    equal(done.stderr.count("nofile.png"), 1, f"names in {done.stderr}")


@test("--help=all names every flag and exits 0")
def _():
    done = subprocess.run([KOTAD, "--help=all"], capture_output=True, text=True, timeout=HANG_S,
                          env=clean_environment(), check=False)
    equal(done.returncode, 0, "exit status")
    for flag in ("--world", "--listen", "--loops", "--token-file", "--port-file", "--log-format",
                 "--read-only", "--access-log", "--help"):
        check(flag in done.stdout, f"no {flag} in the help")


# ---- refusals ---------------------------------------------------------------------------------------


def refused(args, status, words, files=None):
    """kotad with these arguments must end by itself, say why, and leave no port file."""
    base = fresh()
    for name, data in (files or {}).items():
        write(os.path.join(base, name), data)
    args = [arg.replace("{dir}", base) for arg in args]
    port_file = os.path.join(base, "port")
    if "--listen" not in args:
        args = ["--listen", "127.0.0.1:0", *args]
    try:
        done = subprocess.run([KOTAD, "--port-file", port_file, *args], capture_output=True,
                              text=True, timeout=HANG_S, env=clean_environment(), check=False)
    except subprocess.TimeoutExpired:
        fail(f"kotad {args} went on running")
    said = done.stdout + done.stderr
    if status is None:
        check(done.returncode in (1, 2), f"exit status {done.returncode}: {said}")
    else:
        equal(done.returncode, status, f"exit status: {said}")
    for word in words:
        check(word in said, f"the message does not name {word!r}: {said!r}")
    check("AddressSanitizer" not in said and "runtime error" not in said, said)
    check(not os.path.exists(port_file), "a port file")


FLAGS = [(["--colour"], ["--colour"]), (["--loops", "many"], ["--loops", "many"]),
         (["--loops", "-1"], ["--loops"]), (["--loops"], ["--loops"]),
         (["--listen", "127.0.0.1"], ["--listen"]), (["--listen", "127.0.0.1:http"], ["--listen"]),
         (["--listen", "127.0.0.1:70000"], ["--listen"]), (["--listen", "nowhere"], ["--listen"]),
         (["--listen", "nowhere:1"], ["--listen", "nowhere", "localhost"]),
         (["--log-format", "xml"], ["--log-format", "xml", "text, json"])]
for args_, words_ in FLAGS:
    case(f"kotad {' '.join(args_)} exits 2 and names it", refused, args_, 2, words_)

for args_, words_ in (
        (["--listen", "0.0.0.0:0"], ["token"]), (["--listen", "[::]:0"], ["token"]),
        (["--world", "{dir}/none"], ["none"]), (["--world", "{dir}/file"], ["file"]),
        (["{dir}/none.png?spacing=1,1"], ["none.png"]), (["{dir}/cut.png?spacing=1,1"],
                                                         ["cut.png"]),
        (["{dir}/good.png"], ["spacing"]), (["{dir}/good.png?spacing=0,1"], ["spacing"]),
        (["{dir}/good.png?spacing=1,1&colour=red"], ["colour"]), (["{dir}/file"], ["file"]),
        (["--token-file", "{dir}/none"], ["none"]), (["--token-file", "{dir}/odd"], ["odd"])):
    case(f"kotad {' '.join(args_)} refuses to start and says why", refused, args_, 2, words_,
         {"file": "x", "good.png": png([[1, 2], [3, 4]]), "cut.png": png([[1, 2], [3, 4]])[:40],
          "odd": "write abcdef0123456789\n"})


@test("elsewhere than loopback needs a token file or --read-only")
def _():
    tokens = write(os.path.join(fresh(), "tokens"), "edit abcdef0123456789\n")
    os.chmod(tokens, 0o600)
    for more in (["--token-file", tokens], ["--read-only"]):
        base = fresh()
        port_file = os.path.join(base, "port")
        process = subprocess.Popen([KOTAD, "--listen", "0.0.0.0:0", "--port-file", port_file, *more],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=clean_environment())
        try:
            deadline = time.monotonic() + HANG_S
            while not os.path.exists(port_file) and time.monotonic() < deadline:
                check(process.poll() is None, f"{more}: ended with {process.returncode}")
                time.sleep(0.02)
            check(os.path.exists(port_file), f"{more}: no port file")
        finally:
            process.terminate()
            equal(process.wait(HANG_S), 0, f"{more}: exit status")


@test("a port that is taken is a refusal that names it")
def _():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        refused(["--listen", f"127.0.0.1:{port}"], None, [str(port)])


GOOD_LAYER = {"id": "ground", "file": "g.png", "spacing": [1, 1]}
WORLDS = [
    ("a manifest that is no JSON", "{", ["locale.json"]),
    ("a manifest with an unknown member", {"colour": 1, "layers": []}, ["colour"]),
    ("an unknown triangulation", {"triangulation": "x", "layers": []}, ["triangulation"]),
    ("a layer whose file is missing", {"layers": [{**GOOD_LAYER, "file": "h.png"}]}, ["h.png"]),
    ("a layer without spacing", {"layers": [{"id": "ground", "file": "g.png"}]}, ["spacing"]),
    ("a layer with a bad id", {"layers": [{**GOOD_LAYER, "id": "a/b"}]}, ["a/b"]),
    ("two layers of one id", {"layers": [GOOD_LAYER, GOOD_LAYER]}, ["ground"]),
    ("a file that leaves the folder by ..", {"layers": [{**GOOD_LAYER, "file": "../up.png"}]},
     ["../up.png"]),
    ("a file that leaves the folder by a root", {"layers": [{**GOOD_LAYER, "file": "/etc/passwd"}]},
     ["/etc/passwd"]),
    ("a file of an unknown kind", {"layers": [{**GOOD_LAYER, "file": "g.jpg"}]}, ["g.jpg"]),
    ("a file that is cut", {"layers": [{**GOOD_LAYER, "file": "cut.png"}]}, ["cut.png"]),
]


def bad_world(manifest, words):
    base = world({"bad": (manifest, {"g.png": png([[1, 2], [3, 4]]), "g.jpg": b"x",
                                     "cut.png": png([[1, 2], [3, 4]])[:50]})})
    write(os.path.join(base, "up.png"), png([[1, 2], [3, 4]]))
    refused(["--world", base], None, words)


for what_, manifest_, words_ in WORLDS:
    case(f"a world with {what_} is refused", bad_world, manifest_, words_)


@test("a link inside a locale's folder does not lead out of it")
def _():
    base = world({"sly": ({"layers": [{**GOOD_LAYER, "file": "link.png"}]}, {})})
    outside = write(os.path.join(fresh(), "secret.png"), png([[1, 2], [3, 4]]))
    os.symlink(outside, os.path.join(base, "sly", "link.png"))
    refused(["--world", base], None, ["link.png"])


# ---- logs ---------------------------------------------------------------------------------------------


@test("--log-format json writes one JSON object a line, --access-log names request and id")
def _():
    with Daemon("--log-format", "json", "--access-log") as daemon:
        answer = daemon.get("/v1/locales?page=1")
        daemon.get("/livez")
        last = daemon.get("/v1/locales")
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline and last.headers["x-request-id"] not in (
                daemon.log_text()):
            time.sleep(0.02)
        lines = daemon.log_text().splitlines()
        entries = [json.loads(line) for line in lines]
        found = [e for e in entries if answer.headers["x-request-id"] in json.dumps(e)]
        equal(len(found), 1, f"lines with the id in {lines}")
        text = json.dumps(found[0])
        check("/v1/locales" in text and "400" in text and "GET" in text, text)
        check(not any("/livez" in json.dumps(e) for e in entries), "a probe is in the log")


@test("without --access-log the failed requests are in the log, and the others are not")
def _():
    with Daemon("--log-format", "json") as daemon:
        fine = [daemon.get("/livez"), daemon.get("/v1/locales")]
        failed = [daemon.get("/v1/locales?page=1"), daemon.get("/nothing"),
                  daemon.post("/v1/locales/nobody/height", {"points": [[0, 0]]})]
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline and failed[-1].headers["x-request-id"] not in (
                daemon.log_text()):
            time.sleep(0.02)
        text = daemon.log_text()
        for answer in failed:
            equal(text.count(answer.headers["x-request-id"]), 1, f"lines about {answer} in {text}")
        for answer in fine:
            equal(text.count(answer.headers["x-request-id"]), 0, f"lines about {answer} in {text}")


@test("what a client sends cannot forge a line of the log")
def _():
    for form in ("text", "json"):
        with Daemon("--log-format", form, "--access-log") as daemon:
            daemon.raw(b"GET /v1/locales/%0Aforged%0D%0Aline%1b[31m HTTP/1.1\r\nHost: x\r\n"
                       b"Connection: close\r\n\r\n")
            deadline = time.monotonic() + HANG_S
            while " 404 " not in daemon.log_text() and ":404," not in daemon.log_text():
                check(time.monotonic() < deadline, f"no line of the request: {daemon.log_text()}")
                time.sleep(0.02)
            lines = daemon.log_text().splitlines()
            check(not any(line.lstrip().startswith(("forged", "line")) for line in lines),
                  f"{lines}")
            check("\x1b[31m" not in daemon.log_text(), "an escape code in the log")


# ---- stop ---------------------------------------------------------------------------------------------


def field_daemon():
    base = fresh()
    path = write(os.path.join(base, "hills.asc"),
                 asc([[(r * c) % 7 for c in range(60)] for r in range(60)], 1, centre=True))
    return Daemon(path)


BATCH = json.dumps({"rays": [{"origin": [i % 50 + 0.3, 0.2, 9], "direction": [0.1, 1, -0.1]}
                             for i in range(10_000)]}).encode()


def request_head(body):
    return (f"POST /v1/locales/hills/ray HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()


def body_comes(daemon):
    """Waits until the daemon has read some of a large body."""
    deadline = time.monotonic() + HANG_S
    while bodies_bytes(daemon) == 0:
        check(time.monotonic() < deadline, "no body came")
        time.sleep(0.01)


def drained(number):
    """An idle connection is closed at once, a request under way is answered, exit status 0."""
    daemon = field_daemon()
    try:
        idle = socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S)
        idle.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        check(idle.recv(65536).startswith(b"HTTP/1.1 200"), "an answer")
        busy = socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S)
        half = len(BATCH) // 2
        busy.sendall(request_head(BATCH) + BATCH[:half])
        body_comes(daemon)
        daemon.process.send_signal(number)
        equal(idle.recv(100), b"", "the idle connection is closed at once")
        check(daemon.is_alive(), "it waits for the request under way")
        problem(daemon.get("/readyz"), 503, "draining")
        equal(daemon.get("/livez").status, 200, "it is alive")
        busy.sendall(BATCH[half:])
        received = b""
        while True:
            more = busy.recv(1 << 16)
            if not more:
                break
            received += more
        answers = parse_answers(received)
        equal([a.status for a in answers], [200], "the answer of the request under way")
        equal(len(answers[0].json["results"]), 10_000, "results")
        equal(answers[0].headers.get("connection", "").lower(), "close", "Connection")
        equal(daemon.process.wait(HANG_S), 0, "exit status")
        try:
            socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S).close()
            fail("the port still answers")
        except ConnectionRefusedError:
            pass
    finally:
        daemon.stop()


case("SIGTERM drains: idle connections close, readyz is 503, a request under way is answered, exit 0",
     drained,
     signal.SIGTERM)
case("SIGINT drains as well", drained, signal.SIGINT)


@test("a batch that SIGTERM meets at any moment is answered whole or not at all")
def _():
    whole = 0
    for wait in (0.0, 0.002, 0.005, 0.01, 0.02, 0.1):
        daemon = field_daemon()
        received = b""
        try:
            with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as s:
                s.sendall(request_head(BATCH) + BATCH)
                time.sleep(wait * SLOW)
                daemon.process.send_signal(signal.SIGTERM)
                try:
                    while more := s.recv(1 << 16):
                        received += more
                except ConnectionResetError:
                    pass  # it had not been read when the daemon closed
            for answer in parse_answers(received):
                equal(len(answer.json["results"]), 10_000, f"results, after {wait} s")
                whole += 1
            equal(daemon.process.wait(HANG_S), 0, "exit status")  # a second signal would cut it off
        finally:
            daemon.stop()
    check(whole > 0, "no batch was answered")


@test("SIGTERM while hundreds of writes wait and most loops are idle: all end")
def _():
    daemon = Daemon("--loops", "64")
    sockets = []
    try:
        for i in range(600):
            s = socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S)
            sockets.append(s)
            if i % 50 == 0:
                equal(daemon.get("/livez").status, 200, "livez")
        for i, s in enumerate(sockets):
            s.sendall(f"PUT /v1/locales/l{i} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                      "Content-Length: 2\r\nConnection: close\r\n\r\n{}".encode())
        daemon.process.send_signal(signal.SIGTERM)
        equal(daemon.process.wait(HANG_S), 0, "exit status")
    finally:
        for s in sockets:
            s.close()
        daemon.stop()


@test("a client that never finishes cannot hold the daemon for ever")
def _():
    daemon = field_daemon()
    try:
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S) as s:
            s.sendall(request_head(BATCH) + BATCH[:10])
            body_comes(daemon)
            daemon.process.send_signal(signal.SIGTERM)
            equal(daemon.process.wait(HANG_S), 0, "exit status")
    finally:
        daemon.stop()


@test("a client that does not read its answer does not hold the others")
def _():
    daemon = field_daemon()
    try:
        greedy = socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S)
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.setblocking(False)
        stream = (request_head(BATCH) + BATCH) * 10
        sent, idle = 0, 0
        while sent < len(stream) and idle < 20:  # it is not read to its end
            try:
                sent += greedy.send(stream[sent:])
                idle = 0
            except BlockingIOError:
                time.sleep(0.05)
                idle += 1
        for _ in range(50):
            equal(daemon.get("/livez").status, 200, "livez")
        check(daemon.memory_kib() < 400 * 1024 * SLOW, f"{daemon.memory_kib()} KiB")
        greedy.close()
    finally:
        daemon.stop()


run(folder.cleanup, "the temporary folders are removed")
