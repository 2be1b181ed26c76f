"""Commands of `kota` that change and look around, on a daemon of their own: layers, models, patches,
containment, what completion offers, and that `kota check` finds what is wrong.
"""
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import tempfile

from daemon import KOTAD, Daemon, clean_environment
from kota_cli import KOTA, Stub, fails, kota, on_terminal, reply
from sand import box
from tap import HANG_S, check, equal, near, run, test

SIDE = 24
home = Daemon("--gpu", "cpu", "--patch-speed", "0", "--patch-pause-ms", "200",
              "--patch-linger-ms", "100", "--patch-granules", "2000", "--patches-coarse", "2",
              "--patches-fine", "0")
home.ok("PUT", "/v1/locales/sand", {"title": "Sand"}, status=201)
home.ok("PUT", f"/v1/locales/sand/layers/ground?cols={SIDE}&rows={SIDE}&spacing=0.5,0.5",
        struct.pack(f"<{SIDE * SIDE}f", *[0.02 * c + 0.01 * r for r in range(SIDE)
                                          for c in range(SIDE)]),
        status=201, media="application/vnd.kota.f32")
home.ok("PUT", "/v1/locales/hall", {"placement": {"translation": [100, 0, 0],
                                                  "rotation": [0, 0, 0, 1]}}, status=201)
home.ok("PUT", "/v1/locales/hall/layers/floor", b"v 0 0 1\nv 8 0 1\nv 8 8 1\nv 0 8 1\nf 1 2 3 4\n",
        status=201, media="model/obj")


def asked(*words, stdin=None):
    result = kota(*words, stdin=stdin, url=home.url)
    check(result.status == 0 and result.err == "", f"kota {' '.join(words)}: {result}")
    return result.lines


@test("contains and locate answer as the daemon does, point for point")
def _():
    points = [[1, 1, 5], [1, 1, -5], [99, 1, 1], [5.5, 0.25, 0.5]]
    words = [",".join(map(repr, p)) for p in points]
    want = home.ok("POST", "/v1/locales/sand/contains", {"points": points})
    lines = asked("contains", "sand", *words)
    equal([dict(line, revision=None) for line in lines],
          [dict(item, revision=None) for item in want["results"]], "contains")
    equal(lines[0]["revision"], want["revision"], "revision")
    equal(asked("contains", "sand", "--layer", "ground", words[0])[0]["status"], "inside", "layer")
    want = home.ok("POST", "/v1/locate", {"points": points + [[104, 4, 2]]})["results"]
    equal(asked("locate", *words, "104,4,2"), want, "locate")
    equal(want[-1]["locale"], "hall", "the hall")
    equal(asked("locate", stdin=b"x,y,z\n104,4,2\n")[0]["point"], [4, 4, 2], "in its frame")
    for args in (["contains", "sand", "1,1,5"], ["locate", "1,1,5"]):
        status, text = on_terminal(*args, url=home.url)
        check(status == 0 and text.splitlines()[0].split()[:3] == ["X", "Y", "Z"], text)


@test("numbers may stand alone, as many to an item as it has")
def _():
    for words, apart in ((["height", "sand", "1,2", "3,4"], ["1", "2", "3", "4"]),
                         (["contact", "sand", "1,2,9"], ["1", "2", "9"]),
                         (["contains", "sand", "1,2,9"], ["1", "2", "9"]),
                         (["ray", "sand", "1,2,9", "0,0,-1"], ["1", "2", "9", "0", "0", "-1"]),
                         (["los", "sand", "1,2,9", "3,4,-9"], ["1", "2", "9", "3", "4", "-9"]),
                         (["profile", "sand", "1,2", "3,4", "--samples=3"],
                          ["1", "2", "3", "4", "--samples=3"])):
        equal(asked(*words[:2], *apart), asked(*words), words[0])
    equal(asked("locate", "1", "2", "9"), asked("locate", "1,2,9"), "locate")
    for words in (["1", "2", "3"], ["1", "2", "3,4"], ["1,2", "3", "4"], ["1"], ["1", "x"]):
        fails(kota("height", "sand", *words, url=home.url), 2)


