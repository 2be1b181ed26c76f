"""Brings the map libraries and physics engines that tests of make test-all load, from npm, into
tests/libraries/node_modules: only the files that are loaded, since with what they depend on they are
230 packages and half a gigabyte. The bundles in them are whole.

Each archive has the hash of PACKAGES, or is refused.
"""
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

PACKAGES = (  # name, version, hash of the archive, files beside package.json; folders end in /
    ("@babylonjs/havok", "1.3.14",
     "sha512-+j2FDwLtkh5Gb//KizE8Ks3GIB/3vH8Yx9cQsMvZQpsKkH5gn089wIlJ9Yt8dJxbwBmWKGpMTIXxZE7YdOHUnQ==",
     ("lib/esm/",)),
    ("@dimforge/rapier3d-compat", "0.21.0",
     "sha512-tCl1HPGwOhn5aCQbgqWbOH+Nx/5fnr3IPAnzQuR7zIhC/raqi2yxC6LhvZqjdI2El5hQgY5RDAwDrAjAi2FdPA==",
     ("dist/rapier.mjs",)),
    ("@mujoco/mujoco", "3.14.0",
     "sha512-WPUYidu4Fx8+uM4hQv80SOA0ifpWGrsNJguKs8JBV8SCTxjKQ2/rqsh880nUH0/Vwa8vuefghvCQkkoed3bkUg==",
     ("mujoco.js", "mujoco.wasm")),
    ("@loaders.gl/terrain", "4.5.4",
     "sha512-7cQL0P+Pc2TznYqS9eudHHzS0ZGPWxjO12Q/hlc8c2Lukoe6WcSyX5dITPq2f1GXrO3z2Ta+WHOOa/vLHJ1jSw==",
     ("dist/terrain-worker.js",)),
    ("cannon-es", "0.20.0",
     "sha512-eZhWTZIkFOnMAJOgfXJa9+b3kVlvG+FX4mdkpePev/w/rP5V8NRquGyEozcjPfEoXUlb+p7d9SUcmDSn14prOA==",
     ("dist/cannon-es.cjs.js", "dist/cannon-es.js")),
    ("cesium", "1.145.0",
     "sha512-6Azix8b5LPpoVSx8XQ6zPztpluJVmq+CEO3W2rOWxtc6bri6Nc9MvCYhKmTW1LAEwfisV7yzNgfulCXw9842+g==",
     ("Build/Cesium/",)),
    ("deck.gl", "9.4.0",
     "sha512-8q5R1CwUNZUYTZ41BC8l6avRvLIEzT9uceh0PHc6Me74dLlpBvYt92pFLpY25i0HFSg9cRiVuidTXFRpmuZbJg==",
     ("dist.min.js",)),
    ("jolt-physics", "1.1.0",
     "sha512-Erl+X0yK2f9/8Wrl55Nb2y9FYS5xDx375EabnHq+TbSDYEuPZBLvpaLV4nbc1M5gyA5Llbug81wSj1zSMRUr7Q==",
     ("dist/jolt-physics.wasm-compat.js",)),
    ("ol", "10.11.0",
     "sha512-OJ+lrx7kx/1O7Xx18Ff9QkVnwZIEL0OuhJQSy2sYgzzDvyZ2qHvuZEGAajbSstUyBwaS1OtQ4RWnY84tRMDdqg==",
     ("dist/ol.js", "ol.css")),
    ("physx-js-webidl", "2.7.3",
     "sha512-AjvvN8lOJNMLYOETKvPy5ZrJiBtNcHlKga5VhHNzj3wMqsq3LEg+kSdJRJsLuksYTBsxiJjxtpS2O/lYYqTPfg==",
     ("physx-js-webidl.mjs", "physx-js-webidl.wasm")),
    ("three", "0.187.0",
     "sha512-Qiu7R+Cmh8CstZsY1uJOSWnVlfo7ZtNLV7mF8Jltk3LB3AtDu9cRZlcnRKkAk8Y4z6KKw35z7Y7Urd7jWY8etA==",
     ("build/three.core.js", "build/three.module.js", "examples/jsm/controls/", "examples/jsm/loaders/",
      "examples/jsm/utils/")),
)
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node_modules")


def fetch(name, version, integrity, files, folder):
    said = subprocess.run(["npm", "pack", f"{name}@{version}", "--silent", "--fetch-retries=1",
                           "--fetch-timeout=60000", "--pack-destination", folder],
                          capture_output=True, text=True, check=True, timeout=300, cwd=folder)
    archive = os.path.join(folder, said.stdout.strip().splitlines()[-1])
    with open(archive, "rb") as file:
        found = "sha512-" + base64.b64encode(hashlib.sha512(file.read()).digest()).decode()
    if found != integrity:
        sys.exit(f"{name} {version} has the hash {found}, not {integrity}")
    place = os.path.join(HERE, *name.split("/"))
    shutil.rmtree(place, ignore_errors=True)
    with tarfile.open(archive) as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            if not member.isfile() or ".." in path or not (
                    path == "package.json" or any(path == one or one[-1] == "/" and path.startswith(one)
                                                  for one in files)):
                continue
            os.makedirs(os.path.dirname(os.path.join(place, path)), exist_ok=True)
            with open(os.path.join(place, path), "wb") as file:
                shutil.copyfileobj(tar.extractfile(member), file)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for package in PACKAGES:
            fetch(*package, folder)
    with open(os.path.join(HERE, ".complete"), "w", encoding="utf-8"):
        pass


if __name__ == "__main__":
    main()
