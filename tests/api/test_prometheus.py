"""deploy/prometheus and deploy/grafana: a real Prometheus scrapes kotad with the files as they are.

Only addresses and intervals are others. The rules are checked and tested by promtool; each metric
that a rule or a panel names is one that kotad has, and each expression one that Prometheus takes.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import yaml
from background import Background, free_port, program
from daemon import ROOT, Daemon
from metrics import scrape
from tap import HANG_S, check, equal, run, test

FOLDER = os.path.join(ROOT, "deploy", "prometheus")
GRAFANA = os.path.join(ROOT, "deploy", "grafana")
METRIC = re.compile(r"\bkota_[a-z0-9_]+")


def read(*path):
    with open(os.path.join(*path)) as file:
        return file.read()


RULES = yaml.safe_load(read(FOLDER, "alerts.yml"))["groups"][0]["rules"]
DASHBOARD = json.loads(read(GRAFANA, "dashboard.json"))


def expressions():
    """[(where, PromQL)] of the dashboard, its variables filled in as Grafana does."""
    found = [("annotation " + each["name"], each["expr"])
             for each in DASHBOARD["annotations"]["list"]]
    for panel in DASHBOARD["panels"]:
        found += [(panel["title"], target["expr"]) for target in panel.get("targets", ())]
    return [(where, text.replace("$__rate_interval", "1m").replace("$instance", ".*"))
            for where, text in found]


def names():
    """The metrics of a daemon that has a store and a log (that is away), as Prometheus names them."""
    folder = tempfile.mkdtemp(prefix="kota-test-")
    log = f"host=127.0.0.1 port={free_port()} dbname=kota"
    try:
        with Daemon("--data", os.path.join(folder, "d"), "--cluster", log) as daemon:
            families = scrape(daemon)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    suffixes = {"histogram": ("_bucket", "_sum", "_count")}
    return {name + suffix for name, family in families.items()
            for suffix in suffixes.get(family.type, ("",))}


def promtool(*arguments):
    done = subprocess.run([program("promtool"), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=HANG_S, check=False)
    equal(done.returncode, 0, f"promtool {' '.join(arguments)}: {done.stdout.decode()[-3000:]}")


@test("promtool takes prometheus.yml and alerts.yml, and the rules pass their tests")
def rules():
    promtool("check", "config", os.path.join(FOLDER, "prometheus.yml"))
    promtool("check", "rules", os.path.join(FOLDER, "alerts.yml"))
    promtool("test", "rules", os.path.join(FOLDER, "alerts_test.yml"))


@test("each rule is tested where it fires and names a symptom that docs/operating.md has")
def each_rule():
    cases = yaml.safe_load(read(FOLDER, "alerts_test.yml"))["tests"][0]["alert_rule_test"]
    fired = {case["alertname"] for case in cases if case["exp_alerts"]}
    equal(fired, {rule["alert"] for rule in RULES}, "rules that fire in alerts_test.yml")
    headings = {re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
                for line in read(ROOT, "docs", "operating.md").splitlines()
                if line.startswith("#")}
    for rule in RULES:
        page, _, symptom = rule["annotations"]["runbook"].partition("#")
        equal(page, "docs/operating.md", "the page")
        check(symptom in headings, f"{rule['alert']}: {page} has no #{symptom}")
        check(rule["labels"]["severity"] in ("page", "ticket"), f"{rule['labels']}")


@test("rules and dashboard name only metrics that kotad has")
def known():
    have = names()
    for where, text in expressions() + [(rule["alert"], rule["expr"]) for rule in RULES] + [
            ("the variable", DASHBOARD["templating"]["list"][1]["query"]["query"])]:
        named = set(METRIC.findall(text))
        check(named or "up{" in text, f"{where} names no metric: {text}")
        check(named <= have, f"{where}: there is no {sorted(named - have)}")


@test("the dashboard's panels have titles, ids and places of their own")
def panels():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    equal(len(ids), len(set(ids)), "ids")
    taken = set()
    for panel in DASHBOARD["panels"]:
        check(panel["title"], f"panel {panel['id']} has no title")
        at = panel["gridPos"]
        check(at["x"] + at["w"] <= 24, f"{panel['title']} is too wide")
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}
        check(not cells & taken, f"{panel['title']} lies on another")
        taken |= cells


@test("the provisioning files are YAML that names the dashboard's folder and a source")
def provisioning():
    source = yaml.safe_load(read(GRAFANA, "provisioning", "datasources", "kota.yml"))
    equal(source["datasources"][0]["type"], "prometheus", "the source")
    boards = yaml.safe_load(read(GRAFANA, "provisioning", "dashboards", "kota.yml"))
    check(boards["providers"][0]["options"]["path"], "no folder")


class Prometheus(Background):
    """The committed configuration, with another target and a scrape each second."""

    def __init__(self, target):
        super().__init__()
        prometheus = program("prometheus")
        config = read(FOLDER, "prometheus.yml")
        for old, new in (("127.0.0.1:7421", target), ("_interval: 15s", "_interval: 1s")):
            check(old in config, f"prometheus.yml has no {old}")
            config = config.replace(old, new)
        self.write("alerts.yml", read(FOLDER, "alerts.yml"))
        self.port = free_port()
        self.start(prometheus, "--config.file", self.write("prometheus.yml", config),
                   "--storage.tsdb.path", self.path("data"),
                   "--web.listen-address", f"127.0.0.1:{self.port}")

    def ask(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=HANG_S) as answer:
                got = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 503:
                raise OSError("not yet") from error
            got = json.load(error)
        check(got["status"] == "success", f"{path} {query}: {got}")
        return got["data"]

    def result(self, text):
        return self.ask("query", query=text)["result"]


@test("a real Prometheus scrapes --ops-listen, finds the series, and evaluates rules and panels")
def real():
    folder = tempfile.mkdtemp(prefix="kota-test-")
    port_file = os.path.join(folder, "ops")
    try:
        with Daemon("--data", os.path.join(folder, "d"), "--ops-listen", "127.0.0.1:0",
                    "--ops-port-file", port_file) as daemon:
            daemon.ok("PUT", "/v1/locales/land", {}, status=201)
            with open(port_file) as file:
                target = f"127.0.0.1:{int(file.read())}"
            with Prometheus(target) as prometheus:
                scraped(prometheus, daemon, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def scraped(prometheus, daemon, target):
    prometheus.wait(lambda: prometheus.result("kota_ready"), "kota_ready is found")
    sample = prometheus.result("kota_ready")[0]
    equal(sample["metric"], {"__name__": "kota_ready", "instance": target, "job": "kotad"}, "labels")
    equal(sample["value"][1], "1", "kota_ready")
    equal(prometheus.result('kota_locale_revision{locale="land"}')[0]["value"][1], "1", "revision")
    have = set(prometheus.ask("label/__name__/values"))
    elsewhere = {n for n in names() if "route_duration" in n or n.startswith(("kota_cluster_", "kota_token_"))}
    equal(names() - have - elsewhere, set(), "series that lack")
    for _ in range(20):
        daemon.ok("GET", "/v1/locales/land")
    route = 'kota_http_requests_total{route="/v1/locales/{locale}",method="GET",class="2xx"}'
    prometheus.wait(lambda: prometheus.result(route)[0]["value"][1] == "20", "the requests")
    targets = prometheus.ask("targets")["activeTargets"]
    equal([(t["health"], t["lastError"]) for t in targets], [("up", "")], "the target")
    for _, text in expressions():
        prometheus.result(text)  # Prometheus can read and evaluate it

    def evaluated():
        rules_ = prometheus.ask("rules")["groups"][0]["rules"]
        return {r["name"]: (r["health"], r["state"]) for r in rules_
                if r["health"] != "unknown"} or None
    got = prometheus.wait(evaluated, "the rules")
    equal(got, {rule["alert"]: ("ok", "inactive") for rule in RULES}, "the rules")


run()
