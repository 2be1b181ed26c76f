"""A manual page with what a program's --help says put in: page.py PAGE PROGRAM -> standard output.

A line `.\\" OPTIONS` becomes a list of the options, a line `.\\" HELP` the whole text as it is. So
the page cannot lag behind the program. `kota manual` needs none of this.
"""
import re
import subprocess
import sys


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "\\&...")
    return "\\&" + text if text[:1] in ".'" else text


def argument(text):
    return '"\\&' + escape(text).replace('"', "\\(dq") + '"'


def sentences(text):
    """A line for each part of a sentence, as mdoc wants it, none longer than 78."""
    lines = []
    for part in re.split(r"(?<=[.;]) ", text):
        line = ""
        for word in part.split():
            if line and len(line) + 1 + len(word) > 76:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}".strip()
        lines.append(line)
    return [escape(line) for line in lines if line]


def options(text):
    out = [".Bl -tag -width Ds"]
    for line in text.splitlines():
        match = re.match(r"  --([a-z-]+)(?: (\S+))?\s+(.*)", line)
        if not match:
            continue
        name, value, what = match.groups()
        out.append(f".It Fl \\-{name}" + (f" Ar {argument(value)}" if value else ""))
        out += sentences(what)
    return out + [".El"]


def whole(text):
    return [".Bd -literal"] + [escape(line) for line in text.rstrip("\n").splitlines()] + [".Ed"]


def main():
    page, program = sys.argv[1:]
    text = subprocess.run([program, "--help"], check=True, stdout=subprocess.PIPE).stdout.decode()
    with open(page, encoding="utf-8") as file:
        for line in file.read().splitlines():
            made = {'.\\" OPTIONS': options, '.\\" HELP': whole}.get(line)
            print("\n".join(made(text)) if made else line)


main()
