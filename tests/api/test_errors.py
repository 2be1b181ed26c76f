"""Bad input: the right status, a detail that names field, value and limit, and nothing changed.

After every refusal the list of locales must be byte for byte what it was and the daemon alive.
"""
import json
import math
import re
import struct
import sys
import zlib

from daemon import ERROR_CODES, F32, SLOW, Daemon, problem
from fields import Terrain, put_layer, put_locale, put_terrain
from images import SIGNATURE, asc, chunk, header, hgt, png
from tap import case, check, equal, rng, run, test

daemon = Daemon("--max-locales", "40")
put_terrain(daemon, "land", Terrain(5, 4, [[c + r for c in range(5)] for r in range(4)]))
put_locale(daemon, "bare")
put_locale(daemon, "double")
for layer_ in ("low", "high"):
    put_layer(daemon, "double", Terrain(2, 2, [[0, 0], [0, 0]]), layer_)
LAND = "/v1/locales/land"
CAMERA = {"eye": [2, 1.5, 10], "target": [2, 1.5, 0], "up": [0, 1, 0], "fov_y_deg": 90}
before = daemon.get("/v1/locales?layers=true").body


def unchanged():
    check(daemon.is_alive(), f"the daemon died:\n{daemon.log_text()[-3000:]}")
    answer = daemon.get("/v1/locales?layers=true")
    check(answer.body == before, f"the locales changed:\n{before!r}\n{answer.body!r}")


@test("a refusal names its place, the whole of it where no part is at fault")
def _():
    for method, target, body, pointer in (
            ("PATCH", LAND, None, "method"), ("PUT", "/v1/locales/new", b"", "body"),
            ("POST", LAND + "/height", b"x", "body"), ("POST", LAND + "/height", b"[]", "body"),
            ("GET", LAND + "/tiles/99/0/0", None, "level"),
            ("GET", LAND + "/tiles/0/9/0", None, "column"), ("GET", LAND + "/tiles/0/0/9", None, "row"),
            ("GET", LAND + "/tiles/0/0/x", None, "row"), ("PUT", "/v1/locales/My%20World", {}, "locale"),
            ("GET", LAND + "/patches/7", None, "patch"), ("GET", "/v1/nothing", None, "path"),
            ("GET", LAND + "?" + "&".join(f"a{i}=1" for i in range(40)), None, "query")):
        answer = daemon.ask(method, target, body, media="application/json" if body is not None else None)
        problem(answer, answer.status, pointer=pointer)
        check(400 <= answer.status < 500, str(answer))


@test("a number that is none has the same words in each GET")
def _():
    said = set()
    for target in ("/height?x=VALUE&y=1", "/contact?x=VALUE&y=1&z=1", "/contact?x=1&y=1&z=1&reach_up=VALUE",
                   "/ray?origin=1,1,1&direction=0,0,1&t_max=VALUE"):
        for value in ("a", "nan", "inf", "1e999", "", "1,2"):
            detail = problem(daemon.get(LAND + target.replace("VALUE", value)), 400)["detail"]
            said.add(detail.partition("=")[2].removeprefix(value))
    equal(said, {": expected a finite number"}, "what is said")


def refuse(status, method, target, body, words=(), media="application/json", **named):
    answer = daemon.ask(method, target, body, media=media if body is not None else None)
    problem(answer, status, *words, **named)
    unchanged()


@test("each code of the list is on the page of errors, in its Markdown and in the document")
def _():
    page = daemon.get("/docs/errors").body.decode()
    schema = daemon.get("/openapi.json").json["components"]["schemas"]["Problem"]
    equal(set(schema["properties"]["code"]["enum"]), set(ERROR_CODES), "the enum")
    with open("docs/errors.md", encoding="utf-8") as file:
        parts = re.split(r"^##+ (.*)$", file.read(), flags=re.M)
    paragraphs = dict(zip(parts[1::2], parts[2::2]))
    for code in ERROR_CODES:
        equal(page.count(f'id="{code}"'), 1, f"anchors of {code}")
        check(re.search(r"\. Retry: \w", " ".join(paragraphs[code].split())),
              f"{code}: its paragraph does not end with its retry")
        check(re.search(rf"\b{code}\b.*?Retry:", page, re.S), f"{code}: no paragraph on the page")


@test("a layer that is not there is one code everywhere, and pointed at where it was named")
def _():
    binary = struct.pack("<2f", 1, 1)
    for method, target, body, media, pointer, code in (
            ("GET", LAND + "/height?x=1&y=1&layer=nope", None, None, "layer", "layer_unknown"),
            ("GET", LAND + "/tiles/0/0/0?layer=nope", None, None, "layer", "layer_unknown"),
            ("GET", LAND + "/layers/nope", None, None, "layer", "layer_unknown"),
            ("GET", LAND + "/layers/nope/stats", None, None, "layer", "layer_unknown"),
            ("DELETE", LAND + "/layers/nope", None, None, "layer", "layer_unknown"),
            ("POST", LAND + "/height?layer=nope", {"points": [[1, 1]]}, None, "layer",
             "layer_unknown"),
            ("POST", LAND + "/height", {"points": [[1, 1]], "layer": "nope"}, None, "/layer",
             "layer_unknown"),
            ("POST", LAND + "/contact", {"points": [[1, 1, 1]], "layer": "nope"}, None, "/layer",
             "layer_unknown"),
            ("POST", LAND + "/height?layer=nope", binary, F32, "layer", "layer_unknown"),
            ("GET", "/v1/locales/double/height?x=1&y=1", None, None, "layer", "layer_ambiguous"),
            ("POST", "/v1/locales/double/height", {"points": [[1, 1]]}, None, "/layer",
             "layer_ambiguous"),
            ("POST", "/v1/locales/double/height", binary, F32, "layer", "layer_ambiguous"),
            ("GET", "/v1/locales/bare/tiles/0/0/0", None, None, "layer", "no_heightfield")):
        answer = daemon.ask(method, target, body, media=media)
        in_path = "/layers/nope" in target  # else the path is right, and what it is asked is not
        problem(answer, 404 if in_path else 422, pointer=pointer)
        equal(answer.json["code"], code, f"{method} {target}")
    unchanged()


