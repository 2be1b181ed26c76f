"""README and docs/*.md tell the truth: every block of a page is run, in the page's order.

  ```console   lines `$ command`; the lines after one are its output. `…` stands for anything, and JSON may
               be laid out over lines. `console terminal`: standard output is a terminal.
  ```sh        commands that succeed. `sh elsewhere`: run by another test, which the page names.
  ```c ```js ```python   programs. One that begins with an import or #include stands for itself; others
               continue the one before, and a piece of C gets `client` and `url`. What a line prints may
               be in its comment (`// 1`, `# 1`); a block ```text after a program is all that it prints.

The daemon of a page is the demo world's, or what its own `kotad` lines start. Folders and ports are the
test's own. `test_docs.py --write README.md` puts true outputs into a page's console blocks.
"""
import fcntl
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios

import yaml

from background import free_port
from daemon import BIN_DIR, ROOT, SLOW, Daemon, clean_environment, data_path
from pages import commands, demo_world
from tap import Failure, Skip, case, check, equal, run, test

sys.path.insert(0, os.path.join(ROOT, "tests", "cluster"))
from postgres import account, end_with_parent, place, programs  # noqa: E402

BLOCK = re.compile(r"^```([a-z]*)([^\n]*)\n(.*?)^```$", re.M | re.S)
PLACES = re.compile(r"(?<![\w/.-])/(?:var/lib/kota(?:-restored)?|var/backups/kota|srv/world|etc/kota\.tokens"
                    r"|tmp/kota-cluster)\b")
PROGRAMS = ("c", "js", "python")
COMMENT = {"js": r"^\s*console\.log\(.*?;  // (.*)$", "python": r"^\s*print\(.*?  # (.*)$"}
SECONDS = 300 * SLOW
FRAME = """#include <kota.h>
#include <math.h>
#include <stdio.h>

static void snippet(struct kota_client *client, const char *url)
{{
    (void)client, (void)url;
{body}}}

int main(int argc, char **argv)
{{
    struct kota_options options;
    struct kota_client *client;

    if (argc != 2)
        return 2;
    kota_options_init(&options, sizeof(options));
    options.url = argv[1];
    client = kota_open(&options);
    snippet(client, argv[1]);
    kota_close(client, NULL, NULL);
    return 0;
}}
"""


