#!/usr/bin/env python3
"""What a client is told when the store or the shared log fails: the kind of failure, and nothing of a
library's own text, which has paths, addresses, names of roles and databases. The log has that.

Also: a file that may not grow (a quota, RLIMIT_FSIZE) is a full disk, 507.
"""
import errno
import json
import os
import resource
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "cluster"), os.path.join(HERE, "..", "faults")]
from daemon import BIN_DIR, Daemon, problem
from faults import ON_FILE, WRITE, Fault, Orders
from ground import Edit, check_is_good, floats, hills, put_ground, read_ground, stored
from mesh_oracle import obj, rectangle
from postgres import Server
from tap import Skip, case, check, equal, rng, run, test, wait_for

LIBRARY = os.path.join(BIN_DIR, "faults", "inject.so")
OBJ = "model/obj"
ROLE, DATABASE, PASSWORD = "surveyor", "survey", "not-for-clients"
folder = tempfile.TemporaryDirectory(prefix="kota-told-")
NUMBERS = iter(range(1000))


def fresh():
    return os.path.join(folder.name, f"data{next(NUMBERS)}")


def edit(daemon, height=1.0, column=0):
    return daemon.post("/v1/locales/land/edits",
                       {"rect": [column, 0, 1, 1], "op": "set", "heights": [height]})


def hides(daemon, answer, *secrets):
    """Neither an answer nor what any caller may ask names one of these."""
    for what, got in (("the answer", answer), ("/readyz", daemon.get("/readyz")),
                      ("/v1/stats", daemon.get("/v1/stats"))):
        for secret in secrets:
            check(secret.encode() not in got.body, f"{what} has {secret!r}: {got.body[:1500]!r}")


def logged(daemon, answer, *words):
    """A line of the log has the words, and the line of the request has them, too."""
    lines = [line for line in daemon.log_text().splitlines() if all(w in line for w in words)]
    check(lines, f"no line has {words}: {daemon.log_text()[-3000:]}")
    own = [line for line in lines if answer.headers["x-request-id"] in line]
    check(own, f"the request's line has not {words}: {daemon.log_text()[-3000:]}")


# ---- the store ----------------------------------------------------------------------------------


def with_ground(data, env=None):
    daemon = stored(data, env=env)
    ground = hills(rng("told"), 40, 30)
    daemon.ok("PUT", "/v1/locales/land", {}, status=201)
    put_ground(daemon, ground)
    return daemon, ground


def limit_files(daemon, beyond):
    """No file of the daemon may grow further than the largest one now and that many bytes."""
    data = daemon.args[daemon.args.index("--data") + 1]
    largest = max(os.path.getsize(os.path.join(data, name)) for name in os.listdir(data))
    bytes_max = largest + beyond
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (bytes_max, bytes_max))


@test("a file that may not grow is a full disk: 507, no signal, no path, and nothing is lost")
def file_limit():
    data = fresh()
    daemon, ground = with_ground(data)
    with daemon:
        limit_files(daemon, 20000)
        good, answer = 0, None
        for i in range(1, 3000):
            answer = edit(daemon, i)
            if answer.status != 200:
                break
            good = i
        problem(answer, 507, "no space")
        equal(daemon.get("/readyz").status, 503, "/readyz")
        problem(edit(daemon), 507)
        hides(daemon, answer, data, folder.name, "/kota.db")
        logged(daemon, answer, data)
        ground.apply(Edit("set", (0, 0, 1, 1), floats([good])))
        ground.compare(read_ground(daemon, ground), "reads go on")
    with stored(data) as daemon:
        last = daemon.ok("GET", "/v1/locales/land/height?x=0&y=0")["height"]
        check(last in (good, good + 1), f"{last} after {good}")
        equal(edit(daemon, 7).status, 200, "an edit after a restart")
    check_is_good(data)


