"""History: who made each revision, and reverts, against replays of the edits that stay."""
import datetime
import functools
import math
import os
import random as random_module
import re
import sqlite3
import tempfile
import time
import urllib.parse
from unittest import mock

from daemon import F32, Daemon, problem
from fields import put_locale
from ground import Client, Edit, Ground, check_is_good, cut_off, damage, floats, from_bytes, hills, random_edit, run_check, stored
from schema import contract
from tap import ALL, check, equal, fail, rng, run, test

ROUNDS = int(os.environ.get("KOTA_HISTORY_ROUNDS", "3"))
EDITS = int(os.environ.get("KOTA_HISTORY_EDITS", "25"))
MANY = 1000 if ALL else 300
AUTHORS = ("alice", "bob", "carol")

folder = tempfile.TemporaryDirectory(prefix="kota-test-")
TOKENS = os.path.join(folder.name, "tokens")
with open(TOKENS, "w", encoding="ascii") as file:
    file.writelines(f"edit token-of-{name} name={name}\n" for name in AUTHORS + ("root",))
    file.write("read reader name=reader\n")
os.chmod(TOKENS, 0o600)


def as_(name):
    return {"Authorization": f"Bearer token-of-{name}"}


def at(name, what=""):
    return f"/v1/locales/{name}{what}"


def start(data, *args):
    return stored(data, "--token-file", TOKENS, *args)


def put_ground(daemon, locale, ground, layer="ground"):
    if daemon.get(at(locale), headers=as_("root")).status == 404:
        equal(daemon.put(at(locale), {}, headers=as_("root")).status, 201, "a locale")
    answer = daemon.put(at(locale, f"/layers/{layer}?{ground.query()}"), ground.body(), media=F32,
                        headers=as_("root"))
    check(answer.status in (200, 201), f"a layer: {answer}")


def samples(client, locale, layer="ground"):
    answer = client.ask("GET", at(locale, f"/layers/{layer}/samples"), headers=as_("root"))
    equal(answer.status, 200, "samples")
    return from_bytes(answer.body)


def bits(value):
    return memoryview(floats([value])).cast("B").tobytes()


def must_be(got, want, cols, what):
    """The same bits; a hole is a hole."""
    if got.tobytes() == want.tobytes():
        return
    for i, (a, b) in enumerate(zip(got, want)):
        if not (a != a and b != b) and bits(a) != bits(b):
            fail(f"{what}: sample ({i % cols},{i // cols}) is {a!r}, not {b!r}")


def cells(rect, cols):
    c0, r0, width, height = rect
    return [r * cols + c for r in range(r0, r0 + height) for c in range(c0, c0 + width)]


class Past:
    """All that was done to one heightfield: of each revision its author and the samples that it set.

    An edit that is a `set` has touched its whole rectangle, any other what it changed.
    """

    def __init__(self, ground, revision):
        self.cols, self.rows = ground.cols, ground.rows
        self.base, self.now = floats(ground.h), floats(ground.h)
        self.first, self.steps = revision, []  # (revision, author, {sample: (before, after)})

    def add(self, revision, author, now, touched):
        self.steps.append((revision, author, {i: (self.now[i], now[i]) for i in touched}))
        self.now = now

    def note(self, revision, author, now, is_set, rect):
        touched = [i for i in cells(rect, self.cols)
                   if is_set or bits(now[i]) != bits(self.now[i]) and not (
                       now[i] != now[i] and self.now[i] != self.now[i])]
        self.add(revision, author, now, touched)

    def asked(self, step, author, since):
        return step[0] > since and author in (None, step[1])

    def replayed(self, author, since, scope):
        """All steps but those in question, each setting what it set: for worlds of `set` edits."""
        made = floats(self.base)
        for step in self.steps:
            for i, (_, after) in step[2].items():
                if not (self.asked(step, author, since) and i in scope):
                    made[i] = after
        return made

    def reverted(self, author, since, scope, overwrites):
        """By the words of the contract, sample by sample; and the samples with conflicts."""
        made, conflicts, touched = floats(self.now), set(), set()
        for i in scope:
            story = [(self.asked(step, author, since), step[2][i][0])
                     for step in self.steps if step[0] > since and i in step[2]]
            mine = [k for k, (is_asked, _) in enumerate(story) if is_asked]
            if not mine:
                continue
            if len(mine) < len(story) - mine[0]:
                conflicts.add(i)
            if overwrites:
                made[i] = story[mine[0]][1]
                touched.add(i)
            elif story[-1][0]:
                last_other = max((k for k, (is_asked, _) in enumerate(story) if not is_asked),
                                 default=-1)
                made[i] = story[min(k for k in mine if k > last_other)][1]
                touched.add(i)
        return made, conflicts, touched


