"""Limits that the operator sets: what goes over them, and that the rest goes on."""
import os
import re
import select
import socket
import subprocess

from daemon import KOTAD, ROOT, SLOW, Daemon, parse_answers, problem, receive
from tap import HANG_S, check, equal, run, test


def half_upload(daemon, declared, sent):
    """A connection on which a PUT of `declared` bytes has sent only some."""
    s = socket.create_connection(("127.0.0.1", daemon.port), timeout=HANG_S)
    s.sendall(b"PUT /v1/locales/land/layers/ground?spacing=1,1 HTTP/1.1\r\nHost: x\r\n"
              b"Content-Type: image/png\r\nContent-Length: %d\r\n\r\n" % declared)
    s.sendall(bytes(sent))
    return s


def read_answer(s):
    return parse_answers(receive(s))[0]


@test("bodies under way are bounded together: the one too much is 503 with Retry-After")
def _():
    with Daemon("--max-bodies", str(1 << 20)) as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        limits = daemon.ok("GET", "/v1/limits")
        equal(limits["bodies_bytes_max"], 1 << 20, "bodies_bytes_max")
        both = [half_upload(daemon, 1_000_000, 900_000) for _ in range(2)]
        refused = select.select(both, [], [], 60 * SLOW)[0]  # the one that was read second
        equal(len(refused), 1, "uploads that were answered")
        answer = read_answer(refused[0])
        problem(answer, 503, "1048576")
        check(int(answer.headers["retry-after"]) >= 1, f"Retry-After: {answer.headers}")
        for s in both:
            s.close()
        daemon.ok("GET", "/v1/locales/land")


# ---- every flag of a limit: /v1/limits tells it, and over it the answer names limit and got ---------

FLAGS = {
    "max-body": ("body_bytes_max", 2048), "max-bodies": ("bodies_bytes_max", 2 << 20),
    "max-answers": ("answers_bytes_max", 2 << 20), "max-json": ("json_bytes_max", 4096),
    "max-json-depth": ("json_depth_max", 9), "max-json-values": ("json_values_max", 10001),
    "max-items": ("items_max", 7), "max-binary-items": ("binary_items_max", 9),
    "max-items-in-flight": ("items_in_flight_max", 12345), "max-batch-ms": ("batch_ms_max", 77),
    "max-import-ms": ("import_ms_max", 88), "max-samples": ("raster_samples_max", 99),
    "max-edit-samples": ("edit_samples_max", 11), "max-uploads": ("uploads_bytes_max", 12345),
    "tile-cache": ("tile_cache_bytes_max", 54321), "light-cache": ("light_cache_bytes_max", 65432),
    "max-polygons": ("polygons_max", 13), "max-watches": ("watches_max", 5),
    "max-watch-items": ("watch_items_max", 321), "watch-linger-ms": ("watch_linger_ms", 4321),
    "max-locales": ("locales_max", 3), "max-models": ("models_max", 2),
    "max-queued-changes": ("queued_changes_max", 17), "max-world-bytes": ("world_bytes_max", 3 << 20),
    "max-connections": ("connections_max", 55), "max-streams": ("streams_max", 4),
    "max-connections-per-address": ("connections_per_address_max", 44),
    "max-target": ("target_bytes_max", 300), "max-header-bytes": ("header_bytes_max", 1500),
    "max-header-count": ("header_count_max", 12), "idle-ms": ("idle_ms", 31000),
    "header-ms": ("header_ms", 5100), "body-ms": ("body_ms", 5200), "write-ms": ("write_ms", 5300),
    "stream-silence-ms": ("stream_silence_ms", 5400),
    "max-queue-ms": ("queue_ms_max", 1500), "max-queued-requests": ("queued_requests_max", 66),
    "min-revision-wait-ms": ("min_revision_wait_ms", 150),
    "patches-fine": ("patches_fine_max", 2), "patches-medium": ("patches_medium_max", 1),
    "patches-coarse": ("patches_coarse_max", 2), "patch-granules": ("patch_granules_max", 1000),
    "patch-bodies": ("patch_bodies_max", 5), "patch-active": ("patches_active_max", 2),
    "patch-active-max-ms": ("patch_active_max_ms", 9000),
}
HEIGHTS = "/v1/locales/land/height"
F32 = "application/vnd.kota.f32"


@test("every flag of a limit is in /v1/limits with what it was set to")
def _():
    flags = [word for name, (_, value) in FLAGS.items() for word in (f"--{name}", str(value))]
    with Daemon("--gpu", "cpu", *flags) as daemon:
        limits = daemon.ok("GET", "/v1/limits")
        for name, (member, value) in FLAGS.items():
            equal(limits.get(member), value, f"--{name}: {member}")


