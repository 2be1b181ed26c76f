"""Packages and containers, as far as it can be told without building them: that what deploy/ names
exists, agrees with itself, and is what kotad takes and answers.

The packages themselves are built with KOTA_LONG=1; tests/fresh-machine.sh installs them and runs
the image. Where they are installed, kubectl puts the manifests together, the models of Kubernetes'
Python client judge their fields, and Compose judges its files.
"""
import fnmatch
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import yaml

from daemon import BIN_DIR, Daemon, KOTAD, ROOT, clean_environment
from tap import HANG_S, Failure, Skip, check, equal, run, test

sys.path.insert(0, os.path.join(ROOT, "tests"))
sys.path.insert(0, os.path.join(ROOT, "deploy"))
import release  # noqa: E402
import dockerfile  # noqa: E402  (a program of tests/ that is a module here)

KUBERNETES = os.path.join(ROOT, "deploy", "kubernetes")


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def deb_lines(name):
    return [line for line in text_of("deploy/debian/" + name).splitlines() if line]


VERSION = release.version()
HELP = subprocess.run([KOTAD, "--help=all"], stdout=subprocess.PIPE, env=clean_environment(),
                      check=True).stdout.decode()
OPTIONS = set(re.findall(r"(?m)^  --([a-z-]+)", HELP))


def known(option, where):
    check(option in OPTIONS, f"{where} has {option}, which kotad does not know")


# ---- Debian -----------------------------------------------------------------------------------

@test("the list of an installation and the image of Kubernetes have the version of client/lib/kota.h")
def _():
    check(f"libkota.so.{VERSION}\n" in text_of("tests/api/installed.txt"), "installed.txt")
    equal(container()["image"], f"kota:{VERSION}", "the image of statefulset.yaml")


@test("the symbols of the libraries' packages are what the libraries export")
def _():
    if not shutil.which("nm"):
        raise Skip("no nm")
    for package, library, version in (("libkota0", "libkota", "KOTA_0"),
                                      ("libkota-ground0", "libkota-ground", "KOTA_GROUND_0")):
        said = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions",
                               os.path.join(BIN_DIR, "lib", f"{library}.so.{VERSION}")], check=True,
                              stdout=subprocess.PIPE).stdout.decode()
        exported = {name.replace("@@", "@") for name in re.findall(r" [TDBR] (kota_\S+)", said)}
        listed = {line.split()[0] for line in deb_lines(f"{package}.symbols")
                  if line.startswith(" kota_")}
        equal(sorted(exported - listed), [], f"exported and not in deploy/debian/{package}.symbols "
              f"(add ` NAME@{version} {VERSION}`)")
        equal(sorted(listed - exported), [], f"in deploy/debian/{package}.symbols and not exported")


@test("each file that make install puts somewhere is in one package, or said to be in none")
def _():
    places = {}
    for path in glob.glob(os.path.join(ROOT, "deploy/debian/*.install")):
        name = os.path.basename(path)
        for line in deb_lines(name):
            pattern = line.split()[0]
            if pattern.startswith("deploy/"):
                check(os.path.exists(os.path.join(ROOT, pattern)), f"{name}: no {pattern}")
                continue
            places.setdefault(pattern, []).append(name)
    places.update({pattern: ["not-installed"] for pattern in deb_lines("not-installed")})
    listed = text_of("tests/api/installed.txt").replace(  # deploy/debian/rules installs it where it was built
        "usr/share/kota/* <- build/release/kota_ground.wasm", "usr/share/kota/kota_ground.wasm")
    paths = [re.sub(r"^usr/lib/(libkota|pkgconfig)", r"usr/lib/x86_64-linux-gnu/\1", line.split()[0])
             for line in listed.splitlines()
             if line and not line.startswith("#")]
    for path in paths:
        found = [name for pattern, names in places.items() for name in names
                 if fnmatch.fnmatchcase(path, pattern) or path.startswith(pattern + "/")]
        equal(len(found), 1, f"{path} is in {found}")
    for pattern in places:
        check([path for path in paths
               if fnmatch.fnmatchcase(path, pattern) or path.startswith(pattern + "/")],
              f"nothing is installed as {pattern}")


