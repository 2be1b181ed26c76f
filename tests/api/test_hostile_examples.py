"""Every example of the contract, spoilt at random: values, members, parameters, headers, bytes.

Whatever comes of it is documented: a status below 500, or 503 and 507 for what waiting or less
helps; a body of a media type that the contract names; a problem document that is whole. The daemon
goes on, and complains of nothing at its end.

KOTA_HOSTILE_ROUNDS  of 300 requests (25, or 250 in make test-all): the same ones on each machine
"""
import copy
import gzip
import json
import os
import shutil
import subprocess
import urllib.parse

from daemon import JSON, PROBLEM, Daemon
from schema import contract
from tap import ALL, check, equal, rng, run, test

ROUNDS = int(os.environ.get("KOTA_HOSTILE_ROUNDS", "250" if ALL else "25"))
STREAM = "text/event-stream"
NUMBERS = [0, -0.0, 1, -1, 2, 3, 0.5, 1e-320, 5e-324, 1e16, -1e16, 1e38, 3.5e38, 1e300, -1e308, 2 ** 31,
           2 ** 32, 2 ** 53, 2 ** 63, 2 ** 64, 1e19, 255, 256, 257, 16777216, 16777217, 64, 65]
WORDS = ["", "a", "ground", "hills", "beach", "NaN", "inf", "-inf", "nan", "null", "true", "1e999", "0x10",
         "%00", "%", "%zz", "..", "../..", "*", "é", "\u2028", "x" * 65, "x" * 300, "1,2", "1,2,3",
         "0,0,4294967295,4294967295", "-1", " 1", "1 ", "+1", "1e5", "9" * 400, ",", ",,", "a,b", "\"", "\t"]


def resolve(document, node):
    while "$ref" in node:
        target = document
        for part in node["$ref"][2:].split("/"):
            target = target[part]
        node = target
    return node


def asked(document):
    """(method, path with its braces, names of parameters, body or None, media) of each example."""
    for path, item in document["paths"].items():
        for method in ("get", "put", "post", "patch", "delete"):
            if method not in item:
                continue
            operation = item[method]
            names = [resolve(document, p) for p in
                     item.get("parameters", []) + operation.get("parameters", [])]
            yield method, path, names, None, None
            for media, entry in operation.get("requestBody", {}).get("content", {}).items():
                for example in entry.get("examples", {}).values():
                    yield method, path, names, example["value"], media
                if not entry.get("examples"):
                    yield method, path, names, b"", media


def any_value(random):
    return random.choice((random.choice(NUMBERS), random.choice(NUMBERS), random.choice(WORDS), None,
                          True, False, [], {}, [0], [[0, 0]], [0, 0, 0], {"a": 1}))


def places(value, path=()):
    """Every place of a JSON value, as a path."""
    yield path
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], path + (name,))
    elif isinstance(value, list):
        for i, item in enumerate(value[:20]):
            yield from places(item, path + (i,))


def spoil(random, value):
    """The value with a few places changed, doubled, left out or wrapped."""
    value = copy.deepcopy(value)
    for _ in range(random.choice((0, 1, 1, 1, 2, 4))):
        path = random.choice(list(places(value)))
        if not path:
            return any_value(random)
        inner = value
        for step in path[:-1]:
            inner = inner[step]
        what, last = random.random(), path[-1]
        if what < 0.6:
            inner[last] = any_value(random)
        elif what < 0.75:
            del inner[last]
        elif what < 0.9 and isinstance(inner, list):
            inner[last:last] = [inner[last]] * random.choice((1, 2, 70, 3000))
        elif isinstance(inner, dict):
            inner[random.choice(WORDS)] = any_value(random)
        else:
            inner[last] = [inner[last]]
    return value


def spoilt_bytes(random, data):
    data = bytearray(data)
    for _ in range(random.choice((0, 0, 1, 3))):
        if data:
            at = random.randrange(len(data))
            what = random.random()
            if what < 0.5:
                data[at] = random.choice((0, 10, 34, 44, 45, 46, 48, 91, 92, 93, 123, 125, 128, 255))
            elif what < 0.7:
                del data[at:at + random.choice((1, 2, len(data)))]
            else:
                data[at:at] = data[max(0, at - 9):at] * random.choice((1, 5))
    return bytes(data)


def filled(random, path):
    locales = ["hills", "beach", "nobody", "hills"]
    values = {"{locale}": locales, "{dataset}": locales, "{model}": ["tetrahedron", *locales],
              "{layer}": ["ground", "ground", "none"],
              "{level}": ["0", "1", "31", "4294967296"], "{column}": ["0", "1", "-1"],
              "{row}": ["0", "2147483648"], "{patch}": ["1", "1", "2", "0", "18446744073709551616"],
              "{body}": ["0", "1", "-1"], "{file}": ["kota.js", "state.js", "x"]}
    for name, some in values.items():
        value = random.choice(some) if random.random() < 0.9 else random.choice(WORDS)
        path = path.replace(name, urllib.parse.quote(value, safe="%/"))
    return path


