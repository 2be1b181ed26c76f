"""client/python: every call against a real daemon, beside the raw HTTP answer; retries and feeds
through a forwarder that drops connections and against a stand-in server; its page; pip install.

The batches are asked with numpy (skipped without) and without it.
"""
import array
import ast
import inspect
import io
import itertools
import math
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

from daemon import F32, F64, JSON, ROOT, SLOW, Daemon
from schema import contract
from tap import HANG_S, Failure, Skip, case, check, equal, near_all, run, test

PACKAGE = os.path.join(ROOT, "client", "python")
PAGE = os.path.join(ROOT, "docs", "client-python.md")
GROUND = os.path.join(ROOT, os.environ.get("KOTA_BIN_DIR", "build/release"), "lib",
                      "libkota-ground.so.0")
sys.dont_write_bytecode = True
sys.path.insert(0, PACKAGE)
import kota  # noqa: E402
from kota import arrays  # noqa: E402

NUMPY = arrays.numpy
document = contract()
daemon = Daemon("--gpu", "cpu", "--patch-speed", "0", "--patches-fine", "0")
for request in document["x-kota-world"]:
    done = daemon.ask(request["method"], request["path"], request["body"],
                      media=request["content-type"])
    check(done.status in (200, 201), f"{request['path']}: {done}")


def client(url=None, **options):
    return kota.Client(url or daemon.url, **{"timeout_s": 60 * SLOW, **options})


world = client()


def fails(call, kind=kota.Error, status=None):
    """The error that call() raises."""
    try:
        call()
    except kind as error:
        if status is not None:
            equal(error.status, status, "status")
        return error
    raise Failure(f"no {kind.__name__}")


# ---- the contract --------------------------------------------------------------------------------

BROWSER = "a page for a browser"
BY_POST = "the method of the POST form asks the same"
NOT_OFFERED = {"index": BROWSER, "docs": BROWSER, "docsErrors": BROWSER, "web": BROWSER,
               "getElevation": BY_POST,
               "getDatasetElevation": BY_POST, "getContact": BY_POST, "getRay": BY_POST,
               "getLos": BY_POST, "getPick": BY_POST, "getView": BY_POST, "googleElevation": "for Google's own clients"}
# Methods beside the one that the rule names.
ALSO = {"height": ["height_batch"], "contact": ["contact_footprints", "contact_batch"],
        "ray": ["ray_batch"], "lit": ["lit_batch"], "contains": ["contains_batch"],
        "sweep": ["sweep_batch"], "move": ["move_batch"],
        "edit": ["edit_brush"]}
INSTEAD = {"datasetElevation": "elevation"}
OWN = {"call", "close"}


def operations():
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield path, operation, item.get("parameters", []) + operation.get("parameters", [])


def method_name(operation):
    """The operation's id in snake_case."""
    name = operation["operationId"]
    return INSTEAD.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@test("every operation has the method that the rule names, or a reason; there is no other method")
def _():
    expected = set(OWN)
    for _, operation, _ in operations():
        if operation["operationId"] not in NOT_OFFERED:
            expected |= {method_name(operation), *ALSO.get(operation["operationId"], [])}
    public = {name for name, _ in inspect.getmembers(kota.Client, inspect.isfunction)
              if name[0] != "_"}
    equal(sorted(public - expected), [], "methods of no operation")
    equal(sorted(expected - public), [], "operations without a method")
    ids = {operation["operationId"] for _, operation, _ in operations()}
    equal(sorted(set(NOT_OFFERED) - ids), [], "not offered, and not there")


def resolved(node):
    while "$ref" in node:
        target = document
        for part in node["$ref"].split("/")[1:]:
            target = target[part]
        node = target
    return node


@test("each option of an operation is an argument of its method, or in its description")
def _():
    for _, operation, parameters in operations():
        name = operation["operationId"]
        if name in NOT_OFFERED:
            continue
        methods = [getattr(kota.Client, one) for one in
                   [method_name(operation), *ALSO.get(name, [])]]
        text = " ".join(f"{method.__name__.replace('_', ' ')} {method.__doc__} "
                        f"{inspect.signature(method)}" for method in methods)
        options = {one["name"] for one in map(resolved, parameters)
                   if one["in"] == "query" and "Google" not in one["description"]}
        content = operation.get("requestBody", {}).get("content", {}).get(JSON, {})
        options |= set(resolved(content.get("schema", {})).get("properties", {}))
        if "compat" in operation["tags"]:
            options -= {"key", "language", "sensor", "client", "channel", "signature"}
        options -= set(re.findall(r"`(\w+)`", kota.Client.__doc__))  # those of many methods
        missing = [one for one in sorted(options) if not re.search(rf"\b{one}\b", text)]
        equal(missing, [], f"{name}: options that {[one.__name__ for one in methods]} do not name")


@test("every method, class and module has a description, every argument a type")
def _():
    for name in sorted(os.listdir(os.path.join(PACKAGE, "kota"))):
        if not name.endswith(".py"):
            continue
        with open(os.path.join(PACKAGE, "kota", name), encoding="utf-8") as source:
            tree = ast.parse(source.read(), feature_version=(3, 9))
        check(ast.get_docstring(tree), f"{name} has no description")
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_":
                check(ast.get_docstring(node) or node.name in ("json", "revision", "array", "text",
                                                               "left"), f"{name}: {node.name}")
            if isinstance(node, ast.FunctionDef):
                for one in node.args.args + node.args.kwonlyargs:
                    check(one.annotation or one.arg == "self", f"{name}: {node.name}: {one.arg}")


