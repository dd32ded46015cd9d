"""What the quickstart is asked it has never seen."""

import re

from regard.data.places import place


def pairs(name: str) -> list[list[str]]:
    return [line.split("\t") for line in place(f"regard:{name}").read_text(encoding="utf-8").splitlines()]


def plain(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.lower()))


def test_the_twelve_sentences_share_no_side_with_what_is_learned() -> None:
    learned, asked = pairs("quickstart.en-es.tsv"), pairs("everyday.en-es.tsv")
    assert len({english for english, _ in asked}) == 12
    assert 2000 < len(learned) < 10_000
    for side in (0, 1):
        assert not {plain(pair[side]) for pair in asked} & {plain(pair[side]) for pair in learned}


def test_every_word_asked_was_learned() -> None:
    learned = {word for english, _ in pairs("quickstart.en-es.tsv") for word in plain(english).split()}
    assert {word for english, _ in pairs("everyday.en-es.tsv") for word in plain(english).split()} <= learned
