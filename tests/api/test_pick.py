"""Picking: camera or inverse view-projection and pixel, to ray, to hit, to logical tile."""
import math

from daemon import Daemon, problem
from fields import NAN, Terrain, put_layer, put_locale, put_shapes, put_terrain
from mesh_oracle import put_mesh, rectangle
from oracle import camera_ray, column_major, inverse, view_projection
from tap import case, check, equal, near, near_all, rest, rng, run, test

daemon = Daemon()
shapes = put_shapes(daemon)
HIT = {"distance", "point", "normal", "layer", "cell", "triangle"}


def at(name):
    return f"/v1/locales/{name}"


def judge(terrain, answer, name, origin, direction, side, what):
    """The answer to a pick whose ray is known; returns True where it hit."""
    equal(answer.get("locale"), name, f"locale, {what}")
    check(isinstance(answer.get("revision"), int), f"revision, {what}")
    check(set(answer) >= {"status", "hit", "tile"}, f"members, {what}: {answer}")
    wide = terrain.hits(origin, direction, math.inf, 1e-9)
    sure = [hit for hit in wide if hit.inner > 1e-7 and hit.t > 1e-6]
    if answer["status"] == "miss":
        check(not sure, f"{what}: missed, but brute force hits at {[h.t for h in sure][:2]}")
        equal((answer["hit"], answer["tile"]), (None, None), f"hit and tile of a miss, {what}")
        return False
    equal(answer["status"], "hit", what)
    got = answer["hit"]
    check(set(got) >= HIT, f"{what}: members of hit {sorted(got)}")
    same = [h for h in wide if abs(h.t - got["distance"]) <= 1e-6 * max(1, h.t) / max(h.sine, 1e-4)]
    check(same, f"{what}: t {got['distance']}, brute force {[h.t for h in wide][:3]}")
    if sure:
        check(got["distance"] <= sure[0].t + 1e-6 * max(1, sure[0].t) / max(sure[0].sine, 1e-4),
              f"{what}: t {got['distance']}, nearer is {sure[0].t}")
    near_all(got["point"], [o + got["distance"] * d for o, d in zip(origin, direction)],
             f"point, {what}", 1e-7, 1000)
    check(got["cell"] in [list(h.cell) for h in same], f"cell {got['cell']}, {what}")
    check(got["triangle"] in [h.triangle for h in same], f"triangle, {what}")
    tile = answer["tile"]
    column, row, centre, box = terrain.tile(got["cell"], side)
    equal((tile["column"], tile["row"], tile["side"]), (column, row, side), f"tile, {what}")
    near_all(tile["center"], list(centre), f"centre, {what}", 1e-7, 10)
    near_all(tile["bounds"]["min"], list(box[0]), f"bounds min, {what}", 1e-7, 10)
    near_all(tile["bounds"]["max"], list(box[1]), f"bounds max, {what}", 1e-7, 10)
    return True


def random_camera(random, terrain):
    (x0, y0, z0), (x1, y1, z1) = terrain.bounds()
    size = max(x1 - x0, y1 - y0, 1)
    eye = [random.uniform(x0 - size, x1 + size), random.uniform(y0 - size, y1 + size),
           z1 + size * random.uniform(0.05, 1.5)]
    target = [random.uniform(x0, x1), random.uniform(y0, y1), random.uniform(z0, z1)]
    up = random.choice(([0, 0, 1], [0, 0, 1], [0.1, 0.2, 0.9], [0, 0, 5]))
    viewport = random.choice(([1920, 1080], [800, 800], [333, 777]))
    middle = random.random() < 0.5
    pixel = [w * random.uniform(0.4, 0.6) if middle else random.uniform(0, w) for w in viewport]
    return eye, target, up, random.uniform(10, 100), viewport, pixel