def random_scope(random, past):
    if random.random() < 0.5:
        return None, set(range(past.cols * past.rows))
    width, height = random.randint(1, past.cols), random.randint(1, past.rows)
    rect = [random.randint(0, past.cols - width), random.randint(0, past.rows - height), width, height]
    return rect, set(cells(rect, past.cols))


def revert(client, random, past, locale, only_sets):
    """One revert by somebody, compared with the oracle."""
    author, by = random.choice(AUTHORS + (None,)), random.choice(AUTHORS + ("root",))
    since = random.randint(past.first, past.steps[-1][0])
    rect, scope = random_scope(random, past)
    way = random.choice((None, "keep", "overwrite"))
    body = {"to_revision" if random.random() < 0.5 else "since": since}
    for name, value in (("author", author), ("rect", rect), ("conflicts", way)):
        if value is not None:
            body[name] = value
    want, conflicts, touched = past.reverted(author, since, scope, way == "overwrite")
    answer = client.ask("POST", at(locale, "/revert?note=back"), body, headers=as_(by))
    what = f"revert {body}"
    equal(answer.status, 200, f"{what}: {answer}")
    equal(answer.json["revision"], past.steps[-1][0] + (1 if touched else 0), f"{what}: revision")
    got = samples(client, locale)
    must_be(got, want, past.cols, what)
    if only_sets and way != "overwrite":
        must_be(got, past.replayed(author, since, scope), past.cols, f"{what}: the replay")
    seen = [i for one in answer.json["conflicts"] for i in cells(one, past.cols)]
    equal(len(seen), len(set(seen)), "conflicts overlap")
    equal(set(seen), conflicts, f"{what}: conflicts")
    equal(answer.json["not_reverted"], [], "not reverted")
    equal(answer.json["rect"] is None, not touched, "the rect")
    if touched:
        past.add(answer.json["revision"], by, got, touched)


def edit_at_random(client, random, past, ground, locale, only_sets):
    author = random.choice(AUTHORS)
    edit = random_edit(random, ground, 16, shapes=() if only_sets else ("raise", "crater", "smooth"))
    while only_sets and edit.op != "set":
        edit = random_edit(random, ground, 16, shapes=())
    if only_sets and random.random() < 0.3:  # what others set, too
        edit = Edit("set", edit.rect, floats([7] * len(edit.heights)))
    answer = client.edit(edit, locale, headers=as_(author))
    equal(answer.status, 200, f"an edit: {answer}")
    past.note(answer.json["revision"], author, samples(client, locale), edit.op == "set",
              answer.json["rect"])


def compare_history(client, past, locale):
    """All pages, of all and of each author, in both orders."""
    for author in (None,) + AUTHORS:
        for order in ("oldest", "newest"):
            query = f"?order={order}&limit=7" + (f"&author={author}" if author else "")
            query += f"&since={past.first}"
            target, rows = at(locale, "/history" + query), []
            while target:
                answer = client.ask("GET", target, headers=as_("root"))
                equal(answer.status, 200, f"{target}: {answer}")
                rows += answer.json["history"]
                target = answer.json["next"]
            want = [(step[0], step[1]) for step in past.steps if author in (None, step[1])]
            equal([(row["revision"], row["author"]) for row in rows],
                  want if order == "oldest" else want[::-1], f"history{query}")


