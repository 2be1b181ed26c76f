"""nginx and HAProxy in front of a daemon, with the files of deploy/.

What is replaced are addresses, the certificate (made by openssl for the test), users and folders; and
the limits of rates, which a test that wants them gets low, so that a busy machine reaches them, too.
KOTA_TEST_PROXY=nginx|haproxy puts one in front of each daemon that a test starts (daemon.py). Such a
daemon has a token file, since a proxy's requests are not from this machine, and the test's questions
bring the token.
"""
import http.client
import os
import ssl
import subprocess

from background import Background, free_port, program
from daemon import ROOT, Answer
from tap import check

CERTIFICATE = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", "2", "-subj", "/CN=kota", "-addext", "subjectAltName=IP:127.0.0.1")


def deploy_file(name):
    with open(os.path.join(ROOT, "deploy", name)) as file:
        return file.read()


def replace(text, pairs):
    for old, new in pairs:
        check(old in text, f"the configuration has no {old!r} any more")
        text = text.replace(old, new)
    return text


class Through(http.client.HTTPSConnection):
    """A connection through a proxy; `token` goes with what has none of its own."""

    token = None

    def request(self, method, url, body=None, headers=None, **named):
        headers = dict(headers or {})
        if self.token and not any(name.lower() == "authorization" for name in headers):
            headers["Authorization"] = f"Bearer {self.token}"
        super().request(method, url, body=body, headers=headers, **named)

    def ask(self, method, target, body=None, headers=None):
        try:
            self.request(method, target, body, headers)
            answer = self.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        except (http.client.CannotSendRequest, ssl.SSLEOFError) as error:
            raise ConnectionResetError(str(error)) from error


class Front(Background):
    """The proxy `kind` before kotad's ports; .port speaks TLS, .context trusts its certificate."""

    token = None  # that connection_to() brings, unless a question has its own

    def __init__(self, kind, ports, has_rates=False):
        super().__init__()
        try:
            self.kind, self.upstreams, self.has_rates = kind, ports, has_rates
            self.binary = program(kind)
            self.port = free_port()
            self.certify()
            self.context = ssl.create_default_context(cafile=self.path("tls.crt"))
            {"nginx": self.nginx, "haproxy": self.haproxy}[kind]()
            self.wait(self.answers, f"{kind} answers")
        except BaseException:
            self.stop()
            raise

    def certify(self):
        subprocess.run([program("openssl"), *CERTIFICATE, "-keyout", self.path("tls.key"),
                        "-out", self.path("tls.crt")], check=True, capture_output=True)
        with open(self.path("tls.pem"), "w") as whole:
            for part in ("tls.crt", "tls.key"):
                with open(self.path(part)) as file:
                    whole.write(file.read())

    def nginx(self):
        here = self.folder
        user = "user root;" if os.getuid() == 0 else ""
        text = replace(deploy_file("nginx.conf"), [
            ("user www-data;", user), ("/run/nginx-kota.pid", f"{here}/pid"),
            ("/var/log/nginx/kota-error.log", f"{here}/log"),
            ("/var/log/nginx/kota.log", f"{here}/access"),
            ("server 127.0.0.1:7420;", f"server 127.0.0.1:{self.upstreams[0]};"),
            ("listen 443 ", f"listen 127.0.0.1:{self.port} "),
            ("        listen [::]:443 ssl http2;\n", ""), ("/etc/kota/", f"{here}/"),
            ("worker_rlimit_nofile 65536;", ""), ("worker_processes auto;", "worker_processes 2;"),
            ("http {\n", "http {\n" + "".join(
                f"    {name}_temp_path {here}/{name};\n"
                for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")))])
        text = replace(text, [("rate=200r/s", "rate=2r/s"), ("burst=400", "burst=40")] if self.has_rates else [
            ("rate=200r/s", "rate=100000r/s"), ("burst=400", "burst=100000"),
            ("kota_connections 100;", "kota_connections 10000;")])
        self.start(self.binary, "-c", self.write("nginx.conf", text), "-p", here,
                   "-e", self.path("log"), "-g", "daemon off;")

    def haproxy(self):
        second = "    # server kota2 127.0.0.1:7430\n"
        text = replace(deploy_file("haproxy.cfg"), [
            ("    user haproxy\n    group haproxy\n", ""), ("    log /dev/log local0\n", ""),
            ("    maxconn 20000\n", "    maxconn 5000\n"),
            ("bind :443 ", f"bind 127.0.0.1:{self.port} "), ("/etc/kota/", f"{self.folder}/"),
            ("kota1 127.0.0.1:7420", f"kota1 127.0.0.1:{self.upstreams[0]}"), (second, "".join(
                f"    server kota{n} 127.0.0.1:{port}\n"
                for n, port in enumerate(self.upstreams[1:], 2)))])
        rate = "sc_http_req_rate(0) gt 600 "
        text = replace(text, [(rate, rate.replace("600", "30"))] if self.has_rates else [
            ("sc_conn_cur(0) gt 100 ", "sc_conn_cur(0) gt 100000 "), (rate, rate.replace("600", "1000000"))])
        self.start(self.binary, "-db", "-f", self.write("haproxy.cfg", text))

    def answers(self):
        """Until its first health check HAProxy takes the daemon to be there; nginx asks none."""
        from daemon import ask_once  # daemon.py imports this module
        return ask_once(self.port, "/v1/limits", self.context).status in (200, 401)
