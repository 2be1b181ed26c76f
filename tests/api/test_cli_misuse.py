"""Each command of `kota` against each way to use it wrong, and against servers that are not there,
refuse, or know nothing: the exit code, one line on standard error, nothing on standard output.
"""
import os
import re
import socket
import tempfile

from kota_cli import Stub, fails, kota, reply
from tap import case, check, equal, run, test

# A use that is right, with the words that a daemon could refuse.
RIGHT = {
    "ls": ["ls"],
    "info": ["info", "a"],
    "height": ["height", "a", "1,2"],
    "contact": ["contact", "a", "1,2,3"],
    "ray": ["ray", "a", "1,2,3", "0,0,-1"],
    "los": ["los", "a", "1,2,3", "4,5,6"],
    "lit": ["lit", "a", "1,2,3", "--direction", "0,0,-1"],
    "profile": ["profile", "a", "0,0", "1,1", "--samples", "3"],
    "pick": ["pick", "a", "--eye", "1,1,9", "--target", "0,0,0", "--viewport", "64x48", "--pixel",
             "1,1"],
    "contains": ["contains", "a", "1,2,3"],
    "locate": ["locate", "1,2,3"],
    "import": ["import", "a", "--title", "t"],
    "export": ["export", "a", "ground", "FOLDER/x.f32"],
    "rm": ["rm", "a"],
    "edit": ["edit", "a", "--brush", "raise", "--center", "1,2", "--radius", "3", "--amount", "1"],
    "patch": ["patch", "ls", "a"],
    "model": ["model", "ls"],
    "watch": ["watch", "a"],
    "check": ["check", "a"],
    "bench": ["bench", "a", "--seconds", "0.1"],
    "completion": ["completion", "bash"],
    "manual": ["manual"],
}
OFFLINE = ("completion", "manual")
NO_ID = ("ls", "locate", "model", "completion", "manual")  # their first word may be missing

WRONG_VALUES = [
    ("height", ["nan,1"]), ("height", ["1,inf"]), ("height", ["1"]), ("height", ["--layer"]),
    ("contact", ["1,2,nan"]), ("contact", ["1,2,3", "--clearance", "nan"]),
    ("contact", ["1,2,3", "--reach-up", "1,2"]), ("contains", ["1,2"]), ("contains", ["a,b,c"]),
    ("ray", ["1,2,3", "0,nan,1"]), ("ray", ["1,2,3", "0,0,1", "--t-max", "nan"]), ("ray", ["1,2,3"]),
    ("los", ["1,2,3", "nan,1,1"]), ("profile", ["0,0", "1,nan", "--samples", "2"]),
    ("profile", ["0,0", "1,1", "--step", "nan"]), ("edit", ["--brush", "raise", "--center",
                                                           "nan,1", "--radius", "1"]),
    ("edit", ["--rect", "0,0,nan,1", "--op", "set", "--heights", "1"]),
    ("edit", ["--brush", "raise", "--center", "1,1", "--radius", "nan"]),
    ("import", ["ground", "/dev/null", "--spacing", "nan,1"]),
    ("import", ["ground", "/dev/null", "--format", "jpeg"]),
    ("height", ["1,2", "--interp", "cubic"]), ("height", ["1,2", "--interp", ""]),
    ("edit", ["--brush", "dig", "--center", "1,1", "--radius", "3"]),
    ("import", ["ground", "/dev/null", "--format", "gdal", "--band", "0"]),
    ("import", ["ground", "/dev/null", "--format", "gdal", "--cols", "3"]),
    ("import", ["ground", "/dev/null", "--format", "gdal"]),
    ("import", ["ground", "/nonexistent.fbx"]),
    ("import", ["--band", "1"]),
    ("bench", ["--batch", "0"]), ("bench", ["--ask", "los"]), ("bench", ["--batch", "nan"]),
    ("check", ["--points", "0"]), ("check", ["--seed", "-1"]), ("check", ["--singles", "x"]),
]
OTHER_MISUSES = [
    (["--url", "http://127.0.0.1:1"], "a command is missing"),
    (["ray", "a", "1,2,3"], "the first of 2 arguments: kota ray ID [OX,OY,OZ DX,DY,DZ]"),
    (["ray", "a", "1,2,3", "4,5,6", "7,8,9"], "'7,8,9' is the first of 2 arguments: kota ray ID"),
    (["los", "a", "1,2,3"], "the first of 2 arguments: kota los ID [X,Y,Z X,Y,Z]"),
    (["lit", "a", "1,2,3"], "exactly one of --direction and --position"),
    (["lit", "a", "1,2,3", "--direction", "0,0,1", "--position", "1,1,1"], "exactly one of"),
    (["lit", "a", "1,2,3", "--direction", "0,0"], "--direction '0,0'"),
    (["locate", "1,2"], "exactly 3 numbers"), (["locate", "nan,2,3"], "'nan,2,3'"),
    (["rm"], "an argument is missing"), (["rm", "a", "no/id"], "'no/id' is no id"),
    (["rm", "a", "b", "c"], "one argument too many"),
    (["check", "no/id"], "'no/id' is no id"),
    (["patch"], "is wanted"), (["patch", "fly", "a"], "not 'fly'"),
    (["patch", "ls"], "takes 1 arguments, not 0"), (["patch", "show", "a"], "takes 2"),
    (["patch", "show", "no/id", "1"], "'no/id' is no id"),
    (["patch", "show", "a", "x"], "the patch 'x'"), (["patch", "show", "a", "0"], "the patch '0'"),
    (["patch", "watch", "a", "1.5"], "the patch '1.5'"),
    (["patch", "create", "a"], "--center"), (["patch", "create", "a", "--center", "1,1"], "--size"),
    (["patch", "create", "a", "--center", "1,nan", "--size", "1,1"], "--center '1,nan'"),
    (["patch", "create", "a", "--center", "1,1", "--size", "1,1", "--depth", "x"], "--depth 'x'"),
    (["patch", "create", "a", "--center", "1,1", "--size", "1,1", "--body", "box"], "MODEL@X,Y,Z"),
    (["patch", "create", "a", "--center", "1,1", "--size", "1,1", "--body", "b@1,2"], "3 numbers"),
    (["patch", "create", "a", "--center", "1,1", "--size", "1,1", "--body", "{"], "no JSON"),
    (["patch", "create", "a", "--center", "1,1", "--size", "1,1", "--discard"], "--discard is no"),
    (["patch", "create", "a", "--center", "1,1", "--size", "4,4", "--scale", "fin"], "'fin'"),
    (["patch", "ls", "a", "--size", "1,1"], "--size is no option of kota patch ls"),
    (["patch", "body", "a", "1", "no/id@1,2,3"], "'no/id' is no id"),
    (["patch", "push", "a", "1", "0"], "--velocity"),
    (["patch", "push", "a", "1", "-1", "--velocity", "1,1,1"], "the body '-1'"),
    (["patch", "push", "a", "1", "0", "--velocity", "1,1"], "--velocity '1,1'"),
    (["patch", "view", "a", "1", "x.png", "--width", "9999"], "9999"),
    (["model"], "is wanted"), (["model", "put", "m"], "takes 2"), (["model", "rm", "a/b"], "no id"),
    (["model", "put", "m", "/nonexistent.obj"], "/nonexistent.obj"),
    (["completion"], "an argument is missing"), (["completion", "csh"], "'csh'"),
    (["completion", "bash", "x"], "one argument too many"), (["manual", "x"], "too many"),
]