@test("every line of an answer of the ground names its revision")
def _():
    revision = home.ok("GET", "/v1/locales/sand")["revision"]
    for words in (["height", "sand", "1,2"], ["contact", "sand", "1,2,9"],
                  ["ray", "sand", "1,2,9", "0,0,-1"], ["los", "sand", "1,2,9", "3,4,9"],
                  ["profile", "sand", "1,2", "3,4", "--samples", "3"],
                  ["contains", "sand", "1,2,9"], ["locate", "1,2,9"]):
        for line in asked(*words):
            equal(line["revision"], revision, f"{words[0]}: {line}")


@test("the answers of one command are the questions of another")
def _():
    rays = "".join(f'{{"origin":[{x},3,9],"direction":[0,0,-1]}}\n' for x in (1, 2, 3)).encode()
    first = kota("ray", "sand", stdin=rays, url=home.url)
    again = kota("contact", "sand", "--reach-up", "0.001", stdin=first.out, url=home.url)
    low = kota("height", "sand", stdin=first.out, url=home.url)
    equal([line["status"] for line in again.lines], ["ok"] * 3, str(again))
    for a, b in zip(first.lines, low.lines):
        near(a["point"][2], b["height"], "height", rel=1e-6)


@test("a long stream is answered in chunks with little memory")
def _():
    chooser = random.Random(5)
    lines = [f"{chooser.uniform(0, 11):.3f},{chooser.uniform(0, 11):.3f}" for _ in range(200000)]
    text = "x,y\n" + "\n".join(lines) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "points.csv")
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        with open(path, "rb") as stdin, open(os.path.join(folder, "out"), "wb") as out:
            process = subprocess.Popen([KOTA, "height", "sand"], stdin=stdin, stdout=out,
                                       stderr=subprocess.PIPE,
                                       env=clean_environment({"KOTA_URL": home.url}))
            _, status, usage = os.wait4(process.pid, 0)
        equal((status, process.stderr.read()), (0, b""), "outcome")
        with open(os.path.join(folder, "out"), encoding="ascii") as file:
            equal(sum(1 for _ in file), len(lines), "lines")
    check("asan" in KOTA or "tsan" in KOTA or usage.ru_maxrss < 120000,
          f"{usage.ru_maxrss} KiB for {len(text)} bytes")


@test("edit sets samples when it is not told to add")
def _():
    asked("import", "set", "--title", "S")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.f32")
        with open(path, "wb") as file:
            file.write(struct.pack("<4f", 1, 2, 3, 4))
        asked("import", "set", "a", path, "--cols=2", "--rows=2", "--spacing=1,1")
    asked("edit", "set", "--rect", "0,0,1,1", "--heights", "5")
    equal(asked("height", "set", "0,0")[0]["height"], 5, "set")
    asked("edit", "set", "--rect", "0,0,1,1", "--op", "add", "--heights", "5")
    equal(asked("height", "set", "0,0")[0]["height"], 10, "added")
    asked("rm", "set")