MESSAGES = [  # what is asked, its code, and its words
    ("POST", LAND + "/height", {"point": [1, 2]}, None, "unknown_member",
     'unknown member "point" (did you mean "points"?); the body takes points, '),
    ("POST", LAND + "/pick", {"camera": {"eye": [1, 1, 9], "targit": [1, 1, 0]},
                              "viewport": [9, 9], "pixel": [1, 1]}, None, "unknown_member",
     '(did you mean "target"?); /camera takes eye, target, up, fov_y_deg'),
    ("POST", LAND + "/ray", {"rays": [{"origin": [1, 1, 9]}]}, None, "missing",
     "/rays/0/direction is missing: 3 numbers"),
    ("POST", LAND + "/height", {}, None, "missing", "/points is missing: an array of 1 to "),
    ("PUT", "/v1/locales/new", b"", None, "missing", "the body is empty"),
    ("GET", LAND + "/height?lat=1&lon=2", None, None, "unknown_parameter",
     "it takes x, y, interp, "),
    ("GET", LAND + "/height?x=1&y=1&intrep=nearest", None, None, "unknown_parameter",
     '(did you mean "interp"?)'),
    ("GET", LAND + "/rays", None, None, "not_found", "(did you mean /v1/locales/land/ray?)"),
    ("GET", LAND + "/", None, None, "not_found", "(did you mean /v1/locales/land?)"),
    ("GET", "/v1/height", None, None, "not_found", "(did you mean /v1/locales/{locale}/height?)"),
    ("GET", "/quite/else", None, None, "not_found", "there is nothing at the path /quite/else"),
    ("GET", "/v1/locales/nope", None, None, "locale_unknown", "there is no locale nope"),
    ("GET", "/v1/locales/lend", None, None, "locale_unknown",
     "there is no locale lend (did you mean land?)"),
    ("GET", "/v1/locales/duoble/height?x=1&y=1&layer=hihg", None, None, "locale_unknown", "double?"),
    ("GET", "/v1/locales/double/height?x=1&y=1&layer=hihg", None, None, "layer_unknown",
     '"hihg" in locale double (did you mean "high"?)'),
    ("GET", "/v1/locales/double/layers/lwo", None, None, "layer_unknown", '(did you mean "low"?)'),
    ("DELETE", "/v1/locales/double/layers/lwo", None, None, "layer_unknown", '(did you mean "low"?)'),
    ("GET", "/v1/models/nope", None, None, "model_unknown", "there is no model nope"),
    ("GET", LAND + "/tiles/0/0/0.png", None, None, "tile_unknown", "?format=png16"),
    ("GET", LAND + "/diff?since=99", None, None, "revision_in_future",
     "since=99 is in the future: locale land is at revision "),
    ("GET", LAND + "/diff", None, None, "missing", "since is missing: a revision"),
    ("GET", LAND + "/diff?since=x", None, None, "bad_input", "since=x: expected a revision"),
    ("POST", LAND + "/lit", {"points": [[1, 1, 9]]}, None, "missing",
     "/light is missing: an object with direction or position"),
    ("POST", LAND + "/lit", {"points": [[1, 1, 9]], "light": {}}, None, "bad_input",
     "/light: exactly one of direction and position must be given, not neither"),
    ("POST", LAND + "/height", {"points": [[1, 1]], "interp": "bilnear"}, None, "bad_input",
     '/interp: "bilnear" (did you mean "bilinear"?) is none of triangle, bilinear, nearest'),
    ("PUT", LAND + "/layers/x?cols=2&rows=2", bytes(16), F32, "missing", "spacing=sx,sy is missing"),
    ("PUT", LAND + "/layers/x?spacing=1,1&cols=2", bytes(16), F32, "missing", "rows is missing"),
    ("POST", LAND + "/height", b"{", None, "bad_json", "byte 1"),
    ("POST", LAND + "/height", b"points=1", "application/x-www-form-urlencoded",
     "unsupported_media_type", "(curl: add -H 'Content-Type: application/json')"),
    ("GET", LAND + "/contact?x=nan&y=1&z=1", None, None, "bad_input", "x=nan: expected a finite number"),
    ("PUT", LAND + "/layers/x", b"1", None, "unsupported_media_type",
     "no Content-Type was sent; this path takes image/png"),
    ("POST", LAND + "/pick", {"camera": {**CAMERA, "fov_y_deg": 200}, "viewport": [9, 9],
                              "pixel": [1, 1]}, None, "unprocessable", "/camera/fov_y_deg"),
]


for method_, target_, body_, media_, code_, words_ in MESSAGES:
    def message(method, target, body, media, code, words):
        answer = daemon.ask(method, target, body, media=media)
        problem(answer, answer.status, words)
        equal(answer.json["code"], code, "code")
        unchanged()

    case(f"{method_} {target_} says {words_!r}", message, method_, target_, body_, media_, code_,
         words_)


# ---- JSON that is none ---------------------------------------------------------------------------

GOOD = {
    "height": {"points": [[1, 1]]},
    "profile": {"path": [[0, 0], [2, 2]], "samples": 3},
    "contact": {"points": [[1, 1, 1]]},
    "ray": {"rays": [{"origin": [1, 1, 9], "direction": [0, 0, -1]}]},
    "los": {"segments": [{"from": [0, 0, 9], "to": [4, 3, 9]}]},
    "pick": {"camera": CAMERA, "viewport": [100, 100], "pixel": [50, 50]},
    "contains": {"points": [[1, 1, 1]]},
    "lit": {"points": [[1, 1, 9]], "light": {"direction": [0, 0, -1]}},
}
MISSING = {"lit": "light", "pick": "camera", "profile": "samples"}  # what is missed first
# (what, text, a word of the detail)
BROKEN = [
    ("no bytes at all", "", "the body is empty"), ("a blank", " ", "byte"), ("a cut object", '{"points":[[1,1]]', "byte"),
    ("a cut string", '{"points', "byte"), ("trailing bytes", '{"points":[[1,1]]}x', "byte"),
    ("a second value", '{"points":[[1,1]]} {}', "byte"),
    ("single quotes", "{'points':[[1,1]]}", "byte"), ("a trailing comma", '{"points":[[1,1],]}',
                                                      "byte"),
    ("NaN", '{"points":[[NaN,1]]}', None), ("Infinity", '{"points":[[Infinity,1]]}', None),
    ("-Infinity", '{"points":[[-Infinity,1]]}', None), ("1e999", '{"points":[[1e999,1]]}', None),
    ("-1e999", '{"points":[[-1e999,1]]}', None), ("a leading plus", '{"points":[[+1,1]]}', "byte"),
    ("a leading zero", '{"points":[[01,1]]}', "byte"), ("a bare point", '{"points":[[1.,1]]}',
                                                       "byte"),
    ("hexadecimal", '{"points":[[0x10,1]]}', "byte"), ("a comment", '{"points":[[1,1]]/**/}',
                                                      "byte"),
    ("a text", '"points"', None), ("an array", "[1,2]", None), ("null", "null", None),
    ("a number", "7", None), ("a bare word", "points", "byte"),
    ("a control character in a string", '{"po\nints":[[1,1]]}', "byte"),
    ("one member twice", '{"points":[[1,1]],"points":[[2,2]]}', "twice"),
    ("a byte order mark", '\ufeff{"points":[[1,1]]}', "byte"),
    ("a NUL in a text", '{"points":[[1,1]],"layer":"ground\\u0000"}', None),
    ("half a surrogate pair", '{"points":[[1,1]],"layer":"\\ud800"}', None),
    ("a bad escape", '{"\\q":[[1,1]]}', "byte"),
]
for call_, good_ in GOOD.items():
    member_ = next(iter(good_))
    for what_, text_, word_ in BROKEN:
        case(f"{call_}: {what_} is 400", refuse, 400, "POST", f"{LAND}/{call_}",
             text_.replace("points", member_), (word_,) if word_ else ())



