"""libkota and kota over TLS, through a proxy and over a Unix socket, each with the real thing.

TLS is nginx with a certificate that openssl makes for the test, on loopback. A small program in C calls
the library and prints the kind of each error, or the status.
"""
import os
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

from daemon import BIN_DIR, ROOT, Daemon, clean_environment
from proxies import Front
from tap import HANG_S, check, equal, run, test

LIB = os.path.join(BIN_DIR, "lib")
CC = os.environ.get("CC", "cc")
EXTRA = {"asan": ["-fsanitize=address,undefined"], "tsan": ["-fsanitize=thread"],
         "cov": ["--coverage"]}.get(os.path.basename(os.path.normpath(BIN_DIR)), [])
TOKEN_TEXT = "edit-over-tls-0123456789abcdef"
SOURCE = """
#include <kota.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* asker URL CA_FILE|- MEGABYTES TRIES: each call's outcome, as a line. SIGPIPE is not handled. */
int main(int argc, char **argv)
{
    struct kota_options options;
    struct kota_client *client;
    size_t length = strtoul(argv[3], NULL, 10) << 20;
    char *much = calloc(1, length + 1);

    signal(SIGPIPE, SIG_DFL);
    kota_options_init(&options, sizeof options);
    options.url = argv[1];
    options.ca_file = strcmp(argv[2], "-") == 0 ? NULL : argv[2];
    options.token = getenv("TOKEN");
    options.tries_max = 1;
    client = kota_open(&options);
    for (int i = 0; i < atoi(argv[4]); i++) {
        struct kota_request *request =
            length ? kota_request_new("POST", "/v1/anything") : kota_locale("land");
        struct kota_answer *answer;

        if (length)
            kota_request_body_borrowed(request, "application/octet-stream", much, length);
        answer = kota_call(client, request);
        if (kota_answer_error(answer))
            printf("%s %s\\n", kota_error_name(kota_answer_error(answer)->kind),
                   kota_answer_error(answer)->message);
        else
            printf("%d\\n", kota_answer_status(answer));
        kota_answer_free(answer);
    }
    kota_close(client, NULL, NULL);
    free(much);
    return argc == 5 ? 0 : 2;
}
"""

folder = tempfile.TemporaryDirectory(prefix="kota-test-")
asker = os.path.join(folder.name, "asker")
with open(asker + ".c", "w", encoding="utf-8") as file:
    file.write(SOURCE)
subprocess.run([CC, "-Wall", "-Wextra", "-Werror", *EXTRA, asker + ".c", "-o", asker, "-I",
                os.path.join(ROOT, "client", "lib"), "-L", LIB, "-lkota"], check=True)


def ask(url, ca_file="-", megabytes=0, tries=1, **env):
    """The lines that the program prints; it must end by itself, with 0."""
    done = subprocess.run([asker, url, ca_file, str(megabytes), str(tries)], capture_output=True, text=True,
                          timeout=HANG_S, env={**clean_environment(), "LD_LIBRARY_PATH": LIB, **env})
    equal(done.returncode, 0, f"exit status ({done.stdout}{done.stderr})")
    return done.stdout.splitlines()


def kota(*args, **env):
    return subprocess.run([os.path.join(BIN_DIR, "kota"), *args], capture_output=True, text=True,
                          timeout=HANG_S, env={**clean_environment(), **env})


tokens = os.path.join(folder.name, "tokens")
with open(tokens, "w", encoding="utf-8") as file:
    file.write(f"edit {TOKEN_TEXT}\nedit uid={os.getuid()}\n")
path = os.path.join(folder.name, "kota.sock")
daemon = Daemon("--token-file", tokens, "--listen", f"unix:{path}")
daemon.ok("PUT", "/v1/locales/land", {}, status=201, headers={"Authorization": f"Bearer {TOKEN_TEXT}"})
front = Front("nginx", [daemon.direct_port])
URL = f"https://127.0.0.1:{front.port}"


@test("TLS: the library asks through nginx, with ca_file or SSL_CERT_FILE, also over a kept connection")
def _():
    equal(ask(URL, front.path("tls.crt"), tries=5), ["200"] * 5, "with ca_file")
    equal(ask(URL, SSL_CERT_FILE=front.path("tls.crt")), ["200"], "with SSL_CERT_FILE")
    equal(ask(f"https://localhost:{front.port}", front.path("tls.crt"))[0].split()[0], "tls", "another name")