@test("pins: kept, listed, asked, restored, removed; --at of every question, --live of those that have it")
def _():
    def height(*more):
        return asked("height", "sand", "3,3", *more)[0]["height"]
    first = home.ok("GET", "/v1/locales/sand")["revision"]
    old = height()
    equal(asked("pin", "sand", "before")[0]["revision"], first, "pin")
    asked("edit", "sand", "--brush", "raise", "--center", "3,3", "--radius", "2", "--amount", "1")
    equal((height("--at", "before"), height("--at", str(first))), (old, old), "as it was")
    check(height() > old + 0.5, "as it is")
    for words in (["ray", "sand", "3,3,9", "0,0,-1"], ["contact", "sand", "3,3,9"], ["los", "sand", "3,3,9", "4,3,9"],
                  ["contains", "sand", "3,3,9"], ["profile", "sand", "1,1", "5,5", "--samples", "3"],
                  ["pick", "sand", "--eye", "3,3,9", "--target", "3,3.1,0", "--viewport", "9x9", "--pixel", "4,4"],
                  ["lit", "sand", "--direction", "0,0,-1", "3,3,9"], ["info", "sand"],
                  ["sweep", "sand", "--sphere", "0.5", "3,3,9", "3,3,0"],
                  ["move", "sand", "--capsule", "0.3,1.2", "--dt", "1", "3,3,9", "0,0,-1"]):
        then, now = asked(*words, "--at", "before")[0], asked(*words)[0]
        equal(then.get("revision"), first, f"{words} at the pin")
        check(now["revision"] > first, f"{words}: {now}")
        if words[0] not in ("lit", "sweep", "move", "info"):
            equal(asked(*words, "--live")[0], now, f"{words} live, without a patch")
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("then.f32", "now.f32", "seen.png")]
        for file, at in zip(files, ([f"--at={first}"], [])):
            equal(kota("export", "sand", "ground", file, *at, url=home.url).status, 0, f"export {at}")
        then, now = (list(memoryview(pathlib.Path(file).read_bytes()).cast("f")) for file in files[:2])
        equal((then[6 * SIDE + 6], now[6 * SIDE + 6]), (old, asked("height", "sand", "3,3")[0]["height"]), "exported")
        seen = kota("picture", "sand", files[2], "--eye", "3,3,9", "--target", "3,4,0", "--at", "none", url=home.url)
        fails(seen, 1, "no pin none")
    equal([{"locale": "sand", **pin} for pin in asked("pins", "sand")], asked("pins", "sand", "before"), "the list")
    equal(asked("pins", "sand")[0]["name"], "before", "its name")
    check(asked("restore", "sand", "before")[0]["revision"] > first + 1, "restore")
    equal(height(), old, "restored")
    asked("pin", "sand", "before", "--remove")
    equal(asked("pins", "sand"), [], "removed")
    fails(kota("height", "sand", "3,3", "--at", "before", url=home.url), 1, "no pin before")
    fails(kota("restore", "sand", "before", url=home.url), 1, "no pin before")
    fails(kota("height", "sand", "3,3", "--at", "a/b", url=home.url), 2, "'a/b' is no id")
    fails(kota("pin", "sand", url=home.url), 2, "missing")
    fails(kota("lit", "sand", "--live", url=home.url), 2, "--live")
    fails(kota("height", "sand", "3,3", "--at", str(first), "--live", url=home.url), 1, "live")
    status, text = on_terminal("pins", "sand", url=home.url)
    equal((status, text.split()), (0, ["PIN", "REVISION"]), "a table")


