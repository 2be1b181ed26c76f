"""Which pages of other origins a browser lets read: none, all, or those of a list."""
import subprocess

from daemon import KOTAD, Daemon, check, clean_environment, equal
from tap import HANG_S, run, test

GOOD, OTHER = "https://map.example", "http://tool.example:8080"


def asked(daemon, origin, method="GET"):
    """(status, Access-Control-Allow-Origin, Vary) of the limits for a page of this origin."""
    answer = daemon.ask(method, "/v1/limits", headers={"Origin": origin} if origin else {})
    return (answer.status, answer.headers.get("access-control-allow-origin"),
            answer.headers.get("vary"))


@test("with none nothing is said to other origins")
def _():
    with Daemon("--cors-origin", "none") as daemon:
        for method, status in (("GET", 200), ("OPTIONS", 204)):
            answer = daemon.ask(method, "/v1/limits", headers={
                "Origin": GOOD, "Access-Control-Request-Method": "GET"})
            equal(answer.status, status, method)
            check(not any(name.startswith("access-control") for name in answer.headers),
                  f"{method}: {answer.headers}")


@test("every page may read, as it stands and with *")
def _():
    for words in ((), ("--cors-origin", "*")):
        with Daemon(*words) as daemon:
            equal(asked(daemon, GOOD), (200, "*", None), "an origin")
            equal(asked(daemon, None), (200, "*", None), "no origin")


@test("with a list the origin is named if it is in it, and answers vary by it")
def _():
    with Daemon("--cors-origin", f"{GOOD},{OTHER}") as daemon:
        for origin in (GOOD, OTHER):
            for method, status in (("GET", 200), ("OPTIONS", 204)):
                equal(asked(daemon, origin, method), (status, origin, "Origin"), f"{method} {origin}")
        for origin in (None, "null", "https://map.example.evil", "https://map.exampl",
                       f"{GOOD},{OTHER}", GOOD.upper(), "*", ","):
            equal(asked(daemon, origin), (200, None, "Origin"), f"{origin}")
        answer = daemon.get("/nope", headers={"Origin": GOOD})
        equal((answer.status, answer.headers.get("access-control-allow-origin")), (404, GOOD),
              "a refusal")
        answer = daemon.ask("OPTIONS", "/v1/limits", headers={"Origin": GOOD})
        check("GET" in answer.headers["access-control-allow-methods"], f"preflight: {answer.headers}")


@test("an origin that cannot be is a refusal to start")
def _():
    for origin in ("http://a b", "x" * 300, "http://a\r\nX: y", "map.example", "https://",
                   "https://map.example/", "https://Map.example", f"{GOOD},*", f"{GOOD},",
                   "https://*.example", "://a", "https://a@b"):
        done = subprocess.run([KOTAD, "--listen", "127.0.0.1:0", "--cors-origin", origin],
                              capture_output=True, text=True, env=clean_environment(), check=False,
                              timeout=HANG_S)
        check(done.returncode == 2 and "CORS origin" in done.stderr, f"{origin!r}: {done.stderr}")


run()
