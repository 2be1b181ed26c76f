"""A store that is damaged, full, not to be written, or not a store: told, and never a wrong height.

What is damaged is changed in the file behind the daemon's back. A daemon may refuse to start with
one clear line; it may serve without being ready, with the damage named; or it answers exactly what
was stored. Anything else fails.
"""
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from daemon import SLOW, problem
from ground import (CUT, Client, Edit, check_is_good, cut_off, floats, hills, one_line, put_ground,
                    random_edit, read_ground, replay, run_check, settle, stored)
from mesh_oracle import obj, rectangle
from tap import ALL, HANG_S, Failure, Skip, case, check, equal, rng, run, test

folder = tempfile.TemporaryDirectory(prefix="kota-test-")
NUMBERS = iter(range(1000))
FLIPS = 20 if SLOW > 1 else 60 if ALL else 25


def fresh():
    return os.path.join(folder.name, f"data{next(NUMBERS)}")


def not_ready(daemon, *words):
    """/readyz is 503 and its text holds each of the words; /livez is 200. Returns the text."""
    answer = daemon.get("/readyz")
    equal(answer.status, 503, f"/readyz: {answer}")
    text = answer.body.decode()
    for word in words:
        pattern = word if hasattr(word, "search") else re.compile(re.escape(word))
        check(pattern.search(text), f"/readyz does not name {pattern.pattern!r}: {text}")
    equal(daemon.get("/livez").status, 200, "/livez")
    return text


# ---- one byte of one tile ---------------------------------------------------------------------------


def two_locales(data, end="stop"):
    """`land` of 3×3 tiles and `fine` of one, stored; {id: model}."""
    random = rng("faults")
    made = {"fine": hills(random, 20, 20), "land": hills(random, 600, 520)}
    daemon = stored(data)
    for name, ground in made.items():
        daemon.ok("PUT", f"/v1/locales/{name}", {}, status=201)
        put_ground(daemon, ground, name)
        edit = Edit("set", (5, 5, 2, 2), floats([70, 71, 72, 73]))
        target, body, media = edit.request(name)
        daemon.ok("POST", target, body, media=media)
        ground.apply(edit)
    if end == "stop":
        daemon.stop()
    else:
        cut_off(daemon)
    return made


def database(data):
    return sqlite3.connect(os.path.join(data, "kota.db"), isolation_level=None)