@test("the version is the daemon's; defaults are those of libkota")
def _():
    equal(kota.__version__, world.stats()["version"], "version")
    with open(os.path.join(ROOT, "client", "lib", "kota.h"), encoding="utf-8") as header:
        struct_text = header.read().partition("struct kota_options {")[2].partition("};")[0]
    defaults = {name: parameter.default for name, parameter in
                inspect.signature(kota.Client).parameters.items()}
    for name in ("timeout_s", "connect_timeout_s", "idle_s", "silence_s", "tries_max"):
        said = re.search(rf"{name};\s*/\*.*; (\d+) \*/", struct_text)
        equal(defaults[name], int(said[1]), name)
    check(f'"{defaults["url"]}" (default)' in struct_text, "url")


# ---- reads, beside the raw answer ---------------------------------------------------------------

HILLS, CROSSING = "/v1/locales/hills", "/v1/locales/crossing"
POINTS = [[12, 4, 5], [38, 8, 20], [99, 0, 0]]
RAYS = [{"origin": [5, 5, 20], "direction": [1, 1, -1]},
        {"origin": [12, 4, 50], "direction": [0, 0, -1], "t_max": 40}]
SEGMENTS = [{"from": [0, 14, 3], "to": [40, 14, 3]}]
CAMERA = {"eye": [20, -20, 30], "target": [20, 15, 0], "up": [0, 0, 1], "fov_y_deg": 60}
LIGHT = {"direction": [0, 0, -1]}
FEET = [[[12, 4, 5], [14, 4, 5], [12, 6, 5]]]
READS = [  # the call, the raw request, its body
    (lambda: world.livez(), "/livez", None),
    (lambda: world.healthz(), "/healthz", None),
    (lambda: world.readyz(), "/readyz", None),
    (lambda: world.openapi(), "/openapi.json", None),
    (lambda: world.calls(), "/v1", None),
    (lambda: world.limits(), "/v1/limits", None),
    (lambda: world.locales(), "/v1/locales", None),
    (lambda: world.locale("hills"), HILLS, None),
    (lambda: world.layer_stats("hills", "ground"), f"{HILLS}/layers/ground/stats", None),
    (lambda: world.diff("hills", 1), f"{HILLS}/diff?since=1", None),
    (lambda: world.get_height("hills", 12, 4), f"{HILLS}/height?x=12&y=4", None),
    (lambda: world.get_height("hills", 16, 18, interp="triangle", fields=["height", "normal", "cell"]),
     f"{HILLS}/height?x=16&y=18&fields=height,normal,cell", None),
    (lambda: world.height("hills", [[12, 4], [38, 8]], fields=["normal"], layer="ground"),
     f"{HILLS}/height", {"points": [[12, 4], [38, 8]], "fields": ["normal"], "layer": "ground"}),
    (lambda: world.profile("hills", [[0, 0], [32, 24]], samples=5), f"{HILLS}/profile",
     {"path": [[0, 0], [32, 24]], "samples": 5}),
    (lambda: world.contact("hills", POINTS), f"{HILLS}/contact", {"points": POINTS}),
    (lambda: world.contact("hills", POINTS, clearance=2, clearance_mode="exact"),
     f"{HILLS}/contact", {"points": POINTS, "clearance": 2, "clearance_mode": "exact"}),
    (lambda: world.contact_footprints("hills", FEET), f"{HILLS}/contact", {"footprints": FEET}),
    (lambda: world.ray("hills", RAYS, mode="closest"), f"{HILLS}/ray", {"rays": RAYS}),
    (lambda: world.los("hills", SEGMENTS), f"{HILLS}/los", {"segments": SEGMENTS}),
    (lambda: world.lit("crossing", POINTS[:1], LIGHT), f"{CROSSING}/lit",
     {"points": POINTS[:1], "light": LIGHT}),
    (lambda: world.pick("hills", [640, 480], [320, 240], camera=CAMERA), f"{HILLS}/pick",
     {"viewport": [640, 480], "pixel": [320, 240], "camera": CAMERA}),
    (lambda: world.contains("hills", POINTS), f"{HILLS}/contains", {"points": POINTS}),
    (lambda: world.locate(POINTS, hints=["hills", None, None]), "/v1/locate",
     {"points": POINTS, "hints": ["hills", None, None]}),
    (lambda: world.world_contact(POINTS), "/v1/contact", {"points": POINTS}),
    (lambda: world.world_contact(footprints=FEET), "/v1/contact", {"footprints": FEET}),
    (lambda: world.world_pick([64, 48], [32, 24], camera=CAMERA), "/v1/pick",
     {"viewport": [64, 48], "pixel": [32, 24], "camera": CAMERA}),
    (lambda: world.world_ray(RAYS, mode="any"), "/v1/ray", {"rays": RAYS, "mode": "any"}),
    (lambda: world.elevation([[47.2693, 11.4043]], dataset="hills", interpolation="nearest"),
     "/v1/compat/elevation/hills", {"locations": "47.2693,11.4043", "interpolation": "nearest"}),
    (lambda: world.elevation(path=[(47.2693, 11.4043), (47.2694, 11.4045)], samples=3),
     "/v1/compat/elevation", {"path": "47.2693,11.4043|47.2694,11.4045", "samples": 3}),
    (lambda: world.models(), "/v1/models", None),
    (lambda: world.patches("hills"), f"{HILLS}/patches", None),
    (lambda: world.call("GET", "/v1/locales/hills/height", x=12, y=4), f"{HILLS}/height?x=12&y=4",
     None),
]