@test("the packages are built from what install-deps.sh installs")
def _():
    wanted = re.search(r"(?s)^BUILD='(.*?)'", text_of("deploy/install-deps.sh"), re.M).group(1).split()
    essential = {"gcc", "libc6-dev", "make"}
    field = re.search(r"(?s)Build-Depends:(.*?)\n\n", text_of("deploy/debian/control")).group(1)
    given = ["|".join(sorted(re.sub(r":any|\s", "", word).split("|"))) for word in field.split(",")]
    equal(sorted(word for word in given if "debhelper" not in word),
          sorted("|".join(sorted(word.split("|"))) for word in wanted if word not in essential),
          "Build-Depends")


@test("dpkg-buildpackage builds the packages and lintian finds no error in them")
def _():
    if not os.environ.get("KOTA_LONG"):
        raise Skip("KOTA_LONG=1 builds the packages")
    for tool in ["dh", "dpkg-buildpackage", "lintian"]:
        if not shutil.which(tool):
            raise Skip(f"no {tool} (sh deploy/install-deps.sh package)")
    with tempfile.TemporaryDirectory(prefix="kota-deb-") as folder:
        with open(folder + "/log", "wb") as log:
            built = subprocess.run(["sh", "deploy/build-deb.sh", folder], cwd=ROOT, stdout=log,
                                   stderr=log, check=False)
        equal(built.returncode, 0, text_of(folder + "/log")[-3000:])
        names = {os.path.basename(path).split("_")[0] for path in glob.glob(folder + "/*.deb")}
        equal({name for name in names if not name.endswith("-dbgsym")},
              {"kota", "kotad", "libkota0", "libkota-ground0", "libkota-dev", "kota-doc"}, "packages")
        said = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning",
                               *glob.glob(folder + "/*.changes")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        equal(said.returncode, 0, said.stdout.decode()[-3000:])


# ---- the image --------------------------------------------------------------------------------

def image_steps():
    return dockerfile.instructions(text_of("Dockerfile"))


def image_word(word):
    return [rest for _, name, rest in image_steps() if name == word]


def settings_of(text):
    return dict(re.findall(r"(?m)^\s*([a-z-]+) = (.*)$", text))


@test("the runner of the Dockerfile knows every instruction of it, and refuses what it does not know")
def _():
    dockerfile.check_all(image_steps())
    for wrong in ["FROM debian:bookworm\nADD x y", "FROM debian:bookworm\nCOPY --chown=a b c",
                  "FROM debian:bookworm\nRUN --mount=type=cache true", "RUN true", ""]:
        try:
            dockerfile.check_all(dockerfile.instructions(wrong))
        except dockerfile.Refused:
            continue
        check(False, f"taken: {wrong!r}")
    equal(dockerfile.instructions("# a\nRUN a \\\n# b\n  && b\n\nUSER c"),
          [(2, "RUN", "a   && b"), (6, "USER", "c")], "joined lines")


@test("the image copies what is there, runs as nobody special, and names flags and ports of kotad")
def _():
    for rest in image_word("COPY"):
        if not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                check(os.path.exists(os.path.join(ROOT, source)), f"COPY {source}: not there")
    equal(image_word("USER"), ["kota"], "USER")
    equal(image_word("VOLUME"), ["/data"], "VOLUME")
    health = image_word("HEALTHCHECK")[-1].partition("CMD ")[2]
    for command in [health, *image_word("ENTRYPOINT"), *image_word("CMD")]:
        program, *flags = dockerfile.listed(command)
        equal(program, "kotad", command)
        for flag in flags:
            known(flag.lstrip("-"), command)
    for rest in image_word("ENV"):
        for name in re.findall(r"KOTA_([A-Z_]+)=", rest):
            known(name.lower().replace("_", "-"), "ENV")
    settings = settings_of(text_of("deploy/docker/kotad.conf"))
    ports = [settings[name].split(":")[1] for name in ["listen", "ops-listen"]]
    equal(image_word("EXPOSE")[0].split(), ports, "EXPOSE")


