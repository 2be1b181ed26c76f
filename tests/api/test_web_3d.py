"""The inspector's 3D view in a browser: the other parts of tests/web/inspect.mjs, as test_web.py."""
import sys

sys.argv[1:] = sys.argv[1:] or ["3d"]
import test_web  # noqa: F401  it runs them