def cameras_agree(name):
    terrain = shapes[name]
    random = rng("camera " + name)
    hits = 0
    for _ in range(150):
        eye, target, up, fov, viewport, pixel = random_camera(random, terrain)
        side = random.choice((1, 1, 2, 3, 4, 1000))
        body = {"camera": {"eye": eye, "target": target, "up": up, "fov_y_deg": fov},
                "viewport": viewport, "pixel": pixel, "tile_side": side}
        if side == 1 and random.random() < 0.5:
            del body["tile_side"]
        answer = daemon.ok("POST", at(name) + "/pick", body)
        origin, direction = camera_ray(eye, target, up, fov, viewport, pixel)
        hits += judge(terrain, answer, name, origin, direction, side, f"{body}")
    check(hits > 3, f"{hits} hits of 150: the cameras ask too little")


def matrices_agree(name, depth):
    terrain = shapes[name]
    random = rng(f"matrix {name} {depth}")
    hits = 0
    for _ in range(150):
        eye, target, up, fov, viewport, pixel = random_camera(random, terrain)
        span = math.dist(eye, target)
        near_m, far_m = span * 0.01, span * 100
        m = inverse(view_projection(eye, target, up, fov, viewport[0] / viewport[1], near_m, far_m,
                                    depth))
        side = random.choice((1, 2, 5))
        body = {"inverse_view_projection": column_major(m), "depth": depth, "viewport": viewport,
                "pixel": pixel, "tile_side": side}
        answer = daemon.ok("POST", at(name) + "/pick", body)
        x, y = 2 * pixel[0] / viewport[0] - 1, 1 - 2 * pixel[1] / viewport[1]

        def world(z):
            p = [sum(v * w for v, w in zip(row, (x, y, z, 1))) for row in m]
            return [p[i] / p[3] for i in range(3)]
        start, end = map(world, {"gl": (-1.0, 1.0), "webgpu": (0.0, 1.0),
                                 "reversed": (1.0, 0.0)}[depth])
        direction = [b - a for a, b in zip(start, end)]
        length = math.sqrt(sum(v * v for v in direction))
        hits += judge(terrain, answer, name, start, [v / length for v in direction], side,
                      f"{body}")
    check(hits > 3, f"{hits} hits of 150: the cameras ask too little")


for shape in ("small-anti", "small-main", "small-alternating", "wide-anti", "wide-main",
              "wide-alternating", "thin"):
    case(f"150 cameras over {shape} pick what brute force picks", cameras_agree, shape)
for shape in ("small-main", "wide-anti"):
    for convention in ("gl", "webgpu", "reversed"):
        case(f"150 {convention} matrices over {shape} pick what brute force picks",
             matrices_agree, shape, convention)


STRAIGHT = {"camera": {"eye": [2, 1.5, 10], "target": [2, 1.5, 0], "up": [0, 1, 0],
                       "fov_y_deg": 90}, "viewport": [100, 100], "pixel": [50, 50]}


@test("pixel (0,0) is the upper left; its axes are right and down")
def _():
    put_terrain(daemon, "board", Terrain(41, 41, [[0] * 41 for _ in range(41)], (1.0, 1.0),
                                         (-18.0, -18.5)))
    # From 10 m above (2, 1.5), up = +y, 90°: the picture spans x -8..12 and y -8.5..11.5.
    for pixel, x, y in (([0, 0], -8, 11.5), ([99, 0], 11.8, 11.5), ([0, 99], -8, -8.3),
                        ([50, 50], 2, 1.5), ([75.5, 25.25], 7.1, 6.45)):
        answer = daemon.ok("POST", at("board") + "/pick", {**STRAIGHT, "pixel": pixel})
        equal(answer["status"], "hit", f"{pixel}")
        near_all(answer["hit"]["point"], [x, y, 0], f"{pixel}", 1e-9)
        equal(answer["tile"]["column"], math.floor(x + 18), f"column at {pixel}")
    answer = daemon.ok("POST", at("board") + "/pick", STRAIGHT)
    near(answer["hit"]["distance"], 10, "metres")


