"""Everything along rays and lines of sight, beside brute force over all triangles."""
from daemon import F64, Daemon, problem
from mesh_oracle import MeshLayer, World, put_world, random_soup
from oracle import add, cross, dot, random_terrain, scale, sub
from tap import check, equal, rng, run, test

daemon = Daemon()
random = rng("all hits")
field = random_terrain(random, 14, 12, (3.0, 2.5), (0.0, 0.0), "alternating", 0.05, 3.0)
RINGS = random_soup(random, 60, 36.0)
put_world(daemon, "mixed", World([MeshLayer(RINGS, name="deck")], [("ground", field)]))
TARGET = "/v1/locales/mixed"


def triangles():
    for r in range(field.rows - 1):
        for c in range(field.cols - 1):
            at = [(3.0 * (c + i % 2), 2.5 * (r + i // 2), field.h[r + i // 2][c + i % 2])
                  for i in range(4)]
            for one in ((1, 0, 3), (2, 0, 3)) if (c + r) % 2 else ((0, 1, 2), (3, 1, 2)):
                if all(at[i][2] == at[i][2] for i in one):
                    yield ("ground", (c, r)), [at[i] for i in one]
    for i, ring in enumerate(RINGS):
        for k in range(2, len(ring)):
            yield ("deck", i), [ring[0], ring[k - 1], ring[k]]


TRIANGLES = list(triangles())


def crossings(origin, direction, t_max):
    """[(t, place)] by t; None when the ray passes an edge so near that rounding decides."""
    found, is_doubtful = [], False
    for place, (a, b, c) in TRIANGLES:
        e1, e2 = sub(b, a), sub(c, a)
        p = cross(direction, e2)
        det = dot(e1, p)
        if abs(det) < 1e-9:
            is_doubtful = is_doubtful or abs(dot(sub(origin, a), cross(e1, e2))) < 1e-6
            continue
        s = sub(origin, a)
        u = dot(s, p) / det
        q = cross(s, e1)
        v, t = dot(direction, q) / det, dot(e2, q) / det
        if min(u, v, 1 - u - v) < -1e-9 or not -1e-9 < t < t_max + 1e-9:
            continue
        is_doubtful = is_doubtful or min(u, v, 1 - u - v, t, t_max - t) < 1e-9
        found.append((t, place))
    found.sort(key=lambda one: one[0])
    near = any(b[0] - a[0] < 1e-7 for a, b in zip(found, found[1:]))
    return None if is_doubtful or near else found


def place_of(hit):
    return (hit["layer"], tuple(hit["cell"]) if hit["polygon"] is None else hit["polygon"])


def ask(call, body):
    return daemon.ok("POST", f"{TARGET}/{call}", body)["results"]


def somewhere():
    return [random.uniform(-3, 40), random.uniform(-3, 32), random.uniform(-8, 16)]


@test("rays meet what brute force meets, in order")
def _():
    rays = []
    while len(rays) < 300:
        a, b = somewhere(), somewhere()
        rays.append({"origin": a, "direction": list(sub(b, a)), "t_max": random.uniform(0.2, 3)})
    judged = 0
    first = ask("ray", {"rays": rays})
    for most in (256, 3):
        for ray, one, got in zip(rays, first, ask("ray", {"rays": rays, "mode": "all",
                                                          "hits_max": most})):
            equal(list(got), ["hits"], "members")
            want = crossings(ray["origin"], ray["direction"], ray["t_max"])
            if one["status"] == "hit":
                equal({k: v for k, v in one.items() if k != "status"}, got["hits"][0], "the first")
            else:
                equal(got["hits"], [], "a miss")
            if want is None:
                continue
            judged += 1
            equal([place_of(hit) for hit in got["hits"]], [place for _, place in want[:most]],
                  f"{ray}")
            for hit, (t, _) in zip(got["hits"], want):
                check(abs(hit["t"] - t) < 1e-9, f"{hit} is not at {t}")
    check(judged > 400, f"only {judged} judged")


@test("lines of sight have all that is between")
def _():
    segments = [{"from": somewhere(), "to": somewhere()} for _ in range(200)]
    plain = ask("los", {"segments": segments})
    for segment, one, got in zip(segments, plain,
                                 ask("los", {"segments": segments, "mode": "all", "hits_max": 99})):
        want = crossings(segment["from"], sub(segment["to"], segment["from"]), 1)
        equal(list(got), ["hits"], "members")
        equal(got["hits"] == [], one["visible"], "visible")
        if want is not None:
            equal([place_of(hit) for hit in got["hits"]], [place for _, place in want], f"{segment}")
            for hit, (t, _) in zip(got["hits"], want):
                check(abs(hit["fraction"] - t) < 1e-9, f"{hit} is not at {t}")
    one = segments[0]
    query = "&".join(f"{name}={','.join(map(repr, one[name]))}" for name in ("from", "to"))
    answer = daemon.ok("GET", f"{TARGET}/los?{query}&mode=all")
    equal(answer["hits"], ask("los", {"segments": [one], "mode": "all"})[0]["hits"], "GET")
    ray = "origin=1,1,30&direction=1,1,-2&mode=all&hits_max=2"
    answer = daemon.ok("GET", f"{TARGET}/ray?{ray}")
    equal(answer["hits"], ask("ray", {"rays": [{"origin": [1, 1, 30], "direction": [1, 1, -2]}],
                                      "mode": "all", "hits_max": 2})[0]["hits"], "GET")


@test("what cannot be asked is refused")
def _():
    ray = {"origin": [0, 0, 9], "direction": [0, 0, -1]}
    for body, code, pointer, status in (
            ({"rays": [ray], "hits_max": 3}, "bad_input", "/hits_max", 400),
            ({"rays": [ray], "mode": "all", "hits_max": 0}, "bad_input", "/hits_max", 400),
            ({"rays": [ray], "mode": "all", "hits_max": 257}, "bad_input", "/hits_max", 400),
            ({"rays": [ray], "mode": "all", "trace": True}, "bad_input", "/trace", 400),
            ({"rays": [ray] * 1001, "mode": "all", "hits_max": 100}, "too_many_items", "/rays", 413)):
        answer = daemon.post(f"{TARGET}/ray", body)
        problem(answer, status, pointer=pointer)
        equal(answer.json["code"], code, "code")
    answer = daemon.post(f"{TARGET}/ray?mode=all", bytes(56), media=F64)
    problem(answer, 400, pointer="mode")
    bad = ask("ray", {"rays": [{"origin": [0, 0, 0], "direction": [0, 0, 0]}], "mode": "all"})[0]
    equal((bad["hits"], bad["status"]), ([], "invalid"), "an impossible ray")


run(daemon.stop)
