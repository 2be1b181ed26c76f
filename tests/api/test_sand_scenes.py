"""kota-sand: the published scenes in small, and the baking of the packing."""
import os
import re
import subprocess
import tempfile

from daemon import BIN_DIR, ROOT
from images import read_png
from tap import HANG_S, Skip, case, check, equal, run, test

SAND = os.path.join(BIN_DIR, "kota-sand")


def sand(*args):
    return subprocess.run([SAND, *args], capture_output=True, text=True, timeout=HANG_S)


def scene_runs(name, share, patches, granules, *args):
    made = sand("scene", name, "--share", str(share), "--seconds", "1.2", "--interval", "0.1",
                *args)
    if "--gpu" in args and re.match(r"kota-sand: no OpenGL", made.stderr):
        raise Skip(made.stderr)
    equal(made.returncode, 0, f"kota-sand scene {name}: {made.stderr}")
    rows = re.findall(r"^patch \d+: (\w+), (\d+) granules", made.stdout, re.M)
    equal(len(rows), patches, "patches")
    equal(sum(int(count) for _, count in rows), granules, "granules of all patches")
    last = re.search(r"^in all: ([\d.]+) s simulated in .* (\S+) particle-steps/s", made.stdout,
                     re.M)
    check(last, f"no last line: {made.stdout}")
    check(abs(float(last[1]) - 1.2) < 0.02, f"it simulated {last[1]} s, not 1.2")
    check(float(last[2]) > 0, "it counted no particle-steps")
    check(re.search(r" ms [\d.]+ [\d.]+ [\d.]+;$", made.stdout, re.M), "it told no times of phases")
    check(re.search(r"^in all: .* \d+ steps/s, .* of real time, [\d.]+ frames/s", made.stdout, re.M),
          f"the last line is another: {made.stdout}")
    frame = re.search(r"^ms of a frame, p50 p95 p99 max: (\S+) (\S+) (\S+) (\S+)$", made.stdout, re.M)
    check(frame, f"no times of frames: {made.stdout}")
    times = [float(part) for part in frame.groups()]
    check(0 < times[0] and times == sorted(times), f"times of frames: {times}")


case("the dense scene runs", scene_runs, "dense", 0.002, 1, 231, "--threads", "1")
case("the dense scene runs on OpenGL", scene_runs, "dense", 0.002, 1, 231, "--gpu", "software")
case("three scales run side by side", scene_runs, "scales", 0.005, 3, 252 + 68 + 50)
case("ten patches get their bodies one after the other", scene_runs, "ten", 0.001, 10,
     5 * 50 + 62 + 63 + 54 + 67 + 60)