@test("what needs a JSON body says so when there is none")
def _():
    for method, target in (("PUT", LAND), ("POST", f"{LAND}/edits"), ("POST", "/v1/locate"),
                           ("POST", "/v1/ray"), ("POST", "/v1/contact"),
                           ("PUT", f"{LAND}/layers/ground/transform"),
                           *(("POST", f"{LAND}/{call}") for call in GOOD)):
        for media in (None, "application/json"):
            refuse(400, method, target, None, ("the body is empty",), media=media)


def plain(call):
    answer = daemon.ask("POST", f"{LAND}/{call}", json.dumps(GOOD[call]))
    equal(answer.status, 200, f"{answer}")



def byte_named(text, offset):
    document = problem(daemon.post(LAND + "/height", text, media="application/json"), 400)
    check(f"byte {offset}" in document["detail"], f"expected byte {offset}: {document['detail']}")


@test("the detail names the field at fault, whatever is wrong with it")
def _():
    for text in ("{}", '{"points":7}', '{"points":[]}', '{"points":[[1]]}', '{"points":[[1,"a"]]}',
                 '{"points":[[1,1e999]]}', '{"points":[[1,NaN]]}', '{"points":[[1,2]'):
        document = problem(daemon.post(LAND + "/height", text, media="application/json"), 400)
        check("points" in document["detail"], f"{text}: {document}")
        if document.get("errors"):
            check(document["errors"][0]["pointer"].startswith("/points"), f"{text}: {document}")


@test("a body with a Content-Encoding is 415, not read as if it had none")
def _():
    for target, body, media in ((LAND + "/height", b'{"points":[[1,1]]}', "application/json"),
                                (LAND + "/height", bytes(8), F32)):
        answer = daemon.post(target, body, media=media, headers={"Content-Encoding": "gzip"})
        problem(answer, 415, "Content-Encoding")
        equal(daemon.post(target, body, media=media,
                          headers={"Content-Encoding": "identity"}).status, 200, "identity")


for text_, offset_ in (('{"points":[[1,1]]}x', 18), ('{"points":[[1,1]],}', 18),
                       ('{"points":[[1,x]]}', 14), ('{"points":[[1,1e999]]}', 14),
                       (' {"\u00fc":1,}', 9), ('{"points":[[1,1]]', 17)):
    case(f"{text_!r} is wrong at byte {offset_}", byte_named, text_, offset_)

for call_ in GOOD:
    case(f"{call_}: bytes that are no UTF-8 are 400", refuse, 400, "POST", f"{LAND}/{call_}",
         b'{"\xff\xfe":[[1,1]]}')
    case(f"{call_}: 100,000 brackets deep is 400 and no crash", refuse, 400, "POST",
         f"{LAND}/{call_}", "[" * 100_000)
    case(f"{call_}: 50,000 objects deep is 400 and no crash", refuse, 400, "POST",
         f"{LAND}/{call_}", '{"a":' * 50_000)
    case(f"{call_}: an unknown member is 400 and named", refuse, 400, "POST", f"{LAND}/{call_}",
         {**GOOD[call_], "colour": 1}, ("colour",))
    case(f"{call_}: an unknown query parameter is 400 and named", refuse, 400, "POST",
         f"{LAND}/{call_}?colour=1", GOOD[call_], ("colour",))
    case(f"{call_}: an empty object is 400 and names what is missing", refuse, 400, "POST",
         f"{LAND}/{call_}", {}, (MISSING.get(call_, next(iter(GOOD[call_]))),))
    case(f"{call_}: an unknown locale is 404 and named", refuse, 404, "POST",
         f"/v1/locales/atlantis/{call_}", GOOD[call_], ("atlantis",))
    case(f"{call_}: an unknown layer is 422 and named", refuse, 422, "POST", f"{LAND}/{call_}",
         {**GOOD[call_], "layer": "cellar"}, ("cellar",))
    case(f"{call_}: an unknown layer in the query is 422 and named", refuse, 422, "POST",
         f"{LAND}/{call_}?layer=cellar", GOOD[call_], ("cellar",))
    case(f"{call_}: a layer that is no text is 400", refuse, 400, "POST", f"{LAND}/{call_}",
         {**GOOD[call_], "layer": 7}, ("layer",))
    case(f"{call_}: text/xml is 415 and named", refuse, 415, "POST", f"{LAND}/{call_}", "<a/>",
         ("text/xml",), media="text/xml")
    case(f"{call_}: no Content-Type is read as JSON", plain, call_)
    case(f"{call_}: a good question is 200 all the while",
         lambda c=call_: equal(daemon.post(f"{LAND}/{c}", GOOD[c]).status, 200, c))

for call_ in ("height", "profile"):
    case(f"{call_}: no layer chosen among several is 422", refuse, 422, "POST",
         f"/v1/locales/double/{call_}", GOOD[call_], ("layer",))
for call_ in ("height", "profile"):
    case(f"{call_}: a locale without a heightfield is 422", refuse, 422, "POST",
         f"/v1/locales/bare/{call_}", GOOD[call_], ("heightfield",))


@test("calls that look at all layers find nothing in a locale without any")
def _():
    def bare(call):
        return daemon.ok("POST", f"/v1/locales/bare/{call}", GOOD[call])
    equal(bare("contact")["results"], [{"status": "outside", "floor": None, "ceiling": None}],
          "contact")
    equal(bare("contains")["results"], [{"status": "outside", "floor": False, "ceiling": False}],
          "contains")
    equal(bare("ray")["results"][0]["status"], "miss", "ray")
    equal(bare("los")["results"], [{"visible": True, "fraction": None, "point": None}], "los")
    equal(bare("pick")["status"], "miss", "pick")



# ---- wrong types -------------------------------------------------------------------------------------