@test("random edits and reverts of three authors, restarts in between: each is what the oracle says")
def _():
    seed = rng("history").randrange(1 << 30)
    print(f"# {ROUNDS} rounds, seed {seed}", flush=True)
    random = random_module.Random(seed)
    with tempfile.TemporaryDirectory(prefix="kota-test-") as place:
        data = os.path.join(place, "data")
        own = start(data)
        pasts = {}
        for locale in ("sets", "all"):
            ground = hills(random, 270, 40, (1.0, 1.0), (0.0, 0.0), 0.01)
            put_ground(own, locale, ground)
            revision = own.get(at(locale), headers=as_("root")).json["revision"]
            pasts[locale] = Past(ground, revision), ground
        for number in range(ROUNDS):
            with Client(own.port) as client:
                for _ in range(EDITS):
                    locale = random.choice(("sets", "all"))
                    past, ground = pasts[locale]
                    if past.steps and random.random() < 0.3:
                        revert(client, random, past, locale, locale == "sets")
                    else:
                        edit_at_random(client, random, past, ground, locale, locale == "sets")
                    if random.random() < 0.05:
                        time.sleep(0.3)  # the tiles are written, the log loses its samples
                for locale, (past, _) in pasts.items():
                    compare_history(client, past, locale)
            if random.random() < 0.5:
                cut_off(own)
            else:
                own.stop()
            check_is_good(data)
            own = start(data)
            with Client(own.port) as client:
                for locale, (past, _) in pasts.items():
                    must_be(samples(client, locale), past.now, past.cols, "after a restart")
                    compare_history(client, past, locale)
        own.stop()
        check_is_good(data)


@test(f"of {MANY} disjoint edits by two authors one author's are reverted: the other's alone, to the bit")
def _():
    random = rng("disjoint")
    with tempfile.TemporaryDirectory(prefix="kota-test-") as place:
        own = start(os.path.join(place, "data"))
        ground = hills(random, 512, 512, (1.0, 1.0), (0.0, 0.0), 0)
        put_ground(own, "big", ground)
        put_ground(own, "alone", ground)
        since = own.get(at("big"), headers=as_("root")).json["revision"]
        places = [(c, r) for c in range(0, 512, 16) for r in range(0, 512, 16)]
        random.shuffle(places)
        with Client(own.port) as client:
            for k, (c, r) in enumerate(places[:MANY]):
                edit = Edit("set", (c, r, 16, 16), floats(random.uniform(-9, 9) for _ in range(256)))
                author = AUTHORS[k % 2]
                equal(client.edit(edit, "big", binary=True, headers=as_(author)).status, 200, "edit")
                if author == "bob":
                    equal(client.edit(edit, "alone", binary=True, headers=as_("bob")).status, 200, "edit")
            began = time.monotonic()
            answer = client.ask("POST", at("big", "/revert"), {"author": "alice", "since": since},
                                headers=as_("root"))
            took = time.monotonic() - began
            equal(answer.status, 200, f"revert: {answer}")
            equal((answer.json["revision"], answer.json["conflicts"]), (since + MANY + 1, []), "its answer")
            must_be(samples(client, "big"), samples(client, "alone"), 512, "big")
            print(f"# the revert took {took:.3f} s", flush=True)
        own.stop()
        with sqlite3.connect(os.path.join(place, "data", "kota.db")) as store:
            rows, held = store.execute("SELECT count(data), sum(length(data)) FROM history "
                                       "WHERE locale = 'big' AND rev BETWEEN ? AND ?",
                                       (since + 1, since + MANY)).fetchone()
        set_bytes = 4 * 16 * 16 * rows  # what the log holds until the tiles are written
        print(f"# the edits set {set_bytes} bytes, the history holds {held} of before", flush=True)
        check(rows == MANY and held < 0.9 * set_bytes, f"{rows} rows hold {held} bytes")


def kinds(random):
    """Of a kind of ground the heights that are stored for heights."""
    return {"whole metres": lambda heights: [round(h) for h in heights],
            "1/64 m": lambda heights: [round(64 * h) / 64 for h in heights],
            "centimetres": lambda heights: [round(100 * h) / 100 for h in heights], "all bits": list,
            "noise": lambda heights: [-9 + 18 * random.random() for _ in heights]}


@functools.lru_cache
def rough_ground():
    random = rng("rough")
    along, up = [20 * math.sin(c / 40) for c in range(512)], [15 * math.cos(r / 31) for r in range(512)]
    return [x + y + 0.2 * random.random() for y in up for x in along]