# C. Leach 2014, 6.4.1, 6.4.2 and table 6.2
LEACH = {"dense": [115502], "scales": [202352 // 4, 54876 // 4, 25776 // 4],
         "ten": [41292, 42195, 62773, 63008, 54339, 67282, 41964, 46609, 48128, 60568]}


def scene_is_the_published_one(name, gap_s):
    """All of it, made and not stepped."""
    made = sand("scene", name, "--seconds", "0")
    equal(made.returncode, 0, f"kota-sand scene {name}: {made.stderr}")
    rows = re.findall(r"^patch \d+: \w+, (\d+) granules .* a body of (\d+) particles at ([\d.]+) s",
                      made.stdout, re.M)
    equal([int(row[0]) for row in rows], LEACH[name], "granules")
    equal([float(row[2]) for row in rows], [1 + gap_s * i for i in range(len(rows))], "drops")
    if name == "dense":
        equal(rows[0][1], "6261", "particles of the barrel")
    total = re.search(r"; (\d+) granules, (\d+) particles$", made.stdout, re.M)
    equal([int(part) for part in total.groups()], [sum(LEACH[name]), 4 * sum(LEACH[name])], "in all")
    check("C. Leach 2014, figure 6." in made.stdout, "it does not say what was published")


case("the dense scene has the published numbers", scene_is_the_published_one, "dense", 0)
case("the scene of three scales has the published numbers", scene_is_the_published_one, "scales", 0)
case("the scene of ten has the published numbers", scene_is_the_published_one, "ten", 10)


@test("a packing is baked as C initializers, the same each time")
def bake():
    one, two = sand("bake", "3", "0.45", "9"), sand("bake", "3", "0.45", "9")
    equal(one.returncode, 0, f"kota-sand bake: {one.stderr}")
    equal(one.stdout, two.stdout, "the second packing")
    rows = re.findall(r"^\{[-\d.]+f,[-\d.]+f,[-\d.]+f,0(?:,[-\d.]+f){4}\},$", one.stdout, re.M)
    equal(len(rows), 27, "granules")
    check("kota-sand bake 3 0.45 9" in one.stdout, "it does not say how it was made")


@test("gpu.sh measures nothing where there is no whole GPU")
def gpu_sh():
    auto = sand("device", "auto")
    with tempfile.TemporaryDirectory() as folder:
        build, bin_dir = os.path.join(folder, "build"), os.path.join(folder, "bin")
        os.makedirs(os.path.join(build, "packed"))  # as it is packed: nothing is built
        os.symlink(os.path.abspath(SAND), os.path.join(build, "kota-sand"))
        os.mkdir(bin_dir)

        def gpu(**environment):
            return subprocess.run(
                ["sh", os.path.join(ROOT, "tests", "bench", "gpu.sh"), os.path.join(folder, "out")],
                env={**os.environ, "BUILD": build, "PATH": f"{bin_dir}:{os.environ['PATH']}",
                     **environment}, capture_output=True, text=True, timeout=HANG_S)

        with open(os.path.join(bin_dir, "nvidia-smi"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho '  MIG 1g.18gb Device 0: (UUID: MIG-1)'\n")
        os.chmod(file.name, 0o755)
        got = gpu()
        equal(got.returncode, 1, f"status on a MIG slice: {got.stderr}")
        check("MIG slice" in got.stderr, got.stderr)
        os.remove(file.name)
        if auto.returncode == 0:
            raise Skip("there is a GPU")
        got = gpu()
        equal(got.returncode, 1, f"status without a GPU: {got.stderr}")
        check("no figure would be of a GPU" in got.stderr, got.stderr)
        check(not os.path.exists(os.path.join(folder, "out", "sand.md")), "it made a table")


FRAME, GAP = 480, 4  # pixels


@test("a film of a barrel that falls: over the ground, in it, at rest, and the ground afterwards")
def film():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "film.png")
        made = sand("film", out, "--granules", "600", "--height", "4", "--seconds", "1")
        equal(made.returncode, 0, f"kota-sand film: {made.stderr}")
        with open(out, "rb") as file:
            width, height, channels, _depth, rows = read_png(file.read())
    equal((width, height), (4 * FRAME + 3 * GAP, 360), "pixels of the strip")
    said = re.findall(r"s  (\w+) .* body at (-?[\d.]+) m", made.stdout)
    equal([state for state, _ in said], ["active", "active", "resting", "written"], "states")
    body = [float(z) for _, z in said]
    check(body[0] > body[1] + 0.1 and body[2] == body[3] > -0.8, f"it is at {body} m")
    check(re.search(r"^written back: \d+ x \d+ samples, 0\.\d*[1-9]", made.stdout, re.M), made.stdout)

    def part(frame, x, y, side=40):
        at = (frame * (FRAME + GAP) + x) * channels
        return [row[at:at + side * channels] for row in rows[y:y + side]]

    for frame in range(1, 4):
        equal(part(frame, 0, 0), part(0, 0, 0), f"the ground far off in picture {frame}")
        check(part(frame, 100, 100, 240) != part(frame - 1, 100, 100, 240),
              f"picture {frame} is {frame - 1} again")


@test("a film says what is wrong with a model or a file")
def film_errors():
    with tempfile.TemporaryDirectory() as folder:
        model, out = os.path.join(folder, "open.obj"), os.path.join(folder, "film.png")
        with open(model, "w", encoding="ascii") as file:
            file.write("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
        for args, part in (((out, "--model", model), "not closed"),
                           ((out, "--model", model + "x"), "cannot be read")):
            got = sand("film", *args)
            equal(got.returncode, 1, f"status of {args}")
            check(part in got.stderr, f"it says {got.stderr!r}")
            check(not os.path.exists(out), "it wrote a picture")


@test("what it does not understand it says, with status 2")
def usage():
    for args in ((), ("scene",), ("scene", "eleven"), ("scene", "ten", "--share", "2"),
                 ("scene", "ten", "--seconds", "soon"), ("bake", "2"), ("bake", "3", "0.9"),
                 ("dig",), ("device", "auto", "0"), ("film",), ("film", "x.png", "--granules", "10")):
        got = sand(*args)
        equal(got.returncode, 2, f"status of kota-sand {' '.join(args)}")
        check(got.stderr.startswith("kota-sand: "), f"it says {got.stderr!r}")


run()
