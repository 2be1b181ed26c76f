"""Which tests of the API do not go through a proxy, and why. test_proxies.py takes every other file.

A test belongs here when it asks no daemon, or asks about what the proxy takes on itself: sockets,
framing, signals, who somebody is. A new file is in by default.
"""
import os
import re

from daemon import ROOT
from tap import check

# Words of sentences, () for all: of make test, and of make test-all; make proxies takes all files.
SHORTEST = {"height": ("one by one over GET", "GET takes fields", "stands on it at distance 0",
                       "a footprint over a bump")}
EVENTS = ("a stream is text", "an event tells", "an edit tells", "two subscribers", "since= replays",
          "what lies in the future", "a deleted locale", "Kota-Min-Revision waits")
SHORT = {"height": (), "events": EVENTS, "tiles": (), "cli": ("ls and info", "its problems come")}

NO_DAEMON = "it asks no daemon"
STUBS = "its servers are stand-ins of its own"
FRAMING = "it sends bytes that a proxy reads and writes anew"
DAEMONS_OWN = "it looks at the daemon's process: signals, files, sockets, limits of connections"
AS_TYPED = "its commands are those of the document, which names the daemon itself"
NO_TLS = "what it runs speaks no TLS"

# Files.
DIRECT = {
    "cli_bench": NO_TLS, "library": NO_TLS,
    "cli_files": STUBS, "cli_misuse": STUBS,
    "docs": AS_TYPED, "client_defaults": DAEMONS_OWN,
    "manual": AS_TYPED,
    "confined": DAEMONS_OWN, "durable": DAEMONS_OWN, "kill": DAEMONS_OWN, "life": DAEMONS_OWN,
    "limits": DAEMONS_OWN, "overload": DAEMONS_OWN, "start": DAEMONS_OWN, "store_faults": DAEMONS_OWN,
    "deploy": NO_DAEMON, "faults": NO_DAEMON, "fuzz": NO_DAEMON, "hardening": NO_DAEMON,
    "install": NO_DAEMON, "mesh_oracle": NO_DAEMON, "oracle": NO_DAEMON, "packages": NO_DAEMON,
    "sand_compare": NO_DAEMON, "sand_scenes": NO_DAEMON, "torture": NO_DAEMON,
    "hostile": FRAMING, "hostile_storms": FRAMING, "hostile_writes": FRAMING, "http": FRAMING,
    "http_corpus": FRAMING,
    "proxies": "it is this test", "restarts": "it has a proxy of its own",
    "python_client": "it has a proxy of its own",
    "prometheus": "it scrapes the daemon itself",
    "rights": "who somebody is: through a proxy, nobody is from this machine",
    "web": "the inspector has a test of its own here (tests/web/behind.mjs)",
}

# Single tests, by words of their sentences: the file, the words, the kinds of proxy, why.
BOTH = ("nginx", "haproxy")
PROBES = "no proxy lets probes through"
OWN_CONNECTIONS = "it counts the daemon's own requests, connections and files"
TESTS = [
    ("openapi", "the daemon serves GET /livez", BOTH, PROBES),
    ("openapi", "the daemon serves GET /readyz", BOTH, PROBES),
    ("openapi", "the daemon serves GET /healthz", BOTH, PROBES),
    ("errors", "POST /livez is 405", BOTH, PROBES),
    ("errors", "a body over the limit is 413 with limit and got", BOTH,
     "the proxy refuses it, and knows no `got`"),
    ("errors", "GET /.. is 404", ("nginx",), "nginx says 400: it resolves the dots"),
    ("cli_terminal", "a benchmark shows its time", BOTH, NO_TLS),
    ("shared_ground", "without tokens loopback may edit", BOTH,
     "through a proxy nobody is from this machine"),
    ("kota_js", "the daemon tells how it is", BOTH, PROBES),
    ("kota_js", "every operation of the document has been asked", BOTH, PROBES),
    ("cli_commands", "check finds a daemon good", BOTH, PROBES),
    ("metrics", "--ops-listen tells the same metrics", BOTH, OWN_CONNECTIONS),
    ("metrics", "a route's buckets are every second one", BOTH, OWN_CONNECTIONS),
    ("metrics", "changes are timed, revisions told, files and streams counted", BOTH, OWN_CONNECTIONS),
    ("metrics", "a reader that does not send its head", BOTH, OWN_CONNECTIONS),
    ("events", "HEAD answers the headers", BOTH, "a proxy keeps the connection of its client open"),
    ("events", "a reader that does not keep up is cut off", BOTH, "a proxy reads ahead for it"),
    ("events", "1,000 subscribers", ("haproxy",),
     "HAProxy finds out that a reader has gone when it next writes to it"),
    ("events", "a peer that has gone is noticed at once", ("haproxy",),
     "HAProxy finds out that a reader has gone when it next writes to it"),
]


def path(name):
    return os.path.join(ROOT, "tests", "api", f"test_{name}.py")


def names():
    """Every file of tests that goes through a proxy."""
    found = (re.fullmatch(r"test_(\w+)\.py", name) for name in os.listdir(os.path.dirname(path(""))))
    return sorted(match[1] for match in found if match and match[1] not in DIRECT)


def left_out(name, kind):
    """Words of the sentences that are not asked through this kind of proxy."""
    return [words for of, words, kinds, _ in TESTS if of == name and kind in kinds]


def longest_first():
    """So that they end together; the size of a file is a fair guess."""
    return sorted(names(), key=lambda name: -os.path.getsize(path(name)))


def names_of_all():
    """Nothing is left out that is not there. Of a single test, its own program says so (tap.run)."""
    for name, why in DIRECT.items():
        check(os.path.exists(path(name)), f"there is no test_{name}.py to leave out")
        check(why, f"no reason for test_{name}.py")
    for name, words, kinds, why in TESTS:
        check(name in names(), f"{words!r} of test_{name}.py is left out twice, or there is no such file")
        check(kinds and set(kinds) <= set(BOTH) and why, f"{name} {words!r}: {kinds} {why!r}")
    check(set(SHORT) <= set(names()), f"{SHORT} is not within {names()}")
