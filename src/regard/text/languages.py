"""Language tags: `<2es>` in front of a source asks for Spanish. Text a person gives never becomes one."""

import re
from collections.abc import Iterable
from typing import Final

CODE: Final = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")
TAG: Final = re.compile(rf"<2({CODE.pattern})>")


def tag(language: str) -> str:
    """`es` → `<2es>`."""
    if not CODE.fullmatch(language):
        raise ValueError(f"language: expected a code like 'es' or 'pt-BR'; got {language!r}")
    return f"<2{language}>"


def language(token: str) -> str | None:
    """`<2es>` → `es`; None where a token is no tag."""
    found = TAG.fullmatch(token)
    return found.group(1) if found else None


def tags(languages: Iterable[str]) -> list[str]:
    """The tags of several languages, each once, in the order given."""
    return [tag(each) for each in dict.fromkeys(languages)]
