"""What stands in a section of a problem file, taken as what it should be, or refused with its place."""

from keyword import iskeyword
from typing import NoReturn
from unicodedata import normalize

from regard.support.errors import Misuse
from regard.worked.functions import RULES
from regard.worked.guessing import unknown
from regard.worked.lines import List, Mapping, Text, Tree
from regard.worked.places import Place


def printable(text: str) -> str:
    """On one line and without control characters: it goes to terminals."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


class Sections:
    """Knows the name of the file, which every message begins with."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fit_name(self, key: str, at: Place) -> str:
        """As formulas spell it: letters, digits and _; Python's parser reads compatible letters as one."""
        name = normalize("NFKC", key)
        if not name.isidentifier():
            self.refuse(at, f"{key[:40]!r} cannot stand in a formula; a name is letters, digits and _, a letter first")
        if iskeyword(name) or name in (*RULES, "none"):
            self.refuse(at, f"{key!r} is a word of the formula language and cannot be a name")
        return name

    def text(self, top: Mapping, key: str) -> str:
        tree = top.items.get(key)
        if tree is None:
            return ""
        if not isinstance(tree, Text):
            self.refuse(tree.at, f"`{key}`: expected text, came {tree.kind}")
        return printable(tree.text)

    def listed(self, tree: Tree | None, what: str) -> list[Text]:
        if tree is None:
            return []
        items = tree.items if isinstance(tree, List) else (tree,)
        for each in items:
            if not isinstance(each, Text):
                self.refuse(each.at, f"{what}: expected a list of names, came {each.kind} in it")
        return [each for each in items if isinstance(each, Text)]

    def mapping(self, tree: Tree, what: str, known: tuple[str, ...] = ()) -> Mapping:
        if not isinstance(tree, Mapping):
            self.refuse(tree.at, f"{what}: expected names and values (name: value), came {tree.kind}")
        for key in tree.items:
            if known and key not in known:
                self.refuse(tree.keys[key], unknown("key", key, known))
        return tree

    def refuse(self, at: Place, said: str) -> NoReturn:
        raise Misuse(f"{self.name}:{at}: {said}")
