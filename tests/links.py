"""Every link of README, docs and the other pages leads somewhere, in the tree and where `make install` puts
them: prints each that does not. An installed page links to no file that is not installed."""
import glob
import os
import re

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]*)\)")
PAGES = ["*.md", "docs/*.md", "docs/internals/*.md"]


def anchors(path):
    """The names that a page's headings have at GitHub."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", text, re.M):
        name = re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-")
        found.add(name)
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def installed():
    """{source: target} of deploy/install.list, for what is in the tree."""
    found = {}
    with open("deploy/install.list", encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if len(words) != 3 or not words[0].isdigit() or words[1].startswith(("@", "build/")):
                continue
            for source in glob.glob(words[1]):
                target = words[2] + os.path.basename(source) if words[2].endswith("/") else words[2]
                found[source] = target.replace("@PREFIX@", "")
    return found


def main():
    targets = installed()
    for page in sorted(sum(map(glob.glob, PAGES), [])):
        with open(page, encoding="utf-8") as file:
            text = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
        for link in LINK.findall(text):
            path, _, anchor = link.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(there):
                print(f"{page}: no {link}")
            elif anchor and there.endswith(".md") and anchor not in anchors(there):
                print(f"{page}: no heading {link}")
            elif page in targets:
                here = os.path.dirname(targets[page])
                wanted = os.path.normpath(os.path.join(here, path)) if path else targets[page]
                if targets.get(there) != wanted and not os.path.isdir(there):
                    print(f"{page}: {link} is not installed at {wanted}")


main()