def one_line(result, status):
    check(result.status == status, f"expected status {status}: {result}")
    check(re.fullmatch(r"kota: [^\n]+\n", result.err), f"not one line: {result}")
    equal(result.out, b"", "stdout")


def right(name, folder="/nonexistent"):
    return [word.replace("FOLDER", folder) for word in RIGHT[name]]


def misused(name):
    with Stub(lambda request: reply({})) as stub:
        for more in (["--frobnicate"], ["--frobnicate=1"], ["-x"], ["--url"], ["--timeout"],
                     ["--json=1"], ["--timeout", "nan"] if name not in OFFLINE else ["--url"]):
            one_line(kota(*right(name), *more, url=stub.url), 2)
        if name not in NO_ID:
            for word in ("no/id", "", "a" * 65, "\u00e4", "a b"):
                words = right(name)
                words[words.index("a")] = word
                one_line(kota(*words, url=stub.url), 2)
        equal(len(stub.requests), 0, "requests")


def unreachable(name):
    with tempfile.TemporaryDirectory() as folder:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        if name == "check":  # what it finds is its answer
            result = kota(*right(name, folder), url=url)
            equal((result.status, [line["ok"] for line in result.lines]), (1, [False]), str(result))
        else:
            one_line(kota(*right(name, folder), "--timeout", "5", url=url), 1)
        equal(os.listdir(folder), [], "files")


def refused(name, status, code):
    problem = reply({"title": "T\u00eftle", "detail": "there is no locale a", "status": code},
                    f"{code} X", "application/problem+json")
    with tempfile.TemporaryDirectory() as folder, Stub(lambda request: problem) as stub:
        result = kota(*right(name, folder), url=stub.url)
        check(result.status == 1, f"{code}: {result}")
        check(re.fullmatch(r"kota: [^\n]+\n", result.err), f"not one line: {result}")
        if name != "check":
            check("there is no locale a" in result.err and str(code) in result.err, str(result))
            equal(result.out, b"", "stdout")
        equal(os.listdir(folder), [], "files")


for name_ in RIGHT:
    case(f"{name_}: unknown options, missing values and wrong ids are status 2", misused, name_)
    if name_ not in OFFLINE:
        case(f"{name_}: a server that is not there is status 1", unreachable, name_)
        for code_ in (404, 503):
            case(f"{name_}: {code_} is status 1 and says why", refused, name_, 1, code_)


@test("wrong numbers, and what stands alone or together wrongly, are status 2 and are named")
def _():
    with Stub(lambda request: reply({})) as stub:
        for name, words in WRONG_VALUES:
            one_line(kota(name, "a", *words, url=stub.url), 2)
        for words, said in OTHER_MISUSES:
            fails(kota(*words, url=stub.url), 2, said)
        equal(len(stub.requests), 0, "requests")


@test("values of a hundred thousand bytes are one line, too")
def _():
    long = "9" * 100000
    with Stub(lambda request: reply({})) as stub:
        for words in (["height", long], ["height", "a", long + ",1"], ["--" + long], [long],
                      ["patch", long], ["model", "rm", long], ["completion", long], ["bench", long],
                      ["check", "--seed", long],
                      ["import", "a", "b", long], ["ray", "a", long, long]):
            result = kota(*words, url=stub.url)
            one_line(result, 2)
            check(len(result.err) < 2000, f"{len(result.err)} bytes")


run()
