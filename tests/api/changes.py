"""Changes of every kind in random order, the questions about what they leave, and how two answers differ."""
import contextlib
import random as random_module
import sqlite3
import struct
import time

from ground import hills, random_edit
from mesh_oracle import obj, random_soup
from tap import HANG_S, check

LOCALES, LAYERS, MODELS = ("a", "b", "c"), ("ground", "roof", "bridge", "x"), ("crate", "cone")
CORNERS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
TETRAHEDRON = obj([[CORNERS[i] for i in face] for face in ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2))])
# Of a mesh whose tree was built again meanwhile: its memory and the tree itself.
MAY_DIFFER = {"memory_bytes", "bytes", "bytes_by_structure", "depths", "nodes", "leaves", "depth", "average_tests"}


# ---- changes --------------------------------------------------------------------------------------


class World:
    """What there is, as far as choosing the next change needs it."""

    def __init__(self, seed):
        self.random = random_module.Random(seed)
        self.locales = {}  # id -> {layer: Ground of a heightfield, or the highest polygon number}

    def layer(self, is_mesh):
        """(locale, layer) of a kind, or None."""
        found = [(locale, layer) for locale, layers in self.locales.items()
                 for layer, value in layers.items() if isinstance(value, int) == is_mesh]
        return self.random.choice(found) if found else None

    def change(self, client):
        kinds = (self.put_locale, self.put_field, self.put_mesh, self.drop_layer, self.drop_locale,
                 self.edit, self.polygons, self.move, self.put_model, self.drop_model)
        weights = (3, 3, 4, 1.5, 0.5, 8, 8, 6, 1, 0.5)
        self.random.choices(kinds, weights)[0](client)

    def manifest(self):
        r = self.random
        members = {"title": r.choice(("", "Fünf \u2603", "t%d" % r.randrange(9))),
                   "open_sky": r.random() < 0.5,
                   "triangulation": r.choice(("anti", "main", "alternating")),
                   "gravity": r.choice(([0, 0, -1], [0, 0, -9.81], [0.6, 0, -0.8], [0.1, 0.2, -0.9])),
                   "placement": {"translation": [r.uniform(-1e6, 1e6) for _ in range(3)]},
                   "geo": {"lat": r.uniform(-80, 80), "lng": r.uniform(-180, 180)}}
        some = {name: value for name, value in members.items() if r.random() < 0.6}
        if "gravity" in some and some["gravity"][0] and r.random() < 0.6:
            del some["gravity"]  # heights need one that is vertical
        return some

    def put_locale(self, client):
        locale = self.random.choice(LOCALES)
        answer = client.ask("PUT", f"/v1/locales/{locale}", self.manifest())
        check(answer.status in (200, 201, 422), f"PUT of {locale}: {answer}")
        if answer.status == 201:
            self.locales[locale] = {}

    def place(self):
        return (self.random.choice(list(self.locales)), self.random.choice(LAYERS)) \
            if self.locales else (None, None)

    def put_field(self, client):
        locale, layer = self.place()
        if not locale:
            return
        r = self.random
        side = r.choice((3, 20, 64, 300))
        ground = hills(r, side, r.choice((2, 17, side)), (r.choice((0.3, 1.0)), 1.7),
                       (r.uniform(-9, 9), 5.7), r.choice((0, 0.02)))
        answer = client.ask("PUT", f"/v1/locales/{locale}/layers/{layer}?{ground.query()}",
                            ground.body(), media="application/vnd.kota.f32")
        check(answer.status in (200, 201, 422), f"PUT of a heightfield: {answer}")
        if answer.status != 422:
            self.locales[locale][layer] = ground

    def put_mesh(self, client):
        locale, layer = self.place()
        if not locale:
            return
        r = self.random
        rings = random_soup(r, r.choice((1, 30, 700)))
        query = r.choice(("", "?role=ceiling", "?scale=0.5", "?frame=spherical&gravity=in"))
        answer = client.ask("PUT", f"/v1/locales/{locale}/layers/{layer}{query}", obj(rings),
                            media="model/obj")
        check(answer.status in (200, 201, 422), f"PUT of a mesh: {answer}")
        if answer.status != 422:
            self.locales[locale][layer] = len(rings)

    def drop_layer(self, client):
        found = self.layer(self.random.random() < 0.5)
        if found:
            answer = client.ask("DELETE", "/v1/locales/%s/layers/%s" % found)
            check(answer.status == 204, f"DELETE of a layer: {answer}")
            del self.locales[found[0]][found[1]]

    def drop_locale(self, client):
        if self.locales:
            locale = self.random.choice(list(self.locales))
            answer = client.ask("DELETE", f"/v1/locales/{locale}")
            check(answer.status == 204, f"DELETE of a locale: {answer}")
            del self.locales[locale]

    def edit(self, client):
        found = self.layer(False)
        if found:
            ground = self.locales[found[0]][found[1]]
            answer = client.edit(random_edit(self.random, ground, 24, ("raise", "crater", "smooth")),
                                 *found, binary=self.random.random() < 0.5)
            check(answer.status in (200, 422), f"an edit: {answer}")

    def polygons(self, client):
        found = self.layer(True)
        if not found:
            return
        r, most = self.random, self.locales[found[0]][found[1]]
        body = {"polygons": random_soup(r, r.choice((0, 1, 20))),
                "remove": sorted({r.randrange(most) for _ in range(r.choice((0, 0, 1, 3, 200)))})}
        if not body["polygons"] and not body["remove"]:
            return
        answer = client.ask("POST", "/v1/locales/%s/layers/%s/polygons" % found, body)
        check(answer.status in (200, 422), f"polygons: {answer}")
        if answer.status == 200:
            self.locales[found[0]][found[1]] = most + len(body["polygons"])

    def move(self, client):
        found = self.layer(True)
        if found:
            r = self.random
            body = {"translation": [r.uniform(-50, 50) for _ in range(3)],
                    "yaw_deg": r.choice((0, 90, r.uniform(-180, 180)))}
            answer = client.ask("PUT", "/v1/locales/%s/layers/%s/transform" % found, body)
            check(answer.status in (200, 422), f"a move: {answer}")

    def put_model(self, client):
        name = self.random.choice(MODELS)
        answer = client.ask("PUT", f"/v1/models/{name}", TETRAHEDRON, media="model/obj")
        check(answer.status in (200, 201), f"PUT of a model: {answer}")

    def drop_model(self, client):
        answer = client.ask("DELETE", f"/v1/models/{self.random.choice(MODELS)}")
        check(answer.status in (204, 404), f"DELETE of a model: {answer}")


