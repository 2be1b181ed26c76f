"""What deploy/ has for a cluster, as far as it can be tried without an engine of containers: the files
agree with each other and with kotad; the scripts of PostgreSQL's containers make a primary and a
synchronous standby of real servers; HAProxy's configuration before two daemons loses no question when
one of them is killed; the overlay for Kubernetes starts a daemon.
"""
import contextlib
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

import yaml

from background import Background, free_port
from daemon import KOTAD, ROOT, Answer, Daemon, clean_environment, connection_to
from tap import HANG_S, check, equal, rng, run, test

sys.path.insert(0, os.path.join(ROOT, "tests", "cluster"))
from balancer import Balancer  # noqa: E402
from nodes import Node, catch_up, first_ground  # noqa: E402
from postgres import Server, end_with_parent, stop_all  # noqa: E402

TOKEN = "edit-through-the-balancer-0123456789"
SCRIPTS = os.path.join(ROOT, "deploy", "docker", "postgres")


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def compose():
    return yaml.safe_load(text_of("deploy/compose.cluster.yaml"))


def options():
    said = subprocess.run([KOTAD, "--help=all"], stdout=subprocess.PIPE, env=clean_environment(), check=True)
    return set(re.findall(r"(?m)^  --([a-z-]+)", said.stdout.decode()))


def words_of(conninfo):
    return dict(word.split("=", 1) for word in conninfo.split())


# ---- files ------------------------------------------------------------------------------------------


@test("compose.cluster.yaml: services, volumes, secrets and files that it names are there")
def _():
    document = compose()
    services = document["services"]
    equal(set(services), {"kota1", "kota2", "haproxy", "primary", "standby"}, "services")
    for name, service in services.items():
        for other in service.get("depends_on", []):
            check(other in services, f"{name} depends on {other}")
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                check(os.path.exists(os.path.join(ROOT, "deploy", source)), f"{name}: no {source}")
            else:
                check(source in document["volumes"], f"{name} mounts the volume {source}")
        for secret in service.get("secrets", []):
            check(secret in document["secrets"], f"{name} has the secret {secret}")
        for port in service.get("ports", []):
            check(port.startswith("127.0.0.1:"), f"{port} is open to other machines")
    used = {volume.split(":")[0] for service in services.values() for volume in service["volumes"]}
    equal({name for name in used if not name.startswith(".")}, set(document["volumes"]), "volumes")


@test("compose.cluster.yaml: settings are kotad's, nodes differ, the log is where PostgreSQL is")
def _():
    services = compose()["services"]
    known = options()
    nodes = {name: services[name]["environment"] for name in ("kota1", "kota2")}
    for name, settings in nodes.items():
        for setting in settings:
            if setting.startswith("KOTA_"):
                option = setting[len("KOTA_"):].lower().replace("_", "-")
                check(option in known, f"{name} has {setting}, which kotad does not know")
        equal(settings["KOTA_NODE"], name, "KOTA_NODE")
        equal(settings["KOTA_NODE_URL"], f"http://{name}:7420", "KOTA_NODE_URL")
        conninfo = words_of(settings["KOTA_CLUSTER"])
        equal(conninfo["host"].split(","), ["primary", "standby"], "hosts of KOTA_CLUSTER")
        equal(conninfo["target_session_attrs"], "read-write", "who of them is asked")
        for key, variable in (("user", "POSTGRES_USER"), ("dbname", "POSTGRES_DB")):
            equal(conninfo[key], services["primary"]["environment"][variable], variable)
        check("password" not in conninfo, "a password in a setting that is shown")
        secret = services[name]["secrets"][0]
        equal(settings["KOTA_TOKEN_FILE"], f"/run/secrets/{secret}", "KOTA_TOKEN_FILE")
    check(nodes["kota1"]["KOTA_CLUSTER"] == nodes["kota2"]["KOTA_CLUSTER"], "two logs")
    equal(services["standby"]["environment"]["PRIMARY_HOST"], "primary", "PRIMARY_HOST")


@test("HAProxy asks the daemons of compose.cluster.yaml, at the image's ports, and takes its configuration")
def _():
    text = text_of("deploy/docker/haproxy-cluster.cfg")
    image = dict(re.findall(r"(?m)^(listen|ops-listen) = \S+:(\d+)$", text_of("deploy/docker/kotad.conf")))
    servers = dict(re.findall(r"(?m)^    server (\w+) (\S+)$", text))
    equal(servers, {name: f"{name}:{image['listen']}" for name in ("kota1", "kota2")}, "servers")
    check(f"check port {image['ops-listen']} " in text, "health is not asked at --ops-listen")
    published = compose()["services"]["haproxy"]["ports"]
    equal([port.rsplit(":", 1)[1] for port in published], re.findall(r"(?m)^    bind :(\d+)$", text), "ports")


# ---- PostgreSQL's containers --------------------------------------------------------------------------


