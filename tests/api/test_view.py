"""The daemon's own view: a pixel shows what pick finds, and is dark where lit says so; what moves is
in it; refusals; no question waits for it. On Mesa's software renderer."""
import math
import threading
import time

from daemon import check, equal, problem
from images import read_png
from sand import RESTING, SPACING, body, box, make, second, start, until
from tap import rng, run, test

WIDTH, HEIGHT = 160, 120
CAMERA = {"eye": [4, -9, 9], "target": [16, 16, 0], "up": [0, 0, 1], "fov_y_deg": 55}
SUN = [0.6, 0.5, -0.35]
AT = "/v1/locales/land"

daemon = start("--gpu", "cpu", *RESTING)
if daemon.get(AT + "/view.png?eye=0,0,9&target=9,9,0&size=16,16").status == 503:
    print("1..0 # skip there is no OpenGL on this machine")
    daemon.kill()
    raise SystemExit(0)
daemon.ok("PUT", AT + "/layers/tower", box(1.5), status=201, media="model/obj")
daemon.ok("PUT", AT + "/layers/tower/transform", {"translation": [16, 8, 2.5], "yaw_deg": 30})
daemon.ok("PUT", "/v1/locales/empty", {}, status=201)


def picture(name="land", query="", on=daemon, **more):
    """Rows of (r, g, b)."""
    question = {"camera": CAMERA, "size": [WIDTH, HEIGHT], "sun": {"direction": SUN}, **more}
    answer = on.post(f"/v1/locales/{name}/view.png{query}", question)
    equal((answer.status, answer.headers["content-type"]), (200, "image/png"), f"{str(answer)[:300]}")
    width, height, channels, _depth, rows = read_png(answer.body)
    equal([width, height, channels], [*question["size"], 3], "size")
    return [[tuple(row[3 * i:3 * i + 3]) for i in range(width)] for row in rows]


def pick(pixels, query="", on=daemon):
    return on.ok("POST", AT + "/pick" + query, {
        "camera": CAMERA, "viewport": [WIDTH, HEIGHT],
        "pixels": [[x + 0.5, y + 0.5] for x, y in pixels]})["results"]


def some(random, count):
    return [(random.randrange(WIDTH), random.randrange(HEIGHT)) for _ in range(count)]


def linear(colour):
    return sum(((c / 255 + 0.055) / 1.055) ** 2.4 if c > 10 else c / 255 / 12.92 for c in colour)


@test("a pixel is ground where pick hits, and sky elsewhere")
def _():
    sky, land, pixels = picture("empty"), picture(), some(rng("view"), 4000)
    hits = pick(pixels)
    wrong = sum((land[y][x] != sky[y][x]) != (hit["status"] == "hit")
                for (x, y), hit in zip(pixels, hits))
    equal({hit["status"] for hit in hits}, {"hit", "miss"}, "what is picked")
    check(wrong <= 4, f"{wrong} of {len(pixels)} pixels")


@test("pixels are dark where lit says so, and the sun gives at least half of the light elsewhere")
def _():
    bright, dark, pixels = picture(shadows=False), picture(), some(rng("lit"), 9000)
    hits = [(x, y, hit["hit"]) for (x, y), hit in zip(pixels, pick(pixels)) if hit["status"] == "hit"]
    lit = daemon.ok("POST", AT + "/lit", {"points": [hit["point"] for _, _, hit in hits],
                                          "light": {"direction": SUN}})["results"]
    asked = same = shaded = 0
    for (x, y, hit), light in zip(hits, lit):
        if -sum(a * b for a, b in zip(hit["normal"], SUN)) < 0.03:
            continue  # turned away from it
        part = linear(dark[y][x]) / linear(bright[y][x])
        asked += 1
        same += light["lit"] == (part > 0.67)
        shaded += not light["lit"]
        if part < 0.35:
            check(linear(bright[y][x]) >= 2 * linear(dark[y][x]), f"the sun's part at {x}, {y}")
    check(shaded > 20, f"{shaded} in shadow")
    check(same >= 0.99 * asked, f"{same} of {asked} pixels")


