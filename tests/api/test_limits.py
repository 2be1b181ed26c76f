"""Limits that the operator sets: what goes over them, and that the rest goes on."""
import select
import socket

from daemon import SLOW, Daemon, parse_answers, problem, receive
from tap import check, equal, run, test


def half_upload(daemon, declared, sent):
    """A connection on which a PUT of `declared` bytes has sent only some."""
    s = socket.create_connection(("127.0.0.1", daemon.port), timeout=60)
    s.sendall(b"PUT /v1/locales/land/layers/ground?spacing=1,1&cols=2&rows=2 HTTP/1.1\r\nHost: x\r\n"
              b"Content-Type: application/vnd.kota.f32\r\nContent-Length: %d\r\n\r\n" % declared)
    s.sendall(bytes(sent))
    return s


def read_answer(s):
    return parse_answers(receive(s))[0]


@test("bodies under way are bounded together: the one too much is 503 with Retry-After")
def _():
    with Daemon("--max-bodies", str(1 << 20)) as daemon:
        daemon.ok("PUT", "/v1/locales/land", {}, status=201)
        limits = daemon.ok("GET", "/v1/limits")
        equal(limits["bodies_bytes_max"], 1 << 20, "bodies_bytes_max")
        both = [half_upload(daemon, 1_000_000, 900_000) for _ in range(2)]
        refused = select.select(both, [], [], 60 * SLOW)[0]  # the one that was read second
        equal(len(refused), 1, "uploads that were answered")
        answer = read_answer(refused[0])
        problem(answer, 503, "1048576")
        check(int(answer.headers["retry-after"]) >= 1, f"Retry-After: {answer.headers}")
        for s in both:
            s.close()
        daemon.ok("GET", "/v1/locales/land")


if __name__ == "__main__":
    run()
