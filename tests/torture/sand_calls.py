"""Random calls over living sand: patches, bodies, impacts, models, watches and streams, by names whose claims change."""
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from daemon import F32  # noqa: E402
from ground import floats, to_bytes  # noqa: E402
from sand import box  # noqa: E402

LOCALES, MODELS, SIDE, SPACING_M, NAMES = "ab", ("box", "small"), 65, 0.5, 6
RIGHTS = ("edits", "patches", "bodies", "impacts", "models", "moves", "pins", "layers")
CLAIMS = ("", " bounds=0,0,20,20", " rate=50/s", " items=1e5/s", " locales=a*")
OBJ = "model/obj"
GROUND = (f"layers/g?cols={SIDE}&rows={SIDE}&spacing={SPACING_M},{SPACING_M}&origin=0,0",
          to_bytes(floats(0.05 * (7 * i % 5) for i in range(SIDE * SIDE))), F32)
FLAGS = ("--gpu", "cpu", "--patch-speed", "0", "--patch-pause-ms", "100", "--patch-linger-ms", "200",
         "--patches-fine", "1", "--patches-medium", "1", "--patches-coarse", "2")


def write_tokens(path, random):
    """A token file of `root`, who may do all, and of NAMES others with claims of this moment."""
    lines = ["edit root name=root may=reading,locales,operating," + ",".join(RIGHTS)]
    lines += [f"edit t{i} name=n{i} may=reading,{','.join(random.sample(RIGHTS, random.randint(2, 6)))}"
              + random.choice(CLAIMS) for i in range(NAMES)]
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    os.rename(path + ".new", path)


def set_up(client):
    """Two locales of sand and two models, by root."""
    headers = bearer("root")
    for name in LOCALES:
        client.ask("PUT", f"/v1/locales/{name}", {}, headers)
        client.ask("PUT", f"/v1/locales/{name}/{GROUND[0]}", GROUND[1], headers, F32)
    for model, half in zip(MODELS, (0.7, 0.4)):
        client.ask("PUT", f"/v1/models/{model}", box(half), headers, OBJ)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def a_patch(random, x, y):
    bodies = [{"model": random.choice((*MODELS, "none")), "position": [x, y, random.uniform(0.5, 3)],
               "velocity": [random.gauss(0, 2), 0, random.uniform(-6, 0)],
               "mass": random.choice((100, 6000))} for _ in range(random.randrange(3))]
    if random.random() < 0.2:
        bodies.append({"model": "small", "mass": 0, "path": [
            {"t": t, "position": [x + t, y, 1 - 0.8 * t], "orientation": [0, 0, 0, 1]} for t in (0, 1)]})
    return {"center": [x, y], "size": [random.uniform(1, 8)] * 2, "depth": random.choice((0.5, 1, 2)),
            "scale": random.choice(("fine", "medium", "coarse")), "overflow": random.random() < 0.3,
            "material": random.choice(("sand", "pebbles", "rubble", "snow")), "bodies": bodies,
            **({"leave": "layer"} if random.random() < 0.3 else {})}


def an_impact(random, x, y):
    return {**random.choice(({"radius": random.uniform(0.05, 1)}, {"model": random.choice(MODELS)})),
            "mass": random.choice((10, 1000, 1e5)), "position": [x, y, random.uniform(1, 9)],
            "velocity": [random.gauss(0, 1), 0, -random.uniform(1, 20)],
            "until": random.choice(("accepted", "accepted", "written")),
            **({"observer": [0, 0, random.uniform(1, 500)]} if random.random() < 0.3 else {})}


def sand_call(random, made):
    """Method ("STREAM": a GET that is cut off), path below /v1, body, media type, headers; `made`:
    paths that answers have named."""
    name, n = random.choice(LOCALES), random.randrange(1, 30)
    x, y = (random.uniform(-2, SIDE * SPACING_M + 2) for _ in "xy")
    half_turn = random.uniform(-math.pi, math.pi)
    here, patch = f"locales/{name}", f"locales/{name}/patches/{n}"
    place = random.choice(made).removeprefix("/v1/") if made else patch
    method, path, *rest = random.choice((
        *[("POST", f"{here}/patches", a_patch(random, x, y))] * 3,
        *[("POST", f"{here}/impacts", an_impact(random, x, y))] * 3,
        (random.choice(("STREAM" if "watches" in place else "GET", "DELETE")), place),
        ("DELETE", patch + random.choice(("", "?write=true", "?discard=true"))),
        ("POST", f"{patch}/bodies", {"model": random.choice(MODELS), "position": [x, y, 2],
                                     "velocity": [0, 0, -3], "mass": 500}),
        (random.choice(("GET", "DELETE")), f"{patch}/bodies/{random.randrange(1, 4)}"),
        ("POST", f"{here}/height?live=true", {"points": [[x, y], [y, x]]}),
        ("POST", f"{here}/ray?live=true", {"rays": [{"origin": [x, y, 9], "direction": [
            random.gauss(0, 1), random.gauss(0, 1), -1]}]}),
        ("POST", f"{here}/edits", {"brush": {
            "shape": random.choice(("crater", "raise", "relax", "smooth")), "center": [x, y],
            "radius": random.uniform(0.5, 4), "amount": random.random()}}),
        ("PUT", f"{here}/layers/m", box(1), OBJ),
        ("PUT", f"{here}/layers/m/transform", {"translation": [x, y, 1], "rotation": [
            0, math.sin(half_turn / 2), 0, math.cos(half_turn / 2)]}),
        ("GET", patch + random.choice(("", "/granules", "/granules?since=3", "/surface.f32",
                                       "/view.png?width=64&height=48"))),
        ("POST", f"{here}/watches", {"height": {"points": [[x, y]], "ids": ["p"]},
                                     "contact": {"points": [[x, y, 5]], "ids": ["c"]}}),
        ("PATCH", place, {"add": {"ray": {"rays": [{"origin": [x, y, 9], "direction": [0, 0, -1]}],
                                          "ids": [f"r{n}"]}}, "remove": ["p"]}),
        ("STREAM", random.choice((place, "events", f"{here}/events", f"{patch}/events?granules=10",
                                  f"{here}/events?bounds=0,0,9,9&samples=f32"))),
        ("PUT", f"{here}/{GROUND[0]}", *GROUND[1:]),
        (random.choice(("PUT", "DELETE")), f"{here}/pins/p"),
        ("POST", f"{here}/pins/p/restore"),
        ("PUT", f"models/{random.choice(MODELS)}", box(random.uniform(0.3, 0.8)), OBJ),
        ("GET", "audit"),
    ))
    body, media = (*rest, None, None)[:2]
    token = random.choice(("root", "root", f"t{random.randrange(NAMES)}"))
    key = {"Idempotency-Key": f"k{random.randrange(50)}"} if random.random() < 0.2 else {}
    return method, path, body, media, {**bearer(token), **key}
