"""The temporary folder of a test program, and new folders in it."""
import itertools
import os
import tempfile

folder = tempfile.TemporaryDirectory(prefix="kota-test-")
_numbers = itertools.count()


def fresh():
    """The path of a new folder."""
    path = os.path.join(folder.name, f"d{next(_numbers)}")
    os.mkdir(path)
    return path
