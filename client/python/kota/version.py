"""The version: that of client/lib/kota.h. A wheel has it as a constant (build_wheel.py)."""
import pathlib
import re


def _read():
    try:
        header = (pathlib.Path(__file__).resolve().parents[2] / "lib" / "kota.h").read_text()
    except (OSError, IndexError):
        return "0"  # the folder has been copied out of its tree
    return ".".join(re.findall(r"#define KOTA_VERSION_\w+ (\d+)", header))


VERSION = _read()
