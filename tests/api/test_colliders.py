"""Which triangulation the colliders of physics libraries use: rough ground in each of them, rays down, and
kota's own heights of the same samples by each triangulation. docs/engines.md has what is found here."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from daemon import ROOT, Daemon
from fields import Terrain, put_terrain
from oracle import ALTERNATING, ANTI, MAIN
from tap import HANG_S, Skip, check, equal, rng, run, test

SIDE, POINTS, STEP_M = 8, 400, 0.01  # 8: Jolt takes whole blocks; PhysX has 16 bits a height
FOLDER = os.path.join(ROOT, "tests", "libraries")
daemon = Daemon()
random = rng("colliders")
heights = [[random.uniform(0, 10) for _ in range(SIDE)] for _ in range(SIDE)]
points = [[random.uniform(0, SIDE - 1), random.uniform(0, SIDE - 1)] for _ in range(POINTS)]
ground = {}
for name in (ANTI, MAIN, ALTERNATING):
    put_terrain(daemon, name, Terrain(SIDE, SIDE, heights, (1.0, 1.0), (0.0, 0.0), name))
    answer = daemon.ok("POST", f"/v1/locales/{name}/height", {"points": points})
    ground[name] = [result["height"] for result in answer["results"]]


def told():
    """{library and variant: the last column} of the page's table."""
    with open(os.path.join(ROOT, "docs", "engines.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| [^|]*\|$", file.read(), re.M)
    return {f"{re.sub(' [0-9.]+$', '', library)}, {made.replace('`', '')}": split.replace("`", "")
            for library, made, split in rows}


def split_of(found):
    """The triangulation that gives these heights; None: none of kota's."""
    equal(len(found), POINTS, "heights")
    same = [name for name, wanted in ground.items()
            if all(h is not None and abs(h - w) < STEP_M for h, w in zip(found, wanted))]
    check(len(same) < 2, "the points do not tell triangulations apart")
    return same[0] if same else None


def compare(found, libraries):
    """found: {variant: heights, or why there are none}"""
    page, seen = told(), {}
    for name, values in found.items():
        check(not isinstance(values, str), f"{name}: {values}")
        seen.setdefault(re.sub(", (rays|contacts)$", "", name), []).append(split_of(values))
    for name, splits in seen.items():
        print(f"# {name}: {splits}")
        split = splits[0] if len(set(splits)) == 1 else "rays and contacts differ"
        equal(page.get(name), split, f"{name} in docs/engines.md")
    missing = {name for name in page if name.split(",")[0] in libraries} - set(seen)
    equal(missing, set(), "rows that nothing was found for")


@test("libraries from npm: cannon-es, Havok, Jolt, MuJoCo, PhysX, Rapier")
def _():
    if not shutil.which("node"):
        raise Skip("no node here")
    if not os.path.exists(os.path.join(FOLDER, "node_modules", ".complete")):
        raise Skip("no libraries: python3 tests/libraries/fetch.py")
    ran = subprocess.run(["node", "colliders.mjs"], cwd=FOLDER, capture_output=True, text=True, timeout=HANG_S,
                         input=json.dumps({"side": SIDE, "heights": heights, "points": points}), check=False)
    check(ran.returncode == 0, ran.stderr[-2000:])
    compare(json.loads(ran.stdout.splitlines()[-1]), {"cannon-es", "Havok", "Jolt", "MuJoCo", "PhysX", "Rapier"})


def native(library, package, more):
    if not shutil.which("c++") or not shutil.which("pkg-config"):
        raise Skip("no c++ or pkg-config here")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True, check=False)
    if flags.returncode:
        raise Skip(f"no headers of {library} here (deploy/install-deps.sh test)")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "colliders")
        subprocess.run(["c++", "-O1", f"-D{library.upper()}", "-o", program, "colliders.cc",
                        *flags.stdout.split(), *more], cwd=FOLDER, check=True)
        numbers = [SIDE, *(h for row in heights for h in row), *(v for point in points for v in point)]
        ran = subprocess.run([program], input=" ".join(map(repr, numbers)), capture_output=True, text=True,
                             check=True, timeout=HANG_S)
    lines = (line.split("\t") for line in ran.stdout.splitlines())
    compare({name: [float(word) for word in values.split()] for name, values in lines}, {library})


@test("Bullet")
def _():
    native("Bullet", "bullet", ["-lBulletCollision", "-lLinearMath"])


@test("ODE")
def _():
    native("ODE", "ode", [])


run(daemon.stop)
