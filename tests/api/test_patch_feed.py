"""Patches of sand on the feed of their locale: born, states, bodies, gone; as text and as frames."""
from daemon import check, equal
from events import Stream
from frames import PATCH, FrameStream
from sand import CPU, RESTING, body, make, start, until
from tap import run, test

daemon = start(*CPU, *RESTING, "--patches-coarse", "2", names=("land", "other"))
STATES = ["filling", "settling", "active", "resting", "written", "discarded", "failed"]


def patch_event(stream, *states):
    """The events of patches up to the first in one of these states."""
    events = []
    while not events or events[-1].data["state"] not in states:
        event = stream.event()
        if event.name == "patch":
            events.append(event)
    return events


def frame(stream):
    while (frame := stream.frame()).kind != PATCH:
        pass
    return frame


@test("a patch is born, changes its state and its bodies, and is gone; its events have no id")
def _():
    with Stream(daemon.port, "/v1/locales/land/events") as stream, \
            Stream(daemon.port, "/v1/events") as everywhere, \
            Stream(daemon.port, "/v1/locales/land/events?bounds=0,0,5,5") as aside, \
            Stream(daemon.port, "/v1/locales/other/events") as other:
        place = make(daemon, "land", bodies=[body()], seed=5)
        until(daemon, place, "resting")
        events = patch_event(stream, "resting")
        patch = daemon.ok("GET", place)
        daemon.post(place + "/bodies", body(x=15))
        events += patch_event(stream, "active")
        daemon.ok("DELETE", place + "?discard=true")
        events += patch_event(stream, "discarded")
        first = events[0].data
        equal((first["change"], first["locale"], first["patch"], first["layer"], first["bodies"]),
              ("born", "land", patch["id"], patch["layer"], [0]), "the first event")
        low, high = first["bounds"]["min"], first["bounds"]["max"]
        equal([(a + b) / 2 for a, b in zip(low, high)][:2], patch["center"], "the middle")
        equal([b - a for a, b in zip(low, high)][:2], patch["size"], "the size")
        check(low[2] < -1.5 and -0.2 < high[2] < 0.2, f"from {low[2]} to {high[2]}")
        states = [event.data["state"] for event in events if event.data["change"] != "bodies"]
        check(set(states) >= {"resting", "active", "discarded"} and
              all(state in STATES for state in states), f"states {states}")
        check(any(event.data["bodies"] == [0, 1] for event in events), "no event of the new body")
        equal([event.data["change"] for event in events].count("born"), 1, "births")
        equal(events[-1].data["change"], "gone", "the last one")
        check(all(event.id is None for event in events), "a patch has no revision")
        told = patch_event(everywhere, "discarded")
        equal((told[0].data["change"], told[-1].data["change"]), ("born", "gone"), "of all locales")
        daemon.ok("PUT", "/v1/locales/land", {"title": "a"}, status=200)
        daemon.ok("PUT", "/v1/locales/other", {"title": "b"}, status=200)
        equal((aside.event().name, other.event().name), ("edit", "edit"), "of readers elsewhere")


@test("a stream begins with the patches that live, as they are")
def _():
    place = make(daemon, "land", bodies=[body()], seed=6)
    until(daemon, place, "resting")
    for query, count in (("", 1), ("?layer=ground", 1), ("?bounds=0,0,5,5", 0)):
        with Stream(daemon.port, f"/v1/locales/land/events{query}") as stream:
            revision = daemon.ok("PUT", "/v1/locales/land", {"title": f"q{query}"})["revision"]
            events = [stream.event()]
            while events[-1].name == "patch" or events[-1].data["revision"] < revision:
                events.append(stream.event())
            told = [event.data for event in events if event.name == "patch"]
            equal([(data["change"], data["state"]) for data in told], count * [("born", "resting")],
                  f"events of patches, {query or 'all'}")
    daemon.ok("DELETE", place + "?discard=true")
    with Stream(daemon.port, "/v1/locales/land/events") as stream:
        daemon.ok("PUT", "/v1/locales/land", {"title": "later"})
        equal(stream.event().name, "edit", "a patch that has ended is not told")


@test("frames have what the text has")
def _():
    with Stream(daemon.port, "/v1/locales/land/events") as stream, \
            FrameStream(daemon.port, "/v1/locales/land/events") as frames:
        place = make(daemon, "land", bodies=[body(), body(x=15, position=[15, 15, 5])], seed=7)
        until(daemon, place, "settling", "active", "resting")
        daemon.ok("DELETE", place + "/bodies/0")
        daemon.ok("DELETE", place + "?discard=true")
        texts = patch_event(stream, "discarded")
        got = [frame(frames)]
        while got[-1].source != "gone":
            got.append(frame(frames))
    for one, event in ((got[0], texts[0]), (got[-1], texts[-1])):
        data = event.data
        equal((one.source, one.revision, one.layer, list(one.bodies)),
              (data["change"], data["patch"], data["layer"], data["bodies"]), "frame")
        equal(list(one.bounds), data["bounds"]["min"] + data["bounds"]["max"], "bounds")
    # of the first ones each reader has the state as it was told
    check(STATES[got[0].state] in STATES[:3], got[0])
    equal((STATES[got[-1].state], texts[-1].data["bodies"]), ("discarded", [1]), "without the removed body")


try:
    run()
finally:
    daemon.kill()
