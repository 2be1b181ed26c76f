"""Kota.replica of client/web/kota.js in Node: runs tests/web/replica.mjs, which prints TAP itself.

Needs Node 18 or later and a build with kota_ground.wasm; skipped without, with the reason.
"""
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE_MIN = 18


def why_not():
    build = os.environ.get("KOTA_BIN_DIR", "build/release")
    if any(word in build for word in ("asan", "tsan", "cov")):
        return f"Node beside {build} takes too long"
    node = shutil.which("node")
    if not node:
        return "no node (deploy/install-deps.sh test)"
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    if int(said.lstrip("v").split(".")[0] or 0) < NODE_MIN:
        return f"node {said} is older than {NODE_MIN}"
    if not os.path.exists(os.path.join(ROOT, build, "kota_ground.wasm")):
        return "built without kota_ground.wasm (deploy/install-deps.sh wasm)"
    return None


reason = why_not()
if reason:
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)
os.chdir(ROOT)
os.execvp("node", ["node", os.path.join("tests", "web", "replica.mjs"), *sys.argv[1:]])
