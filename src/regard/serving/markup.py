"""HTML as texts to be translated and what stands between them: tags, comments, scripts and references stay as they are.

    cut = cut_html("<p>A <b>cat</b>.</p>")
    cut.texts                               ["A cat."] where inline tags are put back by place, see below
    cut.joined(["Un gato."])                "<p>Un <b>gato</b>.</p>"

A block of text is what stands between tags that begin or end a block. The inline tags in it are taken out, and put back
in the translation at the word boundary that is as far along in it, in the same order: they stay well nested, and none
is lost.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

INLINE = {
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label",
    "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    "img",
}  # fmt: skip
SILENT = ("script", "style", "textarea", "title", "pre", "code")
PART = re.compile(
    r"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<[!?/]?[A-Za-z](?:[^<>"']|"[^"]*"|'[^']*')*>|<[!?/]?[A-Za-z][^<>]*>|<!|<\?""",
    re.DOTALL,
)
"""A tag, whose attributes may hold anything between quotation marks; a comment; and what begins like one."""
NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)")
WORD = re.compile(r"[\w\u0300-\u036f\u0900-\u0dff]+")
"""A run of letters, with the signs of Indic scripts."""


@dataclass
class _Block:
    """A text to be translated: its characters, and the inline tags with the place of each among them."""

    text: str = ""
    tags: list[tuple[int, str]] = field(default_factory=list)

    def put_back(self, translated: str) -> str:
        """With the tags in the translation, white space at the ends as it was."""
        core = self.text.strip()
        if not core:
            return self.rebuilt(self.text)
        lead = self.text[: len(self.text) - len(self.text.lstrip())]
        trail = self.text[len(self.text.rstrip()) :]
        places = [self._place(at - len(lead), tag, core, translated) for at, tag in self.tags]
        return lead + _with(translated, [(at, tag) for at, (_, tag) in zip(places, self.tags, strict=True)]) + trail

    def rebuilt(self, text: str) -> str:
        return _with(text, self.tags)

    @staticmethod
    def _place(at: int, tag: str, core: str, translated: str) -> int:
        """Where a tag goes: at the boundary of words that is as far along; what closes, behind a word."""
        if at <= 0 or at >= len(core):
            return 0 if at <= 0 else len(translated)
        inside = WORD.match(core[at - 1]) and WORD.match(core[at])
        closes = tag.startswith("</")
        bounds = [found.end() if closes else found.start() for found in WORD.finditer(translated)]
        along = at / len(core) * len(translated)
        return round(along) if inside or not bounds else min(bounds, key=lambda bound: abs(bound - along))


@dataclass
class Cut:
    """HTML taken apart."""

    parts: list[_Block | str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """What is to be translated, without references such as &amp;."""
        return [each.text.strip() for each in self.parts if isinstance(each, _Block) and each.text.strip()]

    def joined(self, translated: Sequence[str]) -> str:
        """The HTML again, with each text in its place."""
        coming = iter(translated)
        return "".join(
            each if isinstance(each, str)
            else each.put_back(next(coming)) if each.text.strip()
            else each.rebuilt(each.text)
            for each in self.parts
        )  # fmt: skip


def cut_html(text: str) -> Cut:
    cut, block, at, silent = Cut(), _Block(), 0, ""
    for found in PART.finditer(text):
        between, tag, at_before = text[at : found.start()], found.group(), at
        at = found.end()
        name = NAME.match(tag)
        kind = name.group(1).lower() if name else ""
        if silent:  # nothing in there is language
            cut.parts.append(text[at_before:at])
            if tag.startswith("</") and kind == silent:
                silent = ""
            continue
        block.text += html.unescape(between)
        if kind in INLINE and kind not in SILENT:
            block.tags.append((len(block.text), tag))
            continue
        cut.parts += [block, tag]
        block = _Block()
        if kind in SILENT and not tag.startswith("</") and not tag.endswith("/>"):
            silent = kind
    rest = text[at:]
    if silent:
        cut.parts.append(rest)
    else:
        block.text += html.unescape(rest)
    cut.parts.append(block)
    return cut


def _with(text: str, tags: Sequence[tuple[int, str]]) -> str:
    """A text, escaped, with tags at places in it; a tag never stands before one that came earlier."""
    found, last = [], 0
    for at, tag in tags:
        at = max(at, last)
        found += [html.escape(text[last:at], quote=False), tag]
        last = at
    return "".join([*found, html.escape(text[last:], quote=False)])
