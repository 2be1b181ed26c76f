"""Manual pages: clean, complete, and of the same options as --help; every example of --help works.
"""
import os
import re
import shutil
import subprocess
import tempfile

from daemon import BIN_DIR, ROOT, clean_environment
from kota_cli import kota
from pages import Demo
from tap import HANG_S, Skip, case, check, equal, run, test

PAGES = {"kota.1": "kota", "kotad.8": "kotad"}
COMMANDS = re.findall(r"^  ([a-z]+) +\S", kota("--help").out.decode().split("\nOptions")[0], re.M)
demo = Demo()


def page_path(name):
    return os.path.join(BIN_DIR, "man", name)


def page_text(name):
    """The page as troff shows it, without what makes letters bold."""
    if shutil.which("mandoc"):
        done = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=400", page_path(name)],
                              capture_output=True, check=True)
    elif shutil.which("man"):
        done = subprocess.run(["man", "-l", page_path(name)], capture_output=True, check=True,
                              env=dict(os.environ, MANWIDTH="400", LC_ALL="C.UTF-8"))
    else:
        raise Skip("neither mandoc nor man here")
    return re.sub(".\b", "", done.stdout.decode())


def lint(name):
    if not shutil.which("mandoc"):
        raise Skip("no mandoc here")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page_path(name)],
                          capture_output=True, check=False)
    equal((done.returncode, done.stdout + done.stderr), (0, b""), "mandoc")


def help_texts(program):
    path = os.path.join(BIN_DIR, program)
    how = "--help=all" if program == "kotad" else "--help"
    texts = [subprocess.run([path, how], capture_output=True, check=True).stdout.decode()]
    if program == "kota":
        texts += [kota(name, "--help").out.decode() for name in COMMANDS]
    return texts


def complete(name, program):
    text = page_text(name)
    options = set()
    for said in help_texts(program):
        options |= set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", said.split("Examples:")[0]))
    check(len(options) >= 1, f"{program}: {options}")
    for option in sorted(options):
        check(f"--{option}" in text, f"{name} lacks --{option}")
    if program == "kota":
        for command in COMMANDS:
            check(re.search(rf"^ +kota {command}\b", text, re.M), f"{name} lacks kota {command}")


for page_, program_ in PAGES.items():
    case(f"{page_} is clean mdoc", lint, page_)
    case(f"{page_} has every option of {program_} --help", complete, page_, program_)


@test("kota without arguments teaches: status 0, five commands that work, where to read more")
def _():
    said = kota()
    equal((said.status, said.err), (0, ""), "status and standard error")
    text = said.out.decode()
    commands = re.findall(r"^  kota ([a-z]+ ?.*?)(?:  +.*)?$", text, re.M)
    equal(len(commands), 5, text)
    for command in commands:
        done = kota(*command.split(), "--url", demo.url)
        check(done.status == 0 and b"ok" in done.out + b"ok" * (command[:2] in ("ls", "ra", "lo")),
              f"kota {command}: {done.status} {done.out} {done.err}")
    for word in ("kota --help", "kota help", "man kota", "docs"):
        check(word in text, word)


@test("kota manual prints the page that is built")
def _():
    with open(page_path("kota.1"), "rb") as file:
        check(file.read() == kota("manual").out, "another page")


@test("make install puts pages and completions where they are looked for, and uninstall takes them")
def _():
    if BIN_DIR != os.path.join(ROOT, "build/release"):
        raise Skip("the release build is what is installed")
    with tempfile.TemporaryDirectory() as folder:
        make = ["make", "-s", "-C", ROOT, f"DESTDIR={folder}", "PREFIX=/usr"]
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        subprocess.run([*make, "install"], check=True, env=env, stdout=subprocess.DEVNULL)
        share = os.path.join(folder, "usr/share")
        for path in ("man/man1/kota.1", "man/man8/kotad.8", "bash-completion/completions/kota",
                     "zsh/site-functions/_kota", "fish/vendor_completions.d/kota.fish"):
            check(os.path.getsize(os.path.join(share, path)) > 200, path)
        subprocess.run([*make, "uninstall"], check=True, env=env, stdout=subprocess.DEVNULL)
        left = [os.path.join(top, name) for top, _, names in os.walk(folder) for name in names]
        equal(left, [], "files that are left")


def works(command):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.abspath(BIN_DIR) + ":" + os.environ["PATH"]
        done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=HANG_S,
                              env=clean_environment({"KOTA_URL": demo.url, "PATH": path}))
        if "picture" in command:  # of a daemon that may have no OpenGL
            check(done.returncode == 0 or b"OpenGL" in done.stderr, f"{command}: {done}")
            return
        check(done.returncode == 0, f"{command}: {done}")
        silent = ("patch ls", "model ls", "export", "kota pins", "--remove")  # there is nothing to say
        if not any(word in command for word in silent):
            check(done.stdout, f"{command} prints nothing")


for name_ in COMMANDS:
    text_ = kota(name_, "--help").out.decode()
    for line_ in re.findall(r"^  (.+)$", (text_.split("Examples:\n") + [""])[1].split("\n\n")[0], re.M):
        case(f"example: {line_}", works, line_)


run(demo.stop)