@test("a mesh whose file may not grow is 507, and edits go on")
def mesh_limit():
    data = fresh()
    daemon, _ = with_ground(data)
    mesh = obj([rectangle(i % 150, i // 150, i % 150 + 1, i // 150 + 1, i % 7)
                for i in range(20000)])
    with daemon:
        limit_files(daemon, 100000)
        answer = daemon.ask("PUT", "/v1/locales/land/layers/deck", mesh, media=OBJ)
        problem(answer, 507)
        hides(daemon, answer, data, folder.name)
        logged(daemon, answer, data)
        equal(daemon.get("/readyz").status, 200, "/readyz")
        equal(edit(daemon, 7).status, 200, "an edit")
        equal([name for name in os.listdir(f"{data}/meshes")], [], "files")
    check_is_good(data)


def failing_write(name, status, is_mesh):
    """Each write to a file fails that way."""
    if not os.path.exists(LIBRARY):
        raise Skip("the library that makes calls fail has not been built")
    data = fresh()
    orders = Orders(os.path.join(folder.name, f"orders{next(NUMBERS)}"))
    daemon, _ = with_ground(data, {"LD_PRELOAD": LIBRARY, "KOTA_FAULTS": orders.path})
    fault = Fault(name, WRITE, getattr(errno, name), ON_FILE)
    with daemon:
        orders.give(fault, 1, 1 << 30)
        if is_mesh:
            answer = daemon.ask("PUT", "/v1/locales/land/layers/deck",
                                obj([rectangle(0, 0, 9, 9, 1)]), media=OBJ)
        else:
            answer = edit(daemon, 5)
        calls, failed = orders.take_back()
        check(failed > 0, f"no write failed of {calls}")
        problem(answer, status)
        hides(daemon, answer, data, folder.name, "/kota.db")
        if is_mesh:
            equal(edit(daemon, 6).status, 200, "an edit")
    with stored(data) as daemon:
        equal(edit(daemon, 7).status, 200, "an edit after a restart")
    check_is_good(data)


for name_, status_ in (("EDQUOT", 507), ("EFBIG", 507), ("ENOSPC", 507), ("EIO", 503)):
    for is_mesh_ in (False, True):
        if (name_, is_mesh_) != ("EIO", True):
            case(f"writes that fail by {name_} are {status_}, {'a mesh' if is_mesh_ else 'an edit'}",
                 failing_write, name_, status_, is_mesh_)


@test("a database that is removed while it is in use: 503 without its path")
def removed():
    data = fresh()
    daemon, _ = with_ground(data)
    try:
        os.unlink(f"{data}/kota.db")
        answer = edit(daemon, 5)
        problem(answer, 503, "kota.db", "removed or replaced")
        hides(daemon, answer, data, folder.name, "/kota.db")
        logged(daemon, answer, f"{data}/kota.db")
    finally:
        daemon.kill()


@test("files that a library cannot read are refused without a path of this machine")
def formats():
    with Daemon() as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        for media, body in (
                ("image/png", b"\x89PNG\r\n\x1a\n" + b"\x00" * 60), ("model/obj", b"v 1 2\nf 1 2 3\n"),
                ("model/vnd.collada+xml", b"<COLLADA version='1.4.1'><library_geometries>"
                                          b"<geometry id='../../etc/passwd'/></COLLADA>"),
                ("model/gltf-binary", b"glTF" + b"\x02\x00\x00\x00" + b"\xff" * 40),
                ("model/stl", b"solid x\nfacet\n"), ("model/ply", b"ply\nformat ascii 1.0\n")):
            answer = daemon.ask("PUT", "/v1/locales/land/layers/deck?spacing=1,1", body, media=media)
            check(400 <= answer.status < 500, f"{media}: {answer}")
            for secret in ("/usr", "/tmp", "/root", "/home", os.getcwd(), ".c:", ".cpp"):
                check(secret.encode() not in answer.body, f"{media} has {secret}: {answer}")


# ---- the shared log -----------------------------------------------------------------------------


def shared_log_fails(how, words, mend):
    """A write while `how` is so: 503, its words are in the log, and all is well after `mend`."""
    data = fresh()
    conninfo = (f"host=127.0.0.1 port={engine.port} dbname={DATABASE} user={ROLE} "
                f"password={PASSWORD}")
    secrets = ("127.0.0.1", str(engine.port), ROLE, DATABASE, PASSWORD, "FATAL", "refused", data)
    with Daemon("--data", data, "--cluster", conninfo, "--node", "a", "--max-staleness",
                "1") as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        put_ground(daemon, hills(rng("told"), 40, 30))
        equal(edit(daemon, 3).status, 200, "an edit")
        how()
        answer = edit(daemon, 4)
        for _ in range(200):
            if answer.status != 200 and all(w in daemon.log_text() for w in words):
                break
            time.sleep(0.05)
            answer = edit(daemon, 4)
        answer = edit(daemon, 5)
        problem(answer, 503, "shared log")
        equal(answer.headers.get("retry-after"), "1", "Retry-After")
        for got in (answer, daemon.get("/readyz")):
            for secret in secrets:
                check(secret.encode() not in got.body, f"{secret!r} is told: {got}")
        reason = daemon.ok("GET", "/v1/stats")["cluster"]["reason"]
        check(not any(secret in json.dumps(reason) for secret in secrets), f"reason: {reason}")
        logged(daemon, answer, *words)
        check(PASSWORD not in daemon.log_text(), "the password is in the log")
        mend()
        wait_for("writes again", lambda: edit(daemon, 6).status == 200)
        daemon.ok("DELETE", "/v1/locales/land", status=204)


def end_sessions():
    engine.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'")


def forbid_role():
    engine.sql(f"ALTER ROLE {ROLE} NOLOGIN")
    end_sessions()


def forbid_database():
    engine.sql(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS false")
    end_sessions()


def forbid_rows():
    engine.sql("CREATE FUNCTION kota.no_rows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
               f"EXCEPTION 'no room for {ROLE} at 127.0.0.1'; END $$; "
               "CREATE TRIGGER no_rows BEFORE INSERT ON kota.edit FOR EACH ROW "
               "EXECUTE FUNCTION kota.no_rows()", database=DATABASE)


engine = Server().__enter__()
engine.sql(f"CREATE ROLE {ROLE} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
engine.sql(f"CREATE DATABASE {DATABASE}")
for what_, how_, words_, mend_ in (
        ("away", lambda: engine.stop("immediate"), ["Connection refused"], engine.start),
        ("that does not let the role in", forbid_role, [ROLE, "log in"],
         lambda: engine.sql(f"ALTER ROLE {ROLE} LOGIN")),
        ("whose database takes nobody", forbid_database, [DATABASE, "not currently accepting"],
         lambda: engine.sql(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS true")),
        ("that refuses the row", forbid_rows, [f"no room for {ROLE} at 127.0.0.1"],
         lambda: engine.sql("DROP TRIGGER no_rows ON kota.edit; DROP FUNCTION kota.no_rows()",
                            database=DATABASE))):
    case(f"a PostgreSQL {what_}: 503 in kota's words, PostgreSQL's own are in the log",
         shared_log_fails, how_, words_, mend_)


def finish():
    engine.remove()
    folder.cleanup()


run(finish, "the engine is removed")