@test("history: who made each revision; revert: one author's edits, with conflicts and a note")
def _():
    with tempfile.TemporaryDirectory() as folder:
        tokens = {name: os.path.join(folder, name) for name in ("alice", "bob")}
        for name, path in tokens.items():
            with open(path, "w", encoding="ascii") as file:
                file.write(f"edit token-of-{name} name={name}\n")
            os.chmod(path, 0o600)
        everyone = os.path.join(folder, "tokens")
        with open(everyone, "w", encoding="ascii") as file:
            file.writelines(f"edit token-of-{name} name={name}\n" for name in tokens)
        os.chmod(everyone, 0o600)
        daemon = Daemon("--token-file", everyone)
        run_as = {name: {"KOTA_URL": daemon.url, "KOTA_TOKEN_FILE": path} for name, path in tokens.items()}

        def by(name, *words):
            result = kota(*words, env=run_as[name])
            check(result.status == 0 and result.err == "", f"kota {' '.join(words)}: {result}")
            return result.lines

        def heights():
            return [by("bob", "height", "field", f"{c},0")[0]["height"] for c in range(4)]

        path = os.path.join(folder, "field.f32")
        with open(path, "wb") as file:
            file.write(struct.pack("<8f", *range(8)))
        by("alice", "import", "field", "--title", "Field")
        by("alice", "import", "field", "ground", path, "--cols=4", "--rows=2", "--spacing=1,1")
        first = by("alice", "info", "field")[0]["revision"]
        for name, rect, height in (("alice", "0,0,2,1", "10"), ("bob", "1,0,2,1", "20"), ("alice", "3,0,1,1", "30")):
            by(name, "edit", "field", "--rect", rect, "--heights", height)
        equal(heights(), [10, 20, 20, 30], "all edits")

        answer = daemon.ok("GET", "/v1/locales/field/history",
                           headers={"Authorization": "Bearer token-of-bob"})
        equal(by("bob", "history", "field"), answer["history"], "the daemon's rows")
        def seen(*words):
            return [row["revision"] - first for row in by("bob", "history", "field", *words)]
        since = ("--since", str(first))
        equal(seen(*since), [1, 2, 3], "after a revision")
        equal(seen(*since, "--newest", "--all"), [3, 2, 1], "the newest first")
        equal(seen(*since, "--author", "alice"), [1, 3], "of an author")
        equal(seen(*since, "--rect", "1,0,1,1", "--layer", "ground"), [1, 2], "of a place")
        equal(seen("--since", "2000-01-01T00:00:00+01:00", "--author", "bob"), [2], "after a time")

        kept = by("bob", "revert", "field", "--author", "alice", *since, "--rect", "0,0,3,2", "--note", "nö & no+")
        equal([(row["rect"], row["conflicts"]) for row in kept], [([0, 0, 1, 1], [[1, 0, 1, 1]])], "kept")
        equal(heights(), [0, 20, 20, 30], "only what alice did within it, and bob's stays")
        last = by("bob", "history", "field", "--since", str(first + 3))
        equal([(row["author"], row["note"], row["source"]) for row in last], [("bob", "nö & no+", "revert")], "its row")
        by("bob", "revert", "field", "--author", "alice", "--to-revision", str(first), "--conflicts", "overwrite")
        equal(heights(), [0, 1, 20, 3], "bob's is gone where alice had been")
        by("bob", "revert", "field", "--since", "2000-01-01T00:00:00Z", "--author", "bob")

        status, text = on_terminal("history", "field", "--since", str(first + 2), "--rect", "3,0,1,1",
                                   "--token-file", tokens["bob"], url=daemon.url)
        lines = [line.split() for line in text.splitlines()]
        equal((status, lines[0]), (0, ["REVISION", "TIME", "AUTHOR", "SOURCE", "LAYER", "RECT", "NOTE"]), "a table")
        equal((lines[1][0], lines[1][2:5]), (str(first + 3), ["alice", "edit", "ground"]), "a row")
        for words, reason in ((["revert", "field"], "one of --since and --to-revision"),
                              (["revert", "field", *since, "--to-revision", "1"], "one of --since and"),
                              (["revert", "field", *since, "--conflicts", "all"], "none of: keep overwrite"),
                              (["revert", "field", "--to-revision", "yesterday"], "--to-revision"),
                              (["revert", "field", *since, "--rect", "1,2,3"], "--rect"),
                              (["revert", "field", *since, "--note", "ä" * 2000], "--note is too long"),
                              (["history", "field", "--rect", "0,0,0,1"], "--rect"),
                              (["history", "a/b"], "no id")):
            fails(kota(*words, env=run_as["bob"]), 2, reason)
        fails(kota("revert", "field", "--since", "soon", env=run_as["bob"]), 1, "400", "/since")
        fails(kota("revert", "field", "--since", "999999", env=run_as["bob"]), 1, "/since")
        fails(kota("history", "none", env=run_as["bob"]), 1, "404")
        daemon.stop()