@test("the logical tile is made of cells and clipped to the field")
def _():
    put_terrain(daemon, "clip", Terrain(6, 5, [[c + 10 * r for c in range(6)] for r in range(5)],
                                        (1.0, 1.0), (0.0, 0.0)))
    look = {"camera": {"eye": [4.5, 3.4, 200], "target": [4.5, 3.4, 0], "up": [0, 1, 0],
                       "fov_y_deg": 40}, "viewport": [10, 10], "pixel": [5, 5]}
    wanted = {1: (4, 3, [4.5, 3.5], [4, 3, 34], [5, 4, 45]),
              2: (2, 1, [4.5, 3.0], [4, 2, 24], [5, 4, 45]),
              3: (1, 1, [4.0, 3.5], [3, 3, 33], [5, 4, 45]),
              4: (1, 0, [4.5, 2.0], [4, 0, 4], [5, 4, 45]),
              100: (0, 0, [2.5, 2.0], [0, 0, 0], [5, 4, 45])}
    for side, (column, row, centre, low, high) in wanted.items():
        tile = daemon.ok("POST", at("clip") + "/pick", {**look, "tile_side": side})["tile"]
        equal((tile["column"], tile["row"], tile["side"]), (column, row, side), f"side {side}")
        near_all(tile["center"], [*centre, centre[0] + 10 * centre[1]], f"centre, side {side}")
        equal((tile["bounds"]["min"], tile["bounds"]["max"]), (low, high), f"bounds, side {side}")


@test("a tile whose middle is a hole has a centre without height")
def _():
    heights = [[0.0] * 5 for _ in range(5)]
    heights[2][2] = NAN
    put_terrain(daemon, "gap", Terrain(5, 5, heights))
    look = {"camera": {"eye": [0.4, 0.4, 9], "target": [0.4, 0.4, 0], "up": [0, 1, 0],
                       "fov_y_deg": 40}, "viewport": [10, 10], "pixel": [5, 5], "tile_side": 4}
    tile = daemon.ok("POST", at("gap") + "/pick", look)["tile"]
    equal(tile["center"], [2, 2, None], "centre")
    equal((tile["bounds"]["min"], tile["bounds"]["max"]), ([0, 0, 0], [4, 4, 0]), "bounds")


@test("a pick looks at all layers, or at the one named")
def _():
    put_locale(daemon, "floors")
    put_layer(daemon, "floors", Terrain(9, 9, [[1] * 9] * 9), "low")
    put_layer(daemon, "floors", Terrain(9, 9, [[7] * 9] * 9), "high")
    answer = daemon.ok("POST", at("floors") + "/pick", STRAIGHT)
    equal((answer["hit"]["layer"], answer["hit"]["point"][2]), ("high", 7), "nearest")
    for target, body in ((at("floors") + "/pick?layer=low", STRAIGHT),
                         (at("floors") + "/pick", {**STRAIGHT, "layer": "low"})):
        answer = daemon.ok("POST", target, body)
        equal((answer["hit"]["layer"], answer["hit"]["point"][2]), ("low", 1), "by name")


@test("a camera that sees nothing but sky is a miss")
def _():
    answer = daemon.ok("POST", at("board") + "/pick",
                       {**STRAIGHT, "camera": {**STRAIGHT["camera"], "target": [2, 1.5, 20]}})
    equal((answer["status"], answer["hit"], answer["tile"]), ("miss", None, None), "answer")


@test("up is +Z unless given, +Y where the camera looks along Z; the angle is 60 degrees")
def _():
    def ask(**camera):
        return daemon.ok("POST", at("board") + "/pick", {"camera": camera, "viewport": [200, 100],
                                                         "pixel": [120, 30]})
    aslant = {"eye": [2, -3, 9], "target": [4, 5, 0]}
    equal(ask(**aslant), ask(**aslant, up=[0, 0, 1], fov_y_deg=60), "aslant")
    equal(ask(**aslant, up=None, fov_y_deg=None), ask(**aslant), "null is absent")
    down = {"eye": [2, 1.5, 10], "target": [2, 1.5, 0]}
    equal(ask(**down), ask(**down, up=[0, 1, 0], fov_y_deg=60), "straight down")
    check(ask(**down)["hit"]["point"][1] > 1.5, "the upper half of the picture is +Y")