def as_raw(call, target, body):
    raw = daemon.ask("GET" if body is None else "POST", target, body)
    answer = call()
    equal(raw.status, 200, f"{raw}")
    equal(answer.status, 200, "status")
    equal(answer.json, raw.json, "document")
    equal(dict(answer), raw.json, "as a mapping")
    equal(answer.headers["content-type"], raw.headers["content-type"], "headers")
    revision = raw.headers.get("kota-revision", raw.json.get("revision"))
    equal(answer.revision, None if revision is None else int(revision), "revision")


for number_, (call_, target_, body_) in enumerate(READS):
    case(f"read {number_}: {target_} is the raw answer", as_raw, call_, target_, body_)


class SmallPages(kota.Client):
    """A client whose usual page of the locales has one."""

    def call(self, method, path, /, **options):
        if path == "/v1/locales":
            options.setdefault("limit", 1)
        return super().call(method, path, **options)


@test("locales are listed page by page, with their layers only where asked for")
def _():
    listed = daemon.ok("GET", "/v1/locales")["locales"]
    full = daemon.ok("GET", "/v1/locales?layers=true")["locales"]
    check(len(listed) >= 3, f"{listed}")
    with SmallPages(daemon.url) as small:
        equal(small.locales().json, {"locales": listed, "next": None}, "all pages")
        equal(small.locales(layers=True)["locales"], full, "with layers")
    equal(world.locales(after=listed[0]["id"])["locales"], listed[1:], "after the first")
    one = world.locales(limit=1, after=listed[0]["id"])
    equal(one["locales"], listed[1:2], "one page")
    check(one["next"].startswith("/v1/locales?limit=1&after="), f"{one.json}")


@test("files, pictures, texts and counters come as they are")
def _():
    check("kota_" in world.metrics().body.decode(), "metrics")
    equal(sorted(world.stats()), sorted(daemon.ok("GET", "/v1/stats")), "members of stats")
    equal(world.layer("crossing", "ground").body, daemon.get(f"{CROSSING}/layers/ground").body,
          "obj")
    equal(world.layer("hills", "ground", format="png16").body[:4], b"\x89PNG", "png16")
    equal(world.model("tetrahedron").body, daemon.get("/v1/models/tetrahedron").body, "model")
    equal(world.tile("hills", 0, 0, 0, format="terrarium").body[:4], b"\x89PNG", "terrarium")
    tile = world.tile("hills", 0, 0, 0)
    equal(tile.body, daemon.get(f"{HILLS}/tiles/0/0/0?format=f32").body, "tile")
    equal(tile.shape, (257, 257), "shape")
    again = world.tile("hills", 0, 0, 0, if_none_match=tile.headers["ETag"])
    equal((again.status, again.body, bool(again)), (304, b"", True), "a tile that has not changed")
    fails(lambda: again.array, TypeError)
    fails(lambda: world.locale("hills").array, TypeError)
    fails(lambda: world.tile("hills", 0, 9, 9), status=404)


# ---- binary batches ------------------------------------------------------------------------------

ITEMS = {  # numbers of an item, a query, and the items
    "height": (2, "", [[12, 4], [38, 8], [33, 21.5], [99, 0]]),
    "contact": (3, "?reach_up=1", [[12, 4, 5], [12, 4, 0.7], [38, 8, 20], [-1, 0, 0]]),
    "ray": (7, "?mode=closest", [[5, 5, 20, 1, 1, -1, math.inf], [12, 4, 50, 0, 0, -1, 40]]),
    "lit": (3, "?direction=0,0,-1", [[12, 4, 5], [12, 4, 0]]),
    "contains": (3, "?base=1,2,0", [[12, 4, 5], [38, 8, 20], [-9, 0, 0]]),
}


def batch(name, items):
    more = {"height": {}, "contact": {"reach_up": 1}, "ray": {"mode": "closest"}, "lit": {},
            "contains": {"base": (1, 2, 0)}}[name]
    args = [LIGHT] if name == "lit" else []
    return getattr(world, f"{name}_batch")("hills", items, *args, **more)