def starts_with(settings, folder, **instead):
    """kotad on these settings, on ports and paths of this test."""
    for name in settings:
        known(name, "the settings")
    settings = dict(settings, **{name.replace("_", "-"): value for name, value in instead.items()})
    del settings["listen"]  # Daemon has its own flag
    settings["ops-listen"] = "127.0.0.1:0"
    settings["ops-port-file"] = folder + "/ops-port"
    settings["data"] = folder + "/data"
    with open(folder + "/kotad.conf", "w", encoding="utf-8") as file:
        file.writelines(f"{name} = {value}\n" for name, value in settings.items())
    return Daemon("--config", folder + "/kotad.conf")


@test("kotad starts with the image's settings")
def _():
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        subprocess.run([os.path.join(BIN_DIR, "kota-worldgen"), "demo", folder + "/world", "--size",
                        "256"], check=True, stdout=subprocess.DEVNULL)
        with starts_with(settings_of(text_of("deploy/docker/kotad.conf")), folder,
                         world=folder + "/world") as daemon:
            equal(daemon.get("/readyz").status, 200, "/readyz")


@test("the EGL vendor file of the image is one that libglvnd reads")
def _():
    vendor = yaml.safe_load(text_of("deploy/docker/10_nvidia.json"))
    equal(vendor, {"file_format_version": "1.0.0",
                   "ICD": {"library_path": "libEGL_nvidia.so.0"}}, "10_nvidia.json")


# ---- Kubernetes -------------------------------------------------------------------------------

VERSIONS = {"ConfigMap": "v1", "Secret": "v1", "Service": "v1", "StatefulSet": "apps/v1",
            "PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1",
            "ServiceMonitor": "monitoring.coreos.com/v1"}


def objects():
    found = {}
    for path in glob.glob(KUBERNETES + "/*.yaml"):
        if os.path.basename(path) == "kustomization.yaml":
            continue
        for document in yaml.safe_load_all(text_of(path)):
            key = document["kind"], document["metadata"]["name"]
            check(key not in found, f"{key} is there twice")
            equal(document["apiVersion"], VERSIONS.get(key[0]), f"apiVersion of {key}")
            found[key] = document
    return found


def spec():
    return objects()[("StatefulSet", "kota")]["spec"]


def pod():
    return spec()["template"]["spec"]


def container():
    return pod()["containers"][0]


def selects(selector, labels):
    return all(labels.get(name) == value for name, value in selector.items())


@test("every file of deploy/kubernetes is applied, but for the example of a secret")
def _():
    listed = yaml.safe_load(text_of("deploy/kubernetes/kustomization.yaml"))["resources"]
    there = {os.path.basename(path) for path in glob.glob(KUBERNETES + "/*.yaml")}
    equal(set(listed), there - {"kustomization.yaml", "secret.example.yaml"}, "resources")
    equal({kind for kind, _ in objects()}, set(VERSIONS), "kinds")


def kustomized(folder):
    if not shutil.which("kubectl"):
        raise Skip("no kubectl (deploy/install-deps.sh ops)")
    done = subprocess.run(["kubectl", "kustomize", os.path.join(ROOT, "deploy", folder)],
                          capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stderr)
    return list(yaml.safe_load_all(done.stdout))


@test("kubectl puts all folders together, those with a GPU and of a cluster from the first")
def _():
    plain, gpu = kustomized("kubernetes"), kustomized("kubernetes-gpu")
    equal([(one["kind"], one["metadata"]["name"]) for one in gpu],
          [(one["kind"], one["metadata"]["name"]) for one in plain], "objects")
    differing = [(a, b) for a, b in zip(plain, gpu) if a != b]
    equal([a["kind"] for a, _ in differing], ["StatefulSet"], "what the GPU changes")
    limits = differing[0][1]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    equal(str(limits.pop("nvidia.com/gpu")), "1", "GPUs")
    equal(differing[0][1], differing[0][0], "all else")
    cluster = kustomized("kubernetes-cluster")
    equal([one["kind"] for one in cluster], [one["kind"] for one in plain], "objects of a cluster")
    equal([a["kind"] for a, b in zip(plain, cluster) if a != b], ["StatefulSet", "NetworkPolicy"],
          "what a cluster changes")


