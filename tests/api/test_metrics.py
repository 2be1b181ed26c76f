"""/metrics: its form, its numbers, and docs/metrics.md, whose table is what /metrics says.

`python3 tests/api/test_metrics.py --write` writes the table into the page.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from background import free_port
from daemon import F32, KOTAD, ROOT, Daemon, ask_once, clean_environment, connection_to
from events import Stream
from fields import Terrain
from metrics import parse, scrape
from tap import HANG_S, Skip, check, equal, run, test, wait_for

PAGE = os.path.join(ROOT, "docs", "metrics.md")
MARK = "<!-- written by tests/api/test_metrics.py --write -->\n"
FIELD = Terrain(2, 2, [[1, 2], [3, 4]])
LAYER = f"/v1/locales/land/layers/ground?{FIELD.query()}"
GROUPS = (  # the first that fits
    ("The process", r"build_info|state|uptime|start_time|ready|cpu|resident|open_files|log_"),
    ("The store, with `--data`", r"store_"),
    ("The log that daemons share, with `--cluster`", r"cluster_"),
    ("Patches of sand", r"patches|sand_|shell_"),
    ("The world and its writer", r"locale|layers|world_|uploads_|mesh_|revisions|change|edit|"
                                 r"idempotent|snapshots"),
    ("Tiles", r"tile_"),
    ("Requests and connections", r""))


def unit(name):
    match = re.search(r"_(seconds|bytes)(_max|_total)?$", name)
    return match.group(1) if match else ""


def table(families):
    """The text below the mark: one table a group."""
    groups = {title: [] for title, _ in GROUPS}
    for family in families.values():
        short = family.name.removeprefix("kota_")
        title = next(title for title, pattern in GROUPS if re.match(pattern, short))
        labels = ", ".join(f"`{label}`" for label in family.labels)
        groups[title].append(f"| `{family.name}` | {family.type} | {unit(family.name)} | {labels} | "
                             f"{family.help} |\n")
    return "".join(f"\n## {title}\n| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n"
                   + "".join(rows) for title, rows in groups.items())


data = tempfile.mkdtemp(prefix="kota-test-")
daemon = Daemon("--data", os.path.join(data, "d"), "--loops", "2")


# of a log that is away; the other metrics are left out
away = Daemon("--data", os.path.join(data, "away"), "--cluster",
              f"host=127.0.0.1 port={free_port()} dbname=kota", "--max-staleness", "0")


def all_families():
    shared = {name: family for name, family in scrape(away).items()
              if name.startswith("kota_cluster_")}
    return {**scrape(daemon), **shared}


def finish():
    try:
        daemon.stop()
        away.stop()
    finally:
        shutil.rmtree(data, ignore_errors=True)


daemon.ok("PUT", "/v1/locales/land", {}, status=201)
daemon.ok("PUT", LAYER, FIELD.body(), status=201, media=F32)


@test("each metric has HELP, TYPE, the right suffix, and its samples once")
def form():
    families = scrape(daemon)
    check(len(families) > 60, f"only {len(families)} metrics")
    for name in families:
        check(name.startswith("kota_"), f"{name} does not begin with kota_")
    equal(set(families["kota_http_requests_total"].labels), {"method", "route", "class"}, "labels")


@test("docs/metrics.md has each metric with its type, unit, labels and meaning, and no other")
def documented():
    with open(PAGE) as file:
        page = file.read()
    _, mark, rest = page.partition(MARK)
    check(mark, "the page has lost its mark")
    got, want = rest.splitlines(), table(all_families()).splitlines()
    for line in want:
        check(line in got, f"docs/metrics.md lacks {line!r} (--write)")
    for line in got:
        check(line in want, f"/metrics has no {line!r} (--write)")
    equal(got, want, "the order (--write)")


@test("promtool finds nothing to complain of")
def promtool():
    if not shutil.which("promtool"):
        raise Skip("no promtool (deploy/install-deps.sh ops)")
    done = subprocess.run(["promtool", "check", "metrics"], input=daemon.get("/metrics").body,
                          capture_output=True, timeout=HANG_S, check=False)
    equal((done.returncode, done.stdout, done.stderr), (0, b"", b""), "promtool check metrics")


@test("without a store there are the same metrics but the store's")
def without_store():
    with Daemon() as other:
        have, all_ = set(scrape(other)), set(scrape(daemon))
    equal(all_ - have, {name for name in all_ if name.startswith("kota_store_")}, "what lacks")
    equal(have - all_, set(), "what is more")


@test("--ops-listen tells the same metrics, of the daemon's own requests")
def ops():
    port_file = os.path.join(data, "ops-port")
    with Daemon("--ops-listen", "127.0.0.1:0", "--ops-port-file", port_file) as other:
        for _ in range(3):
            other.ok("GET", "/v1/limits")
        main = scrape(other)
        other.connection.close()
        other.connection, own = None, other.port
        with open(port_file) as file:
            other.port = int(file.read())
        side = scrape(other)
        other.connection.close()
        other.connection, other.port = None, own
    equal(set(side), set(main), "the metrics")
    equal(side["kota_http_requests_total"].value(
        method="GET", route="/v1/limits", **{"class": "2xx"}), 3, "requests of /v1/limits")


@test("requests are counted by route and class, timed by route, and the sums agree")
def routes():
    def height(families):
        requests = families["kota_http_requests_total"]
        route = {"method": "GET", "route": "/v1/locales/{locale}/height"}
        return [requests.value(**route, **{"class": c}) for c in ("2xx", "4xx")] + \
            [families["kota_http_route_duration_seconds"].total("_count", **route)]
    before = height(scrape(daemon))
    for target in ("?x=0&y=0", "?x=0.5&y=0.5", "?x=oops&y=0"):
        daemon.get(f"/v1/locales/land/height{target}")
    families = scrape(daemon)
    equal([b - a for a, b in zip(before, height(families))], [2, 1, 3], "2xx, 4xx, timed")
    count = families["kota_http_request_duration_seconds"].value("_count")
    equal(families["kota_http_requests_total"].total(), count, "requests of all routes")
    equal(families["kota_http_route_duration_seconds"].total("_count"), count, "timed of all routes")
    whole = families["kota_http_request_duration_seconds"].value("_sum")
    check(abs(families["kota_http_route_duration_seconds"].total("_sum") - whole) < 1e-6,
          "the times of the routes make those of all")
    check(families["kota_loop_turn_duration_seconds"].value("_count") > 0, "no turn was counted")


@test("a route's buckets are every second one of all requests' buckets")
def buckets():
    with Daemon("--loops", "1") as other:
        for _ in range(200):
            other.ok("GET", "/v1/limits")
        families = scrape(other)
    fine = {le: n for (end, labels), n in
            families["kota_http_request_duration_seconds"].samples.items() if end == "_bucket"
            for _, le in labels}
    coarse = {dict(labels)["le"]: n for (end, labels), n in
              families["kota_http_route_duration_seconds"].samples.items() if end == "_bucket"}
    equal(coarse, {le: fine[le] for le in coarse}, "the buckets")
    equal(len(coarse), 11, "how many")


@test("changes are timed, revisions told, files and streams counted")
def gauges():
    before = scrape(daemon)
    daemon.ok("POST", "/v1/locales/land/edits", {"brush": {
        "shape": "raise", "center": [0.5, 0.5], "radius": 1, "amount": 1}})
    equal(scrape(daemon)["kota_change_duration_seconds"].value("_count"),
          before["kota_change_duration_seconds"].value("_count") + 1, "changes timed")
    equal(scrape(daemon)["kota_locale_revision"].value(locale="land"),
          daemon.ok("GET", "/v1/locales/land")["revision"], "the revision")
    with Stream(daemon.port, "/v1/events"):
        during = scrape(daemon)
        equal(during["kota_streams"].value(), before["kota_streams"].value() + 1, "streams")
        if before["kota_open_files"].value():
            equal(during["kota_open_files"].value(),
                  len(os.listdir(f"/proc/{daemon.process.pid}/fd")), "files")
    equal(during["kota_start_time_seconds"].value(), before["kota_start_time_seconds"].value(),
          "the start")
    equal(during["kota_state"].value(state="ready"), 1, "ready")
    equal(during["kota_state"].total(), 1, "in one state")


@test("the revisions of a hundred locales are told, whatever their number")
def bounded():
    with Daemon() as other:
        for i in range(103):
            other.ok("PUT", f"/v1/locales/l{i:03}", {}, status=201)
        other.ok("DELETE", "/v1/locales/l001", status=204)
        families = scrape(other)
    told = [dict(labels)["locale"] for _, labels in families["kota_locale_revision"].samples]
    equal(told, [f"l{i:03}" for i in range(101) if i != 1], "locales")
    equal(families["kota_locales"].value(), 102, "locales in all")


@test("a reader that does not send its head is counted among the connections")
def connections():
    before = scrape(daemon)["kota_connections"].value()
    with socket.create_connection(("127.0.0.1", daemon.port)):
        # another loop may accept it
        wait_for("one more connection", lambda: scrape(daemon)["kota_connections"].value() == before + 1)


@test("nobody waits for a reader of the log that has stopped; it is told how much it missed")
def unread_log():
    log, end = os.pipe()
    port_file = os.path.join(data, "unread")
    process = subprocess.Popen([KOTAD, "--listen", "127.0.0.1:0", "--port-file", port_file, "--access-log"],
                               stderr=end, env=clean_environment())
    try:
        os.close(end)
        while not os.path.exists(port_file):
            check(process.poll() is None, "kotad has ended")
            time.sleep(0.01)
        port = int(open(port_file).read())
        connection = connection_to(port)
        for _ in range(1000):  # lines for a pipe of 64 KiB
            connection.request("GET", "/v1/locales")
            connection.getresponse().read()
        missing = parse(ask_once(port, "/metrics").body.decode())["kota_log_lines_dropped_total"].value()
        check(0 < missing < 1000, f"{missing} lines were dropped")
        text = os.read(log, 1 << 20).decode()
        check(text.endswith("\n") and "were dropped" not in text, f"the log ends with {text[-300:]!r}")
        ask_once(port, "/v1/locales")
        told = os.read(log, 1 << 20).decode()
        check(f'"{missing:.0f} log lines were dropped' in told, f"the log goes on with {told[:300]!r}")
    finally:
        os.close(log)
        process.terminate()
        equal(process.wait(HANG_S), 0, "exit status")


@test("what is wrong in Prometheus text is found")
def strict():
    head = "# HELP a_total x\n# TYPE a_total counter\n"
    parse(head + "a_total 1\n")
    for wrong in (head + "a_total 1", head + "a_total 1\na_total 2\n", head + "b_total 1\n",
                  head + 'a_total{b="x} 1\n', "# HELP a x\n# TYPE a counter\na 1\n",
                  "# HELP h x\n# TYPE h histogram\n" 'h_bucket{le="+Inf"} 2\nh_sum 1\nh_count 1\n'):
        try:
            parse(wrong)
        except Exception:
            continue
        check(False, f"not found: {wrong!r}")


if sys.argv[1:] == ["--write"]:
    with open(PAGE) as page_file:
        kept = page_file.read().partition(MARK)[0]
    with open(PAGE, "w") as page_file:
        page_file.write(kept + MARK + table(all_families()))
    finish()
else:
    run(finish)