def batches(numpy):
    """Each batch as f32 and f64, flat and by rows: the bytes of the raw answer, and its numbers."""
    arrays.numpy = numpy
    try:
        for name, (each, query, items) in ITEMS.items():
            flat = [number for item in items for number in item]
            for media, kind, size in ((F32, "f", 4), (F64, "d", 8)):
                sent = struct.pack(f"<{len(flat)}{kind}", *flat)
                raw = daemon.post(f"{HILLS}/{name}{query}", sent, media=media)
                equal(raw.status, 200, f"{name}: {raw}")
                wanted = (list(raw.body) if name in ("lit", "contains") else
                          list(struct.unpack(f"<{len(raw.body) // size}{kind}", raw.body)))
                forms = [array.array(kind, flat)]
                if numpy:
                    rows = numpy.array(items, dtype=kind)
                    forms += [rows, rows.reshape(-1), numpy.asfortranarray(rows), rows.tolist()]
                elif kind == "d":
                    forms += [items, flat, tuple(map(tuple, items)), iter(items)]
                for form in forms[:4] if kind == "f" else forms:
                    answer = batch(name, form)
                    equal(answer.body, raw.body, f"{name} {kind} {type(form)}")
                    equal(answer.revision, int(raw.headers["kota-revision"]), "revision")
                    equal(math.prod(answer.shape), len(wanted), f"shape {answer.shape}")
                    equal(answer.shape[0], len(items), "results")
                    got = answer.array
                    if numpy:
                        check(isinstance(got, numpy.ndarray), f"{type(got)}")
                        equal(got.shape, answer.shape, "shape of the array")
                        got = got.reshape(-1)
                    else:
                        check(isinstance(got, array.array), f"{type(got)}")
                    equal([str(one) for one in got.tolist()], [str(one) for one in wanted], name)
            fails(lambda: batch(name, flat[:-1]), ValueError)
            fails(lambda: batch(name, []), ValueError)
            fails(lambda: batch(name, [[0.0] * (each + 1)] * each), ValueError)
            fails(lambda: batch(name, [[0.0] * each, [0.0]]), ValueError)
        layer = world.layer("hills", "ground")
        near_all(layer.array.tolist()[0] if numpy else layer.array.tolist()[:5], [0, 0, 2, 4, 6],
                 "row 0")
        equal(layer.shape, (4, 5), "shape of a layer")
        equal(len(world.tile("hills", 0, 0, 0).array), 257 if numpy else 257 * 257, "tile")
    finally:
        arrays.numpy = NUMPY


@test("binary batches have the status")
def _():
    spots = [[12, 4, 5], [12, 4, 0], [38, 8, 9], [99, 0, 9], [12, 4, 99]]
    got = world.contact_batch("hills", spots, max_distance=50)
    equal(got.shape, (5, 6), "shape")
    numbers = struct.unpack("<30d", got.body)
    equal(numbers[5::6], (0, 1, 2, 3, 4), "status of contact")
    words = [item["status"] for item in world.contact("hills", spots, max_distance=50)["results"]]
    equal(words, ["ok", "below", "hole", "outside", "too_far"], "the same in words")
    got = world.height_batch("hills", [spot[:2] for spot in spots], status=True)
    equal((got.shape, struct.unpack("<10d", got.body)[1::2]), ((5, 2), (0, 0, 2, 3, 0)), "heights")
    equal(world.height_batch("hills", [[12, 4]], status=False).shape, (1,), "without")
    equal(world.contains_batch("hills", spots).body, bytes((3, 4, 8, 16, 3)), "contains")
    item = world.world_contact([[10, 10, -50]], hints=["atlantis"])["results"][0]
    equal((item["status"], item["locale"], item["hint"]), ("outside", None, "unknown"), "a hint")


@test("binary batches without numpy")
def _():
    batches(None)


@test("binary batches with numpy")
def _():
    if NUMPY is None:
        raise Skip("no numpy here")
    batches(NUMPY)
    points = NUMPY.array([[12.0, 4.0], [38.0, 8.0]])
    equal(world.height("hills", points).json, world.height("hills", points.tolist()).json,
          "JSON from numpy")
    equal(world.get_height("hills", *points[0]).json, world.get_height("hills", 12, 4).json, "numbers")


# ---- writes --------------------------------------------------------------------------------------


