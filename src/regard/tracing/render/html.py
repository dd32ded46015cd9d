"""A derivation as one HTML file that needs nothing else: no network, no fonts, no libraries.

The viewer is plain JavaScript and CSS in the folder page/, which any page may embed: `script()` defines
`mountDerivation(element, json, options)` (viewer.js says which options), and `style()` goes with it.
"""

import html as markup
import json
from functools import cache
from importlib.resources import files

from regard.tracing.derivation import Derivation
from regard.tracing.render.colours import CIVIDIS, DIVERGING
from regard.tracing.render.numbers import checked_digits

PARTS = (
    "numbers",
    "exact",
    "derivation",
    "equation",
    "mathml",
    "colours",
    "words",
    "around",
    "map",
    "grid",
    "panel",
    "asking",
    "viewer",
)
"""The files of the viewer, in the order in which they use each other."""

IN_PAGE, IN_NOTEBOOK = 4_000_000, 2_000_000
"""How many numbers a page may hold, where nothing else is said: beyond that those of the largest steps stay out."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
html, body {{ margin: 0; height: 100%; }}
{style}
</style>
</head>
<body>
<div id="derivation"><noscript>This page opens its numbers with JavaScript, which is off here.</noscript></div>
<script type="application/json" id="data">{data}</script>
<script>
{script}
window.derivation = mountDerivation(
  document.getElementById("derivation"), document.getElementById("data").textContent, {options});
</script>
</body>
</html>
"""


def html(derivation: Derivation, title: str | None = None, digits: int = 4, largest: int | None = None) -> str:
    """The page. Numbers of steps with more than `largest` cells stay out of it; their rules do not."""
    largest = fitting(derivation, IN_PAGE) if largest is None else largest
    title = f"How {derivation.target.name} was computed" if title is None else title
    options = {"title": title, "digits": checked_digits(digits), "theme": True, "hash": True}
    return PAGE.format(
        title=markup.escape(title),
        style=style(),
        data=inlined(derivation.to_json(largest=largest, packed=True)),
        script=script(),
        options=inlined(json.dumps(options, ensure_ascii=False)),
    )


def framed(derivation: Derivation, height: int = 640) -> str:
    """The page in a frame of its own, for notebooks."""
    page = markup.escape(html(derivation, largest=fitting(derivation, IN_NOTEBOOK)))
    name = markup.escape(derivation.target.name)
    return (
        f'<iframe srcdoc="{page}" title="Derivation of {name}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {height}px; border: 1px solid #8884; border-radius: 8px"></iframe>'
    )


def fitting(derivation: Derivation, numbers: int) -> int:
    """The largest size of step such that all steps up to it hold so many numbers together."""
    sizes = sorted({step.size for step in derivation.fine if step.held is not None})
    total, largest = 0, 0
    for size in sizes:
        total += size * sum(step.size == size for step in derivation.fine if step.held is not None)
        if total > numbers:
            break
        largest = size
    return largest


def inlined(text: str) -> str:
    """JSON that may stand in a script element: nothing in it ends the element or begins a comment."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def script() -> str:
    """The viewer: one function, `mountDerivation`, and nothing else that a page could see."""
    palette = json.dumps({"cividis": CIVIDIS, "diverging": DIVERGING})
    body = "\n".join(_read(f"{part}.js") for part in PARTS)
    return (
        f"const mountDerivation = (() => {{\n'use strict';\nconst PALETTE = {palette};\n{body}\n"
        "return mountDerivation;\n})();"
    )


@cache
def style() -> str:
    """The viewer's looks."""
    return _read("viewer.css")


def _read(name: str) -> str:
    return (files("regard.tracing.render") / "page" / name).read_text(encoding="utf-8")