@test("docs/limits.md has every limit once, with its flag and its default")
def _():
    with open(os.path.join(ROOT, "docs/limits.md")) as file:
        rows = re.findall(r"^\| `(\w+)` \| (?:`--([\w-]+)`|fixed) \| (\d+|null) \|[^|]+\|[^|]+\|$", file.read(), re.M)
    flags = subprocess.run([KOTAD, "--help=all"], capture_output=True, text=True, check=True).stdout
    with Daemon(env={"KOTA_MAX_QUEUE_MS": ""}) as daemon:
        limits = daemon.ok("GET", "/v1/limits")
    equal(sorted(member for member, _, _ in rows), sorted(limits), "members")
    for member, flag, default in rows:
        if not member.startswith("patch"):  # those of patches are the device's, if there is one
            equal(limits[member], int(default), f"the default of {member}")
        if flag:
            check(f"  --{flag} " in flags, f"{member}: there is no flag --{flag}")
    for flag, (member, _) in FLAGS.items():
        check((member, flag) in [row[:2] for row in rows], f"{member} is set by --{flag}")


@test("limits in ms are taken by their whole width and no further")
def _():
    with Daemon("--idle-ms", "86400000") as daemon:
        limits = daemon.ok("GET", "/v1/limits")
        equal((limits["idle_ms"], limits["header_ms"]), (86400000, 10000), "idle_ms, header_ms")


@test("over a limit: its status, and the document names limit and got")
def _():
    flags = [word for name in ("max-json", "max-items", "max-binary-items", "max-target",
                               "max-header-bytes", "max-header-count", "max-edit-samples",
                               "max-samples", "max-locales", "max-polygons", "max-json-depth")
             for word in (f"--{name}", str(FLAGS[name][1]))]
    with Daemon(*flags) as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        layer = "/v1/locales/land/layers/g?spacing=1,1&rows=2&cols="
        daemon.ok("PUT", layer + "20", bytes(160), status=201, media=F32)
        point = {"points": [[1, 1]] * 8}
        problem(daemon.post(HEIGHTS, point), 413, limit=7, got=8)
        problem(daemon.post(HEIGHTS, bytes(80), media=F32), 413, limit=9, got=10)
        problem(daemon.post(HEIGHTS, b" " * 4097, media="application/json"), 413, limit=4096,
                got=4097)
        problem(daemon.post(HEIGHTS, b"[" * 10 + b"]" * 10, media="application/json"), 400, limit=9,
                got=10)
        problem(daemon.get("/" + "a" * 300), 414, limit=300, got=301)
        problem(daemon.get("/livez", headers={"X": "a" * 1500}), 431, limit=1500)
        problem(daemon.get("/livez", headers={f"X-{i}": "1" for i in range(12)}), 431, limit=12,
                got=13)
        problem(daemon.post("/v1/locales/land/edits", {"rect": [0, 0, 12, 1], "op": "set",
                                                       "heights": [0] * 12}), 413, limit=11, got=12)
        problem(daemon.put(layer + "50", bytes(400), media=F32), 413, limit=99, got=100)
        faces = "v 0 0 0\nv 1 0 0\nv 0 1 0\n" + "f 1 2 3\n" * 14
        problem(daemon.put("/v1/locales/land/layers/m", faces, media="model/obj"), 413, limit=13)
        for name in ("b", "c"):
            daemon.ok("PUT", f"/v1/locales/{name}", {}, status=201)
        answer = daemon.put("/v1/locales/d", {})
        check(answer.status in (413, 422, 507), f"a fourth locale: {answer}")
        equal((answer.json.get("limit"), answer.json.get("got")), (3, 4), "limit and got")


@test("JSON nests as deep as its flag says, to the deepest that there is, and holds as many values")
def _():
    def height(daemon, note):
        body = b'{"points":[[1,1]],"note":' + note + b"}"
        return daemon.post(HEIGHTS, body, media="application/json")

    with Daemon("--max-json-depth", "512", "--max-json-values", "20000") as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        layer = "/v1/locales/land/layers/g?spacing=1,1&rows=2&cols=20"
        daemon.ok("PUT", layer, bytes(160), status=201, media=F32)
        # a member that nobody asks for: it is looked at only when the text was JSON
        problem(height(daemon, b"[" * 511 + b"]" * 511), 400, "note")
        problem(height(daemon, b'{"":' * 510 + b"[]" + b"}" * 510), 400, "note")
        problem(height(daemon, b"[" * 512 + b"]" * 512), 400, limit=512, got=513)
        problem(height(daemon, b"[" * 1000000), 400, limit=512, got=513)
        problem(height(daemon, b"[" + b"0," * 19993 + b"0]"), 400, "note")
        problem(height(daemon, b"[" + b"0," * 19994 + b"0]"), 413, limit=20000, got=20001)


@test("a head or a body that comes too slowly is 408; a connection that waits too long is closed")
def _():
    with Daemon("--header-ms", "300", "--body-ms", "300", "--idle-ms", "300") as daemon:
        for sent in (b"GET /livez HT", b"PUT /v1/locales/land HTTP/1.1\r\nHost: x\r\nContent-Type: "
                     b"application/json\r\nContent-Length: 9\r\n\r\n{"):
            problem(parse_answers(daemon.raw(sent))[0], 408)
        equal(daemon.raw(b""), b"", "an idle connection")


if __name__ == "__main__":
    run()
