"""One name per call: the path's word, in the document, in C, JavaScript, Python and the command line."""
import os
import re

from daemon import ROOT
from kota_cli import kota
from schema import contract
from tap import check, equal, run, test

document = contract()
CALLS = [(path, method, operation) for path, item in document["paths"].items()
         for method, operation in item.items() if method != "parameters"]
SINGULAR = {"locales": "locale", "layers": "layer", "models": "model", "patches": "patch", "pins": "pin",
            "bodies": "body", "impacts": "impact", "tiles": "tile", "edits": "edit", "watches": "watch"}
# Paths whose words would not say what they are.
OTHER = {"/": "index", "/v1": "calls", "/docs/errors": "docsErrors",
         "/v1/compat/elevation/{dataset}": "datasetElevation",
         "/v1/compat/maps/api/elevation/json": "googleElevation",
         "/v1/locales/{locale}/pins/{pin}/restore": "restorePin",
         "/v1/locales/{locale}/layers/{layer}.tif": "layerTif",
         "/v1/locales/{locale}/3dtiles/{layer}.glb": "layerGlb",
         "/v1/locales/{locale}/terrain/layer.json": "terrainLayer",
         "/v1/locales/{locale}/dem.json": "demJson",
         "/v1/locales/{locale}/dem/geodetic/{z}/{x}/{y}": "demGeodetic"}
OWNER = (("/patches/{patch}/", "patch"), ("/layers/{layer}/stats", "layer"),
         ("/locales/{locale}/events", "locale"))
ELEVATION = {"getElevation", "datasetElevation", "getDatasetElevation", "googleElevation"}
PAGES = {"index", "docs", "docsErrors", "web"}


def rule(path, method):
    """The last word of the path, of one thing in the singular, after the owner where another path
    has the word too. The method is before it unless it is GET or POST; `get` where POST asks the
    same of many, `post` where a call makes what has a path of its own."""
    item = document["paths"][path]
    literal = [part for part in path.split("/") if part and not part.startswith("{")]
    word = (literal or [""])[-1].partition(".")[0]
    makes = method == "post" and (path + "/{" + SINGULAR.get(word, "") + "}" in document["paths"] or
                                  word == "watches")
    if path.endswith("}") or makes or word == "edits":
        word = SINGULAR.get(word, word)
    for part, owner in OWNER:
        if part in path:
            word = owner + word.capitalize()
    if path in ("/v1/contact", "/v1/ray", "/v1/pick"):
        word = "world" + word.capitalize()
    if method == "get" and path.endswith("/{watch}"):
        word = "watchEvents"  # `watch` would be what libkota follows any feed with
    word = OTHER.get(path, word)
    verb = {"get": "get" if "post" in item and not path.endswith(("/patches", "/locales")) else "",
            "post": "post" if makes else ""}.get(method, method)
    return verb + word[0].upper() + word[1:] if verb else word


def snake(name):
    return re.sub("([A-Z])", lambda m: "_" + m[1].lower(), name)


def source(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as text:
        return text.read()


EVERY = {one["operationId"] for _, _, one in CALLS}
# libkota and Python ask the GET form of a question by the POST form's function, but for one height.
ASKED = {one for one in EVERY if not one.startswith("get") or one == "getHeight"}


@test("an operation has the name of its path")
def _():
    equal([one["operationId"] for _, _, one in CALLS], [rule(path, method) for path, method, _ in CALLS],
          "operationIds")


@test("the document lists the questions that look at all layers, each of them")
def _():
    listed = re.search(r"((?:`\w+`, )+`\w+` and `\w+`) look at all layers",
                       " ".join(document["info"]["description"].split()))[1]
    questions = {one["operationId"] for path, method, one in CALLS if method == "post" and
                 "ground" in one["tags"] and path.startswith("/v1/locales/")}
    equal(set(re.findall(r"\w+", listed)) - {"and"}, questions - {"height", "profile"}, "questions")


@test("a path parameter is named after what it names")
def _():
    known = {"locale", "layer", "pin", "patch", "watch", "body", "impact", "model", "dataset", "level", "column", "row", "file",
             "z", "x", "y"}  # of maps, as all of them say
    for path in document["paths"]:
        check(set(re.findall(r"{(\w+)}", path)) <= known, path)


@test("libkota has a function of each name, and reads an answer by the same name")
def _():
    text = re.sub(r"/\*.*?\*/", "", source("client", "lib", "kota.h") + source("client", "lib", "kota-sand.h"),
                  flags=re.S)
    functions = set(re.findall(r"\*kota_(\w+)\(", text))
    wanted = {snake(one) for one in ASKED}
    equal(wanted - functions, set(), "calls without a function")
    readers = set(re.findall(r"\bkota_read_(\w+)\(", text))
    plain = {"number", "text", "f32", "f64", "bytes"}  # of any answer
    parts = {"locale_count", "pose", "contact_footprints", "all"}  # more of an answer that has a reader
    equal(readers - plain - parts - wanted, set(), "readers of no call")


@test("kota.js has a method of each name, but for pages and the shapes of other services")
def _():
    methods = set(re.findall(r"^  (?:async )?\*?(\w+)\(.*\{$", source("client", "web", "kota.js"),
                             flags=re.M))
    equal(EVERY - methods, ELEVATION | PAGES, "calls without a method")
    own = {"constructor", "url", "call", "get", "post", "follow", "tilesOf", "replica"}
    forms = {name for name in methods if any(re.match(one + "(Batch|Footprints|Samples|Heights)$", name)
                                             for one in ASKED)}
    equal(methods - EVERY - own - forms, set(), "methods of no call")


@test("the Python client has a method of each name, in snake case")
def _():
    methods = set(re.findall(r"^    def ([a-z]\w+)\(self", source("client", "python", "kota", "client.py"),
                             flags=re.M))
    wanted = {snake(one) for one in ASKED}
    equal(wanted - methods, {snake(one) for one in ELEVATION & ASKED | PAGES},
          "calls without a method")


@test("the command of a question is the path's word")
def _():
    questions = {one["operationId"] for _, method, one in CALLS
                 if method == "post" and "ground" in one["tags"]}
    # a world's question is its locale's command with --world
    for word in {one for one in questions if not one.startswith("world")} | {
            "edit", "polygons", "model", "patch"}:
        equal(kota(word, "--help").status, 0, f"kota {word} --help")


run()