@test("history of more than a page: a note on standard error, or all of them, as the daemon's pages have them")
def _():
    def page(revision, next_path):
        row = {"revision": revision, "author": None, "note": "a\x1bb", "rect": None, "time": "t", "layer": None,
               "source": "edit"}
        return reply({"locale": "x", "revision": 2, "history": [row], "next": next_path, "held_since": 0})
    next_path = "/v1/locales/x/history?since=1&limit=1"
    pages = [page(2, None), page(1, next_path)]
    with Stub(lambda request: pages.pop()) as stub:
        result = kota("history", "x", "--all", url=stub.url)
        equal(([row["revision"] for row in result.lines], result.err), ([1, 2], ""), "all")
    with Stub(lambda request: page(1, next_path)) as stub:
        result = kota("history", "x", url=stub.url)
        equal([row["revision"] for row in result.lines], [1], "one")
        check(re.fullmatch(r"kota: [^\n]*--all[^\n]*\n", result.err), str(result))
        result = kota("history", "x", "--all", url=stub.url)
        equal([row["revision"] for row in result.lines], [1, 1], "the same page again")
        check(result.status == 1 and 'wrong "next"' in result.err, str(result))


@test("help and --version, wherever they stand")
def _():
    version = kota("--version")
    equal((version.status, version.err), (0, ""), "--version")
    check(re.fullmatch(rb"kota \d+\.\d+\.\d+\n", version.out), str(version))
    equal(kota("ls", "--version").out, version.out, "behind a command")
    daemons = subprocess.run([KOTAD, "--version"], capture_output=True, check=True).stdout
    equal(version.out.split()[1], daemons.split()[1], "the daemon's version")
    for words, same in ((["help"], ["--help"]), (["help", "ray"], ["ray", "--help"]),
                        (["help", "--help"], ["--help"])):
        result = kota(*words)
        equal((result.status, result.err), (0, ""), " ".join(words))
        equal(result.out, kota(*same).out, " ".join(words))
    fails(kota("help", "fly"), 2, "unknown command 'fly'")
    fails(kota("help", "ray", "los"), 2, "one argument too many")


@test("ls lists locales and layers, and rm takes them away")
def _():
    asked("import", "gone", "--title", "G")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.f32")
        with open(path, "wb") as file:
            file.write(struct.pack("<4f", 1, 2, 3, 4))
        for layer in ("a", "b"):
            asked("import", "gone", layer, path, "--cols=2", "--rows=2", "--spacing=1,1")
    equal(kota("ls", "--ids", url=home.url).out, b"gone\nhall\nsand\n", "ids")
    equal(kota("ls", "--ids", "gone", url=home.url).out, b"a\nb\n", "ids of layers")
    equal([line["id"] for line in asked("ls", "gone")], ["a", "b"], "layers")
    status, text = on_terminal("ls", "gone", url=home.url)
    check(status == 0 and text.startswith("LAYER"), text)
    equal(asked("rm", "gone", "a"), [], "rm says nothing")
    equal(kota("ls", "--ids", "gone", url=home.url).out, b"b\n", "the other layer")
    fails(kota("rm", "gone", "a", url=home.url), 1, "404")
    equal(asked("rm", "gone"), [], "rm")
    fails(kota("info", "gone", url=home.url), 1, "404")


@test("ls, check and completion go from page to page, and end where pages repeat themselves")
def _():
    def page(request):
        name = request.target.partition("after=")[2]
        if not name:
            return reply({"locales": [one("a"), one("b")], "next": "/v1/locales?limit=2&after=b"})
        return reply({"locales": [one("c")], "next": None if name == "b" else request.target})

    def one(name):
        return {"id": name, "title": None, "revision": 1, "bounds": None, "layers": []}
    with Stub(page) as stub:
        equal(kota("ls", "--ids", url=stub.url).out, b"a\nb\nc\n", "ids")
        equal([line["id"] for line in kota("ls", url=stub.url).lines], ["a", "b", "c"], "ls")
        equal(kota("completion", "words", "--", "info", "", url=stub.url).out, b"a\nb\nc\n", "offer")
        targets = [request.target for request in stub.requests]
        equal(targets[0::2], ["/v1/locales", "/v1/locales?layers=true", "/v1/locales"], "first pages")
        equal(set(targets[1::2]), {"/v1/locales?limit=2&after=b"}, "second pages")
    with Stub(lambda request: reply({"locales": [one("a")], "next": "/v1/locales?after=a"})) as stub:
        fails(kota("ls", url=stub.url), 1, "next")