TYPES = [
    ("height", {"points": "x"}, "/points"), ("height", {"points": {}}, "/points"),
    ("height", {"points": [1, 2]}, "/points/0"), ("height", {"points": [[1, 1], [1]]}, "/points/1"),
    ("height", {"points": [[1, 1, 1]]}, "/points/0"),
    ("height", {"points": [[1, "1"]]}, "/points/0"),
    ("height", {"points": [[1, None]]}, "/points/0"),
    ("height", {"points": [[True, 1]]}, "/points/0"),
    ("height", {"points": [[1, 1], None]}, "/points/1"),
    ("height", {"points": [[1, 1]], "interp": "cubic"}, "/interp"),
    ("height", {"points": [[1, 1]], "interp": 1}, "/interp"),
    ("height", {"points": [[1, 1]], "fields": "normal"}, "/fields"),
    ("height", {"points": [[1, 1]], "fields": ["slope"]}, "/fields/0"),
    ("height", {"points": [[1, 1]], "fields": [7]}, "/fields/0"),
    ("profile", {"path": [[0, 0]], "samples": 3}, "/path"),
    ("profile", {"path": [[0, 0], [1]], "samples": 3}, "/path/1"),
    ("profile", {"path": [[0, 0], [1, 1]], "samples": 1}, "/samples"),
    ("profile", {"path": [[0, 0], [1, 1]], "samples": 2.5}, "/samples"),
    ("profile", {"path": [[0, 0], [1, 1]], "samples": "3"}, "/samples"),
    ("profile", {"path": [[0, 0], [1, 1]], "samples": -3}, "/samples"),
    ("profile", {"path": [[0, 0], [1, 1]], "step": 0}, "/step"),
    ("profile", {"path": [[0, 0], [1, 1]], "step": -1}, "/step"),
    ("profile", {"path": [[0, 0], [1, 1]], "step": "1"}, "/step"),
    ("contact", {"points": [[1, 1]]}, "/points/0"),
    ("contact", {"points": [[1, 1, 1]], "reach_up": "1"}, "/reach_up"),
    ("contact", {"points": [[1, 1, 1]], "reach_up": -1}, "/reach_up"),
    ("contact", {"points": [[1, 1, 1]], "clearance": []}, "/clearance"),
    ("contact", {"points": [[1, 1, 1]], "clearance": 1, "clearance_mode": "about"},
     "/clearance_mode"),
    ("contact", {"points": [[1, 1, 1]], "clearance_mode": "exact"}, "/clearance_mode"),
    ("contact", {"points": [[1, 1, 1]], "reach_up": 1, "clearance_mode": "at_least"},
     "/clearance_mode"),
    ("contact", {"footprints": [[[1, 1, 1], [2, 1, 1]]]}, "/footprints/0"),
    ("contact", {"footprints": [[[1, 1, 1], [2, 1, 1], [2, 2]]]}, "/footprints/0/2"),
    ("ray", {"rays": [[0, 0, 1, 0, 0, -1]]}, "/rays/0"),
    ("ray", {"rays": [{"direction": [0, 0, -1]}]}, "/rays/0/origin"),
    ("ray", {"rays": [{"origin": [0, 0, 1]}]}, "/rays/0/direction"),
    ("ray", {"rays": GOOD["ray"]["rays"] * 3 + [{"origin": "up", "direction": [0, 0, 1]}]},
     "/rays/3/origin"),
    ("ray", {"rays": [{"origin": [0, 0], "direction": [0, 0, -1]}]}, "/rays/0/origin"),
    ("ray", {"rays": [{"origin": [0, 0, False], "direction": [0, 0, -1]}]}, "/rays/0/origin"),
    ("ray", {"rays": [{"origin": [0, 0, 1], "direction": [0, 0, "-1"]}]}, "/rays/0/direction"),
    ("ray", {"rays": [{"origin": [0, 0, 1], "direction": [0, 0, -1], "t_max": "far"}]},
     "/rays/0/t_max"),
    ("ray", {**GOOD["ray"], "mode": "most"}, "/mode"), ("ray", {**GOOD["ray"], "mode": 1}, "/mode"),
    ("ray", {**GOOD["ray"], "trace": "yes"}, "/trace"),
    ("ray", {"rays": GOOD["ray"]["rays"] + [{**GOOD["ray"]["rays"][0], "tmax": 5}]}, "/rays/1/tmax"),
    ("los", {"segments": [{"from": [0, 0, 1]}]}, "/segments/0/to"),
    ("los", {"segments": [{**GOOD["los"]["segments"][0], "t_max": 1}]}, "/segments/0/t_max"),
    ("los", {"segments": [{"from": [0, 0, 1], "to": [1, 2]}]}, "/segments/0/to"),
    ("los", {"segments": [7]}, "/segments/0"),
    ("los", {**GOOD["los"], "~a/b": 1}, "/~0a~1b"),
    ("lit", {**GOOD["lit"], "points": [[1, 1]]}, "/points/0"),
    ("lit", {**GOOD["lit"], "light": 7}, "/light"),
    ("lit", {**GOOD["lit"], "light": {"direction": [0, "0", 1]}}, "/light/direction"),
    ("contains", {"points": [[1, 1]]}, "/points/0"),
    ("contains", {"points": [[1, 1, {}]]}, "/points/0"),
]


def mistyped(call, body, pointer):
    answer = daemon.post(f"{LAND}/{call}", body)
    document = problem(answer, 400)
    pointers = [entry["pointer"] for entry in document.get("errors", [])]
    # A pointer may go one step further, to the number itself.
    check(any(p == pointer or p.startswith(pointer + "/") for p in pointers),
          f"no error points to {pointer}: {document}")
    unchanged()


for call_, body_, pointer_ in TYPES:
    case(f"{call_} {json.dumps(body_)[:70]} is 400 at {pointer_}", mistyped, call_, body_, pointer_)

case("profile: samples and step together are 400", refuse, 400, "POST", LAND + "/profile",
     {**GOOD["profile"], "step": 1}, ("step",))
case("profile: neither samples nor step is 400", refuse, 400, "POST", LAND + "/profile",
     {"path": [[0, 0], [1, 1]]}, ("samples",))
case("contact: points and footprints together are 400", refuse, 400, "POST", LAND + "/contact",
     {"points": [[1, 1, 1]], "footprints": [[[0, 0, 1], [1, 0, 1], [0, 1, 1]]]}, ("footprints",))

# ---- too few, too many -----------------------------------------------------------------------------

LISTS = [("height", "points", [1, 1]), ("contact", "points", [1, 1, 1]),
         ("contact", "footprints", [[1, 1, 1], [2, 1, 1], [1, 2, 1]]),
         ("ray", "rays", GOOD["ray"]["rays"][0]), ("los", "segments", GOOD["los"]["segments"][0]),
         ("contains", "points", [1, 1, 1])]


def filled(call, member, item, count):
    answer = daemon.post(f"{LAND}/{call}", {member: [item] * count})
    equal(answer.status, 200, f"{call} of {count}")
    equal(len(answer.json["results"]), count, "results")


for call_, member_, item_ in LISTS:
    case(f"{call_}: no {member_} are 400 at /{member_}", refuse, 400, "POST", f"{LAND}/{call_}",
         {member_: []}, pointer="/" + member_)
    case(f"{call_}: 10,000 {member_} are answered", filled, call_, member_, item_, 10_000)
    case(f"{call_}: 10,001 {member_} are 413 with limit and got", refuse, 413, "POST",
         f"{LAND}/{call_}", {member_: [item_] * 10_001}, ("10001", "10000"), limit=10_000,
         got=10_001)

