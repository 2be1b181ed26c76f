"""The contract: every route is in proto/openapi.yaml and the reverse, each example is answered."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from daemon import F32, JSON, PROBLEM, PROXY, ROOT, Daemon
from events import Stream, blocks
from schema import contract, faults, resolve
from tap import HANG_S, Skip, case, check, equal, fail, near, run, test

folder = tempfile.TemporaryDirectory(prefix="kota-test-")
daemon = Daemon("--gpu", "cpu", "--audit", os.path.join(folder.name, "audit"))
document = contract()
METHODS = ("get", "put", "post", "patch", "delete")
STREAM = "text/event-stream"
WORLD = {"/v1/locate", "/v1/contact", "/v1/ray", "/v1/pick"}  # of many locales
EXAMPLE_VALUES = {"{locale}": "hills", "{dataset}": "hills", "{model}": "tetrahedron",
                  "{layer}": "ground", "{level}": "0", "{column}": "0", "{row}": "0",
                  "{z}": "14", "{x}": "8711", "{y}": "5744.png",
                  "{pin}": "underground", "{patch}": "1", "{body}": "0", "{impact}": "1",
                  "{watch}": "nobody", "{file}": "kota.js"}


def operations():
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method], item.get("parameters", [])


def concrete(path):
    if "{patch}" in path:
        path = path.replace("{locale}", "beach")  # where the patch of the examples is
    if path.endswith("/terrain/{z}/{x}/{y}"):
        path = path.replace("{z}/{x}/{y}", "14/17422/12494.terrain")
    for name, value in EXAMPLE_VALUES.items():
        path = path.replace(name, value)
    return path


# ---- the document by itself -------------------------------------------------------------------------


@test("every reference of the document leads somewhere")
def _():
    def walk(node):
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                resolve(document, node)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)
    walk(document)


@test("every operation has an id of its own, a summary, a tag, and says what errors look like")
def _():
    ids, tags = set(), {tag["name"] for tag in document["tags"]}
    for path, method, operation, _ in operations():
        what = f"{method} {path}"
        check(operation["operationId"] not in ids, f"{what}: operationId twice")
        ids.add(operation["operationId"])
        check(operation.get("summary", "").endswith((".", "?")) or "Needs no token"
              in operation["summary"], f"{what}: summary")
        check(set(operation["tags"]) <= tags, f"{what}: tags")
        check("default" in operation["responses"], f"{what}: no default response")
        for status, response in operation["responses"].items():
            response = resolve(document, response)
            check(response.get("description"), f"{what} {status}: no description")
            if status == "default" or status >= "400":
                is_theirs = "compat" in operation["tags"] and status == "400"  # as others say it
                equal(list(response["content"]), [JSON if is_theirs else PROBLEM],
                      f"{what} {status}")


@test("path parameters are declared, all parameters have a description and a schema")
def _():
    for path, method, operation, shared in operations():
        parameters = [resolve(document, p) for p in shared + operation.get("parameters", [])]
        names = {p["name"] for p in parameters if p["in"] == "path"}
        equal(names, set(re.findall(r"\{(\w+)\}", path)), f"{method} {path}")
        for parameter in parameters:
            check(parameter.get("description") and parameter.get("schema"),
                  f"{method} {path}: {parameter['name']}")
            check(parameter["in"] != "path" or parameter.get("required"), f"{parameter['name']}")


@test("every operation on JSON has an example")
def _():
    for path, method, operation, _ in operations():
        if path in ("/v1/limits", "/v1/stats", "/v1/audit", "/openapi.json", "/v1/watches/{watch}"):
            continue
        for status, response in operation["responses"].items():
            content = resolve(document, response).get("content", {})
            if status.startswith("2") and JSON in content and (
                    status == min(s for s in operation["responses"] if s.startswith("2"))
                    and len([s for s in operation["responses"] if s.startswith("20")]) == 1):
                check(content[JSON].get("examples"), f"{method} {path} {status} has no example")


def examples():
    """(path, method, status, media, name, example, body or None, body media) of every example."""
    for path, method, operation, _ in operations():
        bodies = operation.get("requestBody", {}).get("content", {})
        for status, response in operation["responses"].items():
            for media, content in resolve(document, response).get("content", {}).items():
                for name, example in content.get("examples", {}).items():
                    body = body_media = None
                    for candidate, entry in bodies.items():
                        if name in entry.get("examples", {}):
                            body, body_media = entry["examples"][name]["value"], candidate
                    yield path, method, status, media, name, example, body, body_media


def example_fits(schema, value):
    wrong = faults(document, schema, value)
    check(not wrong, "; ".join(wrong[:5]))


for path_, method_, operation_, _ in operations():
    for media_, entry_ in operation_.get("requestBody", {}).get("content", {}).items():
        for name_, example_ in entry_.get("examples", {}).items():
            case(f"the example {name_} of {method_} {path_} fits its schema (request)",
                 example_fits, entry_["schema"], example_["value"])
for path_, method_, status_, media_, name_, example_, _, _ in examples():
    response_ = resolve(document, document["paths"][path_][method_]["responses"][status_])
    case(f"the example {name_} of {method_} {path_} fits its schema ({status_})", example_fits,
         response_["content"][media_]["schema"], example_["value"])


# ---- by others' eyes --------------------------------------------------------------------------------


def judged(*subjects):
    """What tests/web/contract.mjs says of each of these documents."""
    node = shutil.which("node")
    if not node:
        raise Skip("no node (deploy/install-deps.sh test)")
    if not os.path.isdir(os.path.join(ROOT, "tests/web/node_modules/@seriousme")):
        raise Skip("no openapi-schema-validator: run `npm ci` in tests/web")
    done = subprocess.run([node, "tests/web/contract.mjs"], cwd=ROOT, input=json.dumps(subjects),
                          capture_output=True, text=True, timeout=HANG_S)
    check(done.returncode == 0, done.stderr[-3000:])
    return json.loads(done.stdout)


@test("a validator from npm takes it for OpenAPI 3.1 and Ajv every example for valid; both find what is "
      "put wrong")
def _():
    paths = {name: document["paths"][name] for name in ("/livez", "/v1/locales/{locale}")}
    numbers, texts = (json.loads(json.dumps({**document, "paths": paths})) for _ in range(2))
    numbers["paths"]["/livez"]["get"]["responses"] = 7
    texts["components"]["schemas"]["Revision"] = {"type": "string"}
    said, first, second = judged(document, numbers, texts)
    check(said["valid"] and said["version"] == "3.1", f"{said}"[:3000])
    check(said["examples"] >= 80, f"only {said['examples']} examples were looked at")
    equal(said["faults"], [], "examples by Ajv")
    check(not first["valid"] and not first["faults"], "responses that are a number")
    check(second["valid"] and second["faults"], "revisions that are texts")


# ---- the document and the daemon ------------------------------------------------------------------------


@test("/openapi.json is this document")
def _():
    equal(daemon.ok("GET", "/openapi.json"), json.loads(json.dumps(document)), "document")


@test("the world of the examples is built")
def _():
    for request in document["x-kota-world"]:
        answer = daemon.ask(request["method"], request["path"], request["body"],
                            media=request["content-type"])
        check(answer.status in (200, 201), f"{request['path']}: {answer}")


def same(got, want, volatile, where="$"):
    """Member by member; floats within 1e-9, volatile members by presence alone."""
    if isinstance(want, dict):
        check(isinstance(got, dict), f"{where}: {got!r} is no object")
        equal(sorted(got), sorted(want), f"members of {where}")
        for name, value in want.items():
            if name not in volatile:
                same(got[name], value, volatile, f"{where}.{name}")
    elif isinstance(want, list):
        check(isinstance(got, list), f"{where}: {got!r} is no array")
        equal(len(got), len(want), f"length of {where}")
        for i, (a, b) in enumerate(zip(got, want)):
            same(a, b, volatile, f"{where}[{i}]")
    elif isinstance(want, (int, float)) and not isinstance(want, bool):
        near(got, want, where, 1e-9)
    else:
        equal(got, want, where)


def begun(target, example):
    """A stream begins with the blocks of its example; data is compared as JSON, ids as text."""
    volatile = set(example.get("x-kota-volatile", []))
    wants = blocks(example["value"])
    with Stream(daemon.port, target) as stream:
        equal(stream.status, 200, target)
        equal(stream.headers["content-type"], STREAM, "Content-Type")
        for want in wants:
            got = stream.block()
            equal([name for name, _ in got], [name for name, _ in want], "fields")
            for (name, value), (_, wanted) in zip(got, want):
                if name == "data":
                    schema = dict(want)["event"].replace("edit", "event").capitalize()
                    wrong = faults(document, document["components"]["schemas"][schema],
                                   json.loads(value))
                    check(not wrong, "; ".join(wrong[:5]))
                    same(json.loads(value), json.loads(wanted), volatile)
                elif name not in volatile:
                    equal(value, wanted, name)


# what every answer may have: the description of the document says so
COMMON = {"content-length", "content-type", "date", "connection", "x-request-id", "vary",
          "access-control-allow-origin", "access-control-expose-headers", "keep-alive", "server-timing", "timing-allow-origin"}


def headers_told(what, answer, response):
    """A header that an answer has is documented for it."""
    told = {name.lower() for name in response.get("headers", {})}
    more = {name.lower() for name in answer.headers} - COMMON - ({"server"} if PROXY else set()) - told
    check(not more, f"{what}: headers that are not documented: {sorted(more)}")


revisions_seen = set()


def revision_named(path, method, answer):
    """An answer about ground of one locale has the header; of the world's ground each item its own."""
    if "ground" not in document["paths"][path][method]["tags"] or answer.status != 200:
        return
    header = answer.headers.get("kota-revision")
    if path in WORLD:
        equal(header, None, f"Kota-Revision of {method} {path}")
        for item in answer.json.get("results", [answer.json]):
            equal(isinstance(item["revision"], int), item["locale"] is not None, f"{item}")
    else:
        equal(header, str(answer.json["revision"]), f"Kota-Revision of {method} {path}")
    revisions_seen.add((method, path))