@test("a model falls on a patch: put, create, list, watch, push, view, delete")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "box.obj")
        with open(path, "wb") as file:
            file.write(box(0.7))
        equal(asked("model", "put", "box", path)[0]["triangles"], 12, "triangles")
        equal([m["id"] for m in asked("model", "ls")], ["box"], "models")
        status, text = on_terminal("model", "ls", url=home.url)
        check(status == 0 and text.startswith("MODEL"), text)
        made = asked("patch", "create", "sand", "--center", "6,6", "--size", "5,5", "--depth", "2",
                     "--scale", "coarse", "--seed", "3", "--body", "box@6,6,2", "--body",
                     '{"model":"box","position":[6,6,4],"density":3000,"velocity":[0,0,-1]}')[0]
        equal((made["center"], made["scale"], made["seed"]), ([6, 6], "coarse", 3), "the patch")
        number = str(made["id"])
        equal([p["id"] for p in asked("patch", "ls", "sand")], [made["id"]], "list")
        equal(asked("patch", "show", "sand", number)[0]["id"], made["id"], "show")
        pushed = asked("patch", "body", "sand", number, "box@5.5,6,6")[0]
        equal(len(pushed["bodies"]), 3, "bodies")
        asked("patch", "push", "sand", number, "0", "--impulse", "10,0,0")
        left = asked("patch", "remove", "sand", number, "1")[0]["bodies"]
        equal([one["body"] for one in left], [0, 2], "the bodies after one is removed")
        status, text = on_terminal("patch", "show", "sand", number, url=home.url)
        check(status == 0 and "BODY" in text and "box" in text, text)
        view = kota("patch", "view", "sand", number, os.path.join(folder, "x.png"), "--width", "64",
                    "--height", "48", url=home.url)
        if view.status == 0:
            with open(os.path.join(folder, "x.png"), "rb") as file:
                check(file.read(8) == b"\x89PNG\r\n\x1a\n", "no PNG")
        else:  # pictures need OpenGL
            check(not os.path.exists(os.path.join(folder, "x.png")) and "503" in view.err, str(view))
        fails(kota("patch", "create", "sand", "--center", "6,6", "--size", "4,4", url=home.url), 1,
              "409")
        events = kota("patch", "watch", "sand", number, url=home.url)
        equal((events.status, events.err), (0, ""), "watch ends by itself")
        equal(events.lines[-1]["data"]["state"], "written", "the last state")
        other = asked("patch", "create", "sand", "--center", "6,6", "--size", "5,5", "--depth", "2")
        ended = asked("patch", "delete", "sand", str(other[0]["id"]), "--discard")[0]
        equal(ended["state"], "discarded", "state")
        asked("model", "rm", "box")
        fails(kota("model", "rm", "box", url=home.url), 1, "404")
        fails(kota("patch", "show", "sand", "999", url=home.url), 1, "404")


@test("watch prints lines for people on a terminal")
def _():
    stream = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 3\nevent: edit\n"
              b'data: {"locale":"a","revision":3,"rect":[1,2,3,4],"source":"\\u001b[2Jbrush"}\n\n'
              b'id: 4\nevent: state\ndata: {"id":1,"locale":"a","state":"written","at_s":1.5}\n\n')

    def answer(connection, is_over):
        connection.sendall(stream)

    with Stub(lambda request: answer) as stub:
        status, text = on_terminal("patch", "watch", "a", "1", url=stub.url)
    equal(status, 0, text)
    equal(text.splitlines(), [
        "edit        locale a  revision 3  rect [1,2,3,4]  source ?[2Jbrush",
        "state       locale a  id 1  state written  at_s 1.5"], "lines")


