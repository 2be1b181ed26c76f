"""Walks the path of each reader, with the commands and programs of the documents, and prints its minutes.

    python3 tests/walk-readers.py [PART…]
    sudo sh tests/fresh-machine.sh walk       the same in a bare Debian, from a fresh clone

first    README.md: sh deploy/run, until the first answer
c        docs/start-avatars.md: its program in C, compiled and run
js       README.md: its program in JavaScript, after npm install
python   README.md: its program in Python, after pip install in a new environment
page     docs/start-web.md: three.js from npm, a page in Chromium, a pick of what its camera sees
package  the packages in DEBS, installed and started: the first answer within 20 seconds; needs root
service  docs/production.md: those packages, a token, nginx with TLS; needs root

Each may take five minutes; the build, which `make` does before, does not count. The exit status is 1 when one
does not arrive or takes longer. Port 7420 must be free. c to page need a daemon: `first` is walked before them.
"""
import glob
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILT = os.path.join(ROOT, "build", "release")
URL = "http://127.0.0.1:7420"
MINUTES_MAX = 5
PACKAGE_SECONDS_MAX = 20
processes = []


class Lost(Exception):
    """A reader does not arrive."""


def run(*words, **named):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **named)
    if done.returncode:
        raise Lost(f"{' '.join(words)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def block(page, language, holds=""):
    """The first block of this language of a page that holds a word."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        blocks = re.findall(rf"```{language}\n(.*?)```", file.read(), re.S)
    for text in blocks:
        if holds in text:
            return text
    raise Lost(f"{page} has no {language} with {holds!r}")


def wait_for(what, ready, process, seconds=600):
    end = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            raise Lost(f"{what}: {process.poll()}")
        time.sleep(0.1)


def answers(*words):
    return subprocess.run(["curl", "-sf", *words], stdout=subprocess.DEVNULL, check=False).returncode == 0


def start(*words, **named):
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True, **named)
    processes.append(process)
    return process


def stop(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(120)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def expect(said, wanted):
    if wanted not in said:
        raise Lost(f"{wanted!r} was expected, not {said[-1000:]!r}")


# ---- the paths ----------------------------------------------------------------------------------


def first(_):
    process = start("sh", "deploy/run", cwd=ROOT)
    wait_for("sh deploy/run", lambda: answers(URL + "/readyz"), process)
    command = re.search(r"(?m)^\$ (curl .*)$", block("README.md", "console", "contact")).group(1)
    results = json.loads(run("sh", "-c", command))["results"]
    expect(str([item["status"] for item in results]), "ok")


def c(folder):
    write(folder, "ask.c", block("docs/start-avatars.md", "c", "int main"))
    environment = {**os.environ, "PKG_CONFIG_PATH": BUILT + "/lib/pkgconfig", "LD_LIBRARY_PATH": BUILT + "/lib"}
    said = run("sh", "-c", "cc ask.c $(pkg-config --cflags --libs libkota) -o ask && ./ask", cwd=folder,
               env=environment)
    expect(said, "1000 on the ground")


def js(folder):
    write(folder, "package.json", '{"type": "module", "private": true}')
    run("npm", "install", "--no-audit", "--no-fund", os.path.join(ROOT, "client/web"), cwd=folder)
    write(folder, "ask.mjs", block("README.md", "js", "contact"))
    expect(run("node", "ask.mjs", cwd=folder), "120 80 2.5")


def python(folder):
    run("python3", "-m", "venv", folder + "/venv")
    run(folder + "/venv/bin/pip", "install", os.path.join(ROOT, "client/python"), cwd=folder)
    expect(run(folder + "/venv/bin/python", write(folder, "ask.py", block("README.md", "python", "contact"))),
           "120 80 2.5")


PAGE = """<!doctype html><canvas id="view" width="640" height="360"></canvas>
<script>
const tell = (text) => fetch(`/found?${encodeURIComponent(text)}`);
addEventListener("error", (event) => tell(event.message));
addEventListener("unhandledrejection", (event) => tell(String(event.reason)));
</script>
<script type="importmap">{"imports": {"three": "./node_modules/three/build/three.module.js"}}</script>
<script type="module">
import * as THREE from "three";
import { Kota } from "%s/web/kota.js";
%s
const kota = new Kota("%s"), ground = new THREE.Group();
ground.rotation.x = -Math.PI / 2;
const camera = new THREE.PerspectiveCamera(55, 640 / 360, 1, 10000);
camera.position.set(1450, 330, -3000);
camera.lookAt(2300, 290, -1400);
const canvas = document.getElementById("view"), box = canvas.getBoundingClientRect();
const question = pickQuestion(camera, ground, canvas, { clientX: box.left + 320, clientY: box.top + 250 });
const { status, hit } = await kota.pick("highlands", question);
const same = await kota.pick("highlands", { camera: { eye: [1450, 3000, 330], target: [2300, 1400, 290],
  up: [0, 0, 1], fov_y_deg: 55 }, viewport: [640, 360], pixel: [320, 250] });
const off = hit && same.hit ? Math.hypot(...hit.point.map((v, i) => v - same.hit.point[i])) : -1;
tell(`picked ${status}, ${off >= 0 && off < 0.1 ? "the same" : off}`);
</script>
"""


def page(folder):
    write(folder, "package.json", '{"type": "module", "private": true}')
    run("npm", "install", "--no-audit", "--no-fund", "three", cwd=folder)
    code = block("docs/start-web.md", "js", "pickQuestion").replace("export function", "function")
    write(folder, "index.html", PAGE % (URL, code, URL))
    found = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def do_GET(self):
            if self.path.startswith("/found?"):
                found.append(urllib.parse.unquote(self.path[7:]))
            super().do_GET()

        def log_message(self, *_):
            pass
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not browser:
        raise Lost("no chromium")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        shown = start(browser, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
                      f"--user-data-dir={folder}/profile", f"http://127.0.0.1:{server.server_port}/index.html")
        try:
            wait_for("the page", lambda: found, shown, 120)
        finally:
            stop(shown)
            server.shutdown()
    expect(found[0], "picked hit, the same")


def apt_install(*words):
    run("apt-get", "install", "-y", "--no-install-recommends", *words,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def packages():
    debs = [path for path in glob.glob(os.environ.get("DEBS", "build/dist") + "/*.deb") if "dbgsym" not in path]
    if not debs:
        raise Lost("no packages: DEBS=DIR, or make release")
    return [os.path.abspath(path) for path in debs]


def package(_):
    apt_install("curl")
    apt_install("--download-only", *packages())  # the network's time is not kota's
    began = time.monotonic()
    apt_install(*packages())
    daemon = None
    if not os.path.isdir("/run/systemd/system"):  # a chroot: nobody starts the unit
        daemon = start("kotad", "--config", "/etc/kotad.conf", "--world", "/usr/share/kota/demo")
    wait_for("kotad", lambda: answers(URL + "/v1/locales/highlands/height?x=1000&y=2000"),
             daemon or subprocess.Popen(["sleep", "60"]), 60)
    seconds = time.monotonic() - began
    if daemon:
        stop(daemon)
    print(f"package  {seconds:6.1f} s from package to first answer")
    if seconds > PACKAGE_SECONDS_MAX:
        raise Lost("too long")


def service(folder):
    apt_install("nginx-light", "openssl", "curl", *packages())
    run("sh", "-c", """umask 077
        echo edit $(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \\n') >/etc/kota.tokens""")
    with open("/etc/kota.tokens", encoding="utf-8") as file:
        token = file.read().split()[1]
    os.makedirs("/etc/kota", exist_ok=True)
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
        "-addext", "subjectAltName=DNS:localhost", "-keyout", "/etc/kota/tls.key", "-out", "/etc/kota/tls.crt")
    if os.path.isdir("/run/systemd/system"):
        os.makedirs("/etc/systemd/system/kotad.service.d", exist_ok=True)
        write("/etc/systemd/system/kotad.service.d", "token.conf", "[Service]\nLoadCredential=tokens:/etc/kota.tokens\n")
        with open("/etc/kotad.conf", "a", encoding="utf-8") as file:
            file.write("token-file = /run/credentials/kotad.service/tokens\n")
        run("systemctl", "daemon-reload")
        run("systemctl", "restart", "kotad.socket", "kotad.service")
        daemon = subprocess.Popen(["sleep", "infinity"])
    else:  # a chroot has no systemd: what the unit starts, by hand
        daemon = start("kotad", "--config", "/etc/kotad.conf", "--data", "/var/lib/kota", "--world",
                       "/usr/share/kota/demo", "--token-file", "/etc/kota.tokens")
    processes.append(daemon)
    wait_for("kotad", lambda: answers(URL + "/readyz"), daemon)
    proxy = start("nginx", "-g", "daemon off;", "-c", os.path.join(ROOT, "deploy/nginx.conf"))
    https = ["--cacert", "/etc/kota/tls.crt"]
    wait_for("nginx", lambda: answers(*https, "https://localhost/readyz") or answers(
        *https, "-H", f"Authorization: Bearer {token}", "https://localhost/v1/locales"), proxy, 60)
    put = ["-X", "PUT", "-H", "Content-Type: application/json", "-d", "{}", "https://localhost/v1/locales/yard"]
    if answers(*https, *put):
        raise Lost("a write without a token was accepted")
    if not answers(*https, "-H", f"Authorization: Bearer {token}", *put):
        raise Lost("a write with the token was refused")


PARTS = {"first": first, "c": c, "js": js, "python": python, "page": page, "package": package,
         "service": service}


def main():
    chosen = sys.argv[1:] or list(PARTS)
    lost = 0
    for name in chosen:
        if name in ("package", "service"):
            for process in processes:
                stop(process)
        elif name != "first" and not answers(URL + "/readyz"):
            first(None)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"kota-walk-{name}-") as folder:
            try:
                PARTS[name](folder)
                why = ""
            except (Lost, OSError, ValueError, subprocess.SubprocessError) as error:
                why = f"  {error}"
        minutes = (time.monotonic() - began) / 60
        lost += bool(why) or minutes > MINUTES_MAX
        print(f"{name:8} {minutes:6.2f} min{why or ('' if minutes <= MINUTES_MAX else '  too long')}", flush=True)
    for process in processes:
        stop(process)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
