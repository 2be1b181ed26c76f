"""The inspector in a browser: runs tests/web/inspect.mjs, which prints TAP itself. The long forms of the
parts that draw in three dimensions are test_web_3d.py.

Needs Chromium, Node and playwright-core (deploy/install-deps.sh test); skipped without, with the
reason. Sanitizer builds are skipped: every call that the page makes has tests of its own there.
"""
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE_MIN = 18


def why_not():
    """Why the page cannot be looked at here, or None."""
    build = os.environ.get("KOTA_BIN_DIR", "build/release")
    if any(word in build for word in ("asan", "tsan", "cov")):
        return f"a browser on {build} takes too long"
    node = shutil.which("node")
    if not node:
        return "no node (deploy/install-deps.sh test)"
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    if int(said.lstrip("v").split(".")[0] or 0) < NODE_MIN:
        return f"node {said} is older than {NODE_MIN}"
    if not os.path.isdir(os.path.join(ROOT, "tests/web/node_modules/playwright-core")):
        return "no playwright-core: run `npm ci` in tests/web"
    return None


reason = why_not()
if reason:
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)
os.chdir(ROOT)
groups = sys.argv[1:] or (["pages"] if os.environ.get("KOTA_TEST_ALL") else ["pages", "3d"])
os.execvp("node", ["node", os.path.join("tests", "web", "inspect.mjs"), *groups])