def answered(path, method, status, media, example, body, body_media):
    request = example.get("x-kota-request", {})
    before = request.get("before", [])
    for first in before if isinstance(before, list) else [before]:
        answer = daemon.ask(first["method"], first["path"], first["body"],
                            media=first.get("content-type", JSON))
        check(answer.status in (200, 201), f"before: {answer}")
    if "json" in request:
        body, body_media = request["json"], JSON
    target = request.get("path", concrete(path))
    if "query" in request:
        target += "?" + request["query"]
    if media == STREAM:
        begun(target, example)
        return
    answer = daemon.ask(method.upper(), target, body, media=body_media,
                        headers=request.get("headers"))
    check(answer.status == int(status), f"{method} {target}: expected {status}, got {answer}")
    equal(answer.media_type, media, "Content-Type")
    headers_told(f"{method} {path} {status}", answer,
                 resolve(document, document["paths"][path][method]["responses"][status]))
    revision_named(path, method, answer)
    volatile = set(example.get("x-kota-volatile", []))
    want = example["value"]
    got = answer.json if media.endswith("json") else answer.body.decode()
    if media == PROBLEM:
        # A problem may tell more than the example does: errors, limit, got.
        got = {name: value for name, value in got.items() if name in want}
    same(got, want, volatile)


for path_, method_, status_, media_, name_, example_, body_, bmedia_ in examples():
    case(f"the example {name_} of {method_} {path_} is answered as it stands ({status_})", answered,
         path_, method_, status_, media_, example_, body_, bmedia_)