def fits(value, kind, where, models):
    """A value as the client's models of Kubernetes' own schema have it: fields, types, what must be."""
    listed = re.fullmatch(r"list\[(.*)\]|dict\(str, (.*)\)", kind)
    if listed and listed[1]:
        check(isinstance(value, list), f"{where} is no list: {value!r}")
        for i, one in enumerate(value):
            fits(one, listed[1], f"{where}/{i}", models)
    elif listed:
        check(isinstance(value, dict), f"{where} is no map: {value!r}")
        for name, one in value.items():
            fits(one, listed[2], f"{where}/{name}", models)
    elif hasattr(models, kind):
        model = getattr(models, kind)
        fields = {name: field for field, name in model.attribute_map.items()}
        check(isinstance(value, dict), f"{where} is no {kind}: {value!r}")
        for name, one in value.items():
            check(name in fields, f"{where}: {kind} has no {name}")
            fits(one, model.openapi_types[fields[name]], f"{where}/{name}", models)
        try:
            model(**{fields[name]: one for name, one in value.items()})  # says what is missing
        except ValueError as error:
            raise Failure(f"{where}: {error}") from None
    elif kind in ("str", "int", "bool", "float"):
        check(type(value).__name__ == kind, f"{where} is no {kind}: {value!r}")
    else:
        check(kind in ("object", "datetime"), f"{where}: {kind} is not known here")


@test("each object has the fields, the types and all that must be, as Kubernetes' models say")
def _():
    try:
        from kubernetes.client import models
    except ImportError as error:
        raise Skip(f"{error} (deploy/install-deps.sh ops)") from None
    documents = [*objects().values(), *(kustomized("kubernetes-cluster") if shutil.which("kubectl") else ()),
                 yaml.safe_load(text_of("deploy/kubernetes-cluster/secret.example.yaml"))]
    for document in documents:
        kind, name = document["kind"], document["metadata"]["name"]
        if kind != "ServiceMonitor":  # the Prometheus operator's
            fits(document, f"V1{kind}", f"{kind} {name}", models)
    wrong = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}
    for spec_, word in (({"prots": []}, "has no prots"), ({"ports": [{"name": "x"}]}, "`port`"),
                        ({"ports": [{"port": "80"}]}, "is no int"), ({"ports": {}}, "is no list")):
        try:
            fits({**wrong, "spec": spec_}, "V1Service", "x", models)
            said = "nothing"
        except Failure as error:
            said = str(error)
        check(word in said, f"of {spec_} is said {said}")


@test("selectors match the labels that they are meant for, ports the names that the container has")
def _():
    found, labels = objects(), spec()["template"]["metadata"]["labels"]
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    check(selects(spec()["selector"]["matchLabels"], labels), "StatefulSet")
    check(selects(found[("PodDisruptionBudget", "kota")]["spec"]["selector"]["matchLabels"], labels),
          "PodDisruptionBudget")
    policy = found[("NetworkPolicy", "kota")]["spec"]
    check(selects(policy["podSelector"]["matchLabels"], labels), "NetworkPolicy")
    equal({port["port"] for rule in policy["ingress"] for port in rule["ports"]}, set(ports),
          "ports of the NetworkPolicy")
    services = {name: one for (kind, name), one in found.items() if kind == "Service"}
    for name, service in services.items():
        check(selects(service["spec"]["selector"], labels), f"service {name}")
        for port in service["spec"]["ports"]:
            equal(port["port"], ports.get(port["targetPort"]), f"service {name}, {port['name']}")
    equal(services[spec()["serviceName"]]["spec"]["clusterIP"], "None", "serviceName is headless")
    monitor = found[("ServiceMonitor", "kota")]["spec"]
    watched = [one for one in services.values()
               if selects(monitor["selector"]["matchLabels"], one["metadata"]["labels"])]
    equal(len(watched), 1, "services that the ServiceMonitor selects")
    equal({one["port"] for one in monitor["endpoints"]},
          {port["name"] for port in watched[0]["spec"]["ports"]}, "ports of the ServiceMonitor")