@test("edits and imports print names and values on a terminal")
def _():
    status, text = on_terminal("edit", "sand", "--rect", "0,0,1,1", "--op", "set", "--heights", "0",
                               url=home.url)
    check(status == 0 and "revision" in text and "{" not in text, text)
    status, text = on_terminal("import", "titled", "--title", "T", url=home.url)
    check(status == 0 and "title" in text and "{" not in text, text)
    asked("rm", "titled")


# ---- check -----------------------------------------------------------------------------------------


@test("check finds a daemon good, locale by locale, and repeats by its seed")
def _():
    lines = asked("check", "--points", "200", "--singles", "5", "--seed", "9")
    check(all(line["ok"] for line in lines), str(lines))
    of_sand = [line["check"] for line in lines if line["locale"] == "sand"]
    equal(of_sand, ["height", "contact", "ray", "contains", "by hand"], "checks of a heightfield")
    equal(asked("check", "--points", "200", "--singles", "5", "--seed", "9"), lines, "again")
    equal({line["locale"] for line in asked("check", "hall", "--points", "10")}, {None, "hall"},
          "only what is named")
    result = kota("check", "nowhere", "--points", "10", url=home.url)
    equal((result.status, result.lines[-1]["ok"]), (1, False), str(result))
    status, text = on_terminal("check", "--points", "10", url=home.url)
    table = text.rpartition("\r\x1b[K")[2]  # behind the progress that a slow one shows
    check(status == 0 and table.startswith("RESULT"), text)


@test("check asks no heights where polygons have none: under another gravity, of ceilings alone")
def _():
    for gravity, role in (([0.6, 0, -0.8], "ground"), ([0, 0, -1], "ceiling")):
        home.ok("PUT", "/v1/locales/leaning", {"gravity": gravity}, status=201)
        home.ok("PUT", f"/v1/locales/leaning/layers/slab?role={role}",
                b"v 0 0 1\nv 8 0 1\nv 8 8 1\nv 0 8 1\nf 1 2 3 4\n", status=201, media="model/obj")
        lines = asked("check", "leaning", "--points", "10")
        equal([line["check"] for line in lines if line["locale"]], ["contact", "ray", "contains"],
              f"checks under gravity {gravity}, role {role}")
        asked("rm", "leaning")


def liar(change):
    """A proxy that changes answers."""
    def answer(request):
        got = home.ask(request.method, request.target, request.body or None,
                       {k: v for k, v in request.headers.items() if k in ("content-type", "accept")})
        body = change(request, got.body)
        return reply(body, f"{got.status} X", got.media_type)
    return Stub(answer)


def one_bit(body):
    return body[:-1] + bytes([body[-1] ^ 1])


@test("check finds one bit that differs, a height that is wrong, and what is not there")
def _():
    def binary_height(request, body):
        is_it = "/height" in request.target and request.headers.get("content-type", "")[-3:] == "f64"
        return one_bit(body) if is_it and "layer=" not in request.target else body

    def single_ray(request, body):
        if request.target.endswith("/ray") and b"rays" in request.body and \
                len(json.loads(request.body)["rays"]) == 1:
            return body.replace(b'"t":', b'"t":1')
        return body

    def sample(request, body):
        if "format=f32" not in request.target:
            return body
        values = list(struct.unpack(f"<{len(body) // 4}f", body))
        return struct.pack(f"<{len(values)}f", *[v + 0.01 for v in values])

    def contains(request, body):
        is_it = "/contains" in request.target and request.headers["content-type"][-3:] == "f64"
        return one_bit(body) if is_it else body

    for change, what in ((binary_height, "height"), (single_ray, "ray"), (sample, "by hand"),
                         (contains, "contains"),
                         (lambda request, body: body[:-8] if "f64" in
                          request.headers.get("content-type", "") else body, "contact"),
                         (lambda request, body: b"{}" if request.target == "/readyz" else body,
                          "ready")):
        with liar(change) as stub:
            result = kota("check", "sand", "--points", "50", "--singles", "50", url=stub.url)
        equal(result.status, 1, f"{what}: {result}")
        wrong = [line["check"] for line in result.lines if not line["ok"]]
        check(what in wrong, f"{what} was not found: {result}")
        check("--seed" in result.err and result.err.count("\n") == 1, str(result))