@test("every answer about ground names its revision: one locale's in a header, the world's per item")
def _():
    equal({(method, path) for path, method, operation, _ in operations()
           if "ground" in operation["tags"]} - revisions_seen, set(), "operations not looked at")
    equal(WORLD - {path for _, path in revisions_seen}, set(), "of the world")


def answer_fits(path, method, body):
    """A live answer is valid against the schema of its status and media type."""
    answer = daemon.ask(method.upper(), path[1], body)
    responses = document["paths"][path[0]][method]["responses"]
    response = resolve(document, responses.get(str(answer.status), responses["default"]))
    check(answer.media_type in response["content"], f"{answer.media_type} is not documented")
    headers_told(f"{method} {path[1]} {answer.status}", answer, response)
    wrong = faults(document, response["content"][answer.media_type]["schema"], answer.json)
    check(not wrong, "; ".join(wrong[:5]))


for path_, query_ in (("/v1/limits", ""), ("/v1/stats", ""), ("/v1/locales", ""), ("/livez", ""),
                      ("/readyz", ""), ("/v1/locales/{locale}", ""),
                      ("/v1/locales/{locale}/layers/{layer}/stats", ""),
                      ("/v1/locales/{locale}/height", "?x=1"),
                      ("/v1/locales/{locale}/height", "?x=1&y=1"),
                      ("/v1/locales/{locale}/tiles/{level}/{column}/{row}", "?format=jpeg")):
    case(f"the answer to GET {path_}{query_} fits the document", answer_fits,
         (path_, concrete(path_) + query_), "get", None)