def headers_of(random, names):
    made = {}
    for parameter in names:
        if parameter["in"] == "header" and random.random() < 0.3:
            made[parameter["name"]] = random.choice(
                ["*", '"1"', '"1", W/"2"', "1", "0", "18446744073709551616", "x" * 129, "", '"', "a b"])
    if random.random() < 0.1:
        made[random.choice(("Accept", "Range", "Origin", "Kota-Min-Revision", "If-None-Match",
                            "Content-Encoding", "TE", "Cookie", "Accept-Encoding"))] = random.choice(
            ("", "*", "0", "bytes=0-", "gzip", "1", "https://a", "99999999999999999999"))
    return made


def query_of(random, names):
    pairs = []
    for parameter in names:
        if parameter["in"] == "query" and random.random() < 0.5:
            value = random.choice(WORDS + [str(n) for n in NUMBERS]) if random.random() < 0.6 else \
                str(parameter.get("example", parameter.get("schema", {}).get("example", "1")))
            pairs.append((parameter["name"], value))
    if random.random() < 0.05:
        pairs.append((random.choice(WORDS), random.choice(WORDS)))
    if pairs and random.random() < 0.05:
        pairs.append(pairs[0])
    return "&".join("=".join(urllib.parse.quote(part, safe="%,") for part in pair) for pair in pairs)


def build(daemon, document):
    for request in document["x-kota-world"]:
        daemon.ask(request["method"], request["path"], request["body"], media=request["content-type"])


def what_was_asked(target, body):
    return (target + (body or b"").decode("utf-8", "replace")).lower()


def one(random, daemon, document, example):
    method, path, names, body, media = example
    target, query = filled(random, path), query_of(random, names)
    if query:
        target += "?" + query
    if media == JSON or isinstance(body, (dict, list)):
        body = spoilt_bytes(random, json.dumps(spoil(random, body)).encode())
    elif body is not None:
        body = body.encode() if isinstance(body, str) else bytes(body)
        body = body or random.randbytes(random.choice((0, 1, 4, 8, 12, 16, 24, 28, 56, 280)))
        body = spoilt_bytes(random, body)
    if random.random() < 0.03:
        media = random.choice(("text/plain", JSON, "application/vnd.kota.f32", "", "a/b; c=d"))
    verb = method.upper()
    responses = document["paths"][path][method]["responses"]
    if STREAM in str(responses) and "/events" in path:
        verb = "HEAD"  # a stream does not end
    answer = daemon.ask(verb, target, body, media=media, headers=headers_of(random, names))
    if answer.headers.get("content-encoding") == "gzip":
        answer.body = gzip.decompress(answer.body)
    if answer.headers.get("content-encoding") == "zstd":  # for Accept-Encoding: *
        if not shutil.which("zstd"):
            return answer.status
        answer.body = subprocess.run(["zstd", "-dc"], input=answer.body, capture_output=True,
                                     check=True).stdout
    what = f"{verb} {target} {str(media)} {body[:600] if body else body!r}: {answer}"
    check(answer.status < 500 or answer.status in (503, 507), what)
    if answer.status >= 400 and verb != "HEAD":
        problem = answer.json
        if answer.media_type != PROBLEM:  # calls that answer like another service
            described = resolve(document, responses.get(str(answer.status), responses["default"]))
            check(answer.media_type in described["content"], what)
            return answer.status
        equal(problem["status"], answer.status, what)
        check(problem["title"] and problem["detail"], what)
        if answer.status in (400, 404, 405, 415, 422) and problem["code"] != "bad_request":
            (where,) = problem["errors"]
            check(where["pointer"] and (where["pointer"] != "body" or method != "get"), what)
    elif answer.body and answer.media_type == JSON:
        if path.startswith("/v1/compat/") and "nan" in what_was_asked(target, body):
            json.loads(answer.body)  # nodata_value=nan is answered with a bare NaN
        else:
            answer.json  # NaN and Infinity are refused here
    return answer.status


@test("examples of the contract, spoilt in every way, are answered as the contract says")
def _():
    document, random = contract(), rng("spoilt")
    examples = [e for e in asked(document) if e[1] not in ("/v1/stats", "/metrics")]
    seen = {}
    with Daemon("--gpu", "cpu", "--patch-granules", "800", "--patches-fine", "1",
                "--patches-medium", "1", "--patches-coarse", "1", "--patch-speed", "0",
                "--max-samples", "1000000", "--max-edit-samples", "1000000",
                "--max-world-bytes", str(1 << 28), "--max-batch-ms", "2000") as daemon:
        for _ in range(ROUNDS):
            build(daemon, document)
            for _ in range(300):
                status = one(random, daemon, document, random.choice(examples))
                seen[status] = seen.get(status, 0) + 1
        equal(daemon.get("/livez").status, 200, "livez")
    print("# " + ", ".join(f"{status}: {count}" for status, count in sorted(seen.items())))
    check(seen.get(200, 0) > 50 and seen.get(400, 0) > 50, f"answers: {seen}")


run()