@test("locales, layers, edits, polygons and poses are written; conditions hold")
def _():
    made = world.put_locale("py", {"title": "From Python"}, if_new=True)
    equal((made.status, made.revision, made["title"]), (201, 1, "From Python"), "made")
    equal(world.put_locale("py").status, 200, "replaced")
    fails(lambda: world.put_locale("py", {}, if_new=True), status=412)
    fails(lambda: world.delete_locale("py", if_match=99), status=412)
    rows = [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, None, 5]]
    layer = world.put_layer("py", "ground", rows, spacing=2, origin=(1, 2))
    equal([layer["layers"][0][name] for name in ("cols", "rows", "spacing", "origin")],
          [4, 3, [2, 2], [1, 2]], "the layer")
    equal(world.get_height("py", 5, 6)["status"], "hole", "None is a hole")
    if NUMPY:
        samples = NUMPY.arange(12, dtype="f8").reshape(3, 4)[:, ::-1]
        world.put_layer("py", "ground", samples, spacing=(2, 2), if_match="*")
        check((world.layer("py", "ground").array == samples).all(), "samples of numpy")
        world.put_layer("py", "ground", rows, spacing=(2, 2), origin=(1, 2))
    fails(lambda: world.put_layer("py", "ground", [[1, 2], [3]], spacing=1), ValueError)
    before = world.locale("py").revision
    edit = world.edit("py", (0, 0, 2, 1), [[7, None]], layer="ground")
    equal((edit.revision, edit["rect"]), (before + 1, [0, 0, 2, 1]), "an edit")
    equal(world.get_height("py", 1, 2, interp="nearest")["height"], 7, "the edited sample")
    equal(world.get_height("py", 3, 2, min_revision=edit.revision)["status"], "hole", "the hole")
    added = world.edit("py", (0, 0, 1, 1), array.array("f", [1]), op="add",
                            if_match=edit.revision)
    equal(world.get_height("py", 1, 2, interp="nearest")["height"], 8, "added")
    brush = world.edit_brush("py", "raise", (5, 4), 1.5, 0.5, layer="ground")
    equal(brush.revision, added.revision + 1, "a brush")
    key = {"idempotency_key": "py-twice"}
    first = world.edit("py", (0, 0, 1, 1), [1], op="add", **key)
    second = world.edit("py", (0, 0, 1, 1), [1], op="add", **key)
    equal((second.json, second.headers["Idempotency-Replayed"]), (first.json, "true"), "a repeat")
    mesh = "v 0 0 1\nv 4 0 1\nv 4 4 1\nv 0 4 1\nf 1 2 3 4\n"
    for form in (mesh, mesh.encode(), io.BytesIO(mesh.encode())):
        put = world.put_layer("py", "plank", form, "model/obj", role="ground")
        equal(put["layers"][1]["kind"], "mesh", "a mesh")
    changed = world.polygons("py", "plank", [[[4, 0, 1], [6, 0, 1], [6, 4, 1]]], remove=[0])
    equal((changed["added"], changed["removed"]), ([1], [0]), "polygons")
    step = "v 0 0 1\nv 1 0 1\nv 0 1 1\nf 1 2 3\n"
    changed = world.polygons("py", "plank", step, remove=[1], scale=2, strict=True)
    equal((changed["added"], changed["removed"]), ([2], [1]), "polygons of a file")
    moved = world.put_transform("py", "plank", [0, 0, 3], yaw_deg=90)
    equal(moved["layers"][1]["transform"], {"translation": [0, 0, 3], "yaw_deg": 90}, "a pose")
    equal(world.delete_layer("py", "plank").status, 204, "a layer")
    gone = world.delete_locale("py")
    equal((gone.status, gone.json, gone.revision > 0), (204, None, True), "a locale")
    fails(lambda: world.locale("py"), status=404)


@test("models, and a patch of sand with its feed, picture and surface")
def _():
    box = document["x-kota-world"][-1]["body"]
    equal(world.put_model("py-box", box).status, 201, "a model")
    check("py-box" in [one["id"] for one in world.models()["models"]], "it is listed")
    equal(world.delete_model("py-box").status, 204, "deleted")
    made = world.post_patch("beach", {"center": [5, 2.5], "size": [4, 4], "scale": "coarse"})
    n = made["id"]
    check(n in [one["id"] for one in world.patches("beach")["patches"]], "it is listed")
    states = []
    with world.patch_events("beach", n, since=0) as feed:
        for event in feed:
            if event.name == "state":
                states.append(event.data["state"])
                if event.data["state"] == "active":
                    break
    check("active" in states, f"states {states}")
    body = world.post_patch_body("beach", n, {"model": "tetrahedron", "position": [5, 2.5, 2]})
    pushed = world.patch_patch_body("beach", n, body["body"] if "body" in body else 0,
                                    {"velocity": [0, 0, -1]})
    equal(pushed.status, 200, "a push")
    equal(world.delete_patch_body("beach", n, 0)["bodies"], [], "bodies after one is removed")
    try:
        equal(world.view("hills", CAMERA, size=[32, 24]).body[:4], b"\x89PNG", "a view")
    except kota.Error as error:
        equal(error.status, 503, "without OpenGL")
    equal(world.patch_view("beach", n, width=64, height=48).body[:4], b"\x89PNG", "picture")
    surface = world.patch_surface("beach", n, per_cell=2)
    equal(",".join(map(str, surface.shape[::-1])), surface.headers["Kota-Grid"], "surface")
    equal(math.prod(surface.shape) * 4, len(surface.body), "samples of the surface")
    granules = world.patch_granules("beach", n)
    equal(len(granules.body), 36 * int(granules.headers["Kota-Granules"]), "granules")
    step = int(granules.headers["Kota-Step"])
    equal(len(world.patch_granules("beach", n, since=step).body) % 40, 0, "granules that moved")
    with world.patch_events("beach", n, granules=20) as feed:
        frame = next(event.data["granules"] for event in feed if event.name == "granules")
        equal([frame[0], len(frame) % 16], [1, 0], "a frame of granules")
    feed = world.patch_events("beach", n)
    world.delete_patch("beach", n, discard=True)
    equal(list(feed)[-1].data["state"], "discarded", "the feed ends with the patch")
    equal(world.patch("beach", n)["state"], "discarded", "state")


# ---- errors --------------------------------------------------------------------------------------