RAY = {"origin": [5, 5, 20], "direction": [1, 1, -1]}
for call_, body_ in (
        ("height", {"points": [[0, 0], [38, 8], [-9, 0]], "fields": ["height", "normal", "cell"]}),
        ("profile", {"path": [[-5, -5], [45, 35]], "samples": 30}),
        ("contact", {"points": [[1, 1, 9], [1, 1, -9], [38, 8, 1], [99, 0, 0]], "clearance": 1}),
        ("contact", {"footprints": [[[1, 1, 9], [5, 1, 9], [1, 5, 9], [5, 5, 9]],
                                    [[1, 1, 9], [99, 1, 9], [1, 5, 9]]]}),
        ("ray", {"rays": [RAY], "trace": True}),
        ("ray", {"rays": [RAY, {**RAY, "t_max": -1}, {**RAY, "direction": [0, 0, 1]}]}),
        ("los", {"segments": [{"from": [0, 14, 3], "to": [40, 14, 3]}]}),
        ("pick", {"camera": {"eye": [38, 8, 50], "target": [38, 8, 0], "up": [0, 1, 0],
                             "fov_y_deg": 60}, "viewport": [8, 6], "pixel": [4, 3]}),
        ("contains", {"points": [[1, 1, 9], [38, 8, 1]]}),
        ("lit", {"points": [[1, 1, 9], [1, 1, -9]], "light": {"direction": [1, 2, -3]}}),
        ("lit", {"points": [[1, 1, 9], [1, 1, -9]], "light": {"position": [0, 0, 90]}}),
        ("lit", {"points": [[1, 1, 9]], "light": {"direction": [0, 0, 0]}}),
        ("height", {"points": [[0]]}), ("ray", {"rays": [{**RAY, "origin": "x"}]}),
        ("los", {"segments": [{"from": [0, 0, 0], "to": [1, 1, 1]}] * 10_001})):
    path_ = "/v1/locales/{locale}/" + call_
    case(f"the answer to {call_} {json.dumps(body_)[:60]} fits the document", answer_fits,
         (path_, concrete(path_)), "post", body_)


@test("the headers of deletions, replays, tiles, files and unchanged answers are documented")
def _():
    def told(method, path, target, body=None, media=None, **headers):
        answer = daemon.ask(method, target, body, media=media, headers=headers)
        responses = document["paths"][path][method.lower()]["responses"]
        check(str(answer.status) in responses, f"{method} {target}: {answer}")
        headers_told(f"{method} {target} {answer.status}", answer,
                     resolve(document, responses[str(answer.status)]))
        return answer

    place, layer = "/v1/locales/{locale}", "/v1/locales/{locale}/layers/{layer}"
    for _ in range(2):
        told("PUT", place, "/v1/locales/told", "{}", JSON, **{"Idempotency-Key": "told-1"})
    grid = "ncols 2\nnrows 2\nxllcenter 0\nyllcenter 0\ncellsize 1\n1 2\n3 4\n"
    for key in ("told-2", "told-2", "told-3"):
        told("PUT", layer, "/v1/locales/told/layers/a", grid, "application/vnd.kota.asc",
             **{"Idempotency-Key": key})
    told("PUT", place, "/v1/locales/told", "{}", JSON)
    for form in ("f32", "png16", "terrarium"):
        tile = told("GET", place + "/tiles/{level}/{column}/{row}",
                    f"/v1/locales/told/tiles/0/0/0?format={form}")
        told("GET", place + "/tiles/{level}/{column}/{row}",
             f"/v1/locales/told/tiles/0/0/0?format={form}",
             **{"If-None-Match": tile.headers["etag"]})
    for form in ("f32", "png16"):
        told("GET", layer, f"/v1/locales/told/layers/a?format={form}")
    tag = told("GET", place, "/v1/locales/told").headers["etag"]
    told("GET", place, "/v1/locales/told", **{"If-None-Match": tag})
    for path, target in (("/", "/"), ("/docs", "/docs"),
                         ("/docs/errors", "/docs/errors"), ("/web/{file}", "/web/kota.js")):
        page = told("GET", path, target)
        told("GET", path, target, **{"If-None-Match": page.headers["etag"]})
    for call, size in (("height", 8), ("contact", 12), ("ray", 28), ("contains", 12)):
        told("POST", f"{place}/{call}", f"/v1/locales/told/{call}", bytes(size), F32)
    for _ in range(2):
        told("DELETE", layer, "/v1/locales/told/layers/a", **{"Idempotency-Key": "told-4"})
    told("DELETE", place, "/v1/locales/told")


