"""A test runner of a few lines that prints TAP.

A file registers functions with @test("a sentence") and ends with run(). A function passes when it
returns, fails when it raises, and is skipped when it raises Skip. case(sentence, function) does
the same for the rows of a table. Random numbers come from rng(name), whose seed is printed.

@rest("a sentence") registers a test that belongs to make test-all: it runs with KOTA_TEST_ALL=1,
which leaves out the others of its file, or where words of the command line choose it. Such a file
is `both` in tests/programs.list, as one that asks for ALL is.
"""
import math
import os
import random
import signal
import sys
import time
import zlib

_tests = []
_rest = set()
ALL = os.environ.get("KOTA_TEST_ALL") == "1"
HANG_S = 600  # a wait that takes longer is a hang, on a busy machine, too
SEED = int(os.environ.get("KOTA_TEST_SEED", "20171107"))


class Skip(Exception):
    """The test cannot run here; the text says why."""


class Failure(Exception):
    """What was found is not what was expected."""


def test(sentence):
    def register(function):
        _tests.append((sentence, function))
        return function
    return register


def rest(sentence):
    _rest.add(sentence)
    return test(sentence)


def case(sentence, function, *args, **named):
    _tests.append((sentence, lambda: function(*args, **named)))


def rng(name):
    return random.Random(SEED ^ zlib.crc32(name.encode()))


def fail(text):
    raise Failure(text)


def check(condition, text):
    if not condition:
        raise Failure(text)


def equal(got, want, what):
    if got != want or type(got) is bool and type(want) is not bool:
        raise Failure(f"{what}: got {got!r}, expected {want!r}")


def near(got, want, what, rel=1e-9, floor=1.0):
    """|got - want| <= rel · max(|want|, floor); null equals null alone."""
    if got is None or want is None:
        if got is not want:
            raise Failure(f"{what}: got {got!r}, expected {want!r}")
        return
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        raise Failure(f"{what}: got {got!r}, expected the number {want!r}")
    if math.isinf(want) and got == want:
        return
    if not abs(got - want) <= rel * max(abs(want), floor):
        raise Failure(f"{what}: got {got!r}, expected {want!r}, "
                      f"off by {got - want:g}")


def near_all(got, want, what, rel=1e-9, floor=1.0):
    if got is None or want is None:
        equal(got, want, what)
        return
    check(isinstance(got, list) and len(got) == len(want),
          f"{what}: got {got!r}, expected {want!r}")
    for i, (a, b) in enumerate(zip(got, want)):
        near(a, b, f"{what}[{i}]", rel, floor)


def wait_for(what, is_so):
    """The first answer of is_so() that is true."""
    deadline = time.monotonic() + HANG_S
    while not (answer := is_so()):
        check(time.monotonic() < deadline, f"{what}: not within {HANG_S} s")
        time.sleep(0.01)
    return answer


def run(finish=None, sentence="the daemon stops cleanly afterwards"):
    """Runs what was registered, prints TAP, and exits. finish() is called at the end, and counts.

    Words of the command line choose those whose sentence holds one of them; `-WORDS` leaves out,
    and is an error where nothing is called so.
    """
    words = sys.argv[1:]
    chosen = [word for word in words if word[0] != "-"]
    left_out = [word[1:] for word in words if word[0] == "-"]
    tests = [t for t in _tests if (any(word in t[0] for word in chosen) if chosen else
                                   (t[0] in _rest) == (ALL and bool(_rest)))]
    for word in left_out:
        if not any(word in sentence for sentence, _ in _tests):
            sys.exit(f"no test is called '{word}'")
    tests = [t for t in tests if not any(word in t[0] for word in left_out)]
    if finish:
        tests.append((sentence, finish))
    # a shell that runs this in the background ignores them, and programs started here would, too
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT
                          else signal.SIG_DFL)
    print(f"# seed {SEED} (KOTA_TEST_SEED)")
    failed = 0
    for number, (sentence, function) in enumerate(tests, 1):
        start = time.monotonic()
        try:
            function()
            print(f"ok {number} - {sentence}")
        except Skip as reason:
            print(f"ok {number} - {sentence} # SKIP {reason}")
        except BaseException as error:
            import traceback  # 3 ms, and most programs do without
            failed += 1
            print(f"not ok {number} - {sentence}")
            if isinstance(error, Failure):
                frames = traceback.extract_tb(error.__traceback__)
                place = [f for f in frames if not f.filename.endswith("tap.py")][-1]
                text = f"{error}\n{os.path.basename(place.filename)}:{place.lineno}"
            else:
                text = "".join(traceback.format_exception(error))
            for line in text.splitlines():
                print(f"# {line[:2000]}")
            if isinstance(error, KeyboardInterrupt):
                break
        seconds = time.monotonic() - start
        if seconds > 5:
            print(f"# took {seconds:.1f} s")
        sys.stdout.flush()
    print(f"1..{len(tests)}")
    sys.exit(1 if failed else 0)
