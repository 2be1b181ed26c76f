"""Awake beds of sand: this build's C engine beside an older build's, beside itself on two cores, and
beside LAMMPS (gran/hertz/history on the same clumps, fix rigid/small; Debian's lammps).

    python3 tests/bench/bench_sand_peers.py [--old FOLDER] [--rounds N]

FOLDER has the older build's bench/bench_sand (its build/release); KOTA_BIN_DIR this one's. All run by
turns, and the best of N rounds (3) counts. Rates are of a second of CPU time where the program tells it,
and of the clock on two cores.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rows import row  # noqa: E402

SECTION = "Sand"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NEW = os.path.join(ROOT, os.environ.get("KOTA_BIN_DIR", "build/release"), "bench", "bench_sand")
SIZES = (16000, 64000)
LAMMPS_STEPS = 200
# As material.c has it at r = 0.1 m; LAMMPS's Hertz multiplies by (R_i R_j / (R_i + R_j))^0.5, and its
# damping by the mass of the pair of clumps.
LAMMPS = """units si
atom_style sphere
atom_modify map array
newton off
comm_modify vel yes
boundary f f f
fix clumps all property/atom mol ghost yes
read_data {data} fix clumps NULL Molecules
neighbor 0.03 bin
neigh_modify every 1 delay 0 check yes exclude molecule/intra all
pair_style gran/hertz/history {kn} {kt} {gn} {gt} 0.5 1
pair_coeff * *
timestep {dt}
fix walls all wall/gran hertz/history {kn} {kt} {gn} {gt} 0.5 1 zplane 0 NULL
fix wallx all wall/gran hertz/history {kn} {kt} {gn} {gt} 0.5 1 xplane 0 {side}
fix wally all wall/gran hertz/history {kn} {kt} {gn} {gt} 0.5 1 yplane 0 {side}
fix weight all gravity 9.81 vector 0 0 -1
fix move all rigid/small molecule
thermo_style custom step atoms
thermo {steps}
run 64
run {steps}
"""


def table(program, size, seconds, *more):
    """[(threads, spheres, steps a second, sphere-steps of a CPU second or None)] of the C engine."""
    gpu = "off" if program == NEW else "software"  # older ones print the C engine beside OpenGL only
    done = subprocess.run([program, "--gpu", gpu, "--spheres", str(size), "--seconds", str(seconds),
                           *more], capture_output=True, text=True, check=True)
    head = [cell.strip() for cell in next(l for l in done.stdout.splitlines()
                                          if l.startswith("| engine")).split("|")]
    rows = [[cell.strip() for cell in l.split("|")] for l in done.stdout.splitlines()
            if l.startswith("| c ")]
    find = {name: head.index(name) for name in ("threads", "spheres", "steps/s") if name in head}
    cpu = head.index("of a CPU second") if "of a CPU second" in head else None
    return [(int(r[find["threads"]]) if "threads" in find else 1, int(r[find["spheres"]]), float(r[find["steps/s"]]),
             1e6 * float(r[cpu].split()[0]) if cpu else None) for r in rows]


def lammps(size):
    """Sphere-steps of a CPU second of LAMMPS for the clumps of bench_sand; None without LAMMPS."""
    if not shutil.which("lmp"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        data, script = os.path.join(folder, "data"), os.path.join(folder, "in")
        table(NEW, size, 0.01, "--dump", data)
        text = open(data, encoding="ascii").read()
        side = re.search(r"0 (\S+) xlo", text).group(1)
        radius, mass = 0.1, 4 * 2000 * 4 / 3 * 3.14159265 * 1e-3  # of a clump
        root = (radius / 2) ** 0.5
        kn, gn = 2e6 / root, 2e4 / (root * mass / 2)
        with open(script, "w", encoding="ascii") as file:
            file.write(LAMMPS.format(data=data, kn=kn, kt=1.2 * kn, gn=gn, gt=0.8 * gn, dt=1 / 960,
                                     side=side, steps=LAMMPS_STEPS))
        done = subprocess.run(["lmp", "-in", script, "-log", "none"], capture_output=True, text=True,
                              cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
        loops = re.findall(r"Loop time of (\S+) on 1 procs for (\d+) steps with (\d+) atoms", done.stdout)
        use = re.findall(r"(\S+)% CPU use", done.stdout)
        if done.returncode != 0 or len(loops) != 2:
            raise SystemExit(f"bench_sand_peers: LAMMPS failed:\n{done.stdout[-2000:]}{done.stderr[-500:]}")
        seconds, steps, atoms = loops[-1]
        return int(atoms) * int(steps) / (float(seconds) * float(use[-1]) / 100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--old", help="build folder of an older bench_sand")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    old = os.path.join(options.old, "bench", "bench_sand") if options.old else None
    for size in SIZES:
        best = {}

        def keep(name, value):
            best[name] = max(best.get(name, 0), value)

        for _ in range(options.rounds):
            for threads, spheres, steps, cpu in table(NEW, size, 1):
                keep("two" if threads > 1 else "one", spheres * steps)
                if threads == 1:
                    keep("cpu", cpu)
            for threads, spheres, steps, _cpu in table(old, size, 1) if old else ():
                if threads == 1:
                    keep("old", spheres * steps)
            rate = lammps(size)
            if rate:
                keep("lammps", rate)
        told = ", ".join(f"{name} {value / 1e6:.1f} M" for name, value in best.items())
        print(f"  {size} spheres, sphere-steps a second: {told}", flush=True)
        if old:
            row(SECTION, f"awake bed of {size} spheres, one core", "older C engine, clock",
                best["one"] / best["old"], 2)
        if "lammps" in best:
            row(SECTION, f"awake bed of {size} spheres, one core", "LAMMPS, CPU second",
                best["cpu"] / best["lammps"])
        if "two" in best:
            row(SECTION, f"awake bed of {size} spheres, two cores", "one core", best["two"] / best["one"],
                1.7)


main()
