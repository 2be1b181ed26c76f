"""The table of settings: --help, the manual, the config file and docs/configuration.md are all of it,
and what they say is what the daemon does.
"""
import os
import subprocess
import sys
import tempfile

from daemon import BIN_DIR, KOTAD, ROOT, Daemon, clean_environment
from tap import HANG_S, check, equal, run, test

sys.path.insert(0, os.path.join(ROOT, "deploy"))
import settings  # noqa: E402  (the program that writes the file and the page)

ROWS = settings.table(KOTAD)
COMMANDS = {"check", "healthcheck", "version", "help", "config"}


def kotad(*words):
    return subprocess.run([KOTAD, *words], capture_output=True, text=True, env=clean_environment(),
                          timeout=HANG_S)


@test("kotad --help is at most 60 lines of 100 characters, in groups, and names --help=all")
def _():
    lines = kotad("--help").stdout.splitlines()
    check(len(lines) <= 60, f"{len(lines)} lines")
    for line in lines:
        check(len(line) <= 100, f"{len(line)}: {line}")
    groups = {row[0] for row in ROWS}
    check(len(groups & set(lines)) >= 8, f"groups: {groups & set(lines)}")
    check("--help=all" in lines[-1], lines[-1])
    equal(kotad("-h").stdout, kotad("--help").stdout, "-h")


@test("kotad --help=all has each setting with a text that begins with a noun, its unit and its default")
def _():
    text = kotad("--help=all").stdout
    words = " ".join(text.split())
    for group, name, value, default, _, _, description in ROWS:
        check(group in text.splitlines(), f"no group {group}")
        flag = f"--{name}[={value}]" if name == "help" else f"--{name} {value}".strip()
        shown = f" (default {default})" if default not in ("", "no") else ""
        check(f"{flag} {description}{shown}" in words, f"{flag}: {description}{shown}")
        check(description.split()[0] not in {"of", "in", "that", "for", "what", "who", "how"},
              f"{name}: {description}")
        for unit, word in {"-ms": "MS", "-bytes": "BYTES"}.items():
            check(not name.endswith(unit) or value == word, f"{name}: {value}")
    check(all(len(line) <= 100 for line in text.splitlines()), "a line is longer than 100")


@test("a wrong --help names the right ones")
def _():
    done = kotad("--help=everything")
    equal(done.returncode, 2, "exit status")
    check("true, all, table" in done.stderr, done.stderr)


@test("deploy/kotad.conf and docs/configuration.md are what `make settings` writes")
def _():
    for path, write in (("deploy/kotad.conf", settings.conf), ("docs/configuration.md", settings.page)):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            equal(file.read(), write(ROWS), f"{path} (run make settings)")


@test("the manual has every setting with its text and default")
def _():
    with open(os.path.join(BIN_DIR, "man", "kotad.8"), encoding="utf-8") as file:
        page = " ".join(file.read().replace("\\-", "-").replace('"\\&', "").replace('"', "").split())
    for _, name, value, default, _, _, text in ROWS:
        check(f".It Fl -{name}" in page, f"no --{name}")
        for part in (text, f"(default {default})" if default not in ("", "no") else ""):
            check(part in page, f"--{name}: {part}")


@test("what the config file comments out is what holds without it")
def _():
    # of the machine, or without a default value
    free = {"listen", "ops-listen", "data", "world", "port-file", "ops-port-file", "token-file", "user",
            "audit", "audit-sync",
            "simd", "cluster", "node", "node-url", "locales", "log-format"}
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        path = os.path.join(folder, "kotad.conf")
        for chosen in (lambda name: False, lambda name: name not in free):
            with open(path, "w", encoding="utf-8") as file:
                file.write("".join(f"{name} = {example}\n" for _, name, _, _, example, _, _ in ROWS
                                   if name not in COMMANDS and chosen(name)))
            with Daemon("--config", path) as daemon:
                limits = daemon.ok("GET", "/v1/limits")
            if not chosen("gpu"):
                bare = limits
        equal({name: value for name, value in limits.items() if not name.startswith("patch")},
              {name: value for name, value in bare.items() if not name.startswith("patch")}, "limits")


@test("--listen takes localhost, as its text says")
def _():
    check("localhost" in next(row[6] for row in ROWS if row[1] == "listen"), "the text of --listen")
    with Daemon("--listen", "localhost:0") as daemon:
        equal(daemon.get("/livez").status, 200, "/livez")



run()