def filled(data, heights_of, is_set):
    """The bytes of a database of 512 x 512 samples, and of the samples that 1,000 edits of it set."""
    random, own, set_bytes, rough = rng("bytes"), start(data), 0, rough_ground()
    put_ground(own, "big", Ground(512, 512, heights_of(rough)))
    with Client(own.port) as client:
        for k in range(1000 if is_set else 0):
            width, rows = random.randint(4, 64), random.randint(4, 64)
            c, r = random.randint(0, 512 - width), random.randint(0, 512 - rows)
            rise = random.uniform(-5, 5)
            risen = [h + rise for i in range(r, r + rows) for h in rough[i * 512 + c:i * 512 + c + width]]
            edit = Edit("set", (c, r, width, rows), floats(heights_of(risen)))
            equal(client.edit(edit, "big", binary=True, headers=as_(AUTHORS[k % 2])).status, 200, "edit")
            set_bytes += 4 * width * rows
    own.stop()
    with sqlite3.connect(os.path.join(data, "kota.db")) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return os.path.getsize(os.path.join(data, "kota.db")), set_bytes


@test("1,000 edits take at most 1.5 times the database before and the samples that they set")
def _():
    older = os.environ.get("KOTA_OLD_BIN_DIR")  # a build to compare with: its build/release
    with tempfile.TemporaryDirectory(prefix="kota-test-") as place:
        before, _ = filled(os.path.join(place, "before"), list, False)
        for name in kinds(None) if older else ("all bits", "noise") if ALL else ("noise",):
            data = os.path.join(place, name)
            after, set_bytes = filled(data, kinds(rng("noise"))[name], True)
            print(f"# {name}: {before} bytes, the edits set {set_bytes}, then {after} bytes", flush=True)
            check(after <= 1.5 * (before + set_bytes), f"{name}: {after} bytes")
            check_is_good(data)
            if older:
                with mock.patch("daemon.KOTAD", os.path.join(older, "kotad")):
                    was, _ = filled(os.path.join(place, f"{name}-older"), kinds(rng("noise"))[name], True)
                print(f"# {name}: {after / was:.2f} times the bytes of {older}", flush=True)


@test("a row says who, when, where and why; also of layers, polygons, restores and deletions")
def _():
    with tempfile.TemporaryDirectory(prefix="kota-test-") as place:
        own = start(os.path.join(place, "data"))
        before = datetime.datetime.now(datetime.timezone.utc)
        note = "für Ünal & Co"
        quoted = urllib.parse.quote(note)
        equal(own.put(at("a", f"?note={quoted}"), {}, headers=as_("root")).status, 201, "PUT")
        ground = hills(rng("row"), 20, 10)
        equal(own.put(at("a", f"/layers/ground?{ground.query()}&note=hills"), ground.body(), media=F32,
                      headers=as_("alice")).status, 201, "layer")
        own.ok("PUT", at("a", "/pins/p?note=kept"), status=201, headers=as_("bob"))
        own.ok("POST", at("a", f"/edits?note={quoted}"), {"rect": [3, 4, 2, 1], "op": "set",
               "heights": [1, 2]}, headers=as_("bob"))
        own.ok("POST", at("a", "/edits"), {"brush": {"shape": "raise", "center": [5, 5], "radius": 2,
               "amount": 1}}, headers=as_("carol"))
        own.ok("POST", at("a", "/pins/p/restore"), headers=as_("root"))
        answer = own.get(at("a", "/history"), headers=as_("root")).json
        rows = answer["history"]
        equal([[row[name] for name in ("revision", "author", "note", "layer", "source")] for row in rows],
              [[1, "root", note, None, "manifest"], [2, "alice", "hills", "ground", "layer"],
               [3, "bob", note, "ground", "edit"], [4, "carol", None, "ground", "brush"],
               [5, "root", None, "ground", "restore"]], "rows")
        equal([row["rect"] for row in rows[:3]], [None, [0, 0, 20, 10], [3, 4, 2, 1]], "rects")
        equal((answer["locale"], answer["revision"], answer["next"], answer["held_since"]),
              ("a", 5, None, 0), "the rest")
        times = [datetime.datetime.fromisoformat(row["time"].replace("Z", "+00:00")) for row in rows]
        after = datetime.datetime.now(datetime.timezone.utc)
        slack = datetime.timedelta(milliseconds=2)
        check(all(before - slack <= one <= after + slack for one in times), f"times: {times}")
        for rect, want in (("3,4,1,1", [2, 3, 5]), ("0,0,3,3", [2]), ("5,5,1,1", [2, 4, 5])):
            seen = own.get(at("a", f"/history?rect={rect}"), headers=as_("root")).json["history"]
            equal([row["revision"] for row in seen], want, f"rect={rect}")
        since = urllib.parse.quote(rows[2]["time"])
        seen = own.get(at("a", f"/history?since={since}"), headers=as_("root")).json["history"]
        equal([row["revision"] for row in seen],
              [row["revision"] for row in rows if row["time"] > rows[2]["time"]], "since a time")
        # all of it back to before the edits: the restore by its samples, too
        answer = own.ok("POST", at("a", "/revert"), {"to_revision": 2}, headers=as_("root"))
        equal((answer["revision"], answer["not_reverted"]), (6, []), "revert")
        must_be(samples(own, "a"), ground.h, 20, "as it was uploaded")
        answer = own.ok("POST", at("a", "/revert"), {"since": 0}, headers=as_("root"))
        equal(answer["not_reverted"], [1, 2], "revisions that are no edits of samples")
        # a layer that is replaced ends what can be reverted
        own.ok("POST", at("a", "/edits"), {"rect": [0, 0, 1, 1], "op": "set", "heights": [9]},
               headers=as_("bob"))
        revision = own.get(at("a"), headers=as_("root")).json["revision"]
        put_ground(own, "a", ground)
        answer = own.ok("POST", at("a", "/revert"), {"author": "bob", "since": 0}, headers=as_("root"))
        equal(answer["not_reverted"], [3, revision], "under a new layer")
        equal((answer["rect"], answer["conflicts"], answer["revision"]), (None, [], revision + 1),
              "nothing was reverted")
        # a locale that is made again has a history of its own
        own.ok("DELETE", at("a"), status=204, headers=as_("root"))
        put_ground(own, "a", ground)
        answer = own.get(at("a", "/history"), headers=as_("root")).json
        equal(([row["source"] for row in answer["history"]], answer["held_since"]),
              (["manifest", "layer"], 0), "of the new one")
        own.stop()


