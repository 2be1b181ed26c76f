"""Ground to granules and back, by kota-sand compare: what must not change, and by how much the rest.

Short forms on the C engine and on OpenGL's software renderer; KOTA_LONG=1 (make physics) runs the
published numbers of conversions and impacts, at three scales.
"""
import os
import re
import subprocess

from daemon import BIN_DIR, SLOW
from tap import Skip, case, check, equal, run

SAND = os.path.join(BIN_DIR, "kota-sand")
LONG = os.environ.get("KOTA_LONG") == "1"
LEACH_ERROR_M = 0.411  # C. Leach 2014, figure 6.14, at his base scale
SMALL = ("--size", "5.4", "--depth", "1.8", "--cells", "12")  # six diameters of coarse granules


def compare(what, *args):
    """The rows of the table, as lists of numbers where they are numbers."""
    made = subprocess.run([SAND, "compare", what, *args], capture_output=True, text=True,
                          timeout=(3000 if LONG else 600) * SLOW)
    if "--gpu" in args and re.match(r"kota-sand: no OpenGL", made.stderr):
        raise Skip(made.stderr)
    equal(made.returncode, 0, f"kota-sand compare {what}: {made.stderr}")
    if LONG:
        print("\n".join(f"# {line}" for line in made.stdout.splitlines()))
    rows = [line.strip("| ").split(" | ") for line in made.stdout.splitlines()
            if line.startswith("| ")]
    names = rows[0]
    return [dict(zip(names, [float(cell) if re.fullmatch(r"-?[\d.]+", cell) else cell
                             for cell in row])) for row in rows[1:]]


def repeated(count, *args):
    rows = compare("repeat", "--count", str(count), *args)
    last = {row["way"]: row for row in rows if row["conversions"] == count}
    equal(last["difference"]["samples changed"], 0, f"samples after {count} conversions")
    equal(last["difference"]["volume gained %"], 0, "volume gained")
    check(last["overwrite"]["samples changed"] > 0, "overwriting changed nothing: it is no other way")
    check(abs(last["overwrite"]["volume gained %"]) > 1, "overwriting gained nothing")


def impacts(count, *args):
    rows = compare("impacts", "--count", str(count), *args)
    equal(len(rows), count, "impacts")
    for row in rows:
        what = f"impact {row['impact']:.0f}"
        check(row["moved m3"] > 0, f"{what} moved nothing")
        equal(row["outside"], 0, f"samples outside the patch that have changed by {what}")
        equal(row["unmoved"], 0, f"samples that changed under texels that did not, by {what}")
        check(abs(row["volume drift %"]) < 1, f"{what}: the volume drifted {row['volume drift %']} %")


def scales(count, *args):
    rows = compare("scales", "--count", str(count), *args)
    equal([row["scale"] for row in rows], ["coarse", "medium", "fine"], "scales")
    for row in rows:
        check(row["samples changed"] > 0, f"{row['scale']}: nothing moved")
        equal(row["outside"], 0, f"{row['scale']}: samples outside that changed")
        equal(row["unmoved"], 0, f"{row['scale']}: samples that changed where nothing moved")
    errors = [row["mean error m"] for row in rows]
    check(0 < errors[0] < LEACH_ERROR_M, f"the error is {errors[0]} m at the coarse scale")
    check(errors[2] < errors[1] < errors[0], f"errors do not fall with the scale: {errors}")


def fills(*args):
    packing, columns = compare("fill", *args)
    check(columns["granules"] < packing["granules"], "columns hold as much as the packing")
    check(columns["sunk m"] > packing["sunk m"], f"columns sank by {columns['sunk m']} m, the "
          f"packing by {packing['sunk m']} m")
    check(columns["settled after s"] > packing["settled after s"],
          f"columns rested after {columns['settled after s']} s, the packing after "
          f"{packing['settled after s']} s")


case("ground that nothing fell on is the same after conversions, overwritten ground is not",
     repeated, 15 if LONG else 2, *(() if LONG else SMALL))
case("the same on OpenGL", repeated, 1, *SMALL, "--gpu", "software")
for _scale in ("coarse", "medium", "fine") if LONG else ("coarse",):
    case(f"12 impacts in one place keep the volume and all that did not move, {_scale} granules",
         impacts, 12, "--scale", _scale, *(() if LONG else SMALL))
case("impacts on OpenGL keep them, too", impacts, 12 if LONG else 1, *SMALL, "--gpu", "software")
case("what is written is near the granules, nearer the smaller they are", scales, 3 if LONG else 1)
case("the packing rests sooner and sinks less than stacked columns", fills)

run()