@test("volumes, mounts, the config map and the secret fit each other and the image")
def _():
    found = objects()
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    claims = {claim["metadata"]["name"] for claim in spec()["volumeClaimTemplates"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container()["volumeMounts"]}
    equal(set(mounts), set(volumes) | claims, "mounted volumes")
    config = found[("ConfigMap", volumes["config"]["configMap"]["name"])]["data"]
    secret = found[("Secret", volumes["tokens"]["secret"]["secretName"])]["stringData"]
    settings = settings_of(config["kotad.conf"])
    equal(settings["token-file"], f"{mounts['tokens']}/{list(secret)[0]}", "token-file")
    equal(settings["data"], mounts["data"], "data")
    equal([mounts["data"]], image_word("VOLUME"), "VOLUME")
    arguments = container()["args"]
    equal(arguments, ["--config", mounts["config"] + "/kotad.conf"], "args")
    known(arguments[0].lstrip("-"), "args")
    ports = [port["containerPort"] for port in container()["ports"]]
    equal([int(settings[name].split(":")[1]) for name in ["listen", "ops-listen"]], ports, "ports")
    uid = int(re.search(r"--uid (\d+)", text_of("Dockerfile")).group(1))
    for name in ["runAsUser", "runAsGroup", "fsGroup"]:
        equal(pod()["securityContext"][name], uid, name)
    stop = int(settings["drain-ms"]) / 1000 + float(container()["lifecycle"]["preStop"]["exec"]["command"][1])
    check(stop < pod()["terminationGracePeriodSeconds"], f"the pod is killed before {stop} s")
    memory = container()["resources"]["limits"]["memory"]
    check(int(settings["max-world-bytes"]) < int(memory[:-2]) << 30,
          f"max-world-bytes is more than {memory}")


@test("kotad starts with the config map and the secret, and the probes and counters answer")
def _():
    found = objects()
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        with open(folder + "/tokens", "w", encoding="utf-8") as file:
            file.write(found[("Secret", "kota-tokens")]["stringData"]["tokens"])
        os.chmod(folder + "/tokens", 0o600)
        settings = settings_of(found[("ConfigMap", "kota")]["data"]["kotad.conf"])
        with starts_with(settings, folder, token_file=folder + "/tokens"):
            with open(folder + "/ops-port", encoding="utf-8") as file:
                port = int(file.read())
            paths = {container()[name]["httpGet"]["path"]
                     for name in ["startupProbe", "livenessProbe", "readinessProbe"]}
            for name in ["startupProbe", "livenessProbe", "readinessProbe"]:
                equal(container()[name]["httpGet"]["port"], "ops", name)
            paths |= {one["path"] for one in found[("ServiceMonitor", "kota")]["spec"]["endpoints"]}
            for path in sorted(paths):
                said = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                                       f"http://127.0.0.1:{port}{path}"], stdout=subprocess.PIPE,
                                      check=True)
                equal(said.stdout, b"200", path)


@test("the patch for a GPU changes a place that there is")
def _():
    patch = yaml.safe_load(text_of("deploy/kubernetes-gpu/kustomization.yaml"))["patches"][0]
    equal(patch["target"], {"kind": "StatefulSet", "name": "kota"}, "target")
    for change in yaml.safe_load(patch["patch"]):
        at = objects()[("StatefulSet", "kota")]
        *parents, last = [part.replace("~1", "/") for part in change["path"].split("/")[1:]]
        for part in parents:
            at = at[int(part)] if isinstance(at, list) else at[part]
        check(change["op"] == "add" and last not in at, f"{change['path']} is there already")


@test("a token file that is replaced as Kubernetes replaces a secret is read again on SIGHUP")
def _():
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        def put(name, token):
            os.mkdir(f"{folder}/{name}")
            with open(f"{folder}/{name}/tokens", "w", encoding="utf-8") as file:
                file.write(f"read {token}\n")
            os.symlink(name, folder + "/..next")
            os.rename(folder + "/..next", folder + "/..data")
        old, new = "a" * 40, "b" * 40
        put("..1", old)
        os.symlink("..data/tokens", folder + "/tokens")
        with Daemon("--token-file", folder + "/tokens") as daemon:
            def status(token):
                return daemon.get("/v1/locales", headers={"Authorization": f"Bearer {token}"}).status
            equal(status(old), 200, "the first token")
            put("..2", new)
            shutil.rmtree(folder + "/..1")
            daemon.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + HANG_S
            while status(new) != 200:
                check(time.monotonic() < deadline, f"the new token is refused: {daemon.log_text()}")
                time.sleep(0.05)
            equal(status(old), 401, "the old token")


