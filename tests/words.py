"""Plain English: prints each phrase in the public texts, and in comments of the programs, that
CONTRIBUTING.md's rules replace."""
import glob
import re

PHRASES = re.compile(
    r"\b(anew|whoever|read over|alone|tells?|(?:is|are|be|been|was|were) told|behind the scenes|"
    r"stands? (?:in the (?:query|body|data)|in between|between|more)|behind (?:revision|all that))\b", re.I)
IN_COMMENTS = re.compile(r"\b(anew|whoever|nobody|foretell|read over|alone|tells?|(?:is|are|be|been) told|by a hair|in vain)\b")
PAGES = ["README.md", "CHANGELOG.md", "SECURITY.md"] + glob.glob("docs/*.md")
PRINTED = ["client/**/*.c", "server/**/*.[ch]"]  # messages, help, summaries: the literals
ALLOWED = {"docs/performance.md: its pyramid anew"}  # a row that make bench writes


def texts():
    for path in PAGES + ["proto/openapi.yaml"]:
        with open(path, encoding="utf-8") as file:
            yield from ((path, number, line) for number, line in enumerate(file, 1))
    for path in ("client/lib/kota.h", "client/lib/kota-sand.h"):
        with open(path, encoding="utf-8") as file:
            yield from ((path, number, line) for number, line in enumerate(file, 1))
    for path in sorted(sum((glob.glob(one, recursive=True) for one in PRINTED), [])):
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield path, number, " ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', line))


def comments():
    for path in sorted(sum((glob.glob(one, recursive=True) for one in PRINTED), [])):
        with open(path, encoding="utf-8") as file:
            whole = file.read()
        for comment in re.finditer(r"/\*.*?\*/", whole, re.S):
            first = whole.count("\n", 0, comment.start()) + 1
            yield from ((path, number, line)
                        for number, line in enumerate(comment.group().split("\n"), first))


for where, at, text in comments():
    for phrase in IN_COMMENTS.finditer(text):
        print(f"{where}:{at}: {text.strip()}")
for where, at, text in texts():
    for phrase in PHRASES.finditer(text):
        if not any(where + ": " in one and one.partition(": ")[2] in text for one in ALLOWED):
            print(f"{where}:{at}: {text[max(0, phrase.start() - 30):phrase.end() + 30].strip()}")