class Standby(Background):
    """standby.sh as its container runs it: an empty folder, the environment, a port of its own."""

    def __init__(self, primary, port):
        super().__init__()
        self.primary, self.port = primary, port
        if primary.account:
            os.chown(self.folder, primary.account["user"], primary.account["group"])
        os.chmod(self.folder, 0o755)
        os.mkdir(self.path("data"), 0o700)
        if primary.account:
            os.chown(self.path("data"), primary.account["user"], primary.account["group"])
        shutil.copy(os.path.join(SCRIPTS, "standby.sh"), self.path("standby.sh"))

    def go(self):
        environment = {**self.primary.environment(), "PGDATA": self.path("data"),
                       "PRIMARY_HOST": "127.0.0.1", "PRIMARY_PORT": str(self.primary.port),
                       "REPLICATION_PASSWORD": "secret", "PATH": f"{self.primary.bin}:{os.environ['PATH']}"}
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                ["sh", self.path("standby.sh"), "-c", f"port={self.port}", "-c",
                 f"unix_socket_directories={self.folder}"], **self.primary.account, env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                preexec_fn=end_with_parent)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        super().stop()


@test("the scripts of its containers make PostgreSQL a primary and a synchronous standby that can be promoted")
def _():
    with Server() as primary, Standby(primary, free_port()) as standby:
        with open(os.path.join(primary.data, "pg_hba.conf"), "w", encoding="ascii") as file:
            file.write("local all all trust\nhost all all 127.0.0.1/32 trust\n")
        script = os.path.join(primary.folder, "primary.sh")
        shutil.copy(os.path.join(SCRIPTS, "primary.sh"), script)
        said = subprocess.run(["sh", script], **primary.account, capture_output=True, text=True, check=False,
                              cwd=primary.folder, env={
                                  **primary.environment(), "PATH": f"{primary.bin}:{os.environ['PATH']}",
                                  "PGDATA": primary.data, "POSTGRES_USER": "kota", "POSTGRES_DB": "kota",
                                  "REPLICATION_PASSWORD": "secret", "PGHOST": primary.folder,
                                  "PGPORT": str(primary.port)})
        equal(said.returncode, 0, said.stderr)
        primary.stop()
        primary.start()
        standby.go()
        standby.wait(lambda: primary.sql("SELECT application_name, sync_state FROM pg_stat_replication "
                                         "WHERE state = 'streaming'") == [["standby", "sync"]],
                     "a synchronous standby")
        primary.sql("CREATE TABLE t AS SELECT 1")
        primary.kill()
        other = Server.__new__(Server)  # asked only
        other.bin, other.port, other.folder = primary.bin, standby.port, standby.folder
        other.sql("SELECT pg_promote(true, 60)", database="postgres")
        equal(other.value("SELECT count(*) FROM t"), "1", "rows of the new primary")
        other.sql("INSERT INTO t VALUES (2)", timeout=HANG_S)


# ---- HAProxy ------------------------------------------------------------------------------------------


class Asker(threading.Thread):
    """Questions over one kept connection to the balancer; none may fail."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.is_over, self.error, self.count = port, threading.Event(), None, 0

    def run(self):
        try:
            connection = connection_to(self.port)
            while not self.is_over.wait(0.002):
                connection.request("GET", "/v1/locales/land/height?x=1&y=2")
                answer = connection.getresponse()
                body = answer.read()
                check(answer.status == 200, f"a question through the balancer: {answer.status} {body[:300]}")
                self.count += 1
        except BaseException as error:
            self.error = error


def all_ask(askers, more):
    """Waits until each has had so many more answers, or one has failed."""
    wanted, deadline = [asker.count + more for asker in askers], time.monotonic() + HANG_S
    while any(asker.count < count for asker, count in zip(askers, wanted)) and \
            not any(asker.error for asker in askers):
        check(time.monotonic() < deadline, f"answers: {[asker.count for asker in askers]}")
        time.sleep(0.01)


def through(port, method, target, body=None, headers=None):
    connection = connection_to(port)
    try:
        connection.request(method, target, body and json.dumps(body),
                           {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}",
                            **(headers or {})})
        answer = connection.getresponse()
        return Answer(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()


def start_behind(stack, server):
    """Two nodes with tokens and --ops-listen, and HAProxy before them."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kota-test-"))
    tokens = os.path.join(folder, "tokens")
    with open(tokens, "w", encoding="ascii") as file:
        file.write(f"edit {TOKEN}\n")
    os.chmod(tokens, 0o600)
    nodes, places = [], []
    for name in ("kota1", "kota2"):
        ops = os.path.join(folder, name)
        node = stack.enter_context(contextlib.closing(Closing(server.conninfo(), name, "--token-file", tokens,
                                                               "--ops-listen", "127.0.0.1:0",
                                                               "--ops-port-file", ops)))
        node.start()
        with open(ops, encoding="ascii") as file:
            places.append((node.port, int(file.read())))
        nodes.append(node)
    return nodes, stack.enter_context(Balancer(places))