# ---- completion ------------------------------------------------------------------------------------


def offered(*words, url=None):
    result = kota("completion", "words", "--", *words, url=url or home.url)
    equal((result.status, result.err), (0, ""), f"completion of {words}")
    return [line.split("\t")[0] for line in result.out.decode().splitlines()]


@test("completion offers commands, options, values, ids and files where they belong")
def _():
    for words, want in [
            (["he"], ["height"]), (["--js"], ["--json"]), (["height", ""], ["hall", "sand"]),
            (["height", "s"], ["sand"]), (["height", "sand", ""], []),
            (["height", "sand", "--in"], ["--interp"]),
            (["height", "--interp", ""], ["triangle", "bilinear", "nearest"]),
            (["height", "--interp", "b"], ["bilinear"]), (["height", "--interp=n"], ["nearest"]),
            (["height", "sand", "--layer", ""], ["ground"]), (["export", "hall", ""], ["floor"]),
            (["export", "hall", "floor", ""], [":file"]), (["--token-file", ""], [":file"]),
            (["--url", home.url, "info", "h"], ["hall"]), (["info", "--url=" + home.url, "h"], ["hall"]),
            (["patch", "w"], ["watch"]), (["patch", "ls", ""], ["hall", "sand"]),
            (["completion", ""], ["bash", "zsh", "fish"]), (["edit", "x", "--op", ""], ["set", "add"]),
            (["import", "--ro"], ["--role", "--rows"]), (["nothing", ""], None),
            (["put", "sand", "g"], ["ground"])]:
        got = offered(*words)
        if want is not None:
            equal(sorted(got), sorted(want), f"after {words}")
    equal(set(offered("")), set(offered("", url="http://127.0.0.1:1")), "without a daemon")
    equal(offered("info", "", url="http://127.0.0.1:1"), [], "ids without a daemon")


@test("a title cannot put escapes or a second line into a completion")
def _():
    locale = {"id": "a", "title": "\x1b[2J\nb\tc", "revision": 1, "layers": []}
    bad = {"id": "no id;rm", "title": "x"}
    with Stub(lambda request: reply({"locales": [locale, bad]})) as stub:
        equal(kota("completion", "words", "--", "info", "", url=stub.url).out, b"a\n", "offer")


def shell(program, script, *args):
    return subprocess.run([program, *args, "-c", script], capture_output=True, check=False,
                          env=clean_environment({"KOTA_URL": home.url, "HOME": "/nonexistent"}),
                          timeout=HANG_S, stdin=subprocess.DEVNULL)


@test("the scripts are taken by their shells, and offer")
def _():
    done = shell("bash", f"""source <({KOTA} completion bash)
        COMP_LINE='{KOTA} --url {home.url} height s'; COMP_POINT=${{#COMP_LINE}}; _kota_complete
        echo "${{COMPREPLY[@]}}"
        COMP_LINE='{KOTA} import a b /et'; COMP_POINT=${{#COMP_LINE}}; _kota_complete
        echo "${{COMPREPLY[@]}}" """, "--norc")
    equal(done.stdout.decode().split(), ["sand", "/etc"], str(done))
    if shutil.which("zsh"):
        done = shell("zsh", f"autoload -U compinit; compinit -D; source <({KOTA} completion zsh); "
                     "whence -w _kota", "-f")
        check(done.returncode == 0 and b"function" in done.stdout, str(done))
    if shutil.which("fish"):
        done = shell("fish", f"{KOTA} completion fish | source; complete -C '{KOTA} heigh'; "
                     f"set PATH {os.path.dirname(os.path.abspath(KOTA))} $PATH; complete -C 'kota height s'",
                     "--no-config")
        check(b"sand" in done.stdout, str(done))


run(home.stop)