case("profile: 10,001 samples are 413 with limit and got", refuse, 413, "POST", LAND + "/profile",
     {"path": [[0, 0], [1, 1]], "samples": 10_001}, ("10000",), limit=10_000, got=10_001)
case("profile: 10,001 corners are 413 with limit and got", refuse, 413, "POST", LAND + "/profile",
     {"path": [[0, 0]] * 10_001, "samples": 3}, ("10000",), limit=10_000, got=10_001)
case("profile: a step that gives a billion samples is 413", refuse, 413, "POST",
     LAND + "/profile", {"path": [[0, 0], [1, 1]], "step": 1e-9}, ("10000",), limit=10_000)
case("profile: a step that gives endless samples is 413", refuse, 413, "POST",
     LAND + "/profile", {"path": [[0, 0], [1e300, 1]], "step": 5e-324}, (), limit=10_000,
     got=sys.float_info.max)


@test("a JSON body over its own limit is 413 with limit and got")
def _():
    limit = daemon.ok("GET", "/v1/limits")["json_bytes_max"]
    body = '{"points":[[1,1]]' + " " * limit + "}"
    refuse(413, "POST", LAND + "/height", body, (str(limit),), limit=limit, got=len(body))


@test("layers over the limit are refused with limit and got")
def _():
    global before
    limit = daemon.ok("GET", "/v1/limits")["layers_max"]
    flat = Terrain(2, 2, [[0, 0], [0, 0]])
    put_locale(daemon, "storeys")
    for i in range(limit):
        put_layer(daemon, "storeys", flat, f"l{i}")
    before = daemon.get("/v1/locales?layers=true").body
    refuse(413, "PUT", f"/v1/locales/storeys/layers/more?{flat.query()}", flat.body(),
           (str(limit),), F32, limit=limit, got=limit + 1)
    put_layer(daemon, "storeys", flat, "l0", status=200)
    daemon.ok("DELETE", "/v1/locales/storeys", status=204)
    before = daemon.get("/v1/locales?layers=true").body


@test("locales over the limit are refused with limit and got")
def _():
    global before
    limit = daemon.ok("GET", "/v1/limits")["locales_max"]
    count = len(daemon.ok("GET", "/v1/locales")["locales"])
    for i in range(limit - count):
        put_locale(daemon, f"many{i}")
    before = daemon.get("/v1/locales?layers=true").body
    refuse(413, "PUT", "/v1/locales/more", "{}", (str(limit),), limit=limit, got=limit + 1)
    for i in range(limit - count):
        daemon.ok("DELETE", f"/v1/locales/many{i}", status=204)
    before = daemon.get("/v1/locales?layers=true").body


@test("a body over the limit is 413 with limit and got, before it is sent")
def _():
    limit = 64 * 1024 * 1024
    head = (f"POST {LAND}/height HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {limit + 1}\r\n\r\n").encode()
    received = daemon.raw(head, until=lambda data: b"}" in data)
    check(b" 413 " in received.split(b"\r\n")[0], f"{received[:200]!r}")
    document = json.loads(received.partition(b"\r\n\r\n")[2])
    equal((document["limit"], document["got"]), (limit, limit + 1), "limit and got")
    unchanged()