@test("what is malformed, unknown or not allowed is refused; a revert has its key and its conditions")
def _():
    with tempfile.TemporaryDirectory(prefix="kota-test-") as place:
        own = start(os.path.join(place, "data"))
        ground = hills(rng("refused"), 20, 10)
        put_ground(own, "a", ground)
        root = as_("root")
        for query, pointer in (("rect=1,2,3", "rect"), ("rect=0,0,21,1", "rect"), ("rect=0,0,0,1", "rect"),
                               ("author=", "author"), ("author=a%20b", "author"), ("since=x", "since"),
                               ("since=2026-13-01T00:00:00Z", "since"),
                               ("since=2026-02-30T00:00:00Z", "since"), ("limit=0", "limit"),
                               ("limit=1001", "limit"), ("order=up", "order"), ("what=1", "what"),
                               ("layer=none", None), ("note=x", "note")):
            answer = own.get(at("a", f"/history?{query}"), headers=root)
            if query == "layer=none":
                equal(answer.status, 200, "no rows of it")
            else:
                problem(answer, 422 if "21" in query else 400, pointer=pointer)
        problem(own.get(at("none", "/history"), headers=root), 404)
        for body, status, pointer in (
                ({}, 400, "/since"), ({"since": 1, "to_revision": 1}, 400, "/since"),
                ({"since": 99}, 422, "/since"), ({"to_revision": 99}, 422, "/to_revision"),
                ({"since": -1}, 400, "/since"), ({"since": "x"}, 400, "/since"),
                ({"since": 0, "author": ""}, 400, "/author"), ({"since": 0, "author": 3}, 400, "/author"),
                ({"since": 0, "rect": [0, 0, 99, 1]}, 422, "/rect"),
                ({"since": 0, "rect": [0.5, 0, 1, 1]}, 400, "/rect"),
                ({"since": 0, "conflicts": "win"}, 400, "/conflicts"),
                ({"since": 0, "layer": "none"}, 422, "/layer"), ({"since": 0, "more": 1}, 400, "/more")):
            problem(own.post(at("a", "/revert"), body, headers=root), status, pointer=pointer)
        problem(own.post(at("none", "/revert"), {"since": 0}, headers=root), 404)
        equal(own.post(at("a", "/revert"), {"since": 0}, headers={"Authorization": "Bearer reader"}).status,
              403, "a reader")
        for note in ("x" * 257, "%01", "%ff"):
            answer = own.post(at("a", f"/edits?note={note}"), {"rect": [0, 0, 1, 1], "op": "set",
                              "heights": [1]}, headers=root)
            problem(answer, 400, pointer="note")
        edit = {"rect": [0, 0, 1, 1], "op": "set", "heights": [1]}
        revision = own.ok("POST", at("a", "/edits"), edit, headers=root)["revision"]
        body = {"since": revision - 1}
        problem(own.post(at("a", "/revert"), body, headers={**root, "If-Match": '"1"'}), 412)
        keyed = {**root, "Idempotency-Key": "once", "If-Match": f'"{revision}"'}
        for is_repeat in (False, True):
            answer = own.post(at("a", "/revert"), body, headers=keyed)
            equal((answer.status, answer.json["revision"]), (200, revision + 1), f"revert: {answer}")
            equal(answer.headers.get("idempotency-replayed"), "true" if is_repeat else None, "a repeat")
        own.stop()