@test("each header that the document names can be read by pages of other origins")
def _():
    answer = daemon.get("/v1/locales/hills", headers={"Origin": "http://tool.example"})
    exposed = {name.strip().lower()
               for name in answer.headers["access-control-expose-headers"].split(",")}
    # what any page may read, and what belongs to the connection or to OPTIONS
    given = {"content-length", "content-type", "cache-control", "allow", "connection", "vary",
             "www-authenticate", "content-security-policy",
             "x-content-type-options", "content-encoding"}
    named = {name.lower() for _, _, operation, _ in operations()
             for response in operation["responses"].values()
             for name in resolve(document, response).get("headers", {})}
    named |= {name.lower() for name in document["components"]["headers"]}
    check("kota-spacing" in named, f"headers of the document: {named}")
    equal(named - exposed - given, set(), "not exposed")


def reachable(path, method):
    """Neither 404 of a route nor 405; the call itself may be refused."""
    target = concrete(path)
    if method in ("put", "delete"):
        for name in ("hills", "beach", "tetrahedron"):
            target = target.replace(name, "nobody")
    is_stream = STREAM in document["paths"][path][method]["responses"].get("200", {}).get(
        "content", {})
    answer = daemon.ask("HEAD" if is_stream else method.upper(), target)
    check(answer.status != 405, f"{method} {target}: {answer}")
    if answer.status == 404 and answer.body:
        check("nobody" in answer.json["detail"] or "ground" in answer.json["detail"],
              f"{method} {target}: {answer}")
    allow = daemon.ask("OPTIONS", target)
    named = {m.strip().lower() for m in allow.headers.get("allow", "").split(",")}
    wanted = {m for m in METHODS if m in document["paths"][path]}
    equal(named - {"head", "options"}, wanted, f"Allow of {target}")


for path_, method_, _, _ in operations():
    case(f"the daemon serves {method_.upper()} {path_}", reachable, path_, method_)