class Reader:
    """One who follows a page: a folder, ports, what has been started, the programs so far."""

    def __init__(self, page):
        self.page = page
        self.folder = tempfile.mkdtemp(prefix="kota-docs-", dir=place(False))
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.work)
        for name in ("client", "deploy", "docs", "proto", "tests"):
            os.symlink(os.path.join(ROOT, name), os.path.join(self.work, name))
        os.makedirs(os.path.join(self.work, "build", "release"))
        for name in os.listdir(BIN_DIR):
            os.symlink(os.path.join(BIN_DIR, name), os.path.join(self.work, "build/release", name))
        os.makedirs(self.folder + "/srv")
        os.makedirs(self.folder + "/etc")
        os.symlink(demo_world(), self.folder + "/srv/world")
        os.symlink(demo_world(), os.path.join(self.work, "build", "demo"))
        module = os.path.join(self.work, "node_modules", "kota-client")
        os.makedirs(module)
        for name in ("kota.js", "kota_answer.js", "kota_feed.js", "kota_maps.js"):
            os.symlink(os.path.join(ROOT, "client", "web", name), os.path.join(module, name))
        with open(os.path.join(module, "package.json"), "w", encoding="utf-8") as file:
            file.write('{"type": "module", "exports": "./kota.js"}')
        self.ports, self.daemons, self.engine = {}, {}, None

    # ---- names: the page's ports and folders, and ours

    def own(self, text):
        text = PLACES.sub(lambda match: self.folder + match.group(), text)
        return re.sub(r"127\.0\.0\.1:(\d+)|port=(\d+)|-p (\d+)", self.own_port, text)

    def own_port(self, match):
        port = match.group(1) or match.group(2) or match.group(3)
        return match.group().replace(port, str(self.ports.get(port, port)))

    def theirs(self, text):
        text = text.replace(os.path.realpath(self.folder), "").replace(self.folder, "")
        for port, own in self.ports.items():
            text = text.replace(f"127.0.0.1:{own}", f"127.0.0.1:{port}")
        return text

    def need_daemon(self):
        if not self.daemons:
            self.start("kotad --world build/demo")

    @property
    def url(self):
        self.need_daemon()
        return self.daemons["7420"].url

    def environment(self):
        lib = os.path.join(BIN_DIR, "lib")
        return clean_environment({
            "KOTA_URL": self.url if "7420" in self.ports else "", "KOTA": self.ports.get("KOTA", ""),
            "LC_ALL": "C.UTF-8", "PATH": f"{BIN_DIR}:{programs() or ''}:{os.environ['PATH']}",
            "PKG_CONFIG_PATH": os.path.join(lib, "pkgconfig"), "LD_LIBRARY_PATH": lib,
            "PYTHONPATH": os.path.join(ROOT, "client", "python"), "PYTHONDONTWRITEBYTECODE": "1"})

    # ---- daemons

    def start(self, command):
        words = [self.own(word) for word in shlex.split(command.rstrip(" &"))[1:]]
        words = [demo_world() if word == "build/demo" else word for word in words]
        port, ops = "7420", None
        for flag in ("--listen", "--ops-listen"):
            if flag in words:
                at = words.index(flag)
                asked = shlex.split(command.rstrip(" &"))[1:][at + 1].rpartition(":")[2]
                port, ops = (asked, ops) if flag == "--listen" else (port, asked)
                del words[at:at + 2]
        if port in self.daemons:
            self.daemons.pop(port).stop()
        ops_file = os.path.join(self.folder, "ops-port")
        if ops:
            words += ["--ops-listen", "127.0.0.1:0", "--ops-port-file", ops_file]
        if words and words[0].endswith(".hgt"):
            words[0] = data_path("rasters", "srtm3_" + words[0].split(".")[0], words[0])
        self.daemons[port] = Daemon(*words)
        self.ports[port] = self.daemons[port].port
        self.ports["KOTA"] = self.daemons[port].url
        if ops:
            with open(ops_file, encoding="utf-8") as file:
                self.ports[ops] = int(file.read())

    def start_postgres(self, command):
        if not programs():
            raise Skip("no PostgreSQL")
        self.engine = subprocess.Popen(shlex.split(self.own(command.rstrip(" &"))), **account(),
                                       env=self.environment(), stdin=subprocess.DEVNULL, cwd="/",
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       preexec_fn=end_with_parent)

    # ---- commands

    def run(self, command, is_terminal=False):
        """What it prints, and its exit status."""
        for word in ("curl", "sqlite3", "promtool", "gdal_translate", "jq", "node", "pip"):
            if re.search(rf"(^|[|(] *){word} ", command) and not shutil.which(word):
                raise Skip(f"no {word}")
        first = shlex.split(command)[0].rpartition("/")[2] if "'" not in command[:1] else ""
        if first == "initdb":
            if not programs():
                raise Skip("no PostgreSQL")
            self.ports["5433"] = free_port()
            os.makedirs(self.folder + "/tmp/kota-cluster/db", mode=0o700)
            os.chmod(self.folder, 0o755)
            if account():
                shutil.chown(self.folder + "/tmp/kota-cluster/db", account()["user"], account()["group"])
        elif first == "postgres":
            return self.start_postgres(command) or "", 0
        elif first == "kotad" and not re.search("--check|--version|--help", command):
            return self.start(command) or "", 0
        elif first not in ("createdb", "until", "kota-worldgen") or not self.engine:
            self.need_daemon()
        text = self.own(command)
        if "pidof" in text:
            text = re.sub(r"\$\(pidof[^)]*\)", str(self.daemons["7420"].process.pid), text)
        who = account() if first in ("initdb", "createdb") else {}
        how = {**who, "env": self.environment(), "cwd": "/" if who else self.work}
        if is_terminal:
            return on_terminal(text, how), 0
        done = subprocess.run(["sh", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SECONDS, check=False, **how)
        return self.theirs(done.stdout.decode()).rstrip("\n"), done.returncode

    def console(self, is_terminal, block):
        for command, want in commands(block):
            got, status = self.run(command, is_terminal)
            check(status == 0 or "timeout " in command or want, f"{command}: {status}\n{got[-2000:]}")
            if not agrees(got, want):
                raise Failure(f"{command}\nprinted\n{got[-3000:]}\nand the page says\n{want}")

    def written(self, is_terminal, block):
        lines = []
        for command, want in commands(block):
            got, _ = self.run(command, is_terminal)
            got = want if agrees(got, want) else got
            lines += ["$ " + command] + ([got] if got else [])
        return "\n".join(lines) + "\n"

    def shell(self, block):
        joined = re.sub(r"\\\n|(?<=\|)\n", " ", block)
        for line in filter(None, (re.sub(r"(^|  +)# .*", "", line).strip() for line in joined.splitlines())):
            got, status = self.run(line)
            check(status == 0, f"{line}: {status}\n{got[-2000:]}")

    # ---- programs

    def program(self, language, text, wanted):
        self.need_daemon()
        got = getattr(self, language)(self.own(text))
        if wanted is not None:
            check(agrees(got.rstrip("\n"), wanted.rstrip("\n")), f"printed\n{got}\nand the page says\n{wanted}")
        elif language in COMMENT:
            comments = re.findall(COMMENT[language], text, re.M)
            if comments:
                equal(got.splitlines(), comments, "what the comments say")

    def output(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.work, timeout=SECONDS,
                              env=self.environment(), check=False)
        check(done.returncode == 0 and (not done.stderr or "impatient" in done.stderr + str(command)),
              f"{done.returncode}: {done.stdout[-2000:]}{done.stderr[-3000:]}")
        return self.theirs(done.stdout)

    def file(self, name, text):
        with open(os.path.join(self.work, name), "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def c(self, text):
        if not shutil.which("pkg-config"):
            raise Skip("no pkg-config")
        if not text.startswith("#include"):
            text = FRAME.format(body=text)
        extra = {"asan": ["-fsanitize=address,undefined"], "tsan": ["-fsanitize=thread"],
                 "cov": ["--coverage"]}.get(os.path.basename(os.path.normpath(BIN_DIR)), [])
        flags = self.output("pkg-config", "--cflags", "--libs", "libkota", "libkota-ground", "libuv").split()
        self.output(os.environ.get("CC", "cc"), "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
                    "-g", self.file("page.c", text), *extra, *flags, "-lm", "-o", "page")
        return self.output("./page", self.url)

    def js(self, text):
        if not shutil.which("node"):
            raise Skip("no node")
        return self.output("node", self.file("page.mjs", text))

    def python(self, text):
        return self.output(sys.executable, self.file("page.py", text))

    def stop(self):
        try:
            for daemon in self.daemons.values():
                daemon.stop()
        finally:
            for daemon in self.daemons.values():
                if daemon.is_alive():
                    daemon.kill()
            if self.engine:
                self.engine.terminate()
                self.engine.send_signal(signal.SIGINT)  # a fast stop
                self.engine.wait()
            shutil.rmtree(self.folder, ignore_errors=True)


def agrees(got, want):
    """The same, … being anything; JSON may have any layout."""
    if want.startswith("{"):
        got, want = (re.sub(r"\s*([{}\[\],:])\s*", r"\1", text) for text in (got, want))
    return re.fullmatch(".*".join(map(re.escape, want.split("…"))), got, re.S)


def on_terminal(command, how):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    process = subprocess.Popen(["sh", "-c", command], stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                               **how)
    os.close(slave)
    out = b""
    while True:
        try:
            more = os.read(master, 1 << 16)
        except OSError:
            break
        if not more:
            break
        out += more
    os.close(master)
    said = process.stderr.read()
    equal((process.wait(timeout=SECONDS), said), (0, b""), command)
    return out.decode().replace("\r\n", "\n").rstrip("\n")


def text_of(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def steps(page):
    """[(name, function of a Reader)] of a page: each console and sh block, each program."""
    found, group = [], None
    blocks = [match.groups() for match in BLOCK.finditer(text_of(page))]
    for i, (language, more, text) in enumerate(blocks):
        after = blocks[i + 1] if i + 1 < len(blocks) else ("", "", "")
        wanted = after[2] if after[0] == "text" else None
        first = text.strip().split("\n")[0][:60]
        if language == "console":
            found.append((first, lambda reader, t=text, m=more: reader.console("terminal" in m, t)))
        elif language == "sh" and "elsewhere" not in more:
            found.append((first, lambda reader, t=text: reader.shell(t)))
        elif language == "c":
            found.append((f"C: {first}", lambda reader, t=text, w=wanted: reader.program("c", t, w)))
        elif language in PROGRAMS:
            if not re.match(r"(import|from) ", text) and group and group[0] == language:
                group[1] += "\n" + text
                group[2] = wanted
            else:
                group = [language, text, wanted]
                found.append((f"{language}: {first}", lambda reader, g=group: reader.program(*g)))
    return found


def pages():
    folder = os.path.join(ROOT, "docs")
    return ["README.md"] + sorted("docs/" + name for name in os.listdir(folder) if name.endswith(".md"))


READERS = {}


def follow(page, step):
    if page not in READERS:
        finish()  # one page's daemons at a time
        READERS[page] = Reader(page)
    step(READERS[page])


def finish():
    for page in list(READERS):
        READERS.pop(page).stop()


def write(page):
    reader = Reader(page)

    def renewed(match):
        language, more, text = match.groups()
        if language == "console":
            text = reader.written("terminal" in more, text)
        return f"```{language}{more}\n{text}```"
    try:
        text = BLOCK.sub(renewed, text_of(page))
    finally:
        reader.stop()
    with open(os.path.join(ROOT, page), "w", encoding="utf-8") as file:
        file.write(text)


@test("a block is of a kind that is run; what is run elsewhere names a file that is there")
def _():
    for page in pages():
        text = text_of(page)
        for language, more, block in BLOCK.findall(text):
            kinds = ("console", "sh", "text", "html", "json", "ini") + PROGRAMS
            check(language in kinds, f"{page}: a block of {language or 'no language'}: {block[:60]}")
            if "elsewhere" in more:
                named = re.findall(r"`((?:sh |sudo sh )?tests/[\w/.-]+)", text)
                check(named, f"{page}: which test runs {block[:60]}?")
        equal(text.count("```") % 2, 0, f"{page}: fences")
        check("```" not in BLOCK.sub("", text), f"{page}: a fence that is not at the start of a line")


def kota_commands():
    said = subprocess.run([os.path.join(BIN_DIR, "kota"), "--help"], stdout=subprocess.PIPE, check=True).stdout
    return set(re.findall(r"^  ([a-z]+) ", said.decode().split("\nOptions")[0], re.M))


@test("each flag in backquotes is one of kotad or kota; defaults in cluster.md's table are kotad's")
def _():
    said = subprocess.run([os.path.join(BIN_DIR, "kotad"), "--help=table"], stdout=subprocess.PIPE,
                          env=clean_environment(), check=True).stdout.decode()
    flags = {line.split("\t")[1]: line.split("\t")[4] for line in said.splitlines()}
    known = set(flags) | {"check", "healthcheck", "help", "version", "model"}  # model: of kota-sand film
    for name in ["--help"] + sorted(kota_commands()):
        said = subprocess.run([os.path.join(BIN_DIR, "kota"), *([name] if name[0] == "-" else ["help", name])],
                              stdout=subprocess.PIPE, check=True).stdout.decode()
        known |= set(re.findall(r"--([a-z][a-z-]+)", said))
    for page in ("operating", "cluster", "production", "security", "limits", "life-cycle", "sand", "command-line"):
        text = text_of(f"docs/{page}.md")
        for name in set(re.findall(r"`--([a-z][a-z-]+)", text)):
            check(name in known, f"docs/{page}.md: there is no --{name}")
    for name, default in re.findall(r"(?m)^\| `--([a-z-]+) [^|]*\| (\d+) \|", text_of("docs/cluster.md")):
        equal(flags[name], default, f"--{name}")


@test("docs/command-line.md lists every command, and only commands")
def _():
    row = re.search(r"^\| `ls`.*$", text_of("docs/command-line.md"), re.M).group(0)
    equal(set(re.findall(r"`([a-z]+)`", row)), kota_commands(), "commands")


@test("docs/api.md has each call once, with its method, its path and what it is for")
def _():
    with open(os.path.join(ROOT, "proto", "openapi.yaml"), encoding="utf-8") as file:
        paths = yaml.safe_load(file)["paths"]
    wanted = {one["operationId"]: f"{method.upper()} {path}" for path, item in paths.items()
              for method, one in item.items() if method != "parameters"}
    found = {}
    for names, requests, meaning in re.findall(r"^\| (`[a-z]\w+`(?: `\w+`)*) \| (`[A-Z].*?`) \| (.+) \|$",
                                               text_of("docs/api.md"), re.M):
        check(len(meaning) >= 12, f"{names}: {meaning}")
        methods, asked = [], []
        for word in re.findall(r"`(.*?)`", requests):
            methods.append(word.partition(" ")[0])
            if " " in word:
                asked += [f"{method} {word.partition(' ')[2]}" for method in methods]
                methods = []
        for name, request in zip(re.findall(r"`(\w+)`", names), asked, strict=True):
            check(name not in found, f"{name} is there twice")
            found[name] = request.replace("…", "/v1/locales/{locale}")
    equal(found, wanted, "calls")


def main():
    if sys.argv[1:2] == ["--write"]:
        for page in sys.argv[2:]:
            write(page)
        return
    for page in pages():
        for name, step in steps(page):
            case(f"{page}: {name}", follow, page, step)
    run(finish)


main()