class Closing(Node):
    def client(self, **named):
        return super().client(headers={"Authorization": f"Bearer {TOKEN}"}, **named)

    def close(self):
        self.remove()


@test("through HAProxy a client writes anywhere and reads what it wrote, and a killed node fails nobody")
def _():
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Server())
        nodes, front = start_behind(stack, server)
        _, revision = first_ground(nodes[0], rng("behind HAProxy"))
        catch_up(nodes[1], revision, "the ground")
        for n in range(40):  # connections of their own, so they go to both
            answer = through(front.port, "POST", "/v1/locales/land/edits", {
                "rect": [n, n, 1, 1], "op": "set", "heights": [n]}, {"Idempotency-Key": f"front-{n}"})
            equal(answer.status, 200, str(answer))
            revision += 1
            equal(answer.json["revision"], revision, "the revision")
            read = through(front.port, "GET", f"/v1/locales/land/height?x={n}&y={n}", headers={
                "Kota-Min-Revision": str(revision)})
            equal((read.status, read.json["height"], read.json["revision"] >= revision), (200, n, True),
                  "what was read after the write")
        answered = [node.stats()["appends"] for node in nodes]
        check(all(count > 0 for count in answered), f"writes through each node: {answered}")
        askers = [Asker(front.port) for _ in range(4)]
        for asker in askers:
            asker.start()
        all_ask(askers, 5)
        nodes[0].kill()
        all_ask(askers, 100)
        answer = through(front.port, "POST", "/v1/locales/land/edits", {
            "rect": [0, 0, 1, 1], "op": "set", "heights": [7]}, {"Idempotency-Key": "after"})
        equal(answer.status, 200, str(answer))
        for asker in askers:
            asker.is_over.set()
            asker.join()
            if asker.error:
                raise asker.error


# ---- Kubernetes -----------------------------------------------------------------------------------------


def overlay():
    return yaml.safe_load(text_of("deploy/kubernetes-cluster/kustomization.yaml"))


def changes(kind):
    found = [patch["patch"] for patch in overlay()["patches"] if patch["target"]["kind"] == kind]
    equal(len(found), 1, f"patches of {kind}")
    return {change["path"]: change["value"] for change in yaml.safe_load(found[0])}


@test("the overlay for Kubernetes: what it mounts is its secret, what it sets is kotad's")
def _():
    said = changes("StatefulSet")
    at = "/spec/template/spec"
    settings = {entry["name"]: entry for entry in said[at + "/containers/0/env"]}
    known = options()
    for name in settings:
        if name.startswith("KOTA_"):
            check(name[len("KOTA_"):].lower().replace("_", "-") in known, f"kotad does not know {name}")
    mount, volume = said[at + "/containers/0/volumeMounts/-"], said[at + "/volumes/-"]
    equal(mount["name"], volume["name"], "the volume")
    secret = yaml.safe_load(text_of("deploy/kubernetes-cluster/secret.example.yaml"))
    equal(volume["secret"]["secretName"], secret["metadata"]["name"], "the secret")
    equal(settings["KOTA_CLUSTER"]["value"], f"@{mount['mountPath']}/{list(secret['stringData'])[0]}",
          "KOTA_CLUSTER")
    equal(words_of(secret["stringData"]["conninfo"])["target_session_attrs"], "read-write", "conninfo")
    base = yaml.safe_load(text_of("deploy/kubernetes/statefulset.yaml"))["spec"]
    check(settings["KOTA_NODE_URL"]["value"].endswith(f".{base['serviceName']}:7420"), "KOTA_NODE_URL")
    equal(said["/spec/replicas"], 2, "replicas")
    egress = changes("NetworkPolicy")["/spec/egress"]
    check(any({"protocol": "TCP", "port": 5432} in rule["ports"] for rule in egress), "no way to PostgreSQL")


@test("a daemon starts with what the overlay sets, its secret being a file of a real server")
def _():
    with Server() as server, tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        path = os.path.join(folder, "conninfo")
        secret = yaml.safe_load(text_of("deploy/kubernetes-cluster/secret.example.yaml"))
        text = secret["stringData"]["conninfo"]
        for word, own in (("host=kota-db-rw", f"host=127.0.0.1 port={server.port}"),):
            check(word in text, f"no {word} in {text}")
            text = text.replace(word, own)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        entries = changes("StatefulSet")["/spec/template/spec/containers/0/env"]
        settings = {entry["name"]: entry["value"].replace("$(POD_NAME)", "kota-0")
                    for entry in entries if "value" in entry}
        settings["KOTA_CLUSTER"] = "@" + path
        with Daemon("--data", os.path.join(folder, "data"), env=settings) as daemon:
            equal(daemon.get("/readyz").status, 200, "/readyz")
            check("replace-me" not in daemon.log_text(), "the password is in the log")


run(stop_all, "nothing is left running")
