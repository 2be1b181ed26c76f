"""Terrains on a daemon: the ones that most tests ask, and how they get there."""
from oracle import ALTERNATING, ANTI, MAIN, NAN, Terrain, random_terrain
from tap import check, equal, rng

# (id, cols, rows, spacing, origin, triangulation, share of holes). Spacings are powers of two
# where edges are asked exactly, anything elsewhere.
SHAPES = (
    ("tiny", 2, 2, (1.0, 1.0), (0.0, 0.0), ANTI, 0.0),
    ("small-anti", 9, 7, (2.0, 0.5), (-3.0, 100.0), ANTI, 0.08),
    ("small-main", 9, 7, (0.7, 1.9), (12.3, -45.6), MAIN, 0.08),
    ("small-alternating", 9, 7, (1.0, 1.0), (0.0, 0.0), ALTERNATING, 0.08),
    ("wide-anti", 33, 20, (3.1, 2.3), (1000.5, -2000.25), ANTI, 0.03),
    ("wide-main", 33, 20, (10.0, 30.0), (-500.0, 7.0), MAIN, 0.0),
    ("wide-alternating", 33, 20, (0.25, 0.5), (-4.0, -4.0), ALTERNATING, 0.05),
    ("thin", 2, 40, (1.5, 1.5), (0.0, 0.0), MAIN, 0.05),
)

# by the numbers of binary answers
CONTACT_STATUS = ["ok", "below", "hole", "outside", "too_far"]
# of binary answers to contains, beside bit 1 for a floor and bit 2 for a ceiling
CONTAINS_BITS = {"inside": 1, "below": 0, "hole": 8, "outside": 16}


def shapes():
    """{id: Terrain} of all of them, the same for every daemon."""
    made = {}
    for name, cols, rows, spacing, origin, triangulation, holes in SHAPES:
        random = rng("shape " + name)
        made[name] = random_terrain(random, cols, rows, spacing, origin, triangulation, holes)
    return made


def put_locale(daemon, name, status=201, **manifest):
    return daemon.ok("PUT", f"/v1/locales/{name}", manifest, status=status)


def put_layer(daemon, name, terrain, layer="ground", status=201, more=""):
    return daemon.ok("PUT", f"/v1/locales/{name}/layers/{layer}?{terrain.query()}{more}",
                     terrain.body(), status=status, media="application/vnd.kota.f32")


def put_terrain(daemon, name, terrain, **manifest):
    """A locale with one heightfield layer; returns the Locale."""
    put_locale(daemon, name, triangulation=terrain.triangulation, **manifest)
    return put_layer(daemon, name, terrain)


def put_shapes(daemon):
    made = shapes()
    for name, terrain in made.items():
        put_terrain(daemon, name, terrain)
    return made


def random_point(random, terrain, beyond=0.1):
    """A ground point, now and then a little outside, on a grid line or on a sample."""
    def one(origin, spacing, count):
        width = (count - 1) * spacing
        kind = random.random()
        if kind < 0.1:
            return origin + random.randrange(count) * spacing
        return origin + random.uniform(-beyond * width, (1 + beyond) * width)
    return [one(terrain.origin[0], terrain.spacing[0], terrain.cols),
            one(terrain.origin[1], terrain.spacing[1], terrain.rows)]


def near_border(terrain, x, y, interp):
    """True where one rounding decides between two answers: the oracle cannot judge there.

    Rim of the field, grid lines and diagonals beside a hole, ties of `nearest`.
    """
    u = (x - terrain.origin[0]) / terrain.spacing[0]
    v = (y - terrain.origin[1]) / terrain.spacing[1]
    tiny = 1e-9 * (1 + max(abs(terrain.origin[0]), abs(terrain.origin[1])))
    for w, count in ((u, terrain.cols), (v, terrain.rows)):
        if min(abs(w), abs(w - (count - 1))) < tiny:
            return True
        if interp == "nearest" and abs(w - round(w - 0.5) - 0.5) < tiny:
            return True
    if interp == "nearest":
        return False
    if all(abs(w - round(w)) > 99 * tiny for w in (u, v, u + v, u - v)):
        return False  # inside of a triangle
    answers = {terrain.height(x + i * terrain.spacing[0] * tiny * 10,
                              y + j * terrain.spacing[1] * tiny * 10, interp)[0]
               for i in (-1, 0, 1) for j in (-1, 0, 1)}
    return len(answers) > 1


def results(daemon, target, body, count, **named):
    """POSTs a batch and returns its results, after a look at the envelope."""
    answer = daemon.ok("POST", target, body, **named)
    equal(answer.get("locale"), target.split("/")[3], "locale")
    check(isinstance(answer.get("revision"), int) and answer["revision"] >= 1,
          f"revision: {answer.get('revision')!r}")
    check(isinstance(answer.get("results"), list), f"no results: {str(answer)[:300]}")
    equal(len(answer["results"]), count, "number of results")
    return answer["results"]


__all__ = ["NAN", "Terrain", "SHAPES", "shapes", "put_locale", "put_layer", "put_terrain",
           "put_shapes", "random_point", "near_border", "results"]