@test("a chunked body over the limit is 413, and its memory is not kept")
def _():
    def ended(data):
        return b"\r\n\r\n" in data and b"}" in data
    block = b"100000\r\n" + bytes(0x100000) + b"\r\n"
    head = (f"PUT {LAND}/layers/ground?spacing=1,1 HTTP/1.1\r\nHost: x\r\n"
            f"{daemon.token_line}Content-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
    received = daemon.raw(head, *([block] * 66), until=ended)
    check(not received or b" 413 " in received.split(b"\r\n")[0], f"{received[:200]!r}")
    unchanged()


# ---- height by GET -----------------------------------------------------------------------------------

QUERIES = [
    ("", 400, "x"), ("x=1", 400, "y"), ("y=1", 400, "x"), ("x=&y=1", 400, "x"),
    ("x=one&y=1", 400, "x"), ("x=1&y=nan", 400, "y"), ("x=inf&y=1", 400, "x"),
    ("x=1e999&y=1", 400, "x"), ("x=1,2&y=1", 400, "x"), ("x=0x1p3&y=1", 400, "x"),
    ("x=1%00&y=1", 400, None), ("x=1&y=1&interp=cubic", 400, "interp"),
    ("x=1&y=1&interp=", 400, "interp"), ("x=1&y=1&fields=slope", 400, "fields"),
    ("x=1&y=1&interpolation=nearest", 400, "interpolation"), ("x=1&y=1&z=1", 400, "z"),
    ("x=1&y=1&layer=cellar", 422, "cellar"), ("x=%201&y=1", 400, "x"), ("x=1 &y=1", 400, None),
    ("x=--1&y=1", 400, "x"), ("x=1&y=1&x=2", 400, "x"), ("x=1e&y=1", 400, "x"),
]
for query_, status_, word_ in QUERIES:
    if " " in query_:
        continue
    case(f"GET height?{query_} is {status_}", refuse, status_, "GET", f"{LAND}/height?{query_}",
         None, (word_,) if word_ else ())
case("GET height of an unknown locale is 404", refuse, 404, "GET",
     "/v1/locales/atlantis/height?x=1&y=1", None, ("atlantis",))
case("GET height without a layer chosen is 422", refuse, 422, "GET",
     "/v1/locales/double/height?x=0&y=0", None, ("layer",))
case("GET height of a locale without heightfield is 422", refuse, 422, "GET",
     "/v1/locales/bare/height?x=0&y=0", None, ("heightfield",))
case("GET /v1/locales?page=2 names the unknown parameter", refuse, 400, "GET",
     "/v1/locales?page=2", None, ("page",))

# ---- routes and methods ------------------------------------------------------------------------------

for target_ in ("/v2/locales", "/v2", "/v1/", "/v1/locale", LAND + "/heights", LAND + "/height/x",
                "/favicon.ico", LAND + "/layers", "/v1/locales/", "//v1/locales", "/..",
                "/v1/locales/land/../land", LAND + "/layers/ground/edits"):
    case(f"GET {target_} is 404", refuse, 404, "GET", target_, None)

METHODS = [("PUT", "/v1/locales", {"GET", "HEAD", "POST"}),
           ("DELETE", "/v1/locales", {"GET", "HEAD", "POST"}),
           ("PATCH", LAND, {"GET", "HEAD", "PUT", "DELETE"}),
           ("POST", LAND, {"GET", "HEAD", "PUT", "DELETE"}),
           ("PUT", LAND + "/height", {"GET", "HEAD", "POST"}),
           ("PUT", LAND + "/ray", {"GET", "HEAD", "POST"}), ("GET", LAND + "/profile", {"POST"}),
           ("PUT", LAND + "/contact", {"GET", "HEAD", "POST"}),
           ("DELETE", LAND + "/los", {"GET", "HEAD", "POST"}),
           ("PUT", LAND + "/pick", {"GET", "HEAD", "POST"}), ("PUT", LAND + "/contains", {"POST"}),
           ("POST", LAND + "/tiles/0/0/0", {"GET", "HEAD"}),
           ("POST", LAND + "/layers/ground", {"GET", "PUT", "DELETE"}),
           ("POST", LAND + "/layers/ground/stats", {"GET", "HEAD"}),
           ("POST", "/v1/limits", {"GET", "HEAD"}), ("PUT", "/v1/stats", {"GET", "HEAD"}),
           ("POST", "/metrics", {"GET", "HEAD"}), ("POST", "/livez", {"GET", "HEAD"}),
           ("DELETE", "/openapi.json", {"GET", "HEAD"}), ("POST", "/", {"GET", "HEAD"})]


def wrong_method(method, target, allowed):
    answer = daemon.ask(method, target, "{}", media="application/json")
    problem(answer, 405, *allowed)
    allow = {m.strip() for m in answer.headers.get("allow", "").split(",")}
    equal(allow - {"OPTIONS", "HEAD"}, allowed - {"HEAD"}, "Allow")
    unchanged()


for method_, target_, allowed_ in METHODS:
    case(f"{method_} {target_} is 405 with Allow", wrong_method, method_, target_, allowed_)

# ---- writes ------------------------------------------------------------------------------------------

MANIFESTS = [
    ({"colour": 1}, 400, "colour"), ({"title": 7}, 400, "title"), ({"gravity": [0, 0]}, 400,
                                                                   "gravity"),
    ({"gravity": [0, 0, 0]}, (400, 422), "gravity"), ({"gravity": "down"}, 400, "gravity"),
    ({"open_sky": "yes"}, 400, "open_sky"), ({"open_sky": 1}, 400, "open_sky"),
    ({"triangulation": "delaunay"}, 400, "triangulation"),
    ({"triangulation": 3}, 400, "triangulation"), ({"placement": []}, 400, "placement"),
    ({"placement": {"translation": [1, 2]}}, 400, "translation"),
    ({"placement": {"rotation": [0, 0, 0]}}, 400, "rotation"),
    ({"placement": {"rotation": [0, 0, 0, 0]}}, (400, 422), "rotation"),
    ({"placement": {"scale": 2}}, 400, "scale"), ([], 400, None), ("x", 400, None),
    ({"title": "x" * 100_000}, (400, 413), None),
    ({"title": "x" * 257}, (400, 413), "title"), ({"title": "\udcff" * 3}, 400, None),
]


def bad_manifest(target, body, statuses, word):
    answer = daemon.put(target, json.dumps(body), media="application/json")
    statuses = statuses if isinstance(statuses, tuple) else (statuses,)
    check(answer.status in statuses, f"expected {statuses}, got {answer}")
    problem(answer, answer.status, *([word] if word else []))
    unchanged()


for body_, status_, word_ in MANIFESTS:
    for name_ in ("land", "fresh"):
        case(f"PUT {name_} {json.dumps(body_)[:60]} is refused", bad_manifest,
             "/v1/locales/" + name_, body_, status_, word_)
for what_, text_, word_ in BROKEN:
    case(f"PUT of a manifest: {what_} is 400", refuse, 400, "PUT", "/v1/locales/fresh",
         text_.replace('"points"', '"gravity"'))
case("PUT of a manifest as text/plain is 415", refuse, 415, "PUT", "/v1/locales/fresh", "{}",
     ("text/plain",), media="text/plain")

BAD_IDS = ["a b", "ü", "a.b", "a/b".replace("/", "%2F"), "A" * 65, "%00", "a%00", "..", ".",
           "%2e%2e", "a:b", "<x>", "'", "%ff"]


def bad_id(target, method, body, media):
    target = "".join(c if ord(c) < 127 and c not in " <>" else
                     "".join(f"%{b:02X}" for b in c.encode()) for c in target)
    answer = daemon.ask(method, target, body, media=media)
    check(answer.status in (400, 404), f"{method} {target}: {answer}")
    problem(answer, answer.status)
    unchanged()


for id_ in BAD_IDS:
    case(f"{id_[:12]!r} ({len(id_)}) is no id of a locale", bad_id, "/v1/locales/" + id_, "PUT",
         "{}", "application/json")
    case(f"{id_[:12]!r} ({len(id_)}) is no id of a layer", bad_id, f"{LAND}/layers/{id_}?cols=2"
         "&rows=2&spacing=1,1", "PUT", bytes(16), F32)

PNG_BODY = png([[1, 2], [3, 4]])
LAYER_QUERIES = [
    ("", 400, "spacing"), ("spacing=1", 400, "spacing"), ("spacing=1,2,3", 400, "spacing"),
    ("spacing=0,1", 400, "spacing"), ("spacing=-1,1", 400, "spacing"),
    ("spacing=a,b", 400, "spacing"), ("spacing=inf,1", 400, "spacing"),
    ("spacing=1e999,1", 400, "spacing"), ("spacing=1,1&origin=1", 400, "origin"),
    ("spacing=1,1&origin=x,y", 400, "origin"), ("spacing=1,1&origin=nan,0", 400, "origin"),
    ("spacing=1,1&flip_y=maybe", 400, "flip_y"), ("spacing=1,1&flip_y=1", 400, "flip_y"),
    ("spacing=1,1&height_scale=x", 400, "height_scale"),
    ("spacing=1,1&height_scale=inf", 400, "height_scale"),
    ("spacing=1,1&height_offset=nan", 400, "height_offset"),
    ("spacing=1,1&nodata=none", 400, "nodata"), ("spacing=1,1&role=roof", 400, "role"),
    ("spacing=1,1&spaceing=1,1", 400, "spaceing"),
]
for query_, status_, word_ in LAYER_QUERIES:
    case(f"PUT layer?{query_} is {status_} and names {word_}", refuse, status_, "PUT",
         f"{LAND}/layers/ground?{query_}", PNG_BODY, (word_,), media="image/png")

for media_ in ("image/jpeg", "model/x3d+xml", "text/html", "application/json", "image/gif", "x"):
    case(f"PUT of a layer as {media_} is 415 and named", refuse, 415, "PUT",
         f"{LAND}/layers/ground?spacing=1,1", PNG_BODY, (media_,), media=media_)
case("PUT of a layer without a Content-Type is 415", refuse, 415, "PUT",
     f"{LAND}/layers/ground?spacing=1,1", PNG_BODY, media=None)
case("octet-stream with an unknown format is 400 and names it", refuse, 400, "PUT",
     f"{LAND}/layers/ground?spacing=1,1&format=tiff", PNG_BODY, ("format",),
     media="application/octet-stream")


def no_format():
    answer = daemon.put(f"{LAND}/layers/ground?spacing=1,1", PNG_BODY,
                        media="application/octet-stream")
    check(answer.status in (400, 415), str(answer))
    problem(answer, answer.status, "format")
    unchanged()


case("octet-stream without format is refused and names it", no_format)

# ---- hostile uploads -----------------------------------------------------------------------------------

NOISE = rng("noise")
RANDOM_ROWS = [[NOISE.randrange(65536) for _ in range(40)] for _ in range(30)]
BIG_PNG = png(RANDOM_ROWS)


def idat(raw, width, height, depth=16, colour=0, interlace=0):
    return (SIGNATURE + header(width, height, depth, colour, interlace)
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def bad_crc(body):
    at = body.index(b"IDAT") + 10
    return body[:at] + bytes([body[at] ^ 0x55]) + body[at + 1:]


PNGS = [
    ("no bytes", b"", 400), ("a signature alone", SIGNATURE, 400), ("garbage", b"hello" * 100, 400),
    ("half a header", SIGNATURE + header(4, 4)[:10], 400),
    ("a header and nothing more", SIGNATURE + header(4, 4), 400),
    ("no IEND", BIG_PNG[:-12], None), ("an end and more bytes", BIG_PNG + b"more", 400),
    ("1 bit", idat(b"\0\xa0\0\x40", 3, 2, depth=1), 422),
    ("4 bits", idat(b"\0\x12\x30\0\x45\x60", 3, 2, depth=4), 422),
    ("too many rows", idat(bytes(9 * 5), 4, 4), 400),
    ("cut in the middle", BIG_PNG[:len(BIG_PNG) // 2], 400),
    ("a flipped byte", bad_crc(BIG_PNG), 400),
    ("too little data", idat(bytes(9), 4, 4), 400),
    ("width 0", SIGNATURE + header(0, 4) + chunk(b"IDAT", b"") + chunk(b"IEND", b""), (400, 422)),
    ("width 2^31", SIGNATURE + header(1 << 31, 4) + chunk(b"IEND", b""), (400, 413)),
    ("an odd depth", SIGNATURE + header(4, 4, depth=3) + chunk(b"IEND", b""), (400, 422)),
    ("an unknown colour type", SIGNATURE + header(4, 4, colour=1) + chunk(b"IEND", b""),
     (400, 422)),
    ("a chunk that says it is 2 GiB", SIGNATURE + header(4, 4) + b"\x7f\xff\xff\xffIDAT", 400),
    ("data before the header", SIGNATURE + chunk(b"IDAT", b"x") + header(4, 4), 400),
    ("one sample", png([[1]]), 422), ("one row", png([[1, 2, 3]]), 422),
    ("one column", png([[1], [2]]), 422),
    ("colours", png([[1, 2, 3] * 4] * 4, depth=8, colour=2, channels=3), 422),
    ("colours of 16 bits", png([[1, 2, 3] * 4] * 4, colour=2, channels=3), 422),
    ("grey with alpha", png([[1, 2] * 4] * 4, depth=8, colour=4, channels=2), 422),
    ("a palette", SIGNATURE + header(4, 4, 8, 3) + chunk(b"PLTE", bytes(12))
     + chunk(b"IDAT", zlib.compress(bytes(20))) + chunk(b"IEND", b""), 422),
]


def bad_upload(query, body, statuses, media, words=()):
    peak = daemon.memory_kib("VmHWM")
    answer = daemon.put(f"{LAND}/layers/ground?{query}", body, media=media)
    statuses = statuses if isinstance(statuses, tuple) else (statuses,)
    check(answer.status in statuses, f"expected {statuses}, got {answer}")
    problem(answer, answer.status, *words)
    grown = daemon.memory_kib("VmHWM") - peak
    check(grown < 200 * 1024, f"the refusal took {grown} KiB more memory")
    unchanged()


for what_, body_, status_ in PNGS:
    case(f"a PNG of {what_} is refused", bad_upload, "spacing=1,1", body_,
         status_ or (400,), "image/png")


@test("every cut of a PNG is refused, or answered as the whole")
def _():
    body = png([[1, 2, 3], [4, 5, 6]])
    for cut in range(len(body)):
        answer = daemon.put(f"{LAND}/layers/ground?spacing=1,1", body[:cut], media="image/png")
        problem(answer, answer.status)
        check(answer.status in (400, 422), f"cut at {cut} of {len(body)}: {answer}")
    unchanged()


@test("a PNG of 60000 x 60000 is 413 from its header, with limit and got, and takes no memory")
def _():
    body = SIGNATURE + header(60000, 60000) + chunk(b"IDAT", zlib.compress(bytes(1000)))
    peak = daemon.memory_kib("VmHWM")
    document = problem(daemon.put(f"{LAND}/layers/ground?spacing=1,1", body, media="image/png"),
                       413)
    check(document["got"] >= 60000 and document["limit"] < document["got"], f"{document}")
    grown = daemon.memory_kib("VmHWM") - peak
    check(grown < 64 * 1024 * SLOW, f"{grown} KiB more")
    unchanged()


def bomb(byte, count):
    """So many MiB of one byte as zlib packs them: one block of its own, again and again."""
    squeezer, total = zlib.compressobj(9, wbits=-15), 1
    block = squeezer.compress(byte * (1 << 20)) + squeezer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(count):
        total = zlib.adler32(byte * (1 << 20), total)
    return b"\x78\xda" + block * count + squeezer.flush() + struct.pack(">I", total)


@test("a PNG bomb (few bytes, a gigabyte inside) is stopped in bounds")
def _():
    equal(zlib.decompress(bomb(b"a", 3)), b"a" * (3 << 20), "a small bomb")
    body = SIGNATURE + header(4, 4) + chunk(b"IDAT", bomb(b"\0", 300)) + chunk(b"IEND", b"")
    bad_upload("spacing=1,1", body, (400, 413, 422), "image/png")
    body = png([[1, 2], [3, 4]], extra=chunk(b"zTXt", b"bomb\0\0" + bomb(b"a", 200)))
    peak = daemon.memory_kib("VmHWM")
    answer = daemon.put("/v1/locales/bare/layers/ground?spacing=1,1", body, media="image/png")
    check(answer.status in (201, 400, 413), str(answer))
    check(daemon.memory_kib("VmHWM") - peak < 64 * 1024 * SLOW, "memory of a text bomb")
    if answer.status == 201:
        daemon.ok("DELETE", "/v1/locales/bare/layers/ground", status=204)
        global before
        before = daemon.get("/v1/locales?layers=true").body


OTHERS = [
    ("f32: too short", "cols=4&rows=4&spacing=1,1", bytes(60), 400, F32, ("64", "60")),
    ("f32: too long", "cols=4&rows=4&spacing=1,1", bytes(68), 400, F32, ("64", "68")),
    ("f32: no bytes", "cols=4&rows=4&spacing=1,1", b"", 400, F32, ()),
    ("f32: no cols", "rows=4&spacing=1,1", bytes(64), 400, F32, ("cols",)),
    ("f32: no rows", "cols=4&spacing=1,1", bytes(64), 400, F32, ("rows",)),
    ("f32: cols 1", "cols=1&rows=4&spacing=1,1", bytes(16), (400, 422), F32, ("cols",)),
    ("f32: cols 0", "cols=0&rows=4&spacing=1,1", b"", (400, 422), F32, ("cols",)),
    ("f32: cols -4", "cols=-4&rows=4&spacing=1,1", bytes(64), 400, F32, ("cols",)),
    ("f32: cols 4.5", "cols=4.5&rows=4&spacing=1,1", bytes(72), 400, F32, ("cols",)),
    ("f32: cols 2^32 + 4", "cols=4294967300&rows=4&spacing=1,1", bytes(64), 413, F32,
     ("4294967300", "1048576")),
    ("f32: rows 2^20 + 1", "cols=2&rows=1048577&spacing=1,1", bytes(64), 413, F32,
     ("1048577", "1048576")),
    ("f32: cols x rows of 2^64", "cols=4294967296&rows=4294967296&spacing=1,1", bytes(64),
     (400, 413), F32, ()),
    ("f32: infinite heights", "cols=2&rows=2&spacing=1,1", struct.pack("<4f", 0, 1, math.inf, 0),
     400, F32, ()),
    ("f32: minus infinity", "cols=2&rows=2&spacing=1,1", struct.pack("<4f", -math.inf, 1, 0, 0),
     400, F32, ()),
    ("f32: a scale that overflows", "cols=2&rows=2&spacing=1,1&height_scale=1e300",
     struct.pack("<4f", 1e30, 1, 0, 0), (400, 422), F32, ()),
    ("hgt: not square", "spacing=1,1", bytes(2 * 10), 400, "application/vnd.kota.hgt", ()),
    ("hgt: one byte too few", "spacing=1,1", hgt([[1] * 11] * 11)[:-1], 400,
     "application/vnd.kota.hgt", ()),
    ("hgt: no bytes", "spacing=1,1", b"", 400, "application/vnd.kota.hgt", ()),
    ("hgt: one sample", "spacing=1,1", bytes(2), (400, 422), "application/vnd.kota.hgt", ()),
    ("hgt: no spacing", "", hgt([[1] * 11] * 11), 400, "application/vnd.kota.hgt", ("spacing",)),
    ("asc: garbage", "", b"hello world", 400, "text/plain", ()),
    ("asc: no bytes", "", b"", 400, "text/plain", ()),
    ("asc: a header alone", "", asc([[1, 2], [3, 4]]).split(b"\n1")[0], 400, "text/plain", ()),
    ("asc: a value too few", "", asc([[1, 2], [3, 4]])[:-3], 400, "text/plain", ()),
    ("asc: a value too many", "", asc([[1, 2], [3, 4]]) + b"5\n", 400, "text/plain", ()),
    ("asc: a word among values", "", asc([[1, "two"], [3, 4]]), 400, "text/plain", ("two",)),
    ("asc: nan among values", "", asc([[1, "inf"], [3, 4]]), 400, "text/plain", ()),
    ("asc: 1e999", "", asc([[1, "1e999"], [3, 4]]), 400, "text/plain", ()),
    ("asc: cellsize 0", "", asc([[1, 2], [3, 4]], 0), 400, "text/plain", ("line 5",)),
    ("asc: cellsize -1", "", asc([[1, 2], [3, 4]], -1), 400, "text/plain", ("-1",)),
    ("asc: cellsize nan", "", asc([[1, 2], [3, 4]], "nan"), 400, "text/plain", ()),
    ("asc: ncols twice", "", b"ncols 2\n" + asc([[1, 2], [3, 4]]), 400, "text/plain", ("ncols",)),
    ("asc: no ncols", "", asc([[1, 2], [3, 4]]).partition(b"\n")[2], 400, "text/plain",
     ("ncols",)),
    ("asc: ncols 1", "", asc([[1], [3]]), (400, 422), "text/plain", ()),
    ("asc: ncols -2", "", asc([[1, 2], [3, 4]]).replace(b"ncols 2", b"ncols -2"), 400,
     "text/plain", ("-2",)),
    ("asc: a huge ncols", "", asc([[1, 2], [3, 4]]).replace(b"ncols 2", b"ncols 99999999"),
     (400, 413), "text/plain", ()),
    ("asc: ncols x nrows of 10^18", "",
     asc([[1, 2], [3, 4]]).replace(b"ncols 2", b"ncols 1000000000").replace(b"nrows 2",
                                                                           b"nrows 1000000000"),
     (400, 413), "text/plain", ()),
    ("asc: NUL bytes", "", asc([[1, 2], [3, 4]]) + bytes(100), 400, "text/plain", ()),
]
for what_, query_, body_, status_, media_, words_ in OTHERS:
    case(f"{what_} is refused", bad_upload, query_, body_, status_, media_, words_)


@test("random bytes as each format are refused or, by chance, taken; nothing falls over")
def _():
    global before
    random = rng("garbage")
    for media, query in (("image/png", "spacing=1,1"), (F32, "cols=3&rows=3&spacing=1,1"),
                         ("application/vnd.kota.hgt", "spacing=1,1"), ("text/plain", "")):
        for _ in range(40):
            body = bytes(random.randrange(256) for _ in range(random.randrange(200)))
            if media == "image/png" and random.random() < 0.7:
                body = bytearray(BIG_PNG)
                for _ in range(random.randrange(1, 5)):
                    body[random.randrange(len(body))] = random.randrange(256)
                body = bytes(body)
            answer = daemon.put(f"/v1/locales/bare/layers/x?{query}", body, media=media)
            check(answer.status in (200, 201, 400, 413, 422), f"{media}: {answer}")
            check(daemon.is_alive(), "the daemon died")
    daemon.ask("DELETE", "/v1/locales/bare/layers/x")
    before = daemon.get("/v1/locales?layers=true").body


@test("an upload that breaks off half-way changes nothing")
def _():
    body = png([[1, 2], [3, 4]])
    head = (f"PUT {LAND}/layers/ground?spacing=1,1 HTTP/1.1\r\nHost: x\r\n"
            f"Content-Type: image/png\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    daemon.raw(head + body[:len(body) // 2], until=lambda data: True)
    unchanged()


@test("thousands of refusals leave memory where it was")
def _():
    for _ in range(200):
        daemon.post(f"{LAND}/height", "{")
    start = daemon.memory_kib()
    for i in range(3000 if SLOW == 1 else 500):
        daemon.post(f"{LAND}/ray", {"rays": [{"origin": [i, 0, 0]}]})
    grown = daemon.memory_kib() - start
    check(grown < 8 * 1024 * SLOW, f"{grown} KiB more after the refusals")
    unchanged()


run(daemon.stop)