@test("the GET form and a sun by its angles give the same picture")
def _():
    numbers = {"eye": CAMERA["eye"], "target": CAMERA["target"], "up": CAMERA["up"],
               "size": [WIDTH, HEIGHT], "sun": SUN}
    query = "&".join(f"{name}={','.join(map(str, value))}" for name, value in numbers.items())
    answer = daemon.get(f"{AT}/view.png?{query}&fov_y_deg=55&shadows=true")
    equal(answer.status, 200, f"{str(answer)[:300]}")
    equal(answer.headers["kota-revision"], str(daemon.ok("GET", AT)["revision"]), "Kota-Revision")
    asked = daemon.post(f"{AT}/view.png", {"camera": CAMERA, "size": [WIDTH, HEIGHT],
                                           "sun": {"direction": SUN}})
    check(answer.body == asked.body, "another picture")
    height = math.degrees(math.atan2(-SUN[2], math.hypot(*SUN[:2])))
    azimuth = math.degrees(math.atan2(-SUN[0], -SUN[1])) % 360
    turned = picture(sun={"azimuth_deg": azimuth, "height_deg": height})
    straight = picture()
    differ = sum(a != b for one, two in zip(turned, straight) for a, b in zip(one, two))
    check(differ < WIDTH * HEIGHT / 50, f"{differ} pixels differ")


@test("a layer is drawn where it was moved to, an earlier value as it was")
def _():
    before, revision = picture(shadows=False), daemon.ok("GET", AT)["revision"]
    daemon.ok("PUT", AT + "/layers/tower/transform", {"translation": [20, 12, 3], "yaw_deg": 10})
    after, pixels = picture(shadows=False), some(rng("moved"), 4000)
    moved = [i for i, (x, y) in enumerate(pixels) if before[y][x] != after[y][x]]
    check(len(moved) > 40, f"{len(moved)} pixels changed")
    for hit, (x, y) in zip(pick(pixels), pixels):
        if hit["status"] == "hit" and hit["hit"]["layer"] == "tower":
            check(after[y][x] != picture_of_ground[y][x], f"no tower at {x}, {y}")
    daemon.ok("POST", AT + "/edits", {"brush": {"shape": "crater", "center": [16, 16], "radius": 4, "amount": 2}})
    check(picture(shadows=False) != after, "the edit is not seen")
    check(picture(query=f"?at={revision}", shadows=False) == after, "at= is another picture")