@test("a problem document becomes an Error with its members")
def _():
    error = fails(lambda: world.locale("atlantis"), status=404)
    equal(error.title, "Unknown locale", "title")
    equal(error.code, "locale_unknown", "code")
    check("atlantis" in error.detail and "atlantis" in str(error), f"{error}")
    error = fails(lambda: world.height("hills", [[1, 2, 3]]), status=400)
    equal(error.errors[0]["pointer"], "/points/0", "pointer")
    equal(error.problem, daemon.post(f"{HILLS}/height", {"points": [[1, 2, 3]]}).json, "document")
    error = fails(lambda: world.get_height("hills", 1, 2, nonsense=3), status=400)
    check("nonsense" in str(error), f"{error}")
    error = fails(lambda: world.elevation("nonsense"), status=400)
    check(error.detail and not error.errors, "an error in another shape")
    once = client(tries_max=1)
    error = fails(lambda: once.get_height("hills", 1, 2, min_revision=10**6), status=503)
    check(error.retry_after_s is not None, "Retry-After")
    error = fails(lambda: world.height_batch("hills", [[0.0, 0.0]] * 1_000_001), status=413)
    check(error.problem["got"] > error.problem["limit"], f"{error.problem}")
    fails(lambda: world.contact("hills", [[float("nan"), 0, 0]]), ValueError)
    fails(lambda: world.contact("hills", {1, 2}), TypeError)
    fails(lambda: kota.Client("127.0.0.1:7420"), ValueError)
    fails(lambda: world.call("GET", "/v1/a b"), ValueError)
    fails(lambda: world.locale("hills", if_none_match="a\nb: c"), ValueError)
    equal(world.locale("hills")["id"], "hills", "the connection is good afterwards")


@test("an id is one segment of the path, whatever is in it")
def _():
    for name in ("a/b", "a b", "a?b", "é", "..", "a%2Fb"):
        error = fails(lambda: world.locale(name))
        check(error.status in (400, 404), f"{name}: {error.status}")


# ---- connections ---------------------------------------------------------------------------------


class Server:
    """A stand-in that plays its script, one entry a request, and keeps the requests in `asked`.

    An entry is the bytes of an answer, None (the connection is closed without one), or seconds of
    silence before that.
    """

    def __init__(self, *script):
        self.script, self.asked, self.connections, self.closed = list(script), [], 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve_one, args=(peer,), daemon=True).start()

    def serve_one(self, peer):
        with peer, peer.makefile("rb") as reader:
            while self.one(peer, reader):
                pass
        self.closed += 1

    def one(self, peer, reader):
        line = reader.readline().decode().split()
        if not line:
            return False
        headers = {}
        while (field := reader.readline().decode().strip()):
            name, _, value = field.partition(":")
            headers[name.lower()] = value.strip()
        body = reader.read(int(headers.get("content-length", 0)))
        self.asked.append((line[0], line[1], headers, body))
        step = self.script.pop(0) if self.script else answer_bytes()
        if isinstance(step, (int, float)):
            time.sleep(step)
        if not isinstance(step, bytes):
            return False
        peer.sendall(step)
        return b"onnection: close" not in step and b"CUT" not in step

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop(self.listener)


def stop(listener):
    """Closes it, also while a thread accepts."""
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def answer_bytes(status=200, body=b'{"revision": 7}', *headers, length=None):
    length = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status} OK", f"Content-Length: {length}", "Content-Type: application/json",
             *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def kinds(server):
    return [f"{method} {path}" for method, path, _, _ in server.asked]


@test("a read is sent again when the connection breaks, a write under the same key")
def _():
    with Server(None, answer_bytes(), None, None, answer_bytes()) as server:
        there = client(server.url)
        equal(there.locale("x").revision, 7, "answer")
        equal(kinds(server), ["GET /v1/locales/x"] * 2, "requests")
        there.edit("x", (0, 0, 1, 1), [1])
        there.edit("x", (0, 0, 1, 1), [1])
        keys = [headers["idempotency-key"] for _, _, headers, _ in server.asked[2:]]
        equal(len(set(keys[:3])), 1, "keys of one write")
        check(keys[3] != keys[0] and len(keys[0]) >= 16, "each write has a key of its own")
        equal(server.asked[2][3], struct.pack("<f", 1), "body")
    with Server(answer_bytes(body=b'{"a":', length=99) + b"CUT", answer_bytes()) as server:
        equal(client(server.url).locale("x").revision, 7, "after a cut body")


@test("what may not be repeated is sent once; tries_max bounds the rest")
def _():
    with Server(None) as server:
        error = fails(lambda: client(server.url).put_transform("x", "y", [0, 0, 0]),
                      kota.Unreachable)
        equal((error.status, error.was_sent, len(server.asked)), (0, True, 1), "a pose")
        check("idempotency-key" not in server.asked[0][2], "a pose has no key")
    with Server(*[None] * 9) as server:
        fails(lambda: client(server.url, tries_max=2).locale("x"), kota.Unreachable)
        equal(len(server.asked), 2, "tries")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = fails(lambda: client(f"http://127.0.0.1:{port}", tries_max=2).put_transform(
        "x", "y", [0, 0, 0]), kota.Unreachable)
    equal(error.was_sent, False, "nobody listens")


@test("429 and 503 are waited for when the daemon says how long, within the time-out")
def _():
    busy = answer_bytes(503, b'{"status": 503, "title": "x", "detail": "y"}', "Retry-After: 0")
    with Server(busy, busy, answer_bytes()) as server:
        equal(client(server.url).put_locale("x").revision, 7, "the third try")
        equal(len(server.asked), 3, "tries")
    with Server(busy) as server:
        fails(lambda: client(server.url).readyz(), status=503)
        equal(len(server.asked), 1, "not ready is an answer")
    late = answer_bytes(429, b'{"status": 429, "title": "x", "detail": "y"}', "Retry-After: 3600")
    with Server(late, answer_bytes(503, b"<html>", "X: y")) as server:
        error = fails(lambda: client(server.url).locale("x"), status=429)
        equal((error.retry_after_s, len(server.asked)), (3600, 1), "later than the time-out")
        error = fails(lambda: client(server.url).locale("x"), status=503)
        equal((error.retry_after_s, "html" in error.detail), (None, True), "a proxy's page")