def columns(connection, table):
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def flip_tile(data, tx, ty):
    """One bit in the middle of the data of the only tile of that place."""
    connection = database(data)
    names = columns(connection, "tile")
    check({"tx", "ty", "data"} <= set(names), f"columns of tile: {names}")
    rows = connection.execute("SELECT data FROM tile WHERE tx = ? AND ty = ?", (tx, ty)).fetchall()
    equal(len(rows), 1, f"tiles at {tx},{ty}")
    blob = bytearray(rows[0][0])
    blob[len(blob) // 2] ^= 0x10
    connection.execute("UPDATE tile SET data = ? WHERE tx = ? AND ty = ?", (bytes(blob), tx, ty))
    connection.close()


def damaged_land(data, made, *words):
    """What a start with a damaged `land` must look like."""
    with stored(data, wait=False) as daemon:
        status = settle(daemon)
        equal(status, None, f"the daemon's end: {daemon.log_text()[-2000:]}")
        not_ready(daemon, "land", *words)
        for method, target, body in (
                ("GET", "/v1/locales/land", None), ("GET", "/v1/locales/land/height?x=1&y=1", None),
                ("POST", "/v1/locales/land/height", {"points": [[1, 1]]}),
                ("POST", "/v1/locales/land/contact", {"points": [[1, 1, 99]]}),
                ("POST", "/v1/locales/land/ray",
                 {"rays": [{"origin": [1, 1, 99], "direction": [0, 0, -1]}]}),
                ("GET", "/v1/locales/land/tiles/0/0/0?format=f32", None),
                ("GET", "/v1/locales/land/layers/ground/stats", None),
                ("GET", "/v1/locales/land/diff?since=1", None),
                ("POST", "/v1/locales/land/edits",
                 {"rect": [0, 0, 1, 1], "op": "set", "heights": [1]})):
            answer = daemon.ask(method, target, body)
            problem(answer, 503, "land", *words)
            check(re.search("damage", answer.json["title"] + answer.json["detail"], re.I),
                  f"{method} {target}: {answer}")
        fine = made["fine"]
        fine.compare(read_ground(daemon, fine, "fine"), "the other locale")
        edit = Edit("set", (1, 1, 1, 1), floats([44]))
        target, body, media = edit.request("fine")
        daemon.ok("POST", target, body, media=media)
        fine.apply(edit)
        fine.compare(read_ground(daemon, fine, "fine"), "the other locale, edited")
        daemon.ok("PUT", "/v1/locales/young", {}, status=201)
    with stored(data, wait=False) as daemon:
        settle(daemon)
        not_ready(daemon, "land", *words)
        fine.compare(read_ground(daemon, fine, "fine"), "the other locale after a restart")
        equal(daemon.ok("GET", "/v1/locales/young")["revision"], 1, "a locale made beside it")


def tile_flipped(tx, ty):
    data = fresh()
    made = two_locales(data)
    flip_tile(data, tx, ty)
    place = re.compile(rf"tile\D{{0,12}}{tx}\D{{1,8}}{ty}\b|tile\D{{0,12}}{ty}\D{{1,8}}{tx}\b")
    status, text = run_check(data)
    equal(status, 1, f"--check of a damaged tile: {text}")
    for word in ("land", "ground", place):
        check(re.search(word, text), f"--check does not name {word}: {text}")
    damaged_land(data, made, "ground", place)
    status, text = run_check(data)
    equal(status, 1, f"--check afterwards: {text}")


case("a flipped bit in a tile in the middle: its locale alone answers 503 and is named",
     tile_flipped, 1, 2)
case("a flipped bit in a tile at the rim", tile_flipped, 2, 1)


def row_changed(statement, what):
    """A row that is there no more, or not as it was: SQLite cannot see it, the store must."""
    data = fresh()
    made = two_locales(data)
    connection = database(data)
    changes = connection.execute(statement).rowcount
    check(changes > 0, f"{statement}: {changes} rows")
    connection.close()
    status, text = run_check(data)
    equal(status, 1, f"--check after {what}: {text}")
    damaged_land(data, made)


case("a tile that is missing", row_changed, "DELETE FROM tile WHERE tx = 1 AND ty = 1",
     "a tile was removed")
case("a tile's data cut short", row_changed,
     "UPDATE tile SET data = substr(data, 1, length(data) - 1) WHERE tx = 1 AND ty = 1", "a cut")
case("two tiles that have changed places", row_changed,
     "UPDATE tile SET data = (SELECT data FROM tile WHERE tx = 2 AND ty = 0), "
     "crc = (SELECT crc FROM tile WHERE tx = 2 AND ty = 0) WHERE tx = 1 AND ty = 0", "a swap")


def logged(data):
    """The models, and the logged samples that kill -9 has left; none when they are in tiles."""
    made = two_locales(data, "kill")
    connection = database(data)
    found = connection.execute("SELECT data FROM edit WHERE length(data) > 0").fetchall()
    return made, connection, found


@test("a flipped bit in the logged samples of an edit that is not yet in tiles")
def _():
    for _ in range(10):
        data = fresh()
        made, connection, found = logged(data)
        if found:
            break
        connection.close()
    else:
        raise Skip("ten times the samples were in their tiles before the kill")
    for (blob,) in found:
        bad = bytearray(blob)
        bad[len(bad) // 2] ^= 1
        connection.execute("UPDATE edit SET data = ? WHERE data = ?", (bytes(bad), blob))
    connection.close()
    status, text = run_check(data)
    equal(status, 1, f"--check: {text}")
    with stored(data, wait=False) as daemon:
        equal(settle(daemon), None, "the daemon's end")
        not_ready(daemon)
        for name, ground in made.items():
            answer = daemon.get(f"/v1/locales/{name}")
            if answer.status == 200:
                ground.compare(read_ground(daemon, ground, name), name)
            else:
                problem(answer, 503, name)


def mesh_file(how):
    data = fresh()
    with stored(data) as daemon:
        daemon.ok("PUT", "/v1/locales/house", {}, status=201)
        daemon.ok("PUT", "/v1/locales/house/layers/floor",
                  obj([rectangle(i, 0, i + 1, 4, 2 + i) for i in range(50)]), status=201,
                  media="model/obj")
        daemon.ok("PUT", "/v1/locales/fine", {}, status=201)
    files = sorted(os.listdir(os.path.join(data, "meshes")))
    check(files, "no files in meshes/")
    for name in files:
        path = os.path.join(data, "meshes", name)
        with open(path, "rb") as file:
            bytes_ = bytearray(file.read())
        if how == "missing":
            os.unlink(path)
            continue
        if how == "flipped":
            bytes_[len(bytes_) * 2 // 3] ^= 4
        else:
            del bytes_[len(bytes_) // 2:]
        with open(path, "wb") as file:
            file.write(bytes_)
    status, text = run_check(data)
    equal(status, 1, f"--check: {text}")
    check("house" in text and "floor" in text, f"--check: {text}")
    with stored(data, wait=False) as daemon:
        equal(settle(daemon), None, f"the daemon's end: {daemon.log_text()[-2000:]}")
        not_ready(daemon, "house", "floor")
        problem(daemon.get("/v1/locales/house"), 503, "house")
        daemon.ok("GET", "/v1/locales/fine")


for how_ in ("flipped", "cut", "missing"):
    case(f"files of a mesh, {how_}", mesh_file, how_)


# ---- random damage of the whole file --------------------------------------------------------------------


class Small:
    """A small directory, closed as it should be, and everything that it must answer."""

    def __init__(self):
        self.data, random = fresh(), rng("faults small")
        self.ground = hills(random, 64, 48)
        with stored(self.data) as daemon:
            daemon.ok("PUT", "/v1/locales/land", {"title": "small land", "open_sky": False},
                      status=201)
            put_ground(daemon, self.ground)
            for i in range(20):
                edit = random_edit(random, self.ground)
                target, body, media = edit.request("land")
                answer = daemon.ask("POST", target, body, media=media,
                                    headers={"Idempotency-Key": f"edit-{i}"})
                equal(answer.status, 200, "edit")
                self.ground.apply(edit)
            self.samples = read_ground(daemon, self.ground)
            self.ground.compare(self.samples, "before any damage")
            self.document = self.of(daemon)
        check(not os.path.exists(os.path.join(self.data, "kota.db-wal"))
              or os.path.getsize(os.path.join(self.data, "kota.db-wal")) == 0,
              "a WAL is left after SIGTERM")

    @staticmethod
    def of(daemon):
        document = daemon.ok("GET", "/v1/locales/land")
        events = replay(daemon.port, "/v1/locales/land/events", 1, document["revision"])
        document.pop("memory_bytes")
        return document, events

    def same(self, daemon, what):
        got = read_ground(daemon, self.ground)
        if got.tobytes() != self.samples.tobytes():
            raise Failure(f"{what}: A WRONG HEIGHT is served, and nothing is said")
        equal(self.of(daemon), self.document, f"{what}: document and events")


small_ = []


def small():
    if not small_:
        small_.append(Small())
    return small_[0]


def outcome(data, what):
    """Starts on what may be damaged: "refused", "not ready" or "served"; fails on all else."""
    daemon = stored(data, wait=False)
    try:
        status = settle(daemon)
        if status is not None:
            check(status > 0, f"{what}: it ended with {status}: {daemon.log_text()[-3000:]}")
            one_line(daemon.log_text(), re.compile("kota.db|" + re.escape(data)), what=what)
            return "refused"
        if daemon.get("/readyz").status == 503:
            said = not_ready(daemon)
            check(re.search("damage|corrupt|malformed|land", said, re.I), f"{what}: {said}")
            answer = daemon.get("/v1/locales/land")
            if answer.status == 200:
                small().same(daemon, what)
            else:
                problem(answer, 503)
            result = "not ready"
        else:
            small().same(daemon, what)
            result = "served"
        daemon.stop()
        return result
    except CUT as error:
        raise Failure(f"{what}: {error!r}, exit {daemon.process.poll()}: "
                      f"{daemon.log_text()[-3000:]}") from error
    finally:
        daemon.kill()


def spoil(random, path, number):
    """One change of the file, a cut, a page of zeros or another's, or a bit; says which."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        if number % 6 == 5:
            length = random.choice((random.randrange(size), size // 2 + 1, size - 1, size - 16384,
                                    16384, 100, 1))
            file.truncate(length)
            return f"cut from {size} to {length} bytes"
        page = random.randrange(size // 16384) * 16384
        if number % 6 == 4:
            other = random.randrange(size // 16384) * 16384
            file.seek(other)
            content = file.read(16384) if number % 12 == 4 and other != page else bytes(16384)
            file.seek(page)
            file.write(content)
            return f"page at {page} of {size} is {'that of ' + str(other) if any(content) else 0}"
        at = random.choice((random.randrange(size), random.randrange(100),
                            page + random.randrange(8), page + random.randrange(16384),
                            page + 16383 - random.randrange(2000)))
        bit = random.randrange(8)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))
        return f"bit {bit} of byte {at} of {size}"


@test(f"{FLIPS} flipped bits and cuts of kota.db: refused, or named, or exactly right")
def _():
    random, counts, failures = rng("faults flips"), {}, []
    for number in range(FLIPS):
        data = fresh()
        shutil.copytree(small().data, data)
        what = f"{number}: " + spoil(random, os.path.join(data, "kota.db"), number)
        try:
            result = outcome(data, what)
            status, text = run_check(data)
            if result != "served":
                check(status != 0, f"{what}: {result}, and --check says ok: {text}")
            counts[result] = counts.get(result, 0) + 1
        except Failure as failure:
            failures.append(str(failure))
        shutil.rmtree(data)
    print(f"# {counts}")
    check(not failures, f"{len(failures)} of {FLIPS}:\n" + "\n".join(failures)[:6000])


@test("flipped bits and cuts of the WAL that kill -9 has left: an older ground, never a wrong one")
def _():
    random, counts = rng("faults wal"), {}
    source = fresh()
    ground = hills(random, 64, 48)
    daemon = stored(source)
    daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    put_ground(daemon, ground)
    versions = {2: read_ground(daemon, ground)}
    for _ in range(15):
        edit = random_edit(random, ground)
        target, body, media = edit.request("land")
        revision = daemon.ok("POST", target, body, media=media)["revision"]
        versions[revision] = read_ground(daemon, ground)
    cut_off(daemon)
    wal = os.path.join(source, "kota.db-wal")
    if not os.path.exists(wal) or not os.path.getsize(wal):
        raise Skip("no WAL is left")
    for number in range(FLIPS // 3):
        data = fresh()
        shutil.copytree(source, data)
        what = f"WAL {number}: " + spoil(random, os.path.join(data, "kota.db-wal"), number)
        daemon = stored(data, wait=False)
        try:
            status = settle(daemon)
            if status is not None:
                check(status > 0, f"{what}: it ended with {status}: {daemon.log_text()[-3000:]}")
                one_line(daemon.log_text(), what=what)
                result = "refused"
            elif daemon.get("/readyz").status == 503:
                result = "not ready"
            else:
                answer = daemon.get("/v1/locales/land")
                result = f"served {answer.status}"
                if answer.status == 200:
                    revision = answer.json["revision"]
                    if revision > 1:
                        check(revision in versions, f"{what}: revision {revision}")
                        check(read_ground(daemon, ground).tobytes()
                              == versions[revision].tobytes(), f"{what}: A WRONG HEIGHT is served")
            counts[result] = counts.get(result, 0) + 1
        finally:
            daemon.kill()
        shutil.rmtree(data)
    print(f"# {counts}")


# ---- a reader that stays ------------------------------------------------------------------------------

READER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN")
database.execute("SELECT count(*) FROM edit").fetchone()
print("reads", flush=True)
sys.stdin.read()
database.execute("COMMIT")
database.close()
"""


def store_metric(daemon, name):
    text = daemon.get("/metrics").body.decode()
    return float(re.search(rf"^kota_store_{name} (\S+)$", text, re.M).group(1))


@test("a read transaction of another process: the WAL grows to --max-wal, then 503 until it ends")
def _():
    most = 4 << 20
    random = rng("wal")
    ground = hills(random, 300, 270)
    data = fresh()
    daemon = stored(data, "--max-wal", str(most))
    daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    put_ground(daemon, ground)
    with Client(daemon.port) as client, subprocess.Popen(
            [sys.executable, "-c", READER, os.path.join(data, "kota.db")], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        try:
            equal(reader.stdout.readline(), "reads\n", "the other process")
            blocked, small = store_metric(daemon, "checkpoints_blocked_total"), None
            for _ in range(5000):
                edit = random_edit(random, ground, 60, ())
                answer = client.edit(edit, binary=True)
                if answer.status != 200:
                    break
                ground.apply(edit)
                small = small or store_metric(daemon, "wal_bytes")
            problem(answer, 503)
            check(int(answer.headers.get("retry-after", 0)) >= 1, f"Retry-After: {answer.headers}")
            check(re.search("-wal has .* bytes", answer.json["detail"]), answer.json["detail"])
            size = store_metric(daemon, "wal_bytes")
            check(small < most <= size < most + (2 << 20), f"the WAL grew from {small} to {size}")
            equal(store_metric(daemon, "wal_bytes_max"), most, "kota_store_wal_bytes_max")
            check(store_metric(daemon, "checkpoints_blocked_total") > blocked, "checkpoints blocked")
            equal(store_metric(daemon, "read_only"), 0, "it is no damage: kota_store_read_only")
            ground.compare(read_ground(client, ground), "reads go on")
        finally:
            reader.communicate()
        equal(reader.returncode, 0, "the other process")
        for _ in range(20):
            edit = random_edit(random, ground, 60, ())
            answer = client.edit(edit, binary=True)
            equal(answer.status, 200, f"an edit after the reader has gone: {answer}")
            ground.apply(edit)
        check(store_metric(daemon, "checkpoints_total") > 0, "checkpoints")
    daemon.stop()
    with stored(data) as again:
        ground.compare(read_ground(again, ground), "after a restart")
    check_is_good(data)


# ---- what is not a store -----------------------------------------------------------------------------


def refused(data, *words, what):
    """The start fails with one clear line that names the directory or the file."""
    daemon = stored(data, wait=False)
    try:
        status = settle(daemon)
        check(status is not None, f"{what}: it serves: {daemon.log_text()[-2000:]}")
        check(status > 0, f"{what}: exit status {status}: {daemon.log_text()[-3000:]}")
        one_line(daemon.log_text(), data, *words, what=what)
    finally:
        daemon.kill()


def garbage(content):
    data = fresh()
    os.mkdir(data)
    path = os.path.join(data, "kota.db")
    with open(path, "wb") as file:
        file.write(content)
    refused(data, "kota.db", what="garbage")
    with open(path, "rb") as file:
        equal(file.read(), content, "the file afterwards")
    status, text = run_check(data)
    check(status != 0, f"--check: {text}")


case("garbage in the place of kota.db", garbage, rng("garbage").randbytes(100000))
case("a text in the place of kota.db", garbage, b"not a database\n" * 400)


@test("a database of another program is refused and left as it is")
def _():
    data = fresh()
    os.mkdir(data)
    path = os.path.join(data, "kota.db")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE locale(a)")
    connection.execute("INSERT INTO locale VALUES ('precious')")
    connection.commit()
    connection.close()
    refused(data, what="a foreign database")
    connection = sqlite3.connect(path)
    equal(connection.execute("SELECT a FROM locale").fetchall(), [("precious",)], "its rows")
    connection.close()


@test("--data that is a file, or below one, is refused")
def _():
    path = os.path.join(folder.name, "a-file")
    with open(path, "w") as file:
        file.write("x")
    refused(path, what="a file")
    refused(os.path.join(path, "below"), what="below a file")


# ---- disks ----------------------------------------------------------------------------------------------


class Disk:
    """A tmpfs of its own; needs root."""

    def __init__(self, size):
        self.path = fresh()
        os.mkdir(self.path)
        if os.geteuid() != 0:
            raise Skip("a file system can be mounted by root alone")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", self.path],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skip(f"mount: {done.stderr.strip()}")

    def mount(self, option):
        subprocess.run(["mount", "-o", f"remount,{option}", self.path], check=True)

    def fill(self, leave=0):
        """A file that takes all room but `leave` bytes."""
        path = os.path.join(self.path, "filler")
        with open(path, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
            if leave:
                file.truncate(max(0, file.tell() - leave))

    def free(self):
        os.unlink(os.path.join(self.path, "filler"))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        subprocess.run(["umount", "-l", self.path], check=True)


def full_disk(leave):
    random = rng(f"full disk {leave}")
    ground = hills(random, 300, 270)
    with Disk("24m") as disk:
        data = os.path.join(disk.path, "data")
        daemon = stored(data)
        try:
            daemon.ok("PUT", "/v1/locales/land", {}, status=201)
            put_ground(daemon, ground)
            disk.fill(leave)
            answer, unsure, revision = None, None, 2
            with Client(daemon.port) as client:
                for _ in range(3000):
                    edit = random_edit(random, ground, 100, ())
                    answer = client.edit(edit, binary=True)
                    if answer.status != 200:
                        unsure = edit
                        break
                    ground.apply(edit)
                    revision = answer.json["revision"]
                problem(answer, 507)
                not_ready(daemon, re.compile("full|space", re.I))
                for method, target, body in (
                        ("PUT", "/v1/locales/land", {"title": "x"}), ("PUT", "/v1/locales/new", {}),
                        ("DELETE", "/v1/locales/land/layers/ground", None),
                        ("POST", "/v1/locales/land/edits",
                         {"rect": [0, 0, 1, 1], "op": "set", "heights": [1]})):
                    refusal = client.ask(method, target, body)
                    check(refusal.status in (503, 507), f"{method} {target}: {refusal}")
                    check(refusal.status == 507 or "retry-after" in refusal.headers,
                          f"no Retry-After: {refusal.headers}")
                    problem(refusal, refusal.status)
                ground.compare(read_ground(client, ground), "reads of a full disk")
            equal(daemon.ok("GET", "/v1/locales/land")["revision"], revision, "revision")
        except BaseException:
            daemon.kill()
            raise
        if leave % 2:
            cut_off(daemon)
        else:
            daemon.process.terminate()
            check(daemon.process.wait(HANG_S) >= 0, f"a signal: {daemon.log_text()[-2000:]}")
            daemon.kill()
        again = stored(data, wait=False)
        try:
            status = settle(again)
            if status is None:
                got = again.get("/v1/locales/land")
                if got.status == 200:
                    samples = read_ground(again, ground)
                    whole_or_not(ground, unsure, samples, "a start on a full disk")
            else:
                check(status > 0, f"a signal {status}: {again.log_text()[-2000:]}")
                one_line(again.log_text(), what="a start on a full disk")
        finally:
            again.kill()
        disk.free()
        with stored(data) as daemon:
            now = daemon.ok("GET", "/v1/locales/land")["revision"]
            check(revision <= now <= revision + 1, f"revision {now} after {revision}")
            model = whole_or_not(ground, unsure, read_ground(daemon, ground), "after freeing space")
            edit = random_edit(random, model, 20, ())
            answer = Client(daemon.port).edit(edit)
            equal((answer.status, answer.json["revision"]), (200, now + 1), "an edit")
            model.apply(edit)
        with stored(data) as daemon:
            model.compare(read_ground(daemon, model), "after one more restart")
        check_is_good(data)


def whole_or_not(ground, unsure, samples, what):
    """The model that the samples are equal to: with the edit that failed, or without it."""
    other = ground.copy()
    other.apply(unsure)
    if samples.tobytes() == other.h.tobytes():
        return other
    ground.compare(samples, what)
    return ground


for leave_ in (0, 100001, 300000, 1500001):
    case(f"a disk with {leave_} bytes left: 507, reads go on, /readyz tells, nothing is lost",
         full_disk, leave_)


@test("an import that does not fit on the disk is refused whole")
def _():
    with Disk("12m") as disk:
        data, random = os.path.join(disk.path, "data"), rng("big import")
        ground, big = hills(random, 40, 40), hills(random, 1500, 1200)
        with stored(data) as daemon:
            daemon.ok("PUT", "/v1/locales/land", {}, status=201)
            put_ground(daemon, ground)
            disk.fill(1 << 20)
            answer = daemon.ask("PUT", f"/v1/locales/land/layers/big?{big.query()}", big.body(),
                                media="application/vnd.kota.f32")
            problem(answer, 507)
            ground.compare(read_ground(daemon, ground), "reads")
            equal(len(daemon.ok("GET", "/v1/locales/land")["layers"]), 1, "layers")
        disk.free()
        with stored(data) as daemon:
            document = daemon.ok("GET", "/v1/locales/land")
            check(len(document["layers"]) == document["revision"] - 1, f"{document}")
            ground.compare(read_ground(daemon, ground, layer="ground"), "after a restart")


@test("a mesh that does not fit on the disk is refused, and edits go on")
def _():
    with Disk("12m") as disk:
        data, ground = os.path.join(disk.path, "data"), hills(rng("big mesh"), 40, 40)
        mesh = obj([rectangle(i % 150, i // 150, i % 150 + 1, i // 150 + 1, i % 7)
                    for i in range(20000)])
        target = "/v1/locales/land/layers/mesh"
        with stored(data) as daemon:
            daemon.ok("PUT", "/v1/locales/land", {}, status=201)
            put_ground(daemon, ground)
            disk.fill(1 << 20)
            problem(daemon.ask("PUT", target, mesh, media="model/obj"), 507)
            equal(daemon.get("/readyz").status, 200, "/readyz")
            edit = Edit("set", (1, 1, 2, 1), floats([5, 6]))
            equal(Client(daemon.port).edit(edit, layer="ground").status, 200, "an edit")
            ground.apply(edit)
            disk.free()
            daemon.ok("PUT", target, mesh, status=201, media="model/obj")
        with stored(data) as daemon:
            ground.compare(read_ground(daemon, ground, layer="ground"), "after a restart")
            got = daemon.post("/v1/locales/land/contact", {"points": [[149.5, 99.5, 99]]})
            equal(got.json["results"][0]["floor"]["point"][2], 14999 % 7, "the mesh")
            files = os.listdir(os.path.join(data, "meshes"))
            equal(len(files), 2, f"files of one mesh: {files}")
        check_is_good(data)


@test("a directory that may not be written is refused with one clear line")
def _():
    with Disk("24m") as disk:
        data = os.path.join(disk.path, "data")
        made = two_locales(data)
        disk.mount("ro")
        refused(data, what="a read-only file system")
        refused(os.path.join(disk.path, "new"), what="a new directory on it")
        disk.mount("rw")
        with stored(data) as daemon:
            made["fine"].compare(read_ground(daemon, made["fine"], "fine"), "afterwards")


@test("a directory without the right to write, for one who is not root")
def _():
    if os.geteuid() == 0:
        raise Skip("root may write everywhere")
    data = fresh()
    os.mkdir(data, 0o555)
    refused(data, what="a directory without rights")


run(folder.cleanup, "the folder is removed")