@test("many pixels are what they are one by one, with the viewport's rules for each")
def _():
    random = rng("pixels")
    look = {k: v for k, v in STRAIGHT.items() if k != "pixel"}
    pixels = [[random.uniform(0, 100), random.uniform(0, 100)] for _ in range(50)]
    answer = daemon.ok("POST", at("board") + "/pick", {**look, "pixels": pixels, "tile_side": 3})
    check(answer["revision"] > 0 and answer["locale"] == "board", f"{answer}"[:200])
    for pixel, item in zip(pixels, answer["results"], strict=True):
        alone = daemon.ok("POST", at("board") + "/pick", {**look, "pixel": pixel, "tile_side": 3})
        equal({**item, "locale": "board", "revision": answer["revision"]}, alone, f"{pixel}")
    problem(daemon.post(at("board") + "/pick", {**look, "pixels": [[1, 1], [100, 1]]}), 422,
            "pixel", pointer="/pixels/1")
    problem(daemon.post(at("board") + "/pick", {**look, "pixels": [[1, 1], [1]]}), 400,
            pointer="/pixels/1")


@test("matrices of three.js pick as they are: matrixWorld times projectionMatrixInverse")
def _():
    # what three.js 0.170 makes of PerspectiveCamera(50, 2, 0.1, 1000), up 0 0 1, at (0, -10, 10),
    # after lookAt(0, 0, 0): its matrixWorld and projectionMatrixInverse, `elements`
    s = math.sqrt(0.5)
    world = [1, 0, 0, 0, 0, s, s, 0, 0, -s, s, 0, 0, -10, 10, 1]
    tangent = math.tan(math.radians(25))
    near_m, far_m = 0.1, 1000
    back = [2 * tangent, 0, 0, 0, 0, tangent, 0, 0, 0, 0, 0, (near_m - far_m) / (2 * far_m * near_m),
            0, 0, -1, (far_m + near_m) / (2 * far_m * near_m)]
    m = [sum(world[4 * k + i] * back[4 * j + k] for k in range(4)) for j in range(4)
         for i in range(4)]
    got = daemon.ok("POST", at("board") + "/pick", {"inverse_view_projection": m, "pixel": [130, 40],
                                                    "viewport": [200, 100]})
    want = daemon.ok("POST", at("board") + "/pick", {
        "camera": {"eye": [0, -10, 10], "target": [0, 0, 0], "fov_y_deg": 50}, "pixel": [130, 40],
        "viewport": [200, 100]})
    near_all(got["hit"]["point"], want["hit"]["point"], "point", 1e-9)


def refused(status, change, *words, pointer=None):
    body = {**STRAIGHT, **change}
    body = {k: v for k, v in body.items() if v != "absent"}
    return problem(daemon.post(at("board") + "/pick", body), status, *words, pointer=pointer)


def impossible(change, name):
    """The problem points to the member; of an angle it tells the limit."""
    place = "camera/" if change.get("camera", "absent") != "absent" else ""
    told = refused(422, change, name, pointer=f"/{place}{name}")
    if name == "fov_y_deg":
        angle = change["camera"][name]
        equal((told.get("limit"), told.get("got")), (180 if angle > 0 else 0, angle), "limit, got")


IMPOSSIBLE = [
    ("the eye is the target", {"camera": {**STRAIGHT["camera"], "target": [2, 1.5, 10]}},
     "target"),
    ("up lies along the view", {"camera": {**STRAIGHT["camera"], "up": [0, 0, 3]}}, "up"),
    ("up is zero", {"camera": {**STRAIGHT["camera"], "up": [0, 0, 0]}}, "up"),
    ("an angle of 0", {"camera": {**STRAIGHT["camera"], "fov_y_deg": 0}}, "fov_y_deg"),
    ("an angle of 180", {"camera": {**STRAIGHT["camera"], "fov_y_deg": 180}}, "fov_y_deg"),
    ("a negative angle", {"camera": {**STRAIGHT["camera"], "fov_y_deg": -20}}, "fov_y_deg"),
    ("a viewport of no width", {"viewport": [0, 100]}, "viewport"),
    ("a negative viewport", {"viewport": [100, -5]}, "viewport"),
    ("a pixel left of the viewport", {"pixel": [-0.1, 5]}, "pixel"),
    ("a pixel at its right edge", {"pixel": [100, 5]}, "pixel"),
    ("a pixel above it", {"pixel": [5, -1]}, "pixel"),
    ("a pixel at its lower edge", {"pixel": [5, 100]}, "pixel"),
    ("a singular matrix", {"camera": "absent", "inverse_view_projection": [0] * 16,
                           "depth": "gl"}, "inverse_view_projection"),
    ("a matrix that maps the near plane and the far one to one point",
     {"camera": "absent", "inverse_view_projection": [1] * 16, "depth": "gl"},
     "inverse_view_projection"),
]
for sentence, member, name in IMPOSSIBLE:
    case(f"well-formed but impossible is 422: {sentence}", impossible, member, name)