@test("a call ends within its time, and the connection is good afterwards")
def _():
    with Server(60, answer_bytes()) as server:
        there = client(server.url)
        start = time.monotonic()
        fails(lambda: there.locale("x", timeout_s=0.3), kota.Timeout)
        check(time.monotonic() - start < 60, "it took too long")
        equal(there.locale("x").revision, 7, "the next call")


@test("one connection a thread is kept; one that the daemon has closed costs no try")
def _():
    with Server() as server:
        there = client(server.url, tries_max=1)
        for _ in range(5):
            there.locale("x")
        equal(server.connections, 1, "connections")
        headers = server.asked[0][2]
        equal(headers["user-agent"], f"kota-python/{kota.__version__}", "User-Agent")
        check("authorization" not in headers, "no token")
    closing = answer_bytes(200, b"{}", "Connection: close")
    silent = answer_bytes(200, b'"CUT"')  # closed without a word
    with Server(closing, silent, answer_bytes(), None) as server:
        there = client(server.url, tries_max=1, token="secret")
        for closed in (1, 2, 2):
            there.put_transform("x", "y", [0, 0, 0])
            deadline = time.monotonic() + HANG_S
            while server.closed < closed:
                check(time.monotonic() < deadline, f"{server.closed} connections are closed")
                time.sleep(0.01)
        equal(server.asked[0][2]["authorization"], "Bearer secret", "token")
        there.locale("x")
        equal(len(server.asked), 5, "requests")
    with Server() as server:
        there = client(server.url, idle_s=0)
        there.locale("x")
        there.close()
        there.locale("x")
        equal(server.connections, 2, "an idle connection is not used again")
    results, errors = [], []

    def ask(x):
        try:
            results.extend(world.get_height("hills", x, 4)["height"] for _ in range(50))
        except Exception as error:  # reported below
            errors.append(error)
    threads = [threading.Thread(target=ask, args=(x,)) for x in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    equal((errors, len(results)), ([], 200), "four threads")


class Forwarder:
    """Bytes to the daemon and back, through TLS where a context is given; drop() cuts all lines."""

    def __init__(self, context=None):
        self.context, self.pairs, self.is_open = context, [], True
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
                if not self.is_open:
                    peer.close()
                    continue
                if self.context:
                    peer = self.context.wrap_socket(peer, server_side=True)
            except ssl.SSLError:
                continue
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", daemon.port))
            self.pairs.append((peer, there))
            for source, target in ((peer, there), (there, peer)):
                threading.Thread(target=self.copy, args=(source, target), daemon=True).start()

    @staticmethod
    def copy(source, target):
        try:
            while got := source.recv(1 << 16):
                target.sendall(got)
        except (OSError, ValueError):
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def drop(self):
        for pair in self.pairs:
            for one in pair:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.drop()
        stop(self.listener)


def through(forwarder):
    return client(f"http://127.0.0.1:{forwarder.port}")


@test("https, with a certificate that is trusted and one that is not")
def _():
    if not shutil.which("openssl"):
        raise Skip("no openssl")
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        key, certificate = os.path.join(folder, "key"), os.path.join(folder, "crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
                        "-out", certificate, "-days", "1", "-subj", "/CN=kota", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        with Forwarder(context) as forwarder:
            url = f"https://127.0.0.1:{forwarder.port}"
            there = client(url, context=ssl.create_default_context(cafile=certificate))
            for _ in range(3):
                equal(there.get_height("hills", 12, 4)["height"], 1.2, "over TLS")
            equal(len(forwarder.pairs), 1, "connections")
            error = fails(lambda: client(url, tries_max=1).locale("hills"), kota.Unreachable)
            check("certificate" in str(error).lower(), f"{error}")


# ---- events --------------------------------------------------------------------------------------


def yard(name):
    world.put_locale(name)
    world.put_layer(name, "ground", [[0, 0], [0, 0]], spacing=1)


def after(feed, count=1):
    """The next events; a failure when they do not come."""
    timer = threading.Timer(60 * SLOW, feed.close)
    timer.start()
    try:
        events = list(itertools.islice(feed, count))
    finally:
        timer.cancel()
    equal(len(events), count, "events within a minute")
    return events


def dig(name, height=1):
    return world.edit(name, (0, 0, 1, 1), [height])


@test("a feed replays since a revision, then delivers changes as they happen, until the deletion")
def _():
    yard("feed")
    feed = world.locale_events("feed", since=0)
    equal([(event.name, event.id, event.data["source"]) for event in after(feed, 2)],
          [("edit", "1", "manifest"), ("edit", "2", "layer")], "what was before")
    edit = dig("feed")
    event = after(feed)[0]
    equal((event.data["revision"], event.data["rect"]), (edit.revision, [0, 0, 1, 1]), "an edit")
    world.delete_locale("feed")
    equal([event.data["source"] for event in feed], ["delete"], "the end")
    fails(lambda: world.locale_events("feed"), status=404)
    event = after(world.locale_events("hills", since=999999999))[0]
    equal((event.name, event.data["locale"]), ("resync", "hills"), "a gap")


@test("a feed of bounds and a layer brings the samples that changed; an id without data counts")
def _():
    yard("part")
    with world.locale_events("part", bounds=(0, 0, 9, 9), layer="ground", samples="f32") as feed:
        edit = world.edit("part", (0, 0, 1, 2), [1.5, None])
        event = after(feed)[0]
        equal((event.id, event.data["rect"]), (str(edit.revision), [0, 0, 1, 2]), "the event")
        samples = [one for row in event.data["samples"] for one in (row if hasattr(row, "__len__") else [row])]
        equal((len(samples), samples[0], samples[1] == samples[1]), (2, 1.5, False), "samples")
    fails(lambda: world.locale_events("part", bounds=(1, 0, 0, 1)), status=400)
    stream = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
              b"retry: 50\r\n\r\nid: 7\n\n")
    with Server(stream, answer_bytes(404, b"{}")) as server:
        fails(lambda: after(client(server.url).locale_events("x", since=3)), status=404)
        equal([headers.get("last-event-id") for _, _, headers, _ in server.asked], ["3", "7"], "Last-Event-ID")
    window = world.samples("part", "ground", (0, 0, 1, 2))
    flat = [one for row in window.array for one in (row if hasattr(row, "__len__") else [row])]
    equal((flat[0], flat[1] == flat[1], window.headers["Kota-Rect"]), (1.5, False, "0,0,1,2"), "a window")
    equal(world.samples("part", "ground", step=2, format="json")["samples"], [1.5], "json")


@test("a feed goes on after the last event over a lost connection")
def _():
    yard("lost")
    with Forwarder() as forwarder:
        with through(forwarder).locale_events("lost") as feed:
            revisions = [dig("lost").revision]
            seen = [after(feed)[0].data["revision"]]
            with through(forwarder).locale_events("lost") as silent:
                forwarder.is_open = False
                forwarder.drop()
                revisions += [dig("lost", n).revision for n in (2, 3, 4)]
                threading.Timer(0.5, lambda: setattr(forwarder, "is_open", True)).start()
                seen += [event.data["revision"] for event in after(feed, 3)]
                equal(seen, revisions, "revisions, none missed and none twice")
                equal([event.data["revision"] for event in after(silent, 3)], revisions[1:],
                      "of a feed that had no event before")


@test("the feed of all locales says resync where it cannot know what was missed")
def _():
    yard("all")
    with Forwarder() as forwarder:
        with through(forwarder).events() as feed:
            forwarder.drop()
            equal(after(feed), [kota.Event("resync", {}, "")], "after a loss without an event")
            edit = dig("all")
            event = after(feed)[0]
            equal((event.data["locale"], event.data["revision"]), ("all", edit.revision), "an edit")
            forwarder.drop()
            edit = dig("all", 2)
            event = after(feed)[0]
            equal((event.name, event.data["revision"]), ("edit", edit.revision), "by its sequence")
    equal(after(world.events(since=0))[0].id, "1", "from the start")


@test("silence counts as a loss; refusals and a first failure are raised; close() ends a wait")
def _():
    stream = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
              b"retry: 50\r\n\r\n: kota\n\nevent: edit\nid: 5\ndata: {\"revision\":\ndata: 5}\n\n")
    gone = answer_bytes(404, b'{"status": 404, "title": "Not found", "detail": "gone"}')
    with Server(stream, stream + b"data: cut", 0.5, gone) as server:
        feed = client(server.url, silence_s=0.3).locale_events("x", since=3)
        equal([event.data for event in after(feed, 2)], [{"revision": 5}] * 2, "data of two lines")
        equal(fails(lambda: after(feed), status=404).detail, "gone", "refused")
        equal([headers.get("last-event-id") for _, _, headers, _ in server.asked],
              ["3", "5", "5", "5"], "Last-Event-ID")
    fails(lambda: client(server.url, connect_timeout_s=1).events(), kota.Unreachable)
    feed = world.events()
    threading.Timer(0.3, feed.close).start()
    equal([event for event in feed if event.name == "never"], [], "closed from another thread")


