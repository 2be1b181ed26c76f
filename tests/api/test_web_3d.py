"""The long forms of the inspector's 3D view in a browser, run as test_web.py runs its parts."""
import sys

sys.argv[1:] = sys.argv[1:] or ["3d"]
import test_web  # noqa: F401  it runs them
