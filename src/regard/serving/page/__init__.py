"""The page for people, put together from plain files: no build step, no network, nothing from elsewhere."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from regard.tracing.render.html import inlined, script, style

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
SCRIPTS = ("base", "alignment", "translate", "worked", "page")


@cache
def translating() -> str:
    """The page that translates, explains, and works problems."""
    body = _read("page.html")
    scripts = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    return _filled(body, style=_read("page.css") + style(), script=f"{script()}\n(() => {{\n{scripts}\n}})();")


def documentation(schema: dict[str, Any]) -> str:
    """What the server takes and gives, as a page."""
    return _filled(
        _read("docs.html"), style=_read("page.css"), schema=inlined(json.dumps(schema)), script=_read("docs.js")
    )


def _filled(text: str, **parts: str) -> str:
    for name, part in parts.items():
        text = text.replace(f"/*{name}*/", part)
    return text


@cache
def _read(name: str) -> str:
    return (files("regard.serving.page") / name).read_text(encoding="utf-8")