WRONG = [
    ("no camera at all", {"camera": "absent"}, "camera"),
    ("camera and matrix both", {"inverse_view_projection": [1] * 16, "depth": "gl"}, "camera"),
    ("a matrix of 15", {"camera": "absent", "inverse_view_projection": [1] * 15, "depth": "gl"},
     "inverse_view_projection"),
    ("an unknown depth", {"camera": "absent", "inverse_view_projection": [1] * 16,
                          "depth": "vulkan"}, "depth"),
    ("no eye", {"camera": {k: v for k, v in STRAIGHT["camera"].items() if k != "eye"}}, "eye"),
    ("an eye of two numbers", {"camera": {**STRAIGHT["camera"], "eye": [1, 2]}}, "eye"),
    ("a text for an angle", {"camera": {**STRAIGHT["camera"], "fov_y_deg": "40"}}, "fov_y_deg"),
    ("no pixel", {"pixel": "absent"}, "pixel"),
    ("pixel and pixels", {"pixels": [[1, 2]]}, "pixels"),
    ("no pixels at all", {"pixel": "absent", "pixels": []}, "pixels"),
    ("the name of another API", {"camera": "absent", "inverse_view_projection": [1] * 16,
                                 "depth": "d3d"}, "depth"),
    ("no viewport", {"viewport": "absent"}, "viewport"),
    ("a pixel of three", {"pixel": [1, 2, 3]}, "pixel"),
    ("tile_side 0", {"tile_side": 0}, "tile_side"),
    ("tile_side -1", {"tile_side": -1}, "tile_side"),
    ("a fractional tile_side", {"tile_side": 1.5}, "tile_side"),
    ("a text for tile_side", {"tile_side": "2"}, "tile_side"),
    ("an unknown member of the camera", {"camera": {**STRAIGHT["camera"], "fov": 40}}, "fov"),
    ("an unknown member", {"px": [1, 2]}, "px"),
    ("a depth of a camera", {"depth": "gl"}, "depth"),
]
for sentence, member, name in WRONG:
    case(f"a wrong pick is 400: {sentence}", refused, 400, member, name)


# ---- tiles of the plan ---------------------------------------------------------------------------

def straight_down(x, y, **more):
    """A pick of exactly the plan's point (x, y): a matrix whose middle pixel is there."""
    return {"inverse_view_projection": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, -100, 0, x, y, 0, 1],
            "viewport": [2, 2], "pixel": [1, 1], **more}


