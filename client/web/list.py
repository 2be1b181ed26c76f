"""Writes the table of the inspector's files, which server/api/calls/web.c embeds.

    python3 client/web/list.py MADE... >web_assets.inc      (called by the Makefile)

MADE are files that the build has made, beside those of this folder, of map/, scene/ and types/. In /web/
all are in one folder.

A line a file: WEB_ASSET(symbol, "name", "media type", "tag", "path"). The tag is of the content, so
that a browser asks again with it and gets 304 until the file has changed.
"""
import glob
import hashlib
import os
import re
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".glsl": "text/plain; charset=utf-8",
         ".svg": "image/svg+xml", ".ts": "text/plain; charset=utf-8", ".wasm": "application/wasm"}
HERE = os.path.dirname(os.path.relpath(__file__))


def main():
    files = [path for folder in ("", "map", "scene", "types")
             for path in glob.glob(os.path.join(HERE, folder, "*"))]
    for path in sorted(files, key=os.path.basename) + sys.argv[1:]:
        name, ending = os.path.basename(path), os.path.splitext(path)[1]
        if ending not in TYPES:
            continue
        if not re.fullmatch(r"[a-z0-9_.-]{1,60}", name):
            raise SystemExit(f"{path}: a name has a-z, 0-9, _ . - alone")
        with open(path, "rb") as file:
            tag = hashlib.sha256(file.read()).hexdigest()[:24]
        symbol = re.sub(r"\W", "_", name)
        print(f'WEB_ASSET({symbol}, "{name}", "{TYPES[ending]}", "\\"{tag}\\"", "{path}")')


if __name__ == "__main__":
    sys.exit(main())