# ---- everything that can be read --------------------------------------------------------------------


def questions(random, document):
    """(name, method, target, body) of one locale; the same for the same document."""
    base = f"/v1/locales/{document['id']}"
    box = document["bounds"] or {"min": (0, 0, 0), "max": (1, 1, 1)}
    points = [[random.uniform(a - 1, b + 1) for a, b in zip(box["min"], box["max"])]
              for _ in range(60)]
    rays = [{"origin": a, "direction": [q - p for p, q in zip(a, b)]}
            for a, b in zip(points, points[1:])]
    yield "GET", base, None
    yield "GET", f"{base}/diff?since={max(1, document['revision'] - 5)}", None
    yield "POST", base + "/contact", {"points": points, "reach_up": 3}
    yield "POST", base + "/ray", {"rays": rays}
    yield "POST", base + "/los", {"segments": [{"from": a, "to": b} for a, b in zip(points, points[1:])]}
    yield "POST", base + "/lit", {"points": points, "light": {"direction": [0.3, 0.2, -0.8]}}
    yield "POST", base + "/contains", {"points": points}
    yield "POST", base + "/height", {"points": [p[:2] for p in points],
                                     "fields": ["height", "normal", "cell"]}
    yield "POST", base + "/profile", {"path": [p[:2] for p in points[:5]], "samples": 50}
    yield "GET", f"{base}/tiles/0/0/0?format=f32", None
    for layer in document["layers"]:
        at = f"{base}/layers/{layer['id']}"
        yield "GET", at, None
        yield "GET", at + "/stats", None
        if layer["kind"] == "heightfield":
            yield "GET", at + "?format=obj", None
            yield "GET", f"{base}/tiles/1/0/0?format=f32&kind=max&layer={layer['id']}", None


def without_moves(seen):
    """What is left of a portrait after kill -9: transform_seq may then go on from a greater number."""
    if isinstance(seen, dict):
        return {name: seen[name].split(".")[0] if name == "etag" and seen[name] else
                without_moves(seen[name]) for name in seen if name != "transform_seq"}
    return [without_moves(one) for one in seen] if isinstance(seen, list) else seen


def differences(before, after, path=""):
    """Paths at which two documents differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            if name in MAY_DIFFER:
                continue
            yield from differences(before.get(name), after.get(name), f"{path}/{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (a, b) in enumerate(zip(before, after)):
            yield from differences(a, b, f"{path}/{i}")
    elif before != after:
        yield f"{path}: {str(before)[:200]} before, {str(after)[:200]} after"


def wait_for_poses(daemon, data):
    """Until every pose that is answered is in the store."""
    deadline = time.monotonic() + HANG_S
    while True:
        wanted = {}
        for locale in LOCALES:
            answer = daemon.get(f"/v1/locales/{locale}")
            for layer in answer.json["layers"] if answer.status == 200 else ():
                if "transform" in layer:
                    pose = layer["transform"]
                    wanted[locale, layer["id"]] = (*pose["translation"], pose["yaw_deg"])
        with contextlib.closing(sqlite3.connect(f"file:{data}/kota.db?mode=ro", uri=True)) as store:
            rows = {(locale, layer): struct.unpack("<4d", pose) for locale, layer, pose in
                    store.execute("SELECT locale, layer, pose FROM pose")}
        missing = {key: pose for key, pose in wanted.items() if rows.get(key) != pose}
        if not missing:
            return
        check(time.monotonic() < deadline, f"never kept: {missing} of {rows}")
        time.sleep(0.05)
