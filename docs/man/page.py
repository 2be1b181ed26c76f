"""A manual page with a program's settings put in: page.py PAGE PROGRAM -> standard output.

A line `.\\" OPTIONS` becomes a list of the settings of `PROGRAM --help=table`, by group. So the page
cannot lag behind the program. `kota manual` needs none of this.
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


def options(table):
    out, group = [], ""
    for line in table.splitlines():
        heading, name, value, default, _, reload, text = line.split("\t")
        if heading != group:
            out += ([".El"] if group else []) + [f".Ss {escape(heading)}", ".Bl -tag -width Ds"]
            group = heading
        out.append(f".It Fl \\-{name}" + (f" Ar {argument(value)}" if value else ""))
        out += sentences(f"{text} (default {default})" if default not in ("", "no") else text)
        out += ["SIGHUP applies a new value."] if reload else []
    return out + [".El"]


def main():
    page, program = sys.argv[1:]
    table = subprocess.run([program, "--help=table"], check=True, stdout=subprocess.PIPE).stdout
    with open(page, encoding="utf-8") as file:
        for line in file.read().splitlines():
            print("\n".join(options(table.decode())) if line == '.\\" OPTIONS' else line)


main()
