"""Writes the page at /docs/errors, which server/api/calls/pages.c embeds, from docs/errors.md.

    python3 client/web/errors_page.py docs/errors.md server/base/err.h >errors.html

Each code of the list in err.h must have its heading, and each heading must be a code or a group;
the heading's text is its anchor. The little of Markdown that the page uses is known here.
"""
import html
import re
import sys

HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>kota: errors</title>
<link rel="icon" href="/web/icon.svg">
<link rel="stylesheet" href="/web/style.css">
<link rel="stylesheet" href="/web/docs.css">
</head>
<body class="docs">
<header>
  <h1>kota <span class="quiet">errors</span></h1>
  <a href="/">Inspector</a>
  <a href="/docs">Calls</a>
</header>
<main>
"""


def inline(text):
    """Code, emphasis and links; a link to another page of docs/ keeps its text."""
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
    return re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text)


def blocks(text):
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith("```"):
            yield "<pre>" + html.escape("\n".join(block.split("\n")[1:-1])) + "</pre>"
            continue
        if block.startswith("|"):
            rows = [[inline(cell.strip()) for cell in line.strip("|").split("|")]
                    for line in block.split("\n") if not re.fullmatch(r"[|-]+", line)]
            yield "<table>" + "".join("<tr><td>" + "</td><td>".join(row) + "</td></tr>"
                                      for row in rows) + "</table>"
            continue
        heading, _, rest = block.partition("\n") if block.startswith("#") else ("", "", block)
        if heading.startswith("### "):
            code = heading[4:]
            yield f'<h3 id="{code}"><a href="#{code}"><code>{code}</code></a></h3>'
        elif heading.startswith("## "):
            yield f"<h2>{inline(heading[3:])}</h2>"
        if rest:
            yield f"<p>{inline(' '.join(rest.split()))}</p>"


def main(page, header):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    with open(header, encoding="utf-8") as file:
        codes = set(re.findall(r"^ +X\(\w+, (\w+), \d+, ", file.read(), re.M)) - {"ok"}
    headings = re.findall(r"^### (.*)$", text, re.M)
    if sorted(codes) != sorted(headings):
        raise SystemExit(f"{page}: not one paragraph for each code of {header}: "
                         f"{sorted(set(codes) ^ set(headings))}")
    print(HEAD + "\n".join(blocks(text)) + "\n</main>\n</body>\n</html>")


if __name__ == "__main__":
    main(*sys.argv[1:])