def table():
    """(method, pattern) of every entry of the route table, after the preprocessor."""
    source = os.path.join(ROOT, "server", "api", "routes.c")
    if not os.path.exists(source):
        raise Skip("server/api/routes.c is not here")
    try:
        text = subprocess.run([os.environ.get("CC", "cc"), "-E", "-P", "-D_GNU_SOURCE", "-Iserver",
                               source], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Skip(f"no preprocessor: {error}") from error
    text = text[text.index("api_routes[] ="):]
    found = re.findall(r'METHOD_([A-Z]+)\s*,\s*((?:"[^"]*"\s*)+)', text)
    return [(method.lower(), "".join(re.findall(r'"([^"]*)"', pattern)))
            for method, pattern in found]


@test("/v1 lists every operation, by its name, method, path and summary, and the version")
def _():
    answer = daemon.ok("GET", "/v1")
    equal(answer["version"], daemon.ok("GET", "/v1/stats")["version"], "version")
    listed = [(one["path"], one["method"], one["name"], one["summary"]) for one in answer["calls"]]
    equal(sorted(listed), sorted((path, method.upper(), operation["operationId"], operation["summary"])
                                 for path, method, operation, _ in operations()), "calls")


@test("every route of the daemon's table is in the document, and no other")
def _():
    routes = table()
    check(len(routes) >= 20, f"only {len(routes)} routes found: {routes}")
    equal(len(routes), len(set(routes)), "each once")
    documented = {(method, path) for path, method, _, _ in operations()}
    equal(sorted(set(routes) - documented), [], "routes that are not documented")
    equal(sorted(documented - set(routes)), [], "documented, but no route")


# What the GET form of a question needs.
NEEDED = {"contact": {"x": "1", "y": "1", "z": "9", "clearance": "1"},
          "ray": {"origin": "1,1,9", "direction": "0,0,-1"},
          "los": {"from": "1,1,9", "to": "2,2,9"},
          "pick": {"eye": "1,1,9", "target": "2,2,0", "viewport": "8,6", "pixel": "4,3"},
          "view.png": {"eye": "1,1,9", "target": "2,2,0"}}


def parameter_known(path, method, name):
    """A documented query parameter is not refused as unknown."""
    values = {"layer": "ground", "interp": "nearest", "fields": "height", "x": "1", "y": "1",
              "format": "f32", "kind": "sampled", "base": "0,0,0", "reach_up": "1",
              "max_distance": "9", "status": "true",
              "mode": "any", "since": "2", "width": "64", "height": "48", "locations": "0,0",
              "path": "0,0|1,1&samples=2", "samples": "2", "interpolation": "nearest",
              "nodata_value": "nan", "per_cell": "2", "direction": "0,0,-1", "position": "0,0,9",
              "t_max": "5", "clearance_mode": "exact", "max_distance": "5", "up": "0,1,0",
              "fov_y_deg": "40", "tile_side": "2", "tile": "hex,5", "status": "true", "limit": "2", "after": "a",
              "layers": "true", "rect": "0,0,1,1", "step": "2", "rows": "north", "sphere": "1",
              "capsule": "1,2", "box": "1,1,1,0", "dt": "1", "slope_max_deg": "45",
              "step_up": "1", "snap_down": "1", "hits_max": "3", "live": "true", "at": "2",
              "quadtree": "true", "bounds": "0,0,9,9", "note": "why",
              "author": "alice", "before": "2", "order": "newest",
              "size": "16,12", "sun": "0,0,-1", "shadows": "false"}
    if "/dem" in path or "/terrain" in path or path.endswith((".tif", ".glb")):
        values |= {"style": "relief", "encoding": "mapbox", "void": "zero", "sampling": "mean",
                   "v": "2", "size": "65", "extensions": "metadata"}
    if "/compat/" in path:
        values["format"] = "geojson"
    if path == "/v1/audit":
        values["after"] = "1"
    target = concrete(path)
    if path.endswith("/events"):
        values = {"bounds": "0,0,9,9", "layer": "ground", "samples": "f32"}
        equal(daemon.ask("HEAD", f"{target}?{name}={values.get(name, '1')}").status, 200, target)
        return
    needed = NEEDED.get(path.split("/")[-1], {}) if method == "get" else {}
    if path.endswith("{locale}/view.png"):  # a small picture
        needed = {**needed, "size": "16,12", "shadows": "false"}
    if needed:
        query = "&".join(f"{a}={b}" for a, b in {name: values.get(name), **needed}.items())
    else:
        query = f"{name}={values.get(name, 'x') if '/compat/' in path else values[name]}"
    if path.endswith("/los") and name == "mode":
        query = query.replace("mode=any", "mode=all")
    if name == "hits_max":
        query += "&mode=all"
    if "/compat/" in path and name not in ("locations", "path"):
        query += "&locations=0,0"
    if path.endswith("/height") and method == "get" and name not in ("x", "y"):
        query += "&x=1&y=1"
    elif name in ("x", "y") and not needed:
        query = "x=1&y=1"
    elif path.endswith("/diff") and name != "since":
        query += "&since=2"
    body = media = None
    if method == "post" and "/compat/" not in path:
        media = F32
        body = bytes({"height": 8, "contact": 12, "contains": 12, "ray": 28,
                      "lit": 12, "sweep": 24, "move": 24}[path.split("/")[-1]])
        if path.endswith(("/sweep", "/move")):
            query += "" if name in ("sphere", "capsule", "box") else "&sphere=1"
            query += "&dt=1" if path.endswith("/move") and name != "dt" else ""
        if path.endswith("/lit") and name not in ("direction", "position"):
            query += "&direction=0,0,-1"
        if "profile" in path:
            fail("no binary form")
    answer = daemon.ask(method.upper(), f"{target}?{query}", body, media=media)
    if path.endswith("tileset.json"):  # hills has no mesh
        equal((answer.status, answer.json["code"]), (422, "unprocessable"), f"{target}?{query}")
        return
    equal(answer.status, 200, f"{method} {target}?{query}: {answer.body[:300]!r}")


for path_, method_, operation_, shared_ in operations():
    if method_ not in ("get", "post") or method_ == "post" and path_.split("/")[-1] in (
            "profile", "los", "pick", "edits", "patches", "polygons", "bodies", "impacts", "locales", "restore", "revert",
            "view.png"):
        continue
    if path_.endswith("/impacts/{impact}"):  # hills has none
        continue
    for parameter_ in shared_ + operation_.get("parameters", []):
        parameter_ = resolve(document, parameter_)
        if parameter_["in"] == "query":
            case(f"{method_.upper()} {path_} takes ?{parameter_['name']}", parameter_known, path_,
                 method_, parameter_["name"])


run(daemon.stop)
