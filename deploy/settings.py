"""Writes from kotad's table of settings what people read of it.

    python3 deploy/settings.py conf KOTAD       the example config file, deploy/kotad.conf
    python3 deploy/settings.py page KOTAD       docs/configuration.md

`make settings` writes both; tests/api/test_settings.py compares them.
"""
import subprocess
import sys
import textwrap

CONF = """\
# Example configuration of kotad: every setting, with its default or an example.
#
#   kotad --config /etc/kotad.conf
#
# Flags win over the environment (KOTA_LOG_LEVEL for log-level), the environment over this file.
# (r): SIGHUP (systemctl reload kotad) applies a new value. Other settings need a restart; the log names
# those that have changed. A file with an error is refused as a whole: kotad does not start, or keeps
# its settings. The settings are described in docs/configuration.md.
"""

PAGE = """\
# Settings

A setting is a flag (`--log-level warn`), an environment variable (`KOTA_LOG_LEVEL=warn`) or a line of the
config file (`log-level = warn`). Flags win over the environment, the environment over the file. An
unknown name or a value out of range ends the start with exit status 2 and one line that names it.

Sizes are in bytes, times in milliseconds where the name ends in `-ms`; `max-staleness` is in seconds.
Settings marked **r** take a new value from the config file at SIGHUP (`systemctl reload kotad`). For the
others the log names the change, and a restart applies it.

`deploy/kotad.conf` has every setting commented out. `kotad --help=all` prints this page as
text. Both are written from the table in the program.
"""


def table(kotad):
    said = subprocess.run([kotad, "--help=table"], check=True, stdout=subprocess.PIPE)
    return [line.split("\t") for line in said.stdout.decode().splitlines()]


def groups(rows):
    """(group, its rows), in order."""
    found = {}
    for row in rows:
        found.setdefault(row[0], []).append(row[1:])
    return found.items()


def conf(rows):
    out = [CONF]
    for group, settings in groups(rows):
        settings = [row for row in settings if row[3]]
        if settings:
            out.append(f"\n\n# ---- {group} ".ljust(99, "-") + "\n")
        for name, _, default, example, live, text in settings:
            words = f"{'(r) ' if live else ''}{text}"
            if default != example:
                words += f" (default {default})"
            out.append("\n" + "".join(f"# {line}\n" for line in textwrap.wrap(words, 98)))
            out.append(f"#{name} = {example}\n")
    return "".join(out)


def page(rows):
    out = [PAGE]
    for group, settings in groups(rows):
        out.append(f"\n## {group}\n| setting | default | | |\n|---|---|---|---|\n")
        for name, value, default, _, live, text in settings:
            flag = f"{name} {value}".strip().replace("|", "\\|")
            out.append(f"| `{flag}` | {default} | {'r' if live else ''} | {text} |\n")
    return "".join(out)


if __name__ == "__main__":
    sys.stdout.write({"conf": conf, "page": page}[sys.argv[1]](table(sys.argv[2])))