@test("granules and bodies of a living patch are seen, and not with live=false")
def _():
    place = make(daemon, "land", bodies=[body(12, 20)], x=12, y=20, seed=4)
    until(daemon, place, "resting")
    settled, live, pixels = picture(query="?live=false"), picture(), some(rng("patch"), 6000)
    changed = sum(live[y][x] != settled[y][x] for x, y in pixels)
    check(changed > 40, f"{changed} pixels show the patch")
    near = picture(shadows=False, camera={**CAMERA, "eye": [12, 18, 5], "target": [12, 20, 0]})
    edges = sum(abs(sum(a) - sum(b)) > 24 for row in near for a, b in zip(row, row[1:]))
    check(edges > 1500, f"{edges} edges of granules; the dented ground has some 800 without them")
    red = wrong = 0
    for (x, y), hit in zip(pixels, pick(pixels, "?live=true")):
        r, _, b = live[y][x]
        if hit["status"] == "hit" and hit["hit"].get("body"):
            red += 1
            wrong += not r > 1.4 * b
    check(red > 3 and wrong <= red // 3, f"{wrong} of {red} pixels of the body are not of its colour")
    own = daemon.get(place + "/view.png?eye=4,12,6&target=12,20,0&width=64&height=48")
    other = daemon.get(place + "/view.png?width=64&height=48")
    equal((own.status, own.body[:4], own.body != other.body), (200, b"\x89PNG", True), "a camera")
    problem(daemon.get(place + "/view.png?eye=1,1,1&target=1,1,1"), 400, "target")
    problem(daemon.get(place + "/view.png?eye=1,1,1"), 400, "target")
    daemon.ok("DELETE", place + "?discard=true")


@test("senseless cameras, suns and sizes are 400, too large ones 413")
def _():
    def refused(status, pointer, query="", **more):
        question = {"camera": CAMERA, "size": [16, 16], **more}
        problem(daemon.post(f"{AT}/view.png{query}", question), status, pointer=pointer)

    for name, value in (("eye", CAMERA["target"]), ("up", [0, 0, 0]), ("fov_y_deg", 180),
                        ("fov_y_deg", 0)):
        refused(400, "/camera/" + ("target" if name == "eye" else name),
                camera={**CAMERA, name: value})
    problem(daemon.post(f"{AT}/view.png", {}), 400, pointer="/camera")
    for sun in ({"direction": [0, 0, 0]}, {"azimuth_deg": 4}, {"height_deg": 91, "azimuth_deg": 0},
                {"direction": [0, 0, -1], "height_deg": 9}, {}, {"direction": [1, 2]}, {"colour": 1}):
        answer = daemon.post(f"{AT}/view.png", {"camera": CAMERA, "sun": sun})
        equal(answer.status, 400, f"{sun}: {answer}")
        check("/sun" in str(answer.body), f"{sun}: {answer}")
    limits = daemon.ok("GET", "/v1/limits")
    for size in ([0, 9], [9, -1], [1.5, 4], [4], "big"):
        refused(400, "/size", size=size)
    refused(413, "/size", size=[limits["view_side_max"] + 1, 1])
    side = math.isqrt(limits["view_pixels_max"]) + 1
    refused(413, "/size", size=[side, side])
    problem(daemon.get(f"{AT}/view.png?eye=0,0,9&target=9,9,0&size={side},{side}"), 413, pointer="size")
    problem(daemon.get(f"{AT}/view.png?eye=0,0,9"), 400, pointer="target")
    problem(daemon.get(f"{AT}/view.png?eye=0,0,9&target=9,9,0&sun=0,0,0"), 400, pointer="sun")
    problem(daemon.get("/v1/locales/nowhere/view.png?eye=0,0,9&target=9,9,0"), 404)


@test("a full queue is 503 with Retry-After, and questions are answered meanwhile")
def _():
    most = daemon.ok("GET", "/v1/limits")["view_queue_max"]
    answers = []

    def draw():
        answers.append(second(daemon).post(f"{AT}/view.png", {"camera": CAMERA, "size": [600, 450],
                                                                   "shadows": False}))

    threads = [threading.Thread(target=draw) for _ in range(most + 6)]
    for thread in threads:
        thread.start()
    asked = 0
    while any(thread.is_alive() for thread in threads):
        daemon.ok("GET", f"{AT}/height?x={SPACING}&y=3")
        asked += 1
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    refused = [answer for answer in answers if answer.status == 503]
    equal(len(answers), most + 6, "answers")
    check(len(refused) >= 1 and asked > 5, f"{len(refused)} refused, {asked} questions")
    check(all("retry-after" in answer.headers for answer in refused), "Retry-After")
    check(all(answer.status in (200, 503) for answer in answers), f"{[a.status for a in answers]}")


@test("without OpenGL a picture is 503, and nothing else")
def _():
    with start("--gpu", "off") as none:
        answer = none.post(f"{AT}/view.png", {"camera": CAMERA, "size": [16, 16]})
        problem(answer, 503, "OpenGL")
        equal(answer.json["code"], "no_device", "code")
        none.ok("GET", f"{AT}/height?x=1&y=3")


daemon.ok("PUT", "/v1/locales/land/layers/tower/transform", {"translation": [900, 900, 0]})
picture_of_ground = picture()
daemon.ok("PUT", AT + "/layers/tower/transform", {"translation": [16, 8, 2.5], "yaw_deg": 30})
try:
    run()
finally:
    daemon.kill()