@test("every call that needs a right to write takes a note, and is documented so")
def _():
    paths = contract()["paths"]
    with Daemon("--gpu", "off") as own:
        put_locale(own, "a")
        for path, item in paths.items():
            for method in set(item) - {"parameters"}:
                writes = item[method].get("security") == [{"bearer": []}]
                equal({"$ref": "#/components/parameters/Note"} in item[method].get("parameters", []), writes,
                      f"{method} {path}: the parameter note")
                if not writes or item[method]["operationId"] == "deleteLocale":
                    continue
                target = re.sub(r"{\w+}", "x1", path.replace("{locale}", "a")) + "?note=why"
                answer = own.ask(method.upper(), target, None if method == "delete" else {})
                check("unknown_parameter" not in answer.body.decode(), f"{method} {target}: {answer}")
        problem(own.get(at("a", "?note=why")), 400, pointer="note")


@test("without a data directory the history is in memory, with the same answers, within its bound")
def _():
    random = rng("memory")
    with Daemon("--token-file", TOKENS) as own:
        ground = hills(random, 100, 80, (1.0, 1.0), (0.0, 0.0), 0.01)
        put_ground(own, "sets", ground)
        past = Past(ground, own.get(at("sets"), headers=as_("root")).json["revision"])
        with Client(own.port) as client:
            for _ in range(2 * EDITS):
                if past.steps and random.random() < 0.4:
                    revert(client, random, past, "sets", True)
                else:
                    edit_at_random(client, random, past, ground, "sets", True)
            compare_history(client, past, "sets")
        own.ok("DELETE", at("sets"), status=204, headers=as_("root"))
        put_ground(own, "sets", ground)
        answer = own.get(at("sets", "/history"), headers=as_("root")).json
        equal((len(answer["history"]), answer["held_since"]), (2, 0), "of the new one")
    with Daemon("--max-history-bytes", "20000") as own:
        put_locale(own, "a")
        own.ok("PUT", at("a", f"/layers/ground?{ground.query()}"), ground.body(), status=201, media=F32)
        for k in range(200):
            own.ok("POST", at("a", "/edits"), {"rect": [0, 0, 1, 1], "op": "set", "heights": [k]})
        answer = own.get(at("a", "/history?limit=1000")).json
        held = answer["held_since"]
        check(2 < held < 200, f"held since {held}")
        equal([row["revision"] for row in answer["history"]], list(range(held + 1, 203)), "rows")
        equal({row["author"] for row in answer["history"]}, {None}, "nobody has a name")
        problem(own.post(at("a", "/revert"), {"since": held - 1}), 410)
        equal(own.post(at("a", "/revert"), {"since": held}).status, 200, "all held")


