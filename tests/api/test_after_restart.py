"""Changes of every kind in random order; after each restart every read answers as before it.

The daemon is stopped by SIGTERM or killed once the poses are in its store (they are written within
about a second). What may differ after a restart is listed in MAY_DIFFER, nothing else may.

KOTA_RESTART_ROUNDS   restarts (4)
KOTA_RESTART_CHANGES  changes before each (40)
KOTA_RESTART_PAUSE_MS pause between two changes (0)
"""
import os
import random as random_module
import tempfile
import time

from changes import LOCALES, MODELS, World, differences, questions, wait_for_poses, without_moves
from ground import Client, Stream, check_is_good, cut_off, stored
from tap import check, fail, rng, run, test

ROUNDS = int(os.environ.get("KOTA_RESTART_ROUNDS", "4"))
CHANGES = int(os.environ.get("KOTA_RESTART_CHANGES", "40"))
PAUSE_S = int(os.environ.get("KOTA_RESTART_PAUSE_MS", "0")) / 1000


def events(daemon, locale, after, last):
    """Those of revisions; a stream also begins with the poses of what has moved."""
    stream = Stream(daemon.port, f"/v1/locales/{locale}/events", after)
    try:
        got = stream.wait(lambda got: any(e[0] and int(e[0]) >= last for e in got),
                          f"the events of {locale} up to {last}")
    finally:
        stream.close()
    return [e for e in got if e[1] != "transform"]


def portrait(daemon, seed):
    """question -> (status, ETag, body or document)."""
    random, seen = random_module.Random(seed), {}

    def keep(method, target, body=None):
        answer = daemon.ask(method, target, body)
        check(answer.status < 500, f"{method} {target}: {answer}")
        is_json = "json" in answer.media_type
        seen[f"{method} {target}"] = {"status": answer.status, "etag": answer.headers.get("etag"),
                                      "body": answer.json if is_json else answer.body.hex()}
    for target in ("/v1/locales?layers=true", "/v1/models", *(f"/v1/models/{name}" for name in MODELS)):
        keep("GET", target)
    for locale in LOCALES:
        answer = daemon.get(f"/v1/locales/{locale}")
        if answer.status != 200:
            keep("GET", f"/v1/locales/{locale}")
            continue
        for question in questions(random, answer.json):
            keep(*question)
        last = answer.json["revision"]
        if last > 1:
            seen[f"events of {locale}"] = events(daemon, locale, max(0, last - 20), last)
    points = [[random.uniform(-1e6, 1e6) for _ in range(3)] for _ in range(20)]
    for call in ("locate", "contact"):
        keep("POST", f"/v1/{call}", {"points": points})
    return seen


@test("a restart or kill -9 changes no answer, whatever was changed before")
def _():
    seed = rng("after restart").randrange(1 << 30)
    print(f"# {ROUNDS} restarts, seed {seed}", flush=True)
    world, random = World(seed), random_module.Random(seed + 1)
    with tempfile.TemporaryDirectory(prefix="kota-test-") as folder:
        data = os.path.join(folder, "data")
        daemon = stored(data)
        for number in range(ROUNDS):
            with Client(daemon.port) as client:
                for _ in range(random.randint(1, CHANGES)):
                    world.change(client)
                    time.sleep(PAUSE_S)
            wait_for_poses(daemon, data)
            before = portrait(daemon, number)
            is_killed = random.random() < 0.5
            if is_killed:
                cut_off(daemon)
            else:
                daemon.stop()
            daemon = stored(data)
            after = portrait(daemon, number)
            if is_killed:
                before, after = without_moves(before), without_moves(after)
            found = list(differences(before, after))
            if found:
                fail(f"restart {number} ({'kill -9' if is_killed else 'SIGTERM'}), seed {seed}: "
                     f"{len(found)} answers differ: " + "; ".join(found[:8]))
        daemon.stop()
        check_is_good(data)


if __name__ == "__main__":
    run()