# ---- docs/install.md ---------------------------------------------------------------------------

@test("what docs/install.md tells to type names files, settings, packages and tests that there are")
def _():
    text = text_of("docs/install.md")
    commands = "\n".join(re.findall(r"(?ms)^```\n(.*?)^```", text))
    for path in re.findall(r"(?<![\w/.])((?:deploy|tests)/[\w./-]+)", commands + text):
        check(os.path.exists(os.path.join(ROOT, path.rstrip("./"))), f"there is no {path}")
    for name in re.findall(r"KOTA_([A-Z_]+)=", text):
        if name != "LONG":
            known(name.lower().replace("_", "-"), "docs/install.md")
    for name in re.findall(r"make test T=(\w+)", text):
        check(os.path.exists(os.path.join(ROOT, f"tests/api/test_{name}.py")), f"no test {name}")
    equal(set(re.findall(r"(?m)^\| `([\w-]+)` \|", text)),
          set(re.findall(r"(?m)^Package: (.*)$", text_of("deploy/debian/control"))), "packages")
    script = text_of("tests/fresh-machine.sh")
    for step in re.findall(r"fresh-machine\.sh (\w+)", text):
        check(f"\nstep_{step}()" in script, f"fresh-machine.sh has no step {step}")


# ---- Compose ----------------------------------------------------------------------------------

@test("what compose.yaml mounts is there, services and volumes that it names are its own")
def _():
    compose = yaml.safe_load(text_of("deploy/compose.yaml"))
    services = compose["services"]
    equal(set(services), {"kotad", "prometheus", "grafana"}, "services")
    for name, service in services.items():
        for other in service.get("depends_on", []):
            check(other in services, f"{name} depends on {other}")
        mode = service.get("network_mode", "service:kotad")
        equal(mode, "service:kotad", f"network of {name}")
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("."):
                path = os.path.join("deploy", source)
                check(os.path.exists(os.path.join(ROOT, path)), f"{name} mounts {path}, not there")
            else:
                check(source in compose["volumes"], f"{name} mounts the volume {source}")
    for port in services["kotad"]["ports"]:
        check(port.startswith("127.0.0.1:"), f"{port} is open to other machines")
    inside = [port.split(":")[2] for port in services["kotad"]["ports"]]
    equal(inside, [image_word("EXPOSE")[0].split()[0], "9090", "3000"], "ports")
    gpu = yaml.safe_load(text_of("deploy/compose.gpu.yaml"))["services"]
    check(set(gpu) <= set(services), "compose.gpu.yaml")


def compose_program():
    """`docker compose`, or its plugin alone: `config` needs no engine."""
    for words in (["docker", "compose"], ["/usr/libexec/docker/cli-plugins/docker-compose"],
                  [os.environ.get("KOTA_COMPOSE", "docker-compose")]):
        if shutil.which(words[0]):
            said = subprocess.run([*words, "version", "--short"], capture_output=True, check=False)
            if said.returncode == 0 and not said.stdout.startswith(b"1."):
                return words
    raise Skip("no docker compose of version 2 (KOTA_COMPOSE)")


@test("docker compose takes the files that are meant for it")
def _():
    program = compose_program()
    for files in [["compose.yaml"], ["compose.yaml", "compose.gpu.yaml"], ["compose.cluster.yaml"]]:
        words = [word for name in files for word in ("-f", os.path.join(ROOT, "deploy", name))]
        said = subprocess.run([*program, *words, "config", "-q"],
                              stderr=subprocess.PIPE, check=False, env={
                                  **os.environ, "KOTA_TOKENS": "/dev/null", "KOTA_DB_PASSWORD": "x"})
        equal(said.returncode, 0, said.stderr.decode())


run()