@test("the oldest rows go first, within --max-history-bytes; history says since when, revert is 410")
def _():
    with tempfile.TemporaryDirectory(prefix="kota-test-") as place:
        data = os.path.join(place, "data")
        own = start(data, "--max-history-bytes", "20000")
        equal(own.get("/v1/limits", headers=as_("root")).json["history_bytes_max"], 20000, "the limit")
        random = rng("bound")
        ground = hills(random, 64, 64)
        put_ground(own, "a", ground)
        states = {2: floats(ground.h)}
        with Client(own.port) as client:
            for revision in range(3, 103):
                edit = Edit("set", (0, 0, 16, 16), floats(random.uniform(-9, 9) for _ in range(256)))
                equal(client.edit(edit, "a", binary=True, headers=as_("alice")).status, 200, "edit")
                states[revision] = samples(client, "a")
        answer = own.get(at("a", "/history?limit=1000"), headers=as_("root")).json
        held = answer["held_since"]
        check(2 < held < 100, f"held since {held}")
        equal([row["revision"] for row in answer["history"]], list(range(held + 1, 103)), "rows")
        problem(own.post(at("a", "/revert"), {"since": held - 1}, headers=as_("root")), 410)
        early = {"since": "2001-01-01T00:00:00Z"}
        problem(own.post(at("a", "/revert"), early, headers=as_("root")), 410)
        equal(own.post(at("a", "/revert"), {"since": held}, headers=as_("root")).status, 200, "all held")
        must_be(samples(own, "a"), states[held], 64, "as it was then")
        own.stop()
        check_is_good(data)
        own = start(data, "--max-history-bytes", "0")
        own.ok("POST", at("a", "/edits"), {"rect": [0, 0, 1, 1], "op": "set", "heights": [1]},
               headers=as_("root"))
        answer = own.get(at("a", "/history"), headers=as_("root")).json
        equal((answer["history"], answer["held_since"]), ([], answer["revision"]), "none is kept")
        own.stop()
        check_is_good(data)


@test("--check finds flipped bytes and missing rows; a damaged row is an error of its own, not of reads")
def _():
    with tempfile.TemporaryDirectory(prefix="kota-test-") as place:
        data = os.path.join(place, "data")
        own = start(data)
        put_ground(own, "a", hills(rng("flipped"), 64, 64))
        for k in range(4):
            own.ok("POST", at("a", "/edits"), {"rect": [k, 2, 3, 3], "op": "add", "heights": [1] * 9},
                   headers=as_("bob"))
        for k in range(3):  # their samples are in history_data
            random = rng(f"long {k}")
            own.ok("POST", at("a", "/edits"), {"rect": [0, 0, 64, 64], "op": "set", "heights": [
                random.uniform(-9, 9) for _ in range(64 * 64)]}, headers=as_("carol"))
        own.stop()
        check_is_good(data)
        path = os.path.join(data, "kota.db")
        with sqlite3.connect(path) as store:
            equal(store.execute("SELECT count(*), count(DISTINCT data) FROM history_data").fetchone(), (3, 3),
                  "rows of long samples")
        store.close()
        with open(path, "rb") as source:
            intact = source.read()
        for sql in ("UPDATE history SET author = 'eve' WHERE rev = 4",
                    "UPDATE history SET rect = zeroblob(16) WHERE rev = 5",
                    "UPDATE history SET data = zeroblob(length(data)) WHERE rev = 4",
                    "UPDATE history SET codec = 1 WHERE rev = 4", "DELETE FROM history WHERE rev = 4",
                    "DELETE FROM history WHERE rev = 6", "UPDATE history SET time = time + 1 WHERE rev = 3",
                    "UPDATE history SET locale = 'b'",
                    "UPDATE history_data SET data = zeroblob(length(data)) WHERE number = 2",
                    "UPDATE history_data SET number = number + 1 WHERE number = 3",
                    "DELETE FROM history_data WHERE number = 1",
                    "UPDATE history SET data = 1 WHERE typeof(data) = 'integer'",
                    "INSERT INTO history_data VALUES (99, x'00')"):
            damage(path, intact, sql)
            status, text = run_check(data)
            check(status != 0 and "histor" in text, f"{sql}: --check ends with {status}: {text}")
        with open(path, "wb") as target:
            target.write(intact)
        with sqlite3.connect(path) as store:
            store.execute("UPDATE history SET data = zeroblob(length(data)) WHERE rev = 4")
        store.close()
        own = start(data)
        equal(own.get(at("a"), headers=as_("root")).status, 200, "the locale is served")
        equal(own.get(at("a", "/history"), headers=as_("root")).status, 200, "who made it is known")
        check(own.post(at("a", "/revert"), {"since": 2}, headers=as_("root")).status >= 500, "revert")
        equal(own.post(at("a", "/revert"), {"since": 4}, headers=as_("root")).status, 200, "later ones")
        own.stop()


run(folder.cleanup, "the folder of tokens goes")
