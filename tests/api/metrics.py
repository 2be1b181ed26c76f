"""Reads Prometheus text (exposition format 0.0.4) strictly: what /metrics says, and in which form."""
import functools
import re

from tap import check

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(rf'({NAME})="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)')


class Family:
    """One metric: HELP, TYPE, and its samples as {(suffix, ((label, value), …)): number}."""

    def __init__(self, name, help_text):
        self.name, self.help, self.type, self.samples = name, help_text, None, {}

    @property
    def labels(self):
        """Label names but `le`, in their order."""
        found = []
        for _, labels in self.samples:
            found += [name for name, _ in labels if name not in found and name != "le"]
        return found

    def value(self, suffix="", **labels):
        return self.samples[suffix, tuple(sorted(labels.items()))]

    def total(self, suffix="", **labels):
        """The sum of all samples with these labels."""
        return sum(value for (end, of), value in self.samples.items()
                   if end == suffix and set(labels.items()) <= set(of))


@functools.cache
def read_labels(text):
    labels, at = [], 0
    while at < len(text or ""):
        match = LABEL.match(text, at)
        check(match, f"labels that cannot be read: {text!r}")
        labels.append((match.group(1), match.group(2)))
        at = match.end()
    check(len({name for name, _ in labels}) == len(labels), f"a label twice: {text!r}")
    return tuple(sorted(labels))


def read_histogram(family):
    """Buckets grow, the last is +Inf and equals _count, _sum is there."""
    rows = {}
    for (suffix, labels), value in family.samples.items():
        rest = tuple(pair for pair in labels if pair[0] != "le")
        rows.setdefault(rest, {}).setdefault(suffix, []).append((dict(labels).get("le"), value))
    for labels, parts in rows.items():
        check(set(parts) == {"_bucket", "_sum", "_count"}, f"{family.name}{labels}: {set(parts)}")
        edges = [float(edge) for edge, _ in parts["_bucket"]]
        counts = [value for _, value in parts["_bucket"]]
        check(edges == sorted(set(edges)) and edges[-1] == float("inf"), f"{family.name}: {edges}")
        check(counts == sorted(counts) and counts[-1] == parts["_count"][0][1],
              f"{family.name}{labels}: {counts}, {parts['_count']}")


def parse(text):
    """{name: Family}. HELP comes before TYPE, TYPE before samples, and no sample comes twice."""
    families, family = {}, None
    check(text.endswith("\n"), "the last line does not end")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, help_text = line[7:].partition(" ")
            check(name not in families, f"{name} is there twice")
            check(help_text, f"{name} has no help")
            family = families[name] = Family(name, help_text)
            continue
        if line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            check(family and name == family.name and family.type is None, f"TYPE out of place: {line}")
            check(kind in ("counter", "gauge", "histogram"), f"of which type? {line}")
            family.type = kind
            continue
        match = SAMPLE.fullmatch(line)
        check(match, f"not a sample: {line!r}")
        check(family and match.group(1).startswith(family.name), f"a sample of another: {line!r}")
        suffix = match.group(1)[len(family.name):]
        wanted = ("_bucket", "_sum", "_count") if family.type == "histogram" else ("",)
        check(suffix in wanted, f"a sample of another: {line!r}")
        key = suffix, read_labels(match.group(2))
        check(key not in family.samples, f"a sample comes twice: {line!r}")
        family.samples[key] = float(match.group(3))
    for each in families.values():
        check(each.type, f"{each.name} has no type")
        check((each.type == "counter") == each.name.endswith("_total"),
              f"{each.name} is a {each.type}")
        if each.type == "histogram":
            read_histogram(each)
    return families


def scrape(daemon, **named):
    answer = daemon.get("/metrics", **named)
    check(answer.status == 200, f"/metrics: {answer}")
    check(answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8",
          f"Content-Type {answer.headers['content-type']}")
    return parse(answer.body.decode("utf-8"))


def bodies_bytes(daemon):
    """Memory of the bodies of requests under way; those of 2,048 bytes and less are not counted."""
    return scrape(daemon)["kota_request_bodies_bytes"].value()