def whole(*numbers):
    """The numbers as whole ones of the least common power of two."""
    ratios = [n.as_integer_ratio() for n in numbers]
    common = max(d for _, d in ratios)
    return [n * (common // d) for n, d in ratios]


def sign_of_sum(a, b):
    """Of a + b √3, for whole numbers."""
    if a == 0 or b == 0 or (a > 0) == (b > 0):
        return ((a or b) > 0) - ((a or b) < 0)
    return (1 if a > 0 else -1) * ((a * a > 3 * b * b) - (a * a < 3 * b * b))


def hexagon(x, y, side):
    """The hexagon with the nearest centre, in whole numbers; of equal ones the greatest r, then q."""
    about = y / (1.5 * side)
    r0, q0 = round(about), round(x / (math.sqrt(3) * side) - about / 2)
    x, y, side = whole(float(x), float(y), float(side))
    best = None
    for r in range(r0 - 2, r0 + 3):
        for q in range(q0 - 2, q0 + 3):
            if best:
                du, dr = 2 * (q - best[0]) + r - best[1], r - best[1]
                k = 3 * du * (2 * (q + best[0]) + r + best[1]) + 9 * dr * (r + best[1])
                nearer = sign_of_sum(side * k - 12 * dr * y, -4 * du * x)
                if nearer > 0 or (nearer == 0 and (r, q) < (best[1], best[0])):
                    continue
            best = (q, r)
    return best


def hexagons(of_a_side):
    put_terrain(daemon, "plain", Terrain(41, 41, [[0] * 41 for _ in range(41)], (100.0, 100.0),
                                         (-2000.0, -2000.0)))
    random = rng("hexagons")
    for batch, side in enumerate((1, 5, 0.1, 7.3, 1000, 0.001, 1.5, 3, 33.333, 2.5)):
        reach = min(1000, 1e4 * side)
        pixels = []
        for i in range(of_a_side):
            q, r, at = random.randint(-50, 50), random.randint(-50, 50), random.random()
            u, v = math.sqrt(3) * side * (q + r / 2), 1.5 * side * r
            corner = random.randrange(6) * math.pi / 3 + math.pi / 6
            nxt = corner + math.pi / 3
            a = (side * math.cos(corner), side * math.sin(corner))
            b = (side * math.cos(nxt), side * math.sin(nxt))
            if i % 4 == 0:                     # anywhere
                u, v = random.uniform(-reach, reach), random.uniform(-reach, reach)
            elif i % 4 == 1:                   # a border
                u, v = u + a[0] * at + b[0] * (1 - at), v + a[1] * at + b[1] * (1 - at)
            elif i % 4 == 2:                   # a corner
                u, v = u + a[0], v + a[1]
            else:                              # exactly on borders and corners: x = 0
                u, v = 0, side * random.randint(-60, 60) / 2
            u, v = max(-1000, min(1000, u)), max(-1000, min(1000, v))
            pixels.append([1024 + u, 1024 - v])
        # 2048 × 2048 pixels of a metre
        body = {"inverse_view_projection": [1024, 0, 0, 0, 0, 1024, 0, 0, 0, 0, -100, 0, 0, 0, 0, 1],
                "viewport": [2048, 2048], "pixels": pixels, "tile": {"shape": "hex", "side": side}}
        for pixel, item in zip(pixels, daemon.ok("POST", at_plain, body)["results"]):
            x, y, _ = item["hit"]["point"]
            equal((item["tile"]["q"], item["tile"]["r"]), hexagon(x, y, side),
                  f"({x!r}, {y!r}), side {side}, pixel {pixel}")
            near_all(item["tile"]["center"],
                     [math.sqrt(3) * side * (item["tile"]["q"] + item["tile"]["r"] / 2),
                      1.5 * side * item["tile"]["r"], 0], "centre", 1e-9)


at_plain = at("plain") + "/pick"
case("6,000 points are in the hexagon with the nearest centre, by exact arithmetic", hexagons, 600)
rest("100,000 points")(lambda: hexagons(10000))


@test("a step of a double to either side of a border or corner decides the hexagon")
def _():
    random = rng("steps")
    for _ in range(1500):
        side = random.choice((1, 5, 0.1, 7.3, 12.345))
        q, r, corner = random.randint(-9, 9), random.randint(-9, 9), random.randrange(6)
        angle = corner * math.pi / 3 + math.pi / 6
        x = math.sqrt(3) * side * (q + r / 2) + side * math.cos(angle)
        y = 1.5 * side * r + side * math.sin(angle)
        if random.random() < 0.5:              # a border along y
            x, y = math.sqrt(3) * side * (q + r / 2 + 0.5), 1.5 * side * r
        for _ in range(random.randrange(3)):
            x = math.nextafter(x, random.choice((-math.inf, math.inf)))
            y = math.nextafter(y, random.choice((-math.inf, math.inf)))
        answer = daemon.ok("POST", at_plain,
                           straight_down(x, y, tile={"shape": "hex", "side": side}))
        x, y, _ = answer["hit"]["point"]
        equal((answer["tile"]["q"], answer["tile"]["r"]), hexagon(x, y, side),
              f"({x!r}, {y!r}), side {side}")


@test("squares of the plan begin at the origin; their borders belong to the upper one")
def _():
    for x, y, side in ((0, 0, 5), (-1e-300, 4.9, 5), (0.3, 0.6, 0.1), (-0.3, 12, 0.1), (7, -7, 3.5)):
        tile = daemon.ok("POST", at_plain,
                         straight_down(x, y, tile={"shape": "square", "side": side}))["tile"]
        (a, b, s) = whole(float(x), float(y), float(side))
        equal((tile["column"], tile["row"]), (a // s, b // s), f"({x}, {y}), side {side}")
        near_all(tile["center"], [(a // s + 0.5) * side, (b // s + 0.5) * side, 0], "centre", 1e-9)


@test("a mesh has tiles of the plan, by GET, too")
def _():
    put_locale(daemon, "deck")
    put_mesh(daemon, "deck", [rectangle(0, 0, 20, 9, 5)])
    answer = daemon.ok("POST", at("deck") + "/pick",
                       straight_down(7.0, 3.0, tile={"shape": "hex", "side": 2}))
    equal(answer["hit"]["cell"], None, "a mesh")
    equal((answer["tile"]["q"], answer["tile"]["r"]), hexagon(7.0, 3.0, 2), "tile")
    equal(answer["tile"]["center"][2], None, "no height")
    look = "eye=7,3,50&target=7,3,0&viewport=100,100&pixel=50,50"
    equal(daemon.ok("GET", at("deck") + f"/pick?{look}&tile=hex,2")["tile"], answer["tile"], "GET")
    equal(daemon.ok("GET", at("deck") + f"/pick?{look}&tile=square,2")["tile"]["column"], 3, "square")


# ---- regions -------------------------------------------------------------------------------------

def inside(corners, x, y):
    odd = False
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1]):
        if (ay <= y) != (by <= y) and ax + (bx - ax) * ((y - ay) / (by - ay)) <= x:
            odd = not odd
    return odd


def region_agrees(name, where, tile, locale=None):
    """A region gives what its pixels give one by one."""
    random = rng(f"region {name} {where} {tile}")
    view = {"camera": {"eye": [-15, -20, 40], "target": [8, 6, 0], "fov_y_deg": 70},
            "viewport": [48, 36]}
    for _ in range(6):
        step = random.choice((1, 1, 2, 3))
        if where == "rectangle":
            a, b = ([random.uniform(-9, 55), random.uniform(-9, 44)] for _ in "ab")
            shape = [*a, *b]
            box = [min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1])]
        else:
            shape = [[random.uniform(-9, 55), random.uniform(-9, 44)]
                     for _ in range(random.randint(3, 9))]
            box = [min(x for x, _ in shape), min(y for _, y in shape),
                   max(x for x, _ in shape), max(y for _, y in shape)]
        pixels = []
        for j in range(max(0, math.ceil(box[1] - 0.5)), 36, step):
            for i in range(max(0, math.ceil(box[0] - 0.5)), 48, step):
                x, y = i + 0.5, j + 0.5
                if x < box[2] and y < box[3] and (where == "rectangle" or inside(shape, x, y)):
                    pixels.append([x, y])
        got = daemon.ok("POST", name, {**view, **tile, where: shape, "step": step})
        equal(got["pixels"], len(pixels), f"pixels of {shape}, step {step}")
        want = {}
        for item in daemon.ok("POST", name, {**view, **tile, "pixels": pixels})["results"] \
                if pixels else []:
            if item["status"] == "miss":
                continue
            layer = want.setdefault((item.get("locale"), item["hit"]["layer"]), (set(), set(), set()))
            if item["hit"]["cell"]:
                layer[0].add(tuple(reversed(item["hit"]["cell"])))
            else:
                layer[1].add(item["hit"]["polygon"])
            if item["tile"]:
                layer[2].add((item["tile"].get("r", item["tile"].get("row")),
                              item["tile"].get("q", item["tile"].get("column"))))
        equal([(one.get("locale"), one["layer"]) for one in got["layers"]], sorted(want), "layers")
        for one in got["layers"]:
            cells, polygons, tiles = want[one.get("locale"), one["layer"]]
            equal(one["cells"], [[c, r] for r, c in sorted(cells)], f"cells of {shape}")
            equal(one["polygons"], sorted(polygons), f"polygons of {shape}")
            equal(one["tiles"], [[c, r] for r, c in sorted(tiles)], f"tiles of {shape}")


for where in ("rectangle", "lasso"):
    for tile in ({"tile_side": 2}, {"tile": {"shape": "hex", "side": 3}}):
        case(f"a {where} gives what its pixels give: {tile}", region_agrees,
             at("small-anti") + "/pick", where, tile)
        case(f"a {where} across locales gives what its pixels give: {tile}", region_agrees,
             "/v1/pick", where, tile)


@test("a pick across locales is that of the nearest one, in the world")
def _():
    random = rng("across")
    names = {one["id"] for one in daemon.ok("GET", "/v1/locales?limit=100")["locales"]}
    hits = 0
    for _ in range(60):
        view = {"camera": {"eye": [random.uniform(-30, 30), random.uniform(-30, 30), 90],
                           "target": [random.uniform(-9, 20), random.uniform(-9, 20), 0]},
                "viewport": [64, 48], "pixel": [random.uniform(20, 44), random.uniform(16, 32)],
                "tile": {"shape": "hex", "side": 4}}
        got = daemon.ok("POST", "/v1/pick", view)
        own = {name: daemon.ok("POST", at(name) + "/pick", view) for name in names}
        met = [(one["hit"]["distance"], name) for name, one in own.items() if one["hit"]]
        if not met:
            equal((got["status"], got["locale"], got["hit"], got["tile"]),
                  ("miss", None, None, None), "a miss")
            continue
        hits += 1
        equal(got["locale"], min(met)[1], "the nearest locale")
        one = own[got["locale"]]
        equal((got["hit"], got["tile"], got["revision"]), (one["hit"], one["tile"], one["revision"]),
              "its pick")
    check(hits > 10, f"{hits} hits of 60")


HEX = {"shape": "hex", "side": 5}
for sentence, member, name in (
        ("tile and tile_side", {"tile": HEX, "tile_side": 2}, "tile"),
        ("a tile that is a number", {"tile": 5}, "tile"),
        ("an unknown shape", {"tile": {**HEX, "shape": "round"}}, "shape"),
        ("a tile without a side", {"tile": {"shape": "hex"}}, "side"),
        ("a side of 0", {"tile": {**HEX, "side": 0}}, "side"),
        ("too long a side", {"tile": {**HEX, "side": 1e7}}, "side"),
        ("a stranger in the tile", {"tile": {**HEX, "turn": 1}}, "turn"),
        ("a step of one pixel", {"step": 2}, "step"),
        ("a rectangle beside a pixel", {"rectangle": [0, 0, 9, 9]}, "rectangle"),
        ("a rectangle of three", {"pixel": "absent", "rectangle": [0, 0, 9]}, "rectangle"),
        ("a lasso of two", {"pixel": "absent", "lasso": [[0, 0], [9, 9]]}, "lasso"),
        ("a corner of three", {"pixel": "absent", "lasso": [[0, 0], [9, 9], [1, 2, 3]]}, "lasso"),
        ("a step of 0", {"pixel": "absent", "rectangle": [0, 0, 9, 9], "step": 0}, "step")):
    case(f"a wrong pick is 400: {sentence}", refused, 400, member, name)


@test("a region of too many pixels is 413, with the limit")
def _():
    limit = daemon.ok("GET", "/v1/limits")["pick_region_pixels_max"]
    body = {**STRAIGHT, "viewport": [4096, 4096], "rectangle": [0, 0, 4096, 4096]}
    del body["pixel"]
    problem(daemon.post(at_plain, body), 413, pointer="/rectangle", limit=limit, got=4096 ** 2)
    daemon.ok("POST", at_plain, {**body, "step": 8})
    equal(daemon.ok("POST", at_plain, {**body, "rectangle": [-9, -9, -1, -1]}),
          {"locale": "plain", "revision": 2, "pixels": 0, "layers": []}, "outside the viewport")


run(daemon.stop)