# ---- the page ---------------------------------------------------------------------


def page_output(numpy):
    """What the blocks of the page print, and what their comments say that they print."""
    with open(PAGE, encoding="utf-8") as page:
        blocks = re.findall(r"```python\n(.*?)```", page.read(), re.S)
    text = "\n".join(blocks)
    wanted = [line.partition("  # ")[2] for line in text.splitlines()
              if re.match(r"\s*print\(", line)]
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        own = Daemon()
        try:
            program = os.path.join(folder, "page.py")
            with open(program, "w", encoding="utf-8") as script:
                script.write("" if numpy else "import sys\nsys.modules['numpy'] = None\n")
                script.write(text.replace("http://127.0.0.1:7420", own.url))
            done = subprocess.run([sys.executable, program], capture_output=True, text=True,
                                  timeout=HANG_S, env={**os.environ, "PYTHONPATH": PACKAGE,
                                                          "KOTA_GROUND_LIBRARY": GROUND})
        finally:
            own.stop()
    check(done.returncode == 0, done.stderr[-3000:])
    return done.stdout.splitlines(), wanted


@test("docs/client-python.md: its blocks print what it says")
def _():
    for numpy in (False, True) if NUMPY else (False,):
        said, wanted = page_output(numpy)
        check(len(wanted) >= 8, f"{wanted}")
        equal(said, wanted, "output")


def finish():
    world.close()
    daemon.stop()


run(finish=finish)