@test("TLS: a certificate that nobody trusts is an error of its kind, at once, and nothing is sent")
def _():
    line, = ask(URL)
    check(line.startswith("tls ") and "certificate" in line, line)
    line, = ask(URL, os.path.join(folder.name, "none.crt"))
    check(line.startswith("tls "), line)
    line, = ask(f"https://127.0.0.1:{daemon.direct_port}", front.path("tls.crt"))
    check(line.startswith("connect "), line)  # a port that speaks no TLS


@test("TLS: kota has --cacert; a write goes through, a feed comes through")
def _():
    words = ["--url", URL, "--cacert", front.path("tls.crt"), "--token-file", tokens]
    done = kota("info", "land", *words)
    check(done.returncode == 0 and '"land"' in done.stdout, done)
    done = kota("info", "land", "--url", URL)
    check(done.returncode == 1 and "certificate" in done.stderr, done)
    watch = subprocess.Popen([os.path.join(BIN_DIR, "kota"), "watch", "land", *words], stdout=subprocess.PIPE,
                             text=True, env=clean_environment())
    try:
        time.sleep(0.5)
        done = kota("rm", "land", *words)
        check(done.returncode == 0, done)
        line = watch.stdout.readline()
        check('"delete"' in line, line)
        equal(watch.wait(timeout=HANG_S), 0, "kota watch ends with the locale")
    finally:
        watch.kill()
        watch.wait()
    daemon.ok("PUT", "/v1/locales/land", {}, status=201, headers={"Authorization": f"Bearer {TOKEN_TEXT}"})


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def breaking_server(context):
    """Reads a little of each connection's first request and resets it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                if context:
                    connection = context.wrap_socket(connection, server_side=True)
                connection.recv(1000)
                time.sleep(0.05)
                reset(connection)
            except OSError:
                pass
    threading.Thread(target=serve, daemon=True).start()
    return listener


@test("no SIGPIPE: a peer that resets while a body is sent is an error, over TCP and TLS")
def _():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(front.path("tls.crt"), front.path("tls.key"))
    for scheme, server in (("http", breaking_server(None)), ("https", breaking_server(context))):
        lines = ask(f"{scheme}://127.0.0.1:{server.getsockname()[1]}", front.path("tls.crt"), megabytes=16, tries=3)
        equal([line.split()[0] for line in lines], ["lost"] * 3, f"{scheme}: {lines}")
        server.close()


@test("a Unix socket: the library, kota and its feeds; the user needs no token; a missing path is an error")
def _():
    equal(ask(f"unix:{path}", tries=3), ["200"] * 3, "by uid")
    line, = ask(f"unix:{path}.none")
    check(line.startswith("connect ") and f"unix:{path}.none" in line, line)
    done = kota("ls", "--url", f"unix:{path}")
    check(done.returncode == 0 and '"land"' in done.stdout, done)
    done = kota("edit", "land", "--url", f"unix:{path}", KOTA_URL="http://127.0.0.1:1")
    check(done.returncode == 2, done)
    equal(ask(f"http://127.0.0.1:{daemon.direct_port}")[0][:3], "200", "reading over TCP is free")


@test("a proxy of the environment is used for other hosts, and not for this machine or a Unix socket")
def _():
    seen = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                seen.append(connection.recv(4000).decode())
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
    threading.Thread(target=serve, daemon=True).start()
    proxy = {"http_proxy": f"http://127.0.0.1:{listener.getsockname()[1]}"}
    equal(ask("http://kota.test:7420/world", **proxy), ["200"], "through the proxy")
    check(seen[0].startswith("GET http://kota.test:7420/world/v1/locales/land HTTP/1.1\r\n"), seen)
    equal(ask(f"http://127.0.0.1:{daemon.direct_port}", **proxy), ["200"], "loopback")
    equal(ask(f"unix:{path}", **proxy), ["200"], "unix")
    equal(len(seen), 1, "what the proxy saw")
    listener.close()


def finish():
    front.stop()
    daemon.stop()


if __name__ == "__main__":
    run(finish)
